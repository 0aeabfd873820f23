"""IR → Metal Shading Language, for version 2.3 with fast math forced on, and the source map.

In: a kernel in IR and the table of its uniforms. Out: text that is a pure function of them: one element function
(`NAME_at`, or `NAME_thread` of a grid kernel), the device functions it calls, and the kernel around it. The
functions take a compile-time flag `inside`; where it is true, folds and guards that margins cover vanish. The
loop nests of the `cpu` device stand in `loopnest`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import assert_never

from ..conversions import spell_bitcast, spell_cast, spell_saturate
from ..dtypes import BF16, BOOL, F32, I32, I64, U32, DType, Type, Vec
from ..frozen import frozen, mutable
from ..operation_rules import (
    ADD,
    BIT_AND,
    BIT_OR,
    COMMA,
    CONDITION,
    EQUALITY,
    MULTIPLY,
    OR,
    PRIMARY,
    RELATION,
    UNARY,
    Spelling,
    check,
    spell,
)
from ..operations import OPERATIONS
from ..program import Uniform
from ..source import Span
from . import ir
from .prelude import needed
from .spelling import Scope, identifier, literal, storage_name, type_name
from .usage import Usage, usage

RAN = "0x6d6a6974u"  # what the status word holds after a kernel ran
# Whoever compiles may force fast math; compilers that know these pragmas take them back, others pass over them.
SAFE = """\
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
"""
WIDTH = 110
OFFSET = """\
#ifndef METALJIT_CPU
typedef int mj_offset;
#endif
"""
PARAMETERS = ("p", "status", "gid", "inside", "out", "buffers", "params", "begin", "end", "block")


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


# Operations that cost no more than a branch, and have no effect and no fault where they need not be evaluated.
PLAIN = frozenset(
    "less less_equal greater greater_equal equal not_equal isnan isinf isfinite signbit logical_and logical_or "
    "logical_not bitwise_and bitwise_or bitwise_xor".split()
)


def is_plain_logic(e: ir.Apply) -> bool:
    return e.op in ("logical_and", "logical_or") and e.type == BOOL and all(is_plain(a) for a in e.args)


def is_plain(e: ir.Expr) -> bool:
    match e:
        case ir.Const() | ir.Read() | ir.Uniform():
            return True
        case ir.Apply(op, args, _, exact):
            return (op in PLAIN or exact) and all(is_plain(a) for a in args)
        case ir.Lane(value, lane, _):
            return isinstance(lane, int) and is_plain(value)
        case ir.InRange(index, extent, _, _):
            return is_plain(index) and is_plain(extent)
        case _:
            return False


@mutable
class Emitter:
    """Lines of text, indented, each with the user's span."""

    lines: list[str] = field(default_factory=list)
    spans: list[tuple[int, Span]] = field(default_factory=list)
    depth: int = 0

    def line(self, text: str = "", span: Span | None = None) -> None:
        if span is not None:
            self.spans.append((len(self.lines) + 1, span))
        first, *rest = text.split("\n")
        self.lines.append("    " * self.depth + first if first else "")
        self.lines += rest

    def call(self, head: str, items: Sequence[str]) -> str:
        """`head(items)`, on lines of their own under one another where one line would be too long."""
        text = f"{head}({', '.join(items)})"
        if len(text) <= WIDTH:
            return text
        first, *rest = items
        indent = "\n" + " " * (len(head) + 1)
        return f"{head}({first}," + ",".join(indent + item for item in rest) + ")"

    @contextmanager
    def block(self, header: str, span: Span | None = None, end: str = "}") -> Iterator[None]:
        self.line(f"{header} {{".strip(), span)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(end)


