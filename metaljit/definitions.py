"""A kernel's or function's text and the scope in which its names stand: the two doors, made equal.

In: a Python function, or a `def` of a `.mjk` file. Out: a `Definition`: its source (read when needed), its tree
(parsed when needed), how its free names resolve, and a fingerprint of all that its meaning depends on, which is
found without the parser.
"""

from __future__ import annotations

import builtins
import linecache
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from .dtypes import DType, Vec
from .frozen import mutable
from .runtime.cache import key
from .source import Diagnostic, Source, SyntaxFault, shown_path
from .symbols import MISSING, Builtin, Dim, DTypeVariable, FunctionText, Namespace, Pack, mark

_HEADER = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")
_INDENT = re.compile(r"[ \t]*")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*")
# How to get a captured object: a function and the name to call it with.
Watch: TypeAlias = tuple[Callable[[str], Any], str]
_STABLE = (Builtin, DType, Vec, Dim, Pack, DTypeVariable)


@mutable
class Definition:
    """One `def`. `lookup` finds a free name's Python object, or MISSING."""

    name: str
    is_kernel: bool
    read: Callable[[], Source]
    parse: Callable[[Source], Any]
    lookup: Callable[[str], Any]
    extra: Callable[[], str] = field(default=lambda: "")
    locals: frozenset[str] = frozenset()
    docstring: Callable[[], str | None] = field(default=lambda: None)
    globals: Mapping[str, Any] | None = None
    around: frozenset[str] = frozenset()  # names of enclosing functions, which hide globals
    is_fixed: bool = False  # what its names stand for is settled by the texts in `extra`, once and for all

    @cached_property
    def source(self) -> Source:
        return self.read()

    @cached_property
    def tree(self) -> Any:
        return self.parse(self.source)

    @cached_property
    def text(self) -> FunctionText:
        """What the compiler takes."""
        key = f"{self.source.name}:{self.source.first_line}:{self.name}:{id(self)}"
        return FunctionText(self.name, key, lambda: self.tree, self.lookup, self.is_kernel)

    @cached_property
    def mentioned(self) -> tuple[str, ...]:
        """Names, also dotted, that occur in the text: more than are captured, never fewer."""
        found = {re.sub(r"\s", "", m) for m in _DOTTED.findall(self.source.text)}
        return tuple(sorted(n for n in found if n.partition(".")[0] not in self.locals))

    def captured(self) -> Iterator[tuple[str, Any]]:
        """Each mentioned name that stands for something here, with what it stands for."""
        for name in self.mentioned:
            value = self._reach(name)
            if value is not MISSING:
                yield name, value

    def watch(self, name: str) -> Watch:
        """The quickest way to a captured object."""
        if self.globals is not None and name in self.globals and name not in self.around:
            return self.globals.get, name
        return self._reach, name

    def _reach(self, dotted: str) -> Any:
        first, *rest = dotted.split(".")
        value = self.lookup(first)
        for part in rest:
            if isinstance(value, Namespace):
                value = value.members.get(part, MISSING)
            elif isinstance(value, types.ModuleType):
                value = getattr(value, part, MISSING)
            else:
                return value
        return value

    def fingerprint(self) -> str:
        """A digest of the text, its place, and what it captures, through the functions it calls."""
        fields: list[str] = []
        _describe(self, fields, {})
        return key(*fields)


def is_fixed(name: str, value: Any) -> bool:
    """Whether a captured object is no value that could change: a symbol of the language, a built-in, a module."""
    return (
        isinstance(value, (*_STABLE, types.ModuleType))
        or getattr(builtins, name, MISSING) is value
        or mark(value, "__metaljit_builtin__") is not None
    )


def watched(definition: Definition) -> list[Watch]:
    """How to get the captured objects that may change, in this definition and in the functions it uses."""
    found: list[Watch] = []
    todo, seen = [definition], {id(definition)}
    while todo:
        d = todo.pop()
        for name, value in d.captured() if not d.is_fixed else ():
            if is_fixed(name, value):
                continue
            found.append(d.watch(name))
            inner = definition_of(value)
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                todo.append(inner)
    return found


