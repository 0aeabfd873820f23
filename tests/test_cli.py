"""`metaljit run`: what goes in, what comes out, and how it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from metaljit.cli import cli

KERNELS = """
H, W = dims("H W")
N = dims("N")
S = dims("*S")
T = dtypes("f16 bf16 f32 u8")

@kernel
def double(u: f32[H, W], k: f32 = 2.0) -> f32[H, W]:
    y, x = position()
    return u[y, x] * k

@kernel
def same(u: T[*S]) -> T[*S]:
    return u[position()]

@kernel
def both(x: f32[N], v: f32x2, n: i32 = 3, flip: bool = False, at: const[tuple] = (0, 1)) -> tuple[f32[N], i32[N]]:
    i = position()
    return (-v.x if flip else v.x) * x[i] + v.y, n + at[1]

@kernel(grid="ceil_div(N, 64)", threadgroup=64)
def count(x: u8[N], counts: InOut[u32[256]], most: Out[i32[1]]):
    i = global_index()
    if i < N:
        atomic_add(counts, x[i], 1)
        atomic_max(most, 0, i32(x[i]))

@kernel
def checked(x: f32[N]) -> f32[N]:
    i = position()
    assert x[i] >= 0, "no negative numbers"
    return x[i]

@kernel
def words(x: f32[N], mode: const[str], radius: const[int] = 1, on: const[bool] = True) -> f32[N]:
    x = border(x, mode)
    i = position()
    return x[i - radius] if on else x[i]

def helper(x):
    return x
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.mjk"
    path.write_text(KERNELS)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["run", *map(str, arguments)])


def done(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(status: int, *arguments: str | Path) -> str:
    """The error, in one line."""
    result = run(*arguments)
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


# ---- arrays ----


def test_npy_in_and_out(file: Path, tmp_path: Path) -> None:
    u = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.save(tmp_path / "u.npy", u)
    out = done(f"{file}:double", "--in", f"u={tmp_path}/u.npy", "--out", tmp_path / "d.npy", "--arg", "k=3")
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), u * 3)
    assert re.search(r"double on \w+\n  out: f32\[3, 4\] -> ", out)


def test_npz_takes_all_results_and_gives_one_by_name(file: Path, tmp_path: Path) -> None:
    x = np.arange(5, dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x, other=x * 2)
    out = tmp_path / "all.npz"
    done(f"{file}:both", "--in", f"x={tmp_path}/in.npz", "--arg", "v=2,1", "--out", out)
    with np.load(out, allow_pickle=False) as found:
        np.testing.assert_array_equal(found["out0"], x * 2 + 1)
        np.testing.assert_array_equal(found["out1"], np.full(5, 4, np.int32))
    done(
        f"{file}:both",
        "--in",
        f"x={tmp_path}/in.npz:other",
        "--arg",
        "v=(1, 0)",
        "--out",
        f"out0={tmp_path}/o.npy",
    )
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), x * 2)


def test_results_by_name_each_to_its_files(file: Path, tmp_path: Path) -> None:
    ins = [
        "--in",
        "x=arange:f32[4]",
        "--arg",
        "v=1,0",
        "--arg",
        "flip=yes",
        "--arg",
        "n=0x10",
        "--arg",
        "at=(5, 6)",
    ]
    outs = [f"out1={tmp_path}/i.npy", f"out0={tmp_path}/f.npy", f"out0={tmp_path}/f.npz"]
    done(f"{file}:both", *ins, *(a for o in outs for a in ("--out", o)))
    np.testing.assert_array_equal(np.load(tmp_path / "i.npy"), np.full(4, 22, np.int32))
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), [0, -1, -2, -3])
    assert np.load(tmp_path / "f.npz").files == ["out0"]


def test_results_of_a_grid_kernel_have_its_names(file: Path, tmp_path: Path) -> None:
    x = np.array([1, 1, 7], np.uint8)
    np.save(tmp_path / "x.npy", x)
    ins = ["--in", f"x={tmp_path}/x.npy", "--in", "counts=ones:u32[256]"]
    out = done(f"{file}:count", *ins, "--out", f"counts={tmp_path}/c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.bincount(x, minlength=256) + 1)
    assert "most: i32[1] = [7]" in out


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("zeros:f32[2,3]", np.zeros((2, 3), np.float32)),
        ("ones:u8[4]", np.ones(4, np.uint8)),
        ("arange:f16[2, 2]", np.arange(4, dtype=np.float16).reshape(2, 2)),
        ("arange:u8[300]", (np.arange(300) % 256).astype(np.uint8)),
        ("arange:f32[]", np.zeros((), np.float32)),
        ("ones:f32[0,5]", np.ones((0, 5), np.float32)),
        ("ones:f32x3[2]", np.ones((2, 3), np.float32)),
    ],
)
def test_made_arrays(file: Path, tmp_path: Path, spec: str, expected: Any) -> None:
    done(f"{file}:same", "--in", f"u={spec}", "--out", tmp_path / "o.npy")
    found = np.load(tmp_path / "o.npy")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("f16", 0, 1), ("f32", 0, 1), ("bf16", 0, 1), ("u8", 0, 256)]
)
def test_random_arrays_follow_the_seed(file: Path, tmp_path: Path, dtype: str, least: int, most: int) -> None:
    def made(*seed: str) -> Any:
        done(f"{file}:same", "--in", f"u=random:{dtype}[2000]", "--out", tmp_path / "o.npy", *seed)
        return np.load(tmp_path / "o.npy")

    first, again, other = made(), made("--seed", "0"), made("--seed", "1")
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.min() >= least
    assert first.max() < most
    assert 0.4 * most < first.mean() < 0.6 * most
    assert dtype != "u8" or first.max() == 255


