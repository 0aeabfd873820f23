"""Imports point one way only: the rule of docs/architecture.md, read from the sources with `ast`."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
FOLDERS: dict[str, Path] = {package: ROOT / folder for package, folder in SETUPTOOLS["package-dir"].items()}
BARE_NAMES = {folder.name for folder in FOLDERS.values()} - {"metaljit"}

# Each base module may import those before it.
BASE = (
    "metaljit.frozen",
    "metaljit.source",
    "metaljit.dtypes",
    "metaljit.operation_rules",
    "metaljit.operation_meanings",
    "metaljit.conversions",
    "metaljit.operations",
    "metaljit.derivatives",
    "metaljit.symbols",
    "metaljit.arguments",
    "metaljit.extents",
    "metaljit.program",
)
GRAMMAR = "metaljit.grammar*"
COMPILER = "metaljit.compiler*"
RUNTIME = "metaljit.runtime*"
STDLIB = "metaljit.stdlib_ops*"
INNER = (*BASE, GRAMMAR, COMPILER, RUNTIME)
ANY = "metaljit*"

# Who may import what; the first pattern that fits a module counts. "-x" takes x away again.
RULES: list[tuple[str, tuple[str, ...]]] = [
    *((module, BASE[:i]) for i, module in enumerate(BASE)),
    (GRAMMAR, ("metaljit.frozen", "metaljit.source", GRAMMAR)),
    ("metaljit.compiler.lower*", (*BASE, COMPILER, GRAMMAR)),
    ("metaljit.compiler.pipeline", (*BASE, COMPILER, GRAMMAR)),
    (COMPILER, (*BASE, COMPILER)),
    (RUNTIME, (*BASE, RUNTIME)),
    (STDLIB, (ANY, *(f"-{pattern}" for pattern in INNER))),
    ("metaljit.ops*", (ANY,)),
    ("metaljit.stdlib", (ANY,)),
    (ANY, (ANY, f"-{STDLIB}")),
]

# Packages of others that belong to one place.
CONFINED = {
    "click": "metaljit.cli*",
    "rich": "metaljit.cli*",
    "lark": GRAMMAR,
    "hypothesis": "metaljit.testing*",
    "metalcompute": RUNTIME,
    "ziglang": RUNTIME,
    "elftools": RUNTIME,
}


def module_table() -> dict[str, Path]:
    """Every module of ours: dotted name → file."""
    table = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            table[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return table


MODULES = module_table()
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def imports(module: str, text: str) -> Iterator[str]:
    """The dotted names that a module's text imports, wherever in it, as far as they are modules."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                origin = absolute(module, name, level)
                for alias in names:
                    inner = f"{origin}.{alias.name}"
                    yield inner if inner in MODULES else origin
            case ast.Call(
                func=ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(name)), *_],
            ):
                yield name


def absolute(module: str, name: str | None, level: int) -> str:
    if not level:
        return name or ""
    parts = module.split(".") if module in PACKAGES else module.split(".")[:-1]
    return ".".join([*parts[: len(parts) - level + 1], *([name] if name else [])])


def allowed(module: str) -> tuple[str, ...]:
    return next(targets for pattern, targets in RULES if fnmatchcase(module, pattern))


def permits(targets: tuple[str, ...], name: str) -> bool:
    taken = (target[1:] for target in targets if target.startswith("-"))
    return any(fnmatchcase(name, t) for t in targets) and not any(fnmatchcase(name, t) for t in taken)


def violations(module: str, text: str) -> list[str]:
    """What a module's imports break, one sentence each."""
    found = []
    targets = allowed(module)
    for name in imports(module, text):
        top = name.partition(".")[0]
        if top == "metaljit" and not permits(targets, name):
            found.append(f"{module} imports {name}; it may import {', '.join(targets) or 'nothing of ours'}")
        if top in CONFINED and not fnmatchcase(module, CONFINED[top]):
            found.append(f"{module} imports {name}; only {CONFINED[top]} may")
        if top in BARE_NAMES:
            found.append(f"{module} imports {name}; its name is metaljit.{name}")
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_follow_the_layers(module: str) -> None:
    broken = violations(module, MODULES[module].read_text("utf-8"))
    assert not broken, "\n" + "\n".join(dict.fromkeys(broken))


@pytest.mark.parametrize("folder", ["tests", "examples", "benchmarks"])
def test_nothing_imports_a_bare_name(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        tops = {name.partition(".")[0] for name in imports(folder, path.read_text("utf-8"))}
        assert not tops & BARE_NAMES, path


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("metaljit.source", "from metaljit.dtypes import F32"),
        ("metaljit.source", "import metaljit"),
        ("metaljit.grammar.tree", "from metaljit import program"),
        ("metaljit.grammar.tree", "from ..compiler import ir"),
        ("metaljit.compiler.simplify", "def f():\n    from metaljit.grammar import tree"),
        ("metaljit.compiler.lower", "import metaljit.runtime.device"),
        ("metaljit.compiler", "from .. import runtime"),
        ("metaljit.runtime.launch", "from metaljit.compiler import ir"),
        ("metaljit.runtime.launch", "importlib.import_module('metaljit.grammar.tree')"),
        ("metaljit.runtime.launch", "import metaljit.kernels"),
        ("metaljit.stdlib_ops.stencil", "from metaljit.runtime import device"),
        ("metaljit.kernels", "from metaljit import stdlib_ops"),
        ("metaljit.kernels", "import rich.console"),
        ("metaljit.compiler.lower", "from lark import Tree"),
        ("metaljit.kernels", "from runtime import device"),
        ("metaljit.kernels", "import grammar.tree"),
    ],
)
def test_the_rule_refuses(module: str, text: str) -> None:
    assert len(violations(module, text)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("metaljit.program", "from metaljit.source import Span"),
        ("metaljit.grammar", "from .tree import Expr"),
        ("metaljit.grammar.parser", "from lark import Lark"),
        ("metaljit.compiler.lower_calls", "from metaljit.grammar import tree"),
        ("metaljit.compiler.pipeline", "from metaljit.compiler import lower"),
        ("metaljit.runtime.cpu", "from . import device\nimport numpy, subprocess"),
        ("metaljit.stdlib_ops.stencil", "import metaljit as mj\nfrom metaljit.lang import f32"),
        ("metaljit.kernels", "from metaljit.runtime import device"),
        ("metaljit.ops", "from metaljit import stdlib_ops"),
        ("metaljit.cli", "import click"),
    ],
)
def test_the_rule_permits(module: str, text: str) -> None:
    assert violations(module, text) == []


LIGHT = """
import sys
import numpy
before = set(sys.modules)
starts = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec"}
probes = {"ctypes.dlopen", "socket.connect"}
def hook(event, arguments):
    if event in starts | probes:
        sys.exit(f"importing metaljit does {event} {arguments}")
sys.addaudithook(hook)
import metaljit
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {
    *("click", "rich", "lark", "ml_dtypes", "hypothesis", "pytest", "PIL", "metalcompute", "ziglang"),
    *("subprocess", "multiprocessing", "concurrent", "sqlite3", "asyncio"),
}


def test_importing_metaljit_is_light(tmp_path: Path) -> None:
    """Nothing heavy is loaded, nothing is started, probed or compiled, no module has a second copy."""
    result = subprocess.run(
        [sys.executable, "-c", LIGHT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    tops = {name.partition(".")[0] for name in result.stdout.split()}
    assert "metaljit" in tops
    assert not tops & HEAVY
    assert not tops & BARE_NAMES
