"""Arrays and numbers while a function is traced: they know dtype and shape, and what is done with them is written down.

In: NumPy's operators, views and functions. Out: nodes of the graph. A traced value has no data, so Python cannot branch
on it; each way to try is an error that names what to do instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from ..compiler import graph as g
from ..dtypes import BOOL, F32, DType, from_numpy
from ..extents import Extent, Lit, Sym, evaluate, op, show, symbols
from ..operation_rules import Refusal, check
from ..operations import OPERATIONS
from ..source import Diagnostic, LaunchFault, MetaljitError, ShapeError, Source, Span, TypeFault
from ..variables import Variable
from .context import current_trace

HERE = __name__.rpartition(".")[0]
PACKAGE = __name__.partition(".")[0]


class Trace:
    """One function being traced.

    `captured` are arrays that it uses without being given them, in the order of first use. `env` has the extents of the
    call that it is traced for; what was decided by them is in `guards`, and the trace serves calls where these hold.
    Without `env` (ahead of time) nothing can be decided.
    """

    def __init__(self, name: str, env: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.graph = g.Graph()
        self.captured: list[tuple[str, Any]] = []
        self.env = dict(env) if env is not None else None
        self.guards: list[Extent] = []
        self.variables: dict[Variable, Traced] = {}
        self.place: Span | None = None  # where nodes come from that no line of the user's makes

    def decided(self, condition: Extent) -> bool | None:
        """Whether a condition on extents holds in this trace; None where that is not known."""
        condition = self.graph.extent(condition)
        if not symbols(condition):
            return bool(evaluate(condition, {}))
        if self.env is None:
            return None
        holds = bool(evaluate(condition, self.env))
        guard = condition if holds else op("not", condition)
        if guard not in self.guards:
            self.guards.append(guard)
        return holds

    def dimension(self, extent: Extent) -> Dimension:
        """An extent as the user sees it."""
        extent = self.graph.extent(extent)
        return int(extent.value) if isinstance(extent, Lit) else Size(self, extent)

    def equal(self, a: Extent, b: Extent, why: str) -> Extent:
        """One extent for two that have to be equal: ShapeError now or at the call where they are not."""
        found = self.graph.equate(a, b, why, user_span())
        if isinstance(a, Lit) or isinstance(b, Lit):  # what a call that does not fit says would not name both
            known = self.env or {}
            m, n = (evaluate(e, known) if symbols(e) <= known.keys() else None for e in (a, b))
            if m is not None and n is not None and m != n:
                fault("shape-mismatch", f"{m} is not {n}: {why}", error=ShapeError)
        return found

    def number(self, name: str, dtype: DType) -> Traced:
        return self.node(g.Number(name, dtype))

    def constant(self, value: Size | int | float | bool, dtype: DType) -> Traced:
        """A Python number, or an extent, as a number of the graph."""
        return self.count(value.extent, dtype) if isinstance(value, Size) else self.node(g.Fill(value, dtype))

    def count(self, extent: Extent, dtype: DType) -> Traced:
        """An extent as a number of the graph."""
        return self.node(g.Count(self.graph.extent(extent), dtype))

    def node(self, node: g.Node) -> Traced:
        return Traced(self, self.graph.add(node, self.place or user_span()))

    def array(self, name: str, dtype: np.dtype[Any], shape: Sequence[Extent]) -> Traced:
        element = from_numpy(dtype)
        if element is None:
            fault(
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
        if self.env is not None:
            self.env |= {f"{name}.{k}": n for k, n in enumerate(value.shape)}
        return self._input(name, value)

    def variable(self, variable: Variable) -> Traced:
        """The value of a variable at this place of the program."""
        if variable not in self.variables:
            self.variables[variable] = self.lifted(variable)
        return self.variables[variable]

    def assign(self, variable: Variable, value: Any) -> Traced:
        """From here on the variable has this value; the call stores it."""
        before = self.variable(variable)
        found = entered(self, value)
        if not isinstance(found, Traced):
            found = self.constant(found, before.element)
        if found.element != before.element or found.ndim != before.ndim:
            fault(
                "variable-unfit",
                f"{variable.name!r} is {before!r}, and is assigned {found!r}",
                "cast the value, or make another variable",
                LaunchFault,
            )
        for a, b in zip(before.extents, found.extents, strict=True):
            self.equal(a, b, f"{variable.name!r} keeps its shape")
        self.variables[variable] = found
        return found

    def _input(self, name: str, value: Any) -> Traced:
        return self.array(name, value.dtype, extents_of(name, value.shape))


def extents_of(name: str, shape: Sequence[int]) -> list[Extent]:
    """The extents of an input: symbols, but for those of 1, which broadcast."""
    return [Lit(1) if n == 1 else Sym(f"{name}.{k}") for k, n in enumerate(shape)]


if TYPE_CHECKING:

    class _Operators:
        """What the tables below give to sizes and arrays."""

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    _Operators = object


class Size(_Operators):
    """An extent of a traced array, a number that each call brings anew. Arithmetic with it is an extent again.

    A comparison, or `int(n)`, is decided by the call that is traced: another trace serves calls where it is decided
    otherwise.
    """

    __slots__ = ("extent", "trace")

    def __init__(self, trace: Trace, extent: Extent) -> None:
        self.trace, self.extent = trace, extent

    def __repr__(self) -> str:
        return show(self.extent)

    def _with(self, symbol: str, other: Any, swapped: bool = False) -> Any:
        if not isinstance(other, int | Size):
            return NotImplemented
        a, b = (extent_of(other), self.extent) if swapped else (self.extent, extent_of(other))
        return self.trace.dimension(op(symbol, a, b))

    def _holds(self, symbol: str, other: Any) -> bool:
        if not isinstance(other, int | Size):
            return symbol == "!="
        found = self.trace.decided(op(symbol, self.extent, extent_of(other)))
        if found is None:
            self._leaks("compared")
        return found

    def __index__(self) -> int:
        if self.trace.env is None:
            self._leaks("used as a Python number")
        value = int(evaluate(self.trace.graph.extent(self.extent), self.trace.env))
        self.trace.decided(op("==", self.extent, Lit(value)))
        return value

    __int__ = __index__

    def __bool__(self) -> bool:
        return self._holds("!=", 0)

    def __hash__(self) -> int:
        return hash(self.extent)

    def _leaks(self, how: str) -> NoReturn:
        fault(
            "traced-extent",
            f"the extent {self} is {how}, and nothing is known of it when this is compiled ahead of time",
            "give the extent in the spec, or compute with it",
        )


for _word, _symbol in {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}.items():
    setattr(Size, f"__{_word}__", lambda self, other, symbol=_symbol: self._with(symbol, other))
    setattr(Size, f"__r{_word}__", lambda self, other, symbol=_symbol: self._with(symbol, other, True))
for _word, _symbol in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Size, f"__{_word}__", lambda self, other, symbol=_symbol: self._holds(symbol, other))


Dimension: TypeAlias = int | Size


def extent_of(value: Dimension) -> Extent:
    return value.extent if isinstance(value, Size) else Lit(int(value))


class Traced(_Operators):
    """An array of a trace; 0-d ones are numbers too."""

    __slots__ = ("ref", "trace")
    __array_priority__ = 1000.0
    __metaljit_traced__ = True  # for those that must not load the compiler to ask

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
        return tuple(map(self.trace.dimension, self.extents))

    @property
    def ndim(self) -> int:
        return len(self.node.shape)

    @property
    def size(self) -> Dimension:
        total: Extent = Lit(1)
        for e in self.extents:
            total = op("*", total, e)
        return self.trace.dimension(total)

    def __repr__(self) -> str:
        return f"<traced {self.element}[{', '.join(map(show, self.extents))}]>"

    # ---- what needs data ----

    def _leaks(self, what: str, instead: str) -> NoReturn:
        fault("traced-value", f"{what}, but {self!r} has no value while the function is traced", instead)

    def __bool__(self) -> bool:
        self._leaks(
            "Python asks whether this is true",
            "branch on the device: `mj.cond(p, f, g, x)` or `np.where(p, a, b)`",
        )

    def __float__(self) -> float:
        self._leaks("Python asks for a number", "return the array and convert the result")

    __int__ = __index__ = __complex__ = __float__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._leaks(
            "NumPy asks for the data", "use the array's own operators, metaljit's ops, or your own kernels"
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        fault(
            "traced-assign",
            "a part of an array is assigned, and arrays of a trace do not change",
            "take the array with that part changed: `x = x.at[…].set(…)`",
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


def fault(slug: str, message: str, help: str = "", error: type[MetaljitError] = TypeFault) -> NoReturn:
    trace = current_trace()
    span = trace.place if trace is not None and trace.place is not None else user_span()
    raise error(Diagnostic(slug, message, span, help=help))


# ---- elementwise ----

Operand: TypeAlias = Any


def elementwise(name: str, *args: Operand) -> Traced:
    """A row of the operation table on traced arrays, arrays from outside, and numbers; NumPy's broadcasting."""
    trace = next(a for a in args if isinstance(a, Traced)).trace
    arrays = [entered(trace, a) for a in args]
    row = OPERATIONS[name]
    if len(args) != row.arity:
        fault("numpy-argument", f"{name} takes {row.arity} operands, found {len(args)}")
    types = _types(arrays)
    try:
        typing = check(row, types)
    except Refusal as e:
        fault("operator-types", f"{name}: {e}")
    shape = broadcast(trace, [a.extents for a in arrays if isinstance(a, Traced)])
    refs = []
    for a, type in zip(arrays, types, strict=True):
        made = (
            a
            if isinstance(a, Traced)
            else trace.count(a.extent, type)
            if isinstance(a, Size)
            else trace.node(g.Fill(a, type))
        )
        refs.append(stretched(made, shape).ref)
    return trace.node(g.Elementwise(name, tuple(refs), typing.result, shape))


