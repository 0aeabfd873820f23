"""Recurrent layers, one step after the other in float64.

`order` names the gates' blocks. All take a sequence (T, N, I) and go forwards; weights None are the identity, biases None 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        found: Array = 1 / (1 + np.exp(-x))
    return found


def _wide(*arrays: Array | None) -> list[Any]:
    return [None if a is None else a.astype(np.float64) for a in arrays]


def _plus(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + bias


def rnn(
    x: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, h: Array, activation: str = "tanh"
) -> tuple[Array, Array]:
    x, w_ih, w_hh, b_ih, b_hh, h = _wide(x, w_ih, w_hh, b_ih, b_hh, h)
    y = np.zeros((len(x), *h.shape))
    for t in range(len(x)):
        z = _plus(x[t] @ w_ih.T, b_ih) + _plus(h @ w_hh.T, b_hh)
        h = np.tanh(z) if activation == "tanh" else np.maximum(z, 0)
        y[t] = h
    return y, h


def lstm(
    x: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, h: Array, c: Array, order: str = "ifgo"
) -> tuple[Array, Array, Array]:
    x, w_ih, w_hh, b_ih, b_hh, h, c = _wide(x, w_ih, w_hh, b_ih, b_hh, h, c)
    y = np.zeros((len(x), *h.shape))
    for t in range(len(x)):
        z = _plus(x[t] @ w_ih.T, b_ih) + _plus(h @ w_hh.T, b_hh)
        gate = dict(zip(order, np.split(z, 4, axis=1), strict=True))
        c = _sigmoid(gate["f"]) * c + _sigmoid(gate["i"]) * np.tanh(gate["g"])
        h = _sigmoid(gate["o"]) * np.tanh(c)
        y[t] = h
    return y, h, c


def gru(
    x: Array, w_ih: Array, w_hh: Array, b_ih: Any, b_hh: Any, h: Array, order: str = "rzn", reset_after: bool = True,
    flip: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    x, w_ih, w_hh, b_ih, b_hh, h = _wide(x, w_ih, w_hh, b_ih, b_hh, h)
    size = h.shape[1]
    if b_hh is not None and len(b_hh) == size:  # of n alone
        b_hh = np.concatenate([b_hh if letter == "n" else np.zeros(size) for letter in order])
    y = np.zeros((len(x), *h.shape))
    for t in range(len(x)):
        inputs = dict(zip(order, np.split(_plus(x[t] @ w_ih.T, b_ih), 3, axis=1), strict=True))
        states = dict(zip(order, np.split(_plus(h @ w_hh.T, b_hh), 3, axis=1), strict=True))
        r, z = (_sigmoid(inputs[k] + states[k]) for k in "rz")
        n = order.index("n")
        rows = slice(n * size, (n + 1) * size)
        before = _plus((r * h) @ w_hh[rows].T, None if b_hh is None else b_hh[rows])
        new = np.tanh(inputs["n"] + (r * states["n"] if reset_after else before))
        h = (1 - z) * h + z * new if flip else z * h + (1 - z) * new
        y[t] = h
    return y, h
