"""Large graphs: long chains, many arrays, many results, deep stencils. Right, within what a kernel holds, and split where
it has to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.compiler.fuse_groups import MOST_ARRAYS, MOST_OPERATIONS
from metaljit.lang import border, f32, position

H, W = mj.dims("H W")
N = mj.dims("N")


@mj.kernel
def blur(u: f32[H, W]) -> f32[H, W]:
    u = border(u, "edge")
    y, x = position()
    return (u[y, x - 1] + u[y, x] + u[y, x + 1]) / 3


@mj.kernel
def scaled(u: f32[N], factor: f32) -> f32[N]:
    return u[position()] * factor + 0.25


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def chain(n: int) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        for k in range(n):
            x = x * 0.75 + 0.5 if k % 3 else np.maximum(x, 0.01 * k)
        return x

    return run


def repeated(step: Callable[[Any], Any], n: int) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        for _ in range(n):
            x = step(x)
        return x

    return run


def every_state(n: int) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        states = []
        for _ in range(n):
            x = x * 0.75 + 0.1
            states.append(x)
        return tuple(states)

    return run


def pairs(*xs: Any) -> Any:
    total = xs[0]
    for k in range(1, len(xs)):
        total = total + xs[k] * xs[k * 7 % len(xs)]
    return total


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def many(n: int) -> list[Any]:
    return [a(90, seed=k) for k in range(n)]


CASES: dict[str, tuple[Callable[..., Any], list[Any], int]] = {
    "300 operations": (chain(300), [a(90)], 2),
    "1000 operations": (chain(1000), [a(90)], 5),
    "300 functions": (repeated(lambda x: np.tanh(x) + 0.1, 300), [a(90)], 6),
    "each used twice": (repeated(lambda x: (x * x - x) * 0.5, 200), [a(90)], 2),
    "300 views": (repeated(lambda x: np.flip(x, 0).T * 0.99, 300), [a(7, 9)], 2),
    "deep reshapes": (repeated(lambda x: x.reshape(9, 7).T.reshape(7, 9) + 1, 60), [a(7, 9)], 1),
    "a sum of 40 arrays": (lambda *xs: sum(xs[1:], xs[0]), many(40), 2),
    "a sum of 60 arrays": (lambda *xs: sum(xs[1:], xs[0]), many(60), 3),
    "products of 60 arrays": (pairs, many(60), 5),
    "12 blurs": (repeated(lambda x: np.asarray(blur(x)) if type(x) is np.ndarray else blur(x), 12), [a(20, 30)], 12),
    "12 steps of heat": (repeated(lambda x: x + 0.1 * ops.laplacian(x), 12), [a(20, 30)], 12),
    "100 kernels": (repeated(lambda x: scaled(x, 0.5), 100), [a(90)], 13),
    "50 results": (lambda x: tuple(x * (k + 1) for k in range(50)), [a(90)], 3),
    "50 states": (every_state(50), [a(90)], 3),
    "20 softmaxes": (repeated(softmax, 20), [a(3, 100)], 20),
    "30 means": (repeated(lambda x: x - x.mean(axis=0), 30), [a(8, 90)], 60),
}  # fmt: skip


def planned(made: Any) -> Any:
    """What the only trace of a function came to."""
    ((only,),) = made._made.values()
    return only.planned


def listed(results: Any) -> list[Any]:
    return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("name", CASES)
def test_a_large_graph_is_right_and_split_sensibly(name: str) -> None:
    function, args, most = CASES[name]
    made = mj.jit(function)
    for got, want in zip(listed(made(*args)), listed(function(*args)), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    steps = planned(made).plan.steps
    assert len(steps) <= most
    assert all(len(step.arrays) <= MOST_ARRAYS for step in steps)


@pytest.mark.parametrize(
    "name", ["300 operations", "a sum of 40 arrays", "50 states", "100 kernels", "20 softmaxes"]
)
def test_split_is_unfused_to_the_bit(name: str) -> None:
    function, args, _ = CASES[name]
    for got, want in zip(
        listed(mj.jit(function)(*args)), listed(mj.jit(fuse=False)(function)(*args)), strict=True
    ):
        assert got.tobytes() == want.tobytes()


def test_on_the_emulator(device: str) -> None:
    with mj.use_device(device):
        for name in ("300 operations", "a sum of 40 arrays", "50 states"):
            function, args, _ = CASES[name]
            for got, want in zip(listed(mj.jit(function)(*args)), listed(function(*args)), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_what_is_stored_for_its_size_says_so() -> None:
    function, args, _ = CASES["300 operations"]
    assert f"more than {MOST_OPERATIONS} operations an element" in mj.jit(function).explain(*args)
    function, args, _ = CASES["a sum of 40 arrays"]
    assert f"more than {MOST_ARRAYS} arrays" in mj.jit(function).explain(*args)
    function, args, _ = CASES["100 kernels"]
    assert "kernels would call each other" in mj.jit(function).explain(*args)


def test_a_result_that_is_read_at_its_own_index_is_handed_on() -> None:
    made = mj.jit(lambda x: (y := x * 2, y + 1, np.flip(y)))
    x = a(9)
    for got, want in zip(made(x), (x * 2, x * 2 + 1, np.flip(x * 2)), strict=True):
        np.testing.assert_array_equal(got, want)
    text = made.explain(x)
    assert text.startswith("<lambda>: 2 kernels\n")  # the flip reads y elsewhere
    assert "handed on as it is stored, it is a result" in text


def test_an_argument_that_is_a_result_is_read_by_those_beside_it() -> None:
    made = mj.jit(lambda x: (x, x + 1, x * 2))
    x = a(9)
    for got, want in zip(made(x), (x, x + 1, x * 2), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_of_200_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = [a(6, 70, seed=k) for k in range(45)]
    wide = seed % 2 == 0  # many results, or few

    def run(*given: Any) -> Any:
        mine = np.random.default_rng(seed + 1)
        values = list(given)
        while len(values) < 245:
            x, y = (values[int(k)] for k in mine.integers(max(0, len(values) - 60), len(values), 2))
            match int(mine.integers(9)):
                case 0 | 1:
                    made = (x + y) * 0.5
                case 2:
                    made = x * y
                case 3:
                    made = np.tanh(x - y)
                case 4:
                    made = np.where(x > y, x, 0.5 - y)
                case 5:
                    made = np.flip(x, int(mine.integers(2))) * 0.5
                case 6:
                    made = ops.laplacian(x, mode="wrap") * 0.125
                case 7:
                    made = x - y.mean(axis=int(mine.integers(2)), keepdims=True)
                case _:
                    made = np.maximum(x, -y)
            values.append(made)
        return tuple(values[-25:] if wide else values[-3:])

    del rng
    fused, alone = mj.jit(run), mj.jit(fuse=False)(run)
    for got, step, want in zip(fused(*args), alone(*args), run(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
        assert np.asarray(got).tobytes() == np.asarray(step).tobytes()
    steps = planned(fused).plan.steps
    assert max(len(step.arrays) for step in steps) <= MOST_ARRAYS
    assert len(steps) < len(planned(alone).plan.steps) / 2
