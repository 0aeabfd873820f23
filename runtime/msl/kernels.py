"""What an MSL text lets be launched: its kernels, their inputs, its function constants, and entries to call them by.

In: tokens and declarations, before anything is taken away. Out: `Kernel`s by the names that Metal's library knows
them by, and for each the C++ function that the runtime starts in every thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from metaljit.frozen import frozen
from metaljit.runtime.msl.declarations import SPACES, Declaration, Function, Instantiation, Variable, View
from metaljit.runtime.msl.tokens import Attribute, Position, Tokens

DROPPED = SPACES | {"kernel", "vertex", "fragment", "volatile", "restrict", "coherent"}
_TEXTURE = re.compile(r"\b(texture\w+|depth\w+)\s*<|\btexture_buffer\b")
_BOUND = frozenset({"buffer", "threadgroup", "texture", "sampler"})
_TAGS = {"threadgroup": "threadgroup_memory", "sampler": "sampler_"}


@frozen
class Input:
    """A parameter of a kernel: `what` is buffer, threadgroup, texture, sampler, or a built-in input's attribute.

    `index` is None where it is no plain number, `type` the erased C++ type, `is_written` whether memory that it
    points to may be written, `condition` the function constant that decides whether it is there.
    """

    what: str
    index: int | None
    name: str
    type: str
    is_written: bool
    condition: str = ""
    expression: str = ""


@frozen
class Kernel:
    """What can be launched: `call` is the C++ expression of the function, in the namespace `scope`."""

    name: str
    call: str
    scope: tuple[str, ...]
    inputs: tuple[Input, ...]
    position: Position
    most_threads: int | None


@frozen
class Constant:
    """A function constant: its name in the text, its index, its type, and where its value goes."""

    name: str
    index: str
    type: str
    at: int


@frozen
class Text:
    """A text as it was read."""

    tokens: Tokens
    view: View
    declarations: Sequence[Declaration]


def collect(text: Text) -> tuple[dict[str, Kernel], dict[str, Constant]]:
    """The kernels by name, and the function constants by name. Instantiations are taken out of the text."""
    primaries = [d for d in text.declarations if isinstance(d, Function) and d.is_kernel and d.body]
    instantiations = [d for d in text.declarations if isinstance(d, Instantiation)]
    positions = list(text.tokens.positions()) if primaries else []
    kernels: dict[str, Kernel] = {}
    for d in primaries:
        if d.template is None and not d.owner:
            kernel = _kernel(text, d, positions)
            kernels.setdefault(kernel.name, kernel)
    by_name: dict[str, list[Function]] = {}
    for d in primaries:
        by_name.setdefault(text.view.words[d.name], []).append(d)
    for i in instantiations:
        instantiated = _instantiation(text, i, by_name, positions)
        if instantiated is not None:
            kernels[instantiated.name] = instantiated
    constants = (_constant(text, d) for d in text.declarations if isinstance(d, Variable))
    return kernels, {c.name: c for c in constants if c is not None}


def _kernel(text: Text, d: Function, positions: list[Position]) -> Kernel:
    words = text.view.words
    name = words[d.name]
    inputs = tuple(_inputs(text, d.parameters))
    host_name = next((_unquoted(a.arguments) for a in d.attributes if a.name == "host_name"), "")
    call = f"static_cast<void (*)({', '.join(p.type for p in inputs)})>({name})"
    where = positions[text.view.index[d.name]]
    return Kernel(
        host_name or "::".join((*d.scope, name)), call, d.scope, inputs, where, _most_threads(d.attributes)
    )


def _instantiation(
    text: Text, d: Instantiation, primaries: Mapping[str, Sequence[Function]], positions: list[Position]
) -> Kernel | None:
    """Takes an explicit instantiation of a kernel out of the text, and keeps it under its host name."""
    words, index = text.view.words, text.view.index
    name = next((_unquoted(a.arguments) for a in d.attributes if a.name == "host_name"), "")
    if not name and not d.is_kernel:
        return None
    text.tokens.blank(index[d.start], index[d.end] - 1)
    end = text.view.pairs[d.end - 1] if words[d.end - 1] == ")" else d.end
    first = _expression_start(words, d.start, end)
    function = next((w for w in reversed(words[first : _angle(words, first, end)]) if w.isidentifier()), "")
    overloads = primaries.get(function)
    if not overloads or not name:
        return None
    primary = overloads[0]
    call = " ".join(cpp(words[first:end]))
    if end < d.end:  # the parameters say which overload, and have to be its
        given = (end, d.end - 1)
        primary = max(overloads, key=lambda f: _likeness(text.view, f.parameters, given))
        types = ", ".join(_plain_type(words[a : b + 1]) for a, b in split(text.view, *given))
        call = f"static_cast<void (*)({types})>({call})"
    most_threads = _most_threads(d.attributes + primary.attributes)
    inputs = tuple(_instantiated(text.view, primary, (first, end), _inputs(text, primary.parameters)))
    return Kernel(name, call, d.scope, inputs, positions[index[first]], most_threads)


def _instantiated(
    view: View, primary: Function, of: tuple[int, int], inputs: Iterable[Input]
) -> Iterable[Input]:
    """The parameters of a template with the arguments that `f<arguments>`, the words [of), gives."""
    arguments: dict[str, str] = {}
    angle = _angle(view.words, *of)
    if primary.template is not None:
        ours = split(view, primary.template[0] + 1, primary.template[1])
        for (a, b), (c, d) in zip(ours, split(view, angle, of[1] - 1), strict=False):
            declared = view.words[a : next((k for k in range(a, b + 1) if view.words[k] == "="), b + 1)]
            arguments[declared[-1]] = " ".join(cpp(view.words[c : d + 1]))
    for p in inputs:
        type = " ".join(arguments.get(word, word) for word in p.type.split())
        yield Input(p.what, p.index, p.name, type, p.is_written, p.condition, p.expression)


def _likeness(view: View, one: tuple[int, int], other: tuple[int, int]) -> tuple[bool, int]:
    """How like two lists of parameters are: whether there are as many, and how many words they share at their places."""
    ours, theirs = list(split(view, *one)), list(split(view, *other))
    alike = 0
    for (a, b), (c, d) in zip(ours, theirs, strict=False):
        alike += sum(x == y for x, y in zip(view.words[a : b + 1], view.words[c : d + 1], strict=False))
    return len(ours) == len(theirs), alike


def _plain_type(words: Sequence[str]) -> str:
    """The erased type of a parameter."""
    name = declared(words)
    return " ".join(cpp([w for i, w in enumerate(words) if i != name]))


def _angle(words: Sequence[str], first: int, end: int) -> int:
    return next((k for k in range(first, end) if words[k] == "<"), end)


def _expression_start(words: Sequence[str], start: int, end: int) -> int:
    """Where `ns::f<arguments>`, which ends before `end`, begins."""
    k, depth = end - 1, 0
    while k > start:
        depth += {">": 1, ")": 1, "<": -1, "(": -1}.get(words[k], 0)
        if depth == 0 and words[k].isidentifier() and words[k - 1] != "::":
            return k
        k -= 1
    return start


def _inputs(text: Text, parameters: tuple[int, int]) -> Iterable[Input]:
    """The parameters of a kernel; those without an index get the lowest free one of their kind."""
    parts = list(split(text.view, *parameters))
    read = [_input(text, first, last) for first, last in parts]
    taken: dict[str, set[int]] = {}
    for p in read:
        if p.index is not None:
            taken.setdefault(p.what, set()).add(p.index)
    for p in read:
        index = p.index
        if p.what in _BOUND and index is None and not p.expression:
            used = taken.setdefault(p.what, set())
            index = next(i for i in range(len(used) + 1) if i not in used)
            used.add(index)
        yield Input(p.what, index, p.name, p.type, p.is_written, p.condition, p.expression)


def split(view: View, first: int, last: int) -> Iterable[tuple[int, int]]:
    """The ranges of the parameters between the parentheses `first` and `last`, both ends included."""
    start = k = first + 1
    angles = 0
    while k < last:
        word = view.words[k]
        if word in ("(", "[", "{"):
            k = view.pairs[k]
        elif word in ("<", ">"):
            angles += 1 if word == "<" else -1
        elif word == "," and angles == 0:
            yield start, k - 1
            start = k + 1
        k += 1
    if start < last and view.words[start:last] != ["void"]:
        yield start, last - 1


def _input(text: Text, first: int, last: int) -> Input:
    words = text.view.words[first : last + 1]
    attributes = [a for k in range(first, last + 2) for a in text.view.attributes.get(k, ())]
    name_at = declared(words)
    name = words[name_at] if name_at is not None else ""
    bare = [w for i, w in enumerate(words) if i != name_at]
    type = " ".join(cpp(bare))
    is_written = "constant" not in bare and not ("const" in bare and bare.index("const") < _star(bare))
    condition = next((a.arguments for a in attributes if a.name == "function_constant"), "")
    main = next(
        (
            a
            for a in attributes
            if a.name not in ("function_constant", "maybe_unused", "id", "access", "user")
        ),
        None,
    )
    if main is None:
        return Input(_kind(bare, type), None, name, type, is_written, condition)
    if main.name in _BOUND:
        plain = main.arguments.replace("'", "")
        index = int(plain, 0) if re.fullmatch(r"0[xX][\da-fA-F]+|\d+", plain) else None
        return Input(
            main.name, index, name, type, is_written, condition, "" if index is not None else main.arguments
        )
    return Input(main.name, None, name, type, is_written, condition, main.arguments)


def _star(words: Sequence[str]) -> int:
    return next((i for i, w in enumerate(words) if w in ("*", "&")), len(words))


def _kind(words: Sequence[str], cpp: str) -> str:
    """What a parameter without an attribute is bound to."""
    if _TEXTURE.search(cpp):
        return "texture"
    if "sampler" in words:
        return "sampler"
    if "threadgroup" in words:
        return "local_threadgroup" if "&" in words else "threadgroup"
    return "buffer"


def declared(words: Sequence[str]) -> int | None:
    """The index of the name that a parameter declares: `T (&a)[4]`, `T* a`, `T a`; None where it has none."""
    for i, word in enumerate(words):
        if word == "=":
            words = words[:i]
            break
    nested = [i for i, w in enumerate(words) if w in ("&", "*") and i and words[i - 1] == "("]
    if nested:
        return next((i for i in range(nested[0] + 1, len(words)) if words[i].isidentifier()), None)
    end = len(words)
    while end and words[end - 1] == "]":
        end -= 1
        while end and words[end] != "[":
            end -= 1
    if end < 2 or not words[end - 1].isidentifier():
        return None
    before = words[end - 2]
    is_name = before in ("*", "&", "&&", ">") or (before.isidentifier() and before not in ("::",))
    only_words = all(w in DROPPED | {"const", "constant", "unsigned", "signed"} for w in words[: end - 1])
    return end - 1 if is_name and not only_words else None


def _unquoted(arguments: str) -> str:
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', arguments))


def _most_threads(attributes: Iterable[Attribute]) -> int | None:
    for a in attributes:
        if a.name in ("max_total_threads_per_threadgroup", "required_threads_per_threadgroup"):
            numbers = re.findall(r"\d+", a.arguments)
            if numbers and re.fullmatch(r"[\d ,]+", a.arguments):
                product = 1
                for n in numbers:
                    product *= int(n)
                return product
    return None


def _constant(text: Text, d: Variable) -> Constant | None:
    mark = next((a for a in d.attributes if a.name == "function_constant"), None)
    words = text.view.words[d.start : d.end]
    if mark is None or not words:
        return None
    kind = " ".join(w for w in words[:-1] if w not in SPACES and w != "const")
    return Constant(words[-1], mark.arguments, kind, text.view.index[d.end])


def cpp(words: Sequence[str]) -> Iterable[str]:
    """A type without address spaces, for use behind the text."""
    for word in words:
        if word == "=":
            return
        if word == "constant":
            yield "const"
        elif word not in DROPPED:
            yield word


def entry(kernel: Kernel, number: int) -> str:
    """The function that the runtime starts in each thread: it passes the inputs by their attributes."""
    tags = ", ".join(f"__emu::{_tag(p)}" for p in kernel.inputs)
    file = kernel.position.file.replace("\\", "\\\\")
    body = f"__emu::call<{tags}>({kernel.call});"
    text = f'extern "C" __EMU_ENTRY void __emu_entry_{number}() {{ {body} }}'
    for name in reversed(kernel.scope):
        text = f"namespace {name} {{ {text} }}"
    return f'#pragma clang diagnostic ignored "-Wuser-defined-warnings"\n#line {kernel.position.line} "{file}"\n{text}\n'


def _tag(p: Input) -> str:
    index = p.expression if p.index is None and p.expression else p.index
    name = _TAGS.get(p.what, p.what)
    return f"{name}<({index})>" if index is not None else name
