"""Sorting; the kernels are in sort.mjk.

In: arrays and an axis. Out: sorted values and where they stood. A pass merges runs, and a loop of the graph runs as many as
the axis needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.gather import ELEMENTS, product
from metaljit.stdlib_ops.operands import Operand, axis_of, check_array, refuse, whole


def sort(x: Operand, axis: int = -1, *, descending: bool = False) -> Any:
    """The elements along an axis in order.

    x: array of any dtype with at least one axis. NaN is larger than all numbers: last ascending, first descending.

    Returns an array like `x`. Its derivative goes to where the elements came from.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist.
    Compare: MPSGraph `sort`; PyTorch `torch.sort`; TensorFlow `tf.sort`; NumPy `np.sort`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.sort(np.array([3, 1, 2, 1]), descending=True))
        [3 2 1 1]
    """
    check_array("sort", "x", x, ELEMENTS, "numbers or bools")
    return _sorted(x, axis_of("sort", axis, len(x.shape)), bool(descending))


def argsort(x: Operand, axis: int = -1, *, descending: bool = False) -> Any:
    """Where along an axis the elements stand, in their order; equal ones in the order in which they stand.

    x: array of any dtype with at least one axis. NaN is larger than all numbers.

    Returns an int32 array of the shape of `x`.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist.
    Compare: MPSGraph `argSort`; PyTorch `torch.argsort(stable=True)`; TensorFlow `tf.argsort(stable=True)`;
    NumPy `np.argsort(kind="stable")`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([3, 1, 2, 1])
        >>> print(ops.argsort(x), ops.argsort(x, descending=True))
        [1 3 2 0] [0 2 1 3]
    """
    check_array("argsort", "x", x, ELEMENTS, "numbers or bools")
    return _argsorted(x, axis_of("argsort", axis, len(x.shape)), bool(descending))


def top_k(x: Operand, k: int, axis: int = -1, *, largest: bool = True) -> Any:
    """`(values, indices)` of the `k` largest elements along an axis, or with `largest` false of the smallest.

    x: array of any dtype with at least one axis. NaN is larger than all numbers. k: from 1 to the elements along the axis.

    Returns values of the dtype of `x`, the largest (or smallest) first, and indices of int32; of equal elements the one
    that stands first comes first. The derivative by `x` is that of the values where they stand, 0 elsewhere.

    Raises TypeFault for float64, LaunchFault for an axis that does not exist or another `k`.
    Compare: MPSGraph `topK`, `bottomK`; PyTorch `torch.topk`; TensorFlow `tf.math.top_k`; NumPy `np.partition`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(*ops.top_k(np.array([3, 1, 2, 3]), 2))
        [3 3] [0 3]
    """
    check_array("top_k", "x", x, ELEMENTS, "numbers or bools")
    axis = axis_of("top_k", axis, len(x.shape))
    count = whole("top_k", "k", k, 1)
    if x.shape[axis] < count:
        refuse("top_k", f"`k` is {count}, and axis {axis} has {x.shape[axis]} elements")
    return _topped(x, count, axis, bool(largest))


def ordered(keys: Any, descending: bool = False) -> tuple[Any, Any]:
    """Traced keys [R, N] in order, and where they stood."""
    kernels = mj.stdlib.sort

    def turn(number: Any, state: Any) -> Any:
        return kernels.merged_with(*state, number, descending)

    keys = mj.stop_gradient(keys)
    run, order = mj.for_loop(kernels.turns(keys), turn, (keys, kernels.places(keys)))
    return run, order


# ---- on rows ----


def _rows(x: Any, axis: int) -> Any:
    """The axis last, and all others as one."""
    moved = np.moveaxis(x, axis, -1)
    return moved.reshape((product(moved.shape[:-1]), moved.shape[-1]))


def _back(rows: Any, x: Any, axis: int) -> Any:
    """Rows of so many elements at the places of those of `x`."""
    shape = [n for k, n in enumerate(x.shape) if k != axis]
    return np.moveaxis(rows.reshape((*shape, rows.shape[-1])), -1, axis)


@mj.jit(static=["axis", "descending"])
def _argsorted(x: Any, axis: int, descending: bool) -> Any:
    return _back(ordered(_rows(x, axis), descending)[1], x, axis)


@mj.jit(static=["axis", "descending"])
def _sorted(x: Any, axis: int, descending: bool) -> Any:
    kernels = mj.stdlib.sort

    def value(rows: Any) -> Any:
        keys = mj.stop_gradient(rows)
        return mj.for_loop(kernels.turns(keys), lambda n, run: kernels.merged(run, n, descending), keys)

    def forward(rows: Any) -> Any:
        return value(rows), ordered(rows, descending)[1]

    def backward(order: Any, g: Any) -> Any:
        at = mj.stdlib.gather.targets_along_axis(g[:, :, None], order[:, :, None], False)
        flat = g.reshape(-1)
        return (np.zeros_like(flat).at[at.reshape(-1)].add(flat).reshape(g.shape),)

    rule = mj.custom_vjp(value)
    rule.defvjp(forward, backward)
    return _back(rule(_rows(x, axis)), x, axis)


@mj.jit(static=["k", "axis", "descending"])
def _topped(x: Any, k: int, axis: int, descending: bool) -> Any:
    rows = _rows(x, axis)
    order = ordered(rows, descending)[1][:, :k]
    values = mj.stdlib.gather.take_along_axis(rows[:, :, None], order[:, :, None], False, False)[:, :, 0]
    return _back(values, x, axis), _back(order, x, axis)
