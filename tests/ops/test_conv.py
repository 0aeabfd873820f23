"""ops.conv and its gradients against NumPy: windows, layouts, groups, element types, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import BF16, LAYOUTS, Array, laid_out

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import conv as reference
from metaljit.stdlib_ops.reference.pooling import window_counts

F = np.float32


def numbers(shape: tuple[int, ...], seed: int, dtype: Any = F) -> Array:
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def pads(shape: tuple[int, ...], size: tuple[int, ...], options: dict[str, Any]) -> list[tuple[int, int]]:
    """What stands before and after each axis."""
    padding = options.get("padding", 0)
    found = []
    for k, (n, taps) in enumerate(zip(shape, size, strict=True)):
        s, d = (np.broadcast_to(options.get(name, 1), len(size))[k] for name in ("stride", "dilation"))
        if isinstance(padding, str):
            before, count = window_counts(n, taps, int(s), int(d), padding, False)
            found.append((before, max((count - 1) * int(s) + (taps - 1) * int(d) + 1 - n - before, 0)))
        else:
            p = np.broadcast_to(padding, len(size))[k]
            found.append((int(p), int(p)))
    return found


def expected(x: Array, w: Array, options: dict[str, Any]) -> tuple[Array, Any]:
    """The result, and what gives the derivatives for that by it."""
    rank = x.ndim - 2
    stride, dilation = (
        np.broadcast_to(options.get(name, 1), rank).tolist() for name in ("stride", "dilation")
    )
    rest = (stride, pads(x.shape[2:], w.shape[2:], options), dilation, options.get("groups", 1))
    return reference.conv(x, w, *rest), lambda g: reference.conv_grads(g, x, w, *rest)


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 6, 7), (4, 3, 3, 3), {"padding": 1}),
    ((2, 3, 6, 7), (4, 3, 1, 1), {}),
    ((1, 4, 8, 9), (6, 2, 3, 2), {"padding": (2, 0), "dilation": (1, 2), "groups": 2}),
    ((2, 4, 7, 8), (2, 2, 3, 2), {"padding": (1, 2), "stride": (2, 3), "dilation": (2, 1), "groups": 2}),
    ((1, 2, 6, 5), (2, 2, 2, 3), {"padding": "same"}),
    ((1, 2, 6, 5), (2, 2, 3, 3), {"padding": "same_lower", "stride": 2}),
    ((2, 3, 4, 3), (2, 3, 1, 3), {"padding": (3, 4)}),
    ((2, 3, 9), (4, 3, 3), {"padding": "valid", "dilation": 2}),
    ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"padding": (1, 0, 1)}),
    ((1, 2, 4, 5, 3), (2, 2, 2, 3, 1), {"stride": (1, 2, 2)}),
]


@pytest.mark.parametrize(("shape", "size", "options"), CASES, ids=str)
def test_it_and_its_gradients(
    device: str, shape: tuple[int, ...], size: tuple[int, ...], options: dict[str, Any]
) -> None:
    x, w = numbers(shape, 1), numbers(size, 2)
    want, back = expected(x, w, options)
    g = numbers(want.shape, 3)
    by_x, by_w = back(g)
    np.testing.assert_array_equal(ops.conv(x, w, **options), want)
    np.testing.assert_array_equal(ops.conv_grad_input(g, w, x.shape, **options), by_x)
    np.testing.assert_array_equal(ops.conv_grad_weight(g, x, w.shape, **options), by_w)
    _, pull = mj.vjp(lambda x, w: ops.conv(x, w, **options), x, w)
    for got, wanted in zip(pull(g), (by_x, by_w), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("stride", [1, 2])
def test_channels_last(device: str, stride: int) -> None:
    x, w, bias = numbers((2, 5, 6, 3), 1), numbers((3, 2, 3, 4), 2), numbers((4,), 3)
    options: dict[str, Any] = {"padding": 1, "stride": stride}
    nchw, oihw = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    want, back = expected(nchw, oihw, options)
    g = numbers(want.shape, 4)
    by_x, by_w = back(g)
    y, pull = mj.vjp(lambda *a: ops.conv(*a, layout="NHWC", **options), x, w, bias)
    np.testing.assert_array_equal(y, want.transpose(0, 2, 3, 1) + bias)
    got = pull(np.ascontiguousarray(g.transpose(0, 2, 3, 1)))
    np.testing.assert_array_equal(got[0], by_x.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(got[1], by_w.transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(got[2], g.sum(axis=(0, 2, 3)))
    mixed = ops.conv(x, oihw, layout="NHWC", weight_layout="OIHW", **options)
    np.testing.assert_array_equal(mixed, want.transpose(0, 2, 3, 1))


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.int8, np.int32, np.uint16])
def test_element_types(device: str, dtype: Any) -> None:
    x, w = abs(numbers((1, 2, 5, 4), 1)).astype(dtype), abs(numbers((2, 2, 3, 3), 2)).astype(dtype)
    options: dict[str, Any] = {"padding": 1}
    got = ops.conv(x, w, **options)
    assert got.dtype == dtype
    want = expected(x, w, options)[0].astype(np.int64)
    np.testing.assert_array_equal(np.asarray(got, np.float64), want.astype(dtype).astype(np.float64))


def test_a_sixteen_bit_sum_is_rounded_once(device: str) -> None:
    ones = np.ones((1, 1, 4099), np.float16)
    assert ops.conv(ones, ones)[0, 0, 0] == np.float16(4099)
    assert (
        ops.conv_grad_weight(np.ones((3, 1, 1365), np.float16), np.ones((3, 1, 1365), np.float16), (1, 1, 1))
        == 4096
    )


@pytest.mark.parametrize("memory", LAYOUTS)
def test_every_memory_layout_gives_the_same(memory: str) -> None:
    x, w = numbers((2, 3, 6, 7), 1), numbers((4, 3, 3, 3), 2)
    np.testing.assert_array_equal(
        ops.conv(laid_out(x, memory), laid_out(w, memory), padding=1), expected(x, w, {"padding": 1})[0]
    )


def test_second_derivatives(device: str) -> None:
    x, w = numbers((1, 2, 4, 4), 1), numbers((2, 2, 2, 2), 2)

    def by_x(x: Any, w: Any) -> Any:
        return mj.grad(lambda x: (ops.conv(x, w, padding=1) ** 2).sum())(x)

    def loss(x: Any, w: Any) -> Any:
        return (by_x(x, w) ** 2).sum()

    got = mj.grad(loss, argnums=(0, 1))(x, w)
    for k, array in enumerate((x, w)):
        step = np.zeros_like(array)
        step.reshape(-1)[3] = 0.5
        # a polynomial of degree 2 in x and 4 in w; whole numbers and halves are exact
        moved = [[a + s * step if n == k else a for n, a in enumerate((x, w))] for s in (1, -1, 2, -2)]
        one, minus, two, other = (float(np.asarray(loss_of(*m))) for m in moved)
        want = (8 * (one - minus) - (two - other)) / 6
        np.testing.assert_allclose(got[k].reshape(-1)[3], want, rtol=1e-4)


def loss_of(x: Array, w: Array) -> float:
    y, back = expected(x, w, {"padding": 1})
    return float((back(2 * y)[0] ** 2).sum())


def test_in_a_trace_with_what_is_around_it(device: str) -> None:
    @mj.jit
    def layer(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(ops.conv(np.tanh(x), w, b, padding=1), 0)

    w, b = numbers((2, 3, 3, 3), 2), numbers((2,), 3)
    for shape in ((1, 3, 5, 6), (2, 3, 8, 4)):
        x = numbers(shape, 1)
        want = expected(np.tanh(x), w, {"padding": 1})[0] + b[:, None, None]
        np.testing.assert_allclose(layer(x, w, b), np.maximum(want, 0), atol=1e-4)


def test_columns_of_unit_strides_are_a_view() -> None:
    x, w = numbers((2, 3, 16, 16), 1), numbers((4, 3, 3, 3), 2)
    made = mj.jit(lambda x, w: ops.conv(x, w, padding=1)).explain(x, w)
    assert str(made).splitlines()[0] == "<lambda>: 3 kernels"  # padded, multiplied, cut


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x, w = numbers((1, 2, 4, 4), 1), numbers((2, 2, 2, 2), 2)
    got = ops.conv(mj.asarray(x), mj.asarray(w))
    assert isinstance(got, mj.Array)
    np.testing.assert_array_equal(got.numpy(), expected(x, w, {})[0])


def test_empty_batches(device: str) -> None:
    x, w = numbers((0, 2, 4, 4), 1), numbers((3, 2, 2, 2), 2)
    assert ops.conv(x, w).shape == (0, 3, 3, 3)
    assert not ops.conv_grad_weight(numbers((0, 3, 3, 3), 1), x, w.shape).any()


X, W = np.zeros((1, 2, 4, 4), F), np.zeros((4, 2, 2, 2), F)


@pytest.mark.parametrize(
    ("args", "options", "slug", "words"),
    [
        ((X.astype(np.float64), W), {}, "no-f64", "float64"),
        ((X, W.astype(np.float16)), {}, "op-dtype", "float16"),
        ((X, W, np.zeros(4, np.int32)), {}, "op-dtype", "`bias`"),
        ((X, W, np.zeros(3, F)), {}, "op-shape", "`bias`"),
        ((X, W[:, :1]), {}, "op-shape", "2 channels"),
        ((X, W[:3, :1]), {"groups": 2}, "op-shape", "3 output channels"),
        ((X, W), {"groups": 0}, "op-argument", "`groups`"),
        ((X, W[0]), {}, "op-shape", "3 axes"),
        ((X[0, 0], W), {}, "op-shape", "2 axes"),
        ((X, np.zeros((4, 2, 5, 5), F)), {}, "op-shape", "reaches over 5"),
        ((X, W), {"dilation": 4}, "op-shape", "reaches over 5"),
        ((X, W), {"stride": 0}, "op-argument", "`stride`"),
        ((X, W), {"padding": -1}, "op-argument", "`padding`"),
        ((X, W), {"padding": "SAME"}, "op-argument", "'SAME'"),
        ((X, W), {"layout": "NHWD"}, "op-argument", "lacks"),
        ((X, W), {"layout": "CHW"}, "op-shape", "'CHW'"),
        ((X, W), {"weight_layout": "OIWD"}, "op-argument", "'OIWD'"),
    ],
)
def test_what_makes_no_sense_is_refused(args: Any, options: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        ops.conv(*args, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def test_gradients_of_other_shapes_are_refused() -> None:
    g = np.zeros((1, 4, 3, 4), F)
    with pytest.raises(mj.ShapeError, match="`grad` has shape"):
        ops.conv_grad_input(g, W, X.shape)
    with pytest.raises(mj.ShapeError, match="`grad` has shape"):
        ops.conv_grad_weight(g, X, W.shape)


def check_mixed() -> None:
    for shape, size, options in (CASES[2], CASES[3]):
        x, w = numbers(shape, 1), numbers(size, 2)
        want, back = expected(x, w, options)
        g = numbers(want.shape, 3)
        by_x, by_w = back(g)
        np.testing.assert_array_equal(ops.conv(x, w, **options), want)
        np.testing.assert_array_equal(ops.conv_grad_input(g, w, x.shape, **options), by_x)
        np.testing.assert_array_equal(ops.conv_grad_weight(g, x, w.shape, **options), by_w)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("index(*p) - before)", "index(*p))"),
        ("w[c // ins * (outs // groups) + n", "w[n"),
        ("- 1 - index(*p)", "* 0 + index(*p)"),
        ("left % size[axis] * dilation[axis])", "left % size[axis])"),
        ("at % stride[axis] == 0", "True"),
        ("k // taps, *p", "k % taps, *p"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, monkeypatch: Any, old: str, new: str) -> None:
    from metaljit.stdlib_ops import conv

    for name in ("_conv", "_grad_input", "_grad_weight"):  # what was traced knows the kernels as they are
        fresh = mj.jit(static=["plan"])(getattr(conv, name).function)
        monkeypatch.setattr(conv, name, fresh)
    mutate("conv", old, new)
    with pytest.raises((AssertionError, mj.MetaljitError)):
        check_mixed()
