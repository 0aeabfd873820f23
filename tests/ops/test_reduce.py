"""Reductions and scans: dtypes, axes, NaN, integers that wrap, errors of long sums, gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, assert_close, assert_same, is_float, laid_out, sample

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import reduce as reference

DTYPES = [np.float32, np.float16, BF16, np.int64, np.int8, np.uint16, np.bool_]
AXES = [None, (), 0, 1, -1, (0, 2), (0, 1, 2)]


@st.composite
def arrays(draw: st.DrawFn, nasty: bool, empty: bool = True) -> Array:
    n = draw(st.sampled_from([1, 3, 70] + [0] * empty))
    shape = tuple(draw(st.permutations((2, 3, n))))
    x = sample(draw(st.sampled_from(DTYPES)), shape, draw(st.integers(0, 99)), nasty)
    return laid_out(x, draw(st.sampled_from(LAYOUTS)))


def axes_of(axis: Any) -> tuple[int, ...]:
    return (0, 1, 2) if axis is None else axis if isinstance(axis, tuple) else (axis,)


@pytest.mark.parametrize("op", ["sum", "prod"])
@settings(max_examples=8)
@given(data=st.data())
def test_sums(device: str, op: str, data: st.DataObject) -> None:
    x = data.draw(arrays(op == "sum" and data.draw(st.booleans())))
    if op == "prod" and is_float(x.dtype):
        x = (x != 0).astype(x.dtype) + np.asarray(0.25, x.dtype)
    axis, keepdims = data.draw(st.sampled_from(AXES)), data.draw(st.booleans())
    got = getattr(ops, op)(x, axis, keepdims=keepdims)
    want = reference.reduced(op, x, axes_of(axis), keepdims)
    with np.errstate(all="ignore"):
        magnitude = np.abs(x.astype(np.float64)).sum(axes_of(axis), keepdims=keepdims) + np.abs(
            want.astype(np.float64)
        )
    assert_close(got, want, 16 * np.nan_to_num(magnitude, posinf=0))


@pytest.mark.parametrize("op", ["max", "min", "all", "any"])
@settings(max_examples=6)
@given(data=st.data())
def test_extremes_and_truth(device: str, op: str, data: st.DataObject) -> None:
    x = data.draw(arrays(True, empty=op in ("all", "any")))
    axis, keepdims = data.draw(st.sampled_from(AXES)), data.draw(st.booleans())
    with np.errstate(invalid="ignore"):  # a NaN among bfloat16
        want = np.asarray(getattr(np, op)(x, axis=axes_of(axis), keepdims=keepdims))
    if op in ("all", "any") and axis == ():
        want = want.astype(np.bool_)
    assert_same(getattr(ops, op)(x, axis, keepdims=keepdims), want)


@settings(max_examples=6)
@given(data=st.data())
def test_places(device: str, data: st.DataObject) -> None:
    x = data.draw(arrays(data.draw(st.booleans()), empty=False))
    axis, keepdims = data.draw(st.sampled_from([None, 0, -1])), data.draw(st.booleans())
    numbers = x.astype(np.float32) if x.dtype == BF16 else x
    for op in ("argmax", "argmin"):
        want = getattr(np, op)(numbers, axis=axis, keepdims=keepdims)
        assert_same(getattr(ops, op)(x, axis, keepdims=keepdims), np.asarray(want, np.int32))


def test_means_and_logsumexp(device: str) -> None:
    for dtype in (np.float32, np.float16, BF16, np.int8):
        x = sample(dtype, (3, 70, 4), 1, False)
        if is_float(dtype):
            x = (x.astype(np.float32) / 16).astype(dtype)
        wide = x.astype(np.float64)
        for axis in (None, 1, (0, 2)):
            kind = x.dtype if is_float(dtype) else np.dtype(np.float32)
            magnitude = np.abs(wide).max() ** 2 * 2
            assert_close(ops.mean(x, axis), np.asarray(wide.mean(axis)).astype(kind), np.asarray(magnitude))
            for ddof in (0, 1):
                want = np.asarray(wide.var(axis, ddof=ddof)).astype(kind)
                assert_close(ops.var(x, axis, ddof=ddof, keepdims=False), want, np.asarray(magnitude))
            if is_float(dtype):
                want = np.asarray(np.logaddexp.reduce(wide, axis)).astype(kind)
                assert_close(ops.logsumexp(x, axis), want, np.asarray(np.abs(wide).max() * 2))
    special = np.array([[np.inf, 1], [-np.inf, -np.inf], [np.nan, 1], [1000, 1000]], np.float32)
    np.testing.assert_allclose(ops.logsumexp(special, 1), [np.inf, -np.inf, np.nan, 1000.6931], rtol=1e-6)
    x = np.array([[1, np.nan, 0], [np.nan, np.nan, np.nan]], np.float32)
    assert_same(ops.max(x, 1, nan="ignore"), np.array([1, np.nan], np.float32))
    assert_same(ops.min(x, nan="ignore", keepdims=True), np.zeros((1, 1), np.float32))
    assert np.isnan(ops.mean(np.zeros((0,), np.float32)))


def test_types_that_are_asked_for(device: str) -> None:
    x = np.full(300, 200, np.uint8)
    assert_same(ops.sum(x), np.asarray(60000, np.uint32))
    assert_same(ops.sum(x, dtype=np.uint8), np.asarray(60000 % 256, np.uint8))
    assert_same(ops.sum(np.full(9, 2**30, np.int32), dtype=np.int64), np.asarray(9 * 2**30))
    half = np.full(70000, 1, np.float16)
    assert_same(ops.sum(half, dtype=np.float32), np.asarray(70000, np.float32))
    assert_same(ops.mean(half), np.asarray(1, np.float16))
    assert_same(ops.cumsum(x, dtype=np.uint8), np.cumsum(x, dtype=np.uint8))
    assert_same(ops.sum(half > 0), np.asarray(70000, np.int32))


@pytest.mark.parametrize(("shape", "axis"), [((1 << 22,), 0), ((70, 1 << 15), 1), ((1 << 16, 20), 0)])
def test_the_error_of_a_sum_hardly_grows(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    want = x.astype(np.float64).sum(axis)
    assert np.abs(ops.sum(x, axis) / want - 1).max() < 40 * 2**-24
    if len(shape) == 1:
        assert np.abs(ops.cumsum(x)[1000:] / np.cumsum(x.astype(np.float64))[1000:] - 1).max() < 40 * 2**-24


@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummin"])
@settings(max_examples=3)
@given(data=st.data())
def test_scans(device: str, op: str, data: st.DataObject) -> None:
    shape = [2, 3]
    axis = data.draw(st.integers(-3, 2))
    shape.insert(axis % 3, data.draw(st.sampled_from([0, 1, 17, 300])))
    x = sample(data.draw(st.sampled_from(DTYPES)), tuple(shape), 1, op not in ("cumsum", "cumprod"))
    if op == "cumprod" and is_float(x.dtype):
        x = (x > 0).astype(x.dtype) + np.asarray(0.5, x.dtype)
    given_ = laid_out(x, data.draw(st.sampled_from(LAYOUTS)))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    got = getattr(ops, op)(given_, axis, exclusive=exclusive, reverse=reverse)
    want = reference.scan(op, x, axis, exclusive, reverse)
    with np.errstate(all="ignore"):
        magnitude = np.abs(want.astype(np.float64)) * 30
    if op == "cumsum":
        magnitude += np.abs(x.astype(np.float64)).sum(axis, keepdims=True)
    assert_close(got, want, np.nan_to_num(magnitude, posinf=0))


def test_worked_scans(device: str) -> None:
    x = np.array([3, 1, 2], np.float32)
    inf = np.inf
    for op, rows in {"cumsum": ((3, 4, 6), (0, 3, 4), (6, 3, 2), (3, 2, 0)),
                     "cumprod": ((3, 3, 6), (1, 3, 3), (6, 2, 2), (2, 2, 1)),
                     "cummin": ((3, 1, 1), (inf, 3, 1), (1, 1, 2), (1, 2, inf)),
                     "cummax": ((3, 3, 3), (-inf, 3, 3), (3, 2, 2), (2, 2, -inf))}.items():  # fmt: skip
        for k, row in enumerate(rows):
            got = getattr(ops, op)(x, exclusive=bool(k & 1), reverse=bool(k & 2))
            assert_same(got, np.array(row, np.float32))


X = np.array([[0.5, -1.25, 2, 0.75, 1.5], [1, 3, -0.5, 0.25, -2]], np.float32)
DIFFERENTIABLE: dict[str, Any] = {
    "sum": lambda x: ops.sum(x, 1),
    "prod": lambda x: ops.prod(x, 1),
    "max": lambda x: ops.max(x, 0),
    "mean": lambda x: ops.mean(x, keepdims=True),
    "var": lambda x: ops.var(x, 1, ddof=1),
    "logsumexp": lambda x: ops.logsumexp(x, 1),
    "cumsum": lambda x: ops.cumsum(x, exclusive=True),
    "cumprod": lambda x: ops.cumprod(x, reverse=True),
    "cummax": lambda x: ops.cummax(x),
    "cummin": lambda x: ops.cummin(x, 0, reverse=True),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(device: str, name: str) -> None:
    """Against central differences."""
    call = DIFFERENTIABLE[name]
    out, back = mj.vjp(call, X)
    g = np.random.default_rng(0).uniform(-1, 1, np.shape(out)).astype(np.float32)
    (found,) = back(g)
    want = np.zeros_like(X)
    step = 1 / 64  # exact in f32, so that only the outputs are rounded
    for place in np.ndindex(*X.shape):
        ends = []
        for sign in (1, -1):
            moved = X.copy()
            moved[place] += sign * step
            ends.append((np.asarray(call(moved)).astype(np.float64) * g).sum())
        want[place] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-3)


def test_the_derivative_of_a_product_with_zeros(device: str) -> None:
    x = np.array([2, 0, 3, 0.5], np.float32)
    (found,) = mj.vjp(lambda x: ops.cumprod(x), x)[1](np.ones(4, np.float32))
    np.testing.assert_allclose(found, [1, 2 + 6 + 3, 0, 0])


def test_in_a_trace_and_on_the_device(device: str) -> None:
    @mj.jit
    def normal(x: Any) -> Any:
        return np.exp(x - ops.logsumexp(x, 1, keepdims=True)), ops.cumsum(x, 1)[:, -1] - ops.sum(x, 1)

    for n in (5, 100, 1000):
        x = sample(np.float32, (3, n), n, False) / 100
        p, zero = normal(x)
        np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
        np.testing.assert_allclose(zero, 0, atol=1e-3)
    there = mj.asarray(X)
    for got in (ops.sum(there), ops.cumsum(there), ops.argmax(there, 1), ops.var(there, 0)):
        assert isinstance(got, mj.Array)


E = np.zeros((3, 0), np.float32)


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.sum(X.astype(np.float64)), "no-f64", "float64"),
        (lambda: ops.sum(X, 2), "op-argument", "2 axes"),
        (lambda: ops.sum(X, (0, -2)), "op-argument", "twice"),
        (lambda: ops.sum(X, dtype=np.float64), "no-f64", "float64"),
        (lambda: ops.max(E), "op-shape", "axis 1"),
        (lambda: ops.max(X, nan="skip"), "op-argument", "'skip'"),
        (lambda: ops.argmin(E, 1), "op-shape", "axis 1"),
        (lambda: ops.argmax(X, -3), "op-argument", "-3"),
        (lambda: ops.var(X, ddof=-1), "op-argument", "-1"),
        (lambda: ops.logsumexp(X > 0), "op-dtype", "bool"),
        (lambda: ops.cumsum(X, 2), "op-argument", "2 axes"),
        (lambda: ops.cumprod(X[0, 0]), "op-argument", "at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if block > 0", "if block > 1"),
        ("range(block * size + 1, p + 1)", "range(block * size + 1, p)"),
        ("min(first + size, N)", "min(first + size - 1, N)"),
        ("if p > 0 else first", "if p > 1 else first"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("scan", old, new)
    x = np.arange(1, 41, dtype=np.int32)
    with pytest.raises(AssertionError):
        assert_same(ops.cumsum(x, exclusive=True), np.cumsum(x, dtype=np.int32) - x)
