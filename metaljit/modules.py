"""`.mjk` files: reading, imports, and the kernels and functions in them.

In: a path, or a text. Out: a `KernelFile` whose attributes are the file's kernels and functions. Nothing in a
file is ever run by Python: top-level values are constants that the front end evaluates. An import reaches the
files beside this one, or the standard library, and nothing else.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn

from . import outlines
from .definitions import Definition
from .frozen import mutable
from .kernels import Function, Kernel
from .source import Diagnostic, Source, Span, SyntaxFault, shown_path
from .symbols import MISSING, MJK_NAMES, Builtin, Namespace

SIZE_LIMIT = 1 << 20
DEPTH_LIMIT = 32  # files that import each other in a chain
_HOST_MODULES = ("math", "numpy")


@mutable
class Unit:
    """One file's text and names while it is loaded. `within` is the folder that imports may not leave."""

    source: Source
    folder: Path | None
    docstring: str | None
    members: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # by file: its own, and those it imports

    def lookup(self, name: str) -> Any:
        if name in self.members:
            return self.members[name]
        if name in MJK_NAMES:
            return MJK_NAMES[name]
        from .operations import OPERATIONS

        return OPERATIONS.get(name, MISSING)


@mutable
class Loading:
    """One `load_kernels`: the chain of files that are being read, and those read already, each once."""

    chain: list[Path] = field(default_factory=list)
    done: dict[Path, Unit] = field(default_factory=dict)


