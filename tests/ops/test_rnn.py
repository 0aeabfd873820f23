"""ops.rnn, ops.lstm, ops.gru against steps in float64: cells, gradients, layouts, directions, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from samples import BF16, laid_out

import metaljit as mj
from metaljit.stdlib_ops import recurrence
from metaljit.stdlib_ops.reference import rnn as reference
from metaljit.stdlib_ops.rnn import _run

ops = mj.ops
F = np.float32
GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def normal(*shape: int, seed: int = 0) -> Any:
    return (0.6 * np.random.default_rng(seed).standard_normal(shape)).astype(F)


def arguments(op: str, steps: int, rows: int, features: int, size: int, seed: int = 0) -> list[Any]:
    """x, the weights, the biases, and the states."""
    k, s = GATES[op] * size, 10 * seed
    states = [normal(rows, size, seed=s + n) for n in range(5, 7 if op == "lstm" else 6)]
    x = normal(steps, rows, features, seed=s)
    return [x, normal(k, features, seed=s + 1), normal(k, size, seed=s + 2), normal(k, seed=s + 3), normal(k, seed=s + 4),
            *states]  # fmt: skip


def numeric(f: Callable[..., float], args: Sequence[Any], k: int) -> Any:
    """Central differences by argument k, in float64."""
    wide: list[Any] = [None if a is None else a.astype(np.float64) for a in args]
    found = np.zeros(wide[k].shape)
    for at in np.ndindex(found.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = wide[k].copy()
            moved[at] += step
            ends.append(f(*wide[:k], moved, *wide[k + 1 :]))
        found[at] = (ends[0] - ends[1]) / 2e-5
    return found


CELLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rnn": ("rnn", {}, {}),
    "lstm": ("lstm", {}, {}),
    "gru": ("gru", {}, {}),
    "gru, reset before": (
        "gru",
        {"gates": "zrn", "reset_after": False, "flip": True},
        {"order": "zrn", "reset_after": False, "flip": True},
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_values_and_gradients(device: str, name: str) -> None:
    op, options, named = CELLS[name]
    run, want = partial(getattr(ops, op), **options), partial(getattr(reference, op), **named)

    @mj.jit
    def both(by: Any, *args: Any) -> Any:
        found, pull = mj.vjp(run, *args)
        return found, pull(by)

    for shape in ((4, 2, 3, 5), (6, 3, 2, 2)):
        args = arguments(op, *shape, seed=shape[0])
        expected = want(*args)
        by = [normal(*e.shape, seed=50 + n) for n, e in enumerate(expected)]
        found, grads = both((by[0], *(b[None] for b in by[1:])), *args)
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(f.reshape(e.shape), e, atol=3e-6)

        def total(*args: Any, by: Any = by) -> float:
            return sum(float((b * r).sum()) for b, r in zip(by, want(*args), strict=True))

        for k, grad in enumerate(grads):
            np.testing.assert_allclose(grad, numeric(total, args, k), atol=2e-5, err_msg=f"argument {k}")


@pytest.mark.parametrize(
    ("op", "options", "named"),
    [
        ("rnn", {"activation": "relu"}, {"activation": "relu"}),
        ("lstm", {"gates": "igfo"}, {"order": "igfo"}),
        ("gru", {"gates": "nzr"}, {"order": "nzr"}),
        ("gru", {"gates": "rnz", "reset_after": False}, {"order": "rnz", "reset_after": False}),
    ],
)
def test_other_cells(op: str, options: dict[str, Any], named: dict[str, Any]) -> None:
    args = arguments(op, 3, 2, 4, 3)
    args[4] = args[4][:3] if op == "gru" else None
    for found, e in zip(
        getattr(ops, op)(*args, **options), getattr(reference, op)(*args, **named), strict=True
    ):
        np.testing.assert_allclose(found.reshape(e.shape), e, atol=3e-6)


def test_the_bias_of_a_new_gate_alone_has_its_gradient() -> None:
    args = arguments("gru", 3, 2, 2, 3)
    args[4] = args[4][:3]
    grad = mj.grad(lambda *a: ops.gru(*a)[0].sum(), argnums=4)(*args)
    np.testing.assert_allclose(grad, numeric(lambda *a: reference.gru(*a)[0].sum(), args, 4), atol=2e-5)


# ---- layouts and directions ----


def test_both_directions_in_every_layout(device: str) -> None:
    one, other = (arguments("lstm", 4, 2, 3, 5, seed=s) for s in (1, 2))
    x = one[0]
    forth = reference.lstm(*one)
    back = reference.lstm(x[::-1], *other[1:])
    y = np.concatenate([forth[0], back[0][::-1]], axis=2)
    pairs = [(a, b) for a, b in zip(one[1:5], other[1:5], strict=True)]
    h0, c0 = (np.stack(p) for p in zip(one[5:], other[5:], strict=True))
    layouts = {
        "PyTorch": (pairs, h0, c0),
        "stacked": ([np.stack(p) for p in pairs], h0, c0),
        "MPSGraph": (
            [np.concatenate(pairs[0]), np.stack(pairs[1]), *map(np.concatenate, pairs[2:])],
            *(np.concatenate(list(s), axis=1) for s in (h0, c0)),
        ),
    }
    for name in layouts if device == "cpu" else ["PyTorch"]:
        given: Any = layouts[name]
        weights, *states = given
        found, h, c = ops.lstm(x, *weights, *states, bidirectional=True)
        np.testing.assert_allclose(found, y, atol=3e-6, err_msg=name)
        np.testing.assert_allclose(h, np.stack([forth[1], back[1]]), atol=3e-6)
        np.testing.assert_allclose(c, np.stack([forth[2], back[2]]), atol=3e-6)


def test_backwards_and_batch_first(device: str) -> None:
    args = arguments("gru", 4, 2, 3, 5)
    y, last = reference.gru(args[0][::-1], *args[1:])
    found, h = ops.gru(args[0].swapaxes(0, 1), *args[1:], reverse=True, batch_first=True)
    np.testing.assert_allclose(found, y[::-1].swapaxes(0, 1), atol=3e-6)
    np.testing.assert_allclose(h, last[None], atol=3e-6)


def test_products_that_are_there_already() -> None:
    x, w_ih, w_hh, b_ih, b_hh, h, c = arguments("lstm", 3, 2, 4, 3)
    want = reference.lstm(x, w_ih, w_hh, b_ih, b_hh, h, c)
    found = ops.lstm((x @ w_ih.T).astype(F), None, w_hh, b_ih, b_hh, h, c)
    np.testing.assert_allclose(found[0], want[0], atol=3e-6)


def test_the_worked_example() -> None:
    """The numbers of MPSGraph's reference: two steps, one hidden unit, zero states."""
    x = np.array([[[1, 2]], [[-1, 0.5]]], F)
    w = np.array([[0.1, 0.2], [0.3, -0.1], [0.5, 0.4], [-0.2, 0.1]], F)
    r, b = np.array([[0.1], [0.2], [0.3], [0.4]], F), np.array([0.01, 0.02, 0.03, 0.04], F)
    both: dict[str, Any] = {"bidirectional": True}
    cases: list[tuple[Any, list[Any]]] = [
        (ops.lstm(x, w, r, b), [0.252623, 0.080785]),
        (ops.lstm(x, w, r, b, gates="igfo"), [0.037985, -0.071253]),
        (ops.lstm(x, w, r, b, reverse=True), [0.219514, -0.075333]),
        (ops.lstm(x, (w, w), (r, r), (b, b), **both), [0.252623, 0.219514, 0.080785, -0.075333]),
        (ops.rnn(x, w[:1], r[:1], b[:1], activation="relu"), [0.51, 0.061]),
        (ops.rnn(x, w[:1], r[:1], b[:1]), [0.469945, 0.056933]),
        (ops.gru(x, w[:3], r[:3], b[:3], gates="zrn", reset_after=False), [0.326137, 0.057089]),
        (ops.gru(x, w[:3], r[:3], b[:3], np.array([0.05], F), gates="zrn"), [0.328511, 0.068626]),
        (ops.gru(x, w[:3], r[:3], b[:3], gates="zrn", reset_after=False, flip=True), [0.543113, 0.162201]),
        (ops.gru(x, w[:3], r[:3], b[:3], gates="rzn", reset_after=False), [0.408578, 0.064324]),
    ]
    for found, want in cases:
        np.testing.assert_allclose(found[0].ravel(), want, atol=2e-6)


