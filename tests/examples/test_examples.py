"""The examples do what they say, on every device, and the demo runs as `make demo` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import metaljit as mj
from metaljit.cli import cli

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
KERNELS = sorted(EXAMPLES.glob("**/*.mjk"))


def example(name: str, device: str) -> Any:
    """The kernel `name` of `name.mjk`."""
    return getattr(mj.load_kernels(EXAMPLES / f"{name}.mjk"), name).on(device)


@pytest.fixture(scope="module")
def photo() -> Any:
    with Image.open(EXAMPLES / "chelsea.png") as image:
        return np.asarray(image, np.float32) / np.float32(255)


def test_edges(device: str, photo: Any) -> None:
    u = photo[..., 1].copy()
    for reach, ink in ((1, 3), (2, 4)):
        p = np.pad(u, reach, "reflect")
        h, w = u.shape
        at = {
            (y, x): p[reach + y :, reach + x :][:h, :w]
            for y in (-reach, 0, reach)
            for x in (-reach, 0, reach)
        }
        laplacian = at[-reach, 0] + at[reach, 0] + at[0, -reach] + at[0, reach] - 4 * u
        paper = np.clip(1 - ink * laplacian, 0, 1)
        found = example("edges", device)(u, reach=reach, ink=ink)
        np.testing.assert_allclose(found, paper * paper * (3 - 2 * paper), atol=1e-5)


def test_blur(device: str, photo: Any) -> None:
    u = photo[:40, :50]
    for radius in (0, 1, 4):
        steps = np.arange(-radius, radius + 1)
        bell = np.exp(-4.5 * (steps / max(radius, 1)) ** 2)
        p = np.pad(u, ((radius, radius), (radius, radius), (0, 0)), "edge").astype(np.float64)
        total = sum(
            a * b * p[radius + y :, radius + x :][: u.shape[0], : u.shape[1]]
            for y, a in zip(steps, bell, strict=True)
            for x, b in zip(steps, bell, strict=True)
        )
        found = example("blur", device)(u.copy(), radius=radius)
        np.testing.assert_allclose(found, total / bell.sum() ** 2, atol=1e-5)


def test_dither(device: str, photo: Any) -> None:
    u = photo[..., 0].copy()
    bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
    y, x = np.indices(u.shape)
    for size in (1, 3):
        found = example("dither", device)(u, size=size)
        np.testing.assert_array_equal(found, 16 * u > bayer[y // size % 4, x // size % 4] + 0.5)
    with pytest.raises(mj.LaunchFault, match="a dot has at least one pixel"):
        example("dither", device)(u, size=0)


def test_mandelbrot(device: str) -> None:
    found = example("mandelbrot", device)(40, 60)
    y, x = np.indices((40, 60))
    c = (-0.65 + 2.4 / 40 * (x + 0.5 - 30)) + 1j * (2.4 / 40 * (y + 0.5 - 20))
    z, inside = np.zeros_like(c), np.ones(c.shape, bool)
    for _ in range(256):
        z = np.where(inside, z * z + c, z)
        inside &= np.abs(z) <= 16
    assert found.shape == (40, 60, 3)
    assert ((found == 0).all(axis=2) == inside).mean() > 0.99
    assert found.min() >= 0
    assert found.max() <= 1


def test_life(device: str) -> None:
    cells = np.random.default_rng(0).integers(0, 2, (17, 23)).astype(bool)
    around = sum(
        np.roll(cells, (y, x), (0, 1)).astype(int) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)
    )
    np.testing.assert_array_equal(example("life", device)(cells), (around == 3) | (cells & (around == 2)))


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 0, 4), (2, 3, 4, 6)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_softmax(device: str, shape: tuple[int, ...], dtype: str) -> None:
    x = (np.random.default_rng(1).normal(size=shape) * 5).astype(dtype)
    wide = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True, initial=-np.inf))
    found = example("softmax", device)(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(
        found, wide / wide.sum(axis=-1, keepdims=True), atol=1e-3 if dtype == "float16" else 1e-6
    )


def test_histogram(device: str, photo: Any) -> None:
    u = (photo[..., 2] * 255).astype(np.uint8)
    np.testing.assert_array_equal(example("histogram", device)(u), np.bincount(u.ravel(), minlength=256))


def cooperative(name: str, device: str) -> Any:
    return getattr(mj.load_kernels(EXAMPLES / "cooperative" / f"{name}.mjk"), name).on(device)


@pytest.mark.parametrize("n", [1, 1024, 2500])
def test_reductions(device: str, n: int) -> None:
    x = np.random.default_rng(2).normal(size=n).astype(np.float32)
    x[n // 2 :] = np.maximum(x[n // 2 :], 1)  # several of the largest
    parts = np.split(x, range(1024, n, 1024))
    sums = cooperative("tree_reduction", device)(x)
    np.testing.assert_allclose(sums, [p.sum(dtype=np.float64) for p in parts], atol=1e-3)
    largest, places = cooperative("simd_reduction", device)(x)
    np.testing.assert_array_equal(largest, [p.max() for p in parts])
    np.testing.assert_array_equal(places, [1024 * k + p.argmax() for k, p in enumerate(parts)])


@pytest.mark.parametrize("shape", [(3, 700), (1, 256), (2, 5)])
def test_prefix_sum(device: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, shape).astype(np.int32)
    np.testing.assert_array_equal(cooperative("prefix_sum", device)(x), x.cumsum(1, dtype=np.int32))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
def test_transpose(device: str, photo: Any, dtype: str) -> None:
    u = (photo[:50, :70, 0] * 255).astype(dtype)
    np.testing.assert_array_equal(cooperative("transpose", device)(u), u.T)


@pytest.mark.parametrize(("name", "sizes"), [("matmul", (33, 40, 70)), ("matrix_tiles", (48, 24, 16))])
def test_matrix_products(device: str, name: str, sizes: tuple[int, int, int]) -> None:
    h, k, w = sizes
    r = np.random.default_rng(4)
    a, b = r.normal(size=(h, k)).astype(np.float32), r.normal(size=(k, w)).astype(np.float32)
    np.testing.assert_allclose(cooperative(name, device)(a, b), a.astype(np.float64) @ b, atol=1e-4)


def test_group_histogram(device: str, photo: Any) -> None:
    u = (photo[..., 2] * 255).astype(np.uint8)
    counts = cooperative("group_histogram", device)(u)
    np.testing.assert_array_equal(counts, np.bincount(u.ravel(), minlength=256))


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_each_example_checks_and_is_listed(path: Path) -> None:
    result = CliRunner().invoke(cli, ["check", str(path)])
    assert result.exit_code == 0, result.output
    assert f"[{path.name}]({path.relative_to(EXAMPLES)})" in (EXAMPLES / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_the_command_in_its_first_lines(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doc = mj.load_kernels(path).__doc__ or ""
    commands = re.findall(r"^ +metaljit (.*(?:\\\n.*)*)$", doc, re.MULTILINE)
    assert commands
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        words = command.replace("\\\n", " ").replace("=600", "=60").replace("=900", "=90").split()
        result = CliRunner().invoke(cli, words)
        assert result.exit_code == 0, result.output
        assert Path(words[words.index("--out") + 1].rpartition("=")[2]).stat().st_size > 0


def test_the_demo() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "METALJIT_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for part in (
        "kernel void edges(",
        "edges on ",
        "first call",
        "second call",
        "NumPy",
        "largest difference",
    ):
        assert part in done.stdout
    with Image.open(EXAMPLES / "out" / "edges.png") as image:
        drawing = np.asarray(image)
    assert drawing.shape == (300, 451)
    assert 0.05 < (drawing < 64).mean() < 0.4  # ink, and not too much of it
    assert (drawing > 192).mean() > 0.4
