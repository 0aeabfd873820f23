"""Layouts, views, empty arrays, arrays without axes, storage that is shared."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from every_type import I16, NUMPY

import metaljit as mj

F = np.float32

MIXED = """
S = dims("*S")

@kernel
def f(x: f32[*S], y: i16[*S]) -> (f32[*S], i16[*S]):
    p = position()
    return 2 * x[p] + y[p], y[p] * 3
"""


def misaligned(a: Any) -> Any:
    """The same numbers, an odd number of bytes into their memory."""
    raw = np.zeros(a.nbytes + 1, np.uint8)
    view = raw[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def padded(a: Any) -> Any:
    """The same numbers inside of a larger array of other ones."""
    store = np.full([n + 2 for n in a.shape], 77, a.dtype)
    view = store[tuple(slice(1, -1) for _ in a.shape)]
    view[...] = a
    return view


def inside_records(a: Any) -> Any:
    """The same numbers, each beside one byte of something else."""
    records = np.zeros(a.shape, [("a", a.dtype), ("b", np.int8)])
    records["a"] = a
    return records["a"]


def read_only(a: Any) -> Any:
    b = a.copy()
    b.flags.writeable = False
    return b


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda a: a.copy(),
    "column-major": lambda a: np.asfortranarray(a),
    "transposed": lambda a: a.T.copy().T,
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "last axis reversed": lambda a: a[..., ::-1].copy()[..., ::-1],
    "stepped": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "first axis stepped": lambda a: np.repeat(a, 3, axis=0)[::3],
    "moved axes": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    "padded": padded,
    "misaligned": misaligned,
    "read-only": read_only,
    "field of a record": lambda a: inside_records(a),
}


@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 4), (1, 1), (1, 5, 1)])
def test_every_layout_of_the_arguments_gives_the_same(place: str, shape: tuple[int, ...]) -> None:
    """No layout is remembered from an earlier call with equal shapes, and no argument is changed."""
    kernel = KERNELS["mixed"]
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=shape).astype(F), rng.integers(-9, 9, shape).astype(np.int16)
    wanted = 2 * x + y, y * 3
    for first, second in product(LAYOUTS.values(), list(LAYOUTS.values())[:4]):
        a, b = first(x), second(y)
        for found, w in zip(kernel(a, b), wanted, strict=True):
            np.testing.assert_array_equal(found, w)
        np.testing.assert_array_equal(a, x)
        np.testing.assert_array_equal(b, y)


def test_broadcast_arguments(place: str) -> None:
    x, y = np.broadcast_to(np.arange(4, dtype=F), (3, 4)), np.broadcast_to(I16([[1], [2], [3]]), (3, 4))
    found, _ = KERNELS["mixed"](x, y)
    np.testing.assert_array_equal(found, 2 * x + y)


def test_reversed_views_in_and_out(place: str) -> None:
    x = np.arange(6, dtype=F)
    zeros = np.zeros(6, np.int16)
    assert KERNELS["mixed"](x[::-1], zeros)[0].tolist() == [10, 8, 6, 4, 2, 0]
    store, other = np.zeros(6, F), np.zeros(6, np.int16)
    KERNELS["mixed"](x[::-1], zeros, out=(store[::-1], other))
    assert store.tolist() == [0, 2, 4, 6, 8, 10]


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "read-only"])
def test_every_layout_of_the_storage_is_filled_and_nothing_beside_it(place: str, layout: str) -> None:
    x, y = np.arange(12, dtype=F).reshape(3, 4), np.ones((3, 4), np.int16)
    for start in (7, -1):
        first = LAYOUTS[layout](np.full((3, 4), start, F))
        second = LAYOUTS[layout](np.full((3, 4), start, np.int16))
        if layout.endswith("stepped") or layout == "padded":
            around = first.base
            while around.base is not None:
                around = around.base
            before = around.copy()
        result = KERNELS["mixed"](x, y, out=(first, second))
        assert result[0] is first
        assert result[1] is second
        np.testing.assert_array_equal(first, 2 * x + y)
        np.testing.assert_array_equal(second, y * 3)
        if layout.endswith("stepped") or layout == "padded":
            assert np.count_nonzero(around != before) <= 12


def test_views_at_an_odd_byte(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i16[N]) -> i16[N]:\n    return x[position()] + 0\n'
    )
    x = np.frombuffer(bytes(range(7)), "<i2", offset=1, count=3)
    assert kernel(x).tolist() == [513, 1027, 1541]


def test_vectors_lie_as_tightly_as_numpy_packs_them(place: str) -> None:
    """A vector of four need not begin where a multiple of its size is."""
    names = ["f32", "i8", "u16", "i64", "f16"]
    results = ", ".join(f"{n}x{k}[N]" for n, k in product(names, (2, 4)))
    parts = ", ".join(f"a_{n}_{k}[i] + a_{n}_{k}[N - 1 - i]" for n, k in product(names, (2, 4)))
    parameters = ", ".join(f"a_{n}_{k}: {n}x{k}[N]" for n, k in product(names, (2, 4)))
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f({parameters}) -> ({results}):\n    i = position()\n    return {parts}\n'
    )
    arrays = []
    for n, k in product(names, (2, 4)):
        store = np.arange(1 + 5 * k).astype(NUMPY[n])
        arrays.append(store[1:].reshape(5, k))  # one element past the alignment of its memory
    for array, found in zip(arrays, kernel(*arrays), strict=True):
        np.testing.assert_array_equal(found, array + array[::-1])
    outs = tuple(np.zeros(1 + a.size, a.dtype)[1:].reshape(a.shape) for a in arrays)
    kernel(*arrays, out=outs)
    for array, found in zip(arrays, outs, strict=True):
        np.testing.assert_array_equal(found, array + array[::-1])


# ---- no elements ----

EMPTY = """
A, B, C = dims("A B C")

