"""Vectors, packed vectors, matrices and conversions of the emulator's library."""

from __future__ import annotations

import ctypes
import itertools

import ml_dtypes
import numpy as np
import pytest
from library_snippets import EXPORT, build, errors, faults, run
from shim_calls import Array, evaluate, loop

from metaljit.runtime.msl import compile

# ---- what Metal accepts, and what it does not ----

LAYOUT = [
    ("float3", 16, 16), ("half3", 8, 8), ("char3", 4, 4), ("bool3", 4, 4), ("long3", 32, 32), ("uint2", 8, 8),
    ("ushort4", 8, 8), ("packed_float3", 12, 4), ("packed_half3", 6, 2), ("packed_char3", 3, 1),
    ("packed_long3", 24, 8), ("bfloat4", 8, 8), ("bfloat", 2, 2), ("float2x2", 16, 8), ("float2x3", 32, 16),
    ("float3x3", 48, 16), ("float4x2", 32, 8), ("half2x2", 8, 4), ("half3x2", 12, 4), ("half4x4", 32, 8),
    ("atomic_uint", 4, 4), ("simdgroup_float8x8", 8, 8), ("half", 2, 2),
]  # fmt: skip


def test_sizes_and_alignments() -> None:
    checks = [
        f"static_assert(sizeof({t}) == {size} && alignof({t}) == {align});" for t, size, align in LAYOUT
    ]
    checks.append("struct S { uchar3 a; bool b; float c; }; static_assert(sizeof(S) == 12);")
    checks.append("struct R { packed_float3 a; float b; }; static_assert(sizeof(R) == 16);")
    assert errors("".join(checks)) == []


