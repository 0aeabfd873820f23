"""Exchanges in divergent flow: which lanes meet, in loops of different lengths and in functions called from both sides."""

from __future__ import annotations

import numpy as np

import metaljit as mj

LIBRARY = mj.metal_from_text("""
#include <metal_stdlib>
using namespace metal;

inline int near(int v) { return simd_sum(v); }
__attribute__((noinline)) int far(int v) { return simd_sum(v); }
template <typename T> T twice(T v) { return near(v) + far(v); }

kernel void sides(device int* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    int a, b;
    if (i < 10) a = near(1); else a = near(1);
    if (i < 10) b = far(1); else b = twice(1);
    o[i] = a * 1000 + b;
}

kernel void skipping(device int* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    int total = 0;
    for (int k = 0; k < 3; ++k) {
        total += simd_sum(1);
        if (i % 2) total += 100 * simd_sum(1);
    }
    o[i] = total;
}

kernel void turns(device int* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    int total = 0;
    uint k = 0;
    do total = total * 2 + near(1); while (k++ < i % 4);
    while (k < 6) { ++k; if (k == 3) continue; total += simd_sum(1); }
    o[i] = total;
}

kernel void nested(device int* o [[buffer(0)]], uint i [[thread_index_in_simdgroup]]) {
    int total = 0;
    for (uint a = 0; a <= i % 2; ++a)
        for (uint b = 0; b < 1 + (a + i) % 2; ++b)
            if (b == 0) total += far(1); else total += 100 * far(1);
    o[i] = total;
}
""")


def run(name: str) -> list[int]:
    o = np.zeros(32, np.int32)
    LIBRARY[name](o, threads=32)
    return [int(v) for v in o]


def test_the_two_sides_of_a_branch_do_not_meet() -> None:
    assert run("sides") == [10 * 1000 + 10] * 10 + [22 * 1000 + 44] * 22


def test_who_skips_an_exchange_waits_for_the_end_of_the_turn() -> None:
    assert run("skipping") == [96, 96 + 3 * 1600] * 16


def test_the_turns_of_a_loop_are_apart() -> None:
    """Lanes with i % 4 = m make m + 1 turns of the first loop; 32, 24, 16, 8 lanes are in them."""
    first = [32, 32 * 2 + 24, (32 * 2 + 24) * 2 + 16, ((32 * 2 + 24) * 2 + 16) * 2 + 8]
    second = [24 + 24 + 16 + 8, 24 + 24 + 16, 24 + 24 + 24, 24 + 24]
    assert run("turns") == [a + b for a, b in zip(first, second, strict=True)] * 8


def test_loops_in_loops() -> None:
    """Turn (a, b): even lanes (0, 0); odd ones (0, 0), (0, 1) and (1, 0)."""
    assert run("nested") == [32, 32 + 1600 + 16] * 16
