"""What an operation is: its row, its typing rule, its printed form.

In: a row and operand types. Out: a `Typing` (what the operands are converted to, what comes out) or the
exception `Refusal` (a sentence), and a `Spelling` (MSL text with its precedence). The rows themselves stand
in `operations`, their NumPy meanings in `operation_meanings`; literals, vectors and casts are the checker's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any, Literal, TypeAlias, assert_never

from .dtypes import BOOL, F32, I8, I32, U8, U16, DType, promote
from .frozen import frozen

Rule = Literal[
    "arithmetic", "numeric", "number", "floating", "bitwise", "integer", "shift", "scale",
    "compare", "logical", "predicate", "select",
]  # fmt: skip
RULES: dict[Rule, str] = {
    "arithmetic": "any types, joined by promotion; bool stays bool",
    "numeric": "numbers, joined by promotion; two bools are refused",
    "number": "numbers, joined by promotion; two bools are read as i8",
    "floating": "floats, joined by promotion; integers and bools are read as f32",
    "bitwise": "integers or bools, joined by promotion",
    "integer": "integers, joined by promotion",
    "shift": "two integers; the type of the left one is kept, and a bool is read as i32",
    "scale": "a float and an integer that fits i32; the type of the float is kept",
    "compare": "any types, joined by promotion; gives bool",
    "logical": "the truth of any types; gives bool",
    "predicate": "one value of any type; gives bool",
    "select": "a truth, then any types joined by promotion",
}
Math = Literal["precise", "fast"]
# One template for all types, or one per type name ("u16") or kind ("int"), the name first.
Templates: TypeAlias = str | Mapping[str, str]

# C's precedences, the tighter the greater.
COMMA, CONDITION, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUALITY, RELATION = range(9)
SHIFT, ADD, MULTIPLY, UNARY, PRIMARY = range(9, 14)
BINARY = {
    "||": OR, "&&": AND, "|": BIT_OR, "^": BIT_XOR, "&": BIT_AND, "==": EQUALITY, "!=": EQUALITY,
    "<": RELATION, "<=": RELATION, ">": RELATION, ">=": RELATION, "<<": SHIFT, ">>": SHIFT,
    "+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "%": MULTIPLY,
}  # fmt: skip
_UNARY_FORM = re.compile(r"[-~!]\{0\}")
_BINARY_FORM = re.compile(r"(?:\{0\}|\S+) (\S+) (?:\{[01]\}|\S+)")
_CALL_FORM = re.compile(r"[\w:]+(?:<\w+>)?\(.*\)|true|false")


@frozen
class Operation:
    """One row: everything that any part of metaljit knows about one operation.

    `msl` and `fast` are templates over operand texts (`fast` where math="fast" has another spelling).
    `meaning` takes NumPy scalars or arrays of the typed operands' dtypes and gives the result's dtype.
    `vector` names the types or kinds ("float uint") whose template works on MSL vectors as it stands; the
    others go lane by lane. `via_float`: f16 operands are computed in float and rounded once. `exact`: the
    result of 16-bit floats is one of them already, rounding changes nothing. `ulp`: by how many units in the
    last place an f32 result may be wrong on any device under math="precise".
    """

    name: str
    arity: int
    rule: Rule
    msl: Templates
    meaning: Callable[..., Any] = field(repr=False)
    doc: str
    group: str
    symbol: str = ""
    fast: Templates = ""
    vector: str = ""
    via_float: bool = False
    exact: bool = False
    ulp: int = 0
    aliases: tuple[str, ...] = ()

    def on_vectors(self, dtype: DType) -> bool:
        return bool({dtype.name, dtype.kind} & set(self.vector.split()))

    def template(self, dtype: DType, math: Math = "precise") -> str:
        """The MSL template for operands of `dtype`, the type that the operation is carried out in."""
        fast = _select(self.fast, dtype) if math == "fast" else None
        found = fast or _select(self.msl, dtype)
        assert found, f"{self.name} has no template for {dtype}"
        return found


def _select(templates: Templates, dtype: DType) -> str | None:
    if isinstance(templates, str):
        return templates
    return templates.get(dtype.name) or templates.get(dtype.kind)


@frozen
class Typing:
    """`operands`: the type that each operand is converted to; `dtype`: the one that picks the template."""

    operands: tuple[DType, ...]
    result: DType
    dtype: DType


class Refusal(TypeError):
    """Why operand types do not fit: a slug, a sentence (`str`), one way out. The checker adds the place."""

    def __init__(self, slug: str, message: str, help: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.help = help


@frozen
class Spelling:
    """How an operation is printed for one typing.

    `text` is the template, `precedence` that of the text it gives; an operand stands without parentheses if
    its own precedence is at least `levels[i]`. `narrows`: C gives int for an 8- or 16-bit result, so that
    the text is cast back. `via_float`: half operands are written `float(…)` and the result, unless it is
    bool, is cast back. `rounds`: the result is a bf16 held in a float, to be rounded. `vector`: the text
    works on vectors as well.
    """

    text: str
    precedence: int
    levels: tuple[int, ...]
    narrows: bool = False
    via_float: bool = False
    rounds: bool = False
    vector: bool = False


def spell(op: Operation, typing: Typing, math: Math = "precise") -> Spelling:
    """The printed form of an operation for operands that `check` has typed."""
    dtype, result = typing.dtype, typing.result
    text = op.template(dtype, math)
    precedence, levels = form(text, op.arity)
    small = result.is_integer and result.bits < 32
    return Spelling(
        text,
        precedence,
        levels,
        narrows=small and CONDITION < precedence < PRIMARY,
        via_float=op.via_float and dtype.name == "f16",
        rounds=result.name == "bf16" and not op.exact,
        vector=op.on_vectors(dtype),
    )


@cache
def form(template: str, arity: int) -> tuple[int, tuple[int, ...]]:
    """The precedence of a template, and the least precedence that its operands need to stand bare.

    Operands of a call need none; the left one of a binary operator the operator's own, the right one more.
    Comparisons do not chain, and a minus before a minus would be a decrement: there both need more.
    """
    if template == "{0}":
        return PRIMARY, (PRIMARY,)
    if _CALL_FORM.fullmatch(template):
        return PRIMARY, (COMMA + 1,) * arity
    if template == "{0} ? {1} : {2}":
        return CONDITION, (CONDITION + 1, CONDITION, CONDITION)
    if _UNARY_FORM.fullmatch(template):
        return UNARY, (PRIMARY,)
    match = _BINARY_FORM.fullmatch(template)
    assert match, f"unknown form of template: {template}"
    own = BINARY[match[1]]
    if own in (EQUALITY, RELATION):
        return own, (own + 1,) * arity
    if template.startswith("{0}"):
        return own, (own, own + 1)[:arity]
    return own, (own + 1,)


def check(op: Operation, types: Sequence[DType]) -> Typing:
    """The typing of an operation on scalar operand types (a vector is checked by its element type).

    Raises Refusal where there is none.
    """
    assert len(types) == op.arity, f"{op.name} takes {op.arity} operands"
    rule = op.rule
    match rule:
        case "arithmetic" | "numeric" | "number" | "floating":
            return _check_common(op, types)
        case "bitwise" | "integer":
            return _check_integers(op, types)
        case "shift":
            return _check_shift(op, types)
        case "scale":
            return _check_scale(op, types)
        case "compare":
            joined = _join(op, types)
            return Typing((joined,) * op.arity, BOOL, joined)
        case "logical":
            return Typing((BOOL,) * op.arity, BOOL, BOOL)
        case "predicate":
            return Typing((types[0],), BOOL, types[0])
        case "select":
            joined = _join(op, types[1:])
            return Typing((BOOL, joined, joined), joined, joined)
        case _:
            assert_never(rule)


def _check_common(op: Operation, types: Sequence[DType]) -> Typing:
    if op.rule == "floating" and not any(t.is_float for t in types):
        return Typing((F32,) * op.arity, F32, F32)
    joined = _join(op, types)
    if joined == BOOL and op.rule == "numeric":
        raise _bool_refused(op)
    if joined == BOOL and op.rule == "number":
        joined = I8
    return Typing((joined,) * op.arity, joined, joined)


def _check_integers(op: Operation, types: Sequence[DType]) -> Typing:
    if any(t.is_float for t in types):
        raise _float_refused(op, types)
    joined = _join(op, types)
    if joined == BOOL and op.rule == "integer":
        raise Refusal(
            "operand-type",
            f"{_called(op)} needs integers, found {_listed(types)}",
            "a bool becomes a number by a cast, such as u8(…)",
        )
    return Typing((joined,) * op.arity, joined, joined)


def _check_shift(op: Operation, types: Sequence[DType]) -> Typing:
    if any(t.is_float for t in types):
        raise _float_refused(op, types)
    left, count = (I32 if t == BOOL else t for t in types)
    return Typing((left, count), left, left)


def _check_scale(op: Operation, types: Sequence[DType]) -> Typing:
    value, exponent = types
    if not (exponent == BOOL or exponent in (U8, U16) or (exponent.kind == "int" and exponent.bits <= 32)):
        raise Refusal(
            "operand-type",
            f"{_called(op)} needs an exponent that fits i32, found {exponent}",
            "cast the exponent: i32(…)",
        )
    dtype = value if value.is_float else F32
    return Typing((dtype, I32), dtype, dtype)


def _join(op: Operation, types: Sequence[DType]) -> DType:
    """The common type of all, or why there is none (u64 beside a signed integer)."""
    joined: DType | None = None
    for t in sorted(types, key=lambda t: not t.is_float):  # beside a float, u64 and a signed integer do agree
        joined = t if joined is None else promote(joined, t)
        if joined is None:
            break
    else:
        assert joined is not None
        return joined
    signed = next(t for t in types if t.kind == "int")
    raise Refusal(
        "mixed-signs",
        f"{_called(op)} has {_listed(types)}, and no integer type holds both {signed} and u64",
        f"cast one of them: u64(…) keeps the bits, {signed}(…) or f32(…) the sign",
    )


def _bool_refused(op: Operation) -> Refusal:
    way = {
        "subtract": "use '^' (they differ) or 'a and not b', or cast: i32(a) - i32(b)",
        "negative": "use 'not', or cast: -i32(a)",
    }
    found = "bool" if op.arity == 1 else "two bools"
    return Refusal(
        "bool-arithmetic",
        f"{_called(op)} needs numbers, found {found}",
        way.get(op.name, "a bool becomes a number by a cast, such as i32(…)"),
    )


def _float_refused(op: Operation, types: Sequence[DType]) -> Refusal:
    allowed = "integers" if op.rule in ("integer", "shift") else "integers or bools"
    return Refusal(
        "operand-type",
        f"{_called(op)} needs {allowed}, found {_listed(types)}",
        "cast to an integer type, i32(…), or take the bits: bitcast(u32, …)",
    )


def _called(op: Operation) -> str:
    return f"'{op.symbol}'" if op.symbol else op.name


def _listed(types: Sequence[DType]) -> str:
    return " and ".join(str(t) for t in types)
