"""Matrix products of traced arrays: NumPy's values, types and shapes, and the same bits whether fused or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def same(function: Callable[..., Any], *args: Any, rtol: float = 2e-5) -> None:
    found, alone = mj.jit(function)(*args), mj.jit(fuse=False)(function)(*args)
    want = function(*args)
    assert np.asarray(found).tobytes() == np.asarray(alone).tobytes()
    assert found.shape == np.shape(want)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(want, np.float64), rtol=rtol, atol=rtol * 10
    )


def product(x: Any, y: Any) -> Any:
    return x @ y


SIZES = [
    (1, 1, 1), (2, 3, 5), (0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 70, 1), (64, 16, 64), (65, 17, 63), (7, 257, 19),
    (121, 40, 257), (127, 300, 33),
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: tuple[int, int, int], device: str) -> None:
    m, k, n = size
    with mj.use_device(device):
        same(product, a(m, k), a(k, n, seed=1))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 20, 30), (30, 7)),
        ((20, 30), (3, 30, 7)),
        ((2, 1, 9, 30), (3, 30, 7)),
        ((30,), (30, 7)),
        ((5, 30), (30,)),
        ((70,), (70,)),
        ((30,), (4, 30, 5)),
        ((4, 5, 30), (30,)),
    ],
)
def test_stacks_and_vectors(left: tuple[int, ...], right: tuple[int, ...], device: str) -> None:
    with mj.use_device(device):
        same(product, a(*left), a(*right, seed=1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "bool", "float16"])
def test_types(dtype: str, device: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, (20, 70)).astype(dtype), rng.integers(0, 9, (70, 18)).astype(dtype)
    with mj.use_device(device):
        same(product, x, y, rtol=2e-3 if dtype == "float16" else 0)


def test_whole_numbers_wrap() -> None:
    x = np.full((3, 4), 2**30, np.int32)
    same(product, x, x.T.copy())


def test_nan_and_infinity() -> None:
    x, y = a(20, 30), a(30, 10, seed=1)
    x[3, 4], x[5, 6], y[7, 8] = np.nan, np.inf, -np.inf
    found, want = mj.jit(product)(x, y), x @ y
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-4)


CHAINS: dict[str, Callable[..., Any]] = {
    "before": lambda x, w, b: (x * 2 + 1) @ np.maximum(w, 0),
    "transposed": lambda x, w, b: w.T @ x.T,
    "after": lambda x, w, b: np.maximum(x @ w + b, 0) * np.float32(0.5),
    "residual": lambda x, w, b: x[:, :18] - x @ w,
    "slices": lambda x, w, b: x[::2, 1:-1] @ w[1:-1][::-1],
}


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_before_and_after_is_in_the_kernel(name: str) -> None:
    args = a(50, 40), a(40, 18, seed=1), a(18, seed=2)
    assert "1 kernel\n" in str(mj.jit(CHAINS[name]).explain(*args))
    same(CHAINS[name], *args)


def test_what_is_read_elsewhere_is_stored() -> None:
    args = a(50, 40), a(40, 50, seed=1)
    same(lambda x, y: (x @ y)[::-1] + (x @ y).T, *args)
    same(lambda x, y: (x @ y) + x @ (y * 2), *args)
    same(lambda x, y: (x @ y @ x).sum(axis=0) + (x @ y).max(), *args, rtol=1e-4)


def test_names_of_a_product() -> None:
    args = a(5, 4), a(4, 3, seed=1)
    same(lambda x, y: np.matmul(x, y) + np.dot(x, y), *args)
    constant = a(5, 5, seed=3)
    same(lambda x, y: constant @ x @ y, *args)
    same(lambda x, y: np.dot(np.float32(2), x) @ y, *args)
    same(lambda rows, sums: rows @ sums, *args)


def test_numbers_and_unequal_extents_are_told() -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(lambda x: x @ 3)(a(3, 4))
    assert caught.value.slug == "product-of-numbers"
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(lambda x: x[:, :1] @ x[:2])(a(3, 4))
    assert caught.value.slug == "product-shapes"
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(lambda x: np.dot(x, x))(a(3, 4, 4))
    assert caught.value.slug == "product-rank"
    with pytest.raises(mj.ShapeError):
        mj.jit(product)(a(3, 4), a(5, 6))


def test_nothing_outside_is_read() -> None:
    x, y = a(67, 21), a(21, 70, seed=1)
    with mj.use_device("emulator"), mj.sanitize():
        found = mj.jit(lambda x, y: x @ y + 1)(x, y)
    np.testing.assert_allclose(found, x @ y + 1, rtol=1e-4, atol=1e-4)


def test_derivatives() -> None:
    x, y = a(2, 5, 4), a(4, 3, seed=1)
    by_x, by_y = mj.grad(lambda x, y: ((x @ y) ** 2).sum(), argnums=(0, 1))(x, y)
    by = 2 * (x @ y)
    np.testing.assert_allclose(by_x, by @ y.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_y, np.einsum("bik,bij->kj", x, by), rtol=1e-4, atol=1e-4)


def gated(x: Any, w: Any, c: Any) -> Any:
    keep, new, out = x @ w[0], x @ w[1], x @ w[2]
    c = np.tanh(keep) * c + new
    return np.tanh(c) * out, c, keep


def test_products_of_one_left_side_are_one_kernel(device: str) -> None:
    x, w, c = a(67, 33), a(3, 33, 90, seed=1), a(67, 90, seed=2)
    function = mj.jit(gated)
    with mj.use_device(device):
        assert str(function.explain(x, w, c)).startswith("gated: 1 kernel\n")
        found, alone = function(x, w, c), mj.jit(fuse=False)(gated)(x, w, c)
    for f, one, want in zip(found, alone, gated(x, w, c), strict=True):
        assert f.tobytes() == one.tobytes()
        np.testing.assert_allclose(f, want, rtol=1e-4, atol=1e-4)


def test_more_products_than_a_kernel_holds() -> None:
    x, w = a(7, 33), a(6, 33, 9, seed=1)
    found = mj.jit(lambda x, w: sum(x @ w[k] for k in range(6)))(x, w)
    np.testing.assert_allclose(found, sum(x @ v for v in w), rtol=1e-4, atol=1e-3)
