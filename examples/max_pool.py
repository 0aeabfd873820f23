"""Max-pooling with its gradient: `python examples/max_pool.py`.

The forward pass keeps where each maximum stood; the gradient goes back to there, and compares nothing again. The picture is
examples/out/max_pool.png: the input, its maxima, and what of the gradient came back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import metaljit as mj
from metaljit import ops

OUT = Path(__file__).parent / "out"
WINDOW: dict[str, Any] = {
    "size": 3,
    "stride": 2,
    "layout": "HW",
}  # windows overlap: an element can be the maximum of four


@mj.jit
def energy(x: Any) -> Any:
    return (ops.max_pool(x, **WINDOW) ** 2).sum() / 2


def drawn(array: Any, cell: int = 24) -> Any:
    """A grey square for each element, the largest white."""
    shades = 255 * np.clip(array / array.max(), 0, 1)
    return np.kron(shades, np.ones((cell, cell))).astype(np.uint8)


def main() -> None:
    x = np.random.default_rng(7).integers(0, 10, (7, 7)).astype(np.float32)
    values, indices = ops.max_pool(x, return_indices=True, **WINDOW)
    print(f"input\n{x}\nmaxima\n{values}\nwhere they stand, row by row\n{indices}")

    by_hand = ops.max_pool_grad(
        values, indices, x.shape, **WINDOW
    )  # the derivative of energy by a maximum is the maximum
    by_grad = mj.grad(energy)(x)
    print(f"gradient of half the sum of their squares\n{by_grad}")
    print(f"by the indices and by mj.grad alike: {np.array_equal(by_hand, by_grad)}")

    parts = [drawn(a) for a in (x, values, by_grad)]
    height = max(p.shape[0] for p in parts)
    padded = [np.pad(p, ((0, height - p.shape[0]), (0, 12)), constant_values=40) for p in parts]
    OUT.mkdir(exist_ok=True)
    Image.fromarray(np.concatenate(padded, axis=1)).save(OUT / "max_pool.png")
    print(f"wrote {OUT / 'max_pool.png'}")


if __name__ == "__main__":
    main()
