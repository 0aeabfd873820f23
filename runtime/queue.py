"""Queues: work that runs in order, beside the host and beside other queues.

In: callables with their arguments, and waits and signals that stand in the order. Out: a `Future` for each call. A queue has
a thread of its own while there is work; kernels run without Python's lock, so queues overlap. An error stops a queue: what
was submitted before somebody looked at the error does not run, and its signals are not given.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any
from weakref import WeakSet

from metaljit.runtime import device as devices
from metaljit.runtime.emulator import sanitizer
from metaljit.runtime.event import Event, checked, described
from metaljit.runtime.flight import Flight
from metaljit.runtime.waiting import Deadlock, rest, state, until
from metaljit.source import Diagnostic, QueueFault, shown_path

LINGER = 0.2  # seconds for which an idle queue keeps its thread
PACKAGE = __name__.partition(".")[0]
_numbers = itertools.count(1)
_queues: WeakSet[Queue] = WeakSet()


class Failure:
    """An error that waits for somebody to look at it. One that follows from another shows that one too."""

    __slots__ = ("_seen", "cause", "error", "traceback")

    def __init__(self, error: BaseException, cause: Failure | None = None, seen: bool = False) -> None:
        self.error, self.traceback, self.cause, self._seen = error, error.__traceback__, cause, seen

    @property
    def seen(self) -> bool:
        return self._seen

    def look(self) -> BaseException:
        """The error, to be raised."""
        self._seen = True
        if self.cause is not None:
            self.cause.look()
        return self.error.with_traceback(self.traceback)


class Future:
    """The result of submitted work: `result()` waits for it. As an argument of other work it stands for its result."""

    __slots__ = ("_failure", "_line", "_queue", "_status", "_value", "_wanted")

    def __init__(self, queue: Queue, line: tuple[str, int]) -> None:
        self._queue, self._line = queue, line
        self._wanted: list[Callable[[Any], None]] = []  # who takes hold of the result before the host has it
        self._failure: Failure | None = None
        self._value: Any = None
        self._status = "waiting"

    def __repr__(self) -> str:
        return f"<future of {self._queue.name!r}: {self._status}>"

    def done(self) -> bool:
        """Whether the work has ended, with a result or an error."""
        return self._status == "done"

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the work and gives its result, or raises its error. TimeoutError after `timeout` seconds."""
        with state:
            until(self.done, self._shown, timeout)
            if self._failure is not None:
                raise self._failure.look()
        return self._value

    def _shown(self) -> str:
        return f"the work of {self._queue.name!r} that {_place(self._line)} submitted"


