"""Where a piece of text came from, and what is wrong with it.

In: text and offsets. Out: `Span`s that know the user's file, line and column, and `Diagnostic`s that
draw them. Every node of the tree and of the IR carries a span; every error is made of diagnostics.
"""

from __future__ import annotations

import bisect
import os
import unicodedata
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

from .frozen import frozen

MAX_REPORTED = 10
EXCERPT_WIDTH = 120


@frozen
class Source:
    """A text and the place where it stands in the user's file.

    A decorated function is a fragment: `first_line` (1-based) and `indent` (columns that dedenting took
    away) lead back to the file.
    """

    name: str
    text: str = field(repr=False)
    first_line: int = 1
    indent: str = ""

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(i + 1 for i, c in enumerate(self.text) if c == "\n")]

    def row(self, offset: int) -> int:
        """The 0-based row of an offset within this text."""
        return bisect.bisect_right(self._starts, offset) - 1

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset in the user's file."""
        row = self.row(offset)
        return self.first_line + row, offset - self._starts[row] + len(self.indent) + 1

    def row_bounds(self, row: int) -> tuple[int, int]:
        start = self._starts[row]
        end = self._starts[row + 1] - 1 if row + 1 < len(self._starts) else len(self.text)
        return start, end

    def offset(self, line: int, column: int = 1) -> int:
        """The offset of a 1-based line and column of the user's file."""
        row = min(max(line - self.first_line, 0), len(self._starts) - 1)
        return min(self._starts[row] + max(column - 1 - len(self.indent), 0), len(self.text))


@frozen
class Span:
    """The characters `[start, end)` of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def until(self, other: Span) -> Span:
        """From the start of this span to the end of the other."""
        return Span(self.source, self.start, max(self.end, other.end))

    def excerpt(self, marker: str, label: str = "") -> list[str]:
        """The user's line with the span underlined; a longer span is underlined on its first line."""
        row = self.source.row(self.start)
        start, end = self.source.row_bounds(row)
        line = _visible(self.source.indent + self.source.text[start:end])
        before = self.source.indent + self.source.text[start : self.start]
        width = max(1, min(self.end, end) - self.start)
        if len(line) > EXCERPT_WIDTH:
            line, before, width = _cut(line, len(before), width)
        pad = "".join("\t" if c == "\t" else " " for c in before)
        number = str(self.source.first_line + row).rjust(5)
        return [f"{number} | {line}", f"      | {pad}{marker * width} {label}".rstrip()]


def shown_path(path: str) -> str:
    """A file as a message names it: from the working directory, unless it is outside of that."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if not relative.startswith("..") else path


def undecodable(e: UnicodeDecodeError) -> str:
    """The byte that is no UTF-8, and where it stands in the whole text that was decoded."""
    line = e.object.count(b"\n", 0, e.start) + 1
    return f"byte {e.object[e.start]:#04x} in line {line}, at offset {e.start}"


def _visible(line: str) -> str:
    """The line with what a terminal would obey (escapes, reversals of direction) as one mark each; tabs stay."""
    return "".join(
        c if c == "\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else "\ufffd" for c in line
    )


def _cut(line: str, at: int, width: int) -> tuple[str, str, int]:
    """The part of a long line around the place, the text before the place in it, and the underline's width."""
    first = max(0, at - EXCERPT_WIDTH // 4)
    part = line[first : first + EXCERPT_WIDTH]
    head, tail = ("…" if first else ""), ("…" if first + EXCERPT_WIDTH < len(line) else "")
    return head + part + tail, head + line[first:at], max(1, min(width, len(part) - (at - first)))


@frozen
class Diagnostic:
    """One fault: where, what was found, what was expected, and one way out.

    `slug` names a section of `docs/errors.md`; `second` is another place that matters, such as a
    declaration; `help` is one concrete change. A compiled program knows its places as text only: `where` is
    `file:line:column` and `excerpt` the lines to show, for a diagnostic without a span.
    """

    slug: str
    message: str
    span: Span | None = None
    label: str = ""
    second: tuple[Span, str] | None = None
    help: str = ""
    severity: str = "error"
    where: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        place = str(self.span) if self.span else self.where
        lines = [f"{place}: " if place else ""]
        lines[0] += f"{self.severity}: {self.message} [{self.slug}]"
        if self.span:
            lines += self.span.excerpt("^", self.label)
        elif self.excerpt:
            lines += self.excerpt.splitlines()
        if self.second:
            span, label = self.second
            if self.span and span.source.name != self.span.source.name:
                lines.append(f"   in {span.source.name}:")
            lines += span.excerpt("-", label)
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class MetaljitError(Exception):
    """The root of everything metaljit raises; `diagnostics` holds what is wrong, in source order."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics: Sequence[Diagnostic] = diagnostics
        shown = "\n".join(str(d) for d in diagnostics[:MAX_REPORTED])
        if len(diagnostics) > MAX_REPORTED:
            shown += f"\n… and {len(diagnostics) - MAX_REPORTED} more errors"
        super().__init__(shown)

    @property
    def slug(self) -> str:
        return self.diagnostics[0].slug

    def __str__(self) -> str:
        return str(self.args[0])


class SyntaxFault(MetaljitError, SyntaxError):
    """The text is not a kernel: raised by the parser, one diagnostic."""


class TypeFault(MetaljitError, TypeError):
    """The kernel does not check: all errors of one kernel together."""


class LaunchFault(MetaljitError, ValueError):
    """The arguments of a call do not fit the kernel."""


class ShapeError(LaunchFault):
    """An extent has two different values at a call, or a shape cannot be what was declared."""


class SizeError(LaunchFault):
    """An array, a grid or a table is larger than the language or the device allows."""


class DeviceFault(MetaljitError, RuntimeError):
    """The device, or a tool that it needs, is missing, refused, or failed."""


class QueueFault(MetaljitError, RuntimeError):
    """Queues and events cannot go on as they were told: values out of order, a deadlock, work behind a failure."""


class KernelFault(MetaljitError, RuntimeError):
    """A kernel ran and did what Metal leaves undefined, or did not end: all faults that were found, nothing written."""


class KernelAssertion(MetaljitError, AssertionError):
    """An `assert` in a kernel failed: message, line and position of the first failure."""


class InternalError(MetaljitError, RuntimeError):
    """A fault of metaljit itself, never the user's."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(
            Diagnostic(
                "internal-error",
                f"metaljit itself failed: {message}",
                span,
                help="this is not your fault; please report it with the kernel's text",
            )
        )
