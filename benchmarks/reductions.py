"""Reductions of traced arrays: of columns, of rows, of all, and the place of the greatest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import metaljit as mj

from .timing import Run, Work

SIDE = 4096


def work(name: str, function: Callable[[Any], Any]) -> Work:
    x = np.random.default_rng(0).integers(0, 4, (SIDE, SIDE)).astype(np.float32)
    ours = mj.jit(function)
    peers: dict[str, Run] = {"NumPy": lambda: function(x), **_torch(name, x)}
    return Work(f"{name}, {SIDE}² f32", x.nbytes, lambda: ours(x), peers)


def _torch(name: str, x: Any) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    t = torch.from_numpy(x)
    runs: dict[str, Callable[[], Any]] = {
        "sums of columns": lambda: t.sum(0),
        "sums of rows": lambda: t.sum(1),
        "sum of all": lambda: t.sum(),
        "variance of columns": lambda: t.var(0, correction=0),
        "places of the greatest": lambda: t.argmax(1),
    }
    run = runs[name]
    return {"PyTorch": lambda: run().numpy()}


WORKS = {
    "sum_columns": partial(work, "sums of columns", lambda x: x.sum(axis=0)),
    "sum_rows": partial(work, "sums of rows", lambda x: x.sum(axis=1)),
    "sum_all": partial(work, "sum of all", lambda x: x.sum()),
    "var_columns": partial(work, "variance of columns", lambda x: x.var(axis=0)),
    "argmax": partial(work, "places of the greatest", lambda x: x.argmax(axis=1)),
}
