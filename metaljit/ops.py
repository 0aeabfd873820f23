"""The standard ops: `metaljit.ops.laplacian(x)`, `metaljit.ops.random.bits(state, shape)`.

In: a name. Out: the op, from the family of `metaljit.stdlib_ops` that has it, which is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .stdlib_ops import random as random
    from .stdlib_ops.bits import hamming_distance as hamming_distance
    from .stdlib_ops.conv import conv as conv, conv_grad_input as conv_grad_input, conv_grad_weight as conv_grad_weight
    from .stdlib_ops.pooling import max_pool as max_pool, max_pool_grad as max_pool_grad, max_unpool as max_unpool
    from .stdlib_ops.pooling_means import avg_pool as avg_pool, avg_pool_grad as avg_pool_grad, l2_pool as l2_pool
    from .stdlib_ops.stencil import laplacian as laplacian

FAMILIES = {
    "stencil": ("laplacian",),
    "bits": ("hamming_distance",),
    "pooling": ("max_pool", "max_pool_grad", "max_unpool"),
    "pooling_means": ("avg_pool", "avg_pool_grad", "l2_pool"),
    "conv": ("conv", "conv_grad_input", "conv_grad_weight"),
}
# Families that are a module of ops by themselves.
MODULES = {"random": ("bits", "philox_state", "skip", "state_from")}

__all__ = [*(name for names in FAMILIES.values() for name in names), *MODULES]


def names() -> tuple[str, ...]:
    """Every op, as it is called: "laplacian", "random.bits"."""
    inner = (f"{module}.{name}" for module, names in MODULES.items() for name in names)
    return (*(name for names in FAMILIES.values() for name in names), *inner)


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"metaljit.stdlib_ops.{name}")
    for family, members in FAMILIES.items():
        if name in members:
            found = getattr(importlib.import_module(f"metaljit.stdlib_ops.{family}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"metaljit.ops has no op {name!r}; it has {', '.join(names())}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
