"""Random expressions in Metal's own language through the emulator: their types are C++'s and their numbers NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_msl import TYPES, VARIABLES, Expr, environment, expressions

from metaljit.runtime.emulator.functions import Library
from metaljit.runtime.emulator.process import Binding
from metaljit.testing import EXACT, difference

COUNT = 32


def text_of(results: list[Expr]) -> str:
    """A kernel that gives every expression. Lanes are read and written one by one: no layout is asked for."""
    arguments = [f"device const {d.msl}* in_{d.name} [[buffer({k})]]" for k, d in enumerate(TYPES)]
    lines = []
    for d in TYPES:
        reads = (f"{d.name}_{k} = in_{d.name}[gid * {VARIABLES} + {k}]" for k in range(VARIABLES))
        lines.append(f"const {d.msl} {', '.join(reads)};")
    for k, r in enumerate(results):
        arguments.append(f"device {r.type.msl}* out{k} [[buffer({len(TYPES) + k})]]")
        lines.append(f"const auto r{k} = {r.text};")
        lines.append(
            f'static_assert(metal::is_same<decltype(r{k}), const {r.msl}>::value, "the type of {k}");'
        )
        lanes = (f"[{lane}]" if r.lanes > 1 else "" for lane in range(r.lanes))
        lines += [f"out{k}[gid * {r.lanes} + {lane}] = r{k}{of};" for lane, of in enumerate(lanes)]
    arguments.append("uint gid [[thread_position_in_grid]]")
    head = ["#include <metal_stdlib>", f"kernel void random({', '.join(arguments)}) {{"]
    return "\n".join([*head, *(f"    {line}" for line in lines), "}"])


def check(results: list[Expr], seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    env = environment(COUNT, seed)
    text = text_of(results)
    outputs = [np.zeros((COUNT, r.lanes), r.type.numpy) for r in results]
    inputs = [np.concatenate([env[f"{d.name}_{k}"] for k in range(VARIABLES)], 1) for d in TYPES]
    buffers = {k: _bound(a, k >= len(inputs)) for k, a in enumerate([*inputs, *outputs])}
    function = Library(text).function("random", sanitize=sanitized)
    faults = function.run(buffers, groups=(1, 1, 1), threadgroup=(COUNT, 1, 1), seed=order)
    assert not faults, f"{faults}\n{text}"
    for r, actual in zip(results, outputs, strict=True):
        expected = r.run(env)
        found = difference(actual, expected, tolerance=EXACT)
        if found is not None:
            at = next(k for k in range(COUNT) if difference(actual[k], expected[k], tolerance=EXACT))
            used = {n: v[at, 0] for n, v in env.items() if n in r.text}
            raise AssertionError(f"{r.text} is {actual[at]!r}, not {expected[at]!r}, where {used}")
    return True


def _bound(a: Any, writable: bool) -> Binding:
    return Binding(a.reshape(-1).view(np.uint8), "x", writable)


DRAWN = st.tuples(st.lists(expressions(), min_size=10, max_size=10), st.integers(0, 1000))


@given(DRAWN)
@settings(max_examples=10)
def test_random_msl(drawn: tuple[list[Expr], int]) -> None:
    check(*drawn)
