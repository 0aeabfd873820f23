"""MSL to C++ for OpenCL, with its address spaces: what the judge of address spaces reads.

In: a `Unit`. Out: text, line for line that of the unit. `shim/judge/` declares what the words become.

    attributes, kernel, restrict …   go: a kernel is a function like others
    device, constant …               become __judge_device, __judge_constant …
    v.xyz                            becomes v.__swizzle_3()
    a method without a space         is one for objects in thread memory, as in Metal
    an array as a parameter          is one in thread memory, as in Metal
    a threadgroup variable           becomes a reference to threadgroup memory, which may stand in any function
    a constant with an address       becomes a reference to constant memory
    words of OpenCL                  get another name
"""

from __future__ import annotations

from collections.abc import Iterator

from metaljit.runtime.msl.declarations import SPACES, Class, Function, Variable
from metaljit.runtime.msl.names import ATOMICS, SCALARS, SIGNS
from metaljit.runtime.msl.rewrite import literal, variables
from metaljit.runtime.msl.tokens import DIRECTIVE, NUMBER, WORD, Tokens, past_angle
from metaljit.runtime.msl.unit import Typed, Unit

_SPACES = {
    "device": "__judge_device",
    "constant": "__judge_constant",
    "threadgroup": "__judge_threadgroup",
    "threadgroup_imageblock": "__judge_threadgroup",
    "thread": "__judge_thread",
    "ray_data": "__judge_thread",
    "object_data": "__judge_threadgroup",
}
_GONE = frozenset({"kernel", "vertex", "fragment", "restrict", "volatile", "coherent"})
_OPENCL = frozenset(
    {"global", "local", "generic", "read_only", "write_only", "read_write", "pipe", "vec_step"}
)
_SWIZZLES = (frozenset("xyzw"), frozenset("rgba"))


def opencl(unit: Unit) -> Tokens:
    """The tokens of the judge's text."""
    read = unit.tokens
    tokens = Tokens(read.kinds, read.texts, read.gaps, [""] * len(read.texts), read.end)
    for i, kind in enumerate(read.kinds):
        if kind == DIRECTIVE and not read.texts[i].startswith(("#pragma", "#ident")):
            tokens.words[i] = read.texts[i]
    _words(unit, tokens)
    seen: set[tuple[object, ...]] = set()
    for f in unit.functions:
        _method(unit, tokens, f, seen)
        _array_parameters(unit, tokens, f)
    _constants(unit, tokens)
    for k in _threadgroup_variables(unit):
        _threadgroup_variable(unit, tokens, k)
    return tokens


def _words(unit: Unit, tokens: Tokens) -> None:
    words, index = unit.words, unit.view.index
    k, n = 0, len(words)
    while k < n:
        word, i = words[k], index[k]
        if word == "coherent" and words[k + 1 : k + 2] == ["("]:
            tokens.words[i] = _SPACES["device"]
            k = unit.view.pairs[k + 1]
        elif tokens.kinds[i] == WORD:
            tokens.words[i] = _word(unit, k)
        elif tokens.kinds[i] == NUMBER and word[-1] not in "hH":
            tokens.words[i] = literal(word)
        else:
            tokens.words[i] = word
        k += 1


def _word(unit: Unit, k: int) -> str:
    words, word = unit.words, unit.words[k]
    before = words[k - 1] if k else ""
    if word in _SPACES and before not in (".", "->", "::"):
        defines = before == "typedef" and words[k + 1] in ("struct", "class", "union")
        return "" if defines else _SPACES[word]
    if word in _GONE and before not in (".", "->", "::"):
        return ""
    if before in (".", "->") and 2 <= len(word) <= 4 and any(set(word) <= s for s in _SWIZZLES):
        if word not in unit.members and words[k + 1 : k + 2] != ["("]:
            return f"__swizzle_{len(word)}()"
    if word.startswith("__metal_") and words[k + 1 : k + 2] == ["("]:
        return "__judge_builtin"
    if word.startswith("__METAL_"):
        return "0"
    if word in ATOMICS:
        return f"__judge_{word}" if word not in unit.names else f"{word}_"
    return f"{word}_" if word in _OPENCL else word


# ---- methods ----


def _method(unit: Unit, tokens: Tokens, f: Function, seen: set[tuple[object, ...]]) -> None:
    words, index = unit.words, unit.view.index
    owner = f.owner or (words[f.name - 2] if words[f.name - 1 : f.name] == ["::"] else "")
    if not f.owner and owner not in unit.classes:
        return
    end = f.body[0] if f.body else f.end
    end = next((k for k in range(f.parameters[1], end) if words[k] in (":", "->", "=")), end)
    qualifiers = range(f.parameters[1] + 1, end)
    spaces = [k for k in qualifiers if words[k] in SPACES and words[k - 1] not in ("(", ",")]
    before = words[f.start : f.name]
    if words[f.name] == owner or "~" in before:
        for k in (*spaces, *(k for k in qualifiers if words[k] == "const")):
            tokens.words[index[k]] = ""
        _once(unit, tokens, f, (_class_start(unit, f), *words[f.start : f.parameters[1]]), seen)
    elif "static" in before or "friend" in before:
        return
    elif any(words[k] in ("device", "constant") for k in spaces):
        # Clang has no word for a method of such an object: this one is for objects anywhere, and so is its result.
        is_const = "const" in words[f.parameters[1] : end]
        for k in spaces:
            tokens.words[index[k]] = "const" if words[k] == "constant" and not is_const else ""
        for k in range(f.start, f.name):
            if words[k] in ("device", "constant"):
                tokens.words[index[k]] = ""
        one = [w for w in words[f.start : f.parameters[1]] if w not in SPACES]
        _once(unit, tokens, f, (_class_start(unit, f), *one, is_const or "constant" in before), seen)
    elif not spaces and words[end : end + 2] not in (["=", "default"], ["=", "delete"]):
        at = f.parameters[1]
        while words[at + 1] in ("const", "volatile"):
            at += 1
        tokens.append(index[at], " __judge_thread")


