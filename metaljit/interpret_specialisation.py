"""One specialisation of a kernel in interpret mode: its types, its Python, and what a call must check.

In: a kernel's tree and the types of a call. Out: an `Interpretation`, which is a device and its one pipeline to the
launcher, and answers questions about types while it runs. The runs themselves are `interpret_run`'s.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metaljit.grammar import tree

from .arguments import Argument
from .compiler.lower.kernel import decorator_options, lower_kernel
from .compiler.lower.names import canonical
from .compiler.lower.signature import Declared, Names, declare
from .compiler.lower.specialise import ArrayType, Shapes, specialise
from .dtypes import BF16, I32, Type, Vec
from .extents import Extent, Lit, Number, evaluate, op, product
from .interpret_arrays import threadgroup_array
from .interpret_groups import WAITING
from .interpret_python import Site, Written, write
from .interpret_run import Run, one_or_index, position_of
from .interpret_scope import Scope, callees
from .interpret_types import Frame, Loop, Search, Types
from .interpret_values import (
    NeedsConstant,
    Pattern,
    Unknown,
    Value,
    Vector,
    View,
    abstract,
    signature,
    unknown,
)
from .program import (
    ArrayParam,
    AssertSite,
    Launch,
    LoopNest,
    Place,
    Program,
    Requirement,
    ScalarParam,
    Uniform,
)
from .runtime.arguments import from_bf16
from .runtime.device import RAN, Buffer, Device, Dispatch, Limits, Operand, Pipeline, Words
from .runtime.uniforms import CODES
from .source import TypeFault
from .symbols import Builtin, Dim, FunctionText


class _Extents(dict[str, Value]):
    """Extents that have no value yet."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self.make = make

    def __missing__(self, name: str) -> Value:
        return self.make(name)


