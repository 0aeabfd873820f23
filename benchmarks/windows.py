"""Convolutions, and the gradient of max-pooling with and without the indices.

"Anew" is what the gradient costs where indices are not kept: a kernel of the same shape, which finds the maximum of each
window that holds an element once more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaljit import ops
from metaljit.lang import border, const, dims, f32, inf, kernel, position

from .timing import Run, Work

S, G = dims("*S *G")

# ---- max-pooling ----


@kernel
def pooled_back_anew(
    x: f32[*S], grad: f32[*G], size: const[int], stride: const[int], before: const[int]
) -> f32[*S]:
    """The derivatives of the windows of which an element is the first maximum, which is looked for here."""
    n, c, y, x_ = position()
    u, g = border(x, "constant", value=-inf), border(grad, "constant")
    total = f32(0)
    turns = (size - 1) // stride + 1
    for i in range(turns):
        for j in range(turns):
            oy, ox = (y + before) // stride - i, (x_ + before) // stride - j
            top, left = oy * stride - before, ox * stride - before
            best = u[n, c, top, left]
            at = 0
            for ky in range(size):
                for kx in range(size):
                    v = u[n, c, top + ky, left + kx]
                    at = ky * size + kx if v > best else at
                    best = max(v, best)
            total += g[n, c, oy, ox] if at == (y - top) * size + x_ - left and x_ - left < size else f32(0)
    return total


def pooled_back(side: int, size: int, stride: int, before: int) -> tuple[Any, Any, Any, dict[str, Any]]:
    options: dict[str, Any] = {"stride": stride, "padding": before}
    x = np.random.default_rng(0).random((1, 1, side, side), np.float32)
    values, indices = ops.max_pool(x, size, return_indices=True, **options)
    grad = np.random.default_rng(1).random(values.shape, np.float32)
    return x, grad, indices, options


def max_pool_grad(size: int, stride: int, before: int) -> Work:
    x, grad, indices, options = pooled_back(4096, size, stride, before)
    peers: dict[str, Run] = {}
    try:
        import torch
    except ImportError:
        pass
    else:
        image = torch.from_numpy(x).requires_grad_()
        y, _ = torch.nn.functional.max_pool2d(image, size, stride, before, return_indices=True)
        given = torch.from_numpy(grad)
        peers["torch"] = lambda: torch.autograd.grad(y, image, given, retain_graph=True)
    return Work(
        f"gradient of max-pool {size}×{size} stride {stride}, 4096² f32",
        x.nbytes + grad.nbytes + indices.nbytes,
        lambda: ops.max_pool_grad(grad, indices, x.shape, size, **options),
        peers,
    )


def against_anew(size: int, stride: int, before: int) -> Work:
    """The peer is ours without indices."""
    x, grad, indices, options = pooled_back(4096, size, stride, before)
    return Work(
        f"the same by indices, against anew, {size}×{size} stride {stride}",
        x.nbytes + grad.nbytes + indices.nbytes,
        lambda: ops.max_pool_grad(grad, indices, x.shape, size, **options),
        {"ours, anew": lambda: pooled_back_anew(x, grad, size, stride, before)},
    )


# ---- convolutions ----


def conv(part: str, stride: int = 1) -> Work:
    """8 images of 64 channels, 56², by 64 windows of 3×3."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 64, 56, 56), np.float32)
    w = rng.standard_normal((64, 64, 3, 3), np.float32) / np.float32(24)
    options: dict[str, Any] = {"stride": stride, "padding": 1}
    y = np.asarray(ops.conv(x, w, **options))
    grad = rng.standard_normal(y.shape, np.float32)
    small = grad / np.float32(1024)  # a sum of 25088 products
    ours: dict[str, Run] = {
        "forward": lambda: ops.conv(x, w, **options),
        "gradient by x": lambda: ops.conv_grad_input(grad, w, x.shape, **options),
        "gradient by w": lambda: ops.conv_grad_weight(small, x, w.shape, **options),
    }
    peers: dict[str, Run] = {}
    try:
        import torch
    except ImportError:
        pass
    else:
        tx, tw, tg, ts = (torch.from_numpy(a) for a in (x, w, grad, small))
        back: Any = torch.nn.grad  # type: ignore[attr-defined,unused-ignore]
        peers["torch"] = {
            "forward": lambda: torch.nn.functional.conv2d(tx, tw, **options),
            "gradient by x": lambda: back.conv2d_input(tx.shape, tw, tg, **options),
            "gradient by w": lambda: back.conv2d_weight(tx, tw.shape, ts, **options),
        }[part]
    moved = x.nbytes + y.nbytes + w.nbytes
    return Work(f"conv 3×3 stride {stride}, {part}, 8×64×56×56 f32, 64 out", moved, ours[part], peers)


WORKS = {
    "max_pool_grad": lambda: max_pool_grad(2, 2, 0),
    "max_pool_grad_overlap": lambda: max_pool_grad(3, 2, 1),
    "max_pool_grad_anew": lambda: against_anew(2, 2, 0),
    "max_pool_grad_overlap_anew": lambda: against_anew(3, 2, 1),
    "conv": lambda: conv("forward"),
    "conv_by_x": lambda: conv("gradient by x"),
    "conv_by_w": lambda: conv("gradient by w"),
    "conv_stride": lambda: conv("forward", 2),
}
