"""Text → tree: `parse_module` for a `.mjk` file, `parse_function` for a decorated function.

A text that is no kernel raises a `SyntaxFault` with one diagnostic, the first fault in it. What names mean,
and whether types fit, is left to the compiler.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, UnexpectedToken
from lark.parsers.lalr_interactive_parser import InteractiveParser

from metaljit.grammar import literals, tables, tree
from metaljit.grammar.check import check
from metaljit.grammar.convert import Actions, split_docstring
from metaljit.grammar.mistakes import fault
from metaljit.grammar.tokens import Token, Tokens, Vocabulary, refuse_hostile
from metaljit.source import Source, Span


def parse_module(source: Source) -> tree.Module:
    """The tree of a `.mjk` file."""
    docstring, statements = split_docstring(_parse("module", source))
    for statement in statements:
        if not isinstance(statement, tree.Import | tree.Assign | tree.Function):
            declared = isinstance(statement, tree.Declare)
            instead = "write it without its type" if declared else "move it into a function, or remove it"
            raise fault("top-level-statement", statement.span, instead=instead)
        check(statement)
    return tree.Module(docstring, statements, span=Span(source, 0, len(source.text)))


def parse_function(source: Source) -> tree.Function:
    """The tree of one function: its decorators and its `def`, dedented."""
    function: tree.Function = _parse("function", source)
    check(function)
    return function


def parse_quoted(string: tree.String) -> tree.Expr:
    """The expression inside a string: a quoted annotation, or the text of `grid="ceil_div(N, block)"`.

    Its spans lie inside the quotes, so the string must be one literal without prefix and escapes.
    """
    source = string.span.source
    words = _parser()[1].pattern.finditer(source.text, string.span.start, string.span.end)
    pieces = [word for word in words if word.lastgroup == "STRING"]
    prefix, start, end = literals.quotes(pieces[0].group())
    if len(pieces) > 1 or prefix or "\\" in pieces[0].group():
        raise fault("quoted-text", string.span)
    offset = pieces[0].start()
    expression: tree.Expr = _parse("quoted", source, offset + start, offset + end)
    check(expression)
    return expression


@cache
def _parser() -> tuple[Lark, Vocabulary]:
    parser = tables.load(Actions(parse_quoted))
    return parser, Vocabulary(parser.terminals)


def _parse(start: str, source: Source, begin: int = 0, end: int | None = None) -> Any:
    """What the rule `start` makes of the text, or of the part of it that stands in quotes."""
    if end is None:
        refuse_hostile(source)
    parser, words = _parser()
    tokens = Tokens(source, words, begin, len(source.text) if end is None else end, inside=end is not None)
    rest = iter(tokens)
    seen: list[Token] = []
    state = parser.parse_interactive(start=start)
    result = None
    try:
        for token in rest:
            seen.append(token)
            result = state.feed_token(token)  # type: ignore[arg-type]  # of a token only `.type` is asked
    except UnexpectedToken:
        from metaljit.grammar.diagnose import Stop, diagnose  # only where something is wrong

        accepts = _accepted(parser.parse_interactive(start=start), seen[:-1])
        stop = Stop(seen, rest, {words.spelling(terminal) for terminal in accepts}, list(tokens.open))
        raise diagnose(stop) from None
    return result


def _accepted(state: InteractiveParser, seen: list[Token]) -> set[str]:
    """The terminals that may follow: asked before the token that failed, which may have completed rules."""
    for token in seen:
        state.feed_token(token)  # type: ignore[arg-type]
    terminals: set[str] = state.accepts()  # type: ignore[no-untyped-call]
    return terminals
