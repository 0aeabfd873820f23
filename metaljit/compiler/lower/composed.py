"""Graph → typed IR: the element of a node at an index, by composition of index functions.

In: a graph, which nodes are read from memory, a node and an index. Out: a value, and the statements before it. A node that
is read by a kernel of the user's becomes a device function of its indices, made for what is known of them (so that borders
vanish inside); all else is computed where it is wanted, once for equal indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias, assert_never

from ...dtypes import I32, Type, Vec
from ...extents import Extent
from ...frozen import frozen, mutable
from ...operations import OPERATIONS
from ...program import INDEX_MAX
from ...source import Span
from .. import ir
from ..bounds import Poly
from ..graph import (
    Axes,
    Call,
    Carried,
    Cast,
    Choose,
    Count,
    Elementwise,
    Embed,
    Fill,
    Gather,
    Graph,
    Index,
    Input,
    Launch,
    Loop,
    Map,
    Number,
    Part,
    Product,
    Reduce,
    Ref,
    Reshape,
    Ruled,
    Scatter,
    Slice,
    View,
    Windows,
)
from . import adjoint, arithmetic, arrays, kernel, looped, returns, selected, statements, values
from .body import Body, Unit
from .convert import convert
from .expressions import free_value
from .instance import Instance
from .literals import typed
from .loops import loop_symbol
from .names import canonical
from .reductions import REDUCTIONS
from .signature import Declared, PackAxes
from .specialise import ArrayType, Specialisation
from .values import Literal, Typed, Value

_SIMPLE = (ir.Const, ir.Read, ir.Uniform)
_DEEP = 32  # an expression, for those who read it and have a stack of their own
_DEEP_INDEX = 6  # an index, by which values are found

MakeView: TypeAlias = Callable[[Body, Any, ArrayType, Declared], values.View]
MakeNumber: TypeAlias = Callable[[Body, Any, Type, Declared], Typed]
Known: TypeAlias = dict[tuple[Ref, tuple[ir.Expr, ...]], tuple[Typed, ...]]


@frozen
class Flat:
    """Where elements of arrays of this shape lie at these indices: a place that need not be found from them."""

    shape: tuple[Extent, ...]
    indices: tuple[ir.Expr, ...]
    place: ir.Expr


@mutable
class Composer:
    """Lowers nodes of a graph at given indices."""

    graph: Graph
    unit: Unit
    stored: Mapping[Ref, str]
    uses: Mapping[Ref, int]
    reduced: Mapping[Ref, Typed] = field(
        default_factory=dict
    )  # reductions of the row, whose values are there
    flat: Flat | None = None

    # ---- values ----

    def at(self, body: Body, ref: Ref, indices: tuple[Typed, ...], known: Known) -> Typed:
        """The element of a node at indices that are in range."""
        return self.all_at(body, ref, indices, known)[0]

    def all_at(self, body: Body, ref: Ref, indices: tuple[Typed, ...], known: Known) -> tuple[Typed, ...]:
        """What is behind a node comes first, by a list of what is to be done: chains are longer than stacks are deep."""
        todo = [(ref, indices)]
        while todo:
            at, place = todo[-1]
            if at in self.reduced or _key(at, place) in known:
                todo.pop()
                continue
            behind = self._behind(body, at, place, known)
            missing = [w for w in behind if w[0] not in self.reduced and _key(*w) not in known]
            if missing:
                todo += reversed(missing)
                continue
            made = self._made(body, at, place, known)
            many = self.uses.get(at, 0) > 1
            known[_key(at, place)] = tuple(self._named(body, v, at, many) for v in made)
        return (self.reduced[ref],) if ref in self.reduced else known[_key(ref, indices)]

    def _behind(
        self, body: Body, ref: Ref, indices: tuple[Typed, ...], known: Known
    ) -> list[tuple[Ref, tuple[Typed, ...]]]:
        """What a node is computed from at its place, and where."""
        if ref in self.stored:
            return []
        match self.graph.nodes[ref]:
            case Elementwise(_, args):
                return [(a, indices if self.graph.nodes[a].shape else ()) for a in args]
            case Cast(of) | Part(of):
                return [(of, indices)]
            case View(of, map) if not (isinstance(map, Reshape) and of in self.stored):
                return [(of, self._place(body, ref, indices, known))]
            case _:
                return []

    def _place(self, body: Body, ref: Ref, indices: tuple[Typed, ...], known: Known) -> tuple[Typed, ...]:
        """Where an element of a view stands in what it shows; known under a number that no node has."""
        key = _key(~ref, indices)
        if key not in known:
            node, span = self.graph.nodes[ref], self.graph.spans[ref]
            assert isinstance(node, View)
            found = self.mapped(body, node.map, self.graph.nodes[node.of].shape, node.shape, indices, span)
            known[key] = tuple(self._named(body, i, ref, False, _DEEP_INDEX) for i in found)
        return known[key]

    def _named(self, body: Body, value: Typed, ref: Ref, many: bool, depth: int = _DEEP) -> Typed:
        """A value as a variable, where it is used again or its expression gets too deep for those who read it."""
        if isinstance(value.expr, _SIMPLE) or not (many or _is_deep(value.expr, depth)):
            return value
        return body.let("t", value, self.graph.spans[ref])

    def _made(self, body: Body, ref: Ref, indices: tuple[Typed, ...], known: Known) -> tuple[Typed, ...]:
        node, span = self.graph.nodes[ref], self.graph.spans[ref]
        if ref in self.stored:
            return (self._loaded(body, ref, indices, span),)
        match node:
            case Number(name, _):
                return (typed(self.unit.scalar(name), span),)
            case Fill(number, dtype):
                return (convert(body, Literal(number), dtype, span),)
            case Count(extent, dtype):
                return (convert(body, self.unit.extent(self.graph.extent(extent)), dtype, span),)
            case Index(axis, dtype):
                return (convert(body, indices[axis], dtype, span),)
            case Elementwise(op, args):
                parts = [self.at(body, a, indices if self.graph.nodes[a].shape else (), known) for a in args]
                value = arithmetic.apply(body, OPERATIONS[op], parts, span)
                return (convert(body, value, node.dtype, span),)
            case Cast(of, dtype):
                return (convert(body, self.at(body, of, indices, known), dtype, span),)
            case View(of, Reshape()) if of in self.stored:
                shape = [self.unit.extent(self.graph.extent(e)) for e in node.shape]
                return (Typed(ir.Load(self.buffer(of), arrays.offset_of(shape, indices, span), node.dtype)),)
            case View(of):
                return (self.at(body, of, self._place(body, ref, indices, known), known),)
            case Embed():
                return (selected.embedded(self, body, node, indices, known, span),)
            case Gather():
                return (selected.gathered(self, body, node, indices, known, span),)
            case Ruled(of):
                return (self.at(body, of, indices, known),)
            case Choose():
                return (selected.chosen(self, body, node, indices, known, span),)
            case Loop():
                return looped.looped(self, body, node, indices, known, span)
            case Part(of, number):
                return (self.all_at(body, of, indices, known)[number],)
            case Call():
                return self._called(body, ref, node, indices, span)
            case Reduce():
                return (self._reduced(body, node, indices, known, span),)
            case Input() | Scatter() | Carried() | Product() | Launch():
                raise AssertionError(f"{type(node).__name__} is read from memory")
        assert_never(node)

    def _loaded(self, body: Body, ref: Ref, indices: tuple[Typed, ...], span: Span) -> Typed:
        node = self.graph.nodes[ref]
        extents = tuple(map(self.graph.extent, node.shape))
        if (
            self.flat is not None
            and self.flat.shape == extents
            and self.flat.indices == tuple(i.expr for i in indices)
        ):
            return Typed(ir.Load(self.buffer(ref), self.flat.place, node.dtype))
        shape = list(map(self.unit.extent, extents))
        return Typed(ir.Load(self.buffer(ref), arrays.offset_of(shape, indices, span), node.dtype))

    def buffer(self, ref: Ref) -> ir.Buffer:
        return ir.Buffer(self.stored[ref], self.graph.nodes[ref].dtype, 1, False)

    # ---- views ----

    def mapped(
        self,
        body: Body,
        map: Map,
        source: Sequence[Extent],
        shape: Sequence[Extent],
        indices: tuple[Typed, ...],
        span: Span,
    ) -> tuple[Typed, ...]:
        """Where in the source an element of a view stands."""
        zero = Typed(ir.Const(0, I32), Poly.of(0))
        match map:
            case Axes(along):
                return tuple(zero if k is None else indices[k] for k in along)
            case Slice(starts, steps):
                found = []
                for index, start, step in zip(indices, starts, steps, strict=True):
                    scaled = _int(body, "*", index, Literal(step), span)
                    found.append(_int(body, "+", scaled, self.unit.extent(self.graph.extent(start)), span))
                return tuple(found)
            case Windows(axis, step):
                pitch = self.unit.extent(self.graph.extent(step))
                tap = _int(body, "*", indices[axis], pitch, span)
                place = _int(body, "+", tap, indices[axis + 1], span)
                return (*indices[:axis], place, *indices[axis + 2 :])
            case Reshape():
                return self._reshaped(body, source, shape, indices, span)
        assert_never(map)

    def _reshaped(
        self,
        body: Body,
        source: Sequence[Extent],
        shape: Sequence[Extent],
        indices: tuple[Typed, ...],
        span: Span,
    ) -> tuple[Typed, ...]:
        """Axes that both have at the front or at the back are what they are; the others go by their row-major place."""
        source, shape = tuple(map(self.graph.extent, source)), tuple(map(self.graph.extent, shape))
        front = _agreeing(source, shape)
        back = _agreeing(source[front:][::-1], shape[front:][::-1])
        inner = indices[front : len(indices) - back]
        flat = _zero()
        for index, extent in zip(inner, shape[front:], strict=False):
            scaled = _int(body, "*", flat, self.unit.extent(self.graph.extent(extent)), span)
            flat = _int(body, "+", scaled, index, span)
        found: list[Typed] = []
        for k, extent in reversed(list(enumerate(source[front : len(source) - back]))):
            size = self.unit.extent(self.graph.extent(extent))
            if k == 0:
                found.append(flat)
                break
            flat = flat if isinstance(flat.expr, _SIMPLE) else body.let("flat", flat, span)
            found.append(_int(body, "%", flat, size, span))
            flat = _int(body, "//", flat, size, span)
        return (*indices[:front], *reversed(found), *indices[len(indices) - back :])

    # ---- reductions ----

    def _reduced(
        self, body: Body, node: Reduce, indices: tuple[Typed, ...], known: Known, span: Span
    ) -> Typed:
        row = REDUCTIONS[node.op]
        total = node.dtype
        element = self.graph.nodes[node.of].dtype
        start = convert(
            body, Literal(row.start(element if node.op in ("min", "max") else total)), total, span
        )
        var = body.var(node.op, total)
        body.mutable.add(var.number)
        body.emit(ir.Declare(var, start.expr, span))
        self._loops(body, node, list(node.axes), list(indices), known, var, span)
        return Typed(ir.Read(var))

    def _loops(
        self,
        body: Body,
        node: Reduce,
        axes: list[int],
        indices: list[Typed],
        known: Known,
        var: ir.Var,
        span: Span,
    ) -> None:
        if not axes:
            value = convert(body, self.at(body, node.of, tuple(indices), known), var.type, span)
            changed = arithmetic.apply(
                body, OPERATIONS[REDUCTIONS[node.op].op], (Typed(ir.Read(var)), value), span
            )
            assert isinstance(changed, Typed)
            body.set(var, convert(body, changed, var.type, span).expr, span)
            return
        axis, *rest = axes
        stop = typed(self.unit.extent(self.graph.extent(self.graph.nodes[node.of].shape[axis])), span)
        with body.nested() as block:
            k = body.var("k", I32)
            index = Typed(ir.Read(k), loop_symbol(body, "k", _zero(), stop, 1))
            self._loops(body, node, rest, [*indices[:axis], index, *indices[axis:]], dict(known), var, span)
        body.emit(ir.For(k, ir.Const(0, I32), stop.expr, 1, tuple(block), span))

    # ---- functions ----

    def _called(
        self, body: Body, ref: Ref, node: Call, indices: tuple[Typed, ...], span: Span
    ) -> tuple[Typed, ...]:
        """All results of a kernel at a position; of one of vectors, the lanes at the last index."""
        instance = self.graph.kernels[node.key]
        if not (isinstance(instance, Instance) and isinstance(instance.spec.results[0].element, Vec)):
            return self.whole(body, ref, node, indices, span)
        found = self.whole(body, ref, node, indices[:-1], span)
        return tuple(Typed(ir.Lane(v.expr, _lane(indices[-1]), v.type.scalar)) for v in found)

    def whole(
        self, body: Body, ref: Ref, node: Call, place: tuple[Typed, ...], span: Span
    ) -> tuple[Typed, ...]:
        """All results of a kernel at a position, vectors as vectors."""
        called: Instance | adjoint.Adjoint = self.graph.kernels[node.key]
        instance = called if isinstance(called, Instance) else called.primal
        spec = self.specialised(instance)

        def lower(entered: tuple[Typed, ...]) -> Body:
            with self.unit.within(spec):
                if isinstance(called, adjoint.Adjoint):
                    return adjoint.lowered(self, called, node, entered)
                return self.instance(instance, node, entered, self._own_view, self.number)

        if isinstance(called, adjoint.Adjoint):
            return self.function(body, ("call", ref), called.function.name, place, node.results, lower, span)
        types = tuple(r.element for r in instance.spec.results)
        return self.function(body, ("call", ref), instance.function.name, place, types, lower, span)

    def specialised(self, instance: Instance) -> Specialisation:
        """A kernel's types, and its extents as they are called now: some may have been found equal after it was traced."""
        extents = {name: self.graph.extent(e) for name, e in instance.spec.extents.items()}
        return replace(instance.spec, extents=extents)

    def instance(
        self, instance: Instance, node: Call, positions: tuple[Typed, ...], view: MakeView, number: MakeNumber
    ) -> Body:
        """The body of a kernel at a position."""
        unit, spec = self.unit, instance.spec
        kernel.array_facts(unit)
        inner = Body(unit, instance.names, instance.function)
        given = dict(node.arguments)
        for p in instance.signature.params:
            if p.kind == "const":
                inner.env[p.name] = free_value(inner, canonical(spec.constants[p.name]), p.name, p.span)
            elif p.kind == "scalar":
                inner.env[p.name] = number(inner, given[p.name], spec.scalars[p.name], p)
            else:
                inner.env[p.name] = view(inner, given.get(p.name), spec.arrays[p.name], p)
        inner.positions = positions
        inner.always_index = any(isinstance(a, PackAxes) for a in instance.signature.results[0].axes or ())
        inner.plan = returns.ResultPlan.of_types([r.element for r in spec.results])
        statements.lower_body(inner, instance.function)
        return inner

    def number(self, body: Body, value: Ref | tuple[int | float, ...], type: Type, param: Declared) -> Typed:
        """A kernel's scalar or vector parameter."""
        span = param.span
        if isinstance(value, int):
            return convert(body, self.at(body, value, (), {}), type, span)
        parts = tuple(convert(body, Literal(v), type.scalar, span).expr for v in value)
        return Typed(ir.Vector(parts, type))

    def _own_view(self, body: Body, value: Any, type: ArrayType, param: Declared) -> values.View:
        return self.view(body, value, type, param.span)

    def view(self, body: Body, ref: Ref, type: ArrayType, declared: Span) -> values.View:
        """A kernel's array parameter: memory, or what is computed where it is read."""
        shape = tuple(self.unit.extent(e) for e in type.shape)
        modes = (None,) * len(shape)
        if ref in self.stored and not isinstance(type.element, Vec):
            return values.View(self.buffer(ref), type.element, shape, declared, modes)
        span = self.graph.spans[ref]

        def computed(indices: Sequence[Typed]) -> Typed:
            if not isinstance(type.element, Vec):
                return self.element(body, ref, tuple(indices), span)
            lanes = [Typed(ir.Const(k, I32), Poly.of(k)) for k in range(type.element.lanes)]
            parts = tuple(self.element(body, ref, (*indices, lane), span).expr for lane in lanes)
            return Typed(ir.Vector(parts, type.element))

        buffer = ir.Buffer(f"{ref}", type.element.scalar, type.element.lanes, False)
        return values.View(buffer, type.element, shape, declared, modes, computed=computed)

    def element(self, body: Body, ref: Ref, indices: tuple[Typed, ...], span: Span) -> Typed:
        """A node's element as an expression, to be evaluated only where it is wanted."""
        node = self.graph.nodes[ref]
        if ref in self.stored:
            return self._loaded(body, ref, indices, span)
        if isinstance(node, Call) and len(node.results) == 1:
            return self._called(body, ref, node, indices, span)[0]

        def lower(entered: tuple[Typed, ...]) -> Body:
            inner = Body(self.unit, body.names, body.function, is_kernel=False)
            inner.emit(ir.Return((self.at(inner, ref, entered, {}).expr,), span))
            return inner

        name = f"{type(node).__name__.lower()}"
        return self.function(body, ("node", ref), name, indices, (node.dtype,), lower, span)[0]

    def function(
        self,
        body: Body,
        key: Any,
        name: str,
        indices: tuple[Typed, ...],
        types: tuple[Type, ...],
        lower: Callable[[tuple[Typed, ...]], Body],
        span: Span,
    ) -> tuple[Typed, ...]:
        """A call of a function of indices, made anew for what is known of them and of this place."""
        unit = self.unit
        known = tuple(i.poly.key() if i.poly is not None else None for i in indices)
        full = (key, known, unit.facts.stamp)
        if full not in unit.functions:
            variables = tuple(body.var(f"i{k}", I32) for k in range(len(indices)))
            entered = tuple(
                Typed(ir.Read(v), i.poly or unit.facts.symbol(v.name, [0], [INDEX_MAX]))
                for v, i in zip(variables, indices, strict=True)
            )
            with unit.facts.scope():
                block = tuple(lower(entered).block)
            unit.functions[full] = ir.Function(name, variables, (), (), types, block, span), Literal(None)
        number = list(unit.functions).index(full)
        passed = tuple(i.expr for i in indices)
        if len(types) == 1:
            return (Typed(ir.Call(f"{name}#{number}", passed, types[0])),)
        results = tuple(body.var(f"{name}_{k}", t) for k, t in enumerate(types))
        body.emit(ir.CallInto(f"{name}#{number}", passed, results, span))
        return tuple(Typed(ir.Read(v)) for v in results)


def _key(ref: Ref, indices: tuple[Typed, ...]) -> tuple[Ref, tuple[ir.Expr, ...]]:
    return ref, tuple(i.expr for i in indices)


def _is_deep(expr: ir.Expr, left: int) -> bool:
    return not left or any(_is_deep(e, left - 1) for e in ir.children(expr))


def _agreeing(a: Sequence[Extent], b: Sequence[Extent]) -> int:
    """How many extents are equal from the first on."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((k for k, (m, n) in pairs if m != n), min(len(a), len(b)))


def _zero() -> Typed:
    return Typed(ir.Const(0, I32), Poly.of(0))


def _int(body: Body, symbol: str, a: Value, b: Value, span: Span) -> Typed:
    """Arithmetic of indices, which stays in range."""
    return typed(arithmetic.binary(body, symbol, a, b, span), span, I32)


def _lane(index: Typed) -> int | ir.Expr:
    constant = index.poly.constant if index.poly is not None else None
    return index.expr if constant is None else constant
