"""The objects of metalcompute: a device makes kernels and buffers, a kernel functions, and a function runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from metaljit.metalcompute_arguments import (
    c_integer,
    check_count,
    contents_of,
    error,
    optional,
    positional,
    text_argument,
)
from metaljit.runtime import toolchain
from metaljit.runtime.emulator import functions as emulated
from metaljit.runtime.emulator.faults import Crash, Fault
from metaljit.runtime.emulator.process import Binding
from metaljit.runtime.emulator.sanitizer import sanitizing
from metaljit.runtime.msl.compile import Options
from metaljit.source import DeviceFault, Diagnostic

NAME = "metaljit emulator"
PAGE = 16384  # bytes: Metal gives memory by Apple's pages
EXECUTION_WIDTH = 32


class metalcompute_device(NamedTuple):
    """What `get_devices` says of a device; sizes in bytes, rates in bytes per second."""

    deviceName: str
    recommendedWorkingSetSize: int
    maxTransferRate: int
    hasUnifiedMemory: bool


@optional
def get_devices(*_: object) -> tuple[metalcompute_device, ...]:
    """The emulator; nothing where there is no compiler for it."""
    try:
        toolchain.find()
    except DeviceFault:
        return ()
    return (metalcompute_device(NAME, _memory() * 3 // 4, 0, True),)


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# ---- arguments, as C reads them ----


def device_index(args: tuple[object, ...], what: str) -> int:
    """A device's index; metalcompute does not look whether it could be read, so that Python finds the error later."""
    try:
        if len(args) > 1:
            raise TypeError(f"function takes at most 1 argument ({len(args)} given)")
        index = c_integer(args[0], 64) if args else -1
    except Exception as e:
        raise SystemError(f"{what} returned a result with an exception set") from e
    if index >= len(get_devices()) or not get_devices():
        raise error("Cannot create device")
    return index


def _threads(value: Any) -> int:
    """The number of a run's threads."""
    slots = () if isinstance(value, str) else ("index", "int", "float", "complex")
    if not any(hasattr(value, f"__{slot}__") for slot in slots):
        raise error("First argument should be an integer kernel count")
    try:
        return c_integer(int(value), 64)
    except Exception as e:
        raise SystemError("<class 'metalcompute.Run'> returned a result with an exception set") from e


# ---- objects ----


class Object:
    """What the objects have in common: no attributes but their own, and no copies."""

    __slots__ = ()

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


