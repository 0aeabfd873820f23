"""Streams of random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from golden import Case

import metaljit as mj
from calls.common import Call, NotThere, Results


def philox(case: Case) -> Results:
    record = case.record["philox"]
    match record["kind"]:
        case "kat":
            state = mj.ops.random.state_from(record["ctr"], record["key"])
            yield "out", mj.ops.random.bits(state, (4,))[0]
        case "generator":
            yield from generator(_start(record["start"]), record["steps"])
        case "stateless":
            state = mj.ops.random.philox_state(record["seed"], convention="stateless")
            words = np.asarray(state).view(np.uint64)
            yield "key", words[2:]
            yield "counter", words[:2]
            yield "out", draw(state, record["step"])[0]
        case "legacy":
            seeds = (record["seed"], record["seed2"])
            state = mj.ops.random.philox_state(seeds, convention="legacy")
            for k, shape in enumerate(record["shapes"]):
                values, state = draw(state, record["step"] | {"shape": shape})
                yield f"out{k}", values
        case kind:
            raise NotThere(kind)


def _start(start: Mapping[str, Any]) -> Any:
    match start:
        case {"seed": seed}:
            return mj.ops.random.philox_state(seed)
        case {"state": [low, high, key]}:
            return mj.ops.random.state_from((low, high), key)
        case {"key": key, "counter": counter}:
            return mj.ops.random.state_from(counter, key)
    raise NotThere(str(start))


def generator(state: Any, steps: list[Mapping[str, Any]]) -> Results:
    """TensorFlow's Generator: the state before each step, what the step returns, and the state at the end."""
    for k, step in enumerate(steps):
        yield f"state{k}", np.asarray(state).view(np.int64)
        if step["m"] == "skip":
            yield f"out{k}", np.asarray(state).view(np.int64)
            state = mj.ops.random.skip(state, step["n"])
        else:
            values, state = draw(state, step)
            yield f"out{k}", values
    yield f"state{len(steps)}", np.asarray(state).view(np.int64)


def draw(state: Any, step: Mapping[str, Any]) -> tuple[Any, Any]:
    if step["m"] == "uniform_full_int":
        return mj.ops.random.bits(state, step["shape"], dtype=step["dtype"])
    raise NotThere(step["m"])


OPS: dict[tuple[str, str], Call] = {("philox", ""): philox}
