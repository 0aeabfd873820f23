"""What the ops share about their arguments: which arrays are taken, views of them, and refusals as sentences.

In: what the user passed. Out: the same array, a view of it, or an error that names the op and the argument. Nothing
here computes on the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

import metaljit as mj
from metaljit.lang import bf16, f16, f32, i8, i16, i32, i64, u8, u16, u32, u64

Operand: TypeAlias = "NDArray[Any] | mj.Array"
INTEGERS = (u8, u16, u32, u64, i8, i16, i32, i64)
FLOATS = (f16, bf16, f32)
NUMBERS = (*INTEGERS, *FLOATS)
SIGNED = (*FLOATS, i8, i16, i32, i64)


def refuse(
    op: str,
    message: str,
    help: str = "",
    slug: str = "op-argument",
    error: type[mj.MetaljitError] | None = None,
) -> NoReturn:
    """LaunchFault, or the `error` given, for op `op`."""
    raise (error or mj.LaunchFault)(mj.Diagnostic(slug, f"ops.{op}: {message}", help=help))


def check_array(op: str, name: str, x: Any, allowed: Sequence[Any], what: str) -> None:
    """TypeFault unless `x` is an array of one of the element types `allowed`, which `what` describes."""
    if not isinstance(x, np.ndarray | np.generic | mj.Array) and not is_traced(x):
        refuse(op, f"`{name}` takes an array and got {type(x).__name__}", f"pass `np.asarray({name}, dtype=…)`",
               "op-dtype", mj.TypeFault)  # fmt: skip
    if any(x.dtype == t.numpy for t in allowed):
        return
    reason = ", and Apple GPUs have no 64-bit floats" if x.dtype == np.float64 else ""
    way = f"`{name}.astype(np.float32)`" if x.dtype == np.float64 else f"`{name}.astype(…)`"
    slug = "no-f64" if x.dtype == np.float64 else "op-dtype"
    refuse(
        op, f"`{name}` takes {what} and is {x.dtype.name}{reason}", f"convert it: {way}", slug, mj.TypeFault
    )


def dtype_of(op: str, given: Any, allowed: Sequence[Any]) -> np.dtype[Any]:
    """The NumPy dtype meant by a dtype of NumPy or of the language; TypeFault unless it is one of `allowed`."""
    try:
        found: np.dtype[Any] | None = np.dtype(getattr(given, "numpy", given))
    except TypeError:
        found = None
    if found is None or all(found != t.numpy for t in allowed):
        names = ", ".join(t.numpy.name for t in allowed)
        if found == np.float64:
            refuse(
                op,
                "`dtype` is float64, and Apple GPUs have no 64-bit floats",
                f"there are {names}",
                "no-f64",
                mj.TypeFault,
            )
        refuse(op, f"`dtype` is one of {names}, not {given!r}", slug="op-dtype", error=mj.TypeFault)
    return found


def whole(op: str, name: str, value: Any, least: int) -> int:
    """The integer `value`, at least `least`."""
    try:
        number = index(value)
    except TypeError:
        refuse(op, f"`{name}` takes whole numbers and got {value!r}")
    if number < least:
        refuse(op, f"`{name}` is at least {least} and got {number}")
    return number


def lengths(op: str, name: str, given: Any) -> tuple[int, ...]:
    """A shape: whole numbers, or extents of a trace, which are numbers that each call brings."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        refuse(op, f"`{name}` is a shape, and got {given!r}", f"pass a tuple, for example `{name}=x.shape`")
    return tuple(n if hasattr(n, "extent") else whole(op, name, n, 0) for n in given)


def axis_of(op: str, given: Any, rank: int, name: str = "axis") -> int:
    """The axis meant by `axis`, counted from the front."""
    axis = whole(op, name, given, -rank)
    if axis >= rank:
        refuse(
            op, f"`{name}` is {axis}, and the array has {rank} axes", f"axes go from {-rank} to {rank - 1}"
        )
    return axis % rank


def number(op: str, name: str, value: Any, holds: Callable[[float], bool], what: str) -> float:
    """The float `value`, for which `holds` is true: it is `what`."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        refuse(op, f"`{name}` is {what} and got {value!r}")
    if not holds(found):
        refuse(op, f"`{name}` is {what} and got {value!r}")
    return found


def positive(op: str, name: str, value: Any) -> float:
    """The float `value`, above 0."""
    return number(op, name, value, lambda v: v > 0, "a positive number")


def is_traced(x: Any) -> bool:
    """Whether it is an array of a function that is being traced."""
    return hasattr(x, "__metaljit_traced__")


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of `FLOATS`."""
    return any(dtype == t.numpy for t in FLOATS)


def axes_of(op: str, given: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The axes meant by `axes`, ascending; None is all of them."""
    if given is None:
        return tuple(range(rank))
    items = tuple(given) if isinstance(given, Sequence) else (given,)
    found: set[int] = set()
    for item in items:
        axis = whole(op, "axes", item, -rank)
        if axis >= rank:
            refuse(
                op, f"`axes` has {axis}, and the array has {rank} axes", f"axes go from {-rank} to {rank - 1}"
            )
        if axis % rank in found:
            refuse(op, f"`axes` names axis {axis % rank} twice: {items}")
        found.add(axis % rank)
    return tuple(sorted(found))


def zeros_like(like: Any, shape: tuple[Any, ...]) -> Any:
    """Zeros of the dtype of an array, where that array is."""
    if is_traced(like):
        return np.broadcast_to(like.trace.constant(0, like.element), shape)
    zeros = np.zeros(shape, like.dtype)
    return mj.asarray(zeros, device=like.device) if isinstance(like, mj.Array) else zeros


def viewed(x: Operand, view: Callable[[Any], Any]) -> Any:
    """NumPy's `view(x)`; of an array on a device, an array there; of a traced one, a view in its trace."""
    if is_traced(x):
        return view(x)
    if isinstance(x, mj.Array):
        return mj.asarray(view(x.numpy()), device=x.device)
    return view(np.asarray(x))
