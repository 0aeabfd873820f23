"""Annotations → what a kernel takes and gives; and, with the types of a call, a specialisation.

In: a function's tree, its free names, and for each argument its dtype and rank (or a constant's value). Out:
parameters with concrete types and shapes as extent expressions. Bodies are left to `lower`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from metaljit.grammar import tree

from ...dtypes import BOOL, DType, Vec
from ...frozen import frozen
from ...source import Span
from ...symbols import MISSING, MJK_NAMES, Builtin, DTypeVariable, Pack
from .literals import fold
from .names import canonical, member
from .values import Fault, fault

Resolve: TypeAlias = Callable[[str], Any]
ParamKind = Literal["array", "scalar", "const", "out", "inout"]


@frozen
class PackAxes:
    """`*S`, or `*(S + lo + hi)`: the extents of a pack, each changed by what was added."""

    pack: str
    node: tree.Expr


@frozen
class Annotation:
    """`element[axes]`: an array, or a scalar where `axes` is None. `element` may be a dtype variable."""

    element: DType | Vec | DTypeVariable
    axes: tuple[tree.Expr | PackAxes, ...] | None
    span: Span


@frozen
class Declared:
    """A parameter as declared."""

    name: str
    kind: ParamKind
    annotation: Annotation | None
    const: str
    default: Any
    has_default: bool
    span: Span
    keyword_only: bool = False


@frozen
class Signature:
    params: tuple[Declared, ...]
    results: tuple[Annotation, ...]
    is_grid: bool


# What other languages call the element types.
SPELT = {
    "float32": "f32", "float16": "f16", "half": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "uint": "u32", "uchar": "u8",
    "mean": "sum(x[k] for k in range(N)) / N",
}  # fmt: skip
NO_F64 = ("f64", "float64", "double")


class Names:
    """Free names of one function, with suggestions for those that do not exist."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve

    def lookup(self, node: tree.Expr) -> Any:
        """The object behind a name or a dotted name; a diagnostic where there is none."""
        match node:
            case tree.Name(name):
                found = canonical(self.resolve(name))
                if found is MISSING:  # in quotes, the language's own names need no import
                    found = MJK_NAMES.get(name, MISSING)
                if found is MISSING:
                    unknown_name(name, node.span)
                return found
            case tree.Attribute(value, name):
                owner = self.lookup(value)
                found = member(owner, name)
                if found is MISSING:
                    fault("unknown-name", f"{value.span.text!r} has no name {name!r}", node.name_span)
                return found
            case _:
                return None


def unknown_name(name: str, span: Span, known: tuple[str, ...] = ()) -> Any:
    from ...operations import OPERATIONS

    if name in NO_F64:
        fault(
            "no-f64",
            f"Apple GPUs have no 64-bit floats, so the language has no {name}",
            span,
            help="use f32; at the call convert with `x.astype(np.float32)`",
        )

    if name in SPELT:
        fault(
            "unknown-name",
            f"the name {name!r} is not defined",
            span,
            "not defined",
            help=f"write `{SPELT[name]}`",
        )
    if name in MJK_NAMES or name in OPERATIONS:
        fault(
            "unknown-name",
            f"the name {name!r} belongs to the language and is not imported",
            span,
            "not imported",
            help=f"import it: `from metaljit.lang import {name}`",
        )
    import difflib  # only where something is wrong

    close = difflib.get_close_matches(name, {*known, *MJK_NAMES, *OPERATIONS}, 1, 0.75)
    way_out = f"did you mean `{close[0]}`?" if close else ""
    fault("unknown-name", f"the name {name!r} is not defined", span, "not defined", help=way_out)


# ---- annotations ----


def declare(function: tree.Function, resolve: Resolve) -> Signature:
    """The signature of a kernel as written."""
    names = Names(resolve)
    params = tuple(replace(_parameter(p, names), keyword_only=p.keyword_only) for p in function.parameters)
    for p in params:
        if p.name == "out" and p.kind not in ("out", "inout"):
            fault(
                "reserved-name",
                "'out' is the keyword that gives a call its storage",
                p.span,
                help="rename the parameter, for example `result`",
            )
    is_grid = any(p.kind in ("out", "inout") for p in params)
    results = _results(function, names)
    if is_grid and results:
        fault(
            "result-and-out",
            "a kernel has either a result type or Out/InOut parameters, not both",
            results[0].span,
            help="drop the `->`: what Out and InOut parameters hold is returned",
        )
    if not is_grid and not results:
        fault(
            "missing-result",
            f"kernel {function.name!r} has neither a result type nor an Out parameter",
            function.name_span,
            help="say what it gives, for example `-> f32[N]`",
        )
    return Signature(params, results, is_grid)


def _parameter(p: tree.Parameter, names: Names) -> Declared:
    node = p.annotation
    if node is None:
        fault(
            "missing-annotation",
            f"the parameter {p.name!r} has no type",
            p.name_span,
            help=f"write for example `{p.name}: f32[N]` for an array or `{p.name}: f32` for a number",
        )
    default = _default(p, names)
    has_default = p.default is not None
    if isinstance(node, tree.Subscript):
        head = names.lookup(node.value)
        if isinstance(head, Builtin) and head.name == "const":
            return Declared(
                p.name, "const", None, _const_kind(node, names), default, has_default, p.name_span
            )
        if isinstance(head, Builtin) and head.name in ("Out", "InOut"):
            if len(node.indices) != 1 or isinstance(node.indices[0], tree.Star):
                fault(
                    "bad-annotation",
                    f"{head.name} takes one array type",
                    node.span,
                    help=f"{head.name}[f32[N]]",
                )
            inner = annotation(node.indices[0], names)
            if inner.axes is None:
                fault(
                    "bad-annotation",
                    f"{head.name} takes an array type",
                    inner.span,
                    help=f"{head.name}[f32[N]]",
                )
            kind: ParamKind = "out" if head.name == "Out" else "inout"
            return Declared(p.name, kind, inner, "", None, False, p.name_span)
    elif isinstance(head := names.lookup(node), Builtin) and head.name == "const":
        return Declared(p.name, "const", None, "", default, has_default, p.name_span)
    found = annotation(node, names)
    kind = "scalar" if found.axes is None else "array"
    if has_default and kind == "array":
        fault("bad-default", "an array parameter cannot have a default", p.span)
    return Declared(p.name, kind, found, "", default, has_default, p.name_span)


