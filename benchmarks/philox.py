"""Sixteen million random words of Philox4x32-10."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj

from .timing import Run, Work

WORDS = 16 * 1024 * 1024
KEY = 1234
PART = 64 * 1024


def work() -> Work:
    state = mj.ops.random.state_from(0, KEY)
    out = np.empty((WORDS // 4, 4), np.uint32)
    kernel = mj.stdlib.random.blocks
    peers: dict[str, Run] = {"NumPy": numpy_peer(), **numba_peer(state), **torch_peer()}
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


def numba_peer(state: NDArray[Any]) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}

    u32, u64 = np.uint32, np.uint64

    # Rounds as a function, a flat result and parts for the threads: what numba makes vectors of.
    @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
    def mixed(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
        a = u64(0xD2511F53) * u64(c0)
        b = u64(0xCD9E8D57) * u64(c2)
        return u32(b >> u64(32)) ^ c1 ^ k0, u32(b), u32(a >> u64(32)) ^ c3 ^ k1, u32(a)

    @numba.njit  # type: ignore[untyped-decorator,unused-ignore]
    def part(first: Any, state: Any, out: Any) -> None:
        for i in range(out.shape[0] // 4):
            n = u32(first + i)
            c0 = u32(state[0] + n)
            c1 = u32(state[1] + u32(c0 < n))
            c2 = u32(state[2] + u32(c1 < state[1]))
            c3 = u32(state[3] + u32(c2 < state[2]))
            for r in range(10):
                k0, k1 = u32(state[4] + u32(r) * u32(0x9E3779B9)), u32(state[5] + u32(r) * u32(0xBB67AE85))
                c0, c1, c2, c3 = mixed(c0, c1, c2, c3, k0, k1)
            out[4 * i] = c0
            out[4 * i + 1] = c1
            out[4 * i + 2] = c2
            out[4 * i + 3] = c3

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def blocks(state: Any, out: Any) -> None:
        for j in numba.prange(out.shape[0] // PART):
            part(j * (PART // 4), state, out[j * PART : (j + 1) * PART])

    out = np.empty(WORDS, np.uint32)

    def run() -> Any:
        blocks(state, out)
        return out.reshape(-1, 4)

    return {"numba": run}


def torch_peer() -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    out = torch.empty(WORDS, dtype=torch.int32)
    return {"torch": lambda: out.random_()}
