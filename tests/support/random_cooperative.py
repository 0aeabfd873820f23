"""Random cooperative kernels, race-free and with every barrier in uniform flow, as texts.

In: a Hypothesis draw. Out: the text of a grid kernel over `x: i32[N]` that gives `out: i32[N, 5]`. All numbers are integers,
so that every way to run it gives the same bits. A thread writes to threadgroup arrays at its own place only, between two
barriers, and others read in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import strategies as st

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
HEAD = """\
N = dims("N")

def mixed(a, b):
    return a * 3 ^ b if a > b else b - a

@kernel(grid="ceil_div(N, {size})", threadgroup={size})
def f(x: i32[N], s: i32, out: Out[i32[N, 5]]):
    shared, other = threadgroup_array(i32, {size}), threadgroup_array(i32, {size})
    own = local_array(i32, 4)
    t, i, g = thread_index(), global_index(), group_index()
    v0, v1, v2 = x[i], t * 5 - 7, i ^ s
    u0, u1 = s, g + 2
"""
TAIL = """\
    for k, value in enumerate((v0, v1, v2, u0 + 31 * u1, own[0] ^ own[1] ^ own[2] ^ own[3])):
        out[i, k] = value
"""


class Writer:
    """The statements of one kernel. `left`: some threads may have returned, so that no barrier may follow."""

    def __init__(self, draw: Draw, size: int) -> None:
        self.draw, self.size = draw, size
        self.lines: list[str] = []
        self.left = False
        self.budget = 24

    def one(self, *choices: str) -> str:
        found: str = self.draw(st.sampled_from(choices))
        return found

    def uniform(self) -> str:
        a, b = self.one("u0", "u1", "s", "g"), self.one("u0", "u1", "3", "5", "N")
        return f"{a} {self.one('+', '-', '*', '^', '&')} {b}"

    def thread(self) -> str:
        a, b = (
            self.one("v0", "v1", "v2", "t", "lane()"),
            self.one("v0", "v1", "v2", "u0", "u1", "simd_index()", "7"),
        )
        if self.draw(st.integers(0, 5)) == 0:
            return f"mixed({a}, {b})"
        return f"{a} {self.one('+', '-', '*', '^', '|')} {b}"

    def test(self, *, uniform: bool) -> str:
        left = self.uniform() if uniform else self.thread()
        return f"({left}) % {self.one('2', '3', '4')} {self.one('==', '!=', '<')} {self.one('0', '1')}"

    def emit(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * depth + line for line in lines]

    def block(self, depth: int, *, uniform: bool, loop: str = "") -> None:
        """`loop` says what a `break` here leaves: "" none, "uniform" one that all threads run alike, else "thread"."""
        for _ in range(self.draw(st.integers(1, 4))):
            self.statement(depth, uniform=uniform, loop=loop)

    def statement(self, depth: int, *, uniform: bool, loop: str) -> None:
        self.budget -= 1
        nested = ("if", "for") if depth < 4 and self.budget > 0 else ()
        together = ("exchange", "simd", "group", "u") if uniform and not self.left else ()
        kind = self.one(
            "v", "v", "own", *nested, *nested, *together, *together, *(("leave",) if loop else ()), "return"
        )
        match kind:
            case "v":
                self.emit(depth, f"{self.one('v0', 'v1', 'v2')} = {self.thread()}")
            case "own":
                self.emit(
                    depth,
                    f"own[{self.one('0', '1', 't % 4', 'v0 & 3')}] {self.one('=', '+=')} {self.thread()}",
                )
            case "u":
                self.emit(depth, f"{self.one('u0', 'u1')} = {self.uniform()}")
            case "exchange":
                array, v = self.one("shared", "other"), self.one("v0", "v1", "v2")
                place = self.one(
                    f"{self.size} - 1 - t", f"(t + {self.one('1', '7', '33')}) % {self.size}", "0"
                )
                self.emit(depth, f"{array}[t] = {v}", "barrier()", f"{v} += {array}[{place}]")
                if self.draw(st.booleans()):
                    self.emit(depth, f"{self.one('u0', 'u1')} = {array}[{self.one('3', '17')}] % 1000")
                self.emit(depth, "barrier()")
            case "simd":
                self.simd(depth)
            case "group":
                name = self.one("group_sum", "group_min", "group_max", "group_prefix_sum")
                target = self.one("v0", "v2") if name == "group_prefix_sum" else self.one("u0", "u1", "v1")
                self.emit(depth, f"{target} = {name}({self.thread()})")
            case "if":
                self.branch(depth, uniform=uniform, loop=loop)
            case "for":
                self.loop(depth, uniform=uniform)
            case "leave":
                self.emit(depth, f"if {self.test(uniform=loop == 'uniform' and uniform)}:")
                self.emit(depth + 1, self.one("break", "continue"))
            case _ if self.draw(st.integers(0, 3)) == 0 and (depth == 1 or self.left):
                self.emit(
                    depth, f"if {self.thread()} == {self.one('3', '8')}:", "    out[i, 0] = 77", "    return"
                )
                self.left = True
            case _:
                self.emit(depth, f"v1 ^= {self.thread()}")

    def simd(self, depth: int) -> None:
        v, value = self.one("v0", "v1", "v2"), self.thread()
        call = self.one(
            f"simd_sum({value})",
            f"simd_max({value})",
            f"simd_prefix_sum({value}, exclusive=True)",
            f"simd_shuffle({value}, {self.one('v0', 't + 3', '9')})",
            f"simd_shuffle_up({value}, 3)",
            f"simd_broadcast({value}, 30)",
            f"i32(simd_ballot({self.test(uniform=False)}))",
        )
        if self.draw(st.booleans()):
            self.emit(depth, f"if simd_index() == {self.one('0', '1')}:", f"    {v} = {call}")
        else:
            self.emit(depth, f"{v} = {call}")

    def branch(self, depth: int, *, uniform: bool, loop: str) -> None:
        same = uniform and self.draw(st.booleans())
        inner = loop if same or loop != "uniform" else ""
        self.emit(depth, f"if {self.test(uniform=same)}:")
        self.block(depth + 1, uniform=same, loop=inner)
        if self.draw(st.booleans()):
            self.emit(depth, "else:")
            self.block(depth + 1, uniform=same, loop=inner)

    def loop(self, depth: int, *, uniform: bool) -> None:
        same = uniform and self.draw(st.booleans())
        variable = f"k{depth}"
        bound = self.one("3", "(u0 & 3)", "(s & 3)") if same else self.one("(v0 & 3)", "(t % 3)", "4")
        self.emit(depth, f"for {variable} in range({bound}):")
        self.emit(depth + 1, f"v2 += {variable}")
        self.block(depth + 1, uniform=same, loop="uniform" if same else "thread")


def text(draw: Draw) -> str:
    size = draw(st.sampled_from((32, 64, 96)))
    writer = Writer(draw, size)
    writer.block(1, uniform=True)
    writer.block(1, uniform=True)
    return HEAD.format(size=size) + "".join(f"{line}\n" for line in writer.lines) + TAIL
