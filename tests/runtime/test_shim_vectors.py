"""The shim's vectors: layout, constructors, operators, component-wise functions, geometry; and as_type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from shim_calls import NUMPY, Array, build, call, evaluate, function, loop, same_bits

COMPONENTS = "xyzw"
QUICK = (
    "-O1",
)  # hundreds of loops: vectorising them all would take a minute, and is test_shim_loops.py's business
INTEGERS = [t for t in NUMPY if t not in ("bool", "half", "float")]
NUMBERS = [t for t in NUMPY if t != "bool"]

# Every type has vectors of three, which are the odd ones; some have all.
SHAPES = [(t, n) for t in NUMBERS for n in ((2, 3, 4) if t in ("float", "uchar", "long") else (3,))]

ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
BITWISE: dict[str, Callable[[Array, Array], Array]] = {
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "shr",
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
}  # fmt: skip

# Constructors: the arguments, each a scalar (one letter) or a vector of consecutive letters.
CONSTRUCTORS = ["a", "a b", "ab", "a b c", "ab c", "a bc", "abc", "a b c d", "ab cd", "ab c d", "a bc d", "a b cd",
                "abc d", "a bcd", "abcd"]  # fmt: skip

FLOAT1 = ["exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "sinpi", "cospi", "tanpi", "asin", "acos",
          "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "ceil", "floor", "rint", "round",
          "trunc", "fract", "fabs", "saturate", "sign"]  # fmt: skip
FLOAT2 = ["pow", "powr", "atan2", "fmod", "divide", "copysign", "fdim", "step", "fmax", "fmin", "nextafter"]
FLOAT3 = ["fma", "mix", "smoothstep", "fmax3", "fmin3", "fmedian3"]
ANY1, ANY2, ANY3 = ["abs"], ["max", "min"], ["clamp", "max3", "min3", "median3"]
INTEGER1 = ["clz", "ctz", "popcount", "reverse_bits"]
INTEGER2 = ["addsat", "subsat", "hadd", "rhadd", "mulhi", "rotate"]
INTEGER3 = ["madhi", "madsat"]
FAST = ["sin", "cos", "tan", "rsqrt", "exp", "log"]


def load(t: str, n: int, array: str) -> str:
    return f"{t}{n}({', '.join(f'{array}[{n} * i + {k}]' for k in range(n))})"


def vector_loop(name: str, result: str, t: str, n: int, count: int, expression: str) -> str:
    """Stores the components of `expression`, of vectors u, v, w of n consecutive elements of a, b, c."""
    letters = list(zip("uvw", "abc", strict=True))[:count]
    loads = " ".join(f"{t}{n} {u} = {load(t, n, a)};" for u, a in letters)
    stores = " ".join(f"o[{n} * i + {k}] = r.{COMPONENTS[k]};" for k in range(n))
    arrays = [f"const {t} *{a}" for _, a in letters]
    body = f"for (uint i = 0; i < n; i++) {{ {loads} {result}{n} r = {expression}; {stores} }}"
    return function(f"{name}_{t}{n}", [f"{result} *o", *arrays], body)


def run(lib: Any, name: str, result: str, t: str, n: int, *operands: Array) -> Array:
    operands = tuple(np.ascontiguousarray(a) for a in operands)
    out = np.empty(operands[0].size, NUMPY[result])
    call(lib, f"{name}_{t}{n}", out.size // n, out, *operands)
    return out


def operators() -> Iterator[str]:
    for t, n in SHAPES:
        for op in [*ARITHMETIC, "/", *([*BITWISE, "%", "<<", ">>"] if t in INTEGERS else [])]:
            yield vector_loop(NAMES[op], t, t, n, 2, f"u {op} v")
        for op in COMPARISONS:
            yield vector_loop(NAMES[op], "bool", t, n, 2, f"u {op} v")
        yield vector_loop("neg", t, t, n, 1, "-u")
        yield vector_loop("compound", t, t, n, 2, "u; r += v; r *= u; r -= v")
        yield vector_loop("splat", t, t, n, 1, f"{t}(2) * u + {t}(1)")
        if t in INTEGERS:
            yield vector_loop("inv", t, t, n, 1, "~u")
    for n in (2, 3, 4):
        yield vector_loop("logic", "bool", "bool", n, 3, "(u && v) || !w")
        yield vector_loop("any", "bool", "bool", n, 1, f"bool{n}(metal::any(u))")
        yield vector_loop("all", "bool", "bool", n, 1, f"bool{n}(metal::all(u))")
        yield vector_loop("not", "bool", "bool", n, 1, "metal::not(u)")
        yield vector_loop("to_int", "int", "float", n, 1, f"int{n}(u)")
        yield vector_loop("to_uchar", "uchar", "int", n, 1, f"uchar{n}(u)")
        yield vector_loop("to_half", "half", "float", n, 1, f"half{n}(u)")
        yield vector_loop("as_uint", "uint", "float", n, 1, f"as_type<uint{n}>(u)")
        indexed = ", ".join(f"u[uint(i + {k}) % {n}]" for k in range(n))
        yield vector_loop("index", "int", "int", n, 1, f"int{n}({indexed})")
        choose = f"metal::select(u, v, w < {load('float', n, 'a')})"
        yield vector_loop("select", "float", "float", n, 3, choose)
        yield vector_loop("select_one", "float", "float", n, 2, "metal::select(u, v, i % 2u == 0u)")


def sizes(name: str) -> tuple[int, ...]:
    """All share what makes vector forms, so three components do; one function of each count has all sizes."""
    return (
        (2, 3, 4) if name in ("exp", "pow", "fma", "max", "clamp", "popcount", "rotate", "madsat") else (3,)
    )


def functions() -> Iterator[str]:
    """Each library function, on scalars and on vectors."""
    tables = [("float", "precise::", FLOAT1, FLOAT2, FLOAT3), ("half", "precise::", FLOAT1, FLOAT2, FLOAT3)]
    tables += [(t, "", ANY1, ANY2, ANY3) for t in ("float", "half", "int", "uchar")]
    tables += [(t, "", INTEGER1, INTEGER2, INTEGER3) for t in ("char", "ushort", "int", "ulong")]
    tables += [("float", "fast::", FAST, ["pow"], [])]
    for t, namespace, *by_count in tables:
        for count, names in enumerate(by_count, 1):
            for name in names:
                entry = f"{namespace.removesuffix('::')}_{name}"
                scalars = ", ".join(f"{letter}[i]" for letter in "abc"[:count])
                yield loop(f"{entry}_{t}", t, [t] * count, f"o[i] = metal::{namespace}{name}({scalars})")
                vectors = ", ".join("uvw"[:count])
                for n in sizes(name):
                    yield vector_loop(entry, t, t, n, count, f"metal::{namespace}{name}({vectors})")


def constructor(t: str, pattern: str) -> str:
    n = len(pattern.replace(" ", ""))
    parts = [f"{t}{len(p)}({', '.join(p)})" if len(p) > 1 else p for p in pattern.split()]
    values = " ".join(f"{t} {c} = a[{k}];" for k, c in enumerate("abcd"))
    if pattern == "a":
        n = 4
    stores = " ".join(f"o[{k}] = r.{COMPONENTS[k]};" for k in range(n))
    values = values.replace("a[", "p[")
    name = f"make_{pattern.replace(' ', '_')}_{t}"
    return function(
        name, [f"{t} *o", f"const {t} *p"], f"{values} {t}{n} r = {t}{n}({', '.join(parts)}); {stores}"
    )


LAYOUT = "".join(
    f'static_assert(sizeof({t}{n}) == {size * (4 if n == 3 else n)} && alignof({t}{n}) == sizeof({t}{n}), "{t}{n}");\n'
    for t, size in ((t, np.dtype(d).itemsize) for t, d in NUMPY.items())
    for n in (2, 3, 4)
)


@pytest.fixture(scope="session")
def lib() -> Any:
    texts = [constructor(t, p) for t in NUMPY for p in CONSTRUCTORS]
    texts += [
        loop("float_bits", "uint", ["float"], "o[i] = as_type<uint>(a[i])"),
        loop("half_bits", "ushort", ["half"], "o[i] = as_type<ushort>(a[i])"),
        loop("bits_half", "half", ["ushort"], "o[i] = as_type<half>(a[i])"),
        loop("bytes", "uint", ["uint"], "o[i] = as_type<uint>(as_type<uchar4>(a[i]) + uchar4(1, 2, 3, 4))"),
        loop("wide", "ulong", ["ulong"], "o[i] = as_type<ulong>(as_type<uint2>(a[i]).y * uint2(1u, 0u))"),
        loop("half_chain", "half", ["half", "half"], "o[i] = a[i] * b[i] + b[i]"),
        loop("half_literal", "half", ["half"], "o[i] = a[i] + half(1.0f)"),
        loop("char_sign", "int", ["uchar"], "o[i] = char(a[i])"),
    ]
    return build([LAYOUT, *texts, *operators()], QUICK)


@pytest.fixture(scope="session")
def library_forms() -> Any:
    return build(list(functions()), QUICK)


@pytest.mark.parametrize("t", NUMPY)
@pytest.mark.parametrize("pattern", CONSTRUCTORS)
def test_constructors(lib: Any, t: str, pattern: str) -> None:
    values = np.array([1, 0, 3, 4], NUMPY[t])
    out = np.zeros(4, NUMPY[t])
    call(lib, f"make_{pattern.replace(' ', '_')}_{t}", 1, out, values)
    n = 4 if pattern == "a" else len(pattern.replace(" ", ""))
    want = values[[0] * 4] if pattern == "a" else values[:n]
    np.testing.assert_array_equal(out[:n], want)


def numbers(t: str, seed: int, size: int = 240) -> Array:
    rng = np.random.default_rng(seed)
    if t in ("float", "half"):
        mixed = np.where(rng.random(size) < 0.5, rng.normal(0.0, 3.0, size), rng.integers(-2, 3, size))
        values: Array = mixed.astype(NUMPY[t])
        values[:: size // 6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
        return values
    info = np.iinfo(NUMPY[t])
    values = rng.integers(info.min, info.max, size, dtype=NUMPY[t], endpoint=True)
    values[: size // 3] = rng.integers(0 if info.min == 0 else -3, 4, size // 3)
    values[:: size // 4] = [info.min, info.max, 0, 1]
    return values


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize(("t", "n"), SHAPES)
class TestOperators:
    """Component by component, in the vector's own type: no promotion."""

    def test_arithmetic(self, lib: Any, t: str, n: int) -> None:
        a, b = numbers(t, 1), numbers(t, 2)
        for op, meaning in ARITHMETIC.items():
            np.testing.assert_array_equal(run(lib, NAMES[op], t, t, n, a, b), meaning(a, b), op)
        np.testing.assert_array_equal(run(lib, "neg", t, t, n, a), -a)
        np.testing.assert_array_equal(run(lib, "compound", t, t, n, a, b), (a + b) * a - b)
        two, one = (np.array(v, NUMPY[t]) for v in (2, 1))
        np.testing.assert_array_equal(run(lib, "splat", t, t, n, a), two * a + one)

    def test_comparisons(self, lib: Any, t: str, n: int) -> None:
        a, b = numbers(t, 3), numbers(t, 4)
        for op, meaning in COMPARISONS.items():
            np.testing.assert_array_equal(run(lib, NAMES[op], "bool", t, n, a, b), meaning(a, b), op)

    def test_division(self, lib: Any, t: str, n: int) -> None:
        a, b = numbers(t, 7), numbers(t, 8)
        got = run(lib, "div", t, t, n, a, b)
        if t not in INTEGERS:
            assert same_bits(got, a / b).all()
            return
        pairs = list(zip(a.tolist(), b.tolist(), strict=True))
        wrap = np.iinfo(NUMPY[t])
        quotients = [0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
        want = [q if wrap.min <= q <= wrap.max else wrap.min for q in quotients]
        assert got.tolist() == want
        rest = [0 if y == 0 else x - y * q for (x, y), q in zip(pairs, quotients, strict=True)]
        assert run(lib, "rem", t, t, n, a, b).tolist() == rest


@pytest.mark.parametrize(("t", "n"), [shape for shape in SHAPES if shape[0] in INTEGERS])
def test_bits(lib: Any, t: str, n: int) -> None:
    a, b = numbers(t, 5), numbers(t, 6)
    for op, meaning in BITWISE.items():
        np.testing.assert_array_equal(run(lib, NAMES[op], t, t, n, a, b), meaning(a, b), op)
    np.testing.assert_array_equal(run(lib, "inv", t, t, n, a), ~a)
    count = b & NUMPY[t](a.itemsize * 8 - 1)  # only the low bits of a count count
    np.testing.assert_array_equal(run(lib, "shl", t, t, n, a, b), a << count)
    np.testing.assert_array_equal(run(lib, "shr", t, t, n, a, b), a >> count)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_vectors_of_bool(lib: Any, n: int) -> None:
    bits = np.array([[i >> k & 1 for k in range(3 * n)] for i in range(1 << (3 * n))], np.bool_)
    u, v, w = (bits[:, k * n : (k + 1) * n] for k in range(3))
    got = run(lib, "logic", "bool", "bool", n, u, v, w)
    np.testing.assert_array_equal(got, ((u & v) | ~w).ravel())
    np.testing.assert_array_equal(run(lib, "not", "bool", "bool", n, u), ~u.ravel())
    for name, meaning in (("any", u.any(axis=1)), ("all", u.all(axis=1))):
        np.testing.assert_array_equal(run(lib, name, "bool", "bool", n, u), np.repeat(meaning, n))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_conversions_and_access(lib: Any, n: int) -> None:
    x = np.array([2.9, -2.9, 0.5, 100.25, -7.0, 1e6] * n, np.float32)
    np.testing.assert_array_equal(run(lib, "to_int", "int", "float", n, x), x.astype(np.int32))
    np.testing.assert_array_equal(
        run(lib, "to_half", "half", "float", n, x / 32), (x / 32).astype(np.float16)
    )
    np.testing.assert_array_equal(run(lib, "as_uint", "uint", "float", n, x), x.view(np.uint32))
    k = np.arange(-3 * n, 300 * n, dtype=np.int32)
    np.testing.assert_array_equal(run(lib, "to_uchar", "uchar", "int", n, k), k.astype(np.uint8))
    want = [np.roll(row, -i) for i, row in enumerate(k.reshape(-1, n))]
    np.testing.assert_array_equal(run(lib, "index", "int", "int", n, k), np.concatenate(want))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_select(lib: Any, n: int) -> None:
    a, b, c = (numbers("float", seed) for seed in (9, 10, 11))
    np.testing.assert_array_equal(run(lib, "select", "float", "float", n, a, b, c), np.where(c < a, b, a))
    even = np.repeat(np.arange(a.size // n) % 2 == 0, n)
    np.testing.assert_array_equal(run(lib, "select_one", "float", "float", n, a, b), np.where(even, b, a))


def test_bit_casts(lib: Any) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(evaluate(lib, "bits_half", "half", halves).view(np.uint16), halves)
    np.testing.assert_array_equal(evaluate(lib, "half_bits", "ushort", halves.view(np.float16)), halves)
    words = np.array([0, 0x7F800001, 0xFFFFFFFF, 0x80000000, 0x01020304], np.uint32)
    np.testing.assert_array_equal(evaluate(lib, "float_bits", "uint", words.view(np.float32)), words)
    added = (words.view(np.uint8).reshape(-1, 4) + np.array([1, 2, 3, 4], np.uint8)).view(np.uint32).ravel()
    np.testing.assert_array_equal(evaluate(lib, "bytes", "uint", words), added)
    assert evaluate(lib, "wide", "ulong", np.array([0x1234567800000009], np.uint64))[0] == 0x12345678


def test_char_is_signed(lib: Any) -> None:
    assert evaluate(lib, "char_sign", "int", np.array([200], np.uint8))[0] == -56


@pytest.mark.filterwarnings("ignore:.*encountered in")
def test_each_operation_on_half_rounds(lib: Any) -> None:
    rng = np.random.default_rng(12)
    a, b = (rng.integers(0, 1 << 16, 1 << 16, dtype=np.uint16).view(np.float16) for _ in range(2))
    assert same_bits(evaluate(lib, "half_chain", "half", a, b), a * b + b).all()
    assert same_bits(evaluate(lib, "half_literal", "half", a), a + np.float16(1)).all()


CASES = [(t, "precise", f) for t in ("float", "half") for f in FLOAT1 + FLOAT2 + FLOAT3]
CASES += [(t, "", f) for t in ("float", "half", "int", "uchar") for f in ANY1 + ANY2 + ANY3]
CASES += [(t, "", f) for t in ("char", "ushort", "int", "ulong") for f in INTEGER1 + INTEGER2 + INTEGER3]
CASES += [("float", "fast", f) for f in [*FAST, "pow"]]


@pytest.mark.parametrize(("t", "namespace", "name"), CASES)
def test_vector_forms_do_what_the_scalar_forms_do(
    library_forms: Any, t: str, namespace: str, name: str
) -> None:
    one, two = FLOAT1 + ANY1 + INTEGER1 + FAST, [*FLOAT2, *ANY2, *INTEGER2, "pow"]
    operands = [numbers(t, seed) for seed in range(20, 21 if name in one else 22 if name in two else 23)]
    if name == "clamp":
        operands[1:] = np.fmin(*operands[1:]), np.fmax(*operands[1:])
    want = evaluate(library_forms, f"{namespace}_{name}_{t}", t, *operands)
    for n in sizes(name):
        got = run(library_forms, f"{namespace}_{name}", t, t, n, *operands)
        assert (same_bits(got, want) if t in ("float", "half") else got == want).all(), n


GEOMETRY = {
    "dot": "metal::dot(u, v)",
    "length": "metal::length(u)",
    "length_squared": "metal::length_squared(u)",
    "distance": "metal::distance(u, v)",
    "distance_squared": "metal::distance_squared(u, v)",
    "normalize": "metal::normalize(u)",
    "reflect": "metal::reflect(u, v)",
    "faceforward": "metal::faceforward(u, v, w)",
    "refract": "metal::refract(u, v, T(0.75f))",
    "fast_normalize": "metal::fast::normalize(u)",
}


@pytest.fixture(scope="session")
def geometry() -> Any:
    texts = [
        vector_loop(name, t, t, n, 3, f"{t}{n}({expression.replace('T(', t + '(')})")
        for t in ("float", "half")
        for n in (2, 3, 4)
        for name, expression in GEOMETRY.items()
    ]
    texts += [vector_loop("cross", t, t, 3, 3, "metal::cross(u, v)") for t in ("float", "half")]
    return build(texts, QUICK)


def geometric_meaning(name: str, u: Array, v: Array, w: Array) -> Array:
    dot = (u * v).sum(axis=1, keepdims=True)
    length = np.sqrt((u * u).sum(axis=1, keepdims=True))
    k = 1.0 - 0.75**2 * (1.0 - dot**2)
    bent = 0.75 * u - (0.75 * dot + np.sqrt(np.maximum(k, 0.0))) * v
    meanings = {
        "dot": dot,
        "length": length,
        "length_squared": length**2,
        "distance": np.sqrt(((u - v) ** 2).sum(axis=1, keepdims=True)),
        "distance_squared": ((u - v) ** 2).sum(axis=1, keepdims=True),
        "normalize": u / length,
        "fast_normalize": u / length,
        "reflect": u - 2.0 * dot * v,
        "faceforward": np.where((w * v).sum(axis=1, keepdims=True) < 0.0, u, -u),
        "refract": np.where(k < 0.0, 0.0, bent),
    }
    return np.broadcast_to(meanings[name], u.shape)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("t", ["float", "half"])
@pytest.mark.parametrize("name", GEOMETRY)
def test_geometry(geometry: Any, name: str, t: str, n: int) -> None:
    rng = np.random.default_rng(n)
    u, v, w = (rng.normal(0.0, 1.0, (200, n)).astype(NUMPY[t]) for _ in range(3))
    if name == "refract":
        v = (v / np.linalg.norm(v.astype(np.float64), axis=1, keepdims=True)).astype(NUMPY[t])
    got = run(geometry, name, t, t, n, u, v, w).reshape(-1, n)
    want = geometric_meaning(name, *(a.astype(np.float64) for a in (u, v, w)))
    tolerance = 2e-6 if t == "float" else 2e-3
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("t", ["float", "half"])
def test_cross(geometry: Any, t: str) -> None:
    rng = np.random.default_rng(30)
    u, v = (rng.integers(-9, 10, (50, 3)).astype(NUMPY[t]) for _ in range(2))
    got = run(geometry, "cross", t, t, 3, u, v, u).reshape(-1, 3)
    np.testing.assert_array_equal(got, np.cross(u.astype(np.float64), v.astype(np.float64)))
