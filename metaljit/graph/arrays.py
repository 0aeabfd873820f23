"""What traced arrays have, on device arrays: operators, methods, NumPy's functions.

`install` puts them on `Array`. Where a key, or a new shape, only moves elements that are in memory already, they are copied
there and nothing is compiled; all else runs on the device, or is refused: nothing is computed by NumPy unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ..runtime.array import Array, allocate, array, as_key, asarray, same_device
from . import joins
from .context import current_trace
from .eager import Call, Row
from .methods import FUNCTIONS, METHODS, function_of
from .traced import COMPARISONS, OPERATORS, SPECIAL_UFUNCS, UFUNCS, UNARY, Traced, fault

MOVED = ("reshape", "ravel", "flatten", "squeeze", "expand_dims", "broadcast_to", "split")
# What NumPy asks about an array, or writes of it, computes nothing.
ASKED = ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "shares_memory", "may_share_memory",
         "array_repr", "array_str", "array2string")  # fmt: skip


@cache
def row(name: str) -> Row:
    return Row(name)


@cache
def call(name: str, function: Callable[..., Any]) -> Call:
    return Call(name, function)


def install() -> None:
    """Gives `Array` all that traced arrays have."""
    for word, name in OPERATORS.items():
        setattr(Array, f"__{word}__", _binary(name))
        setattr(Array, f"__r{word}__", _binary(name, swapped=True))
    for word, name in COMPARISONS.items():
        setattr(Array, f"__{word}__", _binary(name))
    for word, name in UNARY.items():
        setattr(Array, f"__{word}__", _unary(name))
    for name in ("__matmul__", "__rmatmul__"):
        if hasattr(Traced, name):
            setattr(Array, name, _operator(name, getattr(Traced, name)))
    for name, method in METHODS.items():
        if not name.startswith("__"):
            setattr(Array, name, _method(name, method))
    for name, found in OWN.items():
        setattr(Array, name, found)


# ---- operators ----


def _binary(name: str, swapped: bool = False) -> Callable[[Array, Any], Any]:
    operation = row(name)

    def operator(self: Array, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            return NotImplemented
        return operation(other, self) if swapped else operation(self, other)

    return operator


_OPERANDS = (Array, Traced, np.ndarray, np.generic, bool, int, float)


def _unary(name: str) -> Callable[[Array], Any]:
    operation = row(name)
    return lambda self: operation(self)


def _operator(name: str, function: Callable[..., Any]) -> Callable[[Array, Any], Any]:
    operation = call(name.strip("_"), function)
    return lambda self, other: operation(self, other) if isinstance(other, _OPERANDS) else NotImplemented


# ---- methods ----


def _method(name: str, method: Any) -> Any:
    if isinstance(method, property):
        assert method.fget is not None
        return property(call(name, method.fget))
    if name in MOVED:
        return lambda self, *args, **named: _moved(
            name, method, getattr(np.ndarray, name), (self, *args), named
        )
    function = call(name, method)
    return lambda self, *args, **named: _called(name, function, (self, *args), named)


def _called(name: str, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A function of arrays; a row of the operation table where it is one, so that its numbers are passed at run time."""
    if name in UFUNCS and not named:
        return row(UFUNCS[name])(*args)
    for key in ("out", "where"):
        if named.get(key) is not None:
            _refuse_argument(name, key)
    return function(*args, **named)


