"""Reading and writing arrays: the bounds proof, guards, borders, and the margins within which they vanish.

In: a view or a local array and index values. Out: a value, or a store. An index is proved in range, folded by
a border, guarded, or (by the user's word) unchecked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from ...dtypes import BOOL, I32, I64, U32, U64, DType
from ...extents import Sym
from ...operations import OPERATIONS
from ...source import Diagnostic, Span
from ...symbols import BORDER_MODES
from .. import ir
from ..bounds import Poly
from .arithmetic import apply, join_conditions
from .body import Body, Unit
from .convert import convert, implicit, index_type
from .literals import describe, typed
from .values import (
    Group,
    Literal,
    NeedsConstant,
    Private,
    Typed,
    Value,
    View,
    fault,
    join_literals,
    join_types,
)

ZERO = ir.Const(0, I32)
SELECTED = 32  # computed items that a run-time index may choose from
PERIODIC = ("reflect", "symmetric", "wrap", "antiperiodic")


def flat_indices(values: Sequence[Value]) -> list[Value]:
    """`u[p]` with an index or tuple p is `u[*p]`."""
    flat: list[Value] = []
    for v in values:
        flat += v.items if isinstance(v, Group) else [v]
    return flat


def _axes(view: View | Private, indices: Sequence[Value], span: Span) -> list[Value]:
    flat = flat_indices(indices)
    name = view.buffer.name if isinstance(view, View) else view.local.name
    if len(flat) != len(view.shape):
        dimensions = "1 dimension" if len(view.shape) == 1 else f"{len(view.shape)} dimensions"
        fault(
            "wrong-rank",
            f"{name!r} has {dimensions} but is indexed with {len(flat)}",
            span,
            "1 index" if len(flat) == 1 else f"{len(flat)} indices",
            second=(view.declared, "declared here"),
            help=f"write all indices in one pair of brackets: `{name}[…, …]`"
            if len(flat) < len(view.shape)
            else "",
        )
    return flat


def _refuse_negative(value: Value, extent: Value, name: str, span: Span) -> None:
    if isinstance(value, Literal) and isinstance(value.value, int) and value.value < 0:
        last = (
            f"{extent.expr.name} - {-value.value}"
            if isinstance(extent, Typed) and isinstance(extent.expr, ir.Uniform)
            else (
                str(extent.value + value.value)
                if isinstance(extent, Literal) and isinstance(extent.value, int)
                else ""
            )
        )
        fault(
            "negative-index",
            f"the index {value.value} of {name!r} is negative, and there is no wrap-around",
            span,
            help=f"write `{name}[{last}]` for an element counted from the end"
            if last
            else "count from the front",
        )


def _refuse_beyond(view: View, value: Value, axis: int, span: Span) -> None:
    """A known index behind the end of a threadgroup array, whose extents are known."""
    extent = view.shape[axis]
    if view.buffer.size is None or not isinstance(value, Literal) or not isinstance(extent, Literal):
        return
    if isinstance(value.value, int) and isinstance(extent.value, int) and value.value >= extent.value:
        _index_range(view.buffer.name, value.value, extent.value, view.declared, span)


def _index_range(name: str, index: int, count: int, declared: Span, span: Span) -> NoReturn:
    message = f"the index {index} is outside {name!r}, which has {count} elements on this axis"
    fault("index-range", message, span, second=(declared, "declared here"))


def read(body: Body, view: View, indices: Sequence[Value], span: Span) -> Value:
    """One element; outside, what the border or the guard gives."""
    flat = _axes(view, indices, span)
    axes: list[Typed] = []
    inside: list[Typed] = []
    sign: Typed | None = None
    for k, value in enumerate(flat):
        mode = view.modes[k]
        if mode is None:
            _refuse_negative(value, view.shape[k], view.buffer.name, span)
            _refuse_beyond(view, value, k, span)
        index = typed(index_type(body, value, span, "an index"), span, I32)
        extent = typed(view.shape[k], span, I32)
        if (
            mode in PERIODIC
            and isinstance(value, Typed)
            and index.poly is None
            and value.type.scalar in (U32, I64, U64)
        ):
            index = Typed(ir.Convert(value.expr, I64, saturating=True))  # folded before it is narrowed
        if proved(body, index, extent) or view.unchecked:
            axes.append(index)
        elif mode is None or mode == "constant":
            axes.append(index)
            inside.append(_in_range(body, view, index, extent, span, mode))
        else:
            always = not is_margin(body.unit, index, extent)
            folded = "wrap" if mode == "antiperiodic" else mode
            if mode == "antiperiodic":
                factor = Typed(ir.Fold("sign", index.expr, extent.expr, always, I32))
                sign = (
                    factor
                    if sign is None
                    else Typed(ir.Apply("multiply", (sign.expr, factor.expr), I32, True))
                )
            axes.append(Typed(ir.Fold(folded, index.expr, extent.expr, always, I32)))
            if extent.poly is None or not body.unit.facts.proves(extent.poly - 1):
                inside.append(
                    Typed(
                        ir.InRange(
                            ZERO, extent.expr, not is_margin(body.unit, Typed(ZERO, Poly.of(0)), extent)
                        )
                    )
                )
    if view.computed is not None:
        value = view.computed(axes)
    else:
        value = Typed(ir.Load(view.buffer, offset_of(view.shape, axes, span), view.element))
    if sign is not None:
        value = _signed(body, value, sign, span)
    if not inside:
        return value
    fill = convert(body, view.fill if view.fill is not None else Literal(0), view.element, span)
    return Typed(ir.Choose(join_conditions("and", inside).expr, value.expr, fill.expr))


def _signed(body: Body, value: Typed, sign: Typed, span: Span) -> Typed:
    factor = convert(body, sign, value.type.scalar, span)
    result = apply(body, OPERATIONS["multiply"], (value, factor), span)
    assert isinstance(result, Typed)
    return result


def proved(body: Body, index: Typed, extent: Typed) -> bool:
    if index.poly is None or extent.poly is None:
        return False
    facts = body.unit.facts
    return facts.proves(index.poly) and facts.proves(extent.poly - index.poly - 1)


def _in_range(body: Body, view: View, index: Typed, extent: Typed, span: Span, mode: str | None) -> Typed:
    margin = is_margin(body.unit, index, extent)
    if mode is None:
        cost = "no cost on whole tiles inside" if margin else "one comparison each time"
        note = Diagnostic(
            "guard",
            f"{view.buffer.name!r} is guarded here: an index is not proved to lie in its extent",
            span,
            cost,
            help="state a border, test the index first, or promise it with `unchecked(…)`",
            severity="note",
        )
        if note not in body.unit.notes:
            body.unit.notes.append(note)
    return Typed(ir.InRange(index.expr, extent.expr, not margin))


def is_margin(unit: Unit, index: Typed, extent: Typed) -> bool:
    """Whether `0 <= index < extent` follows from conditions on positions, which then become margins."""
    if unit.kind != "map" or index.poly is None or extent.poly is None:
        return False
    found = []
    for goal in (index.poly, extent.poly - index.poly - 1):
        if unit.facts.proves(goal):
            continue
        margin = _as_margin(unit, goal)
        if margin is None:
            return False
        found.append(margin)
    unit.margins += [m for m in found if m not in unit.margins]
    return True


def _as_margin(unit: Unit, goal: Poly) -> ir.Margin | None:
    keep = frozenset(unit.position_symbols) | frozenset(unit.uniform_symbols)
    sure = unit.facts.eliminate(goal, keep)
    if sure is None:
        return None
    if sure.constant is not None:
        return None  # it never holds
    positions = sure.symbols() & set(unit.position_symbols)
    if len(positions) > 1:
        return None
    axis, coefficient, rest = -1, 0, sure
    if positions:
        (symbol,) = positions
        parts = sure.split(symbol)
        if parts is None or parts[0].constant is None:
            return None
        axis, coefficient, rest = unit.position_symbols[symbol], parts[0].constant, parts[1]
    terms = tuple(
        (tuple(unit.uniform_symbols[s] for s in monomial), c) for monomial, c in sorted(rest.terms.items())
    )
    for name in sorted({n for names, _ in terms for n in names} - unit.uniforms.keys()):
        unit.uniform(name, I32, Sym(name))  # an extent of the graph that nothing else here needs
    return ir.Margin(axis, coefficient, terms)


def offset_of(shape: Sequence[Value], axes: Sequence[Typed], span: Span) -> ir.Expr:
    """Row-major; exact, because an element of an array has an offset below 2³¹."""
    total: ir.Expr = ZERO
    for k, axis in enumerate(axes):
        if k == 0:
            total = axis.expr
            continue
        extent = typed(shape[k], span, I32).expr
        if total != ZERO and extent != ir.Const(1, I32):
            total = ir.Apply("multiply", (total, extent), I32, True)
        if axis.expr != ZERO:
            total = axis.expr if total == ZERO else ir.Apply("add", (total, axis.expr), I32, True)
    return total


def write(body: Body, view: View, indices: Sequence[Value], value: Value, target: Span, span: Span) -> None:
    """Stores one element of an Out or InOut array; outside, nothing. `span` is the value's."""
    offset, guard = place(body, view, indices, target)
    element = implicit(body, value, view.element, span, f"an element of {view.buffer.name!r}")
    body.emit(ir.Store(view.buffer, offset, element.expr, guard, target))


