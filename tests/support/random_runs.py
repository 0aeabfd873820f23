"""The ways to run a kernel that a random program is compared on: interpret mode, each device, and the emulator's own.

In: a kernel. Out: functions that run it, by name. The emulator runs a second time with its threads in another order,
or with every access checked: a right kernel has no fault, and the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partialmethod
from typing import Any
from unittest.mock import patch

import numpy as np

import metaljit as mj
from metaljit.dtypes import DType
from metaljit.runtime.emulator.functions import Function
from metaljit.runtime.emulator.sanitizer import sanitize
from metaljit.testing_compare import EXACT, difference

Runner = Callable[..., Any]


def compare(
    text: str, arguments: Sequence[Any], *, sanitized: bool = False, order: int | None = None
) -> bool:
    """Every way to run a kernel gives the same bits, or refuses it in the same words; whether it was not refused.

    AssertionError shows the program, the arguments and what each of them gave.
    """
    ways = runners(mj.kernel_from_text(text), sanitized=sanitized, order=order)
    outcomes = {name: outcome(run, arguments) for name, run in ways.items()}
    expected = outcomes["interpret"]
    if isinstance(expected, str) and expected.startswith("not-interpretable"):
        return False  # a branch that the compiler decides by a typed constant
    for name, actual in outcomes.items():
        if not _agree(actual, expected):
            shown = "\n".join(f"{n}: {v!r}" for n, v in outcomes.items())
            raise AssertionError(f"on {name}:\n{text}\n{described(arguments)}\n{shown}")
    return not isinstance(expected, str)


def kernel_of(
    results: Sequence[tuple[str, DType]], names: Mapping[str, DType], options: str = ""
) -> mj.Kernel:
    """A kernel that gives every expression, its variables read from arrays in the order of `names`."""
    parameters = ", ".join(f"{n}s: {t}[N]" for n, t in names.items())
    types = ", ".join(f"{t}[N]" for _, t in results)
    lines = [
        'N = dims("N")', f"@kernel{options}", f"def random({parameters}) -> ({types},):", "    i = position()",
        *(f"    {n} = {n}s[i]" for n in names), f"    return {', '.join(text for text, _ in results)},",
    ]  # fmt: skip
    return mj.kernel_from_text("\n".join(lines))


def outcome(run: Runner, arguments: Sequence[Any]) -> Any:
    """What a call gives, or the error that it raises as text."""
    try:
        return run(*arguments)
    except mj.MetaljitError as e:
        return f"{e.slug}: {e}"


def _agree(actual: Any, expected: Any) -> bool:
    if isinstance(actual, str) or isinstance(expected, str):
        return isinstance(actual, str) and isinstance(expected, str) and actual == expected
    return difference(actual, expected, tolerance=EXACT) is None


def described(arguments: Sequence[Any]) -> str:
    """The arguments as a kernel's caller would write them."""
    return "\n".join(f"    {np.asarray(a).tolist()}  # {np.asarray(a).dtype}" for a in arguments)


def runners(kernel: mj.Kernel, *, sanitized: bool = False, order: int | None = None) -> dict[str, Runner]:
    """Interpret mode first, whose result is what all others should give."""
    found: dict[str, Runner] = {"interpret": kernel.interpret}
    for device in mj.available_devices():
        found[device] = kernel.on(device)
    if "emulator" in found and (sanitized or order is not None):
        found[f"emulator, {_how(sanitized, order)}"] = _differently(found["emulator"], sanitized, order)
    return found


def _how(sanitized: bool, order: int | None) -> str:
    parts = ["every access checked"] * sanitized
    parts += [] if order is None else [f"threads in order {order}"]
    return ", ".join(parts)


def _differently(run: Runner, sanitized: bool, order: int | None) -> Runner:
    def differently(*args: Any) -> Any:
        with sanitize(sanitized), shuffled(order):
            return run(*args)

    return differently


@contextmanager
def shuffled(order: int | None) -> Iterator[None]:
    """Every run on the emulator takes its threads in an order of this seed."""
    with patch.object(Function, "run", partialmethod(Function.run, seed=order)):
        yield
