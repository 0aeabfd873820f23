"""ops.random: the generator's known answers, carries, seeds and states, and what is refused of them."""

from __future__ import annotations

import random as python_random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import Array, assert_same

import metaljit as mj
from metaljit.stdlib_ops.reference import random as reference

random: Any = mj.ops.random  # Any: wrong arguments are passed on purpose
WORD = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 2, 2**32 - 1])
STATES = st.lists(WORD, min_size=6, max_size=6).map(lambda w: np.array(w, np.uint32))
KNOWN = [
    ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words(text: str) -> Array:
    return np.array([int(w, 16) for w in text.split()], np.uint32)


def check(state: Array, shape: tuple[int, ...], dtype: Any = np.uint32) -> None:
    before = state.copy()
    values, after = random.bits(state, shape, dtype)
    want_values, want_after = reference.random_bits(state, shape, dtype)
    assert_same(values, want_values)
    assert_same(after, want_after)
    assert_same(state, before)


@pytest.mark.parametrize(("counter", "key", "want"), KNOWN)
def test_known_answers(device: str, counter: list[int], key: list[int], want: str) -> None:
    state = random.state_from(counter, key)
    assert_same(random.bits(state, 4)[0], words(want))
    assert reference.philox4x32(counter, key) == tuple(int(w) for w in words(want))


@given(STATES, st.sampled_from([(), (0,), (1,), (3,), (4,), (5, 7), (2, 0, 3), (67,)]))
@example(np.array([2**32 - 3, *[2**32 - 1] * 3, 1, 2], np.uint32), (67,))
@example(np.array([2**32 - 3, 2**32 - 1, 5, 6, 1, 2], np.uint32), (67,))
def test_bits_are_the_blocks_from_the_counter_on(device: str, state: Array, shape: tuple[int, ...]) -> None:
    check(state, shape)


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.int64])
@given(STATES, st.sampled_from([(), (1,), (3,), (2, 3)]))
def test_other_integers_are_the_same_bits(
    device: str, dtype: Any, state: Array, shape: tuple[int, ...]
) -> None:
    check(state, shape, dtype)


@given(STATES, st.integers(-(2**57), 2**57) | st.sampled_from([0, 1, -1, 2**56, -(2**56), 2**24, 2**24 - 1]))
def test_skip_moves_by_256_blocks_a_value(device: str, state: Array, count: int) -> None:
    assert_same(random.skip(state, count), reference.skipped(state, 256 * count % 2**64))


def test_skip_drops_the_carry_that_tensorflow_drops(device: str) -> None:
    state = random.state_from([256, 0], 9)
    assert_same(random.skip(state, -1), random.state_from([0, 0], 9))
    assert_same(random.skip(random.state_from([0, 0], 9), -1), random.state_from([-256, 0], 9))


def test_a_stream_goes_on(device: str) -> None:
    state = random.philox_state(7)
    first, state = random.bits(state, 5)
    second, _ = random.bits(state, 5)
    assert (first != second).any()
    assert_same(second, random.bits(random.state_from(7 + 5 * 256, 0), 5)[0])


def test_a_state_on_the_device_gives_values_there(device: str) -> None:
    state = random.philox_state(3)
    values, after = random.bits(mj.asarray(state), (2, 3), np.uint64)
    assert isinstance(values, mj.Array)
    assert isinstance(after, mj.Array)
    want, want_after = reference.random_bits(state, (2, 3), np.uint64)
    assert_same(values, want)
    assert_same(after, want_after)


def as_int64(state: Any) -> list[int]:
    return [int(w) for w in np.asarray(state).view(np.int64)]


@pytest.mark.parametrize(
    ("seed", "want"),
    [
        (1234, [1234, 0, 0]),
        (-1, [-1, -1, -1]),
        (2**128 * 5 + 2**64 * 3 + 2, [2, 3, 5]),
        ([7], [0, 0, 7]),
        ((7, 8), [0, 7, 8]),
        (np.array([1, -2, 3, 4]), [1, -2, 3]),
    ],
)
def test_tensorflow_seeds(seed: Any, want: list[int]) -> None:
    assert as_int64(random.philox_state(seed)) == want


