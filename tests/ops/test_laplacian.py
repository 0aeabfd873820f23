"""ops.laplacian against NumPy: modes, axes, dtypes, ranks, layouts, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, arrays, assert_close, assert_same, laid_out, sample, shapes

import metaljit as mj
from metaljit.stdlib_ops.reference import stencil as reference
from metaljit.stdlib_ops.stencil_windows import MODES

F = np.float32
# Each is a specialisation, so they are few; shapes, values and layouts vary within one.
CASES: list[tuple[Any, int, Any, Any]] = [
    *((F, 2, mode, None) for mode in MODES),
    (np.float16, 2, "reflect", None),
    (BF16, 1, "constant", None),
    (np.int8, 2, "wrap", None),
    (np.int16, 1, "antiperiodic", None),
    (np.int32, 3, "symmetric", (0, 2)),
    (np.int64, 1, "edge", None),
    (F, 0, "reflect", None),
    (F, 1, "reflect", None),
    (F, 3, "edge", None),
    (F, 3, ("reflect", "wrap", "constant"), -1),
    (F, 4, "antiperiodic", (1, 3)),
    (F, 2, "constant", ()),
]


def check(x: Array, mode: Any, value: Any, axes: Any) -> None:
    before = x.copy()
    got = mj.ops.laplacian(x, mode=mode, value=value, axes=axes)
    chosen = range(x.ndim) if axes is None else [axes % x.ndim] if isinstance(axes, int) else axes
    want = reference.laplacian(x, mode=mode, value=value or 0, axes=chosen)
    with np.errstate(all="ignore"):
        magnitude = np.abs(x.astype(np.float64))
        magnitude = (
            reference.laplacian(magnitude, mode=_unsigned(mode), value=abs(value or 0), axes=chosen)
            + 8 * magnitude
        )
    assert_close(got, want, magnitude)
    assert_same(x, before)


def _unsigned(mode: Any) -> Any:
    if isinstance(mode, str):
        return "wrap" if mode == "antiperiodic" else mode
    return tuple(map(_unsigned, mode))


@pytest.mark.parametrize(("dtype", "rank", "mode", "axes"), CASES)
@given(data=st.data())
def test_it_is_the_sum_of_second_differences(
    device: str, dtype: Any, rank: int, mode: Any, axes: Any, data: st.DataObject
) -> None:
    x = data.draw(arrays(dtype, data.draw(shapes(rank))))
    has_value = "constant" in (mode if isinstance(mode, tuple) else (mode,))
    value = data.draw(st.sampled_from([None, 0, 3, -2])) if has_value else None
    check(x, mode, value, axes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(device: str, layout: str) -> None:
    x = sample(F, (5, 7), 1, False)
    assert_same(mj.ops.laplacian(laid_out(x, layout)), np.asarray(mj.ops.laplacian(x)))


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("constant", [[3, 2, 14, -5], [-4, 13, -52, 4], [-8, 0, 13, -13], [-29, -18, -19, -37]]),
        ("reflect", [[10, 8, 34, 6], [2, 13, -52, 24], [2, 0, 13, -2], [-6, -8, -8, -10]]),
        ("edge", [[5, 4, 17, 3], [1, 13, -52, 12], [1, 0, 13, -1], [-3, -4, -4, -5]]),
        ("symmetric", [[5, 4, 17, 3], [1, 13, -52, 12], [1, 0, 13, -1], [-3, -4, -4, -5]]),
    ],
)
def test_the_worked_example(device: str, mode: str, want: list[list[int]]) -> None:
    x = np.array([[1, 2, 3, 4], [5, 6, 20, 8], [9, 10, 11, 12], [13, 14, 15, 16]], F)
    assert_same(mj.ops.laplacian(x, mode=mode), np.array(want, F))


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("constant", [0, 1, 2, -12]),
        ("edge", [1, 1, 2, -4]),
        ("reflect", [2, 1, 2, -8]),
        ("symmetric", [1, 1, 2, -4]),
        ("wrap", [8, 1, 2, -11]),
        ("antiperiodic", [-8, 1, 2, -13]),
    ],
)
def test_each_mode_in_one_dimension(device: str, mode: str, want: list[int]) -> None:
    assert_same(mj.ops.laplacian(np.array([1, 2, 4, 8], F), mode=mode), np.array(want, F))


def test_the_border_value_reaches_a_given_output_too(device: str) -> None:
    x = sample(F, (4, 5), 3, False)
    kernel = mj.stdlib.stencil.laplacian
    out = np.empty_like(x)
    fresh = kernel(x, ("constant",) * 2, 9.0, (0, 1))
    assert kernel(x, ("constant",) * 2, 9.0, (0, 1), out=out) is out
    assert_same(out, np.asarray(fresh))
    assert_same(out, reference.laplacian(x, mode="constant", value=9.0))


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x = sample(F, (3, 4), 5, False)
    got = mj.ops.laplacian(mj.asarray(x))
    assert isinstance(got, mj.Array)
    assert got.device.name == device
    assert_same(got, reference.laplacian(x))


def test_16_bit_floats_are_rounded_once(device: str) -> None:
    """60000 + 60000 is beyond float16, the result is not."""
    x = np.array([60000, 40000, 60000], np.float16)
    assert_same(mj.ops.laplacian(x, mode="constant"), np.array([-np.inf, 40000, -np.inf], np.float16))


@pytest.mark.parametrize(
    ("x", "options", "slug", "words"),
    [
        (np.zeros(3), {}, "no-f64", "float64"),
        (np.zeros(3, np.uint8), {}, "op-dtype", "uint8"),
        (np.zeros(3, np.bool_), {}, "op-dtype", "bool"),
        ([1.0, 2.0], {}, "op-dtype", "list"),
        (np.zeros(3, F), {"mode": "mirror"}, "op-argument", "'mirror'"),
        (np.zeros((3, 3), F), {"mode": ("edge",)}, "op-argument", "2 axes"),
        (np.zeros((), F), {"mode": "mirror"}, "op-argument", "'mirror'"),
        (np.zeros(3, F), {"value": 1}, "op-argument", "'reflect'"),
        (np.zeros(3, F), {"axes": 1}, "op-argument", "1 axes"),
        (np.zeros(3, F), {"axes": (0, -1)}, "op-argument", "twice"),
        (np.zeros(3, F), {"axes": 0.5}, "op-argument", "0.5"),
        (np.zeros(3, np.int8), {"mode": "constant", "value": 300}, "number-does-not-fit", "300"),
    ],
)
def test_what_makes_no_sense_is_refused(x: Any, options: dict[str, Any], slug: str, words: str) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        mj.ops.laplacian(x, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def check_two_modes() -> None:
    check(sample(F, (4, 5), 7, False), "reflect", None, None)
    check(sample(F, (4, 5), 7, False), "constant", 2, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p[axis] - 1)", "p[axis] - 2)"),
        ("2 * len(axes)", "len(axes)"),
        ("total - 2", "total + 2"),
        ("value=value", "value=0"),
        ("border(u, modes)", "border(u, 'edge')"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("stencil", old, new)
    with pytest.raises(AssertionError):
        check_two_modes()
