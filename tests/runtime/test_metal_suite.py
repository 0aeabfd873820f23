"""The suite for Macs is itself tested: it passes on the emulator behind metalcompute's interface, and is skipped without a Mac."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent.parent / "metal"


def run(**changes: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "METALJIT_DEVICE"} | changes
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_it_passes_on_the_emulator() -> None:
    summary = run(METALJIT_EMULATED_METAL="1")
    assert re.match(r"\d\d+ passed", summary), summary


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="runs there")
def test_it_is_skipped_without_a_mac() -> None:
    assert re.match(r"\d+ skipped", run(METALJIT_EMULATED_METAL="0"))
