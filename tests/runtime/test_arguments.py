"""What a call takes, and what it refuses before anything runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import programs as p
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from metaljit.dtypes import BF16, BOOL, DTYPES, F16, F32, I32, I64, U8, DType
from metaljit.extents import Lit, Op, Sym, op
from metaljit.program import Place, Program, Requirement, ScalarParam, Uniform
from metaljit.runtime.arguments import from_bf16, scalar, to_bf16
from metaljit.runtime.cpu import Cpu
from metaljit.runtime.launch import Launcher
from metaljit.source import LaunchFault, MetaljitError, ShapeError, SizeError

F = np.float32


def refused(kind: type[MetaljitError], launcher: Launcher, *args: Any, out: Any = None) -> str:
    with pytest.raises(kind) as caught:
        launcher(args, out)
    assert p.WHERE in str(caught.value)
    assert "help: " in str(caught.value)
    return str(caught.value)


@pytest.fixture
def added(cpu: Cpu) -> Launcher:
    return Launcher(cpu, p.added())


@pytest.fixture
def scaled(cpu: Cpu) -> Launcher:
    return Launcher(cpu, p.scaled())


@given(
    hnp.arrays(
        F, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=9), elements=st.integers(-9, 9)
    ),
    st.data(),
)
def test_any_layout_means_the_same(a: Any, data: st.DataObject) -> None:
    from metaljit.runtime.device import find

    wide = np.zeros((2 * a.shape[0] + 1, a.shape[1] + 3), F)
    views = [a, np.asfortranarray(a), a.astype(F)[::-1][::-1]]
    inside = wide[1::2, 2 : 2 + a.shape[1]]
    inside[...] = a
    views.append(inside)
    shifted = np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(F).reshape(a.shape) if a.size else a
    views.append(shifted)
    b = data.draw(st.sampled_from(views))
    c = data.draw(st.sampled_from(views))
    before = b.copy()
    b.flags.writeable = False
    np.testing.assert_array_equal(Launcher(find("cpu"), p.added())([b, c]), a + a)
    np.testing.assert_array_equal(b, before)


def test_broadcast_and_negative_strides(added: Launcher) -> None:
    a = np.broadcast_to(np.arange(4, dtype=F), (3, 4))
    b = np.arange(12, dtype=F).reshape(3, 4)[::-1, ::-1]
    np.testing.assert_array_equal(added([a, b]), a + b)


def test_a_kernel_sees_aligned_memory(cpu: Cpu) -> None:
    body = "    out[i] = float((unsigned long)a % 4) + a[i];"
    program = p.elementwise("aligned", (p.array("a", p.N),), (p.array("out", p.N, role="out"),), body)
    shifted = np.frombuffer(b"\0" * 33, np.uint8)[1:].view(F)
    assert not shifted.flags.aligned
    np.testing.assert_array_equal(Launcher(cpu, program)([shifted]), np.zeros(8))


def test_subclasses_are_arrays_but_masks_are_not_lost(added: Launcher, tmp_path: Any) -> None:
    a = np.memmap(tmp_path / "a", F, "w+", shape=(2, 2))
    a[...] = 3
    result = added([a, np.array([[1, 2], [3, 4]], F)])
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, [[4, 5], [6, 7]])
    assert "mask would be lost" in refused(LaunchFault, added, np.ma.zeros((2, 2), F), a)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1.0]], "not a list"),
        (((1.0,),), "not a tuple"),
        (1.0, "the number 1.0"),
        (np.float32(1), "the number"),
        (None, "None"),
        ("x", "builtins.str"),
    ],
)
def test_what_is_no_array_is_refused(added: Launcher, value: Any, words: str) -> None:
    text = refused(LaunchFault, added, np.ones((1, 1), F), value)
    assert words in text
    assert "`b` is declared as f32[H, W]" in text
    assert "np.asarray(b, dtype=np.float32)" in text


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("f8", "the hardware has no f64"),
        ("f2", "f16"),
        ("i4", "i32"),
        ("c8", "complex64"),
        ("O", "object"),
        (">f4", "other byte order"),
        ([("x", "f4")], "structured"),
        ("M8[s]", "datetime64"),
        (ml_dtypes.bfloat16, "bf16"),
    ],
)
def test_arrays_are_never_converted(added: Launcher, dtype: Any, words: str) -> None:
    text = refused(LaunchFault, added, np.ones((1, 1), F), np.zeros((1, 1), dtype))
    assert words in text
    assert "b.astype(np.float32)" in text


def test_equal_dtypes_need_not_be_the_same_object(added: Launcher) -> None:
    a = np.ones((1, 2), np.dtype("<f4", metadata={"unit": "m"}))
    np.testing.assert_array_equal(added([a, a]), [[2, 2]])


def test_wrong_rank(added: Launcher) -> None:
    text = refused(ShapeError, added, np.ones(3, F), np.ones((3, 1), F))
    assert "`a` is declared as f32[H, W], and got an array of 1 axis, shape (3,)" in text


def test_a_mismatch_names_both_arguments_and_their_values(added: Launcher) -> None:
    text = refused(ShapeError, added, np.ones((2, 3), F), np.ones((2, 4), F))
    for words in ("W is 3", "axis 1 of `a` is 3", "axis 1 of `b` is 4"):
        assert words in text


def stencil(extent: Any) -> Program:
    first = p.array("a", extent)
    return p.elementwise(
        "stencil",
        (first, p.array("b", Sym("N"))),
        (p.array("out", Sym("N"), role="out"),),
        "    out[i] = a[0] + b[i];",
    )


@pytest.mark.parametrize(
    ("extent", "good", "bad"),
    [
        (op("+", Sym("N"), Lit(1)), 4, 3),
        (op("*", Lit(4), Sym("N")), 12, 11),
        (op("-", Lit(7), Sym("N")), 4, 5),
        (op("+", op("*", Lit(2), op("-", Sym("N"), Lit(1))), Lit(3)), 7, 8),
        (op("neg", op("neg", Sym("N"))), 3, 2),
        (op("//", Sym("N"), Lit(2)), 1, 2),
    ],
)
def test_extents_that_are_expressions(cpu: Cpu, extent: Any, good: int, bad: int) -> None:
    launcher = Launcher(cpu, stencil(extent))
    assert launcher([np.ones(good, F), np.ones(3, F)]).shape == (3,)
    refused(ShapeError, launcher, np.ones(bad, F), np.ones(3, F))


def alone(extent: Any) -> Program:
    return p.elementwise(
        "alone", (p.array("a", extent),), (p.array("out", Sym("N"), role="out"),), "    out[i] = a[i];"
    )


def test_one_unknown_is_solved(cpu: Cpu) -> None:
    launcher = Launcher(cpu, alone(op("+", op("*", Lit(2), Sym("N")), Lit(1))))
    assert launcher([np.ones(9, F)]).shape == (4,)
    assert "no N makes" in refused(ShapeError, launcher, np.ones(8, F))
    assert "no N makes" in refused(ShapeError, launcher, np.ones(0, F))


@pytest.mark.parametrize(
    "extent", [op("//", Sym("N"), Lit(2)), op("*", Sym("N"), Sym("N")), Op("+", (Sym("N"), Sym("M")))]
)
def test_what_cannot_be_solved_is_said(cpu: Cpu, extent: Any) -> None:
    assert "cannot be found" in refused(ShapeError, Launcher(cpu, alone(extent)), np.ones(4, F))


def test_negative_results(cpu: Cpu) -> None:
    out = p.array("out", op("-", p.N, Lit(2)), role="out")
    program = p.elementwise("inner", (p.array("a", p.N),), (out,), "    out[i] = a[i + 1];")
    launcher = Launcher(cpu, program)
    assert launcher([np.ones(2, F)]).shape == (0,)
    text = refused(ShapeError, launcher, np.ones(1, F))
    assert "N - 2, which is -1 where N = 1" in text


def test_sizes_are_refused_by_arithmetic(cpu: Cpu, added: Launcher) -> None:
    vast = np.broadcast_to(np.zeros((1, 1), F), (2**16, 2**16))
    assert "4294967296 elements" in refused(SizeError, added, vast, vast)
    thin = np.empty((2**40, 0), F)
    refused(SizeError, added, thin, thin)
    outer = p.elementwise(
        "outer",
        (p.array("a", p.N), p.array("b", p.H)),
        (p.array("out", p.N, p.H, role="out"),),
        "    out[i] = a[0] * b[0];",
    )
    refused(SizeError, Launcher(cpu, outer), np.ones(2**16, F), np.ones(2**16, F))


def test_the_axis_of_lanes_is_no_extent(cpu: Cpu) -> None:
    a, out = p.array("a", p.N, lanes=3), p.array("out", p.N, lanes=3, role="out")
    body = "    for (int c = 0; c < 3; ++c) { out[3 * i + c] = a[3 * i + 2 - c]; }"
    program = p.elementwise("shaded", (a,), (out,), body)
    launcher = Launcher(cpu, program)
    pixels = np.arange(12, dtype=F).reshape(4, 3)
    np.testing.assert_array_equal(launcher([pixels]), pixels[:, ::-1])
    text = refused(ShapeError, launcher, np.ones((4, 4), F))
    assert "f32x3[N]" in text
    assert "3 lanes" in text
    refused(ShapeError, launcher, np.ones(4, F))


def test_bool_bytes_are_passed_as_they_are(cpu: Cpu) -> None:
    a, out = p.array("a", p.N, dtype=BOOL), p.array("out", p.N, dtype=BOOL, role="out")
    program = p.elementwise("turned", (a,), (out,), "    out[i] = ((device const uchar*)a)[i] == 0;")
    odd = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    np.testing.assert_array_equal(Launcher(cpu, program)([odd]), [True, False, False, False])


def test_an_array_of_no_axes(cpu: Cpu) -> None:
    program = p.elementwise(
        "doubled", (p.array("a"),), (p.array("out", role="out"),), "    out[0] = 2 * a[0];"
    )
    launcher = Launcher(cpu, program)
    for value in (np.array(2, F), F(2)):
        result = launcher([value])
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result == 4


def test_more_than_31_buffers(cpu: Cpu) -> None:
    arrays = tuple(p.array(f"a{i}", p.N) for i in range(29))
    program = p.elementwise("wide", arrays, (p.array("out", p.N, role="out"),), "    out[i] = a0[i];")
    with pytest.raises(SizeError, match="30 arrays, and device 'cpu' takes 29"):
        Launcher(cpu, program)


GOOD = [
    (F32, 0.1, 0.1), (F32, 3, 3.0), (F32, True, 1.0), (F32, np.float64(2.5), 2.5), (F32, np.int8(-3), -3.0),
    (F32, float("inf"), float("inf")), (F16, 65504.0, 65504.0), (F16, np.array(1.5), 1.5),
    (BF16, ml_dtypes.bfloat16(1.5), 1.5), (BF16, 3e38, 3e38), (I32, -(2**31), -(2**31)), (I32, 3.0, 3),
    (I32, np.float32(-2.0), -2), (I32, True, 1), (U8, np.uint64(255), 255), (I64, 2**63 - 1, 2**63 - 1),
    (BOOL, True, True), (BOOL, np.bool_(False), False), (BOOL, 1, True),
]  # fmt: skip
BAD: list[tuple[DType, Any]] = [
    (F32, 1e39), (F32, 10**400), (F16, 65520.0), (F16, 1e300), (BF16, 3.4e38), (I32, 2**31), (I32, 3.5),
    (I32, float("nan")), (I32, float("inf")), (U8, 300), (U8, -1), (I64, 2**63), (I64, 9.3e18), (BOOL, 2),
    (BOOL, 0.5), (F32, "1"), (F32, 1j), (F32, None), (F32, [1.0]), (F32, np.array([1.0])),
    (I32, np.datetime64("2020")),
]  # fmt: skip


def shown(program: Program, dtype: DType, value: Any) -> Any:
    return scalar(program, ScalarParam("x", dtype, 1), value)


@pytest.mark.parametrize(("dtype", "value", "kept"), GOOD)
def test_numbers_that_survive(dtype: DType, value: Any, kept: Any) -> None:
    found = shown(p.scaled(), dtype, value)
    assert found == (kept,)
    assert type(found[0]) is type(kept)


@pytest.mark.parametrize(("dtype", "value"), BAD)
def test_numbers_that_do_not(dtype: DType, value: Any) -> None:
    with pytest.raises(LaunchFault, match=f"`x` is declared as {dtype}"):
        shown(p.scaled(), dtype, value)


@given(st.sampled_from([d for d in DTYPES.values() if d.is_integer]), st.integers(-(2**70), 2**70))
def test_integers_survive_exactly_where_numpy_holds_them(dtype: DType, value: int) -> None:
    fits = np.iinfo(dtype.numpy).min <= value <= np.iinfo(dtype.numpy).max
    try:
        assert shown(p.scaled(), dtype, value) == (value,)
    except LaunchFault:
        assert not fits
    else:
        assert fits


@given(st.floats(width=32))
def test_bf16_rounds_as_ml_dtypes_does(value: float) -> None:
    expected = np.array(value, F).astype(ml_dtypes.bfloat16)
    found = from_bf16(to_bf16(value))
    np.testing.assert_array_equal(F(found), expected.astype(F))


def test_fast_and_careful_scalars_agree(scaled: Launcher) -> None:
    a = np.arange(3, dtype=F)
    for factor, offset in ((2.0, 3), (2, np.int64(3)), (np.float64(2), 3.0), (1e5 * 2e-5, True + 2)):
        np.testing.assert_array_equal(scaled([a, factor, offset]), a * 2 + 3)
    bad: list[tuple[Any, Any]] = [(1e39, 3), (2.0, 2**31), (2.0, "3"), (2.0, 3.5)]
    for pair in bad:
        refused(LaunchFault, scaled, a, *pair)
    assert np.isnan(scaled([a, float("nan"), 0])).all()


def test_vectors(cpu: Cpu) -> None:
    program = p.elementwise(
        "tinted",
        (p.array("a", p.N), ScalarParam("c", F32, 3)),
        (p.array("out", p.N, role="out"),),
        "    out[i] = a[i] * p.c_x + p.c_y - p.c_z;",
        tuple(Uniform(f"c_{axis}", F32, scalar="c", lane=lane) for lane, axis in enumerate("xyz")),
    )
    launcher = Launcher(cpu, program)
    for c in ((2, 3.0, True), [2, 3, 1], np.array([2, 3, 1]), np.array([2, 3, 1], np.float16)):
        np.testing.assert_array_equal(launcher([np.arange(3, dtype=F), c]), [2, 4, 6])
    bad: list[Any] = [(1, 2), 1.0, np.ones((3, 1)), (1, 2, "x"), (1, 2, 1e39), "abc", None]
    for vector in bad:
        refused(LaunchFault, launcher, np.ones(3, F), vector)


def test_scalars_in_shapes(cpu: Cpu) -> None:
    launcher = Launcher(cpu, p.padded())
    for extra in (0, 2, 5, 2):
        result = launcher([np.ones(3, F), extra])
        np.testing.assert_array_equal(result, [1] * 3 + [0] * extra)
    assert "N + extra, which is -1 where N = 3, extra = -4" in refused(
        ShapeError, launcher, np.ones(3, F), -4
    ).replace("extra = -4, N = 3", "N = 3, extra = -4")


def test_requirements(cpu: Cpu) -> None:
    rules = (
        Requirement(Op(">", (Sym("N"), Lit(1))), "two samples at least", Place("user/kernels.py:8:5")),
        Requirement(Op("<", (Sym("factor"), Lit(0.25))), "unstable", Place("user/kernels.py:9:5")),
    )
    launcher = Launcher(
        cpu,
        p.elementwise(
            "stepped",
            (p.array("a", p.N), ScalarParam("factor", F32, 1)),
            (p.array("out", p.N, role="out"),),
            "    out[i] = a[i] * p.factor;",
            (Uniform("factor", F32, scalar="factor"),),
            requirements=rules,
        ),
    )
    launcher([np.ones(2, F), 0.125])
    for n, factor, words in ((1, 0.125, "8:5: error: stepped: two samples"), (2, 0.25, "factor = 0.25")):
        for _ in range(2):
            with pytest.raises(LaunchFault, match=words) as caught:
                launcher([np.ones(n, F), factor])
            assert caught.value.slug == "requirement"
    with pytest.raises(LaunchFault, match="two samples"):
        launcher([np.ones(0, F), 0.125])
