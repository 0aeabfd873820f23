"""Random programs about the types of names that loops carry: narrow values, literals, tuples, branches, `break`.

`program` writes a kernel over four arrays of different types with the help of a `Random`. Most are valid; the others
are refused, which must happen everywhere.
"""

from __future__ import annotations

from random import Random

HEAD = """\
N = dims("N")
@kernel
def f(a: u8[N], b: i16[N], c: f16[N], d: u32[N]) -> tuple[f32[N], f32[N]]:
    i = position()
"""
ATOMS = ("a[i]", "b[i]", "c[i]", "d[i]", "0", "1", "2.0", "u8(200)", "i16(7)", "v", "w", "v", "w", "a[i]")
LOOPS = ("range(3)", "(0, 1, 2)", "range(a[i] % 3)", "(1, 2)")
CONDITIONS = ("a[i] > 100", "b[i] < 0", "i > 1", "v > w")
DEEPEST = 4


def program(random: Random) -> str:
    lines = [
        f"    v = {random.choice(('0', '0', 'a[i]', '0.0', 'c[i]', 'b[i]'))}",
        f"    w = {random.choice(('1', '0', 'd[i]', '0.0'))}",
        f"    p = ({random.choice(('0', 'a[i]'))}, {random.choice(('0', '1.0', 'b[i]'))})",
        *_block(random, 1, 0, random.randint(2, 4)),
        "    return f32(v), f32(w) + f32(p[0]) + f32(p[1])",
    ]
    return HEAD + "\n".join(lines) + "\n"


def _value(random: Random) -> str:
    first = random.choice(ATOMS)
    return first if random.random() < 0.6 else f"{first} {random.choice('+*-')} {random.choice(ATOMS)}"


def _block(random: Random, depth: int, loops: int, count: int) -> list[str]:
    lines: list[str] = []
    for _ in range(count):
        kind = random.choices(("assign", "augment", "tuple", "swap", "if", "for"), (45, 10, 7, 6, 12, 20))[0]
        if depth == DEEPEST and kind in ("if", "for"):
            kind = "assign"
        lines += _statement(random, kind, depth, loops)
    return lines


def _statement(random: Random, kind: str, depth: int, loops: int) -> list[str]:
    pad = "    " * depth
    name = random.choice("vw")
    match kind:
        case "assign":
            return [f"{pad}{name} = {_value(random)}"]
        case "augment":
            return [f"{pad}{name} {random.choice('+*')}= {random.choice(ATOMS)}"]
        case "tuple":
            return [f"{pad}p = (p[1], {_value(random)})"]
        case "swap":
            return [f"{pad}v, w = w, v"]
        case "if":
            lines = [f"{pad}if {random.choice(CONDITIONS)}:"]
            lines += _block(random, depth + 1, loops, random.randint(1, 2))
            if loops and random.random() < 0.4:
                lines.append(f"{pad}    {random.choice(('break', 'continue'))}")
            if random.random() < 0.4:
                lines += [f"{pad}else:", *_block(random, depth + 1, loops, 1)]
            return lines
    inner = _block(random, depth + 1, loops + 1, random.randint(1, 3))
    return [f"{pad}for k{loops} in {random.choice(LOOPS)}:", *inner]
