"""Queues, events and futures: order, overlap, errors, deadlocks."""

from __future__ import annotations

import dataclasses
import gc
import operator
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit import ops
from metaljit.lang import InOut, f32, global_index, i32, position
from metaljit.runtime import device as devices
from metaljit.runtime import flight

N = mj.dims("N")


@mj.kernel
def twice(x: f32[N]) -> f32[N]:
    return 2 * x[position()]


@mj.kernel
def plus(x: f32[N], y: f32[N]) -> f32[N]:
    i = position()
    return x[i] + y[i]


@mj.kernel
def positive(x: f32[N]) -> f32[N]:
    i = position()
    assert x[i] >= 0, "negative"
    return x[i]


@mj.kernel(grid="ceil_div(N, 64)", threadgroup=64)
def grow(x: InOut[f32[N]]) -> None:
    i = global_index()
    if i < N:
        x[i] += 1


@mj.kernel
def turns(x: f32[N], count: i32) -> f32[N]:
    i = position()
    value = x[i]
    for k in range(count):
        value = value * 0.5 + f32(k % 3)
    return value


def ramp(n: int = 8) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32)


@pytest.fixture(autouse=True)
def nothing_stays_held() -> Iterator[None]:
    yield
    assert not flight._pins


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


# ---- order ----


def test_a_result_is_that_of_the_call(device: str) -> None:
    x = ramp()
    with mj.Queue(device) as q:
        future = q.submit(twice, x)
        np.testing.assert_array_equal(future.result(), 2 * x)
        assert future.done()
        named = q.submit(plus, x, y=x)
        np.testing.assert_array_equal(named.result(), 2 * x)


def test_kernels_ops_jitted_functions_and_anything_callable(device: str) -> None:
    u = np.random.default_rng(0).random((9, 7), dtype=np.float32)
    step = mj.jit(lambda p: {"u": p["u"] + 2 * ops.laplacian(p["u"])})
    with mj.Queue(device) as q:
        found = q.submit(ops.laplacian, u), q.submit(step, {"u": u}), q.submit(lambda: twice(ramp()).sum())
    with mj.use_device(device):
        np.testing.assert_array_equal(found[0].result(), ops.laplacian(u))
        np.testing.assert_array_equal(found[1].result()["u"], step({"u": u})["u"])
    assert found[2].result() == 56


def test_work_of_one_queue_runs_in_order() -> None:
    seen: list[int] = []
    with mj.Queue("cpu") as q:
        for k in range(500):
            q.submit(seen.append, k)
    assert seen == list(range(500))


def test_the_host_goes_on_meanwhile(gate: threading.Event) -> None:
    q = mj.Queue("cpu")
    q.submit(gate.wait)
    future = q.submit(twice, ramp())
    assert not future.done()
    gate.set()
    np.testing.assert_array_equal(future.result(), 2 * ramp())
    q.finish()


def test_a_future_is_an_argument(device: str) -> None:
    with mj.Queue(device) as a, mj.Queue(device) as b:
        first = a.submit(twice, ramp())
        second = b.submit(plus, first, y=a.submit(twice, first))
        np.testing.assert_array_equal(b.submit(twice, second).result(), 12 * ramp())


def test_work_submits_work() -> None:
    with mj.Queue("cpu") as a, mj.Queue("cpu") as b:
        inner = a.submit(lambda: b.submit(twice, ramp()))
        np.testing.assert_array_equal(inner.result().result(), 2 * ramp())


def test_an_idle_queue_works_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metaljit.runtime.queue.LINGER", 0.0)
    q = mj.Queue("cpu")
    for k in range(20):
        np.testing.assert_array_equal(q.submit(twice, ramp(k + 1)).result(), 2 * ramp(k + 1))
        gc.collect()
    q.finish()


def test_the_device_is_the_queues() -> None:
    names = []
    with mj.Queue("emulator") as q, mj.use_device("cpu"):
        q.submit(lambda: names.append(devices.current().name))
        q.submit(mj.use_device, "cpu").result()  # for this thread from here on
        q.submit(lambda: names.append(devices.current().name))
        q.finish()
        names.append(devices.current().name)
    assert names == ["emulator", "cpu", "cpu"]
    with mj.use_device("emulator"):
        q = mj.Queue()
    assert q.device is mj.device("emulator")
    assert "emulator" in repr(q)


