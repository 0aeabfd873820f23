"""Functions that call themselves: by name where that is certain, else in the code that clang makes.

In: a `Unit`. Out: findings, and the names that only clang can decide about. A name stands for one function where
the text defines it once and without a template; overloads and templates may call each other by one name and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from metaljit.frozen import frozen
from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import Function
from metaljit.runtime.msl.unit import Finding, Unit

_DEFINE = re.compile(r"^define [^@]*@(?:\"([^\"]+)\"|([\w.$]+))\(", re.M)
_CALL = re.compile(r"\b(?:call|invoke)\b[^@\n]*@(?:\"([^\"]+)\"|([\w.$]+))\(")


@frozen
class Suspicion:
    """Cycles of names: `certain` holds the functions that call themselves, `open` those that may."""

    certain: tuple[Function, ...]
    open: tuple[Function, ...]


def suspicion(unit: Unit) -> Suspicion:
    """Which functions may call themselves. None from Metal 2.4 on, where a function may."""
    if unit.version >= names.RECURSION_SINCE:
        return Suspicion((), ())
    defined: dict[str, list[Function]] = {}
    for f in unit.functions:
        if f.body and unit.words[f.name] != "operator" and not f.is_kernel:  # nobody calls a kernel
            defined.setdefault(unit.words[f.name], []).append(f)
    calls = {name: _called(unit, same, defined) for name, same in defined.items()}
    certain: list[Function] = []
    open_: list[Function] = []
    for cycle in cycles(calls):
        is_certain = all(
            len(defined[n]) == 1
            and not defined[n][0].template
            and not defined[n][0].owner
            and n not in names.FUNCTIONS
            for n in cycle
        )
        (certain if is_certain else open_).append(defined[cycle[0]][0])
    return Suspicion(tuple(certain), tuple(open_))


def _called(unit: Unit, same: Iterable[Function], defined: Mapping[str, list[Function]]) -> list[str]:
    words, found = unit.words, dict[str, None]()
    for f in same:
        hidden = {words[t.name] for t in (*unit.parameters(f), *unit.locals(f)) if t.name is not None}
        for k in range(*f.body) if f.body else ():
            word = words[k]
            if word in defined and word not in hidden and words[k + 1] in ("(", "<") and _is_free(words, k):
                found[word] = None
    return list(found)


def _is_free(words: Sequence[str], k: int) -> bool:
    """Whether word k is no member of an object, nor a function of Metal's own."""
    return words[k - 1] not in (".", "->") and words[k - 2 : k] != ["metal", "::"]


def cycles(calls: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of names that reach each other, each in the order of the text (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        # An explicit stack: a text may have a chain of thousands of calls.
        work = [(name, iter(calls.get(name, ())))]
        number[name] = lowest[name] = len(number)
        stack.append(name)
        while work:
            at, following = work[-1]
            child = next((c for c in following if c in calls and (c not in number or c in on_stack())), None)
            if child is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[at])
                if lowest[at] == number[at]:
                    close(at)
            elif child not in number:
                number[child] = lowest[child] = len(number)
                stack.append(child)
                work.append((child, iter(calls.get(child, ()))))
            else:
                lowest[at] = min(lowest[at], number[child])

    def on_stack() -> set[str]:
        return set(stack)

    def close(at: str) -> None:
        group = stack[stack.index(at) :]
        del stack[stack.index(at) :]
        if len(group) > 1 or at in calls.get(at, ()):
            found.append(sorted(group, key=order.__getitem__))

    order = {name: i for i, name in enumerate(calls)}
    for name in calls:
        if name not in number:
            visit(name)
    return found


def confirmed(suspicion: Suspicion, unit: Unit, code: str) -> list[Function]:
    """Those of the suspected functions that call themselves in LLVM's textual form of the program.

    One that is not in it, since nobody calls it, is taken at its words: there a name may be Metal's own function too.
    """
    parts = re.split(r"^(?=define )", code, flags=re.M)
    calls: dict[str, list[str]] = {}
    for part in parts:
        head = _DEFINE.match(part)
        if head:
            body = part.partition("\n}")[0]
            calls[head[1] or head[2]] = [a or b for a, b in _CALL.findall(body)]
    in_cycles = {name for cycle in cycles(calls) for name in cycle}

    def calls_itself(f: Function) -> bool:
        return any(_mangles(unit.words[f.name], symbol) for symbol in in_cycles)

    def is_there(f: Function) -> bool:
        return any(_mangles(unit.words[f.name], symbol) for symbol in calls)

    certain = [f for f in suspicion.certain if calls_itself(f) or not is_there(f)]
    return certain + [f for f in suspicion.open if calls_itself(f)]


def _mangles(name: str, symbol: str) -> bool:
    return f"{len(name)}{name}" in symbol or symbol == name


def finding(unit: Unit, f: Function) -> Finding:
    name = unit.words[f.name]
    message = f"recursion needs Metal 2.4; this text is for {unit.version[0]}.{unit.version[1]}: `{name}` calls itself"
    return unit.finding("msl-recursion", f.name, message, "use a loop")
