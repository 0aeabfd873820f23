"""`metaljit doctor`: what was found, what is missing, what to do; and `metaljit cache`.

In: nothing. Out: lines, and whether some device works. Each device that opens runs a small kernel, and its numbers
are compared, so that "ok" means that results come out.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from typing import Literal

import numpy as np

from .cli_errors import progress
from .compiled import VERSION
from .frozen import frozen
from .modules import kernel_from_text
from .runtime import cache, toolchain
from .runtime import device as devices
from .source import MetaljitError

PROBE = """
N = dims("N")

@kernel
def probe(x: f32[N]) -> f32[N]:
    i = position()
    return 2 * x[i] + 1
"""


@frozen
class Finding:
    """`help` says what to do; "absent" is missing and need not be here."""

    state: Literal["ok", "missing", "absent", "broken"]
    what: str
    text: str
    help: str = ""

    def lines(self) -> Iterator[str]:
        mark = {"ok": "ok     ", "missing": "missing", "absent": "-      ", "broken": "BROKEN "}[self.state]
        first, *rest = self.text.splitlines()
        yield f"{mark}  {self.what:<15}  {first}"
        yield from (f"{'':26}{line}" for line in rest)
        if self.help:
            yield f"{'':26}help: {self.help}"


def examine() -> Iterator[Finding]:
    """All findings, in an order that tells a story; each is made when it is asked for."""
    yield Finding("ok", "metaljit", f"{VERSION}, {os.path.dirname(os.path.abspath(__file__))}")
    system = f"{platform.system()} {platform.machine()}"
    yield Finding(
        "ok", "Python", f"{platform.python_version()} ({platform.python_implementation()}, {system})"
    )
    yield Finding("ok", "NumPy", np.__version__)
    yield _compiler()
    for name in devices.NAMES:
        yield _device(name)
    yield _default()
    yield _cache()
    yield _package("Pillow", "images", "pictures (.png, .jpg) can be read and written")
    if sys.platform == "darwin":
        yield _package("metalcompute", "", "the way to the Metal device")
    settings = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("METALJIT_")]
    if settings:
        yield Finding("ok", "settings", " ".join(settings))


def _compiler() -> Finding:
    try:
        found = toolchain.find()
        version = toolchain.version(found)
        start = time.perf_counter()
        with progress("Trying the C++ compiler"):
            found.compile(
                'extern "C" __attribute__((visibility("default"))) int f() { return 1; }\n', "the probe"
            )
        elapsed_s = time.perf_counter() - start
    except MetaljitError as e:
        return _broken("C++ compiler", e, "missing" if e.slug == "toolchain-missing" else "broken")
    return Finding(
        "ok", "C++ compiler", f"{version}, {1000 * elapsed_s:.0f} ms for an empty kernel\n{found.program}"
    )


def _broken(what: str, e: MetaljitError, state: Literal["missing", "absent", "broken"]) -> Finding:
    first = e.diagnostics[0]
    return Finding(state, what, first.message, first.help)


def _device(name: str) -> Finding:
    what = f"device {name}"
    try:
        device = devices.find(name)
    except MetaljitError as e:
        return _broken(what, e, "absent" if name == "metal" and sys.platform != "darwin" else "missing")
    try:
        with progress(f"Trying device {name}"):
            x = np.arange(1000, dtype=np.float32)
            right = np.array_equal(kernel_from_text(PROBE, "<doctor>").on(name)(x), 2 * x + 1)
    except MetaljitError as e:
        return _broken(what, e, "broken")
    if not right:
        return Finding("broken", what, "a small kernel gave wrong numbers", "please report it")
    return Finding("ok", what, device.describe())


def _default() -> Finding:
    asked = os.environ.get("METALJIT_DEVICE")
    why = " (METALJIT_DEVICE)" if asked else ""
    try:
        return Finding("ok", "default", f"device {devices.default().name}{why}")
    except MetaljitError as e:
        return _broken("default", e, "missing")


def _cache() -> Finding:
    try:
        info = cache.disk().info()
    except MetaljitError as e:
        return _broken("cache", e, "broken")
    if info.trouble:
        return Finding(
            "missing",
            "cache",
            f"nothing is kept on disk: {info.trouble}",
            "name a folder in METALJIT_CACHE_DIR",
        )
    if info.folder is None:
        return Finding("ok", "cache", "off (METALJIT_CACHE=0): every process compiles anew")
    return Finding("ok", "cache", describe_cache(info))


def _package(name: str, extra: str, purpose: str) -> Finding:
    try:
        return Finding("ok", name, f"{metadata.version(name)}: {purpose}")
    except metadata.PackageNotFoundError:
        install = f"pip install 'metaljit[{extra}]'" if extra else f"pip install {name}"
        return Finding("missing", name, f"not installed; with it {purpose}", install)


def works() -> bool:
    """Whether some device can be had."""
    return bool(devices.available())


# ---- the cache ----


def describe_cache(info: cache.Info) -> str:
    """`FOLDER, 12 entries, 1.2 MB of at most 512 MB`."""
    entries = f"{info.entries} entr{'y' if info.entries == 1 else 'ies'}"
    return f"{info.folder}, {entries}, {size(info.nbytes)} of at most {size(info.limit)}"


def size(nbytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "bytes" else f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} GB"
