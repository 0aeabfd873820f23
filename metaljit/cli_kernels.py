"""Which kernel a command means, and for which types.

In: `FILE[:KERNEL]`, type specs such as `u=f32[H, W]`, values such as `radius=3`. Out: kernels, and for each the
`Kind`s to compile: the given types, or every declared dtype and packs of 0 to 4 axes. Data is read elsewhere.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from .cli_errors import fault, reason
from .compiler.lower.signature import Annotation, Declared, PackAxes, Signature, declare
from .compiler.lower.values import Fault
from .dtypes import BF16, DTYPES, TYPES, DType, Type, Vec
from .frozen import frozen
from .kernels import Function, Kernel, Spec
from .modules import KernelFile, load_kernels
from .source import TypeFault
from .symbols import DTypeVariable

RANKS = range(5)
MOST_KINDS = 256
_TYPE = re.compile(r"(\w+)\s*(?:\[(.*)\])?")
_AXIS = re.compile(r"\d+|[^\W\d]\w*|:|\?|\*")
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


# ---- files and kernels ----


def load(target: str) -> tuple[KernelFile, str]:
    """The file of `FILE[:KERNEL]`, and the kernel's name or nothing. UsageError where there is no such file."""
    path, colon, name = target.rpartition(":")
    if os.path.exists(target) or not colon or not name.isidentifier():
        path, name = target, ""
    if not os.path.isfile(path):
        what = "a folder" if os.path.isdir(path) else "no file" if not os.path.exists(path) else "not a file"
        near = f"; did you mean {path}.mjk?" if os.path.isfile(f"{path}.mjk") else ""
        raise click.UsageError(f"{path!r} is {what}{near}")
    if path.endswith(".py"):
        raise click.UsageError(
            f"{path!r} is a Python program: run it with `python {path}`; this command takes .mjk files"
        )
    try:
        return load_kernels(path), name
    except OSError as e:
        raise fault("unreadable-file", f"{path} cannot be read: {reason(e)}") from None


