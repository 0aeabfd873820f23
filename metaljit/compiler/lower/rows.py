"""Graph → typed IR: a kernel that works on an array a row at a time, as softmax does.

In: a group whose `stages` reduce the last axes of one array, one after the other, and whose results are of the row or of
each of its columns. Out: a grid kernel, a threadgroup to a row, of which each thread takes every so many columns; and, for
devices that run no threadgroups, what it does as functions of row, column, and the stages before.

A row stays in the cache between the stages, so what they read is read anew rather than kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import BF16, BOOL, F16, F32, I32, DType
from ...extents import Extent, Lit, product
from ...operations import OPERATIONS
from .. import ir
from ..bounds import Poly
from ..graph import Graph, Reduce, Ref
from . import arithmetic, kernel
from .body import Body
from .composed import Group, Opened, opened, position_names
from .convert import convert
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
        self.outer = tuple(map(graph.extent, first.shape))
        self.inner = tuple(map(graph.extent, graph.nodes[first.of].shape[len(self.outer) :]))
        self.columns: Extent = product(self.inner)

    def lowered(self) -> Lowered:
        start, unit, body = self.start, self.unit, self.start.body
        unit.threads = (THREADS,)
        stages = [self._stage(ref, k) for k, ref in enumerate(start.group.stages)]
        elements = [self._element(ref, b) for ref, b in zip(start.group.roots, start.buffers, strict=True)]
        count = kernel.extent_expr(unit, self.columns)
        rows = tuple(body.var(n, I32) for n in position_names(len(self.outer)))
        groups = rows or (body.var("group", I32),)
        thread = body.var("thread", I32)
        padding = tuple(body.var("thread", I32) for _ in groups[1:])
        self._threads_work(body, rows, thread, count, stages, elements)
        domain = self.outer or (Lit(1),)
        sizes = (*(1 for _ in padding), THREADS)
        made = ir.Kernel(
            start.group.name, "grid", (*groups, *padding, thread),
            (*(kernel.extent_expr(unit, e) for e in domain), *(ir.Const(n, I32) for n in sizes)),
            start.functions(), tuple(body.block), (), threads=sizes, cooperative=True,
            rows=ir.Rows(count, tuple(stages), tuple(elements)), span=self.span,
        )  # fmt: skip
        return start.lowered(made, (*domain, *(Lit(n) for n in sizes)))

    # ---- the functions ----

    def _stage(self, ref: Ref, number: int) -> ir.Stage:
        node = self.graph.nodes[ref]
        assert isinstance(node, Reduce)
        type = F32 if node.op in ("min", "max") and node.dtype in (F16, BF16) else node.dtype
        name = self._function(
            f"stage{number}", node.of, self.start.group.stages[:number], type, of_column=True
        )
        start = convert(self.start.body, Literal(REDUCTIONS[node.op].start(type)), type, self.span).expr
        assert isinstance(start, ir.Const)
        assert node.op in ("sum", "min", "max")
        return ir.Stage(node.op, start, name, self.start.body.var(node.op, type))  # type: ignore[arg-type]

    def _element(self, ref: Ref, buffer: ir.Buffer) -> ir.Element:
        of_column = tuple(map(self.graph.extent, self.graph.nodes[ref].shape)) == (*self.outer, *self.inner)
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
                var = inner.var("reduced", F32 if node.dtype in (F16, BF16) else node.dtype)
                passed.append(var)
                reduced[stage] = convert(inner, Typed(ir.Read(var)), node.dtype, self.span)
            rest = len(self.graph.nodes[ref].shape) - len(rows)
            indices = (*rows, *(self._unravelled(inner, column) if of_column else (ZERO,) * rest))
            start.composer.reduced = reduced
            value = convert(inner, start.composer.at(inner, ref, indices, {}), type, self.span)
            start.composer.reduced = {}
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

    def _unravelled(self, body: Body, column: Typed) -> tuple[Typed, ...]:
        """The column's index on each of the axes that are reduced."""
        found: list[Typed] = []
        rest = column
        for extent in reversed(self.inner[1:]):
            size = self.unit.extent(extent)
            found.append(typed(arithmetic.binary(body, "%", rest, size, self.span), self.span, I32))
            rest = body.let(
                "rest", typed(arithmetic.binary(body, "//", rest, size, self.span), self.span, I32), self.span
            )
        return (rest, *reversed(found))

    # ---- the threads ----

    def _threads_work(
        self,
        body: Body,
        rows: Sequence[ir.Var],
        thread: ir.Var,
        count: ir.Expr,
        stages: Sequence[ir.Stage],
        elements: Sequence[ir.Element],
    ) -> None:
        row = tuple(ir.Read(v) for v in rows)
        done: tuple[ir.Expr, ...] = ()
        for stage in stages:
            total = body.var("total", stage.var.type)
            body.mutable.add(total.number)
            body.emit(ir.Declare(total, stage.start, self.span))
            column = body.var("column", I32)
            value = ir.Call(stage.function, (*row, ir.Read(column), *done), stage.var.type)
            step = ir.Assign(total, combined(stage, ir.Read(total), value), self.span)
            body.emit(ir.For(column, ir.Read(thread), count, THREADS, (step,), self.span))
            body.emit(ir.Collective(f"group_{stage.op}", stage.var, ir.Read(total), None, self.span))
            done = (*done, ir.Read(stage.var))
        place: ir.Expr = ir.Const(0, I32)
        for r, e in zip(row, self.outer, strict=True):
            scaled = ir.Apply("multiply", (place, kernel.extent_expr(self.unit, e)), I32, True)
            place = ir.Apply("add", (scaled, r), I32, True) if place != ir.Const(0, I32) else r
        columns = [e for e in elements if e.of_column]
        if columns:
            column = body.var("column", I32)
            base = ir.Apply("multiply", (place, count), I32, True)
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
            body.emit(ir.For(column, ir.Read(thread), count, THREADS, stores, self.span))
        whole = tuple(
            ir.Store(
                e.buffer, place, ir.Call(e.function, (*row, ir.Const(0, I32), *done), e.buffer.dtype), None, self.span
            )
            for e in elements
            if not e.of_column
        )  # fmt: skip
        if whole:
            first = ir.Apply("equal", (ir.Read(thread), ir.Const(0, I32)), BOOL)
            body.emit(ir.If(first, whole, (), self.span))


def combined(stage: ir.Stage, total: ir.Expr, value: ir.Expr) -> ir.Expr:
    """A stage's operation on what it has and a new value."""
    op = {"sum": "add", "min": "minimum", "max": "maximum"}[stage.op]
    return ir.Apply(OPERATIONS[op].name, (total, value), stage.var.type)
