"""Hypothesis strategies for what kernels are called with: shapes, element types, values, arrays in every layout.

In: an element type, a shape. Out: strategies that have the nasty values in reach (ends of a type, NaN, −0.0,
denormals, neighbours of powers of two) and shrink to small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from .dtypes import DTYPES, GROUPS, DType
from .frozen import frozen

Number: TypeAlias = bool | int | float
Shape: TypeAlias = tuple[int, ...]


def shapes(
    min_dims: int = 0, max_dims: int = 3, min_side: int = 0, max_side: int = 6
) -> st.SearchStrategy[Shape]:
    """Shapes of `min_dims` to `max_dims` axes; an empty axis and a lone element are among them."""
    return st.lists(st.integers(min_side, max_side), min_size=min_dims, max_size=max_dims).map(tuple)


def dtypes(*names: str) -> st.SearchStrategy[DType]:
    """Element types of the language: all, or those named ("u8"), or those of a group ("float", "int", "number")."""
    found = [d for n in names or tuple(DTYPES) for d in (GROUPS.get(n) or (DTYPES[n],))]
    return st.sampled_from(list(dict.fromkeys(found)))


# ---- values ----


def values(
    dtype: DType, *, finite: bool = False, low: Number | None = None, high: Number | None = None
) -> Any:
    """Numbers that the type holds exactly, nasty ones often.

    `finite` leaves NaN and the infinities out, `low` and `high` bound the values (and do the same).
    """
    if dtype.kind == "bool":
        return st.booleans()
    if low is not None or high is not None or finite:
        return _within(dtype, low, high)
    if dtype.is_integer:
        return st.sampled_from(nasty(dtype)) | st.integers(-4, 4).filter(_holds(dtype)) | _integers(dtype)
    return st.sampled_from(nasty(dtype)) | st.integers(-4, 4).map(float) | _floats(dtype)


def _integers(dtype: DType) -> st.SearchStrategy[int]:
    return st.integers(int(dtype.smallest), int(dtype.largest))


def _floats(dtype: DType) -> st.SearchStrategy[float]:
    if dtype.name == "bf16":
        bits = st.integers(0, 0xFFFF)
        return bits.map(lambda b: float(np.uint32(b << 16).view(np.float32)))
    return st.floats(width=dtype.bits)  # type: ignore[arg-type]


def _holds(dtype: DType) -> Callable[[int], bool]:
    return lambda v: dtype.smallest <= v <= dtype.largest


def _within(dtype: DType, low: Number | None, high: Number | None) -> st.SearchStrategy[Any]:
    least, greatest = _ends(dtype)
    least = least if low is None else max(low, least)
    greatest = greatest if high is None else min(high, greatest)
    fitting = [v for v in nasty(dtype) if least <= v <= greatest]
    drawn = (
        st.integers(int(np.ceil(least)), int(np.floor(greatest)))
        if dtype.is_integer
        else _floats(dtype).filter(lambda v: least <= v <= greatest)
        | st.floats(least, greatest).map(_rounded(dtype))
    )
    return st.sampled_from(fitting) | drawn if fitting else drawn


def _ends(dtype: DType) -> tuple[Number, Number]:
    if dtype.is_integer:
        return dtype.smallest, dtype.largest
    greatest = max(v for v in nasty(dtype) if np.isfinite(v))
    return -greatest, greatest


def _rounded(dtype: DType) -> Callable[[float], float]:
    return lambda v: float(np.asarray(v).astype(dtype.numpy))


@cache
def nasty(dtype: DType) -> tuple[Any, ...]:
    """The values of a type at which programs break, the plain ones first."""
    if dtype.kind == "bool":
        return (False, True)
    if dtype.is_integer:
        around = [s * 2**k + d for k in range(dtype.bits) for s in (1, -1) for d in (-1, 0, 1)]
        inside = {
            v for v in (0, *around, dtype.smallest, dtype.largest) if dtype.smallest <= v <= dtype.largest
        }
        return tuple(sorted(inside, key=lambda v: (abs(v), v < 0)))
    # sign, exponent and mantissa of the 16- or 32-bit pattern: every power of two with its neighbours
    mantissa = {"f32": 23, "f16": 10, "bf16": 7}[dtype.name]
    unsigned = np.uint32 if dtype.bits == 32 else np.uint16
    exponents = range(0, 1 << (dtype.bits - 1 - mantissa), 1 if dtype.bits == 16 else 8)
    patterns = {max((e << mantissa) + d, 0) for e in exponents for d in (-1, 0, 1)}
    infinity = ((1 << (dtype.bits - 1 - mantissa)) - 1) << mantissa
    patterns |= {infinity, infinity - 1, 1, 1 << mantissa, (1 << mantissa) - 1}
    bits = np.array(sorted(p for p in patterns if p <= infinity), unsigned)
    found = [float(v) for v in bits.view(dtype.numpy).astype(np.float64)]
    both = [s * v for v in [0.0, 1.0, *found] for s in (1.0, -1.0)]
    return (*dict.fromkeys((repr(v), v)[1] for v in both if v), 0.0, -0.0, float("nan"))


# ---- layouts ----


@frozen
class Layout:
    """A way for an array to lie in memory; `lay` gives an array of the same shape that lies so."""

    name: str
    lay: Callable[[NDArray[Any]], NDArray[Any]]

    def __repr__(self) -> str:
        return self.name


def _strided(x: NDArray[Any]) -> NDArray[Any]:
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1) if x.ndim else (), x.dtype)
    view = wide[..., : 2 * x.shape[-1] : 2] if x.ndim else wide
    view[...] = x
    return view


def _reversed(x: NDArray[Any]) -> NDArray[Any]:
    back: Any = (..., *(slice(None, None, -1),) * x.ndim)
    turned: NDArray[Any] = x[back].copy()[back]
    return turned


def _offset(x: NDArray[Any]) -> NDArray[Any]:
    wide = np.zeros(tuple(n + 2 for n in x.shape), x.dtype)
    inside: Any = (..., *(slice(1, n + 1) for n in x.shape))
    view: NDArray[Any] = wide[inside]
    view[...] = x
    return view


def _unaligned(x: NDArray[Any]) -> NDArray[Any]:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def _transposed(x: NDArray[Any]) -> NDArray[Any]:
    turned = np.roll(np.arange(x.ndim), 1)
    return x.transpose(turned).copy().transpose(np.argsort(turned))


def _broadcast(x: NDArray[Any]) -> NDArray[Any]:
    return np.broadcast_to(x[:1], x.shape) if x.ndim and x.shape[0] else x


def _read_only(x: NDArray[Any]) -> NDArray[Any]:
    fixed = np.array(x)
    fixed.flags.writeable = False
    return fixed


LAYOUTS = (
    Layout("C", lambda x: np.array(x, order="C")),
    Layout("F", lambda x: np.array(x, order="F")),
    Layout("strided", _strided),
    Layout("reversed", _reversed),
    Layout("offset", _offset),
    Layout("transposed", _transposed),
    Layout("broadcast", _broadcast),
    Layout("read-only", _read_only),
    Layout("unaligned", _unaligned),
)


def layouts() -> st.SearchStrategy[Layout]:
    """C order first; then Fortran order, strided, reversed, inside a larger array, axes turned around, zero strides
    (the values along the first axis become equal), read-only, and one byte off its alignment."""
    return st.sampled_from(LAYOUTS)


@st.composite
def arrays(
    draw: st.DrawFn,
    dtype: DType | st.SearchStrategy[DType],
    shape: Shape | st.SearchStrategy[Shape],
    *,
    elements: st.SearchStrategy[Any] | None = None,
    layout: Layout | st.SearchStrategy[Layout] | None = None,
) -> NDArray[Any]:
    """NumPy arrays of an element type and shape (or strategies of them), in C order unless a `layout` is given."""
    d = dtype if isinstance(dtype, DType) else draw(dtype)
    n = shape if isinstance(shape, tuple) else draw(shape)
    of = values(d) if elements is None else elements
    wide = np.dtype(np.float32) if d.name == "bf16" else d.numpy
    made: NDArray[Any] = draw(hnp.arrays(wide, n, elements=of)).astype(d.numpy)
    if layout is None:
        return made
    return (layout if isinstance(layout, Layout) else draw(layout)).lay(made)
