"""Source → Program: the list of passes.

In: a kernel's tree, what its free names mean, and the types of a call. Out: a `Program`, everything that a device
needs. This is the only place that knows the order of things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod

from metaljit.grammar import tree

from ..arguments import Argument
from ..extents import Lit, Sym, op, product
from ..program import (
    ArrayParam,
    AssertSite,
    Cost,
    Launch,
    LoopNest,
    Place,
    Program,
    Requirement,
)
from ..source import Diagnostic, TypeFault
from . import columnnest, groupnest, ir, loopnest, msl, productnest, rownest, simplify
from .lower.kernel import lower_kernel
from .lower.parameters import Lowered
from .lower.signature import Resolve
from .msl_entry import LEAST_GROUP
from .msl_statements import Printer
from .usage import cost, costs
from .verify import verify

MAX_BUFFERS = 31

PASSES: tuple[tuple[str, Callable[[ir.Kernel], ir.Kernel]], ...] = (
    ("identities", simplify.identities),
    ("drop unused", simplify.drop_unused),
    ("flatten", simplify.flatten),
)


def compile_kernel(function: tree.Function, resolve: Resolve, arguments: Mapping[str, Argument]) -> Program:
    """A kernel, specialised for a call; TypeFault with all that is wrong with it."""
    return program(lower_kernel(function, resolve, arguments))


def optimise(kernel: ir.Kernel) -> ir.Kernel:
    """The passes in their order, the IR verified after each that changed it."""
    verify(kernel, "lowering")
    for name, run in PASSES:
        made = run(kernel)
        if made != kernel:
            kernel = verify(made, name)
    return kernel


def program(lowered: Lowered) -> Program:
    unit, params, results = lowered.unit, lowered.params, lowered.results
    kernel = optimise(lowered.kernel)
    buffers = [_buffer(p) for p in (*params, *results) if isinstance(p, ArrayParam)]
    _check_limits(lowered, buffers)
    uniforms = list(unit.uniforms.values())
    text, printer = msl.emit(kernel, uniforms, buffers, unit.options.math, lowered.title)
    if isinstance(kernel.nest, ir.Columns):
        alone = columnnest.emit(kernel, uniforms, buffers, unit.options.math, lowered.title)
        *outer, columns = lowered.domain
        cpu = LoopNest(alone, f"{text.entry}_cpu", product(tuple(outer)), columns, group=1)
    elif isinstance(kernel.nest, ir.Tiled):
        alone = productnest.emit(kernel, uniforms, buffers, unit.options.math, lowered.title)
        *batch, rows, columns = results[0].shape
        blocks = (
            op("ceil_div", rows, Lit(productnest.ROWS)),
            op("ceil_div", columns, Lit(productnest.block_columns(kernel.nest))),
        )
        group = productnest.ROWS * productnest.COLUMNS
        cpu = LoopNest(alone, f"{text.entry}_cpu", product((*batch, *blocks)), Lit(1), group=group)
    elif isinstance(kernel.nest, ir.Rows):
        alone = rownest.emit(kernel, uniforms, buffers, unit.options.math, lowered.title)
        count = product(lowered.domain[: len(kernel.threads)])
        cpu = LoopNest(alone, f"{text.entry}_cpu", count, Lit(1), group=1)
    elif kernel.cooperative:
        alone = groupnest.emit(kernel, uniforms, buffers, unit.options.math, lowered.title)
        count = product(lowered.domain[: len(kernel.threads)])
        cpu = LoopNest(alone, f"{text.entry}_cpu", count, Lit(1), group=prod(kernel.threads))
    else:
        cpu = _loop_nest(lowered, kernel, text, printer, buffers)
    operations, nbytes = cost(kernel.body, costs(kernel.functions))
    for b in kernel.results:
        nbytes += b.dtype.nbytes * b.lanes
    return Program(
        name=kernel.name,
        place=Place.of(kernel.span),
        msl=text.text,
        params=params,
        results=results,
        buffers=tuple(b.name for b in buffers),
        uniforms=tuple(replace(u, name=name) for name, u in text.fields),
        launches=(_launch(kernel, text.entry, lowered),),
        cpu=cpu,
        requirements=tuple(_requirements(lowered)),
        asserts=tuple(AssertSite(s.message, Place.of(s.span), lowered.domain) for s in unit.sites),
        math="fast" if unit.options.math == "fast" else "precise",
        source_map=tuple((line, str(span)) for line, span in text.lines),
        notes=tuple(str(n) for n in unit.notes),
        cost=Cost(max(operations, 1), max(nbytes, 1)),
    )


def _loop_nest(
    lowered: Lowered, kernel: ir.Kernel, text: msl.Text, printer: Printer, buffers: list[ir.Buffer]
) -> LoopNest:
    inner = min(1, len(kernel.domain)) if kernel.kind == "map" else len(kernel.threads)
    nest = loopnest.emit(kernel, text, printer, buffers, inner)
    flat = len(kernel.domain) < len(lowered.domain)
    domain = (product(lowered.domain),) if flat else lowered.domain
    cut = len(domain) - inner
    return LoopNest(
        nest, f"{text.entry}_cpu", product(domain[:cut]), product(domain[cut:]), serial=kernel.ordered
    )


def _launch(kernel: ir.Kernel, entry: str, lowered: Lowered) -> Launch:
    """A cooperative kernel's threads, rounded up to the groups that it is launched in."""
    if not kernel.cooperative:
        return Launch(entry, product(lowered.domain))
    size = max(prod(kernel.threads), LEAST_GROUP)
    return Launch(entry, product((*lowered.domain[: len(kernel.threads)], Lit(size))), size)


def _requirements(lowered: Lowered) -> Iterator[Requirement]:
    for condition, message, span in lowered.unit.requirements:
        yield Requirement(condition, message, Place.of(span))
    place = Place.of(lowered.kernel.span)
    for name, limit in sorted(lowered.unit.size_limits.items()):
        uniform = lowered.unit.uniforms.get(name)
        extent = uniform.value if uniform is not None and uniform.value is not None else Sym(name)
        message = f"{name} is at most {limit}, so that index arithmetic stays below 2**31"
        yield Requirement(op("<=", extent, Lit(limit)), message, place, "array-too-large")


def _buffer(p: ArrayParam) -> ir.Buffer:
    return ir.Buffer(p.name, p.dtype, p.lanes, p.role != "in")


def _check_limits(lowered: Lowered, buffers: list[ir.Buffer]) -> None:
    if len(buffers) + 2 > MAX_BUFFERS:
        raise TypeFault(
            Diagnostic(
                "too-many-arrays",
                f"kernel {lowered.kernel.name!r} has {len(buffers)} arrays, and Metal binds at most "
                f"{MAX_BUFFERS} buffers, of which two are metaljit's own",
                lowered.kernel.span,
                help=f"use at most {MAX_BUFFERS - 2} arrays, or stack some of them into one",
            )
        )
