"""Ops that read where indices say: values, ranges, gradients, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, assert_same, laid_out, sample

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import gather as reference

DTYPES = [np.float32, np.float16, BF16, np.int64, np.uint8, np.bool_]
WIDE = 2**32 + 1  # beyond the range of int32, and 1 when cut to it


def indices(shape: tuple[int, ...], n: int, seed: int, dtype: Any = np.int32) -> Array:
    """Indices of which some are out of range."""
    rng = np.random.default_rng(seed)
    made = rng.integers(-1, n + 1, shape).astype(dtype)
    if dtype == np.int64 and made.size:
        made.reshape(-1)[0] = WIDE
    return made


@st.composite
def nd_cases(draw: st.DrawFn) -> tuple[Array, Array, int]:
    batch = draw(st.sampled_from([(), (2,), (2, 3)]))
    axes = tuple(draw(st.integers(0, 4)) for _ in range(draw(st.integers(0, 2))))
    rest = draw(st.sampled_from([(), (3,), (2, 2)]))
    rows = draw(st.sampled_from([(), (5,), (2, 3), (0,)]))
    dtype, seed = draw(st.sampled_from(DTYPES)), draw(st.integers(0, 999))
    x = laid_out(sample(dtype, (*batch, *axes, *rest), seed, True), draw(st.sampled_from(LAYOUTS)))
    kind = draw(st.sampled_from([np.int32, np.int64]))
    at = indices((*batch, *rows, len(axes)), 3, seed, kind)
    return x, laid_out(at, draw(st.sampled_from(LAYOUTS))), len(batch)


@settings(max_examples=15)
@given(case=nd_cases(), mode=st.sampled_from(["zero", "clip"]))
def test_gather_nd(device: str, case: tuple[Array, Array, int], mode: str) -> None:
    x, at, batch = case
    got = ops.gather_nd(x, at, batch_dims=batch, out_of_range=mode)
    assert_same(got, reference.gather_nd(x, at, batch_dims=batch, out_of_range=mode))


@settings(max_examples=15)
@given(data=st.data())
def test_take(device: str, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(4,), (3, 4), (2, 3, 4)]))
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = laid_out(
        sample(data.draw(st.sampled_from(DTYPES)), shape, 1, True), data.draw(st.sampled_from(LAYOUTS))
    )
    at = indices(data.draw(st.sampled_from([(), (5,), (2, 2), (0,)])), 4, 2, np.int64)
    for mode in ("zero", "clip"):
        assert_same(ops.take(x, at, axis, out_of_range=mode), reference.take(x, at, axis, out_of_range=mode))
    assert_same(ops.take(x, at), reference.take(x.reshape(-1), at, 0))
    assert_same(ops.embedding(x, at), reference.take(x, at, 0, negative=False))


@settings(max_examples=15)
@given(data=st.data())
def test_take_along_axis(device: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-3, 2))
    shape, other = [2, 3, 4], [2, 3, 4]
    other[axis] = data.draw(st.integers(0, 5))
    wide = data.draw(st.sampled_from([0, 1, 2]))
    if wide != axis % 3:
        (shape if data.draw(st.booleans()) else other)[wide] = 1
    x = laid_out(
        sample(data.draw(st.sampled_from(DTYPES)), tuple(shape), 1, True), data.draw(st.sampled_from(LAYOUTS))
    )
    at = indices(tuple(other), shape[axis], 2)
    assert_same(ops.take_along_axis(x, at, axis), reference.take_along_axis(x, at, axis))


def test_numpy_agrees(device: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    at = np.array([[0, 1], [1, 2]])
    assert_same(ops.gather_nd(x, at), x[tuple(np.moveaxis(at, -1, 0))])
    assert_same(ops.take(x, [2, -1], 1), np.take(x, [2, -1], 1))
    assert_same(ops.take(x, -1, 2), np.take(x, -1, 2))
    order = np.argsort(-x, 1)
    assert_same(ops.take_along_axis(x, order, 1), np.take_along_axis(x, order, 1))
    assert_same(ops.gather_nd(x, np.array([[[0], [2]], [[1], [1]]]), batch_dims=1),
                np.stack([x[0, [0, 2]], x[1, [1, 1]]]))  # fmt: skip


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x, at = mj.array(np.arange(6, dtype=np.float32).reshape(3, 2)), mj.array(np.array([[2], [0]], np.int32))
    for got in (
        ops.gather_nd(x, at),
        ops.take(x, at, 0),
        ops.embedding(x, at),
        ops.take_along_axis(x, at, 0),
    ):
        assert isinstance(got, mj.Array)
    assert_same(ops.gather_nd(x, at), np.array([[4, 5], [0, 1]], np.float32))


def test_gradients_add_up_over_equal_indices(device: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    at = np.array([[2], [0], [2], [7]], np.int32)
    g = np.arange(16, dtype=np.float32).reshape(4, 4)
    want = np.zeros_like(x)
    np.add.at(want, at[:3, 0], g[:3])
    for f in (
        lambda x: ops.gather_nd(x, at),
        lambda x: ops.embedding(x, at[:, 0]),
        lambda x: ops.take(x, at[:, 0], 0),
    ):
        assert_same(mj.vjp(f, x)[1](g)[0], want)
    along = np.array([[3, 0, 3], [1, 1, 9], [0, 2, -1]], np.int32)
    want = np.zeros_like(x)
    for (i, k), j in np.ndenumerate(along):
        if j < 4:
            want[i, j] += g[i, k]
    assert_same(mj.vjp(lambda x: ops.take_along_axis(x, along, 1), x)[1](g[:3, :3].copy())[0], want)


def test_in_a_trace_it_fuses_and_serves_every_size(device: str) -> None:
    @mj.jit
    def rows(x: Any, at: Any) -> Any:
        return np.exp(ops.gather_nd(2 * x, at)) + 1

    for n, m in ((4, 3), (9, 5)):
        x, at = sample(np.float32, (n, 6), n, False) / 100, indices((m, 1), n, m)
        np.testing.assert_allclose(rows(x, at), np.exp(2 * reference.gather_nd(x, at)) + 1, rtol=1e-5)
    assert "1 kernel" in str(rows.explain(x, at)).splitlines()[0]


def test_out_of_range_is_refused_if_asked(device: str) -> None:
    x = np.zeros((3, 4), np.float32)
    good, bad = np.array([[2, 3]]), np.array([[0, 0], [2, -1]])
    assert ops.gather_nd(x, good, out_of_range="error").shape == (1,)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: ops.gather_nd(x, bad, out_of_range="error"), "[2, -1]"),
        (lambda: ops.take(x, [0, 3], 0, out_of_range="error"), "3"),
        (lambda: ops.embedding(x, np.array([-1]), out_of_range="error"), "-1"),
        (lambda: ops.take_along_axis(x, np.array([[4]]), 1, out_of_range="error"), "4"),
    ]
    for call, words in calls:
        with pytest.raises(mj.LaunchFault) as caught:
            call()
        assert words in str(caught.value)
    assert ops.take(x, [-3], 0, out_of_range="error").shape == (1, 4)
    traced = mj.jit(lambda x, at: ops.gather_nd(x, at, out_of_range="error"))
    assert traced(x, good).shape == (1,)
    with pytest.raises(mj.KernelAssertion, match="out of range"):
        traced(x, bad)


F = np.zeros((3, 4), np.float32)
LIST: Any = [1, 2]
NUMBER: Any = np.float32(3)
AT = np.zeros((2, 1), np.int32)


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.gather_nd(F.astype(np.float64), AT), "no-f64", "float64"),
        (lambda: ops.gather_nd(LIST, AT), "op-dtype", "list"),
        (lambda: ops.gather_nd(F, AT.astype(np.float32)), "op-dtype", "float32"),
        (lambda: ops.gather_nd(F, AT.astype(np.int16)), "op-dtype", "int16"),
        (lambda: ops.gather_nd(F, np.zeros((2, 3), np.int32)), "op-shape", "names 3 axes"),
        (lambda: ops.gather_nd(F, AT, batch_dims=1), "op-shape", "batch"),
        (lambda: ops.gather_nd(F, AT, batch_dims=2), "op-shape", "(2, 1)"),
        (lambda: ops.gather_nd(F, AT, batch_dims=-1), "op-argument", "-1"),
        (lambda: ops.gather_nd(F, AT, out_of_range="wrap"), "op-argument", "'wrap'"),
        (lambda: ops.take(F, AT, 2), "op-argument", "2 axes"),
        (lambda: ops.take(F, [0.5]), "no-f64", "float64"),
        (lambda: ops.embedding(NUMBER, AT), "op-shape", "no axis"),
        (lambda: ops.take_along_axis(F, AT, 1), "op-shape", "axis 0"),
        (lambda: ops.take_along_axis(F, AT[0], 1), "op-shape", "1 axes"),
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
        ("0 <= at < n", "0 < at < n"),
        ("axis + 1, i", "axis + 1, i // 2"),
        ("n - 1)", "n)"),
        ("i + n if", "-i if"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("gather", old, new)
    with pytest.raises(AssertionError):
        compare_all()


def compare_all() -> None:
    x, at = np.arange(1, 13, dtype=np.float32).reshape(3, 4), np.array([[0], [1], [2], [3], [-1]])
    for mode in ("zero", "clip"):
        want = reference.gather_nd(x, at, out_of_range=mode)
        assert_same(ops.gather_nd(x, at, out_of_range=mode), want)
        assert_same(ops.take(x, at, 1), reference.take(x, at, 1))
