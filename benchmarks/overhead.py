"""What calling costs beside computing: import, first calls, warm calls, and how often anything is compiled.

In: nothing. Out: lines of what is measured, its values, and the most that is wanted. All is measured in fresh processes,
by the clock and in processor time, that of the C++ compiler with it: the second says more where others compute too.
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
class Time:
    """By the clock, and of the processor, all threads together."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Line:
    what: str
    unit: str
    values: Sequence[Time]
    wanted: float

    @property
    def wall(self) -> float:
        return median(v.wall for v in self.values)

    @property
    def cpu(self) -> float:
        return median(v.cpu for v in self.values)


CLOCK = """
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
def clock():
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)
def report(start, scale):
    print(*(scale * (b - a) for a, b in zip(start, clock())))
"""

IMPORT = """
import numpy
start = clock()
import metaljit
report(start, 1e3)
"""

KERNEL = """
import numpy as np
import metaljit as mj
from metaljit.lang import border, f32, position

H, W = mj.dims("H W")

@mj.kernel
def diffused(u: f32[H, W], alpha: f32) -> f32[H, W]:
    \"\"\"One step of edge-preserving diffusion.\"\"\"
    v = border(u, "edge")
    y, x = position()
    total = 0.0
    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        step = v[y + dy, x + dx] - u[y, x]
        total += step / (1.0 + step * step * NUMBER)
    return u[y, x] + alpha * total

@mj.kernel
def combined(a: f32[H, W], b: f32[H, W], alpha: f32) -> f32[H, W]:
    return a[position()] + alpha * b[position()]
"""

FIRST_CALL = """
from kernels import diffused, mj, np
u = np.ones((64, 64), np.float32)
start = clock()
diffused(u, 0.25)
report(start, 1e3)
"""

WARM_CALL = """
from kernels import combined, np
a, b = (np.ones((4, 4), np.float32) for _ in range(2))
combined(a, b, 0.5)
CALLS = 20000
start = clock()
for _ in range(CALLS):
    combined(a, b, 0.5)
report(start, 1e6 / CALLS)
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
print(count, count)
"""


def lines(rounds: int) -> list[Line]:
    """Fresh processes throughout; the environment's cache is not touched."""
    with TemporaryDirectory(prefix="metaljit-bench-") as name:
        folder = Path(name)
        first: list[Time] = []
        again: list[Time] = []
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


def child(folder: Path, code: str) -> Time:
    environment = os.environ | {
        "METALJIT_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    result = subprocess.run(
        [sys.executable, "-c", CLOCK + code], env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise RuntimeError(result.stderr)
    wall, cpu = map(float, result.stdout.split())
    return Time(wall, cpu)
