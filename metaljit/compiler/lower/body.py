"""The state of one compilation (`Unit`) and of one function body in it (`Body`).

`Unit` gathers what the whole program needs: uniforms, functions, margins, assertions, notes, diagnostics.
`Body` holds the names and the statements where lowering stands. Both can be rolled back, because a loop is
lowered again once the types of the names that it carries are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from metaljit.grammar import tree

from ...dtypes import I32, DType, Type, Vec
from ...extents import Extent, Lit, Op, Sym, show, substituted
from ...frozen import frozen, mutable
from ...program import INDEX_MAX, Uniform
from ...source import Diagnostic, Span
from .. import ir
from ..bounds import Facts, Poly
from .signature import Names
from .specialise import Specialisation
from .values import POISON, Fault, Group, Literal, NeedsConstant, Poisoned, Typed, Unset, Value, fault

DEFAULT_LOOP_LIMIT = 2**32 - 1
SIZE_MARGIN = INDEX_MAX - 2**20  # offsets up to a million are taken for offsets, not for hashing


@frozen
class Options:
    """What a kernel was decorated with."""

    math: str = "precise"
    asserts: bool = True
    loop_limit: int = DEFAULT_LOOP_LIMIT


@frozen
class Site:
    message: str
    span: Span


@mutable
class Unit:
    """One kernel being compiled."""

    name: str
    kind: str
    spec: Specialisation
    options: Options
    facts: Facts = field(default_factory=Facts)
    uniforms: dict[str, Uniform] = field(default_factory=dict)
    extent_polys: dict[str, Poly] = field(default_factory=dict)
    functions: dict[Any, tuple[ir.Function, Value]] = field(default_factory=dict)
    margins: list[ir.Margin] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    requirements: list[tuple[Extent, str, Span]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    plans: dict[Any, Any] = field(
        default_factory=dict
    )  # what functions return, by the types of their arguments
    unrolled: int = 0  # turns of unrolled loops so far
    copies: int = 1  # turns of the unrolled loops around this place, multiplied
    loop_types: dict[Any, dict[str, Type]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    trying: int = 0  # loops around this place that would be unrolled if a constant were needed
    grid_values: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    position_symbols: dict[int, int] = field(default_factory=dict)
    uniform_symbols: dict[int, str] = field(default_factory=dict)
    variables: int = 0
    size_limits: dict[str, int] = field(default_factory=dict)
    shared: list[ir.Buffer] = field(default_factory=list)
    threads: tuple[int, ...] = ()  # of a threadgroup
    grid_variables: frozenset[int] = frozenset()  # where a thread stands in the grid
    base: Specialisation | None = None  # of the graph, where the kernel that is lowered is part of one

    @property
    def passed(self) -> Mapping[str, DType | Vec]:
        """The numbers that the call is given."""
        return (self.base or self.spec).scalars

    def number(self) -> int:
        self.variables += 1
        return self.variables

    def report(self, diagnostic: Diagnostic) -> None:
        same = ((d.slug, d.span, d.message) for d in self.diagnostics)
        if (diagnostic.slug, diagnostic.span, diagnostic.message) not in same:
            self.diagnostics.append(diagnostic)

    @contextmanager
    def rollback(self) -> Iterator[Attempt]:
        """What is gathered within is forgotten, unless the attempt is kept; faults that end it are not."""
        lists: list[list[Any]] = [
            self.margins, self.sites, self.notes, self.requirements, self.diagnostics
        ]  # fmt: skip
        lengths = [len(items) for items in lists]
        functions = dict(self.functions)
        attempt = Attempt()
        try:
            with self.facts.scope():
                yield attempt
        except Poisoned:
            lengths[-1] = len(self.diagnostics)
            raise
        finally:
            if not attempt.keep:
                for items, n in zip(lists, lengths, strict=True):
                    del items[n:]
                self.functions = functions

    @contextmanager
    def within(self, spec: Specialisation) -> Iterator[None]:
        """Within, another kernel of the graph is lowered: `spec` is what its names stand for."""
        before = self.spec, self.base, self.plans, self.loop_types
        self.spec, self.base, self.plans, self.loop_types = spec, self.base or self.spec, {}, {}
        try:
            yield
        finally:
            self.spec, self.base, self.plans, self.loop_types = before

    def require(self, condition: Extent, message: str, span: Span) -> None:
        """The call checks the condition before anything runs."""
        self.requirements.append((substituted(condition, self.spec.extents), message, span))

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Within, a need for a compile-time constant is raised, not reported."""
        self.trying += 1
        try:
            yield
        finally:
            self.trying -= 1

    # ---- uniforms and extents ----

    def uniform(
        self, name: str, dtype: DType, value: Extent | None, scalar: str = "", lane: int = 0
    ) -> ir.Uniform:
        self.uniforms.setdefault(name, Uniform(name, dtype, value, scalar, lane))
        return ir.Uniform(name, dtype)

    def limit_size(self, goal: Poly) -> bool:
        """Makes `goal >= 0` a requirement of the call, if it only keeps one extent a little below 2³¹ − 1."""
        extents = {s: name for s, name in self.uniform_symbols.items() if name not in self.scalar_names}
        plain = frozenset(s for s, name in extents.items() if name.isidentifier())
        return self._limit(self.facts.eliminate(goal, frozenset(extents))) or self._limit(
            self.facts.eliminate(goal, plain, scaled=True)
        )

    def _limit(self, sure: Poly | None) -> bool:
        symbols = sorted(sure.symbols()) if sure is not None else []
        if sure is None or len(symbols) != 1:
            return False
        parts = sure.split(symbols[0])
        coefficient, rest = (parts[0].constant, parts[1].constant) if parts else (None, None)
        if coefficient != -1 or rest is None or not SIZE_MARGIN <= rest:
            return False
        name = self.uniform_symbols[symbols[0]]
        self.size_limits[name] = min(rest, self.size_limits.get(name, rest))
        return True

    @property
    def scalar_names(self) -> set[str]:
        return {u.name for u in self.uniforms.values() if u.scalar}

    def extent(self, extent: Extent) -> Value:
        """An extent as a value: a literal, a dim's uniform, or a uniform of its own for an expression."""
        extent = substituted(extent, self.spec.extents)
        if isinstance(extent, Lit):
            return Literal(extent.value)
        name = show(extent)
        if isinstance(extent, Sym) and extent.name in self.passed:
            return self.scalar(extent.name)
        return Typed(self.uniform(name, I32, extent), self._poly(extent))

    def extent_poly(self, extent: Extent) -> Poly:
        return self._poly(substituted(extent, self.spec.extents))

    def _poly(self, extent: Extent) -> Poly:
        match extent:
            case Lit(value):
                return Poly.of(int(value))
            case Sym(name) if name in self.passed:
                scalar = self.scalar(name)
                assert isinstance(scalar, Typed)
                assert scalar.poly is not None
                return scalar.poly
            case Op("+", (a, b)):
                return self._poly(a) + self._poly(b)
            case Op("-", (a, b)):
                return self._poly(a) - self._poly(b)
            case Op("*", (a, b)):
                return self._poly(a) * self._poly(b)
        name = show(extent)
        if name not in self.extent_polys:
            poly = self.extent_polys[name] = self._symbol(name, extent)
            self.uniform_symbols[self.facts.number(poly)] = name
            if not isinstance(extent, Sym):
                self.uniform(name, I32, extent)
        return self.extent_polys[name]

    def _symbol(self, name: str, extent: Extent) -> Poly:
        match extent:
            case Op("//", (a, Lit(int(c)))) if c > 0:
                return self.quotient(name, self._poly(a), c)
            case Op("ceil_div", (a, Lit(int(c)))) if c > 0:
                return self.quotient(name, self._poly(a) + (c - 1), c)
            case Op("min", args):
                return self.facts.symbol(name, [], [INDEX_MAX, *(self._poly(a) for a in args)])
            case Op("max", args):
                return self.facts.symbol(name, [self._poly(a) for a in args], [INDEX_MAX])
            case Sym():
                return self.facts.symbol(name, [0], [INDEX_MAX])
            case _:
                return self.facts.symbol(name, [-INDEX_MAX - 1], [INDEX_MAX])

    def quotient(self, name: str, dividend: Poly, divisor: int) -> Poly:
        """floor(dividend / divisor) for a positive number `divisor`."""
        from ..bounds import Bound

        poly = self.facts.symbol(name)
        bounds = self.facts.bounds[self.facts.number(poly)]
        bounds += [Bound(False, divisor, dividend), Bound(True, divisor, dividend - (divisor - 1))]
        if self.facts.proves(dividend):
            bounds.append(Bound(True, 1, Poly.of(0)))
        return poly

    def scalar(self, name: str) -> Value:
        """A scalar or vector parameter."""
        type = self.passed[name]
        if isinstance(type, Vec):
            lanes = [self._number(f"{name}.{k}", type.scalar, name, k) for k in range(type.lanes)]
            return Typed(ir.Vector(tuple(v.expr for v in lanes), type))
        return self._number(name, type, name, 0)

    def _number(self, uniform: str, type: DType, scalar: str, lane: int) -> Typed:
        expr = self.uniform(uniform, type, None, scalar, lane)
        if not type.is_integer:
            return Typed(expr)
        if uniform not in self.extent_polys:
            poly = self.facts.symbol(uniform, [int(type.smallest)], [int(type.largest)])
            self.extent_polys[uniform] = poly
            self.uniform_symbols[self.facts.number(poly)] = uniform
        return Typed(expr, self.extent_polys[uniform])

    def lane(self, value: Typed, k: int) -> Typed:
        """Lane `k` of a vector; of a vector parameter, the number that was passed."""
        assert isinstance(value.type, Vec)
        if isinstance(value.expr, ir.Vector) and isinstance(part := value.expr.parts[k], ir.Uniform):
            return Typed(part, self.extent_polys.get(part.name))
        return Typed(ir.Lane(value.expr, k, value.type.scalar))


