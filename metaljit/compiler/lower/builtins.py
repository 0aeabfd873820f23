"""The language's own functions: positions and indices, borders, local arrays, atomics, vectors, Python's built-ins.

One row a name in `TABLE`: a function of the body and the call. Operations of numbers stand in the operation
table, reductions of generators in `reductions`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from metaljit.grammar import tree

from ...conversions import check_bitcast, check_saturate
from ...dtypes import BF16, BOOL, F16, F32, I32, U32, DType, Vec
from ...extents import Extent, Lit, Op, Sym
from ...operation_rules import Refusal
from ...operations import OPERATIONS
from ...source import Span
from ...symbols import ATOMICS, COLLECTIVES, THREAD, Builtin
from .. import ir
from ..bounds import Poly
from . import arrays, calls, cooperative, expressions, reductions, shared, tiles, vectors
from .arithmetic import apply, binary, truth
from .body import Body
from .convert import implicit, index_type
from .literals import describe, known, typed
from .specialise import Shapes
from .values import Group, Literal, Meta, Private, Typed, Value, View, fault

LOCAL_BYTES = 1 << 14
Call = Callable[[Body, tree.Call], Value]


def call(body: Body, node: tree.Call, name: str) -> Value:
    """A call of the built-in `name`."""
    row = TABLE.get(name)
    if row is not None:
        return row(body, node)
    fault("not-callable", f"{name!r} cannot be called in a body", node.func.span)


def values_of(body: Body, node: tree.Call, least: int, most: int | None = None) -> list[Value]:
    values, _ = calls.arguments(body, node)
    calls.count(node, values, least, most)
    return values


# ---- positions and indices ----


def _position(body: Body, node: tree.Call) -> Value:
    values_of(body, node, 0)
    if not body.is_kernel:
        fault("position-in-function", "position() is the kernel's; pass it to the function", node.span)
    if body.unit.kind == "grid" and body.unit.base is None:  # a map kernel may be part of a grid
        fault("position-in-grid", "a grid kernel has no position()", node.span, help="use `global_index()`")
    if len(body.positions) == 1 and not body.always_index:
        return body.positions[0]
    return Group(body.positions, index=True)


def _index(body: Body, node: tree.Call) -> Value:
    values, _ = calls.arguments(body, node)
    if len(values) == 1 and isinstance(values[0], Group):
        values = list(values[0].items)
    items = [index_type(body, v, node.span, "an item of an index") for v in values]
    return Group(tuple(items), index=True)


def _changed_index(change: Callable[[list[Value], int, Value | None], None], extra: int, counts: int) -> Call:
    """`put(p, axis, k)`, `insert(p, axis, k)`, `drop(p, axis)`."""

    def row(body: Body, node: tree.Call) -> Value:
        values = values_of(body, node, counts)
        group = expressions.as_group(body, values[0], node.span)
        axis = known(values[1], node.span, "the axis")
        n = len(group.items) + extra
        if not isinstance(axis, int) or not -n <= axis < n:
            fault("index-range", f"there is no axis {axis} among {n}", node.span)
        items = list(group.items)
        new = index_type(body, values[2], node.span, "an item of an index") if counts == 3 else None
        change(items, axis % n, new)
        return Group(tuple(items), index=group.index or isinstance(values[0], Meta))

    return row


def _put(items: list[Value], axis: int, new: Value | None) -> None:
    assert new is not None
    items[axis] = new


def _insert(items: list[Value], axis: int, new: Value | None) -> None:
    assert new is not None
    items.insert(axis, new)


def _drop(items: list[Value], axis: int, new: Value | None) -> None:
    del items[axis]


def _offsets(body: Body, node: tree.Call) -> Value:
    values = values_of(body, node, 1, 2)
    rank = known(values[0], node.span, "the rank")
    radius = known(values[1], node.span, "the radius") if len(values) == 2 else 1
    if not isinstance(rank, int) or not isinstance(radius, int) or rank < 0 or radius < 0:
        fault("bad-constant", "offsets takes a rank and a radius, both integers", node.span)
    if (2 * radius + 1) ** rank > 4096:
        fault(
            "unroll-limit",
            f"offsets({rank}, {radius}) are {(2 * radius + 1) ** rank} offsets (at most 4096)",
            node.span,
        )
    steps = range(-radius, radius + 1)
    return Group(tuple(Group(tuple(Literal(o) for o in p)) for p in itertools.product(steps, repeat=rank)))


def _thread(name: str) -> Call:
    def row(body: Body, node: tree.Call) -> Value:
        values_of(body, node, 0)
        if body.unit.kind != "grid":
            fault(
                "grid-only",
                f"{name}() belongs to grid kernels",
                node.span,
                help="use `position()` in a map kernel",
            )
        found = body.unit.grid_values[name]
        return found[0] if len(found) == 1 else Group(tuple(found), index=True)

    return row


# ---- arrays ----


def _border(body: Body, node: tree.Call) -> Value:
    values, named = calls.arguments(body, node, keywords=("mode", "value"))
    if "mode" in named:
        values.append(named["mode"])
    calls.count(node, values, 2, 3)
    value = named.get("value", values[2] if len(values) == 3 else None)
    span = node.args[1].span if len(node.args) > 1 else node.span
    return arrays.bordered(body, values[0], values[1], value, node.span, span)


def _unchecked(body: Body, node: tree.Call) -> Value:
    (value,) = values_of(body, node, 1)
    if not isinstance(value, View | Private):
        fault("not-an-array", f"unchecked takes an array, found {describe(value)}", node.span)
    return replace(value, unchecked=True)


def _len(body: Body, node: tree.Call) -> Value:
    (value,) = values_of(body, node, 1)
    match value:
        case View(_, _, shape) if shape:
            return shape[0]
        case Private(_, shape) if shape:
            return Literal(shape[0])
        case Typed() if isinstance(value.type, Vec):
            return Literal(value.type.lanes)
        case Literal(str(text)):
            return Literal(len(text))
        case View() | Private():
            fault("wrong-rank", "an array of rank 0 has no length", node.span)
        case _:
            return Literal(len(expressions.as_group(body, value, node.span).items))


def _local_array(body: Body, node: tree.Call) -> Value:
    """`local_array(f32, n, 2 * n)`: zeros; `local_array(f32, n, values=(…))` or a tuple instead of extents."""
    values, named = calls.arguments(body, node, keywords=("values",))
    if not values:
        calls.count(node, values, 2, 8)
    type = element_type(values[0], node.span)
    extents = values[1:]
    initial: list[Value] | None = None
    if "values" in named:
        initial = _leaves(expressions.as_group(body, named["values"], node.span))
    last = extents[-1] if extents else None
    if isinstance(last, Group) and initial is None:
        initial, extents = _leaves(last), extents[:-1]
    spans = [a.span for a in node.args[1:]] if len(node.args) == len(values) else [node.span] * len(extents)
    shape = tuple(_extent(v, s) for v, s in zip(extents, spans, strict=False))
    if not shape and initial is not None:
        shape = (len(initial),)
    size = 1
    for n in shape:
        size *= n
    if size * type.lanes * type.scalar.nbytes > LOCAL_BYTES:
        fault(
            "local-too-large",
            f"this local array takes {size * type.lanes * type.scalar.nbytes} bytes (at most {LOCAL_BYTES})",
            node.span,
        )
    if initial is not None and len(initial) != size:
        fault("local-values", f"{size} elements were given {len(initial)} values", node.span)
    given = initial if initial is not None else [Literal(0)] * size
    parts = tuple(implicit(body, v, type, node.span, "an element").expr for v in given)
    local = ir.Local("local", type, size, body.unit.number())
    body.emit(ir.LocalArray(local, parts, node.span))
    return Private(local, shape, node.span)


def _leaves(group: Group) -> list[Value]:
    """The items of a tuple of tuples, row by row."""
    return [leaf for i in group.items for leaf in (_leaves(i) if isinstance(i, Group) else [i])]


def element_type(value: Value, span: Span) -> DType | Vec:
    of = value.of if isinstance(value, Meta) else None
    if isinstance(of, Builtin) and of.name == "bool":
        return BOOL
    if isinstance(of, DType | Vec):
        return of
    fault(
        "bad-annotation",
        f"an element type was expected, found {describe(value)}",
        span,
        help="write for example f32",
    )


def _extent(value: Value, span: Span) -> int:
    number = known(value, span, "the extent of a local array")
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        fault("bad-extent", f"the extent of a local array is a whole number, not {number!r}", span)
    return number


def _atomic(op: str) -> Call:
    def row(body: Body, node: tree.Call) -> Value:
        extra = 2 if op == "cas" else 1
        values = values_of(body, node, 2 + extra)
        view = values[0]
        if not isinstance(view, View):
            fault(
                "not-an-array", f"an atomic changes an Out or InOut array, found {describe(view)}", node.span
            )
        element = view.element
        allowed = (I32, U32, F32) if op in ("add", "exchange", "min", "max") else (I32, U32)
        if element not in allowed:
            names = ", ".join(str(a) for a in allowed)
            fault(
                "atomic-type",
                f"atomic_{op} works on {names}, and {view.buffer.name!r} holds {element}",
                node.span,
            )
        offset, guard = arrays.place(body, view, [values[1]], node.args[0].span)
        new = tuple(
            implicit(body, v, element, node.span, f"an element of {view.buffer.name!r}").expr
            for v in values[2:]
        )
        var = body.var("old", element)
        body.emit(ir.Atomic(op, var, view.buffer, offset, new, guard, node.span))
        return Typed(ir.Read(var))

    return row


# ---- numbers ----


def _into_type(
    body: Body, node: tree.Call, check: Callable[[DType, DType], None]
) -> tuple[Typed, DType | Vec]:
    """The number and the type that it becomes, of `f(type, x)`, if the shared rule lets it."""
    kind, value = values_of(body, node, 2)
    type = element_type(kind, node.span)
    source = typed(value, node.span)
    try:
        check(source.type.scalar, type.scalar)
    except Refusal as e:
        fault(e.slug, str(e), node.span, help=e.help)
    return source, type


def _saturate(body: Body, node: tree.Call) -> Value:
    source, type = _into_type(body, node, check_saturate)
    if isinstance(type, Vec) or isinstance(source.type, Vec):
        fault("vector-lanes", "saturate takes one number", node.span)
    return Typed(ir.Convert(source.expr, type, saturating=True))


def _bitcast(body: Body, node: tree.Call) -> Value:
    source, type = _into_type(body, node, check_bitcast)
    if type.lanes != source.type.lanes:
        fault("vector-lanes", f"{source.type} and {type} have different lanes", node.span)
    return Typed(ir.Bitcast(source.expr, type))


def _wide(body: Body, node: tree.Call) -> Value:
    (value,) = values_of(body, node, 1)
    type = element_type(value, node.span)
    scalar = reductions.summed(type.scalar) if type.scalar not in (F16, BF16) else F32
    assert isinstance(scalar, DType)
    return Meta(Vec(scalar, type.lanes) if isinstance(type, Vec) else scalar)


def _python_cast(type: DType) -> Call:
    def row(body: Body, node: tree.Call) -> Value:
        if type == BOOL and (condition := calls.mixed_condition(body, node)) is not None:
            calls.count(node, node.args, 1)
            return condition
        (value,) = values_of(body, node, 1)
        if type == BOOL:
            return truth(body, value, node.span)
        if isinstance(value, Literal) and isinstance(value.value, int | float):
            return Literal(int(value.value) if type == I32 else float(value.value))
        return calls.cast_scalar(body, value, type, node.span)

    return row


def _named_operation(name: str) -> Call:
    def row(body: Body, node: tree.Call) -> Value:
        values, _ = calls.arguments(body, node)
        if (
            name == "absolute"
            and len(values) == 1
            and isinstance(values[0], Literal)
            and isinstance(values[0].value, int | float)
        ):
            return Literal(abs(values[0].value))
        calls.count(node, values, OPERATIONS[name].arity)
        if name == "power":
            return binary(body, "**", values[0], values[1], node.span)
        return apply(body, OPERATIONS[name], values, node.span)

    return row


def _round(body: Body, node: tree.Call) -> Value:
    values = values_of(body, node, 1, 2)
    digits = known(values[1], node.span, "the digits of round") if len(values) == 2 else 0
    value = typed(values[0], node.span)
    if value.type.scalar.is_integer or value.type == BOOL:
        return value
    if digits == 0:
        return apply(body, OPERATIONS["rint"], (value,), node.span)
    scale = Literal(float(10 ** abs(int(digits))))
    up, down = ("*", "/") if digits > 0 else ("/", "*")
    rounded = apply(body, OPERATIONS["rint"], (binary(body, up, value, scale, node.span),), node.span)
    return binary(body, down, rounded, scale, node.span)


def _reduction(name: str) -> Call:
    """A reduction of a generator or a tuple; `min` and `max` of several values; `any` and `all` of a bool vector."""

    def row(body: Body, node: tree.Call) -> Value:
        if len(node.args) == 1 and isinstance(node.args[0], tree.Generator):
            return reductions.reduce(body, node, name)
        values, _ = calls.arguments(body, node)
        if len(values) == 1:
            value = values[0]
            if isinstance(value, Typed) and isinstance(value.type, Vec):
                lanes = [Typed(ir.Lane(value.expr, k, value.type.scalar)) for k in range(value.type.lanes)]
                return reductions.reduce_items(body, name, lanes, node.span)
            if isinstance(value, Group | Meta):
                return reductions.reduce_items(
                    body, name, expressions.as_group(body, value, node.span).items, node.span
                )
            fault("not-reducible", f"{name} reduces a generator or a tuple, found {describe(value)}", node.span,
                  help=f"write `{name}(… for … in range(…))`")  # fmt: skip
        if name in ("min", "max") and len(values) > 1:
            return reductions.reduce_items(body, name, values, node.span)
        fault(
            "argument-count",
            f"{name} takes a generator" + (" or several values" if name in ("min", "max") else ""),
            node.span,
        )

    return row


def _ceil_div(body: Body, node: tree.Call) -> Value:
    """The quotient rounded up: the floor, and one more where something remains; 0 for a divisor of 0."""
    a, b = (body.pinned(v, node.span) for v in values_of(body, node, 2))
    floor = binary(body, "//", a, b, node.span)
    rest = binary(body, "!=", binary(body, "%", a, b, node.span), Literal(0), node.span)
    result = binary(body, "+", floor, rest, node.span)
    divisor = (
        b.value if isinstance(b, Literal) else b.poly.constant if isinstance(b, Typed) and b.poly else None
    )
    if (
        isinstance(result, Typed)
        and isinstance(a, Typed)
        and a.poly is not None
        and isinstance(divisor, int)
        and divisor > 0
    ):
        return replace(result, poly=body.unit.quotient("ceil_div", a.poly + (divisor - 1), divisor))
    if isinstance(result, Literal):
        return Literal(int(result.value))  # type: ignore[arg-type]
    return result


# ---- vectors ----


# ---- statements spelled as calls ----


def _print(body: Body, node: tree.Call) -> Value:
    fault("no-print", "print works in interpret mode only; this is compiled", node.span,
          help="call `kernel.interpret(…)`, or set METALJIT_INTERPRET=1")  # fmt: skip


def _require(body: Body, node: tree.Call) -> Value:
    if not body.is_kernel:
        fault("require-in-function", "require stands in a kernel, not in a function", node.span)
    if not 1 <= len(node.args) <= 2 or any(isinstance(a, tree.Star) for a in node.args):
        fault("argument-count", "require takes a condition and a message", node.span)
    condition, *rest = [a for a in node.args if not isinstance(a, tree.Star)]
    spec = body.unit.spec
    shapes = Shapes(body.names, spec.constants, spec.packs, set(spec.scalars))
    message = condition.span.text
    if rest:
        message = expressions.constant_of(body, rest[0], "the message of require")
    required = shapes.extent(condition)
    body.unit.require(required, str(message), node.span)
    body.assume(_holds(body, required))
    return Literal(None)


def _holds(body: Body, condition: Extent) -> list[Poly]:
    """What a required condition says of integers."""
    match condition:
        case Op("and", args):
            return [p for a in args for p in _holds(body, a)]
        case Op(("<" | "<=" | ">" | ">=" | "==") as symbol, (a, b)) if _is_whole(body, a) and _is_whole(
            body, b
        ):
            x, y = body.unit.extent_poly(a), body.unit.extent_poly(b)
            return {"<": [y - x - 1], "<=": [y - x], ">": [x - y - 1], ">=": [x - y], "==": [x - y, y - x]}[
                symbol
            ]
        case _:
            return []


def _is_whole(body: Body, extent: Extent) -> bool:
    """Whether an extent expression is surely an integer."""
    match extent:
        case Lit(value):
            return isinstance(value, int) and not isinstance(value, bool)
        case Sym(name):
            type = body.unit.spec.scalars.get(name, I32)
            return isinstance(type, DType) and type.is_integer
        case Op(op, args):
            return op in ("+", "-", "*", "//", "%", "min", "max", "ceil_div") and all(
                _is_whole(body, a) for a in args
            )


def _static_assert(body: Body, node: tree.Call) -> Value:
    values = values_of(body, node, 1, 2)
    holds = known(values[0], node.args[0].span, "the condition of static_assert")
    if not holds:
        message = known(values[1], node.span, "the message") if len(values) == 2 else node.args[0].span.text
        fault("static-assertion", f"this static assertion is false: {message}", node.span)
    return Literal(None)


TABLE: dict[str, Call] = {
    "position": _position,
    "index": _index,
    "put": _changed_index(_put, 0, 3),
    "insert": _changed_index(_insert, 1, 3),
    "drop": _changed_index(_drop, 0, 2),
    "offsets": _offsets,
    **{n: _thread(n) for n in THREAD},
    "border": _border,
    "unchecked": _unchecked,
    "uniform": cooperative.uniform,
    "threadgroup_array": shared.threadgroup_array,
    "barrier": cooperative.barrier,
    "simdgroup_matrix": tiles.make,
    "simdgroup_fill": tiles.fill,
    "simdgroup_load": tiles.move("load"),
    "simdgroup_store": tiles.move("store"),
    "simdgroup_multiply_accumulate": tiles.multiply_accumulate,
    **{n: cooperative.collective(n) for n in COLLECTIVES},
    "len": _len,
    "local_array": _local_array,
    **{f"atomic_{op}": _atomic(op) for op in ATOMICS},
    "saturate": _saturate,
    "bitcast": _bitcast,
    "wide": _wide,
    "int": _python_cast(I32),
    "float": _python_cast(F32),
    "bool": _python_cast(BOOL),
    "abs": _named_operation("absolute"),
    "pow": _named_operation("power"),
    "mix": _named_operation("mix"),
    "round": _round,
    **{n: _reduction(n) for n in ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")},
    "ceil_div": _ceil_div,
    "dot": vectors.dot,
    "cross": vectors.cross,
    "length": vectors.length,
    "normalize": vectors.normalize,
    "reflect": vectors.reflect,
    "print": _print,
    "require": _require,
    "static_assert": _static_assert,
}
