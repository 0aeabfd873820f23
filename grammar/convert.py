"""Complete rules of mjk.lark → nodes of tree.py.

The parser calls the method of a rule's name (or of its alias) as soon as the rule is complete, with the
tokens and nodes in it; `[…]` of the grammar gives None where nothing was written. So the tree grows from its
leaves, whatever its depth. A node's span runs from its first token to its last, its own brackets included; a
statement that has a body keeps its header only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

from metaljit.grammar import literals, tree
from metaljit.grammar.mistakes import fault
from metaljit.grammar.tokens import Token
from metaljit.source import Span

# What stands in a rule: tokens, nodes, tuples of statements, None. The grammar says which; the type cannot.
Parts: TypeAlias = list[Any]


def over(parts: Sequence[Any]) -> Span:
    """From the first part to the last."""
    written = [part for part in parts if part is not None]
    first: Span = written[0].span
    return first.until(written[-1].span)


def nodes(parts: Sequence[Any]) -> tuple[Any, ...]:
    """The parts without punctuation."""
    return tuple(part for part in parts if part is not None and not isinstance(part, Token))


def name(token: Token) -> str:
    """A name as Python compares them: spellings that look alike are one."""
    return token.text if token.text.isascii() else unicodedata.normalize("NFKC", token.text)


class Actions:
    """One method for each rule; `quoted` parses the inside of a string."""

    def __init__(self, quoted: Callable[[tree.String], tree.Expr]) -> None:
        self._quoted = quoted

    def __getattr__(self, rule: str) -> Callable[[Parts], NoReturn]:
        if not rule.startswith("no_"):
            raise AttributeError(rule)

        def refuse(parts: Parts) -> NoReturn:
            raise fault(rule.replace("_", "-"), over(parts))

        return refuse

    # ---- expressions ----

    def name(self, parts: Parts) -> tree.Name:
        return tree.Name(name(parts[0]), span=parts[0].span)

    def number(self, parts: Parts) -> tree.Number:
        return tree.Number(literals.number(parts[0].text, parts[0].span), span=parts[0].span)

    def string(self, parts: Parts) -> tree.String:
        value = "".join(literals.string(token.text, token.span) for token in parts)
        return tree.String(value, span=over(parts))

    def constant(self, parts: Parts) -> tree.Constant:
        return tree.Constant({"True": True, "False": False}.get(parts[0].text), span=parts[0].span)

    def group(self, parts: Parts) -> tree.Expr:
        inner: tree.Expr = replace(parts[1], span=over(parts))
        return inner

    def sequence(self, parts: Parts) -> tree.TupleExpr:
        return tree.TupleExpr(nodes(parts), span=over(parts))

    def star(self, parts: Parts) -> tree.Star:
        return tree.Star(parts[1], span=over(parts))

    def attribute(self, parts: Parts) -> tree.Attribute:
        value, _, field = parts
        return tree.Attribute(value, name(field), span=over(parts), name_span=field.span)

    def subscript(self, parts: Parts) -> tree.Subscript:
        indices = nodes(parts[1:])
        for index in indices:
            if isinstance(index, tree.TupleExpr) and index.span.text.startswith("["):
                raise fault("no-list-index", index.span)
        match parts:
            case [_, _, tree.TupleExpr(items=items), None, _]:
                indices = items  # `x[(a, b)]` is `x[a, b]`; `x[(a, b),]` is not
        return tree.Subscript(parts[0], indices, span=over(parts))

    def keyword(self, parts: Parts) -> tree.Keyword:
        return tree.Keyword(name(parts[0]), parts[2], span=over(parts))

    def call(self, parts: Parts) -> tree.Call:
        args: list[tree.Expr | tree.Star] = []
        keywords: dict[str, tree.Keyword] = {}
        for argument in nodes(parts[1:]):
            if isinstance(argument, tree.Keyword):
                if argument.name in keywords:
                    first = keywords[argument.name].span
                    raise fault("repeated-keyword", argument.span, second=first, name=argument.name)
                keywords[argument.name] = argument
            elif keywords and not isinstance(argument, tree.Star):
                last = list(keywords.values())[-1].span
                raise fault("positional-after-keyword", argument.span, second=last)
            else:
                args.append(argument)
        return tree.Call(parts[0], tuple(args), tuple(keywords.values()), span=over(parts))

    def unary(self, parts: Parts) -> tree.Unary:
        op, operand = parts
        if isinstance(operand, tree.Unary) and op.text == operand.op in ("+", "-"):
            if operand.span.start == op.span.end and operand.span.text.startswith(op.text):
                twice, inner = op.text * 2, operand.operand.span.text
                instead = f"`{inner} {op.text}= 1` on a line of its own, or `{op.text}({op.text}{inner})`"
                raise fault("c-operator", over([op, operand]), found=twice, instead=instead)
        return tree.Unary(op.text, operand, span=over(parts))

    def binary(self, parts: Parts) -> tree.Expr:
        left: tree.Expr = parts[0]
        for op, right in zip(parts[1::2], parts[2::2], strict=True):
            left = tree.Binary(op.text, left, right, span=left.span.until(right.span))
        return left

    def compare(self, parts: Parts) -> tree.Compare:
        ops: list[str] = []
        for before, part in pairwise(parts):
            if isinstance(part, Token):
                if isinstance(before, Token):
                    ops[-1] += f" {part.text}"
                else:
                    ops.append(part.text)
        return tree.Compare(parts[0], tuple(ops), nodes(parts[1:]), span=over(parts))

    def logical(self, parts: Parts) -> tree.Logical:
        return tree.Logical(parts[1].text, nodes(parts), span=over(parts))

    def conditional(self, parts: Parts) -> tree.Conditional:
        then, _, condition, _, otherwise = parts
        return tree.Conditional(condition, then, otherwise, span=over(parts))

    def generator(self, parts: Parts) -> tree.Generator:
        return tree.Generator(parts[0], tuple(parts[1:]), span=over(parts))

    def clause(self, parts: Parts) -> tree.Clause:
        target, iterable, *conditions = nodes(parts)
        return tree.Clause(assigned(target), iterable, tuple(conditions), span=over(parts))

    # ---- statements ----

    def line(self, parts: Parts) -> tuple[tree.Stmt | tree.Import, ...]:
        return _flat(nodes(parts))

    def block(self, parts: Parts) -> tuple[tree.Stmt, ...]:
        body = _flat(nodes(parts))
        for statement in body:
            if isinstance(statement, tree.Function):
                raise fault("no-nested-function", statement.span, name=statement.name)
            if isinstance(statement, tree.Import):
                raise fault("no-import-here", statement.span)
        return body

    def assign(self, parts: Parts) -> tree.Assign:
        *targets, value = nodes(parts)
        return tree.Assign(tuple(assigned(t) for t in targets), value, span=over(parts))

    def declare(self, parts: Parts) -> tree.Declare:
        target, _, annotation, _, value = parts
        if not isinstance(target, tree.Name):
            raise fault("declared-target", target.span)
        return tree.Declare(target, self._annotation(annotation), value, span=over(parts))

    def augment(self, parts: Parts) -> tree.Augment:
        target, op, value = parts
        if not isinstance(target, tree.Name | tree.Subscript | tree.Attribute):
            raise fault("not-a-target", target.span, found=_described(target))
        return tree.Augment(target, op.text[:-1], value, span=over(parts))

    def evaluate(self, parts: Parts) -> tree.ExprStmt:
        (value,) = parts
        if not isinstance(value, tree.Call | tree.String):
            raise fault("unused-value", value.span, found=_described(value))
        return tree.ExprStmt(value, span=value.span)

    def return_(self, parts: Parts) -> tree.Return:
        return tree.Return(parts[1], span=over(parts))

    def assert_(self, parts: Parts) -> tree.Assert:
        return tree.Assert(parts[1], parts[3], span=over(parts))

    def pass_(self, parts: Parts) -> tree.Pass:
        return tree.Pass(span=over(parts))

    def break_(self, parts: Parts) -> tree.Break:
        return tree.Break(span=over(parts))

    def continue_(self, parts: Parts) -> tree.Continue:
        return tree.Continue(span=over(parts))

    def if_(self, parts: Parts) -> tree.If:
        start, condition, colon, body, *elifs, orelse = parts
        rest: tuple[tree.Stmt, ...] = orelse[1] if orelse else ()
        for header, other, other_body in reversed(elifs):
            rest = (tree.If(other, other_body, rest, span=header),)
        return tree.If(condition, body, rest, span=over([start, colon]))

    def elif_(self, parts: Parts) -> tuple[Span, tree.Expr, tuple[tree.Stmt, ...]]:
        start, condition, colon, body = parts
        return over([start, colon]), condition, body

    def else_(self, parts: Parts) -> tuple[Token, tuple[tree.Stmt, ...]]:
        return parts[0], parts[2]

    def for_(self, parts: Parts) -> tree.For:
        start, target, _, iterable, colon, body, orelse = parts
        if orelse:
            raise fault("no-loop-else", orelse[0].span, second=start.span, loop="for")
        return tree.For(assigned(target), iterable, body, span=over([start, colon]))

    def while_(self, parts: Parts) -> tree.While:
        start, condition, colon, body, orelse = parts
        if orelse:
            raise fault("no-loop-else", orelse[0].span, second=start.span, loop="while")
        return tree.While(condition, body, span=over([start, colon]))

    # ---- imports ----

    def dotted(self, parts: Parts) -> Token:
        names = [name(part) for part in parts if part.type == "NAME"]
        return Token("NAME", ".".join(names), over(parts))

    def dots(self, parts: Parts) -> Token:
        return Token("DOT", "".join(part.text for part in parts), over(parts))

    def origin(self, parts: Parts) -> tuple[int, str]:
        level = len(parts[0].text) if parts[0].type == "DOT" else 0
        return level, parts[-1].text if parts[-1].type == "NAME" else ""

    def imported(self, parts: Parts) -> tree.Import:
        module, _, alias = parts
        return tree.Import(module.text, name(alias) if alias else None, (), 0, span=over(parts))

    def import_(self, parts: Parts) -> tuple[tree.Import, ...]:
        imports: tuple[tree.Import, ...] = nodes(parts)
        return imports if len(imports) > 1 else (replace(imports[0], span=over(parts)),)

    def import_name(self, parts: Parts) -> tree.ImportName:
        original, _, alias = parts
        return tree.ImportName(name(original), name(alias) if alias else None, span=over(parts))

    def import_from(self, parts: Parts) -> tree.Import:
        start, (level, module), *rest = parts
        return tree.Import(module, None, nodes(rest), level, span=over([start, *rest]))

    def import_all(self, parts: Parts) -> tree.Import:
        """Only of metaljit, whose names are built in: a text may be valid in both worlds."""
        _, (level, module), *_ = parts
        if level or module.partition(".")[0] != "metaljit":
            raise fault("no-import-star", over(parts))
        return tree.Import(module, None, (), level, span=over(parts))

    # ---- functions ----

    def parameter(self, parts: Parts) -> tree.Parameter:
        start, _, annotation, _, default = parts
        return tree.Parameter(
            name(start),
            self._annotation(annotation) if annotation else None,
            default,
            span=over(parts),
            name_span=start.span,
        )

    def keyword_only(self, parts: Parts) -> Token:
        return Token("keyword_only", "*", over(parts))

    def parameters(self, parts: Parts) -> tuple[tree.Parameter, ...]:
        found: dict[str, tree.Parameter] = {}
        star: Token | None = None
        for part in parts:
            if isinstance(part, Token) and part.type == "keyword_only":
                if star:
                    raise fault("repeated-star", part.span, second=star.span)
                star = part
            elif isinstance(part, tree.Parameter):
                if part.name in found:
                    first = found[part.name].name_span
                    raise fault("repeated-parameter", part.name_span, second=first, name=part.name)
                before = list(found.values())[-1:]
                if not star and not part.default and before and before[0].default:
                    raise fault("default-order", part.span, second=before[0].span, name=part.name)
                found[part.name] = replace(part, keyword_only=True) if star else part
        if star and not (found and list(found.values())[-1].keyword_only):
            raise fault("star-alone", star.span)
        return tuple(found.values())

    def decorator(self, parts: Parts) -> tree.Expr:
        decorator: tree.Expr = parts[1]
        return decorator

    def definition(self, parts: Parts) -> tree.Function:
        start = next(i for i, part in enumerate(parts) if isinstance(part, Token))
        def_, called, _, parameters, _, _, returns, colon, block = parts[start:]
        docstring, body = split_docstring(block)
        return tree.Function(
            name(called),
            tuple(parts[:start]),
            parameters or (),
            self._annotation(returns) if returns else None,
            docstring,
            body,
            span=over([def_, colon]),
            name_span=called.span,
        )

    def _annotation(self, node: Any) -> Any:
        """An annotation with what is quoted in it parsed: `"f32[N]"`, `Out["f32[N]"]`."""
        match node:
            case tree.String():
                return self._quoted(node)
            case tree.Subscript():
                return replace(node, indices=tuple(self._annotation(i) for i in node.indices))
            case tree.TupleExpr():
                return replace(node, items=tuple(self._annotation(i) for i in node.items))
        return node

    # ---- whole texts: parser.py makes the module ----

    def module(self, parts: Parts) -> tuple[tree.Stmt | tree.Import | tree.Function, ...]:
        return _flat(parts)

    def function(self, parts: Parts) -> tree.Function:
        function: tree.Function = parts[0]
        return function

    def quoted(self, parts: Parts) -> tree.Expr:
        expression: tree.Expr = parts[0]
        return expression


def assigned(node: Any) -> Any:
    """An expression as the target of an assignment."""
    match node:
        case tree.Name() | tree.Subscript() | tree.Attribute():
            return node
        case tree.Star():
            return replace(node, value=assigned(node.value))
        case tree.TupleExpr():
            stars = [item for item in node.items if isinstance(item, tree.Star)]
            if len(stars) > 1:
                raise fault("two-stars", stars[1].span, second=stars[0].span)
            return tree.TupleTarget(tuple(assigned(item) for item in node.items), span=node.span)
    raise fault("not-a-target", node.span, found=_described(node))


def split_docstring(body: tuple[Any, ...]) -> tuple[str | None, tuple[Any, ...]]:
    """The text of a string that stands first, and what follows it."""
    match body:
        case (tree.ExprStmt(value=tree.String(value=text)), *_):
            return text, body[1:]
    return None, body


def _flat(parts: Sequence[Any]) -> tuple[Any, ...]:
    """Statements out of statements and lines of them."""
    return tuple(s for part in parts for s in (part if isinstance(part, tuple) else (part,)))


def _described(node: Any) -> str:
    """What a person would call this expression."""
    match node:
        case tree.Number() | tree.Constant():
            return f"the value {node.span.text}"
        case tree.String():
            return "a string"
        case tree.Call():
            return "a call"
        case tree.Compare():
            return "a comparison"
        case tree.TupleExpr():
            return "a tuple"
        case tree.Name():
            return f"`{node.name}`"
    return "an expression"
