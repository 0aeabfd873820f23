"""Pooling ops; the kernels are in pooling.mjk.

In: arrays, windows and a layout. Out: what the kernels return. Which axes are pooled, where windows start and how many
there are is worked out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal

import metaljit as mj
from metaljit.lang import bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64
from metaljit.stdlib_ops.operands import Operand, check_array, refuse, whole

_NUMBERS = (u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32)
_LAYOUTS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
_MOST_AXES = 4
INDEX_MODES = tuple(f"{scope}_{n}d" for scope in ("global", "local") for n in (1, 2, 3, 4))

Padding = int | str | Sequence[int] | Sequence[tuple[int, int]]


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

    Returns values of the dtype of `x`, or (values, indices) with indices of int32. Of equal elements the first wins.
    Raises TypeFault for bool and float64, ShapeError for a rank that does not fit the layout or a window that holds no
    element, LaunchFault for other arguments that make no sense.
    Compare MPSGraph `maxPooling2DReturnIndices`, `F.max_pool2d`, `tf.nn.max_pool_with_argmax`.
    """
    check_array("max_pool", "x", x, _NUMBERS, "numbers")
    rank = len(x.shape)
    axes = _pooled_axes(layout, rank)
    windows = _windows(x.shape, axes, size, stride, padding, dilation, ceil_mode)
    if nan not in ("propagate", "compare"):
        refuse("max_pool", f"`nan` is 'propagate' or 'compare', not {nan!r}")
    constants = _constants(rank, axes, windows)
    pads = (*(w.before for w in windows), *(0,) * (_MOST_AXES - len(axes)))
    kernels = mj.stdlib.pooling
    if not return_indices:
        if indices is not None:
            refuse(
                "max_pool",
                f"`indices` is {indices!r}, and no indices are returned",
                "pass return_indices=True",
            )
        return kernels.max_pool(x, pads, *constants, nan == "propagate")
    flat, worth = _index_mode(indices, rank, axes, windows)
    return kernels.max_pool_indices(x, pads, *constants, nan == "propagate", flat, worth)


@dataclass(frozen=True)
class Window:
    """The windows along one axis: each has `size` taps `dilation` apart, the first starts `before` elements early.

    There are `(n + extra) // stride` of them on n elements; of these numbers only `before` may depend on n.
    """

    size: int
    stride: int
    dilation: int
    before: int
    extra: int
    padded: bool


def _pooled_axes(layout: str | None, rank: int) -> tuple[int, ...]:
    if layout == "4D":
        if rank < 4:
            refuse(
                "max_pool",
                f"the layout '4D' pools four axes, and `x` has {rank}",
                "",
                "op-shape",
                mj.ShapeError,
            )
        return tuple(range(rank - 4, rank))
    if layout is None and rank not in _LAYOUTS:
        refuse("max_pool", f"`x` has {rank} axes, and a layout is assumed for 3, 4 and 5 only",
               "name the axes, for example layout='HW'", "op-shape", mj.ShapeError)  # fmt: skip
    letters = layout or _LAYOUTS[rank]
    axes = tuple(k for k, letter in enumerate(letters) if letter in "DHW")
    if set(letters) - set("NCDHW") or len(set(letters)) < len(letters) or not axes:
        refuse("max_pool", f"{letters!r} is no layout",
               "a layout names each axis once: N, C, and what is pooled: D, H, W; for example 'NHWC'")  # fmt: skip
    if len(letters) != rank:
        refuse("max_pool", f"the layout {letters!r} has {len(letters)} axes, and `x` has {rank}", "", "op-shape",
               mj.ShapeError)  # fmt: skip
    return axes


def _each(name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """A number for each pooled axis."""
    items = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,) * count
    if len(items) != count:
        refuse("max_pool", f"`{name}` has {len(items)} numbers, and {count} axes are pooled")
    return tuple(whole("max_pool", name, item, least) for item in items)


