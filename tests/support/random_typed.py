"""Random well-typed programs about every type: numbers, vectors, local arrays, reductions, borders, functions.

In: Hypothesis's choices. Out: a `Typed` program, its text and the types of its parameters. Every expression is written
for a type that is wanted, with the operands that the operation table allows for it, so that nearly all programs check.
All operations are exact or rounded in the same way everywhere: results must be equal bit for bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_expressions import EITHER_ZERO, SIGN_OF_NAN, exact, samples

from metaljit.dtypes import BOOL, DTYPES, I32, TYPES, U32, DType, Type, Vec
from metaljit.operation_rules import Operation, Refusal, check
from metaljit.operations import OPERATIONS, ROWS

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
NUMBERS = ("0", "1", "2", "3", "7", "100", "0.5", "True")
Forms = Mapping[str, Sequence[tuple[DType, ...]]]


@cache
def forms() -> Mapping[DType, Forms]:
    """By result type and name: the operand types of every exact operation that gives it."""
    found: dict[DType, dict[str, list[tuple[DType, ...]]]] = {d: {} for d in DTYPES.values()}
    for op in ROWS:
        for types in _operands(op):
            try:
                result = check(op, types).result
            except Refusal:
                continue
            if exact(op, result):
                found[result].setdefault(op.name, []).append(types)
    return found


def _operands(op: Operation) -> list[tuple[DType, ...]]:
    """All pairs; three operands are of two types at most."""
    every = tuple(DTYPES.values())
    if op.arity < 3:
        return list(itertools.product(every, repeat=op.arity))
    firsts = (BOOL,) if op.rule == "select" else every
    pairs = itertools.product(every, repeat=2)
    return [(f, a, b) for f in firsts for a, b in pairs if op.rule == "select" or f in (a, b)]


@dataclass(frozen=True)
class Typed:
    """`arrays` are the parameters of `N` elements, `numbers` those that are passed by value."""

    text: str
    arrays: Mapping[str, Type]
    numbers: Mapping[str, Type]

    def arguments(self, count: int, seed: int) -> list[Any]:
        made = [_array(t, (count,), seed + k) for k, t in enumerate(self.arrays.values())]
        scalars = [_array(t, (), seed - k - 1) for k, t in enumerate(self.numbers.values())]
        return [*made, *scalars]


def _array(type: Type, shape: tuple[int, ...], seed: int) -> Any:
    """Nasty values; () gives a NumPy scalar, or an array of a vector's lanes."""
    shape = shape + (type.lanes,) * (type.lanes > 1)
    values = samples(type.scalar, int(np.prod(shape)), seed % 2**31).reshape(shape)
    return values if shape else values[()]


