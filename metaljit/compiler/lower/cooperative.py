"""Threads that work together: barriers, and what a group or a simdgroup computes together.

In: calls of a grid kernel. Out: IR statements. Whether all threads reach them is `uniformity`'s question. A device
function that waits for other threads, or asks where its thread stands, has no text of its own: it is lowered into its
caller, once for each call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TypeAlias

from metaljit.grammar import tree

from ...dtypes import BF16, BOOL, F16, F32, I32, U32, DType, Type, Vec
from ...source import Span
from .. import ir, usage
from . import calls, reductions
from .arithmetic import apply, truth
from .body import Body, Unit
from .convert import convert, index_type
from .literals import known, typed
from .values import Literal, Typed, Value, fault

SIMD_WIDTH = 32
Row: TypeAlias = Callable[[Body, tree.Call], Value]  # of the table of the language's functions


def in_group(body: Body, node: tree.Call, name: str) -> None:
    """Refuses what only a grid kernel has, and what would stand in a generator."""
    if body.unit.kind != "grid":
        fault("grid-only", f"{name} belongs to grid kernels", node.span,
              help="write the kernel with `Out[…]` parameters and grid=")  # fmt: skip
    if body.generating:
        fault(
            "collective-in-generator",
            f"{name} cannot stand in a generator",
            node.span,
            help="write a `for` loop",
        )


# ---- waiting, and computing together ----


def barrier(body: Body, node: tree.Call) -> Value:
    in_group(body, node, "barrier")
    calls.count(node, node.args, 0)
    body.emit(ir.Barrier(node.span))
    return Literal(None)


def uniform(body: Body, node: tree.Call) -> Value:
    """`uniform(x)`: by the user's word, x is the same for all threads of the group."""
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 1)
    (value,) = values
    if not isinstance(value, Typed):
        return value
    if isinstance(value.expr, ir.Const):
        return value
    var = body.var(
        "same", value.type
    )  # a statement: all threads come to it in the same order, or it is not checked
    body.emit(ir.Let(var, ir.Same(value.expr), node.span))
    return replace(value, expr=ir.Same(ir.Read(var)))


def collective(name: str) -> Row:
    """`group_sum(x)`, `simd_shuffle(x, lane)`, …: one value from each thread."""

    def row(body: Body, node: tree.Call) -> Value:
        in_group(body, node, name)
        keywords = ("exclusive",) if name.endswith("prefix_sum") else ()
        values, named = calls.arguments(body, node, keywords=keywords)
        calls.count(node, values, 2 if name in _WITH_LANE else 1)
        value = _operand(body, name, values[0], node)
        narrow: Type | None = None
        by: ir.Expr | None = None
        if name.endswith(("min", "max")) and value.type in (F16, BF16):
            narrow, value = value.type, convert(body, value, F32, node.span)
        if name in _WITH_LANE:
            lane = body.in_order([lambda: values[1]], [node.span])[0]
            by = _lane(body, name, lane, node).expr
        op = name
        if keywords:
            exclusive = known(named.get("exclusive", Literal(False)), node.span, "exclusive")
            op = name.replace("prefix", "prefix_exclusive" if exclusive else "prefix_inclusive")
        if prod(body.unit.threads) == SIMD_WIDTH:
            op = op.replace("group_", "simd_")
        var = body.var(name.split("_", 1)[1], U32 if name == "simd_ballot" else value.type)
        body.emit(ir.Collective(op, var, value.expr, by, node.span))
        found = Typed(ir.Read(var))
        return found if narrow is None else convert(body, found, narrow, node.span)

    return row


_WITH_LANE = ("simd_broadcast", "simd_shuffle", "simd_shuffle_xor", "simd_shuffle_up", "simd_shuffle_down")


def _operand(body: Body, name: str, value: Value, node: tree.Call) -> Typed:
    """The value with the type that the function works on: sums as `sum` has it, the others their own."""
    if name == "simd_ballot":
        return convert(body, truth(body, value, node.span), BOOL, node.span)
    found = typed(value, node.span)
    if isinstance(found.type, Vec):
        fault("vector-lanes", f"{name} takes one number, found {found.type}", node.span,
              help="take the lanes one by one: `v.x`")  # fmt: skip
    if name.endswith("sum"):
        wide = reductions.summed(found.type)
        assert isinstance(wide, DType)
        return convert(body, found, wide, node.span)
    if found.type == BOOL and name.endswith(("min", "max")):
        fault(
            "not-a-number",
            f"{name} takes numbers, found bool",
            node.span,
            help="count with a sum, or cast: `i32(x)`",
        )
    return found


def _lane(body: Body, name: str, value: Value, node: tree.Call) -> Typed:
    """Another lane, in the range of lanes whatever the number is; up and down go at most as far as there are lanes."""
    index = typed(index_type(body, value, node.span, "a lane"), node.span, I32)
    facts = body.unit.facts
    most = SIMD_WIDTH - 1
    if index.poly is not None and facts.proves(index.poly) and facts.proves(-index.poly + most):
        return index
    if isinstance(index.expr, ir.Const):
        fault("bad-lane", f"{name} takes a lane of 0 to {most}, not {index.expr.value}", node.span)
    from ...operations import OPERATIONS

    if name.endswith(("up", "down")):
        clipped = apply(body, OPERATIONS["clip"], (index, Literal(0), Literal(most)), node.span)
    else:
        clipped = apply(body, OPERATIONS["bitwise_and"], (index, Literal(most)), node.span)
    assert isinstance(clipped, Typed)
    return clipped


# ---- device functions ----


def waits(unit: Unit, made: ir.Function) -> bool:
    """Whether a function's text belongs into its caller: it waits for other threads, or asks where its thread stands."""
    for s in usage.walk(made.body):
        if isinstance(s, ir.Barrier | ir.Collective | ir.TileFill | ir.TileMove | ir.TileMultiply):
            return True
        for top in usage.expressions(s):
            for e in usage.walk_expressions(top):
                if isinstance(e, ir.Read) and e.var.number in unit.grid_variables:
                    return True
    return False


def inlined(
    body: Body, made: ir.Function, variables: tuple[ir.Var, ...], passed: tuple[ir.Expr, ...], span: Span
) -> list[ir.Var]:
    """The function's statements where it is called; gives the variables that hold what it returns."""
    last = made.body[-1] if made.body else None
    returns = [s for s in usage.walk(made.body) if isinstance(s, ir.Return)]
    if returns and returns != [last]:
        early = next(s for s in returns if s is not last)
        fault("early-return", f"{made.name!r} works together with other threads, so it returns at its end only", early.span,
              second=(span, "called here"), help="give one name its value in an `if`, and return it last")  # fmt: skip
    for var, value in zip(variables, passed, strict=True):
        body.emit(ir.Let(var, value, span))
    if not isinstance(last, ir.Return):
        body.block += made.body
        return []
    body.block += made.body[:-1]
    results = [body.var(f"{made.name}_{k}", v.type) for k, v in enumerate(last.values)]
    for result, value in zip(results, last.values, strict=True):
        body.emit(ir.Let(result, value, last.span))
    return results
