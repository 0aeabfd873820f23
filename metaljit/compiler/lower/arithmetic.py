"""Operators and conversions on values: literals fold, typed values become table operations, integers keep their polynomial.

In: values of operands. Out: a value. Types come from the operation table, ranges from `bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dtypes import BF16, BOOL, F16, DType, Vec, with_lanes
from ...operation_rules import Operation, Refusal, Typing, check
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from ..bounds import Poly
from .body import Body
from .convert import convert
from .literals import describe, fold, literal_beside, typed
from .ranges import facts_of, polynomial
from .values import (
    Group,
    Literal,
    Poison,
    Poisoned,
    Typed,
    Value,
    fault,
)

# Python's operator → the operation table's row.
BINARY = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder",
    "**": "power", "<<": "left_shift", ">>": "right_shift", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "==": "equal", "!=": "not_equal",
}  # fmt: skip
UNARY = {"-": "negative", "+": "positive", "~": "invert", "not": "logical_not"}


# ---- operators ----


def binary(body: Body, symbol: str, a: Value, b: Value, span: Span) -> Value:
    """`a symbol b`."""
    for v in (a, b):
        if isinstance(v, Poison):
            raise Poisoned
    if isinstance(a, Group) or isinstance(b, Group):
        return _elementwise(body, symbol, a, b, span)
    if isinstance(a, Literal) and isinstance(b, Literal):
        return Literal(fold(symbol, a.value, b.value, span))
    if symbol not in BINARY:
        fault(
            "no-operator",
            f"the language has no operator {symbol!r}",
            span,
            help="write the sum: `sum(a[i, k] * b[k, j] for k in range(K))`" if symbol == "@" else "",
        )
    return apply(body, OPERATIONS[BINARY[symbol]], (a, b), span)


def _elementwise(body: Body, symbol: str, a: Value, b: Value, span: Span) -> Value:
    """`index op index|tuple|int`; comparison `==` of tuples; `+` of plain tuples is an error."""
    groups = [v for v in (a, b) if isinstance(v, Group)]
    if symbol in ("==", "!=") and len(groups) == 2 and len(groups[0].items) == len(groups[1].items):
        parts = [
            binary(body, "==", x, y, span) for x, y in zip(groups[0].items, groups[1].items, strict=True)
        ]
        every = logical(body, "and", parts, span) if parts else Literal(True)
        return every if symbol == "==" else unary(body, "not", every, span)
    if not any(g.index for g in groups):
        word = {"+": "joined", "*": "repeated"}.get(symbol, f"combined by {symbol!r}")
        fault(
            "tuple-arithmetic",
            f"plain tuples cannot be {word} here",
            span,
            help="make one an index: `index(*t)`; an index adds element by element",
        )
    if symbol not in ("+", "-", "*", "//", "%"):
        fault("no-operator", f"an index has no operator {symbol!r}", span, help="an index knows + - * // %")
    n = len(groups[0].items)
    if any(len(g.items) != n for g in groups):
        lengths = " and ".join(str(len(g.items)) for g in groups)
        fault("wrong-rank", f"indices of {lengths} axes cannot be combined", span)
    columns = [v.items if isinstance(v, Group) else (v,) * n for v in (a, b)]
    return Group(tuple(binary(body, symbol, x, y, span) for x, y in zip(*columns, strict=True)), index=True)


def unary(body: Body, symbol: str, a: Value, span: Span) -> Value:
    match a:
        case Literal(bool(v)) if symbol == "not":
            return Literal(not v)
        case Literal(v) if isinstance(v, int | float):
            if symbol == "not":
                return Literal(not v)
            if symbol == "~" and isinstance(v, float):
                fault("no-operator", f"'~' needs an integer or bool, found {v!r}", span)
            if symbol == "~" and isinstance(v, bool):
                return Literal(not v)
            return Literal(-v if symbol == "-" else ~v if symbol == "~" else +v)  # type: ignore[operator]
        case Group(items, True) if symbol in ("-", "+"):
            return Group(tuple(unary(body, symbol, i, span) for i in items), True)
        case _ if symbol == "not":
            value = truth(body, a, span)
            if isinstance(value, Literal):
                return Literal(not value.value)
            return Typed(ir.Apply("logical_not", (value.expr,), BOOL), None, value.fails, value.holds)
        case _:
            return apply(body, OPERATIONS[UNARY[symbol]], (a,), span)


def apply(body: Body, op: Operation, args: Sequence[Value], span: Span, spans: Sequence[Span] = ()) -> Value:
    """A row of the operation table on values."""
    spans = spans or (span,) * len(args)
    others = [v.type for v in args if isinstance(v, Typed)]
    if not others and all(isinstance(v, Literal) for v in args):
        folded = _fold_operation(op, args, span)
        if folded is not None:
            return folded
    lanes = {t.lanes for t in others if isinstance(t, Vec)}
    if len(lanes) > 1:
        shown = " and ".join(str(t) for t in others if isinstance(t, Vec))
        fault("vector-lanes", f"vectors of different lanes cannot be combined: {shown}", span)
    beside = others[0].scalar if others else None
    if op.rule == "select" and beside is not None:
        rest = [v.type.scalar for v in args[1:] if isinstance(v, Typed)]
        beside = rest[0] if rest else None
    values = [_operand(op, k, v, beside, s) for k, (v, s) in enumerate(zip(args, spans, strict=True))]
    typing = _typing(op, values, span)
    n = lanes.pop() if lanes else 1
    operands = tuple(
        convert(body, v, with_lanes(t, n) if isinstance(v.type, Vec) or n > 1 else t, s)
        for v, t, s in zip(values, typing.operands, spans, strict=True)
    )
    result = with_lanes(typing.result, n)
    if n > 1:
        return _on_lanes(body, op, operands, typing, n, span)
    known = [o.expr.value for o in operands if isinstance(o.expr, ir.Const)]
    if len(known) == len(operands):
        return _folded(op, typing, known)
    poly, exact = polynomial(body, op.name, operands, typing.result)
    holds, fails = facts_of(body, op.name, operands)
    return Typed(ir.Apply(op.name, tuple(o.expr for o in operands), result, exact), poly, holds, fails)


def _operand(op: Operation, k: int, value: Value, beside: DType | None, span: Span) -> Typed:
    """An operand with its type: a literal takes that of the others, but an exponent of two is a number of its own."""
    own = op.rule == "scale" and k == 1
    if isinstance(value, Literal) and beside is not None and not own:
        return literal_beside(value.value, beside, span)
    return typed(value, span)


def _on_lanes(
    body: Body, op: Operation, operands: Sequence[Typed], typing: Typing, n: int, span: Span
) -> Typed:
    """On whole vectors where Metal has the operation for them, else lane by lane."""
    result = with_lanes(typing.result, n)
    if op.on_vectors(typing.dtype) and typing.result.scalar not in (F16, BF16):
        return Typed(ir.Apply(op.name, tuple(o.expr for o in operands), result))
    kept = [o if isinstance(o.expr, ir.Read) else body.let("v", o, span) for o in operands]
    lanes = [
        ir.Apply(op.name, tuple(ir.Lane(o.expr, k, o.type.scalar) for o in kept), typing.result)
        for k in range(n)
    ]
    return Typed(ir.Vector(tuple(lanes), result))


def _typing(op: Operation, values: Sequence[Typed], span: Span) -> Typing:
    try:
        return check(op, [v.type.scalar for v in values])
    except Refusal as e:
        fault(e.slug, str(e), span, help=e.help)


def _fold_operation(op: Operation, args: Sequence[Value], span: Span) -> Value | None:
    """A function of literals alone, computed in the types it would have at run time."""
    raw = [v.value for v in args if isinstance(v, Literal)]
    if not all(isinstance(v, int | float) for v in raw):
        return None
    values = [typed(Literal(v), span) for v in raw]
    typing = _typing(op, values, span)
    return _folded(op, typing, raw)  # type: ignore[arg-type]


def _folded(op: Operation, typing: Typing, numbers: Sequence[int | float | bool]) -> Value:
    """An operation on known numbers, by the table's own meaning."""
    with np.errstate(all="ignore"):
        operands = [np.asarray(v).astype(t.numpy)[()] for v, t in zip(numbers, typing.operands, strict=True)]
        item = np.asarray(op.meaning(*operands)).astype(typing.result.numpy).item()
    if typing.result == BOOL:
        return Literal(bool(item))
    return Typed(ir.Const(item, typing.result), Poly.of(item) if typing.result.is_integer else None)


