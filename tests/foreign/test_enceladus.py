"""Enceladus' Metal kernels on the emulator: its examples check themselves. `make test-enceladus` fetches it.

`METALJIT_ENCELADUS` names the folder of its source distribution.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(os.environ.get("METALJIT_ENCELADUS", ""))
if not (ROOT / "src" / "enceladus").is_dir():
    pytest.skip("METALJIT_ENCELADUS names no source of Enceladus", allow_module_level=True)
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "src")]
os.environ.setdefault("ENCELADUS_ALWAYS_COMPILE", "1")
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
F = np.float32

OWN = """
import enceladus
import enceladus.language as tl


@enceladus.jit
def scaled(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0) * factor, mask=i < n)


@enceladus.jit
def sums(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


@enceladus.jit
def counts(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + tl.load(x_ptr + i, mask=i < n, other=0), 1, mask=i < n)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    import_module("enceladus_on_emulator")
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_enceladus_kernels.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    return import_module("own_enceladus_kernels")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str) -> None:
    import runpy

    import_module("enceladus_on_emulator")
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


def test_elements(own: Any) -> None:
    x = np.arange(1000, dtype=F)
    out = np.full(1200, 7, F)
    own.scaled[(4,)](x, out, 1000, 2.5, BLOCK=256)
    np.testing.assert_array_equal(out[:1000], x * F(2.5))
    assert (out[1000:] == 7).all()


def test_reductions(own: Any) -> None:
    x = np.random.default_rng(1).standard_normal((9, 700)).astype(F)
    out = np.empty(9, F)
    own.sums[(9,)](x, out, 700, BLOCK=1024)
    np.testing.assert_allclose(out, x.sum(1, dtype=float), atol=1e-4)


def test_atomics(own: Any) -> None:
    x = np.random.default_rng(2).integers(0, 10, 3000).astype(np.int32)
    out = np.zeros(10, np.int32)
    own.counts[(12,)](x, out, 3000, BLOCK=256)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=10))
