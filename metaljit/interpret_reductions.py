"""Reductions of interpret mode: the type of the result, and the values one after the other.

In: a reduction's name, the type of its elements, values. Out: a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .dtypes import BF16, BOOL, F16, F32, I32, U32, DType, Type, Vec
from .interpret_operators import apply, truth
from .interpret_values import (
    Value,
    convert,
)
from .operations import OPERATIONS


def sum_type(dtype: DType) -> DType:
    """Small integers are summed in 32 bits, bools counted in i32, 16-bit floats in f32."""
    if dtype in (F16, BF16):
        return F32
    if dtype is BOOL:
        return I32
    return dtype if dtype.bits >= 32 else I32 if dtype.kind == "int" else U32


STEPS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}
_ALIASES = {"minimum": "min", "maximum": "max", "amin": "min", "amax": "max"}


def reduction_name(callee: Value) -> str:
    """The reduction that a call of a generator is."""
    name = getattr(callee, "name", "")
    return _ALIASES.get(name, name)


def result_type(name: str, element: Type) -> Type:
    """What a reduction of elements of this type gives."""
    if name in ("any", "all"):
        return BOOL
    if name in ("argmin", "argmax"):
        return I32
    if name not in ("sum", "prod"):
        return element
    scalar = sum_type(element.scalar)
    return Vec(scalar, element.lanes) if isinstance(element, Vec) else scalar


def reduce(name: str, element: Type, values: Iterable[Value]) -> Value:
    """Values of type `element`, one after the other."""
    if name in ("any", "all"):
        conditions = [bool(truth(v)) for v in values]
        return np.bool_(any(conditions) if name == "any" else all(conditions))
    if name in ("argmin", "argmax"):
        return _first_best(name, [convert(v, element) for v in values])
    result = result_type(name, element)
    start = {"sum": 0, "prod": 1, "min": result.scalar.largest, "max": result.scalar.smallest}[name]
    total = convert(bool(start) if result.scalar is BOOL else start, result)
    op = OPERATIONS[STEPS[name]]
    for v in values:
        total = apply(op, (total, convert(v, result)))
    return total


def _first_best(name: str, values: Sequence[Value]) -> Value:
    """The first of the best, the first NaN if there is one, −1 of nothing."""
    best = -1
    for k, v in enumerate(values):
        if v != v:
            return np.int32(k)
        if best < 0 or (v < values[best] if name == "argmin" else v > values[best]):
            best = k
    return np.int32(best)
