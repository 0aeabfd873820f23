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

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias, assert_never

from ..frozen import frozen
from ..operations import OPERATIONS
from .fuse_groups import members
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
    Launch,
    Loop,
    Node,
    Number,
    Part,
    Product,
    Reduce,
    Ref,
    Reshape,
    Ruled,
    Scatter,
    Slice,
    View,
    Windows,
    in_parts,
    operands,
)

OPERATION = 1.0  # of a number, in units of time
BYTE = 0.5  # read or written
FUNCTION = 8.0  # an operation that has an error of its own is so many others
STRETCHED = 16.0  # places of an element that is broadcast over an axis of unknown length
TURNS = 16.0  # of a reduction or a loop
GATHERED = 4.0  # places of an element that an index array names
MOST_PATTERNS = 64

Step: TypeAlias = tuple[
    Any, ...
]  # the map from a node's index to an operand's; empty where they are the same


@frozen
class Footprint:
    """What one element of a kernel needs: its own operations, and how many elements of each argument."""

    operations: float
    reads: Mapping[Ref, float]
    alone: str = ""  # why it is not fused, if it is not


Rule: TypeAlias = Literal[
    "result",
    "alone",
    "row",
    "product",
    "reduction",
    "kinds",
    "cost",
    "size",
    "unfused",
    "one",
    "view",
    "cheap",
]


@frozen
class Decision:
    """Why a node is stored, or computed where it is wanted, by the first rule that says so.

    `anew` and `kept` are the two sides of the rule of cost for an element.
    """

    ref: Ref
    rule: Rule
    places: float
    work: float
    anew: float
    kept: float
    why: str

    @property
    def brief(self) -> str:
        """The reason in a few words, for a drawing."""
        match self.rule:
            case "cost":
                return f"{self.places:.0f} places: anew {self.anew:.0f} > {self.kept:.0f} stored"
            case "cheap":
                return f"{self.places:.0f} places: anew {self.anew:.0f} ≤ {self.kept:.0f} stored"
            case _:
                return self.why

    @property
    def stored(self) -> bool:
        return self.rule not in ("one", "view", "cheap")


# ---- what is stored ----


def decide(
    graph: Graph, needed: Sequence[Ref], results: Mapping[Ref, str], feet: Mapping[Ref, Footprint]
) -> tuple[Decision, ...]:
    """`results` are stored whatever it costs, for the reasons given."""
    work = _work(graph, needed, results, feet)
    patterns: dict[Ref, dict[int, float]] = {r: {} for r in needed}
    numbers: dict[tuple[int, Step], int] = {}  # of patterns: that of a root is the root's ref
    found: list[Decision] = []
    for ref in reversed(needed):
        node = graph.nodes[ref]
        if isinstance(node, LEAVES):
            if ref in results:
                found.append(Decision(ref, "result", 0, 0, 0, 0, results[ref]))
            continue
        foot = feet.get(node.of if isinstance(node, Part) else ref)
        decision = _decided(graph, ref, results.get(ref, ""), patterns[ref], work[ref], foot)
        found.append(decision)
        here = {ref: 1.0} if decision.stored else patterns[ref]
        for of, step, times in _edges(graph, node, feet.get(ref)):
            _spread(patterns[of], numbers, here, step, times)
    return tuple(reversed(found))


def _spread(
    target: dict[int, float],
    numbers: dict[tuple[int, Step], int],
    here: Mapping[int, float],
    step: Step,
    times: float,
) -> None:
    """Adds to where an operand is wanted where its reader is, a step further; equal places are one."""
    for pattern, count in here.items():
        full = numbers.setdefault((pattern, step), ~len(numbers)) if step else pattern
        target[full] = max(target.get(full, 0.0), count * times)


def _decided(
    graph: Graph,
    ref: Ref,
    result: str,
    patterns: Mapping[int, float],
    work: float,
    foot: Footprint | None,
) -> Decision:
    node = graph.nodes[ref]
    places = sum(patterns.values())
    anew, kept = _costs(node, work, places)

    def made(rule: Rule, why: str) -> Decision:
        return Decision(ref, rule, places, work, anew, kept, why)

    if result:
        return made("result", result)
    if in_parts(node):
        return made("one", "its results are stored or not, each by itself")
    if foot is not None and foot.alone:
        return made("alone", foot.alone)
    if isinstance(node, Product):
        return made("product", "its tiles are computed together")
    if isinstance(node, Reduce) and node.long:
        return made(
            "row", "a threadgroup reduces a row" if node.of_rows else "columns are reduced side by side"
        )
    if isinstance(node, Scatter):
        return made("alone", "threads add into it")
    if isinstance(node, Reduce) and places > 1:
        return made("reduction", f"a reduction that is wanted at {places:.0f} places")
    if len(patterns) > MOST_PATTERNS:
        return made("kinds", f"it is wanted at more than {MOST_PATTERNS} kinds of places")
    if isinstance(node, View | Ruled):
        return made("view", "a view moves nothing")
    computing = f"{work:.0f} operation{'' if round(work) == 1 else 's'} anew at {places:.0f} places cost"
    if anew > kept:
        return made("cost", f"{computing} more than to store it: {anew:.0f} > {kept:.0f}")
    if places > 1:
        return made("cheap", f"{computing} no more than to store it: {anew:.0f} ≤ {kept:.0f}")
    return made("one", "it is wanted at one place")


