"""Reductions of traced arrays: NumPy's names and arguments, the language's types.

In: a traced array and axes. Out: a traced array. Sums of small integers are i32 or u32, of f16 and bf16 f32, as in kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..compiler import graph as g
from ..compiler.lower.reductions import summed
from ..dtypes import BOOL, F32, DType
from ..extents import Lit, Op
from .traced import Traced, elementwise, fault
from .views import expand_dims, product

LONG = 64  # elements
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
    shape = tuple(e for k, e in enumerate(array.extents) if k not in axes)
    if op in ("min", "max"):
        for k in axes:
            if array.extents[k] == Lit(0):
                fault(
                    "empty-reduction", f"the {op} of {array!r} over axis {k} has no value: the axis is empty"
                )
    made = array.trace.node(g.Reduce(op, array.ref, axes, _is_long(array, op, axes), dtype, shape))
    return expand_dims(made, axes) if keepdims else made


def _is_long(array: Traced, op: str, axes: tuple[int, ...]) -> bool:
    """Whether a threadgroup shares the work: it depends on the shape alone, as the order of a float sum does."""
    if op not in ("sum", "min", "max") or axes != tuple(range(array.ndim - len(axes), array.ndim)):
        return False
    return array.trace.decided(Op(">=", (product([array.extents[k] for k in axes]), Lit(LONG)))) is not False


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
