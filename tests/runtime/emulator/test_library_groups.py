"""What threads do together in the emulator's library: collectives, simdgroup matrices, atomics, barriers, entries."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest
from library_snippets import EXPORT, build, errors, faults, lanes, run
from shim_calls import Array

import metaljit as mj
from metaljit.source import KernelFault

ALL = 0xFFFFFFFF
SOME = 0b1011_0000_1111_0000_1111_1111_0110_1101
X = np.random.default_rng(0).integers(-50, 50, 32).astype(np.int32)


def _active(mask: int) -> list[int]:
    return [i for i in range(32) if mask >> i & 1]


def _reduce(f: Callable[[list[int]], int]) -> Callable[[Array, list[int], int], int]:
    return lambda x, active, lane: f([int(x[i]) for i in active])


def _before(lane: int, active: list[int], inclusive: bool) -> list[int]:
    return [i for i in active if i < lane or (inclusive and i == lane)]


def _product(values: list[int]) -> int:
    r = 1
    for v in values:
        r = (r * v + 2**31) % 2**32 - 2**31
    return r


def _fold(op: Callable[[int, int], int]) -> Callable[[list[int]], int]:
    def fold(values: list[int]) -> int:
        r = values[0]
        for v in values[1:]:
            r = op(r, v)
        return r

    return fold


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "sum": sum, "product": _product, "min": min, "max": max, "and": _fold(int.__and__), "or": _fold(int.__or__),
    "xor": _fold(int.__xor__), "broadcast_first": lambda v: v[0],
}  # fmt: skip


@pytest.mark.parametrize("mask", [ALL, SOME, 0x10])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_take_the_active_lanes(name: str, mask: int) -> None:
    got = lanes(f"simd_{name}(x)", "int", "int", X, mask)
    active = _active(mask)
    want = REDUCTIONS[name]([int(X[i]) for i in active])
    assert got.tolist() == [want if i in active else 0 for i in range(32)]


@pytest.mark.parametrize("mask", [ALL, SOME])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_quads_take_four_lanes(name: str, mask: int) -> None:
    got = lanes(f"quad_{name}(x)", "int", "int", X, mask)
    active = _active(mask)
    for lane in active:
        quad = [int(X[i]) for i in active if i // 4 == lane // 4]
        assert got[lane] == REDUCTIONS[name](quad)


@pytest.mark.parametrize("mask", [ALL, SOME])
@pytest.mark.parametrize("inclusive", [False, True])
def test_prefixes(inclusive: bool, mask: int) -> None:
    kind = "inclusive" if inclusive else "exclusive"
    sums = lanes(f"simd_prefix_{kind}_sum(x)", "int", "int", X, mask)
    products = lanes(f"quad_prefix_{kind}_product(x)", "int", "int", X, mask)
    active = _active(mask)
    for lane in active:
        before = _before(lane, active, inclusive)
        assert sums[lane] == sum(int(X[i]) for i in before)
        assert products[lane] == _product([int(X[i]) for i in before if i // 4 == lane // 4])


MOVES: dict[str, Callable[[int, int, int], int]] = {
    "shuffle(x, 5)": lambda i, n, d: 5 % n + i // n * n,
    "broadcast(x, 1)": lambda i, n, d: 1 + i // n * n,
    "shuffle_up(x, 2)": lambda i, n, d: i - 2 if i % n >= 2 else i,
    "shuffle_down(x, 2)": lambda i, n, d: i + 2 if i % n + 2 < n else i,
    "shuffle_rotate_up(x, 2)": lambda i, n, d: (i % n - 2) % n + i // n * n,
    "shuffle_rotate_down(x, 1)": lambda i, n, d: (i % n + 1) % n + i // n * n,
    "shuffle_xor(x, 3)": lambda i, n, d: i ^ 3,
}


@pytest.mark.parametrize("call", MOVES)
@pytest.mark.parametrize(("prefix", "n"), [("simd", 32), ("quad", 4)])
def test_moves(prefix: str, n: int, call: str) -> None:
    if prefix == "quad" and "5" in call:
        call_, source = "shuffle(x, 1)", MOVES["broadcast(x, 1)"]
    else:
        call_, source = call, MOVES[call]
    got = lanes(f"{prefix}_{call_}", "int", "int", X)
    assert got.tolist() == [X[source(i, n, 2)] for i in range(32)]
    vectors = lanes(f"{prefix}_{call_.replace('(x', '(float2(x, -x)')}.y", "int", "float", X)
    assert vectors.tolist() == [-X[source(i, n, 2)] for i in range(32)]


def test_moves_that_fill() -> None:
    fill = "x + 1000"
    up = lanes(f"simd_shuffle_and_fill_up(x, {fill}, 2)", "int", "int", X)
    assert up.tolist() == [X[i - 2] if i >= 2 else X[30 + i] + 1000 for i in range(32)]
    down = lanes(f"simd_shuffle_and_fill_down(x, {fill}, 3)", "int", "int", X)
    assert down.tolist() == [X[i + 3] if i < 29 else X[i - 29] + 1000 for i in range(32)]
    rows = lanes(f"simd_shuffle_and_fill_up(x, {fill}, 2, 8)", "int", "int", X)
    assert rows.tolist() == [X[i - 2] if i % 8 >= 2 else X[i + 6] + 1000 for i in range(32)]
    quads = lanes(f"quad_shuffle_and_fill_down(x, {fill}, 1)", "int", "int", X)
    assert quads.tolist() == [X[i + 1] if i % 4 < 3 else X[i - 3] + 1000 for i in range(32)]


@pytest.mark.parametrize("mask", [ALL, SOME])
def test_votes(mask: int) -> None:
    active = _active(mask)
    odd = sum(1 << i for i in active if X[i] % 2)
    assert set(lanes("(ulong)(simd_vote::vote_t)simd_ballot(x % 2)", "int", "ulong", X, mask)) <= {odd, 0}
    assert lanes("ulong(simd_active_threads_mask())", "int", "ulong", X, mask)[active[0]] == mask
    assert lanes("simd_any(x % 2)", "int", "int", X, mask)[active[0]] == 1
    assert lanes("simd_all(x > -1000)", "int", "int", X, mask)[active[0]] == 1
    assert lanes("simd_all(x > 0)", "int", "int", X, mask)[active[0]] == 0
    assert lanes("simd_ballot(true).all()", "int", "int", X, mask)[active[0]] == (mask == ALL)
    first = lanes("simd_is_first()", "int", "int", X, mask)
    assert first.tolist() == [int(i == active[0]) for i in range(32)]
    quad = lanes("ulong(quad_ballot(x % 2))", "int", "ulong", X, mask)
    for i in active:
        assert quad[i] == odd >> i // 4 * 4 & 15


@pytest.mark.parametrize(("flags", "count"), [((), 0), (("-D__EMU_SANITIZE",), 4)])
def test_an_absent_lane_gives_0_and_is_a_fault_of_a_sanitized_run(flags: tuple[str, ...], count: int) -> None:
    text = f"""
{EXPORT} void run(float *o, uint active) {{
    __emu_test::lanes(active, [=](uint lane) {{
        o[lane] = simd_shuffle(float(lane), 7);
    }});
}}"""
    lib = build(text, flags)
    out = np.zeros(32, np.float32)
    lib.run(ctypes.c_void_p(out.ctypes.data), ctypes.c_uint(0xFF))
    assert faults(lib)[1] == 0
    assert out[:8].tolist() == [7] * 8
    lib.run(ctypes.c_void_p(out.ctypes.data), ctypes.c_uint(0x0F))
    fault, found = faults(lib)
    assert found == count
    assert not count or fault[:4].tolist() == [2, 7, 32, 4]
    assert out[:4].tolist() == [0] * 4


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_simdgroup_matrices(kind: str, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(2)
    a, b, c = (rng.integers(-4, 5, (8, 8)).astype(dtype) for _ in range(3))
    memory = np.concatenate([a.ravel(), b.ravel(), np.ascontiguousarray(c.T).ravel()])
    big = rng.integers(-4, 5, (20, 11)).astype(dtype)
    text = f"""
{EXPORT} void run(const {kind} *m, {kind} *o, const {kind} *big) {{
    __emu_test::lanes(~0u, [=](uint lane) {{
        simdgroup_matrix<{kind}, 8, 8> a, b, c, d, e;
        simdgroup_load(a, m);
        simdgroup_load(b, m + 64, 8);
        simdgroup_load(c, m + 128, 8, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(d, a, b, c);
        simdgroup_store(d, o);
        simdgroup_load(e, big, 11, ulong2(2, 5));
        simdgroup_store(e, o + 64, 8, 0, true);
        simdgroup_store(simdgroup_matrix<{kind}, 8, 8>(3), o + 128);
        simdgroup_store(make_filled_simdgroup_matrix<{kind}, 8, 8>(2.0f), o + 192);
        a.thread_elements()[1] = lane;
        simdgroup_store(a, o + 256);
        simdgroup_load(a, m);
        simdgroup_store(a * b, o + 320);
    }});
}}"""
    out = np.zeros(384, dtype)
    lib = build(text)
    lib.run(*(ctypes.c_void_p(x.ctypes.data) for x in (memory, out, big)))
    d, e, diagonal, filled, held, product = out.reshape(6, 8, 8)
    assert np.array_equal(d, a @ b + c)
    assert np.array_equal(product, a @ b)
    assert np.array_equal(e.T, big[5:13, 2:10])
    assert np.array_equal(diagonal, 3 * np.eye(8))
    assert (filled == 2).all()
    lane = np.arange(32)
    quad = lane // 4
    row, column = (quad & 4) + lane // 2 % 4, (quad & 2) * 2 + lane % 2 * 2
    assert np.array_equal(held[row, column + 1], lane)
    assert np.array_equal(held[row, column], a[row, column])


def test_mixed_products_accumulate_in_the_type_of_the_result() -> None:
    text = f"""
{EXPORT} void run(float *o, uint active) {{
    __emu_test::lanes(active, [=](uint lane) {{
        simdgroup_half8x8 a = make_filled_simdgroup_matrix<half, 8, 8>(half(200));
        simdgroup_bfloat8x8 b = make_filled_simdgroup_matrix<bfloat, 8>(bfloat(100.0f));
        simdgroup_float8x8 d = make_filled_simdgroup_matrix<float, 8, 8>(1);
        simdgroup_multiply_accumulate(d, a, b, d);
        simdgroup_store(d, o);
    }});
}}"""
    lib = build(text)
    out = np.zeros(64, np.float32)
    lib.run(ctypes.c_void_p(out.ctypes.data), ctypes.c_uint(ALL))
    assert (out == 160001).all()
    assert faults(lib)[1] == 0
    lib.run(ctypes.c_void_p(out.ctypes.data), ctypes.c_uint(0xFFFF))
    fault, count = faults(lib)
    assert (fault[:4].tolist(), count) == ([2, 16, 32, 7], 16)


# ---- atomics, barriers, logging ----


def test_atomic_functions() -> None:
    body = """
static atomic_uint u; static atomic_int s; static atomic_float f; static atomic_bool b; static atomic_ulong w;
atomic_store_explicit(&u, 7, memory_order_relaxed); o[0] = atomic_fetch_add_explicit(&u, 1, memory_order_relaxed);
o[1] = atomic_fetch_sub_explicit(&u, 2u, memory_order_relaxed); o[2] = atomic_fetch_or_explicit(&u, 9, memory_order_relaxed);
o[3] = atomic_fetch_and_explicit(&u, 12, memory_order_relaxed); o[4] = atomic_fetch_xor_explicit(&u, 1, memory_order_relaxed);
o[5] = atomic_load_explicit(&u, memory_order_relaxed); atomic_store_explicit(&s, -5, memory_order_relaxed);
o[6] = atomic_fetch_min_explicit(&s, 3, memory_order_relaxed); o[7] = atomic_fetch_max_explicit(&s, 3, memory_order_relaxed);
o[8] = atomic_exchange_explicit(&s, INT_MAX, memory_order_relaxed); atomic_fetch_add_explicit(&s, 1, memory_order_relaxed);
o[9] = atomic_load_explicit(&s, memory_order_relaxed) == INT_MIN; atomic_store_explicit(&f, -0.0f, memory_order_relaxed);
float expected = 0.0f;
o[10] = atomic_compare_exchange_weak_explicit(&f, &expected, 1.0f, memory_order_relaxed, memory_order_relaxed);
o[11] = signbit(expected); o[12] = __emu_test::yields;
o[13] = atomic_compare_exchange_weak_explicit(&f, &expected, 1.5f, memory_order_relaxed, memory_order_relaxed);
o[14] = atomic_fetch_add_explicit(&f, 2.0f, memory_order_relaxed) == 1.5f; o[15] = atomic_fetch_sub_explicit(&f, 3.0f, memory_order_relaxed) == 3.5f;
o[16] = atomic_load_explicit(&f, memory_order_relaxed) == 0.5f; atomic_store_explicit(&b, true, memory_order_relaxed);
o[17] = atomic_exchange_explicit(&b, false, memory_order_relaxed); atomic_store_explicit(&w, 5, memory_order_relaxed);
atomic_max_explicit(&w, 9ul, memory_order_relaxed); atomic_min_explicit(&w, 1ul << 40, memory_order_relaxed);
o[18] = atomic_load_explicit(&w, memory_order_relaxed); volatile atomic_uint *v = &u; o[19] = atomic_load_explicit(v, memory_order_relaxed);
"""
    want = [7, 8, 6, 15, 12, 13, -5, -5, 3, 1, 0, 1, 3, 1, 1, 1, 1, 1, 9, 13]
    assert run(body, 20, np.int32).tolist() == want


def test_barriers_say_which_memory() -> None:
    body = """
long *last = __emu_test::last;
threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device); o[0] = last[0];
threadgroup_barrier(mem_flags::mem_none, thread_scope_threadgroup); o[1] = last[0];
simdgroup_barrier(mem_flags::mem_texture); o[2] = last[0];
atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device); os_log_default.log("%d", 1);
"""
    assert run(body, 3, np.int32).tolist() == [3, 0, 104]


# ---- entries ----

KERNEL = """
struct S { float a; uint n; };
namespace ns { template <typename T, int n> void k(
    T *out, const S &s, uint3 gid, ushort2 lid, uint index, ushort lane, uint3 size, uint2 tg, ushort simd, uint width,
    T *shared, T (&own)[n], float &other, texture2d<float> t, uint quad, uint simds, uint3 whole) {
    T values[] = {s.a, T(s.n), T(gid.x), T(gid.y), T(gid.z), T(lid.x), T(lid.y), T(index), T(lane), T(size.x), T(tg.y),
                  T(simd), T(width), shared[1], T(sizeof(own)), T(quad), T(simds), T(whole.x), T(&own[0] != &other)};
    for (int i = 0; i < 19; i++) out[i] = values[i];
} }
extern "C" void __emu_entry_0() {
    __emu::call<__emu::buffer<0>, __emu::buffer<(3)>, __emu::thread_position_in_grid, __emu::thread_position_in_threadgroup,
                __emu::thread_index_in_threadgroup, __emu::thread_index_in_simdgroup, __emu::threads_per_threadgroup,
                __emu::threadgroup_position_in_grid, __emu::simdgroup_index_in_threadgroup, __emu::threads_per_simdgroup,
                __emu::threadgroup_memory<0>, __emu::local_threadgroup, __emu::local_threadgroup, __emu::texture<0>,
                __emu::quadgroup_index_in_threadgroup, __emu::simdgroups_per_threadgroup,
                __emu::dispatch_threads_per_threadgroup>(ns::k<float, 4>);
}
"""


def test_an_entry_passes_what_the_attributes_say() -> None:
    body = """
