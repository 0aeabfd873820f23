"""What the language means: small kernels through the Python door, against NumPy, on every device found.

A case is a call and the arrays that it must give: integers and bools exactly, floats within a relative bound.
"""

# ruff: noqa: B023
# mypy: ignore-errors
import itertools
import math
from math import erf as merf

import ml_dtypes
import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import *

N, M, K, H, W = mj.dims("N M K H W")
S = mj.dims("*S")
T = mj.dtypes("number")
rng = np.random.default_rng(0)
CASES = {}


def case(name, call, want, rtol=0.0):
    """Keeps the call with the values that its names have now."""
    assert name not in CASES, name
    values = {
        n: v for n, v in globals().items() if isinstance(v, np.ndarray | str | tuple) or n in ("sym", "dt")
    }
    CASES[name] = (call, want, rtol, values)


A = rng.standard_normal((7, 5)).astype(np.float32)
B = rng.standard_normal((5, 9)).astype(np.float32)


@mj.kernel
def matmul(a: f32[M, K], b: f32[K, N]) -> f32[M, N]:
    i, j = position()
    return sum(a[i, k] * b[k, j] for k in range(K))


case("matmul", lambda: matmul(A, B), A @ B, 2e-5)


@mj.kernel
def axpy(x: f32[*S], y: f32[*S], a: f32) -> f32[*S]:
    p = position()
    return a * x[p] + y[p]


for shape in [(), (3,), (4, 5), (2, 3, 4)]:
    x = rng.standard_normal(shape).astype(np.float32)
    y = rng.standard_normal(shape).astype(np.float32)
    case(f"axpy{shape}", lambda: axpy(x, y, 2.0), np.float32(2) * x + y)


@mj.kernel
def collatz(n: i32[N]) -> i32[N]:
    i = position()
    x = n[i]
    steps = 0
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    return steps


case("collatz", lambda: collatz(np.array([1, 7, 27], np.int32)), np.array([0, 16, 111], np.int32))


@mj.kernel
def mandel(re: f32[N], im: f32[N], limit: i32) -> i32[N]:
    i = position()
    zr, zi = 0.0, 0.0
    n = 0
    for k in range(limit):
        if zr * zr + zi * zi > 4.0:
            break
        zr, zi = zr * zr - zi * zi + re[i], 2.0 * zr * zi + im[i]
        n += 1
    return n


def mref(re, im, limit):
    out = []
    for a, b in zip(re, im):
        zr = zi = np.float32(0)
        n = 0
        for k in range(limit):
            if zr * zr + zi * zi > 4:
                break
            zr, zi = zr * zr - zi * zi + a, np.float32(2) * zr * zi + b
            n += 1
        out.append(n)
    return np.array(out, np.int32)


re = rng.uniform(-2, 1, 20).astype(np.float32)
im = rng.uniform(-1, 1, 20).astype(np.float32)
case("mandel", lambda: mandel(re, im, 50), mref(re, im, 50))


