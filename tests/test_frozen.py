"""`@frozen` gives what a frozen dataclass gives."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from metaljit.frozen import frozen, mutable


@frozen
class Point:
    """A point."""

    x: int
    y: int = 2
    tags: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    note: str = dataclasses.field(default="", compare=False, repr=False, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Twin:
    """The same, made by the standard library."""

    x: int
    y: int = 2
    tags: tuple[str, ...] = dataclasses.field(default_factory=tuple)
    note: str = dataclasses.field(default="", compare=False, repr=False, kw_only=True)


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 3), {}),
    ((1,), {"y": 5, "note": "n"}),
    ((1, 2, ("a",)), {}),
    ((), {"x": 1}),
    ((), {}),
    ((1, 2, (), "n"), {}),
    ((1,), {"x": 2}),
    ((1,), {"z": 2}),
]


def outcome(cls: Any, call: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    try:
        made = cls(*call[0], **call[1])
    except TypeError:
        return TypeError
    return dataclasses.astuple(made), repr(made).partition("(")[2]


@pytest.mark.parametrize("call", CALLS)
def test_values_are_made_alike(call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    assert outcome(Point, call) == outcome(Twin, call)


def test_equality_and_hash_leave_out_what_is_not_compared() -> None:
    assert Point(1, note="a") == Point(1, note="b")
    assert hash(Point(1, note="a")) == hash(Point(1, note="b"))
    assert Point(1) != Point(2)
    other: object = Twin(1)
    assert Point(1) != other


def test_values_do_not_change() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert dataclasses.replace(point, y=7) == Point(1, 7)


def test_patterns_and_introspection() -> None:
    match Point(1, 3):
        case Point(x, y):
            assert (x, y) == (1, 3)
    assert [f.name for f in dataclasses.fields(Point)] == [f.name for f in dataclasses.fields(Twin)]
    assert dataclasses.is_dataclass(Point)
    assert vars(Point)["__match_args__"] == vars(Twin)["__match_args__"]


def test_own_methods_stay() -> None:
    @frozen
    class Odd:
        n: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def __repr__(self) -> str:
            return "odd"

    assert Odd(1) == Odd(2)
    assert repr(Odd(1)) == "odd"
    assert hash(Odd(3)) == 0


@mutable
class Counter:
    name: str
    count: int = 0
    seen: list[int] = dataclasses.field(default_factory=list)


def test_a_mutable_class_changes_and_is_equal_to_itself_alone() -> None:
    a, b = Counter("a"), Counter("a")
    a.count += 1
    a.seen.append(a.count)
    assert (a.count, a.seen, b.count, b.seen) == (1, [1], 0, [])
    assert a == a
    assert b != Counter("a")
    assert {a, a, b} == {b, a}
    assert repr(b) == "Counter(name='a', count=0, seen=[])"
    assert dataclasses.replace(b, count=3).count == 3
    assert [f.name for f in dataclasses.fields(Counter)] == ["name", "count", "seen"]
    match a:
        case Counter(name, 1):
            assert name == "a"
        case _:
            pytest.fail("no match")
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        (("a", 1, [], 2), {}),
        (("a",), {"name": "b"}),
    ]
    for args, named in calls:
        with pytest.raises(TypeError):
            Counter(*args, **named)
