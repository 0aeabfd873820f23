"""Graph → Plan: its groups as programs, in the order in which they run.

In: a graph, its parameters and its results. Out: a `Plan`, all that a device needs, and why each kernel is what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from ..extents import Extent, Lit, substituted
from ..frozen import frozen, mutable
from ..program import ArrayParam, Place, Plan, Repeat, Requirement, Role, ScalarParam, Step, When
from ..source import TypeFault
from . import fuse, ir
from .carried import filled, pruned
from .fuse_groups import Group, whole
from .fuse_places import Footprint
from .graph import (
    Call,
    Carried,
    Count,
    Fill,
    Graph,
    Input,
    Launch,
    Loop,
    Node,
    Number,
    Part,
    Product,
    Reduce,
    Ref,
    Scatter,
)
from .lower import columns, grouped, parameters, products, rows
from .lower.values import Fault
from .pipeline import optimise
from .pipeline import program as compiled
from .usage import blocks, cost, costs, expressions, turns, walk_expressions

Lowering: TypeAlias = Callable[[Graph, grouped.Group, str], parameters.Lowered]

TEMPORARY = "#"  # begins the names of what lives between kernels: no parameter is called so


@frozen
class Region:
    """Steps with what was decided about them: a plan's own, or those of the turns of a loop, then with a `title`.

    `names` are what the arrays are called in the plan that its kernels read and write.
    """

    title: str
    graph: Graph
    fusion: fuse.Fusion
    results: tuple[Ref, ...]
    names: Mapping[Ref, str]


@frozen
class Planned:
    plan: Plan
    regions: tuple[Region, ...]


def plan(
    graph: Graph,
    name: str,
    params: Sequence[Ref],
    results: Sequence[Ref],
    *,
    math: str = "precise",
    fused: bool = True,
) -> Planned:
    """The plan of a graph. `params` are its `Input`s and `Number`s in the order of the call."""
    different = list(dict.fromkeys(results))
    graph = pruned(graph, different)
    names = dict(zip(different, parameters.result_names(len(different)), strict=True))
    planner = _Planner(name, math, fused)
    try:
        steps = planner.region(graph, "", names, {})
    except Fault as e:  # such as a literal that its type does not hold
        raise TypeFault(e.diagnostic) from None
    span = graph.spans[results[0]]
    whole = Plan(
        name,
        Place.of(span),
        tuple(_param(graph, r) for r in params),
        tuple(_array(graph, r, n) for r, n in names.items()),
        tuple(a for n, a in planner.arrays.items() if n not in names.values()),
        steps,
        tuple(Requirement(graph.extent(e), why, Place.of(at)) for e, why, at in graph.requirements),
    )
    return Planned(whole, tuple(planner.regions))


@mutable
class _Planner:
    """What a plan's regions share. `arrays` are those that steps write, by name."""

    name: str
    math: str
    fused: bool
    arrays: dict[str, ArrayParam] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)

    def region(
        self, graph: Graph, title: str, results: Mapping[Ref, str], outer: Mapping[Ref, str]
    ) -> tuple[Step | Repeat, ...]:
        """The steps that compute nodes into arrays of these names. `outer` arrays are there."""
        fusion = fuse.fuse(graph, list(results), _footprints(graph, self.math), self.fused)
        made = {r: f"{TEMPORARY}{r}" for g in fusion.groups for r in g.roots} | dict(results)
        read = {r: _read(graph, r, {**outer, **made}) for group in fusion.groups for r in group.needs}
        self.regions.append(Region(title, graph, fusion, tuple(results), {**read, **made}))
        steps: list[Step | Repeat] = []
        for group in fusion.groups:
            for ref in group.roots:
                self.arrays[made[ref]] = _array(graph, ref, made[ref])
            names = {r: read[r] for r in group.needs}
            when = tuple((names[ref], holds) for ref, holds in sorted(group.when))
            one = whole(graph, group.roots[0])
            if one is None:
                steps.append(self._step(graph, group, names, made, when))
            elif isinstance(graph.nodes[one], Launch):
                steps.append(self._launch(graph, one, group, names, made, when))
            else:
                steps.append(self._repeat(graph, one, group, names, made, when))
        return tuple(steps)

    def _step(
        self, graph: Graph, group: Group, names: Mapping[Ref, str], made: Mapping[Ref, str], when: When
    ) -> Step:
        # Called the same, and what other kernels made by its place, so that kernels that do the same have the same text.
        stored = {
            r: names[r] if isinstance(graph.nodes[r], Input) else f"t{k}" for k, r in enumerate(group.reads)
        }
        inner = grouped.Group(self.name, group.roots, stored, group.stages)
        program = compiled(_lowering(graph, group)(graph, inner, self.math))
        called = parameters.result_names(len(group.roots))
        own = {n: made[r] for n, r in zip(called, group.roots, strict=True)}
        own |= {stored[r]: names[r] for r in group.reads}
        numbers = tuple(p.name for p in program.params if isinstance(p, ScalarParam))
        zeroed = tuple(made[r] for r in group.roots if isinstance(graph.nodes[r], Scatter))
        return Step(program, tuple(own[b] for b in program.buffers), numbers, when, zeroed)

    def _launch(
        self,
        graph: Graph,
        ref: Ref,
        group: Group,
        names: Mapping[Ref, str],
        made: Mapping[Ref, str],
        when: When,
    ) -> Step:
        """A grid kernel's own program; a result that nobody wants is memory all the same."""
        node = graph.nodes[ref]
        assert isinstance(node, Launch)
        launched = graph.kernels[node.key]
        program, extents = launched.program, {n: graph.extent(e) for n, e in launched.extents.items()}
        given = dict(node.arguments)
        written = {a.name: f"{TEMPORARY}{ref}.{k}" for k, a in enumerate(program.outputs)}
        written |= {program.outputs[_part(graph, r)].name: made[r] for r in group.roots}
        for a in program.outputs:
            shape = tuple(substituted(e, extents) for e in a.shape) + ((Lit(a.lanes),) if a.lanes > 1 else ())
            self.arrays.setdefault(written[a.name], ArrayParam(written[a.name], a.dtype, 1, shape, "out"))
        own = {name: names[of] for name, of in given.items() if isinstance(of, int) and of in names}
        scalars = [given[p.name] for p in program.params if isinstance(p, ScalarParam)]
        return Step(
            program,
            tuple((own | written)[b] for b in program.buffers),
            tuple(_number(graph, of) for of in scalars),
            when,
            zeroed=tuple(written[a.name] for a in program.outputs if a.zeroed),
            copied=tuple((written[a.name], own[a.name]) for a in program.outputs if a.role == "inout"),
            extents=tuple(extents.items()),
        )

    def _repeat(
        self,
        graph: Graph,
        ref: Ref,
        group: Group,
        names: Mapping[Ref, str],
        made: Mapping[Ref, str],
        when: When,
    ) -> Repeat:
        node = _loop(graph, ref)
        turns = graph.loops[node.scope]
        inner = graph.reading([*turns.values, *group.reads])
        title = f"a turn of the loop in line {graph.spans[ref].line}"
        rows = filled(inner, turns)
        written = [rows[k].of if k in rows else r for k, r in enumerate(turns.after)]
        after = {r: f"{TEMPORARY}{node.scope}.{r}" for r in written}
        results = [f"{TEMPORARY}{ref}.{k}" for k in range(len(node.starts))]
        for r in group.roots:
            results[_part(graph, r)] = made[r]
        test: tuple[Step | Repeat, ...] = ()
        condition = count = None
        if turns.condition is not None:
            condition = f"{TEMPORARY}{node.scope}.{turns.condition}?"
            test = self.region(inner, f"whether there is {title}", {turns.condition: condition}, names)
        else:
            assert turns.count is not None
            count = graph.nodes[turns.count]
        return Repeat(
            starts=tuple(names[r] for r in node.starts),
            values=tuple(_read(inner, r, names) for r in turns.values),
            after=tuple(after[r] for r in written),
            rows=tuple(rows[k].at if k in rows else None for k in range(len(written))),
            results=tuple(results),
            steps=self.region(inner, title, after, names),
            turn=inner.nodes[turns.turn].name if turns.turn is not None else "",  # type: ignore[union-attr]
            count=_count(graph, count),
            counted=_read(graph, turns.count, names)
            if turns.count is not None and _count(graph, count) is None
            else "",
            test=test,
            condition=condition or "",
            limit=turns.limit,
            place=Place.of(graph.spans[ref]),
            when=when,
        )


