"""Kernels on a real Metal device, through the public interface."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import bool_, border, f32, i32, isnan, position, require, sqrt

H, W, N = mj.dims("H W N")
T: Any = mj.dtypes("number")
F = np.float32


@mj.kernel
def laplacian(u: f32[H, W]) -> f32[H, W]:
    u = border(u, "reflect")
    y, x = position()
    return u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4 * u[y, x]


@mj.kernel
def twice(a: T[N]) -> T[N]:
    i = position()
    return a[i] + a[i]


@mj.kernel
def stepped(a: f32[N], factor: f32, offset: i32) -> f32[N]:
    require(factor < 100.0, "a factor below a hundred")
    return a[position()] * factor + offset


@mj.kernel
def floored(a: i32[N], b: i32[N]) -> tuple[i32[N], i32[N]]:
    i = position()
    return a[i] // b[i], a[i] % b[i]


@mj.kernel
def turned(a: bool_[N]) -> bool_[N]:
    return not a[position()]


@mj.kernel
def without_nan(a: f32[N]) -> f32[N]:
    v = a[position()]
    return 0.0 if isnan(v) else v


@mj.kernel
def rooted(a: f32[N]) -> f32[N]:
    v = a[position()]
    assert v >= 0.0, "no root of a negative number"
    return sqrt(v)


@mj.kernel
def total(a: f32[N]) -> f32:
    return sum(a[k] for k in range(N))


def expected_laplacian(u: Any) -> Any:
    p = np.pad(u, 1, "reflect")
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u


@pytest.mark.parametrize("shape", [(3, 4), (31, 33), (64, 1024), (500, 701)])
def test_laplacian(shape: tuple[int, int]) -> None:
    u = np.random.default_rng(1).random(shape, F)
    result = laplacian(u)
    assert type(result) is np.ndarray
    np.testing.assert_allclose(result, expected_laplacian(u), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1024, 1025, 100_003])
def test_the_tail_of_the_grid_writes_nothing(n: int) -> None:
    a = np.arange(n, dtype=np.int32)
    np.testing.assert_array_equal(twice(a), 2 * a)


@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", ml_dtypes.bfloat16]
)
def test_every_element_type(dtype: Any) -> None:
    a = np.arange(100).astype(dtype)
    try:
        result = twice(a)
    except mj.DeviceFault as e:
        if e.slug == "metal-no-64-bit" and a.dtype.itemsize == 8:
            pytest.skip("a paravirtual device: no 64-bit buffers")
        raise
    assert result.dtype == a.dtype
    np.testing.assert_array_equal(result.astype(np.float64), (a + a).astype(np.float64))


def test_scalars_and_requirements() -> None:
    a = np.arange(9, dtype=F)
    for k in range(9):
        np.testing.assert_array_equal(stepped(a, k / 2, k), a * F(k / 2) + k)
    with pytest.raises(mj.LaunchFault, match="below a hundred"):
        stepped(a, 100.0, 0)


def test_integer_division_is_numpys() -> None:
    a = np.array([7, -7, 7, -7, 0, -(2**31), 5], np.int32)
    b = np.array([3, 3, -3, -3, 5, 2, 1], np.int32)
    quotient, rest = floored(a, b)
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(rest, a % b)


def test_bools() -> None:
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert turned(odd).tolist() == [True, False, False, False]


def test_nan_is_seen_although_metalcompute_forces_fast_math() -> None:
    a = np.array([1, np.nan, -np.nan, np.inf, -0.0], F)
    result = without_nan(a)
    assert result.tolist() == [1, 0, 0, np.inf, 0]


def test_a_failed_assert_comes_back() -> None:
    a = np.ones(5000, F)
    np.testing.assert_allclose(rooted(a), 1)
    a[4321] = -1
    with pytest.raises(mj.KernelAssertion, match="no root of a negative number") as caught:
        rooted(a)
    assert "4321" in str(caught.value)
    assert os.path.basename(__file__) in str(caught.value)


def test_no_elements_and_no_axes() -> None:
    assert twice(np.zeros(0, F)).shape == (0,)
    result = total(np.ones(1000, F))
    assert result.shape == ()
    assert result == 1000
    assert total(np.zeros(0, F)) == 0


def test_layouts() -> None:
    u = np.random.default_rng(2).random((40, 60), F)
    for view in (u.T, u[::2, ::3], u[::-1], np.broadcast_to(u[0], (5, 60))):
        np.testing.assert_allclose(laplacian(view), expected_laplacian(view), rtol=1e-5, atol=1e-5)
    out = np.zeros((60, 40), F).T
    assert laplacian(u, out=out) is out
    np.testing.assert_allclose(out, expected_laplacian(u), rtol=1e-5, atol=1e-5)


def test_device_arrays_pass_from_kernel_to_kernel() -> None:
    u = np.random.default_rng(3).random((64, 65), F)
    array = mj.asarray(u, device="metal")
    result = laplacian(laplacian(array))
    assert isinstance(result, mj.Array)
    expected = expected_laplacian(expected_laplacian(u))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert np.shares_memory(result.numpy(), np.asarray(result))


def test_inputs_may_change_after_the_call() -> None:
    a = np.ones(10**6, F)
    results = []
    for k in range(10):
        a[:] = k
        results.append(twice(a))
        a[:] = -1
    gc.collect()
    assert all((r == 2 * k).all() for k, r in enumerate(results))


def test_threads() -> None:
    wrong: list[int] = []

    def call(k: int) -> None:
        for _ in range(20):
            if not (twice(np.full(777, k, np.int32)) == 2 * k).all():
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_launches() -> None:
    a = mj.asarray(np.zeros(16, F), device="metal")
    for _ in range(2000):
        a = stepped(a, 1.0, 1)
    assert (a.numpy() == 2000).all()


@pytest.mark.parametrize("kernel", [laplacian, rooted])
def test_metal_and_cpu_agree(kernel: Any) -> None:
    shape = (100, 130) if kernel is laplacian else (13_000,)
    a = np.random.default_rng(4).random(shape, F)
    np.testing.assert_allclose(kernel(a), kernel.on("cpu")(a), rtol=1e-5, atol=1e-5)


def test_devices_do_not_mix() -> None:
    a = mj.asarray(np.ones(3, F), device="cpu")
    with pytest.raises(mj.LaunchFault, match="memory of device 'cpu'"):
        twice(a)


def test_a_forked_child_is_told_to_spawn() -> None:
    twice(np.ones(3, F))
    child = os.fork()
    if child == 0:
        try:
            twice(np.ones(3, F))
        except mj.DeviceFault as e:
            os._exit(7 if e.slug == "metal-after-fork" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.skipif(sys.platform != "darwin", reason="the usual device elsewhere is the cpu")
def test_metal_is_the_usual_device() -> None:
    script = "import metaljit as mj; from metaljit.runtime.device import current; print(current().name)"
    environment = {k: v for k, v in os.environ.items() if k != "METALJIT_DEVICE"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "metal"
