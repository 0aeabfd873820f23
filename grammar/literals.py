"""The values of literals: the text of a number or a string → a Python value, by Python's rules."""

from __future__ import annotations

import re
import unicodedata

from metaljit.grammar.mistakes import fault
from metaljit.source import Span

# More digits than any type or float can hold; Python's own conversion takes quadratic time.
MAX_DIGITS = 400

_QUOTES = re.compile("([rRuU]?)(\"\"\"|'''|\"|')")
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r?\n)|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|N\{(?P<N>[^}\n]*)\}|(?P<one>.))",
    re.DOTALL,
)
_ONE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
}


def number(text: str, span: Span) -> int | float:
    """`1_000` → 1000, `0xff` → 255, `1e-3` → 0.001."""
    if len(text) > MAX_DIGITS:
        raise fault("long-number", span, digits=len(text), limit=MAX_DIGITS)
    if text[:2].lower() in ("0x", "0o", "0b"):
        return int(text, 0)
    if any(c in text for c in ".eE"):
        return float(text)
    return int(text)


def quotes(text: str) -> tuple[str, int, int]:
    """The prefix of a string literal, and where its inside begins and ends."""
    match = _QUOTES.match(text)
    assert match, text
    return match[1], match.end(), len(text) - len(match[2])


def string(text: str, span: Span) -> str:
    """The value of one string literal; line ends are `\\n`, as Python reads them."""
    prefix, start, end = quotes(text)
    inside = text[start:end].replace("\r\n", "\n")
    if prefix in ("r", "R") or "\\" not in inside:
        return inside

    def unescape(match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        value = match[kind]
        if kind == "line":
            return ""
        if kind == "one":
            if value in "xuUN":
                raise fault("bad-escape", span, escape=f"\\{value}")
            return _ONE.get(value, f"\\{value}")
        try:
            code = unicodedata.lookup(value) if kind == "N" else chr(int(value, 8 if kind == "octal" else 16))
        except (KeyError, ValueError, OverflowError):
            raise fault("bad-escape", span, escape=match[0]) from None
        return code

    return _ESCAPE.sub(unescape, inside)