def _part(graph: Graph, ref: Ref) -> int:
    """Which result a node is."""
    node = graph.nodes[ref]
    return node.number if isinstance(node, Part) else 0


def _number(graph: Graph, of: Ref | tuple[int | float, ...]) -> str | tuple[int | float, ...]:
    """A grid kernel's scalar: a number of the call, or a constant as lanes."""
    if isinstance(of, tuple):
        return of
    node = graph.nodes[of]
    assert isinstance(node, Number)
    return node.name


def _count(graph: Graph, node: Node | None) -> Extent | None:
    """How many turns there are, where it is a number that the call's shapes decide."""
    match node:
        case Fill(value):
            return Lit(int(value))
        case Count(extent):
            return graph.extent(extent)
        case _:
            return None


def _loop(graph: Graph, ref: Ref) -> Loop:
    node = graph.nodes[ref]
    assert isinstance(node, Loop)
    return node


def _lowering(graph: Graph, group: Group) -> Lowering:
    """What makes a group a kernel."""
    match graph.nodes[group.stages[0]] if group.stages else None:
        case Product():
            return products.lower_product
        case Reduce() as reduced:
            return rows.lower_rows if reduced.of_rows else columns.lower_columns
    return grouped.lower_scatter if isinstance(graph.nodes[group.roots[0]], Scatter) else grouped.lower_group


