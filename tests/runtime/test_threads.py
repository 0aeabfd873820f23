"""Kernels and jitted functions that many threads call at once: nobody gets another one's result, device or extents."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.graph import jit as jit_module
from metaljit.lang import const, f32, i32, position
from metaljit.runtime import device as devices
from metaljit.runtime import launch, plan
from metaljit.runtime.emulator import process

N = mj.dims("N")
THREADS = 8


@mj.kernel
def line(x: f32[N], a: f32, b: i32) -> f32[N]:
    return a * x[position()] + f32(b)


@mj.kernel
def power(x: f32[N], times: const[int]) -> f32[N]:
    value = x[position()]
    for _ in range(times):
        value = value * x[position()]
    return value


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's threads take turns as often as they can, and little is kept, so that much is thrown away."""
    monkeypatch.setattr(launch, "KEPT_EXTENTS", 3)
    monkeypatch.setattr(plan, "KEPT_EXTENTS", 3)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Runs the work in threads that start together; the first error of any is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def run(k: int) -> None:
        try:
            start.wait()
            work(k)
        except BaseException as e:
            errors.append(e)

    found = [threading.Thread(target=run, args=(k,)) for k in range(threads)]
    for t in found:
        t.start()
    for t in found:
        t.join()
    if errors:
        raise errors[0]


def ramp(n: int) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32)


def test_a_kernel_with_other_extents_and_numbers_in_each_thread() -> None:
    def work(k: int) -> None:
        for turn in range(150):
            x = ramp(1 + (k + turn // 3) % 7)
            np.testing.assert_array_equal(line(x, k + 0.5, turn), np.float32(k + 0.5) * x + np.float32(turn))

    at_once(work)


def test_a_kernel_with_other_constants_in_each_thread() -> None:
    def work(k: int) -> None:
        for turn in range(60):
            times = (k + turn // 4) % 4
            x = ramp(4) % 3
            np.testing.assert_array_equal(power(x, times), x ** np.float32(times + 1))

    at_once(work)


def test_each_thread_runs_on_the_device_that_it_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call never runs on the device of the call before it: the emulator's worker is asked for each of its own."""
    runs: dict[int, int] = {}
    run = process.Worker.run

    def counted(self: process.Worker, what: process.Run) -> Any:
        me = threading.get_ident()
        runs[me] = runs.get(me, 0) + 1
        return run(self, what)

    monkeypatch.setattr(process.Worker, "run", counted)
    jitted = mj.jit(lambda x: 3 * x + 1)

    def work(k: int) -> None:
        for turn in range(30):
            name = ("cpu", "emulator")[(k + turn) % 2]
            before = runs.get(threading.get_ident(), 0)
            with mj.use_device(name):
                np.testing.assert_array_equal(line(ramp(4), 3, 1), 3 * ramp(4) + 1)
                np.testing.assert_array_equal(jitted(ramp(4)), 3 * ramp(4) + 1)
                assert devices.current().name == name
            assert runs.get(threading.get_ident(), 0) - before == 2 * (name == "emulator")

    at_once(work, 4)


def test_the_main_threads_choice_changes_while_others_call() -> None:
    """What was compiled for one device is not found under the name of the other."""

    @mj.kernel
    def third(x: f32[N]) -> f32[N]:
        return x[position()] / 3

    jitted = mj.jit(lambda x: x / 3)
    over = threading.Event()

    def switch() -> None:
        while not over.is_set():
            type(devices.chosen).value = "emulator"
            type(devices.chosen).value = "cpu"

    switcher = threading.Thread(target=switch)
    switcher.start()
    try:

        def work(_: int) -> None:
            for n in range(1, 12):
                third(ramp(n))
                jitted(ramp(n))

        at_once(work, 4)
    finally:
        over.set()
        switcher.join()
    for key, launcher in third._launchers.items():
        assert launcher.device.name == key[0]
    for key, made in jitted._made.items():
        assert all(m.compiled.launcher.device.name == key[0] for m in made)


def test_a_choice_during_a_call_does_not_change_where_the_next_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = mj.jit(lambda x: x * 7)
    here = type(devices.chosen)
    here.value = "cpu"
    call = launch.Launcher.__call__

    def changed(self: launch.Launcher, *args: Any) -> Any:
        result = call(self, *args)
        here.value = "emulator"
        return result

    calls: list[Callable[[], Any]] = [lambda: line(ramp(5), 7, 0), lambda: jitted(ramp(5))]
    for f in calls:
        here.value = "cpu"
        with monkeypatch.context() as patch:
            patch.setattr(launch.Launcher, "__call__", changed)
            f()
        assert here.value == "emulator"
        runs: list[process.Run] = []
        with monkeypatch.context() as patch:
            patch.setattr(process.Worker, "run", lambda _, what, runs=runs: runs.append(what) or ())
            with pytest.raises(mj.DeviceFault, match="did not run"):
                f()
        assert len(runs) == 1


def test_a_function_is_traced_once_for_each_signature() -> None:
    traces: list[tuple[Any, ...]] = []

    @mj.jit
    def f(x: Any, factor: Any) -> Any:
        traces.append((x.dtype, x.ndim))
        return ops.laplacian(np.exp(x)) * factor if x.ndim == 2 else x * factor

    def work(k: int) -> None:
        for turn in range(40):
            x = ramp(12).reshape(3, 4) % 2 if (k + turn) % 2 else ramp(2 + turn % 5)
            with mj.use_device("cpu"):
                wanted = ops.laplacian(np.exp(x)) * np.float32(k) if x.ndim == 2 else x * np.float32(k)
                np.testing.assert_allclose(f(x, float(k)), wanted, rtol=1e-5, atol=1e-5)

    at_once(work)
    assert len(traces) == 2


def test_queues_and_threads_together(device: str) -> None:
    kernels: list[Any] = [line, mj.jit(lambda x, a, b: a * x + b)]
    queues = [mj.Queue(device) for _ in range(3)]

    def work(k: int) -> None:
        for turn in range(25):
            x = ramp(1 + turn % 5)
            future = queues[(k + turn) % 3].submit(kernels[turn % 2], x, float(k), turn)
            again = queues[turn % 3].submit(line, future, 1.0, 0)
            np.testing.assert_array_equal(future.result(), np.float32(k) * x + np.float32(turn))
            np.testing.assert_array_equal(again.result(), np.float32(k) * x + np.float32(turn))
            x[0] = 1

    at_once(work, 4)
    for q in queues:
        q.finish()


def test_tracing_holds_one_lock() -> None:
    """Two functions that call each other while they are traced, in two threads, end."""
    inner: dict[str, Any] = {}
    inside = threading.Barrier(2, timeout=0.5)

    def other(name: str) -> Callable[[Any], Any]:
        def f(x: Any) -> Any:
            try:
                inside.wait()
            except threading.BrokenBarrierError:
                pass
            return x + inner[name](ramp(3))

        return f

    a, b = mj.jit(other("c")), mj.jit(other("d"))
    inner["c"], inner["d"] = mj.jit(lambda x: x * 2), mj.jit(lambda x: x * 3)
    found: dict[int, Any] = {}
    at_once(lambda k: found.update({k: (a, b)[k](ramp(3))}), 2)
    np.testing.assert_array_equal(found[0], 3 * ramp(3))
    np.testing.assert_array_equal(found[1], 4 * ramp(3))
    assert not jit_module._tracing._is_owned()  # type: ignore[attr-defined]
