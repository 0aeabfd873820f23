"""Each rule about tokens and declarations: what it refuses, beside what it must let pass."""

from __future__ import annotations

import pytest

from metaljit.runtime.msl import rules
from metaljit.runtime.msl.declarations import declarations, view
from metaljit.runtime.msl.names import Version
from metaljit.runtime.msl.tokens import lex
from metaljit.runtime.msl.unit import Finding, Unit

HEADER = '# 1 "metal_stdlib" 1 3\n# 2 "program_source" 2\nusing namespace metal;\n'
KERNEL = "kernel void k(device float* a [[buffer(0)]], device uchar* b [[buffer(1)]], uint i [[thread_position_in_grid]])"


def unit(text: str, version: Version = (2, 3), header: str = HEADER) -> Unit:
    tokens = lex(header + text)
    seen = view(tokens)
    return Unit(tokens, seen, declarations(seen), version)


def found(text: str, version: Version = (2, 3), header: str = HEADER) -> list[tuple[str, str]]:
    u = unit(text, version, header)
    return [(f.slug, _word(u, f)) for f in rules.findings(u)]


def _word(u: Unit, f: Finding) -> str:
    return u.tokens.texts[f.at]


def body(statements: str) -> str:
    return f"{KERNEL} {{ {statements} }}\n"


