"""What the translation to C++ makes of Metal's own words, and what it finds that can be launched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from metaljit.runtime.msl.kernels import Kernel
from metaljit.runtime.msl.rewrite import literal, translate


def cpp(text: str, names: Sequence[str] = (), **values: str) -> str:
    """The C++ with single spaces."""
    return " ".join(translate(text).source(names, values).split())


def only(text: str) -> Kernel:
    (kernel,) = translate(text).kernels.values()
    return kernel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device float* f(thread int& a, threadgroup int* b);", "float* f( int& a, int* b);"),
        ("constant int n = 3;", "const int n = 3;"),
        ("volatile device atomic_int* a;", "atomic_int* a;"),
        ("coherent(device) device int* a;", "int* a;"),
        ("float f() { return 1.0 + 2.5e3 + .5 + 1e-3; }", "float f() { return 1.0f + 2.5e3f + .5f + 1e-3f; }"),
        ("half f() { return 1.5h; }", "half f() { return 1.5f16; }"),
        ("int f() { return a.device + b->thread + x::kernel; }", "int f() { return a.device + b->thread + x::kernel; }"),
        ("#pragma unroll\nint a;", "int a;"),
        ("int f(int a) { return a<<2; }", "int f(int a) { return a<< __EMU_LEFT 2; }"),
        ("int f(int a) { a >>= 2; return (a>>b); }", "int f(int a) { a >>= __EMU_RIGHT 2; return (a>> __EMU_RIGHT b); }"),
        ("vec<vec<int, 2>> a;", "vec<vec<int, 2>> a;"),
        ("void f() { [[unroll]] for (;;) {} }", "void f() { for (;;) {} }"),
    ],
)  # fmt: skip
def test_words(text: str, expected: str) -> None:
    assert cpp(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"), ("1u", "1u"), ("0x1F", "0x1F"), ("0xE", "0xE"), ("1.", "1.f"), ("1.0", "1.0f"), ("1e5", "1e5f"),
        ("1.0f", "1.0f"), ("1.0F", "1.0F"), ("0x1p3", "0x1p3f"), ("0x1.8p-1f", "0x1.8p-1f"), ("2h", "2.0f16"),
        ("2.5H", "2.5f16"), ("1.5bf", "bfloat(1.5f)"), ("0xBF", "0xBF"), ("0x1f", "0x1f"), ("1'000.5", "1'000.5f"),
        ("1ul", "1ul"),
    ],
)  # fmt: skip
def test_literals(text: str, expected: str) -> None:
    assert literal(text) == expected


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("int f(device int* a) { return 1; } int f(threadgroup int* a) { return 2; }", ["1"]),
        ("int f(device int* a) { return 1; } int f(device uint* a) { return 2; }", ["1", "2"]),
        ("int f(device int* a) { return 1; } int f(device int* a) { return 2; }", ["1", "2"]),
        ("int f(const thread int& a) { return 1; } int f(const constant int& a) { return 2; }", ["1"]),
        ("namespace a { int f(device int* a) { return 1; } } int f(thread int* a) { return 2; }", ["1", "2"]),
        ("struct S { int f() const { return 1; } int f() const device { return 2; } };", ["1"]),
        ("struct S { S(thread S& a) thread = default; S(device S& a) thread = default; };", []),
        ("struct S { int f() const { return 1; } int f() { return 2; } };", ["1", "2"]),
        ("struct S { int f() thread { return 1; } int f() const constant { return 2; } };", ["1", "2"]),
        ("template <class T> int f(device T* a) { return 1; } template <class T> int f(thread T* a) { return 2; }", ["1"]),
        ("template <class T> void_t<T> f(T a) { return 1; } template <class T> int_t<T> f(T a) { return 2; }", ["1", "2"]),
        ("template <> struct P<device int*> { int f() { return 1; } }; template <> struct P<thread int*> { int f() { return 2; } };", ["1"]),
        ("template <class T> struct A { int f() { return 1; } }; template <class T> struct A<T*> { int f() { return 2; } };", ["1", "2"]),
    ],
)  # fmt: skip
def test_of_overloads_that_differ_in_address_spaces_the_first_stays(text: str, kept: list[str]) -> None:
    found = cpp(text)
    assert [n for n in ("1", "2") if f"return {n};" in found] == kept
    assert found.count("default") <= 1


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        ("threadgroup float x[4];", ["x"]),
        ("threadgroup float x[4], y[2][3], z;", ["x", "y", "z"]),
        ("threadgroup array<float, 4> x;", ["x"]),
        ("threadgroup vec<float, (2 + 2)> x[2];", ["x"]),
        ("threadgroup __attribute__((aligned(16))) float x[4];", ["x"]),
        ("threadgroup float x[4] __attribute__((aligned(16)));", ["x"]),
        ("threadgroup float x __attribute__((aligned(16)));", ["x"]),
        ("const threadgroup float x[4];", ["x"]),
        ("threadgroup T x[N * (M + 1)];", ["x"]),
        ("threadgroup atomic_int x;", ["x"]),
        ("threadgroup float* x = y;", []),
        ("threadgroup float& x = y[0];", []),
        ("threadgroup float (&x)[4] = y;", []),
        ("f((threadgroup float*)a);", []),
        ("int x;", []),
    ],
)
def test_threadgroup_variables(declaration: str, expected: list[str]) -> None:
    found = cpp(f"void f() {{ {declaration} int after; }}")
    assert [name for name in ("x", "y", "z") if f'sizeof({name}), "{name}");' in found] == expected
    assert ("static" in found) == bool(expected)
    assert found.endswith("int after; }")


def test_several_threadgroup_variables_in_a_row() -> None:
    found = cpp("kernel void k() { threadgroup int a; threadgroup int b; if (1) { threadgroup int c; } }")
    assert found.count("static") == 3
    assert found.count("__emu_threadgroup_memory") == 3


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("device float* a [[buffer(3)]]", ("buffer", 3, "a", "float *", True)),
        ("device const float* a [[buffer(0)]]", ("buffer", 0, "a", "const float *", False)),
        ("constant S& a [[buffer(1)]]", ("buffer", 1, "a", "const S &", False)),
        ("device float* a", ("buffer", 0, "a", "float *", True)),
        ("device float* a [[buffer(0x1F)]]", ("buffer", 31, "a", "float *", True)),
        ("threadgroup float* a [[threadgroup(1)]]", ("threadgroup", 1, "a", "float *", True)),
        ("device int (&a)[4] [[buffer(0)]]", ("buffer", 0, "a", "int ( & ) [ 4 ]", True)),
        ("uint3 a [[thread_position_in_grid]]", ("thread_position_in_grid", None, "a", "uint3", True)),
        ("texture2d<float> a [[texture(2)]]", ("texture", 2, "a", "texture2d < float >", True)),
        ("threadgroup int& a", ("local_threadgroup", None, "a", "int &", True)),
    ],
)
def test_parameters(parameter: str, expected: tuple[object, ...]) -> None:
    (found,) = only(f"kernel void k({parameter}) {{}}").inputs
    assert (found.what, found.index, found.name, found.type, found.is_written) == expected


def test_parameters_without_an_index_get_free_ones() -> None:
    found = only(
        "kernel void k(device int* a, device int* b [[buffer(0)]], device int* c, threadgroup int* d) {}"
    )
    assert [(p.what, p.index) for p in found.inputs] == [("buffer", 1), ("buffer", 0), ("buffer", 2), ("threadgroup", 0)]  # fmt: skip


def test_kernels_and_their_names() -> None:
    text = """
