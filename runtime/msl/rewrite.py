"""MSL to the C++ that clang compiles for the emulator: address spaces erased, kernels given entries.

In: preprocessed MSL. Out: a `Translation`, whose `source` is the same text, line for line, with an entry behind
it for each kernel that is asked for. The rules, in the order in which they run:

    attributes          [[…]] leaves the text; those of parameters say what an entry passes
    instantiations      template [[host_name("x")]] … becomes a kernel that may be asked for
    words               device, thread, kernel, volatile … go; constant becomes const; 1.0 becomes 1.0f
    kernels             are marked, so that clang tells of a call that it resolves to one
    shifts              take their count modulo the width
    loops               with exchanges between lanes in them count their turns
    duplicates          of functions that differed in address spaces only, the first stays
    threadgroup memory  a threadgroup variable becomes a static one that the runtime is told of
    function constants  become constants with the values of this compilation
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from metaljit.frozen import mutable
from metaljit.runtime.msl.declarations import Class, Declaration, Function, View, declarations, view
from metaljit.runtime.msl.kernels import DROPPED, Constant, Kernel, Text, collect, cpp, declared, entry, split
from metaljit.runtime.msl.loops import mark_loops
from metaljit.runtime.msl.names import LATER_WORDS
from metaljit.runtime.msl.tokens import NUMBER, WORD, Tokens, lex, past_angle

_FLOAT = re.compile(r"(?!0[xX])[\d.']*(?:\d|\.)(?:[eE][+-]?\d+)?|0[xX][\da-fA-F.']+[pP][+-]?\d+")
_DEFINED = re.compile(r"\bis_function_constant_defined\s*\(\s*(\w+)\s*\)")


@mutable
class Translation:
    """A text without address spaces; `source` gives it with entries and the values of function constants."""

    tokens: Tokens
    view: View
    declarations: list[Declaration]
    kernels: dict[str, Kernel]
    constants: dict[str, Constant]

    def source(self, names: Sequence[str], values: Mapping[str, str] | None = None) -> str:
        """The C++ text with an entry `__emu_entry_i` for `names[i]`, and these values of function constants."""
        given = values or {}
        words = self.tokens.words.copy()
        for constant in self.constants.values():
            value = given.get(constant.name, given.get(constant.index))
            words[constant.at] = f" = {value if value is not None else '{}'};"
        text = "".join(part for pair in zip(self.tokens.gaps, words, strict=True) for part in pair)
        defined = {c.name: c.name in given or c.index in given for c in self.constants.values()}
        if defined:
            text = _DEFINED.sub(lambda m: "true" if defined.get(m[1]) else "false", text)
        entries = (entry(self.kernels[name], i) for i, name in enumerate(names))
        return f"{text}{self.tokens.end}\n{''.join(entries)}"


def translate(preprocessed: str) -> Translation:
    """The translation of a preprocessed text. Unbalanced where a bracket has no partner."""
    tokens = lex(preprocessed)
    seen = view(tokens)
    found = declarations(seen)
    kernels, constants = collect(Text(tokens, seen, found))  # parameters are read with their address spaces
    _words(tokens, seen)
    _shifts(tokens, seen)
    mark_loops(tokens, seen, found)
    removed = _duplicates(tokens, seen, found)
    for declaration in found:
        if isinstance(declaration, Function) and declaration not in removed:
            if declaration.is_kernel and seen.words[declaration.name - 1] != "::":
                tokens.append(seen.index[declaration.name - 1], " __EMU_KERNEL")
            if declaration.owner:
                _method_qualifiers(tokens, seen, declaration)
            if declaration.body:
                _threadgroup_memory(tokens, seen, declaration)
    return Translation(tokens, seen, found, kernels, constants)


def _words(tokens: Tokens, view: View) -> None:
    """Takes away what C++ does not know, and gives literals their type."""
    words, index = view.words, view.index
    for k, word in enumerate(words):
        i = index[k]
        if tokens.words[i].isspace():  # taken away before
            continue
        if tokens.kinds[i] == NUMBER:
            tokens.words[i] = literal(word)
        elif tokens.kinds[i] != WORD:
            continue
        elif word == "constant":
            tokens.replace(i, "const")
        elif word == "coherent" and words[k + 1 : k + 2] == ["("]:
            tokens.blank(i, index[view.pairs[k + 1]])
        elif word in DROPPED and not _is_member(words, k):
            tokens.replace(i, "")
        elif word in LATER_WORDS:
            tokens.replace(i, f"{word}_")


def _shifts(tokens: Tokens, view: View) -> None:
    """`a << b` becomes `a << __EMU_LEFT b`; a `>>` that may close two template argument lists stays."""
    words, index = view.words, view.index
    closing: set[int] = set()
    for k, word in enumerate(words):
        if word == "<" and (past := past_angle(words, view.pairs, k)) is not None:
            closing.add(past - 1)
        before = words[k - 1] if k else ""
        if word in ("<<", "<<=") and before != "operator":
            tokens.append(index[k], " __EMU_LEFT ")
        elif word in (">", ">=") and before == ">" and not tokens.gaps[index[k]]:
            if closing.isdisjoint((k - 1, k)) and words[k - 2] != "operator":
                tokens.append(index[k], " __EMU_RIGHT ")


def _is_member(words: Sequence[str], k: int) -> bool:
    """Whether a word is somebody's own name: `a.object`, `metal::kernel`."""
    return k > 0 and words[k - 1] in (".", "->", "::")


