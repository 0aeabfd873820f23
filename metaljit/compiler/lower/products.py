"""Graph → typed IR: a matrix product, with what is computed from it.

In: a group whose stage is a product. Out: a grid kernel, a threadgroup to a tile of the result, which brings blocks of both
factors into threadgroup memory, so that an element of them is computed once for a tile; and, for devices that run no
threadgroups, what it does as functions of positions. Each element is summed in the order of k.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import BOOL, F32, I32, DType
from ...extents import Extent, Lit, op
from .. import ir
from ..graph import Graph, Product, Ref
from . import kernel
from .body import Body
from .convert import convert
from .grouped import Group, opened
from .parameters import Lowered
from .reductions import summed
from .values import Literal, Typed

TILE, DEPTH = 64, 16  # rows and columns of a tile, and how much of k is in threadgroup memory
SIDE = 16  # threads along each side of a tile
EACH = TILE // SIDE  # rows and columns of a thread


def lower_product(graph: Graph, group: Group, math: str = "precise") -> Lowered:
    """One kernel that multiplies and computes the roots from the product."""
    return _Tiled(graph, group, math).lowered()


class _Tiled:
    def __init__(self, graph: Graph, group: Group, math: str) -> None:
        self.graph, self.group = graph, group
        self.start = opened(graph, group, "grid", math)
        self.unit, self.span = self.start.unit, self.start.span
        nodes = [graph.nodes[ref] for ref in group.stages]
        self.nodes = [node for node in nodes if isinstance(node, Product)]
        node = self.nodes[0]
        self.node = node
        *batch, self.m, self.n = map(graph.extent, node.shape)
        self.batch: tuple[Extent, ...] = tuple(batch)
        self.k = graph.extent(graph.nodes[node.left].shape[-1])
        type = summed(node.dtype)
        assert isinstance(type, DType)
        self.type = type

    def lowered(self) -> Lowered:
        start, unit, body = self.start, self.unit, self.start.body
        left = self._factor("left", self.node.left, ("row", "k"), (self.m, self.k))
        rights = tuple(self._factor("right", n.right, ("k", "column"), (self.k, self.n)) for n in self.nodes)
        elements = tuple(
            ir.Element(b, self._element(ref, b.dtype), True)
            for ref, b in zip(self.group.roots, start.buffers, strict=True)
        )
        batch = tuple(body.var(f"b{k}", I32) for k in range(len(self.batch)))
        groups = (*batch, body.var("rows", I32), body.var("columns", I32))
        thread = body.var("thread", I32)
        padding = tuple(body.var("thread", I32) for _ in groups[1:])
        rows, columns, count = (kernel.extent_expr(unit, e) for e in (self.m, self.n, self.k))
        sums = tuple(body.var("sum", self.type) for _ in self.nodes)
        nest = ir.Tiled(batch, rows, columns, count, left, rights, elements, sums)
        _Threads(self, nest, groups, thread).run()
        tiles = tuple(op("ceil_div", e, Lit(TILE)) for e in (self.m, self.n))
        domain = (*self.batch, *tiles)
        sizes = (*(1 for _ in padding), SIDE * SIDE)
        made = ir.Kernel(
            self.group.name, "grid", (*groups, *padding, thread),
            (*(kernel.extent_expr(unit, e) for e in domain), *(ir.Const(n, I32) for n in sizes)),
            start.functions(), tuple(body.block), (), threads=sizes, shared=tuple(unit.shared), cooperative=True,
            nest=nest, span=self.span,
        )  # fmt: skip
        return start.lowered(made, (*domain, *(Lit(n) for n in sizes)))

    # ---- the functions ----

    def _factor(self, name: str, ref: Ref, names: Sequence[str], extents: Sequence[Extent]) -> str:
        return self._function(name, ref, names, extents, [], self.type)

    def _element(self, ref: Ref, type: DType) -> str:
        """A result, of the position and the product there."""
        products = [self.start.body.var("product", self.type) for _ in self.nodes]
        return self._function("element", ref, ("row", "column"), (self.m, self.n), products, type)

    def _function(
        self, name: str, ref: Ref, names: Sequence[str], extents: Sequence[Extent], passed: Sequence[ir.Var], type: DType
    ) -> str:  # fmt: skip
        inner, composer = (
            Body(self.unit, self.start.body.names, self.start.body.function),
            self.start.composer,
        )
        whole = [*(f"b{k}" for k in range(len(self.batch))), *names]
        with self.unit.facts.scope():
            at = [self._position(inner, n, e) for n, e in zip(whole, (*self.batch, *extents), strict=True)]
            if passed:
                composer.reduced = {
                    stage: convert(inner, Typed(ir.Read(var)), node.dtype, self.span)
                    for stage, var, node in zip(self.group.stages, passed, self.nodes, strict=True)
                }
            value = convert(inner, composer.at(inner, ref, tuple(at), {}), type, self.span)
            composer.reduced = {}
        inner.emit(ir.Return((value.expr,), self.span))
        variables = tuple(v.expr.var for v in at if isinstance(v.expr, ir.Read))
        key, functions = ("product", name, ref), self.unit.functions
        block = tuple(inner.block)
        made = ir.Function(name, (*variables, *passed), (), (), (type,), block, self.span)
        functions[key] = made, Literal(None)
        return f"{name}#{list(functions).index(key)}"

    def _position(self, body: Body, name: str, extent: Extent) -> Typed:
        limit = self.unit.extent_poly(extent)
        self.unit.facts.assume(limit - 1)
        return Typed(ir.Read(body.var(name, I32)), self.unit.facts.symbol(name, [0], [limit - 1]))


class _Threads:
    """What the threads of a tile do, each for rows and columns that lie `SIDE` apart."""

    def __init__(self, of: _Tiled, nest: ir.Tiled, groups: Sequence[ir.Var], thread: ir.Var) -> None:
        self.of, self.nest, self.body, self.span = of, nest, of.start.body, of.span
        self.batch = tuple(ir.Read(v) for v in nest.batch)
        self.thread = ir.Read(thread)
        self.rows, self.columns = (_times(ir.Read(v), TILE) for v in groups[-2:])
        self.type = of.type
        names = "left_block", *(f"right_block{k or ''}" for k in range(len(nest.rights)))
        self.blocks = tuple(ir.Buffer(n, of.type, 1, True, TILE * DEPTH) for n in names)
        of.unit.shared.extend(self.blocks)

    def run(self) -> None:
        body, span = self.body, self.span
        totals = [
            [[body.var("sum", self.type) for _ in range(EACH)] for _ in range(EACH)] for _ in self.nest.rights
        ]
        zero = ir.Const(0.0 if self.type.is_float else 0, self.type)
        for var in (v for of in totals for row in of for v in row):
            body.mutable.add(var.number)
            body.emit(ir.Declare(var, zero, span))
        first = body.var("first", I32)
        with body.nested() as block:
            at = ir.Read(first)
            self._fill(self.blocks[0], self.nest.left, DEPTH, self.rows, self.nest.rows, at, self.nest.count)
            for block_of, right in zip(self.blocks[1:], self.nest.rights, strict=True):
                self._fill(block_of, right, TILE, at, self.nest.count, self.columns, self.nest.columns)
            body.emit(ir.Barrier(span))
            left = ir.Apply("subtract", (self.nest.count, at), I32, True)
            depth = ir.Apply("minimum", (left, ir.Const(DEPTH, I32)), I32)
            k = body.var("k", I32)
            with body.nested() as inner:
                self._multiply(ir.Read(k), totals)
            body.emit(ir.For(k, ir.Const(0, I32), depth, 1, tuple(inner), span))
            body.emit(ir.Barrier(span))
        body.emit(ir.For(first, ir.Const(0, I32), self.nest.count, DEPTH, tuple(block), span))
        self._store(totals)

    def _fill(
        self, block: ir.Buffer, function: str, width: int, row: ir.Expr, rows: ir.Expr, column: ir.Expr, columns: ir.Expr
    ) -> None:  # fmt: skip
        """A block of a factor, `width` columns from a place on; what is outside of the factor is not used."""
        body, span = self.body, self.span
        at = body.var("at", I32)
        with body.nested() as inner:
            size = ir.Const(width, I32)
            down = ir.Apply("floor_divide", (ir.Read(at), size), I32)
            across = ir.Apply("remainder", (ir.Read(at), size), I32)
            r, c = body.var("r", I32), body.var("c", I32)
            body.emit(ir.Let(r, _plus(row, down), span))
            body.emit(ir.Let(c, _plus(column, across), span))
            inside = _both(_less(ir.Read(r), rows), _less(ir.Read(c), columns))
            value = ir.Call(function, (*self.batch, ir.Read(r), ir.Read(c)), self.type)
            zero = ir.Const(0.0 if self.type.is_float else 0, self.type)
            stores = (ir.Store(block, ir.Read(at), v, None, span) for v in (value, zero))
            body.emit(ir.If(inside, (next(stores),), (next(stores),), span))
        stop = ir.Const(TILE * DEPTH, I32)
        body.emit(ir.For(at, self.thread, stop, SIDE * SIDE, tuple(inner), span))

    def _down(self) -> ir.Expr:
        return ir.Apply("floor_divide", (self.thread, ir.Const(SIDE, I32)), I32)

    def _across(self) -> ir.Expr:
        return ir.Apply("remainder", (self.thread, ir.Const(SIDE, I32)), I32)

    def _multiply(self, k: ir.Expr, totals: Sequence[Sequence[Sequence[ir.Var]]]) -> None:
        body, span = self.body, self.span
        a = [body.var("a", self.type) for _ in range(EACH)]
        for i in range(EACH):
            row = _plus(self._down(), ir.Const(SIDE * i, I32))
            body.emit(ir.Let(a[i], ir.Load(self.blocks[0], _plus(_times(row, DEPTH), k), self.type), span))
        for block, sums in zip(self.blocks[1:], totals, strict=True):
            b = [body.var("b", self.type) for _ in range(EACH)]
            for j in range(EACH):
                column = _plus(self._across(), ir.Const(SIDE * j, I32))
                body.emit(ir.Let(b[j], ir.Load(block, _plus(_times(k, TILE), column), self.type), span))
            for i in range(EACH):
                for j in range(EACH):
                    self._add(sums[i][j], ir.Read(a[i]), ir.Read(b[j]))

    def _add(self, var: ir.Var, a: ir.Expr, b: ir.Expr) -> None:
        if self.type == F32:
            value: ir.Expr = ir.Apply("fma", (a, b, ir.Read(var)), F32)
        else:
            value = ir.Apply("add", (ir.Read(var), ir.Apply("multiply", (a, b), self.type)), self.type)
        self.body.emit(ir.Assign(var, value, self.span))

    def _store(self, totals: Sequence[Sequence[Sequence[ir.Var]]]) -> None:
        body, span, nest = self.body, self.span, self.nest
        stack: ir.Expr | None = None
        for v, e in zip(self.batch, self.of.batch, strict=True):
            extent = kernel.extent_expr(self.of.unit, e)
            stack = v if stack is None else _plus(ir.Apply("multiply", (stack, extent), I32, True), v)
        for i in range(EACH):
            for j in range(EACH):
                r, c = body.var("r", I32), body.var("c", I32)
                row = _plus(self.rows, _plus(self._down(), ir.Const(SIDE * i, I32)))
                column = _plus(self.columns, _plus(self._across(), ir.Const(SIDE * j, I32)))
                body.emit(ir.Let(r, row, span))
                body.emit(ir.Let(c, column, span))
                line: ir.Expr = ir.Read(r)
                if stack is not None:
                    line = _plus(ir.Apply("multiply", (stack, nest.rows), I32, True), line)
                place = _plus(ir.Apply("multiply", (line, nest.columns), I32, True), ir.Read(c))
                at = (*self.batch, ir.Read(r), ir.Read(c), *(ir.Read(sums[i][j]) for sums in totals))
                stores = tuple(
                    ir.Store(e.buffer, place, ir.Call(e.function, at, e.buffer.dtype), None, span)
                    for e in nest.elements
                )
                inside = _both(_less(ir.Read(r), nest.rows), _less(ir.Read(c), nest.columns))
                body.emit(ir.If(inside, stores, (), span))


def _plus(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Apply("add", (a, b), I32, True)


def _times(a: ir.Expr, b: int) -> ir.Expr:
    return ir.Apply("multiply", (a, ir.Const(b, I32)), I32, True)


def _less(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Apply("less", (a, b), BOOL)


def _both(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Apply("logical_and", (a, b), BOOL)
