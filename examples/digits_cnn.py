"""Handwritten digits, read by a small convolutional net: `python examples/digits_cnn.py [epochs]`.

Two convolutions with batch normalisation, a max-pool, a linear layer; cross entropy and Adam. All of it, with the
derivatives, is one traced function, so a training step is one call; the running statistics are variables that it
assigns. After 12 epochs at least 97 % of 360 digits that it has not seen are read right. The curve of the loss is
examples/out/digits_loss.png. Needs scikit-learn for the digits and matplotlib for the curve:
`pip install "metaljit[examples]"`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import metaljit as mj
from metaljit import ops

OUT = Path(__file__).parent / "out"
CHANNELS = (1, 16, 32)  # before and after each convolution
SIDE, CLASSES = 8, 10
BATCH, RATE = 64, 2e-3
UNSEEN = 360


def first(seed: int = 0) -> dict[str, Any]:
    """Weights as large as keeps the spread of what goes through them (He et al., 2015)."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int, inputs: int) -> Any:
        return (rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)

    params: dict[str, Any] = {}
    for k, (before, after) in enumerate(pairwise(CHANNELS)):
        params[f"conv{k}"] = normal(after, before, 3, 3, inputs=9 * before)
        params[f"scale{k}"] = np.ones(after, np.float32)
        params[f"shift{k}"] = np.zeros(after, np.float32)
    features = CHANNELS[-1] * (SIDE // 2) ** 2
    return {
        **params,
        "linear": normal(features, CLASSES, inputs=features),
        "bias": np.zeros(CLASSES, np.float32),
    }


class Net:
    """The weights, what Adam remembers of them, and the running statistics."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.state = ops.optimizer_state("adam", params)
        self.running = [
            (mj.Variable(np.zeros(n, np.float32)), mj.Variable(np.ones(n, np.float32))) for n in CHANNELS[1:]
        ]
        self._step = mj.jit(self._stepped)
        self._read = mj.jit(lambda params, x: self.scores(params, x, training=False))

    def scores(self, params: dict[str, Any], x: Any, training: bool) -> Any:
        """A score for each digit, of images [N, 1, 8, 8]."""
        for k, (mean, variance) in enumerate(self.running):
            x = ops.conv(x, params[f"conv{k}"], padding=1)
            x = ops.batch_norm(x, mean, variance, params[f"scale{k}"], params[f"shift{k}"], training=training)
            x = ops.relu(x)
        x = ops.max_pool(x, 2)
        return x.reshape(x.shape[0], -1) @ params["linear"] + params["bias"]

    def _stepped(self, params: Any, state: Any, x: Any, digits: Any) -> Any:
        def loss(params: Any) -> Any:
            return ops.softmax_cross_entropy(self.scores(params, x, training=True), digits)

        value, slopes = mj.value_and_grad(loss)(params)
        return value, ops.adam(params, slopes, state, lr=RATE)

    def step(self, x: Any, digits: Any) -> float:
        """One step of training; the loss before it."""
        loss, (self.params, self.state) = self._step(self.params, self.state, x, digits)
        return float(loss)

    def right(self, x: Any, digits: Any) -> float:
        """The share of digits that are read right."""
        return float((self._read(self.params, x).argmax(axis=1) == digits).mean())


def load() -> tuple[Any, Any]:
    """1797 images [N, 1, 8, 8] from 0 to 1, in an order of their own, and which digits they are."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        sys.exit('the digits are those of scikit-learn: `pip install scikit-learn`, or "metaljit[examples]"')
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    images = (found.images[order] / 16).astype(np.float32)[:, None]
    return images, found.target[order].astype(np.int32)


def batches(x: Any, digits: Any, epoch: int) -> Iterator[tuple[Any, Any]]:
    """All images once, in another order for each epoch; what fills no batch is left out."""
    order = np.random.default_rng(epoch).permutation(len(x))
    for start in range(0, len(x) - BATCH + 1, BATCH):
        at = order[start : start + BATCH]
        yield x[at], digits[at]


def plot(losses: list[float], steps: int, shares: list[float]) -> Path | None:
    """The loss of each step, and the share that is read right after each epoch."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, lw=0.8, color="#4477aa")
    axes.set(xlabel="step", ylabel="cross entropy of the batch", title="A convolutional net learns digits")
    other = axes.twinx()
    other.plot(steps * np.arange(1, len(shares) + 1), 100 * np.array(shares), "o-", color="#cc6677")
    other.set(ylabel="unseen digits read right [%]", ylim=(80, 100.5))
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "digits_loss.png", dpi=130)
    pyplot.close(figure)
    return OUT / "digits_loss.png"


def main(epochs: int = 12) -> float:
    images, digits = load()
    x, known = images[UNSEEN:], digits[UNSEEN:]
    net, losses, shares = Net(first()), [], []
    steps = len(x) // BATCH
    start = time.perf_counter()
    with Progress() as progress:
        task = progress.add_task("training", total=epochs * steps)
        for epoch in range(epochs):
            for batch in batches(x, known, epoch):
                losses.append(net.step(*batch))
                progress.advance(task)
            shares.append(net.right(images[:UNSEEN], digits[:UNSEEN]))
            now = f"epoch {epoch + 1}: loss {np.mean(losses[-steps:]):.4f}, {100 * shares[-1]:.1f} % right"
            progress.update(task, description=now)
    print(f"{len(losses)} steps of {BATCH} digits in {time.perf_counter() - start:.1f} s")
    print(f"loss: {losses[0]:.3f} first, {np.mean(losses[-steps:]):.4f} in the last epoch")
    print(f"of {UNSEEN} unseen digits, read right: {100 * shares[-1]:.1f} %")
    picture = plot(losses, steps, shares)
    print(f"wrote {picture}" if picture else "no curve: it takes matplotlib")
    return shares[-1]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
