"""Graph → typed IR: reductions of which each element is one thread's, that reads what is next to its neighbours' reads.

In: a group whose `stages` reduce the same axes, the last one not among them, and whose roots are computed from these at the
same index. Out: a map kernel; and, for devices that had better go through memory in order, what it does as functions of the
position and of the number of what is reduced. The order is that of the number, whichever way it is done.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import I32, DType
from ...extents import product
from .. import ir
from ..bounds import Poly
from ..graph import Graph, Reduce, Ref
from . import kernel
from .body import Body
from .convert import convert
from .grouped import Group, opened, position_names
from .parameters import Lowered
from .rows import accumulated, combined, given_back, stage, unravelled
from .values import Literal, Typed


def lower_columns(graph: Graph, group: Group, math: str = "precise") -> Lowered:
    """One kernel that reduces columns and computes the roots from them."""
    return _Columns(graph, group, math).lowered()


class _Columns:
    def __init__(self, graph: Graph, group: Group, math: str) -> None:
        self.graph, self.group = graph, group
        self.start = opened(graph, group, "map", math)
        self.unit, self.span = self.start.unit, self.start.span
        self.stages: list[tuple[Ref, Reduce]] = []
        for ref in group.stages:
            node = graph.nodes[ref]
            assert isinstance(node, Reduce)
            self.stages.append((ref, node))
        _, first = self.stages[0]
        self.axes, self.chunk = first.axes, first.chunk
        self.full = tuple(map(graph.extent, graph.nodes[first.of].shape))
        self.reduced = tuple(self.full[k] for k in self.axes)
        self.shape = tuple(map(graph.extent, first.shape))

    def lowered(self) -> Lowered:
        start, unit, body = self.start, self.unit, self.start.body
        names = position_names(len(self.shape))
        if self.chunk:
            names[0] = "piece"
        variables = kernel.map_positions(body, self.shape, names)
        stages = [
            stage(body, node, self._value(node, f"stage{k}"), self.span)
            for k, (_, node) in enumerate(self.stages)
        ]
        elements = [
            self._element(ref, b.dtype) for ref, b in zip(self.group.roots, start.buffers, strict=True)
        ]
        count = kernel.extent_expr(unit, product(self.reduced))
        made_of = ir.Columns(count, tuple(stages), tuple(elements), self.chunk)
        self._work(body, variables, made_of)
        domain = tuple(kernel.extent_expr(unit, e) for e in self.shape)
        made = ir.Kernel(
            self.group.name, "map", variables, domain, start.functions(), tuple(body.block), start.buffers,
            nest=made_of, span=self.span,
        )  # fmt: skip
        return start.lowered(made, self.shape)

    # ---- the functions ----

    def _value(self, node: Reduce, name: str) -> str:
        """What is reduced, of the positions and a number."""
        inner = self._body()
        with self.unit.facts.scope():
            names = position_names(len(self.shape))[bool(self.chunk) :]
            kept = [
                self._position(inner, n, e)
                for n, e in zip(names, self.shape[bool(self.chunk) :], strict=True)
            ]
            number = self._position(inner, "k", product(self.reduced))
            along = dict(zip(self.axes, unravelled(inner, number, self.reduced, self.span), strict=True))
            rest = iter(kept)
            indices = tuple(along[a] if a in along else next(rest) for a in range(len(self.full)))
            type = accumulated(node)
            value = convert(inner, self.start.composer.at(inner, node.of, indices, {}), type, self.span)
        return self._function(name, node.of, inner, [*kept, number], [], value, type)

    def _element(self, ref: Ref, type: DType) -> str:
        """A result, of the positions and what the stages gave."""
        inner, composer = self._body(), self.start.composer
        with self.unit.facts.scope():
            at = [
                self._position(inner, n, e)
                for n, e in zip(position_names(len(self.shape)), self.shape, strict=True)
            ]
            passed = [inner.var("reduced", accumulated(node)) for _, node in self.stages]
            composer.reduced = {
                r: given_back(inner, node, v, self.span)
                for (r, node), v in zip(self.stages, passed, strict=True)
            }
            value = convert(inner, composer.at(inner, ref, tuple(at), {}), type, self.span)
            composer.reduced = {}
        return self._function("element", ref, inner, at, passed, value, type)

    def _body(self) -> Body:
        return Body(self.unit, self.start.body.names, self.start.body.function)

    def _position(self, body: Body, name: str, extent: object) -> Typed:
        limit = self.unit.extent_poly(extent)  # type: ignore[arg-type]
        self.unit.facts.assume(limit - 1)
        return Typed(ir.Read(body.var(name, I32)), self.unit.facts.symbol(name, [0], [limit - Poly.of(1)]))

    def _function(
        self,
        name: str,
        ref: Ref,
        inner: Body,
        at: Sequence[Typed],
        passed: Sequence[ir.Var],
        value: Typed,
        type: DType,
    ) -> str:
        inner.emit(ir.Return((value.expr,), self.span))
        variables = tuple(v.expr.var for v in at if isinstance(v.expr, ir.Read))
        key, functions = ("columns", name, ref), self.unit.functions
        block = tuple(inner.block)
        functions[key] = (
            ir.Function(name, (*variables, *passed), (), (), (type,), block, self.span),
            Literal(None),
        )
        return f"{name}#{list(functions).index(key)}"

    # ---- a thread's work ----

    def _work(self, body: Body, variables: Sequence[ir.Var], nest: ir.Columns) -> None:
        at = tuple(ir.Read(v) for v in variables)
        first: ir.Expr = ir.Const(0, I32)
        stop = nest.count
        if self.chunk:
            first = ir.Apply("multiply", (at[0], ir.Const(self.chunk, I32)), I32, True)
            left = ir.Apply("subtract", (nest.count, first), I32, True)
            size = ir.Apply("minimum", (left, ir.Const(self.chunk, I32)), I32)
            stop = ir.Apply("add", (first, size), I32, True)
        k = body.var("k", I32)
        steps = []
        for s in nest.stages:
            body.mutable.add(s.var.number)
            body.emit(ir.Declare(s.var, s.start, self.span))
            value = ir.Call(s.function, (*at[bool(self.chunk) :], ir.Read(k)), s.var.type)
            steps.append(ir.Assign(s.var, combined(s, ir.Read(s.var), value), self.span))
        body.emit(ir.For(k, first, stop, 1, tuple(steps), self.span))
        done = tuple(ir.Read(s.var) for s in nest.stages)
        found = tuple(
            ir.Call(f, (*at, *done), b.dtype) for f, b in zip(nest.elements, self.start.buffers, strict=True)
        )
        body.emit(ir.Return(found, self.span))
