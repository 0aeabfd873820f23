"""What is compiled again and what is not; caches that several processes share; fork and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import captured_elsewhere as captures
import numpy as np
import pytest
from every_type import I32, U8

import metaljit as mj
from metaljit.lang import const, f32, position
from metaljit.runtime import pool
from metaljit.runtime.cache import key
from metaljit.runtime.msl import compile as msl_compile
from metaljit.runtime.toolchain import Toolchain

F = np.float32
N = mj.dims("N")
HEADER = 'N = dims("N")\n@kernel\n'


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is given to a compiler while the test runs."""
    texts: list[str] = []
    pool.launch()  # what every kernel of the device shares is no kernel's compilation
    real = Toolchain.compile

    def counted(self: Toolchain, text: str, what: str, flags: Any = ()) -> bytes:
        texts.append(text)
        return real(self, text, what, flags)

    emulated = msl_compile.compile_text

    def counted_too(cpp: str, flags: Any) -> bytes:
        texts.append(cpp)
        return emulated(cpp, flags)

    monkeypatch.setattr(Toolchain, "compile", counted)
    monkeypatch.setattr(msl_compile, "compile_text", counted_too)
    return texts


# ---- one name, two texts ----


def test_a_new_text_under_an_old_name_is_a_new_kernel(place: str) -> None:
    x = np.array([0, 1, 2], F)
    for add, wanted in ((1, [1, 2, 3]), (100, [100, 101, 102]), (1, [1, 2, 3])):
        kernel = mj.kernel_from_text(
            f"{HEADER}def k(x: f32[N]) -> f32[N]:\n    return x[position()] + {add}\n"
        )
        assert kernel(x).tolist() == wanted


def test_a_file_that_was_changed_is_read_again(place: str, tmp_path: Path) -> None:
    x = np.array([0, 1], F)
    file, helper = tmp_path / "k.mjk", tmp_path / "h.mjk"
    file.write_text(
        f"from h import add\n{HEADER}def k(x: f32[N]) -> f32[N]:\n    return add(x[position()]) * 2\n"
    )
    for amount in (1, 100):
        helper.write_text(f"A = {amount}\ndef add(v):\n    return v + A\n")
        assert mj.load_kernels(file).k(x).tolist() == [2 * amount, 2 * amount + 2]
    file.write_text(file.read_text().replace("* 2", "* 3"))
    assert mj.load_kernels(file).k(x).tolist() == [300, 303]


def test_fields_of_a_key_do_not_run_together() -> None:
    pairs = [
        (("a", "bc"), ("ab", "c")),
        (("", "ab"), ("ab", "")),
        (("1:a",), ("1", "a")),
        (("a",), ("a", "")),
        (("a\0b",), ("a", "b")),
    ]
    for one, other in pairs:
        assert key(*one) != key(*other)
    assert key("a", b"b") == key(b"a", "b")


def test_constants_that_only_look_alike_are_different(place: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], a: const[str], b: const[str], t: const[tuple] = ()) -> i32[N]:\n'
        '    return (1 if a == "a" else 2) + (10 if b == "bc" else 20) + 100 * len(t)\n'
    )
    x = np.zeros(1, F)
    assert [kernel(x, a, b)[0] for a, b in (("a", "bc"), ("ab", "c"), ("a", "c"), ("a, bc", ""))] == [
        11,
        22,
        21,
        22,
    ]
    assert [kernel(x, "a", "bc", t)[0] for t in ((1, 2), ((1, 2),))] == [211, 111]


def test_constants_that_are_equal_in_python_are_told_apart(place: str) -> None:
    """1, True and 1.0 have one hash, and so have 0.0 and -0.0; each is its own constant."""
    text = 'N = dims("N")\n@kernel\ndef f(x: i32[N], c: const[tuple]) -> f32[N]:\n    return x[position()] / 2 * c[0] + 1 / (c[1] * 1e30)\n'
    kernel = mj.kernel_from_text(text)
    x = I32([3])
    assert kernel(x, (1, 0.0)).tolist() == [np.inf]
    assert kernel(x, (1, -0.0)).tolist() == [-np.inf]
    typed = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: u8[N], c: const[tuple]) -> f32[N]:\n    return x[position()] * c[0] / 2\n'
    )
    big = U8([200])
    assert typed(big, (2,)).tolist() == [(400 % 256) / 2]
    assert typed(big, (2.0,)).tolist() == [200]
    assert typed(big, (2,)).tolist() == [72]


