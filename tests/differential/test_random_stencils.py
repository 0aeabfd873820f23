"""Random stencils: interpret mode, which proves nothing and checks every index, and every device agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_stencils import stencils

import metaljit as mj
from metaljit.testing import EXACT, difference

SIZES = ((4, 5), (9, 20), (1, 3), (3, 1), (2, 2), (0, 3), (3, 0), (12, 37))


def outcome(run: Any, arrays: list[Any]) -> Any:
    try:
        return run(*arrays)
    except mj.MetaljitError as e:
        return f"{e.slug}: {e}"


def check(text: str, size: int) -> bool:
    """Whether the call was a valid one."""
    height, width = SIZES[size]
    generator = np.random.default_rng(size)
    arrays = [generator.integers(-9, 9, (height, width + extra)).astype(np.float32) for extra in (0, 2)]
    kernel = mj.kernel_from_text(text)
    expected = outcome(kernel.interpret, arrays)
    for device in mj.available_devices():
        actual = outcome(kernel.on(device), arrays)
        if isinstance(actual, str) or isinstance(expected, str):
            assert isinstance(actual, str), f"{text}\nonly interpret mode refuses it: {expected}"
            assert actual == expected, f"{text}\n{device}: {actual}\ninterpret: {expected}"
            continue
        found = difference(actual, expected, tolerance=EXACT)
        assert found is None, f"on {device} of {height} x {width}: {found}\n{text}"
    return not isinstance(expected, str)


@given(stencils(), st.integers(0, len(SIZES) - 1))
def test_random_stencils(text: str, size: int) -> None:
    check(text, size)
