"""Device functions: bound by Python's rules, specialised for each call's types, printed as functions of Metal.

In: a call and the function's text. Out: its value. Arrays are not passed: a function's text names the kernel's own; what
the compiler knows of integers (ranges, conditions around the call) goes with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metaljit.grammar import tree

from ...dtypes import Type
from ...frozen import frozen
from ...source import Diagnostic, Span
from ...symbols import Builtin, DTypeVariable, FunctionText
from .. import ir
from . import cooperative, expressions, returns, statements
from .body import Body, Unit
from .convert import implicit
from .literals import describe, typed
from .signature import Annotation, Names, annotation
from .values import (
    Fault,
    Group,
    Literal,
    Poisoned,
    Private,
    Typed,
    Value,
    View,
    fault,
)

MAX_CALLS = 64


@frozen
class Parameters:
    """How a function's arguments enter its text: variables for run-time numbers, everything else as it is."""

    env: dict[str, Value]
    variables: tuple[ir.Var, ...]
    passed: tuple[ir.Expr, ...]
    key: tuple[Any, ...]
    types: tuple[Any, ...]  # the key without what is known of ranges


def function(body: Body, node: tree.Call, text: FunctionText) -> Value:
    """A call of a device function, specialised for these arguments."""
    if text.is_kernel:
        fault("kernel-in-kernel", f"{text.name!r} is a kernel and cannot be called in one", node.span,
              help="make it a device function: `@mj.function`")  # fmt: skip
    unit = body.unit
    if text.key in unit.calls:
        fault(
            "recursion",
            f"{text.name!r} calls itself, and Metal has no recursion",
            node.span,
            help="write a loop",
        )
    if len(unit.calls) >= MAX_CALLS:
        fault(
            "calls-too-deep",
            f"functions call one another more than {MAX_CALLS} deep",
            node.span,
            help="write a loop",
        )
    declaration: tree.Function = text.tree()
    given = _bind(body, node, declaration, text)
    parameters = _parameters(body, declaration, given, text, node)
    key = (text.key, parameters.key)
    if key not in unit.functions:
        unit.calls.append(text.key)
        copies, unit.copies = unit.copies, 1  # made once, however often the loops around the call call it
        try:
            made, template = _specialise(body, declaration, text, parameters, node)
        finally:
            unit.calls.pop()
            unit.copies = copies
        if cooperative.waits(unit, made):
            found = cooperative.inlined(body, made, parameters.variables, parameters.passed, node.span)
            return _filled(template, iter(found))
        unit.functions[key] = made, template
    made, template = unit.functions[key]
    return _emit_call(body, made, template, parameters, node.span)


def _bind(
    body: Body, node: tree.Call, declaration: tree.Function, text: FunctionText
) -> dict[str, tuple[Value, Span]]:
    """Arguments by name, by Python's rules."""
    names = [p.name for p in declaration.parameters if not p.keyword_only]
    positional = expressions.spread(body, node.args)
    named = expressions.lower_all(body, [k.value for k in node.keywords])
    if len(positional) > len(names):
        fault("argument-count", f"{text.name} takes {len(names)} arguments and was given {len(positional)}", node.span,
              second=(declaration.name_span, "declared here"))  # fmt: skip
    spans = (
        [a.span for a in node.args] if len(node.args) == len(positional) else [node.span] * len(positional)
    )
    given = {n: (v, s) for n, v, s in zip(names, positional, spans, strict=False)}
    every = {p.name for p in declaration.parameters}
    for k, value in zip(node.keywords, named, strict=True):
        if k.name not in every:
            fault(
                "unknown-keyword",
                f"{text.name} has no parameter {k.name!r}",
                k.span,
                second=(declaration.name_span, "declared here"),
            )
        if k.name in given:
            fault("argument-count", f"{text.name} was given {k.name!r} twice", k.span)
        given[k.name] = (value, k.value.span)
    inner = Names(text.resolve)
    for p in declaration.parameters:
        if p.name in given:
            continue
        if p.default is None:
            fault(
                "argument-count",
                f"{text.name} needs the argument {p.name!r}",
                node.span,
                second=(p.name_span, "declared here"),
            )
        from .signature import constant

        given[p.name] = (
            expressions.free_value(body, constant(p.default, inner), p.name, p.span),
            p.default.span,
        )
    return {p.name: given[p.name] for p in declaration.parameters}


