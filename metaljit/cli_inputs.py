"""`--in name=VALUE` and `--out PATH` of `metaljit run`: from texts to arrays, and back.

A VALUE is a file (`photo.png`, `data.npz:member`), or what to fill an array with (`random:f32[512,512]`, and zeros,
ones, arange). Before a file may stand what to make of it: an element type (`f32:data.npy` converts) or, for a
picture, `grey`, `rgb` or `rgba`. Otherwise a picture takes the shape and element type that the parameter declares.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray

from metaljit.grammar import tree

from . import cli_files as files
from .cli_errors import fault
from .cli_kernels import TypeSpec, check_names, parse_type, signature, value_of, written
from .compiler.lower.signature import Annotation, Declared, PackAxes
from .dtypes import BF16, DTYPES, F32, U8, DType, Vec, from_numpy
from .frozen import frozen
from .kernels import Kernel
from .program import INDEX_MAX, ArrayParam, Program
from .source import Diagnostic, SizeError
from .symbols import DTypeVariable

FILLS = ("random", "zeros", "ones", "arange")
MODES = {"grey": 0, "gray": 0, "rgb": 3, "rgba": 4}
_FILL = re.compile(rf"({'|'.join(FILLS)}):(.*)", re.DOTALL)
_PREFIX = re.compile(rf"({'|'.join((*MODES, *DTYPES))}):(.+)", re.DOTALL)


@frozen
class Fill:
    how: str
    dtype: DType
    shape: tuple[int, ...]


@frozen
class File:
    """`dtype` and `channels` are what was asked for before the path; `member` is an array of a .npz file."""

    path: str
    member: str
    dtype: DType | None
    channels: int | None

    @property
    def is_picture(self) -> bool:
        return files.suffix(self.path) in files.PICTURES


Source: TypeAlias = Fill | File


def parse_source(name: str, text: str) -> Source:
    """What `--in name=text` asks for. UsageError where it is nothing, or the file is not there."""
    where = f"--in {name}"
    found = _FILL.fullmatch(text)
    if found:
        return _fill(found[1], parse_type(found[2], where), where)
    dtype: DType | None = None
    channels: int | None = None
    while not os.path.exists(text) and (prefix := _PREFIX.fullmatch(text)):
        word, text = prefix[1], prefix[2]
        dtype, channels = (dtype, MODES[word]) if word in MODES else (DTYPES[word], channels)
    path, member = text, ""
    if not os.path.exists(text) and ".npz:" in text:
        path, _, member = text.rpartition(":")
    if not os.path.isfile(path):
        what = "is a folder" if os.path.isdir(path) else "does not exist"
        raise click.UsageError(
            f"{where}: the file {path!r} {what} (a value is a file, or a spec such as random:f32[512,512])"
        )
    if files.suffix(path) not in (*files.ARRAYS, *files.PICTURES):
        raise click.UsageError(f"{where}: {path!r} is none of {files.KNOWN}")
    if channels is not None and files.suffix(path) not in files.PICTURES:
        raise click.UsageError(f"{where}: grey, rgb and rgba are for pictures, and {path!r} is none")
    return File(path, member, dtype, channels)


def _fill(how: str, spec: TypeSpec, where: str) -> Fill:
    if spec.axes is None or None in spec.axes:
        raise click.UsageError(f"{where}: {how} needs a whole shape, such as {how}:{spec.element}[512,512]")
    lanes = (spec.element.lanes,) if isinstance(spec.element, Vec) else ()
    shape = (*(n for n in spec.axes if n is not None), *lanes)
    size = math.prod(shape)
    if size > INDEX_MAX or max(shape, default=0) > INDEX_MAX:
        raise SizeError(
            Diagnostic(
                "array-too-large",
                f"{where}: the array has {size} elements, and an array has at most {INDEX_MAX}",
                help="take smaller extents",
            )
        )
    if len(shape) > 64:
        raise click.UsageError(f"{where}: {len(shape)} axes are more than the 64 that NumPy has")
    return Fill(how, spec.element.scalar, shape)


def fill(source: Fill, seed: int, name: str) -> NDArray[Any]:
    """The array. Random floats lie in [0, 1), random integers in the whole type; each name has its own numbers."""
    dtype, shape = source.dtype, source.shape
    match source.how:
        case "zeros":
            return np.zeros(shape, dtype.numpy)
        case "ones":
            return np.ones(shape, dtype.numpy)
        case "arange":
            with np.errstate(all="ignore"):
                return np.arange(math.prod(shape)).astype(dtype.numpy).reshape(shape)
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    if dtype.is_float:
        # 11 and 8 bits of precision would round up to 1.
        bits = {16: 11, 32: 24}[dtype.bits] if dtype != BF16 else 8
        whole = generator.integers(0, 1 << bits, shape, np.uint32)
        return np.asarray((whole / np.float32(1 << bits)).astype(dtype.numpy))
    if dtype.kind == "bool":
        return np.asarray(generator.integers(0, 2, shape).astype(np.bool_))
    return np.asarray(
        generator.integers(int(dtype.smallest), int(dtype.largest), shape, dtype.numpy, endpoint=True)
    )


# ---- a whole call ----


def call_values(kernel: Kernel, ins: Mapping[str, str], args: Mapping[str, str], seed: int) -> list[Any]:
    """The call's arguments in order. UsageError names what is missing or unknown."""
    params = signature(kernel).params
    check_names("--in", ins, params, arrays=True)
    check_names("--arg", args, params, arrays=False)
    passed = [p for p in params if p.kind != "out"]
    missing = [p for p in passed if p.name not in {*ins, *args} and not p.has_default]
    if missing:
        wanted = "; ".join(
            f"{'--in' if _is_array(p) else '--arg'} {p.name}=… ({written(p)})" for p in missing
        )
        raise click.UsageError(f"{kernel.__name__} needs {wanted}")
    sources = {name: parse_source(name, text) for name, text in ins.items()}
    numbers = {p.name: value_of(p, args[p.name]) for p in passed if p.name in args}
    arrays = _arrays([p for p in passed if _is_array(p)], sources, seed)
    defaults = {p.name: p.default for p in passed if p.has_default}
    values = {**defaults, **numbers, **arrays}
    return [values[p.name] for p in passed]