@dataclass
class Text:
    """A program as it grows. `names` are those with a value here."""

    draw: st.DrawFn
    names: dict[str, Type]
    arrays: Mapping[str, Type]
    functions: dict[str, tuple[tuple[Type, ...], Type]]
    results: tuple[Type, ...]
    locals: dict[str, Type] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    fresh: int = 0

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def type(self) -> Type:
        return self.draw(st.sampled_from(_SCALARS) if self.chance(75) else st.sampled_from(_VECTORS))

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    # ---- expressions ----

    def leaf(self, type: Type) -> str:
        """A name, an element or a literal of the type, or else something cast to it."""
        found = [n for n, t in self.names.items() if t == type]
        found += [
            f"{a}[{self.index()}]" for a, t in (*self.arrays.items(), *self.locals.items()) if t == type
        ]
        if found and self.chance(85):
            return str(self.pick(found))
        if type.lanes > 1 and self.chance(60):
            same = [n for n, t in self.names.items() if t.lanes == type.lanes]
            return f"{cast(type)}({self.pick([*same, self.leaf(type.scalar)])})"
        scalars = [n for n, t in self.names.items() if t.lanes == 1]
        return f"{cast(type)}({self.pick(scalars if scalars and self.chance(80) else NUMBERS)})"

    def index(self) -> str:
        near = ["i", "i + 1", "i - 1", "N - 1 - i", "i * 2", "i // 2", "0", "2"]
        integers = [n for n, t in self.names.items() if t == I32]
        return str(self.pick([*near, *integers] if "i" in self.names else ["0", "1", *integers]))

    def value(self, type: Type, depth: int = 2) -> str:
        """An expression of exactly this type."""
        if depth == 0 or self.chance(15):
            return self.leaf(type)
        if isinstance(type, Vec):
            return self.vector(type, depth - 1)
        match self.draw(st.integers(0, 13)):
            case 0:
                return f"{cast(type)}({self.value(self.pick(_SCALARS), depth - 1)})"
            case 1:
                return f"({self.value(type, depth - 1)} if {self.condition(depth - 1)} else {self.value(type, depth - 1)})"
            case 2:
                return self.reduction(type, depth - 1)
            case 3:
                return self.lanes(type, depth - 1)
            case 4 if type != BOOL:
                return self.bits(type, depth - 1)
            case 5 if type in self.arrays.values():
                name = self.pick([a for a, t in self.arrays.items() if t == type])
                return f"border({name}, {self.pick(MODES)!r})[{self.index()}]"
            case 6 if any(result == type for _, result in self.functions.values()):
                return self.call(type, depth - 1)
            case _:
                return self.operation(type, depth - 1)

    def operation(self, type: DType, depth: int, lanes: int = 1) -> str:
        """A row of the table; of vectors at least one operand is a vector."""
        table = forms()[type]
        name = self.pick([n for n in table if lanes == 1 or n not in _SCALARS_ONLY])
        types: Sequence[DType] = self.pick(table[name])
        wide = self.draw(st.integers(0, len(types) - 1))
        args = []
        for k, t in enumerate(types):
            is_vector = lanes > 1 and (k == wide or self.chance(50))
            args.append(self.value(Vec(t, lanes) if is_vector else t, depth))
        if name in SIGN_OF_NAN and types[-1].is_float:
            args[-1] = f"nan_to_num({args[-1]})"
        op = OPERATIONS[name]
        if not op.symbol or (self.chance(20) and name not in ("logical_and", "logical_or", "logical_not")):
            made = f"{name}({', '.join(args)})"
            return _positive_zero(made, type) if name in EITHER_ZERO else made
        return f"({args[0]} {op.symbol} {args[1]})" if op.arity == 2 else f"({op.symbol} {args[0]})"

    def condition(self, depth: int) -> str:
        return self.value(BOOL, depth)

    def reduction(self, type: DType, depth: int) -> str:
        k, bound = self.name("k"), self.pick(["3", "N", "i + 1"] if "i" in self.names else ["3", "2"])
        choices = [("min", type), ("max", type)]
        if type.bits >= 32 and type != BOOL:
            choices += [(f, t) for f in ("sum", "prod") for t in _SCALARS if _summed(t) == type]
        if type == BOOL:
            choices = [("any", BOOL), ("all", BOOL)]
        name, of = self.pick(choices)
        self.names[k] = I32
        element = self.value(of, min(depth, 1))
        test = f" if {self.condition(1)}" if self.chance(25) else ""
        del self.names[k]
        made = f"{name}({element} for {k} in range({bound}){test})"
        return _positive_zero(made, type) if name in ("min", "max") else made

    def lanes(self, type: DType, depth: int) -> str:
        """A number out of a vector."""
        lanes = self.draw(st.integers(2, 4))
        v = self.value(Vec(type, lanes), depth)
        ways = [f"{v}.{self.pick('xyzw'[:lanes])}", f"{v}[{self.index()}]"]
        ways += (
            [f"any({v})", f"all({v})"]
            if type == BOOL
            else [_positive_zero(f"{f}({v})", type) for f in ("min", "max")]
        )
        if type.is_float:
            ways.append(f"dot({v}, {self.value(Vec(type, lanes), depth)})")
        return str(self.pick(ways))

    def bits(self, type: DType, depth: int) -> str:
        if type.is_integer and self.chance(30):
            return f"saturate({type}, {self.value(self.pick(_SCALARS), depth)})"
        source: DType = self.pick([t for t in DTYPES.values() if t.bits == type.bits and t != BOOL])
        inner = self.value(source, depth)
        return f"bitcast({type}, {f'nan_to_num({inner})' if source.is_float else inner})"

    def call(self, type: Type, depth: int) -> str:
        name = self.pick([f for f, (_, result) in self.functions.items() if result == type])
        return f"{name}({', '.join(self.value(t, depth) for t in self.functions[name][0])})"

    def vector(self, type: Vec, depth: int) -> str:
        match self.draw(st.integers(0, 7)):
            case 0:
                return f"{type}({', '.join(self.value(type.scalar, depth) for _ in range(type.lanes))})"
            case 1:
                source = Vec(self.pick(_SCALARS), type.lanes)
                return f"{type}({self.value(source, depth)})"
            case 2:
                lanes = self.draw(st.integers(2, 4))
                letters = "".join(self.pick("xyzw"[:lanes]) for _ in range(type.lanes))
                return f"{self.value(Vec(type.scalar, lanes), depth)}.{letters}"
            case 3 if type.lanes > 2:
                pair = f"{self.value(Vec(type.scalar, 2), depth)}"
                rest = [self.value(type.scalar, depth) for _ in range(type.lanes - 2)]
                return f"{type}({', '.join([pair, *rest])})"
            case 4 if any(result == type for _, result in self.functions.values()):
                return self.call(type, depth)
            case _:
                return self.operation(type.scalar, depth, type.lanes)

    # ---- statements ----

    def statement(self, nesting: int) -> None:
        match self.draw(st.integers(0, 10 if nesting else 4)):
            case 0 | 1:
                type, name = self.type(), self.name("v")
                declared = f": {type}" if self.chance(15) and type != BOOL else ""
                self.line(f"{name}{declared} = {self.value(type)}")
                self.names[name] = type
            case 2 | 3:
                self.rebound()
            case 4:
                self.element()
            case 5 | 6:
                self.line(f"if {self.condition(2)}:")
                self.block(nesting)
                if self.chance(50):
                    self.line("else:")
                    self.block(nesting)
            case 7 | 8:
                k = self.name("k")
                self.line(
                    f"for {k} in range({self.pick(['2', '3', 'N'] if 'i' in self.names else ['2', '3'])}):"
                )
                self.block(nesting, k, I32, loop=True)
            case 9:
                type, name = self.type(), self.name("w")
                self.line(f"for {name} in ({self.value(type, 1)}, {self.value(type, 1)}):")
                self.block(nesting, name, type, loop=True)
            case _:
                n = self.name("n")
                self.line(f"{n} = 0")
                self.line(f"while {n} < 3 and {self.condition(1)}:")
                self.line(f"    {n} += 1")
                self.block(nesting, n, I32, loop=True)

    def block(self, nesting: int, name: str = "", type: Type = I32, *, loop: bool = False) -> None:
        """Statements one deeper, where `name` is known too; what they define is unknown afterwards."""
        names, inner, fixed = dict(self.names), dict(self.locals), set(self.fixed)
        if name:
            self.names[name] = type
            self.fixed.add(name)
        self.depth += 1
        for _ in range(self.draw(st.integers(1, 2))):
            self.statement(nesting - 1)
        if loop and self.chance(15):
            self.line(self.pick(["break", "continue"]))
        elif self.chance(8):
            self.returns()
        self.depth -= 1
        self.names, self.locals, self.fixed = names, inner, fixed

    def rebound(self) -> None:
        """A name gets another value of its type."""
        bound = [n for n in self.names if n not in self.fixed]
        if not bound:
            return self.line("pass")
        name = self.pick(bound)
        type = self.names[name]
        ways = _augmented(type.scalar)
        if ways and self.chance(40):
            symbol, other = self.pick(ways)
            wanted = Vec(other, type.lanes) if isinstance(type, Vec) and self.chance(50) else other
            return self.line(f"{name} {symbol}= {self.value(wanted)}")
        same = [n for n in bound if self.names[n] == type and n != name]
        if same and self.chance(25):
            other = self.pick(same)
            return self.line(f"{name}, {other} = {other}, {name}")
        self.line(f"{name} = {self.value(type)}")

    def element(self) -> None:
        """A local array is made, or gets an element."""
        if self.locals and self.chance(70):
            name = self.pick(list(self.locals))
            type = self.locals[name]
            self.line(f"{name}[{self.index()}] = {self.value(type)}")
        else:
            type, name = self.type(), self.name("t")
            self.line(f"{name} = local_array({cast(type)}, 4)")
            self.locals[name] = type

    def returns(self) -> None:
        self.line(f"return {', '.join(self.value(t) for t in self.results)}")


