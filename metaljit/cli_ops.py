"""What `metaljit ops` prints."""

from __future__ import annotations

from collections.abc import Iterator

import click

from . import ops_reference
from .ops_reference import Entry


def listing() -> Iterator[str]:
    """All ops by family, each with its first sentence."""
    for family in ops_reference.families():
        yield click.style(family, bold=True)
        made = list(ops_reference.entries(family))
        width = max(len(e.name) for e in made)
        yield from (f"  {e.name:<{width}}  {e.first_sentence}" for e in made)


def described(name: str) -> Iterator[str]:
    """The entry of one op; UsageError for what is none."""
    try:
        e = ops_reference.entry(name)
    except KeyError:
        near = [n for names in ops_reference.families().values() for n in names if name in n]
        help = f"; there are {', '.join(near)}" if near else "; `metaljit ops` lists them"
        raise click.UsageError(f"there is no op {name!r}{help}") from None
    yield from _lines(e)


def _lines(e: Entry) -> Iterator[str]:
    yield click.style(e.signature, bold=True)
    yield f"\n{e.summary}"
    if e.parameters:
        yield ""
        yield from (f"  {click.style(name, bold=True)}: {text}" for name, text in e.parameters)
    yield from (f"\n{note}" for note in e.notes)
    if e.compared:
        yield f"\n{e.compared}"
    if e.example:
        yield f"\n{e.example}"
