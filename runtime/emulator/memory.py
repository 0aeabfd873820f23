"""The memory of a run, seen from the user's process: a file that it shares with the worker.

In: buffers. Out: where in the file each lies, and copies there and back. Buffers that overlap in memory share a region,
so that what is written through one is read through the other. The first bytes of the file tell the outcome of a run.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from metaljit.frozen import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONTROL = 65536  # bytes of the first part
_KEPT = 256 << 20  # bytes that stay from run to run
_ALIGNMENT = (
    16  # of the largest type that is not a wide vector; those fill their buffers, and so are aligned too
)


class Bound(Protocol):
    @property
    def memory(self) -> NDArray[np.uint8]: ...
    @property
    def writable(self) -> bool: ...
    @property
    def undefined(self) -> bool: ...
    @property
    def padded(self) -> bool: ...


@frozen
class Region:
    """Bytes `[offset, offset + nbytes)` of the file, and what is bound in it: slots with their distance from the start.

    It ends at the end of a page, as near as the alignment allows: there the kernel that goes too far is caught.
    """

    offset: int
    nbytes: int
    writable: bool
    undefined: bool
    padded: bool
    members: tuple[tuple[int, int, Bound], ...] = field(compare=False)


def lay_out(buffers: Mapping[int, Bound]) -> list[Region]:
    """Where the buffers lie, in the order of their addresses."""
    placed = sorted((_address(b.memory), slot, b) for slot, b in buffers.items())
    regions: list[Region] = []
    at, i = CONTROL, 0
    while i < len(placed):
        start, end, first = placed[i][0], placed[i][0] + placed[i][2].memory.nbytes, i
        while i < len(placed) and (i == first or placed[i][0] < end):
            end = max(end, placed[i][0] + placed[i][2].memory.nbytes)
            i += 1
        members = tuple((slot, address - start, b) for address, slot, b in placed[first:i])
        nbytes = end - start
        lead = -nbytes % mmap.PAGESIZE // _ALIGNMENT * _ALIGNMENT
        writable = any(b.writable for _, _, b in members)
        undefined = all(b.undefined for _, _, b in members)
        padded = any(b.padded for _, _, b in members)
        regions.append(Region(at + lead, nbytes, writable, undefined, padded, members))
        at += -(-(lead + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    return regions


def _address(memory: NDArray[np.uint8]) -> int:
    return memory.ctypes.data  # `__array_interface__` keeps some bytes for each new array that it is asked of


class Segment:
    """The file, of this process's and the worker's alone; it grows as runs need it."""

    def __init__(self) -> None:
        self.descriptor = _file()
        os.ftruncate(self.descriptor, CONTROL)
        self._map(CONTROL)

    def _map(self, nbytes: int) -> None:
        # The old mapping goes when the last view of it has gone.
        self._mapped = mmap.mmap(self.descriptor, nbytes)
        self._bytes = np.frombuffer(self._mapped, np.uint8)

    def control(self) -> memoryview:
        """The part that tells the outcome of a run."""
        return memoryview(self._mapped)[:CONTROL]

    def copy_in(self, regions: list[Region]) -> None:
        if regions:
            last = regions[-1]
            end = -(-(last.offset + last.nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
            if end > self._bytes.nbytes:
                size = max(end, self._bytes.nbytes * 3 // 2 // mmap.PAGESIZE * mmap.PAGESIZE)
                os.ftruncate(self.descriptor, size)
                self._map(size)
        for region in regions:
            for _, distance, bound in region.members:
                at = region.offset + distance
                self._bytes[at : at + bound.memory.nbytes] = bound.memory

    def copy_out(self, regions: list[Region]) -> None:
        for region in regions:
            for _, distance, bound in region.members:
                if bound.writable:
                    at = region.offset + distance
                    bound.memory[...] = self._bytes[at : at + bound.memory.nbytes]

    def give_back(self) -> None:
        """Gives the system what only a run of unusual size needs."""
        if self._bytes.nbytes > _KEPT:
            os.ftruncate(self.descriptor, CONTROL)
            self._map(CONTROL)

    def close(self) -> None:
        os.close(self.descriptor)


def above_standard(descriptor: int) -> int:
    """The file under a number of its own, where it has that of a standard stream which is closed."""
    if descriptor > 2:
        return descriptor
    import fcntl

    other = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return other


def _file() -> int:
    if hasattr(os, "memfd_create"):
        return above_standard(os.memfd_create("metaljit"))
    from tempfile import TemporaryFile

    with TemporaryFile(prefix="metaljit-") as file:
        return above_standard(os.dup(file.fileno()))
