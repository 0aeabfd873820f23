"""Ops that write where indices say: every mode, equal and missing places, gradients, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, assert_close, assert_same, is_float, laid_out, sample

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import gather as reference
from metaljit.stdlib_ops.scatter import MODES

NUMBERS = [np.float32, np.float16, BF16, np.int64, np.uint8, np.int32, np.uint32]


@st.composite
def cases(draw: st.DrawFn, mode: str) -> tuple[Array, Array, Array, int]:
    batch = draw(st.sampled_from([(), (2,)]))
    axes = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(0, 2))))
    rest = draw(st.sampled_from([(), (3,)]))
    rows = draw(st.sampled_from([(), (9,), (2, 3), (0,)]))
    allowed = [d for d in NUMBERS if is_float(d)] if mode == "div" else NUMBERS
    dtype = draw(st.sampled_from([*allowed, *([np.bool_] if mode == "set" else [])]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    x = laid_out(sample(dtype, (*batch, *axes, *rest), 1, False), draw(st.sampled_from(LAYOUTS)))
    at = rng.integers(-1, 5, (*batch, *rows, len(axes))).astype(draw(st.sampled_from([np.int32, np.int64])))
    updates = sample(dtype, (*batch, *rows, *rest), 2, draw(st.booleans()) and mode in ("min", "max", "set"))
    return x, at, laid_out(updates, draw(st.sampled_from(LAYOUTS))), len(batch)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=3)
@given(data=st.data())
def test_scatter_nd_update(device: str, mode: str, data: st.DataObject) -> None:
    x, at, updates, batch = data.draw(cases(mode))
    got = ops.scatter_nd_update(x, at, updates, mode=mode, batch_dims=batch)
    want = reference.scatter_nd_update(x, at, updates, mode=mode, batch_dims=batch)
    assert_close(got, want, np.abs(np.nan_to_num(want.astype(np.float64))) + 1000)
    if mode in ("min", "max", "set"):
        assert_same(got, want)
    zeros = np.zeros_like(x)
    again = ops.scatter_nd(at, updates, x.shape, mode=mode, batch_dims=batch)
    with np.errstate(all="ignore"):
        want = reference.scatter_nd_update(zeros, at, updates, mode=mode, batch_dims=batch)
    assert_close(again, want, np.abs(np.nan_to_num(want.astype(np.float64))) + 1000)


@pytest.mark.parametrize("mode", ["set", "add", "max"])
@settings(max_examples=3)
@given(data=st.data())
def test_put_along_axis(device: str, mode: str, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-2, 1))
    shape = [3, 4]
    shape[axis] = data.draw(st.integers(0, 6))
    dtype = data.draw(st.sampled_from(NUMBERS))
    x = laid_out(sample(dtype, (3, 4), 1, False), data.draw(st.sampled_from(LAYOUTS)))
    at = np.random.default_rng(3).integers(-6, 6, shape)
    values = sample(dtype, data.draw(st.sampled_from([tuple(shape), (1, 1)])), 2, False)
    got = ops.put_along_axis(x, at, values, axis, mode=mode)
    want = reference.put_along_axis(x, at, values, axis, mode=mode)
    assert_close(got, want, np.full(want.shape, 1000.0))


def test_worked_examples(device: str) -> None:
    x, at = np.array([1, 2, 3, 4], np.float32), np.array([[1], [1], [3]])
    new = np.array([5, 7, 2], np.float32)
    wanted: dict[str, list[float]] = {"set": [1, 7, 3, 2], "add": [1, 14, 3, 6], "sub": [1, -10, 3, 2], "mul": [1, 70, 3, 8],
                       "div": [1, 2 / 35, 3, 2], "min": [1, 2, 3, 2], "max": [1, 7, 3, 4]}  # fmt: skip
    for mode, want in wanted.items():
        np.testing.assert_allclose(ops.scatter_nd_update(x, at, new, mode=mode), want, rtol=1e-6)
    rows, along = np.repeat(np.arange(4, dtype=np.float32)[:, None], 3, 1), np.array([[2, 1, 0], [1, 3, 2]])
    updates = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    got = ops.put_along_axis(rows, along, updates, 0, mode="add")
    assert_same(got, np.array([[0, 0, 3], [5, 3, 1], [3, 2, 8], [3, 8, 3]], np.float32))


def test_many_updates_of_few_places(device: str) -> None:
    rng = np.random.default_rng(0)
    at, updates = rng.integers(-1, 3, (3000, 1)), rng.integers(-5, 5, 3000)
    for mode in ("add", "max", "set"):
        x = np.full(3, 2)
        assert_same(ops.scatter_nd_update(x, at, updates, mode=mode),
                    reference.scatter_nd_update(x, at, updates, mode=mode))  # fmt: skip


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x, at, new = mj.array([1.0, 2.0]), mj.array(np.array([[1]], np.int32)), mj.array([5.0])
    for got, want in (
        (ops.scatter_nd_update(x, at, new), [1, 5]),
        (ops.scatter_nd(at, new, (3,)), [0, 5, 0]),
        (ops.put_along_axis(x, at[0], new), [1, 5]),
    ):
        assert isinstance(got, mj.Array)
        assert_same(got, np.array(want, np.float32))
    assert_same(x, np.array([1, 2], np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_gradients(device: str, mode: str) -> None:
    """Against central differences, away from ties."""
    rng = np.random.default_rng(1)
    x, updates = (rng.permutation(np.linspace(0.5, 2, n)).astype(np.float32).reshape(-1, 2) for n in (8, 12))
    at = np.array([[1], [3], [1], [9], [1], [0]])
    g = rng.uniform(-1, 1, x.shape).astype(np.float32)
    out, back = mj.vjp(lambda x, u: ops.scatter_nd_update(x, at, u, mode=mode), x, updates)
    assert_close(out, reference.scatter_nd_update(x, at, updates, mode=mode), np.full(x.shape, 10.0))
    for which, found in enumerate(back(g)):
        given = [x.astype(np.float64), updates.astype(np.float64)]
        want = np.zeros_like(found)
        for place in np.ndindex(*found.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [a.copy() for a in given]
                moved[which][place] += step
                ends.append((reference.scatter_nd_update(moved[0], at, moved[1], mode=mode) * g).sum())
            want[place] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


def test_equal_candidates_share_a_derivative(device: str) -> None:
    x, at, u = np.ones(2, np.float32), np.array([[0], [0], [1]]), np.array([1, 1, 3], np.float32)
    _, back = mj.vjp(lambda x, u: ops.scatter_nd_update(x, at, u, mode="max"), x, u)
    gx, gu = back(np.array([3, 5], np.float32))
    np.testing.assert_allclose(gx, [1, 0])
    np.testing.assert_allclose(gu, [1, 1, 5])


F, AT = np.zeros((3, 4), np.float32), np.zeros((2, 1), np.int32)
U = np.zeros((2, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.scatter_nd_update(F.astype(np.float64), AT, U), "no-f64", "float64"),
        (lambda: ops.scatter_nd_update(F, AT, U.astype(np.int32)), "op-dtype", "int32"),
        (lambda: ops.scatter_nd_update(F, AT.astype(np.uint8), U), "op-dtype", "uint8"),
        (lambda: ops.scatter_nd_update(F, AT, U[:, :3]), "op-shape", "(2, 4)"),
        (lambda: ops.scatter_nd_update(F, AT, U, mode="xor"), "op-argument", "'xor'"),
        (lambda: ops.scatter_nd_update(F, AT, U, out_of_range="zero"), "op-argument", "'skip'"),
        (lambda: ops.scatter_nd_update(AT, AT, AT, mode="div"), "op-dtype", "floats"),
        (lambda: ops.scatter_nd_update(F > 0, AT, U > 0, mode="add"), "op-dtype", "bool"),
        (lambda: ops.scatter_nd_update(F, AT + 3, U, out_of_range="error"), "op-argument", "[3]"),
        (lambda: ops.scatter_nd(AT, U, (4,)), "op-shape", "(2,)"),
        (lambda: ops.scatter_nd(AT, U, (-1, 4)), "op-argument", "-1"),
        (lambda: ops.scatter_nd(AT - 1, U, (3, 4), out_of_range="error"), "op-argument", "[-1]"),
        (lambda: ops.put_along_axis(F, AT, F[0, 0]), "op-shape", "axis 0"),
        (lambda: ops.put_along_axis(F[:1], AT, F[:1]), "op-shape", "of `x`"),
        (lambda: ops.put_along_axis(F, AT[:1], F[:, :3]), "op-shape", "not broadcast"),
        (lambda: ops.put_along_axis(F, AT[:1] + 9, F[0, :1], out_of_range="error"), "op-argument", "has 9"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [("targets[middle] < place", "targets[middle] <= place"), ("return old - new", "return new - old"),
     ("order[k], u", "k, u"), ("targets[k] != place", "targets[k] < place")],
)  # fmt: skip
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("scatter", old, new)
    with pytest.raises(AssertionError):
        compare_all()


def compare_all() -> None:
    x, at, new = (
        np.array([1, 2, 3], np.int64),
        np.array([[2], [0], [2], [-1]]),
        np.array([5, 7, 6, 9], np.int64),
    )
    for mode in ("set", "sub"):
        want = reference.scatter_nd_update(x, at, new, mode=mode)
        assert_same(ops.scatter_nd_update(x, at, new, mode=mode), want)
