"""Rewriting IR: one bottom-up walk over expressions, one over statements.

A rule takes an expression whose children have been rewritten, and gives a new one or the same; unchanged nodes
are returned as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from . import ir

Rule = Callable[[ir.Expr], ir.Expr]


def expression(e: ir.Expr, rule: Rule) -> ir.Expr:
    """`rule` applied to every node, children first."""
    new = with_children(e, lambda x: expression(x, rule))
    return rule(e if new == e else new)


def with_children(e: ir.Expr, go: Rule) -> ir.Expr:
    """The expression with `go` applied to those that stand directly in it, in order."""
    match e:
        case ir.Const() | ir.Read() | ir.Uniform():
            return e
        case ir.Load(_, offset, _) | ir.LocalLoad(_, offset) | ir.Table(_, _, offset):
            return replace(e, offset=go(offset))
        case ir.Apply(_, args, _, _) | ir.Call(_, args, _):
            return replace(e, args=tuple(map(go, args)))
        case ir.Vector(parts, _):
            return replace(e, parts=tuple(map(go, parts)))
        case ir.Convert(value, _, _) | ir.Bitcast(value, _) | ir.Same(value):
            return replace(e, value=go(value))
        case ir.Choose(condition, then, otherwise):
            return ir.Choose(go(condition), go(then), go(otherwise))
        case ir.Lane(value, lane, _):
            return replace(e, value=go(value), lane=lane if isinstance(lane, int) else go(lane))
        case ir.Fold(_, index, extent, _, _) | ir.InRange(index, extent, _, _):
            return replace(e, index=go(index), extent=go(extent))
    assert_never(e)


def statements(body: Sequence[ir.Stmt], rule: Rule) -> tuple[ir.Stmt, ...]:
    """`rule` applied to every expression of the statements, and of the blocks in them."""
    return tuple(statement(s, rule) for s in body)


def statement(s: ir.Stmt, rule: Rule) -> ir.Stmt:
    def go(x: ir.Expr) -> ir.Expr:
        return expression(x, rule)

    def maybe(x: ir.Expr | None) -> ir.Expr | None:
        return None if x is None else go(x)

    match s:
        case ir.Let(_, value, _) | ir.Assign(_, value, _):
            return replace(s, value=go(value))
        case ir.Declare(_, value, _):
            return replace(s, value=maybe(value))
        case ir.Store(_, offset, value, guard, _) | ir.LocalStore(_, offset, value, guard, _):
            return replace(s, offset=go(offset), value=go(value), guard=maybe(guard))
        case ir.LocalArray(_, values, _) | ir.Return(values, _):
            return replace(s, values=tuple(map(go, values)))
        case ir.If(condition, then, orelse, _):
            return replace(
                s, condition=go(condition), then=statements(then, rule), orelse=statements(orelse, rule)
            )
        case ir.For(_, start, stop, _, body, _):
            return replace(s, start=go(start), stop=go(stop), body=statements(body, rule))
        case ir.Loop(before, condition, body, _, _, _, _):
            return replace(
                s, before=statements(before, rule), condition=go(condition), body=statements(body, rule)
            )
        case ir.Once(body, _):
            return replace(s, body=statements(body, rule))
        case ir.Check(condition, _, _):
            return replace(s, condition=go(condition))
        case ir.Atomic(_, _, _, offset, values, guard, _):
            return replace(s, offset=go(offset), values=tuple(map(go, values)), guard=maybe(guard))
        case ir.CallInto(_, args, _, _):
            return replace(s, args=tuple(map(go, args)))
        case ir.Collective(_, _, value, by, _):
            return replace(s, value=go(value), by=maybe(by))
        case ir.TileFill(_, value, _, _):
            return replace(s, value=go(value))
        case ir.TileMove(_, _, _, offset, stride, guard, _):
            return replace(s, offset=go(offset), stride=go(stride), guard=maybe(guard))
        case ir.Break() | ir.Continue() | ir.Barrier() | ir.TileMultiply():
            return s
    assert_never(s)


def kernel(k: ir.Kernel, rule: Rule) -> ir.Kernel:
    """`rule` applied in the body and in all functions."""
    functions = tuple(replace(f, body=statements(f.body, rule)) for f in k.functions)
    return replace(k, functions=functions, body=statements(k.body, rule))
