"""Names that kernels of `test_cache_processes` capture from another module, through functions of functions."""

from __future__ import annotations

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")
FACTOR = 2
TABLE = (1, 2, 3)
TYPED = np.int32(5)


def inner_(v):  # type: ignore[no-untyped-def]
    return v * FACTOR


inner = mj.function(inner_)


@mj.function
def outer(v):  # type: ignore[no-untyped-def]
    return inner(v) + TABLE[1]


@mj.kernel
def kernel(x: f32[N]) -> f32[N]:
    return outer(x[position()])
