"""Matrix products of traced arrays: `@`, `np.matmul`, `np.dot`, as NumPy has them.

In: arrays. Out: a traced array, in the type of the product of two elements. Floats are summed in f32 and whole numbers wrap.
With a vector it is a reduction.
"""

from __future__ import annotations

from typing import Any

from ..compiler import graph as g
from ..dtypes import BOOL, F32, I32, DType
from ..extents import Extent, Lit, show
from ..operation_rules import Refusal, check
from ..operations import OPERATIONS
from .joins import entered_array
from .reductions import cast, reduce
from .traced import Traced, broadcast, elementwise, fault, stretched, user_span
from .views import expand_dims, swapaxes


def matmul(a: Any, b: Any) -> Traced:
    """[..., m, k] @ [..., k, n], batches broadcast; [k] stands for a row on the left and a column on the right.

    Raises TypeFault for numbers, for extents that differ, and for types that do not go together.
    """
    trace = a.trace if isinstance(a, Traced) else b.trace
    left, right = entered_array(trace, a), entered_array(trace, b)
    if not left.ndim or not right.ndim:
        fault("product-of-numbers", "a matrix product takes arrays, and one of these is a number", "use `*`")
    dtype = _type(left.element, right.element)
    k = _common(left, right)
    left = cast(left, I32 if dtype == BOOL else dtype)
    right = cast(right, I32 if dtype == BOOL else dtype)
    if left.ndim == 1 or right.ndim == 1:
        return cast(_of_vector(left, right), dtype)
    shape = broadcast(trace, [left.extents[:-2], right.extents[:-2]])
    left = stretched(left, (*shape, left.extents[-2], k))
    right = stretched(right, (*shape, k, right.extents[-1]))
    found = multiplied(left, right)
    return elementwise("not_equal", found, 0) if dtype == BOOL else found


def dot(a: Any, b: Any) -> Traced:
    """`np.dot` of numbers, vectors and matrices."""
    ranks = [len(getattr(x, "shape", ())) for x in (a, b)]
    if 0 in ranks:
        return elementwise("multiply", a, b)
    if ranks[1] > 2 or ranks[0] > 2:
        fault("product-rank", f"np.dot takes vectors and matrices here, not ranks {ranks[0]} and {ranks[1]}",
              "`a @ b` multiplies stacks of matrices")  # fmt: skip
    return matmul(a, b)


def multiplied(left: Traced, right: Traced) -> Traced:
    """The product of stacks of equal batches and types."""
    shape = (*left.extents[:-1], right.extents[-1])
    return left.trace.node(g.Product(left.ref, right.ref, left.element, shape))


def pulled(node: g.Product, value: Traced) -> list[tuple[g.Ref, Traced]]:
    """The derivatives by both factors."""
    left, right = Traced(value.trace, node.left), Traced(value.trace, node.right)
    return [
        (node.left, multiplied(value, swapaxes(right, -1, -2))),
        (node.right, multiplied(swapaxes(left, -1, -2), value)),
    ]


def _of_vector(left: Traced, right: Traced) -> Traced:
    wide = F32 if left.element.is_float else left.element
    left, right = cast(left, wide), cast(right, wide)
    if right.ndim == 1:
        return cast(reduce("sum", elementwise("multiply", left, right), -1), left.element)
    return cast(reduce("sum", elementwise("multiply", expand_dims(left, 1), right), -2), left.element)


def _type(a: DType, b: DType) -> DType:
    if a == b == BOOL:
        return BOOL
    try:
        found = check(OPERATIONS["multiply"], [a, b]).result
    except Refusal as e:
        fault("operator-types", f"matmul: {e}")
    assert isinstance(found, DType)
    return found


def _common(left: Traced, right: Traced) -> Extent:
    """The extent that is summed over."""
    m, n = left.extents[-1], right.extents[0 if right.ndim == 1 else -2]
    if isinstance(m, Lit) and isinstance(n, Lit) and m != n:
        fault(
            "product-shapes",
            f"the columns of {left!r} are not as many as the rows of {right!r}: {show(m)} and {show(n)}",
            "transpose one of them: `x.T`",
        )
    return left.trace.graph.equate(m, n, "columns of the left are as many as rows of the right", user_span())
