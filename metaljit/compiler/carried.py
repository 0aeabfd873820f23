"""What a loop that is replayed has to carry from turn to turn.

In: a graph and its results. Out: which arrays are filled row by row, so that a turn writes its row alone; and the graph
without the values that no result needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..extents import Extent, Lit, Sym, op
from ..frozen import frozen
from .graph import (
    Axes,
    Carried,
    Cast,
    Choose,
    Count,
    Elementwise,
    Fill,
    Graph,
    Index,
    Loop,
    Node,
    Number,
    Part,
    Ref,
    Turns,
    View,
    operands,
)
from .turns import outer

# ---- arrays that are filled ----

ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}


@frozen
class Row:
    """What a turn puts in an array's row `at`, which is an expression of the turn's number."""

    of: Ref
    at: Extent


def filled(graph: Graph, turns: Turns) -> Mapping[int, Row]:
    """The values of which a turn sets a row, `y = y.at[turn].set(v)`, and uses nothing else."""
    found = {}
    test = [turns.condition] if turns.condition is not None else []
    for k, value in enumerate(turns.values):
        row = _row(graph, turns, value, turns.after[k])
        if row is not None:
            rest = [r for j, r in enumerate(turns.after) if j != k]
            if value not in graph.needed([*rest, *test, row.of]):
                found[k] = row
    return found


def _row(graph: Graph, turns: Turns, value: Ref, after: Ref) -> Row | None:
    """The row that `At.set` with a number as its only key sets."""
    node = graph.nodes[after]
    if not isinstance(node, Choose) or node.otherwise != value:
        return None
    test, wide = graph.nodes[node.predicate], graph.nodes[node.then]
    if not isinstance(test, Elementwise) or test.op != "equal" or not isinstance(wide, View):
        return None
    along, number = (graph.nodes[a] for a in test.args)
    whole = Axes(tuple(range(1, len(node.shape))))
    if not isinstance(along, Index) or along.axis or number.shape or wide.map != whole:
        return None
    at = _extent(graph, test.args[1], turns.turn)
    return Row(_itself(graph, wide.of), at) if at is not None else None


def _itself(graph: Graph, ref: Ref) -> Ref:
    """What a view shows that moves no axis, and so stretches none."""
    node = graph.nodes[ref]
    same = isinstance(node, View) and node.map == Axes(tuple(range(len(node.shape))))
    return _itself(graph, node.of) if same else ref  # type: ignore[union-attr]


def _extent(graph: Graph, ref: Ref, turn: Ref | None) -> Extent | None:
    """A whole number as an expression of extents and of the turn's number."""
    match graph.nodes[ref]:
        case Number(name) if ref == turn:
            return Sym(name)
        case Fill(value):
            return Lit(int(value))
        case Count(extent):
            return graph.extent(extent)
        case Cast(of, dtype) if dtype.is_integer:
            return _extent(graph, of, turn)
        case Elementwise("where", (_, other, k)) if _counts_back(graph.nodes[other], k):
            return _extent(graph, k, turn)
        case Elementwise(name, (a, b)) if name in ARITHMETIC:
            left, right = _extent(graph, a, turn), _extent(graph, b, turn)
            return op(ARITHMETIC[name], left, right) if left is not None and right is not None else None
    return None


def _counts_back(node: Node, index: Ref) -> bool:
    """Whether it is an index from the end, as it stands beside one from the start in `At.set`."""
    return isinstance(node, Elementwise) and node.op == "add" and node.args[0] == index


# ---- values that nobody needs ----


def pruned(graph: Graph, results: Iterable[Ref]) -> Graph:
    """The graph whose replayed loops carry what the results need, and what that needs."""
    graph = replace(graph, nodes=list(graph.nodes), loops=dict(graph.loops))
    loops = {n.scope: r for r, n in enumerate(graph.nodes) if isinstance(n, Loop)}
    needed, live = _needed(graph, loops, results)
    for ref, places in live.items():
        loop = graph.nodes[ref]
        assert isinstance(loop, Loop)
        if 1 < len(places) < len(loop.starts) and not graph.loops[loop.scope].alone:
            _keep(graph, ref, loop, sorted(places))
            for r in needed:
                part = graph.nodes[r]
                if isinstance(part, Part) and part.of == ref:
                    graph.nodes[r] = replace(part, number=sorted(places).index(part.number))
    return graph


def _needed(
    graph: Graph, loops: Mapping[int, Ref], results: Iterable[Ref]
) -> tuple[set[Ref], dict[Ref, set[int]]]:
    """The nodes behind the results, those of turns among them, and which values of loops."""
    seen: set[Ref] = set()
    live: dict[Ref, set[int]] = {}
    todo = list(results)

    def value(loop: Ref, number: int) -> None:
        node = graph.nodes[loop]
        assert isinstance(node, Loop)
        turns = graph.loops[node.scope]
        places = live.setdefault(loop, set())
        if number not in places:
            places.add(number)
            todo.extend(
                r
                for r in (node.starts[number], turns.after[number], turns.count, turns.condition)
                if r is not None
            )

    while todo:
        ref = todo.pop()
        if ref in seen:
            continue
        seen.add(ref)
        match graph.nodes[ref]:
            case Part(of, number) if isinstance(graph.nodes[of], Loop):
                value(of, number)
            case Carried(scope, number) if scope in loops and number < len(graph.loops[scope].values):
                value(loops[scope], number)
            case Loop(scope):
                for number in range(len(graph.loops[scope].values)):
                    value(ref, number)
            case node:
                todo += operands(node)
    return seen, live


def _keep(graph: Graph, ref: Ref, loop: Loop, places: Sequence[int]) -> None:
    """Leaves a loop these values alone."""
    turns = graph.loops[loop.scope]
    turns = replace(
        turns, values=tuple(turns.values[k] for k in places), after=tuple(turns.after[k] for k in places)
    )
    graph.loops[loop.scope] = turns
    first = graph.nodes[turns.values[0]]
    graph.nodes[ref] = Loop(
        loop.scope,
        tuple(loop.starts[k] for k in places),
        outer(graph, turns),
        tuple(loop.results[k] for k in places),
        first.dtype,
        first.shape,
    )
