"""The graph of a traced function: every array is an index function of the nodes before it.

    node = Input | Number | Fill | Count | Elementwise | Cast | View | Call | Part | Reduce
    map  = Axes | Slice | Reshape

A node refers to others by number, so equal nodes are one node (common subexpressions are shared as they are added), and
what no result needs is never looked at. Shapes are extent expressions over the shapes of the inputs: axis 1 of input `x`
is `x.1`. Operands of `Elementwise` have the node's own shape or none (a number): who broadcasts puts an `Axes` between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, TypeAlias, assert_never

from ..dtypes import DType
from ..extents import Extent, Op, Sym, substituted
from ..frozen import frozen, mutable
from ..source import Span

Shape: TypeAlias = tuple[Extent, ...]
Ref: TypeAlias = int


# ---- index maps: where an element of the view lies in what is viewed ----


@frozen
class Axes:
    """Axis k of the source runs along axis `along[k]` of the view; None: it has one element.

    So axes change places, come and go, and are broadcast.
    """

    along: tuple[int | None, ...]


@frozen
class Slice:
    """Index i of axis k is `starts[k] + steps[k] * i` in the source; a flip has step -1."""

    starts: Shape
    steps: tuple[int, ...]


@frozen
class Reshape:
    """The same elements in the same row-major order."""


Map: TypeAlias = Axes | Slice | Reshape


# ---- nodes ----


@frozen
class Input:
    """An array that the call is given."""

    name: str
    dtype: DType
    shape: Shape


@frozen
class Number:
    """A number that the call is given, as a `dtype`."""

    name: str
    dtype: DType
    shape: Shape = ()


@frozen
class Fill:
    """A constant."""

    value: int | float | bool
    dtype: DType
    shape: Shape = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fill) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return repr(self.value), self.dtype, self.shape  # 0.0 is not -0.0, and a NaN is itself


@frozen
class Count:
    """An extent as a number."""

    extent: Extent
    dtype: DType
    shape: Shape = ()


@frozen
class Elementwise:
    """A row of the operation table."""

    op: str
    args: tuple[Ref, ...]
    dtype: DType
    shape: Shape


@frozen
class Cast:
    of: Ref
    dtype: DType
    shape: Shape


@frozen
class View:
    of: Ref
    map: Map
    dtype: DType
    shape: Shape


@frozen
class Call:
    """A map kernel. `key` names the kernel as it is specialised, and by its operands the extents that it has here; a
    vector argument is a tuple of constants.

    `dtype` and `shape` are those of its first result.
    """

    key: Any
    arguments: tuple[tuple[str, Ref | tuple[int | float, ...]], ...]
    results: tuple[DType, ...]
    dtype: DType
    shape: Shape


@frozen
class Part:
    """One result of a call."""

    of: Ref
    number: int
    dtype: DType
    shape: Shape


@frozen
class Reduce:
    """`op` is sum, prod, min, max, any, all; `axes` of the operand, ascending, are gone.

    A `long` one is over the last axes, and worth a threadgroup for each element.
    """

    op: str
    of: Ref
    axes: tuple[int, ...]
    long: bool
    dtype: DType
    shape: Shape


Node: TypeAlias = Input | Number | Fill | Count | Elementwise | Cast | View | Call | Part | Reduce


def operands(node: Node) -> tuple[Ref, ...]:
    """The nodes that a node is computed from."""
    match node:
        case Input() | Number() | Fill() | Count():
            return ()
        case Elementwise(_, args, _, _):
            return args
        case Cast(of, _, _) | View(of, _, _, _) | Part(of, _, _, _) | Reduce(_, of, _, _, _, _):
            return (of,)
        case Call(_, arguments, _, _, _):
            return tuple(ref for _, ref in arguments if isinstance(ref, int))
    assert_never(node)


@mutable
class Graph:
    """Nodes in an order in which they can be computed, each with the user's line.

    `kernels` has what a `Call`'s key stands for. `same` are extents that have to be equal: the later one stands for the
    earlier; `requirements` those that are no single symbols.
    """

    nodes: list[Node] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    kernels: dict[Any, Any] = field(default_factory=dict)
    same: dict[str, Extent] = field(default_factory=dict)
    requirements: list[tuple[Extent, str, Span]] = field(default_factory=list)
    _numbers: dict[Node, Ref] = field(default_factory=dict)

    def add(self, node: Node, span: Span) -> Ref:
        """The number of a node; the old one if there is an equal one."""
        found = self._numbers.get(node)
        if found is None:
            found = self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.spans.append(span)
        return found

    def extent(self, extent: Extent) -> Extent:
        """The extent, in the symbols that stand for all equal ones."""
        return substituted(extent, self.same)

    def equate(self, a: Extent, b: Extent, why: str, span: Span) -> Extent:
        """Makes two extents equal: by one symbol for both, or as a requirement of the call. Gives that extent."""
        a, b = self.extent(a), self.extent(b)
        if a == b:
            return a
        if isinstance(b, Sym):
            self.same = {k: substituted(v, {b.name: a}) for k, v in self.same.items()} | {b.name: a}
            return a
        if isinstance(a, Sym):
            return self.equate(b, a, why, span)
        self.requirements.append((Op("==", (a, b)), why, span))
        return a

    def needed(self, results: Iterable[Ref]) -> list[Ref]:
        """What the results are computed from, and they themselves, in order."""
        wanted = set(results)
        for ref in range(len(self.nodes) - 1, -1, -1):
            if ref in wanted:
                wanted.update(operands(self.nodes[ref]))
        return sorted(wanted)
