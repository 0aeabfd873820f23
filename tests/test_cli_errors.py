"""How the command fails: exit statuses, colour, bugs; and `doctor` and `cache`."""

from __future__ import annotations

import os
import pty
import signal
import stat
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import metaljit
from metaljit import cli_doctor, cli_errors
from metaljit.cli import cli
from metaljit.runtime import device as devices
from metaljit.source import DeviceFault, Diagnostic, InternalError

KERNEL = """
N = dims("N")

@kernel
def double(x: f32[N]) -> f32[N]:
    return 2 * x[position()]
"""
BAD = KERNEL.replace("2 *", "two *")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "k.mjk").write_text(KERNEL)
    return str(tmp_path / "k.mjk")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "metaljit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


# ---- exit statuses ----


def test_a_process_that_succeeds(file: str) -> None:
    done = process("run", file, "--in", "x=arange:f32[3]")
    assert (done.returncode, done.stderr) == (0, "")
    assert "[0., 2., 4.]" in done.stdout
    assert process("--version").stdout == f"metaljit {metaljit.__version__}\n"


def test_a_fault_of_the_program_is_1(tmp_path: Path) -> None:
    (tmp_path / "bad.mjk").write_text(BAD)
    done = process("run", str(tmp_path / "bad.mjk"), "--in", "x=ones:f32[3]")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{tmp_path}/bad.mjk:6:12: error: ")
    assert "\n           ^^^" not in done.stderr
    assert "      |            ^^^ " in done.stderr


def test_wrong_usage_is_2(file: str) -> None:
    assert process("run", file).returncode == 2
    assert process("fly").returncode == 2
    assert invoke("run", file, "--device", "tpu").exit_code == 2


def fake_clang(folder: Path, script: str) -> dict[str, str]:
    """The settings that make the cpu device compile with a script."""
    compiler = folder / "clang++"
    version = 'case "$*" in *--version*) echo "clang version 19.1.0"; exit;; esac'
    compiler.write_text(f"#!/bin/sh\n{version}\n{script}\n")
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return {"METALJIT_CXX": str(compiler), "METALJIT_DEVICE": "cpu", "METALJIT_CACHE": "0"}


def test_a_bug_is_70(file: str, tmp_path: Path) -> None:
    settings = fake_clang(tmp_path, 'echo "<stdin>:1:1: error: no" >&2; exit 1')
    done = process("run", file, "--in", "x=ones:f32[3]", **settings)
    assert done.returncode == 70
    assert "[internal-error]" in done.stderr
    assert "This is our bug" in done.stderr
    assert "Traceback" not in done.stderr


