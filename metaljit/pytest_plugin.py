"""The sanitizer in pytest: with `--metaljit-sanitize`, or the marker `metaljit_sanitize`, kernels run on the emulator
and every access is checked. A fault is a `KernelFault`, so the test that launched the kernel fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

OPTION = "--metaljit-sanitize"
MARKER = "metaljit_sanitize"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("metaljit").addoption(
        OPTION,
        action="store_true",
        help="run every kernel that names no device on metaljit's emulator, and check every access",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}: the kernels of this test run on the emulator, every access checked"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not (item.config.getoption(OPTION) or item.get_closest_marker(MARKER)):
        return (yield)
    from .runtime.device import use_device
    from .runtime.emulator.sanitizer import sanitize

    with use_device("emulator"), sanitize():
        return (yield)
