"""Traced functions: the same numbers as NumPy, fused or not, and errors that say what a trace cannot do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.lang import border, f32, i32, position

H, W = mj.dims("H W")
N = mj.dims("N")


@mj.kernel
def blur(u: f32[H, W]) -> f32[H, W]:
    u = border(u, "edge")
    y, x = position()
    return (u[y, x - 1] + u[y, x] + u[y, x + 1]) / 3


@mj.kernel
def padded(u: f32[N]) -> f32[N + 4]:
    u = border(u, "constant", value=-1)
    i = position()
    return u[i - 2]


@mj.kernel
def scaled(u: f32[N], factor: f32) -> f32[N]:
    return u[position()] * factor


@mj.kernel
def split(u: f32[H, W]) -> tuple[f32[H, W], f32[H, W]]:
    y, x = position()
    return u[y, x] + 1, u[y, x] * 2


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6, atol=2e-6)
    assert actual.shape == np.shape(expected)
    assert actual.dtype == np.asarray(expected).dtype


def a(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


GIVEN: Any = a(9, seed=5)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "operators": (lambda x, y: (x + y) * 2 - x / (y * y + 1), (a(5, 7), a(5, 7, seed=1))),
    "broadcast": (lambda x, y: x * y + y, (a(5, 7), a(7))),
    "outer": (lambda x, y: x[:, None] * y[None, :], (a(5), a(7))),
    "ones": (lambda x, y: x + y, (a(5, 1), a(1, 7))),
    "number": (lambda x, k: x * k + 1, (a(5), 0.5)),
    "ufuncs": (lambda x: np.exp(np.sin(x)) + np.maximum(x, 0), (a(30),)),
    "comparison": (lambda x: np.where(x > 0, x, -x) * (x < 1), (a(30),)),
    "slice": (lambda x: x[1:-1, ::2] - x[2:, :-1][:, ::2], (a(6, 8),)),
    "backwards": (lambda x: x[::-1, -2::-3], (a(6, 9),)),
    "item": (lambda x: x[2] + x[:, 1][0] + x[-1, -1], (a(6, 9),)),
    "transpose": (lambda x: x.T + x.reshape(8, 6), (a(6, 8),)),
    "reshape": (lambda x: x.reshape(-1, 3).reshape(2, 2, -1), (a(4, 6),)),
    "flip": (lambda x: np.flip(x, 1) + np.moveaxis(x, 0, 1).T, (a(4, 6),)),
    "sum": (lambda x: x.sum(axis=1), (a(4, 6),)),
    "mean": (lambda x: x - x.mean(axis=0, keepdims=True), (a(4, 6),)),
    "variance": (lambda x: x.var(axis=-1) + x.std(axis=1, ddof=1), (a(4, 6),)),
    "softmax": (
        lambda x: np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
        (a(4, 60),),
    ),
    "wide softmax": (
        lambda x: np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
        (a(3, 300),),
    ),
    "layer norm": (
        lambda x, w: (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * w,
        (a(2, 3, 100), a(100)),
    ),
    "all sums": (lambda x: x.sum() + x.max() - x.min(), (a(50, 7),)),
    "two axes": (lambda x: x.sum(axis=(1, 2)) * 2, (a(3, 8, 9),)),
    "sum of a stencil": (lambda x: ops.laplacian(x * 2).sum(axis=1), (a(4, 90),)),
    "row and its max": (lambda x: (x * 2 - x.max(axis=1)[:, None])[:, ::2], (a(4, 90),)),
    "kernel": (lambda x: blur(x * 2) + 1, (a(5, 7),)),
    "kernels": (lambda x: blur(blur(x) + blur(x.T).T), (a(5, 7),)),
    "padding": (lambda x: padded(np.exp(x)) * 2, (a(9),)),
    "scalar": (lambda x, k: scaled(x + 1, k), (a(9), 3.5)),
    "op": (lambda x: ops.laplacian(np.abs(x), mode="wrap") * x, (a(9, 4),)),
    "shared": (lambda x: (x * x + x) * (x * x - x), (a(9),)),
    "equal later": (lambda x, y: (lambda z: blur(np.exp(np.sin(y + z))))(blur(x)), (a(5, 7), a(5, 7, seed=1))),
    "captured": (lambda x: x + GIVEN, (a(9),)),
    "empty": (lambda x: x * 2 + 1, (a(0, 3),)),
    "scalars": (lambda x: x.sum() + x.max(), (a(30),)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_traced_function_gives_numpys_numbers(name: str, device: str) -> None:
    function, args = CASES[name]
    with mj.use_device(device):
        close(mj.jit(function)(*args), function(*args))


@pytest.mark.parametrize("name", CASES)
def test_fused_is_unfused_to_the_bit(name: str) -> None:
    function, args = CASES[name]
    fused, alone = mj.jit(function)(*args), mj.jit(fuse=False)(function)(*args)
    assert np.asarray(fused).tobytes() == np.asarray(alone).tobytes()


def test_sums_of_integers_and_bools() -> None:
    x = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    total, some, every = mj.jit(lambda x: (x.sum(axis=0), (x > 3).any(axis=1), (x < 9).all()))(x)
    assert total.dtype == np.int32
    np.testing.assert_array_equal(total, x.sum(0))
    np.testing.assert_array_equal(some, (x > 3).any(1))
    assert every.shape == ()
    assert every


def test_nan_and_infinity_go_through_long_reductions() -> None:
    x = a(4, 200)
    x[0, 7], x[1, 8], x[2, 9] = np.nan, np.inf, -np.inf
    top, least, total = mj.jit(lambda x: (x.max(axis=1), x.min(axis=1), x.sum(axis=1)))(x)
    np.testing.assert_array_equal(top, x.max(1))
    np.testing.assert_array_equal(least, x.min(1))
    close(total, x.sum(1))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint32", "int64"])
def test_long_reductions_of_other_types(dtype: str, device: str) -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, 150)).astype(dtype)
    with mj.use_device(device):
        top, total = mj.jit(lambda x: (x.max(axis=1), x.sum(axis=1)))(x)
    assert top.dtype == x.dtype
    np.testing.assert_array_equal(top, x.max(1))
    np.testing.assert_array_equal(total, x.sum(1, dtype=np.int64))


def test_softmax_and_layer_norm_are_one_kernel() -> None:
    for name in ("wide softmax", "layer norm"):
        function, args = CASES[name]
        assert ": 1 kernel\n" in mj.jit(function).explain(*args)


def test_several_results_come_from_one_kernel() -> None:
    made = mj.jit(lambda x: (x + 1, np.exp(x), x * x))
    x = a(5, 3)
    for got, want in zip(made(x), (x + 1, np.exp(x), x * x), strict=True):
        close(got, want)
    assert made.explain(x).startswith("<lambda>: 1 kernel\n")


def test_a_kernel_of_two_results() -> None:
    x = a(4, 5)
    plus, twice = mj.jit(lambda x: split(x * x))(x)
    close(plus, x * x + 1)
    close(twice, x * x * 2)


def test_a_kernel_of_vectors_computes_each_vector_once(device: str) -> None:
    """Stored, a thread gives all lanes; read by a kernel that it is part of, the lane that is wanted."""
    turned = mj.kernel_from_text(
        """
