"""Arguments as the C of metalcompute reads them, with its errors and its order of attempts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class error(Exception):
    """What goes wrong here, in metalcompute's words; a text that is refused, in the compiler's."""


def positional(count: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A call that takes so many arguments, and says of others what PyArg_ParseTuple does."""

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        is_method = "." in call.__qualname__

        @wraps(call)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs:
                raise TypeError(f"metalcompute.{call.__qualname__}() takes no keyword arguments")
            check_count(len(args) - is_method, count)
            return call(*args, **kwargs)

        return checked

    return decorate


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


def contents_of(value: Any) -> int | memoryview:
    """The bytes of a buffer to be made, else their number."""
    try:
        number = int(value)  # tried first, also on what turns out to be bytes
    except Exception:
        number = None
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        pass
    else:
        if view.c_contiguous:
            return view
    if number is None:
        raise error("Unsupported input format")
    return number


def c_int(value: object) -> int:
    try:
        number: int = value.__index__()  # type: ignore[attr-defined]
    except AttributeError:
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer") from None
    if not -(2**31) <= number < 2**31:
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
