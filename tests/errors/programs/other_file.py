# mypy: ignore-errors
"""A device function in the same module: the error lies in it, not where it is called."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


@mj.function
def helper(v):
    return v.w  # error: no-attribute


@mj.kernel
def right(x: f32[N]) -> f32[N]:
    return helper(x[position()])


right(np.ones(3, np.float32))