def broken(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("metaljit.cli_kernels.load_kernels", fail)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ZeroDivisionError("by nothing"), 70, "metaljit itself failed: ZeroDivisionError: by nothing"),
        (KeyError(), 70, "metaljit itself failed: KeyError\n"),
        (InternalError("a pass"), 70, "metaljit itself failed: a pass"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "there is not enough memory"),
        (MemoryError("12 TiB"), 1, "there is not enough memory: 12 TiB"),
        (PermissionError(13, "Permission denied"), 1, "cannot be read: Permission denied [unreadable-file]"),
    ],
)
def test_exceptions(
    file: str, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, message: str
) -> None:
    broken(error, monkeypatch)
    result = invoke("check", file)
    assert result.exit_code == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_the_traceback_of_a_bug_is_shown_on_request(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(ZeroDivisionError("by nothing"), monkeypatch)
    assert "--traceback shows where" in invoke("check", file).stderr
    for arguments in (["--traceback", "check", file], ["check", file, "--traceback"]):
        result = invoke(*arguments)
        assert "Traceback (most recent call last)" in result.stderr
        assert result.exit_code == 70


def test_many_diagnostics_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    cli_errors.report([Diagnostic("a-slug", f"number {i}") for i in range(13)])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 3 more errors"


# ---- terminals ----


def on_terminal(*arguments: str, signal_when: str = "", **environment: str) -> tuple[int, str]:
    """Exit status and output of the command where standard error is a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "metaljit", *arguments]
    settings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "FORCE_COLOR")}
    child = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**settings, "TERM": "xterm", **environment},
        # a job in the background ignores interrupts, and what it starts inherits that
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
        if signal_when and signal_when.encode() in text:
            child.send_signal(signal.SIGINT)
            signal_when = ""
    os.close(ours)
    return child.wait(60), text.decode()


def test_colour_on_a_terminal_that_wants_it(tmp_path: Path) -> None:
    (tmp_path / "bad.mjk").write_text(BAD)
    arguments = ["check", str(tmp_path / "bad.mjk")]
    status, text = on_terminal(*arguments)
    assert status == 1
    assert "\x1b[1;31merror:\x1b[0m" in text
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b[" not in on_terminal(*arguments, **plain)[1]


def test_what_takes_long_says_so_and_can_be_interrupted(file: str, tmp_path: Path) -> None:
    settings = fake_clang(tmp_path, "exec sleep 8")
    arguments = ["run", file, "--in", "x=ones:f32[3]"]
    status, text = on_terminal(*arguments, signal_when="Compiling and running double", **settings)
    assert status == 130
    assert "interrupted" in text


def test_a_spinner_starts_late_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Spinner:
        def __init__(self, message: str) -> None:
            self.message = message

        def start(self) -> None:
            started.append(self.message)

        def stop(self) -> None:
            started.append("stop")

    monkeypatch.setattr(cli_errors, "_Spinner", Spinner)
    monkeypatch.setattr(cli_errors, "PATIENCE_S", 0.01)
    with cli_errors.progress("quiet"):
        time.sleep(0.05)
    assert started == []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with cli_errors.progress("slow"):
        time.sleep(0.2)
    assert started == ["slow", "stop"]


def test_output_without_unicode(file: str) -> None:
    done = process("run", "--help", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "Usage" in done.stdout


# ---- doctor and cache ----


def test_doctor_finds_this_machine() -> None:
    result = invoke("doctor")
    assert result.exit_code == 0, result.output
    found = {line[9:21].strip(): line[:7].strip() for line in result.stdout.splitlines() if line[:7].strip()}
    assert found["NumPy"] == found["Python"] == found["Pillow"] == "ok"
    assert "ok" in {found["device cpu"], found["device metal"]}


def test_doctor_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("METALJIT_CXX", str(tmp_path / "no-clang"))
    monkeypatch.setenv("METALJIT_CACHE_DIR", "/dev/null/cache")
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(sys, "platform", "linux")
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "missing  device cpu" in result.stdout
    assert "missing  C++ compiler" in result.stdout
    assert "-        device metal" in result.stdout
    assert "nothing is kept on disk" in result.stdout
    assert "METALJIT_CACHE_DIR=/dev/null/cache" in result.stdout
    assert result.stdout.count("help: ") >= 4


def test_doctor_finds_wrong_numbers_and_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_doctor, "PROBE", cli_doctor.PROBE.replace("+ 1", "+ 2"))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "BROKEN   device cpu" in result.stdout
    assert "wrong numbers" in result.stdout

    def refuse(*_: Any) -> Any:
        raise DeviceFault(Diagnostic("a-slug", "no memory", help="buy some"))

    monkeypatch.setattr(cli_doctor, "kernel_from_text", refuse)
    assert "help: buy some" in invoke("doctor").stdout


def test_cache_info_and_clear(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("METALJIT_CACHE_SIZE", "2GB")
    assert invoke("cache", "info").stdout == f"{tmp_path}/cache, 0 entries, 0 bytes of at most 2 GB\n"
    assert invoke("show", file).exit_code == 0
    (tmp_path / "cache" / "mine").write_text("kept")
    assert " kB of at most 2 GB" in invoke("cache", "info").stdout
    removed = invoke("cache", "clear").stdout
    assert removed.startswith("removed ")
    assert removed != "removed 0 entries\n"
    assert invoke("cache", "clear").stdout == "removed 0 entries\n"
    assert (tmp_path / "cache" / "mine").exists()


def test_cache_that_is_off_unsafe_or_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", "/dev/null/cache")
    assert "nothing is kept on disk" in invoke("cache", "info").stdout
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    assert invoke("cache", "info").exit_code == 1
    tmp_path.chmod(0o700)
    monkeypatch.setenv("METALJIT_CACHE", "0")
    assert "is off" in invoke("cache", "info").stdout
    assert invoke("cache", "clear").stdout == "removed 0 entries\n"


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1234, "1.23 kB"), (5e6, "5 MB"), (3e12, "3e+03 GB")],
)
def test_sizes(nbytes: float, text: str) -> None:
    assert cli_doctor.size(nbytes) == text
