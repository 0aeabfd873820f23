"""`@jit`: a Python function of arrays, traced once for each signature and run as few kernels.

In: a call. Out: its results. A signature is the structure of the arguments, the dtypes and ranks of arrays, which extents
are 1, the types of numbers, and the values of static arguments. A trace serves every size and every number, unless the
function itself asked about a size.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import numpy as np

from ..compiler import plan as planning
from ..dtypes import BOOL, F32, I32, DType, from_numpy
from ..executables import Compiled, Executable
from ..extents import Extent, Lit, Sym, evaluate
from ..frozen import frozen
from ..kernels import Spec
from ..runtime import device as devices
from ..runtime.plan import PlanLauncher
from ..runtime.profile import span
from ..runtime.warm import Warm
from ..source import Diagnostic, LaunchFault
from ..symbols import Builtin
from . import methods as _methods  # noqa: F401 (gives traced arrays NumPy's methods)
from . import trees
from .context import tracing
from .traced import Trace, Traced, entered, extents_of, fault

if TYPE_CHECKING:
    from .explain import Explanation

_OWN = re.compile(r"(out|t)\d*")  # what kernels call their results and what lies between kernels

_tracing = threading.RLock()  # one for all functions, since a trace may call another function


@frozen
class Made:
    """A trace, compiled."""

    trace: Trace
    planned: planning.Planned
    compiled: Compiled


class Jitted:
    """A traced function; see `jit`."""

    __name__: str

    def __init__(self, function: Callable[..., Any], static: Sequence[str], fused: bool) -> None:
        update_wrapper(self, function)
        self.function = function
        self._fused = fused
        self.signature = inspect.signature(function)
        names = list(self.signature.parameters)
        self.static = frozenset(static) | {
            n for n, p in self.signature.parameters.items() if _is_const(p.annotation)
        }
        for name in static:
            if name not in names:
                raise TypeError(f"{function.__name__} has no parameter {name!r} to be static")
        self._made: dict[Any, list[Made]] = {}
        self._last: tuple[str | None, Warm] | None = None

    def __repr__(self) -> str:
        return f"<jit {self.__name__}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        last, device = self._last, devices.chosen.value
        if last is not None and not named and last[0] is device:
            result = last[1](args, None)
            if result is not NotImplemented:
                return result
        names, values, key = self._signature(args, named)
        outer = next((v.trace for v in values if type(v) is Traced), None)
        if outer is not None:
            return self._part_of(outer, args, named)
        made = self._find(names, values, key, args, named)
        found = made.compiled.run(values)
        self._last = self._remembered(made.compiled, device, args, values)
        return found

    def _part_of(self, trace: Trace, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The call as part of the trace that makes it; arrays from outside of that are its inputs too."""
        bound, passed = self._bound(args, named)
        for name in passed:
            leaves, structure = trees.flatten(bound.arguments[name])
            lifted = (entered(trace, v) if _is_array(v) else v for _, v in leaves)
            bound.arguments[name] = trees.rebuilt(structure, lifted)
        return self.function(*bound.args, **bound.kwargs)

    def _remembered(
        self, made: Compiled, device: str | None, args: Sequence[Any], values: Sequence[Any]
    ) -> tuple[str | None, Warm] | None:
        """What the next call is tried with: it runs that call if it is like this one, argument by argument."""
        warm = made.launcher.warm
        if (
            warm is None
            or made.captured
            or len(args) != len(values)
            or any(a is not v for a, v in zip(args, values, strict=True))
        ):
            return None
        plain = made.structure is None or (
            made.structure[0] is tuple and made.structure[2] == (None,) * len(made.returned)
        )
        in_order = made.returned == tuple((True, k) for k in range(len(made.returned)))
        if not plain or not in_order or any(isinstance(v, np.generic) for v in values):
            return None
        return device, warm

    def explain(self, *args: Any, **named: Any) -> Explanation:
        """What became of the function for these arguments: kernels, bytes, and for every edge why it was fused or not.

        The text can also be drawn: see `Explanation`.
        """
        from .explain import explained

        names, values, key = self._signature(args, named)
        made = self._find(names, values, key, args, named)
        captured = made.compiled.arrays()
        numbers = {n: v for n, v in zip(names, values, strict=True) if not hasattr(v, "shape")}
        env = _env([*names, *(f"captured{k}" for k in range(len(captured)))], [*values, *captured])
        return explained(made.planned, {**env, **numbers})

    def msl(self, *args: Any, **named: Any) -> str:
        """The Metal source of every kernel, in the order in which they run."""
        names, values, key = self._signature(args, named)
        steps = self._find(names, values, key, args, named).planned.plan.programs
        return "\n".join(dict.fromkeys(step.program.msl for step in steps))

    # ---- signatures ----

    def _bound(
        self, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[inspect.BoundArguments, frozenset[str]]:
        """The arguments, and which are passed at run time: not the static ones, and not defaults, which never change."""
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as e:
            raise LaunchFault(
                Diagnostic("argument-count", f"{self.__name__}: {e}", help=f"{self.__name__}{self.signature}")
            ) from None
        passed = frozenset(bound.arguments) - self.static
        bound.apply_defaults()
        return bound, passed

    def _signature(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[str], list[Any], Any]:
        """Names and values of all leaves that are passed at run time, and what a trace is found by."""
        bound, passed = self._bound(args, named)
        names: list[str] = []
        values: list[Any] = []
        key: list[Any] = [devices.current().name]
        for name, value in bound.arguments.items():
            if name not in passed:
                key.append((type(value), value) if name in self.static else name)
                continue
            leaves, structure = trees.flatten(value, name)
            key.append(structure)
            for path, leaf in leaves:
                names.append(f"{path}_" if _OWN.fullmatch(path) else path)
                values.append(leaf)
                key.append(self._kind(path, leaf))
        return names, values, tuple(key)

    def _kind(self, name: str, value: Any) -> Any:
        if type(value) is Traced:
            return Traced  # the function becomes part of that trace, whatever the shape: asking for it would be a decision
        dtype = getattr(value, "dtype", None)
        if dtype is not None:
            return (dtype, *(n == 1 for n in value.shape))
        if isinstance(value, bool | int | float):
            return type(value)
        self._refuse_leaf(name, value)

    def _refuse_leaf(self, name: str, value: Any) -> NoReturn:
        raise LaunchFault(
            Diagnostic(
                "jit-argument",
                f"{self.__name__}: {name!r} is a {type(value).__name__}, and a trace takes arrays and numbers",
                help=f'what the function only looks at is static: `@mj.jit(static=["{name.partition(".")[0]}"])`',
            )
        )

    # ---- tracing ----

    def _find(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        key: Any,
        args: Sequence[Any],
        named: Mapping[str, Any],
    ) -> Made:
        """What serves a call of these arguments; traced now if nothing does yet."""
        known = self._made.setdefault(key, [])
        found = self._serving(known, names, values)
        if found is None:
            with _tracing:
                found = self._serving(known, names, values)  # another thread may have been here meanwhile
                if found is None:
                    with span("trace", self.__name__):
                        found = self._trace(names, values, args, named, key[0])
                        known.append(found)
        return found

    def _serving(self, known: Sequence[Made], names: Sequence[str], values: Sequence[Any]) -> Made | None:
        fits = (made for made in known if not made.trace.guards or self._holds(made, names, values))
        return next(fits, None)

    def _holds(self, made: Made, names: Sequence[str], values: Sequence[Any]) -> bool:
        env = _env(names, values) | _env([n for n, _ in made.trace.captured], made.compiled.captured)
        return all(evaluate(guard, env) for guard in made.trace.guards)

    def _trace(
        self,
        names: Sequence[str],
        values: Sequence[Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
        device: str,
    ) -> Made:
        trace = Trace(self.function.__name__, _env(names, values))
        shapes = [
            extents_of(n, v.shape) if hasattr(v, "dtype") else None
            for n, v in zip(names, values, strict=True)
        ]
        return self._compiled(trace, names, values, shapes, args, named, device)

    def _compiled(
        self,
        trace: Trace,
        names: Sequence[str],
        values: Sequence[Any],
        shapes: Sequence[Sequence[Extent] | None],
        args: Sequence[Any],
        named: Mapping[str, Any],
        device: str,
    ) -> Made:
        """The function traced with arrays of these extents and with numbers."""
        given = [
            trace.number(name, _number_type(value))
            if shape is None
            else trace.array(name, value.dtype, shape)
            for name, value, shape in zip(names, values, shapes, strict=True)
        ]
        leaves = iter(given)
        bound, passed = self._bound(args, named)
        for name, value in bound.arguments.items():
            if name in passed:
                bound.arguments[name] = trees.rebuilt(trees.flatten(value)[1], leaves)
        with tracing(trace):
            result = self.function(*bound.args, **bound.kwargs)
        found, structure = trees.flatten(result)
        results = [trace.lifted(v) if _is_array(v) and type(v) is not Traced else v for _, v in found]
        refs = [v.ref for v in results if type(v) is Traced]
        changed = [(v, now.ref) for v, now in trace.variables.items() if now.ref != trace.lifted(v).ref]
        different = list(dict.fromkeys([*refs, *(r for _, r in changed)]))
        if not different:
            fault("nothing-traced", f"{self.__name__} returns nothing that it computed from its arguments")
        params = [t.ref for t in given] + [trace.lifted(a).ref for _, a in trace.captured]
        planned = planning.plan(trace.graph, trace.name, params, different, fused=self._fused)
        returned = tuple((True, different.index(v.ref)) if type(v) is Traced else (False, v) for v in results)
        compiled = Compiled(
            planned.plan,
            PlanLauncher(devices.find(device), planned.plan),
            tuple(a for _, a in trace.captured),
            structure,
            returned,
            tuple((v, different.index(r)) for v, r in changed),
        )
        return Made(trace, planned, compiled)

    # ---- ahead of time ----

    def compile(self, *args: Any, specialize: Literal["shapes"] | None = None, **named: Any) -> Executable:
        """Traces and compiles now, for arguments like these: `spec`s, arrays, numbers, and static values.

        None is an extent that a run may have any of; so are the extents of arrays. With `specialize="shapes"` they are
        those given, which the kernels then know. Numbers are passed at each run.
        """
        from .explain import explained

        names, values, key = self._signature(args, named)
        fixed = specialize == "shapes"
        shapes = [_spec_extents(n, v, fixed) for n, v in zip(names, values, strict=True)]
        trace = Trace(self.function.__name__, {} if fixed else None)
        made = self._compiled(trace, names, values, shapes, args, named, key[0])
        made.compiled.launcher.compile()
        bound, passed = self._bound(args, named)
        arguments = tuple(v for n, v in bound.arguments.items() if n in passed)
        return Executable(self.__name__, made.compiled, trees.flatten(arguments)[1], explained(made.planned))


def _spec_extents(name: str, value: Any, fixed: bool) -> Sequence[Extent] | None:
    """The extents of an argument of `compile`; None for a number."""
    if not hasattr(value, "dtype"):
        return None
    given = isinstance(value, Spec) or fixed
    found: list[Extent] = []
    for k, n in enumerate(value.shape):
        if n is None and fixed:
            fault(
                "traced-extent",
                f"axis {k} of {name!r} is left open, and specialize='shapes' needs it",
                "give the extent",
            )
        found.append(Lit(n) if n == 1 or (given and n is not None) else Sym(f"{name}.{k}"))
    return found


def _env(names: Sequence[str], values: Sequence[Any]) -> dict[str, int]:
    """The extents of a call, and the whole numbers, which may decide extents."""
    found: dict[str, int] = {}
    for name, value in zip(names, values, strict=True):
        if isinstance(value, int | np.integer):
            found[name] = int(value)
        elif hasattr(value, "dtype"):
            found |= {f"{name}.{k}": e for k, e in enumerate(value.shape)}
    return found


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _is_const(annotation: Any) -> bool:
    head = getattr(annotation, "__origin__", annotation)
    if isinstance(annotation, str):
        return annotation.split("[")[0].rpartition(".")[2] == "const"
    return isinstance(head, Builtin) and head.name == "const"


def _number_type(value: Any) -> DType:
    if isinstance(value, np.generic):
        found = from_numpy(value.dtype)
        if found is not None:
            return found
    return {bool: BOOL, int: I32}.get(type(value), F32)


@overload
def jit(function: Callable[..., Any], /) -> Jitted: ...
@overload
def jit(*, static: Sequence[str] = (), fuse: bool = True) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None, /, *, static: Sequence[str] = (), fuse: bool = True
) -> Any:
    """Makes a Python function of arrays one that runs as few kernels.

    The function is called once for each signature, with arrays that write down what is done with them: NumPy's operators
    and functions, views, metaljit's ops, your own kernels, other jitted functions. Arguments and results may be dicts,
    lists, tuples and dataclasses. A Python number is passed at run time; `static` names parameters that the function sees
    as they are (so does the annotation `const[…]`), each value of which has a trace of its own. Without `fuse` each
    step is a kernel of its own, with the same results to the bit.

    Raises TypeFault where the function does what a trace cannot, ShapeError where shapes do not go together.
    """
    if function is not None:
        return Jitted(function, static, fuse)
    return lambda f: Jitted(f, static, fuse)