def _read(graph: Graph, ref: Ref, made: Mapping[Ref, str]) -> str:
    """What an array, or a number, is called where it is read; an input that is a result too has two names."""
    match graph.nodes[ref]:
        case Input(name) | Number(name):
            return name
        case Carried(0, number):
            return made[number]
        case Carried(scope, number):
            return f"{TEMPORARY}{scope}:{number}"
        case _:
            return made[ref]


def _array(graph: Graph, ref: Ref, name: str, role: Role = "out") -> ArrayParam:
    node = graph.nodes[ref]
    return ArrayParam(name, node.dtype, 1, tuple(map(graph.extent, node.shape)), role)


def _param(graph: Graph, ref: Ref) -> ArrayParam | ScalarParam:
    node = graph.nodes[ref]
    if isinstance(node, Input):
        return _array(graph, ref, node.name, "in")
    assert isinstance(node, Number)
    return ScalarParam(node.name, node.dtype, 1)


def _footprints(graph: Graph, math: str) -> Callable[[Ref], Footprint]:
    """What an element of each call costs; calls of the same specialisation cost the same."""
    known: dict[Any, tuple[float, Mapping[str, float], str]] = {}

    def footprint(ref: Ref) -> Footprint:
        node = graph.nodes[ref]
        assert isinstance(node, Call)
        passed = [(name, of) for name, of in node.arguments if isinstance(of, int)]
        key = node.key[0], tuple([of for _, of in passed].index(of) for _, of in passed)
        if key not in known:
            known[key] = _measured(graph, ref, {of: name for name, of in passed}, math)
        operations, reads, alone = known[key]
        return Footprint(operations, {of: reads.get(name, 0.0) for name, of in passed}, alone)

    return footprint


def _measured(
    graph: Graph, ref: Ref, passed: Mapping[Ref, str], math: str
) -> tuple[float, Mapping[str, float], str]:
    """Operations of a kernel for an element, how often it reads each argument, and why it is not fused, if so: by
    lowering it alone."""
    names = {of: f"a{of}" for of in passed}
    lowered = grouped.lower_group(graph, grouped.Group("alone", (ref,), names), math)
    kernel = optimise(lowered.kernel)
    operations, _ = cost(kernel.body, costs(kernel.functions))
    reads: dict[str, float] = {}
    by_name = {names[of]: name for of, name in passed.items()}
    for body in (kernel.body, *(f.body for f in kernel.functions)):
        for buffer, times in _loads(body, 1.0):
            reads[by_name[buffer]] = reads.get(by_name[buffer], 0.0) + times
    alone = "it asserts, and a failure is told by its own position" if lowered.unit.sites else ""
    return float(operations), reads, alone


def _loads(body: Sequence[ir.Stmt], times: float) -> list[tuple[str, float]]:
    """The arrays that are read, and how often."""
    found = []
    for s in body:
        for e in (x for top in expressions(s) for x in walk_expressions(top)):
            if isinstance(e, ir.Load):
                found.append((e.buffer.name, times))
        for block in blocks(s):
            found += _loads(block, times * turns(s))
    return found
