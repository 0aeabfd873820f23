"""Program: all that crosses from the compiler to a device.

MSL text, its entry points and buffers, the parameter table with shapes as extent expressions, the loop
nests that call the same text on a CPU, the source map, and what the call must check. It serialises as
JSON; a device needs nothing else to run it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from .dtypes import DTYPES, DType
from .extents import Extent, Lit, Number, Op, Sym, evaluate, from_json, product, to_json
from .frozen import frozen
from .source import Span

FORMAT = 4
INDEX_MAX = 2**31 - 1
Role = Literal["in", "out", "inout"]


@frozen
class Place:
    """A place in the user's file as text: `where` is file:line:column, `excerpt` the line, underlined."""

    where: str = ""
    excerpt: str = ""

    @staticmethod
    def of(span: Span, label: str = "") -> Place:
        return Place(str(span), "\n".join(span.excerpt("^", label)))


NOWHERE = Place()


@frozen
class ArrayParam:
    """An array at the call: NumPy shape `shape`, plus a last axis of `lanes` where lanes > 1 (packed vectors).

    `role` "out" arrays are made by the call (zeros if `zeroed`) and returned; "inout" are copied and returned.
    """

    name: str
    dtype: DType
    lanes: int
    shape: tuple[Extent, ...]
    role: Role
    zeroed: bool = False
    place: Place = NOWHERE

    def nbytes(self, env: Mapping[str, Number]) -> int:
        """The bytes that it holds where its symbols have these values."""
        return int(evaluate(product(self.shape), env)) * self.lanes * self.dtype.nbytes


@frozen
class ScalarParam:
    """A number, or a vector of `lanes` numbers, passed at run time."""

    name: str
    dtype: DType
    lanes: int
    place: Place = NOWHERE


@frozen
class Uniform:
    """A field of the parameter struct, in order, C layout: an extent, or lane `lane` of scalar parameter `scalar`.

    bool is one byte 0/1, bf16 is stored as its 16 bits (ushort).
    """

    name: str
    dtype: DType
    value: Extent | None = None
    scalar: str = ""
    lane: int = 0


@frozen
class Requirement:
    """`require(condition, message)`: checked at each call before anything runs."""

    condition: Extent
    message: str
    place: Place
    slug: str = "requirement"


@frozen
class AssertSite:
    """`assert` number i of the text: status word 1 holds i + 1 of the first failure, words 2 and 3 the low and
    high half of the failing thread's flat index, which is unravelled over `grid` for the message."""

    message: str
    place: Place
    grid: tuple[Extent, ...]


@frozen
class Launch:
    """One dispatch of `entry` over `threads` threads in one dimension (whole groups may run more: the text guards)."""

    entry: str
    threads: Extent
    threadgroup: int | None = None


@frozen
class LoopNest:
    """The C++ that is compiled behind the MSL text on a CPU.

    It defines `extern "C" void ENTRY(void* const* buffers, const void* params, unsigned* status, long begin,
    long end, long block)`, which computes units [begin, end) of `rows * ceil(columns / block)`:
    unit u is columns [b * block, min(columns, (b + 1) * block)) of row r, where r, b = divmod(u, blocks).
    `serial` asks for one thread and ascending units. With a `group` the text stands alone, without the MSL text, and a row
    is a whole threadgroup of so many threads, in one column.
    """

    text: str
    entry: str
    rows: Extent
    columns: Extent
    serial: bool = False
    group: int = 0


@frozen
class Cost:
    """A thread's scalar operations and bytes moved, as the compiler estimates them: unknown loops count 16 turns."""

    operations: int
    nbytes: int


@frozen
class Program:
    """See the module. `buffers` names the arrays in `[[buffer(i)]]` order; after them come the parameter
    struct (also where it is empty: one pad word) and the status words."""

    name: str
    place: Place
    msl: str
    params: tuple[ArrayParam | ScalarParam, ...]
    results: tuple[ArrayParam, ...]
    buffers: tuple[str, ...]
    uniforms: tuple[Uniform, ...]
    launches: tuple[Launch, ...]
    cpu: LoopNest
    requirements: tuple[Requirement, ...] = ()
    asserts: tuple[AssertSite, ...] = ()
    math: Literal["precise", "fast"] = "precise"
    language_version: tuple[int, int] = (2, 3)
    source_map: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()
    cost: Cost = Cost(1, 4)

    @property
    def arrays(self) -> tuple[ArrayParam, ...]:
        """Array parameters in call order, then the results of a map kernel."""
        return tuple(p for p in self.params if isinstance(p, ArrayParam)) + self.results

    @property
    def outputs(self) -> tuple[ArrayParam, ...]:
        """What the call returns, in order."""
        return tuple(a for a in self.arrays if a.role != "in")

    @property
    def where(self) -> str:
        return self.place.where

    def moved(self, env: Mapping[str, Number]) -> int:
        """The bytes of its arrays, twice where one is read and written."""
        return sum(a.nbytes(env) * (2 if a.role == "inout" else 1) for a in self.arrays)

    def operations(self, env: Mapping[str, Number]) -> int:
        """The operations of all threads, as the compiler estimates them."""
        return self.cost.operations * sum(int(evaluate(launch.threads, env)) for launch in self.launches)

    def user_location(self, line: int) -> str | None:
        """The user's file:line:column for a 1-based line of the MSL text."""
        found = [where for first, where in self.source_map if first <= line]
        return found[-1] if found else None

    def user_place(self, line: int) -> Place:
        """The user's place for a 1-based line of the MSL text, with that line as the excerpt."""
        lines = self.msl.splitlines()
        excerpt = f"      | {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""
        return Place(self.user_location(line) or self.where, excerpt)

    def dumps(self) -> str:
        return json.dumps({"format": FORMAT, **_encode(self)}, separators=(",", ":"))

    @staticmethod
    def loads(text: str) -> Program:
        """The program of `dumps`; ValueError for another format or damage."""
        return _loaded(text, Program)


