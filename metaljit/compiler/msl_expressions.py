"""Expressions of IR as Metal text, with no more parentheses than the operators' precedence asks for.

In: an expression, and the names that a kernel's fields, buffers, functions and variables have. Out: its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import assert_never

from ..conversions import spell_bitcast, spell_cast, spell_saturate
from ..dtypes import BF16, BOOL, I32, I64, U32, DType, Type
from ..frozen import mutable
from ..operation_rules import (
    ADD,
    BIT_AND,
    BIT_OR,
    COMMA,
    CONDITION,
    EQUALITY,
    MULTIPLY,
    OR,
    PRIMARY,
    RELATION,
    UNARY,
    Spelling,
    check,
    form,
    spell,
)
from ..operations import OPERATIONS
from . import ir
from .spelling import Scope, identifier, literal, type_name
from .usage import Usage

# Operations that cost no more than a branch, and have no effect and no fault where they need not be evaluated.
PLAIN = frozenset(
    "less less_equal greater greater_equal equal not_equal isnan isinf isfinite signbit logical_and logical_or "
    "logical_not bitwise_and bitwise_or bitwise_xor".split()
)


UNWRAPPED = frozenset(("add", "subtract", "multiply", "negative"))


def is_plain_logic(e: ir.Apply) -> bool:
    return e.op in ("logical_and", "logical_or") and e.type == BOOL and all(is_plain(a) for a in e.args)


def is_plain(e: ir.Expr) -> bool:
    match e:
        case ir.Const() | ir.Read() | ir.Uniform():
            return True
        case ir.Apply(op, args, _, exact):
            return (op in PLAIN or (exact and op in UNWRAPPED)) and all(is_plain(a) for a in args)
        case ir.Lane(value, lane, _):
            return isinstance(lane, int) and is_plain(value)
        case ir.InRange(index, extent, _, _):
            return is_plain(index) and is_plain(extent)
        case ir.Same(value):
            return is_plain(value)
        case _:
            return False


@mutable
class Expressions:
    """The names of one kernel, and what its expressions look like with them."""

    kernel: ir.Kernel
    math: str
    fields: dict[str, str]
    buffers: dict[str, str]
    functions: dict[str, str]
    uses: dict[str, Usage]
    tables: dict[tuple[tuple[str, ...], DType], tuple[str, tuple[int | float | bool, ...]]]
    top: Scope
    vars: dict[int, str] = field(default_factory=dict)
    templated: bool = False

    def read(self, var: ir.Var) -> str:
        """Where a variable lies."""
        return self.vars[var.number]

    def array(self, local: ir.Local) -> str:
        """Where a private array lies."""
        return self.vars[local.number]

    def expr(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The text of an expression, in parentheses where its precedence is below `outer`."""
        text, own = self._expr(e)
        return f"({text})" if own < outer else text

    def _expr(self, e: ir.Expr) -> tuple[str, int]:
        match e:
            case ir.Const(value, type):
                text = literal(value, type)
                return text, UNARY if text.startswith("-") else PRIMARY
            case ir.Read(var):
                return self.read(var), PRIMARY
            case ir.Uniform(name, type):
                return self._stored(f"p.{self.fields[name]}", type)
            case ir.Load():
                return self._load(e)
            case ir.LocalLoad(local, offset):
                return f"{self.array(local)}[{self.expr(offset)}]", PRIMARY
            case ir.Table(values, type, offset):
                return f"{self._table(values, type)}[{self.expr(offset)}]", PRIMARY
            case ir.Apply():
                return self._apply(e)
            case ir.Convert(value, type, saturating):
                return self._convert(value, type, saturating)
            case ir.Bitcast(value, type):
                return self._cast(value, type, spell_bitcast)
            case ir.Choose(condition, then, otherwise):
                parts = (
                    self.condition(condition, CONDITION + 1),
                    self.expr(then, CONDITION + 1),
                    self.expr(otherwise, CONDITION),
                )
                return "{} ? {} : {}".format(*parts), CONDITION
            case ir.Vector(parts, type):
                return f"{type_name(type)}({', '.join(self.expr(p) for p in parts)})", PRIMARY
            case ir.Lane(value, lane, _):
                base = self.expr(value, PRIMARY)
                return (
                    f"{base}.{'xyzw'[lane]}" if isinstance(lane, int) else f"{base}[{self.expr(lane)}]"
                ), PRIMARY
            case ir.Fold(mode, index, extent, always, _):
                return self._fold(mode, index, extent, always)
            case ir.InRange(index, extent, always, _):
                text = f"uint({self.expr(index)}) < uint({self.expr(extent)})"
                return (text, RELATION) if always else (f"inside || {text}", OR)
            case ir.Call(name, args, _):
                return self._call(name, args), PRIMARY
            case ir.Same(value):
                return self._expr(value)
        assert_never(e)

    def condition(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The text of an expression where only its truth matters."""
        text, own = self._logic(e) if isinstance(e, ir.Apply) and is_plain_logic(e) else self._expr(e)
        return f"({text})" if own < outer else text

    def _logic(self, e: ir.Apply) -> tuple[str, int]:
        """`a & b`: no branch where none is needed, so that clang can turn what depends on it into a choice."""
        sign, own = ("&", BIT_AND) if e.op == "logical_and" else ("|", BIT_OR)
        return f" {sign} ".join(self.condition(a, UNARY) for a in e.args), own

    def _stored(self, text: str, dtype: DType) -> tuple[str, int]:
        """A value read from memory: a bool is a byte, a bf16 its bits."""
        if dtype == BOOL:
            return f"{text} != 0", EQUALITY
        return (f"mj_bf16_value({text})" if dtype == BF16 else text), PRIMARY

    def to_store(self, text: str, dtype: DType) -> str:
        if dtype == BOOL:
            return f"uchar({text})"
        return f"mj_bf16_bits({text})" if dtype == BF16 else text

    def _load(self, e: ir.Load) -> tuple[str, int]:
        name, lanes = self.buffers[e.buffer.name], e.buffer.lanes
        if lanes == 1:
            return self._stored(f"{name}[{self.place(e.buffer, e.offset)}]", e.buffer.dtype)
        parts = [
            self._stored(f"{name}[{at}]", e.buffer.dtype)[0] for at in self.lane_offsets(e.buffer, e.offset)
        ]
        return f"{type_name(e.type)}({', '.join(parts)})", PRIMARY

    def offset(self, e: ir.Expr, outer: int = COMMA + 1) -> str:
        """The offset of an element: int, but for its first factor's type, which a CPU makes long."""
        match e:
            case ir.Apply("add", (ir.Apply("multiply", _, _, True) as rows, last), _, True):
                text, own = f"{self.offset(rows, ADD)} + {self.expr(last, ADD + 1)}", ADD
            case ir.Apply("multiply", (ir.Apply("add", _, _, True) as rows, extent), _, True):
                text, own = f"{self.offset(rows, MULTIPLY)} * {self.expr(extent, MULTIPLY + 1)}", MULTIPLY
            case ir.Apply("multiply", (row, extent), _, True):
                text, own = f"mj_offset({self.expr(row)}) * {self.expr(extent, MULTIPLY + 1)}", MULTIPLY
            case _:
                return self.expr(e, outer)
        return f"({text})" if own < outer else text

    def place(self, buffer: ir.Buffer, offset: ir.Expr, outer: int = COMMA + 1) -> str:
        """An element's offset; threadgroup arrays are small enough for any integer."""
        return self.offset(offset, outer) if buffer.size is None else self.expr(offset, outer)

    def lane_offsets(self, buffer: ir.Buffer, offset: ir.Expr) -> list[str]:
        first = f"{buffer.lanes} * {self.place(buffer, offset, MULTIPLY + 1)}"
        return [first, *(f"{first} + {k}" for k in range(1, buffer.lanes))]

    def _table(self, values: tuple[int | float | bool, ...], type: DType) -> str:
        key = (tuple(repr(v) for v in values), type)  # by text: 0.0 and -0.0 are equal
        if key not in self.tables:
            self.tables[key] = (self.top.new(f"{identifier(self.kernel.name)}_table"), values)
        return self.tables[key][0]

    def _apply(self, e: ir.Apply) -> tuple[str, int]:
        op = OPERATIONS[e.op]
        if is_plain_logic(e):
            return f"bool({self._logic(e)[0]})", PRIMARY  # C's `&` of two bools is an int
        if e.exact and e.type == I32 and op.name in UNWRAPPED:
            spelling = spell(op, check(op, [U32] * len(e.args)), "precise")
        elif e.exact and e.type == I32 and op.name == "floor_divide":
            spelling = Spelling("{0} / {1}", *form("{0} / {1}", 2))
        else:
            spelling = spell(op, check(op, [a.type.scalar for a in e.args]), self.math)  # type: ignore[arg-type]
        return self._spelled(spelling, e.args, e.type)

    def _spelled(self, s: Spelling, args: Sequence[ir.Expr], type: Type) -> tuple[str, int]:
        if s.via_float:
            operands = [f"float({self.expr(a)})" for a in args]
        else:
            operands = [self.expr(a, level) for a, level in zip(args, s.levels, strict=True)]
        text, own = s.text.format(*operands), s.precedence
        if s.via_float and type != BOOL:
            return f"half({text})", PRIMARY
        if s.narrows:
            return f"{type_name(type)}({text})", PRIMARY
        if s.rounds:
            return f"mj_round_bf16({text})", PRIMARY
        return text, own

    def _convert(self, value: ir.Expr, type: Type, saturating: bool) -> tuple[str, int]:
        return self._cast(value, type, spell_saturate if saturating else spell_cast)

    def _cast(self, value: ir.Expr, type: Type, rule: object) -> tuple[str, int]:
        assert isinstance(type, DType)
        assert isinstance(value.type, DType)
        spelling = rule(value.type, type)  # type: ignore[operator]
        return self._spelled(spelling, (value,), type)

    def _fold(self, mode: str, index: ir.Expr, extent: ir.Expr, always: bool) -> tuple[str, int]:
        i, n = self.expr(index), self.expr(extent)
        wide = "64" if index.type == I64 else ""
        if mode == "sign":
            text = f"mj_antiperiodic{wide}({i}, {n}) ? -1 : 1"
            return (text if always else f"!inside && {text}"), CONDITION
        text = f"mj_{mode}{wide}({i}, {n})"
        if always:
            return text, PRIMARY
        return f"inside ? {self.expr(index, CONDITION + 1)} : {text}", CONDITION

    def _call(self, name: str, args: Sequence[ir.Expr]) -> str:
        used = self.uses[name]
        flag = "<inside>" if used.inside else ""
        passed = [
            "p",
            *(("status", "gid") if used.checks else ()),
            *(self.buffers[b] for b in sorted(used.buffers)),
        ]
        passed += [self.array(v) for v in used.passed_locals]
        passed += [self.expr(a) for a in args]
        return f"{self.functions[name]}{flag}({', '.join(passed)})"
