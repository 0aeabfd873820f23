"""Tails of grids, groups of any size, too many buffers, devices that do nothing, loops without end, atomics."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from emulated_metalcompute import Metalcompute
from every_type import I32, NUMPY, refusal

import metaljit as mj
from metaljit.runtime import device as devices
from metaljit.runtime.metal import Metal

F = np.float32


def spec(dtype: Any, rank: int = 1) -> mj.Spec:
    return mj.spec((None,) * rank, dtype)


class Knobs:
    """A Metal device of its own, with knobs; kernels reach it as "metal"."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.module = Metalcompute()
        patch.setitem(sys.modules, "metalcompute", self.module)
        self.device = Metal()
        patch.setattr(devices, "_devices", {**devices._devices, "metal": self.device})


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Knobs(monkeypatch)
    with mj.use_device("metal"):
        yield made.module
    assert made.module.faults == []


# ---- the tail of the grid ----

COPY = 'S = dims("*S")\nT = dtypes("number")\n@kernel\ndef f(x: T[*S]) -> T[*S]:\n    return x[position()]\n'
SHAPES = [
    (1,),
    (5,),
    (31,),
    (33,),
    (1023,),
    (1024,),
    (1025,),
    (3, 11),
    (1, 1),
    (33, 32),
    (2, 3, 5),
    (7, 1, 9),
    (),
]


@pytest.mark.parametrize("name", ["u8", "f16", "i64"])
def test_threads_past_the_end_write_nothing(place: str, name: str) -> None:
    kernel = COPIES.setdefault(name, mj.kernel_from_text(COPY))
    for shape in SHAPES:
        x = np.arange(1, int(np.prod(shape)) + 1).astype(NUMPY[name]).reshape(shape)
        store = np.full(x.size + 4096, 77, x.dtype)
        out = store[64 : 64 + x.size].reshape(shape)
        kernel(x, out=out)
        np.testing.assert_array_equal(out, x)
        assert (store[:64] == 77).all()
        assert (store[64 + x.size :] == 77).all()


COPIES: dict[str, mj.Kernel] = {}

GRID = """
H, W = dims("H W")

@kernel(grid="(ceil_div(H, 4), ceil_div(W, 8))", threadgroup=(4, 8))
def f(x: i32[H, W], group: Out[i32[H, W, 2]], thread: Out[i32[H, W, 2]], counts: Out[i32[4]], sizes: Out[i32[6]]):
    y, i = global_index()
    gy, gx = group_index()
    ty, tx = thread_index()
    if y < H and i < W:
        group[y, i, 0], group[y, i, 1] = gy, gx
        thread[y, i, 0], thread[y, i, 1] = ty, tx
        atomic_add(counts, 0, x[y, i])
    atomic_add(counts, 1, 1)
    atomic_max(counts, 2, lane())
    atomic_max(counts, 3, simd_index())
    rows, columns = grid_size()
    height, width = group_size()
    if y == 0 and i == 0:
        sizes[0], sizes[1], sizes[2], sizes[3] = rows, columns, height, width
"""