@kernel
def f(x: f32[A, B, C]) -> (f32[A, B, C], i64[A, B, C]):
    a, b, c = position()
    assert A > 0 and B > 0 and C > 0, "nothing runs"
    return x[a, b, c] + 1, i64(x[a, b, c])
"""


def test_a_zero_in_every_place_gives_empty_results_and_no_launch(
    place: str, request: pytest.FixtureRequest
) -> None:
    stand_in = request.getfixturevalue("stand_in") if place == "stand-in" else None
    launches = len(stand_in.module.runs) if stand_in else 0
    kernel = mj.kernel_from_text(EMPTY)
    for shape in product((0, 1, 3), repeat=3):
        if 0 not in shape:
            continue
        for x in (np.zeros(shape, F), np.zeros(shape[::-1], F).T, np.broadcast_to(F(0), shape)):
            found = kernel(x)
            assert [r.shape for r in found] == [shape, shape]
            assert [r.dtype for r in found] == [F, np.int64]
        out = np.zeros(shape, F), np.zeros(shape, np.int64)
        assert kernel(np.zeros(shape, F), out=out) is out
    if stand_in:
        assert len(stand_in.module.runs) == launches


NOTHING = """
M, N, K = dims("M N K")

@kernel
def f(a: f32[M, K], b: f32[K, N], c: i32[K]) -> (f32[M, N], f32[M, N], f32[M, N], f32[M, N], i32[M, N], i32[M, N], i32[M, N],
        bool[M, N], bool[M, N], f32[M, N], f32[M, N], f32[M, N]):
    i, j = position()
    return (sum(a[i, k] * b[k, j] for k in range(K)), prod(a[i, k] for k in range(K)), max(a[i, k] for k in range(K)),
            min(a[i, k] for k in range(K)), argmax(a[i, k] for k in range(K)), max(c[k] for k in range(K)),
            min(c[k] for k in range(K)), any(c[k] > 0 for k in range(K)), all(c[k] > 0 for k in range(K)),
            border(a, "edge")[i, 0], border(a, "wrap")[i, j - 5], border(b, "constant", value=4)[0, j])
