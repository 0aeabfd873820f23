"""Statements and functions of IR as Metal text, a line each, with the user's lines beside them.

In: a function's parameters and body. Out: lines, gathered in an `Emitter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import ClassVar, assert_never

from ..dtypes import BOOL, F32, I32, Type
from ..frozen import mutable
from ..operation_rules import (
    ADD,
    PRIMARY,
    RELATION,
)
from ..source import Span
from . import ir
from .msl_collectives import Collectives
from .spelling import Scope, identifier, literal, storage_name, type_name
from .usage import Usage

WIDTH = 110
PARAMETERS = ("p", "status", "gid", "inside", "out", "buffers", "params", "begin", "end", "block")


def is_zero(values: Sequence[ir.Expr]) -> bool:
    """Whether all are a zero of positive sign."""
    return all(isinstance(v, ir.Const) and not v.value and str(v.value)[0] != "-" for v in values)


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
class Printer(Collectives):
    """One kernel's text while it is written."""

    words: ClassVar[
        tuple[str, ...]
    ] = ()  # names that the text around the functions uses, beside `PARAMETERS`

    out: Emitter = field(default_factory=Emitter)
    scope: Scope = field(default_factory=Scope)
    result: str = ""
    promised: frozenset[int] = (
        frozenset()
    )  # variables of which the emulator asks whether all threads hold one value

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
            case ir.Let(var, ir.Same(value), span) if var.number in self.promised:
                self.define(var, f"mj_uniform({self.expr(value)})", span)
            case ir.Let(var, value, span):
                self.define(var, self.lines(value), span)
            case ir.Declare(var, value, span):
                self.define(var, "" if value is None else self.expr(value), span, constant=False)
            case ir.Assign(var, value, span):
                line(f"{self.read(var)} = {self.lines(value)};", span)
            case ir.Store():
                self._store(s)
            case ir.LocalArray():
                self.local_array(s)
            case ir.LocalStore(local, offset, value, guard, span):
                text = f"{self.array(local)}[{self.expr(offset)}] = {self.expr(value)};"
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
            case ir.Barrier(span):
                line(f"{self.barrier};", span)
            case ir.Collective(_, var, _, _, span):
                self.define(var, self.collective(s), span)
            case ir.TileFill() | ir.TileMove() | ir.TileMultiply():
                self.tiles(s)
            case _:
                assert_never(s)

    def define(self, var: ir.Var, text: str, span: Span, *, constant: bool = True) -> None:
        """A variable gets its first value; "" if it has none yet."""
        value = f" = {text}" if text else ""
        self.out.line(f"{'const ' if constant else ''}{self.declare(var)}{value};", span)

    def local_array(self, s: ir.LocalArray) -> None:
        name = self.vars[s.local.number] = self.scope.new(s.local.name)
        text = "" if is_zero(s.values) else ", ".join(self.expr(v) for v in s.values)
        self.out.line(f"{type_name(s.local.type)} {name}[{max(s.local.size, 1)}] = {{{text}}};", s.span)

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
            texts = [
                f"{name}[{self.place(s.buffer, s.offset)}] = {self.to_store(self.expr(s.value), dtype)};"
            ]
        else:
            value = self.expr(s.value, PRIMARY)
            texts = [
                f"{name}[{at}] = {self.to_store(f'{value}.{lane}', dtype)};"
                for at, lane in zip(self.lane_offsets(s.buffer, s.offset), "xyzw", strict=False)
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
        pointer = f"({s.buffer.space} metal::{word}*)&{at}"
        values = ", ".join(self.expr(v) for v in s.values)
        if s.op == "cas":
            call = f"mj_atomic_cas{'_float' if dtype == F32 else ''}({pointer}, {values})"
        elif dtype == F32:
            call = f"mj_atomic_{s.op}_float({pointer}, {values})"
        else:
            name = "exchange" if s.op == "exchange" else f"fetch_{s.op}"
            call = f"metal::atomic_{name}_explicit({pointer}, {values}, metal::memory_order_relaxed)"
        if s.guard is None:
            self.define(s.var, call, s.span)
            return
        self.define(s.var, literal(0, dtype), s.span, constant=False)
        self._guarded(s.guard, [f"{self.read(s.var)} = {call};"], s.span)

    def tiles(self, s: ir.TileFill | ir.TileMove | ir.TileMultiply) -> None:
        match s:
            case ir.TileFill(tile, value, makes, span):
                head = ""
                if makes:
                    self.vars[tile.number] = self.scope.new(tile.name)
                    head = f"metal::simdgroup_matrix<{tile.dtype.msl}, 8, 8> "
                filled = self.filled(tile, self.expr(value))
                self.out.line(f"{head}{self.vars[tile.number]} = {filled};", span)
            case ir.TileMove(op, tile, buffer, offset, stride, guard, span):
                name = self.vars[tile.number]
                pointer = f"{self.buffers[buffer.name]} + {self.expr(offset, ADD + 1)}"
                line = f"metal::simdgroup_{op}({name}, {pointer}, ulong({self.expr(stride)}));"
                self._guarded(guard, [line], span)
                if op == "load" and guard is not None:
                    self.out.lines[-1] += f" else {{ {name} = {self.filled(tile, literal(0, tile.dtype))}; }}"
            case ir.TileMultiply(result, left, right, added, span):
                names = ", ".join(self.vars[t.number] for t in (result, left, right, added))
                self.out.line(f"metal::simdgroup_multiply_accumulate({names});", span)

    def filled(self, tile: ir.Tile, value: str) -> str:
        return f"metal::make_filled_simdgroup_matrix<{tile.dtype.msl}, 8, 8>({value})"

    def _call_into(self, s: ir.CallInto) -> None:
        call = self._call(s.function, s.args)
        if not s.results:
            self.out.line(f"{call};", s.span)
        elif len(s.results) == 1:
            self.define(s.results[0], call, s.span)
        else:
            function = self.functions[s.function]
            made = self.scope.new(f"{function}_made")
            self.out.line(f"const {function}_result {made} = {call};", s.span)
            for k, var in enumerate(s.results):
                self.define(var, f"{made}.r{k}", s.span)

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
        return f"{b.space} {qualifier}{storage_name(b.dtype)}* {self.buffers[b.name]}"
