"""NumPy's operators on `Array`s, found where they are first used: `graph.arrays` has them, and loads the compiler.

Importing this gives `Array` stand-ins. The first one that is called puts what stands behind all of them in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .runtime.array import Array

BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("neg", "pos", "abs", "invert")
OTHERS = ("getitem", "contains", "array_ufunc", "array_function")
OPERATORS = tuple(
    f"__{word}__" for word in (*BINARY, *(f"r{word}" for word in BINARY), *COMPARISONS, *UNARY, *OTHERS)
)


def _stand_in(name: str) -> Callable[..., Any]:
    def operator(self: Array, *args: Any, **named: Any) -> Any:
        _load()
        found = getattr(Array, name)
        return NotImplemented if found is operator else found(self, *args, **named)

    return operator


def _load() -> None:
    from .graph import arrays

    arrays.install()


def _missing(self: Array, name: str) -> Any:
    """An attribute that `Array` does not have: a method of NumPy's that is not loaded yet, or none."""
    if not name.startswith("_"):
        _load()
        if name in vars(Array):
            return getattr(self, name)
    way_out = f": `a.numpy().{name}` is NumPy's" if hasattr(np.ndarray, name) else ""
    raise AttributeError(f"an Array has no {name!r}{way_out}", name=name, obj=self)


for _name in OPERATORS:
    setattr(Array, _name, _stand_in(_name))
Array.__getattr__ = _missing  # type: ignore[assignment, method-assign]
