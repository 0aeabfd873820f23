"""Choices and loops on the device: what Python's own would give, inside a kernel or replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.lang import f32, position

N = mj.dims("N")


@mj.kernel
def positive(u: f32[N]) -> f32[N]:
    i = position()
    assert u[i] >= 0
    return u[i] + 1


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.25, 2, shape).astype(np.float32)


def rotated(x: Any, by: int = 1) -> Any:
    return np.concatenate([x[-by:], x[:-by]])


def lucas(n: Any) -> Any:
    return mj.for_loop(n, lambda i, s: (s[1], s[0] + s[1]), (np.int32(2), np.int32(1)))


def nested(x: Any) -> Any:
    return mj.for_loop(3, lambda i, v: mj.for_loop(i + 1, lambda j, w: (w + rotated(w)) / 2, v * 2), x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements": (lambda x: mj.for_loop(5, lambda i, v: v * np.float32(0.5) + x, x * 2), (a(7, 6),)),
    "turns": (lambda x, n: mj.for_loop(n, lambda i, v: v + i * x, x), (a(9), np.int32(4))),
    "no turn": (lambda x, n: mj.for_loop(n, lambda i, v: v * 2, x), (a(9), np.int32(0))),
    "numbers": (lucas, (np.int32(12),)),
    "number beside an array": (
        lambda x: mj.for_loop(4, lambda i, s: (s[0] * s[1], s[1] + np.float32(0.25)), (x, np.float32(1)))[0],
        (a(9),),
    ),
    "until": (lambda x: mj.while_loop(lambda v: v < 50, lambda v: v * v + 1, x), (a(8),)),
    "until a sum": (
        lambda x: mj.while_loop(lambda s: s[0].sum() > 1, lambda s: (s[0] * np.float32(0.7), s[1] + 1), (x, np.int32(0))),
        (a(80),),
    ),
    "neighbours": (lambda x: mj.for_loop(6, lambda i, v: v + rotated(v) * np.float32(0.1), x), (a(9),)),
    "neighbours, no turn": (lambda x, n: mj.for_loop(n, lambda i, v: rotated(v), x), (a(9), np.int32(0))),
    "exchanged": (lambda x, y: mj.for_loop(3, lambda i, s: (rotated(s[1]), rotated(s[0])), (x, y))[0], (a(9), a(9, seed=1))),
    "both the same": (lambda x: mj.for_loop(3, lambda i, s: (rotated(s[0]), rotated(s[0])), (x, x * 2))[1], (a(9),)),
    "one stays": (lambda x: mj.for_loop(3, lambda i, s: (rotated(s[0]) + s[1], s[1]), (x, x * 2))[0], (a(9),)),
    "heat": (lambda u: mj.for_loop(9, lambda i, u: u + np.float32(0.1) * ops.laplacian(u, mode="wrap"), u), (a(8, 9),)),
    "nested": (nested, (a(9),)),
    "inside": (
        lambda x: mj.for_loop(3, lambda i, v: mj.for_loop(i + 2, lambda j, w: w * np.float32(0.5) + j, v), x) + 1,
        (a(9),),
    ),
    "taken": (lambda x: mj.cond(x.sum() > 1, lambda x: rotated(np.exp(x)), lambda x: -x, x), (a(9),)),
    "not taken": (lambda x: mj.cond(x.sum() < 1, lambda x: rotated(np.exp(x)), lambda x: -x, x), (a(9),)),
    "in both": (
        lambda x, k: mj.cond(k > 0, lambda: x.max(axis=1) + x.min(axis=1), lambda: x.max(axis=1) * 2) + 1,
        (a(3, 90), np.int32(-3)),
    ),
    "of elements": (lambda x: mj.cond(x > 1, lambda: x * 2, lambda: x - 1), (a(9),)),
    "choice in a loop": (
        lambda x: mj.for_loop(4, lambda i, v: mj.cond(i % 2 == 0, lambda: rotated(v), lambda: v * 2), x),
        (a(9),),
    ),
    "loop in a choice": (
        lambda x: mj.cond(x[0] > 9, lambda: mj.while_loop(lambda v: v.sum() >= 0, lambda v: v, x), lambda: x + 1),
        (a(9),),
    ),
    "choice in a choice": (
        lambda x: mj.cond(x[0] > 0, lambda: mj.cond(x[1] > 9, lambda: rotated(x), lambda: rotated(x) * 3), lambda: x),
        (a(9),),
    ),
    "counts": (
        lambda x, at: mj.for_loop(3, lambda i, c: c.at[at].add(1) * 2 if isinstance(c, mj.Traced) else counted(c, at), x),
        (a(5), np.array([0, 3, 3], np.int32)),
    ),
}  # fmt: skip


def counted(c: Any, at: Any) -> Any:
    c = c.copy()
    np.add.at(c, at, 1)
    return c * 2


def python(function: Callable[..., Any], *args: Any) -> Any:
    """Choices of elements aside, what the functions give outside of a trace."""
    return (
        np.where(args[0] > 1, args[0] * 2, args[0] - 1)
        if function is CASES["of elements"][0]
        else function(*args)
    )


@pytest.mark.parametrize("name", CASES)
def test_what_python_gives(name: str, device: str) -> None:
    function, args = CASES[name]
    wanted = python(function, *args)
    before = [np.array(x) for x in args]
    with mj.use_device(device):
        made, alone = mj.jit(function), mj.jit(fuse=False)(function)
        for _ in range(2):  # what a call leaves behind is nothing to the next one
            fused = made(*args)
        unfused = alone(*args)
    for got, step, want in zip(leaves(fused), leaves(unfused), leaves(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5)
        assert np.asarray(got).tobytes() == np.asarray(step).tobytes()
    for x, y in zip(args, before, strict=True):
        np.testing.assert_array_equal(x, y)


def leaves(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def test_elements_that_turn_by_themselves_are_one_kernel() -> None:
    for name in ("elements", "until", "inside", "numbers", "number beside an array"):
        function, args = CASES[name]
        assert "1 kernel\n" in str(mj.jit(function).explain(*args))


def test_results_share_no_memory() -> None:
    x = a(9)
    first, second = mj.jit(lambda x: mj.for_loop(3, lambda i, s: (rotated(s[0]), rotated(s[0])), (x, x)))(x)
    still, other = mj.jit(lambda x, n: mj.for_loop(n, lambda i, s: (rotated(s[0]), s[0]), (x, x)))(x, 0)
    for one, two in ((first, second), (still, other), (still, x)):
        assert not np.shares_memory(one, two)


def test_a_side_that_is_not_taken_does_not_run() -> None:
    f = mj.jit(lambda x, k: mj.cond(k > 0, lambda: positive(x), lambda: x))
    np.testing.assert_array_equal(f(-a(5), 0), -a(5))
    with pytest.raises(mj.KernelAssertion):
        f(-a(5), 1)


def test_new_sizes_and_counts_trace_nothing() -> None:
    traces = []

    @mj.jit
    def f(x: Any, n: Any) -> Any:
        traces.append(1)
        return mj.for_loop(n, lambda i, v: rotated(v), x)

    for size, n in ((5, 3), (8, 1), (90, 70)):
        np.testing.assert_array_equal(f(a(size), n), np.roll(a(size), n))
    assert len(traces) == 1


def test_sizes_are_numbers_of_turns() -> None:
    f = mj.jit(lambda x: mj.for_loop(x.shape[0], lambda i, v: rotated(v) + 1, x))
    for n in (3, 6):
        np.testing.assert_allclose(f(a(n)), a(n) + n, rtol=1e-6)


def test_a_loop_without_end_is_an_error() -> None:
    for turn in (np.positive, rotated):
        f = mj.jit(forever(turn))
        with pytest.raises(mj.KernelAssertion, match="30 turns"):
            f(a(4))
    g = mj.jit(lambda x: mj.while_loop(lambda v: v > 0, lambda v: v * 1, x, limit=30))
    with pytest.raises(mj.KernelAssertion, match="30 turns"):
        g(a(4))


def forever(turn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mj.while_loop(lambda v: v.min() > 0, turn, x, limit=30)


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "predicate": (lambda x: mj.cond(x.sum(), lambda: x, lambda: x), "predicate-type"),
    "sides": (lambda x: mj.cond(x[0] > 0, lambda: x, lambda: (x, x)), "branch-structure"),
    "types": (lambda x: mj.cond(x[0] > 0, lambda: x, lambda: x > 1), "branch-types"),
    "ranks": (lambda x: mj.cond(x[0] > 0, lambda: x, lambda: x[0]), "branch-types"),
    "shapes": (lambda x: mj.cond(x[0] > 0, lambda: x, lambda: x[:1]), "shape-mismatch"),
    "turn types": (lambda x: mj.for_loop(3, lambda i, v: v > 0, x), "loop-types"),
    "turn shape": (lambda x: mj.for_loop(3, lambda i, v: v[1:], x), "loop-types"),
    "turn rank": (lambda x: mj.for_loop(3, lambda i, v: v.sum(), x), "loop-types"),
    "turn structure": (lambda x: mj.for_loop(3, lambda i, v: (v, v), x), "loop-structure"),
    "count": (lambda x: mj.for_loop(x[0], lambda i, v: v, x), "loop-count"),
    "nothing": (lambda x: mj.for_loop(3, lambda i, v: v, ()), "loop-value"),
    "condition": (lambda x: mj.while_loop(lambda v: v, lambda v: v, x), "predicate-type"),
    "condition shape": (lambda x: mj.while_loop(lambda v: v[1:] > 0, lambda v: v, x), "loop-condition"),
    "condition of neighbours": (lambda x: mj.while_loop(lambda v: v > 0, rotated, x), "loop-condition"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str) -> None:
    function, slug = MISTAKES[name]
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(function)(a(3))
    assert caught.value.slug == slug


# ---- arrays that a loop fills ----


def filled(x: Any, start: Any) -> Any:
    """Running sums of neighbours, from both ends, and one that nobody asks for."""
    count = x.shape[0]

    def turn(t: Any, value: Any) -> Any:
        v, down, up, rest = value
        v = rotated(v) + x[t]
        return v, down.at[t].set(v), up.at[count - 1 - t].set(v), rest.at[t].set(v * 2)

    zeros = np.zeros_like(x)
    return mj.for_loop(count, turn, (start, zeros, zeros, zeros))[:3]


def test_an_array_is_filled_row_by_row_in_place(device: str) -> None:
    x, start = a(7, 5), a(5, seed=1)
    executable = mj.jit(filled).compile(x, start)
    (loop,) = [s for s in executable.plan.steps if hasattr(s, "rows")]
    assert [at is not None for at in loop.rows] == [False, True, True]  # the fourth is not carried
    rows = []
    v = start
    for row in x:
        v = rotated(v) + row
        rows.append(v)
    with mj.use_device(device):
        last, down, up = mj.jit(filled)(x, start)
        by_x = mj.grad(lambda x: sum(p.sum() for p in filled(x, start)))(x)
    np.testing.assert_allclose(last, v, rtol=1e-5)
    np.testing.assert_allclose(down, rows, rtol=1e-5)
    np.testing.assert_allclose(up, rows[::-1], rtol=1e-5)
    np.testing.assert_allclose(by_x, np.repeat(2 * np.arange(7, 0, -1) + 1, 5).reshape(7, 5), rtol=1e-5)


def test_an_array_that_a_turn_reads_too_is_not_filled_in_place() -> None:
    def turn(t: Any, y: Any) -> Any:
        return y.at[t].set(y.sum(axis=0) + 1)

    found = mj.jit(lambda x: mj.for_loop(x.shape[0], turn, np.zeros_like(x)))(a(4, 3))
    np.testing.assert_array_equal(found, np.repeat([1, 2, 4, 8], 3).reshape(4, 3))
