"""A call: from the user's arguments to results.

In: a program, a device, and the values of a call. Out: arrays. What depends on extents only (shapes of
results, the parameter struct, the bound pipeline) is worked out once for equal extents and kept, so that
a warm call checks, allocates, packs and runs. The caller's arrays are read, and never written unless they
are given as `out`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metaljit.extents import Extent, Number, evaluate, show, symbols
from metaljit.frozen import frozen
from metaljit.program import INDEX_MAX, ArrayParam, Program, Requirement, ScalarParam
from metaljit.runtime.arguments import Plain, admit, scalar
from metaljit.runtime.array import Array
from metaljit.runtime.device import RAN, UNFIT, Checked, Device, Dispatch, Operand, Pipeline, Words
from metaljit.runtime.profile import span, watched
from metaljit.runtime.results import Memory, Outputs, as_numpy
from metaljit.runtime.shapes import Shape, bind, fault, shape_of, whole
from metaljit.runtime.uniforms import Uniforms
from metaljit.runtime.warm import QuickScalar, Warm, picker
from metaljit.source import (
    DeviceFault,
    Diagnostic,
    InternalError,
    KernelAssertion,
    LaunchFault,
    MetaljitError,
    SizeError,
)

KEPT_EXTENTS = 256


@frozen
class _Geometry:
    """All of a call that its extents decide. `dispatch` is None where there is nothing to compute."""

    env: Mapping[str, Number]
    shapes: tuple[Shape, ...]
    pack: Callable[[Sequence[tuple[Plain, ...]]], bytes]
    dispatch: Dispatch | None
    warm: Warm | None


class Launcher:
    """Calls a program on a device. Compiled at the first call that passes the checks, or by `compile`.

    `warm` runs the next call if it is like the last one. It takes a user's `count` arguments, of which the program's
    values are those at `places`. `label` is its name in profiles.
    """

    def __init__(
        self, device: Device, program: Program, places: Sequence[int] | None = None, count: int | None = None
    ) -> None:
        self.device = device
        self.program = program
        self.label = program.name
        self.warm: Warm | None = None
        self._pipeline: Pipeline | None = None
        self._geometries: dict[tuple[object, ...], _Geometry] = {}
        passed = [p for p in program.params if isinstance(p, ScalarParam) or p.role != "out"]
        self._count = len(passed)
        self._places = places if places is not None else range(self._count)
        self._given = count if count is not None else self._count
        self._arrays = [(i, p, p.dtype.numpy) for i, p in enumerate(passed) if isinstance(p, ArrayParam)]
        self._scalars = [(i, p, *_quick_range(p)) for i, p in enumerate(passed) if isinstance(p, ScalarParam)]
        self._outputs = Outputs(program, device, [p for _, p, _ in self._arrays])
        self._choose = picker(self._order(range(len(self._arrays)), len(self._arrays)))
        self._uniforms = Uniforms(program, [p for _, p, *_ in self._scalars])
        self._sort_scalars()
        self._check_limits()

    def _order(self, arrays: Sequence[int], outputs: int) -> list[int]:
        """The places of the operands, in binding order; those of the passed arrays, and of the first output, are given."""
        at = {p.name: place for (_, p, _), place in zip(self._arrays, arrays, strict=True)}
        at |= {a.name: outputs + i for i, a in enumerate(self.program.outputs)}
        return [at[name] for name in self.program.buffers]

    def _sort_scalars(self) -> None:
        """Scalars in shapes and grids decide the geometry; requirements on others are checked each call."""
        program = self.program
        sizing: list[Extent] = [e for a in program.outputs for e in a.shape]
        sizing += [launch.threads for launch in program.launches] + [program.cpu.rows, program.cpu.columns]
        sizing += [u.value for u in program.uniforms if u.value is not None]
        sizing += [e for site in program.asserts for e in site.grid]
        used = frozenset().union(*map(symbols, sizing))
        names = {p.name for _, p, *_ in self._scalars}
        self._sizing = [k for k, (_, p, *_) in enumerate(self._scalars) if p.name in used]
        changing = names - used
        self._always = [r for r in program.requirements if symbols(r.condition) & changing]
        self._once = [r for r in program.requirements if not symbols(r.condition) & changing]
        self._alike = not self._always and self._outputs.undefined

    def _check_limits(self) -> None:
        arrays, limit = len(self.program.buffers), self.device.limits.buffers - 2
        if arrays > limit:
            raise fault(
                SizeError,
                "too-many-arrays",
                self.program,
                f"the kernel has {arrays} arrays, and device {self.device.name!r} takes {limit}",
                help="split the kernel, or pass several arrays as one",
            )

    def compile(self) -> Pipeline:
        """The compiled program; the first call does it too."""
        if self._pipeline is None:
            with span("compile", self.program.name, self.device.name):
                self._pipeline = self.device.pipeline(self.program)
        return self._pipeline

    def __call__(self, args: Sequence[Any], out: object = None) -> Any:
        """Runs the kernel. `args` are the values of `Program.params`, those with role "out" left away.

        One result comes as it is, several as a tuple: NumPy arrays, or `Array`s if any argument is one.
        `out` is storage for the results, of their shape and dtype, that overlaps no argument (an array
        that is changed in place may be its own storage).

        LaunchFault, ShapeError or SizeError where the arguments do not fit, KernelAssertion where an
        `assert` fails, DeviceFault where the device does not do its work.
        """
        if len(args) != self._count:
            raise InternalError(f"{self.program.name} takes {self._count} values, and was given {len(args)}")
        arrays: list[Any] = []
        key: list[object] = []
        on_device = False
        as_they_are = True
        value: Any
        for i, param, dtype in self._arrays:
            value = args[i]
            if type(value) is np.ndarray and value.dtype is dtype:
                flags = value.flags
                if not (flags.c_contiguous and flags.aligned):
                    as_they_are = False
            else:
                value = admit(self.program, self.device, param, value)
                on_device = on_device or type(value) is Array
                as_they_are = False
            arrays.append(value)
            key.append(value.shape)
        numbers: list[tuple[Plain, ...]] = []
        for i, declared, quick, least, greatest in self._scalars:
            value = args[i]
            # Most values are plain numbers well inside the range of their type.
            if type(value) is quick and least <= value <= greatest:
                numbers.append((value,))
            else:
                numbers.append(scalar(self.program, declared, value))
        for k in self._sizing:
            key.append(numbers[k])
        extents = tuple(key)
        geometry = self._geometries.get(extents) or self._measure(extents, arrays, numbers)
        self.warm = geometry.warm
        if self._always:
            self.require(self._always, {**geometry.env, **self._named(numbers)})
        # Where there is nothing to compute, nothing is read: a view may be of much more than there is memory.
        inputs = arrays if as_they_are or geometry.dispatch is None else list(map(operand, arrays))
        if out is None:
            memories = self._outputs.fresh(geometry.shapes, arrays)
            self._run(geometry, inputs, memories, numbers)
            if on_device:
                memories = [m if isinstance(m, Array) else Array(self.device, m, None) for m in memories]
            elif not self.device.in_place:
                memories = [as_numpy(m) for m in memories]
            return memories[0] if len(memories) == 1 else tuple(memories)
        storage = self._outputs.stored(geometry.shapes, arrays, out)
        self._run(geometry, inputs, storage.memories, numbers)
        storage.finish()
        return out

    def _run(
        self,
        geometry: _Geometry,
        inputs: list[Operand],
        memories: list[Memory],
        numbers: list[tuple[Plain, ...]],
    ) -> None:
        if geometry.dispatch is None:
            return
        outputs = memories if self.device.in_place else map(operand, memories)
        dispatch = watched(geometry.dispatch, self.label, self.program, geometry.env, self.device)
        words = dispatch(self._choose([*inputs, *outputs]), geometry.pack(numbers))
        if words[0] != RAN or words[1]:
            raise self.failure(words, geometry.env)

    def _named(self, numbers: Sequence[tuple[Plain, ...]]) -> dict[str, Number]:
        return {p.name: n[0] for (_, p, *_), n in zip(self._scalars, numbers, strict=True) if p.lanes == 1}

    def bound(
        self, env: Mapping[str, Number]
    ) -> tuple[Dispatch, Callable[[Sequence[tuple[Plain, ...]]], bytes]] | None:
        """What runs the program for these extents, and packs its parameters; None where there is nothing to compute."""
        program = self.program
        threads = [self._threads(launch.threads, env) for launch in program.launches]
        if not any(threads):
            return None
        self.require(program.requirements, env)
        return self.compile().bind(env), self._uniforms.packer(env)

    def _measure(
        self, key: tuple[object, ...], arrays: Sequence[Memory], numbers: Sequence[tuple[Plain, ...]]
    ) -> _Geometry:
        program = self.program
        shapes = [(p, a.shape) for (_, p, _), a in zip(self._arrays, arrays, strict=True)]
        env = bind(program, shapes, self._named(numbers))
        self.require(self._once, env)
        results = tuple(shape_of(program, a, env) for a in program.outputs)
        threads = [self._threads(launch.threads, env) for launch in program.launches]
        empty = not any(threads) or all(0 in shape for shape in results)
        pack = self._uniforms.packer(env)
        pipeline = None if empty else self.compile()
        dispatch = pipeline.bind(env) if pipeline is not None else None
        checked = pipeline.bind_checked(env) if pipeline is not None and self._alike else None
        warm = self._warm(checked, pack, results, env, numbers) if checked is not None else None
        geometry = _Geometry(env, results, pack, dispatch, warm)
        if len(self._geometries) >= KEPT_EXTENTS:
            self._geometries.clear()
        self._geometries[key] = geometry
        return geometry

    def _warm(
        self,
        checked: Checked,
        pack: Callable[[Sequence[tuple[Plain, ...]]], bytes],
        results: tuple[Shape, ...],
        env: Mapping[str, Number],
        numbers: Sequence[tuple[Plain, ...]],
    ) -> Warm:
        scalars = [
            QuickScalar(self._places[i], p, numbers[k] if k in self._sizing else None)
            for k, (i, p, *_) in enumerate(self._scalars)
        ]
        order = self._order([self._places[i] for i, *_ in self._arrays], self._given)
        made = (results, self._outputs.dtypes)
        return Warm(checked, pack, order, self._given, scalars, made, env, self.failure, self.device)

    def _threads(self, extent: Extent, env: Mapping[str, Number]) -> int:
        threads = whole(extent, env)
        if threads is None or not 0 <= threads <= INDEX_MAX:
            raise fault(
                SizeError,
                "grid-too-large",
                self.program,
                f"the grid has {show(extent)} = {threads} threads, and a grid has 0 to {INDEX_MAX}",
                help="call the kernel on parts of the arrays",
            )
        return threads

    def require(self, requirements: Sequence[Requirement], env: Mapping[str, Number]) -> None:
        for requirement in requirements:
            try:
                holds = evaluate(requirement.condition, env)
            except (ArithmeticError, ValueError):
                holds = False
            if not holds:
                known = ", ".join(f"{s} = {env[s]}" for s in sorted(symbols(requirement.condition)))
                where = f" where {known}" if known else ""
                raise LaunchFault(
                    Diagnostic(
                        requirement.slug,
                        f"{self.program.name}: {requirement.message} ({show(requirement.condition)} does "
                        f"not hold{where})",
                        where=requirement.place.where,
                        excerpt=requirement.place.excerpt,
                        help="pass arguments for which it holds",
                    )
                )

    def failure(self, words: Words, env: Mapping[str, Number]) -> MetaljitError:
        program = self.program
        if words[0] == UNFIT:
            return fault(
                DeviceFault,
                "threadgroup-unfit",
                program,
                f"device {self.device.name!r} ran threadgroups of {words[2]} threads, and the kernel is made for "
                f"{program.launches[0].threadgroup}: no result",
                help="choose a smaller threadgroup=, or run on device 'cpu'",
            )
        if words[0] != RAN:
            return fault(
                DeviceFault,
                "kernel-did-not-run",
                program,
                f"device {self.device.name!r} reported no error, but the kernel did not run: no result",
                help="the device may have lost power or memory: try again, or run on device 'cpu'",
            )
        if words[1] > len(program.asserts):
            return InternalError(f"{program.name} reported assert number {words[1]}, which it does not have")
        site = program.asserts[words[1] - 1]
        flat = words[2] | words[3] << 32
        position: list[str] = []
        for extent in reversed(site.grid):
            flat, index = divmod(flat, max(int(evaluate(extent, env)), 1))
            position.insert(0, str(index))
        at = f" at position ({', '.join(position)})" if position else ""
        return KernelAssertion(
            Diagnostic(
                "assertion-failed",
                f"{program.name}: the assertion{at} failed: {site.message}",
                where=site.place.where,
                excerpt=site.place.excerpt,
            )
        )


def operand(memory: Memory) -> Operand:
    """What a dispatch takes: device memory as it is, a host array contiguous and aligned."""
    if isinstance(memory, Array):
        return memory.operand
    flags = memory.flags
    return memory if flags.c_contiguous and flags.aligned else memory.copy()


def _quick_range(param: ScalarParam) -> tuple[Any, Any, Any]:
    """The Python type (None: there is none) and the bounds of values that need no further look."""
    if param.lanes == 1 and param.dtype.is_integer:
        return int, param.dtype.smallest, param.dtype.largest
    if param.lanes == 1 and param.dtype.is_float:
        return float, -65504.0, 65504.0
    return None, 0, 0
