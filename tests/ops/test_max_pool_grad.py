"""Back through the windows of ops.max_pool: max_pool_grad, max_unpool, and gradients, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import BF16, LAYOUTS, Array, laid_out

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.pooling import INDEX_MODES
from metaljit.stdlib_ops.reference import pooling as reference

F = np.float32

WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 6, 8), {"size": 2}),
    ((1, 2, 7, 6), {"size": 3, "stride": 2, "padding": 1}),
    ((1, 2, 6, 5), {"size": (3, 2), "stride": 1, "padding": (1, 0)}),
    ((1, 1, 8, 9), {"size": (3, 2), "stride": (2, 1), "dilation": (2, 3), "padding": (1, 1)}),
    ((1, 2, 7, 6), {"size": 3, "stride": 2, "ceil_mode": True}),
    ((2, 5, 7, 2), {"size": (3, 2), "stride": (2, 3), "padding": "same", "layout": "NHWC"}),
    ((2, 9), {"size": (2,), "stride": (3,), "layout": "CW"}),
    ((1, 2, 4, 5, 4), {"size": 2, "stride": (1, 2, 2)}),
    ((3, 4, 3, 4), {"size": (2, 1, 2, 3), "stride": (1, 2, 1, 1), "layout": "4D"}),
]


def numbers(shape: tuple[int, ...], seed: int, dtype: Any = F) -> Array:
    """Whole numbers, of which many are equal."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def positions(x: Array, options: dict[str, Any]) -> Array:
    """Where the maxima stand in `x`, in row-major order, from indices that the tests of max_pool have checked."""
    rows = x.reshape(-1, *x.shape[1:])
    found = ops.max_pool(rows, return_indices=True, indices="global_4d", **options)[1]
    if x.ndim > 4:  # global_4d leaves the first axis out
        first = np.arange(x.shape[0]).reshape(-1, *(1,) * (x.ndim - 1))
        return np.asarray(found + first * (x.size // x.shape[0]))
    return np.asarray(found)


@pytest.mark.parametrize(("shape", "options"), WINDOWS, ids=str)
def test_derivatives_go_where_the_maxima_stood(
    device: str, shape: tuple[int, ...], options: dict[str, Any]
) -> None:
    x = numbers(shape, 1)
    at = positions(x, options)
    g = numbers(at.shape, 2)
    want = reference.brought_back(g, at, shape, sums=True)
    mode = "global_3d" if options.get("layout") == "NHWC" else None
    _, indices = ops.max_pool(x, return_indices=True, indices=mode, **options)
    np.testing.assert_array_equal(ops.max_pool_grad(g, indices, shape, mode=mode, **options), want)
    _, back = mj.vjp(lambda x: ops.max_pool(x, **options), x)
    np.testing.assert_array_equal(back(g)[0], want)


@pytest.mark.parametrize("mode", INDEX_MODES)
@pytest.mark.parametrize("size", [(2, 3), (1, 3)])
def test_every_index_mode(mode: str, size: tuple[int, int]) -> None:
    x = numbers((2, 2, 5, 7), 3)
    options: dict[str, Any] = {"size": size, "stride": (2, 2), "padding": (0, 1)}
    at = positions(x, options)
    g = numbers(at.shape, 2)
    want = reference.brought_back(g, at, x.shape, sums=True)
    (_, indices), back = mj.vjp(lambda x: ops.max_pool(x, return_indices=True, indices=mode, **options), x)
    np.testing.assert_array_equal(back((g, np.zeros(g.shape, np.int32)))[0], want)
    if mode.endswith("1d") and size[0] > 1:
        with pytest.raises(mj.LaunchFault, match="leaves out a pooled axis"):
            ops.max_pool_grad(g, indices, x.shape, mode=mode, **options)
    else:
        wide = np.asarray(indices).astype(np.int64)
        np.testing.assert_array_equal(ops.max_pool_grad(g, wide, x.shape, mode=mode, **options), want)


@pytest.mark.parametrize("mode", ["global_3d", "local_3d", "global_4d"])
def test_index_modes_where_channels_are_last(device: str, mode: str) -> None:
    x = numbers((2, 5, 6, 3), 3)
    options: dict[str, Any] = {"size": 3, "stride": 2, "padding": "same", "layout": "NHWC"}
    at = positions(x, options)
    g = numbers(at.shape, 2)
    _, indices = ops.max_pool(x, return_indices=True, indices=mode, **options)
    got = ops.max_pool_grad(g, indices, x.shape, mode=mode, **options)
    np.testing.assert_array_equal(got, reference.brought_back(g, at, x.shape, sums=True))
    with pytest.raises(mj.LaunchFault, match="leaves out a pooled axis"):
        ops.max_pool_grad(g, indices, x.shape, mode="global_2d", **options)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.int8, np.uint64])
