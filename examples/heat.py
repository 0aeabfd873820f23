"""Heat in a plate, a thousand steps as one call: `python examples/heat.py`.

The loop is on the device: `mj.for_loop` replays one kernel, and the host waits once. The picture is examples/out/heat.png.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import metaljit as mj
from metaljit import ops

OUT = Path(__file__).parent / "out"


@mj.jit
def diffused(u: Any, rate: Any, steps: Any) -> Any:
    """`steps` explicit steps of du/dt = laplacian(u); stable for rates up to 1/4."""
    return mj.for_loop(steps, lambda step, u: u + rate * ops.laplacian(u, mode="edge"), u)


def plate(size: int) -> Any:
    """A cold plate with two hot bars."""
    u = np.zeros((size, size), np.float32)
    u[size // 4, size // 8 : -size // 8] = 1
    u[size // 2 : -size // 8, 2 * size // 3] = 1
    return u


def main() -> None:
    u = plate(256)
    print(diffused.explain(u, 0.2, 1000))
    diffused(u, 0.2, 1)  # compiles
    start = time.perf_counter()
    after = diffused(u, 0.2, 1000)
    print(f"1000 steps of {u.shape[0]} × {u.shape[1]}: {1e3 * (time.perf_counter() - start):.1f} ms")
    print(f"heat before {u.sum():.4f}, after {after.sum():.4f}: the edges are closed")
    shades = np.concatenate([np.sqrt(np.clip(v / v.max(), 0, 1)) for v in (u, after)], axis=1)
    OUT.mkdir(exist_ok=True)
    Image.fromarray((255 * shades).astype(np.uint8)).save(OUT / "heat.png")
    print(f"wrote {OUT / 'heat.png'}")


if __name__ == "__main__":
    main()
