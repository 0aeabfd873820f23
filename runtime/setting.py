"""Settings of the process, of which a thread can have its own.

What the main thread sets holds for all threads that set nothing themselves; what any other thread sets is for itself alone.
Each setting is a class of its own, whose attribute `value` is the process's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

_UNSET: Any = object()


class Setting(threading.local):
    value: Any = None

    def choose(self, value: Any) -> Callable[[], None]:
        """Sets it; gives what brings back the value before."""
        is_own = "value" in vars(self) or threading.current_thread() is not threading.main_thread()
        place: Any = self if is_own else type(self)
        before = vars(place).get("value", _UNSET)
        place.value = value

        def bring_back() -> None:
            if before is _UNSET:
                del place.value
            else:
                place.value = before

        return bring_back
