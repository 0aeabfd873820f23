"""Element types: one row per type, read by the checker, the printer, the launcher and the tests."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from .frozen import frozen

Kind = Literal["bool", "int", "uint", "float"]


@frozen
class ArrayOf:
    """`f32[H, W]` as Python evaluates an annotation. The compiler reads the text, not this."""

    element: object
    axes: object

    def __repr__(self) -> str:
        axes = self.axes if isinstance(self.axes, tuple) else (self.axes,)
        return f"{self.element!r}[{', '.join(map(repr, axes))}]"


class Subscriptable:
    """What may stand before `[…]` in an annotation."""

    def __getitem__(self, axes: object) -> ArrayOf:
        return ArrayOf(self, axes)


@frozen
class DType(Subscriptable):
    """A scalar element type: its name in the language, its kind, its width in bits and its MSL spelling."""

    name: str
    kind: Kind
    bits: int
    msl: str

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    @property
    def nbytes(self) -> int:
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned integer; bool is not one."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")

    @property
    def lanes(self) -> int:
        return 1

    @property
    def scalar(self) -> DType:
        return self

    @property
    def numpy(self) -> np.dtype[Any]:
        return _numpy(self.name)

    @property
    def smallest(self) -> int | float:
        """The identity of max: −inf for floats, else the least value."""
        if self.kind == "float":
            return float("-inf")
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def largest(self) -> int | float:
        """The identity of min: inf for floats, else the greatest value."""
        match self.kind:
            case "float":
                return float("inf")
            case "int":
                return (1 << (self.bits - 1)) - 1
            case "uint":
                return (1 << self.bits) - 1
            case _:
                return 1


BOOL = DType("bool", "bool", 8, "bool")
I8 = DType("i8", "int", 8, "char")
I16 = DType("i16", "int", 16, "short")
I32 = DType("i32", "int", 32, "int")
I64 = DType("i64", "int", 64, "long")
U8 = DType("u8", "uint", 8, "uchar")
U16 = DType("u16", "uint", 16, "ushort")
U32 = DType("u32", "uint", 32, "uint")
U64 = DType("u64", "uint", 64, "ulong")
F16 = DType("f16", "float", 16, "half")
# MSL 2.3 has no bfloat: values live as float and are stored as the upper 16 bits.
BF16 = DType("bf16", "float", 16, "ushort")
F32 = DType("f32", "float", 32, "float")

DTYPES: dict[str, DType] = {d.name: d for d in (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32)}
GROUPS: dict[str, tuple[DType, ...]] = {
    "float": (F16, BF16, F32),
    "int": (I8, I16, I32, I64, U8, U16, U32, U64),
    "number": (I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32),
}


@frozen
class Vec(Subscriptable):
    """A vector type of 2 to 4 lanes."""

    scalar: DType
    lanes: int

    @property
    def name(self) -> str:
        return f"{self.scalar.name}x{self.lanes}"

    @property
    def kind(self) -> Kind:
        return self.scalar.kind

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


Type: TypeAlias = DType | Vec
VECTORS: dict[str, Vec] = {v.name: v for d in DTYPES.values() for v in (Vec(d, 2), Vec(d, 3), Vec(d, 4))}
TYPES: dict[str, Type] = {**DTYPES, **VECTORS}


def with_lanes(dtype: DType, lanes: int) -> Type:
    return dtype if lanes == 1 else Vec(dtype, lanes)


_NUMPY_NAMES = {
    "bool": "bool",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "f32": "float32",
}  # fmt: skip


@cache
def _numpy(name: str) -> np.dtype[Any]:
    if name == "bf16":
        import ml_dtypes  # costs milliseconds, and few kernels need it

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(_NUMPY_NAMES[name])


_FROM_NUMPY: dict[Any, DType] = {np.dtype(n): DTYPES[d] for d, n in _NUMPY_NAMES.items()}


def from_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The element type of a NumPy dtype, or None where the language has none (float64, complex, …)."""
    found = _FROM_NUMPY.get(dtype)
    if found is None and dtype.name == "bfloat16":
        return BF16
    return found


def promote(a: DType, b: DType) -> DType | None:
    """NumPy 2's promotion with float64 read as float32; None for u64 with a signed integer."""
    if a == b:
        return a
    if {a.kind, b.kind} == {"int", "uint"} and 64 in {d.bits for d in (a, b) if d.kind == "uint"}:
        return None
    if {a, b} == {F16, BF16}:
        return F32
    if BF16 in (a, b):  # ml_dtypes joins with NumPy's table only in part
        other = b if a == BF16 else a
        return BF16 if other.kind == "bool" or other.bits == 8 else F32
    joined = np.promote_types(a.numpy, b.numpy)
    return F32 if joined.kind == "f" and joined.itemsize > 4 else _FROM_NUMPY[joined]
