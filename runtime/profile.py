"""Profiles: what ran in a block, when, for how long, and how much it moved.

In: the runs of launchers, and the compilations before them. Out: `Record`s, a table, a trace for Perfetto. While a profile
is on, calls go the long way of `launch`, which is where runs are written down; while none is, a call looks at one list.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns

from metaljit.extents import Number
from metaljit.frozen import frozen
from metaljit.program import Program
from metaljit.runtime.device import Device, Dispatch, Operand, Words

active: list[profile] = []


@frozen
class Record:
    """A run of a kernel, or another step (`kind` is "kernel", "trace" or "compile"); times in seconds.

    `queue` is the queue's name, "host" for the main thread, else the thread's. `start` counts from the start of the profile.
    `nbytes` are those of the arrays that a kernel takes and gives, each once: what it has to move at least. `operations`
    are the compiler's estimate.
    """

    name: str
    kind: str
    device: str
    queue: str
    start: float
    duration: float
    nbytes: int
    operations: int

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.nbytes / self.duration if self.duration else 0.0


class profile:
    """Writes down every kernel that runs in the block, of all threads and queues.

    with mj.profile() as p:
        step(u)
    print(p)
    p.save("trace.json")

    Work that is submitted to a queue runs in the block if it is finished there.
    """

    def __init__(self) -> None:
        self._notes: list[Callable[[], Record]] = []
        self._begin = perf_counter_ns()

    def __enter__(self) -> profile:
        if not self._notes:
            self._begin = perf_counter_ns()
        active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        active.remove(self)

    def __str__(self) -> str:
        return self.table()

    @property
    def events(self) -> tuple[Record, ...]:
        """What was written down, in the order of the starts."""
        return tuple(sorted((note() for note in self._notes), key=lambda r: r.start))

    def table(self, limit: bool = False) -> str:
        """The kernels with calls, times and bandwidth, those that took longest first.

        `limit` adds what share that is of the bandwidth of a kernel that only copies, which is measured at the first time.
        """
        from metaljit.runtime.profile_report import table

        return table(self.events, limit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace that https://ui.perfetto.dev and chrome://tracing open, with a track for each queue."""
        from metaljit.runtime.profile_report import trace

        with open(path, "w", encoding="utf-8") as file:
            file.write(trace(self.events))

    def note(self, made: Callable[[int], Record]) -> None:
        begin = self._begin
        self._notes.append(lambda: made(begin))


def watched(
    dispatch: Dispatch, name: str, program: Program, env: Mapping[str, Number], device: Device
) -> Dispatch:
    """The dispatch; while a profile is on, one that is written down under this name."""
    if not active:
        return dispatch

    def run(operands: Sequence[Operand], params: bytes) -> Words:
        begin = perf_counter_ns()
        words = dispatch(operands, params)
        end, queue = perf_counter_ns(), _queue()

        def made(zero: int) -> Record:
            return Record(
                name, "kernel", device.name, queue, (begin - zero) / 1e9, (end - begin) / 1e9,
                program.moved(env), program.operations(env),
            )  # fmt: skip

        for p in active:
            p.note(made)
        return words

    return run


class span:
    """Writes down what a block takes, while a profile is on."""

    __slots__ = ("begin", "device", "kind", "name", "nbytes")

    def __init__(self, kind: str, name: str, device: str = "", nbytes: int = 0) -> None:
        self.kind, self.name, self.device, self.nbytes = kind, name, device, nbytes

    def __enter__(self) -> None:
        self.begin = perf_counter_ns()

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None or not active:
            return
        begin, end, queue = self.begin, perf_counter_ns(), _queue()
        for p in active:
            p.note(
                lambda zero: Record(
                    self.name, self.kind, self.device, queue, (begin - zero) / 1e9, (end - begin) / 1e9, self.nbytes, 0
                )
            )  # fmt: skip


def _queue() -> str:
    thread = threading.current_thread()
    name: str | None = getattr(thread, "queue", None)
    if name is not None:
        return name
    return "host" if thread is threading.main_thread() else thread.name
