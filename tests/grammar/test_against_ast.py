"""The grammar is Python's: what `ast` reads, we read as the same tree at the same places, or refuse.

Three kinds of text: programs that Hypothesis writes (every construct of the language, operators in a row
without brackets, odd spacing), the same programs with a token changed (mostly broken), and every small layout
of tabs and spaces. What Python refuses, we refuse.
"""

from __future__ import annotations

import ast
import itertools
import re
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metaljit.grammar import tree
from metaljit.grammar.parser import parse_function, parse_module
from metaljit.source import Source, Span, SyntaxFault

# ---- Python's tree as ours ----


class NotInLanguageError(Exception):
    """Python has it and the language has not."""


OPERATORS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|"},
    **{ast.BitXor: "^", ast.MatMult: "@", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"},
    **{ast.And: "and", ast.Or: "or"},
}


class Converter:
    """Python's tree → ours, with Python's own positions."""

    def __init__(self, text: str) -> None:
        self.source = Source("test", text)
        self.lines = text.split("\n")
        self.starts = [0, *itertools.accumulate(len(line) + 1 for line in self.lines)]

    def span(self, node: Any) -> Span:
        def offset(line: int, column: int) -> int:
            before = self.lines[line - 1].encode()[:column].decode()
            return self.starts[line - 1] + len(before)

        start = offset(node.lineno, node.col_offset)
        return Span(self.source, start, offset(node.end_lineno, node.end_col_offset))

    def many(self, nodes: list[Any]) -> tuple[Any, ...]:
        return tuple(self.expr(node) for node in nodes)

    def expr(self, node: Any) -> Any:
        if node is None:
            return None
        span = self.span(node)
        match node:
            case ast.Constant(value=bool() | None as value):
                return tree.Constant(value, span=span)
            case ast.Constant(value=int() | float() as value):
                return tree.Number(value, span=span)
            case ast.Constant(value=str() as value):
                return tree.String(value, span=span)
            case ast.Name(id=name):
                return tree.Name(name, span=span)
            case ast.Attribute(value=value, attr=name):
                return tree.Attribute(self.expr(value), name, span=span, name_span=span)
            case ast.Subscript(value=value, slice=index):
                indices = index.elts if isinstance(index, ast.Tuple | ast.List) else [index]
                return tree.Subscript(self.expr(value), self.many(indices), span=span)
            case ast.Call(func=func, args=args, keywords=keywords):
                named = tuple(
                    tree.Keyword(k.arg, self.expr(k.value), span=self.span(k)) for k in keywords if k.arg
                )
                if len(named) == len(keywords):
                    return tree.Call(self.expr(func), self.many(args), named, span=span)
            case ast.UnaryOp(op=op, operand=operand):
                return tree.Unary(OPERATORS[type(op)], self.expr(operand), span=span)
            case ast.BinOp(op=op, left=left, right=right):
                return tree.Binary(OPERATORS[type(op)], self.expr(left), self.expr(right), span=span)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                names = tuple(OPERATORS[type(op)] for op in ops)
                return tree.Compare(self.expr(left), names, self.many(rest), span=span)
            case ast.BoolOp(op=op, values=values):
                return tree.Logical(OPERATORS[type(op)], self.many(values), span=span)
            case ast.IfExp(test=test, body=then, orelse=orelse):
                return tree.Conditional(self.expr(test), self.expr(then), self.expr(orelse), span=span)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tree.TupleExpr(self.many(items), span=span)
            case ast.Starred(value=value):
                return tree.Star(self.expr(value), span=span)
            case ast.GeneratorExp(elt=element, generators=generators):
                clauses = tuple(self.clause(generator) for generator in generators)
                return tree.Generator(self.expr(element), clauses, span=span)
        raise NotInLanguageError(ast.dump(node))

    def clause(self, node: ast.comprehension) -> tree.Clause:
        if node.is_async:
            raise NotInLanguageError("async")
        nowhere = Span(self.source, -1, -1)  # Python keeps no position of a clause
        return tree.Clause(self.target(node.target), self.expr(node.iter), self.many(node.ifs), span=nowhere)

    def target(self, node: Any) -> Any:
        match node:
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return tree.TupleTarget(tuple(self.target(item) for item in items), span=self.span(node))
            case ast.Starred(value=value):
                if isinstance(value, ast.Tuple | ast.List):
                    raise NotInLanguageError("*(a, b)")
                return tree.Star(self.expr(value), span=self.span(node))
        return self.expr(node)

    def body(self, nodes: list[Any]) -> tuple[tree.Stmt, ...]:
        return tuple(self.stmt(node) for node in nodes)

    def stmt(self, node: Any) -> Any:
        span = self.span(node)
        match node:
            case ast.Assign(targets=targets, value=value):
                return tree.Assign(tuple(map(self.target, targets)), self.expr(value), span=span)
            case ast.AnnAssign(target=ast.Name() as target, annotation=annotation, value=value, simple=1):
                return tree.Declare(self.expr(target), self.expr(annotation), self.expr(value), span=span)
            case ast.AugAssign(target=target, op=op, value=value):
                return tree.Augment(self.expr(target), OPERATORS[type(op)], self.expr(value), span=span)
            case ast.Expr(value=ast.Call() | ast.Constant(value=str()) as value):
                return tree.ExprStmt(self.expr(value), span=span)
            case ast.Return(value=value):
                return tree.Return(self.expr(value), span=span)
            case ast.Assert(test=test, msg=message):
                return tree.Assert(self.expr(test), self.expr(message), span=span)
            case ast.Pass():
                return tree.Pass(span=span)
            case ast.Break():
                return tree.Break(span=span)
            case ast.Continue():
                return tree.Continue(span=span)
            case ast.If(test=test, body=body, orelse=orelse):
                return tree.If(self.expr(test), self.body(body), self.body(orelse), span=span)
            case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                return tree.For(self.target(target), self.expr(iterable), self.body(body), span=span)
            case ast.While(test=test, body=body, orelse=[]):
                return tree.While(self.expr(test), self.body(body), span=span)
        raise NotInLanguageError(ast.dump(node))

    def parameters(self, node: ast.arguments) -> Iterator[tree.Parameter]:
        if node.posonlyargs or node.vararg or node.kwarg:
            raise NotInLanguageError(ast.dump(node))
        defaults = [None] * (len(node.args) - len(node.defaults)) + node.defaults
        named = [(arg, default, False) for arg, default in zip(node.args, defaults, strict=True)]
        named += [
            (arg, default, True) for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
        ]
        for arg, default, keyword_only in named:
            annotation, value, span = self.expr(arg.annotation), self.expr(default), self.span(arg)
            yield tree.Parameter(arg.arg, annotation, value, keyword_only, span=span, name_span=span)

    def function(self, node: ast.stmt) -> tree.Function:
        if not isinstance(node, ast.FunctionDef) or getattr(node, "type_params", None):
            raise NotInLanguageError(ast.dump(node))
        docstring = ast.get_docstring(node, clean=False)
        span = self.span(node)
        return tree.Function(
            node.name,
            self.many(node.decorator_list),
            tuple(self.parameters(node.args)),
            self.expr(node.returns),
            docstring,
            self.body(node.body[docstring is not None :]),
            span=span,
            name_span=span,
        )


