"""`python -m metaljit`: the `metaljit` command."""

from .cli import main

main()
