"""What a free name of a kernel means: Python objects → the compiler's own, by identity.

In: an object that Python's scoping found (or a `.mjk` file defines). Out: a number, a tuple of them, a symbol
of the language, an operation, a function, a module; anything else is `Foreign`, which is an error where it is used.
"""

from __future__ import annotations

import builtins
import math
import types
from functools import cache
from typing import Any

import numpy as np

from ...dtypes import DType, Vec
from ...frozen import frozen
from ...operations import OPERATIONS, Operation
from ...symbols import (
    BUILTINS,
    MISSING,
    PYTHON,
    Builtin,
    Dim,
    DTypeVariable,
    FunctionText,
    Missing,
    Namespace,
    Pack,
    mark,
)


@frozen
class Foreign:
    """An object of Python that the language has no meaning for."""

    what: str


_OWN = (Builtin, DType, Vec, Dim, Pack, DTypeVariable, FunctionText, Namespace, Missing, Operation)


@cache
def _known() -> dict[int, Any]:
    """By id (the objects outlive the process): Python's built-ins, NumPy's and math's functions of the same name."""
    known: dict[int, Any] = {id(getattr(builtins, n)): BUILTINS[n] for n in PYTHON}
    renamed = {"math": {"fabs": "abs", "pow": "power", "gamma": "gamma", "asin": "arcsin", "acos": "arccos",
                        "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
                        "atanh": "arctanh"}}  # fmt: skip
    skipped = {"math": {"floor", "ceil", "trunc", "gcd", "lcm", "fsum", "prod", "remainder"}, "numpy": set()}
    for module in (np, math):
        for name, obj in vars(module).items():
            target = renamed.get(module.__name__, {}).get(name, name)
            if callable(obj) and target in OPERATIONS and name not in skipped[module.__name__]:
                known[id(obj)] = OPERATIONS[target]
    for name in ("sum", "prod", "any", "all", "argmin", "argmax"):
        known[id(getattr(np, name))] = BUILTINS[name]
    for name in (
        "bool_",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
    ):
        from ...dtypes import from_numpy

        known[id(getattr(np, name))] = from_numpy(np.dtype(name.rstrip("_")))
    return known


def canonical(obj: Any) -> Any:
    """The compiler's object for a Python object."""
    if isinstance(obj, _OWN) or obj is None or isinstance(obj, str):
        return obj
    if isinstance(obj, np.generic):
        return obj
    if isinstance(obj, bool | int | float):
        return obj
    if isinstance(obj, tuple):
        items = tuple(canonical(o) for o in obj)
        foreign = next((i for i in items if isinstance(i, Foreign)), None)
        return Foreign(f"tuple that holds a {foreign.what}") if foreign is not None else items
    if isinstance(obj, types.ModuleType):
        return obj
    text = mark(obj, "__metaljit_text__")
    if isinstance(text, FunctionText | Namespace):
        return text
    builtin = mark(obj, "__metaljit_builtin__")
    if isinstance(builtin, str):
        return BUILTINS[builtin]
    known = _known().get(id(obj))
    return known if known is not None else Foreign(_described(obj))


def _described(obj: Any) -> str:
    """A foreign object in words: its module's function, or its type."""
    module = (getattr(obj, "__module__", None) or "").partition(".")[0]
    if callable(obj) and not isinstance(obj, type) and module in ("numpy", "math"):
        return f"{module} function"
    if isinstance(obj, types.FunctionType):
        return "function"
    if callable(obj) and not isinstance(obj, type):
        return "callable"
    return type(obj).__name__


def member(owner: Any, name: str) -> Any:
    """`owner.name` for a module or a namespace."""
    if isinstance(owner, Namespace):
        return canonical(owner.members.get(name, MISSING))
    return canonical(getattr(owner, name, MISSING))
