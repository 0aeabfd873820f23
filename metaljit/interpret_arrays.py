"""Arrays of interpret mode: reading through borders and guards, writing, atomics, local arrays, tables.

In: a view or a local array, and index values. Out: an element, or a changed array. A view without data has
elements of its type and no numbers; a write to it does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .dtypes import I32, Type, Vec
from .interpret_groups import Request, later
from .interpret_operators import apply, binary
from .interpret_values import (
    Local,
    NeedsConstant,
    Unknown,
    Value,
    Vector,
    View,
    convert,
    dtype_of,
    is_literal,
    join,
    refuse,
    type_of,
    unknown,
)
from .operations import OPERATIONS
from .symbols import BORDER_MODES

INDEX_MAX = 2**31 - 1


class UndefinedRead(Exception):
    """An element of a threadgroup array is read that nothing has written."""


def flat(indices: Sequence[Value]) -> list[Value]:
    """`u[p]` with a tuple p is `u[*p]`."""
    found: list[Value] = []
    for i in indices:
        found += i if isinstance(i, tuple) else (i,)
    return found


def whole(value: Value, what: str) -> int:
    """An index as Python's own integer; Unknown is not allowed."""
    dtype = dtype_of(value)
    if isinstance(value, bool | float) or (dtype is None and not isinstance(value, int)):
        refuse(f"{what} must be an integer, found {value!r}")
    if dtype is not None and not dtype.is_integer:
        refuse(f"{what} must be an integer, found {dtype}")
    if isinstance(value, Unknown):
        raise NeedsConstant(what)
    return int(value)


def as_index(value: Value, what: str = "an index") -> Value:
    """An integer as i32 (a literal stays one); what i32 cannot hold becomes its end, which lies outside too."""
    if type(value) is np.int32 or type(value) is int:
        return value
    if isinstance(value, Unknown) and value.dtype.is_integer:
        return Unknown(I32)
    return np.int32(min(max(whole(value, what), -INDEX_MAX - 1), INDEX_MAX))


def item(value: Value, indices: Sequence[Value]) -> Value:
    """`value[indices]`."""
    match value:
        case View():
            return read(value, indices)
        case Local():
            return _read_local(value, indices)
        case tuple():
            (index,) = indices
            return _table(value, index)
        case Vector(scalar, lanes):
            (index,) = indices
            if isinstance(index, Unknown):
                return Unknown(scalar)
            at = whole(index, "a lane")
            return lanes[at] if 0 <= at < len(lanes) else convert(0, scalar)
    refuse(f"{value!r} cannot be indexed")


def _table(items: tuple[Value, ...], index: Value) -> Value:
    """A tuple's item. A typed index picks among items of one type, and 0 outside; among tuples column by column."""
    if is_literal(index):
        return items[whole(index, "an index")]
    if items and all(isinstance(i, tuple) and len(i) == len(items[0]) for i in items):
        return tuple(_table(column, index) for column in zip(*items, strict=True))
    element = join(items)
    if element is None:
        return items[whole(index, "the index of this tuple")]
    if isinstance(index, Unknown):
        return unknown(element)
    at = whole(index, "an index")
    return convert(items[at] if 0 <= at < len(items) else 0, element)


# ---- device arrays ----


