"""`.mjk` files: reading, imports, and the kernels and functions in them.

In: a path, or a text. Out: a `KernelFile` whose attributes are the file's kernels and functions. Nothing in a
file is ever run by Python: top-level values are constants that the front end evaluates. An import reaches the
files beside this one, or the standard library, and nothing else.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .definitions import Definition
from .kernels import Function, Kernel
from .source import Diagnostic, Source, Span, SyntaxFault
from .symbols import MISSING, MJK_NAMES, Namespace, dims, dtypes

SIZE_LIMIT = 1 << 20
_HOST_MODULES = ("math", "numpy")


@dataclass(eq=False)
class Unit:
    """One file's text and names while it is loaded. `within` is the folder that imports may not leave."""

    source: Source
    folder: Path | None
    tree: Any
    members: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def lookup(self, name: str) -> Any:
        if name in self.members:
            return self.members[name]
        if name in MJK_NAMES:
            return MJK_NAMES[name]
        from .operations import OPERATIONS

        return OPERATIONS.get(name, MISSING)


class KernelFile:
    """The kernels and functions of a `.mjk` text, as attributes, in the order of the text."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self.__doc__ = unit.tree.docstring
        members = {n: m for n, m in unit.members.items() if isinstance(m, Kernel | Function)}
        self.__metaljit_text__ = Namespace(unit.source.name, members)
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
    return KernelFile(_load(file, file.parent.resolve(), [], _shown(file)))


def kernel_from_text(text: str, name: str = "<text>") -> Kernel:
    """The last kernel of a text in the language of `.mjk` files."""
    kernels = list(KernelFile(_read(Source(name, text), None, [])))
    if not kernels:
        raise SyntaxFault(
            Diagnostic("no-kernel", f"{name} holds no kernel", help="decorate a function with `@kernel`")
        )
    return kernels[-1]


def _shown(file: Path) -> str:
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return str(file)
    return relative if not relative.startswith("..") else str(file)


def _load(file: Path, within: Path, loading: list[Path], shown: str, imported: Span | None = None) -> Unit:
    real = file.resolve()
    if imported is not None and real.parent != within:
        _refuse_import(imported, f"{file.name!r} leads out of the folder")
    if real in loading:
        _refuse_import(imported, f"{file.name!r} imports itself, through {len(loading)} file(s)")
    size = real.stat().st_size
    if size > SIZE_LIMIT:
        raise SyntaxFault(
            Diagnostic("file-too-large", f"{shown} has {size} bytes, and a file has at most {SIZE_LIMIT}")
        )
    try:
        text = real.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise SyntaxFault(
            Diagnostic("not-utf8", f"{shown} is not UTF-8 text: {e.reason} at byte {e.start}")
        ) from None
    return _read(Source(shown, text), within, [*loading, real])


def _read(source: Source, within: Path | None, loading: list[Path]) -> Unit:
    from .grammar import tree
    from .grammar.parser import parse_module

    module = parse_module(source)
    unit = Unit(source, within, module)
    unit.texts.append(source.text)
    for node in module.body:
        match node:
            case tree.Import():
                _import(unit, node, within, loading)
            case tree.Assign(targets, value):
                _constant(unit, targets, value)
            case tree.Function():
                unit.members[node.name] = _definition(unit, node)
    return unit


# ---- definitions and constants ----


def _definition(unit: Unit, node: Any) -> Kernel | Function:
    is_kernel = _decorated_kernel(unit, node)
    definition = Definition(
        node.name,
        is_kernel,
        lambda: unit.source,
        lambda source: node,
        unit.lookup,
        lambda: "\n\0".join(unit.texts),
    )
    return Kernel(definition) if is_kernel else Function(definition)


def _decorated_kernel(unit: Unit, node: Any) -> bool:
    from .compiler.lower.signature import Names
    from .compiler.lower.values import Fault
    from .grammar import tree
    from .symbols import Builtin

    found = False
    for decorator in node.decorators:
        head = decorator.func if isinstance(decorator, tree.Call) else decorator
        try:
            meant = Names(unit.lookup).lookup(head)
        except Fault as e:
            raise SyntaxFault(e.diagnostic) from None
        if not isinstance(meant, Builtin) or meant.name not in ("kernel", "function"):
            raise SyntaxFault(
                Diagnostic(
                    "unknown-decorator",
                    f"{head.span.text!r} is no decorator of the language",
                    decorator.span,
                    help="there are `@kernel` and `@function`",
                )  # fmt: skip
            )
        found = found or meant.name == "kernel"
    return found


def _constant(unit: Unit, targets: Any, value: Any) -> None:
    from .compiler.lower.signature import Names, constant
    from .compiler.lower.values import Fault
    from .grammar import tree

    try:
        match value:
            case tree.Call(func, args, ()) if (made := _declaration(unit, func, args)) is not None:
                content = made
            case _:
                content = constant(value, Names(unit.lookup))
        for target in targets:
            _bind(unit, target, content)
    except Fault as e:
        raise SyntaxFault(e.diagnostic) from None


def _declaration(unit: Unit, func: Any, args: Any) -> Any:
    """The value of `dims("…")` or `dtypes("…")`, None for another call."""
    from .compiler.lower.signature import Names
    from .compiler.lower.values import fault
    from .grammar import tree
    from .symbols import Builtin

    found = Names(unit.lookup).lookup(func)
    if not isinstance(found, Builtin) or found.name not in ("dims", "dtypes"):
        return None
    words = [a.value for a in args if isinstance(a, tree.String)]
    if len(words) != len(args) or not words:
        fault(
            "bad-constant",
            f"{found.name} takes names in a string",
            func.span,
            help='for example `H, W = dims("H W")`',
        )
    try:
        return dims(" ".join(words)) if found.name == "dims" else dtypes(*words)
    except ValueError as e:
        fault("bad-constant", str(e), func.span)


def _bind(unit: Unit, target: Any, content: Any) -> None:
    from .compiler.lower.values import fault
    from .grammar import tree

    match target:
        case tree.Name(name):
            unit.members[name] = content
        case tree.TupleTarget(items) if isinstance(content, tuple) and len(items) == len(content):
            for item, part in zip(items, content, strict=True):
                _bind(unit, item, part)
        case _:
            fault(
                "bad-target", f"{target.span.text!r} cannot be given this value at the top level", target.span
            )


# ---- imports ----


def _refuse_import(span: Span | None, why: str) -> None:
    raise SyntaxFault(
        Diagnostic(
            "import-outside",
            f"this import is not allowed: {why}",
            span,
            help="a .mjk file imports from files beside it (`from util import f`) and from `stdlib`",
        )
    )


def _import(unit: Unit, node: Any, within: Path | None, loading: list[Path]) -> None:
    first, *rest = node.module.split(".") if node.module else [""]
    if node.level == 0 and first in ("metaljit", "__future__"):
        _import_language(unit, node)
    elif node.level == 0 and first in _HOST_MODULES and not rest:
        _import_host(unit, node, first)
    else:
        _import_file(unit, node, within, loading)


def _import_language(unit: Unit, node: Any) -> None:
    """`import metaljit as mj`, `from metaljit.lang import f32 as real`: the names are built in."""
    if not node.names:
        unit.members[node.alias or "metaljit"] = _language()
        return
    if node.module == "__future__":
        return
    for n in node.names:
        found = Namespace("metaljit", {}) if n.name == "lang" else unit.lookup(n.name)
        if found is MISSING:
            raise SyntaxFault(Diagnostic("unknown-name", f"the language has no name {n.name!r}", n.span))
        unit.members[n.alias or n.name] = _language() if n.name == "lang" else found


def _language() -> Namespace:
    from .operations import OPERATIONS

    names: dict[str, Any] = {**OPERATIONS, **MJK_NAMES}
    return Namespace("metaljit", names | {"lang": Namespace("metaljit.lang", names)})


def _import_host(unit: Unit, node: Any, name: str) -> None:
    """`import math`: its functions are known by identity, its numbers by value; nothing of it is called."""
    import math

    import numpy

    module: types.ModuleType = math if name == "math" else numpy
    if not node.names:
        unit.members[node.alias or name] = module
    for n in node.names:
        unit.members[n.alias or n.name] = getattr(module, n.name, MISSING)


def _import_file(unit: Unit, node: Any, within: Path | None, loading: list[Path]) -> None:
    first, *rest = node.module.split(".") if node.module else [""]
    if node.level > 1:
        _refuse_import(node.span, "it climbs out of the folder")
    if first == "stdlib" and node.level == 0 and len(rest) == 1:
        folder, stem = _stdlib(), rest[0]
    elif within is None:
        _refuse_import(node.span, "a text has no files beside it")
        return
    elif rest:
        _refuse_import(node.span, f"{node.module!r} is no file beside this one")
        return
    else:
        folder, stem = within, first
    if not stem:  # from . import a, b
        for n in node.names:
            other = _other(unit, folder, n.name, n.span, loading)
            unit.members[n.alias or n.name] = KernelFile(other)
        return
    other = _other(unit, folder, stem, node.span, loading)
    if not node.names:
        unit.members[node.alias or stem] = KernelFile(other)
    for n in node.names:
        if n.name not in other.members:
            raise SyntaxFault(Diagnostic("unknown-name", f"{stem}.mjk defines no {n.name!r}", n.span))
        unit.members[n.alias or n.name] = other.members[n.name]


def _other(unit: Unit, folder: Path, stem: str, span: Span, loading: list[Path]) -> Unit:
    file = folder / f"{stem}.mjk"
    if not file.is_file():
        _refuse_import(span, f"there is no file {stem}.mjk")
    other = _load(file, folder, loading, _shown(file), span)
    unit.texts += [f"{file.name}", *other.texts]
    return other


def _stdlib() -> Path:
    from importlib import resources

    return Path(str(resources.files("metaljit.stdlib_ops"))).resolve()


def stdlib(name: str) -> KernelFile:
    """A file of the standard library, `mj.stdlib.NAME`."""
    file = _stdlib() / f"{name}.mjk"
    if not file.is_file():
        raise AttributeError(f"the standard library has no {name!r}")
    return KernelFile(_load(file, file.parent, [], f"stdlib/{name}.mjk"))
