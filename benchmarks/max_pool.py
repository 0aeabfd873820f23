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
    kernel = mj.stdlib.pooling.max_pool_indices
    out = np.empty((1, 1, N // 2, N // 2), np.float32), np.empty((1, 1, N // 2, N // 2), np.int32)
    # What ops.max_pool(x, 2, return_indices=True) passes; it has no `out`, and new memory costs more than the work.
    constants = (
        (2, 3),
        (2, 2, 1, 1),
        (1, 1, 2, 2),
        (1, 1, 1, 1),
        (0, 0, 0, 0),
        False,
        True,
        (2, 3),
        (0, 0, 0, 0),
    )
    return Work(
        f"max-pool 2×2 with indices {N}² f32",
        x.nbytes + x.nbytes // 2,
        lambda: kernel(x, (0, 0, 0, 0), *constants, out=out),
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

    i32 = np.int32

    # Rows as arguments and choices instead of branches: what numba makes vectors of.
    @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
    def larger(best: Any, at: Any, v: Any, step: Any) -> Any:
        wins = (v > best) | (v != v)
        return v if wins else best, step if wins else at

    @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
    def row(above: Any, below: Any, values: Any, indices: Any, base: Any, width: Any) -> None:
        for i in range(values.shape[0]):
            best, at = larger(above[2 * i], i32(0), above[2 * i + 1], i32(1))
            best, at = larger(best, at, below[2 * i], width)
            best, at = larger(best, at, below[2 * i + 1], i32(width + 1))
            values[i] = best
            indices[i] = i32(base + i32(2 * i)) + at

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def pool(x: Any, values: Any, indices: Any) -> None:
        for y in numba.prange(values.shape[0]):
            base = i32(2 * y * x.shape[1])
            row(x[2 * y], x[2 * y + 1], values[y], indices[y], base, i32(x.shape[1]))

    plane = x[0, 0]
    values, indices = np.empty((N // 2, N // 2), np.float32), np.empty((N // 2, N // 2), np.int32)

    def run() -> Any:
        pool(plane, values, indices)
        return values[None, None], indices[None, None]

    return {"numba": run}


def torch_peer(x: NDArray[Any]) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    image = torch.from_numpy(x)
    return {"torch": lambda: torch.nn.functional.max_pool2d(image, 2, return_indices=True)}
