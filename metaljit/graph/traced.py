"""Arrays and numbers while a function is traced: they know dtype and shape, and what is done with them is written down.

In: NumPy's operators, views and functions. Out: nodes of the graph. A traced value has no data, so Python cannot branch
on it; each way to try is an error that names what to do instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..compiler import graph as g
from ..dtypes import BOOL, F32, DType, from_numpy
from ..extents import Extent, Lit, Sym, op, show
from ..operation_rules import Refusal, check
from ..operations import OPERATIONS
from ..source import Diagnostic, MetaljitError, Source, Span, TypeFault

HERE = __name__.rpartition(".")[0]
PACKAGE = __name__.partition(".")[0]


class Trace:
    """One function being traced. `captured` are arrays that it uses without being given them, in the order of first use."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = g.Graph()
        self.captured: list[tuple[str, Any]] = []

    def node(self, node: g.Node) -> Traced:
        return Traced(self, self.graph.add(node, user_span()))

    def array(self, name: str, dtype: np.dtype[Any], shape: Sequence[Extent]) -> Traced:
        element = from_numpy(dtype)
        if element is None:
            _refuse(
                "graph-dtype",
                f"{name!r} holds {dtype}, which has no element type",
                "convert it: `x.astype(np.float32)`",
            )
        return self.node(g.Input(name, element, tuple(shape)))

    def lifted(self, value: Any) -> Traced:
        """An array from outside as one more input."""
        for name, known in self.captured:
            if known is value:
                return self._input(name, value)
        name = f"captured{len(self.captured)}"
        self.captured.append((name, value))
        return self._input(name, value)

    def _input(self, name: str, value: Any) -> Traced:
        return self.array(name, value.dtype, extents_of(name, value.shape))


def extents_of(name: str, shape: Sequence[int]) -> list[Extent]:
    """The extents of an input: symbols, but for those of 1, which broadcast."""
    return [Lit(1) if n == 1 else Sym(f"{name}.{k}") for k, n in enumerate(shape)]


