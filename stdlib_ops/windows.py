"""Windows along the axes of an array: what pooling and convolutions share, and in part stencils.

In: a layout, sizes, strides, dilations and paddings as a user gives them, for one axis or for all. Out: a `Window` for each
axis that has windows, or a refusal that names the op and the argument. Extents are ints, or extents of a trace, which a
comparison guards; so there are few comparisons here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import metaljit as mj
from metaljit.stdlib_ops.operands import refuse, whole

Padding: TypeAlias = int | str | Sequence[int] | Sequence[tuple[int, int]]
PADDINGS = ("valid", "same", "same_lower")
MOST_AXES = 4
LAYOUTS = {3: "NCW", 4: "NCHW", 5: "NCDHW"}


@dataclass(frozen=True)
class Window:
    """The windows along one axis: each has `size` taps `dilation` apart, the first starts `before` elements early.

    There are `(n + extra) // stride` of them on n elements. `before` and `after` are what the padding says; of these numbers
    only they may depend on n. `rest` is n less the stride of every window but one, so that n follows from the windows.
    """

    size: int
    stride: int
    dilation: int
    before: int
    after: int
    extra: int
    padded: bool
    whole: bool  # every tap of a window is in the padded axis
    rest: int

    @property
    def reach(self) -> int:
        return (self.size - 1) * self.dilation + 1


@dataclass(frozen=True)
class Windows:
    """The windows of an array with `rank` axes along `axes`, in the forms in which kernels take them.

    Those with an entry for each windowed axis have four, since loops and vectors are that long.
    """

    rank: int
    axes: tuple[int, ...]
    each: tuple[Window, ...]

    @property
    def before(self) -> tuple[int, ...]:
        return self._four([w.before for w in self.each], 0)

    @property
    def after(self) -> tuple[int, ...]:
        return self._four([w.after for w in self.each], 0)

    @property
    def size(self) -> tuple[int, ...]:
        return self._four([w.size for w in self.each], 1)

    @property
    def dilation(self) -> tuple[int, ...]:
        return self._four([w.dilation for w in self.each], 1)

    @property
    def turns(self) -> tuple[int, ...]:
        """In how many windows an element can be."""
        return self._four([(w.reach - 1) // w.stride + 1 for w in self.each], 1)

    @property
    def stride(self) -> tuple[int, ...]:
        return self._everywhere([w.stride for w in self.each], 1)

    @property
    def extra(self) -> tuple[int, ...]:
        return self._everywhere([w.extra for w in self.each], 0)

    @property
    def rest(self) -> tuple[int, ...]:
        return self._everywhere([w.rest for w in self.each], 1)

    @property
    def padded(self) -> bool:
        return any(w.padded for w in self.each)

    def counts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of an array of windows of an array of shape `shape`."""
        at = dict(zip(self.axes, self.each, strict=True))
        return tuple((n + at[k].extra) // at[k].stride if k in at else n for k, n in enumerate(shape))

    def _four(self, values: Sequence[int], other: int) -> tuple[int, ...]:
        return (*values, *(other,) * (MOST_AXES - len(values)))

    def _everywhere(self, values: Sequence[int], other: int) -> tuple[int, ...]:
        at = dict(zip(self.axes, values, strict=True))
        return tuple(at.get(k, other) for k in range(self.rank))


# ---- layouts ----


def windowed_axes(op: str, layout: str | None, rank: int) -> tuple[int, ...]:
    """The axes that have windows: all but N and C of a layout."""
    if layout == "4D":
        if rank < 4:
            refuse(
                op,
                f"the layout '4D' has windows over four axes, and `x` has {rank}",
                "",
                "op-shape",
                mj.ShapeError,
            )
        return tuple(range(rank - 4, rank))
    letters = letters_of(op, layout, rank)
    return tuple(k for k, letter in enumerate(letters) if letter in "DHW")


def letters_of(op: str, layout: str | None, rank: int) -> str:
    """The layout, or the one assumed for this rank."""
    if layout is None and rank not in LAYOUTS:
        refuse(op, f"`x` has {rank} axes, and a layout is assumed for 3, 4 and 5 only",
               "name the axes, for example layout='HW'", "op-shape", mj.ShapeError)  # fmt: skip
    letters = LAYOUTS[rank] if layout is None else layout
    if set(letters) - set("NCDHW") or len(set(letters)) < len(letters) or not set(letters) & set("DHW"):
        refuse(op, f"{letters!r} is no layout",
               "a layout names each axis once: N, C, and those with windows: D, H, W; for example 'NHWC'")  # fmt: skip
    if len(letters) != rank:
        refuse(op, f"the layout {letters!r} has {len(letters)} axes, and `x` has {rank}", "", "op-shape",
               mj.ShapeError)  # fmt: skip
    return letters


# ---- windows ----


def windows_of(
    op: str,
    shape: Sequence[int],
    axes: Sequence[int],
    size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool = False,
    filled: bool = True,
) -> Windows:
    """The windows along some axes. `filled` refuses one without an element of the array; `stride` None is the size."""
    count = len(axes)
    sizes = each(op, "size", size, count, 1)
    strides = sizes if stride is None else each(op, "stride", stride, count, 1)
    dilations = each(op, "dilation", dilation, count, 1)
    pads = paddings(op, padding, count, ceil_mode)
    made = []
    for axis, *numbers in zip(axes, sizes, strides, dilations, pads, strict=True):
        n = shape[axis]
        # an extent of a trace is no key, since it is compared by a guard
        one = _known if isinstance(n, int) else _window
        made.append(one(op, n, axis, *numbers, bool(ceil_mode), filled))
    return Windows(len(shape), tuple(axes), tuple(made))


def each(op: str, name: str, given: Any, count: int, least: int) -> tuple[int, ...]:
    """A number for each axis that has windows."""
    items = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,) * count
    if len(items) != count:
        refuse(op, f"`{name}` has {len(items)} numbers, and {count} axes have windows")
    return tuple(whole(op, name, item, least) for item in items)


