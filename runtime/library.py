"""C++ text to a loaded library: through the disk cache, and through the compiler where it has none.

In: text. Out: a `ctypes` library. The key of a library is all that shapes it: text, flags, compiler,
processor, and the headers that it may include.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from metaljit.runtime import toolchain
from metaljit.runtime.cache import disk, key
from metaljit.source import DeviceFault, Diagnostic

SHIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim")


@cache
def _headers() -> str:
    """Which files the shim folder has: sizes and times, since to read them all would take a tenth of a warm first call."""
    with os.scandir(SHIM) as entries:
        found = [(e.name, e.stat()) for e in sorted(entries, key=lambda e: e.name)]
    return "\n".join(f"{name} {status.st_size} {status.st_mtime_ns}" for name, status in found)


_provided: dict[str, bytes] = {}


def binary(text: str, what: str, flags: Sequence[str] = ()) -> tuple[str, bytes]:
    """The key and the bytes of the library of a text."""
    name = _name(text, ("-I", SHIM, *flags))
    if name not in _provided:
        with open(place(text, what, flags), "rb") as file:
            return name, file.read()
    return name, _provided[name]


def provide(binaries: Mapping[str, bytes]) -> None:
    """Libraries by their keys, for this process alone: the disk cache takes nothing that was not compiled here."""
    _provided.update(binaries)


def is_kept(text: str, flags: Sequence[str] = ()) -> bool:
    """Whether the library of a text need not be compiled."""
    name = _name(text, ("-I", SHIM, *flags))
    return name in _provided or disk().path(name) is not None


def _name(text: str, flags: Sequence[str]) -> str:
    settings = (*toolchain.FLAGS, *toolchain.machine_flags(), *flags)
    return key("library", toolchain.find().identity, toolchain.processor(), _headers(), *settings, "", text)


def load(text: str, what: str, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """The library of a text, compiled unless the disk cache has it. `what` names it in errors."""
    _share_mathematics()
    flags = ("-I", SHIM, *flags)
    name = _name(text, flags)
    if name in _provided:
        return _load_privately(name, _provided[name], what)
    store = disk()
    kept = store.path(name)
    if kept is not None:
        try:
            return ctypes.CDLL(kept)
        except OSError:
            pass  # evicted meanwhile, or made where the system's libraries differ: a miss
    data = toolchain.find().compile(text, what, flags)
    kept = store.put(name, data)
    if kept is not None:
        try:
            return ctypes.CDLL(kept)
        except OSError:
            pass  # a folder that nothing may be loaded from
    return _load_privately(name, data, what)


def place(text: str, what: str, flags: Sequence[str] = ()) -> str:
    """The path of the library of a text, for another process to load; compiled unless the disk cache has it."""
    flags = ("-I", SHIM, *flags)
    name = _name(text, flags)
    kept = disk().path(name)
    return kept or keep(name, toolchain.find().compile(text, what, flags), what)


def keep(name: str, data: bytes, what: str) -> str:
    """The path of a file with these bytes: in the disk cache or, where that keeps nothing, in a folder of this process."""
    return disk().put(name, data) or _write_privately(name, data, what)


def _load_privately(name: str, data: bytes, what: str) -> ctypes.CDLL:
    path = _write_privately(name, data, what)
    try:
        return ctypes.CDLL(path)
    except OSError as e:
        raise _not_loaded(what, e) from e


def _write_privately(name: str, data: bytes, what: str) -> str:
    try:
        # Never the same file twice: writing to a library that is loaded crashes the process.
        path = os.path.join(_folder(os.getpid()), f"{name}.{os.urandom(4).hex()}")
        with open(path, "xb") as file:
            file.write(data)
        return path
    except OSError as e:
        raise _not_loaded(what, e) from e


def _not_loaded(what: str, reason: OSError) -> DeviceFault:
    return DeviceFault(
        Diagnostic(
            "library-not-loaded",
            f"the compiled library of {what} cannot be loaded: {reason}",
            help="name a folder that libraries may be loaded from in METALJIT_CACHE_DIR or TMPDIR",
        )
    )


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
