"""Arrays that live in a device's memory: what a chain of kernels passes along without a copy.

In: NumPy arrays. Out: `Array`s, and NumPy views of them. A kernel that is given an `Array` returns
`Array`s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metaljit.dtypes import BF16, DTYPES, from_numpy
from metaljit.program import INDEX_MAX
from metaljit.runtime.device import Buffer, Device, Operand, current, find
from metaljit.source import Diagnostic, LaunchFault, SizeError


class Array:
    """An array in the memory of `device`, C-contiguous; make one with `asarray`.

    `numpy()` is a view without a copy: writing to it changes the array. `np.asarray(a)` works too.
    """

    __slots__ = ("_buffer", "_view", "device")

    def __init__(self, device: Device, view: NDArray[Any], buffer: Buffer | None) -> None:
        self.device = device
        self._view = view
        self._buffer = buffer

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._view.dtype

    @property
    def ndim(self) -> int:
        return self._view.ndim

    @property
    def size(self) -> int:
        return self._view.size

    @property
    def nbytes(self) -> int:
        return self._view.nbytes

    @property
    def operand(self) -> Operand:
        """What a dispatch on the array's device takes."""
        return self._view if self._buffer is None else self._buffer

    def numpy(self) -> NDArray[Any]:
        """The array as NumPy sees it, without a copy."""
        return self._view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is None:
            return np.asarray(self._view, dtype)
        return np.array(self._view, dtype, copy=copy)

    def __len__(self) -> int:
        return len(self._view)

    def __repr__(self) -> str:
        return f"Array({self._view!r}, device={self.device.name!r})"


def allocate(device: Device, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of undefined contents in the device's memory."""
    if device.in_place:
        return Array(device, np.empty(shape, dtype), None)
    count = dtype.itemsize
    for extent in shape:
        count *= extent
    buffer = device.empty(count)
    return Array(device, buffer.view(shape, dtype), buffer)


def asarray(x: ArrayLike | Array, device: Device | str | None = None) -> Array:
    """A copy of `x` in the memory of a device, the current one if none is named; an `Array` there is given back.

    Takes what `np.asarray` takes. The element type is kept: LaunchFault where the language has none for it,
    SizeError where there are more than 2³¹ − 1 elements.
    """
    place = device if isinstance(device, Device) else find(device) if device else current()
    if isinstance(x, Array) and x.device is place:
        return x
    array = x.numpy() if isinstance(x, Array) else np.asarray(x)
    if from_numpy(array.dtype) is None:
        raise LaunchFault(
            Diagnostic("array-dtype", f"there is no element type for {describe_dtype(array.dtype)}",
                       help=way_out(array.dtype, "x"))
        )  # fmt: skip
    if array.size > INDEX_MAX:
        raise SizeError(
            Diagnostic(
                "array-too-large",
                f"the array has {array.size} elements, and an array has at most {INDEX_MAX}",
                help="split it",
            )
        )
    result = allocate(place, array.shape, array.dtype)
    result.numpy()[...] = array
    return result


def describe_dtype(dtype: np.dtype[Any]) -> str:
    """The dtype in the language's words where it has any, else in NumPy's."""
    known = from_numpy(dtype)
    if known is not None:
        return known.name
    if dtype.fields is not None:
        return f"a structured dtype {dtype}"
    if from_numpy(dtype.newbyteorder("=")) is not None:
        return f"{dtype.newbyteorder('=').name} in the other byte order ({dtype.str})"
    return dtype.name


def way_out(dtype: np.dtype[Any], name: str, wanted: np.dtype[Any] | None = None) -> str:
    """How an array of this dtype becomes one that can be passed."""
    if wanted is not None and wanted.name == "bfloat16":
        return f"convert it: `{name}.astype(ml_dtypes.bfloat16)`"
    if wanted is not None:
        target = f"np.{'bool_' if wanted.kind == 'b' else wanted.name}"
    elif from_numpy(dtype.newbyteorder("=")) is not None:
        target = f"np.{dtype.newbyteorder('=').name}"
    elif dtype.kind == "f":
        target = "np.float32"
    else:
        return f"element types are {', '.join(d for d in DTYPES if d != BF16.name)}, and bf16 with ml_dtypes"
    return f"convert it: `{name}.astype({target})`"
