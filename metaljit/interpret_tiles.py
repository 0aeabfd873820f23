"""Tiles of a simdgroup in interpret mode: each lane has all 8 by 8 numbers, and does with them what the others do.

In: calls, which are the same for all lanes. Out: changed tiles and arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .dtypes import DType
from .interpret_arrays import as_index, flat, read, store
from .interpret_values import Value, View, convert, refuse

SIDE = 8


@dataclass(eq=False)
class Tile:
    """A `simdgroup_matrix`."""

    element: DType
    data: np.ndarray[Any, Any]
    signature: Any = field(init=False)

    def __post_init__(self) -> None:
        self.signature = ("tile", self.element.name)


def _make(place: Any, element: Value, value: Value = 0) -> Tile:
    if not isinstance(element, DType):
        refuse(f"an element type was expected, found {element!r}")
    tile = Tile(element, np.zeros((SIDE, SIDE), element.numpy))
    _fill(place, tile, value)
    return tile


def _fill(place: Any, tile: Tile, value: Value) -> None:
    if place.real:
        tile.data[...] = convert(value, tile.element)


def _block(array: View, at: tuple[Value, ...]) -> list[tuple[int, int]] | None:
    """The places of a block's elements; None where it does not lie in the array as a whole."""
    y, x = (int(as_index(i)) for i in flat(at))
    height, width = map(int, array.shape)
    if not (0 <= y <= height - SIDE and 0 <= x <= width - SIDE):
        return None
    return [(y + r, x + c) for r in range(SIDE) for c in range(SIDE)]


def _load(place: Any, tile: Tile, array: View, *at: Value) -> None:
    if not place.real:
        return
    found = _block(array, at)
    numbers = [read(array, p) for p in found] if found else [0] * SIDE**2
    tile.data[...] = np.array(numbers, tile.element.numpy).reshape(SIDE, SIDE)


def _store(place: Any, tile: Tile, array: View, *at: Value) -> None:
    found = _block(array, at) if place.real else None
    for p, value in zip(found or (), tile.data.reshape(-1), strict=False):
        store(value, array, p)


def _multiply_accumulate(place: Any, result: Tile, left: Tile, right: Tile, added: Tile) -> None:
    """The products are added one after the other, in f32."""
    if not place.real:
        return
    total = added.data.astype(np.float32)
    for k in range(SIDE):
        total += left.data[:, k : k + 1].astype(np.float32) * right.data[k : k + 1].astype(np.float32)
    result.data[...] = total.astype(result.element.numpy)


TABLE: dict[str, Callable[..., Value]] = {
    "simdgroup_matrix": _make,
    "simdgroup_fill": _fill,
    "simdgroup_load": _load,
    "simdgroup_store": _store,
    "simdgroup_multiply_accumulate": _multiply_accumulate,
}
