"""Programs that were once compiled wrongly, or refused without reason, as small as they could be made."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.runtime.emulator.functions import Library
from metaljit.runtime.emulator.process import Binding

BYTES = np.array([0, 1, 2, 200, 255], np.uint8)
TWO = "def two(n):\n    s = 0\n    for k in range(n):\n        s += 1\n    return 2\n"
CLAMP = "def clamp(x):\n    if x < 0:\n        return 0\n    elif x > 1:\n        return 1\n    return x\n"
FILL = "def fill(t):\n    t[0] = 5\n    return 1\n"
NARROWED = "x = 0\nfor k in range(3):\n    x = a[i]\nreturn x"
NESTED = "v = f32(0)\nfor p in (i, 2, 0):\n    for k in range(2):\n        v += p\n        if k == p:\n            break\nreturn v"
UNROLLED = (
    "s = 0.0\nfor axis in range(2):\n    s += (1, 2)[axis] * a[i] + a[put((i, 0), axis, 0)[0]]\nreturn s"
)
LIFE = "n = 0\nfor d in (-1, 0, 1):\n    n += a[i + d]\nreturn n"
ROWS = "s = 0.0\nfor k in range(2):\n    s += (a, b)[k][i]\nreturn s"

# A name keeps its own type within a turn, and takes the loop's where the turn ends: u8 doubles to 144 and 254 here.
OWN = "v = 0\nw = 0\nfor k in RANGE:\n    v = VALUE\n    REBOUND\n    w = i32(v + v)\nreturn w"
LEFT = "v = 0\nn = 0\nwhile n < 3:\n    n += 1\n    v = u8(i32(a[i]))\n    v = v\n    break\nreturn v + v"
GROWN = "v = 0\nfor k in RANGE:\n    v = a[i]\n    v += v\nreturn v + v"


def own(range_: str, value: str, rebound: str = "pass") -> str:
    return OWN.replace("RANGE", range_).replace("VALUE", value).replace("REBOUND", rebound)


WIDENED = "v = a[i]\nfor k in RANGE:\n    v = 1\n    if i < 2:\n        break\n    v = a[i]\nreturn 300 - v"
MET = "v = 0\nw = 0\nfor k in RANGE:\n    if i > 0:\n        v = a[i]\n    w = i32(v + v)\nreturn w"
EITHER = (
    "v = a[i]\nfor k in RANGE:\n    if i < 2:\n        v = k\n    else:\n        v = a[i]\nreturn 300 - v"
)

PROGRAMS: list[tuple[str, str, str, str, list[Any]]] = [
    ("paths meet in a turn", "i32", "", MET.replace("RANGE", "range(2)"), [0, 2, 4, 400, 510]),
    ("paths meet in an unrolled turn", "i32", "", MET.replace("RANGE", "(0, 1)"), [0, 2, 4, 400, 510]),
    ("a literal widens", "i32", "", WIDENED.replace("RANGE", "range(2)"), [299, 299, 298, 100, 45]),
    ("a literal widens, unrolled", "i32", "", WIDENED.replace("RANGE", "(0, 1)"), [299, 299, 298, 100, 45]),
    ("a literal widens in a branch", "i32", "", EITHER.replace("RANGE", "(0, 1)"), [299, 299, 298, 100, 45]),
    ("own type in a turn", "i32", "", own("range(3)", "a[i]"), [0, 2, 4, 144, 254]),
    ("own type in an unrolled turn", "i32", "", own("(0, 1, 2)", "a[i]"), [0, 2, 4, 144, 254]),
    ("own type of a constant", "i32", "", own("range(3)", "u8(200)", "v = v"), [144] * 5),
    ("own type of a constant, unrolled", "i32", "", own("(0, 1)", "u8(200)", "v = v"), [144] * 5),
    ("own type, rebound", "i32", "", own("range(3)", "u8(i32(a[i]))", "v = v"), [0, 2, 4, 144, 254]),
    ("own type until the loop is left", "i32", "", LEFT, [0, 2, 4, 400, 510]),
    ("own type until the turn ends", "i32", "", GROWN.replace("RANGE", "range(2)"), [0, 4, 8, 288, 508]),
    (
        "own type until an unrolled turn ends",
        "i32",
        "",
        GROWN.replace("RANGE", "(0, 1)"),
        [0, 4, 8, 288, 508],
    ),
    ("narrow value in a loop", "i32", "", NARROWED, [0, 1, 2, 200, 255]),
    ("ceil_div of unsigned", "u32", "", "return ceil_div(u32(a[i]), u32(2))", [0, 1, 1, 100, 128]),
    ("sum of a tuple", "u32", "", "return sum((a[i], a[i]))", [0, 2, 4, 400, 510]),
    ("sum of bools in a tuple", "i32", "", "return sum((a[i] > 1, a[i] > 100, a[i] > 1))", [0, 0, 2, 3, 3]),
    ("sum of lanes", "u32", "", "return sum(u8x2(a[i], 100))", [100, 101, 102, 300, 355]),
    ("prod of a tuple", "u32", "", "return prod((a[i], a[i]))", [0, 1, 4, 40000, 65025]),
    (
        "2 meets 2.0",
        "f32",
        "",
        "if a[i] > 1:\n    x = 2\nelse:\n    x = 2.0\nreturn a[i] * x",
        [0, 2, 4, 400, 510],
    ),
    ("2 or 2.0", "f32", "", "x = 2 if a[i] > 1 else 2.0\nreturn a[i] * x", [0, 2, 4, 400, 510]),
    ("literal of a function with a loop", "i32", TWO, "return a[i] * two(3)", [0, 2, 4, 144, 254]),
    (
        "order of an augmented element",
        "i32",
        FILL,
        "t = local_array(i32, 2)\nt[0] += fill(t)\nreturn t[0]",
        [1] * 5,
    ),
    ("minus of a minus", "i32", "", "return -(-i)", [0, 1, 2, 3, 4]),
    ("small sum in an unrolled loop", "i32", "", LIFE, [1, 3, 203, 457, 455]),
    ("table beyond i32", "u32", "", "return (0, 3988292384, 7)[i]", [0, 3988292384, 7, 0, 0]),
    ("loop in an unrolled loop", "f32", "", NESTED, [4, 6, 8, 10, 12]),
    ("mixed condition", "i32", "", "return 1 if i == 0 or (i > 1 and a[i]) else 0", [1, 0, 1, 1, 1]),
    ("mixed condition of bool()", "i32", "", "return bool(i > 1 and a[i])", [0, 0, 1, 1, 1]),
    ("mixed condition of where", "i32", "", "return where(i > 1 and a[i], 1, 2)", [2, 2, 1, 1, 1]),
    ("literal from an unrolled table", "f32", "", UNROLLED, [0, 4, 8, 800, 1020]),
    ("arrays of a tuple", "f32", "", ROWS, [1, 3, 5, 204, 260]),
    ("literals of several returns", "f32", CLAMP, "return clamp(a[i] / 2 - 0.25)", [0, 0.25, 0.75, 1, 1]),
]


def kernel(result: str, functions: str, body: str) -> mj.Kernel:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    head = f"@kernel\ndef k(a: u8[N], b: u8[N]) -> {result}[N]:\n    i = position()\n"
    return mj.kernel_from_text(f'N = dims("N")\n{functions}\n{head}{lines}')


@pytest.mark.parametrize(
    ("result", "functions", "body", "expected"),
    [pytest.param(*rest, id=name) for name, *rest in PROGRAMS],
)
def test_found(device: str, result: str, functions: str, body: str, expected: list[Any]) -> None:
    made = kernel(result, functions, body)
    second = np.arange(1, 6, dtype=np.uint8)
    for run in (made.interpret, made.on(device)):
        assert run(BYTES, second).tolist() == expected


def test_a_bool_and_a_number_have_no_join(device: str) -> None:
    made = kernel("f32", "", "if a[i] > 1:\n    x = 1\nelse:\n    x = True\nreturn a[i] * x")
    for run in (made.interpret, made.on(device)):
        with pytest.raises(mj.TypeFault) as e:
            run(BYTES, BYTES)
        assert e.value.slug == "type-join"


def test_argmin_of_a_tuple_is_refused_by_a_sentence(device: str) -> None:
    made = kernel("i32", "", "return argmin((a[i], 0.5))")
    for run in (made.interpret, made.on(device)):
        with pytest.raises(mj.TypeFault):
            run(BYTES, BYTES)


def test_a_grid_kernel_may_return_early(device: str) -> None:
    made = mj.kernel_from_text(
        'N = dims("N")\n@kernel(grid="ceil_div(N, 32)", threadgroup=32)\ndef k(x: u8[N], out: Out[u8[N]]):\n'
        "    i = global_index()\n    if i >= N:\n        return\n    out[i] = x[i] + 1\n"
    )
    for run in (made.interpret, made.on(device)):
        assert run(BYTES).tolist() == [1, 2, 3, 201, 0]


def test_decorators_of_others_are_not_read(device: str) -> None:
    registry: dict[str, Any] = {}

    def registered(name: Any) -> Callable[[mj.Kernel], mj.Kernel]:
        return lambda k: registry.setdefault(name(), k)

    @registered(lambda: "half")
    @mj.kernel
    def half(x: mj.f32[1]) -> mj.f32[1]:
        return x[0] / 2

    for run in (registry["half"].interpret, half.on(device)):
        assert run(np.ones(1, np.float32)) == 0.5


# ---- found by tests/fuzz ----


def test_minimum_and_maximum_of_nan_in_a_fast_kernel(device: str) -> None:
    made = mj.kernel_from_text(
        'N = dims("N")\n@kernel(math="fast")\ndef k(x: f32[N], y: f32[N]) -> (f32[N], f32[N], f32[N]):\n'
        "    i = position()\n    return minimum(x[i], y[i]), maximum(x[i], y[i]), clip(x[i], y[i], y[i])\n"
    )
    x, y = (np.array(v, np.float32) for v in ([np.nan, 1, 1], [2, np.nan, 2]))
    for run in (made.interpret, made.on(device)):
        for found in run(x, y):
            assert np.isnan(found).tolist() == [True, True, False]


def test_lgamma_of_negative_numbers_near_zero(device: str) -> None:
    made = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef k(x: f32[N]) -> f32[N]:\n    return lgamma(x[position()])\n'
    )
    x = np.array([-1e-45, -3e-45, -1e-42, -1e-38], np.float32)
    expected = -np.log(np.abs(x.astype(np.float64)))
    for run in (made.interpret, made.on(device)):
        np.testing.assert_allclose(run(x), expected, rtol=1e-6)


@pytest.mark.parametrize("count", ["y[i] | 32", "x[i]", "n"])
def test_a_foreign_shift_takes_its_count_modulo_the_width(count: str) -> None:
    library = Library(
        "#include <metal_stdlib>\nkernel void k(device const int* x [[buffer(0)]], device const int* y [[buffer(1)]],\n"
        "device int* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
        f"int n = 33; (void)n; out[2 * i] = x[i] << ({count}); out[2 * i + 1] = x[i] >> ({count}); }}\n"
    )
    x, y = np.array([-8193, 5, 63], np.int32), np.array([1, 2, 40], np.int32)
    counts = {"y[i] | 32": y | 32, "x[i]": x, "n": np.full(3, 33)}[count] & 31
    out = np.zeros(6, np.int32)
    buffers = {k: Binding(a.view(np.uint8), "x", k == 2) for k, a in enumerate((x, y, out))}
    library.function("k").run(buffers, groups=(1, 1, 1), threadgroup=(3, 1, 1))
    assert out.tolist() == np.stack([x << counts, x >> counts], 1).reshape(-1).tolist()


def test_gamma_where_it_is_denormal(device: str) -> None:
    made = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef k(x: f32[N]) -> f32[N]:\n    return gamma(x[position()])\n'
    )
    x = np.array([-36.869014739990234, -40.5, -41 - 2**-18, -41 + 2**-18, -43 + 2**-18], np.float32)
    expected = np.array([math.gamma(v) for v in x.tolist()])
    np.testing.assert_allclose(made.on(device)(x), expected, rtol=0, atol=2 * 2.0**-149)
