"""Graph → typed IR: several nodes as one kernel.

In: a graph, the nodes that become the results, and those that are read from memory. Out: what a single kernel comes to: a
thread computes an element of each result, or adds one to a sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metaljit.grammar import tree

from ...dtypes import I32, Vec
from ...extents import Extent
from ...frozen import frozen
from ...program import ArrayParam, ScalarParam
from ...source import Span, TypeFault
from ...symbols import MISSING
from .. import ir
from ..graph import Call, Graph, Loop, Number, Ref, Scatter, operands
from . import arithmetic, arrays, kernel, parameters, selected
from .body import Body, Options, Unit
from .composed import Composer, Known
from .literals import typed
from .parameters import Lowered
from .signature import Names
from .specialise import ArrayType, Specialisation
from .values import Typed, Value


@frozen
class Group:
    """Nodes that become one kernel: `roots` are its results; `stored` is read from memory, by name.

    The roots have equal shapes, or, where `stages` reduces the rows of one array one after the other, the shape of that
    array or of its rows.
    """

    name: str
    roots: tuple[Ref, ...]
    stored: Mapping[Ref, str]
    stages: tuple[Ref, ...] = ()


def lower_group(graph: Graph, group: Group, math: str = "precise") -> Lowered:
    """One kernel that computes the roots of a group; of a kernel of vectors, whole ones. TypeFault with what is wrong with a
    kernel in it."""
    start = opened(graph, group, "map", math)
    unit, body, span = start.unit, start.body, start.span
    shape = start.results[0].shape
    variables = kernel.map_positions(body, shape, position_names(len(shape)))
    known: Known = {}
    place = _typed(body.positions)
    found = [_root(start.composer, body, r, place, known) for r in group.roots]
    body.emit(ir.Return(tuple(v.expr for v in found), span))
    domain = tuple(kernel.extent_expr(unit, e) for e in shape)
    made = ir.Kernel(
        group.name, "map", variables, domain, start.functions(), tuple(body.block), start.buffers,
        tuple(unit.margins), span=span,
    )  # fmt: skip
    return start.lowered(made, shape)


def _root(composer: Composer, body: Body, ref: Ref, place: tuple[Typed, ...], known: Known) -> Typed:
    node = composer.graph.nodes[ref]
    if isinstance(node, Call) and composer.graph.lanes(ref) > 1:
        return composer.whole(body, ref, node, place, composer.graph.spans[ref])[0]
    return composer.at(body, ref, place, known)


def lower_scatter(graph: Graph, group: Group, math: str = "precise") -> Lowered:
    """One kernel, a thread for each element that is added."""
    (root,) = group.roots
    node, start = graph.nodes[root], opened(graph, group, "grid", math)
    assert isinstance(node, Scatter)
    unit, body, span = start.unit, start.body, start.span
    shape = tuple(map(graph.extent, graph.nodes[node.of].shape))
    variables = kernel.map_positions(body, shape, position_names(len(shape)))
    positions = _typed(body.positions)
    known: Known = {}
    value = start.composer.at(body, node.of, positions, known)
    tests: list[Typed] = []
    found: list[Typed] = []
    extents = [unit.extent(graph.extent(e)) for e in node.shape]
    for at, extent in zip(node.at, extents, strict=True):
        limit = typed(extent, span, I32)
        index = start.composer.at(body, at, positions, known)
        if not arrays.proved(body, index, limit):
            index = selected.counted(body, index, limit, span)
            tests.append(Typed(ir.InRange(index.expr, limit.expr, True)))
        found.append(index)
    guard = arithmetic.join_conditions("and", tests).expr if tests else None
    offset = arrays.offset_of(extents, found, span)
    (buffer,) = start.buffers
    body.emit(ir.Atomic("add", body.var("old", node.dtype), buffer, offset, (value.expr,), guard, span))
    domain = tuple(kernel.extent_expr(unit, e) for e in shape)
    made = ir.Kernel(
        group.name, "grid", variables, domain, start.functions(), tuple(body.block), (), ordered=True, span=span
    )  # fmt: skip
    return start.lowered(made, shape)


def position_names(rank: int) -> list[str]:
    return ["i"] if rank == 1 else [f"i{k}" for k in range(rank)]


@frozen
class Opened:
    """A group that is being lowered: what is known before the first statement."""

    group: Group
    unit: Unit
    body: Body
    composer: Composer
    params: tuple[ArrayParam | ScalarParam, ...]
    results: tuple[ArrayType, ...]
    span: Span

    @property
    def buffers(self) -> tuple[ir.Buffer, ...]:
        names = parameters.result_names(len(self.results))
        return tuple(
            ir.Buffer(n, r.element.scalar, r.element.lanes, True)
            for n, r in zip(names, self.results, strict=True)
        )

    def functions(self) -> tuple[ir.Function, ...]:
        return tuple(f for f, _ in self.unit.functions.values())

    def lowered(self, made: ir.Kernel, domain: tuple[Extent, ...]) -> Lowered:
        if self.unit.diagnostics:
            raise TypeFault(*self.unit.diagnostics)
        results = parameters.results(self.results)
        if isinstance(self.composer.graph.nodes[self.group.roots[0]], Scatter):
            results = tuple(replace(r, zeroed=True) for r in results)
        return Lowered(made, self.unit, self.params, results, domain, self.group.name)


def opened(graph: Graph, group: Group, kind: str, math: str) -> Opened:
    inner = members(graph, group)
    turns = {graph.loops[n.scope].turn for n in map(graph.nodes.__getitem__, inner) if isinstance(n, Loop)}
    numbers = [n for r in inner if isinstance(n := graph.nodes[r], Number) and r not in turns]

    def type_of(ref: Ref) -> ArrayType:
        node = graph.nodes[ref]
        return ArrayType(node.dtype, tuple(map(graph.extent, node.shape)))

    def result_of(ref: Ref) -> ArrayType:
        found, lanes = type_of(ref), graph.lanes(ref)
        return ArrayType(Vec(graph.nodes[ref].dtype, lanes), found.shape[:-1]) if lanes > 1 else found

    results = tuple(map(result_of, group.roots))
    read = {name: type_of(ref) for ref, name in group.stored.items()}
    spec = Specialisation(read, {n.name: n.dtype for n in numbers}, {}, {}, {}, results)
    span = graph.spans[group.roots[0]]
    unit = Unit(group.name, kind, spec, Options(math=math))
    empty = tree.Function(group.name, (), (), None, None, (), span=span, name_span=span)
    body = Body(unit, Names(lambda name: MISSING), empty)
    kernel.array_facts(unit)
    composer = Composer(graph, unit, group.stored, uses(graph, inner))
    params: list[ArrayParam | ScalarParam] = [parameters.array(n, t, "in") for n, t in read.items()]
    params += [ScalarParam(n.name, n.dtype, 1) for n in numbers]
    return Opened(group, unit, body, composer, tuple(params), results, span)


def members(graph: Graph, group: Group) -> list[Ref]:
    """The nodes that a group computes, in order."""
    wanted = set(group.roots)
    for ref in range(max(group.roots), -1, -1):
        if ref in wanted and ref not in group.stored:
            wanted.update(_behind(graph, ref))
    return sorted(wanted)


def _behind(graph: Graph, ref: Ref) -> list[Ref]:
    """What a node is computed from, and a loop's turns."""
    node = graph.nodes[ref]
    if not isinstance(node, Loop):
        return list(operands(node))
    turns = graph.loops[node.scope]
    return [*operands(node), *turns.after, *(r for r in (turns.count, turns.condition) if r is not None)]


def uses(graph: Graph, members: Sequence[Ref]) -> dict[Ref, int]:
    uses = dict.fromkeys(members, 0)
    for ref in members:
        for of in _behind(graph, ref):
            uses[of] = uses.get(of, 0) + 1
    return uses


def _typed(items: Sequence[Value]) -> tuple[Typed, ...]:
    return tuple(v for v in items if isinstance(v, Typed))
