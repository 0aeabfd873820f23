"""What the calls share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from golden import Case

Results: TypeAlias = Iterator[tuple[str, Any]]  # an output's name and what was computed for it
Call: TypeAlias = Callable[[Case], Results]


class NotThere(Exception):
    """The op, or a part of it, is not there yet."""
