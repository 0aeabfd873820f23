"""What the tests of the runtime share: the hand-written programs, and metalcompute on the emulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from emulated_metalcompute import Metalcompute

from metaljit.runtime import device
from metaljit.runtime.cpu import Cpu


@pytest.fixture
def cpu() -> Cpu:
    found = device.find("cpu")
    assert isinstance(found, Cpu)
    return found


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metalcompute]:
    """metalcompute on the emulator in place of the module; fails the test if a kernel did anything wrong."""
    module = Metalcompute()
    monkeypatch.setitem(sys.modules, "metalcompute", module)
    monkeypatch.setattr(device, "_devices", {k: v for k, v in device._devices.items() if k != "metal"})
    yield module
    assert module.faults == []
