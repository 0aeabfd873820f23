"""The declarations of an MSL text: functions, kernels, instantiations, variables, by brackets and a few words.

In: tokens. Out: a list of declarations with the ranges of their parts. No type is parsed and no name looked up:
clang does that later. What is needed here is where each declaration begins and ends, in which namespace, and
which attributes stand where. Indices are into `View`, which leaves attributes and directives out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TypeAlias

from metaljit.frozen import frozen, mutable
from metaljit.runtime.msl.tokens import (
    DIRECTIVE,
    WORD,
    Attribute,
    Tokens,
    Unbalanced,
    partners,
    past_angle,
)

SPACES = frozenset(
    {"device", "constant", "thread", "threadgroup", "threadgroup_imageblock", "ray_data", "object_data"}
)
_CLASSES = frozenset({"struct", "class", "union", "enum"})
_STATEMENTS = frozenset({"using", "typedef", "static_assert", "friend", "asm"})
# Words before a parenthesis that are no function's name.
_NO_NAMES = frozenset(
    {"decltype", "alignas", "explicit", "noexcept", "sizeof", "requires", "__attribute__", "typeof"}
)


@mutable
class View:
    """The tokens that C++ sees: `words[k]` is token `index[k]`; `attributes[k]` are those right before it, and
    `attributes[len(words)]` the last ones."""

    words: list[str]
    index: list[int]
    pairs: dict[int, int]
    attributes: dict[int, tuple[Attribute, ...]] = field(default_factory=dict)


@frozen
class Function:
    """A function or a kernel: header [start, opening parenthesis), parameters, qualifiers, body braces or None."""

    start: int
    name: int
    parameters: tuple[int, int]
    body: tuple[int, int] | None
    end: int  # the last token: `}` or `;`
    scope: tuple[str, ...]
    owner: str  # the class it is a member of, or ""
    template: tuple[int, int] | None
    attributes: tuple[Attribute, ...]
    is_kernel: bool


@frozen
class Class:
    """A class with its body, also one that a typedef declares: it is called like the alias if it has no name."""

    start: int
    name: str
    body: tuple[int, int]
    end: int
    scope: tuple[str, ...]
    owner: str


@frozen
class Instantiation:
    """`template [[host_name("x")]] … f<arguments>(parameters);`"""

    start: int
    end: int
    scope: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    is_kernel: bool


@frozen
class Variable:
    """Anything else that ends with `;`: a variable, an alias, a declaration of a class."""

    start: int
    end: int
    scope: tuple[str, ...]
    owner: str
    attributes: tuple[Attribute, ...]


Declaration: TypeAlias = Function | Class | Instantiation | Variable


def view(tokens: Tokens) -> View:
    """Takes attributes and directives out of the tokens (they become white space)."""
    words: list[str] = []
    index: list[int] = []
    attributes: dict[int, tuple[Attribute, ...]] = {}
    i, n = 0, len(tokens.texts)
    while i < n:
        if tokens.kinds[i] == DIRECTIVE:
            if tokens.texts[i].split()[0:1] in (["#pragma"], ["#ident"]):
                tokens.words[i] = ""
            i += 1
            continue
        if tokens.texts[i] == "[" and (end := _attribute_end(tokens, i)):
            found = tuple(_attributes(tokens, i + 2, end - 2))
            attributes[len(words)] = attributes.get(len(words), ()) + found
            tokens.blank(i, end)
            i = end + 1
            continue
        words.append(tokens.texts[i])
        index.append(i)
        i += 1
    try:
        pairs = partners(words)
    except Unbalanced as e:
        where = tokens.position(index[e.at])
        raise Unbalanced(index[e.at], str(e), (where.line, where.column)) from None
    return View(words, index, pairs, attributes)


def _attribute_end(tokens: Tokens, i: int) -> int | None:
    """The last token of the attribute that begins with token i; None where it is a subscript."""
    texts = tokens.texts
    if texts[i + 1 : i + 2] != ["["] or tokens.kinds[i + 2 : i + 3] != [WORD]:
        return None
    depth = 0
    for k in range(i, len(texts)):
        if texts[k] in ("[", "("):
            depth += 1
        elif texts[k] in ("]", ")"):
            depth -= 1
            if depth == 0:
                return k if texts[k - 1] == "]" else None
        elif texts[k] in (";", "{", "}"):
            return None
    return None


def _attributes(tokens: Tokens, first: int, last: int) -> Iterator[Attribute]:
    k = first
    while k <= last:
        if tokens.kinds[k] == WORD:
            at, name, k = k, tokens.texts[k], k + 1
            while k + 1 <= last and tokens.texts[k] == "::":  # a vendor's prefix: [[clang::unroll]]
                at, name, k = k + 1, tokens.texts[k + 1], k + 2
            arguments: list[str] = []
            if k <= last and tokens.texts[k] == "(":
                depth, k = 1, k + 1
                while k <= last:
                    depth += {"(": 1, ")": -1}.get(tokens.texts[k], 0)
                    if depth == 0:
                        break
                    arguments.append(tokens.texts[k])
                    k += 1
                k += 1
            yield Attribute(name, " ".join(arguments), at)
        else:
            k += 1


def declarations(view: View) -> list[Declaration]:
    """All declarations in order, members of classes behind their class."""
    found: list[Declaration] = []
    _Scope(view, found).read(0, len(view.words), (), "")
    return found


class _Scope:
    """Reads the declarations between two braces."""

    def __init__(self, view: View, found: list[Declaration]) -> None:
        self.words, self.pairs, self.view, self.found = view.words, view.pairs, view, found

    def read(self, k: int, end: int, scope: tuple[str, ...], owner: str) -> None:
        words = self.words
        while k < end:
            word, following = words[k], words[k + 1] if k + 1 < end else ""
            if word in (";", "}"):
                k += 1
            elif word in ("public", "private", "protected") and following == ":":
                k += 2
            elif word in ("namespace", "inline", "extern") and (opened := self._namespace(k, end)):
                names, brace = opened
                self.read(brace + 1, self.pairs[brace], scope + names, owner)
                k = self.pairs[brace] + 1
            elif word == "template" and following != "<":
                stop = self._semicolon(k, end)
                attributes = self._attributes(k, stop)
                is_kernel = "kernel" in words[k:stop] or any(a.name == "kernel" for a in attributes)
                self.found.append(Instantiation(k, stop, scope, attributes, is_kernel))
                k = stop + 1
            else:
                k = self._declaration(k, end, scope, owner) + 1

    def _namespace(self, k: int, end: int) -> tuple[tuple[str, ...], int] | None:
        """The names and the brace of a namespace or linkage block that begins at k."""
        words = self.words
        if words[k] == "extern":
            return ((), k + 2) if words[k + 2 : k + 3] == ["{"] and words[k + 1][:1] == '"' else None
        k += words[k] == "inline"
        if words[k] != "namespace":
            return None
        names: list[str] = []
        while (k := k + 1) < end and words[k] != "{":
            if words[k] in ("=", ";"):
                return None
            if words[k] not in ("::", "inline"):
                names.append(words[k])
        return (tuple(names), k) if k < end else None

    def _semicolon(self, k: int, end: int) -> int:
        while k < end and self.words[k] != ";":
            k = self.pairs[k] if self.words[k] in ("(", "[", "{") else k
            k += 1
        return min(k, end - 1)

    def _attributes(self, first: int, last: int) -> tuple[Attribute, ...]:
        found = self.view.attributes
        return tuple(a for k in range(first, last + 1) for a in found.get(k, ()))

    def _declaration(self, start: int, end: int, scope: tuple[str, ...], owner: str) -> int:
        """One declaration that begins at `start`; gives its last token."""
        words, pairs = self.words, self.pairs
        k, template = start, None
        while k + 1 < end and words[k] == "template" and words[k + 1] == "<":
            past = past_angle(words, pairs, k + 1, is_sure=True) or k + 2
            template, k = (start, past - 1), past
        if k < end and words[k] == "requires" and words[k + 1] == "(":
            k = pairs[k + 1] + 1
        is_typedef = words[k : k + 1] == ["typedef"]
        if k >= end or (words[k] in _STATEMENTS and not is_typedef):
            return self._variable(start, self._semicolon(k, end), scope, owner)
        head = self._head(k, end)
        if is_typedef and (head.brace is None or not head.is_class):
            return self._variable(start, self._semicolon(k, end), scope, owner)
        if head.brace is None:
            is_defaulted = words[max(head.stop - 2, 0) : head.stop] in (["=", "default"], ["=", "delete"])
            if head.parameters and (not head.assigned or is_defaulted) and words[head.stop] == ";":
                return self._function(start, head, None, head.stop, scope, owner, template)
            return self._variable(start, head.stop, scope, owner)
        close = pairs[head.brace]
        if head.is_class:
            stop = self._semicolon(close, end)
            name = words[stop - 1] if is_typedef and head.class_name == "{" else head.class_name
            self.found.append(Class(start, name, (head.brace, close), stop, scope, owner))
            if not head.is_enum:
                self.read(head.brace + 1, close, scope, name)
            return stop
        return self._function(start, head, (head.brace, close), close, scope, owner, template)

    def _variable(self, start: int, stop: int, scope: tuple[str, ...], owner: str) -> int:
        self.found.append(Variable(start, stop, scope, owner, self._attributes(start, stop)))
        return stop

    def _function(
        self,
        start: int,
        head: _Head,
        body: tuple[int, int] | None,
        stop: int,
        scope: tuple[str, ...],
        owner: str,
        template: tuple[int, int] | None,
    ) -> int:
        assert head.parameters is not None
        attributes = self._attributes(start, head.parameters[0])
        is_kernel = "kernel" in self.words[start : head.name] or any(a.name == "kernel" for a in attributes)
        self.found.append(
            Function(
                start, head.name, head.parameters, body, stop, scope, owner, template, attributes, is_kernel
            )
        )
        return stop

    def _head(self, k: int, end: int) -> _Head:
        """Reads up to the `;` or the brace of a body."""
        words, pairs = self.words, self.pairs
        head = _Head()
        while k < end:
            word = words[k]
            if word == ";":
                break
            if word == "operator" and head.parameters is None:
                head.name = k
                k += 1
                if words[k] == "(" and words[k + 1 : k + 2] == [")"]:
                    k += 2
                while k < end and words[k] != "(":
                    k += 1
                head.parameters = (k, pairs[k]) if k < end else None
                k = pairs.get(k, k) + 1
                continue
            if word == "(":
                if head.parameters is None and not head.assigned and _names_a_function(words, k):
                    head.name, head.parameters = _name_before(words, k), (k, pairs[k])
                k = pairs[k]
            elif word == "[":
                k = pairs[k]
            elif word == "<" and not head.assigned and head.parameters is None:
                k = (past_angle(words, pairs, k) or k + 1) - 1
            elif word == "=":
                head.assigned = True
            elif word == ":" and head.parameters is not None and not head.assigned:
                head.initialises = True
            elif word in _CLASSES and head.parameters is None and not head.assigned:
                head.is_class = True
                head.is_enum |= word == "enum"
                head.class_name = self._class_name(k + 1, end)
            elif word == "{":
                if head.is_class and head.parameters is None and not head.assigned:
                    head.brace = k
                    break
                is_initialiser = head.assigned or head.parameters is None
                if head.initialises and (words[k - 1].isidentifier() or words[k - 1] == ">"):
                    is_initialiser = True
                if not is_initialiser:
                    head.brace = k
                    head.is_class = False
                    break
                k = pairs[k]
            k += 1
        head.stop = min(k, end - 1)
        return head

    def _class_name(self, k: int, end: int) -> str:
        while k < end and self.words[k] in ("class", "struct", "alignas", "__attribute__", "("):
            k = self.pairs[k] + 1 if self.words[k] == "(" else k + 1
        return self.words[k] if k < end else ""


@mutable
class _Head:
    name: int = -1
    parameters: tuple[int, int] | None = None
    brace: int | None = None
    stop: int = -1
    assigned: bool = False
    initialises: bool = False
    is_class: bool = False
    is_enum: bool = False
    class_name: str = ""


def _names_a_function(words: list[str], k: int) -> bool:
    """Whether the parenthesis at k follows a name: `f(`, `f<int>(`."""
    before = words[k - 1] if k else ""
    return before == ">" or ((before[:1].isalpha() or before[:1] == "_") and before not in _NO_NAMES | SPACES)


def _name_before(words: list[str], k: int) -> int:
    """The name before the parenthesis at k, behind any template arguments."""
    k -= 1
    depth = 0
    while k > 0 and (words[k] == ">" or depth):
        depth += {">": 1, "<": -1}.get(words[k], 0)
        k -= 1
    return k
