"""The emulator as a device: metaljit's own kernels in whole threadgroups, and their faults at the user's lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import Out, f32, global_index, i32, position, unchecked
from metaljit.runtime import device
from metaljit.runtime.emulator.device import Emulator

N = mj.dims("N")


@mj.kernel
def shifted(x: f32[N], by: i32) -> f32[N]:
    x = unchecked(x)
    i = position()
    return x[i + by]


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def summed(x: f32[N], total: Out[f32[1]]) -> None:
    i = global_index()
    if i < N:
        total[0] = total[0] + x[i]


def test_it_is_a_device_like_others() -> None:
    found = mj.device("emulator")
    assert isinstance(found, Emulator)
    assert found is device.find("emulator")
    assert "emulator" in mj.available_devices()
    assert "Metal 2.3" in found.describe()


@pytest.mark.parametrize("n", [0, 1, 1023, 1025])
def test_whole_threadgroups_run_and_write_nothing_else(n: int) -> None:
    x = np.arange(n, dtype=np.float32)
    with mj.sanitize():
        assert shifted.on("emulator")(x, 0).tolist() == x.tolist()


def test_an_unchecked_read_outside_is_reported_at_the_users_line() -> None:
    with mj.sanitize(), pytest.raises(mj.KernelFault) as caught:
        shifted.on("emulator")(np.ones(8, np.float32), 1)
    assert caught.value.slug == "out-of-bounds"
    place = re.search(r"test_emulator_device\.py:(\d+):", str(caught.value))
    assert place is not None
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert "return x[i + by]" in lines[int(place[1]) - 1]
    assert "`x`" in str(caught.value)


def test_a_race_is_reported() -> None:
    with mj.sanitize(), pytest.raises(mj.KernelFault) as caught:
        summed.on("emulator")(np.ones(8, np.float32))
    assert caught.value.slug == "race"


def test_a_kernel_that_ran_unchecked_is_compiled_again_to_be_checked() -> None:
    x = np.ones(8, np.float32)
    shifted.on("emulator")(x, 0)
    with mj.sanitize(), pytest.raises(mj.KernelFault):
        shifted.on("emulator")(x, 1)
