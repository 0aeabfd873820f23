"""`@jit`: a Python function of arrays, traced once for each signature and run as few kernels.

In: a call. Out: its results. A signature is the dtypes and ranks of the arrays, which extents are 1, and the types of
numbers; a trace serves every size, unless the function itself asked about one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from ..compiler import plan as planning
from ..dtypes import BOOL, F32, I32, DType
from ..extents import evaluate
from ..frozen import frozen
from ..runtime import device as devices
from ..runtime.plan import PlanLauncher
from . import methods as _methods  # noqa: F401 (gives traced arrays NumPy's methods)
from .traced import Trace, Traced, extents_of


@frozen
class Made:
    """A trace, compiled. `results` are the places of the plan's results in what the function returned."""

    trace: Trace
    planned: planning.Planned
    launcher: PlanLauncher
    captured: tuple[Any, ...]
    single: bool
    places: tuple[int, ...]


class Jitted:
    """A traced function. `explain(*args)` says what became of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.signature = inspect.signature(function)
        self._made: dict[Any, list[Made]] = {}

    def __call__(self, *args: Any) -> Any:
        made = self.made(args)
        found = made.launcher([*args, *made.captured])
        return found[0] if made.single else tuple(found[k] for k in made.places)

    def made(self, args: Sequence[Any]) -> Made:
        """What serves a call of these arguments; traced now if nothing does yet."""
        key = (devices.chosen[0], *(_kind(a) for a in args))
        known = self._made.setdefault(key, [])
        for made in known:
            if not made.trace.guards or all(evaluate(c, self._env(args)) for c in made.trace.guards):
                return made
        known.append(self._trace(args))
        return known[-1]

    def _env(self, args: Sequence[Any]) -> dict[str, int]:
        names = self.signature.parameters
        return {
            f"{n}.{k}": e
            for n, a in zip(names, args, strict=False)
            if hasattr(a, "dtype")
            for k, e in enumerate(a.shape)
        }

    def _trace(self, args: Sequence[Any]) -> Made:
        trace = Trace(self.function.__name__, self._env(args))
        given = []
        for name, a in zip(self.signature.parameters, args, strict=False):
            if hasattr(a, "dtype"):
                given.append(trace.array(name, a.dtype, extents_of(name, a.shape)))
            else:
                given.append(trace.number(name, _number_type(a)))
        params = [t.ref for t in given]
        result = self.function(*given)
        single = isinstance(result, Traced)
        returned = [result.ref] if single else [r.ref for r in result]
        params += [trace.lifted(a).ref for _, a in trace.captured]
        planned = planning.plan(trace.graph, trace.name, params, returned)
        different = list(dict.fromkeys(returned))
        launcher = PlanLauncher(devices.current(), planned.plan)
        places = tuple(map(different.index, returned))
        return Made(trace, planned, launcher, tuple(a for _, a in trace.captured), single, places)


def _kind(value: Any) -> Any:
    dtype = getattr(value, "dtype", None)
    return type(value) if dtype is None else (dtype, *(n == 1 for n in value.shape))


def _number_type(value: Any) -> DType:
    return {bool: BOOL, int: I32}.get(type(value), F32)


def jit(function: Callable[..., Any]) -> Jitted:
    return Jitted(function)
