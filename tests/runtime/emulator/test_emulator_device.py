"""The emulator as a device: metaljit's own kernels in whole threadgroups, and their faults at the user's lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import Out, barrier, f32, global_index, i32, position, u8, unchecked, uniform
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


# ---- what `uniform(…)` promises ----


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def rounds(x: i32[N], out: Out[i32[N]]) -> None:
    i = global_index()
    k = 0
    while k < uniform(x[i]):
        barrier()
        k += 1
    out[i] = k


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def chosen(x: f32[N], out: Out[f32[N]]) -> None:
    i = global_index()
    total = 0.0
    for k in range(N):
        if i % 2 == k % 2:
            total += uniform(x[k])  # not all threads come here at the same k
        if uniform(x[k]) > 0:
            barrier()
            total += uniform(x[k])
    out[i] = total


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def of_types(x: f32[N], out: Out[i32[N]]) -> None:
    i = global_index()
    if uniform(x[i] > 1):
        barrier()
    if uniform(x[i]) > 5 or uniform(u8(x[i])) > 5:
        barrier()
    out[i] = 1


def test_a_promise_that_is_kept_is_no_fault() -> None:
    x = np.repeat(np.array([3, 0, 5], np.int32), 64)
    y = np.where(np.arange(70) % 3, 1, -1).astype(np.float32)
    with mj.sanitize():
        np.testing.assert_array_equal(rounds.on("emulator")(x), x)
        np.testing.assert_array_equal(chosen.on("emulator")(y), chosen.on("cpu")(y))
        assert (of_types.on("emulator")(np.full(64, np.nan, np.float32)) == 1).all()
    assert "#ifndef __EMU__\n#define mj_uniform(x) (x)\n" in rounds.msl(x)


def test_values_that_differ_are_reported_where_uniform_stands() -> None:
    x = np.full(128, 3, np.int32)
    x[70] = 4
    with mj.sanitize(), pytest.raises(mj.KernelFault) as caught:
        rounds.on("emulator")(x)
    first = caught.value.diagnostics[0]
    assert first.slug == "not-uniform"
    assert "it is 4 here and 3 in thread (64, 0, 0), by thread (70, 0, 0)" in first.message
    assert first.where.split(":")[-2] == str(line_of("while k < uniform(x[i]):"))


@pytest.mark.parametrize(
    ("value", "said"), [(1.5, "True here and False"), (0.5, "0.5 here and 0 in"), (-0.0, "")]
)
def test_values_are_compared_and_shown_as_their_type_is(value: float, said: str) -> None:
    x = np.zeros(64, np.float32)
    x[9] = value
    with mj.sanitize():
        if not said:
            assert (of_types.on("emulator")(x) == 1).all()
            return
        with pytest.raises(mj.KernelFault, match=said) as caught:
            of_types.on("emulator")(x)
    assert "not-uniform" in {d.slug for d in caught.value.diagnostics}


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.strip() == text)
