"""The operation table: one row per scalar operation and function of the language.

The checker types a call with `check`, the printer prints it with `spell`, the folder and the interpreter
compute it with `meaning`, the reference page prints the rows. `OPERATIONS` finds a row by its name or an
alias, `SYMBOLS` by Python's operator and the number of operands. Helpers that the templates call (`mj_…`) are
defined in `compiler/prelude.metal`. Casts stand in `conversions`; vectors, literals, `round(x, n)`, the
truth of Python's `min max sum any all` and everything with memory in it are the compiler's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import operation_meanings as m
from .dtypes import BOOL, F32, I32
from .operation_rules import (
    PRIMARY,
    RULES,
    Math,
    Operation,
    Refusal,
    Rule,
    Spelling,
    Templates,
    Typing,
    check,
    form,
    spell,
)

__all__ = [
    "OPERATIONS", "PRIMARY", "ROWS", "RULES", "SYMBOLS", "Math", "Operation", "Refusal", "Rule", "Spelling",
    "Typing", "check", "form", "reference", "spell",
]  # fmt: skip

ROWS: list[Operation] = []


def _row(
    group: str,
    name: str,
    rule: Rule,
    arity: int,
    msl: Templates,
    meaning: m.Meaning,
    doc: str,
    *aliases: str,
    **more: Any,
) -> None:
    ROWS.append(Operation(name, arity, rule, msl, meaning, doc, group, aliases=aliases, **more))


def _wrapping(symbol: str, helper: str, **others: str) -> Mapping[str, str]:
    """Unsigned and small integers wrap by C's rules and a cast; overflow of int and long is undefined in C."""
    plain, call = f"{{0}} {symbol} {{1}}", f"{helper}({{0}}, {{1}})"
    return {"i8": plain, "i16": plain, "int": call, "uint": plain, "float": plain} | others


def _split(integer: str, floating: str, **others: str) -> Mapping[str, str]:
    return {"int": integer, "uint": integer, "float": floating} | others


def _unary(name: str, **others: str) -> Mapping[str, str]:
    """A function of floats that changes nothing else."""
    return {"float": f"{name}({{0}})", "int": "{0}", "uint": "{0}", "bool": "{0}"} | others


_NUMBERS = "float uint int"

# fmt: off

# ---- arithmetic ----
_G = "Arithmetic"
_row(_G, "add", "arithmetic", 2, _wrapping("+", "mj_add", bool="{0} || {1}"), m.native(np.add),
     "Sum. Integers wrap; of two bools it is `or`.", symbol="+", vector="float uint i8 i16")
_row(_G, "subtract", "numeric", 2, _wrapping("-", "mj_sub"), m.native(np.subtract),
     "Difference. Integers wrap.", symbol="-", vector="float uint i8 i16")
_row(_G, "multiply", "arithmetic", 2, _wrapping("*", "mj_mul", bool="{0} && {1}", u16="mj_mul({0}, {1})"),
     m.native(np.multiply), "Product. Integers wrap; of two bools it is `and`.", symbol="*",
     vector="float u8 u32 u64 i8 i16")
_row(_G, "divide", "floating", 2, "{0} / {1}", m.native(np.true_divide),
     "Quotient as a float, of integers too.", "true_divide", symbol="/", vector="float")
_row(_G, "floor_divide", "number", 2, _split("mj_floor_div({0}, {1})", "mj_float_floor_div({0}, {1})"),
     m.single(np.floor_divide),
     "Quotient rounded down. Of integers, a division by zero gives 0 and the least number // −1 wraps; of "
     "floats, by zero gives ±inf or NaN.", symbol="//", via_float=True)
_row(_G, "remainder", "number", 2, _split("mj_mod({0}, {1})", "mj_float_mod({0}, {1})"),
     m.single(np.remainder),
     "What `//` leaves; it has the sign of the divisor. Of integers, `x % 0` is 0; of floats, NaN.", "mod",
     symbol="%", via_float=True)
_row(_G, "fmod", "number", 2, _split("mj_rem({0}, {1})", "mj_fmod({0}, {1})"), m.single(np.fmod),
     "Remainder of the quotient rounded toward zero; it has the sign of `x`. Of integers, `fmod(x, 0)` is 0.",
     via_float=True)
