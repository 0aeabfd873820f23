"""`math="fast"`: what looks at bits, and integers, stay exact; sums of ordinary numbers stay within their bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_expressions import Expr, expressions, samples
from random_fast import EXACT_TYPES, FAST, Sum, asked, sums
from random_runs import kernel_of, runners

from metaljit.dtypes import DTYPES, DType
from metaljit.operation_rules import Operation
from metaljit.testing import EXACT, Tolerance, difference

COUNT = 40
FLOATS = {f"{n}_{d}": d for d in DTYPES.values() if d.is_float for n in "xy"}
OTHERS = {f"{n}_{d}": d for d in EXACT_TYPES for n in "x"}
NEAR = Tolerance(2.0**-10, 2.0**-10)
POLE = 32.0


def compare(
    results: list[tuple[str, DType]],
    arrays: dict[str, Any],
    wrong: Callable[[int, Any], str | None],
    **how: Any,
) -> bool:
    """`wrong` takes the number of a result and its values; it says what is wrong."""
    types = {n: t for n, t in (FLOATS | OTHERS).items() if n in arrays}
    kernel = kernel_of(results, types, '(math="fast")')
    for name, run in runners(kernel, **how).items():
        for k, actual in enumerate(run(*arrays.values())):
            found = wrong(k, actual)
            assert found is None, f"on {name}, math='fast': {results[k][0]}: {found}"
    return True


def nasty(seed: int) -> dict[str, Any]:
    return {n: samples(d, COUNT, seed + k) for k, (n, d) in enumerate((FLOATS | OTHERS).items())}


def ordinary(seed: int) -> dict[str, Any]:
    """Numbers between 1/2 and 2, of both signs."""
    generator = np.random.default_rng(seed)
    drawn = {n: 2.0 ** generator.uniform(-1, 1, COUNT) * generator.choice([-1, 1], COUNT) for n in FLOATS}
    return {n: values.astype(FLOATS[n].numpy) for n, values in drawn.items()}


def check_exact(results: list[Expr], seed: int, **how: Any) -> bool:
    arrays = nasty(seed)
    with np.errstate(all="ignore"):
        expected = [np.broadcast_to(r.run(arrays), COUNT) for r in results]
    typed = [(r.text, r.type) for r in results if r.type is not None]
    return compare(typed, arrays, lambda k, a: difference(a, expected[k], tolerance=EXACT), **how)


def check_sums(results: list[Sum], seed: int, **how: Any) -> bool:
    def wrong(k: int, actual: Any) -> str | None:
        where = np.flatnonzero(results[k].wrong(actual))
        if where.size == 0:
            return None
        at = where[0]
        used = {n: float(v[at]) for n, v in arrays.items() if n in results[k].text}
        allowed = np.broadcast_to(results[k].allowed, COUNT)[at]
        return f"{float(actual[at])!r}, not {results[k].value[at]!r} within {allowed!r}, where {used}"

    arrays = ordinary(seed)
    return compare([(r.text, r.type) for r in results], arrays, wrong, **how)


def check_functions(results: list[tuple[Operation, str]], seed: int, **how: Any) -> bool:
    """What is no number or infinite is not promised."""
    arrays = {n: np.abs(v) if n[0] == "x" else v for n, v in ordinary(seed).items()}
    with np.errstate(all="ignore"):
        expected = [op.meaning(*(arrays[n],) * op.arity) for op, n in results]
    texts = [(f"{op.name}({', '.join([n] * op.arity)})", FLOATS[n]) for op, n in results]

    def wrong(k: int, actual: Any) -> str | None:
        finite = np.isfinite(expected[k].astype(np.float32))
        if (
            results[k][0].name == "tan"
        ):  # a quotient: next to a pole, the error of the cosine is all that it is
            finite &= np.abs(expected[k]) < POLE
        tolerance = NEAR if actual.dtype == np.float32 else None
        return difference(actual[finite], expected[k][finite], tolerance=tolerance)

    return compare(texts, arrays, wrong, **how)


@st.composite
def several_sums(draw: st.DrawFn) -> tuple[list[Sum], int]:
    seed = draw(st.integers(0, 1000))
    env, types = ordinary(seed), [t for t in DTYPES.values() if t.is_float]
    return [draw(sums(env, draw(st.sampled_from(types)))) for _ in range(8)], seed


exact = st.one_of(asked(FLOATS), expressions(OTHERS, 2, EXACT_TYPES))
calls = st.tuples(st.sampled_from(FAST), st.sampled_from(list(FLOATS)))
EXACTLY = st.tuples(st.lists(exact, min_size=8, max_size=8), st.integers(0, 1000))
SUMS = several_sums()
FUNCTIONS = st.tuples(st.lists(calls, min_size=12, max_size=12), st.integers(0, 1000))


@given(EXACTLY)
@settings(max_examples=10)
def test_exact_in_fast_kernels(drawn: tuple[list[Expr], int]) -> None:
    check_exact(*drawn)


@given(SUMS)
@settings(max_examples=10)
def test_sums_in_fast_kernels(drawn: tuple[list[Sum], int]) -> None:
    check_sums(*drawn)


@given(FUNCTIONS)
@settings(max_examples=5)
def test_functions_in_fast_kernels(drawn: tuple[list[tuple[Operation, str]], int]) -> None:
    check_functions(*drawn)
