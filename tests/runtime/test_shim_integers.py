"""The shim's integer functions against models on Python's integers: exhaustive where 8 bits make that cheap."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from shim_calls import NUMPY, build, evaluate, loop


@dataclass(frozen=True)
class Kind:
    """An integer type."""

    name: str
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return self.low + (1 << self.bits) - 1

    def wrap(self, value: int) -> int:
        return (value - self.low) % (1 << self.bits) + self.low

    def saturate(self, value: int) -> int:
        return min(max(value, self.low), self.high)

    def raw(self, value: int) -> int:
        """The bits as a number from 0."""
        return value % (1 << self.bits)

    @property
    def unsigned(self) -> str:
        return "u" + self.name.removeprefix("u")


KINDS = [
    Kind(prefix + name, bits, prefix == "")
    for name, bits in (("char", 8), ("short", 16), ("int", 32), ("long", 64))
    for prefix in ("", "u")
]
Model = Callable[..., int]


def digits(kind: Kind, a: int) -> str:
    return format(kind.raw(a), f"0{kind.bits}b")


def rotate(kind: Kind, a: int, count: int) -> int:
    text, left = digits(kind, a), count % kind.bits
    return kind.wrap(int(text[left:] + text[:left], 2))


UNARY: dict[str, Model] = {
    "abs": lambda k, a: k.wrap(abs(a)),
    "clz": lambda k, a: len(digits(k, a)) - len(digits(k, a).lstrip("0")),
    "ctz": lambda k, a: len(digits(k, a)) - len(digits(k, a).rstrip("0")),
    "popcount": lambda k, a: digits(k, a).count("1"),
    "reverse_bits": lambda k, a: k.wrap(int(digits(k, a)[::-1], 2)),
}
BINARY: dict[str, Model] = {
    "max": lambda k, a, b: max(a, b),
    "min": lambda k, a, b: min(a, b),
    "absdiff": lambda k, a, b: abs(a - b),
    "addsat": lambda k, a, b: k.saturate(a + b),
    "subsat": lambda k, a, b: k.saturate(a - b),
    "hadd": lambda k, a, b: (a + b) >> 1,
    "rhadd": lambda k, a, b: (a + b + 1) >> 1,
    "mulhi": lambda k, a, b: (a * b) >> k.bits,
    "rotate": rotate,
}
TERNARY: dict[str, Model] = {
    "madhi": lambda k, a, b, c: k.wrap(((a * b) >> k.bits) + c),
    "madsat": lambda k, a, b, c: k.saturate(a * b + c),
    "max3": lambda k, a, b, c: max(a, b, c),
    "min3": lambda k, a, b, c: min(a, b, c),
    "median3": lambda k, a, b, c: sorted((a, b, c))[1],
    "clamp": lambda k, a, b, c: min(max(a, min(b, c)), max(b, c)),
}


def expressions(name: str) -> str:
    if name == "clamp":
        return "metal::clamp(a[i], metal::min(b[i], c[i]), metal::max(b[i], c[i]))"
    letters = "abc"[: 1 if name in UNARY else 2 if name in BINARY else 3]
    return f"metal::{name}({', '.join(letter + '[i]' for letter in letters)})"


def loops() -> Iterator[str]:
    for kind in KINDS:
        t = kind.name
        for count, names in ((1, UNARY), (2, BINARY), (3, TERNARY)):
            for name in names:
                result = kind.unsigned if name == "absdiff" else t
                yield loop(f"{name}_{t}", result, [t] * count, f"o[i] = {expressions(name)}")
        yield loop(f"extract_{t}", t, [t, "uint", "uint"], "o[i] = metal::extract_bits(a[i], b[i], c[i])")
        yield loop(
            f"insert_{t}", t, [t, t, "uint", "uint"], "o[i] = metal::insert_bits(a[i], b[i], c[i], d[i])"
        )
        yield loop(f"select_{t}", t, [t, t, "bool"], "o[i] = metal::select(a[i], b[i], c[i])")
    for t in ("int", "uint"):
        yield loop(f"mul24_{t}", t, [t, t], "o[i] = metal::mul24(a[i], b[i])")
        yield loop(f"mad24_{t}", t, [t] * 3, "o[i] = metal::mad24(a[i], b[i], c[i])")


@pytest.fixture(scope="session")
def lib() -> Any:
    return build(list(loops()))


def samples(kind: Kind, count: int, seed: int) -> list[int]:
    """Both ends, around 0, single bits, and random values of every magnitude."""
    rng = random.Random(seed)
    values = [kind.low, kind.low + 1, kind.high, kind.high - 1, 0, 1, kind.wrap(-1), 2, 3]
    values += [kind.wrap(1 << i) for i in range(kind.bits)]
    values += [kind.wrap(rng.getrandbits(rng.randint(1, kind.bits))) for _ in range(count)]
    return values


def operands(kind: Kind, count: int) -> list[list[int]]:
    """Every pair for 8 bits; else samples in random combinations, all pairs of the first few among them."""
    rng = random.Random(kind.bits + count)
    if kind.bits == 8 and count <= 2:
        values = range(kind.low, kind.high + 1)
        return (
            [list(values)]
            if count == 1
            else [[a for a in values for _ in values], list(values) * len(values)]
        )
    few = samples(kind, 0, 1)[:9]
    many = [rng.choices(samples(kind, 500, seed), k=1500) for seed in range(count)]
    pairs = [[a for a in few for _ in few], few * len(few), [few[0], few[2], few[6]] * (len(few) ** 2 // 3)]
    return [many[i] + pairs[i] for i in range(count)]


def check(lib: Any, entry: str, result: str, kind: Kind, want: list[int], *columns: list[int]) -> None:
    got = evaluate(lib, entry, result, *(np.array(c, NUMPY[kind.name]) for c in columns)).tolist()
    for row in zip(got, want, *columns, strict=True):
        assert row[0] == row[1], f"{entry}{row[2:]} is {row[0]}, should be {row[1]}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
@pytest.mark.parametrize("name", [*UNARY, *BINARY, *TERNARY])
def test_integer_functions(lib: Any, kind: Kind, name: str) -> None:
    model = {**UNARY, **BINARY, **TERNARY}[name]
    columns = operands(kind, 1 if name in UNARY else 2 if name in BINARY else 3)
    want = [model(kind, *row) for row in zip(*columns, strict=True)]
    check(lib, f"{name}_{kind.name}", kind.unsigned if name == "absdiff" else kind.name, kind, want, *columns)


def fields(kind: Kind) -> tuple[list[int], list[int], list[int]]:
    """Values, and every field of the type, the empty ones included."""
    rows = [(o, b) for o in range(kind.bits + 1) for b in range(kind.bits + 1 - o)]
    rng = random.Random(kind.bits)
    return rng.choices(samples(kind, 50, 3), k=len(rows)), [o for o, _ in rows], [b for _, b in rows]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_bit_fields(lib: Any, kind: Kind) -> None:
    values, offsets, counts = fields(kind)
    field = Kind("", 0, kind.signed)
    places = [np.array(v, np.uint32) for v in (offsets, counts)]
    a = np.array(values, NUMPY[kind.name])
    want = []
    for value, o, b in zip(values, offsets, counts, strict=True):
        field = Kind("", b, kind.signed)
        want.append(field.wrap(kind.raw(value) >> o) if b else 0)
    assert evaluate(lib, f"extract_{kind.name}", kind.name, a, *places).tolist() == want
    inserted = values[::-1]
    want = []
    for base, new, o, b in zip(values, inserted, offsets, counts, strict=True):
        mask = ((1 << b) - 1) << o
        want.append(kind.wrap((kind.raw(base) & ~mask) | ((kind.raw(new) << o) & mask)))
    got = evaluate(lib, f"insert_{kind.name}", kind.name, a, np.array(inserted, NUMPY[kind.name]), *places)
    assert got.tolist() == want


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_select_takes_the_second_where_true(lib: Any, kind: Kind) -> None:
    a, b = (np.array([v, v], NUMPY[kind.name]) for v in (kind.low, kind.high))
    got = evaluate(lib, f"select_{kind.name}", kind.name, a, b, np.array([False, True]))
    assert got.tolist() == [kind.low, kind.high]


@pytest.mark.parametrize("name", ["int", "uint"])
def test_products_of_24_bits(lib: Any, name: str) -> None:
    kind = Kind(name, 32, name == "int")
    factor = Kind("", 24, kind.signed)
    a, b = (random.Random(seed).choices(samples(factor, 200, seed), k=500) for seed in (1, 2))
    c = samples(kind, 600, 3)[:500]
    check(lib, f"mul24_{name}", name, kind, [kind.wrap(x * y) for x, y in zip(a, b, strict=True)], a, b)
    want = [kind.wrap(x * y + z) for x, y, z in zip(a, b, c, strict=True)]
    check(lib, f"mad24_{name}", name, kind, want, a, b, c)


def test_examples_of_the_specification(lib: Any) -> None:
    """Values worked out by hand, as a check of the models."""
    by_hand = [
        ("mulhi", "uint", (0xFFFFFFFF, 0xFFFFFFFE), 0xFFFFFFFD),
        ("mulhi", "int", (-2, 3), -1),
        ("mulhi", "uchar", (200, 200), 156),
        ("absdiff", "int", (-(2**31), 2**31 - 1), 4294967295),
        ("hadd", "int", (-3, -4), -4),
        ("rhadd", "int", (-3, -4), -3),
        ("rotate", "uint", (0x80000001, 4), 0x18),
        ("rotate", "uchar", (0x81, 1), 0x03),
        ("clz", "char", (0,), 8),
        ("ctz", "ulong", (0,), 64),
        ("reverse_bits", "uint", (1,), 0x80000000),
    ]
    for name, t, arguments, want in by_hand:
        result = "uint" if name == "absdiff" else t
        got = evaluate(lib, f"{name}_{t}", result, *(np.array([v], NUMPY[t]) for v in arguments))
        assert got.tolist() == [want], (name, t, arguments)
    field = [np.array([v], np.uint32) for v in (8, 8)]
    assert evaluate(lib, "extract_uint", "uint", np.array([0xABCD1234], np.uint32), *field).tolist() == [0x12]
    place = [np.array([v], np.uint32) for v in (4, 4)]
    assert evaluate(lib, "extract_int", "int", np.array([0xF0], np.int32), *place).tolist() == [-1]
