"""The emulator device: a program's MSL text run as Metal would run it, on any machine.

In: a program. Out: a pipeline whose dispatch hands the operands to the emulator's worker process and copies the
results back when the run has ended without a fault. The grid is rounded up to whole threadgroups, as metalcompute
does, so that what a kernel's guards forget is found. `METALJIT_SANITIZE=1` has every access checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from metaljit.extents import Number, evaluate
from metaljit.program import Place, Program
from metaljit.runtime import toolchain
from metaljit.runtime.cache import Once, key
from metaljit.runtime.device import STATUS_WORDS, Buffer, Device, Dispatch, Limits, Operand, Pipeline, Words
from metaljit.runtime.emulator.faults import Crash, Fault
from metaljit.runtime.emulator.functions import Function, Library
from metaljit.runtime.emulator.process import Binding
from metaljit.runtime.emulator.sanitizer import sanitizing
from metaljit.runtime.msl.compile import Options
from metaljit.source import DeviceFault, Diagnostic, InternalError, KernelFault

SMALLEST_BUFFER = 16  # Metal has no buffer of no bytes
SIMD_WIDTH = 32


class Emulator(Device):
    """Metal's rules on this processor; see the module."""

    name = "emulator"
    in_place = True
    limits = Limits(buffers=31)

    def __init__(self) -> None:
        toolchain.find()  # the way out is worth more now than in the middle of a call
        self._functions: Once[tuple[Function, ...]] = Once()

    def pipeline(self, program: Program) -> Pipeline:
        pipeline = EmulatorPipeline(self, program)
        pipeline.functions()
        return pipeline

    def functions(self, program: Program, sanitize: bool) -> tuple[Function, ...]:
        """The functions of a program's launches."""
        entries = [launch.entry for launch in program.launches]
        name = key(program.msl, *entries, str(sanitize))
        return self._functions.get(name, lambda: _build(program, entries, sanitize))

    def empty(self, nbytes: int) -> Buffer:
        return Buffer(None, np.empty(nbytes, np.uint8))

    def describe(self) -> str:
        compiler = toolchain.find()
        return f"Metal 2.3 to 4.0 on this processor; {toolchain.version(compiler)} ({compiler.program})"


def _build(program: Program, entries: Sequence[str], sanitize: bool) -> tuple[Function, ...]:
    try:
        library = Library(program.msl, Options(version=program.language_version), strict=False)
        return tuple(library.function(entry, sanitize=sanitize) for entry in entries)
    except DeviceFault as e:
        if not e.slug.startswith("msl-"):
            raise
        raise InternalError(f"the Metal text of {program.name} is refused:\n{e}") from e


class EmulatorPipeline(Pipeline):
    """A program whose functions are compiled, for the sanitizer too where a run asks for it."""

    def __init__(self, device: Emulator, program: Program) -> None:
        self._device, self._program = device, program

    def functions(self) -> tuple[Function, ...]:
        return self._device.functions(self._program, sanitizing())

    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        program = self._program
        arrays = {a.name: a for a in program.arrays}
        roles = [arrays[name] for name in program.buffers]
        counts = [int(evaluate(launch.threads, env)) for launch in program.launches]

        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            status = np.zeros(STATUS_WORDS, np.uint32)
            buffers = {
                i: Binding(_bytes(operand), a.name, a.role != "in", a.role == "out" and not a.zeroed)
                for i, (operand, a) in enumerate(zip(operands, roles, strict=True))
            }
            buffers[len(roles)] = Binding(np.frombuffer(params, np.uint8), "parameters", writable=False)
            buffers[len(roles) + 1] = Binding(status.view(np.uint8), "status", writable=True)
            for count, function in zip(counts, self.functions(), strict=True):
                width = function.most_threads // SIMD_WIDTH * SIMD_WIDTH
                if count:
                    grid = (-(-count // width), 1, 1)
                    try:
                        faults = function.run(buffers, groups=grid, threadgroup=(width, 1, 1))
                    except Crash as e:
                        faults = e.faults
                    if faults:
                        raise KernelFault(*(_located(program, fault) for fault in faults))
            return [int(word) for word in status]

        return dispatch


def _bytes(operand: Operand) -> NDArray[np.uint8]:
    memory = operand.memory if isinstance(operand, Buffer) else operand.reshape(-1).view(np.uint8)
    return memory if memory.size else np.zeros(SMALLEST_BUFFER, np.uint8)


def _located(program: Program, fault: Fault) -> Diagnostic:
    """A fault at the user's line of the kernel, with the line of the Metal text; for a race the other access too."""
    place, text = Place(program.where), f"{program.name}: {fault.message}"
    if fault.location is not None:
        place = program.user_place(int(fault.location.rsplit(":", 2)[-2]))
    if fault.second is not None:
        other, what = fault.second
        text += f"; {what} is at {program.user_place(int(other.rsplit(':', 2)[-2])).where}"
    return Diagnostic(fault.kind, text, where=place.where, excerpt=place.excerpt)
