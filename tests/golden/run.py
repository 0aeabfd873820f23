"""Runs every case of a golden folder whose op exists, through the public API, on the device of METALJIT_DEVICE.

    python tests/golden/run.py FOLDER

In: a folder in the format of `golden.py`. Out: a line for each case that fails, then `N passed, N failed, N skipped`; the
exit code is 1 if any failed. Skipped are the cases that need an op that is not there. Where the library refused, a
refusal passes; where float64 is involved, only the documented refusal of it does.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from golden import Case, cases

import metaljit as mj

Outcome = Literal["passed", "failed", "skipped"]
Results = Iterator[tuple[str, Any]]  # an output's name and what was computed for it


class NotThere(Exception):
    """The op, or a part of it, is not there yet."""


# ---- one function for each op of the libraries ----


def hamming(case: Case) -> Results:
    pairwise = case.op == "hamming_pairwise"
    yield "out", mj.ops.hamming_distance(case.inputs["a"], case.inputs["b"], pairwise=pairwise)


SCIPY_MODES = {
    "nearest": "edge",
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def laplace(case: Case) -> Results:
    mode = SCIPY_MODES[case.params["mode"]]
    value = case.params.get("cval", 0.0) if mode == "constant" else None
    yield "y", mj.ops.laplacian(case.inputs["x"], mode=mode, value=value)


def torch_max_pool(case: Case) -> Results:
    p = case.params
    yield from zip(
        ("y", "idx"),
        mj.ops.max_pool(
            case.inputs["x"],
            p["kernel_size"],
            stride=p["stride"],
            padding=p["padding"],
            dilation=p["dilation"],
            ceil_mode=p["ceil_mode"],
            return_indices=True,
        ),
        strict=True,
    )


def tensorflow_max_pool(case: Case) -> Results:
    p = case.params
    yield from zip(
        ("y", "argmax"),
        mj.ops.max_pool(
            case.inputs["x"],
            p["ksize"],
            stride=p["strides"],
            padding=p["padding"].lower(),
            layout="NHWC",
            return_indices=True,
            indices="global_4d" if p["include_batch_in_index"] else "global_3d",
            nan="compare",
        ),
        strict=True,
    )


# ---- streams of random numbers ----


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


# ---- judging ----

OPS: dict[tuple[str, str], Callable[[Case], Results]] = {
    ("hamming", "hamming_pairwise"): hamming,
    ("hamming", "hamming_rows"): hamming,
    ("stencil_scipy", "laplace"): laplace,
    ("image_filters", "laplace"): laplace,
    ("pooling_tf", "max_pool_with_argmax"): tensorflow_max_pool,
    **{("pooling_torch", f"max_pool{n}d"): torch_max_pool for n in (1, 2, 3)},
}
LATER = {"gx"}  # outputs of gradient ops, which are cases of their own ops here


def judge(case: Case) -> tuple[Outcome, str]:
    """What became of a case, and why."""
    run = philox if "philox" in case.record else OPS.get((case.topic, case.op))
    if run is None:
        return "skipped", f"no op for {case.op}"
    must_refuse_f64 = _has_f64(case)
    done = set()
    try:
        for name, got in run(case):
            complaint = case.check(name, got)
            if complaint:
                return "failed", complaint
            done.add(name)
    except NotThere as e:
        return "skipped", f"no op for {e}"
    except (mj.LaunchFault, mj.TypeFault) as e:
        said = str(e).splitlines()[0]
        expected = e.slug == "no-f64" if must_refuse_f64 else case.error
        return ("passed" if expected else "failed"), f"refused: {said}"
    except Exception as e:
        return "failed", f"{type(e).__name__}: {str(e).partition(chr(10))[0]}"
    missing = set(case.outputs) - done - LATER
    if case.error or must_refuse_f64 or missing:
        return (
            "failed",
            "the call was not refused" if not missing else f"nothing was computed for {sorted(missing)}",
        )
    return "passed", ""


def _has_f64(case: Case) -> bool:
    arrays = [*case.inputs.values(), *case.outputs.values()]
    return any(a.dtype == np.float64 for a in arrays)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not (Path(arguments[0]) / "manifest.json").is_file():
        print("usage: python tests/golden/run.py FOLDER   (a folder with a manifest.json)", file=sys.stderr)
        return 2
    counts: Counter[Outcome] = Counter()
    for case in cases(Path(arguments[0])):
        outcome, why = judge(case)
        counts[outcome] += 1
        if outcome == "failed":
            print(f"FAILED {case.topic}/{case.id}: {why}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
