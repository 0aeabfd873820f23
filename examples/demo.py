"""A photograph becomes an ink drawing: `make demo`.

Runs examples/edges.mjk through the `metaljit` command, as anybody would; prints the Metal source that it was compiled
to, where that ran, how long it took, and how long NumPy takes for the same; and compares all numbers with NumPy's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

EXAMPLES = Path(os.path.relpath(Path(__file__).resolve().parent))
KERNEL, PHOTO, OUT = EXAMPLES / "edges.mjk", EXAMPLES / "chelsea.png", EXAMPLES / "out"
INK, REACH = 4, 2  # the kernel's own defaults
TOLERANCE = 1e-5  # a GPU may round differently; the cpu device agrees to the last bit
REPEATS = 21


def command(*arguments: str | Path) -> None:
    """Prints and runs a `metaljit` command; its output goes where ours does."""
    script = Path(sysconfig.get_path("scripts")) / "metaljit"
    print(f"\n$ metaljit {' '.join(map(str, arguments))}", flush=True)
    if subprocess.run([script, *arguments], check=False).returncode:
        sys.exit("the demo failed")


def drawing(u: NDArray[np.float32]) -> NDArray[Any]:
    """What edges.mjk says, in NumPy."""
    p = np.pad(u, REACH, "reflect")
    inner = slice(REACH, -REACH)
    up, down, left, right = (
        p[: -2 * REACH, inner],
        p[2 * REACH :, inner],
        p[inner, : -2 * REACH],
        p[inner, 2 * REACH :],
    )
    paper = np.clip(1 - INK * (up + down + left + right - 4 * u), 0, 1)
    return np.asarray(paper * paper * (3 - 2 * paper))


def milliseconds(u: NDArray[np.float32]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        drawing(u)
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def main() -> None:
    OUT.mkdir(exist_ok=True)
    picture, numbers = OUT / "edges.png", OUT / "edges.npy"
    command("show", KERNEL)
    with tempfile.TemporaryDirectory() as empty:
        os.environ["METALJIT_CACHE_DIR"] = empty  # so that the first call compiles, every time
        command("run", KERNEL, "--in", f"u={PHOTO}", "--out", picture, "--out", numbers, "--time")

    photo = np.asarray(Image.open(PHOTO).convert("L"), np.float32) / np.float32(255)
    print(f"  NumPy       {milliseconds(photo):9.3f} ms (median of {REPEATS}), the same work")
    difference = float(np.abs(np.load(numbers) - drawing(photo)).max())
    if not difference <= TOLERANCE:
        sys.exit(f"  the results differ from NumPy's by up to {difference}")
    print(f"  largest difference from NumPy's result: {difference:.3g}")
    print(f"\nLook at {picture}: an ink drawing of {PHOTO}.")


if __name__ == "__main__":
    main()
