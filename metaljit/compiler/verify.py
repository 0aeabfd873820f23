"""The IR's rules, checked after lowering and after each pass. A violation is a fault of ours, with the pass's name.

Every variable is declared before it is read, in a block that encloses the reader, and once; an immutable one is
not assigned; operands have the types that their operation's row asks for; an offset is an i32; a map kernel
returns its results on every return.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import BOOL, I32, DType, Type, Vec
from ..operation_rules import Refusal, check
from ..operations import OPERATIONS
from ..source import InternalError, Span
from . import ir


def verify(k: ir.Kernel, after: str) -> ir.Kernel:
    """The kernel itself; InternalError names the pass and the place."""
    results: tuple[Type, ...] = tuple(Vec(b.dtype, b.lanes) if b.lanes > 1 else b.dtype for b in k.results)
    functions = {f"{f.name}#{i}": f for i, f in enumerate(k.functions)}
    for f in k.functions:
        _Checker(after, functions, f.results, {v.number for v in f.params}, f.span).block(f.body, set())
    _Checker(after, functions, results, {v.number for v in k.positions}, k.span).block(k.body, set())
    return k


class _Checker:
    def __init__(
        self,
        after: str,
        functions: dict[str, ir.Function],
        results: tuple[Type, ...],
        known: set[int],
        span: Span,
    ) -> None:
        self.after, self.functions, self.results, self.span = after, functions, results, span
        self.known = known
        self.mutable: set[int] = set()

    def fail(self, message: str) -> None:
        raise InternalError(f"after {self.after}: {message}", self.span)

    def must(self, holds: bool, message: str) -> None:
        if not holds:
            self.fail(message)

    def block(self, body: Sequence[ir.Stmt], extra: set[int]) -> None:
        outer = set(self.known)
        self.known |= extra
        for s in body:
            self.span = getattr(s, "span", self.span)
            self.statement(s)
        self.known = outer

    def declare(self, var: ir.Var, mutable: bool = False) -> None:
        self.must(var.number not in self.known, f"{var.name!r} is declared twice")
        self.known.add(var.number)
        if mutable:
            self.mutable.add(var.number)

    def statement(self, s: ir.Stmt) -> None:
        match s:
            case ir.Let(var, value, _):
                self.typed(value, var.type, "a local's value")
                self.declare(var)
            case ir.Declare(var, value, _):
                if value is not None:
                    self.typed(value, var.type, "a variable's value")
                self.declare(var, True)
            case ir.Assign(var, value, _):
                self.must(
                    var.number in self.known and var.number in self.mutable,
                    f"{var.name!r} cannot be assigned",
                )
                self.typed(value, var.type, "an assigned value")
            case ir.Store(buffer, offset, value, guard, _):
                self.must(buffer.writable, f"{buffer.name!r} is not writable")
                self.typed(
                    value,
                    Vec(buffer.dtype, buffer.lanes) if buffer.lanes > 1 else buffer.dtype,
                    "a stored value",
                )
                self.place(offset, guard)
            case ir.LocalArray(local, values, _):
                self.must(
                    len(values) == local.size, f"{local.name!r} has {len(values)} values for {local.size}"
                )
                for v in values:
                    self.typed(v, local.type, "an element")
            case ir.LocalStore(local, offset, value, guard, _):
                self.typed(value, local.type, "a stored value")
                self.place(offset, guard)
            case ir.If(condition, then, orelse, _):
                self.typed(condition, BOOL, "a condition")
                self.block(then, set())
                self.block(orelse, set())
            case ir.For(var, start, stop, _, body, _):
                self.typed(start, I32, "a bound")
                self.typed(stop, I32, "a bound")
                self.block(body, {var.number})
            case ir.Loop(before, condition, body, _, _, _, _):
                outer = set(self.known)
                for b in before:
                    self.statement(b)
                self.typed(condition, BOOL, "a condition")
                self.block(body, set())
                self.known = outer
            case ir.Once(body, _):
                self.block(body, set())
            case ir.Return(values, _):
                self.must(tuple(v.type for v in values) == self.results, "a return does not give the results")
                for v in values:
                    self.expr(v)
            case ir.Check(condition, _, _):
                self.typed(condition, BOOL, "a condition")
            case ir.Atomic(_, var, buffer, offset, values, guard, _):
                for v in values:
                    self.typed(v, buffer.dtype, "an atomic's operand")
                self.place(offset, guard)
                self.declare(var)
            case ir.CallInto(name, args, results, _):
                self.call(name, args)
                for r in results:
                    self.declare(r)
            case ir.Collective(_, var, value, by, _):
                self.expr(value)
                if by is not None:
                    self.typed(by, I32, "a lane")
                self.declare(var)
            case ir.TileFill(tile, value, _, _):
                self.typed(value, tile.dtype, "an element of a tile")
            case ir.TileMove(_, tile, buffer, offset, stride, guard, _):
                self.must(tile.dtype == buffer.dtype, f"{tile.name!r} does not fit {buffer.name!r}")
                self.typed(stride, I32, "a stride")
                self.place(offset, guard)
            case ir.Break() | ir.Continue() | ir.Barrier() | ir.TileMultiply():
                pass

    def place(self, offset: ir.Expr, guard: ir.Expr | None) -> None:
        self.typed(offset, I32, "an offset")
        if guard is not None:
            self.typed(guard, BOOL, "a guard")

    def typed(self, e: ir.Expr, type: Type, what: str) -> None:
        self.must(e.type == type, f"{what} is {e.type} instead of {type}")
        self.expr(e)

    def call(self, name: str, args: Sequence[ir.Expr]) -> None:
        function = self.functions[name]
        found = tuple(a.type for a in args)
        wanted = tuple(v.type for v in function.params)
        self.must(found == wanted, f"{name} takes {wanted} and gets {found}")
        for a in args:
            self.expr(a)

    def expr(self, e: ir.Expr) -> None:
        match e:
            case ir.Read(var):
                self.must(var.number in self.known, f"{var.name!r} is read outside its block")
            case ir.Apply():
                self.operation(e)
            case ir.Load(_, offset, _) | ir.LocalLoad(_, offset) | ir.Table(_, _, offset):
                self.must(offset.type == I32, f"an offset is {offset.type}")
            case ir.Choose(condition, then, otherwise):
                self.must(
                    condition.type == BOOL and then.type == otherwise.type, "a choice's types do not fit"
                )
            case ir.Vector(parts, type):
                self.must(
                    len(parts) == type.lanes and all(p.type == type.scalar for p in parts),
                    "a vector's parts do not fit",
                )
            case ir.Call(name, args, _):
                self.call(name, args)
            case _:
                pass
        for child in ir.children(e):
            self.expr(child)

    def operation(self, e: ir.Apply) -> None:
        try:
            typing = check(OPERATIONS[e.op], [a.type.scalar for a in e.args])
        except Refusal as refusal:
            self.fail(f"{e.op}: {refusal}")
            return
        lanes = e.type.lanes
        operands = tuple(a.type.scalar for a in e.args)
        self.must(operands == typing.operands, f"{e.op} on {operands} instead of {typing.operands}")
        self.must(isinstance(e.type, DType) or lanes > 1, "a vector of one lane")
        self.must(e.type.scalar == typing.result, f"{e.op} gives {typing.result}, not {e.type}")