def test_other_conventions(device: str) -> None:
    mpsgraph = random.philox_state(2069102477, convention="mpsgraph")
    assert as_int64(mpsgraph) == [149709389795223126, -5820494845676086657, 5952859558996586250]
    assert_same(
        random.philox_state(2**32 + 5, convention="mpsgraph"), random.philox_state(5, convention="mpsgraph")
    )
    assert as_int64(random.philox_state((5, -7), convention="legacy")) == [0, -7, 5]
    assert as_int64(random.philox_state(5, convention="legacy")) == [0, 0, 5]
    first, _ = random.uniform(random.philox_state((1, 2), convention="stateless"), ())
    assert first == pytest.approx(0.8440604, abs=1e-7)  # tf.random.stateless_uniform(seed=[1, 2])


@pytest.mark.parametrize(
    ("seed", "want"),
    [
        ((99, 3), (99, 3)),
        ((0, 0), (0, 2**31 - 1)),
        ((2**31 - 1, 2**31 - 1), (0, 2**31 - 1)),
        ((2**31 + 5, -1), (6, 2**31 - 2)),
        ((None, 2022), (87654321, 2022)),
    ],
)
def test_the_seeds_of_an_op_after_set_seed(seed: Any, want: tuple[int, int]) -> None:
    assert_same(
        random.philox_state(seed, convention="set_seed"), random.philox_state(want, convention="legacy")
    )


def test_ops_without_a_seed_take_the_next_one() -> None:
    drawn = python_random.Random(99)
    for k in range(3):
        want = random.philox_state((99, drawn.randint(0, 2**31 - 1)), convention="legacy")
        assert_same(random.philox_state((99, None, k), convention="set_seed"), want)
    assert_same(
        random.philox_state((99, None), convention="set_seed"),
        random.philox_state((99, None, 0), convention="set_seed"),
    )


@pytest.mark.parametrize(
    ("seed", "state", "words", "first"),
    [
        (
            0,
            [1, -1074162815, 733700828, -556347614, 413913109, -919985179, -1815467615],
            "cc0ca6b1 fe3f467a 68ab5d48 57372f14",
            [0.09883702, 0.49433827, 0.33878422, 0.4311242],
        ),
        (
            2022,
            [1, 1854655703, -287349814, 659402600, 1002012083, 2028919963, -1334932625],
            "43bcf55a db1d4ca1 7719a997 92ae5b3e",
            [0.47623754, 0.22890103, 0.20048797, 0.3621595],
        ),
    ],
)
def test_mpsgraphs_seeds_and_layout(seed: int, state: list[int], words: str, first: list[float]) -> None:
    found = random.philox_state(seed, convention="mpsgraph")
    layout = random.to_mpsgraph(found)
    assert_same(layout, np.array(state, np.int32))
    assert_same(random.from_mpsgraph(layout), found)
    assert_same(random.to_mpsgraph(mj.asarray(found)), layout)
    assert_same(random.bits(found, 4)[0], np.array([int(w, 16) for w in words.split()], np.uint32))
    np.testing.assert_allclose(random.uniform(found, 4)[0], first, atol=1e-7)


def test_states_from_counter_and_key() -> None:
    assert random.state_from([1, 2, 3, 4], [5, 6]).tolist() == [1, 2, 3, 4, 5, 6]
    assert as_int64(random.state_from([-1, 2], -3)) == [-1, 2, -3]
    assert as_int64(random.state_from(2**64 + 1, 2**64 - 1)) == [1, 1, -1]


