"""Recurrent layers; the cells and their walk along a sequence are in recurrence.py.

In: a sequence, weights, biases and states as PyTorch or MPSGraph lays them out. Out: the states. Here the arguments are
checked, and brought into one form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np

import metaljit as mj
from metaljit.stdlib_ops.operands import FLOATS, Operand, check_array, refuse
from metaljit.stdlib_ops.recurrence import ACTIVATIONS, Cell, Walk, gru_cell, lstm_cell, rnn_cell

Weights: TypeAlias = "Operand | Sequence[Operand]"  # of one direction, or of both


def rnn(
    x: Operand,
    w_ih: Weights | None,
    w_hh: Weights,
    b_ih: Weights | None = None,
    b_hh: Weights | None = None,
    h0: Operand | None = None,
    *,
    activation: str = "tanh",
    reverse: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Any, Any]:
    """The recurrent layer `h = activation(w_ih x + b_ih + w_hh h + b_hh)` along a sequence.

    x: (T, N, I), T steps of N sequences; (N, T, I) if `batch_first`.
    w_ih: (H, I); None if `x` holds the products already, its last axis then being H.
    w_hh: (H, H). b_ih, b_hh: (H,), None for 0.
    h0: (1, N, H) or (N, H): the state before the first step; None for 0.
    activation: "tanh", "relu", "sigmoid", "hard_sigmoid" (`clip(0.2 x + 0.5, 0, 1)`) or "none".
    reverse: goes from the last step to the first; each state stays in the place of its step.
    bidirectional: a layer in each direction. Weights and biases are then pairs (forward, backward), or arrays with a first
        axis of 2 or with both directions one behind the other; `h0` is (2, N, H) or (N, 2 * H).

    Returns the states (T, N, H), or (T, N, 2 * H) of both directions, in the layout of `x`, and the last states (1, N, H)
    or (2, N, H). All arrays have one dtype, float32, float16 or bfloat16. A step is one kernel; the gradient keeps what
    went into the activation at each step.

    Raises TypeFault for other dtypes or several, ShapeError for shapes that do not go together, LaunchFault for an
    activation that does not exist.
    Compare: MPSGraph `singleGateRNN` (whose activation is relu unless another is named); PyTorch `nn.RNN`;
    TensorFlow `keras.layers.SimpleRNN`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[[1.0, 2.0]], [[-1.0, 0.5]]], np.float32)
        >>> w_ih, w_hh = np.array([[0.1, 0.2]], np.float32), np.array([[0.1]], np.float32)
        >>> y, last = ops.rnn(x, w_ih, w_hh, b_ih=np.array([0.01], np.float32))
        >>> y[:, 0, 0].round(4), last.shape
        (array([0.4699, 0.0569], dtype=float32), (1, 1, 1))
    """
    if activation not in ACTIVATIONS:
        refuse("rnn", f"{activation!r} is no activation", "there are " + ", ".join(map(repr, ACTIVATIONS)))
    layer = _Layer("rnn", rnn_cell(activation), reverse, bidirectional, batch_first)
    y, last = layer.run(x, w_ih, w_hh, b_ih, b_hh, {"h0": h0})
    return y, last[0]


def lstm(
    x: Operand,
    w_ih: Weights | None,
    w_hh: Weights,
    b_ih: Weights | None = None,
    b_hh: Weights | None = None,
    h0: Operand | None = None,
    c0: Operand | None = None,
    *,
    gates: str = "ifgo",
    reverse: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Any, Any, Any]:
    """The long short-term memory along a sequence: `c = f * c + i * g`, `h = o * tanh(c)`.

    The gates are `w_ih x + b_ih + w_hh h + b_hh`, through tanh for g and the logistic function for i, f and o.

    x: (T, N, I), T steps of N sequences; (N, T, I) if `batch_first`.
    w_ih: (4 * H, I), a block of H rows for each gate; None if `x` holds the products already, its last axis being 4 * H.
    w_hh: (4 * H, H). b_ih, b_hh: (4 * H,), None for 0.
    h0, c0: (1, N, H) or (N, H): the states before the first step; None for 0.
    gates: the order of the blocks. "ifgo" is that of PyTorch, Keras and MPSGraph (which calls g z), "igfo" MPSGraph's with
        `forgetGateLast`, "iofg" that of ONNX.
    reverse: goes from the last step to the first; each state stays in the place of its step.
    bidirectional: a layer in each direction. Weights and biases are then pairs (forward, backward), or arrays with a first
        axis of 2 or with both directions one behind the other; `h0` and `c0` are (2, N, H) or (N, 2 * H).

    Returns the states h (T, N, H), or (T, N, 2 * H) of both directions, in the layout of `x`, and the last h and the last
    c, (1, N, H) or (2, N, H). All arrays have one dtype, float32, float16 or bfloat16. A step is one kernel; the gradient
    keeps c and what went into the gates at each step.

    Raises TypeFault for other dtypes or several, ShapeError for shapes that do not go together, LaunchFault for gates that
    do not exist.
    Compare: MPSGraph `LSTM`; PyTorch `nn.LSTM`; TensorFlow `keras.layers.LSTM`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[[1.0, 2.0]], [[-1.0, 0.5]]], np.float32)
        >>> w_ih = np.array([[0.1, 0.2], [0.3, -0.1], [0.5, 0.4], [-0.2, 0.1]], np.float32)
        >>> w_hh = np.array([[0.1], [0.2], [0.3], [0.4]], np.float32)
        >>> y, h, c = ops.lstm(x, w_ih, w_hh, b_ih=np.array([0.01, 0.02, 0.03, 0.04], np.float32))
        >>> y[:, 0, 0].round(4), c[0, 0].round(4)
        (array([0.2526, 0.0808], dtype=float32), array([0.1363], dtype=float32))
    """
    _check_gates("lstm", gates, "ifgo")
    layer = _Layer("lstm", lstm_cell(gates), reverse, bidirectional, batch_first)
    y, last = layer.run(x, w_ih, w_hh, b_ih, b_hh, {"h0": h0, "c0": c0})
    return y, last[0], last[1]


def gru(
    x: Operand,
    w_ih: Weights | None,
    w_hh: Weights,
    b_ih: Weights | None = None,
    b_hh: Weights | None = None,
    h0: Operand | None = None,
    *,
    gates: str = "rzn",
    reset_after: bool = True,
    flip: bool = False,
    reverse: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
) -> tuple[Any, Any]:
    """The gated recurrent unit along a sequence: `h = z * h + (1 - z) * n`.

    r and z are the logistic function of `w_ih x + b_ih + w_hh h + b_hh`, n is tanh of `w_ih x + b_ih + r * (w_hh h + b_hh)`
    if the reset gate comes after the product, and of `w_ih x + b_ih + w_hh (r * h) + b_hh` if it comes before.

    x: (T, N, I), T steps of N sequences; (N, T, I) if `batch_first`.
    w_ih: (3 * H, I), a block of H rows for each gate; None if `x` holds the products already, its last axis being 3 * H.
    w_hh: (3 * H, H). b_ih: (3 * H,), None for 0. b_hh: (3 * H,), or (H,) for n alone; None for 0.
    h0: (1, N, H) or (N, H): the state before the first step; None for 0.
    gates: the order of the blocks. "rzn" is PyTorch's, and MPSGraph's with `resetGateFirst`; "zrn" is MPSGraph's, Keras's
        and ONNX's.
    reset_after: as PyTorch has it, and MPSGraph with `resetAfter`, whose secondary bias is `b_hh`.
    flip: gives z and 1 - z each other's place, MPSGraph's `flipZ`.
    reverse: goes from the last step to the first; each state stays in the place of its step.
    bidirectional: a layer in each direction. Weights and biases are then pairs (forward, backward), or arrays with a first
        axis of 2 or with both directions one behind the other; `h0` is (2, N, H) or (N, 2 * H).

    Returns the states (T, N, H), or (T, N, 2 * H) of both directions, in the layout of `x`, and the last states (1, N, H)
    or (2, N, H). All arrays have one dtype, float32, float16 or bfloat16. A step is one kernel, or two where the reset gate
    comes first; the gradient keeps what went into the gates at each step.

    Raises TypeFault for other dtypes or several, ShapeError for shapes that do not go together, LaunchFault for gates that
    do not exist.
    Compare: MPSGraph `GRU`; PyTorch `nn.GRU`; TensorFlow `keras.layers.GRU`.

    Example:
        >>> import numpy as np
        >>> from metaljit import ops
        >>> x = np.array([[[1.0, 2.0]], [[-1.0, 0.5]]], np.float32)
        >>> w_ih = np.array([[0.1, 0.2], [0.3, -0.1], [0.5, 0.4]], np.float32)
        >>> w_hh = np.array([[0.1], [0.2], [0.3]], np.float32)
        >>> b_ih = np.array([0.01, 0.02, 0.03], np.float32)
        >>> y, last = ops.gru(x, w_ih, w_hh, b_ih, gates="zrn", reset_after=False)
        >>> y[:, 0, 0].round(4)
        array([0.3261, 0.0571], dtype=float32)
    """
    _check_gates("gru", gates, "rzn")
    layer = _Layer("gru", gru_cell(gates, bool(reset_after), bool(flip)), reverse, bidirectional, batch_first)
    y, last = layer.run(x, w_ih, w_hh, b_ih, b_hh, {"h0": h0})
    return y, last[0]


def _check_gates(op: str, gates: Any, letters: str) -> None:
    if not isinstance(gates, str) or sorted(gates) != sorted(letters):
        refuse(
            op,
            f"`gates` names each of {', '.join(letters)} once and is {gates!r}",
            f"PyTorch's are {letters!r}",
        )


@dataclass(frozen=True)
class _Layer:
    """An op's call without its arrays."""

    op: str
    cell: Cell
    reverse: bool
    bidirectional: bool
    batch_first: bool

    def run(
        self,
        x: Operand,
        w_ih: Weights | None,
        w_hh: Weights,
        b_ih: Weights | None,
        b_hh: Weights | None,
        states: dict[str, Operand | None],
    ) -> tuple[Any, list[Any]]:
        """The states, and the last of each kind."""
        self._array("x", x, x)
        if len(x.shape) != 3:
            self._unfit(f"`x` has shape {x.shape} and takes three axes", "add one of extent 1: `x[:, None]`")
        gates, sides = len(self.cell.order), 1 + bool(self.bidirectional)
        w_hh = self._sides("w_hh", w_hh, x)
        size = _first(w_hh).shape[-1] if len(_first(w_hh).shape) else 0
        features = x.shape[2]
        if w_ih is None:
            if features != sides * gates * size:
                self._unfit(
                    f"without `w_ih` the last axis of `x` is {sides * gates * size}, and `x` has shape {x.shape}"
                )
        else:
            w_ih = self._sides("w_ih", w_ih, x)
            self._fits("w_ih", w_ih, gates * size, features)
        self._fits("w_hh", w_hh, gates * size, size)
        biased: tuple[int, ...] = ()
        if b_ih is not None:
            b_ih = self._sides("b_ih", b_ih, x)
            self._fits("b_ih", b_ih, gates * size)
        if b_hh is not None:
            b_hh = self._sides("b_hh", b_hh, x)
            lone = self.op == "gru" and _count(b_hh) == sides * size
            self._fits("b_hh", b_hh, size if lone else gates * size)
            biased = (self.cell.order.index("n"),) if lone else tuple(range(gates)) if self.cell.apart else ()
        rows = x.shape[0] if self.batch_first else x.shape[1]
        for name, state in states.items():
            if state is not None:
                self._array(name, state, x)
                shape = tuple(state.shape)
                if shape != (sides, rows, size) and shape != (rows, sides * size):
                    self._unfit(f"`{name}` has shape {shape} and takes {(sides, rows, size)}")
        return _run(x, w_ih, w_hh, b_ih, b_hh, list(states.values()), self, biased)  # type: ignore[no-any-return]

    def _sides(self, name: str, given: Weights, x: Operand) -> Weights:
        """An array, or an array for each direction."""
        if isinstance(given, list | tuple):
            if not self.bidirectional or len(given) != 2:
                self._unfit(
                    f"`{name}` is a {type(given).__name__} of {len(given)}, and a pair belongs to `bidirectional`"
                )
            for side in given:
                self._array(name, side, x)
            return tuple(given)
        self._array(name, given, x)
        return given

    def _array(self, name: str, value: Any, x: Operand) -> None:
        check_array(self.op, name, value, FLOATS, "floats")
        if value.dtype != x.dtype:
            refuse(self.op, f"`{name}` is {value.dtype.name} and `x` is {x.dtype.name}; all arrays have one dtype",
                   f"convert it: `{name}.astype(x.dtype)`", "op-dtype", mj.TypeFault)  # fmt: skip

    def _fits(self, name: str, given: Weights, *shape: Any) -> None:
        """The shape for each direction; or for both, with a first axis of 2 or one behind the other."""
        wanted = [shape]
        if self.bidirectional and not isinstance(given, tuple):
            wanted = [(2, *shape), (2 * shape[0], *shape[1:])]
        for side in given if isinstance(given, tuple) else (given,):
            if not any(tuple(side.shape) == w for w in wanted):
                self._unfit(
                    f"`{name}` has shape {tuple(side.shape)} and takes {' or '.join(map(str, wanted))}"
                )

    def _unfit(self, message: str, help: str = "") -> NoReturn:
        refuse(self.op, message, help, "op-shape", mj.ShapeError)


