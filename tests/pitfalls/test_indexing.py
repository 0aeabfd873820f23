"""Indices that are not where they should be: negative, past the end, too wide for 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from every_type import I32, NUMPY, SIGNED, UNSIGNED, refusal

import metaljit as mj

F = np.float32
BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")


def spec(dtype: Any, rank: int = 1) -> mj.Spec:
    return mj.spec((None,) * rank, dtype)


# ---- negative indices ----

NEGATIVE = [
    ("f32[N]", "a[-1]", "a[N - 1]"),
    ("f32[N]", "a[c]", "a[N - 1]"),
    ("f32[N, M]", "a[i, -1]", "a[M - 1]"),
    ("f32[N, M]", "a[-1, i]", "a[N - 1]"),
    ("f32[N, M, 4]", "a[i, 0, -2]", "a[2]"),
    ("f32x2[N]", "a[-1].x", "a[N - 1]"),
]


@pytest.mark.parametrize(("declared", "index", "instead"), NEGATIVE)
def test_a_negative_constant_index_is_an_error_that_shows_what_to_write(
    declared: str, index: str, instead: str
) -> None:
    text = (
        f'N, M = dims("N M")\n@kernel\ndef f(a: {declared}, c: const[int] = -1) -> f32[N]:\n'
        f"    i = position()\n    return {index}\n"
    )
    rank = 2 if "x2" in declared else declared.count(",") + 1
    found = refusal(text, spec(F, rank))
    assert found.slug == "negative-index"
    assert index[: index.index("]") + 1] in str(found)
    assert instead in found.diagnostics[0].help


READ = """
N, M, K = dims("N M K")

@kernel
def f(a: f32[N], b: f32[N, M], c: f32[N, M, 3], v: f32x2[N], at: T_[K]) -> (f32[K], f32[K], f32[K], f32[K], f32[K],
        f32x2[K], f32[K], f32[K], f32[K]):
    k = position()
    i = at[k]
    t = local_array(f32, 4)
    for j in range(4):
        t[j] = j + 1
    return (a[i], b[i, 0], b[0, i], c[1, i, 2], c[1, 1, i], v[i], t[i], (1.0, 2.0, 3.0, 4.0)[i], v[0][i])
"""


def wide_values(name: str) -> list[int]:
    info = np.iinfo(NUMPY[name])
    values = [
        *range(-5, 6),
        127,
        128,
        255,
        256,
        -128,
        -256,
        2**31,
        2**31 - 1,
        -(2**31),
        2**32,
        2**32 + 1,
        2**32 - 1,
    ]
    values += [2**33 + 2, -(2**32), -(2**32) + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64 - 3]
    return [v for v in values if info.min <= v <= info.max]


def element(a: Any, *index: int) -> Any:
    """What a read gives: an element, or zero outside of any axis."""
    inside = all(0 <= i < n for i, n in zip(index, a.shape, strict=False))
    return a[index] if inside else np.zeros_like(a[(0,) * len(index)])


@pytest.mark.parametrize("name", ["i8", "i32", "i64", "u8", "u32", "u64"])
def test_a_read_outside_of_any_axis_gives_zero(place: str, name: str) -> None:
    """No index wraps around, comes back as its lowest 32 bits, or lands in the next row."""
    a, b, c, v = (
        np.arange(1, np.prod(shape) + 1, dtype=F).reshape(shape)
        for shape in ((4,), (4, 3), (4, 3, 3), (4, 2))
    )
    at = wide_values(name)
    results = mj.kernel_from_text(READ.replace("T_", name))(a, b, c, v, np.array(at, NUMPY[name]))
    for k, i in enumerate(at):
        wanted = (element(a, i), element(b, i, 0), element(b, 0, i), element(c, 1, i, 2), element(c, 1, 1, i),
                  element(v, i), element(a, i), element(a, i), element(v[0], i))  # fmt: skip
        for n, (found, w) in enumerate(zip(results, wanted, strict=True)):
            np.testing.assert_array_equal(found[k], w, f"result {n} at {i}")


BORDERED = """
N, K = dims("N K")

@kernel
def f(a: f32[N], at: T_[K]) -> (f32[K], f32[K], f32[K], f32[K], f32[K], f32[K]):
    i = at[position()]
    return (border(a, "constant", value=9)[i], border(a, "edge")[i], border(a, "reflect")[i],
            border(a, "symmetric")[i], border(a, "wrap")[i], border(a, "antiperiodic")[i])
