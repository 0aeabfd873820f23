"""Pooling by sums: averages, and square roots of sums of squares; the kernels are in pooling_means.mjk.

In: arrays, windows and a layout. Out: what the kernels return. By what a window's sum is divided is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.operands import FLOATS, Operand, check_array, is_traced, lengths, refuse
from metaljit.stdlib_ops.windows import Padding, Windows, windowed_axes, windows_of


def avg_pool(
    x: Operand,
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Any:
    """The mean of each window.

    x: array of floats.
    size, stride, padding, dilation, ceil_mode, layout: as `max_pool` has them. Padding is zeros.
    count_include_pad: divides by the taps that lie in the input and its padding (PyTorch; what a last window of `ceil_mode`
        has beyond the padding does not count). False: by those in the input alone (TensorFlow).
    divisor_override: divides by this instead.

    Returns an array of the dtype of `x`; 16-bit floats are added in f32 and rounded once.

    Raises TypeFault for other dtypes, ShapeError for a rank that does not fit the layout or a window that holds no element,
    LaunchFault for other arguments that make no sense.

    Compare: MPSGraph `avgPooling2D`, which does not count padding unless `includeZeroPadToAverage`; PyTorch `F.avg_pool2d`;
    TensorFlow `tf.nn.avg_pool`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
        >>> print(ops.avg_pool(x, 3, stride=2, padding=1, layout="HW", count_include_pad=False))
        [[3. 4.]
         [6. 7.]]
    """
    check_array("avg_pool", "x", x, FLOATS, "floats")
    axes = windowed_axes("avg_pool", layout, len(x.shape))
    pool = windows_of("avg_pool", x.shape, axes, size, stride, padding, dilation, ceil_mode)
    division = _division("avg_pool", pool, count_include_pad, divisor_override)
    return _averaged(pool, division, x)


def avg_pool_grad(
    grad: Operand,
    shape: Sequence[int],
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
    count_include_pad: bool = True,
    divisor_override: float | None = None,
) -> Any:
    """The derivative of `avg_pool` by its argument, which had `shape`, from that by its means.

    grad: array of floats, of the shape of the means. The other arguments are those of `avg_pool`.

    Each element adds up the derivatives of the windows that hold it, divided as these are. Returns an array of `shape` and
    the dtype of `grad`. `mj.grad` goes through it.

    Raises TypeFault for other dtypes, ShapeError where shapes do not fit, LaunchFault for other arguments that make no
    sense.

    Compare: MPSGraph `avgPooling2DGradient`; PyTorch `torch.ops.aten.avg_pool2d_backward`; TensorFlow
    `tf.raw_ops.AvgPoolGrad`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> grad = np.array([[1, 2], [3, 4]], np.float32)
        >>> print(ops.avg_pool_grad(grad, (3, 3), 3, stride=2, padding=1, layout="HW", count_include_pad=False))
        [[0.25 0.75 0.5 ]
         [1.   2.5  1.5 ]
         [0.75 1.75 1.  ]]
    """
    op = "avg_pool_grad"
    check_array(op, "grad", grad, FLOATS, "floats")
    given = lengths(op, "shape", shape)
    axes = windowed_axes(op, layout, len(given))
    pool = windows_of(op, given, axes, size, stride, padding, dilation, ceil_mode)
    if tuple(grad.shape) != pool.counts(given):
        refuse(op, f"`grad` has shape {tuple(grad.shape)}, and the windows of {given} are {pool.counts(given)}", "",
               "op-shape", mj.ShapeError)  # fmt: skip
    return _spread(pool, _division(op, pool, count_include_pad, divisor_override), grad)


def l2_pool(
    x: Operand,
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
) -> Any:
    """The square root of the sum of squares of each window.

    x: array of floats. The other arguments are those of `max_pool`; padding is zeros.

    Returns an array of the dtype of `x`. Its derivative is `x / y`, added up over the windows that hold an element; a window
    of nothing but zeros has the derivative 0.

    Raises as `avg_pool`.

    Compare: MPSGraph `L2NormPooling4D`; PyTorch `F.lp_pool2d(x, 2, …)`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[3, 4, 0], [0, 0, 12]], np.float32)
        >>> print(ops.l2_pool(x, 2, stride=1, layout="HW").round(3))
        [[ 5.    12.649]]
    """
    check_array("l2_pool", "x", x, FLOATS, "floats")
    axes = windowed_axes("l2_pool", layout, len(x.shape))
    pool = windows_of("l2_pool", x.shape, axes, size, stride, padding, dilation, ceil_mode)

    def run(x: Any) -> Any:
        p = pool
        constants = (p.axes, p.size, p.stride, p.dilation, p.extra)
        return mj.stdlib.pooling_means.l2_pool(x, p.before, *constants)

    def forward(x: Any) -> Any:
        y = run(x)
        return y, (x, y)

    def backward(kept: Any, grad: Any) -> Any:
        x, y = kept
        share = np.where(y > 0, grad.astype(np.float32) / y.astype(np.float32), 0)
        return ((x * _spread(pool, (1.0, False, False), share)).astype(x.dtype),)

    if not is_traced(x):
        return run(x)
    rule = mj.custom_vjp(run)
    rule.defvjp(forward, backward)
    return rule(x)


_Division = tuple[
    float, bool, bool
]  # the divisor; whether it is counted for each window, and with the padding


def _division(op: str, pool: Windows, included: Any, divisor: Any) -> _Division:
    if divisor is not None:
        try:
            number = float(divisor)
        except (TypeError, ValueError):
            refuse(op, f"`divisor_override` is a number, not {divisor!r}")
        if number == 0 or not np.isfinite(np.float32(number)):
            refuse(op, f"`divisor_override` is a finite number other than 0, not {divisor!r}")
        return number, False, False
    full = float(prod(w.size for w in pool.each))
    inside = all(w.whole and (included or w.before + w.after == 0) for w in pool.each)
    return full, not inside, bool(included)


def _averaged(pool: Windows, division: _Division, x: Any) -> Any:
    divisor, counted, included = division

    def run(x: Any) -> Any:
        p = pool
        constants = (p.axes, p.size, p.stride, p.dilation, p.extra, counted, included)
        return mj.stdlib.pooling_means.avg_pool(x, p.before, p.after, divisor, *constants)

    if not is_traced(x):
        return run(x)
    rule = mj.custom_vjp(run)
    rule.defvjp(lambda x: (run(x), ()), lambda kept, grad: (_spread(pool, division, grad),))
    return rule(x)


def _spread(pool: Windows, division: _Division, grad: Any) -> Any:
    """What windows give back to their elements."""
    divisor, counted, included = division

    def run(grad: Any) -> Any:
        p = pool
        constants = (p.axes, p.size, p.stride, p.dilation, p.turns, p.rest, counted, included)
        return mj.stdlib.pooling_means.avg_pool_back(grad, p.before, p.after, divisor, *constants)

    if not is_traced(grad):
        return run(grad)
    rule = mj.custom_vjp(run)
    rule.defvjp(lambda g: (run(g), ()), lambda kept, given: (_averaged(pool, division, given),))
    return rule(grad)
