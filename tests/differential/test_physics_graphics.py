"""Physics and graphics programs: grids in time, particles, rays, fractals, noise."""

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
    border,
    const,
    dot,
    f32,
    f32x2,
    f32x3,
    fract,
    i32,
    insert,
    length,
    normalize,
    position,
    put,
    reflect,
    u8,
    u32,
)
from metaljit.testing import Tolerance

programs = Programs()
H, W, N, D = mj.dims("H W N D")
S = mj.dims("*S")
LOOSE = Tolerance(1e-4, 1e-4)
LIFE = {2: "stays", 3: "is born"}
GRAVITY = 9.81


def roll(u: Any, dy: int, dx: int) -> Any:
    return np.roll(u, (-dy, -dx), (0, 1))


@mj.kernel
def heat(u: f32[H, W], alpha: f32 = 0.1) -> f32[H, W]:
    v = border(u, ("wrap", "edge"))
    y, x = position()
    return u[y, x] + alpha * (v[y - 1, x] + v[y + 1, x] + v[y, x - 1] + v[y, x + 1] - 4 * u[y, x])


def _heat(u: Any) -> Any:
    p = np.pad(np.pad(u, ((1, 1), (0, 0)), mode="wrap"), ((0, 0), (1, 1)), mode="edge").astype(np.float64)
    return u + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)


programs.add(heat, _heat, lambda r: [(r.floats(5, 6),), (r.floats(1, 1),)])


@mj.kernel
def wave(u: f32[N], before: f32[N], c: f32) -> tuple[f32[N], f32[N]]:
    """One step of a string with fixed ends."""
    i = position()
    if i == 0 or i == N - 1:
        return 0, u[i]
    return 2 * u[i] - before[i] + c * c * (u[i - 1] - 2 * u[i] + u[i + 1]), u[i]


def _wave(u: Any, b: Any, c: float) -> Any:
    new = np.zeros_like(u)
    new[1:-1] = 2 * u[1:-1] - b[1:-1] + c * c * (u[:-2] - 2 * u[1:-1] + u[2:])
    return new, u


programs.add(wave, _wave, lambda r: (r.floats(12), r.floats(12), 0.5))


@mj.kernel
def gradient(u: f32[*S], axis: const[int]) -> f32[*S]:
    """Central differences; one-sided at the ends."""
    p = position()
    n = u.shape[axis]
    if n == 1:
        return 0.0
    k = p[axis]
    low, high = max(k - 1, 0), min(k + 1, n - 1)
    return (u[put(p, axis, high)] - u[put(p, axis, low)]) / (high - low)


programs.add(
    gradient,
    lambda u, axis: np.gradient(u, axis=axis),
    lambda r: [(r.floats(5), 0), (r.floats(4, 3), 1), (r.floats(2, 3, 4), 0), (r.floats(2, 3, 4), 2)],
)


@mj.kernel
def gravity(p: f32x3[N], m: f32[N], softening: f32) -> f32x3[N]:
    i = position()
    here = p[i]
    a = f32x3(0)
    for j in range(N):
        d = p[j] - here
        r2 = dot(d, d) + softening * softening
        a += d * (m[j] / (r2 * math.sqrt(r2)))
    return a


def _gravity(p: Any, m: Any, s: float) -> Any:
    d = p[None].astype(np.float64) - p[:, None]
    r2 = (d * d).sum(-1) + s * s
    return (d * (m / r2**1.5)[..., None]).sum(1)


programs.add(gravity, _gravity, lambda r: (r.floats(9, 3), r.floats(9, low=0), 0.3), tolerance=LOOSE)


@mj.kernel
def verlet(x: f32x2[N], v: f32x2[N], dt: f32, steps: i32) -> tuple[f32x2[N], f32x2[N]]:
    """Balls that bounce on the floor."""
    i = position()
    p, q = x[i], v[i]
    for _ in range(steps):
        q = f32x2(q.x, q.y - GRAVITY * dt)
        p = p + q * dt
        if p.y < 0:
            p = f32x2(p.x, -p.y)
            q = f32x2(q.x, -0.9 * q.y)
    return p, q


def _verlet(x: Any, v: Any, dt: float, steps: int) -> Any:
    p, q = x.astype(np.float64), v.astype(np.float64)
    for _ in range(steps):
        q[:, 1] -= 9.81 * dt
        p += q * dt
        low = p[:, 1] < 0
        p[low, 1] *= -1
        q[low, 1] *= -0.9
    return p, q


