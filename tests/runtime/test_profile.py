"""Profiles: what is written down, what it says, and that nothing is while none is on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.lang import InOut, f32, f32x2, global_index, position
from metaljit.runtime import bandwidth, profile_report
from metaljit.runtime.profile import Record, active

N, H, W = mj.dims("N H W")


@mj.kernel
def plus(x: f32[N], y: f32[N], a: f32) -> f32[N]:
    i = position()
    return x[i] + a * y[i]


@mj.kernel
def sides(x: f32x2[N]) -> tuple[f32[N], f32[N]]:
    p = x[position()]
    return p.x, p.y


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def grow(x: InOut[f32[N]]) -> None:
    i = global_index()
    if i < N:
        x[i] += 1


def ramp(n: int = 8) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32)


def kernels(p: mj.profile) -> list[Record]:
    return [e for e in p.events if e.kind == "kernel"]


def test_each_call_is_written_down(device: str) -> None:
    with mj.use_device(device), mj.profile() as p:
        for n in (100, 100, 7):
            plus(ramp(n), ramp(n), 2.0)
        sides(np.ones((10, 2), np.float32))
        grow(ramp(50))
    found = kernels(p)
    assert [e.name for e in found] == ["plus", "plus", "plus", "sides", "grow"]
    assert [e.nbytes for e in found] == [1200, 1200, 84, 160, 400]
    assert {(e.device, e.queue) for e in found} == {(device, "host")}
    assert [e.operations for e in found[:3]] == [100 * k for k in [found[2].operations // 7] * 2] + [
        found[2].operations
    ]
    assert all(e.duration > 0 and e.bandwidth == e.nbytes / e.duration for e in found)
    ends = [e.start + e.duration for e in found]
    assert all(end <= e.start for end, e in zip(ends, found[1:], strict=False))
    assert found[0].start >= 0


def test_results_are_the_same(device: str) -> None:
    with mj.use_device(device):
        before = plus(ramp(), ramp(), 3.0)
        with mj.profile():
            np.testing.assert_array_equal(plus(ramp(), ramp(), 3.0), before)
            out = np.empty(8, np.float32)
            assert plus(ramp(), ramp(), 3.0, out=out) is out
        np.testing.assert_array_equal(out, before)


def test_nothing_is_written_down_outside() -> None:
    plus(ramp(), ramp(), 1.0)
    with mj.profile() as p:
        pass
    plus(ramp(), ramp(), 1.0)
    assert p.events == ()
    assert not active


def test_a_profile_ends_with_its_block_after_an_error() -> None:
    p = mj.profile()
    with pytest.raises(ZeroDivisionError), p:
        raise ZeroDivisionError
    assert not active


def test_profiles_within_one_another() -> None:
    with mj.profile() as outer:
        plus(ramp(), ramp(), 1.0)
        with mj.profile() as inner:
            plus(ramp(), ramp(), 1.0)
        plus(ramp(), ramp(), 1.0)
    assert (len(kernels(outer)), len(kernels(inner))) == (3, 1)
    assert kernels(inner)[0].duration == kernels(outer)[1].duration
    assert kernels(inner)[0].start < kernels(outer)[1].start


def test_plans_ops_and_queues(device: str) -> None:
    u = np.random.default_rng(0).random((16, 12), dtype=np.float32)
    two = mj.jit(lambda u: ops.laplacian(np.exp(np.sin(u))))
    two.function.__name__ = two.__name__ = "two"
    one = mj.jit(lambda x: 2 * x + 1)
    with mj.profile() as p, mj.Queue(device, name="q") as q:
        for _ in range(2):
            q.submit(two, u)
        q.submit(one, u)
        q.submit(ops.laplacian, u)
    found = kernels(p)
    assert [e.name for e in found[:4]] == ["two[0]", "two[1]"] * 2
    assert {e.queue for e in found} == {"q"}
    assert {e.device for e in found} == {device}
    assert all(e.nbytes == 2 * u.nbytes for e in found)
    assert len(found) == 6


def test_a_thread_has_its_name() -> None:
    with mj.profile() as p:
        thread = threading.Thread(target=plus, args=(ramp(), ramp(), 1.0), name="mine")
        thread.start()
        thread.join()
    assert [e.queue for e in kernels(p)] == ["mine"]


def test_a_run_that_fails_is_none() -> None:
    with mj.profile() as p:
        with pytest.raises(mj.ShapeError):
            plus(ramp(3), ramp(4), 1.0)
    assert kernels(p) == []


def test_tracing_and_compiling_are_told_once() -> None:
    f = mj.jit(lambda x: x * 123.25 + 4)
    with mj.profile() as p:
        for n in (3, 5):
            f(ramp(n))
    assert [e.kind for e in p.events if e.kind != "kernel"] == ["trace", "compile"]
    assert "traced 1 in" in str(p)
    assert "compiled 1 in" in str(p)


def test_foreign_metal_too() -> None:
    text = (
        "kernel void twice(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2; }"
    )
    x = ramp(32)
    with mj.profile() as p:
        mj.metal_from_text(text).twice(x, threads=32)
    assert [(e.name, e.device, e.nbytes) for e in kernels(p)] == [("twice", "emulator", 128)]


# ---- reports ----

RECORDS = (
    Record("a", "trace", "", "host", 0.0, 0.5, 0, 0),
    Record("a", "compile", "cpu", "host", 0.5, 0.25, 0, 0),
    Record("a", "kernel", "cpu", "host", 1.0, 0.001, 2_000_000, 30),
    Record("longer name", "kernel", "cpu", "q", 1.0, 0.010, 1_000_000, 40),
    Record("a", "kernel", "cpu", "host", 1.5, 0.003, 2_000_000, 30),
    Record("a", "kernel", "cpu", "q", 2.0, 0.002, 2_000_000, 30),
)


def test_the_table() -> None:
    assert profile_report.table(RECORDS).splitlines() == [
        "kernel       device  calls  total ms  share  median µs     MB  GB/s",
        "longer name  cpu         1    10.000    62%    10000.0  1.000  0.10",
        "a            cpu         3     6.000    38%     2000.0  2.000  1.00",
        "traced 1 in 500.0 ms",
        "compiled 1 in 250.0 ms",
    ]


def test_the_table_against_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "of_copy", lambda device: {"cpu": 4e9}[device])
    lines = profile_report.table(RECORDS, limit=True).splitlines()
    assert [line.split("  ")[-1].strip() for line in lines[:3]] == ["of a copy", "2%", "25%"]


def test_the_table_of_nothing() -> None:
    with mj.profile() as p:
        pass
    assert str(p).split() == "kernel device calls total ms share median µs MB GB/s".split()


@pytest.mark.parametrize("name", ["cpu", "emulator"])
def test_the_copy_is_measured_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth, "ELEMENTS", 5000)
    bandwidth.of_copy.cache_clear()
    first = bandwidth.of_copy(name)
    assert first > 0
    assert bandwidth.of_copy(name) == first
    bandwidth.of_copy.cache_clear()


def test_the_trace_has_queues_as_tracks(tmp_path: Path) -> None:
    with mj.profile() as p, mj.Queue("cpu", name="first") as a, mj.Queue("cpu", name="second") as b:
        plus(ramp(), ramp(), 1.0)
        a.submit(plus, ramp(), ramp(), 1.0)
        b.submit(plus, ramp(), ramp(), 1.0)
    p.save(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    events = data["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    ran = [e for e in events if e["ph"] == "X" and e["cat"] == "kernel"]
    assert sorted(tracks[e["tid"]] for e in ran) == ["first", "host", "second"]
    by_start = sorted(ran, key=lambda e: e["ts"])
    for e, r in zip(by_start, kernels(p), strict=True):
        assert (e["name"], e["pid"], tracks[e["tid"]]) == (r.name, 1, r.queue)
        assert e["ts"] == pytest.approx(r.start * 1e6)
        assert e["dur"] == pytest.approx(r.duration * 1e6)
        assert (e["args"]["bytes"], e["args"]["operations"]) == (r.nbytes, r.operations)
    assert all(e["ph"] in "XM" and set(e) >= {"name", "ph", "pid", "tid", "args"} for e in events)
