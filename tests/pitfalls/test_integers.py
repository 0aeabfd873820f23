"""Integers that are not Python's or NumPy's."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from every_type import (
    FLOATS,
    I32,
    I64,
    INTEGERS,
    NUMPY,
    U8,
    U32,
    U64,
    UNSIGNED,
    check_each,
    code,
    nasty,
    on_each,
    pairs,
)

import metaljit as mj

PAIRS = {n: pairs(n) for n in INTEGERS}
VALUES = {n: (np.array(nasty(n), NUMPY[n]),) for n in INTEGERS}
SMALL = ("i8", "i16", "u8", "u16")


def spec(dtype: Any, rank: int = 1) -> mj.Spec:
    return mj.spec((None,) * rank, dtype)


# ---- division ----


def test_integer_division_rounds_down_by_any_divisor_of_either_sign_or_zero(place: str) -> None:
    check_each(["x // y", "x % y"], PAIRS)


WORKED = [  # x, y, x // y, x % y
    (-7, 2, -4, 1), (7, -2, -4, -1), (-1, 2, -1, 1), (-6, 5, -2, 4), (-7, -2, 3, -1), (6, -5, -2, -4), (-7, 3, -3, 2),
    (-9, 2, -5, 1), (9, -2, -5, -1), (110, 55, 2, 0), (-616, 28, -22, 0), (7, 7, 1, 0), (16777217, 1, 16777217, 0),
    (5, 0, 0, 0), (-5, 0, 0, 0), (-(2**31), -1, -(2**31), 0), (0, -3, 0, 0),
]  # fmt: skip


def test_worked_quotients_and_remainders(place: str) -> None:
    x, y, quotients, rests = map(list, zip(*WORKED, strict=True))
    found = on_each(["x // y", "x % y"], {n: (x, y) for n in ("i32", "i64")})
    for name in ("i32", "i64"):
        small = [name == "i32" or a != -(2**31) or b != -1 for a, b in zip(x, y, strict=True)]
        got = zip(found["x // y", name].tolist(), found["x % y", name].tolist(), small, strict=True)
        wanted = zip(quotients, rests, small, strict=True)
        assert [g for g in got if g[2]] == [w for w in wanted if w[2]]


DIVISORS = (0, 1, -1, 2, -2, 3, -3, 7, 55, -128)


def test_division_by_a_literal_is_division(place: str) -> None:
    """A compiler turns these into shifts and products."""
    quotients = ", ".join(f"v // {d}, v % {d}" for d in DIVISORS)
    swapped = ", ".join(f"{d} // v, {d} % v" for d in (7, -7))
    results = ", ".join(["i64[N]"] * (2 * len(DIVISORS) + 4))
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\n'
        f"def f(x: i64[N]) -> ({results}):\n    v = x[position()]\n    return {quotients}, {swapped}\n"
    )
    (x,) = VALUES["i64"]
    found = iter(kernel(x))
    with np.errstate(all="ignore"):
        for d in DIVISORS:
            np.testing.assert_array_equal(next(found), x // d, f"x // {d}")
            np.testing.assert_array_equal(next(found), x % d, f"x % {d}")
        for d in (7, -7):
            np.testing.assert_array_equal(next(found), d // x, f"{d} // x")
            np.testing.assert_array_equal(next(found), d % x, f"{d} % x")


FOLDED = [(a, b) for a, b in product((-7, 7, -6, 1, -1, 0, 110, 16777217), (2, -2, 5, -5, 55, 1))]


def test_division_of_constants_follows_python(place: str) -> None:
    """Literals, captured numbers, constant parameters and scalars that a table of constants holds."""
    sums = " + ".join(f"({a} // {b}) * {k + 1} + ({a} % {b}) * {k + 7}" for k, (a, b) in enumerate(FOLDED))
    wanted = sum((a // b) * (k + 1) + (a % b) * (k + 7) for k, (a, b) in enumerate(FOLDED))
    kernel = mj.kernel_from_text(
        'N = dims("N")\nP, Q = -7, 2\n@kernel\n'
        "def f(x: i64[N], c: const[int], s: i32) -> (i64[N], i64[N], i64[N], i64[N]):\n"
        f"    zero = x[position()] * 0\n    return zero + ({sums}), zero + P // Q * 10 + P % Q, "
        "zero + c // Q * 10 + c % Q, zero + i64(s // Q * 10 + s % Q)\n"
    )
    found = [r[0] for r in kernel(I64([1]), -7, -7)]
    assert found == [wanted, -39, -39, -39]


def test_division_of_positions_and_extents(place: str) -> None:
    """What is known not to be negative may be divided more simply; what is not, may not."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\n'
        "def f(x: i32[N]) -> (i32[N], i32[N], i32[N], i32[N], i32[N], i32[N]):\n    i = position()\n"
        "    d = i - 5\n    back = N - 2 * i\n"
        "    return i // 3, i % 3, d // 3, d % 3, back // 4, back % 4\n"
    )
    i = np.arange(23)
    wanted = i // 3, i % 3, (i - 5) // 3, (i - 5) % 3, (23 - 2 * i) // 4, (23 - 2 * i) % 4
    for found, w in zip(kernel(np.zeros(23, np.int32)), wanted, strict=True):
        np.testing.assert_array_equal(found, w)


