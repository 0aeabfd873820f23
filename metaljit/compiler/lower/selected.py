"""Nodes of which an element comes from one place or another: embedded arrays, gathers, choices.

In: a node and an index. Out: the element there. Only what is wanted is computed, so the other place may lie outside an
array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...dtypes import BOOL, I32, DType
from ...extents import Extent
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from ..graph import Choose, Embed, Gather
from . import arithmetic, arrays, conditions
from .body import Body
from .convert import convert
from .literals import typed
from .values import Literal, Typed, Value

if TYPE_CHECKING:
    from .composed import Composer, Known


def embedded(
    composer: Composer, body: Body, node: Embed, indices: tuple[Typed, ...], known: Known, span: Span
) -> Typed:
    """An element of the embedded array where the index is one of its, else of what it lies in."""
    graph = composer.graph
    shape = graph.nodes[node.of].shape
    inner: list[Typed] = []
    tests: list[Typed] = []
    for axis, (index, start, step) in enumerate(zip(indices, node.starts, node.steps, strict=True)):
        extent = graph.extent(shape[axis])
        there, is_hit = _place(composer, body, index, graph.extent(start), step, span)
        inner.append(there)
        tests += is_hit
        tests += _inside(body, there, typed(composer.unit.extent(extent), span, I32))

    def behind() -> Value:
        around = graph.nodes[node.into].shape
        return composer.at(body, node.into, indices if around else (), dict(known))

    def within() -> Value:
        _assume(composer, body, inner, shape)
        return composer.at(body, node.of, tuple(inner), dict(known))

    return _chosen(body, tests, within, behind, node.dtype, span)


def _place(
    composer: Composer, body: Body, index: Typed, start: Extent, step: int, span: Span
) -> tuple[Typed, list[Typed]]:
    """Which element of the embedded array stands at an index, if one does, and what says that one does."""
    first = composer.unit.extent(start)
    away = _int(body, "-", index, first, span) if step > 0 else _int(body, "-", first, index, span)
    if abs(step) == 1:
        return away, []
    away = body.let("away", away, span)
    rest = _int(body, "%", away, Literal(abs(step)), span)
    return _int(body, "//", away, Literal(abs(step)), span), [
        Typed(ir.Apply("equal", (rest.expr, ir.Const(0, I32)), BOOL))
    ]


def _inside(body: Body, index: Typed, extent: Typed) -> list[Typed]:
    return [] if arrays.proved(body, index, extent) else [Typed(ir.InRange(index.expr, extent.expr, True))]


def _assume(composer: Composer, body: Body, indices: Sequence[Typed], shape: Sequence[Extent]) -> None:
    """The indices are in range here."""
    for index, extent in zip(indices, shape, strict=True):
        if index.poly is not None:
            limit = composer.unit.extent_poly(composer.graph.extent(extent))
            body.assume([index.poly, limit - index.poly - 1])


def gathered(
    composer: Composer, body: Body, node: Gather, indices: tuple[Typed, ...], known: Known, span: Span
) -> Typed:
    """The element that an index array names."""
    graph = composer.graph
    shape, rank = graph.nodes[node.of].shape, len(graph.nodes[node.at].shape)
    before, at, after = (
        indices[: node.axis], indices[node.axis : node.axis + rank], indices[node.axis + rank :]
    )  # fmt: skip
    extent = typed(composer.unit.extent(graph.extent(shape[node.axis])), span, I32)
    index = counted(body, composer.at(body, node.at, at, known), extent, span)
    inner = (*before, index, *after)

    def within() -> Value:
        _assume(composer, body, inner, shape)
        return composer.at(body, node.of, inner, dict(known))

    return _chosen(body, _inside(body, index, extent), within, lambda: Literal(0), node.dtype, span)


def counted(body: Body, value: Typed, extent: Typed, span: Span) -> Typed:
    """An element of an index array as an i32 index; a negative one counts from the end."""
    type = value.type
    assert isinstance(type, DType)
    index = value if type == I32 else Typed(ir.Convert(value.expr, I32, saturating=True))
    if type.is_signed:
        index = body.let("at", index, span)
        negative = Typed(ir.Apply("less", (index.expr, ir.Const(0, I32)), BOOL))
        moved = Typed(ir.Apply("add", (index.expr, extent.expr), I32, True))
        index = _typed(conditions.choose(body, negative, (lambda: moved, lambda: index), span))
    return body.let("index", Typed(index.expr, body.unit.facts.symbol("index")), span)


def chosen(
    composer: Composer, body: Body, node: Choose, indices: tuple[Typed, ...], known: Known, span: Span
) -> Typed:
    """One side of a choice; the predicate is of the result's shape or a number."""
    nodes = composer.graph.nodes

    def place(ref: int) -> tuple[Typed, ...]:
        return indices if nodes[ref].shape else ()

    test = composer.at(body, node.predicate, place(node.predicate), known)
    sides = tuple(
        lambda ref=ref: composer.at(body, ref, place(ref), dict(known)) for ref in (node.then, node.otherwise)
    )
    return _chosen(body, [test], sides[0], sides[1], node.dtype, span)


def _chosen(
    body: Body,
    tests: Sequence[Typed],
    then: Callable[[], Value],
    otherwise: Callable[[], Value],
    type: DType,
    span: Span,
) -> Typed:
    if not tests:
        return convert(body, then(), type, span)
    condition = arithmetic.join_conditions("and", tests) if len(tests) > 1 else tests[0]
    sides = tuple(lambda side=side: convert(body, side(), type, span) for side in (then, otherwise))
    return _typed(conditions.choose(body, condition, (sides[0], sides[1]), span))


def _int(body: Body, symbol: str, a: Value, b: Value, span: Span) -> Typed:
    found = arithmetic.apply(body, OPERATIONS[arithmetic.BINARY[symbol]], (a, b), span)
    return typed(found, span, I32)


def _typed(value: Value) -> Typed:
    assert isinstance(value, Typed)
    return value
