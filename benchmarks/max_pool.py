"""2×2 max-pooling of 4096² float32 with indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj

from .timing import Run, Work

N = 4096


def work() -> Work:
    x = np.random.default_rng(0).random((1, 1, N, N), np.float32)
    peers: dict[str, Run] = {"NumPy": numpy_peer(x), **numba_peer(x), **torch_peer(x)}
    return Work(
        f"max-pool 2×2 with indices {N}² f32",
        x.nbytes + x.nbytes // 2,
        lambda: mj.ops.max_pool(x, 2, return_indices=True),
        peers,
    )


def numpy_peer(x: NDArray[Any]) -> Run:
    plane = x[0, 0]
    first = (2 * np.arange(N // 2, dtype=np.int32)[:, None] * N + 2 * np.arange(N // 2, dtype=np.int32))[
        None, None
    ]

    def run() -> Any:
        best, at = plane[::2, ::2], np.zeros((N // 2, N // 2), np.int32)
        for step, other in ((1, plane[::2, 1::2]), (N, plane[1::2, ::2]), (N + 1, plane[1::2, 1::2])):
            wins = other > best
            best = np.where(wins, other, best)
            at[wins] = step
        return best[None, None], first + at

    return run


def numba_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def pool(x: Any) -> Any:
        height, width = x.shape[0] // 2, x.shape[1] // 2
        values, indices = np.empty((height, width), np.float32), np.empty((height, width), np.int32)
        for y in numba.prange(height):
            for i in range(width):
                best = x[2 * y, 2 * i]
                at = np.int32(0)
                for dy in range(2):
                    for dx in range(2):
                        v = x[2 * y + dy, 2 * i + dx]
                        wins = (v > best) | (v != v)
                        best = v if wins else best
                        at = np.int32(dy * x.shape[1] + dx) if wins else at
                values[y, i] = best
                indices[y, i] = np.int32(2 * y * x.shape[1] + 2 * i) + at
        return values, indices

    plane = x[0, 0]

    def run() -> Any:
        values, indices = pool(plane)
        return values[None, None], indices[None, None]

    return {"numba": run}


def torch_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    image = torch.from_numpy(x)
    return {"torch": lambda: torch.nn.functional.max_pool2d(image, 2, return_indices=True)}