_row(_G, "power", "number", 2, _split("mj_ipow({0}, {1})", "mj_pow({0}, {1})"), m.power,
     "`x` to the power `y`. Integers wrap; a negative exponent of an integer gives 0, or ±1 where the base "
     "is ±1.", "pow", symbol="**", via_float=True, ulp=16)
_row(_G, "negative", "numeric", 1,
     {"int": "mj_neg({0})", "i8": "-{0}", "i16": "-{0}", "uint": "-{0}", "float": "-{0}"},
     m.native(np.negative), "`0 − x`, with the sign of a zero changed too. Integers wrap.", symbol="-",
     vector="float uint i8 i16", exact=True)
_row(_G, "positive", "numeric", 1, "{0}", m.native(np.positive), "`x` itself.", symbol="+", vector=_NUMBERS,
     exact=True)
_row(_G, "absolute", "arithmetic", 1, _unary("metal::fabs", int="mj_abs({0})"), m.native(np.absolute),
     "Magnitude. The least integer stays what it is.", "abs", vector="float uint", exact=True)
_row(_G, "sign", "numeric", 1, "mj_sign({0})", m.single(np.sign),
     "−1, 0 or 1 in the type of `x`; NaN stays NaN.", via_float=True, exact=True)
_row(_G, "square", "number", 1, "mj_square({0})", m.square, "`x * x`. Integers wrap.", via_float=True)
_row(_G, "reciprocal", "floating", 1, "mj_reciprocal({0})", m.reciprocal,
     "`1 / x`, of integers too (NumPy's integer reciprocal is 0 almost everywhere).", via_float=True)
_row(_G, "fma", "floating", 3, "metal::fma({0}, {1}, {2})", m.fma, "`x * y + z`, rounded once.",
     via_float=True, vector="float")
_row(_G, "gcd", "integer", 2, "mj_gcd({0}, {1})", m.native(np.gcd),
     "Greatest common divisor, not negative; `gcd(0, 0)` is 0.")
_row(_G, "lcm", "integer", 2, "mj_lcm({0}, {1})", m.native(np.lcm),
     "Least common multiple, not negative, wrapping; 0 if either is 0.")

# ---- choosing ----
_G = "Choosing"
_row(_G, "minimum", "arithmetic", 2,
     {"bool": "{0} && {1}", "int": "metal::min({0}, {1})", "uint": "metal::min({0}, {1})",
      "float": "mj_minimum({0}, {1})"}, m.native(np.minimum), "The lesser; NaN if either is NaN.",
     vector="int uint", via_float=True, exact=True)
_row(_G, "maximum", "arithmetic", 2,
     {"bool": "{0} || {1}", "int": "metal::max({0}, {1})", "uint": "metal::max({0}, {1})",
      "float": "mj_maximum({0}, {1})"}, m.native(np.maximum), "The greater; NaN if either is NaN.",
     vector="int uint", via_float=True, exact=True)
_row(_G, "fmin", "arithmetic", 2,
     {"bool": "{0} && {1}", "int": "metal::min({0}, {1})", "uint": "metal::min({0}, {1})",
      "float": "mj_fmin({0}, {1})"}, m.native(np.fmin),
     "The lesser; a NaN is passed over if the other is a number.",
     vector="int uint", via_float=True, exact=True)
_row(_G, "fmax", "arithmetic", 2,
     {"bool": "{0} || {1}", "int": "metal::max({0}, {1})", "uint": "metal::max({0}, {1})",
      "float": "mj_fmax({0}, {1})"}, m.native(np.fmax),
     "The greater; a NaN is passed over if the other is a number.",
     vector="int uint", via_float=True, exact=True)
_row(_G, "clip", "arithmetic", 3,
     _split("metal::min(metal::max({0}, {1}), {2})", "mj_clip({0}, {1}, {2})", bool="mj_clip({0}, {1}, {2})"),
     m.clip, "`minimum(maximum(x, low), high)`; NaN if any is NaN.",
     via_float=True, exact=True)
