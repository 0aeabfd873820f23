"""Which nodes of a graph are stored, and which are computed wherever they are wanted.

In: a graph and its results. Out: a decision for each node. Composition is always right, so this decides about time alone,
by one rule: a node is computed anew wherever it is wanted, unless that costs more than to write it once and to read it
there.

    anew    (places - 1) * work * OPERATION
    stored  (places + 1) * bytes * BYTE

`places` are the different indices at which an element of the consumers' needs one of the node, `work` the operations
behind it. Equal indices count once, since a kernel computes a node once for each index. A reduction is stored unless it is
wanted at one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from ..frozen import frozen
from ..operations import OPERATIONS
from .graph import (
    LEAVES,
    Axes,
    Call,
    Carried,
    Cast,
    Choose,
    Count,
    Elementwise,
    Embed,
    Fill,
    Gather,
    Graph,
    Index,
    Input,
    Loop,
    Node,
    Number,
    Part,
    Reduce,
    Ref,
    Reshape,
    Scatter,
    Slice,
    View,
    operands,
)

OPERATION = 1.0  # of a number, in units of time
BYTE = 0.5  # read or written
FUNCTION = 8.0  # an operation that has an error of its own is so many others
STRETCHED = 16.0  # places of an element that is broadcast over an axis of unknown length
TURNS = 16.0  # of a reduction or a loop
GATHERED = 4.0  # places of an element that an index array names
MOST_PATTERNS = 64

Pattern: TypeAlias = tuple[Any, ...]  # a root, and the maps from its index to the node's


@frozen
class Footprint:
    """What one element of a kernel needs: its own operations, and how many elements of each argument."""

    operations: float
    reads: Mapping[Ref, float]
    alone: str = ""  # why it is not fused, if it is not


@frozen
class Decision:
    """Why a node is stored, or where it is computed instead."""

    ref: Ref
    stored: bool
    places: float
    work: float
    why: str


def decide(
    graph: Graph, needed: Sequence[Ref], results: frozenset[Ref], feet: Mapping[Ref, Footprint]
) -> tuple[Decision, ...]:
    work = _work(graph, needed, feet)
    patterns: dict[Ref, dict[Pattern, float]] = {r: {} for r in needed}
    found: list[Decision] = []
    for ref in reversed(needed):
        node = graph.nodes[ref]
        if isinstance(node, LEAVES):
            if ref in results:
                found.append(Decision(ref, True, 0, 0, "it is a result"))
            continue
        places = sum(patterns[ref].values())
        foot = feet.get(node.of if isinstance(node, Part) else ref)
        several = isinstance(node, Call | Loop) and len(node.results) > 1  # its parts are stored
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
    if isinstance(node, Scatter):
        return "threads add into it"
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
        case Input() | Number() | Fill() | Count() | Index() | Carried() | View() | Part():
            return 0.0
        case Elementwise(op):
            return FUNCTION if OPERATIONS[op].ulp else 1.0
        case Cast() | Reduce() | Embed() | Gather() | Scatter() | Choose():
            return 1.0
        case Call() | Loop():
            return foot.operations if foot is not None else 1.0
    assert_never(node)


def _edges(graph: Graph, node: Node, foot: Footprint | None) -> list[tuple[Ref, Pattern, float]]:
    """For each operand the step from the node's index to the operand's, and how many elements of it are wanted."""
    match node:
        case Input() | Number() | Fill() | Count() | Index() | Carried():
            return []
        case Elementwise() | Cast() | Part() | Scatter() | Choose():
            return [(of, (), 1.0) for of in operands(node)]
        case View(of, map, _, shape):
            return [(of, (map,), _stretch(map, len(graph.nodes[of].shape), len(shape)))]
        case Reduce(_, of, axes, _, _, _):
            return [(of, (("reduced", axes),), 1.0)]
        case Embed(of, into, starts, steps, _, _):
            return [(of, (("embedded", starts, steps),), 1.0), (into, (), 1.0)]
        case Gather(of, at, axis, _, _):
            return [(of, (("gathered", at, axis),), GATHERED), (at, (("at", axis),), 1.0)]
        case Loop(scope, starts, outer, _, _, _):
            turns = [(of, (("turns", scope),), TURNS) for of in outer]
            return [*((of, (), 1.0) for of in starts), *turns]
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
