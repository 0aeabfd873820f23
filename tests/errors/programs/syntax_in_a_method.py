# mypy: ignore-errors
"""A syntax error of the language (it is none of Python's) in an indented function."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


class Filters:
    @mj.kernel
    def wrong(x: f32[N]) -> f32[N]:
        """Doc."""
        values = [x[k] for k in range(N)]  # error: no-list-comprehension
        return x[0:3]


Filters.wrong(np.ones(3, np.float32))
