"""Random programs: interpret mode and every device give the same numbers, or refuse the text in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from random_expressions import samples
from random_programs import ARRAYS, programs

import metaljit as mj
from metaljit.dtypes import DTYPES
from metaljit.testing import EXACT, difference


def outcome(run: Any, arrays: list[Any]) -> Any:
    try:
        return run(*arrays)
    except (mj.TypeFault, mj.SyntaxFault) as e:
        return f"{e.slug}: {e}"


def check(text: str, seed: int) -> bool:
    """Whether the program was a valid one. A few elements are all border, many have an interior."""
    count = (5, 40, 1, 0)[seed % 4]
    arrays = [samples(DTYPES[t], count, seed + k) for k, t in enumerate(ARRAYS.values())]
    arrays[1] = np.clip(np.nan_to_num(arrays[1], nan=-0.5), -1e6, 1e6)
    kernel = mj.kernel_from_text(text)
    expected = outcome(kernel.interpret, arrays)
    for device in mj.available_devices():
        actual = outcome(kernel.on(device), arrays)
        if isinstance(actual, str) or isinstance(expected, str):
            assert isinstance(actual, str), f"{text}\nonly interpret mode refuses it: {expected}"
            assert actual == expected, f"{text}\n{device}: {actual}\ninterpret: {expected}"
            continue
        found = difference(actual, expected, tolerance=EXACT)
        assert found is None, f"on {device} {found}\n{text}\n{arrays}"
    return not isinstance(expected, str)


@given(programs(), st.integers(0, 1000))
def test_random_programs(text: str, seed: int) -> None:
    check(text, seed)
