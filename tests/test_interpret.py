"""Interpret mode: what a debugger sees, what a call takes and refuses, and the typing rules that show in results."""

from __future__ import annotations

import bdb
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import metaljit as mj
from metaljit.interpret import Interpreted
from metaljit.interpret_run import Run
from metaljit.lang import (
    InOut,
    Out,
    atomic_add,
    border,
    const,
    f32,
    f32x3,
    global_index,
    i32,
    local_array,
    position,
    require,
    u8,
    u32,
)

N, M, H, W = mj.dims("N M H W")
BYTES = np.array([0, 1, 2, 200, 255], np.uint8)


@mj.function
def double(x: f32) -> f32:
    y = x + x
    return y


@mj.kernel
def steps(x: f32[N]) -> f32[N]:
    i = position()
    a = x[i] + 1
    b = double(a)
    if i == 2:
        print("third", a, b)
    print("first", i, when=i == 0)  # type: ignore[call-overload]
    return b


def line_of(text: str) -> int:
    """The line of this file that holds a text."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.strip() == text)


class Stops(bdb.Bdb):
    """A debugger that notes the local names at each breakpoint."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int, dict[str, Any]]] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame):
            names = {n: v for n, v in frame.f_locals.items() if not n.startswith("@")}
            self.seen.append((frame.f_code.co_name, frame.f_lineno, names))
        self.set_continue()


# ---- debugging ----


def test_print_shows_values(capsys: pytest.CaptureFixture[str]) -> None:
    result = steps.interpret(np.arange(4, dtype=np.float32))
    assert capsys.readouterr().out == "first 0\nthird 3.0 6.0\n"
    assert result.tolist() == [2, 4, 6, 8]


def test_print_is_refused_by_devices(device: str) -> None:
    with pytest.raises(mj.TypeFault) as e:
        steps.on(device)(np.arange(4, dtype=np.float32))
    assert e.value.slug == "no-print"


def test_other_faults_are_found_beside_a_print() -> None:
    @mj.kernel
    def wrong(x: f32[N]) -> i32[N]:
        print("here")
        return x[position()]

    with pytest.raises(mj.TypeFault) as e:
        wrong.interpret(np.zeros(2, np.float32))
    assert [d.slug for d in e.value.diagnostics] == ["needs-cast"]


def test_a_breakpoint_stops_at_the_users_line() -> None:
    debugger = Stops()
    debugger.set_break(__file__, line_of("y = x + x"))
    debugger.set_break(__file__, line_of("b = double(a)"))
    debugger.runcall(steps.interpret, np.array([5.0], np.float32))
    inner, outer = line_of("y = x + x"), line_of("b = double(a)")
    assert [(name, line) for name, line, _ in debugger.seen] == [("steps", outer), ("double", inner)]
    assert debugger.seen[0][2]["a"] == np.float32(6)
    assert debugger.seen[0][2]["i"] == 0
    assert debugger.seen[1][2]["x"] == np.float32(6)


def test_breakpoint_can_be_written_into_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: found.append(sys._getframe(1).f_locals["v"]))

    @mj.kernel
    def stops(x: f32[N]) -> f32[N]:
        v = x[position()] * 2
        breakpoint()
        return v

    assert stops.interpret(np.array([3.0], np.float32)) == 6
    assert found == [6]


def test_a_mjk_file_has_breakpoints_too(tmp_path: Path) -> None:
    file = tmp_path / "k.mjk"
    file.write_text(
        'N = dims("N")\n\n@kernel\ndef k(x: f32[N]) -> f32[N]:\n    v = x[position()]\n    return v + 1\n'
    )
    debugger = Stops()
    debugger.set_break(str(file), 6)
    debugger.runcall(mj.load_kernels(file).k.interpret, np.array([5.0], np.float32))
    assert [(name, line, names["v"]) for name, line, names in debugger.seen] == [("k", 6, 5.0)]


