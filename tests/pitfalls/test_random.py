"""Streams of random numbers: the generator, its seeds, its state."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from every_type import code

import metaljit as mj

F = np.float32

PHILOX = """
from stdlib.random import philox4x32

N = dims("N")

@kernel
def blocks(counter: u32x4[N], key: u32x2[N]) -> u32x4[N]:
    i = position()
    return philox4x32(counter[i], key[i])
"""

KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text: str) -> list[int]:
    return [int(w, 16) for w in text.split()]


def test_philox_known_answers(place: str) -> None:
    """A user's own kernel and the op give the published words: no swapped halves, no key that moves too early."""
    kernel = mj.kernel_from_text(PHILOX)
    counters, keys, wanted = (np.array([words(row[k]) for row in KNOWN], np.uint32) for k in range(3))
    np.testing.assert_array_equal(kernel(counters, keys), wanted)
    for counter, key, want in zip(counters.tolist(), keys.tolist(), wanted, strict=True):
        values, _ = mj.ops.random.bits(mj.ops.random.state_from(counter, key), 4)
        np.testing.assert_array_equal(values, want)


def test_no_product_of_64_bits_is_needed() -> None:
    text = mj.kernel_from_text(PHILOX).msl(mj.spec((None, 4), np.uint32), mj.spec((None, 2), np.uint32))
    assert "mulhi" in text
    assert not re.search(r"\bu?long\b", "\n".join(code(text[text.index("philox4x32") :])))


def uniform(values: Any) -> Any:
    """TensorFlow's float32 in [0, 1) of a word: its lowest 23 bits are the mantissa."""
    return ((values & 0x7FFFFF) | 0x3F800000).view(F) - F(1)


def normal(values: Any) -> Any:
    """TensorFlow's normals of words, in pairs; the sine comes first."""
    u = uniform(values).reshape(-1, 2)
    radius = np.sqrt(F(-2) * np.log(np.maximum(u[:, 0], F(1e-7))))
    angle = F(2 * np.pi) * u[:, 1]
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], 1).reshape(-1)


def test_a_stateless_seed_is_scrambled_exactly_once(place: str) -> None:
    random = mj.ops.random
    values, _ = random.bits(random.philox_state([1, 2], convention="stateless"), 8)
    wanted = [0.8440604, 0.19204533, 0.9962232, 0.1603874, 0.27199018, 0.649346, 0.10694444, 0.06516242]
    np.testing.assert_array_equal(uniform(values), np.array(wanted, F))
    values, _ = random.bits(random.philox_state([0, 0], convention="stateless"), 5)
    wanted = [0.21101546, 0.70601, 0.8000634, 0.77079225, 0.38858867]
    np.testing.assert_array_equal(uniform(values), np.array(wanted, F))


def test_words_pair_up_in_the_order_that_tensorflow_documents(place: str) -> None:
    random = mj.ops.random
    values, _ = random.bits(random.philox_state((5, 1), convention="legacy"), 4)
    np.testing.assert_allclose(normal(values), [-1.3768897, -0.01258316, -0.169515, 1.0824056], rtol=2e-6)
    values, _ = random.bits(random.philox_state([1, 2], convention="stateless"), 6)
    wanted = [0.5441101, 0.20738031, 0.07356433, 0.04643455, -1.3015898, -0.95385665]
    np.testing.assert_allclose(normal(values), wanted, rtol=2e-6)


def test_a_stream_goes_on_and_a_seed_begins_it_again(place: str) -> None:
    random = mj.ops.random
    start = random.philox_state(7)
    kept = start.copy()
    first, state = random.bits(start, 4)
    second, later = random.bits(state, 4)
    again, _ = random.bits(random.philox_state(7), 4)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(start, kept)
    assert not np.intersect1d(first, second).size
    np.testing.assert_array_equal(random.skip(start, 8), later)
    np.testing.assert_array_equal(random.skip(random.state_from(5, 9), 3), random.state_from(5 + 3 * 256, 9))
    eight, _ = random.bits(start, 8)
    np.testing.assert_array_equal(eight[:4], first)
    assert not np.array_equal(eight[4:], second)  # a value owns 256 blocks, as in TensorFlow


def test_a_counter_carries_into_all_its_words(place: str) -> None:
    random = mj.ops.random
    for counter in (
        [2**32 - 1, 0, 0, 0],
        [2**32 - 1, 2**32 - 1, 0, 0],
        [2**32 - 1] * 3 + [5],
        [2**32 - 1] * 4,
    ):
        number = sum(w << (32 * k) for k, w in enumerate(counter))
        values, _ = random.bits(random.state_from(counter, 3), 8)
        following, _ = random.bits(random.state_from((number + 1) % 2**128, 3), 4)
        np.testing.assert_array_equal(values[4:], following)


def test_random_words_reach_a_strided_output(place: str) -> None:
    state = mj.ops.random.philox_state(3)
    wanted = mj.stdlib.random.blocks(state, 5)
    store = np.zeros((10, 8), np.uint32)
    out = store[::2, ::2]
    assert mj.stdlib.random.blocks(state, 5, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    assert np.count_nonzero(store) == np.count_nonzero(wanted)
    assert not store[1::2].any()
