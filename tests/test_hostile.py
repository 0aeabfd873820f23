"""Hostile and mistaken input through the public interface: a documented result, or one clear error, in bounded time.

The parser's own share is in tests/grammar/test_hostile.py, the pitfalls of generated code are in tests/pitfalls/.
"""

from __future__ import annotations

import decimal
import enum
import fractions
import functools
import os
import signal
import threading
import types
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metaljit as mj
from metaljit.lang import const, f32, i32, position

F = np.float32
N = mj.dims("N")
BODY = 'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> f32[N]:\n'
GOOD = BODY + "    return x[position()] + 1\n"
X = np.array([1, 2, 3], F)
HANG_S = 60  # no deadline of anything: a test that takes this long hangs


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Nothing here runs for ever."""

    def stop(*_: object) -> None:
        raise TimeoutError("this takes for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def on_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    callspec = getattr(request.node, "callspec", None)
    with mj.use_device(callspec.params.get("device") if callspec else None):
        yield


def things(*values: Any) -> tuple[Any, ...]:
    """Values of any kind: what a call is given here is not what its types ask for."""
    return values


def refused(call: Callable[[], Any], *slugs: str) -> mj.MetaljitError:
    """The error of a call: one diagnostic, the same at the second call; its slug is one of these, if any are given."""
    texts = []
    for _ in range(2):
        with pytest.raises(mj.MetaljitError) as caught:
            call()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    found = caught.value
    assert len(found.diagnostics) == 1, texts[0]
    assert not isinstance(found, mj.InternalError), texts[0]
    if slugs:
        assert found.slug in slugs, texts[0]
    assert f"[{found.slug}]" in texts[0]
    return found


def placed(found: mj.MetaljitError, line: int | None = None) -> None:
    """The error shows the user's line."""
    diagnostic = found.diagnostics[0]
    assert diagnostic.span is not None or diagnostic.where, str(found)
    if line is not None:
        assert diagnostic.span is not None
        assert diagnostic.span.line == line, str(found)


def text_refused(text: str, *slugs: str) -> mj.MetaljitError:
    return refused(lambda: mj.kernel_from_text(text)(X), *slugs)


# ---- files ----