def test_a_traceback_names_the_users_line() -> None:
    @mj.kernel
    def fails(x: f32[N]) -> f32[N]:
        v = x[position()]
        assert v > 0, "positive"
        return v

    with pytest.raises(mj.KernelAssertion) as e:
        fails.interpret(np.array([1.0, -1.0], np.float32))
    frames = [(f.filename, f.lineno) for f in traceback.extract_tb(e.value.__traceback__)]
    assert (__file__, line_of('assert v > 0, "positive"')) in frames


# ---- the same call as on a device ----


@mj.kernel
def checked(x: f32[N, M], least: f32, k: i32 = 1) -> f32[N, M]:
    require(N % 2 == 0 and k > 0, "pairs")
    y, z = position()
    assert x[y, z] >= least, "large enough"
    return x[y, z] * k


def refusal(run: Any, *args: Any, **named: Any) -> str:
    with pytest.raises(mj.MetaljitError) as e:
        run(*args, **named)
    return f"{type(e.value).__name__}: {e.value}"


ONES = np.ones((2, 3), np.float32)
ONE_BAD = np.array([[1, 1, 1], [1, -5, 1]], np.float32)


@pytest.mark.parametrize(
    "call",
    [
        ((ONE_BAD, 0.0), {}),
        ((ONES[:1], 0.0), {}),
        ((ONES, 0.0, -1), {}),
        ((ONES, 0.0, 1.5), {}),
        ((ONES.astype(np.float64), 0.0), {}),
        ((ONES.astype(np.int32), 0.0), {}),
        ((ONES[0], 0.0), {}),
        (([[1.0]], 0.0), {}),
        ((ONES,), {}),
        ((ONES, 0.0), {"more": 1}),
        ((ONES, 0.0), {"out": np.zeros((3, 2), np.float32)}),
        ((ONES, "zero"), {}),
    ],
)
def test_refusals_are_those_of_a_device(device: str, call: Any) -> None:
    args, named = call
    assert refusal(checked.interpret, *args, **named) == refusal(checked.on(device), *args, **named)


def test_an_assertion_says_where_and_what() -> None:
    with pytest.raises(mj.KernelAssertion) as e:
        checked.interpret(ONE_BAD, 0.0)
    assert "position (1, 1)" in str(e.value)
    assert "large enough" in str(e.value)
    line = line_of('assert x[y, z] >= least, "large enough"')
    assert f":{line}:" in str(e.value)


def test_assertions_can_be_left_out() -> None:
    @mj.kernel(asserts=False)
    def unchecked(x: f32[N]) -> f32[N]:
        assert x[position()] > 0, "positive"
        return x[position()]

    assert unchecked.interpret(np.array([-1.0], np.float32)) == -1


def test_a_loop_that_does_not_end_is_stopped(device: str) -> None:
    @mj.kernel(loop_limit=100)
    def endless(x: i32[N]) -> i32[N]:
        n = 0
        while n >= 0:
            n = n % 7
        return n

    x = np.zeros(1, np.int32)
    assert refusal(endless.interpret, x) == refusal(endless.on(device), x)


def test_results_go_where_out_says() -> None:
    storage = np.zeros((3, 2), np.float32).T
    assert checked.interpret(ONES, 0.0, out=storage) is storage
    assert (storage == 1).all()


def test_device_arrays_are_taken_and_given(device: str) -> None:
    result = checked.interpret(mj.asarray(ONES, device=device), 0.0, 3)
    assert isinstance(result, mj.Array)
    assert result.device.name == device
    assert (result.numpy() == 3).all()


def test_arguments_stay_what_they_are() -> None:
    @mj.kernel(grid="ceil_div(N, 32)", threadgroup=32)
    def bump(x: InOut[f32[N]], total: Out[i32[1]]) -> None:
        i = global_index()
        x[i] = x[i] + 1
        atomic_add(total, 0, 1)

    x = np.arange(3, dtype=np.float32)
    result, total = bump.interpret(x)
    assert x.tolist() == [0, 1, 2]
    assert result.tolist() == [1, 2, 3]
    assert total == 32


