"""The standard ops, and kernels as users write them: pooling, gathering, stencils, distances, products, control flow."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from every_type import I32, NUMPY, U8

import metaljit as mj

F = np.float32
INF, NAN = np.inf, np.nan


# ---- pooling ----


def pooled(row: Any, **options: Any) -> tuple[list[Any], list[int]]:
    """Values and indices of one row."""
    values, at = mj.ops.max_pool(row.reshape(1, 1, -1), 2, return_indices=True, **options)
    return values.ravel().tolist(), at.ravel().tolist()


def test_a_window_of_nothing_but_the_smallest_value_has_an_index(place: str) -> None:
    assert pooled(np.array([-INF, -INF, -INF, 1], F)) == ([-INF, 1], [0, 3])
    values, at = pooled(np.array([-128, -128], np.int8), padding=1, stride=1)
    assert (values, at) == ([-128] * 3, [0, 0, 1])
    for name in ("u8", "i64"):
        least = np.iinfo(NUMPY[name]).min
        values, at = pooled(np.full(4, least, NUMPY[name]), padding=1, stride=2)
        assert (values, at) == ([least] * 3, [0, 1, 3])


def test_the_first_of_equals_is_taken_and_nan_stays(place: str) -> None:
    assert pooled(np.array([1, 3, 3, 1], F), stride=1) == ([3, 3, 3], [1, 1, 2])
    values, at = pooled(np.array([1, NAN, 2], F), stride=1)
    np.testing.assert_array_equal(values, [NAN, NAN])
    assert at == [1, 1]


def test_pooling_indices_are_flattened_as_their_mode_says(place: str) -> None:
    first = [[0, 3, 0, 0], [4, 0, 4, 8], [7, 8, 4, 5], [2, 3, 4, 5]]
    second = [[2, 5, 2, 7], [4, 3, 4, 6], [8, 3, 2, 0], [7, 5, 9, 3]]
    x = np.array([first, second], F)
    values, at = mj.ops.max_pool(x[..., None], 2, layout="NHWC", return_indices=True, indices="global_3d")
    assert values[..., 0].tolist() == [[[4, 8], [8, 5]], [[5, 7], [8, 9]]]
    assert at[..., 0].tolist() == [[[4, 7], [9, 11]], [[1, 3], [8, 14]]]
    _, at = mj.ops.max_pool(x[..., None], 2, layout="NHWC", return_indices=True, indices="global_4d")
    assert at[1, ..., 0].tolist() == [[17, 19], [24, 30]]
    both = np.stack([x, -x], -1)  # two channels: the index counts them
    _, at = mj.ops.max_pool(both, 2, layout="NHWC", return_indices=True, indices="global_3d")
    assert at[0, ..., 0].tolist() == [[8, 14], [18, 22]]
    assert (at[..., 1] % 2 == 1).all()
    _, plane = mj.ops.max_pool(np.moveaxis(both, -1, 1), 2, return_indices=True)
    assert plane[0, 0].tolist() == [[4, 7], [9, 11]]
    assert plane.max() < 16


# ---- gathering ----

GATHER = """
N, M, K = dims("N M K")

@kernel
def f(p: f32[N, M], at: i32[K, 2]) -> f32[K]:
    k = position()
    return p[at[k, 0], at[k, 1]]

@kernel
def rows(p: f32[N, M], at: i32[K, 1]) -> f32[K, M]:
    k, j = position()
    return p[at[k, 0], j]
