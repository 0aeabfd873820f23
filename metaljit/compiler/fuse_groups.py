"""Stored nodes as kernels: what each reads, and which are one kernel because they have equal shapes.

In: a graph, and which nodes are stored. Out: groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..extents import Lit
from ..frozen import frozen
from .graph import Graph, Input, Reduce, Ref, Scatter, operands

MOST_ARRAYS = 24  # of one kernel


@frozen
class Group:
    """Nodes that become one kernel: `roots` are its results, `reads` are stored before it runs.

    With `stages`, long reductions of the same rows, each row is reduced by these before the roots are computed from it.
    """

    roots: tuple[Ref, ...]
    reads: tuple[Ref, ...]
    stages: tuple[Ref, ...] = ()


def alone(graph: Graph, root: Ref, stored: Collection[Ref]) -> Group:
    return Group((root,), reads(graph, (root,), stored), (root,) if is_long(graph, root) else ())


def reads(graph: Graph, roots: Sequence[Ref], stored: Collection[Ref]) -> tuple[Ref, ...]:
    """The stored nodes and inputs that the roots are computed from."""
    found: set[Ref] = set()
    seen: set[Ref] = set()
    todo = [of for r in roots for of in (operands(graph.nodes[r]) or (r,))]
    while todo:
        ref = todo.pop()
        if ref in seen:
            continue
        seen.add(ref)
        if isinstance(graph.nodes[ref], Input) or (ref in stored and ref not in roots):
            found.add(ref)
        else:
            todo += operands(graph.nodes[ref])
    return tuple(sorted(found))


def merged(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """Groups of equal shapes that do not wait for each other, as one."""
    done: list[Group] = []
    for group in groups:
        shape = tuple(map(graph.extent, graph.nodes[group.roots[0]].shape))
        for at, other in enumerate(done):
            same = tuple(map(graph.extent, graph.nodes[other.roots[0]].shape)) == shape
            before = {r for g in done[:at] for r in g.roots}
            ready = all(r in before or isinstance(graph.nodes[r], Input) for r in group.reads)
            both = {*group.reads, *other.reads}
            shares = bool({*group.reads} & {*other.reads}) or not group.reads
            if (
                not (group.stages or other.stages)
                and not (is_own(graph, group.roots[0]) or is_own(graph, other.roots[0]))
                and same
                and ready
                and shares
                and len(both) + len(other.roots) < MOST_ARRAYS
                and shape != (Lit(0),)
            ):
                done[at] = Group((*other.roots, *group.roots), tuple(sorted(both)))
                break
        else:
            done.append(group)
    return done


def is_own(graph: Graph, ref: Ref) -> bool:
    """Whether no other node is computed in the kernel that stores this one."""
    return isinstance(graph.nodes[ref], Scatter)


def is_long(graph: Graph, ref: Ref) -> bool:
    node = graph.nodes[ref]
    return isinstance(node, Reduce) and node.long


def reaches(graph: Graph, refs: Iterable[Ref], targets: set[Ref]) -> bool:
    seen: set[Ref] = set()
    todo = list(refs)
    while todo:
        ref = todo.pop()
        if ref in targets:
            return True
        if ref not in seen:
            seen.add(ref)
            todo += operands(graph.nodes[ref])
    return False
