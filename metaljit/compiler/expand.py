"""A block without calls: device functions expanded where they are called, each time with variables of its own.

In: statements and the functions that they call. Out: statements that call nothing but what `functions` lacks. What was
evaluated only on some path still is: a call in one side of a choice makes it an `If`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..dtypes import BOOL
from ..frozen import frozen
from ..source import Span
from . import ir, rewrite
from .usage import expressions, walk

Number = Callable[[], int]


class NoDerivative(Exception):
    """What stands in the way of a derivative, and where."""

    def __init__(self, why: str, span: Span) -> None:
        super().__init__(why)
        self.why, self.span = why, span


def renamed(body: Sequence[ir.Stmt], number: Number) -> tuple[ir.Stmt, ...]:
    """The statements with new variables and private arrays for all that they declare."""
    fresh: dict[int, int] = {}
    for s in walk(body):
        match s:
            case ir.Let(var) | ir.Declare(var) | ir.For(var) | ir.Atomic(_, var):
                fresh[var.number] = number()
            case ir.Loop():
                fresh[s.turns.number] = number()
            case ir.CallInto(_, _, results):
                fresh |= {v.number: number() for v in results}
            case ir.LocalArray(local):
                fresh[local.number] = number()
            case _:
                pass
    return _renumbered(body, fresh)


def _renumbered(body: Sequence[ir.Stmt], fresh: Mapping[int, int]) -> tuple[ir.Stmt, ...]:
    def var(v: ir.Var) -> ir.Var:
        return replace(v, number=fresh.get(v.number, v.number))

    def local(a: ir.Local) -> ir.Local:
        return replace(a, number=fresh.get(a.number, a.number))

    def rule(e: ir.Expr) -> ir.Expr:
        match e:
            case ir.Read(v):
                return ir.Read(var(v))
            case ir.LocalLoad(a, offset):
                return ir.LocalLoad(local(a), offset)
            case _:
                return e

    def own(s: ir.Stmt) -> ir.Stmt:
        match s:
            case ir.Let() | ir.Declare() | ir.Assign() | ir.Atomic():
                return replace(s, var=var(s.var))
            case ir.For():
                return replace(s, var=var(s.var), body=tuple(map(own, s.body)))
            case ir.If():
                return replace(s, then=tuple(map(own, s.then)), orelse=tuple(map(own, s.orelse)))
            case ir.Loop():
                before, inner = tuple(map(own, s.before)), tuple(map(own, s.body))
                return replace(s, turns=var(s.turns), before=before, body=inner)
            case ir.Once():
                return replace(s, body=tuple(map(own, s.body)))
            case ir.CallInto():
                return replace(s, results=tuple(map(var, s.results)))
            case ir.LocalArray() | ir.LocalStore():
                return replace(s, local=local(s.local))
            case _:
                return s

    return tuple(map(own, rewrite.statements(body, rule)))


@frozen
class Expansion:
    """Expands calls of `functions`, by their names in calls. NoDerivative for a function that cannot be."""

    functions: Mapping[str, ir.Function]
    number: Number

    def block(self, body: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        out: list[ir.Stmt] = []
        for s in body:
            self._statement(s, out)
        return tuple(out)

    def _statement(self, s: ir.Stmt, out: list[ir.Stmt]) -> None:
        span = s.span

        def go(e: ir.Expr) -> ir.Expr:
            return self._expr(e, out, span)

        match s:
            case ir.If():
                out.append(
                    replace(
                        s, condition=go(s.condition), then=self.block(s.then), orelse=self.block(s.orelse)
                    )
                )
            case ir.For():
                out.append(replace(s, start=go(s.start), stop=go(s.stop), body=self.block(s.body)))
            case ir.Once():
                out.append(replace(s, body=self.block(s.body)))
            case ir.Loop():
                before = list(self.block(s.before))
                condition = self._expr(s.condition, before, span)
                out.append(replace(s, before=tuple(before), condition=condition, body=self.block(s.body)))
            case ir.CallInto(name, args, results) if name in self.functions:
                found = self._call(name, [go(a) for a in args], out, span)
                out += [ir.Let(v, e, span) for v, e in zip(results, found, strict=True)]
            case _:
                out.append(_mapped(s, go) if any(map(self._has_calls, expressions(s))) else s)

    def _expr(self, e: ir.Expr, out: list[ir.Stmt], span: Span) -> ir.Expr:
        if not self._has_calls(e):
            return e
        match e:
            case ir.Call(name, args, _) if name in self.functions:
                (found,) = self._call(name, [self._expr(a, out, span) for a in args], out, span)
                return found
            case ir.Apply("logical_and", (a, b)) if self._has_calls(b):
                return self._expr(ir.Choose(a, b, ir.Const(False, BOOL)), out, span)
            case ir.Apply("logical_or", (a, b)) if self._has_calls(b):
                return self._expr(ir.Choose(a, ir.Const(True, BOOL), b), out, span)
            case ir.Choose(condition, then, otherwise) if self._has_calls(then) or self._has_calls(otherwise):
                condition = self._expr(condition, out, span)
                var = ir.Var("chosen", e.type, self.number())
                sides: list[tuple[ir.Stmt, ...]] = []
                for side in (then, otherwise):
                    block: list[ir.Stmt] = []
                    value = self._expr(side, block, span)
                    sides.append((*block, ir.Assign(var, value, span)))
                out += [ir.Declare(var, None, span), ir.If(condition, sides[0], sides[1], span)]
                return ir.Read(var)
            case _:
                return rewrite.with_children(e, lambda x: self._expr(x, out, span))

    def _has_calls(self, e: ir.Expr) -> bool:
        if isinstance(e, ir.Call) and e.function in self.functions:
            return True
        return any(map(self._has_calls, ir.children(e)))

    def _call(
        self, name: str, args: Sequence[ir.Expr], out: list[ir.Stmt], span: Span
    ) -> tuple[ir.Expr, ...]:
        f = self.functions[name]
        entry = [ir.Let(p, a, span) for p, a in zip(f.params, args, strict=True)]
        body = renamed((*entry, *self.block(f.body)), self.number)
        returns = [s for s in walk(body) if isinstance(s, ir.Return)]
        last = body[-1] if body else None
        if isinstance(last, ir.Return) and len(returns) == 1:
            out += body[:-1]
            return self._kept(last, out)
        results = tuple(ir.Var(f.name, t, self.number()) for t in f.results)
        out += [ir.Declare(v, None, span) for v in results]
        out.append(ir.Once(tuple(_left(body, results, f.name)), span))
        return tuple(map(ir.Read, results))

    def _kept(self, last: ir.Return, out: list[ir.Stmt]) -> tuple[ir.Expr, ...]:
        found = [ir.Var("result", v.type, self.number()) for v in last.values]
        out += [ir.Let(v, e, last.span) for v, e in zip(found, last.values, strict=True)]
        return tuple(map(ir.Read, found))


def _left(body: Sequence[ir.Stmt], results: Sequence[ir.Var], name: str) -> list[ir.Stmt]:
    """The body with its returns as assignments that leave the `Once` around it."""
    out: list[ir.Stmt] = []
    for s in body:
        match s:
            case ir.Return(values, span):
                out += [ir.Assign(v, e, span) for v, e in zip(results, values, strict=True)]
                out.append(ir.Break(span))
            case ir.If():
                then, orelse = _left(s.then, results, name), _left(s.orelse, results, name)
                out.append(replace(s, then=tuple(then), orelse=tuple(orelse)))
            case ir.For() | ir.Loop() | ir.Once() if any(isinstance(x, ir.Return) for x in walk(s.body)):
                raise NoDerivative(f"{name!r} returns from within a loop", s.span)
            case _:
                out.append(s)
    return out


def _mapped(s: ir.Stmt, go: rewrite.Rule) -> ir.Stmt:
    """A statement without blocks with `go` applied to its expressions, each as a whole."""
    match s:
        case ir.Let() | ir.Assign():
            return replace(s, value=go(s.value))
        case ir.Declare():
            return s if s.value is None else replace(s, value=go(s.value))
        case ir.Return() | ir.LocalArray():
            return replace(s, values=tuple(map(go, s.values)))
        case ir.LocalStore():
            guard = None if s.guard is None else go(s.guard)
            return replace(s, offset=go(s.offset), value=go(s.value), guard=guard)
        case ir.Check():
            return replace(s, condition=go(s.condition))
        case _:
            raise NoDerivative("a call stands where it cannot be expanded", s.span)