class Interpretation(Device, Pipeline):
    """One specialisation of a kernel. To the launcher it is a device, and the one pipeline of that device."""

    name = "interpret"
    limits = Limits()
    in_place = True
    real = False

    def __init__(
        self, function: tree.Function, text: FunctionText, arguments: Mapping[str, Argument]
    ) -> None:
        check(function, text, arguments)
        names = Names(text.resolve)
        self.text = text
        self.signature = declare(function, text.resolve)
        self.spec = specialise(self.signature, arguments, names)
        self.options, grid = decorator_options(function, names)
        shapes = Shapes(names, self.spec.constants, self.spec.packs, set(self.spec.scalars))
        self.groups, self.threads = _grid(shapes, grid) if grid else ((), ())
        self.domain = (*self.groups, *map(Lit, self.threads)) if grid else self.spec.results[0].shape
        self.search = Search(self)
        self._scopes: dict[str, Scope] = {}
        self._written: dict[str, Written] = {}
        self._waits: dict[str, bool] = {}
        self._answers: dict[Any, Any] = {}
        self._types: dict[Any, Types] = {}
        with np.errstate(all="ignore"):
            self.program = self._program(function, shapes)

    # ---- what the launcher needs ----

    def _requirements(self, shapes: Shapes) -> Iterator[Requirement]:
        """Equal extents of the results, and every `require` that the body comes by, run once without numbers."""
        for declared, other in zip(self.signature.results[1:], self.spec.results[1:], strict=True):
            for a, b in zip(self.domain, other.shape, strict=True):
                if a != b:
                    message = "all results have the same extents"
                    yield Requirement(op("==", a, b), message, Place.of(declared.span))
        search = Search(self)
        names = {p.name: self._parameter(p) for p in self.signature.params}
        search.block(self.text.tree().body, Frame(self.scope(self.text), names, {}))
        for node in search.requires:
            condition, *rest = (a for a in node.args if not isinstance(a, tree.Star))
            message = (
                search.eval(rest[0], Frame(self.scope(self.text), names, {})) if rest else condition.span.text
            )
            yield Requirement(shapes.extent(condition), str(message), Place.of(node.span))

    def _parameter(self, p: Declared) -> Value:
        """A parameter of which only the type is known."""
        if p.kind == "const":
            return self.constant(p.name)
        if p.kind == "scalar":
            return unknown(self.spec.scalars[p.name])
        type = self.spec.arrays[p.name]
        shape = tuple(e.value if isinstance(e, Lit) else Unknown(I32) for e in type.shape)
        return View(p.name, type.element, None, shape, (None,) * len(shape), writable=p.kind != "array")

    def constant(self, name: str) -> Value:
        return self.scope(self.text).value(canonical(self.spec.constants[name]), name)

    def _program(self, function: tree.Function, shapes: Shapes) -> Program:
        params: list[ArrayParam | ScalarParam] = []
        for p in self.signature.params:
            if p.kind == "scalar":
                type = self.spec.scalars[p.name]
                params.append(ScalarParam(p.name, type.scalar, type.lanes, Place.of(p.span, "declared here")))
            elif p.kind != "const":
                made = _array(p.name, self.spec.arrays[p.name], "in" if p.kind == "array" else p.kind)
                span = p.annotation.span if p.annotation is not None else p.span
                params.append(replace(made, zeroed=p.kind == "out", place=Place.of(span, "declared here")))
        count = len(self.spec.results)
        results = tuple(
            _array("out" if count == 1 else f"out{k}", r, "out") for k, r in enumerate(self.spec.results)
        )
        scalars = [p for p in params if isinstance(p, ScalarParam)]
        place = Place.of(function.name_span)
        return Program(
            name=function.name,
            place=place,
            msl="",
            params=tuple(params),
            results=results,
            buffers=tuple(p.name for p in (*params, *results) if isinstance(p, ArrayParam)),
            uniforms=tuple(
                Uniform(f"{p.name}.{k}", p.dtype, None, p.name, k) for p in scalars for k in range(p.lanes)
            ),
            launches=(Launch(self.name, product(self.domain)),),
            cpu=LoopNest("", "", Lit(0), Lit(0)),
            requirements=tuple(self._requirements(shapes)),
            # A run can fail half way, so that results never go straight into an argument's memory.
            asserts=(AssertSite("", place, self.domain),),
        )

    def pipeline(self, program: Program) -> Pipeline:
        return self

    def empty(self, nbytes: int) -> Buffer:
        return Buffer(None, np.empty(nbytes, np.uint8))

    def describe(self) -> str:
        return "CPython, one element after the other"

    def bind(self, env: Mapping[str, Number]) -> Dispatch:
        def dispatch(operands: Sequence[Operand], params: bytes) -> Words:
            Run(
                self, env, dict(zip(self.program.buffers, operands, strict=True)), self._scalars(params)
            ).all()
            return [RAN, 0, 0, 0]

        return dispatch

    def _scalars(self, params: bytes) -> dict[str, Value]:
        """The scalar parameters, as the launcher has packed them."""
        uniforms = self.program.uniforms
        layout = "".join(CODES[u.dtype.name] for u in uniforms)
        found: dict[str, list[Value]] = {}
        for u, raw in zip(uniforms, struct.unpack_from(layout, params), strict=True):
            number = from_bf16(raw) if u.dtype == BF16 else raw
            found.setdefault(u.scalar, []).append(u.dtype.numpy.type(number))
        return {
            name: Vector(type.scalar, tuple(found[name])) if isinstance(type, Vec) else found[name][0]
            for name, type in self.spec.scalars.items()
        }

    # ---- functions, and questions about types ----

    def scope(self, text: FunctionText) -> Scope:
        """A function where its types are found: extents are numbers that nobody knows."""
        if text.key not in self._scopes:
            extents = _Extents(lambda name: Unknown(I32))
            self._scopes[text.key] = Scope(text.tree(), Names(text.resolve), self.spec, extents)
        return self._scopes[text.key]

    def written(self, text: FunctionText) -> Written:
        """A function as Python runs it; its extents are filled in at each run."""
        if text.key not in self._written:
            scope = Scope(text.tree(), Names(text.resolve), self.spec, _Extents(Dim))
            self._written[text.key] = write(scope, self.waits)
        return self._written[text.key]

    def waits(self, callee: Value) -> bool:
        """Whether a call stops its thread until others have come as far: a barrier, or a function with one in it."""
        if isinstance(callee, Builtin):
            return callee.name in WAITING
        if not isinstance(callee, FunctionText):
            return False
        if callee.key not in self._waits:
            self._waits[callee.key] = False  # the checker refuses functions that call themselves
            scope = self.scope(callee)
            self._waits[callee.key] = any(self.waits(found) for found in callees(scope))
        return self._waits[callee.key]

    def shared(self, element: Type, extents: Sequence[int]) -> View:
        return threadgroup_array(element, extents, real=False)

    def position(self) -> Value:
        return position_of(self.signature.results[0].axes or (), (Unknown(I32),) * len(self.domain))

    def thread(self, name: str) -> Value:
        if name == "group_size":
            return one_or_index(self.threads)
        if name in ("lane", "simd_index"):
            return Unknown(I32)
        return one_or_index((Unknown(I32),) * len(self.threads))

    def ask(
        self, question: str, text: FunctionText, site: Site, known: dict[str, Value], loops: Any, *more: Any
    ) -> Any:
        """The answer to a question about types at a place where names hold what they hold."""
        key = (
            question,
            id(site),
            tuple(map(id, loops)),
            tuple(map(signature, known.values())),
        )
        if key in self._answers:
            return self._answers[key]

        def answer(env: dict[str, Value]) -> Any:
            around = tuple(Loop(types) for types in loops)
            frame = Frame(self.scope(text), env, dict(site.declared), around)
            found = getattr(self.search, question)(site.node, frame, *more)
            # equal types of a loop's names are one object, which lives as long as the keys that hold its identity
            return self._types.setdefault(tuple(found.items()), found) if question == "carried" else found

        try:
            self._answers[key] = found = answer({n: abstract(v) for n, v in known.items()})
        except NeedsConstant:  # a turn of a loop whose numbers matter: here they are known
            found = answer({n: v if isinstance(v, np.integer) else abstract(v) for n, v in known.items()})
        return found

    def result(self, text: FunctionText, bound: dict[str, Value]) -> Pattern:
        """What the results of a device function are converted to."""
        key = (text.key, tuple(map(signature, bound.values())))
        if key not in self._answers:
            env = {n: abstract(v) for n, v in bound.items()}
            try:
                _, self._answers[key] = self.search.result(self.scope(text), env)
            except NeedsConstant:
                env = {n: v if isinstance(v, np.integer) else abstract(v) for n, v in bound.items()}
                return self.search.result(self.scope(text), env)[1]
        return self._answers[key]


