"""Filters, histograms and edges of images, against NumPy; edges of a photograph against scikit-image where it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import image as reference

F = np.float32
CAMERA = Path(__file__).parents[2] / "examples" / "camera.png"


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(F)


@pytest.mark.parametrize("mode", ["reflect", "edge", "constant", "wrap"])
def test_windows_in_order(device: str, mode: str) -> None:
    x = numbers(7, 9)
    for size in ((3, 3), (2, 5)):
        for op, kind in (
            (ops.median_filter, "median"),
            (ops.maximum_filter, "max"),
            (ops.minimum_filter, "min"),
        ):
            want = reference.ranked(x, size, kind, mode, 0.5)
            np.testing.assert_array_equal(op(x, size, mode=mode, value=0.5), want)
        got = ops.uniform_filter(x, size, mode=mode, value=0.5)
        np.testing.assert_allclose(got, reference.ranked(x, size, "mean", mode, 0.5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16])
def test_element_types(device: str, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 99, (6, 8)).astype(dtype)
    for op, kind in ((ops.median_filter, "median"), (ops.maximum_filter, "max")):
        np.testing.assert_array_equal(op(x, 3), reference.ranked(x, (3, 3), kind))


@pytest.mark.parametrize("size", [4, 5, 7])
def test_larger_medians(size: int) -> None:
    x = numbers(12, 13)
    np.testing.assert_array_equal(ops.median_filter(x, size), reference.ranked(x, (size, size), "median"))


def test_nothing_is_lost_in_a_median_of_equals_and_infinities(device: str) -> None:
    x = np.random.default_rng(0).choice(np.array([0, 1, np.inf, -np.inf], F), (9, 9))
    np.testing.assert_array_equal(ops.median_filter(x, 5), reference.ranked(x, (5, 5), "median"))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_blurs_and_derivatives(device: str, mode: str) -> None:
    x = numbers(8, 9)
    for sigma in (0.7, 1.5):
        want = reference.gaussian(x, sigma, 3, mode)
        np.testing.assert_allclose(
            ops.gaussian_blur(x, sigma, truncate=3, mode=mode), want, rtol=1e-5, atol=1e-6
        )
    for op, smooth in ((ops.sobel, (1, 2, 1)), (ops.prewitt, (1, 1, 1))):
        for axis in (0, 1):
            want = reference.derivative(x, axis, smooth, mode)
            np.testing.assert_allclose(op(x, axis, mode=mode), want, rtol=1e-4, atol=1e-5)


def test_a_blur_has_the_derivative_of_a_blur() -> None:
    x, g = numbers(6, 7), numbers(6, 7, seed=1)
    _, back = mj.vjp(lambda x: ops.gaussian_blur(x, 1.0, mode="wrap"), x)
    np.testing.assert_allclose(back(g)[0], ops.gaussian_blur(g, 1.0, mode="wrap"), rtol=1e-4, atol=1e-5)


def test_histograms(device: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (40, 50)).astype(np.uint8)
    np.testing.assert_array_equal(ops.histogram(x), np.bincount(x.reshape(-1), minlength=256))
    values = rng.random(999).astype(F)
    got = ops.histogram(values, 8, limits=(0.25, 0.75))
    inside = values[(values >= 0.25) & (values <= 0.75)]
    np.testing.assert_array_equal(got, np.histogram(inside, 8, (0.25, 0.75))[0])


def blobs(height: int, width: int, seed: int = 0) -> Any:
    noise = np.random.default_rng(seed).random((height, width)).astype(F)
    return reference.gaussian(noise, 1.5, 3, "reflect")


@pytest.mark.parametrize(("height", "width"), [(20, 31), (33, 64), (9, 70)])
def test_edges(device: str, height: int, width: int) -> None:
    x = blobs(height, width)
    got = ops.canny(x, sigma=0, low=0.15, high=0.35)
    want = reference.canny(x, 0.15, 0.35)
    assert want.any()
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, want)


def test_a_weak_line_is_followed_to_its_end(device: str) -> None:
    """A spiral of weak edges, strong at one end alone."""
    x = np.zeros((40, 40), F)
    for k in range(4, 36, 8):
        x[k : k + 4, 2:38] = 0.5
        x[k : k + 4, 34:38] = 0.5
    x[4:8, 2:6] = 5
    got = ops.canny(x, sigma=0, low=1, high=10)
    np.testing.assert_array_equal(got, reference.canny(x, 1, 10))


def test_a_batch_of_images_is_each_of_them() -> None:
    x = np.stack([blobs(12, 20, seed) for seed in range(3)])
    got = ops.canny(x, sigma=0.5, low=0.1, high=0.2)
    for one, found in zip(x, got, strict=True):
        np.testing.assert_array_equal(ops.canny(one, sigma=0.5, low=0.1, high=0.2), found)


def test_edges_of_a_photograph_are_scikit_images() -> None:
    """But for pixels where two numbers that are compared differ by roundings: some in a million."""
    feature = pytest.importorskip("skimage.feature")
    image = pytest.importorskip("PIL.Image")
    x = np.asarray(image.open(CAMERA).convert("L"), F) / F(255)
    for sigma, low, high in ((1.0, 0.1, 0.2), (2.0, 0.05, 0.1)):
        got = ops.canny(x, sigma=sigma, low=low, high=high)
        want = feature.canny(x, sigma=sigma, low_threshold=low, high_threshold=high)
        assert (got != want).mean() < 1e-4
        assert want.mean() > 0.01


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (mj.TypeFault, lambda: ops.median_filter(np.zeros((3, 3)), 3)),
        (mj.TypeFault, lambda: ops.canny(np.zeros((3, 3), np.int32))),
        (mj.ShapeError, lambda: ops.canny(np.zeros(3, F))),
        (mj.LaunchFault, lambda: ops.canny(np.zeros((3, 3), F), low=2, high=1)),
        (mj.LaunchFault, lambda: ops.median_filter(np.zeros((3, 3), F), 0)),
        (mj.LaunchFault, lambda: ops.gaussian_blur(np.zeros((3, 3), F), -1)),
        (mj.LaunchFault, lambda: ops.histogram(np.zeros(3, F))),
        (mj.LaunchFault, lambda: ops.sobel(np.zeros((3, 3), F), 2)),
    ],
)
def test_what_makes_no_sense_is_refused(error: Any, call: Any) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(("old", "new"), [("share + after", "after + share"), ("m >= low", "m >= high")])
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    x = blobs(20, 31)
    mutate("canny", old, new)
    assert (ops.canny(x, sigma=0, low=0.15, high=0.35) != reference.canny(x, 0.15, 0.35)).any()
