"""IR → text for people: what `metaljit show --ir` prints, and what a test of a pass compares.

In: a kernel in IR. Out: one line a statement, indented by blocks, a pure function of the kernel. Operators of the
language stand between their operands, every nested one in parentheses; a bare whole number is i32, others name
their type. What the language has no spelling for:

    $H            a field of the parameter struct
    u{offset}     an unchecked access of a buffer, a local array or a table at a flat offset
    add!(a, b)    + or - or * of i32 or i64 that may wrap; the operators stand for those that cannot
    ?reflect(…)   a fold or a test of an index that vanishes inside the margins; without `?` it is always made
    f#0(…)        a call of a function as specialised for it

Nothing reads this text back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ..dtypes import I32, Type
from ..operations import OPERATIONS
from . import ir

_WRAPPING = ("add", "subtract", "multiply", "negative")


def show(kernel: ir.Kernel) -> str:
    """The kernel as text; ends with a newline."""
    return "\n".join(_Text().kernel(kernel)) + "\n"


class _Text:
    """The names that are taken: a second variable of a name is `name.1`."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._taken: dict[str, int] = {}

    def _name(self, kind: str, name: str, number: int) -> str:
        if (kind, number) not in self._names:
            count = self._taken.get(name, 0)
            self._taken[name] = count + 1
            self._names[kind, number] = f"{name}.{count}" if count else name
        return self._names[kind, number]

    def var(self, var: ir.Var) -> str:
        return self._name("var", var.name, var.number)

    def local(self, local: ir.Local) -> str:
        return self._name("local", local.name, local.number)

    def tile(self, tile: ir.Tile) -> str:
        return self._name("tile", tile.name, tile.number)

    # ---- kernels and functions ----

    def kernel(self, k: ir.Kernel) -> Iterator[str]:
        positions = ", ".join(self.var(v) for v in k.positions)
        results = ", ".join(f"{b.name}: {_buffer_type(b)}" for b in k.results)
        domain = ", ".join(map(self.expr, k.domain))
        yield f"{k.kind} kernel {k.name}({positions}) over ({domain}){f' -> {results}' if results else ''}"
        for b in k.shared:
            yield f"    threadgroup {b.name}: {_buffer_type(b)}[{b.size}]"
        for m in k.margins:
            yield f"    margin {self._margin(k, m)}"
        yield from self.block(k.body)
        for number, f in enumerate(k.functions):
            yield ""
            yield from self.function(f, number)

    def _margin(self, k: ir.Kernel, m: ir.Margin) -> str:
        terms: list[tuple[tuple[str, ...], int]] = []
        if m.axis >= 0:
            terms.append(((self.var(k.positions[m.axis]),), m.coefficient))
        terms += [(tuple(_uniform(n) for n in names), c) for names, c in m.rest]
        return f"{_sum(terms)} >= 0"

    def function(self, f: ir.Function, number: int) -> Iterator[str]:
        passed = [f"{b.name}: {_buffer_type(b)}[]" for b in f.buffers]
        passed += [f"{self.local(v)}: {v.type}[{v.size}]" for v in f.locals]
        passed += [f"{self.var(v)}: {v.type}" for v in f.params]
        results = ", ".join(map(str, f.results))
        yield f"function {f.name}#{number}({', '.join(passed)}){f' -> {results}' if results else ''}"
        yield from self.block(f.body)

    # ---- statements ----

    def block(self, body: Sequence[ir.Stmt]) -> Iterator[str]:
        for s in body:
            for line in self.statement(s):
                yield f"    {line}"
        if not body:
            yield "    pass"

    def statement(self, s: ir.Stmt) -> Iterator[str]:
        match s:
            case ir.Let(var, value, _):
                yield f"let {self.var(var)}: {var.type} = {self.expr(value)}"
            case ir.Declare(var, value, _):
                yield f"var {self.var(var)}: {var.type}" + (f" = {self.expr(value)}" if value else "")
            case ir.Assign(var, value, _):
                yield f"{self.var(var)} = {self.expr(value)}"
            case ir.Store(buffer, offset, value, guard, _):
                yield f"{buffer.name}{{{self.expr(offset)}}} = {self.expr(value)}{self._guard(guard)}"
            case ir.LocalArray(local, values, _):
                items = ", ".join(map(self.expr, values))
                yield f"array {self.local(local)}: {local.type}[{local.size}] = {{{items}}}"
            case ir.LocalStore(local, offset, value, guard, _):
                yield f"{self.local(local)}{{{self.expr(offset)}}} = {self.expr(value)}{self._guard(guard)}"
            case ir.Break():
                yield "break"
            case ir.Continue():
                yield "continue"
            case ir.Return(values, _):
                yield f"return {', '.join(map(self.expr, values))}".rstrip()
            case ir.Check(condition, site, _):
                yield f"check {self.expr(condition)} else fail {site}"
            case ir.Atomic(op, var, buffer, offset, values, guard, _):
                operands = ", ".join(map(self.expr, values))
                place = f"{buffer.name}{{{self.expr(offset)}}}"
                yield f"let {self.var(var)}: {var.type} = atomic_{op}({place}, {operands}){self._guard(guard)}"
            case ir.CallInto(function, args, results, _):
                call = f"{function}({', '.join(map(self.expr, args))})"
                yield f"let {', '.join(map(self.var, results))} = {call}" if results else call
            case ir.Barrier():
                yield "barrier"
            case ir.Collective(op, var, value, by, _):
                operands = ", ".join(self.expr(e) for e in (value, by) if e is not None)
                yield f"let {self.var(var)}: {var.type} = {op}({operands})"
            case ir.TileFill(tile, value, makes, _):
                begins = f"tile {self.tile(tile)}: {tile.dtype}" if makes else self.tile(tile)
                yield f"{begins} = fill({self.expr(value)})"
            case ir.TileMove(op, tile, buffer, offset, stride, guard, _):
                place = f"{buffer.name}{{{self.expr(offset)}, {self.expr(stride)}}}"
                yield f"{op} {self.tile(tile)}, {place}{self._guard(guard)}"
            case ir.TileMultiply(result, left, right, added, _):
                operands = " @ ".join(map(self.tile, (left, right)))
                yield f"{self.tile(result)} = {operands} + {self.tile(added)}"
            case ir.If() | ir.For() | ir.Loop() | ir.Once():
                yield from self._nested(s)
            case _:
                assert_never(s)

    def _nested(self, s: ir.If | ir.For | ir.Loop | ir.Once) -> Iterator[str]:
        match s:
            case ir.If(condition, then, orelse, _):
                yield f"if {self.expr(condition)}"
                yield from self.block(then)
                if orelse:
                    yield "else"
                    yield from self.block(orelse)
            case ir.For(var, start, stop, step, body, _):
                yield f"for {self.var(var)} in {self.expr(start)}, {self.expr(stop)}, {step}"
                yield from self.block(body)
            case ir.Loop(before, condition, body, _, turns, site, limit):
                yield f"loop {self.var(turns)}, at most {limit} turns else fail {site}"
                yield from (f"    {line}" for t in before for line in self.statement(t))
                yield f"    while {self.expr(condition)}"
                yield from self.block(body)
            case ir.Once(body, _):
                yield "once"
                yield from self.block(body)
            case _:
                assert_never(s)

    def _guard(self, guard: ir.Expr | None) -> str:
        return "" if guard is None else f" if {self.expr(guard)}"

    # ---- expressions ----

    def expr(self, e: ir.Expr) -> str:
        """The text of an expression, without parentheses around all of it."""
        text = self._inner(e)
        return text[1:-1] if _infix(e) else text

    def _inner(self, e: ir.Expr) -> str:
        match e:
            case ir.Const(value, type):
                return str(value).lower() if type.kind == "bool" else _typed(repr(value), type)
            case ir.Read(var):
                return self.var(var)
            case ir.Uniform(name, _):
                return _uniform(name)
            case ir.Load(buffer, offset, _):
                return f"{buffer.name}{{{self.expr(offset)}}}"
            case ir.LocalLoad(local, offset):
                return f"{self.local(local)}{{{self.expr(offset)}}}"
            case ir.Table(values, type, offset):
                return f"{type}({', '.join(map(repr, values))}){{{self.expr(offset)}}}"
            case ir.Apply():
                return self._apply(e)
            case ir.Convert(value, type, saturating):
                return (
                    f"saturate({type}, {self.expr(value)})" if saturating else f"{type}({self.expr(value)})"
                )
            case ir.Bitcast(value, type):
                return f"bitcast({type}, {self.expr(value)})"
            case ir.Choose(condition, then, otherwise):
                return f"({self._inner(then)} if {self._inner(condition)} else {self._inner(otherwise)})"
            case ir.Vector(parts, type):
                return f"{type}({', '.join(map(self.expr, parts))})"
            case ir.Lane(value, lane, _):
                at = f".{'xyzw'[lane]}" if isinstance(lane, int) else f"[{self.expr(lane)}]"
                return f"{self._inner(value)}{at}"
            case ir.Fold(mode, index, extent, always, _):
                return f"{_mark(always)}{mode}({self.expr(index)}, {self.expr(extent)})"
            case ir.InRange(index, extent, always, _):
                return f"{_mark(always)}in_range({self.expr(index)}, {self.expr(extent)})"
            case ir.Call(function, args, _):
                return f"{function}({', '.join(map(self.expr, args))})"
            case ir.Same(value):
                return f"uniform({self.expr(value)})"
        assert_never(e)

    def _apply(self, e: ir.Apply) -> str:
        symbol = OPERATIONS[e.op].symbol
        operands = [self._inner(a) for a in e.args]
        if _may_wrap(e):
            return f"{e.op}!({', '.join(map(self.expr, e.args))})"
        if symbol and len(operands) == 2:
            return f"({operands[0]} {symbol} {operands[1]})"
        if symbol and len(operands) == 1:
            return f"({symbol}{' ' if symbol.isalpha() else ''}{operands[0]})"
        return f"{e.op}({', '.join(map(self.expr, e.args))})"


