"""Recurrent cells, and the walk of one along a sequence with its gradient.

In: a cell, what it gets from the sequence at each step, weights of the state before, and states. Out: the states. All of
it is traced: the steps are turns of a loop on the device. For the gradient the walk keeps what went into the gates at each
step, and goes back along it once; what the weights get is one matrix product at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import metaljit as mj
from metaljit.frozen import frozen

Traced: TypeAlias = Any
Several: TypeAlias = "list[Traced]"

# ---- activations ----


def sigmoid(x: Traced) -> Traced:
    """By tanh, whose derivative is nowhere infinity times 0."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


ACTIVATIONS: dict[str, Callable[[Traced], Traced]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "none": lambda x: x,
}

# ---- cells ----


@frozen
class Phase:
    """Gates whose products with the weights are computed at once: of the state before, if `reset`, as far as the reset
    gate lets it through."""

    blocks: tuple[int, ...]
    reset: bool = False


@frozen
class Cell:
    """A kind of cell. `order` names the blocks of the weights by the gates' letters.

    A gate gets the sum of what comes from the sequence and from the state; those in `apart` get both.
    """

    kind: str
    order: str
    phases: tuple[Phase, ...]
    apart: tuple[int, ...] = ()
    activation: str = "tanh"
    flipped: bool = False

    def new(self, sums: Several, inputs: Several, state: Several) -> Several:
        """The state after a step. `inputs` are those of the gates in `apart`, whose `sums` are the products alone."""
        z = dict(zip(self.order, sums, strict=True))
        if self.kind == "lstm":
            c = sigmoid(z["f"]) * state[1] + sigmoid(z["i"]) * np.tanh(z["g"])
            return [sigmoid(z["o"]) * np.tanh(c), c]
        if self.kind == "rnn":
            return [ACTIVATIONS[self.activation](sums[0])]
        keep, reset = sigmoid(z["z"]), sigmoid(z["r"])
        new = np.tanh(inputs[0] + reset * z["n"] if inputs else z["n"])
        old, new = (new, state[0]) if self.flipped else (state[0], new)
        return [new + keep * (old - new)]

    def left(self, phase: Phase, sums: Sequence[Traced | None], state: Several) -> Traced:
        """What is multiplied with the weights of a phase."""
        return sigmoid(sums[self.order.index("r")]) * state[0] if phase.reset else state[0]


def rnn_cell(activation: str) -> Cell:
    return Cell("rnn", "h", (Phase((0,)),), activation=activation)


def lstm_cell(order: str) -> Cell:
    return Cell("lstm", order, (Phase((0, 1, 2, 3)),))


def gru_cell(order: str, reset_after: bool, flipped: bool) -> Cell:
    n = order.index("n")
    if reset_after:
        return Cell("gru", order, (Phase((0, 1, 2)),), (n,), flipped=flipped)
    first = tuple(k for k in range(3) if k != n)
    return Cell("gru", order, (Phase(first), Phase((n,), reset=True)), flipped=flipped)


# ---- the walk ----


