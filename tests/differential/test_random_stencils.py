"""Random stencils: interpret mode, which proves nothing and checks every index, and every device agree."""

from __future__ import annotations

import numpy as np
from differential import check_text
from hypothesis import given
from hypothesis import strategies as st
from random_stencils import stencils

import metaljit as mj

SIZES = ((4, 5), (9, 20), (1, 3), (3, 1), (2, 2), (0, 3), (3, 0), (12, 37))


def check(text: str, size: int) -> bool:
    """Whether the call was a valid one."""
    height, width = SIZES[size]
    generator = np.random.default_rng(size)
    arrays = [generator.integers(-9, 9, (height, width + extra)).astype(np.float32) for extra in (0, 2)]
    return check_text(text, arrays, (mj.MetaljitError,), f"{height} x {width}")


@given(stencils(), st.integers(0, len(SIZES) - 1))
def test_random_stencils(text: str, size: int) -> None:
    check(text, size)
