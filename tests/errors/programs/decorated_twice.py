# mypy: ignore-errors
"""Options on several lines above the function."""

import numpy as np

import metaljit as mj
from metaljit.lang import Out, f32, global_index

N = mj.dims("N")


@mj.kernel(
    grid="ceil_div(N, 64)",
    threadgroup=65,  # error: bad-threadgroup
)
def wrong(x: f32[N], y: Out[f32[N]]):
    i = global_index()
    y[i] = x[i]


wrong(np.ones(3, np.float32))
