"""Executables: functions compiled ahead of time, run without the compiler, and kept in a file.

In: a plan and what a call of the function looks like. Out: results. A file has the plan with its Metal source, the arrays
that the function uses, and the libraries of the device that it was made on; elsewhere they are compiled from the source.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .extents import evaluate
from .frozen import frozen, mutable
from .graph import trees
from .program import ArrayParam, Plan, Repeat, Step
from .runtime import device as devices
from .runtime.array import Array, asarray
from .runtime.plan import PlanLauncher
from .runtime.shapes import bind
from .source import Diagnostic, LaunchFault, MetaljitError
from .variables import Variable

if TYPE_CHECKING:
    from .runtime.event import Event
    from .runtime.queue import Future, Queue

FORMAT = 1
_CONTAINERS: dict[str, type] = {"dict": dict, "list": list, "tuple": tuple}


@frozen
class Compiled:
    """A traced function as a plan, and how its results are put together.

    Leaf k of what is returned is `returned[k]`: a place in the plan's results, or a value. `captured` arrays and variables
    are passed behind the call's values; `effects` are results that become a variable's value.
    """

    plan: Plan
    launcher: PlanLauncher
    captured: tuple[Any, ...]
    structure: trees.Structure
    returned: tuple[tuple[bool, Any], ...]
    effects: tuple[tuple[Variable, int], ...] = ()

    def arrays(self) -> list[Any]:
        """The captured arrays as they are now."""
        return [c.array if isinstance(c, Variable) else c for c in self.captured]

    def run(self, values: Sequence[Any]) -> Any:
        found: Sequence[Any] = self.launcher([*values, *self.arrays()] if self.captured else values)
        if any(isinstance(c, Variable) for c in self.captured):
            found = self._stored(values, found)
        if self.structure is None:
            is_result, value = self.returned[0]
            return found[value] if is_result else value
        return trees.rebuilt(self.structure, (found[v] if is_result else v for is_result, v in self.returned))

    def _stored(self, values: Sequence[Any], found: Sequence[Any]) -> Sequence[Any]:
        """Gives variables their new values, which are theirs alone, and results the kind that the arguments have."""
        given = {v for is_result, v in self.returned if is_result}
        device = self.launcher.device
        for variable, place in self.effects:
            made = found[place]
            array = made if isinstance(made, Array) else Array(device, made, None)
            if place in given:
                array = asarray(np.array(array.numpy()), device=device)
            given.add(place)
            variable.array = array
        if any(isinstance(v, Array) for v in values):
            return found
        return [f.numpy() if isinstance(f, Array) else f for f in found]


@frozen
class RunCost:
    """What a run comes to: kernels, the bytes that these read and write at least, their operations as the compiler counts
    them, and the bytes of what lives between kernels. Turns whose number no shape decides count once."""

    kernels: int
    nbytes: int
    operations: int
    temporaries: int

    def __add__(self, other: RunCost) -> RunCost:
        return RunCost(
            self.kernels + other.kernels, self.nbytes + other.nbytes, self.operations + other.operations,
            self.temporaries + other.temporaries,
        )  # fmt: skip

    def __mul__(self, times: int) -> RunCost:
        return RunCost(self.kernels * times, self.nbytes * times, self.operations * times, self.temporaries)


@mutable
class Executable:
    """A function compiled for given types; make one with `compile`, or `load_executable`.

    `run` takes what the function takes, but for static arguments. `structure` is that of its arguments.
    """

    name: str
    compiled: Compiled
    structure: trees.Structure
    explanation: str

    def __repr__(self) -> str:
        return f"<executable {self.name}>"

    @property
    def plan(self) -> Plan:
        return self.compiled.plan

    @property
    def device(self) -> str:
        return self.compiled.launcher.device.name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that runs read or assign; those of a loaded executable are its own."""
        used = [c for c in self.compiled.captured if isinstance(c, Variable)]
        return tuple(dict.fromkeys([*used, *(v for v, _ in self.compiled.effects)]))

    @property
    def msl(self) -> str:
        """The Metal source of every kernel."""
        return "\n".join(dict.fromkeys(step.program.msl for step in self.plan.programs))

    def explain(self) -> str:
        """What became of the function: kernels, and why arrays are stored."""
        return self.explanation

    def run(self, *args: Any) -> Any:
        """The function's results. LaunchFault (ShapeError, SizeError) where the arguments do not fit."""
        return self.compiled.run(self._leaves(args))

    __call__ = run

    def run_async(
        self,
        *args: Any,
        queue: Queue,
        wait: Sequence[tuple[Event, int]] = (),
        signal: Sequence[tuple[Event, int]] = (),
    ) -> Future:
        """Submits a run to a queue, behind waits for events to have these values; signals come after it."""
        for event, value in wait:
            queue.wait_for(event, value)
        found = queue.submit(self.run, *args)
        for event, value in signal:
            queue.signal(event, value)
        return found

    def _leaves(self, args: Sequence[Any]) -> list[Any]:
        leaves, structure = trees.flatten(tuple(args))
        if structure != self.structure:
            raise LaunchFault(
                Diagnostic(
                    "executable-arguments",
                    f"{self.name} was compiled for {_shown(self.structure)}, and is run with {_shown(structure)}",
                    help="pass arguments like those that it was compiled for, without static ones",
                )
            )
        return [leaf for _, leaf in leaves]

    def cost(self, *args: Any) -> RunCost:
        """What a run of arguments (or `spec`s) of these shapes costs; of none where all extents were given to `compile`."""
        plan = self.plan
        if args:
            leaves: list[Any] = self._leaves(args)
        else:
            leaves = [_Shaped(p) if isinstance(p, ArrayParam) else 0 for p in plan.params][: self._count()]
        values = [*leaves, *self.compiled.arrays()]
        arrays = [
            (p, tuple(v.shape)) for p, v in zip(plan.params, values, strict=True) if isinstance(p, ArrayParam)
        ]
        numbers = {
            p.name: v for p, v in zip(plan.params, values, strict=True) if not isinstance(p, ArrayParam)
        }
        env = bind(plan, arrays, numbers)
        held = sum(a.nbytes(env) for a in plan.temporaries)
        return _cost(plan.steps, env) + RunCost(0, 0, 0, held)

    def _count(self) -> int:
        return len(self.plan.params) - len(self.compiled.captured)

    # ---- files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one file (`.mjx`). Variables are saved with their present values."""
        compiled = self.compiled
        kinds = [
            ("variable", c.name) if isinstance(c, Variable) else ("array", "") for c in compiled.captured
        ]
        places = {id(c): k for k, c in enumerate(compiled.captured)}
        head = {
            "format": FORMAT,
            "name": self.name,
            "device": self.device,
            "plan": compiled.plan.dumps(),
            "arguments": _structure_json(self.name, self.structure),
            "results": _structure_json(self.name, compiled.structure),
            "returned": [[is_result, _plain(self.name, v)] for is_result, v in compiled.returned],
            "captured": kinds,
            "effects": [[places[id(v)], place] for v, place in compiled.effects],
            "explanation": str(self.explanation),
        }
        draft = f"{os.fspath(path)}.{os.getpid()}.tmp"
        try:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as file:
                file.writestr("executable.json", json.dumps(head))
                for k, array in enumerate(compiled.arrays()):
                    data = io.BytesIO()
                    np.save(data, np.asarray(array), allow_pickle=False)
                    file.writestr(f"captured/{k}.npy", data.getvalue())
                for name, binary in compiled.launcher.binaries().items():
                    file.writestr(f"libraries/{name}", binary)
            os.replace(draft, path)
        finally:
            if os.path.exists(draft):
                os.unlink(draft)


