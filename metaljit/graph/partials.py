"""Derivatives of one operation on traced arrays.

In: an operation, its operands and its result. Out: for each operand a function from the derivative by the result to what it
adds to the derivative by the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..derivatives import DERIVATIVES, Term, evaluate
from ..operations import OPERATIONS
from .traced import Traced, elementwise, fault


def partials(op: str, args: Sequence[Traced], result: Traced) -> list[Callable[[Traced], Traced | None]]:
    """See the module. A derivative that is 0 everywhere is None. TypeFault where an operation of floats has no rule."""
    row = OPERATIONS[op]
    rule = DERIVATIVES.get(row.name)
    if rule is None:
        fault(
            "no-derivative",
            f"{row.name} has no derivative",
            "keep it out of what is differentiated: `mj.stop_gradient(x)`",
        )
    given = dict(zip("xyz", args, strict=False)) | {"r": result}

    def pull(term: Term | None) -> Callable[[Traced], Traced | None]:
        if term is None:
            return lambda value: None
        return lambda value: evaluate(term, given | {"g": value}, _apply)

    return [pull(term) for term in rule]


def _apply(op: str, values: Sequence[Any]) -> Traced:
    return elementwise(op, *values)
