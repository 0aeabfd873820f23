"""NumPy's operators, methods and functions on device arrays, outside of a trace: each is the traced function of its name.

In: `Array`s, NumPy arrays and numbers. Out: `Array`s on the device of the first. What is called is traced once for each kind
of operands (element types, ranks, which extents are 1) and kept, so a call has the types, and to the bit the numbers, that
the same expression has in `mj.jit`. Numbers of rows of the operation table are passed at run time; what else stands beside
arrays (axes, shapes) is part of the kind. While a function is traced, the arrays are part of that trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..compiler import plan as planning
from ..dtypes import BF16, BOOL, F16, DType, from_numpy
from ..extents import evaluate
from ..frozen import frozen
from ..runtime.array import Array, same_device
from ..runtime.device import Device
from ..runtime.plan import PlanLauncher
from ..runtime.profile import span
from ..runtime.warm import Warm
from ..source import LaunchFault
from . import trees
from .context import current_trace, tracing
from .joins import counted
from .traced import Trace, Traced, elementwise, extents_of, fault, literal_type

KEPT = 512  # kinds, and shapes, of one function
_NAMES = "abcdefgh"
Memory: TypeAlias = Array | np.ndarray[Any, Any]
Key: TypeAlias = tuple[Any, ...]


@frozen
class _Number:
    """A number that is passed at run time."""

    value: bool | int | float
    dtype: DType


Operand: TypeAlias = Memory | _Number


@frozen
class _Made:
    """A trace, compiled. Leaf k of what was returned is `returned[k]`: a place in the plan's results, or a value."""

    trace: Trace
    launcher: PlanLauncher
    captured: tuple[Any, ...]  # lists and tuples that became arrays
    structure: trees.Structure
    returned: tuple[tuple[bool, Any], ...]

    def serves(self, env: Mapping[str, int]) -> bool:
        """Whether a call of these extents is decided as the one that was traced."""
        known = {**(self.trace.env or {}), **env} if self.captured else env
        return all(evaluate(guard, known) for guard in self.trace.guards)

    @property
    def is_plain(self) -> bool:
        return not self.captured and self.structure is None and self.returned[0] == (True, 0)


class Eager:
    """A traced function that is run at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: dict[Key, list[_Made]] = {}
        self._warm: dict[Key, Warm] = {}

    def _run(
        self, key: Key, function: Callable[..., Any], operands: Sequence[Operand], warm: Key | None = None
    ) -> Any:
        """The function's results for operands of this kind; `warm` is what the next such call is found by."""
        device = _device(operands)
        key = (device, key, *map(_kind, operands))
        known = self._made.setdefault(key, []) if len(self._made) < KEPT else self._forget(key)
        env = _env(operands)
        values = [v.value if isinstance(v, _Number) else v for v in operands]
        for made in known:
            if made.serves(env):
                try:
                    return self._finish(made, made.launcher([*values, *made.captured]), warm)
                except LaunchFault:
                    break  # another trace says it with the line of this call
        with span("trace", self.name):
            made = self._trace(device, function, operands, env)
        found = made.launcher([*values, *made.captured])
        known.append(made)
        return self._finish(made, found, warm)

    def _forget(self, key: Key) -> list[_Made]:
        self._made.clear()
        self._warm.clear()
        return self._made.setdefault(key, [])

    def _trace(
        self,
        device: Device,
        function: Callable[..., Any],
        operands: Sequence[Operand],
        env: dict[str, int],
    ) -> _Made:
        trace = Trace(self.name, env)
        given = [
            trace.number(name, v.dtype)
            if isinstance(v, _Number)
            else trace.array(name, v.dtype, extents_of(name, v.shape))
            for name, v in zip(_names(operands), operands, strict=True)
        ]
        with tracing(trace):
            leaves, structure = trees.flatten(function(*given))
        refs = [v.ref for _, v in leaves if type(v) is Traced]
        params = [t.ref for t in given] + [trace.lifted(a).ref for _, a in trace.captured]
        planned = planning.plan(trace.graph, self.name, params, refs)
        different = list(dict.fromkeys(refs))
        returned = tuple(
            (True, different.index(v.ref)) if type(v) is Traced else (False, v) for _, v in leaves
        )
        captured = tuple(a for _, a in trace.captured)
        return _Made(trace, PlanLauncher(device, planned.plan), captured, structure, returned)

    def _finish(self, made: _Made, found: tuple[Any, ...], key: Key | None) -> Any:
        warm = made.launcher.warm
        if key is not None and warm is not None and made.is_plain:
            if len(self._warm) >= KEPT:
                self._warm.clear()
            self._warm[key] = warm
        return trees.rebuilt(made.structure, (found[v] if is_result else v for is_result, v in made.returned))


def _names(operands: Sequence[Operand]) -> list[str]:
    return [_NAMES[k] if k < len(_NAMES) else f"x{k}" for k in range(len(operands))]


def _device(operands: Sequence[Operand]) -> Device:
    """The one device of the arrays among the operands."""
    arrays = [v for v in operands if isinstance(v, Array)]
    for other in arrays[1:]:
        same_device(arrays[0], other)
    return arrays[0].device


def _kind(operand: Operand) -> Any:
    """What of an operand a trace depends on."""
    if isinstance(operand, _Number):
        return operand.dtype
    return (operand.dtype, *(n == 1 for n in operand.shape))


def _env(operands: Sequence[Operand]) -> dict[str, int]:
    named = zip(_names(operands), operands, strict=True)
    return {f"{n}.{k}": e for n, v in named if not isinstance(v, _Number) for k, e in enumerate(v.shape)}


