"""Kernels and functions as Python objects: decorate, specialise once, call many times.

In: a definition, and the arguments of a call. Out: results. A call finds its specialisation by the dtypes and
ranks of the arrays, the values of constants and of captured names; then the device's launcher does the rest.
"""

from __future__ import annotations

import operator
import os
import re
import reprlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import NoneType
from typing import Any, NoReturn, overload

import numpy as np

from . import compiled, definitions
from .arguments import Argument, ArrayArgument, ConstArgument, ScalarArgument
from .compiled import Parameter
from .definitions import Definition
from .dtypes import from_numpy
from .extents import show
from .frozen import frozen
from .program import Program
from .runtime import device as devices
from .runtime.array import describe_dtype
from .runtime.device import chosen
from .runtime.launch import Launcher
from .runtime.profile import span
from .runtime.warm import Warm
from .source import Diagnostic, LaunchFault, MetaljitError, Span, SyntaxFault, TypeFault


@frozen
class Spec:
    """An argument's dtype and shape without its data; None is an extent that may be anything."""

    shape: tuple[int | None, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)


def spec(shape: Sequence[int | None], dtype: Any) -> Spec:
    """`spec((None, None), f32)`: an array by dtype (of NumPy or the language) and shape."""
    return Spec(tuple(shape), getattr(dtype, "numpy", None) or np.dtype(dtype))


# Read once: a call of a compiled kernel takes microseconds, and so would this.
_INTERPRET = os.environ.get("METALJIT_INTERPRET", "0") not in ("", "0")


# ---- kernels ----


class _Last:
    """The last call of a kernel: a next one with the same device, captures and constants may be like it."""

    __slots__ = ("captured", "constants", "device", "warm")

    def __init__(
        self, device: str | None, captured: Any, constants: Sequence[tuple[int, Any]], warm: Warm
    ) -> None:
        self.device, self.captured, self.constants, self.warm = device, captured, constants, warm


def _never_changes(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_never_changes, value))
    return type(value) in (int, float, bool, str, NoneType)


