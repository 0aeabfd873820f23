"""Operators and conversions on values: literals fold, typed values become table operations, integers keep their polynomial.

In: values of operands. Out: a value. Types come from the operation table, ranges from `bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dtypes import BF16, BOOL, F16, F32, I32, DType, Type, Vec, with_lanes
from ...operation_rules import Operation, Refusal, Typing, check
from ...operations import OPERATIONS
from ...program import INDEX_MAX
from ...source import Diagnostic, Span
from .. import ir
from ..bounds import Bound, Poly
from .body import Body
from .values import (
    Group,
    Literal,
    Meta,
    NeedsConstant,
    Poison,
    Poisoned,
    Private,
    Typed,
    Value,
    View,
    fault,
    literal_type,
)

# Python's operator → the operation table's row.
BINARY = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder",
    "**": "power", "<<": "left_shift", ">>": "right_shift", "&": "bitwise_and", "|": "bitwise_or",
    "^": "bitwise_xor", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "==": "equal", "!=": "not_equal",
}  # fmt: skip
UNARY = {"-": "negative", "+": "positive", "~": "invert", "not": "logical_not"}


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
        case Meta(of):
            name = getattr(of, "name", type(of).__name__)
            return f"the type {name}" if isinstance(of, DType | Vec) else f"{name!r}, which is no value"
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
        case _:
            fault("not-a-number", f"a number was expected and {describe(value)} found", span)


def constant(value: int | float | bool, type: DType, span: Span) -> ir.Const:
    """A literal as a constant of a type; a fault where it does not fit."""
    if type.kind == "bool":
        return ir.Const(bool(value), type)
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


# ---- operators ----


def binary(body: Body, symbol: str, a: Value, b: Value, span: Span) -> Value:
    """`a symbol b`."""
    for v in (a, b):
        if isinstance(v, Poison):
            raise Poisoned
    if isinstance(a, Group) or isinstance(b, Group):
        return _elementwise(body, symbol, a, b, span)
    if isinstance(a, Literal) and isinstance(b, Literal):
        return _fold(symbol, a.value, b.value, span)
    if symbol not in BINARY:
        fault(
            "no-operator",
            f"the language has no operator {symbol!r}",
            span,
            help="write the sum: `sum(a[i, k] * b[k, j] for k in range(K))`" if symbol == "@" else "",
        )
    return apply(body, OPERATIONS[BINARY[symbol]], (a, b), span)


def _fold(symbol: str, a: Any, b: Any, span: Span) -> Value:
    from ...extents import MEANING

    if isinstance(a, str) or isinstance(b, str):
        if symbol in ("==", "!="):
            return Literal((a == b) == (symbol == "=="))
        fault("no-operator", f"strings have no operator {symbol!r}", span)
    if a is None or b is None or symbol not in MEANING:
        fault("no-operator", f"{a!r} {symbol} {b!r} has no meaning", span)
    if symbol in ("<<", "**") and isinstance(b, int) and abs(b) > 4096:
        fault("literal-range", f"{a!r} {symbol} {b!r} is too large", span)
    try:
        result = MEANING[symbol](a, b)
    except (ArithmeticError, TypeError, ValueError) as e:
        if symbol == "/" and b == 0:
            return Literal(math.nan if not a or a != a else math.copysign(math.inf, a) * math.copysign(1, b))
        fault("bad-constant", f"{a!r} {symbol} {b!r} has no value: {e}", span)
    if isinstance(result, complex):
        return Literal(math.nan)
    return Literal(result)


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
    poly, exact = _poly(body, op.name, operands, typing.result)
    holds, fails = _condition(op.name, operands)
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
    import numpy as np

    raw = [v.value for v in args if isinstance(v, Literal)]
    if not all(isinstance(v, int | float) for v in raw):
        return None
    values = [typed(Literal(v), span) for v in raw]
    typing = _typing(op, values, span)
    with np.errstate(all="ignore"):
        operands = [np.asarray(v).astype(t.numpy)[()] for v, t in zip(raw, typing.operands, strict=True)]
        result = op.meaning(*operands)
    item = np.asarray(result).astype(typing.result.numpy)
    return Typed(ir.Const(item.item(), typing.result), None) if typing.result != BOOL else Literal(bool(item))


def _poly(body: Body, name: str, operands: Sequence[Typed], result: DType) -> tuple[Poly | None, bool]:
    """The result as a polynomial where it cannot wrap, and whether the operation is exact."""
    if not result.is_integer or any(o.poly is None for o in operands):
        return _poly_of_bits(body, name, operands, result), False
    facts = body.unit.facts
    p = [o.poly for o in operands if o.poly is not None]
    match name:
        case "add" | "subtract" | "multiply" | "negative":
            made = {"add": lambda: p[0] + p[1], "subtract": lambda: p[0] - p[1], "multiply": lambda: p[0] * p[1],
                    "negative": lambda: -p[0]}[name]()  # fmt: skip
            return (made, True) if fits(body, made, result) else (None, False)
        case "positive":
            return p[0], True
        case "floor_divide" | "remainder":
            return _division(body, name, p[0], p[1]), False
        case "right_shift" if (k := p[1].constant) is not None and 0 <= k < result.bits:
            return body.unit.quotient("shifted", p[0], 1 << k), False
        case "left_shift" if (k := p[1].constant) is not None and 0 <= k < result.bits:
            made = p[0] * (1 << k)
            return (made if facts.fits(made, result) else None), False
        case "minimum":
            low = [0] if all(facts.proves(q) for q in p) else []
            return facts.symbol("min", low, p), False
        case "maximum":
            high = [b.limit for q in p for b in _uppers(body, q) if all(facts.proves(b.limit - r) for r in p)]
            return facts.symbol("max", p, high), False
        case "clip":
            least = [p[1]] if facts.proves(p[2] - p[1]) else []
            return facts.symbol("clip", least, [p[2]]), False
        case "bitwise_and":
            return _poly_of_bits(body, name, operands, result), False
    return None, False


def fits(body: Body, poly: Poly, dtype: DType) -> bool:
    """Whether a value stays within its type: proved, or true of all arrays but those at the very limit of size.

    `i + 2` passes 2³¹ − 1 only where an extent is at most 2 below it: such a call is refused instead.
    """
    facts = body.unit.facts
    if dtype != I32 or not facts.proves(poly - int(dtype.smallest)):
        return facts.fits(poly, dtype)
    over = -poly + INDEX_MAX
    return facts.proves(over) or body.unit.limit_size(over)


def _uppers(body: Body, poly: Poly) -> list[Bound]:
    """Upper bounds of a lone symbol."""
    if len(poly.terms) != 1 or len(next(iter(poly.terms))) != 1:
        return [Bound(False, 1, poly)]
    return [b for b in body.unit.facts.bounds[body.unit.facts.number(poly)] if not b.lower and b.scale == 1]


def _division(body: Body, name: str, a: Poly, b: Poly) -> Poly | None:
    facts = body.unit.facts
    divisor = b.constant
    if name == "floor_divide":
        if divisor is not None and divisor > 0:
            return body.unit.quotient("quotient", a, divisor)
        if facts.proves(b - 1) and facts.proves(a):
            return facts.symbol("quotient", [0], [a])
        return None
    if facts.proves(b - 1):
        upper = [b - 1, a] if facts.proves(a) else [b - 1]
        return facts.symbol("remainder", [0], upper)
    if facts.proves(b):  # x % 0 is 0
        return facts.symbol("remainder", [0], [b])
    return None


def _poly_of_bits(body: Body, name: str, operands: Sequence[Typed], result: DType) -> Poly | None:
    """`x & c` lies in [0, c] whatever x is; popcount, clz and ctz within the width."""
    if not result.is_integer:
        return None
    facts = body.unit.facts
    if name == "bitwise_and":
        masks = [o.poly for o in operands if o.poly is not None and facts.proves(o.poly)]
        return facts.symbol("masked", [0], masks) if masks else None
    if name in ("popcount", "clz", "ctz"):
        return facts.symbol(name, [0], [result.bits])
    if name == "remainder" and operands[1].poly is not None and facts.proves(operands[1].poly - 1):
        return facts.symbol("remainder", [0], [operands[1].poly - 1])
    return None


def _condition(name: str, operands: Sequence[Typed]) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
    """What holds where a comparison of integers is true, and where it is false."""
    if len(operands) != 2 or operands[0].poly is None or operands[1].poly is None:
        return (), ()
    a, b = operands[0].poly, operands[1].poly
    match name:
        case "less":
            return (b - a - 1,), (a - b,)
        case "less_equal":
            return (b - a,), (a - b - 1,)
        case "greater":
            return (a - b - 1,), (b - a,)
        case "greater_equal":
            return (a - b,), (b - a - 1,)
        case "equal":
            return (a - b, b - a), ()
        case "not_equal":
            return (), (a - b, b - a)
    return (), ()


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
            help=f"write the cast: `{type}({span.text})`"
            if len(span.text) < 30
            else f"cast it with `{type}(…)`",
        )
    return convert(body, source, type, span)


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
