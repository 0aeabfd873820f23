"""What names mean in interpret mode, and how arguments become a device function's names.

In: a function's text, and the types of the call. Out: values for its free names; its parameters bound by Python's
rules and converted as they are annotated.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

import numpy as np

from metaljit.grammar import tree

from .compiler.lower.names import Foreign, canonical, member
from .compiler.lower.signature import Names, annotation, constant
from .compiler.lower.specialise import Specialisation
from .dtypes import DType, Vec, from_numpy
from .frozen import frozen
from .interpret_values import Pattern, Value, Vector, convert, dtype_of, is_literal, refuse, typed
from .source import Span, TypeFault
from .symbols import MISSING, Builtin, Dim, DTypeVariable, Namespace, Pack


@frozen
class Scope:
    """A function's tree and its free names. `extents` gives dims a value."""

    function: tree.Function
    names: Names
    spec: Specialisation
    extents: Mapping[str, Value] = field(repr=False)

    def free(self, name: str) -> Value:
        """What a name that is not local stands for."""
        found = self.names.resolve(name)
        if found is builtins.breakpoint:
            return found
        found = canonical(found)
        if found is MISSING:
            refuse(f"the name {name!r} is not defined")
        return self.value(found, name)

    def value(self, found: Any, name: str) -> Value:
        match found:
            case tuple():
                return tuple(self.value(canonical(f), name) for f in found)
            case np.generic():
                dtype = from_numpy(found.dtype)
                return found if dtype is None else dtype.numpy.type(found)
            case Dim():
                return self.extents[found.name]
            case Pack():
                return tuple(self.extents[f"{found.name}.{k}"] for k in range(self.spec.packs[found.name]))
            case DTypeVariable():
                return self.spec.variables[found]
            case Foreign(what):
                refuse(f"{name!r} is a Python {what}")
            case _:
                return found

    def dotted(self, node: tree.Attribute, local: Sequence[str]) -> tuple[str, Value] | None:
        """A name behind a module or a namespace, such as `np.sqrt`; None where it starts with a local value."""
        parts: list[str] = []
        inner: tree.Expr = node
        while isinstance(inner, tree.Attribute):
            parts.insert(0, inner.name)
            inner = inner.value
        if not isinstance(inner, tree.Name) or inner.name in local:
            return None
        owner = self.free(inner.name)
        for k, part in enumerate(parts):
            if not isinstance(owner, types.ModuleType | Namespace):
                return None if k == 0 else refuse(f"{node.span.text!r} has no meaning")
            owner = self.value(member(owner, part), part)
        return ".".join((inner.name, *parts)), owner

    def element(self, node: tree.Expr) -> DType | Vec:
        """The type of `x: f32 = …`."""
        element = annotation(node, self.names).element
        return self.spec.variables[element] if isinstance(element, DTypeVariable) else element

    def results(self) -> Pattern:
        """The types that `-> …` states, None where it states none."""
        match self.function.returns:
            case None | tree.Constant():
                return None
            case tree.TupleExpr(items) | tree.Subscript(tree.Name("tuple" | "Tuple"), items):
                types = tuple(self._stated(i) for i in items if not isinstance(i, tree.Star))
                return None if None in types else types
            case node:
                return self._stated(node)

    def _stated(self, node: tree.Expr) -> DType | Vec | None:
        """A dtype variable in a device function's result says nothing: each call may choose another."""
        element = annotation(node, self.names).element
        return None if isinstance(element, DTypeVariable) else element


def callees(scope: Scope) -> Iterator[Value]:
    """What a function's text calls by a free name."""
    for node in _calls(scope.function.body):
        with suppress(TypeFault):  # a local name
            match node.func:
                case tree.Name(name):
                    yield scope.free(name)
                case tree.Attribute() as dotted:
                    found = scope.dotted(dotted, ())
                    if found is not None:
                        yield found[1]


def _calls(node: Any) -> Iterator[tree.Call]:
    if isinstance(node, tree.Call):
        yield node
    if isinstance(node, tuple):
        for part in node:
            yield from _calls(part)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
        for part in vars(node).values():
            yield from _calls(part)


def bind(scope: Scope, args: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """A device function's parameters, by Python's rules for arguments and defaults."""
    parameters = scope.function.parameters
    given = dict(zip((p.name for p in parameters), args, strict=False)) | dict(named)
    bound = {}
    for p in parameters:
        if p.name in given:
            value = given[p.name]
        elif p.default is not None:
            value = scope.value(canonical(constant(p.default, scope.names)), p.name)
        else:
            refuse(f"{scope.function.name} needs the argument {p.name!r}")
        bound[p.name] = _annotated(scope, p, value)
    return bound


def _annotated(scope: Scope, p: tree.Parameter, value: Value) -> Value:
    """A number as its annotation wants it; everything else as it is."""
    is_number = is_literal(value) or dtype_of(value) is not None or isinstance(value, Vector)
    if p.annotation is None or not is_number:
        return value
    head = p.annotation.value if isinstance(p.annotation, tree.Subscript) else p.annotation
    found = scope.names.lookup(head)
    if isinstance(found, Builtin) and found.name != "bool":
        return value  # const[…] or tuple
    element = annotation(p.annotation, scope.names).element
    if isinstance(element, DTypeVariable):
        return typed(value)
    return convert(value, element)
