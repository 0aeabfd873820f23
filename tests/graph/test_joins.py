"""Arrays of several, padded ones, changed parts and index arrays: NumPy's numbers, fused or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from changes import added, changed

import metaljit as mj
from metaljit import ops


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


AT: Any = np.array([2, 0, -1, 2], np.int32)
GRID: Any = np.array([[0, 3], [-2, 1]], np.int32)


def padded(mode: Any) -> Callable[[Any], Any]:
    return lambda x: np.pad(x, ((9, 2), (5, 13)), mode=mode)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "concatenate": (lambda x, y: np.concatenate([x, y, x * 2]), (a(3, 4), a(2, 4))),
    "concatenate columns": (lambda x, y: np.concatenate([x, y], axis=-1)[:, 1:6] * 2, (a(3, 4), a(3, 5))),
    "concatenate none": (lambda x, y: np.concatenate([x, y]), (a(0, 4), a(2, 4))),
    "types": (lambda x, y: np.concatenate([x, y]), (a(3), np.arange(4, dtype=np.float16))),
    "stack": (lambda x, y: np.stack([x, y, x - y], axis=1), (a(3, 4), a(3, 4, seed=1))),
    "split": (lambda x: np.split(x, 3, axis=1)[1] * 2 - np.split(x, [2, 4], axis=1)[0], (a(3, 6),)),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=7.5), (a(3, 4),)),
    "pad all": (lambda x: np.pad(np.exp(x), 2) * 2, (a(5),)),
    **{f"pad {mode}": (padded(mode), (a(3, 4),)) for mode in ("edge", "reflect", "symmetric", "wrap")},
    "pad one": (lambda x: np.pad(x, 3, mode="reflect"), (a(1),)),
    "roll": (lambda x: np.roll(x, 1, axis=0) + np.roll(x, -7, axis=1) + np.roll(x, 3), (a(3, 4),)),
    "tile": (lambda x: np.tile(x, (2, 1, 3)), (a(3, 4),)),
    "repeat": (lambda x: np.repeat(x, 3, axis=1)[:, 1:] - np.repeat(x, 3, axis=1)[:, :-1], (a(3, 4),)),
    "diff": (lambda x: np.diff(x, axis=0) * np.diff(x, n=1, axis=0), (a(6, 4),)),
    "take": (lambda x, i: np.take(x, i, axis=1) * x.sum(axis=1, keepdims=True), (a(3, 4), AT)),
    "take flat": (lambda x, i: np.take(x, i), (a(3, 4), GRID)),
    "index array": (lambda x, i: x[i] + x[i * 0], (a(3, 4), AT)),
    "index columns": (lambda x, i: (x * 2)[:, i, 1:], (a(2, 4, 3), GRID)),
    "index pairs": (lambda x, i: x[:, i, i + 1], (a(2, 4, 5), GRID)),
    "u8 indices": (lambda x, i: x[i], (a(9), np.array([8, 0], np.uint8))),
    "gathered stencil": (lambda x, i: ops.laplacian(x[i]), (a(9, 8), np.arange(8, -1, -1, dtype=np.int32))),
    "stencil of a frame": (lambda x: ops.laplacian(np.pad(x * 2, 1))[1:-1, 1:-1], (a(7, 8),)),
    "set": (lambda x: changed(x, (slice(1, None), slice(None, None, 2)), -1), (a(3, 5),)),
    "set backwards": (lambda x, y: changed(x, (slice(None), slice(None, None, -2)), y), (a(3, 5), a(3, 3))),
    "set a row": (lambda x, y: changed(x, -1, y), (a(3, 5), a(5))),
    "add a slice": (lambda x: added(x, (slice(None), slice(1, 3)), x[:, :1]), (a(3, 5),)),
    "add at": (lambda x, i, y: added(x, i, y), (a(3, 5), AT, a(4, 5))),
    "add at one": (lambda x, i: added(x, i, 1) * 2, (a(9), GRID)),
    "add at none": (lambda x, i, y: added(x, i, y) * 2, (a(3, 5), AT[:0], a(0, 5))),
    "set none": (lambda x: changed(x, slice(4, 2), 9), (a(5),)),
}


@pytest.mark.parametrize("name", CASES)
def test_numpys_numbers(name: str, device: str) -> None:
    function, args = CASES[name]
    want = function(*args)
    with mj.use_device(device):
        fused, alone = mj.jit(function)(*args), mj.jit(fuse=False)(function)(*args)
    assert fused.dtype == want.dtype
    np.testing.assert_allclose(fused, want, rtol=3e-6, atol=1e-5)
    assert fused.shape == want.shape
    assert fused.tobytes() == alone.tobytes()


def test_an_index_outside_gives_zero_and_adds_nothing() -> None:
    x, at = a(4), np.array([9, 1, -5, 4, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(mj.jit(lambda x, at: x[at])(x, at), [0, x[1], 0, 0, 0, 0])
    np.testing.assert_array_equal(
        mj.jit(lambda x, at: x.at[at].add(1))(x, at), x + np.array([0, 1, 0, 0], np.float32)
    )
    pairs = mj.jit(lambda x, i, j: x[i, j])(
        a(2, 3), np.array([0, 0, 5], np.int32), np.array([3, 2, 0], np.int32)
    )
    np.testing.assert_array_equal(pairs, [0, a(2, 3)[0, 2], 0])


def test_wide_indices_are_not_cut() -> None:
    x, at = a(4), np.array([2**32 + 1, 2, -1], np.int64)
    np.testing.assert_array_equal(mj.jit(lambda x, at: x[at])(x, at), [0, x[2], x[3]])


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float16", "float32"])
def test_adding_at_equal_indices_adds_all(dtype: str, device: str) -> None:
    at = np.random.default_rng(0).integers(0, 5, 1000).astype(np.int32)
    with mj.use_device(device):
        counts = mj.jit(lambda x, at: x.at[at].add(1))(np.zeros(5, dtype), at)
    assert counts.dtype == dtype
    np.testing.assert_array_equal(counts, np.bincount(at, minlength=5))


def test_a_joined_array_is_one_kernel() -> None:
    x = a(3, 4)
    made = mj.jit(lambda x: np.concatenate([x * 2, np.exp(x)]) + 1)
    assert "1 kernel\n" in made.explain(x)


MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "assign": (lambda x: x.__setitem__(0, 1), "traced-assign"),
    "mode": (lambda x: np.pad(x, 1, mode="mean"), "bad-padding"),
    "width": (lambda x: np.pad(x, -1), "bad-padding"),
    "floats": (lambda x: x[x], "index-dtype"),
    "mask": (lambda x: x[x > 0], "index-dtype"),
    "apart": (lambda x: x[:, None][AT, None, AT], "bad-index"),
    "ranks": (lambda x: np.concatenate([x, x[None]]), "shape-mismatch"),
    "split": (lambda x: np.split(x, 2), "bad-shape"),
    "rows": (lambda x: np.concatenate([x[None], np.ones((1, 4), np.float32)]), "extent-mismatch"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str) -> None:
    function, slug = MISTAKES[name]
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(function)(a(3))
    assert caught.value.slug == slug


def test_a_part_at_a_traced_index_is_changed(device: str) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    keys: list[Any] = [
        lambda t: t,
        lambda t: (slice(None), t),
        lambda t: (t, slice(1, None, 2)),
        lambda t: (t, 2),
    ]
    with mj.use_device(device):
        for key in keys:
            for t in (1, -1, 9):
                want = x.copy()
                if t != 9:  # outside nothing is set
                    want[key(t)] = 7
                found = mj.jit(lambda x, t, key=key: x.at[key(t)].set(7))(x, np.int32(t))
                np.testing.assert_array_equal(found, want)
        added = mj.jit(lambda x, t: x.at[t].add(x[0]))(x, np.int32(2))
    np.testing.assert_array_equal(added, x + np.array([[0] * 4, [0] * 4, [0, 1, 2, 3]]))
    with pytest.raises(mj.TypeFault):
        mj.jit(lambda x, t: x.at[t].set(7))(x, np.float32(1))