@mutable
class Carried:
    """A name that a loop carries: its variable and what the name holds at the start of a turn.

    `first` is the value before the loop. `bounds` are lower (True) and upper bounds that every turn is hoped to
    keep, `lost` those that one does not; `seen` is what is assigned. `shared` variables are those of an outer loop.
    """

    var: ir.Var
    held: Value
    first: Value
    bounds: list[tuple[bool, Poly]] = field(default_factory=list)
    lost: set[bool] = field(default_factory=set)
    seen: list[Value] = field(default_factory=list)
    shared: bool = False


@mutable
class LoopFrame:
    """A loop around where lowering stands: what it carries, and how `break` is spelled in it.

    The items of a carried tuple `t` (in `groups`) are carried as `t.0`, `t.1`, … An unrolled loop that nothing
    leaves `flows`: its carried names have the types of a loop, but no variables.
    """

    carried: dict[str, Carried] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    broken: dict[str, Unset] = field(default_factory=dict)
    unrolled: bool = False
    guess: bool = False
    flows: bool = False
    stop: ir.Var | None = None

    def content(self, name: str) -> Value:
        """What a name holds at the start of a turn."""
        if name in self.groups:
            group = self.groups[name]
            items = [self.content(f"{name}.{k}") for k in range(len(group.items))]
            lost = next((i for i in items if isinstance(i, Unset)), None)
            return lost if lost is not None else Group(tuple(items), group.index)
        return self.carried[name].held if name in self.carried else self.broken[name]

    def found(self, name: str, env: dict[str, Value]) -> Value | None:
        """What a carried name, or an item of a carried tuple, holds now."""
        owner, _, item = name.partition(".")
        value = env.get(owner)
        if item and isinstance(value, Group) and int(item) < len(value.items):
            return value.items[int(item)]
        return None if item else value