@mutable
class Printer:
    """One kernel's text while it is written."""

    kernel: ir.Kernel
    math: str
    fields: dict[str, str]
    buffers: dict[str, str]
    functions: dict[str, str]
    uses: dict[str, Usage]
    tables: dict[tuple[tuple[str, ...], DType], tuple[str, tuple[int | float | bool, ...]]]
    top: Scope
    out: Emitter = field(default_factory=Emitter)
    scope: Scope = field(default_factory=Scope)
    vars: dict[int, str] = field(default_factory=dict)
    templated: bool = False
    result: str = ""

    # ---- expressions ----

    def expr(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The text of an expression, in parentheses where its precedence is below `outer`."""
        text, own = self._expr(e)
        return f"({text})" if own < outer else text

    def _expr(self, e: ir.Expr) -> tuple[str, int]:
        match e:
            case ir.Const(value, type):
                text = literal(value, type)
                return text, UNARY if text.startswith("-") else PRIMARY
            case ir.Read(var):
                return self.vars[var.number], PRIMARY
            case ir.Uniform(name, type):
                return self._stored(f"p.{self.fields[name]}", type)
            case ir.Load():
                return self._load(e)
            case ir.LocalLoad(local, offset):
                return f"{self.vars[local.number]}[{self.expr(offset)}]", PRIMARY
            case ir.Table(values, type, offset):
                return f"{self._table(values, type)}[{self.expr(offset)}]", PRIMARY
            case ir.Apply():
                return self._apply(e)
            case ir.Convert(value, type, saturating):
                return self._convert(value, type, saturating)
            case ir.Bitcast(value, type):
                return self._cast(value, type, spell_bitcast)
            case ir.Choose(condition, then, otherwise):
                parts = (
                    self.condition(condition, CONDITION + 1),
                    self.expr(then, CONDITION + 1),
                    self.expr(otherwise, CONDITION),
                )
                return "{} ? {} : {}".format(*parts), CONDITION
            case ir.Vector(parts, type):
                return f"{type_name(type)}({', '.join(self.expr(p) for p in parts)})", PRIMARY
            case ir.Lane(value, lane, _):
                base = self.expr(value, PRIMARY)
                return (
                    f"{base}.{'xyzw'[lane]}" if isinstance(lane, int) else f"{base}[{self.expr(lane)}]"
                ), PRIMARY
            case ir.Fold(mode, index, extent, always, _):
                return self._fold(mode, index, extent, always)
            case ir.InRange(index, extent, always, _):
                text = f"uint({self.expr(index)}) < uint({self.expr(extent)})"
                return (text, RELATION) if always else (f"inside || {text}", OR)
            case ir.Call(name, args, _):
                return self._call(name, args), PRIMARY
        assert_never(e)

    def condition(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The text of an expression where only its truth matters."""
        text, own = self._logic(e) if isinstance(e, ir.Apply) and is_plain_logic(e) else self._expr(e)
        return f"({text})" if own < outer else text

    def _logic(self, e: ir.Apply) -> tuple[str, int]:
        """`a & b`: no branch where none is needed, so that clang can turn what depends on it into a choice."""
        sign, own = ("&", BIT_AND) if e.op == "logical_and" else ("|", BIT_OR)
        return f" {sign} ".join(self.condition(a, UNARY) for a in e.args), own

    def _stored(self, text: str, dtype: DType) -> tuple[str, int]:
        """A value read from memory: a bool is a byte, a bf16 its bits."""
        if dtype == BOOL:
            return f"{text} != 0", EQUALITY
        return (f"mj_bf16_value({text})" if dtype == BF16 else text), PRIMARY

    def to_store(self, text: str, dtype: DType) -> str:
        if dtype == BOOL:
            return f"uchar({text})"
        return f"mj_bf16_bits({text})" if dtype == BF16 else text

    def _load(self, e: ir.Load) -> tuple[str, int]:
        name, lanes = self.buffers[e.buffer.name], e.buffer.lanes
        if lanes == 1:
            return self._stored(f"{name}[{self.offset(e.offset)}]", e.buffer.dtype)
        parts = [
            self._stored(f"{name}[{at}]", e.buffer.dtype)[0] for at in self.lane_offsets(e.offset, lanes)
        ]
        return f"{type_name(e.type)}({', '.join(parts)})", PRIMARY

    def offset(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The offset of an element: int, but for its first factor's type, which a CPU makes long."""
        match e:
            case ir.Apply("add", (ir.Apply("multiply", _, _, True) as rows, last), _, True):
                text, own = f"{self.offset(rows, ADD)} + {self.expr(last, ADD + 1)}", ADD
            case ir.Apply("multiply", (ir.Apply("add", _, _, True) as rows, extent), _, True):
                text, own = f"{self.offset(rows, MULTIPLY)} * {self.expr(extent, MULTIPLY + 1)}", MULTIPLY
            case ir.Apply("multiply", (row, extent), _, True):
                text, own = f"mj_offset({self.expr(row)}) * {self.expr(extent, MULTIPLY + 1)}", MULTIPLY
            case _:
                return self.expr(e, outer)
        return f"({text})" if own < outer else text

    def lane_offsets(self, offset: ir.Expr, lanes: int) -> list[str]:
        first = f"{lanes} * {self.offset(offset, MULTIPLY + 1)}"
        return [first, *(f"{first} + {k}" for k in range(1, lanes))]

    def _table(self, values: tuple[int | float | bool, ...], type: DType) -> str:
        key = (tuple(repr(v) for v in values), type)  # by text: 0.0 and -0.0 are equal
        if key not in self.tables:
            self.tables[key] = (self.top.new(f"{identifier(self.kernel.name)}_table"), values)
        return self.tables[key][0]

    def _apply(self, e: ir.Apply) -> tuple[str, int]:
        op = OPERATIONS[e.op]
        if is_plain_logic(e):
            return f"bool({self._logic(e)[0]})", PRIMARY  # C's `&` of two bools is an int
        if e.exact and e.type == I32 and op.name in ("add", "subtract", "multiply", "negative"):
            spelling = spell(op, check(op, [U32] * len(e.args)), "precise")
        else:
            spelling = spell(op, check(op, [a.type.scalar for a in e.args]), self.math)  # type: ignore[arg-type]
        return self._spelled(spelling, e.args, e.type)

    def _spelled(self, s: Spelling, args: Sequence[ir.Expr], type: Type) -> tuple[str, int]:
        if s.via_float:
            operands = [f"float({self.expr(a)})" for a in args]
        else:
            operands = [self.expr(a, level) for a, level in zip(args, s.levels, strict=True)]
        text, own = s.text.format(*operands), s.precedence
        if s.via_float and type != BOOL:
            return f"half({text})", PRIMARY
        if s.narrows:
            return f"{type_name(type)}({text})", PRIMARY
        if s.rounds:
            return f"mj_round_bf16({text})", PRIMARY
        return text, own

    def _convert(self, value: ir.Expr, type: Type, saturating: bool) -> tuple[str, int]:
        return self._cast(value, type, spell_saturate if saturating else spell_cast)

    def _cast(self, value: ir.Expr, type: Type, rule: object) -> tuple[str, int]:
        assert isinstance(type, DType)
        assert isinstance(value.type, DType)
        spelling = rule(value.type, type)  # type: ignore[operator]
        return self._spelled(spelling, (value,), type)

    def _fold(self, mode: str, index: ir.Expr, extent: ir.Expr, always: bool) -> tuple[str, int]:
        i, n = self.expr(index), self.expr(extent)
        wide = "64" if index.type == I64 else ""
        if mode == "sign":
            text = f"mj_antiperiodic{wide}({i}, {n}) ? -1 : 1"
            return (text if always else f"!inside && {text}"), CONDITION
        text = f"mj_{mode}{wide}({i}, {n})"
        if always:
            return text, PRIMARY
        return f"inside ? {self.expr(index, CONDITION + 1)} : {text}", CONDITION

    def _call(self, name: str, args: Sequence[ir.Expr]) -> str:
        used = self.uses[name]
        flag = "<inside>" if used.inside else ""
        passed = [
            "p",
            *(("status", "gid") if used.checks else ()),
            *(self.buffers[b] for b in sorted(used.buffers)),
        ]
        passed += [self.vars[v.number] for v in used.passed_locals]
        passed += [self.expr(a) for a in args]
        return f"{self.functions[name]}{flag}({', '.join(passed)})"

    # ---- statements ----

    def lines(self, e: ir.Expr) -> str:
        """The text of an expression; a long sum on several lines, a term on each."""
        text = self.expr(e)
        if len(text) <= WIDTH:
            return text
        terms: list[str] = []
        while isinstance(e, ir.Apply) and e.op in ("add", "subtract") and e.type == F32:
            sign = "+" if e.op == "add" else "-"
            terms.insert(0, f"{sign} {self.expr(e.args[1], ADD + 1)}")
            e = e.args[0]
        indent = "\n" + "    " * (self.out.depth + 1)
        return self.expr(e, ADD) + "".join(indent + t for t in terms)

    def declare(self, var: ir.Var) -> str:
        name = self.vars[var.number] = self.scope.new(var.name)
        return f"{type_name(var.type)} {name}"

    def block(self, body: Sequence[ir.Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: ir.Stmt) -> None:
        line = self.out.line
        match s:
            case ir.Let(var, value, span):
                text = self.lines(value)
                line(f"const {self.declare(var)} = {text};", span)
            case ir.Declare(var, value, span):
                text = "" if value is None else f" = {self.expr(value)}"
                line(f"{self.declare(var)}{text};", span)
            case ir.Assign(var, value, span):
                line(f"{self.vars[var.number]} = {self.lines(value)};", span)
            case ir.Store():
                self._store(s)
            case ir.LocalArray(local, values, span):
                name = self.vars[local.number] = self.scope.new(local.name)
                zeros = all(
                    isinstance(v, ir.Const) and not v.value and str(v.value)[0] != "-" for v in values
                )
                text = "" if zeros else ", ".join(self.expr(v) for v in values)
                line(f"{type_name(local.type)} {name}[{max(local.size, 1)}] = {{{text}}};", span)
            case ir.LocalStore(local, offset, value, guard, span):
                text = f"{self.vars[local.number]}[{self.expr(offset)}] = {self.expr(value)};"
                self._guarded(guard, [text], span)
            case ir.If(condition, then, orelse, span):
                self._if(condition, then, orelse, span)
            case ir.For():
                self._for(s)
            case ir.Loop():
                self._loop(s)
            case ir.Once(body, span):
                with self.out.block("do", span, "} while (false);"):
                    self.block(body)
            case ir.Break(span):
                line("break;", span)
            case ir.Continue(span):
                line("continue;", span)
            case ir.Return(values, span):
                self._return(values, span)
            case ir.Check(condition, site, span):
                with self.out.block(f"if (!{self.condition(condition, PRIMARY)})", span):
                    line(f"mj_fail(status, {site + 1}u, gid);")
            case ir.Atomic():
                self._atomic(s)
            case ir.CallInto():
                self._call_into(s)
            case _:
                assert_never(s)

    def _guarded(self, guard: ir.Expr | None, texts: Sequence[str], span: Span) -> None:
        if guard is None:
            for t in texts:
                self.out.line(t, span)
            return
        with self.out.block(f"if ({self.condition(guard)})", span):
            for t in texts:
                self.out.line(t, span)

    def _store(self, s: ir.Store) -> None:
        name, dtype, lanes = self.buffers[s.buffer.name], s.buffer.dtype, s.buffer.lanes
        if lanes == 1:
            texts = [f"{name}[{self.offset(s.offset)}] = {self.to_store(self.expr(s.value), dtype)};"]
        else:
            value = self.expr(s.value, PRIMARY)
            texts = [
                f"{name}[{at}] = {self.to_store(f'{value}.{lane}', dtype)};"
                for at, lane in zip(self.lane_offsets(s.offset, lanes), "xyzw", strict=False)
            ]
        self._guarded(s.guard, texts, s.span)

    def _if(self, condition: ir.Expr, then: Sequence[ir.Stmt], orelse: Sequence[ir.Stmt], span: Span) -> None:
        if not then and orelse:
            condition, then, orelse = ir.Apply("logical_not", (condition,), BOOL), orelse, ()
        if not then:
            return
        with self.out.block(f"if ({self.condition(condition)})", span):
            self.block(then)
        if orelse:
            self.out.lines[-1] += " else {"
            self.out.depth += 1
            self.block(orelse)
            self.out.depth -= 1
            self.out.line("}")

    def _for(self, s: ir.For) -> None:
        start, stop = self.expr(s.start), self.expr(s.stop, RELATION + 1)
        if abs(s.step) == 1:
            name = self.declare(s.var).split()[-1]
            test, step = ("<", "++") if s.step == 1 else (">", "--")
            header = f"for (int {name} = {start}; {name} {test} {stop}; {step}{name})"
            with self.out.block(header, s.span):
                self.block(s.body)
            return
        # counting turns instead of adding steps cannot pass the end of int
        turn, turns = self.scope.new("turn"), self.scope.new("turns")
        self.out.line(f"const int {turns} = mj_turns({start}, {self.expr(s.stop)}, {s.step});", s.span)
        with self.out.block(f"for (int {turn} = 0; {turn} < {turns}; ++{turn})", s.span):
            first = self.expr(s.start, ADD)
            self.out.line(f"const {self.declare(s.var)} = {first} + {turn} * {s.step};", s.span)
            self.block(s.body)

    def _loop(self, s: ir.Loop) -> None:
        turns = self.declare(s.turns).split()[-1]
        self.out.line(f"uint {turns} = 0u;", s.span)
        header = "for (;;)" if s.before else f"while ({self.condition(s.condition)})"
        with self.out.block(header, s.span):
            if s.before:
                self.block(s.before)
                self.out.line(f"if (!{self.condition(s.condition, PRIMARY)}) {{ break; }}", s.span)
            with self.out.block(f"if ({turns} == {s.limit}u)"):
                self.out.line(f"mj_fail(status, {s.site + 1}u, gid);")
                self.out.line("break;")
            self.out.line(f"++{turns};")
            self.block(s.body)

    def _return(self, values: Sequence[ir.Expr], span: Span) -> None:
        texts = [self.lines(v) if len(values) == 1 else self.expr(v) for v in values]
        if len(texts) > 1:
            self.out.line(f"return {self.result}{{{', '.join(texts)}}};", span)
        else:
            self.out.line(f"return {texts[0]};" if texts else "return;", span)

    def _atomic(self, s: ir.Atomic) -> None:
        dtype = s.buffer.dtype
        word = "atomic_int" if dtype == I32 else "atomic_uint"
        at = f"{self.buffers[s.buffer.name]}[{self.expr(s.offset)}]"
        pointer = f"(device metal::{word}*)&{at}"
        values = ", ".join(self.expr(v) for v in s.values)
        if s.op == "cas":
            call = f"mj_atomic_cas{'_float' if dtype == F32 else ''}({pointer}, {values})"
        elif dtype == F32:
            call = f"mj_atomic_{s.op}_float({pointer}, {values})"
        else:
            name = "exchange" if s.op == "exchange" else f"fetch_{s.op}"
            call = f"metal::atomic_{name}_explicit({pointer}, {values}, metal::memory_order_relaxed)"
        if s.guard is None:
            self.out.line(f"const {self.declare(s.var)} = {call};", s.span)
            return
        self.out.line(f"{self.declare(s.var)} = {literal(0, dtype)};", s.span)
        self._guarded(s.guard, [f"{self.vars[s.var.number]} = {call};"], s.span)

    def _call_into(self, s: ir.CallInto) -> None:
        call = self._call(s.function, s.args)
        if not s.results:
            self.out.line(f"{call};", s.span)
        elif len(s.results) == 1:
            self.out.line(f"const {self.declare(s.results[0])} = {call};", s.span)
        else:
            function = self.functions[s.function]
            made = self.scope.new(f"{function}_made")
            self.out.line(f"const {function}_result {made} = {call};", s.span)
            for k, var in enumerate(s.results):
                self.out.line(f"const {self.declare(var)} = {made}.r{k};", s.span)

    # ---- functions ----

    def function(
        self,
        name: str,
        params: Sequence[ir.Var],
        results: Sequence[Type],
        body: Sequence[ir.Stmt],
        used: Usage,
        span: Span,
    ) -> None:
        """A device function or the element function, with the struct of its results."""
        self.scope = Scope(*PARAMETERS, *self.top.taken, name)
        self.vars = {}
        self.result = f"{name}_result"
        self.templated = used.inside
        if len(results) > 1:
            with self.out.block(f"struct {self.result}", end="};"):
                for k, t in enumerate(results):
                    self.out.line(f"{type_name(t)} r{k};")
            self.out.line()
        listed = self.parameters(used)
        for local in used.passed_locals:
            local_name = self.vars[local.number] = self.scope.new(local.name)
            listed.append(f"thread {type_name(local.type)}* {local_name}")
        listed += [self.declare(v) for v in params]
        returned = "void" if not results else type_name(results[0]) if len(results) == 1 else self.result
        if used.inside:
            self.out.line("template <bool inside>")
        with self.out.block(self.out.call(f"inline {returned} {name}", listed), span):
            self.block(body)
        self.out.line()

    def parameters(self, used: Usage) -> list[str]:
        listed = [f"constant {identifier(self.kernel.name)}_params& p"]
        if used.checks:
            listed += ["device metal::atomic_uint* status", "uint gid"]
        return listed + [self.buffer_parameter(b) for _, b in sorted(used.buffers.items())]

    def buffer_parameter(self, b: ir.Buffer) -> str:
        qualifier = "" if b.writable else "const "
        return f"device {qualifier}{storage_name(b.dtype)}* {self.buffers[b.name]}"


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
