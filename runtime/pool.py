"""The thread pool of the cpu device: how many threads, and the compiled `shim/pool.cpp`.

The pool is built in the background while the first kernel compiles, so that it costs a first call nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache

from metaljit.runtime.cache import Once
from metaljit.runtime.library import SHIM, load
from metaljit.source import DeviceFault, Diagnostic

_built: Once[ctypes.CDLL] = Once()
_asked = False


@cache
def threads() -> int:
    """The threads a kernel may use: `METALJIT_THREADS`, or the processors that this process may run on."""
    asked = os.environ.get("METALJIT_THREADS")
    if asked:
        if not asked.strip().isdecimal() or not 1 <= int(asked) <= 1024:
            raise DeviceFault(
                Diagnostic(
                    "bad-setting",
                    f"METALJIT_THREADS is {asked!r}, and must be a number from 1 to 1024",
                    help="unset it to use all processors",
                )
            )
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_for() -> int:
    """The address of the compiled pool's `mj_parallel_for`."""
    return ctypes.cast(_built.get("pool", _build).mj_parallel_for, ctypes.c_void_p).value or 0


def prepare() -> None:
    """Starts to build the pool in the background, once; whoever needs it waits, or sees its failure."""
    global _asked
    if _asked or threads() == 1:
        return
    _asked = True
    threading.Thread(target=_try_to_build, name="metaljit-pool").start()


def _try_to_build() -> None:
    try:
        _built.get("pool", _build)
    except Exception:  # kept by Once, and raised where the pool is used
        return


def _build() -> ctypes.CDLL:
    with open(os.path.join(SHIM, "pool.cpp"), encoding="utf-8") as file:
        library = load(file.read(), "the thread pool")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=library.mj_after_fork)
    return library
