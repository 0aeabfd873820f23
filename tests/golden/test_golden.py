"""The ops against the numbers of TensorFlow, PyTorch and SciPy, and the runner's own verdicts."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metaljit as mj

sys.path.insert(0, str(Path(__file__).parent))

import run
from calls import OPS
from golden import BF16_BITS, Case, cases

HERE = Path(__file__).parent
CASES = {f"{c.topic}-{c.id}": c for c in cases(HERE)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_libraries_numbers(device: str, case: Case) -> None:
    with mj.use_device(device):
        outcome, why = run.judge(case)
    assert outcome == "passed", why


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "golden"
    folder.mkdir()
    for file in (*HERE.glob("*.npz"), HERE / "manifest.json"):
        shutil.copy(file, folder)
    return folder


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Keeps the hamming cases, and changes the first."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["cases"] = [c for c in manifest["cases"] if c["topic"] == "hamming"]
    change(manifest["cases"][0])
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "counts", "code"),
    [
        (lambda c: None, "12 passed, 0 failed", 0),
        (lambda c: c.update(op="hamming_on_tuesdays"), "11 passed, 1 failed", 1),
        (lambda c: c.update(error={"type": "ValueError", "text": "no"}), "11 passed, 1 failed", 1),
        (lambda c: c["arrays"]["out"].update(key="p_u16.out"), "11 passed, 1 failed", 1),
        (lambda c: c["arrays"]["b"].update(key="p_u16.b"), "11 passed, 1 failed", 1),
    ],
)
def test_the_runner_counts(
    copied: Path, capsys: pytest.CaptureFixture[str], change: Any, counts: str, code: int
) -> None:
    edit(copied, change)
    assert run.main([str(copied)]) == code
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == counts
    assert len(printed) == 1 + counts.split(", ")[1].count("1 failed")


def test_an_expected_refusal_passes(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(case: dict[str, Any]) -> None:
        case.update(error={"type": "ValueError", "text": "dtypes"})
        case["arrays"]["b"].update(key="p_u16.b")

    edit(copied, refused)
    assert run.main([str(copied)]) == 0
    assert capsys.readouterr().out.endswith("12 passed, 0 failed\n")


def test_float64_passes_only_by_its_documented_refusal() -> None:
    case = CASES["stencil_scipy-lap1d_wrap"]
    wide = {name: a.astype(np.float64) for name, a in case.inputs.items()}
    outcome, why = run.judge(replace(case, inputs=wide))
    assert outcome == "passed"
    assert "no-f64" in why
    in_vain = {name: a.astype(np.float64) for name, a in case.outputs.items()}
    assert run.judge(replace(case, outputs=in_vain))[0] == "failed"


def test_a_fault_of_ours_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case) -> Iterator[tuple[str, Any]]:
        yield "y", 1 // 0

    monkeypatch.setitem(OPS, ("stencil_scipy", "laplace"), broken)
    outcome, why = run.judge(CASES["stencil_scipy-lap1d_wrap"])
    assert outcome == "failed"
    assert "ZeroDivisionError" in why


def test_a_device_that_fails_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Case) -> Iterator[tuple[str, Any]]:
        raise mj.DeviceFault(mj.Diagnostic("no-device", "there is no such device"))

    monkeypatch.setitem(OPS, ("stencil_scipy", "laplace"), broken)
    assert run.judge(replace(CASES["stencil_scipy-lap1d_wrap"], error={"type": "ValueError"}))[0] == "failed"


def test_a_half_done_case_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, ("pooling_torch", "max_pool1d"), lambda case: iter(()))
    assert run.judge(CASES["pooling_torch-max1d"]) == (
        "failed",
        "nothing was computed for ['gx', 'idx', 'y']",
    )


def test_a_folder_is_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run.main([]) == 2
    assert run.main([str(tmp_path)]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_reader_compares(tmp_path: Path) -> None:
    case = CASES["pooling_torch-max2d_nan"]
    want = case.outputs["y"]
    assert case.check("y", want) is None
    assert "shape" in str(case.check("y", want[0]))
    assert "differ" in str(case.check("y", np.where(np.isnan(want), 0, want)))
    close = CASES["image_filters-laplace"]
    assert close.check("y", close.outputs["y"] + np.float32(1e-7)) is None
    assert "first at" in str(close.check("y", close.outputs["y"] + np.float32(1e-2)))


def test_what_json_and_numpy_cannot_hold(copied: Path) -> None:
    def bf16(case: dict[str, Any]) -> None:
        case["params"] = {"cval": {"float": "-inf"}, "pads": [{"float": "nan"}, 1]}
        case["arrays"]["a"].update(key="p_u16.a", stored_as=BF16_BITS)
        case["arrays"]["out"].update(key="p_u16.a", stored_as=BF16_BITS)

    edit(copied, bf16)
    case = next(cases(copied))
    assert case.params["cval"] == -np.inf
    assert np.isnan(case.params["pads"][0])
    assert case.inputs["a"].dtype.name == "bfloat16"
    assert case.check("out", case.inputs["a"]) is None


def test_a_missing_file_fails_the_case(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(copied, lambda c: c.update(file="elsewhere.npz"))
    assert run.main([str(copied)]) == 1
    assert "1 failed" in capsys.readouterr().out
