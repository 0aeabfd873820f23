"""Rules about variables: where they may stand, and the address space that each pointer needs."""

from __future__ import annotations

from collections.abc import Iterator

from metaljit.runtime.msl import names
from metaljit.runtime.msl.declarations import SPACES, Class, Function, Variable
from metaljit.runtime.msl.tokens import past_angle
from metaljit.runtime.msl.unit import Finding, Typed, Unit, is_known

# What may stand between an address space and a type.
_BEFORE_A_TYPE = (
    SPACES
    | names.SIGNS
    | {
        "const",
        "volatile",
        "long",
        "short",
        "metal",
        "::",
        "static",
        "inline",
        "constexpr",
        "METAL_FUNC",
        "friend",
        "extern",
    }
)
_RESOURCES = frozenset({"buffer", "texture", "sampler"})


def _globals(unit: Unit) -> Iterator[tuple[Variable, Typed]]:
    for d in unit.declarations:
        if isinstance(d, Variable) and not d.owner:
            start = d.start
            while unit.words[start] == "template" and unit.words[start + 1] == "<":
                start = past_angle(unit.words, unit.view.pairs, start + 1, is_sure=True) or d.end
            typed = unit.read(start, d.end)
            if typed and typed.name is not None and not typed.specifiers & {"typedef", "friend"}:
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
        elif not has_value and not d.attributes and "extern" not in t.specifiers:
            yield unit.finding(
                "msl-scope", t.name, f"variable `{name}` in constant address space must be initialized"
            )


def function_constants(unit: Unit) -> Iterator[Finding]:
    """Function constants are scalars or vectors, and have an index."""
    for d, t in _globals(unit):
        mark = next((a for a in d.attributes if a.name == "function_constant"), None)
        if mark is None or t.name is None:
            continue
        if mark.arguments.isdigit() and int(mark.arguments) > names.LAST_FUNCTION_CONSTANT:
            last = names.LAST_FUNCTION_CONSTANT
            message = (
                f"function constant index {mark.arguments} is out of bounds: must be between 0 and {last}"
            )
            yield Finding("msl-limit", mark.at, message)
        known = unit.classes.get(t.base[-1])
        is_object = t.base[-1] in names.MATRICES or (known is not None and unit.words[known.start] != "enum")
        if is_object or t.levels or unit.words[t.end] == "[":
            message = f"function constant `{unit.words[t.name]}` must be a scalar or a vector"
            yield unit.finding("msl-scope", t.name, message, "use one function constant for each value")


def sizes(unit: Unit) -> Iterator[Finding]:
    """A function constant is known when the pipeline is made: too late for a bound, a case or a template argument."""
    late = _late_constants(unit)
    words = unit.words
    for f in unit.functions if late else ():
        hidden = {words[t.name] for t in (*unit.parameters(f), *unit.locals(f)) if t.name is not None}
        for t in unit.locals(f):
            k = t.end
            while words[k] == "[":
                for at in range(k + 1, unit.view.pairs[k]):
                    if words[at] in late - hidden and not unit.is_member(at):
                        message = f"the bound of an array cannot be the function constant `{words[at]}`"
                        yield unit.finding("msl-scope", at, message, "use a macro or a template parameter")
                k = unit.view.pairs[k] + 1
        for k in range(*f.body) if f.body else ():
            if words[k] == "case" and words[k + 1] in late - hidden and words[k + 2] == ":":
                message = f"a case cannot be the function constant `{words[k + 1]}`"
                yield unit.finding("msl-scope", k + 1, message, "compare with `if`")


def _late_constants(unit: Unit) -> set[str]:
    """Function constants, and the constants that are made of them."""
    late: set[str] = set()
    for d, t in _globals(unit):
        assert t.name is not None
        is_marked = any(a.name == "function_constant" for a in d.attributes)
        if is_marked or not late.isdisjoint(unit.words[t.end : d.end]):
            late.add(unit.words[t.name])
    return late


def locals_and_members(unit: Unit) -> Iterator[Finding]:
    for f in unit.functions:
        for t in unit.locals(f):
            yield from _local(unit, f, t)
    for d in unit.declarations:
        if isinstance(d, Variable) and d.owner:
            member = unit.read(d.start, d.end)
            if member and member.name is not None:
                yield from _member(unit, member, member.name)


def _member(unit: Unit, t: Typed, name: int) -> Iterator[Finding]:
    if "static" not in t.specifiers and t.own:
        message = f"a member cannot be in {t.own[0]} address space"
        yield unit.finding("msl-scope", name, message, "declare the whole object there")
    elif "static" in t.specifiers and "constant" not in t.own:
        message = f"static member `{unit.words[name]}` must be in constant address space"
        yield unit.finding(
            "msl-scope", name, message, f"write `static constant {t.text} {unit.words[name]} = …`"
        )


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
    elif "static" in t.specifiers and "constant" not in t.own:
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
            yield _spaceless(unit, at, typed.text)


def bare_pointers(unit: Unit) -> Iterator[Finding]:
    """The same where no variable is declared: in template arguments, in `sizeof`, in a lambda's parameters.

    A word that is a type and no name of the text's is followed by `*` or `&` only where a type is written.
    """
    words = unit.words
    types = names.TYPES - unit.names - {"vec"}
    for k, word in enumerate(words[:-2]):
        if word not in types or words[k + 1] not in ("*", "&") or unit.is_member(k):
            continue
        first = k
        while words[first - 1] in _BEFORE_A_TYPE or (
            words[first - 1] == ")" and words[first - 4 : first - 2] == ["coherent", "("]
        ):
            first -= 4 if words[first - 1] == ")" else 1
        if (
            SPACES.isdisjoint(words[first:k])
            and "coherent" not in words[first:k]
            and words[first - 1] != "operator"
        ):
            yield _spaceless(unit, k + 1, word)


def _spaceless(unit: Unit, at: int, type_: str) -> Finding:
    """The finding about the `*` or `&` at a word, behind a type."""
    star = unit.words[at]
    message = f"{'reference' if star == '&' else 'pointer'} type must have explicit address space qualifier"
    return unit.finding(
        "msl-address-space", at, message, f"write `device {type_}{star}`, or constant, threadgroup or thread"
    )


def _types(unit: Unit) -> Iterator[Typed]:
    words = unit.words
    for f in unit.functions:
        yield from unit.parameters(f)
        yield from unit.locals(f)
        start = f.template[1] + 1 if f.template else f.start
        is_operator = words[f.name] == "operator"
        result = unit.read(start, f.name + (not is_operator), is_parameter=is_operator)
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