@mutable
class Attempt:
    """A lowering that is forgotten unless `keep` is set."""

    keep: bool = False


@mutable
class Body:
    """A function's body where lowering stands."""

    unit: Unit
    names: Names
    function: tree.Function
    env: dict[str, Value] = field(default_factory=dict)
    block: list[ir.Stmt] = field(default_factory=list)
    loops: list[LoopFrame] = field(default_factory=list)
    declared: dict[str, tuple[Type, Span]] = field(default_factory=dict)
    mutable: set[int] = field(default_factory=set)
    plan: Any = None  # statements.ResultPlan: what `return` gives
    returns: list[tuple[Value, Span]] = field(default_factory=list)
    positions: tuple[Value, ...] = ()
    always_index: bool = False
    is_kernel: bool = True
    called: Span | None = None  # where a function is called
    done: bool = False  # no path goes on from here
    depth: int = 0  # blocks around this place
    generating: int = 0  # generators around this place

    def emit(self, statement: ir.Stmt) -> None:
        self.block.append(statement)

    def var(self, name: str, type: Type) -> ir.Var:
        return ir.Var(name, type, self.unit.number())

    def let(self, name: str, value: Typed, span: Span) -> Typed:
        """The value in an immutable local of its own."""
        var = self.var(name, value.type)
        self.emit(ir.Let(var, value.expr, span))
        return Typed(ir.Read(var), value.poly, value.holds, value.fails)

    def set(self, var: ir.Var, expr: ir.Expr, span: Span) -> None:
        self.emit(ir.Assign(var, expr, span))

    @contextmanager
    def nested(self) -> Iterator[list[ir.Stmt]]:
        """Statements within go to a block of their own; names and facts found within end with it."""
        block, env, done, declared = self.block, self.env, self.done, self.declared
        self.block, self.env, self.declared = [], dict(env), dict(declared)
        self.depth += 1
        try:
            with self.unit.facts.scope():
                yield self.block
        finally:
            self.block, self.env, self.done, self.declared = block, env, done, declared
            self.depth -= 1

    def assume(self, polys: Sequence[Poly]) -> None:
        for p in polys:
            self.unit.facts.assume(p)

    @contextmanager
    def reporting(self, *names: str) -> Iterator[None]:
        """A fault within is reported, and the names are poisoned; what follows is still checked."""
        try:
            yield
        except NeedsConstant as e:
            if self.unit.trying:
                raise  # a loop around this place is unrolled instead
            self.unit.report(e.diagnostic)
        except Fault as e:
            diagnostic = e.diagnostic
            if self.called is not None and diagnostic.second is None:
                diagnostic = replace(diagnostic, second=(self.called, "called here"))
            self.unit.report(diagnostic)
        except Poisoned:
            pass
        else:
            return
        for n in names:
            self.env[n] = POISON

    def is_stable(self, expr: ir.Expr, *, variables: bool = True) -> bool:
        """Whether no later statement changes the value; without `variables`, none but an assignment does."""
        match expr:
            case ir.Read(var):
                return not variables or var.number not in self.mutable
            case ir.LocalLoad():
                return False
            case ir.Load(buffer, offset, _):
                return not buffer.writable and self.is_stable(offset, variables=variables)
            case _:
                return all(self.is_stable(e, variables=variables) for e in ir.children(expr))

    def pinned(self, value: Value, span: Span, mark: int | None = None, *, variables: bool = True) -> Value:
        """The value, safe against later statements: unstable expressions get a local, at `mark` or here."""
        match value:
            case Typed(expr) if not self.is_stable(expr, variables=variables):
                var = self.var("t", value.type)
                self.block.insert(len(self.block) if mark is None else mark, ir.Let(var, expr, span))
                return Typed(ir.Read(var), value.poly, value.holds, value.fails)
            case Group(items, index):
                return Group(tuple(self.pinned(i, span, mark, variables=variables) for i in items), index)
            case _:
                return value

    def in_order(self, makers: Sequence[Callable[[], Value]], spans: Sequence[Span]) -> list[Value]:
        """Values of expressions that are evaluated left to right, although later ones may emit statements."""
        values: list[Value] = []
        marks: list[int] = []
        for make, span in zip(makers, spans, strict=True):
            before = len(self.block)
            value = make()
            if len(self.block) > before:
                for k, earlier in enumerate(values):
                    grown = len(self.block)
                    values[k] = self.pinned(earlier, span, marks[k], variables=False)
                    shift = len(self.block) - grown
                    marks[k + 1 :] = [m + shift for m in marks[k + 1 :]]
            values.append(value)
            marks.append(len(self.block))
        return values


def require_value(value: Value, name: str, span: Span) -> Value:
    """The value of a name that is used, or the fault that it has none here."""
    match value:
        case Unset(why, place, label, is_conflict):
            if is_conflict:
                fault(
                    "type-join",
                    f"{name!r} has no single type here: {why}",
                    span,
                    second=(place, label),
                    help=f"cast one of them, or declare the name first: `{name}: f32 = …`",
                )
            fault("maybe-undefined", f"{name!r} has no value here: {why}", span, second=(place, label))
        case _ if value is POISON:
            raise Poisoned
        case _:
            return value
