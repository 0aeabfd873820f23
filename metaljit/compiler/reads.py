"""Where a kernel reads an array, and which positions of the kernel read a given element of it.

In: a block without calls, in which reads are calls of functions `#name` of their indices. Out: reads that have one index
in common, as polynomials of positions, loop variables, extents and quotients; and the steps by which these equations are
solved for an element's index, with what is left free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from ..dtypes import I32
from ..frozen import frozen, mutable
from ..source import Span
from . import ir, rewrite
from .bounds import Poly
from .usage import blocks, expressions, walk_expressions

MARK = "#"
SMALL = 64  # turns of a loop that are gone through for each element


@mutable
class Space:
    """Symbols by what they stand for: ("p", axis), ("k", depth), ("u", name), ("t", axis), ("q", dividend, divisor),
    ("r", dividend, divisor)."""

    keys: dict[Any, int] = field(default_factory=dict)
    meanings: list[Any] = field(default_factory=list)
    quotients: dict[int, tuple[Poly, int]] = field(default_factory=dict)

    def number(self, *key: Any) -> int:
        if key not in self.keys:
            self.keys[key] = len(self.meanings)
            self.meanings.append(key)
        return self.keys[key]

    def symbol(self, *key: Any) -> Poly:
        return Poly({(self.number(*key),): 1})

    def quotient(self, dividend: Poly, divisor: int) -> Poly:
        made = self.number("q", dividend.key(), divisor)
        self.quotients[made] = dividend, divisor
        return Poly({(made,): 1})

    def kind(self, symbol: int) -> str:
        return str(self.meanings[symbol][0])


@frozen
class Turns:
    """The loop of a read's loop variable; bounds are None where they are no polynomials of extents."""

    symbol: int
    start: Poly | None
    stop: Poly | None
    step: int

    @property
    def key(self) -> Any:
        ends = tuple(None if e is None else e.key() for e in (self.start, self.stop))
        return self.symbol, ends, self.step


@frozen
class Read:
    """One read: `index` before any border, `folded` where one has a say, `args` behind it.

    `exprs` are the indices with symbols for variables, equal where those of two lowerings of a kernel are.
    """

    call: ir.Call
    args: tuple[ir.Expr, ...]
    index: tuple[Poly | None, ...]
    exprs: tuple[ir.Expr, ...]
    folded: tuple[bool, ...]
    loops: tuple[tuple[Turns, ir.Var], ...]
    span: Span

    @property
    def key(self) -> Any:
        if None in self.index:
            return self.call.function, self.exprs, tuple(t.key for t, _ in self.loops)
        index = tuple(p.key() for p in self.index if p is not None)
        return self.call.function, index, tuple(t.key for t, _ in self.used)

    @property
    def used(self) -> tuple[tuple[Turns, ir.Var], ...]:
        """The loops whose variable the index has; all, where it is no polynomial."""
        if None in self.index:
            return self.loops
        symbols = {s for p in self.index if p is not None for s in self.inner(p)}
        return tuple((t, v) for t, v in self.loops if t.symbol in symbols)

    space: Space = field(repr=False, kw_only=True)

    def inner(self, p: Poly) -> set[int]:
        """The symbols of a polynomial and of the dividends in it."""
        return symbols_of(self.space, p)


def symbols_of(space: Space, p: Poly) -> set[int]:
    found = set(p.symbols())
    for s in list(found):
        if s in space.quotients:
            found |= symbols_of(space, space.quotients[s][0])
    return found