ACCEPTED = [
    "float4 v = float4(float2(1), 2, 3); v.xy = v.zw; v.bgr += 1.0f; v.xyzw = v.wzyx;",
    "float4 v(1, 2, 3, 4); float a[4] = {v.x, v.r, v[2], v.wzyx.x}; (void)a;",
    "uint4 v = {1u, 2u, 3u}; int3 w{1, 2, 3}; float3 u = {1.0f}; (void)v, (void)w, (void)u;",
    "packed_float3 p = float3(1); float3 v = p * 2.0f + p; p += v; p.xy = p.yx; v = normalize(p);",
    "float4 v = float4(int4(1)) * 2; int4 w = int4(1) * 2.5f; bool4 b = v < 2 && !(v == 1.0f);",
    "half4 h = half4(1.0f); h = h * 2.0f; half x = h.x * 2.0f; float y = h.x; (void)x, (void)y;",
    "metal::float3 v = metal::max(float3(1), 0.0f); v = metal::mix(v, float3(2), 0.5f); v = clamp(v, 0, 1);",
    "int x = select(1, -1, 4 & 3); float y = select(1.0f, 2.0f, true); int z = max(short(1), short(2));",
    "float y; float x = modf(1.5f, y); int e; x = frexp(x, e); float3 f; int3 g; f = frexp(f, g);",
    "bfloat b = bfloat(1.5f); float f = b; b = 3; b = b * 2; b += 1.0f; f = b * f; b = true ? b : 0;",
    "ulong n = 3; float3 v(1); float f = v[n] + v[1u] + v[short(0)]; (void)f;",
    "vec<float, 3> v = float3(1); matrix<float, 2, 3> m = float2x3(1); v = m * float2(1); v.xy = v * m;",
    "float2x2 m = {{1, 2}, {3, 4}}; m = m * m * 2.0f - m; m[1].y = 2; m[1][0] = 3; m = transpose(m);",
    "float s = as_type<float>(1u); uint2 v = as_type<uint2>(half4(1)); float4 w = as_type<float4>(float3(1));",
    "array<float3, 2> a = {float3(1), float3(2)}; a[1].x = a.size(); for (float3 v : a) (void)v;",
    "bool b = any(bool2(true)) || all(float2(1) < 2); b = isnan(1.0f) || any(isinf(half2(1)));",
    "float f = sqrt(2.0f) + max(1.0f, 2.0f) + fma(1.0f, 2.0f, 1) + pow(2.0f, 2); half h = sqrt(half(2));",
    "uint u = clz(1u) + popcount(1u) + mulhi(1u, 2u) + extract_bits(1u, 2, 3); char c = abs(char(-1));",
    "int c = 1; c <<= 2; uint3 v(1); v <<= 33; v = v >> uint3(1, 2, 3); v++; v = ~v % 3u;",
    "float f = float(numeric_limits<half>::max()) + FLT_MAX + M_PI_F + float(HALF_MAX) + MAXFLOAT + INFINITY;",
    "int i = is_same_v<decltype(float3(1).xy), float2> && is_vector_v<int2> && is_floating_point_v<bfloat>;",
    "float3 v = precise::sin(float3(1)) + fast::normalize(float3(1)); v += float3(bool3(true));",
    "int4 v(-8); v = v >> uint4(1) << packed_ushort4(uint4(1)); v <<= ulong4(2); v >>= char4(1); v = v >> 1u;",
    "uchar4 c(200); c = c + c; bool3 b = bool3(1, 0, 2); b = b & true; b |= b; b = !b;",
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_metal_accepts(body: str) -> None:
    assert errors(body) == []


def test_bounds_of_vectors_are_deduced_into_int_and_uint() -> None:
    before = """
template <typename T, uint n> constexpr int of_uint(vec<T, n>) { return n; }
template <typename T, int n> constexpr int of_int(vec<T, n>) { return n; }
template <typename T> struct scalar_of { typedef T type; };
template <typename T, int n> struct scalar_of<vec<T, n>> { typedef T type; };
static_assert(of_uint(float3(1)) == 3 && of_int(bool2(true)) == 2 && is_same_v<scalar_of<half4>::type, half>);
"""
    assert errors("", before) == []


REFUSED = [
    "float4 v = int4(1);",
    "float4 v = float4(1, 2);",
    "float4 v(1, 2, 3);",
    "float3 v(float4(1));",
    "uint4 v(uint2(1), 1u);",
    "float2 v(1); v.xx = v;",
    "float2 v(1); v = v.zz;",
    "float2 v(1); v.rx = v;",
    "const float2 v(1); v.xy = v;",
    "float4 v(1); v.yxy += float3(1);",
    "float f = float2(1);",
    "if (float2(1) < 2) {}",
    "float3 v = float3(1) + int3(1);",
    "int3 v = ~float3(1);",
    "int2 v = int2(1) >> uint3(1);",
    "int2 v = int2(1) << float2(1);",
    "int2 v = int2(1) & uint2(1);",
    "bool3 v = bool3(true) + bool3(true);",
    "half h = bfloat(1.0f);",
    "bfloat b = half(1.0f);",
    "bfloat b = 1.0f;",
    "float f = half(1.0f) + bfloat(1.0f);",
    "float f = max(1.0f, 0);",
    "int i = min(1, 1u);",
    "float f = clamp(1.0f, 0, 1);",
    "ulong n = min(size_t(1), 1u);",
    "uchar c = max(uchar(1), 3);",
    "float f = sqrt(2);",
    "float f = max(half(1), 1.0f) + exp(1);",
    "float3 v = max(float3(1), int3(1));",
    "bool b = any(1.0f);",
    "bool b = all(float2(1));",
    "bool b = isnan(1);",
    "float3 v = select(float3(1), float3(2), int3(1));",
    "float3 v = select(float3(1), float3(2), 1);",
    "uint u = as_type<uint>(half(1));",
    "int *p = as_type<int *>(1l);",
    "float2x2 m = 1.0f;",
    "float2x2 m = float3x3(1);",
    "matrix<int, 2, 2> m;",
    "atomic_uint a; atomic_uint b = a;",
    "atomic<short> a;",
    "atomic_uint a; atomic_fetch_add_explicit(&a, 1, memory_order_seq_cst);",
    "atomic_float a; atomic_fetch_max_explicit(&a, 1.0f, memory_order_relaxed);",
    "atomic_bool a; atomic_fetch_add_explicit(&a, true, memory_order_relaxed);",
    "bool b = simd_sum(true);",
    "long n = simd_shuffle(1l, 0);",
    "float f = simd_and(1.0f);",
    "simdgroup_matrix<int, 8, 8> m;",
    "simdgroup_matrix<float, 4, 8> m;",
    "threadgroup_barrier(1);",
    "threadgroup_barrier(mem_threadgroup);",
    "float f = erf(1.0f);",
    "float f = cbrt(1.0f);",
    "vec<float, 5> v;",
]


@pytest.mark.parametrize("body", REFUSED)
def test_metal_refuses(body: str) -> None:
    assert errors(body) != []


@pytest.mark.parametrize(
    "call",
    [
        "max(float3(1), float3(2))",
        "sin(1.0f)",
        "dot(half2(1), half2(1))",
        "simd_sum(1)",
        "normalize(packed_float3(1))",
    ],
)
def test_the_library_is_in_namespace_metal_only(call: str) -> None:
    found = compile.check(f"void f() {{ (void){call}; }}")
    assert ["undeclared identifier" in m.text for m in found if m.severity == "error"] == [True]


NAMES = """
abs absdiff acos acosh addsat all any array array_ref asin asinh atan atan2 atanh ceil clamp clz conditional_t
copysign cos cosh cospi cross ctz determinant distance distance_squared divide dot enable_if_t exp exp10 exp2 extract_bits
fabs faceforward fdim floor fma fmax fmax3 fmedian3 fmin fmin3 fmod fract frexp hadd ilogb insert_bits is_floating_point
is_integral is_same_v isfinite isinf isnan isnormal isordered isunordered ldexp length length_squared log log10 log2 mad24
madhi madsat make_signed make_unsigned max max3 median3 min min3 mix modf mul24 mulhi nextafter normalize numeric_limits
popcount pow powr reflect refract reverse_bits rhadd rint rotate round rsqrt saturate select sign signbit sin sincos sinh
sinpi smoothstep sqrt step subsat tan tanh tanpi transpose trunc
simd_active_threads_mask simd_all simd_and simd_any simd_ballot simd_broadcast simd_broadcast_first simd_is_first
simd_is_helper_thread simd_max simd_min simd_or simd_prefix_exclusive_product simd_prefix_exclusive_sum
simd_prefix_inclusive_product simd_prefix_inclusive_sum simd_product simd_shuffle simd_shuffle_and_fill_down
simd_shuffle_and_fill_up simd_shuffle_down simd_shuffle_rotate_down simd_shuffle_rotate_up simd_shuffle_up
simd_shuffle_xor simd_sum simd_vote simd_xor simdgroup_barrier threadgroup_barrier
atomic atomic_bool atomic_compare_exchange_weak_explicit atomic_exchange_explicit atomic_fetch_add_explicit
atomic_fetch_and_explicit atomic_fetch_max_explicit atomic_fetch_min_explicit atomic_fetch_or_explicit
atomic_fetch_sub_explicit atomic_fetch_xor_explicit atomic_float atomic_int atomic_load_explicit atomic_max_explicit
atomic_min_explicit atomic_store_explicit atomic_thread_fence atomic_uint atomic_ulong
depth2d depth2d_array depthcube sampler texture1d texture2d texture2d_array texture3d texture_buffer texturecube
"""


def test_every_name_of_the_library_is_there() -> None:
    names = [*NAMES.split(), *(n.replace("simd_", "quad_") for n in NAMES.split() if n.startswith("simd_"))]
    text = "".join(f"namespace n{i} {{ using metal::{name}; }}" for i, name in enumerate(names))
    assert errors("", text) == []


# ---- values ----


def test_swizzles() -> None:
    got = run(
        "float4 v(1, 2, 3, 4); v.wx = v.yz; float4 w = v.bgra; w.xyz += w.zzz; v.yz *= 10;"
        "for (int i = 0; i < 4; i++) { o[i] = v[i]; o[4 + i] = w[i]; } o[8] = v.rrrr.w; o[9] = w.xy.y;",
        10,
        np.float32,
    )
    assert got.tolist() == [3, 20, 30, 2, 6, 5, 6, 2, 3, 5]


def test_counts_of_shifts_may_have_another_type() -> None:
    got = run(
        "int4 v(-64, 64, 1, 3); int4 w = v >> uint4(3, 35, 1, 0); short4 s(v); s <<= ulong4(1, 1, 2, 17);"
        "for (int i = 0; i < 4; i++) { o[i] = w[i]; o[4 + i] = s[i]; }",
        8,
        np.int32,
    )
    assert got.tolist() == [-8, 8, 0, 3, -128, 128, 4, 6]


def test_every_swizzle_reads_its_letters() -> None:
    letters = "xyzw"
    names = ["".join(n) for k in (2, 3, 4) for n in itertools.product(letters, repeat=k)]
    colours = str.maketrans(letters, "rgba")
    before = "__attribute__((noinline)) int code(int2 v) { return 10 * v.x + v.y; }"
    before += " __attribute__((noinline)) int code(int3 v) { return 10 * code(v.xy) + v.z; }"
    before += " __attribute__((noinline)) int code(int4 v) { return 10 * code(v.xyz) + v.w; }"
    both = [spelling for n in names for spelling in (n, n.translate(colours))]
    body = "int4 v(1, 2, 3, 4);" + "".join(f"o[{i}] = code(v.{n});" for i, n in enumerate(both))
    want = [int("".join(str(letters.index(c) + 1) for c in n)) for n in names for _ in range(2)]
    assert run(body, len(want), np.int32, before).tolist() == want


def test_every_swizzle_writes_its_letters() -> None:
    letters = "xyzw"
    names = [a + b + c for a in letters for b in letters for c in letters if len({a, b, c}) == 3]
    names += [n + d for n in names for d in letters if d not in n] + [
        a + b for a in letters for b in letters if a != b
    ]
    body = "int k = 0;" + "".join(
        f"{{ int4 v(0); v.{n} = int4(1, 2, 3, 4).{letters[: len(n)]}; for (int i = 0; i < 4; i++) o[k++] = v[i]; }}"
        for n in names
    )
    want = [n.find(c) + 1 for n in names for c in letters]
    assert run(body, len(want), np.int32).tolist() == want


def test_vectors_do_not_promote_and_scalars_do() -> None:
    body = "uchar a = 200, b = 100; o[0] = a + b; o[1] = (uchar4(a) + uchar4(b)).y; o[2] = uchar(a + b); o[3] = char4(-128).x / char4(-1).x;"
    assert run(body, 4, np.int32).tolist() == [300, 44, 44, 128]


def test_integer_vectors_neither_trap_nor_shift_out() -> None:
    body = """
int4 a(7, INT_MIN, -7, 5), b(0, -1, 2, 0); int4 q = a / b, r = a % b;
int2 s = int2(1, -8) << int2(33, 0), t = int2(1, -8) >> int2(33, 1); uint2 u = uint2(1) << 32;
for (int i = 0; i < 4; i++) { o[i] = q[i]; o[4 + i] = r[i]; }
o[8] = s.x; o[9] = s.y; o[10] = t.x; o[11] = t.y; o[12] = int(u.x); char2 c = char2(1) << char2(9); o[13] = c.x;
"""
    want = [0, -(2**31), -3, 0, 7, 0, -1, 5, 2, -8, 0, -4, 1, 2]
    assert run(body, 14, np.int32).tolist() == want


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("int", -(2**31), 2**31 - 1), ("uint", 0, 2**32 - 1), ("char", -128, 127), ("ushort", 0, 65535),
     ("long", -(2**63), 2**63 - 1), ("ulong", 0, 2**64 - 1)],
)  # fmt: skip
def test_conversions_of_vectors_saturate(kind: str, low: int, high: int) -> None:
    body = f"{kind}4 v = {kind}4(float4(NAN, INFINITY, -INFINITY, -1.9f)); {kind}2 w = {kind}2(float2(2.9f, 3e38f));"
    body += "for (int i = 0; i < 4; i++) o[i] = v[i]; o[4] = w.x; o[5] = w.y;"
    dtype = np.int64 if low < 0 else np.uint64
    assert run(body, 6, dtype).tolist() == [0, high, low, max(low, -1), 2, high]


