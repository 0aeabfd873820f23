"""Softmax, its logarithm, and the losses of classifiers; the kernels are in losses.mjk.

In: scores or logarithms of probabilities, and which classes are right. Out: probabilities, or how wrong they are. All is
computed in f32; the largest score is subtracted before the exponential, so that nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    Operand,
    axes_of,
    check_array,
    is_float,
    number,
    refuse,
    whole,
)

Axes = tuple[int, ...]


# ---- softmax ----


def softmax(x: Operand, axis: int | Sequence[int] = -1) -> Any:
    """`exp(x)` divided by its sum over the axis, or over several axes together.

    x: array of float16, bfloat16 or float32.

    Returns an array of the shape and dtype of `x`. A row that is -inf throughout, or has +inf or NaN, is NaN.
    Raises TypeFault for other dtypes, LaunchFault for an axis that `x` does not have.
    Compare: MPSGraph `softMax`; PyTorch `F.softmax`; TensorFlow `tf.nn.softmax`; SciPy `special.softmax`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.softmax(np.array([1, 2, 3], np.float32)).round(4)
        array([0.09  , 0.2447, 0.6652], dtype=float32)
    """
    check_array("softmax", "x", x, FLOATS, "floats")
    return _softmax(x, axes_of("softmax", axis, len(x.shape)))


def log_softmax(x: Operand, axis: int | Sequence[int] = -1) -> Any:
    """The logarithm of `softmax(x)`, accurate also where that is near 0 or rounds to it.

    x: array of float16, bfloat16 or float32.
    axis: that of the sum, or several.

    Returns an array of the shape and dtype of `x`. A row that is -inf throughout, or has +inf or NaN, is NaN.
    Raises TypeFault for other dtypes, LaunchFault for an axis that `x` does not have.
    Compare: PyTorch `F.log_softmax`; TensorFlow `tf.nn.log_softmax`; SciPy `special.log_softmax`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.log_softmax(np.array([0, 1e4], np.float32))
        array([-10000.,      0.], dtype=float32)
    """
    check_array("log_softmax", "x", x, FLOATS, "floats")
    return _log_softmax(x, axes_of("log_softmax", axis, len(x.shape)))


@mj.jit(static=["axes"])
def _softmax(x: Any, axes: Axes) -> Any:
    return _softmax_rule(axes)(x.astype(np.float32)).astype(x.dtype)


@mj.jit(static=["axes"])
def _log_softmax(x: Any, axes: Axes) -> Any:
    return _log_softmax_rule(axes)(x.astype(np.float32)).astype(x.dtype)


@lru_cache
def _softmax_rule(axes: Axes) -> Callable[[Any], Any]:
    """Softmax of f32, with `(g - sum(g * y)) * y` for its derivative."""

    def forward(x: Any) -> tuple[Any, Any]:
        e = np.exp(x - x.max(axis=axes, keepdims=True))
        y = e / e.sum(axis=axes, keepdims=True)
        return y, y

    def backward(y: Any, g: Any) -> tuple[Any]:
        return ((g - (g * y).sum(axis=axes, keepdims=True)) * y,)

    return _ruled(forward, backward)


@lru_cache
def _log_softmax_rule(axes: Axes) -> Callable[[Any], Any]:
    """Its logarithm, with `g - sum(g) * softmax`."""

    def forward(x: Any) -> tuple[Any, Any]:
        z = x - x.max(axis=axes, keepdims=True)
        y = z - np.log(np.exp(z).sum(axis=axes, keepdims=True))
        return y, y

    def backward(y: Any, g: Any) -> tuple[Any]:
        return (g - g.sum(axis=axes, keepdims=True) * np.exp(y),)

    return _ruled(forward, backward)


def _ruled(
    forward: Callable[[Any], tuple[Any, Any]], backward: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    rule: Any = mj.custom_vjp(lambda x: forward(x)[0])
    rule.defvjp(forward, backward)
    return rule  # type: ignore[no-any-return]


# ---- losses ----


def softmax_cross_entropy(
    x: Operand,
    target: Operand,
    *,
    weight: Operand | None = None,
    reduction: Literal["none", "mean", "sum"] = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """How far the scores `x` are from the right classes: the sum of `-target * log_softmax(x)` over the classes.

    x: scores, an array of float16, bfloat16 or float32. `axis` is that of the classes; None is 1, or 0 where it is the only
        one.
    target: integers: the right class for each place of the other axes. Floats of the shape of `x`: the probability of each
        class.
    weight: of each class, of shape [classes].
    reduction: "none": a loss for each place of the other axes (`keepdims` leaves an axis of one for the classes). "sum": all
        of them together. "mean": the sum divided by the weights of the classes that are right and count, or where the
        targets are probabilities, by the number of places.
    ignore_index: the class, also a negative one, that counts neither in the sum nor in the mean; of integer targets only.
    label_smoothing: how much of the target is spread evenly over all classes, from 0 to 1.

    Returns an array of the dtype of `x`. MPSGraph's takes probabilities alone and keeps the axis.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other arguments that
    make no sense; KernelAssertion for a class that there is not.
    Compare: MPSGraph `softMaxCrossEntropy`; PyTorch `F.cross_entropy`; TensorFlow
        `tf.nn.softmax_cross_entropy_with_logits`, `tf.nn.sparse_softmax_cross_entropy_with_logits`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[1, 2, 3], [1, 0, -1]], np.float32)
        >>> ops.softmax_cross_entropy(x, np.array([2, 0]), reduction="none").round(4)
        array([0.4076, 0.4076], dtype=float32)
    """
    options = _checked("softmax_cross_entropy", x, target, weight, reduction, label_smoothing, axis)
    ignored = whole("softmax_cross_entropy", "ignore_index", ignore_index, -(2**63))
    return _loss(x, target, weight, *options, ignored, bool(keepdims), True)


def nll(
    x: Operand,
    target: Operand,
    *,
    weight: Operand | None = None,
    reduction: Literal["none", "mean", "sum"] = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int | None = None,
    keepdims: bool = False,
) -> Any:
    """The negative logarithm of the likelihood: the sum of `-target * x` over the classes.

    x: logarithms of probabilities, as `log_softmax` gives. All other arguments, and what is raised, are those of
        `softmax_cross_entropy(x, …)`, which is `nll(log_softmax(x, axis), …)`.

    Returns an array of the dtype of `x`.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, LaunchFault for other arguments that
    make no sense; KernelAssertion for a class that there is not.
    Compare: PyTorch `F.nll_loss`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]], np.float32))
        >>> ops.nll(x, np.array([0, 1]), reduction="none").round(4)
        array([0.6931, 0.2231], dtype=float32)
    """
    options = _checked("nll", x, target, weight, reduction, label_smoothing, axis)
    ignored = whole("nll", "ignore_index", ignore_index, -(2**63))
    return _loss(x, target, weight, *options, ignored, bool(keepdims), False)


def _checked(
    op: str, x: Any, target: Any, weight: Any, reduction: str, smoothing: Any, axis: int | None
) -> tuple[int, str, float]:
    """The axis of the classes, the reduction and the smoothing."""
    check_array(op, "x", x, FLOATS, "floats")
    check_array(op, "target", target, NUMBERS, "classes as integers, or probabilities as floats")
    rank = len(x.shape)
    if not rank:
        refuse(op, "`x` has no axis for the classes", "", "op-shape", mj.ShapeError)
    (at,) = axes_of(op, min(1, rank - 1) if axis is None else axis, rank)
    right = tuple(x.shape) if is_float(target.dtype) else tuple(e for k, e in enumerate(x.shape) if k != at)
    if len(target.shape) != len(right) or any(a != b for a, b in zip(target.shape, right, strict=True)):
        what = "probabilities" if is_float(target.dtype) else "classes"
        refuse(op, f"`target` has {what} of shape {tuple(target.shape)}, and {right} is due for `x` of shape "
               f"{tuple(x.shape)} with the classes along axis {at}", "", "op-shape", mj.ShapeError)  # fmt: skip
    if weight is not None:
        check_array(op, "weight", weight, FLOATS, "floats")
        if len(weight.shape) != 1 or weight.shape[0] != x.shape[at]:
            refuse(op, f"`weight` has shape {tuple(weight.shape)}, and there are {x.shape[at]} classes", "",
                   "op-shape", mj.ShapeError)  # fmt: skip
    if reduction not in ("none", "mean", "sum"):
        refuse(op, f"`reduction` is 'none', 'mean' or 'sum', not {reduction!r}")
    spread = number(op, "label_smoothing", smoothing, lambda v: 0 <= v <= 1, "a number from 0 to 1")
    return at, reduction, spread


@mj.jit(static=["axis", "reduction", "smoothing", "ignored", "keepdims", "scores"])
def _loss(
    x: Any,
    target: Any,
    weight: Any,
    axis: int,
    reduction: str,
    smoothing: float,
    ignored: int,
    keepdims: bool,
    scores: bool,
) -> Any:
    wide = x.astype(np.float32)
    cost = -(_log_softmax_rule((axis,))(wide) if scores else wide)
    if weight is not None:
        weight = weight.astype(np.float32)
    if is_float(target.dtype):
        hit, counts, weights = target.astype(np.float32), None, None
        losses = _weighted(cost, weight, axis) * hit
    else:
        counts = mj.stdlib.losses.counted(target, x, axis, ignored)
        at = target.astype(np.int32)
        weights = counts if weight is None else np.where(counts > 0, weight[at], 0)
        hit = mj.stdlib.losses.classes(cost, axis) == np.expand_dims(at, axis)
        # Chosen, not multiplied: the cost of a class that is not right may be infinite.
        losses = np.where(hit, _weighted(cost, weight, axis), 0)
    found = losses.sum(axis=axis)
    if smoothing:
        found = (1 - smoothing) * found + smoothing * _weighted(cost, weight, axis).mean(axis=axis)
    if counts is not None:
        found = np.where(counts > 0, found, 0)
    return _reduced(found, weights, axis, reduction, keepdims).astype(x.dtype)


def _weighted(cost: Any, weight: Any, axis: int) -> Any:
    """The cost of each class, times the weight of the class."""
    if weight is None:
        return cost
    return cost * weight.reshape((*(1,) * axis, -1, *(1,) * (cost.ndim - axis - 1)))


def _reduced(losses: Any, weights: Any, axis: int, reduction: str, keepdims: bool) -> Any:
    """One loss of many; `weights` are what each has in a mean, None if all have the same."""
    if reduction == "none":
        return np.expand_dims(losses, axis) if keepdims else losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if weights is None else losses.sum() / weights.sum()
