"""The types of names that loops carry: interpret mode and every device agree on random programs."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_loops import program
from random_runs import compare

ARRAYS = [
    np.array([0, 1, 200, 255, 100], np.uint8),
    np.array([-5, 300, 0, 7, -32768], np.int16),
    np.array([0.5, -2, 100, 0, 1], np.float16),
    np.array([0, 7, 4000000000, 3, 9], np.uint32),
]


DRAWN = st.tuples(st.integers(0, 2**32))


def check(seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    return compare(program(Random(seed)), ARRAYS, sanitized=sanitized, order=order)


@given(DRAWN)
def test_random_loops(drawn: tuple[int]) -> None:
    check(*drawn)