@frozen
class _Shaped:
    param: ArrayParam

    @property
    def shape(self) -> tuple[int, ...]:
        try:
            return tuple(int(evaluate(e, {})) for e in self.param.shape)
        except KeyError:
            raise LaunchFault(
                Diagnostic(
                    "executable-arguments",
                    f"the cost depends on the extents of {self.param.name!r}, which were left open",
                    help="pass arguments, or specs: `executable.cost(mj.spec((1024,), mj.f32))`",
                )
            ) from None


def load_executable(path: str | os.PathLike[str], device: str | None = None) -> Executable:
    """The executable of a file, for the device named, or the current one. Nothing is parsed or traced.

    A file holds machine code and source that is compiled, so load only files that you trust. LaunchFault where it is none.
    """
    try:
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read("executable.json"))
            if head["format"] != FORMAT:
                raise ValueError("it was written by another version")
            plan = Plan.loads(head["plan"])
            arrays = [
                np.load(io.BytesIO(file.read(f"captured/{k}.npy")), allow_pickle=False)
                for k in range(len(head["captured"]))
            ]
            libraries = {
                n.partition("/")[2]: file.read(n) for n in file.namelist() if n.startswith("libraries/")
            }
            arguments, results = (_structure(head[key]) for key in ("arguments", "results"))
    except OSError as e:
        raise LaunchFault(Diagnostic("executable-file", f"{os.fspath(path)} cannot be read: {e}")) from None
    except (zipfile.BadZipFile, ValueError, KeyError, TypeError) as e:
        raise LaunchFault(
            Diagnostic(
                "executable-file",
                f"{os.fspath(path)} is no executable: {e}",
                help="save it again: `executable.save(path)`",
            )
        ) from None
    place = devices.find(device) if device is not None else devices.current()
    captured = tuple(
        Variable(a, name) if kind == "variable" else a
        for (kind, name), a in zip(head["captured"], arrays, strict=True)
    )
    effects = tuple((captured[k], result) for k, result in head["effects"])
    returned = tuple((is_result, v) for is_result, v in head["returned"])
    launcher = PlanLauncher(place, plan)
    launcher.provide(libraries)
    launcher.compile()
    compiled = Compiled(plan, launcher, captured, results, returned, effects)
    return Executable(head["name"], compiled, arguments, head["explanation"])


