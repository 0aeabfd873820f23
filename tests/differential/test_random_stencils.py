"""Random stencils: interpret mode, which proves nothing and checks every index, and every device agree."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_runs import compare
from random_stencils import stencils

from metaljit.dtypes import DTYPES

SIZES = ((4, 5), (9, 20), (1, 3), (3, 1), (2, 2), (0, 3), (3, 0), (12, 37))


def check(
    stencil: tuple[str, list[str]], size: int, *, sanitized: bool = False, order: int | None = None
) -> bool:
    """Whether the call was a valid one."""
    text, types = stencil
    height, width = SIZES[size]
    generator = np.random.default_rng(size)
    arrays = [
        generator.integers(-9 if DTYPES[t].is_signed else 0, 9, (height, width + extra)).astype(
            DTYPES[t].numpy
        )
        for t, extra in zip(types, (0, 2), strict=True)
    ]
    return compare(text, arrays, sanitized=sanitized, order=order)


DRAWN = st.tuples(stencils(), st.integers(0, len(SIZES) - 1))


@given(DRAWN)
def test_random_stencils(drawn: tuple[tuple[str, list[str]], int]) -> None:
    check(*drawn)
