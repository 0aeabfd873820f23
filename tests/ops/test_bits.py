"""Counting and packing bits against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import LAYOUTS, Array, assert_same, laid_out, sample

import metaljit as mj
from metaljit import ops

ORDERS: Any = ["big", "little"]
INTEGERS = [np.dtype(f"{kind}{width}") for kind in "ui" for width in (1, 2, 4, 8)]


def test_counts(device: str) -> None:
    for dtype in INTEGERS:
        x = sample(dtype, (3, 40), 1, True)
        assert_same(ops.bitwise_count(x), np.bitwise_count(x))
    assert_same(mj.jit(lambda x: ops.bitwise_count(x) + 1)(x), np.bitwise_count(x) + 1)


@settings(max_examples=12)
@given(data=st.data())
def test_packing_and_unpacking(device: str, data: st.DataObject) -> None:
    axis: Any = data.draw(st.sampled_from([None, 0, 1, -1]))
    order: Any = data.draw(st.sampled_from(ORDERS))
    shape = (data.draw(st.sampled_from([0, 1, 8, 13])), 3)
    dtype = data.draw(st.sampled_from([np.bool_, np.uint8, np.int64]))
    x = laid_out(
        sample(dtype, shape, 1, False) * (sample(dtype, shape, 2, False) > 50),
        data.draw(st.sampled_from(LAYOUTS)),
    )
    packed = ops.packbits(x, axis, bitorder=order)
    assert_same(packed, np.packbits(x, axis, order))
    there = packed.shape[axis or 0] * 8
    counts: Any = (None, 5, there + 3, -min(3, there))
    for count in counts:
        if not packed.size and count != -min(3, there):
            continue  # NumPy leaves bits that come from nowhere as the memory was
        want = np.unpackbits(packed, axis, count, order)
        assert_same(ops.unpackbits(packed, axis, count, bitorder=order), want)


def test_on_a_device_and_in_a_trace(device: str) -> None:
    x = sample(np.uint8, (4, 16), 1, False)
    assert isinstance(ops.packbits(mj.asarray(x), 1), mj.Array)
    traced = mj.jit(lambda x: ops.packbits(ops.unpackbits(x, 1, bitorder="little"), 1))
    assert_same(traced(x), np.packbits(np.unpackbits(x, 1, bitorder="little"), 1))
    pairs = mj.jit(lambda a, b: ops.hamming_distance(a, b, pairwise=True) * 2)
    want = np.bitwise_count(x[:, None] ^ x[None, :3]).sum(-1, dtype=np.uint32) * np.uint32(2)
    assert_same(pairs(x, x[:3]), want)
    a, b = mj.asarray(x), mj.asarray(x[:3])
    assert_same(ops.hamming_distance(a, b, pairwise=True), want // 2)


B = np.zeros((2, 3), np.uint8)


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.bitwise_count(B.astype(np.float32)), "op-dtype", "float32"),
        (lambda: ops.packbits(B.astype(np.float64)), "no-f64", "float64"),
        (lambda: ops.packbits(B, 2), "op-argument", "2 axes"),
        (lambda: ops.packbits(B, bitorder="middle"), "op-argument", "'middle'"),
        (lambda: ops.unpackbits(B.astype(np.int8)), "op-dtype", "int8"),
        (lambda: ops.unpackbits(B, count=-49), "op-argument", "48 bits"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"), [("7 - bit)\n    return u8(byte)", "6 - bit)\n    return u8(byte)"), ("8 * n + bit", "8 * n + bit % 7"),
                     ("n // 8", "n // 7")],
)  # fmt: skip
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("bits", old, new)
    x: Array = np.array([1, 0, 0, 1, 0, 1, 1, 1, 1, 0, 1], np.uint8)
    packed = np.packbits(x)
    with pytest.raises(AssertionError):
        check(x, packed)


def check(x: Array, packed: Array) -> None:
    assert_same(ops.packbits(x), packed)
    assert_same(ops.unpackbits(packed), np.unpackbits(packed))
