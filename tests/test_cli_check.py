"""`metaljit check` of Metal source files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from metaljit.cli import cli

FINE = """#include <metal_stdlib>
using namespace metal;
kernel void fine(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a[i] = max(a[i], 0.0f);
}
"""
WRONG = FINE.replace("0.0f", "0")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["check", *arguments])


def test_a_file_that_is_fine(folder: Path) -> None:
    (folder / "fine.metal").write_text(FINE)
    done = invoke("fine.metal")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "fine.metal: ok, for Metal 2.3\n", "")


def test_a_file_that_is_refused(folder: Path) -> None:
    (folder / "wrong.metal").write_text(WRONG)
    done = invoke("wrong.metal", "--std", "3.1")
    assert (done.exit_code, done.stdout) == (1, "wrong.metal: 1 error, for Metal 3.1\n")
    assert done.stderr == (
        "wrong.metal:4:12: error: call to 'max' is ambiguous [msl-refused]\n"
        "    4 |     a[i] = max(a[i], 0);\n"
        "      |            ^^^\n"
    )


def test_several_files_of_both_kinds(folder: Path) -> None:
    (folder / "fine.metal").write_text(FINE)
    (folder / "wrong.metal").write_text(WRONG)
    (folder / "k.mjk").write_text(
        "N = dims('N')\n@kernel\ndef one(x: f32[N]) -> f32[N]:\n    return x[position()]\n"
    )
    done = invoke("fine.metal", "k.mjk", "wrong.metal")
    assert done.exit_code == 1
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == [
        "fine.metal: ok",
        "wrong.metal: 1 error",
        "k.mjk:",
        "one: ok",
    ]


def test_versions(folder: Path) -> None:
    (folder / "k.metal").write_text(FINE.replace("max(a[i], 0.0f)", "nextafter(a[i], 0.0f)"))
    for std, status in (("2.3", 1), ("3.0", 1), ("3.1", 0), ("metal3.2", 0), ("macos-metal2.4", 1)):
        assert invoke("k.metal", "--std", std).exit_code == status, std
    assert "use one of 2.3, 2.4, 3.0, 3.1, 3.2, 4.0" in invoke("k.metal", "--std", "5.0").stderr


def test_headers_and_macros(folder: Path) -> None:
    (folder / "lib").mkdir()
    (folder / "lib" / "far.h").write_text("constant float far_away = FAR;\n")
    (folder / "src").mkdir()
    (folder / "src" / "near.h").write_text("constant float near_by = 1.0f;\n")
    text = '#include "near.h"\n#include "far.h"\n' + FINE.replace("0.0f", "near_by + far_away + OFFSET")
    (folder / "src" / "k.metal").write_text(text)
    assert invoke("src/k.metal", "-I", "lib", "-D", "FAR=2.0f", "-D", "OFFSET").exit_code == 0
    assert "'far.h' file not found" in invoke("src/k.metal").stderr
    assert invoke("src/k.metal", "-D", "2=3").exit_code == 2


def test_what_was_not_judged_is_said(folder: Path) -> None:
    (folder / "k.metal").write_text(FINE + "float f(array_ref<float> a) { return a[0]; }\n")
    done = invoke("k.metal", "--std", "3.1")
    assert done.exit_code == 0
    assert "address spaces were not checked: k.metal:6: " in done.stdout


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "bytes.metal").write_bytes(b"\xff\xfe\x00")
    (folder / "zero.metal").write_bytes(b"\x00\x01")
    (folder / "latin.metal").write_bytes(FINE.encode() + b"// caf\xe9\n")
    (folder / "fine.metal").write_text(FINE)
    assert "no UTF-8 text: byte 0xff in line 1, at offset 0 [msl-text]" in invoke("bytes.metal").stderr
    assert "byte 0xe9 in line 6, at offset" in invoke("latin.metal").stderr
    assert "zero byte in the text [msl-text]" in invoke("zero.metal").stderr
    done = invoke("missing.metal", "fine.metal")
    assert "[unreadable-file]" in done.stderr
    assert (done.exit_code, "fine.metal: ok" in done.stdout) == (1, True)
