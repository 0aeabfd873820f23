"""A plan explained: its kernels, what each moves and computes, and for every edge of the graph why it was fused or not.

In: what was planned of a graph, and the extents of a call. Out: an `Explanation`, a text that can also be drawn.
Without extents (ahead of time) what depends on them is unknown: NaN, shown as `?`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan, prod
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..compiler import fuse
from ..compiler import graph as g
from ..compiler.fuse_groups import members, replayed
from ..compiler.fuse_places import evaluations, own_work
from ..compiler.plan import TEMPORARY, Planned, Region
from ..extents import Lit, evaluate, show
from ..frozen import frozen, mutable

Role: TypeAlias = Literal["input", "passed", "result"]


@frozen
class Operation:
    """A node that a kernel computes, as `name = text`, and the user's line. `edges` say how its operands get there.

    One that is stored is called like its array.
    """

    ref: g.Ref
    name: str
    text: str
    where: str
    edges: tuple[tuple[str, fuse.Edge], ...]


@frozen
class Array:
    """The array of a node in memory: an input, a result, or what passes between kernels.

    `maker` and `readers` are kernels; `why` it is stored, and `brief` the same in a few words.
    """

    name: str
    ref: g.Ref
    type: str
    nbytes: float
    role: Role
    maker: int | None
    readers: tuple[int, ...]
    why: str = ""
    brief: str = ""


@frozen
class Kernel:
    """`nbytes` is what it must at least read and write, `operations` what it computes; a function like exp counts 8.

    `region` says which loop it is a turn of, if it is.
    """

    number: int
    domain: str
    schedule: str
    nbytes: float
    operations: float
    arrays: tuple[str, ...]
    steps: tuple[Operation, ...]
    region: str = ""

    @property
    def intensity(self) -> float:
        return self.operations / self.nbytes if self.nbytes else nan


@frozen
class Facts:
    """What there is to say. `alone_nbytes` is what `alone` kernels would move, if each step were one."""

    name: str
    kernels: tuple[Kernel, ...]
    arrays: tuple[Array, ...]
    edges: tuple[fuse.Edge, ...]
    nbytes: float
    alone: int
    alone_nbytes: float


class Explanation(str):
    """What became of a traced function, as text that can also be drawn. `facts` has all of it as data."""

    facts: Facts

    def __new__(cls, text: str, facts: Facts) -> Explanation:
        made = super().__new__(cls, text)
        made.facts = facts
        return made

    @property
    def dot(self) -> str:
        """The graph for Graphviz: a cluster for each kernel, a label for each edge."""
        from .explain_dot import dot

        return dot(self.facts)

    def svg(self) -> str:
        """The picture: kernels as boxes with what they compute, arrays between them."""
        from .explain_svg import svg

        return svg(self.facts)

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Writes `.svg`, `.dot` or `.txt`, as the name ends. ValueError for another ending."""
        path = Path(path)
        match path.suffix:
            case ".svg":
                text = self.svg()
            case ".dot":
                text = self.dot
            case ".txt":
                text = f"{self}\n"
            case other:
                raise ValueError(
                    f"an explanation is saved as .svg, .dot or .txt, not as {other or 'nothing'!r}"
                )
        path.write_text(text, encoding="utf-8")


def explained(planned: Planned, env: Mapping[str, Any] | None = None) -> Explanation:
    """What became of a graph, at the extents and numbers of a call."""
    from .explain_text import text

    shared = _Shared({}, {})
    regions = [_Explained(region, shared, env or {}) for region in planned.regions]
    unfused = [g for r in regions for g in r.unfused()]
    kernels = tuple(k for r in regions for k in r.kernels())
    facts = Facts(
        planned.plan.name,
        kernels,
        tuple(shared.arrays.values()),
        tuple(e for r in regions for e in r.edges),
        sum(k.nbytes for k in kernels),
        len(unfused),
        sum(unfused),
    )
    return Explanation(text(facts), facts)


@mutable
class _Shared:
    """What the regions of a plan share: arrays by their names in it, and what temporaries are called here."""

    arrays: dict[str, Array]
    called: dict[str, str]
    kernels: int = 0

    def name(self, name: str) -> str:
        if not name.startswith(TEMPORARY):
            return name
        return self.called.setdefault(name, f"t{len(self.called)}")


