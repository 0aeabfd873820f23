"""Arrays in files: .npy, .npz, .png, .jpg.

In: a path, and for a picture the shape and element type that are wanted. Out: an array; and the other way round. A
file is written beside its name and then renamed, so that what was there stays until the new contents are whole.
Nothing is ever unpickled.

Pictures as numbers: floats are 0 … 1, integers 0 … 255 (16-bit grey: 0 … 65535), a bool is the brighter half.
Written, floats are clipped to 0 … 1 and rounded to 8 bits, NaN is black; integers are clipped to 0 … 255.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from .cli_errors import fault, reason
from .dtypes import BF16, DType, from_numpy
from .source import MetaljitError

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
ARRAYS = (".npy", ".npz")
KNOWN = ".npy, .npz, .png, .jpg"
JPEG_QUALITY = 95
CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}


def suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


# ---- arrays ----


def read_array(path: str, member: str, name: str) -> NDArray[Any]:
    """The array of a .npy file, or of a .npz file: `member`, else the one called `name`, else the only one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of files that Python 2 wrote, and reads them
            with open(path, "rb") as file:  # NumPy leaves a damaged archive open that it opened itself
                found = np.load(file, allow_pickle=False)
                if not isinstance(found, np.ndarray):
                    with found:
                        found = found[_member(found.files, path, member, name)]
    except click.UsageError:
        raise
    except Exception as e:  # what NumPy raises for a damaged file is not listed anywhere
        raise _unreadable(path, e) from e
    if not isinstance(found, np.ndarray):
        raise fault("unreadable-file", f"{path} holds no array")
    if found.dtype.isnative:
        return found
    return found.astype(found.dtype.newbyteorder("="))


def _member(there: list[str], path: str, member: str, name: str) -> str:
    if member or name in there:
        if (member or name) in there:
            return member or name
        raise click.UsageError(f"{path} holds no array {member!r}; it holds {', '.join(there) or 'none'}")
    if len(there) != 1:
        raise click.UsageError(
            f"{path} holds {', '.join(there) or 'no arrays'}, and none is called {name!r}; write {path}:NAME"
        )
    return there[0]


def write_array(path: str, array: NDArray[Any]) -> None:
    _write(path, lambda file: np.save(file, _storable(array), allow_pickle=False))


