"""Whether Metal would accept a text: everything that is wrong with it, on the user's own lines.

In: MSL text. Out: a `Report`. Four readings, whose errors are one list: the preprocessor's, the rules about tokens
and declarations, clang's of the text without address spaces and with the whole library, and the judge's of address
spaces. The last two run side by side.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from metaljit.frozen import frozen, mutable
from metaljit.runtime.msl import compile as clang
from metaljit.runtime.msl import names, recursion, rules
from metaljit.runtime.msl.compile import FILE, Message, Options, Refused
from metaljit.runtime.msl.judge import Verdict, judge
from metaljit.runtime.msl.names import THREADGROUP_MEMORY, Version
from metaljit.runtime.msl.places import Edited, Places
from metaljit.runtime.msl.rewrite import Translation, translate, variables
from metaljit.runtime.msl.tokens import Tokens, Unbalanced, past_angle
from metaljit.runtime.msl.unit import Finding, Unit
from metaljit.source import Diagnostic

LONGEST = 16_000_000  # characters
_MEMORY = "__emu_threadgroup_memory"
# What Apple's compiler warns of; the emulator's clang refuses it, since the code that it would make is arbitrary.
_WARNED = re.compile(r"\[-Werror,-W(return-type|shift-count-overflow)\]$")
_KERNEL = "a kernel cannot be called"  # which `diagnose_if` says of every use of its name
_EVALUATES = re.compile(r"expression evaluates to '(\d+) <= ")
_SPELLINGS = (
    (re.compile(r" \[-W[^\]]*\]$"), ""),
    (re.compile(r" \(aka '[^']*'\)"), ""),
    (
        re.compile(r"^declaration requires a global constructor"),
        "the value of a program-scope constant must be constant",
    ),
    (
        re.compile(r"^address of overloaded function '([^']*)' cannot be static_cast to type .*"),
        r"no instantiation of `\1` has these parameters",
    ),
    (re.compile(r"^variable length arrays.*"), "variable length arrays are not supported in Metal"),
    (
        re.compile(r"no member named '__emu_put_(\w+)'.*"),
        r"a component stands twice in `.\1`, which is written",
    ),
    (re.compile(r"__emu::"), ""),
    (re.compile(r"\btypes::vector<([\w ]+)\[([234])\]>"), r"vec<\1, \2>"),
    (re.compile(r"\bunsigned (char|short|int|long)\b"), r"u\1"),
    (re.compile(r"\bvec<(?:_Float16), ([234])>"), r"half\1"),
    (re.compile(r"\bvec<(\w+), ([234])>"), r"\1\2"),
    (re.compile(r"\b_Float16\b"), "half"),
)

_HALF = re.compile("[\ud800-\udfff]")  # a surrogate alone, which no encoding has


@frozen
class Report:
    """What is wrong with a text, in source order.

    `judged` says whether the address spaces of the whole text were checked, `reason` why they were not.
    """

    file: str
    findings: tuple[Diagnostic, ...]
    judged: bool
    reason: str

    @property
    def refused(self) -> bool:
        return any(d.severity == "error" for d in self.findings)


def check(
    source: str,
    *,
    file: str = FILE,
    version: Version = (2, 3),
    include: Sequence[str] = (),
    defines: Mapping[str, str] | None = None,
) -> Report:
    """Checks an MSL text for a language version, (2, 3) to (4, 0).

    `include` are folders of headers, `defines` macros; an empty value defines a name. DeviceFault where there is no
    compiler to check with.
    """
    source = clang.plain(source)
    places = Places(Tokens(), file, source)
    unreadable = _unreadable(source)
    if unreadable is not None:
        at, message, help = unreadable
        span = (
            places.line(file, source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at))
            if source
            else None
        )
        diagnostic = Diagnostic("msl-text", message, span, help=help, where="" if span else f"{file}:1:1")
        return Report(file, (diagnostic,), False, "the text cannot be read")
    options = Options(file, version, tuple(include), tuple((defines or {}).items()))
    try:
        translation = translate(clang.preprocess(source, options))
    except Refused as e:
        found = tuple(_plain(places, m, "msl-refused") for m in e.messages if m.severity != "note")
        return Report(file, found, False, "the text cannot be read")
    except Unbalanced as e:
        return Report(
            file, (_plain(places, Message(file, *e.place, "error", str(e)), "msl-text"),), False, str(e)
        )
    return _Check(translation, file, source, version).report()


def _unreadable(source: str) -> tuple[int, str, str] | None:
    """What makes a text no text at all, and where."""
    if not source.strip():
        return 0, "the text is empty", "write a kernel: `kernel void f(device float* x [[buffer(0)]]) { }`"
    if len(source) > LONGEST:
        return 0, f"the text has {len(source)} characters, and {LONGEST} is the most", "split it"
    if (at := source.find("\0")) >= 0:
        help = (
            "pass the text without what stands behind its end"
            if at > len(source) // 2
            else "this is no Metal source"
        )
        return at, "there is a zero byte in the text", help
    if half := _HALF.search(source):
        return half.start(), "there is half a character in the text", "read the file as UTF-8"
    return None


def _plain(places: Places, m: Message, slug: str) -> Diagnostic:
    """A message about the text before it was preprocessed."""
    span = places.line(m.file, m.line, m.column)
    where = "" if span else f"{m.file}:{m.line}:{m.column}"
    return Diagnostic(slug, m.text, span, severity=m.severity, where=where)


@mutable
class _Check:
    """One check: the readings, and their places."""

    translation: Translation
    file: str
    source: str
    version: Version

    def report(self) -> Report:
        t = self.translation
        unit = Unit(t.tokens, t.view, t.declarations, self.version)
        places = Places(t.tokens, self.file, self.source)
        limits = _limit_memory(unit)
        with ThreadPoolExecutor(1) as pool:
            judging = pool.submit(judge, unit)
            messages = clang.check(t.source(tuple(t.kernels)))
            found = rules.findings(unit)
            verdict = judging.result()
        suspicion = recursion.suspicion(unit)
        of_clang = self._of_clang(messages, limits)
        recursive = suspicion.certain
        if (suspicion.certain or suspicion.open) and not any(
            f.severity == "error" for f in (*of_clang, *found)
        ):
            code = clang.llvm(t.source(tuple(t.kernels)))
            recursive = tuple(recursion.confirmed(suspicion, unit, code))
        found += [recursion.finding(unit, f) for f in recursive]
        judged, reason = _judged(verdict, places, (*found, *of_clang))
        # What a reading that knows more about a place says is not said again in other words. Clang does not see spaces.
        wrong = [f for f in found if f.severity == "error"]
        lines = {places.line_of(f.at) for f in wrong}
        of_spaces = [f for f in verdict.findings if judged and places.line_of(f.at) not in lines]
        spaces = {f.at for f in of_spaces}
        said = {places.line_of(f.at) for f in wrong if f.slug != "msl-address-space"}
        found += [f for f in of_clang if places.line_of(f.at) not in said and f.at not in spaces]
        found += of_spaces
        found.sort(key=lambda f: f.at)
        drawn = dict.fromkeys(
            _drawn(places, f) for f in found
        )  # a macro's mistake is one, however often it is used
        return Report(self.file, tuple(drawn), judged, reason)

    def _of_clang(self, messages: Sequence[Message], limits: Mapping[int, int]) -> list[Finding]:
        if not messages:
            return []
        edited = Edited(self.translation.tokens)
        found: dict[int, Finding] = {}
        for m, following in zip(messages, (*messages[1:], None), strict=True):
            if m.severity == "note":
                continue
            at = edited.token(m.file, m.line, m.column)
            if at is None:
                at = len(self.translation.tokens.texts) - 1  # behind the end of the text, or in a macro's
            if _KERNEL in m.text:
                if not self._is_called(at):
                    continue
                name = self.translation.tokens.texts[at]
                made = Finding(
                    "msl-kernel", at, f"kernel `{name}` cannot be called", "put what both do into a function"
                )
            elif _MEMORY in m.text:
                used = _EVALUATES.search(following.text) if following else None
                made = _memory(limits.get(at, at), used[1] if used else "more")
            else:
                is_error = m.severity == "error" and not _WARNED.search(m.text)
                severity: Literal["error", "warning"] = "error" if is_error else "warning"
                made = Finding("msl-refused", at, spelled(m.text), severity=severity)
            found.setdefault(made.at, made)
        return list(found.values())

    def _is_called(self, at: int) -> bool:
        """Whether arguments follow a kernel's name."""
        words, pairs = self.translation.view.words, self.translation.view.pairs
        k = bisect_left(self.translation.view.index, at) + 1
        if words[k : k + 1] == ["<"]:
            k = past_angle(words, pairs, k, is_sure=True) or k
        return words[k : k + 1] == ["("]


