"""Arrays made of several: one behind another, padded, with a part changed; and elements that index arrays name.

In: traced arrays and what NumPy's function of the same name takes. Out: a traced array. All are index functions, so they
cost where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..compiler import graph as g
from ..dtypes import BOOL, F32, I32, U32, DType
from ..extents import Extent, Lit, op
from ..operation_rules import Refusal, check
from ..operations import OPERATIONS
from . import views
from .reductions import cast
from .traced import Dimension, Trace, Traced, elementwise, entered, fault

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


# ---- parts of a whole ----


def embedded(
    of: Traced, into: Traced, starts: Sequence[Extent], steps: Sequence[int], shape: g.Shape
) -> Traced:
    """`into`, but for the elements of `of`. `into` is a number, or has the shape."""
    return of.trace.node(g.Embed(of.ref, into.ref, tuple(starts), tuple(steps), of.element, shape))


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Traced:
    parts = _common(arrays, "concatenate")
    rank = parts[0].ndim
    if any(p.ndim != rank for p in parts) or not rank:
        fault("shape-mismatch", f"arrays of {' and '.join(str(p.ndim) for p in parts)} axes cannot be joined")
    axis = views.axis_of(parts[0], axis)
    shape = list(parts[0].extents)
    for p in parts[1:]:
        for k, e in enumerate(p.extents):
            if k != axis:
                shape[k] = p.trace.equal(shape[k], e, "joined arrays agree on the other axes")
    starts: list[Extent] = [Lit(0)]
    for p in parts:
        starts.append(op("+", starts[-1], p.extents[axis]))
    shape[axis] = starts.pop()
    if len(parts) == 1:
        return parts[0]
    found = parts[0].trace.node(g.Fill(0, parts[0].element))
    for p, start in reversed(list(zip(parts, starts, strict=True))):
        at = [start if k == axis else Lit(0) for k in range(rank)]
        found = embedded(p, found, at, (1,) * rank, tuple(shape))
    return found


def stack(arrays: Sequence[Any], axis: int = 0) -> Traced:
    return concatenate([views.expand_dims(a, axis) for a in _common(arrays, "stack")], axis)


def split(array: Traced, parts: int | Sequence[Dimension], axis: int = 0) -> list[Traced]:
    """Equal parts, or those between the given indices."""
    axis = views.axis_of(array, axis)
    if isinstance(parts, int | np.integer):
        return _equal_parts(array, int(parts), axis)
    before = (slice(None),) * axis
    edges = zip([None, *parts], [*parts, None], strict=True)
    return [views.item(array, (*before, slice(a, b))) for a, b in edges]


def _equal_parts(array: Traced, parts: int, axis: int) -> list[Traced]:
    extent = array.extents[axis]
    if array.trace.decided(op("==", op("%", extent, Lit(parts)), Lit(0))) is False:
        fault("bad-shape", f"axis {axis} of {array!r} cannot be split into {parts} equal parts")
    size = op("//", extent, Lit(parts))
    shape = (*array.extents[:axis], size, *array.extents[axis + 1 :])
    rank = array.ndim
    starts = [
        tuple(op("*", size, Lit(n)) if k == axis else Lit(0) for k in range(rank)) for n in range(parts)
    ]
    return [
        array.trace.node(g.View(array.ref, g.Slice(at, (1,) * rank), array.element, shape)) for at in starts
    ]


def pad(array: Traced, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Traced:
    """Widths as NumPy takes them: a number, a pair for all axes, or a pair for each."""
    if mode not in MODES:
        fault("bad-padding", f"there is no padding {mode!r}", f"there are {', '.join(MODES)}")
    widths = _pairs(array, pad_width)
    if mode != "constant":
        for axis, (before, after) in enumerate(widths):
            array = _continued(array, axis, before, after, mode) if before or after else array
        return array
    if not isinstance(constant_values, int | float | bool | np.generic | Traced):
        fault(
            "bad-padding",
            "one number is padded with",
            "pad each side with its own number in a step of its own",
        )
    fill = cast(entered_array(array.trace, constant_values), array.element)
    if fill.ndim:
        fault("bad-padding", f"one number is padded with, not {fill!r}")
    shape = tuple(
        op("+", e, Lit(before + after)) for e, (before, after) in zip(array.extents, widths, strict=True)
    )
    return embedded(array, fill, [Lit(before) for before, _ in widths], (1,) * array.ndim, shape)


def _pairs(array: Traced, given: Any) -> list[tuple[int, int]]:
    try:
        found = np.broadcast_to(np.asarray(given, np.int64), (array.ndim, 2)).tolist()
    except (TypeError, ValueError):
        fault("bad-padding", f"{given!r} is no width for each side of {array.ndim} axes")
    if any(n < 0 for pair in found for n in pair):
        fault("bad-padding", "a width is negative", "cut with a slice")
    return [(before, after) for before, after in found]


def _continued(array: Traced, axis: int, before: int, after: int, mode: str) -> Traced:
    """Padded with elements of the array itself."""
    trace, extent = array.trace, array.extents[axis]
    count = trace.count(extent, I32)
    at = elementwise("subtract", index(trace, 0, (op("+", extent, Lit(before + after)),)), before)
    match mode:
        case "edge":
            at = elementwise("clip", at, 0, count - 1)
        case "wrap":
            at = at % count
        case "symmetric":
            at = at % (count * 2)
            at = elementwise("minimum", at, count * 2 - 1 - at)
        case "reflect":
            period = elementwise("maximum", count * 2 - 2, 1)
            at = at % period
            at = elementwise("minimum", at, period - at)
            at = elementwise("where", elementwise("equal", count, 1), 0, at)
    return gathered(array, at, axis)


def roll(array: Traced, shift: int, axis: int | None = None) -> Traced:
    if axis is None:
        return views.reshape(roll(views.reshape(array, -1), shift, 0), array.shape)
    axis = views.axis_of(array, axis)
    extent = array.extents[axis]
    at = (index(array.trace, 0, (extent,)) - shift) % array.trace.count(extent, I32)
    return gathered(array, at, axis)


def tile(array: Traced, reps: int | Sequence[int]) -> Traced:
    counts = (reps,) if isinstance(reps, int) else tuple(reps)
    rank = max(len(counts), array.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    array = views.reshape(array, (*(1,) * (rank - array.ndim), *array.shape))
    whole: list[Dimension] = []
    for n, extent in zip(counts, array.shape, strict=True):
        whole += [n, extent]
    alone = views.expand_dims(array, [2 * k for k in range(rank)])
    return views.reshape(
        views.broadcast_to(alone, whole), [n * e for n, e in zip(counts, array.shape, strict=True)]
    )


def repeat(array: Traced, repeats: int, axis: int | None = None) -> Traced:
    if axis is None:
        array, axis = views.reshape(array, -1), 0
    axis = views.axis_of(array, axis)
    shape = list(array.shape)
    wide = views.expand_dims(array, axis + 1)
    wide = views.broadcast_to(wide, [*shape[: axis + 1], repeats, *shape[axis + 1 :]])
    return views.reshape(wide, [*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])


# ---- index arrays ----


def index(trace: Trace, axis: int, shape: g.Shape) -> Traced:
    """Where an element stands along an axis."""
    return trace.node(g.Index(axis, I32, shape))


def gathered(array: Traced, at: Traced, axis: int) -> Traced:
    if not at.element.is_integer or at.element == BOOL:
        mask = "how many it picks is only known on the device; keep the shape: `np.where(mask, x, 0)`"
        help = mask if at.element == BOOL else "convert it: `.astype(np.int32)`"
        fault("index-dtype", f"an index array holds integers, and this is {at!r}", help)
    shape = (*array.extents[:axis], *at.extents, *array.extents[axis + 1 :])
    return array.trace.node(g.Gather(array.ref, at.ref, axis, array.element, shape))


def take(array: Traced, indices: Any, axis: int | None = None) -> Traced:
    if axis is None:
        array, axis = views.reshape(array, -1), 0
    return gathered(array, entered_array(array.trace, indices), views.axis_of(array, axis))


def item(array: Traced, key: Any) -> Traced:
    """`array[key]` as NumPy has it: integers, slices, `...`, None, and arrays of integers, if these stand side by side."""
    found = views.keys(array, key)
    if not any(map(is_index_array, found)):
        return views.item(array, key)
    plain = views.item(array, tuple(slice(None) if is_index_array(k) else k for k in found))
    places = [k for k, v in enumerate(v for v in found if v is None or is_index_array(v) or isinstance(v, slice))
              if is_index_array(v)]  # fmt: skip
    if places != list(range(places[0], places[0] + len(places))):
        fault("bad-index", "index arrays stand apart", "move their axes together first, with `np.moveaxis`")
    arrays = [entered_array(array.trace, v) for v in found if is_index_array(v)]
    if len(arrays) == 1:
        return gathered(plain, arrays[0], places[0])
    return gathered(*_flat(plain, arrays, places[0]))


def _flat(array: Traced, at: Sequence[Traced], first: int) -> tuple[Traced, Traced, int]:
    """Several axes with an index array for each as one axis with one: -1 - n where one of them is outside."""
    count = len(at)
    extents = [array.trace.count(e, I32) for e in array.extents[first : first + count]]
    flat: Any = 0
    fits: Any = True
    for k, n in zip(at, extents, strict=True):
        k = cast(k, I32)
        k = elementwise("where", k < 0, k + n, k)
        fits = elementwise("logical_and", elementwise("logical_and", k >= 0, k < n), fits)
        flat = flat * n + k
    shape = array.shape
    merged = views.reshape(array, [*shape[:first], -1, *shape[first + count :]])
    return merged, elementwise("where", fits, flat, np.iinfo(np.int32).min), first


def picked(array: Traced, at: Sequence[Traced]) -> Traced:
    """The elements at an index array for each axis, all of one shape."""
    if not at:
        return array
    return gathered(*_flat(array, at, 0)) if len(at) > 1 else gathered(array, at[0], 0)


def is_index_array(value: Any) -> bool:
    return (isinstance(value, Traced | list) or hasattr(value, "shape")) and not isinstance(value, np.generic)


# ---- a part changed ----


class At:
    """`x.at[key]`: what stands there, to be set or added to. Arrays do not change: the answer is another array."""

    def __init__(self, array: Traced, key: Any = None) -> None:
        self._array, self._key = array, key

    def __getitem__(self, key: Any) -> At:
        return At(self._array, key)

    def set(self, value: Any) -> Traced:
        """The array with `value`, broadcast, in place of what the key takes: integers and slices."""
        array = self._array
        if any(map(_is_number, views.keys(array, self._key))):
            return self._set_there(value)
        found = views.section(array, self._key)
        given = cast(entered_array(array.trace, value), array.element)
        wide = views.broadcast_to(given, tuple(map(array.trace.dimension, found.result)))
        back: list[Extent] = [Lit(1)] * array.ndim
        order: list[int | None] = [None] * len(found.result)
        for k, at in enumerate(found.along):
            if at is not None:
                back[k], order[at] = found.result[at], k
        part = array.trace.node(g.View(wide.ref, g.Axes(tuple(order)), array.element, tuple(back)))
        return embedded(part, array, found.starts, found.steps, array.extents)

    def _set_there(self, value: Any) -> Traced:
        """The same where traced numbers are among the key's integers; an index outside sets nothing."""
        array = self._array
        key = views.keys(array, self._key)
        if any(k is None for k in key):
            fault(
                "bad-index",
                "a new axis stands beside a traced number",
                "give the value that axis, or drop it",
            )
        rest = [slice(None) if _is_number(k) else k for k in key]
        found = views.section(array, tuple(rest))
        numbers = [k for k, v in enumerate(key) if _is_number(v)]
        gone = [found.along[k] for k in numbers]
        kept = [k for k in range(len(found.result)) if k not in gone]
        given = cast(entered_array(array.trace, value), array.element)
        part = views.broadcast_to(given, [array.trace.dimension(found.result[k]) for k in kept])
        wide = array.trace.node(g.View(part.ref, g.Axes(tuple(kept)), array.element, found.result))
        new = wide if all(k == slice(None) for k in rest) else At(array, tuple(rest)).set(wide)
        here = _all(
            elementwise("equal", index(array.trace, k, array.extents), _from_start(array, k, key[k]))
            for k in numbers
        )
        return array.trace.node(g.Choose(here.ref, new.ref, array.ref, array.element, array.extents))

    def add(self, value: Any) -> Traced:
        """The array with `value` added to what the key takes; index arrays too, whose equal indices all count."""
        array, key = self._array, views.keys(self._array, self._key)
        if all(_is_number(k) or not is_index_array(k) for k in key):
            return self.set(elementwise("add", item(array, self._key), value))
        at = [entered_array(array.trace, k) for k in key if is_index_array(k)]
        if len(at) != 1 or not is_index_array(key[0]) or any(k != slice(None) for k in key[1:]):
            fault("bad-index", "an index array adds along the first axis", "move that axis to the front")
        rest = array.extents[1:]
        shape = (*at[0].extents, *rest)
        given = cast(entered_array(array.trace, value), array.element)
        wide = views.broadcast_to(given, tuple(map(array.trace.dimension, shape)))
        rank = at[0].ndim
        along = array.trace.node(g.View(at[0].ref, g.Axes(tuple(range(rank))), at[0].element, shape))
        others = [index(array.trace, rank + k, shape) for k in range(len(rest))]
        return elementwise("add", array, scattered(wide, [along, *others], array.extents))


