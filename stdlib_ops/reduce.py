"""Reductions over any axes.

In: an array and axes. Out: an array without them. All are reductions of traced functions: 16-bit floats are summed in f32
and rounded once; sums are cut into pieces, so that their error hardly grows with the number of elements; and mean, variance
and logsumexp of rows are one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.gather import ELEMENTS
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    Operand,
    axes_of,
    axis_of,
    check_array,
    dtype_of,
    refuse,
    whole,
)

Axes: TypeAlias = int | Sequence[int] | None


def sum(x: Operand, axis: Axes = None, *, keepdims: bool = False, dtype: Any = None) -> Any:
    """The sum over axes (all, if None).

    x: array of any dtype. keepdims: the axes stay, with one element. No axes at all, `()`, sum nothing.
    dtype: of the result, to which `x` is converted first. None is that of `x`, but 32 bits for small integers and for bools,
        which are counted. Integers wrap.

    The sum of nothing is 0. Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `reductionSum`; PyTorch `torch.sum`; TensorFlow `tf.reduce_sum`; NumPy `np.sum`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.sum(np.array([[1, 2], [3, 4]], np.int32), 0))
        [4 6]
    """
    axes, kind = _arguments("sum", x, axis, dtype)
    return _sum(x, axes, bool(keepdims), kind)


def prod(x: Operand, axis: Axes = None, *, keepdims: bool = False, dtype: Any = None) -> Any:
    """The product over axes (all, if None); arguments as for `sum`.

    The product of nothing is 1. Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `reductionProduct`; PyTorch `torch.prod`; TensorFlow `tf.reduce_prod`; NumPy `np.prod`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.prod(np.array([[1, 2], [3, 4]], np.int32)))
        24
    """
    axes, kind = _arguments("prod", x, axis, dtype)
    return _prod(x, axes, bool(keepdims), kind)


def max(x: Operand, axis: Axes = None, *, keepdims: bool = False, nan: str = "propagate") -> Any:
    """The greatest element over axes (all, if None).

    x: array of any dtype. keepdims: the axes stay, with one element.
    nan: "propagate": NaN wins; "ignore": it counts only where there is nothing else. Equal elements share a derivative.

    Raises TypeFault for float64, ShapeError for an axis without elements, LaunchFault for one that does not exist or is
    named twice.
    Compare: MPSGraph `reductionMaximumPropagateNaN` (`reductionMaximum` ignores NaN); PyTorch `torch.amax`;
    TensorFlow `tf.reduce_max`; NumPy `np.max`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([1, np.nan, 0], np.float32)
        >>> print(ops.max(x), ops.max(x, nan="ignore"))
        nan 1.0
    """
    return _extreme(x, _extreme_axes("max", x, axis, nan), bool(keepdims), nan == "ignore", "max")


def min(x: Operand, axis: Axes = None, *, keepdims: bool = False, nan: str = "propagate") -> Any:
    """The least element over axes (all, if None); arguments as for `max`.

    Raises TypeFault for float64, ShapeError for an axis without elements, LaunchFault for one that does not exist or is
    named twice.
    Compare: MPSGraph `reductionMinimumPropagateNaN` (`reductionMinimum` ignores NaN); PyTorch `torch.amin`;
    TensorFlow `tf.reduce_min`; NumPy `np.min`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.min(np.array([[3, 1], [2, 4]]), axis=1))
        [1 2]
    """
    return _extreme(x, _extreme_axes("min", x, axis, nan), bool(keepdims), nan == "ignore", "min")


def mean(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """The mean over axes (all, if None): NaN of nothing.

    x: array of any dtype; that of a float stays, others give float32. keepdims: the axes stay, with one element.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `mean`; PyTorch `torch.mean`; TensorFlow `tf.reduce_mean`; NumPy `np.mean`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.mean(np.array([[1, 2], [3, 5]], np.float32), 1))
        [1.5 4. ]
    """
    return _mean(x, _arguments("mean", x, axis)[0], bool(keepdims))


def var(x: Operand, axis: Axes = None, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """The variance over axes (all, if None): the squared distances from the mean, over n - `ddof`, in two passes.

    x: array of any dtype; that of a float stays, others give float32. keepdims: the axes stay, with one element.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice, or a negative `ddof`.
    Compare: MPSGraph `variance`; PyTorch `torch.var(correction=0)`; TensorFlow `tf.math.reduce_variance`; NumPy `np.var`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.var(np.array([1, 3], np.float32)), ops.var(np.array([1, 3], np.float32), ddof=1))
        1.0 2.0
    """
    return _var(x, _arguments("var", x, axis)[0], whole("var", "ddof", ddof, 0), bool(keepdims))


def all(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Whether all elements over axes (all, if None) are true, that is, not 0. True of nothing.

    x: array of any dtype. Returns bools.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `reductionAnd`; PyTorch `torch.all`; TensorFlow `tf.reduce_all`; NumPy `np.all`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.all(np.array([[1, 1], [1, 0]]), 1))
        [ True False]
    """
    return _truth(x, _arguments("all", x, axis)[0], bool(keepdims), "all")


