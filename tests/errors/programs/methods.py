# mypy: ignore-errors
"""Kernels inside a class, a function and an `if`: the place is that of the file."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


class Filters:
    class Inner:
        @mj.kernel
        def wrong(x: f32[N]) -> f32[N]:
            i = position()

            # a comment between
            a = x[i, 0]  # error: wrong-rank
            return a + x[-1]  # error: negative-index


Filters.Inner.wrong(np.ones(3, np.float32))
