"""Arrays on a device outside of `jit`: NumPy's numbers, to the bit those of a trace, and memory shared with others."""

from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metaljit as mj
from metaljit.compiler import plan as planning
from metaljit.graph.methods import FUNCTIONS, METHODS
from metaljit.graph.traced import OPERATORS as TRACED_OPERATORS
from metaljit.graph.traced import UNARY as TRACED_UNARY
from metaljit.lang import f32, position

N = mj.dims("N")
F = np.float32
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.dtype(n) for n in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4")] + [BF16]
BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "left_shift": operator.lshift, "right_shift": operator.rshift,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
UNARY: dict[str, Callable[..., Any]] = {
    "negative": operator.neg, "positive": operator.pos, "invert": operator.invert, "absolute": operator.abs,
}  # fmt: skip


@mj.kernel
def doubled(x: f32[N]) -> f32[N]:
    return 2 * x[position()]


def values(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Any:
    """Numbers that every operator takes: small, and right operands (seed 1) not 0."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        low = 1 if seed or dtype.kind == "u" else -7
        return rng.integers(low, 6, shape).astype(dtype)
    return rng.uniform(0.25, 4, shape).astype(F).astype(dtype) * dtype.type(1 if seed else -1) ** (seed == 0)


def named(name: str, function: Callable[..., Any], count: int = 2) -> Any:
    """The function traced, called as the operation is."""
    traced = (lambda a, b: function(a, b)) if count == 2 else lambda a: function(a)
    traced.__name__ = name
    return mj.jit(traced)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or what it says."""
    try:
        return np.asarray(function(*args))
    except mj.MetaljitError as e:
        return e.diagnostics[0].slug


def same(found: Any, wanted: Any) -> None:
    """To the bit, or the same error."""
    if isinstance(wanted, str) or isinstance(found, str):
        assert isinstance(found, str), f"{found!r} instead of {wanted!r}"
        assert found == wanted
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


def near(found: Any, wanted: Any) -> None:
    """NumPy's numbers, in whatever type it has them."""
    assert isinstance(found, mj.Array)
    assert found.shape == wanted.shape
    digits = {"float16": 2e-3, "bfloat16": 2e-2}
    tolerance = max(digits.get(t.name, 2e-6) for t in (found.dtype, wanted.dtype))
    np.testing.assert_allclose(
        found.numpy().astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
    )


# ---- operators ----


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_operators_are_those_of_a_trace_and_numpys(dtype: np.dtype[Any]) -> None:
    x, y = values(dtype, (3, 4), 0), values(dtype, (3, 4), 1)
    a, b = mj.array(x), mj.array(y)
    known = 0
    for name, function in BINARY.items():
        found = outcome(function, a, b)
        same(found, outcome(named(name, function), x, y))
        if not isinstance(found, str):
            known += 1
            with np.errstate(all="ignore"):
                near(function(a, b), function(x, y))
    for name, function in UNARY.items():
        found = outcome(function, a)
        same(found, outcome(named(name, function, 1), x))
        if not isinstance(found, str):
            known += 1
            near(function(a), function(x))
    assert known >= (6 if dtype.kind == "b" else 14)


def test_every_operator_of_a_trace_is_tried() -> None:
    assert set(TRACED_OPERATORS.values()) <= set(BINARY)
    assert set(TRACED_UNARY.values()) == set(UNARY)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((), (3,)), ((0,), (0,)), ((0, 3), (3,)), ((0,), (1,)), ((4, 1), (1, 5)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)),
    ((1,), (7,)), ((1, 1), (1, 1)), ((5,), ()),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SHAPES)
@pytest.mark.parametrize("dtype", [np.dtype(F), np.dtype(np.int32)], ids=lambda d: d.name)
def test_broadcasting(
    dtype: np.dtype[Any], first: tuple[int, ...], second: tuple[int, ...], device: str
) -> None:
    x, y = values(dtype, first, 0), values(dtype, second, 1)
    a, b = mj.array(x, device=device), mj.array(y, device=device)
    near(a + b, np.asarray(x + y))
    near(b - a, np.asarray(y - x))
    near(a < b, np.asarray(x < y))
    near(-a, np.asarray(-x))
    assert (a + b).device.name == device


