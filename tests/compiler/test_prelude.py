"""The printed form of each operation, compiled and run, against its NumPy meaning; and the prelude's own rules."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metaljit import conversions
from metaljit.compiler import prelude
from metaljit.dtypes import BF16, BOOL, DTYPES, F16, F32, I8, I32, I64, U8, U16, U64, DType
from metaljit.operations import OPERATIONS, ROWS, Math, Operation, Refusal, Typing, check, spell
from metaljit.runtime import toolchain

SHIM = Path(__file__).parents[2] / "runtime" / "shim"
EXPORTED = 'extern "C" __attribute__((visibility("default")))'
ALL = tuple(DTYPES.values())


# ---- printing and compiling ----


@dataclass(frozen=True)
class Case:
    """One operation, typed, as a loop over arrays."""

    op: Operation
    typing: Typing
    math: Math = "precise"

    @property
    def entry(self) -> str:
        return "_".join([self.op.name, *(t.name for t in self.typing.operands), self.math])

    def __str__(self) -> str:
        return self.entry


def loaded(name: str, dtype: DType) -> str:
    """An array's element as the generated text reads it: bool normalised, bf16 as a float."""
    if dtype == BOOL:
        return f"({name}[i] != 0)"
    return f"mj_bf16_value({name}[i])" if dtype == BF16 else f"{name}[i]"


def stored(text: str, dtype: DType) -> str:
    return f"mj_bf16_bits({text})" if dtype == BF16 else text


def memory(dtype: DType) -> str:
    return "uchar" if dtype == BOOL else dtype.msl


def printed(case: Case, operands: Sequence[str]) -> str:
    """What a printer makes of a spelling: casts around halves, small results cast back, bf16 rounded."""
    spelling = spell(case.op, case.typing, case.math)
    result = case.typing.result
    shown = [
        f"float({text})" if spelling.via_float and t == F16 else text
        for text, t in zip(operands, case.typing.operands, strict=True)
    ]
    text = spelling.text.format(*shown)
    if spelling.via_float and result == F16:
        return f"half({text})"
    if spelling.rounds:
        return f"mj_round_bf16({text})"
    return f"{result.msl}({text})" if spelling.narrows else text


def loop(entry: str, operands: Sequence[DType], result: DType, text: str) -> str:
    arrays = "".join(f"const device {memory(t)}* a{i}, " for i, t in enumerate(operands))
    return (
        f"{EXPORTED} void {entry}({arrays}device {memory(result)}* out, int n) {{\n"
        f"    for (int i = 0; i < n; i++) out[i] = {stored(text, result)};\n}}\n"
    )


def build(folder: Path, name: str, body: str, *flags: str) -> ctypes.CDLL:
    """The loops as a shared library, with what they need of the prelude in front."""
    text = f"#include <metal_stdlib>\n\n{prelude.needed(body)}{body}"
    path = folder / f"{name}.so"
    path.write_bytes(toolchain.find().compile(text, name, ("-I", str(SHIM), *flags)))
    return ctypes.CDLL(str(path))


def run(library: ctypes.CDLL, entry: str, arrays: Sequence[Any], result: DType) -> Any:
    """One loop over arrays of equal length."""
    out = np.zeros(arrays[0].shape, result.numpy)
    given = [np.ascontiguousarray(a) for a in arrays]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*given, out)]
    getattr(library, entry)(*pointers, ctypes.c_int(out.size))
    return out


def typings(op: Operation) -> Iterator[Typing]:
    """Every way in which an operation is carried out, each once."""
    if op.rule == "shift":
        tried: list[tuple[DType, ...]] = [(t, c) for t in ALL for c in {t, U8, I32, I64}]
    elif op.rule == "scale":
        tried = [(t, I32) for t in ALL]
    elif op.rule == "select":
        tried = [(BOOL, t, t) for t in ALL]
    else:
        tried = [(t,) * op.arity for t in ALL]
    seen: dict[Typing, None] = {}
    for types in sorted(tried, key=str):
        try:
            typing = check(op, types)
        except Refusal:
            continue
        seen[typing] = None
    yield from seen


