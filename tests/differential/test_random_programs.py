"""Random programs: interpret mode and every device give the same numbers, or refuse the text in the same words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_expressions import samples
from random_programs import ARRAYS, programs
from random_runs import compare

from metaljit.dtypes import DTYPES


def check(text: str, seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    """Whether the program was a valid one. A few elements are all border, many have an interior."""
    count = (5, 40, 1, 0)[seed % 4]
    arrays = [samples(DTYPES[t], count, seed + k) for k, t in enumerate(ARRAYS.values())]
    arrays[1] = np.clip(np.nan_to_num(arrays[1], nan=-0.5), -1e6, 1e6)
    return compare(text, arrays, sanitized=sanitized, order=order)


DRAWN = st.tuples(programs(), st.integers(0, 1000))


@given(DRAWN)
def test_random_programs(drawn: tuple[str, int]) -> None:
    check(*drawn)
