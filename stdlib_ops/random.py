"""Random numbers; the kernels are in random.mjk, states from seeds in seeds.py.

In: a state. Out: values and the state that follows; no state is ever changed. A state is a uint32 array of six words:
the counter of 128 bits, least significant word first, then the key of 64 bits. On a little-endian machine
`state.view(np.int64)` is the state of TensorFlow's `Generator`.

Values come in two steps: words or normal numbers from kernels that give four at a time, then what the distribution makes of
them, element by element. In a trace the first step gives one number an element, so that both, and what uses the values,
are one kernel. The bits are the same on all ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, inf, isfinite, prod, sqrt
from operator import index
from typing import Any, Literal

import numpy as np

import metaljit as mj
from metaljit.graph.context import current_trace
from metaljit.lang import bf16, f16, f32, i32, i64, u32, u64
from metaljit.stdlib_ops.operands import Operand, check_array, dtype_of, refuse, viewed, whole
from metaljit.stdlib_ops.seeds import check_state, from_mpsgraph, philox_state, state_from, to_mpsgraph

__all__ = [
    "bernoulli",
    "bits",
    "from_mpsgraph",
    "integers",
    "normal",
    "philox_state",
    "skip",
    "split",
    "state_from",
    "to_mpsgraph",
    "truncated_normal",
    "uniform",
]

Sampling = Literal["box_muller", "inv_cdf"]
Shape = int | Sequence[int]
_FLOATS = (f32, f16, bf16)
_INTEGERS = (u32, i32, u64, i64)
_MANTISSAS = {"float32": 23, "float16": 10, "bfloat16": 7}
_WORD = 4  # bytes


def bits(state: Operand, shape: Shape, dtype: Any = np.uint32) -> tuple[Any, Any]:
    """Random bits: `(values, new_state)`, the numbers of TensorFlow's `Generator.uniform_full_int`.

    state: uint32 array of 6 words (see `philox_state`, `state_from`), on the host or on a device.
    shape: of the values; an int is one axis.
    dtype: uint32 or int32 (four values from each block of the generator), uint64 or int64 (two, the low word first).

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value.
    Raises TypeFault for another dtype, ShapeError for a state of another shape.
    Compare: MPSGraph `randomTensor`; TensorFlow `tf.random.Generator.uniform_full_int`; NumPy
    `np.random.Philox.random_raw`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.bits(ops.random.philox_state(1234), 3)
    >>> values
    array([2904878260,  123641736, 1684110864], dtype=uint32)
    """
    draw = _draw("random.bits", state, shape)
    return draw.returned(draw.integers(dtype_of("random.bits", dtype, _INTEGERS)))


def uniform(
    state: Operand, shape: Shape, low: Any = 0.0, high: Any = 1.0, dtype: Any = np.float32
) -> tuple[Any, Any]:
    """Floats from `low` to below `high`, all equally likely: `(values, new_state)`, the numbers of TensorFlow.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    low, high: numbers, or float arrays that broadcast to the shape.
    dtype: float32, float16 or bfloat16. A value is low + u * (high - low), rounded at each step, where u has 23, 10 or 7 bits
        (the lowest of a word), so that `high` itself can come out where the steps are wider than u's.

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value. They have derivatives by
    `low` and `high`.
    Raises TypeFault for another dtype, ShapeError for a state of another shape or bounds that do not broadcast.
    Compare: MPSGraph `randomUniformTensor`; PyTorch `torch.rand`; TensorFlow `tf.random.Generator.uniform`; NumPy
    `np.random.Generator.uniform`; SciPy `scipy.stats.uniform.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.uniform(ops.random.philox_state(2022), 3, -1, 1)
    >>> values.round(4)
    array([-0.2264,  0.8956,  0.5435], dtype=float32)
    """
    op = "random.uniform"
    draw, kind = _draw(op, state, shape), dtype_of(op, dtype, _FLOATS)
    low, high = draw.parameter("low", low, kind), draw.parameter("high", high, kind)
    if draw.is_plain(kind, low, high):
        return draw.returned(draw.by_four(mj.stdlib.random.uniforms4, low, high))
    return draw.returned(_uniform(draw.words(), low, high, kind))


def normal(
    state: Operand,
    shape: Shape,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    *,
    sampling: Sampling = "box_muller",
    dtype: Any = np.float32,
) -> tuple[Any, Any]:
    """Normal numbers: `(values, new_state)`; by Box and Muller's method those of TensorFlow.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    mean, stddev: numbers, or float arrays that broadcast to the shape.
    sampling: "box_muller": two words give two values, of a magnitude of at most 5.6777. "inv_cdf": a word gives the value
        below which its share of all normal numbers lies, MPSGraph's default; the share 0 counts as 1e-7.
    dtype: float32, float16 or bfloat16: a float32 number rounded, times `stddev`, plus `mean`, in that type.

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value. They have derivatives by
    `mean` and `stddev`. Between devices the last bits of logarithm, sine and cosine differ.
    Raises TypeFault for another dtype, ShapeError for a state of another shape or parameters that do not broadcast.
    Compare: MPSGraph `randomTensor`; PyTorch `torch.randn`; TensorFlow `tf.random.Generator.normal`; NumPy
    `np.random.Generator.normal`; SciPy `scipy.stats.norm.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.normal(ops.random.philox_state(2022), 3)
    >>> values.round(4)
    array([-0.444 ,  1.3048, -0.719 ], dtype=float32)
    """
    op = "random.normal"
    draw, kind = _draw(op, state, shape), dtype_of(op, dtype, _FLOATS)
    mean, stddev = draw.parameter("mean", mean, kind), draw.parameter("stddev", stddev, kind)
    if _is_inverse(op, sampling):
        return draw.returned(_inverse_normal(draw.words(), mean, stddev, None, None, inf, kind))
    if draw.is_plain(kind, mean, stddev):
        return draw.returned(draw.by_four(mj.stdlib.random.normals4, mean, stddev))
    return draw.returned(_scaled(draw.normals(), mean, stddev, kind))


def truncated_normal(
    state: Operand,
    shape: Shape,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    *,
    low: Any = None,
    high: Any = None,
    sampling: Sampling = "box_muller",
    dtype: Any = np.float32,
) -> tuple[Any, Any]:
    """Normal numbers within bounds: `(values, new_state)`; by Box and Muller's method those of TensorFlow.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    mean, stddev: of the normal numbers before they are cut: numbers, or float arrays that broadcast to the shape.
    low, high: the bounds of the values, in their own units; None is two `stddev` from the `mean`. Only "inv_cdf" takes others.
    sampling: "box_muller": each four values take normal numbers from 1024 blocks of their own until four are within the bounds.
        "inv_cdf": a word gives the value below which its share of the numbers within the bounds lies, MPSGraph's default.
    dtype: float32, float16 or bfloat16: a float32 number rounded, times `stddev`, plus `mean`, in that type.

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value. They have derivatives by
    `mean` and `stddev`, by "inv_cdf" also by the bounds.
    Raises TypeFault for another dtype, ShapeError for a state of another shape or parameters that do not broadcast,
    LaunchFault for bounds that hold nothing or that the sampling does not take.
    Compare: MPSGraph `randomTensor`; PyTorch `torch.nn.init.trunc_normal_`; TensorFlow
    `tf.random.Generator.truncated_normal`; SciPy `scipy.stats.truncnorm.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.truncated_normal(ops.random.philox_state(2022), 3, -1, 2.5)
    >>> values.round(4)
    array([-2.1101,  2.2621, -2.7974], dtype=float32)
    """
    op = "random.truncated_normal"
    draw, kind = _draw(op, state, shape), dtype_of(op, dtype, _FLOATS)
    mean, stddev = draw.parameter("mean", mean, kind), draw.parameter("stddev", stddev, kind)
    if _is_inverse(op, sampling):
        bounds = [
            None if v is None else draw.parameter(n, v, kind) for n, v in (("low", low), ("high", high))
        ]
        if all(isinstance(v, float | int) for v in (low, high)) and not low < high:
            refuse(
                op, f"no number is between `low` {low} and `high` {high}", "the first is less than the second"
            )
        return draw.returned(_inverse_normal(draw.words(), mean, stddev, *bounds, 2.0, kind))
    if low is not None or high is not None:
        refuse(op, "sampling='box_muller' keeps what is within two standard deviations, and takes no `low` and `high`",
               "pass sampling='inv_cdf'")  # fmt: skip
    if draw.is_plain(kind, mean, stddev):
        return draw.returned(draw.by_four(_truncated4, mean, stddev))
    return draw.returned(_scaled(draw.by_four(_truncated4, 0.0, 1.0), mean, stddev, kind))


def integers(
    state: Operand, shape: Shape, low: int, high: int, dtype: Any = np.int32, *, endpoint: bool = False
) -> tuple[Any, Any]:
    """Integers from `low` to below `high`: `(values, new_state)`, the numbers of TensorFlow's `Generator.uniform`.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    low, high: whole numbers that the dtype holds; of `high` one more, as it does not belong to them.
    dtype: int32, uint32, int64 or uint64. A value is low + bits % (high - low): where the range is no power of two, its first
        numbers are a little more likely, by its share of all the dtype holds.
    endpoint: `high` belongs to them, as in MPSGraph.

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value.
    Raises TypeFault for another dtype, ShapeError for a state of another shape, LaunchFault where the range is empty or is not
    in the dtype.
    Compare: MPSGraph `randomTensor`; PyTorch `torch.randint`; TensorFlow `tf.random.Generator.uniform`; NumPy
    `np.random.Generator.integers`; SciPy `scipy.stats.randint.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.integers(ops.random.philox_state((42, 0), convention="legacy"), 6, 0, 10)
    >>> values
    array([3, 1, 7, 7, 3, 5], dtype=int32)
    """
    op = "random.integers"
    draw, kind = _draw(op, state, shape), dtype_of(op, dtype, _INTEGERS)
    holds, last = np.iinfo(kind), _whole(op, "high", high) - (not endpoint)
    if not holds.min <= _whole(op, "low", low) <= last <= holds.max:
        text = f"low={low}, high={high}{', endpoint=True' if endpoint else ''}"
        refuse(
            op, f"there are no numbers of {kind.name} from {text}", f"they go from {holds.min} to {holds.max}"
        )
    found = draw.integers(np.dtype(f"u{kind.itemsize}"))
    many = last - low + 1
    least = low % 2 ** (8 * kind.itemsize)
    return draw.returned(
        _ranged(found, *map(found.dtype.type, (least, many % 2 ** (8 * kind.itemsize))), kind)
    )


def bernoulli(state: Operand, shape: Shape, p: Any = 0.5) -> tuple[Any, Any]:
    """True with probability `p`: `(values, new_state)`.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    p: a number from 0 to 1, or a float array that broadcasts to the shape.

    Returns bools of that shape, true where `random.uniform` with the same state is below `p`, and the state moved on by 256
    blocks for each.
    Raises LaunchFault for another number, ShapeError for a state of another shape or a `p` that does not broadcast.
    Compare: PyTorch `torch.bernoulli`; NumPy `np.random.Generator.binomial`; SciPy `scipy.stats.bernoulli.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.bernoulli(ops.random.philox_state(2022), 4, 0.9)
    >>> values
    array([ True, False,  True,  True])
    """
    op = "random.bernoulli"
    draw = _draw(op, state, shape)
    if isinstance(p, int | float) and not 0 <= p <= 1:
        refuse(op, f"`p` is a probability, from 0 to 1, and got {p}")
    return draw.returned(_below(draw.words(), draw.parameter("p", p, np.dtype(np.float32))))


def dropout(x: Operand, rate: Any, state: Operand, *, scale: bool = True) -> tuple[Any, Any]:
    """`x` with elements set to 0, each with probability `rate`: `(values, new_state)`.

    x: float array.
    rate: a number from 0 to below 1, or an array without axes. An element stays where `random.uniform` with the same state and
        the shape of `x` is at least `rate`.
    state: uint32 array of 6 words.
    scale: what stays is divided by 1 - rate, so that the mean remains.

    Returns an array like `x`, and the state moved on by 256 blocks for each element. What goes is 0 whatever it was, also
    infinite or NaN. The derivative by `x` is 0 there, and 1 / (1 - rate) elsewhere.
    Raises LaunchFault for another rate, TypeFault for another dtype, ShapeError for a state of another shape.
    Compare: MPSGraph `dropout` (which takes no state); PyTorch `F.dropout`; TensorFlow
    `tf.nn.experimental.stateless_dropout`.

    Example:
    >>> import numpy as np
    >>> from metaljit import ops
    >>> values, state = ops.dropout(np.arange(1, 7, dtype=np.float32), 0.5, ops.random.philox_state(2022))
    >>> values
    array([ 0.,  4.,  6.,  8., 10.,  0.], dtype=float32)
    """
    check_array("dropout", "x", x, _FLOATS, "floats")
    check_state("dropout", state)
    if isinstance(rate, int | float):
        if not 0 <= rate < 1:
            refuse("dropout", f"`rate` is from 0 to below 1 and got {rate}")
        return _dropped(x, rate, 1 / (1 - rate) if scale else 1.0, state)  # type: ignore[no-any-return]
    check_array("dropout", "rate", rate, _FLOATS, "a number, or a float array without axes")
    if len(rate.shape):
        refuse(
            "dropout",
            f"`rate` is one number and has shape {tuple(rate.shape)}",
            "",
            "op-shape",
            mj.ShapeError,
        )
    return _dropped(x, rate, None if scale else 1.0, state)  # type: ignore[no-any-return]


def skip(state: Operand, count: int) -> Any:
    """The state after `count` values of any kind; negative counts lead back.

    state: uint32 array of 6 words.

    Raises TypeFault or ShapeError for what is no state.
    Compare: TensorFlow `tf.random.Generator.skip`; NumPy `np.random.Philox.advance`.

    Example:
    >>> from metaljit import ops
    >>> ops.random.skip(ops.random.philox_state(3), 2)
    array([515,   0,   0,   0,   0,   0], dtype=uint32)
    """
    check_state("random.skip", state)
    return _moved(state, count if _is_extent(count) else _whole("random.skip", "count", count) % 2**64)


def split(state: Operand, count: int) -> tuple[Any, Any]:
    """States of `count` streams: `(states, new_state)`, those of TensorFlow's `Generator.split`.

    state: uint32 array of 6 words.
    count: how many.

    Returns a uint32 array (count, 6), and the state moved on by 256 blocks for each. Each new state has random bits as its
    key and the counter 0, so that the streams do not overlap.
    Raises TypeFault or ShapeError for what is no state, LaunchFault for a negative count.
    Compare: TensorFlow `tf.random.Generator.split`; NumPy `np.random.Generator.spawn`.

    Example:
    >>> from metaljit import ops
    >>> states, state = ops.random.split(ops.random.philox_state(11), 2)
    >>> states
    array([[         0,          0,          0,          0,  674931298,
             162590171],
           [         0,          0,          0,          0, 1026171899,
            3530881308]], dtype=uint32)
    """
    check_state("random.split", state)
    if not _is_extent(count):
        count = whole("random.split", "count", count, 0)
    return mj.stdlib.random.children(_entered(state), count), _moved(state, count)


# ---- what is drawn from a state ----


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
        check_array(self.op, name, value, _FLOATS, "a number, or a float array")
        given = tuple(value.shape)
        own = self.shape[len(self.shape) - len(given) :]
        if len(given) > len(self.shape) or any(n != 1 and n != m for n, m in zip(given, own, strict=True)):
            refuse(
                self.op,
                f"`{name}` of shape {given} does not broadcast to {self.shape}",
                "",
                "op-shape",
                mj.ShapeError,
            )
        return value

    def is_plain(self, kind: np.dtype[Any], *numbers: Any) -> bool:
        """Whether a kernel of four float32 values at a time can do all of it."""
        return (
            current_trace() is None and kind == np.float32 and all(isinstance(n, np.float32) for n in numbers)
        )

    def returned(self, values: Any) -> tuple[Any, Any]:
        return values, _moved(self.state, self.count)

    def _groups(self, size: int) -> Any:
        return (self.count + size - 1) // size

    def _first(self, groups: Any) -> Any:
        """The values, of groups of four."""
        if current_trace() is None:
            return viewed(groups, lambda v: v.reshape(-1)[: self.count].reshape(self.shape))
        return groups.reshape(-1)[: self.count].reshape(self.shape)


def _draw(op: str, state: Operand, shape: Any) -> Draw:
    check_state(op, state)
    given = shape if isinstance(shape, Sequence) else (shape,)
    extents = tuple(n if _is_extent(n) else whole(op, "shape", n, 0) for n in given)
    return Draw(op, _entered(state), extents, prod(extents))


def _is_extent(n: Any) -> bool:
    """Whether a number is an extent of a trace."""
    return hasattr(n, "extent")


def _whole(op: str, name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        refuse(op, f"`{name}` takes whole numbers and got {value!r}")


def _entered(state: Any) -> Any:
    """The state as an array of the trace, if one is running."""
    trace = current_trace()
    return state if trace is None or hasattr(state, "__metaljit_traced__") else trace.lifted(state)


def _moved(state: Any, count: Any) -> Any:
    return mj.stdlib.random.skipped(_entered(state), count)


def _is_inverse(op: str, sampling: str) -> bool:
    if sampling not in ("box_muller", "inv_cdf"):
        refuse(op, f"`sampling` is 'box_muller' or 'inv_cdf', not {sampling!r}")
    return sampling == "inv_cdf"


def _truncated4(state: Any, groups: Any, mean: float, stddev: float) -> Any:
    found = mj.stdlib.random.two_block_truncated4(state, groups, mean, stddev)
    return mj.stdlib.random.truncated4(state, found, mean, stddev)


# ---- what the distributions make of words and normal numbers ----


@mj.jit(static=["kind"])
def _uniform(words: Any, low: Any, high: Any, kind: Any) -> Any:
    low, high = low.astype(kind), high.astype(kind)
    return _unit(words, kind) * (high - low) + low


@mj.jit(static=["kind"])
def _scaled(normals: Any, mean: Any, stddev: Any, kind: Any) -> Any:
    return normals.astype(kind) * stddev.astype(kind) + mean.astype(kind)


@mj.jit(static=["reach", "kind"])
def _inverse_normal(words: Any, mean: Any, stddev: Any, low: Any, high: Any, reach: float, kind: Any) -> Any:
    """Normal numbers within bounds by the inverse of their distribution; a bound of None is `reach` standard deviations away."""
    least, most = (
        np.float32(far)
        if v is None
        else (v.astype(np.float32) - mean.astype(np.float32)) / stddev.astype(np.float32)
        for v, far in ((low, -reach), (high, reach))
    )
    below, above = (_twice_share(v) for v in (least, most))
    share = below + np.maximum(_unit(words, np.dtype(np.float32)), np.float32(1e-7)) * (above - below)
    z = np.minimum(np.maximum(sqrt(2) * mj.stdlib.random.inverse_error(share), least), most)
    return _scaled(z, mean, stddev, kind)


def _twice_share(z: Any) -> Any:
    """Twice the share of normal numbers that lies between 0 and z."""
    if isinstance(z, np.generic):
        return np.float32(erf(z / sqrt(2)))
    return mj.stdlib.random.error(z * sqrt(0.5))


@mj.jit(static=["kind"])
def _ranged(values: Any, low: Any, many: Any, kind: Any) -> Any:
    """low + values % many, of unsigned numbers; `many` is 0 where it is all numbers of the type."""
    return (low + np.where(many == 0, values, values % many)).astype(kind)


@mj.jit
def _below(words: Any, p: Any) -> Any:
    return _unit(words, np.dtype(np.float32)) < p


@mj.jit
def _dropped(x: Any, rate: Any, scale: Any, state: Any) -> tuple[Any, Any]:
    draw = _draw("dropout", state, x.shape)
    factor = 1 / (1 - rate) if scale is None else scale
    kept = (x * factor).astype(x.dtype)
    return draw.returned(np.where(_below(draw.words(), rate), 0, kept))


def _unit(words: Any, kind: np.dtype[Any]) -> Any:
    """Floats in [0, 1) from the lowest bits of words."""
    m = _MANTISSAS[kind.name]
    return ((words & (2**m - 1)).astype(np.float32) * 2.0**-m).astype(kind)
