"""The tree: what was written, with spans, nothing resolved and nothing typed.

    module    = docstring? (import | dims | dtypes | constant)* function*
    function  = decorator* "def" name "(" parameter* ")" ("->" annotation)? ":" statement+

A node is frozen; its span takes no part in comparison, so two trees of the same text shape are equal.
`.mjk` files and decorated functions give the same nodes.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from metaljit.frozen import frozen
from metaljit.source import Span


def _span() -> Span:
    span: Span = field(compare=False, repr=False, kw_only=True)
    return span


# ---- expressions ----


@frozen
class Number:
    """An int or float literal, already a Python number (`1_000`, `0xff`, `1e-3`)."""

    value: int | float
    span: Span = _span()


@frozen
class String:
    """A string literal, unescaped, adjacent literals joined."""

    value: str
    span: Span = _span()


@frozen
class Constant:
    """`True`, `False` or `None`."""

    value: bool | None
    span: Span = _span()


@frozen
class Name:
    name: str
    span: Span = _span()


@frozen
class Attribute:
    value: Expr
    name: str
    span: Span = _span()
    name_span: Span = _span()


@frozen
class Subscript:
    """`value[a, b]`: the indices, one or several; `f32[*S]` has a Star among them.

    `x[(a, b)]` and `x[a, b]` are the same node, `x[i]` has one index, `f32[()]` none.
    """

    value: Expr
    indices: tuple[Expr | Star, ...]
    span: Span = _span()


@frozen
class Keyword:
    name: str
    value: Expr
    span: Span = _span()


@frozen
class Call:
    func: Expr
    args: tuple[Expr | Star, ...]
    keywords: tuple[Keyword, ...]
    span: Span = _span()


@frozen
class Unary:
    """`op` is one of `- + ~ not`."""

    op: str
    operand: Expr
    span: Span = _span()


@frozen
class Binary:
    """`op` is one of `+ - * / // % ** << >> & | ^ @`."""

    op: str
    left: Expr
    right: Expr
    span: Span = _span()


@frozen
class Compare:
    """A chain `first op0 rest0 op1 rest1 …`; ops `< <= > >= == != in not in is is not`."""

    first: Expr
    ops: tuple[str, ...]
    rest: tuple[Expr, ...]
    span: Span = _span()


@frozen
class Logical:
    """`a and b and c` or `a or b`: `op` is `and` or `or`, two operands or more."""

    op: str
    operands: tuple[Expr, ...]
    span: Span = _span()


@frozen
class Conditional:
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span = _span()


@frozen
class TupleExpr:
    """`(a, b)`, `a, b`, `()` and, by kindness, `[a, b]`."""

    items: tuple[Expr | Star, ...]
    span: Span = _span()


@frozen
class Star:
    """`*x` in a call, a tuple, a subscript or an assignment target."""

    value: Expr
    span: Span = _span()


@frozen
class Clause:
    """One `for target in iterable if … if …` of a generator."""

    target: Target
    iterable: Expr
    conditions: tuple[Expr, ...]
    span: Span = _span()


@frozen
class Generator:
    """`element for … in … if …`, the lone argument of a reduction."""

    element: Expr
    clauses: tuple[Clause, ...]
    span: Span = _span()


Expr: TypeAlias = (
    Number
    | String
    | Constant
    | Name
    | Attribute
    | Subscript
    | Call
    | Unary
    | Binary
    | Compare
    | Logical
    | Conditional
    | TupleExpr
    | Generator
)

# ---- statements ----


@frozen
class TupleTarget:
    """`a, b`, `*b, y, x`, `(a, (b, c))`."""

    items: tuple[Target | Star, ...]
    span: Span = _span()


Target: TypeAlias = Name | Subscript | Attribute | TupleTarget


@frozen
class Assign:
    """`target = value`; `a = b = v` has two targets."""

    targets: tuple[Target, ...]
    value: Expr
    span: Span = _span()


@frozen
class Declare:
    """`acc: f32 = 0`; `value` is None for a bare `acc: f32`."""

    target: Name
    annotation: Expr
    value: Expr | None
    span: Span = _span()


@frozen
class Augment:
    """`target op= value`; `op` as in Binary."""

    target: Name | Subscript | Attribute
    op: str
    value: Expr
    span: Span = _span()


@frozen
class If:
    """`elif` is an If alone in `orelse`. The span covers the header line only, here and in the loops."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span = _span()


@frozen
class For:
    target: Target
    iterable: Expr
    body: tuple[Stmt, ...]
    span: Span = _span()


@frozen
class While:
    condition: Expr
    body: tuple[Stmt, ...]
    span: Span = _span()


@frozen
class Break:
    span: Span = _span()


@frozen
class Continue:
    span: Span = _span()


@frozen
class Pass:
    span: Span = _span()


@frozen
class Return:
    value: Expr | None
    span: Span = _span()


@frozen
class Assert:
    condition: Expr
    message: Expr | None
    span: Span = _span()


@frozen
class ExprStmt:
    """A call for its effect, or a docstring."""

    value: Expr
    span: Span = _span()


Stmt: TypeAlias = (
    Assign | Declare | Augment | If | For | While | Break | Continue | Pass | Return | Assert | ExprStmt
)

# ---- top level ----


@frozen
class Parameter:
    """`name: annotation = default`; `keyword_only` after a bare `*`."""

    name: str
    annotation: Expr | None
    default: Expr | None
    keyword_only: bool = False
    span: Span = _span()
    name_span: Span = _span()


@frozen
class Function:
    """A `def`. `decorators` without their `@`; `docstring` is taken out of the body.

    A quoted annotation (`"f32[H // size, W]"`) has been parsed: its nodes stand here, with spans inside
    the quotes. `span` is the header, `name_span` the name.
    """

    name: str
    decorators: tuple[Expr, ...]
    parameters: tuple[Parameter, ...]
    returns: Expr | None
    docstring: str | None
    body: tuple[Stmt, ...]
    span: Span = _span()
    name_span: Span = _span()


@frozen
class ImportName:
    name: str
    alias: str | None
    span: Span = _span()


@frozen
class Import:
    """`import a.b as c` (no names, perhaps an alias) or `from a.b import x as y, z`.

    `from .a import x` has level 1.
    """

    module: str
    alias: str | None
    names: tuple[ImportName, ...]
    level: int
    span: Span = _span()


@frozen
class Module:
    """A `.mjk` file: imports, assignments of dims, dtypes and constants, functions, as in the text."""

    docstring: str | None
    body: tuple[Import | Assign | Function, ...]
    span: Span = _span()
