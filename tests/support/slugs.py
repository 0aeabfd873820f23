"""Every slug that the sources raise: the first words of the calls that make diagnostics."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("metaljit", "grammar", "runtime", "stdlib_ops")
MAKERS = {"fault", "Diagnostic", "Refusal", "Mistake", "Kind"}
RULES = {"Finding", "finding"}  # of Metal source; the doctor has findings too
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def used() -> dict[str, str]:
    """Slugs, and a place where each is used."""
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for slug in _slugs(node):
                    found.setdefault(slug, f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}")
    return found


def _slugs(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(_, name), args) if name.lstrip("_") in MAKERS | RULES:
            # the slug comes first, or after the class of the exception
            words = [a.value for a in args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            is_rule = name in RULES
            yield from (w for w in words[:1] if SLUG.fullmatch(w) and (not is_rule or w.startswith("msl-")))
        case ast.AnnAssign(ast.Name("slug"), _, ast.Constant(str(word))):
            yield word