def test_nothing_runs_for_an_empty_result() -> None:
    assert steps.interpret(np.zeros(0, np.float32)).shape == (0,)


def test_a_changed_captured_value_counts() -> None:
    scale = 2

    @mj.kernel
    def scaled(x: f32[N]) -> f32[N]:
        return x[position()] * scale

    assert scaled.interpret(np.ones(1, np.float32)) == 2
    scale = 3
    assert scaled.interpret(np.ones(1, np.float32)) == 3


ENVIRONMENT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, kernels, metaljit as mj
print(kernels.shown(np.ones(2, np.float32)))
print(kernels.shown.on("cpu")(np.ones(2, np.float32)))
"""


@pytest.mark.parametrize(("value", "prints"), [("1", True), ("0", False), ("", False)])
def test_the_environment_turns_it_on(tmp_path: Path, value: str, prints: bool) -> None:
    (tmp_path / "kernels.py").write_text(
        "import metaljit as mj\nfrom metaljit.lang import f32, position\nN = mj.dims('N')\n@mj.kernel\n"
        "def shown(x: f32[N]) -> f32[N]:\n    print('at', position())\n    return x[position()]\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", ENVIRONMENT.format(folder=str(tmp_path))],
        env={**os.environ, "METALJIT_INTERPRET": value}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if prints:
        assert result.stdout == "at 0\nat 1\n[1. 1.]\n" * 2
    else:
        assert "no-print" in result.stderr


# ---- .mjk ----


def test_a_text_sees_the_language_only() -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef k(x: f32[N]) -> f32[N]:\n    return x[position()]\n'
    )
    kernel.interpret(np.ones(2, np.float32))
    (launcher,) = kernel._interpreted._launchers.values()
    written = launcher.device.written(kernel.definition.text)
    assert set(written.free) == {"position"}
    assert "__import__" not in written.code.co_names
    python = Run(launcher.device, {"N": 2}, {}, {}).python(kernel.definition.text)
    assert python.__globals__["__builtins__"] == {}


@pytest.mark.parametrize("name", ["open", "__import__", "eval", "print.__self__", "np", "().__class__"])
def test_a_text_reaches_no_python(name: str) -> None:
    text = (
        f'N = dims("N")\n@kernel\ndef k(x: f32[N]) -> f32[N]:\n    print({name})\n    return x[position()]\n'
    )
    with pytest.raises((mj.TypeFault, mj.SyntaxFault)):
        mj.kernel_from_text(text).interpret(np.ones(2, np.float32))


# ---- types ----


def run(body: str, *arrays: Any, result: str = "f32", functions: str = "") -> list[Any]:
    """What a kernel of one u8 array `a` gives."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = (
        f'N = dims("N")\n{functions}\n@kernel\ndef k(a: u8[N]) -> {result}[N]:\n    i = position()\n{lines}'
    )
    found: list[Any] = mj.kernel_from_text(text).interpret(*(arrays or (BYTES,))).tolist()
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # a literal takes the type of what it stands beside
        ("return a[i] + 100", [100, 101, 102, 44, 99]),
        ("x = 100\nreturn a[i] + x", [100, 101, 102, 44, 99]),
        ("return a[i] + 0.5", [0.5, 1.5, 2.5, 200.5, 255.5]),
        # where paths join, it is never narrower than 32 bits
        ("if i > 0:\n    x = a[i]\nelse:\n    x = 0\nreturn x + u8(100)", [100, 101, 102, 300, 355]),
        ("x = 0\nif i > 0:\n    x = a[i]\nreturn x + u8(100)", [100, 101, 102, 300, 355]),
        ("x = a[i] if i > 0 else 0\nreturn x + u8(100)", [100, 101, 102, 300, 355]),
        ("if i > 0:\n    x = 2\nelse:\n    x = 2.0\nreturn a[i] * x", [0, 2, 4, 400, 510]),
        # typed values that agree keep their type
        ("x = a[i]\nif i > 2:\n    x = x + a[0]\nreturn x + 100", [100, 101, 102, 44, 99]),
        # a loop's name has one type throughout
        ("x = 0\nfor k in range(2):\n    x = a[i]\n    y = x + u8(100)\nreturn x + u8(100)", [100, 101, 102, 300, 355]),
        ("x = 0\nfor k in range(2):\n    x += a[i]\nreturn x", [0, 2, 4, 400, 510]),
        ("x = 0\nk = 0\nwhile k < 2:\n    x += a[i]\n    k += 1\nreturn x", [0, 2, 4, 400, 510]),
        ("x = 0\nfor w in (1, 2):\n    x += i32(a[i]) * w\nreturn x", [0, 3, 6, 600, 765]),
        ("x: f32 = 0\nx = a[i]\nreturn x / 2 + x * 2", [0, 2.5, 5, 500, 637.5]),
        ("t = (0, a[i])\nfor k in range(3):\n    t = (t[1], a[0])\nreturn t[0] + t[1]", [0, 0, 0, 0, 0]),
        # before the types of a loop are known, a literal may seem not to fit
        ("n = 0\nx = 0\nwhile n < 2:\n    n += 1\n    x = maximum(0 - n, u8(3))\nreturn x + n", [5] * 5),
        ("n = 0\nwhile 7 in (0, 2):\n    n += 1\nreturn n + 1", [1] * 5),
        ("n = 0\nwhile n >= 0:\n    if n > a[i]:\n        return n\n    n += 100\nreturn n", [100, 100, 100, 300, 300]),
        # what follows a loop that returns in its first turn is not looked at
        ("for w in (a[i], i):\n    return w + u8(100)\nreturn 0.5", [100, 101, 102, 44, 99]),
        ("for w in (1, 2):\n    if a[i] > w:\n        return w\n    else:\n        continue\nreturn 0.5", [0.5, 0.5, 1, 1, 1]),
        # a name rebound in straight-line code is a new one
        ("x = a[i]\nx = x + 0.5\nx = i32(x)\nreturn x", [0, 1, 2, 200, 255]),
        # a loop's variable is i32, also where a tuple makes the compiler unroll
        ("t = (a[i], a[i])\nx = 0.0\nfor k in range(2):\n    x += t[k] * k\nreturn x + a[i] * 2", [0, 3, 6, 344, 509]),
        # reductions of small integers
        ("return sum(a[k] for k in range(N))", [458] * 5),
        ("return sum((a[i], a[i], a[i]))", [0, 3, 6, 600, 765]),
        ("return sum(a[k] > 1 for k in range(N))", [3] * 5),
        ("return max(a[k] for k in range(N)) + 1", [0] * 5),
        # conditions
        ("return 1 if i == 0 or (i > 1 and a[i]) else 0", [1, 0, 1, 1, 1]),
        ("return sum(1 for k in range(N) if k < i and a[k])", [0, 0, 1, 2, 3]),
        ("return i32(any(k > i and a[k] for k in range(N)))", [1, 1, 1, 1, 0]),
        ("return (a[i] and 7) + (a[i] or 9)", [9, 8, 9, 207, 262]),
        ("return 1 if a[i] > 1 and a[i] < 255 else 0", [0, 0, 1, 1, 0]),
        ("return 1 if not a[i] else 2", [1, 2, 2, 2, 2]),
        # tables
        ("t = (1, 2, 300)\nreturn t[a[i]] + a[i]", [1, 3, 302, 200, 255]),
        ("t = ((1, 2), (3, 4))\nreturn t[i % 2][a[i] % 2] + t[i][0]", [2, 7, 1, 3, 2]),
        ("t = (a[i], 7)\nreturn t[i] + u8(100)", [100, 107, 100, 100, 100]),
    ],
)  # fmt: skip
def test_types(body: str, expected: list[float]) -> None:
    assert run(body) == expected


