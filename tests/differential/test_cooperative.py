"""Cooperative kernels: threadgroup arrays, barriers, collectives of groups and simdgroups, atomics on shared memory."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    InOut,
    Out,
    atomic_add,
    atomic_cas,
    atomic_max,
    barrier,
    bool_,
    border,
    ceil_div,
    const,
    f16,
    f32,
    f32x3,
    global_index,
    group_index,
    group_max,
    group_min,
    group_prefix_sum,
    group_size,
    group_sum,
    i32,
    i64,
    lane,
    local_array,
    simd_ballot,
    simd_broadcast,
    simd_index,
    simd_max,
    simd_min,
    simd_prefix_sum,
    simd_shuffle,
    simd_shuffle_down,
    simd_shuffle_up,
    simd_shuffle_xor,
    simd_sum,
    simdgroup_fill,
    simdgroup_load,
    simdgroup_matrix,
    simdgroup_multiply_accumulate,
    simdgroup_store,
    thread_index,
    threadgroup_array,
    u8,
    u32,
    u64,
    uniform,
)
from metaljit.testing import Tolerance

programs = Programs()
N, M, H, W, K = mj.dims("N M H W K")
ROUNDED = Tolerance(1e-5, 1e-5)


@mj.kernel(grid="ceil_div(N, block)", threadgroup="block")
def tree_sums(x: f32[N], out: Out[f32[ceil_div(N, block)]], block: const[int] = 64):
    tile = threadgroup_array(f32, block)
    t, i = thread_index(), global_index()
    tile[t] = x[i] if i < N else 0.0
    barrier()
    step = block // 2
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
        barrier()
        step //= 2
    if t == 0:
        out[group_index()] = tile[0]


def _tree_sums(x: Any, block: int = 64) -> Any:
    padded = np.zeros(-(-len(x) // block) * block)
    padded[: len(x)] = x
    return padded.reshape(-1, block).sum(1)


programs.add(
    tree_sums,
    _tree_sums,
    lambda r: [(r.floats(130),), (r.floats(64), 32), (r.floats(999), 256), (r.floats(0),)],
    tolerance=ROUNDED,
)


@mj.kernel(grid="ceil_div(N, 96)", threadgroup=96)
def group_results(
    x: i32[N], total: Out[i32[N]], low: Out[i32[N]], high: Out[i32[N]], upto: Out[i32[N]], before: Out[i32[N]]
):
    i = global_index()
    v = x[i]
    s, a, b = group_sum(v), group_min(v), group_max(v)
    p, q = group_prefix_sum(v), group_prefix_sum(v, exclusive=True)
    if i < N:
        total[i] = s
        low[i] = a
        high[i] = b
        upto[i] = p
        before[i] = q


def _group_results(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 96) * 96, np.int32)
    padded[: len(x)] = x
    rows = padded.reshape(-1, 96)

    def spread(v: Any) -> Any:
        return np.broadcast_to(v, rows.shape).astype(np.int32).reshape(-1)[: len(x)]

    sums = rows.cumsum(1, dtype=np.int32)
    return (
        spread(rows.sum(1, keepdims=True, dtype=np.int32)),
        spread(rows.min(1, keepdims=True)),
        spread(rows.max(1, keepdims=True)),
        spread(sums),
        spread(sums - rows),
    )


programs.add(group_results, _group_results, lambda r: [(r.bits(200, dtype=np.int32),), (r.ints(96, low=-5),)])


@mj.kernel(grid="N", threadgroup=32)
def one_simdgroup(x: f32[N, 32], out: Out[f32[N, 5]]):
    """A group that is one simdgroup."""
    n, t = group_index(), thread_index()
    tile = threadgroup_array(f32, 32)
    tile[31 - t] = x[n, t]
    barrier()
    v = tile[t]
    s, a, b, p = group_sum(v), group_min(v), simd_max(v), group_prefix_sum(v, exclusive=True)
    if t == 31:
        out[n, 0] = s
        out[n, 1] = a
        out[n, 2] = b
        out[n, 3] = p
        out[n, 4] = v


programs.add(
    one_simdgroup,
    lambda x: np.stack([x.sum(1), x.min(1), x.max(1), x[:, 1:].sum(1), x[:, 0]], 1),
    lambda r: (r.floats(3, 32),),
    tolerance=ROUNDED,
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def nan_goes_through(x: f32[N], low: Out[f32[N]], high: Out[f32[N]]):
    i = global_index()
    v = x[i] if i < N else 0.0
    a, b, c, d = simd_min(v), simd_max(v), group_min(v), group_max(v)
    if i < N:
        low[i] = a if lane() % 2 == 0 else c
        high[i] = b if lane() % 2 == 0 else d


def _nan(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.float32)
    padded[: len(x)] = x
    found = []
    for best in (np.minimum, np.maximum):
        simd = np.repeat(best.reduce(padded.reshape(-1, 32), 1), 32)
        group = np.repeat(best.reduce(padded.reshape(-1, 64), 1), 64)
        found.append(np.where(np.arange(len(padded)) % 2 == 0, simd, group)[: len(x)])
    return tuple(found)


def _with_nan(r: Any) -> Any:
    x = r.floats(150)
    x[[3, 70]] = np.nan
    return (x,)


programs.add(nan_goes_through, _nan, _with_nan)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def lanes_of(x: i32[N], by: i32[N], out: Out[i32[N, 8]]):
    i = global_index()
    v, k = x[i], by[i]
    values = (
        simd_shuffle(v, k),
        simd_shuffle_xor(v, 5),
        simd_shuffle_up(v, 3),
        simd_shuffle_down(v, 2),
        simd_broadcast(v, 7),
        simd_prefix_sum(v),
        simd_prefix_sum(v, exclusive=True),
        i32(simd_ballot(v > 0)),
    )
    for n, one in enumerate(values):
        out[i, n] = one


def _lanes_of(x: Any, by: Any) -> Any:
    rows, k, lanes = x.reshape(-1, 32), by.reshape(-1, 32), np.arange(32)
    up = np.where(lanes >= 3, np.roll(rows, 3, 1), rows)
    down = np.where(lanes < 30, np.roll(rows, -2, 1), rows)
    sums = rows.cumsum(1, dtype=np.int32)
    votes = ((rows > 0).astype(np.uint64) << lanes.astype(np.uint64)).sum(1).astype(np.uint32)
    columns = [
        np.take_along_axis(rows, k % 32, 1),
        rows[:, lanes ^ 5],
        up,
        down,
        np.broadcast_to(rows[:, 7:8], rows.shape),
        sums,
        sums - rows,
        np.broadcast_to(votes.view(np.int32)[:, None], rows.shape),
    ]
    return np.stack([c.reshape(-1) for c in columns], 1)


programs.add(lanes_of, _lanes_of, lambda r: (r.ints(128, low=-50, high=50), r.ints(128, low=-70, high=70)))


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def wide_numbers(x: i64[N], y: u64[N], out: Out[i64[N, 4]], other: Out[u64[N, 4]]):
    i = global_index()
    a, b = x[i], y[i]
    s = (simd_shuffle_xor(a, 1), simd_sum(a), group_min(a), simd_prefix_sum(a))
    u = (simd_broadcast(b, 3), group_sum(b), group_max(b), group_prefix_sum(b, exclusive=True))
    for k in range(4):
        out[i, k] = s[k]
        other[i, k] = u[k]


def _wide_numbers(x: Any, y: Any) -> Any:
    a, b, lanes = x.reshape(-1, 32), y.reshape(-1, 64), np.arange(32)

    def column(v: Any, like: Any) -> Any:
        return np.broadcast_to(v, like.shape).reshape(-1)

    sums = b.cumsum(1, dtype=np.uint64)
    c = x.reshape(-1, 64)
    first = [a[:, lanes ^ 1], a.sum(1, keepdims=True), None, a.cumsum(1)]
    columns = [column(v, a) if v is not None else column(c.min(1, keepdims=True), c) for v in first]
    third = np.repeat(y.reshape(-1, 32)[:, 3], 32)
    others = [
        third,
        column(b.sum(1, keepdims=True), b),
        column(b.max(1, keepdims=True), b),
        column(sums - b, b),
    ]
    return np.stack(columns, 1), np.stack(others, 1)


programs.add(
    wide_numbers, _wide_numbers, lambda r: (r.bits(128, dtype=np.int64), r.bits(128, dtype=np.uint64))
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def small_numbers(x: u8[N], h: f16[N], b: bool_[N], out: Out[u32[N]], half: Out[f32[N]], flags: Out[i32[N]]):
    """Sums of small types are wide, as everywhere."""
    i = global_index()
    s, m = simd_sum(x[i]), simd_max(x[i])
    total, least = group_sum(h[i]), simd_min(h[i])
    count, other = group_sum(b[i]), simd_shuffle_down(b[i], 1)
    if i < N:
        out[i] = s * 1000 + m
        half[i] = total + f32(least)
        flags[i] = count * 2 + i32(other)


def _small_numbers(x: Any, h: Any, b: Any) -> Any:
    rows = x.reshape(-1, 32)
    out = np.repeat(rows.astype(np.uint32).sum(1) * 1000 + rows.max(1), 32).astype(np.uint32)
    half = np.repeat(h.reshape(-1, 64).astype(np.float32).sum(1), 64) + np.repeat(
        h.reshape(-1, 32).min(1), 32
    )
    flags = b.reshape(-1, 32)
    down = np.where(np.arange(32) < 31, np.roll(flags, -1, 1), flags).reshape(-1)
    return out, half.astype(np.float32), (np.repeat(b.reshape(-1, 64).sum(1), 64) * 2 + down).astype(np.int32)


programs.add(
    small_numbers,
    _small_numbers,
    lambda r: (r.bits(128, dtype=np.uint8), r.floats(128, dtype=np.float16), r.bools(128)),
    tolerance=ROUNDED,
)


@mj.kernel(grid="(ceil_div(H, 16), ceil_div(W, 16))", threadgroup=(16, 16))
def tiled_transpose(x: f32[H, W], out: Out[f32[W, H]]):
    tile = threadgroup_array(f32, 16, 17)
    (gy, gx), (ty, tx) = group_index(), thread_index()
    tile[ty, tx] = x[16 * gy + ty, 16 * gx + tx]
    barrier()
    out[16 * gx + ty, 16 * gy + tx] = tile[tx, ty]


programs.add(
    tiled_transpose, lambda x: x.T, lambda r: [(r.floats(20, 33),), (r.floats(16, 16),), (r.floats(1, 50),)]
)


@mj.kernel(grid="(ceil_div(H, 8), ceil_div(W, 8))", threadgroup=(8, 8))
def tiled_matmul(a: f32[H, K], b: f32[K, W], out: Out[f32[H, W]]):
    left, right = threadgroup_array(f32, 8, 8), threadgroup_array(f32, 8, 8)
    (y, x), (ty, tx) = global_index(), thread_index()
    acc = 0.0
    for k in range(0, K, 8):
        left[ty, tx] = a[y, k + tx]
        right[ty, tx] = b[k + ty, x]
        barrier()
        for j in range(8):
            acc += left[ty, j] * right[j, tx]
        barrier()
    if y < H and x < W:
        out[y, x] = acc


programs.add(
    tiled_matmul,
    lambda a, b: a.astype(np.float64) @ b,
    lambda r: [
        (r.floats(9, 20), r.floats(20, 13)),
        (r.floats(8, 8), r.floats(8, 8)),
        (r.floats(3, 0), r.floats(0, 3)),
    ],
    tolerance=ROUNDED,
)


@mj.kernel(grid="ceil_div(N, 128)", threadgroup=128)
def group_histogram(x: u8[N], bins: Out[i32[16]]):
    own = threadgroup_array(i32, 16)
    t, i = thread_index(), global_index()
    if t < 16:
        own[t] = 0
    barrier()
    if i < N:
        atomic_add(own, x[i] // 16, 1)
    barrier()
    if t < 16:
        atomic_add(bins, t, own[t])


programs.add(
    group_histogram,
    lambda x: np.bincount(x // 16, minlength=16).astype(np.int32),
    lambda r: [(r.bits(1000, dtype=np.uint8),), (r.bits(5, dtype=np.uint8),)],
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def shared_atomics(
    x: f32[N],
    total: Out[f32[ceil_div(N, 64)]],
    most: Out[i32[ceil_div(N, 64)]],
    won: Out[i32[ceil_div(N, 64)]],
):
    sums, best, lock = threadgroup_array(f32, 1), threadgroup_array(i32, 1), threadgroup_array(u32, 1)
    t, i, g = thread_index(), global_index(), group_index()
    if t == 0:
        sums[0] = 0
        best[0] = -1
        lock[0] = 0
    barrier()
    if i < N:
        atomic_add(sums, 0, x[i])
        atomic_max(best, 0, i32(x[i]))
        if atomic_cas(lock, 0, 0, 1) == 0:
            won[g] = 1
    barrier()
    if t == 1:
        total[g] = sums[0]
        most[g] = best[0]


def _shared_atomics(x: Any) -> Any:
    rows = x.reshape(-1, 64)
    n = len(rows)
    return rows.astype(np.float64).sum(1), np.maximum(rows.astype(np.int32).max(1), -1), np.ones(n, np.int32)


programs.add(
    shared_atomics, _shared_atomics, lambda r: (r.floats(128, high=50),), tolerance=Tolerance(1e-4, 1e-4)
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def neighbours_in_group(x: f32[N], out: Out[f32[N]]):
    """A border of a threadgroup array, and one that reads beyond its end."""
    tile = threadgroup_array(f32, 64)
    t, i = thread_index(), global_index()
    tile[t] = x[i]
    barrier()
    wrapped = border(tile, "wrap")
    if i < N:
        out[i] = wrapped[t - 1] + wrapped[t + 1] + tile[t + 1]


def _neighbours(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.float32)
    padded[: len(x)] = x
    rows = padded.reshape(-1, 64)
    beyond = np.roll(rows, -1, 1)
    beyond[:, -1] = 0
    return (np.roll(rows, 1, 1) + np.roll(rows, -1, 1) + beyond).reshape(-1)[: len(x)]


programs.add(neighbours_in_group, _neighbours, lambda r: (r.floats(100),), tolerance=ROUNDED)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def vectors_and_bools(x: f32x3[N], out: Out[f32x3[N]], odd: Out[bool_[N]]):
    kept, flags = threadgroup_array(f32x3, 64), threadgroup_array(bool_, 64)
    t, i = thread_index(), global_index()
    kept[63 - t] = x[i] * 2
    flags[63 - t] = i % 2 == 1
    barrier()
    if i < N:
        out[i] = kept[63 - t]
        odd[i] = flags[63 - t]


programs.add(
    vectors_and_bools,
    lambda x: (2 * x, np.arange(len(x)) % 2 == 1),
    lambda r: [(r.floats(64, 3),), (r.floats(70, 3),)],
)


@mj.function
def sum_of_group(x, shared):
    """A tree of its own, called twice."""
    t = thread_index()
    shared[t] = x
    barrier()
    for k in range(6):
        step = 32 >> k
        if t < step:
            shared[t] += shared[t + step]
        barrier()
    found = shared[0]
    barrier()
    return found


@mj.function
def scaled(shared, t, by):
    return shared[t] * by


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def with_functions(x: f32[N], out: Out[f32[N]]):
    tile = threadgroup_array(f32, 64)
    i, t = global_index(), thread_index()
    v = x[i] if i < N else 0.0
    total = sum_of_group(v, tile)
    squares = sum_of_group(v * v, tile)
    tile[t] = v
    barrier()
    if i < N:
        out[i] = scaled(tile, 63 - t, total) + squares


def _with_functions(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64)
    padded[: len(x)] = x
    rows = padded.reshape(-1, 64)
    found = rows[:, ::-1] * rows.sum(1, keepdims=True) + (rows * rows).sum(1, keepdims=True)
    return found.reshape(-1)[: len(x)]


programs.add(
    with_functions,
    _with_functions,
    lambda r: [(r.floats(64),), (r.floats(100),)],
    tolerance=Tolerance(1e-4, 1e-4),
)


@mj.kernel(grid="H", threadgroup=64)
def early_leave(x: f32[H, W], out: Out[f32[H, W]]):
    """A uniform return before a barrier, one of some threads after the last."""
    y, t = group_index(), thread_index()
    if y == 1:
        return
    tile = threadgroup_array(f32, 64)
    tile[t] = x[y, t] if t < W else 0.0
    barrier()
    if t >= W:
        return
    for k in range(3):
        if tile[t] > 1.5 * k:
            continue
        if k == 2:
            return
        out[y, t] = tile[63 - t] + k
    out[y, t] += tile[t]


def _early(x: Any) -> Any:
    h, w = x.shape
    out = np.zeros_like(x)
    for y in range(h):
        if y == 1:
            continue
        tile = np.zeros(64, np.float32)
        tile[:w] = x[y]
        for t in range(w):
            for k in range(3):
                if tile[t] > np.float32(1.5 * k):
                    continue
                if k == 2:
                    break
                out[y, t] = tile[63 - t] + np.float32(k)
            else:
                out[y, t] += tile[t]
    return out


programs.add(early_leave, _early, lambda r: [(r.floats(4, 50, low=-1, high=5),), (r.floats(2, 64, high=4),)])


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def uniform_loop(x: i32[N], out: Out[i32[N]]):
    """A loop that all threads leave together, because of what they found together."""
    i, t = global_index(), thread_index()
    shared = threadgroup_array(i32, 64)
    v = x[i] if i < N else 0
    rounds = 0
    while True:
        shared[t] = v
        barrier()
        most = shared[0]
        for k in range(1, 64):
            most = max(most, shared[k])
        barrier()
        if most <= 10:
            break
        v = v // 2
        rounds += 1
        if group_sum(v) == 0:
            continue
    if i < N:
        out[i] = v + 1000 * rounds


def _uniform_loop(x: Any) -> Any:
    out = x.copy()
    for start in range(0, len(x), 64):
        v, rounds = x[start : start + 64].copy(), 0
        while max(v.max(), 0 if len(v) < 64 else v.max()) > 10:
            v, rounds = v // 2, rounds + 1
        out[start : start + 64] = v + 1000 * rounds
    return out


programs.add(
    uniform_loop, _uniform_loop, lambda r: [(r.ints(100, high=1000),), (r.ints(64, low=-9, high=9),)]
)


@mj.kernel(grid="ceil_div(N, 128)", threadgroup=128)
def by_simdgroup(x: f32[N], out: Out[f32[N]]):
    """Simdgroups that go different ways, and a reduction in two steps."""
    i, s = global_index(), simd_index()
    v = x[i] if i < N else 0.0
    if s % 2 == 0:
        a = simd_sum(v)
        if s == 0:
            a += simd_max(v)
        v = a
    else:
        for k in range(s):
            v += simd_shuffle_xor(v, 1 << k)
    parts = threadgroup_array(f32, 4)
    total = simd_sum(v)
    if lane() == 0:
        parts[s] = total
    barrier()
    whole = simd_sum(parts[lane()] if lane() < 4 else 0.0)
    if i < N:
        out[i] = v + whole


def _by_simdgroup(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 128) * 128)
    padded[: len(x)] = x
    groups = padded.reshape(-1, 4, 32).copy()
    lanes = np.arange(32)
    for g in groups:
        g[0] = g[0].sum() + g[0].max()
        g[2] = g[2].sum()
        for s in (1, 3):
            for k in range(s):
                g[s] = g[s] + g[s][lanes ^ (1 << k)]
    groups += groups.sum((1, 2), keepdims=True)
    return groups.reshape(-1)[: len(x)]


programs.add(
    by_simdgroup,
    _by_simdgroup,
    lambda r: [(r.floats(128),), (r.floats(300),)],
    tolerance=Tolerance(1e-4, 1e-4),
)


@mj.kernel(grid="(K, ceil_div(N, 64))", threadgroup=(2, 64))
def two_axes(x: f32[K, N], out: Out[f32[2 * K, N]]):
    """The first axis is the same for a simdgroup."""
    (g, _), (ty, tx) = group_index(), thread_index()
    _, i = global_index()
    tile = threadgroup_array(f32, 2, 64)
    tile[ty, tx] = x[g, i] * (ty + 1) if i < N else 0.0
    if ty == 1:
        tile[ty, tx] += simd_sum(tile[ty, tx])
    barrier()
    if i < N:
        out[2 * g + ty, i] = tile[1 - ty, 63 - tx] + group_size()[0]


def _two_axes(x: Any) -> Any:
    k, n = x.shape
    columns = -(-n // 64) * 64
    padded = np.zeros((k, columns))
    padded[:, :n] = x
    rows = padded.reshape(k, -1, 2, 32)
    twice = 2 * rows
    twice = twice + twice.sum(-1, keepdims=True)
    first = twice.reshape(k, -1, 64)[:, :, ::-1].reshape(k, columns)
    second = padded.reshape(k, -1, 64)[:, :, ::-1].reshape(k, columns)
    return (np.stack([first, second], 1).reshape(2 * k, columns) + 2)[:, :n]


programs.add(
    two_axes, _two_axes, lambda r: [(r.floats(3, 64),), (r.floats(2, 100),)], tolerance=Tolerance(1e-4, 1e-4)
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def private_arrays(x: i32[N], out: Out[i32[N]]):
    """Each thread's own array, a promise, and a value that lives across barriers."""
    i, t = global_index(), thread_index()
    own = local_array(i32, 4)
    shared = threadgroup_array(i32, 64)
    last = uniform(x[N - 1])
    for k in range(4):
        own[k] = x[i] + k
        shared[t] = own[k]
        barrier()
        if last > k:
            barrier()
            own[k] += shared[63 - t]
        barrier()
    if i < N:
        out[i] = own[0] + 10 * own[1] + 100 * own[2] + 1000 * own[3]


