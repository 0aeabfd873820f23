"""The Metal text of cooperative kernels: group sizes, surplus threads, memory, barriers, names that Metal lacks."""

from __future__ import annotations

import re

import pytest

import metaljit as mj
from metaljit.lang import f32

SPEC = mj.spec((None,), f32)


def program(
    body: str, threadgroup: str = "64", parameters: str = "x: f32[N], y: InOut[f32[N]]"
) -> mj.Program:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = (
        'N = dims("N")\n'
        f'@kernel(grid="ceil_div(N, 64)", threadgroup={threadgroup})\ndef f({parameters}):\n'
        f"    t, i = thread_index(), global_index()\n{lines}"
    )
    return mj.kernel_from_text(text).program(SPEC, SPEC)


SUM = "y[i] = group_sum(x[i])"


@pytest.mark.parametrize(("size", "launched"), [(32, 64), (64, 64), (96, 96), (256, 256), (1024, 1024)])
def test_the_group_is_bounded_and_checked(size: int, launched: int) -> None:
    """A bound of 32 has been compiled wrongly; a group of another size must not run."""
    made = program(SUM, str(size))
    bounds = re.findall(r"max_total_threads_per_threadgroup\((\d+)\)", made.msl)
    assert bounds == [str(launched)]
    assert f"!= {launched}u" in made.msl
    assert made.launches[0].threadgroup == launched
    assert made.cpu.group == size


def test_no_thread_leaves_before_a_barrier_alone() -> None:
    """Every `return` of the kernel function is of whole groups, or of the idle half of a group of one simdgroup."""
    text = program(SUM, "64").msl
    kernel = text[text.index("kernel void") :]
    returns = [line for line in kernel.splitlines() if "return" in line]
    assert len(returns) == 2
    assert "group >= " in returns[1]


def test_threadgroup_arrays_are_declared_in_the_kernel_and_passed() -> None:
    text = program(
        "tile, flags = threadgroup_array(f32, 2, 64), threadgroup_array(bool, 64)\nflags[t] = tile[0, t] > 0"
    ).msl
    element, kernel = text[text.index("inline void f_thread") :].split("[[max_total")
    assert "threadgroup uchar flags[64];" in kernel
    assert "threadgroup float v_tile[128];" in kernel
    assert "threadgroup uchar* flags" in element
    assert "threadgroup float* v_tile" in element


def test_a_barrier_orders_what_is_exchanged() -> None:
    only_shared = program(
        "tile = threadgroup_array(f32, 64)\ntile[t] = x[i]\nbarrier()\ny[i] = tile[63 - t]"
    ).msl
    assert "threadgroup_barrier(metal::mem_flags::mem_threadgroup)" in only_shared
    both = program("y[i] = x[i]\nbarrier()\ny[i] = y[i - t]").msl
    assert "threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup)" in both


@pytest.mark.parametrize("type", ["i64", "u64", "bool"])
def test_metal_has_no_simd_function_of_this_type(type: str) -> None:
    cast = f"{type}(x[i])"
    text = program(f"y[i] = f32(i32(simd_shuffle_xor({cast}, 1))) + f32(simd_sum({cast}))").msl
    called = re.findall(r"metal::(simd_\w+)\(", text[text.index("inline void f_thread") :])
    assert called == ["simd_sum"] * (type == "bool")


def test_tiles_have_a_header_of_their_own() -> None:
    assert "#include <metal_simdgroup_matrix>" in program("m = simdgroup_matrix(f32)").msl
    assert "simdgroup_matrix" not in program(SUM).msl


def test_memory_is_counted_together() -> None:
    fits = "a, b = threadgroup_array(f32, 4096), threadgroup_array(f32, 4096)\na[t] = 1.0\nb[t] = 1.0"
    assert program(fits)
    with pytest.raises(mj.TypeFault, match=r"at most 32768 bytes, .* 32896: a 16384, b 16384, group_f32 128"):
        program(f"{fits}\n{SUM}")


def test_an_array_is_named_like_nothing_else() -> None:
    text = program("tile = x\nx = threadgroup_array(f32, 64)\nx[t] = tile[i]\nbarrier()\ny[i] = x[t]").msl
    assert "threadgroup float x_1[64];" in text
