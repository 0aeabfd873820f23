"""Ops that read where indices say; the kernels are in gather.mjk.

In: arrays and indices. Out: what the kernels return. Shapes are checked here, and reduced to the few that the kernels have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.lang import bool_, i32, i64
from metaljit.stdlib_ops.operands import (
    NUMBERS,
    Operand,
    axis_of,
    check_array,
    is_traced,
    refuse,
    viewed,
    whole,
)

ELEMENTS = (bool_, *NUMBERS)
_RANGES = ("zero", "clip", "error")


def gather_nd(x: Operand, indices: Operand, *, batch_dims: int = 0, out_of_range: str = "zero") -> Any:
    """The slices of `x` that rows of `indices` name: `out[b, q, u] = x[b, indices[b, q, 0], …, indices[b, q, K - 1], u]`.

    x: array of any dtype; b are its first `batch_dims` axes, which `indices` has too, u those behind the K indexed ones.
    indices: int32 or int64, of shape batch + (…, K); K may be 0. Negative indices are out of range.
    out_of_range: "zero" gives zeros for a row with such an index (TensorFlow on GPUs, MPSGraph), "clip" takes the nearest
        slice (of an empty axis, zeros), "error" refuses. In a trace "error" is a failed assertion of the kernel.

    Returns an array of the dtype of `x` and shape batch + indices.shape[batch_dims:-1] + x.shape[batch_dims + K:]. The
    derivative by `x` adds up where several rows name one slice.

    Raises TypeFault for float64 and for other indices, ShapeError where shapes do not go together, LaunchFault for an
    index out of range with "error".
    Compare: MPSGraph `gatherND`; PyTorch `x[i, j]`; TensorFlow `tf.gather_nd`;
    NumPy `x[tuple(np.moveaxis(indices, -1, 0))]`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.arange(6, dtype=np.float32).reshape(3, 2)
        >>> print(ops.gather_nd(x, np.array([[2], [0], [5]])))
        [[4. 5.]
         [0. 1.]
         [0. 0.]]
    """
    check_array("gather_nd", "x", x, ELEMENTS, "numbers or bools")
    batch, depth = check_nd("gather_nd", "x", x, indices, batch_dims)
    check = _range_of("gather_nd", out_of_range)
    flat, rows = flat_nd(x, indices, batch, depth)
    if check and not is_traced(x) and not is_traced(indices):
        refuse_outside("gather_nd", flat, rows, x.shape[batch : batch + depth])
        check = False
    found = mj.stdlib.gather.gather_nd(flat, rows, out_of_range == "clip", check)
    shape = (*indices.shape[:-1], *x.shape[batch + depth :])
    return viewed(found, lambda v: v.reshape(shape))


def take(x: Operand, indices: Any, axis: int | None = None, *, out_of_range: str = "zero") -> Any:
    """Slices of `x` along an axis: `out[a, q, c] = x[a, indices[q], c]`.

    x: array of any dtype; None as `axis` takes from the flat array.
    indices: int32 or int64 of any shape, or a list or number. Negative ones count from the end, as NumPy has it.
    out_of_range: "zero", "clip" (negative ones too are then clipped, as by NumPy) or "error"; see `gather_nd`.

    Returns an array of the dtype of `x` and shape x.shape[:axis] + indices.shape + x.shape[axis + 1:].

    Raises TypeFault for float64 and for other indices, LaunchFault for an axis that does not exist, or an index out of
    range with "error".
    Compare: MPSGraph `gather`; PyTorch `torch.index_select`; TensorFlow `tf.gather`; NumPy `np.take`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.take(np.array([[1, 2, 3], [4, 5, 6]]), [-1, 0], axis=1))
        [[3 1]
         [6 4]]
    """
    return _taken("take", x, indices, axis, out_of_range, negative=out_of_range != "clip")


def embedding(table: Operand, indices: Any, *, out_of_range: str = "zero") -> Any:
    """The rows of a table: `out[q] = table[indices[q]]`.

    table: array of any dtype with at least one axis. indices: int32 or int64 of any shape; negative ones are out of range.
    out_of_range: "zero", "clip" or "error"; see `gather_nd`.

    Returns an array of shape indices.shape + table.shape[1:]. The derivative by the table adds up over equal indices.

    Raises TypeFault for float64 and for other indices, ShapeError for a table without axes, LaunchFault for an index out
    of range with "error".
    Compare: MPSGraph `gather`; PyTorch `F.embedding`; TensorFlow `tf.nn.embedding_lookup`; NumPy `table[indices]`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> table = np.array([[0, 1], [2, 3], [4, 5]], np.float32)
        >>> print(ops.embedding(table, np.array([2, 2, 0])))
        [[4. 5.]
         [4. 5.]
         [0. 1.]]
    """
    check_array("embedding", "table", table, ELEMENTS, "numbers or bools")
    if not len(table.shape):
        refuse("embedding", "`table` has no axis", "", "op-shape", mj.ShapeError)
    return _taken("embedding", table, indices, 0, out_of_range, negative=False)


def take_along_axis(x: Operand, indices: Operand, axis: int = -1, *, out_of_range: str = "zero") -> Any:
    """An element of `x` for each index: `out[a, m, c] = x[a, indices[a, m, c], c]`, m along the axis.

    x: array of any dtype. indices: int32 or int64 with as many axes; all but `axis` are broadcast against those of `x`.
        Negative ones count from the end, as NumPy has it.
    out_of_range: "zero" (MPSGraph), "clip" (negative ones count from the end first) or "error"; see `gather_nd`.

    Returns an array of the dtype of `x` and the shape of the indices.

    Raises TypeFault for float64 and for other indices, ShapeError for ranks or extents that do not go together,
    LaunchFault for an axis that does not exist, or an index out of range with "error".
    Compare: MPSGraph `gatherAlongAxis`; PyTorch `torch.gather`; TensorFlow `tf.gather(batch_dims=r-1)`;
    NumPy `np.take_along_axis`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[1, 2], [3, 4]])
        >>> print(ops.take_along_axis(x, np.array([[0, 5], [1, 0]]), axis=1))
        [[1 0]
         [4 3]]
    """
    check_array("take_along_axis", "x", x, ELEMENTS, "numbers or bools")
    x, indices, k = along_axis("take_along_axis", x, indices, axis)
    check = _range_of("take_along_axis", out_of_range)
    flat, at = as_three(x, k), as_three(indices, k)
    if check and not is_traced(x) and not is_traced(indices):
        refuse_outside_axis("take_along_axis", flat, at, k)
        check = False
    found = mj.stdlib.gather.take_along_axis(flat, at, out_of_range == "clip", check)
    return viewed(found, lambda v: v.reshape(indices.shape))


# ---- what the ops of this family and of scatter share ----


def check_indices(op: str, indices: Any) -> None:
    check_array(op, "indices", indices, (i32, i64), "int32 or int64 indices")


def check_nd(op: str, name: str, x: Operand, indices: Operand, batch_dims: int) -> tuple[int, int]:
    """The number of batch axes and of axes that a row of indices names."""
    check_indices(op, indices)
    batch = whole(op, "batch_dims", batch_dims, 0)
    if len(indices.shape) <= batch:
        refuse(op, f"`indices` has shape {indices.shape}, and {batch} batch axes and one of rows are needed", "",
               "op-shape", mj.ShapeError)  # fmt: skip
    depth = int(indices.shape[-1])
    if len(x.shape) < batch + depth:
        refuse(op, f"`indices` names {depth} axes behind {batch} batch axes, and `{name}` has shape {x.shape}",
               "the last axis of `indices` holds one index for each axis", "op-shape", mj.ShapeError)  # fmt: skip
    if any(x.shape[k] != indices.shape[k] for k in range(batch)):
        refuse(op, f"the {batch} batch axes of `{name}`, {x.shape[:batch]}, are not those of `indices`, "
               f"{indices.shape[:batch]}", "", "op-shape", mj.ShapeError)  # fmt: skip
    return batch, depth


def flat_nd(x: Operand, indices: Operand, batch: int, depth: int) -> tuple[Any, Any]:
    """[B, …, U] and [B, Q, K]: the arrays as the kernels take them."""
    b = product(x.shape[:batch])
    inner = (b, *x.shape[batch : batch + depth], product(x.shape[batch + depth :]))
    rows = (b, product(indices.shape[batch:-1]), depth)
    return viewed(x, lambda v: v.reshape(inner)), viewed(indices, lambda v: v.reshape(rows))


def refuse_outside(op: str, flat: Any, rows: Any, extents: Sequence[int]) -> None:
    """LaunchFault where a row of indices names no slice."""
    bad = np.argwhere(np.asarray(mj.stdlib.gather.outside_nd(flat, rows)))
    if len(bad):
        b, q = bad[0]
        refuse(op, f"row {q} of `indices`, {np.asarray(rows)[b, q].tolist()}, is out of range: the axes that it names "
               f"have {tuple(extents)} elements", "negative indices are out of range too")  # fmt: skip


def refuse_outside_axis(op: str, flat: Any, at: Any, axis: int) -> None:
    """LaunchFault where an index names no element along the axis."""
    bad = np.argwhere(np.asarray(mj.stdlib.gather.outside(flat, at)))
    if len(bad):
        refuse(
            op, f"`indices` has {np.asarray(at)[tuple(bad[0])]}, and axis {axis} has {flat.shape[1]} elements"
        )


def along_axis(op: str, x: Any, indices: Any, axis: int) -> tuple[Any, Any, int]:
    """Both broadcast against each other, but for the axis."""
    check_indices(op, indices)
    rank = len(x.shape)
    k = axis_of(op, axis, rank)
    if len(indices.shape) != rank:
        refuse(op, f"`indices` has {len(indices.shape)} axes, and `x` has {rank}", "give it as many axes", "op-shape",
               mj.ShapeError)  # fmt: skip
    made = []
    for mine, other, name in ((x, indices, "x"), (indices, x, "indices")):
        shape = list(mine.shape)
        for n, (a, b) in enumerate(zip(mine.shape, other.shape, strict=True)):
            if n != k and a != b:
                if 1 not in (a, b):
                    refuse(op, f"axis {n} of `{name}` has {a} elements and that of the other array {b}", "", "op-shape",
                           mj.ShapeError)  # fmt: skip
                shape[n] = b if a == 1 else a
        made.append(spread(mine, tuple(shape)))
    return made[0], made[1], k


def spread(x: Any, shape: tuple[Any, ...]) -> Any:
    """The array broadcast to a shape."""
    return x if tuple(x.shape) == shape else viewed(x, lambda v: np.broadcast_to(v, shape))


def as_three(x: Any, axis: int) -> Any:
    """The axes before one, that one, and those behind it."""
    shape = (product(x.shape[:axis]), x.shape[axis], product(x.shape[axis + 1 :]))
    return viewed(x, lambda v: v.reshape(shape))


def product(extents: Sequence[Any]) -> Any:
    return reduce(mul, extents, 1)


def _taken(op: str, x: Any, indices: Any, axis: int | None, out_of_range: str, negative: bool) -> Any:
    check_array(op, "x", x, ELEMENTS, "numbers or bools")
    if isinstance(indices, int | Sequence):
        indices = np.asarray(indices)
    check_indices(op, indices)
    if axis is None:
        x, axis = viewed(x, lambda v: v.reshape(-1)), 0
    k = axis_of(op, axis, len(x.shape))
    check = _range_of(op, out_of_range)
    flat, at = as_three(x, k), viewed(indices, lambda v: v.reshape(-1))
    if check and not is_traced(x) and not is_traced(indices):
        _refuse_outside_slices(op, flat, at, k, negative)
        check = False
    found = mj.stdlib.gather.take(flat, at, out_of_range == "clip", check, negative)
    shape = (*x.shape[:k], *indices.shape, *x.shape[k + 1 :])
    return viewed(found, lambda v: v.reshape(shape))


def _refuse_outside_slices(op: str, flat: Any, at: Any, axis: int, negative: bool) -> None:
    if negative:
        refuse_outside_axis(
            op, viewed(flat, lambda v: v[:1, :, :1]), viewed(at, lambda v: v[None, :, None]), axis
        )
    else:
        one = viewed(flat, lambda v: v[:1, :, :1])
        refuse_outside(op, one, viewed(at, lambda v: v[None, :, None]), (flat.shape[1],))


def _range_of(op: str, given: str) -> bool:
    """Whether indices out of range are refused."""
    if given not in _RANGES:
        refuse(op, f"`out_of_range` is one of {', '.join(map(repr, _RANGES))}, not {given!r}")
    return given == "error"
