"""What the nodes of the tree look like, and where they stand; test_against_ast.py has the breadth."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import pytest

from metaljit.grammar import tree
from metaljit.grammar.parser import parse_function, parse_module
from metaljit.grammar.tree import (
    Attribute,
    Binary,
    Call,
    Keyword,
    Name,
    Number,
    Star,
    String,
    Subscript,
    TupleExpr,
)
from metaljit.source import Source, Span

NOWHERE = Span(Source("", ""), 0, 0)


def at(node: type[Any], *values: Any) -> Any:
    """A node to compare with: its places do not count."""
    places = {name: NOWHERE for name in node.__dataclass_fields__ if name.endswith("span")}
    return node(*values, **places)


def names(*texts: str) -> tuple[tree.Name, ...]:
    return tuple(at(Name, text) for text in texts)


def expression(text: str) -> Any:
    (statement,) = parse_module(Source("test.mjk", f"x = {text}")).body
    assert isinstance(statement, tree.Assign)
    return statement.value


def body(text: str) -> tuple[tree.Stmt, ...]:
    return parse_function(Source("test.mjk", f"def f():\n {text}")).body


a, b, c, d = names("a", "b", "c", "d")
one = at(Number, 1)
pass_ = at(tree.Pass)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", a),
        ("(a)", a),
        ("((a))", a),
        ("1", one),
        ("'a' \"b\"", at(String, "ab")),
        ("True", at(tree.Constant, True)),
        ("None", at(tree.Constant, None)),
        ("a.b.c", at(Attribute, at(Attribute, a, "b"), "c")),
        ("a[b]", at(Subscript, a, (b,))),
        ("a[b,]", at(Subscript, a, (b,))),
        ("a[b, c]", at(Subscript, a, (b, c))),
        ("a[(b, c)]", at(Subscript, a, (b, c))),
        ("a[()]", at(Subscript, a, ())),
        ("a[(b, c),]", at(Subscript, a, (at(TupleExpr, (b, c)),))),
        ("a[(b)]", at(Subscript, a, (b,))),
        ("a[(b, c), d]", at(Subscript, a, (at(TupleExpr, (b, c)), d))),
        ("a[*b]", at(Subscript, a, (at(Star, b),))),
        ("a[*b, c]", at(Subscript, a, (at(Star, b), c))),
        ("a[*(b + c)]", at(Subscript, a, (at(Star, at(Binary, "+", b, c)),))),
        ("a()", at(Call, a, (), ())),
        ("a(b, *c, d=1)", at(Call, a, (b, at(Star, c)), (at(Keyword, "d", one),))),
        ("a(d=1, *c)", at(Call, a, (at(Star, c),), (at(Keyword, "d", one),))),
        ("-a", at(tree.Unary, "-", a)),
        ("-(-a)", at(tree.Unary, "-", at(tree.Unary, "-", a))),
        ("- -a", at(tree.Unary, "-", at(tree.Unary, "-", a))),
        ("not a", at(tree.Unary, "not", a)),
        ("-a ** b", at(tree.Unary, "-", at(Binary, "**", a, b))),
        ("a ** -b", at(Binary, "**", a, at(tree.Unary, "-", b))),
        ("a ** b ** c", at(Binary, "**", a, at(Binary, "**", b, c))),
        ("a - b - c", at(Binary, "-", at(Binary, "-", a, b), c)),
        ("a - (b - c)", at(Binary, "-", a, at(Binary, "-", b, c))),
        ("a + b * c", at(Binary, "+", a, at(Binary, "*", b, c))),
        ("a @ b", at(Binary, "@", a, b)),
        ("a < b", at(tree.Compare, a, ("<",), (b,))),
        ("a < b not in c is not d", at(tree.Compare, a, ("<", "not in", "is not"), (b, c, d))),
        ("(a < b) < c", at(tree.Compare, at(tree.Compare, a, ("<",), (b,)), ("<",), (c,))),
        ("a and b and c", at(tree.Logical, "and", (a, b, c))),
        ("(a and b) and c", at(tree.Logical, "and", (at(tree.Logical, "and", (a, b)), c))),
        ("a or b and c", at(tree.Logical, "or", (a, at(tree.Logical, "and", (b, c))))),
        ("a if b else c", at(tree.Conditional, b, a, c)),
        ("a if b else c if d else a", at(tree.Conditional, b, a, at(tree.Conditional, d, c, a))),
        ("()", at(TupleExpr, ())),
        ("[]", at(TupleExpr, ())),
        ("(a,)", at(TupleExpr, (a,))),
        ("a,", at(TupleExpr, (a,))),
        ("[a]", at(TupleExpr, (a,))),
        ("[(a, b)]", at(TupleExpr, (at(TupleExpr, (a, b)),))),
        ("a, *b", at(TupleExpr, (a, at(Star, b)))),
        ("a(b for b in c)", at(Call, a, (at(tree.Generator, b, (at(tree.Clause, b, c, ()),)),), ())),
        ("(b for b in c)", at(tree.Generator, b, (at(tree.Clause, b, c, ()),))),
        ("a((b for b in c), d)", at(Call, a, (at(tree.Generator, b, (at(tree.Clause, b, c, ()),)), d), ())),
        (
            "sum(a for b, (c, *d) in a if b if c for d in (a, b))",
            at(
                Call,
                *names("sum"),
                (
                    at(
                        tree.Generator,
                        a,
                        (
                            at(
                                tree.Clause,
                                at(tree.TupleTarget, (b, at(tree.TupleTarget, (c, at(Star, d))))),
                                a,
                                (b, c),
                            ),
                            at(tree.Clause, d, at(TupleExpr, (a, b)), ()),
                        ),
                    ),
                ),
                (),
            ),
        ),
    ],
)
def test_expressions(text: str, expected: tree.Expr) -> None:
    assert expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", at(tree.Assign, (a,), one)),
        ("a = b = 1", at(tree.Assign, (a, b), one)),
        ("a, b = c", at(tree.Assign, (at(tree.TupleTarget, (a, b)),), c)),
        ("[a, b] = c", at(tree.Assign, (at(tree.TupleTarget, (a, b)),), c)),
        ("*a, b = c", at(tree.Assign, (at(tree.TupleTarget, (at(Star, a), b)),), c)),
        ("a[b] = c", at(tree.Assign, (at(Subscript, a, (b,)),), c)),
        ("a: b = c", at(tree.Declare, a, b, c)),
        ("a: b", at(tree.Declare, a, b, None)),
        ("a: 'b[c]' = d", at(tree.Declare, a, at(Subscript, b, (c,)), d)),
        ("a //= b", at(tree.Augment, a, "//", b)),
        ("a.b **= c", at(tree.Augment, at(Attribute, a, "b"), "**", c)),
        ("a[b] <<= c", at(tree.Augment, at(Subscript, a, (b,)), "<<", c)),
        ("return", at(tree.Return, None)),
        ("return a, b", at(tree.Return, at(TupleExpr, (a, b)))),
        ("assert a", at(tree.Assert, a, None)),
        ("assert a, 'b'", at(tree.Assert, a, at(String, "b"))),
        ("a(b)", at(tree.ExprStmt, at(Call, a, (b,), ()))),
        ("pass", at(tree.Pass)),
        ("while a: break", at(tree.While, a, (at(tree.Break),))),
        ("for a in b: continue", at(tree.For, a, b, (at(tree.Continue),))),
        ("for a, in b, c: pass", at(tree.For, at(tree.TupleTarget, (a,)), at(TupleExpr, (b, c)), (pass_,))),
        ("if a: pass", at(tree.If, a, (pass_,), ())),
        (
            "while a:\n  if b: break\n  else: continue",
            at(tree.While, a, (at(tree.If, b, (at(tree.Break),), (at(tree.Continue),)),)),
        ),
        ("if a: pass\n else: return", at(tree.If, a, (pass_,), (at(tree.Return, None),))),
        (
            "if a: pass\n elif b: pass\n elif c: pass\n else: return",
            at(
                tree.If,
                a,
                (pass_,),
                (at(tree.If, b, (pass_,), (at(tree.If, c, (pass_,), (at(tree.Return, None),)),)),),
            ),
        ),
    ],
)
def test_statements(text: str, expected: tree.Stmt) -> None:
    assert body(text) == (expected,)


def test_every_node_of_the_tree_is_reached() -> None:
    text = """'''doc'''
