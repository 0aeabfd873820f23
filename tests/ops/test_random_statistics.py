"""The numbers of ops.random as statistics see them, and as many threads make them. Seeds are fixed, so nothing here is chance."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import Array

import metaljit as mj

random: Any = mj.ops.random
N = 2**17
UNLIKELY = 1.95  # sqrt(n) times the largest distance of the distributions: 1 in 1000 is beyond it
SQRT2 = math.sqrt(2)
SHARE_2 = 0.5 * math.erfc(SQRT2)  # of normal numbers, below -2


def share(x: Array) -> Array:
    """The share of normal numbers below x."""
    return np.array([0.5 * math.erfc(-v / SQRT2) for v in x.tolist()])


def distance(values: Any, distribution: Callable[[Array], Array]) -> float:
    """Kolmogorov and Smirnov's statistic, times sqrt(n)."""
    x = np.sort(np.asarray(values, np.float64).reshape(-1))
    n, below = len(x), distribution(x)
    steps = np.arange(n) / n
    return float(math.sqrt(n) * max((below - steps).max(), (steps + 1 / n - below).max()))


DISTRIBUTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "uniform": (lambda s: random.uniform(s, N, -1, 3), lambda x: (x + 1) / 4),
    "uniform16": (lambda s: random.uniform(s, 2**14, dtype=np.float16), lambda x: x + 2**-11),
    "normal": (lambda s: random.normal(s, N, 1, 2), lambda x: share((x - 1) / 2)),
    "normal by the inverse": (lambda s: random.normal(s, N, sampling="inv_cdf"), share),
    "truncated": (
        lambda s: random.truncated_normal(s, N),
        lambda x: (share(x) - SHARE_2) / (1 - 2 * SHARE_2),
    ),
    "truncated by the inverse": (
        lambda s: random.truncated_normal(s, N, sampling="inv_cdf"),
        lambda x: (share(x) - SHARE_2) / (1 - 2 * SHARE_2),
    ),
    "bits": (lambda s: random.bits(s, N), lambda x: x / 2**32),
    "bits64": (lambda s: random.bits(s, N, np.uint64), lambda x: x / 2**64),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_distribution(name: str) -> None:
    draw, distribution = DISTRIBUTIONS[name]
    values, _ = draw(random.philox_state(2022))
    assert distance(values, distribution) < UNLIKELY


def test_the_measure_tells_a_wrong_distribution() -> None:
    values, _ = random.normal(random.philox_state(1), N)
    assert distance(values * np.float32(1.02), share) > UNLIKELY
    assert distance(values + np.float32(0.02), share) > UNLIKELY


def test_scipy_agrees() -> None:
    stats = pytest.importorskip("scipy.stats")
    state = random.philox_state(77)
    assert stats.kstest(random.normal(state, N)[0], "norm").pvalue > 1e-3
    cut, _ = random.truncated_normal(state, N)
    assert stats.kstest(cut, stats.truncnorm(-2, 2).cdf).pvalue > 1e-3


def test_integers_and_bernoulli_are_as_frequent_as_they_should_be() -> None:
    values, state = random.integers(random.philox_state(3), N, -3, 7)
    counts = np.bincount(values + 3, minlength=10)
    assert ((counts - N / 10) ** 2).sum() / (N / 10) < 27.9  # chi squared of 9 degrees: 1 in 1000
    heads, _ = random.bernoulli(state, N, 0.25)
    assert abs(heads.mean() - 0.25) < 4 * math.sqrt(0.1875 / N)


@pytest.mark.parametrize("name", ["uniform", "normal", "truncated"])
def test_what_stands_side_by_side_has_nothing_in_common(name: str) -> None:
    """The lanes of a block, values and squares; neighbouring blocks; streams of one split; neighbouring keys."""
    draw, _ = DISTRIBUTIONS[name]
    values, _ = draw(random.philox_state(5))
    lanes = values.reshape(-1, 4).T
    states, _ = random.split(random.philox_state(5), 2)
    streams = [draw(s)[0] for s in (*states, random.state_from(0, 1), random.state_from(0, 2))]
    rows = [*lanes, *np.square(lanes), *np.roll(lanes, 1, axis=1), *(s[: N // 4] for s in streams)]
    found: Any = np.corrcoef(np.asarray(rows, np.float64))
    same = np.abs(found) > 0.2
    assert (same.sum(axis=1) <= 2).all()  # itself, and for values above 0 its square
    assert np.abs(found[~same]).max() < 5 / math.sqrt(N / 4)


def test_streams_do_not_overlap() -> None:
    """Pairs of words of draws one after the other, whatever they draw, and of the streams of a split: all are different."""
    state, found = random.philox_state(11), []
    for draw in (random.bits, random.normal, random.truncated_normal, random.uniform):
        before = state
        _, state = draw(state, 9)
        found.append(random.bits(before, 2 * 256 * 9, np.uint64)[0])  # all blocks that are the draw's own
    states, _ = random.split(state, 5)
    found += [random.bits(s, 2000, np.uint64)[0] for s in np.asarray(states)]
    words = np.concatenate(found)
    assert len(np.unique(words)) == len(words)


SCRIPT = """
import hashlib
import numpy as np
import metaljit as mj
random, state = mj.ops.random, mj.ops.random.philox_state(7)
digest = hashlib.sha256()
for draw in (random.bits, random.uniform, random.normal, random.truncated_normal, random.bernoulli):
    values, state = draw(state, (3, 100_001))
    digest.update(np.ascontiguousarray(values).tobytes())
fused = mj.jit(lambda s, x: x + random.normal(s, x.shape)[0])
digest.update(np.ascontiguousarray(fused(state, np.ones((3, 100_001), np.float32))).tobytes())
digest.update(state.tobytes())
print(digest.hexdigest())
"""


def test_the_bits_do_not_depend_on_the_number_of_threads() -> None:
    def run(threads: int) -> str:
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "METALJIT_THREADS": str(threads), "METALJIT_DEVICE": "cpu"},
            capture_output=True, text=True, check=True, cwd=Path(mj.__file__).parent.parent,
        )  # fmt: skip
        return made.stdout

    first = run(1)
    assert len(first.strip()) == 64
    assert run(2) == first
    assert run(5) == first
