"""IR → Metal Shading Language, for version 2.3 with fast math forced on, and the source map.

In: a kernel in IR and the table of its uniforms. Out: text that is a pure function of them: one element function
(`NAME_at`, or `NAME_thread` of a grid kernel), the device functions it calls, and the kernel around it. The
functions take a compile-time flag `inside`; where it is true, folds and guards that margins cover vanish. The
loop nests of the `cpu` device stand in `loopnest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..dtypes import Vec
from ..frozen import frozen
from ..program import Uniform
from ..source import Span
from . import ir
from .msl_collectives import scratches
from .msl_entry import kernel_function
from .msl_statements import PARAMETERS, Emitter, Printer
from .prelude import needed
from .spelling import Scope, identifier, literal, storage_name, type_name
from .uniformity import promises
from .usage import Usage, usage

# Whoever compiles may force fast math; compilers that know these pragmas take them back, others pass over them.
SAFE = """\
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
"""
P = TypeVar("P", bound=Printer)
PROMISE = """\
#ifndef __EMU__
#define mj_uniform(x) (x)
#endif
"""
OFFSET = """\
#ifndef METALJIT_CPU
typedef int mj_offset;
#endif
"""


@frozen
class Text:
    """The printed kernel. `fields` are the struct's members in order, by the uniform's name; `names` the buffers'."""

    text: str
    entry: str
    element: str
    fields: tuple[tuple[str, Uniform], ...]
    names: Mapping[str, str]
    usage: Usage
    result: str
    lines: tuple[tuple[int, Span], ...]


def emit(
    kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str, title: str
) -> tuple[Text, Printer]:
    """The whole Metal text of a kernel, and the printer for what is to stand behind it.

    `buffers` are all arrays in `[[buffer(i)]]` order.
    """
    printer = prepared(Printer, kernel, uniforms, buffers, math)
    printer.promised = promises(kernel) if kernel.threads else frozenset()
    entry, used = identifier(kernel.name), usage(kernel.body, printer.uses)
    element = f"{entry}_at" if kernel.kind == "map" else f"{entry}_thread"
    results = [Vec(b.dtype, b.lanes) if b.lanes > 1 else b.dtype for b in kernel.results]
    printer.function(element, kernel.positions, results, kernel.body, used, kernel.span)
    kernel_function(printer, entry, element, buffers, used)
    text, shift = assembled(printer, uniforms, title)
    made = Text(
        text,
        entry,
        element,
        tuple((printer.fields[u.name], u) for u in uniforms),
        printer.buffers,
        used,
        f"{element}_result",
        tuple((n + shift, span) for n, span in printer.out.spans),
    )
    return made, printer


def prepared(
    make: type[P], kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str
) -> P:
    """A printer that knows the names of a kernel's text and has printed its functions."""
    entry = identifier(kernel.name)
    own = (entry, *(f"{entry}_{part}" for part in ("params", "at", "thread", "at_result", "cpu", "nest")))
    top = Scope(*PARAMETERS, *own, *make.words)
    members = Scope()
    fields = {u.name: members.new(u.name) for u in uniforms}
    arrays = Scope(*PARAMETERS[:-4], *own, *make.words)
    arrays.taken.discard("out")
    names = {b.name: arrays.new(b.name) for b in (*buffers, *kernel.shared, *scratches(kernel))}
    for n in names.values():
        top.taken.add(n)
    functions: dict[str, str] = {}
    uses: dict[str, Usage] = {}
    for k, f in enumerate(kernel.functions):
        functions[f"{f.name}#{k}"] = top.new(f.name)
        uses[f"{f.name}#{k}"] = usage(f.body, uses)
    printer = make(kernel, math, fields, names, functions, uses, {}, top)
    for k, f in enumerate(kernel.functions):
        key = f"{f.name}#{k}"
        printer.function(functions[key], f.params, f.results, f.body, uses[key], f.span)
    return printer


def assembled(printer: Printer, uniforms: Sequence[Uniform], title: str) -> tuple[str, int]:
    """The whole text, and how many lines stand before what was printed."""
    head = _head(printer, identifier(printer.kernel.name), uniforms, title)
    body = "\n".join(printer.out.lines)
    if "mj_uniform(" in body:
        head = f"{PROMISE}\n{head}"
    if "mj_offset" in body:
        head = f"{OFFSET}\n{head}"
    safe = SAFE if printer.math == "precise" else ""
    tiles = "#include <metal_simdgroup_matrix>\n" if "metal::simdgroup_matrix" in body else ""
    before = f"#include <metal_stdlib>\n{tiles}{safe}\n{needed(body)}{head}"
    return f"{before}{body}\n", before.count("\n")


def _head(printer: Printer, entry: str, uniforms: Sequence[Uniform], title: str) -> str:
    out = Emitter()
    for line in title.splitlines():
        out.line(f"// {line}")
    with out.block(f"struct {entry}_params", end="};"):
        for u in uniforms:
            out.line(f"{storage_name(u.dtype)} {printer.fields[u.name]};")
        if not uniforms:
            out.line("uint unused;")
    out.line()
    for (_, type), (name, values) in printer.tables.items():
        listed = ", ".join(literal(v, type) for v in values)
        out.line(f"constant {type_name(type)} {name}[{len(values)}] = {{{listed}}};")
    if printer.tables:
        out.line()
    return "\n".join(out.lines) + "\n"
