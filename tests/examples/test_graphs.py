"""The examples of traced functions do what they say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import metaljit as mj

EXAMPLES = Path(__file__).parents[2] / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize(
    "name",
    ["heat", "game_of_life", "classifier", "batch_norm", "max_pool", "philox_init", "hamming_neighbours"],
)
def test_an_example_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_heat(device: str) -> None:
    heat = module("heat")
    u = heat.plate(24)
    wanted = u
    for _ in range(30):
        p = np.pad(wanted, 1, "edge")
        around = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
        wanted = wanted + np.float32(0.2) * (around - 4 * wanted)
    with mj.use_device(device):
        np.testing.assert_allclose(heat.diffused(u, 0.2, 30), wanted, atol=1e-5)
        np.testing.assert_array_equal(heat.diffused(u, 0.2, 0), u)


def next_generation(cells: Any) -> Any:
    around = sum(np.roll(cells, (y, x), (0, 1)).astype(int) for y in (-1, 0, 1) for x in (-1, 0, 1)) - cells
    return (around == 3) | (cells & (around == 2))


def test_the_game_of_life_stops_where_it_blinks(device: str) -> None:
    game = module("game_of_life")
    cells = game.soup(12, 17)
    history = [cells, cells, cells]
    with mj.use_device(device):
        found, generation = game.settled(cells, 500)
    count = 0
    while (count < 2 or (history[-3] != history[-1]).any()) and count < 500:
        history.append(next_generation(history[-1]))
        count += 1
    assert generation == count
    np.testing.assert_array_equal(found, history[-1])
    assert game.settled(cells, 7)[1] == 7


def test_the_classifier_learns() -> None:
    classifier = module("classifier")
    x, labels = classifier.clouds(200)
    wanted = np.eye(3, dtype=np.float32)[labels]
    params = classifier.first()
    after = classifier.trained(params, x, wanted, 0.5, 3)
    for _ in range(3):
        params = numpy_step(params, x, wanted)
    for name, value in params.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-4, atol=1e-5)
    after = classifier.trained(after, x, wanted, 0.5, 150)
    found = mj.jit(classifier.logits)(after, x).argmax(axis=1)
    assert (found == labels).mean() > 0.9


def numpy_step(params: Any, x: Any, wanted: Any) -> Any:
    """A step with the derivative written out."""
    hidden = np.tanh(x @ params["w"] + params["b"])
    z = hidden @ params["v"] + params["c"]
    p = np.exp(z - z.max(1, keepdims=True))
    off = (p / p.sum(1, keepdims=True) - wanted) / len(x)
    back = off @ params["v"].T * (1 - hidden * hidden)
    slopes = {"w": x.T @ back, "b": back.sum(0), "v": hidden.T @ off, "c": off.sum(0)}
    return {name: params[name] - np.float32(0.5) * slopes[name] for name in params}


def test_batch_norm_keeps_statistics() -> None:
    made = module("batch_norm").BatchNorm(3)
    rng = np.random.default_rng(0)
    mean, variance = np.zeros(3), np.ones(3)
    scale, shift = np.full(3, 2, np.float32), np.full(3, -1, np.float32)
    for _ in range(4):
        x = rng.normal(3, 2, (50, 3)).astype(np.float32)
        y = made.train(x, scale, shift)
        np.testing.assert_allclose(
            y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * 2 - 1, rtol=1e-4, atol=1e-4
        )
        mean, variance = 0.9 * mean + 0.1 * x.mean(0), 0.9 * variance + 0.1 * x.var(0, ddof=1)
    np.testing.assert_allclose(made.mean.value, mean, rtol=1e-5)
    np.testing.assert_allclose(made.variance.value, variance, rtol=1e-5)
    np.testing.assert_allclose(
        made.use(x, scale, shift), (x - mean) / np.sqrt(variance + 1e-5) * 2 - 1, rtol=1e-4, atol=1e-4
    )


def test_initial_weights_keep_the_size_of_activations(device: str) -> None:
    init = module("philox_init")
    with mj.use_device(device):
        layers = init.network(7, [100, 60, 40])
        x, state = mj.ops.random.normal(mj.ops.random.philox_state(1), (50, 100))
        found = init.activations(x, layers, state)
        np.testing.assert_array_equal(init.network(7, [100, 60])[0], layers[0])
    for w in layers:
        assert w.std() == pytest.approx(np.sqrt(2 / len(w)), rel=0.05)
        assert np.abs(w).max() < 2 * np.sqrt(2 / len(w)) / init.CUT
    for y in found:
        assert np.square(y).mean() == pytest.approx(1 / 0.9, rel=0.25)  # 1 before a tenth is dropped
        assert (y == 0).mean() == pytest.approx(0.55, abs=0.05)


def test_neighbours_of_bit_strings(device: str) -> None:
    example = module("hamming_neighbours")
    rng = np.random.default_rng(0)
    planes, points = (rng.standard_normal(s).astype(np.float32) for s in ((8, 24), (40, 8)))
    with mj.use_device(device):
        distances, found = example.nearest(points[:5], points, planes)
    sides = points @ planes > 0
    differing = (sides[:5, None] != sides[None]).sum(-1)
    order = np.argsort(differing, 1, kind="stable")[:, : example.NEAREST]
    np.testing.assert_array_equal(found, order)
    np.testing.assert_array_equal(distances, np.take_along_axis(differing, order, 1))
    np.testing.assert_array_equal(found[:, 0], np.arange(5))  # each is nearest to itself


def test_an_image_is_learned_better_through_a_hash_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    nerf = module("nerf_image")
    monkeypatch.setattr(nerf, "BATCH", 512)
    with mj.use_device("cpu"):
        image = nerf.photograph(30, 45)
        quality = {}
        for model in nerf.RATE:
            found, steps, _, loss = nerf.train(image, model, lambda steps, seconds: steps < 120)
            quality[model] = nerf.psnr(image, found)
            assert steps == 120
            assert 0 < loss < 0.05
            assert found.shape == image.shape
    assert quality["hash grid"] > 25
    assert quality["hash grid"] > quality["sines"] + 3


def test_a_step_of_learning_is_the_same_on_every_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nerf = module("nerf_image")
    monkeypatch.setattr(nerf, "BATCH", 64)
    found = {}
    for place in ("cpu", device):
        with mj.use_device(place):
            found[place], *_ = nerf.train(
                nerf.photograph(6, 8), "hash grid", lambda steps, seconds: steps < 1
            )
    np.testing.assert_allclose(found[device], found["cpu"], atol=2e-3)
