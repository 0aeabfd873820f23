"""The operation table: typing, printed forms, and meanings against NumPy's own functions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaljit.dtypes import BF16, BOOL, DTYPES, F16, F32, I8, I16, I32, I64, U8, U16, U32, U64, DType, promote
from metaljit.operation_rules import ADD, CONDITION, MULTIPLY, UNARY, form
from metaljit.operations import (
    OPERATIONS,
    PRIMARY,
    ROWS,
    RULES,
    SYMBOLS,
    Operation,
    Refusal,
    Typing,
    check,
    reference,
    spell,
)

ROOT = Path(__file__).parent.parent
ALL = tuple(DTYPES.values())
INTEGERS = tuple(d for d in ALL if d.is_integer)
FLOATS = (F16, BF16, F32)


def typed(name: str, *types: DType) -> Typing:
    return check(OPERATIONS[name], types)


def result(name: str, *types: DType) -> DType:
    return typed(name, *types).result


def apply(name: str, *values: Any) -> Any:
    """The meaning on NumPy values that have the typed operands' dtypes already."""
    return OPERATIONS[name].meaning(*values)


# ---- typing ----


@pytest.mark.parametrize(
    ("name", "types", "operands", "answer"),
    [
        ("add", (U8, U8), (U8, U8), U8),
        ("add", (I32, U32), (I64, I64), I64),
        ("add", (U8, I8), (I16, I16), I16),
        ("add", (BOOL, BOOL), (BOOL, BOOL), BOOL),
        ("add", (BOOL, I8), (I8, I8), I8),
        ("multiply", (F16, I32), (F32, F32), F32),
        ("multiply", (F16, BF16), (F32, F32), F32),
        ("subtract", (BOOL, U8), (U8, U8), U8),
        ("divide", (I32, I32), (F32, F32), F32),
        ("divide", (U8, F16), (F16, F16), F16),
        ("divide", (BOOL, BOOL), (F32, F32), F32),
        ("divide", (U64, I8), (F32, F32), F32),
        ("floor_divide", (BOOL, BOOL), (I8, I8), I8),
        ("power", (I32, U8), (I32, I32), I32),
        ("left_shift", (U8, I32), (U8, I32), U8),
        ("right_shift", (BOOL, BOOL), (I32, I32), I32),
        ("rotate", (U64, I64), (U64, I64), U64),
        ("bitwise_xor", (BOOL, BOOL), (BOOL, BOOL), BOOL),
        ("bitwise_and", (BOOL, U16), (U16, U16), U16),
        ("equal", (I32, F16), (F32, F32), BOOL),
        ("less", (U32, I32), (I64, I64), BOOL),
        ("less", (U64, U8), (U64, U64), BOOL),
        ("logical_and", (F32, I8), (BOOL, BOOL), BOOL),
        ("isnan", (I32,), (I32,), BOOL),
        ("where", (I32, U8, I8), (BOOL, I16, I16), I16),
        ("where", (BOOL, U64, F32), (BOOL, F32, F32), F32),
        ("clip", (U64, I32, F32), (F32, F32, F32), F32),
        ("sqrt", (U8,), (F32,), F32),
        ("sqrt", (BF16,), (BF16,), BF16),
        ("arctan2", (BF16, U8), (BF16, BF16), BF16),
        ("floor", (U8,), (U8,), U8),
        ("popcount", (I8,), (I8,), I8),
        ("ldexp", (F16, U16), (F16, I32), F16),
        ("ldexp", (I64, BOOL), (F32, I32), F32),
    ],
)  # fmt: skip
def test_typing(name: str, types: tuple[DType, ...], operands: tuple[DType, ...], answer: DType) -> None:
    typing = typed(name, *types)
    assert (typing.operands, typing.result) == (operands, answer)