def test_what_a_thread_chooses_is_its_own() -> None:
    names: list[str] = []

    def work() -> None:
        names.append(devices.current().name)
        with mj.use_device("cpu"):
            names.append(devices.current().name)
        names.append(devices.current().name)

    with mj.use_device("emulator"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert devices.current().name == "emulator"
    assert names == ["emulator", "cpu", "emulator"]


def test_the_sanitizer_is_that_of_the_call_to_submit(gate: threading.Event) -> None:
    from metaljit.runtime.emulator.sanitizer import sanitizing

    with mj.Queue("emulator") as q:
        q.submit(gate.wait)
        with mj.sanitize():
            inside = q.submit(sanitizing)
        outside = q.submit(sanitizing)
        gate.set()
        assert (inside.result(), outside.result()) == (True, False)


# ---- overlap ----


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("storage", ["array", "view", "device"])
def test_a_race_that_only_the_event_prevents(
    device: str, storage: str, ordered: bool, gate: threading.Event
) -> None:
    """The producer waits behind a gate. Without the event the consumer reads before it, with it never."""
    buffer: Any = np.zeros(8, np.float32)
    if storage == "device":
        buffer = mj.asarray(buffer, device=device)
    event = mj.Event()
    producer, consumer = mj.Queue(device), mj.Queue(device)
    producer.submit(gate.wait)
    written = producer.submit(twice, mj.asarray(ramp(), device=device) if storage == "device" else ramp(),
                              out=buffer[:] if storage == "view" else buffer)  # fmt: skip
    producer.signal(event, 1)
    if ordered:
        consumer.wait_for(event, 1)
    read = consumer.submit(plus, buffer, buffer)
    if ordered:
        with pytest.raises(TimeoutError):
            read.result(timeout=0.1)
    else:
        np.testing.assert_array_equal(np.asarray(read.result()), np.zeros(8))
    assert not written.done()
    gate.set()
    np.testing.assert_array_equal(np.asarray(read.result()), 4 * ramp() if ordered else np.zeros(8))
    producer.finish()
    np.testing.assert_array_equal(np.asarray(buffer), 2 * ramp())
    if storage != "view":
        assert written.result() is buffer


def test_a_kernel_runs_beside_another(device: str) -> None:
    """A kernel of a second or so does not keep a short one of another queue from running."""
    count = 2**30 if device == "emulator" else 2**29
    turns.on(device).compile(ramp(1), 1)
    with mj.Queue(device) as a, mj.Queue(device) as b:
        b.submit(twice, ramp()).result()
        long = a.submit(turns, ramp(1), count)
        while long._status == "waiting":
            pass
        b.submit(twice, ramp()).result()
        assert not long.done()


def test_producers_and_consumers_of_frames(device: str) -> None:
    """Two buffers, filled and emptied in turns."""
    frames, buffers = 12, [np.zeros(5, np.float32), np.zeros(5, np.float32)]
    filled, emptied = mj.Event("filled"), mj.Event("emptied")
    sums = []
    with mj.Queue(device, name="fill") as fill, mj.Queue(device, name="empty") as empty:
        for k in range(1, frames + 1):
            if k > 2:
                fill.wait_for(emptied, k - 2)
            fill.submit(twice, np.full(5, k, np.float32), out=buffers[k % 2])
            fill.signal(filled, k)
            empty.wait_for(filled, k)
            sums.append(empty.submit(lambda x: x.sum(), buffers[k % 2]))
            empty.signal(emptied, k)
    assert [s.result() for s in sums] == [10 * k for k in range(1, frames + 1)]


# ---- events ----


def test_an_event_only_grows() -> None:
    event = mj.Event("frame")
    assert event.value == 0
    event.signal(3)
    event.wait(3)
    event.wait(1)
    assert event.value == 3
    for value in (3, 2, 0, -1, 2**64):
        with pytest.raises(mj.QueueFault) as caught:
            event.signal(value)
        assert caught.value.slug == "event-order"
    event.signal(2**64 - 1)
    assert event.value == 2**64 - 1
    with pytest.raises(TypeError):
        event.signal(1.5)  # type: ignore[arg-type]


def test_a_wait_for_a_value_passes_at_that_value() -> None:
    event, q = mj.Event(), mj.Queue("cpu")
    q.wait_for(event, 5)
    future = q.submit(int)
    for value in range(1, 5):
        event.signal(value)
        with pytest.raises(TimeoutError):
            future.result(timeout=0.02)
    with pytest.raises(TimeoutError, match=r"to reach 5 .it is at 4"):
        event.wait(5, timeout=0.02)
    event.signal(7)
    assert future.result() == 0
    q.finish()


def test_a_signal_stands_behind_the_work_before_it(gate: threading.Event) -> None:
    event, q = mj.Event(), mj.Queue("cpu")
    q.submit(gate.wait)
    q.signal(event, 1)
    with pytest.raises(TimeoutError):
        event.wait(1, timeout=0.05)
    gate.set()
    event.wait(1)
    q.finish()


def test_a_signal_out_of_order_is_told_where_it_can_be_known(gate: threading.Event) -> None:
    event, q = mj.Event(), mj.Queue("cpu")
    event.signal(2)
    with pytest.raises(mj.QueueFault):
        q.signal(event, 2)
    q.submit(gate.wait)
    q.signal(event, 3)
    event.signal(4)
    gate.set()
    with pytest.raises(mj.QueueFault, match="is at 4, and was signalled 3") as caught:
        q.finish()
    assert caught.value.slug == "event-order"


# ---- errors ----


def test_an_error_is_raised_by_result_with_the_users_lines(device: str) -> None:
    q = mj.Queue(device)
    future = q.submit(positive, -ramp())
    for _ in range(2):
        with pytest.raises(mj.KernelAssertion, match=r"test_queues.py:\d+.*negative") as caught:
            future.result()
        assert any("test_queues.py" in note for note in caught.value.__notes__)
    assert future.done()
    q.finish()
    with pytest.raises(mj.ShapeError):
        q.submit(plus, ramp(3), ramp(4)).result()
    np.testing.assert_array_equal(q.submit(positive, ramp()).result(), ramp())


def test_an_error_that_nobody_looked_at_is_raised_at_the_end() -> None:
    q = mj.Queue("cpu")
    q.submit(positive, -ramp())
    with pytest.raises(mj.KernelAssertion):
        q.finish()
    q.finish()
    with pytest.raises(ZeroDivisionError), mj.Queue("cpu") as q:
        q.submit(divmod, 1, 0)


def test_a_queue_that_is_dropped_tells_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    done = script("""
        mj.Queue("cpu").submit(divmod, 1, 0)
    """)
    assert done.returncode == 0
    assert "ZeroDivisionError" in done.stderr


def test_work_behind_an_error_does_not_run(gate: threading.Event) -> None:
    q, ran = mj.Queue("cpu", name="q"), list[int]()
    q.submit(gate.wait)
    first = q.submit(divmod, 1, 0)
    second = q.submit(ran.append, 2)
    gate.set()
    with pytest.raises(ZeroDivisionError):
        first.result()
    with pytest.raises(mj.QueueFault, match="ZeroDivisionError") as caught:
        second.result()
    assert caught.value.slug == "queue-stopped"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    q.submit(ran.append, 3).result()
    assert ran == [3]
    q.finish()


def test_a_look_at_what_did_not_run_is_one_at_the_error() -> None:
    q = mj.Queue("cpu")
    q.submit(divmod, 1, 0)
    with pytest.raises(mj.QueueFault):
        q.submit(int).result()
    q.finish()
    assert q.submit(int).result() == 0


def test_work_that_needs_a_failed_result_fails_with_its_error() -> None:
    a, b = mj.Queue("cpu"), mj.Queue("cpu")
    bad = a.submit(positive, -ramp())
    with pytest.raises(mj.KernelAssertion):
        b.submit(twice, bad).result()
    a.finish()
    b.finish()
    with pytest.raises(mj.KernelAssertion):
        b.submit(twice, bad).result()


@dataclasses.dataclass
class Unrepeatable:
    """What `dataclasses.replace` cannot make another one of."""

    x: Any
    scale: dataclasses.InitVar[float]


@pytest.mark.parametrize("waits", [False, True])
def test_a_result_that_cannot_be_held_is_an_error_of_the_work_that_takes_it(
    waits: bool, gate: threading.Event
) -> None:
    a, b = mj.Queue("cpu"), mj.Queue("cpu")
    if waits:
        a.submit(gate.wait)
    first = a.submit(Unrepeatable, ramp(), 1.0)
    if not waits:
        first.result()
    second = b.submit(print, first)
    gate.set()
    with pytest.raises(ValueError, match="scale"):
        second.result()
    assert first.result().x.flags.writeable
    with pytest.raises(ValueError, match="scale"):
        a.submit(print, Unrepeatable(ramp(), 1.0))
    a.finish()


def test_a_signal_behind_an_error_is_not_given() -> None:
    """So nobody reads what the failed work was to write."""
    event, a, b = mj.Event(), mj.Queue("cpu"), mj.Queue("cpu")
    ran: list[int] = []
    a.submit(divmod, 1, 0)
    a.signal(event, 1)
    b.wait_for(event, 1)
    consumer = b.submit(ran.append, 1)
    for wait in (consumer.result, lambda: event.wait(1)):
        with pytest.raises(mj.QueueFault, match="ZeroDivisionError") as caught:
            wait()
        assert caught.value.slug == "queue-stopped"
    assert (ran, event.value) == ([], 0)
    with pytest.raises(ZeroDivisionError):
        a.finish()
    event.signal(1)
    b.wait_for(event, 1)
    b.submit(ran.append, 2).result()
    assert ran == [2]


def test_dropped_work_does_not_hold_what_comes_later(gate: threading.Event) -> None:
    a, b = mj.Queue("cpu"), mj.Queue("cpu")
    a.submit(gate.wait)
    first = a.submit(twice, ramp())
    dropped = b.submit(twice, first)
    with pytest.raises(KeyError), b:
        raise KeyError(1)
    assert dropped.done()
    gate.set()
    first.result()[0] = 7
    a.finish()


def test_an_error_in_the_block_drops_what_has_not_begun(gate: threading.Event) -> None:
    x, event, ran, q = ramp(), mj.Event(), list[int](), mj.Queue("cpu")
    q.wait_for(event, 1)
    future = q.submit(twice, x)
    q.submit(ran.append, 1)
    with pytest.raises(KeyError), q:
        raise KeyError(1)
    assert x.flags.writeable
    assert ran == []
    with pytest.raises(mj.QueueFault, match="KeyError"):
        future.result()
    assert q.submit(int).result() == 0


# ---- deadlocks ----


def script(text: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
    start += "import os, threading, time\nimport numpy as np\nimport metaljit as mj\n"
    return subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(text)],
        capture_output=True, text=True, timeout=timeout, check=False, env=dict(os.environ),
    )  # fmt: skip


