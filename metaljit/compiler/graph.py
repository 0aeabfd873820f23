"""The graph of a traced function: every array is an index function of the nodes before it.

    node = Input | Number | Fill | Count | Index | Carried | Elementwise | Cast | View | Embed | Gather | Scatter
         | Choose | Ruled | Call | Launch | Part | Reduce | Product | Loop
    map  = Axes | Slice | Reshape | Windows

A node refers to others by number, so equal nodes are one node (common subexpressions are shared as they are added), and
what no result needs is never looked at. Shapes are extent expressions over the shapes of the inputs: axis 1 of input `x`
is `x.1`. Operands of `Elementwise` have the node's own shape or none (a number): who broadcasts puts an `Axes` between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias, TypeGuard, assert_never

from ..dtypes import DType
from ..extents import Extent, Op, Sym, substituted, symbols
from ..frozen import frozen, mutable
from ..program import Program
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


@frozen
class Windows:
    """Axis `axis` of the source as two: element i of window tap t is element `i + step * t` of the source."""

    axis: int
    step: Extent


Map: TypeAlias = Axes | Slice | Reshape | Windows


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
class Index:
    """Where an element stands along `axis`."""

    axis: int
    dtype: DType
    shape: Shape


@frozen
class Carried:
    """A value that is known in scope `scope` alone: what a loop carries, or what a derivative is taken by."""

    scope: int
    number: int
    dtype: DType
    shape: Shape


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
class Embed:
    """`into`, but for the elements of `of`: index i of these along axis k is index `starts[k] + steps[k] * i`.

    So are a padded array, one behind another, a changed slice, and the derivative of a slice. `into` may be a number.
    """

    of: Ref
    into: Ref
    starts: Shape
    steps: tuple[int, ...]
    dtype: DType
    shape: Shape


@frozen
class Gather:
    """The elements of `of` whose index along `axis` is what `at` says; negative ones count from the end, outside is 0.

    The axes of `at` stand in the place of `axis`.
    """

    of: Ref
    at: Ref
    axis: int
    dtype: DType
    shape: Shape


@frozen
class Scatter:
    """Sums: each element of `of` is added where `at`, an array of its shape for each axis, says; outside is dropped."""

    of: Ref
    at: tuple[Ref, ...]
    dtype: DType
    shape: Shape


@frozen
class Choose:
    """`then` where `predicate` is true, else `otherwise`, of which only the one that is wanted is computed."""

    predicate: Ref
    then: Ref
    otherwise: Ref
    dtype: DType
    shape: Shape


@frozen
class Ruled:
    """`of` itself, whose derivative is not that of what computes it, but what rule `rule` of the graph says."""

    of: Ref
    rule: int
    number: int
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
class Launch:
    """A grid kernel, which writes whole arrays: each is a `Part`. `key` names the kernel, as in a `Call`.

    An argument is a node (an array that is read, or whose contents a result starts with, or a number) or a constant.
    `dtype` and `shape` are those of the first result.
    """

    key: Any
    arguments: tuple[tuple[str, Ref | tuple[int | float, ...]], ...]
    results: tuple[DType, ...]
    dtype: DType
    shape: Shape


def call_key(kernel: Any, arguments: Iterable[tuple[str, Ref | tuple[int | float, ...]]]) -> Any:
    """The key of a kernel with these arguments; constants by their text, since 0.0 is not -0.0."""
    return kernel, tuple(of if isinstance(of, int) else repr(of) for _, of in arguments)


@frozen
class Launched:
    """What a `Launch` launches: a program, and what its extents are in the graph."""

    program: Program
    extents: Mapping[str, Extent]


@frozen
class Part:
    """One result of a call, a launch or a loop."""

    of: Ref
    number: int
    dtype: DType
    shape: Shape


@frozen
class Reduce:
    """`op` is sum, prod, min, max, any, all; `axes` of the operand, ascending, are gone.

    A `long` one has so many elements that it is worth a kernel of its own kind: over the last axes that is a threadgroup for
    each element, over others a loop over all of them around one over the last axis. With a `chunk` the elements that are
    reduced are cut into pieces of so many, and each piece has a result: along a new last axis, or first axis.
    """

    op: str
    of: Ref
    axes: tuple[int, ...]
    long: bool
    dtype: DType
    shape: Shape
    chunk: int = 0

    @property
    def of_rows(self) -> bool:
        """Whether a long one is over the last axes."""
        return self.axes[-1] == len(self.shape) + len(self.axes) - bool(self.chunk) - 1


@frozen
class Product:
    """The matrix product of [..., m, k] and [..., k, n], each element summed in the order of k, in f32 or whole numbers.

    Axes before the last two are the same in both and in the result.
    """

    left: Ref
    right: Ref
    dtype: DType
    shape: Shape


@frozen
class Loop:
    """What the values of a scope have become when they do not change any more: see `Turns`, which `scope` names.

    `starts` are the values before the first turn, `outer` what the turns use of what is known before. `results`,
    `dtype` and `shape` are those of the values; a value is a `Part`.
    """

    scope: int
    starts: tuple[Ref, ...]
    outer: tuple[Ref, ...]
    results: tuple[DType, ...]
    dtype: DType
    shape: Shape


Node: TypeAlias = (
    Input
    | Number
    | Fill
    | Count
    | Index
    | Carried
    | Elementwise
    | Cast
    | View
    | Embed
    | Gather
    | Scatter
    | Choose
    | Ruled
    | Call
    | Launch
    | Part
    | Reduce
    | Product
    | Loop
)
LEAVES = (Input, Number, Fill, Count, Index, Carried)
MEMORY = (Input, Carried)  # what a kernel can only read


@frozen
class Turns:
    """What a loop does: the values after a turn, by those before it, which are `values` (`Carried` nodes).

    It ends after `count` turns (a number), or where `condition` of the values is false; `turn` is the number of the turn.
    A condition of the values' shape ends it for each element alone. More than `limit` turns are an error. `alone`: each
    element turns by itself, since no turn needs another one of the values.
    """

    values: tuple[Ref, ...]
    after: tuple[Ref, ...]
    turn: Ref | None
    count: Ref | None
    condition: Ref | None
    limit: int
    alone: bool = False


def operands(node: Node) -> tuple[Ref, ...]:
    """The nodes that a node is computed from."""
    match node:
        case Input() | Number() | Fill() | Count() | Index() | Carried():
            return ()
        case Elementwise(_, args, _, _):
            return args
        case Cast(of) | View(of) | Part(of) | Reduce(_, of) | Ruled(of):
            return (of,)
        case Embed(of, into, _, _, _, _):
            return (of, into)
        case Gather(of, at, _, _, _):
            return (of, at)
        case Scatter(of, at, _, _):
            return (of, *at)
        case Choose(predicate, then, otherwise, _, _):
            return (predicate, then, otherwise)
        case Product(left, right, _, _):
            return (left, right)
        case Call(_, arguments, _, _, _) | Launch(_, arguments, _, _, _):
            return tuple(ref for _, ref in arguments if isinstance(ref, int))
        case Loop(_, starts, outer, _, _, _):
            return (*starts, *outer)
    assert_never(node)


def in_parts(node: Node) -> TypeGuard[Call | Launch | Loop]:
    """Whether the results of a node are its `Part`s."""
    return isinstance(node, Launch) or (isinstance(node, Call | Loop) and len(node.results) > 1)


@frozen
class Rule:
    """How results depend on `arguments`, by the user's word: `pull` gives their derivatives from those of the results.

    `pull` takes the kept values and a derivative for each result, `results` being nodes of their shapes and types.
    """

    arguments: tuple[Ref, ...]
    kept: tuple[Ref, ...]
    results: tuple[Ref, ...]
    pull: Any


@mutable
class Graph:
    """Nodes in an order in which they can be computed, each with the user's line.

    `kernels` has what the key of a `Call` or `Launch` stands for, `loops` the turns of each scope that is one, `rules` the
    users' derivatives. `same` are extents that have to be equal: the later one stands for the earlier; `requirements` those
    that are no single symbols.
    """

    nodes: list[Node] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    kernels: dict[Any, Any] = field(default_factory=dict)
    loops: dict[int, Turns] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    scopes: int = 0
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

    def scope(self) -> int:
        """The number of a new scope; see `Carried`."""
        self.scopes += 1
        return self.scopes

    def lanes(self, ref: Ref) -> int:
        """How many numbers an element of a kernel of vectors has; 1 of any other node. They are the last axis here."""
        node = self.nodes[ref]
        return int(self.kernels[node.key].lanes) if isinstance(node, Call) else 1

    def extent(self, extent: Extent) -> Extent:
        """The extent, in the symbols that stand for all equal ones."""
        return substituted(extent, self.same)

    def equate(self, a: Extent, b: Extent, why: str, span: Span) -> Extent:
        """Makes two extents equal: by one symbol for both, or as a requirement of the call. Gives that extent."""
        a, b = self.extent(a), self.extent(b)
        if a == b:
            return a
        if isinstance(a, Sym) and not isinstance(b, Sym):
            a, b = b, a
        if isinstance(b, Sym) and b.name not in symbols(a):  # n = (n // 2) * 2 says nothing of what n is
            self.same = {k: substituted(v, {b.name: a}) for k, v in self.same.items()} | {b.name: a}
            return a
        self.requirements.append((Op("==", (a, b)), why, span))
        return b if isinstance(b, Sym) else a

    def reading(self, memory: Iterable[Ref]) -> Graph:
        """The graph as the turns of a loop see it, where these nodes have been computed."""
        nodes = list(self.nodes)
        for ref in memory:
            node = nodes[ref]
            nodes[ref] = node if isinstance(node, MEMORY) else Carried(0, ref, node.dtype, node.shape)
        return replace(self, nodes=nodes)

    def needed(self, results: Iterable[Ref]) -> list[Ref]:
        """What the results are computed from, and they themselves, in order."""
        wanted = set(results)
        for ref in range(len(self.nodes) - 1, -1, -1):
            if ref in wanted:
                wanted.update(operands(self.nodes[ref]))
        return sorted(wanted)
