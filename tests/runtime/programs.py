"""Programs written by hand, in the shape that the code generator gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metaljit.dtypes import F32, I32, DType
from metaljit.extents import Extent, Lit, Sym, op, product
from metaljit.program import (
    ArrayParam,
    AssertSite,
    Cost,
    Launch,
    LoopNest,
    Place,
    Program,
    ScalarParam,
    Uniform,
)

H, W, N = Sym("H"), Sym("W"), Sym("N")
WHERE = "user/kernels.py:7:1"
RAN = "metal::atomic_store_explicit(status, 0x6d6a6974u, metal::memory_order_relaxed);"
STATUS = "device metal::atomic_uint* status"


def array(
    name: str, *shape: Extent, dtype: DType = F32, lanes: int = 1, role: Any = "in", zeroed: bool = False
) -> ArrayParam:
    return ArrayParam(name, dtype, lanes, shape, role, zeroed)


def _struct(name: str, uniforms: tuple[Uniform, ...]) -> str:
    fields = "".join(f"    {u.dtype.msl} {u.name};\n" for u in uniforms) or "    uint pad;\n"
    return f"struct {name}_params {{\n{fields}}};\n"


def elementwise(
    name: str,
    params: tuple[ArrayParam | ScalarParam, ...],
    results: tuple[ArrayParam, ...],
    body: str,
    uniforms: tuple[Uniform, ...] = (),
    extents: tuple[Extent, ...] | None = None,
    serial: bool = False,
    **changes: Any,
) -> Program:
    """One thread per element: `body` sees the arrays, `p`, the flat index `i`, and `status`.

    The grid is `extents`, else the shape of the first output.
    """
    arrays = tuple(p for p in params if isinstance(p, ArrayParam)) + results
    outputs = [a for a in arrays if a.role != "in"]
    grid = product(extents if extents is not None else outputs[0].shape)
    total = Uniform("total_", I32, grid)
    uniforms = (*uniforms, total)
    typed = [f"device {'' if a.role != 'in' else 'const '}{a.dtype.msl}* {a.name}" for a in arrays]
    bound = [f"{t} [[buffer({i})]]" for i, t in enumerate(typed)]
    used = len(arrays)
    msl = (
        f"#include <metal_stdlib>\n{_struct(name, uniforms)}"
        f"inline void {name}_at({', '.join(typed)}, constant {name}_params& p, {STATUS}, int i) {{\n"
        f"{body}\n}}\n"
        f"kernel void {name}({', '.join(bound)}, constant {name}_params& p [[buffer({used})]], "
        f"{STATUS} [[buffer({used + 1})]], uint gid [[thread_position_in_grid]]) {{\n"
        f"    if (gid == 0u) {{ {RAN} }}\n"
        "    if (gid >= uint(p.total_)) { return; }\n"
        f"    {name}_at({', '.join(a.name for a in arrays)}, p, status, int(gid));\n}}\n"
    )
    casts = [f"({t.rsplit(' ', 1)[0]})buffers[{i}]" for i, t in enumerate(typed)]
    nest = (
        f'extern "C" void {name}_cpu(void* const* buffers, const void* params, unsigned* status, '
        "long begin, long end, long block) {\n"
        f"    constant {name}_params& p = *({name}_params*)params;\n"
        f"    device metal::atomic_uint* words = (device metal::atomic_uint*)status;\n"
        f"    if (begin == 0) {{ {RAN.replace('status', 'words')} }}\n"
        "    for (long i = begin * block; i < end * block && i < p.total_; ++i) {\n"
        f"        {name}_at({', '.join([*casts, 'p', 'words', 'int(i)'])});\n    }}\n}}\n"
    )
    program = Program(
        name=name,
        place=Place(WHERE),
        msl=msl,
        params=params,
        results=results,
        buffers=tuple(a.name for a in arrays),
        uniforms=uniforms,
        launches=(Launch(name, grid),),
        cpu=LoopNest(nest, f"{name}_cpu", Lit(1), grid, serial),
        cost=Cost(2, 8),
    )
    return replace(program, **changes)


def added(name: str = "added") -> Program:
    """out = a + b over two axes."""
    return elementwise(
        name,
        (array("a", H, W), array("b", H, W)),
        (array("out", H, W, role="out"),),
        "    out[i] = a[i] + b[i];",
    )


def scaled() -> Program:
    """out = a * factor + offset, with an f32 and an i32 scalar."""
    return elementwise(
        "scaled",
        (array("a", N), ScalarParam("factor", F32, 1), ScalarParam("offset", I32, 1)),
        (array("out", N, role="out"),),
        "    out[i] = a[i] * p.factor + float(p.offset);",
        (Uniform("factor", F32, scalar="factor"), Uniform("offset", I32, scalar="offset")),
    )


def counted() -> Program:
    """An InOut histogram and an Out array that only even threads write."""
    return elementwise(
        "counted",
        (array("bins", N, dtype=I32, role="inout"), array("marks", N, dtype=I32, role="out", zeroed=True)),
        (),
        "    bins[i] += 1;\n    if (i % 2 == 0) { marks[i] = 42; }",
    )


def positive() -> Program:
    """out = a, with an assert that a > 0."""
    site = AssertSite(
        "only positive numbers", Place("user/kernels.py:9:5", "    9 |     assert a[y, x] > 0"), (H, W)
    )
    return elementwise(
        "positive",
        (array("a", H, W, role="inout"),),
        (),
        """    if (!(a[i] > 0.0f)) {
        unsigned none = 0u;
        if (metal::atomic_compare_exchange_weak_explicit(status + 1, &none, 1u,
                metal::memory_order_relaxed, metal::memory_order_relaxed)) {
            metal::atomic_store_explicit(status + 2, uint(i), metal::memory_order_relaxed);
        }
    }
    a[i] = a[i] + 1.0f;""",
        asserts=(site,),
        serial=True,
    )


def padded() -> Program:
    """A result of shape (N + extra) where extra is a scalar: a, then zeros."""
    return elementwise(
        "padded",
        (array("a", N), ScalarParam("extra", I32, 1)),
        (array("out", op("+", N, Sym("extra")), role="out"),),
        "    out[i] = i < p.N ? a[i] : 0.0f;",
        (Uniform("N", I32, N),),
    )
