"""The example of a convolutional net: the losses of the same net in PyTorch, and digits that are read right."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import metaljit as mj

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn.py"
STEPS = 8


@pytest.fixture(scope="module")
def digits_cnn() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_cnn", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def drawn(count: int) -> tuple[Any, Any]:
    """Images that can be told apart, and what they show: a bright row or column, with noise."""
    rng = np.random.default_rng(3)
    digits = rng.integers(0, 10, count).astype(np.int32)
    images = 0.3 * rng.random((count, 1, 8, 8), dtype=np.float32)
    for image, digit in zip(images, digits, strict=True):
        if digit < 8:
            image[0, digit] += 0.7
        else:
            image[0, :, digit - 6] += 0.7
    return images, digits


class TorchNet:
    """The net of the example in PyTorch."""

    def __init__(self, torch: Any, example: ModuleType, params: dict[str, Any]) -> None:
        self.F = torch.nn.functional
        self.params = {name: torch.tensor(p, requires_grad=True) for name, p in params.items()}
        self.running = [(torch.zeros(n), torch.ones(n)) for n in example.CHANNELS[1:]]
        self.adam = torch.optim.Adam(self.params.values(), lr=example.RATE)

    def scores(self, x: Any, training: bool) -> Any:
        p, F = self.params, self.F
        for k, running in enumerate(self.running):
            x = F.conv2d(x, p[f"conv{k}"], padding=1)
            x = F.relu(F.batch_norm(x, *running, p[f"scale{k}"], p[f"shift{k}"], training=training))
        return F.max_pool2d(x, 2).flatten(1) @ p["linear"] + p["bias"]

    def step(self, x: Any, digits: Any) -> float:
        self.adam.zero_grad()
        loss = self.F.cross_entropy(self.scores(x, True), digits)
        loss.backward()
        self.adam.step()
        return float(loss.detach())


def test_the_losses_are_those_of_pytorch(digits_cnn: ModuleType) -> None:
    """Of eight steps from the same weights, within a thousandth; then the scores in use, by the running statistics."""
    torch = pytest.importorskip("torch")
    images, digits = drawn(STEPS * digits_cnn.BATCH)
    params = digits_cnn.first(seed=1)
    net, other = digits_cnn.Net(params), TorchNet(torch, digits_cnn, params)
    ours, theirs = [], []
    for x, d in digits_cnn.batches(images, digits, epoch=0):
        ours.append(net.step(x, d))
        theirs.append(other.step(torch.from_numpy(x), torch.from_numpy(d).long()))
    assert len(ours) == STEPS
    assert ours[-1] < ours[0] / 2
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    with torch.no_grad():
        want = other.scores(torch.from_numpy(images[:9]), False).numpy()
    got = mj.jit(lambda p, x: net.scores(p, x, training=False))(net.params, images[:9])
    np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-2)


def test_it_learns_to_read(digits_cnn: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three epochs of the twelve; the curve is drawn where matplotlib is."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits_cnn, "OUT", tmp_path)
    assert digits_cnn.main(3) > 0.95
    assert not list(tmp_path.iterdir()) or (tmp_path / "digits_loss.png").stat().st_size > 1000


def test_what_is_missing_is_named(digits_cnn: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match="pip install scikit-learn"):
        digits_cnn.load()