class _Item:
    """What stands in a queue. `failed` is told where it does not come to its end."""

    __slots__ = ("era", "failed", "flight", "future", "run")

    def __init__(
        self,
        future: Future,
        era: int,
        run: Callable[[_Item], Any],
        flight: Flight | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.future, self.era, self.run, self.flight, self.failed = future, era, run, flight, failed

    def end(self, value: Any, failure: Failure | None) -> None:
        """`state` is held."""
        future = self.future
        future._value, future._failure = value, failure
        if failure is None:
            for take in future._wanted:
                take(value)
        elif self.failed is not None:
            self.failed(failure.error)
        if self.flight is not None:
            self.flight.land()
        future._wanted.clear()
        future._status = "done"


class _Call:
    """A call whose arguments are held; results of other work come when that has ended."""

    __slots__ = ("args", "awaited", "f", "flight", "names", "refused", "sanitize")

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.f, self.flight, self.names = f, Flight(), tuple(named)
        self.sanitize = sanitizer.chosen.value
        self.refused: BaseException | None = None
        self.args: list[Any] = [*args, *named.values()]
        self.awaited = [a for a in self.args if isinstance(a, Future)]
        try:
            for k, value in enumerate(self.args):
                if not isinstance(value, Future):
                    self._take(k, value)
        except BaseException:
            self.flight.land()
            raise

    def expect(self) -> None:
        """Takes hold of the results of other work, as soon as they are there; `state` is held."""
        for k, value in enumerate(self.args):
            if isinstance(value, Future):
                if not value.done():
                    value._wanted.append(partial(self._receive, k))
                elif value._failure is None:
                    self._receive(k, value._value)

    def _receive(self, k: int, value: Any) -> None:
        try:
            self._take(k, value)
        except BaseException as e:  # of this call, not of the work that gave the value
            self.refused = e

    def _take(self, k: int, value: Any) -> None:
        first = len(self.args) - len(self.names)
        self.args[k] = self.flight.hold(value, stores=k >= first and self.names[k - first] == "out")

    def run(self, queue: Queue, item: _Item) -> Any:
        with state:
            for future in self.awaited:
                queue._until(item, future.done, future._shown)
                if future._failure is not None:
                    raise _Followed(future._failure)
        if self.refused is not None:
            raise self.refused
        sanitizer.chosen.value = self.sanitize
        first = len(self.args) - len(self.names)
        named = dict(zip(self.names, self.args[first:], strict=True))
        return self.flight.returned(self.f(*self.args[:first], **named))


class _Followed(Exception):
    """Work that cannot run because what it needs failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class _Thread(threading.Thread):
    """The thread of a queue; `queue` is its name, for messages and profiles."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(target=queue._serve, name=f"metaljit {queue.name}", daemon=False)
        self.queue = queue.name


class Queue:
    """Work for a device, run in the order in which it is submitted; `name` is for messages and profiles.

    Queues run beside one another and beside the host. What depends on the work of another queue waits for an `Event`, or has
    its `Future` as an argument. Used as a context manager, a queue is finished at the end of the block.
    """

    def __init__(self, device: str | None = None, name: str | None = None) -> None:
        self.device = devices.find(device) if device is not None else devices.current()
        self.name = name if name is not None else f"queue {next(_numbers)}"
        self._items: deque[_Item] = deque()
        self._running: _Item | None = None
        self._submitted = self._ended = 0
        self._stop: tuple[Failure, int] | None = None  # and the era that ends with it
        self._era = 0
        self._thread: _Thread | None = None
        _queues.add(self)

    def __repr__(self) -> str:
        return f"<{self.name!r} of device {self.device.name!r}>"

    def submit(self, f: Callable[..., Any], /, *args: Any, **named: Any) -> Future:
        """Has `f(*args, **named)` run when all earlier work of this queue has ended.

        `f` is a kernel, an op, a jitted function, or anything else that ends in device work; kernels that name no device run
        on the queue's. A `Future` among the arguments stands for its result. NumPy arrays are read-only until the work has
        ended, and those that are parts of others are copied; `out=` storage is written where it lies.
        """
        call = _Call(f, args, named)
        with state:
            call.expect()
            return self._add(partial(call.run, self), call.flight)

    def wait_for(self, event: Event, value: int) -> None:
        """Later work of this queue waits until the event has this value."""
        value = checked(value)

        def wait(item: _Item) -> None:
            with state:
                event.until(value, partial(self._until, item))

        with state:
            self._add(wait)

    def signal(self, event: Event, value: int) -> None:
        """Signals the event when all earlier work of this queue has ended. QueueFault where the event is there already."""
        value = checked(value)
        with state:
            event.refuse_order(value)
            self._add(lambda _: event.signal(value), failed=partial(event.abandon, value))

    def finish(self, timeout: float | None = None) -> None:
        """Waits for all that was submitted, and raises the first error that nobody has looked at.

        TimeoutError after `timeout` seconds.
        """
        with state:
            count = self._submitted
            until(lambda: self._ended >= count, lambda: f"{self.name!r} to finish", timeout)
            if self._stop is not None and not self._stop[0].seen:
                raise self._stop[0].look()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Finishes the queue. After an error in the block, what has not begun is dropped instead."""
        if error is not None:
            with state:
                self._stop = Failure(error, seen=True), self._era
                state.notify_all()
        self.finish()

    def __del__(self) -> None:
        stop = getattr(self, "_stop", None)
        if stop is not None and not stop[0].seen:
            raise stop[0].look()  # told on stderr: nobody has looked, and nobody can any more

    # ---- the order; `state` is held ----

    def _add(
        self,
        run: Callable[[_Item], Any],
        flight: Flight | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> Future:
        if self._stop is not None and self._stop[0].seen:
            self._era = max(self._era, self._stop[1] + 1)
        future = Future(self, _user_line())
        self._items.append(_Item(future, self._era, run, flight, failed))
        self._submitted += 1
        if self._thread is None:
            self._thread = _Thread(self)
            self._thread.start()
        state.notify_all()
        return future

    def _bars(self, item: _Item) -> bool:
        return self._stop is not None and item.era <= self._stop[1]

    def _until(self, item: _Item, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        """A wait of this queue, which ends where the queue is stopped from outside."""
        until(
            lambda: ready() or self._bars(item),
            lambda: f"{what()}, as {_place(item.future._line)} has it",
        )
        self._refuse_barred(item)

    def _refuse_barred(self, item: _Item) -> None:
        if self._stop is None or not self._bars(item):
            return
        failure = self._stop[0]
        fault = QueueFault(
            Diagnostic(
                "queue-stopped",
                f"what {_place(item.future._line)} submitted did not run: {self.name!r} stopped before it at "
                f"{described(failure.error)}",
                help="look at that error first, or submit what does not depend on it to another queue",
            )
        )
        fault.__cause__ = failure.error
        raise _Followed(Failure(fault, failure))

    def _finish(self, item: _Item, value: Any, failure: Failure | None) -> None:
        if failure is not None and not self._bars(item):
            self._stop = failure, self._era
        self._ended += 1
        self._running = None
        item.end(value, failure)
        state.notify_all()

    # ---- the thread ----

    def _serve(self) -> None:
        devices.chosen.value = self.device.name
        while (item := self._next()) is not None:
            value, failure = self._outcome(item)
            with state:
                self._finish(item, value, failure)
            del item, value, failure

    def _next(self) -> _Item | None:
        with state:
            if not self._items and not rest(lambda: bool(self._items), LINGER):
                self._thread = None
                return None
            self._running = item = self._items.popleft()
            item.future._status = "running"
            return item

    def _outcome(self, item: _Item) -> tuple[Any, Failure | None]:
        try:
            with state:
                self._refuse_barred(item)
            return item.run(item), None
        except _Followed as e:
            return None, e.failure
        except BaseException as e:
            e.add_note(f"submitted to {self.name!r} at {_place(item.future._line)}")
            return None, Failure(e, seen=isinstance(e, Deadlock) and e.told)

    def _forget(self) -> None:
        """In a forked child: the thread and its work are the parent's."""
        fault = QueueFault(
            Diagnostic(
                "queue-stopped",
                f"this process was forked from the one in which {self.name!r} had work",
                help="finish queues before forking",
            )
        )
        lost = [self._running] if self._running is not None else []
        for item in (*lost, *self._items):
            self._finish(item, None, Failure(fault, seen=True))
        self._items.clear()
        self._stop, self._thread = None, None


def _user_line() -> tuple[str, int]:
    """File and line outside this package that are running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("<unknown>", 0)


def _place(line: tuple[str, int]) -> str:
    return f"{shown_path(line[0])}:{line[1]}"


def _after_fork() -> None:
    with state:
        for queue in list(_queues):
            queue._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