def _array_parameters(unit: Unit, tokens: Tokens, f: Function) -> None:
    """An array as a parameter is in thread memory, also where a template deduces it."""
    for t in unit.parameters(f):
        if len(t.levels) == 1 and unit.words[t.levels[0].at] == "[" and not t.levels[0].spaces:
            i = unit.view.index[t.start]
            tokens.words[i] = f"__judge_thread {tokens.words[i]}"


def _once(
    unit: Unit, tokens: Tokens, f: Function, one: tuple[object, ...], seen: set[tuple[object, ...]]
) -> None:
    """Of functions that differ in the space of their object alone, the first one stays."""
    index = unit.view.index
    if one in seen:
        for i in range(index[f.start], index[f.end] + 1):
            tokens.words[i] = tokens.words[i] if tokens.kinds[i] == DIRECTIVE else ""
    seen.add(one)


def _class_start(unit: Unit, f: Function) -> int:
    """The brace of the class that a method belongs to."""
    return max(
        (d.body[0] for d in unit.declarations if isinstance(d, Class) and d.body[0] < f.start < d.body[1]),
        default=-1,
    )


# ---- variables ----


def _constants(unit: Unit, tokens: Tokens) -> None:
    for d in unit.declarations:
        if isinstance(d, Variable):
            start, is_template = d.start, False
            while unit.words[start] == "template" and unit.words[start + 1 : start + 2] == ["<"]:
                start, is_template = (
                    past_angle(unit.words, unit.view.pairs, start + 1, is_sure=True) or d.end,
                    True,
                )
            typed = unit.read(start, d.end)
            if is_template:
                for k in range(start, d.end):
                    if unit.words[k] == "=":
                        break
                    if unit.words[k] == "constant":
                        tokens.words[unit.view.index[k]] = "const"
            elif typed and typed.name is not None and "constant" in typed.own and not typed.levels:
                is_function_constant = any(a.name == "function_constant" for a in d.attributes)
                _constant(unit, tokens, typed, d.end, bool(d.owner))
                if is_function_constant:
                    tokens.words[unit.view.index[d.end]] = " = {};"
    for f in unit.functions:
        for typed in unit.locals(f):
            if "constant" in typed.own and not typed.levels and typed.name is not None and f.body:
                _, end = variables(unit.view, typed.start, f.body[1])
                if end is not None:
                    _constant(unit, tokens, typed, end, False, is_local=True)


def _constant(unit: Unit, tokens: Tokens, t: Typed, end: int, is_plain: bool, is_local: bool = False) -> None:
    """A constant that is a number stays one; an array or object is reached by a reference to constant memory."""
    words, index = unit.words, unit.view.index
    assert t.name is not None
    is_number = (t.base[0] in SCALARS | SIGNS or t.base[-1] in SCALARS) and words[t.name + 1] != "["
    space = next(k for k in range(t.start, t.name) if words[k] == "constant")
    has_const = any(words[k] in ("const", "constexpr") for k in range(t.start, t.name))
    if is_plain or is_number or "extern" in t.specifiers:
        tokens.words[index[space]] = "" if has_const else "const"
        return
    names = variables(unit.view, t.name, end + 1)[0] or [words[t.name]]
    static = "static " if is_local and "static" not in t.specifiers else ""
    for k in range(t.start, t.name):
        if words[k] == "constexpr":
            tokens.words[index[k]] = ""
    tokens.words[index[t.start]] = static + tokens.words[index[t.start]]
    tokens.words[index[space]] = tokens.words[index[space]].replace("__judge_constant", "__global const")
    for k in range(t.name, end):
        if words[k] in names and words[k + 1] in ("=", "[", "{", ",", ";", "("):
            tokens.words[index[k]] = f"__judge_{words[k]}"
    places = "".join(f" auto& {n} = __judge_place(__judge_{n});" for n in dict.fromkeys(names))
    tokens.append(index[end], places)


def _threadgroup_variables(unit: Unit) -> Iterator[int]:
    """Where the declarations of threadgroup variables stand in bodies."""
    for f in unit.functions:
        for t in unit.locals(f):
            if "threadgroup" in t.own and not t.levels:
                yield next(k for k in range(t.start, t.end) if unit.words[k] == "threadgroup")


def _threadgroup_variable(unit: Unit, tokens: Tokens, k: int) -> None:
    words, index = unit.words, unit.view.index
    names, end = variables(unit.view, k + 1, len(words))
    if end is None or not names:
        return
    tokens.words[index[k]] = "typedef"
    for at in range(k + 1, end):
        if words[at] in names and words[at + 1] in ("[", ",", ";") and words[at - 1] not in ("[", "<"):
            tokens.words[index[at]] = f"__judge_{words[at]}"
    groups = "".join(f" __local __judge_{n}& {n} = __judge_group<__judge_{n}>();" for n in names)
    tokens.append(index[end], groups)
