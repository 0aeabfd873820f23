"""Matrix products as ops; the products themselves are tested in tests/graph/test_matmul.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from samples import assert_close, assert_same, laid_out, sample

import metaljit as mj
from metaljit import ops
from metaljit.stdlib_ops.reference import linear as reference


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_products(device: str, dtype: Any) -> None:
    for left, right in (
        ((5, 7), (7, 3)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((7,), (7, 3)),
        ((5, 7), (7,)),
        ((3,), (3,)),
    ):
        a, b = laid_out(sample(dtype, left, 1, False), "strided"), sample(dtype, right, 2, False)
        a, b = (a % 8, b % 8) if dtype == np.float16 else (a, b)
        assert_close(ops.matmul(a, b), np.asarray(reference.matmul(a, b)), np.asarray(1e5))
        if max(len(left), len(right)) < 3:
            assert_close(ops.dot(a, b), np.asarray(reference.matmul(a, b)), np.asarray(1e5))


def test_outer_and_gram(device: str) -> None:
    x = sample(np.float32, (2, 3, 4), 1, False) / 50
    assert_same(ops.outer(x[0], x[1]), np.outer(x[0], x[1]))
    want = reference.matmul(x, np.swapaxes(x, 1, 2))
    np.testing.assert_allclose(ops.gram(x), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ops.gram(x, normalize=True), want / 12, rtol=1e-5, atol=1e-5)
    assert isinstance(ops.gram(mj.asarray(x)), mj.Array)
    found = mj.grad(lambda x: ops.sum(ops.gram(x)))(x)
    np.testing.assert_allclose(
        found, 2 * np.broadcast_to(x.sum(1, keepdims=True), x.shape), rtol=1e-4, atol=1e-4
    )


X = np.zeros((3, 4), np.float32)
LIST: Any = [1]


@pytest.mark.parametrize(
    ("call", "slug", "words"),
    [
        (lambda: ops.matmul(X, X), "op-shape", "4 columns and 3 rows"),
        (lambda: ops.matmul(X, X[0, 0]), "op-shape", "`b` is a number"),
        (lambda: ops.matmul(X[None].repeat(2, 0), X.T[None].repeat(3, 0)), "op-shape", "(2,) and (3,)"),
        (lambda: ops.matmul(X.astype(np.float64), X.T), "no-f64", "float64"),
        (lambda: ops.dot(X[None], X), "op-shape", "3 axes"),
        (lambda: ops.dot(X[0], X[0, :3]), "op-shape", "4 columns and 3 rows"),
        (lambda: ops.outer(LIST, X), "op-dtype", "list"),
        (lambda: ops.gram(X[0]), "op-shape", "two axes"),
        (lambda: ops.gram(X > 0), "op-dtype", "bool"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        call()
    assert caught.value.slug == slug
    assert words in str(caught.value)
