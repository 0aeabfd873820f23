"""Nested arguments and results: dicts, lists, tuples and dataclasses of arrays and numbers.

In: a value. Out: its leaves with the paths to them, and a structure that builds the like of it from other leaves. Leaves are
what is no container; None is an empty one. A structure is hashable, since it is part of a signature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

Structure: TypeAlias = Any  # None for a leaf, else (type, keys, structures)


def flatten(value: Any, path: str = "") -> tuple[list[tuple[str, Any]], Structure]:
    """Leaves, each with its path (`params.w`, `layers.0`), and the structure."""
    parts = _parts(value)
    if parts is None:
        return [(path, value)], None
    leaves: list[tuple[str, Any]] = []
    inner = []
    for key, part in parts:
        found, structure = flatten(part, f"{path}.{key}" if path else str(key))
        leaves += found
        inner.append(structure)
    keys = tuple(key for key, _ in parts)
    return leaves, (type(value), keys, tuple(inner))


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    if value is None:
        return []
    if type(value) is dict:
        return list(value.items())
    if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return list(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "dtype"):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return None


def rebuilt(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The like of what was flattened, with these leaves."""
    if structure is None:
        return next(leaves)
    kind, keys, inner = structure
    if kind is type(None):
        return None
    values = [rebuilt(s, leaves) for s in inner]
    if kind is dict:
        return dict(zip(keys, values, strict=True))
    if kind in (list, tuple):
        return kind(values)
    if hasattr(kind, "_fields"):
        return kind(*values)
    return kind(**dict(zip(keys, values, strict=True)))
