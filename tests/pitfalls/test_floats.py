"""NaN, infinity, rounding and contraction; 16-bit floats; functions that Metal lacks; float64."""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from every_type import FLOATS, NUMPY, U16, check_each, code, on_each, refusal, same
from places import needs_precise_floats

import metaljit as mj

F, H, B = np.float32, np.float16, ml_dtypes.bfloat16
NAN, INF = math.nan, math.inf
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, 300.0, -7.0, INF, -INF, NAN]


def spec(dtype: Any, rank: int = 1) -> mj.Spec:
    return mj.spec((None,) * rank, dtype)


def floats(values: Any) -> dict[str, Any]:
    with np.errstate(over="ignore"):
        return {n: (np.array(values, F).astype(NUMPY[n]),) for n in FLOATS}


def float_pairs(values: Any = SPECIAL) -> dict[str, Any]:
    x, y = (np.array(v, F) for v in zip(*product(values, values), strict=True))
    return {n: (x.astype(NUMPY[n]), y.astype(NUMPY[n])) for n in FLOATS}


# ---- NaN and infinity ----

PREDICATES = [
    "isnan(x)",
    "isinf(x)",
    "isfinite(x)",
    "signbit(x)",
    "x != x",
    "x == x",
    "not x == x",
    "x < INF",
    "x > -INF",
]


def test_nan_and_infinity_are_seen(place: str) -> None:
    needs_precise_floats(place)
    values = [NAN, -NAN, INF, -INF, 1, 0, -0.0, 65504, 1e-7]
    results = on_each({p.replace("INF", "inf"): "bool" for p in PREDICATES}, floats(values))
    for name in FLOATS:
        (x,) = (np.asarray(v[0], F) for k, v in floats(values).items() if k == name)
        wanted = (
            np.isnan(x),
            np.isinf(x),
            np.isfinite(x),
            np.signbit(x),
            x != x,
            x == x,
            x != x,
            x < INF,
            x > -INF,
        )
        for predicate, w in zip(PREDICATES, wanted, strict=True):
            np.testing.assert_array_equal(
                results[predicate.replace("INF", "inf"), name], w, f"{predicate} of {name}"
            )


CHOICES = """
N = dims("N")

@kernel(math="MATH")
def f(x: f32[N], h: f16[N], b: bf16[N]) -> (f32[N], f16[N], bf16[N], f32[N], f32[N], bool[N], bool[N], f32[N]):
    i = position()
    v = x[i]
    kept = v
    if isnan(v):
        kept = 0
    return (where(isnan(v), 0, v), where(isnan(h[i]), 0, h[i]), 0 if isnan(b[i]) else b[i], kept, nan_to_num(v),
            isnan(v), isinf(v), max(v, 0))
"""


@pytest.mark.parametrize("math_", ["precise", "fast"])
def test_nan_is_replaced_in_fast_kernels_too(place: str, math_: str) -> None:
    """What asks for NaN works on bits, whatever the compiler may assume."""
    x = np.array([NAN, 2, INF, -1], F)
    results = mj.kernel_from_text(CHOICES.replace("MATH", math_))(x, x.astype(H), x.astype(B))
    for found in results[:4]:
        assert np.asarray(found, F).tolist() == [0, 2, INF, -1]
    assert results[4].tolist() == [0, 2, np.finfo(F).max, -1]
    assert results[5].tolist() == [True, False, False, False]
    assert results[6].tolist() == [False, False, True, False]
    if math_ == "precise":
        np.testing.assert_array_equal(results[7], np.array([NAN, 2, INF, 0], F))


def test_the_compiler_is_never_asked_for_nan() -> None:
    for math_ in ("precise", "fast"):
        text = "\n".join(
            code(mj.kernel_from_text(CHOICES.replace("MATH", math_)).msl(spec(F), spec(H), spec(B)))
        )
        assert not re.search(r"(?<!mj_)\b(isnan|isinf|isfinite|isnormal|signbit)\s*\(|\bmetal::is\w+", text)
        assert not re.search(r"\b(NAN|INFINITY|nan|inf|HUGE_VALF|MAXFLOAT)\b", text)
        on_metal = re.sub(r"#ifdef METALJIT_CPU\n.*?#else\n(.*?)#endif\n", r"\1", text, flags=re.S)
        (asked,) = re.findall(r"bool mj_isnan\(float x\) \{ return (.*); \}", on_metal)
        assert asked == "(as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u"


