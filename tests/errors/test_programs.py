"""Every program in `programs` fails as its marks say: `# error: slug` at the end of the line that is at fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing import check_marks, marks, raised

import metaljit as mj

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(p for p in FOLDER.iterdir() if p.suffix in (".mjk", ".py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program: Path, tmp_path: Path) -> None:
    text = program.read_text(encoding="utf-8")
    assert marks(text)
    check_marks(text, tmp_path / program.name, kernels=program.suffix == ".mjk")


def test_ten_errors_are_printed(tmp_path: Path) -> None:
    text = (FOLDER / "more_than_ten.mjk").read_text(encoding="utf-8")
    printed = str(raised(text, tmp_path / "many.mjk", kernels=True))
    assert printed.count("[negative-index]") == 10
    assert "… and 1 more error" in printed


def test_a_tab_is_underlined_by_a_tab(tmp_path: Path) -> None:
    """The marker line copies tabs, so that it stands right whatever their width."""
    text = (FOLDER / "tab_indented.py").read_text(encoding="utf-8")
    printed = str(raised(text, tmp_path / "tabs.py", kernels=False)).splitlines()
    at = next(n for n, line in enumerate(printed) if "return x[i, 0]" in line)
    assert printed[at].partition("| ")[2].startswith("\t\t\t\treturn x[i, 0]")
    assert printed[at + 1].partition("| ")[2].startswith("\t\t\t\t       ^^^^^^^")


def test_an_error_in_a_function_shows_the_call_that_matters(tmp_path: Path) -> None:
    text = (FOLDER / "only_some_types.mjk").read_text(encoding="utf-8")
    printed = str(raised(text, tmp_path / "types.mjk", kernels=True))
    assert "low(y[i])" in printed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_every_excerpt_shows_its_line(program: Path, tmp_path: Path) -> None:
    """What is underlined is part of the line that is shown, with the number that the file gives it."""
    text = program.read_text(encoding="utf-8")
    lines = text.splitlines()
    error = raised(text, tmp_path / program.name, kernels=program.suffix == ".mjk")
    for diagnostic in error.diagnostics:
        for span in [s for s in (diagnostic.span, diagnostic.second and diagnostic.second[0]) if s]:
            number, _, shown = span.excerpt("^")[0].partition(" | ")
            assert lines[int(number) - 1] == shown
            assert span.text.partition("\n")[0] in shown


def test_an_error_is_an_exception_of_python(tmp_path: Path) -> None:
    text = (FOLDER / "syntax_first.mjk").read_text(encoding="utf-8")
    error = raised(text, tmp_path / "syntax.mjk", kernels=True)
    assert isinstance(error, mj.SyntaxFault)
    assert isinstance(error, SyntaxError)
