"""Random C++ expressions as they stand in Metal's texts, of numbers and vectors, and what they mean in NumPy.

In: Hypothesis's choices. Out: an `Expr`. The rules are the Metal Shading Language Specification's: small integers are
promoted in scalars and not in vectors, shifts of vectors take their count modulo the width, floats become integers by truncation,
and here what is beyond the integer's ends becomes the end and NaN 0. Divisors are odd; all operations are exact, or
rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_expressions import samples

from metaljit import conversions
from metaljit.dtypes import BF16, BOOL, DTYPES, F16, F32, I32, I64, U32, U64, DType
from metaljit.operations import OPERATIONS

TYPES = tuple(d for d in DTYPES.values() if d != BF16)
INTEGERS = tuple(d for d in TYPES if d.is_integer)
FLOATS = (F16, F32)
VARIABLES = 3  # of each type
Environment = Mapping[str, Any]


@dataclass(frozen=True)
class Expr:
    """`run` gives an array of one row for each thread and one column for each lane."""

    text: str
    type: DType
    lanes: int
    run: Callable[[Environment], Any]

    @property
    def msl(self) -> str:
        return self.type.msl + (str(self.lanes) if self.lanes > 1 else "")


def environment(count: int, seed: int) -> dict[str, Any]:
    """Nasty values of every variable."""
    names = [(f"{d.name}_{k}", d) for d in TYPES for k in range(VARIABLES)]
    return {n: samples(d, count, seed + k).reshape(count, 1) for k, (n, d) in enumerate(names)}


def promoted(type: DType) -> DType:
    return I32 if not type.is_float and type.bits < 32 else type


def common(a: DType, b: DType) -> DType:
    """The usual arithmetic conversions; a half beside an integer stays one."""
    for f in (F32, F16):
        if f in (a, b):
            return f
    return next((t for t in (U64, I64, U32) if t in (promoted(a), promoted(b))), I32)


def converted(x: Any, source: DType, target: DType) -> Any:
    """Integers are rounded to half once, through float64, which holds all that a half can tell apart."""
    if target == F16 and not source.is_float:
        with np.errstate(all="ignore"):
            return x.astype(np.float64).astype(np.float16)
    return conversions.convert(x, source, target)


# ---- operators ----


def _quotient(a: Any, b: Any) -> Any:
    """Rounded toward zero; the least integer by −1 is itself."""
    if a.dtype.kind == "f":
        return a / b
    whole = np.floor_divide(a, b)
    return np.where((np.fmod(a, b) != 0) & ((a < 0) != (b < 0)), whole + np.asarray(1, a.dtype), whole)


def _count(x: Any, width: int) -> Any:
    return x & np.asarray(width - 1, x.dtype)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": _quotient, "%": np.fmod, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
ARITHMETIC, BITS, SHIFTS = ("+", "-", "*", "/"), ("&", "|", "^", "%"), ("<<", ">>")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def binary(symbol: str, a: Expr, b: Expr) -> Expr:
    """Of two scalars, or of vectors of one type. Bits and shifts are of integers."""
    lanes = max(a.lanes, b.lanes)
    operand = a.type if lanes > 1 else common(a.type, b.type)
    if symbol in SHIFTS and lanes == 1:
        operand = promoted(a.type)
    right = operand if symbol not in SHIFTS or lanes > 1 else promoted(b.type)
    odd = symbol in "/%" and not operand.is_float
    second = f"({b.text} | {b.msl}(1))" if odd else b.text
    if symbol in SHIFTS and lanes == 1:  # wider counts of scalars are wrong: test_found.py
        second = f"({b.text} & {operand.bits - 1})"
    text = f"({a.text} {symbol} {second})"

    def run(env: Environment) -> Any:
        x, y = converted(a.run(env), a.type, operand), converted(b.run(env), b.type, right)
        y = y | np.asarray(1, y.dtype) if odd else y
        if symbol in SHIFTS:
            y = _count(y, operand.bits).astype(x.dtype)
        with np.errstate(all="ignore"):
            return OPERATORS[symbol](x, y)

    return Expr(text, BOOL if symbol in COMPARISONS else operand, lanes, run)


def unary(symbol: str, a: Expr) -> Expr:
    operand = a.type if a.lanes > 1 or symbol == "!" else promoted(a.type)
    f = {"-": np.negative, "~": np.invert, "!": np.logical_not}[symbol]

    def run(env: Environment) -> Any:
        with np.errstate(all="ignore"):
            return f(converted(a.run(env), a.type, operand))

    return Expr(f"({symbol}{a.text})", operand, a.lanes, run)


def cast(type: DType, a: Expr) -> Expr:
    name = type.msl + (str(a.lanes) if a.lanes > 1 else "")
    return Expr(f"{name}({a.text})", type, a.lanes, lambda env: converted(a.run(env), a.type, type))


def chosen(c: Expr, a: Expr, b: Expr) -> Expr:
    """`c ? a : b` of scalars of one type."""
    return Expr(
        f"({c.text} ? {a.text} : {b.text})",
        a.type,
        1,
        lambda env: np.where(c.run(env) != 0, a.run(env), b.run(env)),
    )


# ---- functions ----


def _wide(f: Callable[..., int]) -> Callable[..., Any]:
    """A function of Python's integers on arrays; the result has Python's too."""

    def through(*args: Any) -> Any:
        return np.asarray(np.frompyfunc(lambda *x: f(*map(int, x)), len(args), 1)(*args), object)

    return through


def _within(x: Any, type: DType) -> Any:
    return np.clip(x, int(type.smallest), int(type.largest))


# Name, operands, meaning on exact integers or NumPy's. `absdiff` gives an unsigned type.
OF_INTEGERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "addsat": (2, _wide(lambda x, y: x + y)),
    "subsat": (2, _wide(lambda x, y: x - y)),
    "hadd": (2, _wide(lambda x, y: (x + y) >> 1)),
    "rhadd": (2, _wide(lambda x, y: (x + y + 1) >> 1)),
    "absdiff": (2, _wide(lambda x, y: abs(x - y))),
    "abs": (1, np.abs),
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "madsat": (3, _wide(lambda x, y, z: x * y + z)),
}


def _fma(x: Any, y: Any, z: Any) -> Any:
    """Rounded once: products and sums of halves that are near a tie are exact in float64."""
    if x.dtype != np.float16:
        return OPERATIONS["fma"].meaning(x, y, z)
    return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(np.float16)


OF_TABLE = ("popcount", "clz", "ctz", "reverse_bits", "mulhi", "rotate")
OF_FLOATS: dict[str, tuple[int, Callable[..., Any]]] = {
    "floor": (1, np.floor), "ceil": (1, np.ceil), "trunc": (1, np.trunc), "rint": (1, np.rint), "fabs": (1, np.abs),
    "fmin": (2, lambda x, y: np.fmin(x, y) + x.dtype.type(0)), "fmax": (2, lambda x, y: np.fmax(x, y) + x.dtype.type(0)), "isnan": (1, np.isnan), "isinf": (1, np.isinf),
    "isfinite": (1, np.isfinite), "fmod": (2, np.fmod), "fma": (3, _fma),
    "precise::sqrt": (1, np.sqrt),
    "saturate": (1, lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype)),
    "step": (2, lambda edge, x: np.where(x < edge, 0, 1).astype(x.dtype)),
}  # fmt: skip


def function(name: str, args: list[Expr]) -> Expr:
    """Of arguments of one type and number of lanes."""
    type, lanes = args[0].type, args[0].lanes
    result = type
    if name == "absdiff":
        result = DTYPES[type.name.replace("i", "u")]
    elif name.startswith("is"):
        result = BOOL
    if name in OF_TABLE:
        meaning = OPERATIONS[name].meaning
    else:
        meaning = (OF_FLOATS if type.is_float else OF_INTEGERS)[name][1]

    def run(env: Environment) -> Any:
        with np.errstate(all="ignore"):
            made = np.asarray(meaning(*(a.run(env) for a in args)))
        return (_within(made, result) if made.dtype == object else made).astype(result.numpy)

    text = f"metal::{name}({', '.join(a.text for a in args)})"
    if name in ("fmin", "fmax"):  # of two zeros they may give either
        text = f"({text} + {args[0].msl}(0))"
    return Expr(text, result, lanes, run)


# ---- what is drawn ----


@st.composite
def expressions(draw: st.DrawFn, type: DType | None = None, lanes: int | None = None, depth: int = 3) -> Expr:
    """An expression of this type and number of lanes; of any where none is given."""
    if type is None:
        lanes = draw(st.sampled_from((1, 1, 2, 3, 4)))
        made = _drawn(draw, draw(st.sampled_from(TYPES)), lanes, depth - 1)
    else:
        assert lanes is not None
        if depth == 0:
            return _leaf(draw, type, lanes)
        made = _drawn(draw, type, lanes, depth - 1)
        made = made if made.type == type else cast(type, made)
    return made


def _leaf(draw: st.DrawFn, type: DType, lanes: int) -> Expr:
    names = [f"{type.name}_{draw(st.integers(0, VARIABLES - 1))}" for _ in range(lanes)]
    text = names[0] if lanes == 1 else f"{type.msl}{lanes}({', '.join(names)})"
    return Expr(text, type, lanes, lambda env: np.concatenate([env[n] for n in names], 1))


def _drawn(draw: st.DrawFn, type: DType, lanes: int, depth: int) -> Expr:
    """An operation whose operands are of this type; the result may be of another."""

    def inner(of: DType = type, n: int = lanes) -> Expr:
        return draw(expressions(of, n, depth))

    match draw(st.integers(0, 7)):
        case 0:
            return cast(type, inner(draw(st.sampled_from(TYPES))))
        case 1:
            symbols = "-~" if type.is_integer else "-" if type.is_float else "!"
            return unary(draw(st.sampled_from(symbols)), inner())
        case 2 | 3 if type != BOOL:
            return _call(draw, type, inner)
        case 4 if lanes == 1:
            return chosen(inner(BOOL), inner(), inner())
        case 4:
            wide = draw(st.integers(2, 4))
            picked = [draw(st.integers(0, wide - 1)) for _ in range(lanes)]
            v = inner(type, wide)
            letters = "".join("xyzw"[k] for k in picked)
            return Expr(f"{v.text}.{letters}", type, lanes, lambda env: v.run(env)[:, picked])
        case 5:
            compared = COMPARISONS if lanes == 1 or type != BOOL else ("==", "!=")
            return binary(draw(st.sampled_from(compared)), inner(), inner())
        case _ if type.is_integer or (type == BOOL and lanes == 1):
            symbol = draw(st.sampled_from(ARITHMETIC + BITS + SHIFTS))
            other = type if lanes > 1 else draw(st.sampled_from((*INTEGERS, BOOL)))
            return binary(symbol, inner(), inner(other))
        case _ if type.is_float:
            other = type if lanes > 1 else draw(st.sampled_from(TYPES))
            return binary(draw(st.sampled_from(ARITHMETIC)), inner(), inner(other))
        case _:
            return binary(draw(st.sampled_from(("&", "|", "^"))), inner(), inner())


def _call(draw: st.DrawFn, type: DType, inner: Callable[[], Expr]) -> Expr:
    if type.is_float:
        name = draw(st.sampled_from(list(OF_FLOATS)))
        return function(name, [inner() for _ in range(OF_FLOATS[name][0])])
    name = draw(st.sampled_from((*OF_INTEGERS, *OF_TABLE)))
    arity = OF_INTEGERS[name][0] if name in OF_INTEGERS else OPERATIONS[name].arity
    return function(name, [inner() for _ in range(arity)])
