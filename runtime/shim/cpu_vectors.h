// Vectors of 2, 3 and 4 components.
//
// A vector is a plain struct of scalars, not one of clang's vector types: after inlining nothing is left of it but scalars,
// and a loop over them is vectorised across its iterations. The copy constructor is written out on purpose: it makes
// clang pass vectors in memory, which inlining removes, and not packed into pairs of registers, which it keeps.
#pragma once

#include "cpu_types.h"

#ifdef MJ_IF_VECTORS
#error "cpu_vectors.h goes before the parts that it gives vector forms to"
#endif
#define MJ_IF_VECTORS(...) __VA_ARGS__

namespace metal {

template <class T, int n> struct vec;

namespace detail {

template <class T> MJ_INLINE T divide(T a, T b) {
    if constexpr (is_float<T>) {
        return a / b;
    } else {
        // x86 traps on a zero divisor and on smallest / -1; Metal gives some value.
        bool unsafe = b == T(0) || (is_signed<T> && b == T(-1));
        T quotient = T(a / (unsafe ? T(1) : b));
        return b == T(0) ? T(0) : (unsafe ? T(-quotient) : quotient);
    }
}

template <class T> MJ_INLINE T remainder(T a, T b) {
    bool unsafe = b == T(0) || (is_signed<T> && b == T(-1));
    return unsafe ? T(0) : T(a % (unsafe ? T(1) : b));
}

template <class T> MJ_INLINE T shift_left(T a, T b) { return T(a << (b & T(width<T> - 1))); }
template <class T> MJ_INLINE T shift_right(T a, T b) { return T(a >> (b & T(width<T> - 1))); }

template <char op, class T> MJ_INLINE T arithmetic(T a, T b) {
    if constexpr (op == '+') return T(a + b);
    if constexpr (op == '-') return T(a - b);
    if constexpr (op == '*') return T(a * b);
    if constexpr (op == '&') return T(a & b);
    if constexpr (op == '|') return T(a | b);
    if constexpr (op == '^') return T(a ^ b);
}
template <char op, class T> MJ_INLINE bool compare(T a, T b) {
    if constexpr (op == '=') return a == b;
    if constexpr (op == '!') return a != b;
    if constexpr (op == '<') return a < b;
    if constexpr (op == '>') return b < a;
    if constexpr (op == '[') return a <= b;
    if constexpr (op == ']') return b <= a;
    if constexpr (op == '&') return bool(a) & bool(b);
    if constexpr (op == '|') return bool(a) | bool(b);
}
template <class T> MJ_INLINE T negate(T a) { return T(-a); }
template <class T> MJ_INLINE T invert(T a) { return T(~a); }
template <class T> MJ_INLINE bool is_zero(T a) { return !a; }

// Operators are friends, found by argument only, so that a scalar on either side is splatted.
template <class V, class T, class B> struct vector_operators {
#define MJ_OPERATOR(op, function)                                                                                       \
    MJ_MEMBER friend V operator op(const V &a, const V &b) { return V::map(function, a, b); }                           \
    MJ_MEMBER friend V &operator op##=(V &a, const V &b) { return a = V::map(function, a, b); }
    MJ_OPERATOR(+, (arithmetic<'+', T>))
    MJ_OPERATOR(-, (arithmetic<'-', T>))
    MJ_OPERATOR(*, (arithmetic<'*', T>))
    MJ_OPERATOR(/, divide<T>)
    MJ_OPERATOR(%, remainder<T>)
    MJ_OPERATOR(&, (arithmetic<'&', T>))
    MJ_OPERATOR(|, (arithmetic<'|', T>))
    MJ_OPERATOR(^, (arithmetic<'^', T>))
    MJ_OPERATOR(<<, shift_left<T>)
    MJ_OPERATOR(>>, shift_right<T>)
#undef MJ_OPERATOR
#define MJ_COMPARISON(op, code)                                                                                         \
    MJ_MEMBER friend B operator op(const V &a, const V &b) { return B::map(compare<code, T>, a, b); }
    MJ_COMPARISON(==, '=')
    MJ_COMPARISON(!=, '!')
    MJ_COMPARISON(<, '<')
    MJ_COMPARISON(>, '>')
    MJ_COMPARISON(<=, '[')
    MJ_COMPARISON(>=, ']')
    MJ_COMPARISON(&&, '&')
    MJ_COMPARISON(||, '|')
#undef MJ_COMPARISON
    MJ_MEMBER friend V operator-(const V &a) { return V::map(negate<T>, a); }
    MJ_MEMBER friend V operator~(const V &a) { return V::map(invert<T>, a); }
    MJ_MEMBER friend B operator!(const V &a) { return B::map(is_zero<T>, a); }
};

} // namespace detail

// map calls f once per component with that component of each argument; fold joins the components from the left.
template <class T> struct alignas(2 * sizeof(T)) vec<T, 2> : detail::vector_operators<vec<T, 2>, T, vec<bool, 2>> {
    T x, y;
    vec() = default;
    MJ_MEMBER vec(T s) : x(s), y(s) {}
    MJ_MEMBER vec(T a, T b) : x(a), y(b) {}
    MJ_MEMBER vec(const vec &v) : x(v.x), y(v.y) {}
    template <class U> MJ_MEMBER explicit vec(const vec<U, 2> &v) : x(T(v.x)), y(T(v.y)) {}
    MJ_MEMBER vec &operator=(const vec &v) { return x = v.x, y = v.y, *this; }
    MJ_MEMBER T operator[](uint i) const { return i == 0u ? x : y; }
    template <class... A> MJ_MEMBER static vec map(T (*f)(A...), const vec<A, 2> &...a) { return vec(f(a.x...), f(a.y...)); }
    MJ_MEMBER T fold(T (*f)(T, T)) const { return f(x, y); }
};

template <class T> struct alignas(4 * sizeof(T)) vec<T, 3> : detail::vector_operators<vec<T, 3>, T, vec<bool, 3>> {
    T x, y, z;
    vec() = default;
    MJ_MEMBER vec(T s) : x(s), y(s), z(s) {}
    MJ_MEMBER vec(T a, T b, T c) : x(a), y(b), z(c) {}
    MJ_MEMBER vec(const vec<T, 2> &v, T c) : x(v.x), y(v.y), z(c) {}
    MJ_MEMBER vec(T a, const vec<T, 2> &v) : x(a), y(v.x), z(v.y) {}
    MJ_MEMBER vec(const vec &v) : x(v.x), y(v.y), z(v.z) {}
    template <class U> MJ_MEMBER explicit vec(const vec<U, 3> &v) : x(T(v.x)), y(T(v.y)), z(T(v.z)) {}
    MJ_MEMBER vec &operator=(const vec &v) { return x = v.x, y = v.y, z = v.z, *this; }
    MJ_MEMBER T operator[](uint i) const { return i == 0u ? x : i == 1u ? y : z; }
    template <class... A> MJ_MEMBER static vec map(T (*f)(A...), const vec<A, 3> &...a) {
        return vec(f(a.x...), f(a.y...), f(a.z...));
    }
    MJ_MEMBER T fold(T (*f)(T, T)) const { return f(f(x, y), z); }
};

template <class T> struct alignas(4 * sizeof(T)) vec<T, 4> : detail::vector_operators<vec<T, 4>, T, vec<bool, 4>> {
    T x, y, z, w;
    vec() = default;
    MJ_MEMBER vec(T s) : x(s), y(s), z(s), w(s) {}
    MJ_MEMBER vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
    MJ_MEMBER vec(const vec<T, 2> &u, const vec<T, 2> &v) : x(u.x), y(u.y), z(v.x), w(v.y) {}
    MJ_MEMBER vec(const vec<T, 2> &v, T c, T d) : x(v.x), y(v.y), z(c), w(d) {}
    MJ_MEMBER vec(T a, const vec<T, 2> &v, T d) : x(a), y(v.x), z(v.y), w(d) {}
    MJ_MEMBER vec(T a, T b, const vec<T, 2> &v) : x(a), y(b), z(v.x), w(v.y) {}
    MJ_MEMBER vec(const vec<T, 3> &v, T d) : x(v.x), y(v.y), z(v.z), w(d) {}
    MJ_MEMBER vec(T a, const vec<T, 3> &v) : x(a), y(v.x), z(v.y), w(v.z) {}
    MJ_MEMBER vec(const vec &v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
    template <class U> MJ_MEMBER explicit vec(const vec<U, 4> &v) : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
    MJ_MEMBER vec &operator=(const vec &v) { return x = v.x, y = v.y, z = v.z, w = v.w, *this; }
    MJ_MEMBER T operator[](uint i) const { return i == 0u ? x : i == 1u ? y : i == 2u ? z : w; }
    template <class... A> MJ_MEMBER static vec map(T (*f)(A...), const vec<A, 4> &...a) {
        return vec(f(a.x...), f(a.y...), f(a.z...), f(a.w...));
    }
    MJ_MEMBER T fold(T (*f)(T, T)) const { return f(f(f(x, y), z), w); }
};

} // namespace metal

#define MJ_VECTORS(T)                                                                                                   \
    typedef metal::vec<T, 2> T##2;                                                                                      \
    typedef metal::vec<T, 3> T##3;                                                                                      \
    typedef metal::vec<T, 4> T##4;                                                                                      \
    namespace metal { using ::T##2; using ::T##3; using ::T##4; }
MJ_VECTORS(bool)
MJ_VECTORS(char)
MJ_VECTORS(uchar)
MJ_VECTORS(short)
MJ_VECTORS(ushort)
MJ_VECTORS(int)
MJ_VECTORS(uint)
MJ_VECTORS(long)
MJ_VECTORS(ulong)
MJ_VECTORS(half)
MJ_VECTORS(float)
#undef MJ_VECTORS
