"""Casts: what they mean, and how they are printed.

In: a value and two element types. Out: NumPy values of the target type, or the MSL text of the cast.
Integer to integer wraps; float to integer truncates and saturates, NaN gives 0; a number's truth is `!= 0`.
A bf16 value is a float in the text, rounded when it is made. What converts implicitly is the checker's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import BF16, DType
from .operation_rules import COMMA, EQUALITY, PRIMARY, Refusal, Spelling


def convert(value: Any, source: DType, target: DType) -> Any:
    """The cast `target(value)` of a NumPy scalar or array of dtype `source`."""
    value = np.asarray(value, dtype=source.numpy)
    with np.errstate(all="ignore"):
        if target.kind == "bool":
            result = value != source.numpy.type(0)
        elif source.is_float and target.is_integer:
            result = _truncate(value.astype(np.float32), target)
        elif target.is_float and not source.is_float:  # an integer is rounded to float32 first
            result = value.astype(np.float32).astype(target.numpy)
        else:
            result = value.astype(target.numpy)
    return result[()]


def _truncate(value: Any, target: DType) -> Any:
    """float32 to integer: toward zero, the ends of the type beyond it, 0 for NaN."""
    low, high = int(target.smallest), int(target.largest)
    # The float32 just above `high` is a power of two; values below it convert exactly.
    inside = (value > float(low) - 1.0 if low else value > -1.0) & (value < float(high + 1))
    whole = np.where(inside, value, np.float32(0)).astype(target.numpy)
    ends = np.where(value < 0, low, high).astype(target.numpy)
    return np.where(np.isnan(value), target.numpy.type(0), np.where(inside, whole, ends))


def saturate(value: Any, source: DType, target: DType) -> Any:
    """`saturate(target, value)`: the nearest value of an integer type; floats are truncated."""
    if source.is_float:
        return convert(value, source, target)
    value = np.asarray(value, dtype=source.numpy)
    low, high = max(int(target.smallest), int(source.smallest)), min(int(target.largest), int(source.largest))
    return np.clip(value, source.numpy.type(low), source.numpy.type(high)).astype(target.numpy)[()]


def bitcast(value: Any, source: DType, target: DType) -> Any:
    """`bitcast(target, value)`: the same bits read as another type of the same width."""
    return np.asarray(value, dtype=source.numpy).view(target.numpy)[()]


def check_saturate(source: DType, target: DType) -> None:
    """Raises Refusal where `saturate(target, …)` of a `source` has no meaning."""
    if not target.is_integer:
        raise Refusal(
            "saturate-target",
            f"saturate gives an integer type, found {target}",
            f"a cast is enough: {target}(…)",
        )


def check_bitcast(source: DType, target: DType) -> None:
    """Raises Refusal where `bitcast(target, …)` of a `source` has no meaning."""
    if "bool" in (source.kind, target.kind):
        raise Refusal("bitcast-type", "bitcast needs numbers, found bool", "cast it: u8(…)")
    if source.bits != target.bits:
        raise Refusal(
            "bitcast-width",
            f"bitcast keeps the bits: {source} has {source.bits}, {target} has {target.bits}",
            f"use a type of {source.bits} bits",
        )


def spell_cast(source: DType, target: DType) -> Spelling:
    """The text of `target(x)`; a bf16 operand is a float already, and a bf16 result is to be rounded."""
    if source == target:
        return _call("{0}")
    if target.kind == "bool":
        if source.is_float:
            return _call("mj_to_bool(float({0}))" if source.name == "f16" else "mj_to_bool({0})")
        return Spelling("{0} != 0", EQUALITY, (EQUALITY + 1,))
    if source.is_float and target.is_integer:
        operand = "float({0})" if source.name == "f16" else "{0}"
        return _call(f"mj_to_int<{target.msl}>({operand})")
    if target == BF16:
        text = "{0}" if source.name == "f32" else "float({0})"
        return Spelling(text, PRIMARY, (_level(text),), rounds=True)
    if source == BF16 and target.name == "f32":
        return _call("{0}")
    if target.name == "f16" and not source.is_float:
        return _call("half(float({0}))")
    return _call(f"{target.msl}({{0}})")


def spell_saturate(source: DType, target: DType) -> Spelling:
    """The text of `saturate(target, x)`."""
    if source.is_float or source.kind == "bool":
        return spell_cast(source, target)
    return _call(f"mj_saturate<{target.msl}>({{0}})")


def spell_bitcast(source: DType, target: DType) -> Spelling:
    """The text of `bitcast(target, x)`; between bf16 and another type the 16 bits are packed or unpacked."""
    if source == target:
        return _call("{0}")
    if target == BF16:
        bits = "{0}" if source.name == "u16" else "as_type<ushort>({0})"
        return _call(f"mj_bf16_value({bits})")
    if source == BF16:
        bits = "mj_bf16_bits({0})"
        return _call(bits if target.name == "u16" else f"as_type<{target.msl}>({bits})")
    return _call(f"as_type<{target.msl}>({{0}})")


def _call(text: str) -> Spelling:
    return Spelling(text, PRIMARY, (_level(text),))


def _level(text: str) -> int:
    return PRIMARY if text == "{0}" else COMMA + 1
