"""Which nodes of a graph become one kernel, and which are stored between kernels.

In: a graph and its results. Out: groups, in the order in which they run. `fuse_places` decides which nodes are stored,
`fuse_limits` which more, so that no kernel is too large, `fuse_rows` which of these are computed in one pass over the rows
of an array, `fuse_ends` what is computed where a product or reduced columns are, `fuse_groups` which others are one kernel,
`fuse_guards` which kernels run only where a predicate holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..frozen import frozen
from . import turns
from .fuse_ends import with_ends
from .fuse_groups import Group, When, alone, loop_of, merged
from .fuse_guards import guards
from .fuse_limits import limit
from .fuse_places import TURNS, Decision, Footprint, decide, own_work
from .fuse_rows import by_rows, ordered
from .graph import LEAVES, MEMORY, Call, Graph, Loop, Ref, operands


@frozen
class Fusion:
    groups: tuple[Group, ...]
    decisions: tuple[Decision, ...]


def fuse(
    graph: Graph, results: Sequence[Ref], footprint: Callable[[Ref], Footprint], fused: bool = True
) -> Fusion:
    """The groups that compute the results. `footprint` is asked for each `Call`. Without `fused` each node is stored."""
    needed = graph.needed(results)
    feet = {r: footprint(r) for r in needed if isinstance(graph.nodes[r], Call)}
    feet |= {r: turns.footprint(graph, r) for r in needed if isinstance(graph.nodes[r], Loop)}
    own = {r: max(_own(graph, r, feet.get(r)), 1.0) for r in needed}
    whole = [r for r in needed if isinstance(graph.nodes[r], Loop) and feet[r].alone == turns.WHOLE]
    reasons = dict.fromkeys(results, "it is a result")
    for loop in whole:
        reasons = dict(turns.stored_for(graph, loop)) | reasons
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
    return Fusion(tuple(_groups(graph, stored, reasons, own, when, whole, fused)), decisions)


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
    own: Mapping[Ref, float],
    when: Mapping[Ref, When],
    whole: Sequence[Ref],
    fused: bool,
) -> list[Group]:
    parts = {loop: [r for r in sorted(stored) if loop_of(graph, r) == loop] for loop in whole}
    rest = stored - {r for of in parts.values() for r in of}
    if fused:
        groups = by_rows(graph, rest, frozenset(reasons), own, when)
    else:
        groups = [alone(graph, r, stored) for r in sorted(rest)]
    groups += [Group(tuple(of), _memory(graph, loop, stored)) for loop, of in parts.items() if of]
    placed = [replace(group, when=when[group.roots[0]]) for group in groups]
    if fused:
        placed = with_ends(graph, placed, reasons, own)
        return merged(graph, ordered(graph, placed), own)
    return ordered(graph, placed)


def _memory(graph: Graph, loop: Ref, stored: set[Ref]) -> tuple[Ref, ...]:
    """What a loop that is replayed reads."""
    return tuple(
        r for r in sorted({*operands(graph.nodes[loop])}) if r in stored or isinstance(graph.nodes[r], MEMORY)
    )


def _own(graph: Graph, ref: Ref, foot: Footprint | None) -> float:
    """Operations of a node as they stand in a kernel's text."""
    work = own_work(graph.nodes[ref], foot)
    return work / TURNS if isinstance(graph.nodes[ref], Loop) else work


def _stays_away(graph: Graph, ref: Ref) -> bool:
    node = graph.nodes[ref]
    return isinstance(node, LEAVES) or (isinstance(node, Call | Loop) and len(node.results) > 1)
