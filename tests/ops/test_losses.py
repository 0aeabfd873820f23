"""ops.softmax, log_softmax, softmax_cross_entropy and nll against NumPy in float64, and against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, Array, assert_same, laid_out

import metaljit as mj
from metaljit.stdlib_ops.reference import losses as reference

F = np.float32


def scores(*shape: int, seed: int = 0) -> Array:
    return np.asarray(3 * np.random.default_rng(seed).standard_normal(shape), F)


def differences(f: Callable[[Array], Any], x: Array, h: float = 1e-5) -> Array:
    """The derivative of a sum of what `f` gives, by central differences of float64."""
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        up, down = x.astype(np.float64), x.astype(np.float64)
        up[at] += h
        down[at] -= h
        found[at] = (np.sum(f(up)) - np.sum(f(down))) / (2 * h)
    return found


# ---- softmax ----


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [-1, 0, (0, 1)])
@settings(max_examples=12)
@given(data=st.data())
def test_softmax(device: str, name: str, axis: Any, data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(0, 9), st.integers(2, 80)))
    x = laid_out(scores(*shape, seed=data.draw(st.integers(0, 99))), data.draw(st.sampled_from(LAYOUTS)))
    got = getattr(mj.ops, name)(x, axis)
    with np.errstate(all="ignore"):
        want = getattr(reference, name)(x, axis)
    assert got.dtype == F
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(3, 5), (2, 70)])
def test_softmax_derivatives(device: str, name: str, shape: tuple[int, ...]) -> None:
    """In a long row and in a short one, which are kernels of other kinds."""
    x, g = scores(*shape), scores(*shape, seed=1)

    @mj.jit
    def slope(x: Any, g: Any) -> Any:
        return mj.vjp(getattr(mj.ops, name), x)[1](g)[0]

    want = differences(lambda x: getattr(reference, name)(x) * g, x)
    np.testing.assert_allclose(slope(x, g), want, rtol=1e-4, atol=1e-5)


def test_softmax_at_the_ends(device: str) -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[1e4, -1e4, 0], [3e38, -3e38, 0], [-inf, 0, 0], [-inf] * 3, [inf, 0, 0], [nan, 0, 0]], F)
    want = np.array([[1, 0, 0], [1, 0, 0], [0, 0.5, 0.5], [nan] * 3, [nan] * 3, [nan] * 3], F)
    assert_same(mj.ops.softmax(x), want)
    logs = mj.ops.log_softmax(x)
    assert_same(logs[:2], np.array([[0, -2e4, -1e4], [0, -inf, -3e38]], F))
    assert_same(np.exp(logs[2:]), want[2:])
    slope = mj.grad(lambda x: mj.ops.softmax(x)[:, 0].sum())
    assert_same(slope(x[:2]), np.zeros((2, 3), F))


def test_softmax_of_other_types_and_no_axes(device: str) -> None:
    x = scores(4, 6).astype(np.float16)
    got = mj.ops.softmax(x)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype(F), reference.softmax(x), atol=1e-3)
    assert_same(mj.ops.softmax(np.array(7, F), ()), np.array(1, F))
    assert_same(mj.ops.softmax(np.zeros((3, 0), F)), np.zeros((3, 0), F))
    assert isinstance(mj.ops.softmax(mj.asarray(scores(2, 3))), mj.Array)


def test_a_long_row_is_one_kernel_in_both_directions() -> None:
    x = scores(4, 300)
    for f in (
        mj.ops.softmax,
        mj.ops.log_softmax,
        lambda x: mj.vjp(mj.ops.softmax, x)[1](x)[0],
    ):
        assert "1 kernel\n" in str(mj.jit(f).explain(x))


# ---- losses ----

CLASSES = np.array([0, 4, 2, 2, -100, 1])
WEIGHT = np.array([0.5, 1, 2, 0, 3], F)
PROBABILITIES = reference.softmax(scores(6, 5, seed=2)).astype(F)
CASES: list[tuple[tuple[int, ...], Array, dict[str, Any]]] = [
    ((6, 5), CLASSES, {}),
    ((6, 5), CLASSES.astype(np.int8), {"reduction": "none", "weight": WEIGHT}),
    ((6, 5), CLASSES.astype(np.uint64) % 5, {"reduction": "sum", "ignore_index": 2}),
    ((6, 5), CLASSES, {"label_smoothing": 0.2, "weight": WEIGHT}),
    ((6, 5), PROBABILITIES, {"weight": WEIGHT, "label_smoothing": 0.1}),
    ((6, 5), PROBABILITIES, {"reduction": "none"}),
    ((2, 5, 3), CLASSES.reshape(2, 3), {"label_smoothing": 0.3}),
    ((2, 3, 5), CLASSES.reshape(2, 3), {"axis": -1, "weight": WEIGHT}),
    ((5,), np.array(3), {}),
    ((3, 90), np.array([89, 0, 33]), {"reduction": "none", "label_smoothing": 0.1}),
]


@pytest.mark.parametrize(("shape", "target", "options"), CASES)
def test_cross_entropy_and_its_derivative(
    device: str, shape: tuple[int, ...], target: Array, options: dict[str, Any]
) -> None:
    x = scores(*shape)
    axis = options.get("axis", min(1, len(shape) - 1))
    others = {k: v for k, v in options.items() if k != "axis"}

    def wanted(x: Array) -> Array:
        return reference.softmax_cross_entropy(x, target, axis=axis, **others)

    def both(x: Any, target: Any) -> Any:
        value, back = mj.vjp(lambda x: mj.ops.softmax_cross_entropy(x, target, **options), x)
        return value, back(1.0)[0]

    value, slope = mj.jit(both)(x, target)
    assert value.dtype == F
    np.testing.assert_allclose(value, wanted(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(slope, differences(wanted, x), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mj.ops.softmax_cross_entropy(x, target, **options), value, rtol=1e-6)


def test_nll_is_the_loss_of_logarithms(device: str) -> None:
    logs = reference.log_softmax(scores(6, 5), 1).astype(F)
    options: dict[str, Any] = {"weight": WEIGHT, "label_smoothing": 0.1}
    got = mj.ops.nll(logs, CLASSES, **options)
    np.testing.assert_allclose(got, reference.nll(logs, CLASSES, **options), rtol=1e-5)
    slope = mj.grad(lambda x: mj.ops.nll(x, CLASSES))(logs)
    want = np.zeros((6, 5), F)
    want[[0, 1, 2, 3, 5], CLASSES[CLASSES >= 0]] = -0.2
    np.testing.assert_allclose(slope, want, rtol=1e-6)


def test_scores_that_are_far_apart_or_infinite(device: str) -> None:
    x = np.array([[1e4, -1e4, 0], [0, -np.inf, 0], [np.nan, 0, 0], [np.inf, 0, 0]], F)
    target = np.array([1, 0, 1, -100])
    losses = mj.ops.softmax_cross_entropy(x, target, reduction="none")
    assert_same(losses, np.array([2e4, np.log(F(2)), np.nan, 0], F))
    slope = mj.grad(lambda x: mj.ops.softmax_cross_entropy(x, target[:2], reduction="sum"))(x[:2])
    np.testing.assert_allclose(slope, np.array([[1, -1, 0], [-0.5, 0, 0.5]]))


def test_where_no_row_counts(device: str) -> None:
    x, target = scores(2, 3), np.array([7, 7])
    assert np.isnan(mj.ops.softmax_cross_entropy(x, target, ignore_index=7))
    assert mj.ops.softmax_cross_entropy(x, target, ignore_index=7, reduction="sum") == 0
    assert np.isnan(mj.ops.softmax_cross_entropy(x[:0], target[:0]))
    kept = mj.ops.softmax_cross_entropy(x[:0], target[:0], reduction="none", keepdims=True)
    assert kept.shape == (0, 1)


def test_a_class_that_there_is_not(device: str) -> None:
    for wrong in (3, -1, 2**32):
        with pytest.raises(mj.KernelAssertion, match=r"position \(1\) .* is negative, or is not less"):
            mj.ops.softmax_cross_entropy(scores(3, 3), np.array([0, wrong, 2]))
    long = np.array([0, 100, 99])
    with pytest.raises(mj.KernelAssertion, match=r"position \(1\)"):
        mj.ops.softmax_cross_entropy(scores(3, 100), long)


def test_the_derivative_of_a_loss_by_its_scores_alone() -> None:
    """Options that are not passed are what they are, though a trace takes no strings."""
    got = mj.grad(mj.ops.softmax_cross_entropy)(scores(6, 5), CLASSES)
    want = differences(lambda x: reference.softmax_cross_entropy(x, CLASSES), scores(6, 5))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


X = np.zeros((4, 3), F)
Y = np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("args", "options", "slug", "words"),
    [
        ((np.zeros((4, 3)), Y), {}, "no-f64", "float64"),
        ((X, np.zeros((4, 3))), {}, "no-f64", "`target`"),
        ((np.zeros((4, 3), np.int8), Y), {}, "op-dtype", "int8"),
        ((X, Y > 0), {}, "op-dtype", "bool"),
        ((X, [0, 1, 2, 0]), {}, "op-dtype", "list"),
        ((X, Y[:3]), {}, "op-shape", "(3,)"),
        ((X, Y), {"axis": 0}, "op-shape", "axis 0"),
        ((X, np.zeros((4, 1), F)), {}, "op-shape", "probabilities"),
        ((np.zeros((), F), np.zeros((), np.int8)), {}, "op-shape", "no axis"),
        ((X, Y), {"weight": np.zeros(4, F)}, "op-shape", "3 classes"),
        ((X, Y), {"weight": np.zeros(3)}, "no-f64", "`weight`"),
        ((X, Y), {"reduction": "average"}, "op-argument", "'average'"),
        ((X, Y), {"label_smoothing": 1.5}, "op-argument", "1.5"),
        ((X, Y), {"axis": 2}, "op-argument", "2 axes"),
        ((X, Y), {"ignore_index": 0.5}, "op-argument", "`ignore_index`"),
    ],
)
def test_what_makes_no_sense_is_refused(
    args: tuple[Any, Any], options: dict[str, Any], slug: str, words: str
) -> None:
    for op in (mj.ops.softmax_cross_entropy, mj.ops.nll):
        with pytest.raises(mj.MetaljitError) as caught:
            op(*args, **options)
        assert caught.value.slug == slug
        assert words in str(caught.value)
    if len(args[0].shape) == 2 and args[1] is Y and not options:
        with pytest.raises(mj.MetaljitError):
            mj.ops.softmax(args[0])


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (0, "place[axis]", "place[axis] + 1"),
        (1, "0.0 if c == ignored else 1.0", "1.0"),
        (2, "0.0 if c == ignored else 1.0", "2.0"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, number: int, old: str, new: str) -> None:
    mutate("losses", old, new)
    ignored = -1000 - number  # a trace of its own
    target = np.where(CLASSES == -100, ignored, CLASSES)
    got = mj.ops.softmax_cross_entropy(scores(6, 5), target, ignore_index=ignored)
    want = reference.softmax_cross_entropy(scores(6, 5), target, ignore_index=ignored)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(got, want, rtol=1e-5)
