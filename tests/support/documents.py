"""The programs in the pages of docs/: how they are found, and how each kind is run.

In: a page. Out: blocks, and what they print. A fence's info string says what a block is:

    python             a program of its own
    python mjk         a text of the kernel language; a kernel that the page does not call is compiled for every
                       type and rank that it declares
    bash               commands; run if every one is `metaljit …`, with the console script beside this Python
    text               what the block directly above prints; `…` stands for anything
    file=NAME          (another word) the block is also saved as NAME, for itself and for the page's later blocks

Lines `# name(arguments) → results` in a kernel text are calls that are made and compared. Everything runs in a
folder of its own, which holds `photo.png`.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.dtypes import TYPES, DType, Vec
from metaljit.program import Program
from metaljit.symbols import CONSTANTS, DTypeVariable

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.S | re.M)
_CALL = re.compile(r"^# (\w+\(.*\))\s+→\s+(.+)$", re.M)


@dataclass(frozen=True)
class Block:
    """One fenced block; `line` is where its first line of text stands in the page, `output` what it prints."""

    page: Path
    line: int
    words: tuple[str, ...]
    text: str
    output: str | None = None

    @property
    def language(self) -> str:
        return "mjk" if "mjk" in self.words else self.words[0] if self.words else ""

    @property
    def file(self) -> str | None:
        return next((w.removeprefix("file=") for w in self.words if w.startswith("file=")), None)

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order, those of output joined to the block that prints it."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        words, content = tuple(match[1].split()), match[2]
        follows = not text[end : match.start()].strip()
        end = match.end()
        if words == ("text",) and found and follows and found[-1].language in ("python", "bash"):
            last = found.pop()
            found.append(Block(last.page, last.line, last.words, last.text, content))
            continue
        found.append(Block(page, text.count("\n", 0, match.start()) + 2, words, content))
    return found


def programs(page: Path) -> list[Block]:
    """The blocks that are run."""
    return [b for b in blocks(page) if b.language in ("python", "mjk") or _commands_of_ours(b)]


def _commands_of_ours(block: Block) -> bool:
    lines = [x for x in block.text.splitlines() if x.strip() and not x.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return block.language in ("bash", "sh") and all(line.startswith("metaljit ") for line in joined)


# ---- running ----


def prepare(folder: Path, page: Path, until: int) -> None:
    """The folder as a reader who followed the page has it."""
    shutil.copy(ROOT / "examples" / "camera.png", folder / "photo.png")
    for block in blocks(page):
        if block.file is not None and block.line <= until:
            (folder / block.file).write_text(block.text, encoding="utf-8")


def run(block: Block, folder: Path) -> str:
    """Runs a block in its folder; what it printed."""
    match block.language:
        case "python":
            return run_python(block.text, folder / (block.file or "block.py"))
        case "mjk":
            run_kernels(block.text, folder / (block.file or "block.mjk"))
            return ""
        case _:
            return run_commands(block.text, folder)


def run_python(text: str, path: Path) -> str:
    """Runs a program as a file of this process; what it printed."""
    path.write_text(text, encoding="utf-8")
    before, printed = set(sys.modules), io.StringIO()
    environment = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(path.parent)
        patch.syspath_prepend(str(path.parent))
        patch.setenv("METALJIT_DEVICE", "cpu")
        try:
            exec(compile(text, str(path), "exec"), {"__name__": path.stem, "__file__": str(path)})
        finally:
            os.environ.clear()  # a setting that the program makes ends with it
            os.environ.update(environment)
            for name in set(sys.modules) - before:
                if str(path.parent) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
    return printed.getvalue()


def run_commands(text: str, folder: Path, status: int = 0) -> str:
    """Runs shell commands; their standard output, and standard error where they are to fail."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stderr if status else done.stdout


def run_kernels(text: str, path: Path) -> None:
    """Compiles every kernel of a text for all that it declares, and makes the calls that it shows."""
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        file = mj.load_kernels(path.name)
        calls = _CALL.findall(text)
        called = {call.partition("(")[0] for call, _ in calls}
        compile_kernels([k for k in file if k.__name__ not in called])
        for call, wanted in calls:
            _compare(file, call, wanted)


def compile_kernels(kernels: Iterable[mj.Kernel]) -> list[Program]:
    """The programs of kernels, for all types and ranks that they declare."""
    from metaljit.cli_kernels import kinds_of

    return [k.program(*kind.values) for k in kernels for kind in kinds_of(k, {}, {}).kinds]


# ---- calls that a kernel text shows ----


def _compare(file: mj.KernelFile, call: str, wanted: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    kernel = getattr(file, node.func.id)
    args = list(_arguments(kernel, node))
    named = {n: v for n, v in args if n in {k.arg for k in node.keywords}}
    if slug := re.fullmatch(r"error: ([a-z0-9-]+)", wanted.strip()):
        with pytest.raises(mj.MetaljitError) as caught:
            kernel.on("cpu")(*(v for n, v in args if n not in named), **named)
        assert caught.value.slug == slug[1], call
        return
    found = kernel.on("cpu")(*(v for n, v in args if n not in named), **named)
    expected = _value(ast.parse(wanted, mode="eval").body, None)
    several = (found, expected) if isinstance(found, tuple) else ((found,), (expected,))
    for got, due in zip(*several, strict=True):
        assert got.shape == np.shape(due), f"{call} has shape {got.shape}: {got}"
        np.testing.assert_allclose(
            got.astype(np.float64), np.asarray(due, np.float64), rtol=1e-4, atol=1e-6, err_msg=call
        )


def _arguments(kernel: mj.Kernel, node: ast.Call) -> Iterator[tuple[str, Any]]:
    from metaljit.cli_kernels import signature

    params = [p for p in signature(kernel).params if p.kind != "out"]
    elements = {p.name: p.annotation.element if p.annotation else None for p in params}
    for p, a in zip(params, node.args, strict=False):
        yield p.name, _value(a, elements[p.name])
    for k in node.keywords:
        assert k.arg
        yield k.arg, _value(k.value, elements.get(k.arg))


def _value(node: ast.expr, element: DType | Vec | DTypeVariable | None) -> Any:
    """A list is an array of the parameter's element type; `u8([1, 2])` names it."""
    match node:
        case ast.List():
            scalar = element.options[0] if isinstance(element, DTypeVariable) else element and element.scalar
            return np.array(_plain(node), scalar.numpy if scalar else None)
        case ast.Call(ast.Name(name), [ast.List() as items]):
            return np.array(_plain(items), TYPES[name].scalar.numpy)
        case ast.Tuple(items) if element is None:
            return tuple(_value(i, None) for i in items)
        case _:
            return _plain(node)


def _plain(node: ast.expr) -> Any:
    return eval(compile(ast.Expression(node), "call", "eval"), {"__builtins__": {}, **CONSTANTS})


def matches(printed: str, wanted: str) -> bool:
    """Whether a text is what a page shows; `…` stands for anything within a line, alone on a line for any lines."""
    pattern = ""
    for line in wanted.strip("\n").splitlines():
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("…")) + r"\n"
    found = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, found) is not None
