"""Stencils, correlations, paddings: against NumPy, in traces, with their derivatives, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import stencil as reference
from metaljit.stdlib_ops.stencil_windows import MODES

F = np.float32


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(F)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [(3,), (2, 3), (3, 1, 2)])
def test_sums_at_every_border(device: str, mode: str, size: tuple[int, ...]) -> None:
    x, w = numbers(4, 5, 6), numbers(*size, seed=1)
    got = ops.stencil(x, w, mode=mode, value=1.5)
    np.testing.assert_allclose(got, reference.stencil(x, w, mode=mode, value=1.5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reduction", ["prod", "min", "max", "argmin", "argmax"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
def test_reductions(device: str, reduction: str, stride: int, dilation: int) -> None:
    x, w = numbers(6, 7), np.ones((3, 3), F)
    w[0, 1] = 0.5
    before = [(n - 1) * dilation // 2 for n in w.shape]
    got = ops.stencil(
        x, w, reduction=reduction, stride=stride, dilation=dilation, offset=[-b for b in before], mode="edge"
    )
    want = reference.stencil(x, w, reduction=reduction, stride=stride, dilation=dilation, mode="edge")
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert got.dtype == want.dtype


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int32, np.uint16, np.int64])
def test_element_types(device: str, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 5, (5, 6)).astype(dtype)
    w = np.array([[1, 2, 1], [0, 1, 2], [1, 0, 1]], dtype)
    np.testing.assert_array_equal(ops.stencil(x, w), reference.stencil(x, w))


def test_views_and_arrays(device: str) -> None:
    x, w = numbers(12, 10), numbers(3, 3, seed=1)
    for view in (x[::-1], x[:, ::2], x.T):
        np.testing.assert_allclose(ops.correlate(view, w), ops.correlate(view.copy(), w), rtol=1e-6)
    assert isinstance(ops.correlate(mj.array(x), w), mj.Array)
    assert ops.stencil(np.zeros((0, 4), F), w).shape == (0, 4)


def test_a_convolution_is_a_correlation_turned(device: str) -> None:
    x, w = numbers(7, 8), numbers(3, 5, seed=1)
    np.testing.assert_allclose(
        ops.convolve(x, w), ops.correlate(x, w[::-1, ::-1].copy()), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("mode", ["constant", "reflect", "wrap"])
def test_derivatives_are_those_of_differences(device: str, mode: str) -> None:
    x, w = numbers(4, 5), numbers(3, 2, seed=1)
    by_x, by_w = mj.grad(lambda x, w: (ops.stencil(x, w, mode=mode) ** 2).sum(), argnums=(0, 1))(x, w)

    def loss(x: Any, w: Any) -> float:
        before = [(n - 1) // 2 for n in w.shape]
        taps = reference.windows(x, w.shape, mode, 0, before, 1, 1)
        return float((((taps * w).sum((-1, -2))) ** 2).sum())

    step = 1e-6
    for array, found, other in ((x, by_x, "x"), (w, by_w, "w")):
        wide = array.astype(np.float64)
        for at in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = wide.copy()
                moved[at] += sign * step
                ends.append(
                    loss(moved, w.astype(np.float64)) if other == "x" else loss(x.astype(np.float64), moved)
                )
            assert found[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-3, abs=2e-3)


def test_a_stencil_is_fused() -> None:
    f = mj.jit(lambda x: ops.correlate(x * 2, np.ones((3, 3), F)) + 1)
    x = numbers(6, 6)
    assert str(f.explain(x)).startswith("<lambda>: 1 kernel")
    np.testing.assert_allclose(f(x), ops.correlate(x * 2, np.ones((3, 3), F)) + 1, rtol=1e-6)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_pads_as_numpy(device: str, mode: str) -> None:
    options = {"constant_values": 3} if mode == "constant" else {}
    for x, widths in (
        (numbers(5), 3),
        (numbers(3, 4), ((1, 2), (4, 0))),
        (np.arange(6).reshape(2, 3), (2, 1)),
    ):
        want: Any = np.pad(x, widths, mode=mode, **options)  # type: ignore[call-overload]
        np.testing.assert_array_equal(ops.pad(x, widths, mode, 3), want)


def test_the_derivative_of_a_padding_adds_up_copies() -> None:
    found = mj.grad(lambda x: (ops.pad(x, 2, "wrap") * np.arange(7, dtype=F)).sum())(numbers(3))
    np.testing.assert_array_equal(found, [2 + 5, 0 + 3 + 6, 1 + 4])


X, W = numbers(5, 5), numbers(3, 3)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (mj.TypeFault, lambda: ops.stencil(X.astype(np.float64), W)),
        (mj.TypeFault, lambda: ops.stencil(X, W.astype(np.int32))),
        (mj.ShapeError, lambda: ops.stencil(X[0], W)),
        (mj.ShapeError, lambda: ops.stencil(X, np.ones((0, 3), F))),
        (mj.ShapeError, lambda: ops.stencil(X, np.ones((7, 7), F), padding="valid")),
        (mj.LaunchFault, lambda: ops.stencil(X, W, reduction="mean")),
        (mj.LaunchFault, lambda: ops.stencil(X, W, mode="mirror")),
        (mj.LaunchFault, lambda: ops.stencil(X, W, stride=0)),
        (mj.LaunchFault, lambda: ops.stencil(X, W, padding="full")),
        (mj.LaunchFault, lambda: ops.pad(X, -1)),
        (mj.LaunchFault, lambda: ops.pad(X, ((1, 1), (1, 1), (1, 1)))),
        (mj.ShapeError, lambda: ops.pad(np.zeros((0, 2), F), 1, "edge")),
    ],
)
def test_what_makes_no_sense_is_refused(error: Any, call: Any) -> None:
    with pytest.raises(error):
        call()


def test_a_planted_mistake_is_found(mutate: Any) -> None:
    mutate("stencil", "total +=", "total -=")
    x = numbers(5, 5)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(ops.laplacian(x), reference.laplacian(x), rtol=1e-5, atol=1e-5)
