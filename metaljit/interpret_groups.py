"""Threads of a group in interpret mode: generators that stop where they wait for each other.

In: the generators of a threadgroup's threads, and where each stands. Out: all of them run to their ends. A thread stops with
a `Request`; when all threads of the group, or of the simdgroup, have stopped at one place, each gets its answer and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import wraps
from types import GeneratorType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from .frozen import frozen
from .interpret_operators import apply, truth
from .interpret_reductions import reduce, sum_type
from .interpret_values import Value, convert, dtype_of, refuse, typed
from .operations import OPERATIONS
from .source import DeviceFault, Diagnostic, InternalError, Span
from .symbols import COLLECTIVES, Builtin

SIMD_WIDTH = 32
MOVES = ("simdgroup_load", "simdgroup_store")  # of tiles: no lane is a step ahead of the others
WAITING = frozenset(("barrier", *COLLECTIVES, *MOVES))


@frozen
class Request:
    """What a thread waits for: the function, where it stands in the text, and the thread's own arguments."""

    name: str
    span: Span
    value: Value = None
    lane: Value = None
    exclusive: bool = False

    @property
    def of_simd(self) -> bool:
        return self.name.startswith("simd_")


Thread: TypeAlias = Generator[Request, Value, None]


def request(
    callee: Value, span: Span, value: Value = None, lane: Value = None, *, exclusive: Value = False
) -> Request:
    if not isinstance(callee, Builtin):
        refuse(f"{callee!r} is nothing to wait for")
    return Request(callee.name, span, value, lane, bool(exclusive))


class Group:
    """One threadgroup while it runs; `stand` is called with a thread's number before the thread goes on."""

    def __init__(self, threads: Sequence[Thread], stand: Callable[[int], None]) -> None:
        self.threads, self.stand = threads, stand
        self.waiting: dict[int, Request] = {}

    def all(self) -> None:
        for k in range(len(self.threads)):
            self.go_on(k, None)
        while self.waiting:
            found = dict(self.answers())
            if not found:
                self.stuck()
            for k in found:
                del self.waiting[k]
            for k, answer in found.items():
                self.go_on(k, answer)

    def go_on(self, k: int, answer: Value) -> None:
        self.stand(k)
        try:
            self.waiting[k] = self.threads[k].send(answer)
        except StopIteration:
            pass

    def answers(self) -> Iterator[tuple[int, Value]]:
        """The threads that can go on, with what they asked for."""
        whole = range(len(self.threads))
        if self.together(whole, of_simd=False):
            yield from zip(whole, answers([self.waiting[k] for k in whole]), strict=True)
            return
        for first in whole[::SIMD_WIDTH]:
            simd = whole[first : first + SIMD_WIDTH]
            if self.together(simd, of_simd=True):
                yield from zip(simd, answers([self.waiting[k] for k in simd]), strict=True)

    def together(self, threads: range, *, of_simd: bool) -> bool:
        found = [self.waiting.get(k) for k in threads]
        first = found[0]
        return first is not None and all(
            r is not None and r.of_simd == of_simd and (r.name, r.span) == (first.name, first.span)
            for r in found
        )

    def stuck(self) -> NoReturn:
        """Some threads wait where others never come."""
        k, r = min(self.waiting.items())
        gone = next(
            n for n in range(len(self.threads)) if self.waiting.get(n) is None or self.waiting[n] != r
        )
        other = self.waiting.get(gone)
        where = "has ended" if other is None else f"waits in line {other.span.line}"
        raise DeviceFault(
            Diagnostic(
                "divergent-barrier",
                f"thread {k} of the group waits in {r.name}() while thread {gone} {where}",
                r.span,
                help="all threads must come here or none: is a value that `uniform(…)` promises not the same for all?",
            )
        )


def answers(requests: Sequence[Request]) -> Sequence[Value]:
    """What threads that stopped together get, one after the other."""
    name = requests[0].name
    if name in ("barrier", "simd_wait"):
        return [None] * len(requests)
    values = [typed(r.value) if name != "simd_ballot" else truth(r.value) for r in requests]
    if name == "simd_ballot":
        return [np.uint32(sum(1 << k for k, v in enumerate(values) if v))] * len(values)
    if name.endswith("prefix_sum"):
        return _running(values, requests[0].exclusive)
    dtype = dtype_of(values[0])
    assert dtype is not None
    kind = name.partition("_")[2]
    if kind in ("sum", "min", "max"):
        return [reduce(kind, dtype, values)] * len(values)
    return [values[_source(kind, k, int(r.lane))] for k, r in enumerate(requests)]


def _running(values: Sequence[Value], exclusive: bool) -> list[Value]:
    dtype = dtype_of(values[0])
    assert dtype is not None
    wide = sum_type(dtype)
    total, found = convert(0, wide), []
    for v in values:
        after = apply(OPERATIONS["add"], (total, convert(v, wide)))
        found.append(total if exclusive else after)
        total = after
    return found


def _source(kind: str, own: int, given: int) -> int:
    """The lane that a lane's value comes from: at the ends of the simdgroup its own."""
    match kind:
        case "shuffle_xor":
            return own ^ (given % SIMD_WIDTH)
        case "shuffle_up" | "shuffle_down":
            steps = min(max(given, 0), SIMD_WIDTH - 1)
            at = own - steps if kind == "shuffle_up" else own + steps
            return at if 0 <= at < SIMD_WIDTH else own
        case _:
            return given % SIMD_WIDTH


# ---- values that are computed later, perhaps after waiting ----


def later(value: Callable[[], Value]) -> Generator[Request, Value, Value]:
    """What a thunk gives; if it waits for other threads, so does its caller."""
    found = value()
    return (yield from found) if isinstance(found, GeneratorType) else found


def at_once(steps: Callable[..., Generator[Request, Value, Value]]) -> Callable[..., Value]:
    """The same for thunks that do not wait."""

    @wraps(steps)
    def run(*args: Any, **named: Any) -> Value:
        try:
            next(steps(*args, **named))
        except StopIteration as e:
            return e.value
        raise InternalError("a thread waits where it cannot")

    return run