def chosen(file: KernelFile, name: str) -> list[Kernel]:
    """The kernel of that name; all of them where there is no name. UsageError where there is none."""
    kernels = list(file)
    there = ", ".join(k.__name__ for k in kernels)
    if not kernels:
        raise click.UsageError(f"{_shown(file)} holds no kernel; decorate a function with `@kernel`")
    if not name:
        return kernels
    found = [k for k in kernels if k.__name__ == name]
    if not found and isinstance(getattr(file, name, None), Function):
        raise click.UsageError(f"{name!r} is a device function, which only kernels call; kernels are {there}")
    if not found:
        close = difflib.get_close_matches(name, [k.__name__ for k in kernels], 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {there}"
        raise click.UsageError(f"{_shown(file)} has no kernel {name!r}; {hint}")
    return found


def the_kernel(target: str) -> Kernel:
    """The one kernel of `FILE[:KERNEL]`."""
    file, name = load(target)
    kernels = chosen(file, name)
    if len(kernels) > 1:
        names = ", ".join(k.__name__ for k in kernels)
        raise click.UsageError(
            f"{target} has several kernels ({names}); name one: {target}:{kernels[0].__name__}"
        )
    return kernels[0]


def _shown(file: KernelFile) -> str:
    return str(file.__metaljit_text__.name)


def signature(kernel: Kernel) -> Signature:
    """What the kernel declares; TypeFault where that does not check."""
    try:
        return declare(kernel.definition.tree, kernel.definition.text.resolve)
    except Fault as e:
        raise TypeFault(e.diagnostic) from None


def written(p: Declared) -> str:
    """A parameter's type as the user wrote it."""
    if p.annotation is None:
        return f"const[{p.const}]" if p.const else "const"
    return p.annotation.span.text


# ---- options ----


def pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """`name=value` options by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise click.UsageError(f"{option} takes name=value, not {text!r}; for example {option} {example}")
        if name in found:
            raise click.UsageError(f"{option} gives {name!r} twice")
        found[name] = value
    return found


def check_names(option: str, given: Iterable[str], params: Sequence[Declared], arrays: bool) -> None:
    """UsageError for a name that is no parameter of this kind."""
    for name in given:
        kind = next((p.kind for p in params if p.name == name), None)
        fitting = [p.name for p in params if p.kind != "out" and (p.kind in ("array", "inout")) == arrays]
        if name in fitting:
            continue
        if kind == "out":
            raise click.UsageError(f"{name!r} is a result, which the kernel makes: it is not passed")
        if kind is not None:
            other = "--arg" if arrays else "--in"
            raise click.UsageError(
                f"{name!r} is {'no' if arrays else 'an'} array: give it with {other}, not {option}"
            )
        close = difflib.get_close_matches(name, fitting, 1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"{option} takes {', '.join(fitting) or 'nothing here'}"
        )
        raise click.UsageError(f"the kernel has no parameter {name!r}; {hint}")


def value_of(p: Declared, text: str) -> Any:
    """The value of `--arg name=text`, read as the parameter's kind of value. UsageError where it is none."""
    if p.kind == "const":
        return _constant(p, text)
    assert p.annotation is not None
    element = p.annotation.element
    if isinstance(element, Vec):
        parts = text.strip().strip("()").split(",")
        if len(parts) != element.lanes:
            raise _no_value(
                p, text, f"{element.lanes} numbers such as {','.join('123'[: element.lanes] + '4')}"
            )
        return tuple(_number(p, element.scalar, part) for part in parts)
    return _number(p, element, text)


def _number(p: Declared, element: DType | DTypeVariable, text: str) -> Any:
    word = text.strip()
    if isinstance(element, DType) and element.kind == "bool":
        return _bool(p, text)
    try:
        return int(word, 0)
    except ValueError:
        pass
    if isinstance(element, DType) and element.is_integer:
        raise _no_value(p, text, "a whole number")
    try:
        return float(word)
    except ValueError:
        raise _no_value(p, text, "a number") from None


def _bool(p: Declared, text: str) -> bool:
    word = text.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise _no_value(p, text, "true or false")
    return word in _TRUE


def _constant(p: Declared, text: str) -> Any:
    match p.const:
        case "bool":
            return _bool(p, text)
        case "str":
            return text
        case "int" | "float":
            value = _literal(text)
            if isinstance(value, bool) or not isinstance(value, int if p.const == "int" else int | float):
                raise _no_value(p, text, "a whole number" if p.const == "int" else "a number")
            return value
        case "tuple":
            value = _literal(text)
            return value if isinstance(value, tuple) else (value,)
        case _:
            return _literal(text)


def _literal(text: str) -> Any:
    """A number, a bool, a tuple of such, or else a word; `reflect,wrap` is a tuple of words."""
    try:
        return _plain(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    word = text.strip()
    try:
        return float(word)  # inf, nan
    except ValueError:
        return tuple(map(_literal, word.strip("()").split(","))) if "," in word else word


def _plain(value: Any) -> Any:
    match value:
        case tuple() | list():
            return tuple(map(_plain, value))
        case bool() | int() | float() | str():
            return value
    raise ValueError(value)


def _no_value(p: Declared, text: str, wanted: str) -> click.UsageError:
    return click.UsageError(f"--arg {p.name}={text}: {p.name!r} is {written(p)} and takes {wanted}")


# ---- type specs ----


@frozen
class TypeSpec:
    """`f32[H, 5]`: an element type, and for each axis its extent or None; `axes` is None without brackets."""

    element: Type
    axes: tuple[int | None, ...] | None


def parse_type(text: str, where: str) -> TypeSpec:
    """UsageError where the text is no type."""
    found = _TYPE.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"{where}: {text!r} is no type; write one such as f32[1024,1024]")
    name, inner = found[1], found[2]
    if name not in TYPES:
        raise click.UsageError(f"{where}: there is no element type {name!r}; {_type_hint(name)}")
    if inner is None:
        return TypeSpec(TYPES[name], None)
    if inner.strip() in ("…", "..."):
        return TypeSpec(TYPES[name], None)
    words = [w.strip() for w in inner.split(",")] if inner.strip() else []
    for w in words:
        if not _AXIS.fullmatch(w):
            raise click.UsageError(
                f"{where}: {w!r} is no extent; write a whole number, or a name or ? for any"
            )
    return TypeSpec(TYPES[name], tuple(int(w) if w.isdecimal() else None for w in words))


def _type_hint(name: str) -> str:
    if name in ("f64", "float64", "double"):
        return "Apple GPUs have no 64-bit floats; use f32"
    of_numpy = {"bool_": "bool", "bfloat16": "bf16"} | {
        d.numpy.name: d.name for d in DTYPES.values() if d != BF16
    }
    close = [of_numpy[name]] if name in of_numpy else difflib.get_close_matches(name, DTYPES, 1)
    return (
        f"did you mean {close[0]}?" if close else f"there are {', '.join(DTYPES)}, and vectors such as f32x3"
    )


# ---- kinds ----


@frozen
class Kind:
    """One specialisation: what stands for a call's arguments, and the choices that make it, as text."""

    values: tuple[Any, ...]
    choices: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.choices)


@frozen
class Kinds:
    """The kinds of a kernel. `total` counts all; where that is too many, each choice is in one of `kinds`."""

    kinds: tuple[Kind, ...]
    total: int
    free: tuple[str, ...]