@pytest.mark.parametrize("first", DTYPES, ids=lambda d: d.name)
def test_promotion_is_that_of_a_trace(first: np.dtype[Any]) -> None:
    x = values(first, (5,), 0)
    product = named("multiply", operator.mul)
    for second in DTYPES:
        y = values(second, (5,), 1)
        same(outcome(operator.mul, mj.array(x), y), outcome(product, x, y))


LITERALS: list[Any] = [2, -3, 0, 7, 300, 2**40, 0.1, -2.5, 1e300, float("inf"), float("nan"), True, False]
TYPED: list[Any] = [np.float32(0.3), np.float16(0.3), np.int8(-3), np.uint8(200), np.int64(5), np.bool_(True), np.float64(0.1),
                    BF16.type(0.3)]  # fmt: skip


def swapped(x: Any, number: Any) -> Any:
    return number - x


def as_literals(function: Callable[..., Any], x: Any, numbers: Sequence[Any]) -> None:
    """The function of an array and each number, as where the number is written in a trace."""
    a = mj.array(x)
    found = {k: outcome(function, a, number) for k, number in enumerate(numbers)}
    good = [k for k, v in found.items() if not isinstance(v, str)]
    traced = mj.jit(lambda x: tuple(function(x, numbers[k]) for k in good))(x)
    for k, wanted in zip(good, traced, strict=True):
        same(found.pop(k), wanted)
    for k, slug in found.items():
        same(outcome(literal(function, numbers[k]), x), slug)


def literal(function: Callable[..., Any], number: Any) -> Any:
    return mj.jit(lambda x: function(x, number))


@pytest.mark.parametrize("dtype", ["f4", "f2", BF16, "u1", "i4", "i8", "?"], ids=str)
def test_numbers_are_literals_of_a_trace(dtype: Any) -> None:
    x = values(np.dtype(dtype), (5,), 0)
    for function in (operator.add, swapped):
        as_literals(function, x, [*LITERALS, *TYPED])


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16, np.dtype(F)], ids=lambda d: d.name)
def test_numbers_round_as_literals_do(dtype: np.dtype[Any]) -> None:
    numbers = [*np.random.default_rng(3).uniform(-3, 3, 9).tolist(), 16777217, 2.0, 0.5]
    for function in (operator.mul, operator.truediv, operator.pow):
        as_literals(function, values(dtype, (50,), 0), numbers)


def test_another_number_or_size_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a = mj.array(np.ones(9, F))
    near(a * 2.5 + a[:4].sum(), np.full(9, 6.5, F))
    near(np.where(a > 0, a, 0.5), np.ones(9, F))
    near(a.clip(0, 2).at[2:4].set(7), np.array([1, 1, 7, 7, 1, 1, 1, 1, 1], F))

    def refused(*args: Any, **named: Any) -> Any:
        raise AssertionError("compiled")

    monkeypatch.setattr(planning, "plan", refused)
    a = mj.array(np.ones(5, F))
    near(a * 1.5 + a[2:4].sum(), np.full(5, 3.5, F))
    near(np.where(a > 3, a, 0.25), np.full(5, 0.25, F))
    near(a.clip(2, 3).at[1:2].set(9), np.array([2, 9, 2, 2, 2], F))
    near(a[:, None].reshape(1, 5)[0, ::-1], np.ones(5, F))


def test_numpys_arrays_and_numbers_stand_on_either_side(device: str) -> None:
    x = np.arange(4, dtype=F)
    a = mj.array(x, device=device)
    results: list[Any] = [x + a, a + x, np.add(x, a), np.add(a, x), x[::-1][::-1] + a]
    for found in results:
        near(found, x + x)
        assert found.device.name == device
    near(np.float32(2) * a, 2 * x)
    near(a * np.float32(2), 2 * x)
    near(np.array(3, F) - a, 3 - x)
    assert type(a + x) is mj.Array


