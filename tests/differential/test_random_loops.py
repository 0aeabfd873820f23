"""The types of names that loops carry: interpret mode and every device agree on random programs."""

from __future__ import annotations

from random import Random

import numpy as np
from differential import outcome
from hypothesis import given
from hypothesis import strategies as st
from random_loops import program

import metaljit as mj

ARRAYS = [
    np.array([0, 1, 200, 255, 100], np.uint8),
    np.array([-5, 300, 0, 7, -32768], np.int16),
    np.array([0.5, -2, 100, 0, 1], np.float16),
    np.array([0, 7, 4000000000, 3, 9], np.uint32),
]
FAULTS = (mj.TypeFault, mj.SyntaxFault)


@given(st.integers(0, 2**32))
def test_random_loops(seed: int) -> None:
    text = program(Random(seed))
    kernel = mj.kernel_from_text(text)
    expected = outcome(kernel.interpret, ARRAYS, FAULTS)
    if isinstance(expected, str) and "not-interpretable" in expected:
        return  # a branch that the compiler decides by a typed constant
    for device in mj.available_devices():
        actual = outcome(kernel.on(device), ARRAYS, FAULTS)
        if isinstance(actual, str) or isinstance(expected, str):
            assert actual == expected, text
            continue
        for x, y in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=text)
