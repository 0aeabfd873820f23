"""What the shim's tests share: functions compiled in loops over arrays, their calls, and errors in ulps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaljit.runtime import library

Array = NDArray[Any]

NUMPY: dict[str, Any] = {
    "bool": np.bool_,
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
}


def function(name: str, parameters: Sequence[str], body: str) -> str:
    """An exported function whose last parameter is the count `n`."""
    signature = ", ".join([*parameters, "uint n"])
    return f'extern "C" __attribute__((visibility("default"))) void {name}({signature}) {{ {body} }}\n'


def loop(name: str, result: str, operands: Sequence[str], expression: str) -> str:
    """A function that stores `expression` of a[i], b[i], … (MSL scalar types `operands`) to o[i]."""
    arrays = [f"const {t} *__restrict {letter}" for t, letter in zip(operands, "abcd", strict=False)]
    return function(name, [f"{result} *__restrict o", *arrays], f"for (uint i = 0; i < n; i++) {expression};")


def build(
    functions: Sequence[str], flags: Sequence[str] = (), header: str = '#include "metaljit_cpu.h"\n'
) -> Any:
    return library.load(header + "".join(functions), "a test of the shim", flags)


def call(lib: ctypes.CDLL, name: str, n: int, *arrays: Array) -> None:
    lib[name](*(ctypes.c_void_p(a.ctypes.data) for a in arrays), ctypes.c_uint(n))


def evaluate(lib: ctypes.CDLL, name: str, result: str, *operands: Array) -> Array:
    """The results of a `loop`."""
    operands = tuple(np.ascontiguousarray(a) for a in operands)
    out: Array = np.empty(operands[0].size, NUMPY[result])
    call(lib, name, out.size, out, *operands)
    return out


def same_bits(a: Array, b: Array) -> Array:
    """Elementwise: equal including the sign of zero, or both NaN."""
    same: Array = ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
    return same


def ulp_errors(got: Array, exact: Array) -> Array:
    """|got - exact| in ulps of got's type; infinite where only one is NaN, or a zero has the wrong sign.

    `exact` is float64. Beyond the largest finite value an ulp stays what it is there, and infinity stands for
    the next power of two.
    """
    info = np.finfo(got.dtype)
    limit = np.ldexp(1.0, info.maxexp)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = exact.astype(got.dtype)
        want, have = np.clip(exact, -limit, limit), np.clip(got.astype(np.float64), -limit, limit)
    exponent = np.frexp(np.where(np.isfinite(exact), exact, limit))[1].clip(info.minexp + 1, info.maxexp)
    with np.errstate(invalid="ignore"):
        errors = np.abs(have - want) / np.ldexp(1.0, exponent - info.nmant - 1)
    wrong_zero = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    errors = np.where(
        np.isnan(got) | np.isnan(exact), np.where(np.isnan(got) & np.isnan(exact), 0.0, np.inf), errors
    )
    return np.where(wrong_zero, np.inf, errors)


def worst(got: Array, exact: Array, *operands: Array) -> tuple[float, str]:
    """The largest error and a sentence about where it is."""
    errors = ulp_errors(got, exact)
    i = int(np.argmax(errors))
    at = ", ".join(repr(a[i]) for a in operands)
    return float(errors[i]), f"{errors[i]:.3f} ulp at ({at}): {got[i]!r} for {exact[i]!r}"
