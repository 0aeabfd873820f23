"""What the emulator costs: `python -m benchmarks.emulator` prints the times of a barrier, a check, a compilation, a run.

All are the best of many runs but for checks and compilations, which are medians, each of a text of its own. A loop's cost
is that of a long run less that of a short one, divided by turns and threads, so that starting, copying and reading back
are not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

from metaljit.runtime.emulator.functions import Function, Library
from metaljit.runtime.emulator.process import Binding
from metaljit.runtime.msl import compile
from metaljit.runtime.msl.check import check
from metaljit.runtime.msl.rewrite import translate

TEXT = """
#include <metal_stdlib>
using namespace metal;

kernel void barrier_loop(device uint *o [[buffer(0)]], constant uint &turns [[buffer(1)]],
                         uint i [[thread_index_in_threadgroup]]) {
    for (uint k = 0; k < turns; ++k) threadgroup_barrier(mem_flags::mem_threadgroup);
    o[i] = i;
}

kernel void sum_loop(device uint *o [[buffer(0)]], constant uint &turns [[buffer(1)]],
                     uint i [[thread_index_in_threadgroup]]) {
    uint s = i;
    for (uint k = 0; k < turns; ++k) s = simd_sum(s);
    o[i] = s;
}

kernel void stencil(device uint *o [[buffer(0)]], constant uint &n [[buffer(1)]], device const uint *a [[buffer(2)]],
                    uint i [[thread_position_in_grid]]) {
    uint s = 0;
    for (uint k = 0; k < 5; ++k) s += a[min(i + k, n - 1)];
    o[i] = s;
}
"""
SIMPLE = """
#include <metal_stdlib>
using namespace metal;

// {}
kernel void saxpy(constant float& a [[buffer(0)]], device const float* x [[buffer(1)]], device float* y [[buffer(2)]],
                  constant uint& n [[buffer(3)]], uint i [[thread_position_in_grid]]) {{
    if (i < n) y[i] = fma(a, x[i], y[i]);
}}
"""
ROUNDS = 50
TEXTS = 15
STEPS = 100_000  # threads times turns
CELLS = 1 << 18


def seconds(function: Function, threads: int, number: int, group: int) -> float:
    o = np.zeros(threads, np.uint32)
    buffers = {
        0: Binding(o.view(np.uint8), "o", True),
        1: Binding(np.array([number], np.uint32).view(np.uint8), "n", False),
        2: Binding(np.ones(threads, np.uint32).view(np.uint8), "a", False),
    }
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        assert not function.run(buffers, threads=(threads, 1, 1), threadgroup=(group, 1, 1))
        best = min(best, perf_counter() - start)
    return best


def milliseconds(work: Callable[[str], object], prepare: Callable[[str], str] = str) -> float:
    """The median over texts that nobody has seen before; the precompiled headers are there."""
    times = []
    for k in range(TEXTS + 1):
        text = prepare(SIMPLE.format(k)) + f"// {perf_counter()}"
        start = perf_counter()
        work(text)
        times.append(perf_counter() - start)
    return median(times[1:]) * 1e3


def translated(text: str) -> str:
    return translate(compile.preprocess(text)).source(["saxpy"])


def main() -> None:
    library = Library(TEXT)
    print(f"{'check a kernel':20} {'':14} {milliseconds(check):8.1f} ms")
    print(f"{'compile a kernel':20} {'':14} {milliseconds(compile.build, translated):8.1f} ms")
    for name, what in (("barrier_loop", "threadgroup_barrier"), ("sum_loop", "simd_sum")):
        function = library.function(name)
        for threads in (32, 256, 1024):
            turns = STEPS // threads
            took = seconds(function, threads, turns, threads) - seconds(function, threads, 0, threads)
            print(f"{what:20} {threads:5} threads  {took / turns / threads * 1e9:8.1f} ns per thread")
    small = seconds(library.function("barrier_loop"), 32, 0, 32)
    print(f"{'a run of 32 threads':20} {'':14} {small * 1e6:8.0f} µs")
    plain, checked = (
        seconds(library.function("stencil", sanitize=on), CELLS, CELLS, 256) for on in (False, True)
    )
    print(f"{'sanitized stencil':20} {'':14} {checked / plain:8.1f} times the plain run")


if __name__ == "__main__":
    main()
