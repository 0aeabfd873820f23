"""Stored nodes as kernels: what each reads, and which are one kernel because they have equal shapes.

In: a graph, and which nodes are stored. Out: groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from ..extents import Lit
from ..frozen import frozen
from .graph import (
    MEMORY,
    Cast,
    Elementwise,
    Graph,
    Launch,
    Loop,
    Part,
    Product,
    Reduce,
    Ref,
    Ruled,
    Scatter,
    Shape,
    operands,
)

MOST_ARRAYS = 24  # of one kernel, read and written; Metal binds 29 beside what is metaljit's own
MOST_PRODUCTS = 4  # of one kernel, each with its block of threadgroup memory and its sums
MOST_OPERATIONS = 512  # behind an element of one kernel, as they stand in its text


When: TypeAlias = frozenset[tuple[Ref, bool]]


@frozen
class Group:
    """Nodes that become one kernel: `roots` are its results, `reads` are stored before it runs.

    With `stages`, long reductions of the same rows, each row is reduced by these before the roots are computed from it.
    Stages are also long reductions of the same columns, or a product; the roots have the shape of these. It runs only where
    the predicates in `when` are what they are there.
    """

    roots: tuple[Ref, ...]
    reads: tuple[Ref, ...]
    stages: tuple[Ref, ...] = ()
    when: When = frozenset()

    @property
    def needs(self) -> tuple[Ref, ...]:
        """What has to be there before it runs."""
        return (*self.reads, *(ref for ref, _ in self.when))


def alone(graph: Graph, root: Ref, stored: Collection[Ref]) -> Group:
    return Group((root,), reads(graph, (root,), stored), (root,) if is_stage(graph, root) else ())


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
        if isinstance(graph.nodes[ref], MEMORY) or (ref in stored and ref not in roots):
            found.add(ref)
        else:
            todo += operands(graph.nodes[ref])
    return tuple(sorted(found))


def merged(graph: Graph, groups: Sequence[Group], own: Mapping[Ref, float]) -> list[Group]:
    """Groups of equal shapes that share what they read, or hand it on at the same index, as one."""
    done: list[Group] = []
    maker: dict[Ref, int] = {}
    by_shape: dict[Shape, list[int]] = {}
    for group in groups:
        shape = tuple(map(graph.extent, graph.nodes[group.roots[0]].shape))
        elsewhere = read_elsewhere(graph, group)
        first = max((maker[r] + (r in elsewhere) for r in group.needs if r in maker), default=0)
        fitting = by_shape.setdefault(shape, [])
        products = _products(graph, group)
        apart = not products and (bool(group.stages) or is_own(graph, group.roots[0]))
        mergeable = not apart and shape != (Lit(0),)
        at = (
            next((k for k in fitting if k >= first and _fit(graph, done[k], group, own)), None)
            if mergeable
            else None
        )
        if at is not None:
            done[at] = _both(graph, done[at], group)
        else:
            at = len(done)
            done.append(group)
            if mergeable:
                fitting.append(at)
        maker |= {r: at for r in group.roots if not isinstance(graph.nodes[r], MEMORY)}
    return done


def _fit(graph: Graph, group: Group, other: Group, own: Mapping[Ref, float]) -> bool:
    """Whether a kernel of both gains by it, and is none too large."""
    if group.when != other.when:
        return False
    of, more = _products(graph, group), _products(graph, other)
    if of or more:
        # What is computed from a product, at its index, or another product of the same left side.
        same = {product_kind(graph, r) for r in (*of, *more)}
        follows = bool({*other.reads} & {*group.roots})
        return (
            bool(of)
            and len(same) == 1
            and (bool(more) or follows)
            and is_small(graph, _both(graph, group, other), own)
        )
    shares = bool({*other.reads} & {*group.reads, *group.roots}) or not other.reads
    return shares and is_small(graph, _both(graph, group, other), own)


def is_small(graph: Graph, group: Group, own: Mapping[Ref, float]) -> bool:
    """Whether a kernel holds it, with each node's `own` operations.

    Of a row each stage, and each result, computes what is before it for itself.
    """
    ends = [(r,) for r in (*group.stages, *group.roots)] if group.stages else [group.roots]
    given = {*group.reads, *group.stages}
    behind = sum(own[r] for end in ends for r in members(graph, end, given - {*end}))
    few = len(_products(graph, group)) <= MOST_PRODUCTS
    return few and len(group.reads) + len(group.roots) <= MOST_ARRAYS and behind <= MOST_OPERATIONS


def _products(graph: Graph, group: Group) -> list[Ref]:
    return [r for r in group.stages if isinstance(graph.nodes[r], Product)]


def product_kind(graph: Graph, ref: Ref) -> tuple[object, ...]:
    """Equal for products that a kernel computes together: of the same left side, and of equal shapes and types."""
    node = graph.nodes[ref]
    assert isinstance(node, Product)
    return node.left, tuple(map(graph.extent, node.shape)), node.dtype


def _both(graph: Graph, group: Group, other: Group) -> Group:
    """One kernel for both; what one makes it need not read for the other, unless that is an input."""
    roots = (*group.roots, *other.roots)
    made = {r for r in roots if not isinstance(graph.nodes[r], MEMORY)}
    stages = (*group.stages, *other.stages)
    return Group(roots, tuple(sorted({*group.reads, *other.reads} - made)), stages, group.when)


def read_elsewhere(graph: Graph, group: Group) -> set[Ref]:
    """Of what a group reads that which it wants at another index than its own."""
    found: set[Ref] = set()
    seen: set[tuple[Ref, bool]] = set()
    todo = [(r, True) for r in group.roots]
    while todo:
        ref, here = todo.pop()
        if (ref, here) in seen:
            continue
        seen.add((ref, here))
        if ref in group.reads:
            found |= set() if here else {ref}
        else:
            node = graph.nodes[ref]
            kept = here and isinstance(node, Elementwise | Cast | Part | Ruled)
            todo += [(of, kept) for of in operands(node)]
    return found


def members(graph: Graph, roots: Iterable[Ref], given: Collection[Ref]) -> list[Ref]:
    """The nodes that the roots are computed from where some are given, and they themselves, in order."""
    found: set[Ref] = set()
    todo = list(roots)
    while todo:
        ref = todo.pop()
        if ref not in found and ref not in given:
            found.add(ref)
            todo += operands(graph.nodes[ref])
    return sorted(found)


def is_own(graph: Graph, ref: Ref) -> bool:
    """Whether no other node is computed in the kernel that stores this one."""
    node = graph.nodes[ref]
    return (
        isinstance(node, Scatter)
        or graph.lanes(ref) > 1
        or whole(graph, ref) is not None
        or (is_stage(graph, ref) and not is_row(graph, ref))
    )


def whole(graph: Graph, ref: Ref) -> Ref | None:
    """The grid kernel, or the loop whose turns are kernels, that a node is or is a result of."""
    node = graph.nodes[ref]
    at = node.of if isinstance(node, Part) else ref
    of = graph.nodes[at]
    return (
        at if isinstance(of, Launch) or (isinstance(of, Loop) and not graph.loops[of.scope].alone) else None
    )


def replayed(graph: Graph, ref: Ref) -> bool:
    """Whether a stored node is a result of a loop whose turns are kernels."""
    at = whole(graph, ref)
    return at is not None and isinstance(graph.nodes[at], Loop)


def is_stage(graph: Graph, ref: Ref) -> bool:
    """Whether a node makes a kernel of a kind of its own."""
    node = graph.nodes[ref]
    return isinstance(node, Product) or (isinstance(node, Reduce) and node.long)


def is_row(graph: Graph, ref: Ref) -> bool:
    """Whether a node reduces whole rows."""
    node = graph.nodes[ref]
    return isinstance(node, Reduce) and node.long and node.of_rows and not node.chunk


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
