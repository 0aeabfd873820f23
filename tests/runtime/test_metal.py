"""The metal device, with metalcompute on the emulator."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import programs as p
import pytest
from emulated_metalcompute import Metalcompute

from metaljit.dtypes import BF16
from metaljit.extents import Lit, Sym
from metaljit.program import Launch
from metaljit.runtime.device import find
from metaljit.runtime.launch import Launcher
from metaljit.runtime.metal import Metal
from metaljit.source import DeviceFault

F = np.float32
A = np.arange(15, dtype=F).reshape(3, 5)


def refused(launcher: Launcher, *args: Any) -> DeviceFault:
    with pytest.raises(DeviceFault) as caught:
        launcher(args)
    return caught.value


def test_whole_groups_are_run_and_nothing_beyond_the_buffers_is_touched(emulated: Metalcompute) -> None:
    unguarded = p.added("unguarded").msl.replace("if (gid >= uint(p.total_)) { return; }", "")
    program = replace(p.added("unguarded"), msl=unguarded)
    assert refused(Launcher(find("metal"), program), A, A).slug == "kernel-did-not-run"
    assert "out-of-bounds write of 4 bytes at byte 60 of `out`" in "\n".join(emulated.faults)
    emulated.faults.clear()


@pytest.mark.parametrize("largest", [1024, 832, 32])
def test_any_group_size_gives_the_same(emulated: Metalcompute, largest: int) -> None:
    emulated.max_threads = largest
    for n in (1, 31, 833, 1025):
        a = np.arange(n, dtype=F)[None]
        np.testing.assert_array_equal(Launcher(find("metal"), p.added())([a, a]), 2 * a)


def test_text_is_compiled_once_for_all_extents(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.scaled())
    for n in range(1, 20):
        launcher([np.ones(n, F), n / 10, 1])
    Launcher(find("metal"), p.scaled())([np.ones(3, F), 1.0, 1])
    assert emulated.compiled == [p.scaled().msl]
    assert len(emulated.runs) == 20


def test_threads_take_turns_and_compile_once(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.added())
    ready = threading.Barrier(8)
    wrong: list[int] = []

    def call(k: int) -> None:
        ready.wait()
        for _ in range(5):
            if not (launcher([np.full((2, 2), k, F), A[:2, :2]]) == A[:2, :2] + k).all():
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(emulated.compiled) == 1


def test_a_device_that_does_nothing_is_noticed(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.added())
    launcher([A, A])
    emulated.silent = True
    for _ in range(2):
        found = refused(launcher, A, A)
        assert found.slug == "kernel-did-not-run"
        assert "device 'metal' reported no error, but the kernel did not run" in str(found)
    emulated.silent = False
    np.testing.assert_array_equal(launcher([A, A]), 2 * A)


def test_a_refusal_is_shown_at_the_users_line_and_remembered(emulated: Metalcompute) -> None:
    program = replace(p.added(), source_map=((1, p.WHERE), (6, "user/kernels.py:12:5"), (9, "later.py:1:1")))
    emulated.refuse = (
        "Compilation failed: \n\n"
        "program_source:7:24: error: use of undeclared identifier 'foo'\n    foo\n    ^\n"
        "program_source:9:1: error: second\n"
    )
    launcher = Launcher(find("metal"), program)
    texts = [str(refused(launcher, A, A)) for _ in range(2)]
    assert texts[0] == texts[1]
    assert texts[0].startswith(
        "user/kernels.py:12:5: error: added: the Metal device refused the kernel: use of"
    )
    assert program.msl.splitlines()[6].strip() in texts[0]
    assert "[metal-refused]" in texts[0]


@pytest.mark.parametrize("text", ["Cannot create pipeline state", "program_source:999:1: error: x", ""])
def test_refusals_without_a_line(emulated: Metalcompute, text: str) -> None:
    emulated.refuse = text
    assert p.WHERE in str(refused(Launcher(find("metal"), p.added()), A, A))


def test_a_paravirtual_device_has_no_64_bit_buffers(emulated: Metalcompute) -> None:
    emulated.refuse = (
        "program_source:5:20: error: 'uint64_t' (aka 'unsigned long') cannot be used in buffer pointee type"
    )
    found = refused(Launcher(find("metal"), p.added()), A, A)
    assert found.slug == "metal-no-64-bit"
    assert "paravirtual" in str(found)


def test_no_memory_left(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.added())
    emulated.largest = 20
    found = refused(launcher, A, A)
    assert found.slug == "out-of-device-memory"
    assert "60 bytes" in str(found)


def test_there_is_no_device(emulated: Metalcompute) -> None:
    emulated.missing = True
    with pytest.raises(DeviceFault, match="metalcompute finds none"):
        Metal()


@pytest.mark.parametrize(
    "a",
    [
        np.ones(1, ml_dtypes.bfloat16),
        np.arange(8).astype(ml_dtypes.bfloat16)[::2],
        np.zeros(0, ml_dtypes.bfloat16),
    ],
)
def test_dtypes_that_numpy_gives_no_buffer_of(emulated: Metalcompute, a: Any) -> None:
    array, out = p.array("a", p.N, dtype=BF16), p.array("out", p.N, dtype=BF16, role="out")
    program = p.elementwise("same", (array,), (out,), "    out[i] = a[i];")
    result = Launcher(find("metal"), program)([a])
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.astype(F), a.astype(F))


@pytest.mark.filterwarnings("error")
def test_an_array_of_one_element_is_no_count(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.scaled())
    assert launcher([np.full(1, 3, F), 2.0, 1]).tolist() == [7]


def test_results_outlive_the_call_and_inputs_need_not(emulated: Metalcompute) -> None:
    launcher = Launcher(find("metal"), p.added())
    x = np.ones((50, 50), F)
    results = []
    for k in range(20):
        x[...] = k
        results.append(launcher([x, x]))
        x[...] = -1
    gc.collect()
    assert all((r == 2 * k).all() for k, r in enumerate(results))


def test_buffers_are_released(emulated: Metalcompute) -> None:
    alive: list[weakref.ref[Any]] = []
    kind: Any = type(emulated.Device())
    make = kind.buffer

    def noted(self: Any, contents: Any) -> Any:
        buffer = make(self, contents)
        alive.append(weakref.ref(buffer))
        return buffer

    kind.buffer = noted
    try:
        launcher = Launcher(find("metal"), p.added())
        for _ in range(10):
            result = launcher([A, A])
        gc.collect()
        assert len(alive) == 50
        assert sum(ref() is not None for ref in alive) == 1
        del result
        gc.collect()
        assert all(ref() is None for ref in alive)
    finally:
        kind.buffer = make


def test_launches_run_in_order_and_empty_ones_not_at_all(emulated: Metalcompute) -> None:
    program = p.counted()
    launches = (Launch("counted", p.N), Launch("counted", Lit(0)), Launch("counted", Sym("N")))
    launcher = Launcher(find("metal"), replace(program, launches=launches))
    bins, _ = launcher([np.zeros(4, np.int32)])
    assert bins.tolist() == [2] * 4
    assert emulated.runs == [("counted", 4)] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_told_to_spawn(emulated: Metalcompute) -> None:
    metal = find("metal")
    launcher = Launcher(metal, p.added())
    launcher([A, A])
    child = os.fork()
    if child == 0:
        code = 0
        for use in (lambda: launcher([A, A]), lambda: metal.empty(4), lambda: metal.pipeline(p.added())):
            try:
                use()
            except DeviceFault as e:
                code += e.slug == "metal-after-fork" and "spawn" in str(e)
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has the module")
def test_without_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "metalcompute", None)
    with pytest.raises(DeviceFault, match="cannot be imported"):
        Metal()
