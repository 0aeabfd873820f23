"""Rows that indices name, all pairs of bit strings, scans and sorting; sum and variance of 4096²."""

from __future__ import annotations

from typing import Any

import numpy as np

from metaljit import ops

from .timing import Run, Work

ROWS, WIDTH = 1 << 17, 64
POINTS, BYTES = 4096, 64
LONG = 1 << 20
SIDE = 4096


def gather_rows() -> Work:
    rng = np.random.default_rng(0)
    x, at = rng.random((ROWS, WIDTH), np.float32), rng.integers(0, ROWS, (ROWS, 1), np.int32)
    flat = at[:, 0]
    peers: dict[str, Run] = {
        "NumPy": lambda: np.take(x, flat, 0),
        "NumPy, clipped": lambda: x.take(flat, 0, mode="clip"),
    }
    torch = _torch()
    if torch is not None:
        t, i = torch.from_numpy(x), torch.from_numpy(flat)
        peers["PyTorch"] = lambda: torch.index_select(t, 0, i)
    return Work(
        f"gather_nd of {ROWS} rows of {WIDTH} f32",
        2 * x.nbytes + at.nbytes,
        lambda: ops.gather_nd(x, at),
        peers,
    )


def hamming_pairs() -> Work:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, (POINTS, BYTES), np.uint8) for _ in range(2))
    peers: dict[str, Run] = {"NumPy": lambda: _numpy_pairs(a, b), **_numba_pairs(a, b)}
    nbytes = a.nbytes + b.nbytes + 4 * POINTS**2
    return Work(
        f"hamming all pairs {POINTS}² × {BYTES} bytes",
        nbytes,
        lambda: ops.hamming_distance(a, b, pairwise=True),
        peers,
    )


def _numpy_pairs(a: Any, b: Any) -> Any:
    """Row by row: all pairs at once would take a gigabyte."""
    c, d = a.view(np.uint64), b.view(np.uint64)
    out = np.empty((len(c), len(d)), np.uint32)
    for row, total in zip(c, out, strict=True):
        np.bitwise_count(row ^ d).sum(-1, out=total)
    return out


def _numba_pairs(a: Any, b: Any) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}
    ones = [np.uint64(int(pattern * 8, 16)) for pattern in ("55", "33", "0f", "01")]
    m1, m2, m4, h = ones

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def pairs(c: Any, d: Any, out: Any) -> None:
        for i in numba.prange(c.shape[0]):
            for j in range(d.shape[0]):
                total = np.uint64(0)
                for k in range(c.shape[1]):
                    # LLVM knows these lines as a population count.
                    v = c[i, k] ^ d[j, k]
                    v = v - ((v >> np.uint64(1)) & m1)
                    v = (v & m2) + ((v >> np.uint64(2)) & m2)
                    v = (v + (v >> np.uint64(4))) & m4
                    total += (v * h) >> np.uint64(56)
                out[i, j] = np.uint32(total)

    c, d, out = a.view(np.uint64), b.view(np.uint64), np.empty((len(a), len(b)), np.uint32)

    def run() -> Any:
        pairs(c, d, out)
        return out

    return {"numba": run}


def cumsum() -> Work:
    x = np.random.default_rng(0).integers(-4, 5, 16 * LONG).astype(np.float32)
    peers: dict[str, Run] = {"NumPy": lambda: np.cumsum(x)}
    torch = _torch()
    if torch is not None:
        t = torch.from_numpy(x)
        peers["PyTorch"] = lambda: torch.cumsum(t, 0).numpy()
    return Work("cumsum of 16M f32", 2 * x.nbytes, lambda: ops.cumsum(x), peers)


def sort() -> Work:
    x = np.random.default_rng(0).random(LONG, np.float32)
    peers: dict[str, Run] = {"NumPy": lambda: np.sort(x), "NumPy, stable": lambda: np.sort(x, kind="stable")}
    torch = _torch()
    if torch is not None:
        t = torch.from_numpy(x)
        peers["PyTorch"] = lambda: torch.sort(t)[0].numpy()
    return Work("sort of 1M f32", 2 * x.nbytes, lambda: ops.sort(x), peers)


def argsort() -> Work:
    x = np.random.default_rng(0).random(LONG, np.float32)
    peers: dict[str, Run] = {"NumPy, stable": lambda: np.argsort(x, kind="stable")}
    torch = _torch()
    if torch is not None:
        t = torch.from_numpy(x)
        peers["PyTorch, stable"] = lambda: torch.argsort(t, stable=True).numpy()
    return Work("argsort of 1M f32", x.nbytes + 4 * LONG, lambda: ops.argsort(x), peers)


def reduced(name: str) -> Work:
    x = np.random.default_rng(0).integers(0, 4, (SIDE, SIDE)).astype(np.float32)
    peers: dict[str, Run] = {"NumPy": lambda: getattr(np, name)(x)}
    torch = _torch()
    if torch is not None:
        t = torch.from_numpy(x)
        peers["PyTorch"] = (
            (lambda: t.sum().numpy()) if name == "sum" else (lambda: t.var(correction=0).numpy())
        )
    return Work(f"ops.{name} of {SIDE}² f32", x.nbytes, lambda: getattr(ops, name)(x), peers)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


WORKS = {
    "gather_rows": gather_rows,
    "hamming_pairs": hamming_pairs,
    "op_sum": lambda: reduced("sum"),
    "op_var": lambda: reduced("var"),
    "cumsum": cumsum,
    "sort": sort,
    "argsort": argsort,
}