@pytest.mark.parametrize("most", [32, 96, 832, 1024])
def test_groups_of_whatever_size_the_device_takes(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """The device rounds up to groups of its own size; what the kernel calls a group is the kernel's."""
    made = Knobs(monkeypatch)
    made.module.max_threads = most
    with mj.use_device("metal"):
        for shape in ((5, 9), (4, 8), (1, 1), (33, 70)):
            x = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
            group, thread, counts, sizes = mj.kernel_from_text(GRID)(x)
            y, i = np.indices(shape)
            np.testing.assert_array_equal(group, np.stack([y // 4, i // 8], -1))
            np.testing.assert_array_equal(thread, np.stack([y % 4, i % 8], -1))
            groups = -(-shape[0] // 4), -(-shape[1] // 8)
            assert counts.tolist() == [x.sum(), 32 * groups[0] * groups[1], 31, 0]
            assert sizes.tolist()[:4] == [*groups, 4, 8]
        kernel = mj.kernel_from_text(COPY)
        for n in (1, 831, 832, 833, 3000):
            line = np.arange(n, dtype=F)
            np.testing.assert_array_equal(kernel(line), line)
    assert made.module.faults == []


def test_group_sizes_are_those_of_the_text_on_every_device(place: str) -> None:
    x = np.ones((5, 9), np.int32)
    *_, counts, sizes = mj.kernel_from_text(GRID)(x)
    assert counts.tolist() == [45, 128, 31, 0]
    assert sizes.tolist()[:4] == [2, 2, 4, 8]


# ---- limits ----


def many(count: int, scalars: int = 0) -> str:
    parameters = [f"a{k}: f32[N]" for k in range(count)] + [f"s{k}: f32" for k in range(scalars)]
    parts = [f"a{k}[i]" for k in range(count)] + [f"s{k}" for k in range(scalars)]
    return f'N = dims("N")\n@kernel\ndef f({", ".join(parameters)}) -> f32[N]:\n    i = position()\n    return {" + ".join(parts)}\n'


def test_more_arrays_than_bindings_are_refused_by_number(place: str) -> None:
    for count in (29, 30, 40, 64):
        found = refusal(many(count), *[spec(F)] * count)
        assert found.slug == "too-many-arrays"
        assert str(count + 1) in str(found)
        assert "31" in str(found)
    arrays = [np.full(3, k, F) for k in range(28)]
    kernel = mj.kernel_from_text(many(28, 40))
    np.testing.assert_array_equal(kernel(*arrays, *range(40)), np.full(3, sum(range(28)) + sum(range(40)), F))
    results = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> ({", ".join(["f32[N]"] * 28)}):\n    v = x[position()]\n'
        f"    return {', '.join(f'v + {k}' for k in range(28))}\n"
    )
    assert [r[0] for r in results(np.ones(2, F))] == [1 + k for k in range(28)]
    grid = (
        'N = dims("N")\n@kernel(grid=1, threadgroup=32)\ndef f('
        + ", ".join(f"a{k}: Out[f32[4]]" for k in range(30))
        + "):\n    a0[0] = 1\n"
    )
    assert refusal(grid).slug == "too-many-arrays"


@pytest.mark.parametrize(
    ("declared", "size"), [("f32, 4097", 16388), ("f32, 8193", 32772), ("u8, 16385", 16385), ("i64, 8, 257", 16448),
                           ("f32x4, 1025", 16400), ("f32, 2147483647, 2147483647", 4 * (2**31 - 1) ** 2)]
)  # fmt: skip
def test_local_memory_has_a_limit_with_a_number(declared: str, size: int) -> None:
    text = f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    t = local_array({declared})\n    return x[position()]\n'
    found = refusal(text, spec(F))
    assert found.slug == "local-too-large"
    assert str(size) in str(found)
    assert "16384" in str(found)


def test_local_memory_up_to_the_limit(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    t = local_array(f32, 4096)\n    i = position()\n'
        "    for k in range(4096):\n        t[k] = t[k] + x[i] * k\n    return t[4095] - t[0] + t[1]\n"
    )
    assert kernel(np.array([1, 2], F)).tolist() == [4096, 8192]


@pytest.mark.parametrize("size", ["33", "2048", "(64, 32)", "31", "-32", "0", "(0, 32)"])
def test_a_threadgroup_of_a_size_that_no_device_has_is_refused(size: str) -> None:
    text = f'N = dims("N")\n@kernel(grid=1, threadgroup={size})\ndef f(out: Out[f32[4]]):\n    out[0] = 1\n'
    assert refusal(text).slug == "bad-threadgroup"


# ---- devices that do not do their work ----


def test_a_launch_that_did_nothing_is_an_error_and_no_zeros(knobs: Metalcompute) -> None:
    kernel = mj.kernel_from_text(COPY)
    x = np.arange(5, dtype=F)
    np.testing.assert_array_equal(kernel(x), x)
    knobs.silent = True
    out = np.full(5, 7, F)
    for _ in range(2):
        with pytest.raises(mj.DeviceFault, match="did not run") as caught:
            kernel(x)
        assert caught.value.slug == "kernel-did-not-run"
        with pytest.raises(mj.DeviceFault):
            kernel(x, out=out)
    assert out.tolist() == [7] * 5
    knobs.silent = False
    np.testing.assert_array_equal(kernel(x), x)


def test_a_text_that_the_device_refuses_fails_alike_at_each_call(knobs: Metalcompute) -> None:
    knobs.refuse = "Compilation failed: \n\nprogram_source:1:1: error: no such thing\n"
    kernel = mj.kernel_from_text(COPY, "user.mjk")
    texts = []
    for n in (5, 5, 6):
        with pytest.raises(mj.DeviceFault) as caught:
            kernel(np.zeros(n, F))
        assert caught.value.slug == "metal-refused"
        texts.append(str(caught.value))
    assert texts[0] == texts[1] == texts[2]
    assert "user.mjk:4" in texts[0]
    assert knobs.runs == []


def test_many_launches_keep_nothing(knobs: Metalcompute) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], s: f32) -> f32[N]:\n    return x[position()] + s\n'
    )
    arrays = [np.zeros(n, F) for n in range(1, 40)]
    for k in range(300):
        kernel(arrays[k % 39], k)
    assert len(knobs.compiled) == 1
    knobs.runs.clear()
    gc.collect()
    tracemalloc.start()
    try:
        for k in range(600):
            kernel(arrays[k % 39], k)
            knobs.runs.clear()
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
    assert len(knobs.compiled) == 1


def test_many_launches_on_any_device_keep_nothing(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], s: f32) -> f32[N]:\n    return x[position()] + s\n'
    )
    count = 400 if place == "stand-in" else 4000
    x = np.zeros(count, F)
    kernel(x, 0)
    gc.collect()
    tracemalloc.start()
    try:
        for k in range(count):
            kernel(x[: k + 1 if k % 2 else 5], k)  # also what is kept for each extent has an end
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


