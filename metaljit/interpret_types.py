"""The types of a kernel's names where control flow joins, found by running it without its numbers.

In: statements and what is known of the names around them. Out: the type of each name after an `if`, of each name
that a loop carries, of a reduction's elements, of a device function's results. The operations are those that
compute the numbers, on `Unknown`s; both sides of a branch run, and a loop's body until its types stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never

from metaljit.grammar import tree

from . import interpret_arrays as arrays
from . import interpret_operators as operators
from .dtypes import BOOL, I32, Type
from .interpret_calls import Range, attribute, call, iterate, wants_truth
from .interpret_names import assigned, assigned_target, unpack
from .interpret_reductions import reduction_name, result_type
from .interpret_scope import Scope, bind
from .interpret_values import (
    NO_VALUE,
    NeedsConstant,
    Pattern,
    Unknown,
    Value,
    is_literal,
    join,
    join_patterns,
    met,
    refuse,
    shape_of,
    type_of,
    unknown,
)
from .symbols import Builtin, FunctionText

ATTEMPTS = 8
Types = Mapping[str, Pattern]


class Functions(Protocol):
    """How device functions and positions look where types are found."""

    def scope(self, text: FunctionText) -> Scope: ...
    def position(self) -> Value: ...
    def thread(self, name: str) -> Value: ...
    def shared(self, element: Type, extents: Sequence[int]) -> Value: ...


@dataclass
class Loop:
    """A loop around: the types of the names that it carries, and what is assigned to them (None: nobody asks)."""

    types: Types
    seen: dict[str, list[Value]] | None = None


@dataclass
class Frame:
    """Names where the search stands. `done` says why no path goes on: return, break or continue.

    It `guesses` in the first turn of a loop, where literals have no type yet: faults there mean nothing.
    """

    scope: Scope
    env: dict[str, Value]
    declared: dict[str, Type]
    loops: tuple[Loop, ...] = ()
    returns: list[Value] = field(default_factory=list)
    done: str = ""
    guesses: bool = False

    def branch(self) -> Frame:
        return replace(self, env=dict(self.env), declared=dict(self.declared))

    def bind(self, name: str, value: Value) -> None:
        """`name = value`: a declared name keeps its type; one that a loop carries takes it when the turn ends."""
        if name in self.declared:
            value = unknown(self.declared[name])
        for loop in self.loops:
            if name in loop.types:
                if loop.seen is not None:
                    loop.seen[name].append(value)
                break
        self.env[name] = value

    def met(self, name: str, a: Value, b: Value) -> Value:
        """What a name holds where two paths meet: what fits both, or the type that a loop carries it with."""
        return _meet(a, b, next((loop.types[name] for loop in self.loops if name in loop.types), None))


def _meet(a: Value, b: Value, pattern: Pattern) -> Value:
    """What two paths give a name whose type around a loop is the pattern."""
    if isinstance(pattern, tuple) and all(isinstance(v, tuple) and len(v) == len(pattern) for v in (a, b)):
        items = [_meet(x, y, p) for x, y, p in zip(a, b, pattern, strict=True)]
        return NO_VALUE if NO_VALUE in items else type(a)(items)
    found = met(a, b)
    if found is not NO_VALUE or pattern is None or isinstance(pattern, tuple):
        return found
    fits = all(pattern in (join((v,)), join((v, 0)), join((v, 0.0))) for v in (a, b))
    return unknown(pattern) if fits else NO_VALUE


def like(value: Value, pattern: Pattern) -> Value:
    """A value as it is once it has a pattern's types."""
    if pattern is None:
        return value
    if isinstance(pattern, tuple):
        if not isinstance(value, tuple) or len(value) != len(pattern):
            return NO_VALUE
        items = [like(v, p) for v, p in zip(value, pattern, strict=True)]
        return type(value)(items)
    return unknown(pattern)


