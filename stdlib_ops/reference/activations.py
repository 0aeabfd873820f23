"""Activations, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from metaljit.stdlib_ops.reference.common import Array

_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, np.where(np.isnan(x), x, 1)) / (1 + e))


def _normal(x: Array) -> Array:
    """The density of the normal distribution."""
    return np.asarray(np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _gelu_tanh_slope(x: Array) -> Array:
    t = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return np.asarray(0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)


# The value and the derivative of each.
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "relu": (lambda x: np.where(x <= 0, 0, x), lambda x: np.where(x <= 0, 0.0, 1.0)),
    "sigmoid": (_sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
    "silu": (
        lambda x: x * _sigmoid(x),
        lambda x: _sigmoid(x) * (1 + x * _sigmoid(-x)),
    ),
    "softplus": (lambda x: np.logaddexp(x, 0), _sigmoid),
    "gelu": (
        lambda x: 0.5 * x * _erfc(-x / math.sqrt(2)),
        lambda x: 0.5 * _erfc(-x / math.sqrt(2)) + x * _normal(x),
    ),
    "gelu_tanh": (_gelu_tanh, _gelu_tanh_slope),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(np.minimum(np.abs(x), 300)) ** 2 + 0 * np.tanh(x)),
    "erf": (_erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
}
