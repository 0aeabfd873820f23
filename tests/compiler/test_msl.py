"""The printed text: valid names, Metal's own operators, one text for one kernel."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import metaljit as mj

LAPLACIAN = '''
H, W = dims("H W")

@kernel
def laplacian(u: f32[H, W]) -> f32[H, W]:
    """Five-point Laplacian, edges mirrored."""
    u = border(u, "reflect")
    y, x = position()
    return u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1] - 4 * u[y, x]
'''
IMAGE = np.zeros((4, 5), np.float32)


def code(text: str) -> str:
    """The text without comments."""
    return re.sub(r"//[^\n]*", "", text)


def test_the_element_function_reads_like_the_kernel() -> None:
    text = mj.kernel_from_text(LAPLACIAN).msl(IMAGE)
    assert (
        "inline float laplacian_at(constant laplacian_params& p, device const float* u, int y, int x)" in text
    )
    assert "4.0f * u[mj_offset(y) * p.W + x]" in text
    assert "mj_offset(inside ? y - 1 : mj_reflect(y - 1, p.H)) * p.W + x" in text


def test_a_guard_stands_before_everything_else() -> None:
    text = mj.kernel_from_text(LAPLACIAN).msl(IMAGE)
    body = text[text.index("kernel void laplacian") :]
    assert body.index("if (gid >= uint(p.H) * uint(p.W)) { return; }") < body.index("out[gid]")


def test_extents_and_scalars_are_no_part_of_the_text() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], a: f32) -> f32[N]:\n    return x[position()] * a\n'
    )
    assert kernel.msl(np.zeros(7, np.float32), 3.25) == kernel.msl(np.zeros(9, np.float32), 0.5)


def test_integer_operators_are_metals_own() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32[N]) -> i32[N]:\n    i = position()\n    return x[i] // 2 + x[i] % 3 + x[i] ** 2\n'
    )
    msl = kernel.msl(np.zeros(3, np.int32))
    assert not [line for line in msl.splitlines() if "//" in line and not line.lstrip().startswith("//")]
    text = code(msl)
    assert "//" not in text
    assert "**" not in text
    np.testing.assert_array_equal(kernel(np.array([5, -5], np.int32)), [2 + 2 + 25, -3 + 1 + 25])


def test_nan_is_never_asked_of_the_compiler() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n    v = x[position()]\n'
        "    return where(isnan(v) or isinf(v), 0.0, max(v, nan if v > 3 else inf))\n"
    )
    text = code(kernel.msl(np.zeros(3, np.float32)))
    assert not re.search(r"(?<!mj_)isnan\(|(?<!mj_)isinf\(|\bNAN\b|\bINFINITY\b|\bnan\b|\binf\b", text)
    assert "0x7f800000u" in text


NASTY = (
    "half device kernel vertex sampler thread constant new this dot main uint NAN INT_MAX M_PI_F float4 p gid status "
    "inside out_ buffers params unit row columns register template asm metal mj_add simd_sum _x __y y__z bool2 int8_t"
).split()


@pytest.mark.parametrize("name", [n for n in NASTY if n not in ("kernel",)])
def test_any_name_is_safe(name: str) -> None:
    """As a local, a parameter, a scalar and the kernel's own name."""
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef {name}(a: f32[N], {name}: f32) -> f32[N]:\n    i = position()\n'
        f"    v = a[i] + {name}\n    {name} = v * 2\n    return {name} + 1\n"
    )
    np.testing.assert_array_equal(kernel(np.array([1, 2], np.float32), 3.0), np.array([9, 11], np.float32))


@pytest.mark.parametrize(
    "name", [*NASTY, *"row first last begin end block blocks from_ made simd lane".split()]
)
def test_any_array_may_have_any_name(name: str, device: str) -> None:
    """The loops of a device have names of their own."""
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f({name}: f32[N], other: f32[N]) -> f32[N]:\n    i = position()\n'
        f'    {name} = border({name}, "edge")\n    return {name}[i + 1] + other[i]\n'
    )
    x = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(kernel.on(device)(x, x), [3, 6, 8])


@pytest.mark.parametrize("name", ["grüße", "λ", "变量", "x²".replace("²", "2")])
def test_names_beyond_ascii(name: str) -> None:
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f({name}: f32[N]) -> f32[N]:\n    return {name}[position()] + 1\n'
    )
    assert kernel.msl(np.zeros(1, np.float32)).isascii()
    np.testing.assert_array_equal(kernel(np.array([1], np.float32)), np.array([2], np.float32))


def test_the_text_does_not_depend_on_hashing() -> None:
    program = f"import numpy as np, metaljit as mj; print(mj.kernel_from_text({LAPLACIAN!r}).msl(np.zeros((2, 2), np.float32)))"
    texts = set()
    for seed in ("0", "1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "METALJIT_CACHE": "0", "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(run.stdout)
    assert len(texts) == 1


def test_each_statement_leads_back_to_the_users_line() -> None:
    program = mj.kernel_from_text(LAPLACIAN, "lap.mjk").program(IMAGE)
    line = next(k for k, t in enumerate(program.msl.splitlines(), 1) if t.startswith("    return u["))
    assert program.user_location(line) == "lap.mjk:9:5"


def test_an_elementwise_kernel_needs_no_position() -> None:
    kernel = mj.kernel_from_text(
        'S = dims("*S")\n@kernel\ndef f(x: f32[*S], y: f32[*S]) -> f32[*S]:\n    p = position()\n    return x[p] * y[p]\n'
    )
    text = kernel.msl(np.zeros((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.float32))
    assert "x[i] * y[i]" in text
    assert " / uint(" not in text


def test_literals_are_exact() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: i32[N]) -> (i32[N], i64[N], f32[N], f32[N], f16[N]):\n'
        "    return -2147483648, i64(-9223372036854775808), 1e-45, -0.0, 65504.0\n"
    )
    a, b, c, d, e = kernel(np.zeros(1, np.int32))
    assert a[0] == -(2**31)
    assert b[0] == -(2**63)
    assert c.view(np.uint32)[0] == 1
    assert d.view(np.uint32)[0] == 0x80000000
    assert e[0] == np.float16(65504)


def test_precise_texts_ask_for_safe_arithmetic() -> None:
    """Contraction is governed by a pragma, not by compile options; `math="fast"` asks for neither."""
    source = 'N = dims("N")\n@kernel{}\ndef f(a: f32[N], c: f32[N]) -> f32[N]:\n    i = position()\n    return a[i] * a[i] + c[i]\n'
    precise, fast = (
        mj.kernel_from_text(source.format("")),
        mj.kernel_from_text(source.format('(math="fast")')),
    )
    a, c = np.array([1 + 2**-12], np.float32), np.array([-(1 + 2**-11)], np.float32)
    assert "#pragma METAL fp contract(off)" in precise.msl(a, c)
    assert "#pragma METAL fp math_mode(safe)" in precise.msl(a, c)
    assert "#pragma" not in fast.msl(a, c)
    assert precise(a, c)[0] == 0.0