"""


def folded(mode: str, i: int, n: int) -> tuple[int, int] | None:
    """Which element a border's index means, and its sign; None is the border's value."""
    period = {"reflect": max(2 * n - 2, 1), "symmetric": 2 * n}.get(mode, n)
    match mode:
        case "constant":
            return (i, 1) if 0 <= i < n else None
        case "edge":
            return min(max(i, 0), n - 1), 1
        case "wrap":
            return i % n, 1
        case "antiperiodic":
            return i % n, -1 if (i // n) % 2 else 1
    k = i % period
    return (k if k < n else period - k - (mode == "symmetric"), 1)


WIDE_BORDERS = pytest.mark.xfail(
    strict=True, reason="a wide index is saturated to 63 bits before it is folded"
)


@pytest.mark.parametrize("name", ["i32", "u8", "i64", "u32", pytest.param("u64", marks=WIDE_BORDERS)])
def test_borders_hold_at_every_distance(place: str, name: str) -> None:
    kernel = mj.kernel_from_text(BORDERED.replace("T_", name))
    at = wide_values(name)
    for n in (1, 3, 4):
        a = np.arange(1, n + 1, dtype=F)
        results = kernel(a, np.array(at, NUMPY[name]))
        for mode, found in zip(BORDERS, results, strict=True):
            meant = [folded(mode, i, n) for i in at]
            wanted = [9 if m is None else m[1] * a[m[0]] for m in meant]
            assert found.tolist() == wanted, f"{mode} of {n}"


WRITE = """
N, M, K = dims("N M K")

@kernel(grid="ceil_div(K, 32)", threadgroup=32)
def f(at: T_[K], a: InOut[i32[N]], b: InOut[i32[N, M]], c: InOut[i32[N, M]], h: InOut[u32[N]]):
    k = global_index()
    if k < K:
        i = at[k]
        a[i] = 7
        b[i, 0] = 7
        c[0, i] = 7
        atomic_add(h, i, 1)
        t = local_array(i32, 2)
        t[i] = 5
        a[0] = a[0] + 0 * t[0]
"""


@pytest.mark.parametrize("name", ["i32", "i64", "u32", "u64"])
def test_a_write_outside_of_any_axis_is_dropped(place: str, name: str) -> None:
    kernel = mj.kernel_from_text(WRITE.replace("T_", name))
    zeros = (
        np.zeros(4, np.int32),
        np.zeros((4, 3), np.int32),
        np.zeros((4, 3), np.int32),
        np.zeros(4, np.uint32),
    )
    inside = {i for i in wide_values(name) if 0 <= i < 4}
    outside = np.array([i for i in wide_values(name) if i not in inside], NUMPY[name])
    for result in kernel(outside, *zeros)[1:2] + kernel(outside, *zeros)[3:]:
        assert not result.any()
    a, b, c, h = kernel(np.array([2, *outside.tolist()], NUMPY[name]), *zeros)
    assert a.tolist()[1:] == [0, 7, 0]
    assert np.flatnonzero(b).tolist() == [6]
    assert set(np.flatnonzero(c).tolist()) <= {2}
    assert h.tolist() == [0, 0, 1, 0]


def test_neighbours_past_the_end_are_zero_and_not_the_next_row(place: str) -> None:
    kernel = mj.kernel_from_text(
        'H, W = dims("H W")\n@kernel\ndef f(x: f32[H, W]) -> (f32[H, W], f32[H, W], f32[H, W], f32[H, W]):\n'
        "    y, i = position()\n    return x[y, i + 1], x[y, i - 1], x[y + 1, i], x[y - 1, i]\n"
    )
    x = np.arange(1, 13, dtype=F).reshape(3, 4)
    p = np.pad(x, 1)
    wanted = p[1:-1, 2:], p[1:-1, :-2], p[2:, 1:-1], p[:-2, 1:-1]
    for found, w in zip(kernel(x), wanted, strict=True):
        np.testing.assert_array_equal(found, w)
    line = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    return x[position() + 1]\n'
    )
    assert line(np.array([1, 2, 3, 4], F)).tolist() == [2, 3, 4, 0]


# ---- 32 bits are not enough ----


def test_products_of_positions_wrap_as_integers_of_32_bits_do_or_are_widened(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], stride: i32) -> (i32[N], i64[N], f32[N], f32[N], i64[N]):\n'
        "    i = position()\n"
        "    return i * stride, i64(i) * stride, x[i * stride], x[i64(i) * stride], i64(N) * N * 1048576\n"
    )
    x = np.arange(1, 701, dtype=F)
    i = np.arange(700)
    for stride in (7864320, 65536, -(2**31), 2**31 - 1, 1, 0):
        narrow, wide, a, b, extent = kernel(x, stride)
        exact = i * stride
        wrapped = exact.astype(np.int32)
        np.testing.assert_array_equal(narrow, wrapped)
        np.testing.assert_array_equal(wide, exact)
        for found, index in ((a, wrapped), (b, exact)):
            inside = (0 <= index) & (index < 700)
            np.testing.assert_array_equal(found, np.where(inside, x[np.where(inside, index, 0)], 0))
        assert extent[0] == 700 * 700 * 1048576
        if stride == 7864320:
            assert wide[319] == 2508718080
    worked = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32[N]) -> (i64[N], i32[N]):\n    v = x[position()]\n'
        "    return i64(v) * 65536, v * 65536\n"
    )
    wide, narrow = worked(I32([65537]))
    assert (wide[0], narrow[0]) == (4295032832, 65536)


def huge(shape: tuple[int, ...], dtype: Any = np.uint8) -> Any:
    """An array of that shape and one byte of memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


