"""Small kernels written against `abi.h` itself, without the library of Metal's functions, and runs of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaljit.runtime import toolchain
from metaljit.runtime.emulator.faults import Crash, Fault
from metaljit.runtime.emulator.process import Binding, Run, run
from metaljit.runtime.library import SHIM
from metaljit.runtime.msl.compile import FLAGS, SANITIZED

FILE = "k.metal"
# In scope: the thread `t`, its index `l` in the group, its group `g`, its position `i` (x) in the grid, the simdgroup's
# lane; buffers 0 and 1 as `a` and `o`; `BARRIER`, and an array `x` of threadgroup memory after `SHARED`.
_TEXT = """
#include "abi.h"
#define BARRIER __emu_threadgroup_barrier(2, __builtin_LINE(), __builtin_COLUMN())
#define DEVICE_BARRIER __emu_threadgroup_barrier(1, __builtin_LINE(), __builtin_COLUMN())
#define NO_MEMORY_BARRIER __emu_threadgroup_barrier(0, __builtin_LINE(), __builtin_COLUMN())
#define SIMD_BARRIER __emu_simdgroup_barrier(2, __builtin_LINE(), __builtin_COLUMN())
#define SHARED static int x[64]; __emu_threadgroup_memory(x, sizeof x, "x")
#define ALL(value) all(value, __builtin_LINE(), __builtin_COLUMN())
using namespace __emu;
struct sum_and_mask { int sum; unsigned mask; };
__attribute__((nodebug)) static inline sum_and_mask all(int value, unsigned line, unsigned column) {
    const exchange* e = __emu_exchange(&value, 4, line, column);
    sum_and_mask got = {0, e->active};
    for (int k = 0; k < 32; ++k) if (e->active >> k & 1) got.sum += *(const int*)(e->values + k * e->stride);
    return got;
}
#line 1 "before.metal"
%s
#line 1 "k.metal"
extern "C" __attribute__((visibility("default"))) void entry() {
    const thread& t = *__emu_current;
    int *a = (int*)t.in->buffers[0], *o = (int*)t.in->buffers[1];
    unsigned l = t.index, g = t.in->threadgroup_position_in_grid.x, lane = l %% 32;
    unsigned i = g * t.in->dispatch_threads_per_threadgroup.x + t.position_in_threadgroup.x;
    (void)a; (void)o; (void)lane; (void)i;
#line 1 "k.metal"
%s
}
"""


@cache
def _folder() -> str:
    return mkdtemp(prefix="metaljit-test-")


@cache
def build(body: str, sanitize: bool = False, before: str = "") -> str:
    """The path of the library of a kernel with that body; its first line is line 1 of `k.metal`."""
    found = toolchain.find()
    name = os.path.join(_folder(), f"{len(os.listdir(_folder()))}")
    flags = ("-x", "c++", *FLAGS, "-I", os.path.join(SHIM, "emulator"), *(SANITIZED if sanitize else ()))
    done = found.clang((*flags, "-c", "-", "-o", f"{name}.o"), _TEXT % (before, body))
    assert done.returncode == 0, done.stderr.decode()
    assert found.link(f"{name}.o", f"{name}.so").returncode == 0
    return f"{name}.so"


def bound(memory: NDArray[Any], name: str = "", writable: bool = True, undefined: bool = False) -> Binding:
    return Binding(memory.reshape(-1).view(np.uint8), name, writable, undefined)


def launch(
    library: str,
    buffers: Sequence[NDArray[Any] | Binding],
    *,
    threads: int | tuple[int, int, int] | None = None,
    groups: tuple[int, int, int] | None = None,
    threadgroup: int | tuple[int, int, int] = 32,
    memory: Mapping[int, int] | None = None,
    sanitize: bool = False,
    lenient: bool = False,
    seed: int | None = None,
) -> tuple[Fault, ...]:
    names = ("a", "o")
    bindings = {
        i: b if isinstance(b, Binding) else bound(b, names[i] if i < 2 else "") for i, b in enumerate(buffers)
    }
    size = (threadgroup, 1, 1) if isinstance(threadgroup, int) else threadgroup
    grid = (threads, 1, 1) if isinstance(threads, int) else threads
    return run(
        Run(library, "entry", "k", bindings, memory or {}, groups, grid, size, sanitize, lenient, seed)
    )


def crash(library: str, buffers: Sequence[NDArray[Any] | Binding], **how: Any) -> Fault:
    """The fault that ended the run."""
    try:
        faults = launch(library, buffers, **how)
    except Crash as e:
        return e.fault
    raise AssertionError(f"the run ended with {faults}")


def ints(count: int = 64) -> NDArray[np.int32]:
    return np.arange(count, dtype=np.int32)


def zeros(count: int = 64) -> NDArray[np.int32]:
    return np.zeros(count, np.int32)
