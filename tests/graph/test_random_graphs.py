"""Random graphs: traced and fused, the same as NumPy step by step, and to the bit the same as traced and not fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops

STEPS = 14
Step = Callable[[Any], Any]


def grown(rng: np.random.Generator, values: list[Any]) -> Any:
    """One more value from some of those that there are. All stay within a few units of 0, so that errors stay small."""
    x = values[int(rng.integers(len(values)))]
    kind = int(rng.integers(18))
    rank = len(x.shape)
    axis = int(rng.integers(rank)) if rank else 0
    match kind:
        case 0 | 1 | 2:
            fitting = [v for v in values if goes_with(x.shape, v.shape)]
            y = fitting[int(rng.integers(len(fitting)))]
            return [lambda: x + y, lambda: x * y, lambda: np.maximum(x, y) - y][kind]() * 0.5
        case 3:
            return np.tanh(x)
        case 4:
            return np.where(x > 0.25, x, 0.5 - x)
        case 5 if rank:
            return x.mean(axis=axis)
        case 6 if rank:
            return x - x.max(axis=axis, keepdims=True)
        case 7 if rank and x.shape[axis] > 3:
            return x[(slice(None),) * axis + (slice(1, -1),)]
        case 8 if rank:
            return np.flip(x, axis)
        case 9 if rank == 2:
            return x.T
        case 10 if rank == 2:
            return ops.laplacian(x, mode="wrap") * 0.125
        case 11:
            return np.expand_dims(x, 0) if rank < 3 else x
        case 12 if rank == 2:
            return x.reshape(-1)
        case 13 if rank:
            return np.exp(x - x.max(axis=-1, keepdims=True)) / 2
        case 14 if rank:
            return x.sum(axis=0) / 32
        case 15:
            return x * 0.5 - x.sum() / 512
        case 16 if rank == 2:
            return np.tanh(x @ x.T / 8)
        case 17 if rank > 1:
            return x.max(axis=0) - x.mean(axis=tuple(range(rank))) * 0.25
    return np.abs(x) * 0.5


def goes_with(a: Any, b: Any) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return max(len(a), len(b)) < 4 and all(m == n or 1 in (m, n) for m, n in pairs)


def program(seed: int) -> tuple[Callable[..., Any], list[Any]]:
    rng = np.random.default_rng(seed)
    m, n = (int(k) for k in rng.choice([2, 5, 7, 90, 130], 2, replace=False))
    args = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, n), (n,), (m, 1))]

    def run(*given: Any) -> Any:
        mine = np.random.default_rng(seed + 1)
        values = list(given)
        for _ in range(STEPS):
            values.append(grown(mine, values))
        return tuple(values[-4:])

    return run, args


@pytest.mark.parametrize("seed", range(0, 400, 10))
def test_a_random_graph(seed: int) -> None:
    run, args = program(seed)
    wanted = run(*args)
    fused, alone = mj.jit(run)(*args), mj.jit(fuse=False)(run)(*args)
    for got, step, want in zip(fused, alone, wanted, strict=True):
        assert np.asarray(got).shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
        assert np.asarray(got).tobytes() == np.asarray(step).tobytes()