def test_operators_in_place_give_another_array() -> None:
    x = np.ones(3, F)
    a = mj.asarray(x)
    before = a
    a += 1
    a *= 2.5
    near(a, np.full(3, 5, F))
    near(before, np.ones(3, F))
    assert x.tolist() == [1, 1, 1]


def test_comparing_is_by_elements() -> None:
    a = mj.array([1.0, 2.0])
    assert (a == a).tolist() == [True, True]
    assert operator.ne(a, [1.0]) is True  # as arrays of a trace, they do not take lists
    assert operator.eq(a, None) is False
    assert 2.0 in a
    assert 3 not in a
    with pytest.raises(TypeError):
        hash(a)


# ---- methods, functions, keys ----

X = np.arange(24, dtype=F).reshape(2, 3, 4) - 7
SAMPLES: dict[str, Callable[[Any], Any]] = {
    "T": lambda a: a.T,
    "transpose": lambda a: a.transpose(1, 0, 2),
    "transpose of numpy": lambda a: np.transpose(a, (2, 0, 1)),
    "reshape": lambda a: a.reshape(4, -1),
    "reshape with a tuple": lambda a: a.reshape((6, 4)),
    "reshape of numpy": lambda a: np.reshape(a, (6, 4)),
    "ravel": lambda a: a.ravel(),
    "flatten": lambda a: a.flatten(),
    "squeeze": lambda a: a[:1].squeeze(),
    "swapaxes": lambda a: a.swapaxes(0, 2),
    "astype": lambda a: a.astype(np.int16),
    "astype itself": lambda a: a.astype(np.float32),
    "sum": lambda a: a.sum(axis=1),
    "sum of numpy": lambda a: np.sum(a, axis=(0, 2), keepdims=True),
    "prod": lambda a: (a / 8).prod(axis=0),
    "mean": lambda a: a.mean(),
    "var": lambda a: a.var(axis=-1, ddof=1),
    "std": lambda a: np.std(a, 0),
    "min": lambda a: a.min(axis=2),
    "max": lambda a: np.max(a, 2),
    "amin": lambda a: np.amin(a),
    "amax": lambda a: np.amax(a),
    "any": lambda a: (a > 3).any(axis=0),
    "all": lambda a: np.all(a > -9),
    "clip": lambda a: a.clip(-1, 2.5),
    "clip of numpy": lambda a: np.clip(a, -1, 2.5),
    "where": lambda a: np.where(a > 0, a, -1.5),
    "take": lambda a: a.take([1, 0, 1], axis=2),
    "take of numpy": lambda a: np.take(a, np.array([5, 1])),
    "repeat": lambda a: a.repeat(2, axis=1),
    "moveaxis": lambda a: np.moveaxis(a, 0, 2),
    "expand_dims": lambda a: np.expand_dims(a, 1),
    "flip": lambda a: np.flip(a, (0, 2)),
    "concatenate": lambda a: np.concatenate([a, a[:1], a]),
    "stack": lambda a: np.stack((a, -a), axis=1),
    "pad": lambda a: np.pad(a, ((1, 0), (0, 2), (1, 1)), mode="edge"),
    "roll": lambda a: np.roll(a, 2, axis=1),
    "tile": lambda a: np.tile(a, (2, 1, 1)),
    "broadcast_to": lambda a: np.broadcast_to(a, (3, 2, 3, 4)),
    "zeros_like": lambda a: np.zeros_like(a),
    "ones_like": lambda a: np.ones_like(a, dtype=np.int32),
    "diff": lambda a: np.diff(a, axis=1),
    "exp": lambda a: np.exp(a / 8),
    "arctan2": lambda a: np.arctan2(a, 2),
    "isnan": lambda a: np.isnan(a),
    "nan_to_num": lambda a: np.nan_to_num(a),
    "copy": lambda a: np.copy(a),
    "matmul": lambda a: a @ a[0].T,
    "matmul of numpy": lambda a: np.matmul(a[0].T, a[1]),
    "argmax": lambda a: a.argmax(axis=1).astype(np.int32),
    "item": lambda a: a[1, -2],
    "slices": lambda a: a[::-1, 1:, ::2],
    "new axis": lambda a: a[None, ..., 1],
    "index array": lambda a: a[np.array([1, 0, 1])],
    "list": lambda a: a[[1, 1]],
    "index array inside": lambda a: a[1:, [0, 2], ::-1],
    "two index arrays": lambda a: a[[0, 1], [2, 0]],
}


