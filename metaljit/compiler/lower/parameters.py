"""What a lowered kernel takes and gives, as the program says it.

In: a signature and its specialisation. Out: the parameters and results of a `Program`, and `Lowered`, which is all that
the passes and the printer need of what the front end has made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...extents import Extent, show
from ...frozen import frozen
from ...program import ArrayParam, Place, Role, ScalarParam
from .. import ir
from .body import Unit
from .signature import Signature
from .specialise import ArrayType, Specialisation


@frozen
class Lowered:
    """A kernel in IR, and what belongs to the call. `title` stands above its text."""

    kernel: ir.Kernel
    unit: Unit
    params: tuple[ArrayParam | ScalarParam, ...]
    results: tuple[ArrayParam, ...]
    domain: tuple[Extent, ...]
    title: str


def params(signature: Signature, spec: Specialisation) -> Iterator[ArrayParam | ScalarParam]:
    for p in signature.params:
        if p.kind == "scalar":
            type = spec.scalars[p.name]
            yield ScalarParam(p.name, type.scalar, type.lanes, Place.of(p.span, "declared here"))
        elif p.kind != "const":
            roles: dict[str, Role] = {"array": "in", "out": "out", "inout": "inout"}
            made = array(p.name, spec.arrays[p.name], roles[p.kind])
            span = p.annotation.span if p.annotation is not None else p.span
            yield replace(made, zeroed=p.kind == "out", place=Place.of(span, "declared here"))


def results(types: Sequence[ArrayType]) -> tuple[ArrayParam, ...]:
    return tuple(array(name, r, "out") for name, r in zip(result_names(len(types)), types, strict=True))


def array(name: str, type: ArrayType, role: Role) -> ArrayParam:
    return ArrayParam(name, type.element.scalar, type.element.lanes, type.shape, role)


def result_names(count: int) -> tuple[str, ...]:
    return ("out",) if count == 1 else tuple(f"out{k}" for k in range(count))


def title(name: str, signature: Signature, spec: Specialisation) -> str:
    """Which kernel this is, and for which types."""
    parts = []
    for p in signature.params:
        if p.kind == "const":
            parts.append(f"{p.name} = {spec.constants[p.name]!r}")
        elif p.name in spec.arrays:
            array = spec.arrays[p.name]
            parts.append(f"{p.name}: {array.element}[{', '.join(show(e) for e in array.shape)}]")
        else:
            parts.append(f"{p.name}: {spec.scalars[p.name]}")
    line = f"{name}({', '.join(parts)})"
    return "".join(c if " " <= c <= "~" and c != "\\" else "?" for c in line)
