"""Few kernels for many expressions and every element type: a compilation for each would take too long.

    results = on_each(["x // y", "x % y"], {"i8": (x8, y8), "u64": (x64, y64)})
    results["x // y", "i8"]

The text of the expression is the kernel's, and NumPy's (`meaning`) where the two agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import metaljit as mj

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f16", "bf16", "f32")
NUMBERS = INTEGERS + FLOATS
NUMPY: dict[str, Any] = {
    "bool": np.bool_,
    **{n: np.dtype(n.replace("i", "int")).type for n in SIGNED},
    **{n: np.dtype(n.replace("u", "uint")).type for n in UNSIGNED},
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}

# Any: NumPy's stubs know numbers only as arguments of its types.
I8, I16, I32, I64, U8, U16, U32, U64 = (NUMPY[n] for n in INTEGERS)
MOST_ARRAYS = 29
Arguments = Mapping[str, Sequence[Any]]


def nasty(name: str) -> list[int]:
    """Integers at which arithmetic goes wrong: the type's ends, zero, and small numbers of both signs."""
    info = np.iinfo(NUMPY[name])
    near = [-129, -128, -100, -9, -7, -6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 7, 9, 55, 100, 110, 127, 128, 200]
    ends = [info.min, info.min + 1, info.min // 2, info.max // 2 + 1, info.max - 1, info.max]
    wide = [16777217, -16777217, 46341, 65536, 2**31, 2**31 - 1, -(2**31), 2**32 - 1, 2**53 + 1]
    return sorted({v for v in (*near, *ends, *wide) if info.min <= v <= info.max})


def pairs(name: str) -> tuple[Any, Any]:
    """All pairs of nasty integers, as two arrays."""
    values = np.array(nasty(name), NUMPY[name])
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


# Expressions and the types of their results; `T` is the type of the operands.
Expressions = Mapping[str, str]


def text_for(expressions: Expressions, names: Sequence[str], operands: str) -> str:
    """The kernel's text: one argument for each type and operand, one result for each type and expression."""
    parameters = [f"{o}_{n}: {n}[N]" for n in names for o in operands]
    results, parts = [], []
    for n in names:
        for expression, result in expressions.items():
            written = re.sub(r"\bT\b", n, expression)
            for o in operands:
                written = re.sub(rf"\b{o}\b", f"{o}_{n}[i]", written)
            parts.append(f"({written})")
            results.append(f"{n if result == 'T' else result}[N]")
    given = f"({', '.join(results)})" if len(results) > 1 else results[0]
    lines = [
        'N = dims("N")',
        "@kernel",
        f"def f({', '.join(parameters)}) -> {given}:",
        "    i = position()",
        f"    return {', '.join(parts)}",
    ]
    return "\n".join(lines) + "\n"


@cache
def kernel_for(text: str) -> mj.Kernel:
    return mj.kernel_from_text(text)


def on_each(expressions: Expressions | Sequence[str], arguments: Arguments) -> dict[tuple[str, str], Any]:
    """The results by expression and type, from as few kernels as can bind all arrays."""
    if not isinstance(expressions, Mapping):
        expressions = dict.fromkeys(expressions, "T")
    names, items = list(arguments), list(expressions.items())
    operands = "xyz"[: len(arguments[names[0]])]
    parts = MOST_ARRAYS - len(operands)
    if len(items) > parts:
        return on_each(dict(items[:parts]), arguments) | on_each(dict(items[parts:]), arguments)
    together = MOST_ARRAYS // (len(operands) + len(items))
    found = {}
    for k in range(0, len(names), together):
        some = names[k : k + together]
        kernel = kernel_for(text_for(expressions, some, operands))
        flat = [np.asarray(v, NUMPY[n]) for n in some for v in arguments[n]]
        length = max(map(len, flat))
        made = kernel(*(np.resize(v, length) for v in flat))
        results = iter(made if isinstance(made, tuple) else (made,))
        for n in some:
            for expression in expressions:
                found[expression, n] = next(results)[: len(arguments[n][0])]
    return found


def meaning(expression: str, name: str, operands: Sequence[Any]) -> Any:
    """What NumPy makes of the same text."""
    scope = {**NUMPY, "T": NUMPY[name], "np": np, "where": np.where, "abs": np.abs}
    scope |= {"min": np.minimum, "max": np.maximum}
    with np.errstate(all="ignore"):
        return eval(expression, scope | dict(zip("xyz", operands, strict=False)))


def check_each(expressions: Expressions | Sequence[str], arguments: Arguments) -> None:
    """The kernel gives, for every expression and type, bit for bit what NumPy gives."""
    for (expression, name), values in on_each(expressions, arguments).items():
        wanted = np.asarray(meaning(expression, name, arguments[name]))
        result = expressions[expression] if isinstance(expressions, Mapping) else "T"
        kind = NUMPY[name if result == "T" else result]
        assert wanted.dtype == kind, f"NumPy gives {wanted.dtype} for {expression} of {name}"
        where = np.flatnonzero(~same(values, wanted))
        assert where.size == 0, shown(expression, name, arguments[name], values, wanted, where[0])


def same(a: Any, b: Any) -> Any:
    """Equal, or both NaN; zeros of different sign are not equal."""
    if a.dtype.kind in "biu":
        return np.equal(a, b)
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def shown(expression: str, name: str, operands: Sequence[Any], found: Any, wanted: Any, at: int) -> str:
    given = ", ".join(f"{o} = {v[at]!r}" for o, v in zip("xyz", operands, strict=False))
    return f"{expression} of {name} where {given}: {found[at]!r}, not {wanted[at]!r}"


def code(text: str) -> list[str]:
    """The lines of a Metal text that are no comment; a comment behind code would be a fault of its own."""
    return [line for line in text.splitlines() if not line.lstrip().startswith("//")]


def refusal(text: str, *arguments: Any) -> mj.MetaljitError:
    """The one error of a kernel text for these arguments or specs; nothing is compiled for a device."""
    with pytest.raises(mj.MetaljitError) as caught:
        mj.kernel_from_text(text).program(*arguments)
    assert len(caught.value.diagnostics) == 1, str(caught.value)
    return caught.value
