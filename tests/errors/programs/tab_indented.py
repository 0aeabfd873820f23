# mypy: ignore-errors
"""A kernel in a function that is indented by tabs."""

import numpy as np

import metaljit as mj
from metaljit.lang import f32, position

N = mj.dims("N")


def make():
	if True:

		@mj.kernel
		def wrong(x: f32[N]) -> f32[N]:
			i = position()
			if x[i] > 0:
				return x[i, 0]  # error: wrong-rank
			return x[-1]  # error: negative-index

		return wrong


make()(np.ones(3, np.float32))
