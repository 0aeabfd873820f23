"""The derivative of a loss by an array that a map kernel reads, from its derivatives by the kernel's results.

    by u[q] = sum over the positions p and turns k that read u[q] of out'[p] * d out[p] / d u[q]

Which these are is solved from the index (`reads`), so this is an index function of q as any other: nothing is added
by threads, and the order of its sum is that of the text. Behind a border several indices stand for one element: within
the reach of the reads of an edge, indices outside are gone through too. Where an index cannot be solved, the summands
are elements at p and k, and the indices where they belong: the graph scatters them.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from metaljit.grammar import tree

from ...dtypes import BOOL, F32, I32, Vec
from ...frozen import frozen
from ...operations import OPERATIONS
from ...source import InternalError, Span
from .. import ir, rewrite
from ..alive import alive
from ..bounds import Poly
from ..graph import Call
from ..reads import MARK, Each, Group, Read, Solve, Space, Test
from . import arithmetic, arrays, kernel
from .arithmetic import join_conditions
from .body import Body
from .convert import convert
from .instance import Instance
from .literals import typed
from .loops import loop_symbol
from .marked import Reach, analysed, marked, reads_of
from .tangents import Tangents, number
from .values import Literal, Typed, Value

if TYPE_CHECKING:
    from .composed import Composer


@frozen
class Adjoint:
    """What a `Call` of a derivative calls. Its arguments are those of the kernel, and out' of result k as `#k`.

    `part` "sum" is the derivative by `param` through the reads that leave the axes `free` of the positions open, with an
    axis more for each of these; "term" is a summand at positions and turns, and a number the index along that axis there,
    of the reads numbered `number` among those that cannot be solved.
    """

    primal: Instance
    param: str
    part: typing.Literal["sum", "term"] | int
    free: tuple[int, ...] = ()
    number: int = 0

    @property
    def lanes(self) -> int:
        """A derivative by a vector is one of its lanes."""
        return 1

    @property
    def function(self) -> tree.Function:
        made = self.primal.function
        return replace(made, name=f"{made.name}_by_{self.param}")


# ---- the derivative as an index function ----


def lowered(composer: Composer, called: Adjoint, node: Call, entered: tuple[Typed, ...]) -> Body:
    """The body of a derivative at an element's index, or at positions and turns."""
    kernel.array_facts(composer.unit)
    return _Lowering(composer, called, node).run(entered)