# ---- captured values ----

factor = 2
module = types.SimpleNamespace(value=2)


@mj.kernel
def scaled(x: f32[N]) -> f32[N]:
    return x[position()] * factor


def test_a_changed_global_is_seen_at_the_next_call(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1, 10], F)
    for value in (2, 3, 2, 0.5, -1, np.float32(0.25), True):
        monkeypatch.setattr(sys.modules[__name__], "factor", value)
        assert scaled(x).tolist() == [1 * float(value), 10 * float(value)]
    monkeypatch.setattr(sys.modules[__name__], "factor", [1])
    for _ in range(2):
        with pytest.raises(mj.TypeFault, match="factor"):
            scaled(x)
    monkeypatch.setattr(sys.modules[__name__], "factor", 4)
    assert scaled(x).tolist() == [4, 40]


def test_a_changed_closure_is_seen_at_the_next_call(place: str) -> None:
    amount, table = 2, (1, 2)

    @mj.kernel
    def closed(x: f32[N]) -> f32[N]:
        return x[position()] * amount + table[1]

    x = np.array([1, 10], F)
    assert closed(x).tolist() == [4, 22]
    amount = 3
    assert closed(x).tolist() == [5, 32]
    table = (1, 7)
    assert closed(x).tolist() == [10, 37]