def _first(given: Weights) -> Operand:
    return given[0] if isinstance(given, tuple) else given  # type: ignore[return-value]


def _count(given: Weights) -> Any:
    """How many elements a bias has in all."""
    sides = given if isinstance(given, tuple) else (given,)
    total: Any = 0
    for side in sides:
        total = total + side.size
    return total


# ---- traced ----


@mj.jit(static=["layer", "biased"])
def _run(
    x: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    given: list[Any],
    layer: _Layer,
    biased: tuple[int, ...],
) -> tuple[Any, list[Any]]:
    x = x.swapaxes(0, 1) if layer.batch_first else x
    steps, rows, features = x.shape
    gates, size = len(layer.cell.order), _first(w_hh).shape[-1]
    directions = (False, True) if layer.bidirectional else (bool(layer.reverse),)
    found: list[Any] = []
    for side, reverse in enumerate(directions):
        weights = _side(w_hh, side, len(directions), gates, size, size)
        if w_ih is None:
            inputs = x.reshape(steps, rows, len(directions), gates, size)[:, :, side]
        else:
            columns = _side(w_ih, side, len(directions), gates * size, features).T
            inputs = x.reshape(steps * rows, features) @ columns
        for bias in (b_ih, None if biased else b_hh):
            if bias is not None:
                inputs = inputs + _side(
                    bias, side, len(directions), *inputs.shape[2 if w_ih is None else 1 :]
                )
        inputs = inputs.reshape(steps, rows, gates, size)
        own = _side(b_hh, side, len(directions), len(biased), size) if biased else ()
        zero = np.zeros_like(np.broadcast_to(weights[0, 0], (rows, size)))
        states = [zero if s is None else _state(s, side, len(directions)) for s in given]
        found.append(Walk(layer.cell, reverse, biased)(inputs, weights, own, states))
    y = np.concatenate([first for first, _ in found], axis=2)
    last = [np.stack(parts) for parts in zip(*(last for _, last in found), strict=True)]
    return y.swapaxes(0, 1) if layer.batch_first else y, last


def _side(given: Any, side: int, count: int, *shape: Any) -> Any:
    """What is given for one direction."""
    if isinstance(given, tuple):
        return given[side].reshape(shape)
    return given.reshape(count, *shape)[side]


def _state(given: Any, side: int, count: int) -> Any:
    if len(given.shape) == 3:
        return given[side]
    return given.reshape(given.shape[0], count, given.shape[1] // count)[:, side]