def test_element_types(device: str, dtype: Any) -> None:
    x = abs(numbers((1, 1, 5, 5), 1))
    options: dict[str, Any] = {"size": 3, "stride": 1}
    at = positions(x, options)
    g = abs(numbers(at.shape, 2)).astype(dtype)
    _, indices = ops.max_pool(x, return_indices=True, **options)
    got = ops.max_pool_grad(g, indices, x.shape, **options)
    assert got.dtype == dtype
    want = reference.brought_back(g.astype(np.float64), at, x.shape, sums=True)
    np.testing.assert_array_equal(np.asarray(got, np.float64), want)


@pytest.mark.parametrize(
    ("shape", "options"), [w for w in WINDOWS if w[1].get("layout") != "NHWC"][:4], ids=str
)
def test_unpooling_and_its_gradient(device: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    x = numbers(shape, 5)
    at = positions(x, options)
    values, indices = ops.max_pool(x, return_indices=True, **options)
    other = numbers(at.shape, 6)  # windows that share an index have other values here
    for given in (np.asarray(values), other):
        got = ops.max_unpool(given, indices, output_size=shape[2:], **options)
        np.testing.assert_array_equal(got, reference.brought_back(given, at, shape, sums=False))
    g = numbers(shape, 7)
    _, back = mj.vjp(lambda v: ops.max_unpool(v, indices, output_size=shape, **options), other)
    np.testing.assert_array_equal(back(g)[0], g.reshape(-1)[at])


def test_the_output_size_of_unpooling(device: str) -> None:
    values, indices = numbers((1, 1, 3), 1), np.array([[[1, 2, 4]]], np.int32)
    assert ops.max_unpool(values, indices, 2).shape == (1, 1, 6)
    for n in (5, 7):
        assert ops.max_unpool(values, indices, 2, output_size=(n,)).shape == (1, 1, n)
    for n in (4, 8):
        with pytest.raises(mj.ShapeError, match="fill 6"):
            ops.max_unpool(values, indices, 2, output_size=(n,))


def test_an_index_outside_of_its_window_counts_nothing(device: str) -> None:
    values = np.ones((1, 1, 4), F)
    indices = np.array([[[0, 1, -1, 99]]], np.int32)
    assert ops.max_unpool(values, indices, 2).tolist() == [[[1, 0, 0, 0, 0, 0, 0, 0]]]
    _, back = mj.vjp(lambda v: ops.max_unpool(v, indices, 2), values)
    assert back(np.arange(8, dtype=F)[None, None])[0].tolist() == [[[0, 1, 0, 0]]]


def test_a_maximum_that_is_nan_or_infinite(device: str) -> None:
    x = np.array([[np.nan, 1, np.inf, -np.inf], [0, 2, np.inf, np.nan]], F)
    _, back = mj.vjp(lambda x: ops.max_pool(x, 2, layout="HW"), x)
    assert back(np.array([[3, 5]], F))[0].tolist() == [[3, 0, 0, 0], [0, 0, 0, 5]]


def test_second_derivatives(device: str) -> None:
    x = np.arange(36, dtype=F).reshape(6, 6) % 7

    def inner(x: Any) -> Any:
        return mj.grad(lambda x: (ops.max_pool(x, 3, stride=2, layout="HW") ** 3).sum())(x)

    got = mj.grad(lambda x: (inner(x) ** 2).sum())(x)
    values, indices = ops.max_pool(x, 3, stride=2, layout="HW", return_indices=True)
    v, at = np.asarray(values, np.float64).reshape(-1), np.asarray(indices).reshape(-1)
    first = reference.brought_back(3 * v**2, at, x.shape, sums=True).reshape(-1)
    want = reference.brought_back(2 * first[at] * 6 * v, at, x.shape, sums=True)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_in_a_trace_for_every_size(device: str) -> None:
    step = mj.jit(mj.grad(lambda x: (ops.max_pool(2 * x, 2, stride=2, padding=1) ** 2).sum()))
    for n in (4, 6, 9):
        x = numbers((1, 2, n, n), n)
        options: dict[str, Any] = {"size": 2, "stride": 2, "padding": 1}
        values = np.asarray(ops.max_pool(2 * x, **options))
        want = 2 * reference.brought_back(2 * values, positions(2 * x, options), x.shape, sums=True)
        np.testing.assert_array_equal(step(x), want)


@pytest.mark.parametrize("memory", LAYOUTS)
def test_every_memory_layout_gives_the_same(memory: str) -> None:
    x = numbers((2, 2, 5, 5), 1)
    options: dict[str, Any] = {"size": 3, "stride": 2, "padding": 1}
    at = positions(x, options)
    g = numbers(at.shape, 2)
    _, indices = ops.max_pool(x, return_indices=True, **options)
    got = ops.max_pool_grad(laid_out(g, memory), laid_out(indices, memory), x.shape, **options)
    np.testing.assert_array_equal(got, reference.brought_back(g, at, x.shape, sums=True))


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x = mj.asarray(numbers((1, 1, 4, 4), 1))
    values, indices = ops.max_pool(x, 2, return_indices=True)
    assert isinstance(ops.max_pool_grad(values, indices, x.shape, 2), mj.Array)
    assert isinstance(ops.max_unpool(values, indices, 2), mj.Array)
    assert ops.max_pool_grad(
        np.zeros((0, 1, 2, 2), F), np.zeros((0, 1, 2, 2), np.int32), (0, 1, 4, 4), 2
    ).shape == (0, 1, 4, 4)


G, AT = np.zeros((1, 1, 2, 2), F), np.zeros((1, 1, 2, 2), np.int32)


@pytest.mark.parametrize(
    ("args", "options", "slug", "words"),
    [
        ((G.astype(np.float64), AT, (1, 1, 4, 4), 2), {}, "no-f64", "`grad`"),
        ((G, AT.astype(F), (1, 1, 4, 4), 2), {}, "op-dtype", "`indices`"),
        ((G[..., :1], AT, (1, 1, 4, 4), 2), {}, "op-shape", "`grad`"),
        ((G, AT[..., :1], (1, 1, 4, 4), 2), {}, "op-shape", "`indices`"),
        ((G, AT, 4, 2), {}, "op-argument", "`shape`"),
        ((G, AT, (4, 4), 2), {}, "op-shape", "2 axes"),
        ((G, AT, (1, 1, 4, 4), 2), {"mode": "global"}, "op-argument", "'global'"),
        ((G, AT, (1, 1, 4, 4), 2), {"mode": "local_1d"}, "op-argument", "leaves out"),
    ],
)
def test_what_makes_no_sense_is_refused(args: Any, options: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        ops.max_pool_grad(*args, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def test_what_unpooling_refuses() -> None:
    with pytest.raises(mj.ShapeError, match="`indices`"):
        ops.max_unpool(G, AT[..., :1], 2)
    with pytest.raises(mj.LaunchFault, match="follows from the output"):
        ops.max_unpool(G, AT, 2, padding="same")  # type: ignore[arg-type]
    with pytest.raises(mj.LaunchFault, match="`output_size` has 3"):
        ops.max_unpool(G, AT, 2, output_size=(1, 2, 3))


def check_mixed() -> None:
    for shape, options in WINDOWS[1:4]:
        x = numbers(shape, 1)
        at = positions(x, options)
        g = numbers(at.shape, 2)
        want = reference.brought_back(g, at, shape, sums=True)
        last = reference.brought_back(g, at, shape, sums=False)
        for mode in ("global_2d", "local_2d"):
            _, indices = ops.max_pool(x, return_indices=True, indices=mode, **options)
            np.testing.assert_array_equal(ops.max_pool_grad(g, indices, shape, mode=mode, **options), want)
            got = ops.max_unpool(g, indices, output_size=shape, mode=mode, **options)
            np.testing.assert_array_equal(got, last)
            _, back = mj.vjp(
                lambda v, i=indices, m=mode, s=shape, o=options: ops.max_unpool(
                    v, i, output_size=s, mode=m, **o
                ),
                g,
            )
            np.testing.assert_array_equal(back(x)[0], x.reshape(-1)[at])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(q[axis] + i32(pads[n])) // stride", "q[axis] // stride"),
        ("distance >= reach", "distance > reach"),
        ("if distance % dilation[n] == 0", "if True"),
        ("hit = hit and c == w", "hit = hit"),
        ("hit and found == I(place)", "hit"),
        ("v + total if sums", "v if sums"),
        ("else v\n", "else v + total\n"),
        ("value=-1)[w]", "value=0)[w]"),
        ("* dilation[n])\n    return x[p]", ")\n    return x[p]"),
        ("i32(left % I(x.shape[axis]))", "i32(left)"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("pooling", old, new)
    with pytest.raises((AssertionError, mj.MetaljitError)):
        check_mixed()