# ---- rows of the operation table ----


class Row(Eager):
    """An operation on each element. Numbers are passed at run time, as what they are where they are written in a trace."""

    def __call__(self, *operands: Any) -> Any:
        trace = current_trace()
        if trace is not None:
            return elementwise(self.name, *(_entered(trace, v) for v in operands))
        values: list[Any] = []
        kinds: list[Any] = []
        for v in operands:
            if type(v) is Array:
                device = v.device
                kinds.append(device)
                v = v.numpy()
            if type(v) is np.ndarray:
                kinds += (v.dtype, v.shape)
            else:
                kinds.append(type(v))
            values.append(v)
        key = tuple(kinds)
        warm = self._warm.get(key)
        if warm is not None:
            found = warm(tuple(values), None)
            if found is not NotImplemented:
                return Array(device, found, None)
        return self._look(operands, key)

    def _look(self, operands: Sequence[Any], key: Key) -> Any:
        """The long way, for operands of which nothing is known."""
        types = [_element(v) for v in operands]
        given: list[Operand] = []
        fixed: list[Any] = []
        for value, known in zip(operands, types, strict=True):
            number = _number(value, known or literal_type(value, types)) if _is_number(value) else None
            if number is not None:
                given.append(number)
            elif isinstance(value, Array | np.ndarray):
                given.append(value)
            fixed.append(None if number is not None or isinstance(value, Array | np.ndarray) else value)
        kind = tuple(v if v is None else (type(v), repr(v)) for v in fixed)

        def function(*traced: Traced) -> Any:
            rest = iter(traced)
            return elementwise(self.name, *(next(rest) if v is None else v for v in fixed))

        one = len({id(v.device) for v in operands if isinstance(v, Array)}) == 1
        return self._run(kind, function, given, key if one and len(given) == len(operands) else None)


def _entered(trace: Trace, value: Any) -> Any:
    return trace.lifted(value) if isinstance(value, Array) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.generic)


def _element(value: Any) -> DType | None:
    """The element type of an array or of one of NumPy's numbers; None for Python's, whose type is found beside others."""
    if isinstance(value, bool | int | float) or not hasattr(value, "dtype"):
        return None
    return from_numpy(value.dtype)


def _number(value: Any, dtype: DType) -> _Number | None:
    """The number as one that is passed at run time; None where the type does not hold it: that is for the trace to say."""
    if isinstance(value, np.generic) and not isinstance(value, bool | int | float):
        if from_numpy(value.dtype) != dtype:
            return None
        value = float(value) if dtype == BF16 else value.item()
    if dtype == BOOL:
        return _Number(bool(value), dtype) if isinstance(value, bool) else None
    if dtype.is_integer:
        fits = isinstance(value, int) and dtype.smallest <= value <= dtype.largest
        return _Number(int(value), dtype) if fits else None
    largest = 65504 if dtype == F16 else 3.3895e38
    return _Number(float(value), dtype) if not largest < abs(value) < np.inf else None


# ---- whatever traced arrays have ----


class Call(Eager):
    """A function of traced arrays: arrays among the arguments are passed, all others belong to the kind."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function
        self._signature = inspect.signature(function)

    def __call__(self, *args: Any, **named: Any) -> Any:
        operands: list[Any] = []
        structure = _shaped((args, named), operands)
        trace = current_trace()
        if trace is not None:
            return self._called(structure, (_entered(trace, v) for v in operands))
        values = [v.numpy() if type(v) is Array else v for v in map(counted, operands)]
        places = [v.device for v in operands if type(v) is Array]
        key = (structure, *places, *[(v.dtype, v.shape) for v in values])
        warm = self._warm.get(key)
        if warm is not None:
            found = warm(tuple(values), None)
            if found is not NotImplemented:
                return Array(places[0], found, None)
        return self._run(
            structure,
            lambda *traced: self._called(structure, iter(traced)),
            list(map(counted, operands)),
            key,
        )

    def _called(self, structure: Any, arrays: Iterator[Any]) -> Any:
        args, named = _formed(structure, arrays)
        try:
            self._signature.bind(*args, **named)
        except TypeError as e:
            fault(
                "numpy-argument",
                f"np.{self.name} of arrays on a device does not take these arguments: {e}",
                f"there is `{self.name}{self._signature}`, or compute on the host with `a.numpy()`",
            )
        return self.function(*args, **named)


def _shaped(value: Any, operands: list[Any]) -> Any:
    """Arguments without their arrays, which go to `operands`: hashable, equal for calls that one trace serves."""
    if isinstance(value, Array | np.ndarray | Traced):
        operands.append(value)
        return Array
    if type(value) in (list, tuple):
        return (type(value), *[_shaped(v, operands) for v in value])
    if type(value) is dict:
        return (dict, *[(k, _shaped(v, operands)) for k, v in value.items()])
    if type(value) is slice:
        return (slice, *[_shaped(v, operands) for v in (value.start, value.stop, value.step)])
    return (None, type(value), repr(value) if isinstance(value, float) else None, value)


def _formed(structure: Any, arrays: Iterator[Any]) -> Any:
    """The arguments, with arrays in place of arrays."""
    if structure is Array:
        return next(arrays)
    match structure:
        case (None, _, _, value):
            return value
        case (kind, *items) if kind is dict:
            return {k: _formed(v, arrays) for k, v in items}
        case (kind, *items) if kind is slice:
            return slice(*[_formed(v, arrays) for v in items])
        case (kind, *items):
            return kind([_formed(v, arrays) for v in items])
    raise AssertionError(structure)
