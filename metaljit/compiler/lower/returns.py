"""`return`: what a kernel or a device function gives, and how several returns agree.

A plan is a pattern of values: a kernel's is fixed by its result types, a device function's by its annotation, or else
found by lowering its body once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from metaljit.grammar import tree

from ...dtypes import DType, Type, Vec
from ...frozen import frozen
from ...source import Span
from .. import ir
from . import expressions
from .body import Body
from .convert import implicit
from .literals import describe, typed
from .signature import Names, annotation
from .values import (
    Group,
    Literal,
    Typed,
    Value,
    fault,
    join_literals,
    join_types,
    of_type,
)


@frozen
class ResultPlan:
    """What `return` gives: a pattern of typed values (`fixed`), or nothing known yet.

    `value` is the pattern: a Typed for each number, a Group for each tuple, or the compile-time value itself.
    """

    value: Value | None = None
    fixed: bool = False

    @staticmethod
    def of_types(types: Sequence[Type]) -> ResultPlan:
        items = tuple(of_type(t) for t in types)
        return ResultPlan(items[0] if len(items) == 1 else Group(items), True)

    @staticmethod
    def of_annotation(function: tree.Function, names: Names) -> ResultPlan:
        """The plan of a device function with a result annotation of plain types; else nothing is known."""
        node = function.returns
        parts: tuple[tree.Expr | tree.Star, ...]
        match node:
            case None | tree.Constant():
                return ResultPlan()
            case tree.TupleExpr(items):
                parts = items
            case tree.Subscript(tree.Name("tuple" | "Tuple"), indices):
                parts = indices
            case _:
                parts = (node,)
        types: list[Type] = []
        for part in parts:
            if isinstance(part, tree.Star):
                fault("bad-annotation", "a result type cannot be starred", part.span)
            found = annotation(part, names)
            if found.axes is not None:
                fault("bad-annotation", "a device function gives numbers and vectors, not arrays", part.span)
            if not isinstance(found.element, DType | Vec):
                return ResultPlan()
            types.append(found.element)
        return ResultPlan.of_types(types)

    def types(self) -> tuple[Type, ...]:
        return tuple(t.type for t in leaves(self.value) if isinstance(t, Typed)) if self.value else ()


def leaves(value: Value | None) -> list[Value]:
    if isinstance(value, Group):
        return [x for i in value.items for x in leaves(i)]
    return [] if value is None else [value]


def return_(body: Body, node: tree.Return) -> None:
    value: Value = Literal(None)
    if node.value is not None:
        value = expressions.lower(body, node.value)
    plan: ResultPlan = body.plan
    if body.is_kernel and plan.value is None and not (isinstance(value, Literal) and value.value is None):
        fault("result-count", "a kernel that is given its grid returns no value", (node.value or node).span,
              help="write it to an `Out` array")  # fmt: skip
    if plan.value is not None and plan.fixed:
        span = node.value.span if node.value is not None else node.span
        what = "the result" if body.is_kernel else f"the result of {body.function.name!r}"
        parts = [implicit(body, v, t.type, span, what) for v, t in _matched(body, value, plan.value, span)]
        body.emit(ir.Return(tuple(p.expr for p in parts), node.span))
        value = _with_ranges(plan.value, iter(parts))
    else:
        numbers = [typed(v, node.span).expr for v in leaves(value) if isinstance(v, Typed)]
        body.emit(ir.Return(tuple(numbers), node.span))
    body.returns.append((value, node.span))
    body.done = True


def _with_ranges(pattern: Value, parts: Iterator[Typed]) -> Value:
    """The pattern with what is known of the integers that are returned."""
    match pattern:
        case Group(items, index):
            return Group(tuple(_with_ranges(i, parts) for i in items), index)
        case Typed():
            return of_type(pattern.type, next(parts).poly)
        case _:
            return pattern


def _matched(body: Body, value: Value, pattern: Value, span: Span) -> list[tuple[Value, Typed]]:
    """Returned values beside what they are to be."""
    if isinstance(pattern, Group):
        if not isinstance(value, Group) or len(value.items) != len(pattern.items):
            fault("result-count", f"{len(pattern.items)} results are due, found {describe(value)}", span)
        pairs = zip(value.items, pattern.items, strict=True)
        return [pair for v, p in pairs for pair in _matched(body, v, p, span)]
    if isinstance(pattern, Typed):
        if isinstance(value, Group):
            fault("result-count", f"one result is due, found {describe(value)}", span)
        if isinstance(value, Literal) and value.value is None:
            fault("missing-return", "a value is due here", span)
        return [(value, pattern)]
    return []


def join_returns(body: Body, function: tree.Function) -> ResultPlan:
    """The plan that fits all `return`s of a device function."""
    if body.plan.fixed:
        return ResultPlan(body.returns[0][0], True) if len(body.returns) == 1 else body.plan
    if not body.returns:
        return ResultPlan(Literal(None), False)
    # a single `return` is no join: its literals stay literals
    pattern = _as_pattern(body.returns[0][0]) if len(body.returns) == 1 else _joined(body.returns, function)
    has_numbers = any(isinstance(v, Typed) for v in leaves(pattern))
    return ResultPlan(pattern, has_numbers)


def settled(body: Body, plan: ResultPlan) -> bool:
    """Whether every `return` gives the plan's types as it stands."""

    def fits(value: Value, pattern: Value) -> bool:
        if isinstance(pattern, Group) and isinstance(value, Group):
            return all(fits(v, p) for v, p in zip(value.items, pattern.items, strict=True))
        return not isinstance(pattern, Typed) or (isinstance(value, Typed) and value.type == pattern.type)

    return plan.value is None or all(fits(value, plan.value) for value, _ in body.returns)