class Device(Object):
    """The emulator, as a device that makes kernels and buffers."""

    __slots__ = ()

    def __init__(self, *args: object, **_: object) -> None:
        device_index(args, "<class 'metalcompute.Device'>")

    @positional(1)
    def kernel(self, program: str) -> Kernel:
        """Compiles an MSL text. `error` with the compiler's messages where it is refused."""
        return Kernel(self, program)

    @positional(1)
    def buffer(self, contents: object) -> Buffer:
        """A buffer of so many zero bytes, or with a copy of these bytes."""
        return Buffer(self, contents)

    def __str__(self) -> str:
        return f"metalcompute.Device({NAME})"

    def _compile(self, program: str) -> emulated.Library:
        return emulated.Library(program, Options(version=(2, 3)))

    def _has_room(self, nbytes: int) -> bool:
        return 0 < nbytes <= _memory() // 2

    def _sanitizes(self) -> bool:
        return sanitizing()

    def _most_threads(self, function: emulated.Function) -> int:
        return max(function.most_threads // EXECUTION_WIDTH, 1) * EXECUTION_WIDTH

    def _execute(
        self, function: emulated.Function, count: int, buffers: Sequence[Buffer]
    ) -> tuple[Fault, ...]:
        """Runs `count` threads, rounded up to whole threadgroups, to their end."""
        width = self._most_threads(function)
        if count <= 0:
            return ()
        inputs = {p.index: p for p in function.kernel.inputs if p.what == "buffer"}
        bindings = {}
        for i, buffer in enumerate(buffers):
            name, writable = (inputs[i].name, inputs[i].is_written) if i in inputs else ("", True)
            bindings[i] = Binding(buffer._lent(exact=function.sanitize), name, writable)
        try:
            faults = function.run(bindings, groups=(-(-count // width), 1, 1), threadgroup=(width, 1, 1))
        except Crash as e:
            return e.faults
        for i, binding in bindings.items():
            if binding.writable and not faults:
                buffers[i]._take_back(binding.memory)
        return faults


class Kernel(Object):
    """A compiled text."""

    __slots__ = ("_device", "_library")

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        device, program = args[0], text_argument(args[1], 2)
        if not isinstance(device, Device):
            raise error("First argument should be a metalcompute.Device object")
        queue.tell()
        self._device = device
        try:
            self._library = device._compile(program)
        except DeviceFault as e:
            raise error(as_compiler(e)) from e

    @positional(1)
    def function(self, name: str) -> Function:
        """One of the text's kernels. `error` where it has none of that name."""
        return Function(self, name)

    def __str__(self) -> str:
        return "metalcompute.Kernel"


class Function(Object):
    """A kernel that can be run: `function(threads, *buffers)`."""

    __slots__ = ("_compiled", "_device", "_kernel")

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        kernel, name = args[0], text_argument(args[1], 2)
        if not isinstance(kernel, Kernel):
            raise error("First argument should be a metalcompute.Kernel object")
        self._kernel, self._device = kernel, kernel._device
        try:
            self._compiled = kernel._library.function(name, sanitize=self._device._sanitizes())
        except KeyError:
            raise error("Function not found") from None
        except DeviceFault as e:
            raise error(as_compiler(e)) from e

    def __call__(self, *args: Any, **_: object) -> Run:
        """Starts a run of `args[0]` threads, rounded up to whole threadgroups; the others are the buffers from 0 on."""
        return Run(self, args)

    def __str__(self) -> str:
        return "metalcompute.Function"


def _refusal(text: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise TypeError(text)

    return refuse


def _not_implemented(*_: object) -> Any:
    return NotImplemented


_OF_BYTEARRAY = frozenset(dir(bytearray)) - frozenset(dir(object))


class Buffer(bytearray):
    """Memory for kernels and Python. It has the buffer protocol, writable bytes, and nothing else of a bytearray."""

    __slots__ = ("__weakref__", "_whole")

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        device, contents = args
        if not isinstance(device, Device):
            raise error("First argument should be a metalcompute.Device object")
        queue.tell()
        source = contents_of(contents)
        nbytes = source if isinstance(source, int) else source.nbytes
        self._whole: NDArray[np.uint8] | None = None
        try:
            if not device._has_room(nbytes):
                raise MemoryError
            super().__init__(nbytes)
        except MemoryError:
            raise error("Could not make buffer") from None
        if not isinstance(source, int):
            np.frombuffer(self, np.uint8)[:] = source

    def _lent(self, exact: bool) -> NDArray[np.uint8]:
        """The memory for a run: as it lies, or in whole pages, of which the last is a copy that keeps its end."""
        own = np.frombuffer(self, np.uint8)
        if exact or own.nbytes % PAGE == 0:
            return own
        if self._whole is None:
            self._whole = np.zeros(-(-own.nbytes // PAGE) * PAGE, np.uint8)
        self._whole[: own.nbytes] = own
        return self._whole

    def _take_back(self, lent: NDArray[np.uint8]) -> None:
        if lent is self._whole:
            own = np.frombuffer(self, np.uint8)
            own[:] = lent[: own.nbytes]

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_BYTEARRAY:
            raise AttributeError(f"'metalcompute.Buffer' object has no attribute '{name}'")
        return super().__getattribute__(name)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _OF_BYTEARRAY]

    __iter__ = None  # type: ignore[assignment]
    __len__ = _refusal("object of type 'metalcompute.Buffer' has no len()")
    __getitem__ = _refusal("'metalcompute.Buffer' object is not subscriptable")
    __setitem__ = _refusal("'metalcompute.Buffer' object does not support item assignment")
    __delitem__ = _refusal("'metalcompute.Buffer' object does not support item deletion")
    __contains__ = _refusal("argument of type 'metalcompute.Buffer' is not iterable")
    __add__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _not_implemented
    __iadd__ = __imul__ = __lt__ = __le__ = __gt__ = __ge__ = _not_implemented
    __eq__, __ne__, __hash__ = object.__eq__, object.__ne__, object.__hash__  # type: ignore[assignment]
    __repr__, __reduce_ex__ = object.__repr__, Object.__reduce_ex__

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"metalcompute.Buffer(length={memoryview(self).nbytes})"


class Run(Object):
    """A run, which began when it was made: deleting it waits for its end."""

    __slots__ = ("_end",)

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        function, (count, *given) = args[0], args[1] or (None,)
        if not given:  # sic, before it looks at the number
            raise error("Buffer not found")
        queue.tell()
        threads, device = _threads(count), function._device
        buffers = [b if type(b) is Buffer else Buffer(device, b) for b in given]
        if not all(map(memoryview, buffers)):
            raise error("Buffer not found")
        self._end = queue.start(device, function._compiled, threads, buffers)

    def __del__(self) -> None:
        if hasattr(self, "_end"):  # else an argument was refused
            try:
                self._end.result()
            except BaseException as e:  # also an interrupt of the waiting
                queue.untold.append(type(e)(*e.args))
                raise

    def __str__(self) -> str:
        return "metalcompute.Run"


class Queue:
    """The runs, one after the other in the order of their starts, on a thread of their own.

    `untold` is what destructors met: they cannot raise it, `tell` can.
    """

    def __init__(self) -> None:
        self.untold: list[BaseException] = []
        self._thread: ThreadPoolExecutor | None = None
        self._process = 0

    def start(
        self, device: Device, function: emulated.Function, count: int, buffers: Sequence[Buffer]
    ) -> Future[None]:
        if self._thread is None or self._process != os.getpid():  # a forked child has no threads
            self._thread, self._process = ThreadPoolExecutor(1, "metalcompute"), os.getpid()
        job = [(device, function, count, buffers)]
        return self._thread.submit(_execute, job)

    def tell(self) -> None:
        if self.untold:
            raise self.untold.pop(0)


queue = Queue()


def _execute(job: list[tuple[Device, emulated.Function, int, Sequence[Buffer]]]) -> None:
    """Runs what is in the list, which is empty afterwards: nobody keeps the buffers of a run that has ended."""
    device, function, count, buffers = job.pop()
    faults = device._execute(function, count, buffers)
    if faults:
        raise error("\n".join(str(function.library.described(fault)) for fault in faults))


def as_compiler(fault: DeviceFault) -> str:
    """What Metal's compiler would print of a refused text: each message, the line, and a caret."""
    return "".join(_message(d) for d in fault.diagnostics) if fault.slug == "msl-refused" else str(fault)


def _message(d: Diagnostic) -> str:
    if d.span is None:
        return f"{d.where}: {d.severity}: {d.message}\n"
    source = d.span.source
    start, end = source.row_bounds(source.row(d.span.start))
    margin = "".join("\t" if c == "\t" else " " for c in source.text[start : d.span.start])
    return f"{d.span}: {d.severity}: {d.message}\n{source.text[start:end]}\n{margin}^\n"
