"""Functions of numbers in the emulator's library: floats against NumPy's float64, integers against Python's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from library_snippets import build, run
from shim_calls import NUMPY, Array, evaluate, loop, same_bits, worst

Function = Callable[..., Array]


def _sinpi(x: Array) -> Array:
    r = np.fmod(x, 2.0)
    r = np.where(np.abs(r) > 1, r - np.copysign(2, r), r)
    r = np.where(np.abs(r) > 0.5, np.copysign(1, r) - r, r)
    return np.where(r == 0, np.copysign(0.0, x), np.sin(np.pi * r))


def _cospi(x: Array) -> Array:
    r = np.abs(np.fmod(x, 2.0))
    return np.where(np.abs(r - 1) == 0.5, 0.0, np.cos(np.pi * r))


def _half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _sign(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, np.where(x == 0, x, np.sign(x)))


ONE: dict[str, Function] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "cospi": _cospi, "exp": np.exp,
    "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "fabs": np.abs, "abs": np.abs, "floor": np.floor,
    "log": np.log, "log2": np.log2, "log10": np.log10, "rint": np.rint, "round": _half_away,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sign": _sign, "sin": np.sin, "sinh": np.sinh, "sinpi": _sinpi,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tanpi": lambda x: _sinpi(x) / _cospi(x), "trunc": np.trunc,
}  # fmt: skip
TWO: dict[str, Function] = {
    "atan2": np.arctan2, "copysign": np.copysign, "divide": np.divide, "fmod": np.fmod, "pow": np.power,
    "fmax": np.fmax, "fmin": np.fmin, "max": np.fmax, "min": np.fmin,
    "fdim": lambda x, y: np.where(np.isnan(x + y) & ~np.isinf(x), np.nan, np.where(x > y, x - y, np.where(x <= y, 0.0, np.nan))),
    "powr": lambda x, y: np.where(x < 0, np.nan, np.power(x, y)), "step": lambda x, y: np.where(y < x, 0.0, 1.0),
}  # fmt: skip
SPECIAL = np.array(
    [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, np.inf, -np.inf, np.nan, 1e-10, 88, -100], np.float64
)


def _floats(count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, count // 2, np.uint32).view(np.float32)
    return np.concatenate([SPECIAL.astype(np.float32), rng.normal(0, 8, count // 2).astype(np.float32), bits])


HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)


@pytest.fixture(scope="module")
def functions() -> Any:
    text = [
        loop(f"{name}_{t}", t, [t], f"o[i] = metal::{name}(a[i])") for name in ONE for t in ("float", "half")
    ]
    text += [
        loop(f"{name}_{t}", t, [t, t], f"o[i] = metal::{name}(a[i], b[i])")
        for name in TWO
        for t in ("float", "half")
    ]
    return build("".join(text))


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_float_are_rounded_once(name: str, functions: Any) -> None:
    x = _floats(20000, 1)
    with np.errstate(all="ignore"):
        exact = ONE[name](x.astype(np.float64))
    error, where = worst(evaluate(functions, f"{name}_float", "float", x), exact, x)
    assert error <= 0.5001, where


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_half_at_all_of_them(name: str, functions: Any) -> None:
    with np.errstate(all="ignore"):
        want = ONE[name](HALVES.astype(np.float64)).astype(np.float16)
    got = evaluate(functions, f"{name}_half", "half", HALVES)
    wrong = ~same_bits(got, want)
    assert not wrong.any(), [(x, g, w) for x, g, w in zip(HALVES[wrong], got[wrong], want[wrong])][:3]


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(name: str, functions: Any) -> None:
    pairs = np.array(list(itertools.product(SPECIAL, SPECIAL)))
    for t in ("float", "half"):
        with np.errstate(all="ignore"):
            x = np.concatenate([pairs[:, 0], _floats(8000, 2)]).astype(NUMPY[t])
            y = np.concatenate([pairs[:, 1], _floats(8000, 3)]).astype(NUMPY[t])
            exact = np.asarray(TWO[name](x.astype(np.float64), y.astype(np.float64)))
        got = evaluate(functions, f"{name}_{t}", t, x, y)
        if name in ("fmax", "fmin", "max", "min"):  # either zero is right
            assert np.array_equal(got.astype(np.float64), exact, equal_nan=True)
            continue
        error, where = worst(got, exact, x, y)
        assert error <= 0.5001, where


# Expressions and their values, most of them from the specification's own definitions.
VALUES = [
    ("clamp(NAN, 2.0f, 3.0f)", 2.0), ("clamp(5.0f, 2.0f, 3.0f)", 3.0), ("mix(1.0f, 3.0f, 0.25f)", 1.5),
    ("smoothstep(0.0f, 2.0f, 0.5f)", 0.15625), ("saturate(2.0f)", 1.0), ("saturate(NAN)", 0.0), ("saturate(half2(-1, 0.5f)).y", 0.5), ("saturate(-1.0f)", 0.0), ("fract(-0.25f)", 0.75),
    ("fract(-1e-10f)", float.fromhex("0x1.fffffep-1")), ("fract(half(-6e-8f))", float.fromhex("0x1.ffcp-1")),
    ("fract(NAN)", math.nan), ("fmod(-7.0f, 3.0f)", -1.0), ("fma(3e38f, 2.0f, -3e38f)", float(np.float32(3e38))),
    ("fma(1.000244140625f, 1.000244140625f, -1.00048828125f)", 2.0**-24), ("fma(half(3), half(2), half(1))", 7.0),
    ("median3(1.0f, 3.0f, 2.0f)", 2.0), ("fmedian3(3.0f, 1.0f, 2.0f)", 2.0), ("max3(1.0f, 3.0f, 2.0f)", 3.0),
    ("fmin3(NAN, 3.0f, 2.0f)", 2.0), ("ldexp(3.0f, -150)", float(np.float32(3 * 2.0**-150))), ("ldexp(0.5f, 4)", 8.0),
    ("ilogb(8.5f)", 3.0), ("ilogb(0.0f) == FP_ILOGB0", 1.0), ("ilogb(1e-40f)", -133.0), ("ilogb(NAN) == FP_ILOGBNAN", 1.0),
    ("nextafter(1.0f, 2.0f)", 1 + 2.0**-23), ("nextafter(0.0f, -1.0f)", -(2.0**-149)), ("nextafter(1.0f, 0.0f)", 1 - 2.0**-24),
    ("nextafter(-1.0f, 0.0f)", -1 + 2.0**-24), ("nextafter(half(1), half(2))", 1 + 2.0**-10), ("nextafter(2.0f, 2.0f)", 2.0),
    ("dot(float3(1, 2, 3), float3(4, 5, 6))", 32.0), ("length(float2(3, 4))", 5.0), ("distance(float2(1), float2(4, 5))", 5.0),
    ("cross(float3(1, 2, 3), float3(4, 5, 6)).y", 6.0), ("normalize(float2(3, 4)).y", float(np.float32(0.8))),
    ("reflect(float2(1, -1), float2(0, 1)).y", 1.0), ("refract(float2(1, 0), float2(0, 1), 1.5f).x", 0.0),
    ("refract(float2(0, -1), float2(0, 1), 0.5f).y", -1.0), ("faceforward(float2(1, 2), float2(1), float2(1)).y", -2.0),
    ("length_squared(half2(3, 4))", 25.0), ("distance_squared(float2(1), float2(4, 5))", 25.0),
    ("select(float2(1, 2), float2(3, 4), bool2(true, false)).x", 3.0), ("select(1.0f, 2.0f, false)", 1.0),
    ("isnormal(half(1e-5f))", 0.0), ("isnormal(1e-5f)", 1.0), ("isinf(half(1e6f))", 1.0), ("isfinite(bfloat(1.0f))", 1.0),
    ("signbit(-0.0f)", 1.0), ("isunordered(1.0f, NAN)", 1.0), ("isordered(1.0f, 2.0f)", 1.0), ("isnan(bfloat(NAN))", 1.0),
    ("M_PI_F", float(np.float32(math.pi))), ("float(M_PI_H)", float(np.float16(math.pi))), ("FLT_EPSILON", 2.0**-23),
    ("float(HALF_MAX)", 65504.0), ("numeric_limits<float>::denorm_min()", 2.0**-149), ("float(numeric_limits<bfloat>::lowest())", -float.fromhex("0x1.fep127")),
]  # fmt: skip


def test_values() -> None:
    body = "".join(f"o[{i}] = float({e});" for i, (e, _) in enumerate(VALUES))
    got = run(body, len(VALUES), np.float32)
    wrong = [
        (e, float(g), w) for (e, w), g in zip(VALUES, got) if not (g == w or (math.isnan(w) and np.isnan(g)))
    ]
    assert wrong == []


def test_results_through_references() -> None:
    body = """
