"""From an address in a kernel's library to the line of the user's text.

In: the library and offsets. Out: `Place`s, or None where the library does not tell. What stands in a header of the
emulator itself is inlined into the user's function, so the place is that of the innermost call in the user's text.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from metaljit.frozen import frozen
from metaljit.runtime.library import SHIM

_ELF = b"\x7fELF"


@frozen
class Place:
    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class _Call:
    """Code `[low, high)` that was inlined, and from where."""

    low: int
    high: int
    at: Place


@frozen
class _Table:
    """`addresses` ascend; each begins the code of the place of the same index. Outer calls come before inner ones."""

    entry: int
    addresses: list[int]
    places: list[Place | None]
    calls: list[_Call]

    def find(self, address: int) -> Place | None:
        i = bisect.bisect_right(self.addresses, address) - 1
        place = self.places[i] if i >= 0 else None
        if place is None or not _is_ours(place.file):
            return place
        inlined = (c.at for c in reversed(self.calls) if c.low <= address < c.high)
        return next((at for at in inlined if not _is_ours(at.file)), place)


def reader(library: str, entry: str, address: int) -> Callable[[int], Place | None]:
    """Finds places by addresses in a process, where the symbol `entry` of the library lies at `address`.

    It finds none where the library has no table of lines, or is no ELF file.
    """

    def find(pc: int) -> Place | None:
        table = _table(library, entry)
        return table.find(pc - address + table.entry) if table else None

    return find


def _is_ours(file: str) -> bool:
    return os.path.abspath(file).startswith(SHIM + os.sep)


@lru_cache(maxsize=8)
def _table(library: str, entry: str) -> _Table | None:
    try:
        with open(library, "rb") as file:
            if file.read(4) != _ELF:
                return None
            from elftools.elf.elffile import ELFFile

            elf: Any = ELFFile(file)
            symbols = elf.get_section_by_name(".dynsym").get_symbol_by_name(entry)
            if not symbols or not elf.has_dwarf_info():
                return None
            dwarf = elf.get_dwarf_info()
            rows: list[tuple[int, Place | None]] = []
            calls: list[_Call] = []
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is None:
                    continue
                rows += _rows(program)
                calls += _calls(dwarf, unit, unit.get_top_DIE(), program)
    except OSError:
        return None  # evicted from the cache meanwhile
    rows.sort(key=lambda row: row[0])
    return _Table(symbols[0]["st_value"], [a for a, _ in rows], [p for _, p in rows], calls)


def _rows(program: Any) -> Iterator[tuple[int, Place | None]]:
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            yield state.address, None
        elif state.line:  # 0: code of no line
            yield state.address, Place(_file(program, state.file), state.line, state.column)


def _file(program: Any, index: int) -> str:
    files, folders = program["file_entry"], program["include_directory"]
    if program["version"] < 5:
        if not 1 <= index <= len(files):
            return ""
        entry = files[index - 1]
        folder = folders[entry.dir_index - 1] if entry.dir_index else b""
    else:
        entry = files[index]
        folder = folders[entry.dir_index] if entry.dir_index else b""
    return os.path.join(os.fsdecode(folder), os.fsdecode(entry.name))


def _calls(dwarf: Any, unit: Any, die: Any, program: Any) -> Iterator[_Call]:
    if die.tag == "DW_TAG_inlined_subroutine":
        values = {name: a.value for name, a in die.attributes.items()}
        column = values.get("DW_AT_call_column", 0)
        at = Place(_file(program, values["DW_AT_call_file"]), values["DW_AT_call_line"], column)
        for low, high in _ranges(dwarf, unit, die):
            yield _Call(low, high, at)
    for child in die.iter_children():
        yield from _calls(dwarf, unit, child, program)


def _ranges(dwarf: Any, unit: Any, die: Any) -> Iterator[tuple[int, int]]:
    low, high, many = (die.attributes.get(f"DW_AT_{name}") for name in ("low_pc", "high_pc", "ranges"))
    if low is not None and high is not None:
        # From version 4 on the end is a length, unless its form is an address.
        yield low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value
    elif many is not None:
        start = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = start.value if start is not None else 0
        for part in dwarf.range_lists().get_range_list_at_offset(many.value, cu=unit):
            if hasattr(part, "base_address"):
                base = part.base_address
            else:
                yield base + part.begin_offset, base + part.end_offset