@mutable
class Reads:
    """Finds the reads of a block."""

    space: Space
    positions: Mapping[int, int]  # the axis, by a variable's number
    found: list[Read] = field(default_factory=list)
    lets: dict[int, ir.Expr] = field(default_factory=dict)
    symbols: dict[int, int] = field(default_factory=dict)

    def block(self, body: Sequence[ir.Stmt], loops: tuple[tuple[Turns, ir.Var], ...] = ()) -> list[Read]:
        for s in body:
            for top in expressions(s):
                for e in walk_expressions(top):
                    if isinstance(e, ir.Call) and e.function.startswith(MARK):
                        self._read(e, loops, s.span)
            inner = loops
            match s:
                case ir.Let(var, value):
                    self.lets[var.number] = self.resolved(value)
                case ir.For(var):
                    symbol = self.space.number("k", len(loops))
                    turns = Turns(symbol, self._bound(s.start), self._bound(s.stop), s.step)
                    self.symbols[var.number] = symbol
                    inner = (*loops, (turns, var))
                case _:
                    pass
            for b in blocks(s):
                self.block(b, inner)
        return self.found

    def resolved(self, e: ir.Expr) -> ir.Expr:
        return rewrite.expression(
            e, lambda x: self.lets.get(x.var.number, x) if isinstance(x, ir.Read) else x
        )

    def _bound(self, e: ir.Expr) -> Poly | None:
        p = self.polynomial(self.resolved(e))
        known = p is not None and all(self.space.kind(s) in "uq" for s in symbols_of(self.space, p))
        return p if known else None

    def _read(self, call: ir.Call, loops: tuple[tuple[Turns, ir.Var], ...], span: Span) -> None:
        args = tuple(map(self.resolved, call.args))
        folded = [isinstance(e, ir.Fold) for e in args]
        exprs = [e.index if isinstance(e, ir.Fold) else e for e in args]
        index = tuple(map(self.polynomial, exprs))
        plain = tuple(self._canonical(e) for e in exprs)
        self.found.append(Read(call, args, index, plain, tuple(folded), loops, span, space=self.space))

    def _canonical(self, e: ir.Expr) -> ir.Expr:
        """With positions and loop variables by their symbols, and without borders, which may be known to vanish."""

        def rule(x: ir.Expr) -> ir.Expr:
            match x:
                case ir.Read(var):
                    symbol = self._symbol(var)
                    return ir.Read(ir.Var("s", var.type, -1 - symbol)) if symbol is not None else x
                case ir.Fold(_, index):
                    return index
                case ir.Apply(exact=True):
                    return replace(x, exact=False)
                case _:
                    return x

        return rewrite.expression(e, rule)

    def _symbol(self, var: ir.Var) -> int | None:
        if var.number in self.positions:
            return self.space.number("p", self.positions[var.number])
        return self.symbols.get(var.number)

    def polynomial(self, e: ir.Expr) -> Poly | None:
        if e.type != I32:
            return None
        match e:
            case ir.Const(value):
                return Poly.of(int(value))
            case ir.Read(var):
                symbol = self._symbol(var)
                return Poly({(symbol,): 1}) if symbol is not None else None
            case ir.Uniform(name):
                return self.space.symbol("u", name)
            case ir.Apply(op, args):
                parts = [self.polynomial(a) for a in args]
                known = [p for p in parts if p is not None]
                return _combined(self.space, op, known) if len(known) == len(parts) else None
            case _:
                return None


def _combined(space: Space, op: str, p: Sequence[Poly]) -> Poly | None:
    match op:
        case "add":
            return p[0] + p[1]
        case "subtract":
            return p[0] - p[1]
        case "multiply":
            return p[0] * p[1]
        case "negative":
            return -p[0]
        case "positive":
            return p[0]
        case "floor_divide" if (d := p[1].constant) is not None and d > 0:
            return space.quotient(p[0], d)
        case "right_shift" if (k := p[1].constant) is not None and 0 <= k < 31:
            return space.quotient(p[0], 1 << k)
        case _:
            return None


# ---- which positions read an element ----


@frozen
class Solve:
    """`coefficient * symbol + rest` is 0, where the coefficient divides the rest."""

    symbol: int
    coefficient: int
    rest: Poly


@frozen
class Test:
    """`value` is 0."""

    value: Poly


@frozen
class Each:
    """The symbol takes each of these values."""

    symbol: int
    start: Poly
    stop: Poly
    step: int


Step: TypeAlias = Solve | Test | Each


@frozen
class Group:
    """Reads of one index. `steps` give positions and turns from an element's index; `free` axes of the positions take every
    value. No steps: the index is no polynomial, or it does not say which positions read an element."""

    read: Read
    folded: tuple[bool, ...]
    steps: tuple[Step, ...] | None
    free: tuple[int, ...]