# In pairs: what is refused, with its slug and the word it is about, and a neighbour that is not.
PAIRS = {
    "double": ("msl-unsupported", "double", body("double s = 0;"), body("float s = 0;")),
    "long double": ("msl-unsupported", "double", body("long double s = 0;"), body("long s = 0;")),
    "double in a cast": (
        "msl-unsupported",
        "double",
        body("a[i] = (double)a[i];"),
        body("a[i] = (float)b[i];"),
    ),
    "long double literal": ("msl-unsupported", "1.5L", body("a[i] = 1.5L;"), body("a[i] = 15L;")),
    "long long": ("msl-unsupported", "long", body("long long n = 1;"), body("long n = 1;")),
    "goto": ("msl-unsupported", "goto", body("goto end; end: return;"), body("return;")),
    "new": ("msl-unsupported", "new", body("thread float* p = new float[4];"), body("float p[4];")),
    "delete": (
        "msl-unsupported",
        "delete",
        "void f(thread float* p) { delete p; }",
        "struct S { S() = delete; int n; };",
    ),
    "throw": ("msl-unsupported", "throw", body("throw 1;"), body("return;")),
    "try": ("msl-unsupported", "try", body("try { } catch (...) { }"), body("{ }")),
    "virtual": ("msl-unsupported", "virtual", "struct S { virtual void f(); };", "struct S { void f(); };"),
    "dynamic_cast": (
        "msl-unsupported",
        "dynamic_cast",
        "struct S { int n; }; void f(thread S* s) { dynamic_cast<thread S*>(s); }",
        "struct S { int n; }; void f(thread S* s) { static_cast<thread S*>(s); }",
    ),
    "typeid": ("msl-unsupported", "typeid", body("typeid(a);"), body("sizeof(a);")),
    "register": ("msl-unsupported", "register", body("register int n = 1;"), body("int n = 1;")),
    "thread_local": ("msl-unsupported", "thread_local", body("thread_local int n = 1;"), body("int n = 1;")),
    "asm": ("msl-unsupported", "asm", body('asm("nop");'), body(";")),
    "std": (
        "msl-unsupported",
        "std",
        body("a[i] = std::max(a[i], 1.0f);"),
        body("a[i] = metal::max(a[i], 1.0f);"),
    ),
    "variadic": (
        "msl-unsupported",
        "...",
        "void f(int n, ...) { }",
        "template <typename... T> void f(int n, T... rest) { }",
    ),
    "atomic of half": (
        "msl-needs-version",
        "atomic",
        "void f(device atomic<half>* p) { }",
        "void f(device atomic_int* p) { }",
    ),
    # reserved names
    "half as a name": ("msl-reserved-name", "half", body("float half = 0.5f;"), body("float halves = 0.5f;")),
    "half as a parameter": ("msl-reserved-name", "half", "void f(float half) { }", "void f(half half_) { }"),
    "thread as a name": ("msl-reserved-name", "thread", body("int thread = 0;"), body("thread int t = 0;")),
    "constant as a name": (
        "msl-reserved-name",
        "constant",
        body("float constant = a[i];"),
        "constant float c = 1.0f;",
    ),
    "device in an expression": ("msl-reserved-name", "device", body("a[i] = device + 1;"), body("a[i] = 1;")),
    "kernel as a name": (
        "msl-reserved-name",
        "kernel",
        "void f(float kernel) { }",
        "void f(float kernel_) { }",
    ),
    "threadgroup as an array": (
        "msl-reserved-name",
        "threadgroup",
        body("float threadgroup[4];"),
        body("threadgroup float t[4];"),
    ),
    "a macro": (
        "msl-reserved-name",
        "M_SQRT2_F",
        body("float M_SQRT2_F = 1.4f;"),
        body("float r = M_SQRT2_F;"),
    ),
    "a limit": ("msl-reserved-name", "INT_MAX", body("int INT_MAX = 7;"), body("int n = INT_MAX;")),
    "infinity": (
        "msl-reserved-name",
        "INFINITY",
        "constant float INFINITY = 1.0f;",
        "constant float x = INFINITY;",
    ),
    "main": ("msl-reserved-name", "main", "kernel void main() { }", "namespace n { kernel void main() { } }"),
    "a plain main": ("msl-reserved-name", "main", "void main() { }", "void main_() { }"),
    "the emulator's own": ("msl-reserved-name", "__emu_x", body("int __emu_x = 1;"), body("int emu_x = 1;")),
    # scopes
    "a global": (
        "msl-scope",
        "weights",
        "float weights[2] = {0.25f, 0.75f};",
        "constant float weights[2] = {0.25f, 0.75f};",
    ),
    "a const global": ("msl-scope", "n", "const int n = 4;", "constant int n = 4;"),
    "a static global": ("msl-scope", "n", "static int n;", "static constant int n = 4;"),
    "a pointer": ("msl-scope", "p", "device float* p;", "constant float* constant p = nullptr;"),
    "a threadgroup global": ("msl-scope", "t", "threadgroup float t[4];", body("threadgroup float t[4];")),
    "a global in a namespace": (
        "msl-scope",
        "n",
        "namespace s { int n = 1; }",
        "namespace s { constant int n = 1; }",
    ),
    "a global with its class": ("msl-scope", "s", "struct S { int n; } s;", "struct S { int n; };"),
    "no sampler": ("msl-scope", "s", "constexpr float s = 1;", "constexpr sampler s(coord::pixel);"),
    "an uninitialized constant": ("msl-scope", "c", "constant float c;", "constant float c = 1.0f;"),
    "an uninitialized table": ("msl-scope", "c", "constant float c[3];", "constant float c[] = {1.0f};"),
    "a function constant with a value": (
        "msl-scope",
        "c",
        "constant int c [[function_constant(0)]] = 3;",
        "constant int c [[function_constant(0)]];",
    ),
    "a static local": ("msl-scope", "n", body("static int n = 0;"), body("static constant int n = 0;")),
    "a static const local": ("msl-scope", "n", body("static const int n = 0;"), body("constexpr int n = 0;")),
    "a device local": ("msl-scope", "x", body("device float x;"), body("device float* x = a;")),
    "threadgroup in a function": (
        "msl-scope",
        "t",
        "void f() { threadgroup float t[4]; }",
        "void f(threadgroup float* t) { threadgroup float* u = t; }",
    ),
    "threadgroup with a value": (
        "msl-scope",
        "t",
        body("threadgroup float t = 0;"),
        body("threadgroup float t;"),
    ),
    "threadgroup with braces": (
        "msl-scope",
        "t",
        body("threadgroup float t[2] = {1, 2};"),
        body("threadgroup float t[2]; t[0] = 1;"),
    ),
    "a member in a space": (
        "msl-scope",
        "x",
        "struct S { threadgroup float x; };",
        "struct S { threadgroup float* x; };",
    ),
    # address spaces
    "a pointer without a space": (
        "msl-address-space",
        "*",
        body("float* p = a + 4;"),
        body("device float* p = a + 4;"),
    ),
    "const without a space": (
        "msl-address-space",
        "*",
        body("const float* p = a;"),
        body("const device float* p = a; float const device* q = a;"),
    ),
    "a parameter without a space": (
        "msl-address-space",
        "*",
        "void f(float* p) { }",
        "void f(thread float* p, float x[2]) { }",
    ),
    "a reference without a space": (
        "msl-address-space",
        "&",
        "void f(float& p) { }",
        "void f(thread float& p) { }",
    ),
    "a reference to an array": (
        "msl-address-space",
        "&",
        "void f(float (&p)[4]) { }",
        "void f(thread float (&p)[4]) { }",
    ),
    "a result without a space": (
        "msl-address-space",
        "*",
        "float* f(device float* p) { return p; }",
        "device float* f(device float* p) { return p; }",
    ),
    "a member without a space": (
        "msl-address-space",
        "*",
        "struct S { float* p; };",
        "struct S { device float* p; };",
    ),
    "an alias without a space": ("msl-address-space", "*", "using P = float*;", "using P = device float*;"),
    "a cast without a space": (
        "msl-address-space",
        "*",
        body("device uint* p = (uint*)a;"),
        body("device uint* p = (device uint*)a; uint n = (i) * 2; n = (uint)i * n;"),
    ),
    "a named cast": (
        "msl-address-space",
        "*",
        body("device uint* p = reinterpret_cast<uint*>(a);"),
        body("device uint* p = reinterpret_cast<device uint*>(a);"),
    ),
    "a class without a space": (
        "msl-address-space",
        "*",
        "struct S { int n; }; void f(S* s) { }",
        "struct S { int n; }; void f(thread S* s) { }",
    ),
    "a vector": (
        "msl-address-space",
        "&",
        "void f(vec<float, 4>& v) { }",
        "void f(thread vec<float, 4>& v) { }",
    ),
    "a qualified type": (
        "msl-address-space",
        "*",
        "void f(metal::float4* v) { }",
        "void f(device metal::float4* v) { }",
    ),
    "not a template's own type": (
        "msl-address-space",
        "*",
        "template <typename T> void f(float* p, T x) { }",
        "template <typename T> void f(T* p) { }",
    ),
    "not an alias": (
        "msl-address-space",
        "*",
        "struct S { }; void f(S* p) { }",
        "typedef device float dfloat; void f(dfloat* p) { auto* q = p; auto& r = *p; }",
    ),
    "a product is no pointer": (
        "msl-address-space",
        "*",
        body("uint* p;"),
        body("uint n = 2; n = i * n; uint m = n * i;"),
    ),
    "a reference to a pointer": (
        "msl-address-space",
        "v",
        "kernel void k(constant float* &v [[buffer(0)]]) { }",
        "void f(constant float* &v) { } kernel void k(constant float* constant &v [[buffer(0)]]) { }",
    ),
    "a component's address": (
        "msl-refused",
        "x",
        body("float4 v; thread float* p = &v.x;"),
        "struct P { float x; }; " + body("P v; thread float* p = &v.x;"),
    ),
    "an element's component": (
        "msl-refused",
        "y",
        "void f(device float4* v) { device float* p = &v[2].y; }",
        "void f(device float4* v, float x) { device float4* p = &v[2]; x = x * v[2].y; }",
    ),
    # kernels
    "a result": ("msl-kernel", "k", "kernel float k() { return 1; }", "kernel void k() { }"),
    "an overload": (
        "msl-kernel",
        "k",
        "kernel void k(device int* a) { } kernel void k(device float* a) { }",
        "namespace n { kernel void k(device int* a) { } } kernel void k(device float* a) { }",
    ),
    "a kernel in a class": (
        "msl-kernel",
        "k",
        "struct S { kernel void k() { } };",
        "struct S { void k() { } };",
    ),
    "a buffer's index twice": (
        "msl-kernel",
        "buffer",
        "kernel void k(device int* a [[buffer(1)]], device int* b [[buffer(1)]]) { }",
        "kernel void k(device int* a [[buffer(1)]], device int* b [[buffer(0)]], threadgroup int* t [[threadgroup(1)]]) { }",
    ),
    "a value": (
        "msl-kernel",
        "n",
        "kernel void k(device int* a [[buffer(0)]], int n) { }",
        "kernel void k(device int* a [[buffer(0)]], constant int& n) { }",
    ),
    "a value in a buffer": (
        "msl-kernel",
        "n",
        "kernel void k(float4 n [[buffer(0)]]) { }",
        "kernel void k(constant float4& n [[buffer(0)]]) { }",
    ),
    "a misspelled input": (
        "msl-kernel",
        "i",
        "kernel void k(uint i [[thread_position_in_gird]]) { }",
        "kernel void k(uint i [[thread_position_in_grid]]) { }",
    ),
    "a thread pointer": (
        "msl-kernel",
        "a",
        "kernel void k(thread int* a) { }",
        "kernel void k(device int* a) { }",
    ),
    "a threadgroup buffer": (
        "msl-kernel",
        "a",
        "kernel void k(threadgroup int* a [[buffer(0)]]) { }",
        "kernel void k(threadgroup int* a [[threadgroup(0)]]) { }",
    ),
    "a device threadgroup": (
        "msl-kernel",
        "a",
        "kernel void k(device int* a [[threadgroup(0)]]) { }",
        "kernel void k(device int* a [[buffer(0)]]) { }",
    ),
    "an int position": (
        "msl-kernel",
        "i",
        "kernel void k(int i [[thread_position_in_grid]]) { }",
        "kernel void k(uint32_t i [[thread_position_in_grid]]) { }",
    ),
    "a vector index": (
        "msl-kernel",
        "i",
        "kernel void k(uint2 i [[thread_index_in_threadgroup]]) { }",
        "kernel void k(unsigned int i [[thread_index_in_threadgroup]]) { }",
    ),
    "a float position": (
        "msl-kernel",
        "i",
        "kernel void k(float2 i [[thread_position_in_grid]]) { }",
        "kernel void k(vec<ushort, 2> i [[thread_position_in_grid]]) { }",
    ),
    "a position by reference": (
        "msl-kernel",
        "i",
        "kernel void k(thread uint& i [[thread_position_in_grid]]) { }",
        "kernel void k(const uint i [[thread_position_in_grid]]) { }",
    ),
    "positions of two types": (
        "msl-kernel",
        "n",
        "kernel void k(uint2 i [[thread_position_in_grid]], ushort2 n [[threads_per_grid]]) { }",
        "kernel void k(uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]) { }",
    ),
    "positions of two and three": (
        "msl-kernel",
        "n",
        "kernel void k(uint2 i [[thread_position_in_grid]], uint3 n [[threadgroup_position_in_grid]]) { }",
        "kernel void k(uint3 i [[thread_position_in_grid]], ushort3 n [[threadgroup_position_in_grid]]) { }",
    ),
    # limits
    "buffer 31": (
        "msl-limit",
        "buffer",
        "kernel void k(device float* z [[buffer(31)]]) { }",
        "kernel void k(device float* z [[buffer(30)]]) { }",
    ),
    "texture 128": (
        "msl-limit",
        "texture",
        "kernel void k(texture2d<float> t [[texture(128)]]) { }",
        "kernel void k(texture2d<float> t [[texture(127)]]) { }",
    ),
    "sampler 16": (
        "msl-limit",
        "sampler",
        "kernel void k(sampler s [[sampler(16)]]) { }",
        "kernel void k(sampler s [[sampler(15)]]) { }",
    ),
    "threadgroup 31": (
        "msl-limit",
        "threadgroup",
        "kernel void k(threadgroup int* t [[threadgroup(31)]]) { }",
        "kernel void k(threadgroup int* t [[threadgroup(30)]]) { }",
    ),
    "32 buffers": (
        "msl-limit",
        "p31",
        f"kernel void k({', '.join(f'device int* p{i}' for i in range(32))}) {{ }}",
        f"kernel void k({', '.join(f'device int* p{i}' for i in range(31))}) {{ }}",
    ),
    "2048 threads": (
        "msl-limit",
        "max_total_threads_per_threadgroup",
        "[[max_total_threads_per_threadgroup(2048)]] kernel void k() { }",
        "[[max_total_threads_per_threadgroup(1024)]] kernel void k() { }",
    ),
    "no header": (
        "msl-unsupported",
        "metal",
        '# 1 "program_source"\n' + body("a[i] = metal::sqrt(a[i]);"),
        body("a[i] = metal::sqrt(a[i]);"),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_refused(name: str) -> None:
    slug, word, refused, _ = PAIRS[name]
    assert found(refused, header="" if name == "no header" else HEADER) == [(slug, word)]


@pytest.mark.parametrize("name", PAIRS)
def test_accepted(name: str) -> None:
    assert found(PAIRS[name][3]) == []


# What needs a version: the text, the word it is about, and the first version that has it.
SINCE = {
    "atomic_float": ("void f(device atomic_float* s) { }", "atomic_float", (3, 0)),
    "atomic<float>": ("void f(device atomic<float>* s) { }", "atomic", (3, 0)),
    "metal::atomic<float>": ("void f(device metal::atomic<float>* s) { }", "atomic", (3, 0)),
    "atomic<int>": ("void f(device atomic<int>* s) { }", "atomic", (2, 4)),
    "atomic_ulong": ("void f(device atomic_ulong* s) { }", "atomic_ulong", (2, 4)),
    "atomic_bool": ("void f(device atomic_bool* s) { }", "atomic_bool", (2, 4)),
    "atomic_max": (
        "template <typename T> void f(T s) { atomic_max_explicit(s, 1ul, memory_order_relaxed); }",
        "atomic_max_explicit",
        (2, 4),
    ),
    "shuffle and fill": (
        body("a[i] = simd_shuffle_and_fill_up(a[i], 1.0f, 1);"),
        "simd_shuffle_and_fill_up",
        (2, 4),
    ),
    "bfloat": (body("bfloat t = bfloat(a[i]);"), "bfloat", (3, 1)),
    "bfloat4": ("void f(bfloat4 t) { }", "bfloat4", (3, 1)),
    "simdgroup_bfloat8x8": (body("simdgroup_bfloat8x8 m;"), "simdgroup_bfloat8x8", (3, 1)),
    "nextafter": (body("a[i] = nextafter(a[i], 1.0f);"), "nextafter", (3, 1)),
    "a fence": (
        body("atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);"),
        "atomic_thread_fence",
        (3, 2),
    ),
    "a lambda": (body("auto sq = [](float x) { return x * x; }; a[i] = sq(a[i]);"), "[", (3, 2)),
    "a lambda as an argument": ("void f() { g([&] { return 1; }); }", "[", (3, 2)),
    "logging": (body('os_log_default.log("x");'), "os_log_default", (3, 2)),
    "coherent": ("void f(coherent(device) float* p) { }", "coherent", (3, 2)),
    "an input at program scope": ("uint tid [[thread_position_in_grid]];", "tid", (3, 1)),
    "a buffer at program scope": ("device float* p [[buffer(0)]];", "p", (3, 2)),
    "snorm10a2": (body("uint n = pack_float_to_snorm10a2(float4(1));"), "pack_float_to_snorm10a2", (4, 0)),
    "required threads": (
        "[[required_threads_per_threadgroup(8, 8, 1)]] kernel void k() { }",
        "required_threads_per_threadgroup",
        (4, 0),
    ),
    "stitchable": ("[[stitchable]] float f(float x) { return x; }", "stitchable", (2, 4)),
    "a tensor": ("void f(tensor<device float, dextents<int, 2>> t) { }", "tensor", (4, 0)),
}
VERSIONS = ((2, 3), (2, 4), (3, 0), (3, 1), (3, 2), (4, 0))


def test_float_atomics_are_in_device_memory() -> None:
    for kind in ("atomic_float", "atomic<float>", "metal::atomic<float>"):
        assert found(f"void f(threadgroup {kind}* p) {{ }}", (3, 0)) == [("msl-scope", "p")]
        assert found(body(f"threadgroup {kind} t;"), (3, 0)) == [("msl-scope", "t")]
        assert found(f"void f(device {kind}* p, threadgroup atomic_uint* q) {{ }}", (3, 0)) == []


@pytest.mark.parametrize("name", SINCE)
def test_versions(name: str) -> None:
    text, word, since = SINCE[name]
    for version in VERSIONS:
        now = found(text, version)
        if version < since:
            assert now[0] == ("msl-needs-version", word), version
        else:
            assert now == [], version


def test_the_version_is_told() -> None:
    u = unit("void f(device atomic_float* s) { }")
    assert rules.findings(u)[0].message == "`atomic_float` needs Metal 3.0; this text is for 2.3"


OWN = {
    "a function": "float nextafter(float x, float y) { return x; } " + body("a[i] = nextafter(a[i], 1.0f);"),
    "a class": "struct bfloat { ushort bits; }; void f(bfloat x) { }",
    "a member": "struct S { int nextafter; }; void f(S s) { s.nextafter = 1; }",
    "another namespace": "void f() { mine::nextafter(1.0f, 2.0f); }",
    "a template": "template <typename T> struct atomic { T value; }; void f(device atomic<float>* p) { }",
}


@pytest.mark.parametrize("name", OWN)
def test_names_that_the_text_declares_are_not_metals(name: str) -> None:
    assert found(OWN[name]) == []


ACCEPTED = {
    "methods with spaces": "struct S { int n; int f() const device { return n; } int f() const thread; S(int m) thread : n(m) {} };",
    "attributes with two brackets": body("int x[4]; int y[4]; y[x[0]] = 1;"),
    "a subscript that looks like a lambda": body("int x[] = {1, 2}; a[x[0]] = (x[1]);"),
    "a constant in a function": body("constexpr constant float c[2] = {1.0f, 2.0f}; a[i] = c[0];"),
    "an instantiation": "template <typename T> kernel void k(device T* a) { } template [[host_name(\"k_float\")]] kernel void k<float>(device float* a);",
    "a threadgroup variable in a template": "template <typename T> [[kernel]] void k(device T* a) { threadgroup T t[32]; }",
    "optional buffers with one index": "constant bool c [[function_constant(0)]]; kernel void k(device int* a [[buffer(0), function_constant(c)]], device float* b [[buffer(0)]]) { }",
    "a function pointer": "void f(float (*g)(float)) { }",
    "an extern constant": "extern constant float c;",
    "a union": body("union { float f; uint u; } v; v.f = a[i];"),
    "a forward declaration": "struct S; float f(S s); enum E : uint { one }; typedef struct T U;",
    "an operator": "struct S { int n; }; S operator+(S a, S b) { return a; } bool operator<(const thread S& a, const thread S& b) { return true; }",
    "swizzles": body("float4 v = float4(1); v.xy = v.zw; a[i] = v.x & 1;"),
    "an aligned threadgroup variable": body("threadgroup __attribute__((aligned(16))) float t[16]; t[0] = 1;"),
    "a result of a cast times something": body("float n = 2; a[i] = (float)b[i] * n; int f = (int)n * int(n);"),
    "a choice of products": body("float n = 2; a[i] = i > 2 ? 1 : n * a[i];"),
    "an array of buffers": "kernel void k(const device float* (&p)[4] [[buffer(0)]]) { }",
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_neighbours_are_let_pass(name: str) -> None:
    assert found(ACCEPTED[name]) == []


def test_size_t_is_warned_about_once() -> None:
    u = unit("kernel void k(constant size_t& n [[buffer(0)]], constant size_t& m [[buffer(1)]]) { }")
    assert [(f.severity, _word(u, f)) for f in rules.findings(u)] == [("warning", "n")]


def test_findings_come_in_source_order() -> None:
    text = body("goto a; double s; float half;") + "int n;"
    assert [word for _, word in found(text)] == ["goto", "double", "half", "n"]
