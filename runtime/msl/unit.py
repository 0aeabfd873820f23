"""A text as the rules see it: tokens, declarations, and what is declared with which type.

In: preprocessed tokens. Out: a `Unit`. Types are read as words, not resolved: a rule that has to know what a name
stands for looks it up among the names that the text declares, and keeps silent where that leaves a doubt.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from metaljit.frozen import frozen, mutable
from metaljit.runtime.msl.declarations import (
    SPACES,
    Class,
    Declaration,
    Function,
    Variable,
    View,
)
from metaljit.runtime.msl.kernels import split
from metaljit.runtime.msl.names import SIGNS, TYPES, Version
from metaljit.runtime.msl.tokens import Attribute, Tokens, past_angle

_QUALIFIERS = frozenset({"const", "volatile", "restrict", "coherent"})
_SPECIFIERS = frozenset(
    {"static", "constexpr", "inline", "extern", "mutable", "struct", "class", "union", "enum", "typename"}
    | {
        "friend",
        "explicit",
        "METAL_FUNC",
        "kernel",
        "vertex",
        "fragment",
        "typedef",
        "alignas",
        "__attribute__",
    }
)
_NO_TYPES = frozenset(
    {
        "return", "case", "goto", "else", "do", "break", "continue", "using", "template", "delete", "new", "throw",
        "if", "for", "while", "switch", "default", "public", "private", "protected", "operator", "namespace",
        "static_assert", "sizeof", "this", "not", "requires", "concept", "true", "false", "nullptr", "and", "or",
    }
)  # fmt: skip
_CLASSES = frozenset({"struct", "class", "union"})
_STARTS = frozenset({"{", "}", ";", "else", "do"})
_CONDITIONS = frozenset({"for", "if", "while", "switch"})


@frozen
class Level:
    """A `*` or `&` of a declarator: its word, and the address spaces of what it points to."""

    at: int
    spaces: tuple[str, ...]


@frozen
class Typed:
    """Words that declare something: `base` is its type without qualifiers, `name` None in a parameter without one."""

    start: int
    specifiers: frozenset[str]
    base: tuple[str, ...]
    spaces: tuple[str, ...]
    levels: tuple[Level, ...]
    own: tuple[str, ...]  # the address spaces of the thing itself: behind the last `*`, or those of the type
    name: int | None
    end: int  # the word behind the name and the brackets around it

    @property
    def kind(self) -> str:
        """The base as one word: `unsigned int` is `uint`."""
        if self.base and self.base[0] in SIGNS | {"long", "short", "int", "char"}:
            kind = next((w for w in self.base if w in ("char", "short", "long")), "int")
            return f"u{kind}" if "unsigned" in self.base else kind
        return "".join(self.base)

    @property
    def text(self) -> str:
        """The base as it is written."""
        is_plain = all(word.isidentifier() for word in self.base)
        return (" " if is_plain else "").join(self.base)


@frozen
class Finding:
    """What a rule says of a token. `slug` names a section of `docs/errors.md`, `help` is one way out."""

    slug: str
    at: int
    message: str
    help: str = ""
    severity: Literal["error", "warning"] = "error"


@mutable
class Unit:
    """What the rules are asked about."""

    tokens: Tokens
    view: View
    declarations: list[Declaration]
    version: Version = (2, 3)

    @property
    def words(self) -> list[str]:
        return self.view.words

    def finding(self, slug: str, k: int, message: str, help: str = "") -> Finding:
        """A finding about word k."""
        return Finding(slug, self.view.index[k], message, help)

    def is_member(self, k: int) -> bool:
        """Whether word k is a name in somebody's scope other than Metal's: `a.x`, `a->x`, `ns::x`."""
        before = self.words[k - 1] if k else ""
        return before in (".", "->") or (before == "::" and k > 1 and self.words[k - 2] not in ("metal", ";"))

    @cached_property
    def functions(self) -> list[Function]:
        return [d for d in self.declarations if isinstance(d, Function)]

    @cached_property
    def kernels(self) -> list[Function]:
        return [f for f in self.functions if f.is_kernel and f.body and not f.owner]

    @cached_property
    def classes(self) -> dict[str, Class]:
        """The classes of the text, by name."""
        return {d.name: d for d in self.declarations if isinstance(d, Class) and d.name.isidentifier()}

    @cached_property
    def aliases(self) -> frozenset[str]:
        """Names that stand for a type, or may: typedefs, using-declarations, template parameters."""
        words, found = self.words, set()
        for k, word in enumerate(words[:-1]):
            if word == "using" and words[k + 1] != "namespace":
                found.add(words[k + 1])
                end = next((i for i in range(k, min(k + 12, len(words))) if words[i] in (";", "=")), k + 2)
                found.add(words[end - 1])
            elif word == "typedef":
                end = k
                while end < len(words) - 1 and words[end] != ";":
                    end = self.view.pairs[end] + 1 if words[end] in ("{", "(") else end + 1
                found.add(words[end - 1])
            elif word in ("typename", "class") and words[k + 1].isidentifier():
                found.add(words[k + 1])
        return frozenset(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that the text declares."""
        found = {self.words[f.name] for f in self.functions} | set(self.classes) | self.aliases
        for t in self.variables:
            if t.name is not None:
                found.add(self.words[t.name])
        return frozenset(found)

    @cached_property
    def members(self) -> frozenset[str]:
        """What the text's classes declare, with the variables of functions that have classes of their own."""
        found: set[str] = set()
        for d in self.declarations:
            match d:
                case Function() if d.owner:
                    found.add(self.words[d.name])
                case Function(body=(first, last)) if not _CLASSES.isdisjoint(self.words[first:last]):
                    found.update(self.words[t.name] for t in self.locals(d) if t.name is not None)
                case Variable() if d.owner:
                    found.update(self.words[d.start : d.end])
        return frozenset(found)

    @cached_property
    def variables(self) -> list[Typed]:
        """Variables of every scope, members and parameters, in no order."""
        found: list[Typed] = []
        for d in self.declarations:
            match d:
                case Function():
                    found += self.parameters(d)
                    found += self.locals(d)
                case Variable():
                    typed = self.read(d.start, d.end)
                    if typed:
                        found.append(typed)
        return found

    @cached_property
    def _parameters(self) -> dict[int, list[Typed]]:
        return {}

    def parameters(self, f: Function) -> list[Typed]:
        """The parameters whose words read as a type; the others are left out."""
        known = self._parameters.get(f.parameters[0])
        if known is None:
            ranges = split(self.view, *f.parameters)
            read = (self.read(first, last + 1, is_parameter=True) for first, last in ranges)
            known = self._parameters[f.parameters[0]] = [t for t in read if t is not None]
        return known

    @cached_property
    def _locals(self) -> dict[int, list[Typed]]:
        return {}

    def locals(self, f: Function) -> list[Typed]:
        """The variables that the body of a function declares, of each declaration the first one."""
        if f.body is None:
            return []
        known = self._locals.get(f.body[0])
        if known is None:
            known = self._locals[f.body[0]] = list(self._statements(f.body))
        return known

    def _statements(self, body: tuple[int, int]) -> Iterator[Typed]:
        words = self.words
        for k in range(body[0] + 1, body[1]):
            before = words[k - 1]
            is_start = before in _STARTS or (before == "(" and words[k - 2] in _CONDITIONS)
            if before == ")":
                is_start = words[self.view.pairs[k - 1] - 1] in _CONDITIONS
            if is_start and words[k] not in _NO_TYPES and (words[k][0].isalpha() or words[k][0] == "_"):
                typed = self.read(k, body[1])
                if typed and typed.name is not None:
                    yield typed

    def attributes(self, first: int, last: int) -> list[Attribute]:
        """Those that stand before one of the words [first, last]."""
        found = self.view.attributes
        return [a for k in range(first, last + 1) for a in found.get(k, ())]

    def read(self, k: int, end: int, is_parameter: bool = False) -> Typed | None:
        """The declaration that begins at k, up to its first name; None where the words are none."""
        return _Reader(self.words, self.view.pairs, k, end, is_parameter).read()


