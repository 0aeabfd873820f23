"""Files of the command line: pictures and arrays, whole and damaged."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from metaljit import cli_files as files
from metaljit.cli import cli
from metaljit.dtypes import DTYPES, F16, F32, I32, U8, U16
from metaljit.source import MetaljitError

RGB = np.arange(60, dtype=np.uint8).reshape(4, 5, 3) * 4
GREY = np.arange(20, dtype=np.uint8).reshape(4, 5) * 12

COPIES = """
H, W = dims("H W")
S = dims("*S")
B = dims("*B")
T = dtypes("number")

@kernel
def any_shape(u: T[*S]) -> T[*S]:
    return u[position()]

@kernel
def grey(u: f32[H, W]) -> f32[H, W]:
    return u[position()]

@kernel
def last_two(u: T[*B, H, W]) -> T[*B, H, W]:
    return u[position()]

@kernel
def channels(u: u8[H, W, 3]) -> u8[H, W, 3]:
    return u[position()]

@kernel
def alpha(u: u8[H, W, 4]) -> u8[H, W, 4]:
    return u[position()]

@kernel
def one(u: u8[H, W, 1]) -> u8[H, W, 1]:
    return u[position()]

@kernel
def vectors(u: f32x3[H, W]) -> f32x3[H, W]:
    return u[position()]

@kernel
def clear(u: f32x4[H, W]) -> f32x4[H, W]:
    return u[position()]

@kernel
def line(u: f32[W]) -> f32[W]:
    return u[position()]

@kernel
def pairs(u: f32x2[H, W]) -> f32x2[H, W]:
    return u[position()]

@kernel
def add(u: T[H, W], v: T[H, W]) -> T[H, W]:
    p = position()
    return u[p] + v[p]