_row(_G, "where", "select", 3, "{0} ? {1} : {2}", m.where,
     "The second where the first is true, else the third.", exact=True)
_row(_G, "heaviside", "floating", 2, "mj_heaviside({0}, {1})", m.heaviside,
     "0 where `x < 0`, the second operand where `x == 0`, 1 where `x > 0`; NaN stays NaN.", via_float=True,
     exact=True)
_row(_G, "step", "floating", 2, "mj_step({0}, {1})", m.step,
     "0 where the second operand is below the first, else 1.", via_float=True, exact=True)
_row(_G, "smoothstep", "floating", 3, "mj_smoothstep({0}, {1}, {2})", m.smoothstep,
     "0 below the first operand, 1 above the second, `t * t * (3 − 2 * t)` between.", via_float=True)
_row(_G, "mix", "floating", 3, "mj_mix({0}, {1}, {2})", m.mix, "`x + (y − x) * a`.", "lerp", via_float=True)
_row(_G, "nan_to_num", "arithmetic", 1,
     _unary("", f16="mj_nan_to_num({0}, 65504.0f)", bf16="mj_nan_to_num({0}, 3.3895314e38f)",
      float="mj_nan_to_num({0}, 3.4028235e38f)"), m.nan_to_num,
     "NaN becomes 0, ±inf the type's largest and smallest number.", via_float=True, exact=True)

# ---- comparison and logic ----
_G = "Comparison and logic"
for _name, _symbol, _doc in (
    ("equal", "==", "Equal; NaN equals nothing."), ("not_equal", "!=", "Not equal."), ("less", "<", "Less."),
    ("less_equal", "<=", "Less or equal."), ("greater", ">", "Greater."), ("greater_equal", ">=", "Greater or equal."),
):
    _row(_G, _name, "compare", 2, f"{{0}} {_symbol} {{1}}", m.native(getattr(np, _name)), _doc,
         symbol=_symbol, vector=_NUMBERS)
_row(_G, "logical_and", "logical", 2, "{0} && {1}", m.native(np.logical_and),
     "Both are true; the second is computed only if the first is.", symbol="and")
_row(_G, "logical_or", "logical", 2, "{0} || {1}", m.native(np.logical_or),
     "One is true; the second is computed only if the first is not.", symbol="or")
_row(_G, "logical_xor", "logical", 2, "{0} != {1}", m.native(np.logical_xor), "Exactly one is true.")
_row(_G, "logical_not", "logical", 1, "!{0}", m.native(np.logical_not), "Not true.", symbol="not")
_NEVER, _ALWAYS = ({"bool": w, "int": w, "uint": w} for w in ("false", "true"))
_row(_G, "isnan", "predicate", 1, {"float": "mj_isnan({0})"} | _NEVER, m.isnan, "Not a number.",
     via_float=True)
_row(_G, "isinf", "predicate", 1, {"float": "mj_isinf({0})"} | _NEVER, m.isinf, "Infinite, of either sign.",
     via_float=True)
_row(_G, "isfinite", "predicate", 1, {"float": "mj_isfinite({0})"} | _ALWAYS, m.isfinite,
     "Neither infinite nor NaN.", via_float=True)
_row(_G, "isposinf", "predicate", 1, {"float": "mj_isposinf({0})"} | _NEVER, m.isposinf, "+inf.",
     via_float=True)
_row(_G, "isneginf", "predicate", 1, {"float": "mj_isneginf({0})"} | _NEVER, m.isneginf, "−inf.",
     via_float=True)
_row(_G, "signbit", "predicate", 1,
     {"float": "mj_signbit({0})", "int": "{0} < 0", "uint": "false", "bool": "false"}, m.signbit,
     "The sign is minus, that of a zero or NaN too.", via_float=True)

