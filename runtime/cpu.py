"""The cpu device: the MSL text compiled as C++, called from the loop nests that came with it.

In: a program. Out: a pipeline whose dispatch runs the nest here, in host memory: small work on the calling
thread, the rest on the pool. The header `shim/metaljit_cpu.h` gives the text's words (`kernel`, `device`,
`metal::`…) their meaning.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from metaljit.extents import Number, evaluate, product
from metaljit.program import Program
from metaljit.runtime import pool, toolchain
from metaljit.runtime.cache import Once, key
from metaljit.runtime.device import STATUS_WORDS, Buffer, Device, Dispatch, Limits, Operand, Pipeline, Words
from metaljit.runtime.library import SHIM, load

# Rough costs of a core, to tell work that is worth waking others for.
OPERATION_NS = 0.1
BYTE_NS = 0.05
WORTH_A_THREAD_NS = 15_000.0
COLUMNS = 64  # a row is split in multiples of this many elements: whole cache lines, whole vectors
_Status = ctypes.c_uint * STATUS_WORDS


class Cpu(Device):
    """The processor; see the module."""

    name = "cpu"
    in_place = True
    limits = Limits()

    def __init__(self) -> None:
        toolchain.find()  # the way out is worth more now than in the middle of a call
        self._libraries: Once[ctypes.CDLL] = Once()

    def pipeline(self, program: Program) -> Pipeline:
        name = key(text(program), program.math)
        return CpuPipeline(program, self._libraries.get(name, lambda: self._build(program)))

    def _build(self, program: Program) -> ctypes.CDLL:
        flags = toolchain.FAST_MATH if program.math == "fast" else ()
        return load(text(program), program.name, flags, on_miss=pool.prepare)

    def empty(self, nbytes: int) -> Buffer:
        memory = np.empty(nbytes, np.uint8)
        return Buffer(None, memory)

    def describe(self) -> str:
        compiler = toolchain.find()
        return f"{pool.threads()} threads; {toolchain.version(compiler)} ({compiler.program})"


def text(program: Program) -> str:
    """All that is compiled for a program: the nest, and `mj_launch`, which takes NumPy's objects for buffers.

    The address of an array's elements is the first field of NumPy's public PyArrayObject, behind the object's
    head. Python takes 1.5 µs to find it out, and a whole small launch should take no more than a few.
    """
    nest, count = program.cpu.entry, len(program.buffers)
    return (
        f"{included(program.msl + program.cpu.text)}{program.msl}\n"
        f"#pragma GCC visibility push(default)\n{program.cpu.text}\n"
        'extern "C" void mj_launch(void* const* arrays, const void* params, unsigned* status, long begin, '
        "long end, long block) {\n"
        f"    void* buffers[{count}];\n"
        f"    for (int i = 0; i < {count}; ++i) {{ buffers[i] = *(void**)((char*)arrays[i] + {HEAD}); }}\n"
        f"    [[clang::noinline]] {nest}(buffers, params, status, begin, end, block);\n}}\n"
        "#pragma GCC visibility pop\n"
    )


@cache
def _parts() -> list[tuple[str, frozenset[str]]]:
    """The parts of the header with the names that ask for them, as `metaljit_cpu.h` lists them."""
    with open(os.path.join(SHIM, "metaljit_cpu.h"), encoding="utf-8") as file:
        found = re.findall(r'^#include "(\w+\.h)"[ /]*(.*)$', file.read(), re.MULTILINE)
    return [(part, frozenset(names.split())) for part, names in found]


def included(body: str) -> str:
    """The parts of the header that a text needs; parsing all of them takes a third of a small compilation."""
    words = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*", "", body)))
    wanted = [f'#include "{part}"\n' for part, names in _parts() if not names or names & words]
    return f'{"".join(wanted)}#define METALJIT_PARTS\n#include "metaljit_cpu.h"\n'


class CpuPipeline(Pipeline):
    """A loaded library and the entry of its loop nest."""

    def __init__(self, program: Program, library: ctypes.CDLL) -> None:
        self._program = program
        self._entry: Any = library["mj_launch" if DIRECT else program.cpu.entry]
        self._entry.restype = None
        self._entry.argtypes = (*(ctypes.c_void_p,) * 3, *(ctypes.c_long,) * 3)
        self._pack = Struct(f"{len(program.buffers)}P").pack

    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        nest = self._program.cpu
        rows, columns = int(evaluate(nest.rows, env)), int(evaluate(nest.columns, env))
        threads = min(pool.threads(), int(self._duration(rows * columns, env) / WORTH_A_THREAD_NS))
        if nest.serial or threads < 2:
            return self._alone(rows, max(columns, 1))
        block = split(rows, columns, threads)
        return self._shared(rows * -(-columns // block), block, threads)

    def _duration(self, elements: int, env: Mapping[str, Number]) -> float:
        """Nanoseconds on one thread, as a guess: what the compiler counted, or what the arrays hold."""
        cost = self._program.cost
        counted = elements * (cost.operations * OPERATION_NS + cost.nbytes * BYTE_NS)
        arrays = self._program.arrays
        held = sum(int(evaluate(product(a.shape), env)) * a.lanes * a.dtype.nbytes for a in arrays)
        return max(counted, held * BYTE_NS)

    def _alone(self, units: int, block: int) -> Dispatch:
        entry, pack = self._entry, self._pack

        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            status = _Status()
            entry(pack(*map(handle, operands)), params, status, 0, units, block)
            return status

        return dispatch

    def _shared(self, units: int, block: int, threads: int) -> Dispatch:
        pack, run = self._pack, pool.parallel_for()
        entry = ctypes.cast(self._entry, ctypes.c_void_p)
        chunk = max(units // (8 * threads), 1)

        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            status = _Status()
            run(entry, pack(*map(handle, operands)), params, status, units, block, chunk, threads)
            return status

        return dispatch


def split(rows: int, columns: int, threads: int) -> int:
    """The columns of a unit: whole rows where there are enough of them, else parts of a row."""
    parts = -(-4 * threads // max(rows, 1))
    if parts == 1:
        return max(columns, 1)
    return max(-(-columns // parts // COLUMNS) * COLUMNS, COLUMNS)


def address(array: Any) -> int:
    """Where an array's elements lie, asked in NumPy's own way."""
    return int(array.__array_interface__["data"][0])


def reads_directly(head: int) -> bool:
    """Whether the address of an array's elements really lies behind `head` bytes of its object."""
    probes = (np.zeros(3, np.float32), np.zeros((4, 5), np.uint8)[1:])
    return all(ctypes.c_void_p.from_address(id(a) + head).value == address(a) for a in probes)


HEAD = object.__basicsize__
DIRECT = reads_directly(HEAD)
handle: Callable[[Any], int] = id if DIRECT else address