def place(body: Body, view: View, indices: Sequence[Value], span: Span) -> tuple[ir.Expr, ir.Expr | None]:
    """The flat offset of an element that is written, and the condition under which it exists."""
    refuse_read_only(view, span)
    if any(m is not None for m in view.modes):
        fault("read-only", "a bordered view cannot be written", span, help="write to the array itself")
    axes: list[Typed] = []
    inside: list[Typed] = []
    for k, v in enumerate(_axes(view, indices, span)):
        _refuse_negative(v, view.shape[k], view.buffer.name, span)
        _refuse_beyond(view, v, k, span)
        index = typed(index_type(body, v, span, "an index"), span, I32)
        extent = typed(view.shape[k], span, I32)
        axes.append(index)
        if not proved(body, index, extent) and not view.unchecked:
            inside.append(_in_range(body, view, index, extent, span, None))
    guard = join_conditions("and", inside).expr if inside else None
    return offset_of(view.shape, axes, span), guard


def refuse_read_only(view: View, span: Span) -> None:
    if not view.buffer.writable:
        fault(
            "read-only",
            f"{view.buffer.name!r} is an argument that is only read",
            span,
            second=(view.declared, "declared here"),
            help="declare it `Out[…]` or `InOut[…]`, or return the value",
        )


def read_private(body: Body, array: Private, indices: Sequence[Value], span: Span) -> Value:
    offset, guard = _private_place(body, array, indices, span)
    load = ir.LocalLoad(array.local, offset)
    if guard is None:
        return Typed(load)
    zero = convert(body, Literal(0), array.local.type, span)
    return Typed(ir.Choose(guard, load, zero.expr))


