"""Expressions of the tree → values.

One `match` over the tree's nodes; operators go to `arithmetic`, subscripts to `arrays`, calls to `calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, assert_never

import numpy as np

from metaljit.grammar import tree

from ...dtypes import I32, DType, Vec, from_numpy
from ...source import Span
from ...symbols import MISSING, Dim, DTypeVariable, Namespace, Pack
from .. import ir
from . import arrays, calls, conditions
from .arithmetic import binary, unary
from .body import Body, require_value
from .convert import convert, index_type
from .literals import describe, known
from .names import Foreign, canonical, member
from .signature import unknown_name
from .values import (
    Group,
    Literal,
    Meta,
    Poison,
    Poisoned,
    Private,
    Typed,
    Value,
    View,
    fault,
)

TUPLE_SIZE = 1 << 16


def lower(body: Body, node: tree.Expr) -> Value:
    """The value of an expression; statements that it needs are emitted before."""
    match node:
        case tree.Number(value):
            return Literal(value)
        case tree.String(value) | tree.Constant(value):
            return Literal(value)
        case tree.Name(name):
            return named(body, name, node.span)
        case tree.Attribute():
            return _attribute(body, node)
        case tree.Subscript():
            return _subscript(body, node)
        case tree.Call():
            return calls.lower_call(body, node)
        case tree.Unary("not", _):
            return conditions.truth_of(body, node)
        case tree.Unary(op, operand):
            return unary(body, op, lower(body, operand), node.span)
        case tree.Binary(op, left, right):
            a, b = lower_all(body, (left, right))
            return binary(body, op, a, b, node.span)
        case tree.Compare():
            return conditions.compare(body, node)
        case tree.Logical():
            return conditions.logical(body, node)
        case tree.Conditional():
            return conditions.conditional(body, node)
        case tree.TupleExpr(items):
            group = Group(tuple(spread(body, items)))
            if group.size > TUPLE_SIZE:
                fault(
                    "tuple-too-large",
                    f"this tuple holds {group.size} numbers (at most {TUPLE_SIZE})",
                    node.span,
                )
            return group
        case tree.Generator():
            fault(
                "bare-generator",
                "a generator stands only inside a reduction",
                node.span,
                help="write `sum(… for …)`, or prod, min, max, any, all, argmin, argmax",
            )
    assert_never(node)


def lower_all(body: Body, nodes: Sequence[tree.Expr]) -> list[Value]:
    """Several expressions, evaluated left to right; a fault in one does not hide those of the next."""

    def maker(node: tree.Expr) -> Callable[[], Value]:
        def make() -> Value:
            from .values import POISON

            value: Value = POISON
            with body.reporting():
                value = lower(body, node)
            return value

        return make

    values = body.in_order([maker(n) for n in nodes], [n.span for n in nodes])
    if any(isinstance(v, Poison) for v in values):
        raise Poisoned
    return values


def spread(body: Body, items: Sequence[tree.Expr | tree.Star]) -> list[Value]:
    """Values of items, a starred group in place."""
    flat: list[Value] = []
    nodes = [i.value if isinstance(i, tree.Star) else i for i in items]
    for item, value in zip(items, lower_all(body, nodes), strict=True):
        if isinstance(item, tree.Star):
            group = as_group(body, value, item.span)
            flat += group.items
        else:
            flat.append(value)
    return flat


def as_group(body: Body, value: Value, span: Span) -> Group:
    """A tuple, an index, or a pack's extents."""
    match value:
        case Group():
            return value
        case Meta(Pack(name)):
            return pack(body, name, span)
        case Poison():
            raise Poisoned
        case _:
            scalar = isinstance(value, Typed) and value in body.positions
            fault("not-a-tuple", f"a tuple was expected and {describe(value)} found", span,
                  help="the position of a result of rank 1 is an i32: `i = position()`" if scalar else "")  # fmt: skip


