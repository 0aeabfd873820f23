"""What a compilation needs to know of a call's arguments: dtypes and ranks, never data."""

from __future__ import annotations

from typing import Any, TypeAlias

from .dtypes import DType
from .frozen import frozen


@frozen
class ArrayArgument:
    """An argument's dtype and rank, as NumPy has them (a vector's lane axis counts)."""

    dtype: DType
    rank: int


@frozen
class ScalarArgument:
    """A number; `dtype` is set for NumPy's typed scalars."""

    dtype: DType | None = None


@frozen
class ConstArgument:
    value: Any


Argument: TypeAlias = ArrayArgument | ScalarArgument | ConstArgument
