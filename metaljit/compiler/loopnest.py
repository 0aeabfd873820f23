"""The loop nests that call a kernel's element function on a CPU.

In: a kernel and its printed text. Out: C++ to be compiled behind that text. Rows are the outer dimensions, the
last dimension is the inner loop, so that clang can vectorise it; within the margins the functions are called with
`inside` true, and have neither borders nor guards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..program import Uniform
from . import ir
from .msl import Text, assembled, prepared
from .msl_entry import RAN, store_lines
from .msl_statements import Emitter, Printer
from .spelling import Scope, identifier, storage_name
from .usage import approximates

WORDS = (
    "p", "status", "gid", "inside", "unit", "row", "columns", "blocks", "first", "last", "from", "to", "made", "begin",
    "end", "block",
)  # fmt: skip
AT_ONCE = 4  # vectors of elements whose polynomials are computed side by side


def emit(kernel: ir.Kernel, text: Text, printer: Printer, buffers: Sequence[ir.Buffer], inner: int) -> str:
    """`inner`: how many of the last domain axes make up a row's columns."""
    out, scope = Emitter(), Scope(*WORDS)
    names = {key: scope.new(name) for key, name in text.names.items()}
    printer.out, printer.vars, printer.scope, printer.buffers = out, {}, scope, names
    text = replace(text, names=names)
    if any(abs(m.coefficient) > 1 for m in kernel.margins):
        out.lines += [
            "static inline long mj_cpu_floor(long a, long b) { return a / b - (a % b < 0); }",
            "static inline long mj_cpu_ceil(long a, long b) { return -mj_cpu_floor(-a, b); }",
            "",
        ]
    shell(out, text.entry, text.names, buffers, lambda: _rows(kernel, text, printer, inner))
    return "\n".join(out.lines) + "\n"


def named(printer: Printer, words: Sequence[str]) -> None:
    """Makes the printer ready for lines of a nest that stands alone, whose own words no array is called by."""
    printer.scope = Scope(*WORDS, *words, *printer.functions.values())
    printer.buffers = {key: printer.scope.new(name) for key, name in printer.buffers.items()}
    printer.vars = {}


def standing_alone(
    kernel: ir.Kernel,
    uniforms: Sequence[Uniform],
    buffers: Sequence[ir.Buffer],
    math: str,
    title: str,
    words: Sequence[str],
    nest: Callable[[Printer], None],
    before: Sequence[str] = (),
) -> str:
    """A text of its own: the struct, the device functions, the lines `before`, and the function whose body `nest` writes."""
    printer = prepared(Printer, kernel, uniforms, buffers, math)
    named(printer, words)
    printer.out.lines += before
    shell(printer.out, identifier(kernel.name), printer.buffers, buffers, lambda: nest(printer))
    return assembled(printer, uniforms, title)[0]


def shell(
    out: Emitter, entry: str, names: Mapping[str, str], buffers: Sequence[ir.Buffer], rows: Callable[[], None]
) -> None:
    """The function that a device calls, around the lines that compute its units."""
    types = [f"{'' if b.writable else 'const '}{storage_name(b.dtype)}*" for b in buffers]
    # clang believes `__restrict` of parameters only, and without it checks each row for overlap; inlined, the nest
    # would be compiled twice
    arrays = [f"{t} __restrict const {names[b.name]}" for t, b in zip(types, buffers, strict=True)]
    status = "device metal::atomic_uint* status"
    listed = [f"const {entry}_params p", status, *arrays, "long begin", "long end", "long block"]
    with out.block(f"__attribute__((noinline)) static void {entry}_nest({', '.join(listed)})"):
        rows()
    out.line()
    header = (
        f'extern "C" void {entry}_cpu(void* const* buffers, const void* params, unsigned* status_words, '
        "long begin, long end, long block)"
    )
    with out.block(header):
        out.line(f"{status} = reinterpret_cast<device metal::atomic_uint*>(status_words);")
        out.line(
            f"if (begin == 0) {{ metal::atomic_store_explicit(status, {RAN}, metal::memory_order_relaxed); }}"
        )
        passed = [f"*static_cast<const {entry}_params*>(params)", "status"]
        passed += [f"static_cast<{t}>(buffers[{k}])" for k, t in enumerate(types)]
        out.line(f"{entry}_nest({', '.join([*passed, 'begin', 'end', 'block'])});")


def _rows(kernel: ir.Kernel, text: Text, printer: Printer, inner: int) -> None:
    out = printer.out
    extents = [printer.expr(e) for e in kernel.domain]
    outer, last = extents[: len(extents) - inner], extents[len(extents) - inner :]
    columns = " * ".join(f"long({e})" for e in last) or "1l"
    out.line(f"const long columns = {columns};")
    out.line("const long blocks = (columns + block - 1) / block;")
    ranges = _ranges(kernel, text, printer) if text.usage.inside else None
    with out.block("for (long unit = begin; unit < end; ++unit)"):
        out.line("const long row = unit / blocks;")
        out.line("const long first = unit % blocks * block;")
        out.line("const long last = first + block < columns ? first + block : columns;")
        positions = kernel.positions
        unravel(printer, positions[: len(outer)], outer, "row")
        if inner == 1 and kernel.kind == "map" and ranges is not None:
            _split(kernel, text, printer, ranges, len(outer))
        else:
            _inner(kernel, text, printer, positions[len(outer) :], last, "first", "last", "<false>")


