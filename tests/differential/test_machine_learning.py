"""Machine learning programs: layers, losses, attention, trees, embeddings, quantisation, optimisers."""

# An extent may be a parameter: `f32[N // size]`. Linters and type checkers do not know that.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined,no-untyped-def,operator"

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from differential import Program, Programs

import metaljit as mj
from metaljit.lang import (
    argmax,
    bf16,
    border,
    const,
    erf,
    exp,
    f16,
    f32,
    i8,
    i32,
    log,
    position,
    rint,
    saturate,
    tanh,
    u8,
    wide,
)
from metaljit.testing import Tolerance

programs = Programs()
B, N, M, K, C, H, W = mj.dims("B N M K C H W")
S = mj.dims("*S")
P = mj.dims("*P")
T: Any = mj.dtypes("float")
LOOSE = Tolerance(1e-4, 1e-5)


@mj.kernel
def softmax(x: f32[*P, N]) -> f32[*P, N]:
    *p, i = position()
    top = max(x[*p, k] for k in range(N))
    return exp(x[*p, i] - top) / sum(exp(x[*p, k] - top) for k in range(N))


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True).astype(np.float64))
    return e / e.sum(-1, keepdims=True)


programs.add(
    softmax,
    _softmax,
    lambda r: [(r.floats(7, low=-9, high=9),), (r.floats(3, 4, 5),), (r.floats(0, 3),)],
    tolerance=LOOSE,
)


@mj.function
def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


@mj.kernel
def dense(x: f32[B, K], w: f32[N, K], bias: f32[N], activation: const[str] = "none") -> f32[B, N]:
    b, j = position()
    y = bias[j] + sum(x[b, k] * w[j, k] for k in range(K))
    if activation == "relu":
        return max(y, 0)
    elif activation == "gelu":
        return gelu(y)
    elif activation == "tanh":
        return tanh(y)
    return y


def _dense(x: Any, w: Any, b: Any, activation: str = "none") -> Any:
    y = x.astype(np.float64) @ w.T + b
    if activation == "gelu":
        return np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(y)
    return {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "none": lambda v: v}[activation](y)


programs.add(
    dense,
    _dense,
    lambda r: [
        (r.floats(3, 5), r.floats(4, 5), r.floats(4), *a) for a in ((), ("relu",), ("gelu",), ("tanh",))
    ],
    tolerance=LOOSE,
)


@mj.kernel
def attention(q: f32[N, K], k: f32[M, K], v: f32[M, C], causal: const[bool] = False) -> f32[N, C]:
    i, c = position()
    scale = 1 / math.sqrt(float(K))
    top = -math.inf
    total = 0.0
    acc = 0.0
    for j in range(M):
        if causal and j > i:
            break
        score = scale * sum(q[i, d] * k[j, d] for d in range(K))
        new = max(top, score)
        shrink = exp(top - new)
        total = total * shrink + exp(score - new)
        acc = acc * shrink + exp(score - new) * v[j, c]
        top = new
    return acc / total


def _attention(q: Any, k: Any, v: Any, causal: bool = False) -> Any:
    s = q.astype(np.float64) @ k.T / math.sqrt(q.shape[1])
    if causal:
        s = np.where(np.tril(np.ones_like(s)) > 0, s, -np.inf)
    return _softmax(s) @ v


programs.add(
    attention,
    _attention,
    lambda r: [
        (r.floats(4, 3), r.floats(6, 3), r.floats(6, 2)),
        (r.floats(5, 3), r.floats(5, 3), r.floats(5, 2), True),
    ],
    tolerance=LOOSE,
)


