"""Softmax, losses and norms, as PyTorch has them; derivatives by `mj.vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def with_derivatives(case: Case, result: str, f: Callable[..., Any], names: Sequence[str]) -> Results:
    """The value of `f` at the inputs of these names; and `gx` and the like, where the case has them."""
    wanted = [n for n in names if f"g{n}" in case.outputs]
    others = {n: case.inputs.get(n) for n in names if n not in wanted}
    if not wanted:
        yield result, f(**others)
        return
    value, back = mj.vjp(
        lambda *given: f(**others, **dict(zip(wanted, given, strict=True))), *(case.inputs[n] for n in wanted)
    )
    yield result, value
    found = back(case.inputs.get("gy", 1.0))
    yield from ((f"g{n}", g) for n, g in zip(wanted, found, strict=True))


def cross_entropy(case: Case) -> Results:
    options = {n: case.params[n] for n in ("reduction", "ignore_index", "label_smoothing")}
    target, weight = case.inputs["target"], case.inputs.get("weight")
    yield from with_derivatives(
        case, "loss", lambda x: mj.ops.softmax_cross_entropy(x, target, weight=weight, **options), ["x"]
    )


def softmax(case: Case) -> Results:
    op = getattr(mj.ops, case.op)
    yield from with_derivatives(case, "y", lambda x: op(x, case.params["dim"]), ["x"])


def layer_norm(case: Case) -> Results:
    axes = range(-len(case.params["normalized_shape"]), 0)
    eps = case.params["eps"]
    yield from with_derivatives(
        case,
        "y",
        lambda x, weight, bias: mj.ops.layer_norm(x, weight, bias, axes=tuple(axes), eps=eps),
        ["x", "weight", "bias"],
    )


def local_response_norm(case: Case) -> Results:
    p = case.params
    yield from with_derivatives(
        case,
        "y",
        lambda x: mj.ops.local_response_norm(x, p["size"], alpha=p["alpha"], beta=p["beta"], k=p["k"]),
        ["x"],
    )


def batch_norm(case: Case) -> Results:
    mean, variance = (mj.Variable(case.inputs[f"running_{n}0"]) for n in ("mean", "var"))
    options = {n: case.params[n] for n in ("training", "momentum", "eps")}
    run = mj.jit(lambda x, w, b: mj.ops.batch_norm(x, mean, variance, w, b, **options))
    run(case.inputs["x"], case.inputs.get("weight"), case.inputs.get("bias"))
    yield "running_mean", mean.value
    yield "running_var", variance.value
    first, second = case.inputs["running_mean0"], case.inputs["running_var0"]

    def result(x: Any, weight: Any, bias: Any) -> Any:
        found = mj.ops.batch_norm(x, first, second, weight, bias, **options)
        return found[0] if options["training"] else found

    yield from with_derivatives(case, "y", result, ["x", "weight", "bias"])


OPS: dict[tuple[str, str], Call] = {
    ("losses_norms", "cross_entropy"): cross_entropy,
    ("losses_norms", "softmax"): softmax,
    ("losses_norms", "log_softmax"): softmax,
    ("losses_norms", "layer_norm"): layer_norm,
    ("losses_norms", "local_response_norm"): local_response_norm,
    ("losses_norms", "batch_norm"): batch_norm,
}
