"""Which values are the same for all threads, and whether all threads reach a barrier.

In: a cooperative kernel. Out: the `Level` of each variable; a diagnostic for each barrier, and each function that threads
compute together, that some threads may not reach.

The statements are walked in order, loops until nothing changes; a variable's level only grows. What is read from a
threadgroup array at a uniform index is uniform if no thread has written to the array since the last barrier, and if none
does before the next: until then the value is `fragile`, and a write to the array takes its uniformity away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from enum import IntEnum
from math import prod
from typing import TypeAlias, assert_never, get_args

from ..dtypes import I32
from ..frozen import mutable
from ..source import Diagnostic, Span
from . import ir
from .usage import Usage, usage, walk, walk_expressions

SIMD_WIDTH = 32
Together: TypeAlias = ir.Barrier | ir.Collective | ir.TileFill | ir.TileMove | ir.TileMultiply
_SAME_IN_SIMD = ("simd_sum", "simd_min", "simd_max", "simd_ballot", "simd_broadcast")
_SAME_IN_GROUP = ("group_sum", "group_min", "group_max")


class Level(IntEnum):
    """Among which threads a value is the same: those of a group, of a simdgroup, or none."""

    GROUP = 0
    SIMD = 1
    THREAD = 2


def is_cooperative(body: Sequence[ir.Stmt], shared: Sequence[ir.Buffer]) -> bool:
    """Whether the threads of a group wait for each other or share memory."""
    return bool(shared) or any(isinstance(s, get_args(Together)) for s in walk(body))


def check(kernel: ir.Kernel) -> list[Diagnostic]:
    """A diagnostic for each barrier or collective in divergent control flow."""
    return _analysed(kernel).diagnostics


def levels(kernel: ir.Kernel) -> dict[int, Level]:
    """The level of each variable and local array, by its number."""
    return _analysed(kernel).levels


def promises(kernel: ir.Kernel) -> frozenset[int]:
    """The variables that hold a `uniform(…)` which all threads of a group come to, and so can be compared among them."""
    return frozenset(_analysed(kernel).promises)


def flat_thread(kernel: ir.Kernel) -> ir.Expr:
    """The thread's index in its group, last axis fastest."""
    variables = kernel.positions[len(kernel.threads) :]
    flat: ir.Expr = ir.Read(variables[0])
    for var, size in zip(variables[1:], kernel.threads[1:], strict=True):
        flat = ir.Apply("multiply", (flat, ir.Const(size, I32)), I32, True)
        flat = ir.Apply("add", (flat, ir.Read(var)), I32, True)
    return flat


def _analysed(kernel: ir.Kernel) -> _Walk:
    found = _Walk(kernel)
    while True:  # levels that a later statement raises count for earlier ones too
        before = dict(found.levels)
        found.start()
        found.block(kernel.body)
        if found.levels == before:
            return found


@mutable
class Condition:
    """A condition that control flow around a place depends on; `fragile` are the arrays that it was read from."""

    level: Level
    span: Span
    fragile: frozenset[str] = frozenset()
    unsettled: frozenset[str] = frozenset()  # arrays without a barrier between a write to them and the read
    left: bool = False  # threads have left by a `return`, `break` or `continue` under it


@mutable
class State:
    """What the order of statements decides: arrays written since the last barrier, values that are fragile."""

    written: frozenset[str] = frozenset()
    fragile: dict[int, frozenset[str]] = field(default_factory=dict)

    def known(self) -> tuple[object, ...]:
        return self.written, self.fragile

    def copy(self) -> State:
        return State(self.written, dict(self.fragile))

    def join(self, other: State) -> None:
        self.written |= other.written
        for number, arrays in other.fragile.items():
            self.fragile[number] = self.fragile.get(number, frozenset()) | arrays


def _way_out(cause: Condition) -> str:
    if cause.unsettled and not cause.left:
        arrays = " and ".join(f"'{name}'" for name in sorted(cause.unsettled))
        return f"put a `barrier()` between each write to {arrays} and the read that decides here"
    return (
        "move it out of what this condition decides; if the condition is the same for all threads, "
        "say so: `uniform(…)`"
    )


