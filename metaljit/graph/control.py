"""`cond`, `for_loop`, `while_loop`: control flow on the device.

In: a predicate or a number of turns, functions, and values. Out: values. In a trace they are nodes: a choice computes the
side that is taken alone; a loop whose elements turn by themselves runs inside a kernel, another one is replayed. Outside
of a trace they are Python's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..compiler import graph as g
from ..compiler.turns import is_alone, outer
from ..dtypes import BOOL, I32
from ..extents import op, show
from ..source import ShapeError, TypeFault
from ..variables import Variable
from . import trees
from .context import current_trace
from .joins import entered_array
from .reductions import cast
from .traced import Trace, Traced, fault
from .views import broadcast_to

LIMIT = 1_000_000  # turns of a `while_loop`


def cond(predicate: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *args: Any) -> Any:
    """`then(*args)` where the predicate holds, else `otherwise(*args)`; both give the same structure, types and shapes.

    The predicate is a 0-d bool, which decides what is computed at all, or an array that decides for each element of
    results of its shape.
    """
    trace = current_trace()
    if trace is None or isinstance(predicate, bool | np.bool_):
        return then(*args) if bool(predicate) else otherwise(*args)
    test = _predicate(trace, predicate)
    before = dict(trace.variables)
    found, structure = trees.flatten(then(*args))
    changed = _restored(trace, before)
    others, like = trees.flatten(otherwise(*args))
    _restored(trace, before, changed, test)
    if structure != like:
        fault("branch-structure", "the two sides do not give the same structure", "return the same from both")
    made = [_chosen(trace, test, a, b, path) for (path, a), (_, b) in zip(found, others, strict=True)]
    return trees.rebuilt(structure, iter(made))


def _restored(
    trace: Trace,
    before: dict[Variable, Traced],
    then: dict[Variable, Traced] | None = None,
    test: Traced | None = None,
) -> dict[Variable, Traced]:
    """What variables were assigned since, which is undone; or what they are after both sides of a choice."""
    known = {v: trace.lifted(v) for v in trace.variables} | before
    now = {v: x for v, x in trace.variables.items() if x.ref != known[v].ref}
    trace.variables = dict(known)
    if then is not None and test is not None:
        for v in {**then, **now}:
            trace.variables[v] = _chosen(trace, test, then.get(v, known[v]), now.get(v, known[v]), v.name)
    return now


def _predicate(trace: Trace, value: Any) -> Traced:
    test = entered_array(trace, value)
    if test.element != BOOL:
        fault("predicate-type", f"a predicate is a bool, and this is {test!r}", "compare it: `x != 0`")
    return test


def _chosen(trace: Trace, test: Traced, a: Any, b: Any, path: str) -> Traced:
    then, otherwise = entered_array(trace, a), entered_array(trace, b)
    if not isinstance(a, Traced) and isinstance(b, Traced):
        then = cast(then, otherwise.element)  # a Python number is what stands beside it
    elif not isinstance(b, Traced) and isinstance(a, Traced):
        otherwise = cast(otherwise, then.element)
    what = f"result {path}" if path else "the result"
    if then.element != otherwise.element or then.ndim != otherwise.ndim:
        fault(
            "branch-types",
            f"{what} is {then!r} on one side and {otherwise!r} on the other",
            "cast one of them",
        )
    shape = tuple(
        trace.equal(m, n, f"{what} has one shape on both sides")
        for m, n in zip(then.extents, otherwise.extents, strict=True)
    )
    if test.ndim and tuple(map(trace.graph.extent, test.extents)) != shape:
        test = broadcast_to(test, tuple(map(trace.dimension, shape)))
    return trace.node(g.Choose(test.ref, then.ref, otherwise.ref, then.element, shape))


# ---- loops ----


def for_loop(count: Any, body: Callable[[Any, Any], Any], start: Any) -> Any:
    """`start`, after `count` turns of `value = body(turn, value)`; turns count from 0.

    The value may be an array, a number, or a dict, list, tuple or dataclass of them; its types and shapes stay.
    """
    trace = current_trace()
    if trace is None:
        value = start
        for k in range(int(count)):
            value = body(k, value)
        return value
    scope = trace.graph.scope()
    number = trace.node(g.Number(f"turn{scope}", I32))
    turns = entered_array(trace, count)
    if turns.ndim or not turns.element.is_integer or turns.element == BOOL:
        fault("loop-count", f"a number of turns is an integer, and this is {turns!r}")
    return _looped(trace, scope, start, lambda value: body(number, value), number, cast(turns, I32), None, 0)


def while_loop(
    condition: Callable[[Any], Any], body: Callable[[Any], Any], start: Any, *, limit: int = LIMIT
) -> Any:
    """`start`, after as many turns of `value = body(value)` as `condition(value)` holds.

    A condition is a 0-d bool; or an array of the value's shape, where each element turns by itself and stays as it is once
    its condition fails. More than `limit` turns are an error, since a loop without end would hold the device.
    """
    trace = current_trace()
    if trace is None:
        return _python_while(condition, body, start, limit)
    return _looped(trace, trace.graph.scope(), start, body, None, None, condition, limit)


def _python_while(condition: Callable[[Any], Any], body: Callable[[Any], Any], start: Any, limit: int) -> Any:
    value = start
    for _ in range(limit):
        holds = np.asarray(condition(value))
        if not holds.any():
            return value
        new = body(value)
        if not holds.ndim:
            value = new
            continue
        before, structure = trees.flatten(value)
        after, _ = trees.flatten(new)
        kept = (np.where(holds, a, b) for (_, a), (_, b) in zip(after, before, strict=True))
        value = trees.rebuilt(structure, kept)
    fault(
        "loop-limit",
        f"a loop has not ended after {limit} turns",
        "say how many there may be: `limit=…`",
        TypeFault,
    )


def _looped(
    trace: Trace,
    scope: int,
    start: Any,
    body: Callable[[Any], Any],
    number: Traced | None,
    count: Traced | None,
    condition: Callable[[Any], Any] | None,
    limit: int,
) -> Any:
    written: list[Variable] = []
    while True:  # a variable that a turn assigns is carried too, which is seen when one has been traced
        leaves, structure = trees.flatten(start)
        leaves += [(v.name, trace.variable(v)) for v in written]
        before = dict(trace.variables)
        starts = [entered_array(trace, leaf) for _, leaf in leaves]
        values = [trace.node(g.Carried(scope, k, s.element, s.extents)) for k, s in enumerate(starts)]
        carried = trees.rebuilt(structure, iter(values))
        trace.variables |= zip(written, values[len(values) - len(written) :], strict=True)
        test = _condition(trace, condition(carried), values) if condition is not None else None
        found, like = trees.flatten(body(carried))
        if like != structure:
            fault("loop-structure", "a turn does not give the structure that it was given", "return the same")
        found += [(v.name, trace.variable(v)) for v in written]
        assigned = _restored(trace, before)
        if assigned.keys() <= set(written):
            break
        written += [v for v in assigned if v not in written]
    if not leaves:
        fault("loop-value", "a loop carries no value", "give it what it begins with")
    after = [_kept(trace, path, s, v) for (path, _), s, (_, v) in zip(leaves, starts, found, strict=True)]
    if test is not None and test.ndim:
        after = [_where(trace, test, a, v) for a, v in zip(after, values, strict=True)]
    turns = g.Turns(
        tuple(v.ref for v in values),
        tuple(a.ref for a in after),
        number.ref if number is not None else None,
        count.ref if count is not None else None,
        test.ref if test is not None else None,
        limit,
    )
    turns = replace(turns, alone=is_alone(trace.graph, turns))
    trace.graph.loops[scope] = turns
    if test is not None and test.ndim and not turns.alone:
        fault(
            "loop-condition",
            "a condition for each element needs a turn that reads no other element",
            "reduce it: `.any()`",
        )
    types = tuple(s.element for s in starts)
    whole = trace.node(
        g.Loop(
            scope, tuple(s.ref for s in starts), outer(trace.graph, turns), types, types[0], starts[0].extents
        )
    )
    parts = [whole]
    if len(starts) > 1:
        parts = [trace.node(g.Part(whole.ref, k, s.element, s.extents)) for k, s in enumerate(starts)]
    trace.variables |= zip(written, parts[len(parts) - len(written) :], strict=True)
    return trees.rebuilt(structure, iter(parts))


def _condition(trace: Trace, value: Any, values: Sequence[Traced]) -> Traced:
    test = _predicate(trace, value)
    if test.ndim and any(tuple(v.extents) != tuple(test.extents) for v in values):
        fault(
            "loop-condition",
            f"the condition is {test!r}, and the values are {', '.join(map(repr, values))}",
            "reduce it to one bool: `.any()`; or give all values its shape",
        )
    return test


def _where(trace: Trace, test: Traced, then: Traced, otherwise: Traced) -> Traced:
    return trace.node(g.Choose(test.ref, then.ref, otherwise.ref, then.element, then.extents))


def _kept(trace: Trace, path: str, before: Traced, value: Any) -> Traced:
    """What a turn gives, of the type and the shape that it was given."""
    after = entered_array(trace, value)
    what = f"value {path}" if path else "the value"
    if not isinstance(value, Traced):
        after = cast(after, before.element)
    if after.element != before.element:
        fault(
            "loop-types",
            f"{what} is {before.element} before a turn and {after.element} after it",
            f"cast it: `.astype({before.element.numpy.name!r})`",
        )
    if after.ndim != before.ndim:
        fault("loop-types", f"{what} is {before!r} before a turn and {after!r} after it", "keep its shape")
    for a, b in zip(before.extents, after.extents, strict=True):
        if trace.graph.extent(a) != trace.graph.extent(b):
            if trace.decided(op("==", a, b)) is False:
                fault(
                    "loop-types",
                    f"{what} has the extent {show(a)} before a turn and {show(b)} after it",
                    error=ShapeError,
                )
            trace.equal(a, b, f"{what} keeps its shape")
    return after
