"""What each operation means, in NumPy: the interpreter, the constant folder and the tests compute with these.

In: NumPy scalars or arrays of the typed operands' dtypes. Out: the same of the result's dtype, no warning.
Integers and bit tests are exact. A float function that has no exact float32 formula is computed in float64
and rounded once to float32; 16-bit floats go through float32, as the generated text does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Meaning = Callable[..., Any]


def native(f: Meaning) -> Meaning:
    """A function with a NumPy loop for each type, without its warnings; a 0-d array is given as a scalar."""

    def meaning(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            result = f(*args)
        return result[()] if isinstance(result, np.ndarray) and result.ndim == 0 else result

    return meaning


def is_float(x: Any) -> bool:
    """Whether the element type is a float; bfloat16 is one, though NumPy takes it for opaque data."""
    return bool(x.dtype.kind == "f" or x.dtype.name == "bfloat16")


def single(f: Meaning) -> Meaning:
    """16-bit floats through float32; float32 and integers as they are. The result's type is the operands'."""

    def through(*args: Any) -> Any:
        dtype = args[0].dtype
        if not is_float(args[0]) or dtype == np.float32:
            return f(*args)
        return f(*(a.astype(np.float32) if is_float(a) else a for a in args)).astype(dtype)

    return native(through)


def double(f: Meaning) -> Meaning:
    """Through float64, rounded to float32, and for 16-bit floats once more."""

    def through(*args: Any) -> Any:
        dtype = args[0].dtype
        wide = f(*(a.astype(np.float64) if is_float(a) else a for a in args))
        return np.asarray(wide).astype(np.float32).astype(dtype)

    return native(through)


def test(f: Meaning) -> Meaning:
    """A bit test of a float, with `False` or the like for other types decided by `f`."""

    def through(x: Any) -> Any:
        return f(x.astype(np.float32) if x.dtype.name == "bfloat16" else x)

    return native(through)


# ---- arithmetic ----


def _integer_power(base: Any, exponent: Any) -> Any:
    """By squaring, wrapping; a negative exponent gives 0, or ±1 where the base is ±1."""
    base, exponent = np.broadcast_arrays(base, exponent)
    negative = exponent < 0
    raised = np.power(base, np.where(negative, 0, exponent).astype(base.dtype))
    odd = (exponent & 1) != 0
    inverse = np.where(base == 1, 1, np.where((base == -1), np.where(odd, -1, 1), 0)) if negative.any() else 0
    return np.where(negative, inverse, raised).astype(base.dtype)


def _power(base: Any, exponent: Any) -> Any:
    if not is_float(base):
        return _integer_power(base, exponent)
    wide = np.power(base.astype(np.float64), exponent.astype(np.float64))
    return wide.astype(np.float32).astype(base.dtype)


power = native(_power)


def _fma(a: Any, b: Any, c: Any) -> Any:
    """One rounding: the product of two float32 is exact in float64, and the sum is rounded to odd there."""
    x, z = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = x + z
    part = total - x
    error = (x - (total - part)) + (z - part)
    bits = np.asarray(total).view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & ((bits & 1) == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where(inexact, bits + toward, bits).view(np.float64)
    return odd.astype(np.float32)


fma = single(_fma)


def rounding(f: Meaning) -> Meaning:
    """A rounding of floats that leaves other types alone."""
    return native(lambda x: f(x) if is_float(x) else x)


# ---- integers and bits ----


def _unsigned(x: Any) -> Any:
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def _bits(x: Any) -> int:
    return int(x.dtype.itemsize) * 8


def _shift_left(x: Any, count: Any) -> Any:
    inside = (count >= 0) & (count < _bits(x))
    shifted = np.left_shift(_unsigned(x), np.where(inside, count, 0).astype(_unsigned(x).dtype))
    return np.where(inside, shifted, 0).astype(_unsigned(x).dtype).view(x.dtype)


def _shift_right(x: Any, count: Any) -> Any:
    inside = (count >= 0) & (count < _bits(x))
    shifted = np.right_shift(x, np.where(inside, count, 0).astype(x.dtype))
    return np.where(inside, shifted, np.where(x < 0, -1, 0).astype(x.dtype)).astype(x.dtype)


def _rotate(x: Any, count: Any) -> Any:
    u, width = _unsigned(x), _bits(x)
    n = (np.asarray(count).astype(np.int64) & (width - 1)).astype(u.dtype)
    back = ((width - n.astype(np.int64)) & (width - 1)).astype(u.dtype)
    return ((u << n) | (u >> back)).astype(u.dtype).view(x.dtype)


def _popcount(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)


def _smear(u: Any) -> Any:
    """Every bit below the highest set one is set too."""
    shift = 1
    while shift < _bits(u):
        u = u | (u >> np.asarray(shift, u.dtype))
        shift *= 2
    return u


def _clz(x: Any) -> Any:
    return (_bits(x) - np.bitwise_count(_smear(_unsigned(x))).astype(np.int64)).astype(x.dtype)


def _ctz(x: Any) -> Any:
    u = _unsigned(x)
    below = ~u & (u - np.asarray(1, u.dtype))
    return np.bitwise_count(below).astype(x.dtype)


def _reverse_bits(x: Any) -> Any:
    u = _unsigned(x)
    out = np.zeros_like(u)
    one = np.asarray(1, u.dtype)
    for _ in range(_bits(x)):
        out = (out << one) | (u & one)
        u = u >> one
    return out.view(x.dtype)


def _mulhi(a: Any, b: Any) -> Any:
    width = _bits(a)
    high = np.frompyfunc(lambda x, y: (int(x) * int(y)) >> width, 2, 1)(a, b)
    return np.asarray(high).astype(a.dtype)


shift_left = native(_shift_left)
shift_right = native(_shift_right)
rotate = native(_rotate)
popcount = native(_popcount)
bitwise_count = native(lambda x: np.bitwise_count(x).astype(x.dtype))
clz = native(_clz)
ctz = native(_ctz)
reverse_bits = native(_reverse_bits)
mulhi = native(_mulhi)


# ---- truths, choices, tests ----

where = native(np.where)
isnan = test(np.isnan)
isinf = test(np.isinf)
isfinite = test(np.isfinite)
isposinf = test(lambda x: np.isinf(x) & (x > 0))
isneginf = test(lambda x: np.isinf(x) & (x < 0))
signbit = test(lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0)
clip = single(lambda x, low, high: np.minimum(np.maximum(x, low), high))


def _nan_to_num(x: Any) -> Any:
    if not is_float(x):
        return x
    largest = _largest(x.dtype)
    finite = np.clip(np.where(np.isnan(x), np.asarray(0, x.dtype), x).astype(np.float32), -largest, largest)
    return finite.astype(x.dtype)


def _largest(dtype: Any) -> np.float32:
    if dtype.name == "bfloat16":
        return np.float32(np.uint32(0x7F7F0000).view(np.float32))
    return np.float32(np.finfo(dtype).max)


nan_to_num = native(_nan_to_num)
heaviside = single(np.heaviside)


# ---- functions of floats ----


def _each(f: Callable[[float], float]) -> Meaning:
    """A function of `math`, element by element; what it refuses is NaN, what is too large infinity."""

    def one(x: float) -> float:
        try:
            return f(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    loop = np.frompyfunc(one, 1, 1)
    return double(lambda x: np.asarray(loop(x), dtype=np.float64))


def _erfinv(y: float) -> float:
    """Newton's method on erf, from a rough logarithmic start; the tail is solved on erfc."""
    if not abs(y) < 1.0:
        return math.copysign(math.inf, y) if abs(y) == 1.0 else math.nan
    sign = math.copysign(1.0, y)
    log = math.log1p(-y * y)
    part = 2.0 / (math.pi * 0.147) + log / 2.0
    x = sign * math.sqrt(math.sqrt(part * part - log / 0.147) - part)
    for _ in range(4):
        error = math.erf(x) - y if abs(y) < 0.5 else sign * ((1.0 - abs(y)) - math.erfc(abs(x)))
        x -= error / (2.0 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def _lgamma(x: float) -> float:
    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.gamma(x)


def _sinpi(x: Any) -> Any:
    """The argument is reduced exactly; a zero has the argument's sign, as IEEE asks."""
    r = np.fmod(x, 2.0)
    r = np.where(np.abs(r) > 1.0, r - np.copysign(2.0, r), r)
    folded = np.where(np.abs(r) > 0.5, np.copysign(1.0, r) - r, r)
    return np.where(folded == 0, np.copysign(0.0, x), np.sin(np.pi * folded))


def _cospi(x: Any) -> Any:
    r = np.abs(np.fmod(x, 2.0))
    r = np.where(r > 1.0, 2.0 - r, r)
    return np.where(r == 0.5, 0.0, np.where(r < 0.25, np.cos(np.pi * r), np.sin(np.pi * (0.5 - r))))


def _sinc(x: Any) -> Any:
    return np.where(x == 0, 1.0, _sinpi(x) / (np.pi * np.where(x == 0, 1.0, x)))


def _fract(x: Any) -> Any:
    one = np.asarray(1, x.dtype)
    r = x - np.floor(x)
    return np.where(r >= one, np.nextafter(one, np.asarray(0, x.dtype)), r)


def _smoothstep(low: Any, high: Any, x: Any) -> Any:
    t = np.minimum(np.maximum((x - low) / (high - low), 0), 1)
    return t * t * (3 - 2 * t)


def _mix(x: Any, y: Any, a: Any) -> Any:
    return x + (y - x) * a


erf = _each(math.erf)
erfc = _each(math.erfc)
erfinv = _each(_erfinv)
lgamma = _each(_lgamma)
gamma = _each(_gamma)
sinpi = double(_sinpi)
cospi = double(_cospi)
sinc = double(_sinc)
rsqrt = double(lambda x: 1.0 / np.sqrt(x))
exp10 = double(lambda x: np.power(10.0, x))
square = single(lambda x: x * x)
reciprocal = double(lambda x: 1.0 / x)
ldexp = double(lambda x, k: np.ldexp(x, np.clip(k, -2000, 2000)))
fract = native(_fract)
step = single(lambda edge, x: np.where(x < edge, 0, 1).astype(np.float32))
smoothstep = single(_smoothstep)
mix = single(_mix)
degrees = double(np.degrees)
radians = double(np.radians)
