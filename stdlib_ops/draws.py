"""What is drawn from a state of the generator, and what distributions make of it.

In: a state, a shape, parameters. Out: words and normal numbers, from kernels that give four at a time; in a trace from those
that give one an element, so that they are part of the kernel that uses them. Then what a distribution makes of them, element
by element. The bits are the same on all ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, isfinite, prod, sqrt
from operator import index
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.graph.context import current_trace
from metaljit.lang import bf16, f16, f32
from metaljit.stdlib_ops.operands import Operand, check_array, is_traced, refuse, viewed, whole
from metaljit.stdlib_ops.seeds import check_state

FLOATS = (f32, f16, bf16)
_MANTISSAS = {"float32": 23, "float16": 10, "bfloat16": 7}
_WORD = 4  # bytes


@dataclass(frozen=True)
class Draw:
    """Values that are drawn from a state: `count` of them, of shape `shape`. Extents of a trace may be among the shape."""

    op: str
    state: Any
    shape: tuple[Any, ...]
    count: Any

    def words(self) -> Any:
        """A word for each value."""
        if current_trace() is None:
            return self._first(mj.stdlib.random.blocks(self.state, self._groups(4)))
        return mj.stdlib.random.words(self.state, self.count).reshape(self.shape)

    def normals(self) -> Any:
        """A normal number for each value."""
        if current_trace() is None:
            return self.by_four(mj.stdlib.random.normals4, 0.0, 1.0)
        return mj.stdlib.random.normals(self.state, self.count).reshape(self.shape)

    def by_four(self, kernel: Any, *numbers: float) -> Any:
        """The values of a kernel that gives four for each element."""
        return self._first(kernel(self.state, self._groups(4), *numbers))

    def integers(self, kind: np.dtype[Any]) -> Any:
        """Random bits of an integer type."""
        if current_trace() is None:
            blocks = mj.stdlib.random.blocks(self.state, self._groups(16 // kind.itemsize))
            return viewed(blocks, lambda w: w.reshape(-1).view(kind)[: self.count].reshape(self.shape))
        if kind.itemsize == _WORD:
            return self.words().astype(kind)
        words = mj.stdlib.random.words(self.state, 2 * self.count).reshape((*self.shape, 2)).astype(np.uint64)
        return (words[..., 0] | words[..., 1] << 32).astype(kind)

    def parameter(self, name: str, value: Any, kind: np.dtype[Any]) -> Any:
        """A parameter of the distribution: a number of the values' type, or an array that broadcasts to their shape."""
        if isinstance(value, int | float | np.generic):
            with np.errstate(over="ignore"):
                found = kind.type(float(value))
            if isfinite(value) and not isfinite(float(found)):
                refuse(self.op, f"`{name}` is {value}, which {kind.name} does not hold")
            return found
        check_array(self.op, name, value, FLOATS, "a number, or a float array")
        given = tuple(value.shape)
        own = self.shape[len(self.shape) - len(given) :]
        if len(given) > len(self.shape) or any(n != 1 and n != m for n, m in zip(given, own, strict=True)):
            refuse(self.op, f"`{name}` of shape {given} does not broadcast to {self.shape}",
                   slug="op-shape", error=mj.ShapeError)  # fmt: skip
        return value

    def is_plain(self, kind: np.dtype[Any], *numbers: Any) -> bool:
        """Whether a kernel of four float32 values at a time can do all of it."""
        return (
            current_trace() is None and kind == np.float32 and all(isinstance(n, np.float32) for n in numbers)
        )

    def returned(self, values: Any) -> tuple[Any, Any]:
        return values, moved(self.state, self.count)

    def _groups(self, size: int) -> Any:
        return (self.count + size - 1) // size

    def _first(self, groups: Any) -> Any:
        """The values, of groups of four."""
        if current_trace() is None:
            return viewed(groups, lambda v: v.reshape(-1)[: self.count].reshape(self.shape))
        return groups.reshape(-1)[: self.count].reshape(self.shape)