def test_bfloat_rounds_to_nearest_even_once() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 4096, np.uint32)
    values = np.concatenate(
        [
            bits.view(np.float32),
            np.array([1.00390625, 1.005859375, 1.01171875, 3.14159265, np.inf, -0.0], np.float32),
        ]
    )
    lib = build(
        loop("from", "ushort", ["float"], "o[i] = as_type<ushort>(bfloat(a[i]))")
        + loop("to", "float", ["ushort"], "o[i] = as_type<bfloat>(a[i])")
        + loop(
            "times",
            "ushort",
            ["ushort", "ushort"],
            "o[i] = as_type<ushort>(as_type<bfloat>(a[i]) * as_type<bfloat>(b[i]))",
        )
        + loop("whole", "ushort", ["int"], "o[i] = as_type<ushort>(bfloat(a[i]))")
    )
    with np.errstate(invalid="ignore"):
        want = values.astype(ml_dtypes.bfloat16)
    got = evaluate(lib, "from", "ushort", values)
    is_number = ~np.isnan(values)
    assert (got[is_number] == want.view(np.uint16)[is_number]).all()
    assert np.isnan(got[~is_number].view(ml_dtypes.bfloat16).astype(np.float32)).all()
    back = evaluate(lib, "to", "float", want.view(np.uint16))
    assert np.array_equal(back, want.astype(np.float32), equal_nan=True)
    a, b = want[:2048], want[2048:4096]
    with np.errstate(all="ignore"):
        product = (a.astype(np.float64) * b.astype(np.float64)).astype(np.float32).astype(ml_dtypes.bfloat16)
    times = evaluate(lib, "times", "ushort", a.view(np.uint16), b.view(np.uint16)).view(ml_dtypes.bfloat16)
    assert np.array_equal(times, product, equal_nan=True)
    # A whole number that float cannot hold must not round twice: just above the middle of two bfloats.
    assert evaluate(lib, "whole", "ushort", np.array([2**24 + 2**16 + 1], np.int32)).tolist() == [0x4B81]