def test_a_condition_is_a_choice_and_no_arithmetic_in_the_text() -> None:
    """`x * mask + y * (1 - mask)` would make NaN of an infinity, and fast math may delete it."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], m: bool[N]) -> (f32[N], f32[N], f32[N]):\n    i = position()\n'
        "    v = 0.0\n    if m[i]:\n        v = x[i]\n"
        "    return where(m[i], x[i], -1e30), x[i] if m[i] else -1e30, v\n"
    )
    text = mj.kernel_from_text(kernel.definition.source.text).msl(spec(F), spec(np.bool_))
    body = "\n".join(code(text[text.index("f_at_result f_at(") : text.index("kernel void")]))
    assert body.count("?") >= 2
    assert "*" not in body.replace("device const float*", "").replace("device const uchar*", "").replace(
        "bool*", ""
    )


def test_masked_softmax(place: str) -> None:
    needs_precise_floats(place)
    text = """
N = dims("N")

@kernel
def f(x: f32[N], keep: bool[N]) -> f32[N]:
    i = position()
    most = max(x[k] for k in range(N) if keep[k])
    total = sum(exp(x[k] - most) for k in range(N) if keep[k])
    return exp(x[i] - most) / total if keep[i] else 0.0

@kernel
def plain(x: f32[N]) -> f32[N]:
    most = max(x[k] for k in range(N))
    return exp(x[position()] - most) / sum(exp(x[k] - most) for k in range(N))
"""
    kernel = mj.kernel_from_text(text[: text.index("@kernel\ndef plain")])
    found = kernel(np.array([0.5, 0.25, 0.75], F), np.array([True, False, True]))
    np.testing.assert_allclose(found, [0.43782347, 0, 0.5621765], rtol=1e-6)
    plain = mj.kernel_from_text(text)
    assert plain(np.array([0, -INF], F)).tolist() == [1, 0]
    np.testing.assert_allclose(plain(np.array([0.5, -1e10, 0.75], F)), [0.43782347, 0, 0.5621765], rtol=1e-6)
    assert kernel(np.array([INF, 1], F), np.array([False, True])).tolist() == [0, 1]


# ---- minimum and maximum ----


def test_minimum_and_maximum_keep_nan_and_fmin_and_fmax_do_not(place: str) -> None:
    values = [0.5, -0.5, 1.0, -2.0, 300.0, INF, -INF, NAN]
    pairs = float_pairs(values)
    names = {"maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "max": np.maximum,
             "min": np.minimum}  # fmt: skip
    results = on_each([f"{n}(x, y)" for n in names], pairs)
    for (n, function), name in product(names.items(), FLOATS):
        x, y = (np.asarray(v, F) for v in pairs[name])
        wanted = function(x, y).astype(NUMPY[name])
        assert same(results[f"{n}(x, y)", name], wanted).all(), f"{n} of {name}"


def test_clip_and_choices_with_constants_keep_nan(place: str) -> None:
    values = [NAN, -2, 2, 0.25, INF, -INF]
    expressions = {"clip(x, -1, 1)": lambda x: np.clip(x, -1, 1), "max(x, 0)": lambda x: np.maximum(x, 0),
                   "min(1, x)": lambda x: np.minimum(1, x), "max(x, 0, 1)": lambda x: np.maximum(np.maximum(x, 0), 1),
                   "min(max(x, -1), 1)": lambda x: np.clip(x, -1, 1), "maximum(x, nan)": lambda x: x * NAN}  # fmt: skip
    results = on_each(list(expressions), floats(values))
    with np.errstate(all="ignore"):
        for (expression, meaning), name in product(expressions.items(), FLOATS):
            wanted = np.asarray(meaning(np.array(values, F)), F)
            assert same(results[expression, name], wanted).all(), f"{expression} of {name}"
    worked = on_each(["maximum(x, y)", "fmax(x, y)"], {"f32": ([NAN, 1], [1, NAN])})
    assert np.isnan(worked["maximum(x, y)", "f32"]).all()
    assert worked["fmax(x, y)", "f32"].tolist() == [1, 1]


ROWS = """
R, C = dims("R C")

