"""Where a thread's lane is, what it does to memory that only its group has, which lane another value comes from.

In: parts of the IR. Out: IR, or text of an index. `lanes` writes the loops.
"""

from __future__ import annotations

from ..dtypes import BOOL, I32
from . import ir
from .uniformity import SIMD_WIDTH, Level

LANE = ir.Var("lane", I32, 0)


def position(stride: int, size: int, level: Level, *, first: bool) -> str:
    """A thread's index on an axis. Where 32 lanes lie in a row it is a sum, which clang sees through."""
    in_row = stride == 1 and size % SIMD_WIDTH == 0
    flat = "32 * simd" if level is Level.SIMD or in_row else "(32 * simd + lane)"
    text = f"{flat} / {stride}" if stride > 1 else flat
    text = text if first else f"{text} % {size}"
    return f"{text} + lane" if in_row and level is Level.THREAD else text


def leaves(s: ir.Stmt, *, by_break: bool = True) -> bool:
    """Whether a `break` or `continue` in a statement belongs to a loop around it."""
    match s:
        case ir.Break() | ir.Continue():
            return by_break or isinstance(s, ir.Continue)
        case ir.If(_, then, orelse, _):
            return any(leaves(i, by_break=by_break) for i in (*then, *orelse))
        case ir.Once(body, _):
            return any(leaves(i, by_break=False) for i in body)
        case _:
            return False


def changed(s: ir.Atomic) -> ir.Expr:
    """What an atomic access makes of the old value, which `s.var` has."""
    old, value = ir.Read(s.var), s.values[-1]
    match s.op:
        case "exchange":
            return value
        case "cas":
            return ir.Choose(ir.Apply("equal", (old, s.values[0]), BOOL), value, old)
        case "min" | "max":
            return ir.Apply(f"{s.op}imum", (old, value), s.buffer.dtype)
        case "and" | "or" | "xor":
            return ir.Apply(f"bitwise_{s.op}", (old, value), s.buffer.dtype)
        case _:
            return ir.Apply("add", (old, value), s.buffer.dtype)


def source(kind: str, by: ir.Expr) -> ir.Expr:
    """The lane that a lane's value comes from; at the ends of the simdgroup its own."""
    lane: ir.Expr = ir.Read(LANE)
    match kind:
        case "shuffle_xor":
            return ir.Apply("bitwise_xor", (lane, by), I32)
        case "shuffle_up":
            found = ir.Apply("subtract", (lane, by), I32, True)
            return ir.Choose(ir.Apply("less", (lane, by), BOOL), lane, found)
        case "shuffle_down":
            found = ir.Apply("add", (lane, by), I32, True)
            return ir.Choose(ir.Apply("less", (found, ir.Const(SIMD_WIDTH, I32)), BOOL), found, lane)
        case _:
            return by