"""


def test_reductions_and_borders_of_nothing(place: str) -> None:
    kernel = mj.kernel_from_text(NOTHING)
    results = kernel(np.zeros((2, 0), F), np.zeros((0, 3), F), np.zeros(0, np.int32))
    top = 2**31 - 1
    wanted = [0, 1, -np.inf, np.inf, -1, -top - 1, top, False, True, 0, 0, 4]
    for k, (found, w) in enumerate(zip(results, wanted, strict=True)):
        assert found.shape == (2, 3)
        assert (found == w).all(), f"result {k}"
    assert kernel(np.zeros((0, 4), F), np.zeros((4, 3), F), np.zeros(4, np.int32))[0].shape == (0, 3)
    assert kernel(np.zeros((2, 0), F), np.zeros((0, 0), F), np.zeros(0, np.int32))[0].shape == (2, 0)
    total = mj.kernel_from_text(
        'M, N = dims("M N")\n@kernel\ndef f(x: f32[M, N]) -> (f32[M], f32[M]):\n    i = position()\n'
        "    return sum(x[i, k] for k in range(N)), max(x[i, k] for k in range(N))\n"
    )
    sums, greatest = total(np.zeros((3, 0), F))
    assert sums.tolist() == [0] * 3
    assert greatest.tolist() == [-np.inf] * 3


GRID = """
N, M = dims("N M")

@kernel(grid="ceil_div(N, 32)", threadgroup=32)
def f(at: i32[N], marks: Out[i32[M]], sums: InOut[f32[M]]):
    i = global_index()
    if i < N:
        marks[at[i]] = 42
        sums[at[i]] = 42
"""


def test_a_grid_of_no_threads_still_returns_what_its_arrays_start_from(place: str) -> None:
    kernel = mj.kernel_from_text(GRID)
    start = np.array([1, 2, 3], F)
    marks, sums = kernel(np.zeros(0, np.int32), start)
    assert (marks.tolist(), sums.tolist()) == ([0, 0, 0], [1, 2, 3])
    assert sums is not start
    assert not np.shares_memory(sums, start)
    marks, sums = kernel(np.zeros(4, np.int32), np.zeros(0, F))
    assert (marks.shape, sums.shape) == ((0,), (0,))
    out = np.full(3, 9, np.int32), np.full(3, 9, F)
    kernel(np.zeros(0, np.int32), start, out=out)
    assert (out[0].tolist(), out[1].tolist()) == ([0, 0, 0], [1, 2, 3])


# ---- no axes ----


def test_arrays_without_axes_are_arrays(place: str) -> None:
    kernel = KERNELS["mixed"]
    for x in (np.array(2, F), np.float32(2), np.zeros((3, 3), F)[1, 1:2].reshape(()) + 2):
        found, other = kernel(x, np.array(5, np.int16))
        assert type(found) is np.ndarray
        assert (found.shape, other.shape) == ((), ())
        assert (found.item(), other.item()) == (9, 15)
    out = np.zeros((), F), np.zeros((), np.int16)
    kernel(np.array(2, F), np.array(5, np.int16), out=out)
    assert (out[0].item(), out[1].item()) == (9, 15)
    row = np.zeros(3, F)
    kernel(np.array(2, F), np.array(5, np.int16), out=(row[1:2].reshape(()), np.zeros((), np.int16)))
    assert row.tolist() == [0, 9, 0]
    with pytest.raises(mj.MetaljitError) as caught:
        kernel(np.array(2, F), np.array([5], np.int16))
    assert caught.value.slug == "wrong-rank"
    with pytest.raises(mj.ShapeError):
        kernel(np.array(2, F), np.array(5, np.int16), out=(np.zeros(1, F), np.zeros(1, np.int16)))


def test_reductions_to_no_axes(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], y: f32[()], s: f32) -> (f32, i32):\n'
        "    return sum(x[k] for k in range(N)) + y[()] * s, argmax(x[k] for k in range(N))\n"
    )
    total, at = kernel(np.arange(5, dtype=F), np.array(10, F), 2)
    assert (total.shape, at.shape) == ((), ())
    assert (total[()], at[()]) == (30, 4)


def test_one_element_is_an_array_and_no_count(place: str) -> None:
    for shape in ((1,), (1, 1), (1, 1, 1)):
        found, other = KERNELS["mixed"](np.full(shape, 5, F), np.full(shape, 3, np.int16))
        assert found.shape == shape
        assert (found.ravel().tolist(), other.ravel().tolist()) == ([13], [9])


# ---- what a kernel does not write ----

EVEN = """
N = dims("N")