def test_float64_and_other_byte_orders(file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.linspace(0, 1, 6).reshape(2, 3))
    np.save(tmp_path / "big.npy", np.linspace(0, 1, 6).reshape(2, 3).astype(">f4"))
    expected = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    for value in ("f32:{}/wide.npy", "{}/big.npy"):
        done(f"{file}:same", "--in", "u=" + value.format(tmp_path), "--out", tmp_path / "o.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), expected)
    message = refused(1, f"{file}:same", "--in", f"u={tmp_path}/wide.npy")
    assert "no-f64" in message or "float64" in message


def test_bf16_is_stored_as_f32_and_read_back(file: Path, tmp_path: Path) -> None:
    out = done(f"{file}:same", "--in", "u=random:bf16[50]", "--out", tmp_path / "o.npy")
    assert "(as f32)" in out
    first = np.load(tmp_path / "o.npy")
    assert first.dtype == np.float32
    done(f"{file}:same", "--in", f"u=bf16:{tmp_path}/o.npy", "--out", tmp_path / "o2.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "o2.npy"), first)


def test_arguments_by_kind(file: Path) -> None:
    values = ["--in", "x=arange:f32[3]", "--arg", "mode=wrap"]
    assert "[2., 0., 1.]" in done(f"{file}:words", *values)
    assert "[1., 2., 0.]" in done(f"{file}:words", *values, "--arg", "radius=-1")
    assert "[0., 1., 2.]" in done(f"{file}:words", *values, "--arg", "on=false")


def test_large_results_are_summarised(file: Path) -> None:
    assert "u: " not in done(f"{file}:double", "--in", "u=arange:f32[10,10]")
    assert "from 0 to 198, mean 99" in done(f"{file}:double", "--in", "u=arange:f32[10,10]")
    assert "all NaN" in done(f"{file}:double", "--in", "u=zeros:f32[10,10]", "--arg", "k=nan")


def test_times(file: Path) -> None:
    out = done(f"{file}:double", "--in", "u=ones:f32[2,2]", "--time")
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["first", "second", "then"]


def test_device_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_DEVICE", "tpu")
    assert "no device named 'tpu'" in refused(1, f"{file}:double", "--in", "u=ones:f32[2,2]")
    assert "double on cpu" in done(f"{file}:double", "--in", "u=ones:f32[2,2]", "--device", "cpu")
    assert "no device named 'tpu'" in refused(
        2, f"{file}:double", "--in", "u=ones:f32[2,2]", "--device", "tpu"
    )


# ---- refusals ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "double needs --in u=… (f32[H, W])"),
        (("--in", "u"), "--in takes name=value, not 'u'"),
        (("--in", "u="), "takes name=value"),
        (("--in", "u=missing.npy"), "'missing.npy' does not exist"),
        (("--in", "u=."), "is a folder"),
        (("--in", "v=zeros:f32[2,2]"), "no parameter 'v'; --in takes u"),
        (("--in", "k=zeros:f32[2,2]"), "'k' is no array: give it with --arg"),
        (("--in", "u=zeros:f32[2,2]", "--arg", "u=1"), "'u' is an array: give it with --in"),
        (("--in", "u=zeros:f32[2,2]", "--in", "u=zeros:f32[2,2]"), "gives 'u' twice"),
        (("--in", "u=zeros:f32"), "zeros needs a whole shape"),
        (("--in", "u=zeros:f32[H,W]"), "zeros needs a whole shape"),
        (("--in", "u=zeros:f64[2,2]"), "no 64-bit floats"),
        (("--in", "u=zeros:f23[2,2]"), "there is no element type 'f23'; did you mean f32?"),
        (("--in", "u=zeros:float32[2,2]"), "there is no element type 'float32'; did you mean f32?"),
        (("--in", "u=zeros:q[2,2]"), "there are bool, i8,"),
        (("--in", "u=zeros:f32[2,-2]"), "'-2' is no extent"),
        (("--in", "u=zeros:f32[2,2"), "is no type"),
        (("--in", "u=zeros:f32[" + ",".join("1" * 65) + "]"), "more than the 64"),
        (("--in", "u=zeros:f32[2,2]", "--arg", "k=soon"), "'k' is f32 and takes a number"),
        (("--in", "u=zeros:f32[2,2]", "--out", "x.tif"), "is none of .npy, .npz, .png, .jpg"),
        (("--in", "u=zeros:f32[2,2]", "--out", "lap=x.npy"), "has no result 'lap'; it gives out"),
        (("--in", "u=zeros:f32[2,2]", "--out", "x.npy", "--out", "./x.npy"), "twice"),
        (("--in", "u=grey:zeros:f32[2,2]"), "does not exist"),
        (("--seed", "-1"), "--seed"),
        (("--bogus",), "No such option"),
    ],
)
def test_wrong_usage(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(2, f"{file}:double", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("both", "--in", "x=ones:f32[2]", "--arg", "v=1"), "takes 2 numbers such as 1,2"),
        (
            ("both", "--in", "x=ones:f32[2]", "--arg", "v=1,2", "--arg", "n=1.5"),
            "'n' is i32 and takes a whole number",
        ),
        (("both", "--in", "x=ones:f32[2]", "--arg", "v=1,2", "--arg", "flip=maybe"), "takes true or false"),
        (("both", "--in", "x=ones:f32[2]", "--arg", "v=1,2", "--out", "o.npy"), "2 results (out0, out1)"),
        (("words", "--in", "x=ones:f32[2]"), "words needs --arg mode=… (const[str])"),
        (
            ("words", "--in", "x=ones:f32[2]", "--arg", "mode=wrap", "--arg", "radius=1.5"),
            "takes a whole number",
        ),
        (("count", "--in", "most=ones:i32[1]"), "'most' is a result"),
        (("helper",), "'helper' is a device function"),
        (("dubble",), "no kernel 'dubble'; did you mean 'double'?"),
    ],
)
def test_wrong_usage_of_other_kernels(file: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(2, f"{file}:{arguments[0]}", *arguments[1:])


def test_which_kernel(file: Path, tmp_path: Path) -> None:
    assert "has several kernels (double, same," in refused(2, file)
    assert "no file" in refused(2, tmp_path / "none.mjk")
    assert "is a folder" in refused(2, tmp_path)
    assert f"did you mean {file}?" in refused(2, file.with_suffix(""))
    (tmp_path / "program.py").write_text("raise SystemExit(5)")
    assert "is a Python program" in refused(2, tmp_path / "program.py")
    (tmp_path / "empty.mjk").write_text("")
    assert "holds no kernel" in refused(2, tmp_path / "empty.mjk")
    (tmp_path / "a:b.mjk").write_text("@kernel\ndef f(x: f32) -> f32:\n    return x + 1\n")
    assert "f32[] = 3." in done(tmp_path / "a:b.mjk", "--arg", "x=2")


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("checked", "--in", "x=f32:{}/minus.npy"), "assertion-failed"),
        (("double", "--in", "u=ones:i32[2,2]"), "wrong-dtype"),
        (("double", "--in", "u=ones:f32[2]"), "wrong-rank"),
        (("double", "--in", "u=zeros:f32[100000,100000]"), "array-too-large"),
        (("double", "--in", "u=zeros:f32[0,99999999999999999999]"), "array-too-large"),
        (("double", "--in", "u=ones:f32[2,2]", "--arg", "k=1e99"), "number-does-not-fit"),
        (("words", "--in", "x=ones:f32[2]", "--arg", "mode=mirror"), "border"),
        (("double", "--in", "u=ones:f32[2,2]", "--out", "{}/no/such/folder.npy"), "unwritable-file"),
        (("double", "--in", "u=ones:f32[2,2]", "--out", "{}/folder.npy"), "unwritable-file"),
    ],
)
def test_faults_of_the_program_and_its_data(
    file: Path, tmp_path: Path, arguments: tuple[str, ...], slug: str
) -> None:
    np.save(tmp_path / "minus.npy", np.array([1, -1]))
    (tmp_path / "folder.npy").mkdir()
    name, *rest = (a.format(tmp_path) for a in arguments)
    assert slug in refused(1, f"{file}:{name}", *rest)


RACY = """
N = dims("N")

@kernel(grid="ceil_div(N, 64)", threadgroup=64)
def racy(x: f32[N], total: Out[f32[1]]):
    i = global_index()
    if i < N:
        total[0] += x[i]
"""


def test_a_run_with_every_access_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_SANITIZE", "0")
    (tmp_path / "racy.mjk").write_text(RACY)
    arguments = (tmp_path / "racy.mjk", "--in", "x=ones:f32[64]")
    assert "total: f32[1]" in done(*arguments, "--device", "emulator")
    printed = refused(1, *arguments, "--sanitize")
    assert "[race]" in printed
    assert "racy.mjk:8:" in printed
    assert "asks for cpu" in refused(2, *arguments, "--sanitize", "--device", "cpu")
