"""A photograph learned from coordinates: `python examples/nerf_image.py [--seconds 30]`.

A small perceptron says the colour of a place. In one model it is given the place as sines and cosines; in the other,
features from a multiresolution hash grid, whose table is learned with the weights. Both are trained for the same time: the
pixels that are drawn, the model, its gradient, Adam and the loop of steps are one traced function. Printed are the loss and
the peak signal-to-noise ratio; examples/out/nerf_image.png shows the photograph, what the hash grid learned, and what the
sines learned.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import metaljit as mj
from metaljit import ops

HERE = Path(__file__).parent
OUT = HERE / "out"
BATCH, CHUNK = 4096, 20
RESOLUTIONS = tuple(round(8 * 1.5**level) for level in range(8))  # 8 … 137
ROWS, FEATURES = 4096, 2
FREQUENCIES = 6
HIDDEN = 32
RATE = {"hash grid": 0.01, "sines": 0.003}


def photograph(height: int, width: int) -> Any:
    """The photograph at another size, (height, width, 3), from 0 to 1."""
    with Image.open(HERE / "chelsea.png") as image:
        pixels = np.asarray(image.convert("RGB"), np.float32) / np.float32(255)
    return ops.resize(pixels, (height, width), axes=(0, 1))


def perceptron(rng: Any, inputs: int) -> dict[str, Any]:
    """Weights as large as keeps the variance through two hidden layers."""
    sizes = (inputs, HIDDEN, HIDDEN, 3)
    made: dict[str, Any] = {}
    for k, (a, b) in enumerate(pairwise(sizes)):
        made[f"w{k}"] = (rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32)
        made[f"b{k}"] = np.zeros(b, np.float32)
    return made


def begin(model: str, seed: int = 0) -> dict[str, Any]:
    """The first parameters of a model."""
    rng = np.random.default_rng(seed)
    if model == "sines":
        return perceptron(rng, 4 * FREQUENCIES)
    table = rng.uniform(-1e-2, 1e-2, (len(RESOLUTIONS), ROWS, FEATURES)).astype(np.float32)
    return {"table": table, **perceptron(rng, len(RESOLUTIONS) * FEATURES)}


def colours(params: Any, places: Any, model: str) -> Any:
    """The colours at places (n, 2), as (n, 3)."""
    if model == "sines":
        waves = [np.pi * 2.0**k * places for k in range(FREQUENCIES)]
        h = np.concatenate([f(w) for w in waves for f in (np.sin, np.cos)], axis=1)
    else:
        h = ops.hash_grid_encode(places, params["table"], RESOLUTIONS)
    for k in range(2):
        h = np.maximum(h @ params[f"w{k}"] + params[f"b{k}"], 0)
    return h @ params["w2"] + params["b2"]


def drawn(image: Any, random: Any) -> tuple[Any, Any, Any]:
    """Places of pixels drawn by chance, their colours, and the random state that follows."""
    height, width, _ = image.shape
    rows, random = ops.random.integers(random, (BATCH,), 0, height)
    columns, random = ops.random.integers(random, (BATCH,), 0, width)
    places = np.stack([(rows + 0.5) / height, (columns + 0.5) / width], axis=1)
    return places, image[rows, columns], random


@mj.jit(static=["model"])
def trained(params: Any, memory: Any, random: Any, image: Any, steps: Any, model: str) -> Any:
    """Parameters, what Adam remembers, and the random state, so many steps later; and the last loss."""

    def step(number: Any, value: Any) -> Any:
        params, memory, random, _ = value
        places, wanted, random = drawn(image, random)

        def loss(params: Any) -> Any:
            return ((colours(params, places, model) - wanted) ** 2).mean()

        error, slopes = mj.value_and_grad(loss)(params)
        params, memory = ops.adam(params, slopes, memory, lr=RATE[model], betas=(0.9, 0.99))
        return params, memory, random, error

    return mj.for_loop(steps, step, (params, memory, random, np.float32(0)))


@mj.jit(static=["model"])
def shown(params: Any, places: Any, model: str) -> Any:
    return np.clip(colours(params, places, model), 0, 1)


def picture(params: Any, height: int, width: int, model: str) -> Any:
    """What a model has learned, as a picture."""
    rows, columns = np.indices((height, width), np.float32) + np.float32(0.5)
    places = np.stack([rows / np.float32(height), columns / np.float32(width)], axis=-1).reshape(-1, 2)
    return shown(params, places, model).reshape(height, width, 3)


def psnr(image: Any, other: Any) -> float:
    """The peak signal-to-noise ratio of a picture, in dB."""
    return float(-10 * np.log10(np.mean((image - other) ** 2)))


def train(
    image: Any, model: str, more: Callable[[int, float], bool], seed: int = 0
) -> tuple[Any, int, float, float]:
    """Trains in chunks of steps while `more(steps, seconds)`. Gives the picture, steps, seconds and the last loss."""
    params = begin(model, seed)
    memory = ops.optimizer_state("adam", params)
    random = ops.random.philox_state(seed)
    loss: Any = np.float32(0)
    trained(params, memory, random, image, 0, model)  # compiles
    start, steps, seconds = perf_counter(), 0, 0.0
    while more(steps, seconds):
        params, memory, random, loss = trained(params, memory, random, image, CHUNK, model)
        steps, seconds = steps + CHUNK, perf_counter() - start
    height, width, _ = image.shape
    found = picture(params, height, width, model)
    return found, steps, seconds, float(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description="A photograph learned from coordinates.")
    parser.add_argument("--seconds", type=float, default=30, help="of training, for each model")
    parser.add_argument("--size", type=int, nargs=2, default=(200, 300), metavar=("HEIGHT", "WIDTH"))
    arguments = parser.parse_args()
    image = photograph(*arguments.size)
    pictures = [image]
    quality: dict[str, float] = {}
    for model in RATE:
        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        with Progress(*columns) as progress:
            task = progress.add_task(f"{model:>9}", total=arguments.seconds)

            def more(steps: int, seconds: float, progress: Any = progress, task: Any = task) -> bool:
                progress.update(task, completed=min(seconds, arguments.seconds))
                return bool(seconds < arguments.seconds)

            found, steps, seconds, loss = train(image, model, more)
        quality[model] = psnr(image, found)
        pictures.append(found)
        print(f"{model:>9}: {steps} steps in {seconds:.1f} s, loss {loss:.5f}, PSNR {quality[model]:.2f} dB")
    gain = quality["hash grid"] - quality["sines"]
    print(f"in the same time the hash grid is {abs(gain):.2f} dB {'better' if gain > 0 else 'worse'}")
    OUT.mkdir(exist_ok=True)
    Image.fromarray((np.concatenate(pictures, axis=1) * 255 + 0.5).astype(np.uint8)).save(
        OUT / "nerf_image.png"
    )
    print(f"wrote {OUT / 'nerf_image.png'}")


if __name__ == "__main__":
    main()
