"""Graph → typed IR: a kernel that works on an array a row at a time, as softmax does.

In: a group whose `stages` reduce the last axes of one array, one after the other, and whose results are of the row or of
each of its columns. Out: a grid kernel, a threadgroup to a row, of which each thread takes every so many columns; and, for
devices that run no threadgroups, what it does as functions of row, column, and the stages before.

A row stays in the cache between the stages, so what they read is read anew rather than kept. A row of very many columns
is reduced in pieces, a threadgroup to each, of which another kernel reduces the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import BF16, BOOL, F16, F32, I32, DType
from ...extents import Extent, Lit, op, product
from ...operations import OPERATIONS
from ...source import Span
from .. import ir
from ..bounds import Poly
from ..graph import Graph, Reduce, Ref
from . import arithmetic, arrays, kernel
from .body import Body
from .composed import Flat
from .convert import convert
from .grouped import Group, Opened, opened, position_names
from .literals import typed
from .parameters import Lowered
from .reductions import REDUCTIONS
from .values import Literal, Typed

THREADS = 256
ZERO = Typed(ir.Const(0, I32), Poly.of(0))


def lower_rows(graph: Graph, group: Group, math: str = "precise") -> Lowered:
    """One kernel that reduces rows and computes the roots from them."""
    return _Rows(graph, opened(graph, group, "grid", math)).lowered()


class _Rows:
    def __init__(self, graph: Graph, start: Opened) -> None:
        self.graph, self.start, self.unit, self.span = graph, start, start.unit, start.span
        first = graph.nodes[start.group.stages[0]]
        assert isinstance(first, Reduce)
        self.chunk = first.chunk
        self.outer = tuple(map(graph.extent, first.shape[:-1] if self.chunk else first.shape))
        self.inner = tuple(map(graph.extent, graph.nodes[first.of].shape[len(self.outer) :]))
        self.columns: Extent = product(self.inner)

    def lowered(self) -> Lowered:
        start, unit, body = self.start, self.unit, self.start.body
        unit.threads = (THREADS,)
        stages = [self._stage(ref, k) for k, ref in enumerate(start.group.stages)]
        elements = [self._element(ref, b) for ref, b in zip(start.group.roots, start.buffers, strict=True)]
        count = kernel.extent_expr(unit, self.columns)
        rows = tuple(body.var(n, I32) for n in position_names(len(self.outer)))
        piece = (body.var("piece", I32),) if self.chunk else ()
        groups = (*rows, *piece) or (body.var("group", I32),)
        thread = body.var("thread", I32)
        padding = tuple(body.var("thread", I32) for _ in groups[1:])
        pieces = (op("ceil_div", self.columns, Lit(self.chunk)),) if self.chunk else ()
        domain = (*self.outer, *pieces) or (Lit(1),)
        nest = ir.Rows(rows, count, tuple(stages), tuple(elements), self.chunk)
        self._threads_work(body, nest, groups, domain, thread)
        sizes = (*(1 for _ in padding), THREADS)
        made = ir.Kernel(
            start.group.name, "grid", (*groups, *padding, thread),
            (*(kernel.extent_expr(unit, e) for e in domain), *(ir.Const(n, I32) for n in sizes)),
            start.functions(), tuple(body.block), (), threads=sizes, cooperative=True,
            shared=tuple(unit.shared), nest=nest, span=self.span,
        )  # fmt: skip
        return start.lowered(made, (*domain, *(Lit(n) for n in sizes)))

    # ---- the functions ----

    def _stage(self, ref: Ref, number: int) -> ir.Stage:
        node = self.graph.nodes[ref]
        assert isinstance(node, Reduce)
        type = accumulated(node)
        before = self.start.group.stages[:number] if not self.chunk else ()
        name = self._function(f"stage{number}", node.of, before, type, of_column=True)
        return stage(self.start.body, node, name, self.span)

    def _element(self, ref: Ref, buffer: ir.Buffer) -> ir.Element:
        shape = tuple(map(self.graph.extent, self.graph.nodes[ref].shape))
        of_column = shape == (*self.outer, *self.inner) and not self.chunk
        name = self._function("element", ref, self.start.group.stages, buffer.dtype, of_column)
        return ir.Element(buffer, name, of_column)

    def _function(self, name: str, ref: Ref, before: Sequence[Ref], type: DType, of_column: bool) -> str:
        """A function of the row's positions, the column, and the values of the stages before."""
        unit, start = self.unit, self.start
        inner = Body(unit, start.body.names, start.body.function)
        with unit.facts.scope():
            rows = [
                self._position(inner, n, e)
                for n, e in zip(position_names(len(self.outer)), self.outer, strict=True)
            ]
            column = self._position(inner, "column", self.columns)
            reduced: dict[Ref, Typed] = {}
            passed: list[ir.Var] = []
            for stage in before:
                node = self.graph.nodes[stage]
                assert isinstance(node, Reduce)
                var = inner.var("reduced", accumulated(node))
                passed.append(var)
                reduced[stage] = given_back(inner, node, var, self.span)
            rest = len(self.graph.nodes[ref].shape) - len(rows)
            indices = (
                *rows,
                *(unravelled(inner, column, self.inner, self.span) if of_column else (ZERO,) * rest),
            )
            start.composer.reduced = reduced
            if of_column and len(self.inner) > 1:
                start.composer.flat = self._flat(rows, indices, column)
            value = convert(inner, start.composer.at(inner, ref, indices, {}), type, self.span)
            start.composer.reduced, start.composer.flat = {}, None
        inner.emit(ir.Return((value.expr,), self.span))
        variables = [v.expr.var for v in (*rows, column) if isinstance(v.expr, ir.Read)]
        key = ("rows", name, ref)
        unit.functions[key] = (
            ir.Function(name, (*variables, *passed), (), (), (type,), tuple(inner.block), self.span), Literal(None)
        )  # fmt: skip
        return f"{name}#{list(unit.functions).index(key)}"

    def _position(self, body: Body, name: str, extent: Extent) -> Typed:
        limit = self.unit.extent_poly(extent)
        self.unit.facts.assume(limit - 1)
        return Typed(ir.Read(body.var(name, I32)), self.unit.facts.symbol(name, [0], [limit - 1]))

    def _flat(self, rows: Sequence[Typed], indices: Sequence[Typed], column: Typed) -> Flat:
        """Columns of several axes follow one another in memory."""
        place: ir.Expr = column.expr
        if rows:
            extents = [self.unit.extent(e) for e in self.outer]
            row = arrays.offset_of(extents, rows, self.span)
            first = ir.Apply("multiply", (row, kernel.extent_expr(self.unit, self.columns)), I32, True)
            place = ir.Apply("add", (first, column.expr), I32, True)
        return Flat((*self.outer, *self.inner), tuple(i.expr for i in indices), place)

    # ---- the threads ----

    def _threads_work(
        self,
        body: Body,
        nest: ir.Rows,
        groups: Sequence[ir.Var],
        domain: Sequence[Extent],
        thread: ir.Var,
    ) -> None:
        row = tuple(ir.Read(v) for v in nest.positions)
        done: tuple[ir.Expr, ...] = ()
        first: ir.Expr = ir.Read(thread)
        stop = nest.columns
        if self.chunk:
            start = ir.Apply("multiply", (ir.Read(groups[-1]), ir.Const(self.chunk, I32)), I32, True)
            left = ir.Apply("subtract", (nest.columns, start), I32, True)
            size = ir.Apply("minimum", (left, ir.Const(self.chunk, I32)), I32)
            first, stop = (ir.Apply("add", (start, e), I32, True) for e in (first, size))
        for stage in nest.stages:
            total = body.var("total", stage.var.type)
            body.mutable.add(total.number)
            body.emit(ir.Declare(total, stage.start, self.span))
            column = body.var("column", I32)
            value = ir.Call(
                stage.function, (*row, ir.Read(column), *(() if self.chunk else done)), stage.var.type
            )
            step = ir.Assign(total, combined(stage, ir.Read(total), value), self.span)
            body.emit(ir.For(column, first, stop, THREADS, (step,), self.span))
            self._met(body, stage, ir.Read(total), thread)
            done = (*done, ir.Read(stage.var))
        place: ir.Expr = ir.Read(groups[0]) if domain != (Lit(1),) else ir.Const(0, I32)
        for v, e in zip(groups[1:], domain[1:], strict=True):
            scaled = ir.Apply("multiply", (place, kernel.extent_expr(self.unit, e)), I32, True)
            place = ir.Apply("add", (scaled, ir.Read(v)), I32, True)
        columns = [e for e in nest.elements if e.of_column]
        if columns:
            column = body.var("column", I32)
            base = ir.Apply("multiply", (place, nest.columns), I32, True)
            at = ir.Apply("add", (base, ir.Read(column)), I32, True)
            stores = tuple(
                ir.Store(
                    e.buffer,
                    at,
                    ir.Call(e.function, (*row, ir.Read(column), *done), e.buffer.dtype),
                    None,
                    self.span,
                )
                for e in columns
            )
            body.emit(ir.For(column, ir.Read(thread), nest.columns, THREADS, stores, self.span))
        whole = tuple(
            ir.Store(
                e.buffer, place, ir.Call(e.function, (*row, ir.Const(0, I32), *done), e.buffer.dtype), None, self.span
            )
            for e in nest.elements
            if not e.of_column
        )  # fmt: skip
        if whole:
            body.emit(ir.If(_is(thread, 0), whole, (), self.span))

    def _met(self, body: Body, stage: ir.Stage, value: ir.Expr, thread: ir.Var) -> None:
        """All threads' values as one, which each of them gets."""
        if stage.op != "prod":
            body.emit(ir.Collective(f"group_{stage.op}", stage.var, value, None, self.span))
            return
        at = ir.Read(thread)
        name = f"products_{stage.var.type}"
        shared = ir.Buffer(name, stage.var.type.scalar, 1, True, THREADS)
        if shared not in self.unit.shared:
            self.unit.shared.append(shared)
        body.emit(ir.Store(shared, at, value, None, self.span))
        half = THREADS // 2
        while half:
            body.emit(ir.Barrier(self.span))
            both = (
                ir.Load(shared, at, stage.var.type),
                ir.Load(shared, ir.Apply("add", (at, ir.Const(half, I32)), I32, True), stage.var.type),
            )
            step = ir.Store(shared, at, combined(stage, *both), None, self.span)
            body.emit(ir.If(ir.Apply("less", (at, ir.Const(half, I32)), BOOL), (step,), (), self.span))
            half //= 2
        body.emit(ir.Barrier(self.span))
        body.emit(ir.Let(stage.var, ir.Load(shared, ir.Const(0, I32), stage.var.type), self.span))
        body.emit(ir.Barrier(self.span))


