"""Filters of images, along all axes of an array or some; the kernels are in image.mjk.

In: arrays, sizes and modes. Out: what the kernels return. Filters of several axes work along one after the other, where
that is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from math import exp, prod
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    SIGNED,
    Operand,
    axes_of,
    check_array,
    is_float,
    refuse,
    whole,
)
from metaljit.stdlib_ops.stencil_windows import MODES, windows

_LONGEST_NETWORK = 1024  # comparisons; unrolled
_MOST_TAPS = 1024
_MOST_BINS = 4096

Sizes = int | Sequence[int]


def gaussian_blur(
    x: Operand,
    sigma: float | Sequence[float],
    *,
    truncate: float = 4.0,
    mode: str = "reflect",
    value: Any = 0,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """Weighted means with weights `exp(-k² / (2 sigma²))`, along one axis after the other.

    x: array of floats.
    sigma: standard deviation in elements, for all axes or one for each; 0 leaves an axis as it is.
    truncate: how many standard deviations the weights reach; to k = int(truncate * sigma + 0.5).
    mode, value: what stands outside, as in `ops.laplacian`.
    axes: along which it works, all if None.

    Returns an array of the shape and dtype of `x`, computed in 32 bits.
    Raises TypeFault for other dtypes, LaunchFault for other arguments that make no sense.
    Compare: PyTorch `torchvision.transforms.functional.gaussian_blur`; SciPy `ndimage.gaussian_filter`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.gaussian_blur(np.eye(3, dtype=np.float32), 0.5, truncate=2).round(2)
    array([[0.66, 0.25, 0.05],
           [0.25, 0.64, 0.25],
           [0.05, 0.25, 0.66]], dtype=float32)
    """
    check_array("gaussian_blur", "x", x, FLOATS, "floats")
    chosen = _checked("gaussian_blur", x, mode, axes)
    sigmas = tuple(sigma) if isinstance(sigma, Sequence) else (sigma,) * len(chosen)
    if len(sigmas) != len(chosen) or any(not 0 <= s < np.inf for s in sigmas) or not 0 <= truncate < np.inf:
        refuse(
            "gaussian_blur",
            f"`sigma` takes a number for each of {len(chosen)} axes, at least 0, and got {sigma!r}",
        )
    bells = [bell(float(s), float(truncate)) for s in sigmas]
    steps = tuple((axis, w) for axis, w in zip(chosen, bells, strict=True) if len(w) > 1)
    weights = [np.array(w, np.float32) for _, w in steps]
    return _blurred(x, weights, _value(mode, value), mode, tuple((axis, len(w)) for axis, w in steps))


@lru_cache(maxsize=256)
def bell(sigma: float, truncate: float) -> tuple[float, ...]:
    """The weights of a Gaussian, which sum to 1."""
    reach = int(truncate * sigma + 0.5) if sigma > 0 else 0
    heights = [exp(-0.5 * (k / sigma) ** 2) if k else 1.0 for k in range(-reach, reach + 1)]
    total = sum(heights)
    return tuple(h / total for h in heights)


@mj.jit(static=["mode", "steps"])
def _blurred(x: Any, weights: Any, value: Any, mode: str, steps: tuple[tuple[int, int], ...]) -> Any:
    y = x.astype(np.float32)
    for (axis, size), w in zip(steps, weights, strict=True):
        y = mj.stdlib.image.weighted(y, w, mode, value, axis, size)
    return y.astype(x.dtype)


def sobel(x: Operand, axis: int | None = None, *, mode: str = "reflect", value: Any = 0) -> Any:
    """The derivative along `axis`, -1, 0, 1, smoothed along all others by 1, 2, 1; or the steepness.

    x: array of floats or signed integers.
    axis: None: the root of the mean of the squares of the derivatives along all axes, each divided by the sum of its
        smoothing weights; of floats only.
    mode, value: what stands outside, as in `ops.laplacian`.

    Returns an array of the shape and dtype of `x`. Floats are computed in 32 bits, integers wrap.
    Raises TypeFault for other dtypes, LaunchFault for an axis or a mode that does not exist.
    Compare: MPSGraph `stencil`; TensorFlow `tf.image.sobel_edges`; SciPy `ndimage.sobel`; scikit-image
    `filters.sobel` without `axis`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> x = np.repeat([[0, 0, 1, 1]], 3, axis=0).astype(np.float32)
    >>> ops.sobel(x, axis=1)[1]
    array([0., 4., 4., 0.], dtype=float32)
    >>> ops.sobel(x)[1].round(3)
    array([0.   , 0.707, 0.707, 0.   ], dtype=float32)
    """
    return _steepness("sobel", x, axis, mode, value, (1, 2, 1))


def prewitt(x: Operand, axis: int | None = None, *, mode: str = "reflect", value: Any = 0) -> Any:
    """As `ops.sobel`, smoothed by 1, 1, 1.

    x, axis, mode, value: as there.

    Returns an array of the shape and dtype of `x`.
    Raises what `ops.sobel` raises.
    Compare: SciPy `ndimage.prewitt`; scikit-image `filters.prewitt` without `axis`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.prewitt(np.array([[0, 1, 2], [0, 1, 2]], np.float32), axis=1)
    array([[0., 6., 0.],
           [0., 6., 0.]], dtype=float32)
    """
    return _steepness("prewitt", x, axis, mode, value, (1, 1, 1))


def _steepness(op: str, x: Any, axis: Any, mode: str, value: Any, smooth: tuple[int, ...]) -> Any:
    what = "floats" if axis is None else "floats or signed integers"
    check_array(op, "x", x, FLOATS if axis is None else SIGNED, what)
    _checked(op, x, mode, None)
    rank = len(x.shape)
    if axis is None:
        return _slope(x, _value(mode, value), mode, smooth)
    return _derivative(x, _value(mode, value), mode, axes_of(op, axis, rank)[0], smooth)


@mj.jit(static=["mode", "axis", "smooth"])
def _derivative(x: Any, value: Any, mode: str, axis: int, smooth: tuple[int, ...]) -> Any:
    y = x.astype(np.float32) if is_float(x.dtype) else x
    y = mj.stdlib.image.combined(y, (-1, 0, 1), mode, value, axis)
    for k in range(x.ndim):
        if k != axis:
            y = mj.stdlib.image.combined(y, smooth, mode, value, k)
    return y.astype(x.dtype)


@mj.jit(static=["mode", "smooth"])
def _slope(x: Any, value: Any, mode: str, smooth: tuple[int, ...]) -> Any:
    squares = []
    for axis in range(x.ndim):
        y = mj.stdlib.image.combined(x.astype(np.float32), (-1, 0, 1), mode, value, axis)
        for k in range(x.ndim):
            if k != axis:  # outside of an array that continues as one value, the derivative is 0
                y = mj.stdlib.image.combined(y, smooth, mode, 0, k)
        y = y * np.float32(1 / sum(smooth) ** (x.ndim - 1))
        squares.append(y * y)
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    return np.sqrt(total * np.float32(1 / x.ndim)).astype(x.dtype)


def maximum_filter(
    x: Operand,
    size: Sizes = 3,
    *,
    mode: str = "reflect",
    value: Any = 0,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The largest of the `size` neighbours of each element, itself being number `size // 2`.

    x: array of numbers.
    size: for all axes or one for each.
    mode, value: what stands outside, as in `ops.laplacian`.
    axes: along which it works, all if None.

    Returns an array of the shape and dtype of `x`. NaN wins.
    Raises TypeFault for other dtypes, LaunchFault for other arguments that make no sense.
    Compare: MPSGraph `maxPooling4D` with stride 1; SciPy `ndimage.maximum_filter`; OpenCV `dilate`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.maximum_filter(np.array([1, 5, 2, 0, 0], np.uint8))
    array([5, 5, 5, 2, 0], dtype=uint8)
    """
    return _filtered("maximum_filter", _largest, x, size, mode, value, axes)