class Size:
    """An extent of a traced array: a number that is known at the call. Arithmetic with it is an extent again."""

    __slots__ = ("extent",)

    def __init__(self, extent: Extent) -> None:
        self.extent = extent

    def __repr__(self) -> str:
        return show(self.extent)

    def _with(self, symbol: str, other: Any, swapped: bool = False) -> Any:
        if not isinstance(other, int | Size):
            return NotImplemented
        a, b = (extent(other), self.extent) if swapped else (self.extent, extent(other))
        return size(op(symbol, a, b))

    def __add__(self, other: Any) -> Any:
        return self._with("+", other)

    def __radd__(self, other: Any) -> Any:
        return self._with("+", other, True)

    def __sub__(self, other: Any) -> Any:
        return self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, True)

    def __mul__(self, other: Any) -> Any:
        return self._with("*", other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._with("//", other)

    def __mod__(self, other: Any) -> Any:
        return self._with("%", other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            return self.extent == other.extent
        self._leaks("compared")

    def __hash__(self) -> int:
        return hash(self.extent)

    def __lt__(self, other: Any) -> bool:
        self._leaks("compared")

    __le__ = __gt__ = __ge__ = __lt__

    def __index__(self) -> int:
        self._leaks("used as a Python number")

    def __bool__(self) -> bool:
        self._leaks("used as a truth")

    def _leaks(self, how: str) -> NoReturn:
        _refuse("traced-extent", f"the extent {self} is {how} while the function is traced, and it differs from call to call",
                'compute with it, or trace for each shape: `@mj.jit(specialize="shapes")`')  # fmt: skip


Dimension: TypeAlias = int | Size


def size(extent: Extent) -> Dimension:
    return int(extent.value) if isinstance(extent, Lit) else Size(extent)


def extent(value: Dimension) -> Extent:
    return value.extent if isinstance(value, Size) else Lit(int(value))


class Traced:
    """An array of a trace; 0-d ones are numbers too."""

    __slots__ = ("ref", "trace")
    __array_priority__ = 1000.0

    def __init__(self, trace: Trace, ref: g.Ref) -> None:
        self.trace, self.ref = trace, ref

    @property
    def node(self) -> g.Node:
        return self.trace.graph.nodes[self.ref]

    @property
    def element(self) -> DType:
        return self.node.dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.node.dtype.numpy

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(map(self.trace.graph.extent, self.node.shape))

    @property
    def shape(self) -> tuple[Dimension, ...]:
        return tuple(map(size, self.extents))

    @property
    def ndim(self) -> int:
        return len(self.node.shape)

    @property
    def size(self) -> Dimension:
        total: Extent = Lit(1)
        for e in self.extents:
            total = op("*", total, e)
        return size(total)

    def __repr__(self) -> str:
        return f"<traced {self.element}[{', '.join(map(show, self.extents))}]>"

    # ---- what needs data ----

    def _leaks(self, what: str, instead: str) -> NoReturn:
        _refuse("traced-value", f"{what}, but {self!r} has no value while the function is traced", instead)

    def __bool__(self) -> bool:
        self._leaks(
            "Python asks whether this is true",
            "branch on the device: `mj.cond(p, f, g, x)` or `np.where(p, a, b)`",
        )

    def __float__(self) -> float:
        self._leaks("Python asks for a number", "return the array and convert the result")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._leaks(
            "NumPy asks for the data", "use the array's own operators, metaljit's ops, or your own kernels"
        )

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array")
        found = self.shape[0]
        return found if isinstance(found, int) else found.__index__()

    def __iter__(self) -> Iterator[Any]:
        self._leaks("Python iterates over this array", "`mj.for_loop` runs on the device")

    __hash__ = None  # type: ignore[assignment]


def user_span() -> Span:
    """The line outside this package that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame = frame.f_back
    if frame is None:
        return Span(Source("<unknown>", ""), 0, 0)
    import linecache

    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).rstrip("\n")
    start = len(text) - len(text.lstrip())
    return Span(Source(name, text, line), start, len(text))


def _refuse(slug: str, message: str, help: str = "", error: type[MetaljitError] = TypeFault) -> NoReturn:
    raise error(Diagnostic(slug, message, user_span(), help=help))


# ---- elementwise ----

Operand: TypeAlias = Any


def elementwise(name: str, *args: Operand) -> Traced:
    """A row of the operation table on traced arrays, arrays from outside, and numbers; NumPy's broadcasting."""
    trace = next(a for a in args if isinstance(a, Traced)).trace
    arrays = [_entered(trace, a) for a in args]
    row = OPERATIONS[name]
    types = _types(arrays)
    try:
        typing = check(row, types)
    except Refusal as e:
        _refuse("operator-types", f"{name}: {e}")
    shape = broadcast(trace, [a.extents for a in arrays if isinstance(a, Traced)])
    refs = []
    for a, type in zip(arrays, types, strict=True):
        made = a if isinstance(a, Traced) else trace.node(g.Fill(a, type))
        refs.append(stretched(made, shape).ref)
    return trace.node(g.Elementwise(name, tuple(refs), typing.result, shape))


def _entered(trace: Trace, value: Operand) -> Traced | int | float | bool:
    if isinstance(value, Traced):
        if value.trace is not trace:
            _refuse(
                "other-trace",
                "an array of another trace is used here",
                "return it from the function that made it",
            )
        return value
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.generic):
        element = from_numpy(value.dtype)
        if element is not None:
            return trace.node(g.Fill(value.item(), element))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return trace.lifted(value)
    _refuse("not-an-array", f"an array or a number is due here, found {type(value).__name__}")


def _types(values: Sequence[Traced | int | float | bool]) -> list[DType]:
    """The types of operands; a Python number takes the type that it stands beside."""
    known = [v.element for v in values if isinstance(v, Traced)]
    beside = max(known, key=lambda t: (t.is_float, t.bits), default=F32)
    return [v.element if isinstance(v, Traced) else _literal_type(v, beside) for v in values]


def _literal_type(value: int | float | bool, beside: DType) -> DType:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return beside if beside.is_float else F32
    from ..dtypes import I32

    return I32 if beside == BOOL else beside


def broadcast(trace: Trace, shapes: Sequence[Sequence[Extent]]) -> tuple[Extent, ...]:
    """NumPy's common shape. Extents are compared at the call where they are not known; only a known 1 is stretched."""
    rank = max((len(s) for s in shapes), default=0)
    found: list[Extent] = []
    for k in range(rank):
        here = [s[k - rank + len(s)] for s in shapes if k >= rank - len(s)]
        wide = [e for e in here if e != Lit(1)]
        total = wide[0] if wide else Lit(1)
        for e in wide[1:]:
            if isinstance(total, Lit) and isinstance(e, Lit) and total != e:
                shown = " and ".join("(" + ", ".join(map(show, s)) + ")" for s in shapes)
                _refuse("shape-mismatch", f"shapes {shown} do not go together")
            total = trace.graph.equate(total, e, "operands have one shape", user_span())
        found.append(total)
    return tuple(map(trace.graph.extent, found))


def stretched(array: Traced, shape: Sequence[Extent]) -> Traced:
    """The array broadcast to a shape."""
    own = array.extents
    if own == tuple(shape) or not own:
        return array
    first = len(shape) - len(own)
    along = tuple(
        None if e == Lit(1) and shape[first + k] != Lit(1) else first + k for k, e in enumerate(own)
    )
    return array.trace.node(g.View(array.ref, g.Axes(along), array.element, tuple(shape)))


def _binary(name: str, swapped: bool = False) -> Any:
    def method(self: Traced, other: Operand) -> Any:
        if isinstance(other, str | bytes | list | tuple | dict) or other is None:
            return NotImplemented
        return elementwise(name, other, self) if swapped else elementwise(name, self, other)

    return method


def _unary(name: str) -> Any:
    return lambda self: elementwise(name, self)


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
_UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}
for _word, _name in _OPERATORS.items():
    setattr(Traced, f"__{_word}__", _binary(_name))
    setattr(Traced, f"__r{_word}__", _binary(_name, True))
for _word, _name in _COMPARISONS.items():
    setattr(Traced, f"__{_word}__", _binary(_name))
for _word, _name in _UNARY.items():
    setattr(Traced, f"__{_word}__", _unary(_name))
_UFUNCS = {alias: row.name for row in OPERATIONS.values() for alias in (row.name, *row.aliases)}


def _array_ufunc(self: Traced, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
    if method != "__call__" or named or ufunc.__name__ not in _UFUNCS:
        return NotImplemented
    return elementwise(_UFUNCS[ufunc.__name__], *args)


Traced.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
