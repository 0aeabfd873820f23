"""What the grammar cannot read → the mistake behind it.

In: the token at which the parser stopped, the tokens around it, and what would have been accepted. Out: the
fault of a row of mistakes.py, by the first rule below that knows the case; without one, what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import takewhile
from keyword import iskeyword

from metaljit.frozen import mutable
from metaljit.grammar.mistakes import LONGEST_SHOWN, fault
from metaljit.grammar.tokens import CLOSERS, OPENERS, Token, character
from metaljit.source import SyntaxFault

_RESERVED = {
    "class": "no-class",
    "with": "no-with",
    "del": "no-del",
    "lambda": "no-lambda",
    "yield": "no-yield",
    **dict.fromkeys(("global", "nonlocal"), "no-global"),
    **dict.fromkeys(("async", "await"), "no-async"),
    **dict.fromkeys(("try", "except", "finally", "raise"), "no-exceptions"),
}
_C_SIGNS = {
    "&&": "`and`",
    "||": "`or`",
    "!": "`not`",
    "?": "`a if condition else b`",
}
# What people mean by characters that the language has not.
_MEANT = {
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys("−–—‐‑", "-"),
    **dict.fromkeys("×∗⋅·", "*"),
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "→": "->",
    "\N{NO-BREAK SPACE}": " ",
}
# Words that begin a declaration in C, Metal or JavaScript.
_C_TYPES = {
    **dict.fromkeys(("float", "double"), "f32"),
    **dict.fromkeys(("int", "long", "short", "char", "signed"), "i32"),
    **dict.fromkeys(("uint", "unsigned", "size_t"), "u32"),
    "half": "f16",
}
_DECLARATIONS = {
    **{word: f"write `{{name}}: {dtype} = …`, or `{{name}} = …`" for word, dtype in _C_TYPES.items()},
    **dict.fromkeys(("let", "var", "auto", "const", "constexpr"), "write `{name} = …`"),
    **dict.fromkeys(("function", "func", "fn", "void"), "write `def f(…):`"),
    "kernel": "write `@kernel`, and `def f(…):` on the next line",
}
_PARAMETERS = {
    **{word: f"write `{{name}}: {dtype}`" for word, dtype in _C_TYPES.items()},
    **dict.fromkeys(("device", "constant", "threadgroup", "const"), "write `{name}: f32[N]`"),
}
_BLOCKS = ("if", "elif", "else", "for", "while", "def")
_STATEMENTS = ("return", "pass", "break", "continue", "assert", "import", "from", *_BLOCKS)
_CONDITIONS = ("if", "elif", "while", "assert", "return")
_VALUES = {"NAME", "INTEGER", "FLOAT", "STRING", "TRUE", "FALSE", "NONE"}
_LAYOUT = {
    "NEWLINE": "the end of the line",
    "INDENT": "an indented line",
    "DEDENT": "the end of the block",
    "STRING": "a string",
}
_STARTS_VALUE = {
    *("NAME", "INTEGER", "FLOAT", "STRING", "True", "False", "None", "..."),
    *("(", "[", "not", "~", "SIGN"),
}
_FOLLOWS_VALUE = {
    *("SIGN", "*", "/", "@", "DIVIDE", "SHIFT", "**", "&", "|", "^", "AUGMENT", "COMPARE"),
    *("is", "not", "and", "or", "if", "for", ".", "(", "[", "STRING"),
}
_ASSIGNMENT = re.compile(r"[ \t]*([-+*/%@&|^]|\*\*|//|<<|>>)?=(?!=)")
_MOST_NAMED = 4


@mutable
class Stop:
    """Where the parser stopped: at the last token of `seen`, with `rest` to come.

    There it would have accepted the terminals `accepts`, which go by their text if it is fixed, as `)`, and by
    their name if not, as NEWLINE. `open` holds the brackets that are open.
    """

    seen: list[Token]
    rest: Iterator[Token]
    accepts: set[str]
    open: list[Token]

    @property
    def token(self) -> Token:
        return self.seen[-1]

    @property
    def before(self) -> Token | None:
        return self.seen[-2] if len(self.seen) > 1 else None

    @cached_property
    def line(self) -> list[Token]:
        """This logical line, up to the token."""
        return self.seen[self._line_start(len(self.seen) - 1) :]

    @cached_property
    def line_before(self) -> list[Token]:
        """The logical line before this one, without the NEWLINE that ends it."""
        end = self._line_start(len(self.seen) - 1) - 1
        return self.seen[self._line_start(end) : end]

    def _line_start(self, index: int) -> int:
        while index > 0 and self.seen[index - 1].type not in ("NEWLINE", "INDENT", "DEDENT"):
            index -= 1
        return index

    @property
    def opener(self) -> Token | None:
        """The innermost bracket around the token."""
        around = [token for token in self.open if token is not self.token]
        return around[-1] if around else None

    @cached_property
    def following(self) -> list[Token]:
        """What follows the token, as far as it can be read."""
        found: list[Token] = []
        with suppress(SyntaxFault):
            found.extend(self.rest)
        return found

    @cached_property
    def whole_line(self) -> list[Token]:
        """This logical line with what follows the token, without the NEWLINE that ends it."""
        return list(takewhile(lambda token: token.type != "NEWLINE", [*self.line, *self.following]))


def _unclosed(stop: Stop) -> SyntaxFault | None:
    opener, rest = stop.opener, [stop.token, *stop.following]
    if opener is None or rest[-1].type != "$END" or any(depth < 0 for _, depth in _depths(rest)):
        return None
    closer = OPENERS[opener.text]
    return fault(
        "unclosed-bracket",
        stop.token.span,
        second=opener.span,
        opener=opener.text,
        closer=closer,
        found=_described(stop.token),
    )


def _keyword_as_name(stop: Stop) -> SyntaxFault | None:
    token = stop.token
    if iskeyword(token.text) and (stop.accepts == {"NAME"} or (len(stop.line) == 1 and _assigned(token))):
        return fault("keyword-as-name", token.span, found=token.text)
    if len(stop.line) == 2 and iskeyword(stop.line[0].text) and _assigned(stop.line[0]):
        return fault("keyword-as-name", stop.line[0].span, found=stop.line[0].text)
    return None


def _touching(first: Token, second: Token) -> bool:
    return first.span.end == second.span.start


def _assigned(token: Token) -> bool:
    return _ASSIGNMENT.match(token.span.source.text, token.span.end) is not None


def _reserved(stop: Stop) -> SyntaxFault | None:
    slug = _RESERVED.get(stop.token.text)
    return fault(slug, stop.token.span, found=stop.token.text) if slug else None


def _brace(stop: Stop) -> SyntaxFault | None:
    token = stop.token
    if token.text != "{":
        return None
    if ":" in stop.accepts and stop.line[0].text in _BLOCKS:
        return fault("c-block", token.span)
    inside = list(takewhile(lambda pair: pair[1] >= 0, _depths(stop.following)))
    end = next((closer for closer, depth in _depths(stop.following) if depth < 0), token)
    top = {inner.text for inner, depth in inside if depth == 0}
    what = "a dict" if not inside or {":", "**"} & top else "a set"
    what += " comprehension" if "for" in top else ""
    return fault("no-dict-or-set", token.span.until(end.span), what=what)


def _depths(tokens: Iterable[Token]) -> Iterator[tuple[Token, int]]:
    """Each token with the number of brackets around it that these tokens open; below zero if they close more."""
    depth = 0
    for token in tokens:
        depth -= token.text in CLOSERS
        yield token, depth
        depth += token.text in OPENERS


def _sign(stop: Stop) -> SyntaxFault | None:
    token = stop.token
    if token.text == ":=":
        return fault("no-walrus", token.span)
    if token.text in _C_SIGNS:
        return fault("c-operator", token.span, found=token.text, instead=_C_SIGNS[token.text])
    if token.type == "NO_WORD":
        meant = _MEANT.get(token.text)
        instead = f"write `{meant}`" if meant else "remove it"
        if token.text == "\\":
            instead = "end the line with it, to go on in the next"
        return fault("bad-character", token.span, what=character(token.text), instead=instead)
    if token.text == ">" and stop.before and stop.before.text == "<" and _touching(stop.before, token):
        return fault("c-operator", stop.before.span.until(token.span), found="<>", instead="`!=`")
    match stop.seen[-4:]:
        case [value, Token("SIGN") as first, Token("SIGN") as second, _] if first.text == second.text:
            if _touching(first, second):
                found = first.text + second.text
                name = value.text if value.type == "NAME" else "i"
                span = first.span.until(second.span)
                return fault("c-operator", span, found=found, instead=f"`{name} {first.text}= 1`")
    return None


def _indentation(stop: Stop) -> SyntaxFault | None:
    if stop.token.type == "INDENT":
        return fault("unexpected-indent", stop.token.span)
    if stop.accepts != {"INDENT"}:
        return None
    header = stop.line_before
    first = next((t for t in [stop.token, *stop.following] if t.type != "DEDENT"), stop.token)
    opening = header[0].span.until(header[-1].span)
    return fault("missing-indent", first.span, second=opening, keyword=header[0].text)


def _colon(stop: Stop) -> SyntaxFault | None:
    token, before, keyword = stop.token, stop.before, stop.line[0].text
    if ":" not in stop.accepts or keyword not in _BLOCKS or stop.opener or before is None:
        return None
    if before.text == "else" and token.text == "if":
        return fault("else-if", before.span.until(token.span))
    if stop.accepts != {":"} and token.type not in ("NEWLINE", "$END") and token.text not in _STATEMENTS:
        return None
    line = stop.line[0].span.until(before.span).text
    if "\n" in line or len(line) > LONGEST_SHOWN:
        line = f"{keyword} …"
    return fault("missing-colon", token.span, keyword=keyword, line=line)


def _else(stop: Stop) -> SyntaxFault | None:
    if stop.token.text in ("else", "elif") and len(stop.line) == 1:
        return fault("else-without-if", stop.token.span, found=stop.token.text)
    return None


def _match(stop: Stop) -> SyntaxFault | None:
    line = stop.whole_line
    if line and line[0].text == "match" and len(line) > 2 and line[-1].text == ":":
        return fault("no-match", line[0].span)
    return None


def _other_languages(stop: Stop) -> SyntaxFault | None:
    first, before = stop.line[0], stop.before
    inside = takewhile(lambda pair: pair[1] >= 0, _depths(stop.following))
    if first.text == "for" and stop.opener in stop.line[1:2] and any(t.text == ";" for t, _ in inside):
        return fault("c-for", first.span)
    if before is None or stop.token.type != "NAME":
        return None
    words = _DECLARATIONS if len(stop.line) == 2 else _PARAMETERS if first.text == "def" else {}
    if before.text not in words:
        return None
    name = "x" if stop.token.text in words else stop.token.text
    instead = words[before.text].format(name=name)
    return fault("c-declaration", before.span, found=before.text, instead=instead)


def _equals(stop: Stop) -> SyntaxFault | None:
    if stop.token.text != "=":
        return None
    if stop.line[0].text in _CONDITIONS or stop.opener or _in_conditional(stop):
        return fault("single-equals", stop.token.span)
    return None


def _generator(stop: Stop) -> SyntaxFault | None:
    token = stop.token
    if token.text == "for" and stop.opener and stop.opener.text == "[":
        return fault("no-list-comprehension", token.span)
    if token.text == "for" or (token.text == "," and {"for", ")"} <= stop.accepts):
        return fault("generator-not-alone", token.span)
    return None


def _in_conditional(stop: Stop) -> bool:
    """Whether `a if b` stands before the token."""
    return "else" in stop.accepts and "pass" not in stop.accepts


def _missing_else(stop: Stop) -> SyntaxFault | None:
    if _in_conditional(stop) and stop.token.type not in _VALUES:
        return fault("missing-else", stop.token.span)
    return None


def _adjacent(stop: Stop) -> SyntaxFault | None:
    token, before = stop.token, stop.before
    if before is None or token.type not in _VALUES or not (before.type in _VALUES or before.text in CLOSERS):
        return None
    if not stop.opener and "SIGN" not in stop.accepts:
        return None
    slug = "missing-comma" if stop.opener else "missing-operator"
    return fault(slug, token.span, found=_described(token), before=_described(before))


def _definition(stop: Stop) -> SyntaxFault | None:
    token = stop.token
    if stop.accepts == {"@", "def"} and stop.before is None:
        return fault("not-a-function", token.span, found=_described(token))
    if stop.accepts == {"@", "def"}:
        line = stop.line_before
        first = next((t for t in [token, *stop.following] if t.type != "DEDENT"), token)
        return fault("decorator-without-function", first.span, second=line[0].span.until(line[-1].span))
    if stop.accepts == {"("} and token.text == "[":
        return fault("no-type-parameters", token.span)
    if stop.accepts == {"$END"}:
        return fault("not-a-function", token.span, found=f"{_described(token)} after it")
    return None


_RULES: tuple[Callable[[Stop], SyntaxFault | None], ...] = (
    _unclosed,
    _keyword_as_name,
    _reserved,
    _brace,
    _sign,
    _indentation,
    _colon,
    _else,
    _match,
    _other_languages,
    _equals,
    _generator,
    _missing_else,
    _adjacent,
    _definition,
)


def diagnose(stop: Stop) -> SyntaxFault:
    """The mistake behind a token that the grammar does not accept."""
    for rule in _RULES:
        found = rule(stop)
        if found:
            return found
    expected = _expected(stop.accepts)
    return fault("unexpected-token", stop.token.span, found=_described(stop.token), expected=expected)


def _described(token: Token) -> str:
    return token.text if token.type == "$END" else _LAYOUT.get(token.type, f"`{token.text}`")


def _expected(accepts: set[str]) -> str:
    """What the parser would have taken, in few words; an operator only if nothing says more."""
    left = accepts - {";"}
    words = []
    if "pass" in left:
        return "a statement"
    if "INTEGER" in left:
        words.append("an expression")
        left -= _STARTS_VALUE | {"*", "**", ":"}
    elif "NAME" in left:
        words.append("a name")
        left -= {"NAME", "*", "**", "/"}
    elif "SIGN" in left:
        left -= _FOLLOWS_VALUE | ({"in"} if "COMPARE" in left else set())
    words += [_LAYOUT.get(name, f"`{name}`") for name in sorted(left)]
    return " or ".join(words[:_MOST_NAMED]) or "an operator"
