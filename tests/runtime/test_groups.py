"""Cooperative kernels by metalcompute's route: it chooses the size of groups by itself, and rounds the grid up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_metalcompute import Metalcompute

import metaljit as mj

TEXT = """
N = dims("N")

@kernel(grid="ceil_div(N, size)", threadgroup="size")
def turned(x: f32[N], y: Out[f32[N]], size: const[int] = 64):
    tile = threadgroup_array(f32, size)
    t, i = thread_index(), global_index()
    tile[t] = x[i]
    barrier()
    total = group_sum(tile[size - 1 - t])
    if i < N:
        y[i] = tile[size - 1 - t] + total
"""


def turned(x: Any, size: int) -> Any:
    padded = np.zeros(-(-len(x) // size) * size)
    padded[: len(x)] = x
    rows = padded.reshape(-1, size)[:, ::-1]
    return (rows + rows.sum(1, keepdims=True)).reshape(-1)[: len(x)]


@pytest.mark.parametrize("size", [32, 64, 96, 256])
@pytest.mark.parametrize("n", [1, 200, 512])
def test_any_size_of_group(emulated: Metalcompute, size: int, n: int) -> None:
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    found = mj.kernel_from_text(TEXT).on("metal")(x, size)
    np.testing.assert_allclose(found, turned(x, size), rtol=1e-4, atol=1e-4)


def test_a_pipeline_with_smaller_groups_is_an_error(emulated: Metalcompute) -> None:
    emulated.max_threads = 128
    x = np.ones(1000, np.float32)
    with pytest.raises(
        mj.DeviceFault, match="groups of 128 threads, and the kernel is made for 256"
    ) as caught:
        mj.kernel_from_text(TEXT).on("metal")(x, 256)
    assert caught.value.slug == "threadgroup-unfit"
    np.testing.assert_allclose(mj.kernel_from_text(TEXT).on("metal")(x, 128), turned(x, 128))
