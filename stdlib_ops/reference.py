"""What each op means, in NumPy alone: slow, plain, and sharing nothing with the kernels.

In: NumPy arrays and the op's arguments. Out: NumPy arrays. Arguments are not checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
MASK = 0xFFFFFFFF


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that 16-bit floats and small integers are computed in."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype({"u": np.uint32, "i": np.int32}.get(dtype.kind, np.float32))


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


def hamming_distance(
    a: Array, b: Array, *, dtype: Any = np.uint32, keepdims: bool = False, pairwise: bool = False
) -> Array:
    if pairwise:
        a, b = a[..., :, None, :], b[..., None, :, :]
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    differing = np.bitwise_count(a.view(unsigned) ^ b.view(unsigned))
    counts: Array = differing.sum(-1, dtype=np.uint64, keepdims=keepdims).astype(dtype)
    return counts


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
