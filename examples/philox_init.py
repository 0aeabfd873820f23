"""The weights of a layer from a seed: `python examples/philox_init.py`.

Every layer has a stream of its own, split from one state, so its weights depend on the seed and its number alone: not on
the order in which layers are made or the number of threads, and on the device in the last bit only. They are the numbers
that TensorFlow's generator gives for that state. The picture, if Matplotlib is there, is examples/out/philox_init.png.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import metaljit as mj
from metaljit import ops

OUT = Path(__file__).parent / "out"
CUT = 0.87962566  # the standard deviation of normal numbers of which only those within ±2 are kept


def weights(state: Any, inputs: int, outputs: int) -> Any:
    """Of a layer with rectified outputs: truncated normal numbers, so large that activations keep their size."""
    stddev = math.sqrt(2 / inputs) / CUT
    return ops.random.truncated_normal(state, (inputs, outputs), stddev=stddev)[0]


def network(seed: int, sizes: list[int]) -> list[Any]:
    states, _ = ops.random.split(ops.random.philox_state(seed), len(sizes) - 1)
    return [weights(state, *ends) for state, *ends in zip(states, sizes, sizes[1:], strict=False)]


@mj.jit
def activations(x: Any, layers: list[Any], state: Any) -> list[Any]:
    """What each layer gives in training, with a tenth of it dropped; the mask is drawn in the kernel that uses it."""
    found = []
    for w in layers:
        x, state = ops.dropout(np.maximum(x @ w, 0), 0.1, state)
        found.append(x)
    return found


def main() -> None:
    layers = network(2022, [784, 512, 512, 512])
    x, state = ops.random.normal(ops.random.philox_state(1), (256, 784))
    print("layer      weights   mean     deviation  wanted   largest  of activations: mean square")
    for k, (w, y) in enumerate(zip(layers, activations(x, layers, state), strict=True)):
        wanted = math.sqrt(2 / len(w))
        print(
            f"{k}  {w.shape[0]:4} × {w.shape[1]}  {w.size:7}  {w.mean():+.5f}  {w.std():.5f}    {wanted:.5f}  "
            f"{np.abs(w).max():.5f}  {np.square(y).mean():.3f}"
        )
    again = network(2022, [784, 512, 512, 512])
    print("the same weights again:", all((a == b).all() for a, b in zip(layers, again, strict=True)))
    picture(layers[0])


def picture(w: Any) -> None:
    try:
        from matplotlib.figure import Figure  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return
    figure = Figure(figsize=(5, 2.5), layout="constrained")
    axes = figure.subplots()
    axes.hist(w.ravel(), bins=120, color="#457b9d")
    axes.set(title=f"{w.size} weights, truncated at two deviations", yticks=[])
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "philox_init.png", dpi=120)
    print(f"wrote {OUT / 'philox_init.png'}")


if __name__ == "__main__":
    main()
