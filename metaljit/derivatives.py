"""The derivatives of the operation table: for each operand, what a derivative `g` by the result comes to.

A rule is an expression of `g`, the operands `x`, `y`, `z` and the result `r`, linear in `g`, over the table's own
operations: so it serves arrays of a trace and values of a kernel alike, forward (where `g` is the tangent of the operand)
as well as backward. None is an operand of which the result does not depend, or by steps.

At corners: of equal operands of `minimum` and `maximum` each takes half; `absolute` has 0 at 0, `hypot` too; what has a
vertical tangent (`sqrt` at 0) has the infinite derivative; within `clip`'s bounds, which belong to it, `x` takes all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from .frozen import frozen


@frozen
class Term:
    """An operation of the table on terms and numbers; a name alone is a value that is given."""

    op: str
    args: tuple[Operand, ...] = ()

    def __add__(self, other: Operand) -> Term:
        return Term("add", (self, other))

    def __sub__(self, other: Operand) -> Term:
        return Term("subtract", (self, other))

    def __mul__(self, other: Operand) -> Term:
        return Term("multiply", (self, other))

    def __truediv__(self, other: Operand) -> Term:
        return Term("divide", (self, other))

    def __rsub__(self, other: float) -> Term:
        return Term("subtract", (other, self))

    def __rmul__(self, other: float) -> Term:
        return Term("multiply", (other, self))

    def __rtruediv__(self, other: float) -> Term:
        return Term("divide", (other, self))

    def __neg__(self) -> Term:
        return Term("negative", (self,))


Operand: TypeAlias = Term | float
Value = TypeVar("Value")


def evaluate(term: Operand, given: Mapping[str, Value], apply: Callable[[str, Sequence[Any]], Value]) -> Any:
    """A term's value, by `apply(operation, values)`; numbers are passed as they are."""
    if not isinstance(term, Term):
        return term
    if term.op in given:
        return given[term.op]
    return apply(term.op, [evaluate(a, given, apply) for a in term.args])


def _op(name: str) -> Callable[..., Term]:
    return lambda *args: Term(name, args)


G, X, Y, Z, R = map(Term, ("g", "x", "y", "z", "r"))
_where, _less, _equal, _and, _or = map(_op, ("where", "less", "equal", "logical_and", "logical_or"))
_isnan, _isfinite, _sign, _trunc, _floor_divide = map(
    _op, ("isnan", "isfinite", "sign", "trunc", "floor_divide")
)
_power, _log, _exp, _exp2, _sqrt, _copysign = map(_op, ("power", "log", "exp", "exp2", "sqrt", "copysign"))
_sin, _cos, _sinh, _cosh, _sinpi, _cospi = map(_op, ("sin", "cos", "sinh", "cosh", "sinpi", "cospi"))
_minimum, _maximum, _absolute, _ldexp = map(_op, ("minimum", "maximum", "absolute", "ldexp"))


def _lesser(a: Term, b: Term) -> Term:
    """What `a` has of `minimum(a, b)`."""
    return _where(_less(a, b), G, _where(_equal(a, b), G * 0.5, 0.0))


def _smooth_step() -> tuple[Term, Term, Term]:
    width = Y - X
    t = _minimum(_maximum((Z - X) / width, 0.0), 1.0)
    slope = G * 6.0 * t * (1.0 - t) / width
    return slope * (t - 1.0), -slope * t, slope


def _digamma(x: Term) -> Term:
    """By recurrence to above 6, the asymptotic series there, and reflection below 1/2 (DLMF 5.5.2, 5.11.2, 5.5.4)."""
    low = _less(x, 0.5)
    y = _where(low, 1.0 - x, x)
    z = y + 6.0
    w = 1.0 / (z * z)
    series = _log(z) - 0.5 / z - w * (1 / 12 - w * (1 / 120 - w / 252.0))
    for k in range(6):
        series = series - 1.0 / (y + float(k))
    return _where(low, series - math.pi * _cospi(x) / _sinpi(x), series)


