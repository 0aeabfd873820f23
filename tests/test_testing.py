"""The strategies have the nasty values in reach, and `check_against` catches planted faults and shows them well."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import metaljit as mj
from metaljit.dtypes import DTYPES, DType
from metaljit.lang import InOut, border, const, f32, f32x2, global_index, i32, position, require, u8
from metaljit.testing import (
    EXACT,
    LAYOUTS,
    TOLERANCES,
    Layout,
    Mismatch,
    Tolerance,
    arrays,
    check_against,
    difference,
    dtypes,
    layouts,
    nasty,
    shapes,
    values,
)

N, M, H, W = mj.dims("N M H W")
S = mj.dims("*S")
T: Any = mj.dtypes("u8 f32 bf16")
FLOATS = ["f16", "bf16", "f32"]
each_type = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)


# ---- strategies ----


@each_type
def test_nasty_values_are_values_of_the_type(dtype: DType) -> None:
    for v in nasty(dtype):
        kept = np.asarray(v).astype(dtype.numpy).astype(np.float64 if dtype.is_float else object)
        assert kept == v or v != v


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_integer], ids=str)
def test_nasty_integers_have_the_ends_and_the_powers(dtype: DType) -> None:
    found = set(nasty(dtype))
    assert {0, 1, int(dtype.smallest), int(dtype.largest)} <= found
    powers = [2**k + d for k in range(dtype.bits - 1) for d in (-1, 0, 1)]
    assert {p for p in powers if p <= dtype.largest} <= found


@pytest.mark.parametrize("name", FLOATS)
def test_nasty_floats_have_what_breaks_programs(name: str) -> None:
    dtype = DTYPES[name]
    found = np.array(nasty(dtype))
    least = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149}[name]
    normal = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126}[name]
    largest = {"f16": 65504.0, "bf16": (2 - 2**-7) * 2.0**127, "f32": (2 - 2**-23) * 2.0**127}[name]
    assert {1.0, -1.0, least, -least, normal, largest, -largest, np.inf, -np.inf} <= set(found.tolist())
    assert np.isnan(found).any()
    assert {str(v) for v in found if v == 0} == {"0.0", "-0.0"}


@each_type
def test_values_reach_them(dtype: DType) -> None:
    last = nasty(dtype)[-2]
    assert (
        find(values(dtype), lambda v: v == last and str(v) == str(last), settings=settings(max_examples=5000))
        == last
    )


@pytest.mark.parametrize("name", ["u8", "i32", "f16", "f32"])
def test_values_keep_their_bounds(name: str) -> None:
    @given(values(DTYPES[name], low=1, high=7))
    def inside(v: Any) -> None:
        assert 1 <= v <= 7
        assert DTYPES[name].numpy.type(v) == v

    inside()


@given(st.data(), dtypes(), shapes(), layouts())
def test_arrays_are_as_asked(
    data: st.DataObject, dtype: DType, shape: tuple[int, ...], layout: Layout
) -> None:
    a = data.draw(arrays(dtype, shape, layout=layout))
    assert a.shape == shape
    assert a.dtype == dtype.numpy


def test_dtypes_and_shapes_can_be_narrowed() -> None:
    @given(dtypes("float", "u8"), shapes(2, 2, 1, 3))
    def narrow(dtype: DType, shape: tuple[int, ...]) -> None:
        assert dtype.name in ("f16", "bf16", "f32", "u8")
        assert len(shape) == 2
        assert all(1 <= n <= 3 for n in shape)

    narrow()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_layouts_keep_the_values(layout: Layout) -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    laid = layout.lay(x)
    expected = np.broadcast_to(x[:1], x.shape) if layout.name == "broadcast" else x
    assert (laid == expected).all()
    assert layout.lay(np.array(3)) == 3


def test_layouts_are_what_they_are_called() -> None:
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    found = {layout.name: layout.lay(x) for layout in LAYOUTS}
    assert found["F"].flags.f_contiguous
    assert found["strided"].strides[-1] == 8
    assert all(s < 0 for s in found["reversed"].strides)
    assert not found["offset"].flags.c_contiguous
    assert 0 in found["broadcast"].strides
    assert not found["read-only"].flags.writeable
    assert not found["unaligned"].flags.aligned
    assert not found["transposed"].flags.c_contiguous
    assert not found["transposed"].flags.f_contiguous


# ---- difference ----


@pytest.mark.parametrize(
    ("actual", "expected", "options", "same"),
    [
        (np.int32(3), 3, {}, True),
        (np.int32(3), 4, {}, False),
        (np.uint64(2**64 - 1), 2**64 - 1, {}, True),
        (np.uint64(2**64 - 1), 2**64 - 2, {}, False),
        (np.float32(1), 1 + 1e-6, {}, True),
        (np.float32(1), 1.001, {}, False),
        (np.float32(1), 1 + 1e-6, {"tolerance": EXACT}, False),
        (np.float32(0.1), 0.1, {"tolerance": EXACT}, True),
        (np.float16(1), 1.001, {}, True),
        (np.float32("nan"), np.nan, {}, True),
        (np.float32("nan"), 0.0, {}, False),
        (np.float32(0), np.nan, {}, False),
        (np.float32("inf"), np.inf, {}, True),
        (np.float32("inf"), -np.inf, {}, False),
        (np.float32("inf"), 3e38, {}, False),
        (np.float32("inf"), 1e39, {}, True),
        (np.float32(0.0), -0.0, {}, True),
        (np.float32(0.0), -0.0, {"signed_zeros": True}, False),
        (np.zeros(3), np.zeros(2), {}, False),
        ((np.int32(1), np.int32(2)), (1, 2), {}, True),
        ((np.int32(1), np.int32(2)), (1, 3), {}, False),
        ((np.int32(1),), np.int32(1), {}, False),
        (np.bool_(True), True, {}, True),
    ],
)
def test_difference(actual: Any, expected: Any, options: dict[str, Any], same: bool) -> None:
    assert (difference(actual, expected, **options) is None) == same


def test_a_difference_says_where() -> None:
    a = np.zeros((2, 3), np.float32)
    b = a.copy()
    b[1, 2] = 5
    assert difference(a, b) == "element [1, 2] is 0.0, expected 5.0 (1 of 6 elements differ)"


def test_every_float_has_a_tolerance() -> None:
    assert set(TOLERANCES) == {DTYPES[n].numpy.name for n in FLOATS}


# ---- check_against ----


@mj.kernel
def blur(x: f32[N]) -> f32[N]:
    x = border(x, "edge")
    i = position()
    return (x[i - 1] + x[i] * 2 + x[i + 1]) / 4


def blurred(x: Any) -> Any:
    if not x.size:
        return x
    p = np.pad(x, 1, mode="edge")
    return (p[:-2] + p[1:-1] * np.float32(2) + p[2:]) / np.float32(4)


def test_a_right_kernel_passes() -> None:
    check_against(blur, blurred)


@mj.kernel
def wrong_border(x: f32[N]) -> f32[N]:
    x = border(x, "wrap")
    i = position()
    return (x[i - 1] + x[i] * 2 + x[i + 1]) / 4


@mj.kernel
def wrong_order(x: f32[N]) -> f32[N]:
    x = border(x, "edge")
    i = position()
    return x[i - 1] / 4 + x[i] / 2 + x[i + 1] / 4


@mj.kernel
def wrong_weight(x: f32[N]) -> f32[N]:
    x = border(x, "edge")
    i = position()
    return (x[i - 1] + x[i] * 2.01 + x[i + 1]) / 4


@pytest.mark.parametrize("mutant", [wrong_border, wrong_order, wrong_weight], ids=lambda k: str(k.__name__))
def test_a_planted_fault_is_found(mutant: mj.Kernel) -> None:
    numbers = st.sampled_from([1.0, 3.0, -3e38, 3e38])  # the order shows where a sum overflows
    with pytest.raises(Mismatch):
        check_against(mutant, blurred, elements={"x": numbers}, max_examples=100)


@mj.kernel
def late(a: u8[N], k: i32) -> i32[N]:
    i = position()
    return a[i] + (k if i < 3 else 2)


def test_a_fault_is_shown_small() -> None:
    with pytest.raises(Mismatch) as e:
        check_against(late, lambda a, k: a + np.int32(k), max_examples=300)
    assert str(e.value) == (
        "kernel 'late' on interpret: element [3] is 2, expected 0 (1 of 4 elements differ); called with\n"
        "    a = np.array([0, 0, 0, 0], 'uint8')\n    k = 0"
    )


@pytest.mark.parametrize(
    ("reference", "fault"),
    [(lambda x: x + 1, "wrong value"), (lambda x: x[:0], "shape"), (lambda x: (x, x), "one result")],
)
def test_a_wrong_reference_is_found(reference: Any, fault: str) -> None:
    @mj.kernel
    def same(x: i32[N]) -> i32[N]:
        return x[position()]

    with pytest.raises(Mismatch):
        check_against(same, reference)


def test_signed_zeros_count_where_asked() -> None:
    @mj.kernel
    def plus(x: f32[N]) -> f32[N]:
        return x[position()] + 0.0

    check_against(plus, lambda x: x)
    with pytest.raises(Mismatch):
        check_against(plus, lambda x: x, signed_zeros=True, max_examples=300)


def test_every_kind_of_parameter_is_drawn() -> None:
    seen: list[Any] = []

    @mj.kernel
    def many(
        a: T[*S],
        v: f32x2[N, 2 * M],
        k: T,
        s: f32,
        w: f32x2,
        n: const[int],
        flag: const[bool],
        q: const[int] = 7,
    ) -> T[*S]:
        return a[position()]

    def reference(*values: Any) -> Any:
        seen.append(values)
        return values[0]

    laid: list[bool] = []

    def noted(a: Any, *_: Any) -> bool:
        laid.append(a.flags.c_contiguous)
        return True

    check_against(many, reference, where=noted, max_examples=200)
    assert {a.dtype.name for a, *_ in seen} == {"uint8", "float32", "bfloat16"}
    assert {a.ndim for a, *_ in seen} == {0, 1, 2, 3}
    assert all(v.shape[1] % 2 == 0 and v.shape[2] == 2 for _, v, *_ in seen)
    assert all(k.dtype == a.dtype for a, _, k, *_ in seen)
    assert all(len(w) == 2 for _, _, _, _, w, *_ in seen)
    assert {f for *_, f, _ in seen} == {True, False}
    assert {q for *_, q in seen} == {7}
    assert not all(laid)
    assert any(0 in a.shape for a, *_ in seen)


def test_arguments_can_be_said() -> None:
    seen: list[Any] = []

    @mj.kernel
    def scaled(x: f32[N], mode: const[str], k: i32) -> f32[N]:
        return x[position()] * k

    def reference(x: Any, mode: str, k: int) -> Any:
        seen.append((x, mode, k))
        return x * np.float32(k)

    check_against(
        scaled,
        reference,
        arguments={"mode": "soft", "k": st.integers(1, 3)},
        elements={"x": values(DTYPES["f32"], low=0, high=1)},
        extents={"N": st.integers(2, 3)},
        where=lambda x, mode, k: k != 2,
        layouts=False,
    )
    assert {k for _, _, k in seen} == {1, 3}
    assert {len(x) for x, _, _ in seen} == {2, 3}
    assert all((x >= 0).all() and (x <= 1).all() and x.flags.c_contiguous for x, _, _ in seen)


def test_names_and_constants_must_be_known() -> None:
    @mj.kernel
    def k(x: f32[N], mode: const[str]) -> f32[N]:
        return x[position()]

    with pytest.raises(ValueError, match="constant 'mode'"):
        check_against(k, lambda x, mode: x)
    with pytest.raises(ValueError, match="no parameter 'y'"):
        check_against(k, lambda x, mode: x, arguments={"mode": "a"}, elements={"y": st.just(1)})
    with pytest.raises(ValueError, match="nothing to compare"):
        check_against(k, lambda x, mode: x, devices=[], interpret=False)


def test_calls_that_are_refused_everywhere_do_not_count() -> None:
    @mj.kernel
    def pairs(x: i32[N]) -> i32[N - 1]:
        require(N % 2 == 0, "pairs")
        return x[position() + 1]

    def reference(x: Any) -> Any:
        assert len(x) % 2 == 0
        return x[1:]

    check_against(pairs, reference)


def test_an_assertion_that_only_some_have_is_a_fault(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @mj.kernel
    def small(x: i32[N]) -> i32[N]:
        assert x[position()] < 100, "small"
        return x[position()]

    check_against(small, lambda x: x)
    blind = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef small(x: i32[N]) -> i32[N]:\n    return x[position()]\n'
    )
    monkeypatch.setattr(type(small), "interpret", lambda self, *args, **named: blind(*args, **named))
    with pytest.raises(Mismatch, match="refused by some only"):
        check_against(small, lambda x: x, max_examples=300)


def test_a_changed_argument_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    @mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
    def bump(x: InOut[i32[N]]) -> None:
        x[global_index()] += 1

    check_against(bump, lambda x: x + 1)
    honest = bump.interpret

    def careless(self: Any, x: Any) -> Any:
        result = honest(x)
        if x.flags.writeable:
            x[...] = result
        return result

    monkeypatch.setattr(type(bump), "interpret", careless)
    with pytest.raises(Mismatch, match="changed the argument 'x'"):
        check_against(bump, lambda x: x + 1)


def test_tolerance_can_be_said() -> None:
    with pytest.raises(Mismatch):
        check_against(wrong_weight, blurred, elements={"x": values(DTYPES["f32"], low=1, high=2)})
    check_against(
        wrong_weight,
        blurred,
        elements={"x": values(DTYPES["f32"], low=1, high=2)},
        tolerance=Tolerance(0.01, 0),
    )


def test_hypothesis_is_asked_for_kindly() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import metaljit.testing"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'metaljit[test]'" in result.stderr.splitlines()[-1]
