"""Derivatives of map kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..compiler import graph as g
from .traced import Trace, Traced, fault


def adjoint(
    trace: Trace, call: g.Ref, cotangents: Sequence[Traced | None], wanted: Collection[str]
) -> dict[str, Traced]:
    """For each wanted parameter of a call the derivative by its argument, from those by the results."""
    node = trace.graph.nodes[call]
    assert isinstance(node, g.Call)
    name = trace.graph.kernels[node.key].function.name
    fault("no-derivative", f"the kernel {name!r} has no derivative yet", "give it one: `@mj.custom_vjp`")
