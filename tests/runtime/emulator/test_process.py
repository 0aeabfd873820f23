"""The worker process: kernels that crash leave Python alive, buffers keep their aliases, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from abi_kernels import bound, build, crash, ints, launch, zeros

from metaljit.runtime.emulator import faults, memory, process
from metaljit.runtime.emulator.faults import Crash
from metaljit.source import DeviceFault, InternalError

COPY = "o[i] = a[i];"


def test_buffers_are_read_and_written() -> None:
    o = zeros()
    assert launch(build(COPY), [ints(), o], threads=64) == ()
    np.testing.assert_array_equal(o, ints())


def test_the_shared_memory_grows() -> None:
    for count in (100, 100_000, 3_000_000, 7):
        a, o = ints(count), zeros(count)
        launch(build(COPY), [a, o], threads=count)
        np.testing.assert_array_equal(o, a)


def test_what_a_large_run_needed_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_KEPT", 1 << 20)
    for count in (1_000_000, 100, 1_000_000):
        o = zeros(count)
        launch(build(COPY), [ints(count), o], threads=count)
        np.testing.assert_array_equal(o, ints(count))
        segment = process._workers[0]._segment
        assert segment is not None
        assert os.fstat(segment.descriptor).st_size <= 1 << 20


def test_memory_bound_twice_is_the_same_memory() -> None:
    memory = ints(64)
    launch(build("if (!i) { a[3] = 100; o[0] = a[35]; o[1] = o[-31]; }"), [memory, memory[32:]], threads=1)
    assert memory[3] == 100
    assert memory[32] == 35
    assert memory[33] == 1


def test_a_buffer_of_no_bytes_can_be_bound() -> None:
    o = zeros()
    launch(build("o[i] = i;"), [zeros(0), o], threads=64)
    np.testing.assert_array_equal(o, ints())
    assert crash(build("o[i] = a[i];"), [zeros(0), o], threads=64).kind == "out-of-bounds"


REACHES = [("o[i + (i == 63)] = 1;", "write", 256), ("o[i] = a[i + (i == 63)];", "read", 256)]
REACHES += [("o[i] = a[(int)i - 5000];", "read", -20000)]


@pytest.mark.parametrize(("body", "access", "byte"), REACHES)
def test_an_access_outside_of_a_buffer_crashes_by_itself(body: str, access: str, byte: int) -> None:
    fault = crash(build(body), [ints(), zeros()], threads=64, threadgroup=64)
    assert fault.kind == "out-of-bounds"
    name = "o" if access == "write" else "a"
    assert f"out-of-bounds {access} at byte {byte} of `{name}` (256 bytes)" in fault.message
    assert fault.thread == ((0, 0, 0) if byte < 0 else (63, 0, 0))
    assert fault.location is not None
    assert fault.location.startswith("k.metal:1:")


CRASHES = {
    "null": ("*(volatile int*)t.in->buffers[9] = 1;", "null-pointer", "write through a null pointer"),
    "wild": ("*(volatile int*)0x123456789000 = 1;", "out-of-bounds", "where the kernel has no memory"),
    "stack": ("o[i] = deep(i);", "stack-overflow", "256 KiB"),
    "trap": ("if (i == 5) __builtin_trap();", "aborted", "by thread (5, 0, 0)"),
    "endless": ("for (volatile int k = 0;;) ++k;", "endless-loop", "0.5 s"),
    "spinning": ("while (!*(volatile int*)a) __emu_yield();", "endless-loop", "0.5 s"),
}
DEEP = "__attribute__((noinline)) int deep(int n) { volatile int y[64]; y[n % 64] = n; return deep(n + 1) + y[3]; }"


@pytest.mark.parametrize("name", CRASHES)
def test_python_lives_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_EMULATOR_LIMIT", "0.5")
    body, kind, message = CRASHES[name]
    o = zeros()
    fault = crash(build(body, before=DEEP), [ints(), o], threads=64)
    assert fault.kind == kind
    assert message in fault.message
    assert not o.any()
    launch(build(COPY), [ints(), o], threads=64)
    np.testing.assert_array_equal(o, ints())


@pytest.mark.slow
def test_many_groups_are_no_endless_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = build("for (volatile int k = 0; k < a[0]; ++k) {}\n o[0] = 1;")
    turns = np.array([10_000_000], np.int32)
    launch(kernel, [zeros(1), zeros(1)], groups=(1, 1, 1), threadgroup=1)
    start = time.monotonic()
    launch(kernel, [turns, zeros(1)], groups=(1, 1, 1), threadgroup=1)
    turns[0] = min(
        turns[0] * 0.5 / (time.monotonic() - start), 2_000_000_000
    )  # longer than two ticks of the alarm
    monkeypatch.setenv("METALJIT_EMULATOR_LIMIT", "4")
    assert not launch(kernel, [turns, zeros(1)], groups=(12, 1, 1), threadgroup=1)


def test_a_read_only_buffer_is_not_written() -> None:
    o = zeros()
    fault = crash(build("o[i] = 1;"), [ints(), bound(o, "o", writable=False)], threads=64)
    assert fault.message.startswith("write to `o`, which is read-only")


@pytest.mark.parametrize(
    "type_",
    ["signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long", "unsigned long"],
)
def test_division_by_zero_is_zero(type_: str) -> None:
    o = np.full(6, 7, np.int64)
    kernel = build(
        f"auto p = (const volatile {type_}*)a; auto q = (volatile long*)o; {type_} x = p[0], y = p[1];\n"
        "q[0] = x / y; q[1] = x % y; q[2] = x / p[1]; q[3] = x % p[i + 1]; q[4] = x / p[2]; q[5] = x % p[2];"
    )
    names = {"signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4"}
    dtype = names.get(type_) or {"unsigned": "u4", "long": "i8", "unsigned long": "u8"}[type_]
    assert not launch(kernel, [np.array([100, 0, 7], dtype), o], threads=1)
    np.testing.assert_array_equal(o, [0, 100, 0, 100, 14, 2])


@pytest.mark.parametrize("type_", ["int", "long"])
def test_the_smallest_integer_divided_by_minus_one_is_itself(type_: str) -> None:
    o = np.full(2, 7, np.int64)
    kernel = build(
        f"auto p = (const volatile {type_}*)a; auto q = (volatile long*)o; {type_} x = p[0], y = p[1];\n"
        "q[0] = x / y; q[1] = x % y;"
    )
    smallest = np.iinfo(np.int32 if type_ == "int" else np.int64).min
    launch(kernel, [np.array([smallest, -1], "i4" if type_ == "int" else "i8"), o], threads=1)
    np.testing.assert_array_equal(o, [smallest, 0])


def test_a_library_that_is_none_is_our_fault(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("nothing")
    with pytest.raises(InternalError, match="refused by the loader"):
        launch(str(tmp_path / "x.so"), [ints()], threads=1)


@pytest.mark.parametrize("text", ["soon", "0", "-3", "nan"])
def test_a_limit_that_is_no_number_of_seconds(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_EMULATOR_LIMIT", text)
    with pytest.raises(DeviceFault, match="METALJIT_EMULATOR_LIMIT") as caught:
        launch(build(COPY), [ints(), zeros()], threads=1)
    assert caught.value.slug == "bad-setting"


def test_a_worker_that_was_killed_between_runs_is_replaced() -> None:
    o = zeros()
    launch(build(COPY), [ints(), o], threads=1)
    first = process._workers[0]._process
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    launch(build(COPY), [ints(), o], threads=64)
    np.testing.assert_array_equal(o, ints())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_killed_during_a_run_is_told_and_replaced(number: signal.Signals) -> None:
    o = zeros()
    launch(build(COPY), [ints(), o], threads=1)
    worker = process._workers[0]._process
    assert worker is not None
    killer = threading.Timer(0.3, os.kill, (worker.pid, number))
    killer.start()
    with pytest.raises(DeviceFault, match=f"ended by {number.name} while it ran") as caught:
        launch(build("while (a[0] == 0) o[1] = 1;"), [ints(), o], threads=1)
    killer.join()
    assert caught.value.slug == "emulator-ended"
    launch(build(COPY), [ints(), o], threads=64)
    np.testing.assert_array_equal(o, ints())


def test_a_worker_that_ends_by_itself_is_our_fault() -> None:
    assert isinstance(process._ended("k", 1), InternalError)
    assert isinstance(process._ended("k", -signal.SIGSEGV), InternalError)


def test_an_outcome_that_the_kernel_wrote_over(monkeypatch: pytest.MonkeyPatch) -> None:
    o = zeros()
    launch(build(COPY), [ints(), o], threads=1)
    before, read = process._workers[0]._process, faults.read
    monkeypatch.setattr(faults, "read", lambda page: read(b"\x41" * len(page)))
    fault = crash(build(COPY), [ints(), o], threads=64)
    assert (fault.kind, fault.message) == ("out-of-bounds", "the kernel wrote over the emulator's own memory")
    assert fault.thread is None
    monkeypatch.undo()
    launch(build(COPY), [ints(), o], threads=64)
    np.testing.assert_array_equal(o, ints())
    assert process._workers[0]._process is not before


def test_memory_that_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    o = zeros()
    launch(build(COPY), [ints(), o], threads=1)

    def refuse(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(memory.Segment, "copy_in", refuse)
    with pytest.raises(DeviceFault, match="cannot map the memory") as caught:
        launch(build(COPY), [ints(), o], threads=1)
    assert caught.value.slug == "out-of-device-memory"
    monkeypatch.undo()
    launch(build(COPY), [ints(), o], threads=64)
    np.testing.assert_array_equal(o, ints())


def test_standard_streams_may_be_closed() -> None:
    """Their numbers are free for the pipes to the worker then."""
    done = script(
        f"""
        os.close(0), os.close(1)
        o = zeros()
        launch(build({COPY!r}), [ints(), o], threads=64)
        assert (o == ints()).all()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_that_python_ends_with_is_lost_without_a_word() -> None:
    done = script(
        """
        import threading
        kernel = build("while (a[0] == 0) o[1] = 1;")
        run = lambda: launch(kernel, [ints(), zeros()], threads=1)
        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.5)
        print(process._workers[0]._process.pid)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not alive(int(done.stdout))


def test_threads_have_results_of_their_own() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for k in range(20):
            a, o = ints() * seed + k, zeros()
            launch(build(COPY), [a, o], threads=64)
            if (a != o).any():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_runs_of_two_threads_overlap() -> None:
    """A run that does not end keeps nobody else from running."""
    endless = build("while (a[0] == 0) o[1] = 1;")
    ended: list[str] = []

    def work() -> None:
        with pytest.raises(DeviceFault) as caught:
            launch(endless, [ints(), zeros()], threads=1)
        ended.append(caught.value.slug)

    thread = threading.Thread(target=work)
    thread.start()
    while not (busy := [w for w in process._workers if w.lock.locked() and w._process]):
        time.sleep(0.01)
    for _ in range(3):
        o = zeros()
        launch(build(COPY), [ints(), o], threads=64)
        np.testing.assert_array_equal(o, ints())
    assert not ended
    running = busy[0]._process
    assert running is not None
    time.sleep(
        0.2
    )  # the kernel has begun: a worker that is killed before may be taken for one that was never there
    running.kill()
    thread.join()
    assert ended == ["emulator-ended"]


def test_there_are_not_more_workers_than_may_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    most, running, lock = 0, 0, threading.Lock()

    def run(self: process.Worker, what: process.Run) -> tuple[faults.Fault, ...]:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1
        return ()

    monkeypatch.setattr(process.Worker, "run", run)
    kernel = build(COPY)

    def work() -> None:
        for _ in range(20):
            launch(kernel, [ints(), zeros()], threads=1)

    threads = [threading.Thread(target=work) for _ in range(3 * process.MOST_WORKERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert most == process.MOST_WORKERS
    assert len(process._workers) <= process.MOST_WORKERS
    assert not any(w.lock.locked() for w in process._workers)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="counts files in /proc")
def test_crashes_leave_no_files_open() -> None:
    def once() -> None:
        crash(build(CRASHES["null"][0]), [ints(), zeros()], threads=1)
        launch(build(COPY), [ints(), zeros()], threads=1)

    once()
    before = _open_files()
    for _ in range(3):
        once()
    assert _open_files() == before


def script(text: str) -> subprocess.CompletedProcess[str]:
    start = f"import sys; sys.path[:0] = [{os.path.dirname(os.path.dirname(__file__))!r}]\n"
    start += (
        "from abi_kernels import *\nfrom metaljit.runtime.emulator import process\nimport os, signal, time\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", start + textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "METALJIT_EMULATOR_LIMIT": "1000"},
    )


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)"])
def test_the_worker_ends_with_its_parent(end: str) -> None:
    done = script(f"""
        launch(build("o[i] = 1;"), [ints(), zeros()], threads=1)
        print(process._workers[0]._process.pid, flush=True)
        {end}
    """)
    assert not done.stderr, done.stderr
    pid = int(done.stdout)
    for _ in range(100):
        if not alive(pid):
            return
        time.sleep(0.05)
    pytest.fail("the worker is still there")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_in_an_endless_loop_ends_with_its_parent() -> None:
    done = script("""
        import threading
        launch(build("o[i] = 1;"), [ints(), zeros()], threads=1)
        kernel = build("for (volatile int k = 0;;) ++k;")
        threading.Thread(target=lambda: launch(kernel, [ints(), zeros()], threads=1), daemon=True).start()
        time.sleep(0.3)
        print(process._workers[0]._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    pid = int(done.stdout)
    for _ in range(100):
        if not alive(pid):
            return
        time.sleep(0.05)
    pytest.fail("the worker is still there")


def test_an_interrupt_ends_the_kernel_and_not_python() -> None:
    done = script("""
        import threading
        kernel = build("for (volatile int k = 0;;) ++k;")
        launch(build("o[i] = 1;"), [ints(), zeros()], threads=1)
        first = process._workers[0]._process.pid
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            launch(kernel, [ints(), zeros()], threads=1)
        except KeyboardInterrupt:
            print("interrupted")
        o = zeros()
        launch(build("o[i] = 1;"), [ints(), o], threads=64)
        print(o.sum(), process._workers[0]._process.pid != first)
    """)
    assert done.stdout.split() == ["interrupted", "64", "True"], done.stderr


def test_a_forked_child_has_its_own_worker() -> None:
    done = script("""
        launch(build("o[i] = 1;"), [ints(), zeros()], threads=1)
        mine = process._workers[0]._process.pid
        copy = build("o[i] = i;")
        child = os.fork()
        o = zeros()
        launch(copy, [ints(), o], threads=64)
        assert (o == ints()).all()
        if not child:
            print(process._workers[0]._process.pid != mine, flush=True)
            sys.exit()
        os.waitpid(child, 0)
        launch(copy, [ints(), zeros()], threads=64)
        print(process._workers[0]._process.pid == mine)
    """)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_a_crash_tells_what_was_found_before() -> None:
    kernel = build("o[0] = i;\nif (i == 20) *(volatile int*)t.in->buffers[9] = 1;", sanitize=True)
    with pytest.raises(Crash) as caught:
        launch(kernel, [ints(), zeros()], threads=32, sanitize=True)
    assert caught.value.fault.kind == "null-pointer"
    assert [f.kind for f in caught.value.others] == ["race"]
