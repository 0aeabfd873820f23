"""What goes through pointers, before anything is optimised: edits of LLVM's textual form for the sanitizer.

In: the text as clang writes it. Out: the same, where a pointer points,

    copies   of vectors, matrices and structs have a call of `__emu_aligned(pointer, alignment)` before them: clang's own
             check knows scalars, members and references, and leaves copies out
    loads    are unordered, which changes nothing about them but that the optimiser does not make one of two: the one would
             have the line of either

Variables of the stack are passed over: a call would keep them out of registers.
"""

from __future__ import annotations

import re

VERSION = "1"  # of the edits: libraries of others are compiled anew
_FUNCTION = re.compile(r"^define [^\n]*!dbg[^\n]*\{\n.*?^\}", re.MULTILINE | re.DOTALL)
_POINTER = re.compile(
    r"^  (%(?!this\d)\S+) = (?:load ptr, (?![^\n]*(?:!align|!nonnull))|call (?:noundef )?ptr @)", re.MULTILINE
)
_ELEMENT = re.compile(r"^  (%\S+) = getelementptr [^\n]*?, ptr (%[^\s,]+)", re.MULTILINE)
_COPY = re.compile(
    r"^  call void @llvm\.memcpy\.p0\.p0\.i64\("
    r"ptr (?:align (?P<to_alignment>\d+) )?(?P<to>[^,()]+), ptr (?:align (?P<from_alignment>\d+) )?(?P<from>[^,()]+), "
    r"i64 \d+, i1 false\)(?:, [^\n]*?)?(?P<place>, !dbg !\d+)",
    re.MULTILINE,
)
_LOAD = re.compile(
    r"^(  %\S+ = load) (?P<type>float|half|i8|i16|i32|i64), ptr (?P<at>%[^\s,]+), align (?P<alignment>\d+)",
    re.MULTILINE,
)
_SIZES = {"float": 4, "half": 2, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
_DECLARATION = "declare void @__emu_aligned(ptr, i64) nounwind memory(inaccessiblemem: readwrite)\n"


def edited(text: str) -> str:
    """The text with the edits, in the functions that have lines of the user's."""
    return f"{_FUNCTION.sub(lambda m: _function(m[0]), text)}\n{_DECLARATION}"


def _function(text: str) -> str:
    pointers = {m[1] for m in _POINTER.finditer(text)}
    for m in _ELEMENT.finditer(text):
        if m[2] in pointers:
            pointers.add(m[1])
    text = _COPY.sub(lambda m: _calls(m, pointers) + m[0], text)
    return _LOAD.sub(lambda m: _load(m) if m["at"] in pointers else m[0], text)


def _load(m: re.Match[str]) -> str:
    if int(m["alignment"]) < _SIZES[m["type"]]:  # no instruction of the processor's
        return m[0]
    return f'{m[1]} atomic {m["type"]}, ptr {m["at"]} syncscope("singlethread") unordered, align {m["alignment"]}'


def _calls(copy: re.Match[str], pointers: set[str]) -> str:
    sides = [(copy[side], copy[f"{side}_alignment"]) for side in ("from", "to")]
    return "".join(
        f"  call void @__emu_aligned(ptr {pointer}, i64 {alignment}) nomerge{copy['place']}\n"
        for pointer, alignment in sides
        if pointer in pointers and alignment and alignment != "1"
    )
