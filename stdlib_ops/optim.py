"""Steps of gradient descent over all parameters of a model.

In: parameters, their derivatives, and what the optimiser remembers: nested dicts, lists, tuples and dataclasses of arrays,
all of the structure of the parameters. Out: the like, after the step; nothing is changed in place. A step is one call, in
which each array takes one kernel that reads and writes everything once. Formulas and defaults are PyTorch's.

A state is a dict of such structures, in float32 for 16-bit parameters too; None is the state before the first step. A loop
of `mj.for_loop`, which needs a state to start from, takes `optimizer_state`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.graph import trees
from metaljit.lang import f32, i32
from metaljit.stdlib_ops import optim_steps as steps
from metaljit.stdlib_ops.operands import FLOATS, check_array, is_traced, number, refuse

Tree = Any  # nested containers of arrays
State = dict[str, Any]
Stepped = tuple[Tree, State]

SLOTS = {
    "momentum": ("velocity",),
    "adam": ("mean", "square"),
    "adadelta": ("square", "step_square"),
    "rmsprop": ("square",),
}
OPTIONS = {
    "amsgrad": ("adam", "square_max"),
    "centered": ("rmsprop", "mean"),
    "momentum": ("rmsprop", "velocity"),
}
COUNTED = ("adam",)  # those whose state has the number of steps


def optimizer_state(optimizer: str, params: Tree, **options: bool) -> State:
    """The state of an optimiser before its first step: zeros of the structure and shapes of the parameters.

    optimizer: "momentum", "adam", "adadelta" or "rmsprop".
    params: nested containers of arrays; the state is on the device on which these are.
    options: what makes the state larger, where the steps will have it: amsgrad of adam, centered and momentum of rmsprop.

    Returns a dict with an entry for each thing that is remembered of a parameter, in float32; and of adam `step`, an int32.
    Raises TypeFault for parameters that are no arrays of floats, LaunchFault for another optimiser or option.
    Compare: PyTorch `optimizer.state`; TensorFlow `optimizer.build`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.optimizer_state("momentum", {"w": np.ones(3, np.float32)})
        {'velocity': {'w': array([0., 0., 0.], dtype=float32)}}
    """
    if optimizer not in SLOTS:
        refuse(
            "optimizer_state",
            f"there is no optimiser {optimizer!r} with a state",
            f"there are {', '.join(SLOTS)}",
        )
    for name in options:
        if OPTIONS.get(name, ("", ""))[0] != optimizer:
            refuse("optimizer_state", f"{optimizer} has no option {name!r} that changes its state")
    leaves, structure = _flat("optimizer_state", "params", params)
    extra = tuple(OPTIONS[name][1] for name, value in options.items() if value)
    state: State = {
        slot: trees.rebuilt(structure, iter([_zeros(x) for x in leaves]))
        for slot in (*SLOTS[optimizer], *extra)
    }
    return {**state, "step": np.int32(0)} if optimizer in COUNTED else state


def _zeros(x: Any) -> Any:
    if is_traced(x):
        return np.zeros_like(x, dtype=np.float32)
    made = np.zeros(x.shape, np.float32)
    return mj.asarray(made, device=x.device) if isinstance(x, mj.Array) else made


# ---- steps ----


def sgd(params: Tree, grads: Tree, *, lr: Any, weight_decay: float = 0.0) -> Tree:
    """One step of gradient descent: `p - lr * (g + weight_decay * p)`.

    params, grads: nested containers of arrays of float16, bfloat16 or float32, of one structure and equal shapes.
    lr: a number, or an array of no axes.

    Returns the parameters after the step.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other structures and
    numbers that make no sense.
    Compare: MPSGraph `stochasticGradientDescent`; PyTorch `optim.SGD`; TensorFlow `tf.keras.optimizers.SGD`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w, g = np.array([1, 2], np.float32), np.array([0.5, 0], np.float32)
        >>> ops.sgd({"w": w}, {"w": g}, lr=0.1)
        {'w': array([0.95, 2.  ], dtype=float32)}
    """
    _check("sgd", params, grads, {}, lr)
    return steps.sgd(params, grads, lr, _decay("sgd", weight_decay))


def momentum(
    params: Tree,
    grads: Tree,
    state: State | None = None,
    *,
    lr: Any,
    momentum: float = 0.9,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> Stepped:
    """One step of gradient descent with momentum: `velocity = momentum * velocity + g`, then `p - lr * velocity`.

    params, grads: as in `sgd`; weight decay adds `weight_decay * p` to the derivative.
    state: what the step before gave, with `velocity`; None before the first one.
    nesterov: the step is `lr * (g + momentum * velocity)`.

    Returns the parameters after the step, and the state.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other structures and
    numbers that make no sense.
    Compare: PyTorch `optim.SGD(momentum=…)`; TensorFlow `tf.raw_ops.ApplyMomentum`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w, g = np.array([1], np.float32), np.array([0.5], np.float32)
        >>> w, state = ops.momentum(w, g, lr=0.1)
        >>> ops.momentum(w, g, state, lr=0.1)
        (array([0.855], dtype=float32), {'velocity': array([0.95], dtype=float32)})
    """
    op = "momentum"
    state = _state(op, params, state)
    _check(op, params, grads, state, lr)
    kept, decay = _share(op, "momentum", momentum), _decay(op, weight_decay)
    found: Stepped = steps.momentum(params, grads, state, lr, kept, decay, bool(nesterov))
    return found


def adam(
    params: Tree,
    grads: Tree,
    state: State | None = None,
    *,
    lr: Any = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    amsgrad: bool = False,
) -> Stepped:
    """One step of Adam, or of AdamW.

    With t steps, this one counted: `mean = b1 * mean + (1 - b1) * g`, `square = b2 * square + (1 - b2) * g²`, then
    `p - lr * (mean / (1 - b1**t)) / (sqrt(square / (1 - b2**t)) + eps)`. TensorFlow and MPSGraph have `eps` beside the root
    of the square that is not corrected, so that it acts as `eps / sqrt(1 - b2**t)` does here.

    params, grads: as in `sgd`.
    state: what the step before gave, with `mean`, `square` and `step`; None before the first one.
    weight_decay: `weight_decay * p` is added to the derivative; or if `decoupled` (AdamW), `lr * weight_decay * p` is taken
        from the parameter.
    amsgrad: the largest square so far divides, which the state has as `square_max`.

    Returns the parameters after the step, and the state.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other structures and
    numbers that make no sense.
    After Kingma, Ba, Adam, 2014; Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2017.
    Compare: MPSGraph `adam`; PyTorch `optim.Adam`, `optim.AdamW`; TensorFlow `tf.raw_ops.ApplyAdam`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w, state = np.array([1], np.float32), None
        >>> for _ in range(2):
        ...     w, state = ops.adam(w, 2 * w, state, lr=0.1)
        >>> w.round(4), int(state["step"])
        (array([0.8004], dtype=float32), 2)
    """
    op = "adam"
    state = _state(op, params, state, amsgrad=amsgrad)
    _check(op, params, grads, state, lr)
    if not isinstance(betas, Sequence) or len(betas) != 2:
        refuse(op, f"`betas` takes two numbers and got {betas!r}")
    shares = [_share(op, "betas", b) for b in betas]
    # Computed here, in double precision: 1 - 0.999 in f32 has four digits.
    (_, *first), second = [(b, 1 - b, log(b) if b else -inf) for b in shares]
    least, decay = number(op, "eps", eps, lambda v: v >= 0, "at least 0"), _decay(op, weight_decay)
    found: Stepped = steps.adam(params, grads, state, lr, tuple(first), second, least, decay, bool(decoupled))
    return found


def adadelta(
    params: Tree,
    grads: Tree,
    state: State | None = None,
    *,
    lr: Any = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
) -> Stepped:
    """One step of Adadelta: `square = rho * square + (1 - rho) * g²`,
    `d = sqrt(step_square + eps) / sqrt(square + eps) * g`, `step_square = rho * step_square + (1 - rho) * d²`, then
    `p - lr * d`.

    params, grads: as in `sgd`; weight decay adds `weight_decay * p` to the derivative.
    state: what the step before gave, with `square` and `step_square`; None before the first one.

    Returns the parameters after the step, and the state.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other structures and
    numbers that make no sense.
    After Zeiler, ADADELTA, 2012.
    Compare: PyTorch `optim.Adadelta`; TensorFlow `tf.raw_ops.ApplyAdadelta`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w, g = np.array([1], np.float32), np.array([0.5], np.float32)
        >>> w, state = ops.adadelta(w, g, rho=0.95)
        >>> w.round(6), state["square"]
        (array([0.995528], dtype=float32), array([0.0125], dtype=float32))
    """
    op = "adadelta"
    state = _state(op, params, state)
    _check(op, params, grads, state, lr)
    share, least = _share(op, "rho", rho), number(op, "eps", eps, lambda v: v >= 0, "at least 0")
    found: Stepped = steps.adadelta(
        params, grads, state, lr, (share, 1 - share), least, _decay(op, weight_decay)
    )
    return found


def rmsprop(
    params: Tree,
    grads: Tree,
    state: State | None = None,
    *,
    lr: Any = 0.01,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
) -> Stepped:
    """One step of RMSProp: `square = alpha * square + (1 - alpha) * g²`, then `p - lr * g / (sqrt(square) + eps)`.

    params, grads: as in `sgd`; weight decay adds `weight_decay * p` to the derivative.
    state: what the step before gave, with `square`; None before the first one.
    momentum: if not 0, `velocity = momentum * velocity + g / (…)`, which the state has too, is what `lr` multiplies.
    centered: the square of the mean derivative, which the state has as `mean`, is taken from `square` under the root.

    Returns the parameters after the step, and the state.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other structures and
    numbers that make no sense.
    After Tieleman, Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012.
    Compare: PyTorch `optim.RMSprop`; TensorFlow `tf.raw_ops.ApplyRMSProp`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w, g = np.array([1], np.float32), np.array([0.5], np.float32)
        >>> w, state = ops.rmsprop(w, g)
        >>> w.round(4), state["square"].round(4)
        (array([0.9], dtype=float32), array([0.0025], dtype=float32))
    """
    op = "rmsprop"
    state = _state(op, params, state, centered=centered, momentum=momentum != 0)
    _check(op, params, grads, state, lr)
    share, least = _share(op, "alpha", alpha), number(op, "eps", eps, lambda v: v >= 0, "at least 0")
    kept = _share(op, "momentum", momentum) or None
    found: Stepped = steps.rmsprop(
        params, grads, state, lr, (share, 1 - share), least, _decay(op, weight_decay), kept
    )
    return found


# ---- checks ----


def _flat(op: str, name: str, tree: Tree) -> tuple[list[Any], Any]:
    leaves, structure = trees.flatten(tree, name)
    for path, leaf in leaves:
        check_array(op, path, leaf, FLOATS, "floats")
    return [leaf for _, leaf in leaves], structure


def _state(op: str, params: Tree, state: State | None, **options: bool) -> State:
    """The state, which has the entries that these options make."""
    if state is None:
        return optimizer_state(op, params, **options)
    wanted = {
        *SLOTS[op],
        *(OPTIONS[n][1] for n, v in options.items() if v),
        *(("step",) if op in COUNTED else ()),
    }
    if not isinstance(state, dict) or set(state) != wanted:
        found = sorted(state) if isinstance(state, dict) else type(state).__name__
        refuse(
            op,
            f"`state` is a dict with {sorted(wanted)}, and has {found}",
            "pass what the step before gave, or None",
        )
    return state


def _check(op: str, params: Tree, grads: Tree, state: State, lr: Any) -> None:
    """Refuses what is not of the structure and shapes of the parameters."""
    leaves, structure = _flat(op, "params", params)
    if not leaves:
        refuse(op, "`params` has no arrays")
    for name, tree in {"grads": grads, **{f"state.{n}": v for n, v in state.items() if n != "step"}}.items():
        others, like = _flat(op, name, tree)
        if like != structure:
            refuse(op, f"`{name}` does not have the structure of `params`")
        for a, b in zip(leaves, others, strict=True):
            if len(a.shape) != len(b.shape) or any(m != n for m, n in zip(a.shape, b.shape, strict=True)):
                refuse(op, f"`{name}` has an array of shape {tuple(b.shape)}, where `params` has one of {tuple(a.shape)}",
                       "", "op-shape", mj.ShapeError)  # fmt: skip
    if "step" in state:
        check_array(op, "state.step", state["step"], (i32,), "the number of steps as an int32")
    if not hasattr(lr, "dtype"):
        number(op, "lr", lr, lambda v: 0 <= v < inf, "a number of at least 0")
    elif len(lr.shape):
        refuse(op, f"`lr` is a number, or an array of no axes, and has shape {tuple(lr.shape)}", "", "op-shape",
               mj.ShapeError)  # fmt: skip
    else:
        check_array(op, "lr", lr, (f32,), "a float32")


def _share(op: str, name: str, value: Any) -> float:
    return number(op, name, value, lambda v: 0 <= v < 1, "a number from 0 to less than 1")


def _decay(op: str, value: Any) -> float | None:
    """The weight decay; None if there is none."""
    return number(op, "weight_decay", value, lambda v: 0 <= v < inf, "a number of at least 0") or None
