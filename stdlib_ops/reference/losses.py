"""Softmax and the losses of classifiers, in float64."""

from __future__ import annotations

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def log_softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    z: Array = x.astype(np.float64)
    z = z - z.max(axis=axis, keepdims=True, initial=-np.inf)
    return np.asarray(z - np.log(np.exp(z).sum(axis=axis, keepdims=True)))


def softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    return np.exp(log_softmax(x, axis))


def nll(
    x: Array,
    target: Array,
    *,
    weight: Array | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = 1,
) -> Array:
    """Row by row, with a distribution over the classes for each."""
    rows = np.moveaxis(x.astype(np.float64), axis, -1)
    count = rows.shape[-1]
    weights = np.ones(count) if weight is None else weight.astype(np.float64)
    losses, shares = np.zeros(rows.shape[:-1]), np.ones(rows.shape[:-1])
    integers = target.dtype.kind in "iu"
    wanted = target if integers else np.moveaxis(target.astype(np.float64), axis, -1)
    for at in np.ndindex(losses.shape):
        if integers and wanted[at] == ignore_index:
            shares[at] = 0
            continue
        right = np.eye(count)[wanted[at]] if integers else wanted[at]
        right = (1 - label_smoothing) * right + label_smoothing / count
        costs = [0 if r == 0 else -w * r * v for w, r, v in zip(weights, right, rows[at], strict=True)]
        losses[at] = np.sum(costs)
        shares[at] = weights[wanted[at]] if integers else 1
    if reduction == "none":
        return losses
    total: Array = losses.sum() / (shares.sum() if reduction == "mean" else 1)
    return np.asarray(total)


def softmax_cross_entropy(x: Array, target: Array, *, axis: int = 1, **options: object) -> Array:
    return nll(log_softmax(x, axis), target, axis=axis, **options)  # type: ignore[arg-type]
