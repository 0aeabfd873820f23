"""What clang makes of the shim: loops over its functions are vectorised and call nothing; its parts stand alone."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest
from shim_calls import loop

from metaljit.runtime import library, toolchain

SHIM = Path(library.SHIM)
UNARY = """exp exp2 exp10 log log2 log10 sin cos tan sinpi cospi tanpi asin acos atan sinh cosh tanh asinh acosh atanh
    sqrt rsqrt ceil floor rint round trunc fract fabs saturate sign""".split()
BINARY = "pow powr atan2 fmod divide copysign fdim step fmax fmin nextafter".split()
TERNARY = "fma mix smoothstep clamp fmax3 fmin3 fmedian3".split()
INTEGER = "absdiff addsat subsat hadd rhadd rotate max min".split()
TARGETS = [
    pytest.param(("-march=x86-64-v3",), id="avx2"),
    pytest.param(("-march=x86-64-v4", "-mprefer-vector-width=512"), id="avx512", marks=pytest.mark.slow),
    pytest.param(("-target", "aarch64-linux-gnu", "-mcpu=neoverse-n1"), id="neon", marks=pytest.mark.slow),
]


def compiled(text: str, flags: tuple[str, ...], object_file: Path) -> str:
    """Compiles a text to an object file; what clang remarked."""
    found = toolchain.find()
    command = [
        found.program,
        *(["clang"] if found.kind == "zig" else []),
        *toolchain.FLAGS,
        "-I",
        str(SHIM),
        *flags,
    ]
    command += ["-Rpass=loop-vectorize", "-c", "-", "-o", str(object_file)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def all_loops() -> str:
    texts = []
    for t in ("float", "half"):
        for count, names in enumerate((UNARY, BINARY, TERNARY), 1):
            for name in names:
                arguments = ", ".join(f"{letter}[i]" for letter in "abc"[:count])
                texts.append(
                    loop(f"{name}_{t}", t, [t] * count, f"o[i] = metal::precise::{name}({arguments})")
                )
    for t in ("int", "uint", "short", "uchar"):
        for name in INTEGER:
            result = f"u{t.removeprefix('u')}" if name == "absdiff" else t
            texts.append(loop(f"{name}_{t}", result, [t, t], f"o[i] = metal::{name}(a[i], b[i])"))
    for name in ("sin", "cos", "tan", "pow", "rsqrt"):
        arguments = "a[i], b[i]" if name == "pow" else "a[i]"
        texts.append(loop(f"fast_{name}", "float", ["float"] * 2, f"o[i] = metal::fast::{name}({arguments})"))
    load = "float3(a[3 * i], a[3 * i + 1], a[3 * i + 2])"
    body = f"{{ float3 u = metal::precise::exp(metal::normalize({load}) * 2.0f); o[i] = metal::dot(u, u); }}"
    texts.append(loop("vector", "float", ["float"], body))
    return '#include "metaljit_cpu.h"\n' + "".join(texts)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="clang has other targets")
@pytest.mark.parametrize("target", TARGETS)
def test_every_loop_is_vectorised_and_calls_nothing(target: tuple[str, ...], tmp_path: Path) -> None:
    text = all_loops()
    assembly = tmp_path / "loops.s"
    remarks = compiled(text, (*target, "-S"), assembly)
    done = {int(n) for n in re.findall(r"<stdin>:(\d+):\d+: remark: vectorized loop", remarks)}
    left = [line for n, line in enumerate(text.splitlines(), 1) if "for (" in line and n not in done]
    assert not left
    calls = re.findall(r"^\s+(?:call|callq|bl)\s+(\S+)", assembly.read_text(), re.MULTILINE)
    assert not calls


def index() -> dict[str, list[str]]:
    """The parts and their names, as metaljit_cpu.h lists them."""
    listed = re.findall(
        r'^#include "(cpu_\w+\.h)" +// (.*)$', (SHIM / "metaljit_cpu.h").read_text(), re.MULTILINE
    )
    return {part: names.split() for part, names in listed}


def test_the_index_lists_every_part() -> None:
    foundations = {"cpu_types.h", "cpu_lift.h"}
    assert set(index()) | foundations == {path.name for path in SHIM.glob("cpu_*.h")}


@pytest.mark.parametrize("part", index())
def test_a_text_has_its_names_from_the_parts_that_list_them(part: str, tmp_path: Path) -> None:
    """A name may ask for more than one part: geometry is of vectors."""
    names = [n for n in index()[part] if [p for p, listed in index().items() if n in listed][-1] == part]
    needed = [p for p, listed in index().items() if set(names) & set(listed)]
    includes = "".join(f'#include "{p}"\n' for p in needed)
    uses = "".join(f"using {'' if name.startswith('mj_') else 'metal'}::{name};\n" for name in names)
    text = f'{includes}#define METALJIT_PARTS\n#include "metaljit_cpu.h"\nnamespace user {{\n{uses}}}\n'
    assert names
    compiled(text, (), tmp_path / "part.o")


def test_parts_with_vectors_first_have_vector_forms(tmp_path: Path) -> None:
    header = '#define METALJIT_PARTS\n#include "cpu_vectors.h"\n#include "cpu_exponential.h"\n#include "metaljit_cpu.h"\n'
    compiled(header + "float3 f(float3 x) { return metal::precise::exp(x); }\n", (), tmp_path / "part.o")


def test_metal_stdlib_is_the_whole(tmp_path: Path) -> None:
    text = """#include <metal_stdlib>
        using namespace metal;
        kernel void twice(device const float *x [[buffer(0)]], device float4 *y [[buffer(1)]],
                          constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
            threadgroup float shared[4];
            thread float z = x[i] * 2.0f;
            shared[i % 4u] = z;
            y[i] = float4(exp(z), precise::sin(shared[0]), INFINITY, fmax(z, M_PI_F));
        }
        void use(const float *x, float4 *y) { twice(x, y, 3u, 0u); }
    """
    compiled(text, (), tmp_path / "whole.o")
