"""Imaging programs: filters, morphology, colours, geometry, thresholds."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

from typing import Any

import numpy as np
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    border,
    clip,
    const,
    f32,
    f32x3,
    f32x4,
    floor,
    i32,
    index,
    length,
    local_array,
    mix,
    offsets,
    position,
    rint,
    saturate,
    u8,
    u8x3,
    u8x4,
    u32,
)
from metaljit.testing import Tolerance

programs = Programs()
H, W, N, C = mj.dims("H W N C")
S = mj.dims("*S")
B = mj.dims("*B")


def shifted(u: Any, dy: int, dx: int, mode: str = "edge") -> Any:
    p = np.pad(u, 2, mode=mode)  # type: ignore[call-overload]
    return p[2 + dy : 2 + dy + u.shape[0], 2 + dx : 2 + dx + u.shape[1]]


SOBEL_X = ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1))
GAUSS = (1, 4, 6, 4, 1)


@mj.function
def sobel_at(u: f32[H, W], y: i32, x: i32) -> tuple[f32, f32]:
    gx = 0.0
    gy = 0.0
    for dy in range(3):
        for dx in range(3):
            v = u[y + dy - 1, x + dx - 1]
            gx += SOBEL_X[dy][dx] * v
            gy += SOBEL_X[dx][dy] * v
    return gx, gy


@mj.kernel
def sobel(u: f32[H, W]) -> f32[H, W]:
    y, x = position()
    gx, gy = sobel_at(border(u, "edge"), y, x)
    return np.hypot(gx, gy)


def _sobel(u: Any) -> Any:
    gx = sum(SOBEL_X[a][b] * shifted(u, a - 1, b - 1) for a in range(3) for b in range(3))
    gy = sum(SOBEL_X[b][a] * shifted(u, a - 1, b - 1) for a in range(3) for b in range(3))
    return np.hypot(gx, gy)


programs.add(sobel, _sobel, lambda r: (r.floats(6, 7),))


@mj.kernel
def gauss5(u: f32[H, W]) -> f32[H, W]:
    """Separable weights, written as one sum."""
    u = border(u, "reflect")
    y, x = position()
    return sum(GAUSS[a] * GAUSS[b] * u[y + a - 2, x + b - 2] for a in range(5) for b in range(5)) / 256


def _gauss5(u: Any) -> Any:
    return (
        sum(
            GAUSS[a] * GAUSS[b] * shifted(u.astype(np.float64), a - 2, b - 2, "reflect")
            for a in range(5)
            for b in range(5)
        )
        / 256
    )


programs.add(gauss5, _gauss5, lambda r: (r.floats(5, 8),))


@mj.kernel
def box(u: u8[H, W], radius: const[int] = 1) -> u8[H, W]:
    y, x = position()
    u = border(u, "edge")
    n = (2 * radius + 1) ** 2
    total = sum(u[y + dy, x + dx] for dy in range(-radius, radius + 1) for dx in range(-radius, radius + 1))
    return u8((total + n // 2) // n)


programs.add(
    box,
    lambda u: ((sum(shifted(u.astype(int), a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)) + 4) // 9).astype(
        np.uint8
    ),
    lambda r: (r.bits(6, 5, dtype=np.uint8),),
)


@mj.kernel
def dilate(u: u8[*S]) -> u8[*S]:
    p = position()
    u = border(u, "constant", value=0)
    return max(u[p + o] for o in offsets(len(S), 1))


def _dilate(u: Any) -> Any:
    p = np.pad(u, 1)
    windows = np.lib.stride_tricks.sliding_window_view(p, (3,) * u.ndim)
    return windows.max(axis=tuple(range(u.ndim, 2 * u.ndim)))


programs.add(
    dilate,
    _dilate,
    lambda r: [
        (r.bits(7, dtype=np.uint8),),
        (r.bits(4, 5, dtype=np.uint8),),
        (r.bits(2, 3, 4, dtype=np.uint8),),
    ],
)


@mj.kernel
def median(u: f32[H, W]) -> f32[H, W]:
    y, x = position()
    u = border(u, "symmetric")
    t = local_array(f32, 9)
    n = 0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            t[n] = u[y + dy, x + dx]
            n += 1
    for a in range(5):
        for b in range(8 - a):
            if t[b] > t[b + 1]:
                high = t[b]
                t[b] = t[b + 1]
                t[b + 1] = high
    return t[4]


programs.add(
    median,
    lambda u: np.median(
        np.stack([shifted(u, a, b, "symmetric") for a in (-1, 0, 1) for b in (-1, 0, 1)]), axis=0
    ),
    lambda r: (r.floats(5, 5),),
)


@mj.kernel
def grey(u: u8x3[H, W]) -> u8[H, W]:
    r, g, b = f32x3(u[position()])
    return saturate(u8, rint(0.299 * r + 0.587 * g + 0.114 * b))


programs.add(
    grey,
    lambda u: np.rint(u.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)).astype(np.uint8),
    lambda r: (r.bits(3, 5, 3, dtype=np.uint8),),
)


@mj.kernel
def over(front: f32x4[H, W], back: f32x4[H, W]) -> f32x4[H, W]:
    p = position()
    f, b = front[p], back[p]
    a = f.a + b.a * (1 - f.a)
    if a == 0:
        return f32x4(0)
    rgb = (f.rgb * f.a + b.rgb * b.a * (1 - f.a)) / a
    return f32x4(rgb, a)


def _over(f: Any, b: Any) -> Any:
    fa, ba = f[..., 3:], b[..., 3:]
    a = fa + ba * (1 - fa)
    rgb = (f[..., :3] * fa + b[..., :3] * ba * (1 - fa)) / np.where(a == 0, 1, a)
    return np.where(a == 0, 0, np.concatenate([rgb, a], axis=-1))


programs.add(
    over,
    _over,
    lambda r: (
        r.floats(3, 4, 4, low=0, high=1),
        np.where(r.bools(3, 4, 1), r.floats(3, 4, 4, low=0), np.float32(0)),
    ),
)


@mj.kernel
def premultiply(u: u8x4[N]) -> u8x4[N]:
    i = position()
    c = u[i]
    wide = mj.lang.u32x4(c) * u32(c.w)
    return u8x4(u8x3((wide.xyz + 127) // 255), c.w)


programs.add(
    premultiply,
    lambda u: np.concatenate([(u[:, :3].astype(int) * u[:, 3:] + 127) // 255, u[:, 3:]], axis=1).astype(
        np.uint8
    ),
    lambda r: (r.bits(40, 4, dtype=np.uint8),),
)


@mj.kernel
def gamma(u: u8[*S], power: f32) -> u8[*S]:
    p = position()
    return u8(255 * (u[p] / 255) ** power + 0.5)


programs.add(
    gamma,
    lambda u, g: (255 * (u / 255.0) ** g + 0.5).astype(np.uint8),
    lambda r: [(r.bits(4, 9, dtype=np.uint8), 1.0), (np.arange(256, dtype=np.uint8), 2.0)],
)


@mj.function
def sample(u, y, x):
    """Bilinear."""
    y0, x0 = floor(y), floor(x)
    i, j = i32(y0), i32(x0)
    top = mix(u[i, j], u[i, j + 1], x - x0)
    bottom = mix(u[i + 1, j], u[i + 1, j + 1], x - x0)
    return mix(top, bottom, y - y0)


@mj.kernel
def resize(u: f32[H, W], height: i32, width: i32) -> f32[height, width]:
    y, x = position()
    sy = (y + 0.5) * H / height - 0.5
    sx = (x + 0.5) * W / width - 0.5
    return sample(border(u, "edge"), sy, sx)


def _resize(u: Any, h: int, w: int) -> Any:
    y = ((np.arange(h) + 0.5) * u.shape[0] / h - 0.5)[:, None]
    x = ((np.arange(w) + 0.5) * u.shape[1] / w - 0.5)[None]
    y0, x0 = np.floor(y).astype(int), np.floor(x).astype(int)

    def at(a: Any, b: Any) -> Any:
        return u[np.clip(a, 0, u.shape[0] - 1), np.clip(b, 0, u.shape[1] - 1)]

    fy, fx = y - y0, x - x0
    top = at(y0, x0) * (1 - fx) + at(y0, x0 + 1) * fx
    return top * (1 - fy) + (at(y0 + 1, x0) * (1 - fx) + at(y0 + 1, x0 + 1) * fx) * fy


programs.add(
    resize,
    _resize,
    lambda r: [(r.floats(4, 6), 7, 9), (r.floats(5, 5), 2, 3), (r.floats(1, 1), 3, 3)],
    tolerance=Tolerance(1e-4, 1e-5),
)


@mj.kernel
def rotate90(u: u8x3[H, W]) -> u8x3[W, H]:
    y, x = position()
    return u[x, W - 1 - y]


programs.add(rotate90, lambda u: np.rot90(u), lambda r: (r.bits(3, 5, 3, dtype=np.uint8),))


@mj.kernel
def crop(u: f32[H, W], top: i32, left: i32, h: i32, w: i32) -> f32[h, w]:
    mj.lang.require(top >= 0 and left >= 0, "the corner lies inside")
    return u[position() + index(top, left)]


def _crop(u: Any, top: int, left: int, h: int, w: int) -> Any:
    out = np.zeros((h, w), np.float32)
    part = u[top : top + h, left : left + w]
    out[: part.shape[0], : part.shape[1]] = part
    return out


programs.add(
    crop,
    _crop,
    lambda r: [(r.floats(6, 7), 1, 2, 3, 4), (r.floats(3, 3), 1, 1, 4, 4), (r.floats(2, 2), 5, 5, 2, 2)],
)


@mj.kernel
def threshold_map(u: u8[H, W], t: u8, low: u8 = 0, high: u8 = 255) -> u8[H, W]:
    p = position()
    return high if u[p] >= t else low


programs.add(
    threshold_map,
    lambda u, t: np.where(u >= t, 255, 0).astype(np.uint8),
    lambda r: (r.bits(4, 4, dtype=np.uint8), 128),
)


@mj.kernel
def integral_row(u: u8[H, W]) -> u32[H, W]:
    y, x = position()
    return sum(u[y, k] for k in range(x + 1))


programs.add(
    integral_row, lambda u: np.cumsum(u.astype(np.uint32), axis=1), lambda r: (r.bits(4, 30, dtype=np.uint8),)
)


@mj.kernel
def nms(m: f32[H, W], d: u8[H, W]) -> f32[H, W]:
    """Non-maximum suppression along one of four directions."""
    y, x = position()
    m = border(m, "constant")
    steps = ((0, 1), (1, 1), (1, 0), (1, -1))
    here = m[y, x]
    for k in range(4):
        dy, dx = steps[k]
        if d[y, x] == k and (here < m[y + dy, x + dx] or here < m[y - dy, x - dx]):
            return 0
    return here


def _nms(m: Any, d: Any) -> Any:
    p = np.pad(m, 1)
    out = m.copy()
    for y, x in np.ndindex(m.shape):
        dy, dx = ((0, 1), (1, 1), (1, 0), (1, -1))[d[y, x]]
        if m[y, x] < p[1 + y + dy, 1 + x + dx] or m[y, x] < p[1 + y - dy, 1 + x - dx]:
            out[y, x] = 0
    return out


programs.add(nms, _nms, lambda r: (r.floats(7, 6, low=0), r.ints(7, 6, high=4, dtype=np.uint8)))


@mj.kernel
def dither(u: f32[H, W]) -> mj.lang.bool_[H, W]:
    y, x = position()
    bayer = (0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5)
    return u[y, x] * 16 > bayer[4 * (y % 4) + x % 4] + 0.5


BAYER = np.array([0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]).reshape(4, 4)
programs.add(
    dither,
    lambda u: u * 16 > np.tile(BAYER, (3, 3))[: u.shape[0], : u.shape[1]] + 0.5,
    lambda r: (r.floats(9, 7, low=0, high=1),),
)


@mj.kernel
def hsv_value(u: f32x3[N]) -> tuple[f32[N], f32[N]]:
    i = position()
    c = u[i]
    v = max(c.r, c.g, c.b)
    low = min(c.x, min(c.y, c.z))
    s = (v - low) / v if v > 0 else 0
    return v, s


programs.add(
    hsv_value,
    lambda u: (
        u.max(1),
        np.where(u.max(1) > 0, (u.max(1) - u.min(1)) / np.where(u.max(1) > 0, u.max(1), 1), 0),
    ),
    lambda r: (r.floats(20, 3, low=-1, high=1),),
)


@mj.kernel
def vignette(u: f32x3[H, W], strength: f32 = 0.5) -> f32x3[H, W]:
    p = position()
    q = p * 2 - index(H, W) + 1
    d = length(mj.lang.f32x2(q[0], q[1])) / max(H, W)
    return u[p] * clip(1 - strength * d, 0, 1)


def _vignette(u: Any) -> Any:
    h, w = u.shape[:2]
    y, x = np.mgrid[:h, :w] * 2.0
    d = np.hypot(y - h + 1, x - w + 1) / max(h, w)
    return u * np.clip(1 - 0.5 * d, 0, 1)[..., None]


programs.add(vignette, _vignette, lambda r: (r.floats(4, 7, 3),))


@programs.parametrize
def test_imaging(program: Program, runner: str) -> None:
    program.check(runner)