def write_private(
    body: Body, array: Private, indices: Sequence[Value], value: Value, target: Span, span: Span
) -> None:
    offset, guard = _private_place(body, array, indices, target)
    element = implicit(body, value, array.local.type, span, f"an element of {array.local.name!r}")
    body.emit(ir.LocalStore(array.local, offset, element.expr, guard, target))


def _private_place(
    body: Body, array: Private, indices: Sequence[Value], span: Span
) -> tuple[ir.Expr, ir.Expr | None]:
    axes: list[Typed] = []
    inside: list[Typed] = []
    for k, v in enumerate(_axes(array, indices, span)):
        extent = Literal(array.shape[k])
        _refuse_negative(v, extent, array.local.name, span)
        if isinstance(v, Literal) and isinstance(v.value, int) and v.value >= array.shape[k]:
            _index_range(array.local.name, v.value, array.shape[k], array.declared, span)
        index = typed(index_type(body, v, span, "an index"), span, I32)
        axes.append(index)
        bound = typed(extent, span, I32)
        if not proved(body, index, bound) and not array.unchecked:
            inside.append(Typed(ir.InRange(index.expr, bound.expr, True)))
    shape = [Literal(n) for n in array.shape]
    return offset_of(shape, axes, span), join_conditions("and", inside).expr if inside else None


def table(body: Body, items: Sequence[Value], index: Value, span: Span) -> Value:
    """A tuple at an index: an item for a known one, a constant table for a run-time index into numbers."""
    numbers = [i.value for i in items if isinstance(i, Literal) and isinstance(i.value, int | float)]
    whole_table = len(numbers) == len(items) > 0
    unrolled = isinstance(index, Typed) and isinstance(index.expr, ir.Const)
    if isinstance(index, Typed) and isinstance(index.expr, ir.Const):
        index = Literal(index.expr.value)
    if isinstance(index, Literal):
        if not isinstance(index.value, int) or isinstance(index.value, bool):
            fault("index-type", f"a tuple is indexed by integers, not {index.value!r}", span)
        if not -len(items) <= index.value < len(items):
            fault("index-range", f"the tuple has {len(items)} items and no item {index.value}", span)
        item = items[index.value]
        # an unrolled loop finds the types that a loop would
        return typed(item, span, _table_type(numbers, span)) if unrolled and whole_table else item
    if items and all(isinstance(i, Group) for i in items):
        return _rows(body, [i for i in items if isinstance(i, Group)], index, span)
    if not whole_table:
        return _selected(body, items, index, span)
    element = _table_type(numbers, span)
    at = typed(index_type(body, index, span, "an index"), span, I32)
    bound = typed(Literal(len(items)), span, I32)
    values = tuple(element_value(n, element) for n in numbers)
    load = ir.Table(values, element, at.expr)
    poly = (
        body.unit.facts.symbol("table", [int(min(numbers))], [int(max(numbers))])
        if element.is_integer
        else None
    )
    if proved(body, at, bound):
        return Typed(load, poly)
    zero = ir.Const(element_value(0, element), element)
    return Typed(ir.Choose(ir.InRange(at.expr, bound.expr, True), load, zero))


