"""A run of a kernel in CPython: every position, one after the other, and the helpers that its code calls.

In: a specialisation, the extents, arrays and numbers of a call. Out: filled arrays, or a `KernelAssertion`.
"""

from __future__ import annotations

import itertools
import traceback
import types
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from . import interpret_arrays as arrays
from . import interpret_calls as calls
from . import interpret_operators as operators
from . import interpret_reductions as reductions
from .compiler.lower.signature import PackAxes
from .dtypes import Type
from .extents import Extent, Lit, Number, evaluate
from .interpret_groups import MOVES, Group, Request, Thread, at_once, later, request
from .interpret_names import unpack
from .interpret_python import Written
from .interpret_scope import bind
from .interpret_values import (
    NO_VALUE,
    Index,
    Pattern,
    Value,
    Vector,
    View,
    conform,
    convert,
    refuse,
    shape_of,
)
from .source import DeviceFault, Diagnostic, KernelAssertion, Span
from .symbols import Dim, FunctionText

if TYPE_CHECKING:
    from .interpret_specialisation import Interpretation


OWN_NAME = "metaljit.interpreted"  # of the module that the user's functions run in
Steps: TypeAlias = Generator[Request, Value, Value]


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
        self._group: tuple[int, ...] | None = None  # whose threadgroup arrays there are
        self._shared: list[View] = []
        self._made: dict[tuple[int, ...], int] = {}  # how many each thread has asked for

    def all(self) -> None:
        try:
            with np.errstate(all="ignore"):
                self._all()
        except arrays.UndefinedRead as e:
            raise self._undefined(e) from None

    def _all(self) -> None:
        domain = [range(int(evaluate(e, self.env))) for e in self.it.domain]
        function, parameters = self.python(self.it.text), self._parameters()
        if self.it.waits(self.it.text):
            self._groups(domain, lambda: function(*parameters))
            return
        results = [self.operands[a.name] for a in self.it.program.results]
        elements = [r.element for r in self.it.spec.results]
        for self.at in itertools.product(*domain):
            found = function(*parameters)
            for array, element, value in zip(results, elements, _several(found, len(results)), strict=True):
                made = convert(value, element)
                array[self.at] = made.lanes if isinstance(made, Vector) else made

    def _groups(self, domain: Sequence[range], start: Callable[[], Thread]) -> None:
        """The groups one after the other; the threads of each in turns."""
        rank = len(self.it.groups)
        threads = list(itertools.product(*domain[rank:]))
        for group in itertools.product(*domain[:rank]):

            def stand(k: int, group: tuple[int, ...] = group) -> None:
                self.at = (*group, *threads[k])

            Group([start() for _ in threads], stand).all()

    def _undefined(self, e: arrays.UndefinedRead) -> DeviceFault:
        """The error, at the line of the user's text that was running."""
        steps = [s for s in traceback.walk_tb(e.__traceback__) if s[0].f_globals.get("__name__") == OWN_NAME]
        span = None
        if steps:
            frame, line = steps[-1]
            source = frame.f_globals["@source"]
            start, end = source.row_bounds(line - source.first_line)
            span = Span(source, end - len(source.text[start:end].lstrip()), end)
        message = f"{e}, at position ({', '.join(map(str, self.at))})"
        help = "write every element that is read, and let a barrier() stand between"
        return DeviceFault(Diagnostic("threadgroup-undefined", message, span, help=help))

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
        return position_of(self.it.signature.results[0].axes or (), tuple(map(np.int32, self.at)))

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
        return one_or_index(items)

    def shared(self, element: Type, extents: Sequence[int]) -> View:
        """The array that the first thread of the group has made here: all make the same ones in the same order."""
        group, thread = self.at[: len(self.it.groups)], self.at[len(self.it.groups) :]
        if group != self._group:
            self._group, self._shared, self._made = group, [], {}
        k = self._made[thread] = self._made.get(thread, -1) + 1
        if k == len(self._shared):
            self._shared.append(arrays.threadgroup_array(element, extents, real=True))
        return self._shared[k]

    def function(self, text: FunctionText, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        if self.it.waits(text):
            refuse(f"{text.name!r} waits for other threads, and is called by another name")
        bound = bind(self.it.scope(text), args, named)
        return conform(self.python(text)(**bound), self.it.result(text, bound))

    def waiting(self, text: FunctionText, args: Sequence[Value], named: Mapping[str, Value]) -> Steps:
        """The same for a function that waits for other threads."""
        bound = bind(self.it.scope(text), args, named)
        found = yield from self.python(text)(**bound)
        return conform(found, self.it.result(text, bound))

    def python(self, text: FunctionText) -> types.FunctionType:
        """A function of the text, with this run's values for its free names."""
        if text.key not in self._functions:
            written = self.it.written(text)
            free = {n: self._filled(v) for n, v in written.free.items()}
            own = {"__builtins__": {}, "__name__": OWN_NAME, "@source": text.tree().span.source}
            names = own | free | Helpers(self, text, written).table()
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
            "@augment": at_once(arrays.augment),
            "@augment~": arrays.augment,
            "@attribute": calls.attribute,
            "@iterate": calls.iterate,
            "@unpack": unpack,
            "@convert": convert,
            "@as": settle,
            "@call": self.call,
            "@joins": self.joins,
            "@carried": self.carried,
            "@choose": at_once(self.choose),
            "@choose~": self.choose,
            "@logical": at_once(self.logical),
            "@logical~": self.logical,
            "@test": at_once(self.test),
            "@test~": self.test,
            "@reduce": self.reduce,
            "@assert": at_once(self.check),
            "@assert~": self.check,
            "@wait": self.wait,
            "@turn": self.turn,
            "@print": show,
            "@breakpoint": breakpoint,
        }

    def call(self, callee: Value, *args: Value, **named: Value) -> Value:
        return calls.call(self.run, callee, args, named)

    def wait(self, callee: Value, site: int, *args: Value, **named: Value) -> Steps:
        """A call that stops the thread until others have come as far."""
        if isinstance(callee, FunctionText):
            return (yield from self.run.waiting(callee, args, named))
        if callee.name in MOVES:
            yield Request("simd_wait", self.sites[site].node.span)
            return self.call(callee, *args, **named)
        return (yield request(callee, self.sites[site].node.span, *args, **named))

    def ask(self, question: str, site: int, *where: Any) -> Any:
        return self.it.ask(question, self.text, self.sites[site], *where)

    def joins(self, condition: Value, *where: Any) -> Any:
        return {} if isinstance(condition, bool) else self.ask("joins", *where)

    def carried(self, *where: Any) -> Any:
        return self.ask("carried", *where)

    def choose(
        self, condition: Value, site: int, known: Any, loops: Any, *sides: Callable[[], Value]
    ) -> Steps:
        found = operators.truth(condition)
        value = yield from later(sides[0 if found else 1])
        return (
            value
            if isinstance(found, bool)
            else conform(value, shape_of(self.ask("eval", site, known, loops)))
        )

    def logical(self, word: str, site: int, known: Any, loops: Any, *sides: Callable[[], Value]) -> Steps:
        decisive = word == "or"
        value: Value = None
        for side in sides:
            value = yield from later(side)
            if bool(operators.truth(value)) is decisive:
                break
        joined = self.ask("eval", site, known, loops)
        if isinstance(joined, bool):
            return joined
        return conform(value, shape_of(joined))

    def test(self, word: str, site: int, known: Any, loops: Any, *sides: Callable[[], Value]) -> Steps:
        """`and` and `or` where only the truth counts."""
        decisive = word == "or"
        found = not decisive
        for side in sides:
            found = bool((yield from later(side)))
            if found is decisive:
                break
        static = self.ask("condition", site, known, loops)
        return static if isinstance(static, bool) else np.bool_(found)

    def reduce(self, callee: Value, site: int, known: Any, loops: Any, values: Any) -> Value:
        name = reductions.reduction_name(callee)
        element: Type = self.ask("element", site, known, loops, name)
        return reductions.reduce(name, element, values)

    def check(self, site: int, condition: Callable[[], Value], message: str) -> Steps:
        if not self.it.options.asserts or operators.truth((yield from later(condition))):
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


def settle(name: str, value: Value, found: Mapping[str, Pattern]) -> Value:
    return conform(value, found.get(name))


def show(*values: Value, when: Value = True) -> None:
    """`print("…", x, when=i == 3)`."""
    if operators.truth(when):
        print(*values)


def position_of(axes: Sequence[Any], at: Sequence[Value]) -> Value:
    """An i32 for a declared rank of 1, else an index."""
    return at[0] if len(axes) == 1 and not isinstance(axes[0], PackAxes) else Index(at)


def one_or_index(items: Sequence[Value]) -> Value:
    return items[0] if len(items) == 1 else Index(items)
