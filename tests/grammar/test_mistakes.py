"""Every row of the table of mistakes: each sample gives its row's error, and underlines what it marks."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from metaljit.grammar.mistakes import LONGEST_SHOWN, MISTAKES, Mistake, fault
from metaljit.grammar.parser import parse_function, parse_module, parse_quoted
from metaljit.grammar.tree import Call, String
from metaljit.source import Diagnostic, Source, SyntaxFault

SAMPLES = [(row, sample) for row in MISTAKES.values() for sample in row.samples]


def unmarked(sample: str) -> tuple[str, dict[str, int]]:
    """The text of a sample, and where its marks stand in it."""
    text, places = "", {}
    for character in sample:
        if character in "«»‹›":
            places[character] = len(text)
        else:
            text += character
    return text, places


def diagnosed(text: str) -> Diagnostic:
    with pytest.raises(SyntaxFault) as caught:
        parse_module(Source("test.mjk", text))
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(("row", "sample"), SAMPLES, ids=[f"{row.slug}: {sample}" for row, sample in SAMPLES])
def test_a_sample_gives_the_error_of_its_row(row: Mistake, sample: str) -> None:
    text, places = unmarked(sample)
    found = diagnosed(text)
    assert found.slug == row.slug
    assert found.span is not None
    assert (found.span.start, found.span.end) == (places["«"], places["»"])
    if "‹" in places:
        assert found.second is not None
        span, label = found.second
        assert (span.start, span.end) == (places["‹"], places["›"])
        assert label == row.second != ""
    else:
        assert found.second is None


@pytest.mark.parametrize(("row", "sample"), SAMPLES, ids=[f"{row.slug}: {sample}" for row, sample in SAMPLES])
def test_line_and_column_count_from_the_users_file(row: Mistake, sample: str) -> None:
    text, places = unmarked(sample)
    fragment = Source("model.py", text, first_line=18, indent="    ")
    with pytest.raises(SyntaxFault) as caught:
        parse_module(fragment)
    before = text[: places["«"]]
    line, column = 18 + before.count("\n"), 5 + len(before) - (before.rfind("\n") + 1)
    assert str(caught.value).startswith(f"model.py:{line}:{column}: error: ")
    assert f"[{row.slug}]" in str(caught.value).split("\n")[0]


def test_every_row_has_samples_but_those_that_need_another_door() -> None:
    assert {row.slug for row in MISTAKES.values() if not row.samples} == {"file-too-large", "not-a-function"}


def test_every_fault_has_a_row_and_every_row_a_fault() -> None:
    """Slugs are looked up when an error is raised: none may be misspelt, none left over."""
    used = set()
    for path in files("metaljit.grammar").iterdir():
        assert isinstance(path, Path)
        if path.suffix == ".py" and path.name != "mistakes.py":
            used |= set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', path.read_text("utf-8"))) & set(MISTAKES)
            for slug in re.findall(r'\bfault\(\s*"([^"]*)"', path.read_text("utf-8")):
                assert slug in MISTAKES
        if path.suffix == ".lark":
            rules = re.findall(r"\bno_[a-z_]+", path.read_text("utf-8"))
            used |= {rule.replace("_", "-") for rule in rules}
    assert used == set(MISTAKES)


def test_messages_are_sentences_about_the_language() -> None:
    for row in MISTAKES.values():
        assert not re.search(r"\b(invalid|illegal|token|syntax|node|parser)\b", row.message), row.slug
        assert not row.message.endswith("."), row.slug
        assert row.help or row.slug == "unexpected-token", row.slug


@pytest.mark.parametrize(
    ("text", "message", "help_"),
    [
        (
            "def f(x):\n    if x < n\n        pass",
            "expected `:` to open the body of `if`",
            "write `if x < n:`",
        ),
        ("def f(\n  x\n)\n  pass", "expected `:` to open the body of `def`", "write `def …:`"),
        ("x = {1, 2}", "a set is not in the language", "use a tuple, which may be indexed"),
        ("x = {1: 2}", "a dict is not in the language", "use a tuple, which may be indexed"),
        ("x = {a for a in b}", "a set comprehension is not in the language", None),
        ("x = {a: b for a in b}", "a dict comprehension is not in the language", None),
        ("x = {**a}", "a dict is not in the language", None),
        ("x = {(a for a in b): 1, f(c): 2}", "a dict is not in the language", None),
        ("x = {f(a for a in b), c}", "a set is not in the language", None),
        ("x = “1”", "`“` means nothing in a kernel", 'write `"`'),
        ("x = 1 + \\ \n 2", "`\\` means nothing in a kernel", "end the line with it, to go on in the next"),
        ("x\u200b = 1", "the character U+200B means nothing in a kernel", "remove it"),
        ("x = 1\N{NO-BREAK SPACE}+ 2", "the character U+00A0 means nothing in a kernel", "write ` `"),
        ("x = count++", "`++` is C's, not Python's", "write `count += 1`"),
        ("x = a ? b : c", "`?` is C's, not Python's", "write `a if condition else b`"),
        ("half y = 1", "`half` begins a declaration in another language", "write `y: f16 = …`, or `y = …`"),
        ("let a = 1", None, "write `a = …`"),
        ("const float y = 1", None, "write `x = …`"),
        ("kernel void f(x)", None, "write `@kernel`, and `def f(…):` on the next line"),
        ("fn f(x) {", None, "write `def f(…):`"),
        ("def f(uint n): pass", None, "write `n: u32`"),
        ("def f(a, constant float *b): pass", None, "write `x: f32[N]`"),
        ("for (i = 0; i < n; i++) {", "`for` counts over a range", "write `for i in range(n):`"),
        ("for (a b) in c: f(); g()", None, "write `,` between them"),
        ("x: f32 = 1", None, "write it without its type"),
        ("x += 1", None, "move it into a function, or remove it"),
        ("x = 1.0f", None, "write `1.0`, or name the type, such as `f16(1.0)`"),
        ("for x :", "found `:` where `,` or `in` was expected", ""),
        ("x = f(a, *)", "found `)` where an expression was expected", ""),
        ("def f(x: f32, 3): pass", "found `3` where a name or `)` was expected", ""),
        ("import 3", "found `3` where a name was expected", ""),
        ("x = a.", "found the end of the line where a name was expected", ""),
        ("x = 1;;", "found `;` where a statement was expected", ""),
        (
            "x = (1, 2",
            "`(` is never closed: the end of the text cannot stand inside it",
            "write the missing `)`",
        ),
        ("f() g()", "found `g` right after `)`: an operator is missing", "write the operator between them"),
        ("def f(a b): pass", "found `b` right after `a`: a comma or an operator is missing", None),
    ],
)
def test_messages_hold_what_was_found(text: str, message: str | None, help_: str | None) -> None:
    found = diagnosed(text)
    assert message is None or found.message == message
    assert help_ is None or found.help == help_


def test_only_the_first_fault_is_reported() -> None:
    assert diagnosed("x = $\ny = {}\nz = (").slug == "bad-character"
    assert diagnosed("x = 1 2\ny = $").slug == "missing-operator"


def test_what_is_repeated_of_the_users_text_is_short() -> None:
    found = diagnosed("x = a " + "b" * 10_000)
    assert "`" + "b" * (LONGEST_SHOWN - 1) + "…` right after `a`" in found.message
    assert len(found.message) < 3 * LONGEST_SHOWN
    assert "{" not in str(fault("bad-number", None, found="{0}")).replace("`{0}`", "")


@pytest.mark.parametrize(
    ("text", "slug", "start"),
    [
        ("x = 1", "not-a-function", 0),
        ("", "not-a-function", 0),
        ("# nothing", "not-a-function", 9),
        ("class A: pass", "no-class", 0),
        ("async def f(): pass", "no-async", 0),
        ("    def f(): pass", "unexpected-indent", 0),
        ("def f(): pass\ndef g(): pass", "not-a-function", 14),
        ("def f(): pass\nx = 1", "not-a-function", 14),
        ("f = kernel(lambda x: x)", "not-a-function", 0),
        ("@kernel\nclass A: pass", "no-class", 8),
        ("def f(): break", "outside-loop", 9),
        ('def f(x: "f32[N"): pass', "unclosed-bracket", 15),
        ('def f(x: "f32 N"): pass', "missing-operator", 14),
        ('def f(x: ""): pass', "unexpected-token", 10),
        ('def f(x: "f32[\'N"): pass', "unterminated-string", 14),
        ('def f() -> "f32[lambda]": pass', "no-lambda", 16),
        ('def f(): x: "f32[1:2]" = 1', "no-slice", 17),
        ("def f(x: '''f32[\n  N M\n]'''): pass", "missing-comma", 21),
    ],
)
def test_the_door_for_functions_and_quoted_annotations(text: str, slug: str, start: int) -> None:
    with pytest.raises(SyntaxFault) as caught:
        parse_function(Source("test.py", text))
    (found,) = caught.value.diagnostics
    assert found.slug == slug
    assert found.span is not None
    assert found.span.start == start


def test_the_text_of_a_grid_is_parsed_when_it_is_asked_for() -> None:
    function = parse_function(
        Source("test.py", '@kernel(grid="ceil_div(N, 2)", threadgroup="a b")\ndef f(): pass')
    )
    (decorator,) = function.decorators
    assert isinstance(decorator, Call)
    grid, threadgroup = (keyword.value for keyword in decorator.keywords)
    assert isinstance(grid, String)
    assert isinstance(threadgroup, String)
    parsed = parse_quoted(grid)
    assert parsed.span.text == "ceil_div(N, 2)"
    assert parsed.span.start == 14
    with pytest.raises(SyntaxFault) as caught:
        parse_quoted(threadgroup)
    assert caught.value.slug == "missing-operator"
    assert "test.py:1:47: error" in str(caught.value)