def literal(text: str) -> str:
    """A floating literal as C++ reads it as float, half or bfloat; anything else as it is."""
    suffix = re.search(r"(bf|BF|[fFhH])$", text)
    is_hexadecimal = text[:2] in ("0x", "0X")
    if is_hexadecimal and "p" not in text.lower():
        return text
    body = text[: suffix.start()] if suffix else text
    is_floating = "." in body or re.search(r"[eE][+-]?\d+$", body) or is_hexadecimal
    match suffix and suffix[0].lower():
        case None:
            return text + "f" if is_floating and _FLOAT.fullmatch(text) else text
        case "h":
            return f"{body}f16" if is_floating else f"{body}.0f16"
        case "bf":
            return f"bfloat({body}f)" if is_floating else f"bfloat({body}.0f)"
    return text


def _duplicates(tokens: Tokens, view: View, found: Sequence[Declaration]) -> set[Declaration]:
    """Removes functions and class specialisations whose header an earlier one in the same scope had."""
    seen: dict[tuple[object, ...], set[str]] = {}
    removed: set[Declaration] = set()
    gone: list[tuple[int, int]] = []
    for d in found:
        if any(first <= d.start <= last for first, last in gone):
            removed.add(d)
            continue
        if not isinstance(d, Function | Class) or (key := _identity(view, d)) is None:
            continue
        header = " ".join(view.words[d.start : d.body[0] if d.body else d.end])
        if key in seen and header not in seen[key]:  # the same header again is clang's to refuse
            removed.add(d)
            gone.append((d.start, d.end))
            tokens.blank(view.index[d.start], view.index[d.end])
        seen.setdefault(key, set()).add(header)
    return removed


def _identity(view: View, d: Declaration) -> tuple[object, ...] | None:
    words = view.words
    match d:
        case Function(
            start=start, name=name, parameters=(opened, closed), body=body, scope=scope, owner=owner
        ):
            if body is None and not owner:
                return None
            types = [_type(words[a : b + 1]) for a, b in split(view, opened, closed)]
            before = tuple(
                w for w in _erased(words[start:name]) if w not in ("const", "inline", "static", "METAL_FUNC")
            )
            # The object that a constructor makes has any space: `constant` is no `const` there.
            qualifiers = () if words[name] == owner else cpp(words[closed + 1 : _qualifiers_end(view, d)])
            after = tuple(sorted(set(qualifiers)))
            return (
                scope,
                owner,
                _owner_start(view, d),
                before,
                tuple(words[name:opened]),
                tuple(types),
                after,
                body is None,
            )
        case Class(start=start, body=(brace, _), scope=scope, owner=owner):
            return (scope, owner, tuple(_erased(words[start:brace])))
        case _:
            return None


