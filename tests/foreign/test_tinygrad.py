"""tinygrad's Metal kernels on the emulator, with their results compared with NumPy's. `make test-tinygrad` installs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if find_spec("tinygrad") is None:
    pytest.skip("tinygrad is not installed", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parent))

import tinygrad_on_emulator
from tinygrad import Context, Tensor, TinyJit, Variable, dtypes, nn

RNG = np.random.default_rng(7)
F = np.float32


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(F)


def integers(*shape: int, low: int = -50, high: int = 50, dtype: Any = np.int32) -> Any:
    return RNG.integers(low, high, shape).astype(dtype)


A, B, V = floats(17, 33), floats(17, 33), floats(1000)
P = np.abs(A) + F(0.1)
M, N = floats(48, 40), floats(40, 56)
X, Y = integers(9, 21), integers(9, 21, low=1)
IMAGE, WEIGHT = floats(2, 3, 11, 13), floats(4, 3, 3, 3)
Op = tuple[Callable[..., Any], Callable[..., Any] | None, tuple[Any, ...]]


def softmax(a: Any, axis: int = -1) -> Any:
    e = np.exp(a.astype(np.float64) - a.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def convolution(x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", windows, w)


def windows(x: Any, n: int) -> Any:
    h, w = x.shape[2] // n, x.shape[3] // n
    return x[:, :, : h * n, : w * n].reshape(*x.shape[:2], h, n, w, n)


OPS: dict[str, Op] = {
    "add": (lambda a, b: a + b, np.add, (A, B)),
    "sub": (lambda a, b: a - b, np.subtract, (A, B)),
    "mul": (lambda a, b: a * b, np.multiply, (A, B)),
    "div": (lambda a, b: a / b, np.divide, (A, B)),
    "pow": (lambda a, b: a**b, np.power, (P, B)),
    "maximum": (lambda a, b: a.maximum(b), np.maximum, (A, B)),
    "minimum": (lambda a, b: a.minimum(b), np.minimum, (A, B)),
    "where": (lambda a, b: (a > b).where(a, b * 2), lambda a, b: np.where(a > b, a, b * 2), (A, B)),
    "compare": (lambda a, b: (a < b) | (a >= 1), lambda a, b: (a < b) | (a >= 1), (A, B)),
    "broadcast": (lambda a, b: a + b[:1] * b[:, :1], lambda a, b: a + b[:1] * b[:, :1], (A, B)),
    "neg": (lambda a: -a, np.negative, (A,)),
    "exp": (lambda a: a.exp(), np.exp, (A,)),
    "exp2": (lambda a: a.exp2(), np.exp2, (A,)),
    "log": (lambda a: a.log(), np.log, (P,)),
    "log2": (lambda a: a.log2(), np.log2, (P,)),
    "sin": (lambda a: a.sin(), np.sin, (A * F(10),)),
    "cos": (lambda a: a.cos(), np.cos, (A * F(10),)),
    "tan": (lambda a: a.tan(), np.tan, (A / F(3),)),
    "sqrt": (lambda a: a.sqrt(), np.sqrt, (P,)),
    "rsqrt": (lambda a: a.rsqrt(), lambda a: 1 / np.sqrt(a), (P,)),
    "reciprocal": (lambda a: a.reciprocal(), lambda a: 1 / a, (P,)),
    "sigmoid": (lambda a: a.sigmoid(), lambda a: 1 / (1 + np.exp(-a)), (A,)),
    "tanh": (lambda a: a.tanh(), np.tanh, (A,)),
    "relu": (lambda a: a.relu(), lambda a: np.maximum(a, 0), (A,)),
    "gelu": (
        lambda a: a.gelu(),
        lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
        (A,),
    ),
    "abs sign": (lambda a: a.abs() + a.sign(), lambda a: np.abs(a) + np.sign(a), (A,)),
    "floor ceil trunc": (
        lambda a: a.floor() + 10 * a.ceil() + 100 * a.trunc(),
        lambda a: np.floor(a) + 10 * np.ceil(a) + 100 * np.trunc(a),
        (A * F(5),),
    ),
    "round": (lambda a: a.round(), np.round, (np.round(A * F(4)) / F(2),)),
    "erf": (lambda a: a.erf(), None, (A,)),
    "clip": (lambda a: a.clip(-0.5, 0.75), lambda a: np.clip(a, -0.5, 0.75), (A,)),
    "sum": (lambda a: a.sum(), np.sum, (V,)),
    "sum of rows": (lambda a: a.sum(1), lambda a: a.sum(1), (A,)),
    "sum of columns": (lambda a: a.sum(0), lambda a: a.sum(0), (A,)),
    "sum of many": (lambda a: a.sum(), np.sum, (floats(300, 300),)),
    "mean var": (lambda a: a.mean(1) + a.var(1), lambda a: a.mean(1) + a.var(1, ddof=1), (A,)),
    "max": (lambda a: a.max(1), lambda a: a.max(1), (A,)),
    "min": (lambda a: a.min(0), lambda a: a.min(0), (A,)),
    "prod": (lambda a: a.prod(1), lambda a: a.prod(1), (A[:, :7],)),
    "argmax": (lambda a: a.argmax(1), lambda a: a.argmax(1), (A,)),
    "argmin": (lambda a: a.argmin(), lambda a: a.argmin(), (V,)),
    "all any": (lambda a: (a > -1).all(1) | (a > 2).any(1), lambda a: (a > -1).all(1) | (a > 2).any(1), (A,)),
    "cumsum": (lambda a: a.cumsum(1), lambda a: a.cumsum(1), (A,)),
    "long cumsum": (lambda a: a.cumsum(), np.cumsum, (integers(2000),)),
    "cummax": (lambda a: a.cummax(1)[0], lambda a: np.maximum.accumulate(a, 1), (A,)),
    "softmax": (lambda a: a.softmax(), softmax, (A,)),
    "log softmax": (lambda a: a.log_softmax(), lambda a: np.log(softmax(a)), (A,)),
    "logsumexp": (lambda a: a.logsumexp(1), lambda a: np.log(np.exp(a.astype(float)).sum(1)), (A,)),
    "matmul": (lambda a, b: a @ b, np.matmul, (M, N)),
    "matmul of eights": (lambda a, b: a @ b, np.matmul, (floats(64, 64), floats(64, 64))),
    "matmul of halves": (
        lambda a, b: a.half() @ b.half(),
        lambda a, b: a.astype(np.float16).astype(F) @ b.astype(np.float16).astype(F),
        (floats(32, 32) / F(4), floats(32, 32) / F(4)),
    ),
    "batched matmul": (lambda a, b: a @ b, np.matmul, (floats(3, 9, 7), floats(3, 7, 5))),
    "vector matrix": (lambda a, b: a[0] @ b, lambda a, b: a[0] @ b, (M, N)),
    "dot": (lambda a, b: a.dot(b), np.dot, (V, V[::-1].copy())),
    "einsum": (
        lambda a, b: Tensor.einsum("ij,kj->ki", a, b),
        lambda a, b: np.einsum("ij,kj->ki", a, b),
        (A, B),
    ),
    "conv2d": (lambda x, w: x.conv2d(w), convolution, (IMAGE, WEIGHT)),
    "conv2d stride": (
        lambda x, w: x.conv2d(w, stride=2, padding=1),
        lambda x, w: convolution(x, w, 2, 1),
        (IMAGE, WEIGHT),
    ),
    "max pool": (lambda x: x.max_pool2d(3), lambda x: windows(x, 3).max((3, 5)), (IMAGE,)),
    "avg pool": (lambda x: x.avg_pool2d(2), lambda x: windows(x, 2).mean((3, 5)), (IMAGE,)),
    "layernorm": (
        lambda a: a.layernorm(),
        lambda a: (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5),
        (A,),
    ),
    "transpose": (lambda a: a.T.contiguous(), lambda a: a.T, (A,)),
    "permute": (
        lambda a: a.permute(2, 0, 3, 1).contiguous(),
        lambda a: a.transpose(2, 0, 3, 1),
        (IMAGE,),
    ),
    "reshape flip": (
        lambda a: a.reshape(33, 17).flip(1).contiguous(),
        lambda a: a.reshape(33, 17)[:, ::-1],
        (A,),
    ),
    "slice": (lambda a: a[2:-3, 1::2].contiguous(), lambda a: a[2:-3, 1::2], (A,)),
    "pad": (lambda a: a.pad(((1, 2), (3, 0))), lambda a: np.pad(a, ((1, 2), (3, 0))), (A,)),
    "cat stack": (
        lambda a, b: a.cat(b, dim=1).sum(1).stack(b.sum(1)),
        lambda a, b: np.stack([np.concatenate([a, b], 1).sum(1), b.sum(1)]),
        (A, B),
    ),
    "repeat": (lambda a: a.repeat(2, 3), lambda a: np.tile(a, (2, 3)), (A,)),
    "roll": (lambda a: a.roll(5, 1), lambda a: np.roll(a, 5, 1), (A,)),
    "tril": (lambda a: a.tril(1) + a.triu(), lambda a: np.tril(a, 1) + np.triu(a), (A,)),
    "gather": (
        lambda a, i: a.gather(1, i),
        lambda a, i: np.take_along_axis(a, i, 1),
        (A, integers(17, 5, low=0, high=33)),
    ),
    "index": (lambda a, i: a[i], lambda a, i: a[i], (A, integers(6, low=0, high=17))),
    "scatter": (
        lambda a, i: Tensor.zeros(17, 33).contiguous().scatter(1, i, a),
        lambda a, i: scattered(a, i),
        (A, np.stack([RNG.permutation(33) for _ in range(17)]).astype(np.int32)),
    ),
    "one hot": (lambda i: i.one_hot(9), lambda i: np.eye(9)[i], (integers(7, low=0, high=9),)),
    "sort": (lambda a: a.sort(1)[0], lambda a: np.sort(a, 1), (A,)),
    "argsort": (lambda a: a.argsort(), lambda a: np.argsort(a, kind="stable"), (V[:100],)),
    "topk": (lambda a: a.topk(5)[0], lambda a: np.sort(a)[:, :-6:-1], (A,)),
    "arange": (lambda: Tensor.arange(3, 300, 7), lambda: np.arange(3, 300, 7), ()),
    "linspace": (lambda: Tensor.linspace(0, 1, 77), lambda: np.linspace(0, 1, 77), ()),
    "integer division": (lambda a, b: a // b, np.floor_divide, (X, Y)),
    "remainder": (lambda a, b: a % b, np.mod, (X, Y)),
    "bits": (lambda a, b: (a & b) ^ (a | 5), lambda a, b: (a & b) ^ (a | 5), (X, Y)),
    "shifts": (
        lambda a: (a << 3) + (a >> 2),
        lambda a: (a << 3) + (a >> 2),
        (integers(99, low=0, dtype=np.uint32),),
    ),
    "invert": (lambda a: ~a, np.invert, (X,)),
    "i64": (lambda a: a * a + 1, lambda a: a * a + 1, (integers(40, high=2**31, dtype=np.int64),)),
    "u8": (lambda a: a + a, np.add, (integers(50, low=0, high=256, dtype=np.uint8),) * 1),
    "i16": (lambda a: a * a, np.multiply, (integers(50, high=300, dtype=np.int16),) * 1),
    "casts": (
        lambda a: a.cast(dtypes.int8).cast(dtypes.float32) + a.cast(dtypes.uint16).float(),
        lambda a: a.astype(np.int8).astype(F) + a.astype(np.uint16).astype(F),
        (np.abs(A * F(20)),),
    ),
    "halves": (
        lambda a, b: (a.half() * b.half() + 1).float(),
        lambda a, b: (a.astype(np.float16) * b.astype(np.float16) + np.float16(1)).astype(F),
        (A, B),
    ),
    "bfloats": (lambda a: a.bfloat16().float(), None, (A,)),
    "bitcast": (lambda a: a.bitcast(dtypes.int32), lambda a: a.view(np.int32), (A,)),
    "bools": (lambda a, b: (a > 0) & (b > 0), lambda a, b: (a > 0) & (b > 0), (A, B)),
    "interpolate": (
        lambda a: a.interpolate((22, 26), mode="nearest"),
        lambda a: a.repeat(2, 2).repeat(2, 3),
        (IMAGE,),
    ),
    "masked select": (lambda a: a.masked_fill(a > 0, 7), lambda a: np.where(a > 0, 7, a), (A,)),
    "cross entropy": (
        lambda a, i: a.sparse_categorical_crossentropy(i),
        lambda a, i: -np.log(softmax(a))[np.arange(17), i].mean(),
        (A, integers(17, low=0, high=33)),
    ),
    "attention": (
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / 4) @ v,
        (floats(2, 8, 16), floats(2, 8, 16), floats(2, 8, 16)),
    ),
    "qr": (lambda a: (lambda q, r: q @ r)(*a.qr()), lambda a: a, (floats(6, 4),)),
}


def scattered(a: Any, i: Any) -> Any:
    out = np.zeros_like(a)
    np.put_along_axis(out, i, a, 1)
    return out


def expected(name: str, reference: Callable[..., Any] | None, arrays: tuple[Any, ...]) -> Any:
    if name == "erf":
        import math

        return np.vectorize(math.erf)(arrays[0])
    if name == "bfloats":
        import ml_dtypes

        return arrays[0].astype(ml_dtypes.bfloat16).astype(F)
    assert reference is not None
    if name in ("u8", "i16"):
        return reference(arrays[0], arrays[0])
    with np.errstate(all="ignore"):
        return reference(*arrays)


@pytest.mark.parametrize("name", OPS)
def test_an_operation(name: str) -> None:
    operation, reference, arrays = OPS[name]
    result = operation(*(Tensor(a) for a in arrays)).numpy()
    wanted = np.asarray(expected(name, reference, arrays))
    assert result.shape == wanted.shape
    tolerance = 2e-3 if "hal" in name else 2e-5
    if np.issubdtype(result.dtype, np.floating):
        np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(result, wanted)


def test_a_gradient() -> None:
    x, w = Tensor(A), Tensor(floats(33, 5))
    by_x, by_w = (x @ w).tanh().sum().gradient(x, w)
    inner = 1 - np.tanh(A @ w.numpy()) ** 2
    np.testing.assert_allclose(by_w.numpy(), A.T @ inner, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_x.numpy(), inner @ w.numpy().T, rtol=1e-4, atol=1e-4)


def test_random_numbers() -> None:
    Tensor.manual_seed(3)
    numbers = Tensor.rand(4000).numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(numbers, Tensor.rand(4000).numpy())
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    assert abs(numbers.mean() - 0.5) < 0.03
    normal = Tensor.randn(4000).numpy()
    assert abs(normal.mean()) < 0.1
    assert abs(normal.std() - 1) < 0.1


def test_a_network_learns() -> None:
    Tensor.manual_seed(1)
    with Context(TRAINING=1):
        layers = nn.Linear(4, 16), nn.Linear(16, 1)
        optimiser = nn.optim.Adam(nn.state.get_parameters(list(layers)), lr=0.1)
        x = Tensor(floats(64, 4))
        y = (x * x).sum(1, keepdim=True)
        losses = []
        for _ in range(12):
            optimiser.zero_grad()
            loss = ((layers[1](layers[0](x).relu()) - y) ** 2).mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_sizes_that_are_known_at_the_launch() -> None:
    @TinyJit  # type: ignore[untyped-decorator]
    def doubled(a: Tensor) -> Tensor:
        return (a * 2 + 1).realize()

    for n in (3, 5, 7, 5):
        size = Variable("n", 1, 10).bind(n)
        x = Tensor(np.arange(10, dtype=F)).contiguous()
        out = doubled(x[:size])
        np.testing.assert_array_equal(out[:n].numpy(), np.arange(n, dtype=F) * 2 + 1)


def test_the_kernels_were_metals() -> None:
    texts = list(tinygrad_on_emulator.sources.values())
    if len(texts) < 50:
        pytest.skip("the other tests did not run")
    assert all("kernel void" in text for text in texts)
    assert any("simdgroup_multiply_accumulate" in text for text in texts)
    assert any("threadgroup_barrier" in text for text in texts)