_SCALARS: tuple[DType, ...] = tuple(DTYPES.values())
_VECTORS: tuple[Type, ...] = tuple(t for t in TYPES.values() if t.lanes > 1)
_SCALARS_ONLY = ("logical_and", "logical_or", "logical_not")


def cast(type: Type) -> str:
    return "bool_" if type == BOOL else type.name


def _positive_zero(text: str, type: DType) -> str:
    """-0.0 becomes 0.0, so that nothing tells one zero from the other."""
    return f"({text} + {type}(0))" if type.is_float else text


@cache
def _augmented(type: DType) -> list[tuple[str, DType]]:
    """The operators and right sides with which a name keeps its type."""
    return [
        (op.symbol, pair[1])
        for name, pairs in forms()[type].items()
        if (op := OPERATIONS[name]).symbol in ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "/")
        for pair in pairs
        if op.arity == 2 and pair[0] == type
    ]


def _summed(type: DType) -> DType:
    """The type of a sum of many."""
    if type.kind == "bool":
        return I32
    if type.is_float:
        return DTYPES["f32"]
    return type if type.bits >= 32 else I32 if type.kind == "int" else U32


def _function(draw: st.DrawFn, name: str, functions: dict[str, tuple[tuple[Type, ...], Type]]) -> list[str]:
    """A device function of one or two values; it becomes one of `functions`."""
    every = st.sampled_from(tuple(TYPES.values()))
    types = tuple(draw(st.lists(every, min_size=1, max_size=2)))
    result = draw(every)
    inner = Text(draw, {f"x{k}": t for k, t in enumerate(types)}, {}, dict(functions), (result,))
    for _ in range(draw(st.integers(0, 2))):
        inner.statement(1)
    inner.returns()
    functions[name] = types, result
    head = ", ".join(f"x{k}: {t}" if draw(st.booleans()) else f"x{k}" for k, t in enumerate(types))
    return [f"def {name}({head}):", *inner.lines]


