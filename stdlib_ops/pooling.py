"""Pooling by maxima; the kernels are in pooling.mjk.

In: arrays, windows and a layout. Out: what the kernels return. Where windows lie is worked out in windows.py, and here what
an index counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import metaljit as mj
from metaljit.lang import i32, i64
from metaljit.stdlib_ops.operands import NUMBERS, Operand, check_array, is_traced, lengths, refuse
from metaljit.stdlib_ops.windows import (
    MOST_AXES,
    Padding,
    Windows,
    each,
    paddings,
    windowed_axes,
    windows_of,
)

INDEX_MODES = tuple(f"{scope}_{n}d" for scope in ("global", "local") for n in (1, 2, 3, 4))


def max_pool(
    x: Operand,
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
    return_indices: bool = False,
    indices: str | None = None,
    nan: Literal["propagate", "compare"] = "propagate",
) -> Any:
    """The largest element of each window, and with `return_indices` where it stands.

    x: array of any number dtype.
    size, stride, dilation: a number for all pooled axes, or one for each. `stride` None is `size`; a window takes every
        `dilation`-th element.
    padding: elements before and after each pooled axis: a number, one for each axis, or a pair (before, after) for each;
        or TensorFlow's "valid" (none), "same" (as many outputs as strides fit in the input, the odd element after) and
        "same_lower" (the odd one before). Padding never wins.
    ceil_mode: a last window may reach beyond the padding, as long as it starts in the input or before it.
    layout: a letter for each axis of `x`; all but N and C are pooled. None is NCW, NCHW or NCDHW by the rank. "4D" pools
        the last four axes.
    indices: what an index counts. "global_1d" … "global_4d": the element's position in `x`, flattened over its 1 … 4
        innermost axes; "local_1d" … "local_4d": its place in the window (in taps, if dilated), flattened alike. None is
        "global_" with the number of pooled axes, which is PyTorch's index for NCW, NCHW and NCDHW; TensorFlow's argmax
        of NHWC is "global_3d", or with the batch "global_4d".
    nan: "propagate": a NaN wins, the last of several (PyTorch). "compare": only `>` decides, so a NaN stays only where it
        comes first (TensorFlow on the CPU).

    Returns values of the dtype of `x`, or (values, indices) with indices of int32. Of equal elements the first wins, and
    has the whole derivative, which `mj.grad` brings back by the indices that the forward pass kept.

    Raises TypeFault for bool and float64, ShapeError for a rank that does not fit the layout or a window that holds no
    element, LaunchFault for other arguments that make no sense.

    Compare: MPSGraph `maxPooling2DReturnIndices`; PyTorch `F.max_pool2d`; TensorFlow `tf.nn.max_pool_with_argmax`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[1, 5, 2, 0], [3, 4, 8, 1]], np.float32)
        >>> values, indices = ops.max_pool(x, 2, layout="HW", return_indices=True)
        >>> print(values, indices)
        [[5. 8.]] [[1 6]]
    """
    check_array("max_pool", "x", x, NUMBERS, "numbers")
    rank = len(x.shape)
    axes = windowed_axes("max_pool", layout, rank)
    pool = windows_of("max_pool", x.shape, axes, size, stride, padding, dilation, ceil_mode)
    if nan not in ("propagate", "compare"):
        refuse("max_pool", f"`nan` is 'propagate' or 'compare', not {nan!r}")
    if not return_indices and indices is not None:
        refuse(
            "max_pool", f"`indices` is {indices!r}, and no indices are returned", "pass return_indices=True"
        )
    counted = _indexing("max_pool", indices, pool)
    call = _MaxPool(pool, counted, nan == "propagate", return_indices)
    if is_traced(x) and x.dtype.kind not in "iu":
        rule = mj.custom_vjp(call.pooled)
        rule.defvjp(call.forward, call.backward)
        return rule(x)
    return call.pooled(x)


def max_pool_grad(
    grad: Operand,
    indices: Operand,
    shape: Sequence[int],
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    layout: str | None = None,
    mode: str | None = None,
) -> Any:
    """The derivative of `max_pool` by its argument, which had `shape`, from that by its values and from its indices.

    grad: array of any number dtype, of the shape of the pooled values. indices: int32 or int64, of that shape, as `max_pool`
        returned them; one that is not in its window counts nothing.
    size, stride, padding, dilation, ceil_mode, layout: as `max_pool` had them; `mode` is its `indices`.

    Each element looks at the windows that hold it and adds up the derivatives of those whose index is its own: nothing is
    compared again, and no two threads add into one place. Returns an array of `shape` and the dtype of `grad`; 16-bit
    floats are added in f32 and rounded once. `mj.grad` goes through it by `grad`.

    Raises TypeFault for other dtypes, ShapeError where shapes do not fit, LaunchFault for other arguments that make no
    sense, and for a mode that does not say where in its window an element stood: "global_1d" and "local_1d" know nothing of
    the rows of NCHW.

    Compare: MPSGraph `maxPooling2DGradient(gradient, indices, …)`; PyTorch
    `torch.ops.aten.max_pool2d_with_indices_backward`; TensorFlow `tf.raw_ops.MaxPoolGradWithArgmax`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[1, 9, 2], [3, 4, 5], [6, 7, 8]], np.float32)
        >>> _, indices = ops.max_pool(x, 2, stride=1, layout="HW", return_indices=True)
        >>> grad = np.array([[1, 2], [3, 4]], np.float32)
        >>> print(ops.max_pool_grad(grad, indices, x.shape, 2, stride=1, layout="HW"))
        [[0. 3. 0.]
         [0. 0. 0.]
         [0. 3. 4.]]
    """
    op = "max_pool_grad"
    check_array(op, "grad", grad, NUMBERS, "numbers")
    given = lengths(op, "shape", shape)
    axes = windowed_axes(op, layout, len(given))
    pool = windows_of(op, given, axes, size, stride, padding, dilation, ceil_mode)
    counted = _indexing(op, mode, pool)
    _check_indices(op, indices, pool, counted)
    for name, a in (("grad", grad), ("indices", indices)):
        if tuple(a.shape) != pool.counts(given):
            refuse(op, f"`{name}` has shape {tuple(a.shape)}, and the windows of {given} are {pool.counts(given)}", "",
                   "op-shape", mj.ShapeError)  # fmt: skip
    return _back(pool, counted, True, grad, indices)


def max_unpool(
    x: Operand,
    indices: Operand,
    size: int | Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] | Sequence[tuple[int, int]] = 0,
    dilation: int | Sequence[int] = 1,
    output_size: Sequence[int] | None = None,
    layout: str | None = None,
    mode: str | None = None,
) -> Any:
    """What `max_pool` took its values from, with zeros wherever no maximum stood.

    x: array of any number dtype, the values. indices: int32 or int64, of its shape, as `max_pool` returned them for an array
        of the shape of the result; one that is not in its window is left out. Where several windows have one index, the last
        counts.
    size, stride, padding, dilation, layout: as `max_pool` had them; `mode` is its `indices`.
    output_size: the extents of the pooled axes, or of all axes. None is the least that these windows fill; less than a
        stride more or less will do.

    Returns an array of the dtype of `x`. Its derivative by `x` is taken from where the indices say.

    Raises as `max_pool_grad`.

    Compare: PyTorch `F.max_unpool2d`; TensorFlow `tfa.layers.MaxUnpooling2D`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[5, 8]], np.float32)
        >>> print(ops.max_unpool(x, np.array([[1, 6]], np.int32), 2, layout="HW"))
        [[0. 5. 0. 0.]
         [0. 0. 8. 0.]]
    """
    op = "max_unpool"
    check_array(op, "x", x, NUMBERS, "numbers")
    axes = windowed_axes(op, layout, len(x.shape))
    pool = _unpooled(op, x.shape, axes, size, stride, padding, dilation, output_size)
    counted = _indexing(op, mode, pool)
    _check_indices(op, indices, pool, counted)
    if tuple(indices.shape) != tuple(x.shape):
        refuse(
            op,
            f"`indices` has shape {tuple(indices.shape)}, and `x` {tuple(x.shape)}",
            "",
            "op-shape",
            mj.ShapeError,
        )
    return _back(pool, counted, False, x, indices)


# ---- what an index counts ----


@dataclass(frozen=True)
class _Indexing:
    """Either the axes over which positions in `x` are flattened, or what a step in a window is worth along each axis of
    four.
    """

    flat: tuple[int, ...]
    worth: tuple[int, ...]

    def finds(self, pool: Windows) -> bool:
        """Whether it says where in a window an element stands."""
        axes = zip(pool.axes, pool.each, self.worth, strict=False)
        return all(w.size == 1 or axis in self.flat or worth for axis, w, worth in axes)


def _indexing(op: str, mode: str | None, pool: Windows) -> _Indexing:
    chosen = f"global_{len(pool.axes)}d" if mode is None else mode
    if chosen not in INDEX_MODES:
        refuse(op, f"there is no index mode {mode!r}", "there are " + ", ".join(map(repr, INDEX_MODES)))
    scope, count = chosen[:-3], int(chosen[-2])
    innermost = tuple(range(max(pool.rank - count, 0), pool.rank))
    if scope == "global":
        return _Indexing(innermost, (0,) * MOST_AXES)
    return _local(pool, innermost)


def _local(pool: Windows, innermost: Sequence[int]) -> _Indexing:
    sizes = dict(zip(pool.axes, pool.each, strict=True))
    worth = [prod(sizes[b].size for b in pool.axes if b > a) if a in innermost else 0 for a in pool.axes]
    return _Indexing((), (*worth, *(0,) * (MOST_AXES - len(worth))))


def _check_indices(op: str, indices: Any, pool: Windows, counted: _Indexing) -> None:
    check_array(op, "indices", indices, (i32, i64), "integers of 32 or 64 bits")
    if not counted.finds(pool):
        refuse(op, "the index mode does not say where in its window an element stands, since it leaves out a pooled axis",
               "take a mode that has all pooled axes, as 'global_4d' has")  # fmt: skip


# ---- calls ----


@dataclass(frozen=True)
class _MaxPool:
    """One call, with its derivative: that goes by the indices returned, or by places in windows where these do not do."""

    pool: Windows
    counted: _Indexing
    nans: bool
    return_indices: bool

    def pooled(self, x: Any) -> Any:
        p = self.pool
        if self.return_indices:
            return self._indexed(x, self.counted)
        constants = (p.axes, p.size, p.stride, p.dilation, p.extra, p.padded, self.nans)
        return mj.stdlib.pooling.max_pool(x, p.before, *constants)

    def forward(self, x: Any) -> Any:
        counted = self._kept()
        values, places = self._indexed(x, counted)
        if not self.return_indices:
            return values, places
        asked = places if counted == self.counted else self._indexed(x, self.counted)[1]
        return (values, asked), places

    def backward(self, places: Any, given: Any) -> Any:
        grad = given[0] if self.return_indices else given
        return (_back(self.pool, self._kept(), True, grad, places),)

    def _kept(self) -> _Indexing:
        if self.return_indices and self.counted.finds(self.pool):
            return self.counted
        return _local(self.pool, self.pool.axes)

    def _indexed(self, x: Any, counted: _Indexing) -> Any:
        p = self.pool
        constants = (p.axes, p.size, p.stride, p.dilation, p.extra, p.padded, self.nans)
        return mj.stdlib.pooling.max_pool_indices(x, p.before, *constants, counted.flat, counted.worth)


def _back(pool: Windows, counted: _Indexing, sums: bool, values: Any, indices: Any) -> Any:
    """Values, to where the indices say; its derivative is what stands there."""
    p = pool
    constants = (p.axes, p.size, p.stride, p.dilation, p.turns, p.rest, counted.flat, counted.worth, sums)

    def run(values: Any, indices: Any) -> Any:
        return mj.stdlib.pooling.max_pool_back(values, indices, p.before, *constants)

    if not is_traced(values) or values.dtype.kind in "iu":
        return run(values, indices)
    rule = mj.custom_vjp(run)
    rule.defvjp(lambda v, at: (run(v, at), at), lambda at, given: (_picked(pool, counted, given, at), None))
    return rule(values, indices)


def _picked(pool: Windows, counted: _Indexing, x: Any, indices: Any) -> Any:
    """The elements of `x` at indices; its derivative goes back there."""
    p = pool
    constants = (p.axes, p.size, p.stride, p.dilation, counted.flat, counted.worth)

    def run(x: Any, indices: Any) -> Any:
        return mj.stdlib.pooling.max_pool_picked(x, indices, p.before, *constants)

    rule = mj.custom_vjp(run)
    rule.defvjp(
        lambda x, at: (run(x, at), at), lambda at, given: (_back(pool, counted, True, given, at), None)
    )
    return rule(x, indices)


def _unpooled(
    op: str,
    counts: Sequence[int],
    axes: Sequence[int],
    size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    output_size: Any,
) -> Windows:
    """The windows of an array that has so many of them."""
    sizes = each(op, "size", size, len(axes), 1)
    strides = sizes if stride is None else each(op, "stride", stride, len(axes), 1)
    dilations = each(op, "dilation", dilation, len(axes), 1)
    pads = paddings(op, padding, len(axes), False)
    if isinstance(padding, str) and padding != "valid":
        refuse(op, f"the padding {padding!r} follows from the output, which is not known", "give numbers")
    least = [
        (counts[axis] - 1) * t + (s - 1) * d + 1 - sum(map(int, pad))
        for axis, s, t, d, pad in zip(axes, sizes, strides, dilations, pads, strict=True)
    ]
    wanted = least if output_size is None else list(lengths(op, "output_size", output_size))
    if len(wanted) == len(counts):
        wanted = [wanted[axis] for axis in axes]
    if len(wanted) != len(axes):
        refuse(op, f"`output_size` has {len(wanted)} numbers, and {len(axes)} axes are pooled")
    shape = list(counts)
    for axis, n, given, t in zip(axes, least, wanted, strides, strict=True):
        if counts[axis] < 1 or given < 1 or given <= n - t or given >= n + t:
            refuse(op, f"axis {axis} of the output cannot have {given} elements: {counts[axis]} windows fill {n}, and less "
                   f"than a stride of {t} more or less is possible", "", "op-shape", mj.ShapeError)  # fmt: skip
        shape[axis] = given
    found = windows_of(op, shape, axes, sizes, strides, pads, dilations, filled=False)
    rests = [int(n - (counts[axis] - 1) * t) for axis, n, t in zip(axes, wanted, strides, strict=True)]
    made = [replace(w, rest=rest) for w, rest in zip(found.each, rests, strict=True)]
    return replace(found, each=tuple(made))
