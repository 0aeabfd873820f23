"""The compiled part of the cpu device, `shim/launch.cpp`: the launch of kernels, and the threads that share them.

It is built in the background while the first kernel is parsed and compiled, so that it costs a first call nothing.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from metaljit.runtime import library
from metaljit.runtime.cache import Once
from metaljit.runtime.library import SHIM, is_kept, load
from metaljit.source import DeviceFault, Diagnostic

_built: Once[ctypes.CDLL] = Once()
_asked = False
_FLAGS = ("-O0",)  # compiled in a third of the time; it does little, and waits for the rest


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


def launch() -> Callable[[bytes, bytes, bytes, object, int], int]:
    """`mj_launch(plan, objects, params, status, check)` of `launch.cpp`."""
    function: Any = _built.get("launch", _build).mj_launch
    function.restype = ctypes.c_int
    function.argtypes = (*(ctypes.c_void_p,) * 4, ctypes.c_int)
    return function  # type: ignore[no-any-return]


def prepare() -> None:
    """Starts to compile it in the background if it must be, once; whoever needs it waits, or sees its failure."""
    global _asked
    if _asked:
        return
    _asked = True
    if not is_kept(_text(), _FLAGS):
        threading.Thread(target=_try_to_build, name="metaljit-launch").start()


def _try_to_build() -> None:
    try:
        _built.get("launch", _build)
    except Exception:  # kept by Once, and raised where the pool is used
        return


@cache
def _text() -> str:
    with open(os.path.join(SHIM, "launch.cpp"), encoding="utf-8") as file:
        return file.read()


def binary() -> tuple[str, bytes]:
    """The library, with its key."""
    return library.binary(_text(), "the launch of kernels", _FLAGS)


def _build() -> ctypes.CDLL:
    built = load(_text(), "the launch of kernels", _FLAGS)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=built.mj_after_fork)
    return built
