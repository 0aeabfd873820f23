"""The shim's functions of floats against float64: Metal's accuracy table, special values, every half."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from shim_calls import Array, build, evaluate, loop, same_bits, ulp_errors, worst

from metaljit.runtime import toolchain

Reference = Callable[..., Any]
INF, NAN = math.inf, math.nan


def half_turns(x: Array) -> tuple[Array, Array]:
    """sin and cos of pi x, after an exact reduction to quarter turns; sin of whole numbers has their sign."""
    r = np.fmod(x, 2.0)
    quarters = np.rint(2.0 * r)
    angle = np.pi * (r - 0.5 * quarters)
    s, c = np.sin(angle), np.cos(angle)
    turned = [quarters % 4 == k for k in range(3)]
    sine, cosine = np.select(turned, [s, c, -s], -c), np.select(turned, [c, -s, -c], s)
    return np.where(sine == 0.0, np.copysign(0.0, x), sine), cosine


# Function: reference in float64, and the largest error in ulps that Metal's table allows precise functions.
UNARY: dict[str, tuple[Reference, float]] = {
    "exp": (np.exp, 4),
    "exp2": (np.exp2, 4),
    "exp10": (lambda x: np.power(10.0, x), 4),
    "log": (np.log, 4),
    "log2": (np.log2, 4),
    "log10": (np.log10, 4),
    "sin": (np.sin, 4),
    "cos": (np.cos, 4),
    "tan": (np.tan, 6),
    "sinpi": (lambda x: half_turns(x)[0], 4),
    "cospi": (lambda x: half_turns(x)[1] + 0.0, 4),
    "tanpi": (lambda x: np.divide(*half_turns(x)), 6),
    "asin": (np.arcsin, 4),
    "acos": (np.arccos, 4),
    "atan": (np.arctan, 5),
    "sinh": (np.sinh, 4),
    "cosh": (np.cosh, 4),
    "tanh": (np.tanh, 5),
    "asinh": (np.arcsinh, 4),
    "acosh": (np.arccosh, 4),
    "atanh": (np.arctanh, 5),
    "sqrt": (np.sqrt, 0.5),
    "rsqrt": (lambda x: 1.0 / np.sqrt(x), 0.5),
    "ceil": (np.ceil, 0),
    "floor": (np.floor, 0),
    "rint": (np.rint, 0),
    "trunc": (np.trunc, 0),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), 0),
    "fabs": (np.abs, 0),
    "saturate": (lambda x: np.fmin(np.fmax(x, 0.0), 1.0), 0),
    "sign": (lambda x: np.where(np.isnan(x), 0.0, np.where(x == 0.0, x, np.sign(x))), 0),
}
BINARY: dict[str, tuple[Reference, float]] = {
    "pow": (np.power, 16),
    "powr": (lambda x, y: np.where(x < 0.0, np.nan, np.power(np.abs(x), y)), 16),
    "atan2": (np.arctan2, 6),
    "fmod": (np.fmod, 0),
    "divide": (np.divide, 0.5),
    "copysign": (np.copysign, 0),
    "fdim": (lambda x, y: np.where(x <= y, 0.0, x - y), 0.5),
    "step": (lambda edge, x: np.where(x < edge, 0.0, 1.0), 0),
}
EXTREMES: dict[str, Reference] = {"fmax": np.fmax, "fmin": np.fmin, "max": np.fmax, "min": np.fmin}
FAST_UNARY = [
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "tanh",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
]

SPECIALS = np.array(
    [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-45, -1e-45, 1.1754944e-38, -1.1754944e-38, 1.1754942e-38,
     3.4028235e38, -3.4028235e38, 0.25, 0.5, -0.5, 1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 0.49999997, 0.50000006,
     0.99999994, 1.0000001, 9.0, 10.0, 38.5, 38.53184, 45.0, 88.72283, 88.722839, 89.4, 89.5, -87.33655,
     -103.97, -103.98, 127.99999, 128.0, -126.0, -149.0, -149.5, -150.0, 8388607.5, 8388609.0, 16777215.0,
     16777216.0, 1e10, 1e30],
    np.float32,
)  # fmt: skip


def patterns(seed: int, count: int = 1 << 18) -> Array:
    """Specials, then random bit patterns of all floats, then values of ordinary size and values around 1."""
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    ordinary = [rng.normal(0.0, size, count // 4) for size in (0.3, 3.0, 30.0)]
    around = [1.0 + rng.normal(0.0, 0.05, count // 4)]
    return np.concatenate([SPECIALS, anything, *(v.astype(np.float32) for v in ordinary + around)])


X, Y, Z = (
    patterns(1),
    np.random.default_rng(2).permutation(patterns(3)),
    np.random.default_rng(4).permutation(patterns(5)),
)
PAIRS = (
    np.concatenate([X, np.repeat(SPECIALS, SPECIALS.size), np.abs(X)]),
    np.concatenate([Y, np.tile(SPECIALS, SPECIALS.size), Y]),
)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def loops(namespace: str) -> list[str]:
    texts = []
    for t in ("float", "half"):
        for f in UNARY:
            texts.append(loop(f"{f}_{t}", t, [t], f"o[i] = metal::{namespace}::{f}(a[i])"))
        for f in [*BINARY, *EXTREMES, "nextafter"]:
            texts.append(loop(f"{f}_{t}", t, [t, t], f"o[i] = metal::{namespace}::{f}(a[i], b[i])"))
        for f in ("fma", "mix", "smoothstep", "clamp", "fmax3", "fmin3", "fmedian3"):
            texts.append(loop(f"{f}_{t}", t, [t] * 3, f"o[i] = metal::{namespace}::{f}(a[i], b[i], c[i])"))
        texts.append(loop(f"fract_{t}", t, [t], f"o[i] = metal::{namespace}::fract(a[i])"))
        texts.append(loop(f"ldexp_{t}", t, [t, "int"], f"o[i] = metal::{namespace}::ldexp(a[i], b[i])"))
        texts.append(loop(f"ilogb_{t}", "int", [t], f"o[i] = metal::{namespace}::ilogb(a[i])"))
        for f, second in (("frexp", "int"), ("modf", t), ("sincos", t)):
            called = f"metal::{namespace}::{f}(a[i], x)"
            texts.append(loop(f"{f}_first_{t}", t, [t], f"{{ {second} x; o[i] = {called}; }}"))
            texts.append(loop(f"{f}_second_{t}", second, [t], f"{{ {second} x; {called}; o[i] = x; }}"))
        for f in ("isnan", "isinf", "isfinite", "isnormal", "signbit"):
            texts.append(loop(f"{f}_{t}", "bool", [t], f"o[i] = metal::{f}(a[i])"))
        for f in ("isordered", "isunordered"):
            texts.append(loop(f"{f}_{t}", "bool", [t, t], f"o[i] = metal::{f}(a[i], b[i])"))
    return texts


@pytest.fixture(scope="session")
def precise() -> Any:
    return build(loops("precise"))


@pytest.fixture(scope="session")
def fast() -> Any:
    """The fast functions, and the precise ones, in a program that is compiled with fast math."""
    own = [
        loop(f"fast_{f}", "float", ["float"], f"o[i] = metal::fast::{f}(a[i])")
        for f in ("sin", "cos", "tan", "rsqrt")
    ]
    own += [loop("fast_pow", "float", ["float", "float"], "o[i] = metal::fast::pow(a[i], b[i])")]
    own += [loop(f"fast_{f}", "float", ["float"], f"o[i] = metal::fast::{f}(a[i])") for f in FAST_UNARY]
    return build(loops("precise") + own, toolchain.FAST_MATH)


def unary_errors(lib: Any, name: str, t: str, x: Array, signed_zero: bool = True) -> tuple[float, str]:
    got, want = evaluate(lib, f"{name}_{t}", t, x), exact(UNARY[name][0], x)
    if name == "tanpi":  # the signs of its zeros and poles are not specified
        signed_zero = False
        got = np.where(np.isinf(want), np.abs(got), got)
        want = np.where(np.isinf(want), INF, want)
    if not signed_zero:
        got, want = np.where(got == 0, np.zeros_like(got), got), np.where(want == 0, 0.0, want)
    return worst(got, want, x)


def exact(reference: Reference, *operands: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(reference(*(a.astype(np.float64) for a in operands)), np.float64)


@pytest.mark.parametrize("name", UNARY)
def test_floats_are_within_metals_table(precise: Any, name: str) -> None:
    error, message = unary_errors(precise, name, "float", X)
    assert error <= UNARY[name][1], message


@pytest.mark.parametrize("name", BINARY)
def test_floats_of_two_are_within_metals_table(precise: Any, name: str) -> None:
    reference, limit = BINARY[name]
    error, message = worst(
        evaluate(precise, f"{name}_float", "float", *PAIRS), exact(reference, *PAIRS), *PAIRS
    )
    assert error <= limit, message


@pytest.mark.parametrize("name", UNARY)
def test_every_half_is_rounded_once(precise: Any, name: str) -> None:
    error, message = unary_errors(precise, name, "half", HALVES)
    assert error <= min(UNARY[name][1], 0.501), message


@pytest.mark.parametrize("name", BINARY)
def test_halves_of_two_are_rounded_once(precise: Any, name: str) -> None:
    reference, limit = BINARY[name]
    rng = np.random.default_rng(6)
    a, b = rng.permutation(np.tile(HALVES, 4)), rng.permutation(np.tile(HALVES, 4))
    error, message = worst(evaluate(precise, f"{name}_half", "half", a, b), exact(reference, a, b), a, b)
    assert error <= min(limit, 0.501), message


@pytest.mark.parametrize("t", ["float", "half"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_drop_nan(precise: Any, name: str, t: str) -> None:
    a, b = PAIRS if t == "float" else (v.astype(np.float16) for v in quiet(PAIRS))
    got = evaluate(precise, f"{name}_{t}", t, a, b)
    np.testing.assert_array_equal(got, EXTREMES[name](a, b))


def quiet(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    return pair[0].clip(-6e4, 6e4), pair[1].clip(-6e4, 6e4)


@pytest.mark.parametrize("t", ["float", "half"])
def test_three_operands(precise: Any, t: str) -> None:
    values = [v[: 1 << 16] for v in (X, Y, Z)]
    a, b, c = values if t == "float" else (v.clip(-6e4, 6e4).astype(np.float16) for v in values)
    np.testing.assert_array_equal(evaluate(precise, f"fmax3_{t}", t, a, b, c), np.fmax(np.fmax(a, b), c))
    np.testing.assert_array_equal(evaluate(precise, f"fmin3_{t}", t, a, b, c), np.fmin(np.fmin(a, b), c))
    low, high = np.fmin(b, c), np.fmax(b, c)
    np.testing.assert_array_equal(
        evaluate(precise, f"clamp_{t}", t, a, low, high), np.fmin(np.fmax(a, low), high)
    )
    numbers = ~(np.isnan(a) | np.isnan(b) | np.isnan(c))
    a, b, c = a[numbers], b[numbers], c[numbers]
    np.testing.assert_array_equal(
        evaluate(precise, f"fmedian3_{t}", t, a, b, c), np.median([a, b, c], axis=0)
    )


def test_fmedian3_of_nan_and_two_numbers_is_one_of_them(precise: Any) -> None:
    nan, one, two = (np.full(3, v, np.float32) for v in (NAN, 1.0, 2.0))
    for arguments in ((nan, one, two), (one, nan, two), (one, two, nan)):
        assert set(evaluate(precise, "fmedian3_float", "float", *arguments).tolist()) <= {1.0, 2.0}


def test_interpolation_rounds_each_operation(precise: Any) -> None:
    """Multiply and add are not contracted, whatever the processor has."""
    x, y, a = (v[: 1 << 16].clip(-1e9, 1e9) for v in (X, Y, Z))
    with np.errstate(all="ignore"):
        assert same_bits(evaluate(precise, "mix_float", "float", x, y, a), x + (y - x) * a).all()
        t = np.fmin(np.fmax((a - x) / (y - x), np.float32(0)), np.float32(1))
        want = t * t * (np.float32(3) - np.float32(2) * t)
    rising = x < y
    got = evaluate(precise, "smoothstep_float", "float", x, y, a)
    assert same_bits(got[rising], want[rising]).all()


def test_rsqrt_is_correctly_rounded(precise: Any) -> None:
    """Every seventh mantissa: m * m * x passes 1 between the midpoints m around y, in whole numbers."""
    x = np.arange(0x3F800000, 0x40800000, 7, dtype=np.uint32).view(np.float32)
    y = evaluate(precise, "rsqrt_float", "float", x)
    whole = np.ldexp(x.astype(np.float64), 23).astype(np.uint64)
    twice = np.ldexp(y.astype(np.float64), 25).astype(np.uint64)
    for midpoint, beyond in ((twice - np.uint64(1), False), (twice + np.uint64(1), True)):
        square = midpoint * midpoint
        low = square * (whole & np.uint64(0xFFF))
        high = square * (whole >> np.uint64(12)) + (low >> np.uint64(12))
        np.testing.assert_array_equal(high >= np.uint64(1 << 61), beyond)


@pytest.mark.parametrize("t", ["float", "half"])
def test_fract(precise: Any, t: str) -> None:
    x = X if t == "float" else HALVES
    x = x[np.isfinite(x)]
    got = evaluate(precise, f"fract_{t}", t, x)
    below_one = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    np.testing.assert_array_equal(got, np.minimum((x - np.floor(x)).astype(x.dtype), below_one))
    assert (
        evaluate(precise, f"fract_{t}", t, np.array([-1e-7 if t == "half" else -1e-10], x.dtype))[0]
        == below_one
    )


def test_fma_rounds_once(precise: Any) -> None:
    a, b, c = (v[:4096].clip(-1e15, 1e15) for v in (X, Y, Z))
    with np.errstate(invalid="ignore"):
        c = np.where(np.arange(4096) % 2 == 0, -(a * b), c)  # cancels all but the product's rounding error
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[finite], b[finite], c[finite]
    got = evaluate(precise, "fma_float", "float", a, b, c)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        value = Fraction(x) * Fraction(y) + Fraction(z)
        error = abs(Fraction(float(r)) - value)
        neighbours = (np.nextafter(r, np.float32(s)) for s in (-INF, INF))
        assert all(error <= abs(Fraction(float(n)) - value) for n in neighbours), (x, y, z, r)


def test_fma_of_halves_rounds_once(precise: Any) -> None:
    rng = np.random.default_rng(7)
    a, b, c = (rng.permutation(np.tile(HALVES, 8)) for _ in range(3))
    with np.errstate(all="ignore"):
        want = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float16)
    assert same_bits(evaluate(precise, "fma_half", "half", a, b, c), want).all()
    # 1 + 2^-11 is a tie, decided by a product that float's own rounding loses.
    tie = [np.full(1, v, np.float16) for v in (2.0**-11 * (1 + 2.0**-10), 1 - 2.0**-11, 1.0)]
    exact_tie = 1.0 + float(tie[0][0]) * float(tie[1][0])
    assert evaluate(precise, "fma_half", "half", *tie)[0] == np.float16(exact_tie)


@pytest.mark.parametrize("t", ["float", "half"])
def test_taking_floats_apart(precise: Any, t: str) -> None:
    x = X if t == "float" else HALVES
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(x)
    finite = np.isfinite(x)
    assert same_bits(evaluate(precise, f"frexp_first_{t}", t, x)[finite], mantissa[finite]).all()
    np.testing.assert_array_equal(evaluate(precise, f"frexp_second_{t}", "int", x)[finite], exponent[finite])
    with np.errstate(invalid="ignore"):
        fraction, whole = np.modf(x)
    assert same_bits(evaluate(precise, f"modf_first_{t}", t, x), fraction).all()
    assert same_bits(evaluate(precise, f"modf_second_{t}", t, x), whole).all()
    got = evaluate(precise, f"ilogb_{t}", "int", x)
    normal = finite & (x != 0)
    np.testing.assert_array_equal(got[normal], exponent[normal] - 1)
    int_min, int_max = -(2**31), 2**31 - 1
    assert set(got[(x == 0) | np.isnan(x)].tolist()) == {int_min}
    assert set(got[np.isinf(x)].tolist()) == {int_max}


@pytest.mark.parametrize("t", ["float", "half"])
def test_putting_floats_together(precise: Any, t: str) -> None:
    x = X if t == "float" else HALVES
    k = np.random.default_rng(8).integers(-300, 300, x.size, dtype=np.int32)
    with np.errstate(all="ignore"):
        want = np.ldexp(x.astype(np.float64), k).astype(x.dtype)
    assert same_bits(evaluate(precise, f"ldexp_{t}", t, x, k), want).all()
    extreme = np.array([2**31 - 1, -(2**31)], np.int32)
    got = evaluate(precise, f"ldexp_{t}", t, np.full(2, 1.5, x.dtype), extreme)
    assert got.tolist() == [INF, 0.0]
    y = np.random.default_rng(9).permutation(x)
    y = np.where(np.arange(x.size) % 8 == 0, x, y)
    with np.errstate(all="ignore"):
        want = np.nextafter(x, y)
    assert same_bits(evaluate(precise, f"nextafter_{t}", t, x, y), want).all()


@pytest.mark.parametrize("t", ["float", "half"])
def test_sincos_is_sin_and_cos(precise: Any, t: str) -> None:
    x = X if t == "float" else HALVES
    assert same_bits(evaluate(precise, f"sincos_first_{t}", t, x), evaluate(precise, f"sin_{t}", t, x)).all()
    assert same_bits(evaluate(precise, f"sincos_second_{t}", t, x), evaluate(precise, f"cos_{t}", t, x)).all()


@pytest.mark.parametrize("t", ["float", "half"])
def test_tests_of_floats(precise: Any, fast: Any, t: str) -> None:
    """On bits, so that they hold under fast math too."""
    x = X if t == "float" else HALVES
    y = np.random.default_rng(10).permutation(x)
    tiny = np.finfo(x.dtype).tiny
    want = {
        "isnan": np.isnan(x),
        "isinf": np.isinf(x),
        "isfinite": np.isfinite(x),
        "isnormal": np.isfinite(x) & (np.abs(x) >= tiny),
        "signbit": np.signbit(x),
    }
    for lib in (precise, fast):
        for name, values in want.items():
            np.testing.assert_array_equal(evaluate(lib, f"{name}_{t}", "bool", x), values)
        unordered = np.isnan(x) | np.isnan(y)
        np.testing.assert_array_equal(evaluate(lib, f"isunordered_{t}", "bool", x, y), unordered)
        np.testing.assert_array_equal(evaluate(lib, f"isordered_{t}", "bool", x, y), ~unordered)


def pi_over_two(bits: int) -> Fraction:
    """By Machin's formula, in integers."""
    unit = 1 << (bits + 32)

    def arctan_of_inverse(n: int) -> int:
        total = term = unit // n
        k, sign = 1, -1
        while term:
            term //= n * n
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    return Fraction(2 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)), unit)


