"""The names that statements bind, and values for several of them at once.

In: statements and targets of the tree. Out: names in the order of their first binding, and one value a target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metaljit.grammar import tree

from .interpret_values import (
    Value,
    Vector,
    refuse,
)


def assigned_target(target: tree.Target | tree.Star) -> list[str]:
    match target:
        case tree.Name(name) | tree.Star(tree.Name(name)):
            return [name]
        case tree.TupleTarget(items):
            return [n for i in items for n in assigned_target(i)]
        case _:
            return []


def assigned(nodes: Sequence[tree.Stmt]) -> list[str]:
    """The names that statements bind, each once."""
    found: dict[str, None] = {}
    for node in nodes:
        match node:
            case tree.Assign(targets, _):
                found.update(dict.fromkeys(n for t in targets for n in assigned_target(t)))
            case tree.Declare(target, _, _) | tree.Augment(target, _, _):
                found.update(dict.fromkeys(assigned_target(target)))
            case tree.If(_, then, orelse):
                found.update(dict.fromkeys(assigned((*then, *orelse))))
            case tree.For(target, _, body):
                found.update(dict.fromkeys([*assigned_target(target), *assigned(body)]))
            case tree.While(_, body):
                found.update(dict.fromkeys(assigned(body)))
    return list(found)


def unpack(value: Value, items: Sequence[Any]) -> list[Value]:
    """One value for each target; a starred one gets the tuple of what is left."""
    parts = value.lanes if isinstance(value, Vector) else value
    stars = [k for k, i in enumerate(items) if isinstance(i, tree.Star)]
    if not isinstance(parts, tuple) or (
        len(parts) != len(items) if not stars else len(parts) < len(items) - 1
    ):
        refuse(f"{value!r} cannot be unpacked into {len(items)} names")
    if not stars:
        return list(parts)
    (at,) = stars
    rest = len(parts) - len(items) + 1
    return [*parts[:at], type(parts)(parts[at : at + rest]), *parts[at + rest :]]
