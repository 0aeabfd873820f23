"""ops.random's distributions and dropout: TensorFlow's numbers from any state, in and outside of traces, and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from samples import BF16, Array, assert_same

import metaljit as mj
from metaljit.stdlib_ops.reference import random as reference

random: Any = mj.ops.random  # Any: wrong arguments are passed on purpose
WORD = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 2, 2**32 - 1])
STATES = st.lists(WORD, min_size=6, max_size=6).map(lambda w: np.array(w, np.uint32))
SHAPES = st.sampled_from([(), (0,), (1,), (3,), (5, 7), (2, 0, 3), (67,)])
FLOATS = (np.float32, np.float16, BF16)
STATE = np.array([2**32 - 3, 2**32 - 1, 7, 8, 9, 10], np.uint32)
ZERO = np.array([746036, 0, 0, 0, 42, 0], np.uint32)  # the lowest bits of its first word are all 0
RARE = np.array([9316361, 0, 0, 0, 0, 0], np.uint32)  # its first two blocks have three numbers within ±2
WRAPS = np.array([2**32 - 3, *[2**32 - 1] * 3, 1, 2], np.uint32)


def moved(state: Array, shape: tuple[int, ...]) -> Array:
    return reference.skipped(state, 256 * int(np.prod(shape)))


def close(found: Any, want: Any, scale: float = 1.0) -> None:
    """Within what logarithm, sine and cosine differ by, or a last place of a 16-bit type."""
    assert (found.shape, found.dtype) == (want.shape, want.dtype)
    place = {"float32": 4e-6, "float16": 2e-3, "bfloat16": 2e-2}[found.dtype.name]
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(want, np.float64), rtol=place, atol=2e-6 * scale
    )


# ---- numbers ----


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(STATES, SHAPES, st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (1e4, 10001.0), (3.0, -2.0), (0.1, 0.7)]))
@example(WRAPS, (67,), (0.0, 1.0))
def test_uniform(
    device: str, dtype: Any, state: Array, shape: tuple[int, ...], ends: tuple[float, float]
) -> None:
    values, after = random.uniform(state, shape, *ends, dtype)
    assert_same(values, reference.uniform(state, shape, *ends, dtype))
    assert_same(after, moved(state, shape))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(STATES, SHAPES, st.sampled_from([(0.0, 1.0), (-10.0, 20.0), (3.0, 0.02), (1.0, -2.0)]))
@example(WRAPS, (67,), (0.0, 1.0))
def test_normal(
    device: str, dtype: Any, state: Array, shape: tuple[int, ...], scale: tuple[float, float]
) -> None:
    values, after = random.normal(state, shape, *scale, dtype=dtype)
    raw = reference.normals(state, int(np.prod(shape))).reshape(shape)
    close(values, reference.scaled(raw, *scale, dtype), scale=abs(scale[0]) + 6 * abs(scale[1]))
    assert_same(after, moved(state, shape))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(STATES, SHAPES, st.sampled_from([(0.0, 1.0), (-1.0, 2.5)]))
@example(WRAPS, (67,), (0.0, 1.0))
def test_truncated_normal(
    device: str, dtype: Any, state: Array, shape: tuple[int, ...], scale: tuple[float, float]
) -> None:
    values, after = random.truncated_normal(state, shape, *scale, dtype=dtype)
    raw = reference.truncated_normals(state, int(np.prod(shape))).reshape(shape)
    close(values, reference.scaled(raw, *scale, dtype), scale=abs(scale[0]) + 2 * abs(scale[1]))
    assert_same(after, moved(state, shape))


def test_groups_that_take_more_than_two_blocks(device: str) -> None:
    """The first kernel leaves them open; the second fills them, and would fill all others with the same numbers."""
    groups = mj.stdlib.random.two_block_truncated4(RARE, 17, 0.0, 1.0)
    assert np.flatnonzero(np.isnan(groups[:, 3])).tolist() == [0]
    whole = mj.stdlib.random.truncated4(RARE, groups, 0.0, 1.0)
    close(whole.reshape(-1), reference.truncated_normals(RARE, 68))
    missing = np.full((17, 4), np.nan, np.float32)
    assert_same(mj.stdlib.random.truncated4(RARE, missing, 0.0, 1.0), whole)


def test_groups_lie_256_blocks_apart_beyond_32_bits(device: str) -> None:
    """Group 2**24 starts where the offset does not fit a word; its numbers are those of a state moved there."""
    far, there = random.philox_state(5), random.state_from(5 + 2**32, 0)
    kernel = mj.kernel_from_text("""
