"""What a run found: records of the worker, turned into sentences about the user's kernel.

In: the shared page after a run, and what the buffers are called. Out: `Fault`s.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from metaljit.frozen import frozen
from metaljit.runtime.emulator.lines import Place
from metaljit.source import InternalError

Position = tuple[int, int, int]

HEADER = struct.Struct("<IIIIQ")  # status, records, dropped, unused, address of the entry
RECORD = struct.Struct("<4IqQ4I12I3Q4q4I88s")
STOPPED = 2
MOST_RECORDS = 65
NONE, BUFFER, ARGUMENT, STATIC, STACK_GUARD, STACK, CONSTANT = range(7)
WRITE, ATOMIC = 1, 2
_SHARED = (BUFFER, ARGUMENT, STATIC)


@frozen
class Fault:
    """Something that a kernel did wrong.

    `kind` is a slug, `message` a sentence that names thread and place of memory. `location` is `file:line:column` of
    the user's text, `second` the place of the other access or barrier with what it is; None where unknown. The fault was
    met `count` times at this place; positions are those of the first time. `thread` is the position in the grid; both
    positions are None for what no single thread did.
    """

    kind: str
    kernel: str
    message: str
    thread: Position | None = None
    threadgroup: Position | None = None
    location: str | None = None
    second: tuple[str, str] | None = None
    count: int = 1


@frozen
class Kind:
    """A kind of fault: its code in the documentation, and what makes its sentence."""

    slug: str
    sentence: Callable[[Record, Context], str]


class Crash(Exception):
    """A run that did not end. `fault` says why, `others` what was found before."""

    def __init__(self, fault: Fault, others: tuple[Fault, ...] = ()) -> None:
        super().__init__(fault.message)
        self.fault = fault
        self.others = others
        self.faults = (*others, fault)


@frozen
class Record:
    """One record as the worker wrote it; `record` in `runtime_state.h` has the same fields."""

    kind: int
    count: int
    space: int
    slot: int
    offset: int
    extent: int
    nbytes: int
    access: int
    other_access: int
    has_other: int
    thread: Position
    threadgroup: Position
    other_thread: Position
    other_threadgroup: Position
    address: int
    pc: int
    other_pc: int
    values: tuple[int, int, int, int]
    line: int
    column: int
    other_line: int
    other_column: int
    text: str


@frozen
class Context:
    """What the sentences need to know of the run: names, the entry's address, and how places are found."""

    kernel: str
    entry: int
    buffers: Mapping[int, str]
    place: Callable[[int], Place | None] = field(compare=False)


def read(page: bytes | memoryview) -> tuple[bool, int, list[Record]]:
    """Whether the run was stopped, the entry's address in the worker, and the records.

    Where the kernel wrote over the page itself, one record says so.
    """
    status, count, _, _, entry = HEADER.unpack_from(page)
    if status > STOPPED or count > MOST_RECORDS:
        return True, 0, [_record(bytes(RECORD.size), 0)]
    return status == STOPPED, entry, [_record(page, HEADER.size + i * RECORD.size) for i in range(count)]


def _record(page: bytes | memoryview, at: int) -> Record:
    v = RECORD.unpack_from(page, at)
    text = v[33].split(b"\0", 1)[0].decode(errors="replace")
    positions = (v[10:13], v[13:16], v[16:19], v[19:22])
    fields: list[Any] = [*v[:10], *positions, *v[22:25], v[25:29], *v[29:33], text]
    return Record(*fields)


def fault(record: Record, context: Context) -> Fault:
    """The sentence for a record."""
    if record.kind not in _SENTENCES:
        raise InternalError(f"the emulator's runtime reports a fault of unknown kind {record.kind}")
    kind = _SENTENCES[record.kind]
    if record.kind == ACCESS and not record.space and record.address < 4096:
        kind = Kind("null-pointer", kind.sentence)
    elif record.kind == ACCESS and 0 <= record.offset < record.extent and record.space in _SHARED:
        kind = Kind("write-to-read-only", _read_only)
    message = kind.sentence(record, context)
    single = record.kind not in _OF_NO_THREAD
    if single and record.kind != RACE:
        message += f", by thread {record.thread}"
    return Fault(
        kind.slug,
        context.kernel,
        message,
        record.thread if single else None,
        record.threadgroup if single else None,
        _location(record, context),
        _second(record, context),
        record.count,
    )


def told(records: Sequence[Record], context: Context) -> tuple[Fault, ...]:
    """The sentences for records, in order, without accesses whose index was told of before.

    Where the last one is such an access, which may have ended the run, what tells of its index is the last one.
    """
    found = [(r.kind, fault(r, context)) for r in records]
    indices = {_line(f): f for kind, f in found if kind in _OF_INDEX and f.location}
    last = found[-1] if found else None
    said = [f for kind, f in found if kind not in _OF_ACCESS or _line(f) not in indices]
    if last and last[0] in _OF_ACCESS and (cause := indices.get(_line(last[1]))):
        said = [*(f for f in said if f is not cause), cause]
    return tuple(said)


