"""Long reductions of the same rows, with what is computed from them, as one kernel.

In: a graph, and which nodes are stored. Out: groups, in the order in which they run. A row is reduced once for each stage,
and stays in the cache between the stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..extents import Lit
from .fuse_groups import Group, When, alone, is_long, is_own, is_small, reaches, reads
from .graph import MEMORY, Axes, Call, Cast, Elementwise, Graph, Part, Reduce, Ref, Ruled, View, operands


def by_rows(
    graph: Graph,
    stored: set[Ref],
    results: frozenset[Ref],
    own: Mapping[Ref, float],
    when: Mapping[Ref, When],
) -> list[Group]:
    """Each stored node as a group, but chains of long reductions of the same rows, with what is computed from them and
    read by nobody else, as one. All of a group runs `when` the same holds."""
    if not any(is_long(graph, r) for r in stored):
        return [alone(graph, r, stored) for r in sorted(stored)]
    readers: dict[Ref, set[Ref]] = {r: set() for r in stored}
    behind: dict[Ref, int] = {}  # the stored nodes that a stored node is computed from, as bits
    for root in sorted(stored):
        behind[root] = 0
        for ref in reads(graph, (root,), stored - {root}):
            readers.setdefault(ref, set()).add(root)
            behind[root] |= 1 << ref | behind.get(ref, 0)
    taken: set[Ref] = set()
    groups: list[Group] = []
    for root in sorted(stored, reverse=True):
        if root in taken:
            continue
        group, members = _cluster(graph, root, stored, results, readers, behind, own, when, taken)
        taken |= members
        groups.append(group)
        _join(behind, members)
    return groups[::-1]


def _join(behind: dict[Ref, int], members: set[Ref]) -> None:
    """Makes of members one: what waits for one of them waits for all, and for all that these wait for.

    Otherwise two kernels could each wait for the other, although no array waits for itself.
    """
    if len(members) == 1:
        return
    own = sum(1 << m for m in members)
    before = own
    for m in members:
        before |= behind[m]
    for ref, mask in behind.items():
        if mask & own or ref in members:
            behind[ref] = (mask | before) & ~(1 << ref)


def ordered(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """Each group behind those that store what it reads."""
    makers = {r: g for g in groups for r in g.roots if not isinstance(graph.nodes[r], MEMORY)}
    done: dict[Group, None] = {}
    todo = list(reversed(groups))
    while todo:
        group = todo[-1]
        first = [g for r in group.needs if (g := makers.get(r)) is not None and g not in done]
        if first and group not in done:
            todo += reversed(first)
        else:
            done[todo.pop()] = None
    return list(done)


def _cluster(
    graph: Graph,
    root: Ref,
    stored: set[Ref],
    results: frozenset[Ref],
    readers: Mapping[Ref, set[Ref]],
    behind: Mapping[Ref, int],
    own: Mapping[Ref, float],
    when: Mapping[Ref, When],
    taken: set[Ref],
) -> tuple[Group, set[Ref]]:
    """A stored node with all that can be computed in the same pass over rows, and which stored nodes that are."""
    group = alone(graph, root, stored)
    members = {root}
    grown = True
    while grown:
        grown = False
        for ref in reads(graph, sorted(members), stored - members):
            if ref not in stored:
                continue
            whole = _closed(members | {ref} | readers[ref], behind)
            longer = {r for r in whole if is_long(graph, r)}
            if (
                whole & taken
                or len({when[r] for r in whole}) > 1
                or not _is_aligned(graph, whole, longer, stored)
            ):
                continue
            made = _whole(graph, root, whole, longer, stored, results, readers)
            if is_small(graph, made, own):
                group, members, grown = made, whole, True
                break
    return group, members


def _whole(
    graph: Graph,
    root: Ref,
    members: set[Ref],
    stages: set[Ref],
    stored: set[Ref],
    results: frozenset[Ref],
    readers: Mapping[Ref, set[Ref]],
) -> Group:
    """The group of these members: what others read of them are its results."""
    outside = {r for r in members if r in results or readers[r] - members}
    roots = tuple(sorted({root} | outside))
    return Group(roots, reads(graph, (*roots, *sorted(stages)), stored - members), tuple(sorted(stages)))


def _closed(members: set[Ref], behind: Mapping[Ref, int]) -> set[Ref]:
    """The members with every stored node between two of them: no other kernel can run in the middle of one."""
    inside = sum(1 << m for m in members)
    before = 0
    for m in members:
        before |= behind[m]
    return members | {r for r, mask in behind.items() if before >> r & 1 and mask & inside}


def _is_aligned(graph: Graph, members: set[Ref], stages: set[Ref], stored: set[Ref]) -> bool:
    """Whether all members are of the rows that the stages reduce, and read these for their own row alone."""
    if any(is_own(graph, r) for r in members):
        return False
    reduced = [n for n in map(graph.nodes.__getitem__, stages) if isinstance(n, Reduce)]
    shapes = {tuple(map(graph.extent, graph.nodes[n.of].shape)) for n in reduced}
    ranks = {len(n.shape) for n in reduced}
    if len(shapes) != 1 or len(ranks) != 1:
        return False
    (full,), (rank,) = shapes, ranks
    seen: dict[tuple[Ref, tuple[int | None, ...]], bool] = {}

    def visit(ref: Ref, axes: tuple[int | None, ...]) -> bool:
        """Whether a node and what is behind it, at these axes of the full index, is aligned."""
        if (ref, axes) not in seen:
            seen[ref, axes] = look(ref, axes)
        return seen[ref, axes]

    def look(ref: Ref, axes: tuple[int | None, ...]) -> bool:
        node = graph.nodes[ref]
        if ref in stages:
            return axes == tuple(range(rank))
        if ref in stored and ref not in members:
            return True
        match node:
            case Elementwise() | Cast() | Part() | Ruled():
                return all(visit(of, axes if graph.nodes[of].shape else ()) for of in operands(node))
            case View(of, Axes(along), _, _):
                return visit(of, tuple(None if k is None else axes[k] for k in along))
            case Call() if len(node.results) > 1:
                return False
            case _:
                return not reaches(graph, operands(node), stages)

    everything = tuple(range(len(full)))
    for ref in members:
        node, shape = graph.nodes[ref], tuple(map(graph.extent, graph.nodes[ref].shape))
        if ref in stages and isinstance(node, Reduce):
            if not visit(node.of, everything):
                return False
            continue
        row = full[:rank]
        if shape != full and shape != row + (Lit(1),) * (len(shape) - rank):
            return False
        axes: tuple[int | None, ...] = everything
        if shape != full:
            axes = (*everything[:rank], *(None,) * (len(shape) - rank))
        if not visit(ref, axes):
            return False
    return True
