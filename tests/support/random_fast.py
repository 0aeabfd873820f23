"""Random expressions for kernels with `math="fast"`, and what is left of exactness there.

In: Hypothesis's choices. Out: expressions over integers and over what the compiler itself asks about floats, which stay
exact; and sums, products and quotients of ordinary floats, each with a bound on its error however it is reordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_expressions import Environment, Expr, cast, operation, variable

from metaljit.dtypes import DTYPES, I32, U8, DType
from metaljit.operations import OPERATIONS, ROWS

# What looks at bits, whatever the device's compiler thinks of NaN, infinities and the signs of zeros.
TESTS = ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "sign")
CHOICES = ("minimum", "maximum", "fmin", "fmax", "clip", "floor_divide", "remainder", "nan_to_num")
FAST = tuple(op for op in ROWS if op.fast)
EXACT_TYPES = tuple(d for d in DTYPES.values() if not d.is_float)
EPSILON = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}


@st.composite
def asked(draw: st.DrawFn, floats: Mapping[str, DType]) -> Expr:
    """A test or a choice of float variables of one type, or one of them as an integer."""
    name = draw(st.sampled_from(list(floats)))
    same = [variable(n, t) for n, t in floats.items() if t == floats[name]]
    op = OPERATIONS[draw(st.sampled_from(TESTS + CHOICES))]
    args: list[Expr | None] = [draw(st.sampled_from(same)) for _ in range(op.arity)]
    if op.fast:  # another spelling, which passes over NaN
        args = [operation(OPERATIONS["nan_to_num"], [a]) for a in args if a is not None]
    made = operation(op, [a for a in args if a is not None])
    assert made is not None
    integer = draw(st.sampled_from((None, None, I32, U8)))
    return made if integer is None else cast(integer, made)


@dataclass(frozen=True)
class Sum:
    """`size` is the sum of the magnitudes of all terms, multiplied out; `steps` counts the roundings."""

    text: str
    type: DType
    value: Any
    size: Any
    steps: int

    @property
    def allowed(self) -> Any:
        """The error of any order of the operations, with products fused or not, and reciprocals for quotients.

        Each of n roundings adds at most one unit of relative error to each term (Higham, §3.1: n·u / (1 − n·u)).
        Near zero a rounding adds a constant instead, which later factors multiply.
        """
        n, unit = self.steps + 2, EPSILON[self.type.name]
        return n * unit / (1 - n * unit) * self.size + n * TINY[self.type.name] * GREATEST

    def wrong(self, actual: Any) -> Any:
        return ~(np.abs(np.asarray(actual).astype(np.float64) - self.value) <= self.allowed)


DEPTH = 3
TINY = {"f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
GREATEST = 2.0 ** (2**DEPTH)  # of the factors that an error can meet: each variable is between 1/2 and 2


@st.composite
def sums(draw: st.DrawFn, env: Environment, type: DType, depth: int = DEPTH) -> Sum:
    """Sums, products and quotients of variables of one type; the divisor is a variable."""
    names = [n for n, values in env.items() if values.dtype == type.numpy]

    def leaf() -> Sum:
        name = draw(st.sampled_from(names))
        value = env[name].astype(np.float64)
        return Sum(name, type, value, np.abs(value), 0)

    if depth == 0:
        return leaf()
    symbol = draw(st.sampled_from("++--***/"))
    a = draw(sums(env, type, depth - 1))
    b = leaf() if symbol == "/" else draw(sums(env, type, depth - 1))
    steps = a.steps + b.steps + (3 if symbol == "/" else 1)
    text = f"({a.text} {symbol} {b.text})"
    match symbol:
        case "+" | "-":
            value = a.value + b.value if symbol == "+" else a.value - b.value
            return Sum(text, type, value, a.size + b.size, steps)
        case "*":
            return Sum(text, type, a.value * b.value, a.size * b.size, steps)
        case _:
            return Sum(text, type, a.value / b.value, a.size / b.size, steps)
