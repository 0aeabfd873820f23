"""Programs that must fail: each line that is at fault ends with `# error: slug` (or `# note: slug`).

In: a text of Python or of the kernel language. Out: what it raised, compared with its marks.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest
from documents import compile_kernels, run_commands, run_python

import metaljit as mj
from metaljit.program import Program

_MARK = re.compile(r"#\s*(?:error|note): ([a-z0-9-]+)")
_NOTE = re.compile(r":(\d+):\d+: note: .*\[([a-z0-9-]+)\]$", re.M)
_PLACE = re.compile(r":(\d+):\d+$")


def marks(text: str) -> list[tuple[int, str]]:
    """The marked lines (from 1) and their slugs."""
    return [(n, m[1]) for n, line in enumerate(text.splitlines(), 1) for m in _MARK.finditer(line)]


def raised(text: str, path: Path, kernels: bool) -> mj.MetaljitError:
    """What running a program (or compiling the kernels of a text, for all that they declare) raises."""
    run = compile_text if kernels else run_python
    with pytest.raises(mj.MetaljitError) as caught:
        run(text, path)
    return caught.value


def compile_text(text: str, path: Path) -> list[Program]:
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        return compile_kernels(mj.load_kernels(path.name))


def check_notes(text: str, path: Path) -> None:
    """Fails unless the text compiles with exactly the notes that it marks."""
    found = {(int(m[1]), m[2]) for p in compile_text(text, path) for n in p.notes for m in _NOTE.finditer(n)}
    assert found == set(marks(text))


def check_marks(text: str, path: Path, kernels: bool) -> None:
    """Fails unless the text raises exactly its marks, each with the underline on the marked line.

    A diagnostic without an underline (the fault of a call), or in a text that has no file, is marked at the call.
    """
    error = raised(text, path, kernels)
    found = [(line, d.slug) for d in error.diagnostics for line in [_line(d, error, path)]]
    assert found == marks(text), f"{found}\n{error}"


def _line(d: mj.Diagnostic, error: mj.MetaljitError, path: Path) -> int:
    if d.span is not None and d.span.source.name not in ("<text>", "program_source"):
        assert Path(d.span.source.name).name == path.name, str(error)
        return d.span.line
    place = _PLACE.search(d.where) if d.excerpt else None
    if place is not None:
        return int(place[1])
    frames = traceback.extract_tb(error.__traceback__)
    return next((f.lineno or 0 for f in reversed(frames) if f.filename == str(path)), 0)


def check_commands(text: str, folder: Path) -> None:
    """Fails unless the commands exit with status 1 and print the marked slugs."""
    printed = run_commands(text, folder, status=1)
    found = re.findall(r"\[([a-z0-9-]+)\]$", printed, re.M)
    assert found == [slug for _, slug in marks(text)], printed