programs.add(
    verlet,
    _verlet,
    lambda r: (r.floats(7, 2, low=0.5), r.floats(7, 2), 0.01, 50),
    tolerance=Tolerance(1e-3, 1e-3),
)


@mj.kernel
def life(u: u8[H, W]) -> u8[H, W]:
    y, x = position()
    u = border(u, "wrap")
    n = 0
    for dy, dx in ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)):
        n += u[y + dy, x + dx]
    return 1 if n == 3 or (n == 2 and u[y, x]) else 0


def _life(u: Any) -> Any:
    n = sum(roll(u.astype(int), a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    return ((n == 3) | ((n == 2) & (u > 0))).astype(np.uint8)


programs.add(
    life, _life, lambda r: [(r.ints(6, 7, high=2, dtype=np.uint8),), (r.ints(1, 3, high=2, dtype=np.uint8),)]
)


@mj.kernel
def ising_energy(s: mj.lang.i8[H, W]) -> i32:
    s = border(s, "antiperiodic")
    e = 0
    for y in range(H):
        for x in range(W):
            e -= s[y, x] * (s[y + 1, x] + s[y, x + 1])
    return e


def _ising(s: Any) -> Any:
    s = s.astype(int)
    down, right = np.roll(s, -1, 0), np.roll(s, -1, 1)
    down[-1] *= -1
    right[:, -1] *= -1
    return -(s * (down + right)).sum()


programs.add(ising_energy, _ising, lambda r: (np.where(r.bools(5, 4), 1, -1).astype(np.int8),))


@mj.kernel
def mandelbrot(height: i32, width: i32, limit: i32) -> u8[height, width]:
    y, x = position()
    cx = 3.0 * x / width - 2.0
    cy = 2.0 * y / height - 1.0
    zx, zy, n = 0.0, 0.0, 0
    while zx * zx + zy * zy <= 4 and n < limit:
        zx, zy = zx * zx - zy * zy + cx, 2 * zx * zy + cy
        n += 1
    return u8(n)


def _mandelbrot(h: int, w: int, limit: int) -> Any:
    f = np.float32
    out = np.zeros((h, w), np.uint8)
    for y, x in np.ndindex(h, w):
        cx, cy = f(3) * f(x) / f(w) - f(2), f(2) * f(y) / f(h) - f(1)
        zx, zy, n = f(0), f(0), 0
        while zx * zx + zy * zy <= 4 and n < limit:
            zx, zy, n = zx * zx - zy * zy + cx, f(2) * zx * zy + cy, n + 1
        out[y, x] = n
    return out


programs.add(mandelbrot, _mandelbrot, lambda r: [(9, 12, 40), (0, 5, 3)])


@mj.kernel
def spheres(width: i32, c: f32x3[N], radius: f32[N], light: f32x3) -> f32[width, width]:
    """The shade of the nearest sphere, seen along z."""
    y, x = position()
    u, v = 2.0 * x / width - 1, 2.0 * y / width - 1
    nearest = math.inf
    shade = 0.0
    for k in range(N):
        o = f32x3(u, v, -5) - c[k]
        b = o.z
        h = b * b - (dot(o, o) - radius[k] ** 2)
        if h < 0:
            continue
        t = -b - math.sqrt(h)
        if t < nearest:
            nearest = t
            n = normalize(o + f32x3(0, 0, t))
            shade = max(dot(n, normalize(light)), 0)
    return shade


def _spheres(w: int, c: Any, r: Any, light: Any) -> Any:
    out = np.zeros((w, w))
    light = np.array(light) / np.linalg.norm(light)
    for y, x in np.ndindex(w, w):
        near = np.inf
        for k in range(len(c)):
            o = np.array([2 * x / w - 1, 2 * y / w - 1, -5.0]) - c[k]
            h = o[2] ** 2 - (o @ o - r[k] ** 2)
            if h >= 0 and -o[2] - np.sqrt(h) < near:
                near = -o[2] - np.sqrt(h)
                n = o + np.array([0, 0, near])
                out[y, x] = max(n / np.linalg.norm(n) @ light, 0)
    return out


programs.add(
    spheres,
    _spheres,
    lambda r: (11, r.floats(3, 3, low=-1, high=1), r.floats(3, low=0.2, high=0.8), (1, -1, -1)),
    tolerance=Tolerance(1e-3, 1e-3),
)


@mj.function
def hash21(x: i32, y: i32) -> f32:
    h = u32(x) * 374761393 + u32(y) * 668265263
    h = (h ^ (h >> 13)) * 1274126177
    return f32(h ^ (h >> 16)) / 4294967296


@mj.function
def value_noise(p: f32x2) -> f32:
    cell = np.floor(p)
    f = p - cell
    f = f * f * (3 - 2 * f)
    x, y = i32(cell.x), i32(cell.y)
    a = mj.lang.mix(hash21(x, y), hash21(x + 1, y), f.x)
    b = mj.lang.mix(hash21(x, y + 1), hash21(x + 1, y + 1), f.x)
    return mj.lang.mix(a, b, f.y)


@mj.kernel
def clouds(height: i32, width: i32, octaves: const[int] = 3) -> f32[height, width]:
    y, x = position()
    p = f32x2(x, y) / 4 - 1
    total, gain = 0.0, 0.5
    for _ in range(octaves):
        total += gain * value_noise(p)
        p = p * 2 + 17
        gain /= 2
    return total


def _hash(x: Any, y: Any) -> Any:
    h = x.astype(np.uint32) * np.uint32(374761393) + y.astype(np.uint32) * np.uint32(668265263)
    h = (h ^ (h >> 13)) * np.uint32(1274126177)
    return (h ^ (h >> 16)).astype(np.float32) / np.float32(4294967296)


def _clouds(h: int, w: int) -> Any:
    y, x = np.mgrid[:h, :w].astype(np.float64)
    px, py, total, gain = x / 4 - 1, y / 4 - 1, 0.0, 0.5
    for _ in range(3):
        cx, cy = np.floor(px), np.floor(py)
        fx, fy = px - cx, py - cy
        fx, fy = fx * fx * (3 - 2 * fx), fy * fy * (3 - 2 * fy)
        i, j = cx.astype(np.int32), cy.astype(np.int32)
        a = _hash(i, j) + (_hash(i + 1, j) - _hash(i, j)) * fx
        b = _hash(i, j + 1) + (_hash(i + 1, j + 1) - _hash(i, j + 1)) * fx
        total = total + gain * (a + (b - a) * fy)
        px, py, gain = px * 2 + 17, py * 2 + 17, gain / 2
    return total


programs.add(clouds, _clouds, lambda r: (5, 9), tolerance=LOOSE)


@mj.kernel
def bounce(d: f32x3[N], n: f32x3[N]) -> f32x3[N]:
    i = position()
    return reflect(d[i], normalize(n[i]))


def _bounce(d: Any, n: Any) -> Any:
    n = n / np.linalg.norm(n, axis=1, keepdims=True)
    return d - 2 * (d * n).sum(1, keepdims=True) * n


programs.add(bounce, _bounce, lambda r: (r.floats(8, 3), r.floats(8, 3)), tolerance=LOOSE)


@mj.kernel
def signed_distance(height: i32, width: i32, centre: f32x2, half: f32x2) -> f32[height, width]:
    """To a box, in pixels."""
    y, x = position()
    q = abs(f32x2(x, y) - centre) - half
    return length(np.maximum(q, 0)) + min(max(q.x, q.y), 0)


def _sd(h: int, w: int, c: Any, b: Any) -> Any:
    y, x = np.mgrid[:h, :w]
    q = np.abs(np.stack([x, y], -1) - np.array(c)) - np.array(b)
    return np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0)


programs.add(signed_distance, _sd, lambda r: (7, 9, (4.0, 3.5), (2.0, 1.5)))


@mj.kernel
def upsample_axis(u: f32[*S], axis: const[int], size: const[int]) -> f32[*S]:
    p = position()
    return u[put(p, axis, p[axis] // size * size)] + u[insert(mj.lang.drop(p, axis), axis, 0)]


def _upsample(u: Any, axis: int, size: int) -> Any:
    k = np.arange(u.shape[axis]) // size * size
    return np.take(u, k, axis) + np.take(u, [0], axis)


programs.add(
    upsample_axis, _upsample, lambda r: [(r.floats(7), 0, 2), (r.floats(3, 5), 1, 3), (r.floats(3, 5), -1, 3)]
)


@mj.kernel
def stripes(x: f32[N]) -> f32[N]:
    i = position()
    return fract(x[i] * 3) if x[i] >= 0 else 1 - fract(-x[i] * 3)


programs.add(
    stripes,
    lambda x: np.where(x >= 0, (x * 3) % 1, 1 - (-x * 3) % 1),
    lambda r: (r.floats(15),),
)


@programs.parametrize
def test_physics_graphics(program: Program, runner: str) -> None:
    program.check(runner)
