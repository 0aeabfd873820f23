"""Random numbers."""

from __future__ import annotations

from collections.abc import Sequence
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
