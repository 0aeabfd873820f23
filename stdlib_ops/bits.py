"""Ops on bits; the kernels are in bits.mjk.

In: arrays of integers, seen as rows of bits. Out: counts. Broadcasting and the choice of a word's width are done here by
views.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.lang import bool_, u8, u16, u32
from metaljit.stdlib_ops.gather import as_three
from metaljit.stdlib_ops.operands import (
    INTEGERS,
    Operand,
    axis_of,
    check_array,
    dtype_of,
    is_traced,
    refuse,
    viewed,
    whole,
)


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
    Compare: MPSGraph `HammingDistance` (which is `keepdims=True`); NumPy `np.bitwise_count(a ^ b).sum(-1)`;
    SciPy `scipy.spatial.distance.hamming`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> a, b = np.array([[0, 255], [1, 2]], np.uint8), np.array([[0, 1]], np.uint8)
        >>> print(ops.hamming_distance(a, b))
        [7 3]
    """
    kind = dtype_of("hamming_distance", dtype, (u32, u16))
    least = 2 if pairwise else 1
    for name, x in (("a", a), ("b", b)):
        check_array("hamming_distance", name, x, INTEGERS, "integers")
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


def bitwise_count(x: Operand) -> Any:
    """How many bits are set in the magnitude of each element, as NumPy counts: of -1 there is one.

    x: array of any integer dtype. Returns uint8.

    Raises TypeFault for other dtypes.
    Compare: NumPy `np.bitwise_count`; TensorFlow `tf.raw_ops.PopulationCount` (which counts the bits of two's complement).

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.bitwise_count(np.array([0, 5, 255, -1])))
        [0 2 8 1]
    """
    check_array("bitwise_count", "x", x, INTEGERS, "integers")
    return mj.stdlib.bits.count(x)


def packbits(x: Operand, axis: int | None = None, *, bitorder: str = "big") -> Any:
    """Eight elements along an axis, or of the flat array, as the bits of a byte: 1 for what is not 0.

    x: array of integers or bools. bitorder: "big": the first of eight is the highest bit, "little": the lowest. Zeros fill
        the last byte.

    Returns uint8. Raises TypeFault for other dtypes, LaunchFault for an axis that does not exist or another order.
    Compare: NumPy `np.packbits`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.packbits(np.array([1, 0, 0, 0, 0, 0, 1, 1, 1], np.uint8)))
        [131 128]
    """
    check_array("packbits", "x", x, (bool_, *INTEGERS), "integers or bools")
    return _along(
        "packbits", x, axis, bitorder, lambda three: mj.stdlib.bits.packed(three, bitorder == "little")
    )


def unpackbits(
    x: Operand, axis: int | None = None, count: int | None = None, *, bitorder: str = "big"
) -> Any:
    """The bits of each byte along an axis, or of the flat array, as eight elements that are 0 or 1.

    x: array of uint8. bitorder: as for `packbits`. count: how many bits are wanted along the axis: more than there are are
        0, a negative number leaves so many away at the end, and None takes all.

    Returns uint8. Raises TypeFault for other dtypes, LaunchFault for an axis that does not exist, another order, or a count
    that leaves more away than there are.
    Compare: NumPy `np.unpackbits`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.unpackbits(np.array([131, 128], np.uint8), count=9))
        [1 0 0 0 0 0 1 1 1]
    """
    check_array("unpackbits", "x", x, (u8,), "uint8")

    def bits(three: Any) -> Any:
        there = three.shape[1] * 8
        wanted = there if count is None else whole("unpackbits", "count", count, -(2**31))
        if not isinstance(wanted, int) or wanted >= 0:
            return mj.stdlib.bits.unpacked(three, wanted, bitorder == "little")
        if there < -wanted:
            refuse("unpackbits", f"`count` is {wanted}, and there are {there} bits")
        return mj.stdlib.bits.unpacked(three, there + wanted, bitorder == "little")

    return _along("unpackbits", x, axis, bitorder, bits)


def _along(op: str, x: Any, axis: int | None, bitorder: str, function: Callable[[Any], Any]) -> Any:
    """A function of [A, N, C], applied along an axis of `x`."""
    if bitorder not in ("big", "little"):
        refuse(op, f"`bitorder` is 'big' or 'little', not {bitorder!r}")
    if axis is None:
        x, axis = viewed(x, lambda v: v.reshape(-1)), 0
    k = axis_of(op, axis, len(x.shape))
    found = function(as_three(x, k))
    shape = (*x.shape[:k], found.shape[1], *x.shape[k + 1 :])
    return viewed(found, lambda v: v.reshape(shape))


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


def _as_words(x: Operand, word: type[np.unsignedinteger[Any]]) -> Any:
    """A view of an array's rows as words, None where it has none without a copy, as in a trace."""
    row = x.shape[-1] * x.dtype.itemsize
    if is_traced(x) or row % word().itemsize:
        return None
    memory = x.numpy() if isinstance(x, mj.Array) else np.asarray(x)
    if memory.strides[-1] != x.dtype.itemsize:
        return None
    words = memory.view(word)
    return viewed(x, lambda v: v.view(word)) if words.flags.aligned else None


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