# ---- arrays ----


@pytest.mark.parametrize(("dtype", "atol"), [(np.float16, 3e-3), (BF16, 3e-2)])
def test_16_bit_floats(dtype: Any, atol: float) -> None:
    args = [a.astype(dtype) for a in arguments("lstm", 3, 2, 4, 5)]
    found = ops.lstm(*args)
    assert {f.dtype for f in found} == {np.dtype(dtype)}
    for f, e in zip(found, reference.lstm(*args), strict=True):
        np.testing.assert_allclose(f.astype(F).reshape(e.shape), e, atol=atol)


def test_sizes_of_nothing_and_of_one() -> None:
    for steps, rows in ((0, 2), (3, 0), (1, 1)):
        args = arguments("lstm", steps, rows, 3, 4)
        found = ops.lstm(*args)
        for f, e in zip(found, reference.lstm(*args), strict=True):
            np.testing.assert_allclose(f.reshape(e.shape), e, atol=3e-6)


def test_layouts_in_memory_and_arrays_of_a_device(device: str) -> None:
    args = arguments("rnn", 3, 2, 4, 5)
    want = reference.rnn(*args)[0]
    np.testing.assert_allclose(ops.rnn(*(laid_out(a, "reversed") for a in args))[0], want, atol=3e-6)
    given = [mj.asarray(laid_out(a, "strided")) for a in args]
    found, last = ops.rnn(*given)
    assert isinstance(found, mj.Array)
    assert isinstance(last, mj.Array)
    np.testing.assert_allclose(found, want, atol=3e-6)


