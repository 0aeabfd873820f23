"""The order of threads: barriers, exchanges in flow that diverges, threads that wait for each other, grids."""

from __future__ import annotations

import numpy as np
import pytest
from abi_kernels import build, crash, ints, launch, zeros


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_barrier_stands_between_what_threads_do(size: int, seed: int | None) -> None:
    o = zeros(3 * size)
    kernel = build(
        "SHARED; int n = t.in->threads_per_threadgroup.x, v = i;\n"
        "for (int k = 0; k < 5; ++k) { x[l] = v; BARRIER; v = x[(l + 1) % n] + 1; BARRIER; }\n"
        "o[i] = v;"
    )
    assert not launch(kernel, [ints(), o], groups=(3, 1, 1), threadgroup=size, seed=seed)
    local = (np.arange(size) + 5) % size
    np.testing.assert_array_equal(o, (np.arange(3)[:, None] * size + local + 5).ravel())


def test_threads_run_in_ascending_order_unless_a_seed_shuffles_them() -> None:
    kernel = build("o[a[0]++] = i;")
    plain, shuffled, again, other = (zeros(256) for _ in range(4))
    for o, seed in ((plain, None), (shuffled, 7), (again, 7), (other, 8)):
        launch(kernel, [zeros(1), o], groups=(4, 1, 1), threadgroup=64, seed=seed)
    np.testing.assert_array_equal(plain, np.arange(256))
    np.testing.assert_array_equal(np.sort(shuffled), np.arange(256))
    np.testing.assert_array_equal(shuffled, again)
    assert (shuffled != plain).any()
    assert (shuffled != other).any()
    assert len(np.unique(shuffled.reshape(4, 64) // 64)) == 4
    assert (shuffled.reshape(4, 64)[:, 0] // 64 != np.arange(4)).any(), "the groups are in order"


def test_an_exchange_has_the_lanes_at_its_place() -> None:
    o = zeros(128)
    kernel = build(
        "if (lane % 3 == 0) {\n"
        "    auto e = ALL(i); o[2 * i] = e.sum; o[2 * i + 1] = e.mask;\n"
        "} else {\n"
        "    auto e = ALL(1); o[2 * i] = e.sum; o[2 * i + 1] = e.mask;\n"
        "}\n"
        "o[2 * i] += 1000 * __builtin_popcount(ALL(0).mask);"
    )
    assert not launch(kernel, [ints(), o], threads=64, threadgroup=64)
    lanes = np.arange(64)
    third = lanes % 3 == 0  # of the index in the group: 32 % 3 is 2, so the simdgroups differ
    third = (lanes % 32) % 3 == 0
    for simdgroup in (slice(0, 32), slice(32, 64)):
        inside, at = third[simdgroup], lanes[simdgroup]
        sums = np.where(inside, at[inside].sum(), (~inside).sum())
        np.testing.assert_array_equal(o[::2][simdgroup], sums + 32000)
        mask = sum(1 << int(k) for k in np.flatnonzero(inside))
        masks = o[1::2][simdgroup].view(np.uint32)
        assert set(masks[inside]) == {mask}
        assert set(masks[~inside]) == {0xFFFFFFFF ^ mask}


def test_lanes_that_have_left_a_loop_wait_behind_it() -> None:
    o = zeros(64)
    kernel = build(
        "int s = 0;\n"
        "for (unsigned k = 0; k <= lane % 4; ++k)\n"
        "    s += __builtin_popcount(ALL(1).mask);\n"
        "o[i] = s + 1000 * __builtin_popcount(ALL(1).mask);"
    )
    launch(kernel, [ints(), o], threads=64, threadgroup=64)
    turns = np.cumsum([32, 24, 16, 8])
    np.testing.assert_array_equal(o, turns[np.arange(64) % 4] + 32000)


def test_a_function_above_the_kernel_comes_where_it_is_called() -> None:
    o = zeros(32)
    before = "static inline int red(int v) { return ALL(v).sum; }"
    kernel = build("int s = 0; if (lane < 16)\n    s = ALL(1).sum;\no[i] = s + 100 * red(1);", before=before)
    launch(kernel, [ints(), o], threads=32)
    np.testing.assert_array_equal(o, [3216] * 16 + [3200] * 16)


def test_a_partial_simdgroup_exchanges_among_its_own() -> None:
    o = zeros(40)
    launch(build("o[i] = __builtin_popcount(ALL(1).mask);"), [ints(), o], threads=40, threadgroup=40)
    np.testing.assert_array_equal(o, [32] * 32 + [8] * 8)


def test_an_exchange_keeps_its_values_until_the_lane_stops_again() -> None:
    o = zeros(32)
    kernel = build(
        "int v = i;\n"
        "const exchange* e = __emu_exchange(&v, 4, 1, 1);\n"
        "v = -1;\n"
        "int first = *(const int*)(e->values + 31 * e->stride);\n"
        "o[i] = first + ALL(1).sum;"
    )
    launch(kernel, [ints(), o], threads=32)
    np.testing.assert_array_equal(o, [31 + 32] * 32)


@pytest.mark.parametrize("waiter", [0, 1, 40])
def test_threads_that_wait_for_each_other_get_on(waiter: int) -> None:
    o = zeros(1)
    kernel = build(
        f"SHARED; if (l == 0) *x = 0; BARRIER; volatile int* flag = x;\n"
        f"if (l == {waiter}) {{ while (*flag != 63) __emu_yield(); o[0] = 1; }}\n"
        f"else *flag = *flag + 1;"
    )
    assert not launch(kernel, [ints(), o], threads=64, threadgroup=64)
    assert o[0] == 1


def test_a_lane_may_wait_for_one_that_stands_in_an_exchange() -> None:
    o = zeros(32)
    kernel = build(
        "SHARED; if (l == 0) *x = 0; BARRIER; volatile int* flag = x;\n"
        "if (l == 0) { while (!*flag) __emu_yield(); }\n"
        "else { o[i] = ALL(1).sum; *flag = 1; }"
    )
    assert not launch(kernel, [ints(), o], threads=32)
    np.testing.assert_array_equal(o, [0] + [31] * 31)


def test_edge_groups_are_smaller_where_threads_are_dispatched() -> None:
    """The example of Metal's guide: 10 × 6 threads in groups of 4 × 4."""
    o = zeros(240)
    kernel = build(
        "unsigned px = g * 4 + t.position_in_threadgroup.x;\n"
        "unsigned py = t.in->threadgroup_position_in_grid.y * 4 + t.position_in_threadgroup.y;\n"
        "int* p = o + (py * 10 + px) * 4; auto s = t.in->threads_per_threadgroup;\n"
        "p[0] = s.x; p[1] = s.y; p[2] = l; p[3] = t.in->dispatch_threads_per_threadgroup.x * 100\n"
        "    + t.in->threads_per_grid.x + t.in->threadgroups_per_grid.y;"
    )
    assert not launch(kernel, [ints(), o], threads=(10, 6, 1), threadgroup=(4, 4, 1))
    y, x = np.mgrid[:6, :10]
    wide, tall = np.where(x < 8, 4, 2), np.where(y < 4, 4, 2)
    np.testing.assert_array_equal(o.reshape(6, 10, 4)[..., 0], wide)
    np.testing.assert_array_equal(o.reshape(6, 10, 4)[..., 1], tall)
    np.testing.assert_array_equal(o.reshape(6, 10, 4)[..., 2], y % 4 * wide + x % 4)
    assert set(o.reshape(-1, 4)[:, 3]) == {412}


def test_groups_are_whole_where_groups_are_dispatched() -> None:
    o = zeros(64)
    launch(build("__atomic_fetch_add(o + l, 1, 0);"), [ints(), o], groups=(2, 3, 1), threadgroup=(8, 2, 2))
    np.testing.assert_array_equal(o, [6] * 32 + [0] * 32)


def test_arguments_of_threadgroup_memory_are_fresh_in_each_group() -> None:
    o = zeros(64)
    kernel = build("int* m = (int*)t.in->memory[3]; o[i] = m[l]; m[l] = i;")
    launch(kernel, [ints(), o], threads=64, memory={3: 128})
    assert set(o.view(np.uint32)) == {0xCDCDCDCD}


def test_threadgroup_variables_are_fresh_in_each_group() -> None:
    o = zeros(64)
    launch(build("SHARED; o[i] = x[l]; x[l] = i;"), [ints(), o], threads=64)
    assert set(o.view(np.uint32)) == {0xCDCDCDCD}


DIVERGENT = "if (lane < 8)\n    BARRIER;\no[i] = 1;"


def test_a_barrier_that_some_do_not_reach_ends_the_run() -> None:
    o = zeros()
    fault = crash(build(DIVERGENT), [ints(), o], threads=64)
    assert fault.kind == "barrier-not-reached"
    assert "8 of 32 threads wait at line 2, 24 have ended" in fault.message
    assert fault.location == "k.metal:2:5"
    assert not o.any(), "a run that did not end has written nothing back"


def test_barriers_at_two_places_are_divergent() -> None:
    fault = crash(build("if (l < 10)\n BARRIER;\nelse\n BARRIER;"), [ints(), zeros()], threads=32)
    assert "10 of 32 threads wait at line 2, 22 wait at line 4" in fault.message
    assert fault.second == ("k.metal:4:2", "the other barrier")


def test_a_lenient_run_goes_on() -> None:
    o = zeros()
    (fault,) = launch(build(DIVERGENT), [ints(), o], threads=64, lenient=True)
    assert (fault.kind, fault.count) == ("barrier-not-reached", 2)
    assert o.all()


def test_more_threadgroup_memory_than_there_is() -> None:
    kernel = build('static char y[30000]; __emu_threadgroup_memory(y, sizeof y, "y"); y[l] = 1;')
    assert not launch(kernel, [ints(), zeros()], threads=32, memory={0: 2768})
    fault = crash(kernel, [ints(), zeros()], threads=32, memory={0: 2784})
    assert fault.kind == "threadgroup-memory-full"
    assert "32784 bytes" in fault.message
