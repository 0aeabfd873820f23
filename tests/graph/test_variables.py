"""Variables: effects happen once, in the order of the program, and are never left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


@mj.kernel
def positive(u: f32[N]) -> f32[N]:
    i = position()
    assert u[i] >= 0
    return u[i] + 1


def a(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(np.float32)


def value(variable: mj.Variable) -> Any:
    return np.array(variable.value.numpy())


def test_outside_of_a_trace() -> None:
    v = mj.Variable(a(3))
    v.assign(a(3) * 2)
    np.testing.assert_array_equal(value(v), a(3) * 2)
    with pytest.raises(mj.LaunchFault, match="shape"):
        v.assign(a(4))
    np.testing.assert_array_equal(value(v), a(3) * 2)


def test_an_assignment_happens_though_no_result_needs_it(device: str) -> None:
    with mj.use_device(device):
        calls = mj.Variable(np.int32(0))

        @mj.jit
        def f(x: Any) -> Any:
            calls.assign(calls.value + 1)
            return x * 2

        for _ in range(3):
            assert type(f(a(4))) is np.ndarray
        assert value(calls) == 3


def test_in_the_order_of_the_program() -> None:
    v = mj.Variable(np.float32(1))

    @mj.jit
    def f(x: Any) -> Any:
        before = v.value * x
        v.assign(v.value + 1)
        between = v.value * x
        v.assign(v.value * 10)
        return before, between, v.value * x

    for got, factor in zip(f(a(4)), (1, 2, 20), strict=True):
        np.testing.assert_allclose(got, a(4) * factor)
    assert value(v) == 20


def test_a_function_of_effects_alone() -> None:
    v = mj.Variable(np.zeros(4, np.float32))

    @mj.jit
    def keep(x: Any) -> None:
        v.assign(x * 3)

    assert keep(a(4)) is None
    np.testing.assert_array_equal(value(v), a(4) * 3)


def test_a_control_dependency_reads_what_was_assigned() -> None:
    v = mj.Variable(np.float32(2))

    @mj.jit
    def f(x: Any) -> Any:
        doubled = v.assign(v.value * 2)
        return mj.control_dependency(lambda: x * v.value, after=[doubled])

    np.testing.assert_array_equal(f(a(3)), a(3) * 4)
    np.testing.assert_array_equal(f(a(3)), a(3) * 8)


def test_a_variable_stands_for_its_value_in_expressions() -> None:
    v = mj.Variable(a(3))
    np.testing.assert_array_equal(mj.jit(lambda x: x * v)(a(3)), a(3) * a(3))
    v.assign(a(3) * 2)
    np.testing.assert_array_equal(mj.jit(lambda x: x - v)(a(3)), -a(3))


def uses(v: Any, x: Any) -> Any:
    return (
        v + x,
        1 - v,
        v * v,
        v[1],
        -v,
        v.sum(),
        v > 1,
        np.exp(v),
        x - v,
        v.reshape(3, 1) @ x[None],
        np.stack([x, x]),
    )


def test_a_variable_has_the_operators_and_methods_of_its_value() -> None:
    start, x = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    v = mj.Variable(start)
    outside = uses(v, x)
    inside = mj.jit(lambda x: uses(v, x))(x)
    for a, b, want in zip(outside, inside, uses(start, x), strict=True):
        np.testing.assert_allclose(np.asarray(a), want, rtol=1e-6)
        np.testing.assert_allclose(b, want, rtol=1e-6)
    assert len(v) == 3
    assert np.asarray(v).tolist() == [0, 1, 2]
    assert {v: 1}[v] == 1
    with pytest.raises(AttributeError, match="summ"):
        v.summ()


def test_results_and_variables_share_no_memory() -> None:
    v, w = mj.Variable(a(3)), mj.Variable(a(3))

    @mj.jit
    def f(x: Any) -> Any:
        y = x + 1
        v.assign(y)
        w.assign(y)
        return y

    y = f(a(3))
    arrays = [y, v.value.numpy(), w.value.numpy()]
    assert not any(np.shares_memory(p, q) for k, p in enumerate(arrays) for q in arrays[:k])


def test_in_loops_and_choices(device: str) -> None:
    with mj.use_device(device):
        total, last = mj.Variable(np.float32(0)), mj.Variable(np.zeros(3, np.float32))

        @mj.jit
        def f(x: Any, n: Any) -> Any:
            def turn(i: Any, y: Any) -> Any:
                total.assign(total.value + y.sum())
                mj.cond(i % 2 == 0, lambda: last.assign(y), lambda: last.value)
                return y * 2

            return mj.for_loop(n, turn, x)

        x = a(3)
        np.testing.assert_allclose(f(x, 4), x * 16)
        assert value(total) == pytest.approx(x.sum() * 15, rel=1e-5)
        np.testing.assert_allclose(value(last), x * 4)


def test_one_side_of_a_choice_assigns() -> None:
    v = mj.Variable(np.float32(0))

    @mj.jit
    def f(x: Any) -> None:
        mj.cond(x.sum() > 3, lambda: v.assign(x.sum()), lambda: v.value)

    f(np.full(4, 0.25, np.float32))
    assert value(v) == 0
    f(np.full(4, 2, np.float32))
    assert value(v) == 8


def test_through_a_gradient() -> None:
    v = mj.Variable(np.float32(0))

    def loss(x: Any) -> Any:
        total = (x * x).sum()
        v.assign(total)
        return total

    np.testing.assert_allclose(mj.grad(loss)(a(3)), 2 * a(3))
    assert value(v) == pytest.approx((a(3) ** 2).sum(), rel=1e-5)


def test_a_call_that_fails_assigns_nothing() -> None:
    v = mj.Variable(np.zeros(3, np.float32))

    @mj.jit
    def f(x: Any) -> Any:
        v.assign(x)
        return positive(x)

    with pytest.raises(mj.KernelAssertion):
        f(-a(3))
    np.testing.assert_array_equal(value(v), np.zeros(3))


def test_another_type_is_refused_at_its_line() -> None:
    v = mj.Variable(np.zeros(3, np.float32))
    for bad in (lambda x: v.assign(x > 0), lambda x: v.assign(x[None])):
        with pytest.raises(mj.LaunchFault) as caught:
            mj.jit(bad)(a(3))
        assert caught.value.slug == "variable-unfit"
    with pytest.raises(mj.ShapeError):
        mj.jit(lambda x: v.assign(x))(a(4))
