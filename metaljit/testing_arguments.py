"""Arguments of a kernel, drawn from its signature.

In: a kernel. Out: a strategy of whole calls: extents that agree, element types that the dtype variables allow,
constants, numbers, arrays in every layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from .compiler.lower.signature import Annotation, Declared, Names, PackAxes, Signature, declare
from .compiler.lower.specialise import Shapes
from .dtypes import DType, Vec
from .extents import Extent, Number, evaluate, symbols
from .frozen import frozen
from .kernels import Kernel
from .symbols import DTypeVariable
from .testing_values import LAYOUTS, arrays, layouts, values

MAX_ELEMENTS = 400


@frozen
class Wanted:
    """What a test says about the arguments: whole ones, elements of arrays, extents; by name."""

    arguments: Mapping[str, Any]
    elements: Mapping[str, Any]
    extents: Mapping[str, Any]
    layouts: bool = True


@frozen
class Call:
    """The arguments of one call, by name."""

    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        return "".join(f"\n    {name} = {shown(value)}" for name, value in self.arguments.items())


def shown(value: Any) -> str:
    """A value as a test can be written with it."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    kept = f"np.array({value.tolist()!r}, {value.dtype.name!r})"
    if 0 in value.shape:
        kept = f"np.zeros({value.shape}, {value.dtype.name!r})"
    if value.size > 64:
        kept = f"<{value.dtype.name} array of shape {value.shape}>"
    notes = [] if value.flags.c_contiguous else [f"strides {value.strides}"]
    notes += [] if value.flags.writeable else ["read-only"]
    notes += [] if value.flags.aligned else ["unaligned"]
    return f"{kept}  # {', '.join(notes)}" if notes else kept


@st.composite
def calls(draw: st.DrawFn, kernel: Kernel, wanted: Wanted) -> Call:
    """Calls of a kernel. ValueError where a constant cannot be guessed, or a name is none of the kernel's."""
    signature, names = _declared(kernel)
    _check_names(signature, wanted)
    constants = {p.name: _constant(draw, p, wanted) for p in signature.params if p.kind == "const"}
    elements = _elements(draw, signature)
    scalars = {p.name: _scalar(draw, p, elements, wanted) for p in signature.params if p.kind == "scalar"}
    packs = {
        a.pack: draw(st.integers(0, 3))
        for p in signature.params
        if p.annotation is not None
        for a in p.annotation.axes or ()
        if isinstance(a, PackAxes)
    }
    axes = {
        p.name: Shapes(names, constants, packs, set(scalars)).of(p.annotation)
        for p in signature.params
        if p.kind in ("array", "inout") and p.annotation is not None
    }
    env = _extents(draw, axes.values(), scalars, wanted)
    found: dict[str, Any] = {}
    for p in signature.params:
        if p.kind == "const":
            found[p.name] = constants[p.name]
        elif p.kind == "scalar":
            found[p.name] = scalars[p.name]
        elif p.kind != "out":
            found[p.name] = _array(draw, p, elements, _shape(axes[p.name], env), wanted)
    return Call(found)


def _declared(kernel: Kernel) -> tuple[Signature, Names]:
    definition = kernel.definition
    return declare(definition.tree, definition.text.resolve), Names(definition.text.resolve)


def _check_names(signature: Signature, wanted: Wanted) -> None:
    known = {p.name for p in signature.params}
    for name in (*wanted.arguments, *wanted.elements):
        if name not in known:
            raise ValueError(f"the kernel has no parameter {name!r}; it has {', '.join(sorted(known))}")


def _given(draw: st.DrawFn, value: Any) -> Any:
    return draw(value) if isinstance(value, st.SearchStrategy) else value


def _constant(draw: st.DrawFn, p: Declared, wanted: Wanted) -> Any:
    if p.name in wanted.arguments:
        return _given(draw, wanted.arguments[p.name])
    if p.has_default:
        return p.default
    guesses = {"int": st.integers(1, 4), "float": st.sampled_from([0.5, -1.5, 2.0]), "bool": st.booleans()}
    if p.const not in guesses:
        raise ValueError(f"say which values the constant {p.name!r} has: arguments={{{p.name!r}: …}}")
    return draw(guesses[p.const])


def _elements(draw: st.DrawFn, signature: Signature) -> dict[DTypeVariable, DType]:
    """A type for each dtype variable."""
    annotations = [p.annotation for p in signature.params if p.annotation is not None]
    variables = dict.fromkeys(a.element for a in annotations if isinstance(a.element, DTypeVariable))
    return {v: draw(st.sampled_from(v.options)) for v in variables}


def _element(a: Annotation, elements: Mapping[DTypeVariable, DType]) -> DType | Vec:
    return elements[a.element] if isinstance(a.element, DTypeVariable) else a.element


def _scalar(draw: st.DrawFn, p: Declared, elements: Mapping[DTypeVariable, DType], wanted: Wanted) -> Any:
    if p.name in wanted.arguments:
        return _given(draw, wanted.arguments[p.name])
    assert p.annotation is not None
    element = _element(p.annotation, elements)
    of = wanted.elements.get(p.name, values(element.scalar))
    if isinstance(element, Vec):
        return tuple(draw(of) for _ in range(element.lanes))
    number = draw(of)
    # what a Python number leaves open is the type of a dtype variable
    return element.numpy.type(number) if isinstance(p.annotation.element, DTypeVariable) else number


def _extents(draw: st.DrawFn, axes: Any, scalars: Mapping[str, Any], wanted: Wanted) -> dict[str, Number]:
    env: dict[str, Number] = {n: v for n, v in scalars.items() if isinstance(v, int | float)}
    for name in sorted({s for shape in axes for e in shape for s in symbols(e)} - set(env)):
        given = wanted.extents.get(name, wanted.extents.get(name.split(".")[0], st.integers(0, 6)))
        env[name] = _given(draw, given)
    return env


def _shape(axes: tuple[Extent, ...], env: Mapping[str, Number]) -> tuple[int, ...]:
    shape = tuple(int(evaluate(e, env)) for e in axes)
    if any(n < 0 for n in shape) or int(np.prod(shape, dtype=object)) > MAX_ELEMENTS:
        reject()
    return shape


def _array(
    draw: st.DrawFn,
    p: Declared,
    elements: Mapping[DTypeVariable, DType],
    shape: tuple[int, ...],
    wanted: Wanted,
) -> Any:
    if p.name in wanted.arguments:
        return _given(draw, wanted.arguments[p.name])
    assert p.annotation is not None
    element = _element(p.annotation, elements)
    if isinstance(element, Vec):
        shape = (*shape, element.lanes)
    layout = layouts() if wanted.layouts else LAYOUTS[0]
    return draw(arrays(element.scalar, shape, elements=wanted.elements.get(p.name), layout=layout))
