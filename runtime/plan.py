"""A plan run on a device: its programs in their order, with memory for what lives between them.

In: a plan, a device, and the values of a call. Out: arrays. What depends on extents only is worked out once for equal
extents: shapes, parameter structs, bound pipelines, and which temporary lies in whose memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from metaljit.extents import Extent, Number, Sym, evaluate, symbols
from metaljit.frozen import frozen
from metaljit.program import ArrayParam, Place, Plan, Repeat, ScalarParam, Step
from metaljit.runtime.arguments import Plain, admit, scalar
from metaljit.runtime.array import Array, allocate
from metaljit.runtime.device import RAN, Device, Dispatch, Operand
from metaljit.runtime.launch import Launcher, operand
from metaljit.runtime.memory import empty
from metaljit.runtime.profile import watched
from metaljit.runtime.results import Memory, as_numpy
from metaljit.runtime.shapes import Shape, bind, shape_of
from metaljit.runtime.warm import Warm
from metaljit.source import Diagnostic, KernelAssertion

KEPT_EXTENTS = 64


@frozen
class _Source:
    """A number that decides something: number `place` of the call, or the lone element of the array there."""

    place: int
    is_number: bool

    def value(self, state: _State) -> Plain:
        if self.is_number:
            return state.numbers[self.place][0]
        memory = state.memories[self.place]
        assert memory is not None
        return as_numpy(memory).item()  # type: ignore[no-any-return]


@frozen
class _When:
    source: _Source
    holds: bool


@frozen
class _Run:
    """A step for given extents. `slots` are the places of its arrays, `numbers` those of its scalars."""

    launcher: Launcher
    dispatch: Dispatch | None  # None: there is nothing to compute
    pack: Callable[[Sequence[tuple[Plain, ...]]], bytes]
    slots: tuple[int, ...]
    numbers: tuple[int, ...]
    env: Mapping[str, Number]
    last: tuple[int, ...]  # places that nobody reads after this step
    zeroed: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]
    when: tuple[_When, ...]


@frozen
class _Turns:
    """A `Repeat` for given extents, by places."""

    starts: tuple[int, ...]
    values: tuple[int, ...]
    after: tuple[int, ...]
    rows: tuple[Extent | None, ...]
    results: tuple[int, ...]
    steps: tuple[_Run | _Turns, ...]
    turn: int | None
    number: str  # what the turn's number is called
    count: int | _Source | None
    test: tuple[_Run | _Turns, ...]
    condition: int
    limit: int
    place: Place
    last: tuple[int, ...]
    when: tuple[_When, ...]


@frozen
class _Geometry:
    env: Mapping[str, Number]
    shapes: tuple[tuple[int, Shape, np.dtype[Any]], ...]  # of what is allocated, by place
    runs: tuple[_Run | _Turns, ...]


class _State:
    """Memory and numbers of a call that is running, by place."""

    def __init__(
        self, env: Mapping[str, Number], memories: list[Memory | None], numbers: list[tuple[Plain, ...]]
    ) -> None:
        self.env, self.memories, self.numbers = env, memories, numbers

    def run(self, steps: Sequence[_Run | _Turns]) -> None:
        memories = self.memories
        for step in steps:
            runs = all(w.source.value(self) == w.holds for w in step.when)
            if isinstance(step, _Turns):
                self._repeat(step) if runs else self._skip(step)
            elif runs:
                self._dispatch(step)
            for place in step.last:
                memories[place] = None

    def _dispatch(self, run: _Run) -> None:
        memories, numbers = self.memories, self.numbers
        for place in run.zeroed:
            as_numpy(memories[place]).fill(0)  # type: ignore[arg-type]
        for place, source in run.copied:
            as_numpy(memories[place])[...] = as_numpy(memories[source])  # type: ignore[arg-type]
        if run.dispatch is None:
            return
        operands: list[Operand] = [operand(memories[k]) for k in run.slots]  # type: ignore[arg-type]
        launcher = run.launcher
        dispatch = watched(run.dispatch, launcher.label, launcher.program, run.env, launcher.device)
        words = dispatch(operands, run.pack([numbers[k] for k in run.numbers]))
        if words[0] != RAN or words[1]:
            raise launcher.failure(words, run.env)

    def _repeat(self, turns: _Turns) -> None:
        """What a turn writes is the next one's values, and takes the memory of those before the last."""
        memories = self.memories
        ours: dict[int, list[Memory]] = {}
        replaced, filled = self._begun(turns)
        for place, value in replaced:
            memory, first = memories[place], memories[value]
            assert first is not None
            ours[place] = [memory if memory is not None else _like(first)]
        count = turns.count.value(self) if isinstance(turns.count, _Source) else turns.count
        done = 0
        while done < count if count is not None else self._holds(turns):
            if count is None and done >= turns.limit:
                raise _endless(turns)
            for place, both in ours.items():
                if done == 1:
                    both.append(_like(both[0]))
                memories[place] = both[done % 2]
            if turns.turn is not None:
                self.numbers[turns.turn] = (done,)
            self.run(turns.steps)
            for place, value, at in filled:
                self._fill(
                    memories[value], memories[place], int(evaluate(at, {**self.env, turns.number: done}))
                )
            for place, value in replaced:
                memories[value] = memories[place]
            done += 1
        self._hand_on(turns, ours, done)

    def _begun(self, turns: _Turns) -> tuple[list[tuple[int, int]], list[tuple[int, int, Extent]]]:
        """Gives the values what they start with; of them those that turns replace, and those that are filled by rows.

        These are written in place, so in memory that nobody else looks at.
        """
        replaced, filled = [], []
        taken: set[int] = set()
        for start, value, place, at in zip(turns.starts, turns.values, turns.after, turns.rows, strict=True):
            memory = self.memories[start]
            assert memory is not None
            if at is None:
                replaced.append((place, value))
            else:
                memory = memory if start in turns.last and start not in taken else _copied(memory)
                taken.add(start)
                filled.append((place, value, at))
            self.memories[value] = memory
        return replaced, filled

    def _fill(self, memory: Memory | None, row: Memory | None, at: int) -> None:
        assert memory is not None
        assert row is not None
        whole = as_numpy(memory)
        if -len(whole) <= at < len(whole):
            whole[at] = as_numpy(row)

    def _skip(self, turns: _Turns) -> None:
        """Memory for results that nobody will look at."""
        for start, result in zip(turns.starts, turns.results, strict=True):
            self.memories[result] = _like(self.memories[start])  # type: ignore[arg-type]

    def _hand_on(self, turns: _Turns, ours: Mapping[int, Sequence[Memory]], done: int) -> None:
        """The last values are the results, whose memory is no longer the loop's."""
        memories = self.memories
        given: set[int] = set()
        for value, result in zip(turns.values, turns.results, strict=True):
            memory = memories[value]
            assert memory is not None
            # Without a turn it is memory of the caller's; two values may be one.
            memories[result] = memory if done and id(memory) not in given else _copied(memory)
            given.add(id(memory))
        for place, both in ours.items():
            memories[place] = next((m for m in both if id(m) not in given), None)

    def _holds(self, turns: _Turns) -> bool:
        self.run(turns.test)
        memory = self.memories[turns.condition]
        assert memory is not None
        return bool(as_numpy(memory).item())


