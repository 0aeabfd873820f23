"""What an optimiser's step computes, traced over all parameters at once.

In: nested containers of arrays, and numbers that are passed at run time, so that another rate compiles nothing; None is a
weight decay or a momentum that there is not. Out: the parameters after the step, and the state. Nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.graph import trees

Tree = Any  # nested containers of arrays
State = dict[str, Any]


def _stepped(
    params: Tree, grads: Tree, state: Mapping[str, Tree], update: Callable[..., tuple[Any, dict[str, Any]]]
) -> tuple[Tree, State]:
    """`update(p, g, slots)` for each parameter, in f32: the parameter and the slots after the step."""
    leaves, structure = trees.flatten(params)
    slopes = [g for _, g in trees.flatten(grads)[0]]
    slots = {name: [v for _, v in trees.flatten(tree)[0]] for name, tree in state.items()}
    after = []
    made: dict[str, list[Any]] = {name: [] for name in slots}
    for k, ((_, p), g) in enumerate(zip(leaves, slopes, strict=True)):
        found, new = update(p.astype(np.float32), g.astype(np.float32), {n: v[k] for n, v in slots.items()})
        after.append(found.astype(p.dtype))
        for name, value in new.items():
            made[name].append(value)
    rebuilt = {name: trees.rebuilt(structure, iter(values)) for name, values in made.items()}
    return trees.rebuilt(structure, iter(after)), rebuilt


def _decayed(p: Any, g: Any, decay: Any) -> Any:
    return g if decay is None else g + decay * p


@mj.jit
def sgd(params: Tree, grads: Tree, lr: Any, decay: Any) -> Tree:
    return _stepped(params, grads, {}, lambda p, g, _: (p - lr * _decayed(p, g, decay), {}))[0]


@mj.jit(static=["nesterov"])
def momentum(
    params: Tree, grads: Tree, state: State, lr: Any, momentum: Any, decay: Any, nesterov: bool
) -> tuple[Tree, State]:
    def update(p: Any, g: Any, slots: State) -> tuple[Any, State]:
        g = _decayed(p, g, decay)
        velocity = momentum * slots["velocity"] + g
        return p - lr * (g + momentum * velocity if nesterov else velocity), {"velocity": velocity}

    return _stepped(params, grads, state, update)


@mj.jit(static=["decoupled"])
def adam(
    params: Tree,
    grads: Tree,
    state: State,
    lr: Any,
    first: Any,
    second: Any,
    eps: Any,
    decay: Any,
    decoupled: bool,
) -> tuple[Tree, State]:
    """`first` has 1 - beta and the logarithm of beta, `second` has its beta before these."""
    (c1, log1), (b2, c2, log2) = first, second
    step = state["step"] + 1
    t = step.astype(np.float32)
    rate = lr / -np.expm1(t * log1)
    scale = 1 / np.sqrt(-np.expm1(t * log2))

    def update(p: Any, g: Any, slots: State) -> tuple[Any, State]:
        if decoupled and decay is not None:
            p = p * (1 - lr * decay)
        elif decay is not None:
            g = g + decay * p
        mean = slots["mean"] + c1 * (g - slots["mean"])
        square = b2 * slots["square"] + c2 * (g * g)
        new = {"mean": mean, "square": square}
        if "square_max" in slots:
            new["square_max"] = square = np.maximum(slots["square_max"], square)
        return p - rate * mean / (np.sqrt(square) * scale + eps), new

    after, made = _stepped(params, grads, {n: v for n, v in state.items() if n != "step"}, update)
    return after, {**made, "step": step}


@mj.jit
def adadelta(
    params: Tree, grads: Tree, state: State, lr: Any, share: Any, eps: Any, decay: Any
) -> tuple[Tree, State]:
    rho, rest = share

    def update(p: Any, g: Any, slots: State) -> tuple[Any, State]:
        g = _decayed(p, g, decay)
        square = rho * slots["square"] + rest * (g * g)
        d = np.sqrt(slots["step_square"] + eps) / np.sqrt(square + eps) * g
        return p - lr * d, {"square": square, "step_square": rho * slots["step_square"] + rest * (d * d)}

    return _stepped(params, grads, state, update)


@mj.jit
def rmsprop(
    params: Tree, grads: Tree, state: State, lr: Any, share: Any, eps: Any, decay: Any, momentum: Any
) -> tuple[Tree, State]:
    alpha, rest = share

    def update(p: Any, g: Any, slots: State) -> tuple[Any, State]:
        g = _decayed(p, g, decay)
        new = {"square": alpha * slots["square"] + rest * (g * g)}
        under = new["square"]
        if "mean" in slots:
            new["mean"] = slots["mean"] + rest * (g - slots["mean"])
            under = under - new["mean"] * new["mean"]
        d = g / (np.sqrt(under) + eps)
        if momentum is not None:
            new["velocity"] = d = momentum * slots["velocity"] + d
        return p - lr * d, new

    return _stepped(params, grads, state, update)
