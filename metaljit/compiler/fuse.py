"""Which nodes of a graph become one kernel, and which are stored between kernels.

In: a graph and its results. Out: groups, in the order in which they run. `fuse_places` decides which nodes are stored,
`fuse_rows` which of these are computed in one pass over the rows of an array, `fuse_groups` which others are one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from ..frozen import frozen
from .fuse_groups import Group, alone, members, merged
from .fuse_limits import limit
from .fuse_places import Decision, Footprint, decide, own_work
from .fuse_rows import by_rows
from .graph import Call, Count, Fill, Graph, Input, Number, Ref, operands


@frozen
class Fusion:
    """The kernels in their order, and why each is what it is. `feet` are the footprints of the calls."""

    groups: tuple[Group, ...]
    decisions: tuple[Decision, ...]
    feet: Mapping[Ref, Footprint]


def fuse(
    graph: Graph, results: Sequence[Ref], footprint: Callable[[Ref], Footprint], fused: bool = True
) -> Fusion:
    """The groups that compute the results. `footprint` is asked for each `Call`. Without `fused` each node is stored."""
    needed = graph.needed(results)
    feet = {r: footprint(r) for r in needed if isinstance(graph.nodes[r], Call)}
    own = {r: max(own_work(graph.nodes[r], feet.get(r)), 1.0) for r in needed}
    if fused:
        decisions = limit(graph, needed, decide(graph, needed, frozenset(results), feet), own)
    else:
        decisions = tuple(
            Decision(r, "unfused", 1, 1, 0, 0, "nothing is fused")
            for r in needed
            if _is_stored_alone(graph, r, results)
        )
    stored = {d.ref for d in decisions if d.stored}
    if fused:
        groups = by_rows(graph, stored, frozenset(results), own)
    else:
        groups = [alone(graph, r, stored) for r in sorted(stored)]
    return Fusion(tuple(merged(graph, groups, own) if fused else groups), decisions, feet)


def _is_stored_alone(graph: Graph, ref: Ref, results: Sequence[Ref]) -> bool:
    node = graph.nodes[ref]
    return ref in results or not (
        isinstance(node, Input | Number | Fill | Count) or (isinstance(node, Call) and len(node.results) > 1)
    )


Way: TypeAlias = Literal["memory", "number", "here", "row", "handed"]


@frozen
class Edge:
    """A node that another one is computed from, and how it gets there in a kernel.

    From `memory`, as a `number`, computed `here`, in each pass over a `row`, or `handed` on as it is written. `decision` is
    that of the producer; inputs and numbers have none.
    """

    producer: Ref
    consumer: Ref
    kernel: int
    way: Way
    why: str
    decision: Decision | None

    @property
    def fused(self) -> bool:
        return self.way != "memory"


def edges(graph: Graph, fusion: Fusion) -> tuple[Edge, ...]:
    """All edges of the graph, kernel by kernel: a node that two kernels compute has its edges in both."""
    decisions = {d.ref: d for d in fusion.decisions}
    found = []
    for kernel, group in enumerate(fusion.groups):
        for consumer in members(graph, (*group.roots, *group.stages), group.reads):
            for producer in dict.fromkeys(operands(graph.nodes[consumer])):
                decision = decisions.get(producer)
                way, why = _passed(group, producer, decision)
                found.append(Edge(producer, consumer, kernel, way, why, decision))
    return tuple(found)


def _passed(group: Group, ref: Ref, decision: Decision | None) -> tuple[Way, str]:
    """How a node is passed on in a kernel, and why."""
    if ref in group.reads:
        return "memory", "an input is read from memory" if decision is None else f"stored, {decision.why}"
    if decision is None:
        return "number", "a number is no array"
    if ref in group.stages:
        return "row", "the row stays in one kernel"
    if group.stages and decision.stored:
        return "row", "computed in each pass over the row"
    if decision.stored:
        return "handed", f"handed on as it is stored, {decision.why}"
    return "here", decision.why