def groups(reads: Sequence[Read], rank: int) -> list[Group]:
    """`rank` is that of the positions."""
    by_key: dict[Any, list[Read]] = {}
    for r in reads:
        by_key.setdefault(r.key, []).append(r)
    found = []
    for same in by_key.values():
        first = same[0]
        folded = tuple(any(f) for f in zip(*(r.folded for r in same), strict=True))
        solved = _Solver(first, rank).run() if None not in first.index else None
        steps, free = solved if solved is not None else (None, ())
        found.append(Group(first, folded, steps, free))
    return found


class _Solver:
    """Solves `index = target` for positions and loop variables, an unknown at a time."""

    def __init__(self, read: Read, rank: int) -> None:
        self.space = read.space
        self.loops = {t.symbol: t for t, _ in read.used}
        self.unknown = {self.space.number("p", k) for k in range(rank)} | self.loops.keys()
        self.steps: list[Step] = []
        self.equations = [
            p - self.space.symbol("t", axis) for axis, p in enumerate(read.index) if p is not None
        ]

    def run(self) -> tuple[tuple[Step, ...], tuple[int, ...]] | None:
        try:
            self.equations = [self._without_quotients(e) for e in self.equations]
            free: list[int] = []
            while self.equations:
                if not self._advance() and not self._enumerate(free):
                    return None
        except LookupError:
            return None
        axes = [s for s in self.unknown if self.space.kind(s) == "p"] + free
        if any(s in self.loops for s in self.unknown):
            return None
        return tuple(self.steps), tuple(sorted(self.space.meanings[s][1] for s in axes))

    def _without_quotients(self, e: Poly) -> Poly:
        """±(n // d) + rest = 0 is n = d * ∓rest + r with r below d."""
        for s in sorted(e.symbols() & self.space.quotients.keys()):
            dividend, divisor = self.space.quotients[s]
            if not symbols_of(self.space, dividend) & self.unknown:
                continue
            parts = e.split(s)
            sign = parts[0].constant if parts is not None else None
            if parts is None or sign not in (1, -1):
                raise LookupError
            r = self.space.number("r", dividend.key(), divisor)
            self.steps.append(Each(r, Poly.of(0), Poly.of(divisor), 1))
            quotient = parts[1] * -sign
            return self._without_quotients(dividend - quotient * divisor - Poly({(r,): 1}))
        return e

    def _advance(self) -> bool:
        """Uses the first equation with at most one unknown."""
        for e in self.equations:
            unknown = e.symbols() & self.unknown
            if len(unknown) > 1:
                continue
            if not unknown:
                self.steps.append(Test(e))
            else:
                (symbol,) = unknown
                coefficient, rest = self._split(e, symbol)
                self.steps.append(Solve(symbol, coefficient, rest))
                self.unknown.remove(symbol)
            self.equations.remove(e)
            return True
        return False

    def _split(self, e: Poly, symbol: int) -> tuple[int, Poly]:
        parts = e.split(symbol)
        coefficient = parts[0].constant if parts is not None else None
        if parts is None or coefficient is None or symbol in parts[1].symbols():
            raise LookupError
        return coefficient, parts[1]

    def _enumerate(self, free: list[int]) -> bool:
        """Goes through the values of one unknown: of a short loop, of another, or of a position."""
        unknown = {s for e in self.equations for s in e.symbols() & self.unknown}
        loops = [self.loops[s] for s in sorted(unknown) if s in self.loops]
        known = [t for t in loops if t.start is not None and t.stop is not None]
        for t in sorted(known, key=lambda t: not _is_short(t)):
            assert t.start is not None
            assert t.stop is not None
            self.steps.append(Each(t.symbol, t.start, t.stop, t.step))
            self.unknown.remove(t.symbol)
            return True
        for e in self.equations:
            for s in e.symbols() & self.unknown:
                self._split(e, s)
        first = min(unknown)
        free.append(first)
        self.unknown.remove(first)
        return True


def _is_short(t: Turns) -> bool:
    start, stop = (p.constant if p is not None else None for p in (t.start, t.stop))
    return start is not None and stop is not None and len(range(start, stop, t.step)) <= SMALL


def substituted(p: Poly, by: Mapping[int, Poly]) -> Poly:
    """The polynomial with others for its symbols."""
    total = Poly.of(0)
    for monomial, c in p.terms.items():
        product = Poly.of(c)
        for s in monomial:
            product = product * by[s]
        total = total + product
    return total
