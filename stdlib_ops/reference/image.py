"""Filters and edges of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array
from metaljit.stdlib_ops.reference.stencil import bordered, windows


def ranked(x: Array, size: tuple[int, ...], kind: str, mode: str = "reflect", value: Any = 0) -> Array:
    """The median (of an even number the upper one), largest, smallest or mean element of each window."""
    taps = windows(x, size, mode, value, [n // 2 for n in size], 1, 1)
    flat = taps.reshape(*x.shape, -1)
    if kind == "mean":
        return np.asarray(flat.astype(np.float64).mean(-1).astype(x.dtype))
    ordered = np.sort(flat, -1)
    return np.asarray(ordered[..., {"min": 0, "max": -1, "median": flat.shape[-1] // 2}[kind]])


def along(x: Array, weights: Any, axis: int, mode: str, value: Any = 0) -> Array:
    """The weighted sum of neighbours along an axis, in float64."""
    reach = len(weights) // 2
    wide = bordered(x, mode, value, axis, reach).astype(np.float64)
    n = x.shape[axis]
    return np.asarray(sum(w * wide.take(range(k, k + n), axis) for k, w in enumerate(weights)))


def gaussian(x: Array, sigma: float, truncate: float, mode: str) -> Array:
    reach = int(truncate * sigma + 0.5)
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (k / sigma) ** 2)
    found = x.astype(np.float64)
    for axis in range(x.ndim):
        found = along(found, weights / weights.sum(), axis, mode)
    return np.asarray(found.astype(x.dtype))


def derivative(x: Array, axis: int, smooth: tuple[int, ...], mode: str) -> Array:
    found = along(x, (-1, 0, 1), axis, mode)
    for k in range(x.ndim):
        if k != axis:
            found = along(found, smooth, k, mode)
    return np.asarray(found.astype(x.dtype))


def canny(x: Array, low: float, high: float) -> Array:
    """Edges of an image that is not blurred."""
    u = x.astype(np.float64)
    down, across = derivative(u, 0, (1, 2, 1), "symmetric"), derivative(u, 1, (1, 2, 1), "symmetric")
    steep = np.hypot(down, across)
    height, width = x.shape
    weak = np.zeros(x.shape, bool)
    for i in range(1, height - 1):
        for j in range(1, width - 1):
            m, dy, dx = steep[i, j], down[i, j], across[i, j]
            if m < low or m == 0:
                continue
            step = max(abs(dy), abs(dx))
            sides = []
            for s in (1, -1):  # one pixel on along the gradient, which is a whole pixel along its larger part
                a, b = s * dy / step, s * dx / step
                p, q = int(np.sign(a)), int(np.sign(b))
                share = min(abs(a), abs(b))
                straight = steep[i + p, j] if abs(dy) > abs(dx) else steep[i, j + q]
                aslant = steep[i + p, j + q] if p and q else 0.0
                sides.append(aslant * share + straight * (1 - share))
            weak[i, j] = max(sides) <= m
    edges = weak & (steep >= high)
    while True:
        wide = np.pad(edges, 1)
        near = np.zeros_like(edges)
        for p in range(3):
            for q in range(3):
                near |= wide[p : p + height, q : q + width]
        grown = weak & near
        if (grown == edges).all():
            return edges
        edges = grown
