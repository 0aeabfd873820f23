"""The cpu device: the MSL text compiled as C++, called from the loop nests that came with it.

In: a program. Out: a pipeline whose dispatch runs the nest here, in host memory: small work on the calling
thread, the rest on the pool. The header `shim/metaljit_cpu.h` gives the text's words (`kernel`, `device`,
`metal::`…) their meaning.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from struct import Struct, pack, unpack

import numpy as np

from metaljit.extents import Number, evaluate
from metaljit.program import Program
from metaljit.runtime import library, pool, toolchain
from metaljit.runtime.cache import Once, key
from metaljit.runtime.device import (
    STATUS_WORDS,
    Buffer,
    Checked,
    Device,
    Dispatch,
    Limits,
    Operand,
    Pipeline,
    Words,
)
from metaljit.runtime.library import SHIM, load
from metaljit.source import InternalError

# Rough costs of a core, to tell work that is worth waking others for.
OPERATION_NS = 0.1
BYTE_NS = 0.05
WORTH_A_THREAD_NS = 15_000.0
COLUMNS = 64  # a row is split in multiples of this many elements: whole cache lines, whole vectors
CHUNKS = 16  # of a job for each thread, so that all end at about the same time
HEAD = object.__basicsize__
PLAIN, WRITEABLE = 0x101, 0x400  # NPY_ARRAY_C_CONTIGUOUS and _ALIGNED; NPY_ARRAY_WRITEABLE
_Status = ctypes.c_uint * STATUS_WORDS


class Cpu(Device):
    """The processor; see the module."""

    name = "cpu"
    in_place = True
    limits = Limits()

    def __init__(self) -> None:
        toolchain.find()  # the way out is worth more now than in the middle of a call
        if not _as_expected():
            raise InternalError("NumPy's arrays lie in memory in a way that the cpu device does not know")
        self._libraries: Once[ctypes.CDLL] = Once()

    def prepare(self) -> None:
        pool.prepare()

    def pipeline(self, program: Program) -> Pipeline:
        source = text(program)
        flags = toolchain.FAST_MATH if program.math == "fast" else ()
        built = self._libraries.get(key(source, *flags), lambda: load(source, program.name, flags))
        return CpuPipeline(program, built)

    def binaries(self, program: Program) -> dict[str, bytes]:
        flags = toolchain.FAST_MATH if program.math == "fast" else ()
        return dict([library.binary(text(program), program.name, flags), pool.binary()])

    def provide(self, binaries: Mapping[str, bytes]) -> None:
        library.provide(binaries)

    def empty(self, nbytes: int) -> Buffer:
        memory = np.empty(nbytes, np.uint8)
        return Buffer(None, memory)

    def describe(self) -> str:
        compiler = toolchain.find()
        return f"{pool.threads()} threads; {toolchain.version(compiler)} ({compiler.program})"


def text(program: Program) -> str:
    """All that is compiled for a program."""
    msl = "" if program.cpu.group else program.msl
    return (
        f"{included(msl + program.cpu.text)}{msl}\n"
        f"#pragma GCC visibility push(default)\n{program.cpu.text}\n#pragma GCC visibility pop\n"
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

    def __init__(self, program: Program, built: ctypes.CDLL) -> None:
        self._program = program
        self._library = built
        self._nest = ctypes.cast(built[program.cpu.entry], ctypes.c_void_p).value or 0
        self._launch = pool.launch()
        self._pack = Struct(f"{len(program.buffers)}P").pack

    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        launch, pack, plan = self._launch, self._pack, self._plan(env)

        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            status = _Status()
            launch(plan, pack(*map(id, operands)), params, status, 0)
            return status

        return dispatch

    def bind_checked(self, env: Mapping[str, Number]) -> Checked:
        launch, pack, plan = self._launch, self._pack, self._plan(env)

        def dispatch(operands: Sequence[object], params: bytes) -> Words | None:
            status = _Status()
            return status if launch(plan, pack(*map(id, operands)), params, status, 1) else None

        return dispatch

    def _plan(self, env: Mapping[str, Number]) -> bytes:
        """The numbers of `mj_plan` in `launch.cpp`."""
        arrays = {a.name: a for a in self._program.arrays}
        numbers = [self._nest, id(np.ndarray), HEAD, len(self._program.buffers), *self._schedule(env)]
        for name in self._program.buffers:
            a = arrays[name]
            shape = [int(evaluate(e, env)) for e in a.shape] + [a.lanes] * (a.lanes > 1)
            flags = PLAIN if a.role == "in" else PLAIN | WRITEABLE
            numbers += [id(a.dtype.numpy), flags, prod(shape) * a.dtype.nbytes, len(shape), *shape]
        return pack(f"{len(numbers)}q", *numbers)

    def _schedule(self, env: Mapping[str, Number]) -> tuple[int, int, int, int]:
        """Units, columns of a unit, units at a time, and threads."""
        nest = self._program.cpu
        rows, columns = int(evaluate(nest.rows, env)), int(evaluate(nest.columns, env))
        threads = min(
            pool.threads(), int(self._duration(rows * columns * max(nest.group, 1), env) / WORTH_A_THREAD_NS)
        )
        if nest.serial or threads < 2:
            return rows, max(columns, 1), 1, 1
        block = split(rows, columns, threads)
        units = rows * -(-columns // block)
        return units, block, max(units // (CHUNKS * threads), 1), threads

    def _duration(self, elements: int, env: Mapping[str, Number]) -> float:
        """Nanoseconds on one thread, as a guess: what the compiler counted, or what the arrays hold."""
        cost = self._program.cost
        counted = elements * (cost.operations * OPERATION_NS + cost.nbytes * BYTE_NS)
        arrays = self._program.arrays
        held = sum(a.nbytes(env) for a in arrays)
        return max(counted, held * BYTE_NS)


def split(rows: int, columns: int, threads: int) -> int:
    """The columns of a unit: whole rows where there are enough of them, else parts of a row."""
    parts = -(-4 * threads // max(rows, 1))
    if parts == 1:
        return max(columns, 1)
    return max(-(-columns // parts // COLUMNS) * COLUMNS, COLUMNS)


def _as_expected() -> bool:
    """Whether NumPy's array objects lie in memory as `launch.cpp` reads them."""
    a = np.zeros((4, 5), np.uint8)[1:]
    data, rank, shape, strides, _, dtype, flags = unpack("PiPPPPi", ctypes.string_at(id(a) + HEAD, 56)[:52])
    extents = ctypes.cast(shape, ctypes.POINTER(ctypes.c_long))[:2]
    steps = ctypes.cast(strides, ctypes.POINTER(ctypes.c_long))[:2]
    return (data, rank, extents, steps, dtype, flags & (PLAIN | WRITEABLE)) == (
        a.__array_interface__["data"][0], 2, [3, 5], [5, 1], id(a.dtype), PLAIN | WRITEABLE
    )  # fmt: skip