# ---- comparing ----


def compare(ours: Any, theirs: Any) -> None:
    """The same nodes at the same places."""
    assert ours == theirs
    pairs = [(ours, theirs)]
    while pairs:
        mine, python = pairs.pop()
        if isinstance(mine, tuple):
            pairs += zip(mine, python, strict=True)
        elif is_dataclass(mine):
            compare_places(mine, python)
            pairs += [
                (getattr(mine, f.name), getattr(python, f.name))
                for f in fields(mine)
                if not f.name.endswith("span")
            ]


def compare_names(mine: tree.Attribute | tree.Parameter | tree.Function) -> None:
    """Python keeps no positions of names within a node."""
    assert unicodedata.normalize("NFKC", mine.name_span.text) == mine.name
    if isinstance(mine, tree.Attribute):
        assert mine.name_span.start > mine.value.span.end
        assert mine.name_span.end <= mine.span.end
    else:
        assert mine.span.start <= mine.name_span.start <= mine.span.start + len("def  ")


def compare_places(mine: Any, python: Any) -> None:
    ours, theirs = mine.span, python.span
    assert ours.source.text == theirs.source.text
    match mine:
        case tree.Clause():  # Python keeps none
            assert ours.text.startswith("for")
        case tree.If() | tree.For() | tree.While() | tree.Function():  # the header: Python has the whole body
            assert ours.start == theirs.start
            assert ours.text.endswith(":")
            assert ours.end <= theirs.end
        case tree.Parameter():  # Python leaves out the default
            assert ours.start == theirs.start
            assert ours.text.startswith(theirs.text)
        case tree.Generator() if not brackets_around(ours, theirs):  # Python takes the brackets of the call
            assert ours.start > theirs.start
            assert ours.end < theirs.end
        case _:  # brackets around an expression belong to its span; Python leaves them out
            assert brackets_around(ours, theirs)
    if isinstance(mine, tree.Attribute | tree.Parameter | tree.Function):
        compare_names(mine)


