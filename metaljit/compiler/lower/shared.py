"""Threadgroup arrays: made at the top of a kernel, named by their first assignment, limited in what they take together.

In: calls of `threadgroup_array`. Out: views, as of the arrays that a call passes: indices are proved or guarded, borders
fold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from metaljit.grammar import tree

from ...source import Span
from .. import ir, usage
from . import calls, cooperative
from .body import Body, Unit
from .literals import known
from .values import Literal, Value, View, fault

SHARED_BYTES = 1 << 15
UNNAMED = "threadgroup"


def threadgroup_array(body: Body, node: tree.Call) -> Value:
    """`threadgroup_array(f32, 8, 9)`: an array that the threads of a group share, undefined until written."""
    from .builtins import element_type

    cooperative.in_group(body, node, "threadgroup_array")
    if body.depth or not body.is_kernel:
        fault("threadgroup-array-place", "a threadgroup array is made at the top of the kernel, outside of any block",
              node.span, help="make it before, and pass it on where a function needs it")  # fmt: skip
    values, _ = calls.arguments(body, node)
    calls.count(node, values, 2, 8)
    type = element_type(values[0], node.span)
    spans = [a.span for a in node.args] if len(node.args) == len(values) else [node.span] * len(values)
    shape = tuple(_extent(v, s) for v, s in zip(values[1:], spans[1:], strict=True))
    buffer = ir.Buffer(f"{UNNAMED} {len(body.unit.shared)}", type.scalar, type.lanes, True, prod(shape))
    body.unit.shared.append(buffer)
    extents = tuple(Literal(n) for n in shape)
    return View(buffer, type, extents, node.span, (None,) * len(shape))


def _extent(value: Value, span: Span) -> int:
    number = known(value, span, "the extent of a threadgroup array")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        fault(
            "bad-extent", f"the extent of a threadgroup array is a number of 1 or more, not {number!r}", span
        )
    return number


def name_shared(body: Body, view: View, name: str) -> View:
    """A threadgroup array gets the name that it is first assigned to, or that with a number."""
    unit = body.unit
    if not body.is_kernel or not view.buffer.name.startswith(f"{UNNAMED} "):
        return view
    taken = {"out", *unit.spec.arrays, *(b.name for b in unit.shared)}
    free = (f"{name}_{k}" if k else name for k in range(len(taken) + 1))
    named = replace(view.buffer, name=next(n for n in free if n not in taken))
    unit.shared[unit.shared.index(view.buffer)] = named
    return replace(view, buffer=named)


def shared_bytes(b: ir.Buffer) -> int:
    return (b.size or 0) * b.lanes * b.dtype.nbytes


def check_memory(unit: Unit, body: Sequence[ir.Stmt], span: Span) -> None:
    """All threadgroup arrays together, with those that group collectives need, fit into a group's memory."""
    sizes = {b.name: shared_bytes(b) for b in unit.shared}
    for s in usage.walk(body):
        if isinstance(s, ir.Collective) and s.of_group:
            sizes[s.scratch.name] = shared_bytes(s.scratch)
    total = sum(sizes.values())
    if total > SHARED_BYTES:
        listed = ", ".join(f"{name} {n}" for name, n in sizes.items())
        fault(
            "threadgroup-memory",
            f"threadgroup arrays take at most {SHARED_BYTES} bytes, and these take {total}: {listed}",
            span,
            help="make the arrays smaller, or give them a smaller element type",
        )
