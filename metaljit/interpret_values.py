"""What a name holds in interpret mode, how it is typed, and how two values join.

    value = literal (a Python bool, int, float, str, None) | NumPy scalar | Unknown | Vector
          | tuple | Index | View | Local | what names stand for (a type, an operation, a function, …)

A Python number is a literal that takes its type from what it meets; a NumPy scalar has one. An `Unknown` is a typed
number without its value: types are found by running the same operations on those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from . import conversions
from .dtypes import BOOL, DTYPES, F32, I32, I64, U32, U64, DType, Type, Vec, from_numpy
from .frozen import frozen
from .source import Diagnostic, TypeFault

# A literal, a NumPy scalar, a container, or what a name stands for: the operations tell them apart.
Value: TypeAlias = Any


class NeedsConstant(Exception):
    """A value must be known where types are found: a loop over a constant range is taken turn by turn."""


class NoValue:
    """What a name holds that no path has given a value."""

    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE = NoValue()


@frozen
class Unknown:
    """A number of which only the type is known."""

    dtype: DType


@frozen
class Vector:
    """A vector: as many numbers of type `scalar` as it has lanes."""

    scalar: DType
    lanes: tuple[Value, ...]

    @property
    def type(self) -> Vec:
        return Vec(self.scalar, len(self.lanes))

    def __iter__(self) -> Iterator[Value]:
        return iter(self.lanes)

    def __repr__(self) -> str:
        return f"{self.type}({', '.join(map(str, self.lanes))})"


class Index(tuple[Value, ...]):
    """What `position()` and `index()` make: a tuple with arithmetic, element by element."""

    def __repr__(self) -> str:
        return f"index({', '.join(map(str, self))})"


@dataclass(eq=False)
class View:
    """An array parameter as seen here. `data` is None where types are found; one mode an axis, None guards."""

    name: str
    element: Type
    data: np.ndarray[Any, Any] | None
    shape: tuple[Value, ...]
    modes: tuple[str | None, ...]
    fill: Value = None
    writable: bool = False
    written: np.ndarray[Any, Any] | None = None  # of a threadgroup array: which elements have a value
    signature: Any = field(init=False)

    def __post_init__(self) -> None:
        shape = tuple(n if isinstance(n, int) else None for n in self.shape)
        self.signature = _numbered(self.element, shape, self.modes, self.writable)

    def __repr__(self) -> str:
        return f"<{self.element} array {self.name!r} of shape ({', '.join(map(str, self.shape))})>"


@dataclass(eq=False)
class Local:
    """A `local_array`. `data` holds its elements in row-major order; None where types are found."""

    element: Type
    shape: tuple[int, ...]
    data: list[Value] | None
    signature: Any = field(init=False)

    def __post_init__(self) -> None:
        self.signature = _numbered(self.element, self.shape)

    def __repr__(self) -> str:
        return f"<local {self.element} array {self.data}>"


def refuse(message: str) -> NoReturn:
    """A fault that the checker finds first, unless it stands in a `print`, which it does not look at."""
    raise TypeFault(Diagnostic("not-interpretable", message))


# ---- types ----

_SCALAR_TYPES: dict[type, DType] = {}


def dtype_of(value: Value) -> DType | None:
    """The type of a typed number, None for anything else."""
    found = _SCALAR_TYPES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, Unknown):
        return value.dtype
    if isinstance(value, np.generic):
        found = from_numpy(value.dtype)
        if found is not None:
            found = _SCALAR_TYPES[type(value)] = DTYPES[found.name]
    return found


def type_of(value: Value) -> Type | None:
    return value.type if isinstance(value, Vector) else dtype_of(value)


def is_literal(value: Value) -> bool:
    """A Python number (NumPy's float64 is one to Python, and never made here)."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def literal_type(value: float) -> DType:
    """The type of a literal on its own: bool, f32, i32 or else u32, i64, u64."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return F32
    for dtype in (I32, U32, I64, U64):
        if dtype.smallest <= value <= dtype.largest:
            return dtype
    refuse(f"the literal {value} fits no integer type")


def literal_as(value: float, dtype: DType) -> Value:
    """A literal as a typed number; it must fit."""
    if dtype is BOOL:
        return np.bool_(value)
    if dtype.is_integer:
        if isinstance(value, float) or not dtype.smallest <= value <= dtype.largest:
            refuse(f"the literal {value!r} is no {dtype}")
        return dtype.numpy.type(value)
    with np.errstate(all="ignore"):
        return dtype.numpy.type(value)


def literal_beside(value: float, other: DType | None) -> Value:
    """A literal takes the type of what it stands beside."""
    if isinstance(value, bool) or other is None or (other is BOOL and isinstance(value, int)):
        return literal_as(value, literal_type(value))
    if isinstance(value, float) and not other.is_float:
        return literal_as(value, F32)
    return literal_as(value, other)


def typed(value: Value) -> Value:
    """A number with its type: a literal gets its own."""
    if is_literal(value):
        return literal_as(value, literal_type(value))
    if dtype_of(value) is None and not isinstance(value, Vector):
        refuse(f"a number was expected and {value!r} found")
    return value


# ---- conversions ----


def convert(value: Value, target: Type) -> Value:
    """A value as `target`, as a cast does it; literals must fit. A number becomes every lane of a vector."""
    if isinstance(target, Vec):
        lanes = value.lanes if isinstance(value, Vector) else (value,) * target.lanes
        if len(lanes) != target.lanes:
            refuse(f"{value!r} is no {target}")
        return Vector(target.scalar, tuple(convert(x, target.scalar) for x in lanes))
    source = dtype_of(value)
    if source is target:
        return value
    if is_literal(value):
        return literal_as(value, target)
    if source is None:
        refuse(f"a number was expected and {value!r} found")
    if isinstance(value, Unknown):
        return Unknown(target)
    return conversions.convert(value, source, target)


def cast(value: Value, target: DType) -> Value:
    """`target(value)`: as `convert`, and a literal wraps or saturates instead of having to fit."""
    if not is_literal(value) or not target.is_integer:
        return convert(value, target)
    low, high = int(target.smallest), int(target.largest)
    if isinstance(value, float):
        whole = 0 if value != value else low if value <= low else high if value >= high else int(value)
    else:
        whole = (int(value) - low) % (1 << target.bits) + low
    return literal_as(whole, target)


# ---- joins ----

# None: no one type; a type; or one pattern an item of a tuple.
Pattern: TypeAlias = Any


def join(values: Sequence[Value]) -> Type | None:
    """The one type of numbers that meet: typed ones must agree, a literal adapts, and never to under 32 bits."""
    types = {t for t in map(type_of, values) if t is not None}
    literals = [v for v in values if is_literal(v)]
    numbers = len(literals) + sum(type_of(v) is not None for v in values)
    if len(types) > 1 or numbers < len(values) or not values:
        return None
    if not types:
        return _join_literals(literals)
    (base,) = types
    if isinstance(base, Vec):
        return base
    joined = base
    for v in literals:
        found = _join_literal(v, base)
        if found is None:
            return None
        if found is not base:
            joined = found if joined is base or found.is_float else joined
    return joined


def _join_literal(value: float, base: DType) -> DType | None:
    if isinstance(value, bool):
        return base if base is BOOL else None
    if isinstance(value, float):
        return F32
    if base is BOOL or (base.is_integer and base.bits < 32):
        return I32
    return F32 if base.is_float else base


def _join_literals(values: Sequence[float]) -> DType | None:
    if len({isinstance(v, bool) for v in values}) > 1:
        return None
    if any(isinstance(v, float) for v in values):
        return F32
    if isinstance(values[0], bool):
        return BOOL
    least, greatest = min(values), max(values)
    return next((t for t in (I32, U32, I64, U64) if t.smallest <= least and greatest <= t.largest), None)


def join_patterns(values: Sequence[Value]) -> Pattern:
    """The types that values have after they met, item by item for tuples."""
    if all(isinstance(v, tuple) for v in values) and len({len(v) for v in values}) == 1:
        return tuple(join_patterns(column) for column in zip(*values, strict=True))
    return join(values)


def met(a: Value, b: Value) -> Value:
    """What is known of a value that is `a` or `b`: itself where they are alike, NO_VALUE where they have no type."""
    if signature(a) == signature(b):
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        items = [met(x, y) for x, y in zip(a, b, strict=True)]
        return Index(items) if isinstance(a, Index) and isinstance(b, Index) else tuple(items)
    type = join((a, b))
    return NO_VALUE if type is None else unknown(type)


def shape_of(value: Value) -> Pattern:
    """The pattern that `conform` gives a value that is to be like this one."""
    if isinstance(value, tuple):
        return tuple(map(shape_of, value))
    return type_of(value)


def conform(value: Value, pattern: Pattern) -> Value:
    """The value with the types of a pattern; None leaves it as it is."""
    if pattern is None or value is NO_VALUE:
        return value
    if isinstance(pattern, tuple):
        items = [conform(v, p) for v, p in zip(value, pattern, strict=True)]
        return Index(items) if isinstance(value, Index) else tuple(items)
    return convert(value, pattern)


# ---- values without their numbers ----


def abstract(value: Value) -> Value:
    """What is known of a value before the kernel runs: literals stay, numbers become `Unknown`."""
    dtype = dtype_of(value)
    if dtype is not None:
        return Unknown(dtype)
    match value:
        case Vector(scalar, lanes):
            return Vector(scalar, (Unknown(scalar),) * len(lanes))
        case Index():
            return Index(map(abstract, value))
        case tuple():
            return tuple(map(abstract, value))
        case View(name, element, _, shape, modes, fill, writable):
            return View(name, element, None, tuple(map(abstract, shape)), modes, abstract(fill), writable)
        case Local(element, shape, _):
            return Local(element, shape, None)
        case _:
            return value


# Signatures of arrays: small numbers, because a type takes long to hash.
_SIGNATURES: dict[Any, tuple[str, int]] = {}


def _numbered(*key: Any) -> tuple[str, int]:
    return _SIGNATURES.setdefault(key, ("array", len(_SIGNATURES)))


def signature(value: Value) -> Any:
    """A key that is equal for values that are equal once abstract."""
    if isinstance(value, np.generic):
        return type(value)
    if is_literal(value):
        return type(value), repr(value)
    match value:
        case Unknown(dtype):
            return dtype.numpy.type
        case Vector(scalar, lanes):
            return scalar.numpy.type, len(lanes)
        case tuple():
            return type(value), tuple(map(signature, value))
        case View() | Local():
            return value.signature
        case str() | None:
            return value
        case _:
            return id(value)


def unknown(type: Type) -> Value:
    if isinstance(type, Vec):
        return Vector(type.scalar, (Unknown(type.scalar),) * type.lanes)
    return Unknown(type)


def known(value: Value, what: str) -> Any:
    """A number as Python's own, or a tuple of them."""
    if isinstance(value, tuple):
        return tuple(known(v, what) for v in value)
    if isinstance(value, Unknown | Vector):
        raise NeedsConstant(what)
    return value.item() if isinstance(value, np.generic) else value