def minimum_filter(
    x: Operand,
    size: Sizes = 3,
    *,
    mode: str = "reflect",
    value: Any = 0,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The smallest of the `size` neighbours of each element, as `ops.maximum_filter` does the largest.

    x, size, mode, value, axes: as there.

    Returns an array of the shape and dtype of `x`. NaN wins.
    Raises what `ops.maximum_filter` raises.
    Compare: SciPy `ndimage.minimum_filter`; OpenCV `erode`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.minimum_filter(np.array([1, 5, 2, 0, 0], np.uint8))
    array([1, 1, 0, 0, 0], dtype=uint8)
    """
    return _filtered("minimum_filter", _smallest, x, size, mode, value, axes)


def uniform_filter(
    x: Operand,
    size: Sizes = 3,
    *,
    mode: str = "reflect",
    value: Any = 0,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The mean of the `size` neighbours of each element, itself being number `size // 2`.

    x, size, mode, value, axes: as in `ops.maximum_filter`.

    Returns an array of the shape and dtype of `x`. Of integers the mean along each axis is rounded toward zero.
    Raises what `ops.maximum_filter` raises.
    Compare: MPSGraph `avgPooling4D` with stride 1; SciPy `ndimage.uniform_filter`; OpenCV `blur`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.uniform_filter(np.array([0, 3, 6, 0], np.float32), mode="edge")
    array([1., 3., 3., 2.], dtype=float32)
    """
    return _filtered("uniform_filter", _mean, x, size, mode, value, axes)


Steps = tuple[tuple[int, int], ...]


def _filtered(
    op: str, kernel: Callable[..., Any], x: Any, size: Any, mode: str, value: Any, axes: Any
) -> Any:
    check_array(op, "x", x, NUMBERS, "numbers")
    chosen = _checked(op, x, mode, axes)
    steps = tuple((axis, n) for axis, n in zip(chosen, _sizes(op, size, len(chosen)), strict=True) if n > 1)
    return kernel(x, _value(mode, value), mode, steps)


@mj.jit(static=["mode", "steps"])
def _largest(x: Any, value: Any, mode: str, steps: Steps) -> Any:
    for axis, n in steps:
        x = mj.stdlib.image.extreme(x, mode, value, axis, n, True)
    return x


@mj.jit(static=["mode", "steps"])
def _smallest(x: Any, value: Any, mode: str, steps: Steps) -> Any:
    for axis, n in steps:
        x = mj.stdlib.image.extreme(x, mode, value, axis, n, False)
    return x


@mj.jit(static=["mode", "steps"])
def _mean(x: Any, value: Any, mode: str, steps: Steps) -> Any:
    for axis, n in steps:
        x = mj.stdlib.image.mean(x, mode, value, axis, n)
    return x


# ---- medians ----


def median_filter(
    x: Operand,
    size: Sizes = 3,
    *,
    mode: str = "reflect",
    value: Any = 0,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The middle one of the neighbours of each element in order, of an even number the upper one.

    x: array of numbers.
    size: extents of the window, one for all axes or one for each; an element is number `size // 2` along each. A window
        has at most 1024 elements.
    mode, value: what stands outside, as in `ops.laplacian`.
    axes: along which the window extends, all if None.

    Returns an array of the shape and dtype of `x`; NaN where the window has one. The derivative goes to the first neighbour
    that is the middle one.
    Raises TypeFault for other dtypes, ShapeError for a window that is too large, LaunchFault for other arguments that make
    no sense.
    Compare: SciPy `ndimage.median_filter`; OpenCV `medianBlur`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.median_filter(np.array([1, 9, 2, 3, 8], np.float32), mode="edge")
    array([1., 2., 3., 3., 8.], dtype=float32)
    """
    check_array("median_filter", "x", x, NUMBERS, "numbers")
    chosen = _checked("median_filter", x, mode, axes)
    given = dict(zip(chosen, _sizes("median_filter", size, len(chosen)), strict=True))
    window = tuple(given.get(k, 1) for k in range(len(x.shape)))
    count = prod(window)
    if count > _MOST_TAPS:
        refuse("median_filter", f"the window {window} has {count} elements, and at most {_MOST_TAPS} are taken",
               "make it smaller", "op-shape", mj.ShapeError)  # fmt: skip
    if count == 1:
        return _mean(x, 0, mode, ())
    return _median(x, mode, _value(mode, value), window)


def _median(x: Any, mode: str, value: Any, window: tuple[int, ...]) -> Any:
    kernels, count = mj.stdlib.image, prod(window)
    taps = tuple(product(*(range(-(n // 2), n - n // 2) for n in window)))
    network = median_network(count)

    def forward(x: Any) -> Any:
        if len(network) > _LONGEST_NETWORK:
            return kernels.median_by_bits(x, mode, value, taps, count // 2)
        return kernels.median(x, mode, value, taps, network, count // 2)

    def backward(kept: Any, derivative: Any) -> Any:
        x, found = kept
        places = kernels.place(x, found, mode, value, taps)
        at = windows("median_filter", x.shape, window, padding="same_lower")
        constants = ((mode,) * x.ndim, value, *at.constants(x.ndim))
        ones = at.folded(np.ones(window, x.dtype))
        return mj.vjp(lambda x: mj.stdlib.stencil.taken(x, ones, places, *constants), x)[1](derivative)

    def kept(x: Any) -> Any:
        found = forward(x)
        return found, (x, found)

    rule = mj.custom_vjp(forward)
    rule.defvjp(kept, backward)
    return rule(x)


@lru_cache(maxsize=64)
def median_network(n: int) -> tuple[tuple[int, int, bool, bool], ...]:
    """Comparisons (a, b, whether a is needed after it, whether b is) that leave the median of n elements at n // 2."""
    if n == 9:  # rows and columns of three in order, then the diagonal
        lines = [(i, i + 1, i + 2) for i in (0, 3, 6)] + [(i, i + 3, i + 6) for i in range(3)] + [(2, 4, 6)]
        pairs = [pair for a, b, c in lines for pair in ((a, b), (b, c), (a, b))]
    else:
        pairs = sorting_network(n)
    needed, kept = {n // 2}, []
    for a, b in reversed(pairs):
        if a in needed or b in needed:
            kept.append((a, b, a in needed, b in needed))
            needed |= {a, b}
    return tuple(reversed(kept))


def sorting_network(n: int) -> list[tuple[int, int]]:
    """Batcher's merge exchange sort (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M)."""
    pairs = []
    top = 1 << max(n - 1, 1).bit_length() - 1
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return pairs


# ---- histograms ----


def histogram(x: Operand, bins: int = 256, *, limits: tuple[float, float] | None = None) -> Any:
    """How many elements there are of each value, or in each of `bins` intervals.

    x: array of any shape. Of integers, without limits, element k of the result counts the k, and others are not counted.
    bins: at most 4096.
    limits: (low, high), needed for floats: the intervals are of equal width, `low` is in the first and `high` in the last;
        what is outside, and NaN, is not counted.

    Returns int32 of shape (bins,). Intervals are found in 32-bit floats.
    Raises TypeFault for other dtypes, LaunchFault for other arguments that make no sense.
    Compare: PyTorch `histc`; TensorFlow `tf.histogram_fixed_width`; NumPy `bincount`, `histogram`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.histogram(np.array([0, 1, 1, 3, 9], np.uint8), 4)
    array([1, 2, 0, 1], dtype=int32)
    >>> ops.histogram(np.array([0, 0.2, 0.9, 1], np.float32), 2, limits=(0, 1))
    array([2, 2], dtype=int32)
    """
    check_array("histogram", "x", x, NUMBERS, "numbers")
    count = whole("histogram", "bins", bins, 1)
    if count > _MOST_BINS:
        refuse("histogram", f"`bins` is {count}, and at most {_MOST_BINS} are taken")
    if limits is None:
        if is_float(x.dtype):
            refuse("histogram", "floats are counted in intervals", "pass limits=(low, high)")
        low, high = 0.0, 1.0
    else:
        low, high = (float(v) for v in limits)
        if not -np.inf < low < high < np.inf:
            refuse("histogram", f"`limits` are a number and a larger one, not {limits!r}")
    return mj.stdlib.image.histogram(x.reshape(-1), low, count / (high - low), limits is None, count)


# ---- what filters share ----


def _checked(op: str, x: Any, mode: Any, axes: Any) -> tuple[int, ...]:
    """The axes that are meant."""
    if mode not in MODES:
        refuse(op, f"{mode!r} is no border mode", "there are " + ", ".join(map(repr, MODES)))
    chosen = axes_of(op, axes, len(x.shape))
    return chosen


def _sizes(op: str, size: Any, count: int) -> tuple[int, ...]:
    items = tuple(size) if isinstance(size, Sequence) else (size,) * count
    if len(items) != count:
        refuse(op, f"`size` has {len(items)} numbers, and the window has {count} axes")
    return tuple(whole(op, "size", n, 1) for n in items)


def _value(mode: str, value: Any) -> Any:
    return value if mode == "constant" else 0
