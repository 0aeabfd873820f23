"""Stencils and filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
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


def border(params: Mapping[str, Any]) -> dict[str, Any]:
    """SciPy's mode and cval as they are called here."""
    mode = SCIPY_MODES[params["mode"]]
    return {"mode": mode} | ({"value": params.get("cval", 0.0)} if mode == "constant" else {})


def laplace(case: Case) -> Results:
    yield "y", mj.ops.laplacian(case.inputs["x"], **border(case.params))


def correlate(case: Case) -> Results:
    op = getattr(mj.ops, case.op)
    origin = case.params.get("origin", 0)
    yield "y", op(case.inputs["x"], case.inputs["w"], origin=origin, **border(case.params))


WINDOW_MODES = {
    "constant": "constant",
    "edge": "edge",
    "wrap": "wrap",
    "mirror": "reflect",
    "symmetric": "symmetric",
}


def extreme_of_window(case: Case) -> Results:
    """The value, its place in the window, and its place in `x`, -1 outside.

    With "skip" a tap outside never wins.
    """
    p, x = case.params, case.inputs["x"]
    weights = case.inputs.get("weights", np.ones(p["kernel"], x.dtype))
    top, bottom, left, right = p["pad_top_bottom_left_right"]
    options: dict[str, Any] = {
        "stride": tuple(p["stride"]),
        "dilation": tuple(p["dilation"]),
        "padding": ((top, bottom), (left, right)),
    }
    if p["pad_mode"] == "skip":
        options |= {"mode": "constant", "value": _never(x.dtype, p["op"])}
    else:
        options["mode"] = WINDOW_MODES[p["pad_mode"]]
        if options["mode"] == "constant":
            options["value"] = p["pad_value"]
    yield "val", mj.ops.stencil(x, weights, reduction=p["op"].removeprefix("arg"), **options)
    places = np.asarray(mj.ops.stencil(x, weights, reduction=p["op"], **options))
    yield "win", places
    yield "flat", positions(places, x.shape, weights.shape, (top, left), options)


def _never(dtype: Any, reduction: str) -> Any:
    """What loses against every number: NaN, whatever its weight, or the worst of the integers."""
    if np.dtype(dtype).kind == "f":
        return np.nan
    limits = np.iinfo(dtype)
    return limits.min if reduction == "argmax" else limits.max


def positions(
    places: Any,
    shape: tuple[int, ...],
    size: tuple[int, ...],
    before: tuple[int, int],
    options: dict[str, Any],
) -> Any:
    """Where the taps at `places` stand in an array, flattened; -1 outside."""
    taps, at = np.unravel_index(places, size), np.indices(places.shape)
    mode = options["mode"]
    reach = tuple((16, 16) for _ in shape)
    flat = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    padded = np.pad(flat, reach, mode, **({"constant_values": -1} if mode == "constant" else {}))
    where = [
        16 + o * s + t * d - b
        for o, s, t, d, b in zip(at, options["stride"], taps, options["dilation"], before, strict=True)
    ]
    return padded[tuple(where)]


OPS: dict[tuple[str, str], Call] = {
    ("stencil_scipy", "laplace"): laplace,
    ("stencil_scipy", "correlate"): correlate,
    ("stencil_scipy", "convolve"): correlate,
    ("stencil_argwindow", "argmax_window"): extreme_of_window,
    ("stencil_argwindow", "argmin_window"): extreme_of_window,
}