# ---- loops ----

ENDLESS = [
    "n = 0\n    while n < 10:\n        n += 0\n    return x[i]",
    "v = x[i]\n    while v < 10:\n        v = v * 1\n    return v",
    "n = 0\n    while x[i] < 10:\n        n += 1\n    return n",
    "v = x[i]\n    for k in range(3):\n        while v == v:\n            v += 0\n    return v",
    "return spin(x[i])",
]


def test_a_loop_that_never_ends_is_a_failed_assertion(place: str) -> None:
    for body in ENDLESS:
        kernel = mj.kernel_from_text(
            'N = dims("N")\ndef spin(v):\n    while v < 10:\n        v = v + 0\n    return v\n'
            f"@kernel(loop_limit=1000)\ndef f(x: f32[N]) -> f32[N]:\n    i = position()\n    {body}\n",
            "loops.mjk",
        )
        for _ in range(2):
            with pytest.raises(mj.KernelAssertion, match="1000 turns") as caught:
                kernel(np.ones(3, F))
            assert "loops.mjk:" in str(caught.value)
            assert "while" in str(caught.value)


def test_a_loop_may_take_its_limit_and_no_turn_more(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel(loop_limit=7)\ndef f(x: i32[N]) -> i32[N]:\n    n = 0\n    while n < x[position()]:\n'
        "        n += 1\n    return n\n"
    )
    assert kernel(I32([0, 7, 6])).tolist() == [0, 7, 6]
    with pytest.raises(mj.KernelAssertion):
        kernel(I32([0, 8, 6]))


def test_loops_that_end_in_the_middle(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32[N]) -> (i32[N], i32[N], i32[N]):\n    v = x[position()]\n'
        "    while True:\n        break\n    a = 0\n    while True:\n        a += 1\n        if a > v:\n            break\n"
        "    b = 0\n    while 1:\n        b += 1\n        if b % 2 == 0:\n            continue\n        if b > 4:\n            break\n"
        "    c = 0\n    while False:\n        c += 1\n    return a, b, c\n"
    )
    assert [r.tolist() for r in kernel(I32([0, 5]))] == [[1, 6], [5, 5], [0, 0]]


