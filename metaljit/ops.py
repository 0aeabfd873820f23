"""The standard ops: `metaljit.ops.laplacian(x)`, `metaljit.ops.random.bits(state, shape)`.

In: a name. Out: the op, from the family of `metaljit.stdlib_ops` that has it, which is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .stdlib_ops import random as random
    from .stdlib_ops.bits import hamming_distance as hamming_distance
    from .stdlib_ops.canny import canny as canny
    from .stdlib_ops.image import gaussian_blur as gaussian_blur
    from .stdlib_ops.image import histogram as histogram
    from .stdlib_ops.image import maximum_filter as maximum_filter
    from .stdlib_ops.image import median_filter as median_filter
    from .stdlib_ops.image import minimum_filter as minimum_filter
    from .stdlib_ops.image import prewitt as prewitt
    from .stdlib_ops.image import sobel as sobel
    from .stdlib_ops.image import uniform_filter as uniform_filter
    from .stdlib_ops.pad import pad as pad
    from .stdlib_ops.pooling import max_pool as max_pool
    from .stdlib_ops.stencil import convolve as convolve
    from .stdlib_ops.stencil import correlate as correlate
    from .stdlib_ops.stencil import laplacian as laplacian
    from .stdlib_ops.stencil import stencil as stencil

FAMILIES = {
    "stencil": ("stencil", "laplacian", "correlate", "convolve"),
    "pad": ("pad",),
    "image": (
        "gaussian_blur",
        "sobel",
        "prewitt",
        "median_filter",
        "maximum_filter",
        "minimum_filter",
        "uniform_filter",
        "histogram",
    ),
    "canny": ("canny",),
    "bits": ("hamming_distance",),
    "pooling": ("max_pool",),
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