from a import b as c
@kernel(grid="2")
def f(x: f32[N] = 1, *, y=None):
    'doc'
    *a, b = x.y[0], -1
    c: i32 = 1 if a and b else 2
    c += 1 * 2
    for i in x:
        while 1 < 2: break
        continue
    if x: pass
    assert x
    print(sum(*x, (i for i in x), k=1))
    return ()
"""
    found: set[type] = set()
    left: list[Any] = [parse_module(Source("test.mjk", text))]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left += node
        elif type(node).__module__ == tree.__name__:
            found.add(type(node))
            left += vars(node).values()
    kinds = {
        kind for kind in vars(tree).values() if isinstance(kind, type) and kind.__module__ == tree.__name__
    }
    assert found == kinds
    assert set(get_args(tree.Stmt)) | set(get_args(tree.Expr)) < kinds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("0", 0), ("00", 0), ("1_000", 1000), ("0xFf", 255), ("0X_f", 15), ("0b1_01", 5), ("0o17", 15)],
        *[
            ("1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e-3", 0.001),
            ("1E+2", 100.0),
            ("1_0.0_1", 10.01),
            ("01.5", 1.5),
        ],
        *[("18446744073709551616", 2**64), ("1e999", math.inf), ("0e0", 0.0)],
    ],
)
def test_numbers_have_their_value_and_kind(text: str, value: float) -> None:
    number = expression(text)
    assert number == at(Number, value)
    assert type(number.value) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("'a\"b'", 'a"b'),
        (r"'\n\t\\\'\"\x41\u00e9\U0001F600\101\0'", "\n\t\\'\"Aé\U0001f600A\0"),
        (r"'\N{LATIN SMALL LETTER E WITH ACUTE}'", "é"),
        (r"'\d\ '", "\\d\\ "),
        (r"r'\n\''", r"\n\'"),
        (r"R'\N'", r"\N"),
        ("u'a'", "a"),
        ("'''a\n'b' ''c'''", "a\n'b' ''c"),
        ('"""a"""', "a"),
        ('"""\\""""', '"'),
        ("'a\\\nb'", "ab"),
        ("'a\\\r\nb'", "ab"),
        ('"a\\\r\nb"', "ab"),
        ("'# no comment'", "# no comment"),
        ("'a' r'\\b' '''c'''", "a\\bc"),
        ("('a'\n  'b')", "ab"),
    ],
)
def test_strings_have_their_value(text: str, value: str) -> None:
    assert expression(text) == at(String, value)


def spans(node: Any) -> list[str]:
    """The text of each node, parents first, in the order of its fields."""
    if isinstance(node, tuple):
        return [text for item in node for text in spans(item)]
    if not hasattr(node, "span"):
        return []
    below = [text for name, value in vars(node).items() if not name.endswith("span") for text in spans(value)]
    return [node.span.text, *below]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b  *  c", ["a + b  *  c", "a", "b  *  c", "b", "c"]),
        ("( a + b ) * c", ["( a + b ) * c", "( a + b )", "a", "b", "c"]),
        ("a[ b ] (c) .d", ["a[ b ] (c) .d", "a[ b ] (c)", "a[ b ]", "a", "b", "c"]),
        ("sum( a for b in c )", ["sum( a for b in c )", "sum", "a for b in c", "a", "for b in c", "b", "c"]),
        ("f(*a, k = 1)", ["f(*a, k = 1)", "f", "*a", "a", "k = 1", "1"]),
        ("a if b else c", ["a if b else c", "b", "a", "c"]),
        ("a < b < c", ["a < b < c", "a", "b", "c"]),
        ("(a, b)", ["(a, b)", "a", "b"]),
        ("a, b,", ["a, b,", "a", "b"]),
        ("- ~a", ["- ~a", "~a", "a"]),
        ("(\na\n)", ["(\na\n)"]),
        ("'a'  'b'", ["'a'  'b'"]),
    ],
)
def test_expressions_span_their_text(text: str, expected: list[str]) -> None:
    assert spans(expression(text)) == expected


def test_statements_span_their_text_and_blocks_their_header() -> None:
    text = """@mj.kernel(math="fast")