def _endless(turns: _Turns) -> KernelAssertion:
    return KernelAssertion(
        Diagnostic(
            "loop-limit",
            f"a loop has not ended after {turns.limit} turns",
            where=turns.place.where,
            excerpt=turns.place.excerpt,
            help="say how many there may be: `limit=…`",
        )
    )


def _like(memory: Memory) -> Memory:
    if isinstance(memory, Array):
        return allocate(memory.device, memory.shape, memory.dtype)
    return empty(memory.shape, memory.dtype)


def _copied(memory: Memory) -> Memory:
    made = _like(memory)
    as_numpy(made)[...] = as_numpy(memory)
    return made


class PlanLauncher:
    """Calls a plan on a device. Arrays have places: those that are passed, results, temporaries, what loops hand on."""

    def __init__(self, device: Device, plan: Plan) -> None:
        self.device, self.plan = device, plan
        self._lone, self._taken = _lone(device, plan)
        self._launchers = (
            {} if self._lone else {id(step): Launcher(device, step.program) for step in plan.programs}
        )
        if len(self._launchers) > 1:
            for k, launcher in enumerate(self._launchers.values()):
                launcher.label = f"{plan.name}[{k}]"
        self._arrays = [(i, p) for i, p in enumerate(plan.params) if isinstance(p, ArrayParam)]
        self._scalars = [(i, p) for i, p in enumerate(plan.params) if isinstance(p, ScalarParam)]
        repeats = list(_repeats(plan.steps))
        handed = dict.fromkeys(n for r in repeats for n in (*r.values, *r.results))
        results = {a.name for a in plan.results}
        named = [p.name for _, p in self._arrays] + [a.name for a in (*plan.results, *plan.temporaries)]
        self._place = {n: k for k, n in enumerate(dict.fromkeys([*named, *handed]))}
        self._made = [a for a in (*plan.results, *plan.temporaries) if a.name not in handed]
        self._kept = results | {p.name for _, p in self._arrays}
        # Numbers have places too: those that are passed, the turns of loops, constants (1 is not 1.0, nor 0.0 -0.0).
        counting = [p.name for _, p in self._scalars] + [r.turn for r in repeats if r.turn]
        constants = {repr(n): n for step in plan.programs for n in step.numbers if isinstance(n, tuple)}
        self._number = {n: k for k, n in enumerate(dict.fromkeys([*counting, *constants]))}
        self._unpassed = [constants.get(n, (0,)) for n in self._number][len(self._scalars) :]
        self._geometries: dict[Any, _Geometry] = {}
        sizing: list[Extent] = [e for a in (*self._made, *(p for _, p in self._arrays)) for e in a.shape]
        sizing += [r.count for r in repeats if r.count is not None]
        used = frozenset().union(*map(symbols, sizing)) if sizing else frozenset()
        self._sizing = [k for k, (_, p) in enumerate(self._scalars) if p.name in used]

    @property
    def warm(self) -> Warm | None:
        """What runs the next call if it is like the last one; it takes the same arguments. None where nothing does."""
        return self._lone.warm if self._lone is not None else None

    def compile(self) -> None:
        """Compiles all programs now, several at a time."""
        if self._lone is not None:
            self._lone.compile()
            return
        texts = {step.program.msl: self._launchers[id(step)] for step in self.plan.programs}
        if len(texts) == 1:
            next(iter(texts.values())).compile()
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(Launcher.compile, texts.values()))

    def binaries(self) -> dict[str, bytes]:
        """What the device has compiled, by a key of all that shapes it, for `provide` in another process."""
        self.compile()
        found: dict[str, bytes] = {}
        for step in self.plan.programs:
            found |= self.device.binaries(step.program)
        return found

    def provide(self, binaries: Mapping[str, bytes]) -> None:
        """Lets the device load these rather than compile, where the keys are its own."""
        self.device.provide(binaries)

    def __call__(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results of the plan, as `Array`s where an argument is one. Errors as of `Launcher`."""
        if self._lone is not None:
            found = self._lone([args[k] for k in self._taken])
            return found if len(self.plan.results) > 1 else (found,)
        arrays = [admit(self.plan, self.device, p, args[i]) for i, p in self._arrays]
        numbers = [scalar(self.plan, p, args[i]) for i, p in self._scalars]
        key = (*(a.shape for a in arrays), *(numbers[k] for k in self._sizing))
        geometry = self._geometries.get(key) or self._measure(key, arrays, numbers)
        memories: list[Memory | None] = [None] * len(self._place)
        memories[: len(arrays)] = arrays
        for place, shape, dtype in geometry.shapes:
            memories[place] = allocate(self.device, shape, dtype)
        numbers += self._unpassed
        _State(geometry.env, memories, numbers).run(geometry.runs)
        results = [memories[self._place[a.name]] for a in self.plan.results]
        if any(isinstance(a, Array) for a in arrays):
            return tuple(m if isinstance(m, Array) else Array(self.device, m, None) for m in results)  # type: ignore[arg-type]
        return tuple(as_numpy(m) for m in results if m is not None)

    # ---- extents ----

    def _measure(self, key: Any, arrays: Sequence[Memory], numbers: Sequence[tuple[Plain, ...]]) -> _Geometry:
        plan = self.plan
        if not self._geometries:
            self.compile()
        known = {p.name: n[0] for (_, p), n in zip(self._scalars, numbers, strict=True)}
        env = bind(plan, [(p, a.shape) for (_, p), a in zip(self._arrays, arrays, strict=True)], known)
        if self._launchers:
            next(iter(self._launchers.values())).require(plan.requirements, env)
        shapes = tuple((self._place[a.name], shape_of(plan, a, env), a.dtype.numpy) for a in self._made)
        geometry = _Geometry(env, shapes, self._bound(plan.steps, env, outermost=True))
        if len(self._geometries) >= KEPT_EXTENTS:
            self._geometries.clear()
        self._geometries[key] = geometry
        return geometry

    def _bound(
        self, steps: Sequence[Step | Repeat], env: Mapping[str, Number], outermost: bool = False
    ) -> tuple[_Run | _Turns, ...]:
        """The steps for these extents. Memory is given back by the outermost ones: a loop's is used at every turn."""
        read_last = {n: k for k, step in enumerate(steps) for n in _names(step)} if outermost else {}
        bound: list[_Run | _Turns] = []
        for k, step in enumerate(steps):
            over = [n for n, last in read_last.items() if last == k and n not in self._kept]
            last = tuple(self._place[n] for n in over if n in self._place)
            when = tuple(_When(self._source(n), holds) for n, holds in step.when)
            if isinstance(step, Repeat):
                bound.append(self._turns(step, env, last, when))
                continue
            launcher = self._launchers[id(step)]
            own = step.within(env)
            dispatch, pack = launcher.bound(own) or (None, _packs_nothing)
            if dispatch is not None or step.zeroed or step.copied:  # a sum of nothing is 0
                slots = tuple(self._place[n] for n in step.arrays)
                numbers = tuple(self._number[n if isinstance(n, str) else repr(n)] for n in step.numbers)
                zeroed = tuple(self._place[n] for n in step.zeroed)
                copied = tuple((self._place[n], self._place[source]) for n, source in step.copied)
                bound.append(_Run(launcher, dispatch, pack, slots, numbers, own, last, zeroed, copied, when))
        return tuple(bound)

    def _turns(
        self, step: Repeat, env: Mapping[str, Number], last: tuple[int, ...], when: tuple[_When, ...]
    ) -> _Turns:
        def places(names: Sequence[str]) -> tuple[int, ...]:
            return tuple(self._place[n] for n in names)

        count: int | _Source | None = int(evaluate(step.count, env)) if step.count is not None else None
        return _Turns(
            places(step.starts), places(step.values), places(step.after), step.rows, places(step.results),
            self._bound(step.steps, env),
            self._number[step.turn] if step.turn else None,
            step.turn,
            self._source(step.counted) if step.counted else count,
            self._bound(step.test, env),
            self._place[step.condition] if step.condition else -1,
            step.limit, step.place, last, when,
        )  # fmt: skip

    def _source(self, name: str) -> _Source:
        if name in self._number:
            return _Source(self._number[name], True)
        return _Source(self._place[name], False)


def _packs_nothing(numbers: Sequence[tuple[Plain, ...]]) -> bytes:
    return b""


def _repeats(steps: Sequence[Step | Repeat]) -> Iterator[Repeat]:
    for step in steps:
        if isinstance(step, Repeat):
            yield step
            yield from _repeats(step.inner)


def _names(step: Step | Repeat) -> Iterator[str]:
    """The arrays that a step, or one in it, reads or writes."""
    yield from (n for n, _ in step.when)
    if isinstance(step, Step):
        yield from step.arrays
        yield from (source for _, source in step.copied)
        return
    yield from (*step.starts, *step.values, *step.after, *step.results, step.counted, step.condition)
    for inner in step.inner:
        yield from _names(inner)


def _lone(device: Device, plan: Plan) -> tuple[Launcher | None, list[int]]:
    """What launches a plan of one program as any program is launched, and which arguments of the plan it takes."""
    step = plan.steps[0] if len(plan.steps) == 1 else None
    if not isinstance(step, Step):
        return None, []
    named = [n for n in step.numbers if isinstance(n, str)]
    if step.extents or step.copied or len(named) < len(step.numbers):
        return None, []
    program = step.program
    called = dict(zip(program.buffers, step.arrays, strict=True))
    passed = [p for p in program.params if isinstance(p, ArrayParam) and p.role == "in"]
    known = {e.name for p in passed for e in p.shape if isinstance(e, Sym)} | set(named)
    extents: list[Extent] = [e for a in program.arrays for e in a.shape] + [
        r.condition for r in plan.requirements
    ]
    extents += [u.value for u in program.uniforms if u.value is not None]
    if any(symbols(e) - known for e in extents):
        return None, []  # an extent of an array that the program does not read
    if [called[a.name] for a in program.outputs] != [a.name for a in plan.results]:
        return None, []
    at = {p.name: k for k, p in enumerate(plan.params)}
    numbers = iter(named)
    given = (p for p in program.params if isinstance(p, ScalarParam) or p.role == "in")
    taken = [at[called[p.name] if isinstance(p, ArrayParam) else next(numbers)] for p in given]
    unread = [p for k, p in enumerate(plan.params) if k not in taken and isinstance(p, ArrayParam)]
    if any(not isinstance(e, Sym) or e.name in known for p in unread for e in p.shape):
        return None, []  # its extents have to fit those of the others
    whole = replace(program, requirements=(*program.requirements, *plan.requirements))
    return Launcher(device, whole, taken, len(plan.params)), taken
