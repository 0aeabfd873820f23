"""Prints the pages of `docs/ops/` from the ops' docstrings: `python docs/reference.py`."""

from __future__ import annotations

from pathlib import Path

from metaljit import ops_reference

HERE = Path(__file__).parent / "ops"


def pages() -> dict[str, str]:
    """The text of each page by its file's name."""
    made = {f"{family}.md": ops_reference.page(family) for family in ops_reference.families()}
    return {"README.md": ops_reference.index(), **made}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for old in HERE.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
