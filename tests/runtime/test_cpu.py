"""The cpu device: compiled once, kept on disk, shared among threads, alive after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import programs as p
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metaljit as mj
from metaljit.dtypes import I32
from metaljit.extents import Sym
from metaljit.program import Cost, LoopNest
from metaljit.runtime import cache, cpu, library, pool, toolchain
from metaljit.runtime.cpu import COLUMNS, Cpu, split
from metaljit.runtime.launch import Launcher
from metaljit.source import DeviceFault, InternalError, MetaljitError

F = np.float32
HERE = Path(__file__).parent
ROWS, COLS = Sym("R"), Sym("C")


def tiles(cost: int = 10**6, serial: bool = False, delay: int = 0) -> Any:
    """out[r, c] counts how often a unit covered it; some units take their time (`delay` thousand steps)."""
    out = p.array("out", ROWS, COLS, dtype=I32, role="out", zeroed=True)
    program = p.elementwise("tiles", (p.array("a", ROWS, COLS),), (out,), "")
    nest = f"""
    extern "C" void tiles_cpu(void* const* buffers, const void* params, unsigned* status,
                              long begin, long end, long block) {{
        int* out = (int*)buffers[1];
        long columns = ((const int*)params)[0], blocks = (columns + block - 1) / block;
        __atomic_store_n(status, 0x{0x6D6A6974:x}u, __ATOMIC_RELAXED);
        for (long unit = begin; unit < end; ++unit) {{
            for (volatile long wait = unit * 7 % 5 * {1000 * delay}; wait > 0; wait = wait - 1) {{}}
            long r = unit / blocks, b = unit % blocks;
            for (long c = b * block; c < columns && c < (b + 1) * block; ++c) out[r * columns + c] += 1;
        }}
    }}"""
    return replace(
        program,
        cpu=LoopNest(nest, "tiles_cpu", ROWS, COLS, serial),
        uniforms=(replace(program.uniforms[0], value=COLS),),
        cost=Cost(cost, 0),
    )


@given(st.integers(1, 70), st.integers(1, 700), st.integers(1, 5))
def test_units_cover_every_element_once(rows: int, columns: int, threads: int) -> None:
    from metaljit.runtime.device import find

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "threads", lambda: threads)
        for cost in (1, 10**6):
            result = Launcher(find("cpu"), tiles(cost))([np.zeros((rows, columns), F)])
            assert (result == 1).all()


@given(st.integers(1, 10**6), st.integers(1, 10**9), st.integers(1, 128))
def test_split(rows: int, columns: int, threads: int) -> None:
    block = split(rows, columns, threads)
    assert block == columns or block % COLUMNS == 0
    if rows >= 4 * threads:
        assert block == columns
    elif columns > COLUMNS * 8 * threads:
        assert 2 * threads <= rows * -(-columns // block) <= 4 * threads + rows


@pytest.mark.parametrize("serial", [True, False])
def test_small_and_serial_work_stays_on_the_calling_thread(
    cpu: Cpu, monkeypatch: pytest.MonkeyPatch, serial: bool
) -> None:
    monkeypatch.setattr(pool, "threads", lambda: 4)

    def never(*_: int) -> int:
        raise AssertionError("shared")

    monkeypatch.setattr("metaljit.runtime.cpu.split", never)
    program = tiles(10**6 if serial else 1, serial)
    assert (Launcher(cpu, program)([np.zeros((9, 9), F)]) == 1).all()
    if not serial:
        with pytest.raises(AssertionError, match="shared"):
            Launcher(cpu, program)([np.zeros((900, 900), F)])


def test_a_call_returns_when_every_thread_is_done(cpu: Cpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads", lambda: 3)
    launcher = Launcher(cpu, tiles(delay=50))
    for _ in range(50):
        assert (launcher([np.zeros((15, 3), F)]) == 1).all()


def test_several_callers_at_once(cpu: Cpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads", lambda: 3)
    launcher = Launcher(cpu, tiles())
    a = np.zeros((40, 50), F)
    wrong: list[Any] = []

    def call() -> None:
        for _ in range(200):
            if not (launcher([a]) == 1).all():
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_eight_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_ = toolchain.Toolchain.compile

    def count(self: Any, text: str, what: str, flags: Any = ()) -> bytes:
        compiled.append(what)
        return compile_(self, text, what, flags)

    monkeypatch.setattr(toolchain.Toolchain, "compile", count)
    monkeypatch.setattr(pool, "threads", lambda: 1)
    launcher = Launcher(Cpu(), p.added("raced"))
    ready = threading.Barrier(8)
    results: list[Any] = []

    def call(k: int) -> None:
        ready.wait()
        results.append((k, launcher([np.full((2, 2), k, F), np.ones((2, 2), F)])))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compiled == ["raced"]
    assert len(results) == 8
    assert all((result == k + 1).all() for k, result in results)


def test_extents_and_scalars_never_compile_again(cpu: Cpu, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = Launcher(cpu, p.scaled())
    launcher([np.ones(1, F), 0.5, 1])
    monkeypatch.setattr(toolchain.Toolchain, "compile", None)
    for n in range(1, 300):
        assert launcher([np.ones(n, F), n / 8, 1])[-1] == n / 8 + 1
    assert len(launcher._geometries) <= 256


def test_one_name_and_two_texts(cpu: Cpu) -> None:
    array, out = p.array("a", p.N), p.array("out", p.N, role="out")
    for step in (1, 100):
        program = p.elementwise("k", (array,), (out,), f"    out[i] = a[i] + {step};")
        assert Launcher(cpu, program)([np.zeros(1, F)]) == step


def test_a_text_that_does_not_compile_fails_alike_each_time(cpu: Cpu) -> None:
    program = p.elementwise(
        "broken", (p.array("a", p.N),), (p.array("out", p.N, role="out"),), "    out[i] = b;"
    )
    launcher = Launcher(cpu, program)
    texts = []
    for _ in range(2):
        with pytest.raises(InternalError) as caught:
            launcher([np.ones(3, F)])
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_kernel_that_does_not_run_is_an_error(cpu: Cpu) -> None:
    program = p.added("idle")
    text = program.cpu.text.partition("{")[0] + "{}"
    launcher = Launcher(cpu, replace(program, cpu=replace(program.cpu, text=text)))
    with pytest.raises(DeviceFault, match="did not run") as caught:
        launcher([np.ones((1, 1), F)] * 2)
    assert caught.value.slug == "kernel-did-not-run"


def test_fast_math_is_asked_for_by_the_program(cpu: Cpu) -> None:
    body = "    out[i] = (a[i] + 1.0f) - a[i];"
    program = p.elementwise("lost", (p.array("a", p.N),), (p.array("out", p.N, role="out"),), body)
    assert Launcher(cpu, program)([np.full(1, 1e8, F)]) == 0
    assert Launcher(cpu, replace(program, math="fast"))([np.full(1, 1e8, F)]) == 1


@pytest.mark.parametrize(
    ("text", "at_once"), [("exp(u[i])", True), ("t(u[i])", True), ("sqrt(u[i])", False), ("u[i] + 1", False)]
)
def test_several_vectors_at_once_where_a_function_has_no_formula(text: str, at_once: bool) -> None:
    function = "def t(x):\n  return tanh(x)\n\n"
    source = (
        f'N = dims("N")\n{function}@kernel\ndef f(u: f32[N]) -> f32[N]:\n  i = position()\n  return {text}\n'
    )
    kernel = mj.kernel_from_text(source)
    assert ("interleave_count" in kernel.program(np.ones(3, F)).cpu.text) == at_once


def test_only_the_parts_that_a_text_names_are_included() -> None:
    assert "cpu_exponential.h" in cpu.included("float y = metal::precise::exp(x);")
    plain = cpu.included("a[i] + explicit_max_of")
    assert "cpu_types.h" in plain
    assert "cpu_exponential.h" not in plain
    assert "cpu_choice.h" not in plain
    header = (Path(library.SHIM) / "metaljit_cpu.h").read_text()
    assert len(cpu._parts()) == header.count("#include")


WARM = """
import sys; sys.path.insert(0, {here!r})
import subprocess
def no(*a, **k): raise AssertionError("a warm process started a compiler")
if {warm}: subprocess.Popen.__init__ = no
import numpy as np, programs as p
from metaljit.runtime import device, launch
a = np.ones((700, 900), np.float32)
assert (launch.Launcher(device.find("cpu"), p.added())([a, a]) == 2).all()
"""


def python(script: str, **environment: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, env={**os.environ, **environment})


def entries(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*") if f.is_file()]


def test_another_process_finds_it_on_disk(tmp_path: Path) -> None:
    places = {"METALJIT_CACHE_DIR": str(tmp_path), "METALJIT_THREADS": "2"}
    python(WARM.format(here=str(HERE), warm=False), **places)
    assert len(entries(tmp_path)) == 2  # the kernel and the pool
    python(WARM.format(here=str(HERE), warm=True), **places)
    for file in entries(tmp_path):
        file.write_bytes(file.read_bytes()[:-100])
    python(WARM.format(here=str(HERE), warm=False), **places)
    python(WARM.format(here=str(HERE), warm=True), **places)


def test_it_works_without_a_disk_cache(tmp_path: Path) -> None:
    script = WARM.format(here=str(HERE), warm=False)
    python(script, METALJIT_CACHE="0", METALJIT_CACHE_DIR=str(tmp_path / "a"), TMPDIR=str(tmp_path))
    (tmp_path / "file").write_text("")
    python(script, METALJIT_CACHE_DIR=str(tmp_path / "file" / "x"), TMPDIR=str(tmp_path))
    assert entries(tmp_path) == [tmp_path / "file"]  # nothing is left behind


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to read-only folders")
def test_it_works_with_a_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    python(WARM.format(here=str(HERE), warm=False), METALJIT_CACHE_DIR=str(tmp_path))


def test_an_unsafe_folder_is_an_error_at_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    with pytest.raises(DeviceFault, match="may be written by other users"):
        Launcher(Cpu(), p.added())([np.ones((1, 1), F)] * 2)


def test_an_entry_that_vanishes_before_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(pool, "threads", lambda: 1)
    a = np.ones((2, 2), F)
    Launcher(Cpu(), p.added())([a, a])
    found = cache.Disk.path

    def vanishing(self: Any, key: str) -> str | None:
        path = found(self, key)
        if path is not None:
            os.unlink(path)
        return path

    monkeypatch.setattr(cache.Disk, "path", vanishing)
    assert (Launcher(Cpu(), p.added())([a, a]) == 2).all()


def test_the_key_holds_compiler_processor_flags_and_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(pool, "threads", lambda: 1)
    a = np.ones((2, 2), F)

    def call(**changes: Any) -> int:
        Launcher(Cpu(), replace(p.added(), **changes))([a, a])
        return len(entries(tmp_path))

    assert call() == 1
    assert call() == 1
    assert call(math="fast") == 2
    monkeypatch.setattr(toolchain, "processor", lambda: "another")
    assert call() == 3
    monkeypatch.setattr(library, "_headers", lambda: "others")
    assert call() == 4
    found = toolchain.find()
    monkeypatch.setattr(toolchain, "find", lambda: replace(found, identity="newer"))
    assert call() == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    script = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import os, threading, numpy as np
import test_cpu as t
from metaljit.runtime import device, launch, pool
launcher = launch.Launcher(device.find("cpu"), t.tiles())
a = np.zeros((40, 500), np.float32)
assert (launcher([a]) == 1).all()
stop = threading.Event()
def busy():
    while not stop.is_set(): launcher([a])
thread = threading.Thread(target=busy); thread.start()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        good = all((launcher([a]) == 1).all() for _ in range(20))
        tasks = "/proc/self/task"
        working = not os.path.exists(tasks) or len(os.listdir(tasks)) == 3
        os._exit(0 if good and working else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stop.set(); thread.join()
assert codes == [0] * 8, codes
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        check=True, timeout=120, env={**os.environ, "METALJIT_THREADS": "3"},
    )  # fmt: skip


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "99999"])
def test_threads_that_are_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("METALJIT_THREADS", text)
    pool.threads.cache_clear()
    try:
        with pytest.raises(DeviceFault, match="METALJIT_THREADS"):
            pool.threads()
        monkeypatch.setenv("METALJIT_THREADS", "3")
        assert pool.threads() == 3
    finally:
        pool.threads.cache_clear()


def test_arrays_lie_in_memory_as_the_header_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cpu._as_expected()
    monkeypatch.setattr(cpu, "HEAD", object.__basicsize__ + 8)
    assert not cpu._as_expected()
    with pytest.raises(InternalError, match="NumPy's arrays"):
        Cpu()


def test_a_launch_is_refused_by_number_of_values(cpu: Cpu) -> None:
    with pytest.raises(MetaljitError, match="takes 2 values, and was given 1"):
        Launcher(cpu, p.added())([np.ones((1, 1), F)])
