"""Graph → Plan: its groups as programs, in the order in which they run.

In: a graph, its parameters and its results. Out: a `Plan`, all that a device needs, and why each kernel is what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..frozen import frozen
from ..program import ArrayParam, Place, Plan, Requirement, ScalarParam, Step
from . import fuse, ir
from .fuse_places import Footprint
from .graph import Call, Graph, Input, Number, Ref
from .lower import composed, parameters, rows
from .pipeline import optimise, program
from .usage import blocks, cost, costs, expressions, turns, walk_expressions

TEMPORARY = "#"  # begins the names of what lives between kernels: no parameter is called so


@frozen
class Planned:
    """`names` are what the arrays are called in the plan that its kernels write."""

    plan: Plan
    fusion: fuse.Fusion
    names: Mapping[Ref, str]


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
    fusion = fuse.fuse(graph, list(dict.fromkeys(results)), _footprints(graph, math), fused)
    names = _names(fusion, results)
    steps = []
    for group in fusion.groups:
        # Called the same, and what other kernels made by its place, so that kernels that do the same have the same text.
        read = {r: _read(graph, r, names) for r in group.reads}
        stored = {
            r: n if isinstance(graph.nodes[r], Input) else f"t{k}" for k, (r, n) in enumerate(read.items())
        }
        lower = rows.lower_rows if group.stages else composed.lower_group
        made = program(lower(graph, composed.Group(name, group.roots, stored, group.stages), math))
        own = {
            n: names[r] for n, r in zip(parameters.result_names(len(group.roots)), group.roots, strict=True)
        }
        own |= {stored[r]: n for r, n in read.items()}
        numbers = tuple(p.name for p in made.params if isinstance(p, ScalarParam))
        steps.append(Step(made, tuple(own[b] for b in made.buffers), numbers))
    inner = [r for g in fusion.groups for r in g.roots if r not in results]
    span = graph.spans[results[0]]
    place = Place.of(span)
    whole = Plan(
        name,
        place,
        tuple(_param(graph, r) for r in params),
        tuple(_array(graph, r, names[r], "out") for r in dict.fromkeys(results)),
        tuple(_array(graph, r, names[r], "out") for r in inner),
        tuple(steps),
        tuple(Requirement(graph.extent(e), why, Place.of(at)) for e, why, at in graph.requirements),
    )
    return Planned(whole, fusion, names)


def _names(fusion: fuse.Fusion, results: Sequence[Ref]) -> dict[Ref, str]:
    """What the arrays are called that kernels write."""
    different = list(dict.fromkeys(results))
    names = dict(zip(different, parameters.result_names(len(different)), strict=True))
    return {r: f"{TEMPORARY}{r}" for g in fusion.groups for r in g.roots} | names


def _read(graph: Graph, ref: Ref, names: Mapping[Ref, str]) -> str:
    """What a stored array is called where it is read; an input that is a result too has two names."""
    node = graph.nodes[ref]
    return node.name if isinstance(node, Input) else names[ref]


def _array(graph: Graph, ref: Ref, name: str, role: str) -> ArrayParam:
    node = graph.nodes[ref]
    return ArrayParam(name, node.dtype, 1, tuple(map(graph.extent, node.shape)), role)  # type: ignore[arg-type]


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
    lowered = composed.lower_group(graph, composed.Group("alone", (ref,), names), math)
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
