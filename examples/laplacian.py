"""A photograph and its Laplacian, and the photograph sharpened by it: `python examples/laplacian.py`.

The Laplacian is fused with what is around it, so each picture is one kernel. They are in examples/out/laplacian.png.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import metaljit as mj
from metaljit import ops

HERE = Path(__file__).parent


@mj.jit
def sharpened(u: Any, amount: Any) -> Any:
    """Where the photograph is brighter than its surroundings it gets brighter, and the other way round."""
    return np.clip(u - amount * ops.laplacian(u, mode="edge"), 0, 1)


@mj.jit
def bent(u: Any) -> Any:
    """The Laplacian as a picture: grey is none."""
    return np.clip(0.5 + ops.laplacian(u, mode="edge"), 0, 1)


def main() -> None:
    with Image.open(HERE / "camera.png") as image:
        photo = np.asarray(image.convert("L"), np.float32) / np.float32(255)
    pictures = photo, bent(photo), sharpened(photo, 0.7)
    print(sharpened.explain(photo, 0.7))
    total = float(ops.laplacian(photo, mode="edge").sum())
    print(f"sum of the Laplacian: {total:.4f} (what leaves a pixel enters another)")
    (HERE / "out").mkdir(exist_ok=True)
    Image.fromarray((np.hstack(pictures) * 255).astype(np.uint8)).save(HERE / "out" / "laplacian.png")
    print("wrote", HERE / "out" / "laplacian.png")


if __name__ == "__main__":
    main()