def definition_of(value: Any) -> Definition | None:
    """The definition behind a kernel or function object."""
    found = mark(value, "definition")
    return found if isinstance(found, Definition) else None


def _describe(definition: Definition, fields: list[str], seen: dict[int, int]) -> None:
    if id(definition) in seen:
        fields.append(f"again {seen[id(definition)]}")
        return
    seen[id(definition)] = len(seen)
    source = definition.source
    fields += [
        source.name,
        str(source.first_line),
        source.indent,
        source.text,
        definition.name,
        definition.extra(),
    ]
    for name, value in definition.captured() if not definition.is_fixed else ():
        fields.append(name)
        inner = definition_of(value)
        if inner is not None:
            _describe(inner, fields, seen)
        else:
            fields.append(describe_value(value))


def describe_value(value: Any) -> str:
    """A captured value as text: equal texts, equal meaning."""
    match value:
        case int() if not isinstance(value, bool):
            return f"int {value:x}"  # of any length: Python refuses to write long ones in decimal
        case bool() | float() | str() | None:
            return f"{type(value).__name__} {value!r}"
        case np.generic():
            return f"{value.dtype.str} {value.tobytes().hex()}"
        case tuple():
            return f"({', '.join(describe_value(v) for v in value)})"
        case types.ModuleType():
            return f"module {value.__name__}"
        case DTypeVariable():
            return f"dtypes {value.name}"
        case _ if isinstance(value, _STABLE):
            return repr(value)
        case _:
            return f"{type(value).__module__}.{type(value).__qualname__} {mark(value, '__name__') or ''}"


# ---- the Python door ----


def from_python(function: Callable[..., Any], is_kernel: bool, locals_: Mapping[str, Any]) -> Definition:
    """The definition of a decorated Python function. `locals_` are the names around the `def`."""
    if not isinstance(function, types.FunctionType):
        raise SyntaxFault(_not_a_def(function))
    if function.__name__ == "<lambda>":
        raise SyntaxFault(
            Diagnostic("lambda", "a lambda cannot be a kernel", help="write a `def` with a name")
        )
    around = {
        k: v
        for k, v in locals_.items()
        if isinstance(v, (*_STABLE, bool, int, float, tuple, str, np.generic, types.ModuleType))
        or definition_of(v)
    }

    def lookup(name: str) -> Any:
        code = function.__code__
        if name in code.co_freevars and function.__closure__ is not None:
            try:
                return function.__closure__[code.co_freevars.index(name)].cell_contents
            except ValueError:  # an enclosing name that is not assigned yet
                return MISSING
        if name in around:
            return around[name]
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name, MISSING)

    def parse(source: Source) -> Any:
        from .grammar.parser import parse_function

        return parse_function(source)

    names = frozenset(_local_names(function.__code__))
    return Definition(
        function.__name__,
        is_kernel,
        lambda: python_source(function, lookup),
        parse,
        lookup,
        locals=names,
        docstring=lambda: function.__doc__,
        globals=function.__globals__,
        around=frozenset((*function.__code__.co_freevars, *around)),
    )


def _not_a_def(found: Any) -> Diagnostic:
    """What is wrong with decorating anything but a Python function."""
    inner = definition_of(found)
    if inner is not None:
        what = f"{inner.name!r} is a {'kernel' if inner.is_kernel else 'device function'} already"
        return Diagnostic(
            "not-a-def", what, inner.tree.name_span, help="one decorator is enough: take one away"
        )
    name = getattr(found, "__name__", None)
    what = f"{type(found).__name__} {name}" if isinstance(name, str) else type(found).__name__
    help = "put it directly above a `def`" if callable(found) else "write a `def` and put it above that"
    return Diagnostic("not-a-def", f"`@kernel` and `@function` decorate a `def`, not a {what}", help=help)