def file(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


FILES: dict[str, tuple[Any, ...]] = {
    "NUL": (GOOD + "\0", "bad-character"),
    "NUL in a name": (GOOD.replace("position", "posi\0tion"), "bad-character"),
    "NUL in a string": (GOOD.replace('"N"', '"N\0"'), "bad-character"),
    "escape sequences": (GOOD + "# \x1b[2J\x1b[31m", "bad-character"),
    "end of a DOS file": (GOOD + "\x1a", "bad-character"),
    "carriage returns alone": (GOOD.replace("\n", "\r"), "bad-character"),
    "letters that turn the line": (GOOD + "# \u202e", "bad-character"),
    "UTF-16": (GOOD.encode("utf-16"), "not-utf8"),
    "UTF-32": (GOOD.encode("utf-32"), "not-utf8"),
    "Latin-1": (("# é\n" + GOOD).encode("latin-1"), "not-utf8"),
    "half of a letter": (GOOD.encode() + "é".encode()[:1], "not-utf8"),
    "a surrogate": (GOOD.encode() + b"# \xed\xa0\x80", "not-utf8"),
    "overlong": (GOOD.encode() + b"# \xc0\xaf", "not-utf8"),
    "binary": (bytes(range(256)) * 10, "not-utf8"),
    "over a megabyte": (GOOD + "#" * (1 << 20), "file-too-large"),
    "many megabytes": (b"\n" * (30 << 20), "file-too-large"),
    "nested 10 000 deep": (BODY + "    return " + "(" * 10_000 + "1" + ")" * 10_000 + "\n", "nested-too-deep"),
    "1 000 blocks": (BODY + "".join("    " + " " * k + "if x[0] > 0:\n" for k in range(1_000)), "nested-too-deep"),
    "a call": ("print('x')\n" + GOOD, "top-level-statement"),
    "exec": ("exec('import os')\n" + GOOD, "top-level-statement"),
    "open": ("A = open('/etc/passwd')\n" + GOOD, "unknown-name"),
    "import as a call": ("A = __import__('os')\n" + GOOD, "unknown-name"),
    "the way to all classes": ("A = ().__class__.__bases__\n" + GOOD, "bad-constant", "unknown-name", "no-attribute"),
    "a number's class": ("A = (1).__class__\n" + GOOD, "bad-constant", "unknown-name", "no-attribute"),
    "a module's loader": ("import math\nA = math.__loader__\n" + GOOD, "bad-constant", "unknown-name"),
    "a module's dictionary": ("import math\nA = math.__dict__\n" + GOOD, "bad-constant", "unknown-name"),
    "a function that reads files": ("import numpy as np\nA = np.load('x.npy')\n" + GOOD, "bad-constant"),
    "a function that reads files, later": ("from numpy import load\nA = load\n" + GOOD, "bad-constant", "unknown-name"),
    "a module behind a module": ("import numpy as np\nA = np.lib.format.os.environ\n" + GOOD, "unknown-name", "bad-constant"),
    "a class": ("class A: pass\n" + GOOD, "no-class"),
    "a loop": ("while True:\n    pass\n" + GOOD, "top-level-statement"),
    "a tower of powers": ("A = 9 ** 9 ** 9\n" + GOOD, "literal-range"),
    "a far shift": ("A = 1 << 10 ** 12\n" + GOOD, "literal-range"),
    "a long tuple": ("A = (1, 2) * 10 ** 12\n" + GOOD, "bad-constant"),
    "a long string": ("A = 'a' * 10 ** 12\n" + GOOD, "bad-constant"),
    "a word of the language": ("if = 1\n" + GOOD, "keyword-as-name"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_malformed_files(tmp_path: Path, case: str) -> None:
    text, *slugs = FILES[case]
    path = file(tmp_path, "bad.mjk", text)
    found = refused(lambda: mj.load_kernels(path), *slugs)
    assert isinstance(found, mj.SyntaxFault)
    assert "bad.mjk" in str(found)
    if found.slug not in ("not-utf8", "file-too-large"):
        placed(found)


@pytest.mark.parametrize(
    "case",
    ["NUL", "escape sequences", "end of a DOS file", "carriage returns alone", "letters that turn the line"],
)
def test_no_control_character_of_a_file_reaches_the_terminal(tmp_path: Path, case: str) -> None:
    found = refused(lambda: mj.load_kernels(file(tmp_path, "bad.mjk", FILES[case][0])))
    assert not [c for c in str(found) if c != "\n" and not c.isprintable()]


def test_empty_files_and_harmless_marks(tmp_path: Path) -> None:
    for text in ("", "\n\n", "# nothing\n", '"""Doc."""', "\ufeff", " \t\n"):
        loaded = mj.load_kernels(file(tmp_path, "empty.mjk", text))
        assert list(loaded) == []
        with pytest.raises(AttributeError, match="defines no 'f'"):
            loaded.f  # noqa: B018
        refused(lambda text=text: mj.kernel_from_text(text), "no-kernel")  # type: ignore[misc]
    for text in (
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD + "\f",
        GOOD.rstrip("\n"),
        GOOD.replace("    ", "\t"),
    ):
        assert mj.load_kernels(file(tmp_path, "good.mjk", text)).f(X).tolist() == [2, 3, 4]


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.mjk").mkdir()
    (tmp_path / "dangling.mjk").symlink_to(tmp_path / "nowhere.mjk")
    for path in (
        tmp_path,
        tmp_path / "folder.mjk",
        tmp_path / "none.mjk",
        tmp_path / "dangling.mjk",
        tmp_path / ("a" * 5000),
    ):
        for _ in range(2):
            with pytest.raises(OSError, match=r"\[Errno"):
                mj.load_kernels(path)
    for thing in things(None, 3, GOOD, "a\0b.mjk", b"x.mjk"):
        with pytest.raises((OSError, TypeError, ValueError)):
            mj.load_kernels(thing)


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a.mjk").symlink_to(tmp_path / "b.mjk")
    (tmp_path / "b.mjk").symlink_to(tmp_path / "a.mjk")
    with pytest.raises(OSError, match=r"\[Errno|loop"):
        mj.load_kernels(tmp_path / "a.mjk")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless file")
def test_a_file_without_end(tmp_path: Path) -> None:
    (tmp_path / "endless.mjk").symlink_to("/dev/zero")
    refused(lambda: mj.load_kernels(tmp_path / "endless.mjk"), "file-too-large")


# ---- imports ----

IMPORTS = {
    "a Python module": "import os", "a part of one": "from sys import path", "the folder above": "from .. import good",
    "a file above": "from ..good import A", "two folders above": "from ...good import A", "a folder below": "from sub.inner import A",
    "a folder": "import sub", "a folder named as a file": "from folder import A", "a missing file": "from missing import A",
    "a missing name": "from good import missing", "no file of the library": "from stdlib.missing import x",
    "a missing name of the library": "from stdlib.random import missing", "below the library": "from stdlib.random.x import y",
    "the library's Python": "from stdlib.__init__ import x", "a file of the library's Python": "from stdlib.operands import x",
    "itself": "from top import f", "a circle": "from one import A", "a longer circle": "import three",
    "a link that leads out": "from outside import A", "a link into another folder": "from below import A",
    "a dangling link": "from dangling import A", "everything": "from good import *",
}  # fmt: skip


@pytest.mark.parametrize("case", IMPORTS)
def test_imports_reach_the_files_beside_and_nothing_else(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "here"
    (folder / "sub").mkdir(parents=True)
    (folder / "folder.mjk").mkdir()
    file(tmp_path, "evil.mjk", "A = 1\n")
    file(tmp_path, "good.mjk", "A = 1\n")
    file(folder / "sub", "inner.mjk", "A = 1\n")
    file(folder, "good.mjk", "A = 1\n")
    for name, text in (("one", "from two import A"), ("two", "from one import A"), ("three", "import four"), ("four", "import five"),
                       ("five", "import three")):  # fmt: skip
        file(folder, f"{name}.mjk", text + "\n")
    (folder / "outside.mjk").symlink_to(tmp_path / "evil.mjk")
    (folder / "below.mjk").symlink_to(folder / "sub" / "inner.mjk")
    (folder / "dangling.mjk").symlink_to(tmp_path / "nothing.mjk")
    top = file(folder, "top.mjk", f"\n{IMPORTS[case]}\n{GOOD}")
    found = refused(lambda: mj.load_kernels(top), "import-outside", "unknown-name", "no-import-star")
    if case in ("itself", "a circle", "a longer circle"):
        assert "imports itself" in str(found)
    assert isinstance(found, mj.SyntaxFault)
    if "circle" not in case:
        placed(found, 2)


def test_names_that_look_like_paths_are_no_imports(tmp_path: Path) -> None:
    for line in ("from /etc/passwd import x", "import /etc", 'import "evil"', "from ../evil import x", "from ~ import x", "import a\\b",
                 "from C:evil import x", "import evil.mjk/", "from .\0 import x"):  # fmt: skip
        path = file(tmp_path, "t.mjk", f"{line}\n{GOOD}")
        assert isinstance(refused(lambda path=path: mj.load_kernels(path)), mj.SyntaxFault)  # type: ignore[misc]


def test_a_text_has_no_files_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file(tmp_path, "good.mjk", "A = 1\n")
    monkeypatch.chdir(tmp_path)
    for line in ("from good import A", "import good", "from . import good", "from .good import A"):
        placed(refused(lambda line=line: mj.kernel_from_text(f"{line}\n{GOOD}"), "import-outside"), 1)  # type: ignore[misc]


def test_links_within_a_folder_are_files_of_it(tmp_path: Path) -> None:
    file(tmp_path, "good.mjk", "A = 5\n")
    (tmp_path / "link.mjk").symlink_to(tmp_path / "good.mjk")
    top = file(tmp_path, "top.mjk", "from link import A\n" + GOOD.replace("+ 1", "+ A"))
    assert mj.load_kernels(top).f(X).tolist() == [6, 7, 8]


def test_a_file_that_is_imported_by_many_is_loaded_once(tmp_path: Path) -> None:
    count = 30
    for k in range(count):
        text = f"from m{k + 1} import A\nimport m{k + 1}\n" if k < count - 1 else "A = 1\n"
        file(tmp_path, f"m{k}.mjk", text)
    top = file(tmp_path, "top.mjk", "from m0 import A\n" + GOOD.replace("+ 1", "+ A"))
    assert mj.load_kernels(top).f(X).tolist() == [2, 3, 4]


def test_a_chain_of_imports_is_followed_or_refused(tmp_path: Path) -> None:
    for k in range(600):
        file(tmp_path, f"m{k}.mjk", f"from m{k + 1} import A\n" if k < 599 else "A = 1\n")
    top = file(tmp_path, "top.mjk", "from m0 import A\n" + GOOD.replace("+ 1", "+ A"))
    try:
        assert mj.load_kernels(top).f(X).tolist() == [2, 3, 4]
    except mj.SyntaxFault:
        placed(refused(lambda: mj.load_kernels(top)))


def test_a_missing_name_of_a_host_module() -> None:
    for line in ("from numpy import nothing", "from math import system"):
        placed(refused(lambda line=line: mj.kernel_from_text(f"{line}\n{GOOD}"), "unknown-name"), 1)  # type: ignore[misc]


# ---- texts that grow ----


def calls(count: int, times: int) -> str:
    """Functions that call one another."""
    made = "def g0(v):\n    return v + 1\n"
    for k in range(1, count):
        made += f"def g{k}(v):\n    return {' + '.join([f'g{k - 1}(v)'] * times)}\n"
    return (
        f'N = dims("N")\n{made}@kernel\ndef f(x: f32[N]) -> f32[N]:\n    return g{count - 1}(x[position()])\n'
    )


def test_recursion_of_any_kind_is_refused() -> None:
    for functions in (
        "def g(v):\n    return g(v)\n",
        "def g(v):\n    return v if v < 2 else g(v - 1)\n",
        "def g(v):\n    return h(v)\ndef h(v):\n    return g(v)\n",
        "def g(v):\n    return h(v, g)\ndef h(v, k):\n    return k(v)\n",
        "def g(v):\n    return a(v)\ndef a(v):\n    return b(v)\ndef b(v):\n    return c(v)\ndef c(v):\n    return a(v)\n",
    ):
        found = text_refused(
            f'N = dims("N")\n{functions}@kernel\ndef f(x: f32[N]) -> f32[N]:\n    return g(x[0])\n',
            "recursion",
        )
        placed(found)
    text_refused(BODY + "    return f(x)\n", "kernel-in-kernel")


@pytest.mark.parametrize(
    ("text", "slugs"),
    [
        pytest.param(BODY + "    return x[0] * (9 ** 9 ** 9)\n", ("literal-range",), id="powers"),
        pytest.param(BODY + "    return x[0] * (1 << 10 ** 12)\n", ("literal-range",), id="shift"),
        pytest.param(BODY + "    return x[0] * (1 << -1)\n", ("bad-constant",), id="negative shift"),
        pytest.param(BODY + "    return x[0] * 10.0 ** 1000\n", ("bad-constant", "literal-range"), id="float power"),
        pytest.param(BODY + "    a = 10 ** 30\n" + "    a = a * a\n" * 40 + "    return x[0]\n", (), id="squares"),
        pytest.param(BODY + "    for o in offsets(30, 30):\n        pass\n    return x[0]\n", ("unroll-limit",), id="offsets"),
        pytest.param(BODY + "    for k in range(10 ** 12):\n        pass\n    return x[0]\n", ("literal-range",), id="range"),
        pytest.param(
            BODY + "    s = 0.0\n    for a in offsets(3, 4):\n        for b in offsets(3, 4):\n            for c in offsets(3, 4):\n"
            "                s += a[0] * b[1] * c[2] * x[0]\n    return s\n",
            ("unroll-limit",), id="unrolled loops",
        ),
        pytest.param(BODY + "    t = local_array(f32, 10 ** 30)\n    return x[0]\n", ("local-too-large",), id="local array"),
        pytest.param(BODY + "    t = (1, 2)\n" + "    t = (t, t)\n" * 40 + "    return x[0] + len(t)\n", (), id="pairs of pairs"),
        pytest.param(BODY + "    t = (1, 2)\n" + "    t = (*t, *t)\n" * 40 + "    return x[0] + len(t)\n", (), id="doubling"),
        pytest.param(calls(40, 1), (), id="calls of calls"),
        pytest.param(calls(40, 2), (), id="two calls of two calls"),
        pytest.param(calls(120, 1), (), id="a long way down"),
        pytest.param(calls(800, 1), ("calls-too-deep",), id="all the way down"),
        pytest.param(f"{BODY}    return {', '.join(['x[0]'] * 1000)}\n", ("result-count",), id="results"),
        pytest.param(BODY.replace("f32[N])", f"f32[{', '.join(['N'] * 70)}])") + "    return 0\n", ("wrong-rank",), id="axes"),
    ],
)  # fmt: skip
def test_texts_that_mean_too_much(text: str, slugs: tuple[str, ...]) -> None:
    """A small text that asks for a lot of work is refused, or does not need it."""
    if slugs:
        placed(text_refused(text, *slugs))
        return
    try:
        mj.kernel_from_text(text).program(X)
    except mj.MetaljitError:
        placed(text_refused(text))


def test_long_texts_that_mean_little() -> None:
    name = "a" * 50_000
    for text in (
        f"{BODY}    {name} = x[0]\n    return {name}\n",
        BODY + "    a = x[0]\n" + "    a = a + 1\n" * 500 + "    return a\n",
        BODY.replace("x: f32[N]", "x: f32[N], " + ", ".join(f"a{k}: f32 = 0" for k in range(500)))
        + "    return x[0]\n",
        BODY + f"    t = ({'1, ' * 2000})\n    return x[0] + t[position()]\n",
        BODY + f'    assert x[0] > 0, "{"m" * 50_000}"\n    return x[0]\n',
        f'{", ".join(f"d{k}" for k in range(1, 500))} = dims("{" ".join(f"d{k}" for k in range(1, 500))}")\n{GOOD}',
        "".join(GOOD.replace("def f", f"def kernel{k}") for k in range(200)),
    ):
        assert mj.kernel_from_text(text).program(X).msl.isascii()


# ---- names and strings that would break out ----

MESSAGES = [
    "*/ int x; /*", "//", "/*", '\\" );', "\\n#error\\n", "??/", "%s%n%d", "{0}{x}", "grüße λ \U0001f600", "\\\\", "'", "\\0", "\\x1b[31m", "\\u202e",
]  # fmt: skip


def test_messages_come_back_as_they_were_written(device: str) -> None:
    for message in MESSAGES:
        text = f'{BODY}    """{message}"""\n    assert x[0] < 0, "{message}"\n    return x[0]\n'
        found = refused(lambda text=text: mj.kernel_from_text(text)(X), "assertion-failed")  # type: ignore[misc]
        meant = eval(f'"{message}"')
        assert meant.replace("\n", "") in found.diagnostics[0].message.replace("\n", "")
    for message in MESSAGES:
        text = f'{BODY}    require(N > 5, "{message}")\n    return x[0]\n'
        found = refused(lambda text=text: mj.kernel_from_text(text)(X), "requirement")  # type: ignore[misc]
        assert eval(f'"{message}"').replace("\n", "") in found.diagnostics[0].message.replace("\n", "")


def test_constant_strings_stay_strings(device: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], s: const[str], t: const[tuple] = ()) -> f32[N]:\n'
        '    """*/ } kernel void g() { /*"""\n    return x[position()] + (1 if s == "a" else 2) + len(t)\n'
    )
    for value in things(
        "a",
        "*/",
        "\n",
        "\r\n",
        "\\\n",
        "\n#error x\n",
        '"',
        "'",
        "\\",
        "??/\n",
        "\0",
        "\x1b[2J",
        "\u2028",
        "é",
        "//",
        "a" * 100_000,
        "\ud800",
    ):
        assert kernel(X, value)[0] == (2 if value == "a" else 3)
        assert kernel(X, value, (value, (value, 1.5)))[0] == (4 if value == "a" else 5)
        program = kernel.program(X, value)
        assert all(
            line.isprintable() and line.isascii() for line in program.msl.replace("\t", "").splitlines()
        )
        assert len(program.msl.splitlines()) == len(kernel.program(X, "a").msl.splitlines())


NAMES = [
    "main",
    "kernel_",
    "half",
    "__x__",
    "ﬁ",
    "λ",
    "变量",
    "ª",
    "x_1",
    "_",
    "__",
    "status",
    "Ångström",
    "a" * 2000,
    "nan",
    "e",
    "pi",
    "NULL",
    "int",
    "float",
]


def test_names_of_every_kind(device: str) -> None:
    for name in NAMES:
        text = f'N = dims("N")\n@kernel\ndef {name}_(x: f32[N], {name}: f32) -> f32[N]:\n    y = x[position()] + {name}\n    {name} = y\n    return {name}\n'
        try:
            kernel = mj.kernel_from_text(text)
            assert kernel(X, 1).tolist() == [2, 3, 4]
            assert kernel.msl(X, 1).isascii()
        except mj.MetaljitError:
            placed(refused(lambda text=text: mj.kernel_from_text(text)(X, 1)))  # type: ignore[misc]
    for name in (
        "a b",
        "1a",
        "a-b",
        "a;b",
        'a"',
        "a*/",
        "a\\u0041",
        "\u200b",
        "a\u0301\u202e",
        "class",
        "None",
        "²",
        "𓀀!",
    ):
        text = f'N = dims("N")\n@kernel\ndef f(x: f32[N], {name}: f32) -> f32[N]:\n    return x[0]\n'
        refused(lambda text=text: mj.kernel_from_text(text)(X, 1))  # type: ignore[misc]


def test_names_that_python_takes_for_one_are_one() -> None:
    """Python reads `ﬁ` as `fi`."""
    text = 'N = dims("N")\n@kernel\ndef f(x: f32[N], \ufb01: f32) -> f32[N]:\n    return x[0] + fi\n'
    try:
        assert mj.kernel_from_text(text)(X, 1)[0] == 2
    except mj.MetaljitError:
        placed(text_refused(text))


# ---- arrays ----


class Duck:
    dtype, ndim, shape = np.dtype("f4"), 1, (3,)


class Converts:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.ones(3, F)


class Odd(np.ndarray):
    """A subclass for which indexing means something else."""

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("an array was indexed through its subclass")

    def __array_finalize__(self, other: Any) -> None:
        pass


@mj.kernel
def plus(x: f32[N], y: f32[N], s: f32 = 0, n: i32 = 0) -> f32[N]:
    i = position()
    return x[i] + y[i] + s + n


NO_ARRAYS: dict[str, Any] = {
    "list": [1.0, 2.0, 3.0], "tuple": (1.0,), "None": None, "str": "abc", "bytes": b"abc", "number": 3.0, "dict": {}, "set": {1},
    "memoryview": memoryview(b"abcd"), "array.array": array("f", [1, 2, 3]), "generator": (i for i in range(3)), "function": len,
    "an object with a dtype": Duck(), "an object that converts": Converts(), "kernel": plus, "a long list": [0] * 10**6,
    "masked": np.ma.array(X, mask=[False, True, False]), "masked without a mask": np.ma.array(X), "ellipsis": ..., "slice": slice(None),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_ARRAYS)
def test_what_is_no_array_is_refused_by_parameter(device: str, case: str) -> None:
    value = NO_ARRAYS[case]
    found = refused(lambda: plus(X, value), "not-an-array")
    assert isinstance(found, mj.LaunchFault)
    assert "y" in str(found)
    placed(found)


def test_a_class_is_no_array() -> None:
    for value in things(np.float32, np.ndarray, type("D", (), {"dtype": "f4", "ndim": 1})()):
        refused(lambda value=value: plus(X, value), "not-an-array")  # type: ignore[misc]


DTYPES: dict[str, Any] = {
    "float64": X.astype("f8"), "longdouble": X.astype("g"), "complex": X.astype("c8"), "object": X.astype(object), "str": X.astype("U"),
    "bytes": X.astype("S"), "void": np.zeros(3, "V4"), "structured": np.zeros(3, "f4,i4"), "datetime": np.zeros(3, "M8[s]"),
    "timedelta": np.zeros(3, "m8[s]"), "other byte order": X.astype(X.dtype.newbyteorder()), "int32": X.astype("i4"), "bool": X > 1,
    "float16": X.astype("f2"), "bfloat16": X.astype(ml_dtypes.bfloat16), "float8": X.astype(ml_dtypes.float8_e4m3fn),
    "int4": X.astype(ml_dtypes.int4), "empty float64": np.zeros(0), "records": np.zeros(3, "f4,f4").view(np.recarray),
}  # fmt: skip


@pytest.mark.parametrize("case", DTYPES)
def test_arrays_of_another_dtype_are_refused_with_a_way_out(device: str, case: str) -> None:
    value = DTYPES[case]
    before = value.copy()
    for call in (lambda: plus(X, value), lambda: plus(value, X), lambda: plus(y=value, x=X)):
        found = refused(call, "no-f64", "wrong-dtype", "array-dtype")
        assert found.diagnostics[0].help
        placed(found)
    assert value.tobytes() == before.tobytes()


def test_subclasses_of_arrays_are_arrays(device: str) -> None:
    meta = X.astype(np.dtype("f4", metadata={"unit": "m"}))
    for value in things(X.view(Odd), np.rec.array(X), meta, X.view(type("Plain", (np.ndarray,), {}))):
        found = plus(value, X)
        assert type(found) is np.ndarray
        assert found.tolist() == [2, 4, 6]
    matrix = mj.kernel_from_text(
        'H, W = dims("H W")\n@kernel\ndef f(x: f32[H, W]) -> f32[H, W]:\n    y, i = position()\n    return x[y, i] * 2\n'
    )
    with pytest.warns(PendingDeprecationWarning):
        square = np.matrix([[1, 2], [3, 4]], dtype=F)
    assert matrix(square).tolist() == [[2, 4], [6, 8]]
    refused(lambda: plus(square, square), "wrong-rank")


@pytest.mark.parametrize(
    ("x", "y", "slug"),
    [
        (np.ones(3, F), np.ones(4, F), "extent-mismatch"), (np.ones(0, F), np.ones(1, F), "extent-mismatch"),
        (np.ones(1, F), np.ones(3, F), "extent-mismatch"), (np.ones((3, 1), F), np.ones(3, F), "wrong-rank"),
        (np.ones(3, F), np.ones((1, 3), F), "wrong-rank"), (np.ones((), F), np.ones((), F), "wrong-rank"),
        (np.ones((1,) * 40, F), np.ones(1, F), "wrong-rank"), (F(1), F(1), "wrong-rank"),
    ],
)  # fmt: skip
def test_shapes_and_ranks_that_do_not_fit(device: str, x: Any, y: Any, slug: str) -> None:
    found = refused(lambda: plus(x, y), slug)
    placed(found)
    assert plus(X, X).tolist() == [2, 4, 6]


def test_read_only_arguments_are_read(device: str) -> None:
    x = X.copy()
    x.flags.writeable = False
    frozen = np.frombuffer(b"\0\0\x80?" * 3, F)
    assert plus(x, frozen).tolist() == [2, 3, 4]
    changed = mj.kernel_from_text(
        'N = dims("N")\n@kernel(grid=1, threadgroup=32)\ndef f(x: InOut[f32[N]]):\n    x[global_index()] = 7\n'
    )
    assert changed(x).tolist() == [7, 7, 7]
    assert x.tolist() == [1, 2, 3]
    refused(lambda: changed(x, out=x), "out-unfit")
    assert x.tolist() == [1, 2, 3]


def outs() -> dict[str, tuple[Any, str]]:
    frozen = np.zeros(3, F)
    frozen.flags.writeable = False
    return {
        "a number": (3, "out-unfit"), "a list": ([0, 0, 0], "out-unfit"), "a string": ("abc", "out-unfit"), "a type": (F, "out-unfit"),
        "a tuple of one": ((np.zeros(3, F),), "out-unfit"), "a tuple of two": ((np.zeros(3, F),) * 2, "out-unfit"),
        "an empty tuple": ((), "out-unfit"), "float64": (np.zeros(3), "out-unfit"), "int32": (np.zeros(3, np.int32), "out-unfit"),
        "too short": (np.zeros(2, F), "out-unfit"), "too long": (np.zeros(4, F), "out-unfit"), "another rank": (np.zeros((3, 1), F), "out-unfit"),
        "no axes": (np.zeros((), F), "out-unfit"), "read-only": (frozen, "out-unfit"), "other byte order": (np.zeros(3, ">f4"), "out-unfit"),
        "broadcast": (np.broadcast_to(F(0), (3,)), "out-unfit"), "a NumPy number": (F(0), "out-unfit"),
        "an object that converts": (Converts(), "out-unfit"), "an object with a dtype": (Duck(), "out-unfit"), "the argument": (X, "out-overlaps"),
    }  # fmt: skip


@pytest.mark.parametrize("case", outs())
def test_storage_that_does_not_fit(device: str, case: str) -> None:
    out, slug = outs()[case]
    found = refused(lambda: plus(X, X, out=out), slug)
    assert isinstance(found, mj.LaunchFault)
    assert "out" in str(found)
    placed(found)
    assert X.tolist() == [1, 2, 3]
    if isinstance(out, np.ndarray) and out is not X:
        assert not np.asarray(out, object).any()


def test_storage_that_overlaps_itself_is_refused(device: str) -> None:
    store = np.zeros(9, F)
    for strides in ((0,), (2,), (-1,)):
        out = np.lib.stride_tricks.as_strided(store[4:], (3,), strides)
        refused(lambda out=out: plus(X, X, out=out), "out-overlaps")  # type: ignore[misc]
    doubled = mj.kernel_from_text(
        'S = dims("*S")\n@kernel\ndef f(x: f32[*S]) -> f32[*S]:\n    return x[position()] * 2\n'
    )
    for shape, strides in things(
        ((2, 3), (4, 4)), ((3, 3), (8, 4)), ((2, 2), (4, 0)), ((2, 2, 2), (16, 8, 8))
    ):
        out = np.lib.stride_tricks.as_strided(store, shape, strides)
        refused(lambda out=out: doubled(np.ones(out.shape, F), out=out), "out-overlaps")  # type: ignore[misc]
    assert not store.any()
    whole = np.zeros((6, 8, 4), F)
    for out in (whole[::2, 1::3], whole[::-1, ::2, 1], whole.T, whole.T[:, 2:5], whole[:1, :, ::-3], np.moveaxis(whole, 1, 0)[3:, ::5],
                whole.reshape(8, 24)[1:, ::5], whole[2:3, 2:3, 2:3], whole[:0], np.lib.stride_tricks.as_strided(store, (3, 1), (8, 0)),
                np.lib.stride_tricks.as_strided(store, (3,), (12,))):  # fmt: skip
        assert doubled(np.ones(out.shape, F), out=out) is out
        assert (out == 2).all()


def test_masked_storage_is_refused(device: str) -> None:
    refused(lambda: plus(X, X, out=np.ma.array(np.zeros(3, F), mask=[True, False, False])), "out-unfit")


def test_storage_of_subclasses(device: str) -> None:
    out = np.zeros(3, F).view(Odd)
    assert plus(X, X, out=out) is out
    assert np.asarray(out).tolist() == [2, 4, 6]


# ---- numbers ----


class Level(enum.IntEnum):
    THREE = 3


class Real(np.float32):
    pass


class Sly(float):
    """A number that cannot be compared."""

    def __le__(self, other: Any) -> bool:
        raise AssertionError("compared")

    __ge__ = __lt__ = __gt__ = __le__


NUMBERS: dict[str, tuple[Any, Any]] = {
    "int": (2, 2), "bool": (True, 1), "float16": (np.float16(2), 2), "float64": (np.float64(2), 2), "longdouble": (np.longdouble(2), 2),
    "int8": (np.int8(-2), -2), "uint64": (np.uint64(2), 2), "bool_": (np.True_, 1), "0-d array": (np.array(2.5), 2.5), "enum": (Level.THREE, 3),
    "subclass": (Real(2), 2), "incomparable": (Sly(2), 2), "bfloat16": (ml_dtypes.bfloat16(2), 2), "infinity": (np.inf, np.inf),
    "large": (10**38, F(1e38)), "tiny": (1e-300, 0),
}  # fmt: skip


def test_numbers_of_every_kind(device: str) -> None:
    for name, (value, meant) in NUMBERS.items():
        assert plus(X, X, value)[0] == 2 + F(meant), name
    assert np.isnan(plus(X, X, np.nan)).all()


NO_NUMBERS: dict[str, tuple[Any, str]] = {
    "str": ("1", "not-a-number"), "None": (None, "not-a-number"), "list": ([1], "not-a-number"), "array of one": (np.ones(1, F), "not-a-number"),
    "array": (X, "not-a-number"), "complex": (1j, "not-a-number"), "complex64": (np.complex64(1), "not-a-number"), "object": (object(), "not-a-number"),
    "Decimal": (decimal.Decimal(1), "not-a-number"), "Fraction": (fractions.Fraction(1, 2), "not-a-number"), "bytes": (b"1", "not-a-number"),
    "datetime": (np.datetime64(1, "s"), "not-a-number"), "type": (float, "not-a-number"), "kernel": (plus, "not-a-number"),
    "too large": (1e300, "number-does-not-fit"), "a large int": (10**400, "number-does-not-fit"), "a huge int": (10**5000, "number-does-not-fit"),
    "a large double": (np.float64(1e39), "number-does-not-fit"), "a large longdouble": (np.longdouble(1e300), "number-does-not-fit"),
    "0-d of objects": (np.array(None), "not-a-number"), "a masked number": (np.ma.masked, "not-a-number"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_what_is_no_number_for_a_float_is_refused(device: str, case: str) -> None:
    value, slug = NO_NUMBERS[case]
    found = refused(lambda: plus(X, X, value), slug)
    assert "`s`" in str(found)
    placed(found)


def test_numbers_that_an_integer_does_not_hold(device: str) -> None:
    for value in things(
        np.nan,
        np.inf,
        -np.inf,
        0.5,
        2**31,
        -(2**31) - 1,
        2**63,
        -(10**5000),
        1e10,
        np.uint32(2**31),
        np.float32(1.5),
        np.int64(-(2**40)),
    ):
        found = refused(lambda value=value: plus(X, X, 0, value), "number-does-not-fit")  # type: ignore[misc]
        assert "`n`" in str(found)
        assert "-2147483648" in found.diagnostics[0].help
    for value in things(-(2**31), 2**31 - 1, 3.0, np.float16(3), np.uint64(7), -0.0, True):
        assert plus(np.zeros(1, F), np.zeros(1, F), 0, value)[0] == F(value)


LIMITS = {
    "u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767), "u32": (0, 2**32 - 1), "i64": (-(2**63), 2**63 - 1),
    "u64": (0, 2**64 - 1), "bool": (0, 1), "f16": (-65504, 65504),
}  # fmt: skip


def test_every_type_has_its_limits(device: str) -> None:
    parameters = ", ".join(f"{n}_: {n} = 0" for n in LIMITS)
    results = ", ".join(f"{n}[N]" for n in LIMITS)
    kernel = mj.kernel_from_text(
        f'N = dims("N")\n@kernel\ndef f(x: f32[N], {parameters}) -> ({results}):\n    return {", ".join(f"{n}_" for n in LIMITS)}\n'
    )
    for k, (name, (least, most)) in enumerate(LIMITS.items()):
        for value in things(least, most):
            assert kernel(X, **{f"{name}_": value})[k][0] == value
        for value in things(least - 1, most + 1) if name != "f16" else (-65520, 65520, 1e6):
            refused(lambda name=name, value=value: kernel(X, **{f"{name}_": value}), "number-does-not-fit")  # type: ignore[misc]


def test_vectors_take_their_number_of_numbers(device: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], v: f32x3, w: i8x2 = (0, 0)) -> f32[N]:\n    return v.x + v.y * 10 + v.z * 100 + w.x + w.y\n'
    )
    for value in things(
        (1, 2, 3),
        [1, 2, 3],
        np.array([1, 2, 3]),
        X,
        np.array([1, 2, 3], np.int8),
        (np.int8(1), 2.0, np.array(3)),
    ):
        assert kernel(X, value)[0] == 321
    for value in things(
        (1, 2),
        (1, 2, 3, 4),
        (),
        1,
        None,
        "abc",
        ((1, 2, 3),),
        np.ones((1, 3), F),
        np.ones((3, 1), F),
        {1, 2, 3},
        (i for i in range(3)),
    ):
        refused(lambda value=value: kernel(X, value), "not-a-vector", "not-a-number")  # type: ignore[misc]
    for value in things((1, 2, "3"), (1, None, 3), (1, (2,), 3), (1e300, 0, 0)):
        placed(refused(lambda value=value: kernel(X, value), "not-a-number", "number-does-not-fit"))  # type: ignore[misc]
    refused(lambda: kernel(X, X, (127, 128)), "number-does-not-fit")


# ---- constants ----


@mj.kernel
def sized(
    x: f32[N],
    c: const[tuple] = (),
    k: const[int] = 0,
    b: const[bool] = False,
    s: const[str] = "",
    q: const[float] = 0.0,
) -> f32[N]:
    return x[position()] + len(c) + k + q + (1 if b else 0) + (1 if s == "a" else 0)


CONSTANTS = [
    ("c", [1, 2]), ("c", {}), ("c", X), ("c", {1}), ("c", None), ("c", 3), ("c", "ab"), ("c", range(3)), ("c", ...), ("k", 1.5), ("k", 1.0), ("k", "1"),
    ("k", True), ("k", None), ("k", np.array(3)), ("k", (1,)), ("k", object()), ("b", 1), ("b", "x"), ("b", None), ("s", 1), ("s", b"a"), ("s", ("a",)),
    ("s", None), ("q", "1"), ("q", None), ("q", 1j), ("q", X), ("c", (1, [2])), ("c", (object(),)), ("c", (1j,)), ("c", (X,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CONSTANTS, ids=lambda v: repr(v)[:20])
def test_constants_of_another_kind_are_refused(name: str, value: Any) -> None:
    found = refused(lambda: sized(X, **{name: value}), "wrong-const", "not-capturable")
    assert repr(name) in str(found)
    placed(found)
    assert "Foreign" not in str(found) or name == "c"


def test_constants_of_the_right_kind(device: str) -> None:
    for named, meant in (({"c": (1, 2)}, 2), ({"c": tuple(range(3000))}, 3000), ({"k": np.int8(3)}, 3), ({"k": Level.THREE}, 3), ({"b": True}, 1),
                         ({"s": "a"}, 1), ({"q": 2}, 2), ({"q": 0.5}, 0.5), ({"c": ((1, (2,)), "x")}, 2), ({"c": (np.nan, -0.0)}, 2),
                         ({"k": 2**40}, F(2**40))):  # fmt: skip
        assert sized(np.zeros(1, F), **named)[0] == meant, named


def test_constants_too_long_to_be_written() -> None:
    for named in ({"k": 10**5000}, {"c": (10**5000,)}):
        refused(lambda named=named: sized(X, **named))  # type: ignore[misc]


# ---- the arguments of a call ----


def test_calls_with_the_wrong_number_of_arguments(device: str) -> None:
    for call in (
        lambda: plus(), lambda: plus(X), lambda: plus(X, X, 1, 2, 3), lambda: plus(*[X] * 50), lambda: plus(X, X, x=X), lambda: plus(X, y=X, z=X),
        lambda: plus(X, X, **{"not a name": 1}), lambda: plus(y=X), lambda: plus(X, X, Out=X), lambda: plus(X, X, **{"": 1}),
    ):  # fmt: skip
        found = refused(call, "argument-count")
        assert "plus" in str(found)
        placed(found)
    keyword = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N], *, s: f32 = 1) -> f32[N]:\n    return x[position()] * s\n'
    )
    assert keyword(X, s=2).tolist() == [2, 4, 6]
    refused(lambda: keyword(X, 2), "argument-count")


# ---- functions that are no kernels ----


def decorated() -> dict[str, Callable[[], Any]]:
    """What makes a kernel, and calls it."""

    def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def inner(*args: Any) -> Any:
            return f(*args)

        return inner

    def asynchronous() -> Any:
        @mj.kernel
        async def k(x: f32[N]) -> f32[N]:
            return x[position()]

        return k

    def generator() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            yield x[position()]

        return k

    def star() -> Any:
        @mj.kernel
        def k(*x: f32[N]) -> f32[N]:
            return x[0]

        return k

    def keywords() -> Any:
        @mj.kernel
        def k(x: f32[N], **o: f32) -> f32[N]:
            return x[position()]

        return k

    def positional() -> Any:
        @mj.kernel
        def k(x: f32[N], /) -> f32[N]:
            return x[position()]

        return k

    def unannotated() -> Any:
        @mj.kernel
        def k(x) -> f32[N]:  # type: ignore[no-untyped-def]
            return x[position()]

        return k

    def resultless() -> Any:
        @mj.kernel
        def k(x: f32[N]):  # type: ignore[no-untyped-def]
            return x[position()]

        return k

    def returnless() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            y = x[position()]  # noqa: F841

        return k

    def method() -> Any:
        class Holder:
            @mj.kernel
            def k(self, x: f32[N]) -> f32[N]:
                return x[position()]

        return Holder().k

    def nested() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            def g(v: Any) -> Any:
                return v

            return g(x[position()])

        return k

    def anonymous() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return (lambda v: v)(x[position()])

        return k

    def importing() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            import os  # noqa: F401

            return x[position()]

        return k

    def guarded() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            try:
                return x[position()]
            finally:
                pass

        return k

    def managed() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            with x as y:
                return y[0]

        return k

    def walrus() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return (y := x[position()])  # noqa: F841

        return k

    def formatted() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            assert x[0] > 2, f"{x}"
            return x[0]

        return k

    def listed() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return sum([x[k] for k in range(3)])

        return k

    def sliced() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return x[1:2][0]

        return k

    def printing() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            print("x", x[0])
            return x[0]

        return k

    def writing() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            x[0] = 3
            return x[0]

        return k

    def defaulted() -> Any:
        @mj.kernel
        def k(x: f32[N] = None) -> f32[N]:
            return x[0]

        return k

    def kernel_in_kernel() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return plus(x, x)

        return k

    def python_in_kernel() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return wrap(x[0])

        return k

    def recursive() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return k(x)

        return k

    def reserved() -> Any:
        @mj.kernel
        def k(out: f32[N]) -> f32[N]:
            return out[0]

        return k

    def optioned() -> Any:
        @mj.kernel(math="quick")
        def k(x: f32[N]) -> f32[N]:
            return x[0]

        return k

    def limited() -> Any:
        @mj.kernel(loop_limit=-5)
        def k(x: f32[N]) -> f32[N]:
            return x[0]

        return k

    def deleting() -> Any:
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            y = x[0]
            del y
            return x[0]

        return k

    return {n: f for n, f in locals().items() if n != "wrap"}


@pytest.mark.parametrize("case", decorated())
def test_functions_that_are_no_kernels(case: str) -> None:
    kernel = decorated()[case]()
    found = refused(lambda: kernel(X))
    placed(found)
    assert Path(__file__).name in str(found)


def test_what_cannot_be_decorated() -> None:
    for decorate in (mj.kernel, mj.function):
        refused(lambda decorate=decorate: decorate(lambda x: x), "lambda")  # type: ignore[misc]


def test_what_is_no_function_cannot_be_decorated() -> None:
    for thing in things(plus, type("T", (), {}), len, functools.partial(len), 3, "text"):
        refused(lambda thing=thing: mj.kernel(thing))  # type: ignore[misc]


def test_another_decorator_below_is_named() -> None:
    def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def inner(*args: Any) -> Any:
            return f(*args)

        return inner

    @mj.kernel
    @wrap
    def k(x: f32[N]) -> f32[N]:
        return x[position()]

    found = refused(lambda: k(X))
    placed(found)
    assert "decorat" in str(found)


def test_decorators_around_a_kernel_see_a_kernel(device: str) -> None:
    class Holder:
        @staticmethod
        @mj.kernel
        def k(x: f32[N]) -> f32[N]:
            return x[position()] + 1

    assert Holder.k(X).tolist() == [2, 3, 4]
    assert Holder().k(X).tolist() == [2, 3, 4]
    assert functools.partial(plus, X)(X).tolist() == [2, 4, 6]


def test_a_device_function_called_by_python() -> None:
    @mj.function
    def g(v):  # type: ignore[no-untyped-def]
        return v

    refused(lambda: g(1), "outside-kernel")
    refused(lambda: position(), "outside-kernel")


# ---- captured values ----


class Unequal:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")

    __hash__ = None  # type: ignore[assignment]


class Silent:
    def __repr__(self) -> str:
        raise AssertionError("shown")


UNCAPTURED: dict[str, Any] = {
    "array": X, "0-d array": np.array(3.0), "list": [1], "dict": {1: 2}, "set": {1}, "bytes": b"a", "object": object(), "type": Unequal,
    "function": len, "a lambda": lambda v: v, "a Python function": outs, "complex": 1j, "complex64": np.complex64(1), "Decimal": decimal.Decimal(1),
    "generator": (i for i in range(3)), "range": range(3), "ellipsis": ..., "namespace": types.SimpleNamespace(a=1), "incomparable": Unequal(),
    "unshown": Silent(), "a tuple with a list": (1, [2]), "None": None, "str": "a", "module": os, "longdouble": np.longdouble(1),
    "datetime": np.datetime64(1, "s"), "dtype": np.dtype("f4"), "type of numbers": np.float32, "tuple": (1, 2), "a tuple of tuples": ((1,), (2,)),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCAPTURED)
def test_captured_values_that_are_no_numbers(case: str) -> None:
    value = UNCAPTURED[case]

    @mj.kernel
    def captures(x: f32[N]) -> f32[N]:
        return x[position()] + value

    found = refused(lambda: captures(X))
    assert isinstance(found, mj.TypeFault)
    placed(found)
    assert Path(__file__).name in str(found)
    assert X.tolist() == [1, 2, 3]


def test_captured_arrays_are_refused_with_a_way_out() -> None:
    for value in things(X, np.zeros((2, 2)), mj.asarray(X)):

        @mj.kernel
        def captures(x: f32[N]) -> f32[N]:
            return x[position()] + value[0]  # noqa: B023

        found = refused(lambda captures=captures: captures(X), "not-capturable")  # type: ignore[misc]
        assert "value" in str(found)
        assert found.diagnostics[0].help


def test_captured_numbers_of_every_kind_and_changes_between_calls(device: str) -> None:
    value: Any = 0

    @mj.kernel
    def captures(x: f32[N]) -> f32[N]:
        return x[position()] + value

    zeros = np.zeros(1, F)
    for now in things(
        1,
        1.0,
        True,
        -0.0,
        2**70,
        10**30,
        np.float64(0.1),
        np.int8(-3),
        np.float16(2),
        np.uint64(2**63),
        Level.THREE,
        np.inf,
        1e-300,
    ):
        value = now
        assert captures(zeros)[0] == F(now), now
    value = np.nan
    assert np.isnan(captures(zeros)[0])
    for now in things([1], X, {}, "a"):
        value = now
        refused(lambda: captures(zeros))
        value = 5
        assert captures(zeros)[0] == 5
    value = 10**50
    try:
        assert captures(zeros)[0] == np.inf
    except mj.TypeFault:
        placed(refused(lambda: captures(zeros), "literal-range"))


def test_captured_none_is_a_value_like_others(device: str) -> None:
    value: Any = 5

    @mj.kernel
    def captures(x: f32[N]) -> f32[N]:
        return x[position()] + value

    zeros = np.zeros(1, F)
    for _ in range(2):
        for now in things(5, 6):
            value = now
            assert captures(zeros)[0] == now
        value = None
        refused(lambda: captures(zeros))


def test_constants_divided_by_zero_are_what_values_divided_by_zero_are(device: str) -> None:
    kernel = mj.kernel_from_text(
        'N = dims("N")\n@kernel\ndef f(x: f32[N]) -> (f32[N], f32[N], f32[N], f32[N], f32[N], f32[N]):\n    v = x[position()]\n'
        "    return v * 0 + 1.0 // 0, v // 0, v * 0 + 1.0 % 0, v % 0, v * 0 + 1.0 / 0, v / 0\n"
    )
    results = [r[0] for r in kernel(np.ones(1, F))]
    np.testing.assert_array_equal(results[::2], results[1::2])


def test_captured_objects_that_fail_when_they_are_looked_at() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"asked for {name}")

    for value in things(Lazy(), 10**5000):

        @mj.kernel
        def captures(x: f32[N]) -> f32[N]:
            return x[position()] + value  # noqa: B023

        refused(lambda captures=captures: captures(X))  # type: ignore[misc]


def test_unbound_names_are_found_when_they_are_there(device: str) -> None:
    def make() -> Any:
        @mj.kernel
        def captures(x: f32[N]) -> f32[N]:
            return x[position()] + later

        refused(lambda: captures(X), "unknown-name")
        later = 4
        return captures

    assert make()(X).tolist() == [5, 6, 7]


def test_two_threads_that_fail_and_one_that_works(device: str) -> None:
    bad = mj.kernel_from_text(BODY + "    return x[position()] + missing\n")
    good = mj.kernel_from_text(GOOD)
    seen: list[str] = []

    def call(kernel: mj.Kernel) -> None:
        try:
            seen.append(str(kernel(X).tolist()))
        except mj.MetaljitError as e:
            seen.append(e.slug)

    threads = [threading.Thread(target=call, args=(k,)) for k in (bad, good, bad)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == ["[2.0, 3.0, 4.0]", "unknown-name", "unknown-name"]
