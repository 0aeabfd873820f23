"""What a sanitized run reports: each kind of fault where it was planted, and nothing for kernels that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from abi_kernels import bound, build, crash, ints, launch, zeros
from numpy.typing import NDArray

from metaljit.runtime.emulator.faults import Fault
from metaljit.runtime.emulator.process import Binding


def faults(
    body: str, buffers: Sequence[NDArray[Any] | Binding] | None = None, **how: Any
) -> tuple[Fault, ...]:
    how = {"threads": 64, **how}
    return launch(build(body, True), buffers or [ints(), zeros()], sanitize=True, **how)


def only(body: str, buffers: Sequence[NDArray[Any] | Binding] | None = None, **how: Any) -> Fault:
    found = faults(body, buffers, **how)
    assert len({f.kind for f in found}) == 1, found
    return found[0]


RIGHT = {
    "copy": "o[i] = a[i];",
    "bytes": "((char*)o)[i] = ((char*)a)[i]; ((char*)o)[i + 64] = 1;",
    "halves": "((short*)o)[2 * i] = ((short*)a)[i]; ((short*)o)[2 * i + 1] = 7;",
    "struct": "struct s { int p, q; }; if (i < 32) ((s*)o)[i] = ((s*)a)[i];",
    "memcpy": "if (i < 16) __builtin_memcpy(o + 4 * i, a + 4 * i, 16);",
    "in place": "a[i] = a[i] + 1;",
    "barrier": "SHARED; x[l] = a[i]; BARRIER; o[i] = x[31 - l];",
    "barriers": "SHARED; for (int k = 0; k < 4; ++k) { x[l] = a[i]; BARRIER; o[i] = x[31 - l]; BARRIER; }",
    "device": "o[i] = a[i]; DEVICE_BARRIER; a[i] = o[g * 32 + 31 - l];",
    "read before a barrier of nothing": "SHARED; x[l] = a[i]; BARRIER; int v = x[31 - l]; NO_MEMORY_BARRIER; x[l] = v; o[i] = v;",
    "read before another memory's barrier": "int v = a[i ^ 1]; BARRIER; a[i] = v; o[i] = v;",
    "simdgroup": "SHARED; x[l] = a[i]; SIMD_BARRIER; o[i] = x[31 - l];",
    "exchange": "o[i] = ALL(a[i]).sum;",
    "argument": "int* m = (int*)t.in->memory[0]; m[l] = a[i]; BARRIER; o[i] = m[31 - l];",
    "atomics": "__atomic_fetch_add(o, a[i], 0); __atomic_fetch_or(o + 1, 3, 0);",
    "atomics of a group": "SHARED; if (l == 0) x[0] = 0; BARRIER; __atomic_fetch_add(x, 1, 0); BARRIER; o[i] = x[0];",
    "compare": "int v = a[0]; while (!__atomic_compare_exchange_n(o, &v, v + 1, 0, 0, 0)) {}",
    "private": "int p[8]; for (int k = 0; k < 8; ++k) p[k] = a[i]; o[i] = p[a[i] & 7];",
    "constant": "static const int c[4] = {1, 2, 3, 4}; o[i] = c[a[i] & 3];",
    "pointer": "int v = i; int* volatile p = &v; *p += 1; o[i] = v;",
    "an array of any length": "typedef int ints[1]; ints& x = *(ints*)a; x[i] += i;"
    " typedef int rows[1][2]; if (i < 32) (*(rows*)o)[i][1] = i;",
    "reused": "SHARED; x[l] = i; BARRIER; if (l == 0) { int s = 0; for (int k = 0; k < 32; ++k) s += x[k]; o[g] = s; }",
    "handed over": "if (l == 0) { o[g + 1] = i; __atomic_thread_fence(5);\n"
    "if (__atomic_fetch_add(o, 1, 0) == 1) { __atomic_thread_fence(5); a[0] = o[1] + o[2]; } }",
}


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_silent(name: str, seed: int | None) -> None:
    assert faults(RIGHT[name], [ints(), zeros()], memory={0: 128}, seed=seed) == ()


def test_vectors_of_three_leave_their_padding_alone() -> None:
    body = "int* p = o + 4 * i; if (i < 16) { p[0] = 1; p[1] = 2; p[2] = 3; int q[4]; __builtin_memcpy(q, p, 16); a[i] = q[1]; }"
    assert faults(body, [ints(), bound(zeros(), "o", undefined=True)]) == ()


OUTSIDE = [
    ("o[i] = 1 +\n a[i + 1];", "read of 4 bytes at byte 256 of `a` (256 bytes)", (63, 0, 0), 2),
    ("int v = a[i];\no[i + 1] = v;", "write of 4 bytes at byte 256 of `o` (256 bytes)", (63, 0, 0), 2),
    ("o[i] = 1 +\n a[(int)i - 1];", "read of 4 bytes at byte -4 of `a` (256 bytes)", (0, 0, 0), 2),
    (
        "if (i == 9)\n __atomic_fetch_add(o + 64, 1, 0);",
        "atomic access of 4 bytes at byte 256 of `o`",
        (9, 0, 0),
        2,
    ),
    ("if (i == 9)\n ((char*)o)[256] = 1;", "write of 1 byte at byte 256 of `o`", (9, 0, 0), 2),
    ("if (i == 9)\n *(long*)((char*)o + 252) = 1;", "write of 8 bytes at byte 252 of `o`", (9, 0, 0), 2),
    ("if (i == 9)\n __builtin_memset(o + 60, 0, 32);", "write of 32 bytes at byte 240 of `o`", (9, 0, 0), 2),
    (
        "SHARED; int* volatile p = x; if (i == 9)\n o[i] = p[70];",
        "read of 4 bytes at byte 280 of `x`",
        (9, 0, 0),
        2,
    ),
    (
        "int* m = (int*)t.in->memory[0]; if (i == 9)\n m[32] = 1;",
        "at byte 128 of threadgroup memory 0",
        (9, 0, 0),
        2,
    ),
    (
        "typedef int ints[1]; ints& x = *(ints*)o;\n x[i < 60 ? i : i + 4] = a[i];",
        "write of 4 bytes at byte 256 of",
        (60, 0, 0),
        2,
    ),
    ("int p[1] = {}; o[i] =\n p[i >> 5];", "index 1 is outside of the array", (32, 0, 0), 2),
    ("typedef int two[1][2]; two p; o[i] =\n p[0][i];", "index 2 is outside of the array", (2, 0, 0), 2),
    ("int p[4] = {}; p[1] = i; o[i] =\n p[i >> 1 & 7];", "index 4 is outside of the array", (8, 0, 0), 2),
]


@pytest.mark.parametrize(("body", "message", "thread", "line"), OUTSIDE)
def test_out_of_bounds(body: str, message: str, thread: tuple[int, int, int], line: int) -> None:
    found = [f for f in faults(body, memory={0: 128}) if f.kind == "out-of-bounds"]
    assert found
    assert message in found[0].message
    assert found[0].thread == thread
    assert found[0].location is not None
    assert found[0].location.startswith(f"k.metal:{line}:")


FAR = [
    ("if (i == 9)\n o[100000] = 1;", "out-of-bounds write of 4 bytes at byte"),
    ("SHARED; int* volatile p = x; if (i == 9)\n p[64] = 1;", "write of 4 bytes at byte 256 of `x`"),
]


@pytest.mark.parametrize(("body", "message"), FAR)
def test_what_could_change_something_else_ends_the_run(body: str, message: str) -> None:
    fault = crash(build(body, True), [ints(), zeros()], threads=64, sanitize=True)
    assert message in fault.message
    assert fault.thread == (9, 0, 0)
    assert fault.location is not None
    assert fault.location.startswith("k.metal:2:")


RACES = {
    "write and write": (
        "if (i < 9)\n o[0] = i;",
        "write by thread (1, 0, 0) and write by thread (0, 0, 0) without",
        2,
        2,
    ),
    "write and read": (
        "SHARED; x[l] = i; BARRIER;\nx[l] = 1;\no[i] = x[31 - l];",
        "write by thread (16, 0, 0) and read by thread (15, 0, 0) without",
        2,
        3,
    ),
    "groups": (
        "if (l == 0)\n o[5] = i;",
        "write by thread (32, 0, 0) and write by thread (0, 0, 0), of another",
        2,
        2,
    ),
    "in place": (
        "int v = a[i]; if (i == 32)\n v += a[i - 1];\na[i] = v;",
        "read by thread (32, 0, 0) and write by thread (31, 0, 0), of another threadgroup",
        2,
        3,
    ),
    "read in another group": (
        "int v = a[i]; if (i == 0)\n v += a[40];\na[i] = v;",
        "write by thread (40, 0, 0) and read by thread (0, 0, 0), of another threadgroup",
        3,
        2,
    ),
    "atomic and plain": (
        "__atomic_fetch_add(o, 1, 0);\nif (i == 3)\n o[0] = 2;",
        "write by thread (3, 0, 0) and atomic access by thread (2, 0, 0) without",
        3,
        1,
    ),
    "bytes": (
        "char* p = (char*)o;\np[l ? 1 : 0] = i;",
        "write by thread (2, 0, 0) and write by thread (1, 0, 0) without",
        2,
        2,
    ),
    "argument": (
        "int* m = (int*)t.in->memory[0];\nm[0] = i;",
        "write by thread (1, 0, 0) and write by thread (0, 0, 0) without",
        2,
        2,
    ),
    "written before a barrier of nothing": (
        "SHARED; x[l] = i; NO_MEMORY_BARRIER;\no[i] = x[31 - l];",
        "read by thread (0, 0, 0) and write by thread (31, 0, 0) without",
        2,
        1,
    ),
    "other memory's barrier": (
        "o[i] = a[i]; BARRIER;\na[i] = o[i ^ 1];",
        "read by thread (0, 0, 0) and write by thread (1, 0, 0) without",
        2,
        1,
    ),
}


@pytest.mark.parametrize("name", RACES)
def test_races(name: str) -> None:
    body, message, line, other = RACES[name]
    found = [f for f in faults(body, memory={0: 128}) if f.kind == "race"]
    match = [f for f in found if message in f.message]
    assert match, found
    assert match[0].location is not None
    assert match[0].location.startswith(f"k.metal:{line}:")
    assert match[0].second is not None
    assert match[0].second[0].startswith(f"k.metal:{other}:")


def test_simdgroups_are_not_held_by_their_barrier() -> None:
    found = faults("SHARED; x[l] = i; SIMD_BARRIER;\no[i] = x[63 - l];", threadgroup=64)
    assert {f.kind for f in found} == {"race"}


def test_readers_of_ones_own_group_do_not_hide_those_of_another() -> None:
    fault = only(
        "int v = 0; if (i == 0 || i == 41) v = a[40];\nDEVICE_BARRIER; v += a[i]; a[i] = v; o[i] = 1;"
    )
    assert "write by thread (40, 0, 0) and read by thread (0, 0, 0), of another threadgroup" in fault.message


def test_an_atomic_access_of_ones_own_does_not_hide_the_others() -> None:
    fault = only("__atomic_fetch_add(o, 1, 0); if (i == 31) o[0] = 2;", threads=32)
    assert "write by thread (31, 0, 0) and atomic access by thread (30, 0, 0) without" in fault.message


def test_a_fence_of_one_side_hands_nothing_over() -> None:
    body = "if (l == 0 && g == 0) { o[1] = 1; __atomic_thread_fence(5); }\nif (l == 0 && g == 1) o[1] = 2;"
    assert only(body).kind == "race"


@pytest.mark.parametrize("memory", ["SHARED;", "int* x = (int*)t.in->memory[0];"])
def test_threadgroup_memory_is_undefined_until_written(memory: str) -> None:
    fault = only(f"{memory} if (l < 20) x[l] = 1; BARRIER;\n o[i] = x[l];", memory={0: 128})
    assert fault.kind == "uninitialised-read"
    assert "4 bytes never written, at byte 80 of" in fault.message
    assert (fault.thread, fault.count) == ((20, 0, 0), 24)
    assert fault.location is not None
    assert fault.location.startswith("k.metal:2:")


def test_what_another_group_wrote_is_gone() -> None:
    assert only("SHARED; if (g == 0) x[l] = 1;\n o[i] = x[l];").thread == (32, 0, 0)


def test_undefined_buffers() -> None:
    found = faults("if (i != 3) o[i] = 1; a[i] = o[i];", [ints(), bound(zeros(), "out", undefined=True)])
    kinds = {f.kind: f.message for f in found}
    assert kinds == {
        "uninitialised-read": "read of 4 bytes never written, at byte 12 of `out` (256 bytes), by thread (3, 0, 0)",
        "unwritten-output": "4 bytes of `out` never written, the first of them byte 12",
    }


VALUES = [
    ("o[i] =\n a[i] / (a[i] - 5);", "division-by-zero", "integer division of 5 by zero, by thread (5, 0, 0)"),
    ("o[i] =\n a[i] % (a[i] - 5);", "division-by-zero", "integer division of 5 by zero, by thread (5, 0, 0)"),
    ("o[i] =\n 1 << a[i];", "shift", "shift by 32 of a value of 32 bits, by thread (32, 0, 0)"),
    ("o[i] = int(1l >>\n a[i] * 3);", "shift", "shift by 66 of a value of 64 bits, by thread (22, 0, 0)"),
    ("o[i] =\n 5 >> -a[i];", "shift", "shift by -1 of a value of 32 bits, by thread (1, 0, 0)"),
    ("if (i < 9) o[i] =\n *(int*)((char*)a + 2 * i);", "misaligned", "by thread (1, 0, 0)"),
]


@pytest.mark.parametrize(("body", "kind", "message"), VALUES)
def test_values(body: str, kind: str, message: str) -> None:
    fault = only(body)
    assert fault.kind == kind
    assert message in fault.message
    assert fault.location is not None
    assert fault.location.startswith(("k.metal:2:", "k.metal:1:"))


@pytest.mark.skipif(
    "__import__('platform').machine() not in ('x86_64', 'AMD64')", reason="the processor tells"
)
def test_the_quotient_that_is_no_integer() -> None:
    fault = only("o[i] = a[0] /\n (a[i] - 5);", [np.array([-(2**31), *[4] * 63], np.int32), zeros()])
    assert fault.kind == "division-overflow"


def test_another_threads_private_memory() -> None:
    fault = only(
        "static int* p; int v = i; if (l == 0) p = &v; BARRIER; if (l == 1)\n *p = 3; BARRIER; o[i] = v;",
        threads=32,
    )
    assert "write of 4 bytes in another thread's memory, by thread (1, 0, 0)" in fault.message


def test_a_write_to_what_is_read_only() -> None:
    buffers: list[NDArray[Any] | Binding] = [ints(), bound(zeros(), "o", writable=False)]
    fault = crash(build("o[i] = 1;", True), buffers, threads=64, sanitize=True)
    assert (fault.kind, fault.thread) == ("write-to-read-only", (0, 0, 0))


def test_faults_of_the_library() -> None:
    found = faults(
        '__emu_fault(1, 9, 4, nullptr, 7, 3); __emu_fault(2, 40, 0, nullptr, 8, 3); __emu_fault(3, 0, 0, "no rays", 9, 3); o[i] = 1;'
    )
    assert [(f.kind, f.location, f.count) for f in found] == [
        ("out-of-bounds", "k.metal:7:3", 64),
        ("inactive-lane", "k.metal:8:3", 64),
        ("unsupported", "k.metal:9:3", 64),
    ]
    assert found[0].message.startswith("index 9 is outside of the 4 elements")
    assert found[2].message.startswith("no rays")


def test_the_table_of_faults_is_bounded() -> None:
    body = "".join(f'__emu_fault(3, 0, 0, "x", {line}, 1);' for line in range(1, 201))
    assert len(faults(body + "o[i] = 1;")) == 64


def test_a_run_with_faults_writes_nothing_back_unless_it_is_lenient() -> None:
    for lenient in (False, True):
        o = zeros()
        assert faults("o[i] = a[i + 1] + 1;", [ints(), o], lenient=lenient)
        assert o.any() == lenient


def test_simdgroup_barriers_that_diverge() -> None:
    fault = only("if (lane < 8)\n SIMD_BARRIER;\no[i] = 1;")
    assert fault.kind == "barrier-not-reached"
    assert "8 of 32 lanes of a simdgroup wait at line 2, 24 have ended" in fault.message


def test_runs_do_not_see_each_other() -> None:
    memory = ints()
    for _ in range(3):
        assert faults("o[i] = a[i];", [memory, bound(zeros(), "o", undefined=True)]) == ()
        assert faults("if (i == 40) a[7] = 1; o[i] = 1;", [memory, zeros()]) == ()
        assert only("o[i] = a[i];", [bound(memory, "a", undefined=True, writable=False), zeros()])
