"""The language's functions of vectors: dot, cross, length, normalize, reflect.

In: a call. Out: a value, composed of the operation table's rows, lane by lane in a fixed order.
"""

from __future__ import annotations

from metaljit.grammar import tree

from ...dtypes import Vec
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from . import builtins
from .arithmetic import apply, binary
from .body import Body
from .literals import typed
from .values import Literal, Typed, Value, fault


def _vectors(body: Body, node: tree.Call, n: int) -> list[Typed]:
    values = []
    for v in builtins.values_of(body, node, n):
        source = typed(v, node.span)
        if not isinstance(source.type, Vec):
            fault("not-a-vector", f"{node.func.span.text} takes vectors, found {source.type}", node.span)
        values.append(source if isinstance(source.expr, ir.Read) else body.let("v", source, node.span))
    return values


def _dot_of(body: Body, a: Typed, b: Typed, span: Span) -> Value:
    product = binary(body, "*", a, b, span)
    kept = typed(product, span)
    kept = kept if isinstance(kept.expr, ir.Read) else body.let("products", kept, span)
    assert isinstance(kept.type, Vec)
    total: Value = Typed(ir.Lane(kept.expr, 0, kept.type.scalar))
    for k in range(1, kept.type.lanes):
        total = binary(body, "+", total, Typed(ir.Lane(kept.expr, k, kept.type.scalar)), span)
    return total


def dot(body: Body, node: tree.Call) -> Value:
    a, b = _vectors(body, node, 2)
    return _dot_of(body, a, b, node.span)


def length(body: Body, node: tree.Call) -> Value:
    (v,) = _vectors(body, node, 1)
    return apply(body, OPERATIONS["sqrt"], (_dot_of(body, v, v, node.span),), node.span)


def normalize(body: Body, node: tree.Call) -> Value:
    (v,) = _vectors(body, node, 1)
    size = apply(body, OPERATIONS["sqrt"], (_dot_of(body, v, v, node.span),), node.span)
    return binary(body, "/", v, body.let("size", typed(size, node.span), node.span), node.span)


def cross(body: Body, node: tree.Call) -> Value:
    a, b = _vectors(body, node, 2)
    for v in (a, b):
        if v.type.lanes != 3:
            fault("vector-lanes", f"cross takes vectors of 3 lanes, found {v.type}", node.span)

    def lane(v: Typed, k: int) -> Value:
        return Typed(ir.Lane(v.expr, k, v.type.scalar))

    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        left = binary(body, "*", lane(a, i), lane(b, j), node.span)
        right = binary(body, "*", lane(a, j), lane(b, i), node.span)
        parts.append(typed(binary(body, "-", left, right, node.span), node.span))
    return Typed(ir.Vector(tuple(p.expr for p in parts), Vec(parts[0].type.scalar, 3)))


def reflect(body: Body, node: tree.Call) -> Value:
    incident, normal = _vectors(body, node, 2)
    twice = binary(body, "*", Literal(2), _dot_of(body, normal, incident, node.span), node.span)
    return binary(body, "-", incident, binary(body, "*", twice, normal, node.span), node.span)
