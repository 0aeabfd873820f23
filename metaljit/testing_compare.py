"""Are two results the same? Integers exactly, floats within the tolerance of their type, NaN where NaN is due.

In: what a kernel gave and what was expected. Out: None, or a sentence about the first difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .frozen import frozen


@frozen
class Tolerance:
    """`abs(actual - expected) <= absolute + relative * abs(expected)`."""

    relative: float
    absolute: float


# By the NumPy name of the result's element type; integers and bools have none, they are equal or wrong.
TOLERANCES: Mapping[str, Tolerance] = {
    "float32": Tolerance(1e-5, 1e-6),
    "float16": Tolerance(2e-3, 1e-4),
    "bfloat16": Tolerance(1.6e-2, 1e-3),
}
EXACT = Tolerance(0.0, 0.0)


def difference(
    actual: Any, expected: Any, *, tolerance: Tolerance | None = None, signed_zeros: bool = False
) -> str | None:
    """How `actual` differs from `expected`, None where it does not. Tuples are compared item by item.

    `tolerance` replaces that of the element type (`EXACT` asks for the same numbers). NaN agrees with NaN alone,
    an infinity with itself, 0.0 with −0.0 unless `signed_zeros`. `expected` may have another element type, such
    as float64 or Python's numbers.
    """
    if isinstance(actual, tuple) or isinstance(expected, tuple):
        return _difference_of_tuples(actual, expected, tolerance, signed_zeros)
    a, e = np.asarray(actual), np.asarray(expected)
    if a.shape != e.shape:
        return f"the shape is {a.shape}, expected {e.shape}"
    wrong = _wrong(a, e, tolerance, signed_zeros)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"element [{', '.join(map(str, at))}]" if at else "it"
    count = f" ({int(wrong.sum())} of {wrong.size} elements differ)" if wrong.size > 1 else ""
    return f"{place} is {a[at]}, expected {e[at]}{count}"


def _difference_of_tuples(a: Any, e: Any, tolerance: Tolerance | None, signed_zeros: bool) -> str | None:
    if not isinstance(a, tuple) or not isinstance(e, tuple) or len(a) != len(e):
        shown = [f"{len(v)} results" if isinstance(v, tuple) else "one result" for v in (a, e)]
        return f"there are {shown[0]}, expected {shown[1]}"
    for k, (x, y) in enumerate(zip(a, e, strict=True)):
        found = difference(x, y, tolerance=tolerance, signed_zeros=signed_zeros)
        if found is not None:
            return f"result {k}: {found}"
    return None


def _wrong(
    a: NDArray[Any], e: NDArray[Any], tolerance: Tolerance | None, signed_zeros: bool
) -> NDArray[np.bool_]:
    """Where the elements do not agree."""
    allowed = TOLERANCES.get(a.dtype.name)
    if allowed is None:
        return np.asarray(a != e)
    allowed = tolerance or allowed
    x, y = a.astype(np.float64), e.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= allowed.absolute + allowed.relative * np.abs(y)
        # beyond the largest number of the type, the expected value is an infinity as well
        rounded = e.astype(a.dtype).astype(np.float64)
    same = (x == y) | (x == rounded) | (np.isfinite(x) & np.isfinite(y) & close) | (np.isnan(x) & np.isnan(y))
    if signed_zeros:
        same &= (x != 0) | (y != 0) | (np.signbit(x) == np.signbit(y))
    return np.asarray(~same)
