"""ops.layer_norm, rms_norm, batch_norm and local_response_norm against NumPy in float64, and against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import LAYOUTS, Array, assert_same, laid_out

import metaljit as mj
from metaljit.stdlib_ops.reference import norms as reference

from .test_losses import differences, scores

F = np.float32


def close(got: Any, want: Array, tolerance: float = 2e-5) -> None:
    assert np.asarray(got).shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=10 * tolerance, atol=tolerance)


# ---- over axes ----

AXES: list[tuple[tuple[int, ...], Any]] = [
    ((4, 7), -1),
    ((3, 200), (1,)),
    ((2, 3, 4), (1, 2)),
    ((2, 3, 4), (0, 2)),
    ((5,), 0),
    ((70, 3), 0),
]


@pytest.mark.parametrize(("shape", "axes"), AXES)
def test_layer_norm_and_its_derivatives(device: str, shape: tuple[int, ...], axes: Any) -> None:
    at = (axes % len(shape),) if isinstance(axes, int) else axes
    x, g = scores(*shape), scores(*shape, seed=1)
    weight, bias = (scores(*(shape[k] for k in at), seed=s) for s in (2, 3))

    def both(x: Any, weight: Any, bias: Any, g: Any) -> Any:
        value, back = mj.vjp(lambda *args: mj.ops.layer_norm(*args, axes=axes), x, weight, bias)
        return value, back(g)

    value, slopes = mj.jit(both)(x, weight, bias, g)
    close(value, reference.layer_norm(x, weight, bias, axes=at))
    close(mj.ops.layer_norm(x, weight, bias, axes=axes), np.asarray(value), 1e-6)
    for k, slope in enumerate(slopes):

        def moved(value: Array, k: int = k) -> Array:
            args = [x, weight, bias]
            args[k] = value
            return g * reference.layer_norm(*args, axes=at)

        close(slope, differences(moved, (x, weight, bias)[k]), 1e-4)


@pytest.mark.parametrize(("shape", "axes"), [((4, 7), -1), ((2, 3, 90), (2,))])
def test_rms_norm_and_its_derivative(device: str, shape: tuple[int, ...], axes: Any) -> None:
    at = (axes % len(shape),) if isinstance(axes, int) else axes
    x, g, weight = scores(*shape), scores(*shape, seed=1), scores(shape[-1], seed=2)
    close(mj.ops.rms_norm(x, weight, axes=axes), reference.rms_norm(x, weight, axes=at, eps=2.0**-23))
    slope = mj.vjp(lambda x: mj.ops.rms_norm(x, weight, axes=axes, eps=0.1), x)[1](g)[0]
    close(slope, differences(lambda x: g * reference.rms_norm(x, weight, axes=at, eps=0.1), x), 1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(layout: str) -> None:
    x = scores(5, 7)
    assert_same(mj.ops.layer_norm(laid_out(x, layout)), np.asarray(mj.ops.layer_norm(x)))


def test_a_large_mean_costs_no_digits_and_no_variance_gives_the_bias(device: str) -> None:
    x = (1e6 + np.arange(64).reshape(2, 32)).astype(F)
    close(mj.ops.layer_norm(x), reference.layer_norm(x, axes=(1,)), 1e-6)
    flat = np.full((2, 3), 1e4, F)
    assert_same(mj.ops.layer_norm(flat, np.ones(3, F), np.full(3, 7, F)), np.full((2, 3), 7, F))


def test_16_bit_floats_nan_and_nothing(device: str) -> None:
    x = np.array([[6e4, -6e4, 0], [np.nan, 1, 2]], np.float16)
    got = mj.ops.layer_norm(x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got[0].astype(F), [1.2247, -1.2247, 0], atol=1e-3)
    assert np.isnan(got[1]).all()
    np.testing.assert_allclose(mj.ops.rms_norm(x[:1]).astype(F), [[1.2247, -1.2247, 0]], atol=1e-3)
    for empty in (np.zeros((0, 3), F), np.zeros((3, 0), F)):
        assert_same(mj.ops.layer_norm(empty), empty)
    assert isinstance(mj.ops.rms_norm(mj.asarray(scores(2, 3))), mj.Array)


def test_a_long_row_is_one_kernel() -> None:
    x, w = scores(4, 300), scores(300)
    assert "1 kernel\n" in str(mj.jit(lambda x, w: mj.ops.layer_norm(x, w, w)).explain(x, w))
    by_x = mj.jit(lambda x, w: mj.vjp(lambda x: mj.ops.layer_norm(x, w, w), x)[1](x)[0])
    assert "1 kernel\n" in str(by_x.explain(x, w))


# ---- over a batch ----


@pytest.mark.parametrize(("shape", "axis"), [((6, 3), 1), ((2, 3, 4, 5), 1), ((2, 4, 3), -1)])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_and_its_derivatives(
    device: str, shape: tuple[int, ...], axis: int, training: bool
) -> None:
    x, g = scores(*shape), scores(*shape, seed=1)
    mean, weight, bias = (scores(shape[axis], seed=s) for s in (2, 3, 4))
    variance = np.abs(scores(shape[axis], seed=5)) + F(0.5)
    options: dict[str, Any] = {"training": training, "momentum": 0.3, "axis": axis}

    def op(x: Any, weight: Any, bias: Any) -> Any:
        found = mj.ops.batch_norm(x, mean, variance, weight, bias, **options)
        return found if training else (found,)

    def both(x: Any, weight: Any, bias: Any, g: Any) -> Any:
        value, back = mj.vjp(op, x, weight, bias)
        return value, back((g, *value[1:]))  # what comes by the running statistics stays out

    value, slopes = mj.jit(both)(x, weight, bias, g)
    want = reference.batch_norm(x, mean, variance, weight, bias, **options)
    for a, b in zip(value, want, strict=False):
        close(a, b)
    for k, slope in enumerate(slopes):

        def moved(value: Array, k: int = k) -> Array:
            args = [x, mean, variance, weight, bias]
            args[(0, 3, 4)[k]] = value
            return g * reference.batch_norm(*args, **options)[0]

        close(slope, differences(moved, (x, weight, bias)[k]), 2e-4)


def test_variables_follow_the_batches(device: str) -> None:
    """MPSGraph's example: momentum 0.9 of the old, variances of all elements."""
    mean, variance = mj.Variable(np.zeros(1, F)), mj.Variable(np.ones(1, F))
    options: dict[str, Any] = {"eps": 1e-3, "unbiased": False}
    run = mj.jit(lambda x: mj.ops.batch_norm(x, mean, variance, training=True, **options))
    steps: list[Any] = [run, lambda x: mj.ops.batch_norm(x, mean, variance, training=True, **options)]
    for step in steps:
        mean.assign(np.zeros(1, F))
        variance.assign(np.ones(1, F))
        first = step(np.array([[1], [3], [5], [7]], F))
        close(first, np.array([[-1.341507], [-0.447169], [0.447169], [1.341507]]), 1e-6)
        close(mean.value, np.array([0.4]), 1e-6)
        close(variance.value, np.array([1.4]), 1e-6)
        second = step(np.array([[2], [2], [4], [4]], F))
        close(second, np.array([[-0.9995], [-0.9995], [0.9995], [0.9995]]), 1e-5)
        close(mean.value, np.array([0.66]), 1e-6)
        close(variance.value, np.array([1.36]), 1e-6)
    x = np.array([[1], [3]], F)
    got = mj.ops.batch_norm(x, mean, variance, eps=1e-3)
    assert type(got) is np.ndarray
    close(got, np.array([[0.29144], [2.005796]]), 1e-5)
    close(mean.value, np.array([0.66]), 1e-6)


