"""Forward derivatives of a block: beside each variable that depends on the seeds goes one for its derivative.

In: statements without calls (`expand`), what is derived by (seeds), and the turns of loops in which the seeds count. Out:
statements that return what `finish` makes of the results' derivatives. A loop that only adds up needs the one turn of the
seed; any other runs in full, and the seed counts in its turn alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from ...derivatives import DERIVATIVES, Term, evaluate
from ...dtypes import BOOL, I32, Type, Vec
from ...frozen import mutable
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from ..expand import NoDerivative, renamed
from ..sums import adds_up, carried, in_range, without
from ..usage import walk
from . import arithmetic
from .body import Body
from .values import Literal, Typed

Finish = Callable[[Sequence[ir.Expr | None], Span], Sequence[ir.Expr]]


def number(value: float, type: Type) -> ir.Expr:
    one = ir.Const(value, type.scalar)
    return ir.Vector((one,) * type.lanes, type) if isinstance(type, Vec) else one


@mutable
class Tangents:
    """`seed` gives a read's own derivative, or None; `pins` the turn that counts, by a loop variable's number."""

    body: Body
    seed: Callable[[ir.Call], ir.Expr | None]
    pins: Mapping[int, ir.Expr]
    finish: Finish
    active: set[int] = field(default_factory=set)
    variables: dict[int, ir.Var] = field(default_factory=dict)
    arrays: dict[int, ir.Local] = field(default_factory=dict)
    gates: list[ir.Expr] = field(default_factory=list)
    span: Span | None = None

    def run(self, block: Sequence[ir.Stmt]) -> None:
        self._find(block)
        self.block(block)

    # ---- what depends on the seeds ----

    def _find(self, block: Sequence[ir.Stmt]) -> None:
        before = -1
        while before < len(self.active):
            before = len(self.active)
            for s in walk(block):
                self.span = s.span
                match s:
                    case ir.Let(var, value) | ir.Declare(var, value) | ir.Assign(var, value):
                        if value is not None and self.depends(value):
                            self.active.add(var.number)
                    case ir.LocalArray(local, values):
                        if any(map(self.depends, values)):
                            self.active.add(local.number)
                    case ir.LocalStore(local, _, value):
                        if self.depends(value):
                            self.active.add(local.number)
                    case _:
                        pass

    def depends(self, e: ir.Expr) -> bool:
        if not e.type.scalar.is_float:
            return False
        match e:
            case ir.Read(var):
                return var.number in self.active
            case ir.LocalLoad(local):
                return local.number in self.active
            case ir.Apply(op, args):
                rule = DERIVATIVES.get(op)
                if rule is None:
                    if any(map(self.depends, args)):
                        assert self.span is not None
                        raise NoDerivative(f"{op} has no derivative", self.span)
                    return False
                return any(r is not None and self.depends(a) for r, a in zip(rule, args, strict=True))
            case ir.Convert(value) | ir.Same(value) | ir.Lane(value):
                return self.depends(value)
            case ir.Choose(_, then, otherwise):
                return self.depends(then) or self.depends(otherwise)
            case ir.Vector(parts):
                return any(map(self.depends, parts))
            case ir.Call():
                return self.seed(e) is not None
            case _:
                return False

    # ---- expressions ----

    def tangent(self, e: ir.Expr, result: ir.Expr | None = None) -> ir.Expr | None:
        """The derivative of an expression, whose value may be known as `result`; None where it is 0."""
        if not self.depends(e):
            return None
        match e:
            case ir.Read(var):
                return ir.Read(self.variables[var.number])
            case ir.LocalLoad(local, offset):
                return ir.LocalLoad(self.arrays[local.number], offset)
            case ir.Apply():
                return self._apply(e, result)
            case ir.Convert(value) | ir.Same(value) | ir.Lane(value):
                inner = self.tangent(value)
                assert inner is not None
                return replace(e, value=inner)
            case ir.Choose(condition, then, otherwise):
                return self._choose(condition, then, otherwise)
            case ir.Vector(parts, type):
                return ir.Vector(tuple(self.tangent(p) or number(0.0, p.type) for p in parts), type)
            case ir.Call():
                found = self.seed(e)
                assert found is not None
                for gate in self.gates:
                    found = ir.Choose(gate, found, number(0.0, e.type))
                return found
            case _:
                raise AssertionError(e)

    def _apply(self, e: ir.Apply, result: ir.Expr | None) -> ir.Expr:
        rule = DERIVATIVES[e.op]
        live = [k for k, a in enumerate(e.args) if rule[k] is not None and self.depends(a)]
        wanted = {name for k in live for name in _names(rule[k])}
        args = list(e.args)
        for k, name in enumerate("xyz"[: len(args)]):
            if name in wanted or ("r" in wanted and result is None):
                args[k] = self._kept(args[k])
        given: dict[str, Any] = {n: Typed(a) for n, a in zip("xyz", args, strict=False)}
        if "r" in wanted:
            given["r"] = Typed(result if result is not None else self._kept(replace(e, args=tuple(args))))
        total: Any = None
        for k in live:
            inner = self.tangent(e.args[k])
            assert inner is not None
            if _names(rule[k]).count("g") > 1:
                inner = self._kept(inner)
            part = evaluate(rule[k] or 0.0, given | {"g": Typed(inner)}, self._operation)
            total = part if total is None else self._operation("add", (total, part))
        assert isinstance(total, Typed)
        return total.expr if total.type == e.type else ir.Convert(total.expr, e.type)

    def _operation(self, op: str, values: Sequence[Any]) -> Any:
        assert self.span is not None
        given = [v if isinstance(v, Typed) else Literal(v) for v in values]
        found = arithmetic.apply(self.body, OPERATIONS[op], given, self.span)
        return Typed(ir.Const(bool(found.value), BOOL)) if isinstance(found, Literal) else found

    def _kept(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.Const | ir.Read | ir.Uniform):
            return e
        assert self.span is not None
        return self.body.let("x", Typed(e), self.span).expr

    def _choose(self, condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
        zero = number(0.0, then.type)
        with self._block() as first:
            a = self.tangent(then) or zero
        with self._block() as second:
            b = self.tangent(otherwise) or zero
        if not first and not second:
            return ir.Choose(condition, a, b)
        assert self.span is not None
        var = self.body.var("d", then.type)
        self.body.emit(ir.Declare(var, None, self.span))
        sides = ((*first, ir.Assign(var, a, self.span)), (*second, ir.Assign(var, b, self.span)))
        self.body.emit(ir.If(condition, sides[0], sides[1], self.span))
        return ir.Read(var)

    # ---- statements ----

    @contextmanager
    def _block(self) -> Iterator[list[ir.Stmt]]:
        outer, self.body.block = self.body.block, []
        try:
            yield self.body.block
        finally:
            self.body.block = outer

    def _nested(self, block: Sequence[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        with self._block() as inner:
            self.block(block)
        return tuple(inner)

    def block(self, block: Sequence[ir.Stmt]) -> None:
        for s in block:
            self.span = s.span
            self.statement(s)

    def statement(self, s: ir.Stmt) -> None:
        emit = self.body.emit
        match s:
            case ir.Let(var, value, span):
                emit(s)
                if var.number in self.active:
                    found = self.tangent(value, ir.Read(var)) or number(0.0, var.type)
                    emit(ir.Let(self._beside(var), found, span))
            case ir.Declare(var, value, span):
                emit(s)
                if var.number in self.active:
                    first = self.tangent(value) if value is not None else None
                    emit(ir.Declare(self._beside(var), first or number(0.0, var.type), span))
            case ir.Assign(var, value, span):
                if var.number in self.active:
                    found = self.tangent(value) or number(0.0, var.type)
                    emit(ir.Assign(self.variables[var.number], found, span))
                emit(s)
            case ir.LocalArray(local, values, span):
                emit(s)
                if local.number in self.active:
                    beside = replace(local, name=f"d{local.name}", number=self.body.unit.number())
                    self.arrays[local.number] = beside
                    zero = number(0.0, local.type)
                    emit(ir.LocalArray(beside, tuple(self.tangent(v) or zero for v in values), span))
            case ir.LocalStore(local, _, value):
                if local.number in self.active:
                    found = self.tangent(value) or number(0.0, local.type)
                    emit(replace(s, local=self.arrays[local.number], value=found))
                emit(s)
            case ir.If():
                emit(replace(s, then=self._nested(s.then), orelse=self._nested(s.orelse)))
            case ir.For():
                self._for(s)
            case ir.Loop():
                emit(replace(s, before=self._nested(s.before), body=self._nested(s.body)))
            case ir.Once():
                emit(replace(s, body=self._nested(s.body)))
            case ir.Return(values, span):
                found_all = [self.tangent(v) for v in values]
                emit(ir.Return(tuple(self.finish(found_all, span)), span))
            case ir.Break() | ir.Continue():
                emit(s)
            case ir.Check():
                pass  # the kernel itself tells of it
            case _:
                raise NoDerivative("it writes memory or works together with other threads", s.span)

    def _beside(self, var: ir.Var) -> ir.Var:
        made = self.variables[var.number] = self.body.var(f"d{var.name}", var.type)
        return made

    # ---- loops ----

    def _for(self, s: ir.For) -> None:
        at = self.pins.get(s.var.number)
        if at is None:
            self.body.emit(replace(s, body=self._nested(s.body)))
        elif adds_up(s, self.active):
            self._one_turn(s, at)
        else:
            self.gates.append(ir.Apply("equal", (ir.Read(s.var), at), BOOL))
            self.body.emit(replace(s, body=self._nested(s.body)))
            self.gates.pop()

    def _one_turn(self, s: ir.For, at: ir.Expr) -> None:
        """The loop for its values, then the turn of the seed for the derivatives."""
        self.body.emit(s)
        inner = self._nested(s.body)
        held = carried(s.body)
        after = ir.Apply("add", (at, ir.Const(1, I32)), I32, True)
        one = ir.For(s.var, at, after, 1, without(inner, held), s.span)
        inside = in_range(s, at)
        self.body.emit(ir.If(inside, renamed((one,), self.body.unit.number), (), s.span))


def _names(term: Any) -> list[str]:
    if not isinstance(term, Term):
        return []
    if term.op in ("g", "x", "y", "z", "r"):
        return [term.op]
    return [n for a in term.args for n in _names(a)]
