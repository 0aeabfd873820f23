"""`for`, `while`, `break`, `continue`.

A loop carries the names that it rebinds and that had a value before: each gets one variable, whose type is
found by lowering the body until it does not change. Bounds that every turn keeps (a counter that only grows)
are found the same way. A loop over a tuple is unrolled, and so is a constant `range` whose body needs to know
the loop variable at compile time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeAlias

from metaljit.grammar import tree

from ...dtypes import BOOL, I32, U32, DType
from ...frozen import frozen
from ...source import Span
from ...symbols import Builtin
from .. import ir
from ..bounds import Poly
from . import calls, carried, conditions, expressions, statements
from .body import Body, Site
from .convert import convert, index_type
from .literals import describe, known, typed
from .values import (
    Group,
    Literal,
    Meta,
    NeedsConstant,
    Typed,
    Unset,
    Value,
    fault,
)

UNROLL_LIMIT = 1024
UNROLLED_TURNS = 1 << 13  # of all unrolled loops of a kernel, tried and kept


@frozen
class Range:
    start: Value
    stop: Value
    step: int


Iteration: TypeAlias = Range | list[Value]


def iteration(body: Body, node: tree.Expr) -> Iteration:
    """What a `for` runs over: a range, or the items of a tuple."""
    if isinstance(node, tree.Call):
        callee = expressions.lower(body, node.func)
        if isinstance(callee, Meta) and isinstance(callee.of, Builtin):
            match callee.of.name:
                case "range":
                    return _range(body, node)
                case "zip" | "enumerate" | "reversed":
                    return _combined(body, node, callee.of.name)
    value = expressions.lower(body, node)
    if not isinstance(value, Group | Meta):
        fault(
            "not-iterable",
            f"a loop runs over a range or a tuple, found {describe(value)}",
            node.span,
            help="write `for i in range(…)`",
        )
    return list(expressions.as_group(body, value, node.span).items)


def _range(body: Body, node: tree.Call) -> Range:
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 1, 3)
    for v in values:
        if (
            isinstance(v, Typed)
            and isinstance(v.type, DType)
            and v.type.is_integer
            and v.type.bits >= 32
            and v.type != I32
        ):
            if v.poly is None or not body.unit.facts.fits(v.poly, I32):
                fault(
                    "needs-cast",
                    f"loop variables are i32, and this bound is {v.type}",
                    node.span,
                    help="write `i32(…)`",
                )
    spans = [a.span for a in node.args] if len(node.args) == len(values) else [node.span] * len(values)
    bounds = [index_type(body, v, s, "the bound of a range") for v, s in zip(values, spans, strict=True)]
    start: Value = Literal(0) if len(bounds) == 1 else bounds[0]
    stop: Value = bounds[0] if len(bounds) == 1 else bounds[1]
    step = bounds[2] if len(bounds) == 3 else Literal(1)
    number = known(step, spans[-1], "the step of a range")
    if number == 0:
        fault("bad-range", "the step of a range cannot be 0", node.span)
    return Range(start, stop, int(number))


def _combined(body: Body, node: tree.Call, name: str) -> list[Value]:
    if node.keywords:
        fault("unknown-keyword", f"{name} has no keywords here", node.span)
    columns = [_items(body, a.value if isinstance(a, tree.Star) else a) for a in node.args]
    if name == "zip":
        lengths = {len(c) for c in columns}
        if len(lengths) != 1:
            shown = " and ".join(str(len(c)) for c in columns)
            fault("zip-lengths", f"zip takes tuples of one length, found {shown}", node.span)
        return [Group(row) for row in zip(*columns, strict=True)]
    if len(columns) != 1:
        fault("argument-count", f"{name} takes one tuple", node.span)
    if name == "reversed":
        return columns[0][::-1]
    return [Group((index_constant(k), v)) for k, v in enumerate(columns[0])]


def _items(body: Body, node: tree.Expr) -> list[Value]:
    found = iteration(body, node)
    if isinstance(found, Range):
        return literal_range(body, found, node.span)
    return found


def literal_range(body: Body, r: Range, span: Span) -> list[Value]:
    """A constant range as its numbers."""
    start = known(r.start, span, "the start of this range")
    stop = known(r.stop, span, "the end of this range")
    numbers = range(start, stop, r.step)
    if len(numbers) > UNROLL_LIMIT:
        fault(
            "unroll-limit",
            f"a loop of {len(numbers)} turns cannot be unrolled (at most {UNROLL_LIMIT})",
            span,
        )
    return [index_constant(n) for n in numbers]


def index_constant(n: int) -> Typed:
    """A loop variable that is known: i32, as every loop variable."""
    return Typed(ir.Const(n, I32), Poly.of(n))


# ---- for ----


def for_loop(body: Body, node: tree.For) -> None:
    found = iteration(body, node.iterable)
    if isinstance(found, list):
        unrolled(body, node, found)
        return
    literal = isinstance(found.start, Literal) and isinstance(found.stop, Literal)
    if not literal:
        counted(body, node, found)
        return
    try:
        with body.unit.trial():
            counted(body, node, found)
    except NeedsConstant:
        unrolled(body, node, literal_range(body, found, node.iterable.span))


def counted(body: Body, node: tree.For, r: Range) -> None:
    """A loop that runs at run time."""
    if not isinstance(node.target, tree.Name):
        fault("bad-target", "the items of a range are numbers and cannot be unpacked", node.target.span)
    start, stop = (body.pinned(v, node.span) for v in (r.start, r.stop))
    head = (typed(start, node.span, I32), typed(stop, node.span, I32))
    name = node.target.name

    def turn() -> None:
        statements.lower_block(body, node.body)

    def enter() -> ir.Var:
        var = body.var(name, I32)
        poly = loop_symbol(body, name, head[0], head[1], r.step)
        body.env[name] = Typed(ir.Read(var), poly)
        if head[0].poly is not None and head[1].poly is not None:
            body.assume([head[1].poly - head[0].poly - 1 if r.step > 0 else head[0].poly - head[1].poly - 1])
        return var

    names = [n for n in statements.assigned(node.body) if n != name]

    def close(made: carried.Lowered) -> None:
        assert made.var is not None
        body.emit(ir.For(made.var, head[0].expr, head[1].expr, r.step, tuple(made.block), node.iterable.span))

    carried.run(body, carried.Turns(node, names, enter, turn, close))
    body.env[name] = Unset("the loop may not run", node.span, "this loop")


def loop_symbol(body: Body, name: str, start: Typed, stop: Typed, step: int) -> Poly | None:
    first, last = (start, stop) if step > 0 else (stop, start)
    shift = 0 if step > 0 else 1
    low = [first.poly + shift] if first.poly is not None else [-(2**31)]
    high = [last.poly - (1 - shift)] if last.poly is not None else [2**31 - 1]
    return body.unit.facts.symbol(name, low, high)


def unrolled(body: Body, node: tree.For, items: Sequence[Value]) -> None:
    """One copy of the body for each item. The carried names have variables, as in any loop."""
    if len(items) > UNROLL_LIMIT:
        fault(
            "unroll-limit",
            f"a loop of {len(items)} turns cannot be unrolled (at most {UNROLL_LIMIT})",
            node.span,
        )
    span = node.span
    targets = statements.assigned([tree.For(node.target, node.iterable, (), span=span)])
    names = [n for n in statements.assigned(node.body) if n not in targets]
    leaves = leaving(node.body)

    def turn() -> None:
        for item in items:
            count_turn(body, node.span)
            if not leaves:
                statements.assign(body, node.target, item, span)
                statements.lower_block(body, node.body)
            else:
                _once(body, node, item)
            if body.loops[-1].guess:
                return  # types are found from one turn
            if not leaves and not body.done:
                carried.settle(body, span)

    def enter() -> None:
        frame = body.loops[-1]
        frame.unrolled = True
        if "break" in leaves:
            frame.stop = body.var("stop", BOOL)
            body.mutable.add(frame.stop.number)
            body.emit(ir.Declare(frame.stop, ir.Const(False, BOOL), span))

    def close(made: carried.Lowered) -> None:
        body.block += made.block

    with copied(body, len(items), span):
        made = carried.run(body, carried.Turns(node, names, enter, turn, close, flows=not leaves))
    if not leaves:
        body.env.update({n: v for n, v in made.env.items() if n in targets})
        if made.done:
            body.done = True
    else:
        body.env.update(dict.fromkeys(targets, Unset("the loop may be left before", span, "this loop")))


def _once(body: Body, node: tree.For, item: Value) -> None:
    """One unrolled turn that `continue` and `break` can leave; none runs after a `break`."""
    frame = body.loops[-1]
    with body.nested() as block:
        statements.assign(body, node.target, item, node.span)
        statements.lower_block(body, node.body)
    for name in frame.groups | frame.carried.keys():
        body.env[name] = frame.content(name)
    once: ir.Stmt = ir.Once(tuple(block), node.span)
    if frame.stop is not None:
        go_on = ir.Apply("logical_not", (ir.Read(frame.stop),), BOOL)
        once = ir.If(go_on, (once,), (), node.span)
    body.emit(once)


@contextmanager
def copied(body: Body, turns: int, span: Span) -> Iterator[None]:
    """Within are the turns of an unrolled loop. Loops in one another that multiply to far too many are refused at once."""
    unit, before = body.unit, body.unit.copies
    unit.copies = before * max(turns, 1)
    try:
        if (
            unit.copies > 4 * UNROLLED_TURNS
        ):  # more than the limit: an inner loop need not run in every outer turn
            _refuse_turns(span)
        yield
    finally:
        unit.copies = before


def count_turn(body: Body, span: Span) -> None:
    """Bounds the copies of all unrolled loops together."""
    body.unit.unrolled += 1
    if body.unit.unrolled > UNROLLED_TURNS:
        _refuse_turns(span)


def _refuse_turns(span: Span) -> NoReturn:
    fault(
        "unroll-limit",
        f"the unrolled loops of this kernel have more than {UNROLLED_TURNS} turns together",
        span,
    )


def leaving(nodes: Sequence[tree.Stmt]) -> set[str]:
    """Which of `break` and `continue` statements leave this loop's turn."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case tree.Break():
                found.add("break")
            case tree.Continue():
                found.add("continue")
            case tree.If(_, then, orelse):
                found |= leaving(then) | leaving(orelse)
            case _:
                pass
    return found


