"""Statements without what their returns do not need.

Unlike `simplify.drop_unused` this is for the front end, before there is a kernel: a sum that only itself reads goes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import ir
from .usage import expressions, walk, walk_expressions


def alive(body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
    """The statements without what their returns do not need; a sum that only itself reads goes too."""
    made = tuple(body)
    while True:
        kept = _kept_of(made, _needed(made))
        if kept == made:
            return made
        made = kept


def _needed(body: Sequence[ir.Stmt]) -> set[int]:
    values: dict[int, list[ir.Expr]] = {}
    todo: list[ir.Expr] = []
    for s in walk(body):
        match s:
            case ir.Let(var, value) | ir.Declare(var, value) | ir.Assign(var, value):
                values.setdefault(var.number, []).extend([value] if value is not None else [])
            case ir.LocalArray(local):
                values.setdefault(local.number, []).extend(s.values)
            case ir.LocalStore(local, offset, value, guard):
                values.setdefault(local.number, []).extend(
                    [offset, value, *([guard] if guard is not None else [])]
                )
            case _:
                todo += expressions(s)
    found: set[int] = set()
    while todo:
        for e in walk_expressions(todo.pop()):
            match e:
                case ir.Read(var):
                    number = var.number
                case ir.LocalLoad(local):
                    number = local.number
                case _:
                    continue
            if number not in found:
                found.add(number)
                todo += values.get(number, [])
    return found


def _kept_of(body: Sequence[ir.Stmt], needed: set[int]) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for s in body:
        match s:
            case ir.Let(var) | ir.Declare(var) | ir.Assign(var):
                if var.number not in needed:
                    continue
            case ir.LocalArray(local) | ir.LocalStore(local):
                if local.number not in needed:
                    continue
            case ir.If():
                s = replace(s, then=_kept_of(s.then, needed), orelse=_kept_of(s.orelse, needed))
                if not s.then and not s.orelse:
                    continue
            case ir.For():
                s = replace(s, body=_kept_of(s.body, needed))
                if not s.body:
                    continue
            case ir.Once():
                s = replace(s, body=_kept_of(s.body, needed))
            case ir.Loop():
                s = replace(s, before=_kept_of(s.before, needed), body=_kept_of(s.body, needed))
            case _:
                pass
        found.append(s)
    return tuple(found)