def kinds_of(kernel: Kernel, types: Mapping[str, TypeSpec], args: Mapping[str, str]) -> Kinds:
    """What the kernel can be compiled for; given types and values narrow it. UsageError asks for what is missing."""
    params = signature(kernel).params
    fixed = _Fixed.by(params, types)
    free: list[tuple[Any, list[Any], list[str]]] = []
    for p in params:
        a = p.annotation
        if a is None or p.kind == "out":
            continue
        if isinstance(a.element, DTypeVariable) and a.element not in fixed.dtypes:
            fixed.dtypes[a.element] = a.element.options[0]
            name = a.span.text.partition("[")[0].strip()
            free.append((a.element, list(a.element.options), [f"{name} = {d}" for d in a.element.options]))
        pack = _pack(a)
        if pack and pack not in fixed.packs:
            fixed.packs[pack] = 0
            free.append((pack, list(RANKS), [f"{pack} of {n} axes" for n in RANKS]))
    total = math.prod(len(options) for _, options, _ in free)
    made = []
    for at in _combinations([len(options) for _, options, _ in free], total):
        for (what, options, _), i in zip(free, at, strict=True):
            (fixed.dtypes if isinstance(what, DTypeVariable) else fixed.packs)[what] = options[i]
        values = tuple(_stand_in(p, types, args, fixed) for p in params if p.kind != "out")
        made.append(Kind(values, tuple(texts[i] for (_, _, texts), i in zip(free, at, strict=True))))
    return Kinds(tuple(made), total, tuple(_range(texts) for _, _, texts in free))


@dataclass
class _Fixed:
    """The dtype variables and packs that are decided."""

    dtypes: dict[Any, DType]
    packs: dict[Any, int]

    @staticmethod
    def by(params: Sequence[Declared], types: Mapping[str, TypeSpec]) -> _Fixed:
        fixed = _Fixed({}, {})
        for p in params:
            given, a = types.get(p.name), p.annotation
            if given is None or a is None:
                continue
            if isinstance(a.element, DTypeVariable):
                fixed.dtypes.setdefault(a.element, given.element.scalar)
            pack = _pack(a)
            if pack and given.axes is not None:
                fixed.packs.setdefault(pack, max(len(given.axes) - len(a.axes or ()) + 1, 0))
        return fixed


def _pack(a: Annotation) -> str | None:
    return next((x.pack for x in a.axes or () if isinstance(x, PackAxes)), None)


def _combinations(lengths: Sequence[int], total: int) -> Iterable[tuple[int, ...]]:
    if total <= MOST_KINDS:
        return itertools.product(*map(range, lengths))
    return [tuple(i % n for n in lengths) for i in range(max(lengths))]


def _range(texts: Sequence[str]) -> str:
    """`T = f16, f32` or `S of 0 to 4 axes`."""
    first, last = texts[0], texts[-1]
    if " = " in first:
        return ", ".join([first, *(t.split(" = ")[1] for t in texts[1:])])
    name, _, count = first.partition(" of ")
    return f"{name} of {count.split()[0]} to {last.split()[-2]} axes"


def _stand_in(p: Declared, types: Mapping[str, TypeSpec], args: Mapping[str, str], fixed: _Fixed) -> Any:
    """A value that has the types of an argument."""
    if p.kind == "const":
        if p.name in args:
            return value_of(p, args[p.name])
        if not p.has_default:
            raise click.UsageError(
                f"{p.name!r} is {written(p)} and has no default: give its value with --arg {p.name}=…"
            )
        return p.default
    assert p.annotation is not None
    a = p.annotation
    element: Type = fixed.dtypes[a.element] if isinstance(a.element, DTypeVariable) else a.element
    if a.axes is None:
        zero = element.numpy.type(0) if isinstance(a.element, DTypeVariable) else 0  # type: ignore[union-attr]
        return zero if isinstance(element, DType) else (0,) * element.lanes
    pack = _pack(a)
    rank = len(a.axes) + (fixed.packs[pack] - 1 if pack else 0)
    given = types.get(p.name)
    if given is not None:
        element = given.element
        rank = rank if given.axes is None else len(given.axes)
    lanes = (element.lanes,) if isinstance(element, Vec) else ()
    return Spec((None,) * rank + lanes, element.scalar.numpy)


def the_kind(kernel: Kernel, types: Mapping[str, TypeSpec], args: Mapping[str, str]) -> Kind:
    """The one kind; UsageError where the declaration leaves a choice that nothing decides."""
    found = kinds_of(kernel, types, args)
    if found.total == 1:
        return found.kinds[0]
    names = [p.name for p in signature(kernel).params if p.kind in ("array", "inout")]
    raise click.UsageError(
        f"{kernel.__name__} can be compiled for {'; '.join(found.free)}: "
        f"choose by a type, such as --in {names[0] if names else 'x'}=f32[1024,1024]"
    )