def paddings(op: str, padding: Any, count: int, ceil_mode: bool = False) -> tuple[str | tuple[int, int], ...]:
    if isinstance(padding, str):
        if padding not in PADDINGS:
            refuse(op, f"{padding!r} is no padding", "there are 'valid', 'same', 'same_lower', and numbers")
        if ceil_mode:
            refuse(
                op, f"the padding {padding!r} says how many windows there are, so ceil_mode has no meaning"
            )
        return ((0, 0) if padding == "valid" else padding,) * count
    if isinstance(padding, Sequence) and any(isinstance(p, Sequence) for p in padding):
        if len(padding) != count or any(not isinstance(p, Sequence) or len(p) != 2 for p in padding):
            refuse(op, f"`padding` takes {count} pairs (before, after) and got {padding!r}")
        return tuple((whole(op, "padding", a, 0), whole(op, "padding", b, 0)) for a, b in padding)
    return tuple((p, p) for p in each(op, "padding", padding, count, 0))


def _window(
    op: str,
    n: int,
    axis: int,
    size: int,
    stride: int,
    dilation: int,
    padding: str | tuple[int, int],
    ceil_mode: bool,
    filled: bool,
) -> Window:
    """The windows along axis `axis` of n elements; ShapeError where there is none, or one holds no element."""
    reach = (size - 1) * dilation + 1
    if isinstance(padding, str):
        extra = stride - 1
        total = int(max(((n + extra) // stride - 1) * stride + reach - n, 0))
        before = total // 2 if padding == "same" else total - total // 2
        after = total - before
        padded = reach > 1
    else:
        before, after = padding
        padded = before > 0
        extra = before + after - reach + stride
        if ceil_mode:  # a window that would start after the input and its left padding is left away
            extra = before - max(reach - after, stride) + 2 * stride - 1
    count = (n + extra) // stride
    if count < 1 or n < 1:
        refuse(op, f"axis {axis} has {n} elements, and a window reaches over {reach}",
               "make the window smaller, or pad", "op-shape", mj.ShapeError)  # fmt: skip
    rest = int(n - (count - 1) * stride)
    for o in range(-(-before // stride) if filled else 0):  # those that start in the padding
        start = o * stride - before
        first = start + -(start // dilation) * dilation
        if (first >= start + reach or first >= n) and o < count:
            _refuse_empty(op, o, axis, size, start, n)
    if filled and rest <= -before:  # the last one
        _refuse_empty(op, count - 1, axis, size, n - rest - before, n)
    complete = isinstance(padding, str) or rest + before + after >= reach
    return Window(size, stride, dilation, before, after, extra, padded, complete, rest)


_known = lru_cache(maxsize=1024)(_window)


def _refuse_empty(op: str, number: int, axis: int, size: int, start: int, n: int) -> None:
    refuse(op, f"window {number} along axis {axis} holds no element: it takes {size} from {start} on, and the axis "
           f"has {n}", "pad by less than a window", "op-shape", mj.ShapeError)  # fmt: skip
