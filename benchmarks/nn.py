"""Softmax and layer norm with their derivatives, cross entropy, and a step of Adam.

Derivatives are computed from the arguments: PyTorch's from what it keeps of a forward pass, which is part of what is timed,
since ours computes that too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import metaljit as mj
from metaljit import ops

from .graphs import Function, jax_peer, torch_peers
from .timing import Run, Work

# ---- rows ----


def softmax_of(xp: Any) -> Function:
    def softmax(x: Any) -> Any:
        e = xp.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return softmax


def softmax() -> Work:
    x = np.random.default_rng(0).standard_normal((2048, 4096), dtype=np.float32)
    of_torch = lambda torch: lambda x: torch.softmax(x, 1)  # noqa: E731
    peers: dict[str, Run] = {
        "NumPy": lambda: softmax_of(np)(x),
        **torch_peers(of_torch, x),
        **jax_peer(softmax_of, x),
    }
    return Work("softmax 2048 × 4096 f32", 2 * x.nbytes, lambda: ops.softmax(x), peers)


def softmax_backward() -> Work:
    """From the derivative by the result to that by x."""
    x, g = np.random.default_rng(0).standard_normal((2, 2048, 4096), dtype=np.float32)
    ours = mj.jit(lambda x, g: mj.vjp(ops.softmax, x)[1](g)[0])

    def of_torch(torch: Any) -> Function:
        return lambda x, g: _by_first(torch, lambda x: torch.softmax(x, 1), g, x)

    def of_numpy(x: Any, g: Any) -> Any:
        y = softmax_of(np)(x)
        return (g - (g * y).sum(axis=1, keepdims=True)) * y

    peers: dict[str, Run] = {"NumPy": lambda: of_numpy(x, g), **torch_peers(of_torch, x, g)}
    return Work("softmax and its derivative 2048 × 4096 f32", 3 * x.nbytes, lambda: ours(x, g), peers)


def _by_first(torch: Any, function: Function, g: Any, *args: Any) -> Any:
    """PyTorch's derivatives by the arguments; one of them alone, or all."""
    given = [a.detach().requires_grad_() for a in args]
    found = torch.autograd.grad(function(*given), given, g)
    return found if len(found) > 1 else found[0]


def norm_of(xp: Any) -> Function:
    def norm(x: Any, w: Any, b: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + 1e-5) * w + b

    return norm


def _rows() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((2, 8192, 1024), dtype=np.float32)
    return x, rng.random(1024, np.float32), rng.random(1024, np.float32), g


def layer_norm() -> Work:
    x, w, b, _ = _rows()
    of_torch = lambda torch: lambda x, w, b: torch.nn.functional.layer_norm(x, (1024,), w, b)  # noqa: E731
    peers: dict[str, Run] = {
        "NumPy": lambda: norm_of(np)(x, w, b),
        **torch_peers(of_torch, x, w, b),
        **jax_peer(norm_of, x, w, b),
    }
    return Work("layer norm 8192 × 1024 f32", 2 * x.nbytes, lambda: ops.layer_norm(x, w, b), peers)


def layer_norm_backward() -> Work:
    """The derivative by x, and those by weight and bias divided by the rows, which are sums over all of them."""
    x, w, b, g = _rows()

    @mj.jit
    def ours(x: Any, w: Any, b: Any, g: Any) -> Any:
        by_x, by_w, by_b = mj.vjp(ops.layer_norm, x, w, b)[1](g)
        return by_x, by_w / len(x), by_b / len(x)

    def of_torch(torch: Any) -> Function:
        def norm(x: Any, w: Any, b: Any) -> Any:
            return torch.nn.functional.layer_norm(x, (1024,), w, b)

        def run(x: Any, w: Any, b: Any, g: Any) -> Any:
            by_x, by_w, by_b = _by_first(torch, norm, g, x, w, b)
            return by_x, by_w / len(x), by_b / len(x)

        return run

    peers: dict[str, Run] = torch_peers(of_torch, x, w, b, g)
    return Work("layer norm and its derivatives 8192 × 1024", 3 * x.nbytes, lambda: ours(x, w, b, g), peers)


# ---- a loss ----


def cross_entropy() -> Work:
    """The loss of 8192 rows of 1000 classes, and its derivative by the scores times the rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8192, 1000), dtype=np.float32)
    target = rng.integers(0, 1000, 8192)
    both = mj.value_and_grad(ops.softmax_cross_entropy)

    @mj.jit
    def ours(x: Any, target: Any) -> Any:
        value, slope = both(x, target)
        return value, slope * len(x)

    def of_torch(torch: Any) -> Function:
        def run(x: Any, target: Any) -> Any:
            given = x.detach().requires_grad_()
            value = torch.nn.functional.cross_entropy(given, target)
            return value.detach(), torch.autograd.grad(value, given)[0] * len(x)

        return run

    peers: dict[str, Run] = torch_peers(of_torch, x, target)
    return Work("cross entropy and its derivative 8192 × 1000", 2 * x.nbytes, lambda: ours(x, target), peers)


# ---- an optimiser ----

PARAMETERS = 10_000_000


def adam() -> Work:
    """Ours is the first step each time; PyTorch's goes on in place, with as much work and another result."""
    rng = np.random.default_rng(0)
    p, g = rng.standard_normal((2, PARAMETERS), dtype=np.float32)
    state = ops.optimizer_state("adam", p)
    peers: dict[str, Run] = {}
    try:
        import torch
    except ImportError:
        return Work(_ADAM, 7 * p.nbytes, lambda: ops.adam(p, g, state)[0], peers)
    for name, fused in (("torch", False), ("torch fused", True)):
        tensor = torch.from_numpy(p.copy()).requires_grad_()
        tensor.grad = torch.from_numpy(g)
        optimiser = torch.optim.Adam([tensor], fused=fused)

        def run(optimiser: Any = optimiser, tensor: Any = tensor) -> Any:
            optimiser.step()
            return tensor.detach()

        peers[name] = run
    return Work(_ADAM, 7 * p.nbytes, lambda: ops.adam(p, g, state)[0], peers, differs=frozenset(peers))


_ADAM = f"a step of Adam, {PARAMETERS // 10**6}M parameters f32"
WORKS = {
    "softmax": softmax,
    "softmax_backward": softmax_backward,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "cross_entropy": cross_entropy,
    "adam": adam,
}
