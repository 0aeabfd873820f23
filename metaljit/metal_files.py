"""Metal source that somebody else wrote: `.metal` files whose kernels are called from Python, on the emulator.

    library = load_metal("saxpy.metal")
    library.saxpy(2.0, x, y, threads=len(x))      # y is changed in place, as on Metal

In: a text and the arguments of its buffers. Out: the arrays that the kernel wrote, changed where they lie. Nothing is
written if the run finds a fault, unless it is lenient.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .frozen import frozen
from .runtime.emulator.faults import Crash
from .runtime.emulator.functions import Function, Library
from .runtime.emulator.process import Binding
from .runtime.emulator.sanitizer import sanitizing
from .runtime.msl.compile import FILE, VERSIONS, Options
from .runtime.msl.kernels import Input
from .runtime.msl.names import THREADGROUP_MEMORY
from .runtime.profile import span
from .source import Diagnostic, KernelFault, LaunchFault, undecodable

Extent = int | tuple[int, ...]
MOST_THREADS = 2**32 - 1
_TYPES = {
    "bool": np.bool_, "char": np.int8, "int8_t": np.int8, "uchar": np.uint8, "uint8_t": np.uint8,
    "short": np.int16, "int16_t": np.int16, "ushort": np.uint16, "uint16_t": np.uint16,
    "int": np.int32, "int32_t": np.int32, "uint": np.uint32, "uint32_t": np.uint32,
    "long": np.int64, "int64_t": np.int64, "ulong": np.uint64, "uint64_t": np.uint64,
    "half": np.float16, "float": np.float32,
}  # fmt: skip


def load_metal(path: str | os.PathLike[str], **options: Any) -> MetalFile:
    """The kernels of a `.metal` file; headers are looked for beside it. Options as for `metal_from_text`."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else f"it is no UTF-8 text: {undecodable(e)}"
        raise LaunchFault(
            Diagnostic("unreadable-file", f"{name} cannot be read: {reason}", help="name a .metal file")
        ) from e
    include = (os.path.dirname(os.path.abspath(name)), *options.pop("include", ()))
    return metal_from_text(text, file=name, include=include, **options)


def metal_from_text(
    text: str,
    *,
    file: str = FILE,
    version: tuple[int, int] = (2, 3),
    include: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
) -> MetalFile:
    """The kernels of a Metal source text.

    `version` is the language version, (2, 3) to (4, 0); `include` are folders of headers, `defines` macros.
    DeviceFault with every error on the text's own line where Metal would refuse it.
    """
    if version not in VERSIONS:
        known = ", ".join(f"{a}.{b}" for a, b in VERSIONS)
        raise LaunchFault(
            Diagnostic(
                "msl-arguments", f"{version} is no version of Metal's language", help=f"use one of {known}"
            )
        )
    options = Options(file, version, tuple(include), tuple((defines or {}).items()))
    return MetalFile(Library(text, options))


