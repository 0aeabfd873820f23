"""Random stencils: reads of two-dimensional arrays at index expressions of every kind, under borders, guards and tests.

In: Hypothesis's choices. Out: the text of a map kernel `random(u, v) -> f32[…]` of arrays of any element types. What is tried is the proof of bounds:
what it believes to be inside, what it guards, and where it splits the interior from the rim.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from metaljit.dtypes import DTYPES

MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")
RESULTS = ("H, W", "H, W", "H + 3, W", "H // 2, W", "W, H", "2 * H, W - 1", "H, 7", "5, W")


@dataclass
class Text:
    draw: st.DrawFn
    names: list[str] = field(default_factory=lambda: ["y", "x"])
    arrays: list[str] = field(default_factory=lambda: ["u", "v"])
    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def number(self, low: int = -3, high: int = 3) -> int:
        return self.draw(st.integers(low, high))

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def index(self, axis: int) -> str:
        """An expression that is often near the axis's own position."""
        own, extent = ("y", "x")[axis], ("H", "W")[axis]
        match self.number(0, 11):
            case 0:
                return self.pick(*self.names)
            case 1:
                return f"{extent} - 1 - {own}"
            case 2:
                return f"{own} * {self.number(-1, 3)} + {self.number()}"
            case 3:
                return f"{own} // {self.number(1, 3)} + {self.number()}"
            case 4:
                return f"({own} + {self.number()}) % {self.pick(extent, '3', '2')}"
            case 5:
                return f"min({own} + {self.number(0, 3)}, {extent} - 1)"
            case 6:
                return f"max({own} - {self.number(0, 3)}, 0)"
            case 7:
                return f"clip({own} + {self.number()}, 0, {extent} - 1)"
            case 8:
                return str(self.number(0, 4))
            case 9:
                return f"{self.pick(*self.names)} + {self.pick(*self.names)} - {self.number()}"
            case 10:
                return (
                    f"({own} ^ {self.number(0, 3)})"
                    if self.number(0, 1)
                    else f"({own} & {self.number(0, 3)})"
                )
            case _:
                return f"{own} + {self.number()}"

    def read(self) -> str:
        return f"f32({self.pick(*self.arrays)}[{self.index(0)}, {self.index(1)}])"

    def test(self) -> str:
        axis = self.number(0, 1)
        own, extent = ("y", "x")[axis], ("H", "W")[axis]
        return self.pick(
            f"0 < {own} < {extent} - 1", f"{own} >= {self.number(0, 3)}", f"{own} + {self.number(0, 3)} < {extent}",
            f"{own} != {self.number(0, 2)}", f"{self.pick(*self.names)} < {self.pick(*self.names)}", f"{extent} > 4",
        )  # fmt: skip

    def value(self) -> str:
        match self.number(0, 6):
            case 0:
                return f"({self.read()} if {self.test()} else {self.read()})"
            case 1:
                bound = self.pick("3", "H", "W", "y", "x + 1")
                self.names.append("k")
                body = self.read()
                self.names.remove("k")
                return f"sum({body} for k in range({bound}))"
            case 2:
                return f"f32(sum({self.pick(*self.arrays)}[y + a, x + b] for a in range(-1, 2) for b in range(-1, 2)))"
            case _:
                return self.read()

    def statement(self, nesting: int) -> None:
        match self.number(0, 5 if nesting else 2):
            case 3:
                self.line(f"if {self.test()}:")
                self.inner(nesting)
            case 4:
                k = f"k{len(self.lines)}"
                self.line(f"for {k} in range({self.pick('3', 'H', 'W', 'y')}):")
                self.names.append(k)
                self.inner(nesting)
                self.names.remove(k)
            case 5:
                self.line(f"if {self.test()} and {self.test()}:")
                self.inner(nesting)
                self.line("else:")
                self.inner(nesting)
            case _:
                self.line(f"s += {self.value()}")

    def inner(self, nesting: int) -> None:
        self.depth += 1
        for _ in range(self.number(1, 2)):
            self.statement(nesting - 1)
        self.depth -= 1


@st.composite
def stencils(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The text of a kernel of `u: T[H, W]` and `v: U[H, W + 2]`, and the names of T and U."""
    text = Text(draw)
    types = [text.pick(*DTYPES) for _ in range(2)]
    signed = [m for m in MODES if m != "antiperiodic" or "bool" not in types]
    for name in ("u", "v"):
        mode = text.pick("none", *signed)
        if mode != "none":
            text.line(f"b{name} = border({name}, {mode!r})")
            text.arrays.append(f"b{name}")
    if text.number(0, 3) == 0:
        text.line(f"m = border(u, ({text.pick(*signed)!r}, {text.pick(*signed)!r}))")
        text.arrays.append("m")
    text.line("s = 0.0")
    for _ in range(text.number(1, 4)):
        text.statement(2)
    text.line("return s")
    head = [
        'H, W = dims("H W")', "@kernel",
        f"def random(u: {types[0]}[H, W], v: {types[1]}[H, W + 2]) -> f32[{text.pick(*RESULTS)}]:", "    y, x = position()",
    ]  # fmt: skip
    return "\n".join([*head, *text.lines]), types
