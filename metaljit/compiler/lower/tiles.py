"""Tiles of 8 by 8 numbers that a simdgroup holds together: made, filled, loaded, stored, multiplied.

In: calls of a grid kernel. Out: IR statements. A block of an array that is not proved to lie in it is guarded as a whole:
outside, a load gives zeros and a store does nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal as Choice

from metaljit.grammar import tree

from ...dtypes import F16, F32, I32
from ...source import Span
from .. import ir
from . import arrays, calls, cooperative
from .arithmetic import binary, join_conditions
from .body import Body
from .convert import implicit, index_type
from .literals import describe, typed
from .values import Literal, Tile, Typed, Value, View, fault

SIDE = 8


def make(body: Body, node: tree.Call) -> Value:
    """`simdgroup_matrix(f32)`, `simdgroup_matrix(f16, 1)`: a tile that holds one number everywhere, 0 unless said."""
    from .builtins import element_type

    cooperative.in_group(body, node, "simdgroup_matrix")
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 1, 2)
    type = element_type(values[0], node.span)
    if type not in (F32, F16):
        fault("bad-tile", f"a simdgroup_matrix holds f32 or f16, not {type}", node.span)
    value = implicit(body, values[1] if len(values) == 2 else Literal(0), type, node.span, "an element")
    tile = ir.Tile("tile", type, body.unit.number())
    body.emit(ir.TileFill(tile, value.expr, True, node.span))
    return Tile(tile, node.span)


def fill(body: Body, node: tree.Call) -> Value:
    cooperative.in_group(body, node, "simdgroup_fill")
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 2)
    tile = _tile(values[0], node.span)
    value = implicit(body, values[1], tile.dtype, node.span, "an element")
    body.emit(ir.TileFill(tile, value.expr, False, node.span))
    return Literal(None)


def move(op: Choice["load", "store"]) -> cooperative.Row:
    """`simdgroup_load(tile, array, y, x)`, `simdgroup_store(tile, array, y, x)`: the block whose first element is there."""

    def row(body: Body, node: tree.Call) -> Value:
        cooperative.in_group(body, node, f"simdgroup_{op}")
        values, _ = calls.arguments(body, node)
        calls.count(node, values, 3, 4)
        tile, view = _tile(values[0], node.span), values[1]
        if not isinstance(view, View) or view.element != tile.dtype or any(m is not None for m in view.modes):
            wanted = f"simdgroup_{op} takes an array of {tile.dtype} without a border"
            fault("bad-tile", f"{wanted}, found {describe(view)}", node.span)
        if op == "store":
            arrays.refuse_read_only(view, node.span)
        indices = arrays.flat_indices(values[2:])
        if len(view.shape) != 2 or len(indices) != 2:
            fault(
                "bad-tile",
                f"simdgroup_{op} takes an array of two axes and the place of an element",
                node.span,
            )
        offset, guard = _block(body, view, indices, node.span)
        stride = typed(view.shape[1], node.span, I32).expr
        body.emit(ir.TileMove(op, tile, view.buffer, offset, stride, guard, node.span))
        return Literal(None)

    return row


def multiply_accumulate(body: Body, node: tree.Call) -> Value:
    """`simdgroup_multiply_accumulate(d, a, b, c)`: d becomes a @ b + c."""
    cooperative.in_group(body, node, "simdgroup_multiply_accumulate")
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 4)
    d, a, b, c = (_tile(v, node.span) for v in values)
    if len({t.dtype for t in (d, a, b, c)}) > 1:
        fault("bad-tile", "the four tiles of a multiplication have one element type", node.span)
    body.emit(ir.TileMultiply(d, a, b, c, node.span))
    return Literal(None)


def name_tile(body: Body, value: Tile, name: str) -> Tile:
    """A tile gets the name that it is first assigned to."""
    last = body.block[-1] if body.block else None
    if not isinstance(last, ir.TileFill) or not last.makes or last.tile != value.tile:
        return value
    named = replace(value.tile, name=name)
    body.block[-1] = replace(last, tile=named)
    return replace(value, tile=named)


def _tile(value: Value, span: Span) -> ir.Tile:
    if not isinstance(value, Tile):
        fault("bad-tile", f"a simdgroup_matrix was expected, found {describe(value)}", span)
    return value.tile


def _block(body: Body, view: View, indices: list[Value], span: Span) -> tuple[ir.Expr, ir.Expr | None]:
    """The offset of a block's first element, and the condition under which the block lies in the array."""
    axes: list[Typed] = []
    inside: list[Typed] = []
    for value, extent in zip(indices, view.shape, strict=True):
        first = typed(index_type(body, value, span, "an index"), span, I32)
        last = typed(binary(body, "+", first, Literal(SIDE - 1), span), span, I32)
        axes.append(first)
        if not view.unchecked:
            inside += [
                Typed(ir.InRange(i.expr, typed(extent, span, I32).expr, True))
                for i in (first, last)
                if not arrays.proved(body, i, typed(extent, span, I32))
            ]
    guard = join_conditions("and", inside).expr if inside else None
    return arrays.offset_of(view.shape, axes, span), guard