"""


def test_gathering_outside_gives_zero(place: str) -> None:
    p = np.arange(6, dtype=F).reshape(2, 3)
    elements, rows = (
        mj.kernel_from_text(GATHER[: GATHER.index("@kernel\ndef rows")]),
        mj.kernel_from_text(GATHER),
    )
    at = I32([[0, 1], [1, 2], [2, 0], [0, 3], [-1, 0], [0, -1], [1, -3], [2**31 - 1, 0], [0, -(2**31)]])
    assert elements(p, at).tolist() == [1, 5, 0, 0, 0, 0, 0, 0, 0]
    assert rows(p, I32([[1], [0], [2], [-1]])).tolist() == [[3, 4, 5], [0, 1, 2], [0, 0, 0], [0, 0, 0]]


# ---- stencils ----

pad: Any = np.pad  # whose stubs list the modes one by one
MODES = {
    "constant": [0, 1, 2, -12], "edge": [1, 1, 2, -4], "reflect": [2, 1, 2, -8], "symmetric": [1, 1, 2, -4],
    "wrap": [8, 1, 2, -11], "antiperiodic": [-8, 1, 2, -13],
}  # fmt: skip


def test_border_names_mean_what_numpys_mean(place: str) -> None:
    """NumPy's "reflect" is SciPy's "mirror", its "symmetric" SciPy's "reflect"."""
    x = np.array([1, 2, 4, 8], F)
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> ({", ".join(["f32[N]"] * len(MODES))}):\n    i = position()\n'
        + "".join(f'    {m} = border(x, "{m}")\n' for m in MODES)
        + f"    return {', '.join(f'{m}[i - 1] - 2 * {m}[i] + {m}[i + 1]' for m in MODES)}\n"
    )
    for (mode, wanted), found in zip(MODES.items(), kernel(x), strict=True):
        assert found.tolist() == wanted, mode
        if mode != "antiperiodic":
            p = pad(x, 1, mode)
            assert (p[:-2] - 2 * x + p[2:]).tolist() == wanted
    assert mj.ops.laplacian(x, mode="reflect").tolist() == MODES["reflect"]
    assert mj.ops.laplacian(x).tolist() == MODES["reflect"]
    for radius in (5, 9):  # further than one fold
        wide = mj.kernel_from_text(
            f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> (f32[N + {2 * radius}], f32[N + {2 * radius}]):\n'
            f'    i = position() - {radius}\n    return border(x, "reflect")[i], border(x, "symmetric")[i]\n'
        )
        for mode, found in zip(("reflect", "symmetric"), wide(x), strict=True):
            np.testing.assert_array_equal(found, pad(x, radius, mode))


def test_a_borders_value_does_not_depend_on_who_owns_the_result(place: str) -> None:
    kernel = mj.kernel_from_text(
        'H, W = dims("H W")\n@kernel\ndef f(x: f32[H, W], v: f32) -> f32[H, W]:\n    y, i = position()\n'
        '    u = border(x, "constant", value=v)\n    return u[y - 1, i - 1] + u[y + 1, i + 1] + u[y, i + 2]\n'
    )
    x = np.arange(12, dtype=F).reshape(3, 4)
    p = np.pad(x, 2, constant_values=9)
    wanted = p[1:4, 1:5] + p[3:6, 3:7] + p[2:5, 4:8]
    np.testing.assert_array_equal(kernel(x, 9), wanted)
    for out in (
        np.zeros((3, 4), F),
        np.zeros((4, 3), F).T,
        np.zeros((6, 8), F)[::2, ::2],
        np.zeros((3, 4), F)[::-1],
    ):
        np.testing.assert_array_equal(kernel(x, 9, out=out), wanted)


# ---- distances ----


def test_hamming_counts_bits_of_the_elements_width(place: str) -> None:
    distance = mj.ops.hamming_distance
    for dtype in (np.int8, np.int64):
        a, b = np.array([[-1]], dtype), np.array([[0]], dtype)
        assert distance(a, b).tolist() == [8 * a.itemsize]
    a = U8([[[1, 2, 3]], [[255, 0, 0]]])
    b = U8([[0, 2, 3], [1, 2, 3], [255, 255, 255], [0, 0, 0]])
    assert distance(a, b).tolist() == [[1, 0, 20, 4], [11, 10, 16, 8]]
    many = np.full((1, 40), 255, np.uint8)
    assert distance(many, many * 0).tolist() == [320]
    many = np.full((1, 9000), 255, np.uint8)
    assert distance(many, many * 0).tolist() == [72000]


# ---- products of matrices ----

MATMUL = """
{m}, {n}, {k} = dims("{m} {n} {k}")

@kernel
def {f}({a}: f32[{m}, {k}], {b}: f32[{k}, {n}]) -> f32[{m}, {n}]:
    {i}, {j} = position()
    return sum({a}[{i}, {l}] * {b}[{l}, {j}] for {l} in range({k}))
"""
NAMES = [
    dict(zip("mnkfabijl", words.split(), strict=True))
    for words in (
        "M N K matmul a b i j k",
        "a b c f x y z w v",
        "K M N kernel_ N_ M_ j i n",
    )
]


def test_nothing_depends_on_a_users_names(place: str) -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 9, 9)).astype(F)
    a, b = a[:5, :7], b[:7, :3]
    texts = [MATMUL.format(**names) for names in NAMES]
    results = [mj.kernel_from_text(text)(a, b) for text in texts]
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-5, atol=1e-6)
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])


