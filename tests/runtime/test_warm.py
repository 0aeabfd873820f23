"""A call like the last one takes a short way; one that is not like it is seen through in every respect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.runtime.launch import Launcher

F = np.float32
TEXT = """
N = dims("N")

@kernel
def scaled(x: f32[N], y: f32[N], k: f32, at: i32x2, mode: const[str] = "a") -> f32[N]:
    i = position()
    if mode == "b":
        return x[i] - y[i]
    return x[i] * k + y[i] + at[0] - at[1]
"""
X, Y = np.arange(8, dtype=F), np.full(8, 0.5, F)
AT = (3, 1)
GOOD = (X, Y, 2.0, AT, "a")


def fresh() -> mj.Kernel:
    return mj.kernel_from_text(TEXT).on("cpu")


def warmed(**options: Any) -> mj.Kernel:
    kernel = fresh()
    for _ in range(2):
        np.testing.assert_array_equal(kernel(*GOOD, **options), X * 2 + 2.5)
    return kernel


def outcome(call: Callable[[], Any]) -> Any:
    """The result, or the error as text."""
    try:
        return call()
    except mj.MetaljitError as e:
        return type(e), str(e)


@pytest.fixture
def only_warm(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, only the short way is open."""

    def close() -> None:
        def never(*_: Any, **__: Any) -> Any:
            raise AssertionError("the long way")

        monkeypatch.setattr(Launcher, "__call__", never)

    return close


def test_the_short_way_is_taken(only_warm: Callable[[], None]) -> None:
    kernel, out = warmed(), np.empty(8, F)
    only_warm()
    np.testing.assert_array_equal(kernel(*GOOD), X * 2 + 2.5)
    np.testing.assert_array_equal(kernel(Y, X, 3, (1, 0), "a"), Y * 3 + X + 1)
    assert kernel(*GOOD, out=out) is out
    np.testing.assert_array_equal(out, X * 2 + 2.5)
    first, second = kernel(*GOOD), kernel(*GOOD)
    assert not np.shares_memory(first, second)
    with pytest.raises(AssertionError, match="the long way"):
        kernel(X[:4], Y[:4], 2.0, AT, "a")


def unlike() -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls that differ from the good one in one respect."""
    frozen = np.empty(8, F)
    frozen.flags.writeable = False
    unaligned = np.frombuffer(bytearray(33), np.uint8)[1:].view(F)
    both = np.arange(12, dtype=F)
    subclass = X.view(np.recarray)
    return {
        "shorter": ((X[:4], Y[:4], 2.0, AT, "a"), {}),
        "unequal": ((X, Y[:4], 2.0, AT, "a"), {}),
        "rank": ((X.reshape(2, 4), Y, 2.0, AT, "a"), {}),
        "f64": ((X.astype(np.float64), Y, 2.0, AT, "a"), {}),
        "f16": ((X.astype(np.float16), Y, 2.0, AT, "a"), {}),
        "i32": ((X.astype(np.int32), Y, 2.0, AT, "a"), {}),
        "swapped bytes": ((X.astype(">f4"), Y, 2.0, AT, "a"), {}),
        "reversed": ((X[::-1], Y, 2.0, AT, "a"), {}),
        "strided": ((np.arange(16, dtype=F)[::2], Y, 2.0, AT, "a"), {}),
        "broadcast": ((np.broadcast_to(F(3), (8,)), Y, 2.0, AT, "a"), {}),
        "unaligned": ((unaligned, Y, 2.0, AT, "a"), {}),
        "subclass": ((subclass, Y, 2.0, AT, "a"), {}),
        "masked": ((np.ma.masked_array(X, X > 3), Y, 2.0, AT, "a"), {}),
        "list": ((list(X), Y, 2.0, AT, "a"), {}),
        "None": ((None, Y, 2.0, AT, "a"), {}),
        "NumPy number": ((X, Y, F(2), AT, "a"), {}),
        "bool number": ((X, Y, True, AT, "a"), {}),
        "large number": ((X, Y, 1e30, AT, "a"), {}),
        "too large": ((X, Y, 1e40, AT, "a"), {}),
        "no number": ((X, Y, "2", AT, "a"), {}),
        "NaN": ((X, Y, float("nan"), AT, "a"), {}),
        "longer vector": ((X, Y, 2.0, (1, 2, 3), "a"), {}),
        "vector of floats": ((X, Y, 2.0, (1.5, 2), "a"), {}),
        "vector beyond": ((X, Y, 2.0, (2**31, 2), "a"), {}),
        "vector as an array": ((X, Y, 2.0, np.array([3, 1]), "a"), {}),
        "constant": ((X, Y, 2.0, AT, "b"), {}),
        "constant left away": ((X, Y, 2.0, AT), {}),
        "constant of another kind": ((X, Y, 2.0, AT, ["a"]), {}),
        "fewer": ((X, Y), {}),
        "more": ((*GOOD, 1), {}),
        "by name": ((X,), {"y": Y, "k": 2.0, "at": AT}),
        "unknown name": (GOOD, {"z": 1}),
        "out too short": (GOOD, {"out": np.empty(4, F)}),
        "out of f64": (GOOD, {"out": np.empty(8)}),
        "out read-only": (GOOD, {"out": frozen}),
        "out strided": (GOOD, {"out": np.empty(16, F)[::2]}),
        "out as a tuple": (GOOD, {"out": (np.empty(8, F),)}),
        "out of two": (GOOD, {"out": (np.empty(8, F), np.empty(8, F))}),
        "out as a list": (GOOD, {"out": [0.0] * 8}),
        "out is an argument": ((both[:8], Y, 2.0, AT, "a"), {"out": both[:8]}),
        "out overlaps": ((both[:8], Y, 2.0, AT, "a"), {"out": both[4:]}),
    }


@pytest.mark.parametrize("name", unlike())
def test_a_call_that_is_unlike(name: str) -> None:
    def called(kernel: mj.Kernel) -> tuple[Any, list[bytes]]:
        args, options = unlike()[name]
        arrays = [a for a in (*args, options.get("out")) if isinstance(a, np.ndarray)]
        before = [a.tobytes() for a in arrays]
        result = outcome(lambda: kernel(*args, **options))
        refused = isinstance(result, tuple)
        return result, before if refused and before != [a.tobytes() for a in arrays] else []

    expected, changed = called(fresh())
    got, changed_too = called(warmed())
    assert changed == changed_too == []
    if isinstance(expected, tuple):
        assert got == expected
    else:
        np.testing.assert_array_equal(got, expected)


def test_a_captured_value_that_changes_is_seen() -> None:
    kernel = captured
    for value in (2.0, 2.0, 5.0, 5.0, 2.0):
        globals()["FACTOR"] = value
        np.testing.assert_array_equal(kernel.on("cpu")(X), X * F(value))
        np.testing.assert_array_equal(kernel(X), X * F(value))


FACTOR = 2.0
N = mj.dims("N")


@mj.kernel
def captured(x: mj.f32[N]) -> mj.f32[N]:
    return x[mj.position()] * FACTOR


def test_another_device_is_seen(emulated: object) -> None:
    kernel = mj.kernel_from_text(TEXT)
    with mj.use_device("cpu"):
        for _ in range(3):
            kernel(*GOOD)
    with mj.use_device("metal"):
        on_metal = kernel(mj.asarray(X), mj.asarray(Y), 2.0, AT, "a")
    assert isinstance(on_metal, mj.Array)
    with mj.use_device("cpu"), pytest.raises(mj.LaunchFault, match="metal"):
        kernel(mj.asarray(X, device="metal"), Y, 2.0, AT, "a")


def test_a_number_that_chose_the_type_is_seen() -> None:
    """`T` of the number alone: a plain number after one of NumPy is of another type."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\nT = dtypes("i32 f32")\n@kernel\n'
        "def f(x: f32[N], k: T) -> f32[N]:\n    return x[position()] + f32(k / 2)\n"
    ).on("cpu")
    for k in (np.int32(3), 3, F(3), 3.0, np.int32(3), 3):
        again = mj.kernel_from_text(kernel.definition.source.text).on("cpu")
        np.testing.assert_array_equal(kernel(X, k), again(X, k))


