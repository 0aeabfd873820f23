"""Interpret mode: a kernel run by CPython itself, one element after the other, with NumPy's meaning.

In: a kernel and the arguments of a call. Out: what the call returns. Arguments are checked, and results made, as on
any device; the kernel's text must pass the checker; then each position runs as Python at the user's own lines, so
breakpoints, `print` and a debugger's views of local names work. The code generator has no part in it.

The types of names where control flow joins are found by `interpret_types`, which runs the same operations without
their numbers, and not taken from the compiler: a fault in the one does not hide in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .interpret_specialisation import Interpretation
from .kernels import Kernel
from .runtime.array import Array, asarray
from .runtime.launch import Launcher


class Interpreted(Kernel):
    """A kernel whose calls run in CPython. Everything about a call but the run itself is the kernel's own."""

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Device arrays are read where they lie; if one is passed, the results are put on its device."""
        devices = [v.device for v in (*args, *named.values()) if isinstance(v, Array)]
        storage = tuple(map(_numpy, out)) if isinstance(out, tuple) else _numpy(out)
        result = super().__call__(
            *map(_numpy, args), out=storage, **{name: _numpy(v) for name, v in named.items()}
        )
        if out is not None:
            return out
        if not devices:
            return result
        several = isinstance(result, tuple)
        moved = tuple(asarray(r, device=devices[0]) for r in (result if several else (result,)))
        return moved if several else moved[0]

    def _prepare(self, device: str | None) -> None:
        return

    def _launcher(self, key: Any, values: Sequence[Any]) -> Launcher:
        with self._lock:
            if key not in self._launchers:
                arguments = {
                    p.name: self._argument(p, v) for p, v in zip(self.parameters, values, strict=True)
                }
                made = Interpretation(self.definition.tree, self.definition.text, arguments)
                self._launchers[key] = Launcher(made, made.program)
            return self._launchers[key]  # type: ignore[no-any-return]


def interpreted(kernel: Kernel) -> Interpreted:
    """The kernel as CPython runs it."""
    return Interpreted(kernel.definition, "interpret")


def _numpy(value: Any) -> Any:
    return value.numpy() if isinstance(value, Array) else value
