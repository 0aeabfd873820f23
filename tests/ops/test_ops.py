"""metaljit.ops: found by name, loaded when used, documented."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import metaljit as mj


def test_every_op_is_found_and_says_what_it_takes_and_raises() -> None:
    for name in mj.ops.names():
        found = mj.ops
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)
        text = inspect.getdoc(found) or ""
        assert "Raises" in text or "Fault" in text, name
    assert set(mj.ops.__all__) <= set(dir(mj.ops))


def test_an_unknown_op_names_those_there_are() -> None:
    with pytest.raises(AttributeError, match="laplacian"):
        _ = mj.ops.convolution


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = """
import sys, metaljit
assert "metaljit.ops" not in sys.modules
metaljit.ops.names()
assert not [m for m in sys.modules if m.startswith("metaljit.stdlib_ops.")]
metaljit.ops.laplacian
print([m for m in sys.modules if m.startswith("metaljit.stdlib_ops.")])
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "stencil" in result.stdout
    assert "pooling" not in result.stdout
