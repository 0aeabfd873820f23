"""Reductions of traced arrays: NumPy's names and arguments, the language's types.

In: a traced array and axes. Out: a traced array. Sums of small integers are i32 or u32, of f16 and bf16 f32, as in kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..compiler import graph as g
from ..compiler.lower.reductions import summed
from ..dtypes import BOOL, F32, I32, DType
from ..extents import Extent, Lit, Op
from .traced import Traced, elementwise, fault
from .views import expand_dims, product, reshape

LONG, LONG_COLUMN = 64, 8  # elements that are reduced, for a kernel of its own kind
ROW_CHUNK, COLUMN_CHUNK = (
    1 << 14,
    256,
)  # elements that one threadgroup, or thread, reduces where there are few
FEW_ROWS, FEW_COLUMNS = 64, 1 << 16
Axes: TypeAlias = int | Sequence[int] | None


def reduce(op: str, array: Traced, axis: Axes = None, keepdims: bool = False) -> Traced:
    """`op` is sum, prod, min, max, any or all."""
    axes = _axes(array, axis)
    if op in ("any", "all"):
        array, dtype = truth(array), BOOL
    elif op in ("sum", "prod"):
        found = summed(array.element)
        assert isinstance(found, DType)
        dtype = found
    else:
        dtype = array.element
    if not axes:
        return array if array.element == dtype else cast(array, dtype)
    if op in ("min", "max"):
        for k in axes:
            if array.extents[k] == Lit(0):
                fault(
                    "empty-reduction", f"the {op} of {array!r} over axis {k} has no value: the axis is empty"
                )
    made = _reduced(op, array, axes, dtype)
    return expand_dims(made, axes) if keepdims else made


def _reduced(op: str, array: Traced, axes: tuple[int, ...], dtype: DType) -> Traced:
    """Last axes first, which lie beside one another; then others. How it is cut depends on the shape alone, as the order
    of a float sum does."""
    run = next(k for k in range(len(axes) + 1) if k == len(axes) or axes[-1 - k] != array.ndim - 1 - k)
    if 0 < run < len(axes):
        array, axes, run = _reduced(op, array, axes[-run:], dtype), axes[:-run], 0
    extents = array.extents
    kept = tuple(e for k, e in enumerate(extents) if k not in axes)
    count, others = product([extents[k] for k in axes]), product(kept)
    at_least, chunk, few = (LONG, ROW_CHUNK, FEW_ROWS) if run else (LONG_COLUMN, COLUMN_CHUNK, FEW_COLUMNS)
    long = _holds(array, count, at_least) is not False
    if _holds(array, count, 2 * chunk) and _holds(array, others, few) is False:
        pieces = Op("ceil_div", (count, Lit(chunk)))
        shape = (*kept, pieces) if run else (pieces, *kept)
        array = array.trace.node(g.Reduce(op, array.ref, axes, True, dtype, shape, chunk))
        axes = (len(kept),) if run else (0,)
    return array.trace.node(g.Reduce(op, array.ref, axes, long, dtype, kept))


def _holds(array: Traced, extent: Extent, least: int) -> bool | None:
    """Whether it is at least so much; None where that is not known."""
    return array.trace.decided(Op(">=", (extent, Lit(least))))


def argument(op: str, array: Traced, axis: int | None = None, keepdims: bool = False) -> Traced:
    """`op` is min or max: the first place of it along an axis, or in the flat array, as i32; the first NaN wins."""
    given = array
    if axis is None:
        array, axis = reshape(array, -1), 0
    (k,) = _axes(array, axis)
    best = reduce(op, array, k, True)
    hit = elementwise("equal", array, best)
    if array.element.is_float:
        hit = elementwise("logical_or", hit, elementwise("not_equal", array, array))
    place = array.trace.node(g.Index(k, I32, array.extents))
    found = reduce("min", elementwise("where", hit, place, I32.largest), k)
    if not keepdims:
        return found
    return reshape(found, (1,) * given.ndim) if array is not given else expand_dims(found, (k,))


def mean(array: Traced, axis: Axes = None, keepdims: bool = False) -> Traced:
    total = reduce("sum", array, axis, keepdims)
    number = array.trace.count(product([array.extents[k] for k in _axes(array, axis)]), F32)
    found = elementwise("divide", total, number)
    return found if not array.element.is_float else cast(found, array.element)


def var(array: Traced, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Traced:
    """The mean of squared distances from the mean, in two passes; `ddof` is taken from the number of elements."""
    wide = array if array.element == F32 else cast(array, F32)
    off = elementwise("subtract", wide, mean(wide, axis, True))
    total = reduce("sum", elementwise("multiply", off, off), axis, keepdims)
    number = array.trace.count(product([array.extents[k] for k in _axes(array, axis)]), F32)
    found = elementwise("divide", total, elementwise("subtract", number, float(ddof)) if ddof else number)
    return cast(found, array.element) if array.element.is_float else found


def std(array: Traced, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Traced:
    return elementwise("sqrt", var(array, axis, ddof, keepdims))


def cast(array: Traced, dtype: DType) -> Traced:
    if array.element == dtype:
        return array
    return array.trace.node(g.Cast(array.ref, dtype, array.extents))


def truth(array: Traced) -> Traced:
    return array if array.element == BOOL else elementwise("not_equal", array, 0)


def _axes(array: Traced, axis: Axes) -> tuple[int, ...]:
    given: Any = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    found = set()
    for a in given:
        if not -array.ndim <= a < array.ndim:
            fault("bad-axes", f"axis {a} of {array!r} does not exist")
        if a % array.ndim in found:
            fault("bad-axes", f"axis {a % array.ndim} is named twice")
        found.add(a % array.ndim)
    return tuple(sorted(found))
