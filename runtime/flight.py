"""Host arrays that work in flight reads: the host cannot change them unnoticed.

In: the arguments of a piece of work. Out: what is passed in their place, until `land`. An array that owns its memory is
made read-only meanwhile, so that a write raises NumPy's own error, and the work is given a view. Of memory that others can
write behind our back, through the array that it is a part of, the work gets a copy. Where results go, it is never a copy.
"""

from __future__ import annotations

import dataclasses
import operator
import os
import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaljit.runtime.array import Array

ALONE = 3  # references to an array that is the base of one other: that one's, a local name, an argument

_lock = threading.Lock()
_pins: dict[int, _Pin] = {}  # by the identity of the array, which the pin keeps alive


class _Pin:
    """An array that is read-only for as long as `flights` hold it; `view` is as writeable as it was before."""

    __slots__ = ("array", "flights", "view")

    def __init__(self, array: NDArray[Any]) -> None:
        self.array, self.view, self.flights = array, array.view(), 0


class Flight:
    """What one piece of work holds."""

    __slots__ = ("_landed", "_lent", "_pinned")

    def __init__(self) -> None:
        self._landed = False
        self._pinned: list[NDArray[Any]] = []
        self._lent: dict[int, tuple[Any, Any]] = {}  # by the view: it, and whose view it is

    def hold(self, value: Any, stores: bool = False) -> Any:
        """What is passed for a value: an array's view, also within containers, which are copied then.

        `stores` says that results go there.
        """
        match value:
            case np.ndarray():
                return self._array(value, stores)
            case Array():
                return self._on_device(value, stores)
            case tuple() | list() if type(value) in (tuple, list) or hasattr(value, "_fields"):
                items = [self.hold(v, stores) for v in value]
                return value if all(map(operator.is_, items, value)) else _sequence(type(value), items)
            case dict() if type(value) is dict:
                items = [self.hold(v, stores) for v in value.values()]
                changed = not all(map(operator.is_, items, value.values()))
                return dict(zip(value, items, strict=True)) if changed else value
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                names = [f.name for f in dataclasses.fields(value) if f.init]
                before = [getattr(value, name) for name in names]
                items = [self.hold(v, stores) for v in before]
                changed = not all(map(operator.is_, items, before))
                return (
                    dataclasses.replace(value, **dict(zip(names, items, strict=True))) if changed else value
                )
            case _:
                return value

    def _array(self, array: NDArray[Any], stores: bool) -> NDArray[Any]:
        base = array.base
        alone = base is None or (isinstance(base, np.ndarray) and sys.getrefcount(base) <= ALONE)
        if not stores and not alone and id(array) not in _pins:
            return _copied(array)
        if stores and isinstance(base, np.ndarray):
            self._pin(base)
        lent = self._pin(array)
        self._lent[id(lent)] = lent, array
        return lent

    def _on_device(self, array: Array, stores: bool) -> Array:
        """An `Array` on memory of the host is held as that; of another one only NumPy's view can be held."""
        if not array.device.in_place:
            self._pin(array.numpy())
            return array
        lent = Array(array.device, self._array(array.numpy(), stores), None)
        self._lent[id(lent)] = lent, array
        return lent

    def _pin(self, array: NDArray[Any]) -> NDArray[Any]:
        with _lock:
            if self._landed:
                return array
            pin = _pins.get(id(array)) or _Pin(array)
            _pins[id(array)] = pin
            pin.flights += 1
            self._pinned.append(array)
            array.flags.writeable = False
            return pin.view.view()

    def returned(self, value: Any) -> Any:
        """The work's result, with the caller's own array where it is one that was lent."""
        if type(value) is tuple:
            return tuple(map(self.returned, value))
        found = self._lent.get(id(value))
        return value if found is None else found[1]

    def land(self) -> None:
        """Gives everything back: what no other flight holds is as writeable as it was."""
        self._lent.clear()
        with _lock:
            self._landed = True
            for array in self._pinned:
                _pins[id(array)].flights -= 1
            self._pinned.clear()
            _restore()


def _sequence(kind: type[Any], items: list[Any]) -> Any:
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _restore() -> None:
    # A view can be made writeable only where its base is; one that lands before its base waits for it.
    landed = [(key, pin) for key, pin in _pins.items() if not pin.flights]
    for key, pin in sorted(landed, key=lambda found: found[1].array.base is not None):
        try:
            pin.array.flags.writeable = pin.view.flags.writeable
        except ValueError:
            continue
        del _pins[key]


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that takes no more memory than the array, where an extent repeats the same elements."""
    once = array[(..., *(slice(0, 1) if s == 0 else slice(None) for s in array.strides))]
    copy = once.copy(order="K")
    return np.broadcast_to(copy, array.shape) if once.shape != array.shape else copy


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
