"""A stand-in for metalcompute that runs on any machine: the same names, arguments, errors and habits.

What the real module does, from its published source (version 0.2.9): `Device([index])`,
`Device.kernel(text)`, `Kernel.function(name)`, `Function(count, *buffers)` giving a run whose deletion waits,
`Device.buffer(bytes or length)`, `error`, `get_devices()`. Buffers have the buffer protocol and nothing else;
buffers of no bytes cannot be made; anything but a Buffer is copied; the grid is rounded up to whole groups.

Kernels run as Metal would run them: the text is compiled as it is, and the kernel function itself is called
for every thread of the rounded grid, last thread first, when the run is deleted. Behind and before every
buffer lies a canary; a kernel that touches one is noted in `faults`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from metaljit.runtime.library import load
from metaljit.source import InternalError

# The text takes the way of its conditions that Metal's compiler takes.
_AS_METAL = """\
#define mj_offset mj_offset_of_the_cpu
#include "metaljit_cpu.h"
#undef mj_offset
#undef METALJIT_CPU
"""
BEFORE = bytes([0xA5]) * 64
BEHIND = bytes([0xA5]) * 2**15  # a whole group of the widest elements
_KERNEL = re.compile(r"\bkernel\s+void\s+(\w+)\s*\(")
_PARAM = re.compile(r"(?P<type>.*?)\s*\b\w+\s*\[\[(?P<what>\w+)(?:\((?P<index>\d+)\))?\]\]\s*", re.S)
_POSITIONS = {
    "thread_position_in_grid": "fake_gid",
    "threads_per_grid": "fake_total",
    "threads_per_threadgroup": "fake_group",
    "threadgroup_position_in_grid": "(fake_gid / fake_group)",
    "thread_position_in_threadgroup": "(fake_gid % fake_group)",
    "thread_index_in_threadgroup": "(fake_gid % fake_group)",
}


class error(Exception):
    """What metalcompute raises for everything."""


class FakeMetalcompute(ModuleType):
    """The module, and knobs that the real one does not have.

    `silent` devices report success and do nothing; `max_threads` is a kernel's largest group; `missing` is a
    Mac without Metal; `refuse` is a compiler's message for every text; `largest` is the longest buffer.
    """

    def __init__(self, **knobs: Any) -> None:
        super().__init__("metalcompute")
        self.error = error
        self.silent = False
        self.missing = False
        self.max_threads = 1024
        self.refuse: str | None = None
        self.largest = 2**31
        self.faults: list[str] = []
        self.compiled: list[str] = []
        self.runs: list[tuple[str, int]] = []
        self.__dict__.update(knobs)

    def Device(self, index: int = -1) -> _Device:
        if self.missing or index > 0:
            raise error("Cannot create device")
        return _Device(self)

    def get_devices(self) -> tuple[SimpleNamespace, ...]:
        if self.missing:
            return ()
        info = SimpleNamespace(
            deviceName="Fake", recommendedWorkingSetSize=2**33, maxTransferRate=0, hasUnifiedMemory=True
        )
        return (info,)


class _Device:
    def __init__(self, module: FakeMetalcompute) -> None:
        self._module = module

    def kernel(self, text: str) -> _Kernel:
        return _Kernel(self._module, self, text)

    def buffer(self, length_or_bytes: Any) -> Any:
        return _buffer(self._module, length_or_bytes)

    def __str__(self) -> str:
        return "metalcompute.Device(Fake)"


class _Kernel:
    def __init__(self, module: FakeMetalcompute, device: _Device, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError("argument 2 must be str")
        if module.refuse is not None:
            raise error(module.refuse)
        module.compiled.append(text)
        self._module, self._device = module, device
        self._signatures = dict(_signatures(text))
        drivers = "".join(_driver(name, params) for name, params in self._signatures.items())
        try:
            self._library = load(
                f'{_AS_METAL}#line 1 "program_source"\n{text}\n#line 1 "driver"\n{drivers}',
                "a text for Metal",
            )
        except InternalError as e:
            raise error(str(e)) from e

    def function(self, name: str) -> _Function:
        if name not in self._signatures:
            raise error("Function not found")
        return _Function(self._module, self._device, self._library[f"fake_{name}"], name)


class _Function:
    def __init__(self, module: FakeMetalcompute, device: _Device, entry: Any, name: str) -> None:
        self._module, self._device, self._entry, self._name = module, device, entry, name

    def __call__(self, *args: Any) -> _Run:
        if len(args) < 2:
            raise error("Buffer not found")
        if not hasattr(args[0], "__index__"):
            raise error("First argument should be an integer kernel count")
        buffers = [a if _is_buffer(a) else _buffer(self._module, a) for a in args[1:]]
        self._module.runs.append((self._name, int(args[0])))
        return _Run(self._module, self._entry, self._name, int(args[0]), buffers)


class _Run:
    def __init__(
        self, module: FakeMetalcompute, entry: Any, name: str, count: int, buffers: Sequence[Any]
    ) -> None:
        self._module, self._entry, self._name = module, entry, name
        self._count, self._buffers = count, buffers

    def __del__(self) -> None:
        if self._module.silent:
            return
        group = self._module.max_threads // 32 * 32
        total = -(-self._count // group) * group
        pointers = (ctypes.c_void_p * len(self._buffers))(*map(ctypes.addressof, self._buffers))
        self._entry(pointers, ctypes.c_uint(total), ctypes.c_uint(group))
        for index, buffer in enumerate(self._buffers):
            size = ctypes.sizeof(buffer)
            around = bytes(buffer.base_)
            if not around.startswith(BEFORE) or around[len(BEFORE) + size :] != BEHIND:
                self._module.faults.append(f"{self._name} wrote outside of buffer {index}")


def _no(*_: Any) -> Any:
    raise TypeError("a metalcompute buffer has the buffer protocol only")


def _is_buffer(value: Any) -> bool:
    return isinstance(value, ctypes.Array) and hasattr(value, "base_")


def _buffer(module: FakeMetalcompute, length_or_bytes: Any) -> Any:
    try:
        length = int(length_or_bytes)  # tried first, also on what turns out to be bytes
    except (TypeError, ValueError):
        length = -1
    try:
        source: bytes | None = memoryview(length_or_bytes).tobytes()
        length = len(source or b"")
    except TypeError:
        source = None
        if length < 0:
            raise error("Unsupported input format") from None
    if not 0 < length <= module.largest:
        raise error("Could not make buffer")
    base = (ctypes.c_ubyte * (len(BEFORE) + length + len(BEHIND)))()
    ctypes.memmove(base, BEFORE, len(BEFORE))
    ctypes.memmove(ctypes.addressof(base) + len(BEFORE) + length, BEHIND, len(BEHIND))
    methods = {"__getitem__": _no, "__setitem__": _no, "__len__": _no, "__iter__": _no}
    kind: Any = type("Buffer", (ctypes.c_ubyte * length,), methods)
    buffer = kind.from_buffer(base, len(BEFORE))
    buffer.base_ = base
    if source is not None:
        ctypes.memmove(buffer, source, length)
    return buffer


def _signatures(text: str) -> Iterator[tuple[str, list[re.Match[str]]]]:
    for found in _KERNEL.finditer(text):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        params = re.split(r",(?![^(\[<]*[)\]>])", text[found.end() : end - 1])
        matches = [_PARAM.fullmatch(p.strip()) for p in params]
        assert all(matches), f"a parameter without an attribute in {params}"
        yield found[1], [m for m in matches if m]


def _driver(name: str, params: Sequence[re.Match[str]]) -> str:
    arguments = []
    for param in params:
        kind = param["type"].strip()
        if param["what"] != "buffer":
            arguments.append(f"({kind}){_POSITIONS[param['what']]}")
        elif kind.endswith("&"):
            arguments.append(f"*({kind[:-1].strip()}*)fake_buffers[{param['index']}]")
        else:
            arguments.append(f"({kind})fake_buffers[{param['index']}]")
    return (
        f'extern "C" __attribute__((visibility("default")))\n'
        f"void fake_{name}(void* const* fake_buffers, unsigned fake_total, unsigned fake_group) {{\n"
        f"    for (unsigned fake_gid = fake_total; fake_gid-- > 0;) {name}({', '.join(arguments)});\n}}\n"
    )
