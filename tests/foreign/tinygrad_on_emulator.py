"""tinygrad's device METAL on any machine: its renderer writes Metal source as on a Mac, and the emulator runs it.

tinygrad asks its module `tinygrad.runtime.ops_metal` for the device, which needs a Mac; ours stands in its place.
Import this before anything opens a device. `sources` are the texts so far, by the name of their kernel.
"""

# ruff: noqa: E402
from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from metaljit.runtime import toolchain


def compiler_of_the_cpu() -> str:
    """A program that is clang for tinygrad's device CPU, which prepares constants."""
    found = toolchain.find()
    if found.kind != "zig":
        return found.program
    script = Path(tempfile.mkdtemp(prefix="metaljit-test-")) / "clang"
    script.write_text(f'#!/bin/sh\nexec "{found.program}" clang "$@"\n')
    script.chmod(0o755)
    return str(script)


# Other processes would import the real module; a cache would hide the compiler.
os.environ.update(PARALLEL="0", CACHELEVEL="0", DEV="METAL", CC=compiler_of_the_cpu())

import numpy as np
from tinygrad.device import Allocator, Compiled, Compiler, Program
from tinygrad.helpers import DEV

from metaljit.runtime.emulator.functions import Library
from metaljit.runtime.emulator.process import Binding
from metaljit.runtime.emulator.sanitizer import sanitizing
from metaljit.runtime.msl.compile import Options

sources: dict[str, str] = {}


class MetalCompiler(Compiler):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(None)

    def compile(self, src: str) -> bytes:
        return src.encode()


class Memory:
    """A part of a buffer."""

    def __init__(self, whole: Any, start: int, size: int) -> None:
        self.whole, self.start, self.size = whole, start, size
        self.bytes = whole[start : start + size]


class MetalAllocator(Allocator):  # type: ignore[misc]
    def _alloc(self, size: int, options: Any) -> Memory:
        return Memory(np.zeros(size, np.uint8), 0, size)

    def _copyin(self, dest: Memory, src: memoryview) -> None:
        dest.bytes[:] = np.frombuffer(src, np.uint8)

    def _copyout(self, dest: memoryview, src: Memory) -> None:
        np.frombuffer(dest, np.uint8)[:] = src.bytes

    def _offset(self, buf: Memory, size: int, offset: int) -> Memory:
        return Memory(buf.whole, buf.start + offset, size)


class MetalProgram(Program):  # type: ignore[misc]
    def __init__(self, dev: Any, obj: Any) -> None:
        self.signature = obj.signature
        sources[obj.name] = obj.lib.decode()
        library = Library(sources[obj.name], Options(version=(3, 1)))
        self.function = library.function(obj.name, sanitize=sanitizing())

    def __call__(
        self,
        *bufs: Memory,
        global_size: tuple[int, int, int] = (1, 1, 1),
        local_size: tuple[int, int, int] = (1, 1, 1),
        vals: tuple[int, ...] = (),
        wait: bool = False,
        **_: Any,
    ) -> float:
        bindings = {i: Binding(b.bytes, "", True) for i, b in enumerate(bufs)}
        for value, (name, slot, dtype, _shape) in zip(vals, self.signature[len(bufs) :], strict=True):
            data = np.frombuffer(int(value).to_bytes(dtype.itemsize, "little", signed=True), np.uint8)
            bindings[slot] = Binding(data, name or "", False)
        faults = self.function.run(bindings, groups=global_size, threadgroup=local_size)
        assert not faults, (faults, self.function.library.text)
        return 0.0


class MetalDevice(Compiled):  # type: ignore[misc]
    def __init__(self, device: str) -> None:
        from tinygrad.renderer.cstyle import MetalRenderer

        # From the seventh of Apple's families on there are matrix instructions.
        super().__init__(device, MetalAllocator(self), [MetalRenderer], MetalProgram, None, arch="Apple9")


module: Any = ModuleType("tinygrad.runtime.ops_metal")
for member in (MetalCompiler, MetalDevice, MetalProgram, MetalAllocator):
    setattr(module, member.__name__, member)
sys.modules[module.__name__] = module
DEV.value = "METAL"
