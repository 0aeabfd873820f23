"""Where the results of a call go: fresh memory, or storage that the user gave as `out`.

In: the shapes of the results and what the user passed. Out: memory for the kernel to write, with the
contents that it starts from. Storage that the kernel cannot write directly is filled at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metaljit.program import ArrayParam, Program
from metaljit.runtime.array import Array, allocate, describe_dtype
from metaljit.runtime.device import Device
from metaljit.runtime.memory import empty
from metaljit.runtime.shapes import Shape, fault
from metaljit.source import LaunchFault, MetaljitError, ShapeError

Memory: TypeAlias = NDArray[Any] | Array
_OVERLAP_WORK = 1000  # steps that NumPy may take to prove that two arrays interleave without touching


class Outputs:
    """The outputs of one program on one device."""

    def __init__(self, program: Program, device: Device, passed: Sequence[ArrayParam]) -> None:
        self.program = program
        self.device = device
        self.params = program.outputs
        self.dtypes = [a.dtype.numpy for a in self.params]
        self.passed = passed
        names = [p.name for p in passed]
        # The position, among the passed arrays, of the argument whose contents an output starts with.
        self.sources = [names.index(a.name) if a.role == "inout" else None for a in self.params]
        self.undefined = device.in_place and all(a.role == "out" and not a.zeroed for a in self.params)

    def fresh(self, shapes: Sequence[Shape], arrays: Sequence[Memory]) -> list[Memory]:
        """New memory for every output."""
        if self.undefined:
            return list(map(empty, shapes, self.dtypes))
        return [self._start(j, self._allocate(j, shapes[j]), arrays) for j in range(len(shapes))]

    def _allocate(self, j: int, shape: Shape) -> Memory:
        if self.device.in_place:
            return empty(shape, self.dtypes[j])
        return allocate(self.device, shape, self.dtypes[j])

    def _start(self, j: int, memory: Memory, arrays: Sequence[Memory]) -> Memory:
        source = self.sources[j]
        view = as_numpy(memory)
        if source is not None:
            start = as_numpy(arrays[source])
            if not same_memory(view, start):
                view[...] = start
        elif self.params[j].zeroed:
            view.fill(0)
        return memory

    def stored(self, shapes: Sequence[Shape], arrays: Sequence[Memory], out: object) -> Storage:
        """Memory for every output, in the user's storage wherever the kernel can write to it.

        LaunchFault or ShapeError, before anything is written, where the storage does not fit.
        """
        count = len(self.params)
        given = out if isinstance(out, tuple) else (out,)
        if len(given) != count or (isinstance(out, tuple) and count == 1):
            wanted = "one array" if count == 1 else f"a tuple of {count} arrays"
            found = f"a tuple of {len(given)}" if isinstance(out, tuple) else f"a {type(out).__name__}"
            raise self._fault(LaunchFault, "out-unfit", f"`out` takes {wanted}, and got {found}")
        targets = [self._target(j, shapes[j], item) for j, item in enumerate(given)]
        self._refuse_overlap(targets, arrays)
        memories = []
        for j, target in enumerate(targets):
            memory = (
                self._written(target) if self._direct(j, target, arrays) else self._allocate(j, shapes[j])
            )
            memories.append(self._start(j, memory, arrays))
        return Storage(targets, memories)

    def _written(self, target: Memory) -> Memory:
        """The storage as a dispatch takes it."""
        return as_numpy(target) if self.device.in_place else target

    def _target(self, j: int, shape: Shape, target: object) -> Memory:
        name, dtype = self._name(j), self.dtypes[j]
        if not isinstance(target, Array) and (not isinstance(target, np.ndarray) or hasattr(target, "mask")):
            found = type(target).__name__
            raise self._fault(LaunchFault, "out-unfit", f"{name} takes an array, not a {found}")
        if isinstance(target, Array) and target.device is not self.device:
            raise self._fault(
                LaunchFault,
                "mixed-devices",
                f"{name} is in the memory of device {target.device.name!r}, and the kernel runs on "
                f"{self.device.name!r}",
            )
        if target.dtype != dtype:
            raise self._fault(
                LaunchFault,
                "out-unfit",
                f"{name} must hold {describe_dtype(dtype)}, and holds {describe_dtype(target.dtype)}",
            )
        if target.shape != shape:
            raise self._fault(
                ShapeError, "out-unfit", f"{name} must have shape {shape}, and has {target.shape}"
            )
        if not as_numpy(target).flags.writeable:
            raise self._fault(LaunchFault, "out-unfit", f"{name} is read-only")
        if isinstance(target, np.ndarray) and overlaps_itself(target):
            raise self._fault(
                LaunchFault, "out-overlaps", f"elements of {name} share memory with one another"
            )
        return target

    def _name(self, j: int) -> str:
        return "`out`" if len(self.params) == 1 else f"`out[{j}]`"

    def _fault(self, kind: type[MetaljitError], slug: str, message: str) -> MetaljitError:
        return fault(kind, slug, self.program, message, help="leave `out` away to get new arrays")

    def _refuse_overlap(self, targets: Sequence[Memory], arrays: Sequence[Memory]) -> None:
        views = [as_numpy(t) for t in targets]
        for j, view in enumerate(views):
            for k, argument in enumerate(map(as_numpy, arrays)):
                itself = self.sources[j] == k and same_memory(view, argument)
                if not itself and overlap(view, argument):
                    raise self._fault(
                        LaunchFault,
                        "out-overlaps",
                        f"{self._name(j)} shares memory with the argument `{self.passed[k].name}`",
                    )
            for i in range(j):
                if overlap(view, views[i]):
                    raise self._fault(
                        LaunchFault, "out-overlaps", f"{self._name(i)} and {self._name(j)} share memory"
                    )

    def _direct(self, j: int, target: Memory, arrays: Sequence[Memory]) -> bool:
        """Whether the kernel may write to the storage itself.

        A failing `assert` must leave an argument as it was, even one that is its own storage.
        """
        view = as_numpy(target)
        source = self.sources[j]
        if self.program.asserts and source is not None and same_memory(view, as_numpy(arrays[source])):
            return False
        if isinstance(target, Array):
            return True
        return self.device.in_place and view.flags.c_contiguous and view.flags.aligned


class Storage:
    """The user's storage, and the memory that the kernel writes (the same where it can be)."""

    def __init__(self, targets: Sequence[Memory], memories: list[Memory]) -> None:
        self.targets = targets
        self.memories = memories

    def finish(self) -> None:
        """Brings the results into the storage."""
        for target, memory in zip(self.targets, self.memories, strict=True):
            view, result = as_numpy(target), as_numpy(memory)
            if view is not result:
                view[...] = result


def as_numpy(memory: Memory) -> NDArray[Any]:
    return memory.numpy() if isinstance(memory, Array) else memory


def same_memory(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return (
        a.shape == b.shape
        and a.strides == b.strides
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


def overlap(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays share an element; doubt counts as yes."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def overlaps_itself(a: NDArray[Any]) -> bool:
    """Whether some elements of an array lie in one place; doubt, which no slice of an array gives, counts as yes."""
    if a.flags.c_contiguous:
        return False
    reach = a.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (extent - 1)
    return False
