"""Random programs: statements of every kind around random expressions, as text.

In: Hypothesis's choices. Out: the text of a kernel that reads arrays of several types and returns a number. Names are
rebound, joined, carried and declared at random: most programs check, the rest is refused, and both is fine as long as
everybody agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

TYPES = ("i32", "u8", "f32", "i64", "u32", "bool", "i16", "f16")
LITERALS = ("0", "1", "2", "3", "0.5", "2.0", "100", "7")
ARRAYS = {"a": "u8", "b": "f32", "c": "i32", "d": "i16"}
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@dataclass
class Text:
    """A program as it grows: its lines, and the names that have surely been given a value."""

    draw: st.DrawFn
    names: list[str]
    arrays: list[str] = field(default_factory=lambda: list(ARRAYS))
    types: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    fresh: int = 0
    functions: dict[str, int] = field(default_factory=dict)
    locals: list[str] = field(default_factory=list)
    result: str = "f32"

    def pick(self, choices: Sequence[str]) -> str:
        return self.draw(st.sampled_from(choices))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # ---- expressions ----

    def atom(self) -> str:
        match self.draw(st.integers(0, 7)):
            case 0:
                return self.pick(LITERALS)
            case 1 if "a" in self.arrays:
                return f"{self.pick(self.arrays)}[{self.index()}]"
            case 2 if "a" in self.arrays:
                return f"border({self.pick(self.arrays)}, {self.pick(MODES)!r})[{self.index()}]"
            case 3 if self.locals:
                return f"{self.pick(self.locals)}[{self.index()}]"
            case _:
                return self.pick(self.names)

    def index(self) -> str:
        if "i" not in self.names:
            return self.pick(["0", "1", "2"])
        return self.pick(
            [
                "i",
                "i + 1",
                "i - 1",
                "0",
                "N - 1 - i",
                "i * 2",
                "i // 2",
                *(n for n in self.names if n[0] == "k"),
            ]
        )

    def bound(self) -> str:
        return self.pick(["3", "2", "N", "i", "i + 1"] if "i" in self.names else ["3", "2"])

    def expr(self, depth: int = 2) -> str:
        if depth == 0 or self.chance(20):
            return self.atom()
        match self.draw(st.integers(0, 9)):
            case 0:
                return f"{self.pick(TYPES).replace('bool', 'bool_')}({self.expr(depth - 1)})"
            case 1:
                type = self.pick(TYPES).replace("bool", "bool_")
                other = (
                    self.pick(LITERALS)
                    if self.chance(30) and type != "bool_"
                    else f"{type}({self.expr(depth - 1)})"
                )
                sides = self.draw(st.permutations([f"{type}({self.expr(depth - 1)})", other]))
                return f"({sides[0]} if {self.condition()} else {sides[1]})"
            case 2:
                return f"{self.pick(['min', 'max', 'minimum', 'maximum'])}({self.expr(depth - 1)}, {self.expr(depth - 1)})"
            case 3:
                name = self.pick(["sum", "max", "min", "prod", "any", "all", "argmin", "argmax"])
                bound = self.bound()
                k = self.name("k")
                self.names.append(k)
                body = self.expr(depth - 1)
                test = f" if {self.condition()}" if self.chance(25) and not name.startswith("arg") else ""
                self.names.remove(k)
                return f"{name}({body} for {k} in range({bound}){test})"
            case 4:
                return f"(0 - {self.expr(depth - 1)})"
            case 5 if self.functions:
                name = self.pick(list(self.functions))
                return f"{name}({', '.join(self.expr(depth - 1) for _ in range(self.functions[name]))})"
            case 5:
                return f"abs({self.expr(depth - 1)})"
            case 6:
                v = f"f32x3({self.expr(depth - 1)}, {self.atom()}, {self.atom()})"
                w = self.pick([f"{v}.zyx", f"({v} * 2)", f"({v} - {self.atom()})", v])
                return self.pick(
                    [f"{w}.y", f"dot({w}, {v})", f"max({w})", f"{w}[{self.index()}]", f"sum({w})"]
                )
            case _:
                op = self.pick(["+", "-", "*", "+", "*", "//", "%", "/", "&", "|", "^", "<<", ">>"])
                a, b = self.expr(depth - 1), self.expr(depth - 1)
                if op in ("&", "|", "^", "<<", ">>"):
                    a, b = (f"{self.pick(['i32', 'u8', 'i64'])}({x})" for x in (a, b))
                return f"({a} {op} {b})"

    def condition(self, depth: int = 1) -> str:
        match self.draw(st.integers(0, 5)):
            case 0 if depth:
                return f"({self.condition(depth - 1)} {self.pick(['and', 'or'])} {self.condition(depth - 1)})"
            case 1:
                return f"not {self.atom()}"
            case 2:
                return f"{self.atom()} in (0, 2, 3)"
            case _:
                return f"{self.atom()} {self.pick(['<', '<=', '>', '==', '!='])} {self.atom()}"

    # ---- statements ----

    def name(self, letter: str) -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def assign(self) -> None:
        """A name mostly keeps the type that it began with; one that begins as a literal gets it later."""
        bound = [n for n in self.names if n in self.types]
        if bound and self.chance(65):
            name = self.pick(bound)
            type = self.types[name]
            if type in ("i32", "i64", "f32", "u32") and self.chance(40):
                self.line(f"{name} {self.pick(['+=', '*=', '-='])} {type}({self.expr()})")
            elif self.chance(10):
                self.line(f"{name} = {self.expr()}")
            else:
                self.line(f"{name} = {type}({self.expr() if self.chance(80) else self.pick(LITERALS)})")
            return
        type, name = self.pick(TYPES).replace("bool", "bool_"), self.name("v")
        if self.chance(15) and type != "bool_":
            self.line(f"{name}: {type} = {type}({self.expr()})")
        elif self.chance(40):
            self.line(f"{name} = {self.pick(LITERALS)}")
        else:
            self.line(f"{name} = {type}({self.expr()})")
        self.names.append(name)
        self.types[name] = type

    def several(self) -> None:
        """Names of equal types change places, or a local array gets an element."""
        if self.locals and self.chance(60):
            t = self.pick(self.locals)
            op = self.pick(["=", "=", "+="])
            self.line(f"{t}[{self.index()}] {op} {self.types[t]}({self.expr()})")
            return
        bound = [n for n in self.names if n in self.types]
        pairs = [(x, y) for x in bound for y in bound if x < y and self.types[x] == self.types[y]]
        if pairs:
            x, y = self.draw(st.sampled_from(pairs))
            self.line(f"{x}, {y} = {y}, {x}")
        else:
            t, type = self.name("t"), self.pick(["f32", "i32", "u8"])
            self.line(f"{t} = local_array({type}, 4)")
            self.locals.append(t)
            self.types[t] = type

    def block(self, size: int, nesting: int, loop: bool) -> None:
        """Statements one deeper; what they define is unknown afterwards."""
        names, inner = list(self.names), list(self.locals)
        self.depth += 1
        for _ in range(self.draw(st.integers(1, size))):
            self.statement(nesting - 1, loop)
        if loop and self.chance(15):
            self.line(self.pick(["break", "continue"]))
        if self.chance(6):
            self.line(f"return {self.result}({self.expr(1)})")
        self.depth -= 1
        self.names, self.locals = names, inner

    def statement(self, nesting: int, loop: bool) -> None:
        kind = self.draw(st.integers(0, 10)) if nesting > 0 else self.draw(st.integers(0, 1)) * 10
        if kind <= 4:
            self.assign()
        elif kind == 10:
            self.several()
        elif kind <= 6:
            self.line(f"if {self.condition()}:")
            self.block(3, nesting, loop)
            if self.chance(60):
                self.line("else:")
                self.block(3, nesting, loop)
        elif kind == 7:
            k = self.name("k")
            self.line(f"for {k} in range({self.bound()}):")
            self.names.append(k)
            self.block(3, nesting, True)
            self.names.remove(k)
        elif kind == 8:
            w = self.name("v")
            self.line(f"for {w} in ({', '.join(self.atom() for _ in range(3))}):")
            self.names.append(w)
            self.block(2, nesting, True)
            self.names.remove(w)
        else:
            n = self.name("n")
            self.line(f"{n} = 0")
            self.names.append(n)
            self.line(f"while {n} < {self.bound()} and {self.condition()}:")
            self.depth += 1
            self.line(f"{n} += 1")
            self.depth -= 1
            self.block(2, nesting, True)


def function(text: Text, name: str, count: int) -> list[str]:
    """A device function of `count` numbers, with early returns."""
    parameters = [f"x{k}" for k in range(count)]
    result = text.pick(["f32", "i32", "i64"])
    inner = Text(text.draw, list(parameters), arrays=[], functions=dict(text.functions), result=result)
    annotated = [p if inner.chance(50) else f"{p}: f32" for p in parameters]
    for _ in range(inner.draw(st.integers(1, 4))):
        inner.statement(2, False)
    inner.line(f"return {result}({inner.expr()})")
    return [f"def {name}({', '.join(annotated)}):", *inner.lines]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a kernel `random(a, b, c, d) -> T[N]`, with the functions that it calls."""
    result = draw(st.sampled_from(("f32", "i64", "f32", "i32")))
    text = Text(draw, ["i", "N"], result=result)
    head = ['N = dims("N")']
    for k in range(draw(st.integers(0, 2))):
        count = draw(st.integers(1, 2))
        head += function(text, f"f{k}", count)
        text.functions[f"f{k}"] = count
    parameters = ", ".join(f"{n}: {t}[N]" for n, t in ARRAYS.items())
    head += ["@kernel", f"def random({parameters}) -> {result}[N]:", "    i = position()"]
    for _ in range(draw(st.integers(2, 7))):
        text.statement(2, False)
    values = [n for n in text.names if n[0] == "v"] or ["i"]
    total = " + ".join(f"f32({v})" for v in values)
    text.line(f"return {result}({total})")
    return "\n".join([*head, *text.lines])
