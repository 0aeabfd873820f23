"""What stands at the top level of a `.mjk` text, kept on disk so that a known text needs no parser.

In: a text. Out: its `Outline`: imports, constants and functions in order, with the places that an error would
point at. Trees of functions are parsed when they are compiled. What an import brings is left to `modules`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from .dtypes import DTYPES, TYPES, DType, Vec
from .frozen import frozen
from .source import Source, SyntaxFault
from .symbols import MISSING, MJK_NAMES, Builtin, Dim, DTypeVariable, Pack, dims, dtypes

if TYPE_CHECKING:
    from .grammar import tree

Place: TypeAlias = tuple[int, int]


@frozen
class ImportedName:
    name: str
    alias: str | None
    place: Place


@frozen
class ImportStep:
    module: str
    alias: str | None
    names: tuple[ImportedName, ...]
    level: int
    place: Place


@frozen
class ConstantStep:
    name: str
    value: Any


@frozen
class PendingStep:
    """A value that rests on imported names: statement `index` of the text, evaluated after the imports."""

    index: int


@frozen
class FunctionStep:
    """`decorators`: where the decorators' names stand."""

    name: str
    decorators: tuple[Place, ...]


Step: TypeAlias = ImportStep | ConstantStep | PendingStep | FunctionStep


@frozen
class Outline:
    docstring: str | None
    steps: tuple[Step, ...]


@lru_cache(64)
def module(source: Source) -> tree.Module:
    """The whole text's tree; parsed once for a text."""
    from .grammar.parser import parse_module

    return parse_module(source)


def function(source: Source, name: str) -> tree.Function:
    """The last function of that name."""
    from .grammar import tree

    found = [n for n in module(source).body if isinstance(n, tree.Function) and n.name == name]
    return found[-1]


def read(source: Source) -> Outline:
    """The outline of a text; SyntaxFault where the text is none."""
    from .compiled import identity
    from .runtime.cache import disk, key

    name = key("outline", identity(), source.text)
    found = disk().get(name)
    if found is not None:
        try:
            return _decode(json.loads(found))
        except (ValueError, TypeError, KeyError, IndexError):
            pass  # written by something else
    outline = _outline(source)
    disk().put(name, json.dumps(_encode(outline)).encode())
    return outline


def _outline(source: Source) -> Outline:
    from .compiler.lower.values import Fault
    from .grammar import tree

    parsed = module(source)
    steps: list[Step] = []
    values: dict[str, Any] = {}
    imported: set[str] = set()

    def lookup(name: str) -> Any:
        if name in imported:
            raise _ImportedError
        return values.get(name, MJK_NAMES.get(name, MISSING))

    for index, node in enumerate(parsed.body):
        match node:
            case tree.Import():
                step = _import_step(node)
                steps.append(step)
                imported |= {n.alias or n.name for n in step.names} or {
                    step.alias or step.module.split(".")[0]
                }
            case tree.Function():
                heads = [d.func if isinstance(d, tree.Call) else d for d in node.decorators]
                steps.append(FunctionStep(node.name, tuple((h.span.start, h.span.end) for h in heads)))
            case tree.Assign():
                try:
                    found = list(constants(node, lookup))
                except _ImportedError:
                    steps.append(PendingStep(index))
                    continue
                except Fault as e:
                    raise SyntaxFault(e.diagnostic) from None
                values |= dict(found)
                steps += [ConstantStep(n, v) for n, v in found]
    return Outline(parsed.docstring, tuple(steps))


class _ImportedError(Exception):
    """A constant asks for an imported name."""


def _import_step(node: tree.Import) -> ImportStep:
    names = tuple(ImportedName(n.name, n.alias, (n.span.start, n.span.end)) for n in node.names)
    return ImportStep(node.module, node.alias, names, node.level, (node.span.start, node.span.end))


# ---- constants ----


def constants(node: tree.Assign, lookup: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    """The names that a top-level assignment binds, with their values; a Fault where it is no constant."""
    from .compiler.lower.signature import Names, constant
    from .grammar import tree

    names = Names(lookup)
    content: Any = None
    match node.value:
        case tree.Call(func, args, ()) if (made := _declaration(names, func, args)) is not None:
            content = made
        case value:
            content = constant(value, names)
    for target in node.targets:
        yield from _bindings(target, content)


def _declaration(names: Any, func: tree.Expr, args: Any) -> Any:
    """The value of `dims("…")` or `dtypes("…")`, None for another call."""
    from .compiler.lower.values import fault
    from .grammar import tree

    found = names.lookup(func)
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


def _bindings(target: Any, content: Any) -> Iterator[tuple[str, Any]]:
    from .compiler.lower.values import fault
    from .grammar import tree

    match target:
        case tree.Name(name):
            yield name, content
        case tree.TupleTarget(items) if isinstance(content, tuple) and len(items) == len(content):
            for item, part in zip(items, content, strict=True):
                yield from _bindings(item, part)
        case _:
            fault(
                "bad-target", f"{target.span.text!r} cannot be given this value at the top level", target.span
            )


# ---- on disk ----


def _encode(outline: Outline) -> list[Any]:
    steps: list[list[Any]] = []
    for s in outline.steps:
        match s:
            case ImportStep(name, alias, names, level, place):
                steps.append(
                    ["import", name, alias, [[n.name, n.alias, n.place] for n in names], level, place]
                )
            case ConstantStep(name, value):
                steps.append(["constant", name, _encode_value(value)])
            case PendingStep(index):
                steps.append(["pending", index])
            case FunctionStep(name, decorators):
                steps.append(["function", name, decorators])
    return [outline.docstring, steps]


def _decode(data: list[Any]) -> Outline:
    docstring, listed = data
    steps: list[Step] = []
    for kind, *rest in listed:
        match kind, rest:
            case "import", [name, alias, names, level, place]:
                brought = tuple(ImportedName(n, a, tuple(p)) for n, a, p in names)
                steps.append(ImportStep(name, alias, brought, level, tuple(place)))
            case "constant", [name, value]:
                steps.append(ConstantStep(name, _decode_value(value)))
            case "pending", [index]:
                steps.append(PendingStep(index))
            case "function", [name, decorators]:
                steps.append(FunctionStep(name, tuple((d[0], d[1]) for d in decorators)))
            case _:
                raise ValueError(kind)
    return Outline(docstring, tuple(steps))


def _encode_value(value: Any) -> list[Any]:
    match value:
        case Dim(name):
            return ["dim", name]
        case Pack(name):
            return ["pack", name]
        case DTypeVariable(name, options):
            return ["dtypes", name, [d.name for d in options]]
        case DType() | Vec():
            return ["type", value.name]
        case tuple():
            return ["tuple", [_encode_value(v) for v in value]]
        case float():
            return ["float", value.hex()]
        case _:
            return ["plain", value]


def _decode_value(data: list[Any]) -> Any:
    kind, content, *more = data
    match kind:
        case "dim":
            return Dim(content)
        case "pack":
            return Pack(content)
        case "dtypes":
            return DTypeVariable(content, tuple(DTYPES[n] for n in more[0]))
        case "type":
            return TYPES[content]
        case "tuple":
            return tuple(_decode_value(v) for v in content)
        case "float":
            return float.fromhex(content)
        case _:
            return content