def _moved(
    name: str,
    traced: Callable[..., Any],
    numpy: Callable[..., Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """A function that gives elements another shape. What NumPy refuses, the trace refuses with the line."""
    array, *rest = args
    if current_trace() is None and isinstance(array, Array):
        try:
            found = numpy(array.numpy(), *rest, **named)
        except (IndexError, TypeError, ValueError):
            pass
        else:
            return [_owned(array, v) for v in found] if isinstance(found, list) else _owned(array, found)
    return call(name, traced)(*args, **named)


def _owned(array: Array, part: Any) -> Array:
    """Elements of an array as an array of their own."""
    made = allocate(array.device, part.shape, array.dtype)
    made.numpy()[...] = part
    return made


def _item(self: Array, key: Any) -> Any:
    """`a[key]`: elements of it as an array of their own."""
    if current_trace() is None and not _has_arrays(key):
        try:
            return _owned(self, self.numpy()[key])
        except (IndexError, TypeError, ValueError):
            pass  # the trace says it with the line
    parts = key if isinstance(key, tuple) else (key,)
    for k in parts:
        if isinstance(k, bool | np.bool_):
            fault("bad-index", f"{k} cannot index an array", "use integers, slices, `...` and None")
    found = tuple(np.asarray(k) if type(k) is list else k for k in parts)
    return call("item", METHODS["__getitem__"])(self, found)


def _has_arrays(key: Any) -> bool:
    """Whether a key is not of integers, slices, `...` and None alone."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(map(joins.is_index_array, parts)) or any(isinstance(k, bool | np.bool_) for k in parts)


class At:
    """`a.at[key]`: what stands there, to be set or added to. The answer is another array."""

    def __init__(self, array: Array, key: Any = None) -> None:
        self._array, self._key = array, key

    def __getitem__(self, key: Any) -> At:
        return At(self._array, key)

    def set(self, value: Any) -> Any:
        """The array with `value`, broadcast and cast, in place of what the key takes: integers and slices."""
        is_long = type(value) is int and not -(2**31) <= value < 2**31  # no literal of a trace
        if not self._is_plain or isinstance(value, Traced) or is_long:
            return call("set", _set)(self._array, self._key, value)
        made, key = self._array.copy(), self._key
        given = _operand(made, value).astype(made.dtype)
        try:
            made.numpy()[key] = np.broadcast_to(given.numpy(), np.shape(made.numpy()[key]))
        except (IndexError, TypeError, ValueError):  # the trace says it with the line
            return call("set", _set)(made, key, given)
        return made

    def add(self, value: Any) -> Any:
        """The array with `value` added to what the key takes; equal indices of an index array all count."""
        if self._is_plain:
            return self.set(row("add")(self._array[self._key], value))
        return call("add_at", _add)(self._array, self._key, value)

    @property
    def _is_plain(self) -> bool:
        return current_trace() is None and not _has_arrays(self._key)


def _set(array: Traced, key: Any, value: Any) -> Traced:
    return joins.At(array, key).set(value)


def _add(array: Traced, key: Any, value: Any) -> Traced:
    return joins.At(array, key).add(value)


def _operand(beside: Array, value: Any) -> Array:
    """A number, or an array of NumPy's, as an array on the device of another one, with the type that a trace gives it."""
    if type(value) in _NUMBERS:
        return array(value, _NUMBERS[type(value)], device=beside.device)
    if isinstance(value, Array):
        same_device(beside, value)
        return value
    return asarray(joins.counted(np.asarray(value)), device=beside.device)


_NUMBERS = {bool: np.bool_, int: np.int32, float: np.float32}


def _contains(self: Array, value: Any) -> bool:
    return bool((self == value).any())


# ---- NumPy's functions ----


def _array_ufunc(self: Array, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
    name = ufunc.__name__
    if method != "__call__":
        fault(
            "numpy-function",
            f"np.{name}.{method} has no meaning for device arrays",
            f"reduce with a method, such as `a.sum()`, or compute on the host: `np.{name}.{method}(a.numpy())`",
        )
    for key, value in named.items():
        if value is not None:
            _refuse_argument(name, key)
    if name in UFUNCS:
        return row(UFUNCS[name])(*args)
    found = FUNCTIONS.get(name) or SPECIAL_UFUNCS.get(name)
    if found is not None:
        return call(name, found)(*args)
    _refuse_function(name)


def _array_function(self: Array, function: Any, types: Any, args: Any, named: Any) -> Any:
    name = function.__name__
    if name == "copy":
        return args[0].copy()
    if name in ASKED:
        return function(*map(as_key, args), **named)
    found = function_of(function)
    if found is None:
        _refuse_function(f"{function.__module__.removeprefix('numpy').lstrip('.')}.{name}".lstrip("."))
    if name in MOVED:
        return _moved(name, found, function, args, named)
    return _called(name, call(name, found), args, named)


def _refuse_function(name: str) -> NoReturn:
    fault(
        "numpy-function",
        f"np.{name} has no meaning for device arrays",
        f"compute on the device with metaljit's ops or a kernel, or on the host: `np.{name}` of `a.numpy()`",
    )


def _refuse_argument(name: str, key: str) -> NoReturn:
    fault(
        "numpy-argument",
        f"np.{name} of device arrays does not take {key}=",
        "a result is an array of its own: write it with `a[...] = result`, choose with `np.where`",
    )


OWN: dict[str, Any] = {
    "__getitem__": _item,
    "__contains__": _contains,
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
    "at": property(At),
}
