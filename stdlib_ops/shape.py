"""Ops that see an array with another shape; none of them computes.

In: an array. Out: a view of it where NumPy has one: NumPy's own of a NumPy array, index arithmetic in a trace, and for
an array on a device one that shares its memory if the elements lie there in this order, else a copy.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.gather import ELEMENTS, product
from metaljit.stdlib_ops.operands import Operand, axes_of, axis_of, check_array, refuse, viewed, whole


def expand_dims(x: Operand, axis: int | Sequence[int]) -> Any:
    """`x` with axes of one element, which stand at `axis` in the result.

    x: array of any dtype. axis: one or several, each from -r to r - 1 for a result of r axes.

    Returns a view. Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `expandDims`; PyTorch `torch.unsqueeze`; TensorFlow `tf.expand_dims`; NumPy `np.expand_dims`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.expand_dims(np.zeros((2, 4), np.float32), (0, 2)).shape)
        (1, 2, 1, 4)
    """
    _check("expand_dims", x)
    count = len(axis) if isinstance(axis, Sequence) else 1
    axes = axes_of("expand_dims", axis, len(x.shape) + count)
    return viewed(x, lambda v: np.expand_dims(v, axes))


def squeeze(x: Operand, axis: int | Sequence[int] | None = None) -> Any:
    """`x` without axes of one element: those at `axis`, or all.

    x: array of any dtype. In a trace None means the axes that are known to have one element.

    Returns a view. Raises TypeFault for float64, ShapeError for an axis of another extent, LaunchFault for one that does
    not exist or is named twice.
    Compare: MPSGraph `squeeze`; PyTorch `torch.squeeze`; TensorFlow `tf.squeeze`; NumPy `np.squeeze`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.squeeze(np.zeros((1, 2, 1), np.float32), 0).shape)
        (2, 1)
    """
    _check("squeeze", x)
    axes = None if axis is None else axes_of("squeeze", axis, len(x.shape))
    for k in axes or ():
        if x.shape[k] != 1:
            refuse("squeeze", f"axis {k} has {x.shape[k]} elements, and one with 1 can go: `x` has shape {x.shape}", "",
                   "op-shape", mj.ShapeError)  # fmt: skip
    return viewed(x, lambda v: np.squeeze(v, axes))


def reshape(x: Operand, shape: int | Sequence[int]) -> Any:
    """The elements of `x` in row-major order, with another shape. One extent may be -1: what is left for it.

    x: array of any dtype.

    Returns a view where there is one. Raises TypeFault for float64, ShapeError where the number of elements differs,
    LaunchFault for other extents below 0.
    Compare: MPSGraph `reshape`; PyTorch `torch.reshape`; TensorFlow `tf.reshape`; NumPy `np.reshape`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.reshape(np.arange(6), (2, -1)))
        [[0 1 2]
         [3 4 5]]
    """
    _check("reshape", x)
    wanted = _extents("reshape", shape, -1)
    open_ones = [k for k, n in enumerate(wanted) if isinstance(n, int) and n == -1]
    total, rest = product(x.shape), product([n for k, n in enumerate(wanted) if k not in open_ones])
    fits = total == rest if not open_ones else rest != 0 and total % rest == 0
    if len(open_ones) > 1 or not fits:
        refuse("reshape", f"`x` of shape {x.shape} cannot take the shape {wanted}: "
               + ("only one extent can be -1" if len(open_ones) > 1 else f"it has {total} elements"), "", "op-shape",
               mj.ShapeError)  # fmt: skip
    return viewed(x, lambda v: v.reshape(wanted))


def transpose(x: Operand, axes: Sequence[int] | None = None) -> Any:
    """`x` with its axes in another order: axis k of the result is `axes[k]`. None is the opposite order.

    x: array of any dtype.

    Returns a view. Raises TypeFault for float64, LaunchFault for what is no order of all axes.
    Compare: MPSGraph `transpose`; PyTorch `torch.permute`; TensorFlow `tf.transpose`; NumPy `np.transpose`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.transpose(np.zeros((2, 3, 4), np.float32), (2, 0, 1)).shape)
        (4, 2, 3)
    """
    _check("transpose", x)
    rank = len(x.shape)
    order = (
        tuple(reversed(range(rank)))
        if axes is None
        else tuple(axis_of("transpose", a, rank, "axes") for a in axes)
    )
    if sorted(order) != list(range(rank)):
        refuse("transpose", f"`axes` names each of the {rank} axes once, and is {tuple(axes or ())}")
    return viewed(x, lambda v: np.transpose(v, order))


def flip(x: Operand, axis: int | Sequence[int] | None = None) -> Any:
    """`x` with its elements along the axes (all, if None) in opposite order.

    x: array of any dtype.

    Returns a view. Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `reverse`; PyTorch `torch.flip`; TensorFlow `tf.reverse`; NumPy `np.flip`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.flip(np.array([[1, 2], [3, 4]]), 1))
        [[2 1]
         [4 3]]
    """
    _check("flip", x)
    axes = axes_of("flip", axis, len(x.shape))
    return viewed(x, lambda v: np.flip(v, axes))


def broadcast_to(x: Operand, shape: int | Sequence[int]) -> Any:
    """`x` repeated along new leading axes, and along axes of one element, to a shape.

    x: array of any dtype.

    Returns a view, which of a NumPy array is read-only. Raises TypeFault for float64, ShapeError where the shape does not
    fit, LaunchFault for a negative extent.
    Compare: MPSGraph `broadcast`; PyTorch `torch.broadcast_to`; TensorFlow `tf.broadcast_to`; NumPy `np.broadcast_to`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.broadcast_to(np.array([1, 2]), (2, 2)))
        [[1 2]
         [1 2]]
    """
    _check("broadcast_to", x)
    wanted = _extents("broadcast_to", shape, 0)
    own = tuple(x.shape)
    fits = len(own) <= len(wanted) and all(
        a == 1 or a == b for a, b in zip(own, wanted[len(wanted) - len(own) :], strict=True)
    )
    if not fits:
        refuse(
            "broadcast_to", f"`x` of shape {own} is not broadcast to {wanted}", "", "op-shape", mj.ShapeError
        )
    return viewed(x, lambda v: np.broadcast_to(v, wanted))


def slice(
    x: Operand,
    start: Sequence[int | None],
    stop: Sequence[int | None],
    step: Sequence[int | None] | None = None,
    *,
    squeeze: Sequence[int] = (),
) -> Any:
    """Every `step`-th element from `start` on, up to `stop`, along each axis.

    x: array of any dtype. start, stop, step: an entry for each axis, with the meaning that it has in Python's slices:
        negative ones count from the end, what is beyond an end is cut, a negative step walks backwards, None is the end.
    squeeze: axes of which the element at `start` alone is taken; they are gone in the result.

    Returns a view. Raises TypeFault for float64, ShapeError for another number of entries, LaunchFault for a step of 0, an
    axis that does not exist, or an element to squeeze that does not.
    Compare: MPSGraph `sliceTensor`; PyTorch `x[a:b:c]`; TensorFlow `tf.strided_slice`; NumPy `x[a:b:c]`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.arange(8).reshape(2, 4)
        >>> print(ops.slice(x, (0, 3), (2, 0), (1, -1)), ops.slice(x, (1, 0), (2, None), (1, 2), squeeze=(0,)))
        [[3 2 1]
         [7 6 5]] [4 6]
    """
    _check("slice", x)
    rank = len(x.shape)
    steps = (None,) * rank if step is None else step
    for name, given in (("start", start), ("stop", stop), ("step", steps)):
        if len(given) != rank:
            refuse(
                "slice",
                f"`{name}` has {len(given)} entries, and `x` has {rank} axes",
                "",
                "op-shape",
                mj.ShapeError,
            )
        for n in given:
            _entry(name, n)
    if 0 in steps:
        refuse("slice", f"`step` has a 0: {tuple(steps)}", "an axis of one element is taken by `squeeze`")
    gone = axes_of("slice", tuple(squeeze), rank)
    key: list[Any] = [_builtin_slice(*k) for k in zip(start, stop, steps, strict=True)]
    for k in gone:
        at = start[k] or 0
        n = x.shape[k]
        if not (at < n if at >= 0 else n >= -at):
            refuse("slice", f"`squeeze` takes element {at} of axis {k}, which has {n}")
        key[k] = at
    return viewed(x, lambda v: v[tuple(key)])


def split(x: Operand, sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """Parts of `x` along an axis: so many equal ones, or parts of the given sizes, which are all of it.

    x: array of any dtype. (NumPy takes places to cut at instead of sizes.)

    Returns a list of views. Raises TypeFault for float64, ShapeError where the parts do not make up the axis, LaunchFault
    for an axis that does not exist or negative sizes.
    Compare: MPSGraph `split`; PyTorch `torch.split`; TensorFlow `tf.split`; NumPy `np.split`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.split(np.arange(5), [2, 3]))
        [array([0, 1]), array([2, 3, 4])]
    """
    _check("split", x)
    k = axis_of("split", axis, len(x.shape))
    n = x.shape[k]
    if isinstance(sections, Sequence):
        sizes = [whole("split", "sections", s, 0) for s in sections]
        if sum(sizes) != n:
            refuse("split", f"axis {k} has {n} elements, and parts of {sizes} have {sum(sizes)}", "", "op-shape",
                   mj.ShapeError)  # fmt: skip
        ends = list(accumulate(sizes))
    else:
        count = whole("split", "sections", sections, 1)
        if n % count != 0:
            refuse("split", f"axis {k} has {n} elements, which are not {count} equal parts",
                   "give the size of each: `sections=[…]`", "op-shape", mj.ShapeError)  # fmt: skip
        ends = [n // count * (part + 1) for part in range(count)]
    before = (_builtin_slice(None),) * k
    return [_part(x, (*before, _builtin_slice(a, b))) for a, b in zip([0, *ends], ends, strict=False)]


def _part(x: Any, key: tuple[Any, ...]) -> Any:
    return viewed(x, lambda v: v[key])


# ---- arguments ----

_builtin_slice = builtins.slice


def _check(op: str, x: Any) -> None:
    check_array(op, "x", x, ELEMENTS, "numbers or bools")


def _extents(op: str, shape: Any, least: int) -> tuple[Any, ...]:
    """The extents of a shape; in a trace those of arrays, which are no integers yet."""
    given = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return tuple(n if hasattr(n, "extent") else whole(op, "shape", n, least) for n in given)


def _entry(name: str, value: Any) -> None:
    try:
        if value is not None and not hasattr(value, "extent"):
            index(value)
    except TypeError:
        refuse("slice", f"`{name}` takes whole numbers and None, and has {value!r}")
