"""Rules about variables: where they may stand, and the address space that each pointer needs."""

from __future__ import annotations

from collections.abc import Iterator

from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import Class, Function, Variable
from metaljit.runtime.msl.tokens import past_angle
from metaljit.runtime.msl.unit import Finding, Typed, Unit, is_known

_RESOURCES = frozenset({"buffer", "texture", "sampler"})
_COMPONENTS = frozenset("xyzwrgba")


def _globals(unit: Unit) -> Iterator[tuple[Variable, Typed]]:
    for d in unit.declarations:
        if isinstance(d, Variable) and not d.owner:
            start = d.start
            while unit.words[start] == "template" and unit.words[start + 1] == "<":
                start = past_angle(unit.words, unit.view.pairs, start + 1, is_sure=True) or d.end
            typed = unit.read(start, d.end)
            if typed and typed.name is not None and not typed.specifiers & {"typedef", "friend", "extern"}:
                yield d, typed


def program_scope(unit: Unit) -> Iterator[Finding]:
    """Outside of functions there are constants, samplers, and from 3.1 on a kernel's inputs."""
    for d, t in _globals(unit):
        assert t.name is not None
        inputs = [a for a in d.attributes if a.name in names.INPUTS or a.name in _RESOURCES]
        if inputs:
            is_resource = inputs[0].name in _RESOURCES
            since = names.PROGRAM_RESOURCES_SINCE if is_resource else names.PROGRAM_INPUTS_SINCE
            if unit.version < since:
                what = f"`[[{inputs[0].name}]]` outside of a kernel's parameters"
                needs = f"{what} needs Metal {since[0]}.{since[1]}; this text is for {unit.version[0]}.{unit.version[1]}"
                yield unit.finding("msl-needs-version", t.name, needs, "make it a parameter of the kernel")
        elif "constant" not in t.own and t.base[-1] != "sampler":
            name = unit.words[t.name]
            message = f"program-scope variable `{name}` must be in constant address space"
            help = f"write `constant {t.text} {name} = …`; what changes is in a buffer or a local"
            yield unit.finding("msl-scope", t.name, message, help)


def constants(unit: Unit) -> Iterator[Finding]:
    """A program-scope constant has a value; a function constant has none in the text."""
    for d, t in _globals(unit):
        assert t.name is not None
        if "constant" not in t.own:
            continue
        has_value = any(w in ("=", "{", "(") for w in unit.words[t.name : d.end])
        is_function_constant = any(a.name == "function_constant" for a in d.attributes)
        name = unit.words[t.name]
        if is_function_constant and has_value:
            message = f"function constant `{name}` cannot have a value in the text"
            help = "give a default in a second constant, with is_function_constant_defined"
            yield unit.finding("msl-scope", t.name, message, help)
        elif not has_value and not d.attributes:
            yield unit.finding(
                "msl-scope", t.name, f"variable `{name}` in constant address space must be initialized"
            )


def locals_and_members(unit: Unit) -> Iterator[Finding]:
    for f in unit.functions:
        for t in unit.locals(f):
            yield from _local(unit, f, t)
    for d in unit.declarations:
        if isinstance(d, Variable) and d.owner:
            member = unit.read(d.start, d.end)
            if member and member.name is not None and member.own and "static" not in member.specifiers:
                message = f"a member cannot be in {member.own[0]} address space"
                yield unit.finding("msl-scope", member.name, message, "declare the whole object there")


def _local(unit: Unit, f: Function, t: Typed) -> Iterator[Finding]:
    assert t.name is not None
    name = unit.words[t.name]
    if "threadgroup" in t.own:
        if not f.is_kernel:
            message = f"threadgroup variable `{name}` is not in a kernel"
            help = "declare it in the kernel, and pass it as `threadgroup T*`"
            yield unit.finding("msl-scope", t.name, message, help)
        if _is_initialised(unit, t):
            message = f"threadgroup variable `{name}` cannot be initialized"
            help = "assign to it in one thread, then call threadgroup_barrier(mem_flags::mem_threadgroup)"
            yield unit.finding("msl-scope", t.name, message, help)
    elif "device" in t.own:
        message = f"a local variable cannot be in device address space: `{name}`"
        yield unit.finding("msl-scope", t.name, message, "device memory comes from a buffer")
    elif "static" in t.specifiers and "constant" not in t.own and "constexpr" not in t.specifiers:
        message = f"static variable `{name}` must be in constant address space"
        yield unit.finding("msl-scope", t.name, message, "nothing lives longer than its thread, but buffers")


def _is_initialised(unit: Unit, t: Typed) -> bool:
    k = t.end
    while unit.words[k] == "[":
        k = unit.view.pairs[k] + 1
    return unit.words[k] in ("=", "{", "(")


# ---- pointers ----