def brackets_around(outer: Span, inner: Span) -> bool:
    """Whether the outer span is the inner one and brackets around it, with blanks and comments between."""
    blank = r"(?:\s|\\\n)*"
    text = outer.source.text
    before, after = (
        re.sub("#.*", "", part) for part in (text[outer.start : inner.start], text[inner.end : outer.end])
    )
    opened = re.fullmatch(rf"(?:\({blank})*", before) is not None
    closed = re.fullmatch(rf"(?:{blank}\))*", after) is not None
    inside = outer.start <= inner.start and inner.end <= outer.end
    return opened and closed and inside and before.count("(") == after.count(")")


def python_reads(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "test", "exec", dont_inherit=True)
            return ast.parse(text)
        except (SyntaxError, ValueError):
            return None


def agree(text: str) -> bool:
    """Check that we read a function as Python does; whether we read it at all."""
    python = python_reads(text)
    expected: tree.Function | None = None
    if python is not None and len(python.body) == 1:
        try:
            expected = Converter(text).function(python.body[0])
        except NotInLanguageError:
            expected = None
    try:
        ours = parse_function(Source("test", text))
    except SyntaxFault as error:
        slug = error.slug
    else:
        assert expected is not None, text
        compare(ours, expected)
        return True
    assert expected is None or slug in STRICTER, text
    return False


# Refused although Python reads it, each for a reason that mistakes.py gives.
STRICTER = {"c-operator", "bad-number", "nested-too-deep", "unused-value", "no-list-index"}

# ---- texts ----

NAMES = st.sampled_from(["x", "y", "acc", "_1", "größe", "ﬁne", "match", "T"])
NUMBERS = st.sampled_from(
    ["0", "7", "1_000", "0xFF", "0b1_0", "0o17", "1.5", ".5", "5.", "1e3", "2.5e-3", "1_0.2_5E+1_0", "00"]
)
STRINGS = st.sampled_from(
    ["'a'", '"b\\n"', "'''c\n'd'''", 'r"\\d"', "u'e'", "\"f\" 'g'", '"\\x41\\N{DIGIT ONE}\\101"', '""']
)
ATOMS = st.one_of(NAMES, NUMBERS, STRINGS, st.sampled_from(["True", "False", "None", "()", "[]"]))
BINARY = st.sampled_from(
    [*"+ - * / // % ** << >> & | ^ @ < <= > >= == != and or is in".split(), "not in", "is not"]
)
PREFIX = st.sampled_from(["", "", "", "-", "+", "~", "not ", "- -", "-+~", "not not "])
SPACE = st.sampled_from(["", " ", "  ", " \\\n "])
TIGHT = st.sampled_from(["", " "])


