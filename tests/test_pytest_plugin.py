"""`pytest --metaljit-sanitize` and its marker, in a test run of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np
import pytest
import metaljit as mj

RACE = mj.metal_from_text('''
#include <metal_stdlib>
kernel void race(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[0] += i; }
''')

def test_plain():
    RACE.race(np.zeros(1, np.uint32), threads=64)

@pytest.mark.metaljit_sanitize
def test_marked():
    RACE.race(np.zeros(1, np.uint32), threads=64)

def test_device():
    assert mj.runtime.device.current().name in ("cpu", "emulator", "metal")
"""


@pytest.mark.parametrize(("options", "failed"), [((), 1), (("--metaljit-sanitize",), 2)])
def test_a_race_fails_where_it_is_looked_for(
    pytester: pytest.Pytester, options: tuple[str, ...], failed: int
) -> None:
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    done.assert_outcomes(passed=3 - failed, failed=failed)
    done.stdout.fnmatch_lines(["*KernelFault*race*"])
