"""Which device a name means, and which one is taken when none is named."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from emulated_metalcompute import Metalcompute

from metaljit.runtime import device
from metaljit.source import DeviceFault


def test_a_name_is_one_object() -> None:
    assert device.find("cpu") is device.find("cpu")
    assert device.find("cpu").name == "cpu"


@pytest.mark.parametrize("name", ["", "gpu", "CPU", "cuda", "cpu "])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DeviceFault, match="'metal', 'cpu'") as caught:
        device.find(name)
    assert caught.value.slug == "unknown-device"


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has Metal")
def test_metal_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_DEVICE", "metal")
    monkeypatch.setitem(sys.modules, "metalcompute", None)
    for ask in (device.default, lambda: device.find("metal")):
        with pytest.raises(DeviceFault, match="there is no Metal device here") as caught:
            ask()
        assert "use device 'cpu'" in str(caught.value)
        assert caught.value.slug == "metal-missing"
    assert device.available() == ("cpu", "emulator")


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, emulated: Metalcompute) -> None:
    for name in ("cpu", "metal"):
        monkeypatch.setenv("METALJIT_DEVICE", name)
        assert device.default().name == name
    monkeypatch.setenv("METALJIT_DEVICE", "cuda")
    with pytest.raises(DeviceFault):
        device.default()


@pytest.mark.parametrize(
    ("system", "missing", "expected"),
    [("linux", False, "cpu"), ("darwin", False, "metal"), ("darwin", True, "cpu")],
)
def test_the_usual_device(
    monkeypatch: pytest.MonkeyPatch, emulated: Metalcompute, system: str, missing: bool, expected: str
) -> None:
    monkeypatch.delenv("METALJIT_DEVICE", raising=False)
    device.find("cpu")  # opened while the system is still its own
    monkeypatch.setattr(sys, "platform", system)
    emulated.missing = missing
    assert device.default().name == expected
    assert ("metal" in device.available()) is not missing


def test_importing_probes_nothing() -> None:
    script = """
import sys, subprocess, ctypes
def no(*a, **k): raise AssertionError("started a process or loaded a library")
subprocess.Popen.__init__ = no
ctypes.CDLL.__init__ = no
import metaljit.runtime.device, metaljit.runtime.launch, metaljit.runtime.array, metaljit.runtime.cpu
import metaljit.runtime.metal
heavy = {"lark", "click", "rich", "ml_dtypes", "platformdirs", "metalcompute", "tempfile"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_describe(emulated: Metalcompute) -> None:
    assert "clang" in device.find("cpu").describe()
    assert device.find("metal").describe() == "metalcompute.Device(metaljit emulator)"


def test_the_limits(emulated: Metalcompute) -> None:
    found: dict[str, Any] = {name: device.find(name).limits.buffers for name in device.available()}
    assert found == {"metal": 31, "cpu": 31, "emulator": 31}
