"""What `check`, `show` and `build` make of a kernel: reports and texts.

In: kernels and kinds. Out: text; files and exit statuses are the commands'.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from shutil import which
from typing import Any

import click
import numpy as np

from .arguments import Argument, ArrayArgument, ConstArgument, ScalarArgument
from .cli_errors import fault, progress
from .cli_kernels import Kind, Kinds, TypeSpec, kinds_of, signature
from .compiled import VERSION, Parameter
from .compiler.ir_text import show
from .compiler.lower.kernel import lower_kernel
from .dtypes import from_numpy
from .extents import show as show_extent
from .kernels import Kernel, Spec
from .program import ArrayParam, Program
from .source import Diagnostic, Span, TypeFault

LISTED = 4


# ---- check ----


@dataclass
class Report:
    """What checking one kernel for all its kinds found; each text once, with the kinds that it concerns."""

    kernel: Kernel
    kinds: Kinds
    passed: int = 0
    notes: dict[str, list[Kind]] = field(default_factory=dict)
    errors: dict[str, list[Kind]] = field(default_factory=dict)
    refused: dict[str, list[Kind]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """The summary, the kinds that the kernel refuses by itself, and the guards that remain."""
        verdict = (
            "ok" if not self.errors else f"{len(self.errors)} error{'s' if len(self.errors) > 1 else ''}"
        )
        yield f"{self.kernel.__name__}: {verdict}{self._coverage()}"
        for text, kinds in self.refused.items():
            yield f"  not for {self._listed(kinds)}: {text}"
        for text, kinds in self.notes.items():
            yield text
            if len(kinds) < self.passed:
                yield f"  for {self._listed(kinds)}"

    def _coverage(self) -> str:
        total, free = self.kinds.total, "; ".join(self.kinds.free)
        if total == 1:
            return ""
        if len(self.kinds.kinds) < total:
            return f", {len(self.kinds.kinds)} of {total} kinds, each choice at least once: {free}"
        return f", {total} kinds: {free}"

    def _listed(self, kinds: Sequence[Kind]) -> str:
        """The kinds in few words: a choice of which they have every value is left away."""
        found = [k.choices for k in kinds]
        everything = [k.choices for k in self.kinds.kinds]
        for at in reversed(range(len(everything[0]))):
            without = list(dict.fromkeys(c[:at] + c[at + 1 :] for c in found))
            if len(found) == len(without) * len({c[at] for c in everything}):
                found, everything = without, list(dict.fromkeys(c[:at] + c[at + 1 :] for c in everything))
        shown = "; ".join(", ".join(c) for c in found[:LISTED])
        return shown + (f" and {len(found) - LISTED} more" if len(found) > LISTED else "")

    def error_texts(self) -> Iterator[str]:
        for text, kinds in self.errors.items():
            yield text + (f"\n  for {self._listed(kinds)}" if len(kinds) < len(self.kinds.kinds) else "")


def check(kernel: Kernel, types: Mapping[str, TypeSpec], args: Mapping[str, str]) -> Report:
    """Compiles the kernel for every kind. A kind that a `static_assert` rules out is refused, not wrong."""
    report = Report(kernel, kinds_of(kernel, types, args))
    failed: list[tuple[Kind, Sequence[Diagnostic]]] = []
    with progress(f"Checking {kernel.__name__}"):
        for kind in report.kinds.kinds:
            try:
                program = kernel.program(*kind.values)
            except TypeFault as e:
                failed.append((kind, e.diagnostics))
                continue
            report.passed += 1
            for note in program.notes:
                report.notes.setdefault(note, []).append(kind)
    ruled_out = [all(d.slug == "static-assertion" for d in diagnostics) for _, diagnostics in failed]
    others = report.passed > 0 or not all(ruled_out)
    lenient = report.passed > 0 and _has_tuple_constant(kernel)
    for (kind, diagnostics), by_itself in zip(failed, ruled_out, strict=True):
        if lenient or (by_itself and others):
            report.refused.setdefault(diagnostics[0].message, []).append(kind)
            continue
        for d in diagnostics:
            report.errors.setdefault(str(d), []).append(kind)
    return report


def _has_tuple_constant(kernel: Kernel) -> bool:
    """A tuple as long as the axes of a pack decides the rank: its default fits one rank, not all."""
    return any(p.kind == "const" and p.const == "tuple" for p in signature(kernel).params)


# ---- show ----


def tree_text(node: Any, indent: str = "") -> Iterator[str]:
    """A node of the tree, a line each, with its place in the file."""
    plain, nested = [], []
    for f in fields(node):
        value = getattr(node, f.name)
        if isinstance(value, Span):
            continue
        if isinstance(value, tuple) and value and all(isinstance(v, str) for v in value):
            plain.append(f"{f.name}={' '.join(value)!r}")
        elif isinstance(value, tuple) or hasattr(value, "span"):
            nested.append((f.name, value))
        elif value is not None and value is not False:
            plain.append(f"{f.name}={value!r}")
    place = f"{node.span.line}:{node.span.column}"
    yield f"{indent}{' '.join([type(node).__name__, *plain])}  @{place}"
    for name, value in nested:
        items = value if isinstance(value, tuple) else (value,)
        if items:
            yield f"{indent}  {name}:"
        for item in items:
            yield from tree_text(item, indent + "    ")


def ir_text(kernel: Kernel, kind: Kind) -> str:
    definition = kernel.definition
    arguments = {p.name: _argument(p, v) for p, v in zip(kernel.parameters, kind.values, strict=True)}
    return show(lower_kernel(definition.tree, definition.text.resolve, arguments).kernel)


def _argument(p: Parameter, value: Any) -> Argument:
    """What the compiler takes for a value of a kind."""
    if p.kind == "const":
        return ConstArgument(value)
    if isinstance(value, Spec):
        dtype = from_numpy(value.dtype)
        assert dtype is not None
        return ArrayArgument(dtype, value.ndim)
    return ScalarArgument(from_numpy(value.dtype) if isinstance(value, np.generic) else None)


# ---- build ----


def metal_text(program: Program) -> str:
    """The Metal source with a comment that says how to launch it."""
    return "\n".join([*(f"// {line}".rstrip() for line in _launch_notes(program)), "", program.msl])


def _launch_notes(program: Program) -> Iterator[str]:
    where = "".join(c if c.isprintable() and c != "\\" else "?" for c in program.where)
    yield f"{program.name}, made by metaljit {VERSION} from {where}."
    yield ""
    launch = program.launches[0]
    group = f" in groups of {launch.threadgroup}" if launch.threadgroup else ""
    yield f"Launch {launch.entry} over {show_extent(launch.threads)} threads{group}, in one dimension; more do no harm."
    for k, name in enumerate(program.buffers):
        array = next(a for a in program.arrays if a.name == name)
        yield f"  buffer({k})  {name}: {_array_note(array)}"
    members = ", ".join(
        f"{u.name} = {show_extent(u.value)}"
        if u.value is not None
        else f"{u.name}{f' (lane {u.lane})' if u.lane else ''}"
        for u in program.uniforms
    )
    after = len(program.buffers)
    yield f"  buffer({after})  {program.launches[0].entry}_params: {members or 'one word'}"
    yield f"  buffer({after + 1})  status: four words of 0; the first becomes 0x6d6a6974 when the kernel ran,"
    yield "             the second the number of an assertion that failed"


def _array_note(a: ArrayParam) -> str:
    element = f"{a.dtype}x{a.lanes}" if a.lanes > 1 else str(a.dtype)
    role = {"in": "read", "out": "written", "inout": "read and written"}[a.role]
    zeros = ", zeros before" if a.zeroed else ""
    return f"{element}[{', '.join(map(show_extent, a.shape))}], {role}{zeros}"


def metallib(program: Program) -> bytes:
    """The library that Apple's compiler makes of the text; a fault where that compiler is not installed."""
    tool = which("xcrun")
    if tool is None or not _runs([tool, "--find", "metal"]):
        missing = "`xcrun` was not found" if tool is None else "`xcrun` finds no `metal`"
        raise fault(
            "metal-compiler-missing",
            f"a .metallib is made by Apple's Metal compiler, and {missing}",
            "build a .metal here; on a Mac with Xcode: xcrun -sdk macosx metal x.metal -o x.metallib",
        )
    major, minor = program.language_version
    math = () if program.math == "fast" else ("-fno-fast-math",)
    with (
        tempfile.TemporaryDirectory(prefix="metaljit-") as folder,
        progress("Running Apple's Metal compiler"),
    ):
        text, library = os.path.join(folder, "kernel.metal"), os.path.join(folder, "kernel.metallib")
        with open(text, "w", encoding="utf-8") as file:
            file.write(program.msl)
        command = [
            tool,
            "-sdk",
            "macosx",
            "metal",
            f"-std=macos-metal{major}.{minor}",
            *math,
            text,
            "-o",
            library,
        ]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode or not os.path.exists(library):
            raise fault(
                "metal-compiler-failed",
                f"{program.name}: Apple's Metal compiler failed:\n{done.stderr.strip().replace(text, program.name)}",
                "please report it, with the kernel's text",
            )
        with open(library, "rb") as made:
            return made.read()


def _runs(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def output_kind(path: str) -> str:
    """`.metal` or `.metallib`; UsageError for another name."""
    found = os.path.splitext(path)[1]
    if found not in (".metal", ".metallib"):
        raise click.UsageError(f"-o {path}: the name ends in .metal or .metallib")
    return found
