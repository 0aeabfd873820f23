"""The shim's atomic functions: their results one at a time, and nothing lost between threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shim_calls import Array, build, call, function

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}
TYPES: dict[str, type[np.integer[Any]]] = {"int": np.int32, "uint": np.uint32}
THREADS, ROUNDS = 2, 1 << 20
RELAXED = "metal::memory_order_relaxed"
# The threads wait for each other inside the library: no interpreter lock, no start of a thread between them.
MEET = f"""metal::atomic_fetch_add_explicit(gate, 1u, {RELAXED});
    while (metal::atomic_load_explicit(gate, {RELAXED}) < {THREADS}u) {{}}
    for (uint i = 0; i < n; i++) """
GATE = "device metal::atomic_uint *gate"


def functions() -> list[str]:
    texts = []
    for t in TYPES:
        p, word = f"device metal::atomic_{t} *p", f"device {t} *"
        old, value, each = f"{word}o", f"{word}v", "for (uint i = 0; i < n; i++) "
        for name in OPERATIONS:
            step = f"o[i] = metal::atomic_fetch_{name}_explicit(p, v[i], {RELAXED});"
            texts.append(function(f"{name}_{t}", [old, p, value], each + step))
            texts.append(function(f"together_{name}_{t}", [old, p, value, GATE], MEET + step))
        exchange = f"o[i] = metal::atomic_exchange_explicit(p, v[i], {RELAXED});"
        cas = (
            "done[0] = metal::atomic_compare_exchange_weak_explicit"
            f"(p, expected, desired[0], {RELAXED}, {RELAXED});"
        )
        texts += [
            function(f"load_{t}", [old, p], f"o[0] = metal::atomic_load_explicit(p, {RELAXED});"),
            function(f"store_{t}", [value, p], f"metal::atomic_store_explicit(p, v[0], {RELAXED});"),
            function(f"exchange_{t}", [old, p, value], each + exchange),
            function(f"together_exchange_{t}", [old, p, value, GATE], MEET + exchange),
            function(f"cas_{t}", [f"{word}done", p, f"{word}expected", f"{word}desired"], cas),
        ]
    add_float = f"""{{
        uint old = metal::atomic_load_explicit(p, {RELAXED});
        while (!metal::atomic_compare_exchange_weak_explicit(
            p, &old, as_type<uint>(as_type<float>(old) + 1.0f), {RELAXED}, {RELAXED})) {{}}
    }}"""
    texts.append(function("together_float", ["device metal::atomic_uint *p", GATE], MEET + add_float))
    return texts


@pytest.fixture(scope="session")
def lib() -> Any:
    return build(functions())


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_fetch_gives_the_old_value_and_stores_the_new(lib: Any, t: str, name: str) -> None:
    dtype = TYPES[t]
    values = np.array([5, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 1, 12345, 0], np.uint32).view(dtype)
    word, old = np.array([7], dtype), np.empty(values.size, dtype)
    call(lib, f"{name}_{t}", values.size, old, word, values)
    current, want = 7, []
    for value in values.tolist():
        want.append(current)
        current = int(np.array([OPERATIONS[name](current, value) & 0xFFFFFFFF], np.uint32).view(dtype)[0])
    assert old.tolist() == want
    assert word.tolist() == [current]


@pytest.mark.parametrize("t", TYPES)
def test_load_store_and_exchange(lib: Any, t: str) -> None:
    dtype = TYPES[t]
    word, out = np.array([1], dtype), np.empty(2, dtype)
    call(lib, f"store_{t}", 1, np.array([42], dtype), word)
    call(lib, f"load_{t}", 1, out, word)
    assert (word[0], out[0]) == (42, 42)
    call(lib, f"exchange_{t}", 2, out, word, np.array([3, 4], dtype))
    assert (out.tolist(), word[0]) == ([42, 3], 4)


@pytest.mark.parametrize("t", TYPES)
def test_compare_exchange(lib: Any, t: str) -> None:
    dtype = TYPES[t]
    word, expected, desired, done = (np.array([v], dtype) for v in (9, 8, 10, 77))
    call(lib, f"cas_{t}", 1, done, word, expected, desired)
    assert (done[0], word[0], expected[0]) == (0, 9, 9)
    while not done[0]:  # may fail for no reason
        call(lib, f"cas_{t}", 1, done, word, expected, desired)
    assert (word[0], expected[0]) == (10, 9)


def together(lib: Any, name: str, *arrays: Callable[[int], Array]) -> None:
    """Runs a function in several threads at once; ctypes lets go of the interpreter lock."""
    gate = np.zeros(1, np.uint32)

    def run(k: int) -> None:
        call(lib, f"together_{name}", ROUNDS, *(array(k) for array in arrays), gate)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("t", TYPES)
def test_no_addition_is_lost_between_threads(lib: Any, t: str) -> None:
    word, ones = np.zeros(1, TYPES[t]), np.ones(ROUNDS, TYPES[t])
    olds = np.empty((THREADS, ROUNDS), TYPES[t])
    together(lib, f"add_{t}", lambda k: olds[k], lambda k: word, lambda k: ones)
    assert word[0] == THREADS * ROUNDS
    assert np.array_equal(np.sort(olds.ravel()), np.arange(THREADS * ROUNDS))


def test_no_exchanged_value_is_lost_between_threads(lib: Any) -> None:
    values = np.arange(1, THREADS * ROUNDS + 1, dtype=np.uint32).reshape(THREADS, ROUNDS)
    word, olds = np.zeros(1, np.uint32), np.empty_like(values)
    together(lib, "exchange_uint", lambda k: olds[k], lambda k: word, lambda k: values[k])
    assert np.array_equal(np.sort(np.append(olds.ravel(), word)), np.arange(THREADS * ROUNDS + 1))


@pytest.mark.parametrize("name", ["min", "max", "xor"])
def test_no_other_operation_is_lost_between_threads(lib: Any, name: str) -> None:
    """Each thread's value is the extreme so far, so that a lost one would show; xor undoes nothing."""
    rising = np.arange(1, THREADS * ROUNDS + 1, dtype=np.uint32).reshape(ROUNDS, THREADS).T.copy()
    values = np.uint32(0xFFFFFFFF) - rising if name == "min" else rising
    word = np.array([0xFFFFFFFF if name == "min" else 0], np.uint32)
    olds = np.empty_like(values)
    together(lib, f"{name}_uint", lambda k: olds[k], lambda k: word, lambda k: values[k])
    want = {"min": values.min(), "max": values.max(), "xor": np.bitwise_xor.reduce(values.ravel())}
    assert word[0] == want[name]


def test_a_loop_of_compare_exchange_adds_floats(lib: Any) -> None:
    word = np.zeros(1, np.float32)
    together(lib, "float", lambda k: word)
    assert word[0] == THREADS * ROUNDS
