"""`metaljit.metalcompute` in the place of metalcompute, with knobs that the real one does not have.

Every access of a kernel is checked: what it does outside of its buffers, or otherwise wrong, is in `faults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import metaljit.metalcompute as mc
from metaljit.metalcompute_objects import Buffer, metalcompute_device
from metaljit.runtime.emulator.faults import Fault
from metaljit.runtime.emulator.functions import Function, Library


class Metalcompute(ModuleType):
    """A module of its own with the device's knobs.

    `silent` devices report success and do nothing; `max_threads` is a kernel's largest group; `missing` is a
    Mac without Metal; `refuse` is a compiler's message for every text; `largest` is the longest buffer.
    `compiled` has the texts, `runs` the kernels' names with their numbers of threads.
    """

    def __init__(self, **knobs: Any) -> None:
        super().__init__("metalcompute")
        self.error = mc.error
        self.silent = False
        self.missing = False
        self.max_threads: int | None = None
        self.refuse: str | None = None
        self.largest = 2**31
        self.faults: list[str] = []
        self.compiled: list[str] = []
        self.runs: list[tuple[str, int]] = []
        self.__dict__.update(knobs)

    def Device(self, *args: Any) -> Device:
        if self.missing or args > (0,):
            raise mc.error("Cannot create device")
        return Device(self)

    def get_devices(self) -> tuple[metalcompute_device, ...]:
        return () if self.missing else mc.get_devices()


class Device(mc.Device):
    """The emulator under the knobs of its module."""

    def __init__(self, knobs: Metalcompute) -> None:  # what system this is, a test may have changed
        self._knobs = knobs

    def _compile(self, program: str) -> Library:
        if self._knobs.refuse is not None:
            raise mc.error(self._knobs.refuse)
        compiled = super()._compile(program)
        self._knobs.compiled.append(program)
        return compiled

    def _has_room(self, nbytes: int) -> bool:
        return nbytes <= self._knobs.largest and super()._has_room(nbytes)

    def _sanitizes(self) -> bool:
        return True

    def _most_threads(self, function: Function) -> int:
        return self._knobs.max_threads or super()._most_threads(function)

    def _execute(self, function: Function, count: int, buffers: Sequence[Buffer]) -> tuple[Fault, ...]:
        self._knobs.runs.append((function.kernel.name, count))
        if not self._knobs.silent:
            found = super()._execute(function, count, buffers)
            self._knobs.faults += [f"{fault.kernel}: {fault.message}" for fault in found]
        return ()
