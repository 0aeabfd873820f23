"""The bits that differ between a million pairs of rows of 64 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj

from .timing import Run, Work

ROWS, BYTES = 1_000_000, 64


def work() -> Work:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, (ROWS, BYTES), np.uint8) for _ in range(2))
    # What ops.hamming_distance(a, b) passes: it sees the rows as words of 64 bits.
    kernel, c, d = mj.stdlib.bits.hamming, a.view(np.uint64), b.view(np.uint64)
    out = np.empty(ROWS, np.uint32)
    peers: dict[str, Run] = {"NumPy": numpy_peer(a, b), **numba_peer(a, b), **torch_peer(a, b)}
    return Work(
        f"hamming {ROWS // 10**6}M × {BYTES} bytes",
        a.nbytes + b.nbytes + 4 * ROWS,
        lambda: kernel(c, d, out=out),
        peers,
    )


def numpy_peer(a: NDArray[Any], b: NDArray[Any]) -> Run:
    """On words of 64 bits, which is quicker than on bytes."""
    c, d = a.view(np.uint64), b.view(np.uint64)
    differing, counts, out = np.empty_like(c), np.empty(c.shape, np.uint8), np.empty(ROWS, np.uint32)

    def run() -> Any:
        np.bitwise_xor(c, d, out=differing)
        np.bitwise_count(differing, out=counts)
        return counts.sum(-1, out=out)

    return run


def numba_peer(a: NDArray[Any], b: NDArray[Any]) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}
    c, d = a.view(np.uint64), b.view(np.uint64)

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def distances(a: Any, b: Any, out: Any) -> None:
        for i in numba.prange(a.shape[0]):
            total = np.uint64(0)
            for k in range(a.shape[1]):
                # LLVM knows these lines as a population count.
                v = a[i, k] ^ b[i, k]
                v = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
                v = (v & np.uint64(0x3333333333333333)) + (
                    (v >> np.uint64(2)) & np.uint64(0x3333333333333333)
                )
                v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
                total += (v * np.uint64(0x0101010101010101)) >> np.uint64(56)
            out[i] = np.uint32(total)

    out = np.empty(ROWS, np.uint32)

    def run() -> Any:
        distances(c, d, out)
        return out

    return {"numba": run}


def torch_peer(a: NDArray[Any], b: NDArray[Any]) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    counts = torch.from_numpy(np.bitwise_count(np.arange(256, dtype=np.uint8)))
    c, d = torch.from_numpy(a), torch.from_numpy(b)
    return {"torch": lambda: counts[(c ^ d).int()].sum(-1, dtype=torch.int32)}
