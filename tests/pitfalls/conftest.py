"""Where these tests run: every device found, and Metal's own route through metalcompute on the emulator.

A test with a parameter `place` runs on each; its kernels need no `.on(…)`, since the place is the default device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import metaljit as mj

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "runtime"))

from places import STAND_IN, StandIn


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        names = list(mj.available_devices())
        if "metal" not in names:
            names.append(STAND_IN)
        metafunc.parametrize("place", names, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A paravirtual Metal device, as hosted Macs have it, has no arrays of 64-bit integers: nothing to test there."""
    try:
        yield
    except mj.DeviceFault as e:
        if e.slug == "metal-no-64-bit":
            pytest.skip(str(e))
        raise


@pytest.fixture(scope="session")
def stand_in() -> StandIn:
    return StandIn()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device that is the default one in this test."""
    name: str = request.param
    if name == STAND_IN:
        with request.getfixturevalue("stand_in").chosen():
            yield name
    else:
        with mj.use_device(name):
            yield name
