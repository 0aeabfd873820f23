"""Calls of interpret mode: casts and constructors, operations, the language's own functions, reductions.

In: what is called, and values. Out: a value. `place` is where the call stands: it knows the thread's position,
and how device functions are called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from . import conversions
from . import interpret_tiles as tiles
from . import interpret_vectors as vectors
from .dtypes import BOOL, F32, I32, U32, DType, Type, Vec
from .frozen import frozen
from .interpret_arrays import as_index, atomic, bordered, local_array, whole
from .interpret_groups import WAITING
from .interpret_operators import apply, binary, combine, is_float, truth
from .interpret_reductions import STEPS, reduce, result_type, sum_type
from .interpret_values import (
    Index,
    Local,
    NeedsConstant,
    Unknown,
    Value,
    Vector,
    View,
    cast,
    convert,
    dtype_of,
    is_literal,
    known,
    refuse,
    type_of,
    typed,
)
from .operations import OPERATIONS, Operation
from .symbols import ATOMICS, THREAD, Builtin, FunctionText


class Place(Protocol):
    """What a call may ask about where it stands."""

    real: bool  # False where only types are found

    def position(self) -> Value: ...
    def thread(self, name: str) -> Value: ...
    def shared(self, element: Type, extents: Sequence[int]) -> View: ...
    def function(self, text: FunctionText, args: Sequence[Value], named: Mapping[str, Value]) -> Value: ...


def call(place: Place, callee: Value, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """`callee(*args, **named)`."""
    match callee:
        case DType():
            (value,) = args
            return _cast(value, callee)
        case Vec():
            return _vector(args, callee)
        case Operation():
            return apply(callee, args)
        case FunctionText():
            return place.function(callee, args, named)
        case Builtin(name) if name in TABLE:
            return TABLE[name](place, *args, **named)
    refuse(f"{callee!r} cannot be called in a kernel")


def wants_truth(callee: Value) -> bool:
    """Whether only the truth of the first argument counts."""
    named_bool = isinstance(callee, Builtin) and callee.name == "bool"
    return named_bool or callee is BOOL or callee is OPERATIONS["where"]


def _cast(value: Value, target: DType) -> Value:
    if isinstance(value, Vector):
        refuse(f"{value.type} is no {target}")
    return cast(value, target)


def _vector(args: Sequence[Value], target: Vec) -> Value:
    """From lanes, vectors and numbers in a row; one number becomes every lane."""
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    if len(args) == 1 and not isinstance(args[0], Vector):
        return Vector(target.scalar, (cast(args[0], target.scalar),) * target.lanes)
    parts = [x for a in args for x in (a.lanes if isinstance(a, Vector) else (a,))]
    if len(parts) != target.lanes:
        refuse(f"{target} was given {len(parts)} lanes")
    return Vector(target.scalar, tuple(cast(x, target.scalar) for x in parts))


def attribute(value: Value, name: str) -> Value:
    """`value.name` of an array or a vector."""
    match value, name:
        case ((View() | Local()), "shape"):
            return tuple(value.shape)
        case ((View() | Local()), "ndim"):
            return len(value.shape)
        case ((View() | Local()), "dtype"):
            return value.element.scalar
        case _, "dtype" if type_of(value) is not None:
            return type_of(value).scalar  # type: ignore[union-attr]
        case Vector(scalar, lanes), _:
            for letters in ("xyzw", "rgba"):
                if all(n in letters[: len(lanes)] for n in name):
                    picked = tuple(lanes[letters.index(n)] for n in name)
                    return picked[0] if len(picked) == 1 else Vector(scalar, picked)
    refuse(f"{value!r} has no attribute {name!r}")


# ---- iteration ----


@frozen
class Range:
    """`range(…)`: its numbers are i32."""

    start: Value
    stop: Value
    step: int = 1

    @property
    def is_constant(self) -> bool:
        return is_literal(self.start) and is_literal(self.stop)

    def __iter__(self) -> Iterator[Value]:
        start, stop = whole(self.start, "a range"), whole(self.stop, "a range")
        return map(np.int32, range(start, stop, self.step))


def _range(place: Place, *args: Value) -> Range:
    bounds = [as_index(a, "the bound of a range") for a in args]
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    return Range(start, stop, whole(bounds[2], "the step of a range") if len(bounds) == 3 else 1)


def iterate(value: Value) -> Iterable[Value]:
    """What a `for` runs over."""
    if isinstance(value, tuple | Range):
        return value
    refuse(f"a loop runs over a range or a tuple, found {value!r}")


def _literal_items(value: Value) -> tuple[Value, ...]:
    """The items of a tuple, or the numbers of a constant range, beside others in `zip` and the like."""
    if isinstance(value, Range):
        return tuple(range(known(value.start, "a range"), known(value.stop, "a range"), value.step))
    return tuple(iterate(value))


def _zip(place: Place, *columns: Value) -> Value:
    return tuple(zip(*map(_literal_items, columns), strict=True))


# ---- indices ----


def _index(place: Place, *items: Value) -> Index:
    if len(items) == 1 and isinstance(items[0], tuple):
        items = items[0]
    return Index(map(as_index, items))


def _axis(axis: Value, count: int) -> int:
    at = known(axis, "an axis")
    if not isinstance(at, int) or not -count <= at < count:
        refuse(f"there is no axis {at} among {count}")
    return at % count


def _put(place: Place, p: Value, axis: Value, k: Value) -> Value:
    at = _axis(axis, len(p))
    return type(p)((*p[:at], as_index(k), *p[at + 1 :]))


def _insert(place: Place, p: Value, axis: Value, k: Value) -> Value:
    at = _axis(axis, len(p) + 1)
    return type(p)((*p[:at], as_index(k), *p[at:]))


def _drop(place: Place, p: Value, axis: Value) -> Value:
    at = _axis(axis, len(p))
    return type(p)((*p[:at], *p[at + 1 :]))


def _offsets(place: Place, rank: Value, radius: Value = 1) -> Value:
    n, r = known(rank, "the rank"), known(radius, "the radius")
    return tuple(itertools.product(range(-r, r + 1), repeat=n))


def _len(place: Place, value: Value) -> Value:
    match value:
        case View() | Local():
            return value.shape[0]
        case Vector(_, lanes):
            return len(lanes)
        case tuple() | str():
            return len(value)
    refuse(f"{value!r} has no length")


# ---- arrays ----


def _unchanged(place: Place, value: Value) -> Value:
    """`unchecked` and `uniform` are promises; here every index is checked and every value what it is."""
    return value


def _local_array(place: Place, element: Value, *extents: Value, values: Value = None) -> Value:
    if values is None and extents and isinstance(extents[-1], tuple):
        *extents, values = extents  # type: ignore[assignment]
    shape = [known(n, "the extent of a local array") for n in extents]
    if not shape and values is not None:
        shape = [len(values)]
    return local_array(_element(element), shape, values, real=place.real)


def _threadgroup_array(place: Place, element: Value, *extents: Value) -> Value:
    return place.shared(_element(element), [known(n, "the extent of a threadgroup array") for n in extents])


def _collective(name: str) -> Callable[..., Value]:
    """Its type; where there are numbers, the threads wait for each other instead of calling it."""

    def row(place: Place, value: Value = None, *lane: Value, exclusive: Value = False) -> Value:
        if place.real:
            refuse(f"{name} cannot be called here")
        if name in ("barrier", "simd_ballot"):
            return None if name == "barrier" else Unknown(U32)
        dtype = dtype_of(typed(value))
        assert dtype is not None
        return Unknown(sum_type(dtype) if name.endswith("sum") else dtype)

    return row


def _element(value: Value) -> Type:
    if isinstance(value, Builtin) and value.name == "bool":
        return BOOL
    if not isinstance(value, DType | Vec):
        refuse(f"an element type was expected, found {value!r}")
    return value


def _atomic(name: str) -> Callable[..., Value]:
    return lambda place, array, index, *values: atomic(name, array, index, *values)


# ---- numbers ----


def _saturate(place: Place, target: Value, value: Value) -> Value:
    return _with_types(conversions.saturate, value, target)


def _bitcast(place: Place, target: Value, value: Value) -> Value:
    if isinstance(value, Vector):
        return Vector(target.scalar, tuple(_with_types(conversions.bitcast, x, target.scalar) for x in value))
    return _with_types(conversions.bitcast, value, target)


def _with_types(change: Callable[[Any, DType, DType], Any], value: Value, target: DType) -> Value:
    source = typed(value)
    if isinstance(source, Unknown):
        return Unknown(target)
    dtype = dtype_of(source)
    assert dtype is not None
    return change(source, dtype, target)


def _wide(place: Place, target: Value) -> Type:
    scalar = sum_type(_element(target).scalar)
    return Vec(scalar, target.lanes) if isinstance(target, Vec) else scalar


def _python_cast(target: DType) -> Callable[..., Value]:
    def row(place: Place, value: Value) -> Value:
        if target is BOOL:
            return truth(value)
        if is_literal(value):
            return int(value) if target is I32 else float(value)
        return _cast(value, target)

    return row


def _abs(place: Place, value: Value) -> Value:
    return abs(value) if is_literal(value) else apply(OPERATIONS["absolute"], (value,))


def _pow(place: Place, base: Value, exponent: Value) -> Value:
    return binary("**", base, exponent)


def _round(place: Place, value: Value, digits: Value = 0) -> Value:
    value, places = typed(value), known(digits, "the digits of round")
    if not any(is_float(x) for x in (value if isinstance(value, Vector) else (value,))):
        return value
    rint = OPERATIONS["rint"]
    if places == 0:
        return apply(rint, (value,))
    scale = float(10 ** abs(places))
    up, down = ("*", "/") if places > 0 else ("/", "*")
    return binary(down, apply(rint, (binary(up, value, scale),)), scale)


def _ceil_div(place: Place, a: Value, b: Value) -> Value:
    """Rounded up; as `//`, 0 where the divisor is 0."""
    quotient, rest = binary("//", a, b), binary("%", a, b)
    more = binary("!=", rest, 0)
    if isinstance(more, bool):
        return quotient + more
    return binary("+", quotient, convert(more, type_of(quotient) or I32))


# ---- reductions of tuples ----
def _reduction(name: str) -> Callable[..., Value]:
    """Of a tuple or a vector's lanes; `min` and `max` also of several values."""

    def row(place: Place, *values: Value) -> Value:
        if len(values) == 1:
            (value,) = values
            if not isinstance(value, tuple | Vector):
                refuse(f"{name} reduces a generator or a tuple, found {value!r}")
            values = tuple(value)
        if name in ("any", "all"):
            return combine("or" if name == "any" else "and", values)
        if name in ("min", "max"):
            return _choice(name, values)
        if any(isinstance(v, Unknown) for v in values):
            return Unknown(result_type(name, _common(values)))  # type: ignore[arg-type]
        if all(map(is_literal, values)) and name in ("sum", "prod"):
            return sum(values) if name == "sum" else int(np.prod(values, dtype=object))
        return reduce(name, _common(values), values)

    return row


