"""Running sums, products and extremes along an axis; the kernels are in scan.mjk.

In: an array and an axis. Out: an array like it. Each is a scan by blocks, in f32 for 16-bit floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.gather import ELEMENTS, as_three
from metaljit.stdlib_ops.operands import NUMBERS, Operand, axis_of, check_array, dtype_of, is_float

BLOCK = 16


def cumsum(
    x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False, dtype: Any = None
) -> Any:
    """The sum of the elements up to each one along an axis.

    x: array of any dtype with at least one axis. exclusive: without the element itself, so that the first is 0.
    reverse: from the end. dtype: of the result, to which `x` is converted first; None is that of `x`, but 32 bits for small
        integers and for bools, which are counted. Integers wrap; 16-bit floats are summed in f32.

    Returns an array of the shape of `x`. Raises TypeFault for float64, LaunchFault for an axis that does not exist.
    Compare: MPSGraph `cumulativeSum`; PyTorch `torch.cumsum`; TensorFlow `tf.cumsum`; NumPy `np.cumsum`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([3, 1, 2], np.int32)
        >>> print(ops.cumsum(x), ops.cumsum(x, exclusive=True, reverse=True))
        [3 4 6] [3 2 0]
    """
    kind = None if dtype is None else dtype_of("cumsum", dtype, NUMBERS)
    return _cumulative("cumsum", "sum", x, axis, exclusive, reverse, kind)


def cumprod(
    x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False, dtype: Any = None
) -> Any:
    """The product of the elements up to each one along an axis; arguments as for `cumsum`, and the first is 1.

    Returns an array of the shape of `x`; its derivative is right where factors are 0, too. Raises TypeFault for float64,
    LaunchFault for an axis that does not exist.
    Compare: MPSGraph `cumulativeProduct`; PyTorch `torch.cumprod`; TensorFlow `tf.math.cumprod`; NumPy `np.cumprod`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.cumprod(np.array([3, 1, 2], np.int32), exclusive=True))
        [1 3 3]
    """
    kind = None if dtype is None else dtype_of("cumprod", dtype, NUMBERS)
    return _cumulative("cumprod", "prod", x, axis, exclusive, reverse, kind)


def cummax(x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Any:
    """The greatest of the elements up to each one along an axis. NaN wins.

    x: array of any dtype with at least one axis. exclusive: without the element itself; the first is then the dtype's
        lowest value, -inf of floats. reverse: from the end.

    Returns an array like `x`; of equal elements the last one takes the derivative. Raises TypeFault for float64,
    LaunchFault for an axis that does not exist.
    Compare: MPSGraph `cumulativeMaximum`; PyTorch `torch.cummax`; NumPy `np.maximum.accumulate`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.cummax(np.array([1, 3, 2, 5])))
        [1 3 3 5]
    """
    return _cumulative("cummax", "max", x, axis, exclusive, reverse, None)


def cummin(x: Operand, axis: int = -1, *, exclusive: bool = False, reverse: bool = False) -> Any:
    """The least of the elements up to each one along an axis; arguments as for `cummax`, and the first is the largest value.

    Returns an array like `x`. Raises TypeFault for float64, LaunchFault for an axis that does not exist.
    Compare: MPSGraph `cumulativeMinimum`; PyTorch `torch.cummin`; NumPy `np.minimum.accumulate`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.cummin(np.array([3, 1, 2]), reverse=True))
        [1 1 2]
    """
    return _cumulative("cummin", "min", x, axis, exclusive, reverse, None)


def _cumulative(
    name: str, op: str, x: Any, axis: int, exclusive: bool, reverse: bool, kind: np.dtype[Any] | None
) -> Any:
    check_array(name, "x", x, ELEMENTS, "numbers or bools")
    k = axis_of(name, axis, len(x.shape))
    return _scan(x, op, k, bool(exclusive), bool(reverse), kind)


@mj.jit(static=["op", "axis", "exclusive", "reverse", "kind"])
def _scan(x: Any, op: str, axis: int, exclusive: bool, reverse: bool, kind: Any) -> Any:
    is_sum = op in ("sum", "prod")
    if kind is not None:
        x = x.astype(kind)
    result = _summed(x.dtype) if kind is None and is_sum else x.dtype
    wide = as_three(x.astype(np.float32 if is_sum and is_float(x.dtype) else result), axis)
    if reverse:
        wide = np.flip(wide, 1)
    found = _differentiable(wide, op) if is_float(wide.dtype) else _levels(wide, op)
    if exclusive:
        found = mj.stdlib.scan.shifted(found, _first(op, found.dtype))
    if reverse:
        found = np.flip(found, 1)
    return found.astype(result).reshape(x.shape)


def _summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of a sum: 32 bits for small integers and bools."""
    if is_float(dtype) or dtype.itemsize >= 4:
        return dtype
    return np.dtype(np.uint32 if dtype.kind == "u" else np.int32)


def _first(op: str, dtype: np.dtype[Any]) -> Any:
    """What nothing comes to."""
    if op in ("sum", "prod"):
        return 0 if op == "sum" else 1
    if is_float(dtype):
        return np.inf if op == "min" else -np.inf
    if dtype == np.bool_:
        return op == "min"
    limits = np.iinfo(dtype)
    return int(limits.max if op == "min" else limits.min)


def _levels(x: Any, op: str) -> Any:
    """The scan of [A, N, C] along N."""
    kernels = mj.stdlib.scan
    if x.shape[1] <= BLOCK:
        return kernels.scanned(x, x, op, BLOCK)
    return kernels.scanned(x, _levels(kernels.totals(x, op, BLOCK), op), op, BLOCK)


# ---- derivatives ----


def _differentiable(x: Any, op: str) -> Any:
    def forward(x: Any) -> Any:
        found = _levels(x, op)
        return found, (x, found)

    def backward(kept: Any, g: Any) -> Any:
        if op == "sum":
            return (np.flip(_levels(np.flip(g, 1), "sum"), 1),)
        x, found = kept
        return (_by_factors(x, found, g) if op == "prod" else _by_records(x, found, g),)

    rule = mj.custom_vjp(lambda x: _levels(x, op))
    rule.defvjp(forward, backward)
    return rule(x)


def _by_factors(x: Any, found: Any, g: Any) -> Any:
    """Of a product: what is before a factor times s, where s of an element is g + the next factor times s of the next."""
    kernels = mj.stdlib.scan
    after = np.flip(kernels.shifted(np.flip(x, 1), 0), 1)
    sums, _ = mj.for_loop(kernels.turns(x), lambda turn, state: kernels.composed(*state, turn), (g, after))
    return kernels.shifted(found, 1) * sums


def _by_records(x: Any, found: Any, g: Any) -> Any:
    """Of an extreme: what is kept of an element goes back to the last one that equals it."""
    is_record = (x == found) | np.isnan(x)
    places = mj.stdlib.arrange.places_along(x)
    last = _levels(np.where(is_record, places, 0), "max")
    at = mj.stdlib.gather.targets_along_axis(x, last, False).reshape(-1)
    flat = g.reshape(-1)
    return np.zeros_like(flat).at[at].add(flat).reshape(g.shape)
