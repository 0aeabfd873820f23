"""From tokens and from clang's places back to the characters that the user wrote.

Preprocessing keeps lines and moves columns: several spaces become one, macros become what they stand for. So a token
is found again on its line by its text, the nth of those alike, and a macro's by the whole line.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from metaljit.runtime.msl.tokens import Position, Tokens
from metaljit.source import Source, Span

_COMMENT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""",
    re.S,
)


class Places:
    """The places of a preprocessed text: `text` is what the user gave as `file`."""

    def __init__(self, tokens: Tokens, file: str, text: str) -> None:
        self._tokens = tokens
        self._sources: dict[str, Source | None] = {file: Source(file, text)}
        self._codes: dict[str, str] = {}

    @cached_property
    def _positions(self) -> list[Position]:
        return list(self._tokens.positions())

    @cached_property
    def _lines(self) -> dict[tuple[str, int], list[int]]:
        """The tokens of each line of each file; a line of a header may come several times."""
        found: dict[tuple[str, int], list[int]] = {}
        for at, place in enumerate(self._positions):
            found.setdefault((place.file, place.line), []).append(at)
        return found

    def position(self, at: int) -> Position:
        return self._positions[at]

    def line_of(self, at: int) -> tuple[str, int]:
        return self._positions[at].file, self._positions[at].line

    def span(self, at: int) -> Span | None:
        """The user's characters of a token; None in a file that cannot be read."""
        place = self._positions[at]
        source = self.source(place.file)
        if source is None:
            return None
        word = self._tokens.texts[at]
        if place.line > source.row(len(source.text)) + 1:
            return None  # a `#line` of the text's own
        same = [i for i in self._lines[place.file, place.line] if self._tokens.texts[i] == word]
        return _nth(source, self._code(place.file), place.line, word, same.index(at))

    def _code(self, file: str) -> str:
        """The text of a file with blanks for its comments, and for what stands in its strings."""
        if file not in self._codes:
            source = self.source(file)
            self._codes[file] = _COMMENT.sub(_blank, source.text) if source else ""
        return self._codes[file]

    def line(self, file: str, line: int, column: int = 1) -> Span | None:
        """A place that clang names in the user's own text."""
        source = self.source(file)
        if source is None:
            return None
        start = source.offset(line, column)
        word = re.compile(r"\w+|.|$").match(source.text, start)
        return Span(source, start, max(word.end() if word else start, start + 1))

    def source(self, file: str) -> Source | None:
        if file not in self._sources:
            text = None
            if os.path.isfile(file):
                with open(file, encoding="utf-8", errors="replace") as opened:
                    text = opened.read()
            self._sources[file] = None if text is None else Source(file, text)
        return self._sources[file]


def _blank(found: re.Match[str]) -> str:
    """Blanks for a comment or for the contents of a string, whose quotes stay."""
    text = re.sub(r"[^\n]", " ", found[0])
    return f"{found[0][0]}{text[1:-1]}{found[0][-1]}" if found[0][0] != "/" else text


def _nth(source: Source, code: str, line: int, word: str, n: int) -> Span:
    """The nth occurrence of a word on a line, or all that stands on it."""
    start = source.offset(line)
    end = source.text.find("\n", start)
    end = len(source.text) if end < 0 else end
    text = source.text if word[:1] in ('"', "'") else code
    boundary = r"\b" if word[:1].isalnum() or word[:1] == "_" else ""
    found = [m.start() for m in re.finditer(boundary + re.escape(word) + boundary, text[start:end])]
    if n < len(found):
        return Span(source, start + found[n], start + found[n] + len(word))
    written = source.text[start:end]
    first = start + len(written) - len(written.lstrip())
    return Span(source, first, max(start + len(written.rstrip()), first + 1))


class Edited:
    """Tokens by file, line and column of the text that `Tokens.text()` gives after edits."""

    def __init__(self, tokens: Tokens) -> None:
        self._lines: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for at, (file, line, column) in enumerate(_edited(tokens)):
            self._lines.setdefault((file, line), []).append((column, at))

    def token(self, file: str, line: int, column: int) -> int | None:
        """The token at or before a place; None where its line has none."""
        found = self._lines.get((file, line), [])
        i = bisect_right(found, (column, 1 << 62))
        return found[max(i - 1, 0)][1] if found else None


def _edited(tokens: Tokens) -> Iterator[tuple[str, int, int]]:
    column = 1
    for at, place in enumerate(tokens.positions()):
        gap = tokens.gaps[at]
        if "\n" in gap:
            column = 1
        column += len(gap) - gap.rfind("\n") - 1
        yield place.file, place.line, column
        column += len(tokens.words[at])
