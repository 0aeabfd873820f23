"""A kernel that a graph calls: specialised, with its extents and numbers in terms of the graph's.

In: its tree, the types of the call, and the shapes of its arrays as the graph knows them. Out: an `Instance`. Extents are
found as at any call (plain names bind first, then what has one unknown is solved), but as expressions, and what is left
becomes a requirement of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from metaljit.grammar import tree

from ...arguments import Argument
from ...dtypes import Vec
from ...extents import Extent, Lit, Op, Sym, op, show, substituted, symbols
from ...frozen import frozen
from ...source import Diagnostic, ShapeError, Span, TypeFault
from ..graph import Graph, Shape
from . import kernel
from .body import Options
from .signature import Names, Resolve, Signature, declare
from .specialise import Specialisation, specialise
from .values import Fault


@frozen
class Instance:
    """What a `Call` calls: a kernel's tree, specialised, with its extents and numbers in terms of the graph's."""

    function: tree.Function
    names: Names
    signature: Signature
    spec: Specialisation
    options: Options

    def within(self, extents: Mapping[str, Extent]) -> Instance:
        """The same with what its extents are in a graph."""
        return replace(self, spec=replace(self.spec, extents=extents))

    @property
    def shape(self) -> Shape:
        """The shape of its results, with the axis of lanes where they are vectors."""
        first = self.spec.results[0]
        lanes = (Lit(first.element.lanes),) if isinstance(first.element, Vec) else ()
        return tuple(substituted(e, self.spec.extents) for e in first.shape) + lanes

    @property
    def lanes(self) -> int:
        return self.spec.results[0].element.lanes


def instance(function: tree.Function, resolve: Resolve, arguments: Mapping[str, Argument]) -> Instance:
    """A map kernel with the types of a call; its extents are its own. TypeFault where the types do not fit."""
    names = Names(resolve)
    try:
        signature = declare(function, resolve)
        spec = specialise(signature, arguments, names)
        options, _ = kernel.decorator_options(function, names)
    except Fault as e:
        raise TypeFault(e.diagnostic) from None
    return Instance(function, names, signature, spec, options)


def bound(
    made: Instance, graph: Graph, shapes: Mapping[str, Shape], numbers: Mapping[str, Extent], span: Span
) -> dict[str, Extent]:
    """What each extent of the kernel is in the graph. ShapeError where the shapes can never fit."""
    env: dict[str, Extent] = dict(numbers)
    later: list[tuple[str, int, Extent, Extent]] = []
    for p in made.signature.params:
        if p.name not in shapes:
            continue
        declared = made.spec.arrays[p.name]
        for axis, (extent, given) in enumerate(zip(declared.shape, shapes[p.name], strict=False)):
            if isinstance(extent, Sym) and extent.name not in env:
                env[extent.name] = given
            else:
                later.append((p.name, axis, extent, given))
    for _, _, extent, given in later:
        unknown = symbols(extent) - env.keys()
        if len(unknown) == 1:
            (name,) = unknown
            env[name] = _solved(extent, given, name, env)
    for name, axis, extent, given in later:
        here = substituted(extent, env)
        message = f"axis {axis} of {name!r} is {show(extent)}"
        if isinstance(here, Lit) and isinstance(given, Lit) and here != given:
            shown = f"{made.function.name}: {message} = {here.value}, and was given {given.value}"
            raise ShapeError(Diagnostic("shape-mismatch", shown, span))
        graph.equate(given, here, f"{made.function.name}: {message}", span)
    return env


def _solved(extent: Extent, given: Extent, name: str, env: Mapping[str, Extent]) -> Extent:
    """What the symbol `name` is where `extent`, in which it stands once, is `given`."""
    match extent:
        case Sym():
            return given
        case Op("+", (a, b)):
            has, rest = (a, b) if name in symbols(a) else (b, a)
            return _solved(has, op("-", given, substituted(rest, env)), name, env)
        case Op("-", (a, b)) if name in symbols(a):
            return _solved(a, op("+", given, substituted(b, env)), name, env)
        case Op("-", (a, b)):
            return _solved(b, op("-", substituted(a, env), given), name, env)
        case Op("*", (a, b)):
            has, rest = (a, b) if name in symbols(a) else (b, a)
            return _solved(has, op("//", given, substituted(rest, env)), name, env)
    return given
