"""For each topic of the golden cases, the public calls that compute a case's outputs: a module of this folder a family."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from calls.common import Call

OPS: dict[tuple[str, str], Call] = {}
for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    OPS |= getattr(import_module(f"calls.{path.stem}"), "OPS", {})