@pytest.mark.parametrize("case", SAMPLES)
def test_methods_and_functions(case: str) -> None:
    function = SAMPLES[case]
    found, wanted = function(mj.array(X)), function(X)
    near(found, np.asarray(wanted))
    if case != "copy":
        same(found, mj.jit(lambda a: function(a))(X))
    assert found.numpy().flags.c_contiguous


def test_several_results() -> None:
    for found, wanted in zip(np.split(mj.array(X), 3, axis=1), np.split(X, 3, axis=1), strict=True):
        near(found, wanted)


def test_numpys_integers_count_as_they_do_in_a_trace() -> None:
    x = np.arange(3, dtype=np.int32)
    found = np.concatenate([mj.array(x), np.arange(2)])
    same(found, mj.jit(lambda a: np.concatenate([a, np.arange(2)]))(x))
    assert found.dtype == np.int32


def test_all_that_traced_arrays_have_is_there() -> None:
    a = mj.array(X)
    for name in METHODS:
        assert hasattr(a, name), name
    for name in FUNCTIONS:
        assert name in SAMPLES or name in ("split", "matmul") or hasattr(np, name), name


def test_index_arrays_of_a_device(device: str) -> None:
    a = mj.array(X, device=device)
    at = mj.array(np.array([1, 0], np.int32), device=device)
    near(a[at], X[[1, 0]])
    near(a[at[0]], X[1])
    near(a[:, at], X[:, [1, 0]])


def test_changed_parts(device: str) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    a = mj.array(x, device=device)
    wanted = x.copy()
    wanted[1] = 7
    near(a.at[1].set(7.9), wanted)
    wanted = x.copy()
    wanted[:, ::2] += np.array([10, 20])
    near(a.at[:, ::2].add(np.array([10, 20])), wanted)
    wanted = x.copy()
    wanted[0, -1] = 3
    near(a.at[0, -1].set(mj.array(np.int32(3), device=device)), wanted)
    near(a.at[np.array([0, 0, 2])].add(1), x + np.array([[2], [0], [1]], np.int32))
    near(a, x)


def test_assigned_parts_are_written_to_the_memory(device: str) -> None:
    x = np.zeros((3, 4), F)
    a = mj.asarray(x, device=device)
    a[1, ::2] = [5, 6]
    a[2] = mj.array(np.arange(4, dtype=F), device=device)
    a[a > 5.5] = -1
    a[mj.array([0], device=device)] = 9
    wanted = np.array([[9, 9, 9, 9], [5, 0, -1, 0], [0, 1, 2, 3]], F)
    near(a, wanted)
    assert (x == wanted).all()


def test_results_are_arrays_of_their_own() -> None:
    a = mj.array(X)
    parts = [
        a[0],
        a[:],
        a[...],
        a.reshape(-1),
        a.ravel(),
        a.T,
        a.astype(F),
        +a,
        a.squeeze(),
        np.split(a, 1)[0],
        a.copy(),
    ]
    a[...] = 0
    for part in parts:
        assert part.numpy().any()


def test_iteration_and_numbers() -> None:
    a = mj.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    rows = list(a)
    assert [type(r) for r in rows] == [mj.Array, mj.Array]
    assert [r.tolist() for r in rows] == [[0, 1, 2], [3, 4, 5]]
    assert len(a) == 2
    first = a[1, 2]
    assert (int(first), float(first), complex(first), bool(first), first.item()) == (5, 5.0, 5 + 0j, True, 5)
    assert "abcdef"[first] == "f"
    assert f"{first:03d} {first}" == "005 5"
    assert type(mj.array([0.5], ml_dtypes.bfloat16).item()) is float
    assert mj.array([0.5, 2], ml_dtypes.bfloat16).tolist() == [0.5, 2.0]
    assert not mj.array(False)
    for function in (len, list):
        with pytest.raises(TypeError):
            function(first)


