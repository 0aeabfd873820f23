"""Every function of floats that is not exact, on random operands: each way to run it is as near as the table says."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_expressions import samples
from random_functions import FunctionCall, function_calls
from random_runs import kernel_of, runners

from metaljit.dtypes import BF16, F16, F32, I8, U64, DType

COUNT = 64
NAMES: dict[str, DType] = {"x": F32, "y": F32, "h": F16, "g": F16, "b": BF16, "n": I8, "u": U64}


def operands(seed: int) -> dict[str, Any]:
    """Nasty values, and for the second half ordinary ones around zero and one."""
    generator = np.random.default_rng(seed)
    found = {}
    for k, (name, type) in enumerate(NAMES.items()):
        values = samples(type, COUNT, seed + k)
        if type.is_float:
            size = generator.choice([0.5, 4.0, 40.0], COUNT // 2)
            values[COUNT // 2 :] = (generator.normal(0, 1, COUNT // 2) * size).astype(type.numpy)
        found[name] = values
    return found


def check(calls: list[FunctionCall], seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    arrays = operands(seed)
    kernel = kernel_of([(c.text, c.type) for c in calls], NAMES)
    for name, run in runners(kernel, sanitized=sanitized, order=order).items():
        for c, actual in zip(calls, run(*arrays.values()), strict=True):
            wrong = c.wrong(actual, arrays)
            if wrong.any():
                raise AssertionError(_shown(name, c, actual, arrays, int(wrong.argmax())))
    return True


def _shown(runner: str, call: FunctionCall, actual: Any, arrays: dict[str, Any], at: int) -> str:
    meaning, low, high = (v[at] for v in call.bounds(arrays))
    given = ", ".join(f"{float(o[at])!r}" for o in call.operands(arrays))
    return (
        f"on {runner}: {call.text} is {float(actual[at])!r}; of {given} in {call.type} it is {float(meaning)!r}, "
        f"and {low!r} to {high!r} are right ({call.op.ulp} ulp)"
    )


DRAWN = st.tuples(st.lists(function_calls(NAMES), min_size=12, max_size=12), st.integers(0, 1000))


@given(DRAWN)
@settings(max_examples=10)
def test_random_functions(drawn: tuple[list[FunctionCall], int]) -> None:
    check(*drawn)
