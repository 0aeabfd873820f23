"""Stencil ops; the kernels are in stencil.mjk.

In: arrays and modes. Out: what the kernels return. Which modes there are is said here, what they mean in the language's
`border`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import metaljit as mj
from metaljit.lang import bf16, f16, f32, i8, i16, i32, i64
from metaljit.stdlib_ops.operands import Operand, axes_of, check_array, refuse

MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")
_SIGNED = (f16, bf16, f32, i8, i16, i32, i64)


def laplacian(
    x: Operand,
    *,
    mode: str | Sequence[str] = "reflect",
    value: Any = None,
    axes: int | Sequence[int] | None = None,
) -> Any:
    """The Laplacian: the sum over `axes` (all, if None) of the second differences `x[i - 1] - 2 * x[i] + x[i + 1]`.

    x: array of any shape, of floats or signed integers (unsigned ones cannot hold the result); 0-d gives 0.
    mode: what stands outside the array, one for all axes or one for each: NumPy's "constant", "edge", "reflect",
        "symmetric", "wrap", or "antiperiodic" (`x[i + L] = -x[i]`). SciPy calls "edge" nearest, "reflect" mirror and
        "symmetric" reflect.
    value: what a "constant" border holds, 0 if None.

    Returns an array of the shape and dtype of `x`. 16-bit floats are summed in 32 bits and rounded once; integers wrap.

    Raises TypeFault for other dtypes, LaunchFault for a mode, value or axis that does not exist.
    Compare MPSGraph `stencil` with weights 1, -2, 1; `scipy.ndimage.laplace`.
    """
    check_array("laplacian", "x", x, _SIGNED, "floats or signed integers (a Laplacian can be negative)")
    rank = len(x.shape)
    modes = (mode,) * rank if isinstance(mode, str) else tuple(mode)
    if len(modes) != rank:
        refuse("laplacian", f"`mode` has {len(modes)} modes, and `x` has {rank} axes")
    for m in (mode,) if isinstance(mode, str) else modes:
        if m not in MODES:
            refuse("laplacian", f"{m!r} is no border mode", "there are " + ", ".join(map(repr, MODES)))
    if value is not None and "constant" not in (mode, *modes):
        refuse("laplacian", f"`value` belongs to the mode 'constant', and the mode is {mode!r}")
    kernel = mj.stdlib.stencil.laplacian
    return kernel(x, modes, 0 if value is None else value, axes_of("laplacian", axes, rank))
