"""Batch normalisation with running statistics: `python examples/batch_norm.py`.

In training a batch is normalised by its own mean and variance, and two variables follow them: an effect of the call, which
happens though no result needs it. A control dependency says that the answer comes after it. In use the variables normalise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj

EPSILON = 1e-5


class BatchNorm:
    """Normalises the columns of a batch [rows, columns]."""

    def __init__(self, columns: int, momentum: float = 0.1) -> None:
        self.mean = mj.Variable(np.zeros(columns, np.float32), "mean")
        self.variance = mj.Variable(np.ones(columns, np.float32), "variance")
        self.momentum = momentum
        self.train = mj.jit(self._train)
        self.use = mj.jit(self._use)

    def _train(self, x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = x.mean(axis=0), x.var(axis=0)
        keep = 1 - self.momentum
        updates = [
            self.mean.assign(keep * self.mean.value + self.momentum * mean),
            self.variance.assign(keep * self.variance.value + self.momentum * x.var(axis=0, ddof=1)),
        ]
        return mj.control_dependency((x - mean) / np.sqrt(variance + EPSILON) * scale + shift, after=updates)

    def _use(self, x: Any, scale: Any, shift: Any) -> Any:
        return (x - self.mean.value) / np.sqrt(self.variance.value + EPSILON) * scale + shift


def main() -> None:
    norm, rng = BatchNorm(4), np.random.default_rng(0)
    scale, shift = np.ones(4, np.float32), np.zeros(4, np.float32)
    for _ in range(100):
        batch = (rng.standard_normal((256, 4)) * [1, 2, 3, 4] + [5, 0, -5, 10]).astype(np.float32)
        y = norm.train(batch, scale, shift)
    print("a training batch, normalised: mean", y.mean(axis=0).round(3), "deviation", y.std(axis=0).round(3))
    print("running mean     ", norm.mean.value.numpy().round(2))
    print("running deviation", np.sqrt(norm.variance.value.numpy()).round(2))
    print("in use:", norm.use(batch[:1], scale, shift).round(3))


if __name__ == "__main__":
    main()
