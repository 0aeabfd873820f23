"""What is computed from a product, or from reduced columns, where these are stored: in the same kernel.

In: groups. Out: fewer. A product, or a reduction of columns, that one kernel alone reads, at the index that it computes,
becomes a stage of that kernel; reductions of one kind that read the same arrays are one kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .fuse_groups import Group, is_own, is_row, is_small, is_stage, product_kind, read_elsewhere
from .graph import Graph, Reduce, Ref


def with_ends(
    graph: Graph, groups: Sequence[Group], results: Collection[Ref], own: Mapping[Ref, float]
) -> list[Group]:
    """The groups, of which some have become the first part of another."""
    makers = {g.roots[0]: g for g in groups if g.stages == g.roots and not is_row(graph, g.roots[0])}
    readers: dict[Ref, int] = {}
    for group in groups:
        for ref in group.needs:
            readers[ref] = readers.get(ref, 0) + 1
    gone: set[Ref] = set()
    found: list[Group] = []
    for group in groups:
        alone = [r for r in group.reads if r in makers and readers[r] == 1 and r not in results]
        made = _ended(graph, group, [makers[r] for r in alone], own) if alone else group
        gone |= {*made.stages} - {*group.stages}
        found.append(made)
    return _together(graph, [g for g in found if not gone & {*g.roots}], own)


def _ended(graph: Graph, group: Group, before: Sequence[Group], own: Mapping[Ref, float]) -> Group:
    """The group with as many stages as fit together."""
    if group.stages or is_own(graph, group.roots[0]):
        return group
    elsewhere = read_elsewhere(graph, group)
    shape = tuple(map(graph.extent, graph.nodes[group.roots[0]].shape))
    kind: Any = None
    for one in before:
        (ref,) = one.roots
        if (
            ref in elsewhere
            or one.when != group.when
            or tuple(map(graph.extent, graph.nodes[ref].shape)) != shape
            or (kind is not None and _kind(graph, ref) != kind)
        ):
            continue
        reads = tuple(sorted({*group.reads, *one.reads} - {ref}))
        made = replace(group, reads=reads, stages=(*group.stages, ref))
        if is_small(graph, made, own):
            group, kind = made, _kind(graph, ref)
    return group


def _together(graph: Graph, groups: Sequence[Group], own: Mapping[Ref, float]) -> list[Group]:
    """Groups that only reduce, in the same way and from the same arrays, as one."""
    done: dict[Any, Group] = {}
    for k, group in enumerate(groups):
        key: Any = k
        if group.stages and group.stages == group.roots and is_stage(graph, group.roots[0]):
            key = (_kind(graph, group.roots[0]), group.reads, group.when)
        other = done.get(key)
        if other is not None:
            both = (*other.roots, *group.roots)
            made = replace(group, roots=both, stages=both)
            if is_small(graph, made, own):
                done[key] = made
                continue
            key = k
        done[key] = group
    return list(done.values())


def _kind(graph: Graph, ref: Ref) -> Any:
    """Equal for reductions that run over the same elements, and for products of the same left side."""
    node = graph.nodes[ref]
    if not isinstance(node, Reduce):
        return product_kind(graph, ref)
    return tuple(map(graph.extent, graph.nodes[node.of].shape)), node.axes, node.chunk
