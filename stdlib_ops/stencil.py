"""Stencil ops; the kernels are in stencil.mjk.

In: arrays and modes. Out: what the kernels return. Which modes there are is said here, what they mean in the language's
`border`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import metaljit as mj
from metaljit.stdlib_ops.operands import NUMBERS, SIGNED, Operand, axes_of, check_array, refuse
from metaljit.stdlib_ops.pad import SHORTENED, pad
from metaljit.stdlib_ops.stencil_windows import Windows, modes_of, windows
from metaljit.stdlib_ops.windows import Padding, each

REDUCTIONS = ("sum", "prod", "min", "max", "argmin", "argmax")


def laplacian(
    x: Operand,
    *,
    mode: str | Sequence[str] = "reflect",
    value: Any = None,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The Laplacian: the sum over `axes` (all, if None) of the second differences `x[i - 1] - 2 * x[i] + x[i + 1]`.

    x: array of any shape, of floats or signed integers (unsigned ones cannot hold the result); 0-d gives 0.
    mode: what stands outside the array, one for all axes or one for each: NumPy's "constant", "edge", "reflect",
        "symmetric", "wrap", or "antiperiodic" (`x[i + L] = -x[i]`). SciPy calls "edge" nearest, "reflect" mirror and
        "symmetric" reflect.
    value: what a "constant" border holds, 0 if None.

    Returns an array of the shape and dtype of `x`. 16-bit floats are summed in 32 bits and rounded once; integers wrap.

    Raises TypeFault for other dtypes, LaunchFault for a mode, value or axis that does not exist.
    Compare: MPSGraph `stencil` with weights 1, -2, 1; SciPy `ndimage.laplace`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> ops.laplacian(np.array([1, 2, 4, 8], np.float32), mode="edge")
    array([ 1.,  1.,  2., -4.], dtype=float32)
    """
    check_array("laplacian", "x", x, SIGNED, "floats or signed integers (a Laplacian can be negative)")
    rank = len(x.shape)
    modes = modes_of("laplacian", mode, rank)
    if value is not None and "constant" not in (mode, *modes):
        refuse("laplacian", f"`value` belongs to the mode 'constant', and the mode is {mode!r}")
    kernel = mj.stdlib.stencil.laplacian
    return kernel(x, modes, 0 if value is None else value, axes_of("laplacian", axes, rank))


def stencil(
    x: Operand,
    weights: Operand,
    *,
    reduction: str = "sum",
    mode: str | Sequence[str] = "constant",
    value: Any = 0,
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    padding: Padding = "same",
    offset: int | Sequence[int] | None = None,
) -> Any:
    """Each element from a window of its neighbours: `reduce_j(x[i * stride + j * dilation - before] * weights[j])`.

    x: array of numbers. The window lies on its last axes, as many as `weights` has; the others are a batch.
    weights: array of the dtype of `x`, whose shape is that of the window. Each tap is multiplied by its weight whatever the
        reduction is, so a weight of 0 does not remove a tap, but makes it 0.
    reduction: "sum", "prod", "min", "max", or "argmin", "argmax": the tap's place in the window, flattened, the first of
        equal ones. "min", "max" and their places pass over NaN, unless there is nothing else.
    mode: what stands outside of `x`, for all axes of the window or one for each; the modes of `ops.pad`. It takes part
        like any other element: with zeros outside, the largest of negative numbers at the border is 0.
    value: what a "constant" border holds.
    stride, dilation: how far windows, and taps in a window, are apart: a number for all axes of the window, or one for each.
    padding: how many windows there are. "same": as many as elements, divided by the stride, a window's middle at its
        element; of an even size it reaches one further on, with "same_lower" one further back. "valid": those inside. Or
        how many elements are outside before and after: a number, one for each axis, or pairs of them.
    offset: instead of a padding, where the first window starts, 0 being the first element; there are as many as with "same".

    Returns an array of the dtype of `x`, of places int32. 16-bit floats are reduced in 32 bits and rounded once, a sum of
    floats rounds each product and addition together, integers wrap.
    Derivatives: of "min" and "max" only the tap that wins has one; places have none.

    Raises TypeFault for dtypes that are not numbers, or not the same; ShapeError for a window that is empty, has more axes
    than `x`, or does not fit; LaunchFault for other arguments that make no sense.
    Compare: MPSGraph `stencil`; PyTorch `F.conv2d` of one channel; TensorFlow `tf.nn.conv2d` of one channel; SciPy
    `ndimage.correlate`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> x = np.array([[1, 2, 3], [5, 6, 20], [9, 10, 11]], np.float32)
    >>> w = np.array([[1, 2], [-1, 1]], np.float32)
    >>> ops.stencil(x, w, padding="valid")
    array([[ 6., 22.],
           [18., 47.]], dtype=float32)
    >>> ops.stencil(x, w, padding="valid", reduction="argmax")
    array([[3, 3],
           [1, 1]], dtype=int32)
    """
    check_array("stencil", "x", x, NUMBERS, "numbers")
    check_weights("stencil", x, weights)
    if reduction not in REDUCTIONS:
        refuse(
            "stencil", f"there is no reduction {reduction!r}", "there are " + ", ".join(map(repr, REDUCTIONS))
        )
    at = windows("stencil", x.shape, sizes(weights), stride, dilation, padding, offset)
    modes = modes_of("stencil", mode, len(at.size), extra=tuple(SHORTENED))
    if any(m in SHORTENED for m in modes):  # no mode of a border
        widths, at = at.padded()
        x = pad(
            x,
            ((0, 0),) * (len(x.shape) - len(widths)) + widths,
            ("edge",) * (len(x.shape) - len(widths)) + modes,
            value,
        )
        modes = ("edge",) * len(modes)
    return reduced(x, weights, at, reduction, modes, value)


