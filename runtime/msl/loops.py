"""Loops whose lanes talk to each other: the runtime is told of their turns.

In: tokens, before anything is taken away. Out: the same with `for (__emu::turns …; …)` before each loop that has an
exchange between lanes in it, directly or in a function that it calls, and a count at the head of its body. So lanes
that have gone round a loop wait for those that are further down in the turn before, as they do on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from metaljit.runtime.msl.declarations import Declaration, Function, View
from metaljit.runtime.msl.tokens import Tokens

_EXCHANGES = ("simd_", "quad_", "simdgroup_", "__metal_simd", "__metal_quad")
_BEFORE = "for (__emu::turns __emu_t; __emu_t.once();) "
_TURN = " __emu_t.next();"


def mark_loops(tokens: Tokens, view: View, found: Sequence[Declaration]) -> None:
    functions = [d for d in found if isinstance(d, Function) and d.body]
    talking = _talking(view, functions)
    if not talking:
        return
    for d in functions:
        assert d.body is not None
        first, last = d.body
        if talking.isdisjoint(view.words[first:last]):
            continue
        for k in range(first, last):
            if view.words[k] in ("for", "while", "do"):
                _mark(tokens, view, k, talking)


def _talking(view: View, functions: Iterable[Function]) -> set[str]:
    """The words that stand for an exchange: the library's functions, and those that call one of them."""
    bodies = {d: set(view.words[d.body[0] : d.body[1]]) for d in functions if d.body}
    names = {w for words in bodies.values() for w in words if w.startswith(_EXCHANGES)}
    while names:
        more = {view.words[d.name] for d, words in bodies.items() if not names.isdisjoint(words)} - names
        if not more:
            break
        names |= more
    return names


def _mark(tokens: Tokens, view: View, k: int, talking: set[str]) -> None:
    words, index = view.words, view.index
    if words[k] == "while" and _ends_a_do(view, k):
        return
    body = k + 1 if words[k] == "do" else view.pairs[k + 1] + 1
    end = statement_end(view, k)
    if talking.isdisjoint(words[k : end + 1]):
        return
    tokens.words[index[k]] = _BEFORE + tokens.words[index[k]]
    if words[body] == "{":
        tokens.append(index[body], _TURN)
    else:
        tokens.words[index[body]] = "{" + _TURN + " " + tokens.words[index[body]]
        tokens.append(index[statement_end(view, body)], " }")


def _ends_a_do(view: View, k: int) -> bool:
    """Whether the `while` at k closes a `do`: it is followed by a `;`, and stands behind the body of one."""
    after = view.pairs[k + 1] + 1
    if view.words[after : after + 1] != [";"] or k == 0:
        return False
    if view.words[k - 1] == "}":
        return view.words[view.pairs[k - 1] - 1] == "do"
    return any(view.words[j] == "do" and statement_end(view, j + 1) == k - 1 for j in range(k - 1, -1, -1))


def statement_end(view: View, k: int) -> int:
    """The last token of the statement that begins at k."""
    words, pairs = view.words, view.pairs
    match words[k]:
        case "{":
            return pairs[k]
        case "do":
            closing = statement_end(view, k + 1) + 1
            return pairs[closing + 1] + 1
        case "if" | "for" | "while" | "switch":
            opened = k + 1 + (words[k + 1] == "constexpr")
            end = statement_end(view, pairs[opened] + 1)
            if words[k] == "if" and words[end + 1 : end + 2] == ["else"]:
                return statement_end(view, end + 2)
            return end
        case _:
            while words[k] != ";":
                k = pairs[k] if words[k] in ("(", "[", "{") else k
                k += 1
            return k
