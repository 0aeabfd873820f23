"""ops.hamming_distance against NumPy: widths, signs, broadcasting, rows as words, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import LAYOUTS, Array, assert_same, laid_out, sample

import metaljit as mj
from metaljit.stdlib_ops.reference import bits as reference

INTEGERS = [np.dtype(f"{kind}{width}") for kind in "ui" for width in (1, 2, 4, 8)]


def check(a: Array, b: Array, **options: Any) -> None:
    before = a.copy(), b.copy()
    assert_same(mj.ops.hamming_distance(a, b, **options), reference.hamming_distance(a, b, **options))
    assert_same(a, before[0])
    assert_same(b, before[1])


def bits(dtype: Any, shape: tuple[int, ...], seed: int) -> Array:
    """Every bit is set in half of the elements."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made: Array = np.random.default_rng(seed).integers(0, 256, count, np.uint8).view(dtype).reshape(shape)
    return made


@st.composite
def operands(draw: st.DrawFn, dtype: Any, pairwise: bool) -> tuple[Array, Array]:
    """Batches of a few ranks that broadcast, rows of a few lengths."""
    batch = draw(st.sampled_from([(), (3,), (2, 3)]))
    k = draw(st.sampled_from([0, 1, 3, 4, 7, 8, 16, 33]))
    made = []
    for _ in range(2):
        own = tuple(1 if draw(st.booleans()) else n for n in batch)[draw(st.integers(0, len(batch))) :]
        rows = (draw(st.integers(0, 4)),) if pairwise else ()
        contents = bits(dtype, (*own, *rows, k), draw(st.integers(0, 2**16)))
        made.append(laid_out(contents, draw(st.sampled_from(LAYOUTS))))
    return made[0], made[1]


@pytest.mark.parametrize("pairwise", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_it_counts_the_bits_that_differ(
    device: str, dtype: np.dtype[Any], pairwise: bool, data: st.DataObject
) -> None:
    a, b = data.draw(operands(dtype, pairwise))
    check(a, b, pairwise=pairwise, keepdims=data.draw(st.booleans()))


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int16])
def test_extreme_values(device: str, dtype: Any) -> None:
    x = sample(dtype, (50, 4), 3, True)
    check(x, x[::-1])


def test_the_narrow_result_wraps(device: str) -> None:
    a, b = np.full((2, 8200), 255, np.uint8), np.zeros((2, 8200), np.uint8)
    assert_same(mj.ops.hamming_distance(a, b), np.full(2, 65600, np.uint32))
    check(a, b, dtype=np.uint16)
    check(a, b, dtype=np.uint16, pairwise=True)
    assert mj.ops.hamming_distance(a, b, dtype=np.uint16)[0] == 64


def test_worked_examples(device: str) -> None:
    a = np.array([[0, 1, 2, 3], [4, 5, 6, 7], [255, 0, 0, 2**32 - 1]], np.uint32)
    one = np.array([[1, 1, 1, 1]], np.uint32)
    assert_same(mj.ops.hamming_distance(a, one, keepdims=True), np.array([[4], [8], [40]], np.uint32))
    assert mj.ops.hamming_distance(np.array([-1], np.int8), np.array([0], np.int8)) == 8
    c = np.array([[[1, 2, 3]], [[255, 0, 0]]], np.uint8)
    d = np.array([[0, 2, 3], [1, 2, 3], [255, 255, 255], [0, 0, 0]], np.uint8)
    assert_same(mj.ops.hamming_distance(c, d), np.array([[1, 0, 20, 4], [11, 10, 16, 8]], np.uint32))
    assert mj.ops.hamming_distance(np.full(40, 255, np.uint8), np.zeros(40, np.uint8)) == 320


@pytest.mark.parametrize("keepdims", [False, True])
def test_one_row_against_many(device: str, keepdims: bool) -> None:
    many, one = bits(np.uint8, (2, 5, 16), 1), bits(np.uint8, (16,), 2)
    check(many, one, keepdims=keepdims)
    check(one, many, keepdims=keepdims)
    check(many, one[None, None], keepdims=keepdims)
    check(one, one, keepdims=keepdims)
    check(one[None], one, keepdims=keepdims)


def test_arrays_on_the_device_stay_there(device: str) -> None:
    a, b = bits(np.uint16, (3, 4), 1), bits(np.uint16, (4,), 2)
    got = mj.ops.hamming_distance(mj.asarray(a), mj.asarray(b), keepdims=True)
    assert isinstance(got, mj.Array)
    assert_same(got, reference.hamming_distance(a, b, keepdims=True))


U = np.uint8


@pytest.mark.parametrize(
    ("a", "b", "options", "slug", "words"),
    [
        (np.zeros(3, np.float32), np.zeros(3, np.float32), {}, "op-dtype", "float32"),
        (np.zeros(3, np.bool_), np.zeros(3, np.bool_), {}, "op-dtype", "bool"),
        (np.zeros(3, U), np.zeros(3, np.int8), {}, "op-dtype", "int8"),
        (np.zeros(3, U), np.zeros(4, U), {}, "op-shape", "3 and 4"),
        (np.zeros((2, 3), U), np.zeros((4, 3), U), {}, "op-shape", "(2,)"),
        (np.zeros(3, U), np.zeros((2, 3), U), {"pairwise": True}, "op-shape", "2 axes"),
        (np.zeros((), U), np.zeros((), U), {}, "op-shape", "()"),
        (np.zeros(3, U), np.zeros(3, U), {"dtype": np.int32}, "op-dtype", "uint16"),
        (np.zeros(3, U), np.zeros(3, U), {"dtype": "bits"}, "op-dtype", "'bits'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    a: Any, b: Any, options: dict[str, Any], slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        mj.ops.hamming_distance(a, b, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b[*p, k]", "b[*p, k] ^ a[*p, 0]"),
        ("range(K)", "range(max(K - 1, 0))"),
        ("popcount(a[*p, k] ^", "popcount(a[*p, k] |"),
        ("popcount(a", "clz(a"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("bits", old, new)
    with pytest.raises(AssertionError):
        check(bits(np.uint8, (4, 5), 1), bits(np.uint8, (4, 5), 2))
