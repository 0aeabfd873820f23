"""The bandwidth of a device, as a kernel reaches it that only copies.

In: a device's name. Out: bytes a second, read and written. Measured once in a process.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from metaljit.dtypes import F32, I32
from metaljit.extents import Lit, Sym
from metaljit.program import ArrayParam, Cost, Launch, LoopNest, Place, Program, Uniform
from metaljit.runtime.array import allocate
from metaljit.runtime.device import RAN, find
from metaljit.runtime.launch import Launcher
from metaljit.source import InternalError

ELEMENTS = 1 << 24  # of 4 bytes: more than caches hold
TIMES = 5
_N = Sym("N")
_STRUCT = "struct mj_copy_params { int N; };\n"
_MSL = f"""#include <metal_stdlib>
using namespace metal;
{_STRUCT}
kernel void mj_copy(device const float* from [[buffer(0)]], device float* to [[buffer(1)]],
                    constant mj_copy_params& p [[buffer(2)]], device atomic_uint* status [[buffer(3)]],
                    uint i [[thread_position_in_grid]]) {{
    if (i == 0u) {{ atomic_store_explicit(status, {RAN}u, memory_order_relaxed); }}
    if (i < uint(p.N)) {{ to[i] = from[i]; }}
}}
"""
_NEST = f"""extern "C" void mj_copy_cpu(void* const* buffers, const void* params, unsigned* status,
                                       long begin, long end, long block) {{
    const float* __restrict from = (const float*)buffers[0];
    float* __restrict to = (float*)buffers[1];
    const long last = ((const int*)params)[0];
    if (begin == 0) {{ status[0] = {RAN}u; }}
    for (long i = begin * block; i < end * block && i < last; ++i) {{ to[i] = from[i]; }}
}}
"""


@cache
def of_copy(device: str) -> float:
    """Bytes read and written in a second: the best of some copies of 64 MiB."""
    place = find(device)
    launcher = Launcher(place, _program())
    source, target = (allocate(place, (ELEMENTS,), F32.numpy) for _ in range(2))
    source.numpy().fill(1)
    best = float("inf")
    for _ in range(TIMES + 1):  # the first compiles, and touches the memory for the first time
        begin = perf_counter()
        launcher([source], out=target)
        best = min(best, perf_counter() - begin)
    if not np.array_equal(source.numpy(), target.numpy()):
        raise InternalError(f"a copy on {device!r} is none")
    return 2 * source.nbytes / best


def _program() -> Program:
    return Program(
        name="mj_copy",
        place=Place(),
        msl=_MSL,
        params=(ArrayParam("from", F32, 1, (_N,), "in"),),
        results=(ArrayParam("to", F32, 1, (_N,), "out"),),
        buffers=("from", "to"),
        uniforms=(Uniform("N", I32, _N),),
        launches=(Launch("mj_copy", _N),),
        cpu=LoopNest(_NEST, "mj_copy_cpu", Lit(1), _N),
        cost=Cost(0, 8),
    )
