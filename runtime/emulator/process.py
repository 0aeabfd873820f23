"""The worker processes, seen from the user's: runs a compiled kernel there, and lives on whatever the kernel does.

In: a `Run`. Out: what was written to its buffers, and the faults found. Runs of several threads overlap, each in a worker of
its own. A worker that died is replaced at the next run. Workers belong to this process alone: a forked child starts its own.
"""

from __future__ import annotations

import atexit
import mmap
import os
import signal
import struct
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from metaljit.frozen import frozen
from metaljit.runtime.emulator import faults, lines
from metaljit.runtime.emulator.faults import Context, Crash, Fault, Record
from metaljit.runtime.emulator.memory import CONTROL, Region, Segment, above_standard, lay_out
from metaljit.runtime.emulator.worker import HEAD, NO_MEMORY, NOT_LOADED, REPLY, read
from metaljit.runtime.library import SHIM, place
from metaljit.source import DeviceFault, Diagnostic, InternalError

if TYPE_CHECKING:
    import subprocess

    from numpy.typing import NDArray

LIMIT = 20.0  # seconds
MOST_THREADS = 1024
MOST_WORKERS = max(os.cpu_count() or 1, 2)  # runs at the same time
SLOTS = 31
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
_SOURCES = os.path.join(SHIM, "emulator")
# Signals and stacks are touched in ways that the optimiser must not reason about.
_FLAGS = ("-std=c++23", "-O2", "-fno-strict-aliasing", "-fno-omit-frame-pointer", "-I", _SOURCES)
_REQUEST = struct.Struct("<5I3I3I3IQd")
_REGION = struct.Struct("<QQII")
_BINDING = struct.Struct("<IIQQII")
_MEMORY = struct.Struct("<II")
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SANITIZED, _LENIENT, _SHUFFLED = 1, 2, 4
_WRITABLE, _UNDEFINED, _PADDED = 1, 2, 4


@frozen
class Binding:
    """Memory for a buffer: one-dimensional, contiguous, written back if `writable`.

    `undefined` contents are none until written: a sanitized run reports reads of them, and what was left unwritten;
    `padded` ones are structs, whose gaps nobody writes.
    """

    memory: NDArray[np.uint8]
    name: str
    writable: bool
    undefined: bool = False
    padded: bool = False


@frozen
class Run:
    """A kernel, compiled, and all that it is run with.

    `entry` is a symbol of `library`. The grid is given as whole `groups` or as `threads`, the other one is None.
    `lenient` goes on after a divergent barrier; `seed` runs threads and groups in another order than the ascending one.
    """

    library: str
    entry: str
    kernel: str
    buffers: Mapping[int, Binding]
    threadgroup_memory: Mapping[int, int]
    groups: tuple[int, int, int] | None
    threads: tuple[int, int, int] | None
    threadgroup: tuple[int, int, int]
    sanitize: bool
    lenient: bool = False
    seed: int | None = None


def run(run: Run) -> tuple[Fault, ...]:
    """Runs a kernel to its end and gives what was found wrong; if that is nothing, buffers have their new contents.

    A run that is lenient writes back whatever was found. Crash where it did not end: nothing is written back then.
    DeviceFault where no worker can be started.
    """
    with _turns:
        worker = _free()
        try:
            return worker.run(run)
        finally:
            worker.lock.release()


def _free() -> Worker:
    """A worker that runs nothing, with its lock held: whoever has one of the `_turns` finds one, or may start one."""
    with _choice:
        for worker in _workers:
            if worker.lock.acquire(blocking=False):
                return worker
        worker = Worker()
        worker.lock.acquire()
        _workers.append(worker)
        return worker