# ---- integers and bits ----
_G = "Integers and bits"
_BITS = {"int": "{0} # {1}", "uint": "{0} # {1}"}
for _name, _symbol, _bool, _doc in (
    ("bitwise_and", "&", "&&", "Bits set in both; of bools, `and` (both are computed)."),
    ("bitwise_or", "|", "||", "Bits set in either; of bools, `or` (both are computed)."),
    ("bitwise_xor", "^", "!=", "Bits set in exactly one; of bools, `!=`."),
):
    _row(_G, _name, "bitwise", 2,
         {k: v.replace("#", _symbol) for k, v in _BITS.items()} | {"bool": f"{{0}} {_bool} {{1}}"},
         m.native(getattr(np, _name)), _doc, symbol=_symbol, vector="int uint")
_row(_G, "invert", "bitwise", 1, {"int": "~{0}", "uint": "~{0}", "bool": "!{0}"}, m.native(np.invert),
     "Every bit changed; of a bool, `not`.", "bitwise_not", "bitwise_invert", symbol="~", vector="int uint")
_row(_G, "left_shift", "shift", 2, "mj_shl({0}, {1})", m.shift_left,
     "Bits moved up in the type of `x`. A count of the width or more, or below 0, gives 0.",
     "bitwise_left_shift", symbol="<<")
_row(_G, "right_shift", "shift", 2, "mj_shr({0}, {1})", m.shift_right,
     "Bits moved down, the sign filled in. A count of the width or more, or below 0, gives 0, or −1 of a "
     "negative `x`.", "bitwise_right_shift", symbol=">>")
_row(_G, "rotate", "shift", 2, "mj_rotate({0}, {1})", m.rotate,
     "Bits moved up and around; the count is taken modulo the width.", "rotl")
_row(_G, "popcount", "integer", 1, "metal::popcount({0})", m.popcount,
     "Number of bits set, in the type of `x`.", vector="int uint")
_row(_G, "bitwise_count", "integer", 1, {"int": "mj_bitwise_count({0})", "uint": "metal::popcount({0})"},
     m.bitwise_count, "NumPy's count: the number of bits set in `abs(x)`, in the type of `x`.", vector="uint")
_row(_G, "clz", "integer", 1, "metal::clz({0})", m.clz, "Number of leading zero bits; the width for 0.",
     vector="int uint")
_row(_G, "ctz", "integer", 1, "metal::ctz({0})", m.ctz, "Number of trailing zero bits; the width for 0.",
     vector="int uint")
_row(_G, "reverse_bits", "integer", 1, "metal::reverse_bits({0})", m.reverse_bits,
     "The bits in opposite order.", vector="int uint")
_row(_G, "mulhi", "integer", 2, "metal::mulhi({0}, {1})", m.mulhi,
     "The upper half of the product in twice the width.", vector="int uint")

# ---- rounding and the parts of a float ----
_G = "Rounding and parts of a float"
_row(_G, "floor", "arithmetic", 1, _unary("metal::floor"), m.rounding(np.floor),
     "Down to a whole number, in the type of `x`.", vector=_NUMBERS, exact=True)
_row(_G, "ceil", "arithmetic", 1, _unary("metal::ceil"), m.rounding(np.ceil),
     "Up to a whole number, in the type of `x`.", vector=_NUMBERS, exact=True)
_row(_G, "trunc", "arithmetic", 1, _unary("metal::trunc"), m.rounding(np.trunc),
     "Toward zero to a whole number, in the type of `x`.", "fix", vector=_NUMBERS, exact=True)
_row(_G, "rint", "arithmetic", 1, _unary("metal::rint"), m.rounding(np.rint),
     "To the nearest whole number, halves to the even one, in the type of `x`.", "round", "around",
     vector=_NUMBERS, exact=True)
_row(_G, "fract", "floating", 1,
     {"f16": "mj_fract({0}, 0.9995117f)", "bf16": "mj_fract({0}, 0.99609375f)",
      "float": "mj_fract({0}, 0.99999994f)"}, m.fract, "`x − floor(x)`, always below 1.", via_float=True)
_row(_G, "copysign", "floating", 2, "metal::copysign({0}, {1})", m.native(np.copysign),
     "The magnitude of `x` with the sign of `y`.", vector="float", exact=True)
