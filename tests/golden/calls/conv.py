"""Convolutions, as PyTorch has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from golden import Case

import metaljit as mj
from calls.common import Call, Results

MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def conv(case: Case) -> Results:
    p, (x, w, b) = case.params, (case.inputs.get(name) for name in ("x", "w", "b"))
    options = {name: p[name] for name in ("padding", "stride", "dilation", "groups")}
    mode = p.get("padding_mode", "zeros")

    @mj.jit
    def run(x: Any, w: Any, b: Any) -> Any:
        if mode == "zeros":
            return mj.ops.conv(x, w, b, **options)
        spatial = len(x.shape) - 2
        each = (p["padding"],) * spatial if isinstance(p["padding"], int) else p["padding"]
        widths: Any = [(0, 0), (0, 0), *((n, n) for n in each)]
        wide = np.pad(x, widths, mode=MODES[mode])
        return mj.ops.conv(wide, w, b, **{**options, "padding": 0})

    yield "y", run(x, w, b)
    names = [name for name in ("gx", "gw", "gb") if name in case.outputs]
    if names:
        given = [a for a in (x, w, b) if a is not None]
        _, back = mj.vjp(lambda *a: run(*a, *[None] * (3 - len(a))), *given)
        found = dict(zip(("gx", "gw", "gb"), back(case.inputs["gy"]), strict=False))
        yield from ((name, found[name]) for name in names)


OPS: dict[tuple[str, str], Call] = {("stencil_conv", f"conv{n}d"): conv for n in (1, 2, 3)}
