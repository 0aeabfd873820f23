"""Foreign Metal source from Python: arguments, grids, templates, constants, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import metaljit as mj
from metaljit.metal_files import MetalFile

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def library(text: str, **options: object) -> MetalFile:
    return mj.metal_from_text(HEAD + text, **options)  # type: ignore[arg-type]


SAXPY = library("""
kernel void saxpy(constant float& a [[buffer(0)]], device const float* x [[buffer(1)]], device float* y [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) { y[i] += a * x[i]; }
""")


def test_arrays_are_changed_where_they_lie() -> None:
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    assert SAXPY.saxpy(2.0, x, y, threads=5) == ()
    assert y.tolist() == [1, 3, 5, 7, 9]
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_a_number_may_be_given_as_bytes() -> None:
    y = np.ones(2, np.float32)
    SAXPY.saxpy(np.float32(3).tobytes(), y.copy(), y, threads=2)
    assert y.tolist() == [4, 4]


GRID = library("""
kernel void where(device uint4* out [[buffer(0)]], uint2 p [[thread_position_in_grid]], uint2 n [[threads_per_grid]],
                  uint2 g [[threadgroup_position_in_grid]], uint2 w [[threads_per_threadgroup]],
                  uint2 d [[dispatch_threads_per_threadgroup]], ushort t [[thread_index_in_threadgroup]]) {
    out[p.y * n.x + p.x] = uint4(g.x * 10 + g.y, w.x * 10 + w.y, d.x * 10 + d.y, t);
}
""")


def test_partial_groups_at_the_edges_of_a_grid_in_threads() -> None:
    out = np.zeros((6, 10, 4), np.uint32)
    GRID.where(out, threads=(10, 6), threadgroup=(4, 4))
    sizes = {tuple(c) for c in out[..., :3].reshape(-1, 3).tolist()}
    assert sizes == {(0, 44, 44), (10, 44, 44), (20, 24, 44), (1, 42, 44), (11, 42, 44), (21, 22, 44)}
    assert out[5, 9].tolist() == [21, 22, 44, 3]  # the last thread of a group of 2 × 2


def test_whole_groups() -> None:
    out = np.zeros((8, 12, 4), np.uint32)
    GRID.where(out, groups=(3, 2), threadgroup=(4, 4))
    assert out[7, 11].tolist() == [21, 44, 44, 15]


def test_host_names_and_function_constants() -> None:
    text = """
    constant int offset [[function_constant(0)]];
    constant bool has_scale [[function_constant(1)]];
    template <typename T> kernel void shift(device T* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        x[i] = x[i] + T(offset);
        if (is_function_constant_defined(has_scale) && has_scale) x[i] *= 2;
    }
    template [[host_name("shift_i")]] kernel void shift<int>(device int*, uint);
    template [[host_name("shift_h")]] [[kernel]] decltype(shift<half>) shift<half>;
    """
    found = library(text)
    assert found.names == ("shift_i", "shift_h")
    x, h = np.arange(3, dtype=np.int32), np.arange(3, dtype=np.float16)
    found["shift_i"].with_constants(offset=5)(x, threads=3)
    assert x.tolist() == [5, 6, 7]
    found["shift_h"].with_constants(offset=1, has_scale=True)(h, threads=3)
    assert h.tolist() == [2, 4, 6]


def test_instantiations_of_templates_that_share_a_name() -> None:
    library = mj.metal_from_text(
        HEAD
        + """
struct One { float v; }; struct Two { float v[2]; };
template <typename T> kernel void put(device One& a [[buffer(0)]], constant T& t [[buffer(1)]]) { a.v = t; }
template <typename T> kernel void put(constant T& t [[buffer(2)]], device Two& a [[buffer(5)]]) { a.v[1] = t; }
template [[host_name("one")]] kernel void put<float>(device One& a [[buffer(0)]], constant float& t [[buffer(1)]]);
template [[host_name("two")]] kernel void put<float>(constant float& t [[buffer(2)]], device Two& a [[buffer(5)]]);
"""
    )
    x, y = np.zeros(1, np.float32), np.zeros(2, np.float32)
    library.one(x, 3.0, threads=1)
    library.two(4.0, y, threads=1)
    assert (x.tolist(), y.tolist()) == ([3], [0, 4])


def test_memory_of_a_threadgroup_argument() -> None:
    text = """
    kernel void reverse(device uint* x [[buffer(0)]], threadgroup uint* t [[threadgroup(0)]],
                        uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
        t[i] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = t[n - 1 - i];
    }
    """
    x = np.arange(64, dtype=np.uint32)
    library(text).reverse(x, threads=64, memory={0: 256})
    assert x.tolist() == list(range(63, -1, -1))


def test_headers_macros_and_versions(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text("inline float scaled(float x) { return x * SCALE; }\n")
    source = tmp_path / "k.metal"
    source.write_text(
        HEAD + '#include "scale.h"\n'
        "#if __METAL_VERSION__ >= 310\n#define PLUS 1.0\n#else\n#define PLUS 0.0\n#endif\n"
        "kernel void k(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = scaled(x[i]) + PLUS; }\n"
    )
    x = np.ones(2, np.float32)
    mj.load_metal(source, defines={"SCALE": "3"}).k(x, threads=2)
    mj.load_metal(source, defines={"SCALE": "3"}, version=(3, 1)).k(x, threads=2)
    assert x.tolist() == [10, 10]


WRONG = {
    "too few": (lambda: SAXPY.saxpy(1.0, threads=1), "3 buffers (a, x, y), and was given 1"),
    "no grid": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1)), "threads= or as groups="),
    "both grids": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=1, groups=1), "threads= or as groups="),
    "number for an array": (lambda: SAXPY.saxpy(1.0, 2.0, _f(1), threads=1), "'x' is a const float *"),
    "not contiguous": (lambda: SAXPY.saxpy(1.0, _f(4)[::2], _f(2), threads=2), "not contiguous"),
    "write-to-read-only": (lambda: SAXPY.saxpy(1.0, _f(2), _read_only(), threads=2), "may write 'y'"),
    "empty": (lambda: SAXPY.saxpy(1.0, _f(0), _f(1), threads=1), "no buffer of no bytes"),
    "huge group": (
        lambda: SAXPY.saxpy(1.0, _f(1), _f(1), groups=1, threadgroup=1025),
        "more than 1024 threads",
    ),
    "no size": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=0), "no size of a grid"),
    "no integer": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=cast(Any, 1.5)), "no size of a grid"),
    "no number": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=cast(Any, "4")), "no size of a grid"),
    "too many": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=2**33), "no size of a grid"),
    "too many in all": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=(2**31, 2)), "no size of a grid"),
    "no memory": (
        lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=1, memory={0: -1}),
        "is no threadgroup memory",
    ),
    "four axes": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), threads=(1, 1, 1, 1)), "no size of a grid"),
    "memory": (lambda: SAXPY.saxpy(1.0, _f(1), _f(1), groups=1, memory={0: 40000}), "no threadgroup memory"),
    "version": (lambda: library("", version=(2, 9)), "no version of Metal's language"),
    "no file": (lambda: mj.load_metal("no-such.metal"), "cannot be read"),
}


def _f(n: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.zeros(n, np.float32)


def _read_only() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    x = _f(2)
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    call, words = WRONG[case]
    with pytest.raises(mj.LaunchFault) as caught:
        call()  # type: ignore[no-untyped-call]
    assert words in str(caught.value)


def test_a_number_that_does_not_fit() -> None:
    text = "kernel void k(constant uchar& n [[buffer(0)]], device uchar* x [[buffer(1)]]) { x[0] = n; }"
    with pytest.raises(mj.LaunchFault, match=r"256 does not fit 'n', which is uchar"):
        library(text).k(256, np.zeros(1, np.uint8), threads=1)


def test_an_unknown_kernel_names_those_that_there_are() -> None:
    with pytest.raises(AttributeError, match="has no kernel 'axpy'; it has saxpy"):
        _ = SAXPY.axpy
    with pytest.raises(KeyError, match="no kernel 'axpy'"):
        SAXPY["axpy"]


def test_refused_on_the_users_line() -> None:
    with pytest.raises(mj.DeviceFault) as caught:
        mj.metal_from_text(
            HEAD + "kernel void k(device float* x [[buffer(0)]]) {\n  x[0] = y;\n}\n", file="a.metal"
        )
    assert "a.metal:4:10: error: use of undeclared identifier 'y'" in str(caught.value)
    assert "    4 |   x[0] = y;" in str(caught.value)


def test_a_text_that_does_not_end() -> None:
    with pytest.raises(mj.DeviceFault) as caught:
        mj.metal_from_text(
            HEAD + "kernel void k(device float* x [[buffer(0)]]) {\n  x[0] = 1;\n", file="a.metal"
        )
    assert "a.metal:3:" in str(caught.value)
    assert "never closed" in str(caught.value)


FAULTY = library("""
kernel void barrier(device uint* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    x[i] = 1;
    if (i < 8) threadgroup_barrier(mem_flags::mem_device);
}
kernel void endless(device uint* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    x[i] = 1;
    while (i == 3) {}
}
kernel void wild(device uint* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    x[i] = 1;
    if (i == 3) x[i << 28] = 1;
}
kernel void deep(device uint* x [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
    uint big[1 << 20];
    for (uint k = 0; k < (1 << 20); ++k) big[k] = x[k & 7] + k;
    x[i] = big[x[0]];
}
""")


@pytest.mark.parametrize(
    ("kernel", "slug", "line"),
    [("barrier", "barrier-not-reached", 6), ("endless", "endless-loop", 10), ("wild", "out-of-bounds", 14)],
)
def test_what_a_plain_run_reports(kernel: str, slug: str, line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_EMULATOR_LIMIT", "0.5")
    x = np.zeros(64, np.uint32)
    with pytest.raises(mj.KernelFault) as caught:
        FAULTY[kernel](x, threads=64)
    assert caught.value.slug == slug
    assert f"program_source:{line}:" in str(caught.value)
    assert not x.any(), "a run that ends with a fault writes nothing"
    y = np.ones(2, np.float32)
    SAXPY.saxpy(1.0, y.copy(), y, threads=2)
    assert y.tolist() == [2, 2], "the next run is as good as any"


def test_a_lane_that_is_not_there_is_0_in_a_plain_run_and_a_fault_in_a_sanitized_one() -> None:
    kernel = library("""
kernel void k(device int* x [[buffer(0)]], ushort i [[thread_index_in_simdgroup]]) {
    x[i] = simd_shuffle_xor(int(i) + 1, 16);
}
""").k
    x = np.zeros(20, np.int32)
    kernel(x, threads=20)
    assert x.tolist() == [17, 18, 19, 20, *[0] * 12, 1, 2, 3, 4]
    with (
        mj.sanitize(),
        pytest.raises(mj.KernelFault, match="lane 20 is asked for its value and is not active"),
    ):
        kernel(x, threads=20)


def test_a_stack_that_overflows_is_a_fault() -> None:
    with pytest.raises(mj.KernelFault, match="stack"):
        FAULTY.deep(np.zeros(8, np.uint32), threads=8)


def test_lenient_runs_go_on() -> None:
    x = np.zeros(64, np.uint32)
    found = FAULTY.barrier(x, threads=64, lenient=True)
    assert [d.slug for d in found] == ["barrier-not-reached"]
    assert x.all()


def test_the_sanitizer_can_be_turned_on_for_a_block() -> None:
    text = "kernel void k(device uint* x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[0] += i; }"
    race = library(text)
    x = np.zeros(1, np.uint32)
    race.k(x, threads=64)
    with mj.sanitize(), pytest.raises(mj.KernelFault) as caught:
        race.k(x, threads=64)
    assert caught.value.slug == "race"
    with mj.sanitize(False):
        race.k(x, threads=64)


def test_the_order_of_threads_can_be_shuffled() -> None:
    text = """
    kernel void order(device atomic_uint* next [[buffer(0)]], device uint* at [[buffer(1)]],
                      uint i [[thread_position_in_grid]]) {
        at[i] = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);
    }
    """
    orders = []
    for seed in (None, 1, 1, 2):
        next_, at = np.zeros(1, np.uint32), np.zeros(128, np.uint32)
        library(text).order(next_, at, groups=2, threadgroup=64, seed=seed)
        assert sorted(at.tolist()) == list(range(128))
        orders.append(at.tolist())
    assert orders[0] == list(range(128))
    assert orders[1] == orders[2] != orders[3]


def test_a_forked_child_has_a_worker_of_its_own() -> None:
    y = np.ones(2, np.float32)
    SAXPY.saxpy(1.0, y.copy(), y, threads=2)
    child = os.fork()
    if child == 0:
        try:
            SAXPY.saxpy(1.0, y.copy(), y, threads=2)
            os._exit(0 if y.tolist() == [4, 4] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    SAXPY.saxpy(1.0, y.copy(), y, threads=2)
    assert y.tolist() == [4, 4]


MAKES = """
#include <metal_stdlib>
kernel void makes(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    if (i != 3) { y[i] = x[i]; }
}
kernel void reads(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    float old = y[i];
    y[i] = old + x[i];
}
"""


def test_outputs_are_buffers_that_are_written() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    with pytest.raises(
        mj.LaunchFault, match="names 'x', which is no buffer that the kernel writes; those are: y"
    ):
        mj.metal_from_text(MAKES).makes(x, y, threads=8, outputs=["x"])


def test_a_wait_for_what_nobody_does_is_told_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread stands in the emulator's runtime, which gives the turn to others: the user's line is what counts."""
    monkeypatch.setenv("METALJIT_EMULATOR_LIMIT", "0.5")
    library = mj.metal_from_text(
        """#include <metal_stdlib>
using namespace metal;
kernel void waits(device atomic_int* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    if (i == 5) return;
    while (atomic_load_explicit(a, memory_order_relaxed) == 0) {
    }
}
"""
    )
    for sanitize in (False, True):
        with mj.sanitize(sanitize), pytest.raises(mj.KernelFault) as caught:
            library.waits(np.zeros(1, np.int32), threads=64)
        diagnostic = caught.value.diagnostics[-1]
        assert diagnostic.slug == "endless-loop"
        assert str(diagnostic.span).split(":")[1] == "5"


def test_marks_and_halves_of_characters() -> None:
    kernel = "kernel void k(device int* a [[buffer(0)]]) { a[0] = 7; }"
    a = np.zeros(1, np.int32)
    mj.metal_from_text("\ufeff" + kernel).k(a, threads=1)
    assert a[0] == 7
    with pytest.raises(mj.DeviceFault, match="half a character"):
        mj.metal_from_text(kernel + " // \ud800")


OUTPUTS = {
    "written": ("float", "o[i] = 1; o[i] += 1;", None),
    "in part": ("float", "if (i % 2) o[i] = 1;", "unwritten-output"),
    "read before": ("float", "o[i] += 1;", "uninitialised-read"),
    "by some threads": ("uchar4", "if (i > 5) return; o[i] = 1;", "unwritten-output"),
    "gaps of structs": ("S", "o[i].a = 1; o[i].b = 2;", None),
    "a struct": ("S", "if (i != 2) { o[i].a = 1; o[i].b = 2; }", "unwritten-output"),
    "gaps of vectors": ("float3", "o[i] = float3(1);", None),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_have_to_be_written(name: str) -> None:
    kind, body, slug = OUTPUTS[name]
    made = library(
        f"struct S {{ char a; float4 b; }};\nkernel void k(device {kind}* o [[buffer(0)]], "
        f"uint i [[thread_position_in_grid]]) {{ {body} }}"
    )
    size = {"float": 4, "uchar4": 4, "S": 32, "float3": 16}[kind]
    x = np.zeros(8 * size, np.uint8)
    with mj.sanitize():
        found = made.k(x, threads=8, outputs=["o"], lenient=True)
        assert [d.slug for d in found] == ([slug] if slug else [])
        assert made.k(x, threads=8, lenient=True) == ()
