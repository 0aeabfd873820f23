"""Interpret mode: a kernel run by CPython itself, one element after the other, with NumPy's meaning.

In: a kernel and the arguments of a call. Out: what the call returns. Arguments are checked, and results made, as on
any device; the kernel's text must pass the checker; then each position runs as Python at the user's own lines, so
breakpoints, `print` and a debugger's views of local names work. The code generator has no part in it.

The types of names where control flow joins are found by `interpret_types`, which runs the same operations without
their numbers, and not taken from the compiler: a fault in the one does not hide in the other.
"""

from __future__ import annotations

import itertools
import struct
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metaljit.grammar import tree

from . import interpret_arrays as arrays
from . import interpret_calls as calls
from . import interpret_operators as operators
from .compiler.lower.kernel import decorator_options, lower_kernel
from .compiler.lower.names import canonical
from .compiler.lower.signature import Declared, Names, PackAxes, declare
from .compiler.lower.specialise import Argument, ArrayType, Shapes, specialise
from .dtypes import BF16, I32, Type, Vec
from .extents import Extent, Lit, Number, evaluate, product
from .interpret_python import Site, Written, write
from .interpret_scope import Scope, bind
from .interpret_types import Frame, Loop, Search, unpack
from .interpret_values import (
    NO_VALUE,
    Index,
    NeedsConstant,
    Pattern,
    Unknown,
    Value,
    Vector,
    View,
    abstract,
    conform,
    convert,
    shape_of,
    signature,
    unknown,
)
from .kernels import Kernel
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
from .runtime.array import Array, asarray
from .runtime.device import RAN, Buffer, Device, Dispatch, Limits, Operand, Pipeline, Words
from .runtime.launch import Launcher
from .runtime.uniforms import CODES
from .source import Diagnostic, KernelAssertion, Span, TypeFault
from .symbols import Dim, FunctionText


class Interpreted(Kernel):
    """A kernel whose calls run in CPython. Everything about a call but the run itself is the kernel's own."""

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Device arrays are read where they lie; if one is passed, the results are put on its device."""
        devices = [v.device for v in (*args, *named.values()) if isinstance(v, Array)]
        storage = tuple(map(_numpy, out)) if isinstance(out, tuple) else _numpy(out)
        result = super().__call__(
            *map(_numpy, args), out=storage, **{name: _numpy(v) for name, v in named.items()}
        )
        if out is not None:
            return out
        if not devices:
            return result
        several = isinstance(result, tuple)
        moved = tuple(asarray(r, devices[0]) for r in (result if several else (result,)))
        return moved if several else moved[0]

    def _launcher(self, key: Any, values: Sequence[Any]) -> Launcher:
        with self._lock:
            if key not in self._launchers:
                arguments = {
                    p.name: self._argument(p, v) for p, v in zip(self.parameters, values, strict=True)
                }
                made = Interpretation(self.definition.tree, self.definition.text, arguments)
                self._launchers[key] = Launcher(made, made.program)
            return self._launchers[key]  # type: ignore[no-any-return]


def interpreted(kernel: Kernel) -> Interpreted:
    """The kernel as CPython runs it."""
    return Interpreted(kernel.definition, "interpret")


def _numpy(value: Any) -> Any:
    return value.numpy() if isinstance(value, Array) else value


# ---- a specialisation ----


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
        self._answers: dict[Any, Any] = {}
        self.program = self._program(function, shapes)

    # ---- what the launcher needs ----

    def _requirements(self, shapes: Shapes) -> Iterator[Requirement]:
        """Every `require` that the kernel's body, run once without numbers, comes by."""
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
            self._written[text.key] = write(scope)
        return self._written[text.key]

    def position(self) -> Value:
        return _position(self.signature.results[0].axes or (), (Unknown(I32),) * len(self.domain))

    def thread(self, name: str) -> Value:
        if name == "group_size":
            return _one_or_index(self.threads)
        if name in ("lane", "simd_index"):
            return Unknown(I32)
        return _one_or_index((Unknown(I32),) * len(self.threads))

    def ask(
        self, question: str, text: FunctionText, site: Site, known: dict[str, Value], loops: Any, *more: Any
    ) -> Any:
        """The answer to a question about types at a place where names hold what they hold."""
        key = (question, id(site), tuple(map(id, loops)), tuple(map(signature, known.values())))
        if key in self._answers:
            return self._answers[key]

        def answer(env: dict[str, Value]) -> Any:
            around = tuple(Loop(types) for types in loops)
            frame = Frame(self.scope(text), env, dict(site.declared), around)
            return getattr(self.search, question)(site.node, frame, *more)

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


