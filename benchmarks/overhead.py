"""What calling costs beside computing: import, first calls, warm calls, and how often anything is compiled.

In: nothing. Out: lines of (what, value, unit, the most that is wanted). First calls are measured in fresh processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory


@dataclass(frozen=True)
class Line:
    what: str
    unit: str
    values: Sequence[float]
    wanted: float

    @property
    def value(self) -> float:
        return median(self.values)


IMPORT = """
from time import perf_counter
import numpy
start = perf_counter()
import metaljit
print(1e3 * (perf_counter() - start))
"""

KERNEL = """
import numpy as np
import metaljit as mj
from metaljit.lang import border, exp, f32, position

H, W = mj.dims("H W")

@mj.kernel
def diffused(u: f32[H, W], alpha: f32) -> f32[H, W]:
    \"\"\"One step of edge-preserving diffusion.\"\"\"
    v = border(u, "edge")
    y, x = position()
    total = 0.0
    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        step = v[y + dy, x + dx] - u[y, x]
        total += step * exp(-step * step * NUMBER)
    return u[y, x] + alpha * total

@mj.kernel
def combined(a: f32[H, W], b: f32[H, W], alpha: f32) -> f32[H, W]:
    return a[position()] + alpha * b[position()]
"""

FIRST_CALL = """
from time import perf_counter
from kernels import diffused, mj, np
u = np.ones((64, 64), np.float32)
start = perf_counter()
diffused(u, 0.25)
print(1e3 * (perf_counter() - start))
"""

WARM_CALL = """
from time import perf_counter
from kernels import combined, np
a, b, out = (np.ones((4, 4), np.float32) for _ in range(3))
combined(a, b, 0.5)
def each(call, n=5000):
    start = perf_counter()
    for _ in range(n):
        call()
    return 1e6 * (perf_counter() - start) / n
print(min(each(lambda: combined(a, b, 0.5)) - each(lambda: None) for _ in range(5)))
"""

COMPILATIONS = """
from metaljit.runtime import toolchain
from kernels import combined, diffused, np
count = 0
def counted(self, text, what, flags=(), compile=toolchain.Toolchain.compile):
    global count
    count += what in ("diffused", "combined")
    return compile(self, text, what, flags)
toolchain.Toolchain.compile = counted
for n in SIZES:
    for alpha in SCALARS:
        diffused(np.ones((n, n + 3), np.float32), alpha)
print(count)
"""


def lines(rounds: int) -> list[Line]:
    """Fresh processes throughout; the environment's cache is not touched."""
    with TemporaryDirectory(prefix="metaljit-bench-") as name:
        folder = Path(name)
        first: list[float] = []
        again: list[float] = []
        for k in range(rounds):
            write_kernels(folder, k)
            first.append(child(folder, FIRST_CALL))
            again.append(child(folder, FIRST_CALL))
        sizes = COMPILATIONS.replace("SIZES", "range(1, 201)").replace("SCALARS", "(0.25,)")
        scalars = COMPILATIONS.replace("SIZES", "(5,)").replace("SCALARS", "[k / 10 for k in range(1, 10)]")
        write_kernels(folder, rounds)
        counts = [child(folder, sizes)]
        write_kernels(folder, rounds + 1)
        counts.append(child(folder, scalars))
        return [
            Line("import metaljit, beyond NumPy", "ms", [child(folder, IMPORT) for _ in range(rounds)], 150),
            Line("first call of a new kernel, empty cache", "ms", first, 250),
            Line("first call in a new process, warm cache", "ms", again, 10),
            Line(
                "warm call of a kernel of three arrays",
                "µs",
                [child(folder, WARM_CALL) for _ in range(rounds)],
                10,
            ),
            Line("compilations for sizes 1 … 200", "", counts[:1], 2),
            Line("compilations for scalars 0.1 … 0.9", "", counts[1:], 1),
        ]


def write_kernels(folder: Path, k: int) -> None:
    """A module whose kernels nobody has compiled before, beside an empty cache."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "kernels.py").write_text(KERNEL.replace("NUMBER", repr(1 + k / 64)))


def child(folder: Path, code: str) -> float:
    environment = os.environ | {
        "METALJIT_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
    }
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise RuntimeError(result.stderr)
    return float(result.stdout)
