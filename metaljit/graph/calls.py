"""A kernel called while a function is traced: a node of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler import graph as g
from ..compiler.lower.instance import Instance, bound, instance
from ..dtypes import Vec
from ..extents import Extent, Lit, Sym, substituted
from ..program import Program, ScalarParam
from ..runtime.arguments import scalar
from ..source import Diagnostic, TypeFault
from .traced import Size, Trace, Traced, user_span

if TYPE_CHECKING:
    from ..arguments import Argument
    from ..kernels import Kernel


def record(kernel: Kernel, values: Sequence[Any], arguments: dict[str, Argument], key: Any) -> Any:
    """The results of a kernel on traced arrays. `values` are those of its parameters."""
    trace = next(v for v in values if isinstance(v, Traced)).trace
    made = instance(kernel.definition.tree, kernel.definition.text.resolve, arguments)
    if made.signature.is_grid:
        return _launched(trace, kernel, made, values, key)
    scalars = made.spec.scalars
    given, extents = _given(
        trace, made, kernel, values, lambda name, value: _scalar(trace, value, scalars[name])
    )
    made = made.within(extents)
    name = g.call_key(key, given)
    trace.graph.kernels[name] = made
    types = tuple(r.element.scalar for r in made.spec.results)
    call = trace.node(g.Call(name, tuple(given), types, types[0], made.shape))
    if len(types) == 1:
        return call
    return tuple(trace.node(g.Part(call.ref, k, t, made.shape)) for k, t in enumerate(types))


def _launched(trace: Trace, kernel: Kernel, made: Instance, values: Sequence[Any], key: Any) -> Any:
    """The arrays that a grid kernel writes: those declared `Out`, and changed copies of those declared `InOut`."""
    program = kernel.program(*values)
    scalars = {p.name: p for p in program.params if isinstance(p, ScalarParam)}
    given, extents = _given(
        trace, made, kernel, values, lambda name, value: _launch_scalar(program, scalars[name], value)
    )
    name = g.call_key(key, given)
    trace.graph.kernels[name] = g.Launched(program, extents)
    types = tuple(a.dtype for a in program.outputs)
    written = [
        (*(substituted(e, extents) for e in a.shape), *([Lit(a.lanes)] if a.lanes > 1 else []))
        for a in program.outputs
    ]
    launch = trace.node(g.Launch(name, tuple(given), types, types[0], written[0]))
    parts = tuple(
        trace.node(g.Part(launch.ref, k, t, shape))
        for k, (t, shape) in enumerate(zip(types, written, strict=True))
    )
    return parts if len(parts) > 1 else parts[0]


def _given(
    trace: Trace,
    made: Instance,
    kernel: Kernel,
    values: Sequence[Any],
    number: Callable[[str, Any], Any],
) -> tuple[list[tuple[str, Any]], Mapping[str, Extent]]:
    """The arguments of a call as nodes, `number` giving those of its scalars, and what its extents are in the graph."""
    given: list[tuple[str, Any]] = []
    shapes: dict[str, g.Shape] = {}
    numbers: dict[str, Extent] = {}
    for p, value in zip(kernel.parameters, values, strict=True):
        if p.kind == "scalar":
            given.append((p.name, number(p.name, value)))
            numbers |= _as_extent(p.name, value)
        elif p.kind != "const":
            array = value if isinstance(value, Traced) else trace.lifted(np.asarray(value))
            given.append((p.name, array.ref))
            shapes[p.name] = array.extents
    return given, bound(made, trace.graph, shapes, numbers, user_span())


def _launch_scalar(program: Program, p: ScalarParam, value: Any) -> Any:
    """A number of the call, or a constant as lanes."""
    if not isinstance(value, Traced):
        return scalar(program, p, value)
    if isinstance(value.node, g.Number) and value.element == p.dtype:
        return value.ref
    raise TypeFault(
        Diagnostic(
            "grid-kernel-number",
            f"{p.name!r} of the grid kernel {program.name!r} is {value!r}, and its numbers are arguments or constants",
            user_span(),
            help="pass an argument of the traced function as it is, or an array of one element",
        )
    )


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
