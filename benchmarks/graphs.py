"""Traced functions: an elementwise chain, a stencil with what is around it; and what they cost beside their kernels.

JAX, numba, numexpr and PyTorch are peers where they are installed; PyTorch compiled where it finds a C++ compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metaljit as mj
from metaljit import ops
from metaljit.runtime import device as devices
from metaljit.runtime.launch import Launcher

from .laplacian import padded
from .overhead import Line, Time, child
from .timing import Run, Work

Function = Callable[..., Any]


# ---- peers ----


def jax_peer(function: Callable[[Any], Function], *arrays: NDArray[Any]) -> dict[str, Run]:
    """`function` makes of `jax.numpy` what is compiled."""
    try:
        import jax
    except ImportError:
        return {}
    compiled, given = jax.jit(function(jax.numpy)), [jax.device_put(x) for x in arrays]
    return {"JAX": lambda: compiled(*given).block_until_ready()}


def torch_peers(function: Callable[[Any], Function], *arrays: NDArray[Any]) -> dict[str, Run]:
    """`function` makes of `torch` what is called, and compiled where that works."""
    try:
        import torch
    except ImportError:
        return {}
    eager, given = function(torch), [torch.from_numpy(x) for x in arrays]
    peers: dict[str, Run] = {"torch": lambda: eager(*given)}
    compiled = torch.compile(eager)
    try:
        compiled(*given)
    except Exception:  # whatever its compiler finds missing
        return peers
    return peers | {"torch compiled": lambda: compiled(*given)}


# ---- the chain ----

CHAIN = 1 << 24


def chain_of(xp: Any) -> Function:
    """Eight operations, exp and tanh among them."""

    def chain(x: Any, y: Any) -> Any:
        t = xp.tanh(x * 0.5 + y)
        return xp.exp(-t * t) * y - x

    return chain


def chain() -> Work:
    x, y = (np.random.default_rng(k).random(CHAIN, np.float32) for k in range(2))
    ours = mj.jit(chain_of(np))
    peers: dict[str, Run] = {
        "NumPy": numpy_chain(x, y),
        **numexpr_chain(x, y),
        **numba_chain(x, y),
        **torch_peers(chain_of, x, y),
        **jax_peer(chain_of, x, y),
    }
    return Work("8 operations, 16M f32", 3 * x.nbytes, lambda: ours(x, y), peers)


def numpy_chain(x: NDArray[Any], y: NDArray[Any]) -> Run:
    half, out, other = np.float32(0.5), np.empty_like(x), np.empty_like(x)

    def run() -> Any:
        np.multiply(x, half, out=out)
        np.add(out, y, out=out)
        np.tanh(out, out=out)
        np.negative(out, out=other)
        np.multiply(other, out, out=out)
        np.exp(out, out=out)
        np.multiply(out, y, out=out)
        return np.subtract(out, x, out=out)

    return run


def numexpr_chain(x: NDArray[Any], y: NDArray[Any]) -> dict[str, Run]:
    try:
        import numexpr
    except ImportError:
        return {}
    out, names = np.empty_like(x), {"x": x, "y": y, "half": np.float32(0.5)}
    text = "exp(-tanh(x * half + y) * tanh(x * half + y)) * y - x"
    return {"numexpr": lambda: numexpr.evaluate(text, names, out=out)}


def numba_chain(x: NDArray[Any], y: NDArray[Any]) -> dict[str, Run]:
    try:
        import numba
    except ImportError:
        return {}

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator,unused-ignore]
    def chain(x: Any, y: Any, out: Any) -> None:
        half = np.float32(0.5)
        for i in numba.prange(x.size):
            t = np.tanh(x[i] * half + y[i])
            out[i] = np.exp(-t * t) * y[i] - x[i]

    out = np.empty_like(x)

    def run() -> Any:
        chain(x, y, out)
        return out

    return {"numba": run}


# ---- a stencil and what is around it ----

SIDE = 2048


def stencil() -> Work:
    u = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    ours = mj.jit(lambda u: np.clip(u + 0.1 * ops.laplacian(u, mode="reflect"), 0, 1))
    p, fill, views = padded(u)

    def run() -> Any:
        fill()
        up, down, left, right, centre = views
        return np.clip(u + np.float32(0.1) * (up + down + left + right - 4 * centre), 0, 1)

    def of_jax(jnp: Any) -> Function:
        def step(u: Any) -> Any:
            p = jnp.pad(u, 1, mode="reflect")
            laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u
            return jnp.clip(u + 0.1 * laplacian, 0, 1)

        return step

    def of_torch(torch: Any) -> Function:
        def step(u: Any) -> Any:
            p = torch.nn.functional.pad(u[None, None], (1, 1, 1, 1), mode="reflect")[0, 0]
            laplacian = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u
            return torch.clip(u + 0.1 * laplacian, 0, 1)

        return step

    peers: dict[str, Run] = {"NumPy": run, **torch_peers(of_torch, u), **jax_peer(of_jax, u)}
    del p
    return Work(f"Laplacian, scale, add, clip {SIDE}² f32", 2 * u.nbytes, lambda: ours(u), peers)


# ---- a loop ----

PLATE, TURNS = 512, 1000


def heat() -> Work:
    """The peer is the loop's kernel alone: the same launches on two arrays in turn, without the plan around them."""
    u = np.random.default_rng(0).random((PLATE, PLATE), np.float32)

    def step(u: Any) -> Any:
        return u + 0.1 * ops.laplacian(u, mode="edge")

    loop = mj.jit(lambda u, turns: mj.for_loop(turns, lambda turn, u: step(u), u))
    made = mj.jit(step).compile(mj.spec((None, None), np.float32))
    (only,) = made.plan.programs
    env = {"u.0": PLATE, "u.1": PLATE}
    launcher = Launcher(devices.current(), only.program)
    bound = launcher.bound(env)
    assert bound is not None
    dispatch, pack = bound
    parameters = pack([])

    def kernel_alone() -> Any:
        now, then = u.copy(), np.empty_like(u)
        for _ in range(TURNS):
            dispatch([now, then], parameters)
            now, then = then, now
        return now

    return Work(
        f"{TURNS} turns of heat, {PLATE}² f32",
        TURNS * 2 * u.nbytes,
        lambda: loop(u, TURNS),
        {"its kernel alone": kernel_alone},
    )


