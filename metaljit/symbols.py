"""What a name of the language stands for, before any compiler runs.

The objects here are what `metaljit.lang` offers to Python and what a `.mjk` file has built in. They are
recognised by identity, so an alias is as good as the name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .dtypes import DTYPES, GROUPS, TYPES, DType, Subscriptable
from .frozen import frozen
from .source import Diagnostic, TypeFault

BORDER_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "antiperiodic")


class Arithmetic:
    """Lets Python evaluate `f32[M + 1]` and `f32[*(S + pad)]`; the compiler reads the text."""

    def _expression(self, *_: object) -> Expression:
        return Expression()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _expression
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _expression


class Expression(Arithmetic):
    """An extent, or several, computed from others."""

    def __iter__(self) -> Iterator[Expression]:
        yield self

    def __repr__(self) -> str:
        return "…"


@frozen
class Dim(Arithmetic):
    """One extent, bound anew at each call."""

    name: str

    def __repr__(self) -> str:
        return self.name


@frozen
class Pack(Arithmetic):
    """Any number of extents; their number is part of a specialisation."""

    name: str

    def __iter__(self) -> Iterator[Pack]:
        yield self  # `f32[*S]`

    def __repr__(self) -> str:
        return f"*{self.name}"


@dataclass(frozen=True, eq=False)
class DTypeVariable(Subscriptable):
    """An element type chosen among `options` by the arguments of a call."""

    name: str
    options: tuple[DType, ...]


@frozen
class Builtin(Subscriptable):
    """A function of the language that is no operation of the table: `position`, `border`, `range`, …"""

    name: str

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Only what makes constants can be called by Python itself."""
        match self.name, args:
            case "ceil_div", (int(a), int(b)):
                return -(-a // b)
            case "offsets", (int(rank), *radius) if not keywords:
                steps = range(-(radius[0] if radius else 1), (radius[0] if radius else 1) + 1)
                return tuple(itertools.product(steps, repeat=rank))
        raise TypeFault(
            Diagnostic(
                "outside-kernel",
                f"{self.name}() belongs to the kernel language and was called by Python itself",
                help="call it inside a function under `@mj.kernel` or `@mj.function`",
            )
        )


@frozen
class FunctionText:
    """A device function (or kernel): how to get its tree, and how its free names resolve.

    `key` identifies the text and its place; the tree is asked for only when it is compiled.
    """

    name: str
    key: str
    tree: Callable[[], Any]
    resolve: Callable[[str], Any]
    is_kernel: bool = False


@frozen
class Namespace:
    """Names behind a dot: a module of kernels or functions."""

    name: str
    members: Mapping[str, Any]


class Missing:
    """What `resolve` answers for a name that nothing defines."""


MISSING = Missing()

DECORATORS = ("kernel", "function")
ANNOTATIONS = ("const", "Out", "InOut")
# Where a thread stands, and (without their prefix `atomic_`) how threads change one element together.
THREAD = ("thread_index", "group_index", "global_index", "group_size", "grid_size", "lane", "simd_index")
ATOMICS = ("add", "min", "max", "and", "or", "xor", "exchange", "cas")
# What the threads of a simdgroup, or of a whole group, compute together.
COLLECTIVES = (
    "group_sum", "group_min", "group_max", "group_prefix_sum", "simd_sum", "simd_min", "simd_max", "simd_prefix_sum",
    "simd_ballot", "simd_broadcast", "simd_shuffle", "simd_shuffle_xor", "simd_shuffle_up", "simd_shuffle_down",
)  # fmt: skip
TILES = (
    "simdgroup_matrix", "simdgroup_fill", "simdgroup_load", "simdgroup_store", "simdgroup_multiply_accumulate",
)  # fmt: skip
FUNCTIONS = (
    "position", "index", "put", "insert", "drop", "offsets", "border", "unchecked", "uniform", "saturate",
    "bitcast", "wide", "require", "static_assert", "local_array", "threadgroup_array", "barrier",
    *THREAD, *COLLECTIVES, *TILES,
    *(f"atomic_{a}" for a in ATOMICS),
    "ceil_div", "dot", "cross", "length", "normalize", "reflect", "mix", "prod", "argmin", "argmax", "dims", "dtypes",
)  # fmt: skip
PYTHON = (
    "range", "zip", "len", "sum", "min", "max", "any", "all", "abs", "round", "pow", "int", "float", "bool",
    "print", "tuple", "enumerate", "reversed",
)  # fmt: skip
CONSTANTS: dict[str, float] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}

BUILTINS: dict[str, Builtin] = {n: Builtin(n) for n in (*FUNCTIONS, *PYTHON, *ANNOTATIONS, *DECORATORS)}


def dims(names: str) -> Any:
    """Extents from names: `H, W = dims("H W")`; `S = dims("*S")` is a pack."""
    made = tuple(Pack(n[1:]) if n.startswith("*") else Dim(n) for n in names.replace(",", " ").split())
    for m in made:
        if not m.name.isidentifier():
            raise ValueError(f"dims: {m.name!r} is no name; write for example dims('H W') or dims('*S')")
    if not made:
        raise ValueError("dims: no names; write for example dims('H W')")
    return made[0] if len(made) == 1 else made


def dtypes(names: str, *more: str) -> Any:
    """An element type to be chosen: `dtypes("f16 f32")`, `dtypes("float")`, `"int"`, `"number"`."""
    options: list[DType] = []
    for word in " ".join((names, *more)).replace(",", " ").split():
        found = GROUPS.get(word) or ((DTYPES[word],) if word in DTYPES else None)
        if found is None:
            allowed = ", ".join((*GROUPS, *DTYPES))
            raise ValueError(f"dtypes: {word!r} is no element type or group; there are {allowed}")
        options += [d for d in found if d not in options]
    return DTypeVariable(" ".join(d.name for d in options), tuple(options))


dims.__metaljit_builtin__ = "dims"  # type: ignore[attr-defined]
dtypes.__metaljit_builtin__ = "dtypes"  # type: ignore[attr-defined]

# What a `.mjk` file knows without any import; operations are found through the operation table.
MJK_NAMES: dict[str, Any] = {
    **BUILTINS,
    **CONSTANTS,
    **TYPES,
    "bool_": DTYPES["bool"],
}


def mark(obj: Any, name: str) -> Any:
    """An attribute by which the language knows its own objects; None where a foreign object has none, or raises."""
    try:
        return getattr(obj, name, None)
    except Exception:
        return None