def any(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Whether an element over axes (all, if None) is true, that is, not 0. False of nothing.

    x: array of any dtype. Returns bools.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or is named twice.
    Compare: MPSGraph `reductionOr`; PyTorch `torch.any`; TensorFlow `tf.reduce_any`; NumPy `np.any`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.any(np.array([[0, 0], [1, 0]]), 1))
        [False  True]
    """
    return _truth(x, _arguments("any", x, axis)[0], bool(keepdims), "any")


def argmax(x: Operand, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Where along an axis, or in the flat array, the greatest element stands: of equal ones the first, and the first NaN.

    x: array of any dtype. Returns int32.

    Raises TypeFault for float64, ShapeError for an axis without elements, LaunchFault for one that does not exist.
    Compare: MPSGraph `reductionArgMaximum` (which ignores NaN); PyTorch `torch.argmax`; TensorFlow `tf.argmax`;
    NumPy `np.argmax`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.argmax(np.array([[1, 3, 3], [9, 0, 2]]), 1))
        [1 0]
    """
    return _place(x, _place_axis("argmax", x, axis), bool(keepdims), "argmax")


def argmin(x: Operand, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Where along an axis, or in the flat array, the least element stands: of equal ones the first, and the first NaN.

    x: array of any dtype. Returns int32.

    Raises TypeFault for float64, ShapeError for an axis without elements, LaunchFault for one that does not exist.
    Compare: MPSGraph `reductionArgMinimum` (which ignores NaN); PyTorch `torch.argmin`; TensorFlow `tf.argmin`;
    NumPy `np.argmin`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.argmin(np.array([[1, 3, 3], [9, 0, 2]])))
        4
    """
    return _place(x, _place_axis("argmin", x, axis), bool(keepdims), "argmin")


def logsumexp(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over axes (all, if None), without overflow: the greatest element is taken out first.

    x: array of floats, whose dtype stays. keepdims: the axes stay, with one element. The derivative is the softmax.

    Raises TypeFault for other dtypes, ShapeError for an axis without elements, LaunchFault for one that does not exist or
    is named twice.
    Compare: MPSGraph `reductionLogSumExp`; PyTorch `torch.logsumexp`; TensorFlow `tf.reduce_logsumexp`;
    NumPy `np.logaddexp.reduce`; SciPy `scipy.special.logsumexp`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.logsumexp(np.array([1000, 1000], np.float32)).round(3))
        1000.693
    """
    check_array("logsumexp", "x", x, FLOATS, "floats")
    axes = axes_of("logsumexp", axis, len(x.shape))
    _check_filled("logsumexp", x, axes)
    return _logsumexp(x, axes, bool(keepdims))


# ---- traced ----


@mj.jit(static=["axes", "keepdims", "kind"])
def _sum(x: Any, axes: Any, keepdims: bool, kind: Any) -> Any:
    wide = x if kind is None else x.astype(kind)
    return _like(wide.sum(axis=axes, keepdims=keepdims), wide, kind)


