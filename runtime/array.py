"""Arrays that live in a device's memory: what a chain of kernels passes along without a copy.

In: what NumPy makes arrays of. Out: `Array`s, and NumPy views of them. A kernel that is given an `Array` returns
`Array`s. NumPy's operators and functions on them are `metaljit.arrays`'; here is their memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metaljit.dtypes import BF16, DTYPES, DType, from_numpy
from metaljit.program import INDEX_MAX
from metaljit.runtime.device import Buffer, Device, Operand, current, find
from metaljit.runtime.memory import empty
from metaljit.source import Diagnostic, LaunchFault, SizeError, TypeFault

if TYPE_CHECKING:

    class _Operators:
        """What `metaljit.arrays` gives to arrays, for those that read types."""

        T: Array
        at: Any

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Array: ...
        def __contains__(self, value: object) -> bool: ...
        def __add__(self, other: Any) -> Array: ...
        def __radd__(self, other: Any) -> Array: ...
        def __sub__(self, other: Any) -> Array: ...
        def __rsub__(self, other: Any) -> Array: ...
        def __mul__(self, other: Any) -> Array: ...
        def __rmul__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Array: ...
        def __floordiv__(self, other: Any) -> Array: ...
        def __rfloordiv__(self, other: Any) -> Array: ...
        def __mod__(self, other: Any) -> Array: ...
        def __rmod__(self, other: Any) -> Array: ...
        def __pow__(self, other: Any) -> Array: ...
        def __rpow__(self, other: Any) -> Array: ...
        def __matmul__(self, other: Any) -> Array: ...
        def __rmatmul__(self, other: Any) -> Array: ...
        def __and__(self, other: Any) -> Array: ...
        def __rand__(self, other: Any) -> Array: ...
        def __or__(self, other: Any) -> Array: ...
        def __ror__(self, other: Any) -> Array: ...
        def __xor__(self, other: Any) -> Array: ...
        def __rxor__(self, other: Any) -> Array: ...
        def __lshift__(self, other: Any) -> Array: ...
        def __rlshift__(self, other: Any) -> Array: ...
        def __rshift__(self, other: Any) -> Array: ...
        def __rrshift__(self, other: Any) -> Array: ...
        def __lt__(self, other: Any) -> Array: ...
        def __le__(self, other: Any) -> Array: ...
        def __gt__(self, other: Any) -> Array: ...
        def __ge__(self, other: Any) -> Array: ...
        def __eq__(self, other: object) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Array: ...  # type: ignore[override]
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...

else:
    _Operators = object


class Array(_Operators):
    """An array in the memory of `device`, C-contiguous; make one with `array` or `asarray`.

    `numpy()` is a view without a copy: writing to it changes the array, as `a[key] = x` does. `np.asarray(a)` and DLPack
    give the same memory. NumPy's operators, methods and functions run on the device and give arrays of their own.
    """

    __slots__ = ("_buffer", "_view", "device")
    __hash__ = None  # type: ignore[assignment]  # `==` compares elements

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
    def itemsize(self) -> int:
        return self._view.itemsize

    @property
    def operand(self) -> Operand:
        """What a dispatch on the array's device takes."""
        return self._view if self._buffer is None else self._buffer

    def numpy(self) -> NDArray[Any]:
        """The array as NumPy sees it, without a copy."""
        return self._view

    def to(self, device: Device | str) -> Array:
        """The array in the memory of a device: itself where it is there, else a copy."""
        return asarray(self, device=device)

    def copy(self) -> Array:
        return array(self, device=self.device)

    # ---- numbers ----

    def item(self) -> Any:
        """The lone element as a Python number."""
        if self.size != 1:
            self._refuse("a number is asked for", "take an element: `a[0]`, or all of them: `a.tolist()`")
        return _plain(self.numpy()).item()

    def tolist(self) -> Any:
        """The elements as Python numbers, in lists of lists."""
        return _plain(self.numpy()).tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            self._refuse("Python asks whether this is true", "say which: `a.any()` or `a.all()`")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            self._refuse("an index is asked for", "only an integer array without axes is one")
        return int(self.numpy().item())

    def _refuse(self, what: str, help: str) -> None:
        found = f"{describe_dtype(self.dtype)}[{', '.join(map(str, self.shape))}]"
        raise TypeFault(Diagnostic("array-to-number", f"{what}, and this is {found}", help=help))

    # ---- elements ----

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(self.shape[0]))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes to the array's memory, as NumPy does and with its casts: whoever shares the memory sees it.

        ValueError where the memory is read-only. A traced array has no such thing, `a.at[key].set(x)` works with both.
        """
        if isinstance(value, Array):
            same_device(self, value)
            value = value.numpy()
        self.numpy()[as_key(key)] = value

    # ---- interchange: all without a copy ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is None:
            return np.asarray(self.numpy(), dtype)
        return np.array(self.numpy(), dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.dtype.isbuiltin != 1:
            raise AttributeError("__array_interface__")  # it has no word for bf16, __array__ has
        return self.numpy().__array_interface__

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The memory as a DLPack capsule, from NumPy: BufferError where the format has no word for it."""
        if self.dtype.isbuiltin != 1:
            raise BufferError("NumPy's DLPack has no bf16: pass `a.numpy().view(np.uint16)`")
        return self.numpy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host: its processor sees the memory of every device."""
        return self.numpy().__dlpack_device__()

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol, for Python 3.12 and later (PEP 688)."""
        return memoryview(self.numpy())  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.numpy().copy(), self.device.name)

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    # ---- text ----

    def __repr__(self) -> str:
        head = "Array("
        text = np.array2string(self.numpy(), separator=", ", prefix=head)
        shape = f", shape={self.shape}" if not self.size else ""
        return f"{head}{text}{shape}, dtype={self.dtype.name}, device={self.device.name!r})"

    def __str__(self) -> str:
        return str(self.numpy())

    def __format__(self, spec: str) -> str:
        return format(self.item() if spec and self.size == 1 else str(self), spec)


