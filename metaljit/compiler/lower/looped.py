"""Loops of a graph inside a kernel: each element turns by itself.

In: a loop whose values are read at the element's own index alone. Out: the values of an element after the last turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dtypes import BOOL, I32, U32
from ...frozen import frozen
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
    return _Looped(composer, body, composer.graph.loops[node.scope], indices, span).values(node, known)


@frozen
class _Looped:
    """A loop at an index. `known` is what is computed before it, or before a turn."""

    composer: Composer
    body: Body
    turns: Turns
    indices: tuple[Typed, ...]
    span: Span

    def values(self, node: Loop, known: Known) -> tuple[Typed, ...]:
        composer, body, turns = self.composer, self.body, self.turns
        variables = []
        for value, start in zip(turns.values, node.starts, strict=True):
            first = self._at(start, known)
            var = body.var("value", composer.graph.nodes[value].dtype)
            body.mutable.add(var.number)
            body.emit(ir.Declare(var, first.expr, self.span))
            variables.append(var)
        before = composer.reduced
        now = {v: Typed(ir.Read(x)) for v, x in zip(turns.values, variables, strict=True)}
        composer.reduced = {**before, **now}
        try:
            if turns.count is not None:
                self._counted(turns.count, variables, known)
            else:
                assert turns.condition is not None
                self._while(turns.condition, variables, known)
        finally:
            composer.reduced = before
        return tuple(Typed(ir.Read(v)) for v in variables)

    def _at(self, ref: Ref, known: Known) -> Typed:
        """A node at the loop's index; a number has none."""
        place = self.indices if self.composer.graph.nodes[ref].shape else ()
        return self.composer.at(self.body, ref, place, known)

    def _counted(self, count: Ref, variables: Sequence[ir.Var], known: Known) -> None:
        composer, body, turns = self.composer, self.body, self.turns
        stop = convert(body, self._at(count, known), I32, self.span)
        with body.nested() as block:
            turn = body.var("turn", I32)
            zero = Typed(ir.Const(0, I32))
            if turns.turn is not None:
                index = Typed(ir.Read(turn), loop_symbol(body, "turn", zero, stop, 1))
                composer.reduced = {**composer.reduced, turns.turn: index}
            self._turn(variables, dict(known))
        body.emit(ir.For(turn, zero.expr, stop.expr, 1, tuple(block), self.span))

    def _while(self, test: Ref, variables: Sequence[ir.Var], known: Known) -> None:
        body, limit = self.body, self.turns.limit
        with body.nested() as before:
            condition = convert(body, self._at(test, dict(known)), BOOL, self.span)
        with body.nested() as block:
            self._turn(variables, dict(known))
        body.unit.sites.append(Site(AGAIN.format(limit), self.span))
        site, count = len(body.unit.sites) - 1, body.var("turns", U32)
        body.emit(ir.Loop(tuple(before), condition.expr, tuple(block), self.span, count, site, limit))

    def _turn(self, variables: Sequence[ir.Var], known: Known) -> None:
        """All values after a turn are computed before one is changed."""
        body = self.body
        found = [self._at(ref, known) for ref in self.turns.after]
        kept = [body.let("next", v, self.span) if len(found) > 1 else v for v in found]
        for var, value in zip(variables, kept, strict=True):
            body.set(var, value.expr, self.span)
