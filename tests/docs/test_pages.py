"""Every program in the README and in docs/ runs, and prints what the page says that it prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import PAGES, Block, matches, prepare, programs, run

# errors.md is run by test_errors.py: half of its programs must fail.
BLOCKS = [b for page in PAGES if page.name != "errors.md" for b in programs(page)]


def test_every_page_with_programs_is_found() -> None:
    assert {"README.md", "language.md", "tutorial.md"} <= {b.page.name for b in BLOCKS}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_program(block: Block, tmp_path: Path) -> None:
    prepare(tmp_path, block.page, block.line)
    if block.page.name == "README.md":
        kernel = next(b for b in programs(block.page) if "def laplacian" in b.text)
        (tmp_path / "laplacian.mjk").write_text(kernel.text, encoding="utf-8")
    printed = run(block, tmp_path)
    if block.output is not None:
        assert matches(printed, block.output), f"{block} printed\n{printed}"
