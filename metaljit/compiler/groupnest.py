"""The loop over threadgroups that runs a cooperative kernel on a CPU.

In: a kernel, its uniforms and arrays. Out: C++ that stands alone: the struct, the device functions, and a loop of which
each turn is a whole group, written by `lanes`. A group's arrays lie on the stack, or in one block of memory where they are
large.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..program import Uniform
from . import ir, loopnest, msl
from .lanes import Array, Lanes
from .msl_statements import PARAMETERS, Emitter
from .spelling import Scope, identifier, storage_name
from .structured import with_indices, without_returns
from .uniformity import levels
from .usage import usage

STACK_BYTES = 1 << 17
ALIGNMENT = 64


def emit(
    kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str, title: str
) -> str:
    kernel = with_indices(without_returns(kernel))
    printer = msl.prepared(Lanes, kernel, uniforms, buffers, math)
    printer.levels, printer.used = levels(kernel), usage(kernel.body, printer.uses)
    printer.scope = Scope(*PARAMETERS, *printer.words, *printer.buffers.values(), *printer.functions.values())
    printer.vars = {}
    functions = printer.out
    printer.out = Emitter(depth=1)
    rank = len(kernel.threads)
    head = _positions(printer, kernel.positions[:rank], [printer.expr(e) for e in kernel.domain[:rank]])
    for var, size in zip(kernel.positions[rank:], kernel.threads, strict=True):
        text = printer.declare(var)
        head += [f"const {text} = 0;"] if size == 1 else []
    if printer.used.checks:
        head.append(f"const uint gid = uint(unit * {prod(kernel.threads)});")
    printer.out.depth = 2
    printer.group()
    body, printer.out = printer.out.lines, functions
    loopnest.shell(
        functions, identifier(kernel.name), printer.buffers, buffers, lambda: _groups(printer, head, body)
    )
    return msl.assembled(printer, uniforms, title)[0]


def _positions(printer: Lanes, positions: Sequence[ir.Var], extents: Sequence[str]) -> list[str]:
    """Where a group stands in the grid, from `unit`, last fastest."""
    lines, rest = [], "unit"
    for k in range(len(positions) - 1, -1, -1):
        text = f"int({rest} % {extents[k]})" if k else f"int({rest})"
        lines.append(f"const {printer.declare(positions[k])} = {text};")
        rest = f"({rest} / {extents[k]})"
    return lines


def _groups(printer: Lanes, head: Sequence[str], body: Sequence[str]) -> None:
    out = printer.out
    shared = [_shared(printer, b) for b in printer.kernel.shared]
    large = _declare(out, [*shared, *printer.arrays])
    with out.block("for (long unit = begin; unit < end; ++unit)"):
        for line in head:
            out.line(line)
        out.lines += body
    if large:
        out.line("__builtin_free(memory);")


def _shared(printer: Lanes, b: ir.Buffer) -> Array:
    count = b.lanes * (b.size or 0)
    return Array(printer.buffers[b.name], storage_name(b.dtype), f"[{count}]", count * b.dtype.nbytes)


def _declare(out: Emitter, arrays: Sequence[Array]) -> bool:
    """The arrays' declarations; whether they lie in a block of memory that is to be given back."""
    sizes = [-(-a.nbytes // ALIGNMENT) * ALIGNMENT for a in arrays]
    if sum(sizes) <= STACK_BYTES:
        for a in arrays:
            out.line(f"alignas({ALIGNMENT}) {a.type} {a.name}{a.extents};")
        return False
    out.line(f"char* const memory = static_cast<char*>(__builtin_malloc({sum(sizes)}));")
    at = 0
    for a, size in zip(arrays, sizes, strict=True):
        out.line(f"auto& {a.name} = *reinterpret_cast<{a.type} (*){a.extents}>(memory + {at});")
        at += size
    return True
