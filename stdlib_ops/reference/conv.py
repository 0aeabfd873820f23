"""Convolutions, tap by tap, in 64 bits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metaljit.stdlib_ops.reference.common import Array


def _taps(
    counts: Sequence[int], size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """Each tap, and what of the padded array it takes."""
    for tap in itertools.product(*map(range, size)):
        starts = [t * d for t, d in zip(tap, dilation, strict=True)]
        taken = (slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, stride, strict=True))
        yield tap, (slice(None), slice(None), *taken)


def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def conv(
    x: Array,
    w: Array,
    stride: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """x: (N, C, …), w: (O, C / groups, …)."""
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    size, outs = w.shape[2:], w.shape[0]
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(wide.shape[2:], size, stride, dilation, strict=True)
    ]
    y = np.zeros((x.shape[0], groups, outs // groups, *counts))
    for tap, taken in _taps(counts, size, stride, dilation):
        weights = w[_at(tap)].astype(np.float64).reshape(groups, outs // groups, -1)
        y += np.einsum("goi,ngi...->ngo...", weights, _grouped(wide[taken], groups))
    return y.reshape(x.shape[0], outs, *counts)


def _at(tap: Sequence[int]) -> Any:
    return (..., *tap)


def conv_grads(
    grad: Array,
    x: Array,
    w: Array,
    stride: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int = 1,
) -> tuple[Array, Array]:
    """The derivatives by `x` and `w`."""
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    by_x, by_w = np.zeros_like(wide), np.zeros(w.shape)
    outs, given = w.shape[0], _grouped(grad.astype(np.float64), groups)
    for tap, taken in _taps(grad.shape[2:], w.shape[2:], stride, dilation):
        weights = w[_at(tap)].astype(np.float64).reshape(groups, outs // groups, -1)
        part = np.einsum("goi,ngo...->ngi...", weights, given)
        by_x[taken] += part.reshape(by_x[taken].shape)
        lines = _grouped(wide[taken], groups)
        found = np.einsum("ngop,ngip->goi", *(a.reshape(*a.shape[:3], -1) for a in (given, lines)))
        by_w[_at(tap)] = found.reshape(outs, -1)
    cut = tuple(slice(b, b + n) for (b, _), n in zip(pads, x.shape[2:], strict=True))
    return by_x[(slice(None), slice(None), *cut)], by_w
