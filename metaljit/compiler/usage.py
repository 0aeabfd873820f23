"""What a function's text needs from around it: buffers, local arrays, the status words, the `inside` flag.

In: IR. Out: sets, through called functions as well. The printer makes parameter lists of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, assert_never

from ..frozen import mutable
from ..operations import OPERATIONS
from . import ir


@mutable
class Usage:
    buffers: dict[str, ir.Buffer] = field(default_factory=dict)
    locals: dict[int, ir.Local] = field(default_factory=dict)
    own_locals: set[int] = field(default_factory=set)
    checks: bool = False
    inside: bool = False

    @property
    def passed_locals(self) -> list[ir.Local]:
        return [v for n, v in sorted(self.locals.items()) if n not in self.own_locals]


def expressions(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions that stand directly in a statement."""
    match statement:
        case ir.Let(_, value, _) | ir.Assign(_, value, _):
            return (value,)
        case ir.Declare(_, value, _):
            return () if value is None else (value,)
        case ir.Store(_, offset, value, guard, _) | ir.LocalStore(_, offset, value, guard, _):
            return (offset, value) if guard is None else (offset, value, guard)
        case ir.LocalArray(_, values, _) | ir.Return(values, _):
            return values
        case ir.If(condition, _, _, _) | ir.Check(condition, _, _) | ir.Loop(_, condition, _, _, _, _, _):
            return (condition,)
        case ir.For(_, start, stop, _, _, _):
            return (start, stop)
        case ir.Atomic(_, _, _, offset, values, guard, _):
            return (offset, *values) if guard is None else (offset, *values, guard)
        case ir.CallInto(_, args, _, _):
            return args
        case ir.Collective(_, _, value, by, _):
            return (value,) if by is None else (value, by)
        case ir.TileFill(_, value, _, _):
            return (value,)
        case ir.TileMove(_, _, _, offset, stride, guard, _):
            return (offset, stride) if guard is None else (offset, stride, guard)
        case ir.Once() | ir.Break() | ir.Continue() | ir.Barrier() | ir.TileMultiply():
            return ()
    assert_never(statement)


def blocks(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The blocks of statements that stand directly in a statement."""
    match statement:
        case ir.If(_, then, orelse, _):
            return (then, orelse)
        case ir.For(_, _, _, _, body, _) | ir.Once(body, _):
            return (body,)
        case ir.Loop(before, _, body, _, _, _, _):
            return (before, body)
        case _:
            return ()


def walk(body: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
    for s in body:
        yield s
        for block in blocks(s):
            yield from walk(block)


def walk_expressions(expr: ir.Expr) -> Iterator[ir.Expr]:
    yield expr
    for child in ir.children(expr):
        yield from walk_expressions(child)


def usage(body: Sequence[ir.Stmt], functions: dict[str, Usage]) -> Usage:
    """What a body needs; `functions` has what the functions it calls need."""
    found = Usage()

    def called(name: str) -> None:
        inner = functions[name]
        found.buffers |= inner.buffers
        found.locals |= {v.number: v for v in inner.passed_locals}
        found.checks |= inner.checks
        found.inside |= inner.inside

    for s in walk(body):
        match s:
            case (
                ir.Store(buffer, _, _, _, _)
                | ir.Atomic(_, _, buffer, _, _, _, _)
                | ir.TileMove(_, _, buffer, _, _, _, _)
            ):
                found.buffers[buffer.name] = buffer
            case ir.LocalArray(local, _, _):
                found.own_locals.add(local.number)
            case ir.LocalStore(local, _, _, _, _):
                found.locals[local.number] = local
            case ir.Collective() if s.of_group:
                found.buffers[s.scratch.name] = s.scratch
            case ir.Check() | ir.Loop():
                found.checks = True
            case ir.CallInto(name, _, _, _):
                called(name)
            case _:
                pass
        for e in (x for top in expressions(s) for x in walk_expressions(top)):
            match e:
                case ir.Load(buffer, _, _):
                    found.buffers[buffer.name] = buffer
                case ir.LocalLoad(local, _):
                    found.locals[local.number] = local
                case ir.Fold(_, _, _, always, _) | ir.InRange(_, _, always, _):
                    found.inside |= not always
                case ir.Call(name, _, _):
                    called(name)
                case _:
                    pass
    return found


def approximates(kernel: ir.Kernel) -> bool:
    """Whether a function is evaluated that has no exact formula: a long chain of operations, each waiting for the last."""
    bodies = [kernel.body, *(f.body for f in kernel.functions)]
    found = (x for b in bodies for s in walk(b) for top in expressions(s) for x in walk_expressions(top))
    return any(isinstance(x, ir.Apply) and OPERATIONS[x.op].ulp > 1 for x in found)


Costs: TypeAlias = Mapping[str, tuple[int, int]]


def costs(functions: Sequence[ir.Function]) -> Costs:
    """Of each function, by its name in calls."""
    found: dict[str, tuple[int, int]] = {}
    for k, f in enumerate(functions):
        found[f"{f.name}#{k}"] = cost(f.body, found)
    return found


def cost(body: Sequence[ir.Stmt], functions: Costs) -> tuple[int, int]:
    """Operations and bytes of one thread, an inner loop of unknown length counted 16 times."""
    operations = nbytes = 0
    for s in body:
        called = [s.function] if isinstance(s, ir.CallInto) else []
        for e in (x for top in expressions(s) for x in walk_expressions(top)):
            if isinstance(e, ir.Load):
                nbytes += e.buffer.dtype.nbytes * e.buffer.lanes
            operations += isinstance(e, ir.Apply | ir.Load | ir.Convert | ir.Call)
            called += [e.function] if isinstance(e, ir.Call) else []
        if isinstance(s, ir.Store | ir.Atomic):
            nbytes += s.buffer.dtype.nbytes * s.buffer.lanes
        inner = [functions[name] for name in called]
        times = turns(s)
        inner += [(times * more, times * moved) for more, moved in (cost(b, functions) for b in blocks(s))]
        operations += sum(more for more, _ in inner)
        nbytes += sum(moved for _, moved in inner)
    return operations, nbytes


def turns(statement: ir.Stmt) -> int:
    match statement:
        case ir.For(_, ir.Const(start), ir.Const(stop), step, _, _):
            return len(range(int(start), int(stop), step))
        case ir.For() | ir.Loop():
            return 16
        case _:
            return 1
