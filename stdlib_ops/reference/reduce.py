"""Reductions and scans, in float64 and in Python's integers where NumPy's would not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def wide(x: Array) -> Array:
    """The same numbers, in types that hold their sums."""
    if x.dtype.kind in "fV" or x.dtype.name == "bfloat16":
        return x.astype(np.float64)
    return x.astype(object)


def summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that a sum has."""
    if dtype.kind == "f" or dtype.name == "bfloat16" or dtype.itemsize >= 4:
        return dtype
    return np.dtype(np.uint32 if dtype.kind == "u" else np.int32)


def wrapped(values: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as a dtype; integers modulo its range."""
    if dtype.kind in "ui":
        bits = 8 * dtype.itemsize
        low = 0 if dtype.kind == "u" else -(2 ** (bits - 1))
        each = np.frompyfunc(lambda v: (int(v) - low) % 2**bits + low, 1, 1)
        return np.asarray(each(np.asarray(values, object))).astype(dtype)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def reduced(op: str, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    function: Callable[..., Any] = getattr(np, op)
    with np.errstate(all="ignore"):
        found = function(wide(x) if op in ("sum", "prod") else x, axis=axes, keepdims=keepdims)
    return wrapped(found, summed(x.dtype)) if op in ("sum", "prod") else np.asarray(found)


SCANS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[np.dtype[Any]], Any]]] = {
    "cumsum": (lambda a, b: a + b, lambda t: 0),
    "cumprod": (lambda a, b: a * b, lambda t: 1),
    "cummax": (np.maximum, lambda t: np.iinfo(t).min if t.kind in "ui" else t.kind != "b" and -np.inf),
    "cummin": (np.minimum, lambda t: np.iinfo(t).max if t.kind in "ui" else t.kind == "b" or np.inf),
}


def scan(op: str, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    combine, first = SCANS[op]
    is_sum = op in ("cumsum", "cumprod")
    rows = np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0)
    numbers = wide(rows) if is_sum else rows
    kind = summed(x.dtype) if is_sum else x.dtype
    out = np.empty(rows.shape, numbers.dtype)
    total = np.full(rows.shape[1:], first(kind), numbers.dtype)
    with np.errstate(all="ignore"):
        for k in range(len(rows)):
            after = combine(total, numbers[k])
            out[k] = total if exclusive else after
            total = after
    made = np.moveaxis(wrapped(out, kind) if is_sum else out.astype(kind), 0, axis)
    return np.flip(made, axis) if reverse else made
