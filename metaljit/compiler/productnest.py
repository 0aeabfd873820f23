"""The loops that multiply matrices on a CPU.

In: a kernel with `Tiled`, its uniforms and arrays. Out: C++ that stands alone: the struct, the device functions, and loops
of which each turn is a block of the result. Blocks of both factors are computed into memory that stays in the second cache,
the right one in panels as wide as the innermost loop, which holds `HIGH` rows of a panel of the result in registers. Each
element is summed in the order of k, by fused multiplications of floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from ..program import Uniform
from . import ir, loopnest
from .fuse_groups import MOST_ARRAYS
from .msl_statements import Printer
from .rownest import called
from .spelling import type_name

HIGH, WIDE = 6, 16  # what the innermost loop keeps in registers
ROWS, COLUMNS, DEPTH = 120, 256, 256  # of the blocks

WORDS = (
    "rows", "columns", "count", "down", "across", "depth", "most_high", "most_wide", "size", "memory", "left_block",
    "right_block", "sums", "column", "high", "wide", "panels", "steps", "at", "deep", "r", "k", "c", "panel", "line",
    *(f"value{k}" for k in range(MOST_ARRAYS)),
    "mj_scalar", "mj_lanes", "mj_multiply",
)  # fmt: skip


def emit(
    kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str, title: str
) -> str:
    nest = kernel.nest
    assert isinstance(nest, ir.Tiled)
    return loopnest.standing_alone(
        kernel, uniforms, buffers, math, title, WORDS, lambda printer: _blocks(printer, kernel, nest),
        before=_innermost(nest.sums[0].type.scalar),
    )  # fmt: skip


def block_columns(nest: ir.Tiled) -> int:
    """The columns of a block of each product, so that those of all together stay in the cache."""
    return COLUMNS // len(nest.rights) // WIDE * WIDE


def _innermost(type: DType) -> list[str]:
    """The function that adds the product of some rows and a panel to their sums."""
    scalar = type_name(type) if type.is_float else f"unsigned {'int' if type.bits == 32 else 'long'}"
    step = "__builtin_elementwise_fma(lanes(a), b, {0})" if type.is_float else "{0} + lanes(a) * b"
    rows = range(HIGH)
    return [
        f"typedef {scalar} mj_scalar;",
        f"typedef mj_scalar mj_lanes __attribute__((ext_vector_type({WIDE}), aligned(4)));",
        "static inline __attribute__((always_inline)) void mj_multiply(",
        "    const mj_scalar* left, const mj_scalar* right, mj_scalar* sums, int deep, int wide) {",
        *(f"    mj_lanes s{r} = *(const mj_lanes*)(sums + {r} * wide);" for r in rows),
        "    for (int k = 0; k < deep; ++k) {",
        f"        const mj_lanes b = *(const mj_lanes*)(right + k * {WIDE});",
        *(
            f"        s{r} = {step.format(f's{r}').replace('lanes(a)', f'(mj_lanes)(left[{r} * {DEPTH} + k])')};"
            for r in rows
        ),
        "    }",
        *(f"    *(mj_lanes*)(sums + {r} * wide) = s{r};" for r in rows),
        "}",
        "",
    ]


def _blocks(printer: Printer, kernel: ir.Kernel, nest: ir.Tiled) -> None:
    out = printer.out
    for name, extent in (("rows", nest.rows), ("columns", nest.columns), ("count", nest.count)):
        out.line(f"const int {name} = {printer.expr(extent)};")
    most = block_columns(nest)
    out.line(f"const int down = (rows + {ROWS - 1}) / {ROWS}, across = (columns + {most - 1}) / {most};")
    out.line(f"const int depth = count < {DEPTH} ? count : {DEPTH};")
    out.line(f"const long most_high = rows < {ROWS} ? (rows + {HIGH - 1}) / {HIGH} * {HIGH} : {ROWS};")
    out.line(f"const long most_wide = columns < {most} ? (columns + {WIDE - 1}) / {WIDE} * {WIDE} : {most};")
    count = len(nest.rights)
    out.line(
        f"const long size = most_high * {DEPTH} + (most_wide * depth + 15) / 16 * 16 + {count} * most_high * most_wide;"
    )
    out.line("char* const memory = (char*)__builtin_malloc(size * sizeof(mj_scalar) + 192);")
    out.line("mj_scalar* const left_block = (mj_scalar*)(((unsigned long)memory + 63) / 64 * 64);")
    out.line(f"mj_scalar* const right_block = left_block + most_high * {DEPTH};")
    out.line("mj_scalar* const sums = right_block + (most_wide * depth + 15) / 16 * 16;")
    with out.block("for (long unit = begin; unit < end; ++unit)"):
        out.line(f"const int column = int(unit % across) * {most};")
        out.line(f"const int row = int(unit / across % down) * {ROWS};")
        _batch(printer, kernel, nest)
        out.line(f"const int high = rows - row < {ROWS} ? rows - row : {ROWS};")
        out.line(f"const int wide = columns - column < {most} ? columns - column : {most};")
        out.line(f"const int panels = (wide + {WIDE - 1}) / {WIDE} * {WIDE};")
        out.line(f"const int steps = (high + {HIGH - 1}) / {HIGH} * {HIGH};")
        out.line(f"for (int at = 0; at < {count} * steps * panels; ++at) {{ sums[at] = 0; }}")
        with out.block(f"for (int first = 0; first < count; first += {DEPTH})"):
            out.line(f"const int deep = count - first < {DEPTH} ? count - first : {DEPTH};")
            _fill_left(printer, nest)
            for number, right in enumerate(nest.rights):
                _fill_right(printer, nest, right)
                with out.block(f"for (int panel = 0; panel < panels; panel += {WIDE})"):
                    with out.block(f"for (int r = 0; r < steps; r += {HIGH})"):
                        out.line(
                            f"mj_multiply(left_block + r * {DEPTH}, right_block + panel * deep, "
                            f"sums + ({number} * steps + r) * panels + panel, deep, panels);"
                        )
        _store(printer, nest)
    out.line("__builtin_free(memory);")


def _batch(printer: Printer, kernel: ir.Kernel, nest: ir.Tiled) -> None:
    rest = "(unit / across / down)"
    for k in range(len(nest.batch) - 1, -1, -1):
        extent = printer.expr(kernel.domain[k])
        text = f"int({rest} % {extent})" if k else f"int({rest})"
        printer.out.line(f"const {printer.declare(nest.batch[k])} = {text};")
        rest = f"({rest} / {extent})"


def _fill_left(printer: Printer, nest: ir.Tiled) -> None:
    """A block of the left factor; where the result ends within a step of rows, there are zeros."""
    out = printer.out
    batch = [printer.vars[v.number] for v in nest.batch]
    with out.block("for (int r = 0; r < steps; ++r)"):
        value = called(printer, nest.left, [*batch, "row + r", "first + k"])
        out.line(f"mj_scalar* const line = left_block + r * {DEPTH};")
        out.line(f"if (r < high) {{ for (int k = 0; k < deep; ++k) {{ line[k] = mj_scalar({value}); }} }}")
        out.line("else { for (int k = 0; k < deep; ++k) { line[k] = 0; } }")


def _fill_right(printer: Printer, nest: ir.Tiled, right: str) -> None:
    """A block of a right factor; where the result ends within a panel, there are zeros."""
    out = printer.out
    batch = [printer.vars[v.number] for v in nest.batch]
    with out.block("for (int k = 0; k < deep; ++k)"):
        with out.block(f"for (int panel = 0; panel < panels; panel += {WIDE})"):
            out.line(f"mj_scalar* const line = right_block + panel * deep + k * {WIDE};")
            value = called(printer, right, [*batch, "first + k", "column + panel + c"])
            whole = f"for (int c = 0; c < {WIDE}; ++c) {{ line[c] = mj_scalar({value}); }}"
            out.line(f"if (panel + {WIDE} <= wide) {{ {whole} }}")
            part = f"line[c] = panel + c < wide ? mj_scalar({value}) : mj_scalar(0);"
            out.line(f"else {{ for (int c = 0; c < {WIDE}; ++c) {{ {part} }} }}")


def _store(printer: Printer, nest: ir.Tiled) -> None:
    out = printer.out
    batch = [printer.vars[v.number] for v in nest.batch]
    type = type_name(nest.sums[0].type)
    found = [f"{type}(sums[({k} * steps + r) * panels + c])" for k in range(len(nest.sums))]
    with out.block("for (int r = 0; r < high; ++r)"):
        out.line("const long line = ((unit / across / down) * rows + row + r) * long(columns) + column;")
        with out.block("for (int c = 0; c < wide; ++c)"):
            # All are computed before one is stored, so that what they share is computed once.
            for k, e in enumerate(nest.elements):
                value = called(printer, e.function, [*batch, "row + r", "column + c", *found])
                out.line(f"const auto value{k} = {printer.to_store(value, e.buffer.dtype)};")
            for k, e in enumerate(nest.elements):
                out.line(f"{printer.buffers[e.buffer.name]}[line + c] = value{k};")
