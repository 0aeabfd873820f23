"""These tests run by themselves on a Mac, and are skipped elsewhere.

`METALJIT_EMULATED_METAL=1` puts `metaljit.metalcompute` in the module's place, so that the tests themselves
are tested on any machine (tests/runtime/test_metal_suite.py does that).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EMULATED = os.environ.get("METALJIT_EMULATED_METAL") == "1"


@pytest.fixture(autouse=True, scope="session")
def metal() -> Iterator[None]:
    """Skips everything where there is no Metal device, and makes it the default one where there is."""
    import metaljit as mj

    if EMULATED:
        sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))
        from emulated_metalcompute import Metalcompute

        sys.modules["metalcompute"] = Metalcompute()
    try:
        mj.device("metal")
    except mj.DeviceFault as e:
        pytest.skip(str(e))
    with mj.use_device("metal"):
        yield
    if EMULATED:
        assert sys.modules["metalcompute"].faults == []
