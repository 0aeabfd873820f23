"""The same program through both doors: a decorated Python function, and a `.mjk` text or file with imports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import border, const, f32, f32x2, i32, mix, offsets, position, u8
from metaljit.testing import Tolerance, difference

H, W, N, M = mj.dims("H W N M")
S = mj.dims("*S")
WEIGHTS = (1, 2, 1)
SCALE = np.float32(0.25)


def agree(python: mj.Kernel, text: mj.Kernel, device: str, *args: Any) -> Any:
    """All four ways to the result give the same one."""
    results = [run(*args) for k in (python, text) for run in (k.interpret, k.on(device))]
    for r in results[1:]:
        assert difference(r, results[0]) is None
    return results[0]


# ---- one text, two doors ----


@mj.function
def tap(u: f32[N], i: i32, weights: tuple) -> f32:  # type: ignore[type-arg]
    return sum(w * u[i + k - 1] for k, w in enumerate(weights))


@mj.kernel
def smooth(u: f32[N], rounds: const[int] = 1) -> f32[N]:
    i = position()
    u = border(u, "reflect")
    total = tap(u, i, WEIGHTS) * SCALE
    for _ in range(rounds - 1):
        total = mix(total, u[i], 0.5)
    return total


SMOOTH = '''
"""The same as a text."""
from metaljit.lang import border, f32, position
import metaljit as mj

N = mj.dims("N")
WEIGHTS = (1, 2, 1)

def tap(u: f32[N], i: i32, weights: tuple) -> f32:
    return sum(w * u[i + k - 1] for k, w in enumerate(weights))

@mj.kernel
def smooth(u: f32[N], rounds: const[int] = 1) -> f32[N]:
    i = position()
    u = border(u, "reflect")
    total = tap(u, i, WEIGHTS) * f32(0.25)
    for _ in range(rounds - 1):
        total = mj.mix(total, u[i], 0.5)
    return total
'''


@pytest.mark.parametrize("rounds", [1, 3])
def test_smooth(device: str, rounds: int) -> None:
    u = np.array([4, 8, 0, -4, 1], np.float32)
    result = agree(smooth, mj.kernel_from_text(SMOOTH), device, u, rounds)
    p = np.pad(u, 1, mode="reflect")
    expected = (p[:-2] + 2 * p[1:-1] + p[2:]) / 4
    for _ in range(rounds - 1):
        expected = (expected + u) / 2
    assert difference(result, expected) is None


# ---- files that import ----

SHAPES = '''
PI2 = 6.283185307179586
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))

def disc(p, centre, radius):
    """1 inside, 0 outside, smooth between."""
    return 1 - smoothstep(radius - 1, radius + 1, length(p - centre))

def corner_mean(u, y, x):
    return sum(u[y + a, x + b] for a, b in CORNERS) / len(CORNERS)
'''
SCENE = """
import shapes
from shapes import corner_mean as average, PI2

H, W = dims("H W")

@kernel
def scene(u: f32[H, W], radius: f32, turn: f32) -> f32[H, W]:
    y, x = position()
    a = turn * PI2
    centre = f32x2(W, H) / 2 + f32x2(cos(a), sin(a)) * radius
    return shapes.disc(f32x2(x, y), centre, radius) * average(border(u, "wrap"), y, x)
