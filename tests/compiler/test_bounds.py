"""The prover never proves what is false, and proves what kernels need."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaljit.compiler.bounds import Bound, Facts, Poly
from metaljit.dtypes import I32, U8


def evaluate(poly: Poly, values: Mapping[int, int]) -> int:
    total = 0
    for monomial, c in poly.terms.items():
        term = c
        for s in monomial:
            term *= values[s]
        total += term
    return total


coefficients = st.integers(-3, 3)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Facts, list[tuple[Poly, Poly]], Poly]:
    """Facts about three symbols, each bounded by earlier ones, and a goal."""
    facts = Facts()
    symbols: list[Poly] = []
    ranges: list[tuple[Poly, Poly]] = []
    for k in range(3):
        low = Poly.of(draw(st.integers(-2, 2)))
        high = Poly.of(draw(st.integers(0, 3)))
        if k:
            high = high + symbols[k - 1] * draw(st.integers(0, 2))
        symbols.append(facts.symbol(f"s{k}", [low], [high]))
        ranges.append((low, high))
    goal = Poly.of(draw(st.integers(-4, 4)))
    for a in symbols:
        goal = goal + a * draw(coefficients)
    for a, b in itertools.combinations_with_replacement(symbols, 2):
        goal = goal + a * b * draw(st.sampled_from([0, 0, 0, 1, -1]))
    return facts, ranges, goal


@given(situations())
def test_what_is_proved_holds_for_all_values(situation: tuple[Facts, list[tuple[Poly, Poly]], Poly]) -> None:
    facts, ranges, goal = situation
    if not facts.proves(goal):
        return
    values: dict[int, int] = {}

    def every(k: int) -> None:
        if k == len(ranges):
            assert evaluate(goal, values) >= 0
            return
        low, high = ranges[k]
        for v in range(evaluate(low, values), evaluate(high, values) + 1):
            values[k] = v
            every(k + 1)

    every(0)


def test_a_flat_index_is_proved_in_range() -> None:
    facts = Facts()
    h, w = facts.symbol("H", [1]), facts.symbol("W", [1])
    y, x = facts.symbol("y", [0], [h - 1]), facts.symbol("x", [0], [w - 1])
    flat = y * w + x
    assert facts.proves(flat)
    assert facts.proves(h * w - flat - 1)
    assert not facts.proves(h * w - flat - 2)


def test_a_condition_counts_only_in_its_scope() -> None:
    facts = Facts()
    n = facts.symbol("n", [0])
    i = facts.symbol("i", [-5], [5])
    with facts.scope():
        facts.assume(n - i - 1)
        facts.assume(i)
        assert facts.proves(i)
        assert facts.proves(n - i - 1)
    assert not facts.proves(i)
    assert not facts.proves(n - i - 1)


@pytest.mark.parametrize(("divisor", "top"), [(2, 5), (3, 7), (7, 6)])
def test_scaled_bounds_round_to_whole_numbers(divisor: int, top: int) -> None:
    """q = i // d with i < d * n lies below n."""
    from metaljit.compiler.bounds import Bound

    facts = Facts()
    n = facts.symbol("n", [1], [top])
    i = facts.symbol("i", [0], [n * divisor - 1])
    q = facts.symbol("q")
    facts.bounds[facts.number(q)] += [Bound(False, divisor, i), Bound(True, divisor, i - (divisor - 1))]
    assert facts.proves(n - q - 1)
    assert facts.proves(q)
    assert not facts.proves(n - q - 2)


def test_ranges_of_types() -> None:
    facts = Facts()
    v = facts.symbol("v", [0], [255])
    assert facts.fits(v, U8)
    assert not facts.fits(v + 1, U8)
    assert facts.fits(v * 1000, I32)
    assert not facts.fits(v * 10_000_000, I32)


def test_elimination_gives_a_sufficient_condition() -> None:
    facts = Facts()
    n = facts.symbol("n", [1])
    x = facts.symbol("x", [0], [n - 1])
    k = facts.symbol("k", [-2], [2])
    kept = frozenset({facts.number(n), facts.number(x)})
    assert facts.eliminate(x + k, kept) == x - 2
    assert facts.eliminate(n - 1 - x - k, kept) == n - x - 3