def cases(op: Operation) -> list[Case]:
    return [Case(op, typing) for typing in typings(op)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prelude")


@pytest.fixture(scope="module")
def library(folder: Path) -> Any:
    """All cases of a group of rows in one library, built when the first is asked for."""

    @cache
    def of_group(group: str) -> ctypes.CDLL:
        texts = []
        for case in (c for op in ROWS if op.group == group for c in all_cases(op)):
            operands = case.typing.operands
            shown = printed(case, [loaded(f"a{i}", t) for i, t in enumerate(operands)])
            texts.append(loop(case.entry, operands, case.typing.result, shown))
        return build(folder, re.sub(r"\W+", "_", group), "\n".join(texts))

    return of_group


def all_cases(op: Operation) -> list[Case]:
    fast = [Case(op, c.typing, "fast") for c in cases(op) if op.fast and c.typing.dtype == F32]
    return cases(op) + fast


# ---- values ----

TINY, HUGE = 2.0**-126, float(np.finfo(np.float32).max)
HARD = [
    *(
        0.0,
        1.0,
        0.5,
        1.5,
        2.0,
        2.5,
        3.0,
        0.75,
        0.1,
        1e-3,
        1e-8,
        1e-10,
        1e-20,
        TINY,
        1e-40,
        1e-45,
        7.0,
        10.0,
        33.0,
    ),
    *(
        50.0,
        88.5,
        89.0,
        100.0,
        127.0,
        1e4,
        65504.0,
        1234567.0,
        2.0**23 + 1,
        2.0**24,
        2.0**31,
        2.0**63,
        1e20,
        HUGE,
    ),
    *(np.inf, np.nan),
]


def floats(dtype: DType, count: int, seed: int) -> Any:
    """Hard values first, then all bit patterns (16 bits) or random ones and everyday numbers (32 bits).

    NaNs are quiet ones: of a signalling one, C makes `1 ** NaN` NaN.
    """
    rng = np.random.default_rng(seed)
    values = np.array([s * v for v in HARD for s in (1, -1)], np.float32)
    with np.errstate(all="ignore"):
        if dtype.bits == 16:
            every = np.arange(65536, dtype=np.uint16).view(dtype.numpy)
            every = np.where(np.isnan(every), dtype.numpy.type(np.nan), every)
            return np.concatenate(
                [values.astype(dtype.numpy), every if count >= 65536 else rng.choice(every, count)]
            )
        bits = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
        bits = np.where(np.isnan(bits), np.float32(np.nan), bits)
    return np.concatenate([values, bits, (rng.standard_normal(count) * 4).astype(np.float32)])


def integers(dtype: DType, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    low, high = int(dtype.smallest), int(dtype.largest)
    if dtype.bits == 8:
        return np.arange(low, high + 1).astype(dtype.numpy)
    near = [0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 55, 63, 64, 110, 255, 256, 46341, 65535, 65536, 16777217]
    near += [high, high - 1, high // 2, high // 2 + 1, high // 3, low, low + 1, low // 2]
    hard = np.array(sorted({v for n in near for v in (n, -n) if low <= v <= high}), dtype=dtype.numpy)
    return np.concatenate([hard, rng.integers(low, high, count, dtype.numpy, endpoint=True)])


def one_array(dtype: DType, count: int, seed: int) -> Any:
    if dtype == BOOL:
        return np.array([False, True])
    return floats(dtype, count, seed) if dtype.is_float else integers(dtype, count, seed)


def operands(case: Case) -> list[Any]:
    """One array, all pairs of two short ones with random pairs behind, or all triples of three shorter ones."""
    types = case.typing.operands
    if len(types) == 1:
        return [one_array(types[0], 65536, 1)]
    short = [one_array(t, 60 if len(types) == 2 else 0, seed) for seed, t in enumerate(types)]
    if len(types) == 3:
        short = [np.random.default_rng(i).permutation(a)[:64] for i, a in enumerate(short)]
    grids = [np.ravel(g) for g in np.meshgrid(*short, indexing="ij")]
    if len(types) == 2 and all(t.bits > 8 for t in types):
        more = [np.resize(one_array(t, 20000, 7 + i), 40000) for i, t in enumerate(types)]
        grids = [np.concatenate([g, m]) for g, m in zip(grids, more, strict=True)]
    return grids


def order(x: Any) -> Any:
    """Floats as integers that count their neighbours; both zeros are 0."""
    wide, sign = (np.int64, 0x7FFF) if x.dtype.itemsize == 2 else (np.int64, 0x7FFFFFFF)
    bits = np.asarray(x).view(f"i{x.dtype.itemsize}").astype(wide)
    return np.where(bits < 0, -(bits & sign), bits)


# Largest errors on a processor, in units in the last place, where they are below the table's promise for all devices.
ULP = {
    "cbrt": 0, "hypot": 1, "power": 1, "expm1": 1, "log1p": 1, "erf": 1, "erfinv": 2, "sinc": 3, "degrees": 1,
    "radians": 1, "erfc": 4, "gamma": 5, "lgamma": 4,
}  # fmt: skip
# Rows whose zeros may have either sign.
EITHER_ZERO = {"minimum", "maximum", "fmin", "fmax", "clip", "sinpi", "cospi", "sinc", "lgamma", "nextafter"}


def apart(a: Any, b: Any) -> Any:
    """Units in the last place between two arrays, 0 for two NaNs, very many for one."""
    with np.errstate(all="ignore"):
        nan_a, nan_b = np.isnan(a.astype(np.float32)), np.isnan(b.astype(np.float32))
    distance = np.abs(order(a) - order(b))
    return np.where(nan_a & nan_b, 0, np.where(nan_a | nan_b, 2**40, distance))


def scale(op: Operation, arrays: Sequence[Any], dtype: DType) -> Any:
    """An absolute error that is forgiven: where the operands cancel, and among numbers too small for Metal."""
    if dtype != F32:
        return 0.0 if dtype == F16 else np.float64(2.0**-126)
    if op.name.startswith("logaddexp"):
        return 2.0**-22 * np.maximum(1.0, np.maximum(*(np.abs(a.astype(np.float64)) for a in arrays)))
    if op.name == "lgamma":
        size = np.abs(arrays[0].astype(np.float64))
        near = np.where(size < TINY, 0.1, 2.0**-21 * np.maximum(1.0, size))
        return np.where(arrays[0] < 0, near, 2.0**-126)
    return 2.0**-126 if op.ulp else 0.0


def assert_same(case: Case, arrays: Sequence[Any], found: Any, wanted: Any, ulp: int) -> None:
    op, dtype = case.op, case.typing.result
    if not dtype.is_float:
        wrong = found != wanted
    else:
        with np.errstate(all="ignore"):
            off = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
            wrong = (apart(found, wanted) > ulp) & ~(off <= scale(op, arrays, dtype))
            if op.name not in EITHER_ZERO:
                wrong |= (wanted == 0) & (np.signbit(found) != np.signbit(wanted)) & (ulp == 0)
    if wrong.any():
        i = int(wrong.argmax())
        given = ", ".join(str(a[i]) for a in arrays)
        pytest.fail(
            f"{case}({given}) is {found[i]!r}, not {wanted[i]!r}; {int(wrong.sum())} of {wrong.size} differ"
        )


# ---- each row ----


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_printed_text_means_what_the_row_says(op: Operation, library: Any) -> None:
    for case in cases(op):
        arrays = operands(case)
        wanted = op.meaning(*arrays)
        ulp = ULP.get(op.name, op.ulp)
        if case.typing.dtype != F32:
            ulp = min(ulp, 1 if op.ulp < 16 or op.name == "power" else 2)
        assert_same(case, arrays, run(library(op.group), case.entry, arrays, case.typing.result), wanted, ulp)


@pytest.mark.parametrize("op", [op for op in ROWS if op.fast], ids=lambda op: op.name)
def test_fast_text_is_close_for_usual_numbers(op: Operation, library: Any) -> None:
    case = Case(op, check(op, (F32,) * op.arity), "fast")
    rng = np.random.default_rng(2)
    low = -6.0 if op.name in ("sin", "cos", "tan", "tanh") else 0.1
    arrays = [rng.uniform(low, 6, 4000).astype(np.float32) for _ in range(op.arity)]
    found = run(library(op.group), case.entry, arrays, F32)
    np.testing.assert_allclose(found, op.meaning(*arrays), rtol=2e-3, atol=3e-4)


def test_fast_tanh_does_not_overflow(library: Any) -> None:
    op = OPERATIONS["tanh"]
    case = Case(op, check(op, (F32,)), "fast")
    found = run(library(op.group), case.entry, [np.array([-89, -50, 50, 89, np.inf, 1000], np.float32)], F32)
    np.testing.assert_allclose(found, [-1, -1, 1, 1, 1, 1], rtol=1e-6)


# What the compiler itself asks about a float must hold although the device's compiler reassociates, divides by
# reciprocals and ignores the sign of zeros. (This clang looks through `as_type` when it is told that there is neither
# NaN nor infinity; Metal's either does not, or is asked for its safe mode.)
ON_BITS = (
    "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "sign", "minimum", "maximum", "fmin", "fmax", "clip",
    "remainder", "floor_divide", "nan_to_num", "heaviside", "nextafter",
)  # fmt: skip


@pytest.fixture(scope="module")
def careless(folder: Path) -> ctypes.CDLL:
    """The rows of ON_BITS and the casts of floats, compiled with fast math."""
    texts = []
    for name in ON_BITS:
        op = OPERATIONS[name]
        case = Case(op, check(op, (F32,) * op.arity))
        text = printed(case, ["a0[i]", "a1[i]", "a2[i]"][: op.arity])
        texts.append(loop(case.entry, case.typing.operands, case.typing.result, text))
    for target in (BOOL, I8, U16, I32, U64):
        texts.append(loop(f"cast_{target}", (F32,), target, cast_text(F32, target, "cast")))
    return build(folder, "careless", "\n".join(texts), *toolchain.FAST_MATH, "-fno-finite-math-only")


@pytest.mark.parametrize("name", ON_BITS)
def test_bits_hold_under_fast_math(name: str, careless: ctypes.CDLL) -> None:
    op = OPERATIONS[name]
    case = Case(op, check(op, (F32,) * op.arity))
    hard = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -7.0, 1e30, np.inf, -np.inf, np.nan], np.float32)
    arrays = [np.ravel(g) for g in np.meshgrid(*[hard] * op.arity)]
    found = run(careless, case.entry, arrays, case.typing.result)
    np.testing.assert_array_equal(found, op.meaning(*arrays))


@pytest.mark.parametrize("target", [BOOL, I8, U16, I32, U64], ids=str)
def test_casts_hold_under_fast_math(target: DType, careless: ctypes.CDLL) -> None:
    values = np.array([0.0, -0.0, 0.9, -0.9, 300.7, -3e10, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    found = run(careless, f"cast_{target}", [values], target)
    np.testing.assert_array_equal(found, conversions.convert(values, F32, target))


# ---- casts ----


def cast_text(source: DType, target: DType, kind: str) -> str:
    spelling = getattr(conversions, f"spell_{kind}")(source, target)
    text = spelling.text.format(loaded("a0", source))
    return f"mj_round_bf16({text})" if spelling.rounds else text


def cast_pairs() -> Iterator[tuple[str, DType, DType]]:
    for source, target in itertools.product(ALL, repeat=2):
        yield "cast", source, target
        if target.is_integer and not source.is_float:
            yield "saturate", source, target
        if source.bits == target.bits and BOOL not in (source, target):
            yield "bitcast", source, target


@pytest.fixture(scope="module")
def casts(folder: Path) -> ctypes.CDLL:
    texts = [loop(f"{k}_{s}_{t}", (s,), t, cast_text(s, t, k)) for k, s, t in cast_pairs()]
    return build(folder, "casts", "\n".join(texts))


@pytest.mark.parametrize("source", ALL, ids=str)
def test_printed_casts_mean_what_they_say(source: DType, casts: ctypes.CDLL) -> None:
    meanings = {"cast": conversions.convert, "saturate": conversions.saturate, "bitcast": conversions.bitcast}
    values = one_array(source, 65536, 11)
    for kind, _, target in (p for p in cast_pairs() if p[1] == source):
        found = run(casts, f"{kind}_{source}_{target}", [values], target)
        wanted = meanings[kind](values, source, target)
        wrong = apart(found, wanted) != 0 if target.is_float else found != wanted
        i = int(wrong.argmax())
        assert not wrong.any(), f"{kind} of {values[i]!r} to {target} is {found[i]!r}, not {wanted[i]!r}"


# ---- borders ----

FOLDS = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric", "wrap": "wrap"}


@pytest.fixture(scope="module")
def folds(folder: Path) -> ctypes.CDLL:
    texts = [loop(name, (I32, I32), I32, f"mj_{name}(a0[i], a1[i])") for name in FOLDS]
    texts.append(loop("antiperiodic", (I32, I32), BOOL, "mj_antiperiodic(a0[i], a1[i])"))
    return build(folder, "folds", "\n".join(texts))


def fold(mode: str, i: int, n: int) -> int:
    """The rule in whole numbers without limits."""
    match mode:
        case "edge":
            return min(max(i, 0), n - 1)
        case "wrap":
            return i % n
        case "symmetric":
            k = i % (2 * n)
            return min(k, 2 * n - 1 - k)
        case _:
            period = max(2 * (n - 1), 1)
            k = i % period
            return 0 if n == 1 else min(k, period - k)


@pytest.mark.parametrize("mode", FOLDS)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_folds_are_numpys_pad(mode: Any, n: int, folds: ctypes.CDLL) -> None:
    width = 5 * n + 3
    index = np.arange(-width, n + width, dtype=np.int32)
    found = run(folds, mode, [index, np.full_like(index, n)], I32)
    np.testing.assert_array_equal(found, np.pad(np.arange(n), width, mode=mode))


@pytest.mark.parametrize("mode", FOLDS)
def test_folds_do_not_overflow(mode: str, folds: ctypes.CDLL) -> None:
    ends = [0, 1, -1, 2, -2, 5, -6, 2**30, -(2**30), 2**31 - 2, 2**31 - 1, -(2**31) + 1, -(2**31)]
    extents = [1, 2, 3, 1000, 2**30, 2**30 + 1, 2**31 - 2, 2**31 - 1]
    pairs = np.array(list(itertools.product(ends, extents)), dtype=np.int32)
    found = run(folds, mode, [pairs[:, 0], pairs[:, 1]], I32)
    assert found.tolist() == [fold(mode, i, n) for i, n in itertools.product(ends, extents)]
    flipped = run(folds, "antiperiodic", [pairs[:, 0], pairs[:, 1]], BOOL)
    assert flipped.tolist() == [i // n % 2 == 1 for i, n in itertools.product(ends, extents)]


@pytest.mark.parametrize("mode", [*FOLDS, "antiperiodic"])
def test_folds_of_nothing(mode: str, folds: ctypes.CDLL) -> None:
    """No index is right in an empty extent; the processor survives, and gets one that stands for nothing."""
    index = np.array([0, 5, -5, 2**31 - 1, -(2**31)], np.int32)
    found = run(folds, mode, [index, np.zeros_like(index)], BOOL if mode == "antiperiodic" else I32)
    assert mode == "antiperiodic" or found.tolist() == [0] * 5


# ---- atomics ----


@pytest.fixture(scope="module")
def atomics(folder: Path) -> ctypes.CDLL:
    cell = "(device metal::atomic_uint*)a0"
    plain = ("add", "min", "max", "exchange")
    calls = {f"{name}_float": f"mj_atomic_{name}_float({cell}, a1[i])" for name in plain}
    calls["cas_float"] = f"mj_atomic_cas_float({cell}, a1[i], 9.0f)"
    texts = [loop(name, (F32, F32), F32, text) for name, text in calls.items()]
    texts.append(
        loop("cas_int", (I32, I32), I32, "mj_atomic_cas((device metal::atomic_int*)a0, a1[i], a1[i] + 1)")
    )
    return build(folder, "atomics", "\n".join(texts).replace("const device", "device"))


@pytest.mark.parametrize(
    ("name", "start", "values", "olds", "end"),
    [
        ("add_float", 0.5, [1.0, 2.0, -4.0], [0.5, 1.5, 3.5], -0.5),
        ("min_float", 3.0, [4.0, -1.0, 2.0], [3.0, 3.0, -1.0], -1.0),
        ("max_float", -3.0, [-4.0, 1.0, np.nan, 2.0], [-3.0, -3.0, 1.0, np.nan], np.nan),
        ("exchange_float", 1.0, [2.0, 3.0], [1.0, 2.0], 3.0),
        ("cas_float", 1.0, [2.0, 1.0, 1.0, 9.0], [1.0, 1.0, 9.0, 9.0], 9.0),
        ("cas_float", -0.0, [0.0], [-0.0], -0.0),
        ("cas_int", 5, [4, 5, 5, 6], [5, 5, 6, 6], 7),
    ],
)
def test_atomics(name: str, start: Any, values: Any, olds: Any, end: Any, atomics: ctypes.CDLL) -> None:
    dtype = I32 if name == "cas_int" else F32
    cells = np.full(len(values), start, dtype.numpy)  # the first is the cell, the others its neighbours
    found = run(atomics, name, [cells, np.array(values, dtype.numpy)], dtype)
    np.testing.assert_array_equal(found, np.array(olds, dtype.numpy))
    np.testing.assert_array_equal(cells[:1], np.array([end], dtype.numpy))
    np.testing.assert_array_equal(cells[1:], start)


def test_float_add_from_many_calls(atomics: ctypes.CDLL) -> None:
    cells = np.zeros(1024, np.float32)
    run(atomics, "add_float", [cells, np.ones(1024, np.float32)], F32)
    assert cells[0] == 1024.0


# ---- which definitions a text gets ----


def test_nothing_for_a_text_without_helpers() -> None:
    assert prelude.needed("kernel void f() { float x = metal::sqrt(2.0f); }") == ""


def test_definitions_come_with_what_they_use() -> None:
    text = prelude.needed("mj_float_mod(a, b)")
    assert [n for n in ("mj_isnan", "mj_nan", "mj_fmod", "mj_float_mod") if f" {n}(" in text] == [
        *("mj_isnan", "mj_nan", "mj_fmod", "mj_float_mod")
    ]
    assert "mj_pow" not in text
    assert prelude.needed("mj_float_mod(a, b) + mj_float_mod(b, a)") == text


def test_definitions_keep_the_order_of_the_file() -> None:
    names = [name for chunk in prelude.chunks() for name in sorted(chunk.defines)]
    assert prelude.needed(" ".join(reversed(names))) == "".join(c.text + "\n\n" for c in prelude.chunks())


def test_a_definition_uses_only_earlier_ones() -> None:
    """So there is no recursion, which Metal does not have."""
    seen: set[str] = set()
    for chunk in prelude.chunks():
        assert chunk.uses <= seen, chunk.defines
        assert not chunk.defines & seen
        seen |= chunk.defines


def test_every_helper_of_the_table_is_defined() -> None:
    defined = {name for chunk in prelude.chunks() for name in chunk.defines}
    for case in (c for op in ROWS for c in all_cases(op)):
        assert set(re.findall(r"mj_\w+", spell(case.op, case.typing, case.math).text)) <= defined
    for kind, source, target in cast_pairs():
        assert set(re.findall(r"mj_\w+", cast_text(source, target, kind))) <= defined


# ---- the text's own rules ----

WORDS = set(
    "T W C S P uint int float half ushort ulong long bool as_type sizeof while for typename template operator".split()
)


def code_lines() -> list[str]:
    """The lines without their comments, which stand on lines of their own or behind a brace or semicolon."""
    lines = [line for chunk in prelude.chunks() for line in chunk.text.splitlines()]
    return [re.sub(r"(^ *|[{};]  )//.*", "", line) for line in lines]


def test_the_prelude_is_plain_metal() -> None:
    text = "\n".join(code_lines())
    assert text.isascii()
    assert not re.search(r"//|\bdouble\b|\bauto\b|__|\busing\b|\bgoto\b|\[", text)
    literals = re.findall(r"(?<![\w.])(?:\d+\.\d*|\d*\.\d+)(?:e[+-]?\d+)?\w?|0x[\w.]*p[+-]?\d+\w?", text)
    assert literals
    assert {x for x in literals if not x.endswith("f")} == set()


def test_the_prelude_calls_nothing_unqualified() -> None:
    """A library function is called by its full name, one that has a precise form in the precise namespace."""
    exact = {"floor", "rint", "trunc", "fabs", "fma", "ldexp", "min", "max", "clamp", "rotate", "popcount"}
    for line in code_lines():
        for name in re.findall(r"([\w:]+)(?:<[^<>()]*>)?\(", line):
            space, _, last = name.rpartition("::")
            if space == "metal":
                assert last in exact or last.startswith(("atomic_", "memory_", "simd_", "threadgroup_")), line
            elif not space:
                assert name.startswith("mj_") or name in WORDS, line
            else:
                assert space in ("metal::precise", "metal::fast"), line
        assert not re.search(r"(?<!mj_)\b(?:isnan|isinf|isfinite|signbit)\(", line)


def test_no_early_return() -> None:
    """A loop over a function that leaves early is not vectorised: one return, the last statement.

    Border folds are the exception: an index that is inside, as nearly all are, must not pay for a division.
    """
    folds = {"mj_reflect", "mj_symmetric", "mj_wrap", "mj_antiperiodic", "mj_cycle"}
    for chunk in prelude.chunks():
        if chunk.defines & folds:
            continue
        for body in re.findall(r"\{\n(.*?)\n\}", chunk.text, re.DOTALL):
            assert "return " not in body[: body.rfind("\n") + 1], chunk.defines