def _is_array(p: Declared) -> bool:
    return p.kind in ("array", "inout")


def _arrays(params: Sequence[Declared], sources: Mapping[str, Source], seed: int) -> dict[str, NDArray[Any]]:
    """Pictures last: what they become may follow from the element type of another array."""
    chosen: dict[DTypeVariable, DType | None] = {}
    made = {}
    for p in sorted(params, key=lambda p: _undecided(sources[p.name])):
        assert p.annotation is not None
        source, element = sources[p.name], p.annotation.element
        match source:
            case Fill():
                array = fill(source, seed, p.name)
            case File() if source.is_picture:
                array = _picture(p, source, chosen)
            case File():
                array = _file(p, source)
        if isinstance(element, DTypeVariable):
            chosen.setdefault(element, from_numpy(array.dtype))
        made[p.name] = array
    return made


def _undecided(source: Source) -> bool:
    return isinstance(source, File) and source.is_picture and source.dtype is None


def _file(p: Declared, source: File) -> NDArray[Any]:
    array = files.read_array(source.path, source.member, p.name)
    assert p.annotation is not None
    wanted = source.dtype or (
        p.annotation.element.scalar if not isinstance(p.annotation.element, DTypeVariable) else None
    )
    if wanted == BF16 and array.dtype.str == "|V2":  # how NumPy stores what ml_dtypes adds
        return array.view(BF16.numpy)
    if source.dtype is None or array.dtype == source.dtype.numpy:
        return array
    if array.dtype.kind not in "biufV" or array.dtype.names:
        raise fault("unreadable-file", f"{source.path} holds {array.dtype}, which is no number")
    with np.errstate(all="ignore"):
        return array.astype(source.dtype.numpy)


