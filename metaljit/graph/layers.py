"""Where the nodes of a drawing stand: in layers from top to bottom, every edge going down.

In: sizes of nodes and edges between them. Out: places, and the points through which the edges go. The steps are those of
Sugiyama, Tagawa and Toda (1981): layers by depth, a place-holder wherever an edge crosses a layer, an order in each layer
by the mean of the neighbours', then coordinates that follow the neighbours and keep that order. Equal input, equal output.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from ..frozen import frozen, mutable

Key: TypeAlias = Hashable
Point: TypeAlias = tuple[float, float]

GAP = 24.0  # between nodes of a layer
RISE = 34.0  # between layers
SWEEPS = 8
STIFF = 8.0  # weight of what is to be straight


@frozen
class Box:
    """A node's place: its left upper corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@frozen
class Layout:
    width: float
    height: float
    boxes: Mapping[Key, Box]
    routes: Mapping[tuple[Key, Key], tuple[Point, ...]]


@mutable
class _Layers:
    """Nodes and place-holders by layer, with their neighbours above and below, and the middles of all."""

    rows: list[list[Key]]
    above: dict[Key, list[Key]]
    below: dict[Key, list[Key]]
    sizes: dict[Key, tuple[float, float]]
    middle: dict[Key, float]
    holders: set[Key]


def laid_out(sizes: Mapping[Key, tuple[float, float]], edges: Sequence[tuple[Key, Key]]) -> Layout:
    """The layout of an acyclic graph. Nodes are given in an order in which every edge goes forwards."""
    layers = _layered(sizes, list(dict.fromkeys(edges)))
    for sweep in range(SWEEPS):
        _order(layers, downwards=sweep % 2 == 0)
    _place(layers)
    return _finished(layers, sizes, list(dict.fromkeys(edges)))


def _layered(sizes: Mapping[Key, tuple[float, float]], edges: Sequence[tuple[Key, Key]]) -> _Layers:
    depth = dict.fromkeys(sizes, 0)
    before: dict[Key, list[Key]] = {n: [] for n in sizes}
    after: dict[Key, list[Key]] = {n: [] for n in sizes}
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    for node in sizes:
        depth[node] = max((depth[a] + 1 for a in before[node]), default=0)
    for node in sizes:
        if not before[node] and after[node]:
            depth[node] = min(depth[b] for b in after[node]) - 1  # beside what it is for
    made = _Layers([[] for _ in range(max(depth.values(), default=-1) + 1)], {}, {}, dict(sizes), {}, set())
    for node in sizes:
        made.rows[depth[node]].append(node)
        made.above[node], made.below[node] = [], []
    for a, b in edges:
        chain = [a, *((a, b, k) for k in range(depth[a] + 1, depth[b])), b]
        for k, holder in enumerate(chain[1:-1], depth[a] + 1):
            made.rows[k].append(holder)
            made.above[holder], made.below[holder] = [], []
            made.sizes[holder] = (2.0, 0.0)
            made.holders.add(holder)
        for upper, lower in itertools.pairwise(chain):
            made.below[upper].append(lower)
            made.above[lower].append(upper)
    return made


def _order(layers: _Layers, downwards: bool) -> None:
    """Sorts each layer by the mean place of the neighbours in the layer before."""
    near = layers.above if downwards else layers.below
    rows = layers.rows if downwards else layers.rows[::-1]
    for previous, row in itertools.pairwise(rows):
        place = {n: k for k, n in enumerate(previous)}
        own = {n: k * len(previous) / max(len(row), 1) for k, n in enumerate(row)}
        mean = {n: _mean([place[m] for m in near[n]], own[n]) for n in row}
        row.sort(key=mean.__getitem__)


def _place(layers: _Layers) -> None:
    """Coordinates: from the left first, then each layer moves to its neighbours, in turns from above and from below."""
    for row in layers.rows:
        x = 0.0
        for node in row:
            width = layers.sizes[node][0]
            layers.middle[node] = x + width / 2
            x += width + GAP
    for sweep in range(2 * SWEEPS):
        near = layers.above if sweep % 2 == 0 else layers.below
        for row in layers.rows if sweep % 2 == 0 else layers.rows[::-1]:
            wish = [_wish(layers, n, near[n]) for n in row]
            heavy = [1.0 if n in layers.holders else STIFF for n in row]
            for node, x in zip(row, _apart(wish, heavy, [layers.sizes[n][0] for n in row]), strict=True):
                layers.middle[node] = x


def _wish(layers: _Layers, node: Key, near: Sequence[Key]) -> float:
    """Where a node would like to be: under its like rather than under a line that passes, and a line straight."""
    weights = [STIFF if (n in layers.holders) == (node in layers.holders) else 1.0 for n in near]
    total = sum(w * layers.middle[n] for w, n in zip(weights, near, strict=True))
    return total / sum(weights) if near else layers.middle[node]


def _apart(wish: Sequence[float], weights: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The middles nearest to those wished for, in their order and with room between: blocks that touch share a shift."""
    offsets = [0.0]
    for a, b in itertools.pairwise(widths):
        offsets.append(offsets[-1] + (a + b) / 2 + GAP)
    blocks: list[tuple[float, float, int]] = []  # the mean of wish - offset, weight and number of nodes
    for x, weight, offset in zip(wish, weights, offsets, strict=False):
        mean, heavy, count = x - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, more, nodes = blocks.pop()
            mean = (mean * heavy + other * more) / (heavy + more)
            heavy, count = heavy + more, count + nodes
        blocks.append((mean, heavy, count))
    shifts = [mean for mean, _, count in blocks for _ in range(count)]
    return [shift + offset for shift, offset in zip(shifts, offsets, strict=False)]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _finished(
    layers: _Layers, sizes: Mapping[Key, tuple[float, float]], edges: Sequence[tuple[Key, Key]]
) -> Layout:
    left = min((layers.middle[n] - layers.sizes[n][0] / 2 for n in layers.middle), default=0.0)
    boxes: dict[Key, Box] = {}
    spans: dict[Key, tuple[float, float]] = {}  # top and bottom of the layer
    y = 0.0
    for row in layers.rows:
        height = max((layers.sizes[n][1] for n in row), default=0.0)
        for node in row:
            width, own = layers.sizes[node]
            spans[node] = y, y + height
            if node in sizes:
                boxes[node] = Box(layers.middle[node] - width / 2 - left, y + (height - own) / 2, width, own)
        y += height + RISE
    routes = {(a, b): _route(layers, boxes, spans, left, a, b) for a, b in edges}
    reach = [b.x + b.width for b in boxes.values()] + [x for points in routes.values() for x, _ in points]
    return Layout(max(reach, default=0.0), max(y - RISE, 0.0), boxes, routes)


def _route(
    layers: _Layers, boxes: Mapping[Key, Box], spans: Mapping[Key, Point], left: float, a: Key, b: Key
) -> tuple[Point, ...]:
    """From a box straight down to the end of its layer, by the place-holders, and straight down to the other box."""
    x = layers.middle[a] - left
    points = [(x, boxes[a].y + boxes[a].height), (x, spans[a][1])]
    at = a
    while at != b:
        at = next(n for n in layers.below[at] if n == b or (n in layers.holders and n[:2] == (a, b)))  # type: ignore[index]
        x = layers.middle[at] - left
        points += [(x, spans[at][0]), (x, boxes[b].y if at == b else spans[at][1])]
    return tuple(dict.fromkeys(points))
