"""Which stored nodes are wanted only where a predicate holds, since a choice reads them on one side alone.

In: a graph and its results. Out: for each node the predicates that must hold, or fail, for it to be read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .fuse_groups import When
from .graph import Choose, Fill, Graph, Ref, operands


def guards(graph: Graph, needed: Sequence[Ref], results: Iterable[Ref]) -> dict[Ref, When]:
    """`needed` in their order. Predicates are 0-d: one of an array's shape decides for each element alone."""
    found: dict[Ref, When] = {r: frozenset() for r in results}
    for ref in reversed(needed):
        here = found.setdefault(ref, frozenset())
        for of, when in _edges(graph, ref, here):
            found[of] = found[of] & when if of in found else when
    return found


def _edges(graph: Graph, ref: Ref, here: When) -> Iterable[tuple[Ref, When]]:
    node = graph.nodes[ref]
    if not isinstance(node, Choose) or graph.nodes[node.predicate].shape:
        return [(of, here) for of in operands(node)]
    if isinstance(graph.nodes[node.predicate], Fill):
        return [(of, here) for of in operands(node)]
    return [
        (node.predicate, here),
        (node.then, here | {(node.predicate, True)}),
        (node.otherwise, here | {(node.predicate, False)}),
    ]
