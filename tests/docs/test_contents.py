"""What the pages say about the sources: tables, pictures, links, settings."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from documents import PAGES, ROOT

from metaljit.dtypes import DTYPES, promote
from metaljit.symbols import BORDER_MODES, BUILTINS
from metaljit.testing import TOLERANCES

DOCS = ROOT / "docs"
LANGUAGE = (DOCS / "language.md").read_text(encoding="utf-8")
# Names that stand for something else on the page, or that later versions bring.
UNTOLD = {"Out", "InOut", "dims", "dtypes", "kernel", "function", "print", "tuple", "uniform", "range"}


def test_the_promotion_table_is_the_compilers() -> None:
    rows = re.findall(r"^\| \*\*(\w+)\*\* \|(.*)\|$", LANGUAGE, re.M)
    assert [name for name, _ in rows] == list(DTYPES)
    for name, cells in rows:
        shown = [c.strip() for c in cells.split("|")]
        assert shown == [str(promote(DTYPES[name], other) or "--") for other in DTYPES.values()], name


def test_every_name_of_the_language_is_told() -> None:
    words = set(re.findall(r"\w+", LANGUAGE))
    missing = sorted(n for n in BUILTINS if n not in words | UNTOLD and not _later(n))
    assert not missing, f"docs/language.md does not say what these are: {', '.join(missing)}"


def _later(name: str) -> bool:
    return name.startswith(("simd_", "group_")) and name not in ("simd_index", "group_index", "group_size")


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_every_border_mode_is_told(mode: str) -> None:
    assert f'| `"{mode}"` |' in LANGUAGE


def test_the_tolerances_are_those_of_the_comparison() -> None:
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    told = {
        n: (float(r), float(a)) for n, r, a in re.findall(r"^\| `(\w+)` \| (\S+) \| (\S+) \|$", text, re.M)
    }
    kept = {d.name: TOLERANCES.get(d.numpy.name) for d in DTYPES.values()}
    assert told == {name: (t.relative, t.absolute) for name, t in kept.items() if t}


def test_every_setting_is_told() -> None:
    told = set(
        re.findall(r"^\| `(METALJIT_\w+)` \|", (DOCS / "devices.md").read_text(encoding="utf-8"), re.M)
    )
    sources = [p for f in ("metaljit", "grammar", "runtime", "stdlib_ops") for p in (ROOT / f).rglob("*.py")]
    read = {
        name
        for path in sources
        for name in re.findall(r'(?:get|setting)\(\s*"(METALJIT_\w+)"', path.read_text(encoding="utf-8"))
    }
    assert told == read


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _without_programs(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in _anchors(file), f"{page.name}: {target}"


def _without_programs(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def _anchors(page: Path) -> set[str]:
    """Headings as GitHub names them."""
    heads = re.findall(r"^#+ (.*)$", _without_programs(page), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in heads}


def test_the_picture_of_the_edges_is_what_the_script_draws() -> None:
    image = pytest.importorskip("PIL.Image")
    drawn = np.asarray(runpy.run_path(str(DOCS / "pictures.py"))["draw_edges"](), np.int16)
    kept = np.asarray(image.open(DOCS / "edges.png"), np.int16)
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).max() <= 1


def test_the_picture_of_the_borders_is_what_the_script_draws() -> None:
    image = pytest.importorskip("PIL.Image")
    script = runpy.run_path(str(DOCS / "pictures.py"))
    drawn = np.asarray(script["draw_borders"](), np.int16)
    kept = np.asarray(image.open(DOCS / "borders.png"), np.int16)
    assert drawn.shape == kept.shape
    # all but the labels, whose letters depend on Pillow
    for row in range(2):
        top = script["GAP"] + row * (drawn.shape[0] - script["GAP"]) // 2 + script["LABEL"]
        rows = slice(top, top + script["PATCH"] + 2 * script["ROOM"])
        assert np.abs(drawn[rows] - kept[rows]).max() <= 1


def test_the_pictures_of_graphs_are_what_the_script_draws() -> None:
    pytest.importorskip("PIL.Image")
    drawn = runpy.run_path(str(DOCS / "pictures.py"))["draw_graphs"]()
    assert drawn
    for name, text in drawn.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"python docs/pictures.py draws {name} anew"
        assert f"({name})" in (DOCS / "graphs.md").read_text(encoding="utf-8")


def test_the_pages_of_ops_are_what_the_docstrings_say() -> None:
    pages = runpy.run_path(str(DOCS / "reference.py"))["pages"]()
    kept = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "ops").glob("*.md")}
    assert kept == pages, "python docs/reference.py prints them anew"