def _private(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.int32)
    padded[: len(x)] = x
    rows = padded.reshape(-1, 64)
    total = np.zeros_like(rows)
    for k in range(4):
        own = rows + k
        if x[-1] > k:
            own = own + own[:, ::-1]
        total = total + 10**k * own
    return total.reshape(-1)[: len(x)].astype(np.int32)


programs.add(private_arrays, _private, lambda r: [(np.array([5, 9, 2], np.int32),), (r.ints(64),)])


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def left_from_within(x: i32[N], out: Out[i32[N]]):
    """A return out of a loop in a loop, at another turn for each thread."""
    i = global_index()
    shared = threadgroup_array(i32, 64)
    shared[thread_index()] = x[i]
    barrier()
    v = shared[63 - thread_index()]
    count = 0
    for a in range(4):
        out[i] = -1
        for b in range(4):
            out[i] = -2
            if v == 4 * a + b:
                out[i] = 1000 + count
                return
            count += 1
        count += 100
    out[i] = count


def _left_from_within(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.int32)
    padded[: len(x)] = x
    v = padded.reshape(-1, 64)[:, ::-1].reshape(-1)
    found = np.where((v >= 0) & (v < 16), 1000 + v + v // 4 * 100, 416)
    return found[: len(x)].astype(np.int32)


programs.add(
    left_from_within, _left_from_within, lambda r: [(r.ints(64, high=20),), (r.ints(99, low=-2, high=18),)]
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def promised(x: i32[N], out: Out[i32[N]]):
    """What threads compute one by one is the same for all, by the user's word."""
    i, t = global_index(), thread_index()
    shared = threadgroup_array(i32, 64)
    v = min(x[i] * 0 + 3, 3 + t)
    v += x[i] * 0
    turns = uniform(v)
    total = 0
    for k in range(turns):
        shared[t] = x[i] + k
        barrier()
        total += shared[63 - t]
        barrier()
    if i < N:
        out[i] = total


def _promised(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.int32)
    padded[: len(x)] = x
    return (3 * padded.reshape(-1, 64)[:, ::-1] + 3).reshape(-1)[: len(x)]


programs.add(promised, _promised, lambda r: [(r.ints(64),), (r.ints(99),)])


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def odd_places(x: i32[N], out: Out[i32[N]], limit: i32 = 3):
    """Where else a collective may stand: conditions, operands, asserts, unrolled loops, index expressions."""
    i, t, g = global_index(), thread_index(), group_index()
    shared = threadgroup_array(i32, 64)
    v = x[i]
    total = 0
    while group_sum(v) > 100 and (limit > 2 or group_max(v) > 5):
        v = v // 2
        total += 1
    for step, keep in ((1, True), (2, False), (4, True)):
        shared[t] = v
        barrier()
        v += shared[t ^ step] if keep else 0
        barrier()
        if step > limit:
            continue
        if group_min(v) < -1000:
            break
        total += 10
    own = shared[group_sum(t * 0 + g) % 64] if limit == 3 else group_sum(v) + simd_max(v)
    barrier()
    shared[t] = t
    shared[t] += simd_sum(t) + (simd_min(v) if limit > 1 else 0)
    assert simd_sum(1) == 32, "all lanes are here"
    more = 5 if group_sum(1) == 64 and simd_ballot(True) != 0 else 7
    if i < N:
        out[i] = v + 100 * total + own + shared[t] + more


def _odd_places(x: Any, limit: int = 3) -> Any:
    padded = np.zeros(-(-len(x) // 64) * 64, np.int32)
    padded[: len(x)] = x
    lanes, found = np.arange(64), []
    for g, v in enumerate(padded.reshape(-1, 64)):
        total = 0
        while v.sum() > 100 and (limit > 2 or v.max() > 5):
            v, total = v // 2, total + 1
        for step, keep in ((1, True), (2, False), (4, True)):
            shared = v
            v = v + (v[lanes ^ step] if keep else 0)
            if step > limit:
                continue
            if v.min() < -1000:
                break
            total += 10
        simds = v.reshape(2, 32)
        own = shared[(64 * g) % 64] if limit == 3 else v.sum() + np.repeat(simds.max(1), 32)
        last = (
            lanes
            + np.repeat(lanes.reshape(2, 32).sum(1), 32)
            + (np.repeat(simds.min(1), 32) if limit > 1 else 0)
        )
        found.append(v + 100 * total + own + last + 5)
    return np.concatenate(found)[: len(x)].astype(np.int32)


programs.add(
    odd_places,
    _odd_places,
    lambda r: [(r.ints(100, high=50),), (r.ints(64, low=-2000, high=30), 1), (r.ints(130, high=90), 5)],
)


@mj.kernel(grid="ceil_div(N, 1024)", threadgroup=1024)
def much_memory(x: i32[N], out: Out[i32[N]]):
    """More than a stack should hold: each thread's array lives across a barrier."""
    i, t = global_index(), thread_index()
    own, shared = local_array(i32, 60), threadgroup_array(i32, 1024)
    for k in range(60):
        own[k] = x[i] * k
    shared[t] = own[7]
    barrier()
    total = shared[1023 - t]
    for k in range(60):
        total += own[k]
    if i < N:
        out[i] = total


def _much_memory(x: Any) -> Any:
    padded = np.zeros(-(-len(x) // 1024) * 1024, np.int32)
    padded[: len(x)] = x
    return (7 * padded.reshape(-1, 1024)[:, ::-1].reshape(-1) + 1770 * padded)[: len(x)].astype(np.int32)


programs.add(much_memory, _much_memory, lambda r: (r.ints(1100),))


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def names_of_the_text(unit: f32[N], simd: f32[N], lane_: f32[N], block: Out[f32[N]]):
    """Names that the generated text uses, too."""
    index, group, threads = global_index(), group_index(), thread_index()
    memory = threadgroup_array(f32, 64)
    memory[threads] = unit[index] * 2
    barrier()
    element, begin, end = memory[63 - threads], simd[index], simd_sum(lane_[index])
    if index < N:
        block[index] = element + begin + end + group


def _names(unit: Any, simd: Any, lane_: Any) -> Any:
    n = len(unit)
    size = -(-n // 64) * 64
    a, b, c = (np.concatenate([v, np.zeros(size - n)]) for v in (unit, simd, lane_))
    ends = np.repeat(c.reshape(-1, 32).sum(1), 32)
    return (2 * a.reshape(-1, 64)[:, ::-1].reshape(-1) + b + ends + np.arange(size) // 64)[:n]


programs.add(
    names_of_the_text,
    _names,
    lambda r: (r.floats(100), r.floats(100), r.floats(100)),
    tolerance=Tolerance(1e-4, 1e-4),
)


@mj.kernel(grid=2, threadgroup=64)
def in_place(x: InOut[f32[128]]):
    """Threads of a group exchange what they wrote to an array of the device."""
    i, t, g = global_index(), thread_index(), group_index()
    x[i] = x[i] + 1
    barrier()
    v = x[64 * g + 63 - t]
    barrier()
    x[i] = v


programs.add(
    in_place,
    lambda x: (x + 1).reshape(2, 64)[:, ::-1].reshape(-1),
    lambda r: (r.floats(128),),
    tolerance=ROUNDED,
)


@mj.kernel(grid="(ceil_div(H, 16), ceil_div(W, 8))", threadgroup=64)
def matrix_product(a: f32[H, K], b: f32[K, W], out: Out[f32[H, W]]):
    """Two simdgroups, a tile of 8 by 8 each."""
    gy, gx = group_index()
    y, x = 16 * gy + 8 * simd_index(), 8 * gx
    left, right, acc = simdgroup_matrix(f32), simdgroup_matrix(f32), simdgroup_matrix(f32, 0)
    for k in range(0, K, 8):
        simdgroup_load(left, a, y, k)
        simdgroup_load(right, b, k, x)
        simdgroup_multiply_accumulate(acc, left, right, acc)
    simdgroup_store(acc, out, y, x)


def _matrix_product(a: Any, b: Any) -> Any:
    out = np.zeros((len(a), b.shape[1]))
    h, w, k = (n // 8 * 8 for n in (len(a), b.shape[1], b.shape[0]))
    out[:h, :w] = a[:h, :k].astype(np.float64) @ b[:k, :w]
    return out


programs.add(
    matrix_product,
    _matrix_product,
    lambda r: [(r.floats(24, 16), r.floats(16, 8)), (r.floats(17, 9), r.floats(9, 12))],
    tolerance=ROUNDED,
)


@mj.kernel(grid="ceil_div(H, 8)", threadgroup=32)
def tiles_of_halves(x: InOut[f16[H, 8]], y: Out[f32[H, 8]]):
    """In place, through a threadgroup array, with tiles that hold one number."""
    g, t = group_index(), thread_index()
    m, ones, scaled = simdgroup_matrix(f16), simdgroup_matrix(f16, 1), simdgroup_matrix(f16)
    tile = threadgroup_array(f16, 8, 16)
    simdgroup_load(m, x, 8 * g, 0)
    simdgroup_fill(scaled, 2 if g % 2 == 0 else 3)
    simdgroup_multiply_accumulate(m, m, ones, scaled)
    simdgroup_store(m, x, 8 * g, 0)
    simdgroup_store(m, tile, 0, 8)
    barrier()
    for k in range(2):
        row, column = (t + 32 * k) // 8, (t + 32 * k) % 8
        y[8 * g + row, column] = tile[row, 8 + column]


def _tiles_of_halves(x: Any) -> Any:
    sums = np.repeat(x.astype(np.float32).sum(1, keepdims=True), 8, 1)
    rows = np.arange(len(x))[:, None] // 8
    found = (sums + np.where(rows % 2 == 0, 2, 3)).astype(np.float16)
    return found, found.astype(np.float32)


programs.add(
    tiles_of_halves,
    _tiles_of_halves,
    lambda r: (r.floats(16, 8, dtype=np.float16),),
    tolerance=Tolerance(2e-2, 2e-2),
)


@programs.parametrize
def test_cooperative(program: Program, runner: str) -> None:
    program.check(runner)


@pytest.mark.skipif("emulator" not in mj.available_devices(), reason="there is no emulator")
@pytest.mark.parametrize("program", programs.programs, ids=lambda p: p.kernel.__name__)
def test_nothing_is_read_too_early(program: Program) -> None:
    """Neither undefined memory, nor what another thread writes between the same two barriers."""
    with mj.sanitize():
        program.check("emulator")


@mj.kernel(grid=1, threadgroup=64)
def checked(x: i32[64], out: Out[i32[64]]):
    t = thread_index()
    shared = threadgroup_array(i32, 64)
    shared[t] = x[t]
    barrier()
    assert shared[63 - t] < 100, "too large"
    out[t] = shared[63 - t]


def test_a_failed_assertion_says_where(device: str) -> None:
    x = np.arange(64, dtype=np.int32)
    x[10] = 100
    for run in (checked.interpret, checked.on(device)):
        with pytest.raises(mj.KernelAssertion, match=r"at position \(0, 53\).*too large"):
            run(x)


def test_a_read_of_what_nobody_wrote_is_an_error() -> None:
    kernel = mj.kernel_from_text(
        "@kernel(grid=1, threadgroup=32)\n"
        "def f(out: Out[f32[32]]):\n"
        "    tile = threadgroup_array(f32, 32)\n"
        "    if thread_index() != 5:\n"
        "        tile[thread_index()] = 1\n"
        "    barrier()\n"
        "    out[thread_index()] = tile[31 - thread_index()]\n"
    )
    with pytest.raises(
        mj.DeviceFault, match=r"(?s):7:5: .*element \(5\).*position \(0, 26\).*threadgroup-undefined"
    ):
        kernel.interpret()


def test_a_broken_promise_is_an_error() -> None:
    kernel = mj.kernel_from_text(
        "@kernel(grid=1, threadgroup=32)\n"
        "def f(out: Out[f32[32]]):\n"
        "    if uniform(thread_index() < 7):\n"
        "        barrier()\n"
        "    out[thread_index()] = 1\n"
    )
    with pytest.raises(
        mj.DeviceFault, match=r"(?s):4:9: .*thread 0 .* waits in barrier\(\) while thread 7 .* ended"
    ):
        kernel.interpret()