@pytest.mark.parametrize(
    ("declared", "shape"),
    [
        ("u8[N]", (2**31,)), ("u8[N]", (2**40,)), ("u8[N, M]", (65536, 32768)), ("u8[N, M]", (2**20, 2**20)),
        ("u8[N, M, K]", (2048, 1024, 1024)), ("u8[N, M]", (2**31, 1)), ("u8[N, M]", (2**31, 0)), ("u8x2[N]", (2**30, 2)),
        ("u8x3[N]", (715827883, 3)), ("u8[*S]", (3, 715827883)), ("u8[2 * N]", (2**31,)),
    ],
)  # fmt: skip
def test_an_array_of_more_than_2_to_the_31_elements_is_refused(place: str, declared: str, shape: Any) -> None:
    result = "u8[1]"
    text = (
        f'N, M, K = dims("N M K")\nS = dims("*S")\n@kernel\ndef f(x: {declared}) -> {result}:\n    return 1\n'
    )
    kernel = mj.kernel_from_text(text)
    x = huge(shape)
    for _ in range(2):
        with pytest.raises(mj.SizeError) as caught:
            kernel(x)
        assert caught.value.slug == "array-too-large"
        assert str(shape) in str(caught.value)


def test_a_result_of_more_than_2_to_the_31_elements_is_refused(place: str) -> None:
    square = mj.kernel_from_text(
        'N, M = dims("N M")\n@kernel\ndef f(x: u8[N], y: u8[M]) -> u8[N, M]:\n    i, j = position()\n    return x[i] + y[j]\n'
    )
    for n in (65536, 46341, 2**31 - 1):
        with pytest.raises(mj.SizeError) as caught:
            square(huge((n,)), huge((n,)))
        assert caught.value.slug == "array-too-large"
    assert square(huge((2**31 - 1,)), huge((0,))).shape == (2**31 - 1, 0)
    scaled = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: u8[N], n: i32) -> u8[N * n]:\n    return x[position() // n]\n'
    )
    for n, times in ((70000, 70000), (3, 2**31 - 1), (2**16, 2**16)):  # the product wraps to something small
        with pytest.raises(mj.SizeError):
            scaled(huge((n,)), times)
    vectors = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: u8[N]) -> u8x4[N]:\n    return u8x4(x[position()])\n'
    )
    with pytest.raises(mj.SizeError):
        vectors(huge((2**29,)))


def test_a_grid_of_more_than_2_to_the_31_threads_is_refused(place: str) -> None:
    kernel = mj.kernel_from_text(
        '@kernel(grid="n", threadgroup=256)\ndef f(n: i32, out: Out[i32[4]]):\n    if global_index() == 0:\n        out[0] = 1\n'
    )
    for n in (2**23, 2**31 - 1, 2**24):
        with pytest.raises(mj.SizeError) as caught:
            kernel(n)
        assert caught.value.slug == "grid-too-large"
    assert kernel(3).tolist() == [1, 0, 0, 0]


def test_index_arithmetic_that_could_wrap_is_guarded_or_refused(place: str) -> None:
    """`3 * i` is beyond 32 bits where there are 2**30 elements; nothing may be proved from what has wrapped."""
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: u8[N]) -> u8[N]:\n    i = position()\n'
        "    return x[i + 1073741824 + 1073741824] + x[i * 2147483647] + x[i + 2147483647]\n"
    )
    x = np.arange(1, 6, dtype=np.uint8)
    i = np.arange(5)
    wanted = np.zeros(5, np.uint8)
    for index in (i + 2**31, i * (2**31 - 1), i + 2**31 - 1):
        wrapped = index.astype(np.int32)
        inside = (wrapped >= 0) & (wrapped < 5)
        wanted += np.where(inside, x[np.where(inside, wrapped, 0)], 0).astype(np.uint8)
    np.testing.assert_array_equal(kernel(x), wanted)


@pytest.mark.parametrize("name", [n for n in (*SIGNED, *UNSIGNED) if n != "i32"])
def test_loops_count_in_32_bits_whatever_their_bound_is_typed(place: str, name: str) -> None:
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f(x: {name}[N]) -> i32[N]:\n    s = 0\n'
        "    for k in range(x[position()]):\n        s += k\n    return s\n"
    )
    x = np.array([0, 1, 5, 100], NUMPY[name])
    try:
        found = kernel(x)
    except mj.TypeFault as e:
        assert len(e.diagnostics) == 1  # noqa: PT017
        return
    np.testing.assert_array_equal(found, x.astype(np.int32) * (x.astype(np.int32) - 1) // 2)
