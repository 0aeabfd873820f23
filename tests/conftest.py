"""What all tests share: Hypothesis profiles, the `device` fixture, a disk cache of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

BARE_NAMES = {"grammar", "runtime", "stdlib_ops"}

settings.register_profile("dev", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True, print_blob=True)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def found_devices() -> list[str]:
    """The names of the devices on this machine; empty as long as metaljit cannot tell."""
    import metaljit

    available = getattr(metaljit, "available_devices", None)
    return list(available()) if available else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a parameter `device` runs once for each device found, and probes only if there is one."""
    if "device" in metafunc.fixturenames:
        names = found_devices()
        none = pytest.param("none", marks=pytest.mark.skip(reason="metaljit finds no device"))
        metafunc.parametrize("device", names or [none])


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("metal") and sys.platform != "darwin":
        pytest.skip("needs a Mac")


@pytest.fixture(autouse=True, scope="session")
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's disk cache is neither read nor written by a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METALJIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def own_choice_of_device() -> Iterator[None]:
    """What `use_device` or METALJIT_DEVICE chose in a test, or in a page's block, ends with it."""
    from metaljit.runtime import device

    before = type(device.chosen).value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "asked", device.asked.__wrapped__)
        yield
    type(device.chosen).value = before


@pytest.fixture(autouse=True, scope="session")
def no_second_copies() -> Iterator[None]:
    """No test may load `grammar.tree` beside `metaljit.grammar.tree`: its classes would be different ones."""
    yield
    twins = BARE_NAMES & set(sys.modules)
    assert not twins, f"imported under a bare name: {sorted(twins)}"