@st.composite
def typed_programs(draw: st.DrawFn) -> Typed:
    """A map kernel over four arrays and two numbers that gives three arrays."""
    every = st.sampled_from(tuple(TYPES.values()))
    some = st.one_of(st.sampled_from(_SCALARS), st.sampled_from(_SCALARS), every)
    arrays = {n: draw(some) for n in "abcd"}
    numbers = {n: draw(some) for n in "rs"}
    results = tuple(draw(st.lists(some, min_size=3, max_size=3)))
    functions: dict[str, tuple[tuple[Type, ...], Type]] = {}
    head = ['N = dims("N")']
    for k in range(draw(st.integers(0, 2))):
        head += _function(draw, f"f{k}", functions)
    text = Text(draw, {"i": I32, "N": I32, **numbers}, arrays, functions, results, fixed={"i", "N", *numbers})
    for _ in range(draw(st.integers(2, 5))):
        text.statement(2)
    text.returns()
    parameters = [*(f"{n}: {t}[N]" for n, t in arrays.items()), *(f"{n}: {t}" for n, t in numbers.items())]
    head += ["@kernel", f"def random({', '.join(parameters)}) -> ({', '.join(f'{t}[N]' for t in results)}):"]
    return Typed("\n".join([*head, "    i = position()", *text.lines]), arrays, numbers)