template <typename T, int N> [[kernel]] void k(device T* a [[buffer(0)]]) {}
template [[host_name("k_" "float")]] [[kernel]] void k<float, 4>(device float*);
typedef decltype(k<int, 2>) kind;
template [[host_name("k_int")]] kernel kind k<int, 2>;
namespace n { kernel void plain() {} kernel [[host_name("other")]] void named() {} }
void no() {}
"""
    found = translate(text)
    assert list(found.kernels) == ["n::plain", "other", "k_float", "k_int"]
    assert found.kernels["k_float"].call == "static_cast<void (*)(float *)>(k < float , 4 >)"
    source = " ".join(found.source(["k_int", "n::plain"]).split())
    assert "__emu_entry_0() { __emu::call<__emu::buffer<(0)>>(k < int , 2 >); }" in source
    assert 'namespace n { extern "C"' in source
    assert "host_name" not in source
    assert "int , 2 >;" not in source


def test_what_is_taken_away_stays_away() -> None:
    """The numbers in an instantiation are literals too."""
    found = cpp('template <int N> kernel void k() {} template [[host_name("a")]] kernel void k<32>();')
    assert "32" not in found


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("[[max_total_threads_per_threadgroup(64)]]", 64),
        ("[[required_threads_per_threadgroup(8, 4, 2)]]", 64),
        ("[[max_total_threads_per_threadgroup(N)]]", None),
        ("", None),
    ],
)
def test_the_most_threads(attribute: str, expected: int | None) -> None:
    assert only(f"{attribute} kernel void k() {{}}").most_threads == expected


def test_function_constants() -> None:
    text = """constant bool a [[function_constant(0)]];
constant int n [[function_constant(7)]];
kernel void k(device int* out [[buffer(0)]]) { out[0] = is_function_constant_defined(n) ? n : a; }"""
    assert list(translate(text).constants) == ["a", "n"]
    found = cpp(text)
    assert "const bool a = {};" in found
    assert "= false ? n : a" in found
    for values in ({"n": "5"}, {"7": "5"}):
        found = cpp(text, (), **values)
        assert "const int n = 5;" in found
        assert "= true ? n : a" in found


def test_lines_stay_where_they_are() -> None:
    text = '# 1 "program_source"\nconstant\nint a =\n  1.0; device int* b;\nkernel void k() {}\n'
    found = translate(text)
    lines = found.source([]).split("\n")
    assert lines[3] == "  1.0f;        int* b;"
    kernel = found.kernels["k"]
    assert (kernel.position.file, kernel.position.line) == ("program_source", 4)
    assert '#line 4 "program_source"' in found.source(["k"])
