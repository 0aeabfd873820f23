"""What an operation says of ranges: its result as a polynomial, and what holds where a comparison is true.

In: an operation and its operands. Out: polynomials for `bounds`; None where nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import I32, DType
from ...program import INDEX_MAX
from ..bounds import Bound, Poly
from .body import Body
from .values import (
    Typed,
)


def polynomial(body: Body, name: str, operands: Sequence[Typed], result: DType) -> tuple[Poly | None, bool]:
    """The result as a polynomial where it cannot wrap, and whether the plain operator of C gives it."""
    if not result.is_integer or any(o.poly is None for o in operands):
        return _poly_of_bits(body, name, operands, result), False
    facts = body.unit.facts
    p = [o.poly for o in operands if o.poly is not None]
    match name:
        case "add" | "subtract" | "multiply" | "negative":
            made = {"add": lambda: p[0] + p[1], "subtract": lambda: p[0] - p[1], "multiply": lambda: p[0] * p[1],
                    "negative": lambda: -p[0]}[name]()  # fmt: skip
            return (made, True) if fits(body, made, result) else (None, False)
        case "positive":
            return p[0], True
        case "floor_divide" | "remainder":
            return _division(body, name, p[0], p[1]), facts.proves(p[0]) and facts.proves(p[1] - 1)
        case "right_shift" if (k := p[1].constant) is not None and 0 <= k < result.bits:
            return body.unit.quotient("shifted", p[0], 1 << k), False
        case "left_shift" if (k := p[1].constant) is not None and 0 <= k < result.bits:
            made = p[0] * (1 << k)
            return (made if facts.fits(made, result) else None), False
        case "minimum":
            low = [0] if all(facts.proves(q) for q in p) else []
            return facts.symbol("min", low, p), False
        case "maximum":
            high = [b.limit for q in p for b in _uppers(body, q) if all(facts.proves(b.limit - r) for r in p)]
            return facts.symbol("max", p, high), False
        case "clip":
            least = [p[1]] if facts.proves(p[2] - p[1]) else []
            return facts.symbol("clip", least, [p[2]]), False
        case "bitwise_and":
            return _poly_of_bits(body, name, operands, result), False
    return None, False


def fits(body: Body, poly: Poly, dtype: DType) -> bool:
    """Whether a value stays within its type: proved, or true of all arrays but those at the very limit of size.

    `i + 2` passes 2³¹ − 1 only where an extent is at most 2 below it: such a call is refused instead.
    """
    facts = body.unit.facts
    if dtype != I32 or not facts.proves(poly - int(dtype.smallest)):
        return facts.fits(poly, dtype)
    over = -poly + INDEX_MAX
    return facts.proves(over) or body.unit.limit_size(over)


def _uppers(body: Body, poly: Poly) -> list[Bound]:
    """Upper bounds of a lone symbol."""
    if len(poly.terms) != 1 or len(next(iter(poly.terms))) != 1:
        return [Bound(False, 1, poly)]
    return [b for b in body.unit.facts.bounds[body.unit.facts.number(poly)] if not b.lower and b.scale == 1]


def _division(body: Body, name: str, a: Poly, b: Poly) -> Poly | None:
    facts = body.unit.facts
    divisor = b.constant
    if name == "floor_divide":
        if divisor is not None and divisor > 0:
            return body.unit.quotient("quotient", a, divisor)
        return facts.quotient("quotient", a, b) if facts.proves(b - 1) else None
    if facts.proves(b - 1):
        upper = [b - 1, a] if facts.proves(a) else [b - 1]
        return facts.symbol("remainder", [0], upper)
    if facts.proves(b):  # x % 0 is 0
        return facts.symbol("remainder", [0], [b])
    return None


def _poly_of_bits(body: Body, name: str, operands: Sequence[Typed], result: DType) -> Poly | None:
    """`x & c` lies in [0, c] whatever x is; popcount, clz and ctz within the width."""
    if not result.is_integer:
        return None
    facts = body.unit.facts
    if name == "bitwise_and":
        masks = [o.poly for o in operands if o.poly is not None and facts.proves(o.poly)]
        return facts.symbol("masked", [0], masks) if masks else None
    if name in ("popcount", "clz", "ctz"):
        return facts.symbol(name, [0], [result.bits])
    if name == "remainder" and operands[1].poly is not None and facts.proves(operands[1].poly - 1):
        return facts.symbol("remainder", [0], [operands[1].poly - 1])
    return None


def facts_of(body: Body, name: str, operands: Sequence[Typed]) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
    """What holds where a comparison of integers is true, and where it is false."""
    if len(operands) != 2 or operands[0].poly is None or operands[1].poly is None:
        return (), ()
    a, b = operands[0].poly, operands[1].poly
    match name:
        case "less":
            return (b - a - 1,), (a - b,)
        case "less_equal":
            return (b - a,), (a - b - 1,)
        case "greater":
            return (a - b - 1,), (b - a,)
        case "greater_equal":
            return (a - b,), (b - a - 1,)
        case "equal":
            return (a - b, b - a), _apart(body, a, b)
        case "not_equal":
            return _apart(body, a, b), (a - b, b - a)
    return (), ()


def _apart(body: Body, a: Poly, b: Poly) -> tuple[Poly, ...]:
    """a != b says something where one of them is known to be at the other's edge: 0 <= i and i != 0 is 1 <= i."""
    facts = body.unit.facts
    if facts.proves(a - b):
        return (a - b - 1,)
    return (b - a - 1,) if facts.proves(b - a) else ()
