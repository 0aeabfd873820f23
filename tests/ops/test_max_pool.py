"""ops.max_pool against NumPy: windows, layouts, index modes, ties, NaN, padding, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from samples import BF16, LAYOUTS, Array, arrays, assert_same, laid_out, sample

import metaljit as mj
from metaljit.stdlib_ops.pooling import INDEX_MODES
from metaljit.stdlib_ops.reference import pooling as reference

F = np.float32
NUMBERS = [*(np.dtype(f"{k}{w}") for k in "ui" for w in (1, 2, 4, 8)), np.dtype(np.float16), BF16]


def expected(
    x: Array,
    size: tuple[int, ...],
    stride: tuple[int, ...] | None = None,
    padding: Any = 0,
    dilation: tuple[int, ...] | None = None,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    indices: str | None = None,
    nan: str = "propagate",
) -> tuple[Array, Array]:
    """The reference, with arguments as the op takes them."""
    axes = (
        tuple(range(x.ndim - 4, x.ndim))
        if layout == "4D"
        else [k for k, c in enumerate(layout) if c in "DHW"]
    )
    count = len(axes)
    stride, dilation = stride or size, dilation or (1,) * count
    pads = (
        [padding] * count
        if isinstance(padding, str)
        else [(p, p) for p in padding]
        if padding
        else [(0, 0)] * count
    )
    window = [1] * x.ndim
    before, counts = [], []
    for k, axis in enumerate(axes):
        window[axis] = size[k]
        b, n = reference.window_counts(x.shape[axis], size[k], stride[k], dilation[k], pads[k], ceil_mode)
        before.append(b)
        counts.append(n)
    mode = indices or f"global_{count}d"
    index = reference.max_pool_index(mode, x.shape, window)
    return reference.max_pool(x, axes, size, stride, dilation, before, counts, index, nan)


def check(x: Array, size: tuple[int, ...], **options: Any) -> None:
    before = x.copy()
    values, indices = mj.ops.max_pool(x, size, return_indices=True, **options)
    want_values, want_indices = expected(x, size, **options)
    assert_same(values, want_values)
    assert_same(indices, want_indices)
    options.pop("indices", None)
    assert_same(mj.ops.max_pool(x, size, **options), want_values)
    assert_same(x, before)


# Windows are constants of the kernel, so they are few; shapes, values and memory layouts vary.
WINDOWS: list[dict[str, Any]] = [
    {"size": (2, 2)},
    {"size": (3, 2), "stride": (2, 1), "padding": (1, 1)},
    {"size": (2, 3), "stride": (3, 2), "padding": (1, 1), "dilation": (2, 1), "ceil_mode": True},
    {"size": (3, 3), "stride": (2, 2), "padding": "same"},
    {"size": (2, 2), "stride": (1, 1), "padding": "same_lower"},
    {"size": (1, 1), "stride": (2, 2), "ceil_mode": True},
    {"size": (3, 2), "padding": "valid", "layout": "NHWC"},
    {"size": (3,), "stride": (2,), "padding": (1,), "layout": "NCW"},
    {"size": (2,), "stride": (1,), "layout": "W"},
    {"size": (2, 1, 2), "stride": (1, 2, 2), "layout": "NDHWC"},
    {"size": (1, 2, 1, 2), "layout": "4D"},
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(data=st.data())
def test_it_is_the_largest_of_each_window(device: str, window: dict[str, Any], data: st.DataObject) -> None:
    rank = len(window.get("layout", "NCHW")) if window.get("layout") != "4D" else 5
    shape = data.draw(st.tuples(*[st.integers(0, 5)] * rank))
    x = data.draw(arrays(F, shape))
    try:
        mj.ops.max_pool(x, window["size"], **{k: v for k, v in window.items() if k != "size"})
    except mj.ShapeError:
        assume(False)
    check(x, **window)


@pytest.mark.parametrize("dtype", NUMBERS)
@given(data=st.data())
def test_every_number_type(device: str, dtype: np.dtype[Any], data: st.DataObject) -> None:
    x = data.draw(arrays(dtype, data.draw(st.tuples(*[st.integers(1, 6)] * 2))))
    check(x, (2, 2), stride=(1, 1), padding=(1, 1), layout="HW")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mode", INDEX_MODES)
def test_every_index_mode(device: str, mode: str, layout: str) -> None:
    check(
        sample(F, (2, 3, 5, 4), 3, True), (2, 2), stride=(1, 2), padding=(1, 0), layout=layout, indices=mode
    )


@pytest.mark.parametrize("mode", ["local_1d", "local_2d", "local_3d", "local_4d", "global_4d"])
def test_index_modes_over_four_pooled_axes(device: str, mode: str) -> None:
    x = sample(F, (3, 4, 5, 4), 3, False)
    check(x, (2, 2, 3, 2), stride=(1, 1, 1, 1), dilation=(1, 2, 1, 1), layout="4D", indices=mode)


@pytest.mark.parametrize("nan", ["propagate", "compare"])
@given(st.integers(0, 2**16))
def test_nan(device: str, nan: str, seed: int) -> None:
    x = np.random.default_rng(seed).choice(np.array([np.nan, 1, 2, -np.inf, np.inf], F), (6, 6))
    check(x, (2, 3), padding=(1, 1), layout="HW", nan=nan)


@pytest.mark.parametrize("memory", LAYOUTS)
def test_every_memory_layout_gives_the_same(device: str, memory: str) -> None:
    check(laid_out(sample(F, (2, 3, 6, 7), 1, False), memory), (2, 2))


def test_nothing_but_infinities(device: str) -> None:
    x = np.full((1, 1, 4, 4), -np.inf, F)
    check(x, (3, 3), stride=(2, 2), padding=(1, 1))
    small = np.full((1, 1, 2, 2), -128, np.int8)
    values, indices = mj.ops.max_pool(small, 2, padding=1, stride=1, return_indices=True)
    assert values.max() == -128
    assert indices[0, 0].tolist() == [[0, 0, 1], [0, 0, 1], [2, 2, 3]]


def test_worked_examples(device: str) -> None:
    nan = float("nan")
    values, indices = mj.ops.max_pool(np.array([1, nan, 2], F), 2, stride=1, layout="W", return_indices=True)
    assert np.isnan(values).all()
    assert indices.tolist() == [1, 1]
    a = np.array([[0, 3, 0, 0], [4, 0, 4, 8], [7, 8, 4, 5], [2, 3, 4, 5]], F)
    b = np.array([[2, 5, 2, 7], [4, 3, 4, 6], [8, 3, 2, 0], [7, 5, 9, 3]], F)
    x = np.stack([a, b])[..., None]
    options: dict[str, Any] = {"layout": "NHWC", "return_indices": True}
    values, per_image = mj.ops.max_pool(x, 2, indices="global_3d", **options)
    assert values[..., 0].tolist() == [[[4, 8], [8, 5]], [[5, 7], [8, 9]]]
    assert per_image[..., 0].tolist() == [[[4, 7], [9, 11]], [[1, 3], [8, 14]]]
    assert mj.ops.max_pool(x, 2, indices="global_4d", **options)[1][1, ..., 0].tolist() == [
        [17, 19],
        [24, 30],
    ]


@pytest.mark.parametrize(
    ("n", "k", "s", "p", "want"),
    [(5, 2, 2, 0, (2, 3, 3, 2)), (4, 1, 2, 0, (2, 2, 2, 2)), (6, 1, 2, 0, (3, 3, 3, 3)), (5, 3, 2, 1, (3, 3, 3, 2)),
     (7, 3, 3, 1, (3, 3, 3, 2)), (6, 3, 4, 1, (2, 2, 2, 1))],
)  # fmt: skip
def test_how_many_windows_there_are(
    device: str, n: int, k: int, s: int, p: int, want: tuple[int, int, int, int]
) -> None:
    x = np.zeros(n, F)
    options: dict[str, Any] = {"stride": s, "layout": "W"}
    got = (
        mj.ops.max_pool(x, k, padding=p, **options).size,
        mj.ops.max_pool(x, k, padding=p, ceil_mode=True, **options).size,
        mj.ops.max_pool(x, k, padding="same", **options).size,
        mj.ops.max_pool(x, k, padding="valid", **options).size,
    )
    assert got == want


def test_numbers_stand_for_all_axes(device: str) -> None:
    x = sample(F, (1, 2, 7, 7), 9, False)
    want = mj.ops.max_pool(x, (3, 3), stride=(2, 2), padding=((1, 1), (1, 1)), dilation=(1, 1))
    assert_same(mj.ops.max_pool(x, 3, stride=2, padding=1, dilation=1), np.asarray(want))


def test_sizes_do_not_compile_again(device: str) -> None:
    options: dict[str, Any] = {"stride": 2, "padding": "same", "layout": "HW"}
    mj.ops.max_pool(np.zeros((5, 4), F), 3, **options)
    kernel = mj.stdlib.pooling.max_pool
    before = len(kernel._launchers)
    for n in range(1, 20):
        mj.ops.max_pool(np.zeros((n, 2 * n), F), 3, **options)
    assert len(kernel._launchers) == before


def test_arrays_on_the_device_stay_there(device: str) -> None:
    x = sample(F, (1, 2, 4, 4), 5, False)
    values, indices = mj.ops.max_pool(mj.asarray(x), 2, return_indices=True)
    assert isinstance(values, mj.Array)
    assert isinstance(indices, mj.Array)
    assert_same(values, expected(x, (2, 2))[0])


X = np.zeros((1, 1, 4, 4), F)


@pytest.mark.parametrize(
    ("x", "size", "options", "slug", "words"),
    [
        (X.astype(np.float64), 2, {}, "no-f64", "float64"),
        (X.astype(np.bool_), 2, {}, "op-dtype", "bool"),
        (X, 0, {}, "op-argument", "`size`"),
        (X, (2, 2, 2), {}, "op-argument", "2 axes"),
        (X, 2.5, {}, "op-argument", "2.5"),
        (X, 2, {"stride": 0}, "op-argument", "`stride`"),
        (X, 2, {"padding": -1}, "op-argument", "`padding`"),
        (X, 2, {"padding": ((1, 1),)}, "op-argument", "pairs"),
        (X, 2, {"padding": "SAME"}, "op-argument", "'SAME'"),
        (X, 2, {"padding": "same", "ceil_mode": True}, "op-argument", "ceil_mode"),
        (X, 2, {"dilation": 0}, "op-argument", "`dilation`"),
        (X, 5, {}, "op-shape", "reaches over 5"),
        (X, 3, {"dilation": 2}, "op-shape", "reaches over 5"),
        (X, 2, {"padding": 2}, "op-shape", "no element"),
        (X, 2, {"padding": ((0, 3), (0, 0))}, "op-shape", "no element"),
        (X[:, :, :1], (2, 1), {"dilation": 3, "padding": (1, 0)}, "op-shape", "reaches over 4"),
        (X[:, :, :2], (2, 1), {"dilation": 3, "padding": (1, 0)}, "op-shape", "no element"),
        (X[:, :, :0], 1, {}, "op-shape", "0 elements"),
        (X, 2, {"layout": "NHW"}, "op-shape", "'NHW'"),
        (X, 2, {"layout": "NCXY"}, "op-argument", "'NCXY'"),
        (X, 2, {"layout": "NCNC"}, "op-argument", "'NCNC'"),
        (X[0, 0], 2, {}, "op-shape", "2 axes"),
        (X[0], 2, {"layout": "4D"}, "op-shape", "'4D'"),
        (X, 2, {"indices": "local_2d"}, "op-argument", "return_indices"),
        (X, 2, {"return_indices": True, "indices": "2d"}, "op-argument", "'2d'"),
        (X, 2, {"nan": "ignore"}, "op-argument", "'ignore'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    x: Any, size: Any, options: dict[str, Any], slug: str, words: str
) -> None:
    with pytest.raises(mj.MetaljitError) as caught:
        mj.ops.max_pool(x, size, **options)
    assert caught.value.slug == slug
    assert words in str(caught.value)


def check_mixed() -> None:
    """Windows that differ along the axes, over values of both signs with a few NaN."""
    for nan in ("propagate", "compare"):
        for scale in (1, -1):
            x = sample(F, (6, 7), 7, False) * F(scale) - F(50)
            x[1, 1] = x[4, 4] = np.nan
            check(x, (2, 3), stride=(1, 2), padding=(1, 2), dilation=(1, 2), layout="HW", nan=nan)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("v > best", "v >= best"),
        ("v > best", "v < best"),
        ("nans and isnan(v)", "False"),
        ("-i32(pads[1])", "-i32(pads[0])"),
        ("range(size[1])", "range(size[0])"),
        ("j * dilation[1]", "j"),
        ("value=T(-inf)", "value=0"),
        ("max(0, -(start", "(-(start"),
        ("best = u[first]", "best = T(-inf)"),
        ("pitch(axes, 1", "pitch(axes, 0"),
        ("steps *= shape[inner]", "steps *= 1"),
        ("at += missed", "at -= missed"),
    ],
)
def test_a_planted_mistake_is_found(mutate: Any, old: str, new: str) -> None:
    mutate("pooling", old, new)
    with pytest.raises(AssertionError):
        check_mixed()
