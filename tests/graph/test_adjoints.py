"""Derivatives of map kernels: central differences of the same function in NumPy's float64, fused and unfused to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.lang import border, exp, f16, f32, f32x2, i32, local_array, position, tanh, where

H, W = mj.dims("H W")
N, M, K = mj.dims("N M K")
STEP = 1e-6
MODES = ("edge", "reflect", "symmetric", "wrap", "constant", "antiperiodic")


# ---- kernels, and what they are in NumPy ----


@mj.kernel
def weighted(u: f32[H, W], w: f32[K, K]) -> f32[H, W]:
    u = border(u, "edge")
    y, x = position()
    total = 0.0
    for i in range(K):
        for j in range(K):
            total += w[i, j] * u[y + i - K // 2, x + j - K // 2]
    return total


@mj.kernel
def convolved(u: f32[H, W], w: f32[3, 3]) -> f32[H, W]:
    u = border(u, "reflect")
    y, x = position()
    return sum(w[i, j] * u[y + i - 1, x + j - 1] for i in range(3) for j in range(3))


@mj.kernel
def wide(u: f32[H, W], w: f32[5, 5]) -> f32[H, W]:
    u = border(u, "wrap")
    y, x = position()
    total = 0.0
    for i in range(5):
        for j in range(5):
            total += w[i, j] * u[y + i - 2, x + j - 2]
    return tanh(total)


def stencil(u: Any, w: Any, mode: str) -> Any:
    r = len(w) // 2
    padded: Any = np.pad
    wide = padded(u, r, mode=mode)
    h, v = u.shape
    return sum(w[i, j] * wide[i : i + h, j : j + v] for i in range(len(w)) for j in range(len(w)))


@mj.kernel
def upsampled(u: f32[H, W]) -> f32[2 * H, 2 * W]:
    y, x = position()
    return u[y // 2, x // 2] ** 2


@mj.kernel
def interpolated(u: f32[N]) -> f32[2 * N]:
    u = border(u, "edge")
    i = position()
    return 0.75 * u[i // 2] + 0.25 * u[i // 2 + 2 * (i % 2) - 1]


@mj.kernel
def downsampled(u: f32[H, W]) -> f32[H // 2, W // 2]:
    y, x = position()
    return (u[2 * y, 2 * x] + u[2 * y + 1, 2 * x] * u[2 * y, 2 * x + 1] + u[2 * y + 1, 2 * x + 1]) / 4


@mj.kernel
def pooled(u: f32[H, W]) -> f32[H // 2, W // 2]:
    y, x = position()
    return max(u[2 * y + i, 2 * x + j] for i in range(2) for j in range(2))


@mj.kernel
def moving(u: f32[N]) -> f32[N]:
    u = border(u, "edge")
    i = position()
    most = u[i]
    for k in range(-1, 2):
        if u[i + k] > most:
            most = u[i + k]
    return most


@mj.kernel
def turned(u: f32[H, W]) -> f32[W, H]:
    x, y = position()
    return u[y, W - 1 - x] * u[y, x]


@mj.kernel
def spread(u: f32[W], v: f32[H]) -> f32[H, W]:
    y, x = position()
    return u[x] * exp(v[y])


@mj.kernel
def product(a: f32[N, K], b: f32[K, M]) -> f32[N, M]:
    i, j = position()
    return sum(a[i, k] * b[k, j] for k in range(K))


@mj.kernel
def softened(a: f32[N, K], b: f32[K, M]) -> f32[N, M]:
    i, j = position()
    total = 1.0
    for k in range(K):
        total += a[i, k] * b[k, j]
    return tanh(total) * a[i, 0]


@mj.kernel
def powers(u: f32[N]) -> f32[N]:
    i = position()
    x = u[i]
    for _ in range(4):
        x = x * x - u[i] * 0.5
    return x


@mj.kernel
def horner(u: f32[N], c: f32[4]) -> f32[N]:
    i = position()
    total = 0.0
    for k in range(4):
        total = total * u[i] + c[k]
    return total


@mj.function
def slope(a, b):  # type: ignore[no-untyped-def]
    if a > b:
        return a * a - b
    return a * b


@mj.function
def near(u, i):  # type: ignore[no-untyped-def]
    return slope(u[i], u[i - 1])


@mj.kernel
def called(u: f32[N]) -> f32[N]:
    u = border(u, "constant", value=0.5)
    i = position()
    return near(u, i) + (slope(u[i], u[i + 2]) if i < N - 2 else u[i])


@mj.kernel
def branched(u: f32[H, W], k: f32) -> f32[H, W]:
    y, x = position()
    if y == 0 or x == W - 1:
        return u[y, x] * k
    v = u[y - 1, x + 1]
    if v > 0:
        v = v * k
    return where(v < u[y, x], v * v, u[y, x] / (k + 3))


@mj.kernel
def pair(u: f32[H, W]) -> tuple[f32[H, W], f32[H, W]]:
    u = border(u, "symmetric")
    y, x = position()
    return u[y, x + 1] - u[y, x - 1], u[y + 1, x] * u[y - 1, x]


@mj.kernel
def twist(u: f32x2[N], v: f32[N]) -> f32x2[N]:
    u = border(u, "wrap")
    i = position()
    a = u[i] + u[i - 1] * v[i]
    return f32x2(a.y * a.x, a.x - v[i])


@mj.kernel
def gathered(u: f32[N], at: i32[M]) -> f32[M]:
    i = position()
    return u[at[i]] * u[at[i]]


@mj.kernel
def neighbours(u: f32[N], at: i32[M, 3]) -> f32[M]:
    i = position()
    total = 0.0
    for k in range(3):
        total += u[at[i, k]] * (k + 1)
    return tanh(total)


@mj.kernel
def clipped(u: f32[N]) -> f32[N]:
    i = position()
    return u[min(i + 2, N - 1)] * 2 + u[i]


@mj.kernel
def sorted3(u: f32[N]) -> f32[N]:
    u = border(u, "edge")
    i = position()
    t = local_array(f32, 3)
    for k in range(3):
        t[k] = u[i + k - 1] * (k + 1)
    return t[0] * t[2] + t[1]


@mj.kernel
def diagonal(u: f32[N, N], v: f32[N]) -> f32[N]:
    i = position()
    return u[i, i] * v[0] + v[N - 1 - i]


@mj.kernel
def antidiagonals(u: f32[N], v: f32[H, W]) -> f32[H, W]:
    y, x = position()
    return u[y + x] * v[y, x] if y + x < N else 0.0


@mj.kernel
def correlated(u: f32[N], w: f32[K]) -> f32[N - K + 1]:
    i = position()
    return sum(u[i + k] * w[k] for k in range(K))


@mj.kernel
def prefix(u: f32[N]) -> f32[N]:
    i = position()
    return sum(u[k] * u[k] for k in range(i + 1))


@mj.kernel
def halved(u: f32[N]) -> f32[N]:
    i = position()
    return sum(u[k] for k in range(0, N, 2) if k <= i)


@mj.kernel
def newton(u: f32[N]) -> f32[N]:
    i = position()
    x = 1.0 + 0 * u[i]
    n = 0
    while n < 6:
        x = 0.5 * (x + (2 + u[i] * u[i]) / x)
        n += 1
    return x


@mj.kernel
def shifted(u: f32[N], by: i32) -> f32[N]:
    u = border(u, "wrap")
    i = position()
    return u[i + by] * u[i]


@mj.kernel
def halves(u: f16[N], k: f16) -> f16[N]:
    u = border(u, "edge")
    i = position()
    return u[i - 1] * u[i] + k


@mj.function
def first_above(x):  # type: ignore[no-untyped-def]
    for k in range(4):
        if x * k > 1:
            return x * k
    return x


@mj.kernel
def left(u: f32[N]) -> f32[N]:
    i = position()
    return first_above(u[i])


@mj.kernel
def stepped(u: f32[N]) -> i32[N]:
    i = position()
    return i32(u[i])


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, shape).astype(np.float32)


def np_interpolated(u: Any) -> Any:
    n = len(u)
    i = np.arange(2 * n)
    return 0.75 * u[i // 2] + 0.25 * u[np.clip(i // 2 + 2 * (i % 2) - 1, 0, n - 1)]


def np_powers(u: Any) -> Any:
    x = u
    for _ in range(4):
        x = x * x - u * 0.5
    return x


def np_slope(a: Any, b: Any) -> Any:
    return np.where(a > b, a * a - b, a * b)


def np_called(u: Any) -> Any:
    wide = np.concatenate([[0.5], u])
    last = np.concatenate([np_slope(u[:-2], u[2:]), u[-2:]])
    return np_slope(u, wide[:-1]) + last


def np_branched(u: Any, k: Any) -> Any:
    out = np.array(u * k)
    for y in range(1, u.shape[0]):
        for x in range(u.shape[1] - 1):
            v = u[y - 1, x + 1]
            v = v * k if v > 0 else v
            out[y, x] = v * v if v < u[y, x] else u[y, x] / (k + 3)
    return out


def np_pair(u: Any) -> Any:
    w = np.pad(u, 1, mode="symmetric")
    return w[1:-1, 2:] - w[1:-1, :-2], w[2:, 1:-1] * w[:-2, 1:-1]


def np_twist(u: Any, v: Any) -> Any:
    s = u + np.roll(u, 1, 0) * v[:, None]
    return np.stack([s[:, 1] * s[:, 0], s[:, 0] - v], 1)


def np_moving(u: Any) -> Any:
    w = np.pad(u, 1, mode="edge")
    return np.maximum(np.maximum(w[:-2], w[1:-1]), w[2:])


def np_sorted3(u: Any) -> Any:
    w = np.pad(u, 1, mode="edge")
    return w[:-2] * w[2:] * 3 + w[1:-1] * 2


def np_antidiagonals(u: Any, v: Any) -> Any:
    out = np.zeros_like(v)
    for y, x in np.ndindex(*v.shape):
        out[y, x] = u[y + x] * v[y, x] if y + x < len(u) else 0
    return out


def np_newton(u: Any) -> Any:
    x = 1 + 0 * u
    for _ in range(6):
        x = 0.5 * (x + (2 + u * u) / x)
    return x


def bordered(mode: str) -> Callable[..., Any]:
    return lambda u: ops.laplacian(u, mode=mode)


def blocks(u: Any) -> Any:
    h, w = u.shape[0] // 2, u.shape[1] // 2
    return u[: 2 * h, : 2 * w].reshape(h, 2, w, 2)


def np_downsampled(u: Any) -> Any:
    b = blocks(u)
    return (b[:, 0, :, 0] + b[:, 1, :, 0] * b[:, 0, :, 1] + b[:, 1, :, 1]) / 4


AT = np.array([3, 0, 3, 4, 3], np.int32)
NEAR = np.array([[0, 1, 1], [4, 2, 0], [2, 2, 2], [3, 1, 0]], np.int32)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, tuple[Any, ...]]] = {
    "edge": (lambda u, w: weighted(u, w), lambda u, w: stencil(u, w, "edge"), (a(5, 6), a(3, 3, seed=1))),
    "sum of products": (lambda u, w: convolved(u, w), lambda u, w: stencil(u, w, "reflect"), (a(4, 6), a(3, 3, seed=1))),
    "five by five": (lambda u, w: wide(u, w), lambda u, w: np.tanh(stencil(u, w, "wrap")), (a(5, 7), a(5, 5, seed=1) / 4)),
    "up": (lambda u: upsampled(u), lambda u: np.repeat(np.repeat(u, 2, 0), 2, 1) ** 2, (a(3, 4),)),
    "between": (lambda u: interpolated(u), np_interpolated, (a(6),)),
    "down": (lambda u: downsampled(u), np_downsampled, (a(5, 6),)),
    "pooled": (lambda u: pooled(u), lambda u: blocks(u).max(axis=(1, 3)), (a(5, 7),)),
    "moving": (lambda u: moving(u), np_moving, (a(9),)),
    "turned": (lambda u: turned(u), lambda u: (u[:, ::-1] * u).T, (a(4, 5),)),
    "spread": (lambda u, v: spread(u, v), lambda u, v: u * np.exp(v)[:, None], (a(4), a(3, seed=1))),
    "product": (lambda x, y: product(x, y), lambda x, y: x @ y, (a(3, 4), a(4, 5, seed=1))),
    "softened": (lambda x, y: softened(x, y), lambda x, y: np.tanh(1 + x @ y) * x[:, :1], (a(3, 4), a(4, 5, seed=1))),
    "powers": (lambda u: powers(u), np_powers, (a(7) / 2,)),
    "horner": (lambda u, c: horner(u, c), lambda u, c: ((c[0] * u + c[1]) * u + c[2]) * u + c[3], (a(7), a(4, seed=1))),
    "called": (lambda u: called(u), np_called, (a(8),)),
    "branched": (lambda u, k: branched(u, k), np_branched, (a(5, 6), np.float32(0.7))),
    "pair": (lambda u: pair(u), np_pair, (a(5, 4),)),
    "vectors": (lambda u, v: twist(u, v), np_twist, (a(5, 2), a(5, seed=1))),
    "gathered": (lambda u: gathered(u, AT), lambda u: u[AT] ** 2, (a(6),)),
    "neighbours": (lambda u: neighbours(u, NEAR), lambda u: np.tanh(u[NEAR] @ np.arange(1, 4)), (a(5) / 3,)),
    "clipped": (lambda u: clipped(u), lambda u: u[np.minimum(np.arange(len(u)) + 2, len(u) - 1)] * 2 + u, (a(6),)),
    "private": (lambda u: sorted3(u), np_sorted3, (a(6),)),
    "diagonal": (lambda u, v: diagonal(u, v), lambda u, v: np.diag(u) * v[0] + v[::-1], (a(4, 4), a(4, seed=1))),
    "antidiagonals": (lambda u, v: antidiagonals(u, v), np_antidiagonals, (a(5), a(4, 3, seed=1))),
    "correlated": (lambda u, w: correlated(u, w), lambda u, w: np.correlate(u, w), (a(9), a(4, seed=1))),
    "prefix": (lambda u: prefix(u), lambda u: np.cumsum(u * u), (a(7),)),
    "every other": (lambda u: halved(u), lambda u: np.cumsum(np.where(np.arange(len(u)) % 2, 0, u)), (a(7),)),
    "while": (lambda u: newton(u), np_newton, (a(5),)),
    "fused": (lambda u: ops.laplacian(np.exp(u), mode="reflect") * u, None, (a(5, 6),)),
    **{f"laplacian {mode}": (bordered(mode), None, (a(4, 5),)) for mode in MODES},
}  # fmt: skip


def weights(value: Any) -> Any:
    return np.random.default_rng(9).standard_normal(np.shape(value))


def loss(f: Callable[..., Any], like: Any) -> Callable[..., Any]:
    """A number that depends on all that a function gives."""
    by = [weights(v) for v in (like if isinstance(like, tuple) else (like,))]

    def run(*args: Any) -> Any:
        found = f(*args)
        parts = found if isinstance(found, tuple) else (found,)
        total: Any = 0.0
        for part, w in zip(parts, by, strict=True):
            total = total + (part * (w if part.dtype == np.float64 else w.astype(np.float32))).sum()
        return total

    return run


def differences(f: Callable[..., Any], args: tuple[Any, ...], step: float = STEP) -> list[Any]:
    """Central differences."""
    found = []
    wide = [np.asarray(x, np.float64) for x in args]
    for n, x in enumerate(wide):
        slope = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[at] += sign * step
                ends.append(float(f(*wide[:n], moved, *wide[n + 1 :])))
            slope[at] = (ends[0] - ends[1]) / (2 * step)
        found.append(slope)
    return found


def reference(name: str) -> tuple[Callable[..., Any], list[Any]]:
    """The loss of a case, and its derivatives."""
    f, same, args = CASES[name]
    if same is not None:
        like = same(*(np.asarray(x, np.float64) for x in args))
        return loss(f, like), differences(loss(same, like), args)
    run = mj.jit(f)
    like = np.asarray(run(*args))
    by = weights(like)
    # exact but for rounding: with the kernel's own f32 numbers, steps are large, and the functions nearly linear
    return loss(f, like), differences(
        lambda *x: float((np.asarray(run(*(v.astype(np.float32) for v in x)), np.float64) * by).sum()),
        args,
        2**-7,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_has_the_derivative_of_its_function(name: str, device: str) -> None:
    run, wanted = reference(name)
    args = CASES[name][2]
    with mj.use_device(device):
        found = mj.grad(run, argnums=tuple(range(len(args))))(*args)
    rough = 2e-3 if CASES[name][1] is None else 2e-5
    for got, want in zip(found, wanted, strict=True):
        assert np.shape(got) == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=rough, atol=rough * max(1, np.abs(want).max()))


@pytest.mark.parametrize("name", CASES)
def test_a_derivative_is_the_same_to_the_bit_unfused(name: str) -> None:
    run, _ = reference(name)
    args = CASES[name][2]
    every = tuple(range(len(args)))
    fused = mj.jit(lambda *x: mj.grad(run, argnums=every)(*x))(*args)
    alone = mj.jit(fuse=False)(lambda *x: mj.grad(run, argnums=every)(*x))(*args)
    for x, y in zip(fused, alone, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("fuse", [True, False])
def test_an_index_with_a_number_is_solved_or_scattered(fuse: bool) -> None:
    u, by = a(7), weights(np.zeros(7)).astype(np.float32)
    wanted = differences(lambda u: (np.roll(u, -2) * u * by).sum(), (u,))[0]

    def of(shift: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda u, s: mj.grad(lambda v: (shifted(v, shift(s)) * by).sum())(u)

    for shift, s in ((lambda s: s, 2), (lambda s: s, -5), (lambda s: 2, 0), (lambda s: s * 2, 1)):
        np.testing.assert_allclose(mj.jit(fuse=fuse)(of(shift))(u, s), wanted, rtol=1e-5, atol=1e-5)


def test_derivatives_of_16_bit_floats_have_their_type(device: str) -> None:
    u = np.linspace(-1, 2, 6).astype(np.float16)
    with mj.use_device(device):
        du, dk = mj.grad(lambda u, k: halves(u, k).sum(), argnums=(0, 1))(u, np.float16(0.5))
    assert (du.dtype, dk.dtype) == (np.float16, np.float16)
    wanted = differences(lambda u: (np.concatenate([u[:1], u[:-1]]) * u).sum(), (u,))[0]
    np.testing.assert_allclose(np.asarray(du, np.float32), wanted, atol=4e-3)
    assert dk == 6


def test_integers_have_no_derivative() -> None:
    u = a(6)
    np.testing.assert_array_equal(mj.grad(lambda u: (stepped(u) * u).sum())(u), np.trunc(u))


def test_a_new_size_is_derived_by_the_same_program() -> None:
    step = mj.jit(lambda u, w: mj.grad(lambda v: convolved(v, w).sum())(u))
    w = a(3, 3, seed=1)
    for shape in ((2, 2), (3, 9), (40, 70)):
        u = a(*shape)
        wanted = differences(lambda u: stencil(u, np.float64(w), "reflect").sum(), (u[:9, :9],))[0]
        np.testing.assert_allclose(step(u[:9, :9], w), wanted, rtol=1e-4, atol=1e-4)
        assert step(u, w).shape == shape


def test_what_has_no_derivative_is_told_at_its_line() -> None:
    with pytest.raises(mj.TypeFault, match="returns from within a loop") as caught:
        mj.grad(lambda u: left(u).sum())(a(5))
    assert caught.value.slug == "no-derivative"
    assert "for k in range(4)" in str(caught.value)


def test_a_derivative_of_a_derivative_is_refused() -> None:
    with pytest.raises(mj.TypeFault, match="itself a derivative") as caught:
        mj.grad(lambda u: (mj.grad(lambda v: (turned(v) * 2).sum())(u) ** 2).sum())(a(4, 5))
    assert caught.value.slug == "no-derivative"
