"""Recurrent layers, with PyTorch's names of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from golden import Case

import metaljit as mj
from calls.common import Call, Results

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
STATES = ("h0", "c0")


def layer(case: Case) -> Results:
    p, op = case.params, getattr(mj.ops, case.op)
    options: dict[str, Any] = {n: p[n] for n in ("bidirectional", "batch_first") if n in p}
    if "nonlinearity" in p:
        options["activation"] = p["nonlinearity"]
    names = [n for n in case.inputs if n in ("x", *STATES) or n.startswith(("weight", "bias"))]

    def run(*arrays: Any) -> Any:
        given = dict(zip(names, arrays, strict=True))

        def both(name: str) -> Any:
            found = given.get(name)
            return (found, given[f"{name}_reverse"]) if f"{name}_reverse" in given else found

        states = STATES if case.op == "lstm" else STATES[:1]
        return op(given["x"], *map(both, WEIGHTS), *map(given.get, states), **options)

    arrays = [case.inputs[n] for n in names]
    results = dict(zip(("y", "hn", "cn"), run(*arrays), strict=False))
    yield from results.items()
    if any(n.startswith("g_") for n in case.outputs):
        found, pull = mj.vjp(run, *arrays)
        by_results = (case.inputs.get(f"g{n}", np.zeros_like(v)) for n, v in zip(results, found, strict=True))
        for name, derivative in zip(names, pull(tuple(by_results)), strict=True):
            if f"g_{name}" in case.outputs:
                yield f"g_{name}", derivative


OPS: dict[tuple[str, str], Call] = {("rnn", name): layer for name in ("rnn", "lstm", "gru")}
