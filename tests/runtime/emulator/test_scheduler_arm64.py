"""The scheduler on arm64, under an emulator of that processor: skipped where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from metaljit.runtime import toolchain
from metaljit.runtime.library import SHIM
from metaljit.source import DeviceFault

SOURCES = os.path.join(SHIM, "emulator")
# Three groups of 64 threads hand numbers on through threadgroup memory; a sum of doubles lives across the barriers.
PROGRAM = r"""
#include "checks.cpp"
#include "memory.cpp"
#include "runtime.cpp"
#include "sanitizer.cpp"
#include "scheduler.cpp"
#include "signals.cpp"

extern "C" int printf(const char*, ...);
extern "C" int memfd_create(const char*, unsigned);
extern "C" int ftruncate(int, long);

static long total;

static void kernel() {
    static long x[64];
    __emu_threadgroup_memory(x, sizeof x, "x");
    const __emu::thread& t = *__emu_current;
    double kept = t.index * 0.5, other = 1.5;
    long v = t.index;
    for (int k = 0; k < 5; ++k) {
        x[t.index] = v;
        __emu_threadgroup_barrier(2, 1, 1);
        v = x[(t.index + 1) % 64] + 1;
        __emu_threadgroup_barrier(2, 2, 1);
        kept += other;
    }
    int mine = 1;
    const __emu::exchange* e = __emu_exchange(&mine, 4, t.index % 3 ? 3 : 4, 1);
    if (kept != t.index * 0.5 + 7.5) total += 1000000;
    total += v + 1000 * __builtin_popcount(e->active);
}

int main() {
    int file = memfd_create("test", 0);
    ftruncate(file, 65536);
    if (__emu_start(file, 65536, 4096)) return 1;
    __emu::request r = {};
    r.page = 4096, r.limit = 20;
    r.groups[0] = 3, r.groups[1] = r.groups[2] = 1;
    r.threadgroup[0] = 64, r.threadgroup[1] = r.threadgroup[2] = 1;
    for (u32 flags = 0; flags < 8; flags += __emu::run_shuffled) {
        r.flags = flags, r.seed = 5, total = 0;
        __emu_run(&r, kernel);
        printf("%u %u %ld\n", __emu::page_of_outcome->status, __emu::page_of_outcome->records, total);
    }
}
"""


def test_fibers_keep_what_they_must(tmp_path: Path) -> None:
    machine = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if machine is None:
        pytest.skip("no qemu-aarch64")
    try:
        tool = toolchain.find()
    except DeviceFault:
        pytest.skip("no compiler")
    if tool.kind != "zig":
        pytest.skip("only zig's clang brings a C library for arm64")

    (tmp_path / "p.cpp").write_text(PROGRAM)
    flags = ("-target", "aarch64-linux-musl", "-std=c++23", "-O2", "-w", "-fno-strict-aliasing", "-static")
    command = [tool.program, "c++", *flags, "-I", SOURCES, str(tmp_path / "p.cpp"), "-o", str(tmp_path / "p")]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run(
        [machine, str(tmp_path / "p")], capture_output=True, text=True, check=True, timeout=60
    )
    values = sum((i + 5) % 64 + 5 for i in range(64))
    others = sum(1 for lane in range(64) if lane % 3)
    groups = [
        sum(1 for i in range(s, s + 32) if bool(i % 3) == kind) for s in (0, 32) for kind in (True, False)
    ]
    assert others == groups[0] + groups[2]
    total = 3 * (values + 1000 * sum(n * n for n in groups))
    assert done.stdout.splitlines() == [f"0 0 {total}"] * 2