WORKS = {"chain": chain, "stencil": stencil, "heat": heat}


# ---- what it costs beside the kernels ----

WARM = """
import numpy as np, metaljit as mj
f = mj.jit(lambda a, b, c: a * b + c)
a, b, c = (np.ones((4, 4), np.float32) for _ in range(3))
f(a, b, c)
CALLS = 20000
start = clock()
for _ in range(CALLS):
    f(a, b, c)
report(start, 1e6 / CALLS)
"""

# 50 nodes with functions, broadcasting and views; `parts` of them are normalised by their mean, which takes kernels.
COLD = """
import numpy as np, metaljit as mj
def graph(x, y, w):
    for k in range(NODES // 6):
        x = np.tanh(x * w + y) * (0.5 + SEED) + 0.1 * k
        if k % 8 in range(PARTS):
            x = x - x.mean(axis=0)
    return x
x, y, w = np.ones((64, 48), np.float32), np.ones((64, 48), np.float32), np.ones(48, np.float32)
mj.jit(lambda x: x)
start = clock()
mj.jit(graph)(x, y, w)
report(start, 1e3)
"""

SECOND = COLD.replace("start = clock()", "f = mj.jit(graph); f(x, y, w); x, y = x[:50], y[:50]; start = clock()").replace(
    "mj.jit(graph)(x, y, w)", "f(x, y, w)"
)  # fmt: skip


def lines(rounds: int) -> list[Line]:
    """Fresh processes, each with a cache of its own; a graph whose numbers nobody has compiled before."""

    def graph(code: str, parts: int) -> list[Time]:
        found = []
        for k in range(rounds):
            with TemporaryDirectory(prefix="metaljit-bench-") as name:
                text = code.replace("NODES", "50").replace("SEED", repr(k / 64)).replace("PARTS", str(parts))
                found.append(child(Path(name), text))
        return found

    with TemporaryDirectory(prefix="metaljit-bench-") as name:
        warm = [child(Path(name), WARM) for _ in range(rounds)]
    return [
        Line("warm call of a traced function of three arrays", "µs", warm, 15),
        Line("50 nodes from cold, one kernel", "ms", graph(COLD, 0), 500),
        Line("50 nodes from cold, with two means, five kernels", "ms", graph(COLD, 2), 500),
        Line("its second size", "ms", graph(SECOND, 2), 2),
    ]
