"""Hash grids and resizing; the kernels are in spatial.mjk.

In: places or arrays. Out: what the kernels return. The gradient of a hash grid by its table is a sum at the rows that were
read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

import metaljit as mj
from metaljit.lang import bool_, u32
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    Operand,
    axes_of,
    check_array,
    is_traced,
    refuse,
    viewed,
    whole,
)

_MOST_AXES = 7
_MOST_ROWS = 2**31 - 1


def hash_grid_encode(x: Operand, table: Operand, resolutions: Sequence[int]) -> Any:
    """Features of places from grids of several resolutions: of each level the mean of the features at the corners of the
    cell around the place, weighted by nearness; the levels one behind another.

    x: (…, D), places in [0, 1]^D, D from 1 to 7.
    table: (L, R, F), for each level R rows of F features. A level of resolution N has (N + 1)^D points. Where these are
        no more than R, each has a row of its own: `g0 + g1 (N + 1) + …`; else the row is the exclusive or of
        `g0 * 1, g1 * 2654435761, g2 * 805459861, …` in 32 bits, modulo R, and points share rows.
    resolutions: L whole numbers from 1 on.

    Returns an array (…, L * F) of the dtype of `table`. `x` and `table` are float32, float16 or bfloat16; sums are float32.
    It has gradients by `x`, which is that of the cell above the place where it lies on a border, and by `table`, where
    what arrives at a row is added up. Places outside of the unit cube are hashed as they are.

    Raises TypeFault for other dtypes, ShapeError for shapes that do not fit, LaunchFault for resolutions that are none.
    Compare: MPSGraph `HashEncode` of the NeRF sample, which has an offset of half a cell and another scale.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> table = np.arange(9, dtype=np.float32).reshape(1, 9, 1)
        >>> ops.hash_grid_encode(np.array([[0.5, 0.5], [0.25, 0.0]], np.float32), table, [2])
        array([[4. ],
               [0.5]], dtype=float32)
    """
    op = "hash_grid_encode"
    axes = _places(op, x)
    check_array(op, "table", table, FLOATS, "floats")
    if len(table.shape) != 3:
        _unfit(op, f"`table` has shape {table.shape} and takes three axes: levels, rows, features")
    levels = _levels(op, resolutions)
    if len(levels) != table.shape[0]:
        _unfit(op, f"there are {len(levels)} resolutions, and `table` has shape {table.shape}")
    if table.shape[1] == 0:
        _unfit(op, "the levels of `table` have no rows")
    kernels = mj.stdlib.spatial

    def forward(x: Any, table: Any) -> Any:
        return kernels.hash_grid(x, table, levels, axes), (x, table)

    def backward(kept: Any, g: Any) -> Any:
        x, table = kept
        count, rows, features = table.shape
        row, weight = kernels.hash_grid_places(x, table, levels, axes, 2**axes)
        parts = g.astype(np.float32).reshape(*g.shape[:-1], count, 1, features) * weight[..., None]
        empty: Any = np.zeros_like(table.reshape(count * rows, features), dtype=np.float32)
        sums = empty.at[row].add(parts)
        by_table = sums.reshape(count, rows, features).astype(table.dtype)
        return kernels.hash_grid_by_x(x, table, levels, g, axes), by_table

    rule = mj.custom_vjp(lambda x, table: forward(x, table)[0])
    rule.defvjp(forward, backward)
    return rule(x, table)


def hash_grid_corners(x: Operand, rows: int, resolutions: Sequence[int]) -> tuple[Any, Any]:
    """The rows that `hash_grid_encode` reads, and the weights that they have.

    x: (…, D), places; rows: R of the table; resolutions: one for each level.

    Returns the rows, uint32, and the weights, float32, both (…, L, 2^D). Bit d of a corner's number says on which side of
    axis d it is.

    Raises TypeFault for dtypes that are no floats, LaunchFault for a number of rows or resolutions that is none.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.hash_grid_corners(np.array([[0.25, 0.0]], np.float32), 9, [2])
        (array([[[0, 1, 3, 4]]], dtype=uint32), array([[[0.5, 0.5, 0. , 0. ]]], dtype=float32))
    """
    op = "hash_grid_corners"
    axes = _places(op, x)
    levels, count = _levels(op, resolutions), _rows(op, rows)
    return mj.stdlib.spatial.hash_grid_corners(x, levels, count, axes, 2**axes)  # type: ignore[no-any-return]


def hash_grid_index(points: Operand, resolution: int, rows: int) -> Any:
    """The row of each point of a level, as `hash_grid_encode` has it.

    points: uint32 (…, D), whole coordinates; resolution: N of the level; rows: R of the table.

    Returns uint32 (…).

    Raises TypeFault for another dtype, LaunchFault for numbers that make no level.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.hash_grid_index(np.array([[1, 2], [3, 4]], np.uint32), 5000, 1024)
        array([867, 711], dtype=uint32)
    """
    op = "hash_grid_index"
    check_array(op, "points", points, (u32,), "uint32")
    if not len(points.shape):
        _unfit(op, "`points` has no axis; its last one holds the coordinates")
    (level,) = _levels(op, [resolution]).tolist()
    return mj.stdlib.spatial.hash_grid_index(points, level, _rows(op, rows), _axes(op, "points", points))


def _places(op: str, x: Operand) -> int:
    check_array(op, "x", x, FLOATS, "floats")
    return _axes(op, "x", x)


def _axes(op: str, name: str, x: Operand) -> int:
    """The number of coordinates."""
    if not len(x.shape) or not 1 <= x.shape[-1] <= _MOST_AXES:
        _unfit(op, f"`{name}` has shape {x.shape}; its last axis holds 1 to {_MOST_AXES} coordinates")
    return int(x.shape[-1])


def _levels(op: str, resolutions: Sequence[int]) -> Any:
    if isinstance(resolutions, np.ndarray):
        resolutions = resolutions.tolist()
    if not isinstance(resolutions, Sequence) or isinstance(resolutions, str):
        refuse(op, f"`resolutions` takes whole numbers, one for each level, and got {resolutions!r}")
    found = [whole(op, "resolutions", n, 1) for n in resolutions]
    if any(n > _MOST_ROWS for n in found):
        refuse(op, f"`resolutions` is at most {_MOST_ROWS} and has {max(found)}")
    return np.array(found, np.uint32)


def _rows(op: str, rows: int) -> int:
    count = whole(op, "rows", rows, 1)
    if count > _MOST_ROWS:
        refuse(op, f"`rows` is at most {_MOST_ROWS} and got {count}")
    return count


def _unfit(op: str, message: str, help: str = "") -> NoReturn:
    refuse(op, message, help, "op-shape", mj.ShapeError)


# ---- other sizes ----

MODES = ("nearest", "bilinear")
COORDINATES = ("half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("prefer_ceil", "prefer_floor", "ceil", "floor", "even", "odd")


def resize(
    x: Operand,
    size: int | Sequence[int],
    *,
    mode: str = "bilinear",
    coordinates: str = "half_pixel",
    rounding: str = "prefer_ceil",
    axes: int | Sequence[int] | None = None,
) -> Any:
    """An array with other extents along some axes, of the nearest elements or of means of those around.

    x: array with any number of axes; floats for "bilinear", anything for "nearest".
    size: the new extent, at least 1, of each axis that changes.
    mode: "nearest" or "bilinear" (along one axis linear, along three trilinear, and so on).
    coordinates: where element i of m lies among n. "half_pixel": `(i + 0.5) * n / m - 0.5`, so that elements are cells;
        "align_corners": `i * (n - 1) / (m - 1)`, so that the ends stay; "asymmetric": `i * n / m`. In float32; what is
        outside is taken to the border.
    rounding: which element is nearest: the one at `floor(p + 0.5)` ("prefer_ceil"), `ceil(p - 0.5)` ("prefer_floor"),
        `ceil(p)`, `floor(p)`, or of two equally near ones the "even" or the "odd" one.
    axes: as many as `size` has numbers; None: the last ones.

    Returns an array of the dtype of `x`; floats are computed in float32. It has a gradient.

    Raises TypeFault for dtypes that do not fit the mode, ShapeError for an empty axis, LaunchFault for other arguments
    that make no sense.
    Compare: MPSGraph `resize` (`centerResult` is "half_pixel", `alignCorners` "align_corners", neither "asymmetric");
    PyTorch `F.interpolate` (its "nearest" is "asymmetric" with "floor", its "nearest-exact" "half_pixel");
    TensorFlow `tf.image.resize`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[0, 2], [4, 6]], np.float32)
        >>> ops.resize(x, 4, mode="nearest")[0]
        array([0., 0., 2., 2.], dtype=float32)
        >>> ops.resize(x, (3, 3), coordinates="align_corners")
        array([[0., 1., 2.],
               [2., 3., 4.],
               [4., 5., 6.]], dtype=float32)
    """
    for name, given, known in (
        ("mode", mode, MODES),
        ("coordinates", coordinates, COORDINATES),
        ("rounding", rounding, ROUNDINGS),
    ):
        if given not in known:
            refuse("resize", f"{given!r} is no {name}", "there are " + ", ".join(map(repr, known)))
    if mode == "nearest":
        check_array("resize", "x", x, (*NUMBERS, bool_), "anything but float64")
    else:
        check_array("resize", "x", x, FLOATS, "floats")
    sizes = tuple(size) if isinstance(size, Sequence) else (size,)
    sizes = tuple(whole("resize", "size", n, 1) for n in sizes)
    rank = len(x.shape)
    if axes is None:
        if len(sizes) > rank:
            refuse("resize", f"`size` has {len(sizes)} numbers, and `x` has {rank} axes")
        chosen = tuple(range(rank - len(sizes), rank))
    else:
        axes_of("resize", axes, rank)
        chosen = tuple(a % rank for a in (axes if isinstance(axes, Sequence) else (axes,)))
    if len(chosen) != len(sizes):
        refuse("resize", f"`size` has {len(sizes)} numbers, and `axes` names {len(chosen)}")
    for axis in chosen:
        if x.shape[axis] == 0:
            _unfit("resize", f"axis {axis} of `x` has no elements: {x.shape}")
    kernels = mj.stdlib.spatial
    for axis, n in zip(
        chosen, sizes, strict=True
    ):  # an axis at a time, so that another size compiles nothing
        last = _moved(x, axis, -1)
        if mode == "nearest":
            last = kernels.resize_nearest(last, n, coordinates, rounding)
        else:
            last = kernels.resize_linear(last, n, coordinates)
        x = _moved(last, -1, axis)
    return x


def _moved(x: Any, axis: int, to: int) -> Any:
    if axis % len(x.shape) == to % len(x.shape):
        return x
    if is_traced(x):
        return np.moveaxis(x, axis, to)
    return viewed(x, lambda v: np.moveaxis(v, axis, to))