class _Walk:
    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel
        rank = len(kernel.threads)
        self.simd = Level.GROUP if prod(kernel.threads) == SIMD_WIDTH else Level.SIMD
        self.levels: dict[int, Level] = {v.number: Level.GROUP for v in kernel.positions[:rank]}
        for k, var in enumerate(kernel.positions[rank:]):
            stride = prod(kernel.threads[k + 1 :])
            same = self.simd if stride % SIMD_WIDTH == 0 else Level.THREAD
            self.levels[var.number] = Level.GROUP if kernel.threads[k] == 1 else same
        self.flat = flat_thread(kernel)
        self.uses: dict[str, Usage] = {}
        for k, f in enumerate(kernel.functions):
            self.uses[f"{f.name}#{k}"] = usage(f.body, self.uses)
        self.start()

    def start(self) -> None:
        self.state = State()
        self.conditions: list[Condition] = []
        self.returned: list[Condition] = []
        self.loops: list[
            tuple[list[Condition], list[Condition]]
        ] = []  # who broke off, who went on to the next turn
        self.diagnostics: list[Diagnostic] = []
        self.promises: set[int] = set()
        self.read_early: dict[int, frozenset[str]] = {}

    # ---- control flow ----

    def around(self) -> Iterator[Condition]:
        yield from self.conditions
        yield from self.returned
        for broken, continued in self.loops:
            yield from broken
            yield from continued

    def control(self) -> Level:
        return max((c.level for c in self.around()), default=Level.GROUP)

    def leave(self, exits: list[Condition]) -> None:
        """The threads for which the conditions around hold are gone."""
        for c in list(self.around()):
            known = any(e.level == c.level and e.span == c.span for e in exits)
            if c.level > Level.GROUP and not known:
                exits.append(Condition(c.level, c.span, left=True))

    @contextmanager
    def under(self, condition: ir.Expr, span: Span) -> Iterator[None]:
        found = Condition(self.level(condition), span, self.fragility(condition), self.unsettled(condition))
        self.conditions.append(found)
        yield
        self.conditions.pop()

    def same_in_simd(self, span: Span, *values: ir.Expr) -> None:
        if any(self.level(v) > Level.SIMD for v in values):
            self.report(
                Diagnostic(
                    "divergent-tile",
                    "what a tile is filled with, and the place of its block, are the same for all lanes of a simdgroup",
                    span,
                    help="compute it from simd_index() or group_index(), or say so: `uniform(…)`",
                )
            )

    def report(self, diagnostic: Diagnostic) -> None:
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def reached(self, s: Together) -> None:
        of_group = isinstance(s, ir.Barrier) or (isinstance(s, ir.Collective) and s.of_group)
        allowed = Level.GROUP if of_group else Level.SIMD
        cause = next((c for c in self.around() if c.level > allowed), None)
        if cause is None:
            return
        whom = "lanes of a simdgroup" if allowed is Level.SIMD else "threads of a group"
        what = "barrier()" if isinstance(s, ir.Barrier) else s.span.text.partition("(")[0]
        how = "some threads have left under this condition" if cause.left else "not the same for all of them"
        diagnostic = Diagnostic(
            "divergent-barrier",
            f"{what} must be reached by all {whom} or none, and here some may pass it by",
            s.span,
            second=(cause.span, how),
            help=_way_out(cause),
        )
        self.report(diagnostic)

    # ---- levels ----

    def raise_to(self, number: int, level: Level) -> None:
        self.levels[number] = max(level, self.levels.get(number, Level.GROUP))

    def bind(self, number: int, *values: ir.Expr) -> None:
        """A variable or local array takes a value here."""
        self.raise_to(number, max([self.control(), *map(self.level, values)]))
        self.read_early[number] = frozenset[str]().union(*map(self.unsettled, values))
        fragile = frozenset[str]().union(*map(self.fragility, values))
        self.state.fragile[number] = self.state.fragile.get(number, frozenset()) | fragile

    def level(self, e: ir.Expr) -> Level:
        match e:
            case ir.Same():
                return Level.GROUP
            case ir.Read(var):
                return self.levels.get(var.number, Level.GROUP)
            case ir.LocalLoad(local, offset):
                return max(self.levels.get(local.number, Level.GROUP), self.level(offset))
            case ir.Load(buffer, offset, _):
                if buffer.writable and (buffer.size is None or buffer.name in self.state.written):
                    return Level.THREAD
                return self.level(offset)
            case ir.Apply("floor_divide", (flat, ir.Const(width)), _, _) if flat == self.flat:
                return self.simd if int(width) % SIMD_WIDTH == 0 else Level.THREAD
            case ir.Call(name, args, _):
                return self.called(name, args)
        return max(map(self.level, ir.children(e)), default=Level.GROUP)

    def called(self, name: str, args: Sequence[ir.Expr]) -> Level:
        """A function's result is as uniform as its arguments, unless it reads what threads may write."""
        used = self.uses[name]
        if used.passed_locals or any(b.writable for b in used.buffers.values()):
            return Level.THREAD
        return max(map(self.level, args), default=Level.GROUP)

    def fragility(self, e: ir.Expr) -> frozenset[str]:
        match e:
            case ir.Read(var):
                return self.state.fragile.get(var.number, frozenset())
            case ir.LocalLoad(local, offset):
                return self.state.fragile.get(local.number, frozenset()) | self.fragility(offset)
            case ir.Same():
                return frozenset()
        found = frozenset[str]().union(*map(self.fragility, ir.children(e)))
        return found | {e.buffer.name} if isinstance(e, ir.Load) and e.buffer.size is not None else found

    def unsettled(self, e: ir.Expr) -> frozenset[str]:
        """The threadgroup arrays that it was read from without a barrier since they were written."""
        found = frozenset[str]()
        for part in walk_expressions(e):
            match part:
                case ir.Read(var):
                    found |= self.read_early.get(var.number, frozenset())
                case ir.Load(buffer, _, _) if buffer.size is not None and buffer.name in self.state.written:
                    found |= {buffer.name}
        return found

    def write(self, *arrays: str) -> None:
        self.state.written |= frozenset(arrays)
        for number, fragile in self.state.fragile.items():
            if not fragile.isdisjoint(arrays):
                self.raise_to(number, Level.THREAD)
                self.read_early[number] = self.read_early.get(number, frozenset()) | fragile.intersection(
                    arrays
                )
        for c in self.conditions:
            if not c.fragile.isdisjoint(arrays):
                c.level = Level.THREAD
                c.unsettled |= c.fragile.intersection(arrays)

    def barrier(self) -> None:
        self.state = State()
        for c in self.conditions:
            c.fragile = frozenset()

    # ---- statements ----

    def block(self, body: Sequence[ir.Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: ir.Stmt) -> None:
        match s:
            case ir.Let(var, value, _) | ir.Assign(var, value, _):
                self.bind(var.number, value)
                if isinstance(value, ir.Same) and self.control() is Level.GROUP:
                    known = isinstance(value.value, ir.Read) and value.value.var.number in self.promises
                    self.promises |= set() if known else {var.number}
                else:
                    self.promises.discard(var.number)
            case ir.Declare(var, value, _):
                self.raise_to(var.number, Level.GROUP)
                if value is not None:
                    self.bind(var.number, value)
            case ir.Store(buffer, _, _, _, _):
                self.write(buffer.name)
            case ir.LocalArray(local, values, _):
                self.bind(local.number, *values)
            case ir.LocalStore(local, offset, value, guard, _):
                self.bind(local.number, offset, value, *(() if guard is None else (guard,)))
            case ir.Atomic(_, var, buffer, _, _, _, _):
                self.write(buffer.name)
                self.raise_to(var.number, Level.THREAD)
            case ir.CallInto(name, args, results, _):
                found = max(self.control(), self.called(name, args))
                self.write(*(b.name for b in self.uses[name].buffers.values() if b.writable))
                for local in self.uses[name].passed_locals:
                    self.raise_to(local.number, Level.THREAD)
                for r in results:
                    self.raise_to(r.number, found)
            case ir.Barrier():
                self.reached(s)
                self.barrier()
            case ir.Collective(op, var, _, by, _):
                self.reached(s)
                from_lane = Level.GROUP if by is None else self.level(by)
                own = (
                    Level.GROUP
                    if op in _SAME_IN_GROUP
                    else self.simd
                    if op in _SAME_IN_SIMD
                    else Level.THREAD
                )
                self.raise_to(var.number, max(own, from_lane, self.control()))
            case ir.TileFill(_, value, _, span):
                self.reached(s)
                self.same_in_simd(span, value)
            case ir.TileMove(op, _, buffer, offset, stride, guard, span):
                self.reached(s)
                self.same_in_simd(span, offset, stride, *(() if guard is None else (guard,)))
                if op == "store":
                    self.write(buffer.name)
            case ir.TileMultiply():
                self.reached(s)
            case ir.If(condition, then, orelse, span):
                self.branch(condition, then, orelse, span)
            case ir.For(var, start, stop, _, body, span):
                self.bind(var.number, start, stop)
                bounds = ir.Vector((start, stop), start.type)
                self.loop((), bounds, body, span)
            case ir.Loop(before, condition, body, span, turns, _, _):
                self.raise_to(turns.number, self.control())
                self.loop(before, condition, body, span)
            case ir.Once(body, _):
                self.loops.append(([], []))
                self.block(body)
                self.loops.pop()
            case ir.Break():
                self.leave(self.loops[-1][0])
            case ir.Continue():
                self.leave(self.loops[-1][1])
            case ir.Return():
                self.leave(self.returned)
            case ir.Check():
                pass
            case _:
                assert_never(s)

    def branch(
        self, condition: ir.Expr, then: Sequence[ir.Stmt], orelse: Sequence[ir.Stmt], span: Span
    ) -> None:
        before = self.state.copy()
        with self.under(condition, span):
            self.block(then)
        after, self.state = self.state, before
        with self.under(condition, span):
            self.block(orelse)
        self.state.join(after)

    def loop(
        self, before: Sequence[ir.Stmt], condition: ir.Expr, body: Sequence[ir.Stmt], span: Span
    ) -> None:
        """Turns until nothing changes; what a turn leaves behind, and who left it, is there at the next."""
        broken: list[Condition] = []
        while True:
            levels, start, left = dict(self.levels), self.state.copy(), len(broken)
            self.loops.append((broken, []))
            self.block(before)
            with self.under(condition, span):
                self.block(body)
            self.loops.pop()
            self.state.join(start)
            if self.levels == levels and self.state.known() == start.known() and len(broken) == left:
                return
