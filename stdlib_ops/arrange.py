"""Ops that put elements in another place, beside one another, or make them from their places; see shape for mere views.

In: arrays, or a shape. Out: arrays. Each op is a traced function, so a call is one kernel, and in a trace none of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.graph.context import current_trace
from metaljit.lang import i32
from metaljit.stdlib_ops.gather import ELEMENTS, check_indices
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    Operand,
    axis_of,
    check_array,
    dtype_of,
    refuse,
    whole,
)

_INTEGERS = NUMBERS[:8]


def concatenate(arrays: Sequence[Operand], axis: int = 0, *, interleave: bool = False) -> Any:
    """Arrays one behind another along an axis; with `interleave` an element of each in turn.

    arrays: of equal ranks, and of equal extents but along `axis` (there too with `interleave`). Element types are joined as
        an operator joins them.

    Raises TypeFault for float64 and for types that do not go together, ShapeError for shapes that do not, LaunchFault
    for no arrays or an axis that does not exist.
    Compare: MPSGraph `concat`; PyTorch `torch.cat`; TensorFlow `tf.concat`; NumPy `np.concatenate`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> a, b = np.array([1, 2]), np.array([3, 4])
        >>> print(ops.concatenate([a, b]), ops.concatenate([a, b], interleave=True))
        [1 2 3 4] [1 3 2 4]
    """
    parts = _several("concatenate", arrays)
    k = axis_of("concatenate", axis, len(parts[0].shape))
    for p in parts[1:]:
        fits = len(p.shape) == len(parts[0].shape) and all(
            a == b
            for n, (a, b) in enumerate(zip(p.shape, parts[0].shape, strict=True))
            if interleave or n != k
        )
        if not fits:
            _refuse_shapes("concatenate", parts[0], p)
    return _joined(parts, k, bool(interleave))


def stack(arrays: Sequence[Operand], axis: int = 0) -> Any:
    """Arrays of one shape beside one another along a new axis, which is `axis` of the result.

    arrays: element types are joined as an operator joins them.

    Raises TypeFault for float64 and for types that do not go together, ShapeError for unequal shapes, LaunchFault for no
    arrays or an axis that does not exist.
    Compare: MPSGraph `stack`; PyTorch `torch.stack`; TensorFlow `tf.stack`; NumPy `np.stack`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.stack([np.array([1, 2]), np.array([3, 4])], axis=1))
        [[1 3]
         [2 4]]
    """
    parts = _several("stack", arrays)
    for p in parts[1:]:
        if tuple(p.shape) != tuple(parts[0].shape):
            _refuse_shapes("stack", parts[0], p)
    return _stacked(parts, axis_of("stack", axis, len(parts[0].shape) + 1))


def tile(x: Operand, reps: int | Sequence[int]) -> Any:
    """`x` so many times along each axis; leading axes are added where `reps` has more, or is given fewer, than axes.

    x: array of any dtype. Its derivative adds up the copies.

    Raises TypeFault for float64, LaunchFault for negative numbers.
    Compare: MPSGraph `tile`; PyTorch `torch.tile`; TensorFlow `tf.tile`; NumPy `np.tile`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.tile(np.array([1, 2]), (2, 2)))
        [[1 2 1 2]
         [1 2 1 2]]
    """
    check_array("tile", "x", x, ELEMENTS, "numbers or bools")
    counts = tuple(whole("tile", "reps", n, 0) for n in (reps if isinstance(reps, Sequence) else (reps,)))
    return _tiled(x, counts)


def repeat(x: Operand, repeats: int, axis: int | None = None) -> Any:
    """Each element so many times in a row, along an axis, or in the flat array.

    x: array of any dtype. Its derivative adds up the copies.

    Raises TypeFault for float64, LaunchFault for a negative number or an axis that does not exist.
    Compare: PyTorch `torch.repeat_interleave`; TensorFlow `tf.repeat`; NumPy `np.repeat`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.repeat(np.array([[1, 2], [3, 4]]), 2, axis=1))
        [[1 1 2 2]
         [3 3 4 4]]
    """
    check_array("repeat", "x", x, ELEMENTS, "numbers or bools")
    k = None if axis is None else axis_of("repeat", axis, len(x.shape))
    return _repeated(x, whole("repeat", "repeats", repeats, 0), k)


def roll(x: Operand, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Any:
    """`x` moved along an axis, or in the flat array; what leaves at one end comes in at the other.

    x: array of any dtype. shift, axis: a number each, or as many shifts as axes.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or another number of shifts.
    Compare: PyTorch `torch.roll`; TensorFlow `tf.roll`; NumPy `np.roll`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.roll(np.arange(5), 2))
        [3 4 0 1 2]
    """
    check_array("roll", "x", x, ELEMENTS, "numbers or bools")
    shifts = tuple(shift) if isinstance(shift, Sequence) else (shift,)
    axes: tuple[Any, ...] = tuple(axis) if isinstance(axis, Sequence) else (axis,) * len(shifts)
    if len(axes) != len(shifts):
        refuse("roll", f"`shift` has {len(shifts)} numbers and `axis` {len(axes)}")
    moves = tuple(
        (whole("roll", "shift", s, -(2**31)), None if k is None else axis_of("roll", k, len(x.shape)))
        for s, k in zip(shifts, axes, strict=True)
    )
    return _rolled(x, moves)


def where(condition: Operand, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`.

    condition: array of any dtype; what is not 0 holds. x, y: arrays or numbers. All are broadcast, and the types of `x`
        and `y` are joined as an operator joins them.

    Raises TypeFault for float64 and for types that do not go together, ShapeError for shapes that do not.
    Compare: MPSGraph `select`; PyTorch `torch.where`; TensorFlow `tf.where`; NumPy `np.where`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.where(np.array([True, False]), np.array([[1], [2]]), 0))
        [[1 0]
         [2 0]]
    """
    for name, value in (("condition", condition), ("x", x), ("y", y)):
        if not isinstance(value, bool | int | float) or name == "condition":
            check_array("where", name, value, ELEMENTS, "numbers or bools")
    _check_broadcast(
        "where", [np.shape(v) if isinstance(v, int | float) else v.shape for v in (condition, x, y)]
    )
    return _chosen(condition, x, y)


