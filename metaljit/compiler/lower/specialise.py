"""A signature and the types of a call → a specialisation.

In: parameters as declared, and for each argument its dtype and rank (or a constant's value). Out: concrete types, and
shapes as extent expressions. A fault points at the parameter that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from metaljit.grammar import tree

from ...arguments import Argument, ArrayArgument, ConstArgument, ScalarArgument
from ...dtypes import F32, I32, DType, Vec
from ...extents import Extent, Lit, Sym, op
from ...frozen import frozen
from ...symbols import Dim, DTypeVariable, Pack
from .names import Foreign
from .signature import Annotation, Declared, Names, PackAxes, Signature
from .values import fault


@frozen
class ArrayType:
    element: DType | Vec
    shape: tuple[Extent, ...]


@frozen
class Specialisation:
    """What is known once the types of a call are known.

    `packs` gives each pack's number of axes; `variables` each dtype variable's choice, by the variable itself;
    `constants` the values of const parameters. In a graph, `extents` says what the kernel's own extents are there.
    """

    arrays: Mapping[str, ArrayType]
    scalars: Mapping[str, DType | Vec]
    constants: Mapping[str, Any]
    packs: Mapping[str, int]
    variables: Mapping[DTypeVariable, DType]
    results: tuple[ArrayType, ...]
    extents: Mapping[str, Extent] = field(default_factory=dict)


def specialise(sig: Signature, arguments: Mapping[str, Argument], names: Names) -> Specialisation:
    """Parameters with the types of a call; a diagnostic at the parameter that does not fit."""
    constants = {p.name: _const_value(p, arguments[p.name]) for p in sig.params if p.kind == "const"}
    shaped = [p for p in sig.params if p.kind in ("array", "inout")]
    variables: dict[DTypeVariable, DType] = {}
    packs: dict[str, int] = {}
    for p in shaped:
        argument = arguments[p.name]
        assert isinstance(argument, ArrayArgument)
        _bind_element(p, argument.dtype, variables)
        _bind_rank(p, argument, packs)
    for p in sig.params:
        if p.kind == "scalar" and p.annotation and isinstance(p.annotation.element, DTypeVariable):
            given = arguments[p.name]
            dtype = given.dtype if isinstance(given, ScalarArgument) else None
            if p.annotation.element not in variables:
                _bind_element(p, dtype or _first_of(p.annotation.element), variables)
    shapes = Shapes(names, constants, packs, {p.name for p in sig.params if p.kind == "scalar"})
    arrays: dict[str, ArrayType] = {}
    scalars: dict[str, DType | Vec] = {}
    for p in sig.params:
        if p.annotation is None:
            continue
        element = _element(p.annotation, variables)
        if p.annotation.axes is None:
            scalars[p.name] = element
        else:
            arrays[p.name] = ArrayType(element, shapes.of(p.annotation))
    results = tuple(ArrayType(_element(r, variables), shapes.of(r)) for r in sig.results)
    return Specialisation(arrays, scalars, constants, packs, variables, results)


def _first_of(variable: DTypeVariable) -> DType:
    return F32 if F32 in variable.options else I32 if I32 in variable.options else variable.options[0]


def _const_value(p: Declared, argument: Argument) -> Any:
    assert isinstance(argument, ConstArgument)
    value = argument.value
    allowed = {"int": int, "float": (int, float), "bool": bool, "str": str, "tuple": tuple, "": object}[
        p.const
    ]
    if isinstance(value, np.generic) and value.dtype.kind in "iufb":
        value = value.item()
    is_bool = isinstance(value, bool)
    if not isinstance(value, allowed) or (is_bool and p.const in ("int", "float")):  # type: ignore[arg-type]
        fault(
            "wrong-const", f"{p.name!r} is const[{p.const}] and was given {value!r}", p.span, "declared here"
        )
    return float(value) if p.const == "float" else value


def _bind_element(p: Declared, dtype: DType, variables: dict[DTypeVariable, DType]) -> None:
    assert p.annotation is not None
    wanted = p.annotation.element
    match wanted:
        case DTypeVariable(name, options):
            if dtype not in options:
                fault(
                    "wrong-dtype",
                    f"{p.name!r} takes {name.replace(' ', ', ')} and was given {dtype}",
                    p.annotation.span,
                )
            if variables.setdefault(wanted, dtype) != dtype:
                fault(
                    "wrong-dtype",
                    f"{p.name!r} is {dtype}, but the same dtype variable is {variables[wanted]} in an earlier argument",
                    p.annotation.span,
                    help=f"convert one of them: `{p.name}.astype(…)`",
                )
        case DType() | Vec():
            if dtype != wanted.scalar:
                fault(
                    "wrong-dtype",
                    f"{p.name!r} takes {wanted.scalar} and was given {dtype}",
                    p.annotation.span,
                    "declared here",
                    help=f"convert the argument: `{p.name}.astype(np.{wanted.scalar.numpy.name})`",
                )


def _bind_rank(p: Declared, argument: ArrayArgument, packs: dict[str, int]) -> None:
    assert p.annotation is not None
    assert p.annotation.axes is not None
    lanes = p.annotation.element.lanes if isinstance(p.annotation.element, Vec) else 1
    rank = argument.rank - (lanes > 1)
    named = [a for a in p.annotation.axes if not isinstance(a, PackAxes)]
    pack = next((a for a in p.annotation.axes if isinstance(a, PackAxes)), None)
    extra = rank - len(named)
    lane_note = f" and a last axis of {lanes} lanes" if lanes > 1 else ""
    if extra < 0 or (pack is None and extra):
        least = "at least " if pack else ""
        fault(
            "wrong-rank",
            f"{p.name!r} takes {least}{len(named)} dimension{'' if len(named) == 1 else 's'}{lane_note} "
            f"and was given an array of {argument.rank}",
            p.annotation.span,
            "declared here",
        )
    if pack and packs.setdefault(pack.pack, extra) != extra:
        fault(
            "wrong-rank",
            f"the pack {pack.pack!r} has {packs[pack.pack]} axes in an earlier argument and {extra} in {p.name!r}",
            p.annotation.span,
        )


def _element(a: Annotation, variables: Mapping[DTypeVariable, DType]) -> DType | Vec:
    if isinstance(a.element, DTypeVariable):
        if a.element not in variables:
            fault(
                "unbound-dtype",
                f"nothing at the call decides the element type {a.span.text!r}",
                a.span,
                help="give one parameter this type",
            )
        return variables[a.element]
    return a.element


class Shapes:
    """Axis expressions → extents, where constants and the packs' lengths are known."""

    def __init__(
        self, names: Names, constants: Mapping[str, Any], packs: Mapping[str, int], scalars: set[str]
    ) -> None:
        self.names, self.constants, self.packs, self.scalars = names, constants, packs, scalars

    def of(self, a: Annotation) -> tuple[Extent, ...]:
        made: list[Extent] = []
        for axis in a.axes or ():
            made += self.pack(axis.node) if isinstance(axis, PackAxes) else [self.extent(axis)]
        return tuple(made)

    def pack(self, node: tree.Expr) -> list[Extent]:
        value = self.value(node)
        if not isinstance(value, tuple):
            fault("not-a-pack", f"{node.span.text!r} is not a pack of extents", node.span)
        return list(value)

    def extent(self, node: tree.Expr) -> Extent:
        value: Extent | tuple[Extent, ...] = self.value(node)
        if isinstance(value, tuple):
            fault(
                "bad-extent",
                f"{node.span.text!r} is several extents",
                node.span,
                help=f"write `*{node.span.text}`",
            )
        return value

    def value(self, node: tree.Expr) -> Any:
        """An extent, or a tuple of them for a pack or a const tuple."""
        match node:
            case tree.Number(value) | tree.Constant(bool(value)):
                return Lit(value)
            case tree.Name(name) if name in self.constants:
                return self._constant(self.constants[name], node)
            case tree.Name(name) if name in self.scalars:
                return Sym(name)
            case tree.Name() | tree.Attribute():
                return self._named(node)
            case tree.TupleExpr(items):
                return tuple(self.extent(i) for i in items if not isinstance(i, tree.Star))
            case tree.Unary("-", operand):
                return self._each("neg", node, self.value(operand))
            case tree.Unary("+", operand):
                return self.value(operand)
            case tree.Unary("not", operand):
                return op("not", self.extent(operand))
            case tree.Binary(symbol, left, right):
                return self._each(symbol, node, self.value(left), self.value(right))
            case tree.Compare(first, ops, rest):
                terms = [self.extent(first), *(self.extent(r) for r in rest)]
                parts = [op(o, a, b) for o, a, b in zip(ops, terms, terms[1:], strict=False)]
                return parts[0] if len(parts) == 1 else op("and", *parts)
            case tree.Logical(word, operands):
                return op(word, *(self.extent(o) for o in operands))
            case tree.Subscript(value, indices):
                return self._subscript(node, value, indices)
            case tree.Call(func, args, _):
                return self._call(node, func, args)
            case _:
                fault("bad-extent", f"{node.span.text!r} is not an expression of extents", node.span)

    def _named(self, node: tree.Expr) -> Any:
        assert isinstance(node, tree.Name | tree.Attribute)
        try:
            found = self.names.lookup(node)
        except Exception as e:
            text = node.span.text
            if isinstance(node, tree.Name) and getattr(e, "diagnostic", None) is not None:
                fault(
                    "unknown-dim",
                    f"the extent {text!r} is not declared",
                    node.span,
                    "not declared",
                    help=f'declare it above: `{text} = dims("{text}")`',
                )
            raise
        match found:
            case Dim(name):
                return Sym(name)
            case Pack(name):
                if name not in self.packs:
                    fault("unbound-pack", f"no argument says how many axes the pack {name!r} has", node.span)
                return tuple(Sym(f"{name}.{k}") for k in range(self.packs[name]))
            case _:
                return self._constant(found, node)

    def _constant(self, value: Any, node: tree.Expr) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, tuple):
            return tuple(self._constant(v, node) for v in value)
        if isinstance(value, int | float):
            return Lit(value)
        what = value.what if isinstance(value, Foreign) else type(value).__name__
        fault("bad-extent", f"{node.span.text!r} ({what}) cannot be part of an extent", node.span)

    def _each(self, symbol: str, node: tree.Expr, *values: Any) -> Any:
        """An operator on extents, or axis by axis on packs and tuples of equal length."""
        from ...extents import MEANING

        if symbol not in MEANING:
            fault("bad-extent", f"{symbol!r} cannot be part of an extent", node.span)
        lengths = {len(v) for v in values if isinstance(v, tuple)}
        if not lengths:
            return op(symbol, *values)
        if len(lengths) > 1:
            shown = " and ".join(str(len(v)) for v in values)
            fault("bad-extent", f"tuples of {shown} items cannot be combined", node.span)
        (n,) = lengths
        columns = [v if isinstance(v, tuple) else (v,) * n for v in values]
        return tuple(op(symbol, *c) for c in zip(*columns, strict=True))

    def _subscript(self, node: tree.Expr, value: tree.Expr, indices: tuple[Any, ...]) -> Any:
        items = self.value(value)
        index = (
            self.extent(indices[0]) if len(indices) == 1 and not isinstance(indices[0], tree.Star) else None
        )
        if (
            not isinstance(items, tuple)
            or not isinstance(index, Lit)
            or not -len(items) <= index.value < len(items)
        ):
            fault("bad-extent", f"{node.span.text!r} is not an expression of extents", node.span)
        return items[int(index.value)]

    def _call(self, node: tree.Expr, func: tree.Expr, args: tuple[Any, ...]) -> Any:
        found = self.names.lookup(func)
        name = getattr(found, "name", "")
        values = [self.value(a) for a in args if not isinstance(a, tree.Star)]
        match name, values:
            case "len", [tuple(items)]:
                return Lit(len(items))
            case "sum", [tuple(items)]:
                total: Extent = Lit(0)
                for i in items:
                    total = op("+", total, i)
                return total
            case (("min" | "max" | "minimum" | "maximum"), [_, _, *_]):
                return op({"minimum": "min", "maximum": "max"}.get(name, name), *values)
            case (("min" | "max"), [tuple(items)]):
                return op(name, *items)
            case ("ceil_div", [_, _]) | (("abs" | "absolute"), [_]):
                return op({"absolute": "abs"}.get(name, name), *values)
            case ("int", [value]):
                return value
        fault("bad-extent", f"{node.span.text!r} cannot be part of an extent", node.span,
              help="extents are made of dims, constants, + - * // %, min, max, ceil_div and len")  # fmt: skip
