"""Reductions: `sum(… for …)` and its kin, as loops around an accumulator.

In: a call whose argument is a generator, or a tuple. Out: the reduced value; loops are emitted before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metaljit.grammar import tree

from ...dtypes import BOOL, F32, I32, U32, DType, Type, Vec
from ...frozen import frozen
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from . import calls, conditions, expressions, loops, statements
from .arithmetic import apply, binary
from .body import Body
from .convert import convert
from .literals import describe, typed
from .values import Group, Literal, NeedsConstant, Typed, Value, fault, join_types

ALIASES = {
    "minimum": "min", "maximum": "max", "amin": "min", "amax": "max",
}  # fmt: skip


@frozen
class Reduction:
    """`step(accumulated, value)`; `start` gives the empty reduction's value for an element type."""

    accumulator: Callable[[Type], Type]
    start: Callable[[DType], int | float | bool]
    op: str


def summed(type: Type) -> Type:
    """NumPy widens small integers; bools are counted; 16-bit floats accumulate in f32."""
    if isinstance(type, Vec):
        scalar = summed(type.scalar)
        assert isinstance(scalar, DType)
        return Vec(scalar, type.lanes)
    if type == BOOL:
        return I32
    if type.is_float:
        return F32
    return type if type.bits >= 32 else I32 if type.kind == "int" else U32


REDUCTIONS = {
    "sum": Reduction(summed, lambda t: 0, "add"),
    "prod": Reduction(summed, lambda t: 1, "multiply"),
    "min": Reduction(lambda t: t, lambda t: t.largest, "minimum"),
    "max": Reduction(lambda t: t, lambda t: t.smallest, "maximum"),
    "any": Reduction(lambda t: BOOL, lambda t: False, "logical_or"),
    "all": Reduction(lambda t: BOOL, lambda t: True, "logical_and"),
}


def reduce(body: Body, node: tree.Call, name: str) -> Value:
    """A reduction of the generator that is the call's lone argument."""
    name = ALIASES.get(name, name)
    (argument,) = node.args
    assert isinstance(argument, tree.Generator)
    if node.keywords:
        fault("unknown-keyword", f"{name} of a generator has no keywords", node.keywords[0].span)
    if name in ("argmin", "argmax"):
        return _arg(body, argument, name, node.span)
    if name not in REDUCTIONS:
        fault("bare-generator", f"{name} does not reduce a generator", node.span,
              help="sum, prod, min, max, any, all, argmin and argmax do")  # fmt: skip
    row = REDUCTIONS[name]
    element = _element_type(body, argument, name)
    total = row.accumulator(element)
    start = convert(body, Literal(row.start(total.scalar)), total, node.span)
    var = body.var(name, total)
    body.mutable.add(var.number)
    body.emit(ir.Declare(var, start.expr, node.span))

    def step(value: Value) -> None:
        read = Typed(ir.Read(var))
        if name in ("any", "all"):
            changed: Value = Typed(ir.Apply(row.op, (read.expr, typed(value, node.span).expr), BOOL))
        else:
            value = convert(body, value, total, argument.element.span)
            changed = apply(body, OPERATIONS[row.op], (read, value), node.span)
        assert isinstance(changed, Typed)
        body.set(var, changed.expr, node.span)

    clauses(body, argument, step, truths=name in ("any", "all"))
    return Typed(ir.Read(var))


def _element_type(body: Body, generator: tree.Generator, name: str) -> Type:
    """The type of the produced values, found by lowering them once and forgetting it."""
    found: list[Value] = []
    with body.unit.rollback(), body.nested():
        clauses(body, generator, found.append, truths=name in ("any", "all"))
    value = found[0] if found else Literal(0)
    if isinstance(value, Group):
        fault("not-a-number", f"{name} reduces numbers, found {describe(value)}", generator.element.span)
    if name in ("any", "all"):
        return BOOL
    base = next((v for v in found if isinstance(v, Typed)), value)
    joined = typed(base, generator.element.span).type
    for v in found:
        t = base.type if v is base and isinstance(base, Typed) else join_types(base, v)
        if t is None:
            fault("type-join", f"the values of this {name} have different types", generator.element.span)
        joined = t if t.scalar.bits > joined.scalar.bits else joined
    return joined


def clauses(
    body: Body, generator: tree.Generator, produce: Callable[[Value], None], *, truths: bool = False
) -> None:
    """The generator's loops and conditions around `produce(element)`; with `truths`, of the element's truth."""

    def enter(k: int) -> None:
        if k == len(generator.clauses):
            element = generator.element
            produce(conditions.truth_of(body, element) if truths else expressions.lower(body, element))
            return
        _clause(body, generator.clauses[k], lambda: enter(k + 1))

    saved = dict(body.env)
    body.generating += 1
    try:
        enter(0)
    finally:
        body.generating -= 1
    body.env = saved


def _clause(body: Body, clause: tree.Clause, inner: Callable[[], None]) -> None:
    found = loops.iteration(body, clause.iterable)
    if isinstance(found, list):
        _unrolled(body, clause, found, inner)
        return
    if not isinstance(found.start, Literal) or not isinstance(found.stop, Literal):
        _counted(body, clause, found, inner)
        return
    try:
        with body.unit.trial():
            _counted(body, clause, found, inner)
    except NeedsConstant:
        _unrolled(body, clause, loops.literal_range(body, found, clause.iterable.span), inner)


