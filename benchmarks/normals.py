"""Sixteen million normal numbers, and as many within two standard deviations.

Peers have generators of their own, so their numbers differ; they are as normal and as random. NumPy cuts by drawing again
what is outside, JAX by the inverse of the distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj

from .timing import Run, Work

COUNT = 16 * 1024 * 1024
KEY = 1234


def normal() -> Work:
    state, out = mj.ops.random.state_from(0, KEY), np.empty((COUNT // 4, 4), np.float32)
    kernel = mj.stdlib.random.normals4
    peers = {
        **numpy_peers(lambda generator, out: generator.standard_normal(dtype=np.float32, out=out)),
        **torch_peer(lambda torch, x: x.normal_()),
        **jax_peer(lambda random, key: random.normal(key, (COUNT,))),
    }
    # What ops.random.normal(state, COUNT) runs; it has no `out`, and new memory costs as much as the work.
    return Work(
        f"Philox normal {COUNT // 2**20}M f32",
        out.nbytes,
        lambda: kernel(state, COUNT // 4, 0.0, 1.0, out=out),
        peers,
        frozenset(peers),
    )


def truncated_normal() -> Work:
    state, out = mj.ops.random.state_from(0, KEY), np.empty((COUNT // 4, 4), np.float32)
    found, kernels = np.empty_like(out), mj.stdlib.random

    def run() -> Any:
        kernels.two_block_truncated4(state, COUNT // 4, 0.0, 1.0, out=found)
        return kernels.truncated4(state, found, 0.0, 1.0, out=out)

    peers = {
        **numpy_peers(drawn_again),
        **torch_peer(lambda torch, x: torch.nn.init.trunc_normal_(x)),
        **jax_peer(lambda random, key: random.truncated_normal(key, -2, 2, (COUNT,))),
    }
    return Work(f"Philox truncated normal {COUNT // 2**20}M f32", out.nbytes, run, peers, frozenset(peers))


WORKS: dict[str, Callable[[], Work]] = {"normal": normal, "truncated_normal": truncated_normal}


# ---- peers ----


def drawn_again(generator: np.random.Generator, out: NDArray[np.float32]) -> NDArray[np.float32]:
    """A chunk at a time, which stays in the caches."""
    for part in np.split(out, 1024):
        generator.standard_normal(dtype=np.float32, out=part)
        outside = np.flatnonzero(np.abs(part) >= 2)
        while len(outside):
            part[outside] = generator.standard_normal(len(outside), dtype=np.float32)
            outside = outside[np.abs(part[outside]) >= 2]
    return out


def numpy_peers(draw: Callable[[np.random.Generator, NDArray[np.float32]], Any]) -> dict[str, Run]:
    """By its generator of this family, and by its quickest."""
    out = np.empty(COUNT, np.float32)

    def peer(bits: np.random.BitGenerator) -> Run:
        generator = np.random.Generator(bits)
        return lambda: draw(generator, out)

    return {"NumPy Philox": peer(np.random.Philox(key=KEY)), "NumPy SFC64": peer(np.random.SFC64(KEY))}


def torch_peer(draw: Callable[[Any, Any], Any]) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    x = torch.empty(COUNT)
    return {"torch": lambda: draw(torch, x)}


def jax_peer(draw: Callable[[Any, Any], Any]) -> dict[str, Run]:
    try:
        import jax
    except ImportError:
        return {}
    compiled, key = jax.jit(lambda key: draw(jax.random, key)), jax.random.key(KEY)
    return {"JAX": lambda: compiled(key).block_until_ready()}
