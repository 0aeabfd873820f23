# mypy: ignore-errors
"""A kernel made by a function that is made by a function."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


def outer(scale):
    def inner(shift):
        if shift:

            @mj.kernel
            def wrong(
                x: f32[N],
            ) -> f32[N]:
                i = position()
                return (
                    scale * x[i]
                    + shift * unknown  # error: unknown-name
                )

            return wrong
        return None

    return inner


outer(2)(3)(np.ones(3, np.float32))