def _is(var: ir.Var, value: int) -> ir.Expr:
    return ir.Apply("equal", (ir.Read(var), ir.Const(value, I32)), BOOL)


# ---- reductions, as rows and columns have them ----


def accumulated(node: Reduce) -> DType:
    """The type in which values are reduced: threads exchange neither bools nor 16-bit floats."""
    if node.dtype == BOOL:
        return I32
    return F32 if node.dtype in (F16, BF16) else node.dtype


def stage(body: Body, node: Reduce, function: str, span: Span) -> ir.Stage:
    """A reduction of what a function gives."""
    type = accumulated(node)
    kind = {"any": "max", "all": "min"}.get(node.op, node.op)
    element = node.dtype if node.op in ("min", "max") and node.dtype == BOOL else type
    first = convert(body, Literal(REDUCTIONS[node.op].start(element)), type, span).expr
    assert isinstance(first, ir.Const)
    return ir.Stage(kind, first, function, body.var(node.op, type))  # type: ignore[arg-type]


def given_back(body: Body, node: Reduce, var: ir.Var, span: Span) -> Typed:
    """What a stage gave, as the node's value."""
    return convert(body, Typed(ir.Read(var)), node.dtype, span)


def unravelled(body: Body, flat: Typed, shape: Sequence[Extent], span: Span) -> tuple[Typed, ...]:
    """The index on each axis of what lies at a place in row-major order."""
    found: list[Typed] = []
    for extent in reversed(shape[1:]):
        size = body.unit.extent(extent)
        found.append(typed(arithmetic.binary(body, "%", flat, size, span), span, I32))
        flat = body.let("rest", typed(arithmetic.binary(body, "//", flat, size, span), span, I32), span)
    return (flat, *reversed(found))


def combined(stage: ir.Stage, total: ir.Expr, value: ir.Expr) -> ir.Expr:
    """A stage's operation on what it has and a new value."""
    name = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}[stage.op]
    return ir.Apply(OPERATIONS[name].name, (total, value), stage.var.type)