# ---- while ----


def while_loop(body: Body, node: tree.While) -> None:
    def turn() -> None:
        statements.lower_block(body, node.body)

    parts: list[tuple[tuple[ir.Stmt, ...], ir.Expr]] = []

    def enter() -> None:
        outer = body.block
        body.block = []
        condition = conditions.truth_of(body, node.condition)
        before, body.block = tuple(body.block), outer
        parts.append((before, typed(condition, node.span).expr))
        if isinstance(condition, Typed):
            body.assume(condition.holds)

    def close(made: carried.Lowered) -> None:
        before, condition = parts[-1]
        limit = body.unit.options.loop_limit
        turns = body.var("turns", U32)
        body.unit.sites.append(Site(f"a `while` loop ran more than {limit} turns", node.span))
        body.emit(
            ir.Loop(
                before,
                condition,
                tuple(made.block),
                node.condition.span,
                turns,
                len(body.unit.sites) - 1,
                limit,
            )
        )

    carried.run(body, carried.Turns(node, statements.assigned(node.body), enter, turn, close))
    condition = parts[-1][1]
    if isinstance(condition, ir.Const) and condition.value and "break" not in leaving(node.body):
        # only `return` ends it, or the limit of its turns: what comes then is never used, but must be there
        zeros = [convert(body, Literal(0), t, node.span).expr for t in body.plan.types()]
        body.emit(ir.Return(tuple(zeros), node.span))
        body.done = True


# ---- carried names ----


def leave(body: Body, node: tree.Break | tree.Continue) -> None:
    """`break` and `continue`."""
    word = "break" if isinstance(node, tree.Break) else "continue"
    if not body.loops:
        fault("outside-loop", f"`{word}` stands outside any loop", node.span)
    frame = body.loops[-1]
    carried.end_turn(body)
    if frame.stop is not None and word == "break":
        body.set(frame.stop, ir.Const(True, BOOL), node.span)
    body.emit(ir.Continue(node.span) if word == "continue" and not frame.unrolled else ir.Break(node.span))
    body.done = True
