"""Types that are fixed too early, literals that promote too eagerly, and comparisons that C reads otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from every_type import I8, I32, INTEGERS, NUMBERS, NUMPY, U8, U64, refusal

import metaljit as mj

F: Any = np.float32
H: Any = np.float16


def spec(dtype: Any, rank: int = 1) -> mj.Spec:
    return mj.spec((None,) * rank, dtype)


# ---- the first assignment does not decide ----

JOINS = """
N = dims("N")

def chosen(v):
    s = 0
    if v > 1:
        s = 0.5
    return s

@kernel
def f(x: f32[N], y: u8[N], z: f16[N], n: i32) -> (f32[N], f32[N], f32[N], i32[N], f32[N], f32[N], f32[N], f32[N], f32[N]):
    i = position()
    s = 0
    s = s + 1.5
    t = 0
    for k in range(3):
        t += 0.5
    u = 0
    if x[i] > 0:
        u = 2.5
    v = 0
    for k in range(n):
        v += y[i]
    w = 0
    k = 0
    while k < n:
        w = w + z[i]
        k += 1
    a = 1
    a /= 2
    b = 0
    for p, q in zip((1, 2), (0.25, 0.5)):
        b = b + p * q
    c = 7 if x[i] > 100 else 0.5
    return s, t, u, v, w, a, b, c, chosen(x[i])
"""


def test_a_variable_that_begins_as_an_integer_may_become_a_float(place: str) -> None:
    x, y, z = np.array([1, -1, 2], F), U8([200, 1, 0]), H([0.25, 1, -1])
    results = mj.kernel_from_text(JOINS)(x, y, z, 3)
    wanted = ([1.5] * 3, [1.5] * 3, [2.5, 0, 2.5], [600, 3, 0], [0.75, 3, -3], [0.5] * 3, [1.25] * 3, [0.5] * 3,
              [0, 0, 0.5])  # fmt: skip
    for found, w in zip(results, wanted, strict=True):
        assert found.tolist() == w


TWO_TYPES = [
    "    s = x[i]\n    if x[i] > 0:\n        s = i\n    return s",
    "    s = i\n    for k in range(3):\n        s = s * 0.5\n    return 0.0",
    "    s = u8(1)\n    for k in range(3):\n        s += x[i]\n    return 0.0",
    "    return x[i] if x[i] > 0 else i64(4)",
    "    s = i\n    while s < 3:\n        s = s + x[i]\n    return 0.0",
]


@pytest.mark.parametrize("body", TWO_TYPES)
def test_two_types_that_meet_are_an_error_at_both_places_and_never_a_cut(body: str) -> None:
    text = f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    i = position()\n{body}\n'
    found = refusal(text, spec(F))
    assert found.slug == "type-join"
    diagnostic = found.diagnostics[0]
    assert diagnostic.span is not None
    assert diagnostic.span.line >= 5
    assert "f32" in str(found)


def test_a_declared_type_stays(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: u8[N]) -> (f32[N], i64[N]):\n    a: f32 = 0\n    b: i64 = 0\n'
        "    for k in range(3):\n        a += x[position()] / 2\n        b += x[position()]\n    return a, b\n"
    )
    a, b = kernel(U8([255]))
    assert (a[0], b[0]) == (382.5, 765)


# ---- literals take the type beside them ----


def literal_types() -> list[str]:
    """Each is a type that NumPy 2 gives, with float64 read as float32."""
    found = []
    for n in (*NUMBERS, "bool"):
        one = NUMPY[n](1)
        for literal in ("1", "2.0", "True"):
            for operator in ("+", "*", "==") if n == "bool" else ("+", "-", "*", "/", "//", "=="):
                if n == "bool" and literal == "1":
                    continue  # NumPy makes int64 of it, the language i32
                if n == "bf16":
                    joined = n if operator != "==" else "bool"
                elif operator == "/" and n in INTEGERS:
                    joined = "f32"
                else:
                    value = {"1": 1, "2.0": 2.0, "True": True}[literal]
                    dtype = np.asarray(eval(f"a {operator} b", {"a": one, "b": value})).dtype
                    joined = next(k for k, v in NUMPY.items() if v == dtype) if dtype != np.float64 else "f32"
                found.append(f"(v_{n} {operator} {literal}).dtype == {joined}")
    return found


def test_a_literal_beside_a_value_takes_its_type() -> None:
    parameters = ", ".join(f"a_{n}: {n}[N]" for n in (*NUMBERS, "bool"))
    names = "\n".join(f"    v_{n} = a_{n}[position()]" for n in (*NUMBERS, "bool"))
    checks = "\n".join(f'    static_assert({c}, "{c}")' for c in literal_types())
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f({parameters}) -> f32[N]:\n{names}\n{checks}\n    return 0\n'
    )
    arrays = [spec(NUMPY[n]) for n in (*NUMBERS, "bool")]
    kernel.program(*arrays)
    mutant = kernel.definition.source.text.replace("(v_i8 + 1).dtype == i8", "(v_i8 + 1).dtype == i32")
    assert refusal(mutant, *arrays).slug == "static-assertion"


LITERALS = """
N = dims("N")
K, G = 2, 0.5

