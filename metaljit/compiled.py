"""What a definition comes to: its parameters, and its program for given arguments; from disk, or worked out now.

Under a key on disk is only what this very compiler made of this very text, and of all that the text captures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .arguments import Argument
from .definitions import Definition
from .frozen import frozen
from .program import Program
from .runtime.cache import disk, key
from .source import TypeFault

VERSION = "0.1.0"


@frozen
class Parameter:
    """What a call needs to know of a parameter: `kind` is array, scalar, const, out or inout."""

    name: str
    kind: str
    has_default: bool
    default: Any
    keyword_only: bool = False


@cache
def identity() -> str:
    """The compiler's own identity, part of every key on disk: its version, and which files it is made of."""
    import metaljit.grammar

    home = Path(__file__).parent
    found = [VERSION]
    for folder in (
        home,
        home / "compiler",
        home / "compiler" / "lower",
        Path(metaljit.grammar.__file__).parent,
    ):
        with os.scandir(folder) as entries:
            for e in sorted(entries, key=lambda e: e.name):
                if e.is_file():
                    status = e.stat()
                    found.append(f"{e.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(found)


def program(definition: Definition, arguments: Mapping[str, Argument], of: tuple[Any, ...]) -> Program:
    """The program of a specialisation; `of` is what tells it from others. TypeFault with all that is wrong with it."""
    name = key("program", identity(), *map(str, of))
    found = disk().get(name)
    if found is not None:
        try:
            return Program.loads(found.decode())
        except ValueError:
            pass  # written by something else: compile anew
    from .compiler.pipeline import compile_kernel

    made = compile_kernel(definition.tree, definition.text.resolve, arguments)
    disk().put(name, made.dumps().encode())
    return made


def parameters(definition: Definition) -> tuple[Parameter, ...]:
    """The parameters, from disk where the text is known, else from the tree."""
    name = key("parameters", identity(), definition.fingerprint(), definition.name)
    found = disk().get(name)
    if found is not None:
        try:
            return tuple(Parameter(n, k, h, _untuple(d), o) for n, k, h, d, o in json.loads(found))
        except (ValueError, TypeError):
            pass
    from .compiler.lower.signature import declare
    from .compiler.lower.values import Fault

    try:
        signature = declare(definition.tree, definition.text.resolve)
    except Fault as e:
        raise TypeFault(e.diagnostic) from None
    made = tuple(
        Parameter(p.name, p.kind, p.has_default, p.default, p.keyword_only)
        for p in signature.params
        if p.kind != "out"
    )
    try:
        data = json.dumps([[p.name, p.kind, p.has_default, p.default, p.keyword_only] for p in made])
    except TypeError:
        return made  # a default that JSON has not, such as a NumPy scalar
    disk().put(name, data.encode())
    return made


def _untuple(value: Any) -> Any:
    return tuple(_untuple(v) for v in value) if isinstance(value, list) else value
