"""The derivative of a counted loop: its turns from the last to the first, each pulled at the values before it.

In: a loop with derivatives by its results. Out: those by its starts, and by what its turns use. The values before a turn are
kept: of every `PIECE`th turn while the loop runs once more from its start, and of the turns of a piece while that runs from
there. So a derivative costs two runs, and memory for the square root of the turns' values where these are some hundreds.
A loop of few turns that runs inside a kernel computes the values before each turn from its start instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from ..compiler import graph as g
from ..compiler.inline import counted, inlined
from ..dtypes import I32
from ..extents import Extent, Lit, Sym, op
from ..frozen import frozen
from .control import for_loop
from .traced import Trace, Traced, elementwise, fault
from .views import broadcast_to

PIECE = 32
_TURN = re.compile(r"turn\d+")  # a number that counts a loop around
FEW = 64  # turns that a kernel rather computes again than that each is a kernel

Reverse: TypeAlias = Callable[[Trace, Mapping[g.Ref, Traced], Collection[g.Ref]], dict[g.Ref, Traced]]
State: TypeAlias = Any  # derivatives by the values, and sums of those by what the turns use


def pulled(
    trace: Trace, ref: g.Ref, parts: Mapping[int, Traced], active: Collection[g.Ref], reverse: Reverse
) -> list[tuple[g.Ref, Traced]]:
    """`parts` are the derivatives by results, `reverse` is what takes them through a turn."""
    graph = trace.graph
    node = graph.nodes[ref]
    assert isinstance(node, g.Loop)
    turns = graph.loops[node.scope]
    if turns.count is None:
        fault(
            "no-derivative", "a `while_loop` has no derivative: its turns are not known", "use `mj.for_loop`"
        )
    values = [Traced(trace, v) for v in turns.values]
    floats = [k for k, v in enumerate(values) if v.element.is_float]
    outer = [r for r in node.outer if r in active and graph.nodes[r].dtype.is_float]
    loop = _Loop(trace, ref, turns, values, floats, outer, reverse)
    first = [parts.get(k, zeros(values[k])) for k in floats]
    grads, sums = loop.backward((first, [zeros(Traced(trace, r)) for r in outer]))
    return [*zip((node.starts[k] for k in floats), grads, strict=True), *zip(outer, sums, strict=True)]


def zeros(like: Traced, rows: Sequence[Extent] = ()) -> Traced:
    """Zeros of its type and shape, or so many of them."""
    shape = tuple(map(like.trace.dimension, (*rows, *like.extents)))
    return broadcast_to(like.trace.node(g.Fill(0, like.element)), shape)


@frozen
class _Loop:
    trace: Trace
    ref: g.Ref
    turns: g.Turns
    values: Sequence[Traced]
    floats: Sequence[int]
    outer: Sequence[g.Ref]
    reverse: Reverse

    def backward(self, state: State) -> State:
        graph = self.trace.graph
        node = graph.nodes[self.ref]
        assert isinstance(node, g.Loop)
        assert self.turns.count is not None
        count, extent = Traced(self.trace, self.turns.count), _extent(graph, self.turns.count)
        few = isinstance(extent, Lit) and extent.value <= (FEW if self.turns.alone else 0)
        if extent is None or few:
            return self._again(count, state)
        starts = [Traced(self.trace, r) for r in node.starts]
        if isinstance(extent, Lit) and extent.value <= PIECE:
            return self._piece(0, count, starts, state)
        return self._pieces(count, extent, starts, state)

    def _again(self, count: Traced, state: State) -> State:
        """From the start for every turn, so that n of them cost about n²/2."""

        def turn(j: Any, state: State) -> State:
            at = count - j - 1
            again = counted(self.trace.graph, self.ref, at.ref)
            return self._pull(at, [self._part(again, k) for k in range(len(self.values))], state)

        return for_loop(count, turn, state)

    def _pieces(self, count: Traced, extent: Extent, starts: Sequence[Traced], state: State) -> State:
        """Pieces of the loop from the last to the first, each from the values that it began with."""
        number = op("ceil_div", op("max", extent, Lit(0)), Lit(PIECE))
        pieces = self.trace.count(number, I32)

        def length(k: Any) -> Traced:
            return elementwise("minimum", count - k * PIECE, PIECE)

        def forward(k: Any, carried: Any) -> Any:
            values, kept = carried
            after = for_loop(length(k), lambda i, v: self._advance(k * PIECE + i, v), values)
            return after, [a.at[k].set(v) for a, v in zip(kept, values, strict=True)]

        _, kept = for_loop(pieces, forward, (list(starts), [zeros(v, [number]) for v in self.values]))

        def turn(j: Any, state: State) -> State:
            k = pieces - j - 1
            return self._piece(k * PIECE, length(k), [a[k] for a in kept], state)

        return for_loop(pieces, turn, state)

    def _piece(self, first: Any, count: Traced, values: Sequence[Traced], state: State) -> State:
        """At most `PIECE` turns from turn `first` on, whose values are kept."""

        def forward(i: Any, carried: Any) -> Any:
            values, kept = carried
            return self._advance(first + i, values), [
                a.at[i].set(v) for a, v in zip(kept, values, strict=True)
            ]

        _, kept = for_loop(count, forward, (list(values), [zeros(v, [Lit(PIECE)]) for v in self.values]))

        def turn(j: Any, state: State) -> State:
            i = count - j - 1
            return self._pull(first + i, [a[i] for a in kept], state)

        return for_loop(count, turn, state)

    def _advance(self, at: Traced, values: Sequence[Traced]) -> list[Traced]:
        return self._inlined(self.turns.after, at, values)

    def _pull(self, at: Traced, before: Sequence[Traced], state: State) -> State:
        """The state before turn `at`, from that after it."""
        grads, sums = state
        ends: dict[g.Ref, Traced] = {}
        for k, grad in zip(self.floats, grads, strict=True):
            after = self.turns.after[k]
            ends[after] = grad if after not in ends else ends[after] + grad
        found = self.reverse(self.trace, ends, [*(v.ref for v in self.values), *self.outer])
        wanted = [found.get(self.values[k].ref, zeros(self.values[k])).ref for k in self.floats]
        wanted += [found.get(r, zeros(Traced(self.trace, r))).ref for r in self.outer]
        made = self._inlined(wanted, at, before)
        added = [a + b for a, b in zip(sums, made[len(self.floats) :], strict=True)]
        return made[: len(self.floats)], added

    def _inlined(self, refs: Sequence[g.Ref], at: Traced, values: Sequence[Traced]) -> list[Traced]:
        """Nodes of a turn, as they are in turn `at` with these values before it."""
        by = {v.ref: x.ref for v, x in zip(self.values, values, strict=True)}
        by |= {self.turns.turn: at.ref} if self.turns.turn is not None else {}
        return [Traced(self.trace, r) for r in inlined(self.trace.graph, refs, by)]

    def _part(self, loop: g.Ref, number: int) -> Traced:
        if len(self.values) == 1:
            return Traced(self.trace, loop)
        like = self.values[number]
        return self.trace.node(g.Part(loop, number, like.element, like.extents))


def _extent(graph: g.Graph, ref: g.Ref) -> Extent | None:
    """A number of turns as an extent, if the call's shapes and numbers decide it."""
    match graph.nodes[ref]:
        case g.Fill(value):
            return Lit(int(value))
        case g.Count(extent):
            return graph.extent(extent)
        case g.Number(name, dtype) if dtype.is_integer and not _TURN.fullmatch(name):
            return Sym(name)
        case g.Cast(of, dtype) if dtype.is_integer:
            return _extent(graph, of)
        case _:
            return None
