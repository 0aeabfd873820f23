"""`@frozen` and `@mutable`: what `@dataclass(frozen=True)` and `@dataclass(eq=False)` give, made without compiling code.

A dataclass costs a third of a millisecond or more to define, because its methods are text that Python compiles;
there are a hundred of them here, and the first call of a kernel would wait for them all. The methods below are
closures instead. `dataclasses.replace`, `fields`, pattern matching and type checkers see a dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")
_FIELD: Any = dataclasses._FIELD  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a class with annotated fields an immutable value: initialiser, equality, hash, text."""
    fields = _fields(cls)
    compared = tuple(f.name for f in fields if f.compare)
    value = {
        "__eq__": _equality(compared),
        "__hash__": _hash(compared),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
    }
    return _give(cls, _common(cls, fields, is_frozen=True) | value)


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
def mutable(cls: type[T]) -> type[T]:
    """Gives a class with annotated fields an initialiser and a text; each object is equal to itself alone."""
    return _give(cls, _common(cls, _fields(cls), is_frozen=False))


def _common(cls: type[Any], fields: list[Field[Any]], *, is_frozen: bool) -> dict[str, Any]:
    positional = tuple(f.name for f in fields if not f.kw_only)
    return {
        "__dataclass_fields__": {f.name: f for f in fields},
        "__dataclass_params__": dataclasses._DataclassParams(  # type: ignore[attr-defined]
            init=True, repr=True, eq=is_frozen, order=False, unsafe_hash=False, frozen=is_frozen
        ),
        "__match_args__": positional,
        "__init__": _initialiser(cls.__qualname__, fields, positional),
        "__repr__": _text(tuple(f.name for f in fields if f.repr)),
    }


def _give(cls: type[T], members: dict[str, Any]) -> type[T]:
    for name, value in members.items():
        if cls.__dict__.get(name) is None:  # a class that defines __eq__ alone has __hash__ None
            setattr(cls, name, value)
    return cls


def _fields(cls: type[Any]) -> list[Field[Any]]:
    """The fields in order; those of frozen bases first."""
    found: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= base.__dict__.get("__dataclass_fields__", {})
    for name, hint in _annotations(cls).items():
        if "ClassVar" in hint:
            continue
        default = cls.__dict__.get(name, MISSING)
        field: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
        field.name, field.type, field._field_type = name, hint, _FIELD
        if field.kw_only is MISSING:
            field.kw_only = False
        if isinstance(default, Field):
            if field.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, field.default)
        found[name] = field
    return list(found.values())


def _annotations(cls: type[Any]) -> dict[str, str]:
    """The class's own annotations, as the texts that they are in modules with postponed evaluation."""
    found: dict[str, str] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 (`inspect` is slow to import)
    return found


def _initialiser(title: str, fields: list[Field[Any]], positional: tuple[str, ...]) -> Callable[..., None]:
    names = frozenset(f.name for f in fields)
    count, most = len(fields), len(positional)
    defaults = {f.name: f.default for f in fields if f.default is not MISSING}
    simple = all(f.default_factory is MISSING for f in fields)
    least = sum(f.default is MISSING for f in fields) if simple else count

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        values = self.__dict__
        if len(args) > most:
            raise TypeError(f"{title} takes {most} positional arguments and was given {len(args)}")
        if not named and len(args) >= least:
            if len(args) < count:
                values.update(defaults)
            values.update(zip(positional, args, strict=False))
            return
        given = dict(zip(positional, args, strict=False))
        wrong = given.keys() & named.keys() or named.keys() - names
        if wrong:
            raise TypeError(f"{title} has no use for the argument {min(wrong)!r}")
        given |= named
        for f in fields:
            values[f.name] = given[f.name] if f.name in given else _default(title, f)

    return __init__


def _default(title: str, field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise TypeError(f"{title} needs the argument {field.name!r}")


def _text(names: tuple[str, ...]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        values = self.__dict__
        return f"{type(self).__qualname__}({', '.join(f'{n}={values[n]!r}' for n in names)})"

    return __repr__


def _equality(names: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        a, b = self.__dict__, other.__dict__
        return all(a[n] is b[n] or a[n] == b[n] for n in names)

    return __eq__


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        values = self.__dict__
        return hash(tuple([values[n] for n in names]))

    return __hash__


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")