class MetalFile:
    """The kernels of a text as attributes and by name, `file["name"]`; `names` lists them."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.names = library.names

    def __getattr__(self, name: str) -> MetalKernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(self._missing(name)) from None

    def __getitem__(self, name: str) -> MetalKernel:
        """The kernel of that name or host name. KeyError where there is none."""
        if name not in self.names:
            raise KeyError(self._missing(name))
        return MetalKernel(self._library, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]

    def _missing(self, name: str) -> str:
        known = ", ".join(self.names[:20]) or "none"
        return f"{self._library.options.file} has no kernel {name!r}; it has {known}"


@frozen
class MetalKernel:
    """A kernel of foreign text; `constants` are the values of its function constants, as Metal spells them."""

    library: Library
    name: str
    constants: tuple[tuple[str, str], ...] = ()

    def with_constants(self, **values: object) -> MetalKernel:
        """The kernel compiled for these values of its function constants."""
        spelled = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in values.items()
        }
        return MetalKernel(self.library, self.name, tuple({**dict(self.constants), **spelled}.items()))

    def __call__(
        self,
        *args: Any,
        threads: Extent | None = None,
        groups: Extent | None = None,
        threadgroup: Extent | None = None,
        memory: Mapping[int, int] | None = None,
        outputs: Sequence[str] = (),
        lenient: bool = False,
        seed: int | None = None,
    ) -> tuple[Diagnostic, ...]:
        """Runs the kernel on `args`, one for each buffer in the order of their indices.

        An array is bound as it lies; those whose parameter is not const are changed in place. A number is passed
        where the parameter is a reference to a scalar, anything with the buffer protocol elsewhere. The grid is
        `threads` (partial groups at its edges) or `groups` of `threadgroup`, each an int or up to three, x first;
        `memory` gives the bytes of `[[threadgroup(i)]]` arguments; `seed` shuffles the order of threads and groups.
        `outputs` names the buffers whose contents the kernel makes: what stands in them is undefined until it is written,
        so a sanitized run finds reads of it, and elements that nobody wrote.

        KernelFault with all that the run found wrong, nothing written; a lenient run writes, and returns it.
        LaunchFault where the arguments do not fit.
        """
        function = self.library.function(self.name, dict(self.constants), sanitize=sanitizing())
        buffers = self._bind(function, args, (outputs,) if isinstance(outputs, str) else tuple(outputs))
        size = _size(threadgroup) if threadgroup is not None else _usual(function, threads)
        if (threads is None) == (groups is None):
            raise self._fault("a grid is given either as threads= or as groups=")
        if not _is_memory(memory or {}):
            raise self._fault(
                f"memory={memory} is no threadgroup memory: 31 arguments of {THREADGROUP_MEMORY} bytes together"
            )
        if size[0] * size[1] * size[2] > function.most_threads:
            raise self._fault(f"a threadgroup of {size} has more than {function.most_threads} threads")
        nbytes = sum(b.memory.nbytes for b in buffers.values())
        try:
            with span("kernel", self.name, "emulator", nbytes):
                faults = function.run(
                    buffers,
                    threads=_size(threads) if threads is not None else None,
                    groups=_size(groups) if groups is not None else None,
                    threadgroup=size,
                    memory=memory,
                    lenient=lenient,
                    seed=seed,
                )
        except Crash as e:
            raise KernelFault(*map(self.library.described, e.faults)) from None
        found = tuple(map(self.library.described, faults))
        if found and not lenient:
            raise KernelFault(*found)
        return found

    def _bind(self, function: Function, args: Sequence[Any], outputs: tuple[str, ...]) -> dict[int, Binding]:
        wanted = sorted(
            (p for p in function.kernel.inputs if p.what == "buffer" and p.index is not None),
            key=lambda p: p.index or 0,
        )
        if len(wanted) != len(args):
            names = ", ".join(p.name for p in wanted)
            raise self._fault(
                f"the kernel has {len(wanted)} buffers ({names}), and was given {len(args)} arguments"
            )
        written = [p.name for p in wanted if p.is_written]
        for name in outputs:
            if name not in written:
                known = ", ".join(written) or "none"
                raise self._fault(
                    f"outputs= names {name!r}, which is no buffer that the kernel writes; those are: {known}"
                )
        pairs = zip(wanted, args, strict=True)
        return {p.index or 0: self._binding(p, value, p.name in outputs) for p, value in pairs}

    def _binding(self, p: Input, value: Any, is_output: bool) -> Binding:
        if isinstance(value, int | float | bool) and not isinstance(value, np.generic):
            value = self._number(p, value)
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if not isinstance(value, np.ndarray):
            value = np.frombuffer(value, np.uint8)
        if not value.flags.c_contiguous:
            raise self._fault(
                f"the array for {p.name!r} is not contiguous", help="pass np.ascontiguousarray(…)"
            )
        if p.is_written and not value.flags.writeable:
            raise self._fault(f"the kernel may write {p.name!r}, and the array is read-only")
        if value.size == 0:
            raise self._fault(f"the array for {p.name!r} is empty, and Metal has no buffer of no bytes")
        return Binding(
            value.reshape(-1).view(np.uint8), p.name, p.is_written, is_output, not _is_number(p.type)
        )

    def _number(self, p: Input, value: float) -> NDArray[Any]:
        kind = [w for w in p.type.replace("&", " ").split() if w != "const"]
        dtype = _TYPES.get(" ".join(kind))
        if "&" not in p.type or dtype is None:
            raise self._fault(f"{p.name!r} is a {p.type.strip()}, and was given the number {value!r}",
                              help="pass an array, or bytes")  # fmt: skip
        made: NDArray[Any] = np.array(value).astype(dtype)
        if dtype not in (np.float32, np.float16) and made != value:
            raise self._fault(f"{value!r} does not fit {p.name!r}, which is {' '.join(kind)}")
        return made

    def _fault(self, message: str, help: str = "") -> LaunchFault:
        return LaunchFault(Diagnostic("msl-arguments", f"{self.name}: {message}", help=help))


def _is_number(type: str) -> bool:
    """Whether a buffer is of scalars or vectors, which are written whole."""
    words = [w for w in type.replace("&", " ").replace("*", " ").split() if w not in ("const", "volatile")]
    return len(words) == 1 and words[0].removeprefix("packed_").rstrip("234") in (*_TYPES, "bfloat")


def _size(extent: Extent) -> tuple[int, int, int]:
    given: Iterable[Any] = extent if isinstance(extent, Iterable) else (extent,)
    values = [int(v) if isinstance(v, int | np.integer) else 0 for v in given]
    if not 1 <= len(values) <= 3 or min(values) < 1 or prod(values) > MOST_THREADS:
        raise LaunchFault(
            Diagnostic(
                "msl-arguments",
                f"{extent!r} is no size of a grid: one to three positive integers, whose product is below 2^32",
            )
        )
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _is_memory(memory: Mapping[int, int]) -> bool:
    integers = all(isinstance(v, int | np.integer) and v >= 0 for v in (*memory, *memory.values()))
    return integers and max(memory, default=0) <= 30 and sum(memory.values()) <= THREADGROUP_MEMORY


def _usual(function: Function, threads: Extent | None) -> tuple[int, int, int]:
    """The threadgroup where none is asked for: as many threads in x as there may be."""
    x = _size(threads)[0] if threads is not None else function.most_threads
    return min(x, function.most_threads), 1, 1
