"""`metaljit check`, `show` and `build`."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import metaljit as mj
from metaljit import cli_kernels
from metaljit.cli import cli
from metaljit.cli_kernels import kinds_of, parse_type

KERNELS = """
H, W = dims("H W")
N = dims("N")
S = dims("*S")
B = dims("*B")
T = dtypes("f16 f32")
I = dtypes("int")

@kernel
def plain(u: f32[H, W], k: f32 = 2.0, radius: const[int] = 1) -> f32[H, W]:
    y, x = position()
    return k * u[y, x] + radius

@kernel
def generic(u: T[*S]) -> T[*S]:
    return u[position()]

@kernel
def shifted(x: f32[N]) -> f32[N]:
    i = position()
    return x[i + 1] if len(x) > 4 else x[i]

@kernel
def not_flat(u: T[*S]) -> T[*S]:
    static_assert(len(S) > 0, "one axis at least")
    return u[position()]

@kernel
def pooled(u: T[*S], window: const[tuple] = (2, 2)) -> T[*S]:
    p = position()
    return u[p // window]

@kernel
def needs(x: f32[N], size: const[int]) -> f32[N]:
    return x[position()] + size

@kernel
def whole(x: I[*S], y: T[*B]) -> T[*B]:
    return y[position()]

def helper(x):
    return x + 1
"""
BAD = """
N = dims("N")
S = dims("*S")
T = dtypes("f32 u8")

@kernel
def two_errors(x: f32[N]) -> f32[N]:
    i = position()
    a = missing_name
    return x[i, i]

@kernel
def only_integers(x: T[*S]) -> T[*S]:
    return x[position()] & 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels")
    (path / "k.mjk").write_text(KERNELS)
    (path / "bad.mjk").write_text(BAD)
    return path


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def refused(status: int, *arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == status, result.output
    return " ".join(result.stderr.split())


# ---- check ----


def test_check_names_what_it_covered() -> None:
    result = invoke("check", "k.mjk", "--arg", "size=3")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert "plain: ok" in lines
    assert "generic: ok, 10 kinds: T = f16, f32; S of 0 to 4 axes" in lines
    assert "needs: ok" in lines


def test_check_prints_the_guards_that_remain() -> None:
    out = invoke("check", "k.mjk:shifted").stdout
    assert re.search(r"k\.mjk:\d+:\d+: note: 'x' is guarded here.*\[guard\]", out)
    assert "one comparison each time" in out or "no cost on whole tiles inside" in out


def test_check_takes_a_static_assert_as_the_kernels_word() -> None:
    result = invoke("check", "k.mjk:not_flat")
    assert result.exit_code == 0
    assert "  not for S of 0 axes: this static assertion is false" in result.stdout


def test_check_takes_a_tuple_constant_for_the_rank() -> None:
    result = invoke("check", "k.mjk:pooled")
    assert result.exit_code == 0, result.output
    assert "  not for S of 1 axes: " in result.stdout
    assert "of 2 axes" not in result.stdout
    assert invoke("check", "k.mjk:pooled", "--in", "u=f32[a]", "--arg", "window=3,").exit_code == 0
    assert "[" in refused(1, "check", "k.mjk:pooled", "--in", "u=f32[a]")


def test_check_reports_all_errors_and_the_kinds_that_they_concern() -> None:
    result = invoke("check", "bad.mjk", "k.mjk:plain")
    assert result.exit_code == 1
    assert "two_errors: 2 errors" in result.stdout
    assert "plain: ok" in result.stdout
    assert result.stderr.count("error:") == 3
    assert "bad.mjk:9:9: error:" in result.stderr
    assert result.stderr.endswith("\n  for T = f32\n")


def test_check_covers_each_choice_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_kernels, "MOST_KINDS", 20)
    out = invoke("check", "k.mjk:whole").stdout
    assert "whole: ok, 8 of 400 kinds, each choice at least once" in out
    kernel = mj.load_kernels("k.mjk").whole
    texts = {choice for kind in kinds_of(kernel, {}, {}).kinds for choice in kind.choices}
    assert len(texts) == 8 + 5 + 2 + 5


def test_check_with_types_and_values() -> None:
    out = invoke("check", "k.mjk:generic", "--in", "u=f16[2,3]").stdout
    assert out == "generic: ok\n"
    assert invoke("check", "k.mjk:generic", "--in", "u=f16").stdout.startswith("generic: ok, 5 kinds: S of")
    assert "[wrong-dtype]" in refused(1, "check", "k.mjk:plain", "--in", "u=u8[2,3]")
    assert "'size' is const[int] and has no default" in refused(2, "check", "k.mjk:needs")
    assert "no parameter 'z'" in refused(2, "check", "k.mjk", "--in", "z=f32[2]")
    assert "Missing argument" in refused(2, "check")


def test_syntax_errors(tmp_path: Path) -> None:
    (tmp_path / "s.mjk").write_text("@kernel\ndef f(x: f32[N]) -> f32[N]\n    return x\n")
    assert "[" in refused(1, "check", str(tmp_path / "s.mjk"))


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("f32[2, 3]", (2, 3)),
        ("f32[H,W]", (None, None)),
        ("f32[:, ?]", (None, None)),
        ("f32[]", ()),
        ("f32", None),
        ("f32[…]", None),
        ("f32[...]", None),
    ],
)
def test_type_specs(text: str, axes: object) -> None:
    found = parse_type(text, "here")
    assert (str(found.element), found.axes) == ("f32", axes)