def f(
    x: f32[N] = 1,  # note
    *, y
) -> f32 :  # note
    a = x ; b = 1
    for i , j in \\
        x:
        c += 1
    while a: pass
    if a :
        return a
    elif b:  # note
        pass
    else: b()
"""
    function = parse_function(Source("test.mjk", text))
    assert function.span.text.startswith("def f(")
    assert function.span.text.endswith("-> f32 :")
    assert function.name_span.text == "f"
    assert [p.span.text for p in function.parameters] == ["x: f32[N] = 1", "y"]
    assert [p.name_span.text for p in function.parameters] == ["x", "y"]
    assert [d.span.text for d in function.decorators] == ['mj.kernel(math="fast")']
    first, second, loop, other, branch = function.body
    assert [s.span.text for s in (first, second)] == ["a = x", "b = 1"]
    assert loop.span.text == "for i , j in \\\n        x:"
    assert isinstance(loop, tree.For)
    assert loop.body[0].span.text == "c += 1"
    assert other.span.text == "while a:"
    assert isinstance(branch, tree.If)
    assert branch.span.text == "if a :"
    (inner,) = branch.orelse
    assert inner.span.text == "elif b:"


def test_lines_and_columns_are_those_of_the_users_file() -> None:
    source = Source("model.py", "@kernel\ndef f(x):\n    return x + größe\n", first_line=17, indent="    ")
    function = parse_function(source)
    (statement,) = function.body
    assert str(function.span) == "model.py:18:5"
    assert str(statement.span) == "model.py:19:9"
    assert isinstance(statement, tree.Return)
    assert isinstance(statement.value, Binary)
    assert str(statement.value.right.span) == "model.py:19:20"


@pytest.mark.parametrize(
    ("quoted", "plain"),
    [
        ('x: "f32[H // size, W]"', "x: f32[H // size, W]"),
        ("x: Out['f32[N]']", "x: Out[f32[N]]"),
        ('x: Out["f32[ceil_div(N, block)]"]', "x: Out[f32[ceil_div(N, block)]]"),
        ("x: (('f32'), 'i32')", "x: (f32, i32)"),
        ('x: "(f32[A], i32[A])"', "x: (f32[A], i32[A])"),
        ('x: """\n f32[  # note\n N]\n"""', "x: f32[N]"),
        ('x: const[int] = "a"', "x: const[int] = 'a'"),
    ],
)
def test_a_quoted_annotation_is_the_annotation(quoted: str, plain: str) -> None:
    ours = parse_function(Source("test.py", f"def f({quoted}): pass"))
    assert ours == parse_function(Source("test.py", f"def f({plain}): pass"))


