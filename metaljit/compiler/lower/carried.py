"""The names that a loop carries: their variables, the types of those, and the bounds that every turn keeps.

A body is lowered until the types of its carried names do not change: first with literals as literals, so that they take
the type of what they meet, then with variables. Bounds (a counter only grows) are hoped for and dropped when a turn
breaks them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from metaljit.grammar import tree

from ...dtypes import I32, DType, Type
from ...frozen import frozen
from ...source import Span
from .. import ir
from ..bounds import Poly
from . import statements
from .body import Body, Carried, LoopFrame
from .convert import convert
from .literals import describe
from .values import (
    Group,
    Literal,
    Meta,
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
    of_type,
)

ATTEMPTS = 8


@frozen
class Turns:
    """A loop to be lowered: what starts a turn (and gives a `for`'s variable), one turn (or all, unrolled), and
    the emission of the loop around its lowered body.

    `flows`: names that the loop does not carry keep what the last turn gave them.
    """

    node: tree.For | tree.While
    names: Sequence[str]
    enter: Callable[[], ir.Var | None]
    turn: Callable[[], None]
    close: Callable[[Lowered], None]
    flows: bool = False


@frozen
class Lowered:
    """One lowering of a loop: its variable, the body's statements, the names after the last turn."""

    var: ir.Var | None
    block: list[ir.Stmt]
    env: dict[str, Value]
    done: bool


def run(body: Body, loop: Turns) -> Lowered:
    """Lowers a loop's body with a variable for each carried name, until types and bounds are stable.

    The variables are declared before the loop; afterwards the names hold them.
    """
    unit, span = body.unit, loop.node.span
    before, groups = _entering(body, loop)
    key = (id(loop.node), tuple(unit.calls))
    frame: LoopFrame | None = None
    types: dict[str, Type | None] = {n: t for n, t in unit.loop_types.get(key, {}).items() if n in before}
    if any(n not in types for n in before):
        frame = _guess(body, before, groups)
        earlier = list(unit.diagnostics)
        with contextlib.suppress(Poisoned), unit.rollback():
            _attempt(body, frame, loop)
        unit.diagnostics[:] = earlier  # whatever is wrong is found again, with the right types
        types = _joined(before, frame) | types
    dropped: set[tuple[str, bool]] = set()
    conflicts: dict[str, list[Value]] = {n: c.seen for n, c in frame.carried.items()} if frame else {}
    for _ in range(ATTEMPTS):
        with unit.rollback() as attempt:
            frame = _frame(body, before, groups, types, dropped, loop, conflicts)
            made = _attempt(body, frame, loop)
            again = _joined(before, frame)
            changed = {n: again[n] for n in frame.carried if again[n] != types[n]}
            lost = {(n, low) for n, c in frame.carried.items() for low in c.lost}
            attempt.keep = not changed and not lost
        if attempt.keep:
            break
        types, dropped = types | changed, dropped | lost
        conflicts |= {n: frame.carried[n].seen for n in changed}
    else:
        fault(
            "type-join",
            "the types of the names that this loop carries do not settle",
            span,
            help="declare them before the loop: `x: f32 = 0`",
        )
    unit.loop_types[key] = {n: t for n, t in types.items() if t is not None}
    _leave_names(body, frame, before, loop, made)
    return made


def _entering(body: Body, loop: Turns) -> tuple[dict[str, Value], dict[str, Group]]:
    """The values that a loop carries: numbers by name, the items of a tuple `t` as `t.0`, `t.1`, …

    A name that only inner loops bind, as their target, is not carried.
    """
    before: dict[str, Value] = {}
    groups: dict[str, Group] = {}
    carried = set(statements.assigned(loop.node.body, targets=False))
    for n in loop.names:
        if n not in carried:
            continue
        match body.env.get(n):
            case (Typed() | Literal()) as value:
                before[n] = value
            case Group(items) as value if all(isinstance(i, Typed | Literal) for i in items):
                groups[n] = value
                before |= {f"{n}.{k}": i for k, i in enumerate(items)}
    return before, groups


def _guess(body: Body, before: dict[str, Value], groups: dict[str, Group]) -> LoopFrame:
    """The first attempt: a literal stays one, so that it takes the type of what it meets."""
    frame = LoopFrame(groups=groups, guess=True)
    for n, value in before.items():
        type = value.type if isinstance(value, Typed) else I32
        held = Typed(value.expr) if isinstance(value, Typed) else value
        frame.carried[n] = Carried(body.var(n, type), held, value)
    return frame


def _frame(
    body: Body,
    before: dict[str, Value],
    groups: dict[str, Group],
    types: dict[str, Type | None],
    dropped: set[tuple[str, bool]],
    loop: Turns,
    conflicts: Mapping[str, Sequence[Value]],
) -> LoopFrame:
    span = loop.node.span
    frame = LoopFrame(groups=groups, flows=loop.flows)
    for n, value in before.items():
        type = types.get(n)
        if type is None:
            changed = next((describe(v) for v in conflicts.get(n, ()) if describe(v) != describe(value)), "")
            why = f"it is {describe(value)} before this loop and becomes {changed or 'another type'} in it"
            frame.broken[n] = Unset(why, span, "in this loop", is_conflict=True)
            continue
        if loop.flows:  # straight-line code: the type is that of a loop, the values are known one by one
            frame.carried[n] = Carried(body.var(n, type), convert(body, value, type, span), value)
            continue
        outer = next((f.carried[n] for f in reversed(body.loops) if n in f.carried), None)
        shared = outer is not None and outer.var.number in body.mutable and outer.var.type == type
        var = outer.var if shared and outer is not None else body.var(n.replace(".", "_"), type)
        body.mutable.add(var.number)
        entry = frame.carried[n] = Carried(var, Typed(ir.Read(var)), value, shared=shared)
        if isinstance(type, DType) and type.is_integer:
            start = convert(body, value, type, span).poly
            if start is not None:
                entry.bounds = [(low, start) for low in (True, False) if (n, low) not in dropped]
            entry.held = Typed(ir.Read(var), _bounded(body, n, type, entry.bounds))
    return frame


def _bounded(body: Body, name: str, type: DType, bounds: Sequence[tuple[bool, Poly]]) -> Poly:
    lows: list[Poly | int] = [int(type.smallest), *(p for is_low, p in bounds if is_low)]
    highs: list[Poly | int] = [int(type.largest), *(p for is_low, p in bounds if not is_low)]
    return body.unit.facts.symbol(name, lows, highs)


def _attempt(body: Body, frame: LoopFrame, loop: Turns) -> Lowered:
    with body.nested() as block:
        fixed = {
            n: body.env[n] for n in loop.names if isinstance(body.env.get(n), View | Private | Tile | Meta)
        }
        for n in loop.names:
            if n in frame.carried or n in frame.groups or n in frame.broken:
                body.env[n] = frame.content(n)
            elif not loop.flows and n not in fixed and n in body.env:
                body.env[n] = Unset("this loop binds it anew in each turn", loop.node.span, "this loop")
        body.loops.append(frame)
        try:
            var = loop.enter()
            loop.turn()
            if not body.done:
                end_turn(body)
            made = Lowered(var, block, body.env, body.done)
        finally:
            body.loops.pop()
        for n, value in fixed.items():
            if not loop.flows and body.env.get(n) != value:
                fault(
                    "array-rebound",
                    f"the loop makes {n!r} another array or type from turn to turn",
                    loop.node.span,
                )
    return made


def rebind(
    body: Body, name: str, carried: Carried, value: Value, span: Span, *, flows: bool = False
) -> Value:
    """What a carried name holds after an assignment: its variable changes, here and now."""
    carried.seen.append(value)
    type = carried.var.type
    plain = name.replace(".", "_")
    if flows and fits(value, type):
        return value if isinstance(value, Literal) else statements.kept(body, value, plain, span)
    if carried.var.number not in body.mutable or not fits(value, type):
        # the first guess, or an attempt whose types do not fit yet: the name just holds the value
        return body.let(plain, value, span) if isinstance(value, Typed) else value
    # the variable holds the value from here on; the name keeps its own type until paths meet
    same = isinstance(value, Typed) and value.type == type
    held = value if same or isinstance(value, Literal) else statements.kept(body, value, plain, span)
    converted = convert(body, held, type, span)
    if converted.expr != ir.Read(carried.var):
        body.set(carried.var, converted.expr, span)
    if not same:
        return held
    poly = converted.poly
    return Typed(
        ir.Read(carried.var), body.unit.facts.symbol(name, [poly], [poly]) if poly is not None else None
    )


def fits(value: Value, type: Type) -> bool:
    """Whether a value has a carried name's type, or takes it where paths meet: a literal may have widened that type."""
    match value:
        case Literal():
            return join_types(value, of_type(type)) == type
        case Typed():
            return value.type == type or type in (join_types(value, w) for w in (Literal(0), Literal(0.0)))
        case _:
            return False


def settle(body: Body, span: Span) -> None:
    """Where a turn of an unrolled loop ends: the carried names take the loop's types, as in a loop that runs."""
    frame = body.loops[-1]
    for n, c in frame.carried.items():
        value, type = frame.found(n, body.env), c.var.type
        same = isinstance(value, Typed) and value.type == type
        if value is not None and not same and fits(value, type):
            value = statements.kept(body, convert(body, value, type, span), n.replace(".", "_"), span)
        c.held = value if value is not None else c.held
    for n in {n.partition(".")[0] for n in frame.carried}:
        body.env[n] = frame.content(n)


def rebind_group(body: Body, name: str, frame: LoopFrame, value: Value, span: Span) -> Value:
    """An assignment to a carried tuple: all items are computed before the first changes."""
    group = frame.groups[name]
    if not isinstance(value, Group) or len(value.items) != len(group.items):
        fault("type-join", f"{name!r} is {describe(group)} before the loop and {describe(value)} here", span)
    items = [body.pinned(v, span) for v in value.items]
    return Group(
        tuple(
            rebind(body, f"{name}.{k}", frame.carried[f"{name}.{k}"], v, span, flows=frame.flows)
            if f"{name}.{k}" in frame.carried
            else v
            for k, v in enumerate(items)
        ),
        value.index,
    )


def end_turn(body: Body) -> None:
    """Where a turn ends: which bounds of the carried names does it keep?"""
    frame = body.loops[-1]
    facts = body.unit.facts
    for name, c in frame.carried.items():
        value = frame.found(name, body.env)
        poly = value.poly if isinstance(value, Typed) else None
        for is_low, limit in c.bounds:
            if poly is None or not facts.proves(poly - limit if is_low else limit - poly):
                c.lost.add(is_low)


def _joined(before: dict[str, Value], frame: LoopFrame) -> dict[str, Type | None]:
    """The type of each carried name: of its first value and of all that are assigned."""
    found: dict[str, Type | None] = {}
    for n, c in frame.carried.items():
        first = before[n]
        seen = [v for v in c.seen if isinstance(v, Typed | Literal)]
        if len(seen) < len([v for v in c.seen if not isinstance(v, Poison)]):
            found[n] = None
            continue
        base = next((v for v in (first, *seen) if isinstance(v, Typed)), first)
        joins = [join_types(base, v) for v in (first, *seen)]
        found[n] = None if None in joins else _widest([j for j in joins if j is not None])
    return found


def _widest(types: Sequence[Type]) -> Type:
    """All are joins with one value, so they differ only in how far a literal widened them."""
    return max(types, key=lambda t: (t.scalar.is_float, t.scalar.bits))


def _leave_names(body: Body, frame: LoopFrame, before: dict[str, Value], loop: Turns, made: Lowered) -> None:
    """Declares the carried variables; after the loop, the names hold them."""
    span = loop.node.span
    for n, c in frame.carried.items():
        if loop.flows:
            c.held = frame.found(n, made.env) or c.held
        else:
            if not c.shared:
                body.emit(ir.Declare(c.var, convert(body, before[n], c.var.type, span).expr, span))
            type = c.var.type
            poly = _bounded(body, n, type, c.bounds) if isinstance(type, DType) and type.is_integer else None
            c.held = Typed(ir.Read(c.var), poly)
    loop.close(made)
    for n, c in frame.carried.items():
        outer = next((f for f in reversed(body.loops) if n in f.carried), None)
        if outer is not None:
            c.held = rebind(body, n, outer.carried[n], c.held, span, flows=outer.flows)
    for n in loop.names:
        if n in frame.carried or n in frame.groups or n in frame.broken:
            body.env[n] = frame.content(n)
        elif loop.flows:
            if n in made.env:
                body.env[n] = made.env[n]
        else:
            body.env[n] = Unset("the loop may not run", span, "this loop")