def _parameters(
    body: Body,
    declaration: tree.Function,
    given: dict[str, tuple[Value, Span]],
    text: FunctionText,
    node: tree.Call,
) -> Parameters:
    variables: list[ir.Var] = []
    passed: list[ir.Expr] = []
    keys: list[Any] = []
    types: list[Any] = []
    arrays = any(_has_array(v) for v, _ in given.values())

    def enter(name: str, value: Value) -> Value:
        match value:
            case Typed(expr, poly):
                var = body.var(name, value.type)
                variables.append(var)
                passed.append(expr)
                types.append(value.type)
                keys.append((value.type, poly.key() if poly is not None else None))
                return Typed(ir.Read(var), poly)
            case Group(items, index):
                types.append(("group", len(items), index))
                keys.append(types[-1])
                return Group(tuple(enter(f"{name}_{k}", v) for k, v in enumerate(items)), index)
            case View(buffer, _, _, _, modes, fill, unchecked):
                types.append((buffer.name, len(modes)))
                keys.append((buffer.name, modes, unchecked, repr(fill)))
                return value
            case Private(local, _, _, unchecked):
                types.append(local)
                keys.append((local, unchecked))
                return value
            case Literal(v):
                types.append((type(v), repr(v)))
                keys.append(types[-1])
                return value
            case _:
                types.append(repr(value))
                keys.append(types[-1])
                return value

    inner = Names(text.resolve)
    env: dict[str, Value] = {}
    for p in declaration.parameters:
        value, span = given[p.name]
        if p.annotation is not None:
            value = _annotated(body, value, p, inner, span)
        env[p.name] = enter(p.name, value)
    if arrays:  # its text may rest on what is known to hold at this call
        keys.append(body.unit.facts.stamp)
    return Parameters(env, tuple(variables), tuple(passed), tuple(keys), tuple(types))


def _has_array(value: Value) -> bool:
    match value:
        case View() | Private():
            return True
        case Group(items):
            return any(_has_array(i) for i in items)
        case _:
            return False


def _annotated(body: Body, value: Value, p: tree.Parameter, inner: Names, span: Span) -> Value:
    """An argument as its parameter's annotation wants it."""
    assert p.annotation is not None
    if isinstance(p.annotation, tree.Subscript) or isinstance(p.annotation, tree.Name):
        head = p.annotation.value if isinstance(p.annotation, tree.Subscript) else p.annotation
        try:
            found = inner.lookup(head)
        except Fault as e:
            raise _with_dims_help(e, head) from e
        if isinstance(found, Builtin) and found.name == "const":
            from .literals import known

            known(value, span, f"the argument {p.name!r}")
            return value
        if isinstance(found, Builtin) and found.name == "tuple":
            return expressions.as_group(body, value, span)
    wanted = annotation(p.annotation, inner)
    _check_dims(wanted, inner)
    if wanted.axes is None:
        type = _element_for(body, wanted, value, p, span)
        return (
            implicit(body, value, type, span, f"the parameter {p.name!r}")
            if isinstance(value, Literal | Typed)
            else _not_number(value, p, span)
        )
    if not isinstance(value, View | Private):
        fault("not-an-array", f"the parameter {p.name!r} takes an array, found {describe(value)}", span)
    element = value.element if isinstance(value, View) else value.local.type
    if isinstance(wanted.element, DTypeVariable):
        fits = element in wanted.element.options
    else:
        fits = element == wanted.element
    if not fits:
        fault("wrong-dtype", f"the parameter {p.name!r} takes {wanted.span.text}, found an array of {element}", span,
              second=(p.name_span, "declared here"))  # fmt: skip
    packs = any(not isinstance(a, tree.Expr) for a in wanted.axes)
    if not packs and len(wanted.axes) != len(value.shape):
        fault("wrong-rank", f"the parameter {p.name!r} takes {len(wanted.axes)} dimensions, found {describe(value)}", span,
              second=(p.name_span, "declared here"))  # fmt: skip
    return value


def _not_number(value: Value, p: tree.Parameter, span: Span) -> Value:
    fault("not-a-number", f"the parameter {p.name!r} takes a number, found {describe(value)}", span)


def _check_dims(wanted: Annotation, inner: Names) -> None:
    for axis in wanted.axes or ():
        node = axis if not hasattr(axis, "node") else None
        if isinstance(node, tree.Name):
            try:
                inner.lookup(node)
            except Fault as e:
                raise _with_dims_help(e, node) from e


def _with_dims_help(e: Fault, node: tree.Expr) -> Fault:
    if e.diagnostic.slug != "unknown-name":
        return e
    text = node.span.text
    message = f"the extent {text!r} is not declared"
    declare_it = f'declare it above: `{text} = dims("{text}")`'
    return Fault(Diagnostic("unknown-dim", message, node.span, "not declared", help=declare_it))


