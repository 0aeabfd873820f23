"""The text form of the IR: what each node looks like, and that it depends on the kernel alone."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from metaljit.arguments import Argument, ArrayArgument, ConstArgument, ScalarArgument
from metaljit.compiler import ir
from metaljit.compiler.ir_text import show
from metaljit.compiler.lower.kernel import lower_kernel
from metaljit.dtypes import BOOL, F32, I8, I32, I64, U8, U32, VECTORS
from metaljit.kernels import Kernel
from metaljit.modules import kernel_from_text
from metaljit.source import Source, Span

SPAN = Span(Source("k.mjk", ""), 0, 0)
FIRST, SECOND, X, FLAG = (
    ir.Var("i", I32, 1),
    ir.Var("i", I32, 2),
    ir.Var("x", F32, 3),
    ir.Var("flag", BOOL, 4),
)
V = ir.Var("v", VECTORS["f32x3"], 5)
U, OUT = ir.Buffer("u", F32, 1, False), ir.Buffer("out", VECTORS["f32x2"].scalar, 2, True)
LOCAL = ir.Local("tile", F32, 4, 1)
ONE, HALF, TRUE = ir.Const(1, I32), ir.Const(0.5, F32), ir.Const(True, BOOL)
i, j, x, flag, v = map(ir.Read, (FIRST, SECOND, X, FLAG, V))

EDGES = """
H, W = dims("H W")

def tone(t):
    paper = clip(1 - t, 0, 1)
    return paper * paper

@kernel
def edges(u: f32[H, W], ink: f32 = 4.0, reach: const[int] = 1) -> f32[H, W]:
    u = border(u, "reflect")
    y, x = position()
    return tone(ink * (u[y - reach, x] - u[y, x]))
"""
EDGES_TEXT = """\
map kernel edges(y, x) over ($H, $W) -> out: f32
    margin y - 1 >= 0
    return tone#0($ink * (u{(?reflect(y - 1, $H) * $W) + x} - u{(y * $W) + x}))

function tone#0(t: f32) -> f32
    let paper: f32 = clip(f32(1.0) - t, f32(0.0), f32(1.0))
    return paper * paper
"""


def lowered(kernel: Kernel, **arguments: Argument) -> ir.Kernel:
    return lower_kernel(kernel.definition.tree, kernel.definition.text.resolve, arguments).kernel


def test_a_kernel_as_the_user_wrote_it() -> None:
    kernel = kernel_from_text(EDGES)
    arguments: dict[str, Argument] = {
        "u": ArrayArgument(F32, 2),
        "ink": ScalarArgument(),
        "reach": ConstArgument(1),
    }
    first = show(lowered(kernel, **arguments))
    assert first == EDGES_TEXT
    assert show(lowered(kernel_from_text(EDGES), **arguments)) == first


def body(*statements: ir.Stmt, positions: tuple[ir.Var, ...] = (FIRST, SECOND, X, FLAG, V)) -> list[str]:
    """The lines of a kernel's body."""
    kernel = ir.Kernel("k", "grid", positions, (), (), statements, (), span=SPAN)
    return [line.removeprefix("    ") for line in show(kernel).splitlines()[1:]]


EXPRESSIONS: list[tuple[ir.Expr, str]] = [
    (ir.Const(-3, I32), "-3"),
    (ir.Const(3, U8), "u8(3)"),
    (ir.Const(-0.0, F32), "f32(-0.0)"),
    (ir.Const(float("inf"), F32), "f32(inf)"),
    (ir.Const(False, BOOL), "false"),
    (j, "i.1"),
    (ir.Uniform("H", I32), "$H"),
    (ir.Uniform("ceil_div(N, 2)", I32), "$(ceil_div(N, 2))"),
    (ir.Load(U, ir.Apply("add", (i, ONE), I32, True), F32), "u{i + 1}"),
    (ir.LocalLoad(LOCAL, i), "tile{i}"),
    (ir.Table((1, 2), U8, i), "u8(1, 2){i}"),
    (ir.Apply("add", (i, ONE), I32), "add!(i, 1)"),
    (ir.Apply("multiply", (ir.Apply("add", (x, HALF), F32), x), F32), "(x + f32(0.5)) * x"),
    (ir.Apply("subtract", (ir.Const(1, I8), ir.Const(2, I8)), I8), "i8(1) - i8(2)"),
    (ir.Apply("negative", (ir.Convert(i, I64),), I64), "negative!(i64(i))"),
    (ir.Apply("negative", (x,), F32), "-x"),
    (ir.Apply("logical_not", (flag,), BOOL), "not flag"),
    (ir.Apply("clip", (x, HALF, ir.Apply("add", (x, x), F32)), F32), "clip(x, f32(0.5), x + x)"),
    (ir.Convert(x, I8), "i8(x)"),
    (ir.Convert(x, I8, True), "saturate(i8, x)"),
    (ir.Bitcast(x, U32), "bitcast(u32, x)"),
    (ir.Choose(flag, ir.Choose(flag, x, HALF), x), "(x if flag else f32(0.5)) if flag else x"),
    (ir.Vector((x, x), VECTORS["f32x2"]), "f32x2(x, x)"),
    (ir.Lane(v, 2, F32), "v.z"),
    (ir.Lane(v, i, F32), "v[i]"),
    (ir.Fold("wrap", i, ONE, False, I32), "?wrap(i, 1)"),
    (ir.Fold("edge", i, ONE, True, I32), "edge(i, 1)"),
    (ir.InRange(i, ONE, False), "?in_range(i, 1)"),
    (ir.InRange(i, ONE, True), "in_range(i, 1)"),
    (ir.Call("f#0", (x, ir.Apply("add", (x, x), F32)), F32), "f#0(x, x + x)"),
    (ir.Same(ir.Apply("add", (x, x), F32)), "uniform(x + x)"),
]


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_expressions(expr: ir.Expr, text: str) -> None:
    assert body(ir.Return((expr,), SPAN)) == [f"return {text}"]


