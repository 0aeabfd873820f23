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


def windows(
    x: Array, size: Sequence[int], mode: str, value: Any, before: Sequence[int], stride: Any, dilation: Any
) -> Array:
    """The taps of each window of the last axes, on as many more axes at the end; windows as "same" has them."""
    count = len(size)
    first = x.ndim - count
    found, start = x, []
    for k in range(count):
        room = x.shape[first + k] + dilation * size[k] + abs(before[k])
        found = bordered(found, mode, value, first + k, room)
        start.append(room - before[k])
    parts = np.lib.stride_tricks.sliding_window_view(
        found, [(n - 1) * dilation + 1 for n in size], tuple(range(first, x.ndim))
    )
    at = [slice(s, s + n, stride) for s, n in zip(start, x.shape[first:], strict=True)]
    taps = [slice(None, None, dilation)] * count
    where: Any = (..., *at, *taps)
    return np.asarray(parts[where])


def stencil(
    x: Array,
    weights: Array,
    *,
    reduction: str = "sum",
    mode: str = "constant",
    value: Any = 0,
    stride: int = 1,
    dilation: int = 1,
) -> Array:
    """With padding "same" of stride 1."""
    before = [(n - 1) * dilation // 2 for n in weights.shape]
    taps = windows(x, weights.shape, mode, value, before, stride, dilation).astype(np.float64) * weights
    flat = taps.reshape(*taps.shape[: x.ndim], -1)
    if reduction in ("argmin", "argmax"):
        return np.asarray(getattr(flat, reduction)(-1), np.int32)
    return np.asarray(getattr(flat, reduction)(-1).astype(x.dtype))