def spelled(text: str) -> str:
    """A message of clang's with Metal's names of types."""
    for pattern, name in _SPELLINGS:
        text = pattern.sub(name, text)
    return text


def _judged(verdict: Verdict, places: Places, found: Sequence[Finding]) -> tuple[bool, str]:
    """Whether the judge read the text: what it could not read, the others refuse too. And the first reason if not."""
    wrong = {places.line_of(f.at) for f in found if f.severity == "error"}
    unread = [f for f in verdict.unread if places.line_of(f.at) not in wrong]
    if not unread:
        return True, ""
    position = places.position(unread[0].at)
    return (
        False,
        "the text has other errors" if wrong else f"{position.file}:{position.line}: {unread[0].message}",
    )


def _drawn(places: Places, f: Finding) -> Diagnostic:
    span = places.span(f.at)
    where = "" if span else str(places.position(f.at))
    return Diagnostic(f.slug, f.message, span, help=f.help, severity=f.severity, where=where)


# ---- threadgroup memory ----


def _limit_memory(unit: Unit) -> dict[int, int]:
    """Has clang add up the threadgroup variables of each kernel; gives the name that each sum is about."""
    about: dict[int, int] = {}
    for f in unit.kernels:
        assert f.body is not None
        visible: list[tuple[int, str]] = []
        for t in unit.locals(f):
            if "threadgroup" not in t.own or t.levels or t.name is None:
                continue
            found, end = variables(unit.view, t.start, f.body[1])
            if end is None:
                continue
            block = _block_end(unit, t.start, f.body)
            visible = [(last, n) for last, n in visible if last > t.start] + [(block, n) for n in found]
            total = " + ".join(f"sizeof({n})" for _, n in visible)
            at = unit.view.index[end]
            unit.tokens.append(at, f' static_assert({total} <= {THREADGROUP_MEMORY}, "{_MEMORY}");')
            about[at] = unit.view.index[t.name]
    return about


def _block_end(unit: Unit, k: int, body: tuple[int, int]) -> int:
    """The brace that ends the block of word k."""
    k = min(k, body[1])
    while k < body[1]:
        if unit.words[k] == "}":
            return k
        k = unit.view.pairs[k] + 1 if unit.words[k] in ("(", "[", "{") else k + 1
    return body[1]


def _memory(at: int, used: str) -> Finding:
    message = (
        f"the kernel's threadgroup variables take {used} bytes, and {names.THREADGROUP_MEMORY} is the most"
    )
    return Finding("msl-limit", at, message, "use a smaller tile")