# ---- in a trace ----


def test_in_a_trace_they_are_part_of_it() -> None:
    a = mj.array(np.ones(3, F))

    @mj.jit
    def f(x: Any) -> Any:
        return x + np.exp(a - 1) * 2 + a[0] + a.sum() + a.at[1].set(4) + np.concatenate([a, a])[:3]

    wanted = 2 + 1 + 3 + np.array([1, 4, 1]) + 1
    near(f(mj.array(np.zeros(3, F))), (wanted + 0.0).astype(F))
    a[...] = 0  # read anew
    near(f(mj.array(np.zeros(3, F))), (2 / np.e + np.array([0, 4, 0])).astype(F))


def test_kernels_ops_and_jitted_functions_take_them(device: str) -> None:
    x = np.arange(8, dtype=F)
    a = mj.array(x, device=device)
    with mj.use_device(device):
        f = mj.jit(lambda a, b: (a * b, a - b))
        for _ in range(3):
            near(doubled(a + 1), 2 * x + 2)
            first, second = f(a, a + 1)
            near(first, x * (x + 1))
            near(second, np.full(8, -1, F))
            near(mj.jit(lambda a, b: a * b)(a, x), x * x)
        near(mj.ops.laplacian(a), mj.ops.laplacian(x))


# ---- making and sharing ----


def test_what_arrays_are_made_of() -> None:
    assert mj.array([1.5, 2]).dtype == F
    assert mj.array(0.5).shape == ()
    assert mj.array([1, 2]).dtype == np.int64
    assert mj.array([True]).dtype == bool
    assert mj.array([1, 2], mj.f16 if hasattr(mj, "f16") else np.float16).dtype == np.float16
    assert mj.array(np.arange(3.0), dtype=F).tolist() == [0, 1, 2]
    assert mj.array(np.zeros((2, 3), F).T).numpy().flags.c_contiguous


def test_what_is_shared_and_what_is_copied() -> None:
    x = np.arange(6, dtype=F)
    copied, shared = mj.array(x), mj.asarray(x)
    x[0] = 9
    assert copied.tolist()[0] == 0
    assert shared.tolist()[0] == 9
    shared[1] = 8
    assert x[1] == 8
    assert mj.asarray(shared) is shared
    assert mj.array(shared, copy=False) is shared
    assert not np.shares_memory(mj.array(shared).numpy(), x)
    assert np.shares_memory(mj.array(x, copy=False).numpy(), x)
    for other in (x[::2], x.astype(np.float64), [1.0, 2.0], mj.array(x, device="emulator")):
        with pytest.raises(ValueError, match="without a copy"):
            mj.array(other, F, copy=False)
    fixed = x.copy()
    fixed.flags.writeable = False
    a = mj.asarray(fixed)
    near(a + 1, fixed + 1)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1


def test_moving_to_a_device() -> None:
    a = mj.array([1.0, 2.0], device="cpu")
    assert a.to("cpu") is a
    b = a.to("emulator")
    assert b.device.name == "emulator"
    assert not np.shares_memory(a.numpy(), b.numpy())
    near(b + 1, np.array([2, 3], F))
    for function in (lambda: a + b, lambda: np.maximum(a, b), lambda: np.concatenate([a, b]), lambda: a.at[0].set(b[0]),
                     lambda: a.__setitem__(0, b[0]), lambda: np.where(a > 0, a, b), lambda: a[b.astype(np.int32)]):  # fmt: skip
        with pytest.raises(mj.LaunchFault) as caught:
            function()
        assert caught.value.diagnostics[0].slug == "mixed-devices"
    assert a.tolist() == [1, 2]


# ---- interchange ----


def test_numpy_reads_the_same_memory() -> None:
    a = mj.array(X)
    for view in (np.asarray(a), a.numpy(), np.from_dlpack(a), np.array(a, copy=False)):
        assert np.shares_memory(view, a.numpy())
        assert view.dtype == F
    interface: Any = a.__array_interface__
    assert interface["data"][0] == a.numpy().ctypes.data
    assert not np.shares_memory(np.array(a), a.numpy())
    assert np.asarray(a, np.float64).dtype == np.float64
    held = np.asarray(mj.array(X) + 1)  # the memory lives as long as the view
    np.testing.assert_array_equal(held, X + 1)
    wide = mj.array(X, BF16)
    assert np.asarray(wide).dtype == BF16
    assert np.shares_memory(np.asarray(wide), wide.numpy())


