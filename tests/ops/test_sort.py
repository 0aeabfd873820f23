"""Sorting: every dtype, axis and length, NaN, stability, gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, assert_same, laid_out, sample

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import sort as reference

DTYPES = [np.float32, np.float16, BF16, np.int64, np.uint8, np.int32, np.bool_]


@settings(max_examples=5)
@given(data=st.data())
def test_every_dtype_axis_and_length(device: str, data: st.DataObject) -> None:
    shape = [2, 3]
    axis = data.draw(st.integers(-3, 2))
    shape.insert(axis % 3, data.draw(st.sampled_from([0, 1, 2, 5, 16, 33])))
    seed = data.draw(st.integers(0, 99))
    x = sample(data.draw(st.sampled_from(DTYPES)), tuple(shape), seed, data.draw(st.booleans()))
    given_, descending = laid_out(x, data.draw(st.sampled_from(LAYOUTS))), data.draw(st.booleans())
    order = reference.argsort(x, axis, descending)
    assert_same(ops.argsort(given_, axis, descending=descending), order)
    assert_same(ops.sort(given_, axis, descending=descending), np.take_along_axis(x, order, axis))
    k = 2
    if k <= shape[axis]:
        first = order.take(range(k), axis)
        values, places = ops.top_k(given_, k, axis, largest=descending)
        assert_same(places, first)
        assert_same(values, np.take_along_axis(x, first, axis))


def test_long_rows(device: str) -> None:
    n = 20000 if device == "cpu" else 700
    x = np.random.default_rng(0).integers(0, 99, (2, n)).astype(np.float32)
    assert_same(ops.sort(x), np.sort(x))
    assert_same(ops.argsort(x), np.argsort(x, kind="stable").astype(np.int32))


def test_one_trace_serves_every_length(device: str) -> None:
    sort = mj.jit(lambda x: ops.sort(x * 2, 0) + 1)
    for n in (3, 8, 100):
        x = sample(np.float32, (n,), n, False)
        assert_same(sort(x), np.sort(x * 2) + 1)


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x = mj.array([3.0, 1.0, 2.0])
    for got in (ops.sort(x), ops.argsort(x), *ops.top_k(x, 2)):
        assert isinstance(got, mj.Array)


def test_the_derivative_goes_to_where_an_element_was(device: str) -> None:
    x = np.array([[3, 1, 2, 1], [0, 5, -1, 4]], np.float32)
    g = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    want = np.zeros_like(x)
    np.put_along_axis(want, np.argsort(x, 1, kind="stable"), g, 1)
    assert_same(mj.vjp(lambda x: ops.sort(x, 1), x)[1](g)[0], want)
    want[...] = 0
    np.put_along_axis(want, np.argsort(-x, 1, kind="stable")[:, :2], g[:, :2], 1)
    assert_same(mj.vjp(lambda x: ops.top_k(x, 2)[0], x)[1](g[:, :2].copy())[0], want)


X = np.zeros((3, 4), np.float32)
LIST: Any = [3, 1]


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.sort(X.astype(np.float64)), "no-f64", "float64"),
        (lambda: ops.sort(X, 2), "op-argument", "2 axes"),
        (lambda: ops.argsort(X[0, 0]), "op-argument", "at least 0"),
        (lambda: ops.sort(LIST), "op-dtype", "list"),
        (lambda: ops.top_k(X, 5), "op-argument", "4 elements"),
        (lambda: ops.top_k(X, 0), "op-argument", "at least 1"),
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
        ("a < b or (isnan(b) and not isnan(a))", "a < b"),
        ("a < b or", "a <= b or"),
        ("if low == left", "if low > left"),
        ("max(N, 1) - 1", "max(N, 1) - 2"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("sort", old, new)
    x: Array = np.array([3, np.nan, 1, 2, 1, np.nan, 0, 1, 1], np.float32)
    with pytest.raises(AssertionError):
        assert_same(ops.argsort(x), reference.argsort(x, 0, False))