def _infix(e: ir.Expr) -> bool:
    """Whether the text of an expression stands in parentheses of its own."""
    if isinstance(e, ir.Apply):
        return bool(OPERATIONS[e.op].symbol) and len(e.args) <= 2 and not _may_wrap(e)
    return isinstance(e, ir.Choose)


def _may_wrap(e: ir.Apply) -> bool:
    return e.op in _WRAPPING and not e.exact and e.type.kind == "int" and e.type.scalar.bits >= 32


def _uniform(name: str) -> str:
    return f"${name}" if name.isidentifier() else f"$({name})"


def _sum(terms: Sequence[tuple[tuple[str, ...], int]]) -> str:
    """`y - 2`, `$H - 1 - y`: products with their signs between them."""
    text = ""
    for factors, c in terms:
        sign = "-" if c < 0 else "+"
        product = " * ".join(([str(abs(c))] if abs(c) != 1 or not factors else []) + list(factors))
        text += f" {sign} {product}" if text else f"{'-' if c < 0 else ''}{product}"
    return text or "0"


def _typed(text: str, type: Type) -> str:
    return text if type == I32 else f"{type}({text})"


def _mark(always: bool) -> str:
    return "" if always else "?"


def _buffer_type(b: ir.Buffer) -> str:
    return f"{b.dtype}x{b.lanes}" if b.lanes > 1 else str(b.dtype)
