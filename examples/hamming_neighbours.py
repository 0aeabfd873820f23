"""Nearest neighbours of bit strings: `python examples/hamming_neighbours.py`.

Each vector of 64 floats becomes 256 bits: the sides on which it lies of 256 random planes. Two vectors at an angle differ in
about angle / 180° of their bits, so near bit strings are near vectors, in an eighth of the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit import ops

POINTS, QUERIES, SIZE, BITS, NEAREST = 20_000, 500, 64, 256, 10


@mj.jit
def signatures(vectors: Any, planes: Any) -> Any:
    """The bits of each vector, eight in a byte: one kernel, the product and what is made of it."""
    return ops.packbits(ops.matmul(vectors, planes) > 0, 1)


def nearest(queries: Any, points: Any, planes: Any) -> tuple[Any, Any]:
    """How many bits the nearest points differ in from each query, and which points they are."""
    codes = signatures(queries, planes), signatures(points, planes)
    distances = ops.hamming_distance(*codes, pairwise=True)
    return ops.top_k(distances, NEAREST, largest=False)  # type: ignore[no-any-return]


def main() -> None:
    state = ops.random.philox_state(5)
    centres, state = ops.random.normal(state, (200, SIZE))
    noise, state = ops.random.normal(state, (POINTS + QUERIES, SIZE), stddev=0.7)
    planes, _ = ops.random.normal(state, (SIZE, BITS))
    vectors = ops.tile(centres, (-(-(POINTS + QUERIES) // 200), 1))[: POINTS + QUERIES] + noise
    points, queries = vectors[:POINTS], vectors[POINTS:]
    distances, found = nearest(queries, points, planes)
    print(f"{POINTS} points as {BITS // 8} bytes each, {QUERIES} queries")
    print(
        f"nearest: {distances[:, 0].mean():.1f} of {BITS} bits differ; the tenth: {distances[:, -1].mean():.1f}"
    )

    cosines = ops.matmul(unit(queries), ops.transpose(unit(points)))
    true = ops.top_k(cosines, NEAREST)[1]
    same = np.mean(
        [len(set(a) & set(b)) / NEAREST for a, b in zip(found.tolist(), true.tolist(), strict=True)]
    )
    cluster = np.mean(found % 200 == (np.arange(POINTS, POINTS + QUERIES) % 200)[:, None])
    print(f"of the {NEAREST} found {100 * cluster:.1f} % are of the query's own cluster")
    print(f"and {100 * same:.1f} % are among the {NEAREST} at the least angle")


def unit(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(axis=1, keepdims=True))


if __name__ == "__main__":
    main()