# 16367173 * 2^72 is the float nearest to a multiple of pi / 2.
HUGE = [
    16367173.0 * 2.0**72,
    3.4028235e38,
    1e22,
    1234567.0,
    8388607.5,
    1e6,
    710.0,
    2.0**127,
    355.0,
    1.5707964,
    3.1415927,
]
HUGE += (
    np.random.default_rng(11).integers(0x42000000, 0x7F800000, 400, dtype=np.uint32).view(np.float32).tolist()
)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_huge_arguments_are_reduced_exactly(precise: Any, name: str) -> None:
    x = np.array(HUGE + [-v for v in HUGE], np.float32)
    quarter = pi_over_two(400)
    want = []
    for value in x.tolist():
        turns = Fraction(value) / quarter
        k = round(turns)
        r = float((turns - k) * quarter)
        s, c = math.sin(r), math.cos(r)
        s, c = [(s, c), (c, -s), (-s, -c), (-c, s)][k % 4]
        want.append({"sin": s, "cos": c, "tan": s / c}[name])
    error, message = worst(evaluate(precise, f"{name}_float", "float", x), np.array(want), x)
    assert error <= UNARY[name][1], message


@pytest.mark.parametrize("name", UNARY)
def test_fast_math_leaves_the_precise_functions_as_they_are(precise: Any, fast: Any, name: str) -> None:
    want = evaluate(precise, f"{name}_float", "float", X)
    numbers = np.isfinite(X) & np.isfinite(want)
    error, message = unary_errors(fast, name, "float", X[numbers], signed_zero=False)
    assert error <= UNARY[name][1], message