_row(_G, "ldexp", "scale", 2, "mj_ldexp({0}, {1})", m.ldexp, "`x * 2**k`, rounded once.", via_float=True)
_row(_G, "nextafter", "floating", 2,
     {"bf16": "mj_nextafter_bf16({0}, {1})", "float": "mj_nextafter({0}, {1})"}, m.native(np.nextafter),
     "The next number of the type after `x` toward `y`.", exact=True)
_row(_G, "degrees", "floating", 1, "{0} * 57.29578f", m.degrees, "Radians to degrees.", "rad2deg", ulp=1,
     via_float=True, vector="float")
_row(_G, "radians", "floating", 1, "{0} * 0.017453292f", m.radians, "Degrees to radians.", "deg2rad", ulp=1,
     via_float=True, vector="float")


def _math(group: str, name: str, ulp: int, doc: str, *aliases: str, msl: str = "", fast: str = "",
          meaning: m.Meaning | None = None, arity: int = 1) -> None:
    """A float function: Metal's precise one of the name `msl`, or one of the prelude's."""
    places = ", ".join(f"{{{i}}}" for i in range(arity))
    called = msl if msl.startswith("mj_") else f"metal::precise::{msl or name}"
    _row(group, name, "floating", arity, f"{called}({places})", meaning or m.double(getattr(np, name)), doc,
         *aliases, fast=f"{fast}({places})" if fast else "", via_float=True, ulp=ulp,
         vector="" if msl.startswith("mj_") else "float")


# ---- roots, powers, logarithms ----
_G = "Roots, exponentials and logarithms"
_math(_G, "sqrt", 0, "Square root, correctly rounded.", fast="metal::fast::sqrt")
_math(_G, "rsqrt", 0, "`1 / sqrt(x)`.", fast="metal::fast::rsqrt", meaning=m.rsqrt)
_math(_G, "cbrt", 2, "Cube root, of negative numbers too.", msl="mj_cbrt")
_math(_G, "hypot", 2, "`sqrt(x*x + y*y)` without overflow; an infinity beats a NaN.", msl="mj_hypot", arity=2)
_math(_G, "exp", 4, "e to the power `x`.", fast="metal::fast::exp")
_math(_G, "exp2", 4, "2 to the power `x`.", fast="metal::fast::exp2")
_math(_G, "exp10", 4, "10 to the power `x`.", fast="metal::fast::exp10", meaning=m.exp10)
_math(_G, "expm1", 2, "`exp(x) − 1`, accurate near 0.", msl="mj_expm1")
_math(_G, "log", 4, "Natural logarithm; −inf at 0, NaN below.", fast="metal::fast::log")
_math(_G, "log2", 4, "Logarithm to the base 2.", fast="metal::fast::log2")
_math(_G, "log10", 4, "Logarithm to the base 10.", fast="metal::fast::log10")
_math(_G, "log1p", 2, "`log(1 + x)`, accurate near 0.", msl="mj_log1p")
_math(_G, "logaddexp", 4, "`log(exp(x) + exp(y))` without overflow; the error is relative to the operands.",
     msl="mj_logaddexp", arity=2)
_math(_G, "logaddexp2", 4, "`log2(2**x + 2**y)` without overflow; the error is relative to the operands.",
     msl="mj_logaddexp2", arity=2)

# ---- trigonometry ----
_G = "Trigonometric and hyperbolic functions"
_math(_G, "sin", 4, "Sine of radians.", fast="metal::fast::sin")
_math(_G, "cos", 4, "Cosine of radians.", fast="metal::fast::cos")
_math(_G, "tan", 6, "Tangent of radians.", fast="metal::fast::tan")
_math(_G, "sinpi", 4, "`sin(pi * x)`, exact at whole and half numbers.", meaning=m.sinpi)
_math(_G, "cospi", 4, "`cos(pi * x)`, exact at whole and half numbers.", meaning=m.cospi)
_math(_G, "sinc", 6, "NumPy's `sin(pi * x) / (pi * x)`; 1 at 0.", msl="mj_sinc", meaning=m.sinc)
_math(_G, "arcsin", 4, "Inverse sine, in [−pi/2, pi/2]; NaN outside [−1, 1].", "asin", msl="asin")
_math(_G, "arccos", 4, "Inverse cosine, in [0, pi]; NaN outside [−1, 1].", "acos", msl="acos")
_math(_G, "arctan", 5, "Inverse tangent, in [−pi/2, pi/2].", "atan", msl="atan")
_math(_G, "arctan2", 6, "Angle of the point (second, first), in [−pi, pi], by the signs of both.", "atan2",
     msl="atan2", arity=2)
