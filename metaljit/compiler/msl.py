"""IR → Metal Shading Language, for version 2.3 with fast math forced on, and the source map.

In: a kernel in IR and the table of its uniforms. Out: text that is a pure function of them: one element function
(`NAME_at`, or `NAME_thread` of a grid kernel), the device functions it calls, and the kernel around it. The
functions take a compile-time flag `inside`; where it is true, folds and guards that margins cover vanish. The
loop nests of the `cpu` device stand in `loopnest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dtypes import Vec
from ..frozen import frozen
from ..program import Uniform
from ..source import Span
from . import ir
from .msl_statements import PARAMETERS, Emitter, Printer
from .prelude import needed
from .spelling import Scope, identifier, literal, storage_name, type_name
from .usage import Usage, usage

RAN = "0x6d6a6974u"  # what the status word holds after a kernel ran
# Whoever compiles may force fast math; compilers that know these pragmas take them back, others pass over them.
SAFE = """\
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
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
    entry = identifier(kernel.name)
    own = (entry, *(f"{entry}_{part}" for part in ("params", "at", "thread", "at_result", "cpu", "nest")))
    top = Scope(*PARAMETERS, *own)
    members = Scope()
    fields = {u.name: members.new(u.name) for u in uniforms}
    arrays = Scope(*PARAMETERS[:-4], *own)
    arrays.taken.discard("out")
    names = {b.name: arrays.new(b.name) for b in buffers}
    for n in names.values():
        top.taken.add(n)
    element = f"{entry}_at" if kernel.kind == "map" else f"{entry}_thread"
    functions: dict[str, str] = {}
    uses: dict[str, Usage] = {}
    for k, f in enumerate(kernel.functions):
        functions[f"{f.name}#{k}"] = top.new(f.name)
        uses[f"{f.name}#{k}"] = usage(f.body, uses)
    printer = Printer(kernel, math, fields, names, functions, uses, {}, top)
    for k, f in enumerate(kernel.functions):
        key = f"{f.name}#{k}"
        printer.function(functions[key], f.params, f.results, f.body, uses[key], f.span)
    used = usage(kernel.body, uses)
    results = [Vec(b.dtype, b.lanes) if b.lanes > 1 else b.dtype for b in kernel.results]
    printer.function(element, kernel.positions, results, kernel.body, used, kernel.span)
    _entry(printer, entry, element, buffers, used)
    head = _head(printer, entry, uniforms, title)
    body = "\n".join(printer.out.lines)
    if "mj_offset" in body:
        head = f"{OFFSET}\n{head}"
    prelude = needed(body)
    text = f"#include <metal_stdlib>\n{SAFE if math == 'precise' else ''}\n{prelude}{head}"
    shift = text.count("\n")
    lines = tuple((n + shift, span) for n, span in printer.out.spans)
    made = Text(
        text + "\n".join(printer.out.lines) + "\n",
        entry,
        element,
        tuple((fields[u.name], u) for u in uniforms),
        names,
        used,
        f"{element}_result",
        lines,
    )
    return made, printer


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


def _entry(printer: Printer, entry: str, element: str, buffers: Sequence[ir.Buffer], used: Usage) -> None:
    """The kernel: marks that it ran, guards the rounded-up grid, finds its position, stores the element."""
    kernel, out = printer.kernel, printer.out
    printer.scope = Scope(*PARAMETERS, *printer.buffers.values(), *printer.functions.values(), entry, element)
    printer.vars = {}
    listed = [f"{printer.buffer_parameter(b)} [[buffer({k})]]" for k, b in enumerate(buffers)]
    n = len(buffers)
    listed.append(f"constant {entry}_params& p [[buffer({n})]]")
    listed.append(f"device metal::atomic_uint* status [[buffer({n + 1})]]")
    listed.append("uint gid [[thread_position_in_grid]]")
    with out.block(out.call(f"kernel void {entry}", listed), kernel.span):
        out.line(
            f"if (gid == 0u) {{ metal::atomic_store_explicit(status, {RAN}, metal::memory_order_relaxed); }}"
        )
        extents = [printer.expr(e) for e in kernel.domain]
        count = " * ".join(f"uint({e})" for e in extents) or "1u"
        out.line(f"if (gid >= {count}) {{ return; }}")
        _unravel(printer, extents)
        arguments = [
            "p",
            *(("status", "gid") if used.checks else ()),
            *(printer.buffers[b] for b in sorted(used.buffers)),
        ]
        arguments += [printer.vars[v.number] for v in kernel.positions]
        call = f"{element}{'<false>' if used.inside else ''}({', '.join(arguments)})"
        for line in store_lines(printer, kernel, call, element, "gid"):
            out.line(line)


def _unravel(printer: Printer, extents: Sequence[str]) -> None:
    """Positions from the flat index, last fastest; remainders by subtraction, because a divide-then-modulo of
    unsigned integers has been compiled wrongly on Apple GPUs."""
    out, rest = printer.out, "gid"
    positions = printer.kernel.positions
    for k in range(len(positions) - 1, -1, -1):
        if k == 0:
            text = f"int({rest})"
        else:
            above = printer.scope.new("rest")
            out.line(f"const uint {above} = {rest} / uint({extents[k]});")
            text = f"int({rest} - {above} * uint({extents[k]}))"
            rest = above
        out.line(f"const {printer.declare(positions[k])} = {text};")


def store_lines(printer: Printer, kernel: ir.Kernel, call: str, element: str, at: str) -> list[str]:
    """Statements that store an element's results at flat index `at`."""
    if kernel.kind == "grid":
        return [f"{call};"]
    if len(kernel.results) == 1 and kernel.results[0].lanes == 1:
        (b,) = kernel.results
        return [f"{printer.buffers[b.name]}[{at.strip('()')}] = {printer.to_store(call, b.dtype)};"]
    lines: list[str] = []
    made = "made"
    if len(kernel.results) == 1:
        lines.append(
            f"const {type_name(Vec(kernel.results[0].dtype, kernel.results[0].lanes))} {made} = {call};"
        )
    else:
        lines.append(f"const {element}_result {made} = {call};")
    for k, b in enumerate(kernel.results):
        value = made if len(kernel.results) == 1 else f"{made}.r{k}"
        name = printer.buffers[b.name]
        if b.lanes == 1:
            lines.append(f"{name}[{at}] = {printer.to_store(value, b.dtype)};")
        else:
            lines += [
                f"{name}[{b.lanes}u * {at} + {j}u] = {printer.to_store(f'{value}.{lane}', b.dtype)};"
                for j, lane in zip(range(b.lanes), "xyzw", strict=False)
            ]
    return lines
