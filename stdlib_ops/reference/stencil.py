"""Stencils."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array, wide


def bordered(x: Array, mode: str, value: Any, axis: int, width: int) -> Array:
    """`x` with `width` elements more on each side of an axis that is not empty."""
    n = x.shape[axis]
    at = np.arange(-width, n + width)
    turns, inside = at // n, (at >= 0) & (at < n)
    match mode:
        case "edge":
            source = np.clip(at, 0, n - 1)
        case "reflect":
            period = max(2 * (n - 1), 1)
            source = np.minimum(at % period, period - at % period) if n > 1 else np.zeros_like(at)
        case "symmetric":
            source = np.minimum(at % (2 * n), 2 * n - 1 - at % (2 * n))
        case _:
            source = at % n
    result = np.take(x, source, axis)
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    if mode == "constant":
        result = np.where(inside.reshape(shape), result, np.asarray(value, x.dtype))
    if mode == "antiperiodic":
        result = np.where((turns % 2).reshape(shape), -result, result)
    return result


def laplacian(x: Array, *, mode: Any = "reflect", value: Any = 0, axes: Sequence[int] | None = None) -> Array:
    chosen = range(x.ndim) if axes is None else axes
    modes = (mode,) * x.ndim if isinstance(mode, str) else tuple(mode)
    if not x.size:
        return x.copy()
    total = np.zeros(x.shape, wide(x.dtype))
    centre = x.astype(total.dtype)
    with np.errstate(all="ignore"):
        for axis in chosen:
            padded = bordered(x, modes[axis], value, axis, 1).astype(total.dtype)
            n = x.shape[axis]
            total += padded.take(range(n), axis) + padded.take(range(2, n + 2), axis)
        total -= total.dtype.type(2 * len(chosen)) * centre
        return total.astype(x.dtype)
