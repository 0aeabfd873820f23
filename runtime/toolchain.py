"""Finding clang and turning C++ text into a shared library.

In: text and flags. Out: the bytes of a library. A toolchain is one of two: the clang and lld inside the
`zig` binary of the ziglang package, or a clang of the system, named by `METALJIT_CXX` or found with
Apple's Command Line Tools. Its identity is cheap (no process is started), and goes into cache keys
together with the processor's, because the code is made for the very machine it runs on.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NoReturn

from metaljit.frozen import frozen
from metaljit.source import DeviceFault, Diagnostic, InternalError

if TYPE_CHECKING:
    import subprocess  # 8 ms, and a warm call starts no compiler

OLDEST_CLANG = 16
OLDEST_APPLE_CLANG = 15  # Apple counts by itself: its 15 is LLVM's 16
SHOWN_ERRORS = 8
_INSTALL = "install it with `pip install ziglang`, or name a clang >= 16 in METALJIT_CXX"
_MAKE_ROOM = "free some space, or name a folder that can be written in TMPDIR"
_APPLE_STUB = "/usr/bin/clang"
_APPLE_FOLDERS = (
    "/var/db/xcode_select_link",
    "/Library/Developer/CommandLineTools",
    "/Applications/Xcode.app/Contents/Developer",
)
_APPLE_CLANG = ("usr/bin/clang", "Toolchains/XcodeDefault.xctoolchain/usr/bin/clang")

# Freestanding: the text brings all it needs, so no header of the system can change its meaning. No contraction is
# the language's own rule. Overflow of int stays undefined, as in Metal: the text computes what may wrap through
# unsigned, and an index that provably does not wrap lets clang see consecutive addresses.
FLAGS = (
    "-x", "c++", "-std=c++17", "-O3", "-w", "-fPIC", "-fvisibility=hidden",
    "-nostdinc", "-nostdinc++", "-ffreestanding", "-fsigned-char", "-fno-operator-names",
    "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
    "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-Xclang", "-ffloat16-excess-precision=none",
    # As many lanes as the narrowest type has: reductions over bytes gain a third.
    "-mllvm", "-vectorizer-maximize-bandwidth",
)  # fmt: skip
# NaN stays a value: the bit tests of generated text must not be folded.
FAST_MATH = ("-ffast-math", "-fno-finite-math-only", "-ffp-contract=fast")


@frozen
class Toolchain:
    """A clang. `program` is what is started; `identity` changes when the compiler on disk changes."""

    program: str
    kind: Literal["zig", "clang"]
    identity: str

    def compile(self, text: str, what: str, flags: Sequence[str] = ()) -> bytes:
        """The shared library of a C++ text; `what` names it in errors.

        InternalError with the compiler's first lines where the text does not compile, DeviceFault where the
        compiler cannot be used.
        """
        from tempfile import TemporaryDirectory

        self.check()
        try:
            with TemporaryDirectory(prefix="metaljit-") as folder:
                part, library = os.path.join(folder, "text.o"), os.path.join(folder, "library.so")
                done = self.clang((*FLAGS, *machine_flags(), *flags, "-c", "-", "-o", part), text)
                if done.returncode == 0:
                    done = self.link(part, library)
                self._raise(done, what)
                with open(library, "rb") as file:
                    return file.read()
        except OSError as e:
            raise _unusable(f"no temporary file can be written: {e}", _MAKE_ROOM) from e

    def check(self) -> None:
        """DeviceFault where this is no clang that can do the work."""
        if self.kind == "clang":
            _check_version(self.program, self.identity)

    def clang(self, arguments: Sequence[str], text: str = "") -> subprocess.CompletedProcess[bytes]:
        """Runs clang to its end with `text` as its input. DeviceFault where it cannot be started."""
        # The driver of `zig cc` would add its own libraries and change the target; `zig clang` does not.
        return self._run([self.program, *(("clang",) if self.kind == "zig" else ()), *arguments], text)

    def link(self, part: str, library: str) -> subprocess.CompletedProcess[bytes]:
        """Makes a shared library of an object file."""
        if self.kind == "zig":
            flags = ("ld.lld", "-shared", "--hash-style=gnu", "-z", "now")
        else:
            # -nostdlib: no C++ library, and no start-up code that switches denormals off for fast math.
            flags = (
                "-shared",
                *(("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-nostdlib",)),
            )
        return self._run([self.program, *flags, part, "-o", library], "")

    def _run(self, command: list[str], text: str) -> subprocess.CompletedProcess[bytes]:
        import subprocess

        try:
            return subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        except OSError as e:
            raise _unusable(f"{self.program} cannot be started: {e}", _INSTALL) from e

    def _raise(self, done: subprocess.CompletedProcess[bytes], what: str) -> None:
        if done.returncode == 0:
            return
        errors = done.stderr.decode(errors="replace").splitlines()
        if any(line.startswith("<stdin>:") or re.match(r"\S+:\d+:\d+: ", line) for line in errors):
            shown = "\n".join(errors[:SHOWN_ERRORS])
            raise InternalError(f"the C++ text of {what} does not compile:\n{shown}")
        self.raise_unusable(done)

    def raise_unusable(self, done: subprocess.CompletedProcess[bytes]) -> NoReturn:
        """The error for a compiler that failed, and not because of its text."""
        shown = "\n".join(done.stderr.decode(errors="replace").splitlines()[:SHOWN_ERRORS])
        if "No space left" in shown:
            raise _unusable(f"there is no space for temporary files:\n{shown}", _MAKE_ROOM)
        raise _unusable(f"{self.program} failed (status {done.returncode}):\n{shown}", _INSTALL)


def find() -> Toolchain:
    """The toolchain to use; DeviceFault names what to install where there is none."""
    named = os.environ.get("METALJIT_CXX")
    if named:
        return _named(named)
    return _apple() if sys.platform == "darwin" else _zig()


def _named(name: str) -> Toolchain:
    from shutil import which

    path = which(name)
    if path is None:
        raise DeviceFault(
            Diagnostic(
                "toolchain-missing",
                f"METALJIT_CXX names {name!r}, which is no program that can be started",
                help="name a clang >= 16, or unset METALJIT_CXX to use the ziglang package",
            )
        )
    return Toolchain(path, "clang", f"clang {_stamp(path)}")


def _zig() -> Toolchain:
    spec = find_spec("ziglang")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "zig")
        if os.path.exists(path):
            return Toolchain(path, "zig", f"zig {_stamp(path)}")
    raise DeviceFault(
        Diagnostic("toolchain-missing", "device 'cpu' needs a C++ compiler, and there is none", help=_INSTALL)
    )


def _apple() -> Toolchain:
    for folder in _APPLE_FOLDERS:
        for inside in _APPLE_CLANG:
            path = os.path.join(folder, inside)
            if os.path.exists(path):
                # Started through the stub, which knows the SDK to link with.
                return Toolchain(_APPLE_STUB, "clang", f"apple {_stamp(path)}")
    raise DeviceFault(
        Diagnostic(
            "toolchain-missing",
            "device 'cpu' needs clang, and Apple's Command Line Tools are not installed",
            help="run `xcode-select --install`, or name a clang >= 16 in METALJIT_CXX",
        )
    )


def _stamp(path: str) -> str:
    real = os.path.realpath(path)
    stat = os.stat(real)
    return f"{real} {stat.st_size} {stat.st_mtime_ns}"


def version(toolchain: Toolchain) -> str:
    """The first line of `--version`; starts a process, so it is for `doctor` and for errors."""
    import subprocess

    command = [toolchain.program, *(["clang"] if toolchain.kind == "zig" else []), "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as e:
        raise _unusable(f"{toolchain.program} cannot be started: {e}", _INSTALL) from e
    return done.stdout.partition("\n")[0]


@cache
def _check_version(program: str, identity: str) -> None:
    line = version(Toolchain(program, "clang", identity))
    found = re.search(r"(Apple )?clang version (\d+)", line)
    if found is None:
        raise _unusable(f"{program} is not clang: it calls itself {line!r}", _INSTALL)
    oldest = OLDEST_APPLE_CLANG if found[1] else OLDEST_CLANG
    if int(found[2]) < oldest:
        raise _unusable(f"{program} is clang {found[2]}, and {oldest} is the oldest that works", _INSTALL)


def _unusable(message: str, way_out: str) -> DeviceFault:
    return DeviceFault(Diagnostic("toolchain-unusable", message, help=way_out))


def machine_flags() -> tuple[str, ...]:
    """What makes the code fit this processor."""
    machine = platform.machine()
    if machine in ("x86_64", "AMD64"):
        return "-march=native", "-mprefer-vector-width=512"
    if sys.platform == "darwin":
        return ("-mcpu=apple-m1",)  # runs on every one of them; not each clang of Apple's knows `native`
    return ("-mcpu=native",)


@cache
def processor() -> str:
    """The processor's model and features: a library made for another one may hold illegal instructions."""
    return f"{sys.platform} {platform.machine()} {_model()}"


def _model() -> str:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    try:
        # The file is made while it is read: a page holds the first processor, all of it is slow.
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            first = file.read(16384).decode(errors="replace").split("\n\n")[0]
    except OSError:
        return platform.processor()
    fields = (line.partition(":") for line in first.splitlines())
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part",
              "CPU implementer", "CPU variant")  # fmt: skip
    return "; ".join(value.strip() for name, _, value in fields if name.strip() in wanted)


def _sysctl(name: str) -> str:
    import ctypes

    library = ctypes.CDLL(None)
    size = ctypes.c_size_t(256)
    text = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name.encode(), text, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return platform.processor()
    return text.value.decode(errors="replace")