def same(v):
    return v

@kernel
def f(a: i8[N], b: f16[N], c: u8[N], k: const[int], g: const[float]) -> (i8[N], f16[N], i8[N], f16[N], i8[N], f16[N],
        f32[N], f32[N], f16[N], i8[N]):
    i = position()
    once = 1
    half = 0.5
    return (a[i] + 1, b[i] * 2.0, a[i] + K, b[i] * G, a[i] + k, b[i] * g, a[i] / 2, c[i] * half, b[i] + once,
            same(a[i] + once))
"""


def test_literals_captured_numbers_and_constants_are_weak(place: str) -> None:
    a, b, c = I8([127, 1]), H([65504, 0.1]), U8([255, 1])
    results = mj.kernel_from_text(LITERALS)(a, b, c, 3, 0.25)
    h = np.float16
    with np.errstate(all="ignore"):
        wanted = (a + np.int8(1), b * h(2), a + np.int8(2), b * h(0.5), a + np.int8(3), b * h(0.25), F(a) / 2,
                  F(c) * F(0.5), b + h(1), a + np.int8(1))  # fmt: skip
    for k, (found, w) in enumerate(zip(results, wanted, strict=True)):
        assert found.dtype == w.dtype
        np.testing.assert_array_equal(found, w, f"result {k}")


def test_integers_divide_into_floats(place: str) -> None:
    parameters = ", ".join(f"x_{n}: {n}[N], y_{n}: {n}[N]" for n in INTEGERS)
    parts = ", ".join(f"x_{n}[i] / y_{n}[i]" for n in INTEGERS)
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f({parameters}) -> ({", ".join(["f32[N]"] * 8)}):\n    i = position()\n'
        f"    return {parts}\n"
    )
    arrays = [np.array(v, NUMPY[n]) for n in INTEGERS for v in ([1, 7, 0, 100], [2, 3, 0, 0])]
    with np.errstate(all="ignore"):
        for found in kernel(*arrays):
            np.testing.assert_array_equal(found, np.array([1, 7, 0, 100], F) / np.array([2, 3, 0, 0], F))


@pytest.mark.parametrize(
    ("dtype", "expression"),
    [
        ("i8", "v + 256"), ("i8", "v * 128"), ("i8", "v == 128"), ("u8", "v + 256"), ("u8", "v + -1"), ("u8", "v < -1"),
        ("i16", "v - 32769"), ("u16", "v | 65536"), ("i32", "v + 2147483648"), ("u32", "v + 4294967296"),
        ("u64", "v - -1"), ("u8", "min(v, 300)"), ("u8", "v + K"), ("i8", "v + k"), ("u8", "v if v > 3 else v + 999"),
    ],
)  # fmt: skip
def test_a_literal_that_does_not_fit_is_refused(dtype: str, expression: str) -> None:
    text = (
        f'N = dims("N")\nK = 256\n@kernel\ndef f(x: {dtype}[N], k: const[int] = 1000) -> bool[N]:\n'
        f"    v = x[position()]\n    return bool({expression})\n"
    )
    found = refusal(text, spec(NUMPY[dtype]))
    assert found.slug == "literal-range"
    assert dtype in str(found)


def test_literals_that_just_fit_are_taken(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i8[N], y: u8[N], z: u64[N]) -> (i8[N], i8[N], u8[N], u64[N], bool[N]):\n'
        "    i = position()\n    return x[i] + 127, x[i] + -128, y[i] + 255, z[i] + 18446744073709551615, x[i] == -128\n"
    )
    results = kernel(I8([1, -128]), U8([1, 0]), U64([1, 5]))
    assert [r.tolist() for r in results] == [[-128, -1], [-127, 0], [0, 255], [0, 4], [False, True]]


# ---- and, or, chains ----

LOGIC = """
N = dims("N")