@kernel(grid="ceil_div(N, 32)", threadgroup=32)
def f(x: InOut[i32[N]], y: Out[i32[N]]):
    i = global_index()
    if i % 2 == 0:
        x[i] = 42
        y[i] = 42
"""


def test_what_is_not_written_stays(place: str) -> None:
    kernel = mj.kernel_from_text(EVEN)
    sevens = np.full(8, 7, np.int32)
    changed, fresh = kernel(sevens)
    assert changed.tolist() == [42, 7] * 4
    assert fresh.tolist() == [42, 0] * 4
    assert sevens.tolist() == [7] * 8
    for layout in ("contiguous", "stepped", "reversed", "misaligned"):
        out = LAYOUTS[layout](np.full(8, 1, np.int32)), LAYOUTS[layout](np.full(8, 1, np.int32))
        kernel(LAYOUTS[layout](sevens), out=out)
        assert (out[0].tolist(), out[1].tolist()) == ([42, 7] * 4, [42, 0] * 4)
    itself = sevens.copy()
    kernel(itself, out=(itself, np.zeros(8, np.int32)))
    assert itself.tolist() == [42, 7] * 4


def test_a_column_is_changed_in_place(place: str) -> None:
    kernel = mj.kernel_from_text(
        'H, W = dims("H W")\n@kernel(grid="ceil_div(H, 32)", threadgroup=32)\ndef f(x: InOut[f32[H, W]]):\n'
        "    i = global_index()\n    if i < H:\n        x[i, 0] = x[i, 0] / 10\n"
    )
    x = np.array([[1, 2], [3, 4]], F)
    wanted = np.array([[0.1, 2], [0.3, 4]], F)
    np.testing.assert_array_equal(kernel(x), wanted)
    assert x.tolist() == [[1, 2], [3, 4]]
    assert kernel(x, out=x) is x
    np.testing.assert_array_equal(x, wanted)
    turned = np.array([[1, 3], [2, 4]], F).T
    kernel(turned, out=turned)
    np.testing.assert_array_equal(turned, wanted)


# ---- storage that is shared ----

LINE = 'N = dims("N")\n@kernel\ndef f(x: f32[N], y: f32[N]) -> f32[N]:\n    u = border(x, "edge")\n    i = position()\n'
LINE += "    return u[i - 1] - 2 * u[i] + u[i + 1] + y[i]\n"


def overlapping() -> list[tuple[str, Any, Any, bool]]:
    """An input and the storage of a result, and whether they share an element."""
    store = np.arange(20, dtype=F)
    return [
        ("itself", store[:8], store[:8], True),
        ("shifted", store[:8], store[1:9], True),
        ("one element", store[:8], store[7:15], True),
        ("reversed", store[:8], store[7::-1], True),
        ("interleaved", store[0:16:2], store[1:16:2], False),
        ("side by side", store[:8], store[8:16], False),
        ("crossing strides", store[0:16:2], store[0:8], True),
        ("another type", store[:8], store[4:12].view(np.int32).view(F), True),
        ("two axes", store[:16].reshape(8, 2)[:, 0], store[:16].reshape(8, 2)[:, 1], False),
        ("a broadcast", np.broadcast_to(store[3:4], (8,)), store[:8], True),
    ]


@pytest.mark.parametrize(
    ("name", "x", "out", "shared"), overlapping(), ids=lambda v: v if isinstance(v, str) else ""
)
def test_storage_that_an_argument_shares_is_refused(
    place: str, name: str, x: Any, out: Any, shared: bool
) -> None:
    kernel = KERNELS["line"]
    out[...] = np.arange(8)
    x_before, out_before = x.copy(), out.copy()
    y = np.ones(8, F)
    wanted = kernel(x.copy(), y)
    for argument in (0, 1):
        arguments = [x, y] if argument == 0 else [y, x]
        if shared:
            for _ in range(2):
                with pytest.raises(mj.LaunchFault) as caught:
                    kernel(*arguments, out=out)
                assert caught.value.slug == "out-overlaps"
                assert f"argument `{'xy'[argument]}`" in str(caught.value)
            np.testing.assert_array_equal(x, x_before)
            np.testing.assert_array_equal(out, out_before)
    if not shared:
        kernel(x, y, out=out)
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(x, x_before)


def test_two_results_in_one_storage_are_refused(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> (f32[N], f32[N]):\n    return x[position()], -x[position()]\n'
    )
    store = np.zeros(12, F)
    for a, b in ((store[:8], store[:8]), (store[:8], store[4:12]), (store[:8], store[7::-1])):
        with pytest.raises(mj.LaunchFault) as caught:
            kernel(np.ones(8, F), out=(a, b))
        assert caught.value.slug == "out-overlaps"
    assert not store.any()


def test_inputs_may_share_memory(place: str) -> None:
    store = np.arange(9, dtype=F)
    for x, y in ((store[:8], store[:8]), (store[:8], store[1:]), (store[:8], store[7::-1])):
        np.testing.assert_array_equal(KERNELS["line"](x, y), KERNELS["line"](x.copy(), y.copy()))
    with pytest.raises(mj.LaunchFault):
        KERNELS["line"](store[:8], store[:8], out=store[:8])


def test_inputs_may_change_after_the_call_and_results_stay(place: str) -> None:
    x, y = np.arange(8, dtype=F), np.ones(8, F)
    first = KERNELS["line"](x, y)
    wanted = first.copy()
    x[:] = 0
    y[:] = 5
    second = KERNELS["line"](x, y)
    np.testing.assert_array_equal(first, wanted)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, x)


def test_device_arrays_share_no_memory_with_their_source(place: str) -> None:
    x = np.arange(8, dtype=F)
    array = mj.asarray(x, device="metal" if place == "stand-in" else place)
    x[:] = -1
    result = KERNELS["line"](array, array)
    assert isinstance(result, mj.Array)
    kept = result.numpy().copy()
    array.numpy()[:] = 0
    np.testing.assert_array_equal(result.numpy(), kept)
    with pytest.raises(mj.LaunchFault) as caught:
        KERNELS["line"](array, array, out=array)
    assert caught.value.slug == "out-overlaps"


KERNELS = {"mixed": mj.kernel_from_text(MIXED), "line": mj.kernel_from_text(LINE)}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint64, np.bool_])
def test_every_dtype_in_every_layout(place: str, dtype: Any) -> None:
    kernel = COPIES.setdefault(
        dtype,
        mj.kernel_from_text(
            'S = dims("*S")\nT = dtypes("number")\n@kernel\ndef f(x: T_[*S]) -> T_[*S]:\n    return x[position()]\n'.replace(
                "T_", "bool" if dtype is np.bool_ else "T"
            )
        ),
    )
    x = np.random.default_rng(2).integers(0, 2 if dtype is np.bool_ else 100, (3, 4)).astype(dtype)
    for layout in LAYOUTS.values():
        np.testing.assert_array_equal(kernel(layout(x)), x)


COPIES: dict[Any, mj.Kernel] = {}
