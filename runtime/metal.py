"""The metal device: the MSL text compiled and run by `metalcompute`, on an Apple GPU.

In: a program. Out: a pipeline whose dispatch runs its launches in order. metalcompute compiles for language
version 2.3 with fast math, dispatches whole threadgroups of its own choice in one dimension (the text guards
its tail), copies Python buffers and shares its own with NumPy, waits when a run is deleted, and reports
errors of compiling but none of running: the status words are what proves that a kernel ran.

A compiled function is kept in memory only. metalcompute gives no way to save a pipeline, so the first call
in every process compiles the text again, as quickly as the system's own cache of shaders allows; on disk
there is the program, not the pipeline.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metaljit.extents import Number, evaluate
from metaljit.program import Place, Program
from metaljit.runtime.cache import Once, key
from metaljit.runtime.device import STATUS_WORDS, Buffer, Device, Dispatch, Limits, Operand, Pipeline, Words
from metaljit.source import DeviceFault, Diagnostic

SMALLEST_BUFFER = 16  # Metal has no buffer of no bytes
_ERROR = re.compile(r"program_source:(\d+):\d+: (?:fatal )?error: (.*)")


class Metal(Device):
    """The default Metal device; see the module."""

    name = "metal"
    in_place = False
    limits = Limits(buffers=31)

    def __init__(self) -> None:
        try:
            import metalcompute
        except ImportError as e:
            raise _missing(f"the package metalcompute cannot be imported ({e})") from e
        self.failure: type[Exception] = metalcompute.error
        try:
            self._device = metalcompute.Device()
        except self.failure as e:
            raise _missing(f"metalcompute finds none ({e})") from e
        # metalcompute's tables are not guarded: one thread at a time, and no run under way when it leaves.
        self.lock = threading.Lock()
        self._process = os.getpid()
        self._functions: Once[tuple[Any, ...]] = Once()

    def check_process(self) -> None:
        """DeviceFault in a forked child, where Metal's objects are dead."""
        if os.getpid() != self._process:
            raise DeviceFault(
                Diagnostic(
                    "metal-after-fork",
                    "the Metal device was opened before this process was forked, and does not survive that",
                    help='start processes with multiprocessing.get_context("spawn"), or use the device '
                    "in the children only",
                )
            )

    def pipeline(self, program: Program) -> Pipeline:
        self.check_process()
        entries = [launch.entry for launch in program.launches]
        functions = self._functions.get(key(program.msl, *entries), lambda: self._build(program, entries))
        return MetalPipeline(self, program, functions)

    def _build(self, program: Program, entries: Sequence[str]) -> tuple[Any, ...]:
        with self.lock:
            try:
                library = self._device.kernel(program.msl)
                return tuple(library.function(entry) for entry in entries)
            except self.failure as e:
                raise refused(program, str(e)) from e

    def empty(self, nbytes: int) -> Buffer:
        self.check_process()
        with self.lock:
            handle = self.make_buffer(max(nbytes, SMALLEST_BUFFER), nbytes)
        return Buffer(handle, np.frombuffer(handle, np.uint8))

    def make_buffer(self, contents: int | memoryview | bytes, nbytes: int) -> Any:
        """metalcompute's buffer of so many zeros, or with a copy of these bytes; the lock is the caller's."""
        try:
            return self._device.buffer(contents)
        except self.failure as e:
            raise DeviceFault(
                Diagnostic(
                    "out-of-device-memory",
                    f"the Metal device has no buffer of {nbytes} bytes ({e})",
                    help="free arrays that are no longer needed, or work on parts",
                )
            ) from e

    def upload(self, operand: Operand) -> Any:
        """metalcompute's buffer of an operand: its own, or a copy; the lock is the caller's."""
        if isinstance(operand, Buffer):
            return operand.handle
        if operand.nbytes == 0:
            return self.make_buffer(SMALLEST_BUFFER, 0)
        # Bytes, because NumPy gives no buffer of some dtypes; a memoryview, because metalcompute would first
        # try to read an array of one element as a number.
        return self.make_buffer(operand.reshape(-1).view(np.uint8).data, operand.nbytes)

    def describe(self) -> str:
        return str(self._device)


class MetalPipeline(Pipeline):
    """The functions of a program's launches."""

    def __init__(self, device: Metal, program: Program, functions: tuple[Any, ...]) -> None:
        self._device = device
        self._program = program
        self._functions = functions

    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        device, program = self._device, self._program
        counts = [int(evaluate(launch.threads, env)) for launch in program.launches]
        runs = [(f, count) for f, count in zip(self._functions, counts, strict=True) if count]

        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            device.check_process()
            with device.lock:
                # The list keeps every buffer until the last run has ended.
                buffers = [device.upload(operand) for operand in operands]
                buffers.append(device.make_buffer(params, len(params)))
                status = device.make_buffer(4 * STATUS_WORDS, 4 * STATUS_WORDS)
                for function, count in runs:
                    try:
                        run = function(count, *buffers, status)
                    except device.failure as e:
                        raise refused(program, str(e)) from e
                    del run  # waits for its end
                words: list[int] = np.frombuffer(status, np.uint32).tolist()
            return words

        return dispatch


def _missing(reason: str) -> DeviceFault:
    if sys.platform == "darwin":
        way_out = "run `pip install metalcompute` on macOS 14 or later, or use device 'cpu'"
    else:
        way_out = "use device 'cpu', or run on a Mac"
    return DeviceFault(Diagnostic("metal-missing", f"there is no Metal device here: {reason}", help=way_out))


def refused(program: Program, text: str) -> DeviceFault:
    """The error for a program that Metal does not take, at the user's line where the text names one."""
    found = _ERROR.search(text)
    message = found[2] if found else text
    place = program.user_place(int(found[1])) if found else Place(program.where)
    if "cannot be used in buffer pointee type" in message:
        return DeviceFault(
            Diagnostic(
                "metal-no-64-bit",
                f"{program.name}: this Metal device has no arrays of 64-bit integers ({message})",
                where=place.where,
                help="use i32 or u32 (paravirtual devices, as hosted Macs have them, lack 64-bit buffers)",
            )
        )
    return DeviceFault(
        Diagnostic(
            "metal-refused",
            f"{program.name}: the Metal device refused the kernel: {message}",
            where=place.where,
            excerpt=place.excerpt,
            help="please report it with the kernel's Metal text; meanwhile device 'cpu' may run it",
        )
    )
