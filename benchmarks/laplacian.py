"""The five-point Laplacian of 2048² float32, edges mirrored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj

from .timing import Run, Work

N = 2048


def work() -> Work:
    x = np.random.default_rng(0).random((N, N), np.float32)
    out = np.empty_like(x)
    kernel = mj.stdlib.stencil.laplacian
    peers: dict[str, Run] = {"NumPy": numpy_peer(x), **numexpr_peer(x), **numba_peer(x), **torch_peer(x)}
    return Work(
        f"Laplacian {N}² f32",
        2 * x.nbytes,
        lambda: kernel(x, ("reflect", "reflect"), 0, (0, 1), out=out),
        peers,
    )


def padded(x: NDArray[Any]) -> tuple[NDArray[Any], Any, list[NDArray[Any]]]:
    """A buffer one wider on each side, what fills it, and its five shifted views."""
    p = np.empty((N + 2, N + 2), np.float32)

    def fill() -> None:
        p[1:-1, 1:-1] = x
        p[0], p[-1] = p[2], p[-3]
        p[:, 0], p[:, -1] = p[:, 2], p[:, -3]

    return p, fill, [p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:], p[1:-1, 1:-1]]


def numpy_peer(x: NDArray[Any]) -> Run:
    _, fill, (up, down, left, right, centre) = padded(x)
    out, scaled = np.empty_like(x), np.empty_like(x)

    def run() -> Any:
        fill()
        np.add(up, down, out=out)
        np.add(out, left, out=out)
        np.add(out, right, out=out)
        np.multiply(centre, np.float32(4), out=scaled)
        return np.subtract(out, scaled, out=out)

    return run


def numexpr_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import numexpr
    except ImportError:
        return {}
    _, fill, views = padded(x)
    names = dict(zip("udlrc", views, strict=True)) | {"four": np.float32(4)}
    out = np.empty_like(x)

    def run() -> Any:
        fill()
        return numexpr.evaluate("u + d + l + r - four * c", names, out=out)

    return {"numexpr": run}


def numba_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def laplacian(u: Any, out: Any) -> None:
        height, width = u.shape
        four = np.float32(4)
        for y in numba.prange(height):
            above = 1 if y == 0 else y - 1
            below = height - 2 if y == height - 1 else y + 1
            out[y, 0] = u[above, 0] + u[below, 0] + u[y, 1] + u[y, 1] - four * u[y, 0]
            for i in range(1, width - 1):
                out[y, i] = u[above, i] + u[below, i] + u[y, i - 1] + u[y, i + 1] - four * u[y, i]
            w = width - 1
            out[y, w] = u[above, w] + u[below, w] + u[y, w - 1] + u[y, w - 1] - four * u[y, w]

    out = np.empty_like(x)

    def run() -> Any:
        laplacian(x, out)
        return out

    return {"numba": run}


def torch_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    image = torch.from_numpy(x)[None, None]
    weights = torch.tensor([[[[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]]])

    def run() -> Any:
        mirrored = torch.nn.functional.pad(image, (1, 1, 1, 1), mode="reflect")
        return torch.nn.functional.conv2d(mirrored, weights)[0, 0]

    return {"torch": run}
