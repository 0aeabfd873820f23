"""Grid kernels: scatter, histograms, atomics, in-place updates, several threads to an element."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

from typing import Any

import numpy as np
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    InOut,
    Out,
    atomic_add,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
    ceil_div,
    const,
    f32,
    f32x3,
    global_index,
    grid_size,
    group_index,
    group_size,
    i32,
    lane,
    local_array,
    simd_index,
    thread_index,
    u8,
    u32,
    unchecked,
)
from metaljit.testing import Tolerance

programs = Programs()
N, M, H, W, K = mj.dims("N M H W K")


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def histogram(x: u8[N], bins: Out[i32[256]]):
    i = global_index()
    if i < N:
        atomic_add(bins, x[i], 1)


programs.add(
    histogram,
    lambda x: np.bincount(x, minlength=256).astype(np.int32),
    lambda r: [(r.bits(1000, dtype=np.uint8),), (r.bits(0, dtype=np.uint8),), (r.bits(65, dtype=np.uint8),)],
)


@mj.kernel(grid=ceil_div(100, 32), threadgroup=32)
def squares(x: f32[N], out: Out[f32[N]]):
    i = global_index()
    out[i] = x[i] * x[i]


programs.add(
    squares,
    lambda x: np.where(np.arange(len(x)) < 128, x * x, 0),
    lambda r: [(r.floats(100),), (r.floats(200),), (r.floats(3),)],
)


@mj.kernel(grid="(ceil_div(H, 4), ceil_div(W, 16))", threadgroup=(4, 16))
def transpose(x: f32[H, W], y: Out[f32[W, H]]):
    i, j = global_index()
    y[j, i] = x[i, j]


programs.add(transpose, lambda x: x.T, lambda r: [(r.floats(5, 33),), (r.floats(8, 16),), (r.floats(1, 1),)])


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def scatter_add(index: i32[N], values: f32[N], into: InOut[f32[M]]):
    i = global_index()
    if i < N:
        atomic_add(into, index[i], values[i])


def _scatter(index: Any, values: Any, into: Any) -> Any:
    out = into.astype(np.float64)
    inside = (index >= 0) & (index < len(into))
    np.add.at(out, index[inside], values[inside])
    return out


programs.add(
    scatter_add,
    _scatter,
    lambda r: (r.ints(200, low=-3, high=13), r.floats(200), r.floats(10)),
    tolerance=Tolerance(1e-4, 1e-4),
)


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def extremes(x: i32[N], low: Out[i32[1]], high: Out[i32[1]]):
    i = global_index()
    if i < N:
        atomic_min(low, 0, x[i])
        atomic_max(high, 0, x[i])


programs.add(
    extremes,
    lambda x: (np.minimum(x.min(keepdims=True), 0), np.maximum(x.max(keepdims=True), 0)),
    lambda r: [(r.bits(100, dtype=np.int32),), (r.ints(5, low=3, high=9),)],
)


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def bloom(key: u32[N], bits: Out[u32[8]], parity: Out[u32[1]]):
    i = global_index()
    if i >= N:
        return
    h = key[i] * 2654435761
    atomic_or(bits, h >> 29, u32(1) << (h & 31))
    atomic_xor(parity, 0, key[i])


def _bloom(key: Any) -> Any:
    bits = np.zeros(8, np.uint32)
    h = key * np.uint32(2654435761)
    np.bitwise_or.at(bits, h >> np.uint32(29), np.uint32(1) << (h & np.uint32(31)))
    return bits, np.bitwise_xor.reduce(key)[None]


programs.add(bloom, _bloom, lambda r: (r.bits(50),))


@mj.kernel(grid=2, threadgroup=32)
def ticket(order: Out[i32[64]], counter: Out[i32[1]]):
    """Every thread takes a number; the numbers are a permutation."""
    n = atomic_add(counter, 0, 1)
    order[n] = 1


programs.add(ticket, lambda: (np.ones(64, np.int32), np.array([64], np.int32)), lambda r: ())


@mj.kernel(grid=1, threadgroup=64)
def claim(slots: Out[i32[4]], won: Out[i32[1]]):
    """One thread wins each slot."""
    t = thread_index()
    if atomic_cas(slots, t % 4, 0, t + 1) == 0:
        atomic_add(won, 0, 1)


programs.add(claim, None, lambda r: ())  # type: ignore[arg-type]
programs.programs.pop()


@mj.kernel(grid=1, threadgroup=32)
def swap_all(x: InOut[i32[N]], total: Out[i32[1]]):
    """Every element is exchanged once; what was there adds up."""
    t = thread_index()
    if t < N:
        old = atomic_exchange(x, t, -t)
        atomic_add(total, 0, old)


programs.add(
    swap_all,
    lambda x: (
        np.where(np.arange(len(x)) < 32, -np.arange(len(x)), x).astype(np.int32),
        x[:32].sum(keepdims=True),
    ),
    lambda r: [(r.ints(20),), (r.ints(40),)],
)


@mj.kernel(grid="(K, ceil_div(N, block))", threadgroup="(1, block)")
def positions(like: f32[K, N], out: Out[i32[K, N, 8]], block: const[int] = 32):
    k, i = global_index()
    if i < N:
        g, t = group_index(), thread_index()
        values = (g[0], g[1], t[1], group_size()[1], grid_size()[0], grid_size()[1], lane(), simd_index())
        for n, v in enumerate(values):
            out[k, i, n] = v


def _positions(like: Any, block: int = 32) -> Any:
    k, n = like.shape
    out = np.zeros((k, n, 8), np.int32)
    for a, b in np.ndindex(k, n):
        out[a, b] = a, b // block, b % block, block, k, -(-n // block), b % block % 32, b % block // 32
    return out


programs.add(positions, _positions, lambda r: [(r.floats(2, 40),), (r.floats(3, 70), 64)])


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def reverse_in_place(x: InOut[f32[N]]):
    """Each thread moves a pair: nobody else touches it."""
    i = global_index()
    j = N - 1 - i
    if i < j:
        a, b = x[i], x[j]
        x[i] = b
        x[j] = a


programs.add(
    reverse_in_place, lambda x: x[::-1], lambda r: [(r.floats(33),), (r.floats(64),), (r.floats(0),)]
)


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def increment_small(x: InOut[u8[N]]):
    i = global_index()
    if i < N:
        x[i] += 1
        x[i] *= 3


programs.add(
    increment_small, lambda x: (x + np.uint8(1)) * np.uint8(3), lambda r: (r.bits(50, dtype=np.uint8),)
)


@mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
def strided_sums(x: f32[M], out: Out[f32[N]]):
    """A grid-stride loop."""
    i = global_index()
    if i < N:
        acc = 0.0
        for k in range(i, M, 4):
            acc += x[k]
        out[i] = acc


programs.add(
    strided_sums,
    lambda x: np.array([x[i::4].sum() for i in range(4)]),
    lambda r: (r.floats(37),),
)
programs.programs.pop()  # N is not bound by an argument: see test_doors


@mj.kernel(grid="count", threadgroup=32)
def spread(x: f32x3[N], count: i32, out: Out[f32x3[32 * count]]):
    i = global_index()
    out[i] = unchecked(x)[i % N] * 2 + f32x3(0, 1, i)


def _spread(x: Any, count: int) -> Any:
    i = np.arange(32 * count)
    return x[i % len(x)] * 2 + np.stack([0 * i, 0 * i + 1, i], 1)


programs.add(spread, _spread, lambda r: [(r.floats(5, 3), 2), (r.floats(40, 3), 1)])


@mj.kernel(grid="ceil_div(H * W, 32)", threadgroup=32)
def label_counts(label: u8[H, W], value: f32[H, W], count: Out[i32[4]], total: Out[f32[4]]):
    i = global_index()
    y, x = i // W, i % W
    if y < H:
        k = label[y, x]
        atomic_add(count, k, 1)
        atomic_add(total, k, value[y, x])


def _label(label: Any, value: Any) -> Any:
    ks = [label == k for k in range(4)]
    return np.array([k.sum() for k in ks], np.int32), np.array(
        [value[k].astype(np.float64).sum() for k in ks]
    )


programs.add(
    label_counts,
    _label,
    lambda r: (r.ints(9, 11, high=6, dtype=np.uint8), r.floats(9, 11)),
    tolerance=Tolerance(1e-4, 1e-4),
)


@mj.kernel(grid="N", threadgroup=32)
def row_sort(x: f32[N, 8], out: Out[f32[N, 8]]):
    if thread_index() == 0:
        n = group_index()
        t = local_array(f32, 8)
        for k in range(8):
            t[k] = x[n, k]
        for a in range(7):
            for b in range(7 - a):
                if t[b] > t[b + 1]:
                    t[b], t[b + 1] = t[b + 1], t[b]
        for k in range(8):
            out[n, k] = t[k]


programs.add(row_sort, lambda x: np.sort(x, 1), lambda r: (r.floats(5, 8),))


@programs.parametrize
def test_grids(program: Program, runner: str) -> None:
    program.check(runner)


def test_claim_has_one_winner_a_slot(device: str) -> None:
    for run in (claim.interpret, claim.on(device)):
        slots, won = run()
        assert won[0] == 4
        assert [(s - 1) % 4 for s in slots] == [0, 1, 2, 3]