def pack(body: Body, name: str, span: Span) -> Group:
    from ...extents import Sym

    count = body.unit.spec.packs.get(name)
    if count is None:
        fault("unbound-pack", f"no argument says how many axes the pack {name!r} has", span)
    return Group(tuple(body.unit.extent(Sym(f"{name}.{k}")) for k in range(count)))


# ---- names ----


def named(body: Body, name: str, span: Span) -> Value:
    """A local name, else a free one."""
    if name in body.env:
        return require_value(body.env[name], name, span)
    found = canonical(body.names.resolve(name))
    if found is MISSING:
        unknown_name(name, span, tuple(body.env))
    return free_value(body, found, name, span)


def free_value(body: Body, found: Any, name: str, span: Span) -> Value:
    """What a captured object is in a body."""
    match found:
        case bool() | int() | float() | str() | None:
            return Literal(found)
        case tuple():
            return Group(tuple(free_value(body, canonical(f), name, span) for f in found))
        case np.generic():
            dtype = from_numpy(found.dtype)
            if dtype is None:
                fault("no-f64", f"the captured {name!r} is a NumPy {found.dtype}, which the language has not", span,
                      help="capture a number of Python, or of one of the language's dtypes")  # fmt: skip
            return convert(body, Typed(ir.Const(found.item(), dtype)), dtype, span)
        case Dim():
            return _dim(body, found, span)
        case DTypeVariable():
            if found not in body.unit.spec.variables:
                fault("unbound-dtype", f"nothing at the call decides the dtype variable {name!r}", span)
            return Meta(body.unit.spec.variables[found])
        case Foreign(what):
            _refuse_foreign(name, what, span)
        case _:
            return Meta(found)


def _dim(body: Body, dim: Dim, span: Span) -> Value:
    from ...extents import Sym

    if not body.is_kernel:
        fault(
            "dim-in-function",
            f"the extent {dim.name!r} is not visible inside a function",
            span,
            help="pass it as an argument, or use `u.shape[k]`",
        )
    if dim.name not in calls.bound_dims(body.unit):
        fault("unbound-dim", f"no argument's shape has the extent {dim.name!r}", span)
    return body.unit.extent(Sym(dim.name))


def _refuse_foreign(name: str, what: str, span: Span) -> NoReturn:
    short = name.rpartition(".")[2]
    way_out = {
        "function": f"make it a device function: put `@mj.function` above `def {short}`",
        "numpy function": "the language has its own functions; docs/operations.md lists them",
        "math function": f"write `{short}(x)`, which keeps the argument's type, or cast: `i32({short}(x))`",
        "ndarray": "pass the array as a parameter, or make a constant table: a tuple of numbers",
        "list": "capture a tuple instead of a list",
        "callable": "use the language's own functions; docs/language.md lists them",
    }.get(what, "capture numbers, bools, tuples of them, and @mj.function functions")
    fault("not-capturable", f"{name!r} is a Python {what}, which a kernel cannot use", span, help=way_out)


def _attribute(body: Body, node: tree.Attribute) -> Value:
    match node.value:
        case tree.Name() | tree.Attribute():
            owner = _owner(body, node.value)
            if owner is not None:
                found = member(owner, node.name)
                if found is MISSING:
                    fault(
                        "unknown-name", f"{node.value.span.text!r} has no name {node.name!r}", node.name_span
                    )
                return free_value(body, found, node.span.text, node.span)
    value = lower(body, node.value)
    match value, node.name:
        case (View() | Private()) as a, "shape":
            return shape_of(a)
        case (View() | Private()) as a, "ndim":
            return Literal(len(a.shape))
        case View(_, element), "dtype":
            return Meta(element.scalar)
        case Private(local), "dtype":
            return Meta(local.type.scalar)
        case Typed(), "dtype":
            return Meta(value.type.scalar)
        case Typed(), swizzle if isinstance(value.type, Vec):
            return _swizzle(body, value, swizzle, node)
        case _:
            fault("no-attribute", f"{describe(value)} has no attribute {node.name!r}", node.name_span)


