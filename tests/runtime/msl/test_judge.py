"""The judge of address spaces: what it reads, what it says of it, and what it leaves to others."""

from __future__ import annotations

import pytest

from metaljit.runtime.msl.compile import preprocess
from metaljit.runtime.msl.declarations import declarations, view
from metaljit.runtime.msl.judge import Verdict, judge, named
from metaljit.runtime.msl.judge_text import opencl
from metaljit.runtime.msl.tokens import lex
from metaljit.runtime.msl.unit import Unit

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def unit(text: str) -> Unit:
    tokens = lex(preprocess(HEAD + text))
    seen = view(tokens)
    return Unit(tokens, seen, declarations(seen))


def verdict(text: str) -> Verdict:
    return judge(unit(text))


# Texts that it has to read without a word.
READ = {
    "a constant number as a reference": (
        "static constant constexpr const int zero = 0; int use(const constant int& z) { return z; } "
        "kernel void k(device int* o [[buffer(0)]]) { o[0] = use(zero); }"
    ),
    "a value as a reference to const": (
        "template <typename T> T three(thread const T& v) { return v * 3; } "
        "kernel void k(device int* o [[buffer(0)]]) { const short a = 1; o[0] = three<short>(a + 1) + three(a); }"
    ),
    "swizzles": "void f(device float4* v, thread float3& w) { v[0].xy = w.zx; w.rgb *= v[1].aaa; float x = v->xyzw.y; }",
    "members called like swizzles": "struct S { float xy; }; void f(thread S& s) { s.xy = 1; }",
    "packed": "void f(device packed_float3* p) { float3 q = p[0]; p[0] = q * 2; p[0].x = dot(float3(p[1]), q); }",
    "matrices": "void f(constant float4x4& m, device float4* v) { v[0] = m * v[1]; float4x4 n = m * m; v[1] = n[2]; }",
    "choices": "void f(device float4* v, float4 w, bool c) { v[0] = c ? w : float4(1); v[1] = c ? v[0] : w; }",
    "constants": "constant float t[2] = {1, 2}; constant int n = 3; constant float4 c = float4(1); float g(constant float* p);"
    " void f(thread float* x) { float a[n]; x[0] = t[1] + c.x + g(t) + g(t + 1); a[0] = 1; }",
    "a constant in a function": "float g(constant float* p); float f() { constexpr constant float t[2] = {1, 2}; return g(t); }",
    "function constants": "constant bool c [[function_constant(0)]]; float f() { return c && is_function_constant_defined(c); }",
    "threadgroup variables": "template <typename T> void g(threadgroup T* p);"
    " template <typename T> kernel void k(device T* a) { threadgroup T s[4], t; s[0] = a[0]; t = s[1]; g(s); g(&t); }"
    ' template [[host_name("x")]] kernel void k<float>(device float* a);',
    "an aligned one": "kernel void k() { threadgroup __attribute__((aligned(16))) float s[4]; s[0] = 1; }",
    "methods for each space": "struct S { float x; float get() const thread { return x; } float get() const device { return x; }"
    " float get() const constant { return x; } float get() const threadgroup { return x; } };"
    " float f(device S* d, constant S& c, threadgroup S* t, S s) { return d->get() + c.get() + t->get() + s.get(); }",
    "elements for each space": "template <typename T> struct A { T e[2];"
    " thread T& operator[](size_t i) thread { return e[i]; } device T& operator[](size_t i) device { return e[i]; }"
    " const constant T& operator[](size_t i) const constant { return e[i]; } };"
    " void f(device A<float>& d, constant A<float>& c) { A<float> a; a[0] = c[1]; d[0] = a[0]; }",
    "constructors for each space": "struct S { float x; S(float y) thread : x(y) {} S(float y) device : x(y) {} };"
    " void f(device S* d) { d[0] = S(1); }",
    "atomics": "void f(device atomic_uint* d, threadgroup atomic_int& t) { uint e = 0;"
    " atomic_fetch_add_explicit(d, 1u, memory_order_relaxed); atomic_store_explicit(&t, 1, memory_order_relaxed);"
    " while (!atomic_compare_exchange_weak_explicit(d, &e, 1u, memory_order_relaxed, memory_order_relaxed)) { } }",
    "words of OpenCL": "void f(int local, int global) { int generic = local + global; }",
    "copies": "struct P { float4 v; int n[3]; }; void f(device P* d, constant P& c, threadgroup P& t) { P p = c; d[0] = p; t = d[1]; p = t; }",
    "references out of calls": "void f(device int* n) { int e; float x = frexp(2.0f, e); float c; x = sincos(x, c); n[0] = e + int(x + c); }",
    "arrays of pointers": "template <typename T> void f(thread T x[2], const device T* p[2]) { x[0] = p[0][0]; }"
    " void g(const device float* a) { float x[2]; const device float* p[2] = {a, a}; f(x, p); }",
    "pointers to pointers": "void f(device float*& p, int n) { p += n; } void g(device float* a) { f(a, 2); thread auto& q = a; q++; }",
    "simdgroup matrices": "void f(device float* a, threadgroup half* h) { simdgroup_float8x8 m; simdgroup_half8x8 n;"
    " simdgroup_load(m, a, 8); simdgroup_load(n, h, 8, ulong2(0, 0), true);"
    " simdgroup_multiply_accumulate(m, m, m, m); simdgroup_store(m, a); }",
    "textures": "void f(texture2d<float, access::read_write> t, sampler s, texture2d<half> u, device float4* o)"
    " { o[0] = t.read(uint2(0)); t.write(o[0], uint2(0)); half4 h = u.sample(s, float2(0)); }",
    "all of a texture": "void f(depth2d<float> d, depthcube_array<float> c, sampler s, texture2d<uint, access::read_write> t,"
    " device float4* o) { o[0] = d.gather_compare(s, float2(0), 1.0f) + d.sample_compare(s, float2(0), 1.0f, level(0));"
    " o[1] = c.sample(s, float3(0), 1, gradientcube(float3(0), float3(1))); t.atomic_fetch_max(uint2(0), 1u); }",
    "rays": "using namespace metal::raytracing; void g(thread intersection_query<triangle_data, instancing>& q) { q.abort(); }"
    " void f(instance_acceleration_structure a, device float* o) { intersection_query<triangle_data, instancing> q;"
    " q.reset(ray(float3(0), float3(1), 0.1f, 9.0f), a, 255u, intersection_params()); g(q);"
    " while (q.next()) { o[0] = q.get_candidate_triangle_distance(); }"
    " intersector<> i; float4x3 m = q.get_committed_object_to_world_transform(); o[1] = i.intersect(ray(), a).distance; }",
    "packed of another type, shifted": "void f(device packed_char4* p, int4 v) { p[0] = packed_char4(v >> uint4(3)); }",
    "coherent": "struct B { uint n[1]; }; void f(coherent device B& b, coherent(device) device uint* p)"
    " { atomic_fetch_or_explicit((coherent device atomic_uint*)&b.n[0], 1u, memory_order_relaxed); p[0] = b.n[1]; }",
    "elements of arrays": "struct N { float v; }; void g(threadgroup N* n, threadgroup float4& c); void h(device N* n);"
    " void f(device array<N, 8>* d) { threadgroup array<N, 8> a; threadgroup float4x4 m; g(&a[1], m[2]);"
    " threadgroup N* p = &a[2]; (&a[3])->v = p->v; h(&(*d)[1]); array<N, 8> b; thread N* q = &b[0]; q->v = b[1].v;"
    " const float4x4 t = m * m; float4 w = (t * t)[1] + t[2] + transpose(t)[3].xyzw; q->v = w[0] + array<float, 1>{1}[0]; }",
    "lists": "struct S { float2 v[2]; thread S& operator=(initializer_list<float2> l) thread"
    " { for (size_t i = 0; i < l.size(); ++i) v[i] = l.begin()[i]; return *this; } };"
    " void f() { S s; s = {float2(1), float2(2)}; }",
    "assignments from each space": "struct S { float x; thread S& operator=(const thread S& s) thread = default;"
    " thread S& operator=(const threadgroup S& s) thread = default; threadgroup S& operator=(const thread S& s) threadgroup"
    " = default; threadgroup S& operator=(const device S& s) threadgroup = default;"
    " device S& operator=(const thread S& s) device = default; device S& operator=(const constant S& s) device = default; };"
    " void f(device S* d) { threadgroup S t; S s; t = s; s = t; t = S(); t = d[0]; }",
    "bfloat": "void f(device bfloat* b, float x) { b[0] = bfloat(x) + b[1]; b[1] += 1.0f; x = b[0]; }",
    "a bfloat beside vectors": "void f(device bfloat* b, device float4* v, bfloat s) { v[0] = s * v[1] + v[0] * b[1];"
    " float4x4 m; m[0] = s * float4(1); const bfloat t = s; v[0] *= t; half h = 2; b[1] = static_cast<bfloat>(h); }",
    "an array as a parameter": "template <typename T> void g(T c[4], T t) { c[0] = t; } float h(const float c[2]);"
    " float f(float t) { float c[4]; g(c, t); return h(c); }",
    "locals called like swizzles": "float f(float3 xyz, device float4* v) { float2 xy = xyz.xy; return v[0].xyz.x + v[1].xy.y; }",
    "a class in a typedef": "typedef struct S { float x; device float* get(device float* p) constant { return p; }"
    " __attribute__((always_inline)) float of() constant { return x; }"
    " struct { int n; int m() constant { return n; } } inner[2]; } S; typedef thread struct T { float y; } T;"
    " float f(constant S& s, device float* a) { T t; return s.of() + s.get(a)[0] + s.inner[1].m() + t.y; }",
    "a member passed on in a method": "float g(device const float* p); struct S { float x; float f() device const { return g(&x); } };",
    "a template's own pointer": "template <typename T> float g(T p) { return p[0]; }"
    " float f(device float* a, threadgroup float* t) { return g(a) + g(t); }",
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_read(name: str) -> None:
    assert verdict(READ[name]) == Verdict((), ())


# What it says, beside what it underlines.
SAID = {
    "void f(device float* a) { thread float* p = a; }": (
        "p",
        "cannot initialize a variable of type 'thread float *' with an lvalue of type 'device float *'",
    ),
    "void f(threadgroup float* t) { device float* p; p = t; }": (
        "t",
        "assigning 'threadgroup float *' to 'device float *' changes address space of pointer",
    ),
    "void f(threadgroup float* t) { thread float& r = t[0]; }": (
        "r",
        "binding reference of type 'float' to value of type 'threadgroup float' changes address space",
    ),
}


@pytest.mark.parametrize("text", SAID)
def test_said(text: str) -> None:
    word, message = SAID[text]
    u = unit(text)
    (found,) = judge(u).findings
    assert (found.message, u.tokens.texts[found.at]) == (message, word)


def test_the_argument_that_does_not_fit_is_named() -> None:
    (found,) = verdict("void g(thread float& x); void f(device float* a) { g(a[0]); }").findings
    assert found.message.startswith("no matching function for call to 'g': ")
    assert "'device'" in found.message


def test_other_errors_are_not_its_own() -> None:
    found = verdict("void f(device float* a) { a[0] = nowhere; }")
    assert found.findings == ()
    assert [f.message for f in found.unread] == ["use of undeclared identifier 'nowhere'"]


def test_lines_stay() -> None:
    u = unit(
        "constant float t[2] = {\n1, 2};\n\nkernel void k(device float4* v\n[[buffer(0)]]) {\nthreadgroup float s[2];\nv[0].xy = s[0];\n}\n"
    )
    read, made = u.tokens, opencl(u)
    assert made.gaps == read.gaps
    assert not any("\n" in word for word in made.words)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("'__global_host float *__private'", "'device float *'"),
        ("'const __global_device float'", "'constant float'"),
        ("'__private vec<float, 4>'", "'float4'"),
        ("'__local s' (aka '__local float[4]')", "'threadgroup float[4]'"),
        ("'__judge_s'", "'s'"),
    ],
)
def test_names_of_spaces(said: str, meant: str) -> None:
    assert named(said) == meant
