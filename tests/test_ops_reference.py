"""Docstrings of ops as entries, pages and what `metaljit ops` prints; their examples run."""

from __future__ import annotations

import doctest

import pytest
from click.testing import CliRunner

from metaljit import cli, ops, ops_reference
from metaljit.ops_reference import LIBRARIES, Entry


@pytest.mark.parametrize("name", ops.names())
def test_every_example_prints_what_it_says(name: str) -> None:
    entry = ops_reference.entry(name)
    assert entry.example, f"ops.{name} has no example"
    test = doctest.DocTestParser().get_doctest(entry.example, {}, name, None, 0)
    found: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(
        test, out=found.append
    )
    assert not found, "".join(found)


@pytest.mark.parametrize("name", ops.names())
def test_every_docstring_has_its_parts(name: str) -> None:
    entry = ops_reference.entry(name)
    assert entry.summary
    assert all(library in LIBRARIES and names.startswith("`") for library, names in entry.compare), (
        entry.compare
    )


def test_a_docstring_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(x: object, *, times: object = 2) -> None:
        """`x` so many times. More is
        said here.

        x: an array
            of any shape.
        times: how often.

        Returns an array.
        Raises LaunchFault: often.

        Compare: NumPy `np.tile`; SciPy `a`, `b`.

        Example:
            >>> 1 + 1
            2
        """

    monkeypatch.setitem(ops.FAMILIES, "bits", ("twice",))
    monkeypatch.setattr(ops, "twice", twice, raising=False)
    assert ops_reference.entry("twice") == Entry(
        "twice",
        "bits",
        "ops.twice(x, *, times=2)",
        "`x` so many times. More is said here.",
        (("x", "an array of any shape."), ("times", "how often.")),
        ("Returns an array.", "Raises LaunchFault: often."),
        (("NumPy", "`np.tile`"), ("SciPy", "`a`, `b`")),
        ">>> 1 + 1\n2",
    )


def test_the_command_lists_and_describes() -> None:
    listed = CliRunner().invoke(cli.cli, ["ops"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in ops.names())
    one = CliRunner().invoke(cli.cli, ["ops", "max_pool"])
    assert "ops.max_pool(x, size, *, stride=None" in one.output
    unknown = CliRunner().invoke(cli.cli, ["ops", "pool"])
    assert unknown.exit_code == 2
    assert "max_pool" in unknown.output
