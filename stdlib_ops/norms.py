"""Normalisation over axes, over a batch, and over neighbouring channels; the kernels are in norms.mjk.

In: an array of floats, with scales and shifts. Out: an array of its shape and dtype. Means and variances are computed in
f32, variances as means of squared distances from the mean, so that a large mean costs no digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.operands import (
    FLOATS,
    Operand,
    axes_of,
    check_array,
    number,
    refuse,
    whole,
)

Axes = tuple[int, ...]


def _moments(x: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """The mean, what is left of x without it, and the variance, which is the mean square of that.

    A mean is rounded, by more the larger it is beside what is left; so the mean of what is left is taken from that again.
    """
    mean = x.mean(axis=axes, keepdims=True)
    off = x - mean
    rest = off.mean(axis=axes, keepdims=True)
    return mean + rest, off - rest, (off * off).mean(axis=axes, keepdims=True) - rest * rest


@lru_cache
def _standard(axes: Axes, centred: bool) -> Any:
    """`(x - mean) / sqrt(variance + eps)` over the axes, or without the mean, with its derivative in closed form.

    Of y = (x - mean) r that is r (g - mean(g) - y mean(g y)), where r is the factor; MPSGraph's gradient of a
    normalisation is the same.
    """

    def forward(x: Any, eps: Any) -> tuple[Any, Any]:
        if centred:
            _, off, square = _moments(x, axes)
        else:
            off, square = x, (x * x).mean(axis=axes, keepdims=True)
        r = 1 / np.sqrt(square + eps)
        return off * r, (off * r, r)

    def backward(kept: Any, g: Any) -> tuple[Any, None]:
        y, r = kept
        rest = g - y * (g * y).mean(axis=axes, keepdims=True)
        return r * (rest - g.mean(axis=axes, keepdims=True) if centred else rest), None

    rule = mj.custom_vjp(lambda x, eps: forward(x, eps)[0])
    rule.defvjp(forward, backward)
    return rule


# ---- over axes ----


def layer_norm(
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    axes: int | Sequence[int] = -1,
    eps: float = 1e-5,
) -> Any:
    """`(x - mean) / sqrt(variance + eps) * weight + bias`, with mean and variance over the axes.

    x: array of float16, bfloat16 or float32.
    weight, bias: arrays of the extents of `x` along the axes, in their order; None is 1, and 0.
    axes: PyTorch's `normalized_shape` is the extents of the last ones. Those of each channel are instance normalisation.
    eps: added to the variance, which is divided by the number of elements.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes, ShapeError for a weight or bias of another shape, LaunchFault for an axis that `x`
    does not have and for an `eps` below 0.
    Compare: MPSGraph `normalization`; PyTorch `F.layer_norm`; TensorFlow `tf.keras.layers.LayerNormalization`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.layer_norm(np.array([[1, 2, 3], [0, 0, 0]], np.float32)).round(4)
        array([[-1.2247,  0.    ,  1.2247],
               [ 0.    ,  0.    ,  0.    ]], dtype=float32)
    """
    at = _checked_axes("layer_norm", x, axes, weight=weight, bias=bias)
    return _over_axes(x, weight, bias, _epsilon("layer_norm", eps), at, True)


def rms_norm(
    x: Operand,
    weight: Operand | None = None,
    *,
    axes: int | Sequence[int] = -1,
    eps: float | None = None,
) -> Any:
    """`x / sqrt(mean of x² + eps) * weight`, with the mean over the axes.

    x: array of float16, bfloat16 or float32.
    weight: array of the extents of `x` along the axes, in their order; None is 1.
    eps: None is the distance from 1 to the next number of the dtype of `x`.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes, ShapeError for a weight of another shape, LaunchFault for an axis that `x` does not
    have and for an `eps` below 0.
    After Zhang, Sennrich, Root Mean Square Layer Normalization, 2019.
    Compare: PyTorch `F.rms_norm`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.rms_norm(np.array([3, 4], np.float32)).round(4)
        array([0.8485, 1.1314], dtype=float32)
    """
    at = _checked_axes("rms_norm", x, axes, weight=weight)
    least = {2: 2**-10, 4: 2**-23}[x.dtype.itemsize] if x.dtype.name != "bfloat16" else 2**-7
    return _over_axes(x, weight, None, least if eps is None else _epsilon("rms_norm", eps), at, False)


@mj.jit(static=["axes", "centred"])
def _over_axes(x: Any, weight: Any, bias: Any, eps: Any, axes: Axes, centred: bool) -> Any:
    y = _standard(axes, centred)(x.astype(np.float32), eps)
    return _affine(y, weight, bias, axes).astype(x.dtype)


def _affine(y: Any, weight: Any, bias: Any, axes: Axes) -> Any:
    """Scaled and shifted by arrays of the extents of `axes`."""
    around = tuple(k for k in range(y.ndim) if k not in axes)
    if weight is not None:
        y = y * np.expand_dims(weight.astype(np.float32), around)
    return y if bias is None else y + np.expand_dims(bias.astype(np.float32), around)


def _epsilon(op: str, eps: Any) -> float:
    return number(op, "eps", eps, lambda v: v >= 0, "a number of at least 0")


def _checked_axes(op: str, x: Any, axes: Any, **affine: Any) -> Axes:
    """The axes, which all of `affine` have as theirs."""
    check_array(op, "x", x, FLOATS, "floats")
    at = axes_of(op, axes, len(x.shape))
    _check_extents(op, [x.shape[k] for k in at], **affine)
    return at


def _check_extents(op: str, extents: Sequence[Any], **arrays: Any) -> None:
    for name, array in arrays.items():
        if array is None:
            continue
        check_array(op, name, array, FLOATS, "floats")
        if len(array.shape) != len(extents) or any(a != b for a, b in zip(array.shape, extents, strict=True)):
            refuse(op, f"`{name}` has shape {tuple(array.shape)}, and {tuple(extents)} is due", "", "op-shape",
                   mj.ShapeError)  # fmt: skip


# ---- over a batch ----


def batch_norm(
    x: Operand,
    running_mean: Operand | mj.Variable | None = None,
    running_var: Operand | mj.Variable | None = None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    axis: int = 1,
    unbiased: bool = True,
) -> Any:
    """Each channel of a batch, normalised: `(x - mean) / sqrt(variance + eps) * weight + bias`.

    x: array of float16, bfloat16 or float32; `axis` is that of the channels (NCHW: 1, NHWC: -1).
    running_mean, running_var, weight, bias: arrays of shape [channels]; a weight of None is 1, a bias 0. The first two may
        be variables, or both None in training.
    training: mean and variance are those of the batch over all other axes, the variance divided by the number of elements;
        and the running statistics become `(1 - momentum) * running + momentum * batch`. Otherwise the running statistics
        normalise, and stay.
    momentum: of the batch, as in PyTorch; Keras' momentum is 1 minus this.
    unbiased: whether the running variance takes the batch's divided by one less than the number of elements (PyTorch), or
        by that number (Keras). No derivative goes through running statistics that are made here.

    Returns an array of the shape and dtype of `x`. In training with running statistics that are arrays, three: the result,
    the new mean and the new variance; variables are assigned instead, once in each call, and the result comes after that.
    Raises TypeFault for other dtypes, ShapeError for shapes that do not go together, and in training for a batch with less
    than two elements a channel; LaunchFault for other arguments that make no sense.
    After Ioffe, Szegedy, Batch Normalization, 2015.
    Compare: MPSGraph `normalization` of `mean` and `variance`; PyTorch `F.batch_norm`; TensorFlow
        `tf.compat.v1.nn.fused_batch_norm`.

    Example:
        >>> import numpy as np
        >>> import metaljit as mj
        >>> from metaljit import ops
        >>> x = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)
        >>> mean, variance = mj.Variable(np.zeros(2, np.float32)), mj.Variable(np.ones(2, np.float32))
        >>> ops.batch_norm(x, mean, variance, training=True).round(4)
        array([[-1.3416, -1.3416],
               [-0.4472, -0.4472],
               [ 0.4472,  0.4472],
               [ 1.3416,  1.3416]], dtype=float32)
        >>> mean.value.numpy(), variance.value.numpy().round(4)
        (array([0.4, 0.5], dtype=float32), array([1.5667, 1.5667], dtype=float32))
    """
    op = "batch_norm"
    check_array(op, "x", x, FLOATS, "floats")
    (at,) = axes_of(op, axis, len(x.shape))
    running = (running_mean, running_var)
    variables = [r for r in running if isinstance(r, mj.Variable)]
    known = [r for r in running if r is not None]
    if len(known) == 1 or len(variables) == 1:
        refuse(op, "`running_mean` and `running_var` are both arrays, both variables, or both None")
    mean, variance = (_beside(x, r.value) if isinstance(r, mj.Variable) else r for r in running)
    _check_extents(op, [x.shape[at]], running_mean=mean, running_var=variance, weight=weight, bias=bias)
    least = _epsilon(op, eps)
    share = number(op, "momentum", momentum, lambda v: 0 <= v <= 1, "a number from 0 to 1")
    if not training:
        if not known:
            refuse(op, "without `training` the running statistics normalise, and there are none",
                   "pass `running_mean` and `running_var`, or training=True")  # fmt: skip
        return _by_running(x, mean, variance, weight, bias, least, at)
    elements = 1
    for k, extent in enumerate(x.shape):
        elements = elements * extent if k != at else elements
    if elements < 2:
        refuse(op, f"`x` has shape {tuple(x.shape)}, and a variance takes two elements of each channel, or more",
               "", "op-shape", mj.ShapeError)  # fmt: skip
    if not known:
        return _by_batch(x, weight, bias, least, at)
    y, *new = _updating(x, mean, variance, weight, bias, least, share, at, bool(unbiased))
    if not variables:
        return (y, *new)
    done = [v.assign(value) for v, value in zip(variables, new, strict=True)]
    return mj.control_dependency(y, after=done)


def _beside(x: Any, value: Any) -> Any:
    """A variable's value as NumPy's array where `x` is one, so that the result is one too."""
    return value.numpy() if isinstance(value, mj.Array) and isinstance(x, np.ndarray) else value


def _others(rank: int, axis: int) -> Axes:
    return tuple(k for k in range(rank) if k != axis)


@mj.jit(static=["axis"])
def _by_batch(x: Any, weight: Any, bias: Any, eps: Any, axis: int) -> Any:
    y = _standard(_others(x.ndim, axis), True)(x.astype(np.float32), eps)
    return _affine(y, weight, bias, (axis,)).astype(x.dtype)


@mj.jit(static=["axis"])
def _by_running(x: Any, mean: Any, variance: Any, weight: Any, bias: Any, eps: Any, axis: int) -> Any:
    around = _others(x.ndim, axis)
    scale = 1 / np.sqrt(variance.astype(np.float32) + eps)
    y = (x.astype(np.float32) - np.expand_dims(mean.astype(np.float32), around)) * np.expand_dims(
        scale, around
    )
    return _affine(y, weight, bias, (axis,)).astype(x.dtype)


@mj.jit(static=["axis", "unbiased"])
def _updating(
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any,
    bias: Any,
    eps: Any,
    share: Any,
    axis: int,
    unbiased: bool,
) -> Any:
    """The result, and the running statistics after this batch."""
    around = _others(x.ndim, axis)
    m, _, v = _moments(x.astype(np.float32), around)
    if unbiased:
        n = x.size // x.shape[axis]
        v = v * n / (n - 1)
    batch = mj.stop_gradient([value.reshape(-1) for value in (m, v)])
    new = [(1 - share) * old + share * now for old, now in zip((mean, variance), batch, strict=True)]
    y = _by_batch(x, weight, bias, eps, axis)
    return y, *(n.astype(old.dtype) for n, old in zip(new, (mean, variance), strict=True))


# ---- over neighbouring channels ----


def local_response_norm(
    x: Operand, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, axis: int = 1
) -> Any:
    """`x / (k + alpha * s) ** beta`, where s is the mean of the squares of neighbouring channels.

    x: array of float16, bfloat16 or float32; `axis` is that of the channels.
    size: the window of channel c is from c - size // 2 on, so many channels; outside are zeros, and s is the window's sum
        divided by `size`, also near the edges. TensorFlow's `alpha` is this one divided by `size`.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes, LaunchFault for a window of no channel and an axis that `x` does not have.
    After Krizhevsky, Sutskever, Hinton, ImageNet Classification with Deep Convolutional Neural Networks, 2012.
    Compare: PyTorch `F.local_response_norm`; TensorFlow `tf.nn.local_response_normalization`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.local_response_norm(np.array([[1, 2, 3]], np.float32), 3, alpha=1.0).round(4)
        array([[0.4792, 0.5445, 0.8548]], dtype=float32)
    """
    op = "local_response_norm"
    check_array(op, "x", x, FLOATS, "floats")
    (at,) = axes_of(op, axis, len(x.shape))
    window = whole(op, "size", size, 1)
    numbers = [float(v) for v in (alpha, beta, k)]
    return _by_neighbours(x, *numbers, window, at)


@mj.jit(static=["size", "axis"])
def _by_neighbours(x: Any, alpha: Any, beta: Any, k: Any, size: int, axis: int) -> Any:
    wide = x.astype(np.float32)
    sums = mj.stdlib.norms.window_sums(wide * wide, axis, size)
    return (wide * (k + alpha / size * sums) ** -beta).astype(x.dtype)
