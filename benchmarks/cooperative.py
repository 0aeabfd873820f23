"""Cooperative kernels, from the examples: a product of matrices in tiles, sums by a tree, a histogram."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import metaljit as mj

from .timing import Work

EXAMPLES = Path(__file__).parents[1] / "examples" / "cooperative"
SIDE, COUNT = 1024, 1 << 24


def example(name: str) -> Any:
    return getattr(mj.load_kernels(EXAMPLES / f"{name}.mjk"), name)


def whole_numbers(*shape: int) -> Any:
    """Small ones, of which every order of adding gives the same sum."""
    return np.random.default_rng(0).integers(0, 4, shape).astype(np.float32)


def matmul() -> Work:
    a, b = whole_numbers(SIDE, SIDE), whole_numbers(SIDE, SIDE)
    kernel, out = example("matmul"), np.empty((SIDE, SIDE), np.float32)
    peers = {"NumPy": lambda: np.matmul(a, b)}
    return Work(f"tiled matmul {SIDE}³ f32", 3 * a.nbytes, lambda: kernel(a, b, out=out), peers)


def sums() -> Work:
    x = whole_numbers(COUNT)
    kernel = example("tree_reduction")
    peers = {"NumPy": lambda: x.reshape(-1, 1024).sum(1)}
    return Work(f"tree sums of 1024, {COUNT} f32", x.nbytes, lambda: kernel(x), peers)


def histogram() -> Work:
    u = np.random.default_rng(0).integers(0, 256, (4096, 4096)).astype(np.uint8)
    kernel = example("group_histogram")
    peers = {"NumPy": lambda: np.bincount(u.ravel(), minlength=256).astype(np.uint32)}
    return Work("group histogram 4096² u8", u.nbytes, lambda: kernel(u), peers)
