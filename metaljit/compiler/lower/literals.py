"""Literals: a number of the text takes the type of what it meets; and what a value is called in a message.

In: values. Out: typed values, IR constants, or a compile-time value that the language asks for.
"""

from __future__ import annotations

import math
from typing import Any

from ...dtypes import BOOL, F32, DType, Vec
from ...source import Diagnostic, Span
from .. import ir
from ..bounds import Poly
from .values import (
    Group,
    Literal,
    Meta,
    NeedsConstant,
    Poison,
    Poisoned,
    Private,
    Tile,
    Typed,
    Value,
    View,
    fault,
    literal_type,
)


def describe(value: Value) -> str:
    """A value's kind in the words of the language."""
    match value:
        case Literal(v):
            return f"the literal {v!r}"
        case Typed():
            return str(value.type)
        case Group(items, index):
            return f"an index of {len(items)}" if index else f"a tuple of {len(items)}"
        case View(buffer, _, shape):
            return f"the array {buffer.name!r} of rank {len(shape)}"
        case Private(local, shape):
            return f"the local array {local.name!r} of rank {len(shape)}"
        case Tile(tile):
            return f"the simdgroup_matrix {tile.name!r}"
        case Meta(of):
            name = getattr(of, "name", type(of).__name__)
            return f"the type {name}" if isinstance(of, DType | Vec) else f"{name!r} (no value)"
        case _:
            return "nothing"


def typed(value: Value, span: Span, type: DType | None = None) -> Typed:
    """A literal with its type (its own, or `type` where it fits), a typed value as it is; a fault for anything else."""
    match value:
        case Typed():
            return value
        case Literal(v) if isinstance(v, bool | int | float):
            if type is None:
                try:
                    type = literal_type(v)
                except OverflowError:
                    fault("literal-range", f"the literal {v} fits no integer type", span)
            return Typed(constant(v, type, span), Poly.of(int(v)) if type.is_integer else None)
        case Literal(v):
            what = "None" if v is None else f"the string {v!r}"
            fault("not-a-number", f"a number was expected and {what} found", span)
        case Poison():
            raise Poisoned
        case View(buffer, _, shape):
            at = "position()" if len(shape) == 1 else "p" if len(shape) > 2 else "y, x"
            fault("not-a-number", f"a number was expected and {describe(value)} found", span,
                  help=f"a kernel computes one element: `{buffer.name}[{at}]`")  # fmt: skip
        case _:
            fault("not-a-number", f"a number was expected and {describe(value)} found", span)


LITERAL_BITS = 4096  # of what an operator between literals may give
_WIDEST = 1024  # bits; what a Python float can still take


def constant(value: int | float | bool, type: DType, span: Span) -> ir.Const:
    """A literal as a constant of a type; a fault where it does not fit."""
    if type.kind == "bool":
        return ir.Const(bool(value), type)
    if isinstance(value, int) and value.bit_length() > _WIDEST:
        fault("literal-range", f"an integer of {value.bit_length()} bits is out of every dtype's range", span)
    if type.is_integer:
        if isinstance(value, float):
            fault(
                "literal-range",
                f"the literal {value!r} is no {type}",
                span,
                help=f"write `{type}({value!r})` to truncate it",
            )
        if not type.smallest <= value <= type.largest:
            fault(
                "literal-range",
                f"the literal {int(value)} does not fit {type} ({type.smallest} … {type.largest})",
                span,
                help=f"convert the other side to a wider type, or write `{type}({int(value)})` to wrap",
            )
        return ir.Const(int(value), type)
    return ir.Const(float(value), type)


def fold(symbol: str, a: Any, b: Any, span: Span) -> Any:
    """An operator between two literals: Python's number, and where Python has none IEEE's, or 0 of integers."""
    from ...extents import MEANING

    if isinstance(a, str) or isinstance(b, str):
        if symbol in ("==", "!="):
            return (a == b) == (symbol == "==")
        fault("no-operator", f"strings have no operator {symbol!r}", span)
    if a is None or b is None or symbol not in MEANING:
        fault("no-operator", f"{a!r} {symbol} {b!r} has no meaning", span)
    if symbol in ("<<", "**") and isinstance(b, int) and abs(b) > LITERAL_BITS:
        fault("literal-range", f"{a!r} {symbol} {b!r} is too large", span)
    if b == 0 and (
        symbol == "/" or (symbol in ("//", "%") and (isinstance(a, float) or isinstance(b, float)))
    ):
        return _by_zero(symbol, a, b)
    try:
        result = MEANING[symbol](a, b)
    except (ArithmeticError, TypeError, ValueError) as e:
        fault("bad-constant", f"{a!r} {symbol} {b!r} has no value: {e}", span)
    if isinstance(result, complex):
        return math.nan
    if isinstance(result, int) and result.bit_length() > LITERAL_BITS:
        fault("literal-range", f"this literal has more than {LITERAL_BITS} bits", span)
    return result


def _by_zero(symbol: str, a: float, b: float) -> float:
    if symbol == "%" or not a or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def literal_beside(value: Any, other: DType, span: Span) -> Typed:
    """A literal takes the type of the value it stands beside."""
    match value:
        case bool():
            return typed(Literal(value), span, BOOL)
        case int():
            if other == BOOL:
                return typed(Literal(value), span)
            return typed(Literal(value), span, other)
        case float():
            return typed(Literal(value), span, other if other.is_float else F32)
        case _:
            return typed(Literal(value), span)


def known(value: Value, span: Span, what: str) -> Any:
    """The value of a literal (or tuple of them); an enclosing loop is unrolled where it is not known."""
    match value:
        case Literal(v):
            return v
        case Group(items):
            return tuple(known(i, span, what) for i in items)
        case Typed(ir.Const(v, _)):
            return v
        case Poison():
            raise Poisoned
        case Typed():
            raise NeedsConstant(
                Diagnostic(
                    "not-constant",
                    f"{what} must be known at compile time, and {span.text!r} is computed at run time",
                    span,
                    help="use a number, a const[…] parameter, or a loop over a constant range",
                )
            )
        case _:
            fault("not-constant", f"{what} must be a constant, not {describe(value)}", span)