def _position(axes: Sequence[Any], at: Sequence[Value]) -> Value:
    """An i32 for a declared rank of 1, else an index."""
    return at[0] if len(axes) == 1 and not isinstance(axes[0], PackAxes) else Index(at)


def _one_or_index(items: Sequence[Value]) -> Value:
    return items[0] if len(items) == 1 else Index(items)


# ---- a run ----


class Run:
    """One call: every position, one after the other. As a `Place` of calls it knows where it stands."""

    real = True

    def __init__(
        self,
        it: Interpretation,
        env: Mapping[str, Number],
        operands: Mapping[str, Any],
        scalars: dict[str, Value],
    ) -> None:
        self.it = it
        self.env = env
        self.extents: dict[str, Value] = {
            n: np.int32(v) for n, v in env.items() if n not in scalars and _is_i32(v)
        }
        self.operands = operands
        self.scalars = scalars
        self.at: tuple[int, ...] = ()
        self._functions: dict[str, types.FunctionType] = {}

    def all(self) -> None:
        domain = [range(int(evaluate(e, self.env))) for e in self.it.domain]
        function, parameters = self.python(self.it.text), self._parameters()
        results = [self.operands[a.name] for a in self.it.program.results]
        elements = [r.element for r in self.it.spec.results]
        for self.at in itertools.product(*domain):
            found = function(*parameters)
            for array, element, value in zip(results, elements, _several(found, len(results)), strict=True):
                made = convert(value, element)
                array[self.at] = made.lanes if isinstance(made, Vector) else made

    def _parameters(self) -> list[Value]:
        found: list[Value] = []
        for p in self.it.signature.params:
            if p.kind == "const":
                found.append(self.it.constant(p.name))
            elif p.kind == "scalar":
                found.append(self.scalars[p.name])
            else:
                type = self.it.spec.arrays[p.name]
                shape = tuple(self._extent(e) for e in type.shape)
                modes = (None,) * len(shape)
                found.append(
                    View(
                        p.name, type.element, self.operands[p.name], shape, modes, writable=p.kind != "array"
                    )
                )
        return found

    def _extent(self, extent: Extent) -> Value:
        value = int(evaluate(extent, self.env))
        return value if isinstance(extent, Lit) else np.int32(value)

    # ---- where calls stand ----

    def position(self) -> Value:
        return _position(self.it.signature.results[0].axes or (), tuple(map(np.int32, self.at)))

    def thread(self, name: str) -> Value:
        rank = len(self.it.threads)
        group, thread = self.at[:rank], self.at[rank:]
        match name:
            case "group_index":
                items: Sequence[Value] = tuple(map(np.int32, group))
            case "thread_index":
                items = tuple(map(np.int32, thread))
            case "global_index":
                items = tuple(
                    np.int32(g * n + t) for g, t, n in zip(group, thread, self.it.threads, strict=True)
                )
            case "group_size":
                items = self.it.threads
            case "grid_size":
                items = tuple(self._extent(e) for e in self.it.groups)
            case _:
                flat = int(np.ravel_multi_index(thread, self.it.threads))
                return np.int32(flat % 32 if name == "lane" else flat // 32)
        return _one_or_index(items)

    def function(self, text: FunctionText, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        bound = bind(self.it.scope(text), args, named)
        return conform(self.python(text)(**bound), self.it.result(text, bound))

    def python(self, text: FunctionText) -> types.FunctionType:
        """A function of the text, with this run's values for its free names."""
        if text.key not in self._functions:
            written = self.it.written(text)
            free = {n: self._filled(v) for n, v in written.free.items()}
            names = (
                {"__builtins__": {}, "__name__": "metaljit.interpreted"}
                | free
                | Helpers(self, text, written).table()
            )
            self._functions[text.key] = types.FunctionType(written.code, names, written.name)
        return self._functions[text.key]

    def _filled(self, value: Value) -> Value:
        if isinstance(value, Dim):
            return self.extents[value.name]
        return type(value)(map(self._filled, value)) if type(value) in (tuple, Index) else value


def _is_i32(value: Number) -> bool:
    return isinstance(value, int) and -(2**31) <= value < 2**31


def _several(found: Value, count: int) -> Sequence[Value]:
    return () if count == 0 else (found,) if count == 1 else found


class Helpers:
    """What the code of one function calls; `table` has them under the names that the code uses."""

    def __init__(self, run: Run, text: FunctionText, written: Written) -> None:
        self.run, self.it, self.text, self.sites = run, run.it, text, written.sites

    def table(self) -> dict[str, Any]:
        return {
            "@no_value": NO_VALUE,
            "@nothing": dict,
            "@binary": operators.binary,
            "@unary": operators.unary,
            "@truth": operators.truth,
            "@compare": operators.compare,
            "@member": operators.member,
            "@item": lambda value, indices: arrays.item(value, indices),
            "@store": arrays.store,
            "@augment": arrays.augment,
            "@attribute": calls.attribute,
            "@iterate": calls.iterate,
            "@unpack": unpack,
            "@convert": convert,
            "@carry": carry,
            "@as": settle,
            "@call": self.call,
            "@joins": self.joins,
            "@carried": self.carried,
            "@choose": self.choose,
            "@logical": self.logical,
            "@reduce": self.reduce,
            "@assert": self.check,
            "@turn": self.turn,
            "@print": show,
            "@breakpoint": breakpoint,
        }

    def call(self, callee: Value, *args: Value, **named: Value) -> Value:
        return calls.call(self.run, callee, args, named)

    def ask(self, question: str, site: int, *where: Any) -> Any:
        return self.it.ask(question, self.text, self.sites[site], *where)

    def joins(self, condition: Value, *where: Any) -> Any:
        return {} if isinstance(condition, bool) else self.ask("joins", *where)

    def carried(self, *where: Any) -> Any:
        return self.ask("carried", *where)

    def choose(
        self, condition: Value, site: int, known: Any, loops: Any, *sides: Callable[[], Value]
    ) -> Value:
        found = operators.truth(condition)
        value = sides[0 if found else 1]()
        return (
            value
            if isinstance(found, bool)
            else conform(value, shape_of(self.ask("eval", site, known, loops)))
        )

    def logical(self, word: str, site: int, known: Any, loops: Any, *sides: Callable[[], Value]) -> Value:
        decisive = word == "or"
        value: Value = None
        for side in sides:
            value = side()
            if bool(operators.truth(value)) is decisive:
                break
        joined = self.ask("eval", site, known, loops)
        if isinstance(joined, bool):
            return joined
        return conform(value, shape_of(joined))

    def reduce(self, callee: Value, site: int, known: Any, loops: Any, values: Any) -> Value:
        name = calls.reduction_name(callee)
        element: Type = self.ask("element", site, known, loops, name)
        return calls.reduce(name, element, values)

    def check(self, site: int, condition: Callable[[], Value], message: str) -> None:
        if not self.it.options.asserts or operators.truth(condition()):
            return
        self.fail(site, f"the assertion{self._at()} failed: {message}", "assertion-failed")

    def turn(self, site: int, turns: int) -> int:
        limit = self.it.options.loop_limit
        if turns >= limit:
            message = f"a `while` loop ran more than {limit} turns"
            self.fail(site, f"the assertion{self._at()} failed: {message}", "assertion-failed")
        return turns + 1

    def _at(self) -> str:
        return f" at position ({', '.join(map(str, self.run.at))})" if self.run.at else ""

    def fail(self, site: int, message: str, slug: str) -> None:
        span: Span = self.sites[site].node.span
        raise KernelAssertion(Diagnostic(slug, f"{self.it.program.name}: {message}", span))


def carry(name: str, value: Value, *loops: Mapping[str, Pattern]) -> Value:
    """The value in the type of the innermost loop that carries the name."""
    for types_ in loops:
        if name in types_:
            return conform(value, types_[name])
    return value


def settle(name: str, value: Value, found: Mapping[str, Pattern]) -> Value:
    return conform(value, found.get(name))


def show(*values: Value, when: Value = True) -> None:
    """`print("…", x, when=i == 3)`."""
    if operators.truth(when):
        print(*values)