@mj.kernel
def pool(x: T[H, W]) -> (T[H // 2, W // 2], i32[H // 2, W // 2]):
    y, xx = position()
    best = x[2 * y, 2 * xx]
    at = 2 * y * W + 2 * xx
    for dy in range(2):
        for dx in range(2):
            v = x[2 * y + dy, 2 * xx + dx]
            if v > best:
                best = v
                at = (2 * y + dy) * W + 2 * xx + dx
    return best, at


def pref(x):
    h, w = x.shape[0] // 2, x.shape[1] // 2
    b = np.zeros((h, w), x.dtype)
    a = np.zeros((h, w), np.int32)
    for i in range(h):
        for j in range(w):
            win = x[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            k = int(win.argmax())
            b[i, j] = win.flat[k]
            a[i, j] = (2 * i + k // 2) * x.shape[1] + 2 * j + k % 2
    return b, a


for dt in (np.float32, np.int8, np.uint16, np.int64, np.float16):
    x = (rng.standard_normal((9, 8)) * 50).astype(dt)
    case(f"pool {dt.__name__}", lambda: pool(x), pref(x))

x = (rng.standard_normal((9, 8)) * 50).astype(ml_dtypes.bfloat16)
case("pool bf16", lambda: pool(x), pref(x))


@mj.function
def smooth(t):
    return t * t * (3.0 - 2.0 * t)


@mj.kernel
def fn(x: f32[N]) -> f32[N]:
    i = position()
    return smooth(x[i]) + smooth(0.5)


x = rng.uniform(0, 1, 33).astype(np.float32)
case("function", lambda: fn(x), x * x * (np.float32(3) - np.float32(2) * x) + np.float32(0.5))


@mj.kernel
def vec(a: f32x3[N], b: f32x3[N]) -> f32x3[N]:
    i = position()
    return cross(a[i], b[i]) + normalize(a[i]) * dot(a[i], b[i])


a = rng.standard_normal((6, 3)).astype(np.float32)
b = rng.standard_normal((6, 3)).astype(np.float32)
case(
    "vec",
    lambda: vec(a, b),
    (np.cross(a, b) + a / np.linalg.norm(a, axis=1, keepdims=True) * (a * b).sum(1, keepdims=True)).astype(
        np.float32
    ),
    2e-5,
)


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def hist(x: u8[N], h: Out[u32[256]]):
    i = global_index()
    if i < N:
        atomic_add(h, x[i], 1)


x = rng.integers(0, 256, 1000).astype(np.uint8)
case("hist", lambda: hist(x), np.bincount(x, minlength=256).astype(np.uint32))


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def fsum(x: f32[N], s: Out[f32[1]]):
    i = global_index()
    if i < N:
        atomic_add(s, 0, x[i])


case("fsum", lambda: fsum(np.ones(1024, np.float32)), np.array([1024], np.float32))


@mj.kernel
def philox(ctr: u32x4[N], key: u32x2) -> u32x4[N]:
    c = ctr[position()]
    k0, k1 = key
    c0, c1, c2, c3 = c
    for r in range(10):
        h0, l0 = mulhi(u32(0xD2511F53), c0), u32(0xD2511F53) * c0
        h1, l1 = mulhi(u32(0xCD9E8D57), c2), u32(0xCD9E8D57) * c2
        c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
        k0 += 0x9E3779B9
        k1 += 0xBB67AE85
    return u32x4(c0, c1, c2, c3)


case(
    "philox",
    lambda: philox(np.array([[0, 0, 0, 0]], np.uint32), (0, 0)),
    np.array([[0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]], np.uint32),
)
case(
    "philox1",
    lambda: philox(np.array([[2**32 - 1] * 4], np.uint32), (2**32 - 1, 2**32 - 1)),
    np.array([[0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]], np.uint32),
)


@mj.kernel
def argm(x: f32[M, N]) -> i32[M]:
    i = position()
    return argmax(x[i, j] for j in range(N))


x = rng.standard_normal((5, 6)).astype(np.float32)
x[2, 3] = np.nan
x[2, 4] = np.nan
x[3] = 1
case("argmax", lambda: argm(x), x.argmax(1).astype(np.int32))


@mj.kernel
def blur(u: f32[*S], radius: const[int] = 1) -> f32[*S]:
    u = border(u, "edge")
    p = position()
    acc = 0.0
    for o in offsets(len(S), radius):
        acc += u[p + o]
    return acc / len(offsets(len(S), radius))


def bref(u, r):
    p = np.pad(u, r, mode="edge")
    acc = np.zeros_like(u)

    for o in itertools.product(range(2 * r + 1), repeat=u.ndim):
        acc = acc + p[tuple(slice(k, k + n) for k, n in zip(o, u.shape))]
    return acc / np.float32((2 * r + 1) ** u.ndim)


for shape in [(9,), (6, 7), (3, 4, 5)]:
    u = rng.standard_normal(shape).astype(np.float32)
    case(f"blur{shape}", lambda: blur(u), bref(u, 1))
case("blur r2", lambda: blur(u, radius=2), bref(u, 2))


@mj.kernel
def lapn(u: f32[*S], mode: const[str] = "reflect") -> f32[*S]:
    v = border(u, mode)
    p = position()
    acc = -2.0 * len(S) * u[p]
    for axis in range(len(S)):
        acc += v[put(p, axis, p[axis] - 1)] + v[put(p, axis, p[axis] + 1)]
    return acc


def lref(u, mode):
    acc = np.float32(-2 * u.ndim) * u
    p = np.pad(u, 1, mode=mode)
    for ax in range(u.ndim):

        def sl(d):
            return tuple(
                slice(1 + (d if k == ax else 0), 1 + (d if k == ax else 0) + n) for k, n in enumerate(u.shape)
            )

        acc = acc + (p[sl(-1)] + p[sl(1)])
    return acc


for shape in [(9,), (6, 7), (3, 4, 5), (2, 3, 2, 3)]:
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        u = rng.standard_normal(shape).astype(np.float32)
        case(f"lapn{shape}{mode}", lambda: lapn(u, mode), lref(u, mode))
rng = np.random.default_rng(1)


def binop(sym, dt):
    src = f"""
N = dims("N")
@kernel
def k(a: {dt}[N], b: {dt}[N]) -> {dt}[N]:
    i = position()
    return a[i] {sym} b[i]
"""
    return mj.kernel_from_text(src)


D = dict(
    i8=np.int8,
    i16=np.int16,
    i32=np.int32,
    i64=np.int64,
    u8=np.uint8,
    u16=np.uint16,
    u32=np.uint32,
    u64=np.uint64,
    f32=np.float32,
)
for dt in D:
    if dt == "f32":
        continue
    info = np.iinfo(D[dt])
    vals = np.array(
        [0, 1, 2, 3, 5, 7, info.max, info.min, info.max - 1, info.min + 1]
        + ([-1, -2, -3, -7] if info.min < 0 else [100, 200 if info.max >= 200 else 9]),
        dtype=D[dt],
    )
    a, b = [v.ravel().copy() for v in np.meshgrid(vals, vals)]
    for sym in "+ - * // % & | ^".split():
        with np.errstate(all="ignore"):
            want = eval(f"a {sym} b")
        case(f"{dt} {sym}", lambda: binop(sym, dt)(a, b), want)
    for sh in (0, 1, 5, info.bits - 1):
        c = np.full_like(a, sh)
        for sym in ("<<", ">>"):
            case(f"{dt}{sym}{sh}", lambda: binop(sym, dt)(a, c), eval(f"a {sym} c"))


# literals
@mj.kernel
def lits(a: u8[N]) -> u8[N]:
    i = position()
    return (a[i] + 100) * 2 // 3 ^ 0x55


x = np.arange(256).astype(np.uint8)
case("lits", lambda: lits(x), (x + np.uint8(100)) * np.uint8(2) // np.uint8(3) ^ np.uint8(0x55))


@mj.kernel
def chain(a: i32[N]) -> bool_[N]:
    i = position()
    return 1 < a[i] < 5 or a[i] in (7, 9) and not a[i] == 9


x = np.arange(12).astype(np.int32)
case("chain", lambda: chain(x), ((1 < x) & (x < 5)) | (x == 7))


# early return, nested if, elif
@mj.kernel
def er(a: f32[N]) -> f32[N]:
    i = position()
    if a[i] < 0:
        return 0.0
    if a[i] < 1:
        b = a[i] * 2
    elif a[i] < 2:
        b = a[i] * 3
    else:
        for k in range(4):
            if a[i] < k:
                return k
        b = -1.0
    return b


def erf_(v):
    if v < 0:
        return 0
    if v < 1:
        return v * 2
    if v < 2:
        return v * 3
    for k in range(4):
        if v < k:
            return k
    return -1


x = np.array([-1, 0.5, 1.5, 2.5, 3.5], np.float32)
case("early", lambda: er(x), np.array([erf_(v) for v in x], np.float32))


# local arrays + bubble sort (median)
@mj.kernel
def median(u: f32[H, W]) -> f32[H, W]:
    u = border(u, "edge")
    y, x = position()
    v = local_array(f32, 9)
    n = 0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            v[n] = u[y + dy, x + dx]
            n += 1
    for i in range(9):
        for j in range(8 - i):
            if v[j] > v[j + 1]:
                t = v[j]
                v[j] = v[j + 1]
                v[j + 1] = t
    return v[4]


u = rng.standard_normal((9, 11)).astype(np.float32)
p = np.pad(u, 1, mode="edge")
case(
    "median",
    lambda: median(u),
    np.median(np.stack([p[i : i + 9, j : j + 11] for i in range(3) for j in range(3)]), axis=0).astype(
        np.float32
    ),
)
# zip weights, captured tuple
taps = (-1, 0, 1)
ws = (0.25, 0.5, 0.25)


@mj.kernel
def conv(u: f32[N]) -> f32[N]:
    u = border(u, "constant", value=2.0)
    i = position()
    acc = 0.0
    for o, w in zip(taps, ws):
        acc += w * u[i + o]
    return acc


u = rng.standard_normal(9).astype(np.float32)
p = np.pad(u, 1, constant_values=2)
case(
    "conv", lambda: conv(u), np.float32(0.25) * p[:-2] + np.float32(0.5) * p[1:-1] + np.float32(0.25) * p[2:]
)
ws = (1.0, 2.0, 1.0)
case("conv recaptured", lambda: conv(u), p[:-2] + np.float32(2) * p[1:-1] + p[2:])


# guard reads
@mj.kernel
def shift(u: f32[N], k: i32) -> f32[N]:
    i = position()
    return u[i + k]


case("shift", lambda: shift(u, 3), np.concatenate([u[3:], np.zeros(3, np.float32)]))
case("shift-", lambda: shift(u, -2), np.concatenate([np.zeros(2, np.float32), u[:-2]]))
# gather table
table = (1, 10, 100, 1000)


@mj.kernel
def tab(x: u8[N]) -> i32[N]:
    i = position()
    return table[x[i] & 3]


x = np.arange(20).astype(np.uint8)
case("table", lambda: tab(x), np.array(table, np.int32)[x & 3])


# extents exprs
@mj.kernel
def diff(u: f32[N + 1]) -> f32[N]:
    i = position()
    return u[i + 1] - u[i]


case("diff", lambda: diff(u), np.diff(u))


@mj.kernel
def up(u: f32[H, W], s: const[int] = 2) -> "f32[H*s, W*s]":
    y, x = position()
    return u[y // s, x // s]


u2 = rng.standard_normal((3, 4)).astype(np.float32)
case("up", lambda: up(u2), u2.repeat(2, 0).repeat(2, 1))


@mj.kernel
def scal() -> f32:
    return 1.5


case("0-arg", lambda: scal(), np.float32(1.5))


@mj.kernel
def tot(u: f32[N]) -> f32:
    return sum(u[i] for i in range(N))


case("tot", lambda: tot(np.ones(100, np.float32)), np.float32(100))


@mj.kernel
def isprime(n: u32[N]) -> bool_[N]:
    v = n[position()]
    if v < 2:
        return False
    d = u32(2)
    while d * d <= v:
        if v % d == 0:
            return False
        d += 1
    return True


x = np.arange(50).astype(np.uint32)
case("prime", lambda: isprime(x), np.array([v > 1 and all(v % d for d in range(2, v)) for v in range(50)]))


@mj.kernel(grid="ceil_div(N, block)", threadgroup="block")
def dbl(x: InOut[f32[N]], block: const[int] = 64):
    i = global_index()
    x[i] *= 2


a = np.arange(100).astype(np.float32)
case("inout", lambda: dbl(a), a * 2)


@mj.kernel
def life(g: u8[H, W]) -> u8[H, W]:
    g = border(g, "wrap")
    p = position()
    n = sum(g[p + o] for o in offsets(2, 1)) - g[p]
    return 1 if n == 3 or n == 2 and g[p] == 1 else 0


g = rng.integers(0, 2, (8, 9)).astype(np.uint8)
nn = sum(np.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
case("life", lambda: life(g), ((nn == 3) | ((nn == 2) & (g == 1))).astype(np.uint8))


@mj.kernel
def asum(x: f32[N]) -> f32[N]:
    i = position()
    assert x[i] >= 0, "negative input"
    return sqrt(x[i])


case("assert ok", lambda: asum(np.float32([1, 4])), np.float32([1, 2]))


@mj.kernel
def seps(x: f32[N], names: const[str] = "a") -> f32[N]:
    i = position()
    half = x[i]
    device = half + 1
    kernel = device
    vertex = 2.0
    sampler = 1
    thread = 3
    constant = 4
    new = 5
    this = 6
    dot_ = 7
    main = 8
    uint = 9
    NAN = 10
    M_PI_F = 1
    p = 3
    gid = 4
    status = 5
    out_ = 4
    inside = 1
    INT_MAX = 3
    float4 = 2.0
    return (
        half
        + device
        + kernel
        + vertex
        + sampler
        + thread
        + constant
        + new
        + this
        + dot_
        + main
        + uint
        + NAN
        + M_PI_F
        + p
        + gid
        + status
        + out_
        + inside
        + INT_MAX
        + float4
    )


x = np.float32([1])
case(
    "names",
    lambda: seps(x),
    np.float32([1 + 2 + 2 + 2 + 1 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 1 + 3 + 4 + 5 + 4 + 1 + 3 + 2]),
)
N = mj.dims("N")
H_, W_ = mj.dims("H_ W_")


# numpy semantics etc.
@mj.kernel
def mth(x: f32[N]) -> f32[N]:
    i = position()
    return math.sqrt(x[i]) + np.sin(x[i]) + math.pi + erf(x[i]) + np.float32(2)


x = np.linspace(0.1, 3, 17).astype(np.float32)

case(
    "math",
    lambda: mth(x),
    (np.sqrt(x) + np.sin(x) + np.float32(np.pi) + np.array([merf(v) for v in x], np.float32) + np.float32(2)),
    2e-5,
)


# rounding
@mj.kernel
def rnd(x: f32[N]) -> f32[N]:
    i = position()
    return round(x[i])


x = np.float32([0.5, 1.5, 2.5, -0.5, -2.5])
case("round", lambda: rnd(x), np.rint(x))


@mj.kernel
def mm(a: f32[N], b: f32[N]) -> (f32[N], f32[N], f32[N]):
    i = position()
    return max(a[i], b[i]), np.fmax(a[i], b[i]), clip(a[i], -1, 1)


a = np.float32([np.nan, 1, -2, 2])
b = np.float32([1, np.nan, 3, 0])
case("minmax", lambda: mm(a, b), (np.maximum(a, b), np.fmax(a, b), np.clip(a, -1, 1)))


# f2i
@mj.kernel
def f2i(a: f32[N]) -> i8[N]:
    return i8(a[position()])


case("f2i", lambda: f2i(np.float32([128, -129, 300, np.nan, 2.9, -2.9])), np.int8([127, -128, 127, 0, 2, -2]))


# bool
@mj.kernel
def notb(a: bool_[N]) -> bool_[N]:
    return ~a[position()]


case("notb", lambda: notb(np.array([0, 1, 2, 255], np.uint8).view(bool)), np.array([1, 0, 0, 0], bool))


@mj.kernel
def b2(a: bool_[N]) -> i32[N]:
    return a[position()] * 2


case("b2", lambda: b2(np.array([True])), np.int32([2]))


# sums
@mj.kernel
def s8(a: u8[N]) -> u32:
    return sum(a[i] for i in range(N))


case("s8", lambda: s8(np.uint8([255, 17])), np.uint32(272))


@mj.kernel
def s16(a: f16[N]) -> f32:
    return sum(a[i] for i in range(N))


case("s16", lambda: s16(np.ones(4096, np.float16)), np.float32(4096))


@mj.kernel
def cnt(a: f32[N]) -> i32:
    return sum(a[i] > 0 for i in range(N))


case("cnt", lambda: cnt(np.float32([1, -1, 2])), np.int32(2))


@mj.kernel
def rowmean(x: f32[H_, W_]) -> f32[H_, W_]:
    y, c = position()
    m = sum(x[y, k] for k in range(W_)) / W_
    return x[y, c] - m


x = rng.standard_normal((5, 8)).astype(np.float32)
case("rowmean", lambda: rowmean(x), x - x.mean(1, keepdims=True), 2e-5)


@mj.kernel
def softmax(x: f32[H_, W_]) -> f32[H_, W_]:
    y, c = position()
    m = max(x[y, k] for k in range(W_))
    return exp(x[y, c] - m) / sum(exp(x[y, k] - m) for k in range(W_))


e = np.exp(x - x.max(1, keepdims=True))
case("softmax", lambda: softmax(x), e / e.sum(1, keepdims=True), 2e-5)


# infinite loop
@mj.kernel(loop_limit=1000000)
def inf_(x: f32[N]) -> f32[N]:
    i = position()
    v = x[i]
    while v < 10:
        v += 0
    return v


@mj.kernel
def wt(x: f32[N]) -> f32[N]:
    i = position()
    while True:
        break
    return x[i]


case("while true", lambda: wt(np.float32([1])), np.float32([1]))
# batch pack
B = mj.dims("*B")


@mj.kernel
def bt(u: f32[*B, H_, W_]) -> f32[*B, W_, H_]:
    *b, y, x = position()
    return u[*b, x, y]


for shp in [(3, 4), (2, 3, 4), (2, 1, 3, 4)]:
    u = rng.standard_normal(shp).astype(np.float32)
    case(f"bt{shp}", lambda: bt(u), np.swapaxes(u, -1, -2).copy())


# swap in loop: fibonacci, gcd
@mj.kernel
def gcd_(a: u32[N], b: u32[N]) -> u32[N]:
    i = position()
    x, y = a[i], b[i]
    while y != 0:
        x, y = y, x % y
    return x


a = rng.integers(0, 1000, 20).astype(np.uint32)
b = rng.integers(0, 1000, 20).astype(np.uint32)
case("gcd", lambda: gcd_(a, b), np.gcd(a, b))


@mj.kernel
def nest(a: i32[N]) -> i32[N]:
    i = position()
    t = 0
    for x in range(5):
        for y in range(x):
            if y == 3:
                continue
            if x * y > a[i]:
                break
            t += x * y
        else_ = t
        if else_ > 20:
            break
    return t


def nref(a):
    t = 0
    for x in range(5):
        for y in range(x):
            if y == 3:
                continue
            if x * y > a:
                break
            t += x * y
        if t > 20:
            break
    return t


a = np.arange(15).astype(np.int32)
case("nest", lambda: nest(a), np.int32([nref(v) for v in a]))


@mj.kernel
def unr(a: i32[N]) -> i32[N]:
    i = position()
    t = 0
    for k, w in zip((1, 2, 3, 4), (10, 20, 30, 40)):
        if a[i] == k:
            continue
        if a[i] < k * 2 - 5:
            break
        t += w
    return t


def uref(a):
    t = 0
    for k, w in zip((1, 2, 3, 4), (10, 20, 30, 40)):
        if a == k:
            continue
        if a < k * 2 - 5:
            break
        t += w
    return t


case("unrolled break", lambda: unr(a), np.int32([uref(v) for v in a]))


@mj.function
def two(x, y):
    if x > y:
        return x, 1
    return y, 0


@mj.kernel
def use2(a: f32[N], b: f32[N]) -> (f32[N], i32[N]):
    i = position()
    v, w = two(a[i], b[i])
    return v, w


a = rng.standard_normal(9).astype(np.float32)
b = rng.standard_normal(9).astype(np.float32)
case("two", lambda: use2(a, b), (np.maximum(a, b), (a > b).astype(np.int32)))


@mj.function
def lerp(u, y, x):
    u = border(u, "edge")
    y0, x0 = i32(floor(y)), i32(floor(x))
    fy, fx = y - floor(y), x - floor(x)
    a = u[y0, x0] * (1 - fx) + u[y0, x0 + 1] * fx
    b = u[y0 + 1, x0] * (1 - fx) + u[y0 + 1, x0 + 1] * fx
    return a * (1 - fy) + b * fy


@mj.kernel
def rot(u: f32[H_, W_], angle: f32) -> f32[H_, W_]:
    y, x = position()
    c, s = cos(angle), sin(angle)
    cy, cx = (H_ - 1) / 2, (W_ - 1) / 2
    return lerp(u, cy + c * (y - cy) - s * (x - cx), cx + s * (y - cy) + c * (x - cx))


u = rng.standard_normal((6, 7)).astype(np.float32)
case("rot0", lambda: rot(u, 0.0), u, 2e-5)


# i64/u32 index
@mj.kernel
def gat(u: f32[N], idx: i64[M]) -> f32[M]:
    return u[idx[position()]]


case(
    "gather",
    lambda: gat(u.ravel(), np.array([0, 5, -1, 2**40, 41], np.int64)),
    np.float32([u.ravel()[0], u.ravel()[5], 0, 0, u.ravel()[41]]),
)


# shape attr
@mj.kernel
def shp_(u: f32[*S]) -> f32[*S]:
    p = position()
    return u[p] * u.shape[0] + len(u)


case("shape", lambda: shp_(u), u * np.float32(6) + np.float32(6))
# empties
case("empty", lambda: shp_(np.zeros((0, 3), np.float32)), np.zeros((0, 3), np.float32))
case("empty sum", lambda: tot0(np.zeros(0, np.float32)), np.float32(0)) if 0 else None


@mj.kernel
def anyk(x: i32[H_, W_]) -> (bool_[H_], bool_[H_]):
    i = position()
    return any(x[i, j] > 2 for j in range(W_)), all(x[i, j] > 2 for j in range(W_))


x = rng.integers(0, 5, (6, 3)).astype(np.int32)
case("anyall", lambda: anyk(x), ((x > 2).any(1), (x > 2).all(1)))


# math fast
@mj.kernel(math="fast")
def fast(x: f32[N]) -> f32[N]:
    i = position()
    return exp(x[i]) * 2 + x[i]


x = np.linspace(-2, 2, 33).astype(np.float32)
case("fast", lambda: fast(x), np.exp(x) * 2 + x, 2e-5)


# conditional with function
@mj.kernel
def cond(x: f32[N]) -> f32[N]:
    i = position()
    return sqrt(x[i]) if x[i] >= 0 else sum(x[j] for j in range(N)) if x[i] < -1 else -x[i]


x = np.float32([4, -0.5, -2])
case("cond", lambda: cond(x), np.float32([2, 0.5, 1.5]))


@mj.kernel
def vv(c: f32x4[N], k: f32x2) -> f32x4[N]:
    v = c[position()]
    w = v.zyxw * 2.0 + f32x4(k, 0.0, 1)
    return w if any(w > 3.0) else -w


c = rng.standard_normal((7, 4)).astype(np.float32)
w = c[:, [2, 1, 0, 3]] * np.float32(2) + np.float32([1, 2, 0, 1])
case("vv", lambda: vv(c, (1, 2)), np.where((w > 3).any(1, keepdims=True), w, -w))


@mj.function
def clamped(x):
    if x < 0:
        return 0
    elif x > 1:
        return 1
    return x


@mj.function
def pair(x):
    if x > 0:
        return 0, x
    if x < -1:
        return 2, 1
    return i32(x), 3.5


@mj.kernel
def joined(x: f32[N]) -> (f32[N], i32[N], f32[N]):
    a, b = pair(x[position()])
    return clamped(x[position()]), a, b


c = np.float32([-2, -0.5, 0.5, 2])
case("joined", lambda: joined(c), (c.clip(0, 1), np.int32([2, 0, 0, 0]), np.float32([1, 3.5, 0.5, 2])))

ONE_TWO = (1, 2)


@mj.kernel
def tabled(a: u8[N], b: u8[N]) -> u32[N]:
    i = position()
    total = 0
    for k in range(2):
        total += ONE_TWO[k] * (a, b)[k][i]
    return u32(total)


d = np.uint8([200, 3])
case("tabled", lambda: tabled(d, d), np.uint32([600, 9]))


@mj.kernel
def by_zero(x: f32[N]) -> (f32[N], f32[N], f32[N], f32[N]):
    return x[position()] * (1.0 // 0), -1.0 / 0.0 * x[position()], 5.0 % 0, 1 // 0 + x[position()]


c = np.float32([1])
case("by zero", lambda: by_zero(c), tuple(map(np.float32, ([np.inf], [-np.inf], [np.nan], [1]))))


@pytest.mark.parametrize("name", CASES)
def test_case(name, device, monkeypatch):
    call, want, rtol, values = CASES[name]
    for n, v in values.items():
        monkeypatch.setitem(globals(), n, v)
    with mj.use_device(device):
        found = call()
    found = found if isinstance(found, tuple) else (found,)
    wanted = want if isinstance(want, tuple) else (want,)
    for got, right in zip(found, map(np.asarray, wanted), strict=True):
        assert (got.dtype, got.shape) == (right.dtype, right.shape)
        if rtol:
            np.testing.assert_allclose(got, right, rtol=rtol, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, right)


def test_a_failed_assertion_names_the_first_place():
    with pytest.raises(mj.KernelAssertion, match="negative input") as failure:
        asum(np.float32([1, 4, -2, 9]))
    assert "position (2)" in str(failure.value)


def test_a_loop_without_end_is_left():
    with pytest.raises(mj.KernelAssertion, match="ran more than 1000000 turns"):
        inf_(np.float32([1]))
