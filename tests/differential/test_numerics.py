"""Numerical programs: sums, products, series, solvers, statistics."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

import math
from typing import Any

import numpy as np
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    argmax,
    argmin,
    border,
    const,
    f16,
    f32,
    i16,
    i32,
    i64,
    index,
    local_array,
    offsets,
    position,
    require,
    u8,
    where,
    wide,
)
from metaljit.testing_compare import Tolerance

programs = Programs()
H, W, N, M, K = mj.dims("H W N M K")
S = mj.dims("*S")
B = mj.dims("*B")
T: Any = mj.dtypes("f16 f32")
Int: Any = mj.dtypes("int")
LOOSE = Tolerance(1e-4, 1e-5)


@mj.kernel
def axpy(a: f32, x: f32[N], y: f32[N]) -> f32[N]:
    i = position()
    return a * x[i] + y[i]


programs.add(axpy, lambda a, x, y: np.float32(a) * x + y, lambda r: (2.5, r.floats(19), r.floats(19)))


@mj.kernel
def matmul(a: f32[M, K], b: f32[K, N]) -> f32[M, N]:
    i, j = position()
    return sum(a[i, k] * b[k, j] for k in range(K))


programs.add(
    matmul,
    lambda a, b: a.astype(np.float64) @ b,
    lambda r: [(r.floats(5, 7), r.floats(7, 3)), (r.floats(2, 0), r.floats(0, 3))],
)


@mj.kernel
def row_means(x: f32[H, W]) -> f32[H]:
    i = position()
    return sum(x[i, k] for k in range(W)) / W


programs.add(
    row_means, lambda x: x.astype(np.float64).mean(axis=1), lambda r: (r.floats(6, 11),), tolerance=LOOSE
)


@mj.kernel
def layer_norm(x: f32[*B, N]) -> f32[*B, N]:
    *b, i = position()
    mean = sum(x[*b, k] for k in range(N)) / N
    var = sum((x[*b, k] - mean) ** 2 for k in range(N)) / N
    return (x[*b, i] - mean) / mj.lang.sqrt(var + 1e-5)


programs.add(
    layer_norm,
    lambda x: (
        (x - x.astype(np.float64).mean(-1, keepdims=True))
        / np.sqrt(x.astype(np.float64).var(-1, keepdims=True) + 1e-5)
    ),
    lambda r: (r.floats(3, 4, 9),),
    tolerance=LOOSE,
)


@mj.kernel
def total(x: f32[N]) -> f32:
    return sum(x[i] for i in range(N))


programs.add(
    total,
    lambda x: np.sum(x.astype(np.float64)),
    lambda r: [(r.floats(1000),), (r.floats(0),)],
    tolerance=Tolerance(1e-4, 1e-3),
)


@mj.kernel
def byte_statistics(x: u8[N]) -> tuple[mj.lang.u32[()], u8[()], u8[()]]:
    return sum(x[i] for i in range(N)), max(x[i] for i in range(N)), min(x[i] for i in range(N))


programs.add(
    byte_statistics,
    lambda x: (x.sum(dtype=np.uint64), x.max(initial=0), x.min(initial=255)),
    lambda r: [(r.bits(300, dtype=np.uint8),), (r.bits(0, dtype=np.uint8),)],
)


def _horner(x: Any) -> Any:
    return np.polyval([3.0, -2.0, 0.5, 1.0][::-1], x.astype(np.float64))


COEFFICIENTS = (3.0, -2.0, 0.5, 1.0)


@mj.kernel
def horner(x: f32[*S]) -> f32[*S]:
    p = position()
    y = 0.0
    for c in (1.0, 0.5, -2.0, 3.0):
        y = y * x[p] + c
    return y


programs.add(horner, _horner, lambda r: (r.floats(17),))


@mj.kernel
def polynomial(x: T[*S]) -> T[*S]:
    p = position()
    y: f32 = 0
    for k, c in enumerate(COEFFICIENTS):
        y += c * x[p] ** k
    return y


programs.add(
    polynomial,
    lambda x: sum(np.float32(c) * x**k for k, c in enumerate(COEFFICIENTS)).astype(np.float32),
    lambda r: (r.floats(4, 5),),
)


def _newton(a: Any) -> Any:
    return np.sqrt(a.astype(np.float64))


@mj.kernel
def square_root(a: f32[N]) -> f32[N]:
    i = position()
    x = a[i]
    steps = 0
    while abs(x * x - a[i]) > 1e-6 * a[i] and steps < 30:
        x = (x + a[i] / x) / 2
        steps += 1
    return x


programs.add(square_root, _newton, lambda r: (r.floats(20, low=0.1, high=50),))


def _collatz(n: Any) -> Any:
    out = []
    for v in n.tolist():
        steps = 0
        while v > 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps += 1
        out.append(steps)
    return np.array(out, np.int32)


@mj.kernel
def collatz(n: i64[N]) -> i32[N]:
    i = position()
    v = n[i]
    steps = 0
    while v > 1:
        if v % 2 == 0:
            v //= 2
        else:
            v = 3 * v + 1
        steps += 1
    return steps


programs.add(collatz, _collatz, lambda r: (np.arange(60, dtype=np.int64),))


def _sieve(out_n: Any) -> Any:
    return np.array([n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)) for n in out_n.tolist()])


@mj.kernel
def is_prime(n: i32[N]) -> mj.lang.bool_[N]:
    i = position()
    v = n[i]
    if v < 2:
        return False
    d = 2
    while d * d <= v:
        if v % d == 0:
            return False
        d += 1
    return True


programs.add(is_prime, _sieve, lambda r: (np.arange(50, dtype=np.int32),))


def _gcd(a: Any, b: Any) -> Any:
    return np.gcd(a, b)


@mj.kernel
def euclid(a: i32[N], b: i32[N]) -> i32[N]:
    i = position()
    x, y = a[i], b[i]
    while y != 0:
        x, y = y, x % y
    return x


programs.add(euclid, _gcd, lambda r: (r.ints(30, high=1000), r.ints(30, high=1000)))


@mj.kernel
def block_max(x: f32[N], size: const[int]) -> f32[N // size]:
    require(N % size == 0, "the blocks must be whole")
    i = position()
    return max(x[i * size + k] for k in range(size))


programs.add(
    block_max,
    lambda x, size: x.reshape(-1, size).max(axis=1),
    lambda r: [(r.floats(24), 4), (r.floats(24), 3)],
)


def _median3(x: Any) -> Any:
    p = np.pad(x, 1, mode="edge")
    return np.median(np.stack([p[:-2], p[1:-1], p[2:]]), axis=0)


@mj.kernel
def median3(x: f32[N]) -> f32[N]:
    i = position()
    x = border(x, "edge")
    a, b, c = x[i - 1], x[i], x[i + 1]
    return max(min(a, b), min(max(a, b), c))


programs.add(median3, _median3, lambda r: (r.floats(21),))


def _insertion(x: Any) -> Any:
    return np.sort(x, axis=1)


@mj.kernel
def sorted_rows(x: f32[H, 8]) -> f32[H, 8]:
    i, j = position()
    t = local_array(f32, 8)
    for k in range(8):
        t[k] = x[i, k]
    for a in range(1, 8):
        v = t[a]
        b = a
        while b > 0 and t[b - 1] > v:
            t[b] = t[b - 1]
            b -= 1
        t[b] = v
    return t[j]


programs.add(sorted_rows, _insertion, lambda r: (r.floats(5, 8),))


@mj.kernel
def extremes(x: f32[H, W]) -> tuple[i32[W], i32[W]]:
    j = position()
    return argmin(x[i, j] for i in range(H)), argmax(x[i, j] for i in range(H))


programs.add(
    extremes,
    lambda x: (np.argmin(x, axis=0).astype(np.int32), np.argmax(x, axis=0).astype(np.int32)),
    lambda r: (np.where(r.bools(6, 9) & r.bools(6, 9), np.float32("nan"), np.round(r.floats(6, 9))),),
)


@mj.kernel
def prefix(x: i16[N]) -> i32[N]:
    i = position()
    return sum(x[k] for k in range(i + 1))


programs.add(
    prefix,
    lambda x: np.cumsum(x.astype(np.int64)).astype(np.int32),
    lambda r: (r.ints(13, low=-50, dtype=np.int16),),
)


@mj.kernel
def conditional_reductions(x: f32[N]) -> f32[2]:
    i = position()
    if i == 0:
        return sum(1 for k in range(N) if x[k] > 0)
    return mj.lang.prod(x[k] for k in range(N) if x[k] > 0)


programs.add(
    conditional_reductions,
    lambda x: np.stack([np.sum(x > 0), np.prod(np.where(x > 0, x, 1).astype(np.float64))]),
    lambda r: (r.floats(12),),
    tolerance=LOOSE,
)


@mj.kernel
def any_all(x: i32[N]) -> mj.lang.bool_[2]:
    i = position()
    return any(x[k] > 90 for k in range(N)) if i == 0 else all(x[k] >= 0 for k in range(N))


programs.add(
    any_all, lambda x: np.array([np.any(x > 90), np.all(x >= 0)]), lambda r: [(r.ints(9),), (r.ints(0),)]
)


def _neighbours(u: Any) -> Any:
    p = np.pad(u.astype(np.float64), 1, mode="wrap")
    out = np.zeros(u.shape)
    for offset in np.ndindex(*(3,) * u.ndim):
        out += p[tuple(slice(o, o + n) for o, n in zip(offset, u.shape, strict=True))]
    return out - u


@mj.kernel
def neighbour_sum(u: f32[*S]) -> f32[*S]:
    u = border(u, "wrap")
    p = position()
    return sum(u[p + o] for o in offsets(len(S), 1)) - u[p]


programs.add(neighbour_sum, _neighbours, lambda r: [(r.floats(9),), (r.floats(4, 5),), (r.floats(2, 3, 4),)])


@mj.kernel
def divisions(x: i16[N], y: i16[N]) -> tuple[i16[N], i16[N], i16[N]]:
    i = position()
    return x[i] - y[i], x[i] // y[i], x[i] % y[i]


programs.add(
    divisions,
    lambda x, y: (
        x - y,
        np.where(y != 0, x // np.where(y == 0, 1, y), 0),
        np.where(y != 0, x % np.where(y == 0, 1, y), 0),
    ),
    lambda r: (r.ints(40, low=-20, high=20, dtype=np.int16), r.ints(40, low=-4, high=4, dtype=np.int16)),
)


@mj.kernel
def wraps(x: Int[N]) -> Int[N]:
    i = position()
    return (x[i] + 100) * x[i]


programs.add(
    wraps, lambda x: (x + x.dtype.type(100)) * x, lambda r: [(r.bits(9, dtype=d),) for d in "bhilBHIL"]
)


@mj.kernel
def wide_sum(x: T[H, W]) -> T[H]:
    i = position()
    acc = wide(T)(0)
    for k in range(W):
        acc += x[i, k]
    return acc


programs.add(
    wide_sum,
    lambda x: x.astype(np.float64).sum(axis=1),
    lambda r: [(r.floats(3, 500, dtype=np.float16),), (r.floats(3, 50),)],
    tolerance=Tolerance(1e-2, 1e-2),
)


@mj.kernel
def signed_root(x: f32[N]) -> f32[N]:
    i = position()
    v = x[i]
    root = np.sqrt(abs(v))
    return where(v > 0, root, -root)


programs.add(
    signed_root, lambda x: np.where(x > 0, np.sqrt(np.abs(x)), -np.sqrt(np.abs(x))), lambda r: (r.floats(15),)
)


def _bisect(t: Any, x: Any) -> Any:
    return np.searchsorted(t, x).astype(np.int32)


@mj.kernel
def search_sorted(t: f32[M], x: f32[N]) -> i32[N]:
    i = position()
    low, high = 0, M
    while low < high:
        middle = (low + high) // 2
        if t[middle] < x[i]:
            low = middle + 1
        else:
            high = middle
    return low


programs.add(
    search_sorted, _bisect, lambda r: [(np.sort(r.floats(23)), r.floats(30)), (r.floats(0), r.floats(4))]
)


@mj.kernel
def convolve_full(x: f32[N], k: f32[M]) -> f32[N + M - 1]:
    i = position()
    return sum(x[i - j] * k[j] for j in range(M))


programs.add(
    convolve_full,
    lambda x, k: np.convolve(x.astype(np.float64), k, mode="full"),
    lambda r: [(r.floats(11), r.floats(3)), (r.floats(2), r.floats(5))],
    tolerance=LOOSE,
)


@mj.kernel
def move_axis(a: f32[H, W, N]) -> f32[N, H, W]:
    k, y, x = position()
    return a[y, x, k]


programs.add(move_axis, lambda a: np.transpose(a, (2, 0, 1)), lambda r: (r.floats(2, 3, 4),))


@mj.kernel
def flip(a: i32[H, W]) -> i32[H, W]:
    return a[index(H, W) - 1 - position()]


programs.add(flip, lambda a: a[::-1, ::-1], lambda r: (r.ints(3, 5),))


@mj.kernel
def norm(x: f32[N]) -> f32:
    acc = 0.0
    for i in range(N):
        acc += x[i] * x[i]
    return math.sqrt(acc)


programs.add(
    norm,
    lambda x: np.float32(np.hypot.reduce(x.astype(np.float64))),
    lambda r: (r.floats(9),),
    tolerance=LOOSE,
)


def _f16(x: Any) -> Any:
    return (x * np.float16(2) + np.float16(1)).astype(np.float16)


@mj.kernel
def half_line(x: f16[N]) -> f16[N]:
    i = position()
    return x[i] * 2 + 1


programs.add(half_line, _f16, lambda r: (r.floats(17, dtype=np.float16),))


@programs.parametrize
def test_numerics(program: Program, runner: str) -> None:
    program.check(runner)
