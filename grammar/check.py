"""What a grammar cannot say about a tree: how deep it may be, and that `break` and `continue` are in loops.

A chain such as `1 + 1 + …` nests no brackets, and yet makes a tree as deep as it is long. Thanks to MAX_DEPTH
every later pass may recurse; the walk here does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, get_args

from metaljit.grammar import tree
from metaljit.grammar.mistakes import fault

# The most nodes on the way from a top-level statement to a leaf; tokens.py limits brackets and blocks.
MAX_DEPTH = 200

Node: TypeAlias = (
    tree.Stmt
    | tree.Expr
    | tree.TupleTarget
    | tree.Star
    | tree.Keyword
    | tree.Clause
    | tree.Parameter
    | tree.Function
    | tree.Import
)
_NODES = frozenset(get_args(Node))
_STATEMENTS = frozenset(get_args(tree.Stmt))


def check(root: Node) -> None:
    """Refuse a tree that is too deep, and a `break` or `continue` outside a loop."""
    left: list[tuple[Node, int, bool]] = [(root, 1, False)]
    while left:
        node, depth, in_loop = left.pop()
        if depth > MAX_DEPTH:
            raise fault("nested-too-deep", node.span, what="expressions and blocks", limit=MAX_DEPTH)
        if isinstance(node, tree.Break | tree.Continue) and not in_loop:
            raise fault("outside-loop", node.span, found=node.span.text)
        in_loop = in_loop or isinstance(node, tree.For | tree.While)
        # An expression is not deeper than its text is long, and most are short.
        short = depth + node.span.end - node.span.start < MAX_DEPTH and not isinstance(node, tree.Function)
        below = [child for child in _children(node) if not short or type(child) in _STATEMENTS]
        left += [(child, depth + 1, in_loop) for child in reversed(below)]


def _children(node: Node) -> Iterator[Node]:
    for value in vars(node).values():
        for child in value if isinstance(value, tuple) else (value,):
            if type(child) in _NODES:
                yield child