from stdlib.random import four_normals
@kernel
def normals_far(state: u32[6], n: i32) -> f32x4[n]:
    group = u32(position()) + (1 << 24)
    a, b, c, d = four_normals(state, group << 8, group >> 24)
    return f32x4(a, b, c, d)
""")
    assert_same(kernel(far, 1), mj.stdlib.random.normals4(there, 1, 0.0, 1.0))


@given(STATES, st.sampled_from([(), (0,), (67,)]))
def test_the_inverse_of_the_distribution(device: str, state: Array, shape: tuple[int, ...]) -> None:
    n = int(np.prod(shape))
    values, after = random.normal(state, shape, sampling="inv_cdf")
    close(values, reference.inverse_normals(state, n, -9, 9).astype(np.float32).reshape(shape))
    assert_same(after, moved(state, shape))
    cut, _ = random.truncated_normal(state, shape, sampling="inv_cdf")
    close(cut, reference.inverse_normals(state, n, -2, 2).astype(np.float32).reshape(shape))
    shifted, _ = random.truncated_normal(state, shape, 1, 2, low=0, high=3, sampling="inv_cdf")
    want = reference.inverse_normals(state, n, -0.5, 1) * 2 + 1
    close(shifted, want.astype(np.float32).reshape(shape))


def test_the_inverse_where_a_word_is_0(device: str) -> None:
    values, _ = random.normal(ZERO, 1, sampling="inv_cdf")
    assert random.uniform(ZERO, 1)[0][0] == 0
    assert -5.5 < values[0] < -5.0
    state = random.philox_state(2022)
    values, _ = random.normal(state, 4, sampling="inv_cdf")
    np.testing.assert_allclose(values, [-0.287696, 1.623862, 0.744620, 0.699731], atol=2e-6)
    cut, _ = random.truncated_normal(state, 4, sampling="inv_cdf")
    np.testing.assert_allclose(cut, [-0.274264, 1.456860, 0.704324, 0.662628], atol=2e-6)
    tail, _ = random.truncated_normal(state, 4, low=7, high=8, sampling="inv_cdf")
    assert ((tail >= 7) & (tail <= 8)).all()


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (np.int32, 0, 10),
        (np.int32, -(2**31), 2**31 - 1),
        (np.uint32, 3, 2**32 - 1),
        (np.int64, -(2**62), 2**62 + 12345),
        (np.uint64, 0, 1000003),
    ],
)
@given(STATES, st.sampled_from([(), (0,), (3, 7)]))
def test_integers(device: str, dtype: Any, low: int, high: int, state: Array, shape: tuple[int, ...]) -> None:
    values, after = random.integers(state, shape, low, high, dtype)
    assert_same(values, reference.integers(state, shape, low, high - low, dtype))
    assert_same(after, moved(state, shape))
    closed, _ = random.integers(state, shape, low, high, dtype, endpoint=True)
    assert_same(closed, reference.integers(state, shape, low, high + 1 - low, dtype))


def test_all_integers_of_a_type(device: str) -> None:
    values, _ = random.integers(STATE, 9, -(2**31), 2**31 - 1, endpoint=True)
    assert_same(values, (random.bits(STATE, 9)[0] + np.uint32(2**31)).view(np.int32))
    assert_same(
        random.integers(STATE, 9, 0, 2**64 - 1, np.uint64, endpoint=True)[0],
        random.bits(STATE, 9, np.uint64)[0],
    )


@given(STATES, SHAPES, st.sampled_from([0.0, 0.3, 1.0]))
def test_bernoulli(device: str, state: Array, shape: tuple[int, ...], p: float) -> None:
    values, after = random.bernoulli(state, shape, p)
    assert_same(values, np.asarray(random.uniform(state, shape)[0] < np.float32(p)))
    assert_same(after, moved(state, shape))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@given(STATES, SHAPES, st.sampled_from([0.0, 0.25, 0.9]), st.booleans())
def test_dropout(
    device: str, dtype: Any, state: Array, shape: tuple[int, ...], rate: float, scale: bool
) -> None:
    x = np.resize(np.array([1, -2, np.inf, np.nan, 0, 3], dtype), shape)
    values, after = mj.ops.dropout(x, rate, state, scale=scale)
    assert_same(values, reference.dropout(x, rate, state, scale))
    assert_same(after, moved(state, shape))


def test_dropout_of_views_and_with_a_rate_on_the_device(device: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (x.T, x[::-1, ::2]):
        assert_same(
            mj.ops.dropout(view, 0.5, STATE)[0], reference.dropout(np.ascontiguousarray(view), 0.5, STATE)
        )
    rate = mj.asarray(np.array(0.5, np.float32))
    assert_same(mj.ops.dropout(x, rate, STATE)[0], reference.dropout(x, 0.5, STATE))


@given(STATES, st.integers(0, 9))
def test_split(device: str, state: Array, count: int) -> None:
    states, after = random.split(state, count)
    assert_same(states, reference.split(state, count))
    assert_same(after, moved(state, (count,)))


# ---- on devices and in traces ----

DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "bits": lambda s, shape: random.bits(s, shape, np.int32),
    "bits64": lambda s, shape: random.bits(s, shape, np.int64),
    "uniform": lambda s, shape: random.uniform(s, shape, 0.1, 0.7),
    "uniform16": lambda s, shape: random.uniform(s, shape, 0.1, 0.7, np.float16),
    "normal": lambda s, shape: random.normal(s, shape, 1, 2),
    "normal_bf16": lambda s, shape: random.normal(s, shape, 1, 2, dtype=BF16),
    "truncated": lambda s, shape: random.truncated_normal(s, shape, 1, 2),
    "inverse": lambda s, shape: random.truncated_normal(s, shape, 1, 2, high=2, sampling="inv_cdf"),
    "integers": lambda s, shape: random.integers(s, shape, -5, 6),
    "integers64": lambda s, shape: random.integers(s, shape, -5, 2**40, np.int64),
    "bernoulli": lambda s, shape: random.bernoulli(s, shape, 0.3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_bits_in_traces_and_on_devices(device: str, name: str) -> None:
    draw, x = DRAWS[name], np.zeros((5, 7), np.float32)
    traced = mj.jit(lambda s, x: draw(s, x.shape))
    want = draw(STATE, (5, 7))
    for a, b in zip(traced(STATE, x), want, strict=True):
        assert_same(a, b)
    for a, b in zip(traced(STATE, x[:3, :1]), draw(STATE, (3, 1)), strict=True):
        assert_same(a, b)
    on_device = draw(mj.asarray(STATE), (5, 7))
    for a, b in zip(on_device, want, strict=True):
        assert isinstance(a, mj.Array)
        assert_same(a, b)


def test_a_state_or_a_shape_that_is_no_argument(device: str) -> None:
    x = np.zeros((5, 7), np.float32)
    want = random.uniform(STATE, (5, 7))
    outside = mj.jit(lambda x: random.uniform(STATE, x.shape))
    fixed = mj.jit(lambda s: random.uniform(s, (5, 7)))
    for found in (outside(x), fixed(STATE)):
        for a, b in zip(found, want, strict=True):
            assert_same(a, b)


def test_values_are_part_of_the_kernel_that_uses_them() -> None:
    x = np.ones((64, 48), np.float32)
    noisy = mj.jit(lambda x, s: np.clip(x + 0.1 * random.normal(s, x.shape)[0], 0, 1))
    assert str(noisy.explain(x, STATE)).startswith("<lambda>: 1 kernel\n")
    dropped = mj.jit(lambda x, s: mj.ops.dropout(np.maximum(2 * x, 0), 0.5, s)[0] + 1)
    assert str(dropped.explain(x, STATE)).startswith("<lambda>: 1 kernel\n")


def test_a_state_that_a_loop_carries(device: str) -> None:
    @mj.jit
    def walk(x: Any, state: Any, turns: Any) -> Any:
        def step(turn: Any, value: Any) -> Any:
            x, state = value
            z, state = random.normal(state, x.shape)
            return x + z, state

        return mj.for_loop(turns, step, (x, state))

    x, state = np.arange(6, dtype=np.float32).reshape(2, 3), STATE
    found = walk(x, state, 5)
    for _ in range(5):
        z, state = random.normal(state, x.shape)
        x = x + z
    assert_same(found[0], x)
    assert_same(found[1], state)


def test_ahead_of_time_with_open_extents() -> None:
    noisy = mj.jit(lambda x, s: mj.ops.dropout(x + random.normal(s, x.shape)[0], 0.25, s))
    made = noisy.compile(mj.spec((None, None), mj.f32), mj.spec((None,), mj.u32))
    x = np.ones((3, 5), np.float32)
    want = mj.ops.dropout(x + random.normal(STATE, (3, 5))[0], 0.25, STATE)
    for a, b in zip(made.run(x, STATE), want, strict=True):
        assert_same(a, b)
    with pytest.raises(mj.ShapeError, match="6"):
        made.run(x, STATE[:3])


def test_a_variable_keeps_the_state() -> None:
    state = mj.Variable(STATE, "state")

    @mj.jit
    def noisy(x: Any) -> Any:
        z, after = random.normal(state.value, x.shape)
        state.assign(after)
        return x + z

    x, kept = np.ones(9, np.float32), STATE
    for _ in range(2):
        z, kept = random.normal(kept, 9)
        assert_same(noisy(x), x + z)
    assert_same(state.value, kept)


def test_split_and_skip_in_a_trace(device: str) -> None:
    @mj.jit
    def both(state: Any, x: Any) -> Any:
        states, state = random.split(state, x.shape[0])
        return random.uniform(states[1], 4)[0], random.skip(state, x.shape[0]), random.skip(state, -1)

    found = both(STATE, np.zeros(3, np.float32))
    states, after = random.split(STATE, 3)
    assert_same(found[0], random.uniform(states[1], 4)[0])
    assert_same(found[1], random.skip(after, 3))
    assert_same(found[2], random.skip(after, -1))


def test_parameters_broadcast(device: str) -> None:
    mean, spread = np.array([0, 10, 20], np.float32), np.array([[1], [0.5]], np.float32)
    raw, after = random.normal(STATE, (2, 3))
    values, same = random.normal(STATE, (2, 3), mean, spread)
    assert_same(values, raw * spread + mean)
    assert_same(same, after)
    on_device, _ = random.uniform(STATE, (2, 3), mj.asarray(mean), 30)
    assert isinstance(on_device, mj.Array)
    assert_same(on_device, reference.uniform(STATE, (2, 3), mean, 30))
    halves, _ = random.truncated_normal(STATE, (2, 3), mean, 1, dtype=np.float16)
    assert_same(
        halves, (random.truncated_normal(STATE, (2, 3), dtype=np.float16)[0] + mean).astype(np.float16)
    )
    rare, _ = random.bernoulli(STATE, (2, 3), np.array([0, 0.5, 1], np.float32))
    assert not rare[:, 0].any()
    assert rare[:, 2].all()


# ---- derivatives ----


def test_derivatives_by_the_parameters(device: str) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3) + 1

    def by(draw: Callable[..., Any], *at: Any) -> Any:
        return mj.grad(lambda *p: (draw(*p)[0] * weights).sum(), argnums=(0, 1))(*at)

    u, _ = random.uniform(STATE, (2, 3))
    z, _ = random.normal(STATE, (2, 3))
    cut, _ = random.truncated_normal(STATE, (2, 3))
    a, b = np.array([1, 2, 3], np.float32), np.float32(4)
    for draw, raw, shift in (
        (random.uniform, u, 1 - u),
        (random.normal, z, np.ones_like(z)),
        (random.truncated_normal, cut, np.ones_like(z)),
    ):
        by_a, by_b = by(lambda a, b, draw=draw: draw(STATE, (2, 3), a, b), a, b)
        np.testing.assert_allclose(by_a, (weights * shift).sum(axis=0), rtol=1e-5)
        np.testing.assert_allclose(by_b, (weights * raw).sum(), rtol=1e-5)


def test_the_derivative_by_a_bound_is_the_difference_quotient(device: str) -> None:
    def total(low: Any, high: Any) -> Any:
        return random.truncated_normal(STATE, 40, low=low, high=high, sampling="inv_cdf")[0].sum()

    low, high, step = np.float32(-1), np.float32(0.5), np.float32(1 / 64)
    found = mj.grad(total, argnums=(0, 1))(low, high)
    sides = (
        total(low + step, high) - total(low - step, high),
        total(low, high + step) - total(low, high - step),
    )
    np.testing.assert_allclose(found, np.array(sides) / (2 * step), rtol=1e-2)


def test_the_derivative_of_dropout(device: str) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    found = mj.grad(lambda x: (mj.ops.dropout(x, 0.25, STATE)[0] ** 2).sum())(x)
    kept = reference.dropout(np.ones_like(x), 0.25, STATE)
    np.testing.assert_allclose(found, 2 * x * kept**2, rtol=1e-6)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("call", "slug", "said"),
    [
        (lambda: random.uniform(STATE, 3, dtype=np.float64), "no-f64", "float64"),
        (lambda: random.uniform(STATE, 3, dtype=np.int32), "op-dtype", "int32"),
        (lambda: random.uniform(STATE, 3, 0, 1e6, np.float16), "op-argument", "float16 does not hold"),
        (lambda: random.uniform(STATE[:3], 3), "op-shape", "(3,)"),
        (lambda: random.uniform(STATE, (3, -1)), "op-argument", "-1"),
        (lambda: random.uniform(STATE, 3, np.zeros(2, np.float32)), "op-shape", "(2,)"),
        (lambda: random.uniform(STATE, 3, np.zeros((3, 3), np.float32)), "op-shape", "(3, 3)"),
        (lambda: random.uniform(STATE, 3, np.zeros(3)), "no-f64", "float64"),
        (lambda: random.normal(STATE, 3, "a"), "op-dtype", "str"),
        (lambda: random.normal(STATE, 3, sampling="polar"), "op-argument", "'polar'"),
        (lambda: random.truncated_normal(STATE, 3, low=-1), "op-argument", "inv_cdf"),
        (
            lambda: random.truncated_normal(STATE, 3, low=1, high=1, sampling="inv_cdf"),
            "op-argument",
            "between",
        ),
        (lambda: random.integers(STATE, 3, 5, 5), "op-argument", "low=5, high=5"),
        (lambda: random.integers(STATE, 3, 0, 2**31 + 1), "op-argument", "int32"),
        (lambda: random.integers(STATE, 3, -1, 5, np.uint32), "op-argument", "low=-1"),
        (lambda: random.integers(STATE, 3, 0.5, 5), "op-argument", "0.5"),
        (lambda: random.integers(STATE, 3, 0, 5, np.int8), "op-dtype", "int8"),
        (lambda: random.bernoulli(STATE, 3, 1.5), "op-argument", "1.5"),
        (lambda: random.split(STATE, -1), "op-argument", "-1"),
        (lambda: mj.ops.dropout(np.ones(3, np.float32), 1.0, STATE), "op-argument", "1.0"),
        (lambda: mj.ops.dropout(np.ones(3, np.float32), np.ones(2, np.float32), STATE), "op-shape", "(2,)"),
        (lambda: mj.ops.dropout(np.ones(3, np.int32), 0.5, STATE), "op-dtype", "int32"),
        (lambda: mj.ops.dropout(np.ones(3, np.float32), 0.5, STATE[:5]), "op-shape", "(5,)"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, said: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert said in str(caught.value)


# ---- mutants ----


def check_words() -> None:
    fused = mj.jit(lambda s, x: random.bits(s, x.shape)[0])(WRAPS, np.zeros(67, np.float32))
    assert_same(fused, reference.words(WRAPS, (67,)))


def check_uniform() -> None:
    assert_same(random.uniform(WRAPS, 67, -3, 0.7)[0], reference.uniform(WRAPS, (67,), -3, 0.7))


def check_normal() -> None:
    want = reference.normals(WRAPS, 67)
    close(random.normal(WRAPS, 67, 3, 2)[0], reference.scaled(want, 3, 2), 5)
    close(random.normal(ZERO, 4)[0], reference.normals(ZERO, 4))


def check_angle() -> None:
    """Near the zeros of sine and cosine the last bit of the angle counts: they agree without an absolute tolerance."""
    found, _ = random.normal(STATE, 4000)
    np.testing.assert_allclose(found, reference.normals(STATE, 4000), rtol=2e-6)


def check_fused_normal() -> None:
    fused = mj.jit(lambda s, x: random.normal(s, x.shape)[0])(WRAPS, np.zeros(67, np.float32))
    close(fused, reference.normals(WRAPS, 67))


def check_truncated() -> None:
    for state in (WRAPS, RARE):
        want = reference.truncated_normals(state, 67)
        close(random.truncated_normal(state, 67, 1, 2)[0], reference.scaled(want, 1, 2), 5)


def check_slow_groups() -> None:
    missing = np.full((17, 4), np.nan, np.float32)
    found = mj.stdlib.random.truncated4(WRAPS, missing, 0.0, 1.0).reshape(-1)
    close(found, reference.truncated_normals(WRAPS, 68))


def check_split() -> None:
    assert_same(random.split(WRAPS, 9)[0], reference.split(WRAPS, 9))


@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        (check_words, "where(lane == 2, w.z, w.w)", "where(lane == 3, w.z, w.w)"),
        (check_uniform, "0x7FFFFF", "0xFFFFFF"),
        (check_uniform, "* (high - low) + low", "* high + low"),
        (check_normal, "max(unit(a), 1e-7)", "max(unit(a), 1e-6)"),
        (check_angle, "u * -1.7484555e-7", "0.0"),
        (
            check_normal,
            "return sin(angle) * radius, cos(angle) * radius",
            "return cos(angle) * radius, sin(angle) * radius",
        ),
        (check_fused_normal, "(i & 2) != 0", "(i & 2) == 0"),
        (check_truncated, "group << 8, group >> 24", "group << 7, group >> 24"),
        (check_truncated, "inside & (kept == 3)", "(kept == 3)"),
        (check_slow_groups, "abs(candidate) < 2 and", "abs(candidate) < 3 and"),
        (check_slow_groups, "at += 1", "at += 2"),
        (check_split, "if i % 2 == 1 else", "if i % 2 == 0 else"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, check: Callable[[], None], old: str, new: str) -> None:
    check()
    mutate("random", old, new)
    with pytest.raises(AssertionError):
        check()