def _const_kind(node: tree.Subscript, names: Names) -> str:
    (inner,) = node.indices if len(node.indices) == 1 else (None,)
    name = (
        inner.name
        if isinstance(inner, tree.Name)
        else inner.value.name
        if (isinstance(inner, tree.Subscript) and isinstance(inner.value, tree.Name))
        else ""
    )
    if name not in ("int", "float", "bool", "str", "tuple"):
        fault(
            "bad-annotation",
            f"const[…] takes int, float, bool, str or tuple, not {node.span.text!r}",
            node.span,
            help="const[int]",
        )
    return name


def _default(p: tree.Parameter, names: Names) -> Any:
    if p.default is None:
        return None
    return constant(p.default, names)


def constant(node: tree.Expr, names: Names) -> Any:
    """The value of a constant expression: numbers, strings, tuples, names of them, and arithmetic of numbers."""
    match node:
        case tree.Number(value) | tree.String(value) | tree.Constant(value):
            return value
        case tree.TupleExpr(items):
            return tuple(constant(i.value if isinstance(i, tree.Star) else i, names) for i in items)
        case tree.Unary("-", operand):
            return -constant(operand, names)
        case tree.Unary("+", operand):
            return constant(operand, names)
        case tree.Binary(symbol, left, right):
            a, b = constant(left, names), constant(right, names)
            if all(isinstance(v, int | float) for v in (a, b)):
                return fold(symbol, a, b, node.span)
        case tree.Name() | tree.Attribute():
            found = names.lookup(node)
            if isinstance(found, bool | int | float | str | tuple | np.generic):
                return found
            if isinstance(found, DType | Vec):
                return found
    fault(
        "bad-constant",
        f"{node.span.text!r} is not a constant",
        node.span,
        help="write a number or a tuple of numbers",
    )


def _results(function: tree.Function, names: Names) -> tuple[Annotation, ...]:
    node = function.returns
    match node:
        case None | tree.Constant(None):
            return ()
        case tree.TupleExpr(items):
            parts: tuple[tree.Expr | tree.Star, ...] = items
        case tree.Subscript(tree.Name("tuple" | "Tuple"), indices):
            parts = indices
        case _:
            parts = (node,)
    made = []
    for part in parts:
        if isinstance(part, tree.Star):
            fault("bad-annotation", "a result type cannot be starred", part.span)
        found = annotation(part, names)
        made.append(found if found.axes is not None else replace(found, axes=()))
    return tuple(made)


def annotation(node: tree.Expr, names: Names) -> Annotation:
    """`f32`, `f32[H, W]`, `T[*S]`, `mj.f32[N]`."""
    head = node.value if isinstance(node, tree.Subscript) else node
    try:
        element = names.lookup(head)
    except Fault as e:
        if e.diagnostic.slug != "unknown-name" or e.diagnostic.help:
            raise
        declare_it = f'declare it above: `{head.span.text} = dtypes("float")`'
        raise Fault(replace(e.diagnostic, help=declare_it)) from None
    if isinstance(element, Builtin) and element.name == "bool":
        element = BOOL
    if not isinstance(element, DType | Vec | DTypeVariable):
        _refuse_element(head, element)
    axes: tuple[tree.Expr | PackAxes, ...] | None = None
    if isinstance(node, tree.Subscript):
        axes = tuple(_axis(i, names) for i in node.indices)
        if sum(isinstance(a, PackAxes) for a in axes) > 1:
            fault("two-packs", "an array type can hold one pack", node.span, help="name the other axes")
    return Annotation(element, axes, node.span)


def _refuse_element(head: tree.Expr, found: Any) -> None:
    text = head.span.text
    if isinstance(found, Builtin) and found.name in ("int", "float"):
        word = {"int": "i32", "float": "f32"}[found.name]
        fault(
            "bad-annotation",
            f"{text!r} is not an element type",
            head.span,
            help=f"write `{word}`, or `const[{text}]`",
        )
    fault(
        "bad-annotation",
        f"{text!r} is not an element type",
        head.span,
        help="use bool, i8 … i64, u8 … u64, f16, bf16, f32, a vector such as f32x3, or a name made by dtypes(…)",
    )


def _axis(item: tree.Expr | tree.Star, names: Names) -> tree.Expr | PackAxes:
    if not isinstance(item, tree.Star):
        return item
    found = _pack_in(item.value, names)
    if found is None:
        fault(
            "not-a-pack",
            f"{item.value.span.text!r} is not a pack of extents",
            item.span,
            help=f'declare it: {item.value.span.text} = dims("*{item.value.span.text}")',
        )
    return PackAxes(found, item.value)


def _pack_in(node: tree.Expr, names: Names) -> str | None:
    """The pack that an axis expression is built on."""
    match node:
        case tree.Name() | tree.Attribute():
            try:
                found = names.lookup(node)
            except Exception:
                return None
            return found.name if isinstance(found, Pack) else None
        case tree.Binary(_, left, right):
            return _pack_in(left, names) or _pack_in(right, names)
        case _:
            return None


# ---- specialisation ----