Rule: TypeAlias = tuple[Term | None, ...]
DERIVATIVES: dict[str, Rule] = {
    "add": (G, G),
    "subtract": (G, -G),
    "multiply": (G * Y, G * X),
    "divide": (G / Y, -(G * R / Y)),
    "floor_divide": (None, None),
    "remainder": (G, -(G * _floor_divide(X, Y))),
    "fmod": (G, -(G * _trunc(X / Y))),
    "power": (
        _where(_equal(Y, 0.0), 0.0, G * Y * _power(X, Y - 1.0)),
        _where(_equal(X, 0.0), 0.0, G * R * _log(X)),
    ),
    "negative": (-G,),
    "positive": (G,),
    "absolute": (G * _sign(X),),
    "sign": (None,),
    "square": (G * (2.0 * X),),
    "reciprocal": (-(G * R * R),),
    "fma": (G * Y, G * X, G),
    "minimum": (_lesser(X, Y), _lesser(Y, X)),
    "maximum": (_lesser(-X, -Y), _lesser(-Y, -X)),
    "fmin": (_where(_isnan(Y), G, _lesser(X, Y)), _where(_isnan(X), G, _lesser(Y, X))),
    "fmax": (_where(_isnan(Y), G, _lesser(-X, -Y)), _where(_isnan(X), G, _lesser(-Y, -X))),
    "clip": (
        _where(_or(_less(X, Y), _less(Z, X)), 0.0, G),
        _where(_and(_less(X, Y), _less(Y, Z)), G, 0.0),
        _where(_less(Z, _maximum(X, Y)), G, 0.0),
    ),
    "where": (None, _where(X, G, 0.0), _where(X, 0.0, G)),
    "heaviside": (None, _where(_equal(X, 0.0), G, 0.0)),
    "step": (None, None),
    "smoothstep": _smooth_step(),
    "mix": (G * (1.0 - Z), G * Z, G * (Y - X)),
    "nan_to_num": (_where(_isfinite(X), G, 0.0),),
    "fract": (G,),
    "copysign": (G * _sign(X) * _copysign(1.0, Y), None),
    "ldexp": (_ldexp(G, Y), None),
    "nextafter": (G, None),
    "degrees": (G * (180 / math.pi),),
    "radians": (G * (math.pi / 180),),
    "sqrt": (G * 0.5 / R,),
    "rsqrt": (G * -0.5 * R / X,),
    "cbrt": (G / (3.0 * R * R),),
    "hypot": (_where(_equal(R, 0.0), 0.0, G * X / R), _where(_equal(R, 0.0), 0.0, G * Y / R)),
    "exp": (G * R,),
    "exp2": (G * R * math.log(2),),
    "exp10": (G * R * math.log(10),),
    "expm1": (G * (R + 1.0),),
    "log": (G / X,),
    "log2": (G / (X * math.log(2)),),
    "log10": (G / (X * math.log(10)),),
    "log1p": (G / (X + 1.0),),
    "logaddexp": (G * _exp(X - R), G * _exp(Y - R)),
    "logaddexp2": (G * _exp2(X - R), G * _exp2(Y - R)),
    "sin": (G * _cos(X),),
    "cos": (-(G * _sin(X)),),
    "tan": (G * (R * R + 1.0),),
    "sinpi": (G * math.pi * _cospi(X),),
    "cospi": (-(G * math.pi * _sinpi(X)),),
    "sinc": (_where(_equal(X, 0.0), 0.0, G * (_cospi(X) - R) / X),),
    "arcsin": (G / _sqrt(1.0 - X * X),),
    "arccos": (-(G / _sqrt(1.0 - X * X)),),
    "arctan": (G / (X * X + 1.0),),
    "arctan2": (G * Y / (X * X + Y * Y), -(G * X / (X * X + Y * Y))),
    "sinh": (G * _cosh(X),),
    "cosh": (G * _sinh(X),),
    "tanh": (G * (1.0 - R * R),),
    "arcsinh": (G / _sqrt(X * X + 1.0),),
    "arccosh": (G / _sqrt(X * X - 1.0),),
    "arctanh": (G / (1.0 - X * X),),
    "erf": (G * (2 / math.sqrt(math.pi)) * _exp(-(X * X)),),
    "erfc": (G * (-2 / math.sqrt(math.pi)) * _exp(-(X * X)),),
    "erfinv": (G * (math.sqrt(math.pi) / 2) * _exp(R * R),),
    "lgamma": (G * _digamma(X),),
    "gamma": (G * R * _digamma(X),),
} | dict.fromkeys(("floor", "ceil", "trunc", "rint"), (None,))
