"""Ops on bits; the kernels are in bits.mjk.

In: arrays of integers, seen as rows of bits. Out: counts. Broadcasting and the choice of a word's width are done here by
views.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj
from metaljit.lang import i8, i16, i32, i64, u8, u16, u32, u64
from metaljit.stdlib_ops.operands import Operand, check_array, dtype_of, refuse, viewed

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
    a, b = _wide_words(a, b)
    one_side = not pairwise and _is_single_row(a) != _is_single_row(b)
    if one_side:  # one row against many is a table of one column, and needs no copies of the row
        a, b = (b, a) if _is_single_row(a) else (a, b)
        b = viewed(b, lambda x: x.reshape(*x.shape[:-2], 1, x.shape[-1]))
    pairs = pairwise or one_side
    a, b = _broadcast(a, b, 2 if pairs else 1)
    name = ("hamming_pairs" if pairs else "hamming") + ("_u16" if kind == np.uint16 else "")
    counts = getattr(mj.stdlib.bits, name)(a, b)
    if one_side and not keepdims:
        return viewed(counts, lambda c: c[..., 0])
    if keepdims and not one_side:
        return viewed(counts, lambda c: c[..., None])
    return counts


def _is_single_row(x: Operand) -> bool:
    return len(x.shape) == 1 or x.shape[-2] == 1


def _wide_words(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Both with their rows seen as the widest words that fit: fewer steps, the same bits."""
    for word in (np.uint64, np.uint32, np.uint16):
        if word().itemsize <= a.dtype.itemsize:
            break
        made = [_as_words(x, word) for x in (a, b)]
        if made[0] is not None and made[1] is not None:
            return made[0], made[1]
    return a, b


def _as_words(x: Operand, word: type[np.unsignedinteger[Any]]) -> NDArray[Any] | None:
    """A view of a NumPy array's rows as words, None where it has none without a copy."""
    row = x.shape[-1] * x.dtype.itemsize
    if not isinstance(x, np.ndarray) or row % word().itemsize or x.strides[-1] != x.itemsize:
        return None
    words = x.view(word)
    return words if words.flags.aligned else None


def _broadcast(a: Operand, b: Operand, own: int) -> tuple[Operand, Operand]:
    """Both with equal leading axes; the last `own` axes stay what they are."""
    try:
        batch = np.broadcast_shapes(a.shape[:-own], b.shape[:-own])
    except ValueError:
        refuse("hamming_distance", f"the leading axes {a.shape[:-own]} and {b.shape[:-own]} do not broadcast", "",
               "op-shape", mj.ShapeError)  # fmt: skip
    made = [_spread(x, batch + x.shape[-own:]) for x in (a, b)]
    return made[0], made[1]


def _spread(x: Operand, shape: tuple[int, ...]) -> Operand:
    return x if x.shape == shape else viewed(x, lambda v: np.broadcast_to(v, shape))