def _picture(p: Declared, source: File, chosen: Mapping[DTypeVariable, DType | None]) -> NDArray[Any]:
    a = p.annotation
    assert a is not None
    if source.dtype is not None:
        dtype = source.dtype
    elif isinstance(a.element, DTypeVariable):
        options = a.element.options
        usual = F32 if F32 in options else U8 if U8 in options else options[0]
        dtype = chosen.get(a.element) or usual
    else:
        dtype = a.element.scalar
    channels = _channels(p, a) if source.channels is None else source.channels
    return files.read_picture(source.path, channels, dtype)


def _channels(p: Declared, a: Annotation) -> int | None:
    """How a picture becomes what is declared: 0 is grey of two axes; None takes the picture as it is."""
    axes = a.axes or ()
    if isinstance(a.element, Vec):
        if a.element.lanes > 2 and _ranks(axes, 2):
            return a.element.lanes
    elif len(axes) == 1 and isinstance(axes[0], PackAxes):
        return None
    elif _ranks(axes, 2):
        return 0
    elif _ranks(axes, 3):
        last = axes[-1]
        return int(last.value) if isinstance(last, tree.Number) and last.value in (1, 4) else 3
    raise fault(
        "picture-does-not-fit",
        f"{p.name!r} is {written(p)}, and a picture is (H, W), (H, W, 3), or (H, W) of f32x3 or f32x4",
        "give a .npy file",
    )


def _ranks(axes: Sequence[Any], rank: int) -> bool:
    pack = any(isinstance(x, PackAxes) for x in axes)
    return len(axes) - pack <= rank if pack else len(axes) == rank


# ---- results ----


def parse_outs(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(result name or nothing, path) of each `--out`; a fault where a file could not be written."""
    made = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.isidentifier():
            name, path = "", text
        if files.suffix(path) not in (*files.ARRAYS, *files.PICTURES):
            raise click.UsageError(f"--out {text}: {path!r} is none of {files.KNOWN}")
        files.check_writable(path)
        made.append((name, path))
    paths = [os.path.realpath(path) for _, path in made]
    for path in paths:
        if paths.count(path) > 1:
            raise click.UsageError(f"--out names the file {os.path.relpath(path)!r} twice")
    return made


def check_outs(outs: Sequence[tuple[str, str]], program: Program) -> None:
    """UsageError where an `--out` names no result, or leaves open which; a fault where it cannot be a picture."""
    there = {a.name: a for a in program.outputs}
    for name, path in outs:
        if name and name not in there:
            raise click.UsageError(
                f"{program.name} has no result {name!r}; it gives {', '.join(there)} "
                f"(a file of that name is ./{name}={path})"
            )
        if files.suffix(path) == ".npz":
            continue
        if not name and len(there) > 1:
            raise click.UsageError(
                f"{program.name} has {len(there)} results ({', '.join(there)}): write --out "
                f"{program.outputs[0].name}={path}, or a .npz file for all"
            )
        if files.suffix(path) in files.PICTURES:
            _check_rank(there[name] if name else program.outputs[0])


def _check_rank(a: ArrayParam) -> None:
    rank = len(a.shape) + (a.lanes > 1)
    if rank not in (2, 3):
        raise fault(
            "picture-does-not-fit",
            f"{a.name} has {rank} axes, and a picture is (H, W) or (H, W, channels)",
            "write it as .npy",
        )


def write_out(name: str, path: str, results: Mapping[str, NDArray[Any]]) -> list[str]:
    """Writes one `--out`; gives the names of the results that it holds."""
    names = [name] if name else list(results)
    if files.suffix(path) == ".npz":
        files.write_arrays(path, {n: results[n] for n in names})
    elif files.suffix(path) == ".npy":
        files.write_array(path, results[names[0]])
    else:
        files.write_picture(path, names[0], results[names[0]])
    return names
