"""C++ text to a loaded library: through the disk cache, and through the compiler where it has none.

In: text. Out: a `ctypes` library. The key of a library is all that shapes it: text, flags, compiler,
processor, and the headers that it may include.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache

from metaljit.runtime import toolchain
from metaljit.runtime.cache import disk, key
from metaljit.source import DeviceFault, Diagnostic

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")


@cache
def _headers() -> str:
    """The key of everything in the shim folder."""
    fields: list[str | bytes] = []
    for name in sorted(os.listdir(SHIM)):
        path = os.path.join(SHIM, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                fields += [name, file.read()]
    return key(*fields)


def load(
    text: str, what: str, flags: Sequence[str] = (), on_miss: Callable[[], None] | None = None
) -> ctypes.CDLL:
    """The library of a text, compiled unless the disk cache has it. `what` names it in errors.

    `on_miss` is called before a compilation.
    """
    _share_mathematics()
    compiler = toolchain.find()
    flags = ("-I", SHIM, *flags)
    settings = (*toolchain.FLAGS, *toolchain.machine_flags(), *flags)
    name = key("library", compiler.identity, toolchain.processor(), _headers(), *settings, "", text)
    store = disk()
    kept = store.path(name)
    if kept is not None:
        try:
            return ctypes.CDLL(kept)
        except OSError:
            pass  # evicted meanwhile, or made where the system's libraries differ: a miss
    if on_miss is not None:
        on_miss()
    data = compiler.compile(text, what, flags)
    kept = store.put(name, data)
    if kept is not None:
        try:
            return ctypes.CDLL(kept)
        except OSError:
            pass  # a folder that nothing may be loaded from
    return _load_privately(name, data, what)


def _load_privately(name: str, data: bytes, what: str) -> ctypes.CDLL:
    try:
        # Never the same file twice: writing to a library that is loaded crashes the process.
        path = os.path.join(_folder(os.getpid()), f"{name}.{os.urandom(4).hex()}")
        with open(path, "xb") as file:
            file.write(data)
        return ctypes.CDLL(path)
    except OSError as e:
        raise DeviceFault(
            Diagnostic(
                "library-not-loaded",
                f"the compiled library of {what} cannot be loaded: {e}",
                help="name a folder that libraries may be loaded from in METALJIT_CACHE_DIR or TMPDIR",
            )
        ) from e


@cache
def _folder(pid: int) -> str:
    """Where libraries lie that no cache keeps: a folder of this process, gone when it ends."""
    import atexit
    import shutil
    from tempfile import mkdtemp

    folder = mkdtemp(prefix="metaljit-")

    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@cache
def _share_mathematics() -> None:
    """Lets libraries find the C library's mathematics, which they are not linked with."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
        except OSError:
            pass  # part of the C library itself