@pytest.mark.parametrize("name", BINARY)
def test_fast_math_leaves_the_precise_functions_of_two_as_they_are(
    precise: Any, fast: Any, name: str
) -> None:
    want = evaluate(precise, f"{name}_float", "float", *PAIRS)
    numbers = np.isfinite(PAIRS[0]) & np.isfinite(PAIRS[1]) & np.isfinite(want)
    a, b = PAIRS[0][numbers], PAIRS[1][numbers]
    error, message = worst(evaluate(fast, f"{name}_float", "float", a, b), exact(BINARY[name][0], a, b), a, b)
    assert error <= BINARY[name][1], message


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_fast_sine_keeps_metals_bound_and_its_range(fast: Any, name: str) -> None:
    x = np.linspace(-np.pi, np.pi, 1 << 16, dtype=np.float32)
    got = evaluate(fast, f"fast_{name}", "float", x)
    assert np.abs(got - exact(UNARY[name][0], x)).max() <= 2.0**-13
    everything = X[np.isfinite(X)]
    assert np.abs(evaluate(fast, f"fast_{name}", "float", everything)).max() <= 1.0000002


def test_fast_functions_are_near(fast: Any) -> None:
    x = np.linspace(0.01, 1.5, 1 << 14, dtype=np.float32)
    y = np.linspace(-15.0, 20.0, 1 << 14, dtype=np.float32)
    for name, a in (("rsqrt", x), ("tan", x)):
        np.testing.assert_allclose(
            evaluate(fast, f"fast_{name}", "float", a), exact(UNARY[name][0], a), rtol=1e-5
        )
    np.testing.assert_allclose(evaluate(fast, "fast_pow", "float", x, y), exact(np.power, x, y), rtol=1e-4)
    for name in FAST_UNARY:
        a = x if name != "asin" and name != "acos" else x / np.float32(1.6)
        np.testing.assert_allclose(
            evaluate(fast, f"fast_{name}", "float", a), exact(UNARY[name][0], a), rtol=1e-5, atol=1e-6
        )


def test_ulp_errors_see_what_is_wrong() -> None:
    """The measure itself."""
    largest = float(np.finfo(np.float32).max)
    got = np.array([1.0, 1.0000001, -0.0, NAN, 1.0, INF, largest, 1e-45], np.float32)
    want = np.array([1.0, 1.0, 0.0, NAN, NAN, largest, INF, 2.8e-45])
    errors = ulp_errors(got, want)
    assert errors[0] == errors[3] == 0.0
    np.testing.assert_allclose(errors[[1, 7]], [1.0, 1.0], rtol=0.01)
    assert (errors[[2, 4]] == INF).all()
    np.testing.assert_allclose(errors[[5, 6]], [1.0, 1.0], rtol=0.01)
