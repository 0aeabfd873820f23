"""What one kernel can hold: which more nodes are stored so that none reads too many arrays or is too long to compile.

In: a graph, and the decisions by cost. Out: the decisions, some of them for storing now. From the inputs on, where a node
would be computed from too much, the operand that brings most of it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..frozen import frozen
from .fuse_groups import MOST_ARRAYS, MOST_OPERATIONS
from .fuse_places import Decision
from .graph import MEMORY, Call, Graph, Reduce, Ref, in_parts, operands

MOST_NESTED = (
    8  # kernels and reductions that read one another's values, in one kernel: each is a function of its own
)
FEW = 16.0  # operations that are not worth an array


@frozen
class Behind:
    """What a kernel holds that computes a node: arrays it reads, nodes it computes, their operations, and how deep
    functions call each other."""

    arrays: frozenset[Ref]
    nodes: frozenset[Ref] = frozenset()
    operations: float = 0.0
    nested: int = 0


def limit(
    graph: Graph, needed: Sequence[Ref], decisions: Sequence[Decision], own: Mapping[Ref, float]
) -> tuple[Decision, ...]:
    """The decisions for kernels that are small enough, with each node's `own` operations."""
    found = {d.ref: d for d in decisions}
    behind: dict[Ref, Behind] = {}

    def at(ref: Ref) -> Behind:
        """What an operand brings into a kernel that reads it."""
        stored = isinstance(graph.nodes[ref], MEMORY) or (ref in found and found[ref].stored)
        return Behind(frozenset((ref,))) if stored else behind[ref]

    for ref in needed:
        behind[ref] = _joined(graph, ref, at, own)
        while (why := _excess(behind[ref])) and (most := _heaviest(graph, ref, at, found, why)) is not None:
            found[most] = replace(found[most], rule="size", why=_WHY[why])
            for reader in [r for r, b in behind.items() if most in b.nodes and r != most]:
                behind[reader] = _joined(graph, reader, at, own)
    return tuple(found.values())


_WHY = {
    "arrays": f"a kernel of it and what reads it would have more than {MOST_ARRAYS} arrays",
    "operations": f"a kernel of it and what reads it would have more than {MOST_OPERATIONS} operations an element",
    "nested": f"more than {MOST_NESTED} kernels would call each other",
}


def _excess(behind: Behind) -> str:
    if len(behind.arrays) >= MOST_ARRAYS:  # one more is written
        return "arrays"
    if behind.operations > MOST_OPERATIONS:
        return "operations"
    return "nested" if behind.nested > MOST_NESTED else ""


def _heaviest(
    graph: Graph, ref: Ref, at: Callable[[Ref], Behind], found: Mapping[Ref, Decision], why: str
) -> Ref | None:
    """The operand to store; None where none makes the kernel smaller."""

    def weight(of: Ref) -> float:
        brings = at(of)
        match why:
            case "arrays":
                return len(brings.arrays) - 1
            case "operations":
                return brings.operations - FEW
            case _:
                return brings.nested

    def storable(of: Ref) -> bool:
        node = graph.nodes[of]
        return of in found and not found[of].stored and not in_parts(node)

    operand = sorted(filter(storable, operands(graph.nodes[ref])), key=weight)
    if not operand or weight(operand[-1]) <= 0:
        return None
    inside = [o for o in operand if o in at(operand[-1]).nodes and 2 * weight(o) >= weight(operand[-1])]
    return min(inside)  # rather what several operands are computed from


def _joined(graph: Graph, ref: Ref, at: Callable[[Ref], Behind], own: Mapping[Ref, float]) -> Behind:
    node = graph.nodes[ref]
    parts = [at(of) for of in dict.fromkeys(operands(node))]
    most = max(parts, key=lambda b: b.operations, default=Behind(frozenset()))
    nodes = frozenset((ref,)).union(*(b.nodes for b in parts))
    return Behind(
        frozenset().union(*(b.arrays for b in parts)),
        nodes,
        most.operations + sum(own[r] for r in nodes - most.nodes),
        max((b.nested for b in parts), default=0) + isinstance(node, Call | Reduce),
    )