def test_not_a_number_stays_in_its_row() -> None:
    args = arguments("lstm", 3, 2, 4, 5)
    args[0][1, 0, 2] = np.nan
    y = ops.lstm(*args)[0]
    assert not np.isnan(y[0]).any()
    assert np.isnan(y[1:, 0]).all()
    assert not np.isnan(y[:, 1]).any()
    args[0][1, 0, 2] = np.inf
    assert np.isfinite(ops.lstm(*args)[0]).all()


def test_without_a_gradient_nothing_is_kept() -> None:
    """The states are filled row by row, and what the gradient would need is not computed."""
    x, w_ih, w_hh, *_ = arguments("lstm", 3, 2, 4, 5)
    executable = mj.jit(lambda *a: ops.lstm(*a)[0]).compile(x, w_ih, w_hh, specialize="shapes")
    (loop,) = [s for s in executable.plan.steps if hasattr(s, "rows")]
    assert [at is not None for at in loop.rows] == [False, False, True]
    with_gradient = mj.jit(mj.grad(lambda *a: ops.lstm(*a)[0].sum())).compile(
        x, w_ih, w_hh, specialize="shapes"
    )
    loops = [s for s in with_gradient.plan.steps if hasattr(s, "rows")]
    assert len(loops) == 2


# ---- refusals ----


@pytest.mark.parametrize(
    ("change", "options", "slug", "words"),
    [
        ({0: np.zeros((3, 2, 4))}, {}, "no-f64", "`x`"),
        ({0: np.zeros((3, 2, 4), np.int32)}, {}, "op-dtype", "int32"),
        ({1: np.zeros((20, 4), np.float16)}, {}, "op-dtype", "float16"),
        ({0: np.zeros((3, 4), F)}, {}, "op-shape", "three axes"),
        ({1: np.zeros((20, 5), F)}, {}, "op-shape", "(20, 5)"),
        ({2: np.zeros((20, 4), F)}, {}, "op-shape", "`w_ih`"),
        ({3: np.zeros(5, F)}, {}, "op-shape", "`b_ih`"),
        ({4: np.zeros(5, F)}, {}, "op-shape", "`b_hh`"),
        ({5: np.zeros((3, 5), F)}, {}, "op-shape", "`h0`"),
        ({6: np.zeros((2, 2, 5), F)}, {}, "op-shape", "`c0`"),
        ({1: None}, {}, "op-shape", "without `w_ih`"),
        ({1: (np.zeros((20, 4), F),) * 2}, {}, "op-shape", "bidirectional"),
        ({}, {"bidirectional": True}, "op-shape", "(2, 20, 4)"),
        ({}, {"gates": "ifg"}, "op-argument", "'ifg'"),
    ],
)
def test_what_makes_no_sense_is_refused(change: Any, options: Any, slug: str, words: str) -> None:
    args = arguments("lstm", 3, 2, 4, 5)
    for k, value in change.items():
        args[k] = value
    with pytest.raises(mj.MetaljitError) as caught:
        ops.lstm(*args, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def test_other_names_are_refused() -> None:
    args = arguments("rnn", 3, 2, 4, 5)
    wrong: list[tuple[Any, dict[str, Any]]] = [(ops.rnn, {"activation": "gelu"}), (ops.gru, {"gates": "xyz"})]
    for op, options in wrong:
        with pytest.raises(mj.LaunchFault):
            op(*args, **options)


def test_a_planted_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    new = recurrence.Cell.new

    def forgetful(self: Any, sums: Any, inputs: Any, state: Any) -> Any:
        return new(self, sums, inputs, [state[0], *(0.99 * s for s in state[1:])])

    monkeypatch.setattr(recurrence.Cell, "new", forgetful)
    monkeypatch.setattr(_run, "_made", {})
    monkeypatch.setattr(_run, "_last", None)
    with pytest.raises(AssertionError):
        test_values_and_gradients("cpu", "lstm")
