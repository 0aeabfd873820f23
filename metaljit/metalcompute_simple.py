"""The first generation of metalcompute: one device, one function, one input and one output, no objects."""

from __future__ import annotations

import numpy as np

from metaljit.frozen import mutable
from metaljit.metalcompute_arguments import (
    c_integer,
    error,
    memory_of,
    optional,
    positional,
    text_argument,
)
from metaljit.metalcompute_objects import Buffer, Device, device_index, queue
from metaljit.runtime.emulator import functions as emulated


@mutable
class _State:
    device: Device | None = None
    function: emulated.Function | None = None
    buffers: tuple[Buffer, Buffer] | None = None
    was_run: bool = False


_state = _State()


@optional
def init(*args: object) -> None:
    """Opens a device."""
    device_index(args, "<built-in function init>")
    _state.device, _state.function = Device(), None


@optional
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
    threads = c_integer(count, 32)
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
    np.frombuffer(views[1], np.uint8)[:] = _state.buffers[1]


@positional(1)
def rerun(count: int) -> None:
    """Runs again with the buffers of the last `run`, whose results it leaves where they are."""
    threads = c_integer(count, 32)
    if _state.device is None or _state.function is None or _state.buffers is None:
        raise error(
            "Failed to make output buffer"
        )  # sic: its two halves number "not ready to run" differently
    queue.start(_state.device, _state.function, threads, _state.buffers).result()