class _Lowering:
    def __init__(self, composer: Composer, called: Adjoint, node: Call) -> None:
        self.composer, self.called, self.node = composer, called, node
        self.unit, self.instance = composer.unit, called.primal
        self.analysis = analysed(composer, called.primal, node, called.param)
        self.span: Span = self.instance.function.name_span
        self.given = dict(node.arguments)
        spec = self.instance.spec
        self.shape = [typed(self.unit.extent(e), self.span, I32) for e in spec.results[0].shape]
        array = spec.arrays.get(called.param)
        self.extents = [typed(self.unit.extent(e), self.span, I32) for e in array.shape] if array else []
        self.element = array.element if array is not None else spec.scalars[called.param]
        self.body = self._body()

    def _body(self) -> Body:
        return Body(self.unit, self.instance.names, self.instance.function, is_kernel=False)

    def run(self, entered: tuple[Typed, ...]) -> Body:
        match self.called.part:
            case "sum":
                self._sum(entered)
            case "term":
                found = self._pull(self.analysis.unsolved[self.called.number], entered).expr
                self.body.emit(ir.Return((found,), self.span))
            case axis:
                found = self._index(self.analysis.unsolved[self.called.number], entered, axis)
                self.body.emit(ir.Return((found,), self.span))
        return self.body

    # ---- the sum ----

    def _sum(self, entered: tuple[Typed, ...]) -> None:
        body, rank = self.body, len(self.extents)
        place, rest = entered[:rank], entered[rank:]
        lane = rest[:1] if isinstance(self.element, Vec) else ()
        free = dict(zip(self.called.free, rest[len(lane) :], strict=True))
        pairs = self.analysis.solved(self.called.free)
        self.total = body.var("total", F32)
        body.mutable.add(self.total.number)
        body.emit(ir.Declare(self.total, ir.Const(0.0, F32), self.span))
        for group, _ in pairs:
            self._candidates(group, place, place, lane, free)
        for group, reach in pairs:
            if any(map(any, reach)):
                self._behind_borders(group, reach, place, lane, free)
        value = convert(body, Typed(ir.Read(self.total)), self.node.dtype, self.span)
        body.emit(ir.Return((value.expr,), self.span))

    def _behind_borders(
        self,
        group: Group,
        reach: Reach,
        place: tuple[Typed, ...],
        lane: tuple[Typed, ...],
        free: Mapping[int, Typed],
    ) -> None:
        """Near an edge: the indices outside that a border may have brought here."""
        inner = []
        for index, extent, ends in zip(place, self.extents, reach, strict=True):
            if any(ends):
                most = max(ends) + 1
                for moved in (self._int("-", index, Literal(most)), self._int("+", index, Literal(most))):
                    always = not self._margin(moved, extent)
                    inner.append(Typed(ir.InRange(moved.expr, extent.expr, always)))
        near = ir.Apply("logical_not", (join_conditions("and", inner).expr,), BOOL)
        with self._if(near):
            self._outside(group, reach, place, [], [], lane, free)

    def _outside(
        self,
        group: Group,
        reach: Reach,
        place: tuple[Typed, ...],
        targets: list[Typed],
        moved: list[ir.Expr],
        lane: tuple[Typed, ...],
        free: Mapping[int, Typed],
    ) -> None:
        axis = len(targets)
        if axis == len(place):
            some = moved[0]
            for m in moved[1:]:
                some = ir.Apply("logical_or", (some, m), BOOL)
            with self._if(some):
                self._candidates(group, place, tuple(targets), lane, free)
            return
        before, behind = reach[axis]
        if not before and not behind:
            self._outside(group, reach, place, [*targets, place[axis]], moved, lane, free)
            return
        with self._each("t", _constant(0), _constant(1 + before + behind), 1) as t:
            away = ir.Apply("greater", (t.expr, ir.Const(0, I32)), BOOL)
            low = ir.Apply("less_equal", (t.expr, ir.Const(before, I32)), BOOL)
            end = self._int("+", self.extents[axis], Literal(-before - 1))
            beyond = ir.Choose(low, self._int("-", Literal(0), t).expr, self._int("+", end, t).expr)
            index = self.body.let("j", Typed(ir.Choose(away, beyond, place[axis].expr)), self.span)
            self._outside(group, reach, place, [*targets, index], [*moved, away], lane, free)

    def _candidates(
        self,
        group: Group,
        place: tuple[Typed, ...],
        targets: tuple[Typed, ...],
        lane: tuple[Typed, ...],
        free: Mapping[int, Typed],
    ) -> None:
        """Adds what the positions contribute whose index is `targets`, which stands for `place`."""
        space = group.read.space
        known = {space.number("t", k): t for k, t in enumerate(targets)}
        known |= {space.number("p", k): p for k, p in free.items()}
        assert group.steps is not None
        self._steps(group, list(group.steps), known, [], (*place, *lane), targets is place)

    def _steps(
        self,
        group: Group,
        steps: list[Solve | Test | Each],
        known: dict[int, Typed],
        tests: list[Typed],
        place: tuple[Typed, ...],
        exact: bool,
    ) -> None:
        if not steps:
            self._add(group, known, tests, place, exact)
            return
        step, *rest = steps
        space = group.read.space
        match step:
            case Each(symbol, start, stop, by):
                first, last = self._value(space, start, known), self._value(space, stop, known)
                with self._each("k", first, last, by) as k:
                    self._steps(group, rest, known | {symbol: k}, list(tests), place, exact)
            case Test(value):
                zero = Typed(
                    ir.Apply("equal", (self._value(space, value, known).expr, ir.Const(0, I32)), BOOL)
                )
                self._steps(group, rest, known, [*tests, zero], place, exact)
            case Solve(symbol):
                place_of, tests = self._solved(space, step, known, tests)
                self._steps(group, rest, known | {symbol: place_of}, tests, place, exact)

    def _solved(
        self, space: Space, step: Solve, known: Mapping[int, Typed], tests: list[Typed]
    ) -> tuple[Typed, list[Typed]]:
        """The value of an unknown, and what has to hold so that it is one."""
        value = self._value(space, step.rest if step.coefficient < 0 else -step.rest, known)
        divisor = abs(step.coefficient)
        if divisor > 1:
            value = self.body.let("n", value, self.span)
            left = self._int("%", value, Literal(divisor))
            tests = [*tests, Typed(ir.Apply("equal", (left.expr, ir.Const(0, I32)), BOOL))]
            value = self._int("//", value, Literal(divisor))
        if not isinstance(value.expr, ir.Read | ir.Const | ir.Uniform):
            value = self.body.let("p", value, self.span)
        match space.meanings[step.symbol]:
            case ("p", axis) if not arrays.proved(self.body, value, self.shape[axis]):
                extent = self.shape[axis]
                inside = ir.InRange(value.expr, extent.expr, not self._margin(value, extent))
                tests = [*tests, Typed(inside)]
        return value, tests

    def _add(
        self,
        group: Group,
        known: Mapping[int, Typed],
        tests: list[Typed],
        place: tuple[Typed, ...],
        exact: bool,
    ) -> None:
        space = group.read.space
        at = [known[space.number("p", k)] for k in range(len(self.shape))]
        turns = [known[t.symbol] for t, _ in group.read.used]

        def add() -> None:
            found = self._pull(group, (*at, *turns, *place), exact)
            self.body.set(self.total, ir.Apply("add", (ir.Read(self.total), found.expr), F32), self.span)

        if not tests:
            add()
            return
        with self._if(join_conditions("and", tests).expr):
            for p, extent in zip(at, self.shape, strict=True):
                if p.poly is not None and extent.poly is not None:
                    self.body.assume([p.poly, extent.poly - p.poly - 1])
            add()

    # ---- one summand ----

    def _pull(self, group: Group, passed: tuple[Typed, ...], exact: bool = False) -> Typed:
        """What a position at turns contributes to the element at an index: a function of all of these.

        `exact`: the index that is read is this one itself, not one outside that a border may bring to it.
        """
        key = ("pull", self.node, self.analysis.groups.index(group), exact)
        name = f"{self.instance.function.name}_pull"

        def lower(entered: tuple[Typed, ...]) -> Body:
            return self._pulled(group, entered, exact)

        return self.composer.function(self.body, key, name, passed, (F32,), lower, self.span)[0]

    def _pulled(self, group: Group, entered: tuple[Typed, ...], exact: bool) -> Body:
        rank, used = len(self.shape), len(group.read.used)
        places, turns, index = entered[:rank], entered[rank : rank + used], entered[rank + used :]
        self._within(places)
        block = marked(self.composer, self.instance, self.node, places, [self.called.param])
        chosen, pins = self._chosen(group, block, places, turns)
        body = self._body()

        def seed(call: ir.Call) -> ir.Expr | None:
            read = chosen.get(call)
            if read is None:
                return None
            one = self._one(index)
            for k, a in enumerate(read.args):
                if isinstance(a, ir.Fold) and index and not exact:
                    same = ir.Apply("equal", (a, index[k].expr), BOOL)
                    one = ir.Choose(same, one, number(0.0, one.type))
            return one

        def finish(found: Sequence[ir.Expr | None], span: Span) -> Sequence[ir.Expr]:
            return (self._weighed(body, found, places, span),)

        Tangents(body, seed, pins, finish).run(block)
        body.block = list(rewrite.statements(alive(body.block), self._real))
        return body

    def _within(self, places: Sequence[Typed]) -> None:
        """The positions are in the domain: nothing is computed where they are not."""
        for p, extent in zip(places, self.shape, strict=True):
            if p.poly is not None and extent.poly is not None:
                self.unit.facts.assume(extent.poly - 1)
                self.unit.facts.assume(p.poly)
                self.unit.facts.assume(extent.poly - p.poly - 1)

    def _chosen(
        self, group: Group, block: Sequence[ir.Stmt], places: Sequence[Typed], turns: Sequence[Typed]
    ) -> tuple[dict[ir.Call, Read], dict[int, ir.Expr]]:
        """The reads of a group in a lowering of the kernel, and the turns of the loops around them."""
        found = reads_of(group.read.space, places).block(block)
        keys = {g.read.key for g in self.analysis.groups}
        if any(r.key not in keys for r in found if r.call.function == MARK + self.called.param):
            raise InternalError(f"a read of {self.called.param!r} is new here", self.span)
        chosen = {r.call: r for r in found if r.key == group.read.key}
        pins = {
            var.number: k.expr for r in chosen.values() for (_, var), k in zip(r.used, turns, strict=True)
        }
        return chosen, pins

    def _one(self, index: Sequence[Typed]) -> ir.Expr:
        """The derivative of an element by itself; of a vector, by one of its lanes."""
        if not isinstance(self.element, Vec):
            return number(1.0, self.element)
        scalar = self.element.scalar
        lanes = tuple(
            ir.Choose(
                ir.Apply("equal", (index[-1].expr, ir.Const(k, I32)), BOOL),
                ir.Const(1.0, scalar),
                ir.Const(0.0, scalar),
            )
            for k in range(self.element.lanes)
        )
        return ir.Vector(lanes, self.element)

    def _weighed(
        self, body: Body, found: Sequence[ir.Expr | None], places: tuple[Typed, ...], span: Span
    ) -> ir.Expr:
        """The derivatives of the results, each times that of the loss by it."""
        total: Typed | None = None
        for k, tangent in enumerate(found):
            of = self.given.get(f"{MARK}{k}")
            if tangent is None or not isinstance(of, int):
                continue
            parts: list[tuple[ir.Expr, tuple[Typed, ...]]] = [(tangent, places)]
            if isinstance(tangent.type, Vec):
                kept = body.let("d", Typed(tangent), span).expr
                lanes = range(tangent.type.lanes)
                parts = [(ir.Lane(kept, n, kept.type.scalar), (*places, _constant(n))) for n in lanes]
            for value, place in parts:
                by = convert(body, self.composer.element(body, of, place, span), F32, span)
                d = convert(body, Typed(value), F32, span)
                product = typed(arithmetic.apply(body, OPERATIONS["multiply"], (by, d), span), span, F32)
                if total is not None:
                    product = typed(
                        arithmetic.apply(body, OPERATIONS["add"], (total, product), span), span, F32
                    )
                total = product
        return total.expr if total is not None else ir.Const(0.0, F32)

    def _real(self, e: ir.Expr) -> ir.Expr:
        """A read for its mark."""
        if not isinstance(e, ir.Call) or not e.function.startswith(MARK):
            return e
        name = e.function[len(MARK) :]
        param = next(p for p in self.instance.signature.params if p.name == name)
        if param.kind == "scalar":
            return self.composer.number(
                self.body, self.given[name], self.instance.spec.scalars[name], param
            ).expr
        type, value = self.instance.spec.arrays[name], self.given[name]
        assert isinstance(value, int)
        view = self.composer.view(self.body, value, type, param.span)
        indices = [Typed(a, Poly.of(int(a.value)) if isinstance(a, ir.Const) else None) for a in e.args]
        if view.computed is not None:
            return view.computed(indices).expr
        return ir.Load(view.buffer, arrays.offset_of(view.shape, indices, self.span), view.element)

    def _guarded(self, e: ir.Expr) -> ir.Expr:
        """A read for its mark, and 0 outside: what was known where it stood is not known here."""
        real = self._real(e)
        if real is e or not isinstance(e, ir.Call) or not e.args:
            return real
        shape = self.instance.spec.arrays[e.function[len(MARK) :]].shape
        inside = [
            Typed(ir.InRange(a, typed(self.unit.extent(n), self.span, I32).expr, True))
            for a, n in zip(e.args, shape, strict=True)
        ]
        zero = convert(self.body, Literal(0), e.type, self.span).expr
        return ir.Choose(join_conditions("and", inside).expr, real, zero)

    def _index(self, group: Group, entered: tuple[Typed, ...], axis: int) -> ir.Expr:
        rank = len(self.shape)
        places, turns = entered[:rank], entered[rank:]
        self._within(places)
        block = marked(self.composer, self.instance, self.node, places, [self.called.param])
        chosen, pins = self._chosen(group, block, places, turns)
        if not chosen:
            return ir.Const(-1, I32)
        read = next(iter(chosen.values()))

        def pinned(e: ir.Expr) -> ir.Expr:
            return pins.get(e.var.number, e) if isinstance(e, ir.Read) else e

        return rewrite.expression(rewrite.expression(read.args[axis], pinned), self._guarded)

    # ---- statements and numbers ----

    @contextmanager
    def _if(self, condition: ir.Expr) -> Iterator[None]:
        with self.body.nested() as block:
            yield
        self.body.emit(ir.If(condition, tuple(block), (), self.span))

    @contextmanager
    def _each(self, name: str, start: Typed, stop: Typed, step: int) -> Iterator[Typed]:
        with self.body.nested() as block:
            var = self.body.var(name, I32)
            yield Typed(ir.Read(var), loop_symbol(self.body, name, start, stop, step))
        self.body.emit(ir.For(var, start.expr, stop.expr, step, tuple(block), self.span))

    def _margin(self, index: Typed, extent: Typed) -> bool:
        return arrays.is_margin(self.unit, index, extent)

    def _int(self, symbol: str, a: Value, b: Value) -> Typed:
        return typed(arithmetic.binary(self.body, symbol, a, b, self.span), self.span, I32)

    def _value(self, space: Space, p: Poly, known: Mapping[int, Typed]) -> Typed:
        """A polynomial as a value."""
        total: Value = Literal(0)
        for monomial, c in sorted(p.terms.items(), key=lambda t: (-len(t[0]), t[0])):
            product: Value = Literal(c)
            for s in monomial:
                factor = self._symbol(space, s, known)
                product = factor if product == Literal(1) else self._int("*", product, factor)
            total = product if total == Literal(0) else self._int("+", total, product)
        return typed(total, self.span, I32)

    def _symbol(self, space: Space, symbol: int, known: Mapping[int, Typed]) -> Typed:
        if symbol in known:
            return known[symbol]
        match space.meanings[symbol]:
            case ("u", name):
                uniform = self.analysis.uniforms[name]
                self.unit.uniforms.setdefault(name, uniform)
                return Typed(ir.Uniform(name, I32), self.unit.extent_polys.get(name))
            case ("q", *_):
                dividend, divisor = space.quotients[symbol]
                return self._int("//", self._value(space, dividend, known), Literal(divisor))
            case _:
                raise AssertionError(space.meanings[symbol])


def _constant(value: int) -> Typed:
    return Typed(ir.Const(value, I32), Poly.of(value))