class Kernel:
    """A kernel. Call it with arrays and numbers; see `docs/language.md`.

    Raises TypeFault where the kernel does not check for these types, LaunchFault (ShapeError, SizeError) where
    the arguments do not fit, DeviceFault where the device fails, KernelAssertion where an `assert` does.
    """

    def __init__(self, definition: Definition, device: str | None = None) -> None:
        self.definition = definition
        self.__name__ = definition.name
        self.__doc__ = definition.docstring()
        self._device = device
        self._launchers: dict[Any, Any] = {}
        self._programs: dict[Any, Program] = {}
        self._elsewhere: dict[str, Kernel] = {}
        self._lock = threading.RLock()
        self._captures: tuple[Sequence[definitions.Watch], list[Any], str] | None = None
        self._parameters: tuple[Parameter, ...] | None = None
        self._last: _Last | None = None

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    @property
    def __metaljit_text__(self) -> Any:
        return self.definition.text

    def on(self, device: str) -> Kernel:
        """The same kernel on a device named here, whatever the default is."""
        devices.find(device)
        with self._lock:
            if device not in self._elsewhere:
                other = self._elsewhere[device] = Kernel(self.definition, device)
                other._programs, other._lock, other._elsewhere = self._programs, self._lock, self._elsewhere
            return self._elsewhere[device]

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        if _INTERPRET and type(self) is Kernel:
            return self.interpret(*args, out=out, **named)
        last, device = self._last, chosen.value
        if last is not None and not named and last.device is device and last.captured is self._captured():
            for at, value in last.constants:
                if len(args) <= at or args[at] is not value:
                    break
            else:
                result = last.warm(args, out)
                if result is not NotImplemented:
                    return result
        if not self._launchers:
            self._prepare(self._device or device)
        values = self._bind(args, named)
        if any(hasattr(v, "__metaljit_traced__") for v in values):
            return self._record(values)
        key, passed = self._key(values, self._device or devices.named(device).name)
        launcher = self._launchers.get(key)
        if launcher is None:
            launcher = self._launcher(key, values)
        result = launcher(passed, out)
        self._last = self._remembered(device, launcher.warm, key[1], values)
        return result

    def _record(self, values: Sequence[Any]) -> Any:
        """A node of the graph that is being traced."""
        from .graph.calls import record

        arguments = {p.name: self._argument(p, v) for p, v in zip(self.parameters, values, strict=True)}
        key = (self._captured(), *((n, repr(a)) for n, a in arguments.items()))
        return record(self, values, arguments, key)

    def _remembered(
        self, device: str | None, warm: Warm | None, captured: Any, values: Sequence[Any]
    ) -> _Last | None:
        """What the next call is compared with, if a call like this one needs no more than that."""
        constants = [(k, values[k]) for k, p in enumerate(self.parameters) if p.kind == "const"]
        if warm is None or (self.parameters and self.parameters[-1].keyword_only):
            return None
        if not all(_never_changes(value) for _, value in constants):
            return None
        if any(isinstance(value, np.generic) for value in values):
            return None  # its type may have chosen the specialisation
        return _Last(device, captured, constants, warm)

    # ---- binding ----

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a call passes (those declared `Out` are not)."""
        if self._parameters is None:
            self._parameters = compiled.parameters(self.definition)
        return self._parameters

    def _bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        parameters = self.parameters
        if len(args) == len(parameters) and not named and not (parameters and parameters[-1].keyword_only):
            return args
        positional = [p.name for p in parameters if not p.keyword_only]
        given = dict(zip(positional, args, strict=False))
        if len(args) > len(positional):
            by_position = " by position" if len(positional) < len(parameters) else ""
            plural = "" if len(positional) == 1 else "s"
            takes = f"takes {len(positional)} argument{plural}{by_position}"
            self._refuse(f"{takes} and was given {len(args)}")
        known = {p.name for p in parameters}
        for name, value in named.items():
            if name not in known:
                self._refuse(f"has no parameter {name!r}; it takes {', '.join(known) or 'none'}")
            if name in given:
                self._refuse(f"was given {name!r} twice")
            given[name] = value
        for p in parameters:
            if p.name not in given:
                if not p.has_default:
                    self._refuse(f"needs the argument {p.name!r}")
                given[p.name] = p.default
        return [given[p.name] for p in parameters]

    def _refuse(self, message: str) -> NoReturn:
        names = ", ".join(p.name for p in self.parameters)
        raise LaunchFault(
            Diagnostic(
                "argument-count",
                f"kernel {self.__name__!r} {message}",
                self.definition.tree.name_span,
                help=f"{self.__name__}({names})",
            )
        )

    def _key(self, values: Sequence[Any], device: str) -> tuple[Any, Sequence[Any]]:
        """What picks the specialisation, the device's name first, and the values that are passed at run time."""
        parts: list[Any] = [device, self._captured()]
        add = parts.append
        constants = False
        for p, value in zip(self.parameters, values, strict=True):
            kind = p.kind
            if kind == "const":
                add(self._constant_key(p, value))
                constants = True
            elif kind == "scalar":
                add(value.dtype if isinstance(value, np.generic) else None)
            else:
                try:
                    add(value.dtype)
                    add(value.ndim)
                except AttributeError:
                    self._refuse_array(p, value)
        if not constants:
            return tuple(parts), values
        return tuple(parts), [v for p, v in zip(self.parameters, values, strict=True) if p.kind != "const"]

    def _refuse_array(self, p: Parameter, value: Any) -> NoReturn:
        shown = reprlib.repr(value)  # short, and of objects whose own `repr` raises
        raise LaunchFault(
            Diagnostic(
                "not-an-array",
                f"{p.name!r} takes an array and was given {type(value).__name__} {shown}",
                self._place(p),
                "declared here",
                help=f"make one: `np.asarray({p.name}, dtype=…)`",
            )
        )

    def _constant_key(self, p: Parameter, value: Any) -> Any:
        what = _unfit(value)
        if what is not None:
            raise LaunchFault(
                Diagnostic(
                    "wrong-const",
                    f"{p.name!r} is a compile-time value and was given {what}",
                    self._place(p),
                    "declared here",
                    help="pass a number, a string, or a tuple of them",
                )
            )
        return type(value), repr(value) if isinstance(value, float | tuple) else value

    def _place(self, p: Parameter) -> Span | None:
        """Where a parameter is declared."""
        found = [q for q in self.definition.tree.parameters if q.name == p.name]
        return found[0].name_span if found else None

    def _captured(self) -> Any:
        """A digest of the text and what it captures; found again only when a captured object is another one."""
        last = self._captures
        if last is not None:
            watched, before, key = last
            if all(map(operator.is_, before, [get(name) for get, name in watched])):
                return key
        watched = definitions.watched(self.definition)
        now = [get(name) for get, name in watched]
        key = self.definition.fingerprint()
        self._captures = (watched, now, key)
        return key

    # ---- specialising ----

    def _prepare(self, device: str | None) -> None:
        """Before the text is parsed for a first call: the device may have something to do meanwhile."""
        devices.named(device).prepare()

    def _launcher(self, key: Any, values: Sequence[Any]) -> Launcher:
        with self._lock:
            found = self._launchers.get(key)
            if found is not None:
                return found  # type: ignore[no-any-return]
            place = devices.find(key[0])
            kinds = [p.kind for p in self.parameters]
            passed = [k for k, kind in enumerate(kinds) if kind != "const"]
            made = Launcher(place, self._program(values), passed, len(kinds))
            self._launchers[key] = made
            return made

    def program(self, *args: Any, **named: Any) -> Program:
        """The program of this specialisation: arguments, or `spec`s in their place."""
        return self._program(self._bind(args, named))

    def _program(self, values: Sequence[Any]) -> Program:
        arguments = {p.name: self._argument(p, v) for p, v in zip(self.parameters, values, strict=True)}
        key = (self._captured(), *((n, repr(a)) for n, a in arguments.items()))
        with self._lock:
            if key not in self._programs:
                try:
                    with span("trace", self.__name__):
                        self._programs[key] = compiled.program(self.definition, arguments, key)
                except MetaljitError:
                    self._captures = None  # a name that is missing now may be there at the next call
                    raise
            return self._programs[key]

    def _argument(self, p: Parameter, value: Any) -> Argument:
        """What the compiler needs to know of an argument."""
        if p.kind == "const":
            return ConstArgument(value)
        if p.kind == "scalar":
            return ScalarArgument(from_numpy(value.dtype) if isinstance(value, np.generic) else None)
        if not isinstance(value.dtype, np.dtype):
            self._refuse_array(p, value)
        dtype = from_numpy(value.dtype)
        if dtype is None:
            raise LaunchFault(self._no_dtype(p, value))
        return ArrayArgument(dtype, value.ndim)

    def _no_dtype(self, p: Parameter, value: Any) -> Diagnostic:
        if value.dtype == np.float64:
            return Diagnostic(
                "no-f64",
                f"{p.name!r} was given a float64 array, and Apple GPUs have no 64-bit floats",
                self._place(p),
                "declared here",
                help=f"convert it: `{p.name}.astype(np.float32)`",
            )
        return Diagnostic(
            "wrong-dtype",
            f"{p.name!r} was given an array of {describe_dtype(value.dtype)}, which the language has not",
            self._place(p),
            "declared here",
            help="it has bool, i8 … i64, u8 … u64, f16, bf16 and f32",
        )

    def msl(self, *args: Any, **named: Any) -> str:
        """The Metal source of this specialisation."""
        return self.program(*args, **named).msl

    def compile(self, *args: Any, **named: Any) -> Kernel:
        """Compiles for these arguments (or specs) now, so that the first call does not."""
        values = self._bind(args, named)
        key, _ = self._key(values, self._device or devices.current().name)
        self._launcher(key, values).compile()
        return self

    def explain(self, *args: Any, **named: Any) -> str:
        """What the compiler decided: the launch, the guards that remain, the cost of an element."""
        program = self.program(*args, **named)
        lines = [f"{program.name}: one launch over {_shown_grid(program)}"]
        lines.append(f"  {program.cost.operations} operations and {program.cost.nbytes} bytes a thread")
        lines += [*program.notes] or ["  every index is proved in range, or has a border"]
        return "\n".join(lines)

    def interpret(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Runs the kernel in CPython, an element at a time: breakpoints and prints work."""
        return self._interpreted(*args, out=out, **named)

    @cached_property
    def _interpreted(self) -> Kernel:
        from .interpret import interpreted

        return interpreted(self)


def _unfit(value: Any) -> str | None:
    """What keeps a value from being a compile-time constant, in words; None where nothing does."""
    match value:
        case int() if not -(1 << 63) <= value < 1 << 64:
            return f"an integer of {value.bit_length()} bits, which no dtype holds"
        case tuple():
            found = next((what for v in value if (what := _unfit(v)) is not None), None)
            return f"a tuple with {found}" if found is not None else None
        case bool() | int() | float() | str() | None | np.generic():
            return None
        case _:
            try:
                hash(value)
            except Exception:
                return f"a {type(value).__name__}, which can change"
            return None


def _shown_grid(program: Program) -> str:
    launch = program.launches[0]
    return f"{show(launch.threads)} threads" + (
        f" in groups of {launch.threadgroup}" if launch.threadgroup else ""
    )


# ---- functions and decorators ----


class Function:
    """A device function: called in kernels, and by interpret mode."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.__name__ = definition.name

    @property
    def __metaljit_text__(self) -> Any:
        return self.definition.text

    def __repr__(self) -> str:
        return f"<device function {self.__name__}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise TypeFault(
            Diagnostic(
                "outside-kernel",
                f"{self.__name__!r} is a device function and was called by Python itself",
                help="call it in a kernel, or run the kernel with `kernel.interpret(…)`",
            )
        )


