"""Products of square matrices in traced functions."""

from __future__ import annotations

from functools import partial

import numpy as np

import metaljit as mj

from .cooperative import whole_numbers
from .timing import Run, Work


def work(side: int) -> Work:
    a, b = whole_numbers(side, side), whole_numbers(side, side)
    product = mj.jit(lambda a, b: a @ b)
    peers: dict[str, Run] = {"NumPy": lambda: np.matmul(a, b)}
    try:
        import torch
    except ImportError:
        pass
    else:
        s, t = torch.from_numpy(a), torch.from_numpy(b)
        peers["PyTorch"] = lambda: torch.mm(s, t).numpy()
    return Work(f"product of {side}² f32", 3 * a.nbytes, lambda: product(a, b), peers)


WORKS = {f"matmul{side}": partial(work, side) for side in (512, 1024, 2048)}