def counted(t, v):
    t[0] += 1
    return v

@kernel
def f(x: i32[N], y: i32[N], z: i32[N], w: f32[N]) -> (bool[N], bool[N], bool[N], bool[N], i32[N], i32[N], i32[N], f32[N],
        f32[N], bool[N], i32[N], i32[N], bool[N], bool[N], bool[N]):
    i = position()
    a, b, c, g = x[i], y[i], z[i], w[i]
    t = local_array(i32, 1)
    chain = a < counted(t, b) < c
    once = t[0]
    lazy = a > 0 and counted(t, b) > 0
    calls = t[0]
    return (a < b < c, a > b >= c, a == b == c, a < b > c != a, a and b, a or b, a and b or c, g and 2.5, g or 2.5, chain,
            once, calls, lazy, not a and b > 0, not a == b)
"""


def test_chains_and_logic_are_pythons(place: str) -> None:
    values = [0, 1, 2, 3, -1]
    x, y, z = (np.array(v, np.int32).ravel() for v in np.meshgrid(values, values, values))
    w = np.where(x > 1, 0, x).astype(F) / 2
    results = mj.kernel_from_text(LOGIC)(x, y, z, w)
    for k, (a, b, c, g) in enumerate(zip(x.tolist(), y.tolist(), z.tolist(), w.tolist(), strict=True)):
        wanted = (a < b < c, a > b >= c, a == b == c, a < b > c != a, a and b, a or b, a and b or c, g and 2.5, g or 2.5,
                  a < b < c, 1, 1 + (a > 0), a > 0 and b > 0, not a and b > 0, not a == b)  # fmt: skip
        for n, (found, value) in enumerate(zip(results, wanted, strict=True)):
            assert found[k] == value, f"result {n} for {(a, b, c, g)}"


def test_logic_of_constants_is_pythons(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\nZERO, FIVE = 0, 5\n@kernel\n'
        "def f(x: i32[N], k: const[int]) -> (bool[N], bool[N], i32[N], i32[N], i32[N], i32[N], i32[N], bool[N]):\n"
        "    v = x[position()] * 0\n"
        "    return (1 < 3 < 2, 3 < 2 < 1, v + (0 or 5), v + (2 and 3), v + (ZERO or FIVE), v + (FIVE and k), v + (k or 9),\n"
        "            0 < k < 5)\n"
    )
    results = [r[0] for r in kernel(I32([1]), 3)]
    assert results == [False, False, 5, 3, 5, 3, 3, True]
    assert [r[0] for r in kernel(I32([1]), 0)][5:] == [0, 9, False]


def test_precedence_is_pythons(place: str) -> None:
    """Where C binds otherwise: comparisons under bit operators, `not`, `-` before `**`, `~`, shifts, conditions."""
    expressions = [
        "a & b == c", "(a & b) == c", "a | b < c", "a ^ b != c", "not a == b", "not a + b", "-a ** 2", "(-a) ** 2",
        "~a + b", "a << 1 + 1", "a + b << 2", "a - b - c", "a - (b - c)", "a * b % 7", "a * (b % 7)", "a % 7 * b",
        "a // 2 * 3", "a & b | c ^ a", "a if b else c if a else 9", "a or b and c", "a < b and b < c or a == c",
        "- -a", "a - -b", "a + +b", "a & ~b",
    ]  # fmt: skip
    values = [0, 1, 2, 5, -3]
    x, y, z = (np.array(v, np.int32).ravel() for v in np.meshgrid(values, values, values))
    text = (
        f'N = dims("N")\n@kernel\ndef f(x: i32[N], y: i32[N], z: i32[N]) -> ({", ".join(["i32[N]"] * len(expressions))}):\n'
        f"    i = position()\n    a, b, c = x[i], y[i], z[i]\n    return {', '.join(f'i32({e})' for e in expressions)}\n"
    )
    results = mj.kernel_from_text(text)(x, y, z)
    for expression, found in zip(expressions, results, strict=True):
        for a, b, c, value in zip(x.tolist(), y.tolist(), z.tolist(), found.tolist(), strict=True):
            assert value == int(eval(expression)), f"{expression} for {(a, b, c)}"
