"""Nodes of a graph once more, with other nodes in place of some: a function's body where its arguments are known.

In: a graph, nodes, and what stands for what. Out: the new nodes, in the same graph. What depends on nothing that is replaced
stays the node that it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from .graph import (
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
    Node,
    Number,
    Part,
    Product,
    Reduce,
    Ref,
    Ruled,
    Scatter,
    View,
    call_key,
    operands,
)


def inlined(graph: Graph, refs: Sequence[Ref], by: Mapping[Ref, Ref]) -> list[Ref]:
    """The nodes, computed from `by[r]` wherever they were computed from `r`."""
    return Inline(graph, dict(by)).all(refs)


def counted(graph: Graph, loop: Ref, count: Ref) -> Ref:
    """The loop once more, with another number of turns."""
    node = graph.nodes[loop]
    assert isinstance(node, Loop)
    made = Inline(graph, {}).loop(node)
    graph.loops[made.scope] = replace(graph.loops[made.scope], count=count)
    outer = (*(r for r in made.outer if r != graph.loops[node.scope].count), count)
    return graph.add(replace(made, outer=outer), graph.spans[loop])


def dependent(graph: Graph, refs: Sequence[Ref], on: Mapping[Ref, object] | frozenset[Ref]) -> set[Ref]:
    """Which of the nodes, and of those behind them, are computed from some of `on`, or are these."""
    found: set[Ref] = set()
    for ref in graph.needed([*refs]):
        if ref in on or any(of in found for of in operands(graph.nodes[ref])):
            found.add(ref)
    return found


class Inline:
    """What is asked for by and by, of which each node is made once; `done` has what stands for what, to begin with."""

    def __init__(self, graph: Graph, done: dict[Ref, Ref]) -> None:
        self.graph, self.done = graph, done
        self._rules: dict[int, int] = {}

    def all(self, refs: Sequence[Ref]) -> list[Ref]:
        graph, done = self.graph, self.done
        changed = dependent(graph, refs, done)
        for ref in graph.needed(refs):
            if ref in changed and ref not in done:
                new = self._again(graph.nodes[ref])
                done[ref] = graph.add(new, graph.spans[ref])
        return [done.get(r, r) for r in refs]

    def _new(self, ref: Ref) -> Ref:
        return self.done.get(ref, ref)

    def _again(self, node: Node) -> Node:
        new = self._new
        match node:
            case Input() | Number() | Fill() | Count() | Index() | Carried():
                return node
            case Elementwise(_, args):
                return replace(node, args=tuple(map(new, args)))
            case Cast(of) | View(of) | Part(of) | Reduce(_, of):
                return replace(node, of=new(of))
            case Embed(of, into):
                return replace(node, of=new(of), into=new(into))
            case Gather(of, at):
                return replace(node, of=new(of), at=new(at))
            case Scatter(of, at):
                return replace(node, of=new(of), at=tuple(map(new, at)))
            case Choose(predicate, then, otherwise):
                return replace(node, predicate=new(predicate), then=new(then), otherwise=new(otherwise))
            case Product(left, right):
                return replace(node, left=new(left), right=new(right))
            case Ruled(of, rule):
                return replace(node, of=new(of), rule=self._rule(rule))
            case Call() | Launch():
                return self._call(node)
            case Loop():
                return self.loop(node)
        assert_never(node)

    def _call(self, node: Call | Launch) -> Call | Launch:
        """The same kernel; its key has the arguments in it, since their extents are its own."""
        given = tuple((name, self._new(v) if isinstance(v, int) else v) for name, v in node.arguments)
        key = call_key(node.key[0], given)
        self.graph.kernels[key] = self.graph.kernels[node.key]
        return replace(node, key=key, arguments=given)

    def _rule(self, number: int) -> int:
        if number not in self._rules:
            rule = self.graph.rules[number]
            arguments, kept = self.all(rule.arguments), self.all(rule.kept)
            self.graph.rules.append(replace(rule, arguments=tuple(arguments), kept=tuple(kept)))
            self._rules[number] = len(self.graph.rules) - 1
        return self._rules[number]

    def loop(self, node: Loop) -> Loop:
        """The same turns in a scope of their own."""
        graph, old = self.graph, self.graph.loops[node.scope]
        scope = graph.scope()
        values = [
            graph.add(Carried(scope, k, n.dtype, n.shape), graph.spans[v])
            for k, (v, n) in enumerate((v, graph.nodes[v]) for v in old.values)
        ]
        turn = old.turn
        if turn is not None:
            turn = graph.add(Number(f"turn{scope}", graph.nodes[turn].dtype), graph.spans[turn])
        inner = dict(self.done) | dict(zip(old.values, values, strict=True))
        if old.turn is not None and turn is not None:
            inner[old.turn] = turn
        body = Inline(graph, inner)
        after = body.all(old.after)
        (condition,) = body.all([old.condition]) if old.condition is not None else (None,)
        count = self._new(old.count) if old.count is not None else None
        graph.loops[scope] = replace(
            old, values=tuple(values), after=tuple(after), turn=turn, count=count, condition=condition
        )
        return replace(
            node,
            scope=scope,
            starts=tuple(map(self._new, node.starts)),
            outer=tuple(map(self._new, node.outer)),
        )
