"""A table of programs: each one a kernel, what it means in NumPy, and arguments to try it on.

    programs = Programs()

    @mj.kernel
    def twice(x: f32[N]) -> f32[N]: ...

    programs.add(twice, lambda x: 2 * x, lambda r: (r.floats(7),))

    @programs.parametrize
    def test_…(program, runner):
        program.check(runner)

A runner is a device that is found here, or interpret mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.testing_compare import Tolerance, difference

Arguments = Sequence[Any]


class Random:
    """Numbers to try a program on, the same in every run."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(7)

    def floats(self, *shape: int, low: float = -2, high: float = 2, dtype: Any = np.float32) -> Any:
        return self.generator.uniform(low, high, shape).astype(dtype)

    def ints(self, *shape: int, low: int = 0, high: int = 100, dtype: Any = np.int32) -> Any:
        return self.generator.integers(low, high, shape).astype(dtype)

    def bits(self, *shape: int, dtype: Any = np.uint32) -> Any:
        """Every value of an integer type, with its ends."""
        info = np.iinfo(dtype)
        drawn = self.generator.integers(info.min, info.max, shape, dtype, endpoint=True)
        flat = drawn.reshape(-1)
        ends = [info.min, info.max, 0, 1][: flat.size]
        flat[: len(ends)] = np.array(ends, dtype)
        return drawn

    def bools(self, *shape: int) -> Any:
        return self.generator.integers(0, 2, shape).astype(np.bool_)


@dataclass
class Program:
    """`arguments` makes one call's arguments, or a list of several calls'."""

    kernel: mj.Kernel
    reference: Callable[..., Any]
    arguments: Callable[[Random], Arguments | list[Arguments]]
    tolerance: Tolerance | None = None
    wrong: dict[str, str] = field(default_factory=dict)

    def check(self, runner: str) -> None:
        made = self.arguments(Random())
        for arguments in made if isinstance(made, list) else [made]:
            with np.errstate(all="ignore"):
                expected = self.reference(*arguments)
            before = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            actual = self.run(runner, arguments)
            found = difference(actual, expected, tolerance=self.tolerance)
            assert found is None, f"{self.kernel.__name__} on {runner}: {found}\n{shown(arguments)}"
            for a, b in zip(arguments, before, strict=True):
                assert difference(a, b) is None, "an argument was changed"

    def run(self, runner: str, arguments: Arguments) -> Any:
        kernel = self.kernel.interpret if runner == "interpret" else self.kernel.on(runner)
        return kernel(*arguments)


def shown(arguments: Arguments) -> str:
    return "\n".join(f"  {np.asarray(a)!r}" for a in arguments if np.asarray(a).size <= 64)


class Programs:
    """The programs of one file."""

    def __init__(self) -> None:
        self.programs: list[Program] = []

    def add(
        self,
        kernel: mj.Kernel,
        reference: Callable[..., Any],
        arguments: Callable[[Random], Any],
        *,
        tolerance: Tolerance | None = None,
        **wrong: str,
    ) -> None:
        """`cpu="…"`: what is wrong there, as long as it is."""
        self.programs.append(Program(kernel, reference, arguments, tolerance, wrong))

    def parametrize(self, test: Callable[..., None]) -> Any:
        """A test of every program on every runner."""
        cases = []
        for program in self.programs:
            for runner in ("interpret", *mj.available_devices()):
                reason = program.wrong.get(runner)
                marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
                cases.append(
                    pytest.param(program, runner, marks=marks, id=f"{program.kernel.__name__}-{runner}")
                )
        return pytest.mark.parametrize(("program", "runner"), cases)(test)
