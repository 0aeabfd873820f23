"""LSTM of 512 steps, 64 sequences and 256 units, with and without derivatives; a hash grid with that by its table."""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj

from .timing import Run, Work

STEPS, ROWS, SIZE = 512, 64, 256
LEVELS = tuple(round(16 * 1.5**level) for level in range(16))


def lstm() -> Work:
    x, weights = _layer()
    found = mj.jit(lambda *a: mj.ops.lstm(*a))
    return Work(
        f"LSTM {STEPS}×{ROWS}×{SIZE} f32", _moved(x, weights), lambda: found(x, *weights), _torch(x, weights)
    )


def lstm_gradient() -> Work:
    x, weights = _layer()
    slopes = mj.jit(mj.grad(lambda *a: mj.ops.lstm(*a)[0].mean(), argnums=(0, 1, 2, 3, 4)))
    return Work(
        f"LSTM {STEPS}×{ROWS}×{SIZE} f32, gradient", 3 * _moved(x, weights), lambda: slopes(x, *weights),
        _torch(x, weights, gradient=True),
    )  # fmt: skip


def _layer() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(0)
    weights = [rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(SIZE**0.5)
               for shape in ((4 * SIZE, SIZE), (4 * SIZE, SIZE), (4 * SIZE,), (4 * SIZE,))]  # fmt: skip
    return rng.standard_normal((STEPS, ROWS, SIZE), np.float32), weights


def _moved(x: Any, weights: list[Any]) -> int:
    """Bytes of x, of the states, and of the weights once."""
    return int(2 * x.nbytes + sum(w.nbytes for w in weights))


def _torch(x: Any, weights: list[Any], gradient: bool = False) -> dict[str, Run]:
    try:
        import torch
    except ImportError:
        return {}
    layer = torch.nn.LSTM(SIZE, SIZE)
    for place, value in zip(layer.parameters(), weights, strict=True):
        place.data = torch.from_numpy(value.copy())
    given = torch.from_numpy(x).requires_grad_(gradient)

    def forward() -> Any:
        with torch.no_grad():
            y, (h, c) = layer(given)
        return y.numpy(), h.numpy(), c.numpy()

    def backward() -> Any:
        return tuple(
            g.numpy() for g in torch.autograd.grad(layer(given)[0].mean(), [given, *layer.parameters()])
        )

    return {"PyTorch": backward if gradient else forward}


def hash_grid() -> Work:
    """262144 places in a cube, 16 levels of 2^15 rows of 2 features, with the derivative by the table."""
    rng = np.random.default_rng(0)
    x = rng.random((2**18, 3), np.float32)
    table = rng.standard_normal((len(LEVELS), 2**15, 2)).astype(np.float32)

    @mj.jit
    def both(x: Any, table: Any) -> Any:
        return mj.value_and_grad(lambda t: mj.ops.hash_grid_encode(x, t, LEVELS).mean())(table)

    nbytes = x.nbytes + 2 * table.nbytes
    return Work(
        "hash grid 262144×16 levels f32, with gradient", nbytes, lambda: both(x, table), _gathered(x, table)
    )


def _gathered(x: Any, table: Any) -> dict[str, Run]:
    """The same with PyTorch's gathers."""
    try:
        import torch
    except ImportError:
        return {}
    places, features = torch.from_numpy(x), torch.from_numpy(table).requires_grad_()
    factors = (1, 2654435761, 805459861)

    def run() -> Any:
        found = []
        for level, resolution in enumerate(LEVELS):
            at = places * resolution
            base = at.floor()
            part, base = at - base, base.long()
            total: Any = 0
            for c in range(8):
                ups = [c >> d & 1 for d in range(3)]
                points = [base[:, d] + ups[d] for d in range(3)]
                if (resolution + 1) ** 3 <= table.shape[1]:
                    row = points[0] + points[1] * (resolution + 1) + points[2] * (resolution + 1) ** 2
                else:
                    row = (points[0] * factors[0]) ^ (points[1] * factors[1]) ^ (points[2] * factors[2])
                sides = [part[:, d] if ups[d] else 1 - part[:, d] for d in range(3)]
                total = (
                    total + (sides[0] * sides[1] * sides[2])[:, None] * features[level][row % table.shape[1]]
                )
            found.append(total)
        mean = torch.cat(found, 1).mean()
        return mean.detach().numpy(), torch.autograd.grad(mean, features)[0].numpy()

    return {"PyTorch": run}


WORKS = {"lstm": lstm, "lstm_gradient": lstm_gradient, "hash_grid": hash_grid}
