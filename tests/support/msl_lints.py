"""What Apple's compiler has refused in others' texts: one pattern each, with a text that shows it.

A compiler on another system takes most of these. The patterns read code without comments; they know the shape of the
texts that are generated here, and would be wrong about Metal in general.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPES = r"(?:bool|char|uchar|short|ushort|half|int|uint|float|long|ulong|unsigned)"
_FUNCTIONS = (
    "min max clamp pow powr abs fabs fmin fmax sqrt rsqrt exp exp2 log log2 log10 sin cos tan asin acos atan atan2 sinh cosh "
    "tanh asinh acosh atanh floor ceil trunc rint round fract fmod fma sign step mix smoothstep select isnan isinf isfinite "
    "signbit popcount clz ctz mulhi rotate copysign ldexp frexp modf dot cross length normalize distance saturate"
).split()
_RESERVED = (
    "half thread constant device kernel vertex fragment threadgroup sampler texture new this class template operator using "
    "namespace main delete private public union enum long short signed unsigned register asm "
    "auto typename M_PI_F M_SQRT2_F INT_MAX FLT_MAX NAN INFINITY"
).split()


@dataclass(frozen=True)
class Lint:
    name: str
    pattern: str
    shown_by: str


LINTS = (
    Lint("no name nan or inf", r"\b(nanf?|inff?)\s*[;,)]|\b(NAN|INFINITY|HUGE_VALF)\b", "a[i] = (a[i] > 0.0f) ? a[i] : nan;"),
    Lint(
        "no unqualified call", rf"(?<![\w:.])(?:{'|'.join(_FUNCTIONS)})\s*\(", "b[i] = max(b[i], 3);"
    ),
    Lint(
        "no qualified call that fast math answers", r"metal::(isnan|isinf|isfinite|isnormal|signbit)\b", "x = metal::isnan(y);"
    ),
    Lint(
        "no pointer without an address space",
        rf"^(?!.*\b(?:device|constant|thread|threadgroup)\b[^,;(]*\*).*\b{_TYPES}\s*\*\s*\w+\s*[=;,)]",
        "    float* p = a + 4;",
    ),
    Lint("no reference to a pointer", r"\*\s*&", "kernel void k(constant float* &v [[buffer(0)]]) {}"),
    Lint("no reserved name", rf"\b{_TYPES}\s+(?:{'|'.join(_RESERVED)})\s*[=;,)]", "    float half = 0.5f;"),
    Lint("no variable of a file", rf"^(?:static\s+|const\s+)*{_TYPES}\s+\w+(\[[^\]]*\])?\s*=", "float w[2] = {0.25f, 0.75f};"),
    Lint("no bfloat", r"\bbfloat", "bfloat t = bfloat(a[i]);"),
    Lint("no double", r"\bdouble\b", "double s = 0; s += a[i];"),
    Lint("no literal of a double", r"(?<![\w.])(\d+\.\d*|\.\d+)(e[+-]?\d+)?(?![\w.])", "half t = (i < 4) ? x : 0.0;"),
    Lint("no float or 64-bit atomic", r"\batomic_(float|u?long)\b|atomic<\s*(float|u?long|half)", "device atomic_float* s;"),
    Lint("no buffer beyond 30", r"buffer\((?:3[1-9]|[4-9]\d|\d{3,})\)", "kernel void k(device float* z [[buffer(31)]]) {}"),
    Lint("no union", r"\bunion\b", "union { float f; uint u; } v; v.f = a[i];"),
    Lint("no lambda", r"\[\s*[&=]?\s*\]\s*\(", "auto sq = [](float x) { return x * x; };"),
    Lint("no deduced type", r"\bauto\b", "auto sq = a[i];"),
    Lint("no array of run-time length", r"\b(?:thread\s+)?(?:float|int|uint|half)\s+\w+\[[a-z]\w*\]\s*;", "float tmp[n];"),
    Lint("no comment behind code", r"\S.*//", "int r = (x // 2);"),
    Lint("no packed vector", r"\bpacked_", "packed_float3 p = packed_float3(1.0f, 2.0f, 3.0f);"),
    Lint("no thread attribute outside of a kernel", r"^uint \w+ \[\[", "uint tid [[thread_position_in_grid]];"),
    Lint("no header but one", r"#include (?!<metal_stdlib>)", "#include <MetalPerformancePrimitives/M.h>"),
    Lint("no entry called main", r"kernel void main\b", "kernel void main() {}"),
    Lint("no simdgroup matrix", r"\bsimdgroup_matrix\b", "simdgroup_matrix<int, 8, 8> m;"),
    Lint("no bound of one simdgroup", r"max_total_threads_per_threadgroup\(\s*32\s*\)", "[[max_total_threads_per_threadgroup(32)]]"),
    Lint("no remainder of a quotient", r"/[^;,]*[^/*]%", "uint r = (i / 65536u) % 6u;"),
    Lint("no word of Python", r"\b(True|False|None|elif|def|lambda)\b|\*\*(?!/)", "bool t = True;"),
    Lint("no contraction asked for", r"contract\((on|fast)\)", "#pragma METAL fp contract(fast)"),
    Lint("no jump", r"\bgoto\b", "goto end;"),
    Lint("nothing of another library", r"\bstd::|\b__", "std::max(a, b);"),
    Lint("nothing beyond ASCII", r"[^\x09\x20-\x7e]", "float grüße = 1.0f;"),
)  # fmt: skip


def without_comments(text: str) -> list[str]:
    """The lines of code. A comment stands on lines of its own, but for that of the prelude behind an `else if`."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    return [re.sub(r"  // [a-z ]+$", "", line) for line in lines]


def complaints(text: str) -> list[str]:
    """What a text breaks: the rule, and the line."""
    lines = without_comments(text)
    return [
        f"{lint.name}: {line.strip()}" for lint in LINTS for line in lines if re.search(lint.pattern, line)
    ] + recursions(lines)


def recursions(lines: list[str]) -> list[str]:
    """Functions whose own body calls them, which Metal does not allow."""
    found, name = [], ""
    for line in lines:
        head = re.match(r"(?:template <[^>]*> )?inline [\w:]+ (\w+)\(", line)
        if head:
            name = head[1]
            continue
        if line.startswith("}"):
            name = ""
        if name and re.search(rf"(?<![\w:]){name}\(", line):
            found.append(f"no recursion: {line.strip()}")
    return found
