"""Faults planted in Metal kernels, each to be found at its line and nothing else, and right kernels that look like them.

A line that ends in `// !kind` has the fault; where two lines race, each may be the one that is told. All kernels have the
parameters of `HEAD`, are compiled as one text, and run in two threadgroups of 32 threads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from metaljit.runtime.emulator.faults import Crash, Fault
from metaljit.runtime.emulator.functions import Library
from metaljit.runtime.emulator.process import Binding, Run, run
from metaljit.runtime.msl import compile as clang

HEAD = (
    "kernel void {}(device float* o [[buffer(0)]], device const uint* d [[buffer(1)]], constant float* c [[buffer(2)]], "
    "uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]], "
    "uint g [[threadgroup_position_in_grid]], uint n [[threads_per_grid]]) {{"
)
START = "#include <metal_stdlib>\nusing namespace metal;\n#define SYNC threadgroup_barrier(mem_flags::mem_threadgroup)\n"

# What stands before `---` is outside of the kernel.
PLANTED = {
    "a private array through a pointer, read": """
        float a[4] = {1, 2, 3, 4};
        thread float* p = a + d[l] % 2;
        o[i] = p[d[l] % 4]; // !out-of-bounds""",
    "a private array through a pointer, written": """
        float a[4] = {1, 2, 3, 4};
        thread float* p = a;
        p[d[l] % 8] = 5; // !out-of-bounds
        o[i] = a[l % 4];""",
    "a private array in a helper": """
        float last(thread const float* p, uint n) {
            return p[n]; // !out-of-bounds
        }
        ---
        float a[4] = {1, 2, 3, float(l)};
        o[i] = last(a, 4 + d[0]);""",
    "the end of a loop over a private array": """
        float a[4] = {1, 2, 3, 4};
        float s = 0;
        for (thread float* p = a; p <= a + 4; ++p)
            s += *p * d[l]; // !out-of-bounds
        o[i] = s;""",
    "the last array of a struct": """
        struct S { int n; float v[4]; };
        ---
        S s;
        for (int k = 0; k < 4; ++k) s.v[k] = k + d[l];
        o[i] = s.v[l % 5]; // !out-of-bounds""",
    "from one array of a struct into the next": """
        struct S { float v[4]; float w[4]; };
        ---
        device S* s = (device S*)o;
        s[i % 8].v[d[l] % 5] = 1; // !out-of-bounds race""",
    "from one row into the next": """
        threadgroup float t[2][32];
        t[0][l] = t[1][l] = 1;
        SYNC;
        o[i] = t[0][l + 1]; // !out-of-bounds""",
    "from one threadgroup array into the next": """
        threadgroup float s[32];
        threadgroup float t[32];
        s[l] = t[l] = 1;
        SYNC;
        threadgroup float *p = s, *q = t;
        o[i] = q[l] + p[l + 1]; // !out-of-bounds""",
    "far behind a threadgroup array": """
        threadgroup float s[32];
        s[l] = 1;
        SYNC;
        threadgroup float* p = s;
        o[i] = p[l + 10000]; // !out-of-bounds""",
    "an array of vectors": """
        float4 a[2] = {float4(1), float4(2)};
        o[i] = a[l % 3].y; // !out-of-bounds""",
    "a table through a pointer": """
        constant float table[3] = {1, 2, 3};
        float pick(constant float* p, uint k) {
            return p[k]; // !out-of-bounds
        }
        ---
        o[i] = pick(table, l % 4);""",
    "a table's struct": """
        struct S { float v[2]; float w[2]; };
        constant S table = {{1, 2}, {3, 4}};
        ---
        o[i] = table.w[l % 3]; // !out-of-bounds""",
    "a constant buffer": """
        o[i] = c[l]; // !out-of-bounds""",
    "the minimum of an atomic": """
        atomic_fetch_min_explicit((device atomic_uint*)o + 64, i, memory_order_relaxed); // !out-of-bounds""",
    "behind its scope": """
        thread float* p;
        {
            float a[4] = {1, 2, 3, float(d[l])};
            p = a;
            o[i] = p[d[l] % 4];
        }
        o[i] = p[d[l] % 4]; // !out-of-bounds""",
    "a quotient's component": """
        o[i] = (int2(7, 8) / int2(d[l], 1)).x; // !division-by-zero""",
    "a remainder's component, assigned": """
        uchar4 v = uchar4(9);
        v %= uchar4(1, 2, 3, d[l]); // !division-by-zero
        o[i] = v.w;""",
    "a vector by a scalar": """
        o[i] = (long3(5) / long(d[l])).z; // !division-by-zero""",
    "a packed vector": """
        packed_int3 v = int3(3);
        o[i] = (v / int3(d[l])).x; // !division-by-zero""",
    "the smallest component by -1": """
        o[i] = (int2(-2147483647 - int(d[1])) / int2(-1, int(i) + 1)).x; // !division-overflow""",
    "a component's shift by its width": """
        o[i] = (ushort2(1) << ushort2(d[l], 1)).x; // !shift""",
    "a component's shift by less than nothing": """
        int2 v = int2(100);
        v >>= int2(1, int(d[l]) - 1); // !shift
        o[i] = v.y;""",
    "a vector loaded": """
        float4 v = *(device const float4*)((device const float*)d + l); // !misaligned
        o[i] = v.x + v.w;""",
    "a vector stored": """
        device float2* p = (device float2*)(o + 1);
        if (i < 31)
            p[i] = float2(1); // !misaligned""",
    "a packed vector between elements": """
        packed_float3 v = *(device const packed_float3*)((device const uchar*)d + 2 * l); // !misaligned
        o[i] = v.y;""",
    "a matrix": """
        float2x2 m = *(device const float2x2*)((device const float*)d + 1); // !misaligned
        o[i] = m[1][1];""",
    "an atomic": """
        atomic_fetch_add_explicit((device atomic_uint*)((device uchar*)o + 2), 1u, memory_order_relaxed); // !misaligned""",
    "one of two reads": """
        o[i] = d[l] % 2 == 0
            ? ((device const float*)d)[i + 63] // !out-of-bounds
            : ((device const float*)d)[i];""",
    "one of two writes": """
        if (d[l] % 2)
            o[i + 64] = 1; // !out-of-bounds
        else
            o[i] = 2;""",
    "one of two atomics": """
        device atomic_uint* u = (device atomic_uint*)o;
        if (d[l] % 2)
            atomic_fetch_add_explicit(u + i, 1u, memory_order_relaxed);
        else
            atomic_fetch_add_explicit(u + i + 63, 1u, memory_order_relaxed); // !out-of-bounds""",
    "an increment of nothing": """
        threadgroup float s[32];
        s[l] += 1; // !uninitialised-read
        o[i] = s[l];""",
    "a reset beside atomics": """
        threadgroup uint s[1];
        if (l == 0)
            s[0] = 0; // !race
        atomic_fetch_add_explicit((threadgroup atomic_uint*)s, 1u, memory_order_relaxed); // !race
        SYNC;
        o[i] = s[0];""",
    "a read after atomics of others": """
        device uint* u = (device uint*)o;
        atomic_fetch_add_explicit((device atomic_uint*)u, 1u, memory_order_relaxed); // !race
        if (i == 63)
            u[1 + l] = u[0]; // !race""",
    "a maximum beside a write": """
        atomic_fetch_max_explicit((device atomic_uint*)o, i, memory_order_relaxed); // !race
        if (i == 40)
            o[0] = 1; // !race""",
    "no barrier, told once": """
        threadgroup float s[32];
        s[l] = l; // !race
        o[i] = s[31 - l]; // !race""",
    "one barrier through two calls": """
        void wait() {
            SYNC; // !barrier-not-reached
        }
        ---
        if (l < 16) wait();
        else wait();
        o[i] = 1;""",
}

