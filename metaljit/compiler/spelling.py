"""Names, types and literals as Metal spells them.

In: the user's names, element types, numbers. Out: identifiers that collide with nothing, type names, literals
that mean exactly the number also where the compiler assumes that there are no NaN or infinities.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from pathlib import Path

import numpy as np

from ..dtypes import BF16, BOOL, DType, Type, Vec

_REFUSED = re.compile(
    r"^(atomic|simd|quad|metal|unpack|pack|packed|texture|depth|simdgroup|M|METAL|TARGET|mj)_"
    r"|^(u?int|u?char|u?short|u?long|half|bfloat|float|double|bool)\d"
)


@cache
def reserved() -> frozenset[str]:
    """Words that Metal, C++ or the generated text itself give a meaning."""
    text = Path(__file__).with_name("reserved.txt").read_text("ascii")
    return frozenset(text.split())


def identifier(name: str) -> str:
    """The user's name as an identifier of Metal: ASCII, no `__`, no leading `_`, nothing reserved."""
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c == "_") else f"_u{ord(c):x}_" if c.isalnum() else "_"
        for c in name
    )
    plain = re.sub(r"__+", "_", plain).strip("_")
    if not plain or plain[0].isdigit() or plain in reserved() or _REFUSED.match(plain):
        plain = f"v_{plain}".rstrip("_")
    return plain


class Scope:
    """Identifiers in use; each new one is the user's name, or the name with the least free number."""

    def __init__(self, *taken: str) -> None:
        self.taken = set(taken)

    def new(self, name: str) -> str:
        base = identifier(name)
        found, k = base, 0
        while found in self.taken:
            k += 1
            found = f"{base}_{k}"
        self.taken.add(found)
        return found


def type_name(type: Type) -> str:
    """A value's type: bf16 values are float."""
    scalar = "float" if type.scalar == BF16 else type.scalar.msl
    return f"{scalar}{type.lanes}" if isinstance(type, Vec) else scalar


def storage_name(dtype: DType) -> str:
    """An element's type in a buffer: a bool is a byte, a bf16 its 16 bits."""
    return "uchar" if dtype == BOOL else dtype.msl


def literal(value: int | float | bool, dtype: DType) -> str:
    """A number as text of exactly its value and type."""
    match dtype.kind:
        case "bool":
            return "true" if value else "false"
        case "float":
            return _float(float(value), dtype)
    number = int(value)
    if dtype.bits < 32:
        return f"{dtype.msl}({number})"
    suffix = {"i32": "", "u32": "u", "i64": "l", "u64": "ul"}[dtype.name]
    if dtype.kind == "int" and number == dtype.smallest:
        return f"({number + 1}{suffix} - 1{suffix})"
    return f"{number}{suffix}"


def _float(value: float, dtype: DType) -> str:
    with np.errstate(over="ignore"):
        rounded = np.asarray(value, np.float64).astype(dtype.numpy)
        single = np.float32(rounded)
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    if not math.isfinite(single) or 0 < abs(single) < 1.1754944e-38:
        # no spelling of these survives a compiler that assumes ordinary numbers
        text = f"as_type<float>(0x{bits:08x}u)"
    elif single == 0 and math.copysign(1, single) < 0:
        text = "as_type<float>(0x80000000u)"
    else:
        text = str(single)
        text = (text if "." in text or "e" in text else f"{text}.0") + "f"
    return f"half({text})" if dtype.name == "f16" else text
