"""Finding clang, what it says when it cannot be used, and what its identity depends on."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from metaljit.runtime import toolchain
from metaljit.runtime.toolchain import Toolchain
from metaljit.source import DeviceFault, InternalError

TEXT = 'extern "C" __attribute__((visibility("default"))) int seven(void) { return 7; }'


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_text_becomes_a_library(tmp_path: Path) -> None:
    library = tmp_path / "seven.so"
    library.write_bytes(toolchain.find().compile(TEXT, "seven"))
    assert ctypes.CDLL(str(library)).seven() == 7


def test_the_same_text_gives_the_same_library() -> None:
    found = toolchain.find()
    assert found.compile(TEXT, "seven") == found.compile(TEXT, "seven")


def test_a_text_that_does_not_compile_is_our_fault() -> None:
    with pytest.raises(InternalError, match="the C\\+\\+ text of broken does not compile") as caught:
        toolchain.find().compile("int f() { return nothing; }", "broken")
    assert "<stdin>:1:" in str(caught.value)
    assert "'nothing'" in str(caught.value)


def test_long_reports_are_cut() -> None:
    with pytest.raises(InternalError) as caught:
        toolchain.find().compile("\n".join(f"int f{i}() {{ return x{i}; }}" for i in range(50)), "broken")
    assert len(str(caught.value).splitlines()) < 15


def test_char_is_signed_and_products_are_not_contracted(tmp_path: Path) -> None:
    text = """
    #pragma GCC visibility push(default)
    extern "C" float rest(float a, float b, float c) { return a * b + c; }
    extern "C" int sign(void) { return char(-1) < 0; }
    """
    library = tmp_path / "l.so"
    library.write_bytes(toolchain.find().compile(text, "t"))
    loaded = ctypes.CDLL(str(library))
    assert loaded.sign() == 1
    loaded.rest.restype = ctypes.c_float
    loaded.rest.argtypes = [ctypes.c_float] * 3
    a = 1 + 2.0**-12
    assert loaded.rest(a, a, -(1 + 2.0**-11)) == 0.0


@pytest.mark.parametrize("name", ["no-such-clang", "/no/such/clang"])
def test_a_named_compiler_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("METALJIT_CXX", name)
    with pytest.raises(DeviceFault, match="METALJIT_CXX names") as caught:
        toolchain.find()
    assert caught.value.slug == "toolchain-missing"


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("gcc (Debian 12.2.0) 12.2.0", "is not clang"),
        ("Debian clang version 14.0.6", "is clang 14, and 16 is the oldest"),
        ("Apple clang version 14.0.3 (clang-1403)", "is clang 14, and 15 is the oldest"),
    ],
)
def test_a_named_compiler_that_is_not_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, words: str
) -> None:
    monkeypatch.setenv("METALJIT_CXX", script(tmp_path / "cxx", f"echo '{says}'"))
    found = toolchain.find()
    with pytest.raises(DeviceFault, match=words) as caught:
        found.compile(TEXT, "seven")
    assert caught.value.slug == "toolchain-unusable"


def test_a_named_compiler_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend = (
        'for last; do :; done; case "$*" in *--version*) echo "clang version 17.0.1";;'
        ' *-shared*) cat "${last%library.so}text.o" > "$last"; echo "$@" >> "$last";;'
        ' *) cat > "$last"; echo "$@" >> "$last";; esac'
    )
    monkeypatch.setenv("METALJIT_CXX", script(tmp_path / "clang++-17", pretend))
    made = toolchain.find().compile("text", "t", ("-DX",)).decode()
    assert made.startswith("text")
    for flag in ("-shared", "-O3", "-DX", "-ffp-contract=off"):
        assert flag in made


@pytest.mark.parametrize(
    "text", ["exit 1", "echo 'clang: error: unknown argument' >&2; exit 1", "kill -9 $$"]
)
def test_a_compiler_that_fails_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    pretend = f'case "$*" in *--version*) echo "clang version 17.0.1";; *) {text};; esac'
    monkeypatch.setenv("METALJIT_CXX", script(tmp_path / "clang", pretend))
    with pytest.raises(DeviceFault, match="failed"):
        toolchain.find().compile(TEXT, "seven")


def test_no_space_for_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = 'echo "LLVM ERROR: IO failure on output stream: No space left on device" >&2; exit 1'
    pretend = f'case "$*" in *--version*) echo "clang version 17.0.1";; *) {full};; esac'
    monkeypatch.setenv("METALJIT_CXX", script(tmp_path / "clang", pretend))
    with pytest.raises(DeviceFault, match="TMPDIR"):
        toolchain.find().compile(TEXT, "seven")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no" / "such"))
    with pytest.raises(DeviceFault, match="no temporary file can be written"):
        toolchain.find().compile(TEXT, "seven")


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("METALJIT_CXX", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(toolchain, "find_spec", lambda name: None)
    with pytest.raises(DeviceFault, match="pip install ziglang"):
        toolchain.find()


def test_apples_compiler_is_found_without_starting_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("METALJIT_CXX", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(toolchain, "_APPLE_FOLDERS", (str(tmp_path / "none"), str(tmp_path)))
    with pytest.raises(DeviceFault, match="xcode-select --install"):
        toolchain.find()
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "clang").write_text("")
    found = toolchain.find()
    assert found.program == "/usr/bin/clang"
    assert str(tmp_path) in found.identity


def test_identity_follows_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "clang"
    monkeypatch.setenv("METALJIT_CXX", script(path, "echo"))
    before = toolchain.find().identity
    assert toolchain.find().identity == before
    script(path, "echo ")
    assert toolchain.find().identity != before
    size = toolchain.find().identity
    os.utime(path, (10**9, 10**9))
    assert toolchain.find().identity != size


def test_the_processor_is_told_by_its_features() -> None:
    text = toolchain.processor()
    if sys.platform == "linux":
        words = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        feature = next(
            line.split()[-1] for line in words.splitlines() if line.lower().startswith(("flags", "features"))
        )
        assert feature in text.split()
    assert text == toolchain.processor()


def test_a_binary_that_cannot_be_started(tmp_path: Path) -> None:
    broken = tmp_path / "zig"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(DeviceFault, match="cannot be started"):
        Toolchain(str(broken), "zig", "z").compile(TEXT, "seven")