def test_torch_shares_memory_both_ways() -> None:
    torch = pytest.importorskip("torch")
    a = mj.array(X)
    t = torch.from_dlpack(a)
    t[0, 0, 0] = 50
    assert a[0, 0, 0].item() == 50
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    b = mj.from_dlpack(t)
    t[0, 0] = 9
    assert b.tolist()[0][0] == 9
    near(b * 2, 2 * t.numpy())
    near(mj.from_dlpack(t.T), t.numpy().T)
    assert mj.from_dlpack(t.T).numpy().flags.c_contiguous
    assert torch.equal(torch.asarray(b), t)
    for other, slug in (
        (torch.zeros(2, dtype=torch.float64), "array-dtype"),
        (torch.zeros(2, dtype=torch.bfloat16), "dlpack-refused"),
        (torch.zeros(2, requires_grad=True), "dlpack-refused"),
        (torch.zeros(2, device="meta"), "dlpack-refused"),
        ([1, 2], "dlpack-refused"),
    ):
        with pytest.raises(mj.LaunchFault) as caught:
            mj.from_dlpack(other)
        assert caught.value.diagnostics[0].slug == slug
        assert caught.value.diagnostics[0].help


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_dlpack_of_every_type(dtype: np.dtype[Any]) -> None:
    a = mj.array(values(dtype, (3,), 0))
    assert a.__dlpack_device__() == (1, 0)
    if dtype == BF16:
        with pytest.raises(BufferError, match="bf16"):
            a.__dlpack__()
    else:
        back = mj.from_dlpack(a)
        same(back, a)
        assert np.shares_memory(back.numpy(), a.numpy())


def test_dlpack_of_read_only_memory() -> None:
    x = np.arange(3, dtype=F)
    x.flags.writeable = False
    a = mj.from_dlpack(mj.asarray(x))
    assert np.shares_memory(a.numpy(), x)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with pytest.raises(BufferError):
        mj.asarray(x).__dlpack__()  # without a version there is no word for it


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have a buffer since Python 3.12")
def test_buffer_protocol() -> None:
    a = mj.array(X)
    view = memoryview(a)
    assert (view.shape, view.format) == (X.shape, "f")
    assert bytes(view) == X.tobytes()


def test_buffer_method_gives_the_memory() -> None:
    a = mj.array(np.arange(3, dtype=np.int16))
    view = a.__buffer__(0)
    view[1] = 40
    assert a.tolist() == [0, 40, 2]


@pytest.mark.parametrize(
    "x", [X, np.zeros((0, 2), np.int8), np.ones(3, BF16), np.array(True)], ids=lambda x: x.dtype.name
)
def test_pickle_and_copies(x: Any, device: str) -> None:
    a = mj.array(x, device=device)
    for other in (
        pickle.loads(pickle.dumps(a)),
        copy.copy(a),
        copy.deepcopy(a),
        a.copy(),
        copy.deepcopy({"a": a})["a"],
    ):
        same(other, a)
        assert other.device is a.device
        assert not np.shares_memory(other.numpy(), a.numpy())


def test_text() -> None:
    a = mj.array([[1.0, 2.5], [3.0, 4.0]])
    assert repr(a) == "Array([[1. , 2.5],\n       [3. , 4. ]], dtype=float32, device='cpu')"
    assert str(a) == "[[1.  2.5]\n [3.  4. ]]"
    assert repr(mj.array(np.zeros((0, 2), np.int8))) == "Array([], shape=(0, 2), dtype=int8, device='cpu')"
    assert repr(mj.array(3.0)) == "Array(3., dtype=float32, device='cpu')"


# ---- errors ----

