"""Gradients of traced functions against central differences of the same functions in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changes import added, changed

import metaljit as mj


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.3, 2, shape).astype(np.float32)


AT: Any = np.array([2, 0, -1, 2], np.int32)
ZEROS = a(3, 4)
ZEROS[0, 1] = ZEROS[1, 2] = ZEROS[2, 2] = 0
Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "operators": (lambda x, y: (x * y + x / y - y**2).sum(), (a(3, 4), a(3, 4, seed=1))),
    "broadcast": (lambda x, y: (x * y).sum() + y.mean(), (a(3, 4), a(4))),
    "stretched": (lambda x, y: (np.exp(x * y) / 9).sum(), (a(3, 1), a(1, 4))),
    "number": (lambda x, k: (x * k).sum() * k, (a(5), np.float32(0.7))),
    "chain": (lambda x: np.tanh(np.sin(x) * np.exp(-x)).sum(), (a(30),)),
    "where": (lambda x: np.where(x > 1, x * x, np.log(x)).sum(), (a(30),)),
    "clip": (lambda x: np.clip(x, 0.5, 1.5).sum() + np.maximum(x, 1).sum(), (a(30),)),
    "views": (lambda x: (x.T[1:, ::2] * x[::-1, 1:][::2].T).sum(), (a(5, 6),)),
    "reshape": (lambda x: (x.reshape(6, 2) * np.arange(12, dtype=np.float32).reshape(6, 2)).sum(), (a(3, 4),)),
    "items": (lambda x: x[1, 2] * x[0, 0] + x[-1].sum(), (a(3, 4),)),
    "concatenate": (lambda x, y: (np.concatenate([x, y, x])[2:] ** 2).sum(), (a(3, 4), a(2, 4))),
    "pad": (lambda x: (np.pad(x, ((1, 2), (0, 1)), mode="reflect") ** 2).sum(), (a(4, 3),)),
    "pad with itself": (lambda x: (np.pad(x, 2, constant_values=3) ** 2).sum(), (a(4),)),
    "set": (lambda x, y: (changed(x, (slice(1, None), 0), y) ** 3).sum(), (a(3, 4), a(2))),
    "add at": (lambda x, y: (added(x, AT, y) ** 2).sum(), (a(3, 4), a(4, 4))),
    "take": (lambda x: (x[AT] * x[:3, 1][AT][:, None]).sum(), (a(3, 4),)),
    "pairs": (lambda x: (x[AT, AT] ** 2).sum(), (a(3, 3),)),
    "sums": (lambda x: (x.sum(axis=0) * x.mean(axis=0)).sum() * x.sum(), (a(3, 4),)),
    "extremes": (lambda x: (x.max(axis=1) * x.min(axis=1)).sum() + x.max(), (a(3, 90),)),
    "products": (lambda x: x.prod(axis=0).sum(), (a(3, 4),)),
    "products with zeros": (lambda x: x.prod(axis=0).sum() + x.prod(axis=1).sum(), (ZEROS,)),
    "variance": (lambda x: x.var(axis=1).sum() + x.std(axis=0, ddof=1).sum(), (a(3, 4),)),
    "softmax": (
        lambda x: (np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True) * x).sum(),
        (a(3, 70),),
    ),
    "choice": (
        lambda x: mj.cond(x.sum() > 1, lambda x: np.sin(x).sum() * 2, lambda x: x.sum(), x),
        (a(5),),
    ),
    "loop of elements": (lambda x, y: mj.for_loop(3, lambda i, v: np.sin(v) * y + i, x * x).sum(), (a(5), a(5, seed=1))),
    "loop of neighbours": (
        lambda x, y: (mj.for_loop(3, lambda i, v: np.roll(v, 1) * y[:, 0] + v * v, x / 2) ** 2).sum(),
        (a(5), a(5, 2, seed=1)),
    ),
    "loop of two": (
        lambda x, y: mj.for_loop(3, lambda i, s: (s[1] * s[1], np.roll(s[0], 1) + s[1] * i), (x / 4, y / 4))[0].sum(),
        (a(4), a(4, seed=1)),
    ),
    "loop without a turn": (lambda x: mj.for_loop(0, lambda i, v: np.roll(v, 1) * v, x).sum(), (a(5),)),
    "choice of elements": (lambda x: (mj.cond(x > 1, lambda: x * x, lambda: x * 3)).sum(), (a(5),)),
}  # fmt: skip


def differences(function: Callable[..., Any], args: tuple[Any, ...], number: int) -> Any:
    """Central differences in float64."""
    wide = [np.asarray(x, np.float64) for x in args]
    found = np.zeros_like(wide[number])
    for at in np.ndindex(found.shape):
        ends = []
        for step in (-1e-4, 1e-4):
            moved = [x.copy() for x in wide]
            moved[number][at] += step
            ends.append(plain(function, *moved))
        found[at] = (ends[1] - ends[0]) / 2e-4
    return found


def plain(function: Callable[..., Any], *args: Any) -> Any:
    if function is CASES["choice of elements"][0]:
        return np.where(args[0] > 1, args[0] ** 2, args[0] * 3).sum()
    return function(*args)


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_the_slope(name: str, device: str) -> None:
    function, args = CASES[name]
    with mj.use_device(device):
        found = mj.grad(function, argnums=tuple(range(len(args))))(*args)
    for k, got in enumerate(found):
        assert got.shape == np.shape(args[k])
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, differences(function, args, k), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_fused_is_unfused_to_the_bit(name: str) -> None:
    function, args = CASES[name]
    made = mj.grad(function)
    fused, alone = mj.jit(made)(*args), mj.jit(fuse=False)(made)(*args)
    assert np.asarray(fused).tobytes() == np.asarray(alone).tobytes()


def test_equal_extremes_share() -> None:
    x = np.array([1, 3, 3, 2, 3], np.float32)
    np.testing.assert_allclose(mj.grad(lambda x: x.max())(x), [0, 1 / 3, 1 / 3, 0, 1 / 3])


def test_half_floats_have_half_gradients() -> None:
    x = a(5).astype(np.float16)
    found = mj.grad(lambda x: (x * x).sum())(x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, 2 * x, rtol=1e-3)


def test_the_second_derivative() -> None:
    x = a(5)
    slope = mj.grad(lambda x: (x**3 + np.sin(x)).sum())
    curve = mj.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(curve(x), 6 * x - np.sin(x), rtol=1e-5)


def test_what_is_captured_is_not_the_argument() -> None:
    x = a(5)

    @mj.jit
    def f(x: Any) -> Any:
        y = x * 2
        return mj.grad(lambda z: (z * y).sum())(y)

    np.testing.assert_allclose(f(x), x * 2)


def test_structures_and_values() -> None:
    params = {"w": a(4), "b": [np.float32(0.5)]}
    x = a(4, seed=2)

    def loss(params: Any, x: Any) -> Any:
        return ((params["w"] * x + params["b"][0]) ** 2).mean()

    value, found = mj.value_and_grad(loss)(params, x)
    assert value == pytest.approx(loss(params, x), rel=1e-5)
    np.testing.assert_allclose(found["w"], 2 * (params["w"] * x + 0.5) * x / 4, rtol=1e-5)
    np.testing.assert_allclose(found["b"][0], (2 * (params["w"] * x + 0.5) / 4).sum(), rtol=1e-5)
    (again, twice), aux = mj.grad(lambda p, x: (loss(p, x), x * 2), (0, 1), has_aux=True)(params, x)
    np.testing.assert_array_equal(again["w"], found["w"])
    np.testing.assert_array_equal(aux, x * 2)
    assert twice.shape == x.shape


def test_inside_jit_and_in_another_function() -> None:
    x = a(6)

    @mj.jit
    def step(x: Any) -> Any:
        return x - 0.1 * mj.grad(lambda x: (x * x).sum())(x)

    np.testing.assert_allclose(step(x), x - 0.2 * x, rtol=1e-6)
    assert "1 kernel\n" in str(step.explain(x))


def test_vjp() -> None:
    x = a(5)
    value, back = mj.vjp(lambda x, y: (x * y, y + 1), x, x * 2)
    np.testing.assert_allclose(value[0], x * x * 2)
    by_x, by_y = back((np.ones(5, np.float32), x))
    np.testing.assert_allclose(by_x, x * 2)
    np.testing.assert_allclose(by_y, x + x)


@mj.custom_vjp
def rounded(x: Any) -> Any:
    return np.rint(x)


rounded.defvjp(lambda x: (np.rint(x), {"x": x}), lambda kept, g: (g * kept["x"],))


def test_a_derivative_by_the_users_word() -> None:
    x = a(9)
    np.testing.assert_array_equal(rounded(x), np.rint(x))
    np.testing.assert_array_equal(mj.jit(rounded)(x), np.rint(x))
    np.testing.assert_allclose(
        mj.grad(lambda x: (rounded(x * 2) * x).sum())(x), np.rint(x * 2) + 4 * x * x, rtol=1e-5
    )


@mj.custom_vjp
def both(x: Any, y: Any) -> Any:
    return {"sum": x + y, "product": x * y}


both.defvjp(
    lambda x, y: ({"sum": x + y, "product": x * y}, (x, y)),
    lambda kept, g: (g["sum"] * 10 + g["product"] * kept[1], None),
)


def test_several_results_of_a_users_derivative() -> None:
    x, y = a(4), a(4, seed=1)
    by_x, by_y = mj.grad(lambda x, y: (both(x, y)["sum"] + both(x, y)["product"]).sum(), (0, 1))(x, y)
    np.testing.assert_allclose(by_x, 10 + y)
    np.testing.assert_array_equal(by_y, 0)
    alone = mj.grad(lambda x: both(x, y)["product"].sum())(x)
    np.testing.assert_allclose(alone, y)


def test_no_derivative_goes_through_a_stop() -> None:
    x = a(4)
    np.testing.assert_allclose(mj.grad(lambda x: (mj.stop_gradient(x * x) * x).sum())(x), x * x)


def test_what_does_not_matter_has_a_gradient_of_zeros() -> None:
    x = a(4)
    np.testing.assert_array_equal(mj.grad(lambda x, y: y.sum())(x, x), np.zeros(4))
    np.testing.assert_array_equal(mj.grad(lambda x: np.floor(x).sum())(x), np.zeros(4))


MISTAKES: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "integers": (mj.grad(lambda x: x.sum()), np.arange(3, dtype=np.int32), "gradient-argument"),
    "an array": (mj.grad(lambda x: x * 2), a(3), "gradient-scalar"),
    "a count": (mj.grad(lambda x: (x > 1).sum()), a(3), "gradient-scalar"),
    "any": (mj.grad(lambda x: (rounded(x) * (x > 1).sum()).sum()), a(3), ""),
    "loop": (
        mj.grad(lambda x: mj.while_loop(lambda v: v < 9, lambda v: v * 2, x).sum()),
        a(3),
        "no-derivative",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str) -> None:
    function, x, slug = MISTAKES[name]
    if not slug:
        function(x)  # an integer on the way is a constant
        return
    with pytest.raises(mj.TypeFault) as caught:
        function(x)
    assert caught.value.slug == slug


def test_a_derivative_of_another_structure() -> None:
    @mj.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (x * 2, ()), lambda kept, g: (g, g))
    with pytest.raises(mj.TypeFault, match="2 derivatives"):
        mj.grad(lambda x: f(x).sum())(a(3))


@mj.jit
def _by_turns(x: Any, by: Any, n: int) -> Any:
    def turned(x: Any, by: Any) -> Any:
        def turn(k: Any, v: Any) -> Any:
            a, b = v
            return np.sin(a[::-1] * by) + b * 0.25, b * 0.5 + a * a * 0.3 + k * 0.01

        a, b = mj.for_loop(n, turn, (x, x * 0.5))
        return (a * a + b).sum()

    return mj.grad(turned, argnums=(0, 1))(x, by)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 64, 97])
def test_a_loop_whose_turns_need_their_values(n: int) -> None:
    """Pieces of 32 turns, of which the last is whole, or not, or there is none."""
    x = a(5) * 0.5
    by_x, by_by = _by_turns(x, np.float32(1.1), n)

    def want(x: Any, by: float) -> float:
        p, q = x, x * 0.5
        for k in range(n):
            p, q = np.sin(p[::-1] * by) + q * 0.25, q * 0.5 + p * p * 0.3 + k * 0.01
        return float((p * p + q).sum())

    wide = x.astype(np.float64)
    step = 1e-6
    for i in range(5):
        up, down = wide.copy(), wide.copy()
        up[i] += step
        down[i] -= step
        np.testing.assert_allclose(
            by_x[i], (want(up, 1.1) - want(down, 1.1)) / (2 * step), rtol=2e-3, atol=2e-4
        )
    np.testing.assert_allclose(
        by_by, (want(wide, 1.1 + step) - want(wide, 1.1 - step)) / (2 * step), rtol=2e-3, atol=2e-3
    )


def test_a_loop_whose_number_of_turns_is_computed() -> None:
    @mj.jit
    def f(x: Any) -> Any:
        count = (x > 1).sum()
        return mj.grad(lambda x: mj.for_loop(count, lambda k, v: v * v[::-1], x).sum())(x)

    x = np.array([1.5, 0.5, 2.0], np.float32)

    def twice(z: Any) -> Any:
        return ((z * z[::-1]) * (z * z[::-1])[::-1]).sum()

    steps = 1e-4 * np.eye(3)
    wanted = [(twice(x + d) - twice(x - d)) / 2e-4 for d in steps]
    np.testing.assert_allclose(f(x), wanted, rtol=1e-3)