TILE = ir.Tile("m", F32, 7)
STATEMENTS: list[tuple[ir.Stmt, list[str]]] = [
    (ir.Let(ir.Var("x", F32, 9), x, SPAN), ["let x.1: f32 = x"]),
    (ir.Declare(ir.Var("n", I32, 9), None, SPAN), ["var n: i32"]),
    (ir.Declare(ir.Var("n", I32, 9), ONE, SPAN), ["var n: i32 = 1"]),
    (ir.Assign(X, HALF, SPAN), ["x = f32(0.5)"]),
    (ir.Store(OUT, i, x, None, SPAN), ["out{i} = x"]),
    (ir.Store(OUT, i, x, flag, SPAN), ["out{i} = x if flag"]),
    (ir.LocalArray(LOCAL, (x, HALF), SPAN), ["array tile: f32[4] = {x, f32(0.5)}"]),
    (ir.LocalStore(LOCAL, ONE, x, flag, SPAN), ["tile{1} = x if flag"]),
    (ir.If(flag, (), (), SPAN), ["if flag", "    pass"]),
    (
        ir.If(flag, (ir.Break(SPAN),), (ir.Continue(SPAN),), SPAN),
        ["if flag", "    break", "else", "    continue"],
    ),
    (ir.For(ir.Var("n", I32, 9), ONE, i, -2, (ir.Break(SPAN),), SPAN), ["for n in 1, i, -2", "    break"]),
    (
        ir.Loop(
            (ir.Let(ir.Var("n", I32, 9), i, SPAN),),
            flag,
            (ir.Break(SPAN),),
            SPAN,
            ir.Var("turns", U32, 8),
            3,
            99,
        ),
        ["loop turns, at most 99 turns else fail 3", "    let n: i32 = i", "    while flag", "    break"],
    ),
    (ir.Once((ir.Break(SPAN),), SPAN), ["once", "    break"]),
    (ir.Break(SPAN), ["break"]),
    (ir.Continue(SPAN), ["continue"]),
    (ir.Return((), SPAN), ["return"]),
    (ir.Return((x, i), SPAN), ["return x, i"]),
    (ir.Check(flag, 2, SPAN), ["check flag else fail 2"]),
    (
        ir.Atomic("cas", ir.Var("old", U32, 9), OUT, i, (ONE, i), flag, SPAN),
        ["let old: u32 = atomic_cas(out{i}, 1, i) if flag"],
    ),
    (ir.CallInto("f#1", (x,), (X, FIRST), SPAN), ["let x, i = f#1(x)"]),
    (ir.CallInto("f#1", (x,), (), SPAN), ["f#1(x)"]),
    (ir.Barrier(SPAN), ["barrier"]),
    (ir.TileFill(TILE, x, True, SPAN), ["tile m: f32 = fill(x)"]),
    (ir.TileFill(TILE, x, False, SPAN), ["m = fill(x)"]),
    (ir.TileMove("load", TILE, U, i, ONE, flag, SPAN), ["load m, u{i, 1} if flag"]),
    (ir.TileMultiply(TILE, TILE, TILE, TILE, SPAN), ["m = m @ m + m"]),
    (
        ir.Collective("simd_shuffle", ir.Var("y", F32, 9), x, i, SPAN),
        ["let y: f32 = simd_shuffle(x, i)"],
    ),
    (ir.Collective("group_sum", ir.Var("y", F32, 9), x, None, SPAN), ["let y: f32 = group_sum(x)"]),
]


@pytest.mark.parametrize(
    ("statement", "lines"), STATEMENTS, ids=lambda v: v[0] if isinstance(v, list) else ""
)
def test_statements(statement: ir.Stmt, lines: list[str]) -> None:
    assert body(statement) == lines


def test_every_node_is_shown() -> None:
    shown: set[Any] = {type(e) for e, _ in EXPRESSIONS} | {ir.Read}
    assert shown == set(get_args(ir.Expr))
    assert {type(s) for s, _ in STATEMENTS} == set(get_args(ir.Stmt))


def test_heads_of_kernels_and_functions() -> None:
    function = ir.Function("f", (X, V), (U, OUT), (LOCAL,), (F32, I32), (), SPAN)
    margins = (
        ir.Margin(0, -1, ((("H",), 1), ((), -2))),
        ir.Margin(-1, 0, ((("H", "W"), 3),)),
        ir.Margin(-1, 0, ()),
    )
    kernel = ir.Kernel(
        "k", "map", (FIRST,), (ir.Uniform("H", I32),), (function,), (), (U, OUT), margins, span=SPAN
    )
    assert show(kernel).splitlines() == [
        "map kernel k(i) over ($H) -> u: f32, out: f32x2",
        "    margin -i + $H - 2 >= 0",
        "    margin 3 * $H * $W >= 0",
        "    margin 0 >= 0",
        "    pass",
        "",
        "function f#0(u: f32[], out: f32x2[], tile: f32[4], x: f32, v: f32x3) -> f32, i32",
        "    pass",
    ]
