"""The typed IR: what the front end makes, the passes rewrite and the printer prints.

    kernel   = Kernel(name, positions, functions, body, …)
    function = Function(name, params, results, body)
    stmt     = Let | Declare | Assign | Store | LocalArray | LocalStore | If | For | Loop | Once
             | Break | Continue | Return | Check | Atomic | CallInto | Barrier | Collective
             | TileFill | TileMove | TileMultiply
    expr     = Const | Read | Uniform | Load | LocalLoad | Table | Apply | Convert | Bitcast | Choose
             | Vector | Lane | Fold | InRange | Call | Same

Expressions are pure and know their type. Loads are at a flat offset and unchecked: the front end has put a
`Fold` (border) or an `InRange` (guard) where a proof failed. Both vanish where the text's compile-time flag
`inside` is true, unless they are `always`. Statements are in the order in which they run.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias, assert_never

from ..dtypes import BOOL, DType, Type
from ..frozen import frozen
from ..source import Span


@frozen
class Var:
    """A local variable, by identity of `number`; `name` is the user's, made unique by the printer."""

    name: str
    type: Type
    number: int


@frozen
class Buffer:
    """A device array; `lanes` scalars an element; `writable` arrays are results, `Out` or `InOut`.

    With a `size` it is a threadgroup array of so many elements, which a group's threads share.
    """

    name: str
    dtype: DType
    lanes: int
    writable: bool
    size: int | None = None

    @property
    def space(self) -> str:
        """Its address space in Metal."""
        return "device" if self.size is None else "threadgroup"


@frozen
class Local:
    """A private array of `size` elements."""

    name: str
    type: Type
    size: int
    number: int


@frozen
class Tile:
    """8 by 8 numbers that a simdgroup holds together."""

    name: str
    dtype: DType
    number: int


# ---- expressions ----


@frozen
class Const:
    value: int | float | bool
    type: DType


@frozen
class Read:
    var: Var

    @property
    def type(self) -> Type:
        return self.var.type


@frozen
class Uniform:
    """A field of the parameter struct."""

    name: str
    type: DType


@frozen
class Load:
    """Element `offset` (in elements of `lanes` scalars) of a buffer."""

    buffer: Buffer
    offset: Expr
    type: Type


@frozen
class LocalLoad:
    local: Local
    offset: Expr

    @property
    def type(self) -> Type:
        return self.local.type


@frozen
class Table:
    """Element `offset` of a constant table."""

    values: tuple[int | float | bool, ...]
    type: DType
    offset: Expr


@frozen
class Apply:
    """A row of the operation table; operands already have the row's types. `exact`: C's own operator will do.

    That is: + - * do not wrap, and a division is of a number that is not negative by one that is positive.
    """

    op: str
    args: tuple[Expr, ...]
    type: Type
    exact: bool = False


@frozen
class Convert:
    """Value conversion by the language's rules; `saturating` clips integers too."""

    value: Expr
    type: Type
    saturating: bool = False


@frozen
class Bitcast:
    value: Expr
    type: Type


@frozen
class Choose:
    """`then if condition else otherwise`; only the chosen side is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def type(self) -> Type:
        return self.then.type


@frozen
class Vector:
    parts: tuple[Expr, ...]
    type: Type


@frozen
class Lane:
    """One lane of a vector; `lane` is a number, or an expression that is taken modulo the lanes."""

    value: Expr
    lane: int | Expr
    type: DType


@frozen
class Fold:
    """An index brought into `[0, extent)` by a border mode: edge, reflect, symmetric, wrap.

    `mode` "sign" gives the antiperiodic sign of the index instead, as +1 or -1.
    """

    mode: str
    index: Expr
    extent: Expr
    always: bool
    type: DType


@frozen
class InRange:
    """`0 <= index < extent`."""

    index: Expr
    extent: Expr
    always: bool
    type: DType = BOOL


@frozen
class Call:
    """A call of a device function with one result."""

    function: str
    args: tuple[Expr, ...]
    type: Type


@frozen
class Same:
    """The value, which is the same for all threads of a threadgroup by the user's word."""

    value: Expr

    @property
    def type(self) -> Type:
        return self.value.type