@st.composite
def divisions(draw: st.DrawFn) -> tuple[Facts, list[dict[int, int]], tuple[Poly, Poly], Poly]:
    """Facts about four symbols and products of them, all values that they allow, a quotient, and a goal about it."""
    facts = Facts()
    assumed: list[Poly] = []
    symbols: list[Poly] = []
    ranges: list[tuple[Poly, Poly]] = []
    for k in range(4):
        low = Poly.of(draw(st.integers(0, 1)))
        high = Poly.of(draw(st.integers(1, 3)))
        if k > 1:
            high = high + symbols[k - 2] * draw(st.integers(0, 1))
        symbols.append(facts.symbol(f"s{k}", [low], [high]))
        ranges.append((low, high))
    h, w = symbols[0], symbols[1]
    if draw(st.booleans()):
        assumed.append(h * w - symbols[2] - draw(st.integers(0, 2)))
    if draw(st.booleans()):
        assumed.append(symbols[2] * 2 - symbols[3] * draw(st.integers(1, 2)))
    for fact in assumed:
        facts.assume(fact)
    allowed = [v for v in assignments(ranges) if all(evaluate(f, v) >= 0 for f in assumed)]
    dividend = symbols[2] * draw(st.integers(0, 2)) + symbols[3] * draw(coefficients) + draw(coefficients)
    divisor = draw(st.sampled_from([w, h, h * w, Poly.of(2), w + 1]))
    if not facts.proves(divisor - 1):
        divisor = divisor + 1
    q = facts.quotient("q", dividend, divisor)
    limit = draw(st.sampled_from([h, w, symbols[2], Poly.of(2), h * w]))
    goal = draw(st.sampled_from([limit - q - 1, q - limit, q, limit - q, h * w - q * w - 1, q * 2 + limit]))
    return facts, allowed, (dividend, divisor), goal


@given(divisions())
def test_what_is_proved_of_quotients_holds_for_all_values(
    case: tuple[Facts, list[dict[int, int]], tuple[Poly, Poly], Poly],
) -> None:
    facts, allowed, (dividend, divisor), goal = case
    if not facts.proves(goal):
        return
    for values in allowed:
        if (divided := evaluate(divisor, values)) >= 1:
            values[4] = evaluate(dividend, values) // divided
            assert evaluate(goal, values) >= 0


def assignments(ranges: list[tuple[Poly, Poly]]) -> list[dict[int, int]]:
    """All values of the symbols within their ranges."""
    found: list[dict[int, int]] = [{}]
    for k, (low, high) in enumerate(ranges):
        found = [
            values | {k: v}
            for values in found
            for v in range(evaluate(low, values), evaluate(high, values) + 1)
        ]
    return found


def test_a_product_that_is_positive_has_positive_factors() -> None:
    facts = Facts()
    h, w = facts.symbol("H", [0]), facts.symbol("W", [0])
    i = facts.symbol("i", [0])
    with facts.scope():
        facts.assume(h * w - i - 1)
        assert facts.proves(h - 1)
        assert facts.proves(w - 1)
        q = facts.quotient("q", i, w)
        assert facts.proves(q)
        assert facts.proves(h - q - 1)
        assert not facts.proves(h - q - 2)
        q = facts.quotient("q", facts.symbol("j", [w * 2]), w)
        assert facts.proves(q - 2)
        assert not facts.proves(q - 3)
    assert not facts.proves(w - 1)
    with facts.scope():
        facts.assume(h * w - i)  # both may be 0
        assert not facts.proves(w - 1)
    signed = facts.symbol("k", [-3])
    facts.assume(signed * w - 1)
    assert not facts.proves(signed - 1)


def test_a_quotient_leads_to_its_dividend() -> None:
    """1024 * g + 5 <= N + 4 for g < ceil_div(N, 1024), though the quotient's own bounds are of 1024 times it."""
    facts = Facts()
    n = facts.symbol("N", [0], [2**31 - 1])
    q = facts.symbol("q", [0], [2**21])
    facts.bounds[facts.number(q)].append(Bound(False, 1024, n + 1023))
    g = facts.symbol("g", [0], [q - 1])
    goal, keep = -(g * 1024 + 5) + (2**31 - 1), frozenset({facts.number(n)})
    found = facts.eliminate(goal, keep, scaled=True)
    assert found is not None
    assert (found - (-n + (2**31 - 5))).constant == 0
    unscaled = facts.eliminate(goal, keep)
    assert unscaled is None or unscaled.constant is not None
