"""An explanation as a picture: kernels as boxes with what they compute, and the arrays that they read and write.

In: the facts. Out: SVG text, made of nothing but these: equal facts, equal bytes. Letters are of one width, so that the
boxes are as wide as what stands in them. On a light card, which is readable on a dark page as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, TypeAlias
from unicodedata import east_asian_width

from ..frozen import frozen
from .explain_text import amount, headline, saving, work
from .layers import Box, Key, Layout, Point, laid_out

if TYPE_CHECKING:
    from .explain import Array, Facts, Kernel, Operation

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
LETTER, LINE, SMALL = 7.3, 17.0, 6.7  # widths of a letter of 12 and of 11 units, and the height of a line
PAD, MARGIN, HEAD = 10.0, 20.0, 46.0
MOST_LETTERS = 58  # of a line
MOST_LINES = 26  # of a box; more are left out in the middle

INK, FAINT, CARD, EDGE = "#1f2328", "#656d76", "#ffffff", "#8c959f"
KERNEL, HEADER, BORDER = "#f6f8fa", "#ddf4ff", "#57a0dd"
ROLES = {"input": ("#dafbe1", "#4ac26b"), "passed": ("#fff8c5", "#d4a72c"), "result": ("#fbefff", "#a475f9")}


@frozen
class Text:
    """A line in a box: at the left, and at the right end; `title` is shown where the pointer rests."""

    left: str
    right: str = ""
    faint: bool = False
    title: str = ""

    @property
    def width(self) -> float:
        letter = SMALL if self.faint else LETTER
        return letter * cells(self.left) + (SMALL * (cells(self.right) + 2) if self.right else 0.0)


@frozen
class Part:
    """A box to be drawn: `head` lines stand on a ground of their own."""

    head: tuple[Text, ...]
    lines: tuple[Text, ...]
    fill: str
    stroke: str
    round: float

    @property
    def size(self) -> tuple[float, float]:
        lines = (*self.head, *self.lines)
        height = LINE * len(lines) + PAD + (PAD if self.head and self.lines else 0.0)
        return max(t.width for t in lines) + 2 * PAD, height


Bundle: TypeAlias = tuple["Array", ...]  # arrays that go the same way


def svg(facts: Facts) -> str:
    parts: dict[Key, Part] = {}
    edges: list[tuple[Key, Key]] = []
    for bundle in _bundles(facts):
        first = bundle[0]
        key: Key = first.name, first.role
        parts[key] = _arrays(bundle)
        if first.maker is not None:
            edges.append((first.maker, key))
        edges += [(key, reader) for reader in first.readers]
    for kernel in facts.kernels:
        parts[kernel.number] = _kernel(kernel)
    order = _ordered(parts, edges)
    layout = laid_out({key: parts[key].size for key in order}, edges)
    return _drawn(facts, parts, layout)


def _bundles(facts: Facts) -> list[Bundle]:
    ways: dict[tuple[object, ...], list[Array]] = {}
    for array in facts.arrays:
        ways.setdefault((array.role, array.maker, array.readers), []).append(array)
    return [tuple(arrays) for arrays in ways.values()]


def _ordered(nodes: Sequence[Key] | dict[Key, Part], edges: Sequence[tuple[Key, Key]]) -> list[Key]:
    """The nodes so that every edge goes forwards."""
    before: dict[Key, list[Key]] = {n: [] for n in nodes}
    for a, b in edges:
        before[b].append(a)
    done: dict[Key, None] = {}
    todo = list(reversed(list(nodes)))
    while todo:
        missing = [n for n in before[todo[-1]] if n not in done]
        if missing:
            todo += reversed(missing)
        else:
            done[todo.pop()] = None
    return list(done)


# ---- what stands in the boxes ----


def _arrays(bundle: Bundle) -> Part:
    role = bundle[0].role
    lines = [Text(f"{_cut(a.name)}  {a.type}", amount(a.nbytes, "B")) for a in bundle]
    whys = list(dict.fromkeys(a.brief for a in bundle if a.brief)) if role == "passed" else []
    reasons = [Text(line, faint=True) for why in whys[:2] for line in _wrapped(why)]
    return Part((), (*_fewer(lines), *reasons), *ROLES[role], 9.0)


def _kernel(kernel: Kernel) -> Part:
    head = (
        Text(f"kernel {kernel.number}", f"({kernel.domain})"),
        *((Text(_cut(f"in {kernel.region}"), faint=True),) if kernel.region else ()),
        Text(kernel.schedule, faint=True),
        Text(work(kernel), faint=True),
    )
    lines = _fewer([line for step in kernel.steps for line in _step(step)])
    return Part(head, tuple(lines), KERNEL, BORDER, 6.0)


def _step(step: Operation) -> list[Text]:
    reasons = "; ".join(_cut(f"{name}: {edge.why}", 200) for name, edge in step.edges)
    lines = [Text(_cut(f"{step.name} = {step.text}"), _cut(step.where, 24), title=reasons)]
    for name, edge in step.edges:
        places = edge.decision is not None and edge.decision.rule == "cheap" and edge.way == "here"
        if places and edge.decision is not None:
            lines.append(Text(f"   {name} at {edge.decision.brief}", faint=True))
        elif edge.way in ("row", "handed"):
            lines.append(Text(f"   {name} {edge.why.partition(',')[0]}", faint=True))
    return lines


def _fewer(lines: Sequence[Text]) -> list[Text]:
    if len(lines) <= MOST_LINES:
        return list(lines)
    half = MOST_LINES // 2
    return [*lines[:half], Text(f"… {len(lines) - 2 * half + 1} more", faint=True), *lines[-half + 1 :]]


def cells(text: str) -> int:
    """Letters, of which some are two wide."""
    return len(text) + sum(east_asian_width(c) in "WF" for c in text)


def _cut(text: str, most: int = MOST_LETTERS) -> str:
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= MOST_LETTERS:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else _cut(word)
    return lines


# ---- the drawing ----


def _drawn(facts: Facts, parts: dict[Key, Part], layout: Layout) -> str:
    title, note = _cut(headline(facts)), saving(facts)
    wanted = max(layout.width, LETTER * len(title) * 1.2, SMALL * len(note))
    width, height = wanted + 2 * MARGIN, layout.height + HEAD + 2 * MARGIN
    dx, dy = MARGIN + (wanted - layout.width) / 2, MARGIN + HEAD
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="{EDGE}"/></marker></defs>',
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" fill="{CARD}" '
        f'stroke="#d0d7de"/>',
        _text(MARGIN, MARGIN + 12, title, INK, size=14, bold=True),
        _text(MARGIN, MARGIN + 31, note, FAINT, size=11),
    ]
    lines += [_route([(x + dx, y + dy) for x, y in points]) for points in layout.routes.values()]
    for key, part in parts.items():
        lines += _box(part, layout.boxes[key], dx, dy)
    return "\n".join([*lines, "</svg>", ""])


def _box(part: Part, box: Box, dx: float, dy: float) -> list[str]:
    x, y = box.x + dx, box.y + dy
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" rx="{part.round:.0f}"'
    lines = [f'<rect {shape} height="{box.height:.1f}" fill="{part.fill}" stroke="{part.stroke}"/>']
    below = y + PAD / 2
    if part.head:
        height = LINE * len(part.head) + PAD
        lines.append(f'<rect {shape} height="{height:.1f}" fill="{HEADER}" stroke="{part.stroke}"/>')
    for number, line in enumerate((*part.head, *part.lines)):
        if part.head and number == len(part.head):
            below += PAD
        base = below + LINE - 5
        colour, size = (FAINT, 11) if line.faint else (INK, 12)
        bold = bool(part.head) and number == 0
        shown = _text(x + PAD, base, line.left, colour, size, bold)
        if line.right:
            shown += _text(x + box.width - PAD, base, line.right, FAINT, 11, end=True)
        if line.title:
            shown = f"<g><title>{escape(line.title)}</title>{shown}</g>"
        lines.append(shown)
        below += LINE
    return lines


def _text(
    x: float, y: float, text: str, colour: str, size: int, bold: bool = False, end: bool = False
) -> str:
    extra = (' font-weight="600"' if bold else "") + (' text-anchor="end"' if end else "")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}"{extra} xml:space="preserve">'
        f"{escape(text)}</text>"
    )


def _route(points: Sequence[Point]) -> str:
    """A smooth line from point to point, upright at each."""
    (x, y), *rest = points
    path = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        bend = (to_y - y) / 2
        if to_x == x:
            path += f" V{to_y:.1f}"
        else:
            path += f" C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return f'<path d="{path}" fill="none" stroke="{EDGE}" stroke-width="1.3" marker-end="url(#arrow)"/>'