def check(function: tree.Function, text: FunctionText, arguments: Mapping[str, Argument]) -> None:
    """The compiler's own check; what only interpret mode takes is let through."""
    try:
        lower_kernel(function, text.resolve, arguments)
    except TypeFault as e:
        rest = [
            d for d in e.diagnostics if d.slug != "no-print" and not (d.span and d.span.text == "breakpoint")
        ]
        if rest:
            raise TypeFault(*rest) from None


def _array(name: str, type: ArrayType, role: Any) -> ArrayParam:
    return ArrayParam(name, type.element.scalar, type.element.lanes, type.shape, role)


def _grid(shapes: Shapes, grid: Mapping[str, tree.Expr]) -> tuple[tuple[Extent, ...], tuple[int, ...]]:
    """Groups and threads of a group, of equal rank, last fastest."""

    def several(name: str, default: Extent) -> tuple[Extent, ...]:
        value = shapes.value(grid[name]) if name in grid else default
        return value if isinstance(value, tuple) else (value,)

    groups = several("grid", Lit(1))
    threads = tuple(int(evaluate(e, {})) for e in several("threadgroup", Lit(256)))
    rank = max(len(groups), len(threads))
    return (Lit(1),) * (rank - len(groups)) + groups, (1,) * (rank - len(threads)) + threads
