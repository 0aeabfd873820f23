"""Random numbers; the kernels are in random.mjk, what is drawn from a state in draws.py, states from seeds in seeds.py.

In: a state. Out: values and the state that follows; no state is ever changed. A state is a uint32 array of six words:
the counter of 128 bits, least significant word first, then the key of 64 bits. On a little-endian machine
`state.view(np.int64)` is the state of TensorFlow's `Generator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Literal

import numpy as np

import metaljit as mj
from metaljit.lang import i32, i64, u32, u64
from metaljit.stdlib_ops import draws
from metaljit.stdlib_ops.draws import FLOATS
from metaljit.stdlib_ops.operands import Operand, check_array, dtype_of, refuse, whole
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
_INTEGERS = (u32, i32, u64, i64)


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
    array([1680725959,  110001726, 2756217324], dtype=uint32)
    """
    draw = draws.draw("random.bits", state, shape)
    return draw.returned(draw.integers(dtype_of("random.bits", dtype, _INTEGERS)))


def uniform(
    state: Operand, shape: Shape, low: Any = 0.0, high: Any = 1.0, dtype: Any = np.float32
) -> tuple[Any, Any]:
    """Floats from `low` to below `high`, all equally likely: `(values, new_state)`, the numbers of TensorFlow.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    low, high: numbers, or float arrays that broadcast to the shape.
    dtype: float32, float16 or bfloat16. A value is low + u * (high - low), rounded at each step, where u has 23, 10 or 7
        bits (the lowest of a word), so that `high` itself can come out where the steps are wider than u's.

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
    draw, kind = draws.draw(op, state, shape), dtype_of(op, dtype, FLOATS)
    low, high = draw.parameter("low", low, kind), draw.parameter("high", high, kind)
    if draw.is_plain(kind, low, high):
        return draw.returned(draw.by_four(mj.stdlib.random.uniforms4, low, high))
    return draw.returned(draws.uniform(draw.words(), low, high, kind))


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
    draw, kind = draws.draw(op, state, shape), dtype_of(op, dtype, FLOATS)
    mean, stddev = draw.parameter("mean", mean, kind), draw.parameter("stddev", stddev, kind)
    if _is_inverse(op, sampling):
        return draw.returned(draws.inverse_normal(draw.words(), mean, stddev, None, None, inf, kind))
    if draw.is_plain(kind, mean, stddev):
        return draw.returned(draw.by_four(mj.stdlib.random.normals4, mean, stddev))
    return draw.returned(draws.scaled(draw.normals(), mean, stddev, kind))


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
    low, high: the bounds of the values, in their own units; None is two `stddev` from the `mean`. Only "inv_cdf" takes
        others.
    sampling: "box_muller": each four values take normal numbers from 256 blocks of their own until four are within the
        bounds. "inv_cdf": a word gives the value below which its share of the numbers within the bounds lies, MPSGraph's
        default.
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
    draw, kind = draws.draw(op, state, shape), dtype_of(op, dtype, FLOATS)
    mean, stddev = draw.parameter("mean", mean, kind), draw.parameter("stddev", stddev, kind)
    if _is_inverse(op, sampling):
        bounds = [
            None if v is None else draw.parameter(n, v, kind) for n, v in (("low", low), ("high", high))
        ]
        if all(isinstance(v, float | int) for v in (low, high)) and not low < high:
            refuse(
                op, f"no number is between `low` {low} and `high` {high}", "the first is less than the second"
            )
        return draw.returned(draws.inverse_normal(draw.words(), mean, stddev, *bounds, 2.0, kind))
    if low is not None or high is not None:
        refuse(op, "sampling='box_muller' keeps what is within two standard deviations, and takes no `low` and `high`",
               "pass sampling='inv_cdf'")  # fmt: skip
    if draw.is_plain(kind, mean, stddev):
        return draw.returned(draw.by_four(draws.truncated4, mean, stddev))
    return draw.returned(draws.scaled(draw.by_four(draws.truncated4, 0.0, 1.0), mean, stddev, kind))


def integers(
    state: Operand, shape: Shape, low: int, high: int, dtype: Any = np.int32, *, endpoint: bool = False
) -> tuple[Any, Any]:
    """Integers from `low` to below `high`: `(values, new_state)`, the numbers of TensorFlow's `Generator.uniform`.

    state: uint32 array of 6 words.
    shape: of the values; an int is one axis.
    low, high: whole numbers that the dtype holds; of `high` one more, as it does not belong to them.
    dtype: int32, uint32, int64 or uint64. A value is low + bits % (high - low): where the range is no power of two, its
        first numbers are a little more likely, by its share of all that the dtype holds.
    endpoint: `high` belongs to them, as in MPSGraph.

    Returns values of that shape and dtype, and the state moved on by 256 blocks for each value.
    Raises TypeFault for another dtype, ShapeError for a state of another shape, LaunchFault where the range is empty or is
    not in the dtype.
    Compare: MPSGraph `randomTensor`; PyTorch `torch.randint`; TensorFlow `tf.random.Generator.uniform`; NumPy
    `np.random.Generator.integers`; SciPy `scipy.stats.randint.rvs`.

    Example:
    >>> from metaljit import ops
    >>> values, state = ops.random.integers(ops.random.philox_state((42, 0), convention="legacy"), 6, 0, 10)
    >>> values
    array([3, 1, 7, 7, 3, 5], dtype=int32)
    """
    op = "random.integers"
    draw, kind = draws.draw(op, state, shape), dtype_of(op, dtype, _INTEGERS)
    holds, last = np.iinfo(kind), draws.any_whole(op, "high", high) - (not endpoint)
    if not holds.min <= draws.any_whole(op, "low", low) <= last <= holds.max:
        text = f"low={low}, high={high}{', endpoint=True' if endpoint else ''}"
        refuse(
            op, f"there are no numbers of {kind.name} from {text}", f"they go from {holds.min} to {holds.max}"
        )
    found = draw.integers(np.dtype(f"u{kind.itemsize}"))
    many = last - low + 1
    least = low % 2 ** (8 * kind.itemsize)
    return draw.returned(
        draws.ranged(found, *map(found.dtype.type, (least, many % 2 ** (8 * kind.itemsize))), kind)
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
    draw = draws.draw(op, state, shape)
    if isinstance(p, int | float) and not 0 <= p <= 1:
        refuse(op, f"`p` is a probability, from 0 to 1, and got {p}")
    return draw.returned(draws.below(draw.words(), draw.parameter("p", p, np.dtype(np.float32))))


def dropout(x: Operand, rate: Any, state: Operand, *, scale: bool = True) -> tuple[Any, Any]:
    """`x` with elements set to 0, each with probability `rate`: `(values, new_state)`.

    x: float array.
    rate: a number from 0 to below 1, or an array without axes. An element stays where `random.uniform` with the same state
        and the shape of `x` is at least `rate`.
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
    check_array("dropout", "x", x, FLOATS, "floats")
    check_state("dropout", state)
    if isinstance(rate, int | float):
        if not 0 <= rate < 1:
            refuse("dropout", f"`rate` is from 0 to below 1 and got {rate}")
        return draws.dropped(x, rate, 1 / (1 - rate) if scale else 1.0, state)  # type: ignore[no-any-return]
    check_array("dropout", "rate", rate, FLOATS, "a number, or a float array without axes")
    if len(rate.shape):
        refuse(
            "dropout",
            f"`rate` is one number and has shape {tuple(rate.shape)}",
            "",
            "op-shape",
            mj.ShapeError,
        )
    return draws.dropped(x, rate, None if scale else 1.0, state)  # type: ignore[no-any-return]


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
    return draws.moved(
        state, count if draws.is_extent(count) else draws.any_whole("random.skip", "count", count) % 2**64
    )


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
    array([[         0,          0,          0,          0, 2700470914,
             162590354],
           [         0,          0,          0,          0, 3974291451,
            3530892127]], dtype=uint32)
    """
    check_state("random.split", state)
    if not draws.is_extent(count):
        count = whole("random.split", "count", count, 0)
    return mj.stdlib.random.children(draws.entered(state), count), draws.moved(state, count)


def _is_inverse(op: str, sampling: str) -> bool:
    if sampling not in ("box_muller", "inv_cdf"):
        refuse(op, f"`sampling` is 'box_muller' or 'inv_cdf', not {sampling!r}")
    return sampling == "inv_cdf"
