"""Matrix products."""

from __future__ import annotations

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def matmul(a: Array, b: Array) -> Array:
    """In float64, or in the integers, which wrap."""
    kind = np.result_type(a.dtype, b.dtype)
    if kind.kind in "uib":
        return np.asarray(np.matmul(a, b))
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)), kind)
