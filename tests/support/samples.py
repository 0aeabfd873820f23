"""Arrays for the tests of the ops: nasty values in every memory layout, and comparisons that say what differs.

In: Hypothesis draws, or a seed. Out: NumPy arrays of equal contents that lie in memory in different ways.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
LAYOUTS = ("C", "Fortran", "strided", "reversed", "offset", "misaligned", "read-only")


def is_float(dtype: Any) -> bool:
    return bool(np.dtype(dtype).kind == "f" or np.dtype(dtype) == BF16)


def special(dtype: Any) -> Array:
    """The values of a dtype at which arithmetic goes wrong."""
    kind = np.dtype(dtype)
    if is_float(kind):
        info: Any = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        numbers = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.eps]
        return np.array([float(v) for v in numbers]).astype(kind)
    if kind == np.bool_:
        return np.array([False, True])
    limits = np.iinfo(kind)
    return np.array([0, 1, limits.min, limits.max, limits.max // 2, limits.max - 1], kind)


def sample(dtype: Any, shape: tuple[int, ...], seed: int, nasty: bool) -> Array:
    """Numbers of a few sizes, so that equal ones occur; a third of them special, if `nasty`."""
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)
    if is_float(kind):
        made = (rng.integers(-8, 9, shape) * rng.choice([0.25, 1.0, 100.0], shape)).astype(kind)
    else:
        low = 0 if kind.kind == "u" else -100
        made = rng.integers(low, 100, shape).astype(kind)
    if nasty:
        made = np.where(rng.random(shape) < 1 / 3, rng.choice(special(kind), shape), made)
    return np.asarray(made, kind)


def laid_out(contents: Array, layout: str) -> Array:
    """The same contents at other places in memory."""
    match layout:
        case "Fortran":
            made = np.asfortranarray(contents)
        case "strided":
            every_second: Any = (..., *[slice(None, None, 2)] * contents.ndim)
            made = np.zeros([2 * n for n in contents.shape], contents.dtype)[every_second]
            made[...] = contents
        case "reversed":
            flip: Any = (..., *[slice(None, None, -1)] * contents.ndim)
            made = contents[flip].copy()[flip]
        case "offset" | "misaligned":
            start = contents.itemsize if layout == "offset" else 1
            memory = np.zeros(contents.nbytes + start, np.uint8)
            made = memory[start:].view(contents.dtype).reshape(contents.shape)
            made[...] = contents
        case _:
            made = contents.copy()
            made.flags.writeable = layout != "read-only"
    return made


@st.composite
def arrays(draw: st.DrawFn, dtype: Any, shape: tuple[int, ...]) -> Array:
    contents = sample(dtype, shape, draw(st.integers(0, 2**16)), draw(st.booleans()))
    return laid_out(contents, draw(st.sampled_from(LAYOUTS)))


def shapes(rank: int, least: int = 0, most: int = 9) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(least, most)] * rank)


def assert_same(got: Any, want: Array) -> None:
    """Equal dtype, shape and values; NaN equals NaN."""
    found = np.asarray(got)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    equal = (found == want) | ((found != found) & (want != want))
    assert equal.all(), f"{np.argwhere(~equal)[0]}: got {found[~equal][0]}, want {want[~equal][0]}"


def assert_close(got: Any, want: Array, magnitude: Array) -> None:
    """As `assert_same`, with a few roundings of numbers as large as `magnitude` between floats."""
    found = np.asarray(got)
    if not is_float(want.dtype):
        return assert_same(got, want)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    eps = float(ml_dtypes.finfo(want.dtype).eps)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), want.astype(np.float64)
        near = np.abs(a - b) <= 4 * eps * magnitude
    equal = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    assert equal.all(), f"{np.argwhere(~equal)[0]}: got {a[~equal][0]}, want {b[~equal][0]}"
    return None