class Worker:
    """The process, its pipes and its shared memory. One run at a time: whoever calls holds the lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._segment: Segment | None = None
        self._requests = self._replies = -1
        self.closed = False  # Python is about to end: a thread whose run is lost ends without a word

    def run(self, run: Run) -> tuple[Fault, ...]:
        _check(run)
        regions = lay_out(run.buffers)
        if self._process is not None and self._process.poll() is not None:
            self.stop()  # ended from outside meanwhile
        if self._process is None:
            self._start()
        segment = self._segment
        assert segment is not None
        try:
            segment.copy_in(regions)
        except OSError as e:
            raise _no_memory() from e
        try:
            status, message = self._ask(_message(run, regions))
        except BaseException:
            self.stop()  # interrupted: the worker may be in the middle of the kernel
            raise
        if status == NOT_LOADED:
            raise InternalError(f"the library of {run.kernel} is refused by the loader: {message}")
        if status == NO_MEMORY:
            raise _no_memory()
        stopped, entry, records = faults.read(segment.control())
        if status is None:
            exit_code = self.stop() or 0
            if not stopped:
                raise _ended(run.kernel, exit_code) if not self.closed else SystemExit
        if any(r.kind == faults.OVERWRITTEN for r in records):
            self.stop()
        found = _faults(run, entry, records)
        if stopped:
            raise Crash(found[-1], faults.distinct(found[:-1], found[-1:]))
        found = faults.distinct(found)
        if run.lenient or not found:
            segment.copy_out(regions)
        segment.give_back()
        return found

    def _start(self) -> None:
        import subprocess

        segment = Segment()
        ours: list[int] = []
        theirs: list[int] = []
        try:
            requests, self._requests = _pipe()
            theirs.append(requests)
            ours.append(self._requests)
            self._replies, replies = _pipe()
            theirs.append(replies)
            ours.append(self._replies)
            numbers = (requests, replies, segment.descriptor, CONTROL, mmap.PAGESIZE)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _WORKER, _runtime(), *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=numbers[:3],
            )
        except BaseException as e:
            for descriptor in (*ours, segment.descriptor):
                os.close(descriptor)
            if isinstance(e, OSError):
                raise _not_started(str(e)) from e
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._segment = segment

    def _ask(self, message: bytes) -> tuple[int | None, str]:
        """The worker's answer; None where it died."""
        try:
            view = memoryview(message)
            while view:
                view = view[os.write(self._requests, view) :]
            head = read(self._replies, REPLY.size)
            if head is None:
                return None, ""
            status, nbytes = REPLY.unpack(head)
            return status, (read(self._replies, nbytes) or b"").decode() if nbytes else ""
        except BrokenPipeError:
            return None, ""

    def stop(self) -> int | None:
        """Ends the process; its exit status, None where there was none."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        status = process.wait()
        self.forget()
        return status

    def forget(self) -> None:
        """Closes what leads to the process: what a forked child does, to which it does not belong."""
        for descriptor in (self._requests, self._replies):
            if descriptor >= 0:
                os.close(descriptor)
        if self._segment is not None:
            self._segment.close()
        self._segment = None
        self._requests = self._replies = -1


_workers = [Worker()]  # the first is busy with all that comes one after the other
_turns = threading.Semaphore(MOST_WORKERS)
_choice = threading.Lock()


@atexit.register
def _stop() -> None:
    for worker in _workers:
        worker.closed = True
        worker.stop()


def _after_fork() -> None:
    global _turns, _choice
    for old in _workers:
        if old._process is not None:
            old._process.returncode = 0  # the parent's child, not ours: nobody here waits for it
            old._process = None
        old.forget()
    _workers[:] = [Worker()]
    _turns, _choice = threading.Semaphore(MOST_WORKERS), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _check(run: Run) -> None:
    size = run.threadgroup
    if not all(size) or size[0] * size[1] * size[2] > MOST_THREADS:
        raise InternalError(f"a threadgroup of {size} threads was asked for")
    if (run.groups is None) == (run.threads is None):
        raise InternalError("a grid is given as threadgroups or as threads")
    if not all(0 <= slot < SLOTS for slot in (*run.buffers, *run.threadgroup_memory)):
        raise InternalError("there are 31 buffers and as many arguments of threadgroup memory")


def _message(run: Run, regions: list[Region]) -> bytes:
    flags = run.sanitize * _SANITIZED | run.lenient * _LENIENT | (run.seed is not None) * _SHUFFLED
    memories = [_MEMORY.pack(slot, n) for slot, n in sorted(run.threadgroup_memory.items()) if n]
    none = (0, 0, 0)
    grid = (*(run.groups or none), *(run.threads or none), *run.threadgroup)
    seed = (run.seed or 0) & 0xFFFF_FFFF_FFFF_FFFF
    parts = [
        _REQUEST.pack(
            flags, mmap.PAGESIZE, len(regions), len(run.buffers), len(memories), *grid, seed, _limit()
        )
    ]
    parts += [
        _REGION.pack(
            r.offset, r.nbytes, r.writable * _WRITABLE | r.undefined * _UNDEFINED | r.padded * _PADDED, 0
        )
        for r in regions
    ]
    parts += [
        _BINDING.pack(slot, i, at, b.memory.nbytes, b.writable * _WRITABLE | b.undefined * _UNDEFINED, 0)
        for i, r in enumerate(regions)
        for slot, at, b in r.members
    ]
    path, entry = os.fsencode(run.library), run.entry.encode()
    body = b"".join((path, entry, *parts, *memories))
    return HEAD.pack(len(body), len(path), len(entry)) + body


def _faults(run: Run, entry: int, records: list[Record]) -> tuple[Fault, ...]:
    if not records:
        return ()
    names = {slot: binding.name for slot, binding in run.buffers.items()}
    context = Context(run.kernel, entry, names, lines.reader(run.library, run.entry, entry))
    return faults.told(records, context)


def _limit() -> float:
    asked = os.environ.get("METALJIT_EMULATOR_LIMIT")
    if not asked:
        return LIMIT
    try:
        seconds = float(asked)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise DeviceFault(
            Diagnostic(
                "bad-setting",
                f"METALJIT_EMULATOR_LIMIT is {asked!r}, and must be a number of seconds above 0",
                help="unset it to allow each threadgroup 20 seconds",
            )
        )
    return seconds


def _runtime() -> str:
    """The path of the compiled runtime."""
    with os.scandir(_SOURCES) as entries:
        found = sorted(
            (e.name, e.stat())
            for e in entries
            if e.name == "abi.h" or "runtime" in e.name or e.name.endswith(".cpp")
        )
    # The stamps make the text, and with it the key of the library, another one when a file has changed.
    stamps = "".join(f"// {name} {status.st_size} {status.st_mtime_ns}\n" for name, status in found)
    parts = "".join(f'#include "{name}"\n' for name, _ in found if name.endswith(".cpp"))
    return place(stamps + parts, "the emulator's runtime", _FLAGS)


def _pipe() -> tuple[int, int]:
    """A pipe beside the standard streams: where those are closed, their numbers are free, and the worker's own."""
    reading, writing = os.pipe()
    return above_standard(reading), above_standard(writing)


def _ended(kernel: str, status: int) -> Exception:
    """Why the process ended that told no reason: by a signal of another process, or by a fault of ours."""
    if -status not in _FROM_OUTSIDE:
        return InternalError(f"the emulator's process ended (status {status}) without a reason")
    return DeviceFault(
        Diagnostic(
            "emulator-ended",
            f"the emulator's process was ended by {signal.Signals(-status).name} while it ran {kernel}",
            help="another process or the system did it, for example for want of memory; run it again",
        )
    )


def _not_started(reason: str) -> DeviceFault:
    return DeviceFault(
        Diagnostic("emulator-not-started", f"the emulator's process cannot be started: {reason}")
    )


def _no_memory() -> DeviceFault:
    return DeviceFault(
        Diagnostic("out-of-device-memory", "the emulator's process cannot map the memory of this run")
    )
