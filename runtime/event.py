"""Events: numbers that only grow, by which queues and the host wait for one another.

In: `signal(value)` by the host, or by a queue when its earlier work has ended. Out: whoever waits for that value, or a
smaller one, goes on.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import partial

from metaljit.runtime.waiting import state, until
from metaljit.source import Diagnostic, MetaljitError, QueueFault

LARGEST = 2**64 - 1
_numbers = itertools.count(1)


class Event:
    """A 64-bit value that starts at 0 and only grows; `name` is for messages.

    Work before a signal is seen by what waits for it, in whatever queue. Use a new value for each signal, for example the
    number of the frame.
    """

    __slots__ = ("_abandoned", "_reason", "_value", "name")

    def __init__(self, name: str | None = None) -> None:
        self.name = name if name is not None else f"event {next(_numbers)}"
        self._value = 0
        self._abandoned = 0  # signals up to this value do not come, for this reason
        self._reason: BaseException | None = None

    def __repr__(self) -> str:
        return f"<{self.name!r} at {self._value}>"

    @property
    def value(self) -> int:
        """The value now."""
        return self._value

    def signal(self, value: int) -> None:
        """Raises the value now, from the host. QueueFault where it is not above the present one."""
        value = checked(value)
        with state:
            self.refuse_order(value)
            self._value = value
            state.notify_all()

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Waits until the value is at least this; at once if it is already.

        TimeoutError after `timeout` seconds. QueueFault where nothing that could signal it is left, or where the queue that
        was to do so has stopped.
        """
        value = checked(value)
        with state:
            self.until(value, partial(until, timeout=timeout))

    # ---- for queues; `state` is held ----

    def refuse_order(self, value: int) -> None:
        if value <= self._value:
            raise QueueFault(
                Diagnostic(
                    "event-order",
                    f"{self.name!r} is at {self._value}, and was signalled {value}: an event only grows",
                    help="signal a new value each time, or use another event",
                )
            )

    def abandon(self, value: int, reason: BaseException) -> None:
        """The signal that was to come does not come, because the work before it failed."""
        self._abandoned, self._reason = max(self._abandoned, value), reason
        state.notify_all()

    def until(self, value: int, wait: Callable[[Callable[[], bool], Callable[[], str]], None]) -> None:
        wait(
            lambda: self._value >= value or self._abandoned >= value,
            lambda: f"{self.name!r} to reach {value} (it is at {self._value})",
        )
        if self._value < value:
            raise QueueFault(
                Diagnostic(
                    "queue-stopped",
                    f"{self.name!r} does not reach {value}: work before that signal failed with "
                    f"{described(self._reason)}",
                    help="mend that first",
                )
            ) from self._reason


def described(error: BaseException | None) -> str:
    """The first line of an error, for another one that follows from it."""
    text = str(error) if isinstance(error, MetaljitError) else f"{type(error).__name__}: {error}"
    return f"“{text.splitlines()[0]}”"


def checked(value: int) -> int:
    """The value of an event. TypeError, or QueueFault where it does not fit 64 bits."""
    number = operator.index(value)
    if not 0 <= number <= LARGEST:
        raise QueueFault(
            Diagnostic(
                "event-order",
                f"an event has values from 0 to 2**64 - 1, and was given {number}",
                help="count up from 1",
            )
        )
    return number