@frozen
class Walk:
    """A cell, and the direction in which it goes along a sequence. The gates `biased` have a bias of their product."""

    cell: Cell
    reverse: bool
    biased: tuple[int, ...] = ()

    def __call__(
        self, inputs: Traced, weights: Traced, bias: Traced, states: Several
    ) -> tuple[Traced, Several]:
        """The first state after each step (T, N, H), and the last states, each (N, H).

        inputs: (T, N, blocks, H), weights: (blocks, H, H), bias: (blocks that are `biased`, H), or () where none is,
        states: before the first step.
        """

        def forward(inputs: Traced, weights: Traced, bias: Traced, states: Several) -> Any:
            value, kept = self._forward(inputs, weights, bias, states)
            return value, (inputs, weights, states, value[0], *kept)

        rule = mj.custom_vjp(lambda *args: self._forward(*args)[0])
        rule.defvjp(forward, lambda kept, found: self._backward(*kept, *found))
        return rule(inputs, weights, bias, list(states))  # type: ignore[no-any-return]

    def _place(self, turn: Traced, count: Traced) -> Traced:
        return count - 1 - turn if self.reverse else turn

    def _forward(self, inputs: Traced, weights: Traced, bias: Traced, states: Several) -> Any:
        cell, count = self.cell, inputs.shape[0]
        blocks = range(len(cell.order))
        across = mj.stop_gradient(
            weights.swapaxes(1, 2)
        )  # as an array: each turn reads all of it, along its rows

        def turn(j: Traced, value: Any) -> Any:
            state, first, others, sums = value
            t = self._place(j, count)
            parts = [inputs[t, :, b] for b in blocks]
            found: list[Traced | None] = [None] * len(parts)
            for phase in cell.phases:
                left = cell.left(phase, found, state)
                for b in phase.blocks:
                    found[b] = left @ across[b]
                    if b in self.biased:
                        found[b] = found[b] + bias[self.biased.index(b)]
                    if b not in cell.apart:
                        found[b] = parts[b] + found[b]
            new = cell.new(found, [parts[b] for b in cell.apart], state)
            rows = zip([first, *others, *sums], [*new, *found], strict=True)
            filled = [array.at[t].set(row) for array, row in rows]
            return new, filled[0], filled[1 : len(new)], filled[len(new) :]

        empty = np.zeros_like(inputs[:, :, 0])
        start = states, empty, [empty] * (len(states) - 1), [empty for _ in blocks]
        last, first, others, sums = mj.for_loop(count, turn, start)
        return (first, last), (others, sums)

    def _backward(
        self, inputs: Traced, weights: Traced, states: Several, first: Traced, others: Several, sums: Several,
        by_first: Traced, by_last: Several,
    ) -> tuple[Any, ...]:  # fmt: skip
        cell, (count, rows, _, size) = self.cell, inputs.shape
        blocks, seen = range(len(cell.order)), [first, *others]

        def turn(j: Traced, value: Any) -> Any:
            by_state, by_sums, by_inputs = value
            j = count - 1 - j
            t, back = self._place(j, count), self._place(j - 1, count)
            before = [np.where(j == 0, s, x[back]) for s, x in zip(states, seen, strict=True)]
            known = [z[t] for z in sums]
            _, pull = mj.vjp(cell.new, known, [inputs[t, :, b] for b in cell.apart], before)
            by_known, by_apart, by_before = pull([by_state[0] + by_first[t], *by_state[1:]])
            for phase in reversed(cell.phases):
                across = np.concatenate([by_known[b] for b in phase.blocks], axis=1)
                by_left = across @ _rows(weights, phase.blocks)
                _, pull = mj.vjp(lambda s, h, phase=phase: cell.left(phase, s, h), known, before)
                more, by_more = pull(by_left)
                if phase.reset:
                    by_known = [a + b for a, b in zip(by_known, more, strict=True)]
                by_before = [by_before[0] + by_more[0], *by_before[1:]]
            by_sums = [x.at[t].set(row) for x, row in zip(by_sums, by_known, strict=True)]
            by_inputs = [x.at[t].set(row) for x, row in zip(by_inputs, by_apart, strict=True)]
            return by_before, by_sums, by_inputs

        empty = np.zeros_like(first)
        start = by_last, [empty for _ in blocks], [empty] * len(cell.apart)
        by_states, by_sums, by_apart = mj.for_loop(count, turn, start)
        before = [_shifted(s, x, self.reverse) for s, x in zip(states, seen, strict=True)]
        by_weights: list[Traced] = [None for _ in blocks]
        for phase in cell.phases:
            left = cell.left(phase, sums, before).reshape(count * rows, size)
            for b in phase.blocks:
                by_weights[b] = by_sums[b].reshape(count * rows, size).T @ left
        apart = dict(zip(cell.apart, by_apart, strict=True))
        bias = np.stack([by_sums[b].sum(axis=(0, 1)) for b in self.biased]) if self.biased else ()
        by_inputs = np.stack([apart.get(b, by_sums[b]) for b in blocks], axis=2)
        return by_inputs, np.stack(by_weights, axis=0), bias, by_states


def _rows(weights: Traced, blocks: Sequence[int]) -> Traced:
    """The weights of some gates, one behind another."""
    if len(blocks) == weights.shape[0]:
        return weights.reshape(weights.shape[0] * weights.shape[1], weights.shape[2])
    return np.concatenate([weights[b] for b in blocks], axis=0)


def _shifted(start: Traced, rows: Traced, reverse: bool) -> Traced:
    """The states before each step."""
    parts = [rows[1:], start[None]] if reverse else [start[None], rows[:-1]]
    return np.concatenate(parts, axis=0)
