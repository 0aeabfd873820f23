"""Grid kernels in traced functions: kernels of their own, whose arrays are nodes like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj

HEAD = 'N, H, W = dims("N H W")\n'
SUMS = mj.kernel_from_text(
    HEAD
    + """
@kernel(grid="ceil_div(N, 64)", threadgroup=64)
def sums(u: f32[N], by: f32, out: Out[f32[N]], last: Out[f32[1]]):
    i = global_index()
    if i < N:
        t = 0.0
        for k in range(i + 1):
            t += u[k]
        out[i] = t * by
        if i == N - 1:
            last[0] = t
"""
)
COUNTS = mj.kernel_from_text(
    HEAD
    + """
@kernel(grid="ceil_div(N, 64)", threadgroup=64)
def counts(at: i32[N], bins: InOut[u32[W]]):
    i = global_index()
    if i < N:
        if 0 <= at[i] < W:
            atomic_add(bins, at[i], u32(1))
"""
)
TURNED = mj.kernel_from_text(
    HEAD
    + """
@kernel(grid="ceil_div(H * W, 64)", threadgroup=64)
def turned(u: f32[H, W], n: i32, out: Out[f32[W, n * H]]):
    i = global_index()
    if i < H * W:
        for k in range(n):
            out[i % W, k * H + i // W] = u[i // W, i % W]
"""
)


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def sums_of(u: Any, by: float) -> Any:
    return (np.cumsum(u, dtype=np.float64) * by).astype(np.float32)


def test_between_other_kernels_at_every_size(device: str) -> None:
    @mj.jit
    def f(x: Any, by: float) -> Any:
        first, last = SUMS(np.exp(x) * 2, by)
        again, _ = SUMS(first[::-1] + 1, 0.5)
        return again * 2, last, first

    with mj.use_device(device):
        for n in (1, 10, 130):
            x = a(n)
            again, last, first = f(x, 3.0)
            want = sums_of(np.exp(x) * 2, 3)
            np.testing.assert_allclose(first, want, rtol=1e-5)
            np.testing.assert_allclose(last, want[-1:] / 3, rtol=1e-5)
            np.testing.assert_allclose(again, sums_of(want[::-1] + 1, 0.5) * 2, rtol=1e-5)


def test_an_array_that_it_changes_is_a_copy(device: str) -> None:
    @mj.jit
    def f(at: Any, bins: Any) -> Any:
        return COUNTS(at, bins), bins + 1, COUNTS(at + 1, COUNTS(at, bins * 2))

    at = np.array([0, 2, 2, -1, 7, 3], np.int32)
    bins = np.arange(4, dtype=np.uint32)
    with mj.use_device(device):
        once, beside, twice = f(at, bins)
    want = bins + np.array([1, 0, 2, 1], np.uint32)
    np.testing.assert_array_equal(once, want)
    np.testing.assert_array_equal(beside, bins + 1)
    np.testing.assert_array_equal(twice, want + bins + np.array([1, 1, 0, 2], np.uint32))
    np.testing.assert_array_equal(bins, np.arange(4))


def test_numbers_decide_shapes() -> None:
    f = mj.jit(lambda u, n: TURNED(u, n)[:, ::2] + 1)
    g = mj.jit(lambda u: TURNED(u, 3).sum())
    u = a(3, 5)
    for n in (1, 2):
        np.testing.assert_array_equal(f(u, n), np.tile(u.T, (1, n))[:, ::2] + 1)
    np.testing.assert_allclose(g(u), 3 * u.sum(), rtol=1e-5)


def test_in_loops_and_choices(device: str) -> None:
    @mj.jit
    def f(x: Any, turns: int) -> Any:
        return mj.for_loop(turns, lambda k, v: SUMS(v, 1.0)[0], x)

    @mj.jit
    def g(x: Any) -> Any:
        return mj.cond(x[0] > 0, lambda: SUMS(x, 1.0)[0], lambda: -x)

    x = a(20)
    with mj.use_device(device):
        np.testing.assert_allclose(f(x, 3), sums_of(sums_of(sums_of(x, 1), 1), 1), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(g(abs(x)), sums_of(abs(x), 1), rtol=1e-5)
        np.testing.assert_array_equal(g(-abs(x)), abs(x))


def test_alone_and_among_arrays() -> None:
    x = a(40)
    f = mj.jit(lambda x: SUMS(x, 2.0))
    for got in (f(x), f(mj.array(x))):
        np.testing.assert_allclose(np.asarray(got[0]), sums_of(x, 2), rtol=1e-4, atol=1e-5)
    assert isinstance(f(mj.array(x))[1], mj.Array)


def test_nothing_is_launched_that_no_result_needs() -> None:
    f = mj.jit(lambda x: (SUMS(x, 1.0), x + 1)[1])
    assert str(f.explain(a(3))).startswith("<lambda>: 1 kernel")


def test_saved_and_loaded(tmp_path: Path) -> None:
    f = mj.jit(lambda x, by: SUMS(x * 2, by)[0] + 1)
    made = f.compile(mj.spec((None,), np.float32), 1.0)
    made.save(tmp_path / "sums.mje")
    x = a(33)
    np.testing.assert_array_equal(mj.load_executable(tmp_path / "sums.mje").run(x, 0.5), f(x, 0.5))
    assert made.cost(x, 0.5).kernels == 3


def test_it_is_explained() -> None:
    text = str(mj.jit(lambda x: SUMS(x, 1.0)[0] + 1).explain(a(64)))
    assert "kernel 0 over (64), a grid kernel" in text
    assert "= sums(x)" in text


def test_the_derivative_is_the_users_to_give() -> None:
    with pytest.raises(mj.TypeFault, match="'sums' has no derivative") as caught:
        mj.grad(lambda x: SUMS(x, 1.0)[0].sum())(a(3))
    assert caught.value.slug == "no-derivative"

    @mj.custom_vjp
    def sums(x: Any) -> Any:
        return SUMS(x, 1.0)[0]

    sums.defvjp(lambda x: (SUMS(x, 1.0)[0], ()), lambda kept, g: (SUMS(g[::-1], 1.0)[0][::-1],))
    np.testing.assert_array_equal(mj.grad(lambda x: sums(x).sum())(a(4)), [4, 3, 2, 1])


def test_a_number_that_is_computed_is_refused() -> None:
    with pytest.raises(mj.TypeFault) as caught:
        mj.jit(lambda x: SUMS(x, x.sum())[0])(a(3))
    assert caught.value.slug == "grid-kernel-number"


def test_shapes_that_do_not_fit_are_told() -> None:
    f = mj.jit(lambda at, bins: COUNTS(at, bins[:0]))
    with pytest.raises(mj.MetaljitError):
        mj.jit(lambda x: COUNTS(x, x))(a(3))
    np.testing.assert_array_equal(f(np.zeros(3, np.int32), np.zeros(3, np.uint32)), [])


def test_constants_that_are_equal_are_not_one() -> None:
    """1 is not 1.0 where numbers are packed, and 0.0 not -0.0."""
    kernel = mj.kernel_from_text(
        HEAD
        + """
@kernel(grid="ceil_div(N, 64)", threadgroup=64)
def scaled(u: f32[N], by: f32, n: i32, out: Out[f32[N]]):
    i = global_index()
    if i < N:
        out[i] = u[i] * by * f32(n)
"""
    )
    x = np.ones(3, np.float32)
    first, second = mj.jit(lambda x: (kernel(x, 1.0, 2), kernel(x, 2.0, 1)))(x)
    assert first.tolist() == second.tolist() == [2, 2, 2]
    plus, minus = mj.jit(lambda x: (kernel(x, 0.0, 1), kernel(x, -0.0, 1)))(x)
    assert not np.signbit(plus).any()
    assert np.signbit(minus).all()
