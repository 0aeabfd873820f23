"""The reads of a kernel in a graph: its body with marks for them, and what is solved from their indices.

In: a kernel as it is called. Out: statements without calls, where a read of `u` is a call of `#u`; and for a parameter its
reads in groups of one index each, with how far these reach beyond the array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...dtypes import I32
from ...frozen import frozen
from ...program import Uniform
from .. import ir
from ..bounds import Poly
from ..expand import Expansion, NoDerivative
from ..graph import Call, Count, Fill, Number
from ..reads import MARK, Group, Read, Reads, Space, groups, substituted
from ..usage import walk, walk_expressions
from . import kernel
from .body import Body
from .instance import Instance
from .values import Typed, Value, View

if TYPE_CHECKING:
    from .composed import Composer

Reach: TypeAlias = tuple[tuple[int, int], ...]  # how far reads go beyond each axis, before and behind
KNOWN = (Fill, Number, Count)  # numbers that an index is solved with, whatever is fused
REACHES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64)


@frozen
class Analysis:
    """The reads of a parameter, in groups, how far these reach, and the extents and numbers that indices have."""

    groups: tuple[Group, ...]
    reaches: tuple[Reach, ...]
    uniforms: Mapping[str, Uniform]

    def solved(self, free: tuple[int, ...]) -> list[tuple[Group, Reach]]:
        pairs = zip(self.groups, self.reaches, strict=True)
        return [(g, r) for g, r in pairs if g.steps is not None and g.free == free]

    @property
    def unsolved(self) -> list[Group]:
        return [g for g in self.groups if g.steps is None]


def analysed(composer: Composer, instance: Instance, node: Call, param: str) -> Analysis:
    """NoDerivative where something in the kernel has none."""
    unit = composer.unit
    spec = composer.specialised(instance)
    with unit.rollback() as attempt, unit.within(spec):
        kernel.array_facts(unit)
        shape = [unit.extent_poly(e) for e in spec.results[0].shape]
        for limit in shape:
            unit.facts.assume(limit - 1)
        places = tuple(
            Typed(ir.Read(ir.Var(f"p{k}", I32, unit.number())), unit.facts.symbol(f"p{k}", [0], [e - 1]))
            for k, e in enumerate(shape)
        )
        block = marked(composer, instance, node, places, [param])
        attempt.keep = bool(unit.diagnostics)
        space = Space()
        found = reads_of(space, places).block(block)
        reads = [r for r in found if r.call.function == MARK + param]
        _refuse_assigned(block, reads, param)
        own = groups(reads, len(places))
        limits = [unit.extent_poly(e) for e in spec.arrays[param].shape] if param in spec.arrays else []
        pairs = [_reached(composer, space, g, places, limits) for g in own]
    return Analysis(tuple(g for g, _ in pairs), tuple(r for _, r in pairs), unit.uniforms)


def _refuse_assigned(block: Sequence[ir.Stmt], reads: Sequence[Read], param: str) -> None:
    """An index that is a variable which several statements assign is no expression of positions."""
    assigned = {s.var.number for s in walk(block) if isinstance(s, ir.Declare)}
    for r in reads:
        for e in (x for top in r.exprs for x in walk_expressions(top)):
            if isinstance(e, ir.Read) and e.var.number in assigned:
                raise NoDerivative(f"{param!r} is read at an index that several statements assign", r.span)


def reads_of(space: Space, places: Sequence[Value]) -> Reads:
    axes = {
        v.expr.var.number: k
        for k, v in enumerate(places)
        if isinstance(v, Typed) and isinstance(v.expr, ir.Read)
    }
    return Reads(space, axes)


def marked(
    composer: Composer, instance: Instance, node: Call, places: tuple[Typed, ...], params: Sequence[str]
) -> tuple[ir.Stmt, ...]:
    """The kernel's body without calls, with marks for what it reads."""
    unit = composer.unit
    functions, sites, notes = dict(unit.functions), len(unit.sites), len(unit.notes)

    def view(inner: Body, value: Any, type: Any, param: Any) -> View:
        shape = tuple(unit.extent(e) for e in type.shape)
        buffer = ir.Buffer(f"{param.name}{MARK}{unit.number()}", type.element.scalar, 1, False)

        def computed(indices: Sequence[Typed]) -> Typed:
            return Typed(ir.Call(MARK + param.name, tuple(i.expr for i in indices), type.element))

        return View(buffer, type.element, shape, param.span, (None,) * len(shape), computed=computed)

    def scalar(inner: Body, value: Any, type: Any, param: Any) -> Typed:
        known = not isinstance(value, int) or isinstance(composer.graph.nodes[value], KNOWN)
        if param.name in params or not known:
            return Typed(ir.Call(MARK + param.name, (), type))
        return composer.number(inner, value, type, param)

    block = composer.instance(instance, node, places, view, scalar).block
    if unit.diagnostics:
        return ()
    known = {f"{f.name}#{k}": f for k, (f, _) in enumerate(unit.functions.values())}
    made = Expansion(known, unit.number).block(block)
    unit.functions = functions
    del unit.notes[notes:]
    if not _has_while(made):
        del unit.sites[sites:]
    return made


def _has_while(block: Sequence[ir.Stmt]) -> bool:
    return any(isinstance(s, ir.Loop) for s in walk(block))


def _reached(
    composer: Composer, space: Space, group: Group, places: Sequence[Typed], limits: Sequence[Poly]
) -> tuple[Group, Reach]:
    """How far the reads go beyond the array; a group without steps where that is not known."""
    if group.steps is None or not any(group.folded):
        return group, ((0, 0),) * len(limits)
    unit = composer.unit
    by: dict[int, Poly] = {space.number("p", k): p.poly for k, p in enumerate(places) if p.poly is not None}

    def translated(p: Poly) -> Poly:
        for s in sorted(p.symbols()):
            if s in by:
                continue
            match space.meanings[s]:
                case ("u", name):
                    known = unit.extent_polys.get(name)
                    by[s] = known if known is not None else unit.facts.symbol(name)
                case ("q", *_):
                    dividend, divisor = space.quotients[s]
                    by[s] = unit.quotient("quotient", translated(dividend), divisor)
                case _:
                    by[s] = unit.facts.symbol("?")
        return substituted(p, by)

    for turns, _ in group.read.used:
        first, last = (turns.start, turns.stop) if turns.step > 0 else (turns.stop, turns.start)
        shift = 0 if turns.step > 0 else 1
        low = [] if first is None else [translated(first) + shift]
        high = [] if last is None else [translated(last) - (1 - shift)]
        by[turns.symbol] = unit.facts.symbol("k", low, high)
    reach: list[tuple[int, int]] = []
    for index, folded, limit in zip(group.read.index, group.folded, limits, strict=True):
        if not folded:
            reach.append((0, 0))
            continue
        assert index is not None
        place = translated(index)
        before = next((r for r in REACHES if unit.facts.proves(place + r)), None)
        behind = next((r for r in REACHES if unit.facts.proves(limit - place - 1 + r)), None)
        if before is None or behind is None:
            return replace(group, steps=None, free=()), ((0, 0),) * len(limits)
        reach.append((before, behind))
    return group, tuple(reach)
