"""Pooling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def max_pool(
    x: Array,
    axes: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    before: Sequence[int],
    counts: Sequence[int],
    index: Callable[[tuple[int, ...], tuple[int, ...]], int],
    nan: str = "propagate",
) -> tuple[Array, Array]:
    """Values and indices. `counts` is the number of windows along each pooled axis.

    `index` makes an index of a position in `x` and a place in the window, which has an entry for each axis of `x`.
    """
    shape = list(x.shape)
    for axis, n in zip(axes, counts, strict=True):
        shape[axis] = n
    values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int32)
    for place in np.ndindex(*shape):
        found: tuple[Any, int] | None = None
        for taps in itertools.product(*map(range, size)):
            at, within = list(place), [0] * x.ndim
            for k, axis in enumerate(axes):
                at[axis] = place[axis] * stride[k] - before[k] + taps[k] * dilation[k]
                within[axis] = taps[k]
            if any(not 0 <= i < n for i, n in zip(at, x.shape, strict=True)):
                continue
            v = x[tuple(at)]
            if found is None or v > found[0] or (nan == "propagate" and v != v):
                found = v, index(tuple(at), tuple(within))
        assert found is not None
        values[place], indices[place] = found
    return values, indices


def max_pool_index(mode: str, shape: Sequence[int], window: Sequence[int]) -> Callable[..., int]:
    """The `index` of a mode, for an array of that shape and a window with an extent for each of its axes."""
    n = int(mode[-2])

    def index(at: tuple[int, ...], within: tuple[int, ...]) -> int:
        places, extents = (at, shape) if mode.startswith("global") else (within, window)
        total = 0
        for place, extent in list(zip(places, extents, strict=True))[-n:]:
            total = total * extent + place
        return total

    return index


def window_counts(
    n: int, size: int, stride: int, dilation: int, padding: Any, ceil_mode: bool
) -> tuple[int, int]:
    """(elements before the input, windows) along an axis of n elements, from the rules as they are written down."""
    reach = (size - 1) * dilation + 1
    if padding in ("same", "same_lower"):
        count = -(-n // stride)
        total = max((count - 1) * stride + reach - n, 0)
        return total // 2 if padding == "same" else -(-total // 2), count
    before, after = (0, 0) if padding == "valid" else padding
    free = n + before + after - reach
    if not ceil_mode:
        return before, free // stride + 1
    count = -(-free // stride) + 1
    if (count - 1) * stride >= n + before:
        count -= 1
    return before, count
