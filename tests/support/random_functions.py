"""Random calls of the functions that are not exact: their text, their meaning, and how far a device may be from it.

In: Hypothesis's choices, and the names there are. Out: a `FunctionCall`. The operands are exact expressions, the same
everywhere, and nothing is computed from the result: so the error that the operation table states for the function is
the one that is allowed, and none of it is multiplied by what comes before or after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_expressions import Environment, Expr, expressions

from metaljit import conversions
from metaljit.dtypes import F32, DType
from metaljit.operation_rules import Operation, Refusal, Typing, check
from metaljit.operations import ROWS

INEXACT = tuple(op for op in ROWS if op.ulp)


@dataclass(frozen=True)
class FunctionCall:
    op: Operation
    args: Sequence[Expr]
    typing: Typing

    @property
    def text(self) -> str:
        return f"{self.op.name}({', '.join(a.text for a in self.args)})"

    @property
    def type(self) -> DType:
        return self.typing.result

    def operands(self, env: Environment) -> list[Any]:
        """The operands as float32, which holds those of 16 bits: functions of these are computed in float too."""
        given = zip(self.args, self.typing.operands, strict=True)
        converted = (conversions.convert(a.run(env), a.type or F32, t) for a, t in given)
        return [np.asarray(v).astype(np.float32) for v in converted]

    def bounds(self, env: Environment) -> tuple[Any, Any, Any]:
        """The meaning in float32, and the least and the greatest result of this type that is right."""
        operands = self.operands(env)
        meaning = np.asarray(self.op.meaning(*operands))
        with np.errstate(all="ignore"):
            exact = np.clip(meaning.astype(np.float64), -LARGEST, LARGEST)
            off = (self.op.ulp + 0.5) * _ulp(exact, self.op, operands)  # the meaning is rounded: half of one
            low, high = (self._rounded(exact + way * off) for way in (-1, 1))
        low, high = (
            np.where(np.isinf(meaning) & (meaning == s), meaning, v)
            for s, v in ((-np.inf, low), (np.inf, high))
        )
        return meaning, low, high

    def _rounded(self, x: Any) -> Any:
        """Once to float32, and for 16-bit floats once more."""
        return x.astype(np.float32).astype(self.type.numpy).astype(np.float64)

    def wrong(self, actual: Any, env: Environment) -> Any:
        """Where a result is none of the right ones."""
        meaning, low, high = self.bounds(env)
        x = np.asarray(actual).astype(np.float64)
        inside = (low <= x) & (x <= high)
        return ~np.where(np.isnan(meaning), np.isnan(x), inside)


LARGEST = float(np.finfo(np.float32).max)
NORMAL = float(np.finfo(np.float32).tiny)
KNOWN = 2.0**17  # a wrong lgamma of negative denormals: tests/differential/test_found.py
_SMALLEST_STEP = 2.0**-149


def _ulp(exact: Any, op: Operation, operands: Sequence[Any]) -> Any:
    """A unit in the last place of float32, of what the table says that the error is relative to."""
    size = np.abs(exact)
    if op.name.startswith("logaddexp"):
        finite = [np.where(np.isfinite(o), np.abs(o), 0).astype(np.float64) for o in operands]
        size = np.maximum(size, np.maximum(np.maximum(*finite), 1.0))
    elif op.name == "lgamma":
        size = np.where(operands[0] < 0, np.maximum(size, 1.0), size)
        size = np.where((operands[0] < 0) & (operands[0] > -NORMAL), KNOWN, size)
    _, exponent = np.frexp(size)
    return np.maximum(np.ldexp(1.0, exponent - 24), _SMALLEST_STEP)


@st.composite
def function_calls(draw: st.DrawFn, names: Mapping[str, DType]) -> FunctionCall:
    """A function of float variables, or of one exact operation on variables of any type."""
    floats = {n: t for n, t in names.items() if t.is_float}
    op = draw(st.sampled_from(INEXACT))
    for _ in range(3):
        depth = draw(st.integers(0, 3)) // 3
        args = [draw(expressions(names if depth else floats, depth)) for _ in range(op.arity)]
        try:
            typing = check(op, [a.type or F32 for a in args])
        except Refusal:
            continue
        if typing.result.is_float:
            return FunctionCall(op, args, typing)
    name = draw(st.sampled_from(list(floats)))
    args = [Expr(name, floats[name], lambda env: env[name])] * op.arity
    return FunctionCall(op, args, check(op, [floats[name]] * op.arity))
