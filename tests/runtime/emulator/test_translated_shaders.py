"""Texts in the style of the translators that make Metal of other shading languages: checked, run, and sanitized."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import metaljit as mj
from metaljit.runtime.msl.check import check
from metaljit.source import KernelFault

HEAD = "#include <metal_stdlib>\n"

# WGSL's arrays of unknown length are arrays of one element; a buffer beside them holds the sizes.
SIZED = (
    HEAD
    + """
#include <simd/simd.h>
using metal::uint;
struct Sizes { uint size0; uint size1; };
typedef int values[1];
typedef uint counts[1];
struct four { int inner[4]; };
struct zero { template <typename T> operator T() && { return T {}; } };
int remainder_of(int a, int b) {
    return a - (a / metal::select(b, 1, (a == (-2147483647 - 1) & b == -1) | (b == 0))) * b;
}
int at(device values const& a, uint i, constant Sizes& sizes) {
    return metal::uint(i) < 1 + (sizes.size0 - 0 - 4) / 4 ? a[i] : zero();
}
[[max_total_threads_per_threadgroup(32)]] kernel void main_(
  metal::uint3 g [[thread_position_in_grid]]
, device values const& a [[buffer(0)]]
, device counts& o [[buffer(1)]]
, constant Sizes& sizes [[buffer(2)]]
) {
    four v = {};
    v = four {{at(a, g.x, sizes), remainder_of(a[g.x], 5), 0, at(a, 99u, sizes)}};
    metal::uint2 left = metal::uint2(4294967295u);
    bool is_first = true;
    while (true) {
        if (metal::all(left == metal::uint2(0u))) { break; }
        left -= metal::uint2(left.y == 0u, 1u);
        if (!is_first) {
            v.inner[2] = as_type<int>(as_type<uint>(v.inner[2]) + as_type<uint>(1));
        }
        is_first = false;
        if (v.inner[2] == 3) { break; }
    }
    metal::int4 shifted = metal::int4(v.inner[0]) >> metal::uint4(1u);
    o[metal::min(unsigned(g.x), (sizes.size1 - 0 - 4) / 4)] = uint(shifted.w + v.inner[1] + v.inner[2] + v.inner[3]);
}
"""
)

# SPIR-V's arrays are structs with a subscript for each space; atomics are casts, specialisation constants functions'.
SPACED = (
    HEAD
    + """