def _line(f: Fault) -> str:
    return f.location.rsplit(":", 1)[0] if f.location else ""


def distinct(found: Iterable[Fault], told: Iterable[Fault] = ()) -> tuple[Fault, ...]:
    """One fault for each place of the text, or pair of places, that is not among those `told` already.

    A place that was compiled several times, a vector with several components and a race that was met from both sides tell
    the same thing again. So does a read of what was never written, where a race says why.
    """
    by_key: dict[object, Fault] = {}
    for f in found:
        first = by_key.setdefault(_key(f), f)
        if first is not f:
            by_key[_key(f)] = replace(first, count=first.count + f.count)
    racing = {place for f in by_key.values() if f.kind == "race" for place in _places(f)}
    gone = {_key(f) for f in told}
    return tuple(
        f
        for key, f in by_key.items()
        if key not in gone and not (f.kind == "uninitialised-read" and f.location in racing)
    )


def _key(f: Fault) -> object:
    return (f.kind, _places(f) or f.message)


def _places(f: Fault) -> frozenset[str]:
    second = (f.second[0],) if f.kind == "race" and f.second else ()
    return frozenset((f.location, *second)) if f.location else frozenset()


def _location(r: Record, context: Context) -> str | None:
    found = context.place(r.pc) if r.pc else None
    if not r.line:
        return str(found) if found else None
    file = (r.text if r.kind in _NAMES_FILE else "") or _file(found, context)
    return ":".join((*((file,) if file else ()), str(r.line), str(r.column)))


def _file(found: Place | None, context: Context) -> str:
    """The file of a place that the kernel told by line and column."""
    found = found or context.place(context.entry)
    return found.file if found else ""


def _second(r: Record, context: Context) -> tuple[str, str] | None:
    found = context.place(r.other_pc) if r.other_pc else None
    if r.other_line:
        file = _file(found, context)
        place = ":".join((*((file,) if file else ()), str(r.other_line), str(r.other_column)))
        return place, "the other barrier"
    return (str(found), f"the other {_access(r.other_access)}") if found else None


def _access(access: int) -> str:
    return "atomic access" if access & ATOMIC else "write" if access & WRITE else "read"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _memory(r: Record, context: Context) -> str:
    if r.space == BUFFER:
        name = context.buffers.get(r.slot)
        return f"`{name}`" if name else f"buffer {r.slot}"
    return f"`{r.text}`" if r.text else f"threadgroup memory {r.slot}"


def _where(r: Record, context: Context) -> str:
    """`byte 64 of `u` (64 bytes)`."""
    return f"byte {r.offset} of {_memory(r, context)} ({_count(r.extent, 'byte')})"


def _out_of_bounds(r: Record, context: Context) -> str:
    size = f" of {_count(r.nbytes, 'byte')}" if r.nbytes else ""
    if r.space == STACK:
        return f"out-of-bounds {_access(r.access)}{size} in another thread's memory"
    if not r.space:
        return f"out-of-bounds {_access(r.access)}{size} at address {r.address:#x}, where the kernel has no memory"
    return f"out-of-bounds {_access(r.access)}{size} at {_where(r, context)}"


def _private(r: Record, context: Context) -> str:
    access = f"out-of-bounds {_access(r.access)} of {_count(r.nbytes, 'byte')}"
    if r.values[0]:
        return f"{access} at {_where(r, context)}, whose scope has ended"
    return (
        f"{access} at {_where(r, context)}"
        if r.text
        else f"{access} in the thread's own memory, beside all arrays"
    )


def _crashed_access(r: Record, context: Context) -> str:
    access = {1: "write", 0: "read"}.get(r.values[0], "access")
    if r.space in _SHARED:
        return f"out-of-bounds {access} at {_where(r, context)}"
    if r.address < 4096:
        return f"{access} through a null pointer: is a buffer not bound?"
    return f"{access} at address {r.address:#x}, where the kernel has no memory"


def _barrier(r: Record, _: Context, what: str = "threads") -> str:
    here, elsewhere, gone, of = r.values
    rest = []
    if elsewhere and (r.other_line, r.other_column) == (r.line, r.column):
        rest.append(f"{elsewhere} came to it by another call")
    elif elsewhere:
        rest.append(f"{elsewhere} wait at line {r.other_line}")
    if gone:
        rest.append(f"{gone} have ended")
    return f"divergent barrier: {here} of {of} {what} wait at line {r.line}, {' and '.join(rest) or 'the others do not'}"


def _simdgroup_barrier(r: Record, context: Context) -> str:
    return _barrier(r, context, "lanes of a simdgroup")


def _race(r: Record, context: Context) -> str:
    apart = r.other_threadgroup != r.threadgroup
    why = "of another threadgroup" if apart else "without a barrier between them"
    mine = f"{_access(r.access)} by thread {r.thread}"
    other = f"{_access(r.other_access)} by thread {r.other_thread}"
    return f"race at {_where(r, context)}: {mine} and {other}{',' if apart else ''} {why}"


def _uninitialised(r: Record, context: Context) -> str:
    return f"read of {_count(r.nbytes, 'byte')} never written, at {_where(r, context)}"