def test_extents_from_numbers() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], n: i32) -> f32[N + n]:\n    return border(x, "edge")[position()]\n'
    ).on("cpu")
    for n in (0, 0, 3, 3, 0, -2, -2):
        np.testing.assert_array_equal(kernel(X, n), np.pad(X, (0, 4), "edge")[: 8 + n])


def test_assertions_fail_on_the_short_way(only_warm: Callable[[], None]) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    v = x[position()]\n'
        '    assert v >= 0, "negative"\n    return v\n'
    ).on("cpu")
    bad = X.copy()
    bad[5] = -1
    with pytest.raises(mj.KernelAssertion) as long:
        kernel(bad)
    kernel(X)
    only_warm()
    kernel(X)
    with pytest.raises(mj.KernelAssertion, match=r"\(5\)") as short:
        kernel(bad)
    assert str(short.value) == str(long.value)


def test_several_results_and_none_given(only_warm: Callable[[], None]) -> None:
    kernel = mj.kernel_from_text(
        "@kernel\ndef f(n: i32, m: i32) -> tuple[i32[n], f32[n]]:\n    return position() + m, 0.5\n"
    ).on("cpu")
    kernel(4, 1)
    only_warm()
    a, b = kernel(4, 2)
    assert a.tolist() == [2, 3, 4, 5]
    assert b.tolist() == [0.5] * 4
    outs = np.empty(4, np.int32), np.empty(4, F)
    assert kernel(4, 3, out=outs) is outs
    assert outs[0].tolist() == [3, 4, 5, 6]


def test_results_may_not_be_one_another() -> None:
    kernel = mj.kernel_from_text(
        "@kernel\ndef f(n: i32) -> tuple[f32[n], f32[n]]:\n    return 1.0, 2.0\n"
    ).on("cpu")
    kernel(4)
    both = np.zeros(6, F)
    for out in ((both[:4], both[:4]), (both[:4], both[2:])):
        with pytest.raises(mj.LaunchFault, match="share memory"):
            kernel(4, out=out)
    assert both.tolist() == [0.0] * 6


def test_threads_that_take_turns_with_extents() -> None:
    kernel, wrong = fresh(), []

    def call(n: int) -> None:
        x = np.full(n, n, F)
        for _ in range(300):
            if not (kernel(x, x, 1.0, (0, 0), "a") == 2 * n).all():
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in (1, 7, 100, 5000)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_kernel_on_a_device_is_made_once() -> None:
    kernel = fresh()
    here = kernel.on("cpu")
    assert here is kernel.on("cpu")
    assert mj.kernel_from_text(TEXT).on("cpu") is not here