def test_division_in_extents_is_the_same_division(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\n'
        "def f(x: i32[N], s: i32) -> i32[8 + s // 3, 8 + s % 3, 8 + s // -3, 8 + s % -3]:\n    return 1\n"
    )
    for s in (-7, -6, -1, 0, 1, 7):
        assert kernel(np.zeros(1, np.int32), s).shape == (8 + s // 3, 8 + s % 3, 8 + s // -3, 8 + s % -3)


@pytest.mark.parametrize("operator", ["//", "%"])
def test_division_in_place_and_by_function_names(place: str, operator: str) -> None:
    name = {"//": "floor_divide", "%": "remainder"}[operator]
    kernel = mj.kernel_from_text(
        f'N = dims("N")\ndef by(x, y):\n    x {operator}= y\n    return x\n@kernel\n'
        "def f(x: i32[N], y: i32[N]) -> (i32[N], i32[N], i32[N]):\n    i = position()\n"
        f"    t = local_array(i32, 1)\n    t[0] = x[i]\n    t[0] {operator}= y[i]\n"
        f"    return {name}(x[i], y[i]), by(x[i], y[i]), t[0]\n"
    )
    x, y = PAIRS["i32"]
    with np.errstate(all="ignore"):
        wanted = x // y if operator == "//" else x % y
    for found in kernel(x, y):
        np.testing.assert_array_equal(found, wanted)


def test_vectors_divide_lane_by_lane(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32x3[N], y: i32x3[N]) -> (i32x3[N], i32x3[N]):\n'
        "    i = position()\n    return x[i] // y[i], x[i] % y[i]\n"
    )
    x, y = (a[: len(a) // 3 * 3].reshape(-1, 3) for a in PAIRS["i32"])
    quotient, rest = kernel(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient, x // y)
        np.testing.assert_array_equal(rest, x % y)


def test_float_floor_division_and_remainder_are_numpys(place: str) -> None:
    values = [-7.5, -7, -2, -1, -0.0, 0.0, 0.5, 1, 2, 3, 7, 7.5, math.inf, -math.inf, math.nan]
    x, y = (np.array(v, np.float32) for v in zip(*product(values, values), strict=True))
    check_each(["x // y", "x % y"], {"f32": (x, y), "f16": (np.float16(x), np.float16(y))})


CHAIN = """
N = dims("N")

@kernel
def f(x: u32[N]) -> (u32[N], u32[N], u32[N], i32[N], i32[N]):
    i = position()
    q = x[i] // 65536
    return x[i] // 65536 % 6, q % 6, x[i] % 3, i // 65536 % 6, i // 2 % 3
"""


def test_a_quotient_that_is_divided_again(place: str) -> None:
    kernel = mj.kernel_from_text(CHAIN)
    x = np.array([*range(128), 65535, 65536, 6 * 65536, 4294967294, 4294967295], np.uint32)
    i = np.arange(len(x))
    wanted = x // 65536 % 6, x // 65536 % 6, x % 3, i // 65536 % 6, i // 2 % 3
    for found, w in zip(kernel(x), wanted, strict=True):
        np.testing.assert_array_equal(found, w)
    assert kernel(np.arange(128, dtype=np.uint32))[0].any() == 0
    assert kernel(U32([4294967294]))[2][0] == 2


def test_no_remainder_is_taken_of_a_quotient_in_the_text() -> None:
    """Apple's compiler gets `i / d % c` of unsigned numbers wrong."""
    text = mj.kernel_from_text(CHAIN).msl(spec(np.uint32))
    assert not re.search(r"/[^;,]*%", "\n".join(code(text)))
    grid = (
        'A, B, C = dims("A B C")\n@kernel\ndef f(x: f32[A, B, C]) -> f32[A, B, C]:\n'
        "    a, b, c = position()\n    return x[a, b, c] + a + b\n"
    )
    assert not re.search(r"/[^;,]*%", "\n".join(code(mj.kernel_from_text(grid).msl(spec(np.float32, 3)))))


def test_no_floor_division_of_python_reaches_the_text() -> None:
    """It would begin a comment: every `//` stands at the beginning of a line."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\nC = (1, 2)\n@kernel\n'
        'def f(x: i32[N], y: f32[N], s: i32, k: const[str] = "a // b") -> (i32[N // 2], f32[N // 2]):\n'
        "    i = position()\n    t = x[i] // 2\n    t //= 3\n"
        "    return t // x[i] + s // 7 + C[i // 2], y[i] // 2.0\n"
    )
    program = kernel.program(spec(np.int32), spec(np.float32), 3)
    assert "//" not in "\n".join(code(program.msl))
    assert "//" not in "\n".join(code(program.cpu.text))


def test_halving_by_floor_division(place: str) -> None:
    assert on_each(["x // 2"], {"i32": ([5, -5],)})["x // 2", "i32"].tolist() == [2, -3]


# ---- narrow and wide integers ----

# Each uses the narrow value before it is stored anywhere.
CONSUMED = {
    **dict.fromkeys(
        ["(x + y) < 50", "(x - y) > 100", "(x * y) == 0", "~x == T(0)", "-x < 0", "(x << 4) > 100"], "bool"
    ),
    **dict.fromkeys(
        ["(x + y) // 2", "(x * y) % 7", "(x - y) >> 1", "-x // 3", "~x >> 4", "(x << 3) >> 3"], "T"
    ),
    **dict.fromkeys(["(x + y) * (x - y)", "min(x + y, y)", "max(x * y, x)", "abs(x - y)", "0 - (-x)"], "T"),
    **dict.fromkeys(["i64(x + y)", "i64(x - y)", "i64(x * y)", "i64(-x)", "i64(~x)", "i64(x << 1)"], "i64"),
    **dict.fromkeys(["f32(x + y)", "f32(-x) * f32(0.5)", "f32(x << 2)", "f32(x - y)"], "f32"),
}


def test_small_integers_wrap_before_they_are_used(place: str) -> None:
    check_each(CONSUMED, {n: PAIRS[n] for n in SMALL})


def test_a_negation_of_a_negation_is_no_decrement(place: str) -> None:
    check_each(["-(-x)", "-(-(x))"], {n: VALUES[n] for n in INTEGERS})


def test_worked_values_of_small_integers(place: str) -> None:
    expressions = ["x + y", "x >> 4", "~x", "-x"]
    found = on_each(
        expressions, {"u8": ([200, 255, 0, 1], [100, 0, 0, 0]), "i8": ([100, 127, -128], [100, 1, 0])}
    )
    assert found["x + y", "u8"][0] == 44
    assert found["x >> 4", "u8"][1] == 15
    assert found["~x", "u8"][2] == 255
    assert found["-x", "u8"][3] == 255
    assert found["x + y", "i8"].tolist() == [-56, -128, -128]
    assert found["-x", "i8"][2] == -128
    less = on_each({"(x + y) < 50": "bool"}, {"u8": ([200, 100], [100, 100])})
    assert less["(x + y) < 50", "u8"].tolist() == [True, False]


def test_integers_of_every_width_wrap(place: str) -> None:
    check_each(["x + y", "x - y", "x * y", "x * x - y * y", "-x + ~y"], PAIRS)


def test_shifts_of_every_count(place: str) -> None:
    """By negative counts and by the width or more there is nothing left but the sign."""
    x = {n: PAIRS[n] for n in ("i32", "i64", "i8", "u8", "u32", "u64")}
    moved_by = on_each(["x << y", "x >> y"], x)
    for name, (a, b) in x.items():
        left, right, bits = moved_by["x << y", name], moved_by["x >> y", name], 8 * a.itemsize
        for v, k, up, down in zip(a.tolist(), b.tolist(), left, right, strict=True):
            moved = v << k if 0 <= k < bits else 0
            assert int(up) == int(np.array(moved & (2**bits - 1), np.uint64).astype(a.dtype)), (name, v, k)
            assert int(down) == (v >> k if 0 <= k < bits else -1 if v < 0 else 0), (name, v, k)


def test_powers_of_integers_wrap(place: str) -> None:
    x = np.array([-3, -2, -1, 0, 1, 2, 3, 46341, 65536], np.int32)
    exponents = (0, 1, 2, 3, 5, 40)
    found = on_each([f"x ** {n}" for n in exponents], {"i32": (x,)})
    for n in exponents:
        wanted = [((int(v) ** n + 2**31) % 2**32) - 2**31 for v in x]
        assert found[f"x ** {n}", "i32"].tolist() == wanted, n


REDUCTIONS = """
N = dims("N")

@kernel
def f(x: T_[N], b: bool[N]) -> (WIDE, WIDE, T_, T_, T_, i32, i64):
    s: T_ = 0
    for k in range(N):
        s += x[k]
    return (sum(x[k] for k in range(N)), prod(x[k] for k in range(N)), s, max(x[k] for k in range(N)),
            min(x[k] for k in range(N)), sum(b[k] for k in range(N)), sum(i64(x[k]) for k in range(N)))
"""


@pytest.mark.parametrize("name", ["u8", "i16", "i32"])
def test_sums_of_small_integers_neither_saturate_nor_go_through_floats(place: str, name: str) -> None:
    wide = {"u8": "u32", "i16": "i32", "i32": "i32"}[name]
    kernel = mj.kernel_from_text(REDUCTIONS.replace("T_", name).replace("WIDE", wide))
    dtype = np.dtype(NUMPY[name])
    ends = np.iinfo(dtype)
    for values in (
        [255, 17] if name == "u8" else [-3, 17],
        [ends.max] * 70_001,
        [ends.min, ends.max, ends.min],
        [],
    ):
        x = np.array(values, dtype)
        b = np.ones(len(x), np.bool_)
        total, product_, narrow, most, least, count, widest = kernel(x, b)
        exact = sum(values)
        assert total.dtype == NUMPY[wide]
        assert int(total) == int(np.array(exact, np.int64).astype(NUMPY[wide]))
        assert int(product_) == int(np.prod(x, dtype=NUMPY[wide]))
        assert int(narrow) == int(np.array(exact, np.int64).astype(dtype))
        assert (int(most), int(least)) == ((max(values), min(values)) if values else (ends.min, ends.max))
        assert int(count) == len(values)
        assert int(widest) == exact
    if name == "u8":
        total, _, narrow, *_ = kernel(U8([255, 17]), np.ones(2, np.bool_))
        assert (int(total), int(narrow)) == (272, 16)


# ---- conversions ----


def clamped(value: float, name: str) -> int:
    info = np.iinfo(NUMPY[name])
    if math.isnan(value):
        return 0
    return int(info.min) if value < info.min else int(info.max) if value > info.max else math.trunc(value)


FLOAT_VALUES = [
    0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, -1.5, 127.0, 127.9, 128.0, -128.0, -128.9, -129.0, 255.0, 255.9, 256.0,
    300.0, 32767.5, 32768.0, -32769.0, 65504.0, 65535.5, 65536.0, 2147483520.0, 2147483648.0, -2147483648.0,
    -2147483904.0, 4294967040.0, 4294967296.0, 2.0**63, 2.0**63 - 2.0**39, -(2.0**63), 2.0**64, 2.0**64 - 2.0**40,
    1e20, -1e20, 3e38, -3e38, 1e-45, math.inf, -math.inf, math.nan, -math.nan,
]  # fmt: skip


@pytest.mark.parametrize("source", FLOATS)
def test_floats_out_of_range_saturate_and_nan_becomes_zero(place: str, source: str) -> None:
    casts = ", ".join(f"{n}(v)" for n in INTEGERS)
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\n'
        f"def f(x: {source}[N], s: {source}) -> ({', '.join(f'{n}[N]' for n in INTEGERS)}, i32[N], i8[N], i8[N]):\n"
        f"    v = x[position()]\n    return {casts}, int(v), saturate(i8, v), i8(s)\n"
    )
    with np.errstate(all="ignore"):
        x = np.array(FLOAT_VALUES, np.float32).astype(NUMPY[source])
    results = kernel(x, 300.0)
    for name, found in zip((*INTEGERS, "i32", "i8"), results, strict=False):
        for value, got in zip(np.asarray(x, np.float64).tolist(), found.tolist(), strict=True):
            assert got == clamped(value, name), f"{name}({value!r} of {source})"
    assert results[-1][0] == 127


def test_constants_convert_as_values_do(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\nBIG = 300.7\n@kernel\ndef f(x: f32[N], c: const[float]) -> (i8[N], u8[N], i8[N], u8[N], i32[N]):\n'
        "    return i8(300.7), u8(-3.5), i8(BIG), u8(c), i32(-1.5)\n"
    )
    found = [r.tolist()[0] for r in kernel(np.zeros(1, np.float32), -1e30)]
    assert found == [127, 0, 127, 0, -1]


def test_integers_wrap_into_every_other_type(place: str) -> None:
    check_each({f"{target}(x)": target for target in (*INTEGERS, "f32")}, VALUES)


def test_unsigned_bytes_stay_unsigned_on_the_way_to_a_float(place: str) -> None:
    every = {
        n: (np.arange(i.min, i.max + 1).astype(NUMPY[n]),) for n in ("u8", "i8") if (i := np.iinfo(NUMPY[n]))
    }
    check_each(dict.fromkeys(["f32(x)", "x * f32(0.5)", "x + f32(0)"], "f32"), every)
    ends = {n: ([200, np.iinfo(NUMPY[n]).max],) for n in UNSIGNED}
    found = on_each({"f32(x)": "f32", "x * 0.5": "f32"}, ends)
    assert found["x * 0.5", "u8"].tolist() == [100, 127.5]
    for name in UNSIGNED:
        assert found["f32(x)", name].tolist() == [200, np.float32(np.iinfo(NUMPY[name]).max)]


BOOLS = """
N = dims("N")

def first(t):
    return t[0]

@kernel
def f(x: bool[N], y: bool[N], s: bool) -> (bool[N], bool[N], bool[N], bool[N], bool[N], bool[N], bool[N], bool[N],
        i32[N], i32[N], f32[N], u8[N], i32[N], bool[N], bool[N], i32[N]):
    i = position()
    a, b = x[i], y[i]
    t = local_array(bool, 2)
    t[0] = a
    count = sum(x[k] for k in range(N))
    return (a, ~a, not a, a + b, a * b, a ^ b, a == b, a < b, a * 2, i32(a) + 1, a * 0.5, u8(a), 10 if a else 20,
            first(t), s, count)
"""


def test_bytes_that_are_neither_0_nor_1_are_true(place: str) -> None:
    raw = np.array(list(product([0, 1, 2, 128, 255], repeat=2)), np.uint8)
    x, y = (raw[:, k].copy().view(np.bool_) for k in (0, 1))
    a, b = raw[:, 0] != 0, raw[:, 1] != 0
    kernel = mj.kernel_from_text(BOOLS)
    for s in (True, False, np.True_, 1, 0):
        wanted = (a, ~a, ~a, a | b, a & b, a ^ b, a == b, a < b, a * 2, a + 1, a * 0.5, a, np.where(a, 10, 20), a,
                  np.full(len(a), bool(s)), np.full(len(a), a.sum()))  # fmt: skip
        for k, (found, w) in enumerate(zip(kernel(x, y, s), wanted, strict=True)):
            np.testing.assert_array_equal(found, w, f"result {k}")
            if found.dtype == np.bool_:
                assert set(found.view(np.uint8).tolist()) <= {0, 1}, (
                    f"result {k} holds other bytes than 0 and 1"
                )


SCALARS = """
N = dims("N")

@kernel
def f(x: f32[N], a: bool, b: i64, c: u8, d: f16, e: bool, f_: u32, g: bf16, h: i8, k: f32, l: u64, m: i16, n: bool,
      o: i32, p: u16, q: u8x3, r: f16x2, s: boolx2, t: i64x2) -> (
        bool[N], i64[N], u8[N], f16[N], bool[N], u32[N], bf16[N], i8[N], f32[N], u64[N], i16[N], bool[N], i32[N], u16[N],
        u8x3[N], f16x2[N], boolx2[N], i64x2[N]):
    return a, b, c, d, e, f_, g, h, k, l, m, n, o, p, q, r, s, t
"""


def test_scalars_of_every_width_lie_side_by_side(place: str) -> None:
    """Host and device agree on the width and place of each: a bool takes one byte, a 64-bit number eight."""
    values = (True, -(2**63), 255, 0.5, False, 2**32 - 1, 3.0, -128, 1e30, 2**64 - 1, -(2**15), True, -(2**31), 65535,
              (1, 2, 255), (0.25, -2), (False, True), (2**62, -1))  # fmt: skip
    results = mj.kernel_from_text(SCALARS)(np.zeros(2, np.float32), *values)
    for k, (found, value) in enumerate(zip(results, values, strict=True)):
        assert found[1].tolist() == (
            list(value) if isinstance(value, tuple) else np.float32(1e30) if k == 8 else value
        )


EXACT = """
N = dims("N")
BIG, TABLE = 16777217, (16777217, 9007199254740993, -16777217)

def same(v):
    w = v
    return w

@kernel
def f(x: i64[N], y: u64[N], z: i32[N], s: i64, u: u64, c: const[int]) -> (i64[N], u64[N], i64[N], u64[N], i32[N],
        i64[N], i64[N], bool[N], bool[N], i64[N], i64[N], i32[N], i32[N], i64[N], u64[N]):
    i = position()
    t = local_array(i64, 2)
    t[1] = x[i]
    return (same(x[i]), same(y[i]), s, u, BIG + i32(0), TABLE[i % 3] + i64(0), c + i64(0),
            x[i] == s, y[i] > u, max(x[i], s), t[1] if x[i] != 0 else 0, z[i], z[i] * z[i],
            sum(x[k] for k in range(N)), max(y[k] for k in range(N)))
"""


def test_integers_never_go_through_floats(place: str) -> None:
    """Neighbours of 2**24 and 2**53 stay apart: copied, passed, captured, compared, chosen, summed."""
    x = I64([2**53 + 1, 2**53, -(2**53) - 1, 16777217, 2**63 - 1, -(2**63)])
    y = U64([2**53 + 1, 2**64 - 1, 2**64 - 2, 16777217, 2**63 + 1, 0])
    z = I32([16777217, 46341, -16777217, 2147483647, 33554433, 65536])
    results = mj.kernel_from_text(EXACT)(x, y, z, 2**53 + 1, 2**64 - 2, 9007199254740993)
    table = [16777217, 9007199254740993, -16777217]
    with np.errstate(all="ignore"):
        wanted = (x, y, [2**53 + 1] * 6, [2**64 - 2] * 6, [16777217] * 6, table * 2, [9007199254740993] * 6,
                  x == 2**53 + 1, y > np.uint64(2**64 - 2), np.maximum(x, 2**53 + 1), x, z, z * z,
                  [int(x.sum())] * 6, [2**64 - 1] * 6)  # fmt: skip
    for k, (found, w) in enumerate(zip(results, wanted, strict=True)):
        assert found.tolist() == list(w), f"result {k}"
    assert results[12][1] == -2147479015


def test_integers_of_two_types_compare_by_value(place: str) -> None:
    """-1 is below every unsigned number, and 2**24 + 1 is not 2**24."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\n'
        "def f(x: i32[N], y: u32[N], z: u8[N]) -> (bool[N], bool[N], bool[N], i64[N], bool[N], bool[N]):\n"
        "    i = position()\n"
        "    return x[i] < y[i], x[i] == y[i], x[i] > y[i], max(x[i], y[i]), x[i] < z[i], -1 < y[i] + i64(0)\n"
    )
    x, y = I32([-1, -1, 5, 16777217]), U32([0, 2**32 - 1, 5, 16777216])
    z = U8([0, 255, 5, 1])
    wide = np.maximum(x.astype(np.int64), y)
    wanted = x < y, x == y, x > y, wide, x < z, np.ones(4, np.bool_)
    for found, w in zip(kernel(x, y, z), wanted, strict=True):
        np.testing.assert_array_equal(found, w)
