"""Clang's part of the emulator: preprocessing MSL, checking it, and compiling it to a library.

In: MSL text. Out: preprocessed text, `Message`s about the user's lines, the path of a shared library. The
library of Metal's functions is a precompiled header, made once for each compiler and set of flags and kept on
disk. Line markers in the text keep every message on the user's own line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

from metaljit.frozen import frozen
from metaljit.runtime import toolchain
from metaljit.runtime.cache import disk, key
from metaljit.runtime.library import SHIM, keep
from metaljit.runtime.msl import pointers
from metaljit.runtime.msl.precompiled import headers, precompiled

EMULATOR = os.path.join(SHIM, "emulator")
STUBS = os.path.join(SHIM, "include")
FILE = "program_source"  # what Metal calls a text without a file
VERSIONS = ((2, 3), (2, 4), (3, 0), (3, 1), (3, 2), (4, 0))

# The text brings all it needs. What C++ leaves undefined and Metal or a GPU does not is defined: overflow wraps, casts
# saturate, loops may be endless, pointers of different types may meet.
FLAGS = (
    "-std=c++23", "-O1", "-fPIC", "-fvisibility=hidden",
    "-nostdinc", "-nostdinc++", "-ffreestanding", "-fdeclspec", "-fsigned-char", "-fno-exceptions", "-fno-rtti",
    "-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables", "-fno-stack-protector",
    "-fwrapv", "-fno-strict-aliasing", "-fno-strict-float-cast-overflow", "-fno-finite-loops",
    "-fno-math-errno", "-ffp-contract=off", "-fno-vectorize", "-fno-slp-vectorize",
    "-fno-delete-null-pointer-checks",
    # The runtime tells places apart by their calls; a frame that is larger than a guard page must meet it.
    "-fconvergent-functions", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fstack-clash-protection",
    "-mllvm", "-enable-tail-merge=false",
    "-Xclang", "-ffloat16-excess-precision=none", "-fpch-instantiate-templates",
    "-gline-tables-only", "-gdwarf-4",
)  # fmt: skip
# Address: a call for each access, bounds of private arrays and constants. Thread: calls for atomic ones and copies. Clang's
# driver refuses the two together, which is a matter of their own runtimes.
SANITIZED = (
    "-fsanitize=thread", "-Xclang", "-fsanitize=address", "-Xclang", "-fsanitize-recover=address",
    "-Xclang", "-fsanitize-address-use-after-scope",
    *(part for option in (
        "tsan-instrument-func-entry-exit=0", "tsan-instrument-memory-accesses=0",
        "asan-opt-same-temp=0", "asan-opt-globals=0", "asan-use-after-return=never", "asan-force-dynamic-shadow",
        "asan-instrumentation-with-call-threshold=0", "asan-guard-against-version-mismatch=0",
        # Two accesses of different lines stay two.
        "simplifycfg-sink-common=false", "simplifycfg-hoist-common=false", "simplifycfg-merge-cond-stores=false",
        "sink-common-insts=false", "hoist-common-insts=false",
    ) for part in ("-mllvm", f"-{option}")),
    "-fsanitize=integer-divide-by-zero,shift,array-bounds,alignment",
    "-fsanitize-recover=integer-divide-by-zero,shift,array-bounds,alignment",
    "-fstrict-flex-arrays=1",  # the last array of a struct has its bounds; one of one element is a buffer of any length
    "-D__EMU_SANITIZE",
)  # fmt: skip
_AS_LLVM = ("-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "-o", "-", "-")
# What Apple's compiler refuses and clang only warns about; the rest of clang's advice is the user's affair.
_REFUSED = (
    "global-constructors",  # a program-scope constant that is computed
    "vla",
    "vla-cxx-extension",
    "c++11-narrowing",
    "c++11-narrowing-const-reference",
    "return-type",
    "shift-count-overflow",
)
_WARNINGS = ("-Wno-everything", *(f"-Werror={name}" for name in _REFUSED))  # -w would hide errors too

Severity = Literal["error", "warning", "note"]
_MESSAGE = re.compile(
    r"(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?P<severity>fatal error|error|warning|note): (?P<text>.*)"
)
# What the library asserts is said in its own words.
_ASSERTION = re.compile(r"^static assertion failed(?: due to requirement '.*?')?: ")


@frozen
class Message:
    """What clang says of a place in the user's text."""

    file: str
    line: int
    column: int
    severity: Severity
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.text}"


