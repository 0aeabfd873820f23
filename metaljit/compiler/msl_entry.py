"""The kernel function: it finds where its thread stands and calls the element function.

In: the element function's name and the arrays. Out: lines. Who launches the kernel rounds the threads up to whole
threadgroups of a size that the device chooses. A cooperative kernel is made for one size: the attribute bounds it, and
what remains is checked. A group of another size does nothing but say so in the status words, a group behind the grid does
nothing.

A bound of one simdgroup has been compiled wrongly on Apple GPUs, so a cooperative kernel with groups of 32 threads is
launched in groups of 64, of which the second half is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..dtypes import Vec
from . import ir
from .msl_collectives import scratches
from .msl_statements import PARAMETERS, Printer
from .spelling import Scope, storage_name, type_name
from .usage import Usage

RAN = "0x6d6a6974u"  # what the status word holds after a kernel ran
UNFIT = "0x6d6a6773u"  # and what where it ran in threadgroups of a size that it is not made for
LEAST_GROUP = 64


def kernel_function(
    printer: Printer,
    entry: str,
    element: str,
    buffers: Sequence[ir.Buffer],
    used: Usage,
) -> None:
    printer.scope = Scope(*PARAMETERS, *printer.buffers.values(), *printer.functions.values(), entry, element)
    printer.vars = {}
    n = len(buffers)
    listed = [
        *(f"{printer.buffer_parameter(b)} [[buffer({k})]]" for k, b in enumerate(buffers)),
        f"constant {entry}_params& p [[buffer({n})]]",
        f"device metal::atomic_uint* status [[buffer({n + 1})]]",
    ]
    if printer.kernel.cooperative:
        _of_groups(printer, entry, element, listed, used)
    else:
        _of_threads(printer, entry, element, listed, used)


def _of_threads(printer: Printer, entry: str, element: str, listed: list[str], used: Usage) -> None:
    kernel, out = printer.kernel, printer.out
    listed.append("uint gid [[thread_position_in_grid]]")
    with out.block(out.call(f"kernel void {entry}", listed), kernel.span):
        out.line(f"if (gid == 0u) {{ {stored('status', RAN)}; }}")
        extents = [printer.expr(e) for e in kernel.domain]
        out.line(f"if (gid >= {_count(extents)}) {{ return; }}")
        _unravel(printer, kernel.positions, extents, "gid")
        for line in store_lines(printer, kernel, _call(printer, element, used), element, "gid"):
            out.line(line)


def _of_groups(printer: Printer, entry: str, element: str, listed: list[str], used: Usage) -> None:
    kernel, out = printer.kernel, printer.out
    rank, size = len(kernel.threads), prod(kernel.threads)
    launched = max(size, LEAST_GROUP)
    group, index, threads = (printer.scope.new(n) for n in ("group", "index", "threads"))
    listed += [
        f"uint {group} [[threadgroup_position_in_grid]]",
        f"uint {index} [[thread_index_in_threadgroup]]",
        f"uint {threads} [[threads_per_threadgroup]]",
    ]
    out.line(f"[[max_total_threads_per_threadgroup({launched})]]")
    with out.block(out.call(f"kernel void {entry}", listed), kernel.span):
        for b in (*kernel.shared, *scratches(kernel)):
            out.line(
                f"threadgroup {storage_name(b.dtype)} {printer.buffers[b.name]}[{b.lanes * (b.size or 0)}];"
            )
        first = f"if ({group} == 0u && {index} == 0u)"
        with out.block(f"if ({threads} != {launched}u)"):
            with out.block(first):
                out.line(f"{stored('status', UNFIT)};")
                out.line(f"{stored('status + 2', threads)};")
            out.line("return;")
        out.line(f"{first} {{ {stored('status', RAN)}; }}")
        extents = [printer.expr(e) for e in kernel.domain[:rank]]
        out.line(f"if ({group} >= {_count(extents)}) {{ return; }}")
        if launched > size:
            out.line(f"if ({index} >= {size}u) {{ return; }}")
        _unravel(printer, kernel.positions[:rank], extents, group)
        _unravel(printer, kernel.positions[rank:], [str(n) for n in kernel.threads], index)
        if used.checks:
            out.line(f"const uint gid = {group} * {size}u + {index};")
        out.line(f"{_call(printer, element, used)};")


def stored(place: str, value: str) -> str:
    return f"metal::atomic_store_explicit({place}, {value}, metal::memory_order_relaxed)"


def _count(extents: Sequence[str]) -> str:
    return " * ".join(f"uint({e})" for e in extents) or "1u"


def _call(printer: Printer, element: str, used: Usage) -> str:
    arguments = ["p", *(("status", "gid") if used.checks else ())]
    arguments += [printer.buffers[b] for b in sorted(used.buffers)]
    arguments += [printer.vars[v.number] for v in printer.kernel.positions]
    return f"{element}{'<false>' if used.inside else ''}({', '.join(arguments)})"


def _unravel(printer: Printer, positions: Sequence[ir.Var], extents: Sequence[str], flat: str) -> None:
    """Positions from the flat index, last fastest; remainders by subtraction, because a divide-then-modulo of
    unsigned integers has been compiled wrongly on Apple GPUs."""
    out, rest = printer.out, flat
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
