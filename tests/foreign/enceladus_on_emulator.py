"""Enceladus on any machine: its compiler writes Metal source as on a Mac, and the emulator runs it.

Its Metal calls are in a native module, `enceladus._C`; ours stands in its place. The package is a folder of its
source distribution, since no wheel is made for other systems. Import this before anything of enceladus.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from metaljit.runtime.emulator.functions import Function, Library
from metaljit.runtime.emulator.process import Binding
from metaljit.runtime.emulator.sanitizer import sanitizing
from metaljit.runtime.msl.compile import Options
from metaljit.source import DeviceFault

Grid = tuple[int, int, int]
# Metal's numbers of the types that scalars are passed as, with their sizes in bytes.
TYPES = {
    **{"float": (3, 4), "half": (16, 2), "bfloat": (121, 2), "bool": (53, 1)},
    **{"int": (29, 4), "uint": (33, 4), "short": (37, 2), "ushort": (41, 2)},
    **{"char": (45, 1), "uchar": (49, 1), "long": (81, 8), "ulong": (85, 8)},
}


class MetalError(RuntimeError):
    """What the native module raises."""


def three(given: Sequence[int]) -> Grid:
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


class Device:
    name, architecture, handle = "metaljit emulator", "applegpu_g16g", 1

    def query(self) -> dict[str, Any]:
        return {
            "max_threadgroup_memory": 32768,
            "max_threads_per_threadgroup": 1024,
            "max_buffer_length": 2**33,
            "recommended_max_working_set": 2**33,
            "max_concurrent_compilations": 2,
            "apple_families": list(range(1, 10)),
            "metal3": True,
            "metal4": False,
        }


class Buffer:
    def __init__(self, nbytes: int) -> None:
        self.memory = np.zeros(max(nbytes, 16), np.uint8)
        self.ptr = self.handle = self.memory.ctypes.data
        self.nbytes, self.owner = self.memory.size, None


class Pipeline:
    thread_execution_width, static_threadgroup_memory, handle = 32, 0, 1

    def __init__(self, name: str, function: Function) -> None:
        self.name, self.function = name, function
        self.max_total_threads_per_threadgroup = function.most_threads

    def bindings(self) -> list[dict[str, Any]]:
        found = []
        for p in self.function.kernel.inputs:
            word = re.sub(r"\b(const|\*|&)|[*&]", "", p.type).strip()
            number, size = TYPES.get(word, (0, 0))
            found.append(
                {
                    "index": p.index,
                    "kind": "buffer" if p.what == "buffer" else "other",
                    "data_type": number,
                    "data_size": size,
                    "access": "read_write" if p.is_written else "read",
                    "name": p.name,
                }
            )
        return found


class LaunchPlan:
    def __init__(self, buf_index: Sequence[int], scalars: Sequence[tuple[int, int, int]]) -> None:
        self.buf_index, self.scalars = buf_index, scalars
        self.nbufs, self.nscalars = len(buf_index), len(scalars)


class Queue:
    handle, logging = 1, False


class Stream:
    """Runs at once what is dispatched; what is wrong with it is raised when the stream is waited for."""

    pending = log_sentinels = 0

    def __init__(self, queue: Queue, flush_every: int = 64) -> None:
        self.flush_every, self.errors = flush_every, [""][:0]

    def dispatch(
        self,
        pipeline: Pipeline,
        plan: LaunchPlan,
        bufs: Sequence[Buffer],
        offsets: Sequence[int] | None,
        scalars: bytes,
        grid: Sequence[int],
        tg: Sequence[int],
    ) -> None:
        starts = offsets or [0] * len(bufs)
        bindings = {
            i: Binding(b.memory[start:], "", True)
            for i, b, start in zip(plan.buf_index, bufs, starts, strict=True)
        }
        for i, start, size in plan.scalars:
            bindings[i] = Binding(np.frombuffer(scalars[start : start + size], np.uint8), "", False)
        groups, threads = three(grid), three(tg)
        if 0 in groups:
            return
        faults = pipeline.function.run(bindings, groups=groups, threadgroup=threads)
        self.errors += [f"{pipeline.name}: {fault.message}" for fault in faults]

    def sync(self) -> None:
        errors, self.errors = self.errors, []
        if errors:
            raise MetalError("\n".join(errors))

    def timed_run(self, *args: Any) -> tuple[float, float]:
        self.dispatch(*args)
        self.sync()
        return 0.0, 1e-6

    def flush(self) -> None:
        pass

    def flush_timed(self) -> tuple[float, float]:
        self.sync()
        return 0.0, 1e-6


def compile_source(device: Device, source: str, language_version: int = 0, **_: Any) -> tuple[Library, str]:
    version = divmod(language_version, 65536) if language_version else (3, 2)
    try:
        return Library(source, Options(version=version)), ""
    except DeviceFault as e:
        raise MetalError(f"MSL compilation failed:\n{e}") from e


def pipeline(device: Device, library: Library, name: str) -> Pipeline:
    try:
        return Pipeline(name, library.function(name, sanitize=sanitizing()))
    except KeyError:
        raise MetalError(f"the library has no kernel function named '{name}'") from None


native: Any = ModuleType("enceladus._C")
for member in (MetalError, Device, Buffer, Pipeline, LaunchPlan, Queue, Stream, Library, pipeline):
    setattr(native, member.__name__, member)
native.compile = compile_source
native.default_device = Device
native.new_queue = lambda device: Queue()
native.new_buffer = lambda device, nbytes: Buffer(nbytes)
native.buffer_nocopy = lambda device, ptr, nbytes, owner: None  # has it copied
sys.modules[native.__name__] = native
cache: Any = import_module("enceladus.runtime.cache")
cache.os_build = lambda: "15.0 (emulator)"
