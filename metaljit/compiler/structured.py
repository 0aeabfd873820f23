"""What a cooperative kernel's body becomes before it is written as loops over its threads.

without_returns   `return` sets a flag, and what follows runs where no flag is set
with_indices      indices made of a thread's place are computed where they are used
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..dtypes import BOOL, I32
from ..source import Span
from . import ir, rewrite
from .simplify import drop_unused
from .usage import walk, walk_expressions


def without_returns(kernel: ir.Kernel) -> ir.Kernel:
    """Each `return` has a flag of its own, so that one that all threads take does not depend on one that some take."""
    made = _Flags()
    body = list(kernel.body)
    if body and isinstance(body[-1], ir.Return):
        del body[-1]
    found, _ = made.block(body, in_loop=False)
    flags = [ir.Declare(v, ir.Const(False, BOOL), kernel.span) for v in made.flags]
    return replace(kernel, body=(*flags, *found))


class _Flags:
    def __init__(self) -> None:
        self.flags: list[ir.Var] = []

    def block(self, body: Sequence[ir.Stmt], *, in_loop: bool) -> tuple[tuple[ir.Stmt, ...], list[ir.Var]]:
        """The statements, and the flags that they set."""
        for k, s in enumerate(body):
            if not any(isinstance(inner, ir.Return) for inner in walk([s])):
                continue
            made, flags = self.statement(s, in_loop=in_loop)
            rest, more = self.block(body[k + 1 :], in_loop=in_loop)
            if isinstance(s, ir.Return):
                return (*body[:k], *made), flags
            gone = _any(flags)
            if in_loop and isinstance(s, ir.For | ir.Loop | ir.Once):
                after: tuple[ir.Stmt, ...] = (ir.If(gone, (ir.Break(s.span),), (), s.span), *rest)
            else:
                after = (ir.If(ir.Apply("logical_not", (gone,), BOOL), rest, (), s.span),) if rest else ()
            return (*body[:k], *made, *after), flags + more
        return tuple(body), []

    def statement(self, s: ir.Stmt, *, in_loop: bool) -> tuple[tuple[ir.Stmt, ...], list[ir.Var]]:
        match s:
            case ir.Return(_, span):
                flag = ir.Var("left", BOOL, -1 - len(self.flags))
                self.flags.append(flag)
                return self._leave(flag, span, in_loop), [flag]
            case ir.If(_, then, orelse, _):
                first, a = self.block(then, in_loop=in_loop)
                second, b = self.block(orelse, in_loop=in_loop)
                return (replace(s, then=first, orelse=second),), a + b
            case ir.For(_, _, _, _, body, _) | ir.Loop(_, _, body, _, _, _, _) | ir.Once(body, _):
                inner, flags = self.block(body, in_loop=True)
                return (replace(s, body=inner),), flags
        raise AssertionError(s)

    def _leave(self, flag: ir.Var, span: Span, in_loop: bool) -> tuple[ir.Stmt, ...]:
        set_flag = ir.Assign(flag, ir.Const(True, BOOL), span)
        return (set_flag, ir.Break(span)) if in_loop else (set_flag,)


def _any(flags: Sequence[ir.Var]) -> ir.Expr:
    found: ir.Expr = ir.Read(flags[0])
    for flag in flags[1:]:
        found = ir.Apply("logical_or", (found, ir.Read(flag)), BOOL)
    return found


CHEAP = frozenset(("add", "subtract", "multiply", "floor_divide", "bitwise_and"))
MOST_NODES = 16


def with_indices(kernel: ir.Kernel) -> ir.Kernel:
    """Each index that is a thread's place times and plus something is computed where it is used.

    So it need not be kept across barriers, and it is seen that neighbours have neighbouring elements.
    """
    places = {v.number for v in kernel.positions[len(kernel.threads) :]}
    known = {v.number for v in kernel.positions}
    found: dict[int, ir.Expr] = {}

    def substituted(e: ir.Expr) -> ir.Expr:
        return found.get(e.var.number, e) if isinstance(e, ir.Read) else e

    for s in walk(kernel.body):
        if isinstance(s, ir.Let) and s.var.type == I32:
            value = rewrite.expression(s.value, substituted)
            nodes = list(walk_expressions(value))
            reads = {e.var.number for e in nodes if isinstance(e, ir.Read)}
            if len(nodes) <= MOST_NODES and reads & places and reads <= known and all(map(_is_cheap, nodes)):
                found[s.var.number] = value
    return drop_unused(replace(kernel, body=rewrite.statements(kernel.body, substituted)))


def _is_cheap(e: ir.Expr) -> bool:
    return isinstance(e, ir.Const | ir.Read | ir.Uniform) or (isinstance(e, ir.Apply) and e.op in CHEAP)
