"""Ops that write where indices say; the kernels are in scatter.mjk, the places are numbered by those of gather.mjk.

In: arrays, indices and updates. Out: arrays with the updates in them. All modes sort the places and combine the updates of
each, but for sums of 32-bit numbers and floats, which are added at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.lang import bf16, f16, f32, i32, u32
from metaljit.stdlib_ops.gather import (
    ELEMENTS,
    along_axis,
    as_three,
    check_indices,
    check_nd,
    flat_nd,
    product,
    refuse_outside,
    refuse_outside_axis,
    spread,
)
from metaljit.stdlib_ops.operands import (
    FLOATS,
    NUMBERS,
    Operand,
    check_array,
    is_traced,
    refuse,
    viewed,
    whole,
    zeros_like,
)
from metaljit.stdlib_ops.sort import ordered

MODES = ("add", "sub", "mul", "div", "min", "max", "set")
_RANGES = ("skip", "error")
_ADDED = (f16, bf16, f32, i32, u32)  # threads add these, or what they are cast to


def scatter_nd(
    indices: Operand,
    updates: Operand,
    shape: Sequence[int],
    *,
    mode: str = "add",
    batch_dims: int = 0,
    out_of_range: str = "skip",
) -> Any:
    """Zeros of a shape with updates combined into them: `out[b, indices[b, q], u] ∘= updates[b, q, u]`.

    indices, updates, mode, batch_dims, out_of_range: as for `scatter_nd_update`; every mode begins with 0, so that "min",
    "max", "mul" and "div" compare with it, multiply and divide it (begin with another array there).
    shape: of the result.

    Returns an array of the dtype of `updates`.

    Raises TypeFault for float64, for other indices and modes that the dtype does not have, ShapeError where shapes do
    not go together, LaunchFault for an index out of range with "error".
    Compare: MPSGraph `scatterND`; PyTorch `torch.index_put`; TensorFlow `tf.scatter_nd`; NumPy `np.add.at`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.scatter_nd(np.array([[1], [3], [1]]), np.array([10, 20, 30]), (5,)))
        [ 0 40  0 20  0]
    """
    check_array("scatter_nd", "updates", updates, ELEMENTS, "numbers or bools")
    check_indices("scatter_nd", indices)
    extents = tuple(n if not isinstance(n, int) else whole("scatter_nd", "shape", n, 0) for n in shape)
    return _updated(
        "scatter_nd", zeros_like(updates, extents), indices, updates, mode, batch_dims, out_of_range
    )


def scatter_nd_update(
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    mode: str = "set",
    batch_dims: int = 0,
    out_of_range: str = "skip",
) -> Any:
    """`x` with updates combined into the slices that rows of indices name: `out[b, indices[b, q], u] ∘= updates[b, q, u]`.

    x: array of any dtype; b are its first `batch_dims` axes, which the others have too.
    indices: int32 or int64 of shape batch + (…, K), as for `gather_nd`; negative ones are out of range.
    updates: of the dtype of `x` and of the shape of `gather_nd(x, indices)`.
    mode: "add", "sub", "mul", "div", "min", "max" or "set". Updates of one slice are combined one after the other, in
        row-major order, so that of several that are "set" the last stays. 16-bit floats are combined in f32 and rounded
        once; integers wrap; "div" takes floats; bools have "set" alone. NaN wins in "min" and "max".
    out_of_range: "skip" leaves updates with such an index out (TensorFlow on GPUs), "error" refuses them. In a trace
        "error" is a failed assertion of the kernel.

    Returns an array like `x`. Derivatives: by `updates` they are gathered, by `x` they are 0 where it is overwritten;
    equal candidates of "min" and "max" share it.

    Raises TypeFault for float64, for other indices, and modes that the dtype does not have, ShapeError where shapes do not
    go together, LaunchFault for an index out of range with "error".
    Compare: MPSGraph `scatterND`; PyTorch `torch.index_put`; TensorFlow `tf.tensor_scatter_nd_update`; NumPy `x[i] = v`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x, at, new = np.array([1.0, 2, 3, 4], np.float32), np.array([[1], [1], [3]]), np.array([5, 7, 2], np.float32)
        >>> print(ops.scatter_nd_update(x, at, new))
        [1. 7. 3. 2.]
        >>> print(ops.scatter_nd_update(x, at, new, mode="mul"))
        [ 1. 70.  3.  8.]
    """
    check_array("scatter_nd_update", "x", x, ELEMENTS, "numbers or bools")
    return _updated("scatter_nd_update", x, indices, updates, mode, batch_dims, out_of_range)


def put_along_axis(
    x: Operand,
    indices: Operand,
    values: Operand,
    axis: int = -1,
    *,
    mode: str = "set",
    out_of_range: str = "skip",
) -> Any:
    """`x` with a value combined into it for each index: `out[a, indices[a, m, c], c] ∘= values[a, m, c]`, m along the axis.

    x: array of any dtype. indices: int32 or int64 with as many axes; all but `axis` are broadcast against those of `x`.
        Negative ones count from the end, as NumPy has it.
    values: of the dtype of `x`, broadcast to the shape of the indices.
    mode, out_of_range: as for `scatter_nd_update`.

    Returns an array like `x`, which itself is left as it is (NumPy changes it).

    Raises TypeFault, ShapeError and LaunchFault as `scatter_nd_update`, and for an axis that does not exist.
    Compare: MPSGraph `scatterAlongAxis`; PyTorch `torch.scatter_reduce`; NumPy `np.put_along_axis`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.zeros((2, 3), np.int32)
        >>> print(ops.put_along_axis(x, np.array([[0, 0], [2, -2]]), np.array([[1, 2]], np.int32), axis=1, mode="add"))
        [[3 0 0]
         [0 2 1]]
    """
    op = "put_along_axis"
    check_array(op, "x", x, ELEMENTS, "numbers or bools")
    _check_updates(op, "values", x, values, mode, out_of_range)
    shape = tuple(x.shape)
    x, indices, k = along_axis(op, x, indices, axis)
    if tuple(x.shape) != shape:
        refuse(op, f"`indices` has shape {tuple(indices.shape)}, and `x` has {shape}: a result has the shape of `x`", "",
               "op-shape", mj.ShapeError)  # fmt: skip
    try:
        values = spread(values, tuple(indices.shape))
    except ValueError:
        refuse(
            op,
            f"`values` of shape {values.shape} is not broadcast to {indices.shape}",
            "",
            "op-shape",
            mj.ShapeError,
        )
    flat, at = as_three(x, k), as_three(indices, k)
    check = out_of_range == "error"
    if check and not is_traced(x) and not is_traced(indices):
        refuse_outside_axis(op, flat, at, k)
        check = False
    targets = mj.stdlib.gather.targets_along_axis(flat, at, check)
    one = [viewed(v, lambda v: v.reshape(-1, 1)) for v in (x, values)]
    found = _combined(one[0], viewed(targets, lambda v: v.reshape(-1)), one[1], mode)
    return viewed(found, lambda v: v.reshape(shape))


def _check_updates(op: str, name: str, x: Operand, updates: Operand, mode: str, out_of_range: str) -> None:
    if mode not in MODES:
        refuse(op, f"`mode` is one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if out_of_range not in _RANGES:
        refuse(op, f"`out_of_range` is one of {', '.join(map(repr, _RANGES))}, not {out_of_range!r}")
    allowed = FLOATS if mode == "div" else ELEMENTS if mode == "set" else NUMBERS
    what = {"div": "floats", "set": "numbers or bools"}.get(mode, "numbers")
    check_array(op, name, updates, allowed, f"{what} with the mode {mode!r}")
    if updates.dtype != x.dtype:
        refuse(op, f"`x` is {x.dtype.name} and `{name}` {updates.dtype.name}; both have one dtype",
               f"convert one: `{name}.astype(…)`", "op-dtype", mj.TypeFault)  # fmt: skip


def _updated(
    op: str, x: Any, indices: Any, updates: Any, mode: str, batch_dims: int, out_of_range: str
) -> Any:
    _check_updates(op, "updates", x, updates, mode, out_of_range)
    batch, depth = check_nd(op, "shape" if op == "scatter_nd" else "x", x, indices, batch_dims)
    wanted = (*indices.shape[:-1], *x.shape[batch + depth :])
    if tuple(updates.shape) != wanted:
        refuse(op, f"`updates` has shape {tuple(updates.shape)}, and it takes {wanted}: that of the indices but their last "
               f"axis, then what they do not name of {tuple(x.shape)}", "", "op-shape", mj.ShapeError)  # fmt: skip
    flat, rows = flat_nd(x, indices, batch, depth)
    check = out_of_range == "error"
    if check and not is_traced(x) and not is_traced(indices):
        refuse_outside(op, flat, rows, x.shape[batch : batch + depth])
        check = False
    targets = viewed(mj.stdlib.gather.targets(flat, rows, check), lambda v: v.reshape(-1))
    places, width = product(x.shape[: batch + depth]), product(x.shape[batch + depth :])
    slices = viewed(updates, lambda v: v.reshape(product(wanted[: len(indices.shape) - 1]), width))
    found = _combined(viewed(x, lambda v: v.reshape(places, width)), targets, slices, mode)
    return viewed(found, lambda v: v.reshape(tuple(x.shape)))


# ---- combining ----


@mj.jit(static=["mode"])
def _combined(x: Any, targets: Any, updates: Any, mode: str) -> Any:
    """`x` [L, U] with the updates [M, U] at their targets [M]; -1 is nowhere."""
    if mode in ("add", "sub") and any(x.dtype == t.numpy for t in _ADDED):
        return _added(x, targets, updates if mode == "add" else -updates)
    run, order = ordered(targets[None])
    scattered = mj.stdlib.scatter.scattered

    def value(x: Any, updates: Any, targets: Any, run: Any, order: Any) -> Any:
        return scattered(x, run, order, updates, mode)

    def forward(*args: Any) -> Any:
        out = value(*args)
        return out, (*args, out)

    def backward(kept: Any, g: Any) -> Any:
        return (*_pulled(mode, g, *kept), None, None, None)

    rule = mj.custom_vjp(value)
    rule.defvjp(forward, backward)
    return rule(x, updates, targets, run[0], order[0])


def _added(x: Any, targets: Any, updates: Any) -> Any:
    """Sums of 16-bit floats are rounded once."""
    is_narrow = x.dtype.itemsize < 4
    a, b = (x.astype(np.float32), updates.astype(np.float32)) if is_narrow else (x, updates)
    nowhere = np.where(targets < 0, np.iinfo(np.int32).min, targets)  # -1 would be the last place
    total = a.at[nowhere].add(b)
    return total.astype(x.dtype) if is_narrow else total


def _pulled(
    mode: str, g: Any, x: Any, updates: Any, targets: Any, run: Any, order: Any, out: Any
) -> tuple[Any, Any]:
    """The derivatives by `x` and by the updates."""
    kernels = mj.stdlib.scatter
    match mode:
        case "set":
            winner = kernels.winners(x, run, order)
            return np.where(winner[:, None] < 0, g, 0), kernels.of_winners(g, winner, targets)
        case "mul":
            others = kernels.other_factors(run, order, targets, updates)
            return kernels.scattered(g, run, order, updates, "mul"), _at(g * x, targets) * others
        case "div":
            return kernels.scattered(g, run, order, updates, "div"), -_at(g * out, targets) / updates
    hit = updates == _at(out, targets)
    own = x == out
    count = _added(own.astype(np.float32), targets, hit.astype(np.float32))
    share = g / np.maximum(count, 1).astype(g.dtype)
    return np.where(own, share, 0), np.where(hit, _at(share, targets), 0)


def _at(x: Any, targets: Any) -> Any:
    """The slices at the targets, zeros at none."""
    return mj.stdlib.gather.take(x[None], targets, False, False, False)[0]
