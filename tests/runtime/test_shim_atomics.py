"""The shim's atomic functions: their results one at a time, and nothing lost between threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from shim_calls import build, call, function

OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
}
TYPES = {"int": np.int32, "uint": np.uint32}
THREADS, ROUNDS = 4, 20000


def functions() -> list[str]:
    texts = []
    relaxed = "metal::memory_order_relaxed"
    for t in TYPES:
        p, word = f"device metal::atomic_{t} *p", f"device {t} *"
        for name in OPERATIONS:
            body = f"for (uint i = 0; i < n; i++) o[i] = metal::atomic_fetch_{name}_explicit(p, v[i], {relaxed});"
            texts.append(function(f"{name}_{t}", [word + "o", p, word + "v"], body))
        texts += [
            function(f"load_{t}", [word + "o", p], f"o[0] = metal::atomic_load_explicit(p, {relaxed});"),
            function(f"store_{t}", [word + "v", p], f"metal::atomic_store_explicit(p, v[0], {relaxed});"),
            function(
                f"exchange_{t}",
                [word + "o", p, word + "v"],
                f"for (uint i = 0; i < n; i++) o[i] = metal::atomic_exchange_explicit(p, v[i], {relaxed});",
            ),
            function(
                f"cas_{t}",
                [word + "done", p, word + "expected", word + "desired"],
                "done[0] = metal::atomic_compare_exchange_weak_explicit"
                f"(p, expected, desired[0], {relaxed}, {relaxed});",
            ),
        ]
    loop = (
        "for (uint i = 0; i < n; i++) {"
        f" uint old = metal::atomic_load_explicit(p, {relaxed});"
        " while (!metal::atomic_compare_exchange_weak_explicit"
        f"(p, &old, as_type<uint>(as_type<float>(old) + 1.0f), {relaxed}, {relaxed})) {{}} }}"
    )
    texts.append(function("float_add", ["device metal::atomic_uint *p"], loop))
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


def together(work: Any) -> None:
    """Runs work(k) in several threads at once; ctypes lets go of the interpreter lock."""
    start = threading.Barrier(THREADS)

    def run(k: int) -> None:
        start.wait()
        work(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("t", TYPES)
def test_no_addition_is_lost_between_threads(lib: Any, t: str) -> None:
    word, ones = np.zeros(1, TYPES[t]), np.ones(ROUNDS, TYPES[t])
    olds = [np.empty(ROUNDS, TYPES[t]) for _ in range(THREADS)]
    together(lambda k: call(lib, f"add_{t}", ROUNDS, olds[k], word, ones))
    assert word[0] == THREADS * ROUNDS
    assert np.array_equal(np.sort(np.concatenate(olds)), np.arange(THREADS * ROUNDS))


def test_no_minimum_is_lost_between_threads(lib: Any) -> None:
    values = np.random.default_rng(1).integers(0, 2**32, (THREADS, ROUNDS), dtype=np.uint32)
    low, high = np.array([0xFFFFFFFF], np.uint32), np.zeros(1, np.uint32)
    out = np.empty_like(values)

    def work(k: int) -> None:
        call(lib, "min_uint", ROUNDS, out[k], low, values[k])
        call(lib, "max_uint", ROUNDS, out[k], high, values[k])

    together(work)
    assert (low[0], high[0]) == (values.min(), values.max())


def test_a_loop_of_compare_exchange_adds_floats(lib: Any) -> None:
    word = np.zeros(1, np.float32)
    together(lambda k: call(lib, "float_add", ROUNDS, word))
    assert word[0] == THREADS * ROUNDS