_math(_G, "sinh", 4, "Hyperbolic sine.")
_math(_G, "cosh", 4, "Hyperbolic cosine.")
_math(_G, "tanh", 5, "Hyperbolic tangent.", fast="mj_fast_tanh")
_math(_G, "arcsinh", 4, "Inverse hyperbolic sine.", "asinh", msl="asinh")
_math(_G, "arccosh", 4, "Inverse hyperbolic cosine; NaN below 1.", "acosh", msl="acosh")
_math(_G, "arctanh", 5, "Inverse hyperbolic tangent; ±inf at ±1, NaN beyond.", "atanh", msl="atanh")

# ---- special functions ----
_G = "Special functions"
_math(_G, "erf", 4, "Error function.", msl="mj_erf", meaning=m.erf)
_math(_G, "erfc", 8, "`1 − erf(x)`, accurate where it is small.", msl="mj_erfc", meaning=m.erfc)
_math(_G, "erfinv", 6, "Inverse of `erf`; ±inf at ±1, NaN beyond.", msl="mj_erfinv", meaning=m.erfinv)
_math(_G, "lgamma", 8,
     "Logarithm of the magnitude of the gamma function; inf at 0, −1, −2, … Below 0 the error is relative "
     "to 1 near its zeros.", "gammaln", msl="mj_lgamma", meaning=m.lgamma)
_math(_G, "gamma", 48, "Gamma function; ±inf at ±0, NaN at −1, −2, …", msl="mj_gamma", meaning=m.gamma)
# fmt: on

OPERATIONS: dict[str, Operation] = {name: op for op in ROWS for name in (op.name, *op.aliases)}
SYMBOLS: dict[tuple[str, int], Operation] = {(op.symbol, op.arity): op for op in ROWS if op.symbol}


def reference() -> str:
    """The reference page of all operations, Markdown."""
    parts = [_HEAD.strip()]
    for group in dict.fromkeys(op.group for op in ROWS):
        lines = [
            f"## {group}",
            "",
            "| operation | types | meaning | error | MSL |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_reference_row(op) for op in ROWS if op.group == group]
        parts.append("\n".join(lines))
    rules = [f"| {rule} | {sentence} |" for rule, sentence in RULES.items()]
    parts.append("\n".join(["## Types", "", "| rule | operands and result |", "| --- | --- |", *rules]))
    return "\n\n".join(parts) + "\n"


_HEAD = """
# Operations

Every operation and function on numbers. This page is printed from the table that the compiler itself reads.
The meaning is NumPy's, with float64 read as f32: integers wrap, NaN and infinity are kept, `//` and `%` round
down. The types are explained at the end. The error of an f32 result is given in units in the last place, as a
bound for every device; where there is none, the result is exact or correctly rounded step by step. The last
column is what is printed under `math="precise"` for f32, or for i32 where floats are refused; f16 functions are
computed in float and rounded once, bf16 is computed in float and rounded after each operation.
"""


def _reference_row(op: Operation) -> str:
    """One row of the page: names, rule, doc and the template for one common type."""
    operands = ("x", "y", "z")[: op.arity]
    shown = [f"`{op.name}({', '.join(operands)})`"]
    if op.symbol:
        join = f" {op.symbol} " if op.arity == 2 else op.symbol
        shown.append(
            f"`{join.join(operands)}`" if op.arity == 2 else f"`{(op.symbol + ' ').replace('- ', '-')}x`"
        )
    shown += [f"`{alias}`" for alias in op.aliases]
    dtype = BOOL if op.rule == "logical" else I32 if op.rule in ("bitwise", "integer", "shift") else F32
    text = op.template(dtype).format(*operands)
    cells = (", ".join(shown), op.rule, op.doc, f"{op.ulp} ulp" if op.ulp else "", f"`{text}`")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
