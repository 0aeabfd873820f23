"""Where the windows of a stencil lie.

In: the shape of an array and of a window, strides, dilations, a padding or an offset. Out: the constants of the kernels in
stencil.mjk that say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import metaljit as mj
from metaljit.stdlib_ops.operands import refuse
from metaljit.stdlib_ops.windows import Padding, each, paddings

MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")
_MOST_PLANES = 1024


@dataclass(frozen=True)
class Windows:
    """One entry for each axis of the window, which are the last of the array: its extent, the distance of its taps, the
    distance of the windows, how far before the array the first one starts. On n elements there are
    `(n + extra) // stride` windows."""

    size: tuple[int, ...]
    dilation: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    extra: tuple[int, ...]

    def constants(self, rank: int) -> tuple[Any, ...]:
        """`planes` … `extra` of the kernels, for an array of that rank."""
        outer, batch = self.size[:-2], (0,) * (rank - len(self.size))
        places = product(*map(range, outer))
        steps = (tuple(i * d for i, d in zip(place, self.dilation, strict=False)) for place in places)
        inner = len(self.size) - len(outer)
        starts = tuple(-b for b in self.before)
        planes = tuple(
            (*batch, *(a + s for a, s in zip(starts, (*step, 0, 0), strict=False))) for step in steps
        )
        return (
            planes,
            (1, 1, *self.size)[-2:],
            (rank - inner, rank - 1),
            (1, *self.dilation)[-2:],
            (*(1 for _ in batch), *self.stride),
            (*batch, *self.extra),
        )

    def padded(self) -> tuple[tuple[tuple[int, int], ...], Windows]:
        """How much an array must be padded so that no window reaches beyond, and the same windows there."""
        lines = zip(self.size, self.dilation, self.stride, self.before, self.extra, strict=True)
        widths = tuple((max(b, 0), max(e - s - b + (k - 1) * d + 1, 0)) for k, d, s, b, e in lines)
        before = tuple(b - low for b, (low, _) in zip(self.before, widths, strict=True))
        extra = tuple(e - low - high for e, (low, high) in zip(self.extra, widths, strict=True))
        return widths, replace(self, before=before, extra=extra)

    def folded(self, weights: Any) -> Any:
        """The weights as the kernels take them: planes, rows, columns."""
        rows, columns = (1, *self.size)[-2:]
        return weights.reshape(-1, rows, columns)


def windows(
    op: str,
    shape: Sequence[int],
    size: Sequence[int],
    stride: Any = 1,
    dilation: Any = 1,
    padding: Padding = "same",
    offset: Any = None,
) -> Windows:
    """The windows on the last axes of an array; ShapeError where they do not fit."""
    count = len(size)
    if count == 0 or count > len(shape):
        refuse(op, f"the window has {count} axes, and the array has {len(shape)}",
               "a window has at least one axis, and at most as many as the array", "op-shape", mj.ShapeError)  # fmt: skip
    if min(size) < 1:
        refuse(op, f"the window is empty: its shape is {tuple(size)}", "", "op-shape", mj.ShapeError)
    strides, dilations = each(op, "stride", stride, count, 1), each(op, "dilation", dilation, count, 1)
    extents = tuple(shape)[len(shape) - count :]
    reaches = tuple((k - 1) * d + 1 for k, d in zip(size, dilations, strict=True))
    if offset is not None:
        if padding != "same":
            refuse(op, f"`offset` says where windows start, and so does `padding`, which is {padding!r}")
        before = tuple(-o for o in each(op, "offset", offset, count, -(2**31)))
        extra = tuple(s - 1 for s in strides)
    else:
        pads = paddings(op, padding, count)
        lines = [_line(*line) for line in zip(extents, reaches, strides, pads, strict=True)]
        before, extra = tuple(b for b, _ in lines), tuple(e for _, e in lines)
    for n, reach, s, e in zip(extents, reaches, strides, extra, strict=True):
        if e < s - 1 and n + e < s and (n > 0 or e < 0):
            refuse(op, f"a window reaches over {reach} elements, and with its padding the axis has {n + e + reach - s}",
                   "make the window smaller, or pad", "op-shape", mj.ShapeError)  # fmt: skip
    _check_planes(op, size)
    return Windows(tuple(size), dilations, strides, before, extra)


def _line(n: int, reach: int, stride: int, pad: str | tuple[int, int]) -> tuple[int, int]:
    """(elements before the first one, `extra`) along an axis of n elements."""
    if not isinstance(pad, str):
        return pad[0], pad[0] + pad[1] - reach + stride
    total = reach - 1
    if stride > 1:  # the number of windows decides how much is missing at both ends
        total = max((int(n + stride - 1) // stride - 1) * stride + reach - int(n), 0)
    return (total // 2 if pad == "same" else total - total // 2), stride - 1


def _check_planes(op: str, size: Sequence[int]) -> None:
    count = 1
    for k in size[:-2]:
        count *= k
    if count > _MOST_PLANES:
        refuse(op, f"the window {tuple(size)} has {count} planes, and at most {_MOST_PLANES} are taken",
               "put its long axes last", "op-shape", mj.ShapeError)  # fmt: skip


def modes_of(op: str, mode: str | Sequence[str], count: int, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A mode for each of `count` axes: of a border, or one of `extra`."""
    known = (*MODES, *extra)
    modes = (mode,) * count if isinstance(mode, str) else tuple(mode)
    if len(modes) != count:
        refuse(op, f"`mode` has {len(modes)} modes, and there are {count} axes")
    for m in (mode,) if isinstance(mode, str) else modes:
        if m not in known:
            refuse(op, f"{m!r} is no border mode", "there are " + ", ".join(map(repr, known)))
    return modes