class Refused(Exception):
    """The text is not accepted; `messages` say why."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__("\n".join(map(str, messages)))
        self.messages = tuple(messages)


@frozen
class Options:
    """How a text is read: the language version, folders of headers, and macros (an empty value defines a name)."""

    file: str = FILE
    version: tuple[int, int] = (2, 3)
    include: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()


DEFAULT = Options()


def plain(source: str) -> str:
    """A text as clang reads it: without the mark of its byte order, every line ended by a line feed."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def preprocess(source: str, options: Options = DEFAULT) -> str:
    """The text after `clang -E`, with line markers. Refused where a header or a bracket of `#if` is missing."""
    major, minor = options.version
    system = ("__METAL__", "__METAL_MACOS__", "__APPLE__", "__EMU__")
    flags = [
        "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++", "-ffreestanding", "-fno-gnu-inline-asm",
        f"-D__METAL_VERSION__={major}{minor}0", *(f"-D{name}=1" for name in system),
        *(f"-D{name}={value}" if value else f"-D{name}" for name, value in options.defines),
        *(part for folder in options.include for part in ("-I", folder)), "-isystem", STUBS, "-",
    ]  # fmt: skip
    done = toolchain.find().clang(flags, f'#line 1 "{_quoted(options.file)}"\n{source}')
    if done.returncode != 0:
        raise Refused(_messages(done.stderr) or _none(done))
    return done.stdout.decode(errors="replace")


def check(cpp: str) -> tuple[Message, ...]:
    """What clang says of a translated text without making code of it."""
    # all errors at once, and what `diagnose_if` says of the names of kernels
    flags = ("-ferror-limit=1000", "-Wuser-defined-warnings", "-fsyntax-only", "-")
    done = toolchain.find().clang((*_compile_flags(()), *flags), cpp)
    return tuple(_messages(done.stderr)) or (() if done.returncode == 0 else tuple(_none(done)))


def llvm(cpp: str) -> str:
    """A translated text in LLVM's textual form, before anything is optimised; empty where it does not compile."""
    return toolchain.find().clang((*_compile_flags(()), *_AS_LLVM), cpp).stdout.decode(errors="replace")


def build(cpp: str, flags: Sequence[str] = ()) -> str:
    """The path of the shared library of a translated text, from the cache or compiled. Refused where it is wrong.

    With the flags `SANITIZED`, copies through pointers have their alignment looked at too.
    """
    tool = toolchain.find()
    name = key(
        "emulator",
        tool.identity,
        toolchain.processor(),
        headers(EMULATOR),
        *FLAGS,
        *flags,
        pointers.VERSION,
        cpp,
    )
    store = disk()
    kept = store.path(name)
    return kept or keep(name, compile_text(cpp, flags), "an emulated kernel")


def compile_text(cpp: str, flags: Sequence[str]) -> bytes:
    """The bytes of the shared library of a translated text."""
    from tempfile import TemporaryDirectory

    tool = toolchain.find()
    with TemporaryDirectory(prefix="metaljit-") as folder:
        part, library = os.path.join(folder, "text.o"), os.path.join(folder, "library.so")
        if flags == SANITIZED:
            done = tool.clang((*_compile_flags(flags), *_AS_LLVM), cpp)
            if done.returncode == 0:
                text = pointers.edited(done.stdout.decode(errors="replace"))
                done = tool.clang((*_common_flags("ir", flags), "-c", "-", "-o", part), text)
        else:
            done = tool.clang((*_compile_flags(flags), "-c", "-", "-o", part), cpp)
        if done.returncode != 0:
            raise Refused(_messages(done.stderr) or _none(done))
        done = tool.link(part, library)
        if done.returncode != 0:
            tool.raise_unusable(done)
        with open(library, "rb") as file:
            return file.read()


def _common_flags(language: str, flags: Sequence[str]) -> tuple[str, ...]:
    return ("-x", language, *FLAGS, *toolchain.machine_flags(), *flags)


def _compile_flags(flags: Sequence[str]) -> tuple[str, ...]:
    common = _common_flags("c++", flags)
    return (*common, *_WARNINGS, "-include-pch", precompiled(EMULATOR, (*common, "-w")))


def _messages(stderr: bytes) -> list[Message]:
    """Clang's messages, those about the library's own text moved to the note that names the user's line.

    Clang names that line behind the first of several errors in one place of the library: the others go.
    """
    found: list[Message] = []
    pending: Message | None = None
    for line in stderr.decode(errors="replace").splitlines():
        match = _MESSAGE.match(line)
        if match is None:
            continue
        severity: Severity = (
            "error" if "error" in match["severity"] else "note" if match["severity"] == "note" else "warning"
        )
        message = Message(match["file"], int(match["line"]), int(match["column"]), severity, match["text"])
        is_ours = message.file.startswith(EMULATOR)
        if severity != "note" and not is_ours:
            pending = None
        if is_ours and severity == "error":
            pending = message
        elif is_ours:
            continue
        elif severity == "note" and pending is not None:
            text = _ASSERTION.sub("", pending.text)
            found.append(Message(message.file, message.line, message.column, pending.severity, text))
            pending = None
        else:
            found.append(message)
    if pending is not None and all(m.severity != "error" for m in found):
        found.append(pending)
    return found


def _none(done: object) -> list[Message]:
    """For a compiler that failed without a message about a line."""
    stderr = getattr(done, "stderr", b"").decode(errors="replace").strip()
    return [Message(FILE, 1, 1, "error", stderr.splitlines()[0] if stderr else "the compiler failed")]


def _quoted(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')
