"""Text that is meant to break a parser: each gives a tree or one SyntaxFault, and never runs out of stack."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaljit.grammar import tree
from metaljit.grammar.check import MAX_DEPTH
from metaljit.grammar.parser import parse_function, parse_module
from metaljit.grammar.tokens import MAX_LENGTH, MAX_NESTING
from metaljit.source import Source, SyntaxFault


def slug(text: str) -> str:
    """The slug of the one error in a text, or nothing."""
    try:
        parse_module(Source("test.mjk", text))
        return ""
    except SyntaxFault as error:
        fault = error
    assert len(fault.diagnostics) == 1
    assert str(fault)
    return fault.slug


def nested_blocks(count: int) -> str:
    lines = [f"{' ' * (i + 1)}if x:\n" for i in range(count)]
    return "def f(x):\n" + "".join(lines) + " " * (count + 1) + "pass\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = " + "(" * 10_000, "nested-too-deep"),
        ("x = " + "(" * 10_000 + ")" * 10_000, "nested-too-deep"),
        ("x = a" + "[0" * 10_000, "nested-too-deep"),
        ("x = " + "{" * 10_000, "no-dict-or-set"),
        (nested_blocks(1_000), "nested-too-deep"),
        ("x = " + "+".join(["1"] * 4_000), "nested-too-deep"),
        ("x = " + "**".join(["1"] * 2_000), "nested-too-deep"),
        ("x = a" + ".b" * 4_000, "nested-too-deep"),
        ("x = a" + "()" * 4_000, "nested-too-deep"),
        ("x = a" + "[0]" * 4_000, "nested-too-deep"),
        ("x = " + "not " * 4_000 + "a", "nested-too-deep"),
        ("x = " + "- " * 4_000 + "a", "nested-too-deep"),
        ("x = " + "- " * 4_000, "unexpected-token"),
        ("x = " + "a if b else " * 2_000 + "c", "nested-too-deep"),
        ("def f(x):\n if x: pass\n" + " elif x: pass\n" * 3_000, "nested-too-deep"),
        ("x = " + "a < " * 4_000 + "b", ""),
        ("x = " + "a and " * 4_000 + "b", ""),
        ("x = " + "a, " * 4_000, ""),
        ("x = " * 4_000 + "1", ""),
        ("x = 'a'" + " 'b'" * 4_000, ""),
        ("x = f(" + "a, " * 4_000 + ")", ""),
        ("x = f(" + "a=1, " * 4_000 + ")", "repeated-keyword"),
        ("@a\n" * 2_000 + "def f(x): pass", ""),
        ("def f(x):\n" + " pass\n" * 2_000, ""),
        ("def f(x): " + "pass;" * 2_000, ""),
        ("def f(" + ", ".join(f"x{i}" for i in range(2_000)) + "): pass", ""),
        ("x = sum(a" + " for a in b" * 2_000 + ")", ""),
        ("x = sum(a for a in b" + " if c" * 2_000 + ")", ""),
        ("\n" * 900_000, ""),
        ("#" * 900_000, ""),
        (" " * 900_000, ""),
        (" " * 900_000 + "x = 1", "unexpected-indent"),
        ("\\\n" * 400_000, ""),
        ("x = " + "'" * 100_001, "unterminated-string"),
        ("x = '" + "\\'" * 400_000, "unterminated-string"),
        ("x = '''" + '"' * 900_000, "unterminated-string"),
        ("x = " + "1" * 900_000, "long-number"),
        ("x = " + "1_" * 100_000, "bad-number"),
        ("x = 1e" + "9" * 300, ""),
        ("x = (\n" + "a\n" * 100_000, "unclosed-bracket"),
        ("x = " + "\0" * 100, "bad-character"),
        ("x = 'a\0b'", "bad-character"),
        ("# \x1b[31m", "bad-character"),
        ("x = 'a\u202eb'", "bad-character"),
        ("x = '\ud800'", "bad-character"),
        ("x = 1\ry = 2", "bad-character"),
        ("x\u200b = 1", "bad-character"),
        ("x = 1\ufeff", "bad-character"),
        ("x" * (MAX_LENGTH + 1), "file-too-large"),
        ("x" * 10_000_000, "file-too-large"),
    ],
    ids=lambda value: value if len(value) < 30 else f"{value[:12]!r}… of {len(value)}",
)
def test_hostile_text_gives_a_tree_or_one_error(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_the_limits_are_where_they_are_said_to_be() -> None:
    assert slug("x = " + "(" * MAX_NESTING + "a" + ")" * MAX_NESTING) == ""
    assert slug("x = " + "(" * (MAX_NESTING + 1) + "a" + ")" * (MAX_NESTING + 1)) == "nested-too-deep"
    assert slug(nested_blocks(MAX_NESTING - 1)) == ""
    assert slug(nested_blocks(MAX_NESTING)) == "nested-too-deep"
    # The assignment is one node, n terms make a tree n deep.
    assert slug("x = " + "+".join(["1"] * (MAX_DEPTH - 1))) == ""
    assert slug("x = " + "+".join(["1"] * MAX_DEPTH)) == "nested-too-deep"
    # Blocks count as well: the function and two loops around it.
    loops = "def f(x):\n for i in x:\n  while i:\n   x = "
    assert slug(loops + "+".join(["1"] * (MAX_DEPTH - 4))) == ""
    assert slug(loops + "+".join(["1"] * (MAX_DEPTH - 3))) == "nested-too-deep"


def test_a_tree_may_be_walked_by_recursion() -> None:
    """What the parser lets through, Python's own recursion can compare and print."""
    text = nested_blocks(MAX_NESTING - 1).replace("pass", "y = " + "-~" * 49 + "x")
    function = parse_function(Source("test.mjk", text))
    assert function == parse_function(Source("test.mjk", text))
    assert isinstance(hash(function), int)