def test_names_of_other_modules_and_of_functions_of_functions(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([1, 10], F)
    assert captures.kernel(x).tolist() == [4, 22]
    monkeypatch.setattr(captures, "FACTOR", 3)
    assert captures.kernel(x).tolist() == [5, 32]
    monkeypatch.setattr(captures, "TABLE", (1, 5, 3))
    assert captures.kernel(x).tolist() == [8, 35]

    @mj.function
    def other(v):  # type: ignore[no-untyped-def]
        return v - 1

    monkeypatch.setattr(captures, "inner", other)
    assert captures.kernel(x).tolist() == [5, 14]
    monkeypatch.setattr(captures, "outer", other)
    assert captures.kernel(x).tolist() == [0, 9]


@mj.kernel
def dotted(x: f32[N]) -> f32[N]:
    return x[position()] * captures.FACTOR + captures.TYPED


def of_two_scopes() -> tuple[mj.Kernel, Any]:
    factor = 2

    @mj.kernel
    def inner(x: f32[N]) -> f32[N]:
        return x[position()] * factor

    def change(value: Any) -> None:
        nonlocal factor
        factor = value

    return inner, change


def test_a_closure_beside_a_global_of_the_same_name_and_value(place: str) -> None:
    assert factor == 2
    kernel, change = of_two_scopes()
    x = np.array([1], F)
    for value in (2, 3, 2, 4):
        change(value)
        assert kernel(x).tolist() == [value]


def test_a_changed_attribute_of_a_module_is_seen_at_the_next_call(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([1], F)
    assert dotted(x).tolist() == [7]
    monkeypatch.setattr(captures, "FACTOR", 10)
    assert dotted(x).tolist() == [15]
    monkeypatch.setattr(captures, "TYPED", np.float16(0.5))
    assert dotted(x).tolist() == [10.5]


# ---- what compiles, and what does not ----


def compiled(place: str, request: pytest.FixtureRequest, compilations: list[str]) -> list[str]:
    return request.getfixturevalue("stand_in").module.compiled if place == "stand-in" else compilations


def test_no_size_and_no_number_compiles_again(
    place: str, request: pytest.FixtureRequest, compilations: list[str]
) -> None:
    texts = compiled(place, request, compilations)
    kernel = mj.kernel_from_text(
        f'{HEADER}def f(x: f32[N], s: f32, n: i32) -> f32[N + n]:\n    return s * border(x, "edge")[position()] + 4711\n'
    )
    for n in range(1, 201):
        assert kernel(np.ones(n, F), 2, 0).tolist() == [4713] * n
    for k in range(1, 10):
        assert kernel(np.ones(3, F), k / 10, k)[0] == F(k / 10) + F(4711)
    for number in (1, 1.5, True, np.float32(2), np.float64(3), np.int8(4), np.array(5.0)):
        assert kernel(np.ones(3, F), number, 1).tolist() == [float(number) + 4711] * 4
    kernel(np.ones((5, 2), F)[:, 0], 1, 1)
    kernel(np.ones(5, F)[::-1], 1, 1, out=np.zeros(12, F)[::2])
    kernel(s=1, n=0, x=np.zeros(0, F))
    assert len(texts) == 1


def test_a_new_type_or_rank_or_constant_compiles_once(
    place: str, request: pytest.FixtureRequest, compilations: list[str]
) -> None:
    texts = compiled(place, request, compilations)
    kernel = mj.kernel_from_text(
        'S = dims("*S")\nT = dtypes("number")\n@kernel\ndef f(x: T[*S], c: const[int]) -> T[*S]:\n'
        "    return x[position()] + T(c) + T(71)\n"
    )
    calls = [(np.zeros(2, F), 1), (np.zeros(2, np.int8), 1), (np.zeros((2, 2), F), 1), (np.zeros(2, F), 2)]
    for _ in range(3):
        for x, c in calls:
            assert (kernel(x, c) == c + 71).all()
    assert len(texts) <= len(calls)  # a flat text may serve two ranks
    again = mj.kernel_from_text(kernel.definition.source.text)
    for x, c in calls:
        again(x, c)
    assert len(texts) <= len(calls)


def test_importing_and_defining_compiles_and_probes_nothing() -> None:
    script = """
import sys, os
started = []
sys.addaudithook(lambda event, args: started.append(event) if event in ("subprocess.Popen", "os.posix_spawn", "os.fork",
    "os.exec", "ctypes.dlopen", "socket.connect") else None)
import numpy as np
before = set(sys.modules), len(started)
import metaljit as mj
from metaljit.lang import *
N = mj.dims("N")
@mj.kernel
def f(x: f32[N]) -> f32[N]:
    return x[position()] + 1
heavy = {"lark", "click", "rich", "subprocess", "ml_dtypes", "platformdirs", "PIL", "hypothesis", "metalcompute"}
loaded = set(sys.modules) - before[0]
print(sorted(heavy & {m.split(".")[0] for m in loaded}))
print(sorted(m for m in loaded if m.startswith(("metaljit.compiler", "metaljit.grammar", "metaljit.runtime.metal"))))
print(started[before[1]:])
"""
    path = Path(os.environ["METALJIT_CACHE_DIR"]) / "never"
    environment = os.environ | {"METALJIT_CACHE_DIR": str(path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines() == ["[]", "[]", "[]"]
    assert not path.exists()


# ---- several processes ----

SCRIPT = """
import sys
import numpy as np
import metaljit as mj
from metaljit.runtime.toolchain import Toolchain
count = []
real = Toolchain.compile
Toolchain.compile = lambda self, text, what, *a: (count.append(1) if what == "f" else 0, real(self, text, what, *a))[1]
factor = FACTOR
kernel = mj.kernel_from_text(f'''
N = dims("N")
K = {factor}
@kernel
def f(x: f32[N]) -> f32[N]:
    return x[position()] * K + 1
''')
print(kernel(np.arange(4, dtype=np.float32)).tolist(), len(count))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "cache"
    made.mkdir(mode=0o700)
    return made


def start(folder: Path, factor: object = 2) -> subprocess.Popen[str]:
    environment = os.environ | {"METALJIT_CACHE_DIR": str(folder), "METALJIT_DEVICE": "cpu"}
    script = SCRIPT.replace("FACTOR", repr(factor))
    return subprocess.Popen(
        [sys.executable, "-P", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def answer(process: subprocess.Popen[str]) -> tuple[str, int]:
    """The result, and how often the process compiled."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    result, _, count = out.strip().rpartition(" ")
    return result, int(count)


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def test_processes_share_a_folder_and_damage_is_only_a_miss(folder: Path) -> None:
    """Several at once, then one more; then damage of every kind to every file."""
    wanted = "[1.0, 3.0, 5.0, 7.0]"
    for found, _ in map(answer, [start(folder) for _ in range(2)]):
        assert found == wanted
    assert answer(start(folder)) == (wanted, 0)
    entries = files(folder)
    assert not [p for p in entries if p.name.endswith(".tmp")]
    assert len({p.name for p in entries}) == len(entries)
    originals = {p: p.read_bytes() for p in entries}
    others: list[Callable[[bytes], bytes]] = [
        lambda b: b[: len(b) // 2],
        lambda b: b"",
        lambda b: b"\0" * len(b),
    ]
    for p, content in originals.items():  # one bit, which may well change nothing that matters
        p.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert answer(start(folder)) == (wanted, 1)
    for n, (p, content) in enumerate(originals.items()):
        p.write_bytes(others[n % 3](content))
    assert answer(start(folder)) == (wanted, 1)
    names = list(originals)
    contents = [p.read_bytes() for p in names]
    for p, content in zip(names, contents[1:] + contents[:1], strict=True):  # each under another's name
        p.write_bytes(content)
    assert answer(start(folder)) == (wanted, 1)
    assert answer(start(folder)) == (wanted, 0)


def test_another_process_with_another_captured_value_compiles_anew(folder: Path) -> None:
    assert answer(start(folder, 2)) == ("[1.0, 3.0, 5.0, 7.0]", 1)
    assert answer(start(folder, 3)) == ("[1.0, 4.0, 7.0, 10.0]", 1)
    assert answer(start(folder, 2)) == ("[1.0, 3.0, 5.0, 7.0]", 0)


def in_child(work: Any) -> int:
    """The exit code of a forked child: what `work` gives. A child that hangs is killed by its alarm."""
    import signal

    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(60)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_computes_or_says_that_it_cannot(place: str) -> None:
    large = np.ones(300_000, F)  # enough for several threads
    before = mj.kernel_from_text(f"{HEADER}def f(x: f32[N]) -> f32[N]:\n    return x[position()] + 13\n")
    after = mj.kernel_from_text(f"{HEADER}def f(x: f32[N]) -> f32[N]:\n    return x[position()] + 17\n")
    assert (before(large) == 14).all()

    def work() -> int:
        try:
            right = bool((before(large) == 14).all() and (after(large) == 18).all())
            return 0 if right and place != "stand-in" else 3
        except mj.DeviceFault as e:
            spawn = "spawn" in str(e)
            return 0 if place in ("stand-in", "metal") and e.slug == "metal-after-fork" and spawn else 4

    assert in_child(work) == 0
    assert (before(large) == 14).all()


def test_eight_threads_that_call_first_compile_once(
    place: str, request: pytest.FixtureRequest, compilations: list[str]
) -> None:
    texts = compiled(place, request, compilations)

    @mj.kernel
    def shared(x: f32[N], k: const[int]) -> f32[N]:
        return x[position()] + 19 * k

    ready = threading.Barrier(8)
    wrong: list[Any] = []

    def call(number: int) -> None:
        ready.wait()
        for _ in range(10):
            x = np.full(100 + number, number, F)
            try:
                if not (shared(x, 1) == number + 19).all():
                    wrong.append(number)
            except Exception as e:
                wrong.append(e)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert len(texts) == 1


def test_what_fails_fails_alike_each_time_and_not_elsewhere(place: str) -> None:
    kernel = mj.kernel_from_text(
        'S = dims("*S")\nT = dtypes("number")\n@kernel\ndef f(x: T[*S], c: const[int]) -> T[*S]:\n'
        '    static_assert(c > 0, "positive only")\n    return x[position()] & 1\n'
    )
    good, bad = np.array([1, 2, 3], np.int32), np.array([1.0, 2.0, 3.0], F)
    for _ in range(2):
        assert kernel(good, 1).tolist() == [1, 0, 1]
        messages = []
        for _ in range(2):
            with pytest.raises(mj.TypeFault) as caught:
                kernel(bad, 1)
            messages.append(str(caught.value))
            with pytest.raises(mj.TypeFault, match="positive only"):
                kernel(good, 0)
        assert messages[0] == messages[1]


def test_a_device_that_is_not_there_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = mj.kernel_from_text(f"{HEADER}def f(x: f32[N]) -> f32[N]:\n    return x[position()]\n")
    for name in ("nowhere", "CPU", "gpu", "", "Emulator", "cuda"):
        for _ in range(2):
            with pytest.raises(mj.DeviceFault) as caught:
                kernel.on(name)(np.zeros(1, F))
            assert caught.value.slug == "unknown-device"
            with pytest.raises(mj.DeviceFault):
                mj.use_device(name)
    monkeypatch.setenv("METALJIT_DEVICE", "nowhere")
    if not os.environ.get("METALJIT_INTERPRET"):
        with mj.use_device(None), pytest.raises(mj.DeviceFault, match="nowhere"):
            kernel(np.zeros(1, F))
