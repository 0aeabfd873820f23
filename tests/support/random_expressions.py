"""Random well-typed expressions: their text, their type, and what they mean in NumPy.

In: Hypothesis's choices, and the names there are. Out: an `Expr`. Types and meanings come from the operation table
alone, so that an expression is a third opinion beside the compiler and interpret mode. Only operations that are exact,
or rounded once in the same way everywhere, take part: results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from metaljit import conversions
from metaljit.dtypes import BOOL, DTYPES, F32, I32, I64, U32, U64, DType
from metaljit.operation_rules import Operation, Refusal, check
from metaljit.operations import OPERATIONS, ROWS, SYMBOLS
from metaljit.testing_values import nasty

Environment = Mapping[str, Any]

EVERY = tuple(DTYPES.values())
BINARY = [s for s, n in SYMBOLS if n == 2 and s not in ("and", "or")]
FUNCTIONS = [op.name for op in ROWS if not op.symbol and not op.ulp]
SIGN_OF_NAN = ("signbit", "copysign")  # they would tell one NaN from another, and which it is no device says
EITHER_ZERO = ("minimum", "maximum", "fmin", "fmax", "clip", "nextafter")  # of two zeros they may give either
LITERALS = (0, 1, 2, 3, 5, 7, 100, -1, 0.5, 2.0, -1.5, True)


@dataclass(frozen=True)
class Expr:
    """`type` is None for a literal, which `value` then is; `run` takes arrays by name."""

    text: str
    type: DType | None
    run: Callable[[Environment], Any]
    value: Any = None


def variable(name: str, type: DType) -> Expr:
    return Expr(name, type, lambda env: env[name])


def literal(value: Any) -> Expr:
    text = repr(value) if value >= 0 else f"({value!r})"
    return Expr(text, None, lambda env: value, value)


def own_type(value: Any) -> DType:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return F32
    return next(d for d in (I32, U32, I64, U64) if d.smallest <= value <= d.largest)


def beside(value: Any, others: Sequence[DType]) -> DType | None:
    """The type of a literal beside typed operands; None where it does not fit."""
    own = own_type(value)
    if isinstance(value, bool) or not others:
        return own
    other = others[0]
    if other is BOOL or (isinstance(value, float) and not other.is_float):
        return own
    fits = other.is_float or other.smallest <= value <= other.largest
    return other if fits else None


def cast(target: DType, x: Expr) -> Expr:
    source = x.type or own_type(x.value)
    return Expr(
        f"{_cast_name(target)}({x.text})", target, lambda env: conversions.convert(x.run(env), source, target)
    )


def saturated(target: DType, x: Expr) -> Expr | None:
    """`saturate(target, x)`; None where there is none."""
    source = x.type
    assert source is not None
    if not target.is_integer:
        return None
    text = f"saturate({target.name}, {x.text})"
    return Expr(text, target, lambda env: conversions.saturate(x.run(env), source, target))


def reinterpreted(target: DType, x: Expr) -> Expr | None:
    """`bitcast(target, x)` of a number that is no NaN; None where the widths differ."""
    source = x.type
    assert source is not None
    if BOOL in (source, target) or source.bits != target.bits:
        return None
    plain = number(x)
    text = f"bitcast({target.name}, {plain.text})"
    return Expr(text, target, lambda env: conversions.bitcast(plain.run(env), source, target))


def number(x: Expr) -> Expr:
    """A NaN becomes zero."""
    if x.type is None or not x.type.is_float:
        return x
    zero = cast(x.type, literal(0))
    chosen = operation(OPERATIONS["where"], [_made("isnan", x), zero, x])
    assert chosen is not None
    return chosen


def _made(name: str, *args: Expr) -> Expr:
    made = operation(OPERATIONS[name], args)
    assert made is not None
    return made


def _cast_name(target: DType) -> str:
    return "bool_" if target is BOOL else target.name


def operation(op: Operation, args: Sequence[Expr]) -> Expr | None:
    """A row of the table on expressions; None where their types do not fit, or where devices may differ."""
    if op.name in SIGN_OF_NAN:
        args = [*args[:-1], number(args[-1])]
    others = [a.type for a in args[1 if op.rule == "select" else 0 :] if a.type is not None]
    if len(set(others)) > 1 and any(a.type is None for a in args):
        return None  # which of them a literal takes its type from is not what is tried here
    types = [a.type or beside(a.value, others) for a in args]
    if None in types or (not others and op.rule != "select"):
        return None
    try:
        typing = check(op, types)  # type: ignore[arg-type]
    except Refusal:
        return None
    if not exact(op, typing.result):
        return None

    def run(env: Environment) -> Any:
        operands = [
            conversions.convert(_typed(a, t, env), t, wanted)  # type: ignore[arg-type]
            for a, t, wanted in zip(args, types, typing.operands, strict=True)
        ]
        return op.meaning(*(np.asarray(o) for o in operands))

    texts = [a.text for a in args]
    if not op.symbol:
        text = f"{op.name}({', '.join(texts)})"
    elif op.arity == 1:
        text = f"({op.symbol} {texts[0]})"
    else:
        text = f"({texts[0]} {op.symbol} {texts[1]})"
    made = Expr(text, typing.result, run)
    return _positive_zero(made, typing.result) if op.name in EITHER_ZERO else made


def _positive_zero(x: Expr, type: DType) -> Expr:
    """−0.0 becomes 0.0, so that nothing tells one zero from the other."""
    if not type.is_float:
        return x
    zero = type.numpy.type(0)
    return Expr(f"({x.text} + {type}(0))", type, lambda env: x.run(env) + zero)


def _typed(a: Expr, type: DType, env: Environment) -> Any:
    return a.run(env) if a.type is not None else type.numpy.type(a.value)


def conditional(condition: Expr, a: Expr, b: Expr) -> Expr | None:
    """`a if condition else b`, of one type."""
    if a.type is None or a.type != b.type:
        return None
    first, zero = condition.type, 0
    assert first is not None
    text = f"({a.text} if {condition.text} else {b.text})"
    return Expr(text, a.type, lambda env: np.where(condition.run(env) != zero, a.run(env), b.run(env)))


def exact(op: Operation, type: DType | None) -> bool:
    """Whether every device rounds the operation of a result of this type in the same way."""
    return not op.ulp or (type is not None and not type.is_float)


@st.composite
def expressions(
    draw: st.DrawFn, names: Mapping[str, DType], depth: int, types: Sequence[DType] = EVERY
) -> Expr:
    """Typed expressions over variables, all parts of one of `types`."""
    leaves = [variable(n, t) for n, t in names.items()]
    if depth == 0:
        return draw(st.sampled_from(leaves))

    def inner() -> Expr:
        return draw(expressions(names, depth - 1, types))

    def operand() -> Expr:
        return literal(draw(st.sampled_from(LITERALS))) if draw(st.integers(0, 4)) == 0 else inner()

    for _ in range(4):
        made = _drawn(draw, inner, operand, types)
        if made is not None and made.type in types:
            return made
    return draw(st.sampled_from(leaves))


def _drawn(
    draw: st.DrawFn, inner: Callable[[], Expr], operand: Callable[[], Expr], types: Sequence[DType]
) -> Expr | None:
    """One operation of any kind; None where its operands do not fit."""
    match draw(st.integers(0, 6)):
        case 0:
            make = draw(st.sampled_from((cast, cast, saturated, reinterpreted)))
            return make(draw(st.sampled_from(types)), inner())
        case 1:
            return operation(SYMBOLS[draw(st.sampled_from(["-", "~", "not"])), 1], [inner()])
        case 2 | 3:
            op = OPERATIONS[draw(st.sampled_from(FUNCTIONS))]
            return operation(op, [operand() for _ in range(op.arity)])
        case 4:
            a, b = inner(), inner()
            return conditional(inner(), a, b if a.type is b.type else cast(a.type or I32, b))
        case _:
            return operation(SYMBOLS[draw(st.sampled_from(BINARY)), 2], [operand(), operand()])


def samples(type: DType, count: int, seed: int) -> Any:
    """An array of nasty and plain values of a type."""
    generator = np.random.default_rng(seed)
    hard = np.array(nasty(type), np.float64 if type.is_float else type.numpy)
    chosen = hard[generator.integers(0, len(hard), count)]
    if type.kind == "bool":
        return chosen.astype(np.bool_)
    plain = generator.integers(-4 if type.is_signed else 0, 5, count)
    with np.errstate(all="ignore"):
        return np.where(generator.random(count) < 0.6, chosen, plain).astype(type.numpy)
