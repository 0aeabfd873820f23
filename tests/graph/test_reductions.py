"""Reductions of traced arrays over any axes: NumPy's values, and the same bits whether fused or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj

Function = Callable[..., Any]


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def same(function: Function, *args: Any, rtol: float = 2e-5) -> None:
    """Fused and not, a function of arrays gives NumPy's result."""
    found, alone = mj.jit(function)(*args), mj.jit(fuse=False)(function)(*args)
    wanted = function(*args)
    many = isinstance(wanted, tuple)
    for got, step, want in zip(*((v if many else (v,)) for v in (found, alone, wanted)), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(step).tobytes()
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=rtol * 4)


def everything(x: Any, axis: Any) -> Any:
    small = x * np.float32(0.03) + 1
    return (
        x.sum(axis=axis),
        small.prod(axis=axis),
        x.min(axis=axis),
        x.max(axis=axis),
        (x > 1.9).any(axis=axis),
        (x > -1.9).all(axis=axis),
    )


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((65, 7), 0),
        ((7, 130), 1),
        ((3, 64, 5), 1),
        ((9, 63), None),
        ((2, 70, 3, 70), (0, 2, 3)),
        ((2, 70, 3, 5), (1, 3)),
        ((101, 1), 0),
    ],
)
def test_every_reduction_over_axes(shape: tuple[int, ...], axis: Any, device: str) -> None:
    with mj.use_device(device):
        same(lambda x: everything(x, axis), a(*shape))


@pytest.mark.parametrize("shape", [(0, 5), (1, 5), (8, 1), (63, 64), (513, 257), (1021, 3)])
def test_sizes_of_one_function(shape: tuple[int, int]) -> None:
    same(lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(), (x > 1).any(axis=0)), a(*shape))


@pytest.mark.parametrize("shape", [(40_000,), (3, 33_000), (1025, 33), (9, 700, 5)])
def test_what_is_reduced_in_two_passes(shape: tuple[int, ...], device: str) -> None:
    with mj.use_device(device):
        axis = 1 if len(shape) == 3 else 0 if shape[-1] < 100 else -1
        same(lambda x: (x.sum(axis=axis), x.max(axis=axis), (x * x).sum(axis=axis) / 2), a(*shape))


def test_two_passes_say_so() -> None:
    text = str(mj.jit(lambda x: x.sum()).explain(a(40_000)))
    assert "a threadgroup to 16384 columns of a row, 1 reduction, the first of two passes" in text
    text = str(mj.jit(lambda x: x.sum(axis=0)).explain(a(600, 9)))
    assert "a thread to 256 rows of a column" in text


def test_a_sum_in_pieces_does_not_depend_on_the_number_of_threads() -> None:
    x = a(100_000)
    pieces = [mj.jit(lambda x: x.sum())(x[k : k + 16384]) for k in range(0, len(x), 16384)]
    assert mj.jit(lambda x: x.sum())(x) == mj.jit(lambda x: x.sum())(np.array(pieces, np.float32))


def test_columns_with_what_is_before_and_after_are_one_kernel() -> None:
    f = mj.jit(lambda x, y: (x * y).sum(axis=0) * 2 + x.max(axis=0))
    x, y = a(90, 7), a(90, 7, seed=1)
    assert "1 kernel\n" in str(f.explain(x, y))
    same(lambda x, y: (x * y).sum(axis=0) * 2 + x.max(axis=0), x, y)


def test_reductions_of_the_same_array_are_one_kernel() -> None:
    for f in (lambda x: (x.sum(axis=0), x.max(axis=0)), lambda x: (x.sum(axis=1), x.max(axis=1))):
        assert "1 kernel\n" in str(mj.jit(f).explain(a(90, 80)))


def test_columns_that_are_read_elsewhere() -> None:
    same(lambda x: (x - x.mean(axis=0)) / x.std(axis=0), a(90, 7))
    same(lambda x: x.sum(axis=0)[::-2] + x.sum(axis=1)[:4], a(70, 7))
    same(lambda x: (x.sum(axis=0) * x.sum(axis=0).max()).sum(), a(70, 130))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_nan_and_infinity(axis: int | None, device: str) -> None:
    x = a(70, 80)
    x[0, 7], x[1, 8], x[2, 9], x[3, 8] = np.nan, np.inf, -np.inf, -np.inf
    with mj.use_device(device):
        found = mj.jit(lambda x: (x.max(axis), x.min(axis), x.sum(axis)))(x)
    with np.errstate(invalid="ignore"):  # a column has both infinities
        wanted = x.max(axis), x.min(axis), x.sum(axis)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "uint32", "int64", "bool"])
def test_types(dtype: str, device: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (90, 71)).astype(dtype)
    with mj.use_device(device):
        top, total, other, some = mj.jit(
            lambda x: (x.max(axis=0), x.sum(axis=0), x.sum(axis=1), x.any(axis=1))
        )(x)
    assert top.dtype == x.dtype
    np.testing.assert_array_equal(top, x.max(0))
    np.testing.assert_array_equal(total, x.sum(0, dtype=np.int64))
    np.testing.assert_array_equal(other, x.sum(1, dtype=np.int64))
    np.testing.assert_array_equal(some, x.any(1))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_the_place_of_the_least_and_the_greatest(axis: int | None, device: str) -> None:
    x = np.random.default_rng(0).integers(-5, 5, (70, 66)).astype(np.float32)
    nan = x.copy()
    nan[3, 4], nan[3, 9], nan[8, 4], nan[5] = np.nan, np.nan, np.nan, np.inf
    f = mj.jit(lambda x: (x.argmax(axis), np.argmin(x, axis=axis)))
    with mj.use_device(device):
        for given in (x, nan):
            for got, want in zip(f(given), (given.argmax(axis), given.argmin(axis)), strict=True):
                assert np.asarray(got).dtype == np.int32
                np.testing.assert_array_equal(got, want)


def test_the_place_with_axes_kept() -> None:
    x = a(5, 6)
    assert mj.jit(lambda x: x.argmax(1, keepdims=True))(x).shape == (5, 1)
    assert mj.jit(lambda x: x.argmin(keepdims=True))(x).shape == (1, 1)


def test_an_empty_axis_has_no_least_place() -> None:
    with pytest.raises(mj.MetaljitError):
        mj.jit(lambda x: x[:0].argmin())(a(5))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_nothing_outside_is_read(axis: int | None) -> None:
    x = a(600, 40)
    with mj.use_device("emulator"), mj.sanitize():
        got = mj.jit(lambda x: (x.sum(axis), x.prod(axis), x.argmax(axis)))(x)
    np.testing.assert_allclose(got[0], x.sum(axis), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_any_name_will_do_for_an_array(axis: int) -> None:
    same(
        lambda column, lane, k, columns: ((column + lane) * k - columns).sum(axis=axis),
        *(a(70, 70, seed=s) for s in range(4)), rtol=1e-4,
    )  # fmt: skip


def test_derivatives_of_a_sum_in_two_passes() -> None:
    x = a(40_000)
    np.testing.assert_allclose(mj.grad(lambda x: (x * x).sum())(x), 2 * x, rtol=1e-6)
    np.testing.assert_array_equal(mj.grad(lambda x: x.max())(x), x == x.max())
    y = a(600, 5)
    np.testing.assert_allclose(
        mj.grad(lambda y: (y.sum(axis=0) ** 2).sum())(y),
        np.broadcast_to(2 * y.sum(0), y.shape),
        rtol=1e-3,
        atol=1e-3,
    )