Expr: TypeAlias = (
    Const
    | Read
    | Uniform
    | Load
    | LocalLoad
    | Table
    | Apply
    | Convert
    | Bitcast
    | Choose
    | Vector
    | Lane
    | Fold
    | InRange
    | Call
    | Same
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that stand directly in an expression."""
    match expr:
        case Const() | Read() | Uniform():
            return ()
        case Load(_, offset, _) | LocalLoad(_, offset) | Table(_, _, offset):
            return (offset,)
        case Apply(_, args, _, _) | Vector(args, _) | Call(_, args, _):
            return args
        case Convert(value, _, _) | Bitcast(value, _) | Same(value):
            return (value,)
        case Choose(condition, then, otherwise):
            return (condition, then, otherwise)
        case Lane(value, lane, _):
            return (value,) if isinstance(lane, int) else (value, lane)
        case Fold(_, index, extent, _, _) | InRange(index, extent, _, _):
            return (index, extent)
    assert_never(expr)


# ---- statements ----


@frozen
class Let:
    """An immutable local."""

    var: Var
    value: Expr
    span: Span


@frozen
class Declare:
    """A variable that is assigned later, too; without a value it is assigned before it is read."""

    var: Var
    value: Expr | None
    span: Span


@frozen
class Assign:
    var: Var
    value: Expr
    span: Span


@frozen
class Store:
    """Writes one element where `guard` holds."""

    buffer: Buffer
    offset: Expr
    value: Expr
    guard: Expr | None
    span: Span


@frozen
class LocalArray:
    local: Local
    values: tuple[Expr, ...]
    span: Span


@frozen
class LocalStore:
    local: Local
    offset: Expr
    value: Expr
    guard: Expr | None
    span: Span


@frozen
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span


@frozen
class For:
    """`var` from `start` while `var < stop` (`>` for a negative step), by the constant `step`."""

    var: Var
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    span: Span


@frozen
class Loop:
    """`before` runs, then `condition` decides whether `body` does, then again.

    `turns` counts; beyond `limit` turns the loop is left and assertion number `site` fails, because a loop
    without end is undefined in Metal.
    """

    before: tuple[Stmt, ...]
    condition: Expr
    body: tuple[Stmt, ...]
    span: Span
    turns: Var
    site: int
    limit: int


@frozen
class Once:
    """A body that `Break` leaves: one iteration of an unrolled loop."""

    body: tuple[Stmt, ...]
    span: Span


@frozen
class Break:
    span: Span


@frozen
class Continue:
    span: Span


@frozen
class Return:
    values: tuple[Expr, ...]
    span: Span


@frozen
class Check:
    """Assertion number `site` fails where `condition` is false."""

    condition: Expr
    site: int
    span: Span


@frozen
class Atomic:
    """One atomic access of an array; `var` receives the old value. `op` as in `atomic_add`, without the prefix."""

    op: str
    var: Var
    buffer: Buffer
    offset: Expr
    values: tuple[Expr, ...]
    guard: Expr | None
    span: Span


@frozen
class CallInto:
    """A call of a device function with no result, or with several, each into its variable."""

    function: str
    args: tuple[Expr, ...]
    results: tuple[Var, ...]
    span: Span


@frozen
class Barrier:
    """No thread of the group goes on before all are here, and all see what all have written."""

    span: Span


@frozen
class Collective:
    """`var` receives what the threads of a group, or of a simdgroup, compute from one `value` of each.

    `op` is the function's name; a prefix sum's says whether it is inclusive or exclusive. `by` is the other lane of a
    broadcast or shuffle: a number of lanes for up and down, a mask for xor.
    """

    op: str
    var: Var
    value: Expr
    by: Expr | None
    span: Span

    @property
    def of_group(self) -> bool:
        return self.op.startswith("group_")

    @property
    def scratch(self) -> Buffer:
        """The threadgroup array by which a group's simdgroups tell each other what they have computed."""
        return Buffer(f"group_{self.var.type}", self.var.type.scalar, 1, True, 32)


@frozen
class TileFill:
    """Every number of a tile becomes `value`; `makes`: this is where the tile begins."""

    tile: Tile
    value: Expr
    makes: bool
    span: Span


@frozen
class TileMove:
    """A tile is loaded from the block of an array at `offset`, whose rows are `stride` apart, or stored to it.

    Where `guard` does not hold, zeros are loaded and nothing is stored.
    """

    op: Literal["load", "store"]
    tile: Tile
    buffer: Buffer
    offset: Expr
    stride: Expr
    guard: Expr | None
    span: Span


@frozen
class TileMultiply:
    """`result` becomes left @ right + added."""

    result: Tile
    left: Tile
    right: Tile
    added: Tile
    span: Span


Stmt: TypeAlias = (
    Let
    | Declare
    | Assign
    | Store
    | LocalArray
    | LocalStore
    | If
    | For
    | Loop
    | Once
    | Break
    | Continue
    | Return
    | Check
    | Atomic
    | CallInto
    | Barrier
    | Collective
    | TileFill
    | TileMove
    | TileMultiply
)


@frozen
class Function:
    """A device function, specialised for one call: scalar and vector parameters; arrays are those of the kernel."""

    name: str
    params: tuple[Var, ...]
    buffers: tuple[Buffer, ...]
    locals: tuple[Local, ...]
    results: tuple[Type, ...]
    body: tuple[Stmt, ...]
    span: Span


@frozen
class Margin:
    """A condition for `inside`: `coefficient * position[axis] + rest >= 0`; axis −1: `rest >= 0` alone.

    `rest` is a sum of products of uniforms: ((names, coefficient), …).
    """

    axis: int
    coefficient: int
    rest: tuple[tuple[tuple[str, ...], int], ...]


@frozen
class Stage:
    """A reduction: `op` over what `function` gives, from `start` on, into `var`."""

    op: Literal["sum", "prod", "min", "max"]
    start: Const
    function: str
    var: Var


@frozen
class Element:
    """What `function` gives for a column, or for the whole row (then of column 0), is stored in a result."""

    buffer: Buffer
    function: str
    of_column: bool


@frozen
class Rows:
    """What a kernel does that works a row at a time, for devices that do not run threadgroups.

    The functions take the row's positions, the column, and the values of the stages before. The stages run one after the
    other, then the elements are stored. With a `chunk` it works on so many columns of a row at a time: the last of the
    kernel's groups are those of a row.
    """

    positions: tuple[Var, ...]
    columns: Expr
    stages: tuple[Stage, ...]
    elements: tuple[Element, ...]
    chunk: int = 0


@frozen
class Columns:
    """What a map kernel does that reduces each of its elements, for devices that had better go through memory in order.

    The stages' functions take the positions, but for the first one if there is a `chunk`, and the number of what is
    reduced, below `count`; those of the elements, in the order of the results, take the positions and what the stages gave.
    With a `chunk` the first position says which piece of so many is reduced.
    """

    count: Expr
    stages: tuple[Stage, ...]
    elements: tuple[str, ...]
    chunk: int


@frozen
class Tiled:
    """What a kernel does that multiplies matrices, a threadgroup to a tile, for devices that do not run threadgroups.

    `left` is a function of the batch, row and k, each of `rights` of the batch, k and column. The sums over k of the
    products of `left` and of each of these, of the type of `sums`, are the last arguments of the elements' functions,
    after batch, row and column.
    """

    batch: tuple[Var, ...]
    rows: Expr
    columns: Expr
    count: Expr
    left: str
    rights: tuple[str, ...]
    elements: tuple[Element, ...]
    sums: tuple[Var, ...]


@frozen
class Kernel:
    """A map kernel: one element at `positions` over `domain`; a grid kernel: one thread, `domain` = (groups…, threads…).

    A map kernel's body returns its elements; a grid kernel's stores. `threads` is the size of a threadgroup, `shared`
    are its arrays. A grid kernel is `cooperative` if its threads wait for each other or share memory: it then runs in
    whole threadgroups. With `nest` it does what that says. Threads of an `ordered` one run one
    after the other where a device can, since the order of what they add matters.
    """

    name: str
    kind: Literal["map", "grid"]
    positions: tuple[Var, ...]
    domain: tuple[Expr, ...]
    functions: tuple[Function, ...]
    body: tuple[Stmt, ...]
    results: tuple[Buffer, ...]
    margins: tuple[Margin, ...] = ()
    threads: tuple[int, ...] = ()
    shared: tuple[Buffer, ...] = ()
    cooperative: bool = False
    nest: Rows | Columns | Tiled | None = None
    ordered: bool = False
    span: Span = field(kw_only=True)
