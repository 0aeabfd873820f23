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


def window_elements(
    shape: Sequence[int],
    axes: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    before: Sequence[int],
    place: Sequence[int],
) -> list[tuple[int, ...]]:
    """Where the taps of the window at `place` stand, those outside of the array too."""
    found = []
    for taps in itertools.product(*map(range, size)):
        at = list(place)
        for k, axis in enumerate(axes):
            at[axis] = place[axis] * stride[k] - before[k] + taps[k] * dilation[k]
        found.append(tuple(at))
    return found


def brought_back(values: Array, positions: Array, shape: Sequence[int], sums: bool) -> Array:
    """Values at row-major positions of an array of a shape; equal positions add up, or the last one counts."""
    total = np.zeros(int(np.prod(shape)), np.float64)
    for v, at in zip(values.reshape(-1), positions.reshape(-1), strict=True):
        total[at] = v + total[at] if sums else v
    return total.reshape(shape)


def averages(
    x: Array,
    axes: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    before: Sequence[int],
    after: Sequence[int],
    counts: Sequence[int],
    included: bool = True,
    divisor: float | None = None,
) -> tuple[Array, Array]:
    """The means, and the matrix that makes them of the elements of `x`, in row-major order."""
    shape = list(x.shape)
    for axis, n in zip(axes, counts, strict=True):
        shape[axis] = n
    matrix = np.zeros((int(np.prod(shape)), x.size))
    for row, place in enumerate(np.ndindex(*shape)):
        elements = window_elements(x.shape, axes, size, stride, dilation, before, place)
        inside = [at for at in elements if all(0 <= i < n for i, n in zip(at, x.shape, strict=True))]
        ends = [n + (dict(zip(axes, after, strict=True)).get(k, 0)) for k, n in enumerate(x.shape)]
        wide = [at for at in elements if all(i < n for i, n in zip(at, ends, strict=True))]
        count = divisor if divisor is not None else len(wide if included else inside)
        for at in inside:
            matrix[row, np.ravel_multi_index(at, x.shape)] += 1 / count
    return (matrix @ x.reshape(-1).astype(np.float64)).reshape(shape), matrix
