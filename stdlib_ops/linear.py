"""Matrix products.

In: arrays. Out: arrays. They are products of traced functions: tiles of a threadgroup, floats summed in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.gather import ELEMENTS
from metaljit.stdlib_ops.operands import FLOATS, Operand, check_array, refuse


def matmul(a: Operand, b: Operand) -> Any:
    """The matrix product, [..., m, k] by [..., k, n]; stacks of matrices are broadcast.

    a, b: arrays of any dtypes that go together. One axis is a row on the left and a column on the right, and gone in the
        result. Floats are summed in f32, each element in the order of k; integers wrap.

    Returns an array of the dtype of a product of two elements. Raises TypeFault for float64 and for dtypes that do not go
    together, ShapeError for a number or for shapes that do not.
    Compare: MPSGraph `matrixMultiplication`; PyTorch `torch.matmul`; TensorFlow `tf.matmul`; NumPy `np.matmul`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.matmul(np.array([[1, 2], [3, 4]], np.float32), np.array([1, 10], np.float32)))
        [21. 43.]
    """
    _check("matmul", a, b)
    for name, x in (("a", a), ("b", b)):
        if not len(x.shape):
            refuse("matmul", f"`{name}` is a number", "multiply by it: `*`", "op-shape", mj.ShapeError)
    _check_inner("matmul", a, b)
    left, right = a.shape[:-2], b.shape[:-2]
    for k in range(1, min(len(left), len(right)) + 1):
        if left[-k] != right[-k] and 1 not in (left[-k], right[-k]):
            refuse("matmul", f"stacks of shapes {tuple(left)} and {tuple(right)} do not broadcast", "", "op-shape",
                   mj.ShapeError)  # fmt: skip
    return _matmul(a, b)


def dot(a: Operand, b: Operand) -> Any:
    """The inner product of two vectors, or the product of matrices and vectors; with a number the multiple.

    a, b: arrays with at most two axes, as `matmul` takes them; integers wrap, 16-bit floats are summed in f32.

    Raises TypeFault for float64 and for dtypes that do not go together, ShapeError for more axes, or shapes that do not fit.
    Compare: PyTorch `torch.dot`; TensorFlow `tf.tensordot`; NumPy `np.dot`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.dot(np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)))
        32.0
    """
    _check("dot", a, b)
    for name, x in (("a", a), ("b", b)):
        if len(x.shape) > 2:
            refuse("dot", f"`{name}` has {len(x.shape)} axes, and there are at most 2", "`matmul` takes stacks", "op-shape",
                   mj.ShapeError)  # fmt: skip
    if len(a.shape) and len(b.shape):
        _check_inner("dot", a, b)
    return _dot(a, b)


def outer(a: Operand, b: Operand) -> Any:
    """Each element of `a` times each of `b`: an array of shape (a.size, b.size); both are taken flat.

    Raises TypeFault for float64 and for dtypes that do not go together.
    Compare: PyTorch `torch.outer`; TensorFlow `tf.tensordot(a, b, 0)`; NumPy `np.outer`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.outer(np.array([1, 2]), np.array([3, 4, 5])))
        [[ 3  4  5]
         [ 6  8 10]]
    """
    _check("outer", a, b)
    return _outer(a, b)


def gram(x: Operand, *, normalize: bool = False) -> Any:
    """The products of the rows with one another: x xᵀ for the last two axes.

    x: array of floats [..., c, n]. normalize: divides by c n, as the Gram matrix of a picture's features is.

    Returns an array [..., c, c] of the dtype of `x`. Raises TypeFault for other dtypes, ShapeError for fewer axes.
    Compare: MPSGraph `matrixMultiplication`; PyTorch `x @ x.mT`; TensorFlow `tf.matmul(x, x, transpose_b=True)`;
    NumPy `x @ np.matrix_transpose(x)`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> print(ops.gram(np.array([[1, 2], [3, 4]], np.float32)))
        [[ 5. 11.]
         [11. 25.]]
    """
    check_array("gram", "x", x, FLOATS, "floats")
    if len(x.shape) < 2:
        refuse(
            "gram", f"`x` has shape {tuple(x.shape)}, and two axes are needed", "", "op-shape", mj.ShapeError
        )
    return _gram(x, bool(normalize))


@mj.jit
def _matmul(a: Any, b: Any) -> Any:
    return np.matmul(a, b)


@mj.jit
def _dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


@mj.jit
def _outer(a: Any, b: Any) -> Any:
    return a.reshape(-1)[:, None] * b.reshape(-1)[None, :]


@mj.jit(static=["normalize"])
def _gram(x: Any, normalize: bool) -> Any:
    found = x @ np.swapaxes(x, -1, -2)
    if not normalize:
        return found
    return (found.astype(np.float32) / (x.shape[-1] * x.shape[-2])).astype(x.dtype)


def _check(op: str, a: Any, b: Any) -> None:
    for name, x in (("a", a), ("b", b)):
        check_array(op, name, x, ELEMENTS, "numbers or bools")


def _check_inner(op: str, a: Any, b: Any) -> None:
    """Columns of the left are as many as rows of the right."""
    columns, rows = a.shape[-1], b.shape[-1 if len(b.shape) == 1 else -2]
    if columns != rows:
        shapes: Sequence[Any] = (tuple(a.shape), tuple(b.shape))
        refuse(op, f"arrays of shapes {shapes[0]} and {shapes[1]} do not fit: {columns} columns and {rows} rows",
               "transpose one: `ops.transpose(b)`", "op-shape", mj.ShapeError)  # fmt: skip
