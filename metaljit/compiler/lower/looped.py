"""Loops of a graph inside a kernel: each element turns by itself.

In: a loop whose values are read at the element's own index alone. Out: the values of an element after the last turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...dtypes import BOOL, I32, U32
from ...source import Span
from .. import ir
from ..graph import Loop, Ref, Turns
from .body import Body, Site
from .convert import convert
from .loops import loop_symbol
from .values import Typed

if TYPE_CHECKING:
    from .composed import Composer, Known

AGAIN = "a `while_loop` ran more than {} turns"


def looped(
    composer: Composer, body: Body, node: Loop, indices: tuple[Typed, ...], known: Known, span: Span
) -> tuple[Typed, ...]:
    """All values of the loop at an index."""
    graph = composer.graph
    turns = graph.loops[node.scope]

    def place(ref: Ref) -> tuple[Typed, ...]:
        return indices if graph.nodes[ref].shape else ()

    variables = []
    for value, start in zip(turns.values, node.starts, strict=True):
        first = composer.at(body, start, place(start), known)
        var = body.var("value", graph.nodes[value].dtype)
        body.mutable.add(var.number)
        body.emit(ir.Declare(var, first.expr, span))
        variables.append(var)
    before = composer.reduced
    composer.reduced = {
        **before,
        **{v: Typed(ir.Read(x)) for v, x in zip(turns.values, variables, strict=True)},
    }
    try:
        if turns.count is not None:
            _counted(composer, body, turns, variables, place, known, span)
        else:
            _while(composer, body, turns, variables, place, known, span)
    finally:
        composer.reduced = before
    return tuple(Typed(ir.Read(v)) for v in variables)


def _counted(
    composer: Composer,
    body: Body,
    turns: Turns,
    variables: Sequence[ir.Var],
    place: Callable[[Ref], tuple[Typed, ...]],
    known: Known,
    span: Span,
) -> None:
    assert turns.count is not None
    count = convert(body, composer.at(body, turns.count, (), known), I32, span)
    with body.nested() as block:
        turn = body.var("turn", I32)
        zero = Typed(ir.Const(0, I32))
        if turns.turn is not None:
            index = Typed(ir.Read(turn), loop_symbol(body, "turn", zero, count, 1))
            composer.reduced = {**composer.reduced, turns.turn: index}
        _turn(composer, body, turns, variables, place, dict(known), span)
    body.emit(ir.For(turn, zero.expr, count.expr, 1, tuple(block), span))


def _while(
    composer: Composer,
    body: Body,
    turns: Turns,
    variables: Sequence[ir.Var],
    place: Callable[[Ref], tuple[Typed, ...]],
    known: Known,
    span: Span,
) -> None:
    assert turns.condition is not None
    with body.nested() as before:
        condition = convert(
            body, composer.at(body, turns.condition, place(turns.condition), dict(known)), BOOL, span
        )
    with body.nested() as block:
        _turn(composer, body, turns, variables, place, dict(known), span)
    body.unit.sites.append(Site(AGAIN.format(turns.limit), span))
    site, count = len(body.unit.sites) - 1, body.var("turns", U32)
    body.emit(ir.Loop(tuple(before), condition.expr, tuple(block), span, count, site, turns.limit))


def _turn(
    composer: Composer,
    body: Body,
    turns: Turns,
    variables: Sequence[ir.Var],
    place: Callable[[Ref], tuple[Typed, ...]],
    known: Known,
    span: Span,
) -> None:
    """All values after a turn are computed before one is changed."""
    found = [composer.at(body, ref, place(ref), known) for ref in turns.after]
    kept = [body.let("next", v, span) if len(found) > 1 else v for v in found]
    for var, value in zip(variables, kept, strict=True):
        body.set(var, value.expr, span)
