"""Rules about single words: what Metal leaves out of C++, names that are taken, and what needs a later version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import Function
from metaljit.runtime.msl.tokens import DIRECTIVE, NUMBER
from metaljit.runtime.msl.unit import Finding, Unit

_FOLLOWS_A_NAME = frozenset(
    {"=", ";", "[", ")", ",", "+", "-", "/", ".", "->", "+=", "-=", "*=", "==", "<=", ">="}
)
_NUMBER = re.compile(
    r"0[xX][\da-fA-F']*\.?[\da-fA-F']*(?:[pP][+-]?[\d']+)?|0[bB][01']+|[\d']*\.?[\d']*(?:[eE][+-]?[\d']+)?"
)
_WHOLE = frozenset({"u", "l", "ul", "lu", "ll", "ull", "llu"})
_SUFFIXES = _WHOLE | {"f", "h", "bf"}
_LONG_DOUBLE = re.compile(r"(?!0[xX])[\d.']*(\.|\d[eE][+-]?)[\d']*[lL]")
_BEFORE_A_LAMBDA = frozenset({"(", ",", "=", "return", "{", ";", "}", "&&", "||", "?", ":"})
_HEADER = re.compile(r'#\s*(?:line\s+)?\d+\s+"(?:.*/)?([^/"]+)"')


def forbidden_words(unit: Unit) -> Iterator[Finding]:
    words = unit.words
    for k, word in enumerate(words):
        if word in names.FORBIDDEN and not (word == "delete" and words[k - 1] == "="):
            yield unit.finding("msl-unsupported", k, *names.FORBIDDEN[word])
        elif word == "long" and words[k + 1 : k + 2] == ["long"]:
            yield unit.finding(
                "msl-unsupported", k, "`long long` is not supported in Metal", "`long` has 64 bits"
            )
        elif word == "std" and _is_namespace(words, k) and not _declares_std(unit):
            message = "there is no namespace `std` in Metal"
            yield unit.finding("msl-unsupported", k, message, "what Metal has of it is in `metal::`")
        elif word == "..." and words[k - 1 : k + 2] == [",", "...", ")"] and _is_parameter_list(unit, k + 1):
            yield unit.finding(
                "msl-unsupported", k, "variable argument lists are not supported in Metal", "use a template"
            )


def _is_namespace(words: list[str], k: int) -> bool:
    """Whether word k is a namespace that is looked into: `std::x`, `using namespace std`."""
    return (words[k + 1 : k + 2] == ["::"] and words[k - 1] != "::") or words[k - 2 : k] == [
        "using",
        "namespace",
    ]


def later_words(unit: Unit) -> Iterator[Finding]:
    """What C++20 brought: Metal is C++14, and C++17 from 4.0 on."""
    words = unit.words
    for k, word in enumerate(words):
        following = words[k + 1] if k + 1 < len(words) else ""
        if word in names.LATER_WORDS and (following.isidentifier() or following == "("):
            message = f"`{word}` is a word of C++20, which Metal does not have"
            yield unit.finding(
                "msl-unsupported",
                k,
                message,
                "use enable_if, or static_assert" if word in ("concept", "requires") else "",
            )
        elif word == "noexcept" and words[k + 1 : k + 2] == ["("] and _is_operand(words, k):
            yield unit.finding("msl-unsupported", k, "the operator `noexcept` is not supported in Metal")
        elif (
            word == "auto"
            and words[k - 1] in ("<", ",")
            and unit.version < names.AUTO_PARAMETERS_SINCE
            and _is_template_parameter(unit, k)
        ):
            yield _late(unit, k, "`template <auto …>`", names.AUTO_PARAMETERS_SINCE, "name the type")
    for f in unit.functions:
        for t in unit.parameters(f):
            if t.base == ("auto",):
                message = "a parameter of a function cannot be `auto` in Metal"
                yield unit.finding(
                    "msl-unsupported", t.start if t.name is None else t.name, message, "write a template"
                )


def _is_operand(words: list[str], k: int) -> bool:
    """Whether a `noexcept` stands where a value does, and not behind a function's parameters."""
    return words[k - 1] in ("=", "(", ",", "return", "!", "&&", "||", "?", ":", "<")


def _is_template_parameter(unit: Unit, k: int) -> bool:
    found = (d.template for d in unit.declarations if isinstance(d, Function))
    return any(t and t[0] < k < t[1] for t in found)


def _declares_std(unit: Unit) -> bool:
    return any("std" in d.scope for d in unit.declarations)


def _is_parameter_list(unit: Unit, close: int) -> bool:
    return any(f.parameters[1] == close for f in unit.functions)


def literals(unit: Unit) -> Iterator[Finding]:
    """Numbers have the suffixes of Metal's types."""
    for k, i in enumerate(unit.view.index):
        if unit.tokens.kinds[i] != NUMBER:
            continue
        word = unit.words[k]
        if _LONG_DOUBLE.fullmatch(word):
            message = "a literal of type `long double` is not supported in Metal"
            yield unit.finding("msl-unsupported", k, message, f"write {word[:-1]}f")
        elif (found := _NUMBER.match(word)) and found.end() < len(word):
            rest = word[found.end() :]
            is_whole = found[0].replace("'", "").isdigit()
            if rest.isalnum() and rest.lower() not in (_WHOLE if is_whole else _SUFFIXES):
                message = f"invalid suffix `{rest}` on a number"
                yield unit.finding("msl-refused", k, message, "use f, h, bf, u, l or ul, or a cast")


