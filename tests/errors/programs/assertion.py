# mypy: ignore-errors
"""A failing `assert` names its own line."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


def make():
    @mj.kernel
    def checked(x: f32[N]) -> f32[N]:
        v = x[position()]
        assert v == v, "a number"
        assert v > 0, "positive"  # error: assertion-failed
        return v

    return checked


make()(np.array([1, 2, -3], np.float32))