def _erased(words: Sequence[str]) -> list[str]:
    """A header without address spaces, with the defaults of its template parameters."""
    return ["const" if word == "constant" else word for word in words if word not in DROPPED]


def _type(words: Sequence[str]) -> tuple[str, ...]:
    """The erased type of a parameter: `const constant T` has one `const`."""
    name = declared(words)
    erased = list(cpp([w for i, w in enumerate(words) if i != name]))
    return tuple(w for i, w in enumerate(erased) if w != "const" or erased[i - 1 : i] != ["const"])


def _owner_start(view: View, d: Function) -> int:
    """The brace of the class that a method belongs to: two classes may have one name, as specialisations do."""
    if not d.owner:
        return -1
    k = d.start - 1
    while k >= 0 and view.words[k] != "{":
        k = view.pairs[k] - 1 if view.words[k] == "}" else k - 1
    return k


def _qualifiers_end(view: View, d: Function) -> int:
    """Where the words behind the parameters end: at the body, the initialisers or the `;`."""
    k, end = d.parameters[1] + 1, d.body[0] if d.body else d.end
    while k < end and view.words[k] not in (":", "->", "="):
        k += 1
    return k


def _method_qualifiers(tokens: Tokens, view: View, d: Function) -> None:
    """`f() const constant` has one `const` too many, and a constructor none at all."""
    qualifiers = range(d.parameters[1] + 1, _qualifiers_end(view, d))
    is_constructor = view.words[d.name] == d.owner
    has_const = is_constructor
    for k in qualifiers:
        if view.words[k] in ("const", "constant"):
            if has_const:
                tokens.replace(view.index[k], "")
            has_const = True


def _threadgroup_memory(tokens: Tokens, view: View, d: Function) -> None:
    """`threadgroup T x[n];` in a function becomes static, and the runtime is told of it."""
    assert d.body is not None
    words = view.words
    for k in range(d.body[0] + 1, d.body[1]):
        if words[k] != "threadgroup" or words[k - 1] not in ("{", "}", ";", "const", ")", ":"):
            continue
        names, end = variables(view, k + 1, d.body[1])
        if end is None or not names:
            continue
        tokens.replace(view.index[k], "static")
        calls = "".join(f' __emu_threadgroup_memory((void*)&{n}, sizeof({n}), "{n}");' for n in names)
        tokens.append(view.index[end], calls)


def variables(view: View, first: int, last: int) -> tuple[list[str], int | None]:
    """The names that a declaration defines, and its `;`; none where it declares pointers or references."""
    words, pairs = view.words, view.pairs
    names: list[str] = []
    k, angles, is_assigned = first, 0, False
    while k < last:
        word = words[k]
        if word in ("__attribute__", "alignas") and words[k + 1] == "(":
            past = pairs[k + 1] + 1
            if words[k - 1].isidentifier() and words[past] in (";", ",", "=", "["):
                names.append(words[k - 1])
            k = past
            continue
        if word == ";" or (word in ("=", ",", "[", "{") and angles == 0):
            if not is_assigned and words[k - 1].isidentifier():
                names.append(words[k - 1])
            is_assigned = word in ("=", "{") or (is_assigned and word != ",")
            if word == ";":
                return names, k
        if word in ("*", "&", "(") and angles == 0 and not is_assigned:
            return [], None
        if word in ("<", ">"):
            angles += 1 if word == "<" else -1
        if word in ("(", "[", "{"):
            k = pairs[k]
        k += 1
    return [], None