@mj.kernel
def conv2d(
    x: f32[C, H, W], w: f32[N, C, 3, 3], stride: const[int] = 1
) -> f32[N, (H - 1) // stride + 1, (W - 1) // stride + 1]:
    n, y, z = position()
    x = border(x, "constant")
    return sum(
        x[c, y * stride + a - 1, z * stride + b - 1] * w[n, c, a, b]
        for c in range(C)
        for a in range(3)
        for b in range(3)
    )


def _conv2d(x: Any, w: Any, stride: int = 1) -> Any:
    p = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("cyxab,ncab->nyx", windows, w)


programs.add(
    conv2d,
    _conv2d,
    lambda r: [(r.floats(2, 5, 6), r.floats(3, 2, 3, 3)), (r.floats(2, 5, 6), r.floats(1, 2, 3, 3), 2)],
    tolerance=LOOSE,
)


@mj.kernel
def max_pool(
    x: f32[H, W], size: const[int] = 2
) -> tuple[f32[H // size, W // size], i32[H // size, W // size]]:
    y, z = position()
    best = -math.inf
    where = -1
    for a in range(size):
        for b in range(size):
            v = x[y * size + a, z * size + b]
            if v > best or v != v:
                best = v
                where = (y * size + a) * W + z * size + b
    return best, where


def _max_pool(x: Any) -> Any:
    h, w = x.shape[0] // 2, x.shape[1] // 2
    blocks = x[: 2 * h, : 2 * w].reshape(h, 2, w, 2).transpose(0, 2, 1, 3).reshape(h, w, 4)
    k = blocks.argmax(-1)
    y, z = np.mgrid[:h, :w]
    return blocks.max(-1), ((2 * y + k // 2) * x.shape[1] + 2 * z + k % 2).astype(np.int32)


programs.add(max_pool, _max_pool, lambda r: [(r.floats(5, 7),), (r.floats(4, 4),)])


@mj.kernel
def cross_entropy(logits: f32[B, C], label: i32[B]) -> f32[B]:
    b = position()
    top = max(logits[b, c] for c in range(C))
    return log(sum(exp(logits[b, c] - top) for c in range(C))) + top - logits[b, label[b]]


programs.add(
    cross_entropy,
    lambda x, y: -np.log(_softmax(x)[np.arange(len(y)), y]),
    lambda r: (r.floats(6, 5, low=-5, high=5), r.ints(6, high=5)),
    tolerance=LOOSE,
)


@mj.kernel
def accuracy(logits: f32[B, C], label: u8[B]) -> f32:
    return sum(argmax(logits[b, c] for c in range(C)) == label[b] for b in range(B)) / B


programs.add(
    accuracy,
    lambda x, y: np.mean(x.argmax(1) == y),
    lambda r: (r.floats(20, 4), r.ints(20, high=4, dtype=np.uint8)),
)


@mj.kernel
def embed(table: T[N, K], ids: i32[*S]) -> T[*S, K]:
    *s, k = position()
    return table[ids[*s], k]


def _embed(t: Any, ids: Any) -> Any:
    inside = (ids >= 0) & (ids < len(t))
    return np.where(inside[..., None], t[np.where(inside, ids, 0)], np.zeros((), t.dtype))


programs.add(
    embed,
    _embed,
    lambda r: [
        (r.floats(5, 3), r.ints(4, low=-2, high=7)),
        (r.floats(5, 3, dtype=np.float16), r.ints(2, 2, high=5)),
        (r.floats(5, 3, dtype=ml_dtypes.bfloat16), np.array(3, np.int32)),
    ],
)


@mj.kernel
def rms_norm(x: T[B, N], gain: T[N]) -> T[B, N]:
    b, i = position()
    acc = wide(T)(0)
    for k in range(N):
        v = wide(T)(x[b, k])
        acc += v * v
    return T(x[b, i] / np.sqrt(acc / N + 1e-6) * gain[i])


def _rms(x: Any, g: Any) -> Any:
    v = x.astype(np.float64)
    return v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-6) * g.astype(np.float64)


programs.add(
    rms_norm,
    _rms,
    lambda r: [
        (r.floats(3, 9, dtype=d), r.floats(9, dtype=d)) for d in (np.float32, np.float16, ml_dtypes.bfloat16)
    ],
)


@mj.kernel
def quantise(x: f32[N], scale: f32, zero: i32) -> i8[N]:
    i = position()
    return saturate(i8, i32(rint(x[i] / scale)) + zero)


programs.add(
    quantise,
    lambda x, s, z: np.clip(np.rint(x / np.float32(s)) + z, -128, 127).astype(np.int8),
    lambda r: (r.floats(40, low=-9, high=9), 0.05, 3),
)


@mj.kernel
def int8_matmul(a: i8[M, K], b: i8[K, N], scale: f32) -> f32[M, N]:
    i, j = position()
    return sum(i32(a[i, k]) * b[k, j] for k in range(K)) * scale


programs.add(
    int8_matmul,
    lambda a, b, s: (a.astype(int) @ b.astype(int)) * s,
    lambda r: (r.bits(3, 40, dtype=np.int8), r.bits(40, 2, dtype=np.int8), 0.125),
)


@mj.kernel
def adam(
    p: f32[*S], g: f32[*S], m: f32[*S], v: f32[*S], step: i32, rate: f32 = 1e-3
) -> tuple[f32[*S], f32[*S], f32[*S]]:
    i = position()
    m1 = 0.9 * m[i] + 0.1 * g[i]
    v1 = 0.999 * v[i] + 0.001 * g[i] ** 2
    scaled = m1 / (1 - 0.9**step) / (np.sqrt(v1 / (1 - 0.999**step)) + 1e-8)
    return p[i] - rate * scaled, m1, v1


def _adam(p: Any, g: Any, m: Any, v: Any, step: int) -> Any:
    g = g.astype(np.float64)
    m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return p - 1e-3 * (m1 / (1 - 0.9**step)) / (np.sqrt(v1 / (1 - 0.999**step)) + 1e-8), m1, v1


programs.add(
    adam,
    _adam,
    lambda r: (r.floats(3, 4), r.floats(3, 4), r.floats(3, 4), r.floats(3, 4, low=0), 3),
    tolerance=Tolerance(1e-4, 1e-5),
)


@mj.kernel
def decision_tree(x: f32[B, K], feature: i32[N], threshold: f32[N], left: i32[N], right: i32[N]) -> i32[B]:
    """A leaf has feature −1, and its class in `left`."""
    b = position()
    node = 0
    while feature[node] >= 0:
        if x[b, feature[node]] < threshold[node]:
            node = left[node]
        else:
            node = right[node]
    return left[node]


TREE = (
    np.array([0, 1, -1, -1, -1], np.int32),
    np.array([0.2, -0.5, 0, 0, 0], np.float32),
    np.array([1, 3, 7, 5, 6], np.int32),
    np.array([2, 4, 0, 0, 0], np.int32),
)


def _tree(x: Any, *tree: Any) -> Any:
    return np.where(x[:, 0] < 0.2, np.where(x[:, 1] < -0.5, 5, 6), 7).astype(np.int32)


programs.add(decision_tree, _tree, lambda r: (r.floats(15, 2), *TREE))


@mj.kernel
def nearest_centre(x: f32[N, K], centre: f32[M, K]) -> i32[N]:
    i = position()
    return mj.lang.argmin(sum((x[i, d] - centre[j, d]) ** 2 for d in range(K)) for j in range(M))


programs.add(
    nearest_centre,
    lambda x, c: ((x[:, None].astype(np.float64) - c) ** 2).sum(-1).argmin(1).astype(np.int32),
    lambda r: (r.floats(12, 3), r.floats(5, 3)),
)


@mj.kernel
def lstm_gate(x: f16[N], h: f16[N], w: f32, u: f32) -> f16[N]:
    i = position()
    return f16(1 / (1 + exp(-(w * x[i] + u * h[i]))))


programs.add(
    lstm_gate,
    lambda x, h, w, u: 1 / (1 + np.exp(-(w * x.astype(np.float64) + u * h))),
    lambda r: (r.floats(9, dtype=np.float16), r.floats(9, dtype=np.float16), 0.5, -1.5),
)


@mj.kernel
def dropout(x: f32[*S], keep: u8[*S], rate: f32) -> f32[*S]:
    p = position()
    return x[p] / (1 - rate) if keep[p] else 0.0


programs.add(
    dropout,
    lambda x, k, rate: np.where(k > 0, x / (1 - rate), 0),
    lambda r: (r.floats(4, 5), r.ints(4, 5, high=2, dtype=np.uint8), 0.25),
)


@mj.kernel
def bf16_scale(x: bf16[N], s: bf16) -> bf16[N]:
    i = position()
    return x[i] * s + 1


programs.add(
    bf16_scale,
    lambda x, s: x * ml_dtypes.bfloat16(s) + ml_dtypes.bfloat16(1),
    lambda r: (r.floats(15, dtype=ml_dtypes.bfloat16), 1.5),
)


@mj.kernel
def one_hot(label: u8[N], classes: i32) -> f32[N, classes]:
    i, c = position()
    return label[i] == c


programs.add(
    one_hot,
    lambda y, c: (y[:, None] == np.arange(c)).astype(np.float32),
    lambda r: (r.ints(6, high=5, dtype=np.uint8), 4),
)


@mj.kernel
def top2(x: f32[B, C]) -> tuple[f32[B], f32[B]]:
    b = position()
    first, second = -math.inf, -math.inf
    for c in range(C):
        v = x[b, c]
        if v > first:
            first, second = v, first
        elif v > second:
            second = v
    return first, second


programs.add(top2, lambda x: tuple(np.sort(x, 1)[:, ::-1][:, :2].T), lambda r: (r.floats(7, 6),))


@programs.parametrize
def test_machine_learning(program: Program, runner: str) -> None:
    program.check(runner)
