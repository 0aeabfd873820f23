"""Integer reasoning: polynomials over bounded symbols, and proofs that one is never negative.

In: what the front end knows of positions, extents, loop variables and the conditions around a place.
Out: yes (proved) or no (unknown). Nothing here wraps: a polynomial is only made of arithmetic that has been
proved to stay within its type.

A proof of `goal >= 0` eliminates the youngest symbol by one of its bounds, until extents alone remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from ..dtypes import DType
from ..frozen import frozen, mutable

Monomial = tuple[int, ...]  # symbol numbers, ascending, with repetition
STEPS = 400  # of one proof; far above what real kernels need


@frozen
class Poly:
    """A polynomial with integer coefficients; `()` is the constant's monomial."""

    terms: Mapping[Monomial, int]

    @staticmethod
    def of(value: int) -> Poly:
        return Poly({(): value} if value else {})

    @property
    def constant(self) -> int | None:
        """The value, where it has no symbols."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    def __add__(self, other: Poly | int) -> Poly:
        other = Poly.of(other) if isinstance(other, int) else other
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Poly({m: c for m, c in terms.items() if c})

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -other

    def __mul__(self, other: Poly | int) -> Poly:
        other = Poly.of(other) if isinstance(other, int) else other
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                m = tuple(sorted(a + b))
                terms[m] = terms.get(m, 0) + x * y
        return Poly({m: c for m, c in terms.items() if c})

    def symbols(self) -> set[int]:
        return {s for m in self.terms for s in m}

    @property
    def has_products(self) -> bool:
        return any(len(m) > 1 for m in self.terms)

    def split(self, symbol: int) -> tuple[Poly, Poly] | None:
        """(A, B) with self = A * symbol + B; None where the symbol occurs squared."""
        a: dict[Monomial, int] = {}
        b: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            match m.count(symbol):
                case 0:
                    b[m] = c
                case 1:
                    rest = list(m)
                    rest.remove(symbol)
                    a[tuple(rest)] = c
                case _:
                    return None
        return Poly(a), Poly(b)

    def key(self) -> tuple[tuple[Monomial, int], ...]:
        return tuple(sorted(self.terms.items()))


@frozen
class Bound:
    """`scale * symbol` is at least (`lower`) or at most `limit`; scale > 0."""

    lower: bool
    scale: int
    limit: Poly


@mutable
class Facts:
    """The symbols there are and what holds of them here. Later symbols are bounded by earlier ones."""

    names: list[str] = field(default_factory=list)
    bounds: dict[int, list[Bound]] = field(default_factory=dict)
    nonneg: list[Poly] = field(default_factory=list)  # of products: bounds hold the others
    quotients: dict[int, tuple[Poly, Poly]] = field(
        default_factory=dict
    )  # symbol: dividend, divisor of 1 and up
    stamp: int = 0  # names what is assumed here: equal stamps, equal assumptions
    stamps: int = 0

    def symbol(self, name: str, lower: Iterable[Poly | int] = (), upper: Iterable[Poly | int] = ()) -> Poly:
        """A new symbol with `lower <= symbol <= upper`."""
        number = len(self.names)
        self.names.append(name)
        self.bounds[number] = [
            Bound(low, 1, Poly.of(b) if isinstance(b, int) else b)
            for low, group in ((True, lower), (False, upper))
            for b in group
        ]
        return Poly({(number,): 1})

    def quotient(self, name: str, dividend: Poly, divisor: Poly) -> Poly:
        """floor(dividend / divisor) for a divisor that is proved to be positive."""
        made = self.symbol(name, [0] if self.proves(dividend) else [])
        self.quotients[self.number(made)] = (dividend, divisor)
        return made

    def number(self, poly: Poly) -> int:
        ((monomial, _),) = poly.terms.items()
        return monomial[0]

    def assume(self, goal: Poly) -> None:
        """From here on `goal >= 0` holds."""
        self.stamps += 1
        self.stamp = self.stamps
        symbols = goal.symbols()
        if not symbols:
            return
        self._assume_factors(goal)
        youngest = max(symbols)
        parts = goal.split(youngest)
        scale = parts[0].constant if parts else None
        if parts is None or not scale:
            self.nonneg.append(goal)
            return
        # scale * s + B >= 0: a lower bound of s for a positive scale, else an upper one
        bound = Bound(True, scale, -parts[1]) if scale > 0 else Bound(False, -scale, parts[1])
        self.bounds[youngest].append(bound)

    def _assume_factors(self, goal: Poly) -> None:
        """Where a product is at least 1, so is each of its factors that is not negative: H * W > i >= 0 makes W positive."""
        for monomial in goal.terms:
            product = Poly({monomial: 1})
            if len(monomial) < 2 or not self.proves(product - goal - 1):
                continue
            for s in monomial:
                if self.proves(Poly({(s,): 1})):
                    self.bounds[s].append(Bound(True, 1, Poly.of(1)))

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is assumed within ends with it; symbols stay."""
        saved = {s: len(b) for s, b in self.bounds.items()}
        facts, stamp = len(self.nonneg), self.stamp
        try:
            yield
        finally:
            for s, n in saved.items():
                del self.bounds[s][n:]
            del self.nonneg[facts:]
            self.stamp = stamp

    def proves(self, goal: Poly) -> bool:
        """Whether `goal >= 0` follows."""
        return self._prove(goal, [STEPS])

    def _prove(self, goal: Poly, steps: list[int], facts: bool = True) -> bool:
        """With `facts` one of the facts about products may be used, once."""
        constant = goal.constant
        if constant is not None:
            return constant >= 0
        steps[0] -= 1
        if steps[0] < 0:
            return False
        if facts and goal.has_products and any(self._prove_with(f, goal, steps) for f in self.nonneg):
            return True
        youngest = max(goal.symbols())
        parts = goal.split(youngest)
        if parts is None:
            return False
        a, b = parts
        sign = a.constant
        if sign is None:
            sign = 1 if self._prove(a, steps, facts) else -1 if self._prove(-a, steps, facts) else 0
        if sign == 0:
            return False
        if youngest in self.quotients and a.constant in (1, -1):
            if self._prove(self._without_quotient(youngest, sign, b), steps, facts):
                return True
        # goals are whole numbers: scale * goal > -scale is enough
        return any(
            self._prove(a * bound.limit + b * bound.scale + (bound.scale - 1), steps, facts)
            for bound in reversed(self.bounds[youngest])
            if bound.lower == (sign > 0)
        )

    def _prove_with(self, fact: Poly, goal: Poly, steps: list[int]) -> bool:
        """Whether `goal >= fact`: at once, or where only extents are left, by their bounds."""
        rest = goal - fact
        constant = rest.constant
        if constant is not None:
            return constant >= 0
        extents = all(bound.limit.constant is not None for s in rest.symbols() for bound in self.bounds[s])
        return extents and self._prove(rest, steps, facts=False)

    def _without_quotient(self, symbol: int, sign: int, rest: Poly) -> Poly:
        """What sign * q + rest >= 0 means for q = floor(n / d): q <= r is n < (r + 1) * d, and q >= r is n >= r * d."""
        dividend, divisor = self.quotients[symbol]
        return (rest + 1) * divisor - dividend - 1 if sign < 0 else dividend + rest * divisor

    def fits(self, poly: Poly, dtype: DType) -> bool:
        """Whether the value surely lies within an integer type's range."""
        return self.proves(poly - int(dtype.smallest)) and self.proves(-poly + int(dtype.largest))

    def eliminate(self, goal: Poly, keep: frozenset[int], *, scaled: bool = False) -> Poly | None:
        """A polynomial over `keep` alone that is at most `goal`, so that its being >= 0 is enough; None if there is none.

        With `scaled` a bound of 4 * s serves where s stands 4 or 8 times: so quotients lead to their dividends.
        """
        for _ in range(STEPS):
            gone = goal.symbols() - keep
            if not gone:
                return goal
            youngest = max(gone)
            parts = goal.split(youngest)
            sign = parts[0].constant if parts else None
            if parts is None:
                return None
            if sign is None:
                sign = 1 if self.proves(parts[0]) else -1 if self.proves(-parts[0]) else 0
            factor = (parts[0].constant or 1) if scaled else 1
            fitting = [
                x for x in self.bounds[youngest] if factor % x.scale == 0 and x.lower == (sign > 0) and sign
            ]
            if not fitting:
                return None
            bound = max(reversed(fitting), key=lambda x: x.scale)
            times = Poly.of(factor // bound.scale) if bound.scale > 1 else parts[0]
            goal = times * bound.limit + parts[1]
        return None