@kernel
def f(x: T_[R, C]) -> (T_[R], T_[R], i32[R], i32[R], T_[R], i32[R], i32[R]):
    r = position()
    best, at = x[r, 0], 0
    for c in range(1, C):
        if x[r, c] > best:
            best, at = x[r, c], c
    return (max(x[r, c] for c in range(C)), min(x[r, c] for c in range(C)), argmax(x[r, c] for c in range(C)),
            argmin(x[r, c] for c in range(C)), best, argmax(x[r, C - 1 - c] for c in range(C)),
            argmax(x[r, a * 2 + b] for a in range(C // 2) for b in range(2)))
"""
ARG_ROWS: list[Any] = [
    [3, NAN, 1, 5], [1, 3, 3, 0], [2, 1, 1, 7], [NAN, NAN, 1, 2], [5, 1, 0, NAN], [-INF] * 4, [INF] * 4, [0.0, -0.0, 0.0, -0.0],
    [-1, -2, -3, -4], [7, 7, 7, 7], [INF, NAN, INF, 0], [1, 2, 3, 3],
]  # fmt: skip


@pytest.mark.parametrize("name", ["f32", "f16", "i8", "u64"])
def test_argmax_and_argmin_take_the_first_nan_and_the_first_of_equals(place: str, name: str) -> None:
    rows = (
        ARG_ROWS
        if name in FLOATS
        else [r for r in ARG_ROWS if np.isfinite(r).all() and min(r) >= 0] + [[0, 0, 0, 0]]
    )
    x = np.array(rows, F).astype(NUMPY[name])
    wide = np.tile(x, (1, 33))  # rows longer than any vector of a machine
    kernel = mj.kernel_from_text(ROWS.replace("T_", name))
    for rows_ in (x, wide):
        most, least, first_most, first_least, _, backwards, flat = kernel(rows_)
        as_float = rows_.astype(F) if name in FLOATS else rows_
        assert (
            same(most, rows_.max(1)).all()
            or (most.astype(F) == as_float.max(1))[~np.isnan(as_float.max(1))].all()
        )
        np.testing.assert_array_equal(np.isnan(np.asarray(most, F)), np.isnan(np.asarray(rows_.max(1), F)))
        np.testing.assert_array_equal(np.asarray(least, F), np.asarray(rows_.min(1), F))
        np.testing.assert_array_equal(first_most, np.argmax(as_float, 1))
        np.testing.assert_array_equal(first_least, np.argmin(as_float, 1))
        np.testing.assert_array_equal(backwards, np.argmax(as_float[:, ::-1], 1))
        np.testing.assert_array_equal(flat, np.argmax(as_float, 1))


# ---- rounding ----


def test_halves_round_to_the_even_number(place: str) -> None:
    values = [
        0.5,
        1.5,
        2.5,
        3.5,
        -0.5,
        -1.5,
        -2.5,
        0.49999997,
        0.0,
        -0.0,
        1e6 + 0.5,
        8388609.0,
        2.0**30,
        INF,
        -INF,
        NAN,
    ]
    results = on_each(["round(x)", "rint(x)", "around(x)"], floats(values))
    for name in FLOATS:
        (x,) = floats(values)[name]
        wanted = np.rint(np.asarray(x, F)).astype(NUMPY[name])
        for expression in ("round(x)", "rint(x)", "around(x)"):
            assert same(results[expression, name], wanted).all(), f"{expression} of {name}"
    whole = on_each({"i32(round(x))": "i32"}, {"f32": ([0.5, 1.5, 2.5, -0.5, -2.5],)})
    assert whole["i32(round(x))", "f32"].tolist() == [0, 2, 2, 0, -2]


# ---- powers ----


def test_powers_of_negative_bases_and_of_zero(place: str) -> None:
    bases = [-1, -2, -3, 0.0, -0.0, 1, 2, 0.5, INF, -INF, NAN, 1e10]
    exponents = [0, -0.0, 1, 2, 3, -1, -2, 0.5, 31, 127, -5, INF, -INF, NAN, 1e10, 0.333]
    x, y = (np.array(v, F) for v in zip(*product(bases, exponents), strict=True))
    found = on_each(["x ** y", "power(x, y)"], {"f32": (x, y)})
    with np.errstate(all="ignore"):
        wanted = np.power(x, y)
    for values in found.values():
        for a, b, got, w in zip(x.tolist(), y.tolist(), values.tolist(), wanted.tolist(), strict=True):
            assert (math.isnan(got) and math.isnan(w)) or got == pytest.approx(w, rel=2e-6), (
                f"{a} ** {b} = {got}, not {w}"
            )
    worked = on_each(["x ** y"], {"f32": ([-1, -1, -1, -1, -2, 0], [1, 2, 3, 0.5, 3, 0])})["x ** y", "f32"]
    np.testing.assert_array_equal(worked, [-1, 1, -1, NAN, -8, 1])


def test_powers_by_a_literal(place: str) -> None:
    exponents = ["0", "1", "2", "3", "5", "-1", "-2", "0.5", "2.0", "1.5", "-0.5"]
    x = np.array([-2, -1, 0.0, 0.5, 1, 3, INF, -INF, NAN], F)
    found = on_each([f"x ** {e}" for e in exponents], {"f32": (x,)})
    with np.errstate(all="ignore"):
        for e in exponents:
            np.testing.assert_allclose(
                found[f"x ** {e}", "f32"],
                np.power(x, np.full_like(x, eval(e))),
                rtol=2e-6,
                err_msg=f"x ** {e}",
            )


# ---- functions ----

# The answers come from higher precision.
SMALL_ARGUMENTS = {
    "log1p(x)": (1e-10, 1e-10), "expm1(x)": (1e-10, 1e-10), "erf(x)": (1e-10, 1.1283791671e-10), "sinh(x)": (1e-10, 1e-10),
    "tanh(x)": (1e-10, 1e-10), "atanh(x)": (1e-10, 1e-10), "asinh(x)": (1e-10, 1e-10), "sin(x)": (1e-10, 1e-10),
    "log1p(-x)": (1e-10, -1e-10), "erfinv(x)": (1e-10, 8.862269255e-11), "erfc(x)": (5, 1.5374597944280347e-12),
    "exp(x) - 1": (1e-10, 0), "lgamma(x)": (1e-10, 23.025850929882737), "lgamma(x) * 1": (2.0, 0.0),
    "cbrt(x)": (-27, -3), "log2(x)": (8, 3), "exp2(x)": (-3, 0.125), "gamma(x)": (5, 24), "log10(x)": (1000, 3),
}  # fmt: skip


def test_functions_that_cancel_when_written_naively(place: str) -> None:
    arguments = sorted({a for a, _ in SMALL_ARGUMENTS.values()})
    found = on_each(list(SMALL_ARGUMENTS), {"f32": (arguments,)})
    for expression, (argument, answer) in SMALL_ARGUMENTS.items():
        got = found[expression, "f32"][arguments.index(argument)]
        assert got == pytest.approx(F(answer), rel=4e-6, abs=1e-45), f"{expression} at {argument}"


LARGE = [
    "tanh(x)",
    "1 / (1 + exp(-x))",
    "log1p(exp(-abs(x))) + max(x, 0)",
    "exp(-x * x)",
    "x / (1 + exp(-x))",
    "erf(x)",
]
LARGE += [
    "atan(x)",
    "0.5 * x * (1 + tanh(0.7978846 * (x + 0.044715 * x * x * x)))",
    "expm1(-abs(x))",
    "erfc(abs(x))",
]


def test_functions_that_level_off_do_not_overflow(place: str) -> None:
    values = [-50, 50, 89, -89, 10, -10, 1000, -1000, 0, 60000, -60000]
    results = on_each(LARGE, floats(values))
    scope: dict[str, Any] = {n: getattr(np, n) for n in ("tanh", "exp", "log1p", "abs", "expm1")}
    scope |= {
        "max": np.maximum,
        "atan": np.arctan,
        "erf": np.vectorize(math.erf),
        "erfc": np.vectorize(math.erfc),
    }
    tolerance = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}
    with np.errstate(all="ignore"):
        for expression, name in product(LARGE, FLOATS):
            x = np.asarray(floats(values)[name][0], np.float64)
            wanted = eval(expression, scope, {"x": x})
            found = np.asarray(results[expression, name], np.float64)
            if (
                expression.startswith("0.5") or name == "f16"
            ):  # the steps overflow in a small type, as in NumPy
                keep = np.isfinite(found) & (np.abs(x) <= 1000 if expression.startswith("0.5") else True)
                assert keep[:6].all() or name == "f16"
            else:
                keep = np.ones(len(x), np.bool_)
            np.testing.assert_allclose(
                found[keep],
                wanted[keep],
                tolerance[name],
                1e-3 if name != "f32" else 1e-30,
                err_msg=f"{expression} {name}",
            )
    tanh = on_each(["tanh(x)"], {"f32": ([-50, 50, 89, -89, INF, NAN],)})["tanh(x)", "f32"]
    np.testing.assert_array_equal(tanh, [-1, 1, 1, -1, 1, NAN])


def test_fast_functions_that_level_off_do_not_overflow_either(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel(math="fast")\ndef f(x: f32[N], h: f16[N]) -> (f32[N], f16[N], f32[N]):\n'
        "    i = position()\n    return tanh(x[i]), tanh(h[i]), erf(x[i])\n"
    )
    x = np.array([-50, 50, 89, -89, 1000, -1000, 0], F)
    for found in kernel(x, x.astype(H)):
        np.testing.assert_allclose(np.asarray(found, F), np.sign(x), atol=1e-6)


def test_sine_and_cosine_of_large_arguments(place: str) -> None:
    values = np.array([1234567, -1234567, 1e5, 12345.678, 3.1415927, 1.5707964, 1e7, 2.0**31, 1e10], F)
    found = on_each(["sin(x)", "cos(x)", "tan(x)"], {"f32": (values,)})
    for name in ("sin", "cos", "tan"):
        exact = getattr(np, name)(values.astype(np.float64))
        np.testing.assert_allclose(found[f"{name}(x)", "f32"], exact, rtol=2e-6, atol=2e-7, err_msg=name)
    assert found["sin(x)", "f32"][0] == pytest.approx(0.36445218, abs=1e-6)


def test_precise_functions_are_asked_for_by_name() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    v = x[position()]\n'
        "    return sin(v) + cos(v) + tan(v) + exp(v) + log(v) + sqrt(v) + tanh(v) + v ** 0.3 + exp2(v) + log2(v) + rsqrt(v)\n"
    )
    text = "\n".join(code(kernel.msl(spec(F))))
    assert not re.search(r"metal::(fast::)?(sin|cos|tan|exp|log|sqrt|tanh|pow|powr|exp2|log2|rsqrt)\(", text)


# ---- contraction and reassociation ----

CONTRACTION = """
N = dims("N")

def squared(a, c):
    return a * a + c

@kernel
def f(a: f32[N], c: f32[N], h: f16[N], k: f16[N], v: f32x2[N]) -> (f32[N], f32[N], f32[N], f16[N], f32[N], f32[N], f32[N],
        f32[N], f32[N], f32[N], f32[N]):
    i = position()
    p = a[i] * a[i]
    s = c[i]
    s += a[i] * a[i]
    one = a[i] * a[i] - a[i] * a[i]
    d = sum(v[i] * v[i]) + c[i]
    return (a[i] * a[i] + c[i], p + c[i], s, h[i] * h[i] + k[i], squared(a[i], c[i]), c[i] - -a[i] * a[i],
            sum(a[j] * a[j] + c[j] for j in range(N)), one, fma(a[i], a[i], c[i]), (v[i] * v[i] + c[i]).x, d)
"""


def test_products_are_rounded_before_they_are_added(place: str) -> None:
    needs_precise_floats(place)
    a, h = F(1 + 2**-12), H(1 + 2**-6)
    c, k = F(-(1 + 2**-11)), H(-(1 + 2**-5))
    full = np.full
    for n in (1, 37):
        results = mj.kernel_from_text(CONTRACTION)(
            full(n, a), full(n, c), full(n, h), full(n, k), np.stack([full(n, a), np.zeros(n, F)], 1)
        )
        for number, found in enumerate(results):
            fused = number == 8
            assert (np.asarray(found, F) == (2.0**-24 if fused else 0)).all(), f"result {number}"


def test_the_text_asks_for_no_contraction() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    i = position()\n    return x[i] * x[i] + 1\n'
    )
    text = kernel.msl(spec(F))
    asked = [line for line in text.splitlines() if re.fullmatch(r"\s*#pragma METAL fp contract\(off\)", line)]
    assert asked
    assert text.index(asked[0]) < text.index("f_at(")
    assert "fma(" not in text


KAHAN = """
N = dims("N")

@kernel
def f(x: f32[N]) -> (f32, f32, f32):
    s = x[0] * 0
    lost = s
    plain = s
    for k in range(N):
        y = x[k] - lost
        t = s + y
        lost = (t - s) - y
        s = t
        plain += x[k]
    big, small = x[0] * 16777216.0, x[1]
    return s, plain, ((big + small) - big) - small + small
"""


def test_compensated_sums_keep_what_is_lost(place: str) -> None:
    needs_precise_floats(place)
    x = np.array([1] + [2.0**-25] * 4096, F)
    kahan, plain, _ = mj.kernel_from_text(KAHAN)(x)
    assert kahan == F(1 + 2**-13)
    assert plain == 1


# ---- constants that are no numbers in C ----

CONSTANTS = """
import math
N = dims("N")
A, B, C = inf, -inf, nan
TABLE = (inf, -inf, nan, 1e39, -0.0)

@kernel
def f(x: f32[N], g: const[float], v: const[tuple] = (inf, 2.0)) -> (f32[N], f32[N], f32[N], f16[N], bf16[N], f32[N], f32[N],
        f32[N], f16[N], f32[N], f32[N], f32x2[N], f32[N], f16[N]):
    i = position()
    h, b = f16(x[i]), bf16(x[i])
    empty = max(x[k] for k in range(0))
    return (inf + x[i], B, C, h + inf, b - inf, TABLE[i], g, border(x, "constant", value=-inf)[i + 1], max(h, -inf), math.inf,
            empty, f32x2(inf, v[1]), -0.0 * x[i], nan)
"""


def test_infinity_and_nan_as_constants(place: str) -> None:
    needs_precise_floats(place)
    x = np.zeros(5, F)
    results = [np.asarray(r, F) for r in mj.kernel_from_text(CONSTANTS)(x, -INF)]
    wanted = [[INF] * 5, [-INF] * 5, [NAN] * 5, [INF] * 5, [-INF] * 5, [INF, -INF, NAN, INF, -0.0], [-INF] * 5,
              [0, 0, 0, 0, -INF], [0] * 5, [INF] * 5, [-INF] * 5, [[INF, 2]] * 5, [-0.0] * 5, [NAN] * 5]  # fmt: skip
    for k, (found, w) in enumerate(zip(results, wanted, strict=True)):
        assert same(found, np.array(w, F)).all(), f"result {k}: {found}"
    bits = results[0][:1].view(np.uint32).tolist() + results[1][:1].view(np.uint32).tolist()
    assert bits == [0x7F800000, 0xFF800000]


def test_no_constant_is_printed_as_python_prints_it() -> None:
    text = "\n".join(code(mj.kernel_from_text(CONSTANTS).msl(spec(F), -INF)))
    assert not re.search(r"\b(inff?|nanf?|NAN|INFINITY|Infinity|True|False|None)\b", text)
    assert "0x7f800000u" in text


HALVES = """
N = dims("N")

@kernel
def f(x: f16[N], b: bf16[N], m: bool[N]) -> (f16[N], f16[N], f16[N], f16[N], bf16[N], f16[N], f16[N], u16[N], u16[N]):
    i = position()
    v = x[i]
    u = border(x, "constant", value=0.5)
    gelu = 0.5 * v * (1 + tanh(0.75 * v))
    return (v if m[i] else 0.0, u[i + 1] if m[i] else 1, max(v, 0), gelu, b[i] if m[i] else 0.25, v * 0.1, 61440.0,
            bitcast(u16, f16(61440.0)), bitcast(u16, v + 1))
"""


def test_literals_beside_16_bit_floats(place: str) -> None:
    x, b = np.array([1, -2, 0.5], H), np.array([1, 2, 3], B)
    m = np.array([True, False, True])
    results = mj.kernel_from_text(HALVES)(x, b, m)
    assert [r.dtype for r in results[:7]] == [H, H, H, H, B, H, H]
    assert results[0].tolist() == [1, 0, 0.5]
    assert results[1].tolist() == [-2, 1, 0.5]
    assert results[2].tolist() == [1, 0, 0.5]
    np.testing.assert_allclose(results[3], 0.5 * x * (1 + np.tanh(0.75 * x.astype(F))), rtol=4e-3)
    assert results[4].astype(F).tolist() == [1, 0.25, 3]
    np.testing.assert_array_equal(results[5], x * H(0.1))
    assert results[7].tolist() == [0x7B80] * 3
    np.testing.assert_array_equal(results[8], (x + H(1)).view(np.uint16))


def test_every_float_literal_in_the_text_has_its_type() -> None:
    """A number without a suffix would be a double, which Metal has not."""
    text = "\n".join(code(mj.kernel_from_text(HALVES).msl(spec(H), spec(B), spec(np.bool_))))
    numbers = re.findall(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(\w*)", text)
    assert len(numbers) > 3
    assert set(numbers) <= {"f", "h"}


# ---- sums of 16-bit floats ----

SUMS = """
N = dims("N")

@kernel
def f(x: T_[N], y: T_[N]) -> (f32, f32, f32, T_, f32, f32):
    acc: T_ = 0
    for k in range(N):
        acc += x[k]
    return (sum(x[k] for k in range(N)), sum(x[k] for k in range(N)) / N, sum(x[k] * y[k] for k in range(N)), acc,
            prod(x[k] / x[k] for k in range(N)), sqrt(sum(f32(x[k]) * f32(x[k]) for k in range(N))))
"""


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_sums_of_16_bit_floats_are_kept_in_32_bits(place: str, name: str) -> None:
    kernel = mj.kernel_from_text(SUMS.replace("T_", name))
    ones = np.ones(4096, NUMPY[name])
    total, mean, dot, narrow, product_, norm = kernel(ones, ones)
    assert (total, mean, dot, product_, norm) == (4096, 1, 4096, 1, 64)
    assert float(narrow) == (2048 if name == "f16" else 256)  # what a sum in the type itself gives
    thousand = np.full(100, 1000, NUMPY[name])
    total, mean, *_, norm = kernel(thousand, thousand)
    assert (total, mean, norm) == (100_000, 1000, 10_000)


# ---- bf16 ----


def test_bf16_is_a_number_and_not_its_bits(place: str) -> None:
    bits = U16([0x3F80, 0x0000, 0x8000, 0x4049, 0x7F80, 0xFF80, 0x0001, 0x7F7F])
    x = bits.view(B)
    found = on_each({"f32(x)": "f32", "bitcast(u16, x)": "u16", "x": "T", "x + x": "T"}, {"bf16": (x,)})
    np.testing.assert_array_equal(found["f32(x)", "bf16"], (bits.astype(np.uint32) << 16).view(F))
    np.testing.assert_array_equal(found["bitcast(u16, x)", "bf16"], bits)
    np.testing.assert_array_equal(found["x", "bf16"].view(np.uint16), bits)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found["x + x", "bf16"].view(np.uint16), (x + x).view(np.uint16))


def test_bf16_rounds_to_the_even_neighbour(place: str) -> None:
    needs_precise_floats(place)
    bits = [0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x7F7F8000, 0x7F7F7FFF,
            0x00008000, 0x00018000, 0x80008001, 0x7FC00000, 0x7F80FFFF]  # fmt: skip
    x = np.array(bits, np.uint32).view(F)
    found = on_each({"bf16(x)": "bf16", "bitcast(u16, bf16(x))": "u16"}, {"f32": (x,)})
    with np.errstate(all="ignore"):
        wanted = x.astype(B)
    got = found["bf16(x)", "f32"]
    assert same(got, wanted).all()
    assert np.isnan(got.astype(F))[[4, 5, 12, 13]].all()
    assert np.isinf(got.astype(F))[[6, 7]].all()
    worked = on_each({"bf16(x)": "bf16"}, {"f32": ([1.00390625, 1.01171875],)})["bf16(x)", "f32"]
    assert worked.astype(F).tolist() == [1.0, 1.015625]


def test_16_bit_arithmetic_is_rounded_at_every_step(place: str) -> None:
    needs_precise_floats(place)
    drawn = np.random.default_rng(3).integers(0, 2**16, (2, 4000)).astype(np.uint16)
    pairs = {"f16": (drawn[0].view(H), drawn[1].view(H)), "bf16": (drawn[0].view(B), drawn[1].view(B))}
    check_each(["x + y", "x - y", "x * y", "x / y", "x * y + x", "(x + y) - x", "-x", "abs(x)"], pairs)


# ---- the width of every type ----

MSL_BYTES = {"bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "half": 2, "int": 4, "uint": 4, "float": 4,
             "long": 8, "ulong": 8}  # fmt: skip


def test_every_type_is_as_wide_in_metal_as_in_numpy() -> None:
    from metaljit.dtypes import DTYPES, VECTORS, from_numpy

    assert len(DTYPES) == 12
    for dtype in DTYPES.values():
        assert MSL_BYTES[dtype.msl] == dtype.numpy.itemsize == dtype.nbytes
        assert from_numpy(dtype.numpy) is dtype
    assert {v.scalar for v in VECTORS.values()} == set(DTYPES.values())


def test_elements_of_every_type_lie_where_numpy_puts_them(place: str) -> None:
    """Each is read from the other end, alone and as a vector of three lanes."""
    names = list(NUMPY)
    results = (
        ", ".join(f"{n}[N], {n}x3[N]" for n in names[:6]),
        ", ".join(f"{n}[N], {n}x3[N]" for n in names[6:]),
    )
    rng = np.random.default_rng(5)
    for some, result in zip((names[:6], names[6:]), results, strict=True):
        parameters = ", ".join(f"a_{n}: {n}[N], v_{n}: {n}x3[N]" for n in some)
        parts = ", ".join(f"a_{n}[N - 1 - i], v_{n}[N - 1 - i]" for n in some)
        kernel = mj.kernel_from_text(
            f'N = dims("N")\n@kernel\ndef f({parameters}) -> ({result}):\n    i = position()\n    return {parts}\n'
        )
        arrays = []
        for n in some:
            for shape in ((7,), (7, 3)):
                arrays.append(
                    rng.integers(0, 100, shape).astype(NUMPY[n]) if n != "bool" else rng.random(shape) > 0.5
                )
        for array, found in zip(arrays, kernel(*arrays), strict=True):
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array[::-1])


# ---- what the hardware has not ----

REFUSED = [
    "f8",
    "g",
    "c8",
    "c16",
    "S3",
    "U3",
    "V4",
    "O",
    "M8[s]",
    "m8[s]",
    "i4,f4",
    "f8,f8",
    ">f4",
    ">i4",
    ">f2",
    ">u8",
]


@pytest.mark.parametrize("declared", ["f32", "T", "f32x2"])
def test_other_dtypes_are_refused_by_name_and_never_reinterpreted(place: str, declared: str) -> None:
    kernel = mj.kernel_from_text(
        f'N = dims("N")\nT = dtypes("number")\n@kernel\ndef f(values: {declared}[N]) -> {declared}[N]:\n'
        "    return values[position()]\n"
    )
    for dtype in REFUSED:
        values = np.zeros((4, 2) if "x2" in declared else 4, dtype)
        for _ in range(2):
            with pytest.raises(mj.LaunchFault) as caught:
                kernel(values)
            assert "values" in str(caught.value), dtype
            assert caught.value.diagnostics[0].help, dtype


def test_float64_is_refused_with_the_reason_and_the_way_out(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(values: f32[N]) -> f32[N]:\n    return values[position()]\n'
    )
    x = np.array([1.0, 2.0, 3.0])
    for _ in range(2):
        with pytest.raises(mj.LaunchFault, match="64-bit floats") as caught:
            kernel(x)
        assert caught.value.slug == "no-f64"
        assert "values.astype(np.float32)" in caught.value.diagnostics[0].help
    assert kernel(x.astype(F)).tolist() == [1, 2, 3]
    with pytest.raises(mj.MetaljitError, match="float64"):
        kernel(np.zeros(3, F), out=np.zeros(3))
    for text in ("f64[N]", "double[N]", "float64[N]"):
        found = refusal(f'N = dims("N")\n@kernel\ndef f(x: {text}) -> f32[N]:\n    return 0\n', spec(F))
        assert found.slug == "no-f64"


def test_a_float64_number_is_rounded_to_the_parameters_type(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], a: f32) -> f32[N]:\n    return x[position()] * a\n'
    )
    for a in (0.1, np.float64(0.1), np.float32(0.1), np.longdouble(0.1)):
        assert kernel(np.ones(2, F), a).tolist() == [F(0.1)] * 2