class Search:
    """Finds types; `functions` knows the kernel. As a `Place` of calls it has no numbers."""

    real = False

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.requires: list[tree.Call] = []
        self.position = functions.position
        self.thread = functions.thread
        self.shared = functions.shared

    # ---- questions ----

    def joins(self, node: tree.If, frame: Frame) -> Types:
        """The types that names have after an `if` whose condition is not known."""
        then, other = self._sides(node, frame)
        if then.done or other.done:
            return {}
        names = assigned([node])
        both = {n: frame.met(n, then.env.get(n, NO_VALUE), other.env.get(n, NO_VALUE)) for n in names}
        return {n: p for n, v in both.items() if v is not NO_VALUE and (p := shape_of(v)) is not None}

    def carried(self, node: tree.For | tree.While, frame: Frame) -> Types:
        """The types of the names that a loop carries."""
        types, _ = self._loop(node, frame)
        return types

    def element(self, generator: tree.Generator, frame: Frame, name: str) -> Type:
        """The type of the values that a generator gives a reduction."""
        found: list[Value] = []
        of_truths = name in ("any", "all")
        self._clauses(generator, 0, frame.branch(), found.append, of_truths)
        if of_truths:
            return BOOL
        element = join(found) if found else I32
        if element is None:
            refuse(f"the values of this {name} have different types: {found}")
        return element

    def result(self, scope: Scope, bound: dict[str, Value]) -> tuple[Value, Pattern]:
        """What a device function gives for such arguments, and what each `return` is converted to."""
        stated = scope.results()
        frame = Frame(scope, bound, {})
        self.block(scope.function.body, frame)
        if stated is not None:
            return like(frame.returns[0], stated) if frame.returns else NO_VALUE, stated
        match frame.returns:
            case []:
                return None, None
            case [only]:
                return only, None
        pattern = join_patterns(frame.returns)
        return like(frame.returns[0], pattern), pattern

    def function(self, text: FunctionText, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
        scope = self.functions.scope(text)
        return self.result(scope, bind(scope, args, named))[0]

    # ---- statements ----

    def block(self, nodes: Sequence[tree.Stmt], frame: Frame) -> None:
        for node in nodes:
            if frame.done:
                return
            try:
                self.statement(node, frame)
            except TypeError:
                if not frame.guesses:
                    raise
                frame.env |= dict.fromkeys(assigned([node]), NO_VALUE)

    def statement(self, node: tree.Stmt, frame: Frame) -> None:
        match node:
            case tree.Assign(targets, value):
                found = self.eval(value, frame)
                for t in targets:
                    self.assign(t, found, frame)
            case tree.Declare(tree.Name(name), note, value):
                frame.declared[name] = frame.scope.element(note)
                if value is not None:
                    frame.bind(name, self.eval(value, frame))
            case tree.Augment(tree.Name(name), op, value):
                frame.bind(name, operators.binary(op, frame.env[name], self.eval(value, frame)))
            case tree.Augment(_, _, value):
                self.eval(value, frame)
            case tree.If():
                self._if(node, frame)
            case tree.For() | tree.While():
                self._after_loop(node, frame)
            case tree.Break() | tree.Continue():
                frame.done = "break" if isinstance(node, tree.Break) else "continue"
            case tree.Return(value):
                frame.returns.append(None if value is None else self.eval(value, frame))
                frame.done = "return"
            case tree.ExprStmt(value):
                if isinstance(value, tree.Call) and not is_print(value, frame.scope):
                    self.eval(value, frame)
            case tree.Pass() | tree.Assert():
                pass
            case _:
                assert_never(node)

    def assign(self, target: tree.Target | tree.Star, value: Value, frame: Frame) -> None:
        match target:
            case tree.Name(name):
                frame.bind(name, value)
            case tree.TupleTarget(items):
                for item, part in zip(items, unpack(value, items), strict=True):
                    self.assign(item, part, frame)
            case tree.Star(tree.Name(name)):
                frame.bind(name, value)
            case _:
                pass  # an element of an array: its type is the array's

    def _if(self, node: tree.If, frame: Frame) -> None:
        condition = self.condition(node.condition, frame)
        if isinstance(condition, bool):
            self.block(node.body if condition else node.orelse, frame)
            return
        then, other = self._sides(node, frame)
        if then.done and other.done:
            frame.done = next(d for d in ("continue", "break", "return") if d in (then.done, other.done))
        elif then.done or other.done:
            frame.env = other.env if then.done else then.env
        else:
            names = dict.fromkeys((*then.env, *other.env))
            frame.env = {
                n: frame.met(n, then.env.get(n, NO_VALUE), other.env.get(n, NO_VALUE)) for n in names
            }

    def _sides(self, node: tree.If, frame: Frame) -> tuple[Frame, Frame]:
        sides = frame.branch(), frame.branch()
        for nodes, side in zip((node.body, node.orelse), sides, strict=True):
            self.block(nodes, side)
        return sides

    # ---- loops ----

    def _after_loop(self, node: tree.For | tree.While, frame: Frame) -> None:
        types, last = self._loop(node, frame)
        sure = isinstance(node, tree.For) and last.done != "return" and not _leaves(node.body)
        flows = sure and not isinstance(self._iterable(node, frame), Range)
        for name in assigned([node]):
            if name in types:
                frame.bind(name, like(frame.env[name], types[name]))
            elif flows:
                frame.env[name] = last.env.get(name, NO_VALUE)
            else:
                frame.env[name] = NO_VALUE
        if not _leaves(node.body) and self._returns(node, frame, last):
            frame.done = "return"

    def _returns(self, node: tree.For | tree.While, frame: Frame, last: Frame) -> bool:
        """Whether nothing follows the loop: `while True`, or a `return` in every turn of a loop that surely runs."""
        if isinstance(node, tree.While):
            return self.condition(node.condition, frame) is True
        return last.done == "return" and not isinstance(self._iterable(node, frame), Range)

    def _iterable(self, node: tree.For | tree.While, frame: Frame) -> Value:
        return iterate(self.eval(node.iterable, frame)) if isinstance(node, tree.For) else None

    def _loop(self, node: tree.For | tree.While, frame: Frame) -> tuple[Types, Frame]:
        """The body again and again, until the types of what it carries stay."""
        targets = assigned_target(node.target) if isinstance(node, tree.For) else []
        names = [n for n in assigned(node.body) if n not in targets]
        before = {n: v for n in names if _is_carried(v := frame.env.get(n, NO_VALUE))}
        iterable = self._iterable(node, frame)
        types: Types = dict.fromkeys(before)
        for attempt in range(ATTEMPTS):
            turn = frame.branch()
            turn.env |= {n: like(v, types[n]) for n, v in before.items()}
            seen: dict[str, list[Value]] = {n: [] for n in before}
            turn.loops = (Loop(types, seen), *frame.loops)
            turn.returns, turn.guesses = [], frame.guesses or not attempt
            self._turns(node, iterable, turn)
            found = {n: join_patterns((v, *seen[n])) for n, v in before.items()}
            if attempt and found == types:
                frame.returns += turn.returns
                return types, turn
            types = found
        refuse("the types of the names that this loop carries do not settle")

    def _turns(self, node: tree.For | tree.While, iterable: Value, frame: Frame) -> None:
        if isinstance(node, tree.While):
            self.condition(node.condition, frame)
            self.block(node.body, frame)
            return
        for items in _items(iterable):
            start = dict(frame.env)
            try:
                for item in items:
                    self.assign(node.target, item, frame)
                    self.block(node.body, frame)
                    if frame.done == "return":
                        return
                    frame.env |= {n: like(frame.env[n], t) for n, t in frame.loops[0].types.items()}
                    frame.done = ""
                return
            except NeedsConstant:
                if not isinstance(iterable, Range) or not iterable.is_constant or items is iterable:
                    raise
                frame.env = start

    # ---- expressions ----

    def eval(self, node: tree.Expr, frame: Frame) -> Value:
        match node:
            case tree.Number(value) | tree.String(value) | tree.Constant(value):
                return value
            case tree.Name(name):
                return frame.env[name] if name in frame.env else frame.scope.free(name)
            case tree.Attribute(value, name):
                found = frame.scope.dotted(node, list(frame.env))
                return found[1] if found is not None else attribute(self.eval(value, frame), name)
            case tree.Subscript(value, indices):
                return arrays.item(self.eval(value, frame), self._spread(indices, frame))
            case tree.Call():
                return self._call(node, frame)
            case tree.Unary("not"):
                return self.condition(node, frame)
            case tree.Unary(op, operand):
                return operators.unary(op, self.eval(operand, frame))
            case tree.Binary(op, left, right):
                return operators.binary(op, self.eval(left, frame), self.eval(right, frame))
            case tree.Compare(first, ops, rest):
                values = [self.eval(e, frame) for e in (first, *rest)]
                if ops[0] in ("in", "not in", "is", "is not"):
                    return operators.member(ops[0], *values)
                return operators.compare(ops, *values)
            case tree.Logical(op, operands):
                return self._logical(op, operands, frame)
            case tree.Conditional(condition, then, otherwise):
                found = self.condition(condition, frame)
                if isinstance(found, bool):
                    return self.eval(then if found else otherwise, frame)
                return met(self.eval(then, frame), self.eval(otherwise, frame))
            case tree.TupleExpr(items):
                return tuple(self._spread(items, frame))
            case tree.Generator():
                refuse("a generator stands only inside a reduction")
        assert_never(node)

    def condition(self, node: tree.Expr, frame: Frame) -> Value:
        """What is known of an expression of which only the truth counts: a bool, or that it is one."""
        match node:
            case tree.Logical(op, operands):
                unknown = False
                for o in operands:
                    found = self.condition(o, frame)
                    if found is (op == "or"):
                        return found
                    unknown |= not isinstance(found, bool)
                return Unknown(BOOL) if unknown else op == "and"
            case tree.Unary("not", operand):
                return operators.unary("not", self.condition(operand, frame))
            case _:
                return operators.truth(self.eval(node, frame))

    def _spread(self, items: Sequence[tree.Expr | tree.Star], frame: Frame) -> list[Value]:
        found: list[Value] = []
        for i in items:
            if isinstance(i, tree.Star):
                found += self.eval(i.value, frame)
            else:
                found.append(self.eval(i, frame))
        return found

    def _call(self, node: tree.Call, frame: Frame) -> Value:
        callee = self.eval(node.func, frame)
        if len(node.args) == 1 and isinstance(node.args[0], tree.Generator):
            name = reduction_name(callee)
            return unknown(result_type(name, self.element(node.args[0], frame, name)))
        if isinstance(callee, Builtin) and callee.name == "require":
            self.requires.append(node)
            return None
        named = {k.name: self.eval(k.value, frame) for k in node.keywords}
        if node.args and isinstance(node.args[0], tree.Logical) and wants_truth(callee):
            rest = self._spread(node.args[1:], frame)
            return call(self, callee, [self.condition(node.args[0], frame), *rest], named)
        return call(self, callee, self._spread(node.args, frame), named)

    def _logical(self, op: str, operands: Sequence[tree.Expr], frame: Frame) -> Value:
        """`x and y` is y where x is true, else x; of conditions it is one."""
        first, *rest = operands
        value = self.eval(first, frame)
        if not rest:
            return value
        condition = operators.truth(value)
        if isinstance(condition, bool):
            return value if condition == (op == "or") else self._logical(op, rest, frame)
        other = self._logical(op, rest, frame)
        if type_of(value) is BOOL and (type_of(other) is BOOL or isinstance(other, bool)):
            return operators.combine(op, (value, other))
        return met(value, other)

    def _clauses(
        self, g: tree.Generator, k: int, frame: Frame, produce: Callable[[Value], None], of_truths: bool
    ) -> None:
        if k == len(g.clauses):
            produce((self.condition if of_truths else self.eval)(g.element, frame))
            return
        clause = g.clauses[k]
        iterable = iterate(self.eval(clause.iterable, frame))
        inner = Frame(frame.scope, dict(frame.env), {})  # a generator's names are its own

        def turn(item: Value) -> None:
            self.assign(clause.target, item, inner)
            conditions = (self.condition(c, inner) for c in clause.conditions)
            if all(c if isinstance(c, bool) else True for c in conditions):
                self._clauses(g, k + 1, inner, produce, of_truths)

        for items in _items(iterable):
            try:
                for item in items:
                    turn(item)
                return
            except NeedsConstant:
                if not isinstance(iterable, Range) or not iterable.is_constant or items is iterable:
                    raise


def _items(iterable: Value) -> Iterable[Iterable[Value]]:
    """The turns of a loop: for a range one turn at an unknown number, or if that does not do each of its numbers."""
    return ((Unknown(I32),), iterable) if isinstance(iterable, Range) else (iterable,)


def _is_carried(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(is_literal(v) or type_of(v) is not None for v in value)
    return is_literal(value) or type_of(value) is not None


def _leaves(nodes: Sequence[tree.Stmt]) -> bool:
    """Whether a `break` or `continue` in these statements leaves the loop around them."""
    for node in nodes:
        match node:
            case tree.Break() | tree.Continue():
                return True
            case tree.If(_, then, orelse) if _leaves(then) or _leaves(orelse):
                return True
    return False


def is_print(node: tree.Call, scope: Scope) -> bool:
    """A call that shows something and gives nothing."""
    if not isinstance(node.func, tree.Name):
        return False
    with suppress(Exception):
        found = scope.free(node.func.name)
        return found is breakpoint or (isinstance(found, Builtin) and found.name == "print")
    return False
