"""Bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def hamming_distance(
    a: Array, b: Array, *, dtype: Any = np.uint32, keepdims: bool = False, pairwise: bool = False
) -> Array:
    if pairwise:
        a, b = a[..., :, None, :], b[..., None, :, :]
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    differing = np.bitwise_count(a.view(unsigned) ^ b.view(unsigned))
    counts: Array = differing.sum(-1, dtype=np.uint64, keepdims=keepdims).astype(dtype)
    return counts
