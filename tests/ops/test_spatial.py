"""ops.hash_grid_… and ops.resize against plain references: values, gradients, conventions, and what they refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from samples import BF16, laid_out

import metaljit as mj
from metaljit.stdlib_ops.reference import spatial as reference
from metaljit.stdlib_ops.spatial import COORDINATES, ROUNDINGS

ops = mj.ops
F = np.float32


def grid(
    dims: int, levels: int, rows: int, features: int, count: int = 7, seed: int = 0
) -> tuple[Any, Any, Any]:
    """Places, a table, and derivatives by the features."""
    rng = np.random.default_rng(seed)
    x = rng.random((count, dims), F)
    x[0], x[1] = 0, 1  # where cells begin, and the end of the last one
    x[2, 0] = 0.5
    table = rng.standard_normal((levels, rows, features)).astype(F)
    return x, table, rng.standard_normal((count, levels * features)).astype(F)


@pytest.mark.parametrize(
    ("dims", "rows", "features", "levels"),
    [(1, 8, 2, (2, 40)), (2, 67, 1, (4, 7, 50)), (3, 128, 3, (3, 4, 20)), (4, 90, 2, (2, 5))],
)
def test_values_and_gradients(
    device: str, dims: int, rows: int, features: int, levels: tuple[int, ...]
) -> None:
    x, table, g = grid(dims, len(levels), rows, features)

    @mj.jit
    def both(x: Any, table: Any, g: Any) -> Any:
        found, pull = mj.vjp(lambda x, table: ops.hash_grid_encode(x, table, levels), x, table)
        return found, *pull(g)

    want = reference.hash_grid(x, table, levels, g)
    for found, e, atol in zip(both(x, table, g), want, (1e-5, 1e-4 * max(levels), 1e-5), strict=True):
        np.testing.assert_allclose(found, e, rtol=1e-5, atol=atol)
    np.testing.assert_allclose(ops.hash_grid_encode(x, table, levels), want[0], rtol=1e-5, atol=1e-5)


def test_rows_and_weights_are_those_that_are_read(device: str) -> None:
    x = grid(2, 2, 30, 2)[0]
    rows, weights = ops.hash_grid_corners(x, 30, (4, 16))
    for b, (level, resolution) in itertools.product(range(len(x)), enumerate((4, 16))):
        for c, (row, weight, _) in enumerate(reference.corners(x[b], resolution, 30)):
            assert rows[b, level, c] == row
            assert abs(weights[b, level, c] - weight) < 1e-5
    assert rows.dtype == np.uint32
    assert weights.dtype == F
    points = np.array([[0, 0], [4, 4], [3, 5]], np.uint32)
    for resolution in (4, 2**31 - 1):
        found = ops.hash_grid_index(points, resolution, 25)
        assert found.tolist() == [reference.row(p, resolution, 25) for p in points.tolist()]


def test_places_in_any_shape_type_and_layout() -> None:
    x, table, _ = grid(2, 2, 30, 2, count=12)
    want = reference.hash_grid(x, table, (4, 16), np.zeros((12, 4)))[0]
    found = ops.hash_grid_encode(
        laid_out(x.reshape(3, 4, 2), "strided"), laid_out(table, "reversed"), [4, 16]
    )
    np.testing.assert_allclose(found, want.reshape(3, 4, 4), atol=1e-5)
    assert isinstance(ops.hash_grid_encode(mj.asarray(x), mj.asarray(table), [4, 16]), mj.Array)
    assert ops.hash_grid_encode(np.zeros((0, 2), F), table, (4, 16)).shape == (0, 4)
    for dtype, atol in ((np.float16, 4e-3), (BF16, 3e-2)):
        half = ops.hash_grid_encode(x, table.astype(dtype), (4, 16))
        assert half.dtype == dtype
        np.testing.assert_allclose(half.astype(F), want, atol=atol)


def test_what_is_no_place_harms_no_other() -> None:
    x, table, _ = grid(2, 2, 30, 2)
    want = ops.hash_grid_encode(x, table, (4, 16))
    x[3:6, 0] = [np.nan, np.inf, -1e30]
    found = ops.hash_grid_encode(x, table, (4, 16))
    np.testing.assert_array_equal(found[[0, 1, 2, 6]], want[[0, 1, 2, 6]])
    assert np.isnan(found[3]).all()


@pytest.mark.parametrize(
    ("x", "table", "levels", "slug", "words"),
    [
        (np.zeros((3, 2)), np.zeros((1, 4, 2), F), [4], "no-f64", "`x`"),
        (np.zeros((3, 2), F), np.zeros((1, 4, 2), np.int32), [4], "op-dtype", "`table`"),
        (np.zeros((3, 8), F), np.zeros((1, 4, 2), F), [4], "op-shape", "1 to 7"),
        (np.zeros((), F), np.zeros((1, 4, 2), F), [4], "op-shape", "1 to 7"),
        (np.zeros((3, 2), F), np.zeros((4, 2), F), [4], "op-shape", "three axes"),
        (np.zeros((3, 2), F), np.zeros((2, 4, 2), F), [4], "op-shape", "1 resolutions"),
        (np.zeros((3, 2), F), np.zeros((1, 0, 2), F), [4], "op-shape", "no rows"),
        (np.zeros((3, 2), F), np.zeros((1, 4, 2), F), [0], "op-argument", "at least 1"),
        (np.zeros((3, 2), F), np.zeros((1, 4, 2), F), [1.5], "op-argument", "1.5"),
        (np.zeros((3, 2), F), np.zeros((1, 4, 2), F), 4, "op-argument", "one for each level"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(
    x: Any, table: Any, levels: Any, slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        ops.hash_grid_encode(x, table, levels)
    assert caught.value.slug == slug
    assert words in str(caught.value)


# ---- other sizes ----


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resized_by_means(device: str, coordinates: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(F)
    for sizes in ((5, 7), (3, 4), (12, 1), (1, 9)):
        want = reference.resize(x, sizes[0], 1, "bilinear", coordinates)
        want = reference.resize(want, sizes[1], 2, "bilinear", coordinates)
        np.testing.assert_allclose(ops.resize(x, sizes, coordinates=coordinates), want, atol=2e-6)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_resized_by_the_nearest(rounding: str) -> None:
    x = np.arange(40, dtype=np.int16).reshape(8, 5)
    for coordinates, size in itertools.product(COORDINATES, (1, 3, 4, 8, 16)):
        want = reference.resize(x, size, 0, "nearest", coordinates, rounding)
        found = ops.resize(x, size, mode="nearest", coordinates=coordinates, rounding=rounding, axes=0)
        np.testing.assert_array_equal(found, want)


def test_the_axes_that_are_named(device: str) -> None:
    x = np.random.default_rng(0).random((4, 3, 5, 2), F)
    want = reference.resize(
        reference.resize(x, 6, 2, "bilinear", "half_pixel"), 3, 0, "bilinear", "half_pixel"
    )
    found = ops.resize(laid_out(x, "reversed"), (6, 3), axes=(2, 0))
    np.testing.assert_allclose(found, want, atol=2e-6)
    assert isinstance(ops.resize(mj.asarray(x), 3), mj.Array)
    assert ops.resize(x[:0], 7).shape == (0, 3, 5, 7)
    half = ops.resize(x.astype(np.float16), 7)
    assert half.dtype == np.float16
    assert ops.resize(np.array([True, False]), 4, mode="nearest").tolist() == [True, True, False, False]


def test_the_gradient_of_resizing(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(F)
    g = np.random.default_rng(1).standard_normal((5, 3)).astype(F)
    found = mj.grad(lambda x: (ops.resize(x, (5, 3)) * g).sum())(x)
    want = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        unit = np.zeros(x.shape)
        unit[at] = 1
        for axis, size in enumerate((5, 3)):
            unit = reference.resize(unit, size, axis, "bilinear", "half_pixel")
        want[at] = (unit * g).sum()
    np.testing.assert_allclose(found, want, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "size", "options", "slug", "words"),
    [
        (np.zeros((3, 3)), 2, {}, "no-f64", "float64"),
        (np.zeros((3, 3), np.int32), 2, {}, "op-dtype", "int32"),
        (np.zeros((3, 3), F), 0, {}, "op-argument", "at least 1"),
        (np.zeros((3, 3), F), (2, 2, 2), {}, "op-argument", "3 numbers"),
        (np.zeros((3, 3), F), (2, 2), {"axes": 0}, "op-argument", "names 1"),
        (np.zeros((3, 3), F), (2, 2), {"axes": (0, -2)}, "op-argument", "twice"),
        (np.zeros((3, 0), F), 2, {}, "op-shape", "no elements"),
        (np.zeros((3, 3), F), 2, {"mode": "cubic"}, "op-argument", "'cubic'"),
        (np.zeros((3, 3), F), 2, {"coordinates": "corner"}, "op-argument", "'corner'"),
        (np.zeros((3, 3), F), 2, {"rounding": "up"}, "op-argument", "'up'"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(
    x: Any, size: Any, options: Any, slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        ops.resize(x, size, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


# ---- mutants ----


def check_all() -> None:
    test_values_and_gradients("cpu", 2, 67, 1, (4, 50))
    test_resized_by_means("cpu", "half_pixel")
    test_resized_by_the_nearest("even")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "stride *= resolution + u32(1)\n        hashed = hashed ^ (g",
            "stride *= resolution\n        hashed = hashed ^ (g",
        ),
        ("return l * R + i32(row), weight", "return i32(row), weight"),
        ("if d != axis:", "if d <= axis:"),
        ("at - base if up == 1 else 1 - (at - base)", "1 - (at - base) if up == 1 else at - base"),
        ("* scale - 0.5 if", "* scale if"),
        ("near = rint(at)", "near = floor(at + 0.5)"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("spatial", old, new)
    with pytest.raises(AssertionError):
        check_all()