N = dims("N")
@kernel
def turned(u: f32[N], n: i32) -> f32x2[n]:
    i = position()
    return f32x2(cos(f32(i)), sin(f32(i))) * u[i % N]
"""
    )
    u = a(5)

    def both(u: Any) -> tuple[Any, Any, Any]:
        made = turned(u, u.shape[0] + 2)
        return made, made.reshape(-1)[1:] * 2, made + 1

    i = np.arange(7)
    want = np.stack([np.cos(i), np.sin(i)], axis=1).astype(np.float32) * u[i % 5, None]
    with mj.use_device(device):
        for fuse in (True, False):
            found = mj.jit(fuse=fuse)(both)(u)
            for got, expected in zip(found, (want, want.reshape(-1)[1:] * 2, want + 1), strict=True):
                close(got, expected)
        close(mj.jit(lambda u: turned(u, u.shape[0] + 2).reshape(-1) * 2)(u), want.reshape(-1) * 2)
    assert "float2 made" in mj.jit(lambda u: turned(u, u.shape[0] + 2)).msl(u)


def test_a_chain_is_one_kernel_and_a_dear_producer_of_a_stencil_is_stored() -> None:
    x = a(20, 30)
    assert "1 kernel\n" in mj.jit(lambda x: np.clip(x + 0.1 * ops.laplacian(x), 0, 1)).explain(x)
    text = mj.jit(lambda x: ops.laplacian(np.exp(np.sin(x)))).explain(x)
    assert "2 kernels" in text
    assert "operations anew at 5 places cost more than to store it" in text


# ---- signatures ----


def counted() -> tuple[Any, list[int]]:
    traces: list[int] = []

    @mj.jit
    def f(x: Any, k: Any = 2.0) -> Any:
        traces.append(1)
        return x * k + 1

    return f, traces


def test_new_sizes_and_numbers_do_not_trace_again() -> None:
    f, traces = counted()
    for n in (2, 5, 100):
        for k in (1.0, 2.5):
            close(f(a(n), k), a(n) * np.float32(k) + 1)
    assert len(traces) == 1


def test_a_new_dtype_or_rank_does() -> None:
    f, traces = counted()
    f(a(3))
    f(a(3, 4))
    assert f(np.arange(3, dtype=np.int32), 2).dtype == np.int32
    f(a(1))  # an extent of 1 broadcasts
    assert len(traces) == 4


def test_what_a_function_asks_about_a_size_is_a_trace_of_its_own() -> None:
    traces = []

    @mj.jit
    def f(x: Any) -> Any:
        traces.append(1)
        return x[:4].sum() if x.shape[0] > 4 else x.sum() * 0

    for n in (9, 3, 12, 2):
        assert f(a(n)) == pytest.approx(a(n)[:4].sum() if n > 4 else 0, rel=1e-5)
    assert len(traces) == 2


def test_arithmetic_with_sizes_serves_all() -> None:
    traces = []

    @mj.jit
    def f(x: Any) -> Any:
        traces.append(1)
        n = x.shape[0] // 2
        return x[:n].sum() / n

    for n in (8, 13, 40):
        assert f(a(n)) == pytest.approx(a(n)[: n // 2].mean(), rel=1e-5, abs=1e-6)
    assert len(traces) == 1


@dataclass
class Layer:
    w: Any
    b: Any


def test_nested_arguments_and_results() -> None:
    @mj.jit
    def f(params: Any, x: Any) -> Any:
        layer = params["layers"][0]
        return {"y": x * layer.w + layer.b, "again": [params["layers"][0]], "name": 3}

    params = {"layers": [Layer(a(5), a(5, seed=1))]}
    found = f(params, x=a(5, seed=2))
    close(found["y"], a(5, seed=2) * a(5) + a(5, seed=1))
    close(found["again"][0].w, a(5))
    assert found["name"] == 3


def test_static_arguments() -> None:
    @mj.jit(static=["mode"])
    def f(x: Any, mode: str) -> Any:
        return ops.laplacian(x, mode=mode)

    for mode in ("wrap", "edge"):
        close(f(a(6, 6), mode), ops.laplacian(a(6, 6), mode=mode))


def test_a_jitted_function_in_another_is_part_of_it() -> None:
    inner = mj.jit(lambda x: np.exp(x) * 2)
    outer = mj.jit(lambda x: inner(x) + inner(x + 1))
    close(outer(a(6)), np.exp(a(6)) * 2 + np.exp(a(6) + 1) * 2)
    assert "1 kernel\n" in outer.explain(a(6))


def test_a_jitted_function_in_one_that_is_compiled_ahead_of_time() -> None:
    """It decides nothing about extents that are open."""
    inner = mj.jit(lambda x: x * 2)
    made = mj.jit(lambda x: inner(x[1:])).compile(mj.spec((None,), f32))
    for n in (1, 2, 7):
        close(made.run(a(n)), a(n)[1:] * 2)


def test_any_name_will_do() -> None:
    f = mj.jit(lambda out, t0, kernel: (out + t0).max(axis=0) + kernel * t0)
    close(f(a(5), a(5), a(5)), (a(5) + a(5)).max(0) + a(5) * a(5))


# ---- errors ----


def branches(x: Any) -> Any:
    return x if x.sum() > 0 else -x


MISTAKES: dict[str, tuple[Callable[..., Any], str, str]] = {
    "branch": (branches, "traced-value", "return x if x.sum() > 0 else -x"),
    "float": (lambda x: x * float(x[0]), "traced-value", "float(x[0])"),
    "iterate": (lambda x: sum(v for v in x), "traced-value", ""),
    "numpy": (lambda x: np.linalg.svd(x), "numpy-function", "np.linalg.svd"),
    "shapes": (lambda x: x[None, :] + np.zeros((2, 3, 4), np.float32)[:, :2, :2], "extent-mismatch", ""),
    "f64": (lambda x: x + np.zeros(3), "graph-dtype", ""),
    "index": (lambda x: x[:, 0], "too-many-indices", "x[:, 0]"),
    "bits": (lambda x: x ^ 1, "operator-types", "x ^ 1"),
    "nothing": (lambda x: 3, "nothing-traced", ""),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_its_line(name: str) -> None:
    function, slug, excerpt = MISTAKES[name]
    with pytest.raises(mj.MetaljitError) as caught:
        mj.jit(function)(a(3))
    assert caught.value.slug == slug
    assert excerpt in str(caught.value)


def test_shapes_that_do_not_go_together_at_a_later_call() -> None:
    f = mj.jit(lambda x, y: x + y)
    f(a(3), a(3))
    with pytest.raises(mj.ShapeError):
        f(a(3), a(4))


def test_a_string_is_static_or_refused() -> None:
    with pytest.raises(mj.LaunchFault, match="static"):
        mj.jit(lambda x, mode: x)(a(3), "wrap")


def test_defaults_are_what_they_are(device: str) -> None:
    """What is not passed is no argument of the trace: it may be text, or a number that Python branches on."""

    @mj.jit
    def f(x: Any, mode: str = "double", times: float = 2.0) -> Any:
        return x * times if mode == "double" and times > 1 else x

    with mj.use_device(device):
        np.testing.assert_array_equal(f(a(3)), 2 * a(3))
        np.testing.assert_array_equal(mj.vjp(f, a(3))[1](a(3))[0], 2 * a(3))
        with pytest.raises(mj.LaunchFault, match="mode"):
            f(a(3), "double")


def test_arrays_from_outside_are_inputs_of_a_traced_function_that_is_called() -> None:
    places, weights = np.array([2, 0], np.int32), a(3)

    @mj.jit
    def inner(x: Any, places: Any, weights: Any) -> Any:
        return x * weights[places + np.int32(0) * x.astype(np.int32)]

    outer = mj.jit(lambda x: inner(x, places, weights))
    np.testing.assert_array_equal(outer(a(2)), a(2) * weights[places])


@mj.kernel
def small(u: i32[N]) -> f32[N]:
    i = position()
    assert u[i] < 100, "too large"
    return f32(u[i])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_check_beside_reductions_tells_its_own_position(device: str, axis: int) -> None:
    """Rows, which one threadgroup reduces, and columns, in whose kernel the check is."""

    @mj.jit
    def f(x: Any, u: Any) -> Any:
        return (x.sum(axis=axis) * small(u)).sum()

    x, u = np.ones((90, 90), np.float32), np.arange(10, 100, dtype=np.int32)
    with mj.use_device(device):
        assert f(x, u) == 90 * u.sum()
        u[77] = 100
        with pytest.raises(mj.KernelAssertion, match=r"position \(77\) failed: too large"):
            f(x, u)
