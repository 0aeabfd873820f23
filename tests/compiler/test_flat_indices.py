"""Indices that are taken apart with `//` and `%`, or put together: proved in range, and right for all extents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj

F = np.float32
HEAD = 'D, H, W, N = dims("D H W N")\n@kernel\n'

# What is computed, the text, the shapes of the arguments as texts of D, H and W, NumPy's way.
PROVED: list[tuple[str, str, tuple[str, ...], Callable[..., Any]]] = [
    (
        "flattened",
        "def f(u: f32[H, W]) -> f32[H * W]:\n    i = position()\n    return u[i // W, i % W]\n",
        ("H,W",),
        np.ravel,
    ),
    (
        "flattened, three axes",
        "def f(u: f32[D, H, W]) -> f32[D * H * W]:\n    i = position()\n"
        "    return u[i // (H * W), i // W % H, i % W]\n",
        ("D,H,W",),
        np.ravel,
    ),
    (
        "flattened in two steps",
        "def f(u: f32[D, H, W]) -> f32[D * H * W]:\n    i = position()\n    r = i // W\n"
        "    return u[r // H, r % H, i % W]\n",
        ("D,H,W",),
        np.ravel,
    ),
    (
        "reshaped",
        "def f(u: f32[H, W]) -> f32[W, H]:\n    y, x = position()\n    k = y * H + x\n"
        "    return u[k // W, k % W]\n",
        ("H,W",),
        lambda u: u.reshape(u.shape[::-1]),
    ),
    (
        "unflattened",
        "def f(u: f32[H * W], v: f32[H, W]) -> f32[H, W]:\n    y, x = position()\n"
        "    return u[y * W + x] + v[y, x]\n",
        ("H*W", "H,W"),
        lambda u, v: u.reshape(v.shape) + v,
    ),
    (
        "the last axis by a number",
        "def f(u: f32[H, W]) -> f32[H, W, 4]:\n    y, x, c = position()\n    k = (y * W + x) * 4 + c\n"
        "    return u[k // 4 // W, k // 4 % W]\n",
        ("H,W",),
        lambda u: np.repeat(u[..., None], 4, -1),
    ),
    (
        "behind a condition",
        "def f(u: f32[H, W], x: f32[N]) -> f32[N]:\n    i = position()\n    if i < H * W:\n"
        "        return u[i // W, i % W]\n    return x[i]\n",
        ("H,W", "D"),
        lambda u, x: np.concatenate([u.ravel()[: x.size], x[u.size :]]),
    ),
]


@pytest.mark.parametrize(("text", "shapes", "reference"), [c[1:] for c in PROVED], ids=[c[0] for c in PROVED])
def test_proved_and_right(text: str, shapes: tuple[str, ...], reference: Callable[..., Any]) -> None:
    kernel = mj.kernel_from_text(HEAD + text)
    for d, h, w in ((2, 3, 4), (1, 1, 1), (5, 1, 7), (3, 7, 1), (50, 4, 5), (3, 0, 4), (3, 4, 0), (0, 4, 4)):
        rng = np.random.default_rng(d)
        extents = {"D": d, "H": h, "W": w}
        arrays = [rng.random(tuple(eval(e, extents.copy()) for e in shape.split(",")), F) for shape in shapes]
        found = kernel.on("cpu")(*arrays)
        np.testing.assert_array_equal(found, reference(*arrays))
        assert "every index is proved" in kernel.explain(*arrays)


@pytest.mark.parametrize(
    "index",
    [
        "i // H, i % H",  # W rows of H
        "i // W + 1, i % W",
        "i % W, i // W",
        "i // (W + 1), i % (W + 1)",
        "(i + 1) // W, (i + 1) % W",
        "i // (W - 1), i % W",
    ],
)
def test_what_may_lie_outside_keeps_its_guard(index: str) -> None:
    text = f"def f(u: f32[H, W]) -> f32[H * W]:\n    i = position()\n    return u[{index}]\n"
    kernel = mj.kernel_from_text(HEAD + text)
    u = np.arange(1, 13, dtype=F).reshape(3, 4)
    assert "is not proved" in kernel.explain(u)
    expected = []
    for i in range(12):
        y, x = eval(index, {"i": i, "H": 3, "W": 4})
        expected.append(u[y, x] if 0 <= y < 3 and 0 <= x < 4 else 0)
    assert kernel.on("cpu")(u).tolist() == expected


def test_a_division_is_plain_only_where_nothing_can_go_wrong() -> None:
    def msl(expression: str) -> str:
        text = f"def f(u: f32[N], k: i32) -> i32[N]:\n    i = position()\n    return {expression}\n"
        return mj.kernel_from_text(HEAD + text).msl(mj.spec((None,), mj.f32), 1)

    assert "i / 3" in msl("i // 3")
    assert "i / p.N" in msl("i // N")
    assert "mj_floor_div(i - 1, 3)" in msl("(i - 1) // 3")
    assert "mj_floor_div(i, p.k)" in msl("i // k")
    assert "p.k > 0 && i / p.k < 2" in msl("1 if k > 0 and i // k < 2 else 0")