def entered(trace: Trace, value: Operand) -> Traced | Size | int | float | bool:
    if isinstance(value, Traced):
        if value.trace is not trace:
            fault(
                "other-trace",
                "an array of another trace is used here",
                "return it from the function that made it",
            )
        return value
    if isinstance(value, Variable):
        return trace.variable(value)
    if isinstance(value, bool | int | float | Size):
        return value
    if isinstance(value, np.generic):
        element = from_numpy(value.dtype)
        if element is not None:
            return trace.node(g.Fill(value.item(), element))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return trace.lifted(value)
    fault("not-an-array", f"an array or a number is due here, found {type(value).__name__}")


def _types(values: Sequence[Traced | Size | int | float | bool]) -> list[DType]:
    """The types of operands; a Python number takes the type that it stands beside."""
    known = [v.element if isinstance(v, Traced) else None for v in values]
    return [t or literal_type(v, known) for t, v in zip(known, values, strict=True)]


def literal_type(value: Any, known: Sequence[DType | None]) -> DType:
    """The type of a Python number, or an extent, beside operands of these types (None: a number too)."""
    beside = max((t for t in known if t), key=lambda t: (t.is_float, t.bits), default=F32)
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
                fault("shape-mismatch", f"shapes {shown} do not go together")
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


OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "invert": "invert", "abs": "absolute"}
for _word, _name in OPERATORS.items():
    setattr(Traced, f"__{_word}__", _binary(_name))
    setattr(Traced, f"__r{_word}__", _binary(_name, True))
for _word, _name in COMPARISONS.items():
    setattr(Traced, f"__{_word}__", _binary(_name))
for _word, _name in UNARY.items():
    setattr(Traced, f"__{_word}__", _unary(_name))
UFUNCS = {alias: row.name for row in OPERATIONS.values() for alias in (row.name, *row.aliases)}


SPECIAL_UFUNCS: dict[str, Any] = {}  # those of more than an element


def _array_ufunc(self: Traced, ufunc: Any, method: str, *args: Any, **named: Any) -> Any:
    if method == "__call__" and not named and ufunc.__name__ in SPECIAL_UFUNCS:
        return SPECIAL_UFUNCS[ufunc.__name__](*args)
    if method != "__call__" or named or ufunc.__name__ not in UFUNCS:
        return NotImplemented
    return elementwise(UFUNCS[ufunc.__name__], *args)


Traced.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
