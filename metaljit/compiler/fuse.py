"""Which nodes of a graph become one kernel, and which are stored between kernels.

In: a graph and its results. Out: groups, in the order in which they run. `fuse_places` decides which nodes are stored,
`fuse_rows` which of these are computed in one pass over the rows of an array, `fuse_groups` which others are one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..frozen import frozen
from .fuse_groups import Group, alone, merged
from .fuse_limits import limit
from .fuse_places import Decision, Footprint, decide, own_work
from .fuse_rows import by_rows
from .graph import LEAVES, Call, Graph, Loop, Ref


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
    return Fusion(tuple(merged(graph, groups, own) if fused else groups), decisions)


def _is_stored_alone(graph: Graph, ref: Ref, results: Sequence[Ref]) -> bool:
    node = graph.nodes[ref]
    return ref in results or not (
        isinstance(node, LEAVES) or (isinstance(node, Call | Loop) and len(node.results) > 1)
    )