def lambdas(unit: Unit) -> Iterator[Finding]:
    if unit.version >= names.LAMBDAS_SINCE:
        return
    words = unit.words
    for k, word in enumerate(words):
        if (
            word == "["
            and words[k - 1] in _BEFORE_A_LAMBDA
            and words[unit.view.pairs[k] + 1] in ("(", "{", "mutable", "->")
        ):
            yield _late(unit, k, "lambda expressions", names.LAMBDAS_SINCE, "write a function")


def words_as_names(unit: Unit) -> Iterator[Finding]:
    """Words of the language where a name is declared or used."""
    words = unit.words
    taken = names.SPACE_WORDS | names.STAGE_WORDS | {"as_type"}
    for k, word in enumerate(words):
        if word.startswith(("__emu", "__EMU")) and word != "__EMU__":
            yield _reserved(unit, k, f"`{word}`: names that begin with __emu belong to the emulator")
        if word not in taken or words[k + 1 : k + 2] == []:
            continue
        is_name = words[k + 1] in _FOLLOWS_A_NAME and words[k - 1] not in (".", "->", "::", "<")
        if (is_name and not _qualifies(words, k)) or words[k - 1] in ("namespace", "typename"):
            yield _reserved(unit, k, f"`{word}` is a word of Metal and cannot be a name")


def _qualifies(words: list[str], k: int) -> bool:
    """Whether an address space stands behind the parameters of a method, or in `coherent(device)`."""
    while words[k - 1] in names.SPACE_WORDS | {"const", "volatile"}:
        k -= 1
    return words[k - 1] == ")" or words[k - 2 : k] == ["coherent", "("]


def declared_names(unit: Unit) -> Iterator[Finding]:
    """Variables and functions that are called like a type or a macro of Metal's."""
    types = names.TYPE_WORDS | ({"bfloat"} if unit.version >= names.SINCE["bfloat"] else set())
    places = [t.name for t in unit.variables if t.name is not None] + [f.name for f in unit.functions]
    for k in places:
        word = unit.words[k]
        if unit.words[k - 1 : k] == ["operator"]:
            continue
        if word in types:
            yield _reserved(unit, k, f"`{word}` is a type and cannot be a name")
        elif word in names.MACROS:
            yield _reserved(unit, k, f"`{word}` is a macro of the Metal library and cannot be a name")


def main_function(unit: Unit) -> Iterator[Finding]:
    for f in unit.functions:
        if unit.words[f.name] == "main" and not f.owner and not f.scope:
            yield _reserved(unit, f.name, "a function cannot be called `main`")


def _reserved(unit: Unit, k: int, message: str) -> Finding:
    return unit.finding("msl-reserved-name", k, message, "choose another name")


# ---- versions ----


def late_names(unit: Unit) -> Iterator[Finding]:
    """Names of the library that came later, each once; not those that the text declares itself."""
    late = {n: v for n, v in names.SINCE.items() if v > unit.version and n not in unit.names}
    for k, word in enumerate(unit.words):
        if word in late and not unit.is_member(k):
            yield _late(unit, k, f"`{word}`", late.pop(word))
        elif word in ("tensor", "coherent") and word not in unit.names and not unit.is_member(k):
            since, follows = ((4, 0), "<") if word == "tensor" else ((3, 2), "(")
            if unit.version < since and unit.words[k + 1 : k + 2] == [follows]:
                yield _late(unit, k, f"`{word}{follows}…`", since)


def late_atomics(unit: Unit) -> Iterator[Finding]:
    if "atomic" in unit.names:
        return
    words = unit.words
    for k, word in enumerate(words):
        if word != "atomic" or words[k + 1 : k + 2] != ["<"] or unit.is_member(k):
            continue
        element = words[k + 2]
        since = names.ATOMIC_SINCE.get(element, (2, 4))
        if unit.version < since:
            yield _late(unit, k, f"`atomic<{element}>`", since, "use atomic_int or atomic_uint")
        elif element in names.TYPES and element not in names.ATOMIC_SINCE and words[k + 3] == ">":
            message = f"there is no `atomic<{element}>` in Metal"
            yield unit.finding("msl-unsupported", k, message, "use int, uint, bool, ulong or float")


def late_attributes(unit: Unit) -> Iterator[Finding]:
    for attributes in unit.view.attributes.values():
        for a in attributes:
            since = names.ATTRIBUTE_SINCE.get(a.name, (0, 0))
            if unit.version < since:
                yield Finding("msl-needs-version", a.at, _needs(unit, f"`[[{a.name}]]`", since))


def headers(unit: Unit) -> Iterator[Finding]:
    """Headers that came later, and the library used without its header."""
    included = set()
    for i, kind in enumerate(unit.tokens.kinds):
        if kind == DIRECTIVE and (found := _HEADER.match(unit.tokens.texts[i])):
            since = names.HEADER_SINCE.get(found[1], (0, 0))
            if unit.version < since and found[1] not in included:
                yield Finding("msl-needs-version", i, _needs(unit, f"<{found[1]}>", since))
            included.add(found[1])
    if not any(name.startswith("metal_") for name in included):
        for k, word in enumerate(unit.words):
            if word == "metal" and (unit.words[k + 1 : k + 2] == ["::"] or unit.words[k - 1] == "namespace"):
                message = "there is no namespace `metal` without its header"
                yield unit.finding(
                    "msl-unsupported", k, message, "write `#include <metal_stdlib>` at the top"
                )
                return


def _late(unit: Unit, k: int, what: str, since: names.Version, instead: str = "") -> Finding:
    return unit.finding("msl-needs-version", k, _needs(unit, what, since), instead)


def _needs(unit: Unit, what: str, since: names.Version) -> str:
    verb = "need" if what.endswith("s") else "needs"
    return f"{what} {verb} Metal {since[0]}.{since[1]}; this text is for {unit.version[0]}.{unit.version[1]}"
