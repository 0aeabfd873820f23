"""Rules about components of vectors: they have no address, and no reference names one.

A component is told from an element or a member by the declarations of the text: `v.x` and `v[i]` of a vector `v`,
`p[i].x` and `p->x` of a pointer to vectors or of an array of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from metaljit.frozen import frozen
from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import Function, Variable
from metaljit.runtime.msl.kernels import split
from metaljit.runtime.msl.unit import Finding, Typed, Unit

_LETTERS = frozenset("xyzwrgba")
# Functions of the library whose second argument is a reference that they write.
_WRITERS = frozenset({"frexp", "modf", "sincos"})


@frozen
class _Vectors:
    """Names that stand for vectors: of a function's own variables, and of members of classes. By name, how many
    subscripts lead to the vector."""

    own: Mapping[str, int | None]
    members: Mapping[str, int | None]


def component_addresses(unit: Unit) -> Iterator[Finding]:
    """A component of a vector has no address: `&v.x`."""
    words = unit.words
    for f, vectors in _functions(unit):
        assert f.body is not None
        for k in range(f.body[0] + 1, f.body[1]):
            if words[k] == "&" and _is_prefix(words[k - 1]) and words[k + 1].isidentifier():
                end = _end(unit, k + 1)
                if _is_component(unit, vectors, k + 1, end):
                    message = "the address of a vector's component cannot be taken"
                    help = "copy it to a variable and write it back"
                    yield unit.finding("msl-refused", _component(unit, end), message, help)


def component_references(unit: Unit) -> Iterator[Finding]:
    """A reference that may be written does not name a component: in a declaration, or as an argument."""
    written = _written_parameters(unit)
    for f, vectors in _functions(unit):
        for first, last in (*_initialisers(unit, f), *_arguments(unit, f, written)):
            if unit.words[first].isidentifier() and _end(unit, first) == last:
                if _is_component(unit, vectors, first, last):
                    message = "a reference cannot name a vector's component"
                    help = "copy it to a variable and write it back"
                    yield unit.finding("msl-refused", _component(unit, last), message, help)


def long_lists(unit: Unit) -> Iterator[Finding]:
    """A list in braces has no more values than the vector has components."""
    words = unit.words
    lists = [(t.base, t.end) for f in unit.functions for t in unit.locals(f) if not t.levels]
    lists += [((word,), k + 1) for k, word in enumerate(words[:-1]) if word in names.VECTORS]
    for base, k in lists:
        opened = k + (words[k] == "=")
        if base[-1] in names.VECTORS and words[opened] == "{":
            values = list(split(unit.view, opened, unit.view.pairs[opened]))
            most = int(base[-1][-1])
            if len(values) > most:
                message = f"excess elements in vector initializer: `{base[-1]}` has {most}"
                yield unit.finding("msl-refused", values[most][0], message, "leave them out")


def _initialisers(unit: Unit, f: Function) -> Iterator[tuple[int, int]]:
    """The values of the references that a function declares, first and last word."""
    for t in unit.locals(f):
        if _is_written_reference(unit, t) and unit.words[t.end] in ("=", "(", "{"):
            last = unit.view.pairs[t.end] if unit.words[t.end] != "=" else t.end + 1
            while unit.words[t.end] == "=" and unit.words[last] not in (";", ",", ")", ":"):
                last = unit.view.pairs[last] + 1 if unit.words[last] in ("(", "[", "{") else last + 1
            yield t.end + 1, last - 1


def _written_parameters(unit: Unit) -> dict[str, list[int]]:
    """Which parameters are references that are written, of the text's functions that have one meaning and of the
    library's."""
    written: dict[str, list[int]] = {name: [1] for name in _WRITERS}
    for g in unit.functions:
        name, parameters = unit.words[g.name], unit.parameters(g)
        found = [i for i, t in enumerate(parameters) if _is_written_reference(unit, t)]
        written[name] = [] if name in written else found
    return {name: which for name, which in written.items() if which}


def _arguments(unit: Unit, f: Function, written: Mapping[str, list[int]]) -> Iterator[tuple[int, int]]:
    """The arguments that a function passes to references."""
    words = unit.words
    assert f.body is not None
    for k in range(f.body[0] + 1, f.body[1]):
        if words[k] in written and words[k + 1] == "(":
            ranges = list(split(unit.view, k + 1, unit.view.pairs[k + 1]))
            yield from (ranges[i] for i in written[words[k]] if i < len(ranges))


def _is_written_reference(unit: Unit, t: Typed) -> bool:
    is_reference = bool(t.levels) and unit.words[t.levels[-1].at] == "&"
    return is_reference and "const" not in t.specifiers and "constant" not in t.spaces


# ---- which names are vectors ----


def _functions(unit: Unit) -> Iterator[tuple[Function, _Vectors]]:
    members: dict[str, int | None] = {}
    for d in unit.declarations:
        if isinstance(d, Variable) and d.owner:
            typed = unit.read(d.start, d.end)
            if typed and typed.name is not None:
                _add(unit, members, typed)
    for f in unit.functions:
        if f.body:
            own: dict[str, int | None] = {}
            for t in (*unit.parameters(f), *unit.locals(f)):
                if t.name is not None:
                    _add(unit, own, t)
            yield f, _Vectors(own, members)


def _add(unit: Unit, known: dict[str, int | None], t: Typed) -> None:
    """Adds the names of a declaration; None for one that is no vector, or not everywhere."""
    words, pairs = unit.words, unit.view.pairs
    assert t.name is not None
    is_vector = t.base[-1] in names.VECTORS or t.base[:1] == ("vec",) or t.base[:3] == ("metal", "::", "vec")
    stars = sum(words[level.at] == "*" for level in t.levels)
    name, k = t.name, t.end
    while True:
        dimensions = stars
        while words[k] == "[":
            dimensions, k = dimensions + 1, pairs[k] + 1
        value = dimensions if is_vector else None
        known[words[name]] = value if known.get(words[name], value) == value else None
        if words[k] in ("=", "{", "("):
            while words[k] not in (",", ";", ")", "}", "]"):
                k = pairs[k] + 1 if words[k] in ("(", "[", "{") else k + 1
        if words[k] != "," or t.levels or not words[k + 1].isidentifier():
            return
        name, k = k + 1, k + 2


# ---- expressions ----


def _is_prefix(before: str) -> bool:
    return not (before[:1].isalnum() or before[:1] == "_" or before in (")", "]")) or before == "return"


def _end(unit: Unit, k: int) -> int:
    """The last word of `a.b[i]->c`, which begins at k."""
    words = unit.words
    while True:
        if words[k + 1] in (".", "->") and words[k + 2].isidentifier():
            k += 2
        elif words[k + 1] == "[":
            k = unit.view.pairs[k + 1]
        else:
            return k


def _component(unit: Unit, end: int) -> int:
    return end if unit.words[end] != "]" else unit.view.pairs[end]


def _is_component(unit: Unit, vectors: _Vectors, first: int, end: int) -> bool:
    words = unit.words
    if words[end + 1] == "(":
        return False
    k, arrows, has_letters = end, 0, words[end] != "]"
    if has_letters:
        if not set(words[end]) <= _LETTERS or words[end - 1] not in (".", "->"):
            return False
        arrows, k = int(words[end - 1] == "->"), end - 2
    subscripts = arrows
    while words[k] == "]":
        subscripts, k = subscripts + 1, unit.view.pairs[k] - 1
    known = vectors.own if k == first else vectors.members
    dimensions = known.get(words[k])
    return k >= first and dimensions is not None and subscripts == dimensions + (not has_letters)