def draw(op: str, state: Operand, shape: Any) -> Draw:
    check_state(op, state)
    given = shape if isinstance(shape, Sequence) else (shape,)
    extents = tuple(n if is_extent(n) else whole(op, "shape", n, 0) for n in given)
    return Draw(op, entered(state), extents, prod(extents))


def is_extent(n: Any) -> bool:
    """Whether a number is an extent of a trace."""
    return hasattr(n, "extent")


def any_whole(op: str, name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        refuse(op, f"`{name}` takes whole numbers and got {value!r}")


def entered(x: Any) -> Any:
    """The array as one of the trace, if one is running."""
    trace = current_trace()
    if trace is None or is_traced(x):
        return x
    return trace.lifted(x if isinstance(x, mj.Array) else np.asarray(x))


def moved(state: Any, count: Any) -> Any:
    return mj.stdlib.random.skipped(entered(state), count)


def truncated4(state: Any, groups: Any, mean: float, stddev: float) -> Any:
    found = mj.stdlib.random.two_block_truncated4(state, groups, mean, stddev)
    return mj.stdlib.random.truncated4(state, found, mean, stddev)


# ---- what the distributions make of words and normal numbers ----


@mj.jit(static=["kind"])
def uniform(words: Any, low: Any, high: Any, kind: Any) -> Any:
    low, high = low.astype(kind), high.astype(kind)
    return _unit(words, kind) * (high - low) + low


@mj.jit(static=["kind"])
def scaled(normals: Any, mean: Any, stddev: Any, kind: Any) -> Any:
    return normals.astype(kind) * stddev.astype(kind) + mean.astype(kind)


@mj.jit(static=["reach", "kind"])
def inverse_normal(words: Any, mean: Any, stddev: Any, low: Any, high: Any, reach: float, kind: Any) -> Any:
    """Normal numbers within bounds, by the inverse of their distribution.

    A bound of None is `reach` standard deviations away. The word 0 counts as 1e-7, since its number may be infinite.
    """
    middle, spread = mean.astype(np.float32), stddev.astype(np.float32)
    least = np.float32(-reach) if low is None else (low.astype(np.float32) - middle) / spread
    most = np.float32(reach) if high is None else (high.astype(np.float32) - middle) / spread
    first, last = _error(least, low is None), _error(most, high is None)
    u = np.maximum(_unit(words, np.dtype(np.float32)), np.float32(1e-7))
    z = sqrt(2) * mj.stdlib.random.inverse_error(first + u * (last - first))
    return scaled(np.minimum(np.maximum(z, least), most), mean, stddev, kind)


def _error(z: Any, known: bool) -> Any:
    """The error function at z / sqrt(2): the share of normal numbers between -z and z, negative for a negative z."""
    if known:
        return np.float32(erf(z / sqrt(2)))
    return mj.stdlib.random.error(entered(z * np.float32(sqrt(0.5))))


@mj.jit(static=["kind"])
def ranged(values: Any, low: Any, many: Any, kind: Any) -> Any:
    """low + values % many, of unsigned numbers; `many` is 0 where it is all numbers of the type."""
    return (low + np.where(many == 0, values, values % many)).astype(kind)


@mj.jit
def below(words: Any, p: Any) -> Any:
    return _unit(words, np.dtype(np.float32)) < p


@mj.jit
def dropped(x: Any, rate: Any, scale: Any, state: Any) -> tuple[Any, Any]:
    drawn = draw("dropout", state, x.shape)
    factor = 1 / (1 - rate) if scale is None else scale
    kept = (x * factor).astype(x.dtype)
    return drawn.returned(np.where(below(drawn.words(), rate), 0, kept))


def _unit(words: Any, kind: np.dtype[Any]) -> Any:
    """Floats in [0, 1) from the lowest bits of words."""
    m = _MANTISSAS[kind.name]
    return ((words & (2**m - 1)).astype(np.float32) * 2.0**-m).astype(kind)
