"""Padding; the kernel is in stencil.mjk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import metaljit as mj
from metaljit.lang import bool_
from metaljit.stdlib_ops.operands import NUMBERS, Operand, check_array, refuse, whole
from metaljit.stdlib_ops.stencil_windows import modes_of

SHORTENED = {"mps_periodic": False, "mps_antiperiodic": True}
_NEGATED = ("antiperiodic", "mps_antiperiodic")

Widths = int | Sequence[int] | Sequence[Sequence[int]]


def pad(x: Operand, widths: Widths, mode: str | Sequence[str] = "constant", value: Any = 0) -> Any:
    """`x` with elements more before and after each axis.

    x: array of numbers or bool.
    widths: how many, as in NumPy: a number, a pair (before, after) for all axes, or a pair for each. None is negative; a
        part of an array is a slice.
    mode: what they are, for all axes or one for each. NumPy's "constant", "edge", "reflect", "symmetric", "wrap", which
        hold at any distance; "antiperiodic", `x[i + L] = -x[i]`. "mps_periodic" and "mps_antiperiodic" are as MPSGraph's
        header describes its modes: periods of L - 1, so that the last element is the next period's first.
    value: what "constant" holds.

    Returns an array of the dtype of `x`. The derivative of an element is the sum of those of its copies, with their signs.
    Raises TypeFault for other dtypes; ShapeError where an axis has nothing to repeat; LaunchFault for widths and
    modes that make no sense.
    Compare: MPSGraph `padTensor`, whose ClampToEdge is "edge"; PyTorch `F.pad`, whose replicate is "edge" and circular is
    "wrap"; TensorFlow `tf.pad`; NumPy `pad`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.pad(np.array([1, 2, 3, 4], np.float32), 3, "reflect")
    array([4., 3., 2., 1., 2., 3., 4., 3., 2., 1.], dtype=float32)
    >>> ops.pad(np.array([[1, 2]], np.int32), ((0, 1), (1, 0)), value=7)
    array([[7, 1, 2],
           [7, 7, 7]], dtype=int32)
    """
    check_array("pad", "x", x, (*NUMBERS, bool_), "numbers or bool")
    rank = len(x.shape)
    pairs = _pairs(widths, rank)
    modes = modes_of("pad", mode, rank, extra=tuple(SHORTENED))
    for m in modes:
        if m in _NEGATED and x.dtype == bool:
            refuse("pad", f"the mode {m!r} changes signs, and `x` is bool", "", "op-dtype", mj.TypeFault)
    if "constant" not in modes:
        value = 0
    shortened = tuple(k for k, m in enumerate(modes) if m in SHORTENED)
    for k, (n, m, widths_here) in enumerate(zip(x.shape, modes, pairs, strict=True)):
        least = 2 if m in SHORTENED else 1
        if any(widths_here) and m != "constant" and n < least:
            refuse("pad", f"axis {k} has {int(n)} elements, and {m!r} repeats at least {least}",
                   "pad with 'constant'", "op-shape", mj.ShapeError)  # fmt: skip
    return mj.stdlib.stencil.pad(
        x,
        tuple("edge" if m in SHORTENED else m for m in modes),
        bool(value) if x.dtype == bool else value,
        tuple(a for a, _ in pairs),
        tuple(a + b for a, b in pairs),
        shortened,
        tuple(k for k in shortened if SHORTENED[modes[k]]),
    )


def _pairs(widths: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis."""
    items: tuple[Any, ...] = tuple(widths) if isinstance(widths, Sequence) else (widths, widths)
    if not any(isinstance(i, Sequence) for i in items):
        one: tuple[Any, ...] = items if len(items) == 2 else items * 2 if len(items) == 1 else ()
        items = (one,) * rank
    elif len(items) == 1:
        items = items * rank
    if len(items) != rank or any(not isinstance(i, Sequence) or len(i) != 2 for i in items):
        refuse(
            "pad",
            f"`widths` takes a number, or a pair (before, after) for each of {rank} axes, and got {widths!r}",
        )
    return tuple((whole("pad", "widths", a, 0), whole("pad", "widths", b, 0)) for a, b in items)
