"""Rules about kernels: what they are called, what they return and take, and the limits of a device."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator

from metaljit.frozen import frozen
from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import Function
from metaljit.runtime.msl.kernels import split
from metaljit.runtime.msl.tokens import Attribute
from metaljit.runtime.msl.unit import Finding, Typed, Unit

_INTEGER = re.compile(r"(?:0[xX][\da-fA-F]+|\d+)[uUlL]*")
_OTHER_ATTRIBUTES = frozenset(
    {"stage_in", "function_constant", "maybe_unused", "id", "imageblock_data", "color", "user"}
)


@frozen
class Parameter:
    """A parameter of a kernel: its words, its type where that can be read, its attributes."""

    first: int
    last: int
    typed: Typed | None
    attributes: tuple[Attribute, ...]

    def attribute(self, *wanted: str) -> Attribute | None:
        return next((a for a in self.attributes if a.name in wanted), None)

    @property
    def name(self) -> int:
        return self.last if self.typed is None or self.typed.name is None else self.typed.name


def _parameters(unit: Unit, kernel: Function) -> list[Parameter]:
    return [
        Parameter(a, b, unit.read(a, b + 1, is_parameter=True), tuple(unit.attributes(a, b + 1)))
        for a, b in split(unit.view, *kernel.parameters)
    ]


def _is_plain(unit: Unit, t: Typed | None) -> bool:
    """Whether a type is surely one of Metal's own, by value."""
    return t is not None and not t.levels and t.base[0] in names.TYPES and t.base[0] not in unit.names


# ---- the function ----


def kernel_functions(unit: Unit) -> Iterator[Finding]:
    seen: dict[tuple[object, ...], Function] = {}
    for f in unit.functions:
        if not f.is_kernel:
            continue
        name = unit.words[f.name]
        if f.owner:
            yield unit.finding("msl-kernel", f.name, f"kernel `{name}` cannot be a member of a class")
        result = unit.read(f.template[1] + 1 if f.template else f.start, f.name + 1)
        if (
            result
            and (result.base != ("void",) or result.levels)
            and result.base[0] in names.TYPES | {"auto"}
        ):
            yield unit.finding(
                "msl-kernel", f.name, f"kernel `{name}` must return void", "write results into a buffer"
            )
        if f.body is None or f.template:
            continue
        if (f.scope, name) in seen:
            yield unit.finding(
                "msl-kernel", f.name, f"kernel `{name}` cannot be overloaded", "give it another name"
            )
        seen[f.scope, name] = f


# ---- arguments ----


def argument_indices(unit: Unit) -> Iterator[Finding]:
    for kernel in unit.kernels:
        taken: dict[tuple[str, int], Parameter] = {}
        for p in _parameters(unit, kernel):
            a = p.attribute(*names.LAST_INDEX)
            several = [b for b in p.attributes if b.name in names.LAST_INDEX][1:]
            if several:
                message = f"an argument has one index, and `{unit.words[p.name]}` has two"
                yield Finding("msl-kernel", several[0].at, message, "leave one out")
            if a is not None and not a.arguments:
                message = f"`[[{a.name}]]` needs an index"
                yield Finding("msl-kernel", a.at, message, f"write [[{a.name}(0)]]")
            if a is None or not _INTEGER.fullmatch(a.arguments):
                continue
            index, last = int(a.arguments.rstrip("uUlL"), 0), names.LAST_INDEX[a.name]
            if index > last:
                message = f"`{a.name}` index {index} is out of bounds: must be between 0 and {last}"
                yield Finding("msl-limit", a.at, message, _fewer(a.name))
            elif (a.name, index) in taken and not p.attribute("function_constant"):
                other = unit.words[taken[a.name, index].name]
                message = f"`{a.name}` index {index} is already that of `{other}`"
                yield Finding("msl-kernel", a.at, message, "each argument of a kind has its own index")
            elif not p.attribute("function_constant"):
                taken[a.name, index] = p
        yield from _too_many(unit, kernel)


def _fewer(kind: str) -> str:
    return "put several values into one struct" if kind == "buffer" else ""


def _too_many(unit: Unit, kernel: Function) -> Iterator[Finding]:
    bound = [p for p in _parameters(unit, kernel) if p.typed and p.typed.levels and p.typed.spaces]
    buffers = [p for p in bound if p.typed and {"device", "constant"} & set(p.typed.spaces)]
    most = names.LAST_INDEX["buffer"] + 1
    if len(buffers) > most:
        message = f"a kernel has at most {most} buffers, this one has {len(buffers)}"
        yield unit.finding("msl-limit", buffers[most].name, message, _fewer("buffer"))


def argument_types(unit: Unit) -> Iterator[Finding]:
    told = False
    for kernel in unit.kernels:
        for p in _parameters(unit, kernel):
            if p.typed is None:
                continue
            yield from _argument(unit, p, p.typed)
            if not told and p.typed.levels and p.typed.base[0] in names.SIZES:
                told = True  # the specification's word, not that of every compiler: once is enough
                message = f"`{p.typed.base[0]}` is no type for a kernel's argument by the specification"
                yield Finding("msl-kernel", unit.view.index[p.name], message, "use ulong or uint", "warning")