"""


def fault(slug: str) -> Any:
    return pytest.raises(MetaljitError, match=rf"\[{slug}\]")


# ---- pictures ----


@pytest.mark.parametrize(
    ("channels", "dtype", "expected"),
    [
        (None, U8, RGB),
        (3, U8, RGB),
        (3, F32, RGB / np.float32(255)),
        (3, F16, (RGB / np.float32(255)).astype(np.float16)),
        (3, I32, RGB.astype(np.int32)),
        (4, U8, np.concatenate([RGB, np.full((4, 5, 1), 255, np.uint8)], axis=2)),
        (3, DTYPES["bool"], RGB > 127),
    ],
)
def test_colour_pictures_become_what_is_declared(
    tmp_path: Path, channels: int | None, dtype: Any, expected: Any
) -> None:
    Image.fromarray(RGB).save(tmp_path / "p.png")
    found = files.read_picture(str(tmp_path / "p.png"), channels, dtype)
    assert found.dtype == dtype.numpy
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("channels", "shape"), [(None, (4, 5)), (0, (4, 5)), (1, (4, 5, 1)), (3, (4, 5, 3))])
def test_grey_pictures(tmp_path: Path, channels: int | None, shape: tuple[int, ...]) -> None:
    Image.fromarray(GREY).save(tmp_path / "p.png")
    found = files.read_picture(str(tmp_path / "p.png"), channels, U8)
    np.testing.assert_array_equal(
        found, np.broadcast_to(GREY.reshape(4, 5, *([1] * (len(shape) - 2))), shape)
    )


def test_colour_is_weighted_for_grey_and_palettes_are_resolved(tmp_path: Path) -> None:
    green = np.zeros((2, 2, 3), np.uint8)
    green[..., 1] = 255
    Image.fromarray(green).quantize(2).save(tmp_path / "p.png")
    assert (files.read_picture(str(tmp_path / "p.png"), 0, U8) == 150).all()
    np.testing.assert_array_equal(files.read_picture(str(tmp_path / "p.png"), None, U8), green)


def test_sixteen_bits_of_grey(tmp_path: Path) -> None:
    deep = np.array([[0, 1, 256], [32768, 65534, 65535]], np.uint16)
    path = str(tmp_path / "deep.png")
    files.write_picture(path, "out", deep)
    np.testing.assert_array_equal(files.read_picture(path, 0, U16), deep)
    np.testing.assert_array_equal(files.read_picture(path, None, F32), deep / np.float32(65535))
    np.testing.assert_array_equal(files.read_picture(path, 0, U8), deep >> 8)
    np.testing.assert_array_equal(files.read_picture(path, 3, U16), np.repeat(deep[..., None], 3, axis=2))
    assert (files.read_picture(path, 4, U16)[..., 3] == 65535).all()
    with fault("picture-does-not-fit"):
        files.read_picture(path, 0, DTYPES["i8"])


def test_a_photograph_stands_upright(tmp_path: Path) -> None:
    sideways = Image.fromarray(RGB)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to the right
    sideways.save(tmp_path / "p.png", exif=exif)
    np.testing.assert_array_equal(files.read_picture(str(tmp_path / "p.png"), 3, U8), np.rot90(RGB, -1))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([[0, 0.5, 1], [-1, 2, np.nan]], np.float32), [[0, 128, 255], [0, 255, 0]]),
        (np.array([[0.25, np.inf, -np.inf]], np.float16), [[64, 255, 0]]),
        (np.array([[True, False]]), [[255, 0]]),
        (np.array([[-5, 300, 17]], np.int32), [[0, 255, 17]]),
        (np.array([[-5, 127]], np.int8), [[0, 127]]),
        (np.array([[2**63, 3]], np.uint64), [[255, 3]]),
        (GREY[..., None], GREY),
        (RGB, RGB),
        (RGB[::-1, ::2], RGB[::-1, ::2]),
    ],
)
def test_arrays_as_pictures(tmp_path: Path, array: Any, expected: Any) -> None:
    path = str(tmp_path / "p.png")
    files.write_picture(path, "out", array)
    with Image.open(path) as image:
        np.testing.assert_array_equal(np.asarray(image), expected)


def test_jpeg(tmp_path: Path) -> None:
    smooth = np.broadcast_to(np.linspace(0, 1, 64, dtype=np.float32)[:, None], (64, 64))
    for name in ("p.jpg", "p.jpeg", "P.JPG"):
        files.write_picture(str(tmp_path / name), "out", smooth)
        found = files.read_picture(str(tmp_path / name), 0, F32)
        np.testing.assert_allclose(found, smooth, atol=0.02)
    with fault("picture-does-not-fit"):
        files.write_picture(str(tmp_path / "p.jpg"), "out", np.zeros((2, 2, 4), np.uint8))


@pytest.mark.parametrize("shape", [(3,), (), (2, 2, 2), (2, 2, 5), (2, 2, 3, 1), (0, 5), (5, 0, 3)])
def test_shapes_that_are_no_picture(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with fault("picture-does-not-fit"):
        files.write_picture(str(tmp_path / "p.png"), "out", np.zeros(shape, np.uint8))
    assert list(tmp_path.iterdir()) == []


def test_without_pillow_there_is_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with fault("pillow-missing"):
        files.read_picture("p.png", 0, U8)
    with pytest.raises(MetaljitError, match=r"metaljit\[images\]"):
        files.check_writable(str(tmp_path / "p.png"))
    files.check_writable(str(tmp_path / "p.npy"))


# ---- damaged and hostile files ----


def damaged(tmp_path: Path) -> dict[str, bytes]:
    buffer = io.BytesIO()
    np.save(buffer, RGB)
    whole = buffer.getvalue()
    objects = io.BytesIO()
    np.save(objects, np.array([{"an": "object"}], object), allow_pickle=True)
    picture = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)).save(picture, "PNG")
    huge = whole.replace(b"(4, 5, 3)", b"(4, 5, 3" + b"0" * 12 + b")")
    return {
        "empty.npy": b"",
        "text.npy": b"not an array",
        "half.npy": whole[: len(whole) // 2],
        "header.npy": whole[:20],
        "huge.npy": huge,
        "code.npy": whole.replace(b"'descr'", b"'d'+'s'"),
        "objects.npy": objects.getvalue(),
        "pickle.npy": pickle.dumps([1, 2, 3]),
        "empty.npz": b"",
        "half.npz": b"PK\x03\x04" + bytes(30),
        "empty.png": b"",
        "text.png": b"not a picture",
        "half.png": picture.getvalue()[:2000],
        "half.jpg": b"\xff\xd8\xff\xe0" + bytes(20),
    }


@pytest.mark.parametrize("name", list(damaged(Path())))
def test_damaged_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(damaged(tmp_path)[name])
    with fault("unreadable-file") as found:
        if path.suffix in files.PICTURES:
            files.read_picture(str(path), 0, U8)
        else:
            files.read_array(str(path), "", "u")
    assert str(path) in str(found.value)
    assert len(str(found.value).splitlines()) == 1


def test_an_array_that_python_2_wrote(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", RGB)
    text = (tmp_path / "a.npy").read_bytes()
    assert text.count(b"(4, 5, 3), }   ") == 1
    (tmp_path / "a.npy").write_bytes(text.replace(b"(4, 5, 3), }   ", b"(4L, 5L, 3L), }"))
    np.testing.assert_array_equal(files.read_array(str(tmp_path / "a.npy"), "", "u"), RGB)


def test_npz_members(tmp_path: Path) -> None:
    path = str(tmp_path / "two.npz")
    files.write_arrays(path, {"a": GREY, "file": RGB})
    np.testing.assert_array_equal(files.read_array(path, "", "a"), GREY)
    np.testing.assert_array_equal(files.read_array(path, "file", "a"), RGB)
    with pytest.raises(click.UsageError, match="holds a, file, and none is called 'u'"):
        files.read_array(path, "", "u")
    with pytest.raises(click.UsageError, match="holds no array 'c'"):
        files.read_array(path, "c", "u")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("notes.txt", "no array")
    with fault("unreadable-file"):
        files.read_array(str(tmp_path / "other.npz"), "", "u")


# ---- writing ----


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npy"
    files.write_array(str(path), GREY)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with fault("unwritable-file") as found:
        files.write_array(str(path), RGB)
    assert "No space left on device" in str(found.value)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npy"]


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    fresh, real, link = tmp_path / "fresh.npy", tmp_path / "real.npy", tmp_path / "link.npy"
    files.write_array(str(fresh), GREY)
    (tmp_path / "usual").write_bytes(b"")
    assert fresh.stat().st_mode == (tmp_path / "usual").stat().st_mode
    real.write_bytes(b"")
    real.chmod(0o640)
    link.symlink_to(real)
    files.write_array(str(link), GREY)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(np.load(real), GREY)


# ---- through the command ----


def copied(tmp_path: Path, kernel: str, *ins: str) -> Any:
    """What a kernel that copies its argument is given."""
    (tmp_path / "copies.mjk").write_text(COPIES)
    arguments = ["run", f"{tmp_path}/copies.mjk:{kernel}", "--out", f"{tmp_path}/o.npy"]
    result = CliRunner().invoke(cli, [*arguments, *(a for i in ins for a in ("--in", i))])
    if result.exit_code:
        return result.exit_code, " ".join(result.stderr.split())
    return np.load(tmp_path / "o.npy")


@pytest.mark.parametrize(
    ("kernel", "prefix", "shape", "dtype"),
    [
        ("grey", "", (4, 5), "float32"),
        ("channels", "", (4, 5, 3), "uint8"),
        ("alpha", "", (4, 5, 4), "uint8"),
        ("one", "", (4, 5, 1), "uint8"),
        ("vectors", "", (4, 5, 3), "float32"),
        ("clear", "", (4, 5, 4), "float32"),
        ("any_shape", "", (4, 5, 3), "float32"),
        ("any_shape", "grey:", (4, 5), "float32"),
        ("any_shape", "rgba:u8:", (4, 5, 4), "uint8"),
        ("any_shape", "i32:gray:", (4, 5), "int32"),
        ("last_two", "", (4, 5), "float32"),
    ],
)
def test_a_picture_fits_its_parameter(
    tmp_path: Path, kernel: str, prefix: str, shape: Any, dtype: str
) -> None:
    Image.fromarray(RGB).save(tmp_path / "p.png")
    found = copied(tmp_path, kernel, f"u={prefix}{tmp_path}/p.png")
    assert (found.shape, found.dtype.name) == (shape, dtype)


def test_random_arrays_of_one_call_differ(tmp_path: Path) -> None:
    apart = copied(tmp_path, "add", "u=random:f32[50,9]", "v=random:f32[50,9]")
    assert (apart != 2 * copied(tmp_path, "add", "u=random:f32[50,9]", "v=zeros:f32[50,9]")).any()


def test_a_picture_takes_the_element_type_of_its_neighbour(tmp_path: Path) -> None:
    Image.fromarray(GREY).save(tmp_path / "p.png")
    found = copied(tmp_path, "add", f"u={tmp_path}/p.png", "v=ones:i16[4,5]")
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, GREY.astype(np.int16) + 1)


@pytest.mark.parametrize("kernel", ["line", "pairs"])
def test_a_parameter_that_takes_no_picture(tmp_path: Path, kernel: str) -> None:
    Image.fromarray(RGB).save(tmp_path / "p.png")
    status, message = copied(tmp_path, kernel, f"u={tmp_path}/p.png")
    assert status == 1
    assert "[picture-does-not-fit]" in message


def test_prefixes_are_no_part_of_a_file_that_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Image.fromarray(RGB).save("grey:p.png")
    assert copied(tmp_path, "any_shape", "u=grey:p.png").shape == (4, 5, 3)
    np.save("n.npy", np.array(["a"]))
    assert copied(tmp_path, "any_shape", "u=f32:n.npy")[0] == 1
    assert copied(tmp_path, "any_shape", "u=grey:n.npy")[0] == 2
    Image.fromarray(RGB).save("p.png")
    assert "[picture-does-not-fit]" in copied(tmp_path, "grey", "u=rgb:i8:p.png")[1]


def test_a_picture_comes_back_as_it_was(tmp_path: Path) -> None:
    Image.fromarray(RGB).save(tmp_path / "p.png")
    (tmp_path / "copies.mjk").write_text(COPIES)
    for kernel in ("vectors", "channels", "clear"):
        arguments = ["run", f"{tmp_path}/copies.mjk:{kernel}", "--in", f"u={tmp_path}/p.png"]
        result = CliRunner().invoke(cli, [*arguments, "--out", f"{tmp_path}/o.png"])
        assert result.exit_code == 0, result.output
        with Image.open(tmp_path / "o.png") as image:
            np.testing.assert_array_equal(np.asarray(image.convert("RGB")), RGB)
    result = CliRunner().invoke(
        cli,
        [
            *arguments[:1],
            f"{tmp_path}/copies.mjk:line",
            "--in",
            "u=ones:f32[3]",
            "--out",
            f"{tmp_path}/l.png",
        ],
    )
    assert (result.exit_code, "1 axes" in result.stderr) == (1, True)
