"""A plan in words: its kernels, what each moves and computes, and why an array is stored or not."""

from __future__ import annotations

from ..compiler import graph as g
from ..compiler.plan import Planned
from ..extents import show


def text(graph: g.Graph, planned: Planned) -> str:
    kernels = len(planned.plan.programs)
    lines = [f"{planned.plan.name}: {kernels} kernel{'' if kernels == 1 else 's'}"]
    steps = iter(planned.plan.programs)
    for region in planned.regions:
        why = {d.ref: d for d in region.fusion.decisions}
        for group in region.fusion.groups:
            shape = ", ".join(show(graph.extent(e)) for e in graph.nodes[group.roots[0]].shape)
            lines.append(f"kernel over ({shape})")
            for ref in group.roots:
                lines.append(f"  stores {described(graph, ref)}: {why[ref].why}")
        inlined = [d for d in region.fusion.decisions if not d.stored and d.places > 1]
        lines += [
            f"computed at {d.places:.0f} places rather than stored: {described(graph, d.ref)}"
            for d in inlined
        ]
    for step in steps:
        cost = step.program.cost
        lines.append(
            f"{', '.join(step.arrays)}: {cost.operations} operations and {cost.nbytes} bytes an element"
        )
    return "\n".join(lines)


def described(graph: g.Graph, ref: g.Ref) -> str:
    """A node as a reader knows it: what it does, and the line that made it."""
    node, span = graph.nodes[ref], graph.spans[ref]
    match node:
        case g.Input(name) | g.Number(name):
            what = name
        case g.Elementwise(op):
            what = op
        case g.Reduce(op, _, axes):
            what = f"{op} over {', '.join(map(str, axes))}"
        case g.Call(key):
            what = graph.kernels[key].function.name
        case g.Part(of, number):
            what = f"result {number} of {described(graph, of)}"
        case _:
            what = type(node).__name__.lower()
    return f"{what} ({span.source.name.rpartition('/')[2]}:{span.line})" if span.line else what