def test_a_derivative_leaves_one_update(device: str) -> None:
    mean, variance = mj.Variable(np.zeros(3, F)), mj.Variable(np.ones(3, F))
    x, w = scores(6, 3), np.ones(3, F)

    @mj.jit
    def slope(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return (mj.ops.batch_norm(x, mean, variance, w, training=True) ** 2).sum()

        return mj.grad(loss)(w)

    close(slope(w, x), np.full(3, 12), 1e-4)
    close(mean.value, 0.1 * x.astype(np.float64).mean(axis=0), 1e-6)
    close(mj.ops.batch_norm(x, training=True), reference.batch_norm(x, w, w, training=True)[0])


# ---- over neighbouring channels ----


@pytest.mark.parametrize(("shape", "size", "axis"), [((2, 7, 3), 5, 1), ((3, 4), 2, 1), ((6, 2), 9, 0)])
def test_local_response_norm_and_its_derivative(
    device: str, shape: tuple[int, ...], size: int, axis: int
) -> None:
    x, g = scores(*shape), scores(*shape, seed=1)
    numbers = {"alpha": 0.5, "beta": 0.6, "k": 2.0}
    value, back = mj.vjp(lambda x: mj.ops.local_response_norm(x, size, axis=axis, **numbers), x)
    close(value, reference.local_response_norm(x, size, axis=axis, **numbers))
    want = differences(lambda x: g * reference.local_response_norm(x, size, axis=axis, **numbers), x)
    close(back(g)[0], want, 1e-4)


# ---- refusals and mistakes ----

X, C = np.ones((4, 3), F), np.ones(3, F)


@pytest.mark.parametrize(
    ("op", "args", "options", "slug", "words"),
    [
        ("layer_norm", (np.ones((4, 3)),), {}, "no-f64", "float64"),
        ("layer_norm", (X, np.ones(4, F)), {}, "op-shape", "(4,)"),
        ("layer_norm", (X, None, C.astype(np.int8)), {}, "op-dtype", "`bias`"),
        ("layer_norm", (X,), {"axes": 2}, "op-argument", "2 axes"),
        ("layer_norm", (X,), {"eps": -1}, "op-argument", "`eps`"),
        ("rms_norm", (X.astype(np.int32),), {}, "op-dtype", "int32"),
        ("rms_norm", (X,), {"axes": (0, -2)}, "op-argument", "twice"),
        ("batch_norm", (X,), {}, "op-argument", "training"),
        ("batch_norm", (X, C), {}, "op-argument", "both"),
        ("batch_norm", (X, C, mj.Variable(C)), {}, "op-argument", "both"),
        ("batch_norm", (X, C[:2], C), {}, "op-shape", "`running_mean`"),
        ("batch_norm", (X, C, C), {"axis": 0}, "op-shape", "4"),
        ("batch_norm", (X[:1],), {"training": True}, "op-shape", "two elements"),
        ("batch_norm", (X, C, C), {"momentum": 2}, "op-argument", "`momentum`"),
        ("local_response_norm", (X, 0), {}, "op-argument", "`size`"),
        ("local_response_norm", (X, 2), {"axis": 5}, "op-argument", "5"),
    ],
)
def test_what_makes_no_sense_is_refused(
    op: str, args: tuple[Any, ...], options: dict[str, Any], slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        getattr(mj.ops, op)(*args, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("size", "old", "new"), [(3, "size // 2", "size // 2 + 1"), (4, "range(size)", "range(size - 1)")]
)
def test_a_planted_mistake_is_found(mutate: Any, size: int, old: str, new: str) -> None:
    mutate("norms", old, new)
    x = scores(2, 8, 1)  # a trace of its own
    numbers: dict[str, Any] = {"alpha": 1.0, "beta": 0.5, "k": 1.0}
    got = mj.ops.local_response_norm(x, size, **numbers)
    with pytest.raises(AssertionError):
        close(got, reference.local_response_norm(x, size, **numbers))
