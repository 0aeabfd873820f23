"""The names of the kernel language, for `from metaljit.lang import …`.

They are markers: the compiler recognises them by identity. Type checkers take the element types in annotations as
`Any`, so `f32[H, W]` checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .kernels import function as function
from .kernels import kernel as kernel
from .symbols import MJK_NAMES, PYTHON
from .symbols import dims as dims
from .symbols import dtypes as dtypes


def __getattr__(name: str) -> Any:
    if name == "__all__":  # Python's own built-ins mean themselves in a kernel
        return [n for n in __dir__() if n not in PYTHON]
    if name in MJK_NAMES:
        return MJK_NAMES[name]
    if not name.startswith("_"):
        from .operations import OPERATIONS

        if name in OPERATIONS:
            return OPERATIONS[name]
    raise AttributeError(f"module 'metaljit.lang' has no attribute {name!r}")


def __dir__() -> list[str]:
    from .operations import OPERATIONS

    return sorted({*MJK_NAMES, *OPERATIONS})


if TYPE_CHECKING:
    bool_: Any
    i8: Any
    i16: Any
    i32: Any
    i64: Any
    u8: Any
    u16: Any
    u32: Any
    u64: Any
    f16: Any
    bf16: Any
    f32: Any
    const: Any
    Out: Any
    InOut: Any