def unravel(printer: Printer, positions: Sequence[ir.Var], extents: Sequence[str], index: str) -> None:
    rest = index
    for k in range(len(positions) - 1, -1, -1):
        if k == 0:
            text = f"int({rest})"
        else:
            text = f"int({rest} % {extents[k]})"
        printer.out.line(f"const {printer.declare(positions[k])} = {text};")
        if k:
            above = printer.scope.new("rest")
            printer.out.line(f"const long {above} = {rest} / {extents[k]};")
            rest = above


def _ranges(kernel: ir.Kernel, text: Text, printer: Printer) -> dict[int, tuple[str, str]]:
    """For each axis the half-open range in which its margins hold; for -1, `("ok", …)` a condition of its own."""
    out = printer.out
    found: dict[int, tuple[str, str]] = {}
    for axis, extent in enumerate(kernel.domain):
        mine = [m for m in kernel.margins if m.axis == axis]
        if not mine:
            continue
        low, high = printer.scope.new(f"low{axis}"), printer.scope.new(f"high{axis}")
        lows = [_bound(m, printer) for m in mine if m.coefficient > 0]
        highs = [_bound(m, printer) for m in mine if m.coefficient < 0]
        out.line(f"const long {low} = {_extreme('max', ['0l', *lows])};")
        out.line(f"const long {high} = {_extreme('min', [f'long({printer.expr(extent)})', *highs])};")
        found[axis] = (low, high)
    alone = [f"{_poly(m, printer)} >= 0" for m in kernel.margins if m.axis == -1]
    if alone:
        name = printer.scope.new("whole")
        out.line(f"const bool {name} = {' && '.join(alone)};")
        found[-1] = (name, name)
    return found


def _extreme(name: str, texts: Sequence[str]) -> str:
    total = texts[0]
    for t in texts[1:]:
        total = f"metal::{name}({total}, {t})"
    return total


def _poly(m: ir.Margin, printer: Printer) -> str:
    terms = []
    for names, c in m.rest:
        factors = [f"long(p.{printer.fields[n]})" for n in names]
        terms.append(" * ".join([f"{c}l", *factors]))
    return "(" + (" + ".join(terms) or "0l") + ")"


def _bound(m: ir.Margin, printer: Printer) -> str:
    """c * x + rest >= 0 as a first x for c > 0, as one past the last x for c < 0."""
    c, rest = m.coefficient, _poly(m, printer)
    if c > 0:
        return f"-{rest}" if c == 1 else f"mj_cpu_ceil(-{rest}, {c}l)"
    return f"{rest} + 1l" if c == -1 else f"mj_cpu_floor({rest}, {-c}l) + 1l"


def _split(
    kernel: ir.Kernel, text: Text, printer: Printer, ranges: dict[int, tuple[str, str]], axis: int
) -> None:
    """The row within its margins, then what is before and after: in one loop, since each costs compile time."""
    out = printer.out
    conditions = [ranges[-1][0]] if -1 in ranges else []
    for k, var in enumerate(kernel.positions[:axis]):
        if k in ranges:
            name = printer.vars[var.number]
            conditions.append(f"{name} >= {ranges[k][0]} && {name} < {ranges[k][1]}")
    low, high = ranges.get(axis, ("first", "last"))
    start = f"metal::clamp({low}, first, last)"
    stop = f"metal::clamp({high}, from, last)"
    whole = " && ".join(conditions)
    out.line(f"const long from = {f'{whole} ? {start} : last' if whole else start};")
    out.line(f"const long to = {f'{whole} ? {stop} : last' if whole else stop};")
    _inner(kernel, text, printer, kernel.positions[axis:], [], "from", "to", "<true>")
    _inner(kernel, text, printer, kernel.positions[axis:], [], "first", "last", "<false>", skipped="from")


def _inner(
    kernel: ir.Kernel,
    text: Text,
    printer: Printer,
    positions: Sequence[ir.Var],
    extents: Sequence[str],
    first: str,
    last: str,
    flag: str,
    skipped: str = "",
) -> None:
    """With `skipped` the columns from there until `to` are left out."""
    out = printer.out
    saved = set(printer.scope.taken)
    if skipped:
        # the few elements at the border: vectors of them cost compile time and gain nothing
        out.line("#pragma clang loop vectorize(disable) unroll(disable)")
    elif approximates(kernel):
        # a polynomial waits for itself; several elements at once fill the time
        out.line(f"#pragma clang loop interleave_count({AT_ONCE})")
    single = len(positions) == 1
    index = printer.declare(positions[0]).split()[-1] if single else printer.scope.new("column")
    with out.block(f"for (int {index} = int({first}); {index} < int({last}); ++{index})"):
        if skipped:
            out.line(f"if ({index} == {skipped} && ({index} = int(to)) >= last) {{ break; }}")
        if not single:
            unravel(printer, positions, extents, index)
        arguments = ["p"]
        if text.usage.checks:
            arguments += ["status", f"uint(row * columns + {index})"]
        arguments += [text.names[b] for b in sorted(text.usage.buffers)]
        arguments += [printer.vars[v.number] for v in kernel.positions]
        call = f"{text.element}{flag if text.usage.inside else ''}({', '.join(arguments)})"
        at = f"(row * columns + {index})" if kernel.kind == "map" else ""
        for line in store_lines(printer, kernel, call, text.element, at):
            out.line(line)
    printer.scope.taken = saved
