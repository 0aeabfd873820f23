"""The contract between a `Program` and what runs it, and the choice of the device.

In: a device's name, or nothing. Out: a `Device`, which turns a program into a `Pipeline`, which turns
extents into a `Dispatch`, which runs. Argument checks and results are `launch`'s; nothing is probed or
compiled when this module is imported.

    device = find("cpu")                      # or current()
    pipeline = device.pipeline(program)       # compiles, or finds it in the cache
    dispatch = pipeline.bind({"H": 4, "W": 5})
    words = dispatch(operands, params)        # waits; the status words say that the kernel ran
"""

from __future__ import annotations

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metaljit.extents import Number
from metaljit.frozen import frozen
from metaljit.program import Program
from metaljit.runtime.setting import Setting
from metaljit.source import DeviceFault, Diagnostic

NAMES = ("metal", "cpu", "emulator")
PLANNED = ("cuda",)
STATUS_WORDS = 4
UNFIT = (
    0x6D6A6773  # "mjgs": where it ran in threadgroups of a size that it is not made for; word 2 has the size
)
RAN = 0x6D6A6974  # "mjit": what a kernel writes to status word 0


@frozen
class Limits:
    """What a device can take: `buffers` is the number of bindings of one kernel."""

    buffers: int = 31


class Buffer:
    """`nbytes` of a device's memory; `handle` is the device's own object for it.

    `view` is NumPy's sight of the memory, without a copy; every dispatch has ended when it returns, so a
    view never races with the device.
    """

    __slots__ = ("handle", "memory")

    def __init__(self, handle: Any, memory: NDArray[np.uint8]) -> None:
        self.handle = handle
        self.memory = memory

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """The first bytes of the buffer as an array; the array keeps the buffer alive."""
        count = dtype.itemsize
        for extent in shape:
            count *= extent
        return self.memory[:count].view(dtype).reshape(shape)


# A C-contiguous, aligned array in host memory, or device memory.
Operand: TypeAlias = NDArray[Any] | Buffer


class Words(Protocol):
    """The status words after a launch; see `program.AssertSite` and `RAN`."""

    def __getitem__(self, index: int, /) -> int: ...


# Runs a bound pipeline on operands in `Program.buffers` order and the packed parameter struct, and waits.
Dispatch: TypeAlias = Callable[[Sequence[Operand], bytes], Words]
# The same for objects that nobody has looked at: None, and nothing was done, unless each is an array of the bound
# dtype and shape in a layout that kernels take, and no result shares memory with another one.
Checked: TypeAlias = Callable[[Sequence[object], bytes], Words | None]


class Pipeline(ABC):
    """A program compiled for one device; safe to use from several threads."""

    @abstractmethod
    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        """What runs the program where its symbols have these values; worth keeping for equal extents."""

    def bind_checked(self, env: Mapping[str, Number]) -> Checked | None:
        """The same with the checks of the operands, if the device has a quick way to make them."""
        return None


class Device(ABC):
    """Compiles programs and owns memory; there is one object per name and process.

    `in_place` says that kernels read and write host memory where it lies, so operands may all be arrays.
    """

    name: str
    limits: Limits
    in_place: bool

    def prepare(self) -> None:
        """Starts in the background what a first pipeline needs, while its program is still being made."""
        return

    @abstractmethod
    def pipeline(self, program: Program) -> Pipeline:
        """The compiled program: from memory, from disk, or compiled now.

        The same text is compiled once even where several threads ask at once; a failure is remembered and
        raised again. DeviceFault where the device refuses the program, InternalError where its text does
        not compile.
        """

    @abstractmethod
    def empty(self, nbytes: int) -> Buffer:
        """Fresh memory of at least `nbytes`, contents undefined. DeviceFault where there is none left."""

    def binaries(self, program: Program) -> dict[str, bytes]:
        """What the program was compiled to, by a key of all that shapes it; none where the device gives nothing out."""
        return {}

    def provide(self, binaries: Mapping[str, bytes]) -> None:
        """Lets this process load these rather than compile what has their keys."""
        return

    @abstractmethod
    def describe(self) -> str:
        """One line for `metaljit doctor`: what this device runs on."""


_devices: dict[str, Device] = {}
_lock = threading.Lock()


def find(name: str) -> Device:
    """The device of that name, opened at the first use. DeviceFault says why it cannot be had."""
    device = _devices.get(name)
    if device is not None:
        return device
    with _lock:
        if name not in _devices:
            _devices[name] = _open(name)
        return _devices[name]


def _open(name: str) -> Device:
    match name:
        case "cpu":
            from metaljit.runtime.cpu import Cpu

            return Cpu()
        case "metal":
            from metaljit.runtime.metal import Metal

            return Metal()
        case "emulator":
            from metaljit.runtime.emulator.device import Emulator

            return Emulator()
    if name in PLANNED:
        raise DeviceFault(
            Diagnostic(
                "unknown-device",
                f"the device {name!r} is not part of this version",
                help=f"use one of {', '.join(map(repr, NAMES))}",
            )
        )
    raise DeviceFault(
        Diagnostic(
            "unknown-device",
            f"there is no device named {name!r}",
            help=f"use one of {', '.join(map(repr, NAMES))}",
        )
    )


def available() -> tuple[str, ...]:
    """The names of the devices that can be opened here, best first; probes, so it may take a moment."""
    found = []
    for name in NAMES:
        try:
            find(name)
        except DeviceFault:
            continue
        found.append(name)
    return tuple(found)


class _Chosen(Setting):
    """The name that `use_device` chose."""

    value: str | None = None


chosen = _Chosen()


def use_device(name: str | None) -> _Use:
    """Makes a device the default from here on; as a context manager, until the block ends. None: the usual one.

    The main thread chooses for all threads that choose nothing themselves, any other thread for itself.
    """
    return _Use(name)


class _Use:
    def __init__(self, name: str | None) -> None:
        if name is not None:
            find(name)
        self._bring_back = chosen.choose(name)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._bring_back()


def current() -> Device:
    """What `use_device` chose, or else `default()`: the device of a kernel that names none."""
    return named(chosen.value)


def named(name: str | None) -> Device:
    """The device of that name, or the default."""
    return find(name) if name is not None else default()


def default() -> Device:
    """`METALJIT_DEVICE` if it is set, else metal on a Mac that has a Metal device, else cpu.

    A device that was asked for by name is never replaced by another one.
    """
    name = asked()
    return find(name) if name else _usual()


@cache
def asked() -> str | None:
    """`METALJIT_DEVICE`, read once: a call takes microseconds, and a look into the environment is one of them."""
    return os.environ.get("METALJIT_DEVICE")


def _usual() -> Device:
    if sys.platform == "darwin":
        try:
            return find("metal")
        except DeviceFault:
            return find("cpu")
    return find("cpu")


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
