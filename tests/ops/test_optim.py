"""The optimisers against NumPy in float64 and against PyTorch: many steps over nested parameters, in loops, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import Array

import metaljit as mj
from metaljit.stdlib_ops.reference import optim as reference

F = np.float32
STEPS = 5


def arrays(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape), F) for shape in ((3, 4), (5,), ())]


def slopes(step: int) -> list[Array]:
    """Of many sizes, so that what each optimiser remembers counts."""
    return [F(10.0 ** (step % 3 - 1)) * g for g in arrays(100 + step)]


def nested(leaves: list[Array]) -> Any:
    return {"layer": [leaves[0], leaves[1]], "scale": leaves[2]}


def leaves_of(tree: Any) -> list[Any]:
    return [*tree["layer"], tree["scale"]]


CASES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("sgd", {"lr": 0.1, "weight_decay": 0.01}, "SGD", {}),
    ("momentum", {"lr": 0.1}, "SGD", {"momentum": 0.9}),
    ("momentum", {"lr": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1}, "SGD", {}),
    ("adam", {}, "Adam", {}),
    (
        "adam",
        {"lr": 0.1, "betas": (0.8, 0.99), "eps": 1e-4, "weight_decay": 0.1, "amsgrad": True},
        "Adam",
        {},
    ),
    ("adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled": True}, "AdamW", {}),
    ("adadelta", {"weight_decay": 0.1}, "Adadelta", {}),
    ("adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3}, "Adadelta", {}),
    ("rmsprop", {}, "RMSprop", {}),
    (
        "rmsprop",
        {"lr": 0.1, "alpha": 0.9, "centered": True, "momentum": 0.5, "weight_decay": 0.1},
        "RMSprop",
        {},
    ),
]


def trained(name: str, options: dict[str, Any]) -> Any:
    params, state = nested(arrays(0)), None
    for step in range(STEPS):
        op = getattr(mj.ops, name)
        if name == "sgd":
            params = op(params, nested(slopes(step)), **options)
        else:
            params, state = op(params, nested(slopes(step)), state, **options)
    return params, state


@pytest.mark.parametrize(("name", "options"), [case[:2] for case in CASES])
def test_steps(device: str, name: str, options: dict[str, Any]) -> None:
    params, state = trained(name, options)
    for k, (got, start) in enumerate(zip(leaves_of(params), arrays(0), strict=True)):
        grads = [slopes(step)[k].astype(np.float64) for step in range(STEPS)]
        want = getattr(reference, name)(start.astype(np.float64), grads, **options)
        assert (type(got), got.dtype, got.shape) == (np.ndarray, F, start.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    if name == "adam":
        assert state["step"] == STEPS


@pytest.mark.parametrize(("name", "options", "other", "more"), CASES)
def test_steps_are_those_of_pytorch(
    name: str, options: dict[str, Any], other: str, more: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    params, _ = trained(name, options)
    tensors = [torch.tensor(p, requires_grad=True) for p in arrays(0)]
    known = {k: v for k, v in options.items() if k != "decoupled"}
    optimiser = getattr(torch.optim, other)(tensors, **known, **more)
    for step in range(STEPS):
        for tensor, g in zip(tensors, slopes(step), strict=True):
            tensor.grad = torch.tensor(g)
        optimiser.step()
    for got, tensor in zip(leaves_of(params), tensors, strict=True):
        np.testing.assert_allclose(got, tensor.detach().numpy(), rtol=2e-5, atol=1e-6)


def test_worked_examples(device: str) -> None:
    """One parameter of 1 with the derivative 0.5, two steps: numbers of TensorFlow's optimisers."""
    w, g = np.ones(1, F), np.full(1, 0.5, F)

    def after(step: Callable[..., Any], **options: Any) -> tuple[float, Any]:
        p, state = step(*step(w, g, **options)[:1], g, step(w, g, **options)[1], **options)
        return float(p[0]), state

    p, state = after(mj.ops.momentum, lr=0.1)
    assert (p, state["velocity"][0]) == pytest.approx((0.855, 0.95))
    assert after(mj.ops.momentum, lr=0.1, nesterov=True)[0] == pytest.approx(0.7695)
    p, state = after(mj.ops.adam, lr=0.1)
    assert (p, state["mean"][0], state["square"][0]) == pytest.approx((0.8, 0.095, 4.9975e-4), rel=1e-5)
    p, state = after(mj.ops.adadelta, rho=0.95)
    assert (p, state["square"][0]) == pytest.approx((0.9909992, 0.024375), rel=1e-6)
    assert state["step_square"][0] == pytest.approx(1.975482e-6, rel=1e-5)
    assert mj.ops.sgd(w, g, lr=0.1)[0] == pytest.approx(0.95)