# ---- costs ----


def _cost(steps: Sequence[Step | Repeat], env: Mapping[str, Any]) -> RunCost:
    total = RunCost(0, 0, 0, 0)
    for step in steps:
        if isinstance(step, Repeat):
            times = int(evaluate(step.count, env)) if step.count is not None else 1
            total += _cost(step.inner, env) * times
        else:
            program, own = step.program, step.within(env)
            total += RunCost(1, program.moved(own), program.operations(own), 0)
    return total


# ---- structures ----


def _shown(structure: trees.Structure) -> str:
    """A structure as Python would write it, with a dot for each leaf."""
    if structure is None:
        return "·"
    kind, keys, inner = structure
    parts = [f"{k!r}: {_shown(s)}" if kind is dict else _shown(s) for k, s in zip(keys, inner, strict=True)]
    brackets = {dict: "{}", list: "[]"}.get(kind, "()")
    name = "" if kind in (dict, list, tuple) else kind.__name__
    return f"{name}{brackets[0]}{', '.join(parts)}{brackets[1]}"


def _structure_json(name: str, structure: trees.Structure) -> Any:
    if structure is None:
        return None
    kind, keys, inner = structure
    if kind.__name__ not in _CONTAINERS or _CONTAINERS[kind.__name__] is not kind:
        raise _unkept(name, f"a {kind.__name__}", "use dicts, lists and tuples")
    if any(not isinstance(k, str | int) for k in keys):
        raise _unkept(name, "a dict whose keys are no strings", "use strings")
    return [kind.__name__, list(keys), [_structure_json(name, s) for s in inner]]


def _structure(data: Any) -> trees.Structure:
    if data is None:
        return None
    kind, keys, inner = data
    return _CONTAINERS[kind], tuple(keys), tuple(map(_structure, inner))


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise _unkept(name, f"a {type(value).__name__} that it returns as it is", "return arrays and numbers")


def _unkept(name: str, what: str, help: str) -> MetaljitError:
    return LaunchFault(Diagnostic("executable-unkept", f"{name} has {what}, which no file holds", help=help))
