"""Which nodes of a graph become one kernel, and which are stored between kernels.

In: a graph and its results. Out: groups, in the order in which they run. `fuse_places` decides which nodes are stored,
`fuse_limits` which more, so that no kernel is too large, `fuse_rows` which of these are computed in one pass over the rows
of an array, `fuse_ends` what is computed where a product or reduced columns are, `fuse_groups` which others are one kernel,
`fuse_guards` which kernels run only where a predicate holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from ..frozen import frozen
from . import turns
from .fuse_ends import with_ends
from .fuse_groups import Group, When, alone, is_row, members, merged, whole
from .fuse_guards import guards
from .fuse_limits import limit
from .fuse_places import TURNS, Decision, Footprint, decide, own_work
from .fuse_rows import by_rows, ordered
from .graph import LEAVES, MEMORY, Call, Graph, Launch, Loop, Ref, in_parts, operands


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
    feet |= {r: turns.footprint(graph, r) for r in needed if isinstance(graph.nodes[r], Loop | Launch)}
    own = {r: max(_own(graph, r, feet.get(r)), 1.0) for r in needed}
    wholes = [r for r in needed if whole(graph, r) == r]
    reasons = dict.fromkeys(results, "it is a result")
    for ref in wholes:
        reasons = dict(turns.stored_for(graph, ref)) | reasons
    when: dict[Ref, When] = {}
    while True:  # a predicate that decides whether a kernel runs is stored, which may have others decide too
        decisions = _decisions(graph, needed, reasons, feet, own, fused)
        stored = {d.ref for d in decisions if d.stored}
        when = guards(graph, needed, results)
        deciding = {p for r in stored for p, _ in when[r]} - reasons.keys()
        deciding = {p for p in deciding if not isinstance(graph.nodes[p], LEAVES)}
        if not deciding:
            break
        reasons |= dict.fromkeys(deciding, "kernels run only where it holds")
    return Fusion(tuple(_groups(graph, stored, reasons, feet, own, when, wholes, fused)), decisions, feet)


def _decisions(
    graph: Graph,
    needed: Sequence[Ref],
    reasons: Mapping[Ref, str],
    feet: Mapping[Ref, Footprint],
    own: Mapping[Ref, float],
    fused: bool,
) -> tuple[Decision, ...]:
    if fused:
        return limit(graph, needed, decide(graph, needed, reasons, feet), own)
    return tuple(
        Decision(r, "unfused", 1, 1, 0, 0, "nothing is fused")
        for r in needed
        if r in reasons or not _stays_away(graph, r)
    )


def _groups(
    graph: Graph,
    stored: set[Ref],
    reasons: Mapping[Ref, str],
    feet: Mapping[Ref, Footprint],
    own: Mapping[Ref, float],
    when: Mapping[Ref, When],
    wholes: Sequence[Ref],
    fused: bool,
) -> list[Group]:
    parts = {ref: [r for r in sorted(stored) if whole(graph, r) == ref] for ref in wholes}
    rest = stored - {r for of in parts.values() for r in of}
    if fused:
        apart = {r for r in rest if r in feet and feet[r].alone}  # an element of theirs is no turn of a row
        groups = [alone(graph, r, stored) for r in sorted(apart)]
        rest -= apart
        groups += by_rows(graph.reading(stored - rest), rest, frozenset(reasons), own, when)
    else:
        groups = [alone(graph, r, stored) for r in sorted(rest)]
    groups += [Group(tuple(of), _memory(graph, ref, stored)) for ref, of in parts.items() if of]
    placed = [replace(group, when=when[group.roots[0]]) for group in groups]
    if fused:
        placed = with_ends(graph, placed, reasons, own)
        return merged(graph, ordered(graph, placed), own)
    return ordered(graph, placed)


def _memory(graph: Graph, ref: Ref, stored: set[Ref]) -> tuple[Ref, ...]:
    """What a grid kernel, or a loop that is replayed, reads."""
    return tuple(
        r for r in sorted({*operands(graph.nodes[ref])}) if r in stored or isinstance(graph.nodes[r], MEMORY)
    )


def _own(graph: Graph, ref: Ref, foot: Footprint | None) -> float:
    """Operations of a node as they stand in a kernel's text."""
    work = own_work(graph.nodes[ref], foot)
    return work / TURNS if isinstance(graph.nodes[ref], Loop) else work


def _stays_away(graph: Graph, ref: Ref) -> bool:
    node = graph.nodes[ref]
    return isinstance(node, LEAVES) or in_parts(node)


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
                way, why = _passed(graph, group, producer, decision)
                found.append(Edge(producer, consumer, kernel, way, why, decision))
    return tuple(found)


def _passed(graph: Graph, group: Group, ref: Ref, decision: Decision | None) -> tuple[Way, str]:
    """How a node is passed on in a kernel, and why."""
    if ref in group.reads:
        return "memory", "an input is read from memory" if decision is None else f"stored, {decision.why}"
    if decision is None:
        return "number", "a number is no array"
    if ref in group.stages:
        if not is_row(graph, ref):
            return "handed", "wanted at the same index, where it is computed"
        return "row", "the row stays in one kernel"
    if group.stages and decision.stored:
        return "row", "computed in each pass over the row"
    if decision.stored:
        return "handed", f"handed on as it is stored, {decision.why}"
    return "here", decision.why