int e; int2 f; float w; float2 v; half h; o[0] = frexp(-0.3f, e); o[1] = e; o[2] = modf(-3.75f, w); o[3] = w;
float2 m = frexp(float2(8, 0), f); o[4] = m.x; o[5] = f.x; o[6] = f.y; o[7] = sincos(0.0f, w); o[8] = w;
v = modf(float2(1.5f, -INFINITY), m); o[9] = v.x; o[10] = v.y; o[11] = m.y; o[12] = frexp(half(8), e); o[13] = e;
"""
    want = [np.float32(-0.6), -1, -0.75, -3, 0.5, 4, 0, 0, 1, 0.5, -0.0, -math.inf, 0.5, 4]
    assert run(body, 14, np.float32).tolist() == pytest.approx(want)


# ---- integers ----

KINDS = {"char": (8, True), "uchar": (8, False), "short": (16, True), "ushort": (16, False), "int": (32, True),
         "uint": (32, False), "long": (64, True), "ulong": (64, False)}  # fmt: skip


def _wrap(x: int, bits: int, signed: bool) -> int:
    low = -(1 << bits - 1) if signed else 0
    return (x - low) % (1 << bits) + low


def _saturate(x: int, bits: int, signed: bool) -> int:
    low = -(1 << bits - 1) if signed else 0
    return min(max(x, low), low + (1 << bits) - 1)


def _reverse(x: int, bits: int) -> int:
    return int(f"{x % (1 << bits):0{bits}b}"[::-1], 2)


Model = Callable[..., int]
INTEGER_ONE: dict[str, Model] = {
    "abs": lambda x, n, s: abs(x),
    "clz": lambda x, n, s: n - (x % (1 << n)).bit_length(),
    "ctz": lambda x, n, s: n if x == 0 else (x & -x).bit_length() - 1,
    "popcount": lambda x, n, s: (x % (1 << n)).bit_count(),
    "reverse_bits": lambda x, n, s: _reverse(x, n),
}
INTEGER_TWO: dict[str, Model] = {
    "addsat": lambda x, y, n, s: _saturate(x + y, n, s),
    "subsat": lambda x, y, n, s: _saturate(x - y, n, s),
    "hadd": lambda x, y, n, s: (x + y) >> 1,
    "rhadd": lambda x, y, n, s: (x + y + 1) >> 1,
    "max": lambda x, y, n, s: max(x, y),
    "min": lambda x, y, n, s: min(x, y),
    "mulhi": lambda x, y, n, s: (x * y) >> n,
    "rotate": lambda x, y, n, s: x % (1 << n) << y % n | (x % (1 << n)) >> (n - y % n),
    "absdiff": lambda x, y, n, s: abs(x - y),
}
INTEGER_THREE: dict[str, Model] = {
    "madhi": lambda x, y, z, n, s: (x * y >> n) + z,
    "madsat": lambda x, y, z, n, s: _saturate(x * y + z, n, s),
    "max3": lambda x, y, z, n, s: max(x, y, z),
    "min3": lambda x, y, z, n, s: min(x, y, z),
    "median3": lambda x, y, z, n, s: sorted((x, y, z))[1],
    "clamp": lambda x, y, z, n, s: min(max(x, y), z),
}


def _samples(kind: str, count: int, seed: int) -> Array:
    """All values of 8 bits, or the ends, small ones and random ones."""
    bits, _ = KINDS[kind]
    rng = np.random.default_rng(seed)
    edges = np.array(
        [0, 1, 2, 3, 31, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits - 2], np.uint64
    )
    some = rng.integers(0, 2**bits - 1, count - 2 * edges.size, np.uint64, endpoint=True)
    small = rng.integers(0, min(2**bits, 100), edges.size).astype(np.uint64)
    found: Array = rng.permutation(np.concatenate([edges, some, small])).astype(
        NUMPY["u" + kind.removeprefix("u")]
    )
    return found.view(NUMPY[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_integer_functions(kind: str) -> None:
    bits, signed = KINDS[kind]
    result = "u" + kind.removeprefix("u")
    models = INTEGER_ONE | INTEGER_TWO | INTEGER_THREE
    count = {
        name: sum(name in t for t in ([INTEGER_ONE, INTEGER_TWO, INTEGER_THREE][i:]))
        for i in range(1)
        for name in models
    }
    assert set(count.values()) == {1}
    text = ""
    for table, operands in ((INTEGER_ONE, 1), (INTEGER_TWO, 2), (INTEGER_THREE, 3)):
        letters = ", ".join(f"{c}[i]" for c in "abc"[:operands])
        for name in table:
            # The result's type counts: it must not be promoted.
            text += loop(
                f"{name}_",
                result,
                [kind] * operands,
                f"{{ auto r = metal::{name}({letters}); o[i] = as_type<{result}>(r); }}",
            )
    lib = build(text)
    pairs = list(itertools.product(range(-128, 128), repeat=2)) if bits == 8 else []
    x, y, z = (_samples(kind, 3000, k) for k in range(3))
    if pairs:
        every = np.array(pairs).astype(np.int8).view(NUMPY[kind])
        x, y = np.concatenate([x, every[:, 0]]), np.concatenate([y, every[:, 1]])
        z = np.resize(z, x.size)
    for table, arrays in ((INTEGER_ONE, (x,)), (INTEGER_TWO, (x, y)), (INTEGER_THREE, (x, y, z))):
        for name, model in table.items():
            got = evaluate(lib, f"{name}_", result, *arrays).tolist()
            for g, values in zip(got, zip(*(a.tolist() for a in arrays))):
                want = model(*values, bits, signed) % (1 << bits)
                assert g == want, (name, values, g, want)


BITS = [
    ("extract_bits(0xABCD1234u, 8, 8)", 0x12), ("extract_bits(0xF0, 4, 4)", -1), ("extract_bits(5u, 3, 0)", 0),
    ("extract_bits(0x80000000u, 0, 32)", -(2**31)), ("extract_bits(uchar(0xF0), 4, 4)", 15), ("extract_bits(char(0xF0), 6, 2)", -1),
    ("insert_bits(0xFFFFFFFFu, 0x12u, 8, 8)", 0xFFFF12FF - 2**32), ("insert_bits(1, 2, 0, 32)", 2), ("insert_bits(7, 9, 4, 0)", 7),
    ("extract_bits(int2(0xF0, 0x70), 4, 4).y", 7), ("insert_bits(uint2(0), uint2(1), 4, 4).x", 16),
    ("mul24(0x1000001, 3)", 3), ("mul24(-2, 3)", -6), ("mad24(2u, 3u, 4u)", 10), ("mul24(0xFFFFFF, 2)", -2),
    ("popcount(uchar(255))", 8), ("clz(ulong(1))", 63), ("abs(int2(-3, 4)).x", 3), ("max(int2(1, 5), 3).x", 3),
]  # fmt: skip


def test_bit_fields_and_24_bits() -> None:
    body = "".join(f"o[{i}] = int({e});" for i, (e, _) in enumerate(BITS))
    got = run(body, len(BITS), np.int32).tolist()
    assert [(e, g) for (e, _), g in zip(BITS, got)] == [(e, w) for e, w in BITS]


# ---- packing ----


def test_unpacking_every_byte_and_packing_it_again() -> None:
    lib = build(
        loop("unorm", "float", ["uint"], "o[i] = unpack_unorm4x8_to_float(a[i] << 16).z")
        + loop("snorm", "float", ["uint"], "o[i] = unpack_snorm4x8_to_float(a[i] << 8).y")
        + loop("srgb", "float", ["uint"], "o[i] = unpack_unorm4x8_srgb_to_float(a[i]).x")
        + loop("unorm_", "uint", ["float"], "o[i] = pack_float_to_unorm4x8(float4(0, 0, a[i], 0))")
        + loop("snorm_", "uint", ["float"], "o[i] = pack_float_to_snorm4x8(float4(0, a[i], 0, 0))")
        + loop("srgb_", "uint", ["float"], "o[i] = pack_float_to_srgb_unorm4x8(float4(a[i], 0, 0, 0))")
    )
    n = np.arange(256, dtype=np.uint32)
    signed = n.astype(np.uint8).view(np.int8).astype(np.float64)
    got = evaluate(lib, "unorm", "float", n)
    assert np.array_equal(got, (n / 255).astype(np.float32))
    assert np.array_equal(evaluate(lib, "unorm_", "uint", got), n << 16)
    got = evaluate(lib, "snorm", "float", n)
    assert np.array_equal(got, np.maximum(signed / 127, -1).astype(np.float32))
    assert np.array_equal(evaluate(lib, "snorm_", "uint", got), np.where(n == 128, 129, n) << 8)
    c = n / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    got = evaluate(lib, "srgb", "float", n)
    assert np.allclose(got, linear, rtol=1e-6, atol=0)
    assert np.array_equal(evaluate(lib, "srgb_", "uint", got), n)


PACKED = [
    ("pack_float_to_unorm4x8(float4(0, 0.5f, 1, 0.25f))", 0x40FF8000), ("pack_float_to_unorm4x8(float4(-1, 2, NAN, 1))", 0xFF00FF00),
    ("pack_float_to_snorm2x16(float2(-1, 1))", 0x7FFF8001), ("pack_half_to_unorm2x16(half2(1, 0))", 0x0000FFFF),
    ("pack_float_to_unorm10a2(float4(1, 0, 1, 1))", 0xFFF003FF), ("pack_float_to_unorm565(float3(1, 0, 0))", 0xF800),
    ("uint(unpack_unorm565_to_float(0x07E0).y)", 1), ("uint(unpack_unorm10a2_to_float(0xC0000000u).w)", 1),
    ("as_type<uint>(unpack_snorm2x16_to_half(0x80007FFFu))", 0xBC003C00), ("pack_float_to_snorm10a2(float4(-1, 1, 0, -1))", 0xC007FE01),
]  # fmt: skip


def test_packed_formats() -> None:
    body = "".join(f"o[{i}] = {e};" for i, (e, _) in enumerate(PACKED))
    got = run(body, len(PACKED), np.uint32).tolist()
    assert [(e, hex(g)) for (e, _), g in zip(PACKED, got)] == [(e, hex(w)) for e, w in PACKED]
