"""What a name holds while a kernel is checked, and how two such values join.

    value = Literal (a Python number, not yet typed) | Typed (an IR expression) | Group (tuple or index)
          | View (an array as seen here) | Private (a local array) | Tile | Meta (known to the compiler only)

A Literal takes its type from what it meets; a Typed has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

from ...dtypes import BOOL, F32, I32, I64, U32, U64, DType, Type
from ...frozen import frozen
from ...source import Diagnostic, Span
from .. import ir
from ..bounds import Poly


class Fault(Exception):
    """One diagnostic on its way out of the front end."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


class NeedsConstant(Fault):
    """A value had to be known at compile time: an enclosing `range` loop is unrolled when it can be."""


class Poisoned(Exception):
    """A value whose fault has been reported is used: nothing more to say."""


def fault(
    slug: str,
    message: str,
    span: Span,
    label: str = "",
    *,
    help: str = "",
    second: tuple[Span, str] | None = None,
) -> NoReturn:
    raise Fault(Diagnostic(slug, message, span, label, second, help))


@frozen
class Literal:
    """A number (or string) that has no type yet. Equal are equal texts: 2 is not 2.0, 1 not True, 0.0 not -0.0."""

    value: int | float | bool | str | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@frozen
class Typed:
    """`poly` is the same value as a polynomial, where it is an integer that cannot have wrapped.

    For a bool, `holds` are polynomials that are >= 0 where it is true, `fails` where it is false.
    """

    expr: ir.Expr
    poly: Poly | None = None
    holds: tuple[Poly, ...] = ()
    fails: tuple[Poly, ...] = ()

    @property
    def type(self) -> Type:
        return self.expr.type


@frozen
class Group:
    """A tuple; with `index` the elementwise kind that `position()` and `index()` make, of i32 or literals."""

    items: tuple[Value, ...]
    index: bool = False

    @cached_property
    def size(self) -> int:
        """The numbers in it, those of inner tuples too."""
        return sum(i.size if isinstance(i, Group) else 1 for i in self.items)


@frozen
class View:
    """A device array with its border rule: one mode an axis, None guards; `declared` is where it was declared.

    In a graph an array may be computed where it is read: `computed` gives the element at indices that are in range, and
    `buffer` is a name only.
    """

    buffer: ir.Buffer
    element: Type
    shape: tuple[Value, ...]
    declared: Span
    modes: tuple[str | None, ...]
    fill: Value | None = None
    unchecked: bool = False
    computed: Callable[[Sequence[Typed]], Typed] | None = None


@frozen
class Private:
    """A `local_array`."""

    local: ir.Local
    shape: tuple[int, ...]
    declared: Span
    unchecked: bool = False


@frozen
class Tile:
    """A `simdgroup_matrix`."""

    tile: ir.Tile
    declared: Span


@frozen
class Meta:
    """A type, an operation, a function, a module, a pack of extents."""

    of: Any


@frozen
class Unset:
    """A name that has no value here, or not one of one type; `why` completes "'x' has no value here: …"."""

    why: str
    place: Span
    label: str = "assigned here"
    is_conflict: bool = False


@frozen
class Poison:
    """What a name holds after a fault in its assignment."""


Value: TypeAlias = Literal | Typed | Group | View | Private | Tile | Meta | Unset | Poison
POISON = Poison()


def of_type(type: Type, poly: Poly | None = None) -> Typed:
    """Any value of a type, where only the type counts, and what is known of its number."""
    return Typed(ir.Read(ir.Var("result", type, 0)), poly)


def literal_type(value: int | float | bool) -> DType:
    """The type of a literal on its own: bool, i32 or else u32, i64, u64, and f32."""
    dtype = join_literals([value])
    if dtype is None:
        raise OverflowError(value)
    return dtype


def join_types(a: Value, b: Value) -> Type | None:
    """The one type of a name where two paths meet; None where they do not agree.

    A literal takes the other side's type, never narrower than 32 bits.
    """
    match a, b:
        case Typed(), Typed():
            return a.type if a.type == b.type else None
        case Literal(), Literal():
            return join_literals([a.value, b.value])
        case (Literal(value), Typed()) | (Typed(), Literal(value)):
            typed = a if isinstance(a, Typed) else b
            assert isinstance(typed, Typed)
            return _join_literal(value, typed.type)
        case _:
            return None


def join_literals(numbers: Sequence[Any]) -> DType | None:
    """The type of several literals: bool of bools, f32 where one is a float, else the first that holds all."""
    if not all(isinstance(n, int | float) for n in numbers):
        return None
    bools = [isinstance(n, bool) for n in numbers]
    if any(bools):
        return BOOL if all(bools) else None
    if any(isinstance(n, float) for n in numbers):
        return F32
    for dtype in (I32, U32, I64, U64):
        if all(dtype.smallest <= n <= dtype.largest for n in numbers):
            return dtype
    return None


def _join_literal(value: Any, type: Type) -> Type | None:
    if not isinstance(type, DType):
        return type if isinstance(value, int | float) else None
    match value:
        case bool():
            return type if type == BOOL else None
        case int():
            if type == BOOL or (type.is_integer and type.bits < 32):
                return I32
            return F32 if type.is_float else type
        case float():
            return F32
        case _:
            return None


def map_views(value: Value, change: Any) -> Value:
    """The value with every View in it replaced by `change(view)`."""
    match value:
        case View():
            changed = change(value)
            assert isinstance(changed, View)
            return changed
        case Group(items):
            return replace(value, items=tuple(map_views(v, change) for v in items))
        case _:
            return value
