"""The interface of the package metalcompute, on any machine: programs written for it run on the emulator.

    import metaljit.metalcompute as mc          # instead of: import metalcompute as mc
    sys.modules["metalcompute"] = mc            # for a program whose text stays as it is

It is the interface of version 0.2.9, in both of its generations and with its habits: a number is tried before bytes,
a buffer of no bytes cannot be made, only buffers are shared and anything else is copied, the grid is rounded up to
whole threadgroups, a run goes on in the background until it is deleted, texts are compiled for Metal 2.3.

Two things differ. What a run does wrong is not lost: a synchronous `run` raises `error`, and where a `Run` is deleted
Python prints the fault at once, as it does for every exception in a destructor, and the next call here raises it too.
And a run writes into a buffer when it ends, all at once: what Python writes there meanwhile is overwritten.

A buffer's last page is the kernel's, as on a GPU: the rounded grid of an unguarded kernel does no harm there. With
`METALJIT_SANITIZE=1` a buffer ends where it ends, and that kernel is reported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from metaljit.frozen import mutable
from metaljit.metalcompute_arguments import (
    c_int,
    check_count,
    contents_of,
    error,
    memory_of,
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

__all__ = ["Device", "compile", "error", "get_devices", "init", "release", "rerun", "run"]

NAME = "metaljit emulator"
PAGE = 16384  # bytes: Metal gives memory by Apple's pages
EXECUTION_WIDTH = 32


class metalcompute_device(NamedTuple):
    """What `get_devices` says of a device; sizes in bytes, rates in bytes per second."""

    deviceName: str
    recommendedWorkingSetSize: int
    maxTransferRate: int
    hasUnifiedMemory: bool


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


def _index(args: tuple[object, ...], what: str) -> int:
    """A device's index; metalcompute does not look whether it could be read, so that Python finds the error later."""
    try:
        if len(args) > 1:
            raise TypeError(f"function takes at most 1 argument ({len(args)} given)")
        index: int = args[0].__index__() if args else -1  # type: ignore[attr-defined]
    except (AttributeError, TypeError) as e:
        raise SystemError(f"{what} returned a result with an exception set") from e
    if index >= len(get_devices()) or not get_devices():
        raise error("Cannot create device")
    return index


def _threads(value: Any) -> int:
    """The number of a run's threads."""
    slots = () if isinstance(value, Buffer) else ("index", "int", "float", "complex")
    if not any(hasattr(value, f"__{slot}__") for slot in slots):
        raise error("First argument should be an integer kernel count")
    try:
        return int(value)
    except Exception as e:
        raise SystemError("bad argument to internal function") from e


# ---- objects ----


