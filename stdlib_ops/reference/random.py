"""Random numbers: floats are computed in double precision where TensorFlow's are, and rounded where its are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from statistics import NormalDist
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array

MASK = 0xFFFFFFFF


def philox4x32(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """One block, in Python's integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & MASK, a >> 32 ^ c3 ^ k1, a & MASK
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return c0, c1, c2, c3


def blocks(state: Array, n: int) -> Array:
    """`n` blocks from the state's counter on."""
    words = [int(w) for w in state]
    start = sum(w << 32 * k for k, w in enumerate(words[:4]))
    made = [philox4x32([(start + i) >> 32 * k & MASK for k in range(4)], words[4:]) for i in range(n)]
    return np.array(made, np.uint32).reshape(n, 4)


def random_bits(state: Array, shape: Sequence[int], dtype: Any = np.uint32) -> tuple[Array, Array]:
    count, kind = int(np.prod(shape)), np.dtype(dtype)
    stream = blocks(state, -(-count * kind.itemsize // 16)).astype("<u4").reshape(-1)
    values = stream.view(kind.newbyteorder("<")).astype(kind)[:count].reshape(tuple(shape))
    return values, skipped(state, 256 * count)


def words(state: Array, shape: Sequence[int]) -> Array:
    return random_bits(state, shape)[0]


def units(words: Array, dtype: Any = np.float32) -> Array:
    """Numbers in [0, 1) of the lowest bits, as many as the type's fraction has."""
    bits = {"float32": 23, "float16": 10, "bfloat16": 7}[np.dtype(dtype).name]
    return np.asarray((words & np.uint32(2**bits - 1)) / 2**bits, dtype)


def uniform(state: Array, shape: Sequence[int], low: Any, high: Any, dtype: Any = np.float32) -> Array:
    low, high = (np.asarray(v).astype(dtype) for v in (low, high))
    return np.asarray(units(words(state, shape), dtype) * (high - low) + low)


def box_muller(pairs: Array) -> Array:
    """Two normal numbers for each two words, in float32."""
    u = np.maximum(units(pairs[..., 0]), np.float32(1e-7)).astype(np.float64)
    angle = (2 * np.pi * units(pairs[..., 1]).astype(np.float64)).astype(np.float32).astype(np.float64)
    radius = np.sqrt(-2 * np.log(u))
    return np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1).astype(np.float32)


def normals(state: Array, n: int) -> Array:
    pairs = blocks(state, -(-n // 4)).reshape(-1, 2)
    return box_muller(pairs).reshape(-1)[:n]


def truncated_normals(state: Array, n: int) -> Array:
    groups = [_within(_candidates(skipped(state, 256 * g))) for g in range(-(-n // 4))]
    return np.array(groups, np.float32).reshape(-1)[:n]


def _candidates(state: Array) -> Iterator[float]:
    for k in count():
        yield from box_muller(blocks(skipped(state, k), 1).reshape(2, 2)).reshape(-1)


def _within(candidates: Iterator[float]) -> list[float]:
    kept: list[float] = []
    while len(kept) < 4:
        kept += [z for z in (next(candidates), next(candidates)) if abs(z) < 2]
    return kept[:4]


def inverse_normals(state: Array, n: int, low: float, high: float) -> Array:
    """By the inverse of the distribution, between bounds in standard deviations."""
    normal = NormalDist()
    below, above = (normal.cdf(v) for v in (low, high))
    u = np.maximum(units(words(state, (n,))), np.float32(1e-7)).astype(np.float64)
    return np.array([normal.inv_cdf(min(below + v * (above - below), 1 - 2**-53)) for v in u])


def scaled(normals: Array, mean: Any, stddev: Any, dtype: Any = np.float32) -> Array:
    mean, stddev = (np.asarray(v).astype(dtype) for v in (mean, stddev))
    return np.asarray(normals.astype(dtype) * stddev + mean)


def integers(state: Array, shape: Sequence[int], low: int, many: int, dtype: Any = np.int32) -> Array:
    kind = np.dtype(dtype)
    found = random_bits(state, shape, np.dtype(f"u{kind.itemsize}"))[0]
    width = 8 * kind.itemsize
    values = [(low + int(v) % many) % 2**width for v in found.reshape(-1)]
    return np.array(values, np.dtype(f"u{kind.itemsize}")).astype(kind).reshape(tuple(shape))


def dropout(x: Array, rate: float, state: Array, scale: bool = True) -> Array:
    factor = 1 / (1 - rate) if scale else 1.0
    kept = (x.astype(np.float32) * np.float32(factor)).astype(x.dtype)
    return np.where(units(words(state, x.shape)) < np.float32(rate), x.dtype.type(0), kept)


def split(state: Array, n: int) -> Array:
    found = np.zeros((n, 6), np.uint32)
    found[:, 4:] = blocks(state, -(-n // 2)).reshape(-1, 2)[:n]
    return found


def skipped(state: Array, n: int) -> Array:
    """TensorFlow's addition of `n` (64 bits) to the counter; it drops one carry, as the kernel says."""
    c = [int(w) for w in state]
    low, high = n & MASK, n >> 32 & MASK
    c[0] += low
    high = high + (c[0] >> 32) & MASK
    c[1] += high
    carry = (c[2] + (c[3] << 32)) + (c[1] >> 32)
    c[2], c[3] = carry, carry >> 32
    return np.array([w & MASK for w in c], np.uint32)
