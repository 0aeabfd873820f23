"""Variables: arrays that keep their value from one call to the next.

In: a first value, then assignments. Out: the value. In a traced function an assignment is an effect of the call: it happens
once, in the order of the program, whether or not a result needs it, and what the function reads after it is the new value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .graph.context import current_trace
from .runtime.array import Array, array, describe_dtype
from .source import Diagnostic, LaunchFault

T = TypeVar("T")


class Variable:
    """An array that assignments replace. Shape and element type are those of the first value.

    It has the operators (but `==` and `!=`, which compare variables, not values) and the methods of its value.
    """

    __slots__ = ("__weakref__", "array", "name")

    def __init__(self, value: Any, name: str = "variable") -> None:
        self.array = array(value)
        self.name = name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def value(self) -> Any:
        """What was assigned last: an array, or a traced one where a function is traced."""
        trace = current_trace()
        return self.array if trace is None else trace.variable(self)

    def assign(self, value: Any) -> Any:
        """Makes `value` the variable's value, and gives it. LaunchFault where shape or element type are others."""
        trace = current_trace()
        if trace is not None:
            return trace.assign(self, value)
        given = value.value if isinstance(value, Variable) else value
        made = (
            given.numpy()
            if isinstance(given, Array)
            else np.asarray(given, None if hasattr(given, "dtype") else self.dtype)
        )
        if made.shape != self.shape or made.dtype != self.dtype:
            raise LaunchFault(
                Diagnostic(
                    "variable-unfit",
                    f"{self.name!r} holds {describe_dtype(self.dtype)} of shape {self.shape}, and is assigned "
                    f"{describe_dtype(made.dtype)} of shape {made.shape}",
                    help="make another variable, or cast the value",
                )
            )
        self.array = array(made, device=self.array.device)
        return self.array

    def __repr__(self) -> str:
        return f"Variable({self.array.numpy()!r}, name={self.name!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"a Variable has no attribute {name!r}")
        return getattr(self.value, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype, copy=copy)

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **named: Any) -> Any:
        return getattr(function, method)(*map(_value, operands), **named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        return function(*map(_value, args), **named)

    if TYPE_CHECKING:  # given below

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __len__(self) -> int: ...


def _value(operand: Any) -> Any:
    return operand.value if isinstance(operand, Variable) else operand


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_OTHER = "lt le gt ge neg pos abs invert getitem len"


def _of_value(name: str) -> Callable[..., Any]:
    return lambda self, *operands: getattr(self.value, name)(*map(_value, operands))


for _name in [*_BINARY.split(), *(f"r{n}" for n in _BINARY.split()), *_OTHER.split()]:
    setattr(Variable, f"__{_name}__", _of_value(f"__{_name}__"))


def control_dependency(value: T | Callable[[], T], after: Sequence[Any] = ()) -> T:
    """`value`, or what it gives when it is called, after the effects in `after` (what `assign` gave).

    Effects happen in the order of the program and are never left out, so this states an order rather than makes it: a
    `value` that is a function is traced here, and reads what has been assigned.
    """
    del after
    return value() if callable(value) else value
