"""Arguments as the C of metalcompute reads them, with its errors and its order of attempts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")


class error(Exception):
    """What goes wrong here, in metalcompute's words; a text that is refused, in the compiler's."""

    __module__ = "metaljit.metalcompute"


def positional(count: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A call that takes so many arguments, and says of others what PyArg_ParseTuple does."""

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        is_method = "." in call.__qualname__

        @wraps(call)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if is_method and not args:
                raise TypeError(f"unbound method metalcompute.{call.__qualname__}() needs an argument")
            _no_keywords(call, kwargs)
            check_count(len(args) - is_method, count)
            return call(*args, **kwargs)

        return checked

    return decorate


def optional(call: Callable[P, R]) -> Callable[P, R]:
    """A call that looks at its arguments itself, and takes none by name."""

    @wraps(call)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        _no_keywords(call, kwargs)
        return call(*args, **kwargs)

    return checked


def _no_keywords(call: Callable[..., object], keywords: Mapping[str, object]) -> None:
    if keywords:
        raise TypeError(f"metalcompute.{call.__qualname__}() takes no keyword arguments")


def check_count(given: int, count: int) -> None:
    if given != count:
        plural = "" if count == 1 else "s"
        raise TypeError(f"function takes exactly {count} argument{plural} ({given} given)")


def text_argument(value: object, position: int) -> str:
    if not isinstance(value, str):
        found = "None" if value is None else type(value).__name__
        raise TypeError(f"argument {position} must be str, not {found}")
    value.encode()  # UnicodeEncodeError, as C's reading of it
    if "\0" in value:
        raise ValueError("embedded null character")
    return value


def contents_of(value: Any) -> int | NDArray[np.uint8]:
    """The bytes of a buffer to be made, else their number."""
    try:
        number = int(value)  # tried first, also on what turns out to be bytes
    except Exception:
        number = None
    try:
        return np.frombuffer(value, np.uint8)  # of any format; contiguous
    except (TypeError, ValueError, BufferError):
        pass
    if number is None:
        raise error("Unsupported input format")
    return number


def c_integer(value: object, bits: int) -> int:
    """An integer as C reads it: OverflowError where it does not fit."""
    number: int = operator.index(value)  # type: ignore[arg-type]
    if not -(2**63) <= number < 2**63:
        raise OverflowError("Python int too large to convert to C long")
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        which = "greater than maximum" if number > 0 else "less than minimum"
        raise OverflowError(f"signed integer is {which}")
    return number


def memory_of(value: object, refusal: str) -> memoryview:
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        raise error(refusal) from None
    if not view.c_contiguous:
        raise error(refusal)
    return view
