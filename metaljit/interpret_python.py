"""A kernel's tree → Python code that CPython runs: at the user's own lines, under the user's own names.

In: a function's tree and what its free names mean. Out: a code object, the values of its global names, and the
`Site`s at which it asks for types. Each operator has become a call (`@binary`, `@item`, …: names that no text of
the language can spell), each assignment takes the type that the name has. Nothing of the user's text is handed to
Python: the code is made from the tree alone, and has no builtins.
"""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, assert_never

from metaljit.grammar import tree

from .dtypes import Type
from .frozen import frozen
from .interpret_calls import wants_truth
from .interpret_names import assigned, assigned_target
from .interpret_reductions import reduction_name
from .interpret_scope import Scope
from .interpret_types import is_print
from .interpret_values import Value, refuse
from .source import Span
from .symbols import Builtin


@frozen
class Site:
    """A place that asks for types: its node, and the declared names there."""

    node: Any
    declared: dict[str, Type]


@frozen
class Written:
    """A function as Python runs it. `free` are its global names, apart from the helpers."""

    code: types.CodeType
    free: dict[str, Value]
    sites: list[Site]
    name: str


def write(scope: Scope, waits: Callable[[Value], bool]) -> Written:
    """The Python of a function; `waits` tells which callees stop their thread until others have come as far."""
    return Writer(scope, waits).function()


