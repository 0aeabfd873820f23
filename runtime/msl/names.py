"""Metal's own names: types, words that cannot be names, what came with which version, built-in inputs.

Tables only. The sources are the language specification's chapters on types, on functions and variables, and on
the library; `(2, 3)` is the oldest version that can be chosen, so nothing older is listed.
"""

from __future__ import annotations

Version = tuple[int, int]

# ---- types ----

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
SIZED = frozenset(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
SIZES = frozenset({"size_t", "ptrdiff_t"})
SCALARS = frozenset({"bool", "half", "bfloat", "float", *INTEGERS, *SIZED, *SIZES})
VECTORS = frozenset(
    f"{packed}{element}{n}"
    for packed in ("", "packed_")
    for element in ("bool", "half", "bfloat", "float", *INTEGERS)
    for n in (2, 3, 4)
)
MATRICES = frozenset(f"{e}{c}x{r}" for e in ("half", "float") for c in (2, 3, 4) for r in (2, 3, 4))
ATOMICS = frozenset({"atomic_int", "atomic_uint", "atomic_bool", "atomic_ulong", "atomic_float"})
# Words that C++ puts together to one type.
SIGNS = frozenset({"unsigned", "signed"})
TYPES = SCALARS | VECTORS | MATRICES | ATOMICS | SIGNS | {"void", "vec"}

# ---- words that are no names ----

SPACE_WORDS = frozenset({"device", "constant", "thread", "threadgroup", "threadgroup_imageblock"})
STAGE_WORDS = frozenset({"kernel", "vertex", "fragment"})
# Words of later C++ than Metal's: names like others.
LATER_WORDS = frozenset(
    {"concept", "requires", "consteval", "constinit", "co_await", "co_return", "co_yield", "char8_t"}
)
# Types that are words of the language; the others are names of the library, which a block may hide.
TYPE_WORDS = frozenset(
    {"half", "bool", "char", "short", "int", "long", "float", "void", "unsigned", "signed"}
)

_F = ("", "_F", "_H", "_BF")
_MATHEMATICS = (
    "E", "LOG2E", "LOG10E", "LN2", "LN10", "PI", "PI_2", "PI_4", "1_PI", "2_PI", "2_SQRTPI", "SQRT2", "SQRT1_2"
)  # fmt: skip
_FLOATING = (
    "DIG", "MANT_DIG", "MAX_10_EXP", "MAX_EXP", "MIN_10_EXP", "MIN_EXP", "RADIX", "MAX", "MIN", "EPSILON"
)  # fmt: skip
# Macros of the library: a declaration of such a name is one of a number.
MACROS = frozenset(
    {
        "INFINITY",
        "NAN",
        "MAXFLOAT",
        "MAXHALF",
        "MAXBFLOAT",
        "HUGE_VALF",
        "HUGE_VALH",
        "HUGE_VALBF",
        "CHAR_BIT",
    }
    | {"FP_ILOGB0", "FP_ILOGBNAN", "SCHAR_MIN", "SCHAR_MAX"}
    | {f"M_{name}{suffix}" for name in _MATHEMATICS for suffix in _F}
    | {f"{kind}_{end}" for kind in ("FLT", "HALF", "BFLT") for end in _FLOATING}
    | {
        f"{u}{kind}_{end}"
        for u in ("", "U")
        for kind in ("CHAR", "SHRT", "INT", "LONG")
        for end in ("MIN", "MAX")
    }
)

# Words of C++ without a meaning in Metal, what they are, and the way out.
FORBIDDEN = {
    "double": ("`double` is not supported in Metal", "use float; Metal has no 64-bit floating type"),
    "goto": ("`goto` is not supported in Metal", "use a loop, or `break` and `continue`"),
    "new": ("`new` is not supported in Metal", "use a local array, or memory that a buffer or threadgroup argument gives"),
    "delete": ("`delete` is not supported in Metal", "there is nothing to free: memory comes from buffers and locals"),
    "throw": ("exceptions are not supported in Metal", "write an error code into a buffer"),
    "try": ("exceptions are not supported in Metal", "write an error code into a buffer"),
    "virtual": ("virtual functions are not supported in Metal", "use a template, or a switch"),
    "dynamic_cast": ("`dynamic_cast` is not supported in Metal", "use a template, or a switch"),
    "typeid": ("`typeid` is not supported in Metal", "use metal::is_same_v"),
    "register": ("`register` is not supported in Metal", "leave it out"),
    "thread_local": ("`thread_local` is not supported in Metal", "a local variable is each thread's own"),
    "asm": ("`asm` is not supported in Metal", ""),
}  # fmt: skip

# Functions of the library that a text may call where it has one of that name itself.
_SCALARS = (
    "abs absdiff addsat acos acosh all any asin asinh atan atan2 atanh ceil clamp clz copysign cos cosh cospi cross ctz"
    " determinant distance distance_squared divide dot exp exp10 exp2 extract_bits fabs faceforward fdim floor fma fmax"
    " fmax3 fmedian3 fmin fmin3 fmod fract frexp hadd ilogb insert_bits isfinite isinf isnan isnormal isordered"
    " isunordered ldexp length length_squared log log10 log2 mad24 madhi madsat max max3 median3 min min3 mix modf mul24"
    " mulhi nextafter normalize popcount pow powr reflect refract reverse_bits rhadd rint rotate round rsqrt saturate"
    " select sign signbit sin sincos sinh sinpi smoothstep sqrt step subsat tan tanh tanpi transpose trunc"
)
FUNCTIONS = frozenset(_SCALARS.split())

# ---- versions ----

_LANES = ("simd", "quad")
SINCE: dict[str, Version] = {
    **{f"{g}_shuffle_and_fill_{way}": (2, 4) for g in _LANES for way in ("up", "down")},
    **dict.fromkeys(("atomic_bool", "atomic_ulong", "atomic_max_explicit", "atomic_min_explicit"), (2, 4)),
    "atomic_float": (3, 0),
    **dict.fromkeys(("bfloat", "bfloat2", "bfloat3", "bfloat4"), (3, 1)),
    **dict.fromkeys(("packed_bfloat2", "packed_bfloat3", "packed_bfloat4"), (3, 1)),
    **dict.fromkeys(("simdgroup_bfloat8x8", "nextafter"), (3, 1)),
    **dict.fromkeys(("os_log", "os_log_default", "atomic_thread_fence"), (3, 2)),
    **dict.fromkeys(("tensor_handle", "tensor_inline", "tensor_offset", "dextents", "cooperative_tensor"), (4, 0)),
    **dict.fromkeys(("pack_float_to_snorm10a2", "pack_half_to_snorm10a2"), (4, 0)),
    **dict.fromkeys(("unpack_snorm10a2_to_float", "unpack_snorm10a2_to_half"), (4, 0)),
}  # fmt: skip
ATTRIBUTE_SINCE: dict[str, Version] = {
    "stitchable": (2, 4),
    "required_threads_per_threadgroup": (4, 0),
    "user_annotation": (4, 0),
}
HEADER_SINCE: dict[str, Version] = {
    "metal_logging": (3, 2),
    "metal_tensor": (4, 0),
    "metal_cooperative_tensor": (4, 0),
    "MetalPerformancePrimitives.h": (4, 0),
}
# The element type of atomic<T>; any other one has no atomic type.
ATOMIC_SINCE: dict[str, Version] = {
    "int": (2, 4), "uint": (2, 4), "bool": (2, 4), "ulong": (2, 4), "float": (3, 0),
    "int32_t": (2, 4), "uint32_t": (2, 4), "uint64_t": (2, 4), "unsigned": (2, 4),
}  # fmt: skip
PROGRAM_INPUTS_SINCE: Version = (3, 1)
AUTO_PARAMETERS_SINCE: Version = (4, 0)  # of templates: C++17
PROGRAM_RESOURCES_SINCE: Version = (3, 2)
LAMBDAS_SINCE: Version = (3, 2)
RECURSION_SINCE: Version = (2, 4)

# ---- kernels ----

# The highest index of each kind of resource.
LAST_INDEX = {"buffer": 30, "texture": 127, "sampler": 15, "threadgroup": 30}
LAST_FUNCTION_CONSTANT = 65535
MOST_THREADS = 1024
THREADGROUP_MEMORY = 32768  # bytes

_POSITIONS = frozenset({"uint", "uint2", "uint3", "ushort", "ushort2", "ushort3"})
_COUNTS = frozenset({"uint", "ushort"})
VECTOR_INPUTS = frozenset(
    {
        "thread_position_in_grid", "threads_per_grid", "thread_position_in_threadgroup", "threads_per_threadgroup",
        "dispatch_threads_per_threadgroup", "threadgroup_position_in_grid", "threadgroups_per_grid", "grid_origin",
        "grid_size",
    }
)  # fmt: skip
SCALAR_INPUTS = frozenset(
    {
        "thread_index_in_threadgroup", "thread_index_in_simdgroup", "threads_per_simdgroup", "thread_execution_width",
        "simdgroup_index_in_threadgroup", "simdgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup",
        "thread_index_in_quadgroup", "quadgroup_index_in_threadgroup", "quadgroups_per_threadgroup",
        "dispatch_quadgroups_per_threadgroup",
    }
)  # fmt: skip
INPUTS = {**dict.fromkeys(VECTOR_INPUTS, _POSITIONS), **dict.fromkeys(SCALAR_INPUTS, _COUNTS)}
# Inputs of one kernel that have one type.
SAME_TYPE = (
    ("thread_position_in_grid", "threads_per_grid"),
    ("thread_position_in_threadgroup", "threads_per_threadgroup", "dispatch_threads_per_threadgroup"),
    ("threadgroup_position_in_grid", "threadgroups_per_grid"),
)
# Other spellings of the types that inputs have.
SPELLINGS = {
    "unsigned": "uint",
    "uint32_t": "uint",
    "uint16_t": "ushort",
    "int32_t": "int",
    "int16_t": "short",
}