@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (382, 1, 10), (33, 65, 17), (2, 0, 3), (1, 1, 1), (17, 31, 33), (4, 129, 1)]
)
def test_tails_of_products_read_nothing_beside_the_matrices(place: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    kernel = MATMULS.setdefault("", mj.kernel_from_text(MATMUL.format(**NAMES[0])))
    rng = np.random.default_rng(2)
    stores = [np.full(rows * columns + 128, NAN, F) for rows, columns in ((m, k), (k, n))]
    a = stores[0][64 : 64 + m * k].reshape(m, k)
    b = stores[1][64 : 64 + k * n].reshape(k, n)
    a[...], b[...] = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    store = np.full(m * n + 128, 77, F)
    out = store[64 : 64 + m * n].reshape(m, n)
    kernel(a, b, out=out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
    assert (store[:64] == 77).all()
    assert (store[-64:] == 77).all()
    padded_a, padded_b = np.full((m + 2, k + 3), NAN, F), np.full((k + 2, n + 3), NAN, F)
    padded_a[1:-1, 1:-2], padded_b[1:-1, 1:-2] = a, b
    np.testing.assert_array_equal(kernel(padded_a[1:-1, 1:-2], padded_b[1:-1, 1:-2]), out)


MATMULS: dict[str, mj.Kernel] = {}


# ---- control flow ----


def test_collatz(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32[N]) -> i32[N]:\n    n = x[position()]\n    steps = 0\n    while n > 1:\n'
        "        if n % 2 == 0:\n            n //= 2\n        else:\n            n = 3 * n + 1\n        steps += 1\n    return steps\n"
    )
    assert kernel(I32([1, 7, 27])).tolist() == [0, 16, 111]


class Writer:
    """A random program of integers that Python and the kernel language both run, and that always ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.lines: list[str] = []

    def function(self, name: str) -> str:
        self.lines = [f"def {name}(x):", "    a = x", "    b = x * 2 - 3", "    c = x // 3"]
        self.block(1, 2, False)
        self.lines.append("    return a + 10 * b - c")
        return "\n".join(self.lines) + "\n"

    def value(self) -> str:
        pick = self.random.choice
        name, other = pick("abcx"), pick("abcx")
        return pick(
            [
                f"{name} + {other}",
                f"{name} - 3",
                f"{name} * 2",
                f"({name} // 2)",
                f"{name} % 5",
                f"{other}",
                "7",
            ]
        )

    def condition(self) -> str:
        pick = self.random.choice
        name, other = pick("abcx"), pick("abcx")
        return pick(
            [f"{name} > {other}", f"{name} % 2 == 0", f"{name} < 3 and {other} > 0", f"not {name} > 4 or {other} == 1",
             f"0 <= {name} < 9"]
        )  # fmt: skip

    def block(self, depth: int, budget: int, in_loop: bool) -> None:
        indent = "    " * depth
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.randint(0, 9) if budget else 0
            if kind < 3:
                name = self.random.choice("abc")
                self.lines.append(f"{indent}{name} = ({self.value()}) % 1009 - 300")
            elif kind < 6:
                self.lines.append(f"{indent}if {self.condition()}:")
                self.block(depth + 1, budget - 1, in_loop)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}elif {self.condition()}:")
                    self.block(depth + 1, budget - 1, in_loop)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.block(depth + 1, budget - 1, in_loop)
            elif kind < 8:
                self.loops += 1
                self.lines.append(f"{indent}for k{self.loops} in range({self.random.randint(2, 5)}):")
                self.lines.append(f"{indent}    a = (a + k{self.loops}) % 1009")
                self.block(depth + 1, budget - 1, True)
            else:
                self.loops += 1
                count = f"n{self.loops}"
                self.lines += [
                    f"{indent}{count} = 0",
                    f"{indent}while {count} < 6:",
                    f"{indent}    {count} += 1",
                ]
                self.block(depth + 1, budget - 1, True)
        if in_loop and self.random.random() < 0.5:
            self.lines.append(f"{indent}if {self.condition()}:")
            self.lines.append(f"{indent}    {self.random.choice(['break', 'continue', 'return b - a'])}")


def test_random_nestings_of_branches_and_loops(place: str) -> None:
    count = 8
    functions = [Writer(seed).function(f"g{seed}") for seed in range(count)]
    words = "\n".join(functions)
    for word in ("elif", "else", "break", "continue", "while", "for", "return b - a"):
        assert re.search(rf"\b{word}\b", words), f"no program uses {word}"
    scope: dict[str, Any] = {}
    exec(words, scope)
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n{words}\n@kernel\ndef f(x: i32[N]) -> ({", ".join(["i32[N]"] * count)}):\n    x_ = x[position()]\n'
        f"    return {', '.join(f'g{seed}(x_)' for seed in range(count))}\n"
    )
    x = np.arange(-8, 24, dtype=np.int32)
    for seed, found in enumerate(kernel(x)):
        wanted = [scope[f"g{seed}"](v) for v in x.tolist()]
        assert found.tolist() == wanted, functions[seed]
