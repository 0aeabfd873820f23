"""The values of a call against the parameters of a program: what is taken, and what is refused and why.

In: what the user passed. Out: arrays of the declared element type, never converted, and numbers that
survive as their parameter's type. Shapes are checked by `shapes`.
"""

from __future__ import annotations

import math
import numbers
import reprlib
import struct
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metaljit.dtypes import BF16, BOOL, F16, DType, from_numpy
from metaljit.program import ArrayParam, Plan, Program, ScalarParam
from metaljit.runtime.array import Array, describe_dtype, way_out
from metaljit.runtime.device import Device
from metaljit.runtime.shapes import fault, written
from metaljit.source import LaunchFault, MetaljitError

Plain: TypeAlias = bool | int | float
_FLOAT_MAX = {16: 65504.0, 32: 3.4028234663852886e38}
_BF16_MAX = 3.3895313892515355e38


def admit(program: Program | Plan, device: Device, param: ArrayParam, value: object) -> NDArray[Any] | Array:
    """The argument for an array parameter, as it is; LaunchFault for anything else."""
    found: NDArray[Any] | Array
    match value:
        case Array():
            _same_device(program, device, param.name, value)
            found = value
        case np.ndarray() if not hasattr(value, "mask"):
            found = np.asarray(value)  # a subclass may change what indexing means
        case np.generic() if not param.shape and param.lanes == 1:
            found = np.asarray(value)
        case _:
            raise _no_array(program, param, value)
    if found.dtype != param.dtype.numpy:
        raise _wrong_dtype(program, param, found.dtype)
    return found


def _same_device(program: Program | Plan, device: Device, name: str, array: Array) -> None:
    if array.device is device:
        return
    raise fault(
        LaunchFault,
        "mixed-devices",
        program,
        f"`{name}` is in the memory of device {array.device.name!r}, and the kernel runs on {device.name!r}",
        help=f"move it with `mj.asarray({name}, device={device.name!r})`, or run with "
        f"`.on({array.device.name!r})`",
    )


def _no_array(program: Program | Plan, param: ArrayParam, value: object) -> MetaljitError:
    target = "bool_" if param.dtype == BOOL else param.dtype.numpy.name
    spelled = "ml_dtypes.bfloat16" if param.dtype == BF16 else f"np.{target}"
    found = f"a {type(value).__module__.split('.')[0]}.{type(value).__name__}"
    match value:
        case list() | tuple():
            found = f"a {type(value).__name__}"
        case np.generic() | numbers.Number():
            found = f"the number {value!r}"
        case np.ndarray():
            found = "a masked array, whose mask would be lost"
        case None:
            found = "None"
    return fault(
        LaunchFault,
        "not-an-array",
        program,
        f"`{param.name}` is declared as {written(param)} and takes a NumPy array, not {found}",
        help=f"pass `np.asarray({param.name}, dtype={spelled})`",
        param=param,
    )


def _wrong_dtype(program: Program | Plan, param: ArrayParam, dtype: np.dtype[Any]) -> MetaljitError:
    reason = "; arrays are never converted silently"
    if dtype == np.float64:
        reason = ": the hardware has no f64"
    return fault(
        LaunchFault,
        "array-dtype",
        program,
        f"`{param.name}` is declared as {written(param)}, and got an array of "
        f"{describe_dtype(dtype)}{reason}",
        help=way_out(dtype, param.name, param.dtype.numpy),
        param=param,
    )


def scalar(program: Program | Plan, param: ScalarParam, value: object) -> tuple[Plain, ...]:
    """The lanes of a number or a vector, each one a Python number that survives as the parameter's type."""
    if param.lanes == 1:
        return (_survivor(program, param, value, param.name),)
    items = value.numpy() if isinstance(value, Array) else value
    if isinstance(items, np.ndarray) and items.ndim == 1:
        items = list(items)
    if not isinstance(items, list | tuple) or len(items) != param.lanes:
        raise fault(
            LaunchFault,
            "not-a-vector",
            program,
            f"`{param.name}` is declared as {param.dtype}x{param.lanes}, and got {_shown(value)}",
            help=f"pass a tuple of {param.lanes} numbers",
            param=param,
        )
    return tuple(_survivor(program, param, v, f"{param.name}[{i}]") for i, v in enumerate(items))


def _survivor(program: Program | Plan, param: ScalarParam, value: object, name: str) -> Plain:
    if isinstance(value, Array):
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    plain = _plain(value)
    if plain is None:
        raise fault(
            LaunchFault,
            "not-a-number",
            program,
            f"`{name}` is declared as {param.dtype}, and got {_shown(value)}",
            help=f"pass a Python or NumPy number that {param.dtype} holds",
            param=param,
        )
    kept = _convert(param.dtype, plain)
    if kept is None:
        raise fault(
            LaunchFault,
            "number-does-not-fit",
            program,
            f"`{name}` is declared as {param.dtype}, which cannot hold {_number(plain)}",
            help=_range(param.dtype),
            param=param,
        )
    return kept


def _plain(value: object) -> Plain | None:
    match value:
        case bool() | int() | float():
            return value
        case np.bool_():
            return bool(value)
        case np.integer():
            return int(value)
        case np.floating():
            return float(value)
        case np.generic() if from_numpy(value.dtype) == BF16:
            return float(value)
    return None


def _convert(dtype: DType, value: Plain) -> Plain | None:
    """The value as the type holds it, or None where it would change; floats may round, and not overflow."""
    match dtype.kind:
        case "bool":
            return bool(value) if value in (0, 1) else None
        case "int" | "uint":
            whole = isinstance(value, int) or (math.isfinite(value) and value == int(value))
            return int(value) if whole and dtype.smallest <= value <= dtype.largest else None
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number) and math.isinf(_rounded(dtype, number)):
        return None
    return number


def _rounded(dtype: DType, number: float) -> float:
    try:
        if dtype == BF16:
            return from_bf16(to_bf16(number))
        code = "e" if dtype == F16 else "f"
        return float(struct.unpack(code, struct.pack(code, number))[0])
    except OverflowError:
        return math.inf


def to_bf16(number: float) -> int:
    """The upper 16 bits of the nearest bfloat16, halves to even; NaN stays NaN. OverflowError beyond f32."""
    bits: int = struct.unpack("I", struct.pack("f", number))[0]
    if number != number:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def from_bf16(bits: int) -> float:
    return float(struct.unpack("f", struct.pack("I", bits << 16))[0])


def _range(dtype: DType) -> str:
    match dtype.kind:
        case "bool":
            return "pass True or False"
        case "int" | "uint":
            return f"pass a whole number from {dtype.smallest} to {dtype.largest}"
    largest = _BF16_MAX if dtype == BF16 else _FLOAT_MAX[dtype.bits]
    return f"pass a number of magnitude up to {largest:.6g}"


def _number(value: Plain) -> str:
    """The number as written, but for integers so long that Python itself refuses to write them."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _shown(value: object) -> str:
    return f"{reprlib.repr(value)} ({type(value).__name__})"
