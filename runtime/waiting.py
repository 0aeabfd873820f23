"""Threads that wait for one another: queues for events and futures, the host for all of them.

In: what a thread waits for, as a question that is asked again. Out: it holds; or an error, where that can never be. A wait
is hopeless if every live Python thread waits here and no question holds. A thread that does anything else may still
signal, and how it would have come by the event cannot be known, so as long as there is one, a wait is only long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from metaljit.source import Diagnostic, QueueFault

LOOK_AGAIN = 0.1  # seconds; a thread that could have signalled may end without a word

# Guards the state of all queues, futures and events; notified whenever a wait may have come to its end.
state = threading.Condition()


class _Wait:
    """`queue` is the queue that waits, None for the host. `failure` ends the wait instead of `ready`."""

    __slots__ = ("failure", "queue", "ready", "timed", "what")

    def __init__(self, ready: Callable[[], bool], what: Callable[[], str], timed: bool) -> None:
        self.queue: str | None = getattr(threading.current_thread(), "queue", None)
        self.ready, self.what, self.timed = ready, what, timed
        self.failure: Deadlock | None = None

    @property
    def told(self) -> str:
        return f"{'the host' if self.queue is None else repr(self.queue)} waits for {self.what()}"

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.ready()


_waits: dict[int, _Wait] = {}  # by the thread's identity
_idle: dict[
    int, Callable[[], bool]
] = {}  # threads of queues that have nothing to do, unless they are wanted by now


def until(ready: Callable[[], bool], what: Callable[[], str], timeout: float | None = None) -> None:
    """Waits until `ready()`; whoever calls holds `state`, and `ready` is asked under it.

    TimeoutError after `timeout` seconds. QueueFault where nothing can go on any more: the waits of all queues end with it.
    """
    if ready():
        return
    end = None if timeout is None else time.monotonic() + timeout
    me = threading.get_ident()
    wait = _waits[me] = _Wait(ready, what, timeout is not None)
    try:
        while not wait.is_over:
            left = LOOK_AGAIN if end is None else min(end - time.monotonic(), LOOK_AGAIN)
            if left <= 0:
                raise TimeoutError(f"{wait.told}, and {timeout} s have passed")
            if _is_hopeless(wait):
                _give_up(wait)
            state.wait(left)
    finally:
        del _waits[me]
    if wait.failure is not None:
        raise wait.failure


def rest(wanted: Callable[[], bool], seconds: float) -> bool:
    """Waits, as a queue's thread with nothing to do, until it is wanted; False where it was not. `state` is held."""
    end = time.monotonic() + seconds
    me = threading.get_ident()
    _idle[me] = wanted
    try:
        while not wanted():
            left = end - time.monotonic()
            if left <= 0 or not threading.main_thread().is_alive():
                return False
            state.wait(min(left, LOOK_AGAIN / 2))
    finally:
        del _idle[me]
    return True


def _is_hopeless(asking: _Wait) -> bool:
    if asking.queue is not None and any(wait.queue is None for wait in _waits.values()):
        return False  # the host is to say so
    for thread in threading.enumerate():
        me = thread.ident or 0
        if not thread.is_alive() or (me in _idle and not _idle[me]()):
            continue
        wait = _waits.get(me)
        if wait is None or wait.timed or wait.is_over:
            return False
    return True


class Deadlock(QueueFault):
    """`told` says whether it has been raised in a thread of the user's."""

    told = False


def _give_up(asking: _Wait) -> NoReturn:
    """Ends the waits of all queues, so that what they hold is given back, and that of this thread."""
    told = sorted({wait.told for wait in _waits.values()})
    fault = Deadlock(
        Diagnostic(
            "event-deadlock",
            f"nothing can go on: {'; '.join(told)}",
            help="signal the event in another queue, or from the host before it waits",
        )
    )
    fault.told = asking.queue is None
    for wait in _waits.values():
        if wait.queue is not None:
            wait.failure = fault
    state.notify_all()
    raise fault


def _after_fork() -> None:
    """A forked child has none of its parent's threads, and may have caught the lock held."""
    global state
    _waits.clear()
    _idle.clear()
    state.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
