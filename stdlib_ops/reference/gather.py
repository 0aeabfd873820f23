"""Gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array, wide


def gather_nd(x: Array, indices: Array, *, batch_dims: int = 0, out_of_range: str = "zero") -> Array:
    batch, depth = indices.shape[:batch_dims], indices.shape[-1]
    axes = x.shape[batch_dims : batch_dims + depth]
    out = np.zeros((*indices.shape[:-1], *x.shape[batch_dims + depth :]), x.dtype)
    for place in np.ndindex(*indices.shape[:-1]):
        at = [int(i) for i in indices[place]]
        if out_of_range == "clip" and all(axes):
            at = [min(max(i, 0), n - 1) for i, n in zip(at, axes, strict=True)]
        if all(0 <= i < n for i, n in zip(at, axes, strict=True)):
            out[place] = x[(*place[: len(batch)], *at)]
    return out


def take(x: Array, indices: Array, axis: int, *, out_of_range: str = "zero", negative: bool = True) -> Array:
    n = x.shape[axis]
    parts = []
    for i in indices.reshape(-1).tolist():
        if out_of_range == "clip":
            i = min(max(i, 0), n - 1)
        elif negative and i < 0:
            i += n
        parts.append(x.take(i, axis) if 0 <= i < n else np.zeros_like(x.take(0, axis)))
    out = np.stack(parts, axis) if parts else x.take([], axis)
    return np.asarray(out, x.dtype).reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


def take_along_axis(x: Array, indices: Array, axis: int) -> Array:
    axis %= x.ndim
    shape = np.broadcast_shapes(*[(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (x, indices)])
    x, indices = (
        np.broadcast_to(a, (*shape[:axis], a.shape[axis], *shape[axis + 1 :])) for a in (x, indices)
    )
    out = np.zeros(indices.shape, x.dtype)
    for place in np.ndindex(*indices.shape):
        i, n = int(indices[place]), x.shape[axis]
        if -n <= i < n:
            out[place] = x[(*place[:axis], i, *place[axis + 1 :])]
    return out


COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "set": lambda old, new: new,
}


def combined(x: Array, updates: Sequence[tuple[tuple[int, ...], Any]], mode: str) -> Array:
    """`x` with each update at its place, one after the other."""
    out = x.astype(wide(x.dtype))
    with np.errstate(all="ignore"):
        for place, update in updates:
            out[place] = COMBINED[mode](out[place], np.asarray(update).astype(out.dtype))
        return out.astype(x.dtype)


def scatter_nd_update(
    x: Array, indices: Array, updates: Array, *, mode: str = "set", batch_dims: int = 0
) -> Array:
    axes = x.shape[batch_dims : batch_dims + indices.shape[-1]]
    listed = []
    for place in np.ndindex(*indices.shape[:-1]):
        at = [int(i) for i in indices[place]]
        if all(0 <= i < n for i, n in zip(at, axes, strict=True)):
            listed.append(((*place[:batch_dims], *at), updates[place]))
    return combined(x, listed, mode)


def put_along_axis(x: Array, indices: Array, values: Array, axis: int, *, mode: str = "set") -> Array:
    axis %= x.ndim
    n = x.shape[axis]
    listed = []
    values = np.broadcast_to(values, indices.shape)
    for place in np.ndindex(*indices.shape):
        i = int(indices[place])
        if -n <= i < n:
            listed.append(((*place[:axis], i % n, *place[axis + 1 :]), values[place]))
    return combined(x, listed, mode)