def _plain(view: NDArray[Any]) -> NDArray[Any]:
    """The elements in a type of NumPy's own, whose numbers are Python's."""
    return view if view.dtype.isbuiltin == 1 else view.astype(np.float32)


def _restored(x: NDArray[Any], device: str) -> Array:
    return asarray(x, device=device)


def as_key(key: Any) -> Any:
    """A key as NumPy takes it."""
    if isinstance(key, Array):
        return key.numpy()
    return tuple(map(as_key, key)) if isinstance(key, tuple) else key


def same_device(a: Array, b: Array) -> None:
    """LaunchFault where two arrays of one expression are in the memory of different devices."""
    if a.device is not b.device:
        raise LaunchFault(
            Diagnostic(
                "mixed-devices",
                f"one array is in the memory of device {a.device.name!r}, another one in that of {b.device.name!r}",
                help=f"move one of them: `b.to({a.device.name!r})`",
            )
        )


# ---- making ----


def allocate(device: Device, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of undefined contents in the device's memory."""
    if device.in_place:
        return Array(device, empty(shape, dtype), None)
    count = dtype.itemsize
    for extent in shape:
        count *= extent
    buffer = device.empty(count)
    return Array(device, buffer.view(shape, dtype), buffer)


def array(
    x: ArrayLike | Array,
    dtype: Any = None,
    copy: bool | None = True,
    device: Device | str | None = None,
) -> Array:
    """`x` in the memory of a device, the current one if none is named.

    Takes what `np.array` takes. The element type is kept, but for Python's floats, which are f32. With `copy=None` memory
    is shared where that is possible: an `Array` of the device is given back, and on `cpu` and `emulator` a C-contiguous,
    aligned NumPy array becomes the array's memory, so that each sees what is written to the other. With `copy=False`
    ValueError where it is not possible.

    LaunchFault where the language has no such element type, SizeError where there are more than 2³¹ − 1 elements.
    """
    place = device if isinstance(device, Device) else find(device) if device else current()
    wanted = _dtype(dtype)
    if not copy and isinstance(x, Array) and x.device is place and wanted in (None, x.dtype):
        return x
    found = _as_numpy(x, wanted)
    flags = found.flags
    if copy or isinstance(x, Array) or not (place.in_place and flags.c_contiguous and flags.aligned):
        if copy is False:
            raise ValueError(
                f"there is no array without a copy: the memory does not fit device {place.name!r}"
            )
        result = allocate(place, found.shape, found.dtype)
        result.numpy()[...] = found
        return result
    if copy is False and not np.may_share_memory(found, np.asarray(x)):
        raise ValueError("there is no array without a copy: the elements are converted")
    return Array(place, found, None)


def asarray(x: ArrayLike | Array, dtype: Any = None, device: Device | str | None = None) -> Array:
    """`x` in the memory of a device, without a copy where that is possible: `array(x, dtype, None, device)`."""
    return array(x, dtype, None, device)


def from_dlpack(x: Any, device: Device | str | None = None) -> Array:
    """The array of another library as an `Array`, without a copy where `asarray` makes none.

    LaunchFault where NumPy cannot read it: it is not in the host's memory, say, or its element type is none of NumPy's.
    """
    try:
        found = np.from_dlpack(x)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as e:
        reason = str(e) or type(e).__name__
        raise LaunchFault(
            Diagnostic(
                "dlpack-refused",
                f"{type(x).__module__.partition('.')[0]}.{type(x).__name__} cannot be read through DLPack: {reason}",
                help="bring it to the host's memory, in an element type that NumPy has",
            )
        ) from None
    return asarray(found, device=device)


def _dtype(given: Any) -> np.dtype[Any] | None:
    if given is None:
        return None
    try:
        return given.numpy if isinstance(given, DType) else np.dtype(given)
    except TypeError:
        raise LaunchFault(
            Diagnostic(
                "array-dtype", f"{given!r} is no element type", help="pass one of NumPy's: `np.float32`"
            )
        ) from None


def _as_numpy(x: ArrayLike | Array, wanted: np.dtype[Any] | None) -> NDArray[Any]:
    """NumPy's array of what becomes an `Array`, checked."""
    if hasattr(x, "mask") and isinstance(x, np.ndarray):
        raise LaunchFault(
            Diagnostic("not-an-array", "the array is masked, and the mask would be lost", help="fill it: `x.filled(0)`")
        )  # fmt: skip
    found = x.numpy() if isinstance(x, Array) else np.asarray(x)
    if wanted is None and found.dtype == np.float64 and not hasattr(x, "dtype"):
        wanted = np.dtype(np.float32)
    if wanted is not None:
        found = found.astype(wanted, copy=False)
    if from_numpy(found.dtype) is None:
        raise LaunchFault(
            Diagnostic("array-dtype", f"there is no element type for {describe_dtype(found.dtype)}",
                       help=way_out(found.dtype, "x"))
        )  # fmt: skip
    if found.size > INDEX_MAX:
        raise SizeError(
            Diagnostic(
                "array-too-large",
                f"the array has {found.size} elements, and an array has at most {INDEX_MAX}",
                help="split it",
            )
        )
    return found


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