def test_a_quoted_annotation_has_its_places_inside_the_quotes() -> None:
    text = "def f(x: 'f32[H // 2]') -> tuple['f32[A]', i32]: y: 'f16' = 1"
    function = parse_function(Source("test.py", text))
    annotation = function.parameters[0].annotation
    assert spans(annotation) == ["f32[H // 2]", "f32", "H // 2", "H", "2"]
    assert annotation is not None
    assert annotation.span.start == text.index("f32")
    assert spans(function.returns) == ["tuple['f32[A]', i32]", "tuple", "f32[A]", "f32", "A", "i32"]
    assert spans(function.body[0]) == ["y: 'f16' = 1", "y", "f16", "1"]


def test_only_the_first_string_is_the_docstring() -> None:
    function = parse_function(Source("test.py", "def f():\n 'a'\n 'b'\n return 'c'"))
    assert function.docstring == "a"
    assert function.body[0] == at(tree.ExprStmt, at(String, "b"))
    module = parse_module(Source("test.mjk", "# note\n\n'a' 'b'\nx = 1"))
    assert module.docstring == "ab"
    assert module.span.text == "# note\n\n'a' 'b'\nx = 1"
    assert parse_module(Source("test.mjk", "x = 'a'")).docstring is None


@pytest.mark.parametrize("module", ["metaljit", "metaljit.lang"])
def test_everything_may_be_imported_from_metaljit_only(module: str) -> None:
    (statement,) = parse_module(Source("test.mjk", f"from {module} import *")).body
    assert statement == at(tree.Import, module, None, (), 0)


def test_both_doors_give_the_same_function() -> None:
    text = "@kernel\ndef f(x: f32[N]) -> f32[N]:\n    return x\n"
    (function,) = parse_module(Source("test.mjk", text)).body
    assert function == parse_function(Source("test.py", text))


def test_names_that_look_alike_are_one_name() -> None:
    """Python compares names in NFKC, and so do we: the tree of a captured name must find it."""
    assert expression("ﬁne.ﬁne") == at(Attribute, at(Name, "fine"), "fine")


def test_threads_parse_at_the_same_time() -> None:
    texts = [f"def f{i}(x: 'f32[{i}]'):\n" + f" x = x + {i}\n" * 20 for i in range(8)]

    def parsed(text: str) -> tree.Function:
        return parse_function(Source(text[:6], text))

    alone = [parsed(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(parsed, texts * 4))
    assert together == alone * 4
    assert all(function.body[-1].span.source.name == function.span.source.name for function in together)