FOREVER = """
import numpy as np, metaljit as mj
text = '''
N = dims("N")
@kernel(loop_limit=1000)
def f(x: f32[N]) -> f32[N]:
    i = position()
    n = 0
    while True:
        n += 1
        if n > x[i]:
            return n
'''
kernel = mj.kernel_from_text(text)
print(kernel(np.float32([1, 5])).tolist())
try:
    kernel(np.float32([1, 1e9]))
except mj.KernelAssertion as e:
    print("refused", e.slug)
"""


def test_a_loop_whose_only_end_is_a_return() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", FOREVER], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines() == ["[2.0, 6.0]", "refused assertion-failed"], done.stderr


# ---- atomics ----

ATOMICS = """
N = dims("N")

@kernel(grid="ceil_div(N, 256)", threadgroup=256)
def f(x: i32[N], y: f32[N], i: Out[i32[8]], u: Out[u32[8]], s: Out[f32[3]], low: InOut[i32[1]], high: InOut[u32[1]],
      flow: InOut[f32[2]], seen: Out[u8[N]]):
    k = global_index()
    if k < N:
        atomic_add(i, x[k] % 8, 1)
        atomic_add(u, x[k] % 8, u32(x[k]))
        atomic_add(s, 0, 1.0)
        atomic_add(s, 2, y[k])
        atomic_min(low, 0, x[k])
        atomic_max(high, 0, u32(x[k]))
        atomic_min(flow, 0, y[k])
        atomic_max(flow, 1, y[k])
        seen[k] = 1 + u8(x[k] % 200)
"""


def test_atomics_lose_nothing_and_touch_no_neighbour(place: str) -> None:
    n = 1024 if place == "stand-in" else 200_000
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1000, n).astype(np.int32)
    y = rng.integers(-8, 8, n).astype(F)
    start = np.array([2**31 - 1], np.int32), np.array([0], np.uint32), np.array([np.inf, -np.inf], F)
    i, u, s, low, high, flow, seen = mj.kernel_from_text(ATOMICS)(x, y, *start)
    np.testing.assert_array_equal(i, np.bincount(x % 8, minlength=8))
    np.testing.assert_array_equal(u, np.bincount(x % 8, x, 8).astype(np.uint32))
    assert s.tolist() == [n, 0, y.sum()]
    assert (low[0], high[0], flow.tolist()) == (x.min(), x.max(), [y.min(), y.max()])
    np.testing.assert_array_equal(seen, 1 + x % 200)


def test_a_thousand_threads_add_to_one_cell(place: str) -> None:
    kernel = mj.kernel_from_text(
        '@kernel(grid="groups", threadgroup=256)\ndef f(groups: i32, s: Out[f32[3]], n: Out[i32[1]]):\n    atomic_add(s, 1, 1.0)\n'
        "    old = atomic_add(n, 0, 1)\n    assert 0 <= old < 256 * groups\n"
    )
    for groups in (
        4,
        4 if place == "stand-in" else 16_000,
    ):  # enough for several threads of a processor to meet
        s, n = kernel(groups)
        assert s.tolist() == [0, 256 * groups, 0]
        assert n.tolist() == [256 * groups]


@pytest.mark.parametrize("name", ["u8", "i8", "u16", "i16", "i64", "u64", "f16", "bf16", "bool"])
@pytest.mark.parametrize(
    "atomic",
    ["atomic_add(a, 0, v)", "atomic_max(a, 0, v)", "atomic_exchange(a, 0, v)", "atomic_cas(a, 0, v, v)"],
)
def test_atomics_that_the_hardware_has_not_are_refused(name: str, atomic: str) -> None:
    text = f"@kernel(grid=1, threadgroup=32)\ndef f(v: {name}, a: Out[{name}[4]]):\n    {atomic}\n"
    found = refusal(text, NUMPY[name](1))
    assert found.slug == "atomic-type"
    assert name in str(found)


def test_no_barrier_is_printed_where_threads_may_have_left() -> None:
    for call in ("barrier()", "group_sum(1.0)", "simd_sum(1.0)"):
        text = f'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    if x[0] > 0:\n        return 1\n    {call}\n    return 2\n'
        assert isinstance(refusal(text, spec(F)), mj.TypeFault)
