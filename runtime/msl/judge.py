"""The judge of address spaces: a second reading of a text, with its spaces, by clang's C++ for OpenCL.

In: a `Unit`. Out: a `Verdict`. The reading for the emulator has no address spaces, so clang sees there everything
else. Here it sees the spaces, with a library of declarations that takes values loosely. Only errors about spaces
count; any other means that the judge could not read the text, and says nothing about the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from metaljit.frozen import frozen
from metaljit.runtime import toolchain
from metaljit.runtime.library import SHIM
from metaljit.runtime.msl.judge_text import opencl
from metaljit.runtime.msl.places import Edited
from metaljit.runtime.msl.precompiled import precompiled
from metaljit.runtime.msl.unit import Finding, Unit

JUDGE = os.path.join(SHIM, "judge")
# One target for every machine: nothing is compiled.
FLAGS = (
    "-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-nostdinc", "-target", "x86_64-linux-gnu", "-cl-ext=+all",
    "-cl-single-precision-constant", "-Wno-everything", "-Werror=c++20-extensions", "-ferror-limit=1000", "-fno-elide-type",
)  # fmt: skip
_MESSAGE = re.compile(
    r"(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): (?P<kind>fatal error|error|note): (?P<text>.*)"
)
_AKA = re.compile(r"'[^']*' \(aka '([^']*)'\)")  # what a name stands for
_QUOTED = re.compile(r"'([^']*)'")
# What is no fault of the text's: values, which the judge's library does not have, and what OpenCL cannot do.
_ARTIFACTS = (
    "must be initialized by a constant expression",
    "not an integral constant expression",
    "static assertion",
    "variable must reside in",
    "variable cannot be declared in",
    "reference to overloaded function could not be resolved",  # a function as an argument of a template
    "does not refer to a function template",
    "is ambiguous",  # a value, which lies in no space, fits a function for each of them
    "cannot bind to a temporary",  # which has no space, and a reference to const does
)
# C++20, which the other reading has: what Apple's compiler refuses of it, and does not take as an extension.
_LATER = re.compile(r"\[-Werror,-Wc\+\+20-[\w-]+\]$")
_TYPENAME = re.compile(r"missing 'typename' prior to dependent type name '.*'(?= is)")
_CONSTRUCTOR = re.compile(r"no matching constructor for initialization of '(?:__private )?(\w+)'")
_OURS = re.compile(
    r"__global_host|__global_device|__local|__private|__generic|__global\b|\bconst\b|\bvolatile\b"
)
_PROGRAM_SCOPE = re.compile(r"__global\b")  # where a static constant of the text is, for the judge
_NAMES = (
    (re.compile(r"(const )?__global_device\b"), "constant"),
    (re.compile(r"__global_host\b"), "device"),
    (re.compile(r"__local\b"), "threadgroup"),
    (re.compile(r"(?<=[*&])__private\b"), ""),
    (re.compile(r"__private\b"), "thread"),
    (re.compile(r"'thread ([\w<>, ]+)'"), r"'\1'"),  # a value
    (re.compile(r"__judge_"), ""),
    (re.compile(r"\bvec<(\w+), ([234])>"), r"\1\2"),
)


@frozen
class Verdict:
    """`findings` are about address spaces and about C++17, `unread` about what the judge could not read, which may be
    its own fault."""

    findings: tuple[Finding, ...]
    unread: tuple[Finding, ...]


@frozen
class _Error:
    file: str
    line: int
    column: int
    text: str
    notes: tuple[str, ...]


def judge(unit: Unit) -> Verdict:
    """Reads the text with its address spaces."""
    tokens = opencl(unit)
    done = toolchain.find().clang(
        (*FLAGS, "-include-pch", precompiled(JUDGE, FLAGS), "-fsyntax-only", "-"), tokens.text()
    )
    if done.returncode == 0:
        return Verdict((), ())
    place = Edited(tokens)
    about: dict[int, Finding] = {}
    unread: dict[int, Finding] = {}
    for e in _errors(done.stderr.decode(errors="replace")):
        at = place.token(e.file, e.line, e.column) or 0
        if later := _later(unit, e):
            about.setdefault(at, Finding("msl-refused", at, named(later)))
        elif not _LATER.search(e.text) and not _is_artifact(e):
            found = about if _is_about_spaces(e) else unread
            found.setdefault(at, Finding("msl-address-space", at, named(e.text) + _reason(e)))
    return Verdict(tuple(about[at] for at in sorted(about)), tuple(unread[at] for at in sorted(unread)))


def _later(unit: Unit, e: _Error) -> str:
    """What Apple's compiler says of C++20: a type without `typename`, and an object without constructors made by
    parentheses. Empty for everything else."""
    if found := _TYPENAME.match(e.text):
        return found[0]
    found = _CONSTRUCTOR.match(e.text)
    known = unit.classes.get(found[1]) if found else None
    if found is None or known is None or ":" in unit.words[known.start : known.body[0]]:
        return ""
    has_constructors = any(f.owner == found[1] == unit.words[f.name] for f in unit.functions)
    return "" if has_constructors else f"no matching constructor for initialization of '{found[1]}'"


def named(text: str) -> str:
    """A message of clang's with Metal's names of address spaces."""
    text = _AKA.sub(r"'\1'", text)
    for pattern, name in _NAMES:
        text = pattern.sub(name, text)
    return text


# ---- what clang says ----


def _errors(text: str) -> Iterator[_Error]:
    """The errors with the notes behind each; one inside the declarations is put at the first note outside."""
    head: re.Match[str] | None = None
    notes: list[re.Match[str]] = []
    for line in text.splitlines():
        found = _MESSAGE.match(line)
        if found is None:
            continue
        if found["kind"] == "note":
            notes.append(found)
            continue
        if head is not None:
            yield _error(head, notes)
        head, notes = found, []
    if head is not None:
        yield _error(head, notes)


def _error(head: re.Match[str], notes: Sequence[re.Match[str]]) -> _Error:
    where = head
    if head["file"].startswith(JUDGE):
        where = next((n for n in notes if not n["file"].startswith(JUDGE)), head)
    return _Error(
        where["file"], int(where["line"]), int(where["column"]), head["text"], tuple(n["text"] for n in notes)
    )


def _is_about_spaces(e: _Error) -> bool:
    if "address space" in e.text or _differ_in_space(e.text):
        return True
    return _is_call(e) and any("address space" in n or _differ_in_space(n) for n in e.notes)


def _reason(e: _Error) -> str:
    """Why a function that is called does not fit, from the first note about spaces."""
    for note in e.notes:
        if _is_call(e) and ("address space" in note or _differ_in_space(note)):
            text = named(note.partition(": ")[2])
            return f": {text.removeprefix('address space mismatch in ')}"
    return ""


def _is_call(e: _Error) -> bool:
    return e.text.startswith(("no matching", "no viable", "call to"))


def _is_artifact(e: _Error) -> bool:
    """Whether an error is the judge's own: also generic pointers, and the two sides of `?:`, which have a space."""
    if any(words in e.text for words in _ARTIFACTS):
        return True
    if any("__global_device" in text and _PROGRAM_SCOPE.search(text) for text in (e.text, *e.notes)):
        return True  # a constant number that the text has by itself, as a reference to constant memory
    if any("__global_device" in text and "__constant char[" in text for text in (e.text, *e.notes)):
        return True  # a string, which is in OpenCL's own constant memory
    sides = _QUOTED.findall(_AKA.sub(r"'\1'", e.text))
    if e.text.startswith("binding reference") and not all(_OURS.search(side) for side in sides):
        return True  # to a value, which has no space: clang says that elsewhere
    is_choice = e.text.startswith("incompatible operand types") and not any("*" in side for side in sides)
    is_generic = "__generic" in e.text or (_is_call(e) and any("'__generic'" in note for note in e.notes))
    return is_generic or (is_choice and len({_bare(side) for side in sides}) == 1)


def _differ_in_space(text: str) -> bool:
    """Whether a message is about two types that are one apart from address spaces."""
    found = [t for t in _QUOTED.findall(_AKA.sub(r"'\1'", text)) if _OURS.search(t)]
    if len(found) < 2 or any("__generic" in t for t in found):
        return False
    first, second = found[0], found[1]
    return _spaces(first) != _spaces(second) and _bare(first) == _bare(second)


def _bare(type_: str) -> str:
    """A type without spaces and references; an array is a pointer."""
    return re.sub(r"\(?\)?\[\d*\]$", "*", re.sub(r"[\s&]+", "", _OURS.sub("", type_)))


def _spaces(type_: str) -> list[str]:
    return re.findall(r"__global_host|__global_device|__local|__private", re.sub(r"__private\s*$", "", type_))
