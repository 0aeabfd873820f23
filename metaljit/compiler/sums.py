"""Loops that only add up, so that one turn can be taken by itself.

In: a loop, and the variables whose derivatives are asked for. Out: whether its turns need one another.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from ..dtypes import BOOL, I32
from . import ir
from .usage import expressions, walk, walk_expressions


def adds_up(s: ir.For, active: Set[int]) -> bool:
    """Whether the turns do not need one another: what they carry is added to, and read nowhere else."""
    held = carried(s.body)
    own = {x.local.number for x in walk(s.body) if isinstance(x, ir.LocalArray)}
    if _leaves(s.body):
        return False
    for x in walk(s.body):
        read = {
            e.var.number for top in expressions(x) for e in walk_expressions(top) if isinstance(e, ir.Read)
        }
        match x:
            case ir.LocalStore(local) if local.number not in own:
                return False
            case ir.Assign(var, value) if var.number in held and var.number in active:
                rest = _addends(var, value)
                if rest is None or any(_reads(r) & held for r in rest):
                    return False
            case ir.Assign(var) if var.number in held:
                if read & held & active:
                    return False
            case _:
                if read & held:
                    return False
    return True


def _reads(e: ir.Expr) -> set[int]:
    return {x.var.number for x in walk_expressions(e) if isinstance(x, ir.Read)}


def _addends(var: ir.Var, value: ir.Expr) -> tuple[ir.Expr, ...] | None:
    """What is added to the variable, if that is all."""
    match value:
        case ir.Apply("add" | "subtract", (ir.Read(v), rest)) if v == var:
            return (rest,)
        case ir.Apply("add", (rest, ir.Read(v))) if v == var:
            return (rest,)
        case ir.Apply("fma", (x, y, ir.Read(v))) if v == var:
            return (x, y)
        case _:
            return None


def carried(body: Sequence[ir.Stmt]) -> set[int]:
    """Variables from outside that are assigned within."""
    own = {s.var.number for s in walk(body) if isinstance(s, ir.Declare)}
    return {s.var.number for s in walk(body) if isinstance(s, ir.Assign)} - own


def without(body: Sequence[ir.Stmt], assigned: set[int]) -> tuple[ir.Stmt, ...]:
    """The statements without assignments of these variables."""
    found: list[ir.Stmt] = []
    for s in body:
        match s:
            case ir.Assign(var) if var.number in assigned:
                continue
            case ir.If():
                then, orelse = without(s.then, assigned), without(s.orelse, assigned)
                found.append(replace(s, then=then, orelse=orelse))
            case ir.Loop():
                before, inner = without(s.before, assigned), without(s.body, assigned)
                found.append(replace(s, before=before, body=inner))
            case ir.For() | ir.Once():
                found.append(replace(s, body=without(s.body, assigned)))
            case _:
                found.append(s)
    return tuple(found)


def _leaves(body: Sequence[ir.Stmt]) -> bool:
    """Whether something leaves the loop that this is the body of."""
    for s in body:
        match s:
            case ir.Break() | ir.Return():
                return True
            case ir.If():
                if _leaves(s.then) or _leaves(s.orelse):
                    return True
            case ir.For() | ir.Loop() | ir.Once():
                if any(isinstance(x, ir.Return) for x in walk(s.body)):
                    return True
            case _:
                pass
    return False


def in_range(s: ir.For, at: ir.Expr) -> ir.Expr:
    """Whether a loop has a turn."""
    up = s.step > 0
    low, high = ("greater_equal", "less") if up else ("less_equal", "greater")
    found: ir.Expr = ir.Apply(
        "logical_and", (ir.Apply(low, (at, s.start), BOOL), ir.Apply(high, (at, s.stop), BOOL)), BOOL
    )
    if abs(s.step) == 1:
        return found
    apart = ir.Apply("subtract", (at, s.start) if up else (s.start, at), I32)
    left = ir.Apply("remainder", (apart, ir.Const(abs(s.step), I32)), I32)
    return ir.Apply("logical_and", (found, ir.Apply("equal", (left, ir.Const(0, I32)), BOOL)), BOOL)
