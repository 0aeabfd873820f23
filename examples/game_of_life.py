"""Conway's Game of Life until nothing new happens: `python examples/game_of_life.py`.

The rule is a kernel of life.mjk; `mj.while_loop` asks on the device whether the last generation changed anything, and stops
when it did not, or when a pattern of period two blinks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import metaljit as mj

life = mj.load_kernels(Path(__file__).parent / "life.mjk").life


@mj.jit
def settled(cells: Any, most: Any) -> Any:
    """The generation that equals the one two before it, or number `most`; and which one that is."""

    def goes_on(state: Any) -> Any:
        older, _, newest, generation = state
        return ((older != newest).any() | (generation < 2)) & (generation < most)

    def next_generation(state: Any) -> Any:
        _, old, new, generation = state
        return old, new, life(new), generation + 1

    _, _, newest, generation = mj.while_loop(goes_on, next_generation, (cells, cells, cells, 0))
    return newest, generation


def soup(height: int, width: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((height, width)) < 0.4


def shown(cells: Any) -> str:
    return "\n".join("".join(" ●"[int(c)] for c in row) for row in cells)


def main() -> None:
    cells = soup(24, 72)
    last, generation = settled(cells, 5000)
    print(shown(last))
    print(f"settled after {int(generation)} generations; {int(last.sum())} cells live")


if __name__ == "__main__":
    main()