RIGHT = {
    "private arrays through pointers": """
        void fill(thread float* p, uint n) { for (uint k = 0; k < n; ++k) p[k] = k; }
        float sum(thread const float* p, uint n) {
            float s = 0;
            for (thread const float* q = p; q != p + n; ++q) s += *q;
            return s;
        }
        ---
        float a[8];
        fill(a, 8);
        o[i] = sum(a, 8) + sum(a + 4, 4) + a[d[l] % 8];""",
    "scopes that share memory": """
        float s = 0;
        for (int k = 0; k < 3; ++k) {
            float a[4];
            for (int j = 0; j < 4; ++j) a[j] = j + k;
            thread float* p = a;
            s += p[d[l] % 4];
        }
        { float b[6] = {1, 2, 3, 4, 5, 6}; thread float* p = b; s += p[d[l] % 6]; }
        o[i] = s;""",
    "private memory across barriers": """
        void turn(thread float* p, threadgroup float* s, uint l) { s[l] = p[l % 4]; SYNC; p[l % 4] = s[31 - l]; SYNC; }
        ---
        threadgroup float s[32];
        float p[4] = {1, 2, 3, 4};
        for (int k = 0; k < 3; ++k) turn(p, s, l);
        o[i] = p[d[l] % 4];""",
    "a matrix of arrays, flat": """
        float a[3][4];
        thread float* p = &a[0][0];
        for (uint k = 0; k < 12; ++k) p[k] = k;
        o[i] = a[2][3] + a[l % 3][d[l] % 4];""",
    "structs by value": """
        struct M { float v[9]; };
        M product(M a, M b) {
            M r;
            for (int k = 0; k < 9; ++k) r.v[k] = a.v[k] * b.v[8 - k];
            return r;
        }
        ---
        M a;
        for (int k = 0; k < 9; ++k) a.v[k] = k + d[l];
        o[i] = product(product(a, a), a).v[l % 9];""",
    "tables": """
        constant float w[3] = {1, 2, 1};
        constant float2 q[2] = {float2(1, 2), float2(3, 4)};
        constant int m[2][2] = {{1, 2}, {3, 4}};
        struct S { float v[2]; char n; };
        constant S s = {{1, 2}, 3};
        float pick(constant float* p, int k) { return p[k]; }
        ---
        constant float* p = w + 1;
        o[i] = w[l % 3] + q[l % 2].y + m[l % 2][l / 2 % 2] + s.v[l % 2] + s.n + pick(w, l % 3) + p[-1] + p[1];""",
    "a switch that becomes a table": """
        switch (d[l] % 8) {
        case 0: o[i] = 5; break;
        case 1: o[i] = 17; break;
        case 2: o[i] = 3; break;
        case 3: o[i] = 91; break;
        case 4: o[i] = 2; break;
        case 5: o[i] = 44; break;
        default: o[i] = 0;
        }""",
    "vectors of three": """
        threadgroup float3 s[32];
        s[l] = float3(d[l]);
        SYNC;
        float3 v = s[31 - l];
        if (i < 16) ((device float3*)o)[i] = v;""",
    "packed vectors anywhere": """
        if (i < 20) ((device packed_float3*)(o + 1))[i] = packed_float3(float3(1));
        packed_half4 h = *(device const packed_half4*)((device const half*)d + l + 1);
        threadgroup half s[32];
        s[l] = h[0];""",
    "vectors at their alignment": """
        if (i < 16) ((device float4*)o)[i] = ((device const float4*)d)[15 - i] + 1;""",
    "vectors by reference and by value": """
        struct S { float4 m; void set(float4 v) { m = v; } S twice() const { S r = *this; r.m *= 2; return r; } };
        void add(thread float4& a, float4 b) { a = a + b; }
        ---
        S s;
        s.set(float4(d[l]));
        float4 v = s.twice().m;
        add(v, ((device const float4*)d)[l / 2]);
        o[i] = v.x;""",
    "a union": """
        union U { float4 v; float f[4]; uint u[4]; };
        ---
        U u;
        u.v = float4(1, 2, 3, d[l]);
        U w = u;
        o[i] = w.f[l % 4] + w.u[0];""",
    "arithmetic at its limits": """
        int2 v = int2(100, -100);
        v <<= int2(31, 0);
        v = (v >> 31) / int2(-1, 3) % int2(7, -7);
        short2 s = short2(-32767 - 1) / short2(-1);
        o[i] = v.x + s.x + (1u << (d[l] % 32)) + (-1 << 3) + (uchar(255) << 9);""",
    "atomics of every kind": """
        device atomic_int* a = (device atomic_int*)o;
        atomic_fetch_max_explicit(a, int(i), memory_order_relaxed);
        atomic_fetch_min_explicit(a + 1, int(i), memory_order_relaxed);
        atomic_fetch_or_explicit(a, 1, memory_order_relaxed);
        atomic_store_explicit(a + 1, 5, memory_order_relaxed);
        if (atomic_load_explicit(a, memory_order_relaxed) > 70) atomic_fetch_sub_explicit(a + 2, 1, memory_order_relaxed);""",
    "a reset, a barrier and atomics": """
        threadgroup uint s[1];
        if (l == 0) s[0] = 0;
        SYNC;
        atomic_fetch_add_explicit((threadgroup atomic_uint*)s, 1u, memory_order_relaxed);
        SYNC;
        o[i] = s[0];
        SYNC;
        if (l == 0) s[0] = 0;
        SYNC;
        atomic_fetch_max_explicit((threadgroup atomic_uint*)s, l, memory_order_relaxed);""",
    "an own element, plainly and atomically": """
        device uint* u = (device uint*)o;
        u[i] = 0;
        atomic_fetch_add_explicit((device atomic_uint*)(u + i), 1u, memory_order_relaxed);
        u[i] += 1;""",
    "a reset between simdgroup barriers": """
        threadgroup uint s[1];
        if (l == 0) s[0] = 0;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_add_explicit((threadgroup atomic_uint*)s, 1u, memory_order_relaxed);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        o[i] = s[0];""",
    "a barrier in a helper, twice": """
        void wait() { SYNC; }
        ---
        threadgroup float s[32];
        for (int k = 0; k < 5; ++k) {
            s[l] = k;
            wait();
            o[i] = s[31 - l];
            wait();
        }""",
    "barriers of a group": """
        threadgroup float s[32];
        s[l] = 1;
        if (g == 0) { SYNC; o[i] = s[31 - l]; }
        else { SYNC; o[i] = s[l ^ 1]; }""",
}


