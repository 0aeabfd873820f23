"""`@jit`: a Python function of arrays, traced once for each signature and run as few kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler import graph as g
from ..compiler.lower.composed import Group, lower_group
from ..compiler.pipeline import program
from ..dtypes import F32, I32, BOOL
from ..runtime import device as devices
from ..runtime.launch import Launcher
from .traced import Trace, Traced, extents_of


class Jitted:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = function.__name__
        self._launchers: dict[Any, tuple[Launcher, list[Any]]] = {}

    def __call__(self, *args: Any) -> Any:
        key = tuple(
            (a.dtype, tuple(n == 1 for n in a.shape)) if hasattr(a, "dtype") else type(a) for a in args
        )
        found = self._launchers.get((devices.chosen[0], key))
        if found is None:
            found = self._launchers[devices.chosen[0], key] = self._compile(args)
        launcher, captured = found
        return launcher([*args, *captured] if captured else args)

    def _compile(self, args: Sequence[Any]) -> tuple[Launcher, list[Any]]:
        made, captured = self.lowered(args)
        return Launcher(devices.current(), program(made)), captured

    def lowered(self, args: Sequence[Any]) -> Any:
        names = self.function.__code__.co_varnames
        trace = Trace(self.__name__)
        given = []
        for name, a in zip(names, args, strict=False):
            if hasattr(a, "dtype"):
                given.append(trace.array(name, a.dtype, extents_of(name, a.shape)))
            else:
                type = {bool: BOOL, int: I32}.get(a.__class__, F32)
                given.append(trace.node(g.Number(name, type)))
        result = self.function(*given)
        roots = (result.ref,) if isinstance(result, Traced) else tuple(r.ref for r in result)
        graph = trace.graph
        stored = {r: n.name for r, n in enumerate(graph.nodes) if isinstance(n, g.Input)}
        return lower_group(graph, Group(self.__name__, roots, stored)), [v for _, v in trace.captured]


def jit(function: Callable[..., Any]) -> Jitted:
    return Jitted(function)