@mj.jit(static=["axes", "keepdims", "kind"])
def _prod(x: Any, axes: Any, keepdims: bool, kind: Any) -> Any:
    wide = x if kind is None else x.astype(kind)
    return _like(wide.prod(axis=axes, keepdims=keepdims), wide, kind)


@mj.jit(static=["axes", "keepdims", "ignore", "name"])
def _extreme(x: Any, axes: Any, keepdims: bool, ignore: bool, name: str) -> Any:
    best = getattr(x, name)(axis=axes, keepdims=keepdims)
    if not ignore:
        return best
    gone = np.isnan(x)
    rest = np.where(gone, -np.inf if name == "max" else np.inf, x)
    rest = getattr(rest.astype(x.dtype), name)(axis=axes, keepdims=keepdims)
    return np.where(gone.all(axis=axes, keepdims=keepdims), best, rest).astype(x.dtype)


@mj.jit(static=["axes", "keepdims"])
def _mean(x: Any, axes: Any, keepdims: bool) -> Any:
    return x.mean(axis=axes, keepdims=keepdims)


@mj.jit(static=["axes", "ddof", "keepdims"])
def _var(x: Any, axes: Any, ddof: int, keepdims: bool) -> Any:
    return x.var(axis=axes, ddof=ddof, keepdims=keepdims)


@mj.jit(static=["axes", "keepdims", "name"])
def _truth(x: Any, axes: Any, keepdims: bool, name: str) -> Any:
    return getattr(x, name)(axis=axes, keepdims=keepdims)


@mj.jit(static=["axis", "keepdims", "name"])
def _place(x: Any, axis: Any, keepdims: bool, name: str) -> Any:
    return getattr(x, name)(axis=axis, keepdims=keepdims)


@mj.jit(static=["axes", "keepdims"])
def _logsumexp(x: Any, axes: Any, keepdims: bool) -> Any:
    wide = x.astype(np.float32)
    best = mj.stop_gradient(wide.max(axis=axes, keepdims=True))
    best = np.where(np.isfinite(best), best, 0)
    total = np.log(np.exp(wide - best).sum(axis=axes, keepdims=True)) + best
    return (total if keepdims else np.squeeze(total, axes)).astype(x.dtype)


def _like(found: Any, x: Any, kind: Any) -> Any:
    """Sums of floats have their dtype, and all have the one that was asked for."""
    return found if kind is None and found.dtype != np.float32 else found.astype(x.dtype)


# ---- arguments ----


def _arguments(op: str, x: Any, axis: Axes, dtype: Any = None) -> tuple[tuple[int, ...], Any]:
    """The axes, and the dtype that was asked for."""
    check_array(op, "x", x, ELEMENTS, "numbers or bools")
    kind = None if dtype is None else dtype_of(op, dtype, NUMBERS)
    return axes_of(op, axis, len(x.shape)), kind


def _extreme_axes(op: str, x: Any, axis: Axes, nan: str) -> tuple[int, ...]:
    axes, _ = _arguments(op, x, axis)
    if nan not in ("propagate", "ignore"):
        refuse(op, f"`nan` is 'propagate' or 'ignore', not {nan!r}")
    _check_filled(op, x, axes)
    return axes


def _place_axis(op: str, x: Any, axis: int | None) -> int | None:
    check_array(op, "x", x, ELEMENTS, "numbers or bools")
    k = None if axis is None else axis_of(op, axis, len(x.shape))
    _check_filled(op, x, range(len(x.shape)) if k is None else (k,))
    return k


def _check_filled(op: str, x: Any, axes: Sequence[int]) -> None:
    """A greatest element is one of some."""
    for k in axes:
        if x.shape[k] == 0:
            refuse(
                op,
                f"axis {k} of `x` has no elements: its shape is {tuple(x.shape)}",
                "",
                "op-shape",
                mj.ShapeError,
            )
