"""From addresses to lines: what is inlined counts at the call, and a library without lines tells nothing."""

from __future__ import annotations

from pathlib import Path

from abi_kernels import build, crash, ints, zeros

from metaljit.runtime.emulator import lines
from metaljit.runtime.library import SHIM


def test_an_inlined_function_of_the_user_counts_itself() -> None:
    before = "static inline void set(int* p) {\n    *(volatile int*)p = 1;\n}"
    fault = crash(build("o[i] = 1;\nset(nullptr);", before=before), [ints(), zeros()], threads=1)
    assert fault.location is not None
    assert fault.location.startswith("before.metal:2:")


def test_an_inlined_function_of_the_emulator_counts_at_its_call(tmp_path: Path) -> None:
    before = (
        f'#line 1 "{SHIM}/emulator/some.h"\nstatic inline void set(int* p) {{\n    *(volatile int*)p = 1;\n}}'
    )
    fault = crash(build("o[i] = 1;\n  set(nullptr);", before=before), [ints(), zeros()], threads=1)
    assert fault.location == "k.metal:2:3"


def test_a_function_that_is_called() -> None:
    before = "__attribute__((noinline)) void set(int* p) {\n\n    *(volatile int*)p = 1;\n}"
    fault = crash(build("o[i] = 1;\nset(nullptr);", before=before), [ints(), zeros()], threads=1)
    assert fault.location is not None
    assert fault.location.startswith("before.metal:3:")


def test_no_lines_are_no_place(tmp_path: Path) -> None:
    other = tmp_path / "mach-o"
    other.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    assert lines.reader(str(other), "entry", 4096)(4100) is None
    assert lines.reader(str(tmp_path / "gone"), "entry", 4096)(4100) is None
    assert lines.reader(build("o[i] = 1;"), "no_such_symbol", 4096)(4100) is None
    assert lines.reader(build("o[i] = 1;"), "entry", 4096)(10**9) is None