def one_hot(
    indices: Operand, depth: int, *, axis: int = -1, on: Any = 1, off: Any = 0, dtype: Any = np.float32
) -> Any:
    """`on` at each index along a new axis of `depth` elements, `off` elsewhere and for an index out of range.

    indices: int32 or int64 of any shape; negative ones are out of range. axis: of the result. dtype: any.

    Raises TypeFault for other indices and float64, LaunchFault for a depth below 1 or an axis that does not exist.
    Compare: MPSGraph `oneHot`; PyTorch `F.one_hot`; TensorFlow `tf.one_hot`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.one_hot(np.array([0, 2, -1]), 3))
        [[1. 0. 0.]
         [0. 0. 1.]
         [0. 0. 0.]]
    """
    check_indices("one_hot", indices)
    kind = dtype_of("one_hot", dtype, ELEMENTS)
    k = axis_of("one_hot", axis, len(indices.shape) + 1)
    return _hot(indices, on, off, whole("one_hot", "depth", depth, 1), k, kind)


def space_to_depth(x: Operand, block: int, *, layout: str = "NHWC", pixel_shuffle: bool = False) -> Any:
    """Blocks of `block` elements along each spatial axis, moved into the channels.

    x: array of any dtype. layout: a letter for each axis; D, H and W are spatial, C are the channels.
    pixel_shuffle: the channel of block offset b and channel c is c * blocks + b (PyTorch), else b * channels + c.

    Raises TypeFault for float64, ShapeError for extents that the block does not divide, LaunchFault for another layout.
    Compare: MPSGraph `spaceToDepth2D`; PyTorch `F.pixel_unshuffle`; TensorFlow `tf.nn.space_to_depth`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.space_to_depth(np.arange(16).reshape(1, 4, 4, 1), 2)[0, 0])
        [[0 1 4 5]
         [2 3 6 7]]
    """
    op = "space_to_depth"
    spatial, channel, size = _blocks(op, x, block, layout)
    for k in spatial:
        if x.shape[k] % size != 0:
            refuse(op, f"axis {k} has {x.shape[k]} elements, which are not blocks of {size}", "", "op-shape",
                   mj.ShapeError)  # fmt: skip
    return _to_depth(x, size, spatial, channel, bool(pixel_shuffle))