def _owner(body: Body, node: tree.Expr) -> Any:
    """The module or namespace that a dotted name starts in, None for a local value."""
    import types

    match node:
        case tree.Name(name):
            if name in body.env:
                return None
            found = canonical(body.names.resolve(name))
            if found is MISSING:
                unknown_name(name, node.span, tuple(body.env))
        case tree.Attribute(value, name):
            outer = _owner(body, value)
            found = member(outer, name) if outer is not None else None
        case _:
            return None
    return found if isinstance(found, types.ModuleType | Namespace) else None


def shape_of(array: View | Private) -> Group:
    if isinstance(array, View):
        return Group(array.shape)
    return Group(tuple(Literal(n) for n in array.shape))


def _swizzle(body: Body, value: Typed, names: str, node: tree.Attribute) -> Value:
    type = value.type
    assert isinstance(type, Vec)
    for letters in ("xyzw", "rgba"):
        if all(n in letters[: type.lanes] for n in names) and 1 <= len(names) <= 4:
            lanes = [letters.index(n) for n in names]
            if len(lanes) == 1:
                return body.unit.lane(value, lanes[0])
            kept = body.pinned(value, node.span) if not isinstance(value.expr, ir.Read) else value
            assert isinstance(kept, Typed)
            parts = tuple(ir.Lane(kept.expr, k, type.scalar) for k in lanes)
            return Typed(ir.Vector(parts, Vec(type.scalar, len(lanes))))
    fault(
        "bad-swizzle",
        f"{names!r} picks no lanes of {type}",
        node.name_span,
        help=f"use letters of {'xyzw'[: type.lanes]!r} or of {'rgba'[: type.lanes]!r}",
    )


def _subscript(body: Body, node: tree.Subscript) -> Value:
    value = lower(body, node.value)
    indices = spread(body, node.indices)
    match value:
        case View():
            return arrays.read(body, value, indices, node.span)
        case Private():
            return arrays.read_private(body, value, indices, node.span)
        case Meta(Pack(name)):
            value = pack(body, name, node.value.span)
    if len(indices) != 1 and (
        isinstance(value, Group) or (isinstance(value, Typed) and isinstance(value.type, Vec))
    ):
        fault("wrong-rank", f"{describe(value)} takes one index", node.span)
    match value:
        case Group(items):
            return arrays.table(body, items, indices[0], node.span)
        case Typed() if isinstance(value.type, Vec):
            return _lane(body, value, indices[0], node.span)
        case Meta(DType() | Vec()):
            fault("bad-annotation", "an array type stands only in annotations", node.span)
        case Poison():
            raise Poisoned
        case _:
            fault("not-an-array", f"{describe(value)} cannot be indexed", node.span)


def _lane(body: Body, value: Typed, index: Value, span: Span) -> Value:
    type = value.type
    assert isinstance(type, Vec)
    at = index_type(body, index, span, "a lane")
    if isinstance(at, Typed) and isinstance(at.expr, ir.Const):
        at = Literal(at.expr.value)
    if isinstance(at, Literal):
        if not isinstance(at.value, int) or not 0 <= at.value < type.lanes:
            fault("index-range", f"{type} has no lane {at.value}", span)
        return body.unit.lane(value, at.value)
    proved = (
        at.poly is not None
        and body.unit.facts.proves(at.poly)
        and body.unit.facts.proves(-at.poly + type.lanes - 1)
    )
    lane = Typed(ir.Lane(value.expr, at.expr, type.scalar))
    if proved:
        return lane
    zero = convert(body, Literal(0), type.scalar, span)
    return Typed(ir.Choose(ir.InRange(at.expr, ir.Const(type.lanes, I32), True), lane.expr, zero.expr))


# ---- conditions ----


def constant_of(body: Body, node: tree.Expr, what: str) -> Any:
    """The compile-time value of an expression."""
    return known(lower(body, node), node.span, what)