def test_a_functions_result_has_one_type() -> None:
    function = "def pick(x):\n    if x > 1:\n        return x\n    return 0\n"
    assert run("return pick(a[i]) + u8(100)", functions=function) == [100, 100, 102, 300, 355]


def test_a_lone_return_of_a_literal_is_one() -> None:
    function = "def two(n):\n    s = 0\n    for k in range(n):\n        s += k\n    return 2\n"
    assert run("return a[i] * two(3)", functions=function) == [0, 2, 4, 144, 254]


@pytest.mark.parametrize(
    ("mode", "pad"), [("constant", {}), *((m, {}) for m in ("edge", "reflect", "symmetric", "wrap"))]
)
def test_borders_are_those_of_numpy(mode: str, pad: dict[str, Any]) -> None:
    text = f'N = dims("N")\n@kernel\ndef k(a: u8[N]) -> u8[N + 20]:\n    return border(a, {mode!r})[position() - 10]\n'
    padded = np.pad(BYTES, 10, mode=mode, **pad)  # type: ignore[call-overload]
    assert (mj.kernel_from_text(text).interpret(BYTES) == padded).all()


def test_an_antiperiodic_border_changes_sign() -> None:
    @mj.kernel
    def k(a: i32[N]) -> i32[4 * N]:
        return border(a, "antiperiodic")[position() - N]

    a = np.array([1, 2, 3], np.int32)
    assert k.interpret(a).tolist() == [-1, -2, -3, 1, 2, 3, -1, -2, -3, 1, 2, 3]


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap", "antiperiodic", "constant"])
def test_borders_of_one_and_of_nothing(mode: str) -> None:
    text = f'N = dims("N")\n@kernel\ndef k(a: i32[N]) -> i32[3]:\n    return border(a, {mode!r})[position() - 1]\n'
    kernel = mj.kernel_from_text(text)
    outer = {"constant": 0, "antiperiodic": -7}.get(mode, 7)
    assert kernel.interpret(np.array([7], np.int32)).tolist() == [outer, 7, outer]
    assert kernel.interpret(np.zeros(0, np.int32)).tolist() == [0, 0, 0]


