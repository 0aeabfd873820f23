"""A softmax classifier trained with `mj.grad`: `python examples/classifier.py`.

Three clouds of points in the plane, features by a small hidden layer, 300 steps of gradient descent as one call. Everything
between the arrays that are passed is traced: the loss, its derivative, the update and the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj


def clouds(count: int, seed: int = 0) -> tuple[Any, Any]:
    """Points around three centres that lie in one line, so that no line parts the middle one, and which cloud each is of."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    centres = np.array([[-2, -1], [0, 0], [2, 1]], np.float32)
    return (centres[labels] + 0.5 * rng.standard_normal((count, 2))).astype(np.float32), labels.astype(
        np.int32
    )


def first(hidden: int = 16, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "w": rng.standard_normal((2, hidden)).astype(np.float32),
        "b": np.zeros(hidden, np.float32),
        "v": (rng.standard_normal((hidden, 3)) / 4).astype(np.float32),
        "c": np.zeros(3, np.float32),
    }


def logits(params: Any, x: Any) -> Any:
    return np.tanh(x @ params["w"] + params["b"]) @ params["v"] + params["c"]


def loss(params: Any, x: Any, wanted: Any) -> Any:
    """Mean cross-entropy; `wanted` has a 1 in the column of each point's cloud."""
    z = logits(params, x)
    z = z - z.max(axis=1, keepdims=True)
    return (np.log(np.exp(z).sum(axis=1)) - (z * wanted).sum(axis=1)).mean()


@mj.jit
def trained(params: Any, x: Any, wanted: Any, rate: Any, steps: Any) -> Any:
    def step(number: Any, params: Any) -> Any:
        slope = mj.grad(loss)(params, x, wanted)
        return {name: params[name] - rate * slope[name] for name in params}

    return mj.for_loop(steps, step, params)


def main() -> None:
    x, labels = clouds(600)
    wanted = np.eye(3, dtype=np.float32)[labels]
    params = first()
    score = mj.jit(loss)
    print(f"loss before: {score(params, x, wanted):.4f}")
    params = trained(params, x, wanted, 0.5, 300)
    print(f"loss after:  {score(params, x, wanted):.4f}")
    test, truth = clouds(600, seed=2)
    found = mj.jit(logits)(params, test).argmax(axis=1)
    print(f"right on other points: {100 * (found == truth).mean():.1f} %")


if __name__ == "__main__":
    main()