When: TypeAlias = tuple[tuple[str, bool], ...]  # 0-d arrays or numbers, and what they have to be


@frozen
class Step:
    """One program of a plan: the plan's arrays that are its `buffers`, and the plan's numbers that are its scalars.

    A number may be a constant, as lanes. The program's symbols are the plan's, unless `extents` says what they are in those.
    It runs only `when` all of these hold. Arrays in `zeroed` are zeros before, those in `copied` have the contents of
    another one.
    """

    program: Program
    arrays: tuple[str, ...]
    numbers: tuple[str | tuple[int | float, ...], ...]
    when: When = ()
    zeroed: tuple[str, ...] = ()
    copied: tuple[tuple[str, str], ...] = ()
    extents: tuple[tuple[str, Extent], ...] = ()

    def within(self, env: Mapping[str, Number]) -> Mapping[str, Number]:
        """The program's symbols where the plan's have these values."""
        return {name: evaluate(e, env) for name, e in self.extents} if self.extents else env


@frozen
class Repeat:
    """Steps that run again and again on arrays that they replace.

    In a turn `values` are read and `after` written, which are the values of the next turn; the first turn's are
    `starts`, the last ones `results`. Where `rows` has a number, what is written is that row of a value. `turn` is the
    number that counts. There are `count` turns, or as many as the number or 0-d array `counted` says; or, with a
    `condition`, the steps `test` compute this 0-d array before each turn, and a false one ends it. More than `limit` turns
    are an error at `place`.
    """

    starts: tuple[str, ...]
    values: tuple[str, ...]
    after: tuple[str, ...]
    rows: tuple[Extent | None, ...]
    results: tuple[str, ...]
    steps: tuple[Step | Repeat, ...]
    turn: str
    count: Extent | None
    counted: str
    test: tuple[Step | Repeat, ...]
    condition: str
    limit: int
    place: Place
    when: When = ()

    @property
    def inner(self) -> tuple[Step | Repeat, ...]:
        return (*self.test, *self.steps)


@frozen
class Plan:
    """Several programs, run in order. What a graph comes to.

    `params` are what the call passes, `results` what it returns; `temporaries` live between steps. All shapes are in the
    symbols of `params`.
    """

    name: str
    place: Place
    params: tuple[ArrayParam | ScalarParam, ...]
    results: tuple[ArrayParam, ...]
    temporaries: tuple[ArrayParam, ...]
    steps: tuple[Step | Repeat, ...]
    requirements: tuple[Requirement, ...] = ()

    @property
    def outputs(self) -> tuple[ArrayParam, ...]:
        return self.results

    @property
    def programs(self) -> tuple[Step, ...]:
        """All steps with a program, those inside of others too, in the order of the text."""
        return tuple(flat(self.steps))

    def dumps(self) -> str:
        return json.dumps({"format": FORMAT, **_encode(self)}, separators=(",", ":"))

    @staticmethod
    def loads(text: str) -> Plan:
        """The plan of `dumps`; ValueError for another format or damage."""
        return _loaded(text, Plan)


def flat(steps: Iterable[Step | Repeat]) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Step):
            yield step
        else:
            yield from flat(step.inner)


T = TypeVar("T")


def _loaded(text: str, kind: type[T]) -> T:
    try:
        data = json.loads(text)
        if data.pop("format") != FORMAT:
            raise ValueError("another format")
        found = _decode(data)
    except (KeyError, TypeError, IndexError, AttributeError) as e:
        raise ValueError(f"not a {kind.__name__.lower()}: {e!r}") from e
    if not isinstance(found, kind):
        raise ValueError(f"not a {kind.__name__.lower()}")
    return found


def _encode(value: Any) -> Any:
    """Dataclasses, extents and element types as dictionaries that say what they are, tuples as lists."""
    match value:
        case Lit() | Sym() | Op():
            return {"extent": to_json(value)}
        case DType():
            return {"dtype": value.name}
        case tuple():
            return [_encode(v) for v in value]
        case _ if is_dataclass(value):
            return {
                "class": type(value).__name__,
                **{f.name: _encode(getattr(value, f.name)) for f in fields(value)},
            }
        case _:
            return value


def _decode(data: Any) -> Any:
    """What `_encode` wrote as `data`."""
    if isinstance(data, list):
        return tuple(map(_decode, data))
    if not isinstance(data, dict):
        return data
    if "class" in data:
        return _CLASSES[data.pop("class")](**{name: _decode(v) for name, v in data.items()})
    return from_json(data["extent"]) if "extent" in data else DTYPES[data["dtype"]]


_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        Place,
        ArrayParam,
        ScalarParam,
        Uniform,
        Launch,
        LoopNest,
        Requirement,
        AssertSite,
        Cost,
        Program,
        Step,
        Repeat,
        Plan,
    )
}
