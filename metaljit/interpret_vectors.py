"""Geometry of interpret mode: `dot cross length normalize reflect` on vectors, in the order of the lanes."""

from __future__ import annotations

from collections.abc import Sequence

from .interpret_operators import apply, binary
from .interpret_values import Value, Vector, type_of
from .operations import OPERATIONS


def total(values: Sequence[Value]) -> Value:
    total = values[0]
    for v in values[1:]:
        total = binary("+", total, v)
    return total


def dot(a: Value, b: Value) -> Value:
    return total(binary("*", a, b).lanes)


def length(v: Value) -> Value:
    return apply(OPERATIONS["sqrt"], (dot(v, v),))


def normalize(v: Value) -> Value:
    return binary("/", v, length(v))


def cross(a: Value, b: Value) -> Value:
    def minor(i: int, j: int) -> Value:
        return binary("-", binary("*", a.lanes[i], b.lanes[j]), binary("*", a.lanes[j], b.lanes[i]))

    lanes = (minor(1, 2), minor(2, 0), minor(0, 1))
    return Vector(type_of(lanes[0]), lanes)  # type: ignore[arg-type]


def reflect(incident: Value, normal: Value) -> Value:
    twice = binary("*", 2, dot(normal, incident))
    return binary("-", incident, binary("*", twice, normal))
