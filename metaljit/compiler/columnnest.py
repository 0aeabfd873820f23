"""The loops that reduce columns on a CPU.

In: a kernel with `Columns`, its uniforms and arrays. Out: C++ that stands alone: the struct, the device functions, and loops
of which the innermost runs along the last axis, as memory does. So many columns at a time have an accumulator each; what is
reduced is added to each in its order, so that a sum is that of the loop in the Metal text.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program import Uniform
from . import ir, loopnest
from .msl_statements import Printer
from .rownest import called, reduced
from .spelling import literal, type_name

WIDTH = 1024  # columns whose accumulators stay in the first cache
AT_ONCE = 4  # reductions between a load of an accumulator and its store

WORDS = (
    "columns",
    "blocks",
    "unit",
    "row",
    "left",
    "right",
    "begins",
    "width",
    "lane",
    "k",
    "first",
    "last",
    "stop",
)


def emit(
    kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str, title: str
) -> str:
    return loopnest.standing_alone(
        kernel, uniforms, buffers, math, title, WORDS, lambda printer: _columns(printer, kernel)
    )


def _columns(printer: Printer, kernel: ir.Kernel) -> None:
    out, nest = printer.out, kernel.nest
    assert isinstance(nest, ir.Columns)
    *outer, inner = kernel.positions
    extents = [printer.expr(e) for e in kernel.domain]
    out.line(f"const long columns = {extents[-1]};")
    out.line("const long blocks = (columns + block - 1) / block;")
    with out.block("for (long unit = begin; unit < end; ++unit)"):
        out.line("const long row = unit / blocks;")
        out.line("const long left = unit % blocks * block;")
        out.line("const long right = left + block < columns ? left + block : columns;")
        loopnest.unravel(printer, outer, extents[:-1], "row")
        if nest.chunk:
            piece = printer.vars[outer[0].number]
            out.line(f"const int first = {piece} * {nest.chunk};")
            count = printer.expr(nest.count)
            out.line(f"const int stop = {count} - first < {nest.chunk} ? {count} : first + {nest.chunk};")
        else:
            out.line(f"const int first = 0, stop = {printer.expr(nest.count)};")
        lanes = [printer.scope.new("lanes") for _ in nest.stages]
        for name, stage in zip(lanes, nest.stages, strict=True):
            out.line(f"alignas(64) {type_name(stage.var.type)} {name}[{WIDTH}];")
        with out.block(f"for (long begins = left; begins < right; begins += {WIDTH})"):
            out.line(f"const int width = int(right - begins < {WIDTH} ? right - begins : {WIDTH});")
            index = printer.declare(inner).split()[-1]
            with out.block("for (int lane = 0; lane < width; ++lane)"):
                for name, stage in zip(lanes, nest.stages, strict=True):
                    out.line(f"{name}[lane] = {literal(stage.start.value, stage.var.type.scalar)};")
            out.line("int k = first;")
            with out.block(f"for (; k + {AT_ONCE} <= stop; k += {AT_ONCE})"):
                _step(printer, kernel, lanes, index, AT_ONCE)
            with out.block("for (; k < stop; ++k)"):
                _step(printer, kernel, lanes, index, 1)
            with out.block("for (int lane = 0; lane < width; ++lane)"):
                out.line(f"const int {index} = int(begins) + lane;")
                at = [printer.vars[v.number] for v in kernel.positions]
                place = f"row * columns + {index}"
                for buffer, function in zip(kernel.results, nest.elements, strict=True):
                    value = called(printer, function, [*at, *(f"{n}[lane]" for n in lanes)], place)
                    stored = printer.to_store(value, buffer.dtype)
                    out.line(f"{printer.buffers[buffer.name]}[row * columns + {index}] = {stored};")


def _step(printer: Printer, kernel: ir.Kernel, lanes: Sequence[str], index: str, times: int) -> None:
    """So many elements are reduced into each accumulator."""
    out, nest = printer.out, kernel.nest
    assert isinstance(nest, ir.Columns)
    at = [printer.vars[v.number] for v in kernel.positions[bool(nest.chunk) :]]
    place = f"row * columns + {index}"
    with out.block("for (int lane = 0; lane < width; ++lane)"):
        out.line(f"const int {index} = int(begins) + lane;")
        for name, stage in zip(lanes, nest.stages, strict=True):
            total = f"{name}[lane]"
            for j in range(times):
                value = called(printer, stage.function, [*at, f"k + {j}" if j else "k"], place)
                out.line(f"{name}[lane] = {reduced(printer, stage, total, value)};")
