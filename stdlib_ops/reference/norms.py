"""Normalisations, in float64."""

from __future__ import annotations

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def _around(values: Array | None, rank: int, axes: tuple[int, ...], default: float) -> Array:
    if values is None:
        return np.asarray(default)
    return np.expand_dims(values.astype(np.float64), tuple(k for k in range(rank) if k not in axes))


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    axes: tuple[int, ...],
    eps: float = 1e-5,
) -> Array:
    wide = x.astype(np.float64)
    y = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + eps)
    return np.asarray(y * _around(weight, x.ndim, axes, 1) + _around(bias, x.ndim, axes, 0))


def rms_norm(x: Array, weight: Array | None = None, *, axes: tuple[int, ...], eps: float) -> Array:
    wide = x.astype(np.float64)
    y = wide / np.sqrt((wide * wide).mean(axes, keepdims=True) + eps)
    return np.asarray(y * _around(weight, x.ndim, axes, 1))


def batch_norm(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
    axis: int = 1,
    unbiased: bool = True,
) -> tuple[Array, Array, Array]:
    """The result, and the running statistics after it."""
    wide, at = x.astype(np.float64), (axis % x.ndim,)
    others = tuple(k for k in range(x.ndim) if k not in at)
    first, second = mean.astype(np.float64), variance.astype(np.float64)
    m, v = (wide.mean(others), wide.var(others)) if training else (first, second)
    y = (wide - _around(m, x.ndim, at, 0)) / np.sqrt(_around(v, x.ndim, at, 0) + eps)
    y = y * _around(weight, x.ndim, at, 1) + _around(bias, x.ndim, at, 0)
    if training:
        first = (1 - momentum) * first + momentum * m
        second = (1 - momentum) * second + momentum * wide.var(others, ddof=int(unbiased))
    return y, first, second


def local_response_norm(x: Array, size: int, *, alpha: float, beta: float, k: float, axis: int = 1) -> Array:
    rows = np.moveaxis(x.astype(np.float64), axis, 0)
    out = np.empty_like(rows)
    for c in range(len(rows)):
        window = rows[max(c - size // 2, 0) : max(c - size // 2 + size, 0)]
        out[c] = rows[c] / (k + alpha * (window * window).sum(axis=0) / size) ** beta
    return np.moveaxis(out, 0, axis)
