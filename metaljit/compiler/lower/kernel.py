"""Tree → typed IR: one kernel, specialised for the types of a call.

In: the kernel's tree, its free names, and for each argument its dtype and rank. Out: a verified `ir.Kernel` with
what the call must know (uniforms, requirements, assertions). All faults of a kernel are raised together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from metaljit.grammar import tree
from metaljit.grammar.parser import parse_quoted

from ...arguments import Argument
from ...dtypes import I32, Vec
from ...extents import Extent, Lit, op, product, symbols
from ...program import INDEX_MAX
from ...source import Diagnostic, MetaljitError, Span, TypeFault
from ...symbols import Builtin
from .. import ir, uniformity
from ..bounds import Poly
from . import parameters, returns, shared, statements
from .body import Body, Options, Unit
from .expressions import free_value
from .names import canonical
from .parameters import Lowered
from .signature import Names, PackAxes, Resolve, Signature, constant, declare
from .specialise import ArrayType, Shapes, Specialisation, specialise
from .values import Fault, Literal, Poisoned, Typed, Value, View, fault

MAX_GROUP = 1024
SIMD_WIDTH = 32


def lower_kernel(function: tree.Function, resolve: Resolve, arguments: Mapping[str, Argument]) -> Lowered:
    """Checks and lowers a kernel; TypeFault with every fault found."""
    names = Names(resolve)
    try:
        signature = declare(function, resolve)
        spec = specialise(signature, arguments, names)
        options, grid = decorator_options(function, names)
        return _lower(function, names, signature, spec, options, grid)
    except Fault as e:
        raise TypeFault(e.diagnostic) from None
    except Poisoned:  # pragma: no cover - a poisoned value has been reported before
        raise MetaljitError(Diagnostic("internal-error", "a fault was lost")) from None


# ---- decorators ----


def decorator_options(function: tree.Function, names: Names) -> tuple[Options, dict[str, tree.Expr]]:
    """What `@kernel(…)` says: options, and the texts of `grid` and `threadgroup`."""
    options: dict[str, object] = {}
    grid: dict[str, tree.Expr] = {}
    for node in function.decorators:
        if not isinstance(node, tree.Call):
            continue
        found = names.lookup(node.func)
        if not isinstance(found, Builtin) or found.name != "kernel":
            continue
        if node.args:
            fault(
                "argument-count",
                "kernel takes its options by name",
                node.span,
                help="for example `@kernel(math='fast')`",
            )
        for k in node.keywords:
            if k.name in ("grid", "threadgroup"):
                grid[k.name] = _unquoted(k.value)
            elif k.name in ("math", "asserts", "loop_limit"):
                options[k.name] = _option(k, constant(k.value, names))
            else:
                fault("unknown-keyword", f"kernel has no option {k.name!r}", k.span,
                      help="there are grid, threadgroup, math, asserts, loop_limit")  # fmt: skip
    return Options(**options), grid  # type: ignore[arg-type]


def _unquoted(node: tree.Expr) -> tree.Expr:
    """`"ceil_div(N, 256)"`, a tuple, or a tuple of such texts."""
    match node:
        case tree.String():
            return parse_quoted(node)
        case tree.TupleExpr(items):
            return replace(node, items=tuple(i if isinstance(i, tree.Star) else _unquoted(i) for i in items))
        case _:
            return node


def _option(k: tree.Keyword, value: object) -> object:
    match k.name, value:
        case "math", "precise" | "fast":
            return value
        case "asserts", bool():
            return value
        case "loop_limit", int() if 0 < value < 2**32:
            return value
    allowed = {"math": "'precise' or 'fast'", "asserts": "True or False", "loop_limit": "1 to 2**32 - 1"}[
        k.name
    ]
    fault("bad-option", f"{k.name} is {allowed}, not {value!r}", k.span)


# ---- the kernel ----


def _lower(
    function: tree.Function,
    names: Names,
    signature: Signature,
    spec: Specialisation,
    options: Options,
    grid: dict[str, tree.Expr],
) -> Lowered:
    kind = "grid" if signature.is_grid else "map"
    if signature.is_grid != bool(grid):
        _refuse_grid(function, signature, grid)
    unit = Unit(function.name, kind, spec, options)
    body = Body(unit, names, function)
    _parameters(body, signature)
    array_facts(unit)
    if signature.is_grid:
        domain, group, positions = _grid_domain(body, grid, function)
        body.plan = returns.ResultPlan()
    else:
        domain, group, positions = _map_domain(body, signature, function)
        body.plan = returns.ResultPlan.of_types([r.element for r in spec.results])
    statements.lower_body(body, function)
    if not unit.diagnostics:
        with body.reporting():
            _check_bound(unit, signature, domain)
            shared.check_memory(unit, body.block, function.name_span)
    results = tuple(
        ir.Buffer(name, r.element.scalar, r.element.lanes, True)
        for name, r in zip(parameters.result_names(len(spec.results)), spec.results, strict=True)
    )
    kernel = ir.Kernel(
        function.name,
        "grid" if signature.is_grid else "map",
        positions,
        tuple(extent_expr(unit, e) for e in domain),
        tuple(f for f, _ in unit.functions.values()),
        tuple(body.block),
        results,
        tuple(unit.margins),
        group,
        tuple(unit.shared),
        uniformity.is_cooperative(body.block, unit.shared),
        span=function.name_span,
    )
    if kernel.cooperative and not unit.diagnostics:
        unit.diagnostics += uniformity.check(kernel)
    if unit.diagnostics:
        raise TypeFault(
            *sorted(unit.diagnostics, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0))
        )
    params = tuple(parameters.params(signature, spec))
    outputs = parameters.results(spec.results)
    return Lowered(kernel, unit, params, outputs, domain, parameters.title(function.name, signature, spec))


def _refuse_grid(function: tree.Function, signature: Signature, grid: dict[str, tree.Expr]) -> None:
    if signature.is_grid:
        fault("missing-grid", f"kernel {function.name!r} writes its arrays itself, so it needs a grid", function.name_span,
              help='decorate it, for example `@kernel(grid="ceil_div(N, 256)", threadgroup=256)`')  # fmt: skip
    fault("grid-of-map", f"kernel {function.name!r} gives a result, so its grid is the result's shape", function.name_span,
          help="drop grid= and threadgroup=, or take `Out[…]` parameters instead of `->`")  # fmt: skip


def _parameters(body: Body, signature: Signature) -> None:
    unit = body.unit
    for p in signature.params:
        if p.kind == "const":
            body.env[p.name] = free_value(body, canonical(unit.spec.constants[p.name]), p.name, p.span)
        elif p.kind == "scalar":
            body.env[p.name] = unit.scalar(p.name)
        else:
            array = unit.spec.arrays[p.name]
            buffer = ir.Buffer(p.name, array.element.scalar, array.element.lanes, p.kind != "array")
            shape = tuple(unit.extent(e) for e in array.shape)
            body.env[p.name] = View(
                buffer,
                array.element,
                shape,
                p.annotation.span if p.annotation else p.span,
                (None,) * len(shape),
            )


def array_facts(unit: Unit) -> None:
    """No array has more than 2³¹ − 1 elements, and no extent is negative."""
    arrays: tuple[ArrayType, ...] = (*unit.spec.arrays.values(), *unit.spec.results)
    for array in arrays:
        total = Poly.of(array.element.lanes if isinstance(array.element, Vec) else 1)
        for e in array.shape:
            poly = unit.extent_poly(e)
            unit.facts.assume(poly)
            total = total * poly
        limit = -total + INDEX_MAX
        if len(array.shape) > 1 and limit not in unit.facts.nonneg:
            unit.facts.assume(limit)


def extent_expr(unit: Unit, extent: Extent) -> ir.Expr:
    value = unit.extent(extent)
    return value.expr if isinstance(value, Typed) else ir.Const(int(value.value), I32)  # type: ignore[union-attr,arg-type]


def _map_domain(
    body: Body, signature: Signature, function: tree.Function
) -> tuple[tuple[Extent, ...], tuple[int, ...], tuple[ir.Var, ...]]:
    """Positions over the (equal) shapes of the results."""
    unit = body.unit
    domain = unit.spec.results[0].shape
    for other, declared in zip(unit.spec.results[1:], signature.results[1:], strict=True):
        if len(other.shape) != len(domain):
            fault("result-shapes", "all results of a kernel have the same extents", declared.span,
                  second=(signature.results[0].span, "the first result"))  # fmt: skip
        for a, b in zip(domain, other.shape, strict=True):
            if a != b:
                unit.require(op("==", a, b), "all results have the same extents", declared.span)
    body.always_index = any(isinstance(a, PackAxes) for a in signature.results[0].axes or ())
    return domain, (), map_positions(body, domain, position_names(function, len(domain)))


def map_positions(body: Body, domain: tuple[Extent, ...], names: Sequence[str]) -> tuple[ir.Var, ...]:
    """Where in the domain an element stands."""
    unit = body.unit
    positions = []
    for axis, extent in enumerate(domain):
        limit = unit.extent_poly(extent)
        unit.facts.assume(limit - 1)  # there is an element here, so no extent is empty
        symbol = unit.facts.symbol(names[axis], [0], [limit - 1])
        unit.position_symbols[unit.facts.number(symbol)] = axis
        positions.append((body.var(names[axis], I32), symbol))
    body.positions = tuple(Typed(ir.Read(v), s) for v, s in positions)
    return tuple(v for v, _ in positions)


def position_names(function: tree.Function, rank: int) -> list[str]:
    """The names that the user unpacks position() into, for the text."""
    for node in function.body:
        match node:
            case tree.Assign((tree.TupleTarget(items),), tree.Call(tree.Name("position"), (), ())):
                names = [i.name for i in items if isinstance(i, tree.Name)]
                star = next(
                    (
                        i.value.name
                        for i in items
                        if isinstance(i, tree.Star) and isinstance(i.value, tree.Name)
                    ),
                    "i",
                )
                at = next((k for k, i in enumerate(items) if isinstance(i, tree.Star)), len(items))
                extra = rank - len(names)
                if len(names) == len(set(names)) and extra >= 0:
                    return [*names[:at], *(f"{star}{k}" for k in range(extra)), *names[at:]]
            case tree.Assign((tree.Name(name),), tree.Call(tree.Name("position"), (), ())) if rank == 1:
                return [name]
    return ["i"] if rank == 1 else [f"i{k}" for k in range(rank)]


def _grid_domain(
    body: Body, grid: dict[str, tree.Expr], function: tree.Function
) -> tuple[tuple[Extent, ...], tuple[int, ...], tuple[ir.Var, ...]]:
    """Group and thread indices over `grid` and `threadgroup`, NumPy order, last fastest."""
    unit = body.unit
    shapes = Shapes(body.names, unit.spec.constants, unit.spec.packs, set(unit.spec.scalars))
    groups = _extents(shapes, grid["grid"]) if "grid" in grid else None
    sizes = _extents(shapes, grid["threadgroup"]) if "threadgroup" in grid else (Lit(256),)
    if groups is None:
        fault(
            "missing-grid",
            f"kernel {function.name!r} has a threadgroup but no grid",
            function.name_span,
            help="add grid=…",
        )
    for number in groups:
        if isinstance(number, Lit) and number.value < 0:
            fault("bad-grid", f"a grid of {number.value} groups is not possible", grid["grid"].span)
    threads = _threadgroup(sizes, grid["threadgroup"].span if "threadgroup" in grid else function.name_span)
    if len(groups) < len(threads):
        groups = (Lit(1),) * (len(threads) - len(groups)) + groups
    threads = (1,) * (len(groups) - len(threads)) + threads
    values: dict[str, list[Value]] = {
        n: [] for n in ("group_index", "thread_index", "global_index", "group_size", "grid_size")
    }
    variables: tuple[list[ir.Var], list[ir.Var]] = ([], [])
    unit.facts.assume(-_poly_product(unit, groups, threads) + INDEX_MAX)
    for k, (count, size) in enumerate(zip(groups, threads, strict=True)):
        suffix = str(k) if len(groups) > 1 else ""
        limit = unit.extent_poly(count)
        unit.facts.assume(limit - 1)
        g = unit.facts.symbol(f"group{suffix}", [0], [limit - 1])
        t = unit.facts.symbol(f"thread{suffix}", [0], [size - 1])
        group, thread = body.var(f"group{suffix}", I32), body.var(f"thread{suffix}", I32)
        variables[0].append(group)
        variables[1].append(thread)
        scaled = ir.Apply("multiply", (ir.Read(group), ir.Const(size, I32)), I32, True)
        values["group_index"].append(Typed(ir.Read(group), g))
        values["thread_index"].append(Typed(ir.Read(thread), t))
        values["global_index"].append(
            Typed(ir.Apply("add", (scaled, ir.Read(thread)), I32, True), g * size + t)
        )
        values["group_size"].append(Literal(size))
        values["grid_size"].append(unit.extent(count))
    unit.grid_values = {n: tuple(v) for n, v in values.items()} | _lanes(body, variables[1], threads)
    unit.threads = threads
    unit.grid_variables = frozenset(v.number for v in (*variables[0], *variables[1]))
    domain = (*groups, *(Lit(n) for n in threads))
    return domain, threads, (*variables[0], *variables[1])


def _lanes(body: Body, threads: list[ir.Var], sizes: tuple[int, ...]) -> dict[str, tuple[Value, ...]]:
    """`lane()` and `simd_index()` of the thread's flat index in its group."""
    flat: ir.Expr = ir.Read(threads[0])
    for var, size in zip(threads[1:], sizes[1:], strict=True):
        flat = ir.Apply("multiply", (flat, ir.Const(size, I32)), I32, True)
        flat = ir.Apply("add", (flat, ir.Read(var)), I32, True)
    total = 1
    for n in sizes:
        total *= n
    width = ir.Const(SIMD_WIDTH, I32)
    facts = body.unit.facts
    return {
        "lane": (
            Typed(
                ir.Apply("bitwise_and", (flat, ir.Const(SIMD_WIDTH - 1, I32)), I32),
                facts.symbol("lane", [0], [SIMD_WIDTH - 1]),
            ),
        ),
        "simd_index": (
            Typed(
                ir.Apply("floor_divide", (flat, width), I32, True),
                facts.symbol("simd", [0], [max(total // SIMD_WIDTH - 1, 0)]),
            ),
        ),
    }


def _poly_product(unit: Unit, groups: tuple[Extent, ...], threads: tuple[int, ...]) -> Poly:
    total = Poly.of(1)
    for g, t in zip(groups, threads, strict=True):
        total = total * unit.extent_poly(g) * t
    return total


def _extents(shapes: Shapes, node: tree.Expr) -> tuple[Extent, ...]:
    value = shapes.value(node)
    return value if isinstance(value, tuple) else (value,)


def _threadgroup(sizes: tuple[Extent, ...], span: Span) -> tuple[int, ...]:
    numbers: list[int] = []
    for s in sizes:
        if not isinstance(s, Lit) or not isinstance(s.value, int):
            fault("bad-threadgroup", "the threadgroup's size must be known at compile time", span,
                  help="use numbers and const[int] parameters")  # fmt: skip
        numbers.append(s.value)
    total = 1
    for n in numbers:
        total *= n
    if min(numbers, default=1) < 1 or total % SIMD_WIDTH or total > MAX_GROUP:
        fault("bad-threadgroup", f"a threadgroup of {total} threads is not allowed", span,
              help=f"its size is a multiple of {SIMD_WIDTH}, at most {MAX_GROUP}")  # fmt: skip
    return tuple(numbers)


def _check_bound(unit: Unit, signature: Signature, domain: tuple[Extent, ...]) -> None:
    """Every extent that the call needs must come from an argument that is passed."""
    bound = set(unit.spec.scalars)
    for p in signature.params:
        if p.kind in ("array", "inout"):
            for e in unit.spec.arrays[p.name].shape:
                bound |= symbols(e)
    for p in signature.params:
        if p.kind == "out":
            _all_bound(unit.spec.arrays[p.name].shape, bound, p.span)
    for declared, result in zip(signature.results, unit.spec.results, strict=True):
        _all_bound(result.shape, bound, declared.span)
    _all_bound(domain, bound, unit_span(signature))


def unit_span(signature: Signature) -> Span:
    return signature.results[0].span if signature.results else signature.params[0].span


def _all_bound(extents: tuple[Extent, ...], bound: set[str], span: Span) -> None:
    for name in sorted(symbols(product(extents)) - bound):
        fault("unbound-dim", f"no argument's shape gives the extent {name!r} a value", span,
              help=f"use it in an argument's shape, or pass it as a scalar `{name}: i32`")  # fmt: skip