def _work(
    graph: Graph, needed: Sequence[Ref], results: Mapping[Ref, str], feet: Mapping[Ref, Footprint]
) -> dict[Ref, float]:
    """Operations behind an element. What is stored in any case counts nothing: a result, a reduction, and what one of its
    readers alone wants at so many places that the rule says so."""
    most = _most_places(graph, needed, feet)
    work: dict[Ref, float] = {}
    brings: dict[Ref, float] = {}
    for ref in needed:
        node = graph.nodes[ref]
        behind = sum(
            brings[of] * (times if isinstance(node, Call) else 1.0)
            for of, _, times in _edges(graph, node, feet.get(ref))
        )
        work[ref] = (behind + own_work(node, feet.get(ref))) * (
            TURNS if isinstance(node, Reduce | Product) else 1.0
        )
        anew, kept = _costs(node, work[ref], most[ref])
        view = isinstance(node, View | Ruled)
        sure = ref in results or isinstance(node, Reduce | Product | Scatter) or (anew > kept and not view)
        brings[ref] = 0.0 if sure else work[ref]
    return work


def _most_places(graph: Graph, needed: Sequence[Ref], feet: Mapping[Ref, Footprint]) -> dict[Ref, float]:
    """At how many places one reader wants each node; a view wants it where its own readers want that."""
    most = dict.fromkeys(needed, 0.0)
    for ref in reversed(needed):
        node = graph.nodes[ref]
        for of, _, times in _edges(graph, node, feet.get(ref)):
            here = max(most[ref], 1.0) if isinstance(node, View | Ruled) else 1.0
            most[of] = max(most[of], times * here)
    return most


def _costs(node: Node, work: float, places: float) -> tuple[float, float]:
    """The two sides of the rule: to compute an element anew, and to store it."""
    return max(places - 1, 0) * work * OPERATION, (places + 1) * node.dtype.nbytes * BYTE


def own_work(node: Node, foot: Footprint | None) -> float:
    """Operations of an element of a node alone."""
    match node:
        case Input() | Number() | Fill() | Count() | Index() | Carried() | View() | Ruled() | Part():
            return 0.0
        case Elementwise(op):
            return FUNCTION if OPERATIONS[op].ulp else 1.0
        case Cast() | Reduce() | Product() | Embed() | Gather() | Scatter() | Choose():
            return 1.0
        case Call() | Launch() | Loop():
            return foot.operations if foot is not None else 1.0
    assert_never(node)


def evaluations(
    graph: Graph,
    ends: Collection[Ref],
    given: Collection[Ref],
    feet: Mapping[Ref, Footprint],
    size: Callable[[Ref], float],
) -> dict[Ref, float]:
    """How many elements of each node a kernel computes that makes `ends` where others are `given`."""
    patterns: dict[Ref, dict[int, float]] = {}
    numbers: dict[tuple[int, Step], int] = {}
    for ref in reversed(members(graph, ends, given)):
        node = graph.nodes[ref]
        here = patterns.setdefault(ref, {})
        if ref in ends:
            here[ref] = size(ref)
        for of, step, times in _edges(graph, node, feet.get(ref)):
            ratio = size(of) / max(size(ref), 1) if isinstance(node, Reduce) else 1.0
            turns = times if isinstance(node, Call) else ratio
            _spread(patterns.setdefault(of, {}), numbers, here, step, turns)
    return {ref: sum(found.values()) for ref, found in patterns.items() if ref not in given}


def _edges(graph: Graph, node: Node, foot: Footprint | None) -> list[tuple[Ref, Step, float]]:
    """For each operand the step from the node's index to the operand's, and how many elements of it are wanted."""
    match node:
        case Input() | Number() | Fill() | Count() | Index() | Carried():
            return []
        case Elementwise() | Cast() | Part() | Ruled() | Scatter() | Choose():
            return [(of, (), _beside(graph, of, node)) for of in operands(node)]
        case View(of, map, _, shape):
            return [(of, (map,), _stretch(map, len(graph.nodes[of].shape), len(shape)))]
        case Product(left, right):
            return [(left, (("rows",),), STRETCHED), (right, (("columns",),), STRETCHED)]
        case Reduce(_, of, axes):
            return [(of, (("reduced", axes),), 1.0)]
        case Embed(of, into, starts, steps, _, _):
            return [(of, (("embedded", starts, steps),), 1.0), (into, (), 1.0)]
        case Gather(of, at, axis, _, _):
            return [(of, (("gathered", at, axis),), GATHERED), (at, (("at", axis),), 1.0)]
        case Loop(scope, starts, outer, _, _, _):
            turns = [(of, (("turns", scope),), TURNS) for of in outer]
            return [*((of, (), 1.0) for of in starts), *turns]
        case Call() | Launch():
            reads = foot.reads if foot is not None else {}
            return [(of, (("read", node.key),), max(reads.get(of, 1.0), 1.0)) for of in operands(node)]
    assert_never(node)


def _beside(graph: Graph, of: Ref, node: Node) -> float:
    """How often a number is wanted that stands beside an array."""
    return STRETCHED if node.shape and not graph.nodes[of].shape else 1.0


def _stretch(map: Any, before: int, after: int) -> float:
    """How often an element of the source is seen in a view."""
    match map:
        case Axes(along):
            kept = {a for a in along if a is not None}
            return STRETCHED if len(kept) < after and before else 1.0
        case Slice() | Reshape() | Windows():
            return 1.0
        case _:
            return 1.0
