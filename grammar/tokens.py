"""Text → tokens: the words of mjk.lark, and the layout that Python's syntax puts between them.

Layout is what a grammar cannot say: NEWLINE at the end of a logical line, INDENT and DEDENT where a block
begins and ends, and none of these inside brackets. Tokens come one by one, so that a fault is raised when the
parser gets there. Refused here: what is no word at all, brackets that do not match, dedents to nowhere, text
that is too large or nested too deep. An opened bracket that is never closed is left to the parser, which
knows where the text stops making sense.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lark.lexer import TerminalDef

from metaljit.grammar.mistakes import fault
from metaljit.source import Source, Span

MAX_LENGTH = 1_000_000
MAX_NESTING = 100

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}

# Control characters, halves of surrogate pairs, and marks that make a line read otherwise than it is.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)|(?<!^)\ufeff"
)
# Signs of Python and C that the grammar has not: each is one word, so that an error underlines it whole.
_FOREIGN = ("{", "}", ":=", "&&", "||", "!", "?")
_LINE_START = r"[ \t\f]*(?:\#[^\n]*)?"
_FIRST_LINE = re.compile(rf"\ufeff?{_LINE_START}(?:\r?\n{_LINE_START})*")
_LAYOUT = [
    rf"(?P<NEWLINE>(?:\r?\n{_LINE_START})+)",
    r"(?P<BLANK>[ \t\f]+|\#[^\n]*|\\\r?\n)",
]
_FALSE_WORDS = [
    "(?P<NO_STRING>(?i:[bft]r?|r[bft]|[ru]?)(?:\"\"\"|'''|[\"']))",
    r"(?P<NO_NUMBER>\.?[0-9](?:[eE][+-]|[\w.])*)",
]


class Token(NamedTuple):
    """`type` is a terminal of mjk.lark or $END; or RESERVED, FOREIGN, NO_WORD, which no rule accepts."""

    type: str
    text: str
    span: Span


class Vocabulary:
    """The words of a grammar as one regular expression."""

    def __init__(self, terminals: Iterable[TerminalDef]) -> None:
        fixed = {t.pattern.value: t.name for t in terminals if t.pattern.type == "str"}
        patterns = [t for t in terminals if t.pattern.type == "re"]
        first, later = (
            [f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in patterns if (t.priority > 0) == early]
            for early in (True, False)
        )
        self.types = dict.fromkeys(keyword.kwlist, "RESERVED") | dict.fromkeys(_FOREIGN, "FOREIGN") | fixed
        signs = sorted((text for text in self.types if not text.isalpha()), key=len, reverse=True)
        first.append("|".join(_FALSE_WORDS))
        later.append(f"(?P<SIGNS>{'|'.join(map(re.escape, signs))})|(?P<NO_WORD>.)")
        self.pattern = re.compile("|".join([*_LAYOUT, *first, *later]))

    def spelling(self, terminal: str) -> str:
        """The fixed text of a terminal, or its name: `COLON` → `:`, `NAME` → `NAME`."""
        return next((text for text, name in self.types.items() if name == terminal), terminal)


class Block(NamedTuple):
    """The indentation of a block: its width with tabs to every eighth column, with tabs as one, and where."""

    wide: int
    narrow: int
    span: Span


class Tokens:
    """The tokens of `source.text[start:end]`; `open` holds the brackets that are open at this point.

    `inside` says that the text stands within quotes, where lines and indentation mean nothing.
    """

    def __init__(self, source: Source, words: Vocabulary, start: int, end: int, *, inside: bool) -> None:
        self.source = source
        self.words = words
        self.start = start
        self.end = end
        self.inside = inside
        self.open: list[Token] = []
        self.blocks = [Block(0, 0, Span(source, start, start))]

    def __iter__(self) -> Iterator[Token]:
        start = self.start
        if not self.inside:
            first = _FIRST_LINE.match(self.source.text)
            assert first
            yield from self._indentation(first.group(), first.end())
            start = first.end()
        end = start  # of the last token
        unended = False  # whether the logical line still wants its NEWLINE
        for match in self.words.pattern.finditer(self.source.text, start, self.end):
            kind = match.lastgroup or ""
            if kind == "BLANK" or (kind == "NEWLINE" and (self.inside or self.open)):
                continue
            if kind == "NEWLINE":
                if unended:
                    yield Token("NEWLINE", "", Span(self.source, end, end))
                unended = False
                yield from self._indentation(match.group(), match.end())
            else:
                end = match.end()
                unended = True
                yield self._word(kind, match.group(), Span(self.source, match.start(), end))
        yield from self._ending(unended, Span(self.source, end, end))

    def _ending(self, unended: bool, span: Span) -> Iterator[Token]:
        if not self.inside and not self.open:
            if unended:
                yield Token("NEWLINE", "", span)
            for _ in self.blocks[1:]:
                yield Token("DEDENT", "", span)
        yield Token("$END", "the closing quote" if self.inside else "the end of the text", span)

    def _word(self, kind: str, text: str, span: Span) -> Token:
        match kind:
            case "NAME":
                if not text.isidentifier():
                    instead = "name it in letters, digits and `_`"
                    raise fault("bad-character", span, what=f"`{text}`", instead=instead)
                return Token(self.words.types.get(text, "NAME"), text, span)
            case "SIGNS":
                token = Token(self.words.types[text], text, span)
                if text in OPENERS:
                    self._open(token)
                elif text in CLOSERS:
                    self._close(token)
                return token
            case "NO_STRING":
                raise self._no_string(text, span)
            case "NO_NUMBER":
                raise _no_number(text, span)
        return Token(kind, text, span)

    def _open(self, token: Token) -> None:
        if len(self.open) == MAX_NESTING:
            raise fault("nested-too-deep", token.span, what="brackets", limit=MAX_NESTING)
        self.open.append(token)

    def _close(self, token: Token) -> None:
        if not self.open:
            raise fault("unmatched-bracket", token.span, closer=token.text)
        opener = self.open.pop()
        expected = OPENERS[opener.text]
        if expected != token.text:
            words = {"closer": token.text, "opener": opener.text, "expected": expected}
            raise fault("mismatched-bracket", token.span, second=opener.span, **words)

    def _indentation(self, lines: str, end: int) -> Iterator[Token]:
        """INDENT or DEDENTs for the line that begins after `lines`, by Python's own rule for tabs.

        It is measured in two ways; where they disagree about which line is deeper, nobody can tell.
        """
        space = lines.rpartition("\n")[2].lstrip("\ufeff")
        if "#" in space or end == len(self.source.text):
            return  # nothing follows but the end of the text
        space = space.rpartition("\f")[2]
        here = Block(len(space.expandtabs(8)), len(space), Span(self.source, end - len(space), end))
        around = self.blocks[-1]
        if here.wide > around.wide:
            if here.narrow <= around.narrow:
                raise fault("mixed-indentation", here.span, second=around.span)
            if len(self.blocks) > MAX_NESTING:
                raise fault("nested-too-deep", here.span, what="blocks", limit=MAX_NESTING)
            self.blocks.append(here)
            yield Token("INDENT", "", here.span)
            return
        columns = " or ".join(str(block.wide) for block in self.blocks)
        while here.wide < self.blocks[-1].wide:
            self.blocks.pop()
            yield Token("DEDENT", "", Span(self.source, end, end))
        around = self.blocks[-1]
        if here.wide != around.wide:
            raise fault("inconsistent-dedent", here.span, columns=here.wide, allowed=columns)
        if here.narrow != around.narrow:
            raise fault("mixed-indentation", here.span, second=around.span)

    def _no_string(self, text: str, span: Span) -> Exception:
        prefix = text.rstrip("'\"")
        if prefix.lower() in ("", "r", "u"):
            return fault("unterminated-string", span, quote=text[len(prefix) :])
        whole = self.words.pattern.match(self.source.text, span.start + len(prefix))
        if whole and whole.lastgroup == "STRING":
            span = Span(self.source, span.start, whole.end())
        return fault("no-bytes" if "b" in prefix.lower() else "no-f-string", span)


def refuse_hostile(source: Source) -> None:
    """Refuse a text that is too large, or holds characters that no editor shows."""
    if len(source.text) > MAX_LENGTH:
        raise fault("file-too-large", None, name=source.name, length=len(source.text), limit=MAX_LENGTH)
    found = _UNPRINTABLE.search(source.text)
    if found:
        span = Span(source, found.start(), found.end())
        raise fault("bad-character", span, what=character(found.group()), instead="remove it")


def character(text: str) -> str:
    """How to show a character in a message."""
    return f"`{text}`" if text.isprintable() else f"the character U+{ord(text):04X}"


def _no_number(text: str, span: Span) -> Exception:
    if text[-1] in "jJ":
        return fault("no-complex", span)
    suffix = re.fullmatch(
        r"([0-9][0-9_]*|0[xX][0-9a-fA-F]+|[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)([fFhHuUlL]{1,3})", text
    )
    if suffix:
        return fault("number-suffix", span, found=text, number=suffix[1], suffix=suffix[2])
    if re.fullmatch("0[0-9_]+", text):
        return fault("leading-zero", span, found=text, number=text.lstrip("0_"))
    return fault("bad-number", span, found=text)
