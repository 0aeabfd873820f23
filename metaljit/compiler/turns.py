"""Loops of a graph: what their turns use from outside, and whether each element can turn by itself.

In: a graph and a loop's scope. Out: nodes, and a verdict: a loop whose elements do not need one another runs inside a
kernel; another one is replayed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..operations import OPERATIONS
from .fuse_places import TURNS, Footprint, own_work
from .graph import (
    LEAVES,
    MEMORY,
    Call,
    Carried,
    Cast,
    Choose,
    Elementwise,
    Gather,
    Graph,
    Launch,
    Loop,
    Number,
    Part,
    Ref,
    Ruled,
    Shape,
    Turns,
    View,
    operands,
)
from .inline import dependent

GRID = "a grid kernel writes whole arrays"
WHOLE = "a turn needs the whole of the one before"
ENDLESS = "it may turn too often, and that is told by its own position"
MOST_COUNTED = 1024.0


def inside(graph: Graph, turns: Turns) -> set[Ref]:
    """The nodes that a turn computes anew."""
    moving = frozenset(turns.values) | ({turns.turn} if turns.turn is not None else set())
    return dependent(graph, _ends(turns), moving)


def outer(graph: Graph, turns: Turns) -> tuple[Ref, ...]:
    """What the turns use that is the same in all of them, but for views and arithmetic of indices and numbers."""
    moving = inside(graph, turns)
    found: set[Ref] = set()
    seen: set[Ref] = set()
    todo = [of for ref in moving for of in operands(graph.nodes[ref])] + list(_ends(turns))
    found |= {turns.count} if turns.count is not None else set()
    while todo:
        ref = todo.pop()
        if ref in moving or ref in seen:
            continue
        seen.add(ref)
        node = graph.nodes[ref]
        if isinstance(node, View) or _is_arithmetic(graph, ref):
            todo += operands(node)
        else:
            found.add(ref)
    return tuple(sorted(found))


def _is_arithmetic(graph: Graph, ref: Ref) -> bool:
    """Whether a node costs less to compute than to read: cheap operations on indices and numbers."""
    node = graph.nodes[ref]
    if isinstance(node, Elementwise | Cast | View):
        cheap = not isinstance(node, Elementwise) or not OPERATIONS[node.op].ulp
        return cheap and all(_is_arithmetic(graph, of) for of in operands(node))
    return isinstance(node, LEAVES) and not isinstance(node, MEMORY)


def _ends(turns: Turns) -> list[Ref]:
    return [*turns.after, *([turns.condition] if turns.condition is not None else [])]


def is_alone(graph: Graph, turns: Turns) -> bool:
    """Whether each element turns by itself: no turn reads another element of a value, nor reduces one."""
    shapes: set[Shape] = {tuple(map(graph.extent, graph.nodes[v].shape)) for v in turns.values} - {()}
    if len(shapes) > 1:
        return False
    moving = inside(graph, turns)
    return all(_is_elementwise(graph, ref, moving, shapes) for ref in moving)


def _is_elementwise(graph: Graph, ref: Ref, moving: set[Ref], shapes: set[Shape]) -> bool:
    node = graph.nodes[ref]
    shape = tuple(map(graph.extent, node.shape))
    if shape and shape not in shapes:
        return False
    match node:
        case Carried() | Number() | Elementwise() | Cast() | Ruled() | Choose():
            return True
        case Part(of):
            return not isinstance(graph.nodes[of], Call | Launch)
        case View(of):
            return not graph.nodes[of].shape
        case Gather(of, _):
            return of not in moving and len(graph.nodes[of].shape) == 1
        case Loop(scope):
            return graph.loops[scope].alone
        case _:
            return False


def footprint(graph: Graph, ref: Ref) -> Footprint:
    """What one element of a loop, or of a grid kernel's results, costs."""
    node = graph.nodes[ref]
    if isinstance(node, Launch):
        return Footprint(float(graph.kernels[node.key].program.cost.operations), {}, GRID)
    assert isinstance(node, Loop)
    turns = graph.loops[node.scope]
    if not turns.alone:
        return Footprint(0.0, {}, WHOLE)
    work = sum(own_work(graph.nodes[r], None) for r in inside(graph, turns))
    return Footprint(TURNS * work, {}, ENDLESS if turns.condition is not None else "")


def stored_for(graph: Graph, ref: Ref) -> Iterable[tuple[Ref, str]]:
    """What has to lie in memory before a grid kernel, or a loop that is replayed."""
    node = graph.nodes[ref]
    if isinstance(node, Launch):
        arrays = {p.name for p in graph.kernels[node.key].program.arrays}
        for name, of in node.arguments:
            if name in arrays and isinstance(of, int) and not isinstance(graph.nodes[of], MEMORY):
                yield of, "a grid kernel reads it"
        return
    assert isinstance(node, Loop)
    for of in node.starts:
        if not isinstance(graph.nodes[of], MEMORY):
            yield of, "a loop begins with it"
    for of in node.outer:
        if not isinstance(graph.nodes[of], LEAVES):
            yield of, "a loop reads it at every turn"