@pytest.mark.parametrize("text", ["👨\u200d👩\u200d👧", "می\u200cخواهم", "größe × 2 − 1", "\u200f"])
def test_strings_and_comments_hold_what_people_write(text: str) -> None:
    assert slug(f"# {text}\nx = '{text}'") == ""


@given(st.text(max_size=80))
def test_random_text_gives_a_tree_or_one_error(text: str) -> None:
    slug(text)


@given(st.binary(max_size=80))
def test_random_bytes_give_a_tree_or_one_error(data: bytes) -> None:
    slug(data.decode("latin-1"))
    slug(data.decode("utf-8", "surrogateescape"))


WORDS = [
    *"a b f32 1 2.5 'c' f'{x}' b'' 1j 007 1.0f _ match as None True ' \" \"\"\" ''' # \\ $".split(),
    *"( ) [ ] { } , : ; . ... = == := += -> @ * ** + - ~ / // % < > ! ? & && | ||".split(),
    *"def if elif else for in while return pass break continue and or not is assert import from".split(),
    *"lambda class with try async await yield".split(),
    *(" ", "\n", "\n\n", "\n ", "\n  ", "\n    ", "\n\t", "\r\n"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_words_in_any_order_give_a_tree_or_one_error(words: list[str]) -> None:
    slug(" ".join(words))
    slug("".join(words))


@given(st.lists(st.sampled_from(WORDS), max_size=10), st.sampled_from(["'", '"', "'''"]))
def test_words_in_a_quoted_annotation_give_a_tree_or_one_error(words: list[str], quote: str) -> None:
    slug(f"def f(x: {quote}{' '.join(words)}{quote}): pass")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_change_nothing(start: str, end: str) -> None:
    lines = [
        "# note",
        "def f(x):",
        '    """a',
        '    b"""',
        "    y = (x +",
        "       1)",
        "    z = \\",
        "  2",
        "    return y",
        "",
    ]
    plain = parse_module(Source("test.mjk", "\n".join(lines)))
    module = parse_module(Source("test.mjk", start + end.join(lines)))
    assert module == plain
    (function,) = module.body
    assert isinstance(function, tree.Function)
    assert function.docstring == "a\n    b"
    assert function.span.text == "def f(x):"
    assert [statement.span.line for statement in function.body] == [5, 7, 9]
    assert function.body[-1].span.text == "return y"


def test_the_parser_leaves_the_recursion_limit_alone() -> None:
    before = sys.getrecursionlimit()
    slug("x = " + "-~" * 500 + "a")
    assert sys.getrecursionlimit() == before
