"""A kernel called while a function is traced: a node of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import graph as g
from ..compiler.lower.instance import bound, instance
from ..dtypes import Vec
from ..extents import Extent, Lit, Sym
from ..source import Diagnostic, TypeFault
from .traced import Size, Trace, Traced, user_span

if TYPE_CHECKING:
    from ..arguments import Argument
    from ..kernels import Kernel


def record(kernel: Kernel, values: Sequence[Any], arguments: dict[str, Argument], key: Any) -> Any:
    """The results of a map kernel on traced arrays. `values` are those of its parameters."""
    trace = next(v for v in values if isinstance(v, Traced)).trace
    made = instance(kernel.definition.tree, kernel.definition.text.resolve, arguments)
    if made.signature.is_grid:
        raise TypeFault(
            Diagnostic(
                "grid-kernel-traced",
                f"the grid kernel {kernel.__name__!r} is not part of graphs yet",
                user_span(),
            )
        )
    given: list[tuple[str, Any]] = []
    shapes: dict[str, g.Shape] = {}
    numbers: dict[str, Extent] = {}
    for p, value in zip(made.signature.params, values, strict=True):
        if p.kind == "array":
            array = value if isinstance(value, Traced) else trace.lifted(np.asarray(value))
            given.append((p.name, array.ref))
            shapes[p.name] = array.extents
        elif p.kind == "scalar":
            given.append((p.name, _scalar(trace, value, made.spec.scalars[p.name])))
            numbers |= _as_extent(p.name, value)
    span = user_span()
    extents = bound(made, trace.graph, shapes, numbers, span)
    made = made.within(extents)
    refs = tuple(ref for _, ref in given)
    name = (key, refs)
    trace.graph.kernels[name] = made
    types = tuple(r.element.scalar for r in made.spec.results)
    call = trace.node(g.Call(name, tuple(given), types, types[0], made.shape))
    if len(types) == 1:
        return call
    return tuple(trace.node(g.Part(call.ref, k, t, made.shape)) for k, t in enumerate(types))


def _scalar(trace: Trace, value: Any, type: Any) -> Any:
    if isinstance(type, Vec):
        return tuple(np.asarray(value).tolist())
    if isinstance(value, Traced):
        return value.ref
    return trace.constant(value.item() if isinstance(value, np.generic) else value, type).ref


def _as_extent(name: str, value: Any) -> dict[str, Extent]:
    """A number as part of extents."""
    if isinstance(value, Size):
        return {name: value.extent}
    if isinstance(value, Traced):
        node = value.node
        return {name: Sym(node.name)} if isinstance(node, g.Number) else {}
    if isinstance(value, int | np.integer):
        return {name: Lit(int(value))}
    return {}