def _local_names(code: types.CodeType) -> Iterator[str]:
    """Parameters and local names, those of generators in the body included."""
    yield from code.co_varnames
    yield from code.co_cellvars
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _local_names(inner)


def python_source(function: types.FunctionType, lookup: Callable[[str], Any]) -> Source:
    """The function's own lines, dedented; SyntaxFault where Python has no source for it.

    Decorators that are not the language's are blanked: they are Python's affair.
    """
    code = function.__code__
    wrapped = getattr(function, "__wrapped__", None)
    if isinstance(wrapped, types.FunctionType):
        raise SyntaxFault(
            Diagnostic(
                "no-source",
                f"`def {function.__name__}` is wrapped by another decorator, and this is not its own text",
                where=f"{shown_path(wrapped.__code__.co_filename)}:{wrapped.__code__.co_firstlineno}",
                help="put `@mj.kernel` directly above the `def`, below the other decorator",
            )
        )
    lines, name = _lines(function)
    if not lines:
        raise SyntaxFault(
            Diagnostic(
                "no-source",
                f"Python has no source text for `def {function.__name__}` (it was typed at a prompt, or made by exec)",
                help="put it into a file, or give the text: `mj.kernel_from_text('''@kernel\ndef …''')`",
            )
        )
    if name != code.co_name:
        raise SyntaxFault(
            Diagnostic(
                "no-source",
                f"the file of `def {function.__name__}` was changed after it was imported",
                where=f"{shown_path(code.co_filename)}:{code.co_firstlineno}",
                help="start Python anew, or reload the module",
            )
        )
    indent = _INDENT.match(lines[0])
    prefix = indent[0] if indent else ""
    text = "".join(_dedented(line, prefix) for line in lines)
    return Source(shown_path(code.co_filename), _own_decorators(text, lookup), code.co_firstlineno, prefix)


def _lines(function: types.FunctionType) -> tuple[list[str], str]:
    """The lines from the first decorator to the end of the body, and whose `def` it is; none where Python has no source.

    The end is where the code ends, and then as far as lines are indented more than the `def`: statements that give
    no code may follow. (The standard library finds it with a tokenizer, in twice the time of a warm first call.)
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)  # the file may have been changed, and the module reloaded
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    header, found = next(((k, m) for k, line in enumerate(lines) if (m := _HEADER.match(line))), (0, None))
    if found is None or not lines[0].lstrip().startswith(("@", "def", "async")):
        return [], ""
    last = max(header + 1, _last_line(code) - code.co_firstlineno + 1)
    indent = len(lines[header]) - len(lines[header].lstrip())
    while last < len(lines):
        text = lines[last].strip()
        if text and not text.startswith("#") and len(lines[last]) - len(lines[last].lstrip()) <= indent:
            break
        last += 1
    while last > header + 1 and not lines[last - 1].strip():
        last -= 1
    return lines[:last], found[1]


def _last_line(code: types.CodeType) -> int:
    """The last line that any instruction of the function, or of a generator in it, comes from."""
    own = max((end or 0 for _, end, _, _ in code.co_positions()), default=0)
    inner = (_last_line(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return max(own, *inner) if any(isinstance(c, types.CodeType) for c in code.co_consts) else own


def _own_decorators(text: str, lookup: Callable[[str], Any]) -> str:
    """The text with the lines of foreign decorators emptied, so that lines keep their numbers."""
    import ast

    try:
        (parsed,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text
    lines = text.splitlines(keepends=True)
    for node in getattr(parsed, "decorator_list", ()):
        head = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        value: Any = lookup(head.partition(".")[0])
        for part in head.split(".")[1:]:
            value = getattr(value, part, MISSING)
        if mark(value, "__metaljit_builtin__") is None and not isinstance(value, Builtin):
            for row in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[row] = "\n"
    return "".join(lines)


def _dedented(line: str, prefix: str) -> str:
    if line.startswith(prefix):
        return line[len(prefix) :]
    return line.lstrip(" \t") if line.strip() else "\n"
