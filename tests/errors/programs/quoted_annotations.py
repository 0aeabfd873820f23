# mypy: ignore-errors
"""Annotations in quotes: the underline lies inside them."""

import numpy as np

import metaljit as mj
from metaljit.lang import const, f32, position

N = mj.dims("N")


@mj.kernel
def wrong(x: "f32[N]", size: "const[int]" = 2) -> "f32[N // sise]":  # error: unknown-dim
    return x[position()]


wrong(np.ones(4, np.float32))