def test_reads_and_writes_outside() -> None:
    @mj.kernel(grid=1, threadgroup=32)
    def k(x: u8[N], out: Out[u8[N]], read: Out[i32[1]]) -> None:
        i = global_index()
        out[i - 3] = 1
        t = local_array(i32, 4)
        t[i - 1] = 5
        if i == 5:
            read[0] = x[i - 6] + x[N] + t[i - 1] + t[i - 6]

    out, read = k.interpret(np.full(4, 9, np.uint8))
    assert out.tolist() == [1, 1, 1, 1]
    assert read == 0


def test_vectors_are_values(capsys: pytest.CaptureFixture[str]) -> None:
    @mj.kernel
    def k(x: f32x3[N]) -> f32x3[N]:
        v = x[position()]
        w = v
        v = v.zyx * 2
        print(w, v.x, v)
        return v - w

    result = k.interpret(np.array([[1, 2, 3]], np.float32))
    assert result.tolist() == [[5, 2, -1]]
    assert capsys.readouterr().out == "f32x3(1.0, 2.0, 3.0) 6.0 f32x3(6.0, 4.0, 2.0)\n"


def test_const_parameters_choose() -> None:
    @mj.kernel
    def k(x: u32[N], mode: const[str], n: const[int] = 2) -> u32[N]:
        v = x[position()]
        if mode == "shift":
            v = v << n
        elif mode == "float":
            v = u32(v * 0.5)
        return v

    x = np.array([6], np.uint32)
    assert [k.interpret(x, m)[0] for m in ("shift", "float", "other")] == [24, 3, 6]


def test_it_needs_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no compiler is found, kernels can still be interpreted."""
    from metaljit.runtime import device as devices

    def none(name: str) -> Any:
        raise AssertionError("a device was asked for")

    monkeypatch.setattr(devices, "find", none)
    assert steps.interpret(np.zeros(1, np.float32)) == 2


def test_it_is_a_kernel_of_its_own() -> None:
    assert isinstance(steps._interpreted, Interpreted)
    assert steps._interpreted is steps._interpreted
