"""Random expressions of all types and operators, on nasty values: interpret mode, every device and NumPy agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_expressions import Expr, expressions, samples

import metaljit as mj
from metaljit.dtypes import DTYPES
from metaljit.testing import EXACT, difference

COUNT = 24
NAMES = {f"x_{d}": d for d in DTYPES.values()}


def kernel(results: list[Expr], names: dict[str, Any]) -> mj.Kernel:
    """A kernel that gives every expression, reading its variables from arrays."""
    parameters = ", ".join(f"{n}s: {d.name}[N]" for n, d in names.items())
    types = ", ".join(f"{r.type}[N]" for r in results)
    lines = [
        'N = dims("N")', "@kernel", f"def random({parameters}) -> ({types},):", "    i = position()",
        *(f"    {n} = {n}s[i]" for n in names), f"    return {', '.join(r.text for r in results)},",
    ]  # fmt: skip
    return mj.kernel_from_text("\n".join(lines))


def check(results: list[Expr], seed: int) -> None:
    names = NAMES
    arrays = {n: samples(d, COUNT, seed + k) for k, (n, d) in enumerate(names.items())}
    with np.errstate(all="ignore"):
        expected = tuple(np.broadcast_to(r.run(arrays), COUNT) for r in results)
    made = kernel(results, names)
    runners = {"interpret": made.interpret} | {d: made.on(d) for d in mj.available_devices()}
    for name, run in runners.items():
        actual = run(*arrays.values())
        for r, a, e in zip(results, actual, expected, strict=True):
            found = difference(a, e, tolerance=EXACT, signed_zeros=True)
            if found is not None:
                at = next(
                    k for k in range(COUNT) if difference(a[k], e[k], tolerance=EXACT, signed_zeros=True)
                )
                used = {n: arrays[n][at] for n in names if n in r.text}
                raise AssertionError(f"on {name}: {r.text} is {a[at]!r}, not {e[at]!r}, where {used}")


@given(st.lists(expressions(NAMES, 3), min_size=6, max_size=6), st.integers(0, 1000))
def test_random_expressions(results: list[Expr], seed: int) -> None:
    check(results, seed)