class _Reader:
    """Reads one declaration."""

    def __init__(self, words: list[str], pairs: dict[int, int], k: int, end: int, is_parameter: bool) -> None:
        self.words, self.pairs, self.start, self.k, self.end = words, pairs, k, k, end
        self.is_parameter = is_parameter
        self.specifiers: set[str] = set()
        self.spaces: list[str] = []

    def read(self) -> Typed | None:
        self._qualifiers()
        base = self._base()
        if not base:
            return None
        self._qualifiers()
        levels: list[Level] = []
        pointee = tuple(self.spaces)
        while self.k < self.end and self.words[self.k] in ("*", "&"):
            if self.words[self.k : self.k + 2] == ["&", "&"] or self.words[self.k] == "&&":
                return None
            levels.append(Level(self.k, pointee))
            self.k += 1
            self.spaces = []
            self._qualifiers()
            pointee = tuple(self.spaces)
        base_spaces = levels[0].spaces if levels else pointee
        return self._declarator(tuple(base), base_spaces, levels, pointee)

    def _declarator(
        self, base: tuple[str, ...], spaces: tuple[str, ...], levels: list[Level], pointee: tuple[str, ...]
    ) -> Typed | None:
        words, k = self.words, self.k
        specifiers = frozenset(self.specifiers)
        if k < self.end and words[k] == "(" and words[k + 1] in ("*", "&") and words[k + 2].isidentifier():
            close = self.pairs[k]
            is_function = words[close + 1 : close + 2] == ["("]
            if words[k + 2] in _QUALIFIERS | SPACES or is_function or close != k + 3:
                return None
            levels.append(Level(k + 1, pointee))
            return Typed(self.start, specifiers, base, spaces, tuple(levels), (), k + 2, close + 1)
        if k < self.end and words[k].isidentifier() and words[k] not in _NO_TYPES:
            following = words[k + 1] if k + 1 < len(words) else ""
            if following not in ("=", ";", ",", "[", "{", ":", ")", "(") and k + 1 != self.end:
                return None
            if words[k + 1 : k + 3] == [":", ":"]:
                return None
            if self.is_parameter and following == "[":  # an array of a function's own parameters is a pointer
                levels.append(Level(k + 1, pointee))
                pointee = ()
            return Typed(self.start, specifiers, base, spaces, tuple(levels), pointee, k, k + 1)
        if self.is_parameter and (k >= self.end or words[k] in ("=", "[", "...")):
            return Typed(self.start, specifiers, base, spaces, tuple(levels), pointee, None, k)
        return None

    def _qualifiers(self) -> None:
        words = self.words
        while self.k < self.end:
            word = words[self.k]
            if word in SPACES:
                self.spaces.append(word)
            elif word == "coherent" and words[self.k + 1] == "(":
                self.spaces.append("device")
                self.k = self.pairs[self.k + 1]
            elif word in _QUALIFIERS or word in _SPECIFIERS:
                self.specifiers.add(word)
                if word in ("alignas", "__attribute__") and words[self.k + 1] == "(":
                    self.k = self.pairs[self.k + 1]
            else:
                return
            self.k += 1

    def _base(self) -> list[str]:
        words, found = self.words, list[str]()
        while self.k < self.end and words[self.k] in SIGNS | {"long", "short", "int", "char", "const"}:
            if words[self.k] != "const":
                found.append(words[self.k])
            self.k += 1
        if found:
            return found
        while self.k < self.end:
            word = words[self.k]
            if word == "::":
                found.append(word)
            elif (
                (word[0].isalpha() or word[0] == "_") and word not in _NO_TYPES and found[-1:] in ([], ["::"])
            ):
                found.append(word)
                if words[self.k + 1 : self.k + 2] == ["<"]:
                    past = past_angle(words, self.pairs, self.k + 1)
                    if past is None or past > self.end:
                        return []
                    found += words[self.k + 1 : past]
                    self.k = past - 1
                elif word == "decltype" and words[self.k + 1] == "(":
                    self.k = self.pairs[self.k + 1]
            else:
                break
            self.k += 1
        return found if found and found[-1] != "::" else []


def is_known(unit: Unit, t: Typed) -> bool:
    """Whether the type surely has no address space of its own: a type of Metal's, or a class of the text."""
    base = [w for i, w in enumerate(t.base) if not (w == "metal" or (w == "::" and i < 2))]
    if not base or base[0] in unit.aliases:
        return False
    return base[0] in TYPES or (base[0] in unit.classes and base[-1] != "::" and "::" not in base)
