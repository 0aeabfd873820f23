"""Neighbours of what Apple's compiler refuses, in pairs: refused on its line beside accepted, for a language version."""

from __future__ import annotations

import pytest

from metaljit.runtime.msl.check import Report, check
from metaljit.runtime.msl.names import Version

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = (
    "kernel void kk(device float* a [[buffer(0)]], device int* c [[buffer(1)]], device half* h [[buffer(2)]],"
    " uint i [[thread_position_in_grid]]) {\n"
)


def body(statements: str) -> str:
    """The statements on line 4."""
    return f"{HEAD}{KERNEL}{statements}\n}}\n"


def top(declarations: str) -> str:
    """The declarations from line 3 on."""
    return f"{HEAD}{declarations}\n"


def errors(report: Report) -> list[tuple[int, str]]:
    return [(d.span.line if d.span else 0, d.slug) for d in report.findings if d.severity == "error"]


def places(report: Report) -> list[tuple[int, int]]:
    return [d.span.source.position(d.span.start) for d in report.findings if d.span]


REF = "void f(thread float& x) { x = 1; }\n"
# name: slug, line, refused, accepted
PAIRS: dict[str, tuple[str, int, str, str]] = {
    # components of vectors
    "a reference to a component": ("msl-refused", 4, body("float4 v = 1; thread float& r = v.x;"), body("float4 v = 1; thread float4& r = v; r.x = 2;")),
    "a reference to an element": ("msl-refused", 4, body("float4 v = 1; thread float& r = v[0];"), body("float w[2]; thread float& r = w[0]; r = 1;")),
    "a const reference to a component": ("msl-refused", 4, body("float4 v = 1; thread float& r = v.y;"), body("float4 v = 1; const thread float& r = v.y; a[i] = r;")),
    "the address of an element": ("msl-refused", 4, body("float4 v = 1; thread float* p = &v[1];"), body("float4 v[2]; thread float4* p = &v[1]; p->x = 1;")),
    "a component as an argument": ("msl-refused", 4, top(f"{REF}kernel void k(device float* a) {{ float4 v = 1; f(v.x); a[0] = v.x; }}"), top(f"{REF}kernel void k(device float* a) {{ float v = 1; f(v); a[0] = v; }}")),
    "a component of a member": ("msl-refused", 5, top(f"struct S {{ float4 v; float x; }};\n{REF}kernel void k() {{ S s; f(s.v.x); }}"), top(f"struct S {{ float4 v; float x; }};\n{REF}kernel void k() {{ S s; f(s.x); }}")),
    "a component for the library": ("msl-refused", 4, body("float4 u, v; a[i] = sincos(a[i], v.y);"), body("float s; a[i] = sincos(a[i], s);")),
    "a long list": ("msl-refused", 4, body("float2 v = {1, 2, 3}; a[i] = v.x;"), body("float2 v = {1, 2}; float4 w[] = {1, 2, 3, 4, 5}; a[i] = v.x + w[0].x;")),
    "a long list without a name": ("msl-refused", 4, body("a[i] = float2{1, 2, 3}.x;"), body("a[i] = float3{1, 2, 3}.x;")),
    "a shift of other components": ("msl-refused", 4, body("int4 v = int4(1) >> uint3(2u);"), body("int4 v = int4(1) >> uint4(2u); v <<= uint4(1u); char4 w = char4(1) << int4(3);")),
    "a sum of other types": ("msl-refused", 4, body("int4 v = int4(1) + uint4(2u);"), body("int4 v = int4(1) + int4(uint4(2u));")),
    # pointers where no variable is declared
    "a template argument": ("msl-address-space", 4, body("metal::array<float*, 2> p;"), body("metal::array<device float*, 2> p; p[0] = a;")),
    "a pointer behind other words": ("msl-address-space", 3, top("static inline float* f(device float* p) { return p; }"), top("device static inline float* f(device float* p) { return p; }\nvoid g(device metal::float4* q, volatile device unsigned int* r) { }")),
    "sizeof": ("msl-address-space", 4, body("c[i] = sizeof(float*);"), body("c[i] = sizeof(device float*) + sizeof(float) * 2;")),
    "an operator's result": ("msl-address-space", 3, top("struct S { float v[4]; float& operator[](int i) { return v[i]; } };"), top("struct S { float v[4]; thread float& operator[](int i) { return v[i]; } };")),
    "sincos in device memory": ("msl-address-space", 4, body("a[i] = sincos(a[i], a[0]);"), body("float s; a[i] = sincos(a[i], s) + precise::sincos(a[i], s);")),
    "an array as a parameter": ("msl-address-space", 4, top("template <typename T> void f(T x[4], T y) { x[0] = y; }\nkernel void k(device float* p) { f(p, p[0]); }"), top("template <typename T> void f(T x[4], T y) { x[0] = y; }\nkernel void k(device float* p) { float x[4]; f(x, p[0]); }")),
    "a string": ("msl-address-space", 4, body('constant char* s = "abc"; device char* t = s;'), body('constant char* s = "abc"; c[i] = s[0];')),
    # scopes
    "an extern variable": ("msl-scope", 3, top("extern int x;"), top("extern constant int x;\nconstant int x = 1;")),
    "a static member": ("msl-scope", 3, top("struct S { static const int n = 3; };"), top("struct S { static constant int n = 3; };")),
    "a static constexpr member": ("msl-scope", 3, top("struct S { static constexpr int n = 3; };"), top("struct S { static constexpr constant int n = 3; int v[n]; };")),
    "a static constexpr local": ("msl-scope", 4, body("static constexpr int n = 3; c[i] = n;"), body("static constexpr constant int n = 3; c[i] = n; constexpr int m = 2; c[i] = m;")),
    "a function constant as a bound": ("msl-scope", 4, top("constant int n [[function_constant(0)]];\nkernel void k(device float* p) { float t[n]; p[0] = t[0]; }"), top("constant int n [[function_constant(0)]];\nkernel void k(device float* p) { float t[4]; t[n] = 1; p[n] = t[n]; }")),
    "a constant made of it": ("msl-scope", 5, top("constant int n [[function_constant(0)]];\nconstant int m = n * 2;\nkernel void k(device int* p) { threadgroup int t[m]; p[0] = t[0]; }"), top("constant int n [[function_constant(0)]];\nconstant int m = is_function_constant_defined(n) ? n : 3;\nkernel void k(device int* p) { p[0] = m; }")),
    "a function constant as a case": ("msl-scope", 4, top("constant int n [[function_constant(0)]];\nkernel void k(device int* p) { switch (p[0]) { case n: p[0] = 1; } }"), top("constant int n [[function_constant(0)]];\nkernel void k(device int* p) { switch (n) { case 1: p[0] = 1; } }")),
    "an array of function constants": ("msl-scope", 3, top("constant float n[2] [[function_constant(0)]];"), top("constant float2 n [[function_constant(0)]];")),
    "a class as a function constant": ("msl-scope", 4, top("struct S { int x; };\nconstant S n [[function_constant(0)]];"), top("enum class E : int { x };\nconstant E n [[function_constant(0)]];")),
    "the last function constant": ("msl-limit", 3, top("constant int n [[function_constant(65536)]];"), top("constant int n [[function_constant(65535)]];")),
    # words, numbers and later C++
    "as_type as a name": ("msl-reserved-name", 4, body("int as_type = 1;"), body("int as_types = as_type<int>(a[i]);")),
    "a namespace": ("msl-reserved-name", 3, top("namespace kernel { }"), top("namespace kernels { }")),
    "a parameter of a template": ("msl-reserved-name", 3, top("template <typename thread> void f() { }"), top("template <typename threads> void f() { }")),
    "using namespace std": ("msl-unsupported", 3, top("using namespace std;"), top("namespace mine { } using namespace mine;")),
    "consteval": ("msl-unsupported", 3, top("consteval int f() { return 1; }"), top("constexpr int f() { return 1; }")),
    "concept": ("msl-unsupported", 3, top("template <typename T> concept C = true;"), body("int concept = 1, requires = 2; c[i] = concept + requires;")),
    "requires": ("msl-unsupported", 3, top("template <typename T> requires (sizeof(T) == 4) T f(T x) { return x; }"), top("template <typename T, typename = enable_if_t<sizeof(T) == 4>> T f(T x) { return x; }")),
    "an auto parameter": ("msl-unsupported", 3, top("void f(auto x) { }"), top("template <typename T> void f(T x) { auto y = x; }")),
    "the operator noexcept": ("msl-unsupported", 3, top("int f(int x) { return noexcept(x) ? 1 : 2; }"), top("int f(int x) noexcept { return x; }")),
    "no typename": ("msl-refused", 4, top("template <typename T> struct A { typedef T type; };\ntemplate <typename T> A<T>::type f(T x) { return x; }"), top("template <typename T> struct A { typedef T type; };\ntemplate <typename T> typename A<T>::type f(T x) { return x; }")),
    "parentheses for an aggregate": ("msl-refused", 4, top("struct S { int n; float x; };\nvoid f() { S s(1, 2); s.n = 1; }"), top("struct S { int n; float x; };\nvoid f() { S s{1, 2}; S t = {.n = 1, .x = s.x}; t.n = 2; }")),
    "a suffix": ("msl-refused", 4, body("a[i] = 1.0q;"), body("a[i] = 1.0f + .5h + 0x1p3f + 1'000 + 10ul + 0xFFu + 0b11u + 1E+5;")),
    "the suffix of a whole number": ("msl-refused", 4, body("half x = 1h;"), body("half x = 1.h;")),
    # kernels
    "no index": ("msl-kernel", 3, top("kernel void k(device float* a [[buffer]]) { }"), top("kernel void k(device float* a) { }")),
    "two indices": ("msl-kernel", 3, top("kernel void k(device float* a [[buffer(0), buffer(1)]]) { }"), top("kernel void k(device float* a [[buffer(0)]], device float* b [[buffer(1)]]) { }")),
    "a buffer as a texture": ("msl-kernel", 3, top("kernel void k(device float* a [[texture(0)]]) { }"), top("kernel void k(array<texture2d<float>, 4> a [[texture(0)]]) { }")),
    "a texture as a buffer": ("msl-kernel", 3, top("kernel void k(texture2d<float> a [[buffer(0)]]) { }"), top("kernel void k(metal::texture2d<float> a [[texture(0)]], depth2d<float> d [[texture(1)]]) { }")),
    "a sampler as a texture": ("msl-kernel", 3, top("kernel void k(sampler a [[texture(0)]]) { }"), top("kernel void k(sampler a [[sampler(0)]]) { }")),
    "a kernel's deduced result": ("msl-kernel", 3, top("kernel auto k(device float* a) { }"), top("auto f(float a) { return a; }")),
    "other parameters of an instantiation": (
        "msl-refused", 4,
        top('template <typename T> kernel void k(device T* a [[buffer(0)]]) { a[0] = 1; }\ntemplate [[host_name("f")]] kernel void k<float>(device int* a [[buffer(0)]]);'),
        top('template <typename T> kernel void k(device T* a [[buffer(0)]]) { a[0] = 1; }\ntemplate [[host_name("f")]] kernel void k(device float*);'),
    ),
    "an atomic that is not there": ("msl-refused", 3, top("void f(device atomic_long* p) { }"), top("void f(device atomic_int* p) { }")),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_refused(name: str) -> None:
    slug, line, text, _ = PAIRS[name]
    report = check(text)
    assert {place for place, _ in errors(report)} == {line}, report
    assert (line, slug) in errors(report), report


@pytest.mark.parametrize("name", PAIRS)
def test_accepted(name: str) -> None:
    report = check(PAIRS[name][3])
    assert errors(report) == [], report
    assert report.judged, report.reason


ACCEPTED = {
    "a kernel called like a function": top("kernel void pow(device float* a, uint i [[thread_position_in_grid]]) { a[i] = pow(a[i], 3.0f); }"),
    "a function called like the library's": top("float max(float x) { return max(x, 0.0f); }\nkernel void k(device float* p) { p[0] = max(p[1]); }"),
    "bit-fields": top("struct S { uint x : 4; uint y : 28; };"),
    "templates of one name": top(
        "template <typename T> kernel void k(device T* a [[buffer(0)]]) { a[0] = 1; }\n"
        "template <typename T> kernel void k(device T* a [[buffer(0)]], constant float& w [[buffer(1)]]) { a[0] = w; }\n"
        'template [[host_name("one")]] kernel void k<float>(device float* a [[buffer(0)]]);\n'
        'template [[host_name("two")]] kernel void k<float>(device float* a [[buffer(0)]], constant float& w [[buffer(1)]]);'
    ),
    "packed from another type": body("packed_uchar4 p = packed_uchar4(uint4(1u)); c[i] = p.x;"),
    "a mark of byte order": "\ufeff" + body("a[i] = 1;"),
    "line ends of others": body("a[i] = 1;").replace("\n", "\r"),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_valid(name: str) -> None:
    report = check(ACCEPTED[name])
    assert errors(report) == [], report
    assert report.judged, report.reason


@pytest.mark.parametrize(("version", "refused"), [((3, 2), True), ((4, 0), False)])
def test_deduced_parameters_of_templates(version: Version, refused: bool) -> None:
    assert check(top("template <auto N> int f() { return N; }"), version=version).refused == refused


# ---- places and numbers of messages ----


def test_an_error_in_the_library_is_told_once_where_it_is_used() -> None:
    for text in ("uint x = as_type<uint>(h[i]);", "vec<float, 5> v;"):
        assert [line for line, _ in errors(check(body(text)))] == [4], text


def test_no_error_is_lost() -> None:
    wrong = (
        "a[i] = max(a[i], 3);\nint x{0} = y{0};\ndouble d{0};\nthread float* q{0} = a;\nfloat* p{0} = a;\n"
    )
    found = errors(check(body("".join(wrong.format(n) for n in range(30)))))
    assert [line for line, _ in found] == list(range(4, 154))


def test_two_mistakes_of_a_line() -> None:
    report = check(body("a[i] = max(a[i], 3); float* p = a;"))
    assert places(report) == [(4, 8), (4, 27)]


def test_comments_and_strings_lead_nowhere() -> None:
    report = check(body('/* float* p */ constant char* s = "float* q = 1.0q"; float* r = a; // float* t'))
    assert places(report) == [(4, 59)]
    report = check(body("/* one\nfloat* p */ c[i] = 1'000 + 2'000; float* r = a;"))
    assert places(report) == [(5, 40)]


def test_a_line_that_the_text_names_itself() -> None:
    (found,) = check(f"{HEAD}#line 100\n{KERNEL}float* p = a; }}\n").findings
    assert str(found).startswith("program_source:101:6: error: pointer type must have")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_ends(ends: str) -> None:
    report = check(body("a[i] = 1;\nfloat* p = a;").replace("\n", ends))
    assert places(report) == [(5, 6)]


def test_a_macro_s_mistake_is_told_once_a_line() -> None:
    text = f"{HEAD}#define M(x) max(x, 3)\n{KERNEL}a[i] = M(a[i]) + M(a[i]);\n}}\n"
    assert errors(check(text)) == [(5, "msl-refused")]
