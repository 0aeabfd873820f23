"""ops.avg_pool, ops.l2_pool and their gradients against NumPy: windows, divisors, element types, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import BF16, LAYOUTS, Array, laid_out

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import pooling as reference

F = np.float32

CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 6, 8), {"size": (2, 2)}),
    ((1, 2, 5, 6), {"size": (3, 3), "stride": (2, 2), "padding": (1, 1)}),
    ((1, 2, 5, 6), {"size": (3, 2), "stride": (1, 1), "padding": (1, 0), "count_include_pad": False}),
    (
        (1, 1, 7, 6),
        {"size": (3, 3), "stride": (3, 3), "padding": (1, 1), "dilation": (2, 1), "ceil_mode": True},
    ),
    (
        (1, 6, 7, 2),
        {"size": (3, 2), "stride": (2, 3), "padding": "same", "count_include_pad": False, "layout": "NHWC"},
    ),
    ((2, 7), {"size": (3,), "stride": (2,), "ceil_mode": True, "layout": "CW", "count_include_pad": False}),
    ((1, 1, 4, 5, 4), {"size": (2, 3, 2), "stride": (2, 1, 2), "padding": (1, 1, 0)}),
    ((2, 3, 3, 4), {"size": (2, 1, 2, 3), "stride": (1, 2, 1, 1), "layout": "4D", "divisor_override": 5}),
]


def numbers(shape: tuple[int, ...], seed: int, dtype: Any = F) -> Array:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def expected(x: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """The means, and the matrix that makes them."""
    letters = {3: "NCW", 4: "NCHW", 5: "NCDHW"}.get(x.ndim, "")
    layout = options.get("layout", letters)
    axes = range(x.ndim) if layout == "4D" else [k for k, c in enumerate(layout) if c in "DHW"]
    size = options["size"]
    stride, dilation = options.get("stride", size), options.get("dilation", (1,) * len(size))
    padding = options.get("padding", (0,) * len(size))
    before, after, counts = [], [], []
    for k, axis in enumerate(axes):
        given = padding if isinstance(padding, str) else (padding[k], padding[k])
        b, n = reference.window_counts(
            x.shape[axis], size[k], stride[k], dilation[k], given, options.get("ceil_mode", False)
        )
        before.append(b)
        after.append(0 if isinstance(padding, str) else padding[k])
        counts.append(n)
    included, divisor = options.get("count_include_pad", True), options.get("divisor_override")
    return reference.averages(x, list(axes), size, stride, dilation, before, after, counts, included, divisor)


@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_means_and_their_gradient(device: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    x = numbers(shape, 1)
    want, matrix = expected(x, options)
    g = numbers(want.shape, 2)
    back = (g.reshape(-1) @ matrix).reshape(shape)
    np.testing.assert_allclose(ops.avg_pool(x, **options), want, atol=1e-5)
    np.testing.assert_allclose(ops.avg_pool_grad(g, shape, **options), back, atol=1e-5)
    _, pull = mj.vjp(lambda x: ops.avg_pool(x, **options), x)
    np.testing.assert_allclose(pull(g)[0], back, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "options"), [c for c in CASES if "divisor_override" not in c[1]][:5], ids=str
)
def test_roots_of_squares_and_their_gradient(
    device: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    options = {name: v for name, v in options.items() if name != "count_include_pad"}
    x = numbers(shape, 3)
    sums, matrix = expected(x * x, {**options, "divisor_override": 1})
    want = np.sqrt(sums)
    g = numbers(want.shape, 4)
    share = np.divide(g, want, out=np.zeros_like(want), where=want > 0)
    back = x * (share.reshape(-1) @ matrix).reshape(shape)
    y, pull = mj.vjp(lambda x: ops.l2_pool(x, **options), x)
    np.testing.assert_allclose(y, want, rtol=1e-5)
    np.testing.assert_allclose(pull(g)[0], back, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ops.l2_pool(x, **options), want, rtol=1e-5)


def test_worked_examples(device: str) -> None:
    x = np.arange(1, 10, dtype=F).reshape(3, 3)
    options: dict[str, Any] = {"size": 3, "stride": 2, "padding": 1, "layout": "HW"}
    got = ops.avg_pool(x, **options)
    np.testing.assert_allclose(got, [[1.3333, 1.7778], [2.6667, 3.1111]], atol=1e-4)
    by_x = mj.vjp(lambda x: ops.l2_pool(x, 2, stride=1, layout="HW"), x)[1](np.ones((2, 2), F))[0]
    np.testing.assert_allclose(by_x[0], [0.147442, 0.527379, 0.348743], atol=1e-6)


def test_special_values(device: str) -> None:
    x = np.array([[1, np.nan, 2, np.inf], [3, 4, 5, 6]], F)
    assert np.isnan(ops.avg_pool(x, 2, layout="HW")[0, 0])
    assert np.isposinf(ops.avg_pool(x, 2, layout="HW")[0, 1])
    zeros = np.zeros((1, 1, 2, 2), F)
    assert not mj.grad(lambda x: ops.l2_pool(x, 2).sum())(zeros).any()


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_sixteen_bit_sums_are_rounded_once(device: str, dtype: Any) -> None:
    ones = np.ones((1, 1, 4096), dtype)
    assert ops.avg_pool(ones, 4096)[0, 0, 0] == 1
    assert ops.l2_pool(ones, 4096)[0, 0, 0] == 64
    assert ops.avg_pool(ones, 2).dtype == dtype


def test_second_derivatives(device: str) -> None:
    x = numbers((1, 1, 5, 5), 1)
    options = CASES[1][1]
    _, matrix = expected(x, options)

    def inner(x: Any) -> Any:
        return mj.grad(lambda x: (ops.avg_pool(x, **options) ** 3).sum())(x)

    got = mj.grad(lambda x: (inner(x) ** 2).sum())(x)
    y = matrix @ x.reshape(-1)
    first = (3 * y**2) @ matrix
    np.testing.assert_allclose(got.reshape(-1), (2 * (matrix @ first) * 6 * y) @ matrix, rtol=1e-4, atol=1e-3)


def test_in_a_trace_for_every_size(device: str) -> None:
    step = mj.jit(mj.grad(lambda x: (ops.avg_pool(2 * x, 2, padding=1) ** 2).sum()))
    for n in (4, 6, 9):
        x = numbers((1, 2, n, n), n)
        want, matrix = expected(2 * x, {"size": (2, 2), "padding": (1, 1)})
        by_x = 2 * ((2 * want.reshape(-1)) @ matrix).reshape(x.shape)
        np.testing.assert_allclose(step(x), by_x, rtol=1e-5)


@pytest.mark.parametrize("memory", LAYOUTS)
def test_every_memory_layout_gives_the_same(memory: str) -> None:
    x = numbers((1, 2, 5, 6), 1)
    options = CASES[1][1]
    want, matrix = expected(x, options)
    np.testing.assert_allclose(ops.avg_pool(laid_out(x, memory), **options), want, atol=1e-5)
    g = numbers(want.shape, 2)
    got = ops.avg_pool_grad(laid_out(g, memory), x.shape, **options)
    np.testing.assert_allclose(got, (g.reshape(-1) @ matrix).reshape(x.shape), atol=1e-5)


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x = mj.asarray(numbers((1, 1, 4, 4), 1))
    y = ops.avg_pool(x, 2)
    assert isinstance(y, mj.Array)
    assert isinstance(ops.avg_pool_grad(y, x.shape, 2), mj.Array)
    assert isinstance(ops.l2_pool(x, 2), mj.Array)
    assert ops.avg_pool(np.zeros((0, 1, 4, 4), F), 2).shape == (0, 1, 2, 2)


X = np.zeros((1, 1, 4, 4), F)


@pytest.mark.parametrize(
    ("x", "options", "slug", "words"),
    [
        (X.astype(np.float64), {"size": 2}, "no-f64", "float64"),
        (X.astype(np.int32), {"size": 2}, "op-dtype", "int32"),
        (X, {"size": 5}, "op-shape", "reaches over 5"),
        (X, {"size": 2, "padding": 2}, "op-shape", "no element"),
        (X, {"size": 2, "divisor_override": 0}, "op-argument", "`divisor_override`"),
        (X, {"size": 2, "divisor_override": "two"}, "op-argument", "`divisor_override`"),
        (X, {"size": 2, "padding": "same", "ceil_mode": True}, "op-argument", "ceil_mode"),
    ],
)
def test_what_makes_no_sense_is_refused(x: Any, options: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        ops.avg_pool(x, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def test_a_gradient_of_another_shape_is_refused() -> None:
    with pytest.raises(mj.ShapeError, match="`grad` has shape"):
        ops.avg_pool_grad(X, X.shape, 2)


def check_mixed() -> None:
    for shape, options in (CASES[1], CASES[2], CASES[3]):
        test_means_and_their_gradient("", shape, options)
    test_roots_of_squares_and_their_gradient("", *CASES[3])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("first = 0 if included", "first = 0 if not included"),
        ("end = n + after", "end = n"),
        ("+ dilation - 1) // dilation", ") // dilation"),
        ("total += f32(u[", "total = f32(u["),
        ("held = held and c == w", "held = held"),
        ("v if held else f32(0)", "v"),
        ("v * v", "v"),
        ("-i32(pads[1])", "-i32(pads[0] + 1)"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("pooling_means", old, new)
    with pytest.raises((AssertionError, mj.MetaljitError)):
        check_mixed()
