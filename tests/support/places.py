"""Where a test runs: a device that was found here, or Metal's own route through metalcompute on the emulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from emulated_metalcompute import Metalcompute
from msl_lints import complaints

import metaljit as mj
from metaljit.runtime import device as devices
from metaljit.runtime.metal import Metal

STAND_IN = "stand-in"


class StandIn:
    """The one Metal device of this session; `module` has its knobs and what was compiled."""

    def __init__(self) -> None:
        self.module = Metalcompute()
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "metalcompute", self.module)
            self.device = Metal()

    @contextmanager
    def chosen(self) -> Iterator[None]:
        """Metal is this device, and the default one.

        Meanwhile no kernel may do anything wrong, and every text that is compiled keeps the rules.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(devices, "_devices", {**devices._devices, "metal": self.device})
            with mj.use_device("metal"):
                yield
        faults, self.module.faults = self.module.faults, []
        assert faults == []
        texts, self.module.compiled = self.module.compiled, []
        for text in texts:
            assert complaints(text) == []


def needs_precise_floats(place: str) -> None:
    """Skips on a real Metal device: metalcompute forces fast math, and who heeds the pragma against it is not known."""
    if place == "metal":
        pytest.skip("the user's own float arithmetic may be reassociated here")