def bracketed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Text between brackets, where lines end freely."""
    filling = st.sampled_from(["", " ", "\n", " # note\n  "])
    return st.tuples(filling, inner, filling).map("".join)


def comma_separated(items: st.SearchStrategy[str], least: int = 0) -> st.SearchStrategy[str]:
    return st.builds(
        lambda parts, comma: ", ".join(parts) + (comma if parts else ""),
        st.lists(items, min_size=least, max_size=3),
        st.sampled_from(["", ",", " ,"]),
    )


@st.composite
def chains(draw: st.DrawFn, operands: st.SearchStrategy[str]) -> str:
    """Operators in a row, prefixes among them: only precedence tells what belongs together."""
    text: str = draw(operands)
    for _ in range(draw(st.integers(0, 5))):
        text += f"{draw(SPACE)} {draw(BINARY)} {draw(SPACE)}{draw(PREFIX)}{draw(operands)}"
    return f"{draw(PREFIX)}{text}"


def extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    starred = st.one_of(inner, inner, inner.map("*{}".format))
    clauses = st.lists(
        st.builds(
            lambda target, source, tests: f"for {target} in {source}" + "".join(f" if {t}" for t in tests),
            targets(),
            chains(inner),
            st.lists(chains(inner), max_size=2),
        ),
        min_size=1,
        max_size=3,
    ).map(" ".join)
    generators = st.tuples(inner, clauses).map(" ".join)
    keywords = st.builds("{}={}".format, st.sampled_from(["axis", "k"]), inner)
    arguments = st.one_of(
        comma_separated(starred),
        generators,
        st.tuples(comma_separated(inner, 1), st.lists(keywords, max_size=2)).map(
            lambda parts: ", ".join([parts[0].rstrip(" ,"), *parts[1]])
        ),
    )
    head = st.one_of(NAMES, inner.map("({})".format), STRINGS)
    return st.one_of(
        chains(inner),
        st.builds("{} if {} else {}".format, inner, inner, inner),
        bracketed(st.one_of(inner, generators, comma_separated(starred, 2))).map("({})".format),
        bracketed(comma_separated(starred)).map("[{}]".format),
        st.builds("{}{}({})".format, head, TIGHT, bracketed(arguments)),
        st.builds("{}{}[{}]".format, head, TIGHT, bracketed(comma_separated(starred, 1))),
        st.builds("{}{}.{}{}".format, head, TIGHT, TIGHT, NAMES),
    )


def targets() -> st.SearchStrategy[str]:
    one = st.one_of(NAMES, st.builds("{}[{}]".format, NAMES, ATOMS), st.builds("{}.{}".format, NAMES, NAMES))
    return st.one_of(
        one, st.tuples(one, one).map(", ".join), one.map("({},)".format), one.map("*rest, ({})".format)
    )


EXPRESSIONS = st.recursive(ATOMS, extended, max_leaves=12)
AUGMENTS = st.sampled_from("+= -= *= /= //= %= **= <<= >>= &= |= ^= @=".split())
SIMPLE = st.one_of(
    st.builds("{} = {}".format, targets(), EXPRESSIONS),
    st.builds("{} = {} = {}, *{}".format, targets(), targets(), EXPRESSIONS, ATOMS),
    st.builds("{} {} {}".format, NAMES, AUGMENTS, EXPRESSIONS),
    st.builds("{}: {} = {}".format, st.sampled_from(["a", "b"]), NAMES, EXPRESSIONS),
    st.builds("{}: {}[{}]".format, st.sampled_from(["a", "b"]), NAMES, NUMBERS),
    st.builds("{}({})".format, NAMES, EXPRESSIONS),
    st.builds("return {}".format, EXPRESSIONS),
    st.builds("assert {}, {}".format, EXPRESSIONS, STRINGS),
    st.builds("assert {}".format, EXPRESSIONS),
    STRINGS,
    st.sampled_from(["return", "pass", "print()", "break", "continue"]),
)
HEADERS = st.one_of(
    st.builds("if {}:".format, EXPRESSIONS),
    st.builds("while {}:".format, EXPRESSIONS),
    st.builds("for {} in {}:".format, targets(), EXPRESSIONS),
    st.builds("for {} in {}, *{}:".format, targets(), ATOMS, ATOMS),
)
PARAMETERS = st.sampled_from(
    [
        "",
        "p",
        "p: f32[H, W], q=1",
        "p: f32[*S], q: T = 2, *, r, s: i32 = 3,",
        "\n    p: f32[4 * H],  # first\n    q: const[int] = (1),\n",
        "*, p=None",
    ]
)
RETURNS = st.sampled_from(["", " -> f32", " -> tuple[f32[A], i32[A]]", "->(f32[A], i32[A])"])
DECORATORS = st.sampled_from(["", "@kernel\n", "@mj.kernel(grid=(1, 2))\n\n# note\n@other\n"])


@st.composite
def blocks(draw: st.DrawFn, depth: int, indent: str) -> str:
    """The body of a block, on the line of its header or below it."""
    if draw(st.integers(0, 3)) == 0:
        return (
            " "
            + "; ".join(draw(st.lists(SIMPLE, min_size=1, max_size=2)))
            + draw(st.sampled_from(["\n", ";\n"]))
        )
    step = draw(st.sampled_from([" ", "    ", "\t"]))
    lines = draw(st.sampled_from(["\n", "  # note\n", "\n\n   # note\n\n"]))
    for _ in range(draw(st.integers(1, 3))):
        lines += indent + step + draw(statements(depth, indent + step))
    return lines


@st.composite
def statements(draw: st.DrawFn, depth: int, indent: str) -> str:
    if depth == 0 or draw(st.booleans()):
        end = draw(st.sampled_from(["\n", " # note\n", "\n\n", ";\n"]))
        return f"{draw(SIMPLE)}{end}"
    header = draw(HEADERS)
    text = header + draw(blocks(depth - 1, indent))
    if header.startswith("if"):
        for _ in range(draw(st.integers(0, 2))):
            text += f"{indent}elif {draw(EXPRESSIONS)}:{draw(blocks(depth - 1, indent))}"
        if draw(st.booleans()):
            text += f"{indent}else:{draw(blocks(depth - 1, indent))}"
    return text


@st.composite
def programs(draw: st.DrawFn) -> str:
    decorators, parameters, returns = draw(DECORATORS), draw(PARAMETERS), draw(RETURNS)
    return f"{decorators}def f({parameters}){returns}:{draw(blocks(2, ''))}"


# ---- tests ----


@given(chains(ATOMS))
@example("-x ** -y ** z")
@example("not x == y in z")
@example("x if y else z if a else b")
@example("a < b == c not in d is not e")
@example("a or b and not c or d")
@example("- - ~+x")
@example("a << b + c & d ^ e | f << g")
def test_operators_bind_as_in_python(expression: str) -> None:
    text = f"def f():\n return {expression}\n"
    if python_reads(text):
        assert agree(text)


@given(programs())
def test_programs_are_read_as_python_reads_them(text: str) -> None:
    agree(text)


@given(programs(), st.randoms(use_true_random=False))
def test_a_changed_token_is_judged_as_python_judges_it(text: str, random: Any) -> None:
    words = ["x", "1", "(", ")", "[", "]", ",", ":", "=", "+", "*", "**", "for", "in", "if", "else", "not"]
    words += [
        "\n",
        "\n ",
        "\n    ",
        ";",
        ".",
        "...",
        "->",
        "lambda",
        "return",
        "def",
        "'",
        "@",
        "{",
        "}",
        "#",
    ]
    for _ in range(10):
        place = random.randrange(len(text) + 1)
        agree(text[:place] + f" {random.choice(words)} " + text[place + random.choice([0, 0, 1, 2]) :])


INDENTS = ["", " ", "  ", "\t", " \t", "\t ", "        ", "\f", " \f "]


@pytest.mark.parametrize("first", INDENTS)
def test_indentation_is_judged_as_python_judges_it(first: str) -> None:
    for second, third in itertools.product(INDENTS, repeat=2):
        agree(f"def f():\n{first}if x:\n{second}y = 1\n{third}z = 2\n")
        agree(f"def f():\n{first}if x: y = 1\n{second}else:\n{third}z = 2\n")


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return x",
        "def f(x):\n\treturn x",
        "def f(x):\n  return x\n\n\n",
        "\n\n# note\n\ndef f(x): pass  # note",
        "def f(x): # note\n\n    # note\n  # note\n    return x\n# note",
        "def f(\n  x\n  ,\n):\n  return (\n1\n)",
        "def f(x):\n    if x: pass\n    elif y: pass\n    else: pass",
        "def f(x):\n    x = \\\n  1 + \\\n2\n    return x",
        'def f(x):\n    """doc"""',
        'def f(x):\n    "do" \'c\'\n    "more"\n    return x',
        "def f(x):\n    *b, y, x = position()\n    (a, (b, *c)), d = e",
        "def f(x):\n    return sum(a[i, k] * b[k, j] for k in range(K) if k if not j for (i, j) in c)",
        "def f(x):\n    return sum((a for a in b)), (a for a in b)",
        "def f(x): x[(a, b)] = x[a, b], x[(a,)], x[()], x[a,], x[(a), (b)]",
        "def f(x):\n    x = (1,), (), [1], [2, *y], (*z,)\n    return *x, 1",
        "def f(x):\n    for i, in x: continue\n    for (i) in x, y: break",
        "def f(x, y: f32 = 1, *, z, w: T = (2)) -> (f32[A], i32[A]): pass",
        "@a\n@b.c(d=1)\ndef f(x): pass",
        "def f(x): x.y.z = x . y; x[0][1] = x [0] (2) . z",
        "def f(x): return x, -1 .real, 1. .imag",
        "def f(x): assert x, 'no'; assert (x); print('x', x)",
        "def f(x): y: i32; z: f32[N] = 0.5,",
        "def f(x):\n  a = b = c = 1\n  a, b = c, d = e",
        "def f(x): x = [*a | b, *c], *d ^ e | f; x[*a if b else c, *not d], y[*a, b] = g(*a or b)",
        'def f(x): x = "a\\\nb" "\\"" \'\\\'\'',
        "def f(x): x @= y; x **= y; x //= y; x >>= y; x <<= y; x ^= y, z",
    ],
)
def test_a_text_is_read_as_python_reads_it(text: str) -> None:
    assert agree(text)
    assert agree(text + "\n")


def test_a_module_is_read_as_python_reads_it() -> None:
    imports = "import a.b as c, d\nfrom ..e.f import (g as h, i,)\nfrom . import j\n"
    text = f'"""doc"""\n{imports}H, W = dims("H W")\nPI = 3\n'
    module = parse_module(Source("test", text))
    assert module.docstring == "doc"
    body = iter(module.body)
    convert = Converter(text)
    for statement in ast.parse(text).body[1:]:
        match statement:
            case ast.Import(names=names):
                for name in names:
                    assert next(body) == tree.Import(name.name, name.asname, (), 0, span=module.span)
            case ast.ImportFrom(module=origin, names=names, level=level):
                expected = tuple(tree.ImportName(n.name, n.asname, span=module.span) for n in names)
                assert next(body) == tree.Import(origin or "", None, expected, level, span=module.span)
            case _:
                compare(next(body), convert.stmt(statement))
    assert not list(body)