def correlate(
    x: Operand,
    weights: Operand,
    *,
    mode: str | Sequence[str] = "reflect",
    value: Any = 0,
    origin: int | Sequence[int] = 0,
) -> Any:
    """The sum of each element's neighbours times `weights`: `y[i] = sum_j(x[i + j - n // 2 - origin] * weights[j])`.

    x: array of numbers. The window lies on its last axes, as many as `weights` has; the others are a batch.
    weights: array of the dtype of `x`, n elements along an axis.
    mode, value: what stands outside of `x`, as in `ops.laplacian`, for all axes of the window or one for each.
    origin: how far the window is shifted back, for all axes or one for each; its element stays in the window.

    Returns an array of the shape and dtype of `x`; sums are those of `ops.stencil`.
    Raises what `ops.stencil` raises, and LaunchFault for an origin outside of the window.
    Compare: MPSGraph `stencil`; PyTorch `F.conv2d` of one channel; NumPy `correlate`; SciPy `ndimage.correlate`, which calls
    "edge" nearest, "reflect" mirror and "symmetric" reflect.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> x, w = np.array([1, 2, 4, 8], np.float32), np.array([1, 0, -1], np.float32)
    >>> ops.correlate(x, w, mode="edge")
    array([-1., -3., -6., -4.], dtype=float32)
    """
    return _centred("correlate", x, weights, mode, value, origin, 1)


def convolve(
    x: Operand,
    weights: Operand,
    *,
    mode: str | Sequence[str] = "reflect",
    value: Any = 0,
    origin: int | Sequence[int] = 0,
) -> Any:
    """`ops.correlate` with the weights in reverse: `y[i] = sum_j(x[i - j + n // 2 - origin] * weights[j])`.

    x, weights, mode, value, origin: as there.

    Returns an array of the shape and dtype of `x`.
    Raises what `ops.correlate` raises.
    Compare: NumPy `convolve`; SciPy `ndimage.convolve`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> x, w = np.array([0, 1, 0, 0], np.float32), np.array([1, 2, 3], np.float32)
    >>> ops.convolve(x, w, mode="constant")
    array([1., 2., 3., 0.], dtype=float32)
    """
    return _centred("convolve", x, weights, mode, value, origin, -1)


def _centred(op: str, x: Any, weights: Any, mode: Any, value: Any, origin: Any, sense: int) -> Any:
    check_array(op, "x", x, NUMBERS, "numbers")
    check_weights(op, x, weights)
    size = sizes(weights)
    origins = each(op, "origin", origin, len(size), -(2**31))
    for n, o in zip(size, origins, strict=True):
        if not 0 <= n // 2 + o < n:
            refuse(op, f"`origin` {o} puts the element outside of a window of {n}",
                   f"it goes from {-(n // 2)} to {(n - 1) // 2}")  # fmt: skip
    if sense < 0:
        weights = weights[(slice(None, None, -1),) * len(size)]
        origins = tuple(-o - 1 + n % 2 for n, o in zip(size, origins, strict=True))
    starts = tuple(-(n // 2) - o for n, o in zip(size, origins, strict=True))
    at = windows(op, x.shape, size, offset=starts)
    return reduced(x, weights, at, "sum", modes_of(op, mode, len(size)), value)


# ---- what stencils share ----


def check_weights(op: str, x: Any, weights: Any) -> None:
    check_array(op, "weights", weights, NUMBERS, "numbers")
    if weights.dtype != x.dtype:
        refuse(op, f"`weights` are {weights.dtype.name}, and `x` is {x.dtype.name}",
               "convert them: `weights.astype(x.dtype)`", "op-dtype", mj.TypeFault)  # fmt: skip


def sizes(weights: Any) -> tuple[int, ...]:
    """The window's extents, which are constants of the kernels."""
    return tuple(int(n) for n in weights.shape)


def reduced(x: Any, weights: Any, at: Windows, reduction: str, modes: tuple[str, ...], value: Any) -> Any:
    """The windows `at` of `x`, with a border mode for each of their axes."""
    kernels = mj.stdlib.stencil
    rank = len(x.shape)
    border = (*("edge",) * (rank - len(modes)), *modes), value if "constant" in modes else 0
    constants = (*border, *at.constants(rank))
    folded = at.folded(weights)
    if reduction in ("sum", "prod"):
        return kernels.stencil(x, folded, *constants, reduction == "prod")
    largest = reduction.endswith("max")
    if reduction.startswith("arg"):
        return kernels.extremes(x, folded, *constants, largest)[1]
    extreme = mj.custom_vjp(lambda x, w: kernels.extremes(x, w, *constants, largest)[0])

    def forward(x: Any, w: Any) -> Any:
        best, places = kernels.extremes(x, w, *constants, largest)
        return best, (x, w, places)

    def backward(kept: Any, derivative: Any) -> Any:
        x, w, places = kept
        return mj.vjp(lambda x, w: kernels.taken(x, w, places, *constants), x, w)[1](derivative)

    extreme.defvjp(forward, backward)
    return extreme(x, folded)