@pytest.mark.parametrize(
    ("call", "slug", "said"),
    [
        (lambda: random.bits(np.zeros(6, np.int32), 3), "op-dtype", "int32"),
        (lambda: random.bits(np.zeros(7, np.uint32), 3), "op-shape", "(7,)"),
        (lambda: random.bits(np.zeros(6, np.uint32), (2, -1)), "op-argument", "-1"),
        (lambda: random.bits(np.zeros(6, np.uint32), 2.5), "op-argument", "2.5"),
        (lambda: random.bits(np.zeros(6, np.uint32), 3, np.float32), "op-dtype", "float32"),
        (lambda: random.skip(np.zeros(6, np.uint32), 1.5), "op-argument", "1.5"),
        (lambda: random.state_from(2**128, 0), "op-argument", "128 bits"),
        (lambda: random.state_from([1, 2, 3], 0), "op-argument", "3 words"),
        (lambda: random.state_from(0, [1, -(2**40)]), "op-argument", "32 bits"),
        (lambda: random.philox_state(1.5), "op-argument", "1.5"),
        (lambda: random.philox_state([2**65]), "op-argument", "64 bits"),
        (lambda: random.philox_state(3, convention="stateless"), "op-argument", "pair"),
        (lambda: random.philox_state((0, 0), convention="legacy"), "op-argument", "(0, 0)"),
        (lambda: random.philox_state([1], convention="mpsgraph"), "op-argument", "one number"),
        (lambda: random.philox_state(1, convention="numpy"), "op-argument", "'numpy'"),
        (lambda: random.philox_state(1, convention="set_seed"), "op-argument", "(global, op)"),
        (lambda: random.philox_state((1, 2, 3), convention="set_seed"), "op-argument", "(1, 2, 3)"),
        (lambda: random.philox_state((None, None), convention="set_seed"), "op-argument", "differ each time"),
        (lambda: random.philox_state((1, None, -1), convention="set_seed"), "op-argument", "-1"),
        (lambda: random.to_mpsgraph(np.zeros(5, np.uint32)), "op-shape", "(5,)"),
        (lambda: random.from_mpsgraph(np.zeros(7, np.uint32)), "op-dtype", "uint32"),
        (lambda: random.from_mpsgraph(np.zeros(6, np.int32)), "op-shape", "(7,)"),
        (lambda: random.from_mpsgraph(np.zeros(7, np.int32)), "op-argument", "begins with 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, said: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert said in str(caught.value)


def test_the_block_function_is_there_for_other_kernels(device: str, tmp_path: Path) -> None:
    file = tmp_path / "dice.mjk"
    file.write_text(
        '''"""Dice."""
from stdlib.random import philox4x32

@kernel
def dice(seed: u32, n: i32) -> i32[n]:
    i = position()
    return i32(philox4x32(u32x4(u32(i), 0, 0, 0), u32x2(seed, 0)).x % 6) + 1
'''
    )
    want = [reference.philox4x32([i, 0, 0, 0], [5, 0])[0] % 6 + 1 for i in range(40)]
    assert mj.load_kernels(file).dice(5, 40).tolist() == want


MUTANTS = [
    ("c2 * 0xCD9E8D57", "c0 * 0xCD9E8D57"),
    ("^ c1 ^ k0", "^ c1 ^ k1"),
    ("range(10)", "range(9)"),
    ("u32(high) + u32(c0 < n)", "u32(high)"),
    ("u32(c1 < more)", "0"),
    ("u32(c2 < counter[2])", "0"),
    ("u32(c1 < high)", "0"),
]


@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("random", old, new)
    with pytest.raises(AssertionError):
        check(np.array([2**32 - 3, *[2**32 - 1] * 3, 1, 2], np.uint32), (67,))


@pytest.mark.skipif(sys.byteorder != "little", reason="the words of a 64-bit number lie the other way round")
def test_the_state_is_tensorflows_in_memory() -> None:
    assert random.philox_state(2**64 * 2 + 1).view(np.int64).tolist() == [1, 2, 0]