def _is_number(key: Any) -> bool:
    return isinstance(key, Traced) and not key.ndim


def _from_start(array: Traced, axis: int, number: Traced) -> Traced:
    """A traced number as an index; a negative one counts from the end."""
    if not number.element.is_integer or number.element == BOOL:
        fault("index-dtype", f"an index is an integer, and this is {number!r}")
    number = cast(number, I32)
    count = array.trace.count(array.extents[axis], I32)
    return elementwise("where", elementwise("less", number, 0), elementwise("add", number, count), number)


def _all(tests: Iterable[Traced]) -> Traced:
    return reduce(lambda a, b: elementwise("logical_and", a, b), tests)


def scattered(of: Traced, at: Sequence[Traced], shape: g.Shape) -> Traced:
    """Zeros of a shape, with each element of `of` added where `at` says."""
    sums = {16: F32}.get(of.element.bits, of.element) if of.element.is_float else of.element
    if sums not in (F32, I32, U32):
        fault("index-dtype", f"threads add f32, i32 and u32, and this is {of!r}", "cast it first")
    wide = cast(of, sums)
    refs = tuple(a.ref for a in at)
    return cast(of.trace.node(g.Scatter(wide.ref, refs, sums, shape)), of.element)


# ---- operands ----


def counted(value: Any) -> Any:
    """An array of NumPy's integers that fit i32 as one of these: NumPy counts in i64."""
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size and abs(value).max() < 2**31:
        return value.astype(np.int32)
    return value


def entered_array(trace: Trace, value: Any) -> Traced:
    """A traced array, an array from outside, a list, or a number, as a traced array."""
    if isinstance(value, list | tuple | range):
        value = np.asarray(value)
    found = entered(trace, counted(value))
    if isinstance(found, Traced):
        return found
    kind = BOOL if isinstance(found, bool) else F32 if isinstance(found, float) else I32
    return trace.constant(found, kind)


def _common(arrays: Sequence[Any], name: str) -> list[Traced]:
    """The arrays in the type that they have together."""
    given = list(arrays)
    traced = [a for a in given if isinstance(a, Traced)]
    if not traced:
        fault("not-an-array", f"{name} takes a list of arrays")
    parts = [entered_array(traced[0].trace, a) for a in given]
    type: DType = parts[0].element
    for p in parts[1:]:
        try:
            type = check(OPERATIONS["where"], [BOOL, type, p.element]).result
        except Refusal as e:
            fault("operator-types", f"{name}: {e}")
    return [cast(p, type) for p in parts]