def write_arrays(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    stored: dict[str, Any] = {n: _storable(a) for n, a in arrays.items()}
    _write(path, lambda file: _save_all(file, stored))


def _save_all(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """As np.savez, which cannot save an array called `file`."""
    import zipfile

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """bf16 as f32, which holds it exactly: the format has no bf16."""
    return array.astype(np.float32) if from_numpy(array.dtype) == BF16 else array


# ---- pictures ----


def read_picture(path: str, channels: int | None, dtype: DType) -> NDArray[Any]:
    """A picture as (H, W) for 0 channels, (H, W, channels) for 1, 3 or 4, or as it is for None."""
    module = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large pictures, and refuses huge ones by itself
            with module.open(path) as file:
                return _numbers(_pixels(file, channels), dtype)
    except (MetaljitError, MemoryError):
        raise
    except Exception as e:  # what decoders raise for a damaged file is not listed anywhere
        raise _unreadable(path, e) from e


def _pixels(file: Image, channels: int | None) -> NDArray[Any]:
    """u8, or u16 where the picture is grey of 16 bits, upright."""
    from PIL import ImageOps

    image: Image = ImageOps.exif_transpose(file)
    if image.mode.startswith("I;16"):
        image.load()
        grey = np.asarray(image).astype(np.uint16)
        if channels in (0, None):
            return grey
        return np.repeat(grey[..., None], channels, axis=2) if channels < 4 else _opaque(grey)
    if channels is None:
        channels = 0 if image.mode in ("1", "L", "LA", "I", "F") else 3
    pixels = np.asarray(image.convert(CHANNELS[channels or 1]))
    return pixels[..., None] if channels == 1 else pixels


def _opaque(grey: NDArray[Any]) -> NDArray[Any]:
    return np.stack([grey, grey, grey, np.full_like(grey, 65535)], axis=2)


def _numbers(pixels: NDArray[Any], dtype: DType) -> NDArray[Any]:
    white = 65535 if pixels.dtype == np.uint16 else 255
    if dtype.is_float:
        return (pixels.astype(np.float32) / np.float32(white)).astype(dtype.numpy)
    if dtype.kind == "bool":
        return pixels > white // 2
    if white > dtype.largest and dtype.largest >= 255:
        pixels, white = pixels >> 8, 255
    if white > dtype.largest:
        raise fault(
            "picture-does-not-fit",
            f"a picture has numbers up to {white}, and {dtype} holds up to {dtype.largest}",
            "declare the parameter u8, or a float",
        )
    return pixels.astype(dtype.numpy)


def check_picture(path: str, name: str, dtype: DType, shape: tuple[int, ...]) -> None:
    """A fault where no picture can be made of an array of this shape."""
    grey = len(shape) == 2 or (len(shape) == 3 and shape[2] in CHANNELS)
    if not grey:
        raise fault(
            "picture-does-not-fit",
            f"{name} has shape {shape}, and a picture is (H, W), or (H, W, 1), (H, W, 3) or (H, W, 4)",
            f"write it as {os.path.splitext(path)[0]}.npy",
        )
    if 0 in shape or max(shape[:2]) > 65535:
        raise fault(
            "picture-does-not-fit", f"{name} has shape {shape}, and a picture is 1 to 65535 pixels wide"
        )
    if len(shape) == 3 and shape[2] == 4 and PICTURES[suffix(path)] == "JPEG":
        raise fault(
            "picture-does-not-fit",
            f"{name} has four channels, and JPEG has no transparency",
            "write a .png, or give three channels",
        )


def write_picture(path: str, name: str, array: NDArray[Any]) -> None:
    """The array as 8-bit grey or colour; u16 of rank 2 as a 16-bit .png."""
    dtype = from_numpy(array.dtype)
    assert dtype is not None
    check_picture(path, name, dtype, array.shape)
    module, kind = _pillow(), PICTURES[suffix(path)]
    pixels = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if not (dtype.name == "u16" and pixels.ndim == 2 and kind == "PNG"):
        pixels = _eight_bits(pixels, dtype)
    image = module.fromarray(np.ascontiguousarray(pixels))
    options = {"quality": JPEG_QUALITY} if kind == "JPEG" else {}
    _write(path, lambda file: image.save(file, kind, **options))


def _eight_bits(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    if dtype.is_float:
        clipped = np.clip(np.nan_to_num(array.astype(np.float32), nan=0.0), 0, 1)
        return np.asarray(np.rint(clipped * 255).astype(np.uint8))
    if dtype.kind == "bool":
        return np.where(array, np.uint8(255), np.uint8(0))
    return np.asarray(np.clip(array, 0, min(255, int(dtype.largest))).astype(np.uint8))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as e:
        raise fault(
            "pillow-missing",
            f"pictures are read and written by Pillow, which cannot be imported ({e})",
            "install it: pip install 'metaljit[images]'; or use .npy files",
        ) from None
    return Image


# ---- writing ----


def check_writable(path: str) -> None:
    """A fault where the file could not be made, before any work is done for it."""
    if suffix(path) in PICTURES:
        _pillow()
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise fault("unwritable-file", f"{path} cannot be written: there is no folder {folder}")
    if os.path.isdir(path):
        raise fault("unwritable-file", f"{path} cannot be written: it is a folder")
    if not os.access(folder, os.W_OK):
        raise fault("unwritable-file", f"{path} cannot be written: the folder {folder} is read-only")


def write_bytes(path: str, data: bytes) -> None:
    _write(path, lambda file: file.write(data))


def _write(path: str, save: Callable[[IO[bytes]], object]) -> None:
    """The whole file or none of it; what a link points to is replaced, not the link."""
    target = Path(os.path.realpath(path))
    try:
        draft = tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.stem}.", delete=False)
    except OSError as e:
        raise _unwritable(path, e) from e
    try:
        with draft as file:
            save(file)
            os.fchmod(file.fileno(), _mode(target))
        os.replace(draft.name, target)
    except BaseException as e:
        os.unlink(draft.name)
        if isinstance(e, OSError):
            raise _unwritable(path, e) from e
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those that a new file gets."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _unwritable(path: str, e: OSError) -> MetaljitError:
    return fault("unwritable-file", f"{path} cannot be written: {reason(e)}")


def _unreadable(path: str, e: Exception) -> MetaljitError:
    message = reason(e)
    if "allow_pickle" in message or "pickled" in message:
        message = "it holds Python objects, which are never loaded, or is no NumPy file"
    return fault("unreadable-file", f"{path} cannot be read: {message}")