def _windows(
    shape: tuple[int, ...],
    axes: Sequence[int],
    size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> list[Window]:
    count = len(axes)
    sizes = _each("size", size, count, 1)
    strides = sizes if stride is None else _each("stride", stride, count, 1)
    dilations = _each("dilation", dilation, count, 1)
    pads = _paddings(padding, count, ceil_mode)
    parts = zip(axes, sizes, strides, dilations, pads, strict=True)
    return [_window(shape[axis], axis, s, t, d, pad, bool(ceil_mode)) for axis, s, t, d, pad in parts]


def _paddings(padding: Any, count: int, ceil_mode: bool) -> tuple[str | tuple[int, int], ...]:
    if isinstance(padding, str):
        if padding not in ("same", "same_lower", "valid"):
            refuse(
                "max_pool",
                f"{padding!r} is no padding",
                "there are 'valid', 'same', 'same_lower', and numbers",
            )
        if ceil_mode:
            refuse(
                "max_pool",
                f"the padding {padding!r} says how many windows there are, so ceil_mode has no meaning",
            )
        return ((0, 0) if padding == "valid" else padding,) * count
    if isinstance(padding, Sequence) and any(isinstance(p, Sequence) for p in padding):
        if len(padding) != count or any(not isinstance(p, Sequence) or len(p) != 2 for p in padding):
            refuse("max_pool", f"`padding` takes {count} pairs (before, after) and got {padding!r}")
        return tuple(
            (whole("max_pool", "padding", a, 0), whole("max_pool", "padding", b, 0)) for a, b in padding
        )
    return tuple((p, p) for p in _each("padding", padding, count, 0))


@lru_cache(maxsize=1024)
def _window(
    n: int, axis: int, size: int, stride: int, dilation: int, padding: str | tuple[int, int], ceil_mode: bool
) -> Window:
    """The windows along axis `axis` of n elements; ShapeError where there is none, or one holds no element."""
    reach = (size - 1) * dilation + 1
    if isinstance(padding, str):
        extra = stride - 1
        total = max(((n + extra) // stride - 1) * stride + reach - n, 0)
        before = total // 2 if padding == "same" else total - total // 2
        padded = reach > 1
    else:
        before, after = padding
        padded = before > 0
        extra = before + after - reach + stride
        if ceil_mode:  # a window that would start after the input and its left padding is left away
            extra = before - max(reach - after, stride) + 2 * stride - 1
    count = (n + extra) // stride
    if count < 1:
        refuse("max_pool", f"axis {axis} has {n} elements, and a window reaches over {reach}",
               "make the window smaller, or pad", "op-shape", mj.ShapeError)  # fmt: skip
    for o in range(count):
        start = o * stride - before
        first = start + max(0, -(start // dilation)) * dilation
        if first >= min(n, start + reach):
            refuse("max_pool", f"window {o} along axis {axis} holds no element: it takes {size} from {start} on, and the "
                   f"axis has {n}", "pad by less than a window", "op-shape", mj.ShapeError)  # fmt: skip
    return Window(size, stride, dilation, before, extra, padded)


def _constants(rank: int, axes: Sequence[int], windows: Sequence[Window]) -> tuple[Any, ...]:
    """The kernels' constants from `axes` to `padded`."""
    missing = _MOST_AXES - len(axes)
    at = dict(zip(axes, windows, strict=True))
    return (
        (*axes, *(axes[-1],) * missing),
        (*(w.size for w in windows), *(1,) * missing),
        tuple(at[k].stride if k in at else 1 for k in range(rank)),
        (*(w.dilation for w in windows), *(1,) * missing),
        tuple(at[k].extra if k in at else 0 for k in range(rank)),
        any(w.padded for w in windows),
    )


def _index_mode(
    mode: str | None, rank: int, axes: Sequence[int], windows: Sequence[Window]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes over which a position in `x` is flattened, or none and what a step along each of the four is worth."""
    chosen = f"global_{len(axes)}d" if mode is None else mode
    if chosen not in INDEX_MODES:
        refuse(
            "max_pool", f"there is no index mode {mode!r}", "there are " + ", ".join(map(repr, INDEX_MODES))
        )
    scope, count = chosen[:-3], int(chosen[-2])
    innermost = tuple(range(max(rank - count, 0), rank))
    if scope == "global":
        return innermost, (0,) * _MOST_AXES
    sizes = dict(zip(axes, windows, strict=True))
    worth = [prod(sizes[b].size for b in axes if b > a) if a in innermost else 0 for a in axes]
    return (), (*worth, *(0,) * (_MOST_AXES - len(axes)))
