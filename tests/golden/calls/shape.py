"""Shapes, as NumPy has them."""

from __future__ import annotations

from typing import Any

from golden import Case

import metaljit as mj
from calls.common import Call, Results


def axis_of(case: Case) -> Any:
    given = case.params["axis"]
    return tuple(given) if isinstance(given, list) else given


def expand_dims(case: Case) -> Results:
    yield "out", mj.ops.expand_dims(case.inputs["x"], axis_of(case))


def squeeze(case: Case) -> Results:
    yield "out", mj.ops.squeeze(case.inputs["x"], axis_of(case))


def split(case: Case) -> Results:
    sections = case.params.get("sections", case.params.get("sizes"))
    parts = mj.ops.split(case.inputs["x"], sections, axis_of(case))
    yield from ((f"o{k}", part) for k, part in enumerate(parts))


def stack(case: Case) -> Results:
    yield "out", mj.ops.stack(list(case.inputs.values()), axis_of(case))


def coordinates(case: Case) -> Results:
    shape = case.params["shape"]
    if "axis" in case.params:
        yield "out", mj.ops.coordinates(shape, axis_of(case))
        return
    total: Any = 0  # the place in the flat array
    for axis, n in enumerate(shape):
        total = total * n + mj.ops.coordinates(shape, axis)
    yield "out", total


def arange(case: Case) -> Results:
    p = case.params
    stop = p["stop"] if "stop" in p else p["start"] + (p["n"] - 0.5) * p["step"]
    yield "out", mj.ops.arange(p["start"], stop, p["step"])


OPS: dict[tuple[str, str], Call] = {
    ("tensor_ops", "expand_dims"): expand_dims,
    ("tensor_ops", "squeeze"): squeeze,
    ("tensor_ops", "split"): split,
    ("tensor_ops", "stack"): stack,
    ("tensor_ops", "coordinate_along_axis"): coordinates,
    ("tensor_ops", "arange"): arange,
}
