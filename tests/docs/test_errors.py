"""docs/errors.md has a section for every slug, and its programs fail and work as the page says."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import slugs
from documents import ROOT, Block, blocks, prepare, run_commands, run_python
from failing import check_commands, check_marks, check_notes, compile_text, marks

PAGE = ROOT / "docs" / "errors.md"
# What no program of one machine can cause: the section tells what does.
TOLD = {
    "aborted",
    "emulator-ended",
    "emulator-not-started",
    "kernel-did-not-run",
    "library-not-loaded",
    "metal-after-fork",
    "metal-compiler-failed",
    "metal-no-64-bit",
    "metal-refused",
    "mixed-devices",
    "not-a-function",
    "out-of-device-memory",
    "pillow-missing",
    "threadgroup-unfit",
    "traced-extent",
    "undefined-argument",
    "unsupported",
}
ONLY_WITHOUT_METAL = {"metal-missing", "metal-compiler-missing"}
NOT_LISTED = {"internal-error"}


@dataclass(frozen=True)
class Section:
    slug: str
    text: str
    programs: tuple[Block, ...]


def sections() -> list[Section]:
    text = PAGE.read_text(encoding="utf-8")
    heads = list(re.finditer(r"^(?:##) .*$|^### `([a-z0-9-]+)`$", text, re.M))
    ends = [h.start() for h in heads[1:]] + [len(text)]
    found = []
    for head, end in zip(heads, ends, strict=True):
        if head[1]:
            first, last = (text.count("\n", 0, at) + 1 for at in (head.start(), end))
            inside = tuple(b for b in blocks(PAGE) if first < b.line <= last)
            found.append(Section(head[1], text[head.end() : end], inside))
    return found


SECTIONS = sections()
SHOWN = [s for s in SECTIONS if s.slug not in TOLD]


def test_every_slug_has_a_section() -> None:
    used = slugs.used()
    listed = {s.slug for s in SECTIONS} | NOT_LISTED
    missing = [f"{slug} ({place})" for slug, place in sorted(used.items()) if slug not in listed]
    assert not missing, "no section in docs/errors.md for:\n" + "\n".join(missing)


def test_every_section_has_a_slug() -> None:
    unknown = sorted({s.slug for s in SECTIONS} - set(slugs.used()))
    assert not unknown, f"docs/errors.md has sections for slugs that nothing raises: {', '.join(unknown)}"


def test_no_section_stands_twice() -> None:
    names = [s.slug for s in SECTIONS]
    assert len(names) == len(set(names))


def test_every_section_stands_in_the_index() -> None:
    index = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.findall(r"\[`([a-z0-9-]+)`\]\(#\1\)", index) == [s.slug for s in SECTIONS]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.slug)
def test_a_section_has_two_programs_or_tells(section: Section) -> None:
    assert len(section.programs) == (0 if section.slug in TOLD else 2)
    assert section.text.strip()


@pytest.mark.parametrize("section", SHOWN, ids=lambda s: s.slug)
def test_the_first_program_causes_it(section: Section, tmp_path: Path) -> None:
    if section.slug in ONLY_WITHOUT_METAL and sys.platform == "darwin":
        pytest.skip("a Mac has it")
    block = section.programs[0]
    prepare(tmp_path, PAGE, block.line)
    match block.language:
        case "bash":
            check_commands(block.text, tmp_path)
        case "mjk" if f"# note: {section.slug}" in block.text:
            check_notes(block.text, tmp_path / "block.mjk")
        case language:
            name = "block.mjk" if language == "mjk" else "block.py"
            check_marks(block.text, tmp_path / name, kernels=language == "mjk")


@pytest.mark.parametrize("section", SHOWN, ids=lambda s: s.slug)
def test_the_second_program_does_not(section: Section, tmp_path: Path) -> None:
    block = section.programs[1]
    prepare(tmp_path, PAGE, block.line)
    match block.language:
        case "bash":
            run_commands(block.text, tmp_path)
        case "mjk":
            compile_text(block.text, tmp_path / "block.mjk")
        case _:
            run_python(block.text, tmp_path / "block.py")


@pytest.mark.parametrize("section", SHOWN, ids=lambda s: s.slug)
def test_the_mark_is_the_sections_own(section: Section) -> None:
    first, second = ([slug for _, slug in marks(b.text)] for b in section.programs)
    assert (first, second) == ([section.slug], [])
