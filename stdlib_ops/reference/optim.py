"""Optimisers of one array, in float64: each is a function of the parameter and of all derivatives so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def sgd(p: Array, grads: Sequence[Array], *, lr: float, weight_decay: float = 0.0) -> Array:
    for g in grads:
        p = p - lr * (g + weight_decay * p)
    return p


def momentum(
    p: Array,
    grads: Sequence[Array],
    *,
    lr: float,
    momentum: float = 0.9,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> Array:
    velocity = np.zeros_like(p)
    for g in grads:
        g = g + weight_decay * p
        velocity = momentum * velocity + g
        p = p - lr * (g + momentum * velocity if nesterov else velocity)
    return p


def adam(
    p: Array,
    grads: Sequence[Array],
    *,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    amsgrad: bool = False,
) -> Array:
    mean, square, most = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        mean = betas[0] * mean + (1 - betas[0]) * g
        square = betas[1] * square + (1 - betas[1]) * g * g
        most = np.maximum(most, square) if amsgrad else square
        p = p - lr * (mean / (1 - betas[0] ** t)) / (np.sqrt(most / (1 - betas[1] ** t)) + eps)
    return p


def adadelta(
    p: Array,
    grads: Sequence[Array],
    *,
    lr: float = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
) -> Array:
    square, step = np.zeros_like(p), np.zeros_like(p)
    for g in grads:
        g = g + weight_decay * p
        square = rho * square + (1 - rho) * g * g
        d = np.sqrt(step + eps) / np.sqrt(square + eps) * g
        step = rho * step + (1 - rho) * d * d
        p = p - lr * d
    return p


def rmsprop(
    p: Array,
    grads: Sequence[Array],
    *,
    lr: float = 0.01,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Array:
    square, mean, velocity = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for g in grads:
        g = g + weight_decay * p
        square = alpha * square + (1 - alpha) * g * g
        mean = alpha * mean + (1 - alpha) * g
        d = g / (np.sqrt(square - mean * mean if centered else square) + eps)
        velocity = momentum * velocity + d
        p = p - lr * velocity
    return p
