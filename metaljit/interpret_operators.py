"""Operators of interpret mode: Python's operators, and rows of the operation table, on values.

In: values of operands. Out: a value. Types come from the table's typing rules, numbers from its NumPy meanings;
literals alone are Python's own arithmetic.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .dtypes import BF16, BOOL, DType, promote
from .interpret_values import (
    Index,
    Unknown,
    Value,
    Vector,
    convert,
    dtype_of,
    is_literal,
    literal_beside,
    literal_type,
    refuse,
    type_of,
)
from .operation_rules import Operation, Typing, check
from .operations import OPERATIONS, SYMBOLS

_FOLDED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_SCALARS_OWN = frozenset(("+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="))


def binary(symbol: str, a: Value, b: Value) -> Value:
    """`a symbol b`."""
    quick = _quick.get((symbol, type(a), type(b)))
    if quick is not None:
        return quick(a, b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        return _elementwise(symbol, a, b)
    if is_literal(a):
        if is_literal(b):
            return _fold(symbol, a, b)
        if isinstance(b, np.generic):
            return binary(symbol, literal_beside(a, dtype_of(b)), b)
    elif is_literal(b) and isinstance(a, np.generic):
        return binary(symbol, a, literal_beside(b, dtype_of(a)))
    if type_of(a) is None and type_of(b) is None:
        return _compare_names(symbol, a, b)
    if dtype_of(a) and dtype_of(b) and not isinstance(a, Unknown) and not isinstance(b, Unknown):
        _quick[symbol, type(a), type(b)] = _prepared(SYMBOLS[symbol, 2], a, b)
    return apply(SYMBOLS[symbol, 2], (a, b))


# By operator and the classes of two NumPy scalars: what computes them, types and all.
_quick: dict[tuple[str, type, type], Callable[[Value, Value], Value]] = {}


def _prepared(op: Operation, a: Value, b: Value) -> Callable[[Value, Value], Value]:
    types = dtype_of(a), dtype_of(b)
    wanted = _typing(op.name, types).operands
    if wanted == types:
        # NumPy's scalars have these operators themselves, and a run is without warnings: a quarter of the time
        return _FOLDED[op.symbol] if op.symbol in _SCALARS_OWN and BF16 not in types else op.meaning
    return lambda x, y: op.meaning(convert(x, wanted[0]), convert(y, wanted[1]))


def _fold(symbol: str, a: float, b: float) -> float:
    try:
        result = _FOLDED[symbol](a, b)
    except ZeroDivisionError:
        if symbol != "/" and isinstance(a, int) and isinstance(b, int):
            return 0
        if symbol == "%" or not a or a != a:
            return math.nan
        if symbol in ("/", "//"):
            return math.copysign(math.inf, a) * math.copysign(1, b)
        raise
    return math.nan if isinstance(result, complex) else result


def _compare_names(symbol: str, a: Value, b: Value) -> bool:
    """Types, strings and None, at compile time."""
    if symbol not in ("==", "!="):
        refuse(f"{a!r} and {b!r} have no operator {symbol!r}")
    return bool(a == b) == (symbol == "==")


def _elementwise(symbol: str, a: Value, b: Value) -> Value:
    """An index with a tuple, an index or an integer; `==` and `!=` of any tuples."""
    length = len(a) if isinstance(a, tuple) else len(b)
    columns = [v if isinstance(v, tuple) else (v,) * length for v in (a, b)]
    if len(columns[0]) != len(columns[1]):
        refuse(f"{a!r} and {b!r} have different lengths")
    pairs = list(zip(*columns, strict=True))
    if symbol in ("==", "!="):
        same = combine("and", [binary("==", x, y) for x, y in pairs])
        return same if symbol == "==" else unary("not", same)
    if not isinstance(a, Index) and not isinstance(b, Index):
        refuse(f"plain tuples have no operator {symbol!r}")
    return Index(binary(symbol, x, y) for x, y in pairs)


def unary(symbol: str, a: Value) -> Value:
    """`symbol a` for `- + ~ not`."""
    if symbol == "not":
        return _not(truth(a))
    if isinstance(a, Index):
        return Index(unary(symbol, x) for x in a)
    if is_literal(a):
        if symbol == "~":
            return (not a) if isinstance(a, bool) else ~a
        return -a if symbol == "-" else +a
    return apply(SYMBOLS[symbol, 1], (a,))


def _not(condition: Value) -> Value:
    if isinstance(condition, bool):
        return not condition
    return condition if isinstance(condition, Unknown) else np.bool_(not condition)


# ---- conditions ----


def truth(value: Value) -> Value:
    """A condition: a Python bool where it is known at compile time, else a typed one."""
    if isinstance(value, bool | np.bool_):
        return value
    if isinstance(value, tuple | str) or is_literal(value) or value is None:
        return bool(value)
    if isinstance(value, Unknown):
        return Unknown(BOOL)
    if isinstance(value, Vector) or dtype_of(value) is None:
        refuse(f"{value!r} has no single truth")
    return np.bool_(value != 0)


def combine(word: str, parts: Sequence[Value]) -> Value:
    """`and` or `or` of values that are all computed; of bool vectors lane by lane."""
    if any(isinstance(p, Vector) for p in parts):
        total = parts[0]
        for p in parts[1:]:
            total = apply(OPERATIONS[f"logical_{word}"], (total, p))
        return total
    decisive = word == "or"
    conditions = [truth(p) for p in parts]
    if any(isinstance(c, bool) and c is decisive for c in conditions):
        return decisive
    rest = [c for c in conditions if not isinstance(c, bool)]
    if not rest:
        return not decisive
    if any(isinstance(c, Unknown) for c in rest):
        return Unknown(BOOL)
    return np.bool_(any(rest) if decisive else all(rest))


def compare(symbols: Sequence[str], *values: Value) -> Value:
    """A chain of comparisons, all of which must hold."""
    parts = [binary(s, a, b) for s, a, b in zip(symbols, values, values[1:], strict=False)]
    return parts[0] if len(parts) == 1 else combine("and", parts)


def member(word: str, value: Value, items: Value) -> Value:
    """`in`, `not in`, `is` and `is not`."""
    if word in ("is", "is not"):
        same = value is items or (type(value) is type(items) and bool(value == items))
        return same == (word == "is")
    found = combine("or", [binary("==", value, i) for i in items])
    return found if word == "in" else _not(found)


# ---- the operation table ----


def apply(op: Operation, args: Sequence[Value]) -> Value:
    """A row of the operation table; with vectors among the operands, lane by lane."""
    lanes = {len(a.lanes) for a in args if isinstance(a, Vector)}
    if lanes:
        if len(lanes) > 1:
            refuse(f"{op.name} has vectors of {' and '.join(map(str, sorted(lanes)))} lanes")
        (n,) = lanes
        columns = [a.lanes if isinstance(a, Vector) else (a,) * n for a in args]
        results = tuple(apply(op, row) for row in zip(*columns, strict=True))
        scalar = dtype_of(results[0])
        assert scalar is not None
        return Vector(scalar, results)
    values = _typed(op, args)
    types = tuple(dtype_of(v) for v in values)
    if None in types:
        refuse(f"{op.name} takes numbers, found {', '.join(map(repr, args))}")
    typing = _typing(op.name, types)
    if any(isinstance(v, Unknown) for v in values):
        return Unknown(typing.result)
    operands = [
        v if t is wanted else convert(v, wanted)
        for v, t, wanted in zip(values, types, typing.operands, strict=True)
    ]
    return op.meaning(*operands)


@cache
def _typing(name: str, types: tuple[DType, ...]) -> Typing:
    return check(OPERATIONS[name], types)


def _typed(op: Operation, args: Sequence[Value]) -> Sequence[Value]:
    """Operands with types: a literal takes that of the typed ones beside it."""
    literals = [is_literal(a) for a in args]
    if not any(literals):
        return args
    if op.rule in ("select", "scale"):
        # the condition of `where` and the exponent of `ldexp` stand apart from the other operands
        apart = 0 if op.rule == "select" else 1
        beside = _beside([a for k, a in enumerate(args) if k != apart])
        return [
            a if not lit else literal_beside(a, None if k == apart else beside)
            for k, (a, lit) in enumerate(zip(args, literals, strict=True))
        ]
    beside = _beside(args)
    return [literal_beside(a, beside) if lit else a for a, lit in zip(args, literals, strict=True)]


def _beside(args: Sequence[Value]) -> DType | None:
    joined: DType | None = None
    for t in map(dtype_of, args):
        if t is not None:
            joined = t if joined is None else promote(joined, t) or joined
    return joined


def is_float(value: Value) -> bool:
    """Whether a number is a float, a literal one or a typed one."""
    dtype = literal_type(value) if is_literal(value) else dtype_of(value)
    return dtype is not None and dtype.is_float
