"""Compute kernels for Apple GPUs from Python.

    import metaljit as mj
    from metaljit.lang import border, f32, position

    H, W = mj.dims("H W")

    @mj.kernel
    def laplacian(u: f32[H, W]) -> f32[H, W]:
        u = border(u, "reflect")
        y, x = position()
        return u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4 * u[y, x]

Nothing is compiled or probed when this is imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import arrays as _arrays  # noqa: F401 (gives `Array` its operators)
from .compiled import VERSION as __version__
from .kernels import Function, Kernel, Spec, function, kernel, spec
from .runtime import device as _devices
from .runtime.array import Array, array, asarray, from_dlpack
from .runtime.device import use_device
from .source import (
    DeviceFault,
    Diagnostic,
    InternalError,
    KernelAssertion,
    KernelFault,
    LaunchFault,
    MetaljitError,
    QueueFault,
    ShapeError,
    SizeError,
    SyntaxFault,
    TypeFault,
)
from .symbols import MJK_NAMES, Dim, Pack, dims, dtypes

if sys.platform != "darwin":
    from .runtime import cpu as _cpu  # noqa: F401 (the default device there: the first call need not wait for it)

if TYPE_CHECKING:
    from . import ops as ops
    from .executables import Executable, load_executable
    from .graph.control import cond, for_loop, while_loop
    from .graph.gradients import custom_vjp, grad, stop_gradient, value_and_grad, vjp
    from .graph.jit import jit
    from .graph.traced import Traced
    from .metal_files import MetalFile, load_metal, metal_from_text
    from .modules import KernelFile, kernel_from_text, load_kernels
    from .runtime.emulator.sanitizer import sanitize
    from .runtime.event import Event
    from .runtime.profile import profile
    from .runtime.queue import Future, Queue
    from .variables import Variable, control_dependency

__all__ = [
    "Array",
    "DeviceFault",
    "Diagnostic",
    "Dim",
    "Event",
    "Executable",
    "Function",
    "Future",
    "InternalError",
    "Kernel",
    "KernelAssertion",
    "KernelFault",
    "KernelFile",
    "LaunchFault",
    "MetalFile",
    "MetaljitError",
    "Pack",
    "Queue",
    "QueueFault",
    "ShapeError",
    "SizeError",
    "Spec",
    "SyntaxFault",
    "Traced",
    "TypeFault",
    "Variable",
    "__version__",
    "array",
    "asarray",
    "available_devices",
    "cond",
    "control_dependency",
    "custom_vjp",
    "device",
    "dims",
    "dtypes",
    "for_loop",
    "from_dlpack",
    "function",
    "grad",
    "jit",
    "kernel",
    "kernel_from_text",
    "load_executable",
    "load_kernels",
    "load_metal",
    "metal_from_text",
    "ops",
    "profile",
    "sanitize",
    "spec",
    "stdlib",
    "stop_gradient",
    "use_device",
    "value_and_grad",
    "vjp",
    "while_loop",
]

_LAZY = {
    **{name: ("executables", name) for name in ("Executable", "load_executable")},
    **{name: ("variables", name) for name in ("Variable", "control_dependency")},
    **{name: ("graph.control", name) for name in ("cond", "for_loop", "while_loop")},
    **{
        name: ("graph.gradients", name)
        for name in ("custom_vjp", "grad", "stop_gradient", "value_and_grad", "vjp")
    },
    "jit": ("graph.jit", "jit"),
    "Traced": ("graph.traced", "Traced"),
    "load_kernels": ("modules", "load_kernels"),
    "kernel_from_text": ("modules", "kernel_from_text"),
    "KernelFile": ("modules", "KernelFile"),
    "load_metal": ("metal_files", "load_metal"),
    "metal_from_text": ("metal_files", "metal_from_text"),
    "MetalFile": ("metal_files", "MetalFile"),
    "Event": ("runtime.event", "Event"),
    "Future": ("runtime.queue", "Future"),
    "Queue": ("runtime.queue", "Queue"),
    "profile": ("runtime.profile", "profile"),
    "sanitize": ("runtime.emulator.sanitizer", "sanitize"),
}


def device(name: str) -> Any:
    """The device of that name: "metal", "cpu", "emulator". DeviceFault where it cannot be had."""
    return _devices.find(name)


def available_devices() -> tuple[str, ...]:
    """The names of the devices found on this machine, best first. Probes."""
    return _devices.available()


class _Stdlib:
    """`mj.stdlib.random`: files of the standard library, loaded when they are first used."""

    def __getattr__(self, name: str) -> Any:
        from .modules import stdlib as load

        if name.startswith("_"):
            raise AttributeError(name)
        found = load(name)
        setattr(self, name, found)
        return found


stdlib = _Stdlib()


def __getattr__(name: str) -> Any:
    import importlib

    if name == "ops":
        return importlib.import_module("metaljit.ops")
    if name in _LAZY:
        module, member = _LAZY[name]
        return getattr(importlib.import_module(f"metaljit.{module}"), member)
    if name in MJK_NAMES:
        return MJK_NAMES[name]
    raise AttributeError(f"module 'metaljit' has no attribute {name!r}")
