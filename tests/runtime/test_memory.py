"""Memory of results is used again, never while anyone can see it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import metaljit as mj
from metaljit.runtime import memory

SIDE = 1024
F32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    memory._free.clear()
    yield
    memory._free.clear()


def kept() -> int:
    return sum(size * len(found) for size, found in memory._free.items())


def address(a: NDArray[Any]) -> int:
    return int(a.__array_interface__["data"][0])


def test_the_memory_of_a_dead_result_is_the_next_result() -> None:
    first = memory.empty((SIDE, SIDE), F32)
    first.fill(1)
    place = address(first)
    del first
    assert kept() == SIDE * SIDE * 4
    second = memory.empty((SIDE * 2, SIDE // 2), np.dtype(np.int32))
    assert address(second) == place
    assert kept() == 0
    assert second.shape == (SIDE * 2, SIDE // 2)
    assert second.dtype == np.int32
    assert second.flags.writeable
    assert second.flags.aligned
    assert second.flags.c_contiguous


@pytest.mark.parametrize(
    "view",
    [lambda a: a[5:7, ::-3], lambda a: a.T, lambda a: a.view(np.uint8), lambda a: memoryview(a), np.asarray],
    ids=["slice", "transposed", "bytes", "memoryview", "asarray"],
)
def test_a_view_keeps_the_memory(view: Any) -> None:
    a = memory.empty((SIDE, SIDE), F32)
    a.fill(1)
    seen = view(a)
    del a
    other = memory.empty((SIDE, SIDE), F32)
    other.fill(2)
    assert kept() == 0
    assert not np.shares_memory(np.asarray(seen), other)
    before = np.asarray(seen).view(np.ndarray).copy()
    del other
    memory.empty((SIDE, SIDE), F32).fill(3)
    np.testing.assert_array_equal(np.asarray(seen), before)


def test_small_results_are_numpys_own() -> None:
    a = memory.empty((7, 3), F32)
    assert a.base is None
    assert a.shape == (7, 3)
    del a
    assert kept() == 0


@pytest.mark.parametrize("shape", [(0,), (3, 0, 5), ()])
def test_empty_shapes(shape: tuple[int, ...]) -> None:
    assert memory.empty(shape, F32).shape == shape


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST", 3 << 20)
    arrays = [memory.empty((n << 18,), F32) for n in (1, 1, 1, 2, 4)]
    while arrays:
        arrays.pop()
        assert kept() <= 3 << 20
    assert kept() > 0


def test_no_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="no 4611686018427387904 bytes"):
        memory.empty((1 << 60,), F32)


def test_results_of_calls_do_not_share_memory() -> None:
    @mj.jit
    def f(x: Any) -> Any:
        return np.exp(x) + 1, x * 2

    x = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    held = [f(x * k) for k in np.arange(3, dtype=np.float32)]
    for k, (a, b) in enumerate(held):
        np.testing.assert_allclose(a, np.exp(x * np.float32(k)) + 1, rtol=1e-6)
        np.testing.assert_array_equal(b, x * np.float32(k) * 2)
    everything = [a for pair in held for a in pair]
    for k, a in enumerate(everything):
        assert not any(np.shares_memory(a, b) for b in everything[:k])


def test_a_result_may_be_the_next_argument_and_then_the_next_memory() -> None:
    @mj.jit
    def f(x: Any) -> Any:
        return x[::-1] + 1

    x = wanted = np.random.default_rng(0).random((SIDE * SIDE,), np.float32)
    for _ in range(7):
        x, wanted = f(x), wanted[::-1] + np.float32(1)
        np.testing.assert_array_equal(x, wanted)