def _unwritten(r: Record, context: Context) -> str:
    return f"{_count(r.values[0], 'byte')} of {_memory(r, context)} never written, the first of them byte {r.offset}"


def _array_bounds(r: Record, _: Context) -> str:
    return f"index {r.values[0]} is outside of the array of {_count(r.values[1], 'element')}"


def _index(r: Record, _: Context) -> str:
    return f"index {r.values[0]} is outside of the {r.values[1]} elements"


def _lane(r: Record, _: Context) -> str:
    return f"lane {r.values[0]} is asked for its value and is not active"


def _shift(r: Record, _: Context) -> str:
    return f"shift by {r.values[1]} of a value of {r.values[2]} bits"


def _component_shift(r: Record, _: Context) -> str:
    return f"shift by {r.values[0]} of a component of {r.values[1]} bits"


def _division(r: Record, _: Context) -> str:
    return f"integer division of {r.values[0]} by zero"


def _quotient(r: Record, _: Context) -> str:
    if not r.values[0]:  # the processor stopped
        return "the quotient of the smallest integer and -1 is no integer of that type"
    return f"the quotient of {r.values[0]} and -1 is no integer of that type"


def _alignment(r: Record, context: Context) -> str:
    if r.space in _SHARED and r.offset % r.values[0]:
        name = context.buffers.get(r.slot, "") if r.space == BUFFER else ""
        where = f"`{name}`" if name else f"buffer {r.slot}" if r.space == BUFFER else "threadgroup memory"
        return f"misaligned access at byte {r.offset} of {where}: the alignment of the type is {r.values[0]}"
    return f"address {r.address:#x} is no multiple of {r.values[0]}, the alignment of the type"


def _read_only(r: Record, context: Context) -> str:
    return f"write to {_memory(r, context)}, which is read-only"


def _threadgroup_memory(r: Record, _: Context) -> str:
    return f"{r.values[0]} bytes of threadgroup memory, and a threadgroup has 32768"


def _endless(r: Record, _: Context) -> str:
    return f"no threadgroup has ended for {r.values[0] / 1000:g} s: is there an endless loop?"


def _promise(r: Record, _: Context) -> str:
    mine, other = (_promised(value, r.values[2]) for value in r.values[:2])
    held = f"{mine} here and {other} in thread {r.other_thread}"
    return f"uniform(…) promises one value to all threads of a group, and it is {held}"


def _promised(value: int, kind: int) -> str:
    """As the kernel's type shows it; the kinds are those of `__emu_promise`."""
    if kind == 2:
        return f"{struct.unpack('<d', struct.pack('<q', value))[0]:g}"
    return str(bool(value)) if kind == 3 else str(value % 2**64 if kind == 1 else value)


def _text(r: Record, _: Context) -> str:
    return r.text


def _says(text: str) -> Callable[[Record, Context], str]:
    return lambda r, _: text


OVERWRITTEN, ACCESS, RACE = 0, 16, 26
# Kinds whose record is about a threadgroup, or about no place in the grid at all.
_OF_NO_THREAD = {OVERWRITTEN, 22, 23, 24, 28}
_OF_INDEX = {1, 34}
_OF_ACCESS = {ACCESS, 25, 29, 36}
_NAMES_FILE = {31, 32, 33, 34, 35}
# By the numbers of `runtime_state.h` and `abi.h`.
_SENTENCES: Mapping[int, Kind] = {
    OVERWRITTEN: Kind("out-of-bounds", _says("the kernel wrote over the emulator's own memory")),
    1: Kind("out-of-bounds", _index),
    2: Kind("inactive-lane", _lane),
    3: Kind("unsupported", _text),
    4: Kind("undefined-argument", _text),
    5: Kind("division-by-zero", _division),
    6: Kind("division-overflow", _quotient),
    7: Kind("shift", _component_shift),
    ACCESS: Kind("out-of-bounds", _crashed_access),
    17: Kind("stack-overflow", _says("a thread's private memory, 256 KiB, is exhausted")),
    18: Kind("aborted", _says("the kernel came to a place that cannot be reached, or to a trap")),
    19: Kind("aborted", _says("the kernel called for its end")),
    20: Kind("out-of-bounds", _crashed_access),
    21: Kind("endless-loop", _endless),
    22: Kind("barrier-not-reached", _barrier),
    23: Kind("barrier-not-reached", _simdgroup_barrier),
    24: Kind("threadgroup-memory-full", _threadgroup_memory),
    25: Kind("out-of-bounds", _out_of_bounds),
    RACE: Kind("race", _race),
    27: Kind("uninitialised-read", _uninitialised),
    28: Kind("unwritten-output", _unwritten),
    29: Kind("out-of-bounds", _out_of_bounds),
    30: Kind("write-to-read-only", _read_only),
    31: Kind("division-by-zero", _division),
    32: Kind("division-overflow", _quotient),
    33: Kind("shift", _shift),
    34: Kind("out-of-bounds", _array_bounds),
    35: Kind("misaligned", _alignment),
    36: Kind("out-of-bounds", _private),
    37: Kind("not-uniform", _promise),
}