def parts(cases: Mapping[str, str]) -> list[str]:
    made = []
    for k, text in enumerate(cases.values()):
        before, _, body = text.rpartition("---")
        made.append(f"namespace n{k} {{{before}}}\n{HEAD.format(f'k{k}')} using namespace n{k};{body}\n}}\n")
    return made


@cache
def built(planted: bool) -> tuple[str, list[str]]:
    made = parts(PLANTED if planted else RIGHT)
    text = START + "".join(made)
    names = [f"k{k}" for k in range(len(made))]
    source = Library(text, strict=False).translation.source(names)
    return clang.build(source, clang.SANITIZED), made


def found(planted: bool, k: int, seed: int | None) -> tuple[Fault, ...]:
    path, _ = built(planted)
    arrays = (np.zeros(64, np.float32), np.arange(64, dtype=np.uint32), np.ones(16, np.float32))
    buffers = {
        slot: Binding(array.view(np.uint8), "odc"[slot], writable=not slot)
        for slot, array in enumerate(arrays)
    }
    what = Run(path, f"__emu_entry_{k}", f"k{k}", buffers, {}, (2, 1, 1), None, (32, 1, 1), True, False, seed)
    try:
        return run(what)
    except Crash as e:
        return e.faults


def lines_of(fault: Fault) -> set[int]:
    places = [fault.location, *([fault.second[0]] if fault.kind == "race" and fault.second else [])]
    return {int(place.split(":")[1]) for place in places if place}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_at_its_line_and_nothing_else(name: str) -> None:
    k = list(PLANTED).index(name)
    _, made = built(True)
    first = (START + "".join(made[:k])).count("\n")
    marked = {
        (kind, first + at)
        for at, line in enumerate(made[k].splitlines(), 1)
        if (match := re.search(r"// !(.*)", line))
        for kind in match[1].split()
    }
    faults = found(True, k, None)
    told = {(f.kind, line) for f in faults for line in lines_of(f)}
    assert told == marked, faults
    assert all(f.thread is not None or f.kind == "barrier-not-reached" for f in faults)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_silent(name: str, seed: int | None) -> None:
    assert found(False, list(RIGHT).index(name), seed) == ()


def test_what_is_told_has_the_values() -> None:
    told = {name: found(True, k, None)[0].message for k, name in enumerate(PLANTED)}
    assert "index 4 is outside of the array of 4 elements" in told["the last array of a struct"]
    assert "read of 4 bytes at byte 16 of `a` (16 bytes)" in told["a private array in a helper"]
    assert "read of 4 bytes at byte 12 of `n10::table` (12 bytes)" in told["a table through a pointer"]
    assert "whose scope has ended" in told["behind its scope"]
    assert "integer division of 7 by zero" in told["a quotient's component"]
    assert "shift by 16 of a component of 16 bits" in told["a component's shift by its width"]
    assert "byte 4 of `d`: the alignment of the type is 16" in told["a vector loaded"]
    assert "16 of 32 threads wait at line" in told["one barrier through two calls"]
    assert "16 came to it by another call" in told["one barrier through two calls"]
