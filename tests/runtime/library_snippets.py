"""What the tests of the emulator's library share: C++ as the translation leaves it, compiled and called.

In: expressions and statements of Metal without address spaces. Out: arrays of results. The runtime that the library
calls is a stub inside of the text: collectives run twice, once to record what each lane gives and once to answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shim_calls import Array

from metaljit.runtime.msl import compile

USING = "using namespace metal;\n"
EXPORT = 'extern "C" __attribute__((visibility("default")))'

STUB = """
namespace __emu_test {
__emu::group group;
__emu::thread thread = {&group, {0, 0, 0}, 0};
char values[32 * 64];
__emu::exchange given = {~0u, 64, values};
long last[5];
unsigned count, yields;
struct memory { void *at; unsigned long nbytes; } registered[8];
unsigned number_registered;
template <class F> void lanes(unsigned active, F f) {
    given.active = active;
    for (int pass = 0; pass < 2; ++pass) {
        count = 0;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (active >> lane & 1) thread.index = lane, f(lane);
    }
}
}
extern "C" {
const __emu::thread *__emu_current = &__emu_test::thread;
void __emu_threadgroup_barrier(unsigned flags, unsigned line, unsigned column) { __emu_test::last[0] = flags; }
void __emu_simdgroup_barrier(unsigned flags, unsigned line, unsigned column) { __emu_test::last[0] = 100 + flags; }
const __emu::exchange *__emu_exchange(const void *value, unsigned nbytes, unsigned line, unsigned column) {
    __builtin_memcpy(__emu_test::values + 64 * (__emu_current->index % 32), value, nbytes);
    __emu_test::given.answered = 0;  // each lane works it out by itself here
    return &__emu_test::given;
}
void __emu_yield() { ++__emu_test::yields; }
void __emu_threadgroup_memory(void *memory, unsigned long nbytes, const char *name) {
    __emu_test::registered[__emu_test::number_registered++] = {memory, nbytes};
}
void __emu_fault(unsigned kind, long a, long b, const char *text, unsigned line, unsigned column) {
    long said[] = {kind, a, b, line, column};
    for (int i = 0; i < 5; ++i) __emu_test::last[i] = said[i];
    ++__emu_test::count;
}
EXPORT void faults(long *o) {
    for (int i = 0; i < 5; ++i) o[i] = __emu_test::last[i];
    o[5] = __emu_test::count;
    __emu_test::count = 0;
}
}
""".replace("EXPORT", '__attribute__((visibility("default")))')


@cache
def build(text: str, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The library of a text, with the stub. The first line of `text` is line 1."""
    return ctypes.CDLL(compile.build(f'{STUB}#line 1 "text"\n{USING.strip()} {text}', flags))


def run(body: str, n: int, dtype: Any, before: str = "", flags: tuple[str, ...] = ()) -> Array:
    """What statements that store to `o[0]` … `o[n - 1]` leave there; `dtype` is NumPy's of the elements."""
    out: Array = np.zeros(n, dtype)
    name = np.ctypeslib.as_ctypes_type(out.dtype) if out.dtype != np.float16 else None
    pointer = "half" if name is None else _CPP[out.dtype.name]
    lib = build(f"{before}\n{EXPORT} void run({pointer} *o) {{ {body} }}", flags)
    lib.run(ctypes.c_void_p(out.ctypes.data))
    return out


_CPP = {
    "float32": "float", "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong", "int16": "short",
    "uint16": "ushort", "int8": "char", "uint8": "uchar", "bool": "bool",
}  # fmt: skip


def lanes(expression: str, operand: str, result: str, values: Array, active: int = 0xFFFFFFFF) -> Array:
    """Lane i's value of an expression of `x`, lane i's of `values`; inactive lanes give 0. C++ types by name."""
    text = f"""
{EXPORT} void run(const {operand} *in, {result} *out, uint active) {{
    __emu_test::lanes(active, [=](uint lane) {{ {operand} x = in[lane]; out[lane] = ({result})({expression}); }});
}}"""
    lib = build(text)
    by_name = {v: k for k, v in _CPP.items()} | {"half": "float16"}
    out: Array = np.zeros(32, by_name[result])
    values = np.ascontiguousarray(values)
    lib.run(ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(out.ctypes.data), ctypes.c_uint(active))
    return out


def faults(lib: ctypes.CDLL) -> tuple[NDArray[np.int64], int]:
    """The last fault, (kind, a, b, line, column), and how many there were since the last question."""
    out = np.zeros(6, np.int64)
    lib.faults(ctypes.c_void_p(out.ctypes.data))
    return out[:5], int(out[5])


def errors(body: str, before: str = "") -> list[str]:
    """What clang says against statements inside of a function, or against declarations `before` it."""
    text = f'#line 1 "text"\n{USING.strip()} {before}\nvoid f() {{ {body} }}\n'
    return [m.text for m in compile.check(text) if m.severity == "error"]


def refused(snippets: Sequence[str]) -> list[str]:
    """Those of the snippets that compile although they must not."""
    return [s for s in snippets if not errors(s)]