def _choice(name: str, values: Sequence[Value]) -> Value:
    total = values[0]
    for v in values[1:]:
        if is_literal(total) and is_literal(v):
            total = min(total, v) if name == "min" else max(total, v)
        else:
            total = apply(OPERATIONS[STEPS[name]], (total, v))
    return total


def _common(values: Sequence[Value]) -> Type:
    """The type that `+` would give the values."""
    found = type_of(
        vectors.total([Vector(v.scalar, v.lanes) if isinstance(v, Vector) else v for v in values])
    )
    return found if found is not None else I32


# ---- statements spelled as calls ----


def _nothing(place: Place, *args: Value) -> None:
    """`require` and `static_assert` have been checked before anything runs."""


def _static_assert(place: Place, condition: Value, message: Value = "") -> None:
    if isinstance(condition, Unknown):
        raise NeedsConstant("static_assert")


TABLE: dict[str, Callable[..., Value]] = {
    "range": _range,
    "zip": _zip,
    "enumerate": lambda place, value: tuple(enumerate(_literal_items(value))),
    "reversed": lambda place, value: _literal_items(value)[::-1],
    "position": lambda place: place.position(),
    **{n: (lambda place, n=n: place.thread(n)) for n in THREAD},
    "index": _index,
    "put": _put,
    "insert": _insert,
    "drop": _drop,
    "offsets": _offsets,
    "len": _len,
    "border": lambda place, view, mode, value=None: bordered(view, mode, value),
    "unchecked": _unchanged,
    "uniform": _unchanged,
    "local_array": _local_array,
    "threadgroup_array": _threadgroup_array,
    **{n: _collective(n) for n in WAITING},
    **tiles.TABLE,
    **{f"atomic_{n}": _atomic(n) for n in ATOMICS},
    "saturate": _saturate,
    "bitcast": _bitcast,
    "wide": _wide,
    "int": _python_cast(I32),
    "float": _python_cast(F32),
    "bool": _python_cast(BOOL),
    "abs": _abs,
    "pow": _pow,
    "round": _round,
    "ceil_div": _ceil_div,
    "dot": lambda place, *v: vectors.dot(*v),
    "cross": lambda place, *v: vectors.cross(*v),
    "length": lambda place, *v: vectors.length(*v),
    "normalize": lambda place, *v: vectors.normalize(*v),
    "reflect": lambda place, *v: vectors.reflect(*v),
    "mix": lambda place, x, y, a: apply(OPERATIONS["mix"], (x, y, a)),
    **{n: _reduction(n) for n in ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")},
    "require": _nothing,
    "static_assert": _static_assert,
}