A: Any = mj.array(X)
ERRORS: dict[str, tuple[str, Callable[[], Any]]] = {
    "sort": ("numpy-function", lambda: np.sort(A)),
    "norm": ("numpy-function", lambda: np.linalg.norm(A)),
    "reduce": ("numpy-function", lambda: np.add.reduce(A)),
    "outer": ("numpy-function", lambda: np.multiply.outer(A, A)),
    "no row": ("numpy-function", lambda: np.divmod(A, 2)),
    "out": ("numpy-argument", lambda: np.exp(A, out=np.empty_like(X))),
    "out of sum": ("numpy-argument", lambda: np.sum(A, out=np.empty(()))),
    "where": ("numpy-argument", lambda: np.add(A, 1, where=X > 0)),
    "where of sum": ("numpy-argument", lambda: np.sum(A, where=X > 0)),
    "dtype": ("numpy-argument", lambda: np.add(A, 1, dtype=np.float32)),
    "dtype of sum": ("numpy-argument", lambda: A.sum(dtype=np.int32)),
    "no such argument": ("numpy-argument", lambda: A.mean(axes=1)),
    "decimals": ("numpy-argument", lambda: np.round(A, 2)),
    "f64": ("graph-dtype", lambda: A + np.zeros(4)),
    "shapes": ("extent-mismatch", lambda: A + np.zeros(3, F)),
    "types": ("operator-types", lambda: A & 1),
    "index": ("index-range", lambda: A[2]),
    "indices": ("too-many-indices", lambda: A[0, 0, 0, 0]),
    "index of nothing": ("bad-index", lambda: A["x"]),
    "index of a bool": ("bad-index", lambda: A[True]),
    "mask": ("index-dtype", lambda: A[A > 0]),
    "axes": ("bad-axes", lambda: A.sum(axis=3)),
    "shape": ("bad-shape", lambda: A.reshape(5, 5)),
    "literal": ("literal-range", lambda: A.astype(np.uint8) + 300),
    "list": ("not-an-array", lambda: np.add(A, [1, 2, 3, 4])),
    "truth": ("array-to-number", lambda: bool(A)),
    "number": ("array-to-number", lambda: float(A)),
    "element": ("array-to-number", lambda: A.item()),
    "not an index": ("array-to-number", lambda: [1, 2][A[0, 0, 0]]),
    "masked": ("not-an-array", lambda: mj.asarray(np.ma.masked_array([1, 2], [False, True]))),
    "no element type": ("array-dtype", lambda: mj.array([1], dtype="cpu")),
    "complex": ("array-dtype", lambda: mj.array([1j])),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    slug, function = ERRORS[case]
    for _ in range(2):
        with pytest.raises(mj.MetaljitError) as caught:
            function()
        found = caught.value.diagnostics[0]
        assert found.slug == slug
        if slug not in ("array-to-number", "array-dtype", "not-an-array"):
            assert "test_arrays.py" in str(found)
    near(A, X)


def test_an_error_names_the_line_of_its_own_call() -> None:
    a = mj.array(np.ones(3, F))
    near(a - np.ones(3, F), np.zeros(3, F))
    with pytest.raises(mj.ShapeError, match=r"a - np\.ones\(5, F\)  # here"):
        a - np.ones(5, F)  # here


def test_unknown_attributes_have_a_way_out() -> None:
    with pytest.raises(AttributeError, match=r"a\.numpy\(\)\.argsort"):
        A.argsort()
    with pytest.raises(AttributeError, match="nonsense"):
        A.nonsense()
    with pytest.raises(TypeError):
        operator.add(A, [1])


LIGHT = """
import sys
import numpy as np
import metaljit as mj
a = mj.asarray(np.ones(3, np.float32), device="cpu")
a[0] = 2
memory = [np.asarray(a), a.to("cpu"), a.tolist(), len(a), repr(a), mj.from_dlpack(a), hasattr(a, "__len__")]
heavy = [m for m in sys.modules if m.startswith(("metaljit.graph", "metaljit.compiler.", "metaljit.grammar"))]
assert not heavy, heavy
assert (a + 1).tolist() == [3, 2, 2]
assert "metaljit.graph.arrays" in sys.modules
"""


def test_making_arrays_loads_no_compiler() -> None:
    found = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
