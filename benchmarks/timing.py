"""Timing by interleaved pairs.

In: callables that do the same work. Out: medians and ratios with their spread. Each round runs both sides in alternating
order and gives one ratio: what else the machine does meets both, so that the ratio says more than the times do.

Every run that is timed comes after a rest and an untimed run of its own side. Worker threads of OpenMP go on spinning
for milliseconds after their work, and would take a processor from the other side; after the rest none of them
does, and after the untimed run each side's own are awake, as they are where calls come in rows.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

Run = Callable[[], Any]
WARM_UPS = 3
ROUNDS_TO_CHOOSE = 3
REST = 0.02  # seconds


@dataclass(frozen=True)
class Work:
    """One job. `ours` and each of `peers` return the result; `nbytes` is what must at least be read and written.

    A peer of `differs` does the same amount of work, but has another result.
    """

    name: str
    nbytes: int
    ours: Run
    peers: Mapping[str, Run]
    differs: frozenset[str] = field(default=frozenset())


@dataclass(frozen=True)
class Measured:
    """Times in seconds. `ratios` are the best peer's time divided by ours, one for each round."""

    work: Work
    best: str
    ours: float
    peers: Mapping[str, float]
    ratios: Sequence[float]
    memcpy: float


def timed(run: Run) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def ratios(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    return [b / max(a, 1e-9) for a, b in zip(ours, theirs, strict=True)]


def measure(work: Work, rounds: int) -> Measured:
    """AssertionError where a peer's result is not ours."""
    agree(work)
    for run in (work.ours, *work.peers.values()):
        for _ in range(WARM_UPS):
            run()
    gc.disable()
    try:
        quickest = {
            name: min(awake(run) for _ in range(ROUNDS_TO_CHOOSE)) for name, run in work.peers.items()
        }
        best = min(quickest, key=quickest.__getitem__)
        ours, theirs = pairs(work.ours, work.peers[best], rounds)
        copied = memcpy(work.nbytes, rounds)
    finally:
        gc.enable()
    peers = quickest | {best: median(theirs)}
    return Measured(work, best, median(ours), peers, ratios(theirs, ours), copied)


def awake(run: Run) -> float:
    """The time of a run after a rest and another run."""
    sleep(REST)
    run()
    return timed(run)


def pairs(ours: Run, theirs: Run, rounds: int) -> tuple[list[float], list[float]]:
    a: list[float] = []
    b: list[float] = []
    for k in range(rounds):
        for run, times in ((ours, a), (theirs, b)) if k % 2 else ((theirs, b), (ours, a)):
            times.append(awake(run))
    return a, b


def agree(work: Work) -> None:
    want = work.ours()
    for name, run in work.peers.items():
        if name not in work.differs:
            for mine, other in zip(_parts(want), _parts(run()), strict=True):
                # Sums in another order; NumPy adds the rows of an array one after another.
                assert np.allclose(mine, other, rtol=1e-4, atol=1e-5), (
                    f"{work.name}: {name} has another result"
                )


def _parts(result: Any) -> list[Any]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(p) for p in parts]


def memcpy(nbytes: int, rounds: int) -> float:
    """The time of a copy that reads and writes `nbytes` in all, on one thread."""
    source = np.ones(max(nbytes // 2, 1), np.uint8)
    target = np.empty_like(source)

    def copy() -> None:
        np.copyto(target, source)

    copy()
    return median(timed(copy) for _ in range(rounds))
