"""What `explain` says and draws: a reason for every edge, bytes that are right, pictures whose text stays in its boxes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.compiler.graph import Count, Fill, Number, operands
from metaljit.graph.explain import Explanation, explained
from metaljit.graph.explain_svg import LETTER, SMALL
from metaljit.graph.explain_text import amount
from metaljit.graph.layers import laid_out

SVG = "{http://www.w3.org/2000/svg}"


def a(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def fifty(x: Any, y: Any, w: Any) -> Any:
    h = x
    for k in range(6):
        h = np.tanh(h * w + y * (0.1 * k)) + ops.laplacian(h) * 0.1
        if k % 2:
            h = h - h.mean(axis=0)
    return h, h.sum(), np.exp(h)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "heat": (lambda u, alpha: np.clip(u + alpha * ops.laplacian(u), 0, 1), (a(64, 48), 0.1)),
    "stored": (lambda u: ops.laplacian(np.exp(np.sin(u))), (a(64, 48),)),
    "softmax": (softmax, (a(30, 1000),)),
    "results": (lambda x: tuple(x * (k + 1) for k in range(50)), (a(90),)),
    "a sum of 40": (lambda *xs: sum(xs[1:], xs[0]), tuple(a(90) for _ in range(40))),
    "fifty": (fifty, (a(64, 48), a(64, 48), a(48))),
    "handed on": (lambda x: (y := x * 2, y + 1, np.flip(y)), (a(9),)),
    "an argument": (lambda x: (x, x + 1), (a(9),)),
    "a loop of kernels": (
        lambda u: mj.for_loop(9, lambda i, u: u + np.float32(0.1) * ops.laplacian(u, mode="wrap"), u), (a(8, 9),)
    ),
    "views": (lambda x: x.T[1:, ::-1].reshape(-1) + 1, (a(5, 6),)),
    "<&\"'> \x01 長い名前": (lambda **x: x["<&\"'> \x01 長い名前"] + 1, ()),
}  # fmt: skip


def explanation(name: str, fuse: bool = True) -> Explanation:
    function, args = CASES[name]
    named = {} if args else {name: a(3)}
    return mj.jit(fuse=fuse)(function).explain(*args, **named)


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_every_edge_has_a_reason(name: str, fuse: bool) -> None:
    function, args = CASES[name]
    made = mj.jit(fuse=fuse)(function)
    found = made.explain(*args, **({} if args else {name: a(3)}))
    ((only,),) = made._made.values()
    graph = only.trace.graph
    needed = graph.needed([a.ref for a in found.facts.arrays if a.maker is not None])
    wanted = {(of, ref) for ref in needed for of in operands(graph.nodes[ref])}
    assert {(e.producer, e.consumer) for e in found.facts.edges} == wanted
    for edge in found.facts.edges:
        assert edge.why
        stored = {a.ref for a in found.facts.arrays}
        assert edge.fused or edge.producer in stored
        number = isinstance(graph.nodes[edge.producer], Count | Fill | Number)
        assert (edge.way == "number") == number
    shown = [e for k in found.facts.kernels for s in k.steps for _, e in s.edges]
    assert set(shown) == set(found.facts.edges)


def test_the_two_sides_of_the_rule_are_told() -> None:
    text = explanation("stored")
    assert "stores t0: 16 operations anew at 5 places cost more than to store it: 64 > 12" in text
    edge = next(e for e in text.facts.edges if e.decision is not None and e.decision.rule == "cost")
    assert edge.decision is not None
    assert (edge.decision.places, edge.decision.anew, edge.decision.kept) == (5, 64, 12)
    assert not edge.fused
    cheap = mj.jit(lambda u: ops.laplacian(2 * u)).explain(a(8, 8))
    assert "fused, 1 operation anew at 5 places cost no more than to store it: 4 ≤ 12" in cheap


def test_bytes_and_operations_are_those_of_the_call() -> None:
    f = mj.jit(lambda x, y: np.exp(x) + y)
    for n in (10, 4000):
        facts = f.explain(a(n), a(n)).facts
        assert (facts.nbytes, facts.alone, facts.alone_nbytes) == (12 * n, 2, 20 * n)
        assert facts.kernels[0].operations == 9 * n
        assert facts.kernels[0].intensity == pytest.approx(0.75)
    assert "120 B moved" in f.explain(a(10), a(10))
    rows = explanation("softmax").facts.kernels[0]
    assert rows.nbytes == 2 * 4 * 30 * 1000
    assert rows.operations > 2 * 9 * 30 * 1000  # exp is computed in two passes


def test_sizes_that_are_not_known_yet() -> None:
    made = mj.jit(lambda x: np.exp(x).sum(axis=0))
    made(a(3, 4))
    ((only,),) = made._made.values()
    found = explained(only.planned)
    assert "? B moved" in found
    assert "over (x.1)" in found
    ET.fromstring(found.svg())


def test_an_explanation_is_a_text_that_draws(tmp_path: Path) -> None:
    found = explanation("stored")
    assert isinstance(found, str)
    assert found.startswith("<lambda>: 2 kernels\n")
    found.save(tmp_path / "x.svg")
    found.save(str(tmp_path / "x.dot"))
    found.save(tmp_path / "x.txt")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == found.svg() == found._repr_svg_()
    assert (tmp_path / "x.dot").read_text(encoding="utf-8") == found.dot
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == f"{found}\n"
    with pytest.raises(ValueError, match=r"saved as \.svg, \.dot or \.txt, not as '\.png'"):
        found.save(tmp_path / "x.png")
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize("name", CASES)
def test_equal_graphs_are_drawn_equally(name: str) -> None:
    first, again = explanation(name), explanation(name)
    assert first == again
    assert first.svg() == again.svg()
    assert first.dot == again.dot


# ---- the picture ----


def rectangles(root: ET.Element) -> list[tuple[float, float, float, float]]:
    found = []
    for r in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(r.get(k, "")) for k in ("x", "y", "width", "height"))
        found.append((x, y, width, height))
    return found


@pytest.mark.parametrize("name", CASES)
def test_text_stays_in_its_box(name: str) -> None:
    root = ET.fromstring(explanation(name).svg())
    card, *boxes = rectangles(root)
    texts = list(root.iter(f"{SVG}text"))
    assert boxes
    for text in texts:
        cells = sum(2 if east_asian_width(c) == "W" else 1 for c in text.text or "")
        letters = cells * (LETTER if text.get("font-size") == "12" else SMALL)
        right = float(text.get("x", "")) + (0 if text.get("text-anchor") == "end" else letters)
        left, base = right - letters, float(text.get("y", ""))
        inside = [
            (x, y, w, h)
            for x, y, w, h in boxes
            if x <= left and right <= x + w and y + 10 <= base <= y + h - 3
        ]
        assert inside or text in texts[:2], text.text
        assert left >= card[0]
        assert right <= card[0] + card[2]
        assert base <= card[3]
    lines = [(float(t.get("x", "")), float(t.get("y", "")), t.get("text-anchor")) for t in texts]
    assert len(set(lines)) == len(lines)  # no two at one place


@pytest.mark.parametrize("name", CASES)
def test_boxes_keep_apart_and_lines_keep_out_of_them(name: str) -> None:
    root = ET.fromstring(explanation(name).svg())
    _, *boxes = rectangles(root)
    heads = {(x, y) for x, y, _, _ in boxes if sum((x, y) == (p, q) for p, q, _, _ in boxes) > 1}
    whole = {(x, y): (w, h) for x, y, w, h in boxes}
    for x, y, w, h in boxes:  # of a box and its head the larger
        if (x, y) in heads:
            whole[x, y] = max(whole[x, y], (w, h), key=lambda s: s[1])
    placed = [(x, y, w, h) for (x, y), (w, h) in whole.items()]
    for k, (x, y, w, h) in enumerate(placed):
        for p, q, v, g in placed[:k]:
            assert x + w <= p or p + v <= x or y + h <= q or q + g <= y
    for path in root.iter(f"{SVG}path"):
        if path.get("fill") != "none":
            continue
        for px, py in points(path.get("d", "")):
            assert not any(x + 1 < px < x + w - 1 and y + 1 < py < y + h - 1 for x, y, w, h in placed)


def points(path: str) -> list[tuple[float, float]]:
    """Points on a path of M, V and C."""
    found: list[tuple[float, float]] = []
    for letter, numbers in re.findall(r"([MVC])([^MVC]*)", path):
        n = [float(v) for v in numbers.split()]
        x, y = found[-1] if found else (0.0, 0.0)
        match letter:
            case "M":
                found.append((n[0], n[1]))
            case "V":
                found += [(x, y + (n[0] - y) * t / 20) for t in range(1, 21)]
            case _:
                for t in (k / 20 for k in range(1, 21)):
                    u = 1 - t
                    found.append(
                        tuple(  # type: ignore[arg-type]
                            u**3 * s + 3 * u * u * t * p + 3 * u * t * t * q + t**3 * e
                            for s, p, q, e in ((x, n[0], n[2], n[4]), (y, n[1], n[3], n[5]))
                        )
                    )
    return found


def test_a_layout_goes_down_and_keeps_its_order() -> None:
    nodes: dict[Any, tuple[float, float]] = {n: (40.0, 20.0) for n in "abcdef"}
    edges = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "e"), ("d", "e"), ("c", "f")]
    layout = laid_out(nodes, edges)
    for first, second in edges:
        assert layout.boxes[first].y + layout.boxes[first].height < layout.boxes[second].y
        route = layout.routes[first, second]
        assert [y for _, y in route] == sorted(y for _, y in route)
    assert laid_out(nodes, edges) == layout
    assert laid_out({}, []).width == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (12288, "12.3 kB"), (999_499, "999 kB"), (999_600, "1 MB"),
     (4.2e9, "4.2 GB"), (7e15, "7e+03 TB"), (float("nan"), "? B")],
)  # fmt: skip
def test_amounts(value: float, text: str) -> None:
    assert amount(value, "B") == text


# ---- Graphviz ----

QUOTED = r'"(?:[^"\\]|\\.)*"'
WORD = r"[A-Za-z_]\w*"
ATTRIBUTES = rf"\[{WORD}=(?:{QUOTED}|{WORD}|\d+)(?:, {WORD}=(?:{QUOTED}|{WORD}|\d+))*\]"
STATEMENT = re.compile(
    rf"(?:digraph {QUOTED} \{{|subgraph {WORD} \{{|\}}|{WORD}(?: -> {WORD})? {ATTRIBUTES};"
    rf"|{WORD}=(?:{QUOTED}|{WORD})(?:; {WORD}=(?:{QUOTED}|{WORD}))*;)"
)


@pytest.mark.parametrize("name", CASES)
def test_the_text_for_graphviz(name: str) -> None:
    found = explanation(name)
    lines = [line.strip() for line in found.dot.splitlines()]
    for line in lines:
        assert STATEMENT.fullmatch(line), line
    assert sum(line.count("{") for line in lines if line.endswith("{")) == sum(line == "}" for line in lines)
    declared = {line.split()[0] for line in lines if re.match(rf"{WORD} \[", line)}
    arrows = [line.split(" [")[0].split(" -> ") for line in lines if " -> " in line.split(" [")[0]]
    assert all(end in declared for arrow in arrows for end in arrow)
    results = [a for a in found.facts.arrays if a.maker is not None]
    made = {step.ref for k in found.facts.kernels for step in k.steps}
    assert len(arrows) == len(found.facts.edges) + sum(a.ref in made for a in results)
