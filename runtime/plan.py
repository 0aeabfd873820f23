"""A plan run on a device: its programs in their order, with memory for what lives between them.

In: a plan, a device, and the values of a call. Out: arrays. What depends on extents only is worked out once for equal
extents: shapes, parameter structs, bound pipelines, and which temporary lies in whose memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from metaljit.extents import Extent, Number, Sym, symbols
from metaljit.frozen import frozen
from metaljit.program import ArrayParam, Plan, ScalarParam
from metaljit.runtime.arguments import Plain, admit, scalar
from metaljit.runtime.array import Array, allocate
from metaljit.runtime.device import RAN, Device, Dispatch, Operand
from metaljit.runtime.launch import Launcher, operand
from metaljit.runtime.profile import watched
from metaljit.runtime.results import Memory, as_numpy
from metaljit.runtime.shapes import Shape, bind, shape_of
from metaljit.runtime.warm import Warm

KEPT_EXTENTS = 64


@frozen
class _Run:
    """A step for given extents. `slots` are the places of its arrays, `numbers` those of its scalars."""

    launcher: Launcher
    dispatch: Dispatch
    pack: Callable[[Sequence[tuple[Plain, ...]]], bytes]
    slots: tuple[int, ...]
    numbers: tuple[int, ...]
    last: tuple[int, ...]  # places that nobody reads after this step


@frozen
class _Geometry:
    env: Mapping[str, Number]
    shapes: tuple[tuple[Shape, np.dtype[Any]], ...]  # of results, then of temporaries
    runs: tuple[_Run, ...]


class PlanLauncher:
    """Calls a plan on a device. Arrays have places: those that are passed, results, temporaries."""

    def __init__(self, device: Device, plan: Plan) -> None:
        self.device, self.plan = device, plan
        self._lone, self._taken = _lone(device, plan)
        self._launchers = (
            [self._lone] if self._lone else [Launcher(device, step.program) for step in plan.steps]
        )
        if len(self._launchers) > 1:
            for k, launcher in enumerate(self._launchers):
                launcher.label = f"{plan.name}[{k}]"
        self._arrays = [(i, p) for i, p in enumerate(plan.params) if isinstance(p, ArrayParam)]
        self._scalars = [(i, p) for i, p in enumerate(plan.params) if isinstance(p, ScalarParam)]
        made = [*plan.results, *plan.temporaries]
        self._place = {p.name: k for k, p in enumerate([*(p for _, p in self._arrays), *made])}
        self._number = {p.name: k for k, (_, p) in enumerate(self._scalars)}
        self._made = made
        self._geometries: dict[Any, _Geometry] = {}
        sizing: list[Extent] = [e for a in (*made, *(p for _, p in self._arrays)) for e in a.shape]
        used = frozenset().union(*map(symbols, sizing)) if sizing else frozenset()
        self._sizing = [k for k, (_, p) in enumerate(self._scalars) if p.name in used]

    @property
    def warm(self) -> Warm | None:
        """What runs the next call if it is like the last one; it takes the same arguments. None where nothing does."""
        return self._lone.warm if self._lone is not None else None

    def compile(self) -> None:
        """Compiles all programs now, several at a time."""
        texts = {
            step.program.msl: launcher
            for step, launcher in zip(self.plan.steps, self._launchers, strict=True)
        }
        if len(texts) == 1:
            self._launchers[0].compile()
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(Launcher.compile, texts.values()))

    def __call__(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the plan, as `Array`s where an argument is one. Errors as of `Launcher`."""
        if self._lone is not None:
            found = self._lone([args[k] for k in self._taken])
            return found if len(self.plan.results) > 1 else (found,)
        arrays = [admit(self.plan, self.device, p, args[i]) for i, p in self._arrays]
        numbers = [scalar(self.plan, p, args[i]) for i, p in self._scalars]
        key = (*(a.shape for a in arrays), *(numbers[k] for k in self._sizing))
        geometry = self._geometries.get(key) or self._measure(key, arrays, numbers)
        memories: list[Memory | None] = [*arrays]
        memories += [allocate(self.device, shape, dtype) for shape, dtype in geometry.shapes]
        for run in geometry.runs:
            operands: list[Operand] = [
                operand(m) for m in map(memories.__getitem__, run.slots) if m is not None
            ]
            dispatch = watched(
                run.dispatch, run.launcher.label, run.launcher.program, geometry.env, self.device
            )
            words = dispatch(operands, run.pack([numbers[k] for k in run.numbers]))
            if words[0] != RAN or words[1]:
                raise run.launcher.failure(words, geometry.env)
            for place in run.last:
                memories[place] = None
        first = len(arrays)
        results = [m for m in memories[first : first + len(self.plan.results)] if m is not None]
        if any(isinstance(a, Array) for a in arrays):
            return tuple(results)
        return tuple(as_numpy(m) for m in results)

    def _measure(self, key: Any, arrays: Sequence[Memory], numbers: Sequence[tuple[Plain, ...]]) -> _Geometry:
        plan = self.plan
        if not self._geometries:
            self.compile()
        known = {p.name: n[0] for (_, p), n in zip(self._scalars, numbers, strict=True)}
        env = bind(plan, [(p, a.shape) for (_, p), a in zip(self._arrays, arrays, strict=True)], known)
        self._launchers[0].require(plan.requirements, env)
        shapes = tuple((shape_of(plan, a, env), a.dtype.numpy) for a in self._made)
        read_last = {name: k for k, step in enumerate(plan.steps) for name in step.arrays}
        kept = {a.name for a in plan.results} | {p.name for _, p in self._arrays}
        runs = []
        for k, (step, launcher) in enumerate(zip(plan.steps, self._launchers, strict=True)):
            bound = launcher.bound(env)
            if bound is None:
                continue  # there is nothing to compute
            over = [n for n, last in read_last.items() if last == k and n not in kept]
            runs.append(
                _Run(
                    launcher, *bound,
                    tuple(self._place[n] for n in step.arrays), tuple(self._number[n] for n in step.numbers),
                    tuple(self._place[n] for n in over),
                )
            )  # fmt: skip
        geometry = _Geometry(env, shapes, tuple(runs))
        if len(self._geometries) >= KEPT_EXTENTS:
            self._geometries.clear()
        self._geometries[key] = geometry
        return geometry


def _lone(device: Device, plan: Plan) -> tuple[Launcher | None, list[int]]:
    """What launches a plan of one program as any program is launched, and which arguments of the plan it takes."""
    if len(plan.steps) != 1:
        return None, []
    (step,) = plan.steps
    program = step.program
    called = dict(zip(program.buffers, step.arrays, strict=True))
    passed = [p for p in program.params if isinstance(p, ArrayParam)]
    known = {e.name for p in passed for e in p.shape if isinstance(e, Sym)} | set(step.numbers)
    extents: list[Extent] = [e for a in program.arrays for e in a.shape] + [
        r.condition for r in plan.requirements
    ]
    extents += [u.value for u in program.uniforms if u.value is not None]
    if any(symbols(e) - known for e in extents):
        return None, []  # an extent of an array that the program does not read
    if [called[a.name] for a in program.outputs] != [a.name for a in plan.results]:
        return None, []
    at = {p.name: k for k, p in enumerate(plan.params)}
    numbers = iter(step.numbers)
    taken = [at[called[p.name] if isinstance(p, ArrayParam) else next(numbers)] for p in program.params]
    whole = replace(program, requirements=(*program.requirements, *plan.requirements))
    return Launcher(device, whole, taken, len(plan.params)), taken