def _element_for(body: Body, wanted: Annotation, value: Value, p: tree.Parameter, span: Span) -> Type:
    if not isinstance(wanted.element, DTypeVariable):
        return wanted.element
    found = typed(value, span).type
    if found not in wanted.element.options:
        fault("wrong-dtype", f"the parameter {p.name!r} takes {wanted.element.name}, found {found}", span)
    return found


def _specialise(
    body: Body, declaration: tree.Function, text: FunctionText, parameters: Parameters, node: tree.Call
) -> tuple[ir.Function, Value]:
    """The function's text for these parameters, and its result as a pattern of types."""
    unit = body.unit
    inner = Names(text.resolve)
    wanted = returns.ResultPlan.of_annotation(declaration, inner)

    def attempt(plan: returns.ResultPlan) -> tuple[Body, returns.ResultPlan]:
        made = Body(unit, inner, declaration, dict(parameters.env), is_kernel=False, called=node.span)
        made.plan = plan
        errors = len(unit.diagnostics)
        with unit.facts.scope():
            statements.lower_body(made, declaration)
        if len(unit.diagnostics) > errors:
            raise Poisoned
        return made, returns.join_returns(made, declaration)

    kind = (text.key, parameters.types)
    known = wanted if wanted.fixed else unit.plans.get(kind)
    if known is not None:
        made, plan = attempt(known)
    else:
        with unit.rollback() as first:
            made, plan = attempt(wanted)
            first.keep = returns.settled(made, plan)
        unit.plans[kind] = returns.without_ranges(plan)
        if not first.keep:  # some `return` gives a literal, or a type that another one widens
            made, plan = attempt(plan)
    result = ir.Function(
        declaration.name, parameters.variables, (), (), plan.types(), tuple(made.block), declaration.name_span
    )
    return result, plan.value if plan.value is not None else Literal(None)


def _emit_call(body: Body, made: ir.Function, template: Value, parameters: Parameters, span: Span) -> Value:
    if not made.results and is_pure(body.unit, made):
        return template  # all that it gives is known at compile time
    name = f"{made.name}#{_number(body.unit, made)}"
    if len(made.results) == 1 and isinstance(template, Typed):
        call = Typed(ir.Call(name, parameters.passed, made.results[0]), template.poly)
        return call if is_pure(body.unit, made) else body.let(made.name, call, span)
    variables = tuple(body.var(f"{made.name}_{k}", t) for k, t in enumerate(made.results))
    body.emit(ir.CallInto(name, parameters.passed, variables, span))
    return _filled(template, iter(variables))


def _filled(pattern: Value, variables: Iterator[ir.Var]) -> Value:
    """The pattern of a result, with the variables that hold its numbers."""
    match pattern:
        case Group(items, index):
            return Group(tuple(_filled(i, variables) for i in items), index)
        case Typed(_, poly):
            return Typed(ir.Read(next(variables)), poly)
        case _:
            return pattern


def _number(unit: Unit, made: ir.Function) -> int:
    return [f for f, _ in unit.functions.values()].index(made)


def is_pure(unit: Unit, made: ir.Function) -> bool:
    """Whether a call has no effect and gives the same value wherever it stands."""
    return not any(_touches(s) for s in made.body)


def _touches(statement: ir.Stmt) -> bool:
    match statement:
        case (
            ir.Store()
            | ir.TileFill()
            | ir.TileMove()
            | ir.TileMultiply()
            | ir.LocalStore()
            | ir.Atomic()
            | ir.Check()
            | ir.CallInto()
            | ir.Barrier()
            | ir.Collective()
        ):
            return True
        case ir.If(condition, then, orelse, _):
            return _reads(condition) or any(_touches(s) for s in (*then, *orelse))
        case ir.For(_, start, stop, _, inner, _):
            return _reads(start) or _reads(stop) or any(_touches(s) for s in inner)
        case ir.Loop(before, condition, inner, _):
            return _reads(condition) or any(_touches(s) for s in (*before, *inner))
        case ir.Once(inner, _):
            return any(_touches(s) for s in inner)
        case ir.Let(_, value, _) | ir.Assign(_, value, _):
            return _reads(value)
        case ir.Declare(_, value, _):
            return value is not None and _reads(value)
        case ir.Return(values, _):
            return any(_reads(v) for v in values)
        case ir.LocalArray() | ir.Break() | ir.Continue():
            return False
    raise AssertionError(statement)


def _reads(expr: ir.Expr) -> bool:
    """Whether the value depends on memory that somebody may write."""
    if isinstance(expr, ir.LocalLoad) or (isinstance(expr, ir.Load) and expr.buffer.writable):
        return True
    return any(_reads(e) for e in ir.children(expr))
