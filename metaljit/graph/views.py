"""Views of traced arrays: slices, axes moved, added, dropped and broadcast, reshapes. They are index maps and cost nothing.

In: a traced array and what NumPy's function of the same name takes. Out: a traced array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler import graph as g
from ..extents import Extent, Lit, op
from ..frozen import frozen
from ..source import ShapeError
from .traced import Dimension, Size, Traced, extent_of, fault


def _view(array: Traced, map: g.Map, shape: Sequence[Extent]) -> Traced:
    return array.trace.node(g.View(array.ref, map, array.element, tuple(shape)))


# ---- slices ----


@frozen
class Section:
    """What `array[key]` takes: of each axis so many elements from a start on, and which axes of the result these are.

    Axis k of the array is axis `along[k]` of the result, of shape `result`; an axis that an integer took is gone.
    """

    starts: tuple[Extent, ...]
    steps: tuple[int, ...]
    shape: tuple[Extent, ...]
    along: tuple[int | None, ...]
    result: tuple[Extent, ...]


def section(array: Traced, key: Any) -> Section:
    """The meaning of integers, slices, `...` and None as a key."""
    extents = iter(array.extents)
    parts: list[tuple[Extent, int, Extent]] = []
    along: list[int | None] = []
    result: list[Extent] = []
    for k in keys(array, key):
        if k is None:
            result.append(Lit(1))
            continue
        parts.append(_one(array, k, next(extents)))
        along.append(len(result) if isinstance(k, slice) else None)
        if isinstance(k, slice):
            result.append(parts[-1][2])
    starts, steps, shape = zip(*parts, strict=True) if parts else ((), (), ())
    return Section(starts, steps, shape, tuple(along), tuple(result))


def keys(array: Traced, key: Any) -> list[Any]:
    """A key for each axis, and None where there is a new one; `...` is gone."""
    given = list(key) if isinstance(key, tuple) else [key]
    taken = sum(k is not None and k is not Ellipsis for k in given)
    if taken > array.ndim:
        fault("too-many-indices", f"{array!r} has {array.ndim} axes and is indexed with {taken}")
    if not any(k is Ellipsis for k in given):
        given.append(Ellipsis)
    at = next(n for n, k in enumerate(given) if k is Ellipsis)
    given[at : at + 1] = [slice(None)] * (array.ndim - taken)
    return given


def item(array: Traced, key: Any) -> Traced:
    """`array[key]` with integers, slices, `...` and None."""
    found = section(array, key)
    if found.shape == array.extents and all(s == 1 for s in found.steps):
        cut = array
    else:
        cut = _view(array, g.Slice(found.starts, found.steps), found.shape)
    if found.result == found.shape and found.along == tuple(range(len(found.shape))):
        return cut
    return _view(cut, g.Axes(found.along), found.result)


def _one(array: Traced, key: Any, extent: Extent) -> tuple[Extent, int, Extent]:
    """Start, step and extent of one axis."""
    if isinstance(key, slice):
        return _range(array, key, extent)
    if isinstance(key, Size):
        return key.extent, 1, Lit(1)
    try:
        number = key.__index__()
    except AttributeError:
        fault("bad-index", f"{key!r} cannot index a traced array", "use integers, slices, `...` and None")
    inside = op("<" if number >= 0 else "<=", Lit(number if number >= 0 else -number), extent)
    if array.trace.decided(inside) is False:
        fault("index-range", f"index {number} is outside an axis of {array!r}", error=ShapeError)
    return Lit(number) if number >= 0 else op("+", extent, Lit(number)), 1, Lit(1)


def _range(array: Traced, key: slice, extent: Extent) -> tuple[Extent, int, Extent]:
    step = 1 if key.step is None else int(key.step)
    if step == 0:
        fault("bad-index", "a slice has a step of 0")
    if step > 0:
        start = _end(array, key.start, extent, Lit(0))
        length = op("-", _end(array, key.stop, extent, extent), start)
    else:
        # One more than the indices: from behind the first element to take down to behind the first that is left out.
        above = extent if key.start is None else _end(array, key.start, extent, extent, after=1)
        start = op("-", above, Lit(1))
        length = op(
            "-", above, Lit(0) if key.stop is None else _end(array, key.stop, extent, extent, after=1)
        )
    if array.trace.decided(op(">=", length, Lit(0))) is not True:
        length = op("max", length, Lit(0))
    return start, step, length if abs(step) == 1 else op("ceil_div", length, Lit(abs(step)))


def _end(array: Traced, value: Any, extent: Extent, default: Extent, after: int = 0) -> Extent:
    """A bound of a slice plus `after`, counted from the front, and within the axis."""
    if value is None:
        return default
    trace = array.trace
    if isinstance(value, Size):
        return op("min", op("+", value.extent, Lit(after)), extent)
    number = int(value)
    if number >= 0:
        there = Lit(number + after)
        return there if trace.decided(op("<=", there, extent)) else op("min", there, extent)
    from_end = op("-", extent, Lit(-number - after))
    return from_end if trace.decided(op(">=", from_end, Lit(0))) else op("max", from_end, Lit(0))


# ---- axes ----


def transpose(array: Traced, axes: Sequence[int] | None = None) -> Traced:
    order = list(reversed(range(array.ndim))) if axes is None else [axis_of(array, a) for a in axes]
    if sorted(order) != list(range(array.ndim)):
        fault("bad-axes", f"{tuple(axes or ())} is no order of {array.ndim} axes")
    along = [0] * array.ndim
    for place, axis in enumerate(order):
        along[axis] = place
    return _view(array, g.Axes(tuple(along)), [array.extents[a] for a in order])


def moveaxis(array: Traced, source: int, destination: int) -> Traced:
    order = [a for a in range(array.ndim) if a != axis_of(array, source)]
    order.insert(axis_of(array, destination), axis_of(array, source))
    return transpose(array, order)


def swapaxes(array: Traced, first: int, second: int) -> Traced:
    order = list(range(array.ndim))
    a, b = axis_of(array, first), axis_of(array, second)
    order[a], order[b] = b, a
    return transpose(array, order)


def expand_dims(array: Traced, axis: int | Sequence[int]) -> Traced:
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = array.ndim + len(axes)
    new = {axis_of(array, a, rank) for a in axes}
    kept = [k for k in range(rank) if k not in new]
    extents = dict(zip(kept, array.extents, strict=True))
    return _view(array, g.Axes(tuple(kept)), [extents.get(k, Lit(1)) for k in range(rank)])


def squeeze(array: Traced, axis: int | Sequence[int] | None = None) -> Traced:
    if axis is None:
        gone = {k for k, e in enumerate(array.extents) if e == Lit(1)}
    else:
        gone = {axis_of(array, a) for a in ((axis,) if isinstance(axis, int) else axis)}
    for k in gone:
        if array.extents[k] != Lit(1):
            fault("bad-axes", f"axis {k} of {array!r} is not known to have one element")
    kept = [k for k in range(array.ndim) if k not in gone]
    return _view(array, g.Axes(tuple(kept.index(k) if k in kept else None for k in range(array.ndim))),
                 [array.extents[k] for k in kept])  # fmt: skip


def flip(array: Traced, axis: int | Sequence[int] | None = None) -> Traced:
    axes = range(array.ndim) if axis is None else ((axis,) if isinstance(axis, int) else axis)
    turned = {axis_of(array, a) for a in axes}
    starts = [op("-", e, Lit(1)) if k in turned else Lit(0) for k, e in enumerate(array.extents)]
    return _view(
        array,
        g.Slice(tuple(starts), tuple(-1 if k in turned else 1 for k in range(array.ndim))),
        array.extents,
    )


def windows(array: Traced, axis: int, taps: Dimension, step: Dimension, count: Dimension) -> Traced:
    """Axis `axis` as two: element i of tap t is element `i + step * t`. There are `count` of them in each tap.

    `np.lib.stride_tricks.sliding_window_view` with the taps before the windows, and taps that may lie apart. The caller
    knows that the last element is within the array: `count + step * (taps - 1)` is at most its extent.
    """
    pitch = extent_of(step)
    shape = (*array.extents[:axis], extent_of(taps), extent_of(count), *array.extents[axis + 1 :])
    return _view(array, g.Windows(axis, pitch), shape)


# ---- shapes ----


def reshape(array: Traced, shape: Dimension | Sequence[Dimension]) -> Traced:
    """At most one extent is -1: what is left for it."""
    wanted = (shape,) if isinstance(shape, int | Size) else tuple(shape)
    total = product(array.extents)
    unknown = [k for k, n in enumerate(wanted) if isinstance(n, int) and n == -1]
    extents = [extent_of(n) for n in wanted]
    if len(unknown) > 1:
        fault("bad-shape", "only one extent of a new shape can be -1")
    if unknown:
        rest = product([e for k, e in enumerate(extents) if k not in unknown])
        extents[unknown[0]] = op("//", total, rest)
    if array.trace.decided(op("==", total, product(extents))) is False:
        fault("bad-shape", f"{array!r} cannot take the shape {wanted}: the number of elements differs")
    return _view(array, g.Reshape(), extents)


def broadcast_to(array: Traced, shape: Sequence[Dimension]) -> Traced:
    from .traced import broadcast

    wanted = tuple(map(extent_of, shape))
    found = broadcast(array.trace, [array.extents, wanted])
    if len(found) != len(wanted):
        fault("shape-mismatch", f"{array!r} has more axes than {tuple(shape)}")
    first = len(wanted) - array.ndim
    if not array.ndim:
        return _view(array, g.Axes(()), wanted)
    if array.extents == tuple(map(array.trace.graph.extent, wanted)):
        return array
    along = tuple(None if e == Lit(1) else first + k for k, e in enumerate(array.extents))
    return _view(array, g.Axes(along), wanted)


def product(extents: Sequence[Extent]) -> Extent:
    total: Extent = Lit(1)
    for e in extents:
        total = op("*", total, e)
    return total


def axis_of(array: Traced, axis: int, rank: int | None = None) -> int:
    rank = array.ndim if rank is None else rank
    if not -rank <= axis < rank:
        fault("bad-axes", f"axis {axis} does not exist: there are {rank}")
    return axis % rank
