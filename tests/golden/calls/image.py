"""Filters of images."""

from __future__ import annotations

from golden import Case

import metaljit as mj
from calls.common import Call, Results
from calls.stencil import border, laplace


def derivative(case: Case) -> Results:
    """SciPy's along an axis, scikit-image's steepness without one."""
    yield "y", getattr(mj.ops, case.op)(case.inputs["x"], case.params.get("axis"), **border(case.params))


def gaussian(case: Case) -> Results:
    p = case.params
    sigma = tuple(p["sigma"]) if isinstance(p["sigma"], list) else p["sigma"]
    yield "y", mj.ops.gaussian_blur(case.inputs["x"], sigma, truncate=p.get("truncate", 4.0), **border(p))


def window(case: Case) -> Results:
    size = case.params["size"]
    op = getattr(mj.ops, f"{case.op}_filter")
    yield "y", op(case.inputs["x"], tuple(size) if isinstance(size, list) else size, **border(case.params))


def histogram(case: Case) -> Results:
    yield "y", mj.ops.histogram(case.inputs["x"], case.params.get("bins", 256))


OPS: dict[tuple[str, str], Call] = {
    ("image_filters", "laplace"): laplace,
    ("image_filters", "sobel"): derivative,
    ("image_filters", "prewitt"): derivative,
    ("image_filters", "gaussian"): gaussian,
    ("image_filters", "histogram"): histogram,
    **{("image_filters", name): window for name in ("median", "uniform", "maximum", "minimum")},
}
