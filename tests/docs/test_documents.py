"""The runner of documents fails where it should: a page that says something wrong is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from documents import Block, blocks, matches, run
from failing import check_marks, marks

HALVED = """
N = dims("N")

@kernel
def halved(x: f32[N]) -> f32[N]:
    return x[position()] / 2

# halved([2, 4]) → {}
"""


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a \nb", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\n", "a\nb\n", False),
        ("took 12 ms\n", "took … ms\n", True),
        ("took 12 s\n", "took … ms\n", False),
        ("a\n1\n2\nb\n", "a\n…\nb\n", True),
        ("a\nb\n", "a\n…\nb\n", True),
        ("a\n1\n2\n", "a\n…\nb\n", False),
        ("a.b", "a+b", False),
    ],
)
def test_output_is_compared(printed: str, wanted: str, same: bool) -> None:
    assert matches(printed, wanted) is same


def _mjk(text: str) -> Block:
    return Block(Path("page.md"), 1, ("python", "mjk"), text)


@pytest.mark.parametrize("result", ["[1, 2]", "[1.0, 2.0]"])
def test_a_right_call_passes(result: str, tmp_path: Path) -> None:
    run(_mjk(HALVED.format(result)), tmp_path)


@pytest.mark.parametrize("result", ["[1, 3]", "[1]", "[[1, 2]]", "[1, 2], [1, 2]", "error: wrong-rank"])
def test_a_wrong_call_fails(result: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ValueError, pytest.fail.Exception)):
        run(_mjk(HALVED.format(result)), tmp_path)


def test_a_kernel_that_is_not_called_is_compiled(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        run(_mjk(HALVED.replace("x[position()] / 2", "x[0, 0]").replace("# halved", "# other")), tmp_path)


def test_a_failing_command_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(Block(Path("page.md"), 1, ("bash",), "metaljit run no-such-file.mjk\n"), tmp_path)


def test_a_mark_on_the_wrong_line_fails(tmp_path: Path) -> None:
    text = 'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:  # error: negative-index\n    return x[-1]\n'
    assert marks(text) == [(3, "negative-index")]
    with pytest.raises(AssertionError):
        check_marks(text, tmp_path / "f.mjk", kernels=True)
    moved = text.replace("  # error: negative-index", "").replace("x[-1]", "x[-1]  # error: negative-index")
    check_marks(moved, tmp_path / "f.mjk", kernels=True)
    with pytest.raises(AssertionError):
        check_marks(moved.replace("error: negative", "error: wrong"), tmp_path / "f.mjk", kernels=True)


def test_output_belongs_to_the_block_above(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n```text\nfree\n```\n"
        "```python mjk file=a.mjk\nx = 1\n```\n",
        encoding="utf-8",
    )
    found = blocks(page)
    assert [(b.language, b.line, b.output, b.file) for b in found] == [
        ("python", 2, "1\n", None),
        ("text", 12, None, None),
        ("mjk", 15, None, "a.mjk"),
    ]
