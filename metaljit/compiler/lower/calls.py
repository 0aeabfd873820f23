"""Calls: casts and constructors, operations, the language's own functions, device functions.

In: a call node. Out: its value. The language's own functions stand in `builtins`, reductions in `reductions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metaljit.grammar import tree

from ...dtypes import BOOL, DType, Type, Vec
from ...extents import symbols
from ...operation_rules import Operation
from ...source import Span
from ...symbols import Builtin, FunctionText
from .. import ir
from . import builtins, conditions, expressions, functions, reductions
from .arithmetic import apply, logical, truth
from .body import Body, Unit
from .convert import convert
from .literals import describe, typed
from .values import (
    Group,
    Literal,
    Meta,
    Poison,
    Poisoned,
    Typed,
    Value,
    fault,
)


def lower_call(body: Body, node: tree.Call) -> Value:
    target = _callee(body, node)
    match target:
        case DType() | Vec():
            return cast(body, node, target)
        case Operation():
            return operation(body, node, target)
        case Builtin(name):
            return builtins.call(body, node, name)
        case FunctionText():
            return functions.function(body, node, target)
    fault("not-callable", f"{node.func.span.text!r} cannot be called in a kernel", node.func.span)


def _callee(body: Body, node: tree.Call) -> Any:
    value = expressions.lower(body, node.func)
    if isinstance(value, Poison):
        raise Poisoned
    if not isinstance(value, Meta):
        fault("not-callable", f"{describe(value)} cannot be called", node.func.span)
    return value.of


def arguments(
    body: Body, node: tree.Call, *, keywords: Sequence[str] = ()
) -> tuple[list[Value], dict[str, Value]]:
    """Positional and keyword values in the order of the text."""
    for k in node.keywords:
        if k.name not in keywords:
            known = f"; there is {', '.join(keywords)}" if keywords else ""
            fault("unknown-keyword", f"{node.func.span.text} has no keyword {k.name!r}{known}", k.span)
    positional = expressions.spread(body, node.args)
    named = expressions.lower_all(body, [k.value for k in node.keywords])
    return positional, {k.name: v for k, v in zip(node.keywords, named, strict=True)}


def count(node: tree.Call, values: Sequence[object], least: int, most: int | None = None) -> None:
    most = least if most is None else most
    if not least <= len(values) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        s = "s" if wanted != "1" else ""
        fault(
            "argument-count",
            f"{node.func.span.text} takes {wanted} argument{s} and was given {len(values)}",
            node.span,
        )


# ---- casts and operations ----


def cast(body: Body, node: tree.Call, type: Type) -> Value:
    """`f32(x)`, `f32x3(a, b, c)`, `f32x4(v, 1)`, `i32(v)`."""
    if type == BOOL and (condition := mixed_condition(body, node)) is not None:
        count(node, node.args, 1)
        return condition
    values, _ = arguments(body, node)
    if isinstance(type, DType):
        count(node, values, 1)
        return cast_scalar(body, values[0], type, node.span)
    if len(values) == 1 and isinstance(values[0], Group):
        values = list(values[0].items)
    if len(values) == 1:
        return _cast_vector(body, values[0], type, node.span)
    parts: list[ir.Expr] = []
    for v in values:
        parts += _parts(body, v, type.scalar, node.span)
    if len(parts) != type.lanes:
        fault("vector-lanes", f"{type} has {type.lanes} lanes and was given {len(parts)}", node.span)
    return Typed(ir.Vector(tuple(parts), type))


def cast_scalar(body: Body, value: Value, type: DType, span: Span) -> Value:
    if isinstance(value, Literal) and isinstance(value.value, int | float):
        return Typed(*_cast_literal(value.value, type))
    source = typed(value, span)
    if isinstance(source.type, Vec):
        fault(
            "vector-lanes",
            f"{source.type} is no {type}",
            span,
            help=f"write `{type}x{source.type.lanes}(…)` or take one lane",
        )
    return convert(body, source, type, span)


def _cast_literal(value: int | float, type: DType) -> tuple[ir.Const, Any]:
    """A cast wraps integers and saturates floats, at compile time as at run time."""
    from ..bounds import Poly

    if type == BOOL:
        return ir.Const(bool(value), type), None
    if type.is_float:
        return ir.Const(float(value), type), None
    low, high = int(type.smallest), int(type.largest)
    if isinstance(value, float):
        whole = 0 if value != value else low if value <= low else high if value >= high else int(value)
    else:
        whole = (int(value) - low) % (1 << type.bits) + low
    return ir.Const(whole, type), Poly.of(whole)


def _cast_vector(body: Body, value: Value, type: Vec, span: Span) -> Value:
    if isinstance(value, Literal) and isinstance(value.value, int | float):
        return Typed(ir.Vector((_cast_literal(value.value, type.scalar)[0],) * type.lanes, type))
    return convert(body, typed(value, span), type, span)


def _parts(body: Body, value: Value, scalar: DType, span: Span) -> list[ir.Expr]:
    if isinstance(value, Literal) and isinstance(value.value, int | float):
        return [_cast_literal(value.value, scalar)[0]]
    source = typed(value, span)
    if isinstance(source.type, Vec):
        kept = source if isinstance(source.expr, ir.Read) else body.let("v", source, span)
        lanes = [Typed(ir.Lane(kept.expr, k, source.type.scalar)) for k in range(source.type.lanes)]
        return [convert(body, lane, scalar, span).expr for lane in lanes]
    return [convert(body, source, scalar, span).expr]


def mixed_condition(body: Body, node: tree.Call) -> Value | None:
    """The first argument where only its truth counts, if it is an `and` or `or`: these may mix types there."""
    first = node.args[0] if node.args and not node.keywords else None
    return conditions.truth_of(body, first) if isinstance(first, tree.Logical) else None


def operation(body: Body, node: tree.Call, op: Operation) -> Value:
    """A function of the operation table; `minimum` and `maximum` of generators are reductions."""
    if len(node.args) == 1 and isinstance(node.args[0], tree.Generator):
        return reductions.reduce(body, node, op.name)
    if op.name == "where" and (condition := mixed_condition(body, node)) is not None:
        values = [condition, *expressions.spread(body, node.args[1:])]
    else:
        values, _ = arguments(body, node)
    if (
        op.name == "where"
        and len(values) == 3
        and isinstance(values[0], Typed)
        and values[0].type.scalar != BOOL
    ):
        values[0] = truth(body, values[0], node.span)
    spans = [a.span for a in node.args] if len(node.args) == len(values) else [node.span] * len(values)
    for v, s in zip(values, spans, strict=True):
        if not isinstance(v, Literal | Typed):
            fault("not-a-number", f"{op.name} takes numbers, found {describe(v)}", s)
    if len(values) != op.arity:
        count(node, values, op.arity)
    return apply(body, op, values, node.span, spans)


def logical_of(body: Body, word: str, parts: Sequence[Value], span: Span) -> Value:
    """`and`/`or` of values, lane by lane for bool vectors."""
    from ...operations import OPERATIONS

    if any(isinstance(p, Typed) and isinstance(p.type, Vec) for p in parts):
        total = parts[0]
        for p in parts[1:]:
            total = apply(body, OPERATIONS[f"logical_{word}"], (total, p), span)
        return total
    return logical(body, word, parts, span)


def bound_dims(unit: Unit) -> frozenset[str]:
    """The extents that arguments' shapes give a value."""
    found: set[str] = set()
    for array in (*unit.spec.arrays.values(), *unit.spec.results):
        for e in array.shape:
            found |= symbols(e)
    return frozenset(found)


# ---- device functions ----