@pytest.mark.parametrize(
    ("name", "types", "slug", "words"),
    [
        ("bitwise_xor", (F32, I8), "operand-type", "'^' needs integers or bools, found f32 and i8"),
        ("left_shift", (F16, I32), "operand-type", "'<<' needs integers, found f16 and i32"),
        ("popcount", (F32,), "operand-type", "popcount needs integers, found f32"),
        ("popcount", (BOOL,), "operand-type", "popcount needs integers, found bool"),
        ("gcd", (BOOL, BOOL), "operand-type", "gcd needs integers, found bool and bool"),
        ("add", (U64, I32), "mixed-signs", "'+' has u64 and i32, and no integer type holds both i32 and u64"),
        ("where", (BOOL, U64, I8), "mixed-signs", "where has u64 and i8"),
        ("equal", (I64, U64), "mixed-signs", "'==' has i64 and u64"),
        ("subtract", (BOOL, BOOL), "bool-arithmetic", "'-' needs numbers, found two bools"),
        ("negative", (BOOL,), "bool-arithmetic", "'-' needs numbers, found bool"),
        ("sign", (BOOL,), "bool-arithmetic", "sign needs numbers, found bool"),
        ("ldexp", (F32, U32), "operand-type", "ldexp needs an exponent that fits i32, found u32"),
        ("ldexp", (F32, F32), "operand-type", "ldexp needs an exponent that fits i32, found f32"),
    ],
)
def test_refusals(name: str, types: tuple[DType, ...], slug: str, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        check(OPERATIONS[name], types)
    assert caught.value.slug == slug
    assert str(caught.value).startswith(words)
    assert caught.value.help


def accepted(op: Operation) -> Iterator[Typing]:
    for types in itertools.product(ALL, repeat=op.arity):
        try:
            yield check(op, types)
        except Refusal:
            continue


NUMPY = {"pow": np.power, "rint": np.rint, "mod": np.remainder}
# Rows where the language departs from NumPy's result type, and how.
FLOATING = {op.name for op in ROWS if op.rule == "floating"}
KEPT = {"rint", "bitwise_count", "left_shift", "right_shift", "rotate", "popcount", "clz", "ctz"}


@pytest.mark.parametrize(
    "op", [op for op in ROWS if op.arity < 3 and hasattr(np, op.name)], ids=lambda op: op.name
)
def test_result_types_are_numpys(op: Operation) -> None:
    """NumPy's type for each pair of types, float64 read as f32; bf16 has its own table in `promote`."""
    function = getattr(np, op.name)
    for types in itertools.product([t for t in ALL if t != BF16], repeat=op.arity):
        try:
            found: DType | None = check(op, types).result
        except Refusal:
            found = None
        try:
            with np.errstate(all="ignore"):
                wanted = function(*(np.ones(1, t.numpy) for t in types)).dtype
        except TypeError:
            wanted = None
        if wanted is not None and wanted.kind == "f" and wanted.itemsize > 4:
            wanted = np.dtype(np.float32)
        if op.name in FLOATING and not any(t.is_float for t in types):
            assert found == F32  # NumPy gives f16 for 8 bits and f32 for 16
        elif op.name in KEPT or op.rule in ("shift", "scale"):
            assert (
                found is None or found == types[0] or (types[0], found) == (BOOL, I32) or op.rule == "scale"
            )
        elif found is None:
            # bool and float operands that NumPy takes too, and u64 beside a signed type (NumPy: float64).
            assert wanted is None or U64 in types or op.rule == "integer"
        else:
            assert wanted is not None, (op.name, types)
            assert found.numpy == wanted, (op.name, types)


# ---- printed forms ----


def templates(op: Operation) -> list[str]:
    texts = []
    for source in (op.msl, op.fast):
        texts += [source] if isinstance(source, str) else list(source.values())
    return [t for t in texts if t]


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_every_typing_has_a_spelling(op: Operation) -> None:
    for typing, mode in itertools.product(set(accepted(op)), ("precise", "fast")):
        spelling = spell(op, typing, mode)  # type: ignore[arg-type]
        assert len(spelling.levels) == op.arity
        assert spelling.text.format(*("abc"[: op.arity])) != ""
        assert spelling.rounds == (typing.result == BF16 and not op.exact)
        assert spelling.via_float <= (typing.dtype == F16)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_templates_are_metal(op: Operation) -> None:
    for text in templates(op):
        assert not re.search(r"//|\*\*|\band\b|\bor\b|\bnot\b|__|\bdouble\b", text)
        assert not re.search(
            r"(?<![\w:])(?:isnan|isinf|isfinite|signbit|round|pow)\(", text.replace("mj_", "mj:")
        )
        assert not re.search(r"\b\d+\.\d*(?:e-?\d+)?(?![\de]*[-\d]*f)", text), (
            "a float literal needs its suffix"
        )
        for name in re.findall(r"([\w:]+)\(", text):
            assert name.startswith(("metal::", "mj_")), name
        assert sorted({int(n) for n in re.findall(r"\{(\d)\}", text)}) in (list(range(op.arity)), [])


def test_floats_have_a_precise_namespace() -> None:
    """Metal's own functions of float are called in the namespace that does not depend on a compiler option."""
    exact = {"fabs", "floor", "ceil", "trunc", "rint", "copysign", "fma"}
    for op in ROWS:
        if op.rule not in ("bitwise", "integer", "shift"):
            assert set(re.findall(r"metal::(\w+)\(", op.template(F32))) <= exact, op.name


@pytest.mark.parametrize(
    ("template", "arity", "precedence", "levels"),
    [
        ("{0} + {1}", 2, ADD, (ADD, ADD + 1)),
        ("{0} * 57.0f", 1, MULTIPLY, (MULTIPLY,)),
        ("-{0}", 1, UNARY, (PRIMARY,)),
        ("f({0}, {1})", 2, PRIMARY, (1, 1)),
        ("{0}", 1, PRIMARY, (PRIMARY,)),
        ("{0} ? {1} : {2}", 3, CONDITION, (CONDITION + 1, CONDITION, CONDITION)),
    ],
)
def test_form(template: str, arity: int, precedence: int, levels: tuple[int, ...]) -> None:
    assert form(template, arity) == (precedence, levels)


def test_comparisons_do_not_chain_and_minus_does_not_decrement() -> None:
    less = spell(OPERATIONS["less"], typed("less", I32, I32))
    assert min(less.levels) > less.precedence
    minus = spell(OPERATIONS["negative"], typed("negative", F32))
    assert minus.levels[0] > minus.precedence


@pytest.mark.parametrize(
    ("name", "dtype", "text", "narrows"),
    [
        ("add", U8, "{0} + {1}", True),
        ("add", U32, "{0} + {1}", False),
        ("add", I32, "mj_add({0}, {1})", False),
        ("multiply", U16, "mj_mul({0}, {1})", False),
        ("multiply", I16, "{0} * {1}", True),
        ("multiply", BOOL, "{0} && {1}", False),
        ("bitwise_and", I8, "{0} & {1}", True),
        ("less", U8, "{0} < {1}", False),
        ("floor_divide", U8, "mj_floor_div({0}, {1})", False),
        ("floor_divide", F16, "mj_float_floor_div({0}, {1})", False),
        ("minimum", U8, "metal::min({0}, {1})", False),
    ],
)
def test_spelling(name: str, dtype: DType, text: str, narrows: bool) -> None:
    spelling = spell(OPERATIONS[name], typed(name, dtype, dtype))
    assert (spelling.text, spelling.narrows) == (text, narrows)


def test_small_choices_are_not_cast() -> None:
    """C gives `c ? a : b` the type of a and b; only arithmetic promotes."""
    assert not spell(OPERATIONS["where"], typed("where", BOOL, U8, U8)).narrows


def test_fast_spelling() -> None:
    assert spell(OPERATIONS["exp"], typed("exp", F32), "fast").text == "metal::fast::exp({0})"
    assert spell(OPERATIONS["exp"], typed("exp", F32)).text == "metal::precise::exp({0})"
    assert spell(OPERATIONS["minimum"], typed("minimum", I32, I32), "fast").text == "metal::min({0}, {1})"
    assert spell(OPERATIONS["erf"], typed("erf", F32), "fast").text == "mj_erf({0})"


# ---- the table itself ----


def test_names_are_unique() -> None:
    names = [n for op in ROWS for n in (op.name, *op.aliases)]
    assert len(names) == len(set(names)) == len(OPERATIONS)


def test_symbols_are_pythons() -> None:
    binary = {s for s, arity in SYMBOLS if arity == 2}
    assert binary == {*"+ - * / // % ** << >> & | ^ == != < <= > >= and or".split()}
    assert {s for s, arity in SYMBOLS if arity == 1} == {"-", "+", "~", "not"}


def test_rules_are_all_explained_and_used() -> None:
    assert {op.rule for op in ROWS} == set(RULES)


def test_the_reference_page_is_up_to_date() -> None:
    """To renew it: python -c "from metaljit.operations import reference; print(reference(), end='')"."""
    assert (ROOT / "docs" / "operations.md").read_text("utf-8") == reference()


# ---- meanings ----


def some(dtype: DType) -> Any:
    """A few hard values of a type."""
    if dtype == BOOL:
        return np.array([False, True])
    if dtype.is_float:
        listed = [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.0,
            -1.0,
            1.5,
            2.5,
            -2.5,
            3.0,
            -7.0,
            0.1,
            88.0,
            -1e-8,
            2.0**-120,
            3e4,
        ]
        listed += [np.inf, -np.inf, np.nan]
        with np.errstate(all="ignore"):
            return np.array(listed, np.float32).astype(dtype.numpy)
    low, high = int(dtype.smallest), int(dtype.largest)
    listed = [0, 1, 2, 3, 5, 7, 31, 55, 100, 110, high, high - 1, high // 2 + 1, low, low + 1]
    return np.array(sorted({v for n in listed for v in (n, -n) if low <= v <= high}), dtype.numpy)


def grid(*types: DType) -> list[Any]:
    return [np.ravel(g) for g in np.meshgrid(*(some(t) for t in types), indexing="ij")]


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_a_meaning_gives_the_results_type(op: Operation) -> None:
    for typing in set(accepted(op)):
        arrays = grid(*typing.operands)
        together = op.meaning(*arrays)
        assert together.dtype == typing.result.numpy, typing
        for i in range(0, arrays[0].size, max(1, arrays[0].size // 7)):
            one = op.meaning(*(a[i] for a in arrays))
            assert type(one) is typing.result.numpy.type, typing
            assert one == together[i] or (one != one and together[i] != together[i])


# The result may differ from NumPy's own float32 loop by this many units in the last place; the others are exact.
NEAR = {
    *(
        "power",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "logaddexp",
        "logaddexp2",
        "hypot",
        "cbrt",
    ),
    *(
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arccosh",
    ),
    *("arctanh", "degrees", "radians"),
}
# Rows that mean something else for integers than NumPy's function: no error, a width, or a float.
OWN = {
    "power": "NumPy raises for a negative integer exponent",
    "reciprocal": "NumPy divides integers",
    "bitwise_count": "NumPy's result is always uint8",
    "rint": "NumPy gives floats",
    "ldexp": "NumPy gives f16 for 8 bits",
    "sinc": "NumPy's is not 0 at whole numbers",
}


@pytest.mark.parametrize("op", [op for op in ROWS if hasattr(np, op.name)], ids=lambda op: op.name)
def test_meanings_agree_with_numpy(op: Operation) -> None:
    function: Callable[..., Any] = getattr(np, op.name)
    for typing in set(accepted(op)):
        if typing.dtype == BF16 or op.name == "sinc" or (op.name in OWN and not typing.dtype.is_float):
            continue
        if op.rule == "shift" and typing.operands[0] != typing.operands[1]:
            continue  # NumPy promotes the left operand
        arrays = grid(*typing.operands)
        with np.errstate(all="ignore"):
            wanted = np.asarray(function(*arrays))
        found = op.meaning(*arrays)
        if op.name in NEAR:
            tolerance = 3e-6 if typing.dtype == F32 else 2e-3
            np.testing.assert_allclose(
                found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=1e-7
            )
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=str(typing))
            if typing.result.is_float and op.name not in ("minimum", "maximum", "fmin", "fmax", "clip"):
                np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted), err_msg=str(typing))


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "minimum", "power", "remainder", "floor_divide"]
)
def test_bf16_is_float32_rounded_once(name: str) -> None:
    a, b = grid(BF16, BF16)
    wide = apply(name, a.astype(np.float32), b.astype(np.float32))
    with np.errstate(all="ignore"):
        rounded = wide.astype(BF16.numpy)
    # NumPy's comparison does not know bfloat16's NaN.
    np.testing.assert_array_equal(apply(name, a, b).astype(np.float32), rounded.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "dtype", "values", "answer"),
    [
        # Rounded down, not toward zero; the remainder has the sign of the divisor.
        *(("floor_divide", I32, (a, b), q) for a, b, q in [(-7, 2, -4), (7, -2, -4), (-1, 2, -1)]),
        *(("floor_divide", I32, (a, b), q) for a, b, q in [(-6, 5, -2), (-7, -2, 3)]),
        *(("remainder", I32, (a, b), r) for a, b, r in [(-6, 5, 4), (6, -5, -4), (-7, 3, 2), (-9, 2, 1), (9, -2, -1)]),
        # In integers, not through a float.
        *(("floor_divide", I32, (a, b), q) for a, b, q in [(110, 55, 2), (-616, 28, -22), (16777217, 1, 16777217)]),
        ("remainder", I32, (110, 55), 0),
        ("multiply", I32, (46341, 46341), -2147479015),
        # Division by zero and the one quotient that overflows.
        *(("floor_divide", I32, (a, 0), 0) for a in (5, -5)),
        *(("remainder", I32, (a, 0), 0) for a in (5, -5)),
        ("floor_divide", I32, (-(2**31), -1), -(2**31)),
        ("remainder", I32, (-(2**31), -1), 0),
        ("remainder", U32, (4294967294, 3), 2),
        # Small integers wrap in their own width.
        ("add", U8, (200, 100), 44),
        ("right_shift", U8, (255, 4), 15),
        ("invert", U8, (0,), 255),
        ("negative", U8, (1,), 255),
        ("add", I8, (100, 100), -56),
        ("negative", I8, (-128,), -128),
        # Shifts by the width and beyond.
        ("left_shift", I32, (1, 32), 0),
        ("left_shift", I32, (1, -1), 0),
        ("right_shift", I32, (-8, 1), -4),
        ("right_shift", I32, (-8, 99), -1),
        ("right_shift", I32, (-8, -1), -1),
        ("right_shift", U8, (255, 8), 0),
        ("rotate", U32, (0x80000001, 4), 0x18),
        ("rotate", U8, (0x81, 1), 3),
        ("rotate", I8, (-127, -7), 3),
        # Bits.
        ("mulhi", U32, (0xFFFFFFFF, 0xFFFFFFFE), 0xFFFFFFFD),
        ("mulhi", I32, (-2, 3), -1),
        ("mulhi", U8, (200, 200), 156),
        ("mulhi", U64, (2**63, 6), 3),
        ("popcount", I8, (-1,), 8),
        ("bitwise_count", I8, (-1,), 1),
        ("clz", U16, (1,), 15),
        ("clz", I8, (-1,), 0),
        ("clz", U64, (0,), 64),
        ("ctz", I8, (-128,), 7),
        ("ctz", U8, (0,), 8),
        ("reverse_bits", U32, (1,), 0x80000000),
        ("reverse_bits", I8, (1,), -128),
        # Integer powers.
        ("power", I32, (3, 4), 81),
        ("power", I32, (2, -1), 0),
        ("power", I32, (-1, -3), -1),
        ("power", I32, (1, -3), 1),
        ("power", I32, (0, 0), 1),
        ("power", U8, (3, 6), 729 % 256),
        ("gcd", I32, (-12, 18), 6),
        ("lcm", I32, (-4, 6), 12),
        # Floats.
        ("power", F32, (-1, 3), -1.0),
        ("power", F32, (-1, 2), 1.0),
        ("power", F32, (-2, 3), -8.0),
        ("power", F32, (0, 0), 1.0),
        ("power", F32, (-1, 0.5), math.nan),
        *(("rint", F32, (x,), r) for x, r in [(0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0), (-2.5, -2.0)]),
        ("fmod", F32, (-7, 3), -1.0),
        ("remainder", F32, (-7, 3), 2.0),
        ("floor_divide", F32, (-7, 3), -3.0),
        ("floor_divide", F32, (1, 0), math.inf),
        ("remainder", F32, (1, 0), math.nan),
        ("maximum", F32, (math.nan, 1), math.nan),
        ("maximum", F32, (1, math.nan), math.nan),
        ("fmax", F32, (math.nan, 1), 1.0),
        ("fmax", F32, (1, math.nan), 1.0),
        *(("clip", F32, (x, -1, 1), r) for x, r in [(math.nan, math.nan), (-2, -1.0), (2, 1.0)]),
        *(("clip", F16, (x, -1, 1), r) for x, r in [(math.nan, math.nan), (-2, -1.0), (2, 1.0)]),
        *(("tanh", F32, (x,), r) for x, r in [(-50, -1.0), (89, 1.0), (math.inf, 1.0), (math.nan, math.nan)]),
        ("sign", F32, (-0.0,), 0.0),
        ("sign", F32, (math.nan,), math.nan),
        ("nextafter", F16, (1, 2), 1 + 2.0**-10),
        ("fma", F32, (1 + 2.0**-12, 1 + 2.0**-12, -(1 + 2.0**-11)), 2.0**-24),
        ("fract", F16, (-1e-5,), 1 - 2.0**-11),
        ("divide", F32, (1, 2), 0.5),
    ],
)  # fmt: skip
def test_worked_numbers(name: str, dtype: DType, values: tuple[float, ...], answer: Any) -> None:
    found = apply(name, *(dtype.numpy.type(v) for v in values))
    assert found.dtype == dtype.numpy
    if isinstance(answer, float) and math.isnan(answer):
        assert np.isnan(found)
    else:
        assert found == answer
        assert np.signbit(found) == np.signbit(found.dtype.type(answer))