def test_a_loop_on_the_device(device: str) -> None:
    """Both parts of a line, found in one call; a rate that falls with the turns is an array."""

    @mj.jit
    def fitted(line: Any, x: Any, y: Any) -> Any:
        def error(line: Any) -> Any:
            return ((line["slope"] * x + line["height"] - y) ** 2).mean()

        def step(turn: Any, both: Any) -> Any:
            line, state = both
            rate = 0.3 / (1 + turn.astype(F) / 100)
            return mj.ops.adam(line, mj.grad(error)(line), state, lr=rate)

        return mj.for_loop(300, step, (line, mj.ops.optimizer_state("adam", line)))

    x = np.linspace(-1, 1, 50, dtype=F)
    line, state = fitted({"slope": np.float32(0), "height": np.float32(0)}, x, 3 * x - 2)
    assert (line["slope"], line["height"]) == pytest.approx((3, -2), abs=1e-3)
    assert state["step"] == 300


def test_each_array_is_read_and_written_in_one_kernel() -> None:
    params = {"w": np.ones((40, 30), F), "b": np.ones(30, F)}
    state = mj.ops.optimizer_state("adam", params)
    step = mj.jit(lambda p, g, s: mj.ops.adam(p, g, s))
    found = str(step.explain(params, params, state))
    assert "3 kernels" in found.splitlines()[0]  # the factors of the step number have one
    momentum = mj.jit(lambda p, g, s: mj.ops.momentum(p, g, s, lr=0.1))
    found = str(momentum.explain(params, params, {"velocity": params}))
    assert "2 kernels" in found.splitlines()[0]


def test_16_bit_parameters_have_a_state_of_32(device: str) -> None:
    w = np.ones(3, np.float16)
    got, state = mj.ops.adam(w, np.full(3, 1e-4, np.float16), lr=0.1)
    assert (got.dtype, state["square"].dtype) == (np.float16, F)
    np.testing.assert_allclose(got.astype(F), 0.9, rtol=1e-3)
    assert state["square"][0] == pytest.approx(1e-11, rel=1e-2)


def test_arrays_on_the_device_stay_there(device: str) -> None:
    w, g = mj.asarray(np.ones(3, F)), mj.asarray(np.ones(3, F))
    state = mj.ops.optimizer_state("rmsprop", [w], momentum=True)
    assert {k: type(v[0]) for k, v in state.items()} == {"square": mj.Array, "velocity": mj.Array}
    (w,), state = mj.ops.rmsprop([w], [g], state, momentum=0.5)
    assert isinstance(w, mj.Array)
    assert w.device.name == device
    empty = np.zeros((0, 2), F)
    assert mj.ops.sgd(empty, empty, lr=1).shape == (0, 2)


W = np.ones(3, F)


@pytest.mark.parametrize(
    ("op", "args", "options", "slug", "words"),
    [
        ("sgd", (np.ones(3), np.ones(3)), {"lr": 1}, "no-f64", "float64"),
        ("sgd", (W, W.astype(np.int8)), {"lr": 1}, "op-dtype", "`grads`"),
        ("sgd", ({"w": 1.0}, {"w": W}), {"lr": 1}, "op-dtype", "`params.w`"),
        ("sgd", ([W], [W[:2]]), {"lr": 1}, "op-shape", "(2,)"),
        ("sgd", ([W], {"w": W}), {"lr": 1}, "op-argument", "structure"),
        ("sgd", ([], []), {"lr": 1}, "op-argument", "no arrays"),
        ("sgd", (W, W), {"lr": -1}, "op-argument", "`lr`"),
        ("sgd", (W, W), {"lr": W}, "op-shape", "`lr`"),
        ("sgd", (W, W), {"lr": 1, "weight_decay": -1}, "op-argument", "`weight_decay`"),
        ("momentum", (W, W, {"speed": W}), {"lr": 1}, "op-argument", "velocity"),
        ("momentum", (W, W, {"velocity": W[:2]}), {"lr": 1}, "op-shape", "`state.velocity`"),
        ("momentum", (W, W), {"lr": 1, "momentum": 1}, "op-argument", "`momentum`"),
        ("adam", (W, W), {"betas": 0.9}, "op-argument", "two numbers"),
        ("adam", (W, W), {"betas": (0.9, 1)}, "op-argument", "`betas`"),
        ("adam", (W, W, {"mean": W, "square": W, "step": F(1)}), {}, "op-dtype", "`state.step`"),
        (
            "adam",
            (W, W, {"mean": W, "square": W, "step": np.int32(1)}),
            {"amsgrad": True},
            "op-argument",
            "max",
        ),
        ("adadelta", (W, W), {"rho": -0.1}, "op-argument", "`rho`"),
        ("rmsprop", (W, W), {"eps": "x"}, "op-argument", "`eps`"),
        ("optimizer_state", ("lion", W), {}, "op-argument", "'lion'"),
        ("optimizer_state", ("adam", W), {"centered": True}, "op-argument", "'centered'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    op: str, args: tuple[Any, ...], options: dict[str, Any], slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        getattr(mj.ops, op)(*args, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)
