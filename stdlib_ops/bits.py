"""Ops on bits; the kernels are in bits.mjk.

In: arrays of integers, seen as rows of bits. Out: counts. Broadcasting and the choice of a word's width are done here by
views.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit.lang import i8, i16, i32, i64, u8, u16, u32, u64

from .operands import Operand, check_array, dtype_of, refuse, viewed

_INTEGERS = (u8, u16, u32, u64, i8, i16, i32, i64)


def hamming_distance(
    a: Operand, b: Operand, *, dtype: Any = np.uint32, keepdims: bool = False, pairwise: bool = False
) -> Any:
    """How many bits differ between the rows of `a` and those of `b`; a row is the last axis, taken as one bit string.

    a, b: arrays (…, K) of one integer dtype; signed integers count by their bit patterns. The leading axes broadcast.
    dtype: of the result: uint32, or uint16, which counts modulo 65536.
    keepdims: keeps the last axis, with extent 1.
    pairwise: compares each of M rows with each of N: (…, M, K) and (…, N, K) give (…, M, N); the axes before broadcast.

    Raises TypeFault for other dtypes or two different ones, ShapeError where the last extents differ or the leading
    ones do not broadcast.
    Compare MPSGraph `HammingDistance` (which is `keepdims=True`); `np.bitwise_count(a ^ b).sum(-1)`.
    """
    kind = dtype_of("hamming_distance", dtype, (u32, u16))
    least = 2 if pairwise else 1
    for name, x in (("a", a), ("b", b)):
        check_array("hamming_distance", name, x, _INTEGERS, "integers")
        if len(x.shape) < least:
            refuse("hamming_distance", f"`{name}` has shape {x.shape} and needs at least {least} axes",
                   f"add one: `{name}[None, :]`" if len(x.shape) else "", "op-shape", mj.ShapeError)  # fmt: skip
    if a.dtype != b.dtype:
        refuse("hamming_distance", f"`a` is {a.dtype.name} and `b` is {b.dtype.name}; both have one dtype",
               "convert one, or see both as bytes: `.view(np.uint8)`", "op-dtype", mj.TypeFault)  # fmt: skip
    if a.shape[-1] != b.shape[-1]:
        refuse("hamming_distance", f"rows of {a.shape[-1]} and {b.shape[-1]} elements cannot be compared: `a` has "
               f"shape {a.shape} and `b` {b.shape}", "", "op-shape", mj.ShapeError)  # fmt: skip
    a, b = _wide(a, b)
    rows = pairwise or _single_row(a) or _single_row(b)
    if rows and not pairwise:
        a, b = _pairs(a), _pairs(b)
        if a.shape[-2] == 1:
            a, b = b, a
    a, b = _broadcast(a, b, 2 if rows else 1)
    name = ("hamming_pairs" if rows else "hamming") + ("_u16" if kind == np.uint16 else "")
    counts = getattr(mj.stdlib.bits, name)(a, b)
    if rows and not pairwise:
        return counts if keepdims else viewed(counts, lambda c: c[..., 0])
    return viewed(counts, lambda c: c[..., None]) if keepdims else counts