def truth(body: Body, value: Value, span: Span) -> Literal | Typed:
    """A condition: a bool as it is, a number by `!= 0`; a vector has none."""
    match value:
        case Literal(v):
            return Literal(bool(v))
        case Typed() if isinstance(value.type, Vec):
            fault(
                "vector-truth",
                f"a vector ({value.type}) has no single truth",
                span,
                help="write `any(v)` or `all(v)`",
            )
        case Typed(ir.Const(v, _)):
            return Literal(bool(v))
        case Typed() if value.type == BOOL:
            return value
        case Typed():
            zero: Literal = Literal(0.0 if value.type.scalar.is_float else 0)
            result = apply(body, OPERATIONS["not_equal"], (value, zero), span)
            assert isinstance(result, Typed)
            return result
        case Group(items):
            return Literal(bool(items))
        case Poison():
            raise Poisoned
        case _:
            fault("not-a-number", f"a condition was expected and {describe(value)} found", span)


def logical(body: Body, word: str, values: Sequence[Value], span: Span) -> Value:
    """`and`/`or` of conditions that are already evaluated."""
    kept: list[Typed] = []
    for v in values:
        c = truth(body, v, span)
        if isinstance(c, Literal):
            if bool(c.value) == (word == "or"):
                return Literal(word == "or")
        else:
            kept.append(c)
    if not kept:
        return Literal(word == "and")
    return join_conditions(word, kept)


def join_conditions(word: str, kept: Sequence[Typed]) -> Typed:
    expr = kept[0].expr
    for c in kept[1:]:
        expr = ir.Apply(f"logical_{word}", (expr, c.expr), BOOL)
    together = tuple(p for c in kept for p in (c.holds if word == "and" else c.fails))
    alone = (kept[0].fails if word == "and" else kept[0].holds) if len(kept) == 1 else ()
    return Typed(expr, None, together, alone) if word == "and" else Typed(expr, None, alone, together)


# ---- conversions ----
