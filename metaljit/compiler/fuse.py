"""Which nodes of a graph become one kernel, and which are stored between kernels.

In: a graph and its results. Out: groups, in the order in which they run. Composition is always right, so this decides
about time alone, by one rule: a node is computed anew wherever it is wanted, unless that costs more than to write it
once and to read it there.

    anew    (places - 1) * work * OPERATION
    stored  (places + 1) * bytes * BYTE

`places` are the different indices at which an element of the consumers' needs one of the node, `work` the operations
behind it. Equal indices count once, since a kernel computes a node once for each index. A reduction is stored unless it is
wanted at one place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from ..extents import Lit
from ..frozen import frozen
from ..operations import OPERATIONS
from .graph import (
    Axes,
    Call,
    Cast,
    Count,
    Elementwise,
    Fill,
    Graph,
    Input,
    Node,
    Number,
    Part,
    Reduce,
    Ref,
    Reshape,
    Slice,
    View,
    operands,
)

OPERATION = 1.0  # of a number, in units of time
BYTE = 0.5  # read or written
FUNCTION = 8.0  # an operation that has an error of its own is so many others
STRETCHED = 16.0  # places of an element that is broadcast over an axis of unknown length
TURNS = 16.0  # of a reduction over one
MOST_PATTERNS = 64
MOST_ARRAYS = 24  # of one kernel

Pattern: TypeAlias = tuple[Any, ...]  # a root, and the maps from its index to the node's


@frozen
class Footprint:
    """What one element of a kernel needs: its own operations, and how many elements of each argument."""

    operations: float
    reads: Mapping[Ref, float]
    alone: str = ""  # why it is not fused, if it is not


@frozen
class Group:
    """Nodes that become one kernel: `roots` are its results, `reads` are stored before it runs.

    With `stages`, long reductions of the same rows, each row is reduced by these before the roots are computed from it.
    """

    roots: tuple[Ref, ...]
    reads: tuple[Ref, ...]
    stages: tuple[Ref, ...] = ()


@frozen
class Decision:
    """Why a node is stored, or where it is computed instead."""

    ref: Ref
    stored: bool
    places: float
    work: float
    why: str


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
    if fused:
        decisions = _decide(graph, needed, frozenset(results), feet)
    else:
        decisions = tuple(
            Decision(r, True, 1, 1, "nothing is fused") for r in needed if _is_stored_alone(graph, r, results)
        )
    stored = {d.ref for d in decisions if d.stored}
    if fused:
        groups = by_rows(graph, stored, frozenset(results))
    else:
        groups = [alone(graph, r, stored) for r in sorted(stored)]
    return Fusion(tuple(_merged(graph, groups) if fused else groups), decisions)


def _is_stored_alone(graph: Graph, ref: Ref, results: Sequence[Ref]) -> bool:
    node = graph.nodes[ref]
    return ref in results or not (
        isinstance(node, Input | Number | Fill | Count) or (isinstance(node, Call) and len(node.results) > 1)
    )


# ---- what is stored ----


def _decide(
    graph: Graph, needed: Sequence[Ref], results: frozenset[Ref], feet: Mapping[Ref, Footprint]
) -> tuple[Decision, ...]:
    work = _work(graph, needed, feet)
    patterns: dict[Ref, dict[Pattern, float]] = {r: {} for r in needed}
    found: list[Decision] = []
    for ref in reversed(needed):
        node = graph.nodes[ref]
        if isinstance(node, Input | Number | Fill | Count):
            if ref in results:
                found.append(Decision(ref, True, 0, 0, "it is a result"))
            continue
        places = sum(patterns[ref].values())
        foot = feet.get(node.of if isinstance(node, Part) else ref)
        several = isinstance(node, Call) and len(node.results) > 1  # its parts are stored
        why = (
            "" if several else _why_stored(node, ref in results, places, work[ref], len(patterns[ref]), foot)
        )
        found.append(Decision(ref, bool(why), places, work[ref], why))
        here: Mapping[Pattern, float] = {(ref,): 1.0} if why else patterns[ref]
        for of, step, times in _edges(graph, node, feet.get(ref)):
            target = patterns[of]
            for pattern, count in here.items():
                full = (*pattern, *step)
                target[full] = max(target.get(full, 0.0), count * times)
    return tuple(reversed(found))


def _why_stored(
    node: Node, is_result: bool, places: float, work: float, patterns: int, foot: Footprint | None
) -> str:
    """The reason to store a node; empty where it is computed where it is wanted."""
    if is_result:
        return "it is a result"
    if foot is not None and foot.alone:
        return foot.alone
    if isinstance(node, Reduce) and node.long:
        return "a threadgroup reduces a row"
    if isinstance(node, Reduce) and places > 1:
        return f"a reduction that is wanted at {places:.0f} places"
    if patterns > MOST_PATTERNS:
        return f"it is wanted at more than {MOST_PATTERNS} kinds of places"
    anew = (places - 1) * work * OPERATION
    stored = (places + 1) * node.dtype.nbytes * BYTE
    if anew > stored and not isinstance(node, View):
        return f"{work:.0f} operations anew at {places:.0f} places cost more than to store it"
    return ""


def _work(graph: Graph, needed: Iterable[Ref], feet: Mapping[Ref, Footprint]) -> dict[Ref, float]:
    """Operations behind an element, where nothing is stored but reductions."""
    work: dict[Ref, float] = {}
    for ref in needed:
        node = graph.nodes[ref]
        behind = sum(
            work[of] * (times if isinstance(node, Call) else 1.0)
            for of, _, times in _edges(graph, node, feet.get(ref))
            if not isinstance(graph.nodes[of], Reduce)
        )
        work[ref] = (behind + _own(node, feet.get(ref))) * (TURNS if isinstance(node, Reduce) else 1.0)
    return work


def _own(node: Node, foot: Footprint | None) -> float:
    match node:
        case Input() | Number() | Fill() | Count() | View() | Part():
            return 0.0
        case Elementwise(op):
            return FUNCTION if OPERATIONS[op].ulp else 1.0
        case Cast() | Reduce():
            return 1.0
        case Call():
            return foot.operations if foot is not None else 1.0
    assert_never(node)


def _edges(graph: Graph, node: Node, foot: Footprint | None) -> list[tuple[Ref, Pattern, float]]:
    """For each operand the step from the node's index to the operand's, and how many elements of it are wanted."""
    match node:
        case Input() | Number() | Fill() | Count():
            return []
        case Elementwise() | Cast() | Part():
            return [(of, (), 1.0) for of in operands(node)]
        case View(of, map, _, shape):
            return [(of, (map,), _stretch(map, len(graph.nodes[of].shape), len(shape)))]
        case Reduce(_, of, axes, _, _, _):
            return [(of, (("reduced", axes),), 1.0)]
        case Call():
            reads = foot.reads if foot is not None else {}
            return [(of, (("read", node.key),), max(reads.get(of, 1.0), 1.0)) for of in operands(node)]
    assert_never(node)


def _stretch(map: Any, before: int, after: int) -> float:
    """How often an element of the source is seen in a view."""
    match map:
        case Axes(along):
            kept = {a for a in along if a is not None}
            return STRETCHED if len(kept) < after and before else 1.0
        case Slice() | Reshape():
            return 1.0
        case _:
            return 1.0


# ---- groups ----


def alone(graph: Graph, root: Ref, stored: Collection[Ref]) -> Group:
    return Group((root,), reads(graph, (root,), stored), (root,) if _is_long(graph, root) else ())


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


def _merged(graph: Graph, groups: Sequence[Group]) -> list[Group]:
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
                not group.stages
                and not other.stages
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


# ---- rows ----


def by_rows(graph: Graph, stored: set[Ref], results: frozenset[Ref]) -> list[Group]:
    """Each stored node as a group, but chains of long reductions of the same rows, with what is computed from them and
    read by nobody else, as one."""
    readers: dict[Ref, set[Ref]] = {r: set() for r in stored}
    for root in stored:
        for ref in reads(graph, (root,), stored):
            readers.setdefault(ref, set()).add(root)
    taken: set[Ref] = set()
    groups: list[Group] = []
    for root in sorted(stored, reverse=True):
        if root in taken:
            continue
        group, members = _cluster(graph, root, stored, results, readers, taken)
        taken |= members
        groups.append(group)
    return _ordered(graph, groups[::-1])


def _ordered(graph: Graph, groups: Sequence[Group]) -> list[Group]:
    """Each group behind those that store what it reads."""
    makers = {r: g for g in groups for r in g.roots if not isinstance(graph.nodes[r], Input)}
    done: dict[Group, None] = {}

    def visit(group: Group) -> None:
        if group not in done:
            for ref in group.reads:
                if ref in makers:
                    visit(makers[ref])
            done[group] = None

    for group in groups:
        visit(group)
    return list(done)


def _cluster(
    graph: Graph,
    root: Ref,
    stored: set[Ref],
    results: frozenset[Ref],
    readers: Mapping[Ref, set[Ref]],
    taken: set[Ref],
) -> tuple[Group, set[Ref]]:
    """A stored node with all that can be computed in the same pass over rows, and which stored nodes that are."""
    first = alone(graph, root, stored)
    members, stages = {root}, set(first.stages)
    grown = True
    while grown:
        grown = False
        for ref in reads(graph, sorted(members), stored - members):
            if ref not in stored:
                continue
            whole = _closed(graph, members | {ref} | readers[ref], stored, readers)
            longer = {r for r in whole if _is_long(graph, r)}
            if not whole & taken and _is_aligned(graph, whole, longer, stored):
                members, stages, grown = whole, longer, True
                break
    if not stages:
        return first, {root}
    outside = {r for r in members if r in results or readers[r] - members}
    roots = tuple(sorted({root} | outside))
    return Group(
        roots, reads(graph, (*roots, *sorted(stages)), stored - members), tuple(sorted(stages))
    ), members


def _closed(graph: Graph, members: set[Ref], stored: set[Ref], readers: Mapping[Ref, set[Ref]]) -> set[Ref]:
    """The members with every stored node between two of them: no other kernel can run in the middle of one."""
    after: set[Ref] = set()
    todo = [r for m in members for r in readers[m]]
    while todo:
        ref = todo.pop()
        if ref not in after:
            after.add(ref)
            todo += readers[ref]
    return members | {r for r in after - members if any(_reaches(graph, (m,), {r}) for m in members)}


def _is_long(graph: Graph, ref: Ref) -> bool:
    node = graph.nodes[ref]
    return isinstance(node, Reduce) and node.long


def _is_aligned(graph: Graph, members: set[Ref], stages: set[Ref], stored: set[Ref]) -> bool:
    """Whether all members are of the rows that the stages reduce, and read these for their own row alone."""
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
            case Elementwise() | Cast() | Part():
                return all(visit(of, axes if graph.nodes[of].shape else ()) for of in operands(node))
            case View(of, Axes(along), _, _):
                return visit(of, tuple(None if k is None else axes[k] for k in along))
            case Call() if len(node.results) > 1:
                return False
            case _:
                return not _reaches(graph, operands(node), stages)

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


def _reaches(graph: Graph, refs: Iterable[Ref], targets: set[Ref]) -> bool:
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