class Device:
    """The emulator, as a device that makes kernels and buffers."""

    def __init__(self, *args: object, **_: object) -> None:
        _index(args, str(type(self)))

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

    def _allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """Zeros, in whole pages."""
        if not 0 < nbytes <= _memory() // 2:
            raise error("Could not make buffer")
        return np.zeros(-(-nbytes // PAGE) * PAGE, np.uint8)

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
            bindings[i] = Binding(buffer._bytes(exact=function.sanitize), name, writable)
        try:
            return function.run(bindings, groups=(-(-count // width), 1, 1), threadgroup=(width, 1, 1))
        except Crash as e:
            return e.faults


class Kernel:
    """A compiled text."""

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        device, program = args[0], text_argument(args[1], 2)
        if not isinstance(device, Device):
            raise error("First argument should be a metalcompute.Device object")
        _queue.tell()
        self._device = device
        try:
            self._library = device._compile(program)
        except DeviceFault as e:
            raise error(_as_compiler(e)) from e

    @positional(1)
    def function(self, name: str) -> Function:
        """One of the text's kernels. `error` where it has none of that name."""
        return Function(self, name)

    def __str__(self) -> str:
        return "metalcompute.Kernel"


class Function:
    """A kernel that can be run: `function(threads, *buffers)`."""

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
            raise error(_as_compiler(e)) from e

    def __call__(self, *args: Any, **_: object) -> Run:
        """Starts a run of `args[0]` threads, rounded up to whole threadgroups; the others are the buffers from 0 on."""
        return Run(self, args)

    def __str__(self) -> str:
        return "metalcompute.Function"


class Buffer(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """Memory for kernels and Python. It has the buffer protocol, writable bytes, and nothing else of an array."""

    _whole: NDArray[np.uint8]
    __array_ufunc__ = None  # type: ignore[assignment]

    def __new__(cls, *args: Any) -> Buffer:
        check_count(len(args), 2)
        device, contents = args
        if not isinstance(device, Device):
            raise error("First argument should be a metalcompute.Device object")
        _queue.tell()
        source = contents_of(contents)
        nbytes = source if isinstance(source, int) else source.nbytes
        whole = device._allocate(nbytes)
        made = whole[:nbytes].view(cls)
        made._whole = whole
        if not isinstance(source, int):
            whole[:nbytes] = np.frombuffer(source, np.uint8)
        return made

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            return super().__getattribute__(name)
        raise AttributeError(f"'metalcompute.Buffer' object has no attribute '{name}'")

    def _bytes(self, exact: bool) -> NDArray[np.uint8]:
        return self._whole[: super().__getattribute__("size")] if exact else self._whole

    def _no(self, *_: object) -> NoReturn:
        raise TypeError("'metalcompute.Buffer' object has the buffer protocol only")

    __len__ = __getitem__ = __setitem__ = __iter__ = __contains__ = _no

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__  # type: ignore[assignment]
    __repr__ = object.__repr__

    def __str__(self) -> str:
        return f"metalcompute.Buffer(length={self._bytes(exact=True).size})"


class Run:
    """A run, which began when it was made: deleting it waits for its end."""

    def __init__(self, *args: Any) -> None:
        check_count(len(args), 2)
        function, (count, *given) = args[0], args[1] or (None,)
        if not given:
            raise error("Buffer not found")
        _queue.tell()
        threads, device = _threads(count), function._device
        buffers = [b if type(b) is Buffer else Buffer(device, b) for b in given]
        self._end = _queue.start(device, function._compiled, threads, buffers)

    def __del__(self) -> None:
        if "_end" in self.__dict__:  # else an argument was refused
            try:
                self._end.result()
            except BaseException as e:  # also an interrupt of the waiting
                _queue.untold.append(type(e)(*e.args))
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


_queue = Queue()


def _execute(job: list[tuple[Device, emulated.Function, int, Sequence[Buffer]]]) -> None:
    """Runs what is in the list, which is empty afterwards: nobody keeps the buffers of a run that has ended."""
    device, function, count, buffers = job.pop()
    faults = device._execute(function, count, buffers)
    if faults:
        raise error("\n".join(str(function.library.described(fault)) for fault in faults))


def _as_compiler(fault: DeviceFault) -> str:
    """What Metal's compiler would print of a refused text: each message, the line, and a caret."""
    return "".join(_message(d) for d in fault.diagnostics) if fault.slug == "msl-refused" else str(fault)


def _message(d: Diagnostic) -> str:
    if d.span is None:
        return f"{d.where}: {d.severity}: {d.message}\n"
    source = d.span.source
    start, end = source.row_bounds(source.row(d.span.start))
    margin = "".join("\t" if c == "\t" else " " for c in source.text[start : d.span.start])
    return f"{d.span}: {d.severity}: {d.message}\n{source.text[start:end]}\n{margin}^\n"


# ---- the first generation: one device, one function, one input and one output, no objects ----


@mutable
class _State:
    device: Device | None = None
    function: emulated.Function | None = None
    buffers: tuple[Buffer, Buffer] | None = None
    was_run: bool = False


_state = _State()


def init(*args: object) -> None:
    """Opens a device."""
    _index(args, "<built-in function init>")
    _state.device, _state.function = Device(), None


def release(*_: object) -> None:
    """Lets everything go."""
    _state.device = _state.function = _state.buffers = None
    _state.was_run = False


@positional(2)
def compile(program: str, function: str) -> None:
    """Compiles a text, and takes one of its kernels."""
    text_argument(program, 1)
    text_argument(function, 2)
    if _state.device is None:
        raise error("Not ready to compile")
    kernel = _state.device.kernel(program)
    try:
        _state.function, _state.buffers = kernel.function(function)._compiled, None
    except error as e:
        raise error(str(e).replace("Function not found", "Failed to find function")) from e


@positional(3)
def run(source: object, target: object, count: int) -> None:
    """Runs `count` threads with a copy of `source` as buffer 0, and copies buffer 1 into `target` at the end."""
    threads = c_int(count)
    views = [memory_of(source, "Unsupported input format"), memory_of(target, "Unsupported output format")]
    if views[1].readonly:
        raise error("Unsupported output format")
    for view, direction in reversed(list(zip(views, ("input", "output"), strict=True))):
        if view.format not in ("f", "B"):
            raise error(f"Unsupported {direction} format")
    if _state.device is None or _state.function is None:
        raise error("Not ready to compute")
    for view, direction in zip(views, ("input", "output"), strict=True):
        if view.nbytes == 0:
            raise error(f"Failed to make {direction} buffer")
    _state.buffers = _state.device.buffer(views[0]), _state.device.buffer(views[1].nbytes)
    rerun(threads)
    np.frombuffer(views[1], np.uint8)[:] = _state.buffers[1]._bytes(exact=True)


@positional(1)
def rerun(count: int) -> None:
    """Runs again with the buffers of the last `run`, whose results it leaves where they are."""
    threads = c_int(count)
    if _state.device is None or _state.function is None or _state.buffers is None:
        raise error(
            "Failed to make output buffer"
        )  # sic: its two halves number "not ready to run" differently
    _queue.start(_state.device, _state.function, threads, _state.buffers).result()
