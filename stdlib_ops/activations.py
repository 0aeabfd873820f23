"""Activations of neural networks; the kernels are in activations.mjk.

In: an array of floats. Out: an array of its shape and dtype.
"""

from __future__ import annotations

from typing import Any, Literal

import metaljit as mj
from metaljit.stdlib_ops.operands import FLOATS, NUMBERS, Operand, check_array, positive, refuse


def relu(x: Operand) -> Any:
    """`x` where it is positive, else 0. The derivative at 0 is 0, NaN stays NaN.

    x: array of any number dtype and shape.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for bool and float64.
    Compare: MPSGraph `reLU`; PyTorch `F.relu`; TensorFlow `tf.nn.relu`; NumPy `np.maximum(x, 0)`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.relu(np.array([-1, 0, 2], np.float32))
        array([0., 0., 2.], dtype=float32)
    """
    check_array("relu", "x", x, NUMBERS, "numbers")
    return mj.stdlib.activations.relu(x)


def sigmoid(x: Operand) -> Any:
    """The logistic function `1 / (1 + exp(-x))`, accurate where it is near 0, and so is its derivative.

    x: array of float16, bfloat16 or float32, of any shape.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes.
    Compare: MPSGraph `sigmoid`; PyTorch `torch.sigmoid`; TensorFlow `tf.math.sigmoid`; SciPy `special.expit`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.sigmoid(np.array([-1e4, 0, 1e4], np.float32))
        array([0. , 0.5, 1. ], dtype=float32)
    """
    check_array("sigmoid", "x", x, FLOATS, "floats")
    return mj.stdlib.activations.sigmoid(x)


def silu(x: Operand) -> Any:
    """`x * sigmoid(x)`, also called swish; NaN at -inf, as in PyTorch.

    x: array of float16, bfloat16 or float32, of any shape.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes.
    After Elfwing, Uchibe, Doya, Sigmoid-Weighted Linear Units, 2017.
    Compare: PyTorch `F.silu`; TensorFlow `tf.nn.silu`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.silu(np.array([-1, 0, 1], np.float32)).round(4)
        array([-0.2689,  0.    ,  0.7311], dtype=float32)
    """
    check_array("silu", "x", x, FLOATS, "floats")
    return mj.stdlib.activations.silu(x)


def softplus(x: Operand, *, beta: float = 1.0) -> Any:
    """`log(1 + exp(beta * x)) / beta`, a smooth `relu`; without overflow, so there is no threshold to choose.

    x: array of float16, bfloat16 or float32, of any shape.
    beta: how sharp the bend is; a positive number.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes, LaunchFault for a `beta` that is not positive.
    Compare: PyTorch `F.softplus`; TensorFlow `tf.math.softplus`; NumPy `np.logaddexp(x, 0)`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.softplus(np.array([-100, 0, 100], np.float32)).round(4)
        array([  0.    ,   0.6931, 100.    ], dtype=float32)
    """
    check_array("softplus", "x", x, FLOATS, "floats")
    return mj.stdlib.activations.softplus(x, positive("softplus", "beta", beta))


def gelu(x: Operand, *, approximate: Literal["none", "tanh"] = "none") -> Any:
    """`x` times the probability that a normal variable is less than `x`; NaN at -inf, as in PyTorch.

    x: array of float16, bfloat16 or float32, of any shape.
    approximate: "none" is `0.5 * x * erfc(-x / sqrt(2))`, accurate where it is near 0; "tanh" is
        `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes, LaunchFault for another approximation.
    After Hendrycks, Gimpel, Gaussian Error Linear Units, 2016.
    Compare: PyTorch `F.gelu`; TensorFlow `tf.nn.gelu`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.gelu(np.array([-1, 0, 1], np.float32)).round(4)
        array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    check_array("gelu", "x", x, FLOATS, "floats")
    if approximate not in ("none", "tanh"):
        refuse("gelu", f"`approximate` is 'none' or 'tanh', not {approximate!r}")
    kernels = mj.stdlib.activations
    return kernels.gelu(x) if approximate == "none" else kernels.gelu_tanh(x)


def tanh(x: Operand) -> Any:
    """The hyperbolic tangent.

    x: array of float16, bfloat16 or float32, of any shape.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes.
    Compare: MPSGraph `tanh`; PyTorch `torch.tanh`; TensorFlow `tf.math.tanh`; NumPy `np.tanh`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.tanh(np.array([-1e4, 0, 1e4], np.float32))
        array([-1.,  0.,  1.], dtype=float32)
    """
    check_array("tanh", "x", x, FLOATS, "floats")
    return mj.stdlib.activations.tanh_(x)


def erf(x: Operand) -> Any:
    """The error function `2 / sqrt(pi) * ∫ exp(-t²) dt` from 0 to `x`.

    x: array of float16, bfloat16 or float32, of any shape.

    Returns an array of the shape and dtype of `x`.
    Raises TypeFault for other dtypes.
    Compare: MPSGraph `erf`; PyTorch `torch.erf`; TensorFlow `tf.math.erf`; SciPy `special.erf`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> ops.erf(np.array([-1, 0, 1], np.float32)).round(4)
        array([-0.8427,  0.    ,  0.8427], dtype=float32)
    """
    check_array("erf", "x", x, FLOATS, "floats")
    return mj.stdlib.activations.erf_(x)
