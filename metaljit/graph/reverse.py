"""Reverse accumulation: from the derivatives by results to those by what they are computed from, node by node.

In: results with their derivatives, and the nodes that are asked about. Out: derivatives by these, as nodes of the same
graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from ..compiler import graph as g
from ..dtypes import F32
from ..extents import Extent, Lit, op
from . import joins, reverse_loops
from .adjoints import adjoint
from .joins import embedded, index, scattered
from .partials import partials
from .products import pulled
from .reductions import cast, reduce
from .reverse_loops import zeros
from .traced import Trace, Traced, elementwise, fault
from .views import broadcast_to, expand_dims, item, reshape

Pulled: TypeAlias = Iterable[tuple[g.Ref, Traced]]  # what is added to the derivatives by operands


def reverse(trace: Trace, results: Mapping[g.Ref, Traced], asked: Collection[g.Ref]) -> dict[g.Ref, Traced]:
    """The derivatives by the nodes `asked`; those are missing on which nothing depends."""
    return _Reverse(trace, results, frozenset(asked)).run()


class _Reverse:
    def __init__(self, trace: Trace, results: Mapping[g.Ref, Traced], asked: frozenset[g.Ref]) -> None:
        self.trace, self.graph, self.asked = trace, trace.graph, asked
        self.sums: dict[g.Ref, Traced] = {}
        self.parts: dict[g.Ref, dict[int, Traced]] = {}
        self.active = self._dependent(results, asked)
        for ref, value in results.items():
            self._add(ref, value)

    def run(self) -> dict[g.Ref, Traced]:
        before = self.trace.place
        try:
            for ref in sorted(self.active - self.asked, reverse=True):
                self.trace.place = self.graph.spans[ref]
                for of, value in self._behind(ref):
                    self._add(of, value)
        finally:
            self.trace.place = before
        return {ref: self.sums[ref] for ref in self.asked if ref in self.sums}

    def _dependent(self, results: Iterable[g.Ref], asked: frozenset[g.Ref]) -> set[g.Ref]:
        """What is computed from nodes that are asked about; results of a rule from its arguments, too."""
        behind: dict[g.Ref, tuple[g.Ref, ...]] = {}
        todo = [*results]
        while todo:
            ref = todo.pop()
            if ref not in behind:
                node = self.graph.nodes[ref]
                more = self.graph.rules[node.rule].arguments if isinstance(node, g.Ruled) else ()
                behind[ref] = (*g.operands(node), *more)
                todo += behind[ref]
        found: set[g.Ref] = set()
        for ref in sorted(behind):
            if ref in asked or any(of in found for of in behind[ref]):
                found.add(ref)
        return found

    def _add(self, ref: g.Ref, value: Traced) -> None:
        node = self.graph.nodes[ref]
        if ref not in self.active or not node.dtype.is_float:
            return
        if value.ndim > len(node.shape):
            value = reduce("sum", value)  # a number stands beside an array
        value = cast(value, node.dtype)
        self.sums[ref] = elementwise("add", self.sums[ref], value) if ref in self.sums else value

    def _behind(self, ref: g.Ref) -> Pulled:
        node = self.graph.nodes[ref]
        if g.in_parts(node):
            found = self.parts.get(ref, {})
            return self._several(ref, node, found) if found else ()
        value = self.sums.get(ref)
        return self._pulled(ref, node, value) if value is not None else ()

    # ---- rules ----

    def _pulled(self, ref: g.Ref, node: g.Node, value: Traced) -> Pulled:
        match node:
            case g.Input() | g.Number() | g.Fill() | g.Count() | g.Index() | g.Carried():
                return ()
            case g.Elementwise():
                return self._elementwise(ref, node, value)
            case g.Cast(of):
                return [(of, value)]
            case g.View(of, map):
                return [(of, self._viewed(of, map, value))]
            case g.Embed():
                return self._embedded(node, value)
            case g.Gather(of):
                return [(of, self._gathered(node, value))]
            case g.Scatter(of, at):
                return [(of, joins.picked(value, [Traced(self.trace, a) for a in at]))]
            case g.Choose(predicate, then, otherwise):
                return [
                    (then, self._kept(predicate, value, True)),
                    (otherwise, self._kept(predicate, value, False)),
                ]
            case g.Part(of, number):
                self.parts.setdefault(of, {})[number] = value
                return ()
            case g.Reduce(_, of):
                part = self.graph.nodes[of]
                if isinstance(part, g.Reduce) and part.chunk:  # both are one reduction, in two passes
                    node = replace(part, shape=node.shape, chunk=0)
                return [(node.of, self._reduced(ref, node, value))]
            case g.Product():
                return pulled(node, value)
            case g.Ruled():
                return self._ruled(ref, node, value)
            case g.Call() | g.Launch() | g.Loop():
                return self._several(ref, node, {0: value})
        assert_never(node)

    def _elementwise(self, ref: g.Ref, node: g.Elementwise, value: Traced) -> Iterator[tuple[g.Ref, Traced]]:
        args = [Traced(self.trace, a) for a in node.args]
        for k, pull in enumerate(partials(node.op, args, Traced(self.trace, ref))):
            if node.args[k] in self.active and args[k].element.is_float:
                found = pull(value)
                if found is not None:
                    yield node.args[k], found

    def _viewed(self, of: g.Ref, map: g.Map, value: Traced) -> Traced:
        source = Traced(self.trace, of)
        match map:
            case g.Axes(along):
                kept = sorted(k for k in along if k is not None)
                gone = tuple(k for k in range(value.ndim) if k not in kept)
                rest = reduce("sum", value, gone) if gone else value
                back: list[int | None] = [None] * len(kept)
                for axis, k in enumerate(along):
                    if k is not None:
                        back[kept.index(k)] = axis
                # Axes of the source that the view has not have one element, and come back as such.
                return self.trace.node(g.View(rest.ref, g.Axes(tuple(back)), rest.element, source.extents))
            case g.Slice(starts, steps):
                zero = self.trace.node(g.Fill(0, value.element))
                return embedded(value, zero, starts, steps, source.extents)
            case g.Reshape():
                return reshape(value, source.shape)
            case g.Windows(axis, step):
                return self._overlapped(source, axis, step, value)
        assert_never(map)

    def _overlapped(self, source: Traced, axis: int, step: Extent, value: Traced) -> Traced:
        """The taps of windows added up where they stand in the source."""
        total = zero = self.trace.node(g.Fill(0, value.element))
        for tap in range(int(self.trace.dimension(value.extents[axis]))):
            part = item(value, (*(slice(None),) * axis, tap))
            starts = [op("*", step, Lit(tap)) if k == axis else Lit(0) for k in range(source.ndim)]
            placed = embedded(part, zero, starts, (1,) * source.ndim, source.extents)
            total = elementwise("add", total, placed) if tap else placed
        return total

    def _embedded(self, node: g.Embed, value: Traced) -> Pulled:
        of, into = Traced(self.trace, node.of), Traced(self.trace, node.into)
        cut = self.trace.node(g.View(value.ref, g.Slice(node.starts, node.steps), value.element, of.extents))
        rest = embedded(zeros(of), value, node.starts, node.steps, value.extents)
        return [(node.of, cut), *([(node.into, rest)] if into.ref in self.active else [])]

    def _gathered(self, node: g.Gather, value: Traced) -> Traced:
        source, at = Traced(self.trace, node.of), Traced(self.trace, node.at)
        rank, shape = at.ndim, value.extents
        places = []
        for axis in range(source.ndim):
            if axis == node.axis:
                along = g.Axes(tuple(range(node.axis, node.axis + rank)))
                places.append(self.trace.node(g.View(at.ref, along, at.element, shape)))
            else:
                places.append(index(self.trace, axis if axis < node.axis else axis + rank - 1, shape))
        return scattered(value, places, source.extents)

    def _kept(self, predicate: g.Ref, value: Traced, side: bool) -> Traced:
        """The derivative where the side was taken, else 0."""
        zero = self.trace.node(g.Fill(0, value.element))
        then, otherwise = (value, zero) if side else (zero, value)
        return self.trace.node(g.Choose(predicate, then.ref, otherwise.ref, value.element, value.extents))

    def _reduced(self, ref: g.Ref, node: g.Reduce, value: Traced) -> Traced:
        of = Traced(self.trace, node.of)
        wide = broadcast_to(expand_dims(value, node.axes), of.shape)
        if node.op == "sum":
            return wide
        if node.op in ("min", "max"):  # equal ones share it
            found = expand_dims(Traced(self.trace, ref), node.axes)
            hit = elementwise("equal", of, broadcast_to(found, of.shape))
            count = expand_dims(reduce("sum", cast(hit, F32), node.axes), node.axes)
            share = cast(elementwise("divide", expand_dims(value, node.axes), count), value.element)
            return elementwise("where", hit, broadcast_to(share, of.shape), 0)
        if node.op == "prod":
            return elementwise("multiply", wide, self._other_factors(of, node))
        fault(
            "no-derivative",
            f"{node.op} has no derivative",
            "keep it out of what is differentiated: `mj.stop_gradient`",
        )

    def _other_factors(self, of: Traced, node: g.Reduce) -> Traced:
        """The product of all others, which is not 0 / 0 where a factor is 0."""
        zero = elementwise("equal", of, 0)
        whole = expand_dims(reduce("prod", elementwise("where", zero, 1, of), node.axes), node.axes)
        count = expand_dims(reduce("sum", cast(zero, F32), node.axes), node.axes)
        whole, count = broadcast_to(whole, of.shape), broadcast_to(count, of.shape)
        others = elementwise("divide", whole, elementwise("where", zero, 1, of))
        lone = elementwise(
            "where", elementwise("logical_and", zero, elementwise("equal", count, 1)), whole, 0
        )
        return elementwise("where", elementwise("equal", count, 0), others, lone)

    # ---- what has rules of its own ----

    def _ruled(self, ref: g.Ref, node: g.Ruled, value: Traced) -> Pulled:
        """Once all results have theirs, which they do at the first of them, the rule gives those by the arguments."""
        parts = self.parts.setdefault(-1 - node.rule, {})
        parts[node.number] = value
        nodes = self.graph.nodes
        if any(isinstance(n := nodes[r], g.Ruled) and n.rule == node.rule and r < ref for r in self.active):
            return ()
        rule = self.graph.rules[node.rule]
        given = [parts.get(k, zeros(Traced(self.trace, r))) for k, r in enumerate(rule.results)]
        found = rule.pull([Traced(self.trace, r) for r in rule.kept], given)
        return [(r, v) for r, v in zip(rule.arguments, found, strict=True) if v is not None]

    def _several(self, ref: g.Ref, node: g.Call | g.Launch | g.Loop, parts: Mapping[int, Traced]) -> Pulled:
        if isinstance(node, g.Loop):
            return reverse_loops.pulled(self.trace, ref, parts, self.active, reverse)
        if isinstance(node, g.Launch):
            name = self.graph.kernels[node.key].program.name
            fault(
                "no-derivative",
                f"the grid kernel {name!r} has no derivative",
                "give it one: `@mj.custom_vjp`",
            )
        wanted = [n for n, of in node.arguments if isinstance(of, int) and of in self.active]
        found = adjoint(self.trace, ref, [parts.get(k) for k in range(len(node.results))], wanted)
        given = {n: of for n, of in node.arguments if isinstance(of, int)}
        return [(given[n], value) for n, value in found.items()]
