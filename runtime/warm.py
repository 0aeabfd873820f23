"""A call that is like the last one: nothing is worked out again.

In: a launcher's last geometry, and which arguments its values are. Out: a `Warm`, which takes the arguments of the next
call as they come. It runs them if they are plain numbers and arrays of the same kinds and extents, and otherwise
does nothing, so that the launcher looks at them properly and says what is wrong. The arrays are checked by the
device, in one step with the run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metaljit.dtypes import BOOL
from metaljit.extents import Number
from metaljit.program import ScalarParam
from metaljit.runtime.arguments import Plain
from metaljit.runtime.array import Array
from metaljit.runtime.device import RAN, Checked, Device, Words
from metaljit.runtime.memory import LEAST, empty
from metaljit.runtime.profile import active
from metaljit.runtime.shapes import Shape
from metaljit.source import MetaljitError


class QuickScalar:
    """A number or vector at a place of a call, taken without a further look if it is well inside its type's range.

    `decides` are the lanes that the extents of the last call rest on, if they do.
    """

    __slots__ = ("at", "decides", "greatest", "lanes", "least", "types")

    def __init__(self, at: int, param: ScalarParam, decides: tuple[Plain, ...] | None) -> None:
        self.at, self.lanes, self.decides = at, param.lanes, decides
        dtype = param.dtype
        self.types: tuple[type, ...] = (int,)
        self.least, self.greatest = dtype.smallest, dtype.largest
        if dtype == BOOL:
            self.types, self.least, self.greatest = (bool,), 0, 1
        elif dtype.is_float:
            self.types, self.least, self.greatest = (float, int), -65504, 65504

    def __call__(self, value: Any) -> tuple[Plain, ...] | None:
        """The lanes, or None where they need a closer look."""
        if self.lanes == 1:
            value = (value,)
        elif type(value) is not tuple or len(value) != self.lanes:
            return None
        for lane in value:
            if type(lane) not in self.types or not self.least <= lane <= self.greatest:
                return None
        return value if self.decides is None or value == self.decides else None


def picker(order: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes the values at these places, in this order."""
    if len(order) > 1:
        return operator.itemgetter(*order)
    return lambda values: [values[k] for k in order]


class Warm:
    """See the module. `order` gives the places of the operands in the arguments followed by the results."""

    __slots__ = (
        "_checked",
        "_count",
        "_device",
        "_dtypes",
        "_empty",
        "_env",
        "_failure",
        "_operands",
        "_pack",
        "_scalars",
        "_shapes",
    )

    def __init__(
        self,
        checked: Checked,
        pack: Callable[[Sequence[tuple[Plain, ...]]], bytes],
        order: Sequence[int],
        count: int,
        scalars: Sequence[QuickScalar],
        results: tuple[Sequence[Shape], Sequence[np.dtype[Any]]],
        env: Mapping[str, Number],
        failure: Callable[[Words, Mapping[str, Number]], MetaljitError],
        device: Device,
    ) -> None:
        self._checked, self._pack, self._count = checked, pack, count
        self._scalars, self._env, self._failure, self._device = scalars, env, failure, device
        self._shapes, self._dtypes = results
        sizes = [prod(shape) * dtype.itemsize for shape, dtype in zip(*results, strict=True)]
        self._empty: Callable[[Shape, np.dtype[Any]], NDArray[Any]] = (
            empty if max(sizes, default=0) >= LEAST else np.empty
        )
        self._operands = picker(order)

    def __call__(self, args: tuple[Any, ...], out: Any) -> Any:
        """The results, or `out`; NotImplemented, and nothing was done, where the call is not like the last one."""
        if len(args) != self._count or active:
            return NotImplemented
        numbers = []
        for s in self._scalars:
            number = s(args[s.at])
            if number is None:
                return NotImplemented
            numbers.append(number)
        if out is None:
            results: Any = tuple(map(self._empty, self._shapes, self._dtypes))
        else:
            results = out if type(out) is tuple else (out,)
            if len(results) != len(self._shapes) or (results is out and len(out) == 1):
                return NotImplemented
        words = self._checked(self._operands(args + results), self._pack(numbers))
        if words is None:
            return self._of_arrays(args) if out is None else NotImplemented
        if words[0] != RAN or words[1]:
            raise self._failure(words, self._env)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else results

    def _of_arrays(self, args: tuple[Any, ...]) -> Any:
        """The same for `Array`s of the device among the arguments: the results are such then."""
        device = self._device
        views = tuple([a.numpy() if type(a) is Array and a.device is device else a for a in args])
        if all(map(operator.is_, views, args)):
            return NotImplemented
        found = self(views, None)
        if type(found) is tuple:
            return tuple(Array(device, a, None) for a in found)
        return found if found is NotImplemented else Array(device, found, None)