def _unrolled(body: Body, clause: tree.Clause, items: Sequence[Value], inner: Callable[[], None]) -> None:
    with loops.copied(body, len(items), clause.span):
        for item in items:
            loops.count_turn(body, clause.span)
            carrying, body.loops = body.loops, []  # the target is the generator's own name
            try:
                statements.assign(body, clause.target, item, clause.span)
            finally:
                body.loops = carrying
            _conditions(body, clause.conditions, inner)


def _counted(body: Body, clause: tree.Clause, r: loops.Range, inner: Callable[[], None]) -> None:
    if not isinstance(clause.target, tree.Name):
        fault("bad-target", "the items of a range are numbers and cannot be unpacked", clause.target.span)
    span = clause.span
    start, stop = (typed(body.pinned(v, span), span, I32) for v in (r.start, r.stop))
    name = clause.target.name
    with body.nested() as block:
        var = body.var(name, I32)
        body.env[name] = Typed(ir.Read(var), loops.loop_symbol(body, name, start, stop, r.step))
        if start.poly is not None and stop.poly is not None:
            body.assume([stop.poly - start.poly - 1 if r.step > 0 else start.poly - stop.poly - 1])
        _conditions(body, clause.conditions, inner)
    body.emit(ir.For(var, start.expr, stop.expr, r.step, tuple(block), span))


def _conditions(body: Body, tests: Sequence[tree.Expr], inner: Callable[[], None]) -> None:
    if not tests:
        inner()
        return
    condition = conditions.truth_of(body, tests[0])
    if isinstance(condition, Literal):
        if condition.value:
            _conditions(body, tests[1:], inner)
        return
    with body.nested() as block:
        body.assume(condition.holds)
        _conditions(body, tests[1:], inner)
    body.emit(ir.If(condition.expr, tuple(block), (), tests[0].span))


def _arg(body: Body, generator: tree.Generator, name: str, span: Span) -> Value:
    """The count, from 0, of the first least (greatest) value; the first NaN wins; −1 of nothing."""
    if any(c.conditions for c in generator.clauses):
        worst = "inf" if name == "argmin" else "-inf"
        fault("arg-condition", f"{name} counts produced values, so its generator takes no `if`", span,
              help=f"give the others the worst value: `{name}(x if … else {worst} for …)`")  # fmt: skip
    element = _element_type(body, generator, name)
    if isinstance(element, Vec):
        fault("not-a-number", f"{name} compares numbers, found {element}", generator.element.span)
    best, at, count = body.var("best", element), body.var(name, I32), body.var("count", I32)
    for var, value in ((best, 0), (at, -1), (count, 0)):
        body.mutable.add(var.number)
        zero = convert(body, Literal(value), var.type, span)
        body.emit(ir.Declare(var, zero.expr, span))
    better = OPERATIONS["less" if name == "argmin" else "greater"]

    def step(value: Value) -> None:
        new = body.let("x", convert(body, value, element, span), span)
        old = Typed(ir.Read(best))
        first = ir.Apply("less", (ir.Read(at), ir.Const(0, I32)), BOOL)
        wins = typed(apply(body, better, (new, old), span), span).expr
        if element.is_float:
            nan = [typed(apply(body, OPERATIONS["isnan"], (v,), span), span).expr for v in (new, old)]
            not_yet = ir.Apply("logical_not", (nan[1],), BOOL)
            wins = ir.Apply("logical_and", (not_yet, ir.Apply("logical_or", (nan[0], wins), BOOL)), BOOL)
        block = (ir.Assign(best, new.expr, span), ir.Assign(at, ir.Read(count), span))
        body.emit(ir.If(ir.Apply("logical_or", (first, wins), BOOL), block, (), span))
        body.set(count, ir.Apply("add", (ir.Read(count), ir.Const(1, I32)), I32, True), span)

    clauses(body, generator, step)
    poly = body.unit.facts.symbol(name, [-1], [2**31 - 1])
    return Typed(ir.Read(at), poly)


def reduce_items(body: Body, name: str, items: Sequence[Value], span: Span) -> Value:
    """A reduction of a tuple's items."""
    name = ALIASES.get(name, name)
    if name in ("argmin", "argmax"):
        fault("not-reducible", f"{name} reduces a generator", span, help=f"write `{name}(v for v in (…))`")
    if name in ("any", "all"):
        return calls.logical_of(body, "or" if name == "any" else "and", items, span)
    if not items:
        if name in ("sum", "prod"):
            return Literal(0 if name == "sum" else 1)
        fault("empty-reduction", f"{name} of an empty tuple has no value", span)
    symbol = {"sum": "+", "prod": "*"}.get(name)
    if symbol is not None:
        items = [convert(body, i, summed(i.type), span) if isinstance(i, Typed) else i for i in items]
    total = items[0]
    for item in items[1:]:
        if symbol is not None:
            total = binary(body, symbol, total, item, span)
        elif isinstance(total, Literal) and isinstance(item, Literal):
            total = Literal((min if name == "min" else max)(total.value, item.value))  # type: ignore[type-var]
        else:
            total = apply(body, OPERATIONS[REDUCTIONS[name].op], (total, item), span)
    return total