class _Explained:
    """A region: its kernels are numbered on from those of the regions before it."""

    def __init__(self, region: Region, shared: _Shared, env: Mapping[str, Any]) -> None:
        self.region, self.shared, self.env = region, shared, env
        self.graph, self.fusion = region.graph, region.fusion
        self.decisions = {d.ref: d for d in self.fusion.decisions}
        self.numbers: dict[int, int] = {}  # of groups that are kernels
        for k, group in enumerate(self.fusion.groups):
            if not replayed(self.graph, group.roots[0]):
                self.numbers[k] = shared.kernels
                shared.kernels += 1
        found = fuse.edges(self.graph, self.fusion)
        self.edges = [replace(e, kernel=self.numbers[e.kernel]) for e in found if e.kernel in self.numbers]
        self.stored = {r: shared.name(n) for r, n in region.names.items()}
        self._arrays()

    def kernels(self) -> Iterator[Kernel]:
        for k, group in enumerate(self.fusion.groups):
            if k in self.numbers:
                yield self._kernel(self.numbers[k], group)

    def unfused(self) -> list[float]:
        """What each kernel would move if each step were one."""
        fusion = fuse.fuse(self.graph, self.region.results, self.fusion.feet.__getitem__, fused=False)
        groups = [g for g in fusion.groups if not replayed(self.graph, g.roots[0])]
        return [self._moved(g) for g in groups]

    # ---- amounts ----

    def _sizes(self, ref: g.Ref) -> tuple[float, ...]:
        return tuple(self._size(self.graph.extent(e)) for e in self.graph.nodes[ref].shape)

    def _size(self, extent: Any) -> float:
        try:
            return float(evaluate(extent, self.env))
        except KeyError:
            return nan

    def _nbytes(self, ref: g.Ref) -> float:
        return float(prod(self._sizes(ref))) * self.graph.nodes[ref].dtype.nbytes

    def _moved(self, group: Any) -> float:
        return sum(self._nbytes(r) for r in (*group.reads, *group.roots))

    def _operations(self, group: Any) -> float:
        ends = [(r,) for r in (*group.stages, *group.roots)] if group.stages else [group.roots]
        given = {*group.reads, *group.stages}
        total = 0.0
        for end in ends:
            found = evaluations(
                self.graph, end, given - {*end}, self.fusion.feet, lambda r: float(prod(self._sizes(r)))
            )
            for ref, times in found.items():
                node = self.graph.nodes[ref]
                each = 1.0
                if isinstance(node, g.Reduce):
                    each = prod(self._sizes(node.of)) / max(prod(self._sizes(ref)), 1)
                elif isinstance(node, g.Product):
                    each = 2.0 * self._sizes(node.left)[-1]
                total += times * each * own_work(node, self.fusion.feet.get(ref))
        return total

    # ---- parts ----

    def _kernel(self, number: int, group: Any) -> Kernel:
        first = self.graph.nodes[group.stages[0] if group.stages else group.roots[0]]
        shape = (
            self.graph.nodes[first.of].shape if group.stages and isinstance(first, g.Reduce) else first.shape
        )
        if isinstance(first, g.Part) and isinstance(self.graph.nodes[first.of], g.Launch):
            first = self.graph.nodes[first.of]
        schedule = _schedule(first, len(group.stages))
        return Kernel(
            number, ', '.join(self._shown(shape)), schedule, self._moved(group), self._operations(group),
            tuple(map(self._called, (*group.reads, *group.roots))), self._steps(number, group), self.region.title,
        )  # fmt: skip

    def _steps(self, number: int, group: Any) -> tuple[Operation, ...]:
        inner = [
            r
            for r in members(self.graph, (*group.roots, *group.stages), group.reads)
            if not isinstance(self.graph.nodes[r], g.Number | g.Fill | g.Count | g.Index)
        ]
        names = {r: f"%{k}" for k, r in enumerate(r for r in inner if r not in group.roots)}
        names |= {r: self.stored[r] for r in group.roots}
        into: dict[g.Ref, list[fuse.Edge]] = {}
        for edge in self.edges:
            if edge.kernel == number:
                into.setdefault(edge.consumer, []).append(edge)
        found = []
        for ref in inner:
            edges = tuple((names.get(e.producer) or self._called(e.producer), e) for e in into.get(ref, ()))
            operands = [names.get(r) or self._called(r) for r in g.operands(self.graph.nodes[ref])]
            what = f"{described(self.graph, ref)}({', '.join(operands)})"
            found.append(Operation(ref, names[ref], what, _where(self.graph, ref), edges))
        return tuple(found)

    def _arrays(self) -> None:
        """Tells of the arrays that the region's kernels read and write."""
        readers: dict[g.Ref, list[int]] = {}
        for k, group in enumerate(self.fusion.groups):
            for ref in group.reads if k in self.numbers else ():
                readers.setdefault(ref, []).append(self.numbers[k])
        for ref, kernels in sorted(readers.items()):
            if isinstance(self.graph.nodes[ref], g.MEMORY):
                role: Role = "input" if isinstance(self.graph.nodes[ref], g.Input) else "passed"
                self._tell(self._called(ref), ref, role, None, kernels)
        for k, group in enumerate(self.fusion.groups):
            for ref in group.roots:
                again = [] if isinstance(self.graph.nodes[ref], g.MEMORY) else readers.get(ref, [])
                name = self.stored[ref]
                role = "result" if self.region.names[ref] == name else "passed"
                self._tell(name, ref, role, self.numbers.get(k), again)

    def _tell(self, name: str, ref: g.Ref, role: Role, maker: int | None, readers: Sequence[int]) -> None:
        known = self.shared.arrays.get(name)
        if known is not None and maker is None:  # of a region around this one
            self.shared.arrays[name] = replace(known, readers=(*known.readers, *readers))
            return
        node = self.graph.nodes[ref]
        decision = self.decisions.get(ref)
        shape = self._shown(node.shape)
        type = f"{node.dtype.name}[{', '.join(shape)}]" if shape else node.dtype.name
        why, brief = ("", "") if decision is None or maker is None else (decision.why, decision.brief)
        self.shared.arrays[name] = Array(
            name, ref, type, self._nbytes(ref), role, maker, tuple(readers), why, brief
        )

    # ---- names ----

    def _shown(self, shape: Sequence[Any]) -> list[str]:
        """Extents as numbers where they are known."""
        sizes = [self._size(self.graph.extent(e)) for e in shape]
        return [
            show(self.graph.extent(e)) if isnan(n) else f"{n:.0f}" for e, n in zip(shape, sizes, strict=True)
        ]

    def _called(self, ref: g.Ref) -> str:
        """What is no operation of the kernel: an array, or a number."""
        match self.graph.nodes[ref]:
            case g.Input(name) | g.Number(name):
                return name
            case g.Fill(value):
                return f"{value:g}" if isinstance(value, float) else str(value)
            case g.Count(extent):
                return show(self.graph.extent(extent))
            case g.Index(axis):
                return f"index {axis}"
            case _:
                return self.stored[ref]


