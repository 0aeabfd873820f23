"""Preprocessed MSL text as tokens, and back to text after edits.

In: what `clang -E` prints, with its line markers. Out: `Tokens`, whose lists run in parallel: kind, text, and
the white space before. An edit replaces one token's text; `text()` joins all of it again, and since line
markers and line breaks stay where they are, a compiler's line numbers are the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from metaljit.frozen import frozen, mutable

WORD, NUMBER, STRING, PUNCTUATION, DIRECTIVE = range(5)

# `>>` is two tokens, since it may close two template argument lists; so is `[[`, which may open a lambda.
_TOKEN = re.compile(
    r"""(?P<gap>(?:[ \t\r\f\v\n]|\\\n)+)
      | (?P<directive>\#[^\n]*)
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
      | (?P<string>(?:u8|[uUL])?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
      | (?P<punctuation>::|->|\+\+|--|<<=?|<=|>=|==|!=|&&|\|\||\.\.\.|[-+*/%&|^]=|.)""",
    re.VERBOSE,
)
_RAW_STRING = re.compile(r'(?:u8|[uUL])?R"([^()\\\s]{0,16})\(.*?\)\1"', re.S)
_KINDS = {
    "directive": DIRECTIVE,
    "word": WORD,
    "number": NUMBER,
    "string": STRING,
    "punctuation": PUNCTUATION,
}
_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"((?:[^"\\]|\\.)*)"')
_OPEN = {"(": ")", "[": "]", "{": "}"}


class Position(NamedTuple):
    """Where a token stands in the user's text, 1-based. A tuple, since every token has one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Attribute:
    """`[[name(arguments)]]`; the tokens of the arguments are joined by spaces."""

    name: str
    arguments: str
    at: int  # token of the name


class Unbalanced(Exception):
    """A bracket without its partner; `at` is its token, `place` that token's line and column."""

    def __init__(self, at: int, message: str, place: tuple[int, int] = (1, 1)) -> None:
        super().__init__(message)
        self.at, self.place = at, place


@mutable
class Tokens:
    """The tokens of a text. `words[i]` is edited; `texts[i]` stays what was read."""

    kinds: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    end: str = ""

    def text(self) -> str:
        """The text after all edits."""
        return "".join(part for pair in zip(self.gaps, self.words, strict=True) for part in pair) + self.end

    def blank(self, first: int, last: int) -> None:
        """Removes the tokens of [first, last]; what stands behind them on a line keeps its column."""
        for i in range(first, last + 1):
            if self.kinds[i] != DIRECTIVE:
                self.words[i] = " " * len(self.texts[i])

    def replace(self, i: int, word: str) -> None:
        """Another text for a token, padded to the old length."""
        self.words[i] = word.ljust(len(self.texts[i]))

    def append(self, i: int, text: str) -> None:
        self.words[i] += text

    def positions(self) -> Iterator[Position]:
        """Where each token stands, by the line markers."""
        file, line, column = "", 1, 1
        for kind, text, gap in zip(self.kinds, self.texts, self.gaps, strict=True):
            breaks = gap.count("\n")
            if breaks:
                line += breaks
                column = 1
            column += len(gap) - gap.rfind("\n") - 1
            yield Position(file, line, column)
            column += len(text)
            if kind == DIRECTIVE and (found := _MARKER.match(text)):
                file, line = found[2], int(found[1]) - 1

    def position(self, at: int) -> Position:
        for i, found in enumerate(self.positions()):
            if i == at:
                return found
        raise IndexError(at)


def lex(text: str) -> Tokens:
    """All tokens of a preprocessed text. Never fails: what is no token is a punctuation of one character."""
    kinds: list[int] = []
    texts: list[str] = []
    gaps: list[str] = []
    gap, at = "", 0
    match, raw = _TOKEN.match, 'R"' in text
    while (found := match(text, at)) is not None:
        kind, word = found.lastgroup, found[0]
        at = found.end()
        if kind == "gap":
            gap += word
            continue
        if (
            raw
            and kind == "word"
            and text.startswith('"', at)
            and (whole := _RAW_STRING.match(text, found.start()))
        ):
            kind, word, at = "string", whole[0], whole.end()
        kinds.append(_KINDS[kind or ""])
        texts.append(word)
        gaps.append(gap)
        gap = ""
    return Tokens(kinds, texts, gaps, texts.copy(), gap)


def partners(words: Sequence[str]) -> dict[int, int]:
    """The closing bracket of every opening one of `words`, and the other way round."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for i, word in enumerate(words):
        if word in _OPEN:
            stack.append(i)
        elif word in (")", "]", "}"):
            if not stack or (words[stack[-1]] == "{" and word != "}"):
                raise Unbalanced(i, f"{word!r} closes nothing")
            if _OPEN[words[stack[-1]]] != word:
                raise Unbalanced(stack[-1], f"{words[stack[-1]]!r} is never closed")
            pairs[i] = stack.pop()
            pairs[pairs[i]] = i
    if stack:
        raise Unbalanced(stack[-1], f"{words[stack[-1]]!r} is never closed")
    return pairs


def past_angle(words: Sequence[str], pairs: dict[int, int], at: int, is_sure: bool = False) -> int | None:
    """The index behind the `>` that closes the `<` at `at`; None where it is no template argument list.

    Where it surely is one, behind `template`, `&&` and `||` do not end it.
    """
    depth, i = 0, at
    while i < len(words):
        word = words[i]
        if word == "<":
            depth += 1
        elif word == ">":
            depth -= 1
            if depth == 0:
                return i + 1
        elif word in ("(", "[", "{"):
            i = pairs[i]
        elif word in (";", ")", "]", "}") or (word in ("&&", "||") and not is_sure):
            return None
        i += 1
    return None