using namespace metal;
template <typename T, size_t N> struct Elements {
    T at[N ? N : 1];
    thread T& operator[](size_t i) thread { return at[i]; }
    constexpr const thread T& operator[](size_t i) const thread { return at[i]; }
    device T& operator[](size_t i) device { return at[i]; }
    constexpr const device T& operator[](size_t i) const device { return at[i]; }
    constexpr const constant T& operator[](size_t i) const constant { return at[i]; }
    threadgroup T& operator[](size_t i) threadgroup { return at[i]; }
};
constant int by_tmp [[function_constant(0)]];
constant int by = is_function_constant_defined(by_tmp) ? by_tmp : 3;
constant uint3 size [[maybe_unused]] = uint3(32u, 1u, 1u);
struct In { int values[1]; };
struct Out { uint n; uint rest[1]; };
kernel void main0(device In& in [[buffer(0)]], coherent device Out& out [[buffer(1)]],
                  uint3 id [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
    threadgroup Elements<int, 32> shared;
    shared[l] = in.values[id.x] * by;
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    Elements<int, 2> two = Elements<int, 2>({ shared[31u - l], int(size.x) });
    uint before = atomic_fetch_add_explicit((coherent device atomic_uint*)&out.n, uint(two[0]), memory_order_relaxed);
    out.rest[id.x] = uint(two[0] + two[1]);
}
"""
)

# Slang's globals are a context that is passed on; an element of a threadgroup array goes to a function by its address.
CONTEXT = (
    HEAD
    + """
#include <metal_math>
#include <metal_texture>
using namespace metal;
struct Node { float v; int next; };
struct Context { packed_float2 device* a; float device* o; array<Node, int(32)> threadgroup* nodes; };
void bump(Node threadgroup* n, float by) {
    n->v = n->v + by;
    n->next = n->next + int(1);
}
float sum(uint i, Context thread* context) {
    float2 v = float2(*(context->a + i));
    return v.x + v.y + (*context->nodes)[31U - i].v;
}
[[kernel]] void cs(uint3 t [[thread_position_in_threadgroup]], packed_float2 device* a [[buffer(0)]], float device* o [[buffer(1)]]) {
    thread Context context;
    (&context)->a = a;
    (&context)->o = o;
    threadgroup array<Node, int(32)> nodes;
    (&context)->nodes = &nodes;
    uint i = t[int(0)];
    Node threadgroup* mine = &nodes[i];
    mine->v = float(i);
    (&nodes[i])->next = int(i);
    bump(&nodes[i], 2.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float s = sum(i, &context);
    *(o + i) = s + float((&nodes[i])->next);
}
"""
)

# Module variables in a struct of pointers with designated initialisers; threadgroup memory is an argument.
POINTERS = (
    HEAD
    + """
using namespace metal;
template <typename T, size_t N> struct Items {
    const constant T& operator[](size_t i) const constant { return items[i]; }
    device T& operator[](size_t i) device { return items[i]; }
    const device T& operator[](size_t i) const device { return items[i]; }
    thread T& operator[](size_t i) thread { return items[i]; }
    const thread T& operator[](size_t i) const thread { return items[i]; }
    threadgroup T& operator[](size_t i) threadgroup { return items[i]; }
    const threadgroup T& operator[](size_t i) const threadgroup { return items[i]; }
    T items[N];
};
struct Padded { packed_float3 value; Items<int8_t, 4> pad; };
struct Uniforms { packed_float3 v; float w; Items<Padded, 3> m; };
struct Group { Items<float, 32> sums; };
struct Module {
    const constant Uniforms* u;
    device Items<float2, 1>* o;
    thread uint* calls;
    threadgroup Items<float, 32>* sums;
    threadgroup atomic_uint* n;
    const constant Items<uint4, 1>* sizes;
};
struct Exchanged { uint old; bool done; };
Exchanged exchange(threadgroup atomic_uint* const at, uint expected, uint value) {
    uint old = expected;
    bool const done = atomic_compare_exchange_weak_explicit(at, (&old), value, memory_order_relaxed, memory_order_relaxed);
    return Exchanged{.old=old, .done=done};
}
void body(uint i, Module module) {
    if (i < 1u) { atomic_store_explicit(module.n, 0u, memory_order_relaxed); }
    (*module.calls) = ((*module.calls) + 1u);
    Items<Padded, 3> const m = (*module.u).m;
    float3x3 const matrix = float3x3(float3(m[0u].value), float3(m[1u].value), float3(m[2u].value));
    (*module.sums)[min(i, 31u)] = (matrix * float3((*module.u).v)).z;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(module.n, 2u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    Exchanged const x = exchange(module.n, 64u, 64u);
    device float2* const p = (&(*module.o)[min(i, (((*module.sizes)[0u].x / 8u) - 1u))]);
    (*p) = float2((*module.sums)[31u - i], float(x.old + (*module.calls)));
}
kernel void entry(uint i [[thread_index_in_threadgroup]], const constant Uniforms* u [[buffer(0)]],
                  device Items<float2, 1>* o [[buffer(1)]], threadgroup Group* group [[threadgroup(0)]],
                  const constant Items<uint4, 1>* sizes [[buffer(30)]]) {
    thread uint calls = 0u;
    threadgroup atomic_uint n;
    Module const module = Module{.u=u, .o=o, .calls=(&calls), .sums=(&(*group).sums), .n=(&n), .sizes=sizes};
    body(i, module);
}
"""
)


def run(
    text: str, name: str, *args: NDArray[Any], is_sanitized: bool, by: int | None = None, **how: Any
) -> None:
    kernel = mj.metal_from_text(text, version=(3, 2))[name]
    if by is not None:
        kernel = kernel.with_constants(by_tmp=by)
    with mj.sanitize() if is_sanitized else nullcontext():
        kernel(*args, threads=32, **how)


@pytest.mark.parametrize(
    "text", [SIZED, SPACED, CONTEXT, POINTERS], ids=["sized", "spaced", "context", "pointers"]
)
def test_address_spaces_are_read_to_the_end(text: str) -> None:
    report = check(text, version=(3, 2))
    assert (report.findings, report.judged, report.reason) == ((), True, "")


@pytest.mark.parametrize("is_sanitized", [False, True])
def test_arrays_of_unknown_length(is_sanitized: bool) -> None:
    a, o = np.arange(32, dtype=np.int32) * 3, np.zeros(32, np.uint32)
    run(SIZED, "main_", a, o, np.array([a.nbytes, o.nbytes], np.uint32), is_sanitized=is_sanitized)
    np.testing.assert_array_equal(o, a // 2 + a % 5 + 3)


def test_arrays_of_unknown_length_end_with_their_buffer() -> None:
    a, o = np.arange(32, dtype=np.int32), np.zeros(32, np.uint32)
    with pytest.raises(KernelFault, match="out-of-bounds read of 4 bytes at byte 396"):
        run(SIZED, "main_", a, o, np.array([10000, o.nbytes], np.uint32), is_sanitized=True)


@pytest.mark.parametrize("by", [None, 5])
@pytest.mark.parametrize("is_sanitized", [False, True])
def test_subscripts_for_each_space(is_sanitized: bool, by: int | None) -> None:
    a, o = np.arange(32, dtype=np.int32), np.zeros(33, np.uint32)
    run(SPACED, "main0", a, o, is_sanitized=is_sanitized, by=by)
    a *= by or 3
    np.testing.assert_array_equal(o, [a.sum(), *(a[::-1] + 32)])


@pytest.mark.parametrize("is_sanitized", [False, True])
def test_a_context_with_threadgroup_memory(is_sanitized: bool) -> None:
    a, o = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    run(CONTEXT, "cs", a, o, is_sanitized=is_sanitized)
    i = np.arange(32)
    np.testing.assert_array_equal(o, a.reshape(32, 2).sum(1) + (31 - i + 2) + (i + 1))


@pytest.mark.parametrize("is_sanitized", [False, True])
def test_a_struct_of_pointers(is_sanitized: bool) -> None:
    u, o = np.arange(16, dtype=np.float32), np.zeros((32, 2), np.float32)
    sizes = np.array([o.nbytes, 0, 0, 0], np.uint32)
    run(POINTERS, "entry", u, o, sizes, is_sanitized=is_sanitized, memory={0: 128})
    np.testing.assert_array_equal(o, [[u[4:].reshape(3, 4)[:, 2] @ u[:3], 65]] * 32)