class KernelFile:
    """The kernels and functions of a `.mjk` text, as attributes, in the order of the text."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.__doc__ = unit.docstring
        members = {n: m for n, m in unit.members.items() if isinstance(m, Kernel | Function)}
        self.__metaljit_text__ = Namespace(unit.source.name, dict(unit.members))
        self._members = members

    def __getattr__(self, name: str) -> Any:
        members = self.__dict__.get("_members", {})
        if name in members:
            return members[name]
        there = ", ".join(members) or "nothing"
        raise AttributeError(f"{self.__dict__['_unit'].source.name} defines no {name!r}; it has {there}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._members]

    def __iter__(self) -> Iterator[Kernel]:
        """The kernels."""
        return (m for m in self._members.values() if isinstance(m, Kernel))

    def __repr__(self) -> str:
        return f"<KernelFile {self._unit.source.name}: {', '.join(self._members)}>"


def load_kernels(path: str | os.PathLike[str]) -> KernelFile:
    """The kernels of a `.mjk` file. SyntaxFault where its text is none; OSError where it cannot be read."""
    file = Path(path)
    return KernelFile(_load(file, file.parent.resolve(), Loading(), shown_path(str(file))))


def kernel_from_text(text: str, name: str = "<text>") -> Kernel:
    """The last kernel of a text in the language of `.mjk` files."""
    kernels = list(KernelFile(_read(Source(name, text), None, Loading())))
    if not kernels:
        raise SyntaxFault(
            Diagnostic("no-kernel", f"{name} holds no kernel", help="decorate a function with `@kernel`")
        )
    return kernels[-1]


def _load(file: Path, within: Path, loading: Loading, shown: str, imported: Span | None = None) -> Unit:
    try:
        real = file.resolve()
    except RuntimeError as e:  # before Python 3.13: a link that leads to itself
        raise OSError(str(e)) from None
    if imported is not None and real.parent != within:
        _refuse_import(imported, f"{file.name!r} leads out of the folder")
    if real in loading.chain:
        _refuse_import(imported, f"{file.name!r} imports itself, through {len(loading.chain)} file(s)")
    if len(loading.chain) == DEPTH_LIMIT:
        _refuse_import(imported, f"{DEPTH_LIMIT} files import one another in a chain, and it is the next")
    if real in loading.done:
        return loading.done[real]
    with real.open("rb") as opened:
        raw = opened.read(SIZE_LIMIT + 1)  # a device has no size
    if len(raw) > SIZE_LIMIT:
        raise SyntaxFault(
            Diagnostic("file-too-large", f"{shown} is larger than {SIZE_LIMIT} bytes, and no file may be")
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise SyntaxFault(
            Diagnostic("not-utf8", f"{shown} is not UTF-8 text: {e.reason} at byte {e.start}")
        ) from None
    loading.chain.append(real)
    loading.done[real] = _read(Source(shown, text), within, loading)
    loading.chain.pop()
    return loading.done[real]


def _read(source: Source, within: Path | None, loading: Loading) -> Unit:
    outline = outlines.read(source)
    unit = Unit(source, within, outline.docstring)
    unit.texts[source.name] = source.text
    for step in outline.steps:
        match step:
            case outlines.ImportStep():
                _import(unit, step, within, loading)
            case outlines.ConstantStep(name, value):
                unit.members[name] = value
            case outlines.PendingStep(index):
                _constant(unit, outlines.module(source).body[index])
            case outlines.FunctionStep(name, decorators):
                unit.members[name] = _definition(unit, name, decorators)
    return unit


# ---- definitions and constants ----


def _definition(unit: Unit, name: str, decorators: Sequence[outlines.Place]) -> Kernel | Function:
    is_kernel = any([_is_kernel(unit, d) for d in decorators])
    definition = Definition(
        name,
        is_kernel,
        lambda: unit.source,
        lambda source: outlines.function(source, name),
        unit.lookup,
        lambda: "\n\0".join(f"{name}\n{text}" for name, text in unit.texts.items()),
        is_fixed=True,
    )
    return Kernel(definition) if is_kernel else Function(definition)


def _is_kernel(unit: Unit, place: outlines.Place) -> bool:
    """Whether a decorator, given by where its name stands, is `kernel`; else it must be `function`."""
    span = Span(unit.source, *place)
    first, *rest = span.text.replace(" ", "").split(".")
    meant = unit.lookup(first)
    for part in rest:
        meant = meant.members.get(part, MISSING) if isinstance(meant, Namespace) else MISSING
    if not isinstance(meant, Builtin) or meant.name not in ("kernel", "function"):
        raise SyntaxFault(
            Diagnostic(
                "unknown-decorator",
                f"{span.text!r} is no decorator of the language",
                span,
                help="there are `@kernel` and `@function`",
            )
        )
    return meant.name == "kernel"


def _constant(unit: Unit, node: Any) -> None:
    """A top-level value that rests on imported names."""
    from .compiler.lower.values import Fault

    try:
        for name, value in outlines.constants(node, unit.lookup):
            unit.members[name] = value
    except Fault as e:
        raise SyntaxFault(e.diagnostic) from None


# ---- imports ----


def _refuse_import(span: Span | None, why: str) -> NoReturn:
    raise SyntaxFault(
        Diagnostic(
            "import-outside",
            f"this import is not allowed: {why}",
            span,
            help="a .mjk file imports from files beside it (`from util import f`) and from `stdlib`",
        )
    )


def _import(unit: Unit, step: outlines.ImportStep, within: Path | None, loading: Loading) -> None:
    first, *rest = step.module.split(".") if step.module else [""]
    if step.level == 0 and first in ("metaljit", "__future__"):
        _import_language(unit, step)
    elif step.level == 0 and first in _HOST_MODULES and not rest:
        _import_host(unit, step, first)
    else:
        _import_file(unit, step, within, loading)


def _import_language(unit: Unit, step: outlines.ImportStep) -> None:
    """`import metaljit as mj`, `from metaljit.lang import f32 as real`: the names are built in."""
    if not step.names:
        unit.members[step.alias or "metaljit"] = _language()
        return
    if step.module == "__future__":
        return
    for n in step.names:
        found = _language() if n.name == "lang" else unit.lookup(n.name)
        if found is MISSING:
            place = Span(unit.source, *n.place)
            raise SyntaxFault(Diagnostic("unknown-name", f"the language has no name {n.name!r}", place))
        unit.members[n.alias or n.name] = found


def _language() -> Namespace:
    from .operations import OPERATIONS

    names: dict[str, Any] = {**OPERATIONS, **MJK_NAMES}
    return Namespace("metaljit", names | {"lang": Namespace("metaljit.lang", names)})


def _import_host(unit: Unit, step: outlines.ImportStep, name: str) -> None:
    """`import math`: its functions are known by identity, its numbers by value; nothing of it is called."""
    import math

    import numpy

    module: types.ModuleType = math if name == "math" else numpy
    if not step.names:
        unit.members[step.alias or name] = module
    for n in step.names:
        if not hasattr(module, n.name):
            place = Span(unit.source, *n.place)
            raise SyntaxFault(Diagnostic("unknown-name", f"{name} has no {n.name!r}", place))
        unit.members[n.alias or n.name] = getattr(module, n.name)


def _import_file(unit: Unit, step: outlines.ImportStep, within: Path | None, loading: Loading) -> None:
    span = Span(unit.source, *step.place)
    first, *rest = step.module.split(".") if step.module else [""]
    if step.level > 1:
        _refuse_import(span, "it climbs out of the folder")
    if first == "stdlib" and step.level == 0 and len(rest) <= 1:
        folder, stem = _stdlib(), rest[0] if rest else ""
    elif within is None:
        _refuse_import(span, "a text has no files beside it")
    elif rest:
        _refuse_import(span, f"{step.module!r} is no file beside this one")
    else:
        folder, stem = within, first
    if not stem:  # from . import a, b
        for n in step.names:
            other = _other(unit, folder, n.name, Span(unit.source, *n.place), loading)
            unit.members[n.alias or n.name] = KernelFile(other)
        return
    other = _other(unit, folder, stem, span, loading)
    if not step.names:
        file = KernelFile(other)
        inside = folder == _stdlib() and step.alias is None
        unit.members[step.alias or first] = Namespace("stdlib", {stem: file}) if inside else file
    for n in step.names:
        if n.name not in other.members:
            place = Span(unit.source, *n.place)
            raise SyntaxFault(Diagnostic("unknown-name", f"{stem}.mjk defines no {n.name!r}", place))
        unit.members[n.alias or n.name] = other.members[n.name]


def _other(unit: Unit, folder: Path, stem: str, span: Span, loading: Loading) -> Unit:
    file = folder / f"{stem}.mjk"
    if not file.is_file():
        there = ", ".join(sorted(f.stem for f in folder.glob("*.mjk"))) or "no other file"
        _refuse_import(span, f"there is no file {stem}.mjk here, but {there}")
    other = _load(file, folder, loading, shown_path(str(file)), span)
    unit.texts |= other.texts
    return other


def _stdlib() -> Path:
    from importlib import resources

    return Path(str(resources.files("metaljit.stdlib_ops"))).resolve()


def stdlib(name: str) -> KernelFile:
    """A file of the standard library, `mj.stdlib.NAME`."""
    file = _stdlib() / f"{name}.mjk"
    if not file.is_file():
        raise AttributeError(f"the standard library has no {name!r}")
    return KernelFile(_load(file, file.parent, Loading(), f"stdlib/{name}.mjk"))
