"""The whole check: what Apple's compiler refuses is refused on the user's line, and its neighbours are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from metaljit.runtime.msl.check import Report, check
from metaljit.runtime.msl.names import Version

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SIGNATURE = (
    "kernel void k(device float* a [[buffer(0)]], device uchar* b [[buffer(1)]], constant float* c [[buffer(2)]],"
    " device half* h [[buffer(3)]], device int* n [[buffer(4)]], device float4* v [[buffer(5)]],"
    " threadgroup float* t [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {\n"
)
NEWEST = (4, 0)


def body(statements: str) -> str:
    """The statements on line 4 of a text."""
    return f"{HEAD}{SIGNATURE}{statements}\n}}\n"


def scope(declarations: str, statements: str = "") -> str:
    """The declarations on line 3, the statements on line 5."""
    return f"{HEAD}{declarations}\n{SIGNATURE}{statements}\n}}\n"


def errors(report: Report) -> list[tuple[int, str]]:
    return [(d.span.line if d.span else 0, d.slug) for d in report.findings if d.severity == "error"]


# Rows of the table of what Apple's compiler refused in real projects: refused beside accepted, at one version.
REFUSED: dict[str, tuple[int, str, str, str, Version]] = {
    "B01 nan": (4, "msl-refused", body("a[i] = a[i] > 0.0f ? a[i] : nan;"), body("a[i] = a[i] > 0.0f ? a[i] : NAN;"), (2, 3)),
    "B01 inf": (4, "msl-refused", body("a[i] = inf;"), body("a[i] = INFINITY;"), (2, 3)),
    "B02 max of uchar and int": (4, "msl-refused", body("b[i] = max(b[i], 3);"), body("b[i] = max(b[i], uchar(3));"), (2, 3)),
    "B02 clamp": (4, "msl-refused", body("a[i] = clamp(a[i], -1, 1);"), body("a[i] = clamp(a[i], -1.0f, 1.0f);"), (2, 3)),
    "B02 min": (4, "msl-refused", body("n[i] = min(n[i], 1u);"), body("n[i] = min(n[i], 1);"), (2, 3)),
    "B02 half": (4, "msl-refused", body("h[i] = max(h[i], 1.0f);"), body("h[i] = max(h[i], 1.0h);"), (2, 3)),
    "B03": (4, "msl-address-space", body("float* p = a + 4;"), body("device float* p = a + 4;"), (2, 3)),
    "B04": (
        3,
        "msl-address-space",
        scope("kernel void j(constant float* &v [[buffer(0)]]) {}"),
        scope("kernel void j(constant float* v [[buffer(0)]]) {}"),
        (2, 3),
    ),
    "B05 half": (4, "msl-reserved-name", body("float half = 0.5f;"), body("float half_ = 0.5f;"), (2, 3)),
    "B05 thread": (4, "msl-reserved-name", body("int thread = 0;"), body("int thread_ = 0;"), (2, 3)),
    "B05 constant": (4, "msl-reserved-name", body("float constant = a[i];"), body("float constant_ = a[i];"), (2, 3)),
    "B05 new": (4, "msl-unsupported", body("float new = 1.0f;"), body("float news = 1.0f;"), (2, 3)),
    "B05 this": (4, "msl-refused", body("float this = 1.0f;"), body("float that = 1.0f;"), (2, 3)),
    "B06": (4, "msl-refused", body("float sampler = a[i]; sampler s;"), body("float sampled = a[i]; sampler s;"), (2, 3)),
    "B07": (
        4,
        "msl-refused",
        body("float dot = a[i]; a[i] = dot(float2(1, 2), float2(3, 4));"),
        body("float d = a[i]; a[i] = dot(float2(1, 2), float2(3, 4));"),
        (2, 3),
    ),
    "B08": (
        5,
        "msl-refused",
        scope("float divide(float x, float y) { return x / y; }", "a[i] = divide(a[i], 2.0f);"),
        scope("float quotient(float x, float y) { return x / y; }", "a[i] = quotient(a[i], 2.0f);"),
        (2, 3),
    ),
    "B09": (
        3,
        "msl-scope",
        scope("float weights[2] = {0.25f, 0.75f};"),
        scope("constant float weights[2] = {0.25f, 0.75f};", "a[i] = weights[i & 1];"),
        (2, 3),
    ),
    "B10": (4, "msl-needs-version", body("bfloat x = bfloat(a[i]);"), body("half x = half(a[i]);"), (3, 0)),
    "B11": (4, "msl-unsupported", body("double s = 0; s += a[i];"), body("float s = 0; s += a[i];"), (4, 0)),
    "B12 float": (
        3,
        "msl-needs-version",
        scope("void f(device atomic_float* s) { atomic_fetch_add_explicit(s, 1.0f, memory_order_relaxed); }"),
        scope("void f(device atomic_uint* s) { atomic_fetch_add_explicit(s, 1u, memory_order_relaxed); }"),
        (2, 4),
    ),
    "B12 ulong": (
        3,
        "msl-needs-version",
        scope("void f(device atomic_ulong* s) { atomic_max_explicit(s, 1ul, memory_order_relaxed); }"),
        scope("void f(device atomic_uint* s) { atomic_fetch_max_explicit(s, 1u, memory_order_relaxed); }"),
        (2, 3),
    ),
    "B13": (
        3,
        "msl-limit",
        scope("kernel void j(device float* z [[buffer(31)]]) {}"),
        scope("kernel void j(device float* z [[buffer(30)]]) {}"),
        (2, 3),
    ),
    "B15": (
        4,
        "msl-needs-version",
        body("auto sq = [](float x) { return x * x; }; a[i] = sq(a[i]);"),
        body("a[i] = a[i] * a[i];"),
        (3, 1),
    ),
    "B16": (4, "msl-refused", body("uint pair[2] = { a[i], 1u };"), body("uint pair[2] = { uint(a[i]), 1u };"), (2, 3)),
    "B18": (
        4,
        "msl-refused",
        body("bfloat x = (i < 4) ? bfloat(a[i]) : 0.0; a[i] = x;"),
        body("bfloat x = (i < 4) ? bfloat(a[i]) : bfloat(0.0); a[i] = x;"),
        (3, 1),
    ),
    "B20": (4, "msl-refused", body("a[i] = ~a[i];"), body("n[i] = ~n[i];"), (2, 3)),
    "B23": (4, "msl-refused", body("uint m = uint(a[0]); float tmp[m];"), body("constexpr uint m = 4; float tmp[m];"), (2, 3)),
    "B24": (4, "msl-text", body("int r = (n[i] // 2);"), body("int r = (n[i] / 2);"), (2, 3)),
    "B25": (
        3,
        "msl-recursion",
        scope("int f(int n) { return n < 2 ? 1 : n * f(n - 1); }"),
        scope("int f(int n) { int p = 1; for (; n > 1; n--) p *= n; return p; }"),
        (2, 3),
    ),
    "B27": (
        4,
        "msl-refused",
        body("simdgroup_matrix<int, 8, 8> m;"),
        body("simdgroup_matrix<float, 8, 8> m;"),
        (2, 3),
    ),
    "B31": (
        3,
        "msl-needs-version",
        scope("uint tid [[thread_position_in_grid]];"),
        scope("kernel void j(uint tid [[thread_position_in_grid]]) {}"),
        (3, 0),
    ),
    "B33 macro": (4, "msl-reserved-name", body("float M_SQRT2_F = 1.4f;"), body("float root = M_SQRT2_F;"), (2, 3)),
    "B33 main": (3, "msl-reserved-name", scope("kernel void main() {}"), scope("kernel void main_() {}"), (2, 3)),
    "B34": (
        3,
        "msl-refused",
        scope("#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>"),
        scope("#include <metal_simdgroup_matrix>"),
        (3, 2),
    ),
}  # fmt: skip

# Overloads and conversions.
REFUSED |= {
    "pow": (4, "msl-refused", body("a[i] = pow(a[i], n);"), body("a[i] = pow(a[i], 2.0f);"), (2, 3)),
    "select": (4, "msl-refused", body("a[i] = select(a[i], 1, b[i] > 2);"), body("a[i] = select(a[i], 1.0f, b[i] > 2);"), (2, 3)),
    "any of a float": (4, "msl-refused", body("if (any(v[i])) a[i] = 1;"), body("if (any(v[i] > 0.0f)) a[i] = 1;"), (2, 3)),
    "isnan of an int": (4, "msl-refused", body("if (isnan(n[i])) a[i] = 1;"), body("if (isnan(a[i])) a[i] = 1;"), (2, 3)),
    "simd_sum of bool": (4, "msl-refused", body("a[i] = simd_sum(a[i] > 0);"), body("a[i] = simd_sum(int(a[i] > 0));"), (2, 3)),
    "a vector of another type": (4, "msl-refused", body("int4 k = int4(1); v[i] = k;"), body("int4 k = int4(1); v[i] = float4(k);"), (2, 3)),
    "too few components": (4, "msl-refused", body("v[i] = float4(1, 2);"), body("v[i] = float4(float2(1), 1, 2);"), (2, 3)),
    "a component that is not there": (4, "msl-refused", body("float2 p = v[i].xy; a[i] = p.z;"), body("float3 p = v[i].xyz; a[i] = p.z;"), (2, 3)),
    "a component twice": (4, "msl-refused", body("v[i].xx = float2(1);"), body("v[i].xy = v[i].xx;"), (2, 3)),
    "sizes of as_type": (4, "msl-refused", body("n[i] = as_type<int>(h[i]);"), body("n[i] = as_type<short>(h[i]);"), (2, 3)),
    "a function without the library": (
        4,
        "msl-refused",
        body("a[i] = erf(a[i]);"),
        body("a[i] = tanh(a[i]);"),
        (2, 3),
    ),
    "an int as a float's bits": (4, "msl-refused", body("a[i] = a[i] & 1;"), body("n[i] = n[i] & 1;"), (2, 3)),
    "float atomics on ints": (
        3,
        "msl-refused",
        scope("void f(device int* s) { atomic_fetch_add_explicit(s, 1, memory_order_relaxed); }"),
        scope("void f(device atomic_int* s) { atomic_fetch_add_explicit(s, 1, memory_order_relaxed); }"),
        (2, 3),
    ),
}  # fmt: skip

# Address spaces: the judge's part.
REFUSED |= {
    "device to thread": (4, "msl-address-space", body("thread float* p = a;"), body("float x = a[0]; thread float* p = &x;"), (2, 3)),
    "thread to device": (4, "msl-address-space", body("float x = 1; device float* p = &x;"), body("device float* p = &a[1];"), (2, 3)),
    "constant to device": (4, "msl-address-space", body("const device float* p = c;"), body("constant float* p = c;"), (2, 3)),
    "device to constant": (4, "msl-address-space", body("constant float* p = a;"), body("const device float* p = a;"), (2, 3)),
    "threadgroup to device": (4, "msl-address-space", body("device float* p = t;"), body("threadgroup float* p = t;"), (2, 3)),
    "device to threadgroup": (4, "msl-address-space", body("threadgroup float* p = a;"), body("threadgroup float* p = t + 1;"), (2, 3)),
    "threadgroup to thread": (4, "msl-address-space", body("thread float& x = t[0];"), body("threadgroup float& x = t[0];"), (2, 3)),
    "an argument": (
        5,
        "msl-address-space",
        scope("float f(thread float& x) { return x; }", "a[i] = f(a[i]);"),
        scope("float f(thread float& x) { return x; }", "float x = a[i]; a[i] = f(x);"),
        (2, 3),
    ),
    "an argument of a template": (
        5,
        "msl-address-space",
        scope("template <typename T> T f(device T* x) { return x[0]; }", "a[i] = f(t);"),
        scope("template <typename T> T f(device T* x) { return x[0]; }", "a[i] = f(a);"),
        (2, 3),
    ),
    "overloads by space": (
        6,
        "msl-address-space",
        scope("float f(device float* x) { return x[0]; }\nfloat f(constant float* x) { return x[0]; }", "a[i] = f(t);"),
        scope("float f(device float* x) { return x[0]; }\nfloat f(threadgroup float* x) { return x[0]; }", "a[i] = f(t);"),
        (2, 3),
    ),
    "a cast": (4, "msl-address-space", body("device uint* p = (device uint*)t;"), body("device uint* p = (device uint*)a;"), (2, 3)),
    "a method": (
        5,
        "msl-address-space",
        scope("struct S { float x; float get() const { return x; } };", "device S* s = (device S*)a; a[i] = s->get();"),
        scope("struct S { float x; float get() const device { return x; } };", "device S* s = (device S*)a; a[i] = s->get();"),
        (2, 3),
    ),
    "a table of constants": (
        5,
        "msl-address-space",
        scope("constant float w[2] = {1, 2};", "const device float* p = w;"),
        scope("constant float w[2] = {1, 2};", "constant float* p = w; a[i] = p[1];"),
        (2, 3),
    ),
    "an atomic in thread memory": (
        4,
        "msl-address-space",
        body("atomic_int x; n[i] = atomic_load_explicit(&x, memory_order_relaxed);"),
        body("n[i] = atomic_load_explicit((device atomic_int*)n, memory_order_relaxed);"),
        (2, 3),
    ),
    "a threadgroup variable": (
        4,
        "msl-address-space",
        body("threadgroup float s[4]; device float* p = s;"),
        body("threadgroup float s[4]; threadgroup float* p = s; p[0] = t[0];"),
        (2, 3),
    ),
    "frexp in device memory": (4, "msl-address-space", body("a[i] = frexp(a[i], n[i]);"), body("int e; a[i] = frexp(a[i], e);"), (2, 3)),
    "a constant that is written": (4, "msl-refused", body("c[i] = 1;"), body("a[i] = c[i];"), (2, 3)),
}  # fmt: skip

# Limits.
REFUSED |= {
    "threadgroup memory": (
        4,
        "msl-limit",
        body("threadgroup float s[8193]; s[0] = 1;"),
        body("threadgroup float s[8192]; s[0] = 1;"),
        (2, 3),
    ),
    "threadgroup memory in all": (
        4,
        "msl-limit",
        body("threadgroup float4 s[2000]; threadgroup half q[400]; s[0] = 1; q[0] = 1;"),
        body("{ threadgroup float4 s[2000]; s[0] = 1; } { threadgroup half q[400]; q[0] = 1; }"),
        (2, 3),
    ),
    "threads": (
        3,
        "msl-limit",
        scope("[[max_total_threads_per_threadgroup(1025)]] kernel void j() {}"),
        scope("[[max_total_threads_per_threadgroup(1024)]] kernel void j() {}"),
        (2, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    line, slug, text, _, version = REFUSED[name]
    assert (line, slug) in errors(check(text, version=version)), check(text, version=version)


@pytest.mark.parametrize("name", REFUSED)
def test_accepted(name: str) -> None:
    text, version = REFUSED[name][3:]
    report = check(text, version=version)
    assert errors(report) == [], report
    assert report.judged, report.reason


# Refused before a version, accepted from it on.
SINCE: dict[str, tuple[str, Version]] = {
    "recursion": (scope("int f(int n) { return n < 2 ? 1 : n * f(n - 1); }"), (2, 4)),
    "atomic_float": (
        scope("void f(device atomic_float* s) { atomic_fetch_add_explicit(s, 1.0f, memory_order_relaxed); }"),
        (3, 0),
    ),
    "bfloat": (body("bfloat x = bfloat(a[i]); a[i] = x;"), (3, 1)),
    "lambda": (body("auto sq = [](float x) { return x * x; }; a[i] = sq(a[i]);"), (3, 2)),
    "fill": (body("a[i] = simd_shuffle_and_fill_up(a[i], 1.0f, 1);"), (2, 4)),
    "nextafter": (body("a[i] = nextafter(a[i], 1.0f);"), (3, 1)),
}
VERSIONS: tuple[Version, ...] = ((2, 3), (2, 4), (3, 0), (3, 1), (3, 2), (4, 0))


@pytest.mark.parametrize("name", SINCE)
def test_versions(name: str) -> None:
    text, since = SINCE[name]
    for version in VERSIONS:
        assert check(text, version=version).refused == (version < since), version


# ---- recursion ----

NO_RECURSION = {
    "overloads": "float f(float x) { return x; }\nfloat f(half x) { return f(float(x)); }",
    "a template": "template <int N> int f() { return N + f<N - 1>(); }\ntemplate <> int f<0>() { return 0; }",
    "a namespace": "namespace m { float max(float x) { return metal::max(x, 0.0f); } }",
    "a method": "struct S { int n; int get() const { return n; } };\nint get(S s) { return s.get(); }",
    "a function of Metal's": "float sqrt(float3 v) { return sqrt(dot(v, v)); }"
    " kernel void j(device float* a) { a[0] = sqrt(float3(a[1])); }",
}


@pytest.mark.parametrize("name", NO_RECURSION)
def test_one_name_is_no_recursion(name: str) -> None:
    use = {"overloads": "a[i] = f(h[i]);", "a template": "n[i] = f<5>();"}.get(name, "")
    report = check(scope(NO_RECURSION[name], use))
    assert errors(report) == [], report


def test_recursion_of_a_template_is_found_where_it_is_instantiated() -> None:
    text = "template <typename T> T f(T n) { return n < 2 ? T(1) : n * f<T>(n - 1); }"
    assert errors(check(scope(text, "n[i] = f(n[i]);"))) == [(3, "msl-recursion")]
    assert errors(check(scope(text))) == []


def test_recursion_by_a_detour() -> None:
    text = scope(
        "int g(int n);\nint f(int n) { return g(n - 1); }\nint g(int n) { return n < 1 ? 0 : f(n); }"
    )
    assert (4, "msl-recursion") in errors(check(text))


# ---- the report ----


def test_a_place_behind_several_spaces() -> None:
    report = check(body("b[i]   =   max(b[i],   3);"))
    assert [d.span.column for d in report.findings if d.span] == [12]


def test_a_place_in_a_macro_is_its_line() -> None:
    text = f"{HEAD}#define LARGEST(x) max(x, 3)\n{SIGNATURE}  b[i] = LARGEST(b[i]);\n}}\n"
    (found,) = check(text).findings
    assert found.span is not None
    assert (found.span.line, found.span.text) == (5, "b[i] = LARGEST(b[i]);")


def test_one_mistake_is_one_error() -> None:
    for text in (body("int thread = 0;"), body("device float* p = c;"), body("float half = max(b[i], 3);")):
        assert len(errors(check(text))) == 1, text


def test_all_mistakes_are_told_at_once() -> None:
    text = body("float* p = a;\nthread float* q = a;\nb[i] = max(b[i], 3);\nfloat half = 1;")
    assert [line for line, _ in errors(check(text))] == [4, 5, 6, 7]


def test_what_the_judge_cannot_read_is_said() -> None:
    text = scope("float f(array_ref<float> a) { return a[0]; }")
    report = check(text, version=(3, 1))
    assert not report.refused
    assert (report.judged, report.reason[:17]) == (False, "program_source:3:")


CALLS = {
    "by a kernel": "kernel void j(device float* a) { }\nkernel void k(device float* a) { j(a); }",
    "by a function": "kernel void j(device float* a) { }\nvoid f(device float* a) { j(a); }",
    "of an instantiation": "template <typename T> [[kernel]] void j(device T* a) { }\nkernel void k(device float* a) { j<float>(a); }",
    "of one that overloads a function": "void j(int n) { } kernel void j(device float* a) { }\nvoid f(device float* a) { j(a); }",
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_that_is_called(name: str) -> None:
    report = check(HEAD + CALLS[name])
    assert errors(report) == [(4, "msl-kernel")]
    assert report.findings[0].message == "kernel `j` cannot be called"


NO_CALLS = {
    "a template called like a function of Metal's": "template <typename T> kernel void fmax(device T* a, uint i [[thread_position_in_grid]])"
    ' { a[i] = fmax(a[i], T(0)); } template [[host_name("f")]] kernel void fmax<float>(device float* a, uint i);',
    "a kernel called like a function of Metal's": "kernel void sqrt(device float* a) { a[0] = sqrt(a[1]); }",
    "the type of a kernel": "template <typename T> kernel void j(device T* a) { } typedef decltype(j<float>) j_t;"
    ' template [[host_name("f")]] kernel j_t j<float>;',
    "a function beside the kernel": "void j(device float* a, int n) { } kernel void j(device float* a) { j(a, 1); }",
}  # fmt: skip


@pytest.mark.parametrize("name", NO_CALLS)
def test_a_name_that_a_kernel_shares_may_be_called(name: str) -> None:
    assert errors(check(HEAD + NO_CALLS[name])) == []


def test_headers_and_macros(tmp_path: Path) -> None:
    (tmp_path / "shared.h").write_text("constant float scale = SCALE;\nfloat* wrong();\n")
    report = check(
        f'#include "shared.h"\n{body("a[i] = scale;")}', include=[str(tmp_path)], defines={"SCALE": "2.0f"}
    )
    (found,) = report.findings
    assert found.span is not None
    assert (found.span.source.name, found.span.line) == (str(tmp_path / "shared.h"), 2)


def test_what_apple_only_warns_of_is_no_error() -> None:
    report = check(scope("float f(int x) { if (x > 0) return 1; }"))
    assert [(d.severity, d.slug) for d in report.findings] == [("warning", "msl-refused")]
    assert not report.refused


def test_constants_are_constant() -> None:
    assert errors(check(scope("constant float root = sqrt(2.0f);"))) == [(3, "msl-refused")]
    for value in (
        "float root = 1.5f * 2",
        "float4 w = float4(1, 2, 3, 4)",
        "float2x2 m = float2x2(1.0f)",
        "half h = 1.0h",
    ):
        assert errors(check(scope(f"constant {value};"))) == [], value


def test_what_is_only_declared_passes() -> None:
    text = scope(
        "kernel void j(texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float4* o [[buffer(0)]])"
        " { o[0] = t.sample(s, float2(0)); }"
    )
    assert errors(check(text)) == []


@pytest.mark.parametrize(
    ("text", "line", "slug"),
    [
        ("", 0, "msl-text"),
        ("  \n\n", 1, "msl-text"),
        (body("a[i] = 1;") + "\0garbage", 6, "msl-text"),
        (HEAD + "kernel void k() {\n", 3, "msl-text"),
        (HEAD + "kernel void k() { } }\n", 3, "msl-text"),
        (HEAD + "kernel void k() { foo(]; }\n", 3, "msl-text"),
        (HEAD + "/* never closed\n", 3, "msl-refused"),
        (HEAD + "#if 1\nkernel void k() { }\n", 3, "msl-refused"),
        ('#include "nowhere.h"\n', 1, "msl-refused"),
        (HEAD + "#error stop\n", 3, "msl-refused"),
        ("x" * 17_000_000, 1, "msl-text"),
    ],
    ids=[
        "empty",
        "blank",
        "zero",
        "open",
        "closed twice",
        "crossed",
        "comment",
        "if",
        "header",
        "error",
        "huge",
    ],
)
def test_texts_that_cannot_be_read(text: str, line: int, slug: str) -> None:
    report = check(text)
    assert errors(report) == [(line, slug)]
    assert not report.judged
