"""Random well-typed programs about every type: interpret mode, every device and the checked emulator agree to the bit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from random_runs import compare
from random_typed import Typed, typed_programs

COUNTS = (5, 40, 1, 0)
DRAWN = st.tuples(typed_programs(), st.integers(0, 1000))


def check(program: Typed, seed: int, *, sanitized: bool = False, order: int | None = None) -> bool:
    """Whether the program was a valid one."""
    arguments = program.arguments(COUNTS[seed % len(COUNTS)], seed)
    return compare(program.text, arguments, sanitized=sanitized, order=order)


@given(DRAWN)
@settings(max_examples=20)
def test_random_typed(drawn: tuple[Typed, int]) -> None:
    check(*drawn)


@given(DRAWN)
@settings(max_examples=8)
def test_random_typed_on_the_checked_emulator(drawn: tuple[Typed, int]) -> None:
    check(*drawn, sanitized=True, order=drawn[1])
