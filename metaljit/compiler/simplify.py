"""Passes that make a kernel smaller: each is a pure function Kernel → Kernel.

    drop_unused   a local that nothing reads is not computed
    identities    x + 0, x * 1 of exact index arithmetic; nested conversions to the same type
    flatten       an elementwise kernel of any rank is one of rank 1

Laws. `identities` touches integers only: x + 0.0 is not x for x = -0.0, and x * 0 is not 0 for NaN. `flatten`
holds because row-major offsets of equal shapes are equal: it needs every position to be used only within the
offset of an element of an array of exactly the domain's extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dtypes import I32
from . import ir, rewrite
from .usage import blocks, expressions, walk, walk_expressions

ZERO, ONE = ir.Const(0, I32), ir.Const(1, I32)


def drop_unused(k: ir.Kernel) -> ir.Kernel:
    """Removes locals that are never read, until there are none."""
    functions = tuple(replace(f, body=_without_unused(f.body)) for f in k.functions)
    return replace(k, functions=functions, body=_without_unused(k.body))


def _without_unused(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    while True:
        read = {
            e.var.number
            for s in walk(body)
            for top in expressions(s)
            for e in walk_expressions(top)
            if isinstance(e, ir.Read)
        }
        kept = _filter(body, read)
        if kept == body:
            return body
        body = kept


def _filter(body: Sequence[ir.Stmt], read: set[int]) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for s in body:
        if isinstance(s, ir.Let | ir.Declare | ir.Assign) and s.var.number not in read:
            continue
        inner = blocks(s)
        match s:
            case ir.If(_, _, _, _):
                s = replace(s, then=_filter(inner[0], read), orelse=_filter(inner[1], read))
                if not s.then and not s.orelse:
                    continue
            case ir.For() | ir.Once():
                s = replace(s, body=_filter(inner[0], read))
            case ir.Loop():
                s = replace(s, before=_filter(inner[0], read), body=_filter(inner[1], read))
            case _:
                pass
        found.append(s)
    return tuple(found)


def identities(k: ir.Kernel) -> ir.Kernel:
    return rewrite.kernel(k, _identity)


def _identity(e: ir.Expr) -> ir.Expr:
    match e:
        case ir.Apply("add", (x, ir.Const(0)), type, _) | ir.Apply("add", (ir.Const(0), x), type, _) if (
            type == I32
        ):
            return x
        case ir.Apply("subtract", (x, ir.Const(0)), type, _) if type == I32:
            return x
        case ir.Apply("multiply", (x, ir.Const(1)), type, _) | ir.Apply(
            "multiply", (ir.Const(1), x), type, _
        ) if type == I32:
            return x
        case ir.Convert(value, type, _) if value.type == type:
            return value
        case _:
            return e


def flatten(k: ir.Kernel) -> ir.Kernel:
    """One position over the product of the extents, where only offsets use the positions."""
    if k.kind != "map" or len(k.positions) < 2 or k.margins:
        return k
    flat: ir.Expr = ir.Read(k.positions[0])
    total: ir.Expr = k.domain[0]
    for p, e in zip(k.positions[1:], k.domain[1:], strict=True):
        flat = _identity(ir.Apply("multiply", (flat, e), I32, True))
        flat = ir.Apply("add", (flat, ir.Read(p)), I32, True)
        total = _identity(ir.Apply("multiply", (total, e), I32, True))
    index = ir.Var("i", I32, 1 + max(v.number for v in k.positions) * 1_000_000)
    positions = {p.number for p in k.positions}
    body = rewrite.statements(k.body, lambda e: ir.Read(index) if e == flat else e)
    for s in walk(body):
        for e in (x for top in expressions(s) for x in walk_expressions(top)):
            if isinstance(e, ir.Read) and e.var.number in positions:
                return k
    return replace(k, positions=(index,), domain=(total,), body=body)
