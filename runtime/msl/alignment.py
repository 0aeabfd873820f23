"""Alignment of what is copied through a pointer: calls that look at it, put into LLVM's textual form.

In: the text before anything is optimised. Out: the same with `__emu_aligned(pointer, alignment)` before each copy of a
vector, matrix or struct from or to where a pointer points. Clang's own check knows scalars, members and references, and
leaves such copies out. Variables of the stack are passed over: a call would keep them out of registers.
"""

from __future__ import annotations

import re

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
_DECLARATION = "declare void @__emu_aligned(ptr, i64) nounwind memory(inaccessiblemem: readwrite)\n"


def checked(text: str) -> str:
    """The text with the calls, in the functions that have lines of the user's."""
    changed = _FUNCTION.sub(lambda m: _function(m[0]), text)
    return changed if changed is text else f"{changed}\n{_DECLARATION}"


def _function(text: str) -> str:
    if "@llvm.memcpy" not in text:
        return text
    pointers = {m[1] for m in _POINTER.finditer(text)}
    for m in _ELEMENT.finditer(text):
        if m[2] in pointers:
            pointers.add(m[1])
    return _COPY.sub(lambda m: _calls(m, pointers) + m[0], text)


def _calls(copy: re.Match[str], pointers: set[str]) -> str:
    sides = [(copy[side], copy[f"{side}_alignment"]) for side in ("from", "to")]
    return "".join(
        f"  call void @__emu_aligned(ptr {pointer}, i64 {alignment}) nomerge{copy['place']}\n"
        for pointer, alignment in sides
        if pointer in pointers and alignment and alignment != "1"
    )
