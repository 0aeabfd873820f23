"""Comparisons, `and`, `or`, and `a if c else b`.

What stands to the right of `and`, `or`, `if` is evaluated, and checked, only where it counts; statements that it needs
go into an `if` around a variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metaljit.grammar import tree

from ...dtypes import BOOL, DType
from ...source import Span
from .. import ir
from . import calls, expressions
from .arithmetic import binary, join_conditions, truth, unary
from .body import Body
from .convert import convert
from .literals import describe
from .values import (
    Group,
    Literal,
    Meta,
    Typed,
    Value,
    fault,
    join_types,
)


def compare(body: Body, node: tree.Compare) -> Value:
    """A chain: each operand is evaluated once, all comparisons must hold."""
    if len(node.ops) == 1 and node.ops[0] in ("in", "not in", "is", "is not"):
        return _member(body, node)
    values = expressions.lower_all(body, (node.first, *node.rest))
    if len(node.ops) > 1:
        values = [body.pinned(v, node.span, variables=False) if _costly(v) else v for v in values]
    parts: list[Value] = []
    for op, a, b in zip(node.ops, values, values[1:], strict=False):
        if op in ("in", "not in", "is", "is not"):
            fault("no-operator", f"{op!r} cannot be chained", node.span)
        parts.append(_compared(body, op, a, b, node.span))
    if len(parts) == 1:
        return parts[0]
    return calls.logical_of(body, "and", parts, node.span)


def _costly(value: Value) -> bool:
    return isinstance(value, Typed) and not isinstance(value.expr, ir.Const | ir.Read | ir.Uniform)


def _compared(body: Body, op: str, a: Value, b: Value, span: Span) -> Value:
    if isinstance(a, Meta) or isinstance(b, Meta):
        if op in ("==", "!=") and isinstance(a, Meta) and isinstance(b, Meta):
            return Literal((a.of == b.of) == (op == "=="))
        fault("no-operator", f"{describe(a)} and {describe(b)} cannot be compared", span)
    return binary(body, op, a, b, span)


def _member(body: Body, node: tree.Compare) -> Value:
    """`x in (a, b)`: at compile time for types and literals, else one comparison an item."""
    a, b = expressions.lower_all(body, (node.first, node.rest[0]))
    positive = node.ops[0] in ("in", "is")
    if node.ops[0] in ("is", "is not"):
        match a, b:
            case Meta(x), Meta(y):
                return Literal((x == y) == positive)
            case Literal(x), Literal(y):
                return Literal((x is y or x == y) == positive)
        fault("no-operator", f"{node.ops[0]!r} compares types and constants only", node.span, help="use `==`")
    items = expressions.as_group(body, b, node.rest[0].span).items
    parts = [_compared(body, "==", a, i, node.span) for i in items]
    found = calls.logical_of(body, "or", parts, node.span) if parts else Literal(False)
    return found if positive else unary(body, "not", found, node.span)


def truth_of(body: Body, node: tree.Expr) -> Literal | Typed:
    """An expression where only its truth matters: operands of `and`, `or`, `not` may have different types."""
    match node:
        case tree.Logical(_, operands):
            first = truth_of(body, operands[0])
            return truth(body, _logical_rest(body, node, first, 1, truth_of), node.span)
        case tree.Unary("not", operand):
            return truth(body, unary(body, "not", truth_of(body, operand), node.span), node.span)
        case _:
            return truth(body, expressions.lower(body, node), node.span)


def logical(body: Body, node: tree.Logical) -> Value:
    """Short-circuit: what stands to the right is evaluated, and checked, only where it counts.

    `and`/`or` of numbers give a value as in Python: `x and y` is y where x is true, else x.
    """
    first = expressions.lower(body, node.operands[0])
    return _logical_rest(body, node, first, 1, expressions.lower)


def _logical_rest(
    body: Body, node: tree.Logical, first: Value, k: int, lower: Callable[[Body, tree.Expr], Value]
) -> Value:
    if k == len(node.operands):
        return first

    def rest() -> Value:
        return _logical_rest(body, node, lower(body, node.operands[k]), k + 1, lower)

    is_and = node.op == "and"
    condition = truth(body, first, node.operands[k - 1].span)
    if isinstance(condition, Literal):
        return first if bool(condition.value) != is_and else rest()
    with body.nested() as block:
        body.assume(condition.holds if is_and else condition.fails)
        second = rest()
        plain = _is_condition(first) and _is_condition(second)
        if plain and not block:
            other = truth(body, second, node.span)
            if isinstance(other, Literal):
                return condition if bool(other.value) == is_and else Literal(not is_and)
            return join_conditions(node.op, [condition, other])
    pinned = body.pinned(first, node.span) if _costly(first) else first
    condition = truth(body, pinned, node.operands[k - 1].span)
    assert isinstance(condition, Typed)
    holds = condition.holds if is_and else condition.fails

    def other_side() -> Value:
        body.assume(holds)
        return rest()

    sides = (other_side, lambda: pinned) if is_and else (lambda: pinned, other_side)
    return choose(body, condition, sides, node.span)


def _is_condition(value: Value) -> bool:
    return (isinstance(value, Literal) and isinstance(value.value, bool)) or (
        isinstance(value, Typed) and value.type == BOOL
    )


def conditional(body: Body, node: tree.Conditional) -> Value:
    condition = truth_of(body, node.condition)
    if isinstance(condition, Literal):
        return expressions.lower(body, node.then if condition.value else node.otherwise)
    found = condition

    def then() -> Value:
        body.assume(found.holds)
        return expressions.lower(body, node.then)

    def otherwise() -> Value:
        body.assume(found.fails)
        return expressions.lower(body, node.otherwise)

    return choose(body, condition, (then, otherwise), node.span)


def choose(
    body: Body, condition: Typed, sides: tuple[Callable[[], Value], Callable[[], Value]], span: Span
) -> Value:
    """One of two values: an expression where neither needs statements, else an `if` around a variable."""
    blocks: list[list[ir.Stmt]] = []
    values: list[Value] = []
    for side in sides:
        with body.nested() as block:
            values.append(side())
        blocks.append(block)
    if all(isinstance(v, Group) for v in values):
        return _choose_group(body, condition, values, blocks, span)
    type = join_types(values[0], values[1])
    if type is None:
        shown = " and ".join(describe(v) for v in values)
        fault("type-join", f"the two sides do not have one type: {shown}", span, help="cast one of them")
    if isinstance(values[0], Literal) and values[0] == values[1]:
        return values[0]
    if any(blocks):
        return _choose_by_statement(body, condition, values, blocks, type, span)
    a, b = (convert(body, v, type, span) for v in values)
    facts = body.unit.facts
    poly = None
    if isinstance(type, DType) and type.is_integer and a.poly is not None and b.poly is not None:
        low = [p for p, q in ((a.poly, b.poly), (b.poly, a.poly)) if facts.proves(q - p)]
        high = [p for p, q in ((a.poly, b.poly), (b.poly, a.poly)) if facts.proves(p - q)]
        zero = [0] if facts.proves(a.poly) and facts.proves(b.poly) else []
        poly = facts.symbol("either", [*low, *zero], high)
    return Typed(ir.Choose(condition.expr, a.expr, b.expr), poly)


def _choose_group(
    body: Body, condition: Typed, values: list[Value], blocks: list[list[ir.Stmt]], span: Span
) -> Value:
    a, b = values
    assert isinstance(a, Group)
    assert isinstance(b, Group)
    if len(a.items) != len(b.items):
        fault("type-join", f"the two sides are tuples of {len(a.items)} and {len(b.items)}", span)
    if any(blocks):
        fault(
            "type-join",
            "tuples with computed parts cannot be chosen by `if … else`",
            span,
            help="write an `if` statement",
        )
    items = tuple(
        choose(body, condition, (lambda x=x: x, lambda y=y: y), span)  # type: ignore[misc]
        for x, y in zip(a.items, b.items, strict=True)
    )
    return Group(items, a.index and b.index)


def _choose_by_statement(
    body: Body, condition: Typed, values: list[Value], blocks: list[list[ir.Stmt]], type: Any, span: Span
) -> Value:
    var = body.var("t", type)
    for block, value in zip(blocks, values, strict=True):
        block.append(ir.Assign(var, convert(body, value, type, span).expr, span))
    body.emit(ir.Declare(var, None, span))
    body.emit(ir.If(condition.expr, tuple(blocks[0]), tuple(blocks[1]), span))
    return Typed(ir.Read(var))