TRIED = """
def tried(call):
    try:
        call()
    except mj.QueueFault as e:
        print(e.slug, str(e).splitlines()[0])
e, q = mj.Event("e"), mj.Queue("cpu", name="q")
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tried(lambda: e.wait(1))", ["the host waits for 'e' to reach 1 (it is at 0)"]),
        ("q.wait_for(e, 1)\ntried(q.finish)\nq.finish()", ["'q' waits for 'e' to reach 1", "the host waits for 'q' to fin"]),
        ("q.wait_for(e, 1)\ntried(q.submit(int).result)", ["'q' waits for 'e' to reach 1"]),
        ("q.wait_for(e, 2)\nq.signal(e, 1)\ntried(q.finish)", ["'q' waits for 'e' to reach 2"]),
        (
            "r, f = mj.Queue('cpu', name='r'), mj.Event('f')\nq.wait_for(e, 1)\nq.signal(f, 1)\nr.wait_for(f, 1)\n"
            "r.signal(e, 1)\ntried(q.finish)\nr.finish()",
            ["'q' waits for 'e' to reach 1", "'r' waits for 'f' to reach 1"],
        ),
        ("box = []\nf = q.submit(lambda: box[0].result())\nbox.append(f)\ntried(f.result)", ["'q' waits for the work of 'q'"]),
        ("def run():\n    tried(lambda: e.wait(1))\nt = threading.Thread(target=run)\nt.start()\ntried(lambda: e.wait(2))", ["to reach 2", "to reach 1"]),
    ],
)  # fmt: skip
def test_a_deadlock_is_an_error(text: str, told: list[str]) -> None:
    done = script(TRIED + text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("event-deadlock error: nothing can go on")
    assert all(t in done.stdout for t in told), done.stdout


@pytest.mark.parametrize(
    "text",
    [
        # A thread that has touched neither queues nor events yet, and does in a moment.
        "threading.Thread(target=lambda: (time.sleep(0.5), e.signal(1))).start()\ne.wait(1)\nprint('on')",
        "q.wait_for(e, 1)\nf = q.submit(print, 'on')\nthreading.Timer(0.5, e.signal, [1]).start()\nf.result()",
        "q.submit(time.sleep, 0.5)\nq.signal(e, 1)\ne.wait(1)\nprint('on')",
        "r = mj.Queue('cpu')\nr.submit(lambda: (time.sleep(0.5), e.signal(1)))\nq.wait_for(e, 1)\nq.finish()\nprint('on')",
    ],
)
def test_as_long_as_somebody_may_signal_a_wait_is_only_long(text: str) -> None:
    done = script(TRIED + text)
    assert (done.stdout, done.stderr) == ("on\n", "")


def test_a_thread_that_ends_without_a_signal_is_noticed() -> None:
    done = script(TRIED + "threading.Thread(target=time.sleep, args=[0.5]).start()\ntried(lambda: e.wait(1))")
    assert done.stdout.startswith("event-deadlock"), done.stderr


def test_the_end_of_the_program_waits_for_its_queues() -> None:
    done = script(TRIED + "q.submit(time.sleep, 0.5)\nq.submit(print, 'ran')")
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_the_end_of_the_program_does_not_wait_for_what_never_comes() -> None:
    done = script(TRIED + "q.wait_for(e, 1)\nq.submit(print, 'ran')")
    assert done.stdout == ""
    assert "event-deadlock" in done.stderr


def test_a_forked_child_has_queues_without_work() -> None:
    done = script(
        TRIED
        + textwrap.dedent("""
        x = np.zeros(3)
        f = q.submit(lambda x: (time.sleep(0.5), 3)[1], x)
        if os.fork() == 0:
            tried(f.result)
            x[0] = 1
            print(q.submit(int).result(), flush=True)
            q.finish()
            os._exit(0)
        os.wait()
        print(f.result())
        q.finish()
        """)
    )
    assert done.stderr == ""
    assert "queue-stopped" in done.stdout
    assert done.stdout.endswith("0\n3\n")


# ---- arrays in flight ----


def test_an_array_in_flight_is_read_only(device: str, gate: threading.Event) -> None:
    x = ramp()
    q = mj.Queue(device)
    q.submit(gate.wait)
    first, second = q.submit(twice, x), q.submit(plus, x, x)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 7
    gate.set()
    first.result()
    np.testing.assert_array_equal(second.result(), 2 * ramp())
    x[0] = 7
    q.finish()


def test_an_array_of_a_device_in_flight_is_read_only(device: str, gate: threading.Event) -> None:
    x = ramp()
    for a in (mj.array(x, device=device), mj.asarray(x, device=device)):
        out = mj.array(x, device=device)
        q = mj.Queue(device)
        q.submit(gate.wait)
        first, second = q.submit(twice, a), q.submit(operator.add, a, 1.5)
        third = q.submit(twice, a, out=out)
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 7
        with pytest.raises(ValueError, match="read-only"):
            a.numpy()[0] = 7
        gate.set()
        np.testing.assert_array_equal(first.result(), 2 * ramp())
        np.testing.assert_array_equal(second.result(), ramp() + 1.5)
        assert third.result() is out
        np.testing.assert_array_equal(out, 2 * ramp())
        q.finish()
        gate.clear()
        a[0] = 7


def test_an_array_of_a_device_on_memory_of_others_is_copied_for_the_flight(gate: threading.Event) -> None:
    x = ramp()
    a = mj.asarray(x[:-1], device="cpu")
    q = mj.Queue("cpu")
    q.submit(gate.wait)
    future = q.submit(twice, a)
    x[:] = -1
    gate.set()
    np.testing.assert_array_equal(future.result(), 2 * ramp()[:-1])
    q.finish()


def test_an_array_in_flight_twice_is_given_back_by_the_last(gate: threading.Event) -> None:
    x = ramp()
    a, b = mj.Queue("cpu"), mj.Queue("cpu")
    b.submit(gate.wait)
    first, second = a.submit(twice, x), b.submit(twice, x)
    first.result()
    assert not x.flags.writeable
    gate.set()
    second.result()
    assert x.flags.writeable


def test_an_array_that_was_read_only_stays_so() -> None:
    x = ramp()
    x.flags.writeable = False
    with mj.Queue("cpu") as q:
        np.testing.assert_array_equal(q.submit(twice, x).result(), 2 * ramp())
    assert not x.flags.writeable


@pytest.mark.parametrize("f", [positive, divmod])
def test_an_error_gives_arrays_back(f: Callable[..., Any]) -> None:
    x = -ramp()
    q = mj.Queue("cpu")
    failed, behind = q.submit(f, x), q.submit(twice, x)
    for future in (failed, behind):
        with pytest.raises((mj.MetaljitError, TypeError)):
            future.result()
    assert x.flags.writeable


def test_a_part_of_another_array_is_copied(device: str, gate: threading.Event) -> None:
    whole = np.arange(16, dtype=np.float32)
    q = mj.Queue(device)
    q.submit(gate.wait)
    part = q.submit(twice, whole[::2])
    stretched = q.submit(twice, np.broadcast_to(whole[3:4], 5))
    whole[:] = -1
    gate.set()
    np.testing.assert_array_equal(part.result(), 2 * np.arange(0, 16, 2, dtype=np.float32))
    np.testing.assert_array_equal(stretched.result(), np.full(5, 6))
    q.finish()


def test_a_stretched_array_is_copied_as_what_it_repeats() -> None:
    huge = np.broadcast_to(np.float32(1), (1 << 20, 1 << 20))
    with mj.Queue("cpu") as q:
        assert q.submit(lambda x: x.shape, huge).result() == huge.shape
        assert q.submit(float, np.broadcast_to(np.float32(1), ())).result() == 1


def test_an_array_whose_base_nobody_has_is_not_copied() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with mj.Queue("cpu") as q:
        assert q.submit(np.shares_memory, x, x).result()
        seen = q.submit(lambda y: y.__array_interface__["data"][0], x)
        assert seen.result() == x.__array_interface__["data"][0]
    x[0] = 1


def test_arrays_within_containers(gate: threading.Event) -> None:
    x, y = ramp(), ramp()
    step = mj.jit(lambda p: p["layers"][0] + p["layers"][1][0])
    q = mj.Queue("cpu")
    q.submit(gate.wait)
    params = {"layers": [x, (y,)]}
    future = q.submit(step, params)
    params["layers"][0] = ramp(3)
    for a in (x, y):
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 7
    gate.set()
    np.testing.assert_array_equal(future.result(), 2 * ramp())
    assert x.flags.writeable
    assert y.flags.writeable


def test_a_container_without_arrays_is_passed_as_it_is() -> None:
    found: list[int] = []
    with mj.Queue("cpu") as q:
        q.submit(lambda to: to.append(1), found)
    assert found == [1]


def test_storage_is_the_works_alone_and_comes_back(device: str, gate: threading.Event) -> None:
    whole = np.zeros((2, 8), np.float32)
    row = whole[1]
    q = mj.Queue(device)
    q.submit(gate.wait)
    future = q.submit(twice, ramp(), out=row)
    for a in (row, whole):
        with pytest.raises(ValueError, match="read-only"):
            a[...] = 7
    gate.set()
    assert future.result() is row
    np.testing.assert_array_equal(whole, [np.zeros(8), 2 * ramp()])
    whole[0] = 1
    row[0] = 1
    q.finish()


def test_an_array_that_is_its_own_storage(device: str) -> None:
    x = ramp()
    with mj.Queue(device) as q:
        for _ in range(3):
            q.submit(grow, x, out=x)
    np.testing.assert_array_equal(x, ramp() + 3)


def test_a_result_that_other_work_takes_is_held_from_the_start(gate: threading.Event) -> None:
    a, b = mj.Queue("cpu"), mj.Queue("cpu")
    first = a.submit(twice, ramp())
    b.submit(gate.wait)
    second = b.submit(twice, first)
    x = first.result()
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 7
    gate.set()
    np.testing.assert_array_equal(second.result(), 4 * ramp())
    x[0] = 7
    b.finish()