def _rows(body: Body, rows: Sequence[Group], index: Value, span: Span) -> Value:
    """A tuple of tuples at a run-time index: column by column."""
    if len({len(r.items) for r in rows}) != 1:
        fault("not-constant", "tuples of different lengths cannot be indexed at run time", span)
    at = body.pinned(index, span)
    columns = zip(*(r.items for r in rows), strict=True)
    return Group(tuple(table(body, column, at, span) for column in columns))


def _selected(body: Body, items: Sequence[Value], index: Value, span: Span) -> Value:
    """A tuple of computed numbers at a run-time index: a chain of choices; 0 outside."""
    if not items or len(items) > SELECTED or not all(isinstance(i, Typed | Literal) for i in items):
        message = f"only a tuple of at most {SELECTED} numbers can be indexed at run time"
        raise NeedsConstant(
            Diagnostic("not-constant", message, span, help="use local_array(…) for computed values")
        )
    typed_items = [i for i in items if isinstance(i, Typed)]
    kinds = [join_types(typed_items[0], i) for i in items] if typed_items else [None]
    if None in kinds:
        fault("type-join", "the items of this tuple have different types", span)
    type = max((k for k in kinds if k is not None), key=lambda k: k.scalar.bits)
    at = typed(index_type(body, body.pinned(index, span), span, "an index"), span, I32)
    chosen = convert(body, Literal(0), type, span).expr
    for k, item in reversed(list(enumerate(items))):
        here = ir.Apply("equal", (at.expr, ir.Const(k, I32)), BOOL)
        chosen = ir.Choose(here, convert(body, item, type, span).expr, chosen)
    return Typed(chosen)


def element_value(value: int | float | bool, dtype: DType) -> int | float | bool:
    return float(value) if dtype.is_float else bool(value) if dtype == BOOL else int(value)


def _table_type(numbers: Sequence[int | float | bool], span: Span) -> DType:
    """The first of i32, u32, i64, u64 that holds all, f32 where one is a float, bool where all are."""
    if len({isinstance(n, bool) for n in numbers}) > 1:
        fault("type-join", "a constant table holds numbers or bools, not both", span)
    joined = join_literals(list(numbers))
    if joined is None:
        fault("literal-range", "no integer type holds all numbers of this table", span)
    return joined


def bordered(body: Body, view: Value, mode: Value, value: Value | None, span: Span, mode_span: Span) -> View:
    """`border(u, mode, value=…)`."""
    if not isinstance(view, View):
        fault("not-an-array", f"border takes an array, found {describe(view)}", span)
    given = mode.items if isinstance(mode, Group) else (mode,) * len(view.shape)
    if len(given) != len(view.shape):
        fault("border-mode", f"{len(given)} modes were given for {len(view.shape)} axes", mode_span)
    modes: list[str | None] = []
    for m in given:
        word = m.value if isinstance(m, Literal) else None
        if word not in BORDER_MODES:
            shown = repr(word) if isinstance(m, Literal) else describe(m)
            fault(
                "border-mode",
                f"{shown} is no border mode",
                mode_span,
                help="there are " + ", ".join(repr(b) for b in BORDER_MODES),
            )
        modes.append(str(word))
    if value is not None and "constant" not in modes:
        fault("border-mode", f"value= belongs to the mode 'constant', and the mode is {modes[0]!r}", span)
    fill = implicit(body, value, view.element, span, "the border's value") if value is not None else None
    if fill is not None:
        pinned = body.pinned(fill, span)
        assert isinstance(pinned, Typed)
        fill = pinned
    if "antiperiodic" in modes and view.element.scalar.kind in ("uint", "bool"):
        fault("border-mode", f"'antiperiodic' negates, and {view.element} has no negative values", mode_span)
    return replace(view, modes=tuple(modes), fill=fill, unchecked=False)
