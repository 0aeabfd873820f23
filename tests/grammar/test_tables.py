"""mjk.lark is LALR(1) without conflicts, and the saved tables are its tables."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import lark
import pytest

from metaljit.grammar import tables
from metaljit.grammar.convert import Actions
from metaljit.grammar.parser import parse_quoted
from metaljit.grammar.tokens import Vocabulary


def shape(parser: lark.Lark) -> dict[str, Any]:
    """What a parser does, without the numbers of its states, which differ from build to build."""
    table = parser.parser.parser._parse_table
    numbers: dict[int, int] = {}
    found: list[tuple[object, ...]] = []
    left = [table.start_states[start] for start in tables.STARTS]
    for state in left:
        numbers.setdefault(state, len(numbers))
    while left:
        for word, (action, to) in sorted(table.states[left.pop(0)].items()):
            if isinstance(to, int):
                if to not in numbers:
                    numbers[to] = len(numbers)
                    left.append(to)
                found.append((word, numbers[to]))
            else:
                found.append(
                    (word, str(action), str(to), to.alias, to.options.expand1, to.options.empty_indices)
                )
    words = sorted((t.name, t.pattern.to_regexp(), t.priority) for t in parser.terminals)
    return {"states": found, "words": words}


@pytest.fixture(scope="module")
def built() -> lark.Lark:
    return tables.build(Actions(parse_quoted))


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    """Lark resolves a conflict of shift and reduce by itself, and says so only to its log."""
    with caplog.at_level(logging.DEBUG, logger="lark"):
        text = tables.GRAMMAR.read_text("utf-8")
        lark.Lark(text, parser="lalr", lexer="basic", start=tables.STARTS, debug=True)
        assert not [record for record in caplog.records if "onflict" in record.getMessage()]
        lark.Lark('start: "a" start start | "a"', parser="lalr", debug=True)
        assert [record for record in caplog.records if "onflict" in record.getMessage()]


def test_every_rule_has_an_action(built: lark.Lark) -> None:
    actions = Actions(parse_quoted)
    for rule in built.rules:
        name = rule.alias or rule.origin.name
        if not name.startswith("_") and not (rule.options.expand1 and len(rule.expansion) == 1):
            assert callable(getattr(actions, name)), name


def test_the_words_of_the_grammar_do_not_hide_each_other(built: lark.Lark) -> None:
    words = Vocabulary(built.terminals)
    for text, name in words.types.items():
        match = words.pattern.fullmatch(text)
        assert match, text
        assert match.lastgroup == ("NAME" if text.isidentifier() else "SIGNS"), name
    for text in ("<<=", "**=", "//=", "<=", "==", "!=", "<<", "//", "->", "...", ":=", "1.5e3", "r'a'"):
        match = words.pattern.match(text + " ")
        assert match
        assert match.end() == len(text)


def test_tables_that_were_saved_are_the_grammar(
    built: lark.Lark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "mjk.tables"
    tables.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["mjk.tables"]
    monkeypatch.setattr(tables, "TABLES", saved)
    monkeypatch.setattr(tables, "build", pytest.fail)
    assert shape(tables.load(Actions(parse_quoted))) == shape(built)


def test_the_tables_of_this_installation_are_those_of_its_grammar(
    built: lark.Lark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build of the package saves them; after a change of mjk.lark, install it again."""
    if not tables.TABLES.exists():
        pytest.skip("this installation was built without tables")
    assert tables.TABLES.read_bytes().startswith(tables._stamp()), (
        "mjk.lark has changed: install metaljit again"
    )
    monkeypatch.setattr(tables, "build", pytest.fail)
    assert shape(tables.load(Actions(parse_quoted))) == shape(built)


@pytest.mark.parametrize(
    "content", [None, b"", b"metaljit tables, lark 0.1, mjk.lark 00\n", b"\x80\x05K\x01."]
)
def test_tables_of_another_grammar_or_lark_are_passed_over(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "mjk.tables"
    if content is not None:
        saved.write_bytes(content)
    monkeypatch.setattr(tables, "TABLES", saved)
    monkeypatch.setattr(pickle, "loads", pytest.fail)
    parser = tables.load(Actions(parse_quoted))
    assert {rule.origin.name for rule in parser.rules} >= {"module", "definition", "clause"}


def test_the_build_of_the_package_needs_nothing_of_ours(tmp_path: Path) -> None:
    """setup.py runs the file by its path before anything is installed."""
    code = f"""
import pathlib, runpy, sys
before = set(sys.modules)
runpy.run_path({str(tables.__file__)!r})["save"](pathlib.Path({str(tmp_path / "new.tables")!r}))
assert not [name for name in sys.modules if name.startswith("metaljit")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "new.tables").stat().st_size > 10_000


def test_the_parser_is_made_at_the_first_parse_and_not_before() -> None:
    code = """
import sys
import metaljit.grammar.tree
assert "lark" not in sys.modules
from metaljit.grammar import parser
assert parser._parser.cache_info().currsize == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
