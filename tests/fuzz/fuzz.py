"""`make fuzz`: random programs for as long as FUZZ_MINUTES says, until one of them is run differently somewhere.

    python tests/fuzz/fuzz.py [--seed N] [--only NAME]

In turns of one kind of program each, with Hypothesis's random numbers from a printed seed. Every fourth turn has the
emulator check each access and take its threads in another order. A program that fails is made smaller and printed,
with its arguments and what each way to run it gave; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from typing import Any

import hypothesis.internal.conjecture.engine as engine
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "differential")]

EXAMPLES = 12  # of a turn
CHECKED = 4  # one turn in so many is also run with every access checked
SHRINKING = 120  # seconds; each smaller program has to be compiled


@dataclass
class Kind:
    """Programs of one kind: what is drawn, and a check that says whether it was a valid program."""

    name: str
    drawn: st.SearchStrategy[Any]
    check: Callable[..., bool]
    tried: int = 0
    valid: int = 0

    def turn(self, number: int, how: dict[str, Any]) -> None:
        """Raises what the smallest failing program raised."""

        @seed(number)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(self.drawn)
        def test(drawn: Any) -> None:
            self.tried += 1
            self.valid += self.check(*drawn, **how)

        test()


def kind(name: str, module: str, drawn: str = "DRAWN", check: str = "check") -> Kind:
    """What a file of `tests/differential` looks at."""
    found = import_module(f"test_random_{module}")
    return Kind(name, getattr(found, drawn), getattr(found, check))


KINDS = (
    kind("typed programs", "typed"),
    kind("expressions", "expressions"),
    kind("functions", "functions"),
    kind("programs", "programs"),
    kind("stencils", "stencils"),
    kind("loops", "loops"),
    kind("cooperative kernels", "cooperative"),
    kind("foreign texts", "msl"),
    kind("fast, exact", "fast", "EXACTLY", "check_exact"),
    kind("fast, sums", "fast", "SUMS", "check_sums"),
    kind("fast, functions", "fast", "FUNCTIONS", "check_functions"),
)


@dataclass
class Progress:
    """One line that is written over itself, or one in a while where the output is no terminal."""

    begun: float = field(default_factory=time.monotonic)
    last: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def show(self, text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\033[K{text}", end="", flush=True)
        elif self.seconds - self.last > 30 or not self.last:
            self.last = self.seconds
            print(text, flush=True)


def turns(kinds: tuple[Kind, ...], first: int) -> Iterator[tuple[Kind, int, dict[str, Any]]]:
    """A kind, the seed, and how the emulator is run the second time."""
    for kind, number in zip(cycle(kinds), count(first)):
        checked = random.Random(number).randrange(CHECKED) == 0
        yield kind, number, {"sanitized": True, "order": number % 2**31} if checked else {}


def fuzz(kinds: tuple[Kind, ...], minutes: float, first: int) -> int:
    progress = Progress()
    for kind, number, how in turns(kinds, first):
        if progress.seconds >= 60 * minutes:
            break
        tried, valid = sum(k.tried for k in kinds), sum(k.valid for k in kinds)
        share = f"{100 * valid // tried} % valid" if tried else "none yet"
        progress.show(
            f"{progress.seconds / 60:5.1f} min  {tried} programs, {share}  seed {number}: {kind.name}"
        )
        try:
            kind.turn(number, how)
        except Exception as e:
            print(
                f"\n{'-' * 80}\nFound by seed {number} among {kind.name}, run with {how or 'nothing special'}:\n"
            )
            print(
                f"{type(e).__name__}: {e}\n\nAgain: python tests/fuzz/fuzz.py --seed {number} --only '{kind.name}'"
            )
            return 1
    print(f"\nNothing found in {progress.seconds / 60:.1f} minutes:")
    for kind in kinds:
        if kind.tried:
            print(f"  {kind.tried:6} {kind.name}, {100 * kind.valid // kind.tried} % of them valid")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(2**31), help="the first seed"
    )
    parser.add_argument("--only", choices=[k.name for k in KINDS], help="one kind of programs")
    asked = parser.parse_args()
    engine.MAX_SHRINKING_SECONDS = SHRINKING
    kinds = tuple(k for k in KINDS if asked.only in (None, k.name))
    print(f"Random programs, first seed {asked.seed}")
    with tempfile.TemporaryDirectory(prefix="metaljit-fuzz-") as folder:
        os.environ.setdefault("METALJIT_CACHE_DIR", folder)
        return fuzz(kinds, float(os.environ.get("FUZZ_MINUTES", "10")), asked.seed)


if __name__ == "__main__":
    sys.exit(main())