def depth_to_space(x: Operand, block: int, *, layout: str = "NHWC", pixel_shuffle: bool = False) -> Any:
    """The inverse of `space_to_depth`: channels moved into blocks along each spatial axis.

    Arguments are as there. Raises TypeFault for float64, ShapeError for channels that are not whole blocks, LaunchFault
    for another layout.
    Compare: MPSGraph `depthToSpace2D`; PyTorch `F.pixel_shuffle`; TensorFlow `tf.nn.depth_to_space`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.depth_to_space(np.arange(8).reshape(1, 1, 2, 4), 2)[0, :, :, 0])
        [[0 1 4 5]
         [2 3 6 7]]
    """
    op = "depth_to_space"
    spatial, channel, size = _blocks(op, x, block, layout)
    parts = size ** len(spatial)
    if x.shape[channel] % parts != 0:
        refuse(op, f"axis {channel} has {x.shape[channel]} channels, which are not blocks of {parts}", "", "op-shape",
               mj.ShapeError)  # fmt: skip
    return _to_space(x, size, spatial, channel, bool(pixel_shuffle))


# ---- from places ----


def coordinates(shape: Sequence[int], axis: int, *, dtype: Any = np.int32) -> Any:
    """Where each element of an array of that shape stands along an axis.

    dtype: any number type. Returns an array; in a trace a traced one.

    Raises TypeFault for other dtypes, LaunchFault for a negative extent or an axis that does not exist.
    Compare: MPSGraph `coordinateAlongAxis`; NumPy `np.indices(shape)[axis]`.

    Example:
        >>> from metaljit import ops
        >>> print(ops.coordinates((2, 3), 1))
        [[0 1 2]
         [0 1 2]]
    """
    op = "coordinates"
    extents = tuple(n if hasattr(n, "extent") else whole(op, "shape", n, 0) for n in shape)
    kind, k = dtype_of(op, dtype, NUMBERS), axis_of(op, axis, len(extents))
    along = _line(_places(extents[k]), kind.type(0), kind.type(1), kind)
    one = along.reshape([n if j == k else 1 for j, n in enumerate(extents)])
    found = np.broadcast_to(one, extents)
    return np.ascontiguousarray(found) if isinstance(found, np.ndarray) else found


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Any:
    """start, start + step, …, before `stop`; with one number those before it from 0 on.

    dtype: int32 for whole numbers and float32 otherwise, if None. An element is start + k * step, in f32 for 16-bit floats.

    Returns an array of ceil((stop - start) / step) elements, or none; in a trace a traced one.

    Raises TypeFault for float64, LaunchFault for a step of 0 or what is no number.
    Compare: MPSGraph `coordinateAlongAxis`; PyTorch `torch.arange`; TensorFlow `tf.range`; NumPy `np.arange`.

    Example:
        >>> from metaljit import ops
        >>> print(ops.arange(3, 20, 4), ops.arange(0, 1, 0.25))
        [ 3  7 11 15 19] [0.   0.25 0.5  0.75]
    """
    first, last = (0, start) if stop is None else (start, stop)
    for name, value in (("start", first), ("stop", last), ("step", step)):
        if not isinstance(value, int | float | np.integer | np.floating):
            refuse("arange", f"`{name}` takes numbers and got {value!r}")
    if step == 0 or step != step:
        refuse("arange", f"`step` is {step}")
    are_whole = all(isinstance(v, int | np.integer) for v in (first, last, step))
    kind = dtype_of("arange", (np.int32 if are_whole else np.float32) if dtype is None else dtype, NUMBERS)
    count = -((first - last) // step) if are_whole else ceil((last - first) / step)
    return _line(_places(max(int(count), 0)), *_scalars(kind, first, step), kind)


def linspace(
    start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: Any = np.float32
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`, which is the last one with `endpoint`.

    dtype: float16, bfloat16 or float32; computed in f32, each half from its own end, so that both ends are exact.

    Returns an array; in a trace a traced one.

    Raises TypeFault for another dtype, LaunchFault for a negative `num`.
    Compare: PyTorch `torch.linspace`; TensorFlow `tf.linspace`; NumPy `np.linspace`.

    Example:
        >>> from metaljit import ops
        >>> print(ops.linspace(0, 1, 5))
        [0.   0.25 0.5  0.75 1.  ]
    """
    kind, count = dtype_of("linspace", dtype, FLOATS), whole("linspace", "num", num, 0)
    parts = count - 1 if endpoint else count
    step = (stop - start) / max(parts, 1)
    ends = (np.float32(start), np.float32(stop), np.float32(step))
    return _between(_places(count), *ends, np.int32(parts), kind)


def _places(n: Any) -> Any:
    """0, 1, …: of the trace that runs, or at once."""
    trace = current_trace()
    return mj.stdlib.arrange.places(0 if trace is None else trace.constant(0, i32), n)


def _scalars(kind: np.dtype[Any], *values: Any) -> tuple[Any, ...]:
    """Numbers in the type that a line of this dtype is computed in."""
    wide = np.dtype(np.float32) if all(kind != t.numpy for t in _INTEGERS) else kind
    return tuple(np.asarray(v).astype(wide)[()] for v in values)


@mj.jit(static=["kind"])
def _line(places: Any, start: Any, step: Any, kind: Any) -> Any:
    wide = places.astype(start.dtype)
    return (start + wide * step).astype(kind)


@mj.jit(static=["kind"])
def _between(places: Any, start: Any, stop: Any, step: Any, parts: Any, kind: Any) -> Any:
    near = start + places.astype(np.float32) * step
    far = stop - (parts - places).astype(np.float32) * step
    return np.where(places * 2 <= parts, near, far).astype(kind)


# ---- traced ----


@mj.jit(static=["axis", "interleave"])
def _joined(parts: Any, axis: int, interleave: bool) -> Any:
    if not interleave:
        return np.concatenate(parts, axis)
    beside = np.stack(parts, axis + 1)
    shape = list(parts[0].shape)
    shape[axis] = shape[axis] * len(parts)
    return beside.reshape(tuple(shape))


@mj.jit(static=["axis"])
def _stacked(parts: Any, axis: int) -> Any:
    return np.stack(parts, axis)


@mj.jit(static=["counts"])
def _tiled(x: Any, counts: Any) -> Any:
    return np.tile(x, counts)


@mj.jit(static=["repeats", "axis"])
def _repeated(x: Any, repeats: int, axis: int | None) -> Any:
    return np.repeat(x, repeats, axis)


@mj.jit(static=["moves"])
def _rolled(x: Any, moves: Any) -> Any:
    for shift, axis in moves:
        x = np.roll(x, shift, axis)
    return x


@mj.jit
def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return np.where(condition != 0 if condition.dtype != np.bool_ else condition, x, y)


@mj.jit(static=["depth", "axis", "kind"])
def _hot(indices: Any, on: Any, off: Any, depth: int, axis: int, kind: Any) -> Any:
    wide = np.expand_dims(indices, axis)
    along = _places(depth).reshape([depth if k == axis else 1 for k in range(wide.ndim)])
    chosen = np.where(wide == along.astype(indices.dtype), on, off)
    return chosen.astype(kind)


@mj.jit(static=["size", "spatial", "channel", "pixel_shuffle"])
def _to_depth(x: Any, size: int, spatial: Any, channel: int, pixel_shuffle: bool) -> Any:
    shape: list[Any] = []
    at: list[int] = []  # where an axis, or the number of its block, stands now
    inner: list[int] = []
    for k, n in enumerate(x.shape):
        at.append(len(shape))
        if k in spatial:
            inner.append(len(shape) + 1)
            shape += [n // size, size]
        else:
            shape.append(n)
    order: list[int] = []
    for k in range(x.ndim):
        deep = [at[k], *inner] if pixel_shuffle else [*inner, at[k]]
        order += deep if k == channel else [at[k]]
    final = [n // size if k in spatial else n for k, n in enumerate(x.shape)]
    final[channel] = x.shape[channel] * size ** len(spatial)
    return x.reshape(tuple(shape)).transpose(tuple(order)).reshape(tuple(final))


@mj.jit(static=["size", "spatial", "channel", "pixel_shuffle"])
def _to_space(x: Any, size: int, spatial: Any, channel: int, pixel_shuffle: bool) -> Any:
    depth = x.shape[channel] // size ** len(spatial)
    blocks = [size] * len(spatial)
    shape: list[Any] = []
    at: dict[int, int] = {}
    for k, n in enumerate(x.shape):
        at[k] = len(shape) + (0 if k != channel or pixel_shuffle else len(spatial))
        parts = [depth, *blocks] if pixel_shuffle else [*blocks, depth]
        shape += parts if k == channel else [n]
    first = at[channel] + 1 if pixel_shuffle else at[channel] - len(spatial)
    order: list[int] = []
    for k in range(x.ndim):
        order += [at[k], first + spatial.index(k)] if k in spatial else [at[k]]
    final = [n * size if k in spatial else n for k, n in enumerate(x.shape)]
    final[channel] = depth
    return x.reshape(tuple(shape)).transpose(tuple(order)).reshape(tuple(final))


# ---- arguments ----


def _several(op: str, arrays: Any) -> list[Any]:
    if not isinstance(arrays, Sequence) or not arrays:
        refuse(op, "`arrays` takes a list of at least one array")
    for k, x in enumerate(arrays):
        check_array(op, f"arrays[{k}]", x, ELEMENTS, "numbers or bools")
    return list(arrays)


def _refuse_shapes(op: str, a: Any, b: Any) -> None:
    refuse(
        op,
        f"arrays of shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be joined",
        "",
        "op-shape",
        mj.ShapeError,
    )


def _check_broadcast(op: str, shapes: Sequence[Any]) -> None:
    rank = max(map(len, shapes))
    for k in range(1, rank + 1):
        wide = [s[-k] for s in shapes if len(s) >= k and s[-k] != 1]
        if any(n != wide[0] for n in wide):
            refuse(
                op, f"shapes {', '.join(map(str, shapes))} do not broadcast", "", "op-shape", mj.ShapeError
            )


def _blocks(op: str, x: Any, block: Any, layout: str) -> tuple[tuple[int, ...], int, int]:
    """The spatial axes, the channels' axis and the extent of a block."""
    check_array(op, "x", x, ELEMENTS, "numbers or bools")
    size = whole(op, "block", block, 1)
    spatial = tuple(k for k, letter in enumerate(layout) if letter in "DHW")
    if set(layout) - set("NCDHW") or len(set(layout)) < len(layout) or not spatial or "C" not in layout:
        refuse(op, f"{layout!r} is no layout", "a layout names each axis once: N, C, and the spatial D, H, W")
    if len(layout) != len(x.shape):
        refuse(op, f"the layout {layout!r} has {len(layout)} axes, and `x` has {len(x.shape)}", "", "op-shape",
               mj.ShapeError)  # fmt: skip
    return spatial, layout.index("C"), size