@dataclass
class Writer:
    """`visible` are the local names at this place; `loops` those around, innermost first, as (variable, names)."""

    scope: Scope
    waits: Callable[[Value], bool]
    visible: set[str] = field(default_factory=set)
    declared: dict[str, Type] = field(default_factory=dict)
    loops: tuple[tuple[str, frozenset[str]], ...] = ()
    sites: list[Site] = field(default_factory=list)
    free: dict[str, Value] = field(default_factory=dict)

    def function(self) -> Written:
        f = self.scope.function
        parameters = [p.name for p in f.parameters]
        names = assigned(f.body)
        self.visible = {*parameters, *names}
        empty = [_assign(n, _name("@no_value")) for n in names if n not in parameters]
        definition = ast.FunctionDef(
            name=f.name,
            args=ast.arguments([], [ast.arg(p) for p in parameters], None, [], [], None, []),
            body=[*empty, *self.block(f.body), ast.Return(_constant(None))],
            decorator_list=[],
        )
        _place(definition, f.span)
        module = compile(ast.Module([definition], []), _file(f.span), "exec", dont_inherit=True)
        code = next(c for c in module.co_consts if isinstance(c, types.CodeType))
        return Written(code, self.free, self.sites, f.name)

    # ---- statements ----

    def block(self, nodes: Sequence[tree.Stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in nodes:
            found += self._placed(self.statement(node), node)
        return found or [ast.Pass()]

    @contextmanager
    def inner(self, loop: tuple[tuple[str, frozenset[str]], ...] = ()) -> Iterator[None]:
        declared, loops = self.declared, self.loops
        self.declared, self.loops = dict(declared), (*loop, *loops)
        yield
        self.declared, self.loops = declared, loops

    def statement(self, node: tree.Stmt) -> list[ast.stmt]:
        match node:
            case tree.Assign(targets, value):
                return self._assign_all(targets, self.expr(value))
            case tree.Declare(tree.Name(name), note, value):
                self.declared[name] = self.scope.element(note)
                return [] if value is None else [self.bind(name, self.expr(value))]
            case tree.Augment(tree.Name(name), op, value):
                return [self.bind(name, _call("@binary", _constant(op), _name(name), self.expr(value)))]
            case tree.Augment(tree.Subscript(array, indices), op, value):
                owner, place = self.expr(array), self.tuple(indices)
                return [ast.Expr(_lazy("@augment", _constant(op), owner, place, _thunk(self.expr(value))))]
            case tree.Augment():
                refuse(f"{node.target.span.text!r} cannot be assigned")
            case tree.If():
                return self._if(node)
            case tree.For():
                return self._for(node)
            case tree.While():
                return self._while(node)
            case tree.Break():
                return [*self.end_turn(), ast.Break()]
            case tree.Continue():
                return [*self.end_turn(), ast.Continue()]
            case tree.Pass():
                return [ast.Pass()]
            case tree.Return(value):
                return [ast.Return(_constant(None) if value is None else self.expr(value))]
            case tree.Assert(condition, message):
                said = _constant("assertion failed") if message is None else self.expr(message)
                return [ast.Expr(_lazy("@assert", self.site(node), _thunk(self.condition(condition)), said))]
            case tree.ExprStmt(value):
                return self._expression(value)
        assert_never(node)

    def _expression(self, value: tree.Expr) -> list[ast.stmt]:
        if not isinstance(value, tree.Call):
            return [ast.Pass()]
        if is_print(value, self.scope):
            func = value.func
            assert isinstance(func, tree.Name)
            callee = "@print" if isinstance(self.scope.free(func.name), Builtin) else "@breakpoint"
            keywords = [ast.keyword(k.name, self.expr(k.value)) for k in value.keywords]
            return [ast.Expr(ast.Call(_name(callee), self.items(value.args), keywords))]
        return [ast.Expr(self.expr(value))]

    def bind(self, name: str, value: ast.expr) -> ast.stmt:
        """`name = value`, in the type that the name is declared with."""
        if name in self.declared:
            value = _call("@convert", value, self._type(self.declared[name]))
        return _assign(name, value)

    def end_turn(self) -> list[ast.stmt]:
        """Where a turn of the innermost loop ends, the names that it carries take its types."""
        types, names = self.loops[0]
        return _settled(sorted(names), types)

    def _type(self, type: Type) -> ast.expr:
        self.free[f"@{type}"] = type
        return _name(f"@{type}")

    def _assign_all(self, targets: Sequence[tree.Target | tree.Star], value: ast.expr) -> list[ast.stmt]:
        if len(targets) == 1 and isinstance(targets[0], tree.Name):
            return [self.bind(targets[0].name, value)]
        held = self.fresh()
        found: list[ast.stmt] = [_assign(held, value)]
        for t in targets:
            found += self.assign(t, _name(held))
        return found

    def assign(self, target: tree.Target | tree.Star, value: ast.expr) -> list[ast.stmt]:
        match target:
            case tree.Name(name) | tree.Star(tree.Name(name)):
                return [self.bind(name, value)]
            case tree.TupleTarget(items):
                held = self.fresh()
                self.free[f"{held}:items"] = items
                found: list[ast.stmt] = [_assign(held, _call("@unpack", value, _name(f"{held}:items")))]
                for k, item in enumerate(items):
                    found += self.assign(item, ast.Subscript(_name(held), _constant(k), ast.Load()))
                return found
            case tree.Subscript(array, indices):
                return [ast.Expr(_call("@store", value, self.expr(array), self.tuple(indices)))]
            case _:
                refuse(f"{target.span.text!r} cannot be assigned")

    def fresh(self) -> str:
        """A name for a value between two steps; the number of sites and free names only grows."""
        self.sites.append(Site(None, {}))
        return f"@{len(self.sites)}"

    def site(self, node: Any) -> ast.expr:
        self.sites.append(Site(node, dict(self.declared)))
        return _constant(len(self.sites) - 1)

    def known(self, node: Any) -> ast.expr:
        """The local names that a node mentions, with what they hold."""
        names = sorted(_mentioned(node) & self.visible)
        return ast.Dict([_constant(n) for n in names], [_name(n) for n in names])

    def question(self, node: Any) -> list[ast.expr]:
        """What every question about types takes: the place, the names, the loops around."""
        around = ast.Tuple([_name(v) for v, _ in self.loops], ast.Load())
        return [self.site(node), self.known(node), around]

    def _if(self, node: tree.If) -> list[ast.stmt]:
        condition, joined = self.fresh(), self.fresh()
        names = assigned([node])
        ask = bool(names) and not (_ends(node.body) or _ends(node.orelse))
        found: list[ast.stmt] = [_assign(condition, self.condition(node.condition))]
        if ask:
            found.append(_assign(joined, _call("@joins", _name(condition), *self.question(node))))
        sides = []
        for nodes in (node.body, node.orelse):
            with self.inner():
                sides.append(self.block(nodes) if nodes else [])
        found.append(ast.If(_name(condition), *sides))
        if ask:
            found += _settled(names, joined)
        return found

    def _for(self, node: tree.For) -> list[ast.stmt]:
        targets = assigned_target(node.target)
        names = [n for n in assigned(node.body) if n not in targets]
        types = self.fresh()
        found = self._enter(node, types, names)
        iterable = _call("@iterate", self.expr(node.iterable))
        with self.inner(((types, frozenset(names)),)):
            if isinstance(node.target, tree.Name):
                target, head = node.target.name, []
            else:
                target = self.fresh()
                head = self._placed(self.assign(node.target, _name(target)), node)
            body = [*self.block(node.body), *self._placed(self.end_turn(), node)]
        found.append(ast.For(ast.Name(target, ast.Store()), iterable, [*head, *body], []))
        return found

    def _placed(self, statements: list[ast.stmt], node: tree.Stmt) -> list[ast.stmt]:
        for s in statements:
            _place(s, node.span)
        return statements

    def _while(self, node: tree.While) -> list[ast.stmt]:
        types, turns = self.fresh(), self.fresh()
        names = assigned(node.body)
        found = self._enter(node, types, names)
        found.append(_assign(turns, _constant(0)))
        with self.inner(((types, frozenset(names)),)):
            condition = self.condition(node.condition)
            count = _assign(turns, _call("@turn", self.site(node), _name(turns)))
            _place(count, node.span)
            ends = self._placed(self.end_turn(), node)
            found.append(ast.While(condition, [count, *self.block(node.body), *ends], []))
        return found

    def _enter(self, node: tree.For | tree.While, types: str, names: Sequence[str]) -> list[ast.stmt]:
        """Before a loop: the names that it carries take their types."""
        if not names:
            return [_assign(types, _call("@nothing"))]
        found: list[ast.stmt] = [_assign(types, _call("@carried", *self.question(node)))]
        return found + _settled(names, types)

    # ---- expressions ----

    def expr(self, node: tree.Expr) -> ast.expr:
        found = self._expr(node)
        _place(found, node.span)
        return found

    def _expr(self, node: tree.Expr) -> ast.expr:
        match node:
            case tree.Number(value) | tree.String(value) | tree.Constant(value):
                return _constant(value)
            case tree.Name(name):
                return self.name(name)
            case tree.Attribute(value, name):
                found = self.scope.dotted(node, list(self.visible))
                if found is not None:
                    self.free[found[0]] = found[1]
                    return _name(found[0])
                return _call("@attribute", self.expr(value), _constant(name))
            case tree.Subscript(value, indices):
                return _call("@item", self.expr(value), self.tuple(indices))
            case tree.Call():
                return self.call(node)
            case tree.Unary("not"):
                return self.condition(node)
            case tree.Unary(op, operand):
                return _call("@unary", _constant(op), self.expr(operand))
            case tree.Binary(op, left, right):
                return _call("@binary", _constant(op), self.expr(left), self.expr(right))
            case tree.Compare(first, ops, rest):
                values = [self.expr(e) for e in (first, *rest)]
                if ops[0] in ("in", "not in", "is", "is not"):
                    return _call("@member", _constant(ops[0]), *values)
                if len(ops) == 1:
                    return _call("@binary", _constant(ops[0]), *values)
                return _call("@compare", _constant(ops), *values)
            case tree.Logical(op, operands):
                thunks = [_thunk(self.expr(o)) for o in operands]
                return _lazy("@logical", _constant(op), *self.question(node), *thunks)
            case tree.Conditional(condition, then, otherwise):
                sides = (_thunk(self.expr(then)), _thunk(self.expr(otherwise)))
                return _lazy("@choose", self.condition(condition), *self.question(node), *sides)
            case tree.TupleExpr(items):
                return self.tuple(items)
            case tree.Generator():
                refuse("a generator stands only inside a reduction")
        assert_never(node)

    def condition(self, node: tree.Expr) -> ast.expr:
        """An expression of which only the truth counts."""
        match node:
            case tree.Logical(op, operands):
                thunks = [_thunk(self.condition(o)) for o in operands]
                found = _lazy("@test", _constant(op), *self.question(node), *thunks)
            case tree.Unary("not", operand):
                found = _call("@unary", _constant("not"), self.condition(operand))
            case _:
                found = _call("@truth", self.expr(node))
        _place(found, node.span)
        return found

    def name(self, name: str) -> ast.expr:
        if name not in self.visible:
            self.free[name] = self.scope.free(name)
        return _name(name)

    def items(self, nodes: Sequence[tree.Expr | tree.Star]) -> list[ast.expr]:
        return [
            ast.Starred(self.expr(n.value), ast.Load()) if isinstance(n, tree.Star) else self.expr(n)
            for n in nodes
        ]

    def tuple(self, nodes: Sequence[tree.Expr | tree.Star]) -> ast.expr:
        return ast.Tuple(self.items(nodes), ast.Load())

    def call(self, node: tree.Call) -> ast.expr:
        callee = self.expr(node.func)
        meant = self.free.get(callee.id) if isinstance(callee, ast.Name) else None
        if len(node.args) == 1 and isinstance(node.args[0], tree.Generator):
            generator = self.generator(node.args[0], reduction_name(meant) in ("any", "all"))
            return _call("@reduce", callee, *self.question(node.args[0]), generator)
        keywords = [ast.keyword(k.name, self.expr(k.value)) for k in node.keywords]
        args = self.items(node.args)
        if node.args and isinstance(node.args[0], tree.Logical) and wants_truth(meant):
            args[0] = self.condition(node.args[0])
        if meant is not None and self.waits(meant):
            return ast.YieldFrom(ast.Call(_name("@wait"), [callee, self.site(node), *args], keywords))
        return ast.Call(_name("@call"), [callee, *args], keywords)

    def generator(self, node: tree.Generator, of_truths: bool) -> ast.expr:
        """A generator of Python's own; its names are its own too."""
        visible, loops = self.visible, self.loops
        clauses = []
        for c in node.clauses:
            iterable = _call("@iterate", self.expr(c.iterable))
            self.visible, self.loops = self.visible | set(assigned_target(c.target)), ()
            conditions = [self.condition(e) for e in c.conditions]
            clauses.append(ast.comprehension(_target(c.target), iterable, conditions, 0))
        element = self.condition(node.element) if of_truths else self.expr(node.element)
        self.visible, self.loops = visible, loops
        return ast.GeneratorExp(element, clauses)


def _target(target: tree.Target | tree.Star) -> ast.expr:
    match target:
        case tree.Name(name):
            return ast.Name(name, ast.Store())
        case tree.TupleTarget(items):
            return ast.Tuple([_target(i) for i in items], ast.Store())
        case tree.Star(value) if isinstance(value, tree.Name):
            return ast.Starred(ast.Name(value.name, ast.Store()), ast.Store())
    refuse(f"{target.span.text!r} is no name of a generator")


def _ends(nodes: Sequence[tree.Stmt]) -> bool:
    return bool(nodes) and isinstance(nodes[-1], tree.Return | tree.Break | tree.Continue)


def _mentioned(node: Any) -> set[str]:
    """Every name that stands in a node, as a target too."""
    if isinstance(node, tree.Name):
        return {node.name}
    if isinstance(node, tuple):
        return {n for part in node for n in _mentioned(part)}
    if hasattr(node, "__dataclass_fields__") and not isinstance(node, Span):
        return {n for part in vars(node).values() for n in _mentioned(part)}
    return set()


# ---- Python's own tree ----


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _constant(value: Any) -> ast.expr:
    return ast.Constant(value)


def _call(helper: str, *args: ast.expr) -> ast.expr:
    return ast.Call(_name(helper), list(args), [])


def _lazy(helper: str, *args: ast.expr) -> ast.expr:
    """A call with thunks among its arguments; if one of them waits for other threads, this place does."""
    if not any(isinstance(n, ast.YieldFrom) for a in args if isinstance(a, ast.Lambda) for n in ast.walk(a)):
        return _call(helper, *args)
    return ast.YieldFrom(_call(f"{helper}~", *args))


def _thunk(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _settled(names: Sequence[str], types: str) -> list[ast.stmt]:
    """The names take the types that the variable `types` has for them."""
    return [_assign(n, _call("@as", _constant(n), _name(n), _name(types))) for n in names]


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _place(node: ast.AST, span: Span) -> None:
    """Gives what has no place yet in a subtree the place of the user's text."""
    if hasattr(node, "lineno"):
        return
    if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
        line, column = span.source.position(span.start)
        end_line, end_column = span.source.position(span.end)
        node.lineno, node.col_offset = line, column - 1
        node.end_lineno, node.end_col_offset = end_line, end_column - 1
    for child in ast.iter_child_nodes(node):
        _place(child, span)


def _file(span: Span) -> str:
    name = span.source.name
    return os.path.abspath(name) if os.path.exists(name) else name
