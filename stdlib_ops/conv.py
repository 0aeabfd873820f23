"""Convolutions and their gradients; the kernels are in conv.mjk.

In: arrays, windows and layouts. Out: what matrix products of weights and columns give; a column has the elements of a
window. Where strides are 1, columns are a view: along the padded array as one line, a tap of the window stands a fixed
distance from the first one, whatever the window. So the products read the padded array itself; between the ends of lines are
windows that are none, and are left out of the result. Where strides are larger, columns are stored, which takes little,
since there are few windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import metaljit as mj
from metaljit.graph.views import windows
from metaljit.stdlib_ops.operands import NUMBERS, Operand, check_array, lengths, refuse, whole
from metaljit.stdlib_ops.windows import Padding, Window, letters_of, windows_of


def conv(
    x: Operand,
    w: Operand,
    bias: Operand | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    weight_layout: str | None = None,
) -> Any:
    """The convolution of neural networks, which is a correlation: y[n, o, p] is the sum over i and k of
    `x[n, i, stride * p + dilation * k - padding] * w[o, i, k]`.

    x: array (N, C, spatial axes) of any number dtype, or in the order of `layout`; 1 to 3 spatial axes.
    w: weights (O, C / groups, window) of the dtype of `x`, or in the order of `weight_layout`.
    bias: O numbers of that dtype, added to the channels of the result.
    stride, padding, dilation: as `max_pool` has them; padding is zeros.
    groups: output channels of group g see the input channels of group g alone. `groups=C` is a depthwise convolution.
    layout: a letter for each axis of `x`, and of the result. None is NCW, NCHW or NCDHW by the rank.
    weight_layout: a letter for each axis of `w`. None is OIHW (OIW, OIDHW), or where channels are last in `layout`, HWIO.

    Returns an array of the dtype of `x`. Floats are summed in f32 and rounded once; integers wrap.

    Raises TypeFault for bool, float64, and two dtypes, ShapeError where shapes do not fit or no window does, LaunchFault for
    other arguments that make no sense.

    Compare: MPSGraph `convolution2D`; PyTorch `F.conv2d`; TensorFlow `tf.nn.conv2d`; SciPy `scipy.signal.correlate`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
        >>> w = np.array([[[[1, 0], [0, -1]]]], np.float32)
        >>> print(ops.conv(x, w, padding="same")[0, 0])
        [[-4. -4.  3.]
         [-4. -4.  6.]
         [ 7.  8.  9.]]
    """
    op = "conv"
    check_array(op, "x", x, NUMBERS, "numbers")
    plan = _plan(op, "x", x, "w", w, layout, weight_layout, groups, len(x.shape))
    plan = plan.over(op, x.shape, w.shape, stride, padding, dilation)
    plan.check_weights(op, x.shape, w.shape)
    if bias is not None:
        outs = w.shape[plan.weights.index("O")]
        _same_dtype(op, "x", x, "bias", bias)
        if len(bias.shape) != 1 or bias.shape[0] != outs:
            refuse(op, f"`bias` has shape {tuple(bias.shape)}, and there are {outs} output channels", "", "op-shape",
                   mj.ShapeError)  # fmt: skip
    return _conv(x, w, bias, plan)


def conv_grad_input(
    grad: Operand,
    w: Operand,
    shape: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    weight_layout: str | None = None,
) -> Any:
    """The derivative of `conv` by `x`, which had `shape`, from that by its result; also known as a transposed convolution.

    grad: array of the shape of the result, in `layout`. The other arguments are those of `conv`.

    Returns an array of `shape` and the dtype of `grad`.

    Raises as `conv`.

    Compare: MPSGraph `convolution2DDataGradient`; PyTorch `torch.nn.grad.conv2d_input`; TensorFlow `tf.nn.conv2d_transpose`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> w = np.array([[[[1, 0], [0, -1]]]], np.float32)
        >>> grad = np.array([[[[1, 2], [3, 4]]]], np.float32)
        >>> print(ops.conv_grad_input(grad, w, (1, 1, 3, 3))[0, 0])
        [[ 1.  2.  0.]
         [ 3.  3. -2.]
         [ 0. -3. -4.]]
    """
    op = "conv_grad_input"
    check_array(op, "grad", grad, NUMBERS, "numbers")
    given = lengths(op, "shape", shape)
    plan = _plan(op, "grad", grad, "w", w, layout, weight_layout, groups, len(given))
    plan = plan.over(op, given, w.shape, stride, padding, dilation)
    plan.check_weights(op, given, w.shape)
    plan.check_grad(op, grad, given, w.shape)
    return _grad_input(grad, w, plan)


def conv_grad_weight(
    grad: Operand,
    x: Operand,
    shape: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    weight_layout: str | None = None,
) -> Any:
    """The derivative of `conv` by `w`, which had `shape`, from that by its result.

    grad: array of the shape of the result, in `layout`. The other arguments are those of `conv`.

    Returns an array of `shape` and the dtype of `grad`.

    Raises as `conv`.

    Compare: MPSGraph `convolution2DWeightsGradient`; PyTorch `torch.nn.grad.conv2d_weight`;
    TensorFlow `tf.raw_ops.Conv2DBackpropFilter`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
        >>> grad = np.array([[[[1, 2], [3, 4]]]], np.float32)
        >>> print(ops.conv_grad_weight(grad, x, (1, 1, 2, 2))[0, 0])
        [[37. 47.]
         [67. 77.]]
    """
    op = "conv_grad_weight"
    check_array(op, "grad", grad, NUMBERS, "numbers")
    check_array(op, "x", x, NUMBERS, "numbers")
    given = lengths(op, "shape", shape)
    plan = _plan(op, "grad", grad, "x", x, layout, weight_layout, groups, len(x.shape))
    plan = plan.over(op, x.shape, given, stride, padding, dilation)
    plan.check_weights(op, x.shape, given)
    plan.check_grad(op, grad, x.shape, given)
    return _grad_weight(grad, x, plan)


# ---- arguments ----


@dataclass(frozen=True)
class _Plan:
    """What all calls of one kind share: layouts, groups, and the window along each spatial axis, in the order of D, H, W."""

    layout: str
    weights: str
    groups: int
    each: tuple[Window, ...] = ()

    @property
    def spatial(self) -> str:
        return "".join(c for c in "DHW" if c in self.layout)

    @property
    def size(self) -> tuple[int, ...]:
        return tuple(w.size for w in self.each)

    @property
    def taps(self) -> int:
        return prod(self.size)

    @property
    def strided(self) -> bool:
        return any(w.stride > 1 for w in self.each)

    def over(
        self, op: str, shape: Sequence[int], weights: Sequence[int], stride: Any, padding: Any, dilation: Any
    ) -> _Plan:
        """With the windows of an array of a shape."""
        if len(weights) != len(self.weights):
            refuse(op, f"the weights have {len(weights)} axes, and the layout {self.weights!r} has {len(self.weights)}", "",
                   "op-shape", mj.ShapeError)  # fmt: skip
        axes = [k for k, c in enumerate(self.layout) if c in self.spatial]
        sizes = [int(weights[self.weights.index(self.layout[k])]) for k in axes]
        found = windows_of(op, shape, axes, sizes, stride, padding, dilation, filled=False)
        by = dict(zip((self.layout[k] for k in axes), found.each, strict=True))
        return _Plan(self.layout, self.weights, self.groups, tuple(by[c] for c in self.spatial))

    def result(self, shape: Sequence[int], weights: Sequence[int]) -> tuple[int, ...]:
        """The shape of the result."""
        by = dict(zip(self.spatial, self.each, strict=True))
        found = []
        for n, c in zip(shape, self.layout, strict=True):
            if c == "C":
                n = weights[self.weights.index("O")]
            found.append((n + by[c].extra) // by[c].stride if c in by else n)
        return tuple(found)

    def check_weights(self, op: str, shape: Sequence[int], weights: Sequence[int]) -> None:
        channels = shape[self.layout.index("C")]
        outs, ins = (weights[self.weights.index(c)] for c in "OI")
        if channels != ins * self.groups:
            refuse(op, f"`x` has {channels} channels, and the weights take {ins} in each of {self.groups} groups",
                   "the weights have C / groups input channels", "op-shape", mj.ShapeError)  # fmt: skip
        if outs % self.groups != 0:
            refuse(
                op,
                f"{outs} output channels do not go into {self.groups} groups",
                "",
                "op-shape",
                mj.ShapeError,
            )

    def check_grad(self, op: str, grad: Any, shape: Sequence[int], weights: Sequence[int]) -> None:
        want = self.result(shape, weights)
        if tuple(grad.shape) != want:
            refuse(
                op,
                f"`grad` has shape {tuple(grad.shape)}, and the result has {want}",
                "",
                "op-shape",
                mj.ShapeError,
            )


def _plan(
    op: str, a: str, x: Any, b: str, w: Any, layout: Any, weight_layout: Any, groups: Any, rank: int
) -> _Plan:
    check_array(op, b, w, NUMBERS, "numbers")
    _same_dtype(op, a, x, b, w)
    letters = letters_of(op, layout, rank)
    if "N" not in letters or "C" not in letters:
        refuse(
            op,
            f"the layout {letters!r} lacks N or C",
            "a convolution takes a batch of channels: 'NCHW', 'NHWC'",
        )
    spatial = "".join(c for c in "DHW" if c in letters)
    assumed = f"{spatial}IO" if letters[-1] == "C" else f"OI{spatial}"
    weights = assumed if weight_layout is None else weight_layout
    if sorted(weights) != sorted(f"OI{spatial}"):
        refuse(op, f"{weights!r} is no layout of weights for {letters!r}", f"for example {assumed!r}")
    return _Plan(letters, weights, whole(op, "groups", groups, 1))


def _same_dtype(op: str, a: str, x: Any, b: str, y: Any) -> None:
    check_array(op, b, y, NUMBERS, "numbers")
    if x.dtype != y.dtype:
        refuse(op, f"`{a}` is {x.dtype.name} and `{b}` is {y.dtype.name}; both have one dtype",
               f"convert one: `{b}.astype(…)`", "op-dtype", mj.TypeFault)  # fmt: skip


# ---- calls ----


@mj.jit(static=["plan"])
def _conv(x: Any, w: Any, bias: Any, plan: _Plan) -> Any:
    def run(x: Any, w: Any, *bias: Any) -> Any:
        return _forward(plan, x, w, *bias)

    def forward(*given: Any) -> Any:
        return run(*given), given[:2]

    def backward(kept: Any, grad: Any) -> Any:
        x, w = kept
        summed = tuple(k for k, c in enumerate(plan.layout) if c != "C")
        more = () if bias is None else (grad.sum(axis=summed),)
        return (_grad_input(grad, w, plan), _grad_weight(grad, x, plan), *more)

    rule = mj.custom_vjp(run)
    rule.defvjp(forward, backward)
    return rule(x, w) if bias is None else rule(x, w, bias)


@mj.jit(static=["plan"])
def _grad_input(grad: Any, w: Any, plan: _Plan) -> Any:
    def run(grad: Any, w: Any) -> Any:
        return _to_input(plan, grad, w)

    def backward(kept: Any, given: Any) -> Any:
        grad, w = kept
        return _conv(given, w, None, plan), _grad_weight(grad, given, plan)

    rule = mj.custom_vjp(run)
    rule.defvjp(lambda *given: (run(*given), given), backward)
    return rule(grad, w)


@mj.jit(static=["plan"])
def _grad_weight(grad: Any, x: Any, plan: _Plan) -> Any:
    def run(grad: Any, x: Any) -> Any:
        return _to_weights(plan, grad, x)

    def backward(kept: Any, given: Any) -> Any:
        grad, x = kept
        return _conv(x, given, None, plan), _grad_input(grad, given, plan)

    rule = mj.custom_vjp(run)
    rule.defvjp(lambda *given: (run(*given), given), backward)
    return rule(grad, x)


# ---- as matrix products; arrays are N, C, D, H, W and weights O, I, D, H, W ----


def _forward(plan: _Plan, x: Any, w: Any, *bias: Any) -> Any:
    x, w = _ordered(x, plan.layout, f"NC{plan.spatial}"), _ordered(w, plan.weights, f"OI{plan.spatial}")
    pads = [(v.before, v.after) for v in plan.each]
    if plan.strided:
        columns, line = _stored_columns(plan, x), None
        counts = [(n + v.extra) // v.stride for n, v in zip(x.shape[2:], plan.each, strict=True)]
    else:
        columns, line = _line_columns(plan, x, pads)
    n, outs, g = x.shape[0], w.shape[0], plan.groups
    y = _copied_if(plan.weights[:2] != "OI", w).reshape(g, outs // g, w.shape[1] * plan.taps) @ columns
    if bias:
        y = y + bias[0].reshape(g, outs // g, 1)
    y = y.reshape(n, outs, y.shape[-1])
    return _ordered(
        y.reshape(n, outs, *counts) if line is None else line.taken(y), f"NC{plan.spatial}", plan.layout
    )


def _to_input(plan: _Plan, grad: Any, w: Any) -> Any:
    grad, w = _ordered(grad, plan.layout, f"NC{plan.spatial}"), _ordered(w, plan.weights, f"OI{plan.spatial}")
    g, n, outs, ins = plan.groups, grad.shape[0], w.shape[0], w.shape[1]
    inner = f"NC{plan.spatial}"
    if plan.strided:
        left = _copied_if(plan.weights[:2] != "OI", w).reshape(g, outs // g, ins * plan.taps)
        columns = left.transpose(0, 2, 1) @ _flat(grad, g)
        flat = columns.reshape(n, ins * g * plan.taps, *grad.shape[2:])
        of = [tuple(getattr(v, name) for v in plan.each) for name in ("stride", "dilation", "before", "rest")]
        return _ordered(mj.stdlib.conv.folded(flat, plan.taps, plan.size, *of), inner, plan.layout)
    columns, line = _line_columns(
        plan, grad, [(v.reach - 1 - v.before, v.reach - 1 - v.after) for v in plan.each]
    )
    turned = mj.stdlib.conv.turned(w, g).reshape(g, ins, outs // g * plan.taps)
    y = turned @ columns
    return _ordered(line.taken(y.reshape(n, g * ins, y.shape[-1])), inner, plan.layout)


def _to_weights(plan: _Plan, grad: Any, x: Any) -> Any:
    x, grad = (_ordered(a, plan.layout, f"NC{plan.spatial}") for a in (x, grad))
    g, outs = plan.groups, grad.shape[1]
    if plan.strided:
        columns, right = _stored_columns(plan, x), _flat(grad, g)
    else:
        columns, line = _line_columns(plan, x, [(v.before, v.after) for v in plan.each])
        right = line.laid(grad, g)
    if columns.dtype.kind != "i":  # the sum over the batch is in f32
        columns, right = columns.astype(np.float32), right.astype(np.float32)
    found = (columns @ right.transpose(0, 1, 3, 2)).sum(axis=0).transpose(0, 2, 1).astype(grad.dtype)
    weights = found.reshape(outs, x.shape[1] // g, *plan.size)
    return _ordered(weights, f"OI{plan.spatial}", plan.weights)


def _ordered(x: Any, now: str, wanted: str) -> Any:
    """`x` with its axes in another order."""
    return x if now == wanted else np.transpose(x, [now.index(c) for c in wanted])


def _copied_if(moved: bool, x: Any) -> Any:
    """An array that is read by its row-major places; one whose axes changed places is stored first."""
    return mj.stdlib.conv.copied(x) if moved else x


def _flat(x: Any, groups: int) -> Any:
    """(N, G, C / G, places)."""
    n, c, *counts = x.shape
    return x.reshape(n, groups, c // groups, prod(counts))


def _stored_columns(plan: _Plan, x: Any) -> Any:
    """(N, G, C / G * taps, windows), computed from `x`."""
    of = [tuple(getattr(v, name) for v in plan.each) for name in ("stride", "dilation", "before", "extra")]
    found = mj.stdlib.conv.columns(x, plan.taps, plan.size, *of)
    n, _, *counts = found.shape
    return found.reshape(n, plan.groups, x.shape[1] // plan.groups * plan.taps, prod(counts))


@dataclass(frozen=True)
class _Line:
    """A padded array as one line: what a step along each axis is worth, and the windows along each, one behind another."""

    pitches: tuple[Any, ...]
    counts: tuple[Any, ...]
    reaches: tuple[int, ...]

    def span(self, first: int) -> Any:
        """From the first window to the last, along the axes from `first` on."""
        steps = zip(self.counts[first:], self.pitches[first:], strict=True)
        return sum(((count - 1) * pitch for count, pitch in steps), start=1)

    @property
    def whole(self) -> bool:
        """Whether there is nothing but windows in the line."""
        return all(r == 1 for r in self.reaches[1:])

    def taken(self, y: Any) -> Any:
        """The windows of a line (N, C, span), each in its place (N, C, …)."""
        if self.whole:
            return y.reshape(*y.shape[:2], *self.counts)
        for k in range(len(self.counts) - 1):
            y = windows(y, 2 + k, self.counts[k], self.pitches[k], self.span(k + 1))
        return y

    def laid(self, x: Any, groups: int) -> Any:
        """The other way: (N, C, …) on the line, zeros between, as (N, G, C / G, span)."""
        if self.whole:
            return _flat(x, groups)
        more = (0, *(r - 1 for r in self.reaches[1:]))
        return _flat(mj.stdlib.conv.padded(x, (0,) * len(more), more), groups)[..., : self.span(0)]


def _line_columns(plan: _Plan, x: Any, pads: Sequence[tuple[int, int]]) -> tuple[Any, _Line]:
    """(N, G, C / G * taps, span), a view of `x` with these pads, and its line."""
    g, (n, c, *extents) = plan.groups, x.shape
    if any(p != (0, 0) for p in pads):
        x = mj.stdlib.conv.padded(x, tuple(b for b, _ in pads), tuple(b + a for b, a in pads))
        extents = x.shape[2:]
    else:
        x = _copied_if(plan.layout[1] != "C", x)
    pitches = tuple(prod(extents[k + 1 :]) for k in range(len(extents)))
    counts = tuple(e - (v.reach - 1) for e, v in zip(extents, plan.each, strict=True))
    line = _Line(pitches, counts, tuple(v.reach for v in plan.each))
    found, count = x.reshape(n, g, c // g, prod(extents)), prod(extents)
    for k, (v, pitch) in enumerate(zip(plan.each, pitches, strict=True)):
        count = count - (v.reach - 1) * pitch
        found = windows(found, 3 + k, v.size, v.dilation * pitch, count)
    return found.reshape(n, g, c // g * plan.taps, count), line
