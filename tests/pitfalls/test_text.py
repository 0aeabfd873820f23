"""The generated text against what Apple's compiler has refused elsewhere."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msl_lints import LINTS, Lint, complaints

import metaljit as mj

ROOT = Path(__file__).parent.parent.parent
RECURSIVE = "inline int f(int n) {\n    return n < 2 ? 1 : n * f(n - 1);\n}"


@pytest.mark.parametrize("lint", LINTS, ids=lambda lint: lint.name.replace(" ", "-"))
def test_each_pattern_finds_what_it_is_for(lint: Lint) -> None:
    assert any(found.startswith(f"{lint.name}:") for found in complaints(lint.shown_by))


def test_recursion_is_found() -> None:
    assert complaints(RECURSIVE)
    assert not complaints(RECURSIVE.replace("* f(", "* g("))


EVERYTHING = """
N, M = dims("N M")
TABLE = (0.5, 1.5, inf)

def helper(t, v):
    for k in range(3):
        t[k] = t[k] + v
        if t[k] > 5:
            break
    return t[0] + t[2], v ** 2

@kernel(loop_limit=1000)
def f(a: f32[N], b: i64[N], c: u8[N, M], d: f16[N], e: bf16[N], g: bool[N], h: f32x3[N], half: f32, thread: i32x2,
      constant: const[int]) -> (f32[N], i64[N], u8[N], f16[N], bf16[N], bool[N], f32x3[N], i32[N]):
    i = position()
    t = local_array(f32, 3)
    sampler, dot = helper(t, a[i])
    u = border(a, ("reflect",))
    new = 0
    while new < 5 and a[i] > new:
        new += 1
    assert half == half or new > 0, "never"
    q = sum(c[i, k] * TABLE[k % 3] for k in range(M) if c[i, k] > 1)
    return (sampler + dot + u[i - 1] * half + max(a[i], nan) + q + sin(a[i]) ** 0.3, b[i] // 3 % 7 - b[i] ** 3 + (b[i] >> 2),
            c[i, 0] + 255, d[i] * 0.1 + 1 if g[i] else 0.0, e[i] / 3, isnan(a[i]) and not g[i], normalize(h[i]) * 2.0,
            argmax(c[i, k] for k in range(M)) + thread[i % 2] + constant)
"""

GRID = """
N = dims("N")

@kernel(grid="(ceil_div(N, 8), 2)", threadgroup=(8, 32))
def f(x: f32[N], counts: Out[u32[8]], sums: Out[f32[1]], least: InOut[i32[1]]):
    y, i = global_index()
    if y < N:
        atomic_add(counts, i32(x[y]), 1)
        atomic_add(sums, 0, x[y])
        atomic_min(least, 0, lane() + simd_index())
        atomic_cas(least, 0, 3, i)
"""


def test_a_kernel_with_everything_in_it_breaks_no_rule() -> None:
    shapes = [(1, "f4"), (1, "i8"), (2, "u1"), (1, "f2")]
    arrays = [mj.spec((None,) * rank, dtype) for rank, dtype in shapes]
    arrays += [mj.spec((None,), ml_dtypes.bfloat16), mj.spec((None,), "?"), mj.spec((None, 3), "f4")]
    text = mj.kernel_from_text(EVERYTHING).msl(*arrays, 1.0, (1, 2), 7)
    assert complaints(text) == []
    text = mj.kernel_from_text(GRID).msl(mj.spec((None,), "f4"), mj.spec((None,), "i4"))
    assert complaints(text) == []


def test_the_prelude_breaks_no_rule() -> None:
    text = (ROOT / "metaljit" / "compiler" / "prelude.metal").read_text("utf-8")
    assert complaints(text) == []


def test_user_text_is_only_where_it_can_do_no_harm() -> None:
    """Comments of the text hold the kernel's title; everything in it is printable, and ends with its line."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], k: const[str]) -> f32[N]:\n    """*/ } kernel void g() {"""\n'
        '    assert x[0] < 9, "*/ \\" \\\\ %s %n {0} // "\n    return x[position()] + (1 if k == "a" else 0)\n'
    )
    x = np.ones(1, np.float32)
    for value in (
        "a",
        "*/ x",
        "\n#error\n",
        "\\",
        "\\\n",
        "??/\n",
        '"; #error',
        "'",
        "\0",
        "é\u2028",
        "//",
        "a" * 5000,
    ):
        program = kernel.program(x, value)
        assert complaints(program.msl) == []
        for text in (program.msl, program.cpu.text):
            assert not any("#error" in line and not line.startswith("//") for line in text.splitlines())
            assert all(
                line.startswith("//") for line in text.splitlines() if value in line and len(value) > 2
            )
