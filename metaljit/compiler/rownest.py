"""The loops that run a kernel of rows on a CPU.

In: a kernel with `rows`, its uniforms and arrays. Out: C++ that stands alone: the struct, the device functions, and a loop
of which each turn is a row. A stage runs in as many accumulators as make whole vectors, which meet in one fixed order, so
that a sum depends on the number of columns alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program import Uniform
from . import ir, loopnest
from .msl_statements import Printer
from .spelling import literal, type_name

ACCUMULATORS = 32
WORDS = ("column", "lane", "lanes", "half")


def emit(
    kernel: ir.Kernel, uniforms: Sequence[Uniform], buffers: Sequence[ir.Buffer], math: str, title: str
) -> str:
    return loopnest.standing_alone(
        kernel, uniforms, buffers, math, title, WORDS, lambda printer: _rows(printer, kernel)
    )


def _rows(printer: Printer, kernel: ir.Kernel) -> None:
    out, rows = printer.out, kernel.nest
    assert isinstance(rows, ir.Rows)
    rank = len(kernel.threads)
    out.line(f"const int columns = {printer.expr(rows.columns)};")
    with out.block("for (long unit = begin; unit < end; ++unit)"):
        rest = "unit"
        for k in range(rank - 1, -1, -1):
            extent = printer.expr(kernel.domain[k])
            text = f"int({rest} % {extent})" if k else f"int({rest})"
            out.line(f"const {printer.declare(kernel.positions[k])} = {text};")
            rest = f"({rest} / {extent})"
        if rows.chunk:
            piece = printer.vars[kernel.positions[rank - 1].number]
            out.line(f"const int first = {piece} * {rows.chunk};")
            out.line(f"const int last = columns - first < {rows.chunk} ? columns : first + {rows.chunk};")
        else:
            out.line("const int first = 0, last = columns;")
        for stage in rows.stages:
            _stage(printer, kernel, stage)
        done = [printer.vars[s.var.number] for s in rows.stages]
        columns = [e for e in rows.elements if e.of_column]
        if columns:
            with out.block("for (int column = 0; column < columns; ++column)"):
                for e in columns:
                    _store(printer, kernel, e, "unit * columns + column", "column", done)
        for e in rows.elements:
            if not e.of_column:
                _store(printer, kernel, e, "unit", "0", done)


def _stage(printer: Printer, kernel: ir.Kernel, stage: ir.Stage) -> None:
    out, rows = printer.out, kernel.nest
    assert isinstance(rows, ir.Rows)
    before = rows.stages[: rows.stages.index(stage)] if not rows.chunk else ()
    done = [printer.vars[s.var.number] for s in before]
    scalar = stage.var.type.scalar
    total = printer.declare(stage.var)
    name = total.split()[-1]
    lanes = printer.scope.new("lanes")
    out.line(f"{type_name(scalar)} {lanes}[{ACCUMULATORS}];")
    out.line(
        f"for (int lane = 0; lane < {ACCUMULATORS}; ++lane) {{ {lanes}[lane] = {literal(stage.start.value, scalar)}; }}"
    )
    whole = f"last - (last - first) % {ACCUMULATORS}"
    with out.block(f"for (int column = first; column < {whole}; column += {ACCUMULATORS})"):
        with out.block(f"for (int lane = 0; lane < {ACCUMULATORS}; ++lane)"):
            value = _call(printer, kernel, stage.function, "column + lane", done)
            out.line(f"{lanes}[lane] = {reduced(printer, stage, f'{lanes}[lane]', value)};")
    with out.block(f"for (int column = {whole}; column < last; ++column)"):
        value = _call(printer, kernel, stage.function, "column", done)
        at = f"{lanes}[column % {ACCUMULATORS}]"
        out.line(f"{at} = {reduced(printer, stage, at, value)};")
    with out.block(f"for (int half = {ACCUMULATORS // 2}; half > 0; half /= 2)"):
        with out.block("for (int lane = 0; lane < half; ++lane)"):
            out.line(f"{lanes}[lane] = {reduced(printer, stage, f'{lanes}[lane]', f'{lanes}[lane + half]')};")
    out.line(f"const {type_name(scalar)} {name} = {lanes}[0];")


def reduced(printer: Printer, stage: ir.Stage, total: str, value: str) -> str:
    """The text of a stage's operation on what it has and a new value."""
    from .lower.rows import combined

    a, b = (ir.Var(n, stage.var.type, -k) for k, n in ((1, "a"), (2, "b")))
    printer.vars |= {a.number: total, b.number: value}
    return printer.expr(combined(stage, ir.Read(a), ir.Read(b)))


def _call(printer: Printer, kernel: ir.Kernel, function: str, column: str, done: Sequence[str]) -> str:
    assert isinstance(kernel.nest, ir.Rows)
    at = [printer.vars[v.number] for v in kernel.nest.positions]
    return called(printer, function, [*at, column, *done])


def called(printer: Printer, function: str, passed: Sequence[str], place: str = "unit") -> str:
    """A call of a device function with the arrays that it uses; a check that fails in it names the `place`."""
    used = printer.uses[function]
    arrays = [printer.buffers[b] for b in sorted(used.buffers)]
    checks = ["status", f"uint({place})"] if used.checks else []
    flag = "<false>" if used.inside else ""
    return f"{printer.functions[function]}{flag}({', '.join(['p', *checks, *arrays, *passed])})"


def _store(
    printer: Printer, kernel: ir.Kernel, e: ir.Element, at: str, column: str, done: Sequence[str]
) -> None:
    value = printer.to_store(_call(printer, kernel, e.function, column, done), e.buffer.dtype)
    printer.out.line(f"{printer.buffers[e.buffer.name]}[{at}] = {value};")
