"""Conversions of values: casts, the implicit ones, and integers as indices.

In: a value and a type. Out: the value of that type; an integer keeps its polynomial where it fits.
"""

from __future__ import annotations

from ...dtypes import BF16, BOOL, F16, F32, I32, DType, Type, Vec
from ...source import Span
from .. import ir
from ..bounds import Poly
from .body import Body
from .literals import describe, typed
from .values import (
    Literal,
    Poison,
    Poisoned,
    Typed,
    Value,
    fault,
)


def convert(body: Body, value: Value, type: Type, span: Span) -> Typed:
    """A value as `type`, by the rules of a cast; literals must fit."""
    if isinstance(type, Vec):
        return _convert_vector(body, value, type, span)
    if isinstance(value, Literal):
        return typed(value, span, type)
    source = typed(value, span)
    if source.type == type:
        return source
    if isinstance(source.type, Vec):
        fault("vector-lanes", f"{source.type} is no {type}", span, help="take one lane: `v.x`")
    if isinstance(source.expr, ir.Const) and type != BOOL and not (source.type.is_float and type.is_integer):
        fitting = type.is_float or type.smallest <= source.expr.value <= type.largest
        if fitting and type not in (F16, BF16):
            kept = float(source.expr.value) if type.is_float else int(source.expr.value)
            if type != F32 or abs(kept) <= 2**24:
                return Typed(ir.Const(kept, type), source.poly if type.is_integer else None)
    poly = range_poly(body, source)
    if poly is not None and not (type.is_integer and body.unit.facts.fits(poly, type)):
        poly = None
    return Typed(ir.Convert(source.expr, type), poly if type.is_integer else None)


def range_poly(body: Body, value: Typed) -> Poly | None:
    """The polynomial of an integer; a narrow one without any has at least its type's range."""
    if value.poly is not None or not isinstance(value.type, DType):
        return value.poly
    if value.type == BOOL:
        return body.unit.facts.symbol("bool", [0], [1])
    if value.type.is_integer and value.type.bits <= 32:
        return body.unit.facts.symbol("value", [int(value.type.smallest)], [int(value.type.largest)])
    return None


def _convert_vector(body: Body, value: Value, type: Vec, span: Span) -> Typed:
    if isinstance(value, Literal):
        one = typed(value, span, type.scalar)
        return Typed(ir.Vector((one.expr,) * type.lanes, type))
    source = typed(value, span)
    if source.type == type:
        return source
    if isinstance(source.type, Vec):
        if source.type.lanes != type.lanes:
            fault("vector-lanes", f"{source.type} is no {type}", span)
        lanes = source if isinstance(source.expr, ir.Read) else body.let("v", source, span)
        parts = tuple(
            ir.Convert(ir.Lane(lanes.expr, k, source.type.scalar), type.scalar) for k in range(type.lanes)
        )
        return Typed(ir.Vector(parts, type))
    one = convert(body, source, type.scalar, span)
    kept = body.pinned(one, span) if not isinstance(one.expr, ir.Const | ir.Read | ir.Uniform) else one
    assert isinstance(kept, Typed)
    return Typed(ir.Vector((kept.expr,) * type.lanes, type))


def implicit(body: Body, value: Value, type: Type, span: Span, where: str) -> Typed:
    """The conversion that needs no cast: bool → any, integer → wider or float, float → any float."""
    if isinstance(value, Literal):
        if (
            isinstance(value.value, bool)
            or not isinstance(type, DType)
            or type.is_float
            or not isinstance(value.value, float)
        ):
            return convert(body, value, type, span)
        fault(
            "needs-cast",
            f"{where} is {type} and {value.value!r} is a float",
            span,
            help=f"write `{type}({value.value!r})`",
        )
    source = typed(value, span)
    if source.type == type:
        return source
    if isinstance(type, DType) and isinstance(source.expr, ir.Choose):
        constants = _constants(source.expr, type)
        if constants is not None:
            return Typed(constants, source.poly)
    a, b = source.type.scalar, type.scalar
    lanes_fit = source.type.lanes == type.lanes or source.type.lanes == 1
    if not lanes_fit or not (
        a.kind == "bool"
        or (a.is_float and b.is_float)
        or (a.is_integer and b.is_float)
        or (a.is_integer and b.is_integer and widens(a, b))
    ):
        fault(
            "needs-cast",
            f"{where} is {type} and the value is {source.type}",
            span,
            str(source.type),
            help=_cast_help(source, type, span),
        )
    return convert(body, source, type, span)


def _cast_help(source: Typed, type: Type, span: Span) -> str:
    if source.type.lanes > 1 and type.lanes == 1:
        return "take one lane, `v.x`, or reduce them: `sum(v)`"
    return f"write the cast: `{type}({span.text})`" if len(span.text) < 30 else f"cast it with `{type}(…)`"


def _constants(expr: ir.Expr, type: DType) -> ir.Expr | None:
    """`1 if c else 0` chooses between literals, and each takes the wanted type if it fits."""
    match expr:
        case ir.Const(int(value), found) if found == I32 and type.is_integer:
            return ir.Const(value, type) if type.smallest <= value <= type.largest else None
        case ir.Choose(condition, then, otherwise):
            a, b = _constants(then, type), _constants(otherwise, type)
            return None if a is None or b is None else ir.Choose(condition, a, b)
        case _:
            return None


def widens(a: DType, b: DType) -> bool:
    """Whether every value of integer type a is one of b."""
    return b.smallest <= a.smallest and a.largest <= b.largest


def index_type(body: Body, value: Value, span: Span, what: str) -> Typed | Literal:
    """An index or extent as i32 (or a literal); 64-bit and unsigned ones saturate, which keeps them outside."""
    match value:
        case Literal(bool()) | Literal(float()) | Literal(str()) | Literal(None):
            fault("index-type", f"{what} must be an integer, found {describe(value)}", span)
        case Literal():
            return value
        case Typed() if isinstance(value.type, DType) and value.type.is_integer:
            if value.type == I32:
                return value
            if value.type.bits < 32:
                return convert(body, value, I32, span)
            fits = value.poly is not None and body.unit.facts.fits(value.poly, I32)
            return Typed(ir.Convert(value.expr, I32, saturating=not fits), value.poly if fits else None)
        case Poison():
            raise Poisoned
        case _:
            way = (
                f"write `i32({span.text})`" if isinstance(value, Typed) and value.type.scalar.is_float else ""
            )
            fault("index-type", f"{what} must be an integer, found {describe(value)}", span, help=way)
