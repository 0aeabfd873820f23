"""The edges of a photograph, blurred more and more: `python examples/canny.py [PICTURE]`.

Blur, gradient, thinning and the loop that follows weak edges run on the device. They are in examples/out/canny.png.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from metaljit import ops

HERE = Path(__file__).parent


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "camera.png"
    with Image.open(path) as image:
        photo = np.asarray(image.convert("L"))
    pictures = [photo]
    for sigma in (1, 2, 4):
        ops.canny(photo, sigma=sigma)  # compiles
        start = time.perf_counter()
        edges = ops.canny(photo, sigma=sigma, low=15, high=40)
        took = time.perf_counter() - start
        print(f"sigma {sigma}: {edges.mean():.1%} of the pixels are edges; {took * 1e3:.1f} ms")
        pictures.append(np.where(edges, 0, 255).astype(np.uint8))
    (HERE / "out").mkdir(exist_ok=True)
    Image.fromarray(np.hstack(pictures)).save(HERE / "out" / "canny.png")
    print("wrote", HERE / "out" / "canny.png")


if __name__ == "__main__":
    main()