def _listed(m: Array) -> str:
    return ", ".join(str(x) for x in np.ravel(m))


def test_matrices_multiply_as_numpy_does() -> None:
    rng = np.random.default_rng(1)
    a, b, v = rng.integers(-9, 9, (3, 2)), rng.integers(-9, 9, (4, 3)), rng.integers(-9, 9, 3)
    # A[c][r]: 3 columns of 2 rows; B: 4 columns of 3 rows. As arrays of columns they are the transposed matrices.
    body = f"""
float3x2 a({_listed(a)}); float4x3 b({_listed(b)}); float3 v({_listed(v)}); float4x2 c = a * b; int k = 0;
for (int i = 0; i < 4; i++) for (int j = 0; j < 2; j++) o[k++] = c[i][j];
float2 x = a * v; float4 y = v * b; o[k++] = x.x; o[k++] = x.y; for (int i = 0; i < 4; i++) o[k++] = y[i];
float3x3 d({_listed(b[:3])}); o[k++] = determinant(d); o[k++] = transpose(b)[2][3]; o[k++] = float3x3(2.0f)[1].y;
"""
    got = run(body, 17, np.float32)
    assert np.array_equal(got[:8].reshape(4, 2), b @ a)
    assert np.array_equal(got[8:10], v @ a)
    assert np.array_equal(got[10:14], b @ v)
    assert got[14] == pytest.approx(np.linalg.det(b[:3]), rel=1e-6)
    assert got[15:].tolist() == [b[3][2], 2]


def test_a_wrong_subscript_is_a_fault_with_its_place() -> None:
    text = f"""
{EXPORT} void run(int *o, int i) {{
    float3 v(5, 6, 7);
    array<int, 2> a = {{1, 2}};
    o[0] = v[i];
    o[1] = a[i + 1];
}}"""
    lib = build(text, ("-D__EMU_SANITIZE",))
    out = np.zeros(2, np.int32)
    lib.run(ctypes.c_void_p(out.ctypes.data), 2)
    fault, count = faults(lib)
    assert (fault.tolist(), count, out[0]) == ([1, 3, 2, 6, 14], 1, 7)
    lib.run(ctypes.c_void_p(out.ctypes.data), -1)
    fault, count = faults(lib)
    assert (fault[:4].tolist(), count, out.tolist()) == ([1, -1, 3, 5], 1, [5, 1])
