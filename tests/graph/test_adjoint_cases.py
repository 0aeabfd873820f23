"""More kernels with their gradients: far borders, loops of all kinds, functions with several results, one argument twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import (
    border,
    cross,
    exp,
    f32,
    f32x3,
    i32,
    position,
    sin,
    tanh,
)  # fmt: skip

H, W, K, M, N = mj.dims("H W K M N")
T: Any = mj.dtypes("f16 f32")


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.3, 1.5, shape).astype(np.float32)


# ---- stencils ----


@mj.kernel
def wide_blur(u: f32[H, W], w: f32[5, 5]) -> f32[H, W]:
    i, j = position()
    v = border(u, ("reflect", "wrap"))
    total = 0.0
    for y in range(5):
        for x in range(5):
            total += w[y, x] * v[i + y - 2, j + x - 2]
    return tanh(total)


def wide_blurred(u: Any, w: Any) -> Any:
    wide = np.pad(np.pad(u, ((2, 2), (0, 0)), mode="reflect"), ((0, 0), (2, 2)), mode="wrap")
    h, k = u.shape
    return np.tanh(sum(w[y, x] * wide[y : y + h, x : x + k] for y in range(5) for x in range(5)))


@mj.kernel
def far(u: f32[N]) -> f32[N]:
    i = position()
    v = border(u, "symmetric")
    return v[i - 7] * v[i + 9]


def far_(u: Any) -> Any:
    wide = np.pad(u, 9, mode="symmetric")
    return wide[2 : 2 + len(u)] * wide[18 : 18 + len(u)]


@mj.kernel
def longer(u: f32[N]) -> f32[3 * N + 2]:
    i = position()
    return border(u, "edge")[i - 4] + border(u, "antiperiodic")[i] * border(u, "reflect")[i + 1]


def longer_(u: Any) -> Any:
    n = len(u)
    i = np.arange(3 * n + 2)
    sign = np.where(i // n % 2, -1, 1)
    back = np.abs((i + 1 + n - 1) % (2 * n - 2) - (n - 1))
    return u[np.clip(i - 4, 0, n - 1)] + sign * u[i % n] * u[back]


@mj.kernel
def rolled(u: f32[N], by: i32) -> f32[N]:
    i = position()
    return border(u, "wrap")[i + by] * u[(i + 1) % N]


# ---- other affine reads ----


@mj.kernel
def strided(u: f32[N]) -> f32[N // 3]:
    i = position()
    total = 0.0
    for k in range(0, 6, 2):
        total += u[3 * i + k] * u[3 * i + k]
    return total


def strided_(u: Any) -> Any:
    wide = np.concatenate([u, np.zeros(6)])
    i = 3 * np.arange(len(u) // 3)
    return sum(wide[i + k] ** 2 for k in (0, 2, 4))


@mj.kernel
def product(x: f32[N, K], y: f32[K, M]) -> f32[N, M]:
    i, j = position()
    return sum(x[i, k] * y[k, j] for k in range(K))


@mj.kernel
def bent_product(x: f32[N, K], y: f32[K, M]) -> f32[N, M]:
    i, j = position()
    total = 0.0
    for k in range(K):
        total += x[i, k] * y[k, j]
    return total * sin(total)


@mj.kernel
def backwards(u: f32[N]) -> f32[N]:
    i = position()
    total = 0.0
    for k in range(3, 0, -1):
        if i >= k:
            total = total - u[i - k] * f32(k)
    return total


def backwards_(u: Any) -> Any:
    return -sum(k * np.concatenate([np.zeros(k), u[:-k]]) for k in (1, 2, 3))


@mj.kernel
def summed(u: f32[N]) -> f32[N]:
    i = position()
    total = 0.0
    for k in range(i + 1):
        total += u[k] * u[k]
    return total


# ---- what is between reads and results ----


@mj.function
def at(u, i):  # type: ignore[no-untyped-def]
    if i < 0:
        return u[0]
    return u[i]


@mj.function
def slope(x, y):  # type: ignore[no-untyped-def]
    return x - y, x * y


@mj.kernel
def helped(u: f32[N]) -> f32[N]:
    i = position()
    difference, product = slope(at(u, i), at(u, i - 1))
    return product * exp(difference) if i != 2 else at(u, i - 2)


def helped_(u: Any) -> Any:
    before = np.concatenate([u[:1], u[:-1]])
    found = u * before * np.exp(u - before)
    return np.where(np.arange(len(u)) == 2, u[0], found)


@mj.kernel
def powers(u: f32[N], s: f32) -> f32[N]:
    i = position()
    x = 1.0
    for k in range(3):
        x = x * u[i] + s
    return x


@mj.kernel
def ends(u: f32[N]) -> f32[N]:
    i = position()
    total = 0.0
    for k in range(4):
        if k > i:
            break
        total += u[i - k]
    return total


def ends_(u: Any) -> Any:
    return sum(np.concatenate([np.zeros(k), u[: len(u) - k]]) for k in range(4))


@mj.kernel
def crossed(u: f32x3[N], v: f32x3[N]) -> f32x3[N]:
    i = position()
    return cross(u[i], border(v, "wrap")[i + 1])


# ---- reads by data ----


@mj.kernel
def mixed(u: f32[N, M], rows: i32[N]) -> f32[N, M]:
    i, j = position()
    total = u[rows[i], j]
    if i > 1:
        for k in range(2):
            total += border(u, "wrap")[rows[i] + k, rows[(i + k) // 2]] * u[i, j]
    return total


ROWS: Any = np.array([1, 1, 3, 0], np.int32)


def mixed_(u: Any, rows: Any) -> Any:
    total = u[rows].copy()
    for i in range(2, 4):
        for k in range(2):
            total[i] += u[(rows[i] + k) % 4, rows[(i + k) // 2] % 3] * u[i]
    return total


Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    "wide blur": (wide_blur, wide_blurred, (a(6, 7) / 9, a(5, 5) / 9)),
    "small wide blur": (wide_blur, wide_blurred, (a(3, 2) / 9, a(5, 5) / 9)),
    "far": (far, far_, (a(5),)),
    "longer": (longer, longer_, (a(4),)),
    "rolled": (rolled, lambda u, by: np.roll(u, -by) * np.roll(u, -1), (a(5), 7)),
    "strided": (strided, strided_, (a(13),)),
    "bent product": (bent_product, lambda x, y: (x @ y) * np.sin(x @ y), (a(2, 3) / 2, a(3, 2))),
    "backwards": (backwards, backwards_, (a(6),)),
    "summed": (summed, lambda u: np.cumsum(u * u), (a(6) / 2,)),
    "helped": (helped, helped_, (a(6),)),
    "powers": (powers, lambda u, s: ((u + s) * u + s) * u + s, (a(5) / 2, np.float32(0.4))),
    "ends": (ends, ends_, (a(7),)),
    "crossed": (crossed, lambda u, v: np.cross(u, np.roll(v, -1, axis=0)), (a(4, 3), a(4, 3, seed=1))),
    "mixed": (mixed, mixed_, (a(4, 3), ROWS)),
}


def loss(function: Callable[..., Any], args: tuple[Any, ...], weights: list[Any]) -> Any:
    """A number that depends on every element of every result in a way of its own."""
    found = function(*args)
    found = found if isinstance(found, tuple) else (found,)
    return sum((w * (r + r * r)).sum() for r, w in zip(found, weights, strict=True))


def weights_of(reference: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    found = reference(*args)
    found = found if isinstance(found, tuple) else (found,)
    return [a(*np.shape(r), seed=7 + k) for k, r in enumerate(found)]


def floats(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(k for k, x in enumerate(args) if getattr(x, "dtype", None) == np.float32)


def differences(reference: Callable[..., Any], args: tuple[Any, ...], weights: list[Any], k: int) -> Any:
    """The derivative of the loss by argument `k`, in float64, step 1e-6."""
    wide = [np.array(x, np.float64) if i in floats(args) else x for i, x in enumerate(args)]
    found = np.zeros(np.shape(args[k]))
    for at in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [x.copy() if i == k else x for i, x in enumerate(wide)]
            moved[k][at] += step
            ends.append(float(loss(reference, tuple(moved), weights)))
        found[at] = (ends[0] - ends[1]) / 2e-6
    return found


def gradient(kernel: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The gradient of the loss by all floats, as a function of the arguments and the weights."""
    count = len(args)
    return mj.grad(lambda *given: loss(kernel, given[:count], list(given[count:])), argnums=floats(args))


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_central_differences(name: str, device: str) -> None:
    kernel, reference, args = CASES[name]
    weights = weights_of(reference, args)
    with mj.use_device(device):
        found = gradient(kernel, args)(*args, *weights)
    for k, got in zip(floats(args), found, strict=True):
        assert got.shape == np.shape(args[k])
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, differences(reference, args, weights, k), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_fused_is_unfused_to_the_bit(name: str) -> None:
    kernel, reference, args = CASES[name]
    given = (*args, *weights_of(reference, args))
    made = gradient(kernel, args)
    fused, alone = mj.jit(made)(*given), mj.jit(fuse=False)(made)(*given)
    for x, y in zip(fused, alone, strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@mj.kernel
def of_any(u: T[N], k: T) -> T[N]:
    i = position()
    return u[i] * border(u, "wrap")[i + 1] * k


def test_half_floats_have_half_gradients(device: str) -> None:
    u, k = a(6).astype(np.float16), np.float16(0.5)
    with mj.use_device(device):
        by_u, by_k = mj.grad(lambda u, k: of_any(u, k).sum(), argnums=(0, 1))(u, k)
    assert by_u.dtype == by_k.dtype == np.float16
    np.testing.assert_allclose(by_u, (np.roll(u, 1) + np.roll(u, -1)) * k, rtol=4e-3)
    np.testing.assert_allclose(by_k, (u * np.roll(u, -1)).sum(), rtol=4e-3)


def test_one_argument_in_two_places_of_a_call() -> None:
    x = a(3, 3)
    found = mj.grad(lambda x: product(x, x).sum())(x)
    np.testing.assert_allclose(found, x.sum(axis=1) + x.sum(axis=0)[:, None], rtol=1e-5)


def test_a_kernel_of_a_kernel() -> None:
    u = a(6)
    found = mj.grad(lambda u: (rolled(helped(u), 2) * u).sum())(u)
    want = np.zeros(6)
    for k in range(6):
        step = np.zeros(6)
        step[k] = 1e-6

        def value(u: Any) -> Any:
            v = helped_(u)
            return (np.roll(v, -2) * np.roll(v, -1) * u).sum()

        want[k] = (value(u.astype(np.float64) + step) - value(u.astype(np.float64) - step)) / 2e-6
    np.testing.assert_allclose(found, want, rtol=1e-4)


def test_what_is_read_inside_needs_no_border() -> None:
    """Only the function for indices outside asks where a border brings them."""
    made = mj.grad(lambda u, w: wide_blur(u, w).sum())
    functions = made.jitted.msl(a(9, 9), a(5, 5)).split("wide_blur_pull")
    inside, outside = functions[1].partition("\n}\n")[0], functions[2].partition("\n}\n")[0]
    assert "mj_reflect(" in outside
    assert inside.count("mj_reflect(") < outside.count("mj_reflect(")
    assert " == " not in inside.replace("inside ==", "")


def test_an_index_that_several_statements_assign_is_told() -> None:
    kernel = mj.kernel_from_text("""
N = dims("N")

@kernel
def f(x: f32[N], at: i32[N]) -> f32[N]:
    j = at[position()]
    if j < 0:
        j = j + N
    return x[j] * 2
""")
    at = np.array([0, -1, 2], np.int32)
    with pytest.raises(
        mj.TypeFault, match="'x' is read at an index that several statements assign"
    ) as caught:
        mj.grad(lambda x: kernel(x, at).sum())(np.ones(3, np.float32))
    assert caught.value.slug == "no-derivative"