def _schedule(first: g.Node, stages: int) -> str:
    """How threads share a kernel's work, by its first stage, or root if there are no `stages`."""
    count = f"{stages} reduction{'' if stages == 1 else 's'}"
    match first:
        case g.Launch():
            return "a grid kernel"
        case g.Product():
            return "a threadgroup to a tile of a matrix product"
        case g.Reduce(chunk=chunk) if chunk and first.of_rows:
            return f"a threadgroup to {chunk} columns of a row, {count}, the first of two passes"
        case g.Reduce(chunk=chunk) if chunk:
            return f"a thread to {chunk} rows of a column, {count}, the first of two passes"
        case g.Reduce() if stages and first.of_rows:
            return f"a threadgroup to a row, {count}"
        case g.Reduce() if stages:
            return f"a thread to a column, {count}"
        case _:
            return "a thread to an element"


def described(graph: g.Graph, ref: g.Ref) -> str:
    """A node as a reader knows it: what it does."""
    match graph.nodes[ref]:
        case g.Elementwise(op):
            return op
        case g.Reduce(op, of, axes):
            return f"{op} over {', '.join(map(str, axes))}" if len(axes) < len(graph.nodes[of].shape) else op
        case g.Launch(key):
            return str(graph.kernels[key].program.name)
        case g.Call(key):
            return str(graph.kernels[key].function.name)
        case g.Part(_, number):
            return f"result {number}"
        case g.View(_, g.Slice()):
            return "slice"
        case g.View(_, g.Axes()):
            return _axes(graph, ref)
        case g.View(_, g.Reshape()):
            return "reshape"
        case g.View(_, g.Windows()):
            return "windows"
        case node:
            return type(node).__name__.lower()


def _axes(graph: g.Graph, ref: g.Ref) -> str:
    """What a view of axes does: they change places, are stretched, come or go."""
    node = graph.nodes[ref]
    assert isinstance(node, g.View)
    assert isinstance(node.map, g.Axes)
    along = [a for a in node.map.along if a is not None]
    if along != sorted(along):
        return "transpose"
    if any(e != Lit(1) for k, e in enumerate(node.shape) if k not in along):
        return "broadcast"
    return "expand" if len(node.shape) > len(along) else "squeeze"


def _where(graph: g.Graph, ref: g.Ref) -> str:
    span = graph.spans[ref]
    return f"{span.source.name.rpartition('/')[2]}:{span.line}" if span.line else ""