def bordered(view: Value, mode: Value, value: Value = None) -> View:
    """`border(u, mode, value=…)`."""
    if not isinstance(view, View):
        refuse(f"border takes an array, found {view!r}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(view.shape)
    if len(modes) != len(view.shape) or any(m not in BORDER_MODES for m in modes):
        refuse(f"{mode!r} is no border of {view!r}")
    return replace(view, modes=modes, fill=value if value is None else convert(value, view.element))


def fold(mode: str, index: int, extent: int) -> int:
    """Where a border of this mode finds an index; the extent is at least 1."""
    match mode:
        case "edge":
            return min(max(index, 0), extent - 1)
        case "reflect":
            period = max(2 * (extent - 1), 1)
            at = index % period
            return min(at, period - at) if extent > 1 else 0
        case "symmetric":
            at = index % (2 * extent)
            return min(at, 2 * extent - 1 - at)
        case _:  # wrap, antiperiodic
            return index % extent


def _place(view: View, indices: Sequence[Value]) -> tuple[tuple[int, ...] | None, int]:
    """The element's place in the data, None outside; and the sign that antiperiodic borders give it."""
    axes = flat(indices)
    if len(axes) != len(view.shape):
        refuse(f"{view!r} is indexed with {len(axes)} indices")
    place: list[int] = []
    negative, inside = False, True
    for index, extent, mode in zip(axes, map(int, view.shape), view.modes, strict=True):
        at = int(as_index(index))
        if mode not in (None, "constant") and extent:
            negative ^= mode == "antiperiodic" and at // extent % 2 == 1
            at = fold(str(mode), at, extent)
        inside &= 0 <= at < extent
        place.append(at)
    return (tuple(place) if inside else None), -1 if negative else 1


def read(view: View, indices: Sequence[Value]) -> Value:
    """One element; outside, the border's value, or zero."""
    data = view.data
    if data is None or any(isinstance(i, Unknown) for i in flat(indices)):
        return unknown(view.element)
    place, sign = _place(view, indices)
    if place is None:
        return convert(0, view.element) if view.fill is None else view.fill
    if view.written is not None and not view.written[place]:
        raise UndefinedRead(
            f"element ({', '.join(map(str, place))}) of {view!r} is read before a thread has written it"
        )
    found = data[place]
    value = found if not isinstance(view.element, Vec) else Vector(view.element.scalar, tuple(found))
    if sign < 0:
        value = binary("*", value, convert(-1, view.element.scalar))
    return value


def store(value: Value, array: Value, indices: Sequence[Value]) -> None:
    """`array[indices] = value`; outside, nothing happens."""
    match array:
        case View():
            element = convert(value, array.element)
            if array.data is None:
                return
            place, _ = _place(array, indices)
            if place is not None and array.written is not None:
                array.written[place] = True
            if place is not None:
                array.data[place] = element.lanes if isinstance(element, Vector) else element
        case Local():
            element = convert(value, array.element)
            at = _offset(array, indices)
            if array.data is not None and at is not None:
                array.data[at] = element
        case _:
            refuse(f"{array!r} has no elements to assign")


def augment(
    symbol: str, array: Value, indices: Sequence[Value], value: Callable[[], Value]
) -> Generator[Request, Value, None]:
    """`array[indices] symbol= value`: the element is read first, and keeps its type."""
    before = item(array, indices)
    added = yield from later(value)
    changed = binary(symbol, before, added)
    element = type_of(before)
    assert element is not None
    store(convert(changed, element), array, indices)


def atomic(name: str, array: Value, index: Value, *values: Value) -> Value:
    """`old = atomic_add(array, index, value)` and its kin: one after the other, as the threads are here."""
    if not isinstance(array, View) or not array.writable:
        refuse(f"an atomic changes an Out or InOut array, found {array!r}")
    old = read(array, (index,))
    given = [convert(v, array.element) for v in values]
    match name:
        case "exchange":
            new = given[0]
        case "cas":
            new = given[1] if array.data is not None and old == given[0] else old
        case _:
            new = apply(OPERATIONS[_ATOMIC[name]], (old, given[0]))
    store(new, array, (index,))
    return old


_ATOMIC = {
    "add": "add", "min": "minimum", "max": "maximum", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip


def threadgroup_array(element: Type, extents: Sequence[int], *, real: bool) -> View:
    """An array that a group's threads share, undefined until written; without data where types are found."""
    shape, modes = tuple(extents), (None,) * len(extents)
    if not real:
        return View("threadgroup", element, None, shape, modes, writable=True)
    data = np.zeros((*shape, element.lanes) if isinstance(element, Vec) else shape, element.scalar.numpy)
    return View("threadgroup", element, data, shape, modes, writable=True, written=np.zeros(shape, np.bool_))


# ---- local arrays ----


def local_array(
    element: Type, extents: Sequence[int], values: Sequence[Value] | None, *, real: bool
) -> Local:
    """Zeros, or the values given; without data where types are found."""
    size = int(np.prod(extents, dtype=object)) if extents else 1
    if not real:
        return Local(element, tuple(extents), None)
    given: Sequence[Any] = [0] * size if values is None else values
    if len(given) != size:
        refuse(f"{size} elements were given {len(given)} values")
    return Local(element, tuple(extents), [convert(v, element) for v in given])


def _offset(array: Local, indices: Sequence[Value]) -> int | None:
    """The flat offset, None outside or where an index is unknown."""
    axes = flat(indices)
    if len(axes) != len(array.shape):
        refuse(f"{array!r} is indexed with {len(axes)} indices")
    if any(isinstance(i, Unknown) for i in axes):
        return None
    offset = 0
    for index, extent in zip(axes, array.shape, strict=True):
        at = int(as_index(index))
        if not 0 <= at < extent:
            return None
        offset = offset * extent + at
    return offset


def _read_local(array: Local, indices: Sequence[Value]) -> Value:
    at = _offset(array, indices)
    if array.data is None:
        return unknown(array.element)
    return convert(0, array.element) if at is None else array.data[at]
