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
        case "set_seed":
            yield from set_seed(record)
        case kind:
            raise NotThere(kind)


def set_seed(record: Mapping[str, Any]) -> Results:
    """Calls of one op after `tf.random.set_seed`: each goes on where the last one of the same seeds ended."""
    seeds, step = (record["global_seed"], record["op_seed"]), record["step"] | {"shape": record["shape"]}
    state = None
    for k in range(record["calls"]):
        if state is None or seeds[1] is None:
            own = seeds if seeds[1] is not None else (*seeds, k)
            state = mj.ops.random.philox_state(own, convention="set_seed")
        values, state = draw(state, step)
        yield f"out{k}", values


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
    random, shape, dtype = mj.ops.random, step.get("shape", ()), step.get("dtype", "float32")
    match step["m"]:
        case "uniform_full_int":
            return random.bits(state, shape, dtype)
        case "uniform" if "int" in dtype:
            if step.get("maxval") is None:
                return random.bits(state, shape, dtype)
            return random.integers(state, shape, step.get("minval") or 0, step["maxval"], dtype)
        case "uniform":
            low, high = step.get("minval"), step.get("maxval")
            return random.uniform(state, shape, low or 0, 1 if high is None else high, _float(dtype))
        case "normal" | "truncated_normal" as name:
            scale = step.get("mean", 0), step.get("stddev", 1)
            return getattr(random, name)(state, shape, *scale, dtype=_float(dtype))  # type: ignore[no-any-return]
        case "split":
            children, state = random.split(state, step["n"])
            return np.asarray(children).view(np.int64), state
        case "split_draw":
            children, state = random.split(state, step["n"])
            drawn = [draw(child, {"m": step["then"], "shape": shape})[0] for child in np.asarray(children)]
            return np.stack(drawn), state
        case "make_seeds":
            keys, state = random.bits(state, step["n"], np.int64)
            return np.stack([keys, np.zeros_like(keys)]), state
        case name:
            raise NotThere(name)


def _float(name: str) -> Any:
    """The dtype of that name, which NumPy knows after ml_dtypes is loaded."""
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return name


OPS: dict[tuple[str, str], Call] = {("philox", ""): philox}
