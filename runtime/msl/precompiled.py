"""Precompiled headers: made once for each compiler, set of flags and version of the headers, and kept on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

from metaljit.runtime import toolchain
from metaljit.runtime.cache import disk, key
from metaljit.runtime.library import keep
from metaljit.source import InternalError

_known: dict[str, str] = {}


def precompiled(folder: str, flags: Sequence[str]) -> str:
    """The path of `metal.h` of a folder, compiled with these flags. InternalError where it does not compile."""
    tool = toolchain.find()
    name = key("header", folder, tool.identity, toolchain.processor(), headers(folder), *flags)
    path = _known.get(name)
    if path is None or not os.path.exists(path):  # the cache may have been cleared
        path = disk().path(name) or keep(name, _compile(tool, folder, flags), "a precompiled header")
        _known[name] = path
    return path


def _compile(tool: toolchain.Toolchain, folder: str, flags: Sequence[str]) -> bytes:
    from tempfile import TemporaryDirectory

    tool.check()
    with TemporaryDirectory(prefix="metaljit-") as draft:
        made = os.path.join(draft, "metal.pch")
        header = os.path.join(folder, "metal.h")
        done = tool.clang((*flags, "-c", "-Xclang", "-emit-pch", header, "-o", made))
        if done.returncode != 0:
            raise InternalError(f"{header} does not compile:\n{done.stderr.decode(errors='replace')}")
        with open(made, "rb") as file:
            return file.read()


@cache
def headers(folder: str) -> str:
    """Which headers there are: sizes and times, which clang compares too."""
    found = sorted((e.name, e.stat()) for e in os.scandir(folder) if e.is_file())
    return "\n".join(f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in found)