def without_ranges(plan: ResultPlan) -> ResultPlan:
    """The plan's types, without what is known of this call's integers."""

    def strip(value: Value) -> Value:
        match value:
            case Group(items, index):
                return Group(tuple(strip(i) for i in items), index)
            case Typed():
                return of_type(value.type)
            case _:
                return value

    return ResultPlan(strip(plan.value) if plan.value is not None else None, plan.fixed)


def _as_pattern(value: Value) -> Value:
    """What a returned value is made of."""
    match value:
        case Group(items, index):
            return Group(tuple(map(_as_pattern, items)), index)
        case Typed():
            return of_type(value.type, value.poly)
        case _:
            return value


def _joined(returned: Sequence[tuple[Value, Span]], function: tree.Function) -> Value:
    """What fits all returned values, part by part: numbers have one type, and literals take it."""
    first = returned[0][0]
    values = [v for v, _ in returned]
    if isinstance(first, Group) and all(
        isinstance(v, Group) and len(v.items) == len(first.items) for v in values
    ):
        groups = [(v, span) for v, span in returned if isinstance(v, Group)]
        columns = [[(v.items[k], span) for v, span in groups] for k in range(len(first.items))]
        return Group(tuple(_joined(c, function) for c in columns), all(v.index for v, _ in groups))
    if all(v == first for v in values) and not isinstance(first, Literal | Typed):
        return first
    pattern: Value | None = None
    for value, span in sorted(returned, key=lambda r: isinstance(r[0], Literal)):
        joined = _with(pattern, value, [v for v in values if isinstance(v, Literal)])
        if joined is None:
            _refuse_join(pattern if pattern is not None else first, value, function, span)
        pattern = joined
    assert pattern is not None
    return pattern


def _with(pattern: Value | None, value: Value, literals: Sequence[Literal]) -> Value | None:
    """The pattern widened by a value; without typed numbers before it, a literal is one of `literals`."""
    if isinstance(value, Literal) and value.value is None:
        return value if pattern is None or pattern == value else None
    if pattern is None and isinstance(value, Literal):
        type: Type | None = join_literals([v.value for v in literals])
    elif pattern is None:
        type = value.type if isinstance(value, Typed) else None
    else:
        type = join_types(pattern, value)
    return of_type(type) if type is not None else None


def _refuse_join(pattern: Value, value: Value, function: tree.Function, span: Span) -> NoReturn:
    fault(
        "type-join",
        f"{function.name!r} returns {describe(pattern)} on one path and {describe(value)} here",
        span,
        second=(function.name_span, "this function"),
        help="cast one of them, or state the result type with `->`",
    )