def _locals(depth: int) -> Mapping[str, Any]:
    frame = sys._getframe(depth)
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    *,
    grid: Any = None,
    threadgroup: Any = None,
    math: str = "precise",
    asserts: bool = True,
    loop_limit: int = 0,
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a Python function a kernel.

    `grid` (in groups) and `threadgroup` make it a grid kernel; `math="fast"` trades NaN, infinity and signed
    zero for speed; `asserts=False` compiles without assertions; `loop_limit` bounds the turns of a `while`.
    The options are read from the text of the decorator, as in a `.mjk` file.
    """
    if function is not None:
        return Kernel(definitions.from_python(function, True, _locals(2)))

    def decorate(function: Callable[..., Any]) -> Kernel:
        made = Kernel(definitions.from_python(function, True, _locals(2)))
        if options and not re.search(r"@[^\n]*\(", made.definition.source.text):
            raise SyntaxFault(
                Diagnostic(
                    "hidden-options",
                    f"the options {', '.join(options)} of kernel {made.__name__!r} do not stand in its decorator",
                    made.definition.tree.name_span,
                    help=f"write `@mj.kernel({next(iter(options))}=…)` above the `def`: the compiler reads the text",
                )
            )
        return made

    return decorate


def function(function: Callable[..., Any], /) -> Function:
    """Makes a Python function a device function, to be called in kernels."""
    return Function(definitions.from_python(function, False, _locals(2)))


# recognised in decorators by the compiler
kernel.__metaljit_builtin__ = "kernel"  # type: ignore[attr-defined]
function.__metaljit_builtin__ = "function"  # type: ignore[attr-defined]
