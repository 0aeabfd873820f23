"""Hash grids and resizing, element by element."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array

FACTORS = (1, 2654435761, 805459861, 3674653429, 2097192037, 1434869437, 2165219737)


def row(point: Sequence[int], resolution: int, rows: int) -> int:
    """The row of a point."""
    if (resolution + 1) ** len(point) <= rows:
        return int(sum(g * (resolution + 1) ** d for d, g in enumerate(point))) % rows
    found = 0
    for g, factor in zip(point, FACTORS, strict=False):
        found ^= g * factor % 2**32
    return found % rows


def corners(place: Array, resolution: int, rows: int) -> list[tuple[int, float, list[float]]]:
    """Row, weight and the weight's derivatives of each corner of the cell around a place."""
    at = [float(np.float32(v) * np.float32(resolution)) for v in place]
    base = [math.floor(v) for v in at]
    part = [v - b for v, b in zip(at, base, strict=True)]
    found = []
    for c in range(2 ** len(at)):
        ups = [c >> d & 1 for d in range(len(at))]
        factors = [p if up else 1 - p for p, up in zip(part, ups, strict=True)]
        slopes = [
            (1 if ups[d] else -1) * resolution * math.prod(f for e, f in enumerate(factors) if e != d)
            for d in range(len(at))
        ]
        point = [b + up for b, up in zip(base, ups, strict=True)]
        found.append((row(point, resolution, rows), math.prod(factors), slopes))
    return found


def hash_grid(x: Array, table: Array, resolutions: Sequence[int], g: Array) -> tuple[Array, Array, Array]:
    """The features of places (B, D), and the derivatives by places and table for `g` by the features."""
    levels, rows, features = table.shape
    y = np.zeros((len(x), levels, features))
    by_x, by_table = np.zeros(x.shape), np.zeros(table.shape)
    wide = g.reshape(y.shape).astype(np.float64)
    for b, level in itertools.product(range(len(x)), range(levels)):
        for at, weight, slopes in corners(x[b], resolutions[level], rows):
            y[b, level] += weight * table[level, at].astype(np.float64)
            by_table[level, at] += weight * wide[b, level]
            by_x[b] += np.array(slopes) * (table[level, at] * wide[b, level]).sum()
    return y.reshape(len(x), -1), by_x, by_table


# ---- other sizes ----


def source(i: int, n: int, m: int, coordinates: str) -> float:
    if coordinates == "align_corners":
        return float(np.float32(i) * (np.float32(n - 1) / np.float32(max(m - 1, 1))))
    scale = np.float32(n) / np.float32(m)
    if coordinates == "half_pixel":
        return float((np.float32(i) + np.float32(0.5)) * scale - np.float32(0.5))
    return float(np.float32(i) * scale)


def nearest(at: float, rounding: str) -> int:
    match rounding:
        case "floor":
            return math.floor(at)
        case "ceil":
            return math.ceil(at)
        case "prefer_ceil":
            return math.floor(at + 0.5)
        case "prefer_floor":
            return math.ceil(at - 0.5)
        case "odd" if at % 1 == 0.5:
            return math.floor(at) if math.floor(at) % 2 else math.ceil(at)
    return round(at)


def resize(
    x: Array, size: int, axis: int, mode: str, coordinates: str, rounding: str = "prefer_ceil"
) -> Array:
    """Along one axis."""
    n = x.shape[axis]
    parts: list[Any] = []
    for i in range(size):
        at = source(i, n, size, coordinates)
        if mode == "nearest":
            parts.append(x.take(min(max(nearest(at, rounding), 0), n - 1), axis))
            continue
        at = min(max(at, 0.0), n - 1.0)
        low = math.floor(at)
        a, b = (x.take(min(k, n - 1), axis).astype(np.float64) for k in (low, low + 1))
        parts.append(a * (1 - (at - low)) + b * (at - low))
    return np.stack(parts, axis)
