"""Random expressions of all types and operators, on nasty values: interpret mode, every device and NumPy agree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_expressions import Expr, expressions, samples
from random_runs import kernel_of, runners

from metaljit.dtypes import DTYPES, DType
from metaljit.testing import EXACT, difference

COUNT = 24
NAMES = {f"x_{d}": d for d in DTYPES.values()}


def check(results: list[Expr], seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    names = NAMES
    arrays = {n: samples(d, COUNT, seed + k) for k, (n, d) in enumerate(names.items())}
    with np.errstate(all="ignore"):
        expected = tuple(np.broadcast_to(r.run(arrays), COUNT) for r in results)
    made = kernel_of([(r.text, _typed(r)) for r in results], names)
    for name, run in runners(made, sanitized=sanitized, order=order).items():
        actual = run(*arrays.values())
        for r, a, e in zip(results, actual, expected, strict=True):
            found = difference(a, e, tolerance=EXACT, signed_zeros=True)
            if found is not None:
                at = next(
                    k for k in range(COUNT) if difference(a[k], e[k], tolerance=EXACT, signed_zeros=True)
                )
                used = {n: arrays[n][at] for n in names if n in r.text}
                raise AssertionError(f"on {name}: {r.text} is {a[at]!r}, not {e[at]!r}, where {used}")
    return True


def _typed(result: Expr) -> DType:
    assert result.type is not None
    return result.type


DRAWN = st.tuples(st.lists(expressions(NAMES, 3), min_size=6, max_size=6), st.integers(0, 1000))


@given(DRAWN)
def test_random_expressions(drawn: tuple[list[Expr], int]) -> None:
    check(*drawn)