"""


@mj.function
def disc(p: f32x2, centre: f32x2, radius: f32) -> f32:
    return 1 - mj.lang.smoothstep(radius - 1, radius + 1, mj.lang.length(p - centre))


@mj.kernel
def scene(u: f32[H, W], radius: f32, turn: f32) -> f32[H, W]:
    y, x = position()
    a = turn * math.tau
    centre = f32x2(W, H) / 2 + f32x2(np.cos(a), np.sin(a)) * radius
    u = border(u, "wrap")
    mean = sum(u[y + b, x + c] for b, c in ((0, 0), (0, 1), (1, 0), (1, 1))) / 4
    return disc(f32x2(x, y), centre, radius) * mean


def test_a_file_with_imports(device: str, tmp_path: Path) -> None:
    (tmp_path / "shapes.mjk").write_text(SHAPES, encoding="utf-8")
    (tmp_path / "scene.mjk").write_text(SCENE, encoding="utf-8")
    u = np.random.default_rng(1).random((6, 9), np.float32)
    file = mj.load_kernels(tmp_path / "scene.mjk").scene
    result = agree(scene, file, device, u, 2.5, 0.3)
    y, x = np.mgrid[:6, :9].astype(np.float64)
    a = 0.3 * math.tau
    d = np.hypot(x - 4.5 - 2.5 * math.cos(a), y - 3 - 2.5 * math.sin(a))
    t = np.clip((d - 1.5) / 2, 0, 1)
    mean = sum(np.roll(u, (-b, -c), (0, 1)) for b in (0, 1) for c in (0, 1)) / 4
    expected = (1 - t * t * (3 - 2 * t)) * mean
    assert difference(result, expected, tolerance=Tolerance(1e-4, 1e-5)) is None


# ---- what Python's scopes give ----


def family(order: int, table: tuple[int, ...]) -> mj.Kernel:
    """Kernels out of a function: each has its own captured values."""
    local = np.int16(order)

    @mj.kernel
    def member(x: u8[N]) -> i32[N]:
        i = position()
        return x[i] * local + table[x[i] % len(table)] ** order

    return member


@pytest.mark.parametrize(("order", "table"), [(1, (3, 4)), (2, (5, 6, 7))])
def test_closures(device: str, order: int, table: tuple[int, ...]) -> None:
    x = np.arange(20, dtype=np.uint8)
    kernel = family(order, table)
    expected = x.astype(int) * order + np.array(table)[x % len(table)] ** order
    for run in (kernel.interpret, kernel.on(device)):
        assert difference(run(x), expected) is None


class Settings:
    """A module-like thing that is none."""

    gain = 2.0


def test_what_cannot_be_captured_is_refused(device: str) -> None:
    settings, listed = Settings(), [1, 2]

    @mj.kernel
    def by_object(x: f32[N]) -> f32[N]:
        return x[position()] * settings.gain

    @mj.kernel
    def by_list(x: f32[N]) -> f32[N]:
        return x[position()] * listed[0]

    for kernel in (by_object, by_list):
        faults = []
        for run in (kernel.interpret, kernel.on(device)):
            with pytest.raises(mj.TypeFault) as e:
                run(np.ones(2, np.float32))
            faults.append(str(e.value))
        assert faults[0] == faults[1]


def test_rank_polymorphism_through_both_doors(device: str) -> None:
    @mj.kernel
    def total(u: f32[*S], skip: const[int] = 0) -> f32[*S]:
        p = position()
        u = border(u, "constant", value=1)
        return sum(u[p + o] * (1 if o[0] != skip else 0.5) for o in offsets(len(S)))

    text = mj.kernel_from_text(
        'S = dims("*S")\n@kernel\ndef total(u: f32[*S], skip: const[int] = 0) -> f32[*S]:\n    p = position()\n'
        '    u = border(u, "constant", value=1)\n'
        "    return sum(u[p + o] * (1 if o[0] != skip else 0.5) for o in offsets(len(S)))\n"
    )
    for shape in ((4,), (3, 2), (2, 1, 3)):
        u = np.random.default_rng(2).random(shape, np.float32)
        result = agree(total, text, device, u)
        p = np.pad(u.astype(np.float64), 1, constant_values=1)
        w = np.lib.stride_tricks.sliding_window_view(p, (3,) * u.ndim)
        weight = np.ones((3,) * u.ndim)
        weight[1] = 0.5
        expected = (w * weight).sum(axis=tuple(range(u.ndim, 2 * u.ndim)))
        assert difference(result, expected) is None
