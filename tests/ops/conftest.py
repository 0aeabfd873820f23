"""What the tests of the ops share: a default device for each test, kernels with a planted mistake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import metaljit as mj
from metaljit.graph.jit import Jitted

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

Mutate = Callable[[str, str, str], None]


@pytest.fixture(autouse=True)
def on_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with a parameter `device` runs on it."""
    callspec = getattr(request.node, "callspec", None)
    with mj.use_device(callspec.params.get("device") if callspec else None):
        yield


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Mutate:
    """`mutate("stencil", old, new)`: the family's kernels, with one piece of their text replaced."""

    def plant(family: str, old: str, new: str) -> None:
        text = (ROOT / "stdlib_ops" / f"{family}.mjk").read_text("utf-8")
        assert text.count(old) >= 1, f"{family}.mjk has no {old!r}"
        file = tmp_path / f"{family}.mjk"
        file.write_text(text.replace(old, new), "utf-8")
        monkeypatch.setattr(mj.stdlib, family, mj.load_kernels(file), raising=False)
        for jitted in _jitted():  # what they have traced has the kernels as they are
            monkeypatch.setattr(jitted, "_made", {})
            monkeypatch.setattr(jitted, "_last", None)

    return plant


def _jitted() -> list[Jitted]:
    families = [m for name, m in sys.modules.items() if name.startswith("metaljit.stdlib_ops.")]
    return [v for m in families for v in vars(m).values() if isinstance(v, Jitted)]
