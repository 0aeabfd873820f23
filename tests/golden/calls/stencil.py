"""Stencils and filters."""

from __future__ import annotations

from golden import Case

import metaljit as mj
from calls.common import Call, Results

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


OPS: dict[tuple[str, str], Call] = {
    ("stencil_scipy", "laplace"): laplace,
    ("image_filters", "laplace"): laplace,
}