# ---- show ----


def test_show_msl_is_the_usual_form() -> None:
    out = invoke("show", "k.mjk:plain").stdout
    assert out == invoke("show", "k.mjk:plain", "--msl").stdout
    assert out.startswith("#include <metal_stdlib>")
    assert out.endswith("}\n")
    assert mj.load_kernels("k.mjk").plain.msl(mj.spec((None, None), "f4")) == out


def test_show_ir_cpu_and_values() -> None:
    assert "kernel plain(y, x) over ($H, $W) -> out: f32" in invoke("show", "k.mjk:plain", "--ir").stdout
    assert "+ f32(7.0)" in invoke("show", "k.mjk:plain", "--ir", "--arg", "radius=7").stdout
    assert 'extern "C" void plain_cpu(' in invoke("show", "k.mjk:plain", "--cpu").stdout
    assert "u{i}" in invoke("show", "k.mjk:generic", "--ir", "--in", "u=f16[n]").stdout


def test_show_every_kind() -> None:
    out = invoke("show", "k.mjk:generic", "--ir").stdout
    assert out.count("kernel generic(") == 10
    assert "# ==== generic for T = f32, S of 4 axes ====" in out
    assert "kernel generic(i0, i1, i2, i3)" in out


def test_show_tree() -> None:
    whole, one = (invoke("show", f, "--tree").stdout for f in ("k.mjk", "k.mjk:plain"))
    assert "Function name='helper'  @" in whole
    assert "helper" not in one
    assert one.startswith("Function name='plain'  @10:1\n  decorators:\n    Name name='kernel'  @9:2\n")
    assert "Binary op='*'" in one


def test_show_refuses() -> None:
    assert "'photo.png' is no type" in refused(2, "show", "k.mjk:plain", "--in", "u=photo.png")
    assert "'k' is no array" in refused(2, "show", "k.mjk:plain", "--in", "k=f32")
    assert "[unknown-name]" in refused(1, "show", "bad.mjk:two_errors")


# ---- build ----


def test_build_metal(tmp_path: Path) -> None:
    result = invoke("build", "k.mjk:plain", "-o", f"{tmp_path}/x.metal")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "x.metal").read_text()
    notes, _, source = text.partition("\n\n#include")
    assert all(line.startswith("//") for line in notes.splitlines())
    assert "Launch plain over H * W threads" in notes
    assert "buffer(1)  out: f32[H, W], written" in notes
    assert "buffer(2)  plain_params: H = H, W = W, k" in notes
    assert "#include" + source == invoke("show", "k.mjk:plain").stdout


def test_build_chooses_by_types(tmp_path: Path) -> None:
    message = refused(2, "build", "k.mjk:generic", "-o", f"{tmp_path}/x.metal")
    assert "generic can be compiled for T = f16, f32; S of 0 to 4 axes" in message
    assert "--in u=f32[1024,1024]" in message
    assert invoke("build", "k.mjk:generic", "-o", f"{tmp_path}/x.metal", "--in", "u=f16[9]").exit_code == 0
    assert "half" in (tmp_path / "x.metal").read_text()
    assert "several kernels" in refused(2, "build", "k.mjk", "-o", f"{tmp_path}/y.metal")
    assert "ends in .metal or .metallib" in refused(2, "build", "k.mjk:plain", "-o", f"{tmp_path}/y.msl")
    assert "[unwritable-file]" in refused(1, "build", "k.mjk:plain", "-o", f"{tmp_path}/no/y.metal")
    assert os.listdir(tmp_path) == ["x.metal"]


XCRUN = """#!{python}
import os, sys
assert sys.argv[1:] == ["--find", "metal"] or sys.argv[1:4] == ["-sdk", "macosx", "metal"], sys.argv
if {fails}:
    sys.exit("kernel.metal:1:1: error: no")
if "--find" not in sys.argv:
    assert "-std=macos-metal2.3" in sys.argv and "-fno-fast-math" in sys.argv
    text = open(next(a for a in sys.argv if a.endswith(".metal"))).read()
    open(sys.argv[sys.argv.index("-o") + 1], "w").write("library of " + text)
"""


def install_xcrun(folder: Path, fails: str) -> None:
    script = folder / "xcrun"
    script.write_text(XCRUN.format(python=sys.executable, fails=fails))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def test_build_metallib_with_apples_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_xcrun(tmp_path, "False")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke("build", "k.mjk:plain", "-o", f"{tmp_path}/x.metallib")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "x.metallib").read_text().startswith("library of #include <metal_stdlib>")


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        ("", "`xcrun` was not found [metal-compiler-missing]"),
        ("True", "`xcrun` finds no `metal` [metal-compiler-missing]"),
        ("'-sdk' in sys.argv", "kernel.metal:1:1: error: no [metal-compiler-failed]"),
    ],
)
def test_build_metallib_where_it_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, message: str
) -> None:
    if fails:
        install_xcrun(tmp_path, fails)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert message in refused(1, "build", "k.mjk:plain", "-o", f"{tmp_path}/x.metallib")
    assert not (tmp_path / "x.metallib").exists()
