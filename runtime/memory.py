"""Memory for results: that of a result which nobody holds any more, where there is one of the same size.

The system gives memory page by page, each zeroed, at the first touch; for a large result that takes about as long as to
compute it. What is kept for the next result is marked as free, so that a system that is short of memory takes it back.
"""

from __future__ import annotations

import mmap
from collections import deque
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST = 1 << 20  # bytes; the C library keeps smaller pieces itself
MOST = 1 << 30  # bytes that are kept in all

# The free pieces of each size, the size that was given back last at the end. Pieces come back when the collector
# finds them, in any thread and between any two steps: each change is one step, and a lost piece is only freed.
_free: dict[int, deque[mmap.mmap]] = {}


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """`np.empty`. A large array has a `base`, which gives its memory back once no view of it is left."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < LEAST:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, np.asarray(_Piece(nbytes)))


class _Piece:
    """Some memory, and who gives it back."""

    def __init__(self, nbytes: int) -> None:
        try:
            self._memory = _free[nbytes].pop()
        except (KeyError, IndexError):
            self._memory = _fresh(nbytes)
        self.__array_interface__ = np.frombuffer(self._memory, np.uint8).__array_interface__

    def __del__(self) -> None:
        if hasattr(self, "_memory"):  # which it has not where there was none
            _keep(self._memory)


def _fresh(nbytes: int) -> mmap.mmap:
    try:
        memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as e:
        raise MemoryError(f"the system has no {nbytes} bytes for a result") from e
    if hasattr(mmap, "MADV_HUGEPAGE"):
        _advise(memory, mmap.MADV_HUGEPAGE)
    return memory


def _keep(memory: mmap.mmap) -> None:
    nbytes = len(memory)
    if nbytes > MOST:
        return
    if hasattr(mmap, "MADV_FREE"):
        _advise(memory, mmap.MADV_FREE)
    pieces = _free.pop(nbytes, deque())
    pieces.append(memory)
    _free[nbytes] = pieces
    sizes = list(_free.items())
    kept = sum(size * len(found) for size, found in sizes)
    for size, found in sizes:
        while kept > MOST and found:
            found.popleft()
            kept -= size


def _advise(memory: mmap.mmap, advice: int) -> None:
    try:
        memory.madvise(advice)
    except OSError:  # a kernel without it
        pass