@pytest.mark.parametrize(
    ("name", "x", "answer"),
    [
        ("log1p", 1e-10, 1e-10), ("expm1", 1e-10, 1e-10), ("sin", 1234567.0, 0.36445218),
        ("erf", 0.5, 0.5204998778),
        ("erfc", 5.0, 1.5374597944e-12), ("erfinv", 0.5204998778, 0.5), ("erfinv", -0.99999994, -3.8325069),
        ("lgamma", 100.0, 359.1342053696), ("gamma", 5.0, 24.0), ("gamma", -0.5, -3.5449077018),
        ("cbrt", -27.0, -3.0),
        ("exp10", 3.0, 1000.0), ("sinpi", 0.5, 1.0), ("cospi", 1.0, -1.0), ("sinc", 0.5, 0.6366197724),
    ],
)  # fmt: skip
def test_worked_functions(name: str, x: float, answer: float) -> None:
    assert apply(name, np.float32(x)) == pytest.approx(answer, rel=3e-6)


def test_fma_rounds_once() -> None:
    """Against exact fractions, where a sum in float64 that is rounded again goes wrong."""
    from fractions import Fraction

    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, (3, 3000), dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        a, b, c = np.where((abs(bits) < 1e15) & (abs(bits) > 1e-15), bits, np.float32(1.25))
    # The product sits halfway between two floats, and c is too small to show in float64.
    a[:100], b[:100], c[:100] = 1 + 2.0**-12, 1 + 2.0**-12, np.float32(2.0**-60) * rng.choice([-1, 1], 100)
    found = apply("fma", a, b, c)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), found, strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        distance = abs(Fraction(float(r)) - exact)
        for other in (np.nextafter(r, np.float32(np.inf)), np.nextafter(r, np.float32(-np.inf))):
            assert distance <= abs(Fraction(float(other)) - exact)


def test_integers_beside_floats_promote_through_the_common_type() -> None:
    for a, b in itertools.product(ALL, repeat=2):
        if promote(a, b) is not None:
            assert result("add", a, b) == promote(a, b)
    assert result("add", I16, F16) == F32
    assert {result("minimum", t, t) for t in INTEGERS} == set(INTEGERS)
    assert {result("sqrt", t) for t in FLOATS} == set(FLOATS)
