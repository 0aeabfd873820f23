"""Where declarations begin and end, which attributes stand where, and what brackets say."""

from __future__ import annotations

import pytest

from metaljit.runtime.msl.declarations import (
    Class,
    Function,
    Instantiation,
    Variable,
    View,
    declarations,
    view,
)
from metaljit.runtime.msl.tokens import Unbalanced, lex


def read(text: str) -> tuple[View, list[str]]:
    """The view, and each declaration as its kind and name."""
    seen = view(lex(text))
    shown = []
    for d in declarations(seen):
        match d:
            case Function(name=name, owner=owner, is_kernel=is_kernel, scope=scope):
                kind = "kernel" if is_kernel else "function" if d.body else "prototype"
                shown.append(f"{kind} {'::'.join((*scope, *filter(None, [owner]), seen.words[name]))}")
            case Class(name=name):
                shown.append(f"class {name}")
            case Instantiation():
                shown.append("instantiation")
            case Variable(start=start, end=end):
                shown.append(f"variable {' '.join(seen.words[start:end])}")
    return seen, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int f(int a) { return a; } int g();", ["function f", "prototype g"]),
        ("typedef struct S { int f() { } } S;", ["class S", "function S::f"]),
        ("typedef struct __attribute__((packed)) { int f(); } S; typedef int T;", ["class S", "prototype S::f", "variable typedef int T"]),
        ("kernel void k() {}", ["kernel k"]),
        ("[[kernel]] void k() {}", ["kernel k"]),
        ("template <typename T> [[kernel]] void k(device T* a [[buffer(0)]]) {}", ["kernel k"]),
        ("namespace a { namespace b { void f() {} } void g() {} }", ["function a::b::f", "function a::g"]),
        ("namespace a::b { kernel void k() {} }", ["kernel a::b::k"]),
        ("inline namespace v1 { int f() { return 1; } }", ["function v1::f"]),
        ('extern "C" { void f() {} }', ["function f"]),
        ("namespace m = metal;", ["variable namespace m = metal"]),
        ("using namespace metal; typedef int T; using U = vec<int, 2>;", ["variable using namespace metal", "variable typedef int T", "variable using U = vec < int , 2 >"]),
        ("struct S { int a; int f() { return a; } S(int b) : a{b} {} };", ["class S", "variable int a", "function S::f", "function S::S"]),
        ("struct S { S() = default; S(S&) = delete; int a = f(1); };", ["class S", "prototype S::S", "prototype S::S", "variable int a = f ( 1 )"]),
        ("struct S { int a, b; } s = {1, 2};", ["class S", "variable int a , b"]),
        ("enum class E : uint { a, b };", ["class E"]),
        ("enum E { a = 1, b };", ["class E"]),
        ("constant float t[2] = {1, 2}; constant int n = 3;", ["variable constant float t [ 2 ] = { 1 , 2 }", "variable constant int n = 3"]),
        ("constant float t[2]{1, 2}; int f() {}", ["variable constant float t [ 2 ] { 1 , 2 }", "function f"]),
        ("struct T { T operator()(int a) const { return *this; } bool operator==(T b) { return 1; } };", ["class T", "function T::operator", "function T::operator"]),
        ("struct T { thread T& operator=(T o) { return *this; } operator float() const { return 1; } };", ["class T", "function T::operator", "function T::operator"]),
        ("template <int N, bool B = (N > 2)> int f() { return N; }", ["function f"]),
        ("template <typename T> metal::enable_if_t<(sizeof(T) > 2), T> f(T a) { return a; }", ["function f"]),
        ("template <> int f<float, 4>(int a) { return a; }", ["function f"]),
        ("template <typename T> struct S; template <> struct S<int> { int a; };", ["variable template < typename T > struct S", "class S", "variable int a"]),
        ('template [[host_name("a")]] kernel void k<float>(device float*);', ["instantiation"]),
        ("template struct S<int>; int f() {}", ["instantiation", "function f"]),
        ("auto f(int a) -> int { return a; }", ["function f"]),
        ("__attribute__((always_inline)) int f() { return 1; }", ["function f"]),
        ("static_assert(sizeof(int) == 4, \"{\"); int f() { return '}'; }", ["variable static_assert ( sizeof ( int ) == 4 , \"{\" )", "function f"]),
        ("int a = [](int b) { return b; }(3); int c;", ["variable int a = [ ] ( int b ) { return b ; } ( 3 )", "variable int c"]),
        ("struct S { public: int a; private: int b; };", ["class S", "variable int a", "variable int b"]),
        ("struct alignas(16) S { int a; };", ["class S", "variable int a"]),
    ],
)  # fmt: skip
def test_declarations(text: str, expected: list[str]) -> None:
    assert read(text)[1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[kernel]] void k();", [("kernel", "")]),
        ('[[host_name("a" "b")]] int f();', [("host_name", '"a" "b"')]),
        ("int a [[buffer(N + 1)]];", [("buffer", "N + 1")]),
        ("int a [[buffer(0), function_constant(c)]];", [("buffer", "0"), ("function_constant", "c")]),
        ("[[clang::unroll]] [[max_total_threads_per_threadgroup(2 * f(3))]] int a;", [("unroll", ""), ("max_total_threads_per_threadgroup", "2 * f ( 3 )")]),
        ("int a = b[c[1]];", []),
        ("int a = b[[](int c) { return c; }(1)];", []),
    ],
)  # fmt: skip
def test_attributes(text: str, expected: list[tuple[str, str]]) -> None:
    tokens = lex(text)
    seen = view(tokens)
    assert [(a.name, a.arguments) for found in seen.attributes.values() for a in found] == expected
    left = tokens.text()
    assert "[[" not in left or not expected
    assert len(left) == len(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("int f() {\n  (1;\n}", (2, 3)),
        ("int f() {\n 1);\n}", (2, 3)),
        ("int f() {\n a[(1];\n}", (2, 4)),
        ("int a;\n }", (2, 2)),
        ("void f() {\n", (1, 10)),
    ],
)
def test_brackets_without_partners(text: str, place: tuple[int, int]) -> None:
    with pytest.raises(Unbalanced) as caught:
        view(lex(f'# 1 "x"\n{text}'))
    assert caught.value.place == place
