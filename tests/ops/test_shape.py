"""Shapes, joins and places against NumPy: values, views, gradients, sizes in traces, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from samples import BF16, LAYOUTS, Array, assert_same, laid_out, sample

import metaljit as mj
from metaljit import ops

DTYPES = [np.float32, np.float16, BF16, np.int64, np.uint8, np.bool_]


def to_depth(x: Array, b: int, pixel_shuffle: bool) -> Array:
    n, h, w, c = x.shape
    made = x.reshape(n, h // b, b, w // b, b, c)
    order = (0, 1, 3, 5, 2, 4) if pixel_shuffle else (0, 1, 3, 2, 4, 5)
    return made.transpose(order).reshape(n, h // b, w // b, -1)


def there_and_back(layout: str, pixel_shuffle: bool) -> tuple[Callable[[Any], Any], Callable[[Array], Array]]:
    """Into the channels and out of them."""
    shape = (4, 2, 3) if layout == "HWC" else (3, 4, 2)

    def call(x: Any) -> Any:
        deep = ops.space_to_depth(ops.reshape(x, shape), 2, layout=layout, pixel_shuffle=pixel_shuffle)
        return ops.depth_to_space(deep, 2, layout=layout, pixel_shuffle=pixel_shuffle)

    return call, lambda x: x.reshape(shape)


VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "expand_dims": (lambda x: ops.expand_dims(x, (0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    "squeeze": (lambda x: ops.squeeze(ops.reshape(x, (1, 4, 1, 6)), 2), lambda x: x.reshape(1, 4, 6)),
    "squeeze all": (lambda x: ops.squeeze(ops.expand_dims(x, 1)), lambda x: x),
    "reshape": (lambda x: ops.reshape(x, (3, -1, 2)), lambda x: x.reshape(3, -1, 2)),
    "flat": (lambda x: ops.reshape(x, -1), lambda x: x.reshape(-1)),
    "transpose": (lambda x: ops.transpose(x, (-1, 0)), lambda x: x.T),
    "opposite": (lambda x: ops.transpose(x), lambda x: x.T),
    "flip": (lambda x: ops.flip(x, 1), lambda x: x[:, ::-1]),
    "flip all": (lambda x: ops.flip(x), lambda x: x[::-1, ::-1]),
    "broadcast_to": (lambda x: ops.broadcast_to(ops.expand_dims(x, 1), (2, 4, 3, 6)),
                     lambda x: np.broadcast_to(x[:, None], (2, 4, 3, 6))),
    "slice": (lambda x: ops.slice(x, (1, -1), (3, 0), (1, -2)), lambda x: x[1:3, -1:0:-2]),
    "slice ends": (lambda x: ops.slice(x, (None, -9), (99, None), squeeze=(0,)), lambda x: x[0, -9:]),
    "slice nothing": (lambda x: ops.slice(x, (3, 0), (1, 6)), lambda x: x[3:1]),
    "split": (lambda x: ops.split(x, 3, 1)[1], lambda x: np.split(x, 3, 1)[1]),
    "split sizes": (lambda x: ops.split(x, [1, 0, 3])[2], lambda x: x[1:]),
}  # fmt: skip
MOVES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "concatenate": (lambda x: ops.concatenate([x, ops.slice(x, (0, 0), (4, 2))], 1),
                    lambda x: np.concatenate([x, x[:, :2]], 1)),
    "interleave": (lambda x: ops.concatenate([x, ops.flip(x)], -1, interleave=True),
                   lambda x: np.stack([x, np.flip(x)], 2).reshape(4, 12)),
    "stack": (lambda x: ops.stack([x, ops.flip(x)], 1), lambda x: np.stack([x, np.flip(x)], 1)),
    "tile": (lambda x: ops.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tile none": (lambda x: ops.tile(x, 0), lambda x: np.tile(x, 0)),
    "repeat": (lambda x: ops.repeat(x, 2, 0), lambda x: np.repeat(x, 2, 0)),
    "repeat flat": (lambda x: ops.repeat(x, 3), lambda x: np.repeat(x, 3)),
    "roll": (lambda x: ops.roll(x, (1, -8), (0, 1)), lambda x: np.roll(x, (1, -8), (0, 1))),
    "roll flat": (lambda x: ops.roll(x, 5), lambda x: np.roll(x, 5)),
    "space_to_depth": (lambda x: ops.space_to_depth(ops.reshape(x, (1, 4, 2, 3)), 2),
                       lambda x: to_depth(x.reshape(1, 4, 2, 3), 2, False)),
    "pixel_unshuffle": (lambda x: ops.space_to_depth(ops.reshape(x, (1, 4, 2, 3)), 2, pixel_shuffle=True),
                        lambda x: to_depth(x.reshape(1, 4, 2, 3), 2, True)),
    **{f"depth_to_space {shuffle} {layout}": there_and_back(layout, shuffle)
       for shuffle in (False, True) for layout in ("HWC", "CHW")},
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_numpys(name: str) -> None:
    call, want = VIEWS[name]
    for dtype in DTYPES:
        for layout in LAYOUTS:
            x = laid_out(sample(dtype, (4, 6), 1, True), layout)
            assert_same(call(x), want(x))
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.shares_memory(call(x), x) == bool(want(x).size)


@pytest.mark.parametrize("name", [*VIEWS, *MOVES])
def test_in_a_trace_on_a_device_and_their_derivatives(device: str, name: str) -> None:
    call, want = {**VIEWS, **MOVES}[name]
    x = np.random.default_rng(0).uniform(-2, 2, (4, 6)).astype(np.float32)
    assert_same(mj.jit(lambda x: call(x * 2) + 1)(x), want(x * 2) + 1)
    there = call(mj.asarray(x))
    assert isinstance(there, mj.Array)
    assert_same(there, want(x))
    # The derivative of a sum of chosen elements adds up where these come from.
    places = np.arange(24, dtype=np.float32).reshape(4, 6)
    g = np.random.default_rng(1).uniform(-1, 1, want(x).shape).astype(np.float32)
    summed = np.zeros(24, np.float32)
    np.add.at(summed, want(places).astype(np.int64).reshape(-1), g.reshape(-1))
    np.testing.assert_allclose(
        mj.vjp(lambda x: call(x), x)[1](g)[0].reshape(-1), summed, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("name", MOVES)
def test_moved_elements_are_numpys(device: str, name: str) -> None:
    call, want = MOVES[name]
    for dtype, layout in zip(DTYPES[::2], LAYOUTS[1:4], strict=True):
        x = laid_out(sample(dtype, (4, 6), 1, True), layout)
        assert_same(call(x), want(x))


def test_where(device: str) -> None:
    x = sample(np.float32, (3, 4), 1, True)
    for c in (x > 0, sample(np.int32, (4,), 2, False) % 2, np.array(True)):
        assert_same(ops.where(c, x, x[:, :1]), np.where(c, x, x[:, :1]))
        assert_same(ops.where(c, x, 2), np.where(c, x, np.float32(2)))
    assert_same(ops.where(x > 0, np.int8(3), np.array([1], np.int16)), np.where(x > 0, 3, 1).astype(np.int16))
    _, back = mj.vjp(lambda a, b: ops.where(x > 0, a, b), x, x[:, :1])
    ga, gb = back(np.ones_like(x))
    assert_same(ga, (x > 0).astype(np.float32))
    assert_same(gb, (~(x > 0)).sum(1, keepdims=True).astype(np.float32))


def test_one_hot(device: str) -> None:
    at = np.array([[0, 2, -1], [3, 1, 2]])
    want = np.where(at[..., None] == np.arange(3), 1, 0).astype(np.float32)
    assert_same(ops.one_hot(at, 3), want)
    got = ops.one_hot(at.astype(np.int32), 3, axis=0, on=5, off=-1, dtype=np.int16)
    assert_same(got, np.moveaxis(np.where(want == 1, 5, -1), -1, 0).astype(np.int16))
    assert_same(mj.jit(lambda at: ops.one_hot(at, 3) * 2)(at), 2 * want)


def test_places(device: str) -> None:
    for axis in (0, 1, -1):
        assert_same(ops.coordinates((2, 3, 4), axis), np.indices((2, 3, 4), np.int32)[axis])
    assert_same(ops.coordinates((2, 0), 0, dtype=np.float16), np.zeros((2, 0), np.float16))
    for given in ((7,), (3, 20, 4), (5, -6, -2), (5, 5), (5, 1), (2**31 - 3, 2**31 - 1)):
        assert_same(ops.arange(*given), np.arange(*given, dtype=np.int32))
    assert_same(ops.arange(2**40, 2**40 + 9, 4, dtype=np.int64), np.arange(2**40, 2**40 + 9, 4))
    assert_same(ops.arange(0.5, 2.25, 0.25), np.arange(0.5, 2.25, 0.25, dtype=np.float32))
    assert_same(ops.arange(-3, 3, dtype=np.float16), np.arange(-3, 3, dtype=np.float16))
    for n, endpoint in ((50, True), (7, False), (1, True), (0, True)):
        got = ops.linspace(-0.3, 1.7, n, endpoint=endpoint)
        assert got.shape == (n,)
        np.testing.assert_allclose(got, np.linspace(-0.3, 1.7, n, endpoint), rtol=3e-6, atol=1e-6)
    assert ops.linspace(-0.3, 1.7, 10**5)[-1] == np.float32(1.7)


def test_places_of_a_trace_follow_its_sizes(device: str) -> None:
    @mj.jit
    def ramp(x: Any) -> Any:
        return x + ops.coordinates(x.shape, 1) + ops.arange(3)[0] * ops.linspace(0, 1, 2)[1]

    for shape in ((2, 3), (5, 9)):
        x = np.ones(shape, np.float32)
        np.testing.assert_allclose(ramp(x), 1 + np.indices(shape)[1])


F = np.zeros((3, 4), np.float32)
HALF: Any = 0.5
TRUE: Any = True


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.expand_dims(F, 3), "op-argument", "3 axes"),
        (lambda: ops.expand_dims(F, (0, 0)), "op-argument", "twice"),
        (lambda: ops.squeeze(F, 0), "op-shape", "3 elements"),
        (lambda: ops.squeeze(F.astype(np.float64)), "no-f64", "float64"),
        (lambda: ops.reshape(F, (5, -1)), "op-shape", "12 elements"),
        (lambda: ops.reshape(F, (-1, -1)), "op-shape", "only one"),
        (lambda: ops.reshape(F, (-2, 3)), "op-argument", "-2"),
        (lambda: ops.transpose(F, (0, 0)), "op-argument", "(0, 0)"),
        (lambda: ops.flip(F, 2), "op-argument", "2 axes"),
        (lambda: ops.broadcast_to(F, (3, 5)), "op-shape", "(3, 5)"),
        (lambda: ops.broadcast_to(F, (4,)), "op-shape", "(4,)"),
        (lambda: ops.slice(F, (0,), (1,)), "op-shape", "1 entries"),
        (lambda: ops.slice(F, (0, 0), (1, 1), (0, 1)), "op-argument", "a 0"),
        (lambda: ops.slice(F, (0, HALF), (1, 1)), "op-argument", "0.5"),
        (lambda: ops.slice(F, (3, 0), (9, 9), squeeze=(0,)), "op-argument", "element 3"),
        (lambda: ops.split(F, 2), "op-shape", "2 equal parts"),
        (lambda: ops.split(F, [1, 1]), "op-shape", "[1, 1]"),
        (lambda: ops.split(F, [4, -1]), "op-argument", "-1"),
        (lambda: ops.concatenate([]), "op-argument", "at least one"),
        (lambda: ops.concatenate([F, F[:, :3]]), "op-shape", "(3, 3)"),
        (lambda: ops.concatenate([F, F[0]]), "op-shape", "(4,)"),
        (lambda: ops.stack([F, F[:, :3]]), "op-shape", "(3, 3)"),
        (lambda: ops.stack([F], 3), "op-argument", "3 axes"),
        (lambda: ops.tile(F, -1), "op-argument", "-1"),
        (lambda: ops.repeat(F, 2, 5), "op-argument", "5"),
        (lambda: ops.roll(F, (1, 2), (0,)), "op-argument", "2 numbers"),
        (lambda: ops.where(F > 0, F, F[:, :3]), "op-shape", "broadcast"),
        (lambda: ops.where(TRUE, F, F), "op-dtype", "bool"),
        (lambda: ops.one_hot(F, 3), "op-dtype", "float32"),
        (lambda: ops.one_hot(F.astype(np.int32), 0), "op-argument", "at least 1"),
        (lambda: ops.space_to_depth(F[None, ..., None], 2), "op-shape", "3 elements"),
        (lambda: ops.space_to_depth(F, 2, layout="HWC"), "op-shape", "3 axes"),
        (lambda: ops.space_to_depth(F, 2, layout="HW"), "op-argument", "'HW'"),
        (lambda: ops.depth_to_space(F[None, None], 3), "op-shape", "4 channels"),
        (lambda: ops.coordinates((2, 3), 2), "op-argument", "2 axes"),
        (lambda: ops.arange(1, 5, 0), "op-argument", "0"),
        (lambda: ops.arange("a"), "op-argument", "'a'"),
        (lambda: ops.arange(3, dtype=np.float64), "no-f64", "float64"),
        (lambda: ops.linspace(0, 1, -1), "op-argument", "-1"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(call: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert words in str(caught.value)


def test_a_planted_mistake_is_found(mutate: Any) -> None:
    mutate("arrange", "first + position()", "first - position()")
    with pytest.raises(AssertionError):
        assert_same(ops.arange(3), np.arange(3, dtype=np.int32))