S s = {1.5f, 6}; float shared[2] = {0, 8}; void *buffers[4] = {o, 0, 0, &s}; void *memory[1] = {shared};
__emu_test::group = {buffers, memory, {20, 6, 1}, {2, 2, 1}, {16, 4, 1}, {10, 4, 1}, {1, 1, 0}};
__emu_test::thread = {&__emu_test::group, {3, 2, 0}, 35}; __emu_entry_0();
o[19] = __emu_test::number_registered; o[20] = __emu_test::registered[0].nbytes; o[21] = __emu_test::registered[1].nbytes;
"""
    got = run(body, 22, np.float32, KERNEL)
    want = [1.5, 6, 19, 6, 0, 3, 2, 35, 3, 10, 1, 1, 32, 8, 16, 8, 2, 16, 1, 2, 16, 4]
    assert got.tolist() == want


@pytest.mark.parametrize(
    ("parameter", "tag", "sentence"),
    [
        ("float x", "thread_position_in_grid", "of type uint, uint2, uint3, ushort, ushort2 or ushort3"),
        ("uint4 x", "threads_per_grid", "of type uint, uint2, uint3, ushort, ushort2 or ushort3"),
        ("uint2 x", "thread_index_in_simdgroup", "is of type uint or ushort"),
        ("int x", "thread_index_in_threadgroup", "is of type uint or ushort"),
        ("float x", "buffer<0>", "a buffer is a pointer or a reference"),
        ("float *x", "buffer<31>", "the index of a buffer is between 0 and 30"),
    ],
)
def test_a_parameter_of_a_wrong_type_is_said(parameter: str, tag: str, sentence: str) -> None:
    found = errors("", f"void k({parameter}) {{}} void entry() {{ __emu::call<__emu::{tag}>(k); }}")
    assert any(sentence in text for text in found), found


UNDEFINED = [
    "clamp(1.0f, 3.0f, 2.0f)", "clamp(1, 3, 2)", "clamp(float2(1), float2(0, 3), 2).x", "extract_bits(1u, 30, 3)",
    "insert_bits(uchar(1), uchar(1), 8, 1)", "extract_bits(int2(1), 31, 2).y",
]  # fmt: skip


@pytest.mark.parametrize("call", UNDEFINED)
def test_undefined_arguments_are_faults_in_sanitized_kernels(call: str) -> None:
    text = f"\n{EXPORT} void run(float *o) {{\n  o[0] = {call};\n}}"
    out = np.zeros(1, np.float32)
    for flags, count in (((), 0), (("-D__EMU_SANITIZE",), 1)):
        lib = build(text, flags)
        lib.run(ctypes.c_void_p(out.ctypes.data))
        fault, found = faults(lib)
        assert min(found, 1) == count
        assert not count or fault[[0, 3, 4]].tolist() == [4, 3, 10]


def test_what_is_only_declared_is_a_fault_when_used() -> None:
    text = f"""
{EXPORT} void run(float *o) {{
    texture2d<float> t; constexpr sampler s(coord::normalized, filter::linear); o[0] = t.sample(s, float2(0)).x;
    raytracing::intersector<raytracing::triangle_data> i; raytracing::ray r(float3(0), float3(1));
    o[1] = i.intersect(r, raytracing::primitive_acceleration_structure()).distance;
}}"""
    lib = build(text)
    out = np.ones(2, np.float32)
    lib.run(ctypes.c_void_p(out.ctypes.data))
    fault, count = faults(lib)
    assert (fault[0], count, out.tolist()) == (3, 2, [0, 0])


def test_faults_of_library_calls_lie_in_the_users_text() -> None:
    text = """#include <metal_stdlib>
using namespace metal;
kernel void k(device float *p, texture2d<float> t [[texture(0)]], uint i [[thread_position_in_grid]]) {
    if (i < 8) p[i] = simd_shuffle(p[i],
                                   ushort(9));
    p[i] = length(
        t.read(uint2(0)));
    simdgroup_float8x8 m;
    simdgroup_load(m, p + 4000);
    p[i] = m.thread_elements().x;
}
"""
    with mj.sanitize(), pytest.raises(KernelFault) as caught:
        mj.metal_from_text(text).k(np.zeros(32, np.float32), threads=32, threadgroup=32)
    assert set(re.findall(r"(\w+):(\d+):\d+: error", str(caught.value))) == {
        ("program_source", line) for line in ("4", "7", "9")
    }