def _argument(unit: Unit, p: Parameter, t: Typed) -> Iterator[Finding]:
    name, spaces = unit.words[p.name], set(t.levels[0].spaces if t.levels else t.own)
    built_in = p.attribute(*names.INPUTS)
    if built_in is not None:
        yield from _input_type(unit, p, t, built_in)
    elif t.levels and "thread" in spaces:
        yield _bad(
            unit,
            p,
            f"argument `{name}` of a kernel cannot point into thread memory",
            "use device or constant",
        )
    elif t.levels and "threadgroup" in spaces and p.attribute("buffer"):
        yield _bad(
            unit,
            p,
            f"`{name}` points into threadgroup memory, which no buffer is in",
            "write [[threadgroup(0)]]",
        )
    elif t.levels and spaces & {"device", "constant"} and p.attribute("threadgroup"):
        yield _bad(unit, p, f"`{name}` is no threadgroup memory", f"write `threadgroup {t.text}* {name}`")
    elif (bound := p.attribute(*names.LAST_INDEX)) and (kind := _resource(t)) and kind != bound.name:
        yield _bad(unit, p, f"`{name}` is no {bound.name}", f"write [[{kind}(0)]]")
    elif len(t.levels) > 1 and not t.levels[-1].spaces and unit.words[t.levels[-1].at - 1] != "(":
        message = f"argument `{name}` of a kernel points to a pointer of no address space"
        yield _bad(unit, p, message, f"take `device {t.text}*` itself", "msl-address-space")
    elif _is_plain(unit, t):
        yield _by_value(unit, p, t)


def _resource(t: Typed) -> str:
    """The attribute of a parameter whose type tells: a texture, a sampler, a pointer to memory of buffers. Else empty."""
    base = t.base[2:] if t.base[:2] == ("metal", "::") else t.base
    if base[0].startswith(("texture", "depth")) and base[1:2] == ("<",):
        return "texture"
    if base == ("sampler",):
        return "sampler"
    is_buffer = (
        bool(t.levels)
        and base[0] in names.TYPES
        and not {"device", "constant"}.isdisjoint(t.levels[0].spaces)
    )
    return "buffer" if is_buffer and "threadgroup" not in t.levels[0].spaces else ""


def _input_type(unit: Unit, p: Parameter, t: Typed, a: Attribute) -> Iterator[Finding]:
    kind, allowed = _kind(t), names.INPUTS[a.name]
    if (t.levels or _is_plain(unit, t)) and (t.levels or kind not in allowed):
        shown = f"{kind}{unit.words[t.levels[0].at]}" if t.levels else kind
        message = f"`[[{a.name}]]` cannot be of type `{shown}`"
        yield _bad(unit, p, message, f"use {', '.join(sorted(allowed))}")


def _by_value(unit: Unit, p: Parameter, t: Typed) -> Finding:
    name, kind = unit.words[p.name], t.text
    unknown = [a for a in p.attributes if a.name not in _OTHER_ATTRIBUTES and a.name not in names.LAST_INDEX]
    help = f"write `constant {kind}& {name} [[buffer(i)]]`, or the attribute of a built-in input"
    if unknown:
        near = difflib.get_close_matches(unknown[0].name, [*names.INPUTS, *names.LAST_INDEX], 1)
        help = f"write [[{near[0]}]]" if near else help
        return _bad(unit, p, f"`[[{unknown[0].name}]]` is no input of a kernel", help)
    return _bad(unit, p, f"a kernel cannot take `{name}` of type `{kind}` by value", help)


def _kind(t: Typed) -> str:
    if t.base[0] == "vec" and len(t.base) == 6:
        return f"{names.SPELLINGS.get(t.base[2], t.base[2])}{t.base[4]}"
    return names.SPELLINGS.get(t.kind, t.kind)


def _bad(unit: Unit, p: Parameter, message: str, help: str, slug: str = "msl-kernel") -> Finding:
    return unit.finding(slug, p.name, message, help)


def input_consistency(unit: Unit) -> Iterator[Finding]:
    """Inputs of one kernel that belong together have one type, and all vectors one number of components."""
    for kernel in unit.kernels:
        found: dict[str, tuple[str, Parameter]] = {}
        for p in _parameters(unit, kernel):
            a = p.attribute(*names.INPUTS)
            if (
                a is not None
                and p.typed is not None
                and not p.typed.levels
                and _kind(p.typed) in names.INPUTS[a.name]
            ):
                found[a.name] = (_kind(p.typed), p)
        for group in names.SAME_TYPE:
            yield from _equal(unit, {n: found[n] for n in group if n in found}, str)
        vectors = {n: found[n] for n in found if found[n][0][-1] in "23"}
        yield from _equal(unit, vectors, lambda kind: f"{kind[-1]} components")


def _equal(
    unit: Unit, found: dict[str, tuple[str, Parameter]], shown: Callable[[str], str]
) -> Iterator[Finding]:
    items = list(found.items())
    for name, (kind, p) in items[1:]:
        first_name, (first_kind, _) = items[0]
        if shown(kind) != shown(first_kind):
            message = (
                f"`{name}` has {_article(shown(kind))}, but `{first_name}` has {_article(shown(first_kind))}"
            )
            yield _bad(unit, p, message, "give both the same type")
            return


def _article(what: str) -> str:
    return what if what[0].isdigit() else f"type `{what}`"


# ---- limits ----


def thread_limits(unit: Unit) -> Iterator[Finding]:
    for f in unit.functions:
        for a in f.attributes:
            if a.name not in ("max_total_threads_per_threadgroup", "required_threads_per_threadgroup"):
                continue
            parts = [part.strip() for part in a.arguments.split(",")]
            if not all(_INTEGER.fullmatch(part) for part in parts):
                continue
            total = 1
            for part in parts:
                total *= int(part.rstrip("uUlL"), 0)
            if not 0 < total <= names.MOST_THREADS:
                message = f"{total} threads per threadgroup: must be between 1 and {names.MOST_THREADS}"
                yield Finding("msl-limit", a.at, message, "use smaller threadgroups, and more of them")
