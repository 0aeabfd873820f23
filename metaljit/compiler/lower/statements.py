"""Statements of the tree → IR statements: assignment, `if`, `return`, `assert`. Loops stand in `loops`.

A name that is rebound in straight-line code holds another value from there on. Where control flow joins, the
name gets one variable of one type; a name that a loop carries has its variable throughout the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from metaljit.grammar import tree

from ...dtypes import BOOL, DType, Type, Vec
from ...source import Span
from .. import ir
from . import arrays, carried, conditions, expressions, loops, returns, shared, tiles
from .arithmetic import binary
from .body import Body, Site, require_value
from .convert import convert, implicit
from .literals import describe
from .signature import annotation
from .values import (
    POISON,
    Group,
    Literal,
    Poison,
    Poisoned,
    Private,
    Tile,
    Typed,
    Unset,
    Value,
    View,
    fault,
    join_types,
)


def lower_body(body: Body, function: tree.Function) -> None:
    """All statements of a function; a path that ends without `return` where a value is due is a fault."""
    lower_block(body, function.body)
    due = body.plan.fixed or any(v != Literal(None) for v, _ in body.returns)
    if not body.done and due and not body.unit.diagnostics:
        with body.reporting():
            fault(
                "missing-return",
                f"a path through {function.name!r} ends without `return`",
                function.name_span,
            )


def lower_block(body: Body, nodes: Sequence[tree.Stmt]) -> None:
    for node in nodes:
        if body.done:
            return  # what follows `return`, `break` or `continue` never runs
        with body.reporting(*assigned([node])):
            statement(body, node)


def statement(body: Body, node: tree.Stmt) -> None:
    match node:
        case tree.Assign(targets, value):
            _assign(body, targets, value)
        case tree.Declare():
            _declare(body, node)
        case tree.Augment(target, op, value):
            _augment(body, node, target, op, value)
        case tree.If():
            _if(body, node)
        case tree.For():
            loops.for_loop(body, node)
        case tree.While():
            loops.while_loop(body, node)
        case tree.Break() | tree.Continue():
            loops.leave(body, node)
        case tree.Pass():
            pass
        case tree.Return():
            returns.return_(body, node)
        case tree.Assert():
            _assert(body, node)
        case tree.ExprStmt(value):
            if not isinstance(value, tree.String | tree.Number | tree.Constant):
                expressions.lower(body, value)
        case _:
            assert_never(node)


def assigned(nodes: Sequence[tree.Stmt], *, targets: bool = True) -> list[str]:
    """Names that statements bind, in the order of their first binding; those of `for` only with `targets`."""
    found: dict[str, None] = {}

    def target(t: tree.Target | tree.Star) -> None:
        match t:
            case tree.Name(name):
                found[name] = None
            case tree.TupleTarget(items):
                for i in items:
                    target(i)
            case tree.Star(value):
                if isinstance(value, tree.Name):
                    found[value.name] = None
            case _:
                pass

    for node in nodes:
        match node:
            case tree.Assign(several, _):
                for t in several:
                    target(t)
            case tree.Declare(t, _, _) | tree.Augment(t, _, _):
                target(t)
            case tree.If(_, then, orelse):
                found.update(dict.fromkeys(assigned((*then, *orelse), targets=targets)))
            case tree.For(t, _, inner):
                if targets:
                    target(t)
                found.update(dict.fromkeys(assigned(inner, targets=targets)))
            case tree.While(_, inner):
                found.update(dict.fromkeys(assigned(inner, targets=targets)))
            case _:
                pass
    return list(found)


# ---- assignment ----


def _assign(body: Body, targets: Sequence[tree.Target], node: tree.Expr) -> None:
    value = expressions.lower(body, node)
    if len(targets) > 1:
        value = kept(body, value, "t", node.span)
    for t in targets:
        assign(body, t, value, node.span)


def assign(body: Body, target: tree.Target | tree.Star, value: Value, span: Span) -> None:
    match target:
        case tree.Name(name):
            bind(body, name, value, span)
        case tree.TupleTarget(items):
            _unpack(body, items, value, target.span, span)
        case tree.Subscript():
            _store(body, target, value, span)
        case tree.Attribute():
            owner = expressions.lower(body, target.value)
            way_out = ""
            if isinstance(owner, Typed) and isinstance(owner.type, Vec):
                parts = [
                    f"{target.value.span.text}.{c}" if c != target.name else "…"
                    for c in "xyzw"[: owner.type.lanes]
                ]
                way_out = f"make a new vector: `{target.value.span.text} = {owner.type}({', '.join(parts)})`"
            fault(
                "component-assignment",
                f"{target.span.text!r} cannot be assigned: vectors are values",
                target.span,
                help=way_out,
            )
        case tree.Star():
            fault("bad-target", "a starred target stands only in a tuple", target.span)


def bind(body: Body, name: str, value: Value, span: Span) -> None:
    """`name = value`."""
    if isinstance(value, Poison):
        raise Poisoned
    if isinstance(value, Private):
        value = name_array(body, value, name)
    if isinstance(value, Tile):
        value = tiles.name_tile(body, value, name)
    if isinstance(value, View):
        value = shared.name_shared(body, value, name)
    declared = body.declared.get(name)
    if declared is not None:
        value = implicit(body, value, declared[0], span, f"the declared {name!r}")
    frame = next((f for f in reversed(body.loops) if name in f.carried or name in f.groups), None)
    if frame is None:
        body.env[name] = kept(body, value, name, span)
    elif name in frame.groups:
        body.env[name] = carried.rebind_group(body, name, frame, value, span)
    else:
        body.env[name] = carried.rebind(body, name, frame.carried[name], value, span, flows=frame.flows)


def name_array(body: Body, value: Private, name: str) -> Private:
    """A local array gets the name that it is first assigned to."""
    last = body.block[-1] if body.block else None
    if not isinstance(last, ir.LocalArray) or last.local != value.local:
        return value
    named = replace(value.local, name=name)
    body.block[-1] = replace(last, local=named)
    return replace(value, local=named)


def kept(body: Body, value: Value, name: str, span: Span) -> Value:
    """The value as a name holds it: computed once, here."""
    match value:
        case Typed(ir.Read() | ir.Const() | ir.Uniform() as expr) if body.is_stable(expr):
            return value
        case Typed():
            return body.let(name, value, span)
        case Group(items, index):
            return Group(tuple(kept(body, v, f"{name}_{k}", span) for k, v in enumerate(items)), index)
        case _:
            return value


def _unpack(
    body: Body, items: Sequence[tree.Target | tree.Star], value: Value, target_span: Span, span: Span
) -> None:
    if isinstance(value, Typed) and isinstance(value.type, Vec):
        passed = isinstance(value.expr, ir.Vector) and all(
            isinstance(p, ir.Uniform) for p in value.expr.parts
        )
        whole = value if passed else body.let("v", value, span)
        values = [body.unit.lane(whole, k) for k in range(value.type.lanes)]
        group: tuple[Value, ...] = tuple(values)
        index = False
    else:
        found = expressions.as_group(body, value, span)
        group, index = found.items, found.index
    stars = [k for k, i in enumerate(items) if isinstance(i, tree.Star)]
    if len(stars) > 1:
        fault("bad-target", "a target has at most one starred name", target_span)
    if (len(group) != len(items)) if not stars else (len(group) < len(items) - 1):
        least = "at least " if stars else ""
        fault(
            "unpack-count",
            f"{len(group)} values cannot be unpacked into {least}{len(items) - len(stars)} names",
            target_span,
            second=(span, f"{len(group)} values"),
        )
    # all values are computed before the first name changes: `a, b = b, a`
    group = tuple(body.pinned(v, span) for v in group)
    at = 0
    for item in items:
        if isinstance(item, tree.Star):
            n = len(group) - len(items) + 1
            if not isinstance(item.value, tree.Name):
                fault("bad-target", "a starred target is a name", item.span)
            bind(body, item.value.name, Group(group[at : at + n], index), span)
            at += n
        else:
            assign(body, item, group[at], span)
            at += 1


def _store(body: Body, target: tree.Subscript, value: Value, span: Span) -> None:
    owner = expressions.lower(body, target.value)
    indices = expressions.spread(body, target.indices)
    match owner:
        case View():
            arrays.write(body, owner, indices, value, target.span, span)
        case Private():
            arrays.write_private(body, owner, indices, value, target.span, span)
        case Typed() if isinstance(owner.type, Vec):
            fault("component-assignment", "a lane of a vector cannot be assigned: vectors are values", target.span,
                  help=f"make a new one: `{owner.type}(…)`")  # fmt: skip
        case Poison():
            raise Poisoned
        case _:
            fault("not-an-array", f"{describe(owner)} has no elements to assign", target.span)


def _declared_type(body: Body, node: tree.Declare) -> Type:
    """`x: f32`, `x: T`, `x: wide(T)`."""
    if isinstance(node.annotation, tree.Call):
        from .builtins import element_type

        return element_type(expressions.lower(body, node.annotation), node.annotation.span)
    wanted = annotation(node.annotation, body.names)
    if wanted.axes is not None:
        fault(
            "bad-annotation",
            f"{node.target.name!r} cannot be declared as an array",
            wanted.span,
            help="use local_array(…)",
        )
    element = wanted.element
    return element if isinstance(element, DType | Vec) else body.unit.spec.variables[element]


def _declare(body: Body, node: tree.Declare) -> None:
    name = node.target.name
    element = _declared_type(body, node)
    value = expressions.lower(body, node.value) if node.value is not None else None
    body.declared[name] = (element, node.target.span)
    if value is not None:
        bind(body, name, value, node.value.span if node.value else node.span)
    else:
        body.env[name] = Unset("it is declared without a value", node.target.span)


def _augment(body: Body, node: tree.Augment, target: tree.Target, op: str, value: tree.Expr) -> None:
    match target:
        case tree.Name(name):
            if name not in body.env:
                fault(
                    "unknown-name",
                    f"the name {name!r} is not defined",
                    target.span,
                    "not defined",
                    help=f"give it a value first: `{name} = 0`",
                )
            before = require_value(body.env[name], name, target.span)
            by = expressions.lower(body, value)
            bind(body, name, binary(body, op, before, by, node.span), node.span)
        case tree.Subscript():
            owner = expressions.lower(body, target.value)
            indices = [body.pinned(i, target.span) for i in expressions.spread(body, target.indices)]
            if not isinstance(owner, View | Private):
                fault("not-an-array", f"{describe(owner)} has no elements to assign", target.span)
            read = arrays.read if isinstance(owner, View) else arrays.read_private
            before, by = body.in_order(
                [
                    lambda: read(body, owner, indices, target.span),  # type: ignore[arg-type]
                    lambda: expressions.lower(body, value),
                ],
                [target.span, value.span],
            )
            changed = binary(body, op, before, by, node.span)
            element = owner.element if isinstance(owner, View) else owner.local.type
            if isinstance(changed, Typed) and changed.type.scalar.kind == element.scalar.kind:
                changed = convert(body, changed, element, node.span)  # `u8[i] += 1` keeps the element's type
            if isinstance(owner, View):
                arrays.write(body, owner, indices, changed, target.span, node.span)
            else:
                arrays.write_private(body, owner, indices, changed, target.span, node.span)
        case _:
            assign(body, target, POISON, node.span)


# ---- if, return, assert ----


def _if(body: Body, node: tree.If) -> None:
    condition = conditions.truth_of(body, node.condition)
    if isinstance(condition, Literal):
        lower_block(body, node.body if condition.value else node.orelse)
        return
    sides = []
    for nodes, holds in ((node.body, condition.holds), (node.orelse, condition.fails)):
        with body.nested() as block:
            body.assume(holds)
            lower_block(body, nodes)
            sides.append((block, body.env, body.done))
    (then, then_env, then_done), (other, other_env, other_done) = sides
    if then_done != other_done:
        # only one side goes on: its statements follow the `if`, so that what they define is known there
        leaving, staying = (then, other) if then_done else (other, then)
        leaves_if = condition.expr if then_done else ir.Apply("logical_not", (condition.expr,), BOOL)
        body.emit(ir.If(leaves_if, tuple(leaving), (), node.condition.span))
        body.block += staying
        body.env = other_env if then_done else then_env
        body.assume(condition.fails if then_done else condition.holds)
        return
    body.done = then_done and other_done
    if not body.done:
        merge(body, then_env, other_env, then, other, node.span)
    body.emit(ir.If(condition.expr, tuple(then), tuple(other), node.condition.span))


def merge(
    body: Body,
    a: dict[str, Value],
    b: dict[str, Value],
    a_block: list[ir.Stmt],
    b_block: list[ir.Stmt],
    span: Span,
) -> None:
    """After two paths meet: one variable for each name that differs."""
    merged: dict[str, Value] = {}
    for name in list(a) + [n for n in b if n not in a]:
        old = body.env.get(name)
        merged[name] = _merge_value(body, name, name, a.get(name), b.get(name), old, a_block, b_block, span)
    body.env = merged


def _merge_value(
    body: Body,
    name: str,
    key: str,
    x: Value | None,
    y: Value | None,
    before: Value | None,
    a_block: list[ir.Stmt],
    b_block: list[ir.Stmt],
    span: Span,
) -> Value:
    if x is None or y is None:
        return Unset("it is assigned on one path only", span)
    if x == y or isinstance(x, Unset | Poison):
        return x
    if isinstance(y, Unset | Poison):
        return y
    if isinstance(x, Typed) and isinstance(y, Typed) and x.expr == y.expr:
        return Typed(x.expr)
    if isinstance(x, Group) and isinstance(y, Group) and len(x.items) == len(y.items):
        parts = zip(x.items, y.items, strict=True)
        olds = (
            before.items
            if isinstance(before, Group) and len(before.items) == len(x.items)
            else (None,) * len(x.items)
        )
        items = [
            _merge_value(body, f"{name}_{k}", f"{key}.{k}", p, q, old, a_block, b_block, span)
            for k, ((p, q), old) in enumerate(zip(parts, olds, strict=True))
        ]
        if any(isinstance(i, Unset) for i in items):
            return Unset(
                "its parts do not agree where paths meet", span, "where the paths part", is_conflict=True
            )
        return Group(tuple(items), x.index and y.index)
    type = join_types(x, y)
    looped = next((f.carried[key] for f in reversed(body.loops) if key in f.carried), None)
    if looped is not None and type is None and all(carried.fits(v, looped.var.type) for v in (x, y)):
        type = looped.var.type
    if type is None:
        why = f"it is {describe(x)} on one path and {describe(y)} on the other"
        return Unset(why, span, "where the paths part", is_conflict=True)
    if looped is not None and looped.var.number in body.mutable and looped.var.type == type:
        return Typed(ir.Read(looped.var))  # a loop's variable holds what was assigned last
    var = body.var(name, type)
    initial = None
    for value, block in ((x, a_block), (y, b_block)):
        converted = convert(body, value, type, span)
        if value is before and initial is None:
            initial = converted.expr
        else:
            block.append(ir.Assign(var, converted.expr, span))
    body.emit(ir.Declare(var, initial, span))
    return Typed(ir.Read(var))


def _assert(body: Body, node: tree.Assert) -> None:
    message = "assertion failed"
    if node.message is not None:
        found = expressions.constant_of(body, node.message, "the message of an assert")
        message = str(found)
    if not body.unit.options.asserts:
        return
    condition = conditions.truth_of(body, node.condition)
    if isinstance(condition, Literal):
        if not condition.value:
            fault("static-assertion", f"this assertion is false: {message}", node.span)
        return
    body.unit.sites.append(Site(message, node.span))
    body.emit(ir.Check(condition.expr, len(body.unit.sites) - 1, node.span))