def address_spaces(unit: Unit) -> Iterator[Finding]:
    """Every pointer and reference says what memory it points into, unless a template or `auto` finds out.

    A pointer or reference to a pointer need not: pointers are in thread memory.
    """
    for typed in _types(unit):
        if typed.levels and not typed.levels[0].spaces and is_known(unit, typed):
            at = typed.levels[0].at
            star = unit.words[at]
            if star == "[":
                continue  # an array as a parameter is taken to be in thread memory
            message = (
                f"{'reference' if star == '&' else 'pointer'} type must have explicit address space qualifier"
            )
            help = f"write `device {typed.text}{star}`, or constant, threadgroup or thread"
            yield unit.finding("msl-address-space", at, message, help)


def _types(unit: Unit) -> Iterator[Typed]:
    words = unit.words
    for f in unit.functions:
        yield from unit.parameters(f)
        yield from unit.locals(f)
        start = f.template[1] + 1 if f.template else f.start
        result = unit.read(start, f.name + 1)
        if result:
            yield result
        if f.body:
            yield from _casts(unit, f.body)
    for d in unit.declarations:
        if isinstance(d, Variable):
            is_alias = words[d.start] == "using" and words[d.start + 2] == "="
            typed = unit.read(d.start + 3 if is_alias else d.start, d.end, is_parameter=is_alias)
            if typed:
                yield typed


def _casts(unit: Unit, body: tuple[int, int]) -> Iterator[Typed]:
    words, pairs = unit.words, unit.view.pairs
    for k in range(body[0], body[1]):
        end = None
        if words[k] == "(" and words[pairs[k] - 1] in ("*", "&"):
            end = pairs[k]
        elif words[k].endswith("_cast") and words[k + 1] == "<":
            past = past_angle(words, pairs, k + 1)
            k, end = k + 1, past - 1 if past else None
        if end is not None:
            typed = unit.read(k + 1, end, is_parameter=True)
            if typed and typed.name is None and typed.end == end and typed.levels:
                yield typed


def atomic_memory(unit: Unit) -> Iterator[Finding]:
    """Floats are added atomically in device memory only."""
    if "atomic" in unit.names or "atomic_float" in unit.names:
        return
    for t in unit.variables:
        spaces = t.levels[0].spaces if t.levels else t.own
        base = "".join(t.base).removeprefix("metal::")
        if "threadgroup" in spaces and base in ("atomic_float", "atomic<float>"):
            message = f"`{base}` is in device memory only"
            help = "use atomic_uint, as_type and atomic_compare_exchange_weak_explicit"
            yield unit.finding("msl-scope", t.start if t.name is None else t.name, message, help)


def component_addresses(unit: Unit) -> Iterator[Finding]:
    """A component of a vector has no address: `&v.x`."""
    words = unit.words
    for f in unit.functions:
        if f.body is None:
            continue
        vectors = {
            words[t.name]: t for t in (*unit.parameters(f), *unit.locals(f)) if t.name and _is_vector(t)
        }
        for k in range(f.body[0] + 1, f.body[1]):
            if words[k] != "&" or words[k + 1] not in vectors or not _is_prefix(words[k - 1]):
                continue
            end = _component(unit, k + 1)
            if end is not None:
                message = "the address of a vector's component cannot be taken"
                yield unit.finding("msl-refused", end, message, "copy it to a variable and write it back")


def _is_vector(t: Typed) -> bool:
    return t.base[-1] in names.VECTORS or t.base[:1] == ("vec",) or t.base[:3] == ("metal", "::", "vec")


def _is_prefix(before: str) -> bool:
    return not (before[:1].isalnum() or before[:1] == "_" or before in (")", "]")) or before == "return"


def _component(unit: Unit, k: int) -> int | None:
    """The word of the component in `v.x`, `v[i].xy` or `v->x`; None where it is something else."""
    words = unit.words
    k += 1
    while words[k] == "[":
        k = unit.view.pairs[k] + 1
    is_component = (
        words[k] in (".", "->") and set(words[k + 1]) <= _COMPONENTS and words[k + 2] not in ("(", ".", "[")
    )
    return k + 1 if is_component else None


def variables_with_classes(unit: Unit) -> Iterator[Finding]:
    """Variables that are declared with their class, outside of functions."""
    for d in unit.declarations:
        if isinstance(d, Class) and not d.owner and d.end > d.body[1] + 1:
            first = unit.words[d.start]
            name = d.body[1] + 1
            if (
                first not in ("typedef", "enum", "constant")
                and unit.words[name].isidentifier()
                and not _in_function(unit, d)
            ):
                message = f"program-scope variable `{unit.words[name]}` must be in constant address space"
                yield unit.finding("msl-scope", name, message, "declare the class alone")


def _in_function(unit: Unit, d: Class) -> bool:
    return any(f.body and f.body[0] < d.start < f.body[1] for f in unit.functions)
