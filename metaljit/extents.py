"""Integer expressions over extents, constants and scalars, evaluated on the host at each call.

    extent = Lit(number) | Sym(name) | Op(name, extents)

They say what a result's shape is, what a launch's grid is, and what `require` demands. They are data
(they serialise as nested lists), never Python text that is evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, assert_never

from .frozen import frozen

Number: TypeAlias = int | float | bool


@frozen
class Lit:
    value: Number


@frozen
class Sym:
    """An extent or a scalar parameter, by name; an axis of a pack is `S.0`, `S.1`, …"""

    name: str


@frozen
class Op:
    op: str
    args: tuple[Extent, ...]


Extent: TypeAlias = Lit | Sym | Op


def _floor_div(a: Number, b: Number) -> Number:
    return a // b if b else 0  # NumPy's integers: x // 0 is 0


def _bounded(operation: Callable[..., Number]) -> Callable[[Number, Number], Number]:
    """Powers and shifts whose result is far beyond any extent are errors, not gigabytes of digits."""

    def run(a: Number, b: Number) -> Number:
        if abs(b) > 1024:
            raise ArithmeticError(f"{b} is too large an exponent")
        return operation(a, b)

    return run


def _mod(a: Number, b: Number) -> Number:
    return a % b if b else 0


MEANING: dict[str, Callable[..., Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": _floor_div,
    "%": _mod,
    "/": operator.truediv,
    "**": _bounded(operator.pow),
    "<<": _bounded(operator.lshift),
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "neg": operator.neg,
    "min": min,
    "max": max,
    "abs": abs,
    "ceil_div": lambda a, b: -(-a // b) if b else 0,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "not": operator.not_,
}

_PRECEDENCE = {
    "or": 1, "and": 2, "not": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "==": 4, "!=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10, "neg": 11, "**": 12,
}  # fmt: skip


def evaluate(extent: Extent, env: Mapping[str, Number]) -> Number:
    """The value where every symbol is in `env`; KeyError names one that is not."""
    match extent:
        case Lit(value):
            return value
        case Sym(name):
            return env[name]
        case Op(op, args):
            return MEANING[op](*(evaluate(a, env) for a in args))
    assert_never(extent)


def symbols(extent: Extent) -> frozenset[str]:
    match extent:
        case Lit():
            return frozenset()
        case Sym(name):
            return frozenset({name})
        case Op(_, args):
            return frozenset().union(*(symbols(a) for a in args))
    assert_never(extent)


def op(name: str, *args: Extent) -> Extent:
    """`Op`, folded where every argument is a literal, and without `+ 0` and `* 1`."""
    if all(isinstance(a, Lit) for a in args):
        return Lit(MEANING[name](*(a.value for a in args if isinstance(a, Lit))))
    match name, args:
        case ("+" | "-", (x, Lit(0))) | ("*" | "//", (x, Lit(1))) | ("+", (Lit(0), x)) | ("*", (Lit(1), x)):
            return x
    return Op(name, args)


def substituted(extent: Extent, by: Mapping[str, Extent]) -> Extent:
    """The extent with symbols replaced, all at once."""
    if not by:
        return extent
    match extent:
        case Lit():
            return extent
        case Sym(name):
            return by.get(name, extent)
        case Op(name, args):
            return op(name, *(substituted(a, by) for a in args))
    assert_never(extent)


def product(extents: tuple[Extent, ...]) -> Extent:
    total: Extent = Lit(1)
    for e in extents:
        total = op("*", total, e)
    return total


def show(extent: Extent, outer: int = 0) -> str:
    """The expression as the user would write it."""
    match extent:
        case Lit(value):
            return repr(value)
        case Sym(name):
            return name
        case Op(("min" | "max" | "abs" | "ceil_div") as name, args):
            return f"{name}({', '.join(show(a) for a in args)})"
        case Op(name, (x,)):
            text = f"{'-' if name == 'neg' else 'not '}{show(x, _PRECEDENCE[name])}"
        case Op(name, args):
            level = _PRECEDENCE[name]
            parts = [show(args[0], level), *(show(a, level + 1) for a in args[1:])]
            text = f" {name} ".join(parts)
            return f"({text})" if level < outer else text
        case _:
            assert_never(extent)
    return text


def to_json(extent: Extent) -> Any:
    match extent:
        case Lit(value):
            return value
        case Sym(name):
            return name
        case Op(name, args):
            return [name, *(to_json(a) for a in args)]
    assert_never(extent)


def from_json(data: Any) -> Extent:
    if isinstance(data, list):
        return Op(data[0], tuple(from_json(a) for a in data[1:]))
    return Sym(data) if isinstance(data, str) else Lit(data)
