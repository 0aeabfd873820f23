"""What NumPy's arrays have, on traced arrays: methods, and NumPy's functions called with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import DType, from_numpy
from . import joins, products, reductions, views
from .traced import SPECIAL_UFUNCS, UFUNCS, Traced, elementwise, fault


def _astype(self: Traced, dtype: Any) -> Traced:
    found = dtype if isinstance(dtype, DType) else from_numpy(np.dtype(dtype))
    if found is None:
        fault(
            "graph-dtype",
            f"there is no element type for {dtype}",
            "the language has bool, i8 … u64, f16, bf16, f32",
        )
    return reductions.cast(self, found)


def _reduction(name: str) -> Callable[..., Traced]:
    return lambda self, axis=None, keepdims=False: reductions.reduce(name, self, axis, keepdims)


def _reshape(self: Traced, *shape: Any) -> Traced:
    return views.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)


def _transpose(self: Traced, *axes: Any) -> Traced:
    given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return views.transpose(self, given)


METHODS: dict[str, Any] = {
    "__getitem__": joins.item,
    "__matmul__": products.matmul,
    "__rmatmul__": lambda self, other: products.matmul(other, self),
    "dot": products.dot,
    "at": property(joins.At),
    "take": joins.take,
    "repeat": joins.repeat,
    "T": property(views.transpose),
    "transpose": _transpose,
    "reshape": _reshape,
    "ravel": lambda self: views.reshape(self, -1),
    "flatten": lambda self: views.reshape(self, -1),
    "squeeze": views.squeeze,
    "swapaxes": views.swapaxes,
    "astype": _astype,
    "mean": reductions.mean,
    "var": reductions.var,
    "std": reductions.std,
    "clip": lambda self, low, high: elementwise("clip", self, low, high),
    "argmin": lambda self, axis=None, keepdims=False: reductions.argument("min", self, axis, keepdims),
    "argmax": lambda self, axis=None, keepdims=False: reductions.argument("max", self, axis, keepdims),
    **{name: _reduction(name) for name in ("sum", "prod", "min", "max", "any", "all")},
}
for _name, _method in METHODS.items():
    setattr(Traced, _name, _method)
SPECIAL_UFUNCS["matmul"] = products.matmul


def _filled(number: float) -> Callable[..., Traced]:
    return lambda a, dtype=None: views.broadcast_to(
        _astype(joins.entered_array(a.trace, number), a.dtype if dtype is None else dtype), a.shape
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: METHODS[name] for name in ("sum", "prod", "any", "all", "mean", "var", "std", "argmin", "argmax", "squeeze",
                                        "ravel", "swapaxes")},
    "amin": METHODS["min"],
    "amax": METHODS["max"],
    "min": METHODS["min"],
    "max": METHODS["max"],
    "reshape": lambda a, shape: views.reshape(a, shape),
    "transpose": views.transpose,
    "moveaxis": views.moveaxis,
    "expand_dims": views.expand_dims,
    "flip": views.flip,
    "concatenate": joins.concatenate,
    "stack": joins.stack,
    "split": joins.split,
    "pad": joins.pad,
    "take": joins.take,
    "roll": joins.roll,
    "tile": joins.tile,
    "repeat": joins.repeat,
    "broadcast_to": views.broadcast_to,
    "zeros_like": _filled(0),
    "ones_like": _filled(1),
    "diff": lambda a, n=1, axis=-1: _diff(a, n, axis),
    "dot": products.dot,
    "where": lambda c, a, b: elementwise("where", c, a, b),
    "clip": METHODS["clip"],
}  # fmt: skip


def _diff(array: Traced, n: int, axis: int) -> Traced:
    axis = views.axis_of(array, axis)
    before = (slice(None),) * axis
    for _ in range(n):
        array = elementwise("subtract", array[(*before, slice(1, None))], array[(*before, slice(None, -1))])
    return array


def function_of(function: Any) -> Callable[..., Any] | None:
    """What NumPy's function is for traced arrays: one of the table above, or a row of the operation table."""
    name = function.__name__
    if name in FUNCTIONS or name not in UFUNCS:
        return FUNCTIONS.get(name)
    return lambda *operands: elementwise(UFUNCS[name], *operands)


def _named(function: Any) -> str:
    module: str = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{function.__name__}"


def _array_function(self: Traced, function: Any, types: Any, args: Any, named: Any) -> Any:
    found = function_of(function)
    if found is None:
        fault(
            "numpy-function",
            f"{_named(function)} has no meaning for traced arrays",
            "use metaljit's ops or a kernel",
        )
    return found(*args, **named)


Traced.__array_function__ = _array_function  # type: ignore[attr-defined]
