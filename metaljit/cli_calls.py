"""The call that `metaljit run` makes, its times, and what it says of the results.

In: a kernel and the values of its arguments. Out: results by name, and lines of text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from .cli_errors import progress
from .kernels import Kernel
from .program import ArrayParam, Program
from .source import DeviceFault

SHOWN_ELEMENTS = 64
REPEAT_S = 0.5
MOST_REPEATS = 1000


def placed(kernel: Kernel, device: str | None) -> Kernel:
    """The kernel on the device; UsageError for a name that no device has."""
    try:
        return kernel if device is None else kernel.on(device)
    except DeviceFault as e:
        if e.slug == "unknown-device":
            raise click.UsageError(f"--device: {e.diagnostics[0].message}; {e.diagnostics[0].help}") from None
        raise


def sanitized(device: str | None) -> str:
    """The device whose runs are checked from here on; UsageError if another one was asked for."""
    if device not in (None, "emulator"):
        raise click.UsageError(f"--sanitize runs on the emulator, and --device asks for {device}")
    os.environ["METALJIT_SANITIZE"] = "1"
    return "emulator"


def call(
    kernel: Kernel, program: Program, values: list[Any], place: str
) -> tuple[float, dict[str, NDArray[Any]]]:
    start = perf_counter()
    with progress(f"Compiling and running {kernel.__name__} on {place}"):
        found = kernel(*values)
    elapsed_s = perf_counter() - start
    several = found if isinstance(found, tuple) else (found,)
    return elapsed_s, {a.name: r for a, r in zip(program.outputs, several, strict=True)}


def repeat(kernel: Kernel, values: list[Any]) -> list[float]:
    """Seconds, of calls that find everything compiled."""
    times: list[float] = []
    begin = perf_counter()
    with progress(f"Timing {kernel.__name__}"):
        while not times or (len(times) < MOST_REPEATS and perf_counter() - begin < REPEAT_S):
            start = perf_counter()
            kernel(*values)
            times.append(perf_counter() - start)
    return times


def times(first_s: float, more_s: list[float]) -> Iterator[str]:
    yield f"  first call   {_milliseconds(first_s)} (with what had to be compiled)"
    yield f"  second call  {_milliseconds(more_s[0])}"
    rest = more_s[1:]
    if rest:
        yield f"  then         {_milliseconds(median(rest))} (median of {len(rest)}, least {min(rest) * 1e3:.3f})"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:8.3f} ms"


def described(a: ArrayParam, array: NDArray[Any], paths: list[str]) -> str:
    lanes = f"x{a.lanes}" if a.lanes > 1 else ""
    extents = array.shape[:-1] if a.lanes > 1 else array.shape
    text = f"{a.dtype}{lanes}[{', '.join(map(str, extents))}]"
    if paths:
        stored = " (as f32)" if a.dtype.name == "bf16" and any(p.endswith(("y", "z")) for p in paths) else ""
        return f"{text} -> {', '.join(paths)}{stored}"
    if array.size <= SHOWN_ELEMENTS:
        values = np.array2string(array, separator=", ", prefix="    ")
        return f"{text}{' = ' if array.ndim < 2 else chr(10) + '    '}{values}"
    wide = array.astype(np.float64)
    nans = int(np.isnan(wide).sum())
    if nans == wide.size:
        return f"{text}, all NaN"
    ends = f"from {np.nanmin(wide):.6g} to {np.nanmax(wide):.6g}, mean {np.nanmean(wide):.6g}"
    return f"{text} {ends}{f', {nans} NaN' if nans else ''}"
