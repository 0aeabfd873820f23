"""Sixteen million random words of Philox4x32-10."""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj

from .timing import Run, Work

WORDS = 16 * 1024 * 1024
KEY = 1234


def work() -> Work:
    state = mj.ops.random.state_from(0, KEY)
    out = np.empty((WORDS // 4, 4), np.uint32)
    kernel = mj.stdlib.random.blocks
    peers: dict[str, Run] = {"NumPy": numpy_peer(), **numba_peer(), **torch_peer()}
    return Work(
        f"Philox {WORDS // 2**20}M words",
        out.nbytes,
        lambda: kernel(state, WORDS // 4, out=out),
        peers,
        frozenset({"NumPy", "torch"}),
    )


def numpy_peer() -> Run:
    """NumPy's generator of this family makes words of 64 bits in other rounds: as many bytes."""
    generator = np.random.Philox(key=KEY)
    return lambda: generator.random_raw(WORDS // 2)


def numba_peer() -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def blocks(key: Any, out: Any) -> None:
        low = np.uint64(0xFFFFFFFF)
        for i in numba.prange(out.shape[0]):
            c0, c1, c2, c3 = np.uint32(i), np.uint32(0), np.uint32(0), np.uint32(0)
            k0, k1 = np.uint32(key), np.uint32(0)
            for _ in range(10):
                a = np.uint64(0xD2511F53) * np.uint64(c0)
                b = np.uint64(0xCD9E8D57) * np.uint64(c2)
                c0 = np.uint32(b >> np.uint64(32)) ^ c1 ^ k0
                c1 = np.uint32(b & low)
                c2 = np.uint32(a >> np.uint64(32)) ^ c3 ^ k1
                c3 = np.uint32(a & low)
                k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
                k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
            out[i, 0] = c0
            out[i, 1] = c1
            out[i, 2] = c2
            out[i, 3] = c3

    out = np.empty((WORDS // 4, 4), np.uint32)

    def run() -> Any:
        blocks(np.uint32(KEY), out)
        return out

    return {"numba": run}


def torch_peer() -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    out = torch.empty(WORDS, dtype=torch.int32)
    return {"torch": lambda: out.random_()}
