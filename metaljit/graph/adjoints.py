"""Derivatives of map kernels, as calls of kernels that are derived from them.

In: a call and the derivatives by its results. Out: those by its arguments. Where it can be solved from an index which
positions read an element, these are added up for each element (`compiler/lower/adjoint.py`); over axes that the index does
not have by a reduction; anything else is scattered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..compiler import graph as g
from ..compiler import ir
from ..compiler.expand import NoDerivative
from ..compiler.lower import grouped
from ..compiler.lower.adjoint import Adjoint
from ..compiler.lower.instance import Instance
from ..compiler.lower.marked import KNOWN, Analysis, analysed
from ..compiler.reads import MARK, Group
from ..compiler.usage import expressions, walk, walk_expressions
from ..dtypes import F32, I32, DType, Vec
from ..extents import Extent, Lit
from ..source import Diagnostic, TypeFault
from .joins import scattered
from .reductions import cast, reduce
from .traced import Trace, Traced, elementwise


def adjoint(
    trace: Trace, call: g.Ref, cotangents: Sequence[Traced | None], wanted: Collection[str]
) -> dict[str, Traced]:
    """For each wanted parameter of a call the derivative by its argument, from those by the results.

    TypeFault `no-derivative`, at the kernel's line, where something in the kernel has none.
    """
    node = trace.graph.nodes[call]
    assert isinstance(node, g.Call)
    instance = trace.graph.kernels[node.key]
    if not isinstance(instance, Instance):
        raise TypeFault(
            _refused(instance.function.name, "it is itself a derivative", trace.graph.spans[call])
        )
    found: dict[str, Traced] = {}
    if all(c is None for c in cotangents):
        return found
    try:
        derived = _Derived(trace, call, node, instance, cotangents)
        for name in wanted:
            total = derived.by(name)
            if total is not None:
                found[name] = total
    except NoDerivative as e:
        raise TypeFault(_refused(instance.function.name, e.why, e.span)) from None
    return found


def _refused(name: str, why: str, span: Any) -> Diagnostic:
    help = "give the kernel a derivative of its own: `@mj.custom_vjp`"
    return Diagnostic("no-derivative", f"the kernel {name!r} has no derivative: {why}", span, help=help)


class _Derived:
    def __init__(
        self,
        trace: Trace,
        call: g.Ref,
        node: g.Call,
        instance: Instance,
        cotangents: Sequence[Traced | None],
    ) -> None:
        self.trace, self.call, self.node, self.instance = trace, call, node, instance
        self.given = tuple((f"{MARK}{k}", c.ref) for k, c in enumerate(cotangents) if c is not None)
        lanes = isinstance(instance.spec.results[0].element, Vec)
        self.shape = node.shape[:-1] if lanes else node.shape

    def by(self, name: str) -> Traced | None:
        stored = _stored(self.trace.graph, self.node)
        group = grouped.Group("alone", (self.call,), stored)
        composer = grouped.opened(self.trace.graph, group, "map", "precise").composer
        analysis = analysed(composer, self.instance, self.node, name)
        if composer.unit.diagnostics:
            raise TypeFault(*composer.unit.diagnostics)
        ref = dict(self.node.arguments)[name]
        assert isinstance(ref, int)
        array = Traced(self.trace, ref)
        every = dict.fromkeys(g.free for g in analysis.groups if g.steps is not None)
        parts = [self._summed(name, array, free) for free in every]
        parts += [self._scattered(name, array, n, u, analysis) for n, u in enumerate(analysis.unsolved)]
        total: Traced | None = None
        for one in parts:
            total = one if total is None else elementwise("add", total, one)
        return None if total is None else cast(total, array.element)

    def _summed(self, name: str, array: Traced, free: tuple[int, ...]) -> Traced:
        shape = (*array.extents, *(self.shape[axis] for axis in free))
        made = self._node(Adjoint(self.instance, name, "sum", free), F32, shape)
        return reduce("sum", made, range(array.ndim, len(shape))) if free else made

    def _scattered(self, name: str, array: Traced, number: int, group: Group, analysis: Analysis) -> Traced:
        if isinstance(self.instance.spec.arrays[name].element, Vec):
            raise NoDerivative("a vector is read at an index that cannot be solved", group.read.span)
        shape = (*self.shape, *(self._turns(t, group, analysis) for t, _ in group.read.used))

        def part(which: Any, dtype: DType) -> Traced:
            return self._node(Adjoint(self.instance, name, which, (), number), dtype, shape)

        places = [part(axis, I32) for axis in range(array.ndim)]
        return scattered(part("term", F32), places, array.extents)

    def _turns(self, turns: Any, group: Group, analysis: Analysis) -> Extent:
        """How many turns a loop has, as an axis of what is scattered."""
        start = turns.start.constant if turns.start is not None else None
        if turns.step != 1 or start != 0 or turns.stop is None:
            raise NoDerivative("it reads at an index that cannot be solved, in a loop", group.read.span)
        if turns.stop.constant is not None:
            return Lit(turns.stop.constant)
        for monomial, c in turns.stop.terms.items():
            if len(turns.stop.terms) == 1 and len(monomial) == 1 and c == 1:
                meaning = group.read.space.meanings[monomial[0]]
                uniform = analysis.uniforms.get(meaning[1]) if meaning[0] == "u" else None
                if uniform is not None and uniform.value is not None:
                    return uniform.value
        raise NoDerivative("it reads at an index that cannot be solved, in a loop", group.read.span)

    def _node(self, called: Adjoint, dtype: DType, shape: Sequence[Extent]) -> Traced:
        """A call of a derivative, with those arguments alone that it reads."""
        graph = self.trace.graph
        every = (*self.node.arguments, *self.given)
        what = (called.param, called.part, called.free, called.number)
        name = ("adjoint", self.node.key, what, tuple(n for n, _ in self.given))

        def call(arguments: Sequence[tuple[str, Any]]) -> g.Call:
            key = g.call_key(name, arguments)
            graph.kernels[key] = called
            return g.Call(key, tuple(arguments), (dtype,), dtype, tuple(shape))

        read = self._read(call(every))
        arrays = self.instance.spec.arrays
        kept = [
            (n, of)
            for n, of in every
            if (n not in arrays and not n.startswith(MARK)) or not isinstance(of, int) or of in read
        ]
        return self.trace.node(call(kept))

    def _read(self, trial: g.Call) -> set[g.Ref]:
        """The arguments that are read, by lowering the call alone."""
        known = self.trace.graph
        graph = g.Graph(
            [*known.nodes, trial], [*known.spans, known.spans[self.call]], known.kernels, same=known.same
        )
        stored = _stored(graph, trial)
        group = grouped.Group("alone", (len(graph.nodes) - 1,), stored)
        lowered = grouped.lower_group(graph, group)
        bodies = [lowered.kernel.body, *(f.body for f in lowered.kernel.functions)]
        names = {
            e.buffer.name
            for body in bodies
            for s in walk(body)
            for top in expressions(s)
            for e in walk_expressions(top)
            if isinstance(e, ir.Load)
        }
        return {of for of, name in stored.items() if name in names}


def _stored(graph: g.Graph, node: g.Call) -> dict[g.Ref, str]:
    """All arguments read from memory, but for numbers that are known there."""
    return {of: f"a{of}" for of in g.operands(node) if not isinstance(graph.nodes[of], KNOWN)}
